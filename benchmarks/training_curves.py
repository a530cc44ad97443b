#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loss curves of training artifacts, run by the C program, beside eager PyTorch's in float32 and in float64.

usage: training_curves.py [--models RE] [--optimizers RE] [--steps 100] [--seeds 1]

digits: a small convolutional network on the handwritten digits of models/digits. transformer: a causal language model of 10.5 million parameters on the
bytes of this repository's documents, batches of 8 texts of 64 bytes. Batches are drawn once. For each: the largest difference of a step's loss from eager's in
float32, tc's and eager's from float64's, and the first and last loss. Needs PyTorch and tc_compiler (PYTHONPATH=build/python TC_BIN=build/bin).
"""
import argparse
import copy
import glob
import os
import re
import subprocess
import tempfile

import numpy as np
import tc_compiler as tc
import torch
from torch import nn

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, 1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, 3e-4),
}


class Transformer(nn.Module):
    def __init__(self, words=256, width=384, heads=6, layers=6, length=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], dtype=self.places.weight.dtype)
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.layers(x, mask=mask, is_causal=True)))


def next_word(logits, tokens):
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def make_transformer(steps):
    text = b"".join(open(path, "rb").read() for path in sorted(glob.glob(os.path.join(ROOT, "**", "*.md"), recursive=True)))
    starts = torch.randint(0, len(text) - 64, (steps, 8)).tolist()
    batches = [torch.tensor([list(text[at : at + 64]) for at in row]) for row in starts]
    return Transformer(), next_word, [(tokens, tokens) for tokens in batches]


def make_digits(steps):
    folder = os.path.join(ROOT, "models", "digits")
    (images,), (labels,) = (list(np.load(os.path.join(folder, name)).values()) for name in ("inputs.npz", "labels.npz"))
    module = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1, bias=False),
                           nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))  # fmt: skip
    picks = [torch.randint(0, len(images), (32,)) for _ in range(steps)]
    images, labels = torch.from_numpy(images).float().reshape(-1, 1, 8, 8), torch.from_numpy(labels).long().flatten()
    return module, nn.functional.cross_entropy, [(images[pick], labels[pick]) for pick in picks]


MODELS = {"digits": make_digits, "transformer": make_transformer}


def train_eager(module, loss, optimizer, batches, dtype):
    module = copy.deepcopy(module).to(dtype).train()
    optimizer, losses = optimizer(module.parameters()), []
    for inputs, targets in batches:
        optimizer.zero_grad()
        value = loss(module(inputs.to(dtype) if inputs.is_floating_point() else inputs), targets)
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return np.array(losses)


def train_in_c(module, loss, optimizer, batches):
    module = copy.deepcopy(module).train()
    with tempfile.TemporaryDirectory() as folder:
        artifact, data = (os.path.join(folder, name) for name in ("training.bin", "data.raw"))
        tc.compile_training(module, loss, optimizer(module.parameters()), batches[0], output=artifact)
        with open(data, "wb") as file:
            for batch in batches:
                for tensor in batch:
                    file.write(tensor.contiguous().numpy().tobytes())
        program = os.path.join(os.environ["TC_BIN"], "tc-sample-train")
        text = subprocess.run([program, artifact, data], check=True, capture_output=True, text=True).stdout
    return np.array([float(line.split()[-1]) for line in text.splitlines()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="")
    parser.add_argument("--optimizers", default="")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    for seed in range(options.seeds):
        for name in filter(re.compile(options.models).search, MODELS):
            for kind in filter(re.compile(options.optimizers).search, OPTIMIZERS):
                torch.manual_seed(seed)
                module, loss, batches = MODELS[name](options.steps)
                given = module, loss, OPTIMIZERS[kind], batches
                eager, exact, mine = train_eager(*given, torch.float32), train_eager(*given, torch.float64), train_in_c(*given)
                largest = lambda a, b: f"{np.abs(a - b).max():.1e}"
                print(f"{name} {kind} seed {seed}: {len(mine)} steps, {sum(p.numel() for p in module.parameters())} parameters, loss {mine[0]:.4f} to {mine[-1]:.4f}; tc - eager {largest(mine, eager)}, "
                      f"tc - float64 {largest(mine, exact)}, eager - float64 {largest(eager, exact)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
