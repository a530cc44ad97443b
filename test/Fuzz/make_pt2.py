#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make the small programs of test/Fuzz/pt2, with torch (requirements-bench.txt).

usage: make_pt2.py DIR
"""
import json
import os
import struct
import sys
import zipfile

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(4, 6), nn.Linear(6, 3, bias=False), nn.LayerNorm(6)

    def forward(self, x):
        return torch.softmax(self.b(F.gelu(self.norm(self.a(x)), approximate="tanh")) * 2 + 1, -1)


class Attention(nn.Module):
    def forward(self, q, k, v):
        q, k, v = (t.reshape(2, 3, 2, 4).transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(0, 2, 1, 3).reshape(2, 3, 8)


class Moves(nn.Module):
    def forward(self, x, y):
        a, b = torch.cat([x, y], 1).unbind(0)
        return a.unsqueeze(0).sum(-1), b.t(), x.amax((0, 1)), F.silu(x.select(0, 1)), torch.log_softmax(y, -1).mean(1), torch.matmul(x, y.transpose(1, 2))


def forget(value):
    """Without the places in this script that the nodes come from."""
    if isinstance(value, dict):
        return {key: "" if key == "stack_trace" else forget(inner) for key, inner in value.items()}
    return [forget(inner) for inner in value] if isinstance(value, list) else value


def strip(path):
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist() if "sample_inputs" not in name]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            if name.endswith("models/model.json"):
                data = json.dumps(forget(json.loads(data))).encode()
            info = zipfile.ZipInfo(name)
            pad = -(archive.fp.tell() + 30 + len(name) + 4) % 64  # data at multiples of 64, as torch has it
            info.extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
            archive.writestr(info, data)


def main():
    batch = torch.export.Dim("batch", min=2, max=64)
    models = {
        "mlp": (Mlp(), (torch.randn(3, 4),), ({0: batch},)),
        "attention": (Attention(), (torch.randn(2, 3, 8),) * 3, None),
        "moves": (Moves(), (torch.randn(2, 3, 4), torch.randn(2, 1, 4)), None),
    }
    os.makedirs(sys.argv[1], exist_ok=True)
    torch.manual_seed(0)
    for name, (model, inputs, dims) in models.items():
        path = os.path.join(sys.argv[1], name + ".pt2")
        torch.export.save(torch.export.export(model.eval(), inputs, dynamic_shapes=dims), path)
        strip(path)


if __name__ == "__main__":
    main()
