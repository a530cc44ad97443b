"""explained.py FOLDER PT2: models whose nodes say which Python line they come from. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import json
import os
import sys
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder, program = sys.argv[1:]
os.chdir(folder)


def trace(line):
    """As PyTorch's exporters write it: the outermost call first, PyTorch's own lines in between and last."""
    return (f'File "net.py", line 40, in forward\n    x = self.block(x)\n'
            f'  File "python3/site-packages/torch/nn/modules/module.py", line 1773, in _call_impl\n    return forward_call(*args)\n'
            f'  File "net.py", line {line}, in block\n    return f(x)\n'
            f'  File "python3/site-packages/torch/nn/functional.py", line 2134, in softmax\n    ret = input.softmax(dim)')


def node(op, inputs, output, name, line, **attributes):
    made = helper.make_node(op, inputs, [output], name=name, **attributes)
    entry = made.metadata_props.add()
    entry.key, entry.value = "pkg.torch.onnx.stack_trace", trace(line)
    return made


def save(path, nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in outputs],
                              [numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("my.ops", 1)], ir_version=10), path)


# Three times the same two kernels.
layers = []
for i in range(3):
    layers += [node("Softmax", [f"x{i}"], f"s{i}", f"soft{i}", 10 + i), node("MatMul", [f"s{i}", "w"], f"m{i}", f"product{i}", 20 + i),
               node("Abs", [f"m{i}"], f"r{i}", f"abs{i}", 30), node("Neg", [f"r{i}"], f"x{i + 1}", f"neg{i}", 30)]
save("layers.onnx", layers, [("x0", ["n", 16])], [("x3", ["n", 16])])

# What tc lacks, twice for the same reason, and in a form that it lacks.
save("lacks.onnx", [node("Frobnicate", ["x"], "a", "frob", 50, domain="my.ops"), node("Frobnicate", ["x"], "b", "frob2", 51, domain="my.ops"),
                    helper.make_node("Sofmax", ["x"], ["c"], name="soft")],
     [("x", [4, 4])], [("a", [4, 4]), ("b", [4, 4]), ("c", [4, 4])])

# The same of torch.export: its archive with traces.
with zipfile.ZipFile(program) as source, zipfile.ZipFile("traced.pt2", "w") as target:
    for member in source.infolist():
        data = source.read(member)
        if member.filename.endswith("models/model.json"):
            model = json.loads(data)
            for i, entry in enumerate(model["graph_module"]["graph"]["nodes"]):
                entry["metadata"]["stack_trace"] = trace(60 + i)
            data = json.dumps(model).encode()
        target.writestr(member.filename, data)
