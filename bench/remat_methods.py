#!/usr/bin/env python3
"""Rematerialisation by every method side by side: Tidemark's search (ours), MONeT's and Checkmate's
programs, Chen's checkpoints, Gist's encodings (plan_graph --remat --method). Prints a Markdown table
and writes a report.

usage: remat_methods.py [--build build/release] [--output FILE.json] [--limit 60] [--search-limit 10]
                        [--jobs 1] [--checker FILE.py] [--methods A,B] [INSTANCE ...]
       remat_methods.py --table FILE.json

INSTANCE: a file, a name in data/instances/remat, one that remat_instances.py writes, or MODEL@BATCH,
a step that plan_graph captures; each at its own budgets. --limit: seconds of a solver for each
budget; --search-limit: of our search. Every schedule is validated by plan_graph; with --checker,
those that fit also by `FILE.py INSTANCE SCHEDULE --budget B`. A report that exists is completed: what
it has is not measured again. The problems below take up to three hours. The solvers are those that
plan_graph finds (BUILDING.md)."""

import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import reports

METHODS = ["default", "monet", "monet-eager", "checkmate", "chen", "chen-budget", "gist"]
LABELS = {"default": "ours", "monet": "MONeT", "monet-noop": "MONeT-NoOp",
          "monet-eager": "MONeT, updates early", "checkmate": "Checkmate",
          "chen": "Chen, sqrt(n)", "chen-budget": "Chen, by budget", "gist": "Gist"}
INSTANCES = ["toy", "resnet18_32", "vgg16_32", "bert-base_32", "vgg", "vgg-variants", "unet",
             "unet-variants", "resnet18@32", "vgg16@32"]
PROGRAM = re.compile(r"program: (\d+) variables, (\d+) rows; (.*)")


def read(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def find(args, name, generated):
    """The file of an instance; those that are made here go to the folder."""
    path = pathlib.Path(name)
    if path.exists():
        return path
    if "@" in name:
        model, batch = name.split("@")
        path = generated / (name + ".json")
        subprocess.run([args.program, "--model", model, "--batch", batch, "--write-remat", path],
                       check=True, stdout=subprocess.DEVNULL)
        return path
    bundled = sorted((reports.ROOT / "data" / "instances" / "remat").glob(name + ".json*"))
    if bundled:
        return bundled[0]
    if not (generated / "vgg.json").exists():
        writer = pathlib.Path(__file__).resolve().parent / "remat_instances.py"
        subprocess.run([sys.executable, writer, generated], check=True, stdout=subprocess.DEVNULL)
    if not (generated / (name + ".json")).exists():
        sys.exit(f"remat_methods.py: there is no instance '{name}'")
    return generated / (name + ".json")


def is_answer(code, errors):
    """Whether plan_graph planned, or says that nothing fits or that nothing was found in time."""
    return code in (0, 3) or (code == 1 and "that none fits is not proven" in errors)


def is_unloaded(note):
    """Whether the solver could not load a program, which says nothing about schedules."""
    return "Error loading file" in note


def plan(args, instance, budget, method):
    """What plan_graph says of one method at one budget."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "schedule.json"
        command = [args.program, "--remat", instance, "--budget", budget, "--method", method,
                   "--deadline", args.search_limit if method == "default" else args.limit,
                   "--output", output]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              check=False)
        row = {"method": method, "note": (done.stderr.strip().splitlines() or [""])[-1]}
        answered = is_answer(done.returncode, done.stderr)
        if done.returncode != 0 and (method == "default" or not answered):
            row["note"] = (done.stderr.strip().splitlines() or ["failed"])[0]
        if not answered:
            row["failed"] = done.returncode
        row["note"] = row["note"].removeprefix("plan_graph: ").removeprefix(method + ": ")
        program = PROGRAM.search(done.stdout)
        if program:
            row.update(variables=int(program[1]), rows=int(program[2]), status=program[3])
        lines = done.stdout.splitlines()
        if lines and lines[-1].split()[-1:] and "own bound" in done.stdout:
            own = lines[-1].split()[-3]
            row["own_bound"] = None if own == "-" else float(own)
        if not output.exists():
            return row
        schedule = json.loads(output.read_text())
        row.update(time=schedule["time"], peak=schedule["peak"], seconds=schedule["seconds"],
                   fits=schedule["peak"] <= budget)
        if method == "default":
            row["bound"] = schedule["bound"]
        if args.checker and row["fits"]:
            check = subprocess.run([sys.executable, args.checker, instance, output, "--budget",
                                    str(budget)], capture_output=True, text=True, check=False)
            row["checked"] = check.returncode == 0
            if check.returncode != 0:
                raise RuntimeError(f"the checker rejects {method} on {instance} at {budget}: "
                                   f"{check.stdout}{check.stderr}")
        return row


def cell(row, base, budget):
    """Time over the time of every node once, as a percentage more; and what was proven."""
    if "failed" in row:
        return "cannot read the problem" if row["failed"] == 2 else "failed"
    if "time" not in row:
        if "infeasible" in row["note"] or row["note"].startswith("no schedule fits"):
            return "none, proven" if row["method"] == "default" else "none of its kind, proven"
        if "million terms" in row["note"]:
            return "too large"
        if is_unloaded(row["note"]):
            return "could not be loaded"
        return "not solved in time" if "time" in row["note"] or "was found" in row["note"] else "none fits"
    if not row["fits"]:
        return f"takes {row['peak'] / budget:.2f} of the budget"
    text = f"{100 * (row['time'] / base - 1):+.2f} %"
    if row.get("status") == "optimal":
        text += ", proven for its kind"
    elif row.get("own_bound"):
        text += f" (its kind: at least {100 * (row['own_bound'] / base - 1):+.2f} %)"
    if row["method"] == "default" and row["bound"] > 0:
        text += f" (any: at least {100 * (row['bound'] / base - 1):+.2f} %)"
    return text


def print_table(report):
    measured = {row["method"] for entry in report["rows"] for row in entry["methods"]}
    methods = [method for method in [*METHODS, "monet-noop"] if method in measured]
    print("| problem | budget | " + " | ".join(LABELS.get(m, m) for m in methods) + " |")
    print("|---" * (len(methods) + 2) + "|")
    for entry in report["rows"]:
        cells = {row["method"]: cell(row, entry["base_time"], entry["budget"]) for row in entry["methods"]}
        print(f"| {entry['instance']} | {entry['budget'] / entry['keep_all']:.2f} | "
              + " | ".join(cells.get(m, "") for m in methods) + " |")


def variants(node):
    """With what they take from the node filled in."""
    shared = {key: node[key] for key in ("time", "workspace", "inputs") if key in node}
    return [{"time": 0, "workspace": 0, "inputs": [], **shared, **each}
            for each in node.get("variants") or [{}]]


def keep_all_schedule(problem):
    """The listed order, every node once by its first variant, each value freed after its last
    reader. Riders, too: each is listed, and runs, behind its parent."""
    first = [variants(node)[0] for node in problem["nodes"]]
    last = {u: i for i, variant in enumerate(first) for u in [*variant["inputs"], i]}
    gone = {variant.get("overwrites") for variant in first}
    drop = {}
    for u, i in last.items():
        if u not in gone:
            drop.setdefault(i, []).append(u)
    return [event for i in range(len(first))
            for event in (["compute", i, 0], *(["free", u] for u in drop.get(i, [])))]


def replay(problem, events):
    """Each run as (node, bytes held while it runs, its ms). Raises ValueError for a schedule that
    breaks a rule: reads what is not there, or runs a node that may run once again. Shares no code
    with the planner."""
    nodes = problem["nodes"]
    live, ran, fixed, held, runs = set(), set(), problem["fixed_bytes"], 0, []
    for event in events:
        i = event[1]
        if event[0] == "free":
            if i not in live:
                raise ValueError(f"frees {i}, which is not live")
            live.remove(i)
            held -= nodes[i]["bytes"]
            continue
        node, variant = nodes[i], variants(nodes[i])[event[2] if len(event) > 2 else 0]
        if i in live or (i in ran and node.get("once")) or not live.issuperset(variant["inputs"]):
            raise ValueError(f"node {i} cannot run")
        if variant.get("when") == ("first" if i in ran else "again"):
            raise ValueError(f"node {i} cannot run by this variant")
        fixed += node.get("adds_fixed", 0)
        held += node["bytes"]
        runs.append((i, fixed + held + variant["workspace"], variant["time"]))
        live.add(i)
        ran.add(i)
        if "overwrites" in variant:
            live.remove(variant["overwrites"])
            held -= nodes[variant["overwrites"]]["bytes"]
    return runs


def peak(runs):
    return max(held for _, held, _ in runs)


def keep_all(problem):
    """Peak of keep_all_schedule(), where nothing is computed again. The same for every budget, so
    that budgets can be given as shares of it."""
    return peak(replay(problem, keep_all_schedule(problem)))


def measure_budget(args, instance, problem, budget, known):
    base = problem.get("base_time") or sum(node["time"] for node in problem["nodes"])
    entry = known or {"instance": problem.get("name", instance.stem), "nodes": len(problem["nodes"]),
                      "budget": budget, "keep_all": keep_all(problem), "base_time": base,
                      "methods": []}
    commit = reports.stamp()["commit"]
    for method in args.methods:
        if any(row["method"] == method for row in entry["methods"]):
            continue
        load = os.getloadavg()[0]
        row = {**plan(args, instance, budget, method), "commit": commit, "load": load}
        entry["methods"].append(row)
        print(f"{entry['instance']} {budget} {method}: {cell(row, base, budget)} "
              f"[{row.get('seconds', '-')} s] {row['note']}", file=sys.stderr, flush=True)
    return entry


def read_report(args):
    """What the report has already, by instance and budget."""
    if not args.output or not args.output.exists():
        return {}
    report = reports.read_report(args.output)
    for entry in report["rows"]:
        for row in entry["methods"]:
            row.setdefault("commit", report["commit"])
            row.setdefault("load", entry.get("load"))
    return {(entry["instance"], entry["budget"]): entry for entry in report["rows"]}


def measure(args, instances):
    known = read_report(args)
    rows = dict(known)
    report = {"processor": reports.cpu_name(), "cores": os.cpu_count(), "jobs": args.jobs,
              "solver_limit_s": args.limit, "search_limit_s": args.search_limit}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        tasks = []
        for instance in instances:
            problem = read(instance)
            for budget in (entry["bytes"] for entry in problem["budgets"]):
                key = (problem.get("name", instance.stem), budget)
                tasks.append((key, pool.submit(measure_budget, args, instance, problem, budget,
                                               known.get(key))))
        for key, task in tasks:
            rows[key] = task.result()
            report["rows"] = list(rows.values())
            if args.output:
                reports.write_report(args.output, **report)
    return report


def main():
    parser = reports.output_parser(__doc__, "plan_graph")
    parser.add_argument("--limit", type=reports.seconds, default=60)
    parser.add_argument("--search-limit", type=reports.seconds, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="budgets at a time")
    parser.add_argument("--checker", type=pathlib.Path)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--table", type=pathlib.Path, help="print the table of a report")
    parser.add_argument("instances", nargs="*", metavar="INSTANCE")
    args = reports.parse(parser)
    if args.table:
        print_table(reports.read_report(args.table))
        return
    args.methods = args.methods.split(",")
    with tempfile.TemporaryDirectory() as folder:
        instances = [find(args, name, pathlib.Path(folder)) for name in args.instances or INSTANCES]
        print_table(measure(args, instances))


if __name__ == "__main__":
    reports.run_main(main)
