# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: split_weights.py MODEL.onnx OUT.onnx DATA: puts the weights into a file beside the model."""
import sys

import onnx

model = onnx.load(sys.argv[1])
onnx.save(model, sys.argv[2], save_as_external_data=True, location=sys.argv[3], size_threshold=0)
