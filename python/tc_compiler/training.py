# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training ahead of time: a module, a loss and an optimiser as one artifact, which libtcrt runs without Python."""
from __future__ import annotations

import contextlib
import copy
import inspect
import os
import tempfile
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ._tcrt import ffi, lib
from .artifact import Artifact, _bytes_of, _check, _text
from .compiler import _options, run_tool
from .dtypes import DTYPES
from .errors import InvalidError, RefusedError


class TrainingArtifact(Artifact):
    """An artifact with the functions "step", which takes inputs and targets, updates the states and returns the loss, and "evaluate", which takes inputs and returns what
    the module does in eval mode. Both share the states: parameters and buffers under their names in the module's state_dict, those of the optimiser as
    "optimizer.KEY.PARAMETER", the sequence of random numbers as "tc.random". Every Artifact object has states of its own, which begin as compiled."""

    def step(self, *arguments: Any) -> float:
        """One step of training; arguments are inputs, then targets, in the order of functions["step"].inputs. Returns the loss before it."""
        (loss,) = self._call("step", arguments)
        return float(loss)

    def evaluate(self, *inputs: Any) -> list[np.ndarray]:
        """What the module returns for these inputs in eval mode, under the states' values."""
        return self._call("evaluate", inputs)

    def _call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        function = self.functions[name]
        if len(arguments) != len(function.inputs):
            raise RefusedError(f"{self.path}: {name} takes {', '.join(v.name for v in function.inputs)}, but was given {len(arguments)} arguments")
        return function.run_list({value.name: argument for value, argument in zip(function.inputs, arguments)})

    def _states(self) -> list[tuple[int, str, np.dtype, tuple[int, ...]]]:
        info, found = ffi.new("tcrt_state_info_t *"), []
        for index in range(lib.tcrt_model_state_count(self._handle())):
            _check(lib.tcrt_model_state(self._handle(), index, info))
            found.append((index, _text(info.name), DTYPES[info.dtype], tuple(info.dims[0 : info.rank])))
        return found

    def _tensor(self, dtype: Any, array: np.ndarray) -> Any:
        tensor = ffi.new("tcrt_tensor_t *")
        tensor.dtype, tensor.rank, tensor.size_bytes = dtype.number, array.ndim, array.nbytes
        tensor.dims[0 : array.ndim] = array.shape
        buffer = ffi.from_buffer(_bytes_of(array)) if array.size else ffi.NULL
        tensor.data = buffer
        return tensor, buffer

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of all states by name; torch.from_numpy of those without "optimizer." and "tc." is the module's state_dict."""
        with self._state_lock or contextlib.nullcontext():
            context, result = self._only_context(self.main).handle, {}
            for index, name, dtype, shape in self._states():
                result[name] = np.empty(shape, dtype.numpy)
                tensor, _buffer = self._tensor(dtype, result[name])
                _check(lib.tcrt_context_read_state(context, index, tensor))
        return result

    def load_state_dict(self, states: Mapping[str, Any], strict: bool = True) -> None:
        """Sets states: arrays, or tensors of PyTorch, of the same shapes and dtypes. strict: refuses names that there are not, and parameters and buffers that
        are missing; those of the optimiser and of random numbers may always be."""
        known = {name: (index, dtype, shape) for index, name, dtype, shape in self._states()}
        if strict:
            unknown = sorted(set(states) - set(known))
            missing = sorted(n for n in set(known) - set(states) if not n.startswith(("optimizer.", "tc.")))
            if unknown or missing:
                raise RefusedError(f"{self.path}: states do not match: there is no {', '.join(unknown) or '-'}; missing are {', '.join(missing) or '-'}")
        with self._state_lock or contextlib.nullcontext():
            context = self._only_context(self.main).handle
            for name, value in states.items():
                if name not in known:
                    continue
                index, dtype, shape = known[name]
                array = np.ascontiguousarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value).reshape(np.shape(value))
                if array.dtype != dtype.numpy or array.shape != shape:
                    raise RefusedError(f'{self.path}: state "{name}" is {dtype.name} {list(shape)}, but was given {array.dtype} {list(array.shape)}')
                tensor, _buffer = self._tensor(dtype, array)
                _check(lib.tcrt_context_write_state(context, index, tensor))

    def reset(self) -> None:
        """Gives all states the values with which the artifact was compiled."""
        with self._state_lock or contextlib.nullcontext():
            _check(lib.tcrt_context_reset_state(self._only_context(self.main).handle, lib.TCRT_ALL_STATES))

    def save_states(self, path: str | os.PathLike) -> None:
        """Writes the states as a safetensors file. Needs the package safetensors."""
        _safetensors().save_file(self.state_dict(), os.fspath(path))

    def load_states(self, path: str | os.PathLike) -> None:
        """Sets the states that a safetensors file holds, as save_states or PyTorch's tools wrote it."""
        self.load_state_dict(_safetensors().load_file(os.fspath(path)))


def _safetensors():
    try:
        import safetensors.numpy
    except ImportError:
        raise InvalidError("files of states need the package safetensors; install it with: pip install safetensors") from None
    return safetensors.numpy


def _tuple(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _argument_names(function: Callable, skip: int, count: int, kind: str, taken: set[str]) -> list[str]:
    """Names of positional parameters, made ones where there are none or they are taken."""
    try:
        parameters = [p.name for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][skip:]
    except (TypeError, ValueError):
        parameters = []
    names = []
    for index in range(count):
        name = parameters[index] if index < len(parameters) else f"{kind}_{index}"
        name = name if name not in taken and name != "self" else f"{kind}_{index}"
        taken.add(name)
        names.append(name)
    return names


@contextlib.contextmanager
def _as_compiled():
    """Optimisers keep step counts as tensors, as they do under torch.compile."""
    import torch

    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


def _initial_states(optimizer: Any, names: dict[Any, str]) -> dict[str, tuple[Any, str, Any]]:
    """States of an optimiser by name, as (parameter, key, tensor), made if it has not run yet."""
    import torch

    for group in optimizer.param_groups:
        if any(p not in names for p in group["params"]):
            raise InvalidError("the optimizer updates parameters that are not the module's; make it of module.parameters()")
        if not hasattr(optimizer, "_init_group"):
            raise InvalidError(f"{type(optimizer).__name__} is not supported: it does not compute a step of gradients alone; use another optimiser of torch.optim")
        if group.get("dampening") and group.get("momentum"):
            raise InvalidError("SGD with dampening is not supported, as its first step is another than later ones; set dampening=0")
        parameters = [p for p in group["params"] if p.requires_grad]
        before = [p.grad for p in parameters]
        for p in parameters:
            p.grad = torch.zeros_like(p)
        lists = [[] for _ in list(inspect.signature(optimizer._init_group).parameters)[1:]]
        optimizer._init_group(group, *lists)
        for p, gradient in zip(parameters, before):
            p.grad = gradient
            if group.get("momentum") and isinstance(optimizer, torch.optim.SGD) and optimizer.state[p].get("momentum_buffer") is None:
                optimizer.state[p]["momentum_buffer"] = torch.zeros_like(p)
    return {
        f"optimizer.{key}.{names[p]}": (p, key, value) for p, values in optimizer.state.items() for key, value in values.items() if isinstance(value, torch.Tensor)
    } # fmt: skip


def _holder(states: Mapping[str, Any]) -> Any:
    """A module with buffers of these names, whose dots are modules."""
    import torch

    root = torch.nn.Module()
    for name, value in states.items():
        *path, last = name.split(".")
        inner = root
        for part in path:
            if not hasattr(inner, part):
                inner.add_module(part, torch.nn.Module())
            inner = getattr(inner, part)
        inner.register_buffer(last, value.detach().clone())
    return root


def _export(run: Callable, states: Mapping[str, Any], updated: Sequence[str], arguments: Sequence[Any], names: Sequence[str]) -> Any:
    """run(*states, *arguments) -> (results, new values of `updated`), as a program with states."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    with _as_compiled():
        graph = make_fx(torch.func.functionalize(run, remove="mutations"))(*(s.detach().clone() for s in states.values()), *arguments)
    holder = _holder(states)

    def forward(given: Sequence[Any]) -> Any:
        results, values = graph(*(holder.get_buffer(name) for name in states), *given)
        for name, value in zip(updated, values):
            holder.get_buffer(name).copy_(value)
        return results

    scope = {"run": forward}
    exec(f"def forward(self, {', '.join(names)}):\n    return run(({', '.join(names)},))", scope) # noqa: S102 - inputs' names are those of the function
    kind = type("Program", (type(holder),), {"forward": scope["forward"]})
    holder.__class__ = kind
    with torch.no_grad():
        return torch.export.export(holder, tuple(arguments), strict=False)


def export_training(module: Any, loss: Callable, optimizer: Any, example: Any, path: str | os.PathLike) -> None:
    """Writes what compile_training compiles as an archive (.pt2), for tc-compile elsewhere. Arguments are compile_training's."""
    import torch
    from torch.export.pt2_archive._package import package_pt2

    if not isinstance(example, (tuple, list)) or len(example) != 2:
        raise InvalidError("example is (inputs, targets), each a tensor or a tuple of tensors")
    inputs, targets = _tuple(example[0]), _tuple(example[1])
    module, optimizer = copy.deepcopy((module, optimizer)) if isinstance(optimizer, torch.optim.Optimizer) else (copy.deepcopy(module), optimizer)
    optimizer = optimizer if isinstance(optimizer, torch.optim.Optimizer) else optimizer(module.parameters())
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    moments = _initial_states(optimizer, {p: name for name, p in parameters.items()})
    states = {**parameters, **buffers, **{name: value for name, (_, _, value) in moments.items()}}
    trained = [name for name, p in parameters.items() if p.requires_grad]
    count = len(states)

    def step(*flat: Any) -> Any:
        now = dict(zip(states, flat[:count]))
        given, wanted = flat[count : count + len(inputs)], flat[count + len(inputs) :]
        module.train()

        def value(*at: Any) -> Any:
            own = {name: now[name].clone() for name in buffers}
            result = torch.func.functional_call(module, {**{n: now[n] for n in parameters}, **dict(zip(trained, at)), **own}, given)
            return loss(result, *wanted), own

        found, pull, own = torch.func.vjp(value, *(now[name] for name in trained), has_aux=True)
        gradients = dict(zip(trained, pull(torch.ones_like(found))))
        new = {name: now[name].clone() for name in [*trained, *moments]}
        of = {id(p): new.get(name) for name, p in parameters.items()}
        traced = copy.copy(optimizer)
        # Of an optimiser's forms the one that takes no numbers from tensors.
        forms = lambda group: {"capturable": True, "foreach": False, "fused": False} if "capturable" in group else {"foreach": True, "fused": False}
        traced.param_groups = [
            {**group, "params": [of[id(p)] for p in group["params"] if p.requires_grad], **{k: v for k, v in forms(group).items() if k in group}} for group in optimizer.param_groups
        ] # fmt: skip
        traced.state = type(optimizer.state)(dict)
        for name, (p, key, _) in moments.items():
            traced.state[of[id(p)]][key] = new[name]
        for name in trained:
            new[name].grad = gradients[name]
        with torch.no_grad():
            traced.step()
        return {"loss": found}, [*(new[name] for name in [*trained, *moments]), *own.values()]

    def evaluate(*flat: Any) -> Any:
        now = dict(zip(fixed, flat[: len(fixed)]))
        module.eval()
        with torch.no_grad():
            return tuple(torch.utils._pytree.tree_leaves(torch.func.functional_call(module, now, flat[len(fixed) :]))), []

    fixed = {**parameters, **buffers}
    taken: set[str] = set()
    names = _argument_names(module.forward, 0, len(inputs), "input", taken)
    target_names = _argument_names(loss.forward if isinstance(loss, torch.nn.Module) else loss, 1, len(targets), "target", taken)
    programs = {
        "step": _export(step, states, [*trained, *moments, *buffers], [*inputs, *targets], names + target_names),
        "evaluate": _export(evaluate, fixed, [], inputs, names),
    } # fmt: skip
    package_pt2(os.fspath(path), exported_programs=programs, extra_files={"tc.shared_states": ""})


def compile_training(module: Any, loss: Callable, optimizer: Any, example: Any, *, output: str | os.PathLike | None = None, threads: int = 0,
                     **options: Any) -> TrainingArtifact: # fmt: skip
    """Compiles steps of training and evaluation of a torch.nn.Module into one artifact.

    loss: (the module's output, *targets) -> a scalar tensor. optimizer: of torch.optim, made of the module's parameters, or a function that makes one of
    them; what it has gathered so far is the artifact's first state, as the module's parameters and buffers are. example: (inputs, targets), each a
    tensor or a tuple of them, whose shapes and dtypes are those of all calls. output: where the artifact stays (None: in memory). threads: of later
    runs. Other keywords are tc-compile's options. The module and the optimiser stay as they are. Raises UnsupportedError, which names nodes, and other
    TcErrors.
    """
    with tempfile.TemporaryDirectory(prefix="tc-") as folder:
        path = os.path.join(folder, "training.pt2")
        export_training(module, loss, optimizer, example, path)
        target = os.fspath(output) if output is not None else os.path.join(folder, "training.bin")
        run_tool("tc-compile", [path, "-o", target, "-q", *_options(options)])
        if output is not None:
            return TrainingArtifact(target, threads=threads)
        with open(target, "rb") as file:
            return TrainingArtifact(file.read(), threads=threads)
