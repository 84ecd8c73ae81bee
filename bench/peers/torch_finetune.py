#!/usr/bin/env python3
"""Fine-tunes a Llama in a GGUF file with PyTorch, transformers and PEFT: the peer of `finetune`.

Takes the same flags, for one batch of all examples, and prints a JSON object: losses, milliseconds
of each step, answers, and what was resident before the model was made and at most.
"""
import argparse
import json
import pathlib
import resource
import time

import torch
import transformers

IGNORED = -100


def tokens_of(tokenizer, messages, length):
    """Ids, and labels where the assistant speaks, with the end of its turn."""
    encode = tokenizer.apply_chat_template
    ids = encode(messages, return_dict=False)
    labels = [IGNORED] * len(ids)
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        begin = len(encode(messages[:i], add_generation_prompt=True, return_dict=False))
        end = ids.index(tokenizer.eos_token_id, begin) + 1
        labels[begin:end] = ids[begin:end]
    return ids[:length], labels[:length]


def batch_of(tokenizer, path, length):
    rows = [tokens_of(tokenizer, json.loads(line)["messages"], length)
            for line in pathlib.Path(path).read_text().splitlines()]
    longest = max(len(ids) for ids, _ in rows)
    pad = lambda values, by: values + [by] * (longest - len(values))
    return (torch.tensor([pad(ids, 0) for ids, _ in rows]),
            torch.tensor([pad(labels, IGNORED) for _, labels in rows]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--data")
    parser.add_argument("--random", metavar="ROWSxLENGTH", help="random tokens instead of --data")
    parser.add_argument("--make-adapter", metavar="FOLDER", help="write a new adapter, and no more")
    parser.add_argument("--seq-length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--adapter")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--generate", action="append", default=[])
    parser.add_argument("--max-tokens", type=int, default=32)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)

    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    where = dict(pretrained_model_name_or_path=options.model.parent, gguf_file=options.model.name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    if options.adapter or options.make_adapter:
        import peft  # pylint: disable=import-outside-toplevel
    libraries = peak()
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    if options.make_adapter:
        config = peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear",
                                 task_type="CAUSAL_LM")
        peft.get_peft_model(model, config).save_pretrained(options.make_adapter)
        print("{}")
        return
    if options.adapter:
        model = peft.PeftModel.from_pretrained(model, options.adapter, is_trainable=True)
    if options.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    # As transformers' Trainer: norms' weights and biases do not decay.
    groups = [{"params": [p for p in trained if p.dim() > 1], "weight_decay": options.weight_decay},
              {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=options.lr)
    if options.random:
        ids = torch.randint(0, 1000, tuple(map(int, options.random.split("x"))))
        labels = ids
    else:
        ids, labels = batch_of(tokenizer, options.data, options.seq_length)
    losses, times = [], []
    for _ in range(options.steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.dtype == "bf16"):
            loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        times.append(1000 * (time.perf_counter() - begin))
    answers = []
    model.eval()
    for prompt in options.generate:
        start = tokenizer.apply_chat_template([{"role": "user", "content": prompt}],
                                              add_generation_prompt=True, return_dict=False,
                                              return_tensors="pt")
        made = model.generate(start, max_new_tokens=options.max_tokens, do_sample=False,
                              attention_mask=torch.ones_like(start), pad_token_id=0)
        answers.append(tokenizer.decode(made[0, start.shape[1]:], skip_special_tokens=True))
    print(json.dumps({"losses": losses, "step_ms": times, "answers": answers,
                      "tokens": ids.numel(), "libraries_bytes": libraries,
                      "resident_peak_bytes": peak(), "torch": torch.__version__,
                      "transformers": transformers.__version__}))


if __name__ == "__main__":
    main()
