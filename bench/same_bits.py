#!/usr/bin/env python3
"""BERT-base on this machine's CPU: does every policy, in every budget, train to the same bits?

    bench/same_bits.py [--build build/release] [--output bench/results/same_bits.json]

Trains a few steps of masked-LM with dropout on the bundled text, at 512 and at 128 tokens: without
a budget, then with each policy in three quarters of what that takes and in the smallest feasible
budget. There parameters and gradients do not fit together: a policy that would rather evict
computes nearly everything again for each operator, so it does one step, at 128 tokens alone. It
says whether the parameters end with the same checksum and whether the budget was kept, and fails if
not. What takes longer than --patience is given up, and said to be. On one thread, so that a busy
machine does not wait for itself: an hour, 8 GiB.
"""
import argparse
import itertools
import pathlib
import sys
import time

from reports import ROOT, compared_policies, run_main, train, write_report

OFFLOADING = {"tide", "delta", "offload-only"}
SEQUENCES = {512: 4, 128: 1}  # length: batch
STEPS = 2
STEPS_OF = {"tide": 4}  # it goes by a plan from the fourth


def train_bert(build, model, length, *, policy, steps, budget=None, dry=False, patience=None):
    return train(build, "train_bert", "--model", model, "--seq-length", length,
                 "--batch", SEQUENCES[length], "--steps", steps, "--seed", 1, "--threads", 1,
                 "--optimizer", "sgd", "--policy", policy,
                 *(["--budget", budget] if budget else []), *(["--dry-run"] if dry else []),
                 patience=patience)


def row_of(run, reference, policy, budget, seconds):
    if "steps" not in run:
        return {"policy": policy, "budget_bytes": budget, **run}
    last = run["steps"][-1]
    return {"policy": policy, "budget_bytes": run["budget_bytes"],
            "peak_reserved_bytes": run["peak_reserved_bytes"],
            "kept": run["peak_reserved_bytes"] <= run["budget_bytes"],
            "same_bits": run["params_checksum"] == reference["params_checksum"]
                         and [s["loss_bits"] for s in run["steps"]]
                         == [s["loss_bits"] for s in reference["steps"]],
            "steps": len(run["steps"]), "mode": last["mode"], "evictions": last["evictions"],
            "offloads": last["offloads"], "recomputes": last["recomputes"],
            "seconds": round(seconds, 1)}


def measure(build, model, length, policies, patience):
    dry = train_bert(build, model, length, policy="tide", steps=STEPS, dry=True)
    if "error" in dry:
        sys.exit(f"train_bert --dry-run: {dry['error']}")
    peak, minimum = dry["unmanaged_peak_bytes"], dry["minimum_budget_bytes"]
    budgets = [max(minimum, peak * 3 // 4), minimum]
    references = {}
    rows = []
    for policy, budget in itertools.product(policies, budgets):
        slow = budget == minimum and policy not in OFFLOADING
        if slow and length > min(SEQUENCES):
            continue
        steps = 1 if slow else STEPS_OF.get(policy, STEPS)
        if steps not in references:
            references[steps] = train_bert(build, model, length, policy="none", steps=steps)
        began = time.monotonic()
        run = train_bert(build, model, length, policy=policy, budget=budget, steps=steps,
                         patience=patience)
        rows.append(row_of(run, references[steps], policy, budget, time.monotonic() - began))
        print(f"{length} tokens: {rows[-1]}", file=sys.stderr, flush=True)
    return {"length": length, "batch": SEQUENCES[length], "unmanaged_peak_bytes": peak,
            "minimum_budget_bytes": minimum, "runs": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--model", default="bert-base")
    parser.add_argument("--lengths", type=int, nargs="+", default=list(SEQUENCES),
                        choices=list(SEQUENCES))
    parser.add_argument("--policies", nargs="+", help="[all but tide's parts]")
    parser.add_argument("--patience", type=float, default=1800, help="time limit of a run, in seconds")
    args = parser.parse_args()
    policies = args.policies or compared_policies(args.build)
    sequences = [measure(args.build, args.model, length, policies, args.patience)
                 for length in args.lengths]
    runs = [run for sequence in sequences for run in sequence["runs"]]
    good = [run for run in runs if run.get("same_bits") and run.get("kept")]
    ended = [run for run in runs if "given_up_after_s" not in run]
    print(f"{len(good)} of {len(ended)} runs: the same bits, the budget kept; "
          f"{len(runs) - len(ended)} given up")
    if args.output:
        write_report(args.output, about="parameters and losses against a run without a budget",
                     model=args.model, device="cpu", sequences=sequences)
    return 0 if len(good) == len(ended) else 1


if __name__ == "__main__":
    run_main(main)
