#!/usr/bin/env bash
# clang-format on all of our sources: in place, or with --check only saying what it would change.
set -euo pipefail
cd "$(dirname "$0")/.."

arguments=(-i)
if [[ ${1-} == --check ]]; then
  arguments=(--dry-run -Werror)
elif [[ $# -gt 0 ]]; then
  echo "usage: scripts/format.sh [--check]" >&2
  exit 2
fi
# Another version would format a few constructs differently.
find runtime ops models examples tests bench -type f \
  \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 --no-run-if-empty clang-format-14 "${arguments[@]}"
