#!/usr/bin/env python3
"""clang-tidy on the .cc files of the library and the programs, or on those named. It configures a
build of its own in build/tidy, in which no sources are joined, and builds nothing.

Most of a run goes into the headers of the system and of the libraries, which are read and checked
again for every file. So files are looked at together, as one file that includes them, where they
can be: two that have a private function of one name cannot. And what was found clean is known by
a hash of all that the compiler reads, and is not looked at again, in any checkout."""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/tidy"
CHECKED = ("runtime", "ops", "models", "examples")
JOINED = ("runtime/", "examples/")  # TIDEMARK_JOIN_SOURCES: names do not collide there
TOGETHER = 12  # files at most: more of them take longer than their headers
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidemark-tidy"


def commands():
    """The compile commands of the project's own files, by path below ROOT."""
    done = subprocess.run(["cmake", "--preset", "release", "-B", BUILD, "-DTIDEMARK_CUDA=TOOLKIT",
                           "-DTIDEMARK_JOIN_SOURCES=OFF"],
                          cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}tidy.py: cmake failed")
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.is_relative_to(ROOT):
            found.setdefault(str(path.relative_to(ROOT)), entry)
    return found


def flags(entry):
    """Compiler flags without file and output, which the files of a group share."""
    words = shlex.split(entry["command"])
    first = next(i for i, word in enumerate(words) if word.startswith("-"))
    words = words[first:]
    output = words.index("-o")
    del words[output:output + 2]
    return tuple(w for w in words if w != "-c" and w != entry["file"])


def together(files, scratch):
    """One file that includes them all."""
    path = scratch / f"{files[0].replace('/', '_')}.{len(files)}.cc"
    path.write_text("".join(f'#include "{ROOT / file}"\n' for file in files))
    return path


def compile_together(files, kind, scratch, *options):
    """clang on all of them: its exit code and what it prints."""
    done = subprocess.run(["clang++-14", *kind, "-w", *options, together(files, scratch)],
                          cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def groups(files, kind, scratch):
    """The files in groups that compile as one file each."""
    while files:
        group = files[:TOGETHER]
        if group[0].startswith(JOINED):
            yield group
            files = files[TOGETHER:]
            continue
        # An error names the later of two colliding files; that file moves to another group.
        while len(group) > 1:
            code, said = compile_together(group, kind, scratch, "-fsyntax-only", "-ferror-limit=0")
            if code == 0:
                break
            named = {os.path.relpath(path, ROOT)
                     for path in re.findall(r"^(/[^:\n]*):\d+:\d+: error:", said.decode(), re.M)}
            kept = [file for file in group if file not in named]
            group = kept if kept and len(kept) < len(group) else group[:1]
        yield group
        files = [file for file in files if file not in group]


def fingerprint(files, kind, scratch):
    """A hash of all that decides what clang-tidy says of the files."""
    # With comments, as NOLINT is one, and with macros and includes, which have checks of their
    # own; without the places of headers, so that any checkout will do.
    _, read = compile_together(files, kind, scratch, "-E", "-C", "-P", "-dD", "-dI")
    known = [read.replace(str(ROOT).encode(), b""), (ROOT / ".clang-tidy").read_bytes(), Path(__file__).read_bytes(),
             " ".join(kind).replace(str(ROOT), "").encode()]
    return hashlib.sha256(b"\0".join(known)).hexdigest()


def tidy(files, kind, scratch):
    """What clang-tidy finds in the group's files: '' for nothing."""
    clean = CACHE / fingerprint(files, kind, scratch)
    if clean.exists():
        return ""
    options = []
    path = ROOT / files[0]
    if len(files) > 1:
        path = together(files, scratch)
        # Including .cc files is the point here, and -Wshadow would report names of other files of
        # the group.
        options = ["--checks=-bugprone-suspicious-include", "--extra-arg=-Wno-shadow",
                   "--header-filter=/(runtime|ops|models|examples|bench)/.*[.](h|cc)$"]
    done = subprocess.run(
        ["clang-tidy-14", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *options, str(path),
         "--", "-Wno-unknown-warning-option", *kind],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        CACHE.mkdir(parents=True, exist_ok=True)
        clean.touch()
        return ""
    if len(files) > 1:
        # Some findings come from reading files together: a declaration after its definition.
        named = [file for file in files if f"{ROOT / file}:" in done.stdout] or files
        return "\n".join(filter(None, (tidy([file], kind, scratch) for file in named)))
    return "\n".join(line for line in done.stdout.splitlines() if not re.fullmatch(
        r"\d+ (warnings?|errors?)( and \d+ errors?)? generated\.", line))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="all, if none is named")
    args = parser.parse_args()
    database = commands()
    files = [os.path.relpath(Path(file).resolve(), ROOT) for file in args.files]
    for file in files:
        if file not in database:
            sys.exit(f"tidy.py: {file} is not compiled here")
    # Those for a device that is not built here have no compile command.
    files = files or sorted(file for file in database
                            if file.startswith(tuple(f"{folder}/" for folder in CHECKED))
                            and file.endswith(".cc"))
    if not files:
        sys.exit(f"tidy.py: {BUILD} compiles no file of {ROOT}")
    scratch = BUILD / "together"
    scratch.mkdir(exist_ok=True)
    by_kind = {}  # of one folder and one set of flags
    for file in files:
        by_kind.setdefault((os.path.dirname(file), flags(database[file])), []).append(file)
    found = False
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        packed = pool.map(lambda item: [(group, item[0][1])
                                        for group in groups(item[1], item[0][1], scratch)],
                          sorted(by_kind.items()))
        jobs = [job for folder in packed for job in folder]
        for said in pool.map(lambda job: tidy(*job, scratch), jobs):
            if said:
                found = True
                print(said, flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
