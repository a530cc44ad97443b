# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the arrays of run.test into a folder."""
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

folder = sys.argv[1]


def path(name):
    return os.path.join(folder, name)


x = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
y = 2 * x + np.array([1, 2, 3, 4], dtype=np.float32)
np.savez(path("named.npz"), x=x)
# Compressed, big-endian, column-major, by position.
np.savez_compressed(path("packed.npz"), input_0=np.asfortranarray(x.astype(">f4")))
np.save(path("x.npy"), x)
np.save(path("f64.npy"), x.astype(np.float64))
with open(path("x.npy"), "rb") as source, open(path("cut.npy"), "wb") as target:
    target.write(source.read()[:-8])
np.savez(path("expected.npz"), output_0=y, p=y[y > 0])
wrong = y.copy()
wrong[2, 3] += 1
np.savez(path("wrong.npz"), y=wrong, p=np.ones(2, np.float32))
with open(path("x.pb"), "wb") as f:
    f.write(numpy_helper.from_array(x, "x").SerializeToString())
with open(path("typed.pb"), "wb") as f:
    f.write(onnx.helper.make_tensor("x", onnx.TensorProto.FLOAT, x.shape, x.flatten().tolist()).SerializeToString())
