#!/usr/bin/env python3
"""ResNet on the CPU, side by side with PyTorch: step time and peak memory without management, then
the overhead under smaller and smaller budgets.

Runs are taken in turn (ours, theirs, ours, ...) so that a machine whose speed drifts treats both
alike, and ratios are of medians within one call. Writes JSON with device and commit, prints a table.

  bench/compare_pytorch.py --program build/release/bin/train_resnet --python .venv/bin/python \\
      --output bench/results/cpu_resnet50.json
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from reports import cpu_name, run_main, stamp

HERE = os.path.dirname(os.path.abspath(__file__))


def run_ours(args, batch, extra):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [args.program, "--model", args.model, "--data", "synthetic", "--batch", str(batch),
                   "--image-size", str(args.image_size), "--steps", str(args.steps), "--threads",
                   str(args.threads), "--seed", "1", "--json", report.name] + extra
        # The operating system's own account of the process.
        timed = subprocess.run(["/usr/bin/env", "python3", os.path.join(HERE, "peers", "peak_rss.py")] + command,
                               capture_output=True, text=True)
        if timed.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{timed.stderr}")
        with open(report.name) as file:
            result = json.load(file)
        result["rss_peak_bytes"] = int(timed.stdout.strip().splitlines()[-1])
        return result


def run_torch(args, batch, extra):
    command = [args.python, os.path.join(HERE, "peers", "torch_resnet.py"), "--model", args.model,
               "--batch", str(batch), "--image-size", str(args.image_size), "--steps", str(args.steps),
               "--threads", str(args.threads)] + extra
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def median_ms(runs, warmup):
    times = [ms for run in runs for ms in run[warmup:]]
    return statistics.median(times)


def mib(count):
    return f"{count / 2**20:.0f} MiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/train_resnet")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and torchvision")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batches", default="8,16")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--budgets", default="100%,70%,50%,40%")
    parser.add_argument("--output")
    args = parser.parse_args()
    warmup = 2

    rows = []
    for batch in [int(b) for b in args.batches.split(",")]:
        plain = ["--policy", "none"]
        contenders = {"tidemark": lambda: run_ours(args, batch, plain)}
        for budget in args.budgets.split(","):
            contenders[f"tidemark {budget}"] = (
                lambda budget=budget: run_ours(args, batch, ["--policy", "delta", "--budget", budget]))
        contenders["pytorch nchw"] = lambda: run_torch(args, batch, ["--layout", "nchw"])
        contenders["pytorch channels_last"] = lambda: run_torch(args, batch, ["--layout", "channels_last"])
        contenders["pytorch checkpoint"] = lambda: run_torch(args, batch, ["--checkpoint"])
        results = {name: [] for name in contenders}
        for _ in range(args.rounds):
            for name, run in contenders.items():
                results[name].append(run())
                print(f"batch {batch}: {name} done", file=sys.stderr)
        times = {name: median_ms([[s["ms"] for s in r["steps"]] if "steps" in r else r["step_ms"]
                                  for r in runs], warmup) for name, runs in results.items()}
        for name, runs in results.items():
            last = runs[-1]
            rows.append({
                "batch": batch, "contender": name, "step_ms": times[name],
                "ratio_to_tidemark": times[name] / times["tidemark"],
                "ratio_to_pytorch": times[name] / min(times["pytorch nchw"], times["pytorch channels_last"]),
                "peak_reserved_bytes": last.get("peak_reserved_bytes"),
                "budget_bytes": last.get("budget_bytes"),
                "rss_peak_bytes": last["rss_peak_bytes"],
                "params_checksum": last.get("params_checksum"),
                "samples_ms": [[s["ms"] for s in r["steps"]] if "steps" in r else r["step_ms"] for r in runs],
                "last_step": last["steps"][-1] if "steps" in last else None,
            })
    report = {**stamp(), "device": f"{cpu_name()}, {args.threads} threads", "model": args.model,
              "image_size": args.image_size, "rows": rows}
    if args.output:
        with open(args.output, "w") as file:
            json.dump(report, file, indent=1)
    print(f"{args.model}, {args.image_size}x{args.image_size}, {report['device']}, commit {report['commit']}")
    print(f"{'batch':>5} {'':24} {'ms/step':>9} {'vs ours':>8} {'vs torch':>8} {'arena':>10} {'process':>10}")
    for row in rows:
        arena = mib(row["peak_reserved_bytes"]) if row["peak_reserved_bytes"] else ""
        print(f"{row['batch']:>5} {row['contender']:24} {row['step_ms']:9.0f} {row['ratio_to_tidemark']:8.2f} "
              f"{row['ratio_to_pytorch']:8.2f} {arena:>10} {mib(row['rss_peak_bytes']):>10}")


if __name__ == "__main__":
    run_main(main)
