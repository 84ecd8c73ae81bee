#!/usr/bin/env python3
"""The tables and figures of MONeT (Shah et al., 2021) that are about planning, on our networks, its
published figures beside ours. Prints Markdown tables and writes a report for each part.

usage: monet_report.py [--part NAME]... [--folder bench/results] [--build build/release]
                       [--profile p100-16gb] [--nodes 200000] [--search-limit 4] [--solver-limit 10]
                       [--jobs 1] [--no-run] [NETWORK ...]

part         the paper's                 report
points       figures 3, 8; tables 1, 7   monet.json
ablation     figures 4, 6, 8             monet_ablation.json
memory       tables 1, 3                 monet_memory.json
search-time  tables 2, 5, 6              monet_search_time.json
layers       figure 5                    monet_layers.json

Figure 7 compares algorithms of one convolution: ops_bench --benchmark_filter=algorithm. All times are
sums of modelled operator times; nothing runs on a GPU. --nodes are evaluations of our search for each plan
(all parts but points, ablation's best of three seeds), which give the same plans on every machine. The
limits, in seconds, are for points and for solvers. All parts take about an hour of an idle core. What
a report has of the same step (nodes, bytes and time of keeping everything) by limits at least as long is
kept; to measure anew, remove it or give another folder."""

import reports
from monet import ablation, layers, memory, points, search_time

PARTS = {"points": points, "ablation": ablation, "memory": memory, "search-time": search_time,
         "layers": layers}


def report_of(args, part):
    suffix = "" if part == "points" else "_" + part.replace("-", "_")
    path = args.folder / f"monet{suffix}.json"
    if args.no_run:
        return reports.read_report(path)
    before = reports.read_report(path) if path.exists() else None

    def save(contents):
        reports.write_report(path, processor=reports.cpu_name(), **contents)
    return PARTS[part].measure(args, save, before)


def main():
    parser = reports.report_parser(__doc__, "plan_graph")
    parser.add_argument("--part", choices=PARTS, action="append", help="[all]")
    parser.add_argument("--profile", default="p100-16gb")
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--search-limit", type=reports.seconds, default=4)
    parser.add_argument("--solver-limit", type=reports.seconds, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="plans at a time")
    args = reports.parse(parser, ablation.BATCHES)
    for part in args.part or PARTS:
        report = report_of(args, part)
        print(f"\n### {part}\n")
        PARTS[part].print_tables(report)


if __name__ == "__main__":
    reports.run_main(main)
