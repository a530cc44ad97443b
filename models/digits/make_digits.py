#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Train the digit classifier of this folder and export it to all formats; seeded, a minute on one core.

usage: make_digits.py [FOLDER]      needs requirements-bench.txt; FOLDER is this one by default

The data are scikit-learn's 1797 handwritten digits, 8x8 pixels in 0..16; a fixed shuffle gives 1437 for training and
360 held out, which training never sees. Inputs are pixels / 16. The batch size of all exports is dynamic.
"""
import os
import sys
import zipfile

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2))
        self.classify = nn.Sequential(nn.Flatten(), nn.Linear(64 * 2 * 2, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))

    def forward(self, images):
        return self.classify(self.features(images))


def augment(images):
    """Shift each image by up to one pixel in each direction, as new handwriting might be."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    out = torch.empty_like(images)
    for i, (dy, dx) in enumerate(torch.randint(0, 3, (len(images), 2)).tolist()):
        out[i] = padded[i, :, dy:dy + 8, dx:dx + 8]
    return out


def train(images, labels, epochs=60, batch=64):
    model = DigitNet()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
    steps = epochs * (len(images) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for k in range(0, len(order) - batch + 1, batch):
            pick = order[k:k + batch]
            loss = nn.functional.cross_entropy(model(augment(images[pick])), labels[pick], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def main(folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = torch.from_numpy((digits.images[order] / 16).astype(np.float32))[:, None]
    labels = torch.from_numpy(digits.target[order].astype(np.int64))
    held_out, held_out_labels = images[1437:], labels[1437:]
    model = train(images[:1437], labels[:1437])

    path = lambda name: os.path.join(folder, name)
    batch = {0: torch.export.Dim("batch", min=1, max=4096)}
    example = held_out[:2].clone()  # a copy: archives store the whole buffer behind a view
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(model, example), path("model.pt"))
        exported = torch.export.export(model, (example,), dynamic_shapes=({**batch},))
        for node in exported.graph.nodes:
            node.meta.pop("stack_trace", None)
        torch.export.save(exported, path("model.pt2"))
        torch.onnx.export(model, (example,), path("model.onnx"), input_names=["images"], output_names=["logits"], dynamo=True,
                          external_data=False, dynamic_shapes=({**batch},), opset_version=20, verbose=False)
        logits = model.double()(held_out.double())
    strip_onnx(path("model.onnx"))
    strip_torchscript(path("model.pt"))
    np.savez_compressed(path("inputs.npz"), images=held_out.numpy())
    np.savez_compressed(path("outputs.npz"), logits=logits.float().numpy())
    np.savez_compressed(path("labels.npz"), labels=held_out_labels.numpy().astype(np.uint8))
    right = int((logits.argmax(1) == held_out_labels).sum())
    print(f"held out: {right} of {len(held_out)} right, {right / len(held_out):.2%}; "
          f"{sum(p.numel() for p in model.parameters())} parameters")


def strip_onnx(path):
    """Drop the exporter's stack traces, which name files of the machine that ran it."""
    import onnx
    model = onnx.load(path)
    for item in [*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph]:
        del item.metadata_props[:]
    onnx.save(model, path)


def strip_torchscript(path):
    """Drop the debug records of a TorchScript archive, which hold stack traces too. Data stay aligned to 64 bytes."""
    with zipfile.ZipFile(path) as old:
        entries = [(i.filename, old.read(i)) for i in old.infolist() if not i.filename.endswith(".debug_pkl")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            start = new.fp.tell() + 30 + len(name) + 4  # local header, name, header of the padding field
            padding = -start % 64
            info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
            new.writestr(info, data)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
