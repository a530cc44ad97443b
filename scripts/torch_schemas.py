#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write lib/Dialect/Graph/Torch/Schemas.txt: the signatures of PyTorch's operators, as PyTorch itself prints them; and Core.txt: which of them
PyTorch tags as Core ATen.

usage: torch_schemas.py        (needs PyTorch and torchvision; nothing else here does)

Lines are sorted by name; the overloads of a name stand in the order in which PyTorch registers them, which is the order in which TorchScript
tries them. Left out: other namespaces, and operators that one backend keeps to itself.
"""
import collections
import os
import re

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import torchvision

NAMESPACES = ("aten", "prim", "prims", "quantized_decomposed", "torchvision")
# aten::is_sparse and its like are questions that TorchScript asks of any tensor.
BACKEND = re.compile(r"(?!is_)(.*(mkldnn|cudnn|miopen|fbgemm|cufft|cslt|nnpack|xnnpack|vulkan|mtia|sparse|MKLDNN)|_?mps_|.*_mps(_|$)|wrapped_)")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "Dialect", "Graph", "Torch")


def write(file, lines):
    with open(os.path.join(FOLDER, file), "w", encoding="utf-8") as f:
        f.write('R"sig(' + "\n".join(lines) + '\n)sig"\n')


def core_operators(names):
    """"abs.default" and so on: the overloads with the tag."""
    packets = [getattr(torch.ops.aten, name.split("::")[1], None) for name in names if name.startswith("aten::")]
    overloads = [getattr(packet, overload) for packet in packets if packet is not None for overload in packet.overloads()]
    return sorted(str(overload).partition(".")[2] for overload in overloads if torch.Tag.core in overload.tags)


def main():
    names = sorted({schema.name for schema in torch._C._jit_get_all_schemas()})
    lines = []
    for name in names:
        namespace, operator = name.split("::")
        if namespace not in NAMESPACES or BACKEND.match(operator):
            continue
        overloads = collections.OrderedDict((str(schema), None) for schema in torch._C._jit_get_schemas_for_operator(name))
        lines += [text for text in overloads if ")sig" not in text]
    core = core_operators(names)
    write("Schemas.txt", lines)
    write("Core.txt", core)
    print(f"{len(lines)} signatures and {len(core)} core operators of PyTorch {torch.__version__}, torchvision {torchvision.__version__}")


if __name__ == "__main__":
    main()
