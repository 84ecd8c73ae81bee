#!/usr/bin/env python3
"""clang-tidy on the .cc files of the library and the programs that build/release compiles, or on
those named. It needs that build configured (scripts/test.sh makes one).

Most of a run goes into the headers of the system and of the libraries, which are read and checked
again for every file. So files of one folder are looked at together, as one file that includes
them; where they cannot be (two have a private function of one name), one by one."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("runtime", "ops", "models", "examples")
TOGETHER = 12  # files at most: more of them take longer than their headers


def commands(build):
    """The compile commands of the project's own files, by path below ROOT."""
    database = build / "compile_commands.json"
    if not database.exists():
        sys.exit(f"tidy.py: no {database}; run cmake --preset release")
    found = {}
    for entry in json.loads(database.read_text()):
        path = Path(entry["file"])
        if path.is_relative_to(ROOT):
            found.setdefault(str(path.relative_to(ROOT)), entry)
    return found


def flags(entry):
    """What the compiler is given but for the file and the output: equal for a group's files."""
    words = shlex.split(entry["command"])
    first = next(i for i, word in enumerate(words) if word.startswith("-"))
    words = words[first:]
    output = words.index("-o")
    del words[output:output + 2]
    return tuple(w for w in words if w != "-c" and w != entry["file"])


def groups(files, database):
    by_kind = {}
    for file in files:
        by_kind.setdefault((os.path.dirname(file), flags(database[file])), []).append(file)
    for (folder, kind), members in sorted(by_kind.items()):
        for i in range(0, len(members), TOGETHER):
            yield folder, kind, members[i:i + TOGETHER]


def tidy(file, kind, *options):
    done = subprocess.run(
        ["clang-tidy-14", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *options, str(file),
         "--", "-Wno-unknown-warning-option", *kind],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = [line for line in done.stdout.splitlines()
            if not re.fullmatch(r"\d+ (warnings?|errors?)( and \d+ errors?)? generated\.", line)]
    return done.returncode, "\n".join(said)


def check(group, scratch):
    """What clang-tidy finds in the group's files: '' for nothing."""
    folder, kind, files = group
    if len(files) > 1:
        together = scratch / (files[0].replace("/", "_"))
        together.write_text("".join(f'#include "{ROOT / file}"\n' for file in files))
        # Each file is as the compiler's own here, not a header that happens to end in .cc.
        code, said = tidy(together, kind, "--checks=-bugprone-suspicious-include",
                          "--header-filter=/(runtime|ops|models|examples|bench)/.*[.](h|cc)$")
        if code == 0:
            return ""
        if "clang-diagnostic-" not in said:
            return said
    results = [tidy(ROOT / file, kind) for file in files]
    return "\n".join(said for code, said in results if code != 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="all, if none is named")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release",
                        help="the configured build (default: build/release)")
    args = parser.parse_args()
    database = commands(args.build.resolve())
    files = [os.path.relpath(Path(file).resolve(), ROOT) for file in args.files]
    for file in files:
        if file not in database:
            sys.exit(f"tidy.py: {file} is not compiled in {args.build}")
    # Those for a device that is not built here have no compile command.
    files = files or sorted(file for file in database
                            if file.startswith(tuple(f"{folder}/" for folder in CHECKED))
                            and file.endswith(".cc"))
    if not files:
        sys.exit(f"tidy.py: {args.build} compiles no file of {ROOT}")
    scratch = args.build.resolve() / "tidy"
    scratch.mkdir(exist_ok=True)
    found = False
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for said in pool.map(lambda group: check(group, scratch), groups(files, database)):
            if said:
                found = True
                print(said, flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
