"""A build folder that was configured without CUDAARCHS is configured again with it, as when .ci/run
follows scripts/demo.sh. Needs the CUDA toolkit.

  configure_again_test.py CMAKE
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2]
CMAKE = sys.argv.pop() if len(sys.argv) > 1 else "cmake"


class ConfigureAgain(unittest.TestCase):
    def configure(self, folder, architectures):
        env = {name: value for name, value in os.environ.items() if name != "CUDAARCHS"}
        if architectures:
            env["CUDAARCHS"] = architectures
        parts = [f"-DTIDEMARK_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "BENCHMARKS")]
        done = subprocess.run([CMAKE, "-S", SOURCES, "-B", folder, "-DTIDEMARK_CUDA=ON", *parts],
                              env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        (line,) = [line for line in done.stdout.splitlines() if "CUDA: on" in line]
        return line.split(" for ")[1].split("; /")[0]

    def test_the_environment_counts_in_an_old_folder_too(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("90", self.configure(folder, None))
            self.assertEqual(self.configure(folder, "80"), "80")
            self.assertEqual(self.configure(folder, None), "80")  # as with a new folder


if __name__ == "__main__":
    unittest.main()
