#!/usr/bin/env python3
"""Plans a training step of each network and writes tables: peak, bound, gap and seconds.

usage: plan_networks.py [--program build/release/bin/plan_graph] [--output FILE.json]
                        [--only networks,roam] [NETWORK...]

Each network is captured on the simulated device with SGD (momentum) and with Adam, at batch 1
and 32, some with Adam unfused too. "best fit" is what an allocator does that frees by reference
counts, in program order; "PyTorch" is a model of its caching allocator, which reserves whole
segments (runtime/planner/baselines/caching_allocator.h), in program order. Then come means over
the networks of OLLA and of ROAM, beside what the papers publish against PyTorch.

"roam": ROAM's networks at batch 1, 2, 4 and 32 and GPT-2 XL at 1, 2 and 4, as in the paper, with
SGD and with Adam unfused, by ROAM, by its heuristic baseline (LESCEA, LLFB) and by the default
planner, beside the fragmentation that the paper's Table I gives. Networks of text are captured
without clipping, for which updates would wait for all gradients, and which the paper does not have.
ROAM with integer programs for its leaves, on one stream and on several, needs a solver and is run
at batch 1 and 32 with Adam; and once without time, which gives the peak of the programs' starts.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from reports import write_report

NETWORKS = [
    "alexnet", "vgg16", "googlenet", "mnasnet1_0", "mobilenet_v2", "efficientnet_b0", "resnet18",
    "resnet50", "r3d_18", "vit_b_16", "transformer-base", "bert-base", "xlm-roberta-base", "gpt2",
    "gpt2-xl",
]
ROAM = ["alexnet", "vgg16", "mnasnet1_0", "mobilenet_v2", "efficientnet_b0", "vit_b_16",
        "bert-base"]
# Also with Adam as a dozen operators for each parameter, as in ROAM's graphs. For the largest
# network that is a step of ten thousand operators.
UNFUSED = [*ROAM, "gpt2-xl"]
TEXT = ["bert-base", "xlm-roberta-base", "gpt2", "gpt2-xl"]

# Of each paper: the networks that we share with it, and what it says of PyTorch, on average over
# its own networks (per cent; by batch, where it says so).
PAPERS = {
    "OLLA": {"networks": ["alexnet", "vgg16", "googlenet", "mnasnet1_0", "mobilenet_v2",
                          "efficientnet_b0", "resnet18", "resnet50", "r3d_18", "vit_b_16",
                          "transformer-base", "xlm-roberta-base"],
             "optimizer": "sgd",
             "published": {"less_than_pytorch": {"both": "33"},
                           "less_by_order": {1: "22.5", 32: "10.1"},
                           "pytorch_fragmentation": {1: "7.9", 32: "26.1"}}},
    "ROAM": {"networks": ROAM, "optimizer": "adam-unfused",
             "published": {"less_than_pytorch": {"both": "35.7"},
                           "pytorch_fragmentation": {"both": "23.0"}}},
}
# ROAM's Table I: fragmentation in per cent by PyTorch, LLFB, ROAM on one stream and on several,
# and of MODeL on several, for batch 1 and 32.
TABLE_I = {
    "alexnet": {1: (3.34, 17.80, 0.00, 0.00, 0.00), 32: (6.65, 17.80, 0.00, 0.00, 0.00)},
    "vgg16": {1: (5.05, 18.89, 0.00, 0.00, 0.00), 32: (31.40, 0.41, 0.00, 0.00, 0.00)},
    "mnasnet1_0": {1: (79.77, 0.57, 0.00, 0.00, 0.01), 32: (14.68, 0.00, 0.00, 0.00, 0.00)},
    "mobilenet_v2": {1: (59.20, 1.60, 0.00, 0.00, 0.00), 32: (11.39, 0.00, 0.00, 0.00, 1.59)},
    "efficientnet_b0": {1: (52.64, 2.24, 0.00, 0.04, 52.85), 32: (27.85, 0.35, 0.00, 0.08, 36.04)},
    "vit_b_16": {1: (12.63, 5.08, 0.00, 0.00, 13.52), 32: (5.82, 0.00, 0.00, 0.00, 34.67)},
    "bert-base": {1: (6.97, 13.86, 0.00, 0.00, 67.92), 32: (10.54, 13.86, 0.00, 0.00, 69.32)},
}
TABLE_I_COLUMNS = ("pytorch", "llfb", "roam", "roam_multi_stream", "model_multi_stream")
ROAM_METHODS = ["default", "roam", "roam-gradients-wait", "lescea-llfb", "pytorch"]
BY_PROGRAMS = ["roam-ilp", "roam-multi-stream"]

FIGURES = {"less_than_pytorch": "less than PyTorch, order and allocator together",
           "less_by_order": "smaller load by order alone",
           "pytorch_fragmentation": "PyTorch's fragmentation"}


def run_plan_graph(program, arguments):
    """What plan_graph writes to --output, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "plan.json"
        said = subprocess.run([program, *map(str, arguments), "--output", output], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return output.read_text(), said


def plan_network(program, network, batch, optimizer, deadline, method="default", clip=True):
    unclipped = ["--clip", 0] if network in TEXT and not clip else []
    return json.loads(run_plan_graph(program, [
        "--model", network, "--batch", batch, "--optimizer", optimizer, "--method", method,
        "--deadline", deadline, *unclipped])[0])


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


def beside_papers(rows):
    """Means over each paper's networks, by batch and of both, with what it publishes."""
    found = {}
    for paper, of in PAPERS.items():
        own = [r for r in rows
               if r["network"] in of["networks"] and r["optimizer"] == of["optimizer"]]
        if not own:
            continue
        found[paper] = {"networks": len({r["network"] for r in own}),
                        "optimizer": of["optimizer"]}
        print(f"\n{paper}: {found[paper]['networks']} of its networks, {of['optimizer']}")
        for figure, about in FIGURES.items():
            ours = {batch: statistics.mean(r[figure] for r in own if batch in (r["batch"], "both"))
                    for batch in (1, 32, "both")}
            published = of["published"].get(figure, {})
            found[paper][figure] = {"ours": ours, "published_per_cent": published}
            print(f"  {about}: " + ", ".join(
                f"batch {batch} {100 * mean:.1f} %"
                + (f" (published: {published[batch]} %)" if batch in published else "")
                for batch, mean in ours.items()).replace("batch both", "both"))
    return found


def solver_is_there(program):
    """Whether integer programs can be solved; plan_graph says what to install if not."""
    done = subprocess.run([program, "--model", "alexnet", "--method", "roam-ilp", "--deadline", "1"],
                          stdout=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def roam_table(program, networks, deadline, solver_deadline, solver_networks):
    """A row per network, batch and optimizer: by each method its peak, its distance from the
    bound, the same of its load, its fragmentation, and seconds."""
    rows = []
    programs = BY_PROGRAMS if solver_is_there(program) else []
    print("\npeak above the bound / fragmentation, per cent: "
          + ", ".join([*ROAM_METHODS, *programs]))
    for network in networks:
        for batch in (1, 2, 4) if network == "gpt2-xl" else (1, 2, 4, 32):
            for optimizer in ("sgd", "adam-unfused"):
                row = {"network": network, "batch": batch, "optimizer": optimizer, "methods": {}}
                few = (optimizer == "sgd" or batch not in (1, 32)
                       or network not in solver_networks)
                for method in [*ROAM_METHODS, *([] if few else programs)]:
                    plan = plan_network(program, network, batch, optimizer,
                                        solver_deadline if method in programs else deadline, method,
                                        clip=False)
                    if method == "default":
                        row["bound_bytes"], row["operators"] = plan["bound"], plan["operators"]
                    bound = row["bound_bytes"]
                    row["methods"][method] = {
                        "peak_bytes": plan["peak"], "gap": plan["peak"] / bound - 1,
                        "load_gap": plan["load"] / bound - 1,
                        "fragmentation": 1 - plan["load"] / plan["peak"],
                        "seconds": plan["seconds"]}
                    if method in programs:
                        row["methods"][method]["start_peak_bytes"] = plan_network(
                            program, network, batch, optimizer, 0, method, clip=False)["peak"]
                if optimizer != "sgd" and batch in TABLE_I.get(network, {}):
                    row["table_i_fragmentation_per_cent"] = dict(
                        zip(TABLE_I_COLUMNS, TABLE_I[network][batch]))
                rows.append(row)
                cells = "".join(f"{100 * m['gap']:>8.2f}/{100 * m['fragmentation']:<6.2f}"
                                for m in row["methods"].values())
                print(f"{network:<17}{batch:>3}  {optimizer:<13}{cells}", flush=True)
    return roam_report(rows, solver_deadline)


def roam_report(rows, solver_deadline):
    summary = {optimizer: roam_summary([r for r in rows if r["optimizer"] == optimizer])
               for optimizer in ("sgd", "adam-unfused")}
    print("the paper's networks and batches:")
    summary["adam-unfused, as in Table I"] = roam_summary(
        [r for r in rows if "table_i_fragmentation_per_cent" in r])
    return {"solver_deadline_s": solver_deadline, "rows": rows, "summary": summary}


def roam_summary(rows):
    """By method: means and worst over the steps that it planned, and steps on which ROAM's order
    and plan are no worse than the heuristic baseline's."""
    summary = {}
    for method in [*ROAM_METHODS, *BY_PROGRAMS]:
        of = [r for r in rows if method in r["methods"]]
        if not of:
            continue
        mine = [r["methods"][method] for r in of]
        heuristic = [r["methods"]["lescea-llfb"] for r in of]
        summary[method] = s = {
            "steps": len(of), "mean_gap": statistics.mean(m["gap"] for m in mine),
            "worst_gap": max(m["gap"] for m in mine),
            "mean_fragmentation": statistics.mean(m["fragmentation"] for m in mine),
            "worst_fragmentation": max(m["fragmentation"] for m in mine),
            "less_than_pytorch": statistics.mean(
                1 - r["methods"][method]["peak_bytes"] / r["methods"]["pytorch"]["peak_bytes"]
                for r in of),
            "less_than_heuristics": statistics.mean(
                1 - m["peak_bytes"] / h["peak_bytes"] for m, h in zip(mine, heuristic)),
            "order_no_worse_than_lescea": sum(
                m["load_gap"] <= h["load_gap"] for m, h in zip(mine, heuristic)),
            "plan_no_worse_than_heuristics": sum(
                m["peak_bytes"] <= h["peak_bytes"] for m, h in zip(mine, heuristic))}
        print(f"{rows[0]['optimizer']}, {method}: {s['steps']} steps, gap mean "
              f"{100 * s['mean_gap']:.2f} %, worst {100 * s['worst_gap']:.2f} %; fragmentation mean "
              f"{100 * s['mean_fragmentation']:.2f} %, worst "
              f"{100 * s['worst_fragmentation']:.2f} %; below PyTorch "
              f"{100 * s['less_than_pytorch']:.1f} %, below LESCEA+LLFB "
              f"{100 * s['less_than_heuristics']:.1f} % (no worse on "
              f"{s['plan_no_worse_than_heuristics']}, its order on "
              f"{s['order_no_worse_than_lescea']})")
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/plan_graph")
    parser.add_argument("--deadline", type=float, default=5)
    parser.add_argument("--solver-deadline", type=float, default=60)
    parser.add_argument("--solver-networks", default=",".join(ROAM),
                        help="networks of which integer programs plan ROAM's leaves")
    parser.add_argument("--output")
    parser.add_argument("--only", default="networks,roam")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    args = parser.parse_args()

    tables = {}
    for table in args.only.split(","):
        if table == "networks":
            rows = network_rows(args.program, args.networks, args.deadline)
            tables["rows"], tables["papers"] = rows, beside_papers(rows)
        elif table == "roam":
            tables["roam"] = roam_table(args.program,
                                        [n for n in UNFUSED if n in args.networks],
                                        args.deadline, args.solver_deadline,
                                        args.solver_networks.split(","))
        else:
            parser.error(f"--only {table}: not one of networks, roam")
    if args.output:
        write_report(args.output, deadline_s=args.deadline, **tables)


if __name__ == "__main__":
    sys.exit(main())
