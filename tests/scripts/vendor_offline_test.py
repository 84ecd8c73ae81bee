"""scripts/vendor_offline.sh packs what a build asks for, so that a machine without a network can build."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Which package brings what CMake looks for; None: it comes with compilers, CUDA or Python.
PACKAGES = {
    "dnnl": "libdnnl-dev", "OpenMP": None, "Threads": None, "CUDAToolkit": None, "Python3": None,
    "spdlog": "libspdlog-dev", "nlohmann_json": "nlohmann-json3-dev", "CLI11": "libcli11-dev",
    "GTest": "libgtest-dev", "benchmark": "libbenchmark-dev",
    "JPEG": "libjpeg-dev", "PNG": "libpng-dev", "ZLIB": "zlib1g-dev",
}
# Not built there (-DTIDEMARK_BUILD_COMPARE=OFF), or not part of the build.
ELSEWHERE = ("examples/compare/", "tests/examples/compare/", "tests/install/", "tests/fuzz/")


class VendorOffline(unittest.TestCase):
    def test_every_package_that_cmake_looks_for_is_packed(self):
        script = (ROOT / "scripts/vendor_offline.sh").read_text(encoding="utf-8")
        packed = re.search(r"^wanted=\((.*?)^\)", script, re.M | re.S).group(1).split()
        files = [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")]
        for folder in ("runtime", "ops", "models", "examples", "bench", "tests"):
            files += (ROOT / folder).rglob("CMakeLists.txt")
        asked = set()
        for file in files:
            name = str(file.relative_to(ROOT))
            if name.startswith(ELSEWHERE) or "Config" in name:
                continue
            text = re.sub(r"#.*", "", file.read_text(encoding="utf-8"))
            self.assertNotIn("pkg_check_modules", text, f"{name}: pkg-config's files are not packed")
            asked |= set(re.findall(r"find_package\((\w+)", text))
        self.assertIn("spdlog", asked)
        for package in asked:
            self.assertIn(package, PACKAGES, "scripts/vendor_offline.sh has to pack it, or the build do without")
            if PACKAGES[package]:
                self.assertIn(PACKAGES[package], packed)

    def test_what_is_not_packed_is_not_built(self):
        script = (ROOT / "scripts/gpu_check.sh").read_text(encoding="utf-8")
        self.assertIn("-DTIDEMARK_BUILD_COMPARE=OFF", script)


if __name__ == "__main__":
    unittest.main()
