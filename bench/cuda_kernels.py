#!/usr/bin/env python3
"""Every CUDA kernel that ships: the tests that execute its PTX, its registers, spills and occupancy,
and, for the kernels of some layers, what they read, write and compute beside the limits of GPUs.
No GPU is needed, but a build with the CUDA toolkit, in which ctest -R '^ptx' has passed.

usage: bench/cuda_kernels.py [--build build/release] > bench/results/cuda_kernels.json
       bench/cuda_kernels.py --table              the counts, as Markdown, from that file

Registers are those of ptxas for sm_80 and sm_90, from sm_80's PTX, and for sm_86 and sm_89 from
sm_86's, where a long test has compiled it.
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from reports import ROOT, run_main

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests/ops/ptx")]
# pylint: disable=wrong-import-position
import check_executed  # noqa: E402
import kernel_resources  # noqa: E402

RESULTS = ROOT / "bench/results/cuda_kernels.json"

# Per second: bytes of memory, and operations of float32 units, of TF32 and of bfloat16 by tensor
# cores (data/profiles/).
GPUS = {"a100": (2.039e12, 19.5e12, 156e12, 312e12), "h100": (3.35e12, 67e12, 494.7e12, 989.4e12)}


def short(name):
    """A kernel's name without its parameters and what all share."""
    name = re.sub(r"\(anonymous namespace\)::|tidemark::|^void |\bdetail::", "", name)
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            return name[:at]
    return name


def tests_of(folder):
    """The suites that execute each kernel, by its name without hashes."""
    tests = {}
    for path in sorted(Path(folder).glob("*.txt")):
        for name in path.read_text().split():
            tests.setdefault(name, []).append(path.stem.removesuffix("__"))
    return tests


def kernels(folder, ptxas):
    """A row for each kernel."""
    rows = {}
    tests = tests_of(folder / "tidemark_shipped_ptx_executed")
    sets = [("tidemark_shipped_ptx", (80, 90)), ("tidemark_shipped_ptx_86", (86, 89))]
    for target, archs in sets:
        for path in map(Path, (folder / f"{target}_files.txt").read_text().split()):
            if not path.exists():
                continue
            for arch in archs:
                for usage in kernel_resources.of_ptx(path, arch, ptxas):
                    name = check_executed.without_hashes(usage.kernel)
                    row = rows.setdefault(name, {"file": usage.file, "tests": tests.get(name, [])})
                    row[f"sm_{arch}"] = [usage.registers, usage.spilled,
                                         round(usage.occupancy(arch), 3)]
    names = subprocess.run(["c++filt"], input="\n".join(rows), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [{"kernel": short(name), **row} for name, row in zip(names, rows.values())]


def limits(row):
    """The least time on each GPU, in microseconds, if caches had nothing, and what sets it."""
    found = {}
    for gpu, (memory, units, tf32, bfloat16) in GPUS.items():
        cores = bfloat16 if "bfloat16" in row["call"] else tf32
        times = {"memory": (row["read"] + row["written"]) / memory, "float32": row["flops"] / units,
                 "tensor cores": row["tensor_flops"] / cores}
        limit = max(times, key=times.get)
        found[gpu] = {"least_us": round(times[limit] * 1e6, 4), "limit": limit}
    return found


def mutations(program):
    """What each mutation of a shipped kernel is, where, and the check that catches it."""
    subprocess.run([program], check=True, stdout=subprocess.DEVNULL)
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True,
                            check=True).stdout
    rows = re.findall(r"# GetParam\(\) = (.*), in (\w+): (.*)", listed)
    return [{"mutation": what, "file": file, "caught_by": check} for what, file, check in rows]


def measure(build, ptxas):
    folder = build / "tests/ops/ptx"
    counts = json.loads(subprocess.run([folder / "kernel_counts"], capture_output=True, text=True,
                                       check=True).stdout)
    for row in counts:
        row["kernel"] = short(row["kernel"])
        row.update(limits(row))
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True,
                            text=True, check=False).stdout.strip()
    return {"device": "PTX and ptxas, without a GPU", "commit": commit,
            "columns": "sm_80 and others: registers, spilled bytes, occupancy",
            "mutations": mutations(folder / "ptx_mutations_test"), "counts": counts,
            "kernels": kernels(folder, ptxas)}


def compact(result):
    """JSON with a line for each row."""
    lines = []
    for key, value in result.items():
        if isinstance(value, list):
            rows = ",\n".join("  " + json.dumps(row) for row in value)
            lines.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def table(result):
    print("| call | kernel | KB read | KB written | MFLOP | on tensor cores | least us, A100 | H100 |")
    print("|---|---|---|---|---|---|---|---|")
    for row in result["counts"]:
        cells = [f"{row[key] / 1e3:.0f}" for key in ("read", "written")]
        cells += [f"{row[key] / 1e6:.2f}" for key in ("flops", "tensor_flops")]
        cells += [f"{row[gpu]['least_us']:.2f} ({row[gpu]['limit']})" for gpu in GPUS]
        print(f"| {row['call']} | `{row['kernel']}` | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--table", action="store_true", help="print the counts of the results")
    arguments = parser.parse_args()
    if arguments.table:
        table(json.loads(RESULTS.read_text()))
    else:
        print(compact(measure(arguments.build, arguments.ptxas)))


if __name__ == "__main__":
    run_main(main)
