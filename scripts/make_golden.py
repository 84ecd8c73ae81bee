#!/usr/bin/env python3
"""Makes the files in tests/golden: one SGD step of ResNets, computed by PyTorch.

    pip install torch torchvision numpy
    scripts/make_golden.py [--out tests/golden]

Weights and images are not stored: they are drawn from Philox by the rule in
models/nn/parameter_init.h, here in NumPy. Of each tensor after the step a few values are
stored, computed in float64, with the relative error that PyTorch itself makes in float32: that
error is the yardstick for what tests/models/resnet_golden_test.cc allows.
"""
import argparse
import json
import math
import pathlib

import numpy as np
import torch
import torchvision

PARAMETER_STREAM = 0x50415241
IMAGES_INDEX = 1_000_000  # of the "parameter" that the images are
SAMPLES = 16
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 5e-4

CASES = [
    dict(name="resnet18_cifar", model="resnet18", cifar_stem=True, image=16, batch=4, channels=1,
         classes=10, seed=7, residual_gamma=1.0),
    # With every gamma 1, a deep network at random weights is so ill-conditioned that PyTorch's own
    # float32 gradients are 2 % off its float64 ones; a smaller last gamma makes it a sharp test.
    dict(name="resnet50_imagenet", model="resnet50", cifar_stem=False, image=64, batch=8,
         channels=3, classes=1000, seed=8, residual_gamma=0.2),
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
    """From Tidemark's order to PyTorch's: (K, R, S, C) to (K, C, R, S)."""
    if len(shape) == 4:
        k, c, r, s = shape
        values = values.reshape(k, r, s, c).transpose(0, 3, 1, 2)
    return torch.from_numpy(np.ascontiguousarray(values.reshape(shape)))


def to_tidemark(tensor):
    tensor = tensor.detach().to(torch.float64, copy=True)
    if tensor.dim() == 4:
        tensor = tensor.permute(0, 2, 3, 1)
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


def run(case, dtype):
    """Losses before and after the step, and every tensor in Tidemark's order."""
    model = make_model(case).to(dtype)
    n, size, c = case["batch"], case["image"], case["channels"]
    images = draw_normal(case["seed"], IMAGES_INDEX, n * size * size * c, 1.0)
    images = torch.from_numpy(
        images.reshape(n, size, size, c).transpose(0, 3, 1, 2).copy()).to(dtype)
    labels = torch.tensor([(7 * i + 3) % case["classes"] for i in range(n)])
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM,
                                weight_decay=WEIGHT_DECAY)
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    tensors = {"gradient/" + k: to_tidemark(p.grad) for k, p in model.named_parameters()}
    optimizer.step()
    tensors |= {"parameter/" + k: to_tidemark(p) for k, p in model.named_parameters()}
    tensors |= {"buffer/" + k: to_tidemark(b) for k, b in model.named_buffers()
                if not k.endswith("num_batches_tracked")}
    with torch.no_grad():
        after = torch.nn.functional.cross_entropy(model(images), labels)
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
                  loss_after_error=max(abs(s[1] - after) for s in singles), tensors={})
    for name, values in exact.items():
        golden["tensors"][name] = dict(
            count=len(values), norm=rounded(np.linalg.norm(values)),
            error=rounded(max(relative_error(s[2][name], values) for s in singles)),
            values=[rounded(values[i]) for i in positions(len(values))])
    return golden


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parent.parent / "tests" / "golden")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for case in CASES:
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
