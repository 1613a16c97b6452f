#!/bin/bash
# Runs the whole suite on this machine's GPU, measures, and writes one file to send in. Usage: scripts/report.sh hip|cuda [FILE]
# Builds preset release. Exit code 0: all tests passed; 77: no such GPU.
set -uo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^[^#]/s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
vendor=${1:-}
case "$vendor" in hip | cuda) ;; *) echo "report: say whose GPU: hip or cuda" >&2; exit 2 ;; esac
file=${2:-tessera-report-$vendor.txt}
bin=build/release/bin
section() { printf '\n==== %s\n' "$*"; }

{
  section machine
  grep -s PRETTY_NAME /etc/os-release; uname -rm; git log -1 --format='tessera %h of %cs' 2>/dev/null
  if [ "$vendor" = hip ]; then
    cat /opt/rocm/.info/version 2>/dev/null | sed 's/^/ROCm /'
    rocminfo 2>/dev/null | grep -E 'Marketing Name|Name: +gfx|Compute Unit|Wavefront Size' || echo "no rocminfo"
  else
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
  fi
  section tests
  scripts/test.sh release "$vendor"
  code=$? # 77: no such GPU
  if [ $code -eq 77 ]; then
    section result
    echo "exit code 77"
    exit
  fi
  section examples and benchmarks
  for program in "$bin"/0[1-8]_* "$bin"/gpu_bench "$bin"/launch_overhead; do
    arguments=(--target="$vendor" --bench)
    case "$program" in *05_matmul) arguments+=(--type=all --m=4096 --n=4096 --k=4096) ;; esac
    echo "-- $(basename "$program") ${arguments[*]}"
    "$program" "${arguments[@]}" || { echo "exit code $?"; code=1; }
  done
  section result
  echo "exit code $code"
} 2>&1 | tee "$file"

echo "report: written to $file"
exit "$(tail -n 1 "$file" | grep -oE '[0-9]+$' || echo 1)"
