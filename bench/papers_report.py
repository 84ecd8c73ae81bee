#!/usr/bin/env python3
"""Runs the DELTA paper's experiments on the simulator and writes what came of them.

usage: papers_report.py [--build build/release] [--folder bench/results/papers] [--jobs 2]
                        [--epochs 2] [--force] [--no-run]

One command: bench/paper_experiments makes JSON files in the folder (up to an hour on two cores;
it goes on where it was stopped, and does nothing twice for the same commit and program), and this
writes report.md and its figures (SVG) beside them. Needs matplotlib (Debian:
python3-matplotlib).
"""
import json
import re
import subprocess
import sys

from reports import (axes_style, join, parse, percent, pyplot, read_report, report_parser, run_main,
                     save, table, train)

plt = pyplot("papers")
import matplotlib.colors  # noqa: E402
import matplotlib.patches  # noqa: E402

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
    "checkpoint": ("#e09f3e", "-"), "offload-only": ("#5b4636", "-"), "delta-paper": ("#d1495b", "-."),
}
OTHER_STYLE = ("#444444", "-.")
NAMES = {"delta": "delta (base)", "delta:lru": "delta (LRU)", "delta:greedy": "delta (GREEDY)"}
CAPUCHIN = ("`msps` is Capuchin (Peng et al., 2020). Its paper is not at hand, so none of its "
            "published figures stands beside these.")
SAVINGS = [20, 30, 40, 50, 60, 70, 78, 80]
INVERSION = 0.05
TIE = 0.005  # of a step without a budget


def name(policy):
    return NAMES.get(policy, policy)


def style(policy):
    return STYLES.get(policy, OTHER_STYLE)


def load(folder, file):
    return read_report(folder / f"{file}.json")


def gb(x):
    return f"{x / GB:.2f}"


def parameters(folder, keys):
    """A line for below a table: what the policies that its rows name ran with."""
    rows = load(folder, "parameters")["rows"]
    texts = {}
    for policy in (re.split("[ /,]", key)[0] for key in keys):
        texts[policy] = "; ".join(v if k == "parameters" else f"{k} {v}" for k, v in rows.get(
            policy, {}).items() if k not in ("about", "commit"))
    return "Parameters: " + ". ".join(f"`{p}`: {text}" for p, text in texts.items() if text) + "."


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


def measured_at(row):
    """Of a row kept from another commit than its file's."""
    return f" ({row['commit']})" if "commit" in row else ""


def policies_of(data):
    return {k: v for k, v in data["rows"].items() if isinstance(v, dict) and "points" in v}


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
    parts.append(f"{CAPUCHIN} An inversion is a budget in which a step takes longer than in a smaller one. "
                 "\"Within the budget\": of the budgets that train, those that the arena kept to. "
                 "All tables of this section. " + parameters(
        folder, policies_of(load(folder, f"curves_{next(iter(CURVES))}"))))
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
            body.append([name(policy) + measured_at(row), *cells, outcome(points[0])])
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
        parts.append(table(["", "budgets that train", "within the budget", "from",
                            "inversions above 5 %", "the worst"], body))
        named = inversions(rows["tide"]["points"])
        parts.append("tide's inversions: " + ("; ".join(
            f"{percent(b, 0)} of the peak takes {percent(m)} more than {percent(s, 0)}"
            for b, s, m in named) if named else "none") + ".")
        behind = []
        for point in rows["tide"]["points"]:
            rivals = [(q["overhead"], p) for p, r in rows.items()
                      if p != "tide" and (q := at_share(r["points"], point["share"])) and "ms" in q]
            if "ms" in point and rivals and min(rivals)[0] < point["overhead"] - TIE:
                best = min(rivals)
                behind.append(f"{percent(point['share'], 0)} ({name(best[1])} {percent(best[0])}, "
                              f"tide {percent(point['overhead'])})")
        parts.append(f"Budgets at which another policy is ahead of tide by more than "
                     f"{percent(TIE)} of a step: " + ("; ".join(behind) or "none") + ".")


# --- aims ----------------------------------------------------------------------------------------


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
    parts.append("What this project set out to reach with `tide`; the paper has no such figures.")
    parts.append(table(["tide", "aim: at most", "longer step", "reached"], rows))
    parts.append(parameters(folder, ["tide"]))
    row = load(folder, "max_batch")["rows"]["resnet50 tide"]
    four = next((p for p in row["curve"] if p["times"] >= 3.99), None)
    speed = percent(four["speed"]) if four and "speed" in four else "does not train"
    parts.append(f"Four times the largest batch of ResNet-50 without a budget, in 80 GiB: "
                 f"{speed} of its speed (aim: 91 %).")


# --- tables II to IV -----------------------------------------------------------------------------

PEAK_NAMES = {
    "resnet50_b128": "ResNet-50, 128", "resnet50_b256": "ResNet-50, 256",
    "resnet50_b512": "ResNet-50, 512", "resnet50_b1024": "ResNet-50, 1024",
    "resnet50_b1072": "ResNet-50, 1072", "resnet50_b1814": "ResNet-50, 1814",
    "resnet101_b128": "ResNet-101, 128", "resnext50_b128": "ResNeXt-50, 128",
    "bert_base_squad_b32": "BERT-base SQuAD 384, 32, eager attention",
}


PEAK_POLICIES = ["dtr", "delta-paper", "delta", "tide"]
PEAK_HEADER = ["model, batch", "DTR (evicts only, no host memory)", "DELTA as printed", "DELTA repaired", "tide"]


def peaks(folder, parts):
    data = load(folder, "peaks")["rows"]
    body = []
    for key, row in data.items():
        need, paper = row["need"], row["paper_mb"]
        saved = paper["delta"] and paper["baseline"] and 1 - paper["delta"] / paper["baseline"]
        body.append([PEAK_NAMES[key] + measured_at(row),
                     *[f"{paper[m] / 1e3:.1f}" if paper[m] else "" for m in ("baseline", "dtr")],
                     (f"{paper['delta'] / 1e3:.1f}" if paper["delta"] else "")
                     + (f" ({percent(saved, 0)})" if saved else ""),
                     gb(need["unmanaged_peak"]), gb(row["minimum_without_host"]),
                     gb(need["minimum"])])
    parts.append(table(["model, batch", "paper: baseline GB", "paper: DTR", "paper: DELTA (saved)",
                        "ours: baseline GB", "smallest feasible, no host memory (DTR)",
                        "smallest feasible, with host memory"], body))
    def rows(cell, data=data):
        return [[PEAK_NAMES[key] + measured_at(row), *(cell(row, policy) for policy in PEAK_POLICIES)]
                for key, row in data.items()]

    def at_the_share(row, policy):
        point = row["at_the_papers_share"].get(policy)
        if not point:
            return ""
        return (f"{gb(point['peak'])} GB, {outcome(point)}" if "ms" in point
                else f"{gb(point['budget'])} GB: {outcome(point)}")

    def smallest(row, policy):
        point = row["smallest_within_twice_the_time"].get(policy)
        return (f"{gb(point['budget'])} GB, {percent(1 - point['share'], 0)} saved, "
                f"{outcome(point)}" if point else "none")

    parts.append("The paper's text gives no figure for the empty cells (its Fig. 3 shows some of them). "
                 "The same share of the peak as the paper's DELTA, 40 % where it gives none (or the "
                 "smallest that is feasible, where that is more), and how much longer a step takes:")
    parts.append(table(PEAK_HEADER, rows(at_the_share)))
    parts.append("The smallest budget, in steps of 2 % of the peak, down to which a step takes at "
                 "most twice as long:")
    parts.append(table(PEAK_HEADER, rows(smallest, {k: r for k, r in data.items() if "smallest_within_twice_the_time" in r})))
    parts.append(parameters(folder, PEAK_POLICIES))


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
        for policy in PEAK_POLICIES:
            row = data[f"{network} {policy}"]
            colour, line = style(policy)
            points = [p for p in row["curve"] if "speed" in p]
            ax.plot([1] + [p["times"] for p in points], [100] + [100 * p["speed"] for p in points],
                    line, color=colour, marker="o", markersize=3, linewidth=1.8, label=policy)
            largest = row["largest"]
            given = paper.get("delta" if policy == "delta-paper" else policy)
            body.append([policy + measured_at(row), given[0] if given else "",
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
        for policy in PEAK_POLICIES:
            points = data[f"{network} {policy}"]["curve"]
            body.append([network, policy, *[
                percent(p["speed"], 0) if p and "speed" in p else (outcome(p) if p else "")
                for p in [next((q for q in points if abs(q["times"] - t) < 0.03), None)
                          for t in (1.2, 1.5, 2.04, 2.5, 3, 4, 5)]]])
    parts.append(table(["images per second at batch", "", "1.2x", "1.5x", "2.04x", "2.5x", "3x", "4x",
                        "5x"], body))
    parts.append(parameters(folder, PEAK_POLICIES))


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
    parts.append(parameters(folder, ["delta", "delta:lru", "delta:greedy", "tide"]))


LANES = [("recomputing", "#2e8b57"), ("reloading", "#8a4fb0"), ("offloading", "#d1495b")]


def figure8(folder, parts):
    rows = load(folder, "timelines")["rows"]
    figure, axes = plt.subplots(len(rows), 1, figsize=(9, 2 + 1.6 * len(rows)), layout="constrained", sharex=True)
    longest = max(row["ms"] for row in rows.values() if "ms" in row)
    body = []
    for ax, (policy, row) in zip(axes, rows.items()):
        label = title = "without a budget"
        if policy != "none":
            label = name(policy)
            title = f"{label}, budget {row['budget'] / 2**30:.1f} GiB"
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
        body.append([label, f"{row['ms']:.0f}", row["evictions"], row["recomputes"], row["offloads"],
                     gb(row["offload_bytes"]), row["reloads"], gb(row["reload_bytes"]),
                     f"{row['stall_ms']:.0f}"])
    handles = [matplotlib.patches.Patch(color=colour, label=key) for key, colour in LANES]
    axes[0].legend(handles=handles, fontsize=8, frameon=False, ncol=3, loc="upper right")
    axes[-1].set_xlabel("ms")
    save(figure, folder / "fig8.svg")
    parts.append("![Memory over one step](fig8.svg)\n\nMemory in use over one step of ResNet-50, batch "
                 "256, with 60 % saved (dashed: the budget; each panel has its own scale); below it, when "
                 "the links and recomputation are busy.")
    parts.append(table(["", "ms", "evictions", "recomputed", "offloads", "GB", "reloads", "GB",
                        "waited, ms"], body))
    parts.append(parameters(folder, rows) + (f" {CAPUCHIN}" if "msps" in rows else ""))


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
    parts.append(parameters(folder, dict.fromkeys(key.split()[1] for key in rows)))


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
    parts.append(parameters(folder, rows))


# --- figure 6 ------------------------------------------------------------------------------------

CONVERGENCE_FLAGS = ["--model", "resnet18", "--data", "digits", "--image-size", "8", "--batch", "64", "--optimizer", "adam",
                     "--lr-schedule", "multistep", "--seed", "1", "--threads", "1"]
CONVERGENCE_RUNS = {"none": ["--policy", "none"],
                    **{f"{policy} 40%": ["--policy", policy, "--budget", "40%"]
                       for policy in ("delta-paper", "delta", "tide")}}


def run_convergence(build, folder, epochs, force):
    """Trains on this machine's CPU for Fig. 6, unless this commit's result is there already."""
    path = folder / "convergence.json"
    # paper_experiments has just run in the same checkout.
    state = {key: load(folder, "peaks")[key] for key in ("commit", "changed_since_commit", "date")}
    if path.exists() and not force and read_report(path, "commit")["commit"] == state["commit"]:
        return
    rows = {}
    for key, flags in CONVERGENCE_RUNS.items():
        run = train(build, "train_resnet", *CONVERGENCE_FLAGS, "--epochs", epochs, "--host-limit", "8GiB", *flags)
        if "error" in run:
            sys.exit(f"papers_report.py: train_resnet {key}: {run['error']}")
        rows[key] = {"loss": [round(step["loss"], 6) for step in run["steps"]],
                     "accuracy": run["eval"]["accuracy"],
                     "budget": run["budget_bytes"], "peak": run["peak_reserved_bytes"],
                     "checksum": run["params_checksum"]}
        print(f"convergence {key}: loss {rows[key]['loss'][-1]}")
    path.write_text(json.dumps({"about": "Fig. 6: convergence under a budget", "device": "cpu", **state,
                                "flags": [*CONVERGENCE_FLAGS, "--epochs", str(epochs)], "rows": rows}, indent=1) + "\n")


def convergence(folder, parts):
    data = load(folder, "convergence")
    rows = data["rows"]
    figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
    for (key, row), width, line in zip(rows.items(), (5, 3, 1.6, 0.8), ("-", "-", "--", "-")):
        axes.plot(range(1, len(row["loss"]) + 1), row["loss"], line, linewidth=width, label=key,
                  color=style(key.split()[0])[0])
    axes.set_xlabel("step")
    axes.set_ylabel("training loss")
    axes_style(axes)
    axes.legend(fontsize=8, frameon=False)
    save(figure, folder / "fig6.svg")
    checksums = {row["checksum"] for row in rows.values()}
    losses = {tuple(row["loss"]) for row in rows.values()}
    parts.append(f"`train_resnet {' '.join(data['flags'])}` on this machine's CPU, on the digits at hand instead of "
                 f"ImageNet (Adam, MultiStep; commit {data['commit']}"
                 f"{' with changes' if data['changed_since_commit'] else ''}). The paper: 1.5947 without DELTA, 1.6054 "
                 f"with it.\n\n![Training loss](fig6.svg)")
    parts.append(table(["", "last loss", "accuracy", "peak, MB"],
                       [[key, f"{row['loss'][-1]:.4f}", percent(row["accuracy"]), f"{row['peak'] / 1e6:.0f}" if row["peak"] else ""]
                        for key, row in rows.items()]))
    parts.append(parameters(folder, rows))
    parts.append(f"All {len(rows)} runs " + (
        "have the same loss in every step and end with the same parameters, to the bit." if len(checksums) == len(losses) == 1
        else f"DIFFER: {len(losses)} curves of losses, {len(checksums)} checksums of parameters."))


# --- DELTA as printed ----------------------------------------------------------------------------

ABLATED = ["resnet50_b256", "bert_base_512_b32"]
NOT_A_REPAIR = "prices"  # on in delta-paper too
NOT_A_REPAIR_NOTE = " (on in both; the last two columns switch it off)"


def ablation(folder, parts):
    rows = load(folder, "ablation")["rows"]
    savings = [50, 60]

    def cells(model, policy):
        row = rows.get(f"{model} {policy}")
        return [outcome(p) for p in row["points"]] if row else [""] * len(savings)

    parts.append("`--policy delta-paper` is the method as printed; `delta` repairs it, and `--repairs` "
                 "switches each repair. Longer steps at 50 % and 60 % saved, within the budget as a hard "
                 "limit, of `delta` without one repair and of `delta-paper` with one:")
    for model in ABLATED:
        head = [f"{w} {s} %" for w in ("delta without it,", "delta-paper with it,") for s in savings]
        body = [["*none changed*", "", *cells(model, "delta"), *cells(model, "delta-paper")]]
        for repair, about in rows["repairs"].items():
            if repair == "commit":
                continue
            off = "no-" if repair == NOT_A_REPAIR else ""
            body.append([f"`{repair}`" + (NOT_A_REPAIR_NOTE if off else ""), about,
                         *cells(model, f"delta/no-{repair}"), *cells(model, f"delta-paper/{off}{repair}")])
        parts.append(f"{CURVES[model]}:")
        parts.append(table(["repair", "ours (the paper's)", *head], body))
    others = [k.removeprefix(ABLATED[0] + " ") for k in rows if k.startswith(ABLATED[0] + " ")]
    others = [k for k in others if "/" not in k and k not in ("delta", "delta-paper")]
    parts.append("For comparison, parts of the method that `delta` shares with the paper switched off, and "
                 "other policies:")
    parts.append(table(["", *[f"{CURVES[m]}, {s} %" for m in ABLATED for s in savings]],
                       [[k, *[c for m in ABLATED for c in cells(m, k)]] for k in others]))
    parts.append(parameters(folder, ["delta", "delta-paper", *others]) + " Rows say what differs.")


def saved(row, point):
    """The share of live bytes saved, as torch.cuda.max_memory_allocated would show it."""
    return 1 - point["peak_live"] / row["need"]["unmanaged_live"]


def soft_budget(folder, parts):
    rows = load(folder, "soft_budget")["rows"]
    parts.append("The paper's budgets seem to be no hard limits: its Fig. 7 plots the memory used against the "
                 "budget, and by Assumption 2 nothing is released in backward, where memory grows on. Here "
                 "memory is not limited either: releases begin at the given share of the peak. The cells say "
                 "how much the live bytes' peak fell, and how much longer a step takes.")
    for model in ABLATED:
        mine = {k.split(" ", 1)[1]: r for k, r in rows.items() if k.startswith(model + " ")}
        first = next(iter(mine.values()))
        body = []
        for i, start in enumerate(first["points"]):
            cells = []
            for row in mine.values():
                point = row["points"][i]
                cells.append(f"{percent(saved(row, point), 0)} saved, {outcome(point)}" if "ms" in point
                             else outcome(point))
            body.append([percent(start["share"], 0), *cells])
        parts.append(f"{CURVES[model]}:")
        parts.append(table(["releases from", *mine], body))
    parts.append(parameters(folder, mine) + " Columns say what differs, and early start begins at "
                 "the share given.")


def ratio_text(ours, paper):
    """ours against the paper's, in words that follow from the two."""
    if abs(ours / paper - 1) < 0.005:
        return "the same as the paper's"
    return f"{percent(abs(ours / paper - 1))} {'more' if ours > paper else 'less'} than the paper's"


def differences(folder):
    """(about, text) pairs; every figure and comparison in them is computed here."""
    found = []
    peak_rows = load(folder, "peaks")["rows"]
    texts = []
    for key, row in peak_rows.items():
        if row["paper_mb"]["baseline"]:
            texts.append(f"{PEAK_NAMES[key]}: {ratio_text(row['need']['unmanaged_peak'] / 1e6, row['paper_mb']['baseline'])}")
    found.append(("Unmanaged peaks", "; ".join(texts) + ". The paper does not give BERT's sequence length "
                  "(384 here)."))

    texts = []
    for key, row in peak_rows.items():
        paper = row["paper_mb"]
        if paper["baseline"] and paper["dtr"]:
            least = row["minimum_without_host"] / row["need"]["unmanaged_peak"]
            texts.append(f"{PEAK_NAMES[key]} {percent(1 - paper['dtr'] / paper['baseline'])} there, up to {percent(1 - least)} here")
    found.append(("DTR's memory", "Saved: " + "; ".join(texts) + ". Here a budget is kept by compaction; the paper blames "
                  "fragmentation for what DTR cannot save."))

    soft, hard = load(folder, "soft_budget")["rows"], load(folder, "ablation")["rows"]
    for model in ABLATED:
        row = soft[f"{model} delta-paper"]
        done = ran(row["points"])
        best = max(done, key=lambda p: saved(row, p) - (1 if p["overhead"] > 0.5 else 0))
        curve = load(folder, f"curves_{model}")["rows"]
        same = [max((p for p in ran(curve[k]["points"]) if p["share"] <= 1 - saved(row, best) + 0.002),
                    key=lambda p: p["share"], default=None) for k in ("delta", "delta-paper")]
        compared = join(f"`{k}` {outcome(p)} ({percent(1 - p['share'], 0)} saved)"
                        for k, p in zip(("delta", "delta-paper"), same) if p)
        most = max(done, key=lambda p: saved(row, p))
        found.append((f"DELTA's memory and time, {CURVES[model]}",
                      f"Without a limit, `delta-paper` saves {percent(saved(row, best), 0)} of the live peak "
                      f"for a {percent(best['overhead'])} longer step (releases from {percent(best['share'], 0)} on; "
                      f"{best['evictions']} evictions, {gb(best['offload_bytes'])} GB offloaded). Within a budget as a "
                      f"limit, the same saving costs {compared}. "
                      f"The most that it saves without a limit is {percent(saved(row, most), 0)}. "
                      f"The paper states its saving, but no step time to compare with."))
        base = {k: hard[f"{model} {k}"]["points"] for k in ("delta", "delta-paper")}
        worst = {}
        for k, sign in (("delta", "no-"), ("delta-paper", "")):
            for repair in hard["repairs"]:
                if repair in (NOT_A_REPAIR, "commit"):
                    continue
                for i, point in enumerate(hard[f"{model} {k}/{sign}{repair}"]["points"]):
                    if "ms" in point and "ms" in base[k][i]:
                        worst.setdefault((k, i), []).append((point["ms"] / base[k][i]["ms"] - 1, repair))
        texts = []
        for (k, i), changes in sorted(worst.items()):
            change, repair = (max if k == "delta" else min)(changes)
            same = sorted(r for c, r in changes if abs(c) < 0.0005)
            how = "without" if k == "delta" else "with"
            longer = (f"{percent(abs(change))} {'longer' if change > 0 else 'less long'}"
                      if abs(change) >= 0.0005 else "as long as before")
            texts.append(f"at {[50, 60][i]} % saved, `{repair}` does the most for `{k}`: a step "
                         f"{how} it takes {longer}"
                         + (f"; {join(f'`{r}`' for r in same)} change nothing" if same else ""))
        found.append((f"The repairs, {CURVES[model]}", ". ".join(t[0].upper() + t[1:] for t in texts) + "."))

    ours = peak_rows["resnet50_b128"]["need"]["ms"]
    found.append(("DELTA's time", f"The paper gives 0.551 s an iteration (ResNet-50, 8 GPUs, batch 128) and no baseline "
                  f"beside it; without a budget our simulated step of that batch takes {ours / 1e3:.3f} s, "
                  f"{551 / ours:.1f} times less. The slower compute is, the more of a copy hides behind it."))

    batch = load(folder, "max_batch")["rows"]
    texts = []
    for network, title in (("resnet50", "ResNet-50"), ("resnet101", "ResNet-101")):
        baseline = batch[f"{network} none"]["baseline_batch"]
        texts.append(f"{title}'s baseline is {ratio_text(baseline, PAPER_BATCH[network]['none'][0])}; of it, DELTA's is "
                     f"{PAPER_BATCH[network]['delta'][0] / PAPER_BATCH[network]['none'][0]:.2f} times there, "
                     + join(f"`{p}`'s {batch[f'{network} {p}']['largest']['times']:.2f}" for p in PEAK_POLICIES[1:]) + " here")
    found.append(("Largest batch", "; ".join(texts) + ". All of 80 GiB is the arena's here; the paper's baseline ends at "
                  "71.5 GB. Ours is the largest that completes at all, with 256 GiB of host memory."))

    gains = []
    for key, row in load(folder, "overlap")["rows"].items():
        if "ms" in row["on"] and "ms" in row["off"]:
            model, policy, saving = key.split()
            gains.append((1 - row["on"]["ms"] / row["off"]["ms"], f"{CURVES[model]}, {policy}, {saving} % saved"))
    low, high = min(gains), max(gains)
    found.append(("Overlap", f"The paper's 20 % is of one configuration, which it does not state. Here a step takes from "
                  f"{percent(low[0])} ({low[1]}) to {percent(high[0])} ({high[1]}) less with overlap."))

    rows = load(folder, "costs")["rows"]["resnet50_b128"]
    pairs = []
    for label, swap, again in PAPER_COSTS:
        kind = next(v for k, v in KINDS.items() if label.startswith(k))
        near = min((r for r in rows if r["operator"] == kind), key=lambda r: abs(r["swap_at_35_percent_us"] - swap))
        pairs.append((label, swap, again, near))
    off = {label: near["swap_at_35_percent_us"] / swap - 1 for label, swap, _, near in pairs}
    close = [label for label, error in off.items() if abs(error) < 0.1]
    rates = [near["bytes"] / again / 1e6 for _, _, again, near in pairs]
    rest = [n["recompute_us"] / again for _, _, again, n in pairs]
    cheaper = all(n["recompute_us"] < n["swap_us"] for *_, n in pairs)
    found.append(("Table V", f"Its swapping costs are within 10 % of what 35 % of our link gives, there and back, for "
                  f"{len(close)} of {len(pairs)} rows" + ("" if len(close) == len(pairs) else
                  f" (not for {join(f'{k}: {100 * off[k]:+.0f} %' for k in off if k not in close)})")
                  + f". Its recomputation costs are {min(rest):.0f} to {max(rest):.0f} times less than ours, and would mean "
                  f"writing {min(rates):.0f} to {max(rates):.0f} TB/s, where an A100 reads and writes 2 TB/s: they fit "
                  f"what it takes to launch a kernel. Recomputing is {'cheaper' if cheaper else 'not always cheaper'} "
                  f"than swapping here, too, by {min(n['swap_us'] / n['recompute_us'] for *_, n in pairs):.0f} to "
                  f"{max(n['swap_us'] / n['recompute_us'] for *_, n in pairs):.0f} times. This is an idle link's time: a copy "
                  f"that compute hides costs nothing, which a comparison of c_s and c_r does not see."))

    lines = load(folder, "timelines")["rows"]
    moved = {k: lines[k] for k in ("delta", "delta:lru", "delta:greedy") if "ms" in lines[k]}
    most = max(moved, key=lambda k: moved[k]["offloads"])
    within, beyond = 0, 0
    for model in ("resnet50_b256", "efficientnet_b0_b256", "resnext50_b128"):
        for policy in ("delta", "delta:lru", "delta:greedy"):
            for point in ran(load(folder, f"curves_{model}")["rows"][policy]["points"]):
                within, beyond = within + point["kept"], beyond + (not point["kept"])
    found.append(("Filters", f"In the paper's Fig. 7 GREEDY uses more memory than the others within small budgets. Here "
                  f"{within} of {within + beyond} runs keep to their budget; what differs is time. The most copies out are "
                  f"{name(most)}'s, {moved[most]['offloads']} (" + join(f"{name(k)} {r['offloads']}" for k, r in moved.items()
                  if k != most) + "); the paper says LRU's."))

    bert = peak_rows["bert_base_squad_b32"]
    paper, point = bert["paper_mb"], bert["at_the_papers_share"]["delta"]
    found.append(("BERT in Table II", f"The paper's text says 7.5 % and \"more than 800 MB\"; its table, "
                  f"{percent(1 - paper['delta'] / paper['baseline'])} ({paper['baseline'] - paper['delta']:.0f} MB). Here `delta` "
                  f"in the same share of the peak: {outcome(point)} longer; smallest feasible: "
                  f"{percent(bert['need']['minimum'] / bert['need']['unmanaged_peak'])} of the peak."))
    return found


def write_report(folder):
    curves = load(folder, "curves_resnet50_b256")
    files = [load(folder, f.stem) for f in folder.glob("*.json")]
    commits = {file["commit"] for file in files} | {
        row["commit"] for file in files for row in file["rows"].values() if "commit" in row}
    commits = sorted(commits)
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
        f"twice the peak, for every policy, except where it says otherwise. Rows that name a commit were "
        f"measured there, the others at their file's; each counts from its own commit's step without a budget.")
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
    parts.append("## Fig. 6: convergence")
    convergence(folder, parts)
    parts.append("## Fig. 7: the three filters")
    figure7(folder, parts)
    parts.append("## Figures 4, 5 and 8: timelines")
    figure8(folder, parts)
    parts.append("## Section 5.4: overlap (the paper: 20 % less)")
    overlap(folder, parts)
    parts.append("## Table V: swapping and recomputing the same tensors")
    costs(folder, parts)
    parts.append("## DELTA as printed, and what each repair does")
    ablation(folder, parts)
    parts.append("## DELTA without a limit on memory")
    soft_budget(folder, parts)
    parts.append("## Where these figures and the paper's differ\n\n" + "\n".join(
        f"- **{about}.** {text}" for about, text in differences(folder)))
    (folder / "report.md").write_text("\n\n".join(parts) + "\n")


def main():
    parser = report_parser(__doc__, "paper_experiments", "train_resnet", folder="bench/results/papers")
    parser.add_argument("--jobs", type=int, default=2, help="experiments at a time [2]")
    parser.add_argument("--epochs", type=int, default=2, help="of Fig. 6's training on the CPU [2]")
    parser.add_argument("--force", action="store_true", help="measure everything again")
    args = parse(parser)
    if not args.no_run:
        command = [args.program, "--out", args.folder, "--jobs", str(args.jobs)]
        subprocess.run(command + (["--force"] if args.force else []), check=True)
        run_convergence(args.build, args.folder, args.epochs, args.force)
    write_report(args.folder)
    print(f"{args.folder / 'report.md'}")


if __name__ == "__main__":
    run_main(main)
