"""Figures 3 and 8 and tables 1, 3 and 7: MONeT's published points beside plans of our networks at its
batch sizes and shares of memory: by our search (also at the bytes that MONeT took), by MONeT's program, by
Chen's and Gist's methods.

Every plan but those "without in place" is a schedule with addresses that a session could run,
validated. Overheads are of planned time, the sum over runs; the simulator's, with uploads and moves,
is compared with it. Steps are updated by SGD without momentum: MONeT's runs have no optimizer state.
The limits are seconds for each plan. A report that exists is completed: what it has of the same step by
limits at least as long is kept. Without a solver (BUILDING.md) MONeT's columns say so."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import tempfile

import remat_methods
import reports
from monet import problems
from monet.published import BATCHES, FEWER, GIB
from monet.published import POINTS as PUBLISHED

SAME_BYTES = "at the same bytes"  # our search, with what MONeT took as its budget
METHODS = ["default", SAME_BYTES, "without in place", "monet", "monet-noop", "monet-eager",
           "chen-budget", "gist", "checkmate"]
LABELS = {**remat_methods.LABELS, SAME_BYTES: "ours, at MONeT's bytes",
          "without in place": "ours, without in place"}
# A row without a schedule that says nothing about schedules.
UNANSWERED = ("not solved in time", "could not be loaded", "cannot read it", "no solver")
SOLVED = {"monet", "monet-noop", "monet-eager", "checkmate"}
ROW = re.compile(r"^ *(planned|simulated) +([\d.]+) +([\d.]+) +(\d+)(?: +(\d+))?$", re.MULTILINE)
PLAIN = re.compile(r"^ *([\d.]+) +([\d.]+) +\S+ \S+ ", re.MULTILINE)


def run(args, *words):
    return subprocess.run([str(args.program), *map(str, words)], capture_output=True, text=True,
                          check=False)


def capture(args, network, folder):
    """The step and its problem, without variants that run in place."""
    problem, _ = problems.write(args, network, BATCHES[network], [], folder, "plain")
    return {**problems.entry_of(network, BATCHES[network], problems.read(problem)), "plans": []}


def limit_of(method):
    return "solver_limit" if method in SOLVED else "search_limit"


def plan(args, network, budget, method, folder):
    """What plan_graph says of one method at one budget."""
    limit = getattr(args, limit_of(method))
    if method == "without in place":
        done = run(args, "--remat", folder / f"{network}.plain.json", "--budget", budget, "--deadline", limit)
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


def why_none(row):
    """Of a row without a schedule."""
    note = row["note"]
    if "no solver" in note:
        return "no solver"
    if "infeasible" in note or "no schedule fits" in note:
        return "none, proven"
    if "riders" in note:
        return "cannot read it"
    if remat_methods.is_unloaded(note):
        return "could not be loaded"
    return "not solved in time" if "time" in note else "none"


def cell(row):
    if row is None:
        return "-"
    over = overhead(row)
    if over is None:
        return why_none(row)
    return f"{over:+.2f} %" + (", proven" if row.get("status") == "optimal" else "")


def points(network):
    """Share of what PyTorch takes, MONeT's overhead in %."""
    batch, pytorch, series = PUBLISHED[network]
    return [(taken / (pytorch or 1), over) for taken, over in series.items()]


def budget_of(entry, share, method):
    """Of our keep-everything peak; at the same bytes, of PyTorch's. None: its bytes are not known."""
    if method != SAME_BYTES:
        return int(share * entry["keep_all"])
    pytorch = PUBLISHED[entry["network"]][1]
    return pytorch and int(share * pytorch * GIB)


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
    print("\n| network | forward and backward nodes | program before presolving: variables, rows | NoOp's | "
          "Checkmate's |")
    print("|---|---|---|---|---|")
    for entry in report["networks"]:
        sizes = [size_of(entry, method) for method in ("monet", "monet-noop", "checkmate")]
        print(f"| {entry['network']} | {entry['nodes']} | " + " | ".join(
            f"{size['variables']}, {size['rows']}" if size else "-" for size in sizes) + " |")
    problems.print_optimizer(report["networks"])
    print()
    for line in statements(report):
        print("- " + line)


def size_of(entry, method):
    """A row with the size of the method's program. None: it was not written."""
    return next((row for row in entry["plans"] if row["method"] == method and "variables" in row), None)


def fewer(report, method, what):
    """Than in Checkmate's program, in % of it, of each network that has both."""
    sizes = [(size_of(entry, method), size_of(entry, "checkmate")) for entry in report["networks"]]
    return [100 * (1 - mine[what] / theirs[what]) for mine, theirs in sizes if mine and theirs]


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
                  for share, published in points(entry["network"])
                  if (entry["network"], round(share, 4)) in ours]
        yield (f"Beside MONeT's published points, {where}, ours takes less time at "
               f"{sum(a is not None and a < b for a, b in beside)} of {len(beside)}, more at "
               f"{sum(a is not None and a >= b for a, b in beside)}, and has no schedule at "
               f"{sum(a is None for a, _ in beside)}.")
    for other in [m for m in METHODS if m not in ("default", SAME_BYTES)]:
        pairs = []
        for entry in report["networks"]:
            by = {(row["method"], row["share"]): row for row in entry["plans"]}
            pairs += [(overhead(by["default", share]), row) for (m, share), row in by.items()
                      if m == other and ("default", share) in by]
        both = [(a, overhead(row)) for a, row in pairs if a is not None and overhead(row) is not None]
        without = [(a, why_none(row)) for a, row in pairs if overhead(row) is None]
        unknown = [(a, why) for a, why in without if why in UNANSWERED]
        counts = [f"{sum(why == each for _, why in without)} {each}" for each in UNANSWERED
                  if any(why == each for _, why in without)]
        alone = sum(a is not None for a, _ in without) - sum(a is not None for a, _ in unknown)
        yield (f"{LABELS[other]}: a schedule at {len(pairs) - len(without)} of {len(pairs)} points"
               + (f" ({', '.join(counts)})" if counts else "")
               + f"; ours takes less time at {sum(a < b - 1e-3 for a, b in both)} of the {len(both)} where "
               f"both have one, more at {sum(a > b + 1e-3 for a, b in both)}; ours alone has one at {alone}"
               + (f", and at {sum(a is not None for a, _ in unknown)} where the other gave no answer"
                  if unknown else "") + ".")
    for method, shares in FEWER.items():
        for what, published in shares.items():
            ours = fewer(report, method, what)
            if ours:
                yield (f"{LABELS[method]}'s program, before presolving, has on average "
                       f"{sum(ours) / len(ours):.0f} % fewer {what} than Checkmate's ({min(ours):.0f} to "
                       f"{max(ours):.0f} %, {len(ours)} networks); published, after presolving: "
                       f"{published} %.")


def measure(args, save, before=None):
    """`before`: the report that is completed; a network whose step has changed begins anew."""
    known = {entry["network"]: entry for entry in (before or {}).get("networks", [])}
    for row in (row for entry in known.values() for row in entry["plans"]):
        row.setdefault("limit_s", before[limit_of(row["method"]) + "_s"])
        row.setdefault("processor", before["processor"])
    others = [entry for network, entry in known.items() if network not in args.networks]
    report = {"profile": args.profile, "jobs": args.jobs,
              "search_limit_s": args.search_limit, "solver_limit_s": args.solver_limit}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = pathlib.Path(name)
        entries = []
        for network in args.networks:
            if network in PUBLISHED:
                entry = capture(args, network, folder)
                old = known.get(network, {})
                entries.append({**entry, **old} if problems.is_same_step(old, entry) else entry)
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
