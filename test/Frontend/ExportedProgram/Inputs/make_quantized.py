#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes quantized.pt2, a network quantised as PT2E does it, with inputs and outputs, and quantized.onnx, the same one of QuantizeLinear and
DequantizeLinear; quantized_parts.pt2, each operator of quantized_decomposed alone: make_quantized.py (PyTorch 2.15, numpy, onnx)."""
import io, os, sys, warnings, zipfile
import numpy as np
import onnx
import torch
import torch.ao.quantization.fx._decomposed
from onnx import helper as h, numpy_helper

warnings.filterwarnings("ignore")
torch.manual_seed(0)
HERE = os.path.dirname(os.path.abspath(__file__))
q = torch.ops.quantized_decomposed


def per_channel(weight):
    scales = weight.flatten(1).abs().amax(1) / 127
    return q.quantize_per_channel(weight, scales, torch.zeros_like(scales, dtype=torch.int64), 0, -127, 127, torch.int8), scales


class Net(torch.nn.Module):
    """conv, relu, pool, conv of one scale, sum, linear."""
    ACT = [(0.0173, 7), (0.021, -128), (0.0391, 3), (0.05, -11), (0.033, 0)]

    def __init__(self):
        super().__init__()
        for name, shape in (("a", (16, 8, 3, 3)), ("b", (16, 16, 1, 1)), ("c", (10, 16))):
            weight, scales = per_channel(torch.randn(shape) * 0.2)
            self.register_buffer(name, weight)
            self.register_buffer(name + "_scales", scales)
            self.register_buffer(name + "_zeros", torch.zeros(shape[0], dtype=torch.int64))
            self.register_buffer(name + "_bias", torch.randn(shape[0]) * 0.1)

    def weight(self, name):
        return q.dequantize_per_channel(getattr(self, name), getattr(self, name + "_scales"), getattr(self, name + "_zeros"), 0, -127, 127, torch.int8)

    def act(self, x, i):
        scale, zero = self.ACT[i]
        x = q.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
        return q.dequantize_per_tensor(x, scale, zero, -128, 127, torch.int8)

    def forward(self, x):
        x = self.act(x, 0)
        x = self.act(torch.relu(torch.conv2d(x, self.weight("a"), self.a_bias, padding=1)), 1)
        x = self.act(torch.max_pool2d(x, 2), 1)
        y = self.act(torch.conv2d(x, self.weight("b"), self.b_bias), 2)
        x = self.act(x + y, 3)
        x = self.act(x.mean([2, 3]), 4)
        return torch.nn.functional.linear(x, self.weight("c"), self.c_bias)


class Parts(torch.nn.Module):
    def forward(self, x, w):
        results = []
        one = q.quantize_per_tensor(x, 0.1, 3, -100, 90, torch.int8)
        results += [one, q.dequantize_per_tensor(one, 0.1, 3, -100, 90, torch.int8)]
        unsigned = q.quantize_per_tensor(x, 0.1, 130, 0, 255, torch.uint8)
        results += [unsigned, q.dequantize_per_tensor(unsigned, 0.1, 130, 0, 255, torch.uint8, out_dtype=torch.float16)]
        wide = q.quantize_per_tensor(x, 1e-3, 17, -(2**15), 2**15 - 1, torch.int16)
        results += [wide, q.dequantize_per_tensor(wide, 1e-3, 17, -(2**15), 2**15 - 1, torch.int16)]
        bias = q.quantize_per_tensor(x, 1e-4, 5, -(2**20), 2**20, torch.int32)
        results += [bias, q.dequantize_per_tensor(bias, 1e-4, 5, -(2**20), 2**20, torch.int32)]
        scale, zero = q.choose_qparams(x, -128, 127, 1e-5, torch.int8)
        dynamic = q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        results += [scale, zero, dynamic, q.dequantize_per_tensor.tensor(dynamic, scale, zero, -128, 127, torch.int8)]
        results += q.choose_qparams_symmetric(x, 0, 255, 1e-5, torch.uint8)
        scales, zeros = w.abs().amax(1) / 50 + 0.01, torch.arange(w.shape[0]) - 2
        channels = q.quantize_per_channel(w, scales, zeros, 0, -128, 127, torch.int8)
        results += [channels, q.dequantize_per_channel(channels, scales, zeros, 0, -128, 127, torch.int8)]
        columns = w.abs().amax(0).double() / 50 + 0.01
        channels = q.quantize_per_channel(w, columns, torch.zeros(w.shape[1], dtype=torch.int32), 1, -128, 127, torch.int8)
        results += [channels, q.dequantize_per_channel(channels, columns, None, 1, -128, 127, torch.int8)]
        scales, zeros = q._choose_qparams_per_token_asymmetric_impl(x, torch.int8)
        tokens = q.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
        results += [scales, zeros, tokens, q.dequantize_per_token(tokens, scales, zeros, -128, 127, torch.int8, torch.float32)]
        scales = w.reshape(w.shape[0], -1, 4).abs().amax(2) / 60 + 0.01
        zeros = torch.arange(scales.numel(), dtype=torch.int32).reshape(scales.shape) - 3
        groups = q.quantize_per_channel_group(w, scales, zeros, -8, 7, torch.int8, 4)
        results += [groups, q.dequantize_per_channel_group(groups, scales, zeros, -8, 7, torch.int8, 4, torch.float32)]
        return results


def save(name, model, inputs):
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(model.eval(), inputs), buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(f"{HERE}/{name}.pt2", "w") as new:
        for info in old.infolist():
            # The stacks of Python are not part of what is tested.
            data = old.read(info).replace(HERE.encode(), b"") if info.filename.endswith(".json") else old.read(info)
            kind = zipfile.ZIP_DEFLATED if info.filename.endswith(".json") else zipfile.ZIP_STORED
            new.writestr(zipfile.ZipInfo(info.filename), data, compress_type=kind)
    outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    names = ["x", "w"]
    np.savez_compressed(f"{HERE}/{name}.in.npz", **{names[i]: x.numpy() for i, x in enumerate(inputs)})
    np.savez_compressed(f"{HERE}/{name}.out.npz", **{f"output_{i}": x.numpy() for i, x in enumerate(outputs)})


def save_onnx(net, x):
    nodes, constants, count = [], [], 0

    def const(value):
        constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(constants)}"))
        return constants[-1].name

    def node(kind, inputs, **attributes):
        nodes.append(h.make_node(kind, inputs, [f"v{len(nodes)}"], f"{kind}{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    def act(v, i):
        scale, zero = const(np.float32(net.ACT[i][0])), const(np.int8(net.ACT[i][1]))
        return node("DequantizeLinear", [node("QuantizeLinear", [v, scale, zero]), scale, zero])

    def weight(name):
        return node("DequantizeLinear", [const(getattr(net, name).numpy()), const(getattr(net, name + "_scales").numpy()), const(np.zeros(len(getattr(net, name)), np.int8))], axis=0)

    v = act("x", 0)
    v = act(node("Relu", [node("Conv", [v, weight("a"), const(net.a_bias.numpy())], pads=[1] * 4)]), 1)
    v = act(node("MaxPool", [v], kernel_shape=[2, 2], strides=[2, 2]), 1)
    y = act(node("Conv", [v, weight("b"), const(net.b_bias.numpy())]), 2)
    v = act(node("Add", [v, y]), 3)
    v = act(node("ReduceMean", [v, const(np.array([2, 3], np.int64))], keepdims=0), 4)
    node("Gemm", [v, weight("c"), const(net.c_bias.numpy())], transB=1)
    nodes[-1].output[0] = "output_0"
    graph = h.make_graph(nodes, "quantized", [h.make_tensor_value_info("x", 1, x.shape)], [h.make_tensor_value_info("output_0", 1, [x.shape[0], 10])], constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10), f"{HERE}/quantized.onnx")


with torch.no_grad():
    net, x = Net(), torch.randn(2, 8, 8, 8)
    save("quantized", net, (x,))
    save_onnx(net, x)
    # With ties of quotients.
    save("quantized_parts", Parts(), (torch.cat([torch.randn(5, 12) * 4, torch.arange(-24, 24).reshape(4, 12) * 0.05]), torch.randn(6, 8)))
