#!/usr/bin/env python3
"""What the whole process takes under a budget, as the system counts it, beside PyTorch.

For each job one run after the other: no budget, 70, 50, 30 % and the smallest feasible budget (or
--budgets), then PyTorch, plain and with checkpointing. Memory is the most that was resident
(ru_maxrss); a step's time is the median without the first two, and that of the steps by a plan. Every run of ours has to end with the bits of the one
without a budget, or the script fails. PyTorch's own libraries are given apart, as what its process
takes before the model is made.

  bench/process_memory.py --build build/release --python .venv/bin/python \\
      --output bench/results/process_memory.json

PYTHON needs torch, torchvision and transformers; without --python the peers are left out.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from reports import ROOT, cpu_name, run_main, write_report

PEERS = ROOT / "bench" / "peers"
BUDGETS = ["none", "70%", "50%", "30%", "smallest"]
IMAGES = ["--data", "synthetic", "--image-size", "224"]
# name: our program with its flags, the peer with its own (none: there is no like of it)
JOBS = {
    "ResNet-18, digits, batch 64": (
        ["train_resnet", "--batch", "64", "--steps", "20"], None),
    "ResNet-50, 224x224, batch 16": (
        ["train_resnet", "--model", "resnet50", "--batch", "16", *IMAGES],
        ["torch_resnet.py", "--model", "resnet50", "--batch", "16"]),
    "VGG-16, 224x224, batch 8": (
        ["train_resnet", "--model", "vgg16", "--batch", "8", *IMAGES],
        ["torch_resnet.py", "--model", "vgg16", "--batch", "8"]),
    "BERT-base, 128 tokens, batch 8": (
        ["train_bert", "--model", "bert-base", "--batch", "8"],
        ["torch_bert.py", "--model", "bert-base", "--batch", "8", "--seq-length", "128"]),
    "GPT-2, 128 tokens, batch 4": (
        ["train_bert", "--model", "gpt2", "--batch", "4"],
        ["torch_bert.py", "--model", "gpt2", "--batch", "4", "--seq-length", "128"]),
}
WARMUP = 2


def run(command):
    """(exit code, standard output, standard error, most bytes resident)"""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        err.seek(0)
        return os.waitstatus_to_exitcode(status), out.read(), err.read(), usage.ru_maxrss * 1024


def ours(options, job, budget, smallest):
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "run.json"
        flags = ["--policy", "none"] if budget == "none" else ["--budget", smallest if budget == "smallest" else budget]
        steps = [] if "--steps" in job else ["--steps", options.steps]
        code, _, errors, resident = run([options.build / "bin" / job[0], *job[1:], *steps, "--seed", 1, "--threads",
                                         options.threads, *flags, "--json", output])
        if code != 0:
            return {"budget": budget, "exit_code": code, "error": (errors.strip().splitlines() or ["?"])[-1]}
        report = json.loads(output.read_text())
    steps = report["steps"]
    by_plan = [step["ms"] for step in steps if step["mode"] == "static"]
    return {
        "budget": budget, "exit_code": code, "resident_peak_bytes": resident,
        "step_ms": statistics.median(step["ms"] for step in steps[WARMUP:]),
        "planned_steps": len(by_plan), "planned_step_ms": statistics.median(by_plan) if by_plan else None,
        "moved_bytes_per_step": sum(s["offload_bytes"] + s["reload_bytes"] for s in steps[WARMUP:]) / len(steps[WARMUP:]),
        **{key: report.get(key) for key in ("budget_bytes", "minimum_budget_bytes", "unmanaged_peak_bytes",
                                            "peak_reserved_bytes", "host_peak_bytes", "disk_peak_bytes", "loader_bytes",
                                            "params_checksum", "schedule", "plan")},
    }


def theirs(options, job, mode):
    code, output, errors, resident = run([options.python, PEERS / job[0], *job[1:], "--steps", options.steps, "--threads",
                                          options.threads, "--mode", mode])
    if code != 0:
        return {"peer": mode, "exit_code": code, "error": (errors.strip().splitlines() or ["?"])[-1]}
    report = json.loads(output.strip().splitlines()[-1])
    return {"peer": mode, "exit_code": code, "resident_peak_bytes": resident, "what": report["peer"],
            "libraries_bytes": report["rss_before_bytes"], "step_ms": statistics.median(report["step_ms"][WARMUP:])}


def line(name, row):
    what = f"PyTorch, {row['peer']}" if "peer" in row else f"budget {row['budget']}"
    if row["exit_code"] != 0:
        return f"{name:38} {what:20} exit code {row['exit_code']}: {row['error'][:60]}"
    return (f"{name:38} {what:20} process {row['resident_peak_bytes'] / 2**20:7.0f} MiB  "
            f"arena {(row.get('peak_reserved_bytes') or 0) / 2**20:7.0f} MiB  "
            f"disk {(row.get('disk_peak_bytes') or 0) / 2**20:6.0f} MiB  {row['step_ms']:8.0f} ms a step"
            + (f", {row['planned_step_ms']:.0f} by the plan" if row.get("planned_step_ms") else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", help="a Python with torch, torchvision and transformers")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--budgets", nargs="+", default=BUDGETS, help="[%(default)s]; the first one has to be none")
    parser.add_argument("--jobs", help="only jobs whose name contains this")
    parser.add_argument("--output")
    options = parser.parse_args()
    rows, wrong = [], []
    for name, (job, peer) in JOBS.items():
        if options.jobs and options.jobs not in name:
            continue
        reference = None
        for budget in options.budgets:
            row = ours(options, job, budget, reference and reference["minimum_budget_bytes"])
            reference = reference or row
            if row["exit_code"] == 0 and row["params_checksum"] != reference["params_checksum"]:
                wrong.append(f"{name}, budget {budget}: different bits")
            rows.append({"job": name, **row})
            print(line(name, row), flush=True)
        for mode in ["plain", "checkpoint"] if peer and options.python else []:
            if mode == "checkpoint" and "vgg16" in peer:
                continue  # torchvision's has no blocks to checkpoint
            rows.append({"job": name, **theirs(options, peer, mode)})
            print(line(name, rows[-1]), flush=True)
    if options.output:
        write_report(options.output, device=f"{cpu_name()}, {options.threads} threads", rows=rows)
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    run_main(main)
