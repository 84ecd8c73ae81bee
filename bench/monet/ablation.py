"""Figures 4, 6 and 8: our search with each ingredient off in turn."""

import concurrent.futures
import math
import pathlib
import tempfile

import remat_methods
import reports
from monet import problems, published

BATCHES = {**published.BATCHES, "bert-base": 32}
SHARES = (0.85, 0.7, 0.53, 0.4)  # of what keeping everything takes; 0.53 is figure 4's
OWN_SHARES = {"unet3d": (0.81, 0.54),  # figure 8's
              "vgg16": (0.95, 0.85, 0.77, 0.53)}  # its gradients alone take more than half
SEEDS = (1, 2, 3)  # of the search: one alone ends up to some tenths of a point apart
ALL = "all"
SWITCHES = {
    ALL: ["--in-place", "--same-bit-variants"],
    "without in place": ["--same-bit-variants"],
    "without variants": ["--in-place"],
    "recomputation alone": [],
    "without recomputation": ["--in-place", "--same-bit-variants", "--no-recompute"],
    "workspaces not counted": ["--in-place", "--same-bit-variants", "--no-workspace"],
}


def capture(args, network, folder):
    """The problems of a step; shares are of the one without in place, as in the points."""
    files, counts = {}, {}
    for name, switches in SWITCHES.items():
        files[name], offered = problems.write(args, network, BATCHES[network], switches, folder, name)
        made = problems.read(files[name])
        ways = [remat_methods.variants(node) for node in made["nodes"]]
        counts[name] = {"nodes": len(ways), "variants": sum(map(len, ways)), "offered": offered,
                        "in_place": sum("overwrites" in way for node in ways for way in node),
                        "once": sum(node.get("once", False) for node in made["nodes"]),
                        "workspace": sum(max(way["workspace"] for way in node) for node in ways)}
    plain = problems.read(files["recomputation alone"])
    return files, {**problems.entry_of(network, BATCHES[network], plain), "evaluations": args.nodes,
                   "seeds": SEEDS, "commit": reports.stamp()["commit"], "processor": reports.cpu_name(),
                   "problems": counts}


def measure_one(args, files, entry, share, name, folder):
    """The best plan of several seeds; where workspaces are not counted, also its peak with them."""
    budget = int(share * entry["keep_all"]) if share else entry["fixed_bytes"] + 1
    tries = []
    for seed in SEEDS:
        output = folder / f"{entry['network']}.{name}.{share}.{seed}.schedule.json"
        tries.append((problems.plan(args, files[name], budget, args.nodes, output, seed), output))
        if tries[-1][0].get("none") == "proven" and share:
            break
    best, output = min(tries, key=lambda each: each[0].get("ms", math.inf))
    row = {"share": share, "switches": name, **best}
    if "ms" in row:
        row["bound_ms"] = max(each["bound_ms"] for each, _ in tries if "ms" in each)
        made = problems.read(output)
        counted = remat_methods.peak(remat_methods.replay(problems.read(files[name]), made["schedule"]))
        if counted != row["peak"]:
            raise RuntimeError(f"{entry['network']}, {name}: replayed, the peak is {counted}")
        row["true_peak"] = counted
        if name == "workspaces not counted":
            row["true_peak"] = remat_methods.peak(
                remat_methods.replay(problems.read(files[ALL]), made["schedule"]))
    elif any("least" in each for each, _ in tries):
        row["least"] = min(each["least"] for each, _ in tries if "least" in each)
        row["least_is_proven"] = any(each.get("least_is_proven", False) for each, _ in tries)
    return row


def measure(args, save, before=None):
    """`before`: a report whose other networks stay, and those whose step is the same and had as many
    evaluations; the rest are replaced when they are complete."""
    report = {"profile": args.profile, "networks": problems.entries_of(before, "evaluations")}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = pathlib.Path(name)
        tasks = []
        for network in args.networks:
            files, entry = capture(args, network, folder)
            if not problems.has(report, entry, "evaluations"):
                tasks.append((entry, [pool.submit(measure_one, args, files, entry, share, each, folder)
                                      for share in (0, *OWN_SHARES.get(network, SHARES))  # 0: the least
                                      for each in SWITCHES]))
        for entry, plans in tasks:
            entry["plans"] = [task.result() for task in plans]
            problems.put(report, entry)
            save(report)
    return report


def over(entry, ms):
    """In %, never -0."""
    return round(100 * (ms / entry["base_ms"] - 1), 2) + 0.0


def cell(entry, rows, name):
    """A schedule without an ingredient is one with all, so their bound holds for it too; not where
    workspaces do not count."""
    row, bounds = rows[name], [rows[name].get("bound_ms", 0)]
    if "ms" not in row:
        return "none, proven" if row["none"] == "proven" else "none found"
    if name != "workspaces not counted":
        bounds.append(rows[ALL].get("bound_ms", 0))
    beyond = row["true_peak"] / row["budget"] - 1
    return (f"{over(entry, row['ms']):+.2f} % ({over(entry, max(bounds)):+.2f} %)"
            + (f", takes {beyond:+.1%}" if beyond >= 5e-4 else ""))


def least_cell(entry, row):
    return f"{row['least'] / entry['keep_all']:.3f}" + (", proven" if row["least_is_proven"] else "")


def print_tables(report):
    print("| network, batch | share | " + " | ".join(SWITCHES) + " |")
    print("|---" * (len(SWITCHES) + 2) + "|")
    for entry in report["networks"]:
        for share in sorted({row["share"] for row in entry["plans"]} - {0}, reverse=True):
            rows = {row["switches"]: row for row in entry["plans"] if row["share"] == share}
            print(f"| {entry['network']}, {entry['batch']} | {share} | "
                  + " | ".join(cell(entry, rows, name) for name in SWITCHES) + " |")
    print("\n| network | least share of memory: " + " | ".join(SWITCHES) + " |")
    print("|---" * (len(SWITCHES) + 1) + "|")
    for entry in report["networks"]:
        rows = {row["switches"]: row for row in entry["plans"] if row["share"] == 0}
        print(f"| {entry['network']} | " + " | ".join(least_cell(entry, rows[n]) for n in SWITCHES) + " |")
    print("\n| network | nodes | variants that run in place | other variants of the same bits | "
          "workspaces, GB in sum | most that a plan that ignores them takes, of its budget |")
    print("|---|---|---|---|---|---|")
    for entry in report["networks"]:
        every, plain = entry["problems"][ALL], entry["problems"]["recomputation alone"]
        beyond = [row["true_peak"] / row["budget"] for row in entry["plans"]
                  if row["switches"] == "workspaces not counted" and "true_peak" in row]
        saved = every["workspace"] - entry["problems"]["workspaces not counted"]["workspace"]
        print(f"| {entry['network']} | {plain['nodes']} | "
              f"{entry['problems']['without variants']['in_place'] - plain['in_place']} | {every['offered']} | "
              f"{saved / 1e9:.2f} | {max(beyond, default=0):.3f} |")
    problems.print_optimizer(report["networks"])
    print()
    for line in statements(report):
        print("- " + line)


def statements(report):
    """What each ingredient buys, counted over the points."""
    for name in [each for each in SWITCHES if each != ALL]:
        with_all, without, dearer, cheaper, lost, won = 0, 0, [], [], 0, 0
        for entry in report["networks"]:
            rows = {(row["share"], row["switches"]): row for row in entry["plans"] if row["share"]}
            for share in {share for share, _ in rows}:
                full, less = rows[share, ALL], rows[share, name]
                has, keeps = "ms" in full, "ms" in less
                with_all, without = with_all + has, without + keeps
                lost, won = lost + (has and not keeps), won + (keeps and not has)
                if has and keeps:
                    change = over(entry, less["ms"]) - over(entry, full["ms"])
                    (dearer if change > 0.005 else cheaper if change < -0.005 else []).append(change)
        yield (f"{name}: a schedule at {without} points, with all at {with_all} (lost {lost}, won {won}). Where "
               f"both have one, it takes more time at {len(dearer)}, by at most "
               f"{max(dearer, default=0):.2f} points of the base time, and less at {len(cheaper)}, by at most "
               f"{-min(cheaper, default=0):.2f}.")
