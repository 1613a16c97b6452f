#!/bin/bash
# Builds everything and runs every test that this machine can run. Usage: scripts/test.sh [PRESET] [ctest arguments…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=dev
case "${1:-}" in dev | release | asan) preset=$1; shift ;; esac

scripts/setup.sh
cmake --preset "$preset" --log-level=WARNING >/dev/null
cmake --build "build/$preset"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@" </dev/null 2>&1 | tee "$log" || code=$?
awk '/tests failed out of/ { failed = $4; all = $NF } /\(Skipped\)$/ { skipped++ }
     END { printf "%d passed, %d failed, %d skipped\n", all - failed - skipped, failed, skipped }' "$log"
exit $code
