#!/usr/bin/env python3
"""Every network that the programs train, under every policy, on the simulator.

    bench/every_model.py [--build build/release] [--output bench/results/every_model.json]
                         [--no-tier] [NETWORK...]

How much longer a step is than without a budget, in budgets from 80 % of the unmanaged peak down to
the smallest feasible one: tide beside all other policies, and where one of them is ahead of it.
(papers_report.py does this in more detail, for the networks of DELTA's paper.) With --no-tier there
is no host memory to offload to: what goes is computed again. A policy that takes longer than
--patience for its few steps, or runs out of memory (so that another takes its place), is given up,
in smaller budgets too. An hour on two cores.
"""
import statistics
import sys

from reports import (INFEASIBLE, compared_policies, output_parser, parse, run_main, seconds, train,
                     write_report)

PROFILE = "a100-80gb"
PERCENTS = [80, 60, 50, 40, 30, 20, 10]
PERCENTS_WITHOUT_TIER = [90, 80, 70, 60, 55, 50, 45, 40, 35, 30]
STEPS, STEPS_OF_TIDE = 5, 16  # tide compares its plans in the first dozen
STEPS_COMPARED = 3            # in the smallest budgets no two are alike
TIE = 0.005                   # of a step without a budget


def images(batch):
    return ["train_resnet", "--data", "synthetic", "--image-size", 224, "--batch", batch]


def texts(length, batch):
    return ["train_bert", "--seq-length", length, "--batch", batch]


NETWORKS = {
    "resnet18": images(256), "resnet34": images(256), "mobilenet_v2": images(256),
    "mnasnet1_0": images(256), "alexnet": images(512), "vgg11": images(128), "vgg16": images(128),
    "googlenet": images(256), "vit_b_16": images(64), "bert-tiny": texts(128, 64),
    "bert-large": texts(512, 8), "xlm-roberta-base": texts(512, 16), "gpt2": texts(1024, 8),
    "gpt2-medium": texts(1024, 4), "gpt2-large": texts(1024, 4), "gpt2-xl": texts(1024, 4),
}


def measure(build, network, no_tier, patience):
    program, *flags = NETWORKS[network]
    flags += ["--host-limit", 0] if no_tier else []
    percents = PERCENTS_WITHOUT_TIER if no_tier else PERCENTS

    def run(*more, patience=None):
        result = train(build, program, "--model", network, "--device", f"sim:{PROFILE}",
                       "--seed", 1, *flags, *more, patience=patience)
        if "error" in result and result["code"] != INFEASIBLE:
            sys.exit(f"{network} {more}: {result['error']}")
        return result

    need = run("--dry-run")
    peak, minimum = need["unmanaged_peak_bytes"], need["minimum_budget_bytes"]
    unmanaged = run("--policy", "none", "--steps", 3)["steps"][-1]["ms"]
    budgets = [peak * percent // 100 for percent in percents]
    budgets = [budget for budget in budgets if budget > minimum] + [minimum]
    policies = compared_policies(build)  # tide first
    given_up, points = set(), []
    for budget in budgets:
        longer = {}
        for policy in policies:
            ours = policy == "tide"
            result = {} if policy in given_up else run(
                "--policy", policy, "--budget", budget, "--steps", STEPS_OF_TIDE if ours else STEPS,
                patience=None if ours else patience)
            if ours:
                schedule = result["schedule"]
            if "steps" in result and (ours or result["schedule"] == policy):
                longer[policy] = last_steps(result) / unmanaged - 1
            else:
                given_up.add(policy)
                longer[policy] = None
        points.append({"budget_bytes": budget, "budget_share": budget / peak, "longer": longer,
                       "schedule_of_tide": schedule})
        print(f"{network:>16} {share_of(points[-1])}: tide {text(longer['tide'])}, "
              f"next {best_other(points[-1])}", file=sys.stderr, flush=True)
    return {"network": network, "flags": [program, *flags], "unmanaged_peak_bytes": peak,
            "minimum_budget_bytes": minimum, "unmanaged_ms": unmanaged, "points": points}


def last_steps(result):
    return statistics.mean(step["ms"] for step in result["steps"][-STEPS_COMPARED:])


def best_other(point):
    """The best of the other policies: "+12.3 % dtr"; "none" if all are given up."""
    known = {p: x for p, x in point["longer"].items() if p != "tide" and x is not None}
    if not known:
        return "none"
    best = min(known, key=known.get)
    return f"{text(known[best])} {best}"


def ahead(point):
    """The policies that are ahead of tide."""
    return [p for p, x in point["longer"].items()
            if x is not None and x < point["longer"]["tide"] - TIE]


def text(longer):
    return f"{100 * longer:+.1f} %"


def share_of(point):
    return f"{100 * point['budget_share']:.0f} %"


def main():
    parser = output_parser(__doc__, "train_resnet", "train_bert")
    parser.add_argument("--patience", type=seconds, default=20, help="time limit of a run, in seconds")
    parser.add_argument("--no-tier", action="store_true", help="without a tier to offload to")
    args = parse(parser, NETWORKS)
    rows = []
    for network in args.networks:
        rows.append(measure(args.build, network, args.no_tier, args.patience))
        if args.output:  # of what is known so far: a run takes hours, and may be stopped
            write_report(args.output, about="longer step, by network, budget and policy",
                         device=f"sim:{PROFILE}", tier=not args.no_tier, steps=STEPS,
                         steps_of_tide=STEPS_OF_TIDE, patience_s=args.patience, rows=rows)
    behind = [(row["network"], share_of(point), ahead(point))
              for row in rows for point in row["points"] if ahead(point)]
    print(f"{len(rows)} networks, {sum(len(row['points']) for row in rows)} budgets; "
          f"another policy is ahead of tide in {len(behind)}")
    for network, share, policies in behind:
        print(f"  {network}, {share}: {', '.join(policies)}")


if __name__ == "__main__":
    run_main(main)
