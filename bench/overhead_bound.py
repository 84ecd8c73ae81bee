#!/usr/bin/env python3
"""How near the default policy comes to the least that a step can take under a budget.

    bench/overhead_bound.py [--build build/release] [--output FILE.json] [--no-tier] [NETWORK...]

For each network and saving of the unmanaged peak: a lower bound on how much longer a step takes,
under any policy that keeps the order of the plan's operators and may evict and recompute, offload
and reload (runtime/planner/bounds/time_bound.h), and one for any order (any_order_bound.h); and
beside them what tide takes, in the same run. The bounds are of linear programs' relaxations: no
schedule is claimed to reach them. With --no-tier there is neither host memory nor disk to offload
to, in tide's runs and in the bounds, and the last budgets are the smallest feasible one, which
leaves a plan no byte to spare, and 1 % more.
"""

import math
import sys
import time

from reports import INFEASIBLE, output_parser, parse, run_main, train, write_report

SAVINGS = [40, 50, 60, 70, 78, 80]
SAVINGS_WITHOUT_TIER = [30, 40, 50, 60, 70, 75, 80]
ABOVE_SMALLEST = {"smallest feasible budget": 1, "1 % more": 1.01}
STEPS = 20
PROFILE = "a100-80gb"
# train program, --model, --batch, more flags
NETWORKS = {
    "resnet50_b256": ("train_resnet", "resnet50", 256, []),
    "resnet101_b128": ("train_resnet", "resnet101", 128, []),
    "resnext50_b128": ("train_resnet", "resnext50_32x4d", 128, []),
    "efficientnet_b0_b256": ("train_resnet", "efficientnet_b0", 256, []),
    "bert_base_512_b32": ("train_bert", "bert-base", 32, ["--seq-length", "512"]),
}


def train_network(build, name, flags, *more):
    """What a run says of itself; None: the budget is below the smallest feasible one."""
    program, model, batch, own = NETWORKS[name]
    data = ["--data", "synthetic"] if program == "train_resnet" else []
    run = train(build, program, "--model", model, "--batch", batch, *data, *own,
                "--device", f"sim:{PROFILE}", *flags, *more)
    if run.get("code") == INFEASIBLE:
        return None
    if "error" in run:
        sys.exit(f"{name}: {run['error']}")
    return run


def measure(build, name, savings, no_tier):
    flags = ["--host-limit", 0, "--disk-limit", 0] if no_tier else []
    free = train_network(build, name, flags, "--policy", "none", "--steps", STEPS)
    free_ms = free["steps"][-1]["ms"]
    peak = free["unmanaged_peak_bytes"]
    row = {"network": name, "unmanaged_ms": free_ms, "unmanaged_peak_bytes": peak, "points": []}
    budgets = [({"saving": saving}, f"{100 - saving}%") for saving in savings]
    if no_tier:
        least = train_network(build, name, flags, "--dry-run")["minimum_budget_bytes"]
        budgets += [({"saving": round(100 * (1 - factor * least / peak), 1), "column": column},
                     int(factor * least)) for column, factor in ABOVE_SMALLEST.items()]
    for point, budget in budgets:
        began = time.monotonic()
        run = train_network(build, name, flags, "--policy", "tide", "--steps", STEPS,
                            "--budget", budget)
        if run:
            plan = run.get("plan", {})
            point |= {"budget_bytes": run["budget_bytes"], "tide_ms": run["steps"][-1]["ms"],
                      "tide_overhead": run["steps"][-1]["ms"] / free_ms - 1}
            if "bound_ms" in plan and "ms" in plan:
                point |= {key: plan[key] for key in (
                    "ample_ms", "ms", "bound_ms", "any_order_bound_ms", "reordered")}
                point["bound_overhead"] = plan["bound_ms"] / free_ms - 1
                point["any_order_bound_overhead"] = plan["any_order_bound_ms"] / free_ms - 1
                if point["ms"] < point["bound_ms"]:
                    sys.exit(f"{name}: a plan takes less than its bound: {point}")
        row["points"].append(point)
        print(f"{name} {point['saving']} %: {cell(point)} ({time.monotonic() - began:.0f} s)",
              file=sys.stderr, flush=True)
    return row


def cell(point):
    if "tide_ms" not in point:
        return "infeasible"
    tide = f"{100 * point['tide_overhead']:.1f} %"
    if "column" in point:
        tide = f"{point['budget_bytes'] / 2**30:.2f} GiB: {tide}"
    if "bound_overhead" not in point:
        return tide
    # Rounded down, as they are bounds.
    in_order, in_any = (math.floor(1000 * point[key]) / 10
                        for key in ("bound_overhead", "any_order_bound_overhead"))
    return f"{tide} (>= {in_order} %; any order {max(in_any, 0)} %)"


def table(rows):
    columns = [point.get("column", f"{point['saving']} %") for point in rows[0]["points"]]
    lines = ["| tide's longer step (least for any policy) | " + " | ".join(columns) + " |",
             "|" + "---|" * (len(columns) + 1)]
    return "\n".join(lines + [f"| {r['network']} | " + " | ".join(map(cell, r["points"])) + " |"
                              for r in rows])


def main():
    parser = output_parser(__doc__, "train_resnet", "train_bert")
    parser.add_argument("--savings", type=int, nargs="+")
    parser.add_argument("--no-tier", action="store_true", help="without a tier to offload to")
    args = parse(parser, NETWORKS)
    savings = args.savings or (SAVINGS_WITHOUT_TIER if args.no_tier else SAVINGS)
    rows = []
    for name in args.networks:
        rows.append(measure(args.build, name, savings, args.no_tier))
        if args.output:  # of what is known so far: a run takes long, and may be stopped
            write_report(args.output, about="longer step against saving: tide, and the least for "
                         "any policy, in the plan's order and in any", device=f"sim:{PROFILE}",
                         tier=not args.no_tier, steps=STEPS, rows=rows)
    print(table(rows))


if __name__ == "__main__":
    run_main(main)
