#!/usr/bin/env python3
"""What ctest makes of a test program's suites: passed, failed, and skipped only where all tests
skip and none fails."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A program that lists its suites as GoogleTest does, and ends as it does.
PROGRAM = r"""#!/usr/bin/env python3
import sys
ENDS = {"Good": ("[  PASSED  ] 2 tests.\n", 0),
        "Bad": ("[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test, listed below:\n"
                "[  FAILED  ] Bad.One\n\n 1 FAILED TEST\n", 1),
        "Away": ("[  PASSED  ] 0 tests.\n[  SKIPPED ] 1 test, listed below:\n"
                 "[  SKIPPED ] Away.One\n", 0),
        "Both": ("[  PASSED  ] 0 tests.\n[  SKIPPED ] 1 test, listed below:\n"
                 "[  SKIPPED ] Both.One\n[  FAILED  ] 1 test, listed below:\n"
                 "[  FAILED  ] Both.Two\n\n 1 FAILED TEST\n", 1)}
if "--gtest_list_tests" in sys.argv:
    print("".join(f"{suite}.\n  One\n" for suite in ENDS), end="")
    sys.exit(0)
text, code = ENDS[sys.argv[1].removeprefix("--gtest_filter=").removesuffix(".*")]
print(text, end="")
sys.exit(code)
"""


class DiscoverTests(unittest.TestCase):
    def test_outcomes(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            program = folder / "program"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            (folder / "CTestTestfile.cmake").write_text(
                f'include("{ROOT}/cmake/TidemarkDiscoverTests.cmake")\n'
                f'tidemark_discover_tests("{program}" folder "label")\n')
            said = subprocess.run(["ctest"], cwd=folder, capture_output=True, text=True,
                                  check=False).stdout
        for suite, outcome in (("Good", "Passed"), ("Bad", "***Failed"), ("Away", "***Skipped"),
                               ("Both", "***Failed")):
            line = next(x for x in said.splitlines() if f"folder.{suite} " in x and "Test" in x)
            self.assertIn(outcome, line)


if __name__ == "__main__":
    sys.exit(unittest.main())
