#!/usr/bin/env python3
"""How long planning takes, phase by phase, and what ten times the effort would gain.

    bench/planning_time.py [--build build/release] [--output FILE.json] [STEP...]

For each step and share of its memory: what a session's planner does (order_and_releases --phases)
with a session's effort, and with ten times as much: counted work, processor seconds, and how much
longer the planned step takes than without a limit, on the simulator. A session's phases run twice,
and the shorter time counts. Steps that are not named stay in the file as they are."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import reports

PROFILE = "a100-80gb"
PERCENTS = (60, 40, 30)  # of the peak in program order
EFFORT = 48  # million simulated calls: a session's for steps of a quarter of a second or more
# flags of plan_graph
STEPS = {
    "resnet50_b256": ["--model", "resnet50", "--batch", 256],
    "bert_base_512_b32": ["--model", "bert-base", "--batch", 32, "--seq-length", 512,
                          "--optimizer", "adamw"],
    "gpt2_xl_1024_b2_adam_unfused": ["--model", "gpt2-xl", "--batch", 2, "--seq-length", 1024,
                                     "--optimizer", "adam-unfused"],
}
PLANNING = ("order", "first", "long")  # without bounds, for which no step waits


def measure(args, name, save):
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "graph.json"
        # --write-remat: stops once the step is captured.
        subprocess.run([args.program, *map(str, STEPS[name]), "--profile", PROFILE, "--save-graph",
                        graph, "--write-remat", f"{graph}.remat"], check=True,
                       stdout=subprocess.DEVNULL)
        row = {"step": name, "flags": STEPS[name], "budgets": [], **reports.stamp(),
               "processor": reports.cpu_name()}
        for percent in PERCENTS:
            command = [args.build / "bin" / "order_and_releases", "--phases", graph, PROFILE,
                       "tier", str(EFFORT), str(percent)]
            load = os.getloadavg()[0]
            said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE,
                                             text=True).stdout)
            [budget] = said.pop("budgets")
            row |= said
            row["budgets"].append({**budget, "load_average": load})
            print(f"{name} {percent} %: {cells(budget)}", file=sys.stderr, flush=True)
            save(row)


def seconds(planned):
    return sum(planned[phase]["cpu_s"] for phase in PLANNING)


def longer(budget, ms):
    """Than without a limit, as a share; None: nothing was found."""
    ample = budget["session"].get("bounds", {}).get("ample_ms")
    return ms / ample - 1 if ms and ample else None


def work(phase):
    return f"{phase['calls'] / 1e6:.0f} M, {phase['cpu_s']:.1f} s"


def cells(budget):
    session, more = budget["session"], budget["more"]
    bounds = session.get("bounds", {})
    ours, at_most = (longer(budget, each.get("ms")) for each in (session, more))
    return [f"{session['order']['nodes'] / 1e3:.0f}, {session['order']['cpu_s']:.2f} s",
            work(session["first"]), work(session["long"]), f"{seconds(session):.1f} s",
            f"{bounds['cpu_s']:.1f} s" if bounds else "-",
            *(reports.percent(longer(budget, each), 2)
              for each in (session["first"].get("ms"), session.get("ms"), bounds.get("ms"))),
            f"{reports.percent(at_most, 2)}, {seconds(more):.0f} s",
            "-" if None in (ours, at_most) else f"{round(100 * (ours - at_most), 2) + 0.0:+.2f}"]


def print_tables(rows):
    for row in rows:
        ample = next((b["session"]["bounds"]["ample_ms"] for b in row["budgets"]
                      if "bounds" in b["session"]), 0)
        print(f"\n{row['step']}: {row['operators']} operators, {ample:.1f} ms, "
              f"{row['peak_bytes'] / 2**30:.2f} GiB; {reports.origins([row])}"
              f"{reports.load_of(row['budgets'])}\n")
        print(reports.table(
            ["memory", "order: 1,000 nodes", "first plan: calls", "long search: calls", "in all",
             "bounds", "longer step by the first plan", "in the end", "at least",
             "with ten times the effort", "points gained"],
            [[f"{budget['percent']} %", *cells(budget)] for budget in row["budgets"]]))


def main():
    parser = reports.output_parser(__doc__, "plan_graph", "order_and_releases")
    args = reports.parse(parser, STEPS)
    rows = {}
    if args.output:
        rows = {row["step"]: row for row in reports.read_rows(args.output, "system")}

    def save(row):
        rows[row["step"]] = row
        if args.output:
            reports.write_report(args.output, about="planning as a session does it: work, "
                                 "processor seconds, what ten times the effort gains",
                                 device=f"sim:{PROFILE}", effort_million_calls=EFFORT,
                                 rows=[rows[name] for name in STEPS if name in rows])
    for name in args.networks:
        measure(args, name, save)
    print_tables([rows[name] for name in STEPS if name in rows])


if __name__ == "__main__":
    reports.run_main(main)
