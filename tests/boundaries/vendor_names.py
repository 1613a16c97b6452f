#!/usr/bin/env python3
"""Shared code names no GPU vendor: nor its tools, its chips or its instructions, in code or comments.

Usage: vendor_names.py FOLDER… [--interface PATH]…
What a vendor is called, and what only he has, belongs behind an interface; --interface lists the files (or folders) that are
it. Every other place that names one is printed, and the exit code is 1.
"""
import argparse, pathlib, re, sys

# Parts of words in any case, so that identifiers are found; short ones only where a word or a part of camelCase begins.
PARTS = re.compile(
    r"nvidia|nvptx|nvvm|nvmma|\bnv_|cuda|cubin|ptxas|cutlass|cublas|hopper|ampere|blackwell|\bturing|wgmma|ldmatrix|stmatrix|"
    r"mbarrier|cp\.async|mma\.sync|tcgen|(?<![a-z])tma(?![a-z])|(?<![a-z])ptx|sm_?\d\d|cc\d\d\b|"
    r"amdgpu|amdgcn|rocm|rocdl|hsaco|\bhsa|radeon|instinct|cdna|rdna|mfma|wmma|s_waitcnt|(?<![a-z])amd(?![a-z])|"
    r"(?<![a-z])hip(?![a-z])|gfx\d|ds_(?:read|write|bpermute)|dpp|xf32",
    re.I)
CAMEL = re.compile(r"(?<![A-Z])(?:Amd|Hip|Ptx|Tma|Nv)(?=[A-Z])|(?<=[a-z])(?:Amd|Hip|Ptx|Tma)(?![a-z])")
SOURCES = {".cpp", ".h", ".td", ".inc", ".txt", ".cmake"}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folders", nargs="+", type=pathlib.Path)
    args.add_argument("--interface", action="append", default=[], type=pathlib.Path)
    args = args.parse_args()
    for path in args.folders + args.interface:
        if not path.exists():
            sys.exit(f"{path} is not there")
    found = seen = 0
    for path in sorted(p for folder in args.folders for p in folder.rglob("*") if p.suffix in SOURCES):
        if any(path == known or known in path.parents for known in args.interface):
            continue
        seen += 1
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if name := PARTS.search(line) or CAMEL.search(line):
                print(f"{path}:{number}: '{name.group()}': {line.strip()}")
                found += 1
    if not seen:
        sys.exit("no files were looked at")
    print(f"{seen} files, {found} lines that name a vendor")
    sys.exit(1 if found else 0)


main()
