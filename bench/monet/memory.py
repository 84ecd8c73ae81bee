"""Tables 1 and 3: the least memory that costs at most 10 % more time, and Gist's encodings beside our
search in the memory that they take."""

import concurrent.futures
import math
import pathlib
import re
import tempfile

import remat_methods
import reports
from monet import ablation, problems, published

MOST = 10  # % more time
STEPS = 7  # bisections of the share: to within 1 %
SWITCHES = {"all": ["--in-place", "--same-bit-variants"], "recomputation alone": []}
GIST = re.compile(r"^ *([\d.]+) +[\d.]+ +\S+ \S+ +- +[\d.]+ +(\d+)$", re.MULTILINE)


def least(args, problem, entry):
    """The smallest budget tried within which our search takes at most MOST % more time."""
    low, best = entry["fixed_bytes"], None
    high = entry["keep_all"]
    for _ in range(STEPS):
        budget = (low + high) // 2
        tries = (problems.plan(args, problem, budget, args.nodes, seed=seed) for seed in ablation.SEEDS)
        good = next((row for row in tries
                     if row.get("ms", math.inf) <= entry["base_ms"] * (1 + MOST / 100)), None)
        low, high, best = (low, budget, good) if good else (budget, high, best)
    return best


def gist(args, problem, entry):
    code, said, errors, _ = problems.run(args, "--remat", problem, "--budget", 8 * entry["keep_all"],
                                         "--method", "gist")
    if code != 0:
        return {"none": errors.strip()}
    ms, peak = GIST.search(said).groups()
    return {"ms": float(ms), "peak": int(peak),
            "ours": problems.plan(args, problem, int(peak), args.nodes)}


def capture(args, network, folder):
    files = {name: problems.write(args, network, published.BATCHES[network], switches, folder, name)[0]
             for name, switches in SWITCHES.items()}
    plain = problems.read(files["recomputation alone"])
    return files, {**problems.entry_of(network, published.BATCHES[network], plain),
                   "evaluations": args.nodes, "commit": reports.stamp()["commit"],
                   "processor": reports.cpu_name()}


def measure_network(args, files, entry):
    return {**entry, "least": {name: least(args, files[name], entry) for name in SWITCHES},
            "gist": gist(args, files["all"], entry)}


def measure(args, save, before=None):
    """`before`: a report whose networks stay, but those that are named and are of another step or had
    fewer evaluations."""
    report = {"profile": args.profile, "evaluations": args.nodes,
              "networks": problems.entries_of(before, "evaluations")}
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        captured = [capture(args, network, pathlib.Path(name)) for network in args.networks
                    if network in published.BATCHES]
        tasks = [pool.submit(measure_network, args, files, entry) for files, entry in captured
                 if not problems.has(report, entry, "evaluations")]
        for task in tasks:
            problems.put(report, task.result())
            save(report)
    return report


def print_tables(report):
    def gib(size):
        return f"{size / published.GIB:.2f}"

    def over(entry, ms):
        return f"{round(100 * (ms / entry['base_ms'] - 1), 2) + 0.0:+.2f} %"

    print("| network, batch | PyTorch, GiB, published | MONeT at 10 % more time, GiB, from its points | its "
          "share | ours, keeping everything, GiB | ours at 10 %, GiB | its share | by recomputation alone, "
          "GiB | its share |")
    print("|---" * 9 + "|")
    for entry in report["networks"]:
        pytorch = published.POINTS[entry["network"]][1]
        monet = published.least_gib(entry["network"], MOST)
        cells = ["-"] * 3
        if monet:
            at_most = "" if monet[1] else "at most "
            cells = [f"{pytorch}", f"{at_most}{monet[0]:.2f}", f"{at_most}{monet[0] / pytorch:.2f}"]
        cells.append(gib(entry["keep_all"]))
        for row in entry["least"].values():
            cells += [gib(row["budget"]), f"{row['budget'] / entry['keep_all']:.2f}"] if row else ["none"] * 2
        print(f"| {entry['network']}, {entry['batch']} | " + " | ".join(cells) + " |")
    print("\n| network | keeping everything, GiB | Gist, GiB | its share | its time | "
          "ours in that memory (bound) |")
    print("|---" * 6 + "|")
    for entry in report["networks"]:
        made = entry["gist"]
        cells = [made.get("none", "")] + [""] * 3
        if "none" not in made:
            ours, beside = made["ours"], "none"
            if "ms" in ours:
                beside = f"{over(entry, ours['ms'])} ({over(entry, ours['bound_ms'])})"
            cells = [gib(made["peak"]), f"{made['peak'] / entry['keep_all']:.3f}",
                     over(entry, made["ms"]), beside]
        print(f"| {entry['network']} | {gib(entry['keep_all'])} | " + " | ".join(cells) + " |")
    problems.print_optimizer(report["networks"])
