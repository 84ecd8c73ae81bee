#!/usr/bin/env bash
# clang-tidy on the .cc files of the library and the programs, or on those named. It needs a
# configured build/release, for the compile commands (scripts/test.sh makes one).
set -euo pipefail
cd "$(dirname "$0")/.."

database=${TIDEMARK_BUILD_DIR:-build/release}
if [[ ! -e $database/compile_commands.json ]]; then
  echo "tidy.sh: no $database/compile_commands.json; run cmake --preset release" >&2
  exit 2
fi
if [[ $# -gt 0 ]]; then
  printf '%s\0' "$@"
else
  find runtime ops models examples -type f -name '*.cc' -print0
fi | xargs -0 --no-run-if-empty --max-args=1 --max-procs="$(nproc)" \
  clang-tidy-14 --quiet --extra-arg=-Wno-unknown-warning-option -p "$database" 2>&1 | sed '/warnings\? generated\.$/d'
