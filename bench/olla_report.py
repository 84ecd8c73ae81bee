#!/usr/bin/env python3
"""OLLA as its paper has it, on the paper's networks: what figures 7 to 14 show, with what the
paper's text says of them, and its programs without each reduction.

usage: olla_report.py [--build build/release] [--folder bench/results] [--deadline 300] [--no-run]
                      [NETWORK...]

Plans each network's step at batch 1 and 32 with olla_figures, writes results/olla.json as it goes,
and then results/olla.md from that and from olla_ablation.json. Goes on where it was stopped: what
was measured with the same deadline is not measured again (delete its row to do so). The deadline is
in seconds, for each of the two programs; the paper's is 300.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from reports import ROOT, cpu_name, write_report

# The paper's eleven networks, as plan_graph captures them, and how they differ from those that the
# authors' benchmark trains (facebookresearch/MODel_opt, benchmarks.py). The paper itself does not
# say which size of a network it means.
NETWORKS = {
    "AlexNet": (["alexnet"], ""),
    "EfficientNet": (["efficientnet_b0"], ""),
    "GoogleNet": (["googlenet"], "no auxiliary classifiers"),
    "MNASNet": (["mnasnet1_0"], "width 1.0; theirs 0.5"),
    "MobileNet": (["mobilenet_v2"], ""),
    "ResNet": (["resnet18"], ""),
    "ResNet3D": (["r3d_18"], "clips of 16 frames; theirs of 1"),
    "Transformer": (["transformer-base", "--seq-length", "20"],
                    "6 + 6 layers with embeddings and logits, 20 tokens; theirs 1 + 1 layers "
                    "without either, 10 and 20 tokens"),
    "VGG": (["vgg11"], ""),
    "ViT": (["vit_b_16"], ""),
    "XLM-R": (["xlm-roberta-base", "--seq-length", "256"], ""),
}
BATCHES = (1, 32)


def run(command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def measure(build, network, batch, deadline):
    model, _ = NETWORKS[network]
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "step.json"
        run([build / "bin" / "plan_graph", "--model", *model, "--batch", batch, "--momentum", 0,
             "--estimate", "--save-graph", graph])
        planned = json.loads(run([build / "bin" / "olla_figures", graph, "--deadline", deadline]))
    return {"network": network, "batch": batch, "step": " ".join(model), **planned}


def measure_all(args, path):
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    for network in args.networks:
        for batch in BATCHES:
            key = (network, batch, args.deadline)
            if any((r["network"], r["batch"], r["deadline_s"]) == key for r in rows):
                continue
            row = measure(args.build, network, batch, args.deadline)
            rows = [r for r in rows if (r["network"], r["batch"]) != key[:2]] + [row]
            rows.sort(key=lambda r: (list(NETWORKS).index(r["network"]), r["batch"]))
            write_report(path, processor=cpu_name(), rows=rows)
            print(f"{network}, batch {batch}: order {row['order']['status']} in "
                  f"{row['order']['seconds']:.1f} s, places {row['places']['status']} in "
                  f"{row['places']['seconds']:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--deadline", type=float, default=300)
    parser.add_argument("--no-run", action="store_true", help="only write the report anew")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(NETWORKS))
    args = parser.parse_args()
    for network in args.networks:
        if network not in NETWORKS:
            parser.error(f"unknown network '{network}'; available: {', '.join(NETWORKS)}")
    path = args.folder / "olla.json"
    if not args.no_run:
        measure_all(args, path)


if __name__ == "__main__":
    sys.exit(main())
