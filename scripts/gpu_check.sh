#!/usr/bin/env bash
# Builds for the GPU of this machine, tests, and measures. See usage() below.
set -uo pipefail
script=$(realpath "$0")
caller=$PWD
cd "$(dirname "$script")/.." || exit

usage() {
  cat <<'TEXT'
usage: scripts/gpu_check.sh RESULTS [--only STEP[,STEP...]] [--again] [--build DIR] [--quick]

On a machine with a GPU, nvcc, CMake, ninja and Python with PyTorch; no network is needed if
third_party/offline.tar.xz is there (scripts/vendor_offline.sh makes it). Each step has a time
limit of its own, writes RESULTS/STEP.json and RESULTS/STEP.log, and is skipped if it went well
before with the same sources on the same GPU, so the script can be stopped and started again.

  build         everything, for this GPU, with CUDA or not at all        limit 420 s
  tests         the tests labelled cuda; skipped ones count as failed    limit 240 s
  random        the runtime's random program on the GPU                  limit 120 s
  profile       this GPU's device profile, for the simulator             limit  60 s
  bench-ops     operators beside cuDNN's and PyTorch's time, if built    limit 120 s
  bench-resnet  ResNet-50, 224x224: unmanaged, then 50, 40 and 30 % of
                its peak; PyTorch; the simulator with the profile        limit 300 s
  sanitize      compute-sanitizer on the tests: memcheck, racecheck,
                initcheck                                                limit 420 s

  --only   these steps alone (build comes first in any case unless it is done)
  --again  also what went well before
  --build  build folder [build/gpu]
  --quick  a smaller network and fewer steps, to try out the script
TEXT
}

steps=(build tests random profile bench-ops bench-resnet sanitize)
results=
only=
again=no
quick=no
build=build/gpu
inner=
while [[ $# -gt 0 ]]; do
  case "$1" in
    --only) only=${2-}; shift ;;
    --again) again=yes ;;
    --build) build=${2-}; shift ;;
    --quick) quick=yes ;;
    --run-step) inner=${2-}; shift ;;  # by the script itself
    -h | --help) usage; exit 0 ;;
    -*) echo "gpu_check.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    *) results=$1 ;;
  esac
  shift
done
if [[ -z $results || -z $build ]]; then usage >&2; exit 2; fi
for step in ${only//,/ }; do
  if [[ " ${steps[*]} " != *" $step "* ]]; then
    echo "gpu_check.sh: there is no step '$step'; there are ${steps[*]}" >&2
    exit 2
  fi
done
# Relative to where the script was called.
results=$(cd "$caller" && realpath -m "$results")
quick_flag=
if [[ $quick == yes ]]; then quick_flag=--quick; fi

for tool in nvidia-smi nvcc cmake ninja python3; do
  if [[ $tool == nvcc ]] && ! command -v nvcc > /dev/null; then PATH=$PATH:/usr/local/cuda/bin; fi
  if ! command -v "$tool" > /dev/null; then
    echo "gpu_check.sh: there is no $tool on this machine" >&2
    exit 2
  fi
done
if ! gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader,nounits -i 0); then
  echo "gpu_check.sh: nvidia-smi finds no GPU" >&2
  exit 2
fi
IFS=, read -r gpu_name gpu_driver gpu_mib gpu_capability <<< "${gpu//, /,}"
architecture=${gpu_capability//./}
mkdir -p "$results" || exit 2
# The sources as they are, committed or not: what a result belongs to.
commit=$(git rev-parse --short=12 HEAD 2> /dev/null || echo unknown)
sources=$(find CMakeLists.txt cmake runtime ops models examples bench tests data scripts -type f \
  -not -path 'bench/results/*' -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-12)
stamp="$sources $gpu_name $gpu_driver $build $quick"
nvcc_version=$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')

export COMMIT=$commit SOURCES=$sources GPU=$gpu_name DRIVER=$gpu_driver GPU_MIB=$gpu_mib NVCC=$nvcc_version
# write_json FILE STEP VERDICT SECONDS [JSON-FILES...]: each file is a member, named after itself.
write_json() {
  python3 - "$@" << 'PYTHON'
import json, os, pathlib, sys
file, step, verdict, seconds, *parts = sys.argv[1:]
env = os.environ
result = {"step": step, "verdict": verdict, "seconds": int(seconds), "commit": env["COMMIT"],
          "sources": env["SOURCES"], "gpu": env["GPU"], "driver": env["DRIVER"],
          "gpu_mib": env["GPU_MIB"], "nvcc": env["NVCC"]}
for part in parts:
    path = pathlib.Path(part)
    try:
        result[path.stem] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        result[path.stem] = {"error": str(error)}
pathlib.Path(file).write_text(json.dumps(result, indent=1) + "\n")
PYTHON
}

# run_limited SECONDS COMMAND...: also ends what the command has started.
run_limited() {
  local limit=$1
  shift
  timeout --kill-after=10 "$limit" "$@"
}

step_build() {
  local toolchain=()
  if [[ -e third_party/offline.tar.xz && ! -e third_party/offline/offline.cmake ]]; then
    tar -C third_party -xf third_party/offline.tar.xz || return
  fi
  if [[ -e third_party/offline/offline.cmake ]]; then
    toolchain=("-DCMAKE_TOOLCHAIN_FILE=$PWD/third_party/offline/offline.cmake")
  fi
  # Compilers that the sources have not met may warn of more: not the question here.
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTIDEMARK_CUDA=ON \
    "-DCMAKE_CUDA_ARCHITECTURES=$architecture" -DTIDEMARK_WERROR=OFF "${toolchain[@]}" || return
  cmake --build "$build" --parallel "$(nproc)" --target tests_cuda || return
  local target
  for target in measure_cuda_profile train_resnet cuda_ops_bench; do
    if has_target "$target"; then
      cmake --build "$build" --parallel "$(nproc)" --target "$target" || return
    fi
  done
}
# Not grep -q: it would end before ninja has, which would then count as failed.
has_target() { ninja -C "$build" -t targets all | grep "^$1: " > /dev/null; }

step_tests() {
  ctest --test-dir "$build" --label-regex '^cuda$' --label-exclude '^long$' --parallel 4 \
    --output-on-failure --no-tests=error --output-junit "$results/tests.xml" | tee "$results/ctest.txt"
  local code=${PIPESTATUS[0]}
  if grep -q '(Skipped)' "$results/ctest.txt"; then
    echo "tests were skipped although there is a GPU" >&2
    return 1
  fi
  return "$code"
}

gpu_test() { find "$build" -name runtime_device_cuda_gpu_test -type f -perm -u+x | head -n 1; }

step_random() {
  local test
  test=$(gpu_test)
  [[ -n $test ]] || { echo "no gpu_test was built" >&2; return 1; }
  "$test" --gtest_filter='*Random*' "--gtest_output=json:$results/random_report.json" | tee "$results/random.txt" || return
  if grep -q SKIPPED "$results/random.txt"; then return 1; fi
}

step_profile() {
  "$build/bin/measure_cuda_profile" > "$results/gpu_profile.json"
}

step_bench_ops() {
  if [[ ! -x $build/bin/cuda_ops_bench ]]; then
    echo "this version has no cuda_ops_bench"
    return 0
  fi
  "$build/bin/cuda_ops_bench" --benchmark_format=console --benchmark_out_format=json \
    "--benchmark_out=$results/cuda_ops_bench.json"
}

# train NAME ARGUMENTS...: one run of ResNet; its numbers go to RESULTS/NAME.json.
train() {
  local name=$1
  shift
  echo "--- $name: $*"
  "$build/bin/train_resnet" --model "$model" --data synthetic --image-size 224 --batch "$batch" \
    --steps "$bench_steps" --seed 1 --json "$results/$name.json" "$@" > "$results/$name.txt" 2>&1
  local code=$?
  if [[ $code -ne 0 ]]; then tail -n 5 "$results/$name.txt"; fi
  return "$code"
}
field() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }

step_bench_resnet() {
  local failed=0 peak share budget
  model=resnet50 batch=256 bench_steps=15
  if [[ $quick == yes ]]; then model=resnet18 batch=32 bench_steps=4; fi
  train resnet_unmanaged --device cuda --policy none || return
  peak=$(field "$results/resnet_unmanaged.json" unmanaged_peak_bytes)
  if [[ $peak == None ]]; then peak=$(field "$results/resnet_unmanaged.json" peak_reserved_bytes); fi
  for share in 100 50 40 30; do
    budget=$((peak * share / 100))
    train "resnet_$share" --device cuda --budget "$budget" --host-limit 64GiB || failed=1
  done
  if python3 bench/peers/torch_resnet.py --help 2> /dev/null | grep -- --device > /dev/null; then
    python3 bench/peers/torch_resnet.py --device cuda --model "$model" --batch "$batch" \
      --image-size 224 --steps "$bench_steps" > "$results/torch_resnet.txt" 2> "$results/torch_resnet.err" \
      && tail -n 1 "$results/torch_resnet.txt" > "$results/torch_resnet.json" || failed=1
  fi
  if [[ -e $results/gpu_profile.json ]]; then
    train resnet_simulated --device "sim:$results/gpu_profile.json" --policy none || failed=1
  fi
  return "$failed"
}

# Tests labelled cuda, one program each.
cuda_tests() {
  ctest --test-dir "$build" --label-regex '^cuda$' --label-exclude '^long$' --show-only=json-v1 |
    python3 -c 'import json,sys
for test in json.load(sys.stdin)["tests"]:
    if test.get("command"): print(test["command"][0])'
}

step_sanitize() {
  local failed=0 sanitizer tool test
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
  if [[ -z $sanitizer ]]; then
    echo "there is no compute-sanitizer on this machine" >&2
    return 1
  fi
  : > "$results/sanitize.txt"
  for tool in memcheck racecheck initcheck; do
    while read -r test; do
      # What is large or meant to fail says nothing more under a sanitizer.
      if run_limited 60 "$sanitizer" --tool "$tool" --error-exitcode 9 "$test" \
        --gtest_filter='-*Large*:*TooMuchMemory*' > "$results/sanitizer.log" 2>&1; then
        echo "$tool ok $(basename "$test")"
      else
        echo "$tool FAILED ($?) $(basename "$test")"
        tail -n 20 "$results/sanitizer.log"
        failed=1
      fi
    done < <(cuda_tests)
  done | tee -a "$results/sanitize.txt"
  if grep -q FAILED "$results/sanitize.txt"; then failed=1; fi
  return "$failed"
}

declare -A limits=([build]=420 [tests]=240 [random]=120 [profile]=60 [bench-ops]=120
                   [bench-resnet]=300 [sanitize]=420)
declare -A parts=([random]="random_report.json" [profile]="gpu_profile.json" [bench-ops]="cuda_ops_bench.json"
                  [bench-resnet]="resnet_unmanaged.json resnet_100.json resnet_50.json resnet_40.json resnet_30.json resnet_simulated.json torch_resnet.json")
declare -A verdicts seconds
stop=no

run_step() {
  local step=$1 start=$SECONDS code verdict files=() file
  for file in ${parts[$step]-}; do rm -f "$results/$file"; done
  echo "=== $step"
  # A shell of its own, so that the limit holds for all that the step starts.
  run_limited "${limits[$step]}" "$BASH" "$script" "$results" --build "$build" \
    ${quick_flag:+"$quick_flag"} --run-step "$step" \
    > >(tee "$results/$step.log") 2>&1
  code=$?
  case "$code" in
    0) verdict=ok ;;
    124 | 137) verdict=timeout ;;
    *) verdict=FAILED ;;
  esac
  for file in ${parts[$step]-}; do
    if [[ -e $results/$file ]]; then files+=("$results/$file"); fi
  done
  seconds[$step]=$((SECONDS - start))
  verdicts[$step]=$verdict
  write_json "$results/$step.json" "$step" "$verdict" "${seconds[$step]}" "${files[@]}"
  if [[ $verdict == ok ]]; then echo "$stamp" > "$results/.$step.done"; else rm -f "$results/.$step.done"; fi
  if [[ $step == build && $verdict != ok ]]; then stop=yes; fi
}

if [[ -n $inner ]]; then
  case "$inner" in
    build) step_build ;;
    tests) step_tests ;;
    random) step_random ;;
    profile) step_profile ;;
    bench-ops) step_bench_ops ;;
    bench-resnet) step_bench_resnet ;;
    sanitize) step_sanitize ;;
  esac
  exit
fi

for step in "${steps[@]}"; do
  wanted=yes
  if [[ -n $only && $step != build && ,$only, != *,$step,* ]]; then wanted=no; fi
  if [[ $wanted == no ]]; then continue; fi
  if [[ $stop == yes ]]; then
    verdicts[$step]='not run'
    seconds[$step]=0
  elif [[ $again == no && -e $results/.$step.done && $(cat "$results/.$step.done") == "$stamp" ]]; then
    verdicts[$step]='ok before'
    seconds[$step]=0
  else
    run_step "$step"
  fi
done

printf '\n%s, driver %s, nvcc %s, commit %s, sources %s\n' "$gpu_name" "$gpu_driver" "$nvcc_version" "$commit" "$sources"
failed=0
for step in "${steps[@]}"; do
  if [[ -z ${verdicts[$step]-} ]]; then continue; fi
  printf '  %-13s %-10s %4d s\n' "$step" "${verdicts[$step]}" "${seconds[$step]}"
  if [[ ${verdicts[$step]} != ok* ]]; then failed=1; fi
done
python3 - "$results" << 'PYTHON'
import json, pathlib, statistics, sys
results = pathlib.Path(sys.argv[1])
rows = []
for name in ["resnet_unmanaged", "resnet_100", "resnet_50", "resnet_40", "resnet_30", "resnet_simulated"]:
    try:
        run = json.loads((results / f"{name}.json").read_text())
    except (OSError, ValueError):
        continue
    # The first steps warm up: kernels are loaded, memory is pinned.
    times = [step["ms"] for step in run["steps"]][len(run["steps"]) // 3:]
    if times:
        rows.append((name, statistics.median(times), run["peak_reserved_bytes"], run["params_checksum"]))
for name, ms, peak, checksum in rows:
    print(f"  {name:18} {ms:9.1f} ms/step  peak {peak / 2**30:6.2f} GiB  parameters {checksum}")
checksums = {row[3] for row in rows if not row[0].endswith("simulated")}
if len(checksums) > 1:
    print("  DIFFERENT PARAMETERS: managing has changed results")
try:
    peer = json.loads((results / "torch_resnet.json").read_text())
    print("  PyTorch: " + ", ".join(f"{k} {v}" for k, v in peer.items() if isinstance(v, (int, float, str))))
except (OSError, ValueError):
    pass
PYTHON
exit "$failed"
