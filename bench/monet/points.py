"""Figures 3 and 8 and tables 1, 3 and 7: MONeT's published points beside plans of our networks at its
batch sizes and shares of memory: by our search (also at the bytes that MONeT took), by MONeT's program, by
Chen's and Gist's methods.

Every plan but those "without in place" is a schedule with addresses that a session could run,
validated. Overheads are of planned time, the sum over runs; the simulator's, with uploads and moves,
is compared with it. The limits are seconds for each plan. A report that exists is completed: what it
has by limits at least as long is kept. Without a solver (BUILDING.md) MONeT's columns say so."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import tempfile

import remat_methods
import reports
from monet import problems
from monet.published import POINTS as PUBLISHED

SHOWN = (0, 2, 4, 5)  # of each network's points
SAME_BYTES = "at the same bytes"  # our search, with what MONeT took as its budget
METHODS = ["default", SAME_BYTES, "without in place", "monet", "monet-noop", "monet-eager",
           "chen-budget", "gist", "checkmate"]
LABELS = {**remat_methods.LABELS, SAME_BYTES: "ours, at MONeT's bytes",
          "without in place": "ours, without in place"}
SOLVED = {"monet", "monet-noop", "monet-eager", "checkmate"}
ROW = re.compile(r"^ *(planned|simulated) +([\d.]+) +([\d.]+) +(\d+)(?: +(\d+))?$", re.MULTILINE)
PLAIN = re.compile(r"^ *([\d.]+) +([\d.]+) +\S+ \S+ ", re.MULTILINE)


def run(args, *words):
    return subprocess.run([str(args.program), *map(str, words)], capture_output=True, text=True,
                          check=False)


def capture(args, network, folder):
    """The step and its problem, without variants that run in place."""
    batch = PUBLISHED[network][0]
    graph, problem = folder / f"{network}.graph.json", folder / f"{network}.json"
    done = run(args, "--model", network, "--batch", batch, "--profile", args.profile, "--save-graph", graph,
               "--write-remat", problem)
    if done.returncode != 0:
        raise RuntimeError(f"{network}: {done.stderr.strip()}")
    made = json.loads(problem.read_text())
    return {"network": network, "batch": batch, "nodes": len(made["nodes"]),
            "fixed_bytes": made["fixed_bytes"], "keep_all": remat_methods.keep_all(made),
            "base_ms": made["base_time"], "plans": []}


def limit_of(method):
    return "solver_limit" if method in SOLVED else "search_limit"


def plan(args, network, budget, method, folder):
    """What plan_graph says of one method at one budget."""
    limit = getattr(args, limit_of(method))
    if method == "without in place":
        done = run(args, "--remat", folder / f"{network}.json", "--budget", budget, "--deadline", limit)
    else:
        schedule = folder / f"{network}.{budget}.{method}.schedule.json"
        done = run(args, folder / f"{network}.graph.json", "--profile", args.profile, "--budget", budget,
                   "--method", "default" if method == SAME_BYTES else method, "--deadline", limit,
                   "--save-schedule", schedule)
        schedule.unlink(missing_ok=True)
    row = {"method": method, "budget": budget, "limit_s": limit, "load": os.getloadavg()[0],
           "commit": reports.stamp()["commit"], "processor": reports.cpu_name(),
           "note": (done.stderr.strip().splitlines() or [""])[0].removeprefix("plan_graph: ")}
    answered = remat_methods.is_answer(done.returncode, done.stderr)
    if not answered and (done.returncode != 2 or method not in ("gist", "checkmate")):
        raise RuntimeError(f"{network} {budget} {method}: {done.stderr}")
    program = remat_methods.PROGRAM.search(done.stdout)
    if program:
        row.update(variables=int(program[1]), rows=int(program[2]), status=program[3])
    for what, time, ratio, peak, margin in ROW.findall(done.stdout):
        row[what] = {"ms": float(time), "ratio": float(ratio), "peak": int(peak)}
        if margin:
            row["margin"] = int(margin)
    if method == "without in place" and done.returncode == 0:
        time, ratio = PLAIN.search(done.stdout).groups()
        row["planned"] = {"ms": float(time), "ratio": float(ratio)}
    return row


def overhead(row):
    """In %, beyond running every node once; None: there is no schedule."""
    return 100 * (row["planned"]["ratio"] - 1) if "planned" in row else None


def cell(row):
    if row is None:
        return "-"
    over = overhead(row)
    if over is None:
        note = row["note"]
        if "no solver" in note:
            return "no solver"
        if "infeasible" in note or "no schedule fits" in note:
            return "none, proven"
        if "riders" in note:
            return "cannot read it"
        return "not solved in time" if "time" in note else "none"
    return f"{over:+.2f} %" + (", proven" if row.get("status") == "optimal" else "")


def points(network):
    """Share of what PyTorch takes, MONeT's overhead in %."""
    batch, pytorch, series = PUBLISHED[network]
    listed = list(series.items())
    return [(listed[k][0] / (pytorch or 1), listed[k][1]) for k in SHOWN if k < len(listed)]


def budget_of(entry, share, method):
    """Of our keep-everything peak; at the same bytes, of PyTorch's. None: its bytes are not known."""
    if method != SAME_BYTES:
        return int(share * entry["keep_all"])
    pytorch = PUBLISHED[entry["network"]][1]
    return pytorch and int(share * pytorch * 1e9)


def print_tables(report):
    methods = [m for m in METHODS if m != "checkmate"]
    print("| network, batch | share of memory | MONeT as published, P100 | "
          + " | ".join(LABELS[m] for m in methods) + " |")
    print("|---" * (len(methods) + 3) + "|")
    for entry in report["networks"]:
        rows = {(row["method"], row["share"]): row for row in entry["plans"]}
        for share, published in points(entry["network"]):
            print(f"| {entry['network']}, {entry['batch']} | {share:.2f} | {published:+.2f} % | "
                  + " | ".join(cell(rows.get((m, round(share, 4)))) for m in methods) + " |")
    print("\n| network | least share with at most 10 % more time: published | "
          + " | ".join(LABELS[m] for m in methods) + " |")
    print("|---" * (len(methods) + 2) + "|")
    for entry in report["networks"]:
        known = [share for share, over in points(entry["network"]) if over <= 10]

        def least(method, entry=entry):
            shares = [row["share"] for row in entry["plans"] if row["method"] == method
                      and overhead(row) is not None and overhead(row) <= 10]
            return f"{min(shares):.2f}" if shares else "none"
        print(f"| {entry['network']} | {min(known):.2f} | " + " | ".join(map(least, methods)) + " |")
    print("\n| network | forward and backward nodes | program: variables, rows | NoOp's | Checkmate's |")
    print("|---|---|---|---|---|")
    for entry in report["networks"]:
        sizes = []
        for method in ("monet", "monet-noop", "checkmate"):
            row = next((r for r in entry["plans"] if r["method"] == method and "variables" in r), None)
            sizes.append(f"{row['variables']}, {row['rows']}" if row else "no solver")
        print(f"| {entry['network']} | {entry['nodes']} | " + " | ".join(sizes) + " |")
    print()
    for line in statements(report):
        print("- " + line)


def statements(report):
    """What the tables say, counted."""
    rows = [row for entry in report["networks"] for row in entry["plans"]]
    made = [row for row in rows if "simulated" in row]
    longer = [row["simulated"]["ms"] / row["planned"]["ms"] - 1 for row in made]
    yield (f"{len(made)} schedules were decoded, laid out and validated; {sum(1 for r in made if r['margin'])} "
           f"needed a margin, the largest {max((r['margin'] / r['budget'] for r in made), default=0):.1%} of "
           f"the budget. The simulator takes {100 * min(longer, default=0):+.3f} % to "
           f"{100 * max(longer, default=0):+.3f} % of the planned time longer: uploads and moves.")
    for method, where in (("default", "at the same shares"), (SAME_BYTES, SAME_BYTES)):
        ours = {(entry["network"], row["share"]): overhead(row) for entry in report["networks"]
                for row in entry["plans"] if row["method"] == method}
        beside = [(ours[entry["network"], round(share, 4)], published) for entry in report["networks"]
                  for share, published in points(entry["network"]) if budget_of(entry, share, method)]
        yield (f"Beside MONeT's published points, {where}, ours takes less time at "
               f"{sum(a is not None and a < b for a, b in beside)} of {len(beside)}, more at "
               f"{sum(a is not None and a >= b for a, b in beside)}, and has no schedule at "
               f"{sum(a is None for a, _ in beside)}.")
    for other in [m for m in METHODS if m not in ("default", SAME_BYTES)]:
        pairs = []
        for entry in report["networks"]:
            by = {(row["method"], row["share"]): overhead(row) for row in entry["plans"]}
            pairs += [(by["default", share], over) for (m, share), over in by.items() if m == other]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        alone = sum(a is not None and b is None for a, b in pairs)
        yield (f"{LABELS[other]}: a schedule at {sum(b is not None for _, b in pairs)} of {len(pairs)} points; "
               f"ours takes less time at {sum(a < b - 1e-3 for a, b in both)} of the {len(both)} where both have "
               f"one, more at {sum(a > b + 1e-3 for a, b in both)}; ours alone has one at {alone}.")


def measure(args, save, before=None):
    """`before`: the report that is completed."""
    known = {entry["network"]: entry for entry in (before or {}).get("networks", [])}
    for row in (row for entry in known.values() for row in entry["plans"]):
        row.setdefault("limit_s", before[limit_of(row["method"]) + "_s"])
        row.setdefault("processor", before["processor"])
    others = [entry for network, entry in known.items() if network not in args.networks]
    report = {"profile": args.profile, "jobs": args.jobs,
              "search_limit_s": args.search_limit, "solver_limit_s": args.solver_limit}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = pathlib.Path(name)
        entries = [{**capture(args, network, folder), **known.get(network, {})}
                   for network in args.networks if network in PUBLISHED]
        tasks = []
        for entry in entries:
            have = {(row["method"], row["share"]) for row in entry["plans"]
                    if row["limit_s"] >= getattr(args, limit_of(row["method"]))}
            for share, _ in points(entry["network"]):
                tasks += [(entry, round(share, 4), pool.submit(plan, args, entry["network"],
                                                               budget_of(entry, share, method), method, folder))
                          for method in METHODS
                          if (method, round(share, 4)) not in have and budget_of(entry, share, method)]
        for entry, share, task in tasks:
            row = {"share": share, **task.result()}
            entry["plans"] = [*(r for r in entry["plans"] if (r["method"], r["share"])
                                != (row["method"], share)), row]
            report["networks"] = problems.in_order([*entries, *others])
            save(report)
        report["networks"] = problems.in_order([*entries, *others])
    return report
