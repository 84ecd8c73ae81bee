#!/usr/bin/env python3
"""Fails if a CUDA kernel that ships was not executed by any test on the interpreter.

usage: check_executed.py PTX_LIST EXECUTED_FOLDER EXCEPTIONS

PTX_LIST names the PTX files, a line each. EXECUTED_FOLDER holds what the tests wrote: files of
kernels' names. EXCEPTIONS lists kernels that no test can reach here, as `regular expression: reason`; one
that matches no kernel that is missing is an error too.
"""

import re
import subprocess
import sys
from pathlib import Path


def without_hashes(name):
    """As Library::kernels() has it (tests/support/ptx/library.h)."""
    pattern = r"(\d+)(_GLOBAL__N__|_INTERNAL_)[0-9a-f]{8}(_\d+_\w+?_cu_)[0-9a-f]{8}"
    return re.sub(pattern, r"\1\g<2>00000000\g<3>00000000", name)


def shipped(ptx_list):
    """The names of all kernels, by the stem of their file."""
    found = {}
    for path in Path(ptx_list).read_text().split():
        for name in re.findall(r"\.entry\s+(\w+)", Path(path).read_text()):
            found.setdefault(without_hashes(name), Path(path).stem)
    return found


def executed(folder):
    return {name for path in Path(folder).glob("*.txt") for name in path.read_text().split()}


def exceptions(path):
    lines = [line for line in Path(path).read_text().splitlines() if line and line[0] != "#"]
    return [line.split(": ", 1)[0] for line in lines]


def readable(name):
    return subprocess.run(["c++filt", name], capture_output=True, text=True).stdout.strip()


def complaints(ptx_list, folder, excepted):
    """What is wrong, a string each."""
    kernels, ran, parts = shipped(ptx_list), executed(folder), exceptions(excepted)
    missing = [name for name in kernels if name not in ran]
    print(f"{len(kernels)} kernels ship, {len(kernels) - len(missing)} were executed")
    found = [f"never executed: {kernels[name]}: {readable(name)}\n    {name}" for name in missing
             if not any(re.search(part, name) for part in parts)]
    return found + [f"an exception for no kernel that is missing: {part}" for part in parts
                    if not any(re.search(part, name) for name in missing)]


def main():
    found = complaints(*sys.argv[1:])
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
