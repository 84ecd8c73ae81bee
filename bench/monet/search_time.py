"""Tables 2, 5 and 6: how soon a schedule is within 5 % and 2 % of the optimum. For our search, processor
seconds until its time is so close to the bound, which is at most the optimum; for MONeT's programs, what
the solver has after its limit."""

import concurrent.futures
import os
import pathlib
import re
import tempfile

import remat_methods
import reports
from monet import problems, published

SHARES = (0.7, 0.53, 0.4)
LADDER = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)  # evaluations
WITHIN = (5, 2)  # %
PROGRAMS = ("monet", "monet-noop")
SOLVED = re.compile(r"^ *([\d.]+) +[\d.]+ +\S+ \S+ +([\d.]+|-) +([\d.]+) +\d+$", re.MULTILINE)


def program(args, problem, budget, method):
    """MONeT's program by the solver, in wall-clock seconds."""
    code, said, errors, _ = problems.run(args, "--remat", problem, "--budget", budget, "--method", method,
                                         "--deadline", args.solver_limit, env=dict(os.environ))
    if not remat_methods.is_answer(code, errors):
        raise RuntimeError(f"{problem}, {method}: {errors.strip()}")
    row = {"method": method, "note": (errors.strip().splitlines() or [""])[0].removeprefix("plan_graph: ")}
    found, sizes = SOLVED.search(said), remat_methods.PROGRAM.search(said)
    if sizes:
        row["status"] = sizes[3]
    if found:
        row.update(ms=float(found[1]), own_bound_ms=float(found[2]) if found[2] != "-" else None,
                   seconds=float(found[3]))
    return row


def climb(args, problem, budget):
    """Our search with more and more evaluations, as far as 2 % is proven."""
    rows = []
    for nodes in LADDER:
        row = {"evaluations": nodes, **problems.plan(args, problem, budget, nodes)}
        if row.get("none") == "proven":
            return [row]
        rows.append(row)
    return rows


def measure(args, save, before=None):
    """`before`: a report whose networks stay, but those that are named and are of another step or had
    less time; these are replaced when they are complete."""
    report = {"profile": args.profile, "solver_limit_s": args.solver_limit,
              "networks": problems.entries_of(before, "solver_limit_s")}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder, tasks = pathlib.Path(name), []
        for network in args.networks:
            if network not in published.BATCHES or network == "unet3d":
                continue
            problem, _ = problems.write(args, network, published.BATCHES[network], ["--in-place"], folder, "all")
            entry = {**problems.entry_of(network, published.BATCHES[network], problems.read(problem)),
                     "solver_limit_s": args.solver_limit, "commit": reports.stamp()["commit"],
                     "processor": reports.cpu_name()}
            if problems.has(report, entry, "solver_limit_s"):
                continue
            tasks.append((entry, []))
            for share in SHARES:
                budget = int(share * entry["keep_all"])
                tasks[-1][1].append((share, pool.submit(climb, args, problem, budget),
                                     [pool.submit(program, args, problem, budget, method)
                                      for method in PROGRAMS]))
        for entry, points in tasks:
            entry["points"] = [{"share": share, "ours": ours.result(),
                                "programs": [each.result() for each in theirs]}
                               for share, ours, theirs in points]
            problems.put(report, entry)
            save(report)
    return report


def reached(point, within):
    """The first rung that is proven so close, by the best bound of all."""
    bound = max((row["bound_ms"] for row in point["ours"] if "ms" in row), default=None)
    return next((row for row in point["ours"] if "ms" in row and row["ms"] <= bound * (1 + within / 100)), None)


def print_tables(report):
    print("| network, batch | share | " + " | ".join(f"ours to {w} %" for w in WITHIN)
          + " | gap at the end | "
          + " | ".join(f"{remat_methods.LABELS[m]} after {report['solver_limit_s']:g} s" for m in PROGRAMS) + " |")
    print("|---" * (len(WITHIN) + len(PROGRAMS) + 3) + "|")
    for entry in report["networks"]:
        for point in entry["points"]:
            cells = []
            for within in WITHIN:
                row = reached(point, within)
                cells.append(f"{row['cpu_s']:.2f} s" if row else "not proven")
            last = point["ours"][-1]
            if "ms" in last:
                bound = max(row["bound_ms"] for row in point["ours"] if "ms" in row)
                cells.append(f"{100 * (min(r['ms'] for r in point['ours'] if 'ms' in r) / bound - 1):.2f} %")
            else:
                cells = ["none, proven" if last["none"] == "proven" else "none found"] * (len(WITHIN) + 1)
            for row in point["programs"]:
                cells.append(solved(row))
            print(f"| {entry['network']}, {entry['batch']} | {point['share']} | " + " | ".join(cells) + " |")
    problems.print_optimizer(report["networks"])


def solved(row):
    if "ms" not in row:
        if remat_methods.is_unloaded(row["note"]):
            return "could not be loaded"
        return "infeasible, proven" if row.get("status") == "infeasible" else "no solution"
    if row.get("status") == "optimal":
        return f"optimal, {row['seconds']:.1f} s"
    gap = 100 * (row["ms"] / row["own_bound_ms"] - 1) if row["own_bound_ms"] else None
    return f"{gap:.1f} % from its bound" if gap is not None else "a solution without a bound"
