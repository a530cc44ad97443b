# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: change_model.py MODEL.onnx OUT.onnx weight|bias|last|double: another value in the first weights, or in the first vector of them,
one output less of the last layer, or all of it in float64."""
import sys

import onnx
from onnx import numpy_helper

model = onnx.load(sys.argv[1])
graph = model.graph
last = graph.node[-1].input[1:] if sys.argv[3] == "last" else []
for number, tensor in enumerate(graph.initializer):
    values = numpy_helper.to_array(tensor).copy()
    if sys.argv[3] == "double":
        values = values.astype("float64") if values.dtype == "float32" else values
    elif not last and number == (sys.argv[3] == "bias"):
        values.flat[0] += 1
    elif tensor.name in last:
        values = values[:-1]
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
if sys.argv[3] == "double":
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    del graph.value_info[:]
if last:
    graph.output[0].type.tensor_type.shape.dim[-1].dim_value -= 1
onnx.save(model, sys.argv[2])
