#!/usr/bin/env bash
# Builds Tidemark and runs its tests. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/test.sh [--sanitize address|thread] [--long] [--strict] [--no-setup]
                       [-- CTEST_ARGUMENTS]

Installs what is missing, builds everything and runs all tests but the long ones.
  --sanitize address   build the runtime's tests, and only those, with AddressSanitizer and
                       UndefinedBehaviorSanitizer, and run them; with clang 14 if it is there
                       (scripts/setup.sh --dev), as it takes half the time
  --sanitize thread    the same with ThreadSanitizer, for tests that use threads
  --long               run the long tests too
  --strict             as continuous integration does: warnings are errors, headers of tests are
                       precompiled, and CUDA's code is built where there is a toolkit, GPU or not;
                       stays so in this build folder
  --no-setup           install nothing
  -- ...               what follows goes to ctest: -- -R Shape
TEXT
}

preset=release
targets=(all)
select=()
exclude=(--label-exclude '^long$')
setup=yes
strict=no
while [[ $# -gt 0 ]]; do
  case "$1" in
    --sanitize)
      case "${2-}" in
        address) preset=asan label=runtime ;;
        thread) preset=tsan label=threads ;;
        *) echo "test.sh: --sanitize takes 'address' or 'thread'" >&2; exit 2 ;;
      esac
      targets=("tests_$label")
      select=(--label-regex "^$label\$")
      shift
      ;;
    --long) exclude=() ;;
    --strict) strict=yes ;;
    --no-setup) setup=no ;;
    --) shift; break ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

if [[ $setup == yes ]]; then scripts/setup.sh; fi
configure=()
if [[ $strict == yes ]]; then
  configure+=(-DTIDEMARK_WERROR=ON -DTIDEMARK_PRECOMPILE_TESTS=ON)
fi
# The compiler of a build folder stays what it was.
if [[ $preset != release && ! -e build/$preset/CMakeCache.txt ]] && command -v clang++-14 > /dev/null; then
  configure+=(-DCMAKE_CXX_COMPILER=clang++-14)
fi
# The sanitizers' presets leave CUDA out.
if [[ $strict == yes && $preset == release ]]; then configure+=(-DTIDEMARK_CUDA=TOOLKIT); fi
cmake --preset "$preset" "${configure[@]}"
cmake --build --preset "$preset" --parallel "$(nproc)" --target "${targets[@]}"

# Sanitizers cannot place their shadow memory when the kernel spreads mappings widely.
run=()
if [[ $preset != release ]] && setarch "$(uname -m)" --addr-no-randomize true 2> /dev/null; then
  run=(setarch "$(uname -m)" --addr-no-randomize)
fi
exec "${run[@]}" ctest --preset "$preset" --parallel "$(nproc)" "${select[@]}" "${exclude[@]}" "$@"
