"""The C++ of README.md is that of examples/first_steps.cc, which a test of its own runs.

    readme_snippet_test.py SOURCE_DIRECTORY

The program marks the lines with two comments, BEGIN and END.
"""
import difflib
import re
import sys
import textwrap
from pathlib import Path

PROGRAM = "examples/first_steps.cc"
BEGIN = "// README.md shows the lines from here"
END = "// to here."


def marked(program: str) -> str | None:
    """The lines between the two marks, without their common indentation."""
    lines = program.splitlines(keepends=True)
    begins = [i for i, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [i for i, line in enumerate(lines) if line.strip() == END]
    if len(begins) != 1 or len(ends) != 1 or begins[0] + 1 >= ends[0]:
        return None
    return textwrap.dedent("".join(lines[begins[0] + 1:ends[0]]))


def main() -> int:
    root = Path(sys.argv[1])
    expected = marked((root / PROGRAM).read_text(encoding="utf-8"))
    if expected is None:
        print(f"{PROGRAM} does not have '{BEGIN}' and, below it, '{END}', once each")
        return 1
    readme = (root / "README.md").read_text(encoding="utf-8")
    snippets = re.findall(r"^```cpp\n(.*?)^```", readme, re.M | re.S)
    if len(snippets) != 1:
        print(f"README.md has {len(snippets)} blocks of C++ instead of one")
        return 1
    if snippets[0] == expected:
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        expected.splitlines(keepends=True), snippets[0].splitlines(keepends=True),
        PROGRAM, "README.md"))
    return 1


if __name__ == "__main__":
    sys.exit(main())
