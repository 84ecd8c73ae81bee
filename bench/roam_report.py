#!/usr/bin/env python3
"""ROAM's networks planned by ROAM, by its baselines and by the default planner, beside what the
paper publishes.

usage: roam_report.py [--build build/release] [--folder bench/results] [--deadline 5]
                      [--solver-deadline 60] [--no-run] [NETWORK...]

Plans each network's step at batch 1, 2, 4 and 32 (GPT-2 XL at 1, 2 and 4, as the paper) with SGD
and with Adam unfused, writes results/roam.json as it goes, and then results/roam.md with its
figures (SVG) from that. Goes on where it was stopped: what was planned with the same flags and
deadline is not planned again (delete its row to do so). Integer programs need HiGHS
(TIDEMARK_HIGHS, or highs in PATH); without it the report says that they were not run. Needs
matplotlib (Debian: python3-matplotlib).

Networks of text are captured without clipping, for which updates would wait for all gradients, and
which the paper does not have. Integer programs are run once more without time, which gives the
peak of their starts.
"""
import argparse
import contextlib
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import json
from typing import NamedTuple

from reports import ROOT, cpu_name, cpu_seconds, default_of, plan_network, stamp, write_report

# The paper's networks, as it names them.
NETWORKS = {
    "AlexNet": "alexnet", "VGG": "vgg16", "MnasNet": "mnasnet1_0", "MobileNet": "mobilenet_v2",
    "EfficientNet": "efficientnet_b0", "ViT": "vit_b_16", "BERT": "bert-base", "GPT-2 XL": "gpt2-xl",
}
LARGE = "GPT-2 XL"  # has a section of its own in the paper
OPTIMIZERS = {"sgd": "SGD", "adam-unfused": "Adam"}
METHODS = {
    "default": "our default", "roam": "ROAM", "roam-gradients-wait": "ROAM, gradients wait",
    "roam-ilp": "ROAM, integer programs", "roam-multi-stream": "ROAM, several streams",
    "lescea-llfb": "LESCEA + LLFB", "pytorch": "PyTorch's model",
}
BY_PROGRAMS = ["roam-ilp", "roam-multi-stream"]
QUICK = [m for m in METHODS if m not in BY_PROGRAMS]
WAIT_RADIUS = 3
# Where one part is changed at a time.
RADII = (3, 8)
RADIUS_NETWORKS = ["MnasNet", "MobileNet", "EfficientNet"]
# Tried on steps on which ROAM wastes more than so much of its peak.
LAYOUTS = {"roam-activations-anywhere": "activations anywhere",
           "roam-no-tree": "one layout for the whole step"}
WASTEFUL = 0.01


class Cell(NamedTuple):
    network: str
    batch: int
    optimizer: str
    method: str
    flags: tuple
    deadline: float


def batches(network):
    return (1, 2, 4) if network == LARGE else (1, 2, 4, 32)


def flags_of(method):
    return ("--roam-delay-radius", WAIT_RADIUS) if method == "roam-gradients-wait" else ()


def cell_of(row):
    return Cell(row["network"], row["batch"], row["optimizer"], row["method"], tuple(row["flags"]),
                row["deadline_s"])


def steps(networks):
    return [(n, b, o) for n in networks for b in batches(n) for o in OPTIMIZERS]


def quick_cells(args):
    """Those that need no solver and no other's result."""
    for step in steps(args.networks):
        for method in QUICK:
            yield Cell(*step, method, flags_of(method), args.deadline)
    for network in RADIUS_NETWORKS:
        for method in ("roam", "roam-gradients-wait"):
            for radius in RADII:
                if network in args.networks:
                    yield Cell(network, 1, "adam-unfused", method, ("--roam-delay-radius", radius),
                               args.deadline)


def layout_cells(args, rows):
    for row in rows:
        if (row["method"], row["flags"]) == ("roam", []) and row["network"] in args.networks \
                and fragmentation(row) > WASTEFUL:
            for method in LAYOUTS:
                yield Cell(row["network"], row["batch"], row["optimizer"], method, (), args.deadline)


def program_cells(args):
    """The paper's own steps first."""
    def rank(step):
        network, batch, optimizer = step
        return (optimizer == "sgd", network == LARGE, batch not in (1, 32))

    for step in sorted(steps(args.networks), key=rank):
        for method in BY_PROGRAMS:
            yield Cell(*step, method, (), args.solver_deadline)


def find_highs():
    return os.environ.get("TIDEMARK_HIGHS") or shutil.which("highs")


@contextlib.contextmanager
def noted_programs(highs):
    """A file in which HiGHS, when plan_graph calls it, notes how many seconds it has for a
    program."""
    with tempfile.TemporaryDirectory() as folder:
        notes, script = pathlib.Path(folder) / "notes", pathlib.Path(folder) / "highs"
        script.write_text(f"#!/bin/sh\nsed -n 's/time_limit = //p' \"$2\" >> {shlex.quote(str(notes))}\n"
                          f"exec {shlex.quote(highs)} \"$@\"\n")
        script.chmod(0o755)
        os.environ["TIDEMARK_HIGHS"] = str(script)
        yield notes
        os.environ["TIDEMARK_HIGHS"] = highs


def measure(program, cell):
    before = cpu_seconds()
    plan = plan_network(program, NETWORKS[cell.network], cell.batch, cell.optimizer, cell.deadline,
                        *cell.flags, method=cell.method, clip=False)
    return {**cell._asdict(), "deadline_s": cell.deadline, "operators": plan["operators"],
            "peak_bytes": plan["peak"], "load_bytes": plan["load"], "bound_bytes": plan["bound"],
            "program_order_load_bytes": plan["program_order_load"], "seconds": plan["seconds"],
            "process_cpu_seconds": cpu_seconds() - before}


def measure_by_programs(program, cell, notes):
    start = measure(program, cell._replace(deadline=0))["peak_bytes"]
    notes.write_text("")
    row = measure(program, cell)
    return {**row, "start_peak_bytes": start,
            "programs_s": [round(float(line), 2) for line in notes.read_text().split()]}


def fragmentation(row):
    return 1 - row["load_bytes"] / row["peak_bytes"]


class Results:
    """The rows so far, in a file that is written after each."""

    def __init__(self, args, path):
        old = json.loads(path.read_text()) if path.exists() else {}
        self.rows, self.solver = old.get("rows", []), old.get("solver", "")
        self.path, self.commit = path, stamp()["commit"]
        self.program = args.build / "bin" / "plan_graph"
        self.parameters = {flag: default_of(self.program, f"--roam-{flag}")
                           for flag in ("node-limit", "delay-radius", "delay-coefficient")}

    def add(self, cells, measured):
        for cell in cells:
            if any(cell_of(row) == cell for row in self.rows):
                continue
            row = {**measured(self.program, cell), "commit": self.commit,
                   "load_average": os.getloadavg()[0]}
            del row["deadline"]
            row["flags"] = list(cell.flags)
            self.rows = [r for r in self.rows if cell_of(r)[:5] != cell[:5]] + [row]
            self.rows.sort(key=order_of)
            write_report(self.path, commit=self.commit, processor=cpu_name(), solver=self.solver,
                         parameters=self.parameters, rows=self.rows)
            print(f"{cell.network}, {cell.batch}, {OPTIMIZERS[cell.optimizer]}, {cell.method}"
                  f"{''.join(f' {f}' for f in cell.flags)}: {row['peak_bytes'] / 2**20:.1f} MiB, "
                  f"fragmentation {100 * fragmentation(row):.2f} %, {row['seconds']:.1f} s", flush=True)


def order_of(row):
    return (list(NETWORKS).index(row["network"]), row["batch"], list(OPTIMIZERS).index(row["optimizer"]),
            list({**METHODS, **LAYOUTS}).index(row["method"]), row["flags"])


def measure_all(args, path):
    results = Results(args, path)
    results.add(quick_cells(args), measure)
    results.add(list(layout_cells(args, results.rows)), measure)
    highs = find_highs()
    if not highs:
        print("roam_report.py: no HiGHS, so ROAM by integer programs is not run", file=sys.stderr)
        return
    results.solver = subprocess.run([highs, "--version"], capture_output=True, text=True,
                                    check=False).stdout.splitlines()[0]
    with noted_programs(highs) as notes:
        results.add(program_cells(args),
                    lambda program, cell: measure_by_programs(program, cell, notes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--deadline", type=float, default=5, help="of a plan without a solver [5 s]")
    parser.add_argument("--solver-deadline", type=float, default=60,
                        help="of a plan by integer programs [60 s]")
    parser.add_argument("--no-run", action="store_true", help="only write the report anew")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(NETWORKS))
    args = parser.parse_args()
    for network in args.networks:
        if network not in NETWORKS:
            parser.error(f"unknown network '{network}'; available: {', '.join(NETWORKS)}")
    path = args.folder / "roam.json"
    if not args.no_run:
        measure_all(args, path)


if __name__ == "__main__":
    sys.exit(main())
