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
PEERS = {  # how PyTorch was run, with its images on the GPU but for "upload"
    "plain": "channels last",
    "upload": "channels last, images copied in each step as ours are",
    "benchmark": "channels last, cuDNN's trials",
    "nchw": "NCHW, cuDNN's trials",
}


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
        for name in PEERS:
            peer = read(folder, f"torch_{name}.json")
            if peer and peer["step_ms"]:
                time = median_ms(peer["step_ms"])
                resnet.setdefault("pytorch", []).append({
                    "how": name, "peer": peer["peer"], "ms": time, "ours_to_it": base / time,
                    "reserved_peak_bytes": peer.get("reserved_peak_bytes")})
        simulated = read(folder, "resnet_simulated.json")
        if ours(simulated):
            resnet["simulated_ms"] = ours(simulated)
            resnet["simulated_to_measured"] = ours(simulated) / base
            resnet["simulated_peak_is_exact"] = simulated["peak_reserved_bytes"] == peak
        modelled = read(folder, "resnet_modelled.json")
        if ours(modelled):
            resnet["modelled_to_measured"] = ours(modelled) / base

    for dtype in ("float32", "bf16"):
        run = read(folder, f"bert_{dtype}.json")
        time = ours(run)
        if not time:
            continue
        row = {"dtype": dtype, "model": run["model"], "batch": run["batch"], "unmanaged_ms": time,
               "unmanaged_peak_bytes": run["peak_reserved_bytes"]}
        half = read(folder, f"bert_{dtype}_50.json")
        if ours(half):
            row["half_overhead"] = ours(half) / time - 1
            row["half_within"] = half["peak_reserved_bytes"] <= half["budget_bytes"]
            row["same_parameters"] = half["params_checksum"] == run["params_checksum"]
        peer = read(folder, f"torch_bert_{dtype}.json")
        if peer and peer["step_ms"]:
            row.update(pytorch=peer["peer"], pytorch_ms=median_ms(peer["step_ms"]),
                       ours_to_pytorch=time / median_ms(peer["step_ms"]),
                       pytorch_reserved_peak_bytes=peer.get("reserved_peak_bytes"))
        summary.setdefault("bert", []).append(row)

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
    operators = read(folder, "ops.json")
    if operators:
        summary["operators"] = {
            b["name"].removesuffix("/manual_time"): {"ms": b["real_time"], "gflop_s": b["GFLOP/s"], "gb_s": b["GB/s"]}
            for b in operators["benchmarks"] if "GB/s" in b}
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
        for peer in resnet.get("pytorch", []):
            lines.append(f"  {peer['peer']}, {PEERS[peer['how']]}: {peer['ms']:.1f} ms/step; ours takes "
                         f"{peer['ours_to_it']:.2f} of that")
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
    for row in summary.get("bert", []):
        gib = row["unmanaged_peak_bytes"] / 2**30
        line = f"{row['model']}, batch {row['batch']}, {row['dtype']}: {row['unmanaged_ms']:.1f} ms/step unmanaged, {gib:.2f} GiB"
        if "pytorch_ms" in row:
            line += f"; {row['pytorch']}: {row['pytorch_ms']:.1f}, ours takes {row['ours_to_pytorch']:.2f} of that"
        if "half_overhead" in row:
            line += f"; in half of the memory {100 * row['half_overhead']:+.1f} %"
            line += "" if row["half_within"] else "  ABOVE THE BUDGET"
            line += "" if row["same_parameters"] else "  DIFFERENT PARAMETERS"
        lines.append(line)
    for name, batch in summary.get("max_batch", {}).items():
        lines.append(f"  largest batch, {name}: {batch}")
    for name, seconds in summary.get("host_seconds_per_operator", {}).items():
        lines.append(f"  host time per operator, {name}: {seconds * 1e6:.2f} us")
    if "operators" in summary:
        lines.append(f"  {len(summary['operators'])} operators timed, one by one: summary.json")
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
