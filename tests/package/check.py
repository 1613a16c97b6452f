#!/usr/bin/env python3
"""The installed library, seen by a project that uses it.

Installs the build into a scratch prefix, configures tests/package/consumer against it, and checks that one kernel
compiles in under 3 s of processor time, that its compilation read no header of LLVM or MLIR, that it runs, that the
example in README.md does too, that a program with kernels compiled ahead of time runs without the compiler, that
libtessera.so exports nothing outside namespace tessera, that the installed tools run, and that all of it does after the
prefix was moved, with make, in a debug build, and with clang++ where there is one.
"""
import argparse, os, pathlib, re, resource, shutil, subprocess, sys

LIMIT_S = 3.0


def run(*command, **kwargs):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def works(clang):
    """Whether it is as new as the README asks."""
    source = "#if __clang_major__ < 22\n#error\n#endif\n#include <source_location>\nconstexpr auto here = std::source_location::current();"
    return subprocess.run([clang, "-std=c++23", "-x", "c++", "-fsyntax-only", "-"], input=source, text=True,
                          stderr=subprocess.DEVNULL).returncode == 0


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--cmake", required=True)
    args.add_argument("--cxx", required=True)
    args.add_argument("--build", required=True, type=pathlib.Path, help="the build folder to install from")
    args.add_argument("--flags", default="", help="compiler flags that the library's build needs (sanitizers)")
    args = args.parse_args()
    here, args.build = pathlib.Path(__file__).resolve().parent, args.build.resolve()
    scratch = args.build / "package test"  # users have folders with spaces
    shutil.rmtree(scratch, ignore_errors=True)
    prefix, project = scratch / "prefix", scratch / "consumer"

    run(args.cmake, "--install", args.build, "--prefix", prefix)
    readme = (here.parent.parent / "README.md").read_text()
    (scratch / "readme.cpp").write_text(re.search(r"```cpp\n(.*?)```", readme, re.S)[1])
    run(args.cmake, "-S", here / "consumer", "-B", project, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={args.cxx}", f"-DCMAKE_CXX_FLAGS={args.flags}", "-DCMAKE_BUILD_TYPE=Release")

    object_file = "CMakeFiles/consumer.dir/consumer.cpp.o"
    best = float("inf")
    for _ in range(2):  # the first run warms the file cache
        (project / object_file).unlink(missing_ok=True)
        before = cpu_seconds()
        run("ninja", "-C", project, object_file)
        best = min(best, cpu_seconds() - before)
    print(f"one kernel compiled in {best:.2f} s")
    if best > LIMIT_S and not args.flags:
        sys.exit(f"compiling one kernel took {best:.2f} s, more than {LIMIT_S} s")

    headers = run("ninja", "-C", project, "-t", "deps", object_file)
    foreign = [line.strip() for line in headers.splitlines() if re.search(r"/(llvm|mlir|llvm-c|fmt|nlohmann)[-/]", line)]
    if foreign:
        sys.exit("the public headers reach:\n  " + "\n  ".join(foreign))

    run("ninja", "-C", project)
    environment = dict(os.environ, TESSERA_CACHE_DIR=str(scratch / "cache"))
    print(run(project / "consumer", env=environment), run(project / "readme", env=environment), sep="", end="")

    print(run(project / "shipped", env=environment), end="")
    loaded = run(project / "shipped", env=dict(environment, LD_DEBUG="libs"))
    if re.search(r"LLVM|MLIR|libtessera\.so", loaded):
        sys.exit("a program with kernels compiled ahead of time loads the compiler")

    library = next((prefix / "lib").glob("**/libtessera.so"))
    exported = [line.split(" ", 2)[2] for line in run("nm", "-DC", "--defined-only", library).splitlines()]
    strays = [name for name in exported if "tessera" not in name or re.match(r"(llvm|mlir)::", name)]
    if strays or not exported:
        sys.exit(f"libtessera.so exports {len(strays)} of {len(exported)} symbols that are not its own: {strays[:5]}")
    print(f"libtessera.so exports {len(exported)} symbols, all of namespace tessera")

    # Elsewhere: nothing in the package may remember its prefix.
    moved = scratch / "moved"
    prefix.rename(moved)
    for tool in sorted((moved / "bin").iterdir()):
        run(tool, "--help", env=environment)
    clang = next((c for v in ("-22", "") if (c := shutil.which("clang++" + v)) and works(c)), None)
    for compiler, generator in [(args.cxx, "Unix Makefiles")] + ([(clang, "Ninja")] if clang and not args.flags else []):
        project = scratch / "again"
        shutil.rmtree(project, ignore_errors=True)
        run(args.cmake, "-S", here / "consumer", "-B", project, "-G", generator, f"-DCMAKE_PREFIX_PATH={moved}",
            f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_FLAGS={args.flags} -Wall -Wextra -Werror", "-DCMAKE_BUILD_TYPE=Debug")
        run(args.cmake, "--build", project, "--target", "consumer", "readme")
        print(f"{compiler}, {generator}: ", run(project / "consumer", env=environment), run(project / "readme", env=environment),
              sep="", end="")


main()
