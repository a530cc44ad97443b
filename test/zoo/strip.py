#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turn exported zoo models into graphs without weights, small enough for this repository; fill.py is the way back.

usage: strip.py ZOO [name ...]      ZOO: a folder made by make_zoo.py; writes graphs/<name>/model.onnx (and model_ts.onnx)

Each tensor over 1 KB loses its data and gets a rule in its doc_string, which says how fill.py makes data like it:
  fill normal MEAN STD | fill uniform LOW HIGH | fill constant VALUE | fill arange
with the mean and deviation, or the range, of the tensor that was there. Vectors that are all ones or all zeros, as fresh
norms and biases are, get a spread, so that no parameter is a no-op. Tensors of few values that no rule describes (masks)
stay. Metadata of nodes goes too: stack traces of the exporter, which name files of the machine that ran it.
"""
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

SMALL_BYTES = 1024       # tensors up to this size stay as they are
KEEP_BYTES = 64 * 1024   # larger tensors without a rule are an error


def rule_for(array):
    """The fill rule for data like `array`; None to keep the data."""
    flat = array.ravel()
    if (flat == flat[0]).all():
        if array.ndim == 1 and array.dtype == np.float32 and flat[0] in (0, 1):
            return "uniform 0.5 1.5" if flat[0] else "normal 0 0.02"
        return f"constant {flat[0].item()!r}"
    if array.dtype.kind in "iu":
        return "arange" if np.array_equal(flat, np.arange(flat.size)) else None
    if array.dtype != np.float32 or len(np.unique(flat[:100000])) < 4:
        return None
    if flat.min() > 0:
        return f"uniform {flat.min():.4g} {flat.max():.4g}"
    return f"normal {flat.mean(dtype=np.float64):.4g} {flat.std(dtype=np.float64):.4g}"


def strip_tensor(tensor, where):
    array = numpy_helper.to_array(tensor)
    if array.nbytes <= SMALL_BYTES:
        return
    rule = rule_for(array)
    if rule is None:
        if array.nbytes > KEEP_BYTES:
            sys.exit(f'strip.py: error: {where}: no rule describes tensor "{tensor.name}" of {array.nbytes} bytes')
        return
    empty = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, doc_string="fill " + rule)
    tensor.CopyFrom(empty)


def strip(source, target):
    model = onnx.load(source)
    for tensor in model.graph.initializer:
        strip_tensor(tensor, source)
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                strip_tensor(attribute.t, source)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                sys.exit(f"strip.py: error: {source}: subgraphs are not handled; no zoo model has one")
    for item in [*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer, model.graph]:
        del item.metadata_props[:]
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as f:
        f.write(model.SerializeToString(deterministic=True))
    print(target, os.path.getsize(target))


def main(argv):
    if len(argv) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    graphs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graphs")
    for name in argv[2:] or sorted(os.listdir(argv[1])):
        for file in ("model.onnx", "model_ts.onnx"):
            source = os.path.join(argv[1], name, file)
            if os.path.exists(source):
                strip(source, os.path.join(graphs, name, file))


if __name__ == "__main__":
    main(sys.argv)
