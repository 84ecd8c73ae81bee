"""scripts/gpu_check.sh on a machine without a GPU: its errors, and all that it measures with the
CPU in the GPU's place.

  gpu_check_test.py [BUILD]    with a build folder, also what needs programs
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gpu_check.sh"
BUILD = None


def run(*arguments, path=None):
    env = dict(os.environ, **({"PATH": path} if path else {}))
    return subprocess.run(["/bin/bash", str(SCRIPT), *map(str, arguments)], env=env,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)


class Arguments(unittest.TestCase):
    def test_mistakes_are_explained(self):
        for arguments, words in [((), "usage:"), (("r", "--only", "tests,nothing"), "unknown step 'nothing'"),
                                 (("r", "--fast"), "unknown argument '--fast'")]:
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(words, done.stderr)

    def test_a_missing_tool_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("dirname", "realpath"):
                os.symlink(f"/usr/bin/{tool}", os.path.join(folder, tool))
            done = run("r", path=folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no cmake on this machine", done.stderr)

    def tools(self, folder, *names):
        """A path of these programs, and of stand-ins for the GPU's."""
        for name in names:
            os.symlink(shutil.which(name), os.path.join(folder, name))
        for name, says in [("nvidia-smi", "A GPU, 1.0, 80000, 8.0"), ("nvcc", "release 13.0,"),
                           ("cmake", "$* >> $LOG")]:
            path = pathlib.Path(folder) / name
            path.write_text(f'#!/bin/bash\necho {says}\n', encoding="utf-8")
            path.chmod(0o755)

    def test_without_ninja_make_builds(self):
        common = ("bash", "dirname", "realpath", "python3", "git", "find", "sort", "xargs",
                  "sha256sum", "cut", "sed", "mkdir", "timeout", "tee", "rm", "nproc", "grep",
                  "tar", "cat", "env")
        for builders, generator in [(("make",), "Unix Makefiles"), (("make", "ninja"), "Ninja")]:
            with tempfile.TemporaryDirectory() as folder:
                self.tools(folder, *common, *builders)
                log = pathlib.Path(folder) / "log"
                with unittest.mock.patch.dict(os.environ, {"LOG": str(log)}):
                    run(pathlib.Path(folder) / "r", "--build", pathlib.Path(folder) / "b",
                        "--only", "smoke", path=folder)
                self.assertIn(f"-G {generator} ", log.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            self.tools(folder, *common)
            done = run("r", path=folder)
        self.assertIn("there is no make on this machine", done.stderr)

    def test_the_steps_that_run_unasked_take_eight_minutes_at_most(self):
        limits = dict(re.findall(r"\[([\w-]+)\]=(\d+)\b", SCRIPT.read_text(encoding="utf-8")))
        usual, others = run("--help").stdout.split("These are left out")
        said = [dict(re.findall(r"^  (\w[\w-]+) .*?limit +(\d+) s$", part, re.DOTALL | re.MULTILINE))
                for part in (usual, others)]
        self.assertEqual({**said[0], **said[1]}, limits)
        self.assertLessEqual(sum(map(int, said[0].values())), 480)
        self.assertTrue(all(int(limit) <= 480 for limit in said[1].values()))

    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--stand-in", done.stdout)


class StandIn(unittest.TestCase):
    def setUp(self):
        if not BUILD:
            self.skipTest("no build folder was given")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name) / "results"

    def check(self, steps, *more):
        done = run(self.results, "--stand-in", "--build", BUILD, "--only", steps, *more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def read(self, name):
        return json.loads((self.results / name).read_text(encoding="utf-8"))

    def test_what_is_measured_is_put_together_and_not_measured_twice(self):
        output = self.check("profile,bench-ops,bench-resnet,bench-resnet-more")
        self.assertIn("left out (--only names steps): tests bench-bert", output)
        for words in ("DIFFERENT", "ABOVE", "OFF"):
            self.assertNotIn(words, output)
        summary = self.read("summary.json")
        resnet = summary["resnet"]
        self.assertTrue(resnet["same_parameters"])
        self.assertTrue(resnet["dry_run_peak_is_exact"])
        self.assertTrue(resnet["simulated_peak_is_exact"])
        self.assertGreater(resnet["simulated_to_measured"], 0)
        self.assertGreater(resnet["modelled_to_measured"], 0)
        self.assertEqual([row["budget_percent"] for row in resnet["budgets"]], [100, 50, 40, 30])
        self.assertTrue(all(row["within"] for row in resnet["budgets"]))
        self.assertNotIn("copies_hidden_share", resnet["budgets"][0])  # nothing was copied
        for row in resnet["budgets"][2:]:
            self.assertTrue(0 <= row["copies_hidden_share"] <= 1)
        self.assertGreater(summary["host_seconds_per_operator"]["relu/cpu"], 0)
        self.assertGreater(summary["operators"]["batch_norm/7x7x512"]["gb_s"], 0)
        self.assertGreater(summary["profile"]["memory_bytes"], 0)
        for step in ("profile", "bench-ops", "bench-resnet", "bench-resnet-more"):
            self.assertEqual(self.read(f"{step}.json")["verdict"], "ok")
        again = self.check("bench-resnet")
        self.assertIn("ok before", again)

    def test_bert(self):
        self.check("bench-bert")
        [row] = self.read("summary.json")["bert"]
        self.assertTrue(row["half_within"] and row["same_parameters"])

    def test_the_largest_batch(self):
        self.check("bench-batch")
        largest = self.read("summary.json")["max_batch"]
        self.assertTrue(1 <= largest["tidemark_unmanaged"] <= largest["tidemark"] <= 8)

    def test_nothing_is_measured_if_the_smoke_step_fails(self):
        output = self.check("profile")
        self.assertLess(output.index("=== build"), output.index("=== smoke"))
        self.assertLess(output.index("=== smoke"), output.index("=== profile"))
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "bin").mkdir()
            for name in ("host_overhead", "stress_batch"):
                os.symlink("/bin/true", build / "bin" / name)
            os.symlink("/bin/false", build / "bin" / "train_resnet")
            done = run(build / "r", "--stand-in", "--build", build, "--only", "profile")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"smoke +FAILED")
        self.assertRegex(done.stdout, r"profile +not run")

    def test_a_step_that_fails_is_said_to(self):
        # The unmanaged run leaves no report, as its folder cannot be written to.
        (self.results / "resnet_unmanaged.json").mkdir(parents=True)
        done = run(self.results, "--stand-in", "--build", BUILD, "--only", "bench-resnet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED", done.stdout)
        self.assertEqual(self.read("bench-resnet.json")["verdict"], "FAILED")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        BUILD = sys.argv.pop(1)
    unittest.main()
