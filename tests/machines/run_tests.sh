#!/usr/bin/env bash
# Runs test programs one after the other on the machine that the environment describes, and
# shows the output of those that fail. See usage() below.
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: [VARIABLE=VALUE...] tests/machines/run_tests.sh [--cpu MODEL] PROGRAM[:FILTER]...

Runs test programs in turn, or those of their tests that GoogleTest's FILTER names; exit code 1 if
one fails, or has no such test.
  --cpu MODEL   on a processor that qemu emulates, such as Nehalem, which has no AVX, or Haswell,
                which has no AVX-512 (qemu-x86_64 -cpu help); exit code 77 without qemu
For instance, kernels in their versions for AVX2, with 3 threads:
  ONEDNN_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=3 tests/machines/run_tests.sh \
    build/release/tests/ops/*/ops_*_test
TEXT
}

emulator=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --cpu)
      if ! command -v qemu-x86_64 > /dev/null; then
        echo "SKIPPED: qemu-x86_64 is missing (Debian: qemu-user)"
        exit 77
      fi
      emulator=(qemu-x86_64 -cpu "${2?"--cpu takes a model"}")
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "run_tests.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
if [[ $# -eq 0 ]]; then usage >&2; exit 2; fi

failed=0
for argument in "$@"; do
  program=${argument%%:*}
  filter=${argument#"$program"}
  filter=${filter#:}
  name=$(basename "$program")${filter:+ $filter}
  if output=$("${emulator[@]}" "$program" --gtest_filter="${filter:-*}" 2>&1) &&
    [[ $output != *'[==========] Running 0 tests'* ]]; then
    printf 'ok      %s: %s\n' "$name" "$(tail -n 1 <<< "$output")"
  else
    printf 'FAILED  %s: exit code %d\n%s\n' "$name" $? "$output"
    failed=1
  fi
done
exit "$failed"
