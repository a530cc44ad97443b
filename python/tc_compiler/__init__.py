# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc: compiles ONNX, torch.export and TorchScript models to native code ahead of time, and runs them.

  import tc_compiler as tc
  artifact = tc.compile("model.onnx")
  outputs = artifact.run({"x": x})

`tc.load` loads what tc-compile wrote; `tc.InferenceSession` is ONNX Runtime's interface.
"""
from .artifact import Artifact, Function, Symbol, Value, load, version
from .compiler import compile
from .errors import InternalError, InvalidError, MachineError, RefusedError, TcError, UnsupportedError
from .session import InferenceSession, OrtValue, RunOptions, SessionOptions

__all__ = [
    "Artifact", "Function", "InferenceSession", "InternalError", "InvalidError", "MachineError", "OrtValue", "RefusedError", "RunOptions",
    "SessionOptions", "Symbol", "TcError", "UnsupportedError", "Value", "compile", "load", "version",
] # fmt: skip
__version__ = version()
