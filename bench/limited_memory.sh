#!/usr/bin/env bash
# Who can train ResNet-50 in a process that the operating system holds to so much memory? See usage().
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: bench/limited_memory.sh [--kind data|cgroup] [--program train_resnet] [--python PYTHON]
                               [--limit MIB] [--budget MIB] [--batch N] [--image-size N] [--steps N]
                               [--output FILE]

Runs one training after the other under the same limit: PyTorch, PyTorch with checkpointing,
train_resnet without a budget and with one. Kinds of limit:
  data    RLIMIT_DATA, as `ulimit -d`: private writable memory, whether touched or not; allocation
          fails. Stricter than a control group.
  cgroup  a memory control group (version 1 or 2; its folder must be writable, so usually root):
          memory touched, the page cache of the group included; the kernel kills what goes over.
Offloading goes to disk alone, past the page cache. Beside it stands what the system says was
resident at most. Writes JSON with device and commit; PYTHON needs torch and torchvision.
TEXT
}

here=$(cd "$(dirname "$0")" && pwd)
kind=data
program=$here/../build/release/bin/train_resnet
python=python3
limit=1024
budget=640
batch=16
size=224
steps=2
output=
while [[ $# -gt 0 ]]; do
  case "$1" in
    --kind) kind=$2 ;;
    --program) program=$2 ;;
    --python) python=$2 ;;
    --limit) limit=$2 ;;
    --budget) budget=$2 ;;
    --batch) batch=$2 ;;
    --image-size) size=$2 ;;
    --steps) steps=$2 ;;
    --output) output=$2 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "limited_memory.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift 2
done

work=$(mktemp -d)
group=
trap 'rm -rf "$work"; if [[ -n $group ]]; then rmdir "$group"; fi' EXIT
bytes=$((limit * 1024 * 1024))

# Makes a control group that holds its processes to the limit and to no swap on top of it.
make_group() {
  local root=/sys/fs/cgroup file=memory.max swap=memory.swap.max
  if [[ -d $root/memory ]]; then
    root=$root/memory file=memory.limit_in_bytes swap=memory.memsw.limit_in_bytes
  fi
  local made=$root/tidemark-$$
  if ! mkdir "$made" 2> /dev/null; then
    echo "limited_memory.sh: cannot create a control group under $root; try --kind data" >&2
    exit 2
  fi
  group=$made
  if [[ ! -w $group/$file ]]; then
    echo "limited_memory.sh: $root has no memory controller for its groups; try --kind data" >&2
    exit 2
  fi
  echo "$bytes" > "$group/$file"
  # In version 1 this bounds memory and swap together; without swap the file may be missing.
  if [[ $file == memory.max ]]; then echo 0 > "$group/$swap" || true
  elif [[ -w $group/$swap ]]; then echo "$bytes" > "$group/$swap" || true
  fi
}
case "$kind" in
  data) ;;
  cgroup) make_group ;;
  *) echo "limited_memory.sh: --kind must be data or cgroup, not '$kind'" >&2; exit 2 ;;
esac

# Runs a command under the limit.
# shellcheck disable=SC2016
confined() {
  if [[ $kind == data ]]; then
    prlimit --data="$bytes" "$@"
  else
    bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" "$@"
  fi
}

# attempt NAME LIMIT COMMAND...: leaves NAME, exit code, the limit, bytes resident at most and the
# last line of complaint.
attempt() {
  local name=$1 held=$2 code=0
  shift 2
  local command=(python3 "$here/peers/peak_rss.py" "$@")
  if [[ $held != none ]]; then command=(confined "${command[@]}"); fi
  "${command[@]}" > "$work/peak" 2> "$work/errors" || code=$?
  # Torn output of a process that was refused memory is no reason to stop here.
  local peak said=
  peak=$(tail -n 1 "$work/peak")
  if [[ $code -ne 0 ]]; then
    said=$(grep -aiE 'memory|MemoryError|bad_alloc|cannot map' "$work/errors" | tail -n 1 | head -c 300 || true)
    if [[ -z $said && $code -eq 137 ]]; then said='killed by the kernel for its memory'; fi
  fi
  printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$code" "$held" "${peak:-0}" "$said" >> "$work/attempts"
  printf '%-34s exit code %3s   resident at most %6d MiB   %s\n' "$name" "$code" \
    $((${peak:-0} / 1048576)) "${said:0:120}"
}

torch=("$python" "$here/peers/torch_resnet.py" --model resnet50 --batch "$batch" --image-size "$size"
  --steps "$steps")
ours=("$program" --model resnet50 --data synthetic --batch "$batch" --image-size "$size"
  --steps "$steps" --seed 1)

declare -A what=([data]='private memory (RLIMIT_DATA)' [cgroup]='memory in its control group')
echo "ResNet-50, batch $batch, $size x $size; the limit is $limit MiB of ${what[$kind]}"
attempt 'pytorch, no limit' none "${torch[@]}"
attempt 'pytorch' "$bytes" "${torch[@]}"
attempt 'pytorch, checkpointing' "$bytes" "${torch[@]}" --checkpoint
attempt 'tidemark, no limit, no budget' none "${ours[@]}" --policy none --json "$work/free.json"
attempt 'tidemark, no budget' "$bytes" "${ours[@]}" --policy none
attempt "tidemark, budget of $budget MiB" "$bytes" "${ours[@]}" --budget "${budget}MiB" \
  --host-limit 0 --disk-limit 64GiB --json "$work/held.json"

python3 - "$work" "$kind" "$bytes" "$batch" "$size" "$here" "$output" <<'PYTHON'
import datetime, json, os, platform, subprocess, sys

work, kind, limit, batch, size, here, output = sys.argv[1:]
rows = []
for line in open(os.path.join(work, "attempts"), errors="replace"):
    name, code, held, peak, said = line.rstrip("\n").split("\t")
    rows.append({"contender": name, "limit_bytes": None if held == "none" else int(held),
                 "exit_code": int(code), "resident_peak_bytes": int(peak), "error": said or None})


def report(name):
    try:
        with open(os.path.join(work, name)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


free, held = report("free.json"), report("held.json")
kept = ["budget_bytes", "unmanaged_peak_bytes", "minimum_budget_bytes", "peak_reserved_bytes", "host_peak_bytes",
        "disk_peak_bytes", "loader_bytes", "process_peak_bytes", "params_checksum"]
run = {key: held.get(key) for key in kept}
if run["process_peak_bytes"]:
    # Code, libraries, generated kernels, thread stacks, and buffers of copies.
    run["constant_bytes"] = run["process_peak_bytes"] - sum(
        run[key] or 0 for key in ("peak_reserved_bytes", "host_peak_bytes", "loader_bytes"))
same = bool(held.get("params_checksum")) and held.get("params_checksum") == free.get("params_checksum") and [
    s["loss_bits"] for s in held["steps"]] == [s["loss_bits"] for s in free["steps"]]
with open("/proc/cpuinfo") as info:
    cpu = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True,
                        text=True).stdout.strip()
result = {"device": f"{cpu}, {os.cpu_count()} threads", "system": platform.platform(), "commit": commit,
          "date": datetime.date.today().isoformat(), "model": "resnet50", "batch": int(batch),
          "image_size": int(size), "limit_bytes": int(limit), "limit_kind": {"data": "RLIMIT_DATA", "cgroup": "memory control group"}[kind],
          "attempts": rows, "run": run, "same_bits_as_unlimited": same}
if output:
    with open(output, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
constant = run.get("constant_bytes")
if constant is not None:
    print(f"arena {run['peak_reserved_bytes'] / 2**20:.0f} MiB + host {run['host_peak_bytes'] / 2**20:.0f} MiB + "
          f"loading {run['loader_bytes'] / 2**20:.0f} MiB + constant {constant / 2**20:.0f} MiB; "
          f"{'the same bits as' if same else 'NOT the bits of'} the run without a limit")
sys.exit(0 if rows[-1]["exit_code"] == 0 and same else 1)
PYTHON
