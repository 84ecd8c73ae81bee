#!/usr/bin/env python3
"""ROAM's networks planned by ROAM, by its baselines and by the default planner, beside what the
paper publishes.

usage: roam_report.py [--build build/release] [--folder bench/results] [--deadline 30]
                      [--solver-deadline 60] [--no-run] [NETWORK...]

Plans each network's step at batch 1, 2, 4 and 32 (GPT-2 XL at 1, 2 and 4, as the paper) with SGD
and with Adam unfused, writes roam.json as it goes, and then roam.md with its figures (SVG) from
that. Planning takes 16 minutes in all, and by integer programs two hours. Goes on where it was
stopped: what was planned with the same flags, and with a deadline at least as long or that it did
not need, is kept. To measure anew, remove roam.json or give another folder.
Integer programs need HiGHS (TIDEMARK_HIGHS, or highs in PATH; CBC is not used here); without it the
report says that they were not run. Needs matplotlib (Debian: python3-matplotlib).

Networks of text are captured without clipping, for which updates would wait for all gradients, and
which the paper does not have. Integer programs begin from a plan by heuristics: another run with a
deadline of 0 gives the peak of that plan.
"""
import contextlib
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

from reports import (BadReport, axes_style, cpu_name, cpu_seconds, default_of, find_solver, join,
                     load_of, origins, parse, percent, plan_network, pyplot, read_report,
                     read_rows, report_parser, run_main, save, seconds, solver_name, stamp, table,
                     write_report)

plt = pyplot("roam")

# The paper's networks, as it names them.
NETWORKS = {
    "AlexNet": "alexnet", "VGG": "vgg16", "MnasNet": "mnasnet1_0", "MobileNet": "mobilenet_v2",
    "EfficientNet": "efficientnet_b0", "ViT": "vit_b_16", "BERT": "bert-base",
    "GPT-2 XL": "gpt2-xl",
}
LARGE = "GPT-2 XL"  # has a section of its own in the paper
PAPER_BATCHES = (1, 32)  # of the others
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
PARTS_STEP = ("VGG", 32)
PARTS = {
    "as published": ("roam", ()),
    "delay radius 10": ("roam", ("--roam-delay-radius", 10)),
    "delay radius 30": ("roam", ("--roam-delay-radius", 30)),
    "updates apart from the tree": ("roam-updates-apart", ()),
    "leaves of up to 250 operators": ("roam", ("--roam-node-limit", 250)),
    "the same, activations anywhere": ("roam-activations-anywhere", ("--roam-node-limit", 250)),
}
# Tried on steps on which ROAM wastes more than so much of its peak.
LAYOUTS = {"roam-activations-anywhere": "activations anywhere",
           "roam-no-tree": "one layout for the whole step"}
WASTEFUL = 0.01

# What the paper's text and Table I say; its other figures give no numbers. Per cent.
FRAGMENTATION = {  # by batch 1 and 32: PyTorch, LLFB, ROAM on one stream, MODeL and ROAM on several
    "AlexNet": ((3.34, 17.80, 0.00, 0.00, 0.00), (6.65, 17.80, 0.00, 0.00, 0.00)),
    "VGG": ((5.05, 18.89, 0.00, 0.00, 0.00), (31.40, 0.41, 0.00, 0.00, 0.00)),
    "MnasNet": ((79.77, 0.57, 0.00, 0.01, 0.00), (14.68, 0.00, 0.00, 0.00, 0.00)),
    "MobileNet": ((59.20, 1.60, 0.00, 0.00, 0.00), (11.39, 0.00, 0.00, 1.59, 0.00)),
    "EfficientNet": ((52.64, 2.24, 0.00, 52.85, 0.04), (27.85, 0.35, 0.00, 36.04, 0.08)),
    "ViT": ((12.63, 5.08, 0.00, 13.52, 0.00), (5.82, 0.00, 0.00, 34.67, 0.00)),
    "BERT": ((6.97, 13.86, 0.00, 67.92, 0.00), (10.54, 13.86, 0.00, 69.32, 0.00)),
}
COLUMNS = {"pytorch": 0, "lescea-llfb": 1, "roam": 2, "roam-ilp": 2, "roam-multi-stream": 4}
BELOW = {"pytorch": 35.7, "lescea-llfb": 13.3}  # ROAM's memory, mean
MOST_BY_ORDER = {"pytorch": 41.1, "lescea-llfb": 20.9}  # ROAM's load below that of their orders
OPERATORS = {"ViT": 2000, "BERT": 2700, LARGE: 10_000}  # about; the last "more than"
SECONDS = {"AlexNet": 5, "VGG": 5, "MnasNet": 100, "MobileNet": 100, "ViT": 100,
           "EfficientNet": 500, "BERT": 500}  # ROAM's: within or around


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
    if PARTS_STEP[0] in args.networks:
        for optimizer in OPTIMIZERS:
            for method, flags in PARTS.values():
                yield Cell(*PARTS_STEP, optimizer, method, flags, args.deadline)


def layout_cells(args, rows):
    for row in rows:
        if (row["method"], row["flags"]) == ("roam", []) and row["network"] in args.networks \
                and fragmentation(row) > WASTEFUL:
            for method in LAYOUTS:
                yield cell_of(row)._replace(method=method, deadline=args.deadline)


def program_cells(args):
    """The paper's own steps first."""
    def rank(step):
        network, batch, optimizer = step
        return (optimizer == "sgd", network == LARGE, batch not in (1, 32))

    for step in sorted(steps(args.networks), key=rank):
        for method in BY_PROGRAMS:
            yield Cell(*step, method, (), args.solver_deadline)


@contextlib.contextmanager
def noted_programs(highs):
    """A file in which HiGHS, when plan_graph calls it, notes how many seconds it has for a
    program."""
    with tempfile.TemporaryDirectory() as folder:
        notes, script = pathlib.Path(folder) / "notes", pathlib.Path(folder) / "highs"
        script.write_text(f"#!/bin/sh\nsed -n 's/time_limit = //p' \"$2\" >> "
                          f"{shlex.quote(str(notes))}\nexec {shlex.quote(highs)} \"$@\"\n")
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


def was_cut(row):
    """By its deadline. Integer programs divide the time among leaves, so any may be."""
    return row["method"] in BY_PROGRAMS or row["seconds"] >= 0.9 * row["deadline_s"]


def is_done(row, cell):
    return cell_of(row)[:5] == cell[:5] and (row["deadline_s"] >= cell.deadline or not was_cut(row))


class Results:
    """The rows so far, in a file that is written after each."""

    def __init__(self, args, path):
        self.rows = rows_of(path)
        self.path, self.commit = path, stamp()["commit"]
        self.program, self.solver = args.program, ""
        self.parameters = {flag: default_of(self.program, f"--roam-{flag}")
                           for flag in ("node-limit", "delay-radius", "delay-coefficient")}

    def add(self, cells, measured):
        for cell in cells:
            if any(is_done(row, cell) for row in self.rows):
                continue
            row = {**measured(self.program, cell), "commit": self.commit, "processor": cpu_name(),
                   "load_average": os.getloadavg()[0]}
            if cell.method in BY_PROGRAMS:
                row["solver"] = self.solver
            del row["deadline"]
            row["flags"] = list(cell.flags)
            self.rows = [r for r in self.rows if cell_of(r)[:5] != cell[:5]] + [row]
            self.rows.sort(key=order_of)
            write_report(self.path, parameters=self.parameters, rows=self.rows)
            print(f"{cell.network}, {cell.batch}, {OPTIMIZERS[cell.optimizer]}, {cell.method}"
                  f"{''.join(f' {f}' for f in cell.flags)}: {row['peak_bytes'] / 2**20:.1f} MiB, "
                  f"fragmentation {percent(fragmentation(row), 2)}, {row['seconds']:.1f} s",
                  flush=True)


def rows_of(path):
    rows = read_rows(path, "processor", "solver")
    for row in rows:
        if row["method"] not in BY_PROGRAMS:
            row.pop("solver", None)
    return rows


def order_of(row):
    return (list(NETWORKS).index(row["network"]), row["batch"],
            list(OPTIMIZERS).index(row["optimizer"]), row["method"], row["flags"])


def measure_all(args, path):
    results = Results(args, path)
    highs = find_solver("HiGHS")
    solver = f"the solver is HiGHS, {highs}" if highs else "no HiGHS, so no integer programs"
    print(f"roam_report.py: {solver}", file=sys.stderr)
    results.add(quick_cells(args), measure)
    results.add(list(layout_cells(args, results.rows)), measure)
    if not highs:
        return
    results.solver = subprocess.run([highs, "--version"], capture_output=True, text=True,
                                    check=False).stdout.splitlines()[0]
    with noted_programs(highs) as notes:
        results.add(program_cells(args),
                    lambda program, cell: measure_by_programs(program, cell, notes))


# --- the report ----------------------------------------------------------------------------------


class Step:
    """A step's plans by method, with those of the methods' own flags."""

    def __init__(self, name, rows):
        self.network, self.batch, self.optimizer = name
        self.plans = {r["method"]: r for r in rows if tuple(r["flags"]) == flags_of(r["method"])}

    def __str__(self):
        return f"{self.network} {self.batch}"

    @property
    def bound(self):
        return self.plans["default"]["bound_bytes"]

    def has(self, *methods):
        return all(m in self.plans for m in methods)

    def gap(self, method):
        return self.plans[method]["peak_bytes"] / self.bound - 1

    def fragmentation(self, method):
        return fragmentation(self.plans[method])

    def below(self, method, other):
        return 1 - self.plans[method]["peak_bytes"] / self.plans[other]["peak_bytes"]

    def load_below(self, method, other):
        return 1 - self.plans[method]["load_bytes"] / self.plans[other]["load_bytes"]

    def at_start(self, method):
        """How far the integer programs' plan is below that of their starts alone."""
        row = self.plans[method]
        return 1 - row["peak_bytes"] / row["start_peak_bytes"]

    def published(self, method):
        """Fragmentation in Table I, or None."""
        if self.network not in FRAGMENTATION or self.batch not in PAPER_BATCHES \
                or self.optimizer == "sgd" or method not in COLUMNS:
            return None
        return FRAGMENTATION[self.network][PAPER_BATCHES.index(self.batch)][COLUMNS[method]] / 100


def mean(values):
    values = list(values)
    return statistics.mean(values) if values else None


def partial(all_steps):
    """Whether steps are missing, so that no mean stands beside the paper's."""
    return len(all_steps) < len(steps(NETWORKS))


def in_paper(all_steps):
    return [s for s in all_steps if s.published("roam") is not None]


def of(all_steps, optimizer):
    return [s for s in all_steps if s.optimizer == optimizer]


def listed(found):
    """Steps, by network: "MnasNet at batch 1/2/4, ViT at 1"."""
    networks = {}
    for step in found:
        networks.setdefault(step.network, []).append(str(step.batch))
    text = ", ".join(f"{network} at {'/'.join(b)}" for network, b in networks.items())
    return text.replace(" at ", " at batch ", 1)


def two(value):
    return f"{100 * value:.2f}"


def pair(step, method):
    if not step.has(method):
        return "not run"
    cell = f"{two(step.gap(method))} / {two(step.fragmentation(method))}"
    if method in BY_PROGRAMS and step.at_start(method) == 0:
        cell += " ="
    published = step.published(method)
    return cell + (f" ({two(published)})" if published is not None else "")


def deadlines(rows):
    """"30 s a step", or the range."""
    limits = sorted({row["deadline_s"] for row in rows})
    ends = dict.fromkeys((limits[0], limits[-1]))
    text = " to ".join(f"{limit:g}" for limit in ends) + " s a step"
    cut = sum(was_cut(r) for r in rows if r["deadline_s"] < limits[-1])
    return text + (f" ({cut} of {len(rows)} plans were cut before {limits[-1]:g} s)" if cut else "")


def parameters_text(report, methods, rows=None):
    """Of every method in a table; `rows`: those that it shows, if not all of the methods."""
    given, parts = report["parameters"], []
    if any(m.startswith("roam") for m in methods):
        coefficient = given["delay-coefficient"]
        counted = ("the memory that it takes" if coefficient == "what each update takes"
                   else f"{coefficient} times its gradients")
        parts.append(f"ROAM's node limit {given['node-limit']}, delay radius "
                     f"{given['delay-radius']}"
                     + (f" ({WAIT_RADIUS} where gradients wait)"
                        if "roam-gradients-wait" in methods else "")
                     + f", a weight update counted with {counted} (the paper: 3 times its "
                     "gradients, for Adam)")
    without = [m for m in ("lescea-llfb", "pytorch") if m in methods]
    kinds = {}
    for row in report["rows"] if rows is None else rows:
        if row["method"] in methods and row["method"] not in without:
            kind = (f"integer programs ({solver_name(row['solver'])})"
                    if row["method"] in BY_PROGRAMS else "plans without a solver")
            kinds.setdefault(kind, []).append(row)
    parts += [f"{deadlines(kinds[kind])} for {kind}" for kind in sorted(kinds, reverse=True)]
    if without:
        parts.append(f"none of {join(METHODS[m] for m in without)}, which search for nothing")
    return "Parameters: " + "; ".join(parts) + "."


def step_table(all_steps):
    return table(["batch", *METHODS.values()],
                 [[f"{s.network}, {s.batch}", *(pair(s, m) for m in METHODS)] for s in all_steps])


def share_cell(values, count):
    values = list(values)
    if not values:
        return "not run"
    return percent(mean(values)) + (f" (of {len(values)})" if len(values) < count else "")


def means_rows(what, group, published):
    """Rows of the table of means over some steps."""
    def row(about, cell, said=""):
        cells = []
        for method in METHODS:
            mine = [s for s in group if s.has(method)]
            cells.append(cell(method, mine) if mine else "not run")
        return [about, what, *cells, said if published else ""]

    def below(other):
        return lambda m, mine: "" if m == other else share_cell((s.below(m, other) for s in mine),
                                                                 len(group))

    def counted(no_worse):
        return lambda m, mine: "" if m == "lescea-llfb" else \
            f"{sum(no_worse(s, m) for s in mine)} of {len(mine)}"

    def worst(method, mine):
        return f"{two(mean(s.fragmentation(method) for s in mine))} / " \
               f"{two(max(s.fragmentation(method) for s in mine))} %"

    yield row("above our bound", lambda m, mine: share_cell((s.gap(m) for s in mine), len(group)))
    yield row("peak below PyTorch's", below("pytorch"), f"{BELOW['pytorch']} %")
    yield row("peak below LESCEA + LLFB's", below("lescea-llfb"), f"{BELOW['lescea-llfb']} %")
    yield row("fragmentation, mean / worst", worst, "0.00, below 1 %")
    yield row("order no worse than LESCEA's",
              counted(lambda s, m: s.load_below(m, "lescea-llfb") >= 0))
    yield row("plan no worse than LESCEA + LLFB's",
              counted(lambda s, m: s.below(m, "lescea-llfb") >= 0))


def means_table(all_steps):
    rows = []
    for optimizer, name in OPTIMIZERS.items():
        group = of(all_steps, optimizer)
        rows += means_rows(f"{len(group)}, {name}", group, False)
    if not partial(all_steps):
        paper = in_paper(all_steps)
        rows += means_rows(f"{len(paper)}, Adam, the paper's", paper, True)
    return table(["mean over these steps", "", *METHODS.values(), "published, ROAM"], rows)


def seconds_cell(seconds):
    return f"{seconds:.2f}" if seconds < 9.95 else f"{seconds:.0f}"


def programs_cell(row):
    each = row.get("programs_s")
    if each is None:
        return "not recorded"
    if not each:
        return "0"
    return f"{len(each)}: {statistics.median(each):.1f} ({min(each):.1f} to {max(each):.1f})"


def seconds_table(all_steps):
    def cell(step, method):
        return seconds_cell(step.plans[method]["seconds"]) if step.has(method) else "not run"

    def said(step):
        limit = SECONDS.get(step.network)
        return f"about {limit}" if limit and step.published("roam") is not None else ""

    return table(["batch", "optimizer", "operators", *METHODS.values(), "published, ROAM"],
                 [[f"{s.network}, {s.batch}", OPTIMIZERS[s.optimizer],
                   s.plans["default"]["operators"], *(cell(s, m) for m in METHODS), said(s)]
                  for s in all_steps])


def programs_table(all_steps):
    rows = []
    for step in all_steps:
        cells = []
        for method in BY_PROGRAMS:
            if not step.has(method):
                cells += ["not run", "", ""]
                continue
            row = step.plans[method]
            start = row["start_peak_bytes"] / step.bound - 1
            cells += [f"{two(step.gap(method))}, start {two(start)}", programs_cell(row),
                      row["commit"]]
        rows.append([f"{step.network}, {step.batch}", OPTIMIZERS[step.optimizer], *cells])
    header = [cell for m in BY_PROGRAMS
              for cell in (f"{METHODS[m]}: peak, start", "programs: seconds each", "commit")]
    return table(["batch", "optimizer", *header], rows)


def radius_rows(report):
    """By whether gradients wait and radius: how far above the bound, by network."""
    bounds = {r["network"]: r["bound_bytes"] for r in report["rows"]
              if (r["batch"], r["optimizer"], r["method"]) == (1, "adam-unfused", "default")}
    found = {}
    for row in report["rows"]:
        if row["flags"] and row["network"] in RADIUS_NETWORKS and row["batch"] == 1 \
                and row["optimizer"] == "adam-unfused":
            key = (row["method"] != "roam", row["flags"][1])
            gap = row["peak_bytes"] / bounds[row["network"]] - 1
            found.setdefault(key, {})[row["network"]] = gap
    return dict(sorted(found.items()))


def radius_table(report):
    return table(["gradients", "delay radius", *RADIUS_NETWORKS],
                 [["wait" if waits else "as published", radius,
                   *(percent(cells.get(n), 2) for n in RADIUS_NETWORKS)]
                  for (waits, radius), cells in radius_rows(report).items()])


def parts_table(report):
    """How far peak and load are above the bound with one part changed."""
    mine = [r for r in report["rows"] if (r["network"], r["batch"]) == PARTS_STEP]
    bounds = {r["optimizer"]: r["bound_bytes"] for r in mine if r["method"] == "default"}

    def cell(optimizer, method, flags):
        row = next((r for r in mine if (r["optimizer"], r["method"], tuple(r["flags"]))
                    == (optimizer, method, flags)), None)
        if row is None:
            return "not run"
        return " / ".join(two(row[key] / bounds[optimizer] - 1)
                          for key in ("peak_bytes", "load_bytes"))

    return table(["", *OPTIMIZERS.values()],
                 [[about, *(cell(o, *part) for o in OPTIMIZERS)] for about, part in PARTS.items()])


def wasteful(all_steps):
    return [s for s in all_steps if s.fragmentation("roam") > WASTEFUL]


def by_the_rule(step):
    """Whether the rule that activations lie below is what costs most of the waste."""
    free = "roam-activations-anywhere"
    return (step.fragmentation(free) < step.fragmentation("roam") / 2
            and step.below(free, "roam") > 0)


def layout_table(all_steps):
    return table(["batch", "optimizer", "ROAM", *LAYOUTS.values()],
                 [[f"{s.network}, {s.batch}", OPTIMIZERS[s.optimizer],
                   *(pair(s, m).split(" (")[0] for m in ("roam", *LAYOUTS))]
                  for s in wasteful(all_steps)])


# --- figures -------------------------------------------------------------------------------------

COLOURS = {"default": "#0b6e99", "roam": "#d1495b", "roam-gradients-wait": "#e09f3e",
           "lescea-llfb": "#8d99ae", "pytorch": "#5b4636"}


def draw_bars(axes, groups, series):
    """`series`: (label, values by group, bar's style)."""
    width = 0.8 / len(series)
    for i, (label, values, look) in enumerate(series):
        at = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        axes.bar(at, values, width, label=label, **look)
    axes.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g} %")
    axes_style(axes)
    axes.grid(False, axis="x")


def panels(all_steps):
    """What the paper shows in one picture: batch 1, batch 32, GPT-2 XL, with Adam."""
    adam = of(all_steps, "adam-unfused")
    for batch in PAPER_BATCHES:
        yield f"batch {batch}", [s for s in adam if s.network != LARGE and s.batch == batch]
    yield LARGE, [s for s in adam if s.network == LARGE]


def group_names(title, shown):
    return [f"batch {s.batch}" if title == LARGE else s.network for s in shown]


def draw_memory(all_steps, path):
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained", sharey=True,
                                width_ratios=(7, 7, 3))
    methods = ["default", "roam", "roam-gradients-wait", "lescea-llfb"]
    for ax, (title, shown) in zip(axes, panels(all_steps)):
        draw_bars(ax, group_names(title, shown), [
            (METHODS[m], [100 * s.below(m, "pytorch") for s in shown], {"color": COLOURS[m]})
            for m in methods])
        for i, step in enumerate(shown):
            least = 100 * (1 - step.bound / step.plans["pytorch"]["peak_bytes"])
            ax.hlines(least, i - 0.45, i + 0.45, color="black", linewidth=0.8,
                      label="no plan is lower" if i == 0 else None)
        if title != LARGE and not partial(all_steps):
            ax.axhline(BELOW["pytorch"], color=COLOURS["roam"], linestyle=":", linewidth=1,
                       label=f"ROAM in the paper, mean of all: {BELOW['pytorch']} %")
        ax.set_title(title, loc="left", fontsize=11)
    axes[0].set_ylabel("memory below PyTorch's")
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, frameon=False, ncol=3,
                  loc="upper center")
    figure.get_layout_engine().set(rect=(0, 0, 1, 0.87))  # below the legend
    save(figure, path)


def draw_fragmentation(all_steps, path):
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", sharey=True)
    for ax, (title, shown) in zip(axes, panels(all_steps)):
        series = []
        for method in ("pytorch", "lescea-llfb", "roam"):
            name = {"pytorch": "PyTorch", "lescea-llfb": "LLFB", "roam": "ROAM"}[method]
            series += [(f"{name}, here", [100 * s.fragmentation(method) for s in shown],
                        {"color": COLOURS[method]}),
                       (f"{name}, the paper", [100 * s.published(method) for s in shown],
                        {"color": "white", "edgecolor": COLOURS[method], "hatch": "////"})]
        draw_bars(ax, group_names(title, shown), series)
        ax.set_title(title, loc="left", fontsize=11)
    axes[0].set_ylabel("fragmentation")
    axes[1].legend(fontsize=7, frameon=False, ncol=2)
    save(figure, path)


# --- what differs, and why -----------------------------------------------------------------------


def more_or_less(change):
    """A change of memory in words."""
    return f"{percent(abs(change))} {'more' if change > 0 else 'less'}"


def below_text(all_steps):
    paper = in_paper(all_steps)
    least = mean(1 - s.bound / s.plans["pytorch"]["peak_bytes"] for s in paper)
    ours = mean(s.below("roam", "pytorch") for s in paper)
    reachable = least >= BELOW["pytorch"] / 100
    return (f"On the paper's {len(paper)} steps ROAM is {percent(ours)} below the model of "
            f"PyTorch's allocator (published: {BELOW['pytorch']} %). By our bound no order and "
            f"layout is more than {percent(least)} below it on average, so the published mean "
            f"{'could' if reachable else 'cannot'} be reached on these steps. The default planner "
            f"is {percent(mean(s.below('default', 'pytorch') for s in paper))} below.")


def pytorch_text(all_steps):
    paper = in_paper(all_steps)
    far = [s for s in paper if abs(s.published("pytorch") - s.fragmentation("pytorch")) > 0.1]
    rest = [s for s in paper if s not in far]

    def means(group):
        return (f"{percent(mean(s.fragmentation('pytorch') for s in group))} here and "
                f"{percent(mean(s.published('pytorch') for s in group))} in Table I")

    text = ("By the paper's definition, what is reserved beyond the theoretical peak, which is the "
            "load (of what this is a share, it does not say; here of what is reserved): on average "
            f"{means(paper)} (23.0 % in the paper's text).")
    if far and rest:
        cells = ", ".join(f"{percent(s.fragmentation('pytorch'))} and "
                          f"{percent(s.published('pytorch'))}" for s in far)
        text += (f" More than 10 points apart are {listed(far)} (here and there {cells}); over the "
                 f"other {len(rest)}, {means(rest)}.")
    return (text + " The model begins with an empty cache and walks our step once; the paper's "
            "figures are of PyTorch 1.13 on an A100.")


def order_text(all_steps):
    paper = in_paper(all_steps)
    gains = {other: [s.load_below("roam", other) for s in paper] for other in MOST_BY_ORDER}
    most = max(1 - s.bound / s.plans["pytorch"]["load_bytes"] for s in paper)
    text = (f"On the paper's steps the load of ROAM's order is on average "
            f"{more_or_less(-mean(gains['pytorch']))} than the program's order's, and at best "
            f"{percent(max(gains['pytorch']))} less (published: up to {MOST_BY_ORDER['pytorch']} "
            f"%; by our bound no order takes off more than {percent(most)} of any). Than LESCEA's "
            f"it is {more_or_less(-mean(gains['lescea-llfb']))} on average, and at best "
            f"{percent(max(gains['lescea-llfb']))} less (published: up to "
            f"{MOST_BY_ORDER['lescea-llfb']} %).")
    for optimizer, name in OPTIMIZERS.items():
        group = of(all_steps, optimizer)
        worse = [s for s in group if s.load_below("roam", "lescea-llfb") < 0]
        mended = [s for s in worse if s.load_below("roam-gradients-wait", "lescea-llfb") >= 0]
        text += f" With {name} it is worse than LESCEA's on {len(worse)} of {len(group)} steps"
        if worse:
            text += (f" ({listed(worse)}); if weights' gradients wait with their updates, instead "
                     f"of staying in the segment of their layer, {len(mended)} of these are no "
                     "worse")
        text += "."
    return text


def radius_text(report):
    found = radius_rows(report)
    if len(found) < 2 * len(RADII) or any(len(f) < len(RADIUS_NETWORKS) for f in found.values()):
        return None

    def cells(waits, radius):
        return " / ".join(percent(found[waits, radius][n], 2) for n in RADIUS_NETWORKS)

    lowest = [n for n in RADIUS_NETWORKS
              if min(found, key=lambda key, n=n: found[key][n]) == (True, RADII[0])]
    return (f"{' / '.join(RADIUS_NETWORKS)}, batch 1, Adam, above the bound: gradients that wait, "
            + ", ".join(f"radius {r}: {cells(True, r)}" for r in RADII) + "; as published, "
            + ", ".join(f"radius {r}: {cells(False, r)}" for r in RADII)
            + f". With both, gradients that wait and radius {RADII[0]}, the peak is the lowest of "
            f"the four for {len(lowest)} of {len(RADIUS_NETWORKS)}.")


def fragmentation_text(all_steps):
    paper = in_paper(all_steps)
    over = [s for s in paper if s.fragmentation("roam") > WASTEFUL]
    zero = [s for s in paper if s.fragmentation("roam") < 5e-5]
    found, much = wasteful(all_steps), percent(WASTEFUL, 0)
    text = ("Table I has 0.00 % for ROAM on one stream throughout. Here it is 0.00 % on "
            f"{len(zero)} of {len(paper)} steps, "
            f"{percent(mean(s.fragmentation('roam') for s in paper), 2)} on average"
            + (f", and above {much} for {listed(over)}" if over else "")
            + f". Of all {len(all_steps)} steps, {len(found)} waste more than {much}.")

    def cells(group):
        return "; ".join(
            f"{s} with {OPTIMIZERS[s.optimizer]} {two(s.gap('roam'))}, "
            + " and ".join(two(s.gap(m)) for m in LAYOUTS) for s in group)

    tried = [s for s in found if s.has(*LAYOUTS)]
    rule = [s for s in tried if by_the_rule(s)]
    rest = [s for s in tried if s not in rule]
    if rule:
        text += (" The published rule that activations lie side by side below everything else "
                 f"costs most of that on {len(rule)} of these: without it, the peak is lower and "
                 "less than half of the waste is left (per cent above the bound by ROAM, without "
                 f"the rule and with one layout for the whole step: {cells(rule)}).")
    if rest:
        text += f" On {len(rest)} it is not the rule ({cells(rest)})."
    return text


def heuristics_text(all_steps):
    paper = in_paper(all_steps)
    more = [-s.below("roam", "lescea-llfb") for s in paper]
    waits = -mean(s.below("roam-gradients-wait", "lescea-llfb") for s in paper)
    here = percent(mean(s.fragmentation("lescea-llfb") for s in paper), 2)
    there = percent(mean(s.published("lescea-llfb") for s in paper), 2)
    return (f"LESCEA + LLFB wastes {here} on the paper's steps, {there} in Table I. ROAM takes "
            f"{more_or_less(mean(more))} than it on average, step by step from "
            f"{percent(min(more), sign='+')} to {percent(max(more), sign='+')} (published: "
            f"{BELOW['lescea-llfb']} % less), and with gradients that wait {more_or_less(waits)}.")


def programs_text(all_steps):
    parts = []
    for method in BY_PROGRAMS:
        mine = [s for s in all_steps if s.has(method)]
        if not mine:
            parts.append(f"{METHODS[method]}: not run.")
            continue
        better = [s for s in mine if s.at_start(method) > 0]
        worse = [s for s in mine if s.at_start(method) < 0]
        text = (f"{METHODS[method]}, {len(mine)} steps: "
                f"{percent(mean(s.gap(method) for s in mine), 2)} above the bound on average, "
                f"{percent(mean(s.fragmentation(method) for s in mine), 2)} wasted; ROAM by exact "
                f"search {percent(mean(s.gap('roam') for s in mine), 2)} and "
                f"{percent(mean(s.fragmentation('roam') for s in mine), 2)} on the same. The plan "
                f"is lower than that of the starts alone on {len(better)}")
        if better:
            best = max(better, key=lambda s: s.at_start(method))
            text += (f" (most on {best} with {OPTIMIZERS[best.optimizer]}, "
                     f"{percent(best.at_start(method), 2)})")
        text += f", the same on {len(mine) - len(better) - len(worse)}"
        if worse:
            least = min(worse, key=lambda s: s.at_start(method))
            text += (f", higher on {len(worse)} (most on {least} with "
                     f"{OPTIMIZERS[least.optimizer]}, {percent(-least.at_start(method), 2)}, with "
                     f"{percent(least.fragmentation(method), 2)} of it wasted by the layout)")
        parts.append(text + ".")
    each = [x for s in all_steps for m in BY_PROGRAMS if s.has(m)
            for x in s.plans[m].get("programs_s", [])]
    if each:
        parts.append(f"A program has {min(each):.1f} to {max(each):.1f} s, "
                     f"{statistics.median(each):.1f} in the median; the paper allows an hour.")
    cpu = [s.plans[m]["process_cpu_seconds"] / s.plans[m]["seconds"]
           for s in all_steps for m in BY_PROGRAMS
           if s.has(m) and "process_cpu_seconds" in s.plans[m]]
    if cpu:
        parts.append("The machine was shared: planner and solvers together got "
                     f"{statistics.median(cpu):.2f} s of CPU in a second, in the median of steps.")
    return " ".join(parts)


def seconds_text(all_steps):
    paper = in_paper(all_steps)
    slow = max(paper, key=lambda s: s.plans["roam"]["seconds"])
    large = [s for s in of(all_steps, "adam-unfused") if s.network == LARGE]
    said = {}
    for network, limit in SECONDS.items():
        said.setdefault(limit, []).append(network)

    def most(group, method):
        return f"{max(s.plans[method]['seconds'] for s in group):.2f} s"

    text = (f"With leaves by exact search ROAM takes at most {most(paper, 'roam')} on the paper's "
            f"steps ({slow}); the paper, by integer programs, at most about "
            + join(f"{limit} s for {join(names)}" for limit, names in said.items())
            + f". Its heuristic baseline takes 45 s for BERT at batch 32 there, here at most "
            f"{most(paper, 'lescea-llfb')}")
    if large:
        text += (f"; for {LARGE} it is 19.2 times slower than ROAM there, here it takes "
                 f"{most(large, 'lescea-llfb')} at most and ROAM {most(large, 'roam')}")
    return text + "."


def large_text(all_steps):
    large = [s for s in of(all_steps, "adam-unfused") if s.network == LARGE]
    if not large:
        return None
    ahead = [s for s in large if s.below("roam", "default") > 0]
    better = [s for s in large if s.load_below("pytorch", "lescea-llfb") > 0]
    text = (f"With Adam at batch {join(s.batch for s in large)}, ROAM is "
            + join(percent(s.below("roam", "pytorch")) for s in large)
            + " below PyTorch's model and "
            + join(percent(s.below("roam", "lescea-llfb")) for s in large) + " below LESCEA + "
            f"LLFB. PyTorch's order is better than LESCEA's at {len(better)} of {len(large)} "
            "batches; the paper found it better.")
    if ahead:
        text += (f" ROAM is lower than the default planner at its deadline at batch "
                 f"{join(s.batch for s in ahead)}, by up to "
                 f"{percent(max(s.below('roam', 'default') for s in ahead))}.")
    return text


def operators_text(all_steps):
    adam = {s.network: s.plans["default"]["operators"] for s in of(all_steps, "adam-unfused")}
    cells = [f"{n} {adam[n]:,} ({'more than' if n == LARGE else 'around'} {said:,})"
             for n, said in OPERATORS.items() if n in adam]
    return f"Operators with Adam, here (and there): {', '.join(cells)}." if cells else None


def differences(report, all_steps):
    """(about, text) pairs; every figure and comparison in them is computed here."""
    found = {
        "Memory": below_text(all_steps), "PyTorch's fragmentation": pytorch_text(all_steps),
        "Orders": order_text(all_steps), "The delay radius": radius_text(report),
        "ROAM's fragmentation": fragmentation_text(all_steps),
        "The heuristic baseline": heuristics_text(all_steps),
        "Integer programs": programs_text(all_steps), "Planning time": seconds_text(all_steps),
        LARGE: large_text(all_steps), "Size of steps": operators_text(all_steps)}
    return [(about, text) for about, text in found.items() if text]


def not_run(all_steps):
    for method in BY_PROGRAMS:
        for optimizer, name in OPTIMIZERS.items():
            left = [s for s in of(all_steps, optimizer) if not s.has(method)]
            if left:
                yield f"{METHODS[method]}, {name}: {listed(left)}"


def intro(report, all_steps):
    rows = report["rows"]
    left = list(not_run(all_steps))
    if partial(all_steps):
        yield (f"**Partial: {len(all_steps)} of {len(steps(NETWORKS))} steps. Nothing here is set "
               "beside the paper's means.**")
    yield (
        "ROAM's networks (Shu et al.), with Adam as a dozen operators for each parameter, as in "
        "the paper, and with SGD (momentum, fused). ROAM cuts the step into segments, between "
        "operators that come before or after every other one of the forward and backward pass, and "
        "each segment, by a tree of subgraphs, into leaves of at most as many operators as the "
        "node limit; each leaf is ordered and laid out by itself. Where memory is short, a weight "
        "update waits for a later segment if its gradients are larger than the delay radius times the "
        "mean tensor. \"ROAM\" is the published method, its leaves solved by our exact search. "
        "\"Gradients wait\" is not in the paper: an operator "
        "that only makes a weight's gradient waits with its update, and the delay radius is "
        "smaller. "
        "\"Integer programs\" solves leaves by programs as published, \"several streams\" runs "
        "operators of one timestep side by side; both add to the paper a start and our bound for "
        "each program (runtime/planner/papers/roam_programs.h); half of the time is for orders, "
        "the rest for layouts, divided among the leaves left. LESCEA + LLFB is the paper's "
        "heuristic baseline: the order in which each next operator adds least (Han et al., 2006), "
        "and a layout that puts the longest-lived buffer into the lowest place (Sekiyama et al., "
        "2018). \"PyTorch's model\" is the program's order and a model of its caching allocator. "
        "The load is the largest sum of live bytes; fragmentation is the share of the peak beyond "
        "the load. Networks of text are captured without clipping, which would let no update run "
        "before all gradients exist. All plans passed the validator. MODeL, which the paper also "
        "compares with, is not run.")
    yield (f"{origins(rows, lambda rows: f'{len(rows)} plans')}. Machines shared with other work"
           f"{load_of(rows)}, {report['date']}. Seconds are of wall clock.")
    yield f"Not run: {'; '.join(left)}." if left else "All steps were planned by all methods."


def write_text(folder):
    report = read_report(folder / "roam.json", "rows", "parameters")
    report["rows"] = rows_of(folder / "roam.json")
    by_step = {}
    for row in report["rows"]:
        by_step.setdefault((row["network"], row["batch"], row["optimizer"]), []).append(row)
    all_steps = [Step(name, rows) for name, rows in by_step.items()]
    all_steps = [step for step in all_steps if step.has(*QUICK)]
    if not all_steps:
        raise BadReport(f"{folder / 'roam.json'} has no step with the plans of all quick methods")
    draw_memory(all_steps, folder / "roam_memory.svg")
    draw_fragmentation(all_steps, folder / "roam_fragmentation.svg")
    every = list(METHODS)
    parts = [
        "# ROAM", "Written by `bench/roam_report.py` from roam.json.", *intro(report, all_steps),
        "## Beside the paper", means_table(all_steps), parameters_text(report, every),
        "![Memory below PyTorch](roam_memory.svg)",
        "![Fragmentation here and in Table I](roam_fragmentation.svg)"]
    if not partial(all_steps):
        parts.append("## What differs, and why\n\n" + "\n".join(
            f"- **{about}.** {text}" for about, text in differences(report, all_steps)))
    parts += [
        "## Every step",
        "Cells: peak above our bound / fragmentation, both in per cent; in brackets the "
        "fragmentation that the paper's Table I gives. \"=\": the peak is that of the programs' "
        "starts alone, so the cell says nothing about the programs."]
    for optimizer, name in reversed(OPTIMIZERS.items()):
        parts += [f"### {name}", step_table(of(all_steps, optimizer)),
                  parameters_text(report, every)]
    parts += [
        "## Seconds to plan", seconds_table(all_steps), parameters_text(report, every),
        "## Integer programs",
        "Peak above our bound in per cent, and that of the starts alone; how many programs the "
        "solver was given, and the seconds that it had for one: median (least to most).",
        programs_table(all_steps), parameters_text(report, BY_PROGRAMS),
        "## The delay radius", "Batch 1, Adam, peak above our bound.", radius_table(report),
        parameters_text(report, ["roam"]).replace(
            "Parameters: ", "Parameters, where the table does not say: "),
        "## One part at a time",
        f"{PARTS_STEP[0]}, batch {PARTS_STEP[1]}: peak above our bound / that of its load, in per "
        "cent. Updates apart from the tree belong to no subgraph and join none.",
        parts_table(report), parameters_text(report, ["roam"]).replace(
            "Parameters: ", "Parameters, where the table does not say: "),
        "## Layouts",
        f"The steps on which ROAM wastes more than {percent(WASTEFUL, 0)} of its peak, with one "
        "part changed. Cells as above.",
        layout_table(all_steps), parameters_text(
            report, ["roam", *LAYOUTS],
            [s.plans[m] for s in wasteful(all_steps) for m in ("roam", *LAYOUTS) if s.has(m)])]
    (folder / "roam.md").write_text("\n\n".join(parts) + "\n")


def main():
    parser = report_parser(__doc__, "plan_graph")
    parser.add_argument("--deadline", type=seconds, default=30,
                        help="of a plan without a solver [30 s]")
    parser.add_argument("--solver-deadline", type=seconds, default=60,
                        help="of a plan by integer programs [60 s]")
    args = parse(parser, NETWORKS)
    if not args.no_run:
        measure_all(args, args.folder / "roam.json")
    write_text(args.folder)


if __name__ == "__main__":
    run_main(main)
