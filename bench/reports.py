"""What the measuring scripts share: running a training program, and writing a report."""
import argparse
import datetime
import json
import pathlib
import platform
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INFEASIBLE = 3  # exit code of a budget below the smallest feasible one


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


def choices(program, flag):
    """The values that a program's help lists for a flag, as in "--filter {base,lru,greedy}"."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(rf"^ *{re.escape(flag)} \{{([^}}]*)\}}", text, re.MULTILINE)
    if not listed:
        raise ValueError(f"{program} --help lists no values of {flag}")
    return listed[1].split(",")


def compared_policies(build):
    """All policies but tide's parts and "none"."""
    return [policy for policy in choices(build / "bin" / "train_resnet", "--policy")
            if policy not in ("none", "price", "austere")]


def plan_graph_parser(doc):
    """A parser whose help is `doc`, for what runs plan_graph and writes a report."""
    parser = argparse.ArgumentParser(description=doc, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build" / "release" / "bin" / "plan_graph")
    parser.add_argument("--output", type=pathlib.Path)
    return parser


def parse_networks(parser, networks):
    """The arguments, with those of `networks` that are named, or all."""
    parser.add_argument("networks", nargs="*", metavar="NETWORK",
                        help=f"of {', '.join(networks)} [all]")
    args = parser.parse_args()
    for name in args.networks:
        if name not in networks:
            parser.error(f"unknown network '{name}'; available: {', '.join(networks)}")
    args.networks = args.networks or list(networks)
    return args


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
    """Stamped."""
    pathlib.Path(path).write_text(json.dumps({**stamp(), **contents}, indent=1) + "\n")
