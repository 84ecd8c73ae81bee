"""Tests of scripts/build_arm64.sh with stand-ins for apt, compilers and CMake: nothing is built."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "build_arm64.sh"
BASH = "/bin/bash"
# Which package brings what CMake looks for; None: it comes with the compiler.
PACKAGES = {
    "dnnl": "libdnnl-dev", "OpenMP": None, "Threads": None,
    "spdlog": "libspdlog-dev", "nlohmann_json": "nlohmann-json3-dev",
    "GTest": "libgtest-dev", "JPEG": "libjpeg-dev", "PNG": "libpng-dev", "ZLIB": "zlib1g-dev",
}
NOT_BUILT = {"CLI11", "benchmark"}


class BuildArm64(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "a folder"
        self.bin = self.root / "bin"
        self.bin.mkdir(parents=True)
        (self.root / "scripts").mkdir()
        shutil.copy(SCRIPT, self.root / "scripts")
        self.log = self.root / "log"
        self.log.touch()
        self.sysroot = self.root / "build" / "arm64" / "sysroot"
        # apt-get keeps the settings it was given, and "downloads" a package.
        self.command(
            "apt-get",
            'if [[ $1 == -c ]]; then cp "$2" settings; fi\n'
            'if [[ $* == *--download-only* ]]; then touch "$(dirname "$2")/archives/zlib.deb"; fi',
        )
        # The one package holds a file, and a link to it by the path that it will have.
        self.command(
            "dpkg-deb",
            'mkdir -p "$3/lib" "$3/usr/lib"; echo arm64 > "$3/lib/libz.so.1"\n'
            'ln -sf /lib/libz.so.1 "$3/usr/lib/libz.so"',
        )
        for name in ("aarch64-linux-gnu-g++", "qemu-aarch64", "cmake", "ctest", "sudo"):
            self.command(name, "")

    def command(self, name, script):
        path = self.bin / name
        path.write_text(
            f'#!{BASH}\nset -e\necho "{name} $*" >> "{self.log}"\n{script}\n', encoding="utf-8"
        )
        path.chmod(0o755)

    def run_script(self, *arguments):
        return subprocess.run(
            [BASH, str(self.root / "scripts" / SCRIPT.name), *arguments],
            env={"PATH": f"{self.bin}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, name):
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.startswith(name + " ")]

    @unittest.skipUnless(os.path.exists("/etc/debian_version"), "the packages are Debian's")
    def test_fetches_into_its_own_folder_alone(self):
        result = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        for call in self.calls("apt-get"):
            self.assertIn(f"-c {self.root}/build/arm64/apt/apt.conf", call)
        settings = (self.root / "settings").read_text(encoding="utf-8")
        for path in re.findall(r'"(/[^"]*)"', settings):
            self.assertTrue(path.startswith(f"{self.root}/build/arm64/"), path)
        if shutil.which("apt-config"):  # with the machine's settings below these
            dump = subprocess.run(
                ["apt-config", "-c", str(self.root / "settings"), "dump"],
                capture_output=True, text=True, check=True,
            ).stdout
            self.assertIn('APT::Architectures:: "arm64";', dump)
            self.assertEqual(dump.count("APT::Architectures::"), 1)
            for key in ("State", "State::Status", "Cache", "Etc::SourceList", "Etc::SourceParts"):
                self.assertIn(f'Dir::{key} "{self.root}/build/arm64/apt'.lower(), dump.lower())
            self.assertNotRegex(dump, r"(Pre|Post)-Invoke(-Success)?::|Pre-Install-Pkgs::")

    @unittest.skipUnless(os.path.exists("/etc/debian_version"), "the packages are Debian's")
    def test_links_stay_within_the_sysroot(self):
        self.run_script()
        link = self.sysroot / "usr" / "lib" / "libz.so"
        self.assertFalse(os.readlink(link).startswith("/"))
        self.assertEqual(link.read_text(encoding="utf-8"), "arm64\n")

    @unittest.skipUnless(os.path.exists("/etc/debian_version"), "the packages are Debian's")
    def test_fetches_once_and_again_after_a_failure(self):
        unpack = (self.bin / "dpkg-deb").read_text(encoding="utf-8")
        self.command("dpkg-deb", "exit 1")
        self.assertNotEqual(self.run_script().returncode, 0)
        self.assertEqual(self.calls("cmake"), [])
        (self.bin / "dpkg-deb").write_text(unpack, encoding="utf-8")
        self.assertEqual(self.run_script().returncode, 0)
        fetched = len(self.calls("apt-get"))
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(len(self.calls("apt-get")), fetched)

    def test_builds_and_runs_the_tests_of_the_labels(self):
        self.run_script("--no-setup", "--jobs", "3")
        self.assertIn("--parallel 3 --target tests_runtime", self.calls("cmake")[-1])
        self.assertIn("--label-regex ^(runtime)$", self.calls("ctest")[-1])
        self.run_script("--no-setup", "--label", "ops", "--label", "models", "--", "-R", "conv")
        self.assertTrue(self.calls("cmake")[-1].endswith("--target tests_ops tests_models"))
        self.assertIn("--label-regex ^(ops|models)$", self.calls("ctest")[-1])
        self.assertTrue(self.calls("ctest")[-1].endswith(" -R conv"))
        self.assertEqual(self.calls("apt-get"), [])

    def test_every_package_that_cmake_looks_for_is_fetched(self):
        packages = re.search(r"^packages=\((.*?)^\)", SCRIPT.read_text(encoding="utf-8"), re.M | re.S)
        dependencies = (ROOT / "cmake/TidemarkDependencies.cmake").read_text(encoding="utf-8")
        asked = set(re.findall(r"find_package\((\w+)", dependencies)) - NOT_BUILT
        self.assertIn("dnnl", asked)
        for package in asked:
            self.assertIn(package, PACKAGES, "scripts/build_arm64.sh has to fetch it")
            if PACKAGES[package]:
                self.assertIn(PACKAGES[package], packages.group(1).split())

    def test_help_and_usage_errors(self):
        result = self.run_script("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("usage: scripts/build_arm64.sh", result.stdout)
        for arguments in (["--all"], ["--jobs"], ["--jobs", "many"], ["--label"]):
            self.assertEqual(self.run_script(*arguments).returncode, 2, arguments)
        self.assertEqual(self.log.read_text(encoding="utf-8"), "")


if __name__ == "__main__":
    unittest.main()
