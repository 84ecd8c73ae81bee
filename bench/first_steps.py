#!/usr/bin/env python3
"""Does training wait for planning? The first 50 steps on this machine's CPU, at half the memory.

  bench/first_steps.py [--build build/release] [--output bench/results/first_steps.json]

Each network trains twice: as by default, where schedules are made in the background meanwhile, and
with --plan off. Told of both: the sum of all steps, the median, and the longest but for the first,
beside the median; and the step from which on a schedule was followed.
"""
import argparse
import os
import pathlib
import statistics
import sys

from reports import ROOT, cpu_name, run_main, train, write_report

STEPS = 50
JOBS = {
    "resnet50, 224x224, batch 8": ["train_resnet", "--model", "resnet50", "--data", "synthetic",
                                   "--image-size", "224", "--batch", "8"],
    "bert-base, 128 tokens, batch 4": ["train_bert", "--model", "bert-base", "--seq-length", "128",
                                       "--batch", "4"],
}


def row(result):
    times = [step["ms"] for step in result["steps"]]
    median = statistics.median(times)
    longest = max(range(1, len(times)), key=lambda i: times[i])
    by_schedule = [i for i, step in enumerate(result["steps"]) if step["mode"] == "static"]
    return {"sum_ms": sum(times), "median_ms": median, "longest_ms": times[longest],
            "longest_is_step": longest + 1, "longest_to_median": times[longest] / median,
            "first_by_schedule": by_schedule[0] + 1 if by_schedule else None,
            "planning_between_steps_ms": sum(step["planning_ms"] for step in result["steps"]),
            "step_ms": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--output", type=pathlib.Path,
                        default=ROOT / "bench" / "results" / "first_steps.json")
    args = parser.parse_args()
    rows = []
    for name, (program, *flags) in JOBS.items():
        for plan in ("auto", "off"):
            result = train(args.build, program, *flags, "--budget", "50%", "--steps", STEPS,
                           "--plan", plan)
            if "steps" not in result:
                sys.exit(f"{name}: {result}")
            rows.append({"network": name, "plan": plan, **row(result)})
            print("{network:32} --plan {plan:4}  {sum_ms:8.0f} ms in all, median {median_ms:6.0f}, "
                  "longest {longest_ms:6.0f} (step {longest_is_step}), {longest_to_median:.2f} "
                  "medians; by a schedule from step {first_by_schedule}".format(**rows[-1]),
                  flush=True)
    write_report(args.output, device=f"{cpu_name()}, {os.cpu_count()} threads", steps=STEPS, budget_share=0.5, rows=rows)


if __name__ == "__main__":
    run_main(main)
