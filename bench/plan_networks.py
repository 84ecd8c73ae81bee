#!/usr/bin/env python3
"""Plans a training step of each network and writes tables: peak, bound, gap and seconds.

usage: plan_networks.py [--build build/release] [--output FILE.json] [--deadline 5] [NETWORK...]

Each network is captured on the simulated device with SGD (momentum) and with Adam, at batch 1
and 32, some with Adam unfused too. "best fit" is what an allocator does that frees by reference
counts, in program order; "PyTorch" is a model of its caching allocator, which reserves whole
segments (runtime/planner/baselines/caching_allocator.h), in program order. Then come means over
the networks of OLLA, beside what the paper publishes against PyTorch (ROAM's: roam_report.py;
fragmentation as OLLA's paper defines it: olla_report.py).
With --deadline 30 all plans take 11 minutes.
"""

import statistics

from reports import output_parser, parse, plan_network, run_main, seconds, write_report

NETWORKS = [
    "alexnet", "vgg16", "googlenet", "mnasnet1_0", "mobilenet_v2", "efficientnet_b0", "resnet18",
    "resnet50", "r3d_18", "vit_b_16", "transformer-base", "bert-base", "xlm-roberta-base", "gpt2",
    "gpt2-xl",
]
# Also with Adam as a dozen operators for each parameter, as in ROAM's graphs. For the largest
# network that is a step of ten thousand operators.
UNFUSED = ["alexnet", "vgg16", "mnasnet1_0", "mobilenet_v2", "efficientnet_b0", "vit_b_16",
           "bert-base", "gpt2-xl"]

# The networks that we share with OLLA's paper, and what it says of PyTorch, on average over its
# own networks (per cent; by batch, where it says so).
OLLA = {"networks": ["alexnet", "vgg16", "googlenet", "mnasnet1_0", "mobilenet_v2",
                     "efficientnet_b0", "resnet18", "resnet50", "r3d_18", "vit_b_16",
                     "transformer-base", "xlm-roberta-base"],
        "optimizer": "sgd",
        "published": {"less_than_pytorch": {"both": "33"},
                      "less_by_order": {1: "22.5", 32: "10.1"}}}
FIGURES = {"less_than_pytorch": "less than PyTorch, order and allocator together",
           "less_by_order": "smaller load by order alone",
           "pytorch_fragmentation": "share of what PyTorch reserves that is beyond the load"}


def plan(program, network, batch, optimizer, deadline):
    result = plan_network(program, network, batch, optimizer, deadline)
    methods = {m["name"]: m["peak"] for m in result["methods"]}
    best_fit, pytorch = methods["program order, best fit"], methods["PyTorch"]
    in_order = result["program_order_load"]
    return {
        "network": network, "batch": batch, "optimizer": optimizer,
        "operators": result["operators"], "storages": result["storages"],
        "peak_bytes": result["peak"], "bound_bytes": result["bound"], "gap": result["gap"],
        "fragmentation": (result["peak"] - result["load"]) / result["peak"],
        "program_order_load_bytes": in_order, "less_by_order": 1 - result["load"] / in_order,
        "best_fit_bytes": best_fit, "lescea_best_fit_bytes": methods["LESCEA, best fit"],
        "less_than_best_fit": 1 - result["peak"] / best_fit,
        "pytorch_bytes": pytorch, "pytorch_fragmentation": 1 - in_order / pytorch,
        "less_than_pytorch": 1 - result["peak"] / pytorch,
        "seconds": result["seconds"], "method": result["method"],
    }


def network_rows(program, networks, deadline):
    rows = []
    print(f"{'network':<17}{'batch':>6}{'':>2}{'optimizer':<13}{'ops':>6}{'peak MiB':>11}"
          f"{'gap %':>8}{'frag %':>8}{'vs best fit':>13}{'vs PyTorch':>12}{'seconds':>9}")
    for network in networks:
        for batch in (1, 32):
            for optimizer in ["sgd", "adam"] + ["adam-unfused"] * (network in UNFUSED):
                row = plan(program, network, batch, optimizer, deadline)
                rows.append(row)
                print(f"{network:<17}{batch:>6}  {optimizer:<13}{row['operators']:>6}"
                      f"{row['peak_bytes'] / 2**20:>11.1f}{100 * row['gap']:>8.3f}"
                      f"{100 * row['fragmentation']:>8.3f}"
                      f"{-100 * row['less_than_best_fit']:>12.1f}%"
                      f"{-100 * row['less_than_pytorch']:>11.1f}%{row['seconds']:>9.2f}", flush=True)
    return rows


def beside_olla(rows):
    """Means over OLLA's networks, by batch and of both; if all are there, with what it publishes."""
    own = [r for r in rows
           if r["network"] in OLLA["networks"] and r["optimizer"] == OLLA["optimizer"]]
    if not own:
        return {}
    found = {"networks": len({r["network"] for r in own}), "optimizer": OLLA["optimizer"]}
    complete = found["networks"] == len(OLLA["networks"])
    print(f"\nOLLA: {found['networks']} of the networks that we share with it, {OLLA['optimizer']}"
          + ("" if complete else "; partial, so not set beside its means"))
    for figure, about in FIGURES.items():
        ours = {batch: statistics.mean(r[figure] for r in own if batch in (r["batch"], "both"))
                for batch in (1, 32, "both")}
        published = OLLA["published"].get(figure, {}) if complete else {}
        found[figure] = {"ours": ours, "published_per_cent": published}
        print(f"  {about}: " + ", ".join(
            f"batch {batch} {100 * mean:.1f} %"
            + (f" (published: {published[batch]} %)" if batch in published else "")
            for batch, mean in ours.items()).replace("batch both", "both"))
    return found


def main():
    parser = output_parser(__doc__, "plan_graph")
    parser.add_argument("--deadline", type=seconds, default=5, help="of a plan [5 s]")
    args = parse(parser, NETWORKS)
    rows = network_rows(args.program, args.networks, args.deadline)
    olla = beside_olla(rows)
    if args.output:
        write_report(args.output, deadline_s=args.deadline, rows=rows, olla=olla)


if __name__ == "__main__":
    run_main(main)
