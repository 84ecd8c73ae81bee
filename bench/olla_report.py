#!/usr/bin/env python3
"""OLLA as its paper has it, on the paper's networks: what figures 7 to 14 show, with what the
paper's text says of them, and its programs without each reduction.

usage: olla_report.py [--build build/release] [--folder bench/results] [--deadline 300] [--no-run]
                      [NETWORK...]

Plans each network's step at batch 1 and 32 with olla_figures and writes olla.json as it goes; runs
olla_ablation, if all networks are asked for, which writes olla_ablation.json; and then writes
olla.md from both. With HiGHS this takes an hour and a half. Goes on where it was stopped: what was
measured with a deadline at least as long is kept. To measure anew, remove the JSON files or give
another folder. The solver is HiGHS (scripts/get_highs.sh), or else CBC, which finds less; the
report says which.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from reports import (BadReport, cpu_name, find_solver, load_of, origins, parse, percent,
                     read_report, read_rows, report_parser, run_main, seconds, solver_name, stamp,
                     table, write_report)

# The paper's eleven networks, as plan_graph captures them, and how they differ from those that the
# authors' benchmark trains (facebookresearch/MODel_opt, benchmarks.py). The paper itself does not
# say which size of a network it means.
NETWORKS = {
    "AlexNet": (["alexnet"], ""),
    "EfficientNet": (["efficientnet_b0"], ""),
    "GoogleNet": (["googlenet"], "no auxiliary classifiers"),
    "MNASNet": (["mnasnet1_0"], "width 1.0; theirs 0.5"),
    "MobileNet": (["mobilenet_v2"], ""),
    "ResNet": (["resnet18"], ""),
    "ResNet3D": (["r3d_18"], "clips of 16 frames; theirs of 1"),
    "Transformer": (["transformer-base", "--seq-length", "20"],
                    "6 + 6 layers with embeddings and logits, 20 tokens; theirs 1 + 1 layers "
                    "without either, 10 and 20 tokens"),
    "VGG": (["vgg11"], ""),
    "ViT": (["vit_b_16"], ""),
    "XLM-R": (["xlm-roberta-base", "--seq-length", "256", "--clip", "0"], ""),
}
BATCHES = (1, 32)
STEPS = 1_000_000  # of a training, in figure 14
ABLATION_DEADLINE = 25
SOLVERS = {"HiGHS": 85, "CBC": 75}  # the share of the time that each gets (solver.cc)

# What the paper's text says; its figures themselves give no numbers.
PUBLISHED = {
    "less_by_order": {1: "22.5 %", 32: "10.1 %"},
    "pytorch_fragmentation": {1: "7.9 %", 32: "26.1 %"},
    "olla_fragmentation": {1: "0 %", 32: "0 %"},
    "less_in_all": {1: "30.4 %", 32: "36.1 %"},
    "saved_s": {32: "300 s"},
}
MEANS = {
    "less_by_order": "7: less memory by order alone, serialised by us",
    "less_by_program": "7: the same by program (14)'s own peak",
    "most_by_order_there": "(no order takes off more, on the same steps)",
    "pytorch_fragmentation": "8: PyTorch's fragmentation, when it reserves the most",
    "pytorch_beyond_load": "share of what PyTorch reserves that is beyond the load",
    "olla_fragmentation": "8: OLLA's fragmentation",
    "less_in_all": "13: less memory by order and places",
    "saved_s": f"14: time saved in {STEPS:,} steps",
}


def run(command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def measure(build, network, batch, deadline):
    model, _ = NETWORKS[network]
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "step.json"
        run([build / "bin" / "plan_graph", "--model", *model, "--batch", batch, "--momentum", 0,
             "--estimate", "--save-graph", graph])
        planned = json.loads(run([build / "bin" / "olla_figures", graph, "--deadline", deadline]))
    return {"network": network, "batch": batch, "step": " ".join(model), **planned}


def measure_all(args, path):
    rows = read_rows(path, "processor")
    commit = stamp()["commit"]
    for network in args.networks:
        for batch in BATCHES:
            before = [r for r in rows if (r["network"], r["batch"]) == (network, batch)]
            if any(r["deadline_s"] >= args.deadline for r in before):
                continue
            row = {**measure(args.build, network, batch, args.deadline), "commit": commit,
                   "processor": cpu_name(), "load_average": os.getloadavg()[0]}
            rows = [r for r in rows if r not in before] + [row]
            rows.sort(key=lambda r: (list(NETWORKS).index(r["network"]), r["batch"]))
            write_report(path, rows=rows)
            print(f"{network}, batch {batch}: order {row['order']['status']} in "
                  f"{row['order']['seconds']:.1f} s, places {row['places']['status']} in "
                  f"{row['places']['seconds']:.1f} s", flush=True)


def measure_ablation(args, path):
    deadline = min(args.deadline, ABLATION_DEADLINE)
    if not path.exists() or read_report(path, "deadline_s")["deadline_s"] < deadline:
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "ablation.json"
            run([args.build / "bin" / "olla_ablation", "--deadline", deadline, "--output", output])
            write_report(path, **{**json.loads(output.read_text()), "commit": stamp()["commit"]})


def seconds_until(curve, most):
    """When a program first had a solution of at most so many bytes; None if never."""
    return next((seconds for seconds, peak, _ in curve if peak <= most), None)


def figures(row):
    """What the paper's figures show of a step; None where OLLA found nothing."""
    pytorch, order, places, ours = (row[k] for k in ("pytorch", "order", "places", "ours"))
    allocator = pytorch["allocator"]
    reserved = allocator["reserved"]  # over many steps, as the paper measures; not pytorch's, of one
    solved = order["load"] is not None and places["peak"] is not None
    planning = order["seconds"] + places["seconds"]
    return {
        "less_by_order": 1 - order["load"] / pytorch["load"] if order["load"] else None,
        "less_by_program": 1 - order["program_peak"] / pytorch["load"] if order["load"] else None,
        "most_by_order_there": 1 - ours["bound"] / pytorch["load"] if order["load"] else None,
        "most_by_order": 1 - ours["bound"] / pytorch["load"],  # no order does better
        "pytorch_beyond_load": 1 - pytorch["load"] / reserved,
        "pytorch_fragmentation": 1 - allocator["allocated_at_peak"] / reserved,
        "olla_fragmentation": 1 - places["load"] / places["peak"] if places["peak"] else None,
        "order_seconds": order["seconds"],
        "order_within_1": seconds_until(order["curve"], 1.01 * order["program_bound"]),
        "places_seconds": places["seconds"],
        "places_within_1": seconds_until(places["curve"], places["load"] / 0.99),
        "less_in_all": 1 - places["peak"] / reserved if solved else None,
        "ours_in_all": 1 - ours["peak"] / reserved,
        "saved_s": STEPS * allocator["microseconds_per_step"] / 1e6 - planning if solved else None,
    }


def time(value, status="", cut=""):
    if value is None:
        return "never"
    return f"{value:.1f} s" + {"optimal": "", "feasible": cut, "no answer": cut}.get(status, "")


def step_cells(row):
    found = row["figures"]
    refused = "million terms" in row["places"]["note"]
    return [row["network"], row["operators"], percent(found["less_by_order"]),
            percent(found["less_by_program"]), percent(found["most_by_order"]),
            percent(found["pytorch_fragmentation"]), percent(found["pytorch_beyond_load"]),
            "refused" if refused else percent(found["olla_fragmentation"]),
            time(found["order_within_1"]),
            time(found["order_seconds"], row["order"]["status"], ", cut"),
            "refused" if refused else time(found["places_within_1"]),
            "" if refused else time(found["places_seconds"], row["places"]["status"], ", cut"),
            percent(found["less_in_all"]), percent(found["ours_in_all"]),
            "none" if found["saved_s"] is None else f"{found['saved_s']:.0f} s"]


STEP_HEADER = ["", "operators", "7: less by order", "(by the program's peak)",
               "(no order takes off more)", "8: PyTorch's fragmentation", "(beyond the load)",
               "8: OLLA's", "9: order within 1 %", "order, in all", "11: places within 1 %",
               "places, in all", "13: less in all", "(default planner)",
               f"14: time saved in {STEPS:,} steps"]


def known(rows, figure, batch):
    return [r["figures"][figure] for r in rows
            if r["batch"] == batch and r["figures"][figure] is not None]


def mean_of(rows, figure, batch):
    values = known(rows, figure, batch)
    return statistics.mean(values) if values else None


def mean_cell(rows, figure, batch):
    values, steps = known(rows, figure, batch), sum(r["batch"] == batch for r in rows)
    if not values:
        return "none"
    value = statistics.mean(values)
    of = "" if len(values) == steps else f" (of {len(values)})"
    return (f"{value:.0f} s" if figure == "saved_s" else percent(value)) + of


def name_of(row):
    return f"{row['network']} at batch {row['batch']}"


def listed(rows):
    batches = {}
    for row in rows:
        batches.setdefault(row["network"], []).append(row["batch"])
    return ", ".join(network if len(found) == len(BATCHES) else f"{network} at batch {found[0]}"
                     for network, found in batches.items())


def missing(rows):
    """Networks of which a step is not there: then no mean stands beside the paper's."""
    have = {(r["network"], r["batch"]) for r in rows}
    return [n for n in NETWORKS if any((n, batch) not in have for batch in BATCHES)]


def by_batch(rows, figure):
    found = {batch: mean_of(rows, figure, batch) for batch in BATCHES}
    return " and ".join(f"{percent(value)} at batch {batch}" for batch, value in found.items()
                        if value is not None)


def compared(rows, figure, partial):
    """A sentence on a figure of which the paper gives both means."""
    if partial:
        return by_batch(rows, figure)
    parts = []
    for batch, said in PUBLISHED[figure].items():
        ours, theirs = mean_of(rows, figure, batch), float(said.split()[0]) / 100
        if ours is None:
            continue
        side = "as published" if abs(ours - theirs) < 0.005 else (
            "more than published" if ours > theirs else "less than published")
        parts.append(f"{percent(ours)} at batch {batch}, {side} ({said})")
    return "; ".join(parts)


def texts(rows, partial):
    """What the data says, figure by figure."""
    by_order = [r for r in rows if r["figures"]["less_by_order"] is not None]
    best = max(by_order, key=lambda r: r["figures"]["less_by_order"], default=None)
    unordered = [r for r in rows if r not in by_order]
    worse = [r for r in by_order if r["figures"]["less_by_order"] < 0]
    yield ("**Figure 7.** "
           + (f"Order alone takes off the load {compared(rows, 'less_by_order', partial)}; at most "
              f"{percent(best['figures']['less_by_order'])}, {name_of(best)} (published: up to "
              "38 %). The program counts all operators of a timestep at once; we then run them one "
              "by one, each time the one that frees most. By the program's own peak it is "
              f"{by_batch(rows, 'less_by_program')}. No order can take more off the same steps on "
              f"average than {by_batch(rows, 'most_by_order_there')} (the default planner's bound)."
              if best else "")
           + (f" Worse than PyTorch's order: {listed(worse)}." if worse else "")
           + (f" No order in time: {listed(unordered)}." if unordered else ""))
    placed = [r for r in rows if r["figures"]["olla_fragmentation"] is not None]
    exact = [r for r in placed if r["figures"]["olla_fragmentation"] < 5e-7]
    close = [r for r in placed if 5e-7 <= r["figures"]["olla_fragmentation"] < 0.01]
    rest = [r for r in placed if r["figures"]["olla_fragmentation"] >= 0.01]
    none = [r for r in rows if r not in placed]
    refused = [r for r in none if "million terms" in r["places"]["note"]]
    yield (f"**Figure 8.** PyTorch's fragmentation is {compared(rows, 'pytorch_fragmentation', partial)}. "
           "That is the paper's definition: of what it reserves at most in many steps, the share "
           "that is not allocated when it first reserves that much, which may be long after or "
           "before the load peaks. The share of it that is beyond the load is "
           f"{by_batch(rows, 'pytorch_beyond_load')}. "
           f"OLLA's places lose nothing in {len(exact)} of {len(rows)} steps, less than 1 % in "
           f"{len(close)}"
           + (f", more in {listed(rest)}" if rest else "")
           + (f". Without any places in time: {listed(none)}" if none else "")
           + (f"; of these the program is not even written for {listed(refused)}" if refused else "")
           + ". The paper: nothing is lost in any.")
    times = [r["order"]["seconds"] for r in rows]
    proven = [r for r in rows if r["order"]["status"] == "optimal"]
    yield (f"**Figures 9 and 10.** The median order takes {statistics.median(times):.1f} s, from "
           f"{min(times):.1f} to {max(times):.1f} s; {len(proven)} of {len(rows)} are proven "
           "optimal by the program's terms. The paper: from 0.1 to 5.2 s, EfficientNet 2 minutes "
           "at batch 1, and at batch 32 within 1 % of the optimum after 5 minutes.")
    seconds = [r["figures"]["places_within_1"] for r in rows
               if r["figures"]["places_within_1"] is not None]
    yield (f"**Figures 11 and 12.** Places that lose less than 1 % are found in {len(seconds)} of "
           f"{len(rows)} steps"
           + (f", after a median of {statistics.median(seconds):.1f} s and at most "
              f"{max(seconds):.1f} s" if seconds else "")
           + ". The paper finds them in all, GoogleNet's and EfficientNet's within 5 minutes.")
    both = [r for r in rows if r["figures"]["less_in_all"] is not None]
    yield (f"**Figure 13.** In {len(both)} of {len(rows)} steps OLLA has both order and places in "
           "time. In these it saves of what PyTorch reserves "
           + (compared(both, "less_in_all", partial) or "nothing")
           + (" (negative: it needs more)" if any(r["figures"]["less_in_all"] < 0 for r in both)
              else "")
           + f"; the default planner, on the same steps, {by_batch(both, 'ours_in_all') or 'none'}, "
           f"and on all steps {by_batch(rows, 'ours_in_all')}.")
    taken = [STEPS * r["pytorch"]["allocator"]["microseconds_per_step"] / 1e6 for r in rows
             if r["batch"] == 32]
    saved = known(rows, "saved_s", 32)
    if saved:
        yield (f"**Figure 14.** {STEPS:,} steps at batch 32 keep a model of PyTorch's allocator busy "
               f"for {statistics.mean(taken):.0f} s on average. Less the time of planning, that is "
               f"{statistics.mean(saved):.0f} s a training over the {len(saved)} steps with a plan, "
               f"from {min(saved):.0f} to {max(saved):.0f} s (published: 5 minutes on average). The "
               "model is C++ on this CPU; the authors time PyTorch's own allocator from Python.")


def curve_text(row, program):
    """Points of a curve: above the program's final bound (order) or the load (places)."""
    part = row[program]
    least = part["program_bound"] if program == "order" else part["load"]
    if not part["curve"] or not least:
        return "no solution" + (f": {part['note']}" if part["note"] else "")
    points = part["curve"]
    every = max(1, -(-len(points) // 8))
    kept = [*points[:-1:every], points[-1]]
    return "; ".join(f"{seconds:.1f} s {100 * max(0, peak / least - 1):+.2f} %"
                     for seconds, peak, _ in kept)


def share_of(kinds):
    return " and ".join(f"{kind} gets {SOLVERS[kind]} %" for kind in kinds)


def figures_text(report):
    rows = [{**row, "figures": figures(row)} for row in report["rows"]]
    lacking = missing(rows)
    deadlines = sorted({r["deadline_s"] for r in rows})
    longer = [r for r in rows if r["deadline_s"] > deadlines[0]]
    limit = f"{deadlines[0]:g} s" + (
        f" ({', '.join(f'{d:g} s' for d in deadlines[1:])} for {listed(longer)})" if longer else "")
    if lacking:
        yield (f"**Partial: not all is measured of {', '.join(lacking)}. No mean here is set beside "
               "the paper's.**")
    kinds = dict.fromkeys(kind for kind in SOLVERS for r in rows if kind in r["solver"])
    yield (f"Each of the two programs had {limit}, of which {share_of(kinds)}; the paper gave Gurobi "
           f"300 s. {origins(rows, listed)}; one thread, shared with other work{load_of(rows)}. "
           "Seconds are of wall clock. \"PyTorch\" is its order and a model of its CUDA caching "
           "allocator (runtime/planner/baselines/caching_allocator.h). SGD without momentum, as the "
           "authors' benchmark, and gradients are not clipped; the steps are ours, not PyTorch's. "
           "The authors' program stops within 0.5 % (order) and 0.1 % (places) of the optimum, ours "
           "at a proof.")
    yield from texts(rows, bool(lacking))
    said = {} if lacking else PUBLISHED
    yield table(["mean over the steps", "batch 1", "(published)", "batch 32", "(published)"],
                [[about, mean_cell(rows, figure, 1), said.get(figure, {}).get(1, ""),
                  mean_cell(rows, figure, 32), said.get(figure, {}).get(32, "")]
                 for figure, about in MEANS.items()])
    for batch in sorted({r["batch"] for r in rows}):
        yield f"### Batch {batch}"
        yield table(STEP_HEADER, [step_cells(r) for r in rows if r["batch"] == batch])
    yield ("\"cut\": stopped by the limit; the best solution so far counts. \"within 1 %\": of the "
           "program's bound (order), of the load (places). \"refused\": the program of places would "
           "have more than 4 million terms after the pyramid (the paper's section 4.5: activations "
           "are stacked first, by how long they live). \"no order takes off more\": by the default "
           "planner's bound.")
    yield "### Anytime curves"
    yield ("Above what the program's bound was at the end (order, figure 10), and above the load of "
           "the order (places, figure 12), as the solver's log tells; olla.json has all points.")
    yield table(["", "order", "places"],
                [[name_of(r), curve_text(r, "order"), curve_text(r, "places")]
                 for r in rows])
    yield "### The networks"
    yield table(["paper", "here", "differs from the authors' benchmark"],
                [[name, "`" + " ".join(step) + "`", differs]
                 for name, (step, differs) in NETWORKS.items()])


def share(value, least):
    return f"{100 * (value / least - 1):+.1f} %"


def ablation_cell(row):
    if row["rows"] == 0 and row["result"] is not None:
        return f"{share(row['result'], row['least'])}, {row['note']}"
    if row["rows"] == 0:
        return "not written: " + row["note"].removeprefix("the program would have ")
    size = f"{row['variables']:,} x {row['rows']:,}: "
    if row["result"] is None:
        return size + "none"
    proven = ", proven" if row["status"] == "optimal" else ""
    return size + f"{share(row['result'], row['least'])} in {row['seconds']:.1f} s{proven}"


def ablation_text(report):
    cells = {}
    for row in report["rows"]:
        def put(name, cell, instance=row["instance"]):
            cells.setdefault(name, {})[instance] = cell
        if row["program"] == "ours":
            proven = ", proven" if row["peak"] == row["bound"] else ""
            put("", f"{row['operators']} operators")
            put("our planner, order and places",
                f"{share(row['peak'], row['bound'])} in {row['seconds']:.1f} s{proven}")
            for name, key in (("program order", "program_order_load"), ("LESCEA", "lescea_load"),
                              ("order, by OLLA's authors", "authors_load")):
                put(name, share(row[key], row["bound"]))
        else:
            put(f"{row['program']}, {row['variant']}", ablation_cell(row))
    instances = list(dict.fromkeys(row["instance"] for row in report["rows"]))
    yield ("On steps of the authors' own (data/instances/order, batch 1, parameters resident): "
           "variables x rows of the program, then how far its answer is above what nothing can be "
           "below (order: the load bound; places: the max load of the published order), and the "
           "solver's seconds. \"proven\" is of the program as switched, not of the problem; "
           f"\"none\": no solution in {report['deadline_s']:g} s. Spans (section 4.1) leave out the "
           "timesteps in which an operator cannot run; splitting (4.4) orders first and places then, "
           "where (9) does both at once; LESCEA runs the operator next that adds least (Han et al., "
           f"2006). {solver_name(report['solver_version'])}, {report['device']}, commit "
           f"{report['commit']} (olla_ablation).")
    yield table(["", *instances], [[name, *(of.get(i, "") for i in instances)]
                                   for name, of in cells.items()])


def write_text(folder):
    path = folder / "olla_ablation.json"
    rows = read_rows(folder / "olla.json", "processor")
    if not rows:
        raise BadReport(f"{folder / 'olla.json'} has no rows")
    parts = ["# OLLA", "Written by `bench/olla_report.py` from olla.json and olla_ablation.json.",
             "## Figures 7 to 14 of the paper", *figures_text({"rows": rows}),
             "## Without each reduction",
             *(ablation_text(read_report(path, "rows", "deadline_s")) if path.exists()
               else ["Not measured: olla_ablation.json is not there."])]
    (folder / "olla.md").write_text("\n\n".join(parts) + "\n")


def main():
    parser = report_parser(__doc__, "plan_graph", "olla_figures", "olla_ablation")
    parser.add_argument("--deadline", type=seconds, default=300,
                        help="of each of the two programs [300 s, as the paper's]")
    args = parse(parser, NETWORKS)
    if not args.no_run:
        found = next((name for name in SOLVERS if find_solver(name)), None)
        if not found:
            parser.error("no solver of integer programs: install HiGHS (scripts/get_highs.sh) or CBC")
        print(f"olla_report.py: the solver is {found}, {find_solver(found)}", file=sys.stderr)
        measure_all(args, args.folder / "olla.json")
        if args.networks == list(NETWORKS):
            measure_ablation(args, args.folder / "olla_ablation.json")
    write_text(args.folder)


if __name__ == "__main__":
    run_main(main)
