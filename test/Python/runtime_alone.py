#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package without the compiler: it runs an artifact, and says what to install to compile.

usage: runtime_alone.py ARTIFACT MODEL_FOLDER
"""
import os
import sys

import numpy as np
import tc_compiler as tc


def main(path, folder):
    inputs, expected = (dict(np.load(os.path.join(folder, f"{name}.npz"))) for name in ("inputs", "outputs"))
    outputs = tc.load(path).run(inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(outputs[name], array, rtol=0, atol=2e-5 * np.abs(array).max())
    try:
        tc.compile(os.path.join(folder, "model.onnx"))
    except tc.InvalidError as error:
        assert "tc-compile was not found" in str(error) and "install the wheel tc_compiler" in str(error), error
        print(error)
    else:
        raise AssertionError("the package without the compiler compiled")


if __name__ == "__main__":
    main(*sys.argv[1:])
