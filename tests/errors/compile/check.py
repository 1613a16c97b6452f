#!/usr/bin/env python3
"""Compiles every case of a file by itself and compares what the compiler says with what it should say.

usage: check.py CASES CXX WORKDIR INCLUDE...

The headers, and cases that must compile, give no warning either. A text with " | " is one of several: compilers word their own errors differently. A name that begins with "g++" is a
case for GCC only. The file's first lines say what a case is compiled with: `//header` lines are precompiled once, so that a case takes a
fraction of a second; `//before` lines precede every case and `//after` lines follow it."""
import concurrent.futures, os, re, subprocess, sys

source, cxx, work, includes = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
clang = "clang" in os.path.basename(cxx)
flags = ["-std=c++23"] + (["-fno-color-diagnostics", "-fno-caret-diagnostics"] if clang else
                          ["-fdiagnostics-color=never", "-fno-diagnostics-show-caret"])
flags += ["-I" + i for i in includes]
strict = "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wno-unused -Wno-unused-parameter -Werror".split()
os.makedirs(work, exist_ok=True)

cases = []  # name, text expected, first line, lines
frame = {"header": "", "before": "", "after": ""}
for number, line in enumerate(open(source, encoding="utf-8").read().split("\n"), 1):
    if line.startswith("//@ "):
        name, _, text = line[4:].partition(": ") if not line.startswith("//@ ?: ") else (line[4:].split(": ", 2)[0], "", line.split(": ", 2)[2])
        cases.append((name, text, number + 1, []))
    elif cases:
        cases[-1][3].append(line)
    elif (word := line[2:].split(" ")[0]) in frame and line.startswith("//"):
        frame[word] += line[len(word) + 3:] + "\n"

header = os.path.join(work, "prelude.h")
with open(header, "w") as f:
    f.write(frame["header"])
subprocess.run([cxx, *flags, *strict, "-x", "c++-header", header, "-o", header + (".pch" if clang else ".gch")], check=True)
if clang:
    cases = [c for c in cases if not c[0].startswith("g++")]


def check(index):
    name, text, first, lines = cases[index]
    path = os.path.join(work, f"case{index}.cpp")
    with open(path, "w", encoding="utf-8") as f:
        f.write(frame["before"] + f'#line {first} "cases.cpp"\n' + "\n".join(lines) + "\n" + frame["after"])
    run = subprocess.run([cxx, *flags, *([] if text else strict), "-include", header, "-fsyntax-only", path], capture_output=True, text=True)
    if not text:
        return None if run.returncode == 0 else f"{name}: must compile\n{run.stderr}"
    if run.returncode == 0:
        return f"{name}: must not compile"
    errors = [l for l in run.stderr.split("\n") if "error: " in l]
    if not any(t in e for e in errors for t in text.split(" | ")):
        return f"{name}: expected '{text}'\n{run.stderr}"
    named = {int(n) for n in re.findall(r"cases\.cpp:(\d+)", run.stderr)}
    if not named & set(range(first, first + len(lines))):
        return f"{name}: no line of the case is named\n{run.stderr}"
    return None


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    failures = [r for r in pool.map(check, range(len(cases))) if r]
print("\n\n".join(failures))
print(f"{len(cases) - len(failures)} of {len(cases)} cases as expected")
sys.exit(bool(failures))
