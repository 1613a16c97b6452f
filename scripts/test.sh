#!/bin/bash
# Builds everything and runs every test that this machine can run. Usage: scripts/test.sh [PRESET] [ctest arguments…]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=dev
case "${1:-}" in dev | release | asan) preset=$1; shift ;; esac

scripts/setup.sh
cmake --preset "$preset" --log-level=WARNING
cmake --build "build/$preset"
exec ctest --test-dir "build/$preset" --output-on-failure --parallel "$(nproc)" "$@"
