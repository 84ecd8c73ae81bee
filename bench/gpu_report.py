#!/usr/bin/env python3
"""What scripts/gpu_check.sh has measured, in one JSON file and a table: RESULTS/summary.json.

Only what is there is written; what was not measured is left out.
"""

import argparse
import json
import pathlib
import statistics

BUDGETS = (100, 50, 40, 30)  # percent of the unmanaged peak
MODES = ("plain", "checkpoint", "save_on_cpu", "memory_budget")


def read(folder, name):
    try:
        return json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def median_ms(times):
    """The first third warms up: kernels are loaded, memory is pinned."""
    times = times[len(times) // 3:]
    return statistics.median(times) if times else None


def ours(run):
    return median_ms([step["ms"] for step in run["steps"]]) if run else None


def summarize(folder):
    summary = {}
    build = read(folder, "build.json") or {}
    for key in ("gpu", "driver", "commit", "sources", "nvcc"):
        if key in build:
            summary[key] = build[key]

    unmanaged = read(folder, "resnet_unmanaged.json")
    base = ours(unmanaged)
    if base:
        peak = unmanaged["peak_reserved_bytes"]
        summary["resnet"] = {"model": unmanaged["model"], "batch": unmanaged["batch"], "unmanaged_ms": base,
                             "unmanaged_peak_bytes": peak,
                             "dry_run_peak_bytes": unmanaged["unmanaged_peak_bytes"],
                             "dry_run_peak_is_exact": peak == unmanaged["unmanaged_peak_bytes"]}
        resnet = summary["resnet"]
        checksums = {unmanaged["params_checksum"]}
        resnet["budgets"] = []
        for share in BUDGETS:
            run = read(folder, f"resnet_{share}.json")
            time = ours(run)
            if not time:
                continue
            checksums.add(run["params_checksum"])
            steps = run["steps"][len(run["steps"]) // 3:]
            row = {"budget_percent": share, "ms": time, "overhead": time / base - 1,
                   "peak_bytes": run["peak_reserved_bytes"], "within": run["peak_reserved_bytes"] <= run["budget_bytes"],
                   "stall_ms": statistics.median(step["stall_ms"] for step in steps),
                   "recompute_ms": statistics.median(step["recompute_ms"] for step in steps)}
            copies = read(folder, f"overlap_{share}.json")
            if copies and copies["hidden_share"] is not None:
                row["copies_hidden_share"] = copies["hidden_share"]
            resnet["budgets"].append(row)
        resnet["same_parameters"] = len(checksums) == 1
        peer = read(folder, "torch_plain.json")
        if peer and peer["step_ms"]:
            resnet["pytorch_ms"] = median_ms(peer["step_ms"])
            resnet["ratio_to_pytorch"] = base / resnet["pytorch_ms"]
            resnet["pytorch"] = peer["peer"]
            resnet["pytorch_reserved_peak_bytes"] = peer.get("reserved_peak_bytes")
        simulated = read(folder, "resnet_simulated.json")
        if ours(simulated):
            resnet["simulated_ms"] = ours(simulated)
            resnet["simulated_to_measured"] = ours(simulated) / base
            resnet["simulated_peak_is_exact"] = simulated["peak_reserved_bytes"] == peak
        modelled = read(folder, "resnet_modelled.json")
        if ours(modelled):
            resnet["modelled_to_measured"] = ours(modelled) / base

    batches = {}
    largest = read(folder, "max_batch.json")
    if largest:
        batches["tidemark"] = largest.get("batch")
        if largest.get("times_unmanaged_batch"):
            batches["tidemark_unmanaged"] = round(largest["batch"] / largest["times_unmanaged_batch"])
    for mode in MODES:
        peer = read(folder, f"torch_max_{mode}.json")
        if peer:
            batches["pytorch_" + mode] = peer["max_batch"]
    if batches:
        summary["max_batch"] = batches

    host = read(folder, "host_overhead.json")
    if host:
        summary["host_seconds_per_operator"] = {
            b["name"]: b["per_operator"] for b in host["benchmarks"] if "per_operator" in b}
    profile = read(folder, "gpu_profile.json")
    if profile:
        summary["profile"] = {key: value for key, value in profile.items() if key != "sources"}
    return summary


def table(summary):
    lines = []
    resnet = summary.get("resnet")
    if resnet:
        gib = resnet["unmanaged_peak_bytes"] / 2**30
        exact = "exact" if resnet["dry_run_peak_is_exact"] else f"OFF, it said {resnet['dry_run_peak_bytes']} bytes"
        lines.append(f"{resnet['model']}, batch {resnet['batch']}: {resnet['unmanaged_ms']:.1f} ms/step unmanaged, "
                     f"{gib:.2f} GiB (dry run: {exact})")
        if "pytorch_ms" in resnet:
            lines.append(f"  {resnet['pytorch']}: {resnet['pytorch_ms']:.1f} ms/step; ours takes "
                         f"{resnet['ratio_to_pytorch']:.2f} of that")
        for row in resnet["budgets"]:
            hidden = f"{100 * row['copies_hidden_share']:.0f} % of copies hidden" if "copies_hidden_share" in row else ""
            lines.append(f"  budget {row['budget_percent']:3} %: {row['ms']:8.1f} ms/step, {100 * row['overhead']:+6.1f} %, "
                         f"{row['stall_ms']:.1f} ms waited, {row['recompute_ms']:.1f} ms recomputed {hidden}"
                         + ("" if row["within"] else "  ABOVE THE BUDGET"))
        if not resnet["same_parameters"]:
            lines.append("  DIFFERENT PARAMETERS: managing has changed results")
        if "simulated_ms" in resnet:
            by_profile = f"; by the profile alone {resnet['modelled_to_measured']:.2f}" if "modelled_to_measured" in resnet else ""
            lines.append(f"  simulator: {resnet['simulated_ms']:.1f} ms/step, {resnet['simulated_to_measured']:.2f} of "
                         f"what was measured{by_profile}; peak {'exact' if resnet['simulated_peak_is_exact'] else 'OFF'}")
    for name, batch in summary.get("max_batch", {}).items():
        lines.append(f"  largest batch, {name}: {batch}")
    for name, seconds in summary.get("host_seconds_per_operator", {}).items():
        lines.append(f"  host time per operator, {name}: {seconds * 1e6:.2f} us")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    args = parser.parse_args()
    summary = summarize(args.results)
    (args.results / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(summary)))


if __name__ == "__main__":
    main()
