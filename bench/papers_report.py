#!/usr/bin/env python3
"""Runs the DELTA paper's experiments on the simulator and writes what came of them.

    bench/papers_report.py [--build build/release] [--force] [--no-run]

One command: bench/paper_experiments makes JSON files in bench/results/papers (some minutes on two
cores; it goes on where it was stopped, and does nothing twice for the same commit and program),
and this writes report.md and its figures (SVG) beside them. Needs matplotlib (Debian:
python3-matplotlib).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

try:
    import matplotlib
except ModuleNotFoundError:  # another Python comes first in the path than Debian's
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    sys.exit("papers_report.py: matplotlib is missing (Debian: apt-get install python3-matplotlib)")
matplotlib.use("svg")
import matplotlib.colors  # noqa: E402
import matplotlib.patches  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
GB = 1e9

CURVES = {
    "resnet50_b256": "ResNet-50, batch 256",
    "resnet101_b128": "ResNet-101, batch 128",
    "bert_base_512_b32": "BERT-base, 512 tokens, batch 32",
    "efficientnet_b0_b256": "EfficientNet-B0, batch 256",
    "resnext50_b128": "ResNeXt-50 (32x4d), batch 128",
}
STYLES = {  # colour, line
    "tide": ("#0b6e99", "-"), "delta": ("#d1495b", "-"), "delta:lru": ("#d1495b", "--"),
    "delta:greedy": ("#d1495b", ":"), "dtr": ("#2e8b57", "-"), "lru": ("#8d99ae", "--"),
    "greedy": ("#8d99ae", ":"), "msps": ("#8a4fb0", "-"), "random": ("#c0c0c0", "-"),
    "checkpoint": ("#e09f3e", "-"), "offload-only": ("#5b4636", "-"),
}
OTHER_STYLE = ("#444444", "-.")
NAMES = {"delta": "delta (base)", "delta:lru": "delta (LRU)", "delta:greedy": "delta (GREEDY)"}
SAVINGS = [20, 30, 40, 50, 60, 70, 78, 80]
INVERSION = 0.05
TIE = 0.005  # of a step without a budget


def name(policy):
    return NAMES.get(policy, policy)


def style(policy):
    return STYLES.get(policy, OTHER_STYLE)


def load(folder, file):
    return json.loads((folder / f"{file}.json").read_text())


def percent(x, digits=1):
    return f"{100 * x:.{digits}f} %"


def gb(x):
    return f"{x / GB:.2f}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def ran(points):
    return [p for p in points if "ms" in p]


def outcome(point):
    if "ms" in point:
        return percent(point["overhead"])
    return f"> {point['gave_up_at_times']:.0f}x" if "gave_up_at_times" in point else "fails"


def at_share(points, share):
    """The point of this budget, if it was measured."""
    found = [p for p in points if abs(p["share"] - share) < 0.002]
    return found[0] if found else None


def inversions(points):
    """Budgets at which a step takes more than it does within a smaller one: (budget, smaller,
    how much more)."""
    found, best = [], None
    for point in ran(points):
        if best and point["ms"] > (1 + INVERSION) * best["ms"]:
            found.append((point["share"], best["share"], point["ms"] / best["ms"] - 1))
        if best is None or point["ms"] < best["ms"]:
            best = point
    return found


def policies_of(data):
    return {k: v for k, v in data["rows"].items() if isinstance(v, dict) and "points" in v}


def save(figure, path):
    # The same bytes from the same data.
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def axes_style(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)


# --- overhead against saving ---------------------------------------------------------------------


def draw_curves(data, title, path):
    figure, axes = plt.subplots(figsize=(7.4, 4.4), layout="constrained")
    for policy, row in policies_of(data).items():
        colour, line = style(policy)
        points = [p for p in ran(row["points"]) if p["share"] < 1]
        wide = policy in ("tide", "delta", "dtr")
        axes.plot([100 * (1 - p["share"]) for p in points],
                  [max(100 * p["overhead"], 0.05) for p in points], line, color=colour,
                  linewidth=2 if wide else 1.1, marker="o", markersize=3 if wide else 2,
                  label=name(policy))
    axes.set_yscale("log")
    axes.set_ylim(0.3, 2000)
    axes.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g} %")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g} %")
    axes.set_xlabel("memory saved, of the peak without a budget")
    axes.set_ylabel("longer step")
    axes.set_title(title, loc="left", fontsize=11)
    axes_style(axes)
    axes.legend(fontsize=8, frameon=False, ncol=1, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, path)


def curves_text(folder, parts):
    for model, title in CURVES.items():
        data = load(folder, f"curves_{model}")
        draw_curves(data, title, folder / f"curves_{model}.svg")
        rows = policies_of(data)
        need = next(iter(rows.values()))["need"]
        parts.append(f"### {title}\n\nWithout a budget {gb(need['unmanaged_peak'])} GB and "
                     f"{need['ms']:.1f} ms a step ({need['operators']} operators); the smallest "
                     f"feasible budget is {gb(need['minimum'])} GB, "
                     f"{percent(need['minimum'] / need['unmanaged_peak'])}.\n\n"
                     f"![Overhead against saving]({'curves_' + model}.svg)")
        shares = [s for s in SAVINGS if 1 - s / 100 >= need["minimum"] / need["unmanaged_peak"]]
        body = []
        for policy, row in rows.items():
            points = row["points"]
            cells = [outcome(p) if (p := at_share(points, 1 - s / 100)) else "" for s in shares]
            body.append([name(policy), *cells, outcome(points[0])])
        parts.append(table(["longer step at saving", *[f"{s} %" for s in shares], "smallest"], body))
        body = []
        for policy, row in rows.items():
            points, done = row["points"], ran(row["points"])
            found = inversions(points)
            worst = max(found, key=lambda f: f[2], default=None)
            body.append([name(policy), f"{len(done)} of {len(points)}",
                         "all" if all(p["kept"] for p in done) else "NOT ALL",
                         percent(done[0]["share"]) if done else "none",
                         len(found) or "none",
                         f"{percent(worst[0], 0)} takes {percent(worst[2])} more than "
                         f"{percent(worst[1], 0)}" if worst else ""])
        parts.append(table(["", "budgets that train", "kept", "from", "inversions above 5 %",
                            "the worst"], body))
        named = inversions(rows["tide"]["points"])
        parts.append("tide's inversions: " + ("; ".join(
            f"{percent(b, 0)} of the peak takes {percent(m)} more than {percent(s, 0)}"
            for b, s, m in named) if named else "none") + ".")
        behind = []
        for i, point in enumerate(rows["tide"]["points"]):
            rivals = [(r["points"][i]["overhead"], p) for p, r in rows.items()
                      if p != "tide" and "ms" in r["points"][i]]
            if "ms" in point and rivals and min(rivals)[0] < point["overhead"] - TIE:
                best = min(rivals)
                behind.append(f"{percent(point['share'], 0)} ({name(best[1])} {percent(best[0])}, "
                              f"tide {percent(point['overhead'])})")
        parts.append(f"Budgets at which another policy is ahead of tide by more than "
                     f"{percent(TIE)} of a step: " + ("; ".join(behind) or "none") + ".")


# --- the aims ----------------------------------------------------------------------------


def aims(folder, parts):
    def overhead(model, saving):
        points = load(folder, f"curves_{model}")["rows"]["tide"]["points"]
        return at_share(points, 1 - saving / 100)

    rows = []

    def add(what, point, aim, key="overhead"):
        value = point.get(key) if point else None
        rows.append([what, percent(aim), percent(value) if value is not None else "does not train",
                     "yes" if value is not None and value <= aim else "no"])

    for saving, aim in [(50, 0.035), (60, 0.05), (70, 0.07)]:
        add(f"ResNet-50, batch 256, {saving} % saved", overhead("resnet50_b256", saving), aim)
    add("ResNet-101, batch 128, 78 % saved", overhead("resnet101_b128", 78), 0.08)
    eager = load(folder, "bert_against_eager")["rows"]["tide"]
    point = next(p for p in eager["points"] if p["saving_against_eager"] == 70)
    add("BERT-base 512, 70 % saved against eager attention's peak and time", point, 0.06,
        "overhead_against_eager")
    parts.append(table(["tide", "aim: at most", "longer step", "reached"], rows))
    row = load(folder, "max_batch")["rows"]["resnet50 tide"]
    four = next((p for p in row["curve"] if p["times"] >= 3.99), None)
    speed = percent(four["speed"]) if four and "speed" in four else "does not train"
    parts.append(f"Four times the largest batch of ResNet-50 without a budget, in 80 GiB: "
                 f"{speed} of its speed (aim: 91 %).")


# --- tables II to IV -----------------------------------------------------------------------------

PEAK_NAMES = {
    "resnet50_b128": "ResNet-50, 128", "resnet50_b256": "ResNet-50, 256",
    "resnet101_b128": "ResNet-101, 128", "resnext50_b128": "ResNeXt-50, 128",
    "bert_base_squad_b32": "BERT-base SQuAD 384, 32, eager attention",
}


def peaks(folder, parts):
    data = load(folder, "peaks")["rows"]
    body = []
    for key, row in data.items():
        need, paper = row["need"], row["paper_mb"]
        body.append([PEAK_NAMES[key], f"{paper['baseline'] / 1e3:.1f}",
                     f"{paper['dtr'] / 1e3:.1f}" if paper["dtr"] else "",
                     f"{paper['delta'] / 1e3:.1f} ({percent(1 - paper['delta'] / paper['baseline'], 0)})",
                     gb(need["unmanaged_peak"]), gb(row["minimum_without_host"]),
                     gb(need["minimum"])])
    parts.append(table(["model, batch", "paper: baseline GB", "paper: DTR", "paper: DELTA (saved)",
                        "ours: baseline GB", "smallest feasible, no host memory (DTR)",
                        "smallest feasible, with host memory"], body))
    def rows(cell):
        return [[PEAK_NAMES[key], *(cell(row, policy) for policy in ("dtr", "delta", "tide"))]
                for key, row in data.items()]

    def at_the_share(row, policy):
        point = row["at_the_papers_share"][policy]
        return (f"{gb(point['peak'])} GB, {outcome(point)}" if "ms" in point
                else f"{gb(point['budget'])} GB: {outcome(point)}")

    def smallest(row, policy):
        point = row["smallest_within_twice_the_time"][policy]
        return (f"{gb(point['budget'])} GB, {percent(1 - point['share'], 0)} saved, "
                f"{outcome(point)}" if point else "none")

    parts.append("The same share of the peak as the paper's DELTA (or the smallest that is "
                 "feasible, where that is more), and how much longer a step takes:")
    parts.append(table(["model, batch", "DTR (evicts only, no host memory)", "DELTA", "tide"],
                       rows(at_the_share)))
    parts.append("The smallest budget, in steps of 2 % of the peak, down to which a step takes at "
                 "most twice as long:")
    parts.append(table(["model, batch", "DTR", "DELTA", "tide"], rows(smallest)))


PAPER_BATCH = {"resnet50": {"none": (891, 71.54), "dtr": (1072, 32.87), "delta": (1814, 62.6)},
               "resnet101": {"none": (594, 71.54), "dtr": (761, 28.65), "delta": (1336, 45.05)}}


def max_batch(folder, parts):
    data = load(folder, "max_batch")["rows"]
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained", sharey=True)
    for ax, network, title in zip(axes, ("resnet50", "resnet101"), ("ResNet-50", "ResNet-101")):
        body = []
        base = data[f"{network} none"]
        paper = PAPER_BATCH[network]
        body.append(["baseline", paper["none"][0], "1", base["baseline_batch"], "1", "100 %", ""])
        for policy in ("dtr", "delta", "tide"):
            row = data[f"{network} {policy}"]
            colour, line = style(policy)
            points = [p for p in row["curve"] if "speed" in p]
            ax.plot([1] + [p["times"] for p in points], [100] + [100 * p["speed"] for p in points],
                    line, color=colour, marker="o", markersize=3, linewidth=1.8, label=policy)
            largest = row["largest"]
            given = paper.get(policy)
            body.append([policy, given[0] if given else "",
                         f"{given[0] / paper['none'][0]:.2f}" if given else "",
                         largest["batch"], f"{largest['times']:.2f}",
                         percent(largest["speed"]) if "speed" in largest else outcome(largest),
                         gb(largest["host_peak"]) if "host_peak" in largest else ""])
        ax.axvline(paper["delta"][0] / paper["none"][0], color="#d1495b", linewidth=0.8,
                   linestyle=":")
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel("batch, times the largest without a budget")
        ax.set_ylim(0, 105)
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:g} %")
        axes_style(ax)
        parts.append(f"{title}, 80 GiB:")
        parts.append(table(["", "paper: largest batch", "times", "ours: largest batch", "times",
                            "images per second, of the baseline's", "host memory used, GB"], body))
    axes[0].set_ylabel("images per second, of the baseline")
    axes[1].legend(fontsize=8, frameon=False)
    save(figure, folder / "max_batch.svg")
    parts.append("![Speed against batch](max_batch.svg)\n\nThe dotted line is DELTA's largest "
                 "batch in the paper.")
    body = []
    for network in ("resnet50", "resnet101"):
        for policy in ("dtr", "delta", "tide"):
            points = data[f"{network} {policy}"]["curve"]
            body.append([network, policy, *[
                percent(p["speed"], 0) if p and "speed" in p else (outcome(p) if p else "")
                for p in [next((q for q in points if abs(q["times"] - t) < 0.03), None)
                          for t in (1.2, 1.5, 2.04, 2.5, 3, 4, 5)]]])
    parts.append(table(["images per second at batch", "", "1.2x", "1.5x", "2.04x", "2.5x", "3x", "4x",
                        "5x"], body))


# --- figures 7 and 8, overlap, table V -----------------------------------------------------------


def figure7(folder, parts):
    models = ["resnet50_b256", "efficientnet_b0_b256", "resnext50_b128"]
    figure, axes = plt.subplots(2, 3, figsize=(10, 5.4), layout="constrained", sharey="row")
    for column, model in enumerate(models):
        rows = load(folder, f"curves_{model}")["rows"]
        for policy in ("delta", "delta:lru", "delta:greedy", "tide"):
            colour, _ = style(policy)
            line = {"delta": "-", "delta:lru": "--", "delta:greedy": ":", "tide": "-"}[policy]
            points = ran(rows[policy]["points"])
            budget = [p["budget"] / GB for p in points]
            axes[0][column].plot(budget, [p["peak"] / GB for p in points], line, color=colour,
                                 linewidth=1.6, label=name(policy))
            axes[1][column].plot(budget, [100 * p["overhead"] for p in points], line, color=colour,
                                 linewidth=1.6, label=name(policy))
        axes[0][column].set_title(CURVES[model], loc="left", fontsize=10)
        axes[1][column].set_xlabel("budget, GB")
        axes[1][column].set_ylim(0, 400)
        axes[1][column].yaxis.set_major_formatter(lambda y, _: f"{y:g} %")
        for ax in (axes[0][column], axes[1][column]):
            axes_style(ax)
    axes[0][0].set_ylabel("memory used, GB")
    axes[1][0].set_ylabel("longer step")
    axes[0][2].legend(fontsize=8, frameon=False)
    save(figure, folder / "fig7.svg")
    parts.append("![The three filters over budgets](fig7.svg)")
    body = []
    for model in models:
        rows = load(folder, f"curves_{model}")["rows"]
        wins = {p: 0 for p in ("delta", "delta:lru", "delta:greedy")}
        low = dict(wins)
        shares = [p["share"] for p in rows["delta"]["points"]][:-1]
        for i, share in enumerate(shares):
            best = min(wins, key=lambda p: rows[p]["points"][i].get("ms", 1e18))
            wins[best] += 1
            low[best] += share < 0.4
        body.append([CURVES[model], *[wins[p] for p in wins], *[low[p] for p in wins]])
    parts.append(table(["how often each is the fastest", "base", "LRU", "GREEDY",
                        "below 40 %: base", "LRU", "GREEDY"], body))


LANES = [("recomputing", "#2e8b57"), ("reloading", "#8a4fb0"), ("offloading", "#d1495b")]


def figure8(folder, parts):
    rows = load(folder, "timelines")["rows"]
    figure, axes = plt.subplots(len(rows), 1, figsize=(9, 9), layout="constrained", sharex=True)
    longest = max(row["ms"] for row in rows.values() if "ms" in row)
    body = []
    for ax, (policy, row) in zip(axes, rows.items()):
        title = "without a budget" if policy == "none" else name(policy)
        if "ms" not in row:
            ax.set_title(f"{title}: {outcome(row)}", loc="left", fontsize=10)
            continue
        count = len(row["used_mib"])
        ms = [(i + 0.5) * row["ms"] / count for i in range(count)]
        top = max(row["used_mib"]) / 1024
        ax.fill_between(ms, [u / 1024 for u in row["used_mib"]], color="#0b6e99", alpha=0.25, linewidth=0)
        ax.plot(ms, [u / 1024 for u in row["used_mib"]], color="#0b6e99", linewidth=1)
        if policy != "none":
            ax.axhline(row["budget"] / 2**30, color="#333333", linewidth=0.7, linestyle="--")
        for lane, (key, colour) in enumerate(LANES):
            low = -top * (0.10 + 0.12 * lane)
            shades = matplotlib.colors.LinearSegmentedColormap.from_list(key, ["#ffffff", colour])
            ax.imshow([row[key]], extent=(0, row["ms"], low, low + top * 0.10), aspect="auto",
                      cmap=shades, vmin=0, vmax=1, interpolation="nearest", zorder=2)
        ax.set_ylim(-top * 0.4, top * 1.05)
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}" if y >= 0 else "")
        ax.set_title(f"{title}: {row['ms']:.0f} ms", loc="left", fontsize=10)
        ax.set_ylabel("GiB in use")
        ax.set_xlim(0, longest)
        axes_style(ax)
        body.append([title, f"{row['ms']:.0f}", row["evictions"], row["recomputes"], row["offloads"],
                     gb(row["offload_bytes"]), row["reloads"], gb(row["reload_bytes"]),
                     f"{row['stall_ms']:.0f}"])
    handles = [matplotlib.patches.Patch(color=colour, label=key) for key, colour in LANES]
    axes[0].legend(handles=handles, fontsize=8, frameon=False, ncol=3, loc="upper right")
    axes[-1].set_xlabel("ms")
    save(figure, folder / "fig8.svg")
    parts.append("![Memory over one step](fig8.svg)\n\nMemory in use over one step of ResNet-50, batch "
                 "256, with 60 % saved (dashed: the budget); below it, when the links and recomputation "
                 "are busy.")
    parts.append(table(["", "ms", "evictions", "recomputed", "offloads", "GB", "reloads", "GB",
                        "waited, ms"], body))


def overlap(folder, parts):
    rows = load(folder, "overlap")["rows"]
    body = []
    for key, row in rows.items():
        model, policy, saving = key.split()
        on, off = row["on"], row["off"]
        both = "ms" in on and "ms" in off
        body.append([CURVES[model], policy, f"{saving} %",
                     f"{on['ms']:.0f}" if "ms" in on else outcome(on),
                     f"{off['ms']:.0f}" if "ms" in off else outcome(off),
                     percent(1 - on["ms"] / off["ms"]) if both else "",
                     gb(on.get("offload_bytes", 0) + on.get("reload_bytes", 0)) if "ms" in on else ""])
    parts.append(table(["", "policy", "saved", "ms with overlap", "without", "less", "GB moved"], body))


PAPER_COSTS = [("BNForward(4034)", 96318, 6), ("BNForward(6463)", 22230, 4),
               ("BNForward(6526)", 22237, 4), ("BNForward(6590)", 11148, 4),
               ("ConvForward(96640)", 22805, 69), ("PoolingForward(33219)", 11641, 25)]
KINDS = {"BN": "batch_norm", "Conv": "conv2d", "Pooling": "max_pool2d"}


def costs(folder, parts):
    rows = load(folder, "costs")["rows"]["resnet50_b128"]
    body = []
    for label, swap, again in PAPER_COSTS:
        kind = next(v for k, v in KINDS.items() if label.startswith(k))
        ours = min((r for r in rows if r["operator"] == kind),
                   key=lambda r: abs(r["swap_at_35_percent_us"] - swap))
        body.append([label, swap, again, f"{ours['operator']}, {ours['bytes'] / 1e6:.0f} MB",
                     f"{ours['swap_at_35_percent_us']:.0f}", f"{ours['swap_us']:.0f}",
                     f"{ours['recompute_us']:.0f}",
                     f"{ours['bytes'] / again / 1e6:.0f} TB/s"])
    parts.append(table(["paper", "c_s, µs", "c_r, µs", "ours of nearest c_s (ResNet-50, 128)",
                        "c_s at 35 % of the link", "c_s at the measured link", "c_r",
                        "what the paper's c_r would mean"], body))
    body = []
    for model, found in load(folder, "costs")["rows"].items():
        calls = sum(r["calls"] for r in found)
        cheaper = sum(r["calls"] for r in found if r["recompute_us"] < r["swap_us"])
        ratios = sorted(r["swap_us"] / r["recompute_us"] for r in found for _ in range(r["calls"]))
        ops = {}
        for r in found:
            ops.setdefault(r["operator"], []).extend([r["swap_us"] / r["recompute_us"]] * r["calls"])
        middle = {op: sorted(v)[len(v) // 2] for op, v in ops.items() if len(v) > 1}
        most, least = max(middle, key=middle.get), min(middle, key=middle.get)
        body.append([CURVES.get(model, "ResNet-50, batch 128"), calls, f"{cheaper} of {calls}",
                     f"{ratios[len(ratios) // 2]:.0f}", f"{most} {middle[most]:.0f}",
                     f"{least} {middle[least]:.1f}"])
    parts.append(table(["calls whose outputs are at least 1 MiB", "calls",
                        "cheaper to compute again than to copy out and back",
                        "c_s / c_r, median", "most", "least"], body))


def eager(folder, parts):
    rows = load(folder, "bert_against_eager")["rows"]
    need = rows["tide"]
    parts.append(f"BERT-base, 512 tokens, batch 32: with eager attention (scores stored) "
                 f"{gb(need['eager']['unmanaged_peak'])} GB and {need['eager']['ms']:.1f} ms; with "
                 f"attention that does not store them {gb(need['need']['unmanaged_peak'])} GB and "
                 f"{need['need']['ms']:.1f} ms. Savings against the first's peak, time against the "
                 f"first's time, run with the second:")
    savings = [p["saving_against_eager"] for p in need["points"]]
    parts.append(table(["longer step at saving", *[f"{s} %" for s in savings]], [
        [p, *[percent(q["overhead_against_eager"]) if "ms" in q else outcome(q)
              for q in row["points"]]] for p, row in rows.items()]))


DIFFERENCES = """
- **Unmanaged peaks.** Those of the networks for images are within a few per cent of the paper's: both count the same activations. (Ours: normalisation and ReLU as one operator, pooling indices of one byte, convolution workspaces of at most 64 MiB.) BERT's is not: the paper does not give its sequence length (384 here, SQuAD's usual one), and eager attention of frameworks keeps of each layer the probabilities, a mask and the masked probabilities, where ours draws the mask again. The baseline's largest batch is larger here, as all of 80 GiB (85.9 GB) is the arena's; the paper's ends at 71.5 GB.
- **DTR.** The paper's DTR uses nearly what the baseline does (3 to 6 % less), and at its largest batch 33 of 80 GB; the paper blames fragmentation. Ours keeps to whatever budget it is given: all of memory is one arena, whose blocks are slid together when holes do not add up. Its smallest feasible budget is here the least at which a step completes without host memory, running at most 16 times its operators again (the dry run's limit; below it a step would be all recomputation). What becomes bad is its time, when evicted chains are computed again and again.
- **DELTA's memory.** The paper's figure is what was allocated under a budget that it does not state. Here it is the budget: so the comparison is the other way round, of the time that the same share of the peak takes.
- **DELTA's time.** The paper gives none but 0.551 s an iteration (ResNet-50, 8 GPUs, batch 128, no baseline beside it), far above our baseline. The simulator prices operators by a roofline of an A100 with TF32, fitted to a published ResNet-50 throughput; the paper does not say whether TF32 was on, nor what its framework reaches. The slower compute is, the better copies hide behind it, so DELTA's offloads cost more here than they did there.
- **Largest batch.** The paper stops at about twice the baseline's. Here every policy that may offload goes on until the working set of the largest operator fills the device (host memory of 256 GiB, that of a DGX A100 divided by its GPUs, is not the limit). How fast it still is, is the figure that matters.
- **Overlap.** The paper's 20 % is of one configuration, which it does not state. What overlap gains is at most what copies take and at most what compute takes: nothing where everything is evicted, which is what the director does with most of these networks, and little where copies take several times as long as compute does.
- **Table V.** The paper's swapping costs of normalisations and convolutions are what a link of 25 GB/s gives at 35 %, there and back, for tensors of 411, 103 and 51 MB, which are those of ResNet-50 at batch 128; ours agree within some per cent. (That of pooling fits half of the tensor.) Its recomputation costs of 4 to 6 µs for a normalisation cannot be the work: the last column is the rate at which memory would have to be written, and an A100 reads and writes 2 TB/s. They are about what it takes to launch a kernel. That recomputing beats swapping for these tensors remains true, by one to two orders of magnitude instead of four, and by the least for large matrix products. This is of an idle link's time, however: a copy that compute hides costs nothing, which a comparison of c_s and c_r does not see.
- **Filters.** In the paper's Fig. 7 GREEDY uses more memory than the others within small budgets. Here a budget is kept by all three, down to the smallest feasible one, and what differs is time. Above it early start leaves a quarter of the budget unused for as long as that is easy. The paper's conclusion (base in general, LRU within small budgets; LRU moves many small tensors) can be compared with the tables above.
- **BERT in Table II.** The paper says 7.5 % and "more than 800 MB" in the text, and 4.1 % (822 MB) in the table. Most of BERT's activations can be evicted or offloaded like any other's; why DELTA's could not is not said.
"""


def write_report(folder):
    curves = load(folder, "curves_resnet50_b256")
    commits = sorted({load(folder, f.stem)["commit"] for f in folder.glob("*.json")})
    parts = ["# The DELTA paper's experiments, on the simulator"]
    parts.append(
        f"Tang et al., 2022. Device: `{curves['device']}`, a model of an A100 with 80 GB (its figures "
        f"and where they are from: `data/profiles/`): the same runtime on tensors without data, in "
        f"virtual time. Commit {', '.join(commits)}"
        f"{' with changes' if curves['changed_since_commit'] else ''}, {curves['date']}. Made by "
        f"`bench/papers_report.py`; the data are the JSON files beside this page.\n\n"
        f"Images are 224 x 224, training is by Adam (AdamW for BERT) in float32 with TF32 matrix "
        f"products. Without a budget a step takes what is given for each model; \"longer step\" is how "
        f"much more it takes, as the median of the last 3 of 20 steps (policies that do the same in "
        f"three steps running stop there). \"Saved\" counts from the peak without a budget. A run whose "
        f"step takes 20 times as long is given up and marked \"> 20x\". Host memory for offloading is "
        f"twice the peak, for every policy, except where it says otherwise.")
    parts.append("## The aims")
    aims(folder, parts)
    parts.append("## Overhead against saving")
    curves_text(folder, parts)
    parts.append("### BERT against eager attention")
    eager(folder, parts)
    parts.append("## Table II and Fig. 3: memory")
    peaks(folder, parts)
    parts.append("## Tables III and IV: the largest batch")
    max_batch(folder, parts)
    parts.append("## Fig. 7: the three filters")
    figure7(folder, parts)
    parts.append("## Fig. 8: timelines")
    figure8(folder, parts)
    parts.append("## Section 5.4: overlap (the paper: 20 % less)")
    overlap(folder, parts)
    parts.append("## Table V: swapping and recomputing the same tensors")
    costs(folder, parts)
    parts.append("## Where these figures and the paper's differ, and why\n" + DIFFERENCES.rstrip())
    (folder / "report.md").write_text("\n\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "results" / "papers")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--force", action="store_true", help="measure everything again")
    parser.add_argument("--no-run", action="store_true", help="only write the report, from existing results")
    arguments = parser.parse_args()
    if not arguments.no_run:
        program = arguments.build / "bin" / "paper_experiments"
        if not program.exists():
            sys.exit(f"papers_report.py: {program} is missing; build it, or give its folder with --build")
        command = [program, "--out", arguments.out, "--jobs", str(arguments.jobs)]
        subprocess.run(command + (["--force"] if arguments.force else []), check=True)
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "papers",
                         "font.family": "sans-serif"})
    write_report(arguments.out)
    print(f"{arguments.out / 'report.md'}")


if __name__ == "__main__":
    main()
