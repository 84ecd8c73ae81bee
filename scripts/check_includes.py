#!/usr/bin/env python3
"""Checks what compilers do not: that dependencies between folders point down only.

A file may include its own folder and those below it in LAYERS; planner/ is pure and sees only
core/ and schedule/. Includes of our own headers are written from the repository's root. CUDA stays
in folders named cuda/ and in files named *_cuda.*. Headers have #pragma once.

usage: check_includes.py [ROOT]      exit code 1 and one line for each violation
"""

import pathlib
import re
import sys

# Bottom up. A file belongs to the longest entry that its path begins with.
LAYERS = [
    "runtime/core",
    "runtime/schedule",
    "runtime/planner",
    "runtime/telemetry",
    "runtime/device",
    "runtime/memory",
    "runtime/cost",
    "runtime/tensor",
    "runtime/residency",
    "runtime/policy",
    "runtime/executor",
    "runtime/session",
    "ops",
    "models",
    "runtime/planner/papers",  # to compare with: programs alone may look into it
    "examples",
    "bench",
    "tests",
]
PURE = {
    "runtime/planner": {"runtime/core", "runtime/schedule"},
    "runtime/planner/papers": {"runtime/core", "runtime/schedule", "runtime/planner"},
}
# Programs: neither includes the other. Tests, above them, may look into both.
TOP = {"examples", "bench"}
# Within ops/, what serves all operator families and knows none of them.
OPS_SHARED = {"registry", "autograd", "kernels"}

SOURCES = {".h", ".cc", ".cu", ".cuh"}
HEADERS = {".h", ".cuh"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)')
COMMENT_OR_LITERAL = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
CUDA_HEADER = re.compile(r"^(cuda|cudnn|cublas|curand|cusparse|cusolver|nvToolsExt|nvtx)")
CUDA_NAME = re.compile(r"\b(?:cuda|cudnn|cublas|curand|cusparse|cusolver)[A-Z]\w*")
CUDA_CONDITION = re.compile(r"^\s*#\s*(?:el)?if\w*\b.*CUDA(?!CC)", re.MULTILINE)


def layer_of(path):
    """The longest entry of LAYERS that holds `path` (a string with slashes), or None."""
    return max((layer for layer in LAYERS if path.startswith(layer + "/")), key=len, default=None)


def is_cuda(path):
    return bool({"cuda", "cuda_on_host", "cudnn"} & set(path.parent.parts)) or path.stem.endswith("_cuda")


def ops_family(path):
    """'conv' for ops/conv/x.h; None outside ops/ and for files right in it."""
    parts = path.split("/")
    return parts[1] if parts[0] == "ops" and len(parts) > 2 else None


def include_violation(source, target, root):
    """Why the file `source` must not include "target", or None."""
    upper, lower = layer_of(source), layer_of(target)
    if lower is None:
        return f'"{target}" is not written from the repository\'s root'
    if not (root / target).is_file():
        return f'"{target}" does not exist'
    if upper == lower:
        if ops_family(source) in OPS_SHARED and ops_family(target) not in OPS_SHARED | {None}:
            return f"ops/{ops_family(source)} may not include ops/{ops_family(target)}"
        return None
    if upper in PURE and lower not in PURE[upper]:
        return f"{upper} is pure: it may not include {lower}"
    if LAYERS.index(lower) > LAYERS.index(upper) or (upper in TOP and lower in TOP):
        return f"{upper} may not include {lower}"
    return None


def without_comments_and_literals(text):
    """`text` with comments and literals blanked, keeping its lines."""
    return COMMENT_OR_LITERAL.sub(lambda m: "\n" * m.group().count("\n"), text)


def check_file(path, root):
    """Yields (line, message) for each violation in the file root/path."""
    text = (root / path).read_text(encoding="utf-8")
    source = path.as_posix()
    if layer_of(source) is None:
        yield 1, "lies in no folder that LAYERS of check_includes.py knows"
        return
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        ours, system = match.groups()
        if ours is not None:
            message = include_violation(source, ours, root)
            if message:
                yield number, message
        elif CUDA_HEADER.match(system) and not is_cuda(path):
            yield number, f"<{system}> outside cuda/ and *_cuda.*"

    code = without_comments_and_literals(text)
    if not is_cuda(path):
        for pattern in (CUDA_NAME, CUDA_CONDITION):
            for match in pattern.finditer(code):
                line = code.count("\n", 0, match.start()) + 1
                yield line, f"'{match.group().strip()}' outside cuda/ and *_cuda.*"
    if path.suffix in HEADERS and not re.search(r"^#pragma once$", code, re.MULTILINE):
        yield 1, "no #pragma once"


def check_tree(root):
    """All violations below `root`, as 'path:line: message', in order of path and line."""
    root = pathlib.Path(root)
    found = []
    for top in sorted({layer.split("/")[0] for layer in LAYERS}):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                name = path.relative_to(root)
                for line, message in sorted(check_file(name, root)):
                    found.append(f"{name.as_posix()}:{line}: {message}")
    return found


def main(arguments):
    root = arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent
    found = check_tree(root)
    for line in found:
        print(line)
    print(f"check_includes: {len(found)} violation(s)" if found else "check_includes: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
