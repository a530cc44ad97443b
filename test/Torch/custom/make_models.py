#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the archives of this folder with their inputs and outputs: make_models.py (PyTorch 2.15, numpy).

They call the operators of examples/custom-op that write their arguments; test/Integration/custom_op.py compiles and runs them."""

import io
import json
import os
import sys
import warnings
import zipfile

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "examples", "custom-op"))
import torch_operators  # noqa: E402, F401  registers them

warnings.filterwarnings("ignore")
torch.set_grad_enabled(False)
ops = torch.ops.example


class Parts(torch.nn.Module):
    """Writes through views, with other names of the memory live, and of two parts of one memory at once."""

    def forward(self, x, y):
        z = y + 1
        rest = z[1:]
        r = ops.accumulate(x[1:], rest, 0.5)
        ops.bump(z.t(), 3)
        ops.bump(z[0], 2)
        a, b = z.chunk(2, dim=1)
        ops.exchange(a, b)
        return r, z * 2, rest.sum(0), a - b


class States(torch.nn.Module):
    """Writes a buffer and an input; the input is read before and after."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.arange(4.0))

    def forward(self, x, y):
        before = y * 1
        r = ops.accumulate(x, y)
        ops.bump(self.total, 2)
        return r, before, y + self.total


class Calls(torch.nn.Module):
    """As code of TorchScript calls: by position and by name, in a loop, with sizes of its own, of tensors that a list holds."""

    def forward(self, x, y):
        z = y + 1
        parts = [z[0], z[1]]
        total = torch.zeros_like(x)
        for i in range(2):
            total = total + ops.accumulate(x, total, decay=0.25)
            ops.bump(parts[i], i + 1)
        if total.size(0) > 1:
            ops.bump(z, x.size(1))
        ops.exchange(z[0], z[1])
        return total, z, parts[0]


def values(count, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 4, generator=generator) for _ in range(count)]


def forget(value):
    """Without the places in Python that nodes come from: they name the folders of whoever makes this."""
    if isinstance(value, dict):
        return {key: forget(inner) for key, inner in value.items() if key not in ("stack_trace", "nn_module_stack", "from_node")}
    return [forget(inner) for inner in value] if isinstance(value, list) else value


def shrink(data, name):
    """Without what differs from run to run, and debug information."""
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(os.path.join(HERE, name), "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            path = info.filename[info.filename.index("/"):]
            if path.endswith(".debug_pkl") or path.endswith("serialization_id"):
                continue
            raw = old.read(info)
            if path.endswith("models/model.json"):
                raw = json.dumps(forget(json.loads(raw))).encode()
            kind = zipfile.ZIP_STORED if "/data/" in path or "/constants/" in path else zipfile.ZIP_DEFLATED
            new.writestr(zipfile.ZipInfo(name.split(".")[0] + path), raw, compress_type=kind)


def expect(name, model, names, sizes):
    """Values of PyTorch for inputs of several sizes; of inputs that the model writes the new ones, too."""
    for rows in sizes:
        inputs = values(2, rows, rows)
        given = [x.clone() for x in inputs]
        outputs = model(*given)
        arrays = {n: v.numpy() for n, v in zip(names, outputs)}
        for key, before, after in zip(("x", "y"), inputs, given):
            if not torch.equal(before, after):
                arrays[key + ".updated"] = after.numpy()
        np.savez(os.path.join(HERE, f"{name}.{rows}.in.npz"), x=inputs[0].numpy(), y=inputs[1].numpy())
        np.savez(os.path.join(HERE, f"{name}.{rows}.out.npz"), **arrays)


def save(name, make, sizes=(3, 5)):
    outputs = [f"output_{i}" for i in range(4)]
    expect(name, make().eval(), outputs, sizes)
    rows = torch.export.Dim("rows", min=3, max=64)
    arguments = tuple(values(2, 3, 0))
    program = torch.export.export(make().eval(), arguments, dynamic_shapes=({0: rows}, {0: rows}))
    # Decompositions write views by strides, which must be constant.
    decomposed = torch.export.export(make().eval(), arguments).run_decompositions()
    for form, saved in ((name, program), (name + "-functional", decomposed)):
        buffer = io.BytesIO()
        torch.export.save(saved, buffer)
        shrink(buffer.getvalue(), form + ".pt2")


def script(name, module, sizes):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    shrink(buffer.getvalue(), name + ".pt")
    expect(name, Calls(), [f"output_{i}" for i in range(3)], sizes)


if __name__ == "__main__":
    save("parts", Parts)
    save("states", States, sizes=(3,))
    script("traced", torch.jit.trace(Calls().eval(), tuple(values(2, 3, 0))), (3,))
    script("scripted", torch.jit.script(Calls().eval()), (3, 5))
