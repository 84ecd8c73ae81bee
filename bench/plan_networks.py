#!/usr/bin/env python3
"""Plans a training step of each network and writes a table: peak, bound, gap and seconds.

usage: plan_networks.py [--program build/release/bin/plan_graph] [--output FILE.json] [NETWORK...]

Each network is captured on the simulated device with SGD (momentum) and with Adam, at batch 1
and 32, the largest with Adam unfused too. "best fit" is what an allocator does that frees by reference counts, in program order.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from reports import write_report

NETWORKS = [
    "alexnet", "vgg16", "googlenet", "mnasnet1_0", "mobilenet_v2", "efficientnet_b0", "resnet18",
    "resnet50", "r3d_18", "vit_b_16", "transformer-base", "bert-base", "xlm-roberta-base", "gpt2",
    "gpt2-xl",
]
# Also with Adam as a dozen operators for each parameter: a step of ten thousand operators.
UNFUSED = ["gpt2-xl"]


def run_plan_graph(program, arguments):
    """What plan_graph writes to --output, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "plan.json"
        said = subprocess.run([program, *map(str, arguments), "--output", output], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return output.read_text(), said


def plan_network(program, network, batch, optimizer, deadline, method="default"):
    return json.loads(run_plan_graph(program, [
        "--model", network, "--batch", batch, "--optimizer", optimizer, "--method", method,
        "--deadline", deadline])[0])


def plan(program, network, batch, optimizer, deadline):
    result = plan_network(program, network, batch, optimizer, deadline)
    methods = {m["name"]: m["peak"] for m in result["methods"]}
    best_fit = methods["program order, best fit"]
    return {
        "network": network, "batch": batch, "optimizer": optimizer,
        "operators": result["operators"], "storages": result["storages"],
        "peak_bytes": result["peak"], "bound_bytes": result["bound"], "gap": result["gap"],
        "fragmentation": (result["peak"] - result["load"]) / result["peak"],
        "program_order_load_bytes": result["program_order_load"],
        "best_fit_bytes": best_fit, "lescea_best_fit_bytes": methods["LESCEA, best fit"],
        "less_than_best_fit": 1 - result["peak"] / best_fit,
        "seconds": result["seconds"], "method": result["method"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/plan_graph")
    parser.add_argument("--deadline", type=float, default=5)
    parser.add_argument("--output")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    args = parser.parse_args()

    rows = []
    print(f"{'network':<17}{'batch':>6}{'':>2}{'optimizer':<13}{'ops':>6}{'peak MiB':>11}"
          f"{'gap %':>8}{'frag %':>8}{'vs best fit':>13}{'seconds':>9}")
    for network in args.networks:
        for batch in (1, 32):
            for optimizer in ["sgd", "adam"] + ["adam-unfused"] * (network in UNFUSED):
                row = plan(args.program, network, batch, optimizer, args.deadline)
                rows.append(row)
                print(f"{network:<17}{batch:>6}  {optimizer:<13}{row['operators']:>6}"
                      f"{row['peak_bytes'] / 2**20:>11.1f}{100 * row['gap']:>8.3f}"
                      f"{100 * row['fragmentation']:>8.3f}"
                      f"{-100 * row['less_than_best_fit']:>12.1f}%{row['seconds']:>9.2f}", flush=True)
    if args.output:
        write_report(args.output, deadline_s=args.deadline, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
