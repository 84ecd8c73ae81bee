"""Steps as rematerialisation problems with parts of the model switched off, and plans of them. The
networks of the paper are updated by SGD without momentum, because MONeT's runs have no optimizer state;
BERT-base, which is ours alone, by SGD with momentum."""

import json
import os
import re
import subprocess
import tempfile

import remat_methods
from monet import published

# plan_graph's without a solver: its bound is then the same on every machine.
ALONE = {**os.environ, "TIDEMARK_HIGHS": "", "TIDEMARK_CBC": ""}
PLAN = re.compile(r"^ *([\d.]+) +([\d.]+) +\S+ \S+ +([\d.]+) +[\d.]+% +[\d.]+ +(\d+)$", re.MULTILINE)
LEAST = re.compile(r"the least budget (is|found is) (\d+) bytes")
STEP = ("nodes", "keep_all", "base_ms")  # entries that agree in these are of the same step
OFFERED = re.compile(r"^(\d+) variants of operators", re.MULTILINE)


def run(args, *words, env=None):
    """With its processor time: (exit code, output, errors, seconds)."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen([str(args.program), *map(str, words)], stdout=output, stderr=errors,
                              env=env or ALONE) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        return process.returncode, output.read(), errors.read(), used.ru_utime + used.ru_stime


def write(args, network, batch, switches, folder, name):
    """A problem's file, and what plan_graph says of variants. The step is captured once."""
    graph = folder / f"{network}.graph.json"
    problem = folder / f"{network}.{name.replace(' ', '-')}.json"
    step = [graph]
    if not graph.exists():
        step = ["--model", network, "--batch", batch, "--profile", args.profile, "--save-graph", graph,
                *(["--momentum", 0] if network in published.BATCHES else [])]
    code, said, errors, _ = run(args, *step, "--write-remat", problem, *switches)
    if code != 0:
        raise RuntimeError(f"{network}: {errors.strip()}")
    offered = OFFERED.search(said)
    return problem, int(offered[1]) if offered else 0


def plan(args, problem, budget, nodes, output=None, seed=1):
    """Our search, with so many evaluations: {"ms", "bound_ms", "peak"}, or {"none": "proven" or
    "not found"}; either with seconds of processor time; without a schedule, the least budget found."""
    code, said, errors, seconds = run(args, "--remat", problem, "--budget", budget, "--nodes", nodes,
                                      "--deadline", 600, "--seed", seed, *(["--output", output] if output else []))
    row = {"budget": budget, "cpu_s": round(seconds, 3)}
    if code != 0 and remat_methods.is_answer(code, errors):
        row["none"] = "proven" if "no schedule fits in" in errors else "not found"
        least = LEAST.search(errors)
        if least:
            row["least"] = int(least[2])
            row["least_is_proven"] = least[1] == "is"
        return row
    if code != 0:
        raise RuntimeError(f"{problem} at {budget}: {errors.strip()}")
    ms, _, bound, most = PLAN.search(said).groups()
    return {**row, "ms": float(ms), "bound_ms": float(bound), "peak": int(most)}


def entry_of(network, batch, made):
    """What a report says of a step, from its problem without any switch."""
    return {"network": network, "batch": batch, **({"momentum": 0} if network in published.BATCHES else {}),
            "nodes": len(made["nodes"]), "fixed_bytes": made["fixed_bytes"],
            "keep_all": remat_methods.keep_all(made), "base_ms": made["base_time"]}


def entries_of(before, limit):
    """A report's networks. Each says its own limit, commit and processor."""
    shared = {key: before[key] for key in (limit, "commit", "processor") if key in before} if before else {}
    return in_order([{**shared, **entry} for entry in (before or {}).get("networks", [])])


def is_same_step(old, new):
    return all(old.get(key) == new[key] for key in STEP)


def has(report, entry, limit):
    """Whether a report has the step, measured by at least as much of a limit."""
    return any(old["network"] == entry["network"] and old[limit] >= entry[limit] and is_same_step(old, entry)
               for old in report["networks"])


def put(report, entry):
    """In place of what the report has of the network."""
    report["networks"] = in_order(
        [*(old for old in report["networks"] if old["network"] != entry["network"]), entry])


def in_order(entries):
    """As published, then others."""
    names = list(published.BATCHES)
    return sorted(entries, key=lambda entry: names.index(entry["network"])
                  if entry["network"] in names else len(names))


def print_optimizer(entries):
    without = [entry["network"] for entry in entries if entry.get("momentum") == 0]
    if without:
        print("\nUpdated by SGD without momentum, because MONeT's runs have no optimizer state: "
              + ", ".join(without) + ".")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))
