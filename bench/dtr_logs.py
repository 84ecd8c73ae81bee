#!/usr/bin/env python3
"""The programs that DTR's authors recorded: tide beside dtr, ratio by ratio, on the simulator.

    bench/dtr_logs.py --logs FOLDER [--build build/release] [--output bench/results/dtr_logs.json]
                      [--policies tide dtr] [--ratios 90 80 70 --] [--deadline 300]
                      [--patience 30] [LOG...]

FOLDER has their logs: simrd/logs.zip of github.com/uwsampl/dtr-prototype, unpacked. Each is
replayed (replay_log) without a tier, in smaller and smaller shares of the memory that it takes
without a budget, until no policy completes. A policy that runs out of memory, or takes longer than
--deadline (tide, which plans) or --patience (others), is given up, in smaller budgets too. Rows in
the file stay if they completed, or were given up at a deadline at least as long; to measure anew,
remove the file. Ends with a table, and with the budgets in which tide is not the quickest.
"""
import collections
import sys
import time

import reports

PROFILE = "a100-80gb"
RATIOS = (90, 80, 70, 60, 50, 40, 30, 20, 10)  # per cent of the peak without a budget
# name here: how the file's name begins
LOGS = {
    "resnet32": "resnet32-56-", "unet": "unet-6-", "inceptionv4": "inceptionv4-64-",
    "densenet121": "tv_densenet121-84-", "transformer": "transformer-10-",
    "unrolled-gan": "unroll_gan-512-", "treelstm": "treelstm-6-", "lstm": "lstm-128-",
}
KEPT = ("calls", "budget_bytes", "unmanaged_peak_bytes", "peak_reserved_bytes", "schedule",
        "planned", "planned_releases", "rounds", "recomputes", "evictions", "unmanaged_ms", "ms")


def file_of(folder, name):
    found = sorted(folder.glob(f"{LOGS[name]}*.log*"))
    if not found:
        raise FileNotFoundError(f"no file {LOGS[name]}*.log in {folder}")
    return found[0]


def measure(args, name, ratio, policy):
    """A row. "failed": why the policy has no figure of its own here."""
    began, used = time.monotonic(), reports.cpu_seconds()
    deadline = deadline_of(args, policy)
    result = reports.train(args.build, "replay_log", file_of(args.logs, name), "--profile", PROFILE,
                           "--policy", policy, "--budget", f"{ratio}%", patience=deadline)
    row = {"log": name, "percent": ratio, "policy": policy,
           "seconds": round(time.monotonic() - began, 2),
           "cpu_s": round(reports.cpu_seconds() - used, 2), "deadline_s": deadline}
    if "given_up_after_s" in result:
        row["failed"] = "deadline"
    elif "error" in result:
        if result["code"] != reports.INFEASIBLE:
            sys.exit(f"{name} in {ratio} %, {policy}: {result['error']}")
        row |= {"failed": "infeasible", "error": result["error"]}
    else:
        row |= {key: result[key] for key in KEPT}
        row["longer"] = result["ms"] / result["unmanaged_ms"] - 1
        row["more_compute"] = result["overhead"] - 1
        # tide makes way for another policy where that is quicker: so its users fare.
        if policy != "tide" and result["schedule"] != policy:
            row["failed"] = "out of memory"
    return {**row, **reports.stamp(), "processor": reports.cpu_name()}


def deadline_of(args, policy):
    return args.deadline if policy == "tide" else args.patience


def is_done(args, row):
    return row.get("failed") != "deadline" or row["deadline_s"] >= deadline_of(args, row["policy"])


def measure_log(args, name, rows, save):
    """Adds what is missing of a log to `rows`, which has keys (log, ratio, policy)."""
    given_up = set()
    for ratio in args.ratios:
        if len(given_up) == len(args.policies):
            return
        for policy in args.policies:
            if policy in given_up:
                continue
            row = rows.get((name, ratio, policy))
            if not row or not is_done(args, row):
                row = rows[name, ratio, policy] = measure(args, name, ratio, policy)
                save()
                print(f"{name:>12} {ratio} % {policy}: {text(row)}, {row['seconds']:.0f} s",
                      file=sys.stderr, flush=True)
            if "failed" in row:
                given_up.add(policy)


def text(row):
    """Of a row, or of none."""
    if not row:
        return "not run"
    if "failed" not in row:
        return reports.percent(row["longer"])
    return {"deadline": f"> {row['deadline_s']:.0f} s"}.get(row["failed"], row["failed"])


def ahead(rows, reference="tide"):
    """Rows of other policies that are quicker than the reference, or complete where it fails, with
    the reference's."""
    for (name, ratio, policy), row in rows.items():
        ours = rows.get((name, ratio, reference))
        if policy == reference or "failed" in row or not ours:
            continue
        if "failed" in ours or ours["longer"] > row["longer"]:
            yield row, ours


def followed(row):
    """What the last round of tide's run went by."""
    if row["schedule"].split()[0] != "tide":
        return f"another policy ({row['schedule']})"
    return "a plan" if row["planned"] else "the live step of the policy beneath"


def print_tables(rows):
    names = [name for name in LOGS if any(key[0] == name for key in rows)]
    ratios = sorted({key[1] for key in rows}, reverse=True)
    first, *others = dict.fromkeys(key[2] for key in rows)

    def cell(name, ratio):
        own = [rows.get((name, ratio, policy)) for policy in (first, *others)]
        return f"{text(own[0])} ({', '.join(map(text, own[1:]))})" if any(own) else ""

    def calls(name):
        return next((row["calls"] for key, row in rows.items()
                     if key[0] == name and "calls" in row), "?")

    print(f"{reports.origins(list(rows.values()))}\n")
    print(reports.table([f"longer step, {first} ({', '.join(others)})", "calls",
                         *(f"{ratio} %" for ratio in ratios)],
                        [[name, calls(name), *(cell(name, ratio) for ratio in ratios)]
                         for name in names]))
    behind = list(ahead(rows))
    print(f"\nanother policy is ahead of tide in {len(behind)} of "
          f"{len({key[:2] for key in rows})} budgets")
    for row, ours in behind:
        print(f"  {row['log']} in {row['percent']} %: {row['policy']} {text(row)}, tide "
              f"({ours.get('schedule', 'none')}) {text(ours)}")
    ours = [row for row in rows.values() if row["policy"] == "tide" and "failed" not in row]
    for way, count in collections.Counter(map(followed, ours)).most_common():
        print(f"tide's step went by {way} in {count}")
    more = [f"{row['log']} in {row['percent']} %" for row in ours
            if any("failed" not in other and other["longer"] >= row["longer"]
                   and other["more_compute"] < row["more_compute"]
                   for key, other in rows.items()
                   if key[:2] == (row["log"], row["percent"]) and key[2] != "tide")]
    print(f"tide computes more than another policy, in a step that is no longer, in {len(more)}"
          + ": " * bool(more) + ", ".join(more))


def in_order(rows):
    names = list(LOGS)
    return dict(sorted(rows.items(), key=lambda item: (names.index(item[0][0]), -item[0][1])))


def main():
    parser = reports.output_parser(__doc__, "replay_log")
    parser.add_argument("--logs", type=reports.pathlib.Path, required=True, help="their folder")
    parser.add_argument("--policies", nargs="+", default=["tide", "dtr"])
    parser.add_argument("--ratios", type=int, nargs="+", default=RATIOS,
                        help="in per cent, largest first")
    parser.add_argument("--deadline", type=reports.seconds, default=300,
                        help="of a run of tide, in seconds [300]")
    parser.add_argument("--patience", type=reports.seconds, default=30,
                        help="the same for other policies [30]")
    args = reports.parse(parser, LOGS)
    rows = {}
    if args.output:
        rows = {(row["log"], row["percent"], row["policy"]): row
                for row in reports.read_rows(args.output)}

    def save():
        if args.output:
            reports.write_report(args.output, about="longer step of the programs that DTR's "
                                 "authors recorded, by log, budget and policy",
                                 device=f"sim:{PROFILE}", rows=list(in_order(rows).values()))

    for name in args.networks:
        measure_log(args, name, rows, save)
    print_tables(in_order(rows))


if __name__ == "__main__":
    reports.run_main(main)
