"""Tests of scripts/kernel_resources.py and tests/ops/ptx/check_executed.py on small texts."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests/ops/ptx")]

import check_executed  # noqa: E402
import kernel_resources  # noqa: E402

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1av' for 'sm_80'
ptxas info    : Function properties for _Z1av
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function '_Z1bv' for 'sm_80'
ptxas info    : Function properties for _Z1bv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, 400 bytes cmem[0]
"""
PTX = """\
.visible .entry _Z1av(
	.param .u64 _Z1av_param_0
)
.maxntid 128, 1, 1
{
	// launched with 67584 more bytes of shared memory
}
.entry _ZN12_GLOBAL__N_11bEv()
{
}
"""


class Resources(unittest.TestCase):
    def test_what_ptxas_prints(self):
        a, b = kernel_resources.parse_ptxas(PTXAS, {"_Z1av": 128}, "file")
        self.assertEqual((a.kernel, a.threads, a.registers, a.spilled, a.stack, a.shared),
                         ("_Z1av", 128, 40, 12, 16, 1024))
        self.assertEqual((b.kernel, b.threads, b.registers, b.spilled, b.shared),
                         ("_Z1bv", 256, 10, 0, 0))

    def test_what_the_ptx_states(self):
        self.assertEqual(kernel_resources.stated(PTX, r"\.maxntid\s+(\d+)"), {"_Z1av": 128})
        self.assertEqual(kernel_resources.stated(PTX, r"launched with (\d+) more bytes"),
                         {"_Z1av": 67584})

    def test_occupancy_is_limited_by_what_is_scarce(self):
        def occupancy(arch, **usage):
            return kernel_resources.Usage("k", "f", **usage).occupancy(arch)

        self.assertEqual(occupancy(80, threads=256, registers=32), 1)
        self.assertEqual(occupancy(80, threads=256, registers=40), 0.75)  # 6 blocks
        self.assertEqual(occupancy(80, threads=128, registers=255), 0.125)  # 2 blocks
        self.assertEqual(occupancy(80, threads=32, registers=16), 0.5)  # 32 blocks at most
        self.assertEqual(occupancy(86, threads=32, registers=16), 1 / 3)  # 16 blocks at most
        self.assertEqual(occupancy(80, threads=256, registers=32, shared=40 << 10), 0.5)

    def test_what_a_hot_kernel_must_not_do(self):
        def faults(name, arch=80, **usage):
            found = kernel_resources.Usage("k", "f", 256, **usage)
            return [fault.split()[0] for fault in kernel_resources.faults_of(found, name, arch)]

        adam = "optimizer_cuda: update_kernel<4, AdamStep<(Decay)1>, X>"
        self.assertEqual(faults(adam, spilled=8, stack=8), [])
        self.assertEqual(faults(adam, spilled=9), ["spills"])
        self.assertEqual(faults("optimizer_cuda: update_kernel<4, SgdStep>", spilled=8), ["spills"])
        self.assertEqual(faults("gelu_cuda: gelu_kernel", stack=64), ["has"])
        forward = "attention_tensor_cores_cuda: attention::forward_kernel<{}, true>"
        self.assertEqual(faults(forward.format("float, 64"), registers=168), [])
        self.assertEqual(faults(forward.format("float, 64"), registers=169), ["takes"])
        self.assertEqual(faults(forward.format("BFloat16, 64"), registers=129), ["takes"])
        self.assertEqual(faults(forward.format("BFloat16, 128"), registers=230), [])
        self.assertEqual(faults(forward.format("BFloat16, 64"), arch=89, registers=194), [])


class Executed(unittest.TestCase):
    def test_hashes_of_files_do_not_matter(self):
        name = "_ZN8tidemark48_GLOBAL__N__{}_15_softmax_cuda_cu_{}14softmax_kernelEv"
        self.assertEqual(check_executed.without_hashes(name.format("17e3aa0b", "f367b793")),
                         name.format("00000000", "00000000"))

    def check(self, executed, exceptions):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "k.ptx").write_text(PTX)
            (folder / "list").write_text(f"{folder}/k.ptx\n")
            (folder / "except").write_text(exceptions)
            (folder / "ran").mkdir()
            (folder / "ran/a.txt").write_text(executed)
            return check_executed.complaints(folder / "list", folder / "ran", folder / "except")

    def test_a_kernel_that_nobody_executes(self):
        self.assertEqual(self.check("_Z1av\n_ZN12_GLOBAL__N_11bEv\n", ""), [])
        self.assertEqual(len(self.check("_Z1av\n", "")), 1)
        self.assertEqual(self.check("_Z1av\n", "# why\n_11bEv$: because\n"), [])

    def test_an_exception_that_is_none(self):
        self.assertEqual(len(self.check("_Z1av\n_ZN12_GLOBAL__N_11bEv\n", "1bEv: because\n")), 1)


if __name__ == "__main__":
    unittest.main()
