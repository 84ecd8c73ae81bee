"""What the measuring scripts share: running a program, and writing a report."""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INFEASIBLE = 3  # exit code of a budget below the smallest feasible one
TEXT = ["bert-base", "xlm-roberta-base", "gpt2", "gpt2-xl"]  # networks whose steps clip gradients


def run_main(main):
    """Ends the script as main() does. What a user can mend is one line, not a traceback: a file or
    a program that is missing or broken, and Ctrl-C. A reader that has seen enough ends it (| head).
    """
    try:
        code = main()
        sys.stdout.flush()
        sys.exit(code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(f"{sys.argv[0]}: interrupted")
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd)) if isinstance(error.cmd, list) else error.cmd
        sys.exit(f"{sys.argv[0]}: '{command}' failed with exit code {error.returncode}")
    except (OSError, BadReport) as error:
        sys.exit(f"{sys.argv[0]}: {error}")


class BadReport(ValueError):
    """A file that is no report, or lacks what the script needs."""


def read_report(path, *needed):
    """What a script wrote to a JSON file, with at least these fields."""
    try:
        report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadReport(f"{path} is no report: {error}") from None
    missing = [name for name in needed if not isinstance(report, dict) or name not in report]
    if missing:
        raise BadReport(f"{path} is no whole report: it lacks {join(missing)}")
    return report


def train(build, program, *flags, patience=None):
    """What a run says of itself (--json). If it fails {"error": its last line, "code": ...}; if it
    takes longer than so many seconds {"given_up_after_s": ...}."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "run.json"
        command = [build / "bin" / program, *map(str, flags), "--json", output]
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, timeout=patience, check=False)
        except subprocess.TimeoutExpired:
            return {"given_up_after_s": patience}
        if done.returncode != 0:
            return {"error": (done.stderr.strip().splitlines() or ["?"])[-1],
                    "code": done.returncode}
        return json.loads(output.read_text())


def run_plan_graph(program, arguments):
    """What plan_graph writes to --output, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "plan.json"
        said = subprocess.run([program, *map(str, arguments), "--output", output], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return output.read_text(), said


def plan_network(program, network, batch, optimizer, deadline, *flags, method="default",
                 clip=True):
    """plan_graph's plan of a network's step."""
    unclipped = ["--clip", 0] if network in TEXT and not clip else []
    return json.loads(run_plan_graph(program, [
        "--model", network, "--batch", batch, "--optimizer", optimizer, "--method", method,
        "--deadline", deadline, *unclipped, *flags])[0])


def cpu_seconds():
    """Of the programs run so far, from start to end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def choices(program, flag):
    """The values that a program's help lists for a flag, as in "--filter {base,lru,greedy}"."""
    return from_help(program, flag, r" \{([^}]*)\}", "lists no values").split(",")


def default_of(program, flag):
    """What a program's help gives in brackets, at the end of what it says of a flag: "[100]"."""
    return from_help(program, flag, r"\b[^\n]*\n +.*\[([^\]]*)\]$", "gives no default")


def from_help(program, flag, pattern, complaint):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^ *{re.escape(flag)}{pattern}", text, re.MULTILINE)
    if not found:
        raise ValueError(f"{program} --help {complaint} of {flag}")
    return found[1]


def compared_policies(build):
    """All policies but tide's parts and "none"."""
    return [policy for policy in choices(build / "bin" / "train_resnet", "--policy")
            if policy not in ("none", "price", "austere")]


def seconds(text):
    """A deadline on the command line."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time: it must be positive")
    return value


def build_parser(doc, *programs):
    """A parser whose help is `doc`, for what runs these programs of a build: args.program is the
    first. To be used with parse(), which checks them."""
    parser = argparse.ArgumentParser(description=doc, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="where the programs are [build/release]")
    parser.set_defaults(programs=programs)
    return parser


def output_parser(doc, *programs):
    """For what measures, and writes one file."""
    parser = build_parser(doc, *programs)
    parser.add_argument("--output", type=pathlib.Path, help="the file [none]")
    return parser


def report_parser(doc, *programs, folder="bench/results"):
    """For what measures, and writes text from the measurements in a folder."""
    parser = build_parser(doc, *programs)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / folder,
                        help=f"of the measurements and the report; must exist [{folder}]")
    parser.add_argument("--no-run", action="store_true", help="only write the report anew")
    return parser


def parse(parser, networks=()):
    """The arguments, with those of `networks` that are named, or all. What cannot be run or
    written is refused before anything is measured."""
    if networks:
        parser.add_argument("networks", nargs="*", metavar="NETWORK",
                            help=f"of {', '.join(networks)} [all]")
    args = parser.parse_args()
    if networks:
        for name in args.networks:
            if name not in networks:
                parser.error(f"unknown network '{name}'; available: {', '.join(networks)}")
        args.networks = args.networks or list(networks)
    output = getattr(args, "output", None)
    folder = getattr(args, "folder", output and output.absolute().parent)
    if folder and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        parser.error(f"{folder} is no folder that can be written to")
    paths = [args.build / "bin" / name for name in args.programs]
    reads_only = getattr(args, "no_run", False) or getattr(args, "table", None)
    for path in paths:
        if not reads_only and not (path.is_file() and os.access(path, os.X_OK)):
            parser.error(f"{path} is missing: build it, or give the build's folder with --build")
    args.program = paths[0]
    return args


def find_solver(name):
    """HiGHS or CBC, as plan_graph finds it: an empty TIDEMARK_... excludes it."""
    return os.environ.get(f"TIDEMARK_{name.upper()}", shutil.which(name.lower()))


def read_rows(path, *fields, key="rows"):
    """The rows of a report that may exist. What it says of all is said of each: its commit, and
    these fields."""
    report = read_report(path, key) if path.exists() else {key: []}
    for row in report[key]:
        for field in ("commit", *fields):
            if field in report:
                row.setdefault(field, report[field])
    return report[key]


def origins(rows, about=lambda rows: f"{len(rows)} rows"):
    """The processors, solvers and commits of rows, by group where they differ."""
    groups = {}
    for row in rows:
        solver = row.get("solver") and solver_name(row["solver"])
        groups.setdefault((row["processor"], solver), []).append(row)
    return "; ".join(
        (f"{about(group)}: " if len(groups) > 1 else "")
        + ", ".join(filter(None, [solver, processor]))
        + f", commit {', '.join(sorted({r['commit'] for r in group}))}"
        for (processor, solver), group in groups.items())


def load_of(rows):
    """Of the machine while they were measured."""
    loads = [r["load_average"] for r in rows if "load_average" in r]
    ends = dict.fromkeys(f"{load:.0f}" for load in (min(loads), max(loads))) if loads else []
    return f" (load {' to '.join(ends)})" if loads else ""


def table(header, rows):
    """In Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def cpu_name():
    """This machine's."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split(":")[1].strip() for line in info if line.startswith("model name")),
                    platform.machine())


def stamp():
    """What every report says of the commit and the machine."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT,
                            capture_output=True, text=True, check=False).stdout.strip()
    return {"commit": commit, "date": datetime.date.today().isoformat(),
            "system": platform.platform()}


def write_report(path, **contents):
    """Stamped, and whole or not at all."""
    part = pathlib.Path(f"{path}.part")
    part.write_text(json.dumps({**stamp(), **contents}, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def percent(value, digits=1, sign=""):
    """Never -0."""
    return "none" if value is None else f"{round(100 * value, digits) + 0.0:{sign}.{digits}f} %"


def join(items):
    items = list(map(str, items))
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def solver_name(version):
    """Its name, and HiGHS' version, from what it says of itself first."""
    name = version.split(" Copyright")[0].rstrip(". ").replace("version ", "")
    return name.removeprefix("Welcome to the ")


def pyplot(salt):
    """matplotlib.pyplot for SVG. Starts the script again with Debian's Python if this one lacks
    it. The same data and salt give the same bytes."""
    try:
        import matplotlib
    except ModuleNotFoundError:  # another Python comes first in the path than Debian's
        if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
            os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
        sys.exit(f"{sys.argv[0]}: matplotlib is missing (Debian: apt-get install "
                 "python3-matplotlib)")
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": salt,
                         "font.family": "sans-serif"})
    return plt


def save(figure, path):
    """Closes the figure."""
    import matplotlib.pyplot as plt
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def axes_style(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
