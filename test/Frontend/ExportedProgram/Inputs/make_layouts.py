#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make the archives of this folder: one program in each layout that PyTorch has had, with inputs.npz and outputs.npz.

usage: make_layouts.py DIR      (with PyTorch 2.15, which still has the parts that the older layouts consist of)

pt2.15.pt2: as it is. pt2.8.pt2, pt2.7.pt2, pt2.5.pt2, pt2.4.pt2: as these versions wrote it. two.pt2: two programs in one archive.
subclass.pt2: a parameter that is pickled, as it is of a subclass of Tensor. fake.pt2: parameters without numbers.
shared.pt2: buffers that share part of their memory, of which one is written.
"""
import io
import json
import os
import sys
import zipfile

import numpy as np
import torch
from torch._export.serde.serialize import serialize
from torch.export.pt2_archive._package import PT2ArchiveWriter


class Shared(torch.nn.Module):
    def __init__(self):
        super().__init__()
        memory = torch.arange(6.0)
        self.register_buffer("head", memory[:4])
        self.register_buffer("tail", memory[2:])

    def forward(self, x):
        self.head.add_(1.0)
        return x + self.tail.sum()


class Net(torch.nn.Module):
    """Parameters and buffers that are views: strided, with offsets, of one storage, repeated, of other element types."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 4).t())
        base = torch.arange(16.0)
        self.register_buffer("front", base[2:6])
        self.register_buffer("back", base[8:16:2])
        self.register_buffer("repeated", torch.tensor([[0.5], [2.0]]).expand(2, 4))
        self.register_buffer("small", torch.tensor([1.0, -2.0, 0.25, 3.0], dtype=torch.float16), persistent=False)
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.register_buffer("large", torch.randn(4, 3, dtype=torch.float64).t()[1])

    def forward(self, x):
        y = torch.nn.functional.linear(x, self.weight) + self.front * self.back + self.repeated
        return y, self.small * 2, torch.cat([self.mask, self.mask]), self.large * 2


class Other(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randn(4))

    def forward(self, x):
        return x * self.weight


class Wrapped(torch.Tensor):
    pass


def forget(value):
    """Without the places in this script that the nodes come from."""
    if isinstance(value, dict):
        return {key: forget(inner) for key, inner in value.items() if key not in ("stack_trace", "nn_module_stack", "from_node")}
    return [forget(inner) for inner in value] if isinstance(value, list) else value


def older(program, schema):
    program = forget(json.loads(program))
    program["schema_version"] = {"major": schema[0], "minor": schema[1]}

    def walk(value):
        if isinstance(value, dict):
            if "metadata" in value and "target" in value:
                value.pop("name", None)
                value.pop("is_hop_single_tensor_return", None)
                for argument in value["inputs"] if schema < (8, 7) else ():
                    argument.pop("kind", None)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(program)
    program.pop("guards_code", None)
    return json.dumps(program).encode()


class Adds(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("total", torch.ones(size))

    def forward(self, x):
        self.total.add_(x)
        return x * 1


class Reads(Adds):
    def forward(self, x):
        return self.total * x


def strip(path):
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist() if "sample_inputs" not in name]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            if "/models/" in name:
                data = json.dumps(forget(json.loads(data))).encode()
            archive.writestr(zipfile.ZipInfo(name), data)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    x = torch.randn(2, 8)
    net = Net().eval()
    program = torch.export.export(net, (x,))
    np.savez_compressed(f"{folder}/inputs.npz", x=x.numpy())
    np.savez_compressed(f"{folder}/outputs.npz", **{f"output_{i}": y.detach().numpy() for i, y in enumerate(net(x))})
    torch.export.save(program, f"{folder}/pt2.15.pt2")
    parts = serialize(program)
    for name, schema in (("pt2.4", (5, 3)), ("pt2.5", (7, 3)), ("pt2.7", (8, 7))):
        with zipfile.ZipFile(f"{folder}/{name}.pt2", "w") as archive:
            members = {"serialized_exported_program.json": older(parts.exported_program, schema), "serialized_state_dict.pt": parts.state_dict,
                       "serialized_constants.pt": parts.constants, "version": ".".join(map(str, schema)).encode()}  # fmt: skip
            for member, data in members.items():
                archive.writestr(zipfile.ZipInfo(member), data)
    with PT2ArchiveWriter(f"{folder}/pt2.8.pt2") as writer:
        writer.write_bytes("models/model.json", older(parts.exported_program, (8, 8)))
        writer.write_bytes("data/weights/model.pt", parts.state_dict)
        writer.write_bytes("data/constants/model.pt", parts.constants)
    other = torch.export.export(Other().eval(), (torch.randn(2, 4),))
    torch.export.pt2_archive._package.package_pt2(f"{folder}/two.pt2", exported_programs={"net": program, "other": other})
    other.state_dict["weight"] = torch.randn(4).as_subclass(Wrapped)
    torch.export.save(other, f"{folder}/subclass.pt2")
    with torch._subclasses.FakeTensorMode() as mode:
        other.state_dict["weight"] = mode.from_tensor(torch.randn(4))
    torch.export.save(other, f"{folder}/fake.pt2")
    torch.export.save(torch.export.export(Shared(), (torch.ones(3),)), f"{folder}/shared.pt2")
    add, read = (torch.export.export(kind(3), (torch.ones(3),)) for kind in (Adds, Reads))
    for name, programs in (("common_states", {"add": add, "read": read}), ("unequal_states", {"add": add, "read": torch.export.export(Reads(4), (torch.ones(4),))})):
        torch.export.pt2_archive._package.package_pt2(f"{folder}/{name}.pt2", exported_programs=programs, extra_files={"tc.shared_states": ""})
    for name in ("pt2.15", "two", "subclass", "fake", "shared", "common_states", "unequal_states"):
        strip(f"{folder}/{name}.pt2")


if __name__ == "__main__":
    main()
