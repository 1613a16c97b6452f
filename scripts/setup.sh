#!/bin/bash
# Installs the packages of scripts/packages.txt that are missing (Debian 12). Does nothing, and needs no rights, if all are there.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '2,/^[^#]/s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

missing=()
while read -r package; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done < <(grep -v '^ *\(#\|$\)' "$here/packages.txt")
[ ${#missing[@]} -eq 0 ] && exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run as root, or install: ${missing[*]}" >&2; exit 1; }
  root=(sudo)
fi
echo "setup: installing ${missing[*]}"
apt() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt update && apt install --no-install-recommends -y "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "setup: apt-get failed. LLVM 22 comes with Debian 12's security updates: the suite bookworm-security, component main, must be among apt's sources." >&2
  exit 1
fi
