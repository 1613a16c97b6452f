#!/bin/bash
# From a bare clone to a result: installs what is missing, builds what fused softmax needs and runs it on the best device here.
# Usage: scripts/demo.sh [arguments of the example, such as --target=cpu:emulate=sm_90a]
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^[^#]/s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
# With tests already configured the same build folder serves; their targets are not built here.
cmake --preset dev --log-level=WARNING >/dev/null
cmake --build build/dev --target 02_fused_softmax
build/dev/bin/02_fused_softmax --bench "$@"
cat <<'T'

Where to look next
  examples/02_fused_softmax.cpp                             the program that just ran
  build/dev/bin/02_fused_softmax --dump=ttir,ttgir,llir     what the compiler made of it, stage by stage
  build/dev/bin/02_fused_softmax --target=cpu:emulate=sm_90a   a GPU's decisions, executed and checked on the CPU
  docs/guide.md                                             a tutorial; docs/architecture.md says where things are
  scripts/test.sh                                           all tests
T
