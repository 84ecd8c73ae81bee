#!/usr/bin/env python3
"""Registers, spills, shared memory and occupancy of every CUDA kernel, as ptxas states them.

Each .cu of the library, or each that is named, is compiled to PTX with the options of the build, and
the PTX to machine code, for each architecture. PTX files that are named are taken as they are. A kernel without launch
bounds counts as launched with 256 threads (ops/kernels/launch_cuda.cuh).

usage: scripts/kernel_resources.py                    a table for sm_80, 86, 89 and 90
       scripts/kernel_resources.py ops/loss/softmax_cuda.cu --arch 90
       scripts/kernel_resources.py *.ptx --arch 80 --check    exit code 1 if a hot kernel spills, has
                                     an array in memory or takes too many registers
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURES = (80, 86, 89, 90)

# Files whose kernels take most of a step: they are checked.
HOT = (
    "attention_tensor_cores_cuda", "attention_tensor_cores_grad_cuda", "rotary_cuda",
    "layer_norm_cuda", "rms_norm_cuda", "softmax_cuda", "cross_entropy_cuda",
    "linear_cross_entropy_cuda", "arithmetic_cuda", "unary_cuda", "gelu_cuda",
    "silu_mul_cuda", "inplace_cuda", "optimizer_cuda", "compact_cuda", "batch_norm_cuda",
    "relu_cuda", "embedding_cuda", "random_cuda", "convolution_cuda", "columns_cuda",
)
# Bytes of spills that are no mistake, by "FILE: KERNEL": one block more fits. Adam's are across the
# slow path of division, attention's across the loop over tiles. A frame on the stack above its
# spills is an array that ptxas could not keep in registers.
ALLOWED_SPILLS = {
    "optimizer_cuda: update_kernel<4, AdamStep<.Decay.[12]>": 8,
    "attention_tensor_cores_cuda: .*forward_kernel<float, 64": 36,
    "attention_tensor_cores_cuda: .*forward_kernel<BFloat16, 64": 112,
    "attention_tensor_cores_grad_cuda: .*key_grad_kernel<float, 64, true>": 32,
    "attention_tensor_cores_grad_cuda: .*key_grad_kernel<BFloat16, 64, true>": 44,
    "attention_tensor_cores_grad_cuda: .*query_grad_kernel<BFloat16, 64": 44,
    "attention_tensor_cores_grad_cuda: .*key_grad_kernel<BFloat16, 128": 84,
}
# Registers that let three or four blocks share a multiprocessor, where its shared memory does
# (ops/attention/README.md).
REGISTERS = {
    "attention_tensor_cores_cuda: .*forward_kernel<BFloat16, 64": 128,
    "attention_tensor_cores.*_cuda: .*_kernel<.*, 64": 168,
}


@dataclass
class Multiprocessor:
    """Limits of one, from the CUDA programming guide, "Technical specifications"."""

    threads: int
    blocks: int
    shared_kib: int
    registers: int = 65536
    register_unit: int = 256  # registers are given to a warp in multiples of this
    shared_reserved: int = 1024  # of each block


LIMITS = {
    80: Multiprocessor(2048, 32, 164),
    86: Multiprocessor(1536, 16, 100),
    89: Multiprocessor(1536, 24, 100),
    90: Multiprocessor(2048, 32, 228),
}


@dataclass
class Usage:
    kernel: str  # mangled
    file: str
    threads: int
    registers: int = 0
    spilled: int = 0  # bytes stored and loaded
    stack: int = 0
    shared: int = 0

    def occupancy(self, arch):
        """Resident threads as a share of what a multiprocessor can hold."""
        limits = LIMITS[arch]
        warps = -(-self.threads // 32)
        unit = limits.register_unit
        per_warp = -(-self.registers * 32 // unit) * unit
        by_registers = limits.registers // per_warp // warps if per_warp else limits.blocks
        by_shared = limits.shared_kib * 1024 // (self.shared + limits.shared_reserved)
        blocks = min(limits.blocks, limits.threads // (warps * 32), by_registers, by_shared)
        return blocks * warps * 32 / limits.threads


def parse_ptxas(text, threads_of, file):
    """The usages that `ptxas -v` prints."""
    usages = []
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)'", line):
            name = match.group(1)
            usages.append(Usage(name, file, threads_of.get(name, 256)))
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            usages[-1].stack = int(match.group(1))
            usages[-1].spilled = int(match.group(2)) + int(match.group(3))
        elif match := re.search(r"Used (\d+) registers", line):
            usages[-1].registers = int(match.group(1))
            if shared := re.search(r"(\d+) bytes smem", line):
                usages[-1].shared = int(shared.group(1))
    return usages


def stated(ptx, pattern):
    """The number that a kernel's PTX states, by kernel, where it does."""
    found = {}
    for match in re.finditer(r"\.entry\s+(\S+?)\((.*?)(?=\.entry|\Z)", ptx, re.DOTALL):
        if number := re.search(pattern, match.group(2)):
            found[match.group(1)] = int(number.group(1))
    return found


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"kernel_resources.py: {shlex.join(map(str, command))}\n{done.stderr}")
    return done.stdout + done.stderr


def of_ptx(path, arch, ptxas):
    """The usages of the kernels in a PTX file."""
    ptx = path.read_text()
    text = run([ptxas, "-v", f"-arch=sm_{arch}", path, "-o", "/dev/null"])
    usages = parse_ptxas(text, stated(ptx, r"\.maxntid\s+(\d+)"), path.stem)
    added = stated(ptx, r"launched with (\d+) more bytes of shared memory")  # shared_cuda.cuh
    for usage in usages:
        usage.shared += added.get(usage.kernel, 0)
    return usages


def of_source(entry, arch, ptxas):
    """The usages of the kernels in a .cu, given its entry in compile_commands.json."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if word.endswith("nvcc")):]
    options = [w for w in words[1:] if not re.match(r"-?-(generate-code|c$|MD)", w)]
    for flag in ("-o", "-MT", "-MF", "-x", entry["file"], "-forward-unknown-to-host-compiler"):
        while flag in options:
            at = options.index(flag)
            takes_value = flag in ("-o", "-MT", "-MF", "-x")
            del options[at : at + 1 + takes_value]
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / (Path(entry["file"]).stem + ".ptx")
        command = [words[0], "-forward-unknown-to-host-compiler", *options]
        run([*command, "-ptx", f"-arch=compute_{arch}", "-o", ptx, entry["file"]],
            cwd=entry["directory"])
        return of_ptx(ptx, arch, ptxas)


def sources(build, named):
    """The entries of compile_commands.json for the library's .cu files, or those named, once each."""
    database = build / "compile_commands.json"
    if not database.exists():
        sys.exit(f"kernel_resources.py: no {database}; configure a build with CUDA")
    found = {}
    for entry in json.loads(database.read_text()):
        compiles = entry["file"].endswith(".cu") and "nvcc" in entry["command"]
        wanted = not named or Path(entry["file"]) in named
        if compiles and wanted and " -ptx" not in entry["command"]:
            found.setdefault(entry["file"], entry)
    return list(found.values())


def readable(names):
    """Names as in C++, without what they share."""
    text = run(["c++filt"], input="\n".join(names))
    clean = re.sub(r"\(anonymous namespace\)::|tidemark::|^void ", "", text, flags=re.MULTILINE)
    return dict(zip(names, (line[: line.find(")(") + 1] if ")(" in line else line
                            for line in clean.splitlines())))


def without_hashes(name):
    """A kernel's name, the same for every architecture."""
    return re.sub(r"_[0-9a-f]{8}(?=_|\d|[A-Z])", "", name)


def allowed(table, name, otherwise):
    """What the first entry that the name begins with says."""
    return next((number for pattern, number in table.items()
                 if re.match(pattern, name)), otherwise)


def faults_of(usage, name, arch):
    """What a hot kernel must not do."""
    if usage.spilled > allowed(ALLOWED_SPILLS, name, 0):
        yield f"spills {usage.spilled} bytes"
    if usage.stack > usage.spilled:
        yield f"has {usage.stack} bytes on the stack, of which it spills {usage.spilled}"
    limits = REGISTERS if LIMITS[arch].shared_kib > 100 else {}
    if usage.registers > allowed(limits, name, 255):
        yield f"takes {usage.registers} registers"


def print_table(by_arch, match):
    rows = {}
    for arch, usages in by_arch.items():
        for usage in usages:
            rows.setdefault((usage.file, without_hashes(usage.kernel)), {})[arch] = usage
    names = readable([next(iter(row.values())).kernel for row in rows.values()])
    archs = list(by_arch)
    print("registers, spilled bytes, occupancy; a block's threads and bytes of shared memory")
    print(f"{'':10}" + "".join(f"{f'sm_{a}':^16}" for a in archs) + f"{'threads':>8}{'shared':>8}")
    for row in rows.values():
        usage = next(iter(row.values()))
        name = names[usage.kernel]
        if match and not re.search(match, usage.file + " " + name):
            continue
        cells = "".join(
            f"{u.registers:>5}{u.spilled:>5}{u.occupancy(a):>5.0%} " if (u := row.get(a)) else " " * 16
            for a in archs)
        print(f"{'':10}{cells}{usage.threads:>8}{usage.shared:>8}  {usage.file}: {name[:110]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="sources or PTX files; else all sources")
    parser.add_argument("--arch", type=int, nargs="+", choices=ARCHITECTURES)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--match", help="show only files and kernels that match")
    parser.add_argument("--check", action="store_true",
                        help="hot kernels only; fail on spills, arrays in memory, registers")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    archs = arguments.arch or list(ARCHITECTURES)
    ptx = [path for path in arguments.files if path.suffix == ".ptx"]
    if arguments.check:
        ptx = [path for path in ptx if path.stem in HOT]
        missing = set(HOT) - {path.stem for path in ptx}
        if missing:
            sys.exit(f"kernel_resources.py: no PTX of {', '.join(sorted(missing))}")
    work = ptx or sources(arguments.build, {path.resolve() for path in arguments.files})
    compile_one = of_ptx if ptx else of_source
    by_arch = {}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for arch in archs:
            by_arch[arch] = [usage for usages in pool.map(
                lambda w: compile_one(w, arch, arguments.ptxas), work)
                             for usage in usages]
    if not arguments.check:
        return print_table(by_arch, arguments.match)
    usages = [(arch, usage) for arch, found in by_arch.items() for usage in found]
    names = readable([usage.kernel for _, usage in usages])
    faults = [f"sm_{arch}: {usage.file}: {names[usage.kernel]} {fault}"
              for arch, usage in usages
              for fault in faults_of(usage, f"{usage.file}: {names[usage.kernel]}", arch)]
    print("\n".join([*faults, f"{len(usages)} hot kernels, {len(faults)} faults"]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
