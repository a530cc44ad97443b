# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stands for ONNX Runtime in tests of tc-bench: the part of its interface that peer.py uses, on onnx's reference evaluator.

TC_TEST_ENGINE says how it behaves: right, wrong (results off by one), absent, broken (at import), raise (at load), die (at load), die-later
(when timed).
"""
import os

import numpy as np
from onnx.reference import ReferenceEvaluator

MODE = os.environ["TC_TEST_ENGINE"]
if MODE == "absent":
    raise ImportError("no engine here")
if MODE == "broken":
    raise OSError("libengine.so.1: cannot open shared object file")
__version__ = "0.0-test"
print("what an engine prints must not disturb the answers")


class SessionOptions:
    pass


class OrtValue:
    def __init__(self, array):
        self.array = array

    @staticmethod
    def ortvalue_from_numpy(array):
        return OrtValue(array)


class Value:
    def __init__(self, name):
        self.name = name


class Binding:
    def __init__(self):
        self.inputs = {}

    def bind_ortvalue_input(self, name, value):
        self.inputs[name] = value.array

    def bind_ortvalue_output(self, name, value):
        pass


class InferenceSession:
    def __init__(self, model, options, providers):
        if MODE == "raise":
            raise ValueError("this model is not to its taste")
        if MODE == "die":
            os.abort()
        if os.environ["OMP_NUM_THREADS"] != str(options.intra_op_num_threads):
            raise ValueError("the environment's thread count is another")
        self.evaluator = ReferenceEvaluator(model)
        self.result = None

    def get_inputs(self):
        return [Value(name) for name in self.evaluator.input_names]

    def get_outputs(self):
        return [Value(name) for name in self.evaluator.output_names]

    def run(self, names, feed):
        self.result = [np.asarray(array) + (MODE == "wrong") for array in self.evaluator.run(names, feed)]
        return self.result

    def io_binding(self):
        return Binding()

    def run_with_iobinding(self, binding):
        if MODE == "die-later":
            os._exit(7)
        if set(binding.inputs) != set(self.evaluator.input_names):
            raise ValueError("inputs are not bound")
