#!/bin/bash
# Compiles the kernels of examples for a GPU that is not here. Usage: compile_examples.sh TARGET FOLDER EXAMPLE…
target=$1 folder=$2 failed=0
shift 2
for example in "$@"; do
  arguments=()
  [ "$example" != 05_matmul ] || arguments=(--type=all)
  if log=$("$folder/$example" --compile-only "--target=$target" "${arguments[@]}" 2>&1) && [ -n "$log" ]; then
    echo "ok    $example for $target"
  else
    failed=1; echo "FAIL  $example for $target"; echo "$log" | tail -n 20
  fi
done
exit $failed
