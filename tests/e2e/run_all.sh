#!/bin/bash
# Runs the end-to-end tests and the examples of an unpacked bundle. Usage: run_all.sh [TARGET…]; default: a GPU where there
# is one, the CPU and all emulated GPUs. Last line: 'N passed, N failed'.
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
targets=("$@")
[ $# -gt 0 ] || targets=(cuda hip cpu cpu:emulate={sm_80,sm_90a,gfx90a,gfx942,gfx950,gfx1100,gfx1201})
passed=0 failed=0
for target in "${targets[@]}"; do
  for program in bin/tessera-e2e bin/0*; do
    arguments=("--target=$target")
    [ "$program" != bin/05_matmul ] || arguments+=(--type=all)
    log=$("$program" "${arguments[@]}" 2>&1)
    code=$?
    if [ $code -eq 77 ]; then
      echo "skip  $(basename "$program") on $target"
    elif [ $code -eq 0 ]; then
      passed=$((passed + 1)); echo "ok    $(basename "$program") on $target"
    else
      failed=$((failed + 1)); echo "FAIL  $(basename "$program") on $target"; echo "$log" | tail -n 60
    fi
  done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
