# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc-compile from Python."""
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from typing import Any, Mapping, Sequence

from .arrays import is_lazy, plain
from .artifact import Artifact
from .errors import InvalidError, error_of


def find_tool(name: str) -> str:
    """The path of one of tc's tools: in $TC_BIN, in this package, or on PATH."""
    for folder in (os.environ.get("TC_BIN"), os.path.join(os.path.dirname(__file__), "bin")):
        if folder and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    found = shutil.which(name)
    if not found:
        raise InvalidError(f"{name} was not found: this is tc's runtime alone; install the wheel tc_compiler in an environment without tc_compiler_runtime, whose place it takes, or set TC_BIN to the folder of tc's tools")
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
    if any("\0" in str(argument) for argument in arguments):
        raise InvalidError(f"{name}: a path or an option holds a NUL character, which none can; leave it out")
    result = subprocess.run([find_tool(name), *arguments], input=input, capture_output=True, env=_environment())
    if result.returncode:
        text = result.stderr.decode(errors="replace").strip() or f"{name} ended with status {result.returncode}"
        raise error_of(result.returncode, text)
    return result.stdout.decode(errors="replace")


def _write_model(model: Any, example_inputs: Any, dims: Mapping[str, Any], folder: str) -> tuple[str, dict[str, Any]]:
    """The path of a file that tc-compile reads, and the sizes of its dims."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), dict(dims)
    if hasattr(model, "SerializeToString"): # onnx.ModelProto
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        return path, dict(dims)
    import torch

    fixed: dict[str, str] = {}
    if isinstance(model, torch.jit.ScriptModule):
        path = os.path.join(folder, "model.pt")
        torch.jit.save(model, path)
        return path, dict(dims)
    if isinstance(model, torch.nn.Module):
        if example_inputs is None:
            raise InvalidError("a torch.nn.Module needs example_inputs, a tuple of tensors, to be exported")
        model, fixed = _export(model, tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,), dims)
    if not isinstance(model, torch.export.ExportedProgram):
        raise InvalidError(f"cannot compile {type(model).__name__}; give a path, the bytes or ModelProto of an ONNX model, an ExportedProgram, or a torch.nn.Module")
    # Archives hold memory, without the bits by which PyTorch conjugates or negates lazily.
    lazy = [(place, name, value) for place in (model.state_dict, model.constants) for name, value in place.items()
            if isinstance(value, torch.Tensor) and is_lazy(value)] # fmt: skip
    path = os.path.join(folder, "model.pt2")
    try:
        for place, name, value in lazy:
            resolved = plain(value.detach())
            place[name] = torch.nn.Parameter(resolved, value.requires_grad) if isinstance(value, torch.nn.Parameter) else resolved
        torch.export.save(model, path)
    finally:
        for place, name, value in lazy:
            place[name] = value
    return path, {**dims, **fixed}


def _export(module: Any, arguments: tuple[Any, ...], dims: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """The module as an ExportedProgram, in which the dims "INPUT.N" are open; and sizes of others that are, but need not be."""
    import inspect

    import torch

    names = list(inspect.signature(module.forward).parameters)[: len(arguments)]
    shapes: dict[str, Any] = {name: None for name in names}
    for name in dims:
        given, _, number = name.rpartition(".")
        tensor = arguments[names.index(given)] if given in names else None
        if not isinstance(tensor, torch.Tensor) or not number.isdecimal() or int(number) >= tensor.dim():
            known = [f"{n}.{i}" for n, a in zip(names, arguments) if isinstance(a, torch.Tensor) for i in range(a.dim())]
            raise InvalidError(f'there is no dim "{name}"; dims of this module are {", ".join(known) or "none"}')
        if tensor.shape[int(number)] < 2:
            raise InvalidError(f'the dim "{name}" is {tensor.shape[int(number)]} in example_inputs, a size that PyTorch fixes; give an example with 2 or more')
        shapes[given] = {**(shapes[given] or {}), int(number): torch.export.Dim.DYNAMIC}
    if not any(shapes.values()):
        return torch.export.export(module, arguments), {}
    try:
        return torch.export.export(module, arguments, dynamic_shapes=tuple(shapes.values())), {}
    except (torch._dynamo.exc.UserError, ValueError):
        pass
    # Others may have to be equal to those: dims of the same size are open if they are.
    sizes = {arguments[names.index(name)].shape[dim] for name, open_ in shapes.items() for dim in open_ or ()}
    for name, tensor in zip(names, arguments):
        if isinstance(tensor, torch.Tensor):
            others = {dim: torch.export.Dim.AUTO for dim, size in enumerate(tensor.shape) if size in sizes}
            shapes[name] = {**others, **(shapes[name] or {})} or None
    try:
        program = torch.export.export(module, arguments, dynamic_shapes=tuple(shapes.values()))
    except (torch._dynamo.exc.UserError, ValueError) as error:
        raise InvalidError(f"the module cannot be exported with open {', '.join(dims)}: {error}") from error
    placed = [node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder"][-len(names) :]
    wanted = {str(placed[names.index(name)][dim]) for name, open_ in shapes.items() for dim, kind in (open_ or {}).items() if kind is torch.export.Dim.DYNAMIC}
    # Those that are not keep the example's size.
    fixed = {f"{name}.{dim}": str(arguments[names.index(name)].shape[dim]) for name, shape in zip(names, placed) for dim, size in enumerate(shape)
             if not isinstance(size, int) and str(size) not in wanted} # fmt: skip
    return program, fixed


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


def _compile_file(path: str, output: str | os.PathLike[str] | None, folder: str, arguments: Sequence[str]) -> str | bytes:
    """What Artifact loads of a compiled model: `output`, or without one the artifact's bytes, by way of a file in `folder`."""
    target = os.fspath(output) if output is not None else os.path.join(folder, "model.bin")
    run_tool("tc-compile", [path, "-o", target, "-q", *arguments])
    if output is not None:
        return target
    with open(target, "rb") as file:
        return file.read()


def compile(model: Any, example_inputs: Any = None, *, output: str | os.PathLike[str] | None = None, dims: Mapping[str, Any] | None = None,
            mode: str | None = None, target: str | Sequence[str] | None = None, precision: str | Sequence[str] | None = None,
            cache: str | os.PathLike[str] | None = None, threads: int = 0, **options: Any) -> Artifact: # fmt: skip
    """Compiles a model and loads the artifact.

    model: a path (.onnx, .pt2, .pt), the bytes or ModelProto of an ONNX model, a torch.export.ExportedProgram, a ScriptModule, or a torch.nn.Module,
    which is exported with `example_inputs`; dims "INPUT.N" are open then. output: where the artifact stays (None: in memory). dims: sizes of named dims, as --dim takes them:
    {"batch": "1,8,1..64"}. cache: a folder of earlier results. threads: of later runs. Other keywords are tc-compile's options, with "_" for "-":
    cpu="native", verify=True, shape=["x=1,3,224,224"]. Raises UnsupportedError, which names the nodes, and other TcErrors.
    """
    with tempfile.TemporaryDirectory(prefix="tc-") as folder:
        if dims is not None and not isinstance(dims, Mapping):
            raise InvalidError(f'dims is {dims!r}; give a dict of sizes by names, such as {{"batch": "1..64"}}')
        path, sizes = _write_model(model, example_inputs, dims or {}, folder)
        arguments = _options({"mode": mode, "target": target, "precision": precision, "cache_dir": cache, **options})
        arguments += [f"--dim={name}={size}" for name, size in sizes.items()]
        return Artifact(_compile_file(path, output, folder, arguments), threads=threads, device="cuda" if target == "cuda" else None)
