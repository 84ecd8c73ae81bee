#!/usr/bin/env python3
"""No two types of one name in one namespace: a linker keeps one of their inline functions for
both, and a program that holds both writes past the end of the smaller one."""

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


def types(text):
    """The full names of types that are defined in namespaces with names."""
    found, spaces, depth, template = [], [], 0, False
    for line in text.splitlines():
        line = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
        space = NAMESPACE.match(line)
        if space:
            spaces.append((depth, space.group(1)))
        elif depth == len(spaces) and all(name for _, name in spaces):
            defined = TYPE.match(line)
            if defined and not template:
                found.append("::".join([*(name for _, name in spaces), defined.group(1)]))
        template = line.startswith("template")
        depth += line.count("{") - line.count("}")
        while spaces and depth <= spaces[-1][0]:
            spaces.pop()
    return found


class OneDefinition(unittest.TestCase):
    def test_finds_types(self):
        self.assertEqual(types("namespace a::b {\nstruct X {\n  struct In {};\n};\nclass Y;\n"
                               "namespace {\nstruct Hidden {};\n}  // namespace\n"
                               "class Z final : public Y {\n};\nstruct Z::Impl {};\n"
                               "template <class T>\nstruct Some {};\nenum class E { kA };\n}\n"),
                         ["a::b::X", "a::b::Z", "a::b::E"])

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
