#!/usr/bin/env bash
# clang-tidy on the .cc files of the library and the programs that build/release compiles, or on
# those named. It needs that build configured (scripts/test.sh makes one).
set -euo pipefail
cd "$(dirname "$0")/.."

database=${TIDEMARK_BUILD_DIR:-build/release}
if [[ ! -e $database/compile_commands.json ]]; then
  echo "tidy.sh: no $database/compile_commands.json; run cmake --preset release" >&2
  exit 2
fi
files=("$@")
if [[ $# -eq 0 ]]; then
  # Those for a device that is not built here have no compile command.
  mapfile -t files < <(
    sed -nE 's#^ *"file": "'"$PWD"'/((runtime|ops|models|examples)/.*\.cc)",?$#\1#p' \
      "$database/compile_commands.json" | sort -u)
fi
if [[ ${#files[@]} -eq 0 ]]; then
  echo "tidy.sh: $database/compile_commands.json names no file of $PWD" >&2
  exit 2
fi
printf '%s\0' "${files[@]}" | xargs -0 --max-args=1 --max-procs="$(nproc)" \
  clang-tidy-14 --quiet --extra-arg=-Wno-unknown-warning-option -p "$database" 2>&1 | sed '/warnings\? generated\.$/d'
