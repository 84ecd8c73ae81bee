#!/usr/bin/env python3
"""Makes the GGUF files in tests/golden and tests/fuzz/corpus/gguf with the Python package gguf.

    pip install gguf numpy safetensors torch transformers
    scripts/make_gguf_golden.py [--smollm2 SmolLM2-135M-Instruct.Q4_1.gguf]

gguf_types.gguf has a tensor of each type that is read, of random bits; gguf_types.safetensors has
the same tensors as gguf's dequantize() gives them. gguf_llama.gguf and gguf_qwen2.gguf are small
networks whose weights follow a rule (weight() here, expected() in gguf_llama_test.cc). That
transformers reads them to the same weights is checked. With --smollm2, prints what the test of that
file compares with: the CRC-32 of all weights as transformers reads them, by name.
"""
import argparse
import pathlib
import zlib

import gguf
import numpy as np
import safetensors.numpy
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPES = gguf.GGMLQuantizationType
# The type, the shape, and the places of the halves in a block.
CASES = [
    (TYPES.F32, (3, 5), []),
    (TYPES.F16, (5, 3, 7), []),
    (TYPES.BF16, (2, 1, 3, 11), []),
    (TYPES.Q8_0, (3, 96), [0]),
    (TYPES.Q4_0, (5, 64), [0]),
    (TYPES.Q4_1, (1, 3, 96), [0, 2]),
    (TYPES.Q4_K, (3, 512), [0, 2]),
    (TYPES.Q6_K, (2, 3, 256), [208]),
    (TYPES.Q5_0, (3, 64), [0]),
    (TYPES.Q5_1, (2, 96), [0, 2]),
    (TYPES.Q2_K, (2, 256), [80, 82]),
    (TYPES.Q3_K, (2, 256), [108]),
    (TYPES.Q5_K, (2, 256), [0, 2]),
]


def finite_halves(random, count):
    """Bits of halves: both signs, zeros, subnormals, no infinities."""
    halves = random.integers(0, 31 << 10, count, dtype=np.uint16)
    halves[::7] &= 0x3FF  # subnormal
    return halves | random.integers(0, 2, count, dtype=np.uint16) << 15


def random_tensor(random, kind, shape, halves):
    """Bytes with the shape that gguf's writer wants."""
    if kind == TYPES.F32:
        return random.standard_normal(shape).astype(np.float32)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows = random.integers(0, 256, shape[:-1] + (shape[-1] // elements * size,), dtype=np.uint8)
    if elements == 1:
        bits = rows.reshape(-1).view(np.uint16)
        bits[:] = finite_halves(random, bits.size)
        infinity, quiet = (0x7C00, 0x7E00) if kind == TYPES.F16 else (0x7F80, 0x7FC0)
        bits[:5] = [0x8000, infinity, infinity | 0x8000, quiet, quiet | 0x8001]
        return rows
    blocks = rows.reshape(-1, size)
    for at in halves:
        blocks[:, at:at + 2] = finite_halves(random, len(blocks)).view(np.uint8).reshape(-1, 2)
    return rows


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_types(golden):
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(golden / "gguf_types.gguf", "none")
    add_values(writer)
    expected = {}
    for kind, shape, halves in CASES:
        data = random_tensor(random, kind, shape, halves)
        raw = data if kind == TYPES.F32 else data.view(np.uint8)
        writer.add_tensor(kind.name, raw, raw_dtype=kind)
        expected[kind.name] = gguf.dequantize(raw, kind).reshape(shape)
    writer.add_tensor("Q8_K", random_tensor(random, TYPES.Q8_K, (2, 256), []), raw_dtype=TYPES.Q8_K)
    write(writer)
    safetensors.numpy.save_file(expected, golden / "gguf_types.safetensors")


def add_values(writer):
    """One of each type."""
    writer.add_uint8("u8", 200)
    writer.add_int8("i8", -100)
    writer.add_uint16("u16", 60000)
    writer.add_int16("i16", -30000)
    writer.add_uint32("u32", 4000000000)
    writer.add_int32("i32", -2000000000)
    writer.add_float32("f32", 1e-5)
    writer.add_bool("bool", True)
    writer.add_string("text", "ebb & flow \N{WATER WAVE}")
    writer.add_uint64("u64", 2**64 - 1)
    writer.add_int64("i64", -(2**63))
    writer.add_float64("f64", 0.1)
    writer.add_array("texts", ["a", "", "high tide"])
    writer.add_array("numbers", [3, -4, 5])
    writer.add_array("nested", [[1, 2], [3]])


def weight(index, shape):
    """Whole numbers that every type stores exactly: Q8_0's scale of a row of 32 is 1."""
    row, column = np.indices((shape[0], int(np.prod(shape[1:]))))
    values = (index * 13 + row * 7 + column * 3) % 127
    values[column == 0] = 127
    return values.reshape(shape).astype(np.float32)


def paired(rows, heads):
    """The order of "llama": a head's rotary pairs side by side."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(rows.shape)


NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    body, end = name.rsplit(".", 1)
    if body.startswith("model.layers."):
        _, _, layer, body = body.split(".", 3)
        return f"blk.{layer}.{NAMES[body]}.{end}"
    return f"{NAMES[body]}.{end}"


def write_network(path, kind, layers, tied, factors=None):
    config = transformers.AutoConfig.for_model(
        kind, hidden_size=32, intermediate_size=24, num_hidden_layers=layers, vocab_size=12,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        tie_word_embeddings=tied)
    model = transformers.AutoModelForCausalLM.from_config(config)
    weights = {name: weight(i, tuple(value.shape))
               for i, (name, value) in enumerate(sorted(model.state_dict().items()))
               if not (tied and name == "lm_head.weight")}
    writer = gguf.GGUFWriter(path, kind)
    writer.add_block_count(layers)
    writer.add_vocab_size(12)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(24)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors)
    else:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(2.5)
    for i, (name, value) in enumerate(weights.items()):
        if kind == "llama" and "_proj" in name and name.split(".")[-2] in ("q_proj", "k_proj"):
            value = paired(value, 4 if "q_proj" in name else 2)
        to = TYPES.F32 if value.ndim == 1 else [TYPES.Q8_0, TYPES.F16, TYPES.BF16][i % 3]
        if value.shape[-1] % 32 != 0 and to == TYPES.Q8_0:
            to = TYPES.F16
        writer.add_tensor(gguf_name(name), gguf.quantize(value, to), raw_dtype=to)
    write(writer)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32).state_dict()
    for name, value in weights.items():
        assert np.array_equal(loaded[name].numpy(), value), name


def llama3_factors():
    """As transformers computes them for "llama3", of heads of 8 at a base of 500000."""
    config = transformers.LlamaConfig(
        hidden_size=32, num_attention_heads=4, max_position_embeddings=64,
        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0,
                             low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=8192))
    scaled, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 1.0 / 500000.0 ** (np.arange(0, 8, 2) / 8)
    return (plain / scaled.numpy()).astype(np.float32)


def write_corpus(folder):
    """Small enough for many runs a second."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(2)
    writer = gguf.GGUFWriter(folder / "types", "none")
    add_values(writer)
    for kind, _, halves in CASES:
        elements = gguf.GGML_QUANT_SIZES[kind][0]
        shape = (elements * 4,) if elements == 1 else (elements,)
        if kind != TYPES.F32 and elements == 1:
            shape = (8,)
        writer.add_tensor(kind.name, random_tensor(random, kind, shape, halves), raw_dtype=kind)
    write(writer)
    writer = gguf.GGUFWriter(folder / "llama", "llama")
    writer.add_custom_alignment(8)
    for name in ("block_count", "head_count", "context_length"):
        getattr(writer, "add_" + name)(1)
    writer.add_embedding_length(4)
    writer.add_feed_forward_length(2)
    writer.add_layer_norm_rms_eps(1e-5)
    for name, shape in {"token_embd": (3, 4), "blk.0.attn_q": (4, 4), "output_norm": (4,),
                        "rope_freqs": (2,)}.items():
        writer.add_tensor(name + ".weight", np.ones(shape, np.float32))
    write(writer)


def print_smollm2(path):
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32).state_dict()
    names = sorted(name for name in loaded if name != "lm_head.weight")  # tied
    crc = 0
    for name in names:
        crc = zlib.crc32(loaded[name].numpy().tobytes(), crc)
    print(f"{len(names)} tensors, crc32 {crc:08x}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smollm2", type=pathlib.Path)
    args = parser.parse_args()
    if args.smollm2:
        print_smollm2(args.smollm2)
        return
    golden = ROOT / "tests/golden"
    write_types(golden)
    write_network(golden / "gguf_llama.gguf", "llama", 2, False, llama3_factors())
    write_network(golden / "gguf_qwen2.gguf", "qwen2", 1, True)
    write_corpus(ROOT / "tests/fuzz/corpus/gguf")


if __name__ == "__main__":
    main()
