#!/usr/bin/env python3
"""Whether ptxas' code writes registers that a wgmma in flight reads, or touches its sums: on all paths through a kernel's SASS.

    wgmma_registers.py kernel.cubin        needs nvdisasm, in PATH or NVDISASM
    wgmma_registers.py kernel.sass         what `nvdisasm -c` printed

A product is in flight from its instruction until a WARPGROUP.DEPBAR that leaves fewer groups than began behind it; the last
instruction of a group says gsb0. Exits 0 only if nothing was found. docs/codegen.md has the reason.
"""
import os, re, subprocess, sys
from collections import namedtuple

Instruction = namedtuple("Instruction", "guard name operands")
PRODUCT = re.compile(r"[A-Z]GMMA\.64x(\d+)x")
# Without a result in ordinary registers: stores, copies, barriers, branches, those to predicates or uniform registers.
NO_RESULT = re.compile(r"(ST|RED|LDGSTS|LDGDEPBAR|UBLKCP|BAR|DEPBAR|BRA|EXIT|NOP|WARP|BS|CCTL|MEMBAR|FENCE|[A-Z]*SETP|PLOP3|U|R2UR)")


def parse(text):
    """The instructions, and the place of each label among them."""
    code, labels = [], {}
    for line in text.splitlines():
        line = re.sub(r"/\*.*?\*/", "", line).strip()
        if label := re.match(r"(\.L\w+):", line):
            labels[label.group(1)] = len(code)
        elif m := re.match(r"(@!?U?P\w+)?\s*([A-Z][\w.]*)\s*(.*?)\s*;$", line):
            code.append(Instruction(m.group(1) or "", m.group(2), m.group(3)))
    return code, labels


def run_of(register, count):
    m = re.match(r"R(\d+)", register)
    return frozenset(range(int(m.group(1)), int(m.group(1)) + count)) if m else frozenset()


def written(i):
    if NO_RESULT.match(i.name):
        return frozenset()
    wide = 4 if re.search(r"\.128|\.4$", i.name) else 2 if re.search(r"\.64|\.2$|WIDE|^D(ADD|MUL|FMA)|CS2R", i.name) else 1
    results = [o for o in i.operands.split(", ") if o != "PT" and not re.fullmatch(r"!?U?P\d", o)]
    return run_of(results[0], wide) if results else frozenset()


def following(code, labels, at):
    i = code[at]
    if i.name == "EXIT" and not i.guard:
        return []
    target = re.search(r"`?\(?(\.L\w+)\)?", i.operands) if i.name.startswith("BRA") else None
    if not target:
        return [at + 1] if at + 1 < len(code) else []
    certain = not i.guard and not re.match(r"!?U?P", i.operands)
    return [labels[target.group(1)]] + ([] if certain else [at + 1])


def faults(text):
    """(found, products, groups): sentences about what is wrong; instructions that multiply; groups in flight at most."""
    code, labels = parse(text)
    found, most, seen, work = set(), 0, set(), [(0, (), False)] if code else []
    while work:
        state = at, groups, begun = work.pop()  # groups in flight, oldest first: registers of A, of sums; the last is incomplete
        if state in seen:
            continue
        seen.add(state)
        i = code[at]
        a = frozenset().union(*(g[0] for g in groups))
        sums = frozenset().union(*(g[1] for g in groups))
        if product := PRODUCT.match(i.name):
            operands = i.operands.split(", ")
            own_a, own_sums = run_of(operands[1], 4), run_of(operands[0], int(product.group(1)) // 2)
            if own_a & sums or own_sums & a:
                found.add(f"{at}: {i.name} {i.operands}: sums and A of products in flight share registers")
            if begun:
                groups = groups[:-1] + ((groups[-1][0] | own_a, groups[-1][1] | own_sums),)
            else:
                groups += ((own_a, own_sums),)
            begun = "gsb0" not in operands
        elif i.name.startswith("WARPGROUP.DEPBAR"):
            left = int(i.operands.split(", ")[1], 0)
            groups = groups[len(groups) - left:] if len(groups) > left else groups
        else:
            used = frozenset(map(int, re.findall(r"\bR(\d+)", i.operands)))
            if both := written(i) & a:
                found.add(f"{at}: {i.name} {i.operands}: writes R{min(both)}, which a product in flight reads")
            if both := (written(i) | used) & sums:
                found.add(f"{at}: {i.name} {i.operands}: touches R{min(both)}, a sum of a product in flight")
        most = max(most, len(groups))
        work += [(next, groups, begun) for next in following(code, labels, at)]
    return sorted(found), sum(bool(PRODUCT.match(i.name)) for i in code), most


def main(paths):
    bad = not paths
    for path in paths:
        if path.endswith(".sass"):
            text = open(path).read()
        else:
            try:
                text = subprocess.run([os.environ.get("NVDISASM", "nvdisasm"), "-c", path], check=True, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            except OSError as e:
                sys.exit(f"{e}: set NVDISASM to where nvdisasm is")
        found, products, most = faults(text)
        print(f"{path}: {products} products, at most {most} groups in flight, {len(found)} faults", *found, sep="\n  ")
        bad |= bool(found) or not products
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
