"""Figure 5: where in a step of ResNet-50 memory is saved, and where time is spent for it."""

import pathlib
import tempfile

import remat_methods
from monet import problems, published

NETWORK, SHARE, PARTS = "resnet50", 0.53, 12


def series(problem, events):
    """Each run: its node, ms at which it begins, bytes held, ms, and whether the node ran before."""
    now, seen, rows = 0.0, set(), []
    for node, held, ms in remat_methods.replay(problem, events):
        rows.append({"node": node, "at_ms": round(now, 4), "bytes": held, "ms": ms, "again": node in seen})
        seen.add(node)
        now += ms
    return rows


def measure(args, save, before=None):
    """`before`: a report that stays, if its step is the same and it had as many evaluations."""
    batch = published.BATCHES[NETWORK]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        problem, _ = problems.write(args, NETWORK, batch, ["--in-place", "--same-bit-variants"], folder, "all")
        plain, _ = problems.write(args, NETWORK, batch, [], folder, "plain")
        everything = problems.read(plain)
        entry = problems.entry_of(NETWORK, batch, everything)
        if before and before["evaluations"] >= args.nodes and problems.is_same_step(before, entry):
            return before
        budget = int(SHARE * entry["keep_all"])
        row = problems.plan(args, problem, budget, args.nodes, folder / "schedule.json")
        made = problems.read(problem)
        names = [node["name"] for node in made["nodes"]]
        ours = series(made, problems.read(folder / "schedule.json")["schedule"])
        kept = series(everything, remat_methods.keep_all_schedule(everything))
        for rows, known in ((ours, names), (kept, [node["name"] for node in everything["nodes"]])):
            for each in rows:
                each["node"] = known[each["node"]]
    report = {"profile": args.profile, "evaluations": args.nodes, **entry, "share": SHARE,
              "budget": budget, "plan": row, "kept": kept, "ours": ours}
    save(report)
    return report


def parts(report):
    """The step in parts of equal time when everything is kept: [(first and last node, peak kept, peak of
    ours, ms computed again in ours)]. A run again belongs to the part of the first run that follows it."""
    where, rows = {}, [{"nodes": [], "kept": 0, "ours": 0, "again_ms": 0.0} for _ in range(PARTS)]
    for run in report["kept"]:
        part = min(int(PARTS * run["at_ms"] / report["base_ms"]), PARTS - 1)
        where[run["node"]] = part
        rows[part]["nodes"].append(run["node"])
        rows[part]["kept"] = max(rows[part]["kept"], run["bytes"])
    waiting = []
    for run in report["ours"]:
        waiting.append(run)
        if run["again"] or run["node"] not in where:
            continue
        row = rows[where[run["node"]]]
        for each in waiting:
            row["ours"] = max(row["ours"], each["bytes"])
            row["again_ms"] += each["ms"] if each["again"] else 0
        waiting = []
    return rows


def print_tables(report):
    print(f"{report['network']}, batch {report['batch']}, share {report['share']}: "
          f"{100 * (report['plan']['ms'] / report['base_ms'] - 1):+.2f} % time.\n")
    print("| part of the step, from | to | keeping everything: GB at most | ours | saved | computed again, ms |")
    print("|---|---|---|---|---|---|")
    for row in parts(report):
        print(f"| {row['nodes'][0]} | {row['nodes'][-1]} | {row['kept'] / 1e9:.2f} | {row['ours'] / 1e9:.2f} | "
              f"{(row['kept'] - row['ours']) / 1e9:.2f} | {row['again_ms']:.1f} |")
    problems.print_optimizer([report])
