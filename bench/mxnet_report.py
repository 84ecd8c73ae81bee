#!/usr/bin/env python3
"""MXNet's memory note on our networks: what no sharing, in place, sharing and both take, in
training and forward only, beside what the note says; sharing that makes no operator of another
stream wait; and schedules with copies laid out so that no stream waits for bytes.

usage: mxnet_report.py [--build build/release] [--folder bench/results] [--no-run] [NETWORK...]

One command: runs plan_graph for each network, and train_resnet or train_bert on the simulator for
the schedules with copies (of ResNet-50 and BERT-base); writes mxnet.json as it goes, and then
mxnet.md. Takes two minutes of CPU time, twelve on a busy machine. What was measured at the same
commit is kept.
"""

import json
import pathlib
import re
import statistics
import subprocess
import tempfile

from reports import (BadReport, cpu_name, join, origins, parse, percent as per_cent, read_report,
                     read_rows, report_parser, run_main, stamp, table, train, write_report)

# Flags of plan_graph. The note names no networks.
NETWORKS = {
    "AlexNet": ["alexnet"],
    "VGG-16": ["vgg16"],
    "GoogLeNet": ["googlenet"],
    "ResNet-50": ["resnet50"],
    "ResNet-101": ["resnet101"],
    "ResNeXt-50": ["resnext50_32x4d"],
    "MobileNet-V2": ["mobilenet_v2"],
    "MnasNet": ["mnasnet1_0"],
    "EfficientNet-B0": ["efficientnet_b0"],
    "ViT-B/16": ["vit_b_16"],
    "ResNet3D-18": ["r3d_18", "--batch", "8"],
    "U-Net": ["unet", "--batch", "8"],
    "Transformer": ["transformer-base"],
    "BERT-base": ["bert-base"],
    "GPT-2": ["gpt2", "--batch", "8"],
}
BATCH = 32
NOTE = ["no sharing", "in place", "sharing", "in place and sharing"]
SAFE = {"paths": "both, no operator waits: one path",
        "descendants": "both, no operator waits: descendants",
        "offsets": "both, no operator waits: offsets"}
# Steps whose schedules copy: program, its flags.
COPIES = {
    "ResNet-50, batch 256": ("train_resnet", ["--model", "resnet50", "--data", "synthetic",
                                              "--batch", "256"]),
    "BERT-base, 512 tokens, batch 32": ("train_bert", ["--model", "bert-base", "--seq-length",
                                                       "512", "--batch", "32"]),
}
BUDGETS = ["70%", "50%", "40%"]
STEPS = 12
DEVICE = "sim:a100-80gb"
PLAN_SECONDS = 5


def plan_graph(build, *flags):
    return subprocess.run([build / "bin" / "plan_graph", *map(str, flags)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def measure(build, name):
    flags = ["--model", *NETWORKS[name]]
    if "--batch" not in flags:
        flags += ["--batch", BATCH]
    text = plan_graph(build, *flags, "--estimate")
    found = re.findall(r"^(\S.*?) {2,}(\d+) +(\d+)$", text, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder) / "plan.json"
        plan_graph(build, *flags, "--in-place", "--deadline", PLAN_SECONDS, "--output", plan)
        ours = json.loads(plan.read_text())
    return {"network": name, "step": " ".join(map(str, flags[1:])),
            "operators": ours["operators"], "settings": text.splitlines()[-1],
            "training": {what: int(peak) for what, peak, _ in found},
            "forward_only": {what: int(peak) for what, _, peak in found},
            "persistent": sum(p["size"] for p in ours["placements"]
                              if p["begin"] == 0 and p["end"] == len(ours["order"])),
            "ours": ours["peak"], "bound": ours["bound"]}


def shown(build, *flags):
    """What --show says of a schedule: its simulated time, and with bytes of its own for each
    block."""
    text = plan_graph(build, "--show", *flags)
    simulated = re.search(r"^simulated +([\d.]+) ms: [\d.]+ recomputing, ([\d.]+) waiting", text,
                          re.MULTILINE)
    apart = re.search(r"^own bytes +([\d.]+) ms", text, re.MULTILINE)
    return {"ms": float(simulated[1]), "waiting_ms": float(simulated[2]),
            "own_bytes_ms": float(apart[1]) if apart else None}


def peak_of(schedule):
    return json.loads(schedule.read_text())["peak"]


def measure_copies(build, name, budget):
    program, flags = COPIES[name]
    flags = [*flags, "--device", DEVICE, "--steps", STEPS]
    with tempfile.TemporaryDirectory() as folder:
        ours, safe = pathlib.Path(folder) / "ours.json", pathlib.Path(folder) / "safe.json"
        run = train(build, program, *flags, "--budget", budget, "--save-schedule", ours)
        row = {"step": name, "budget": budget, "unmanaged_peak": run["unmanaged_peak_bytes"],
               "ours": {"peak": peak_of(ours), **shown(build, ours)},
               "safe": shown(build, ours, "--parallel-safe", "--save-schedule", safe)}
        row["safe"]["peak"] = peak_of(safe)
        followed = train(build, program, *flags, "--budget", row["safe"]["peak"],
                         "--schedule", safe)
        if not followed["plan"]["steps"]:
            raise RuntimeError(f"{name}, {budget}: the parallel-safe schedule was not followed")
        row["safe"]["run_ms"] = median_ms(followed)
        row["ours"]["run_ms"] = median_ms(run)
    return row


def median_ms(run):
    return statistics.median(step["ms"] for step in run["steps"][-3:])


def gb(value):
    return f"{value / 1e9:.2f}"


def percent(value, digits=0):
    return per_cent(value, digits)


def spread(values, digits=0):
    """Least, median and most."""
    if len(values) == 1:
        return percent(values[0], digits)
    return (f"{percent(statistics.median(values), digits)} in the median "
            f"({percent(min(values), digits)} to {percent(max(values), digits)})")


def names(found):
    return ", ".join(r["network"] for r in found) or "none"


def saved(row, what, side="training"):
    return 1 - row[side][what] / row[side]["no sharing"]


def beside_weights(row, what, side="training"):
    """What is left without parameters and momentum, which persist."""
    return row[side][what] - row["persistent"]


def saved_of_rest(row):
    return 1 - beside_weights(row, NOTE[-1]) / beside_weights(row, NOTE[0])


def most_saved(row):
    """By any plan."""
    return 1 - row["bound"] / row["training"][NOTE[0]]


def note_text(rows):
    both = NOTE[-1]
    header = ["GB", *NOTE, "saved", "parameters, momentum", "saved of the rest",
              "forward only: no sharing", "both", "of training, without what persists",
              "our default planner", "no plan saves more than"]
    yield table(header, [[
        f"{r['network']} (`{r['step']}`)", *(gb(r["training"][what]) for what in NOTE),
        percent(saved(r, both)), gb(r["persistent"]), percent(saved_of_rest(r)),
        gb(r["forward_only"][NOTE[0]]), gb(r["forward_only"][both]),
        percent(beside_weights(r, both, "forward_only") / beside_weights(r, both)), gb(r["ours"]),
        percent(most_saved(r))] for r in rows])
    half = [r for r in rows if abs(saved(r, both) - 0.5) <= 0.1]
    more = [r for r in rows if saved(r, both) > 0.6]
    less = [r for r in rows if saved(r, both) < 0.4]
    yield ("**Training.** The note: \"we can roughly reduce the memory consumption by half\", on "
           "\"coarse grained operation graphs\", and more \"if we are optimizing a fine-grained "
           "computation network\". Here "
           f"both save {spread([saved(r, both) for r in rows])}: 40 to 60 % in {len(half)} of "
           f"{len(rows)}; more in {names(more)}; less in {names(less)}. In place alone saves "
           f"{spread([saved(r, 'in place') for r in rows])}, sharing alone "
           f"{spread([saved(r, 'sharing') for r in rows])}.")
    texts = []
    for what, found in (("more", more), ("less", less)):
        if found:
            share = spread([r["persistent"] / r["training"][NOTE[0]] for r in found])
            texts.append(f"; where {what} is saved they are {share} of \"no sharing\"")
    yield ("**What differs and why.** Parameters and momentum count here and cannot shrink"
           + "".join(texts)
           + f". Of the rest both save {spread([saved_of_rest(r) for r in rows])}. \"No sharing\" "
           "counts the output of every operator, so it grows with their number and not with what "
           "must live: by the default planner's bound no plan saves more than "
           f"{spread([most_saved(r) for r in rows])}, and blocks of the note are above that bound "
           f"by {spread([r['training'][both] / r['bound'] - 1 for r in rows])}.")
    left = [beside_weights(r, both, "forward_only") / beside_weights(r, both) for r in rows]
    yield ("**Forward only.** The note: \"the cost is extremely low compared to others\". Without "
           f"what persists it is here {spread(left)} of training with both. Forward only is the "
           "step until the first gradient, as in training: batch norm by the batch's statistics, "
           "with the loss.")


def safe_text(rows):
    both = NOTE[-1]
    more = {k: [r["training"][what] / r["training"][both] - 1 for r in rows]
            for k, what in SAFE.items()}
    yield table(["GB", "both, one stream", *SAFE, *(f"{k}: more" for k in SAFE)],
                [[r["network"], gb(r["training"][both]),
                  *(gb(r["training"][what]) for what in SAFE.values()),
                  *(percent(more[k][i]) for k in SAFE)] for i, r in enumerate(rows)])
    yield ("Bytes pass only between operators that are ordered by their data, so operators may run "
           "on any number of streams and none waits for another's bytes. More than both on one "
           "stream: " + "; ".join(f"{k} {spread(v)}" for k, v in more.items())
           + ". \"Paths\" is the note's colouring, each path in O(n), \"descendants\" its ancestor "
           "relation with the same blocks, \"offsets\" that relation without blocks, the largest "
           "first. The note gives no figures for these.")


def copies_text(rows):
    yield ("A schedule that offloads has three queues: compute and both directions of the link. "
           "`plan_graph --show FILE --parallel-safe` lays its blocks out so that a block's bytes "
           "go only to users that wait for all its earlier users anyway "
           "(runtime/planner/baselines/parallel_safe.h), the note's \"safe\" plan; `--schedule` "
           "runs it like any other. Our layouts give the bytes of what is copied out to the next "
           "operator, and compute waits if the copy is late.")
    yield table(["step, budget", "without a budget, GB", "ours, GB", "ms", "of it waiting, uploads included",
                 "ms with bytes of its own for each block", "parallel-safe, GB", "times ours", "ms",
                 "in a simulated run: ours, ms", "parallel-safe, ms"],
                [[f"{r['step']}, {r['budget']}", gb(r["unmanaged_peak"]), gb(r["ours"]["peak"]),
                  f"{r['ours']['ms']:.1f}", f"{r['ours']['waiting_ms']:.1f}",
                  f"{r['ours']['own_bytes_ms']:.1f}", gb(r["safe"]["peak"]),
                  f"{r['safe']['peak'] / r['ours']['peak']:.2f}", f"{r['safe']['ms']:.1f}",
                  f"{r['ours']['run_ms']:.1f}", f"{r['safe']['run_ms']:.1f}"] for r in rows])
    cost = [1 - r["ours"]["own_bytes_ms"] / r["ours"]["ms"] for r in rows]
    more = [r["safe"]["peak"] / r["ours"]["peak"] - 1 for r in rows]
    yield ("The first times are those that a schedule expects, the last those of a run on the "
           "simulator that follows it; nothing here ran on a GPU. "
           f"Waiting for bytes and moving blocks takes {spread(cost, 1)} of our schedules' time, as "
           f"the search counts both. Without either, a layout of largest first takes {spread(more)} "
           "more bytes. What is copied out leaves its bytes idle until it is back, since no "
           "operator in between waits for that copy (what is evicted frees its bytes at once in "
           "both); the rest is the price of one pass without moves beside a search. Our schedules "
           "share copies' bytes by waiting. There are no collectives here: one process, one "
           "device.")


def write_text(folder):
    path = folder / "mxnet.json"
    report = read_report(path, "rows", "copies", "plan_seconds")
    rows, copies = rows_of(path)
    if not rows:
        raise BadReport(f"{path} has no rows")
    settings = " / ".join(sorted({r["settings"] for r in rows}))
    missing = [name for name in NETWORKS if name not in {r["network"] for r in rows}]
    parts = ["# MXNet's memory note", "Written by `bench/mxnet_report.py` from mxnet.json.",
             *([f"**Partial: {join(missing)} not measured.**"] if missing else []),
             f"MXNet's \"Squeeze the Memory Consumption of Deep Learning\" beside our networks: "
             f"steps of training by SGD with momentum 0.9 in float32, captured by `plan_graph`, "
             f"batch {BATCH} unless the row says otherwise; {settings}; alignment 512 bytes. "
             "Parameters, momentum, uploads and workspaces count. Our default planner: in place, "
             f"{report['plan_seconds']} s. {origins(rows, names)}.",
             "## Sharing on one stream", *note_text(rows),
             "## Sharing that is safe for several streams", *safe_text(rows),
             "## Schedules with copies",
             *([f"`tide` on {report['device']}, a simulated GPU, {STEPS} steps. {origins(copies)}.",
                *copies_text(copies)] if copies else ["Not measured."])]
    (folder / "mxnet.md").write_text("\n\n".join(parts) + "\n")


def rows_of(path):
    """Of networks, and of schedules with copies."""
    return tuple(read_rows(path, "processor", key=key) for key in ("rows", "copies"))


def measure_all(args, path):
    rows, copies = rows_of(path)
    origin = {"commit": stamp()["commit"], "processor": cpu_name()}

    def add(found, key, measured):
        """Measures what was not at this commit, and writes."""
        before = [row for row in found if all(row[k] == v for k, v in key.items())]
        if any(row["commit"] == origin["commit"] for row in before):
            return
        row = {**measured(), **origin}
        found[:] = [row if old in before else old for old in found] if before else [*found, row]
        rows.sort(key=lambda row: list(NETWORKS).index(row["network"]))
        write_report(path, device=DEVICE, plan_seconds=PLAN_SECONDS, rows=rows, copies=copies)
        print(*key.values(), flush=True)

    for name in args.networks:
        add(rows, {"network": name}, lambda name=name: measure(args.build, name))
    for name in COPIES:
        for budget in BUDGETS if name.split(",")[0] in args.networks else []:
            add(copies, {"step": name, "budget": budget},
                lambda name=name, budget=budget: measure_copies(args.build, name, budget))


def main():
    args = parse(report_parser(__doc__, "plan_graph", "train_resnet", "train_bert"), NETWORKS)
    if not args.no_run:
        measure_all(args, args.folder / "mxnet.json")
    write_text(args.folder)


if __name__ == "__main__":
    run_main(main)
