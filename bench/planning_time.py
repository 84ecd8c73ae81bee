#!/usr/bin/env python3
"""How long planning takes, phase by phase, and what ten times the effort would gain.

    bench/planning_time.py [--build build/release] [--output FILE.json] [--times 10]
                           [--effort 48] [--percents 60 40 30 --] [STEP...]

For each step and share of its memory: what a session's planner does (order_and_releases --phases)
with an effort, and with --times as much: counted work, processor seconds, and how much longer the
planned step takes than without a limit, on the simulator. The phases run twice with the effort, and
the shorter time counts. Other steps, budgets and efforts in the file stay. --times 1: with the
effort alone; what more gave stays in the file if the plan is the same."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import reports

PROFILE = "a100-80gb"
PERCENTS = (60, 40, 30)  # of the peak in program order
SESSIONS = 48  # million simulated calls: a session's for steps of a quarter of a second or more
# flags of plan_graph
STEPS = {
    "resnet50_b256": ["--model", "resnet50", "--batch", 256],
    "bert_base_512_b32": ["--model", "bert-base", "--batch", 32, "--seq-length", 512,
                          "--optimizer", "adamw"],
    "gpt2_xl_1024_b2_adam_unfused": ["--model", "gpt2-xl", "--batch", 2, "--seq-length", 1024,
                                     "--optimizer", "adam-unfused"],
}
PLANNING = ("order", "first", "long")  # without bounds, for which no step waits


def measure(args, name, percents):
    """A row for each budget."""
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "graph.json"
        # --write-remat: stops once the step is captured.
        subprocess.run([args.program, *map(str, STEPS[name]), "--profile", PROFILE, "--save-graph",
                        graph, "--write-remat", f"{graph}.remat"], check=True,
                       stdout=subprocess.DEVNULL)
        for percent in percents:
            command = [args.build / "bin" / "order_and_releases", "--phases", str(args.times),
                       graph, PROFILE, "tier", str(args.effort), str(percent)]
            load = os.getloadavg()[0]
            step = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE,
                                             text=True).stdout)
            [budget] = step.pop("budgets")
            yield {"step": name, "flags": STEPS[name], **step, "times": args.times, **budget,
                   "load_average": load, **reports.stamp(), "processor": reports.cpu_name()}


def keep(rows, row):
    """Replaces that step, budget and effort. A plan with more effort stays beside the same plan."""
    at = (row["step"], row["percent"], row["effort"])
    before = rows.get(at, {})
    if "more" not in row and "more" in before and before["session"]["ms"] == row["session"]["ms"]:
        row |= {"more": before["more"], "times": before["times"]}
    rows[at] = row


def seconds(planned):
    return sum(planned[phase]["cpu_s"] for phase in PLANNING)


def longer(row, planned):
    """Than without a limit, as a share; None: nothing was found."""
    ample = row["session"].get("bounds", {}).get("ample_ms")
    return planned["ms"] / ample - 1 if ample and "ms" in planned else None


def work(phase):
    return f"{phase['calls'] / 1e6:.0f} M, {phase['cpu_s']:.1f} s"


def cells(row):
    session, more = row["session"], row.get("more")
    bounds = session.get("bounds")
    ours = longer(row, session)
    yield f"{row['percent']} %"
    yield f"{row['effort'] / 1e6:.0f} M"
    yield f"{session['order']['cpu_s']:.2f} s"
    yield work(session["first"])
    yield work(session["long"])
    yield f"{seconds(session):.1f} s"
    yield f"{bounds['cpu_s']:.1f} s" if bounds else "-"
    yield reports.percent(longer(row, session["first"]), 2)
    yield reports.percent(ours, 2)
    yield reports.percent(longer(row, bounds), 2) if bounds else "-"
    if not more:
        yield from ("not run", "")
        return
    most = longer(row, more)
    yield f"{reports.percent(most, 2)} in {seconds(more):.0f} s"
    yield "-" if None in (ours, most) else f"{round(100 * (ours - most), 2) + 0.0:+.2f}"


def print_tables(rows):
    for name in STEPS:
        own = [row for row in rows if row["step"] == name]
        if not own:
            continue
        print(f"\n{name}: {own[0]['operators']} operators, {own[0]['peak_bytes'] / 2**30:.2f} GiB; "
              f"{reports.origins(own)}{reports.load_of(own)}\n")
        times = {str(row["times"]) for row in own if "more" in row}
        print(reports.table(
            ["memory", "effort", "order", "first plan: calls", "long search: calls", "in all",
             "bounds", "longer step by the first plan", "in the end",
             "least for any policy in that order",
             f"with {' or '.join(sorted(times)) or 'many'} times the effort", "points gained"],
            map(cells, own)))


def main():
    parser = reports.output_parser(__doc__, "plan_graph", "order_and_releases")
    parser.add_argument("--times", type=int, default=10, help="as much effort [10]")
    parser.add_argument("--effort", type=int, default=SESSIONS,
                        help=f"million simulated calls; a session's: {SESSIONS}")
    parser.add_argument("--percents", type=int, nargs="+", default=PERCENTS,
                        help="of the peak in program order")
    args = reports.parse(parser, STEPS)
    rows = {}
    if args.output:
        rows = {(row["step"], row["percent"], row["effort"]): row
                for row in reports.read_rows(args.output, "system")}
    for name in args.networks:
        for row in measure(args, name, args.percents):
            keep(rows, row)
            rows = dict(sorted(rows.items(), key=lambda item: (list(STEPS).index(item[0][0]),
                                                               -item[0][1], -item[0][2])))
            print(name, *cells(row), sep=" | ", file=sys.stderr, flush=True)
            if args.output:
                reports.write_report(args.output, about="planning as a session does it: work, "
                                     "processor seconds, what more effort gains",
                                     device=f"sim:{PROFILE}", rows=list(rows.values()))
    print_tables(rows.values())


if __name__ == "__main__":
    reports.run_main(main)
