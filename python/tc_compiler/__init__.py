# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc: compiles ONNX, torch.export and TorchScript models to native code ahead of time, and runs them.

  import tc_compiler as tc
  artifact = tc.compile("model.onnx")
  outputs = artifact.run({"x": x})

`tc.load` loads what tc-compile wrote; `tc.InferenceSession` is ONNX Runtime's interface.
"""
from .arrays import DeviceArray
from .artifact import Artifact, Function, Symbol, Value, load, version
from .compiler import compile
from .errors import InternalError, InvalidError, MachineError, RefusedError, TcError, UnsupportedError
from .session import (
    ExecutionMode, GraphOptimizationLevel, InferenceSession, IOBinding, ModelMetadata, NodeArg, OrtValue, RunOptions, SessionOptions, disable_telemetry_events,
    enable_telemetry_events, get_all_providers, get_available_providers, get_device, set_default_logger_severity, set_default_logger_verbosity,
) # fmt: skip
from .training import TrainingArtifact, compile_training, export_training

__all__ = [
    "Artifact", "DeviceArray", "ExecutionMode", "Function", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "InternalError", "InvalidError", "MachineError",
    "ModelMetadata", "NodeArg", "OrtValue", "RefusedError", "RunOptions", "SessionOptions", "Symbol", "TcError", "TrainingArtifact", "UnsupportedError", "Value",
    "compile", "compile_training", "disable_telemetry_events", "enable_telemetry_events", "export_training", "get_all_providers", "get_available_providers", "get_device",
    "load", "set_default_logger_severity", "set_default_logger_verbosity", "version",
] # fmt: skip
__version__ = version()
