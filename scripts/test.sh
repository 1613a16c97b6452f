#!/bin/bash
# Builds everything and runs every test that this machine can run. Usage: scripts/test.sh [PRESET] [DEVICE] [ctest arguments…]
#
# With DEVICE, which is cuda, hip, cpu or an emulated GPU such as gfx942, only the tests that run on it: operations and
# examples. So `scripts/test.sh release hip` is the whole check of an AMD card, and its exit code is 77 where there is none.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^[^#]/s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=dev device=
case "${1:-}" in dev | release | asan) preset=$1; shift ;; esac
case "${1:-}" in cuda | hip | cpu | sm_* | gfx*) device=$1; shift; set -- -L "^$device\$" "$@" ;; esac

scripts/setup.sh
cmake --preset "$preset" --log-level=WARNING >/dev/null
cmake --build "build/$preset"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@" </dev/null 2>&1 | tee "$log" || code=$?
awk '/tests failed out of/ { failed = $4; all = $NF } /\(Skipped\)$/ { skipped++ }
     END { printf "%d passed, %d failed, %d skipped\n", all - failed - skipped, failed, skipped }' "$log"
if [ -n "$device" ] && [ $code -eq 0 ] && ! grep -q ' Passed ' "$log"; then
  "build/$preset/bin/tessera-e2e" --target="$device" --test-case=none || true # says what was found instead
  exit 77
fi
exit $code
