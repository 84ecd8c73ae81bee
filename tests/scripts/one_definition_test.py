#!/usr/bin/env python3
"""No two types of one name in one namespace: a linker keeps one of their inline functions for
both, and a program that holds both writes past the end of the smaller one. And no private type or
constant with a name that another file of its library or test program has: builds join files, a few
at a time, so that one more file may bring the two together."""

import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("bench", "examples", "models", "ops", "runtime")  # what one program may link
NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\s*([\w:]*)\s*\{")
# Not a forward declaration, a member's definition, a specialisation or a template, whose
# functions have the arguments in their names.
TYPE = re.compile(r"(?:struct|class|enum|enum class|union)\s+(\w+)(?:\s+final)?\s*(?::[^:].*)?(?:\{|$)")


CONSTANT = re.compile(r"(?:inline\s+|static\s+)*constexpr\s[^=({]*?\b(k[A-Z]\w*)(?:\[\w*\])?\s*(?:[={]|$)")


def definitions(text):
    """The full names of types and constants in namespaces, "" for a namespace without a name."""
    found, spaces, depth, template = [], [], 0, False
    for line in text.splitlines():
        line = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
        space = NAMESPACE.match(line)
        if space:
            spaces.append((depth, space.group(1)))
        elif depth == len(spaces):
            defined = None if template else TYPE.match(line) or CONSTANT.match(line)
            if defined:
                found.append(tuple(part for _, name in spaces for part in name.split("::"))
                             + (defined.group(1),))
        template = line.startswith("template")
        depth += line.count("{") - line.count("}")
        while spaces and depth <= spaces[-1][0]:
            spaces.pop()
    return found


def types(text):
    """The full names of types that are defined in namespaces with names."""
    return ["::".join(name) for name in definitions(text)
            if "" not in name and not re.match("k[A-Z]", name[-1])]


def clashes(files):
    """Private names that another of these files, {path: text}, uses in a namespace around them."""
    places = collections.defaultdict(set)  # by name without ""
    private = set()
    for path, text in files.items():
        for name in definitions(text):
            bare = tuple(part for part in name if part)
            places[bare].add(path)
            if "" in name:
                private.add((bare, path))
    found = {}
    for bare, path in private:
        outer = [bare[:n] + bare[-1:] for n in range(1, len(bare))]
        others = set().union(*(places.get(name, ()) for name in outer)) - {path}
        if others:
            found["::".join(bare), path] = sorted(others)
    return found


def with_headers(paths):
    """The text of each file, by its path, and of all headers of ours that it includes."""
    files, left = {}, list(paths)
    while left:
        path = left.pop()
        name = str(path.relative_to(ROOT))
        if name in files:
            continue
        files[name] = path.read_text()
        included = (ROOT / header for header in re.findall(r'^#include "(.*)"', files[name], re.M))
        left += [header for header in included if header.exists()]
    return files


class OneDefinition(unittest.TestCase):
    def test_finds_types(self):
        self.assertEqual(types("namespace a::b {\nstruct X {\n  struct In {};\n};\nclass Y;\n"
                               "namespace {\nstruct Hidden {};\n}  // namespace\n"
                               "class Z final : public Y {\n};\nstruct Z::Impl {};\n"
                               "template <class T>\nstruct Some {};\nenum class E { kA };\n}\n"),
                         ["a::b::X", "a::b::Z", "a::b::E"])

    def test_finds_private_names_of_another_file(self):
        private = "namespace a {\nnamespace {\nconstexpr int kX = 1;\nclass Y {\n};\n}\n}\n"
        self.assertEqual(clashes({"1": private, "2": private.replace("kX", "kZ")}),
                         {("a::Y", "1"): ["2"], ("a::Y", "2"): ["1"]})
        self.assertEqual(clashes({"1": private, "2": "namespace a {\ninline constexpr int kX{2};\n}\n"}),
                         {("a::kX", "1"): ["2"]})
        self.assertEqual(clashes({"1": private, "2": "namespace a::b {\nclass Y {\n};\n}\n"}), {})

    def test_private_names_are_of_one_file(self):
        apart = ROOT / "runtime/planner/remat"  # its files are not joined
        papers = ROOT / "runtime/planner/papers"  # a library of their own
        sources = [path for path in (ROOT / "runtime").rglob("*.cc") if apart not in path.parents]
        libraries = collections.defaultdict(list)
        for path in sources:
            libraries[papers if papers in path.parents else path.relative_to(ROOT).parts[1]].append(path)
        self.assertGreater(len(libraries), 10)
        for paths in libraries.values():
            self.assertEqual(clashes(with_headers(paths)), {})

    def test_private_names_are_of_one_test(self):
        programs = collections.defaultdict(dict)
        for path in (ROOT / "tests").rglob("*"):
            if path.suffix == ".h" or path.name.endswith("_test.cc"):
                programs[path.parent][str(path.relative_to(ROOT))] = path.read_text()
        self.assertGreater(len(programs), 40)
        for files in programs.values():
            self.assertEqual(clashes(files), {})

    def test_each_type_has_one_definition(self):
        places = collections.defaultdict(list)
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix in (".h", ".cc", ".cu", ".cuh"):
                    for name in types(path.read_text()):
                        places[name].append(str(path.relative_to(ROOT)))
        self.assertGreater(len(places), 500)
        twice = {name: files for name, files in places.items() if len(files) > 1}
        self.assertEqual(twice, {})


if __name__ == "__main__":
    sys.exit(unittest.main())
