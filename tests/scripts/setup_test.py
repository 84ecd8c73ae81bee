"""Tests of scripts/setup.sh with stand-ins for apt, dpkg, id and sudo: nothing is installed."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "setup.sh"
BASH = "/bin/bash"


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bin = pathlib.Path(self.folder.name)
        self.log = self.bin / "log"
        self.log.touch()
        os.symlink("/bin/cat", self.bin / "cat")
        os.symlink("/usr/bin/env", self.bin / "env")
        self.command("id", "echo 0")

    def command(self, name, script):
        path = self.bin / name
        path.write_text(f"#!{BASH}\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def debian(self, lacks=(), update="true"):
        """Stand-ins of a Debian where all packages but `lacks` are installed."""
        cases = "".join(f"{name}) exit 1 ;; " for name in lacks)
        self.command("dpkg-query", f'case "${{@: -1}}" in {cases}*) echo installed ;; esac')
        self.command(
            "apt-get", f'echo "apt-get $*" >> {self.log}; case "$*" in *update*) {update} ;; esac'
        )

    def run_setup(self, *arguments):
        return subprocess.run(
            [BASH, str(SETUP), *arguments],
            env={"PATH": str(self.bin)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def installs(self):
        return [line for line in self.log.read_text().splitlines() if " install " in line]

    def test_installs_nothing_when_all_is_there(self):
        self.debian()
        self.assertEqual(self.run_setup("--dev").returncode, 0)
        self.assertEqual(self.log.read_text(), "")

    def test_installs_what_is_missing_and_no_more(self):
        self.debian(lacks=["cmake", "libdnnl-dev"])
        self.assertEqual(self.run_setup().returncode, 0)
        (line,) = self.installs()
        self.assertTrue(line.endswith("--no-install-recommends cmake libdnnl-dev"), line)

    def test_developer_tools_come_only_when_asked_for(self):
        self.debian(lacks=["clang-tidy-14"])
        self.run_setup()
        self.assertEqual(self.installs(), [])
        self.run_setup("--dev")
        self.assertEqual(len(self.installs()), 1)

    def test_a_failed_update_does_not_end_it(self):
        self.debian(lacks=["cmake"], update="exit 100")
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertEqual(len(self.installs()), 1)

    def test_without_apt_it_lists_the_packages(self):
        result = self.run_setup()
        self.assertEqual(result.returncode, 1)
        self.assertIn("no apt", result.stderr)
        self.assertIn("libdnnl-dev", result.stderr)

    def test_others_than_root_use_sudo_without_asking(self):
        self.debian(lacks=["cmake"])
        self.command("id", "echo 1000")
        self.command("sudo", f'echo "sudo $1" >> {self.log}; shift; "$@"')
        result = self.run_setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sudo -n", self.log.read_text())
        self.assertEqual(len(self.installs()), 1)

    def test_without_sudo_it_says_what_root_must_do(self):
        self.debian(lacks=["cmake"])
        self.command("id", "echo 1000")
        result = self.run_setup()
        self.assertEqual(result.returncode, 1)
        self.assertIn("apt-get install cmake", result.stderr)

    def test_unknown_arguments_are_usage_errors(self):
        self.assertEqual(self.run_setup("--everything").returncode, 2)


if __name__ == "__main__":
    unittest.main()
