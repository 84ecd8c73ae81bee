"""The arithmetic of the reports, on literal measurements."""

import contextlib
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


def load(path):
    sys.path.insert(0, str(path.parent))  # what stands beside it
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(main, *arguments):
    """The exit code of a script with these arguments, and what it prints to stderr."""
    errors = io.StringIO()
    with unittest.mock.patch("sys.argv", ["script", *map(str, arguments)]), \
            contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            return main(), errors.getvalue()
        except SystemExit as end:
            return end.code, errors.getvalue()


class Scripts(unittest.TestCase):
    module = load(BENCH / "reports.py")

    def ending(self, main):
        with self.assertRaises(SystemExit) as end:
            self.module.run_main(main)
        return str(end.exception.code)

    def test_what_a_user_can_mend_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            self.assertIn("No such file or directory: '" + str(report),
                          self.ending(lambda: self.module.read_report(report)))
            report.write_text('{"rows": [')
            self.assertRegex(self.ending(lambda: self.module.read_report(report)),
                             "report.json is no report: .*line 1 column 11")
            report.write_text('{"rows": []}')
            self.assertRegex(self.ending(lambda: self.module.read_report(report, "rows", "copies")),
                             "report.json is no whole report: it lacks copies$")
            self.assertEqual(self.module.read_report(report, "rows"), {"rows": []})
        self.assertIn("'false x' failed with exit code 1",
                      self.ending(lambda: subprocess.run(["false", "x"], check=True)))

        def interrupt():
            raise KeyboardInterrupt
        self.assertIn("interrupted", self.ending(interrupt))
        self.assertEqual(self.ending(lambda: 3), "3")

    def test_every_script_loads(self):
        drawn = importlib.util.find_spec("matplotlib")
        for path in BENCH.glob("*.py"):
            if drawn or "pyplot" not in path.read_text():
                load(path)

    def test_a_reader_may_leave(self):
        code = f"""import sys; sys.path.insert(0, {str(BENCH)!r}); import reports
reports.run_main(lambda: print("line\\n" * 100000))"""
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as script:
            script.stdout.readline()
            script.stdout.close()
            self.assertEqual(script.stderr.read(), b"")

    def test_what_cannot_be_run_or_written_is_refused_first(self):
        module = self.module
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)

            def parsed(*arguments):
                parser = module.report_parser("help", "plan_graph")
                parser.add_argument("--deadline", type=module.seconds, default=5)
                return called(lambda: module.parse(parser, ["a", "b"]), *arguments)
            for arguments, said in (
                    (("--folder", folder / "none"), "none is no folder that can be written to"),
                    (("--folder", folder, "--build", folder), "bin/plan_graph is missing: build it"),
                    (("--folder", folder, "--no-run", "--deadline", 0), "must be positive"),
                    (("--folder", folder, "--no-run", "--deadline", "x"), "invalid seconds value: 'x'"),
                    (("--folder", folder, "--no-run", "c"), "unknown network 'c'; available: a, b")):
                code, errors = parsed(*arguments)
                self.assertEqual(code, 2)
                self.assertIn(said, errors)
            args, _ = parsed("--folder", folder, "--no-run", "b")
            self.assertEqual(args.networks, ["b"])

    def test_rows_keep_their_origin(self):
        module = self.module
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            self.assertEqual(module.read_rows(path, "processor"), [])
            path.write_text(json.dumps({"commit": "new", "processor": "Q", "rows": [
                {"n": 1, "commit": "old", "processor": "P", "solver": "HiGHS version 1. Copyright"}, {"n": 2}]}))
            rows = module.read_rows(path, "processor")
        self.assertEqual(rows[1], {"n": 2, "commit": "new", "processor": "Q"})
        self.assertEqual(module.origins(rows), "1 rows: HiGHS 1, P, commit old; 1 rows: Q, commit new")
        self.assertEqual(module.origins(rows[:1]), "HiGHS 1, P, commit old")
        self.assertEqual(module.solver_name("Welcome to the CBC MILP Solver "), "CBC MILP Solver")

    def test_nothing_is_minus_zero(self):
        self.assertEqual([self.module.percent(v, 1, "+") for v in (-0.0001, 0.0001, -0.001)], ["+0.0 %", "+0.0 %", "-0.1 %"])


class CopyOverlap(unittest.TestCase):
    module = load(BENCH / "copy_overlap.py")

    def trace(self, *events):
        names = ["compute", "offload", "reload", "policy", "steps"]
        rows = [{"ph": "M", "name": "thread_name", "tid": i, "args": {"name": n}} for i, n in enumerate(names)]
        return {"traceEvents": rows + [
            {"ph": "X", "tid": names.index(row), "ts": ts, "dur": dur, "args": {"bytes": 10}}
            for row, ts, dur in events]}

    def test_unions_and_intersections(self):
        m = self.module
        self.assertEqual(m.union([(5, 9), (0, 2), (1, 3), (9, 10)]), [[0, 3], [5, 10]])
        self.assertEqual(m.intersection([[0, 3], [5, 10]], [[2, 6], [8, 20]]), [[2, 3], [5, 6], [8, 10]])
        self.assertEqual(m.intersection([[0, 3]], []), [])

    # compute  |====|    |====|
    # offload    |====|
    # reload        |====|
    def test_what_is_hidden_is_counted_once(self):
        found = self.module.overlap(self.trace(
            ("compute", 0, 5000), ("compute", 10000, 5000), ("offload", 3000, 5000),
            ("reload", 6000, 5000)), 0)
        self.assertEqual(found["copy_ms"], 8)
        self.assertEqual(found["hidden_ms"], 3)
        self.assertEqual(found["hidden_share"], 3 / 8)
        self.assertEqual((found["offload_ms"], found["reload_ms"], found["compute_ms"]), (5, 5, 10))

    def test_first_steps_are_left_out(self):
        events = [("steps", 0, 100), ("offload", 50, 10), ("steps", 100, 100), ("offload", 150, 10),
                  ("compute", 155, 30)]
        found = self.module.overlap(self.trace(*events), 1)
        self.assertEqual((found["steps"], found["copy_ms"], found["hidden_share"]), (1, 0.01, 0.5))
        self.assertEqual(found["offload_bytes"], 10)
        self.assertIsNone(self.module.overlap(self.trace(("compute", 0, 1)), 0)["hidden_share"])


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "papers_report.py needs matplotlib")
class PapersReport(unittest.TestCase):
    def setUp(self):
        self.module = load(BENCH / "papers_report.py")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for file in (BENCH / "results" / "papers").glob("*.json"):
            (self.folder / file.name).write_text(file.read_text())

    def change(self, file, change):
        path = self.folder / f"{file}.json"
        data = json.loads(path.read_text())
        change(data["rows"])
        path.write_text(json.dumps(data))
        return dict(self.module.differences(self.folder))

    def test_each_tables_parameters_are_those_of_its_policies(self):
        text = self.module.parameters(self.folder, ["delta-paper without overlap", "none", "delta:lru", "delta 40%"])
        for policy in ("delta-paper", "delta:lru", "delta"):
            self.assertIn(f"`{policy}`: filter ", text)
        self.assertNotIn("none", text)
        self.assertIn("repairs prices", text)

    def test_the_differences_follow_from_the_figures(self):
        before = dict(self.module.differences(self.folder))

        def double_peak(rows):
            rows["resnet50_b128"]["need"]["unmanaged_peak"] = 2 * 11.2e9
        self.assertIn("ResNet-50, 128: 100.0 % more than the paper's",
                      self.change("peaks", double_peak)["Unmanaged peaks"])

        def swap_is_cheap(rows):
            for row in rows["resnet50_b128"]:
                row["swap_us"] = 0.5
        self.assertIn("Recomputing is cheaper", before["Table V"])
        self.assertIn("Recomputing is not always cheaper", self.change("costs", swap_is_cheap)["Table V"])

        def base_moves_most(rows):
            rows["delta"]["offloads"] = 10**6
        self.assertIn("delta (base)'s, 1000000", self.change("timelines", base_moves_most)["Filters"])

        def all_alike(rows):
            for key, row in rows.items():
                for i, point in enumerate(row.get("points", [])):
                    point.update(rows[key.split("/")[0]]["points"][i])
        self.assertIn("At 50 % saved, `backward` does the most for `delta`: a step without it takes 96.1 % longer",
                      before["The repairs, ResNet-50, batch 256"])
        self.assertIn("`async`, `backward`", self.change("ablation", all_alike)["The repairs, ResNet-50, batch 256"])


class MonetReport(unittest.TestCase):
    module = load(BENCH / "monet_report.py")
    problems, published, layers = (sys.modules[f"monet.{n}"] for n in ("problems", "published", "layers"))
    methods = sys.modules["remat_methods"]
    # a(10) -> b(20) -> c(5), which may overwrite b; its first variant needs 8 more.
    problem = {"fixed_bytes": 100, "nodes": [
        {"name": "a", "bytes": 10, "time": 1},
        {"name": "b", "bytes": 20, "time": 2, "inputs": [0]},
        {"name": "c", "bytes": 5, "time": 4, "adds_fixed": 3, "once": True, "inputs": [0, 1], "variants": [
            {"workspace": 8}, {"overwrites": 1, "workspace": -5, "when": "first"}]}]}

    def test_a_schedule_is_replayed(self):
        replay = self.methods.replay
        self.assertEqual(replay(self.problem, self.methods.keep_all_schedule(self.problem)),
                         [(0, 110, 1), (1, 130, 2), (2, 146, 4)])
        again = [["compute", 0], ["compute", 1, 0], ["free", 0], ["compute", 0], ["compute", 2, 1]]
        self.assertEqual([held for _, held, _ in replay(self.problem, again)], [110, 130, 130, 133])
        for wrong in ([["compute", 1]], [["free", 0]], [["compute", 0], ["compute", 0]],
                      [["compute", 0], ["compute", 1], ["compute", 2, 0], ["free", 2], ["compute", 2, 0]]):
            with self.assertRaises(ValueError):
                replay(self.problem, wrong)

    def test_published_points_are_interpolated(self):
        gib, reached = self.published.least_gib("resnet50", 10.63)
        self.assertAlmostEqual(gib, 5.495)
        self.assertTrue(reached)
        self.assertEqual(self.published.least_gib("vgg16", 10), (5.51, False))
        self.assertIsNone(self.published.least_gib("unet3d", 10))

    def test_a_run_again_belongs_to_the_part_of_the_next_first_run(self):
        kept = [{"node": n, "at_ms": i, "bytes": 10 * (i + 1), "ms": 1, "again": False}
                for i, n in enumerate("abcdefghijkl")]
        ours = [*kept[:11], {**kept[0], "again": True, "bytes": 7, "ms": 2}, {**kept[11], "bytes": 5}]
        rows = self.layers.parts({"kept": kept, "ours": ours, "base_ms": 12})
        self.assertEqual([row["again_ms"] for row in rows], [0] * 11 + [2])
        self.assertEqual((rows[11]["kept"], rows[11]["ours"], rows[11]["nodes"]), (120, 7, ["l"]))

    def test_a_report_that_is_not_there_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(OSError):
                called(self.module.main, "--no-run", "--folder", folder)

    def test_riders_count_while_everything_is_kept(self):
        # p(10) with its by-product r(7), which c reads behind q(1).
        problem = {"fixed_bytes": 100, "nodes": [
            {"bytes": 10, "time": 1}, {"bytes": 7, "time": 0, "rider_of": 0},
            {"bytes": 1, "time": 1, "variants": [{"inputs": [0], "workspace": 4}]},
            {"bytes": 2, "time": 1, "inputs": [1]}]}
        self.assertEqual(self.methods.keep_all(problem), 122)
        self.assertEqual(self.methods.keep_all(self.problem), 146)

    def test_published_gb_are_gib(self):
        points = self.module.points
        entry = {"network": "resnet50", "keep_all": 1000}
        self.assertEqual(points.budget_of(entry, 5 / 15.06, points.SAME_BYTES), 5 * 2**30)
        self.assertEqual(points.budget_of(entry, 0.5, "monet"), 500)

    def test_all_published_points_are_planned(self):
        points = self.module.points.points
        self.assertEqual([over for _, over in points("vgg16")], [-5.30, -4.64, -2.18, 1.99, 5.44, 9.11])
        self.assertEqual(points("unet3d"), [(0.54, 8.86)])

    def test_the_papers_networks_have_no_optimizer_state(self):
        args = types.SimpleNamespace(profile="p100-16gb")
        for network, has_none in (("unet", True), ("bert-base", False)):
            with unittest.mock.patch.object(self.problems, "run", return_value=(0, "", "", 0)) as run, \
                    tempfile.TemporaryDirectory() as folder:
                self.problems.write(args, network, 8, [], pathlib.Path(folder), "plain")
            words = run.call_args.args[1:]
            self.assertEqual("--momentum" in words, has_none)
            if has_none:
                self.assertEqual(words[words.index("--momentum") + 1], 0)
            entry = self.problems.entry_of(network, 8, {**self.problem, "base_time": 7})
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.problems.print_optimizer([entry])
            self.assertEqual("without momentum" in said.getvalue(), has_none)

    def memory_tables(self, **changed):
        entry = {"network": "unet", "batch": 11, "keep_all": 4 * 2**30, "base_ms": 10,
                 "least": {"all": {"budget": 3 * 2**30}, "recomputation alone": None},
                 "gist": {"ms": 11, "peak": 2**32 + 2**24, "ours": {"none": "proven"}}, **changed}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.module.memory.print_tables({"networks": [entry]})
        return said.getvalue()

    def test_memory_is_in_gib_and_gist_stands_for_itself(self):
        said = self.memory_tables()
        self.assertIn("| unet, 11 | 14.32 | 5.24 | 0.37 | 4.00 | 3.00 | 0.75 | none | none |", said)
        self.assertIn("| unet | 4.00 | 4.02 | 1.004 | +10.00 % | none |", said)
        self.assertNotIn("factor", said)
        self.assertNotIn(" GB", said)
        self.assertIn("| unet | 4.00 | cannot |", self.memory_tables(gist={"none": "cannot"}))

    def test_no_answer_is_not_counted_as_no_schedule(self):
        points, search_time = self.module.points, self.module.search_time
        unloaded = "checkmate: no solution in time: exit code 255: Error loading file"
        late, none = "checkmate: no solution in time: killed after 11 s", "checkmate: infeasible: no schedule fits"
        plans = []
        for share, note in ((0.6, unloaded), (0.5, late), (0.4, none), (0.3, None)):
            row = {"share": share, "simulated": {"ms": 1}, "margin": 0, "budget": 9, "planned": {"ms": 1, "ratio": 1.1}}
            plans += [{**row, "method": "default"},
                      {**row, "method": "checkmate", "note": ""} if note is None
                      else {"method": "checkmate", "share": share, "note": note}]
        said = [line for line in points.statements({"networks": [{"network": "unet", "plans": plans}]})
                if line.startswith("Checkmate:")]
        self.assertEqual(said, [
            "Checkmate: a schedule at 1 of 4 points (1 not solved in time, 1 could not be loaded); ours takes less "
            "time at 0 of the 1 where both have one, more at 0; ours alone has one at 1, and at 2 where the other "
            "gave no answer."])
        self.assertEqual([points.cell(plans[k]) for k in (1, 3, 5)],
                         ["could not be loaded", "not solved in time", "none, proven"])
        self.assertEqual(self.methods.cell({"method": "checkmate", "note": unloaded}, 1, 1), "could not be loaded")
        self.assertEqual(search_time.solved({"note": unloaded}), "could not be loaded")
        self.assertEqual(search_time.solved({"note": late}), "no solution")

    def test_programs_sizes_stand_beside_the_papers(self):
        def entry(network, *sizes):
            return {"network": network, "plans": [{"method": m, "variables": v, "rows": r, "share": 0.5, "note": "time"}
                                                  for m, v, r in sizes]}
        report = {"networks": [entry("unet", ("monet", 40, 60), ("monet-noop", 20, 50), ("checkmate", 100, 100)),
                               entry("vgg16", ("monet", 20, 60), ("monet-noop", 10, 30), ("checkmate", 100, 100)),
                               entry("resnet50", ("monet", 20, 60))]}
        said = "\n".join(self.module.points.statements(report))
        for line in ("MONeT's program, before presolving, has on average 70 % fewer variables than Checkmate's "
                     "(60 to 80 %, 2 networks); published, after presolving: 40 %.",
                     "MONeT-NoOp's program, before presolving, has on average 85 % fewer variables than Checkmate's "
                     "(80 to 90 %, 2 networks); published, after presolving: 67 %.",
                     "MONeT-NoOp's program, before presolving, has on average 60 % fewer rows than Checkmate's "
                     "(50 to 70 %, 2 networks); published, after presolving: 50 %."):
            self.assertIn(line, said)

    def measured(self, module, network, before, **asked):
        """The report, with plans that are only marked as new."""
        entry = {"network": network, **self.step, "evaluations": asked.get("nodes", 10),
                 "solver_limit_s": asked.get("solver_limit", 10), "commit": "new"}
        points = self.module.points
        args = types.SimpleNamespace(**{"networks": [network], "jobs": 1, "profile": "p", "nodes": 10,
                                        "search_limit": 4, "solver_limit": 10, **asked})
        patches = {"capture": lambda *_: ({}, dict(entry)), "measure_one": lambda *_: "new",
                   "measure_network": lambda _args, _files, made: {**made, "plans": ["new"]},
                   "climb": lambda *_: "new", "program": lambda *_: "new",
                   "plan": lambda *_: {"method": "monet", "limit_s": "new"},
                   "points": lambda _: [(0.5, 1.0)], "METHODS": ["monet"]}
        if module is points:
            patches["capture"] = lambda *_: {"network": network, **self.step, "plans": []}
        with contextlib.ExitStack() as stack:
            for name, what in patches.items():
                if hasattr(module, name):
                    stack.enter_context(unittest.mock.patch.object(module, name, what))
            stack.enter_context(unittest.mock.patch.object(
                sys.modules["reports"], "stamp", return_value={"commit": "new"}))
            for name, what in (("write", ("", 0)), ("read", None), ("entry_of", {"network": network, **self.step})):
                stack.enter_context(unittest.mock.patch.object(self.problems, name, return_value=what))
            return module.measure(args, lambda _: None, before)

    step = {"nodes": 7, "keep_all": 10, "base_ms": 1.5}
    steps = ({}, {"nodes": 8}, {"keep_all": 11}, {"base_ms": 1.6})

    def test_better_plans_of_the_same_step_are_kept(self):
        module = self.module
        for changed in self.steps:
            for limit in (5, 10, 20):
                kept = not changed and limit <= 10
                old = {"network": "unet", **self.step, **changed, "evaluations": 10, "solver_limit_s": 10,
                       "commit": "old", "points": ["old"], "plans": ["old"]}
                for part in (module.ablation, module.memory, module.search_time):
                    [found] = self.measured(part, "unet", {"networks": [dict(old)]}, nodes=limit,
                                            solver_limit=limit)["networks"]
                    self.assertEqual(found["commit"], "old" if kept else "new", (part.__name__, changed, limit))
                row = {"method": "monet", "share": 0.5, "note": ""}
                before = {"solver_limit_s": 10, "search_limit_s": 4, "processor": "p",
                          "networks": [{**old, "plans": [row]}]}
                [found] = self.measured(module.points, "unet", before, solver_limit=limit)["networks"]
                self.assertEqual([r["limit_s"] for r in found["plans"]], [10 if kept else "new"])
                self.assertEqual(found.get("commit"), None if changed else "old")

    def test_figure_5_is_kept_if_its_step_is_the_same(self):
        with unittest.mock.patch.object(self.problems, "plan", side_effect=RuntimeError("measured")):
            before = {**self.step, "evaluations": 10}
            self.assertIs(self.measured(self.layers, "resnet50", before), before)
            for changed, nodes in (({}, 20), ({"nodes": 8}, 10), ({"keep_all": 11}, 10)):
                with self.assertRaisesRegex(RuntimeError, "measured"):
                    self.measured(self.layers, "resnet50", {**before, **changed}, nodes=nodes)

    def test_other_networks_stay_and_say_what_they_had(self):
        before = {"commit": "old", "processor": "p", "evaluations": 10, "networks": [
            {"network": "unet", **self.step}, {"network": "bert-base", **self.step, "evaluations": 20},
            {"network": "resnet50", **self.step, "evaluations": 20, "commit": "older"}]}
        for asked, unet in ((10, (10, "old")), (20, (20, "new"))):
            report = self.measured(self.module.memory, "unet", before, nodes=asked)
            self.assertEqual([(e["network"], e["evaluations"], e["commit"]) for e in report["networks"]],
                             [("resnet50", 20, "older"), ("unet", *unet), ("bert-base", 20, "old")])


class PlanNetworks(unittest.TestCase):
    module = load(BENCH / "plan_networks.py")

    def test_only_all_networks_stand_beside_published_means(self):
        row = {"optimizer": "sgd", "less_than_pytorch": 0.3, "less_by_order": 0.2, "pytorch_fragmentation": 0.1}
        for names, published in ((self.module.OLLA["networks"], {1: "22.5", 32: "10.1"}), (["alexnet"], {})):
            rows = [{**row, "network": n, "batch": b} for n in names for b in (1, 32)]
            with contextlib.redirect_stdout(io.StringIO()) as said:
                found = self.module.beside_olla(rows)
            self.assertEqual(found["less_by_order"]["published_per_cent"], published)
            self.assertEqual(found["pytorch_fragmentation"]["published_per_cent"], {})
            self.assertEqual("partial" in said.getvalue(), not published)


class OverheadBound(unittest.TestCase):
    """Runs with a tier and without one, on a program that is made up."""

    def measure(self, no_tier):
        module, runs = load(BENCH / "overhead_bound.py"), []

        def train(_build, _program, *flags):
            flags = [str(flag) for flag in flags]
            runs.append(flags)
            if "--dry-run" in flags:
                return {"minimum_budget_bytes": 2 << 30}
            budget = flags[flags.index("--budget") + 1] if "--budget" in flags else "100%"
            if budget == "20%":
                return {"code": 3}
            run = {"unmanaged_peak_bytes": 10 << 30, "budget_bytes": 2 << 30,
                   "steps": [{"ms": 100 if budget == "100%" else 125}]}
            if budget == "70%":
                run["plan"] = {"ample_ms": 100, "ms": 125, "bound_ms": 110, "any_order_bound_ms": 99,
                               "reordered": False}
            return run
        module.train = train
        with contextlib.redirect_stderr(io.StringIO()):
            row = module.measure(None, "resnet50_b256", [30, 80], no_tier)
        return module.table([row]).splitlines()[::2], runs

    def test_without_a_tier_the_smallest_budget_comes_last(self):
        (header, row), runs = self.measure(True)
        self.assertEqual(header.split(" | ")[1:],
                         ["30 %", "80 %", "smallest feasible budget", "1 % more |"])
        self.assertEqual(row.split(" | ")[1:], [
            "25.0 % (>= 10.0 %; any order 0 %)", "infeasible", "2.00 GiB: 25.0 %", "2.00 GiB: 25.0 % |"])
        for flags in runs:
            self.assertEqual([flags[flags.index(f"--{tier}-limit") + 1] for tier in ("host", "disk")],
                             ["0", "0"])
        self.assertEqual([flags[-1] for flags in runs[-2:]], [str(2 << 30), str((2 << 30) * 101 // 100)])

    def test_with_a_tier_nothing_limits_it(self):
        (_, row), runs = self.measure(False)
        self.assertEqual(row.split(" | ")[1:], ["25.0 % (>= 10.0 %; any order 0 %)", "infeasible |"])
        self.assertFalse(any("--host-limit" in flags or "--dry-run" in flags for flags in runs))


class PlanningTime(unittest.TestCase):
    module = load(BENCH / "planning_time.py")

    @staticmethod
    def planned(first, ms, **more):
        found = {"ms": ms} if ms else {}
        return {"order": {"cpu_s": 0.03}, "first": {"calls": 6e6, "cpu_s": 0.8, **({"ms": first} if first else {})},
                "long": {"calls": 22e6, "cpu_s": 2.0, **found}, **found, **more}

    def row(self, ms, **more):
        bounds = {"ample_ms": 200, "ms": 204, "any_order_ms": 203, "cpu_s": 4.5}
        return {"step": "s", "percent": 60, "effort": 48e6, "times": 1, "session": self.planned(212, ms, bounds=bounds), **more}

    def test_what_is_longer_and_what_more_effort_gains(self):
        row = self.row(210, more=self.planned(208, 209))
        self.assertEqual(list(self.module.cells(row)), [
            "60 %", "48 M", "0.03 s", "6 M, 0.8 s", "22 M, 2.0 s", "2.8 s", "4.5 s", "6.00 %", "5.00 %", "2.00 %",
            "4.50 % in 3 s", "+0.50"])

    def test_where_nothing_fits_nothing_is_gained(self):
        nothing = self.planned(None, None)
        cells = list(self.module.cells({"percent": 5, "effort": 1e6, "session": nothing, "more": nothing}))
        self.assertEqual(cells[6:], ["-", "none", "none", "-", "none in 3 s", "-"])

    def test_more_effort_stays_beside_the_same_plan(self):
        rows, known = {}, self.row(210, more=self.planned(208, 209)) | {"times": 10}
        less = self.row(212) | {"effort": 12e6}
        self.module.keep(rows, less)
        for row, stays in ((known, True), (self.row(210), True), (self.row(211), False), (self.row(211), False)):
            self.module.keep(rows, row)
            self.assertEqual("more" in rows["s", 60, 48e6], stays)
            self.assertEqual(rows["s", 60, 48e6]["times"], 10 if stays else 1)
        self.assertEqual(rows["s", 60, 12e6], less)

    def test_other_steps_and_budgets_stay(self):
        steps = list(self.module.STEPS)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bin").mkdir()
            for program in ("plan_graph", "order_and_releases"):
                (folder / "bin" / program).write_text("")
                (folder / "bin" / program).chmod(0o755)

            def measure(_args, step, percents):
                for percent in percents:
                    yield {**self.row(210), "step": step, "percent": percent, "operators": 1, "peak_bytes": 1,
                           "processor": "p", "commit": "c"}
            with unittest.mock.patch.object(self.module, "measure", measure):
                for step, percents in ((steps[1], [40]), (steps[0], [40, 60])):
                    self.assertIsNone(called(self.module.main, "--build", folder, "--output", folder / "t.json",
                                             "--percents", *percents, "--", step)[0])
            self.assertEqual([(row["step"], row["percent"]) for row in json.loads((folder / "t.json").read_text())["rows"]],
                             [(steps[0], 60), (steps[0], 40), (steps[1], 40)])


class PlanInstances(unittest.TestCase):
    main = staticmethod(load(BENCH / "plan_instances.py").main)

    def test_what_cannot_be_planned_is_refused_first(self):
        with tempfile.TemporaryDirectory() as name:
            program = pathlib.Path(name) / "bin" / "plan_graph"
            program.parent.mkdir()
            program.write_text("#!/bin/sh\nexit 9\n")
            program.chmod(0o755)
            for arguments, said in ((("--only", "order,nosuch"), "--only nosuch"),
                                    (("--only", "roam", "nosuchnet"), "unknown network 'nosuchnet'"),
                                    (("--only", "order", "alexnet"), "a NETWORK is for roam alone"),
                                    (("--output", pathlib.Path(name) / "none" / "x.json"), "is no folder")):
                code, errors = called(self.main, "--build", name, *arguments)
                self.assertEqual(code, 2, errors)
                self.assertIn(said, errors)


class LargestBatch(unittest.TestCase):
    largest = staticmethod(load(BENCH / "peers" / "torch_resnet.py").largest)

    def test_the_answer_fits_and_little_more_does_not(self):
        for limit in [0, 1, 2, 3, 31, 32, 33, 100, 1000]:
            for first in [1, 4, 64]:
                tried = []
                answer = self.largest(lambda n: tried.append(n) or n <= limit, first, 500)
                self.assertLessEqual(answer, min(limit, 500))
                self.assertGreaterEqual(answer * (1 + 1 / 64) + 1, min(limit, 500))
                self.assertEqual(len(tried), len(set(tried)), "tried twice")
                self.assertLessEqual(len(tried), 20)


class GpuReport(unittest.TestCase):
    module = load(BENCH / "gpu_report.py")

    def summarize(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
            return self.module.summarize(pathlib.Path(folder))

    @staticmethod
    def run_of(ms, peak, checksum="c"):
        step = {"stall_ms": 2, "recompute_ms": 1}
        return {"model": "resnet50", "batch": 256, "steps": [{"ms": 900, **step}] + [{"ms": ms, **step}] * 3,
                "peak_reserved_bytes": peak, "unmanaged_peak_bytes": 1000, "budget_bytes": 500,
                "params_checksum": checksum}

    def test_what_was_not_measured_is_left_out(self):
        self.assertEqual(self.summarize(), {})
        self.assertEqual(self.module.table({}), [])

    def test_ratios_checksums_and_limits(self):
        summary = self.summarize(
            resnet_unmanaged=self.run_of(100, 1000), resnet_50=self.run_of(110, 500), resnet_40=self.run_of(150, 501),
            overlap_50={"hidden_share": 0.75}, resnet_simulated=self.run_of(95, 1000),
            torch_plain={"peer": "pytorch 2", "step_ms": [500, 125, 125]},
            torch_upload={"peer": "pytorch 2", "step_ms": [500, 200, 200]},
            bert_bf16=self.run_of(40, 800), bert_bf16_50=self.run_of(50, 400),
            torch_bert_bf16={"peer": "pytorch 2", "step_ms": [500, 50, 50]},
            max_batch={"batch": 900, "times_unmanaged_batch": 3.0}, torch_max_plain={"max_batch": 300},
            host_overhead={"benchmarks": [{"name": "relu/cuda", "per_operator": 4e-6}]})
        resnet = summary["resnet"]
        self.assertEqual(resnet["unmanaged_ms"], 100)
        self.assertTrue(resnet["dry_run_peak_is_exact"] and resnet["simulated_peak_is_exact"])
        self.assertEqual([(peer["how"], round(peer["ours_to_it"], 6)) for peer in resnet["pytorch"]],
                         [("plain", 0.8), ("upload", 0.5)])
        [bert] = summary["bert"]
        self.assertAlmostEqual(bert["ours_to_pytorch"], 0.8)
        self.assertAlmostEqual(bert["half_overhead"], 0.25)
        self.assertTrue(bert["half_within"] and bert["same_parameters"])
        self.assertAlmostEqual(resnet["simulated_to_measured"], 0.95)
        half, less = resnet["budgets"]
        self.assertAlmostEqual(half["overhead"], 0.1)
        self.assertEqual(half["copies_hidden_share"], 0.75)
        self.assertTrue(half["within"] and not less["within"])
        self.assertTrue(resnet["same_parameters"])
        self.assertEqual(summary["max_batch"],
                         {"tidemark": 900, "tidemark_unmanaged": 300, "pytorch_plain": 300})
        text = "\n".join(self.module.table(summary))
        for words in ("ABOVE THE BUDGET", "75 % of copies hidden", "4.00 us", "ours takes 0.50 of that",
                      "ours takes 0.80 of that; in half of the memory +25.0 %"):
            self.assertIn(words, text)

    def test_other_parameters_are_seen(self):
        summary = self.summarize(resnet_unmanaged=self.run_of(100, 999), resnet_50=self.run_of(100, 500, "d"))
        self.assertFalse(summary["resnet"]["same_parameters"])
        text = "\n".join(self.module.table(summary))
        self.assertIn("DIFFERENT PARAMETERS", text)
        self.assertIn("OFF, it said 1000 bytes", text)
        summary = self.summarize(bert_float32=self.run_of(100, 999), bert_float32_50=self.run_of(100, 501, "d"))
        text = "\n".join(self.module.table(summary))
        self.assertIn("ABOVE THE BUDGET  DIFFERENT PARAMETERS", text)


class OllaReport(unittest.TestCase):
    """Figures of steps whose plans are known, and the words that follow from them."""

    def setUp(self):
        self.module = load(BENCH / "olla_report.py")

    @staticmethod
    def row(batch, order_load, places_peak, note=""):
        program = {"seconds": 5, "status": "optimal", "note": note, "program_bound": 80, "program_peak": 85}
        return {"network": "AlexNet", "batch": batch, "step": "alexnet", "operators": 7, "deadline_s": 30,
                "commit": "c", "solver": "HiGHS version 1. Copyright", "processor": "p",
                "pytorch": {"load": 100, "reserved": 160, "allocator": {
                    "requests": 9, "reserved": 200, "allocated_at_peak": 50, "microseconds_per_step": 15}},
                "order": {**program, "load": order_load, "curve": [[1, 90, None], [2.5, 80.4, 70], [4, 80, 80]]},
                "places": {**program, "load": order_load or 100, "peak": places_peak,
                           "curve": [[3, 160, 80]] if places_peak else []},
                "ours": {"load": 70, "peak": 80, "bound": 60, "seconds": 0.1}}

    def test_figures_are_those_of_the_paper(self):
        found = self.module.figures(self.row(1, 80, 160))
        self.assertEqual({k: round(v, 9) for k, v in found.items() if v is not None}, {
            "less_by_order": 0.2, "less_by_program": 0.15, "most_by_order_there": 0.4, "most_by_order": 0.4, "pytorch_beyond_load": 0.5,
            "pytorch_fragmentation": 0.75, "olla_fragmentation": 0.5, "order_seconds": 5,
            "order_within_1": 2.5, "places_seconds": 5, "less_in_all": 0.2, "ours_in_all": 0.6, "saved_s": 5})
        self.assertIsNone(found["places_within_1"], "it never came that close")

    def texts(self, *rows):
        return "\n".join(self.module.figures_text({"rows": list(rows)}))

    def test_what_was_not_found_counts_in_no_mean(self):
        self.module.NETWORKS = {"AlexNet": (["alexnet"], "")}
        text = self.texts(self.row(1, 80, 160), self.row(32, None, None, "the program would have 8 million terms"))
        self.assertIn("| 7: less memory by order alone, serialised by us | 20.0 % | 22.5 % | none | 10.1 % |", text)
        self.assertIn("20.0 % at batch 1, less than published (22.5 %); at most", text)
        self.assertIn("Without any places in time: AlexNet at batch 32; of these the program is not even written "
                      "for AlexNet at batch 32", text)
        self.assertIn("In 1 of 2 steps OLLA has both", text)
        self.assertIn("75.0 % at batch 1, more than published (7.9 %)", text)
        self.assertNotIn("Partial", text)
        self.assertIn("| AlexNet | 7 | none | none | 40.0 % | 75.0 % | 50.0 % | refused |", text)
        self.assertIn("1.0 s +12.50 %; 2.5 s +0.50 %; 4.0 s +0.00 % | 3.0 s +100.00 %", text)

    def test_a_partial_report_says_so_and_compares_no_means(self):
        for rows in ([self.row(1, 80, 160), self.row(32, 80, 160)], [self.row(1, None, None)]):
            text = self.texts(*rows)
            self.assertIn("**Partial: not all is measured of EfficientNet, GoogleNet" if rows[1:] else
                          "**Partial: not all is measured of AlexNet, EfficientNet", text)
            self.assertNotIn("than published", text)
            self.assertNotIn("22.5 %", text)

    def test_each_solver_and_machine_has_its_rows(self):
        cbc = {**self.row(32, 80, 160), "solver": "Welcome to the CBC MILP Solver ", "processor": "q", "commit": "d"}
        text = self.texts(self.row(1, 80, 160), cbc)
        self.assertIn("of which HiGHS gets 85 % and CBC gets 75 %", text)
        self.assertIn("AlexNet at batch 1: HiGHS 1, p, commit c; AlexNet at batch 32: CBC MILP Solver, q, commit d", text)
        self.assertNotIn("HiGHS", self.texts(cbc))

    def test_better_rows_are_kept(self):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "olla.json"
            path.write_text(json.dumps({"processor": "p", "commit": "c", "rows": [self.row(1, 80, 160), self.row(32, 80, 160)]}))
            self.module.measure = lambda build, network, batch, deadline: {**self.row(batch, 70, 150), "deadline_s": deadline}
            for deadline, kept in ((1, 30), (30, 30), (31, 31)):
                with contextlib.redirect_stdout(io.StringIO()):
                    self.module.measure_all(types.SimpleNamespace(networks=["AlexNet"], build=None, deadline=deadline), path)
                self.assertEqual([r["deadline_s"] for r in json.loads(path.read_text())["rows"]], [kept, kept])

    def test_without_the_ablation_its_section_says_so(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "olla.json").write_text(json.dumps({"rows": [self.row(1, 80, 160)]}))
            self.module.write_text(folder)
            self.assertIn("Not measured: olla_ablation.json is not there.", (folder / "olla.md").read_text())

    def test_the_report_is_of_the_results(self):
        results = BENCH / "results"
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            for name in ("olla.json", "olla_ablation.json"):
                (copy / name).write_text((results / name).read_text())
            self.module.write_text(copy)
            self.assertEqual((copy / "olla.md").read_text(), (results / "olla.md").read_text())


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "roam_report.py needs matplotlib")
class RoamReport(unittest.TestCase):
    """The words follow from the figures, and the report from its results."""

    def setUp(self):
        self.module = load(BENCH / "roam_report.py")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.report = json.loads((BENCH / "results" / "roam.json").read_text())

    def text(self, draw=False):
        (self.folder / "roam.json").write_text(json.dumps(self.report))
        nothing = {name: lambda *_: None for name in ("draw_memory", "draw_fragmentation")}
        with contextlib.nullcontext() if draw else unittest.mock.patch.multiple(self.module, **nothing):
            self.module.write_text(self.folder)
        return (self.folder / "roam.md").read_text()

    def test_the_report_is_of_the_results(self):
        self.assertEqual(self.text(), (BENCH / "results" / "roam.md").read_text())

    def test_the_differences_follow_from_the_figures(self):
        self.assertIn("the published mean cannot be reached", self.text())
        for row in self.report["rows"]:
            if row["method"] == "pytorch":
                row["peak_bytes"] *= 2
            if row["method"] == "lescea-llfb":
                row["load_bytes"] *= 2
                row["peak_bytes"] *= 2
        text = self.text()
        self.assertIn("the published mean could be reached", text)
        self.assertIn("With Adam it is worse than LESCEA's on 0 of 31 steps.", text)

    def test_better_rows_are_kept(self):
        cell = self.module.Cell("VGG", 1, "sgd", "roam", (), 30)

        def kept(deadline, seconds, method="roam"):
            row = {**cell._asdict(), "flags": [], "method": method, "deadline_s": deadline, "seconds": seconds}
            return self.module.is_done(row, cell._replace(method=method))
        self.assertTrue(kept(30, 30) and kept(60, 60) and kept(5, 4))
        self.assertFalse(kept(5, 5))
        self.assertTrue(kept(60, 60, "roam-ilp"))
        self.assertFalse(kept(5, 4, "roam-ilp"))

    def test_layouts_have_the_deadline_that_is_asked_for(self):
        args = types.SimpleNamespace(networks=list(self.module.NETWORKS), deadline=7)
        cells = list(self.module.layout_cells(args, self.report["rows"]))
        self.assertEqual({cell.deadline for cell in cells}, {7})

    def test_deadlines_are_those_of_the_rows(self):
        for row in [r for r in self.report["rows"] if r["method"] == "roam-no-tree"][:6]:
            row.update(deadline_s=5, seconds=5.1)
        self.assertRegex(self.text().split("## Layouts")[1],
                         r"5 to 30 s a step \(6 of \d+ plans were cut before 30 s\) for plans")
        for row in self.report["rows"]:
            row["deadline_s"] = 60
        self.assertIn("; 60 s a step for plans without a solver", self.text().split("## Layouts")[1])

    def test_a_partial_report_says_so_and_compares_no_means(self):
        for networks in (["AlexNet", "VGG"], ["GPT-2 XL"]):
            rows = [r for r in self.report["rows"] if r["network"] in networks]
            self.report["rows"], every = rows, self.report["rows"]
            text = self.text(draw=True)
            self.report["rows"] = every
            self.assertIn(f"**Partial: {8 * len(networks) if networks[1:] else 6} of 62 steps.", text)
            self.assertNotIn("What differs", text)
            self.assertNotIn("35.7 %", text + (self.folder / "roam_memory.svg").read_text())
        self.report["rows"] = self.report["rows"][:3]
        with self.assertRaises(ValueError):
            self.text()

    def test_each_machine_has_its_rows(self):
        self.assertIn("28 plans: HiGHS 1.15.1 Githash 04024d7, AMD EPYC, commit 5f0ccbea, e73df9ff.", self.text())

    def test_what_was_not_planned_is_said(self):
        self.report["rows"] = [r for r in self.report["rows"]
                               if (r["network"], r["method"]) != ("AlexNet", "roam-ilp")]
        text = self.text()
        self.assertIn("ROAM, integer programs, Adam: AlexNet at batch 1/2/4/32", text)
        self.assertIn("| AlexNet, 1 | 0.00 / 0.00 | 0.00 / 0.00 (0.00) | 0.00 / 0.00 | not run |", text)


class DtrLogs(unittest.TestCase):
    """tide beside dtr on recorded programs."""

    def setUp(self):
        self.module = load(BENCH / "dtr_logs.py")
        self.args = types.SimpleNamespace(policies=["tide", "dtr"], ratios=[90, 80, 70, 60],
                                          deadline=300, patience=30)

    @staticmethod
    def row(name, percent, policy, longer=0.0, **more):
        return {"log": name, "percent": percent, "policy": policy, "longer": longer, "more_compute": longer,
                "schedule": policy, "planned": policy == "tide", "calls": 9, "seconds": 1, "deadline_s": 30,
                "processor": "p", "commit": "c", **more}

    def measured(self, rows, results):
        """The cells that are run, in order; `results`: what fails."""
        cells = []

        def measure(_, name, ratio, policy):
            cells.append((ratio, policy))
            why = results.get((ratio, policy))
            return self.row(name, ratio, policy, **({"failed": why} if why else {}))
        self.module.measure = measure
        with contextlib.redirect_stderr(io.StringIO()):
            self.module.measure_log(self.args, "unet", rows, lambda: None)
        return cells

    def test_a_policy_that_fails_is_given_up_until_none_is_left(self):
        failures = {(80, "dtr"): "out of memory", (70, "tide"): "infeasible"}
        self.assertEqual(self.measured({}, failures), [(90, "tide"), (90, "dtr"), (80, "tide"), (80, "dtr"), (70, "tide")])

    def test_what_is_known_is_not_run_again(self):
        rows = {("unet", 90, "tide"): self.row("unet", 90, "tide"),
                ("unet", 90, "dtr"): self.row("unet", 90, "dtr", failed="deadline", deadline_s=10)}
        cells = self.measured(rows, {(80, "tide"): "infeasible", (80, "dtr"): "out of memory"})
        self.assertEqual(cells, [(90, "dtr"), (80, "tide"), (80, "dtr")], "dtr now has more time")

    def test_tables(self):
        rows = [self.row("unet", 90, "tide", 0.02), self.row("unet", 90, "dtr", 0.01),
                self.row("unet", 80, "tide", 0.02, more_compute=0.02, schedule="tide over dtr", planned=False),
                self.row("unet", 80, "dtr", 0.03, more_compute=0.01), self.row("unet", 70, "tide", 0.5, schedule="lru"),
                self.row("unet", 70, "dtr", failed="deadline", deadline_s=30), self.row("lstm", 90, "dtr", 0.01)]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.module.print_tables({(r["log"], r["percent"], r["policy"]): r for r in rows})
        text = out.getvalue()
        self.assertIn("| unet | 9 | 2.0 % (1.0 %) | 2.0 % (3.0 %) | 50.0 % (> 30 s) |", text)
        self.assertIn("| lstm | 9 | not run (1.0 %) |  |  |", text)
        self.assertIn("ahead of tide in 1 of 4 budgets\n  unet in 90 %: dtr 1.0 %, tide (tide) 2.0 %", text)
        self.assertIn("went by another policy (lru) in 1", text)
        self.assertIn("went by the live step of the policy beneath in 1", text)
        self.assertIn("no longer, in 1: unet in 80 %", text)


class MxnetReport(unittest.TestCase):
    """The words follow from the figures, and the report from its results."""

    def setUp(self):
        self.module = load(BENCH / "mxnet_report.py")
        self.report = json.loads((BENCH / "results" / "mxnet.json").read_text())

    def test_what_is_saved_decides_what_is_said(self):
        row = self.report["rows"][0]
        row = {**row, "network": "Net", "persistent": 20, "bound": 25, "ours": 25, "training": {
            **row["training"], "no sharing": 100, "in place": 80, "sharing": 50, "in place and sharing": 30},
            "forward_only": {**row["forward_only"], "no sharing": 60, "in place and sharing": 25}}
        text = "\n".join(self.module.note_text([row]))
        self.assertIn("both save 70 %: 40 to 60 % in 0 of 1; more in Net; less in none", text)
        self.assertIn("Of the rest both save 88 %", text)
        self.assertIn("Without what persists it is here 50 % of", text)
        self.assertIn("no plan saves more than 75 %", text)

    def test_the_cost_of_waiting_for_nothing(self):
        row = {"step": "s", "budget": "50%", "unmanaged_peak": 100,
               "ours": {"peak": 50, "ms": 100, "waiting_ms": 9, "own_bytes_ms": 90, "run_ms": 101},
               "safe": {"peak": 80, "ms": 90, "run_ms": 91}}
        text = "\n".join(self.module.copies_text([row]))
        self.assertIn("takes 10.0 % of our", text)
        self.assertIn("a layout of largest first takes 60 % more", text)

    def test_the_report_is_of_the_results(self):
        results = BENCH / "results"
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            (copy / "mxnet.json").write_text((results / "mxnet.json").read_text())
            self.module.write_text(copy)
            self.assertEqual((copy / "mxnet.md").read_text(), (results / "mxnet.md").read_text())

    def test_rows_are_written_one_by_one_and_kept_at_their_commit(self):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "mxnet.json"
            row = {**self.report["rows"][0]}
            path.write_text(json.dumps({**self.report, "commit": "now", "copies": [],
                                        "rows": [{**r, "commit": "now"} for r in self.report["rows"][:2]]}))
            self.module.stamp = lambda: {"commit": "now"}
            done = []

            def measure(_, network):
                if network == "GoogLeNet":
                    raise KeyboardInterrupt
                done.append(network)
                return {**row, "network": network}
            self.module.measure = measure
            args = types.SimpleNamespace(networks=["AlexNet", "VGG-16", "ResNet-50", "GoogLeNet"], build=None)
            with contextlib.redirect_stdout(io.StringIO()), self.assertRaises(KeyboardInterrupt):
                self.module.measure_all(args, path)
            self.assertEqual(done, ["ResNet-50"])
            self.module.write_text(pathlib.Path(name))
            text = (pathlib.Path(name) / "mxnet.md").read_text()
        self.assertIn("**Partial: GoogLeNet, ResNet-101, ", text)
        self.assertIn("## Schedules with copies\n\nNot measured.", text)


if __name__ == "__main__":
    unittest.main()
