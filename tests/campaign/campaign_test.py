#!/usr/bin/env python3
"""The campaign's judge, held against programs that lie: each kind of defect has to be found."""

import argparse
import contextlib
import json
import pathlib
import signal
import stat
import sys
import tempfile
import unittest

import campaign

# Stands in for train_resnet and train_bert: reports what it would, but for one defect.
PROGRAM = """#!{python}
import json, os, signal, sys, time
defect, managed = {defect!r}, "none" not in sys.argv
if "--help" in sys.argv:
    print("--model --data --batch --steps --seed --threads --momentum --optimizer --weight-decay --lr-schedule --dtype "
          "--accumulate --clip --image-size --classes --seq-length --dropout --attention --early-start "
          "--prefetch --repairs --plan --overlap --host-limit --disk-limit --memory\\n"
          "  --policy {{none,delta,dtr}}=delta  What to release\\n"
          "  --filter {{base,lru}}  What delta releases first")
    sys.exit(0)
text = sys.argv[sys.argv.index("--budget") + 1] if "--budget" in sys.argv else "100%"
budget = 1 << 20 if text == "100%" else int(text)
memory = int(sys.argv[sys.argv.index("--memory") + 1]) if "--memory" in sys.argv else None
json_path = sys.argv[sys.argv.index("--json") + 1]
smallest = 4096 if "dtr" in sys.argv else 2048
def report(**more):
    with open(json_path, "w") as file:
        known = 8192 if defect == "is not least" else smallest
        json.dump(dict(minimum_budget_bytes=known, minimum_is_least=known == smallest, unmanaged_peak_bytes=1 << 20, loader_bytes=0, **more), file)
if "--dry-run" in sys.argv:
    report()
    sys.exit(0)
if budget // 512 * 512 < smallest:
    print("too small", file=sys.stderr)
    sys.exit(1 if managed and defect == "code" else 3)
bits = "1234" if not (managed and defect == "bits") else "4321"
arena = budget + (512 if managed and defect == "arena" else 0)
if memory:
    arena = 4096
process = memory + 1 if memory and managed and defect == "memory" else arena + (300 << 20 if managed and defect == "process" else 0)
report(params_checksum="abc", steps=[dict(step=0, loss_bits=bits)], peak_reserved_bytes=arena, host_peak_bytes=0,
       disk_peak_bytes=0, process_peak_bytes=process)
if managed and defect == "file":
    open("run.partial", "w").close()
if managed and defect == "hangs":
    time.sleep(60)
if managed and defect == "dies":
    os.kill(os.getpid(), signal.SIGABRT)
"""


CHOICES = ["delta", "dtr"], ["base", "lru"]  # policies and filters


@contextlib.contextmanager
def programs_that_lie(defect):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("train_resnet", "train_bert"):
            path = pathlib.Path(folder) / name
            path.write_text(PROGRAM.format(python=sys.executable, defect=defect))
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        yield folder


def options_for(folder, patience=20):
    return argparse.Namespace(programs=folder, minutes=1, cases=None, seed=1, only=None, patience=patience, folder=None,
                              keep=None, json=None, verbose=False)


def defects_of(defect, patience=20, cases=10):
    with programs_that_lie(defect) as folder:
        options = options_for(folder, patience)
        held = campaign.Campaign(options)
        for number in range(cases):
            case = campaign.draw(options.seed, number, *held.choices())
            case.limit = case.signal = "none"
            case.checkpoint = case.load = False
            case.mistake = []
            case.outputs = []
            case.budget = ["none", "smallest", "below", "share", "memory"][number % 5]
            case.tiers = []
            case.policy = ["--policy", "dtr" if number % 2 else "delta"]
            complaints, command = held.attempt(case)
            held.complain(case, complaints, command)
        return json.dumps(held.defects)


class JudgeTest(unittest.TestCase):
    def test_no_defect_where_there_is_none(self):
        self.assertEqual(defects_of("nothing"), "[]")

    def test_a_budget_below_what_is_known_to_do_may_do(self):
        self.assertEqual(defects_of("is not least"), "[]")

    def test_defects_are_found(self):
        for defect, said in (("bits", "losses differ"), ("arena", "the arena took"),
                             ("process", "the process took"), ("memory", "but the process took"),
                             ("code", "ends with 1, not [3]"), ("dies", "ends with -6"),
                             ("file", "left behind: run.partial")):
            with self.subTest(defect):
                self.assertIn(said, defects_of(defect))

    def test_a_run_that_does_not_end(self):
        self.assertIn("does not end", defects_of("hangs", patience=0.4, cases=2))

    def test_a_signal_that_kills_a_run_that_had_begun(self):
        held = campaign.Campaign(options_for("."))
        case = campaign.draw(1, 0, *CHOICES)
        case.limit, case.signal = "none", "HUP"
        died = campaign.Outcome(-signal.SIGHUP, "step 1", "", {}, 1.0)
        self.assertTrue(held.judge(case, died, (None, None), True, None))
        died.output = ""
        self.assertFalse(held.judge(case, died, (None, None), True, None))

    def test_a_case_is_drawn_from_seed_and_number_alone(self):
        self.assertEqual(campaign.draw(7, 3, *CHOICES), campaign.draw(7, 3, *CHOICES))
        self.assertNotEqual(campaign.draw(7, 3, *CHOICES), campaign.draw(7, 4, *CHOICES))

    def test_policies_and_filters_are_those_of_the_program(self):
        with programs_that_lie("nothing") as folder:
            held = campaign.Campaign(options_for(folder))
            self.assertEqual(held.choices(), (["delta", "dtr"], ["base", "lru"]))
            drawn = [campaign.draw(1, number, *held.choices()).policy for number in range(200)]
        self.assertEqual({flags[1] for flags in drawn if flags}, {"delta", "dtr"})


if __name__ == "__main__":
    unittest.main()
