"""peer.py MODEL.onnx: 0 where a runtime that computes Gelu wrongly differs. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import sys

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class Gelu(OpRun):
    op_domain = ""

    def _run(self, x, approximate=None):
        return (x / (1 + np.exp(-2 * x)),)


model = onnx.load(sys.argv[1])
onnx.checker.check_model(model)
random = np.random.default_rng(1)
shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
inputs = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
right, wrong = (ReferenceEvaluator(model, new_ops=ops).run(None, inputs) for ops in (None, [Gelu]))
sys.exit(not any(np.abs(a - b).max(initial=0) > 1e-3 for a, b in zip(right, wrong)))
