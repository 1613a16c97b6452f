#!/usr/bin/env python3
"""Tessera's, Triton's and PyTorch's code for the same cases, timed in turns in one process.

    contest.py --peer=PEER.py [--gpu-bench=bin/gpu_bench] [--only=vector_add,softmax,layer_norm,matmul] [--match=TEXT]
               [--seconds=2] [--rounds=N] [--finalists=2] [--limit=340] [--warm=N] [--json=FILE] [--min-ratio=R]
    contest.py --peer=PEER.py --kernels=DIR …      of kernels that `gpu_bench --export=DIR` wrote before

A GPU that is limited by power runs slower after work than after a pause, so that programs which are timed one after the
other differ by some per cent only because of what each does in between. Here all runs go to one stream of one process, with
the last level cache overwritten before each, as triton.testing.do_bench does: first every configuration of each compiler runs
once, is compared with PyTorch's result and timed shortly; then the fastest --finalists of each and PyTorch take turns: a round is
one run of each, in an order drawn anew for every round, so that no kernel always follows the same other one and all see the
same clock. Rounds fill --seconds, or are --rounds. A time is the mean of the middle half of a kernel's runs: short kernels take
one of two times 0.6 us apart, between which a median tosses while this mean moves smoothly. Of each compiler its best; ratio =
its time / Tessera's, above 1 Tessera is faster. The number behind +- is twice the standard error of the ratio, from the
ratios in ten parts of the rounds.

Both compilers are given the same configurations, those of gpu_bench. PEER.py is a module with Triton's kernels add_kernel,
softmax_kernel, ln_kernel and mm_kernel. --warm compiles those beforehand in N processes. What --limit (seconds, all
included) leaves no time for is said and skipped. Exit code 1: a result of Tessera's was wrong, a case has no kernel of
Tessera's that runs, or a ratio to Triton is below --min-ratio.
"""
import argparse, ctypes, importlib.util, json, os, random, statistics, subprocess, sys, tempfile, time

PARTS = ("vector_add", "softmax", "layer_norm", "matmul")
PIECES = 10  # of the rounds, for the error of a ratio
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


# ---- what gpu_bench wrote ---------------------------------------------------------------------------------------------


def load_index(folder, only=(), match=""):
    """Case name -> its entries, in the order of the file."""
    with open(os.path.join(folder, "index.json")) as file:
        index = json.load(file)
    cases = {}
    for entry in index["kernels"]:
        if match in entry["case"] and (not only or part_of(entry["case"]) in only):
            cases.setdefault(entry["case"], []).append(entry)
    return cases


def part_of(case):
    return case.split()[0]


def sizes_of(case):
    """The case's type and sizes: 'matmul f16 16x4096x781 B^T' -> ('f16', [16, 4096, 781])."""
    words = [w for w in case.split()[1:] if w not in ("fwd", "B^T")]
    return words[0], [int(n) for n in words[1].removeprefix("n=").split("x")]


def settings_text(entry):
    return " ".join(f"{key}={value:g}" for key, value in entry["settings"].items())


# ---- launching machine code -------------------------------------------------------------------------------------------


def pack(arguments, address_of):
    """The kernel's arguments as the driver takes them: an array of pointers to values, and the values, to be kept alive."""
    values = []
    for argument in arguments:
        (kind, value), = argument.items()
        values.append({"buffer": lambda v: ctypes.c_uint64(address_of(v)), "i32": ctypes.c_int32, "f32": ctypes.c_float}[kind](value))
    return (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values)), values


class Driver:
    """The CUDA driver, in the context that is current."""

    def __init__(self, library="libcuda.so.1"):
        self.cu = ctypes.CDLL(library)
        self.cu.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3

    def check(self, result, what):
        if result:
            name = ctypes.c_char_p()
            self.cu.cuGetErrorName(result, ctypes.byref(name))
            raise RuntimeError(f"{what}: {name.value.decode() if name.value else result}")

    def function(self, code, symbol, shared):
        """A kernel of the machine code `code`, allowed `shared` bytes of shared memory."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cu.cuModuleLoadData(ctypes.byref(module), code), "cuModuleLoadData")
        self.check(self.cu.cuModuleGetFunction(ctypes.byref(function), module, symbol.encode()), "cuModuleGetFunction")
        if shared > 48 * 1024:
            self.check(self.cu.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, shared), "cuFuncSetAttribute")
        return function

    def launcher(self, folder, entry, address_of, stream):
        """A function that launches the entry's kernel on `stream`."""
        with open(os.path.join(folder, entry["file"]), "rb") as file:
            code = file.read()
        function = self.function(code, entry["symbol"], entry["shared"])
        pointers, values = pack(entry["arguments"], address_of)
        launch, check, grid, threads, shared = self.cu.cuLaunchKernel, self.check, entry["grid"], entry["threads"], entry["shared"]

        def run():
            result = launch(function, grid, 1, 1, threads, 1, 1, shared, stream, pointers, None)
            if result:
                check(result, "cuLaunchKernel")

        run.keep = values, code
        return run


# ---- what a case computes ---------------------------------------------------------------------------------------------


class Case:
    """Buffers of a case, by the names that Tessera's kernels give them; Triton's call; PyTorch's; what is right."""

    def __init__(self, name, torch, peer, device="cuda"):
        self.name, self.torch, self.peer, self.device = name, torch, peer, device
        self.kind, self.sizes = sizes_of(name)
        torch.manual_seed(0)
        {"vector_add": self.vector_add, "softmax": self.softmax, "layer_norm": self.layer_norm, "matmul": self.matmul}[part_of(name)]()

    def address_of(self, buffer):
        return self.buffers[buffer].data_ptr()

    def poison(self):
        """No output is right by chance, or because another kernel wrote it."""
        for out in self.outputs:
            out.fill_(float("nan") if out.is_floating_point() else -0x55555556)

    def wrong(self):
        """'' if every output is as PyTorch's within the case's tolerance, else how far off."""
        for out, want in zip(self.outputs, self.expected):
            far = (out.double() - want.double()).abs() - self.rtol * want.double().abs()
            worst = far.max().item()
            if not worst <= self.atol:
                return f"off by {worst:.3g} more than allowed"
        return ""

    def vector_add(self):
        torch, (n,) = self.torch, self.sizes
        x, y = torch.randn(n, device=self.device), torch.randn(n, device=self.device)
        out = torch.empty_like(x)
        self.buffers, self.outputs, self.expected, self.rtol, self.atol = dict(x=x, y=y, out=out), [out], [x + y], 0, 0
        self.reference = lambda: torch.add(x, y, out=out)
        self.triton = lambda s: (self.peer.add_kernel, -(-n // s["block"]), (x, y, out, n), dict(BLOCK=s["block"], num_warps=s["warps"]))
        self.bytes = 12 * n

    def softmax(self):
        torch, (m, n) = self.torch, self.sizes
        half = self.kind == "float16"
        x = torch.randn(m, n, device=self.device, dtype=torch.float16 if half else torch.float32)
        out = torch.empty_like(x)
        self.buffers, self.outputs, self.expected = dict(x=x, out=out), [out], [torch.softmax(x.float(), 1)]
        self.rtol, self.atol = (2e-3, 2e-7) if half else (1e-4, 1e-9)
        self.reference = lambda: torch.softmax(x, 1)
        block = 1 << (n - 1).bit_length()
        self.triton = lambda s: (self.peer.softmax_kernel, min(s["grid"], m), (out, x, n, n, m, n), dict(BLOCK=block, STAGES=s["stages"], num_warps=s["warps"]))
        self.bytes = 2 * x.numel() * x.element_size()

    def layer_norm(self):
        torch, (m, n) = self.torch, self.sizes
        x = torch.randn(m, n, device=self.device, dtype=torch.float16)
        w, b = (torch.rand(n, device=self.device, dtype=torch.float16) for _ in range(2))
        y, mean, rstd = torch.empty_like(x), torch.empty(m, device=self.device), torch.empty(m, device=self.device)
        exact = x.float()
        mu, variance = exact.mean(1), exact.var(1, unbiased=False)
        self.buffers = dict(x=x, y=y, w=w, b=b, mean=mean, rstd=rstd)
        self.outputs, self.rtol, self.atol = [y, mean, rstd], 2e-3, 1e-3
        self.expected = [torch.nn.functional.layer_norm(exact, (n,), w.float(), b.float()), mu, (variance + 1e-5).rsqrt()]
        self.reference = lambda: torch.nn.functional.layer_norm(x, (n,), w, b)
        block = 1 << (n - 1).bit_length()
        self.triton = lambda s: (self.peer.ln_kernel, m, (x, y, w, b, mean, rstd, n, n, 1e-5), dict(BLOCK=block, num_warps=s["warps"]))
        self.bytes = 4 * x.numel()

    def matmul(self):
        torch, (m, n, k), kind, device = self.torch, self.sizes, self.kind, self.device
        fp8 = kind == "f8e4m3"
        out_type = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "f8e4m3": torch.float16, "i8": torch.int32}[kind]
        if kind == "i8":
            a, b = (torch.randint(-8, 8, (r, k), device=device, dtype=torch.int8) for r in (m, n))
        else:
            a, b = (torch.randn(r, k, device=device, dtype=out_type) for r in (m, n))
        if fp8:
            a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        bb = b.T if self.name.endswith("B^T") else b.T.contiguous()
        c = torch.empty(m, n, device=device, dtype=out_type)
        torch.backends.cuda.matmul.allow_tf32 = True
        if fp8:
            one = torch.ones((), device=device)
            self.reference = lambda: torch._scaled_mm(a, bb, one, one, out_dtype=torch.float16)
        elif kind == "i8":
            self.reference = lambda: torch._int_mm(a, bb)
        else:
            self.reference = lambda: torch.matmul(a, bb, out=c)
        # Errors of sums of k products of normal numbers grow with its root. fp8: Hopper's sums keep 13 bits behind the first.
        unit = {"f16": 2**-11, "bf16": 2**-8, "tf32": 2**-10, "f8e4m3": 2**-11, "i8": 0}[kind]
        self.rtol, self.atol = 4 * unit, k**0.5 * (8 * unit + (k / 32 * 2**-12 if fp8 else 0))
        self.buffers, self.outputs, self.expected = dict(a=a, b=bb, c=c), [c], [self.reference().clone()]
        acc = self.peer.tl.int32 if kind == "i8" else self.peer.tl.float32
        strides = (*a.stride(), *bb.stride(), *c.stride())
        self.triton = lambda s: (self.peer.mm_kernel, -(-m // s["bm"]) * -(-n // s["bn"]), (a, bb, c, m, n, k, *strides),
                                 dict(BM=s["bm"], BN=s["bn"], BK=s["bk"], GROUP=8, ACC=acc, num_stages=s["stages"], num_warps=s["warps"]))
        self.flops = 2 * m * n * k

    bytes, flops = None, None

    def triton_call(self, settings):
        kernel, grid, arguments, constants = self.triton({key: int(value) for key, value in settings.items()})
        bound = kernel[(grid,)]
        return lambda: bound(*arguments, **constants)

    def rate(self, us):
        return f"{self.flops / us * 1e-6:.1f} TFLOP/s" if self.flops else f"{self.bytes / us * 1e-3:.0f} GB/s"


# ---- the contest ------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self, limit):
        self.start, self.limit = time.monotonic(), limit

    def spent(self):
        return time.monotonic() - self.start

    def over(self, reserve=0.0):
        return self.spent() + reserve > self.limit


def qualify(runs, check, quick, count):
    """Of `runs` (name -> function) the `count` fastest that are right: [(microseconds, name)], and what is wrong with the
    others: {name: reason}."""
    times, failed = [], {}
    for name, run in runs.items():
        try:
            reason = check(run)
            if reason:
                failed[name] = "WRONG: " + reason
            else:
                times.append((quick(run), name))
        except Exception as error:  # too many registers, too much shared memory, a compiler's error
            failed[name] = " ".join(str(error).split())[:160] or type(error).__name__
    return sorted(times)[:count], failed


class Stopwatch:
    """Microseconds of runs between two events each, the last level cache overwritten before every one."""

    AT_ONCE = 512  # runs queued before they are waited for

    def __init__(self, torch):
        self.cuda, event = torch.cuda, lambda: torch.cuda.Event(enable_timing=True)
        self.cache = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        self.events = [(event(), event()) for _ in range(self.AT_ONCE)]
        self.times([lambda: None] * 8)
        self.flush_us = self.span(lambda: [self.cache.zero_() for _ in range(100)]) / 100

    def span(self, run):
        (start, end), *_ = self.events
        start.record()
        run()
        end.record()
        self.cuda.synchronize()
        return start.elapsed_time(end) * 1e3

    def times(self, runs):
        result = []
        for first in range(0, len(runs), self.AT_ONCE):
            some = runs[first : first + self.AT_ONCE]
            for (start, end), run in zip(self.events, some):
                self.cache.zero_()
                start.record()
                run()
                end.record()
            self.cuda.synchronize()
            result += [start.elapsed_time(end) * 1e3 for (start, end), _ in zip(self.events, some)]
        return result

    def quick(self, run):
        """The median of some 10 ms."""
        first = statistics.median(self.times([run] * 3))
        return statistics.median(self.times([run] * max(5, min(100, int(1e4 / first)))))


def take_turns(runs, rounds, times_of, over=lambda: False, at_once=8, seed=0):
    """name -> its times, one a round, in each of which all run in a random order. `times_of` gives the times of a list of
    runs; it gets `at_once` rounds together, and none once `over()`, but always the first."""
    names, times, order = list(runs), {name: [] for name in runs}, random.Random(seed)
    for done in range(0, rounds, at_once):
        if done and over():
            break
        turn = [name for _ in range(min(at_once, rounds - done)) for name in order.sample(names, len(names))]
        for name, us in zip(turn, times_of([runs[name] for name in turn])):
            times[name].append(us)
    return times


def middle_mean(times):
    """The mean of the middle half."""
    cut = (len(times) + 1) // 4
    return statistics.fmean(sorted(times)[cut : len(times) - cut])


def summary(times):
    in_order = sorted(times)
    at = lambda part: in_order[round(part * (len(times) - 1))]
    return {"mean_us": middle_mean(times), "low_us": at(0.05), "high_us": at(0.95), "rounds": len(times)}


def ratio_error(theirs, ours):
    """Twice the standard error of their time / ours, of times of the same rounds; None of too few."""
    piece = len(ours) // PIECES
    if piece < 3:
        return None
    ratios = [middle_mean(theirs[i * piece : (i + 1) * piece]) / middle_mean(ours[i * piece : (i + 1) * piece]) for i in range(PIECES)]
    return 2 * statistics.stdev(ratios) / PIECES**0.5


def row_of(case, times, settings):
    """A case's row; `times`: (side, configuration) -> microseconds of the rounds. Of each side its fastest configuration."""
    row, best = {"case": case}, {}
    for (side, name), samples in times.items():
        found = dict(summary(samples), settings=settings.get((side, name), ""))
        if side not in row or found["mean_us"] < row[side]["mean_us"]:
            row[side], best[side] = found, samples
    for side in ("triton", "torch"):
        if side in row and "tessera" in row:
            row[side]["ratio"] = row[side]["mean_us"] / row["tessera"]["mean_us"]
            row[side]["ratio_error"] = ratio_error(best[side], best["tessera"])
    return row


def failures_text(failed):
    """One line for each reason, with the configurations it stopped."""
    groups = {}
    for who, reason in failed.items():
        side, _, settings = who.partition(" ")
        groups.setdefault((side, reason), []).append(settings)
    return [f"# {side}: {' and '.join(which) if len(which) < 3 else f'{len(which)} configurations'}: {reason}" for (side, reason), which in groups.items()]


def row_text(row):
    text = f"{row['case']:36}"
    for side in ("tessera", "triton", "torch"):
        if side not in row:
            text += f" | {side} {'-':>24}"
            continue
        t = row[side]
        text += f" | {side} {t['mean_us']:8.2f} ({t['low_us']:.2f} {t['high_us']:.2f})"
        text += f" x{t['ratio']:.3f}" if "ratio" in t else ""
        text += f"+-{t['ratio_error']:.3f}" if t.get("ratio_error") is not None else ""
    return text


def contest(name, entries, case, driver, folder, stream, watch, args, clock):
    """Runs one case and gives its row."""
    sync = case.torch.cuda.synchronize

    def check(run):
        case.poison()
        run()
        sync()
        return case.wrong()

    ours, theirs, settings, failed = {}, {}, {}, {}
    for entry in entries:
        text = settings_text(entry)
        if "error" in entry:
            failed["tessera " + text] = entry["error"]
        else:
            ours[text] = lambda entry=entry: launcher(entry)()
        theirs[text] = case.triton_call(entry["settings"])
    made = {}

    def launcher(entry):  # made at the first call, so that what the driver refuses is a failed configuration
        if entry["file"] not in made:
            made[entry["file"]] = driver.launcher(folder, entry, case.address_of, stream)
        return made[entry["file"]]

    runs = {}
    for side, candidates in (("tessera", ours), ("triton", theirs)):
        best, bad = qualify(candidates, check, watch.quick, args.finalists)
        failed.update({f"{side} {text}": reason for text, reason in bad.items()})
        for _, text in best:
            runs[side, text], settings[side, text] = candidates[text], text
    runs["torch", ""] = case.reference
    round_us = sum(watch.quick(run) + watch.flush_us for run in runs.values())
    rounds = args.rounds or max(PIECES * 3, min(2000, int(args.seconds * 1e6 / round_us)))
    row = row_of(name, take_turns(runs, rounds, watch.times, clock.over), settings)
    row["failed"] = failed
    return row


def import_peer(path):
    spec = importlib.util.spec_from_file_location("contest_peer", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["contest_peer"] = module
    spec.loader.exec_module(module)
    return module


def compile_peer(cases, torch, peer, share, shares):
    """Fills Triton's cache with every `shares`-th kernel; nothing is launched."""
    seen, count = set(), 0
    for name, entries in cases.items():
        case = Case(name, torch, peer, "meta")
        for entry in entries:
            kernel, _, arguments, constants = case.triton({key: int(value) for key, value in entry["settings"].items()})
            key = (name, kernel.fn.__name__, tuple(sorted((k, str(v)) for k, v in constants.items())))
            if key in seen:
                continue
            seen.add(key)
            count += 1
            if count % shares == share:
                try:
                    kernel.warmup(*arguments, grid=(1,), **constants)
                except Exception:  # said when it is its turn
                    pass


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="a Python file with Triton's kernels")
    parser.add_argument("--kernels", help="a folder that gpu_bench --export wrote")
    parser.add_argument("--gpu-bench", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "gpu_bench"), help="writes the kernels where --kernels is not given")
    parser.add_argument("--only", default="", help="some of " + ",".join(PARTS))
    parser.add_argument("--match", default="", help="only cases with this in their name")
    parser.add_argument("--seconds", type=float, default=2, help="of a case's rounds")
    parser.add_argument("--rounds", type=int, help="so many, however long they take")
    parser.add_argument("--finalists", type=int, default=2, help="configurations of each compiler in the rounds")
    parser.add_argument("--limit", type=float, default=340, help="seconds for everything")
    parser.add_argument("--warm", type=int, default=0, help="processes that compile Triton's kernels beforehand")
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)  # of --warm: this process only compiles
    parser.add_argument("--json")
    parser.add_argument("--min-ratio", type=float)
    args = parser.parse_args(argv)
    clock = Clock(args.limit)
    only = [part for part in args.only.split(",") if part]
    for part in only:
        if part not in PARTS:
            parser.error(f"--only={part}: one of {', '.join(PARTS)}")
    sys.stdout.reconfigure(line_buffering=True)

    with tempfile.TemporaryDirectory() as scratch:
        if not args.kernels:
            args.kernels = os.path.join(scratch, "kernels")
            command = [args.gpu_bench, "--target=cuda", f"--export={args.kernels}"]
            command += [f"--only={args.only}"] * bool(only) + [f"--match={args.match}"] * bool(args.match)
            subprocess.run(command, check=True)
            print(f"# Tessera's kernels after {clock.spent():.0f} s")
        cases = load_index(args.kernels, only, args.match)
        if args.warm and args.share is None:
            own = [sys.executable, os.path.abspath(__file__), f"--peer={args.peer}", f"--kernels={args.kernels}", f"--only={args.only}", f"--match={args.match}", f"--warm={args.warm}"]
            helpers = [subprocess.Popen(own + [f"--share={i}"]) for i in range(args.warm)]
            for helper in helpers:
                try:
                    helper.wait(timeout=max(1.0, args.limit - clock.spent()))
                except subprocess.TimeoutExpired:
                    helper.kill()
            print(f"# Triton's kernels after {clock.spent():.0f} s")
        return run(args, cases, clock)


def run(args, cases, clock):
    import torch, triton

    peer = import_peer(args.peer)
    torch.cuda.init()
    torch.cuda.synchronize()
    if args.share is not None:
        compile_peer(cases, torch, peer, args.share, args.warm)
        return 0
    driver, watch, stream = Driver(), Stopwatch(torch), torch.cuda.current_stream().cuda_stream
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}; microseconds: mean of the middle half (5 % 95 %), xRATIO to Tessera +- two standard errors")
    rows, skipped, bad = [], [], []
    for name, entries in cases.items():
        if clock.over(reserve=5):
            skipped.append(name)
            continue
        case = Case(name, torch, peer)
        row = contest(name, entries, case, driver, args.kernels, stream, watch, args, clock)
        rows.append(row)
        print(row_text(row))
        if "tessera" in row:
            print(f"    {case.rate(row['tessera']['mean_us'])}, {row['tessera']['settings']}" + (f"; triton {row['triton']['settings']}" if "triton" in row else ""))
        for line in failures_text(row["failed"]):
            print("    " + line)
        for who, reason in row["failed"].items():
            if who.startswith("tessera") and reason.startswith("WRONG"):
                bad.append(f"{name}: {who} is wrong")
        if "tessera" not in row:
            bad.append(f"{name}: no kernel of Tessera's ran")
        elif args.min_ratio and "triton" in row and row["triton"]["ratio"] < args.min_ratio:
            bad.append(f"{name}: {row['triton']['ratio']:.3f} x triton")
        del case
        torch.cuda.empty_cache()
        if args.json:
            with open(args.json, "w") as file:
                json.dump({"rows": rows, "skipped": skipped}, file, indent=1)
    print(f"# took {clock.spent():.0f} s" + (f"; no time for {', '.join(skipped)}" if skipped else ""))
    for what in bad:
        print("# BAD:", what)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
