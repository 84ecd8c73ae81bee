#!/usr/bin/env python3
"""One training run of Hugging Face's BERT on masked words, or of its GPT-2 on next words: the peer
that train_bert is measured against. Random tokens; BERT is asked for 15 % of them, and only their
rows enter the product with the vocabulary, as in train_bert.

Prints JSON: step times in ms, the losses, and memory: of the process before the model and at its
highest and, on a GPU, the most that PyTorch's allocator had given out and reserved.
Needs: pip install torch transformers
"""

import argparse
import time

from figures import memory_bytes, print_result

MODES = {
    "plain": "as it comes, with PyTorch's fused attention",
    "checkpoint": "each layer is computed again in backward",
}
SIZES = {  # layers, width, heads
    "bert-tiny": (2, 128, 2),
    "bert-base": (12, 768, 12),
    "bert-large": (24, 1024, 16),
    "gpt2": (12, 768, 12),
}


def make_gpt2(args):
    from transformers import GPT2Config, GPT2LMHeadModel

    layers, width, heads = SIZES[args.model]
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=args.vocab_size, n_embd=width, n_layer=layers, n_head=heads, attn_implementation="sdpa",
        resid_pdrop=args.dropout, embd_pdrop=args.dropout, attn_pdrop=args.dropout, use_cache=False))


def make_bert(args):
    from transformers import BertConfig, BertForMaskedLM

    layers, width, heads = SIZES[args.model]
    config = BertConfig(vocab_size=args.vocab_size, hidden_size=width, num_hidden_layers=layers,
                        num_attention_heads=heads, intermediate_size=4 * width,
                        max_position_embeddings=max(512, args.seq_length), attn_implementation="sdpa",
                        hidden_dropout_prob=args.dropout, attention_probs_dropout_prob=args.dropout)
    return BertForMaskedLM(config)


def make_model(args, torch):
    torch.manual_seed(0)
    model = (make_gpt2(args) if args.model == "gpt2" else make_bert(args)).to(args.device)
    if args.mode == "checkpoint":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    return model


def train(args, torch):
    model = make_model(args, torch)
    fused = args.device != "cpu"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=fused)
    tokens = torch.randint(0, args.vocab_size, (args.batch, args.seq_length), device=args.device)
    asked = max(1, round(0.15 * (args.seq_length - 2)))
    rows = torch.arange(args.batch, device=args.device)[:, None] * args.seq_length
    places = (rows + torch.arange(asked, device=args.device)[None, :]).reshape(-1)
    labels = tokens.reshape(-1)[places]
    bfloat16 = torch.autocast(args.device, torch.bfloat16, enabled=args.dtype == "bf16")

    times, losses = [], []
    for _ in range(args.steps):
        if args.device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with bfloat16:
            if args.model == "gpt2":
                logits = model(tokens[:, :-1]).logits.reshape(-1, args.vocab_size)
                loss = torch.nn.functional.cross_entropy(logits.float(), tokens[:, 1:].reshape(-1))
            else:
                hidden = model.bert(tokens).last_hidden_state.reshape(args.batch * args.seq_length, -1)
                loss = torch.nn.functional.cross_entropy(model.cls(hidden[places]).float(), labels)
        loss.backward()
        if args.clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        losses.append(loss.item())  # train_bert reads each loss too
        if args.device != "cpu":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return times, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda")
    parser.add_argument("--model", choices=SIZES, default="bert-base")
    parser.add_argument("--vocab-size", type=int, help="[30522, gpt2 50257]")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seq-length", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1, help="maximum norm of all gradients together; 0: no clipping")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=["float32", "bf16"], default="float32",
                        help="bf16: autocast; parameters and optimizer state stay float32")
    parser.add_argument("--mode", choices=MODES, default="plain",
                        help="\n".join(f"{name}: {what}" for name, what in MODES.items()))
    parser.add_argument("--no-tf32", action="store_true", help="products of float32 in float32 [TF32]")
    args = parser.parse_args()
    if args.vocab_size is None:
        args.vocab_size = 50257 if args.model == "gpt2" else 30522

    import torch
    import transformers

    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = not args.no_tf32
    torch.backends.cudnn.allow_tf32 = not args.no_tf32
    result = {
        "peer": f"pytorch {torch.__version__}, transformers {transformers.__version__}", "device": args.device,
        "model": args.model, "batch": args.batch, "seq_length": args.seq_length, "dtype": args.dtype,
        "dropout": args.dropout, "mode": args.mode, "tf32": not args.no_tf32, "threads": args.threads,
    }
    if args.device != "cpu":
        result["gpu"] = torch.cuda.get_device_name()
        torch.cuda.reset_peak_memory_stats()
    before = memory_bytes("VmRSS")
    times, losses = train(args, torch)
    print_result(result, times, losses, before, torch.cuda if args.device != "cpu" else None)


if __name__ == "__main__":
    main()
