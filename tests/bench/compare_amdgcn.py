#!/usr/bin/env python3
"""AMDGCN of the examples' kernels side by side with a peer's: matrix instructions, widths, registers, LDS, occupancy.

Usage: compare_amdgcn.py --programs BUILD/bin [--arch gfx942]… [--triton PYTHON [--record FILE.json] | --peer DIR|FILE.json]
                         [--case 'CASE']… [--markdown]
       compare_amdgcn.py OURS.amdgcn [PEER.amdgcn] [--case 'matmul …']
A case names a kernel and the options of its example: 'matmul type=f16 bm=64 bn=64 bk=32 warps=4 trans-b', 'softmax cols=4096'.
Ours is compiled by the example with --compile-only: no GPU, no Triton needed. --triton names a Python that has Triton
(triton_amdgcn.py is run with it); --record keeps what was counted in its texts, --peer takes such a record, or a folder of
texts, DIR/ARCH/CASE_WITH_UNDERSCORES.amdgcn. Without either ours is shown alone. Counts are
those of one trip of the innermost loop that multiplies or loads (stores: of the kernel), for BK columns of K. The exit code
is 1 where ours is worse: other matrix instructions per BK, narrower accesses on average, VGPR + AGPR more than 10 % above, more
bytes of LDS, scratch, lower occupancy. Writes to LDS alone may be narrower, by a tile that is turned on its way there: where reads
are wider for it, reads and writes together too, and there are fewer of them.
"""
import argparse, json, pathlib, re, subprocess, sys, tempfile

import amdgcn

PROGRAMS = {"vector_add": "01_vector_add", "softmax": "02_fused_softmax", "persistent_softmax": "02_fused_softmax",
            "layer_norm": "03_layer_norm", "matmul": "05_matmul"}
TILES = ("bm=64 bn=64 bk=32 warps=4", "bm=128 bn=128 bk=64 warps=8")
TYPES = ("f16", "bf16", "f8e4m3", "f8e5m2", "i8")
OWN_TYPES = {"gfx942": ("f8e4m3fnuz", "f8e5m2fnuz")}  # what only this one multiplies
ROWS = ["vector_add block=1024", "softmax cols=1024", "softmax cols=4096", "layer_norm cols=1024", "layer_norm cols=4096"]


def cases_for(arch):
    return ROWS + [f"matmul type={t} {tile} stages=2{way}" for t in TYPES + OWN_TYPES.get(arch, ()) for tile in TILES
                   for way in ("", " trans-b")]


def compile_ours(programs, arch, case):
    kernel, *options = case.split()
    with tempfile.TemporaryDirectory() as folder:
        command = [programs / PROGRAMS[kernel], "--compile-only", f"--target=hip:{arch}", f"--dump=amdgcn:{folder}"]
        done = subprocess.run(command + ["--" + o for o in options], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{case}: {' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
        found = re.search(rf"^// amdgcn of {kernel} for \S+: (\S+)$", done.stdout, re.M)
        return pathlib.Path(found.group(1)).read_text()


def trips(kernel, case):
    """How many steps of BK one trip of the loop makes."""
    settings = dict(word.split("=") for word in case.split() if "=" in word)
    if not kernel.matrix or not {"bm", "bn", "bk"} <= settings.keys():
        return 1
    once = int(settings["bm"]) * int(settings["bn"]) * int(settings["bk"]) / kernel.warps
    return sum(amdgcn.multiplies(name) * n for name, n in kernel.matrix.items()) / once


def matrix_text(counts, per):
    return ", ".join(f"{n / per:g} {re.sub('^v_', '', name)}" for name, n in counts.items()) or "-"


def measures(ours, peer, case):
    """(what, our text, peer's text, whether ours is no worse or None where there is nothing to compare)."""
    text = lambda f: (f(ours), f(peer) if peer else "")
    a, b = trips(ours, case), trips(peer, case) if peer else 1
    yield "matrix instructions", matrix_text(ours.matrix, a), matrix_text(peer.matrix, b) if peer else "", \
        peer and (ours.matrix.total() / a == peer.matrix.total() / b if peer.matrix else None)
    width = lambda k, *kinds: k.width(*kinds, whole=kinds == ("store",))
    together = lambda k: k.width("lds_read", "lds_write")
    for kind, name in zip(amdgcn.CLASSES, ("loads", "stores", "LDS reads", "LDS writes")):
        fine = None
        # Of LDS there may be no accesses in one; its bytes are judged by themselves.
        if peer and (kind in ("load", "store") or (width(ours, kind) and width(peer, kind))):
            fine = width(ours, kind) >= width(peer, kind) - 1e-9
            if kind == "lds_write" and not fine:
                count = lambda k: sum(k.accesses[side].total() for side in ("lds_read", "lds_write"))
                fine = (width(ours, "lds_read") > width(peer, "lds_read") and together(ours) > together(peer)
                        and count(ours) / a < count(peer) / b)
        yield name, *text(lambda k: k.widths(kind, kind == "store")), fine
    fine = together(ours) >= together(peer) - 1e-9 if peer and together(peer) and together(ours) else None
    yield "bytes of an LDS access", *text(lambda k: f"{together(k):.1f}" if together(k) else "-"), fine
    yield "VGPR + AGPR", *text(lambda k: str(k.registers)), peer and ours.registers <= 1.1 * peer.registers
    yield "LDS bytes", *text(lambda k: str(k.lds)), peer and ours.lds <= peer.lds
    yield "scratch bytes", *text(lambda k: str(k.scratch)), ours.scratch == 0
    yield "waves a SIMD", *text(lambda k: f"{k.occupancy:g}"), peer and ours.occupancy >= peer.occupancy
    yield "instructions", *text(lambda k: f"{k.instructions} of {k.all_instructions}"), None


def show(arch, case, ours, peer, markdown):
    rows = list(measures(ours, peer, case))
    worse = [what for what, _, _, fine in rows if fine is False]
    if markdown:
        cells = [mine if not peer or mine == theirs else f"{mine} / {theirs}" for _, mine, theirs, _ in rows[:-1]]
        print(f"| {case} | " + " | ".join(cells) + f" | {'worse: ' + ', '.join(worse) if worse else 'no worse'} |")
    else:
        print(f"{arch}: {case}")
        for what, mine, theirs, fine in rows:
            verdict = "" if fine is None or not (peer or fine is False) else "ok" if fine else "WORSE"
            print(f"  {what:22} {mine:34} {theirs:34} {verdict}")
    sys.stdout.flush()
    return worse


def main():
    args = argparse.ArgumentParser()
    args.add_argument("files", nargs="*", type=pathlib.Path)
    args.add_argument("--programs", type=pathlib.Path)
    args.add_argument("--arch", action="append", choices=sorted(amdgcn.MACHINES))
    args.add_argument("--triton", metavar="PYTHON")
    args.add_argument("--record", type=pathlib.Path)
    args.add_argument("--peer", type=pathlib.Path)
    args.add_argument("--case", action="append")
    args.add_argument("--markdown", action="store_true")
    args = args.parse_args()
    worse, kept = {}, {}
    if args.files:
        ours, *peer = [amdgcn.parse(f.read_text()) for f in args.files[:2]]
        case = (args.case or [ours.name])[0]
        worse[case] = show(ours.arch, case, ours, peer[0] if peer else None, args.markdown)
    elif not args.programs:
        sys.exit("name the folder of the examples, --programs, or texts to compare")
    record = json.loads(args.peer.read_text()) if args.peer and args.peer.suffix == ".json" else {}
    for arch in [] if args.files else args.arch or ["gfx942", "gfx1100"]:
        cases = args.case or (list(record[arch]) if record else cases_for(arch))
        with tempfile.TemporaryDirectory() as folder:
            texts = pathlib.Path(args.peer or folder) / arch
            if args.triton:
                script = pathlib.Path(__file__).with_name("triton_amdgcn.py")
                subprocess.run([args.triton, script, texts, arch, *cases], check=True)
            if args.markdown:
                names = ["matrix instructions", "loads", "stores", "LDS reads", "LDS writes", "bytes of an LDS access",
                         "VGPR + AGPR", "LDS bytes", "scratch bytes", "waves a SIMD"]
                print(f"\n{arch}\n\n| case | " + " | ".join(names) + " | verdict |\n|---|" + "---|" * (len(names) + 1))
            for case in cases:
                peer = None
                if args.peer and record:
                    peer = amdgcn.Kernel.of_facts(record[arch][case])
                elif args.triton or args.peer:
                    peer = amdgcn.parse((texts / f"{'_'.join(case.split())}.amdgcn").read_text())
                    kept.setdefault(arch, {})[case] = peer.facts()
                worse[arch, case] = show(arch, case, amdgcn.parse(compile_ours(args.programs, arch, case)), peer, args.markdown)
    if args.record:
        lines = (f'"{arch}": {{\n' + ",\n".join(f'"{case}": {json.dumps(facts)}' for case, facts in cases.items()) + "}"
                 for arch, cases in kept.items())
        args.record.write_text("{\n" + ",\n".join(lines) + "}\n")
    failed = sum(1 for w in worse.values() if w)
    if failed:
        sys.exit(f"\n{failed} of {len(worse)} are worse")


if __name__ == "__main__":
    main()
