"""Steps as rematerialisation problems with parts of the model switched off, plans of them, and what a
plan holds over time."""

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
        step = ["--model", network, "--batch", batch, "--profile", args.profile, "--save-graph", graph]
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


def split(before, networks, limit, asked):
    """What stays of a report: networks that are not asked for, and those that had as much of a limit.
    Each says its own limit, commit and processor."""
    entries = [{limit: before[limit], "commit": before["commit"],
                "processor": before["processor"], **entry}
               for entry in (before or {}).get("networks", [])]
    return {limit: asked, "networks": in_order(
        [entry for entry in entries if entry["network"] not in networks or entry[limit] >= asked])}


def in_order(entries):
    """As published."""
    return sorted(entries, key=lambda entry: list(published.BATCHES).index(entry["network"]))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def variants(node):
    """With what they take from the node filled in."""
    shared = {key: node[key] for key in ("time", "workspace", "inputs") if key in node}
    return [{"time": 0, "workspace": 0, "inputs": [], **shared, **each}
            for each in node.get("variants") or [{}]]


def keep_all(problem):
    """The listed order, every node once by its first variant, each value freed after its last reader."""
    first = [variants(node)[0] for node in problem["nodes"]]
    last = {u: i for i, variant in enumerate(first) for u in [*variant["inputs"], i]}
    gone = {variant.get("overwrites") for variant in first}
    drop = {}
    for u, i in last.items():
        if u not in gone:
            drop.setdefault(i, []).append(u)
    return [event for i in range(len(first))
            for event in (["compute", i, 0], *(["free", u] for u in drop.get(i, [])))]


def replay(problem, events):
    """Each run as (node, bytes held while it runs, its ms). Raises ValueError for a schedule that breaks
    a rule: reads what is not there, or runs a node that may run once again. Shares no code with the
    planner."""
    nodes = problem["nodes"]
    live, ran, fixed, held, runs = set(), set(), problem["fixed_bytes"], 0, []
    for event in events:
        i = event[1]
        if event[0] == "free":
            if i not in live:
                raise ValueError(f"frees {i}, which is not live")
            live.remove(i)
            held -= nodes[i]["bytes"]
            continue
        node, variant = nodes[i], variants(nodes[i])[event[2] if len(event) > 2 else 0]
        if i in live or (i in ran and node.get("once")) or not live.issuperset(variant["inputs"]):
            raise ValueError(f"node {i} cannot run")
        if variant.get("when") == "first" and i in ran or variant.get("when") == "again" and i not in ran:
            raise ValueError(f"node {i} cannot run by this variant")
        fixed += node.get("adds_fixed", 0)
        held += node["bytes"]
        runs.append((i, fixed + held + variant["workspace"], variant["time"]))
        live.add(i)
        ran.add(i)
        if "overwrites" in variant:
            live.remove(variant["overwrites"])
            held -= nodes[variant["overwrites"]]["bytes"]
    return runs


def peak(runs):
    return max(held for _, held, _ in runs)
