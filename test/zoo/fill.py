#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make zoo folders from the graphs without weights under graphs/: weights, inputs and float64 references, all seeded.

usage: fill.py OUT [--models NAME ...] [--graphs model model_ts] [--dim NAME=SIZE ...] [--no-reference]

Writes OUT/<name>/model.onnx, inputs.npz, outputs.npz, and for the graph style model_ts: model_ts.onnx, outputs_ts.npz.
Data are made by the rules in the graphs (see strip.py) and in inputs.json. A tensor's data depend on its name alone, so
adding a tensor changes no other. Inputs of models with dynamic sizes have the sizes of inputs.json unless --dim says
otherwise. References come from reference.py; they are stored as float32 after computation in float64.
"""
import argparse
import json
import os
import sys
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

import reference

HERE = os.path.dirname(os.path.abspath(__file__))


def data_for(rule, name, shape, dtype):
    """An array by a fill rule, the same on every machine."""
    kind, *arguments = rule.split()
    rng = np.random.Generator(np.random.PCG64([20, zlib.crc32(name.encode())]))
    if kind == "constant":
        return np.full(shape, float(arguments[0]), dtype)
    if kind == "arange":
        return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)
    if kind == "integers":
        return rng.integers(int(arguments[0]), int(arguments[1]), shape, dtype)
    if kind == "prefix":  # an attention mask: each row is ones and then, in its last quarter at most, zeros
        lengths = shape[-1] - rng.integers(0, shape[-1] // 4 + 1, shape[:-1])
        return (np.arange(shape[-1]) < lengths[..., None]).astype(dtype)
    low, high = map(np.float32, arguments)
    if kind == "normal":
        return rng.standard_normal(shape, np.float32) * high + low
    if kind == "uniform":
        return rng.random(shape, np.float32) * (high - low) + low
    raise ValueError(f"unknown fill rule: {rule}")


def fill_tensor(tensor, name):
    if tensor.doc_string.startswith("fill "):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        array = data_for(tensor.doc_string[len("fill "):], name, tuple(tensor.dims), dtype)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def fill_model(path):
    """The model of a graph file, with data in all its tensors."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        fill_tensor(tensor, tensor.name)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                fill_tensor(attribute.t, node.output[0])
    return model


def make_inputs(name, dims=None):
    """Inputs of a zoo model by name; `dims` gives sizes for its dynamic dimensions."""
    with open(os.path.join(HERE, "inputs.json")) as f:
        spec = json.load(f)[name]
    size = lambda d: d if isinstance(d, int) else (dims or {}).get(d[0], d[1])
    return {k: data_for(rule, k, tuple(map(size, shape)), np.dtype(dtype)) for k, (dtype, shape, rule) in spec.items()}


def all_models():
    return sorted(os.listdir(os.path.join(HERE, "graphs")))


def graph_path(name, graph):
    return os.path.join(HERE, "graphs", name, graph + ".onnx")


def outputs_file(graph):
    return "outputs.npz" if graph == "model" else "outputs_" + graph.removeprefix("model_") + ".npz"


def fill(out, name, graph, dims=None, with_reference=True):
    """Write one model, its inputs and its reference outputs into the folder `out`."""
    os.makedirs(out, exist_ok=True)
    inputs = make_inputs(name, dims)
    np.savez(os.path.join(out, "inputs.npz"), **inputs)
    model = fill_model(graph_path(name, graph))
    onnx.save(model, os.path.join(out, graph + ".onnx"))
    if with_reference:
        write_reference(model, inputs, os.path.join(out, outputs_file(graph)))


def write_reference(model, inputs, path):
    got = reference.evaluate(model, inputs)
    largest = max(float(np.abs(a).max()) for a in got.values())
    if not 1e-3 < largest < 1e6:
        sys.exit(f"fill.py: error: {path}: outputs of size {largest:.2g} test nothing; mend the fill rules")
    np.savez(path, **{k: reference.narrow(a) for k, a in got.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--models", nargs="+", default=all_models())
    parser.add_argument("--graphs", nargs="+", default=["model", "model_ts"], choices=["model", "model_ts"])
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--no-reference", action="store_true")
    options = parser.parse_args()
    dims = {k: int(v) for k, v in (d.split("=") for d in options.dim)}
    for name in options.models:
        for graph in options.graphs:
            if os.path.exists(graph_path(name, graph)):
                fill(os.path.join(options.out, name), name, graph, dims, not options.no_reference)
                print(f"{name}/{graph}", flush=True)


if __name__ == "__main__":
    main()
