#!/usr/bin/env bash
# Builds for the GPU of this machine, tests, and measures. See usage() below.
set -uo pipefail
script=$(realpath "$0")
caller=$PWD
cd "$(dirname "$script")/.." || exit

usage() {
  cat <<'TEXT'
usage: scripts/gpu_check.sh RESULTS [--only STEP[,STEP...]] [--again] [--build DIR] [--quick]
                                    [--built] [--stand-in]

On a machine with a GPU, nvcc, CMake, ninja or make, and Python with PyTorch; no network is needed if
third_party/offline.tar.xz is there (scripts/vendor_offline.sh makes it). Each step has a time
limit of its own, writes RESULTS/STEP.json and RESULTS/STEP.log, and is skipped if it succeeded
before with the same sources on the same GPU, so the script can be stopped and started again.
The measurements are collected in RESULTS/summary.json (bench/gpu_report.py).

These steps run. Their limits, meant for a machine with 16 cores, add up to eight minutes:

  build         everything, for this GPU; fails without CUDA             limit 200 s
  smoke         the device, CUDA's operators beside the CPU's, one
                convolution, one step of ResNet-18; if it fails, nothing
                else runs                                                limit  25 s
  tests         the tests labelled cuda; skipped ones count as failed    limit  80 s
  profile       this GPU's device profile, for the simulator             limit  15 s
  bench-resnet  ResNet-50, 224x224, batch 256: unmanaged, PyTorch in
                channels last, 50 and 30 % of the peak with the share of
                copies that is hidden; the simulator beside it, by
                measured costs and by the profile alone                  limit 100 s
  bench-bert    BERT-base, 512 tokens, batch 32, bfloat16: unmanaged,
                in half of the peak, PyTorch                             limit  60 s

These are left out, unless --only names them:

  random        the runtime's random program on the GPU, with a report;
                the tests run it too                                     limit 120 s
  bench-resnet-more  PyTorch with cuDNN's trials, with images copied to
                the GPU, and in NCHW; 100 and 40 % of the peak           limit 300 s
  bench-bert-more    BERT in float32                                     limit 150 s
  bench-ops     the host's time per operator, and how fast the kernels
                of ResNet-50's and BERT's layers are                     limit 240 s
  bench-batch   the largest batch of ResNet-50: ours, PyTorch's plain,
                checkpointed, saving on the host, and compiled with an
                activation memory budget                                 limit 480 s
  sanitize      compute-sanitizer's memcheck on the tests, racecheck and
                initcheck on those of kernels that share memory          limit 420 s

The commit in the results is that of the folder's git repository, or TIDEMARK_COMMIT.

  --only      these steps alone (build and smoke come first in any case unless they are done)
  --again     repeat steps that succeeded before
  --build     build folder [build/gpu]
  --built     use the programs in the build folder as they are: built elsewhere, from these sources
  --quick     a smaller network and fewer steps, to try out the script
  --stand-in  without a GPU: the CPU in its place, and tiny problems, to try out the script and
              what it runs; the figures mean nothing
TEXT
}

usual=(build smoke tests profile bench-resnet bench-bert)
steps=("${usual[@]}" random bench-resnet-more bench-bert-more bench-ops bench-batch sanitize)
results=
only=
again=no
quick=no
built=no
device=cuda
build=build/gpu
inner=
while [[ $# -gt 0 ]]; do
  case "$1" in
    --only) only=${2-}; shift ;;
    --again) again=yes ;;
    --build) build=${2-}; shift ;;
    --quick) quick=yes ;;
    --built) built=yes ;;
    --stand-in) device=cpu ;;
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
    echo "gpu_check.sh: unknown step '$step'; available: ${steps[*]}" >&2
    exit 2
  fi
done
# Relative to where the script was called.
results=$(cd "$caller" && realpath -m "$results")
flags=()
if [[ $quick == yes ]]; then flags+=(--quick); fi
if [[ $built == yes ]]; then flags+=(--built); fi
if [[ $device == cpu ]]; then flags+=(--stand-in); fi

tools=(cmake python3)
generator='Unix Makefiles'
if command -v ninja > /dev/null; then generator=Ninja; else tools+=(make); fi
if [[ $device == cuda ]]; then
  tools+=(nvidia-smi)
  if [[ $built == no ]]; then tools+=(nvcc); fi
fi
for tool in "${tools[@]}"; do
  if [[ $tool == nvcc ]] && ! command -v nvcc > /dev/null; then PATH=$PATH:/usr/local/cuda/bin; fi
  if ! command -v "$tool" > /dev/null; then
    echo "gpu_check.sh: there is no $tool on this machine" >&2
    exit 2
  fi
done
if [[ $device == cpu ]]; then
  gpu='no GPU (stand-in), none, 0, 8.0'
elif ! gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader,nounits -i 0); then
  echo "gpu_check.sh: nvidia-smi finds no GPU" >&2
  exit 2
fi
IFS=, read -r gpu_name gpu_driver gpu_mib gpu_capability <<< "${gpu//, /,}"
architecture=${gpu_capability//./}
mkdir -p "$results" || exit 2
# The sources as they are, committed or not: what a result belongs to.
commit=${TIDEMARK_COMMIT:-$(git rev-parse --short=12 HEAD 2> /dev/null || echo unknown)}
sources=$(find CMakeLists.txt cmake runtime ops models examples bench tests data scripts -type f \
  -not -path 'bench/results/*' -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-12)
stamp="$sources $gpu_name $gpu_driver $build $quick"
nvcc_version=none
if [[ $device == cuda ]] && command -v nvcc > /dev/null; then nvcc_version=$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'); fi

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

# run_limited SECONDS COMMAND...: also ends what the command has started. Within a step it stays in
# the step's process group, so that it ends with the step.
run_limited() {
  local limit=$1
  shift
  timeout ${inner:+--foreground} --kill-after=10 "$limit" "$@"
}

programs=(train_resnet train_bert stress_batch host_overhead ops_bench measure_cuda_profile)

step_build() {
  local toolchain=() cuda=(-DTIDEMARK_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$architecture-real") root folder
  if [[ $device == cpu || $built == yes ]]; then
    if [[ -x $build/bin/host_overhead && -x $build/bin/stress_batch ]]; then
      echo "using the programs in $build/bin as they are"
      return 0
    elif [[ $built == yes ]]; then
      echo "there are no programs in $build/bin" >&2
      return 1
    fi
    cuda=()
  else
    root=$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")
    for folder in "$root"/include/cccl "$root"/targets/*/include/cccl; do
      if [[ -e $folder/thrust/version.h ]]; then
        cuda+=("-DTIDEMARK_THRUST_INCLUDE_DIR=$folder")
        break
      fi
    done
  fi
  if [[ -e third_party/offline.tar.xz && ! -e third_party/offline/offline.cmake ]]; then
    tar -C third_party -xf third_party/offline.tar.xz || return
  fi
  if [[ -e third_party/offline/offline.cmake ]]; then
    toolchain=("-DCMAKE_TOOLCHAIN_FILE=$PWD/third_party/offline/offline.cmake")
  fi
  # Compilers that the sources have not met may warn of more: not the question here.
  cmake -S . -B "$build" -G "$generator" -DCMAKE_BUILD_TYPE=Release "${cuda[@]}" \
    -DTIDEMARK_WERROR=OFF -DTIDEMARK_BUILD_COMPARE=OFF "${toolchain[@]}" || return
  local target targets=()
  # What runs first: if time runs out, that much can be.
  for target in train_resnet tests_cuda "${programs[@]}" runtime_device_cuda_random_test; do
    if has_target "$target"; then targets+=("$target"); fi
  done
  if [[ $device == cuda && " ${targets[*]} " != *" tests_cuda "* ]]; then
    echo "no tests labelled cuda are configured" >&2
    return 1
  fi
  for target in "${targets[@]}"; do
    cmake --build "$build" --parallel "$(nproc)" --target "$target" || return
  done
}
# Not grep -q: it would end before the build tool has, which would then count as failed. ninja says
# "target: phony", make "... target".
has_target() { cmake --build "$build" --target help | grep -E "^(\.\.\. )?$1(:|\$)" > /dev/null; }

# smoke_test NAME FILTER: these tests of a program.
smoke_test() {
  local program
  program=$(find "$build" -name "$1" -type f -perm -u+x | head -n 1)
  [[ -n $program ]] || { echo "$1 was not built" >&2; return 1; }
  echo "--- $1 $2"
  "$program" --gtest_filter="$2" > "$results/smoke.txt" 2>&1
  local code=$?
  if [[ $code -ne 0 ]]; then tail -n 20 "$results/smoke.txt"; fi
  if ! grep -q 'PASSED  \] [1-9]' "$results/smoke.txt" || grep -q SKIPPED "$results/smoke.txt"; then
    echo "nothing ran" >&2
    return 1
  fi
  return "$code"
}

step_smoke() {
  if [[ $device == cuda ]]; then
    smoke_test runtime_device_cuda_gpu_test '*CudaMemoryContract*:*SaysWhatItIs*' &&
      smoke_test cuda_ops_test 'AgreementTest.*' &&
      smoke_test cuda_ops_conv_test '*Conv2d.*Agree*/0' || return
  fi
  "$build/bin/train_resnet" --model resnet18 --data synthetic --image-size 64 --batch 8 --steps 1 \
    --device "$device"
}

step_tests() {
  local tests=(--label-regex '^cuda$' --label-exclude '^long$')
  # Those of the device's own logic, over a driver of the tests' own.
  if [[ $device == cpu ]]; then tests=(--tests-regex '^runtime\.device\.cuda\.random\.'); fi
  ctest --test-dir "$build" "${tests[@]}" --parallel 8 --timeout 70 \
    --output-on-failure --no-tests=error --output-junit "$results/tests.xml" | tee "$results/ctest.txt"
  local code=${PIPESTATUS[0]}
  if grep -q '(Skipped)' "$results/ctest.txt"; then
    echo "tests were skipped although there is a GPU" >&2
    return 1
  fi
  return "$code"
}

gpu_test() {
  local name=runtime_device_cuda_gpu_test
  if [[ $device == cpu ]]; then name=runtime_device_cuda_random_test; fi
  find "$build" -name "$name" -type f -perm -u+x | head -n 1
}

step_random() {
  local test
  test=$(gpu_test)
  [[ -n $test ]] || { echo "the random program's test was not built" >&2; return 1; }
  "$test" --gtest_filter='*Random*' "--gtest_output=json:$results/random_report.json" > "$results/random.txt"
  local code=$?
  tail -n 20 "$results/random.txt"
  if grep -q SKIPPED "$results/random.txt"; then return 1; fi
  return "$code"
}

step_profile() {
  if [[ $device == cpu ]]; then cp data/profiles/host.json "$results/gpu_profile.json"; return; fi
  "$build/bin/measure_cuda_profile" > "$results/gpu_profile.json"
}

step_bench_ops() {
  local fewer=() few=(--benchmark_min_time=0.05) batch=64
  if [[ $device == cpu ]]; then
    fewer=(--benchmark_filter=relu --benchmark_min_time=0.02)
    few=(--benchmark_filter='attention/128/plain|batch_norm/7x7x512' --benchmark_min_time=0.01) batch=1
  fi
  TIDEMARK_BENCH_DEVICE=$device "$build/bin/host_overhead" "${fewer[@]}" --benchmark_format=console \
    --benchmark_out_format=json "--benchmark_out=$results/host_overhead.json" || return
  TIDEMARK_BENCH_DEVICE=$device TIDEMARK_BENCH_BATCH=$batch "$build/bin/ops_bench" "${few[@]}" \
    --benchmark_format=console --benchmark_out_format=json "--benchmark_out=$results/ops.json"
}

# What is trained: ResNet-50 with real images' size, a smaller one, or the smallest; and BERT.
# tide plans twice in the first steps, and costs are learnt, so some more of them are measured.
problem() {
  model=resnet50 batch=256 size=224 bench_steps=30 host_limit=64GiB largest=4096 all=100%
  bert=bert-base tokens=512 sequences=32
  if [[ $quick == yes ]]; then
    model=resnet18 batch=32 bench_steps=4 bert=bert-tiny
  fi
  if [[ $device == cpu ]]; then
    model=resnet18 batch=4 size=32 bench_steps=3 host_limit=1GiB largest=8 all=160MiB
    bert=bert-tiny tokens=32 sequences=8
  fi
}

# ours NAME PROGRAM ARGUMENTS...: one training run; its numbers go to RESULTS/NAME.json.
ours() {
  local name=$1 program=$2
  shift 2
  echo "--- $name: $*"
  run_limited 60 "$build/bin/$program" --steps "$bench_steps" --seed 1 --json "$results/$name.json" \
    "$@" > "$results/$name.txt" 2>&1
  local code=$?
  if [[ $code -ne 0 ]]; then tail -n 5 "$results/$name.txt"; fi
  return "$code"
}
resnet() {
  local name=$1
  shift
  ours "$name" train_resnet --model "$model" --data synthetic --image-size "$size" --batch "$batch" "$@"
}
bert() {
  local name=$1
  shift
  ours "$name" train_bert --model "$bert" --seq-length "$tokens" --batch "$sequences" --device "$device" "$@"
}

# peer NAME SECONDS PROGRAM PACKAGES ARGUMENTS...: PyTorch's part; nothing, which is said, without it.
peer() {
  local name=$1 limit=$2 program=$3 packages=$4
  shift 4
  echo "--- $name: $*"
  if ! python3 -c "import $packages" 2> /dev/null; then
    echo "this Python does not have all of $packages: not compared"
    return 0
  fi
  run_limited "$limit" python3 "bench/peers/$program" --device "$device" "$@" \
    > "$results/$name.txt" 2> "$results/$name.err" && tail -n 1 "$results/$name.txt" > "$results/$name.json"
  local code=$?
  if [[ $code -ne 0 ]]; then tail -n 5 "$results/$name.err"; fi
  return "$code"
}
torch() {
  local name=$1 limit=$2
  shift 2
  peer "$name" "$limit" torch_resnet.py torch,torchvision --model "$model" --image-size "$size" "$@"
}
torch_bert() {
  local name=$1
  shift
  peer "$name" 60 torch_bert.py torch,transformers --model "$bert" --seq-length "$tokens" \
    --batch "$sequences" --steps "$bench_steps" "$@"
}

field() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }

# under_budgets PERCENT...: ResNet in this much of the unmanaged peak, and how copies overlap.
under_budgets() {
  local failed=0 peak share
  peak=$(field "$results/resnet_unmanaged.json" unmanaged_peak_bytes) || return
  for share in "$@"; do
    resnet "resnet_$share" --device "$device" --budget $((peak * share / 100)) --host-limit "$host_limit" \
      --trace "$results/trace_$share.json" || failed=1
    if [[ -e $results/trace_$share.json ]]; then
      python3 bench/copy_overlap.py "$results/trace_$share.json" > "$results/overlap_$share.json" || failed=1
      gzip -f "$results/trace_$share.json"
    fi
  done
  return "$failed"
}

step_bench_resnet() {
  local failed=0 simulated=sim:cuda
  if [[ $device == cpu ]]; then simulated=sim:host; fi
  problem
  rm -f "$results/costs.json"
  resnet resnet_unmanaged --device "$device" --policy none --save-costs "$results/costs.json" || return
  torch torch_plain 40 --batch "$batch" --steps "$bench_steps" || failed=1
  under_budgets 50 30 || failed=1
  # This GPU's kernels, whose workspaces it takes, in the simulator's time: by what operators were
  # found to cost above, and by the profile alone.
  resnet resnet_simulated --device "$simulated" --policy none --costs "$results/costs.json" || failed=1
  resnet resnet_modelled --device "$simulated" --policy none || failed=1
  return "$failed"
}

step_bench_resnet_more() {
  local failed=0 mode more
  problem
  if [[ ! -e $results/resnet_unmanaged.json ]]; then
    resnet resnet_unmanaged --device "$device" --policy none || return
  fi
  for mode in upload benchmark nchw; do
    more=("--$mode")
    if [[ $mode == nchw ]]; then more=(--layout nchw --benchmark); fi
    torch "torch_$mode" 100 --batch "$batch" --steps "$bench_steps" "${more[@]}" || failed=1
    if [[ $device == cpu ]]; then break; fi
  done
  under_budgets 100 40 || failed=1
  return "$failed"
}

# bert_in DTYPE
bert_in() {
  local failed=0 dtype=$1 peak
  problem
  bert "bert_$dtype" --dtype "$dtype" --policy none || return
  torch_bert "torch_bert_$dtype" --dtype "$dtype" || failed=1
  peak=$(field "$results/bert_$dtype.json" unmanaged_peak_bytes)
  bert "bert_${dtype}_50" --dtype "$dtype" --budget $((peak / 2)) --host-limit "$host_limit" || failed=1
  return "$failed"
}
# Most CPUs have no products of bfloat16.
step_bench_bert() { bert_in "$(if [[ $device == cpu ]]; then echo float32; else echo bf16; fi)"; }
step_bench_bert_more() { bert_in float32; }

step_bench_batch() {
  local failed=0 mode limit most
  problem
  # A fiftieth is left free: the budget is taken anew for each trial.
  run_limited 200 "$build/bin/stress_batch" --model "$model" --data synthetic --image-size "$size" \
    --device "$device" --budget "$all" --margin 0.02 --host-limit "$host_limit" --prove 2 \
    --largest "$largest" --json "$results/max_batch.json" > "$results/max_batch.txt" 2>&1 || failed=1
  tail -n 3 "$results/max_batch.txt"
  for mode in plain checkpoint save_on_cpu memory_budget; do
    limit=60 most=$largest
    case $mode in
      # PyTorch rounds what it pins up to powers of two, and the host has an end.
      save_on_cpu) limit=100 most=$((largest < 768 ? largest : 768)) ;;
      # A compiler's time for the first two batches that are tried.
      memory_budget) limit=200 ;;
    esac
    # torch.compile has no use for a CPU without a compiler.
    if [[ $device == cpu && $mode == memory_budget ]]; then continue; fi
    torch "torch_max_$mode" "$limit" --mode "$mode" --max-batch --batch "$batch" --steps 3 --most "$most" || failed=1
  done
  return "$failed"
}

# Tests labelled cuda, one program each, but for those that train: a sanitizer takes too long.
cuda_tests() {
  ctest --test-dir "$build" --label-regex '^cuda$' --label-exclude '^long$' --show-only=json-v1 |
    python3 -c 'import json,sys
for test in json.load(sys.stdin)["tests"]:
    if test.get("command") and ".stress." not in test["name"]: print(test["command"][0])'
}

step_sanitize() {
  local failed=0 sanitizer tool test
  if [[ $device == cpu ]]; then
    echo "nothing to sanitize without a GPU"
    return 0
  fi
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
  if [[ -z $sanitizer ]]; then
    echo "there is no compute-sanitizer on this machine" >&2
    return 1
  fi
  : > "$results/sanitize.txt"
  while read -r test; do
    for tool in memcheck racecheck initcheck; do
      # The other two look at what threads share: it is in these that they do much of it.
      if [[ $tool != memcheck && $test != *_attention_* && $test != *_norm_* && $test != *_reduce_* ]]; then
        continue
      fi
      # What is large or meant to fail says nothing more under a sanitizer.
      if run_limited 60 "$sanitizer" --tool "$tool" --error-exitcode 9 "$test" \
        --gtest_filter='-*Large*:*TooMuchMemory*' > "$results/sanitizer.log" 2>&1 < /dev/null; then
        echo "$tool ok $(basename "$test")"
      else
        echo "$tool FAILED ($?) $(basename "$test")"
        tail -n 20 "$results/sanitizer.log"
      fi
    done
  done < <(cuda_tests) | tee -a "$results/sanitize.txt"
  if grep -q FAILED "$results/sanitize.txt"; then failed=1; fi
  return "$failed"
}

declare -A limits=([build]=200 [smoke]=25 [tests]=80 [profile]=15 [bench-resnet]=100 [bench-bert]=60 [random]=120
                   [bench-resnet-more]=300 [bench-bert-more]=150 [bench-ops]=240 [bench-batch]=480 [sanitize]=420)
declare -A parts=([random]="random_report.json" [profile]="gpu_profile.json" [bench-ops]="host_overhead.json ops.json"
                  [bench-resnet]="resnet_unmanaged.json resnet_50.json resnet_30.json overlap_50.json overlap_30.json resnet_simulated.json resnet_modelled.json torch_plain.json"
                  [bench-resnet-more]="resnet_100.json resnet_40.json overlap_100.json overlap_40.json torch_upload.json torch_benchmark.json torch_nchw.json"
                  [bench-bert]="bert_bf16.json bert_bf16_50.json torch_bert_bf16.json"
                  [bench-bert-more]="bert_float32.json bert_float32_50.json torch_bert_float32.json"
                  [bench-batch]="max_batch.json torch_max_plain.json torch_max_checkpoint.json torch_max_save_on_cpu.json torch_max_memory_budget.json")
if [[ $device == cpu ]]; then parts[bench-bert]=${parts[bench-bert-more]}; fi
declare -A verdicts seconds
stop=no
left_out=()

run_step() {
  local step=$1 start=$SECONDS code verdict files=() file
  for file in ${parts[$step]-}; do rm -f "$results/$file"; done
  echo "=== $step"
  # A shell of its own, so that the limit holds for all that the step starts.
  run_limited "${limits[$step]}" "$BASH" "$script" "$results" --build "$build" \
    "${flags[@]}" --run-step "$step" \
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
  if [[ ( $step == build || $step == smoke ) && $verdict != ok ]]; then stop=yes; fi
}

if [[ -n $inner ]]; then
  case "$inner" in
    build) step_build ;;
    smoke) step_smoke ;;
    tests) step_tests ;;
    random) step_random ;;
    profile) step_profile ;;
    bench-ops) step_bench_ops ;;
    bench-resnet) step_bench_resnet ;;
    bench-resnet-more) step_bench_resnet_more ;;
    bench-bert) step_bench_bert ;;
    bench-bert-more) step_bench_bert_more ;;
    bench-batch) step_bench_batch ;;
    sanitize) step_sanitize ;;
  esac
  exit
fi

for step in "${steps[@]}"; do
  wanted=${only:-${usual[*]}}
  if [[ $step != build && $step != smoke && " ${wanted//,/ } " != *" $step "* ]]; then
    left_out+=("$step")
    continue
  fi
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
  printf '  %-17s %-10s %4d s\n' "$step" "${verdicts[$step]}" "${seconds[$step]}"
  if [[ ${verdicts[$step]} != ok* ]]; then failed=1; fi
done
if [[ ${#left_out[@]} -gt 0 ]]; then echo "left out (--only names steps): ${left_out[*]}"; fi
python3 bench/gpu_report.py "$results" || failed=1
exit "$failed"
