#!/usr/bin/env python3
"""Simulated steps of this build beside those in results/: is anything slower than it was?

    bench/against_results.py [--build build/release] [--output bench/results/against.json]
                             [--seeds 1,2,3] [--policies tide,delta,dtr] [--papers FOLDER]
                             [REPORT:NETWORK...]

For each budget in the reports of every_model.py (results/every_model*.json; `every_model:gpt2`
takes one network of one report) how much longer a step is by each policy, then and now; and with
--papers, a folder into which paper_experiments --only curves has written, the same for its curves.
Ends with the geometric mean of now over then, and the worst, for each report and policy. A point at
which a policy took over four times as long as without a budget tells nothing, and is left out. All
reports take two hours on one core, for each seed.
"""
import argparse
import collections
import math
import pathlib
import sys

from every_model import STEPS, STEPS_OF_TIDE, last_steps
from reports import ROOT, read_report, run_main, train, write_report

RESULTS = ROOT / "bench" / "results"
REPORTS = ["every_model", "every_model_text", "every_model_no_tier"]
THRASHING = 4  # times as long as without a budget


def measure(build, device, row, point, policy, seed):
    """How long the last steps take, in ms; None if it fails."""
    program, *flags = row["flags"]
    result = train(build, program, "--model", row["network"], "--device", device, *flags,
                   "--policy", policy, "--budget", point["budget_bytes"], "--seed", seed,
                   "--steps", STEPS_OF_TIDE if policy == "tide" else STEPS)
    return last_steps(result) if "steps" in result else None


def of_report(name, networks, args):
    report = read_report(RESULTS / f"{name}.json")
    for row in report["rows"]:
        if networks and row["network"] not in networks:
            continue
        for point in row["points"]:
            for policy in args.policies:
                longer = point["longer"].get(policy)
                if longer is None or 1 + longer > THRASHING:
                    continue
                for seed in args.seeds if policy == "tide" else args.seeds[:1]:
                    yield {"report": name, "network": row["network"], "policy": policy,
                           "seed": seed, "budget_share": round(point["budget_share"], 4),
                           "then_ms": (1 + longer) * row["unmanaged_ms"],
                           "now_ms": measure(args.build, report["device"], row, point, policy,
                                             seed)}


def of_papers(folder, policies):
    for path in sorted(folder.glob("curves_*.json")):
        then = read_report(RESULTS / "papers" / path.name, "rows")["rows"]
        now = read_report(path, "rows")["rows"]
        for policy in policies:
            known = {point["budget"]: point for point in then.get(policy, {}).get("points", [])}
            for point in now.get(policy, {}).get("points", []):
                before = known.get(point["budget"])
                if not before or "ms" not in before or before["overhead"] + 1 > THRASHING:
                    continue
                yield {"report": "papers", "network": path.stem.removeprefix("curves_"),
                       "policy": policy, "seed": 0, "budget_share": point["share"],
                       "then_ms": before["ms"], "now_ms": point.get("ms")}


def text(point):
    name = (f"{point['report']} {point['network']} {100 * point['budget_share']:.0f} % "
            f"{point['policy']} seed {point['seed']}")
    if point["now_ms"] is None:
        return f"{name}: {point['then_ms']:.1f} ms, fails now"
    return (f"{name}: {point['then_ms']:.1f} -> {point['now_ms']:.1f} ms, "
            f"{100 * (point['now_ms'] / point['then_ms'] - 1):+.1f} %")


def summary(points):
    ratios = collections.defaultdict(list)
    for point in points:
        if point["now_ms"] is not None:
            key = point["report"], point["policy"]
            ratios[key].append(point["now_ms"] / point["then_ms"])
    return [{"report": report, "policy": policy, "points": len(these),
             "geometric_mean": math.exp(sum(map(math.log, these)) / len(these)),
             "worst": max(these), "best": min(these)}
            for (report, policy), these in ratios.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--seeds", default="1", help="seeds of tide's runs, such as 1,2,3")
    parser.add_argument("--policies", default="tide,delta,dtr")
    parser.add_argument("--papers", type=pathlib.Path, help="newly measured curves")
    parser.add_argument("which", nargs="*", metavar="REPORT:NETWORK", help="[all]")
    args = parser.parse_args()
    args.seeds = [int(seed) for seed in args.seeds.split(",")]
    args.policies = args.policies.split(",")
    wanted = collections.defaultdict(list)
    for which in args.which:
        report, _, network = which.partition(":")
        if report not in REPORTS:
            parser.error(f"unknown report '{report}'; available: {', '.join(REPORTS)}")
        wanted[report] += [network] if network else []
    names = list(wanted) if args.which else [] if args.papers else REPORTS
    points = []

    def add(point):
        points.append(point)
        print(text(point), file=sys.stderr, flush=True)
        if args.output:
            write_report(args.output, about="simulated steps, now beside what results/ had",
                         summary=summary(points), points=points)

    for name in names:
        for point in of_report(name, wanted[name], args):
            add(point)
    if args.papers:
        for point in of_papers(args.papers, args.policies):
            add(point)
    for line in summary(points):
        print(f"{line['report']} {line['policy']}: {line['points']} points, geometric mean "
              f"{line['geometric_mean']:.4f}, {line['best']:.4f} to {line['worst']:.4f}")


if __name__ == "__main__":
    run_main(main)
