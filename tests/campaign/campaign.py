#!/usr/bin/env python3
"""Runs the training programs in random configurations and judges what they did.

Each case draws a small training task, memory flags, an environment, a limit of the operating
system and perhaps a signal. It is held against the same task without a budget:

  bits     losses and the checksum of parameters, buffers and optimizer state are equal
  limits   arena, tiers and the process stay within what was promised
  codes    0, 2, 3 and 130 mean what --help says; no run dies of a signal that it was not sent
  files    nothing is left behind but what was asked for; an interrupted run resumes

A case is drawn from the seed and its number alone, so `--seed 7 --only 123` repeats one.

  tests/campaign/campaign.py --programs build/release/bin --minutes 60 --seed 7
"""

import argparse
import collections
import dataclasses
import functools
import json
import os
import pathlib
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from reports import choices  # noqa: E402

MIB = 1 << 20
UNIT = 512  # budgets are whole blocks of so many bytes
PROGRAM_PART = 192 * MIB  # what a program may take beside arena, tiers and loader
DONE, FAILED, BAD_INPUT, OUT_OF_MEMORY, INTERRUPTED = 0, 1, 2, 3, 130
# What no result may depend on.
ENVIRONMENTS = [
    {}, {}, {},
    {"OMP_DYNAMIC": "true"},
    {"OMP_NESTED": "true", "OMP_MAX_ACTIVE_LEVELS": "4"},
    {"OMP_WAIT_POLICY": "active"},
    {"OMP_SCHEDULE": "dynamic,1"},
    {"OMP_PROC_BIND": "true"},
    {"OMP_STACKSIZE": "256k"},
    {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8"},
    {"HOME": ""},
    {"TIDEMARK_LOG": "debug"},
]
# What may change the bits of a task, but not make them depend on memory.
MACHINES = [{}, {}, {}, {}, {"ONEDNN_MAX_CPU_ISA": "SSE41"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"},
            {"OMP_THREAD_LIMIT": "1"}]
# Flags that are wrong whatever else is said.
MISTAKES = [
    ["--budget", "-5"], ["--budget", "nan%"], ["--budget", "1e300"], ["--budget", ""],
    ["--batch", "0"], ["--batch", "-3"], ["--steps", "0x"], ["--lr", "nan"], ["--lr", "-1"],
    ["--policy", "best"], ["--seed", "-1"], ["--seed", "1.5"], ["--json", ""], ["--trace", ""],
    ["--device", "gpu"], ["--device", "sim:"], ["--threads", "-1"], ["--prefetch", "-1"],
    ["--early-start", "2"], ["--costs", "/nonexistent"], ["--json", "/nonexistent/a.json"],
    ["--json", "."], ["--host-limit", "-1"], ["--disk-limit", "many"], ["--momentum", "2"],
    ["--frobnicate"], ["--json", "same.out", "--trace", "./same.out"],
]


@dataclasses.dataclass(frozen=True)
class Task:
    """All that results may depend on."""
    program: str
    flags: tuple
    machine: tuple  # environment

    def environment(self):
        return dict(self.machine)


@dataclasses.dataclass
class Case:
    number: int
    task: Task
    tiers: list  # flags
    policy: list
    budget: str  # "none", "smallest", "below", "share", "memory": of the whole process
    share: float
    environment: dict
    limit: str  # "none", "promise-data", "promise-cgroup", "low-data", ...
    signal: str  # "none", "INT", "TERM", "HUP", "KILL"
    moment: float  # when, as a share of what the task takes
    checkpoint: bool
    outputs: list  # flags that write a file beside the report: the flag and the file's name
    load: bool  # others keep the processors busy
    mistake: list


def draw_task(rng):
    seed = ["--seed", str(rng.randrange(3))]
    threads = ["--threads", str(rng.choice([1, 2, 2, 3]))]
    optimizer = rng.choice([[], [], ["--optimizer", "adam"], ["--optimizer", "adamw", "--weight-decay", "0.01"],
                            ["--momentum", "0"], ["--lr-schedule", "cosine"]])
    dtype = rng.choice([[], [], [], ["--dtype", "bf16"]])
    machine = rng.choice(MACHINES)
    if dtype:
        machine = {}  # bfloat16 needs AVX-512
    if rng.random() < 0.7:
        model = rng.choice(["resnet18", "resnet18", "resnet34", "mobilenet_v2", "googlenet", "mnasnet1_0"])
        data = rng.choice([["--data", "digits"], ["--data", "synthetic", "--image-size", "32", "--classes", "10"],
                           ["--data", "synthetic", "--image-size", "48", "--classes", "7"]])
        flags = ["--model", model, *data, "--batch", str(rng.choice([1, 3, 4, 8])), "--steps", str(rng.choice([2, 3, 5]))]
        if rng.random() < 0.2:
            flags += ["--accumulate", "2"]
        program = "train_resnet"
    else:
        model = rng.choice(["bert-tiny", "bert-tiny", "bert-tiny"])
        flags = ["--model", model, "--batch", str(rng.choice([1, 2, 4])), "--seq-length", str(rng.choice([16, 32, 64])),
                 "--steps", str(rng.choice([2, 3, 5])), "--dropout", rng.choice(["0", "0.1"])]
        if rng.random() < 0.3:
            flags += ["--attention", "materialised"]
        program = "train_bert"
    if rng.random() < 0.2:
        flags += ["--clip", "0.5"]
    return Task(program, tuple(flags + seed + threads + optimizer + dtype), tuple(machine.items()))


def draw_tiers(rng):
    return rng.choice([[], [], [], ["--host-limit", "0"], ["--host-limit", "1GiB"],
                       ["--host-limit", "0", "--disk-limit", "0"], ["--host-limit", "16MiB", "--disk-limit", "1GiB"],
                       ["--host-limit", "0", "--disk-limit", "2GiB"], ["--host-limit", "20MiB", "--disk-limit", "0"]])


def draw_policy(rng, policies, filters):
    if rng.random() < 0.4:
        return []
    flags = ["--policy", rng.choice(policies)]
    if flags[1].startswith("delta") and rng.random() < 0.3:
        flags += ["--repairs", rng.choice(["no-backward", "no-async,no-link", "gradients,no-limits", "no-prices"])]
    if flags[1] in ("delta", "delta-paper", "tide") and rng.random() < 0.5:
        flags += ["--filter", rng.choice(filters)]
    if rng.random() < 0.2:
        flags += ["--early-start", rng.choice(["off", "0.5", "1"])]
    if rng.random() < 0.2:
        flags += ["--prefetch", rng.choice(["0", "1", "100"])]
    if rng.random() < 0.2:
        flags += ["--plan", "auto"]
    if rng.random() < 0.15:
        flags += ["--no-overlap"]
    return flags


def draw(seed, number, policies, filters):
    """`policies`, `filters`: what the programs take."""
    rng = random.Random(f"{seed}/{number}")
    case = Case(
        number=number, task=draw_task(rng), tiers=draw_tiers(rng), policy=draw_policy(rng, policies, filters),
        budget=rng.choice(["none", "smallest", "below", "share", "share", "share", "share", "memory", "memory"]),
        share=rng.uniform(0, 1.1), environment=rng.choice(ENVIRONMENTS),
        limit=rng.choice(["none"] * 9 + ["promise-data", "promise-cgroup", "low-data", "low-space", "low-cgroup",
                                         "file-size", "full-output", "full-errors", "closed-errors", "disk-full"]),
        signal=rng.choice(["none"] * 7 + ["INT", "TERM", "HUP", "KILL"]), moment=rng.uniform(0, 1.2),
        checkpoint=rng.random() < 0.4, outputs=rng.choice([[], [], [], ["--save", "w.safetensors"], ["--trace", "t.json"]]),
        load=rng.random() < 0.15,
        mistake=rng.choice(MISTAKES) if rng.random() < 0.08 else [])
    if case.mistake:
        case.limit = case.signal = "none"
    if case.budget == "memory":
        case.tiers = []  # what the process may take decides on them
    return case


class Groups:
    """Memory control groups, version 1 or 2, where this user may make them."""

    def __init__(self):
        root = pathlib.Path("/sys/fs/cgroup")
        self.root, self.file = root, "memory.max"
        if (root / "memory").is_dir():
            self.root, self.file = root / "memory", "memory.limit_in_bytes"
        self.works = False
        try:
            with self.of(64 * MIB):
                self.works = True
        except OSError:
            pass

    def of(self, limit):
        return Group(self.root, self.file, limit)


class Group:
    def __init__(self, root, file, limit):
        self.path, self.file, self.limit = root / f"campaign-{os.getpid()}", file, limit

    def __enter__(self):
        self.path.mkdir()
        try:
            (self.path / self.file).write_text(str(self.limit))
        except OSError:
            self.path.rmdir()
            raise
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.05)  # the kernel is still taking the processes out


class Busy:
    """Processes that keep two processors busy."""

    def __init__(self, wanted):
        self.count = 2 if wanted else 0

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.count)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


@dataclasses.dataclass
class Outcome:
    code: int  # negative: the signal that it died of
    output: str
    errors: str
    report: dict
    seconds: float
    gave_up: bool = False


class Campaign:
    def __init__(self, options):
        self.options = options
        self.programs = pathlib.Path(options.programs).resolve()
        self.references = {}
        self.needs = {}
        self.groups = Groups()
        self.counts = collections.Counter()
        self.defects = []
        self.known_flags = {}

    # --- running ---

    @functools.lru_cache
    def choices(self):
        """The policies, but for "none", and the filters."""
        policies, filters = (choices(self.programs / "train_resnet", flag) for flag in ("--policy", "--filter"))
        return [policy for policy in policies if policy != "none"], filters

    def knows(self, program, flag):
        if program not in self.known_flags:
            text = subprocess.run([self.programs / program, "--help"], capture_output=True, text=True, check=False).stdout
            self.known_flags[program] = text
        return f"--{flag}" in self.known_flags[program]

    def usable(self, case):
        """Older programs lack some flags."""
        flags = [*case.task.flags, *case.policy, *case.tiers]
        return all(self.knows(case.task.program, flag[2:].removeprefix("no-")) for flag in flags if flag.startswith("--"))

    def run(self, task, flags, folder, *, environment=None, limits=None, group=None, signalled=None, output=None,
            errors=None, patience=1):
        """`signalled`: a signal's number and the seconds after which it is sent."""
        report = folder / "run.json"
        command = [str(self.programs / task.program), *task.flags, *flags]
        if "--json" not in flags:
            command += ["--json", str(report)]
        # Threads that wait would otherwise keep each other from a busy processor.
        env = {**os.environ, "OMP_WAIT_POLICY": "passive", **task.environment(), **(environment or {})}
        out_path, error_path = folder / ".stdout", folder / ".stderr"

        def confine():
            if group:
                (group.path / "cgroup.procs").write_text(str(os.getpid()))
            for which, value in (limits or {}).items():
                resource.setrlimit(which, (value, value))
            if errors == "closed":
                os.close(2)

        begin = time.monotonic()
        with open(output or out_path, "wb") as out, open(errors if errors not in (None, "closed") else error_path, "wb") as err:
            process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       preexec_fn=confine)
            gave_up = False
            try:
                if signalled:
                    try:
                        process.wait(timeout=signalled[1])
                    except subprocess.TimeoutExpired:
                        process.send_signal(signalled[0])
                process.wait(timeout=patience * self.options.patience)
            except subprocess.TimeoutExpired:
                gave_up = True
                process.kill()
                process.wait()
        seconds = time.monotonic() - begin
        try:
            content = json.loads(report.read_text())
        except (OSError, ValueError):
            content = {}
        texts = [path.read_text(errors="replace") if path.exists() else "" for path in (out_path, error_path)]
        return Outcome(process.returncode, texts[0], texts[1], content, seconds, gave_up)

    def reference(self, task):
        """The unmanaged run of a task, or None where the task itself is refused."""
        if task not in self.references:
            with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
                done = self.run(task, ["--policy", "none"], pathlib.Path(folder))
            if done.code not in (DONE, BAD_INPUT) or done.gave_up:
                self.complain(None, [f"the unmanaged run ends with {done.code}: {done.errors[-300:]}"], shlex.join(task.flags))
            self.references[task] = done if done.code == DONE else None
        return self.references[task]

    def smallest(self, task, flags):
        """The smallest feasible budget with these flags by a dry run, in bytes, and whether it is the least."""
        key = (task, tuple(flags))
        if key not in self.needs:
            with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
                # A budget, so that no table over budgets is made.
                done = self.run(task, ["--dry-run", "--budget", "100%", *flags], pathlib.Path(folder))
            self.needs[key] = (done.report.get("minimum_budget_bytes"), done.report.get("minimum_is_least", True))
            if done.code != DONE or not self.needs[key][0]:
                self.complain(None, [f"the dry run ends with {done.code}: {done.errors[-300:]}"],
                              shlex.join([*task.flags, *flags]))
        return self.needs[key]

    # --- judging ---

    def complain(self, case, complaints, command):
        for text in complaints:
            self.defects.append({"case": case.number if case else None, "complaint": text, "command": command})
            print(f"\nDEFECT case {case.number if case else '-'}: {text}\n  {command}", flush=True)

    @staticmethod
    def same_bits(outcome, reference):
        ours, theirs = outcome.report, reference.report
        if ours.get("params_checksum") != theirs.get("params_checksum"):
            return [f"checksum {ours.get('params_checksum')} instead of {theirs.get('params_checksum')}"]
        losses = [[step["loss_bits"] for step in report["steps"]] for report in (ours, theirs)]
        first = len(losses[1]) - len(losses[0])  # more than 0 after --resume
        if first < 0 or losses[0] != losses[1][first:]:
            return ["losses differ"]
        return []

    @staticmethod
    def within_limits(outcome, budget, tiers):
        report, complaints = outcome.report, []
        arena, host, disk = (report.get(f"{what}_bytes") or 0 for what in ("peak_reserved", "host_peak", "disk_peak"))
        if budget and arena > budget:
            complaints.append(f"the arena took {arena} of {budget}")
        for name, took in (("--host-limit", host), ("--disk-limit", disk)):
            if name in tiers and took > to_bytes(tiers[tiers.index(name) + 1]):
                complaints.append(f"{name} {tiers[tiers.index(name) + 1]}, but {took} were taken")
        promised = arena + host + (report.get("loader_bytes") or 0) + PROGRAM_PART
        if (report.get("process_peak_bytes") or 0) > promised:
            complaints.append(f"the process took {report['process_peak_bytes']}, promised were {promised}")
        return complaints

    @staticmethod
    def left_behind(folder, expected):
        names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        extra = sorted(name for name in names - set(expected) - {".stdout", ".stderr", "run.json"}
                       if not name.endswith(".lock"))
        return [f"left behind: {', '.join(extra)}"] if extra else []

    def attempt(self, case):
        """Complaints about one case and the command that shows them."""
        task = case.task
        if case.mistake:
            return self.attempt_mistake(case)
        reference = self.reference(task)
        if reference is None:
            return [], ""
        smallest, is_least = self.smallest(task, [*case.policy, *case.tiers])
        peak = reference.report["unmanaged_peak_bytes"]
        if not smallest:
            return [], ""
        budget = {"none": None, "memory": None, "smallest": smallest, "below": smallest - 1,
                  "share": max(1, int(peak * case.share))}[case.budget]
        flags = [*case.policy, *case.tiers, *(["--budget", str(budget)] if budget is not None else [])]
        feasible = budget is None or budget // UNIT * UNIT >= smallest
        if not feasible and not is_least:
            feasible = None  # the program says
        memory = None
        if case.budget == "memory" and self.knows(task.program, "memory"):
            memory = int((peak + reference.report["loader_bytes"] + PROGRAM_PART) * (0.2 + case.share))
            flags += ["--memory", str(memory)]
            feasible = None  # the program says
        expected_files = []
        if case.outputs and self.knows(task.program, case.outputs[0].removeprefix("--")):
            flags += case.outputs
            expected_files.append(case.outputs[1])
        if case.checkpoint and self.knows(task.program, "checkpoint"):
            flags += ["--checkpoint", "state.safetensors", "--checkpoint-every", "1"]
            expected_files.append("state.safetensors")
        with tempfile.TemporaryDirectory(prefix="campaign-", dir=self.options.folder) as name, Busy(case.load):
            folder = pathlib.Path(name)
            complaints, command = self.attempt_in(folder, case, flags, (budget, memory), feasible, reference, expected_files)
            if complaints and self.options.keep:
                shutil.copytree(folder, pathlib.Path(self.options.keep) / f"case-{case.number}", dirs_exist_ok=True)
        return complaints, command

    def attempt_mistake(self, case):
        with tempfile.TemporaryDirectory(prefix="campaign-") as name:
            folder = pathlib.Path(name)
            flags = [*case.policy, *case.tiers, *case.mistake]
            done = self.run(case.task, flags, folder)
            complaints = []
            if done.code != BAD_INPUT:
                complaints.append(f"a mistake ends with {done.code}, not {BAD_INPUT}: {done.errors[-200:]}")
            elif not done.errors.strip():
                complaints.append("a mistake is not explained")
            complaints += self.left_behind(folder, [])
            return complaints, self.command(case, flags)

    def attempt_in(self, folder, case, flags, given, feasible, reference, expected_files):
        task, report, (budget, memory) = case.task, reference.report, given
        limits, group, options, disk = {}, None, {}, None
        promise = (budget or report["unmanaged_peak_bytes"]) + report["loader_bytes"] + PROGRAM_PART
        if memory:
            promise = memory
        elif "--host-limit" in case.tiers:
            promise += to_bytes(case.tiers[case.tiers.index("--host-limit") + 1])
        low = PROGRAM_PART // 2 + promise // 8
        if case.limit.endswith("cgroup") and not self.groups.works:
            case.limit = "none"
        if case.limit == "promise-data":
            limits[resource.RLIMIT_DATA] = promise
        elif case.limit == "low-data":
            limits[resource.RLIMIT_DATA] = low
        elif case.limit == "low-space":
            limits[resource.RLIMIT_AS] = low
        elif case.limit == "promise-cgroup":
            group = self.groups.of(promise)
        elif case.limit == "low-cgroup":
            group = self.groups.of(low)
        elif case.limit == "file-size":
            limits[resource.RLIMIT_FSIZE] = 64 << 10
        elif case.limit == "full-output":
            options["output"] = "/dev/full"
        elif case.limit == "full-errors":
            options["errors"] = "/dev/full"
        elif case.limit == "closed-errors":
            options["errors"] = "closed"
        elif case.limit == "disk-full":
            disk = folder / "small"
            disk.mkdir()
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
                                     capture_output=True, check=False)
            if mounted.returncode != 0:
                disk = None
            else:
                flags = [*flags, "--disk-directory", str(disk)]
        if case.signal != "none":
            options["signalled"] = (getattr(signal, f"SIG{case.signal}"), 0.05 + case.moment * reference.seconds)
        try:
            if group:
                with group:
                    done = self.run(task, flags, folder, environment=case.environment, limits=limits, group=group, **options)
            else:
                done = self.run(task, flags, folder, environment=case.environment, limits=limits, **options)
        finally:
            if disk:
                subprocess.run(["umount", str(disk)], check=False)
        if done.gave_up:
            self.counts["given up"] += 1
            # A case that a busy machine made slow ends when it has more time, and no signal.
            if self.run(task, flags, folder, environment=case.environment, patience=5).gave_up:
                return [f"does not end within {5 * self.options.patience:.0f} s"], self.command(case, flags)
            return [], ""
        complaints = self.judge(case, done, given, feasible, reference)
        self.counts[f"code {done.code}"] += 1
        partial = [path for path in folder.rglob("*.partial")]
        killed = done.code in (-signal.SIGKILL, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP)
        if partial and not killed:
            complaints.append(f"left behind: {partial[0].name}")
        if not killed and not partial:
            complaints += self.left_behind(folder, expected_files)
        if case.signal != "none" and done.code != DONE and not complaints and (folder / "state.safetensors").exists():
            complaints += self.resume(case, flags, folder, feasible, reference)
        return complaints, self.command(case, flags)

    def judge(self, case, done, given, feasible, reference):
        code, (budget, memory) = done.code, given
        signals = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "KILL": signal.SIGKILL}
        allowed = {DONE, OUT_OF_MEMORY} if feasible is None else {DONE} if feasible else {OUT_OF_MEMORY}
        if case.signal == "KILL":
            allowed |= {-signal.SIGKILL}
        elif case.signal != "none":
            allowed |= {INTERRUPTED}
            if not done.output:  # it had not begun
                allowed |= {-signals[case.signal]}
        if case.limit in ("low-data", "low-space"):
            allowed |= {OUT_OF_MEMORY}
        elif case.limit == "low-cgroup":
            allowed |= {OUT_OF_MEMORY, -signal.SIGKILL}
        elif case.limit == "file-size":
            allowed |= {FAILED, BAD_INPUT, OUT_OF_MEMORY}
        elif case.limit == "full-output":
            allowed = (allowed - {DONE}) | {FAILED}
        elif case.limit == "disk-full":
            allowed |= {OUT_OF_MEMORY, BAD_INPUT}
        if code not in allowed:
            return [f"ends with {code}, not {sorted(allowed)}: {done.errors.strip()[-300:]}"]
        complaints = []
        readable = case.limit not in ("full-errors", "closed-errors")
        if code in (FAILED, BAD_INPUT, OUT_OF_MEMORY) and readable and not done.errors.strip():
            complaints.append(f"code {code} without a word")
        if code == DONE or (code == FAILED and case.limit == "full-output" and done.report.get("params_checksum")):
            complaints += self.same_bits(done, reference)
            complaints += self.within_limits(done, budget, case.tiers)
            if memory and (done.report.get("process_peak_bytes") or 0) > memory:
                complaints.append(f"--memory {memory}, but the process took {done.report['process_peak_bytes']}")
        return complaints

    def resume(self, case, flags, folder, feasible, reference):
        done = self.run(case.task, [*flags, "--resume"], folder, environment=case.environment, patience=5)
        self.counts["resumed"] += 1
        if done.gave_up:
            return ["--resume does not end"]
        if not feasible and (feasible is not None or done.code == OUT_OF_MEMORY):
            return []
        if done.code != DONE:
            return [f"--resume ends with {done.code}: {done.errors.strip()[-300:]}"]
        return [f"after --resume: {text}" for text in self.same_bits(done, reference)]

    def command(self, case, flags):
        environment = {**case.task.environment(), **case.environment}
        prefix = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        suffix = f"  # limit {case.limit}, signal {case.signal} at {case.moment:.2f}, load {case.load}"
        return f"{prefix} {case.task.program} {shlex.join([*case.task.flags, *flags])}{suffix}".strip()

    def go(self):
        end = time.monotonic() + 60 * self.options.minutes
        number = self.options.only if self.options.only is not None else 0
        while time.monotonic() < end:
            case = draw(self.options.seed, number, *self.choices())
            if self.usable(case):
                complaints, command = self.attempt(case)
                self.complain(case, complaints, command)
                self.counts["cases"] += 1
                self.counts[f"limit {case.limit}"] += 1
                self.counts[f"signal {case.signal}"] += 1
                self.counts[f"policy {case.policy[1] if case.policy and case.policy[0] == '--policy' else 'tide'}"] += 1
                if self.options.verbose:
                    print(f"{number}: {command or shlex.join(case.task.flags)}", flush=True)
            if self.options.only is not None or (self.options.cases and self.counts["cases"] >= self.options.cases):
                break
            number += 1
        return self.report()

    def report(self):
        print(f"\nseed {self.options.seed}: {self.counts['cases']} cases, {len(self.references)} tasks, "
              f"{len(self.defects)} defects")
        for name, count in sorted(self.counts.items()):
            print(f"  {name:24} {count}")
        if self.options.json:
            content = {"seed": self.options.seed, "counts": dict(self.counts), "tasks": len(self.references),
                       "defects": self.defects}
            pathlib.Path(self.options.json).write_text(json.dumps(content, indent=1) + "\n")
        return 1 if self.defects else 0


def to_bytes(text):
    for unit, size in (("GiB", 1 << 30), ("MiB", MIB), ("KiB", 1 << 10)):
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * size)
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, metavar="FOLDER", help="where train_resnet and train_bert are")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cases", type=int, help="stop after so many")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="[the time]")
    parser.add_argument("--only", type=int, metavar="N", help="this case alone")
    parser.add_argument("--patience", type=float, default=60, help="seconds after which a run is given up")
    parser.add_argument("--folder", help="where runs work [TMPDIR]")
    parser.add_argument("--keep", metavar="FOLDER", help="copy the files of cases that show a defect there")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    parser.add_argument("--verbose", action="store_true", help="a line for each case")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    sys.exit(Campaign(options).go())


if __name__ == "__main__":
    main()
