#!/usr/bin/env python3
"""Fails if a parameter of a CUDA kernel has another size for nvcc than for the host's compiler.

usage: check_parameters.py PTX_LIST PROGRAM

PTX_LIST names the PTX files, a line each. `PROGRAM --parameters` prints the types of parameters and
their bytes, as the host's compiler lays them out: cuda_on_host_ops_test, which is made of the same
sources. Types are compared by their names, so two of one name, private to two files, count as one
with two sizes.
"""

import re
import subprocess
import sys
from pathlib import Path

# Of kernels that are not compiled for the host, as cuDNN or the device itself launches beside them.
NOT_ON_THE_HOST = {"tidemark::(anonymous namespace)::AddTo": {1}}


def demangled(names, *options):
    done = subprocess.run(["c++filt", *options], input="\n".join(names), capture_output=True,
                          text=True, check=True)
    return done.stdout.splitlines()


def normal(kind):
    """A type's name, however it was mangled."""
    return re.sub(r"(?<=\b)(\d+)ul\b", r"\1", kind).replace("> >", ">>")


def on_host(program):
    """The bytes of each type."""
    lines = subprocess.run([program, "--parameters"], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    names, sizes = zip(*(line.split() for line in lines if line))
    known = {kind: set(sizes) for kind, sizes in NOT_ON_THE_HOST.items()}
    for kind, size in zip(demangled(names, "-t"), sizes):
        known.setdefault(normal(kind), set()).add(int(size))
    return known


def entries(text):
    """The kernels of a PTX file: their names, and the bytes of their parameters."""
    for match in re.finditer(r"\.entry\s+(\w+)\s*\(([^)]*)\)", text):
        sizes = []
        for line in match.group(2).split("\n"):
            if array := re.search(r"\.b8 \w+\[(\d+)\]", line):
                sizes.append(int(array.group(1)))
            elif scalar := re.search(r"\.param \.[a-z](\d+)", line):
                sizes.append(int(scalar.group(1)) // 8)
        yield match.group(1), sizes


def parameters(signature):
    """The types in the last parentheses of a function's name."""
    depth, start = 0, len(signature)
    while start == len(signature) or depth > 0:
        start -= 1
        depth += (signature[start] == ")") - (signature[start] == "(")
    kinds, depth = [""], 0
    for letter in signature[start + 1 : -1]:
        depth += (letter in "<({") - (letter in ">)}")
        if letter == "," and depth == 0:
            kinds.append("")
        else:
            kinds[-1] += letter
    return [normal(kind.strip()) for kind in kinds if kind.strip()]


def expected(kind, known):
    """The bytes that a type may have on the host; empty if it is not known."""
    if kind.endswith("*"):
        return {8}
    if kind in known:
        return known[kind]
    # Members<CompactKind<...>::kInputs, void>: a number that the name does not give.
    pattern = re.sub(r"tidemark::CompactKind<.*>::kInputs", r"\\d+", re.escape(kind))
    return {size for other, sizes in known.items() if re.fullmatch(pattern, other) for size in sizes}


def main():
    ptx_list, program = sys.argv[1:]
    known = on_host(program)
    found = [entry for path in Path(ptx_list).read_text().split()
             for entry in entries(Path(path).read_text())]
    wrong, count = [], 0
    for signature, (_, sizes) in zip(demangled([name for name, _ in found]), found):
        kinds = parameters(signature)
        if len(kinds) != len(sizes):
            wrong.append(f"{len(sizes)} parameters: {signature}")
        for kind, size in zip(kinds, sizes):
            count += 1
            allowed = expected(kind, known)
            if size not in allowed:
                wrong.append(f"{kind} has {size} bytes in PTX, {sorted(allowed) or 'unknown'} on "
                             f"the host: {signature}")
    print(f"{len(found)} kernels, {count} parameters, {len(wrong)} of them differ")
    print("\n".join(wrong))
    sys.exit(1 if wrong or not found else 0)


if __name__ == "__main__":
    main()
