#!/usr/bin/env python3
"""Plans rematerialisation in all budgets of the bundled steps and of generated ones that were held
back while the planner was tuned; writes a table.

usage: remat_report.py [--build build/release] [--output FILE.json] [--seeds FIRST LAST]
                       [--seconds S] [--seconds-variants S] [--nodes N] [--jobs N] [--only TEXT]

Ratio: time of the schedule / time of running every node once. Gap: to the bound that the planner
proves in the same run. Small steps have an optimum by exhaustive search; `excess` is the distance
to it. The planner validates each schedule before it writes it. remat_instances.py makes the steps;
seeds from 1000 on are the ones held back."""

import concurrent.futures
import gzip
import json
import pathlib
import statistics
import subprocess
import tempfile

import remat_instances
from reports import ROOT, cpu_name, output_parser, parse, run_main, seconds, write_report

BUNDLED = ("resnet18_32", "vgg16_32", "bert-base_32")


def bundled(name):
    file = ROOT / "data" / "instances" / "remat" / (name + ".json.gz")
    with gzip.open(file, "rt") as text:
        return json.load(text)


def plan(args, folder, problem, budget):
    """One row."""
    has_variants = any("variants" in node for node in problem["nodes"])
    deadline = args.seconds_variants if has_variants else args.seconds
    row = {"instance": problem["name"], "nodes": len(problem["nodes"]), "variants": has_variants,
           "budget_bytes": budget["bytes"], "deadline_s": deadline}
    file = pathlib.Path(folder) / (problem["name"] + ".json")
    output = pathlib.Path(folder) / ("%s-%d.out" % (problem["name"], budget["bytes"]))
    command = [args.program, "--remat", file, "--budget", budget["bytes"], "--output", output,
               "--deadline", 1e6 if args.nodes else deadline]
    command += ["--nodes", args.nodes] if args.nodes else []
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if not output.exists():
        # "no schedule fits in ...": proven; "no schedule was found within ...": not.
        proven = "no schedule fits in" in done.stderr
        row["result"] = "infeasible" if proven else "none found"
        if not done.stderr.strip() or ("optimum" in budget and budget["optimum"] and proven):
            raise SystemExit("%s: %s" % (problem["name"], done.stderr or done.returncode))
        return row
    found = json.loads(output.read_text())
    base = problem.get("base_time", sum(node["time"] for node in problem["nodes"]))
    row |= {"result": "found", "time": found["time"], "ratio": found["time"] / base,
            "peak_bytes": found["peak"], "bound": found["bound"], "seconds": found["seconds"],
            "gap": found["time"] / found["bound"] - 1 if found["bound"] else 0}
    if budget.get("optimum"):
        row["excess"] = found["time"] / budget["optimum"] - 1
    return row


def show(row):
    start = f"{row['instance']:<24}{row['nodes']:>5}{row['budget_bytes'] / 2**20:>10.0f}"
    if row["result"] != "found":
        print(start, "", row["result"], flush=True)
        return
    excess = f"{100 * row['excess']:>9.3f}" if "excess" in row else ""
    print(f"{start}{row['ratio']:>10.4f}{row['peak_bytes'] / 2**20:>10.0f}{100 * row['gap']:>9.3f}"
          f"{row['seconds']:>9.2f}{excess}", flush=True)


def summary(rows):
    found = [row for row in rows if row["result"] == "found"]
    result = {"problems": len(rows), "found": len(found),
              "infeasible": sum(row["result"] == "infeasible" for row in rows)}
    if found:
        gaps = [row["gap"] for row in found]
        result |= {"median_gap": statistics.median(gaps), "worst_gap": max(gaps),
                   "within_1_percent": sum(gap <= 0.01 for gap in gaps),
                   "within_2_percent": sum(gap <= 0.02 for gap in gaps)}
    excess = [row["excess"] for row in found if "excess" in row]
    if excess:
        result |= {"optimal": sum(e < 1e-9 for e in excess), "worst_excess": max(excess)}
    return result


def main():
    parser = output_parser(__doc__, "plan_graph")
    parser.add_argument("--seeds", type=int, nargs=2, default=(1001, 1003),
                        metavar=("FIRST", "LAST"))
    parser.add_argument("--seconds", type=seconds, default=10)
    parser.add_argument("--seconds-variants", type=seconds, default=60)
    parser.add_argument("--nodes", type=int, help="a limit on work in place of seconds")
    parser.add_argument("--jobs", type=int, default=1, help="plans at the same time")
    parser.add_argument("--only", default="", help="problems with this in their name")
    args = parse(parser)

    problems = [bundled(name) for name in BUNDLED]
    problems += remat_instances.random_steps(*args.seeds, small=True)
    problems = [problem for problem in problems if args.only in problem["name"]]
    print(f"{'instance':<24}{'nodes':>5}{'MiB':>10}{'ratio':>10}{'peak':>10}{'gap %':>9}"
          f"{'seconds':>9}{'excess %':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for problem in problems:
            (pathlib.Path(folder) / (problem["name"] + ".json")).write_text(json.dumps(problem))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            planned = [pool.submit(plan, args, folder, problem, budget)
                       for problem in problems for budget in problem["budgets"]]
            rows = []
            for future in planned:
                rows.append(future.result())
                show(rows[-1])
    sets = {"bundled": [r for r in rows if r["instance"] in BUNDLED],
            "small": [r for r in rows if r["instance"].startswith("small")]}
    others = [r for r in rows if r not in sets["bundled"] and r not in sets["small"]]
    sets["held back"] = [r for r in others if not r["variants"]]
    sets["held back, variants"] = [r for r in others if r["variants"]]
    totals = {name: summary(of) for name, of in sets.items() if of}
    for name, total in totals.items():
        print(name, json.dumps(total))
    if args.output:
        write_report(args.output, processor=cpu_name(), jobs=args.jobs, seeds=args.seeds,
                     summary=totals, rows=rows)


if __name__ == "__main__":
    run_main(main)
