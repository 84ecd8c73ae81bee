#!/usr/bin/env bash
# Runs the fuzzers in tests/fuzz for a bounded time. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/fuzz.sh SECONDS [FUZZER...] [--build DIR] [--if-available]

Builds the fuzzers with clang in build/fuzz and runs each, or only those named (squad, word_piece,
...), for SECONDS. Their corpus is kept in DIR/corpus for the next run. Stops at the
first failure; the failing input is then DIR/crash-*, and DIR/fuzz/NAME_fuzz FILE repeats it.
  --build DIR      build folder [build/fuzz]
  --if-available   where there is no clang with libFuzzer, say so and do nothing
TEXT
}

build=build/fuzz
if_available=
seconds=
fuzzers=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --build) build=${2-}; shift ;;
    --if-available) if_available=1 ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "fuzz.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    *) if [[ -z $seconds ]]; then seconds=$1; else fuzzers+=("$1"); fi ;;
  esac
  shift
done
if ! [[ $seconds =~ ^[1-9][0-9]*$ && -n $build ]]; then usage >&2; exit 2; fi
if [[ ${#fuzzers[@]} -eq 0 ]]; then
  for source in tests/fuzz/*_fuzz.cc; do fuzzers+=("$(basename "$source" _fuzz.cc)"); done
fi
for fuzzer in "${fuzzers[@]}"; do
  if [[ ! -e tests/fuzz/${fuzzer}_fuzz.cc ]]; then
    echo "fuzz.sh: there is no tests/fuzz/${fuzzer}_fuzz.cc" >&2
    exit 2
  fi
done
compiler=
for name in clang++-14 clang++; do
  if command -v "$name" > /dev/null; then compiler=$name; break; fi
done
missing=
if [[ -z $compiler ]]; then
  missing='there is no clang; scripts/setup.sh --dev installs it'
else
  probe=$(mktemp)
  if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    "$compiler" -fsanitize=fuzzer,address -x c++ - -o "$probe" 2> /dev/null; then
    missing="$compiler has no libFuzzer; its libclang-rt package (scripts/setup.sh --dev) is missing"
  fi
  rm -f "$probe"
fi
if [[ -n $missing && -n $if_available ]]; then
  echo "fuzz.sh: skipped: $missing"
  exit 0
elif [[ -n $missing ]]; then
  echo "fuzz.sh: $missing" >&2
  exit 1
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" -DTIDEMARK_FUZZ=ON \
  -DTIDEMARK_SANITIZE=address,undefined,fuzzer-no-link \
  -DTIDEMARK_BUILD_EXAMPLES=OFF -DTIDEMARK_BUILD_BENCHMARKS=OFF -DTIDEMARK_CUDA=OFF \
  -DTIDEMARK_JOIN_SOURCES=ON
cmake --build "$build" --target fuzzers

for fuzzer in "${fuzzers[@]}"; do
  mkdir -p "$build/corpus/$fuzzer"
  log=$build/$fuzzer.log
  echo "fuzz.sh: $fuzzer for $seconds s"
  if ! "$build/fuzz/${fuzzer}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=512 \
    -max_len=4096 -print_final_stats=1 -artifact_prefix="$build/" \
    "$build/corpus/$fuzzer" "tests/fuzz/corpus/$fuzzer" > "$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "fuzz.sh: $fuzzer failed; all of its output is in $log" >&2
    exit 1
  fi
  grep -E 'number_of_executed_units|peak_rss_mb|^Done' "$log"
done
