#!/usr/bin/env python3
"""Runs an example on a fake driver, which executes nothing, and checks what reached the driver.

    run_example.py --driver=hip --kernels=softmax,matmul -- 08_three_levels --target=hip:gfx942

The example must end by finding its results wrong (exit code 1): then all of it ran, and it does look at its results. Of its
launches none may have been refused, and there must be at least one of each kernel named; `NAME*3` asks for three. FAKE_GPU_LOG
is read; see fake_gpu.h.
"""
import argparse, json, os, subprocess, sys, tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--driver", required=True)
parser.add_argument("--kernels", required=True)
parser.add_argument("command", nargs="+")
args = parser.parse_args()

with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log")
    run = subprocess.run(args.command, env={**os.environ, "FAKE_GPU_LOG": log}, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    lines = [json.loads(line) for line in open(log)] if os.path.exists(log) else []

problems = []
if run.returncode != 1:
    problems.append(f"exit code {run.returncode}, not 1: {run.stdout[-2000:]}")
problems += [line["refused"] for line in lines if "refused" in line]
launches = [line for line in lines if "kernel" in line]
problems += [f"a launch on {line['driver']}" for line in launches if line["driver"] != args.driver]
count = {}
for line in launches:
    name = line["kernel"].split("__")[0]  # what was compiled ahead of time has its target in its name
    count[name] = count.get(name, 0) + 1
wanted = {}
for kernel in args.kernels.split(","):
    name, _, times = kernel.partition("*")
    wanted[name] = int(times or 1)
    if count.get(name, 0) < wanted[name]:
        problems.append(f"{count.get(name, 0)} launches of {name}, at least {wanted[name]} are expected")
problems += [f"a launch of {name}, which is not expected" for name in count if name not in wanted]

for line in launches[:40]:
    print(json.dumps(line))
print(f"{len(launches)} launches")
for problem in problems:
    print("PROBLEM:", problem)
sys.exit(1 if problems else 0)
