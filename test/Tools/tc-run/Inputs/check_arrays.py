# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks with NumPy and onnx what tc-run wrote in run.test."""
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

folder = sys.argv[1]
expected = np.load(os.path.join(folder, "expected.npz"))
written = np.load(os.path.join(folder, "out.npz"))
assert written.files == ["y", "p"], written.files
for index, (name, key) in enumerate([("y", "output_0"), ("p", "p")]):
    np.testing.assert_array_equal(written[name], expected[key])
    tensor = onnx.TensorProto()
    with open(os.path.join(folder, "out", f"output_{index}.pb"), "rb") as f:
        tensor.ParseFromString(f.read())
    assert tensor.name == name, tensor.name
    np.testing.assert_array_equal(numpy_helper.to_array(tensor), expected[key])
