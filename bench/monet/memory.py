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


def measure_network(args, network, folder):
    files = {name: problems.write(args, network, published.BATCHES[network], switches, folder, name)[0]
             for name, switches in SWITCHES.items()}
    plain = problems.read(files["recomputation alone"])
    entry = {"network": network, "batch": published.BATCHES[network], "fixed_bytes": plain["fixed_bytes"],
             "keep_all": remat_methods.keep_all(plain), "base_ms": plain["base_time"],
             "evaluations": args.nodes, "commit": reports.stamp()["commit"],
             "processor": reports.cpu_name()}
    entry["least"] = {name: least(args, files[name], entry) for name in SWITCHES}
    entry["gist"] = gist(args, files["all"], entry)
    return entry


def measure(args, save, before=None):
    """`before`: a report whose networks stay, but those that are named and had fewer evaluations."""
    report = {"profile": args.profile, **problems.split(before, args.networks, "evaluations", args.nodes)}
    names = [network for network in args.networks if network in published.BATCHES
             and network not in {entry["network"] for entry in report["networks"]}]
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for entry in pool.map(lambda network: measure_network(args, network, pathlib.Path(name)), names):
            report["networks"] = problems.in_order([*report["networks"], entry])
            save(report)
    return report


def print_tables(report):
    def gb(size):
        return f"{size / 1e9:.2f}"

    print("| network, batch | PyTorch, GB, published | MONeT at 10 % more time, GB, from its points | its "
          "share | ours, keeping everything, GB | ours at 10 %, GB | its share | by recomputation alone, GB | "
          "its share |")
    print("|---" * 9 + "|")
    for entry in report["networks"]:
        pytorch = published.POINTS[entry["network"]][1]
        monet = published.least_gb(entry["network"], MOST)
        cells = ["-"] * 3
        if monet:
            at_most = "" if monet[1] else "at most "
            cells = [f"{pytorch}", f"{at_most}{monet[0]:.2f}", f"{at_most}{monet[0] / pytorch:.2f}"]
        cells.append(gb(entry["keep_all"]))
        for row in entry["least"].values():
            cells += [gb(row["budget"]), f"{row['budget'] / entry['keep_all']:.2f}"] if row else ["none"] * 2
        print(f"| {entry['network']}, {entry['batch']} | " + " | ".join(cells) + " |")
    print("\n| network | Gist: share of memory | its time | ours in that memory (bound) | ours at 10 % more: "
          "less memory than Gist by a factor of |")
    print("|---|---|---|---|---|")
    for entry in report["networks"]:
        made, best = entry["gist"], entry["least"]["all"]
        if "none" in made:
            print(f"| {entry['network']} | {made['none']} | | | |")
            continue

        def over(ms, base=entry["base_ms"]):
            return f"{round(100 * (ms / base - 1), 2) + 0.0:+.2f} %"
        ours = made["ours"]
        print(f"| {entry['network']} | {made['peak'] / entry['keep_all']:.2f} | {over(made['ms'])} | "
              + (f"{over(ours['ms'])} ({over(ours['bound_ms'])})" if "ms" in ours else "none") + " | "
              + (f"{made['peak'] / best['budget']:.2f}" if best else "-") + " |")
