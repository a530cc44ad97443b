# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc-compile from Python."""
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from typing import Any, Mapping, Sequence

from .artifact import Artifact
from .errors import InvalidError, error_of


def find_tool(name: str) -> str:
    """The path of one of tc's tools: in $TC_BIN, in this package, or on PATH."""
    for folder in (os.environ.get("TC_BIN"), os.path.join(os.path.dirname(__file__), "bin")):
        if folder and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    found = shutil.which(name)
    if not found:
        raise InvalidError(f"{name} was not found: this is tc's runtime alone; install the compiler by pip install tc_compiler, or set TC_BIN to the folder of tc's tools")
    return found


def _environment() -> dict[str, str]:
    """That of a tool: ptxas of NVIDIA's wheels, which pip installs without the right to run it, is found after those of $CUDA_PATH and $PATH."""
    environment = dict(os.environ)
    try:
        spec = importlib.util.find_spec("nvidia.cu13")
    except ModuleNotFoundError:
        spec = None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        ptxas = os.path.join(folder, "bin", "ptxas")
        if os.path.isfile(ptxas) and not os.access(ptxas, os.X_OK):
            try:
                os.chmod(ptxas, 0o755)
            except OSError: # somebody else's environment: tc-compile says that it found none
                continue
        if os.access(ptxas, os.X_OK):
            environment["PATH"] = os.pathsep.join(filter(None, [environment.get("PATH"), os.path.dirname(ptxas)]))
    return environment


def run_tool(name: str, arguments: Sequence[str], input: bytes | None = None) -> str:
    """What the tool prints; raises the exception of its exit code, with the sentences that it printed."""
    result = subprocess.run([find_tool(name), *arguments], input=input, capture_output=True, env=_environment())
    if result.returncode:
        text = result.stderr.decode(errors="replace").strip() or f"{name} ended with status {result.returncode}"
        raise error_of(result.returncode, text)
    return result.stdout.decode(errors="replace")


def _write_model(model: Any, example_inputs: Any, dims: Mapping[str, Any], folder: str) -> str:
    """The path of a file that tc-compile reads."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if hasattr(model, "SerializeToString"): # onnx.ModelProto
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        return path
    import torch

    if isinstance(model, torch.jit.ScriptModule):
        path = os.path.join(folder, "model.pt")
        torch.jit.save(model, path)
        return path
    if isinstance(model, torch.nn.Module):
        if example_inputs is None:
            raise InvalidError("a torch.nn.Module needs example_inputs, a tuple of tensors, to be exported")
        arguments = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
        model = torch.export.export(model, arguments)
    if not isinstance(model, torch.export.ExportedProgram):
        raise InvalidError(f"cannot compile {type(model).__name__}; give a path, the bytes or ModelProto of an ONNX model, an ExportedProgram, or a torch.nn.Module")
    path = os.path.join(folder, "model.pt2")
    torch.export.save(model, path)
    return path


def _options(options: Mapping[str, Any]) -> list[str]:
    """--name=value of each; True is a flag, False and None are left out, lists repeat the option."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(flag)
            elif one is not False and one is not None:
                arguments.append(f"{flag}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return arguments


def compile(model: Any, example_inputs: Any = None, *, output: str | os.PathLike | None = None, dims: Mapping[str, Any] | None = None,
            mode: str | None = None, target: str | Sequence[str] | None = None, precision: str | Sequence[str] | None = None,
            cache: str | os.PathLike | None = None, threads: int = 0, **options: Any) -> Artifact: # fmt: skip
    """Compiles a model and loads the artifact.

    model: a path (.onnx, .pt2, .pt), the bytes or ModelProto of an ONNX model, a torch.export.ExportedProgram, a ScriptModule, or a torch.nn.Module,
    which is exported with `example_inputs`. output: where the artifact stays (None: in memory). dims: sizes of named dims, as --dim takes them:
    {"batch": "1,8,1..64"}. cache: a folder of earlier results. threads: of later runs. Other keywords are tc-compile's options, with "_" for "-":
    cpu="native", verify=True, shape=["x=1,3,224,224"]. Raises UnsupportedError, which names the nodes, and other TcErrors.
    """
    with tempfile.TemporaryDirectory(prefix="tc-") as folder:
        path = _write_model(model, example_inputs, dims or {}, folder)
        target_path = os.fspath(output) if output is not None else os.path.join(folder, "model.bin")
        arguments = [path, "-o", target_path, "-q"]
        arguments += _options({"mode": mode, "target": target, "precision": precision, "cache_dir": cache, **options})
        arguments += [f"--dim={name}={size}" for name, size in (dims or {}).items()]
        run_tool("tc-compile", arguments)
        device = "cuda" if target == "cuda" else None
        if output is not None:
            return Artifact(target_path, threads=threads, device=device)
        with open(target_path, "rb") as file:
            return Artifact(file.read(), threads=threads, device=device)
