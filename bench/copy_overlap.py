#!/usr/bin/env python3
"""How much of the time that copies take is hidden behind compute, from a trace of a training run
(train_resnet --trace FILE).

Prints JSON. `hidden_share`: of the time during which a copy ran in either direction, the share
during which the compute stream was at work too. The first steps are left out, as memory is pinned
and kernels are loaded then.
"""

import argparse
import json


def union(intervals):
    """Sorted intervals without overlaps."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in intervals)


def intersection(a, b):
    """Of two unions."""
    common, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            common.append([start, end])
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return common


def overlap(trace, skip_steps):
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    rows = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"]
            if event["ph"] == "M" and event["name"] == "thread_name"}
    steps = sorted((e for e in events if rows.get(e["tid"]) == "steps"), key=lambda e: e["ts"])
    begin = steps[skip_steps]["ts"] if len(steps) > skip_steps else 0
    busy = {name: union([e["ts"], e["ts"] + e["dur"]] for e in events
                        if rows.get(e["tid"]) == name and e["ts"] >= begin)
            for name in ("compute", "offload", "reload")}
    copies = union(busy["offload"] + busy["reload"])
    hidden = intersection(copies, busy["compute"])
    moved = {name: sum(e["args"]["bytes"] for e in events
                       if rows.get(e["tid"]) == name and e["ts"] >= begin)
             for name in ("offload", "reload")}
    return {
        "steps": max(0, len(steps) - skip_steps),
        "compute_ms": length(busy["compute"]) / 1e3,
        "offload_ms": length(busy["offload"]) / 1e3,
        "reload_ms": length(busy["reload"]) / 1e3,
        "copy_ms": length(copies) / 1e3,
        "hidden_ms": length(hidden) / 1e3,
        "hidden_share": length(hidden) / length(copies) if copies else None,
        "offload_bytes": moved["offload"],
        "reload_bytes": moved["reload"],
        "dropped_events": trace.get("metadata", {}).get("dropped_events"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--skip-steps", type=int, default=2)
    args = parser.parse_args()
    with open(args.trace, encoding="utf-8") as file:
        print(json.dumps(overlap(json.load(file), args.skip_steps)))


if __name__ == "__main__":
    main()
