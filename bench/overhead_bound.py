#!/usr/bin/env python3
"""How near the default policy comes to the least that a step can take under a budget.

    bench/overhead_bound.py [--build build/release] [--output FILE.json] [NETWORK...]
    bench/overhead_bound.py --self-check

For each network and saving of the unmanaged peak: a lower bound on how much longer a step takes,
under ANY policy that runs the program's operators in program order and may evict and recompute,
offload and reload; and beside it what tide takes, measured in the same run. Needs a Python with
scipy (HiGHS). The bound is of a linear program's relaxation: no schedule is claimed to reach it.

The model
---------
Calls 0..n-1 run in program order on one compute stream, call k for c_k, T = sum of c_k. What any
policy adds (recomputation, waiting, moving blocks) lies between calls. Memory is looked at only
when some calls k_1 < ... < k_J start, chosen where most is live; interval j is from the start of
k_j to that of k_(j+1), interval 0 from the step's start, interval J to its end. Unknowns, all >= 0:

  w_j     time added in interval j that y does not count
  P_s,j   share of the bytes of s that are in memory when k_j starts. For s between two uses (in a
          gap), or past its last use and wanted for a recomputation (in a tail)
  y_s,j   1 if the call that made s runs again in interval j
  r_s,j   share of the bytes of s that are not there when k_j starts, and whose first return, in
          interval j, is by reload
  U_v,j   share of the bytes of version v of a storage that the host has a copy of when k_j
          starts. What the step began with, or uploaded, it may have from before: 1

A byte that is being reloaded is in memory once it has come, one that is being copied out until it
has gone: so blocks that change hands in the middle of a copy are counted as they should be. Any
real schedule gives values in [0, 1] (w_j: >= 0) that satisfy, for every j:

  memory     what k_j uses (workspace included) + sum_s size_s P_s,j <= budget
  return     P_s,j+1 <= P_s,j + y_s,j + r_s,j       and 1 <= the same at the last k_j of a gap
  origin     r_s,j <= U_s,j;   1 - P_s,j <= U_s,j + sum of y_s,i over i >= j in the gap:
             what is not there has a copy already, or is computed again first
  copies     U_v,j <= U_v,j+1, and 0 while v is not written yet; one copy serves all gaps of v
  operands   y_s,j <= P_x,j + y_x,j + r_x,j for each input x of the call that made s, unless a
             call from k_j to k_(j+1), both included, uses x
  link out   sum_v bytes_v (U_v,j+1 - U_v,j) <= out * (length of interval j)
  link in    sum_s bytes_s r_s,j             <= in  * (length of interval j)

The length is what the calls in it take + sum_s c(s) y_s,j + w_j, with c(s) what the call that made
s takes. Objective: least sum of c(s) y_s,j + w_j. y may be a fraction as well: hence a bound.

Why each simplification only lowers the result
----------------------------------------------
- Memory is looked at in some moments only: constraints left out. Nothing is lost to fragmentation,
  alignment of copies (bytes = size - 511), or what recomputation itself needs room for.
- What is below 64 KiB vanishes between uses for free, as does everything after its last use, and
  what outlives the step (parameters, optimizer state) outside of its first and last use in it.
- Each direction of the link has its own rate, as if alone; no latency; the host has room for all.
- A call that runs again several times in an interval is paid once. A call with several outputs is
  paid for one of them, the largest: runs for the others are free. (There is one y for a storage and
  an interval, that of the gap in which k_j lies, so no run is paid twice.)
- An operand in use in the interval, of less than 64 KiB, or past its last use and outliving the
  step costs nothing. One that has been overwritten since is taken as it is now.
- Eviction is ruled out only for what has been written in place, was there before the step or is an
  upload: none has a call that makes it again.
- Uploads come before the first call as fast as the link goes, and nothing can: a step begins when
  the last has ended. That wait is in the step without a budget too, so it is not overhead; the
  link out may be used meanwhile.

More starts looked at give a longer program, not always a better bound (a run in two short intervals
needs half of an operand in each, in one long interval all of it): the best of several counts.

The bound of a step is T + the uploads' wait + the optimum; overhead is against the measured step
without a budget.
"""

import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

from reports import INFEASIBLE, ROOT, train, write_report

SMALL = 1 << 16
PAD = 511  # of a storage's size, at most, that is alignment
SAVINGS = [40, 50, 60, 70, 78, 80]
STEPS = 20
PROFILE = "a100-80gb"
SAME_PEAK = 0.01
SKIPPED = 77  # exit code, as the tests take it
# train program, its flags, plan_graph's flags
NETWORKS = {
    "resnet50_b256": ("train_resnet", "resnet50", 256, [], []),
    "resnet101_b128": ("train_resnet", "resnet101", 128, [], []),
    "resnext50_b128": ("train_resnet", "resnext50_32x4d", 128, [], []),
    "efficientnet_b0_b256": ("train_resnet", "efficientnet_b0", 256, [], []),
    "bert_base_512_b32": ("train_bert", "bert-base", 32, ["--seq-length", "512"],
                          ["--optimizer", "adamw"]),
}


class Gap:
    """A storage between two uses a < b; or past its last use a, with b = number of calls."""

    def __init__(self, storage, a, b, version, tail=False):
        self.storage, self.a, self.b, self.version, self.tail = storage, a, b, version, tail
        self.points = range(0)  # of the k_j, those within


class Step:
    """What the program needs of a captured step (runtime/schedule/trace_json.h)."""

    def __init__(self, graph):
        ops, storages = graph["ops"], graph["storages"]
        self.n = len(ops)
        self.cost = [op.get("cost_ns", 0) * 1e-6 for op in ops]  # ms
        self.size = [s["size"] for s in storages]
        self.begins = [0.0]  # of each call, and the end
        for c in self.cost:
            self.begins.append(self.begins[-1] + c)
        self.maker, self.inputs, self.uploads = {}, [], []
        uses = [[] for _ in storages]
        writes = [[] for _ in storages]
        for k, op in enumerate(ops):
            self.inputs.append([i[0] for i in op.get("inputs", [])])
            outputs = op.get("outputs", [])
            for s in dict.fromkeys(self.inputs[-1] + outputs):
                uses[s].append(k)
            for i in op.get("inputs", []):
                if len(i) > 2:
                    writes[i[0]].append(k)
            for s in outputs:
                if op["kind"] == "call":
                    self.maker[s] = k
                if op["kind"] == "upload" and k < next(
                        (i for i, o in enumerate(ops) if o["kind"] == "call"), self.n):
                    self.uploads.append(s)
        self.uses = uses
        self.stays = [s.get("at_start", False) or s.get("at_end", False) for s in storages]
        self.at_start = [s.get("at_start", False) for s in storages]
        self.used = [op.get("workspace", 0) for op in ops]
        # (storage, version) -> the call that wrote it; -1: the host has it from the beginning.
        self.gaps, self.born = [], {}
        uploaded = {s for op in ops if op["kind"] == "upload" for s in op["outputs"]}
        for s, at in enumerate(uses):
            for k in at:
                self.used[k] += self.size[s]
            if not at:
                continue
            self.born[s, 0] = -1 if self.at_start[s] or s in uploaded else at[0]
            for version, k in enumerate(writes[s], 1):
                self.born[s, version] = k
            if self.size[s] < SMALL:
                continue
            for a, b in zip(at, at[1:]):
                if b > a + 1:
                    self.gaps.append(Gap(s, a, b, sum(k <= a for k in writes[s])))
        self.live = list(self.used)
        for gap in self.gaps:
            for k in range(gap.a + 1, gap.b):
                self.live[k] += self.size[gap.storage]
        # The one output that pays for a call.
        self.payer = {}
        for s, k in self.maker.items():
            if k not in self.payer or self.size[s] > self.size[self.payer[k]]:
                self.payer[k] = s

    def can_run_again(self, gap):
        return gap.storage in self.maker and gap.version == 0 and not self.at_start[gap.storage]

    def price(self, storage):
        k = self.maker[storage]
        return self.cost[k] if self.payer[k] == storage else 0.0

    def upload_wait(self, bytes_per_ms):
        """Of the compute stream, for what is uploaded before the first call."""
        done = wait = 0.0
        for s in self.uploads:
            done += max(self.size[s] - PAD, 0) / bytes_per_ms
            first = next((k for k in self.uses[s] if s in self.inputs[k]), self.n)
            wait = max(wait, done - self.begins[first])
        return wait

    def tails(self, evictable):
        """Of what is wanted only to compute one of `evictable` again, after its last use."""
        found = {}
        for gap in evictable:
            for x in self.inputs[self.maker[gap.storage]]:
                last = self.uses[x][-1]
                if self.size[x] >= SMALL and not self.stays[x] and last < gap.b - 1:
                    version = max(v for (s, v) in self.versions(x))
                    found.setdefault(x, Gap(x, last, self.n, version, tail=True))
        return list(found.values())

    def versions(self, storage):
        v = 0
        while (storage, v) in self.born:
            yield storage, v
            v += 1


def choose_points(step, budget, most):
    """At most that many calls at which too much is live: of each stretch the fullest."""
    over = [k for k in range(step.n) if step.live[k] > budget]
    stretches = min(most, len(over))
    return sorted(max(over[i * len(over) // stretches:(i + 1) * len(over) // stretches],
                      key=lambda k: step.live[k]) for i in range(stretches))


class Program:
    """Rows `sum of coefficients * variables <= limit`."""

    def __init__(self):
        self.price, self.upper = [], []
        self.row, self.column, self.value, self.limit = [], [], [], []

    def variable(self, upper=1.0, price=0.0):
        self.price.append(price)
        self.upper.append(upper)
        return len(self.price) - 1

    def at_most(self, terms, limit):
        for column, value in terms:
            if column is not None:
                self.row.append(len(self.limit))
                self.column.append(column)
                self.value.append(value)
        self.limit.append(limit)

    def solve(self):
        from scipy.optimize import linprog  # not at the top: it may not be there
        from scipy.sparse import coo_matrix
        matrix = coo_matrix((self.value, (self.row, self.column)),
                            shape=(len(self.limit), len(self.price)))
        return linprog(self.price, A_ub=matrix.tocsr(), b_ub=self.limit,
                       bounds=[(0, u) for u in self.upper], method="highs-ipm")


def bound(step, budget, profile, most_points):
    """The least time added to a step, ms, and what it is made of; None: no schedule fits."""
    out, into = profile["offload_bandwidth"] / 1e3, profile["reload_bandwidth"] / 1e3  # per ms
    if max(step.used) > budget:
        return None
    points = choose_points(step, budget, most_points)
    if not points:
        return {"extra_ms": 0.0, "recompute_ms": 0.0, "points": 0}
    count = len(points)

    def within(gap):
        inside = [j for j, k in enumerate(points) if gap.a < k < gap.b]
        return range(inside[0], inside[-1] + 1) if inside else range(0)

    gaps = step.gaps + step.tails([g for g in step.gaps if step.can_run_again(g)])
    for gap in gaps:
        gap.points = within(gap)
    gaps = [g for g in gaps if g.points]

    lp = Program()
    # Interval j of the docstring is w[j + 1] here: points are counted from 0.
    w = [lp.variable(None, 1.0) for _ in range(count + 1)]
    present, again, back, copied = {}, {}, {}, {}
    memory = [[] for _ in points]
    runs = collections.defaultdict(list)  # time that recomputation takes, by interval
    moved_out = collections.defaultdict(list)
    moved_in = collections.defaultdict(list)

    def copy(s, version, j):
        """U; None: always 1."""
        if step.born[s, version] < 0:
            return None
        if (s, version, j) not in copied:
            copied[s, version, j] = lp.variable()
        return copied[s, version, j]

    for g, gap in enumerate(gaps):
        s = gap.storage
        for j in gap.points:
            key = s, j
            present[key] = lp.variable()
            memory[j].append((present[key], step.size[s] / 1e9))
            back[key] = lp.variable()
            moved_in[j].append((back[key], max(step.size[s] - PAD, 0) / 1e9))
            again[key] = None
            if step.can_run_again(gap):
                price = step.price(s)
                again[key] = lp.variable(1.0, price)
                if price:
                    runs[j].append((again[key], price))
            copy(s, gap.version, j)
    # Calls that use a storage at or between k_j and k_(j+1).
    used = [set() for _ in points]
    for j in range(count):
        end = points[j + 1] if j + 1 < count else step.n - 1
        for s, at in enumerate(step.uses):
            if any(points[j] <= k <= end for k in at):
                used[j].add(s)

    for gap in gaps:
        s, last = gap.storage, gap.points[-1]
        remaining = []
        for j in reversed(gap.points):
            P, y, r = present[s, j], again[s, j], back[s, j]
            came = [(P, -1.0), (y, -1.0), (r, -1.0)]
            if j < last:
                lp.at_most([(present[s, j + 1], 1.0), *came], 0.0)
            elif not gap.tail:
                lp.at_most(came, -1.0)
            U = copy(s, gap.version, j)
            remaining.append((y, -1.0))
            if U is not None:
                lp.at_most([(r, 1.0), (U, -1.0)], 0.0)
                if not gap.tail:
                    lp.at_most([(P, -1.0), (U, -1.0), *remaining], -1.0)
            if y is not None:
                for x in set(step.inputs[step.maker[s]]):
                    if x not in used[j] and (x, j) in present:
                        lp.at_most([(y, 1.0), (present[x, j], -1.0), (again[x, j], -1.0),
                                    (back[x, j], -1.0)], 0.0)
    # A copy made once serves every gap of its version.
    by_version = collections.defaultdict(list)
    for s, version, j in copied:
        by_version[s, version].append(j)
    for (s, version), js in by_version.items():
        born = step.born[s, version]
        first = next(j for j, k in enumerate(points) if k > born)
        size = max(step.size[s] - PAD, 0) / 1e9
        before = None
        for j in range(first, max(js) + 1):
            U = copy(s, version, j)
            moved_out[j - 1].append((U, size))
            if before is not None:
                moved_out[j - 1].append((before, -size))
                lp.at_most([(before, 1.0), (U, -1.0)], 0.0)
            before = U

    for j, k in enumerate(points):
        lp.at_most(memory[j], (budget - step.used[k]) / 1e9)
    wait = step.upload_wait(into)
    for j in range(-1, count):
        begin, end = points[j] if j >= 0 else 0, points[j + 1] if j + 1 < count else step.n
        stretch = [(w[j + 1], 1.0), *runs[j]]
        window = step.begins[end] - step.begins[begin] + (wait if j < 0 else 0.0)
        if moved_out[j]:
            lp.at_most(moved_out[j] + [(v, -out * c / 1e9) for v, c in stretch],
                       out * window / 1e9)
        if moved_in[j]:
            lp.at_most(moved_in[j] + [(v, -into * c / 1e9) for v, c in stretch],
                       into * window / 1e9)
    result = lp.solve()
    if result.status == 2:
        return None
    if result.status != 0:
        raise RuntimeError(f"HiGHS: {result.message}")
    recompute = sum(c * result.x[v] for terms in runs.values() for v, c in terms)
    return {"extra_ms": max(float(result.fun), 0.0), "recompute_ms": float(recompute),
            "points": count, "variables": len(lp.price), "rows": len(lp.limit)}


def best_bound(step, budget, profile, choices):
    """Each choice of calls gives a bound, and more calls not always a better one."""
    found = [bound(step, budget, profile, most) for most in choices]
    return None if None in found else max(found, key=lambda b: b["extra_ms"])


# --- what tide takes ------------------------------------------------------------------------------


def capture(build, model, batch, flags):
    """The captured step, and what is live at its peak."""
    with tempfile.TemporaryDirectory() as folder:
        graph, plan = pathlib.Path(folder) / "graph.json", pathlib.Path(folder) / "plan.json"
        subprocess.run([build / "bin" / "plan_graph", "--model", model, "--batch", str(batch),
                        "--profile", PROFILE, "--method", "program-order-best-fit",
                        "--save-graph", graph, "--output", plan, *flags],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(graph.read_text()), json.loads(plan.read_text())["program_order_load"]


def train_network(build, program, model, batch, flags, policy, budget):
    """What a run says of itself; None: the budget is below the smallest feasible one."""
    data = ["--data", "synthetic"] if program == "train_resnet" else []
    run = train(build, program, "--model", model, "--batch", batch, *data, *flags,
                "--device", f"sim:{PROFILE}", "--policy", policy, "--steps", STEPS,
                "--budget", budget)
    if run.get("code") == INFEASIBLE:
        return None
    if "error" in run:
        sys.exit(f"{program}: {run['error']}")
    return run


def bound_key(device, choices, row, budget):
    """All that a bound follows from."""
    return (device, tuple(choices), row["network"], row["operators"], row["least_unmanaged_ms"],
            row["captured_live_bytes"], budget)


def known_bounds(path):
    """A report's bounds, by bound_key()."""
    if not path:
        return {}
    report = json.loads(path.read_text())
    return {bound_key(report["device"], report["calls_looked_at"], row, point["budget_bytes"]):
            point["bound"] for row in report["rows"] for point in row["points"]}


def measure(build, name, savings, choices, known):
    program, model, batch, train_flags, graph_flags = NETWORKS[name]
    profile = json.loads((ROOT / "data" / "profiles" / f"{PROFILE}.json").read_text())
    graph, captured = capture(build, model, batch, train_flags + graph_flags)
    free = train_network(build, program, model, batch, train_flags, "none", "100%")
    step = Step(graph)
    base = step.begins[-1] + step.upload_wait(profile["reload_bandwidth"] / 1e3)
    free_ms, peak, live = (free["steps"][-1]["ms"], free["unmanaged_peak_bytes"],
                           free["peak_live_bytes"])
    row = {
        "network": name, "operators": len(graph["ops"]), "unmanaged_ms": free_ms,
        "least_unmanaged_ms": base, "unmanaged_peak_bytes": peak,
        "unmanaged_live_bytes": live, "captured_live_bytes": captured,
        # The captured step is the one that is trained.
        "same_program": abs(captured - live) <= SAME_PEAK * live, "points": [],
    }
    if not row["same_program"] or free_ms < base:
        sys.exit(f"{name}: what was captured is not what is trained: {row}")
    for saving in savings:
        began = time.monotonic()
        run = train_network(build, program, model, batch, train_flags, "tide", f"{100 - saving}%")
        budget = run["budget_bytes"] if run else peak * (100 - saving) // 100
        key = bound_key(f"sim:{PROFILE}", choices, row, budget)
        found = known[key] if key in known else best_bound(step, budget, profile, choices)
        point = {"saving": saving, "budget_bytes": budget, "bound": found}
        if found:
            point["bound_ms"] = base + found["extra_ms"]
            point["bound_overhead"] = point["bound_ms"] / free_ms - 1
        if run:
            point["tide_ms"] = run["steps"][-1]["ms"]
            point["tide_overhead"] = point["tide_ms"] / free_ms - 1
            if not found or point["tide_ms"] < point["bound_ms"]:
                sys.exit(f"{name}: a step takes less than its bound: {point}")
        row["points"].append(point)
        print(f"{name} {saving} %: {cell(point)} ({time.monotonic() - began:.0f} s)",
              file=sys.stderr, flush=True)
    return row


def cell(point):
    # Rounded down, as it is a bound.
    least = f"{math.floor(1000 * point['bound_overhead']) / 10}" if point["bound"] else "none"
    return (f"{100 * point['tide_overhead']:.1f} % (>= {least} %)" if "tide_ms" in point
            else f"infeasible (>= {least} %)")


def table(rows):
    savings = [p["saving"] for p in rows[0]["points"]]
    lines = ["| tide's longer step (least for any policy) | "
             + " | ".join(f"{s} %" for s in savings) + " |", "|" + "---|" * (len(savings) + 1)]
    return "\n".join(lines + [f"| {r['network']} | " + " | ".join(map(cell, r["points"])) + " |"
                              for r in rows])


# --- self-check -----------------------------------------------------------------------------------

GB = 10**9


def hand_made(calls, sizes, at_start=()):
    """calls: (milliseconds, inputs, outputs); sizes in GB."""
    return Step({
        "storages": [{"size": int(s * GB), "at_start": i in at_start, "at_end": i in at_start}
                     for i, s in enumerate(sizes)],
        "ops": [{"kind": "call", "name": str(k), "cost_ns": int(ms * 1e6), "outputs": outputs,
                 "inputs": [i if isinstance(i, list) else [i, 0] for i in inputs]}
                for k, (ms, inputs, outputs) in enumerate(calls)]})


def self_check():
    def least(step, budget, rate):
        """rate: GB a millisecond, each way."""
        profile = {"offload_bandwidth": rate * 1e12, "reload_bandwidth": rate * 1e12}
        return bound(step, int(budget * GB), profile, 10)

    # s0 is of no use in call 2, which needs all of the budget; then at once it is.
    away = hand_made([(10, [], [0]), (10, [0], [1]), (10, [1], [2]), (0, [0, 2], [3])],
                     [4, 4, 4, 0])
    # s1 is to be computed again from s0, which nobody has after call 1.
    chain = hand_made([(7, [], [0]), (10, [0], [1]), (5, [], [2]), (0, [1], [3])], [1, 4, 8, 0])
    pair = hand_made([(10, [], [0, 1]), (5, [], [2]), (0, [0, 1], [3])], [2, 2, 8, 0])
    # Written in place: cannot be computed again.
    written = hand_made([(10, [], [0]), (10, [[0, 0, "written"]], []), (10, [], [1]),
                         (0, [0], [2])], [4, 8, 0])
    none = 1e-9
    for name, step, budget, rate, expected in [
            ("it fits", away, 12, none, 0),
            ("computed again", away, 8, none, 10),
            ("copied while calls run", away, 8, 1, 0),
            # f of it computed again, the rest reloaded from call 2 on: 4 (1 - f) = 0.2 (10 + 10 f)
            ("a slow link beside recomputation", away, 8, 0.2, 10 / 3),
            ("half of it would do", away, 10, none, 5),
            ("with what it is computed from", chain, 8, none, 17),
            ("what it is computed from may stay", chain, 9, none, 10),
            ("outputs of one call", pair, 8, none, 10),
            # 4 GB out within 20 ms, 2 GB back during call 2 and 2 GB after it
            ("copied, as it was written", written, 8, 0.2, 10),
            ("too small for a call", away, 7.9, 1, None)]:
        found = least(step, budget, rate)
        extra = None if found is None else found["extra_ms"]
        if (extra is None) != (expected is None) or (
                extra is not None and abs(extra - expected) > 1e-4):
            sys.exit(f"overhead_bound.py: {name}: {extra} ms, expected {expected}")
    print("overhead_bound.py: as expected")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--savings", type=int, nargs="+", default=SAVINGS)
    parser.add_argument("--calls", type=int, nargs="+", default=[4, 24],
                        help="look at so many calls; the best bound of several counts")
    parser.add_argument("--bounds", type=pathlib.Path, metavar="REPORT",
                        help="take over its bounds, for the same steps in the same budgets")
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("networks", nargs="*", metavar="NETWORK",
                        help=f"of {', '.join(NETWORKS)} [all]")
    args = parser.parse_args()
    try:
        import scipy.optimize  # noqa: F401
    except ModuleNotFoundError:
        print("overhead_bound.py: skipped: this Python has no scipy")
        return SKIPPED if args.self_check else 1
    if args.self_check:
        return self_check()
    for name in args.networks:
        if name not in NETWORKS:
            parser.error(f"there is no network '{name}'; there are: {', '.join(NETWORKS)}")
    known = known_bounds(args.bounds)
    rows = []
    for name in args.networks or NETWORKS:
        rows.append(measure(args.build, name, args.savings, args.calls, known))
        if args.output:  # of what is known so far: a run takes long, and may be stopped
            write_report(args.output, about="longer step against saving: tide, and the least for "
                         "any policy", device=f"sim:{PROFILE}", steps=STEPS,
                         calls_looked_at=args.calls, rows=rows)
    print(table(rows))


if __name__ == "__main__":
    sys.exit(main())
