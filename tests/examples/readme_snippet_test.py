"""The first C++ of README.md compiles.

    readme_snippet_test.py SOURCE_DIRECTORY COMPILER

As it stands if it has its includes, else with these around it.
"""
import re
import subprocess
import sys
from pathlib import Path

BEFORE = """
#include <vector>
#include "models/optim/optimizer.h"
#include "models/resnet.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "runtime/session/session.h"
using namespace tidemark;
using namespace tidemark::literals;
struct HostBatch {};
Tensor images(const HostBatch&);
Tensor labels(const HostBatch&);
void train(const std::vector<HostBatch>& batches) {
"""


def main() -> int:
    root, compiler = Path(sys.argv[1]), sys.argv[2]
    snippets = re.findall(r"^```cpp\n(.*?)^```", (root / "README.md").read_text(), re.M | re.S)
    if not snippets:
        print("README.md has no C++")
        return 1
    code = snippets[0]
    if "#include" not in code:
        code = BEFORE + code + "}\n"
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
               f"-I{root}", "-x", "c++", "-"]
    return subprocess.run(command, input=code, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
