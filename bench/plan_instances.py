#!/usr/bin/env python3
"""Plans the problems in data/instances, and ROAM without each of its ingredients; writes tables.

usage: plan_instances.py [--build build/release] [--output FILE.json] [--deadline 5]
                         [--only layout,order,roam] [NETWORK...]

- layout: each CSV of buffers; the least height is the max load. MiniMalloc's five are summed.
- order: each step of MODel's and each graph written by hand, one operator at a time; in the
  files' own terms, where a parameter may come late and go early, and with parameters resident,
  as OLLA's authors hold them. OLLA's published peak beside the latter runs several operators in
  one timestep.
- roam: ROAM (runtime/planner/roam; its leaves' integer programs, not run here, are in
  runtime/planner/papers) with each ingredient changed, beside the default planner: on
  MODel's steps with parameters resident, and on the networks of plan_networks.py with SGD and
  with Adam. ROAM as published neither makes gradients when their updates run, nor merges small
  leaves, nor uses in-place pairs; the default planner does the last. Beside them the paper's
  heuristic baseline (LESCEA, LLFB), and PyTorch: program order, and a model of its caching
  allocator.

Seconds are the planner's own, of wall clock; for layouts beside the CPU time of the whole
program, which also reads, checks and compares: a busy machine stretches the one, not the other.
All tables take about 40 minutes on a busy machine, nearly all of it for roam.
"""

import gzip
import json
import re
import statistics

from plan_networks import NETWORKS
from reports import (ROOT, cpu_seconds, output_parser, parse, plan_network, run_main,
                     run_plan_graph, seconds, write_report)

INSTANCES = ROOT / "data" / "instances"
ABLATIONS = ["roam-no-segments", "roam-no-tree", "roam-updates-at-once", "roam-updates-last",
             "roam-no-owners", "roam-activations-anywhere", "roam-stacked", "roam-updates-apart",
             "roam-gradients-wait", "roam-merged", "roam-in-place"]
PLAN_ROW = re.compile(
    r"^plan: (.*?) +[\d.]+ \w+ +[\d.]+ \w+ +[\d.]+% +([\d.]+) +(\d+) +(\d+)$", re.MULTILINE)


def gap(peak, bound):
    return (peak - bound) / bound if bound else 0


def layout_rows(program, deadline):
    rows = []
    print(f"{'layout':<36}{'height':>14}{'bound':>14}{'seconds':>9}{'CPU':>8}  method")
    for file in sorted((INSTANCES / "layout").glob("*.csv")):
        before = cpu_seconds()
        _, said = run_plan_graph(program, ["--layout", file, "--deadline", deadline])
        cpu = cpu_seconds() - before
        method, seconds, height, bound = PLAN_ROW.search(said).groups()
        row = {"instance": file.stem, "height_bytes": int(height), "bound_bytes": int(bound),
               "seconds": float(seconds), "process_cpu_seconds": cpu, "method": method}
        rows.append(row)
        print(f"{file.stem:<36}{height:>14}{bound:>14}{float(seconds):>9.3f}{cpu:>8.3f}  {method}",
              flush=True)
    five = [r for r in rows if r["instance"].startswith("minimalloc-")]
    total = {"seconds": sum(r["seconds"] for r in five),
             "process_cpu_seconds": sum(r["process_cpu_seconds"] for r in five)}
    print(f"MiniMalloc's five: {total['seconds']:.3f} s, {total['process_cpu_seconds']:.3f} s of CPU")
    return {"rows": rows, "minimalloc_total": total}


def olla_peak(graph):
    peak = graph.get("olla_cbc_peak")
    return None if peak is None else int(peak) + graph["unused_weight_size"]


def order_files():
    return sorted(f for f in (INSTANCES / "order").glob("*.json*"))


def read_graphs(file):
    text = gzip.open(file, "rt").read() if file.suffix == ".gz" else file.read_text()
    graphs = json.loads(text)
    return graphs if isinstance(graphs, list) else [graphs]


def order_plans(program, file, deadline, *flags):
    written, _ = run_plan_graph(program, ["--order", file, "--deadline", deadline, *flags])
    plans = json.loads(written)
    return plans if isinstance(plans, list) else [plans]


def order_figures(plan):
    return {"operators": plan["operators"], "program_order_bytes": plan["program_order"],
            "peak_bytes": plan["peak"], "bound_bytes": plan["bound"],
            "gap": gap(plan["peak"], plan["bound"]), "seconds": plan["seconds"],
            "method": plan["method"]}


def order_rows(program, deadline):
    rows = []
    print(f"\n{'order':<34}{'ops':>5}{'program':>12}{'peak':>12}{'gap %':>8}{'seconds':>9}"
          f"{'resident':>12}{'gap %':>8}{'seconds':>9}{'OLLA':>12}")
    for file in order_files():
        for graph, plan, resident in zip(read_graphs(file), order_plans(program, file, deadline),
                                         order_plans(program, file, deadline, "--resident")):
            row = {"instance": plan["name"], **order_figures(plan),
                   "resident": order_figures(resident), "olla_bytes": olla_peak(graph),
                   "least_bytes": graph.get("order_only")}
            rows.append(row)
            print(f"{row['instance']:<34}{row['operators']:>5}{row['program_order_bytes']:>12}"
                  f"{row['peak_bytes']:>12}{100 * row['gap']:>8.3f}{row['seconds']:>9.4f}"
                  f"{row['resident']['peak_bytes']:>12}{100 * row['resident']['gap']:>8.3f}"
                  f"{row['resident']['seconds']:>9.4f}{row['olla_bytes'] or '':>12}", flush=True)
    return {"rows": rows}


def roam_row(plan_by, methods):
    """Peak, fragmentation and seconds by each method; gaps are to the default planner's bound."""
    row = {"methods": {}}
    for method in methods:
        plan = plan_by(method)
        if method == "default":
            row["bound_bytes"] = plan["bound"]
        row["methods"][method] = {
            "peak_bytes": plan["peak"], "gap": gap(plan["peak"], row["bound_bytes"]),
            "fragmentation": (plan["peak"] - plan["load"]) / plan["peak"],
            "seconds": plan["seconds"]}
    return row


def print_roam(name, row):
    cells = "".join(f"{100 * m['gap']:>9.2f}" for m in row["methods"].values())
    print(f"{name:<30}{cells}   {row['methods']['roam']['seconds']:.2f} s", flush=True)


def roam_rows(program, deadline, networks):
    methods = ["default", "roam", "lescea-llfb", "pytorch", *ABLATIONS]
    rows = []
    print("\npeak above the bound, per cent: " + ", ".join(methods) + "; seconds of roam")
    for file in order_files():
        if len(read_graphs(file)) != 1:
            continue

        def plan_by(method, file=file):
            written, _ = run_plan_graph(program, ["--order", file, "--resident", "--method",
                                                  method, "--deadline", deadline])
            plan = json.loads(written)
            return {"bound": plan["bound"], "load": plan["peak"], "seconds": plan["seconds"],
                    "peak": plan["peak_with_offsets"]}

        rows.append({"step": file.name.split(".")[0], **roam_row(plan_by, methods)})
        print_roam(rows[-1]["step"], rows[-1])
    for network in networks:
        for batch in (1, 32):
            for optimizer in ("sgd", "adam"):

                def plan_by(method, batch=batch, optimizer=optimizer, network=network):
                    return plan_network(program, network, batch, optimizer, deadline, method=method)

                rows.append({"step": network, "batch": batch, "optimizer": optimizer,
                             **roam_row(plan_by, methods)})
                print_roam(f"{network}, {batch}, {optimizer}", rows[-1])
    # MODel's steps update without an operator for it, so they count for both.
    summaries = {optimizer: summary_of([r for r in rows if r.get("optimizer") in (optimizer, None)],
                                       methods) for optimizer in ("sgd", "adam")}
    return {"rows": rows, "summary": summaries}


def summary_of(rows, methods):
    summary = {}
    for method in methods:
        of = [r["methods"][method] for r in rows]
        summary[method] = s = {
            "steps": len(of), "mean_gap": statistics.mean(m["gap"] for m in of),
            "worst_gap": max(m["gap"] for m in of),
            "mean_fragmentation": statistics.mean(m["fragmentation"] for m in of),
            "worst_fragmentation": max(m["fragmentation"] for m in of),
            "median_seconds": statistics.median(m["seconds"] for m in of),
            "worst_seconds": max(m["seconds"] for m in of)}
        print(f"{method:<28}{s['steps']:>4} steps, gap mean {100 * s['mean_gap']:.2f} %, worst "
              f"{100 * s['worst_gap']:.2f} %; fragmentation mean "
              f"{100 * s['mean_fragmentation']:.2f} %, worst "
              f"{100 * s['worst_fragmentation']:.2f} %; seconds median "
              f"{s['median_seconds']:.3f}, worst {s['worst_seconds']:.3f}")
    return summary


def main():
    parser = output_parser(__doc__, "plan_graph")
    parser.add_argument("--deadline", type=seconds, default=5, help="of a plan [5 s]")
    parser.add_argument("--only", default="layout,order,roam", metavar="TABLE,...")
    args = parse(parser, NETWORKS)
    tables = {"layout": lambda: layout_rows(args.program, args.deadline),
              "order": lambda: order_rows(args.program, args.deadline),
              "roam": lambda: roam_rows(args.program, args.deadline, args.networks)}
    only = args.only.split(",")
    for name in only:
        if name not in tables:
            parser.error(f"--only {name}: not one of {', '.join(tables)}")
    if "roam" not in only and args.networks != NETWORKS:
        parser.error("a NETWORK is for roam alone, which --only leaves out")
    found = {name: tables[name]() for name in only}
    if args.output:
        write_report(args.output, deadline_s=args.deadline, **found)


if __name__ == "__main__":
    run_main(main)
