#!/usr/bin/env python3
"""Prints what olla_ablation has measured as a Markdown table, as in runtime/planner/README.md.

usage: olla_table.py [results/olla_ablation.json]
"""

import json
import pathlib
import sys


def share(value, least):
    return f"{100 * (value / least - 1):+.1f} %"


def cell(row):
    if row["rows"] == 0 and row["result"] is not None:
        return f"{share(row['result'], row['least'])}, {row['note']}"
    if row["rows"] == 0:
        return "not written: " + row["note"].removeprefix("the program would have ")
    size = f"{row['variables']:,} x {row['rows']:,}: "
    if row["result"] is None:
        return size + "none"
    proven = ", proven" if row["status"] == "optimal" else ""
    return size + f"{share(row['result'], row['least'])} in {row['seconds']:.1f} s{proven}"


def ours_cell(row):
    proven = ", proven" if row["peak"] == row["bound"] else ""
    return f"{share(row['peak'], row['bound'])} in {row['seconds']:.1f} s{proven}"


def main():
    default = pathlib.Path(__file__).resolve().parent / "results" / "olla_ablation.json"
    if len(sys.argv) > 2 or sys.argv[1:2] in (["--help"], ["-h"]):
        print(__doc__)
        return 0 if len(sys.argv) == 2 else 2
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    report = json.loads(file.read_text(encoding="utf-8"))
    instances = list(dict.fromkeys(row["instance"] for row in report["rows"]))
    table = {}
    for row in report["rows"]:
        if row["program"] == "ours":
            operators = f"{row['operators']} operators"
            table.setdefault("operators", {})[row["instance"]] = operators
            table.setdefault("our planner, order and places", {})[row["instance"]] = ours_cell(row)
            for name, key in (("program order", "program_order_load"), ("LESCEA", "lescea_load"),
                              ("order, by OLLA's authors", "authors_load")):
                table.setdefault(name, {})[row["instance"]] = share(row[key], row["bound"])
        else:
            name = f"{row['program']}, {row['variant']}"
            table.setdefault(name, {})[row["instance"]] = cell(row)
    print("| | " + " | ".join(instances) + " |")
    print("|---" * (len(instances) + 1) + "|")
    for name, cells in table.items():
        print(f"| {name if name != 'operators' else ''} | "
              + " | ".join(cells[instance] for instance in instances) + " |")


if __name__ == "__main__":
    sys.exit(main())
