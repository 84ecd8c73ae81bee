"""Tests of scripts/check_includes.py on small trees, one rule each."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

import check_includes  # noqa: E402

HEADER = "#pragma once\n"


def check(files):
    """The violations in a tree made of `files`: path -> text."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_includes.check_tree(folder)


class Layering(unittest.TestCase):
    def includes(self, source, target):
        return check({source: f'{HEADER}#include "{target}"\n', target: HEADER})

    def test_down_and_sideways_is_allowed(self):
        for source, target in [
            ("runtime/memory/arena.h", "runtime/core/units.h"),
            ("runtime/memory/arena.h", "runtime/memory/block.h"),
            ("runtime/device/sim/clock.h", "runtime/device/device.h"),
            ("runtime/policy/filter.h", "runtime/residency/manager.h"),
            ("runtime/planner/problem.h", "runtime/schedule/step_trace.h"),
            ("runtime/planner/order/search.h", "runtime/planner/problem.h"),
            ("runtime/planner/papers/methods.h", "runtime/planner/planner.h"),
            ("examples/plan_graph.cc", "runtime/planner/papers/methods.h"),
            ("runtime/executor/replay.h", "runtime/planner/plan.h"),
            ("ops/conv/conv.h", "ops/registry/registry.h"),
            ("ops/loss/nll.h", "ops/norm/softmax.h"),
            ("models/resnet.h", "ops/conv/conv.h"),
            ("tests/ops/conv_test.cc", "tests/support/gradients.h"),
            ("examples/train.cc", "models/resnet.h"),
            ("tests/examples/flags_test.cc", "examples/flags.h"),
        ]:
            with self.subTest(source=source, target=target):
                self.assertEqual(self.includes(source, target), [])

    def test_up_is_not(self):
        for source, target in [
            ("runtime/core/units.h", "runtime/memory/arena.h"),
            ("runtime/residency/manager.h", "runtime/policy/filter.h"),
            ("runtime/tensor/tensor.h", "ops/registry/registry.h"),
            ("ops/registry/registry.h", "models/resnet.h"),
            ("models/resnet.h", "examples/flags.h"),
            ("examples/train.cc", "tests/support/gradients.h"),
            ("bench/train_bench.cc", "examples/flags.h"),
            ("runtime/core/units.h", "tests/support/gradients.h"),
            ("runtime/planner/planner.h", "runtime/planner/papers/methods.h"),
            ("models/resnet.h", "runtime/planner/papers/methods.h"),
            ("runtime/planner/papers/methods.h", "runtime/residency/manager.h"),
        ]:
            with self.subTest(source=source, target=target):
                (found,) = self.includes(source, target)
                self.assertTrue(found.startswith(f"{source}:2: "), found)
                self.assertIn("may not include", found)

    def test_planner_is_pure(self):
        (found,) = self.includes("runtime/planner/problem.h", "runtime/tensor/tensor.h")
        self.assertIn("pure", found)

    def test_registry_knows_no_operator(self):
        (found,) = self.includes("ops/registry/registry.h", "ops/conv/conv.h")
        self.assertIn("ops/registry may not include ops/conv", found)

    def test_paths_start_at_the_root(self):
        (found,) = check(
            {"runtime/core/a.h": HEADER + '#include "b.h"\n', "runtime/core/b.h": HEADER}
        )
        self.assertIn("root", found)

    def test_included_files_exist(self):
        (found,) = check({"runtime/core/a.h": HEADER + '#include "runtime/core/gone.h"\n'})
        self.assertIn("does not exist", found)

    def test_folders_are_known(self):
        (found,) = check({"runtime/misc/a.h": HEADER})
        self.assertIn("LAYERS", found)


class Headers(unittest.TestCase):
    def test_need_pragma_once(self):
        (found,) = check({"ops/a.h": "int f();\n"})
        self.assertEqual(found, "ops/a.h:1: no #pragma once")

    def test_a_comment_is_not_a_pragma(self):
        self.assertEqual(len(check({"ops/a.h": "/*\n#pragma once\n*/\n"})), 1)

    def test_sources_need_none(self):
        self.assertEqual(check({"ops/a.cc": "int f();\n"}), [])


class Cuda(unittest.TestCase):
    BAD = [
        "#include <cuda_runtime.h>\n",
        "#include <cudnn.h>\n",
        "cudaStream_t stream;\n",
        "cublasHandle_t handle;\n",
        "#if TIDEMARK_CUDA\n#endif\n",
        "#ifdef TIDEMARK_WITH_CUDA\n#endif\n",
    ]

    def test_stays_in_its_files(self):
        for text in self.BAD:
            with self.subTest(text=text):
                self.assertEqual(len(check({"ops/conv/conv.h": HEADER + text})), 1)
                self.assertEqual(check({"ops/conv/conv2d_cuda.h": HEADER + text}), [])
                self.assertEqual(check({"ops/conv/conv2d_cuda.cu": text}), [])
                self.assertEqual(check({"runtime/device/cuda/stream.h": HEADER + text}), [])

    def test_may_be_spoken_of(self):
        text = (
            HEADER
            + "// cudaStream_t is what a Stream wraps\n"
            + '/* cudaEvent_t */ const char* k = "cudaMalloc";\n'
            + "#ifdef __CUDACC__\n#endif\nint cuda = 1;\n"
        )
        self.assertEqual(check({"ops/a.h": text}), [])

    def test_line_is_right_after_a_block_comment(self):
        (found,) = check({"ops/a.h": HEADER + "/* one\ntwo */\ncudaStream_t s;\n"})
        self.assertTrue(found.startswith("ops/a.h:4: "), found)


if __name__ == "__main__":
    unittest.main()
