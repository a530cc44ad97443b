# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training ahead of time: a module, a loss and an optimiser as one artifact, which libtcrt runs without Python."""
from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import json
import os
import re
import tempfile
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from ._tcrt import ffi, lib
from .arrays import _bytes_of, _check, _text, array_of_torch, bytes_of_torch, dtype_of_torch, is_of_torch, is_on_gpu, plain
from .artifact import Artifact
from .compiler import _compile_file, _options
from .dtypes import DTYPES, DType
from .errors import InvalidError, RefusedError, TcError

# The state that says which further names of a state_dict stand for which states, as JSON in bytes.
_TIED = "tc.tied"
# The state of learning rates: f64, one for each group of parameters.
_RATES = "optimizer.lr"


# Names of types in safetensors files.
_OF_FILE = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"}
_OF_FILE.update({"F64": "float64", "F32": "float32", "F16": "float16", "C64": "complex64", "BOOL": "bool"})
_OF_FILE.update({f"{kind}{bits}": f"{name}{bits}" for kind, name in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)})


class _Elements(NamedTuple):
    """A state's new value. `dtype`: the name that NumPy, or ml_dtypes, which need not be here, gives the type; `data`: the
    elements, of that type or as bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: np.ndarray


def _elements_of(value: Any) -> _Elements:
    if is_of_torch(value) and (dtype := dtype_of_torch(value)) and not dtype.is_of_numpy:
        return _Elements(dtype.array, tuple(value.shape), bytes_of_torch(value))
    array = np.asarray(array_of_torch(value) if is_of_torch(value) else value)
    return _Elements(array.dtype.name if array.dtype.isnative else str(array.dtype), array.shape, np.ascontiguousarray(array))


def _elements_of_file(given: Mapping[str, Any]) -> _Elements:
    """Of an entry of safetensors.deserialize."""
    return _Elements(_OF_FILE.get(given["dtype"], given["dtype"]), tuple(given["shape"]), np.frombuffer(given["data"], np.uint8))


class TrainingArtifact(Artifact):
    """An artifact with the functions "step", which takes inputs and targets, updates the states and returns the loss, and "evaluate", which takes inputs and returns what
    the module does in eval mode. Both share the states: parameters and buffers under their names in the module's state_dict, those of the optimiser as
    "optimizer.KEY.PARAMETER", the sequence of random numbers as "tc.random". Every Artifact object has states of its own, which begin as compiled."""

    def step(self, *arguments: Any) -> float:
        """One step of training; arguments are inputs, then targets, in the order of functions["step"].inputs. Returns the loss before it."""
        (loss,) = self._call("step", arguments, device="cpu" if any(map(is_on_gpu, arguments)) else None)
        return float(loss)

    def evaluate(self, *inputs: Any, **options: Any) -> list[Any]:
        """What the module returns for these inputs in eval mode, under the states' values. Options are those of a function's call: device, stream, out."""
        return self._call("evaluate", inputs, **options)

    def _call(self, name: str, arguments: Sequence[Any], **options: Any) -> list[Any]:
        self._handle()
        function = self.functions.get(name)
        if function is None:
            raise InvalidError(f'{self.path}: it is no training artifact, as it has no function "{name}"; give what '
                               "compile_training made") # fmt: skip
        if len(arguments) != len(function.inputs):
            raise RefusedError(f"{self.path}: {name} takes {', '.join(v.name for v in function.inputs)}, but was given {len(arguments)} arguments")
        return function.run_list({value.name: argument for value, argument in zip(function.inputs, arguments)}, **options)

    def _states(self) -> list[tuple[int, str, DType, tuple[int, ...]]]:
        info, found = ffi.new("tcrt_state_info_t *"), []
        for index in range(lib.tcrt_model_state_count(self._handle())):
            _check(lib.tcrt_model_state(self._handle(), index, info))
            found.append((index, _text(info.name), DTYPES[info.dtype], tuple(info.dims[0 : info.rank])))
        return found

    def _tensor(self, dtype: Any, shape: tuple[int, ...], array: np.ndarray) -> Any:
        tensor = ffi.new("tcrt_tensor_t *")
        tensor.dtype, tensor.rank, tensor.size_bytes = dtype.number, len(shape), array.nbytes
        tensor.dims[0 : len(shape)] = shape
        buffer = ffi.from_buffer(_bytes_of(array)) if array.size else ffi.NULL
        tensor.data = buffer
        return tensor, buffer

    def _read_state(self, index: int, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        result = np.empty(shape, dtype.numpy)
        tensor, _buffer = self._tensor(dtype, shape, result)
        _check(lib.tcrt_context_read_state(self._only_context(self.main).handle, index, tensor))
        return result

    def _further_names(self) -> dict[str, str]:
        """Further names of states: of tied parameters."""
        return next((json.loads(self._read_state(index, dtype, shape).tobytes()) for index, name, dtype, shape in self._states() if name == _TIED), {})

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of all states by name; torch.from_numpy of those without "optimizer." and "tc." is the module's state_dict, in which tied parameters have
        all their names."""
        with self._state_lock or contextlib.nullcontext():
            result = {name: self._read_state(index, dtype, shape) for index, name, dtype, shape in self._states() if name != _TIED}
            result.update((name, result[state]) for name, state in self._further_names().items())
        return result

    def load_state_dict(self, states: Mapping[str, Any], strict: bool = True) -> None:
        """Sets states: arrays, or tensors of PyTorch, of the same shapes and dtypes. strict: refuses names that there are not, and parameters and buffers that
        are missing; those of the optimiser and of random numbers may always be. Nothing is set where one of them is
        refused (RefusedError)."""
        known = {name: (index, dtype, shape) for index, name, dtype, shape in self._states() if name != _TIED}
        with self._state_lock or contextlib.nullcontext():
            known.update((name, known[state]) for name, state in self._further_names().items())
        if strict:
            unknown = sorted(set(states) - set(known))
            missing = sorted(n for n in set(known) - set(states) if not n.startswith(("optimizer.", "tc.")))
            if unknown or missing:
                problems = [f"there is no {', '.join(unknown)}"] * bool(unknown) + [f"missing are {', '.join(missing)}"] * bool(missing)
                raise RefusedError(f"{self.path}: states do not match: {'; '.join(problems)}")
        with self._state_lock or contextlib.nullcontext():
            context, tensors = self._only_context(self.main).handle, []
            for name, value in states.items():
                if name not in known:
                    continue
                index, dtype, shape = known[name]
                try:
                    given = value if isinstance(value, _Elements) else _elements_of(value)
                except TcError:
                    raise
                except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
                    raise RefusedError(f'{self.path}: state "{name}" cannot be read: {error}') from error
                if given.dtype != dtype.array or given.shape != shape:
                    was = f"{given.dtype} {list(given.shape)}"
                    raise RefusedError(f'{self.path}: state "{name}" is {dtype.name} {list(shape)}, but was given {was}')
                tensors.append((index, *self._tensor(dtype, shape, given.data)))
            for index, tensor, _buffer in tensors:
                _check(lib.tcrt_context_write_state(context, index, tensor))

    @property
    def learning_rates(self) -> list[float]:
        """Those of the next step, one for each group of the optimiser's parameters: the state "optimizer.lr". Assigning a number sets all of them, a sequence each."""
        with self._state_lock or contextlib.nullcontext():
            for index, name, dtype, shape in self._states():
                if name == _RATES:
                    return [float(rate) for rate in self._read_state(index, dtype, shape)]
        raise RefusedError(f"{self.path}: the optimizer takes its learning rate as a number of the compile; use another one for a schedule, such as SGD or AdamW")

    @learning_rates.setter
    def learning_rates(self, rates: Any) -> None:
        count = len(self.learning_rates)
        try: # also numbers of NumPy and tensors without dims
            values = np.array([float(rates)] * count if np.ndim(rates) == 0 else [float(rate) for rate in rates], np.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            text = f"learning rates are a number, or one for each group of parameters, but were given as {rates!r}"
            raise RefusedError(f"{self.path}: {text}") from error
        if values.shape != (count,):
            raise RefusedError(f"{self.path}: it takes a learning rate for each group of parameters, {count} in all, but {len(values)} {'was' if len(values) == 1 else 'were'} given")
        self.load_state_dict({_RATES: values}, strict=False)

    def reset(self) -> None:
        """Gives all states the values with which the artifact was compiled."""
        with self._state_lock or contextlib.nullcontext():
            _check(lib.tcrt_context_reset_state(self._only_context(self.main).handle, lib.TCRT_ALL_STATES))

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Writes the states as a safetensors file. Needs the package safetensors."""
        safetensors, name = _safetensors(), os.fspath(path)
        try:
            safetensors.numpy.save_file(self.state_dict(), name)
        except (OSError, safetensors.SafetensorError) as error:
            raise InvalidError(f"{name}: error: the states cannot be written: {error}") from error

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Sets the states that a safetensors file holds, as save_states or PyTorch's tools wrote it."""
        safetensors, name = _safetensors(), os.fspath(path)
        states: dict[str, Any]
        try:
            try:
                states = safetensors.numpy.load_file(name)
            except (AttributeError, KeyError, TypeError): # NumPy knows a type by ml_dtypes alone, which need not be here
                with open(name, "rb") as file:
                    states = {key: _elements_of_file(value) for key, value in safetensors.deserialize(file.read())}
        except (OSError, safetensors.SafetensorError) as error:
            raise InvalidError(f"{name}: error: the file holds no states that can be read: {error}; give a safetensors file, as save_states writes it") from error
        self.load_state_dict(states)


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise InvalidError("files of states need the package safetensors; install it with: pip install safetensors") from None
    return safetensors


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _argument_names(function: Callable[..., Any], skip: int, count: int, kind: str, taken: set[str]) -> list[str]:
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


def _takes_numbers(error: Exception) -> Exception | None:
    """What it says to a user, where an operator has no result without elements."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)):
        operator = str(error.func)
    elif found := re.search(r"value out of a tracing tensor with (\S+) - ", str(error)):
        operator = found[1]
    else:
        return None
    result = InvalidError(f"{operator} takes numbers or sizes from a tensor's elements, which a compiled step cannot do; write it with other operators")
    result.__cause__ = error
    return result


@contextlib.contextmanager
def _traced() -> Iterator[None]:
    """How a step is traced. Optimisers keep step counts as tensors, as they do under torch.compile; recurrent networks are operators of ATen; what
    checkpoints leave out is the compiler's to decide, and another run of it would draw other random numbers."""
    import torch
    from torch.utils import checkpoint

    def runs_once(*_arguments: Any, **_keywords: Any) -> Any:
        yield

    class Reentrant:
        @staticmethod
        def apply(function: Callable[..., Any], _preserves: bool, *arguments: Any) -> Any:
            return function(*arguments)

    replaced = {"_checkpoint_without_reentrant_generator": runs_once, "_checkpoint_without_reentrant_generator_impl": runs_once, "CheckpointFunction": Reentrant}
    before = {name: getattr(checkpoint, name) for name in replaced if hasattr(checkpoint, name)}
    compiling = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    for name in before:
        setattr(checkpoint, name, replaced[name])
    mkldnn = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    except (RuntimeError, NotImplementedError) as error:
        if "its data is not allocated yet" in str(error): # C++ that fills a tensor itself: reductions of ctc_loss
            raise InvalidError("the module, its loss or its optimizer gives numbers to an operator that makes a tensor of them, which is traced without elements; give "
                               "tensors instead, such as the lengths of ctc_loss") from error # fmt: skip
        if "aten._local_scalar_dense" not in str(error) and "aten.nonzero" not in str(error):
            raise _takes_numbers(error) or error
        raise InvalidError("the module, its loss or its optimizer takes a number or a size from a tensor's elements (item(), float(), nonzero()), which a compiled "
                           "step cannot do; compute with tensors, and use an optimizer that does") from error # fmt: skip
    finally:
        torch.compiler._is_compiling_flag = compiling
        torch._C._set_mkldnn_enabled(mkldnn)
        for name, value in before.items():
            setattr(checkpoint, name, value)


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
        lists: list[list[Any]] = [[] for _ in list(inspect.signature(optimizer._init_group).parameters)[1:]]
        optimizer._init_group(group, *lists)
        for p, gradient in zip(parameters, before):
            p.grad = gradient
            if group.get("momentum") and isinstance(optimizer, torch.optim.SGD) and optimizer.state[p].get("momentum_buffer") is None:
                optimizer.state[p]["momentum_buffer"] = torch.zeros_like(p)
    return {
        f"optimizer.{key}.{names[p]}": (p, key, value) for p, values in optimizer.state.items() for key, value in values.items() if isinstance(value, torch.Tensor)
    } # fmt: skip


# States of an optimiser by name, as (parameter, key, tensor).
_Moments = Mapping[str, "tuple[Any, str, Any]"]


def _take_step(optimizer: Any, of: Mapping[int, Any], moments: _Moments, values: Mapping[str, Any], rates: Sequence[Any] | None) -> None:
    """A step of the optimiser on other tensors: `of` the parameters' ids, which have gradients, and `values` of its states. `rates`: instead of its groups' own."""
    import torch

    traced = copy.copy(optimizer)
    # Of an optimiser's forms the one that takes no numbers from tensors.
    forms: Callable[[Any], dict[str, bool]] = lambda group: {"capturable": True, "foreach": False, "fused": False} if "capturable" in group else {"foreach": True, "fused": False}
    traced.param_groups = [
        {**group, "params": [of[id(p)] for p in group["params"] if id(p) in of], **{k: v for k, v in forms(group).items() if k in group}} for group in optimizer.param_groups
    ] # fmt: skip
    for group, rate in zip(traced.param_groups, rates or ()):
        group["lr"] = rate
    traced.state = type(optimizer.state)(dict)
    numbers = {} # eager computes with counts of steps in Python's precision: 1 - beta ** step cancels
    for name, (p, key, _) in moments.items():
        if id(p) in of:
            value = values[name]
            if value.dim() == 0 and value.dtype == torch.float32:
                value = numbers[name] = value.double()
            traced.state[of[id(p)]][key] = value
    with torch.no_grad():
        try:
            traced.step()
        except AssertionError as error: # what an optimiser asks for that a compiled step has not
            raise InvalidError(f"{type(optimizer).__name__} is not supported: {error}; use another optimiser of torch.optim") from error
        for name, number in numbers.items():
            values[name].copy_(number)


def _take_step_by_rates(optimizer: Any, of: Mapping[int, Any], moments: _Moments, values: Mapping[str, Any], rates: Sequence[Any]) -> None:
    """The same where what parameters move by is a multiple of the rate: it is taken with a rate of 1."""
    import torch

    before = {key: tensor.clone() for key, tensor in of.items()}
    _take_step(optimizer, of, moments, values, [1.0] * len(rates))
    with torch.no_grad():
        for group, rate in zip(optimizer.param_groups, rates):
            for key in (id(p) for p in group["params"] if id(p) in of):
                of[key].copy_(before[key] + (of[key] - before[key]) * rate)


def _stepping(optimizer: Any, moments: _Moments) -> Callable[..., None] | None:
    """How a step takes learning rates that are tensors; None where it cannot. Found out with one parameter of each group."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    if any("lr" not in group for group in optimizer.param_groups):
        return None
    chosen = [p for group in optimizer.param_groups for p in [p for p in group["params"] if p.requires_grad][:1]]
    gradients = [torch.randn_like(p) for p in chosen]

    def run(take: Callable[..., None], rates: Any) -> list[Any]:
        of = {id(p): p.detach().clone() for p in chosen}
        for p, gradient in zip(chosen, gradients):
            of[id(p)].grad = gradient.clone()
        take(optimizer, of, moments, {name: value.detach().clone() for name, (_, _, value) in moments.items()}, rates)
        return [*of.values()]

    given = _rates_of(optimizer)
    try:
        with _traced():
            make_fx(lambda rates: run(_take_step, list(rates.unbind())))(given)
        return _take_step
    except InvalidError: # it makes numbers of them
        pass
    for factor in (1.0, 0.25):
        with _traced():
            exact, found = (run(take, [float(rate) * factor for rate in given]) for take in (_take_step, _take_step_by_rates))
        if not all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(exact, found)):
            return None
    return _take_step_by_rates


def _rates_of(optimizer: Any) -> Any:
    import torch

    return torch.tensor([float(group["lr"]) for group in optimizer.param_groups], dtype=torch.float64)


def _state_names(module: Any) -> dict[str, str]:
    """Names of states by those of parameters and buffers: the same where a state_dict has them."""
    hidden = {f"{path}.{name}".removeprefix(".") for path, m in module.named_modules() for name in m._non_persistent_buffers_set}
    return {name: f"tc.buffer.{name}" if name in hidden else name for name, _ in [*module.named_parameters(), *module.named_buffers()]}


def _tied(module: Any, state_of: Mapping[str, str]) -> dict[str, str]:
    """States by further names that a state_dict has for them."""
    result: dict[str, str] = {}
    for members in (module.named_parameters, module.named_buffers):
        first = {id(value): name for name, value in members()}
        result.update((name, state_of[first[id(value)]]) for name, value in members(remove_duplicate=False) if first[id(value)] != name)
    return {name: state for name, state in result.items() if not state.startswith("tc.")}


def _copied(node: Any) -> Any:
    """What the node has the elements of."""
    # The schema of native_batch_norm does not say that it updates statistics.
    while str(node.target) in ("aten.clone.default", "aten.detach.default") and not any("batch_norm" in str(user.target) for user in node.users):
        node = node.args[0]
    return node


def _check_memory(tensors: Mapping[str, Any], changed: set[str]) -> None:
    """Refuses what a step changes if another tensor shows the change, which states of their own do not."""
    places = {}
    for name, value in tensors.items():
        if value.numel():
            last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride()))
            places[name] = (value.device, value.data_ptr(), value.data_ptr() + (last + 1) * value.element_size())
    for name in sorted(changed & set(places)):
        device, begin, end = places[name]
        for other, (other_device, other_begin, other_end) in places.items():
            if other != name and device == other_device and begin < other_end and other_begin < end:
                raise InvalidError(f'"{name}", which a step changes, and "{other}" share memory, which states cannot; make one of them a tensor of its own, with clone()')


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
        inner.register_buffer(last, plain(value.detach()).clone())
    return root


# Names of open dims, by argument and dim.
_Open = Mapping[str, Mapping[int, str]]


def _open_dims(dynamic: bool | _Open, arguments: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    """What `dynamic` says of arguments by name, checked; True: the first dim of all that have as many elements along it as the first one."""
    if not dynamic:
        return {}
    sizes = {name: tuple(value.shape) for name, value in arguments.items()}
    if dynamic is True:
        first = next(iter(sizes.values()), ())
        dynamic = {name: {0: "batch"} for name, shape in sizes.items() if shape[:1] == first[:1] and shape}
    names: dict[str, int] = {}
    for name, dims in dynamic.items():
        if name not in sizes:
            raise InvalidError(f'dynamic: there is no argument "{name}"; arguments are {", ".join(sizes)}')
        for dim, symbol in dims.items():
            if not 0 <= dim < len(sizes[name]):
                raise InvalidError(f'dynamic: "{name}" has no dim {dim}; its shape in the example is {list(sizes[name])}')
            size = sizes[name][dim]
            if size < 2 or names.setdefault(symbol, size) != size:
                raise InvalidError(f'dynamic: dim {dim} of "{name}" is {size} in the example; give 2 or more along open dims, and the same along all of one name')
    return {name: dict(dims) for name, dims in dynamic.items()}


def _without_numbers(tensors: Mapping[str, Any], opened: _Open) -> list[Any]:
    """Tensors without elements, whose open dims have symbols as sizes, one for each name."""
    import torch
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    mode = torch._subclasses.FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    result, sizes = [], dict[str, Any]()
    for name, value in tensors.items():
        own = opened.get(name, {})
        kinds = [DimDynamic.DYNAMIC if dim in own else DimDynamic.STATIC for dim in range(value.dim())]
        result.append(mode.from_tensor(value.detach(), symbolic_context=StatelessSymbolicContext(dynamic_sizes=kinds)))
        for dim, symbol in own.items():
            torch._check(sizes.setdefault(symbol, result[-1].shape[dim]) == result[-1].shape[dim])
    return result


def _export(run: Callable[..., Any], states: Mapping[str, Any], updated: Sequence[str], arguments: Mapping[str, Any], opened: _Open) -> Any:
    """run(*states, *arguments) -> (results, new values of `updated`), as a program with states, which is refused if states that others share memory with
    get other values. Dims that `opened` names have any size."""
    import torch
    from torch._dispatch.python import enable_python_dispatcher
    from torch.fx.experimental.proxy_tensor import make_fx

    from . import ctc
    from .dynamo.prepare import split_factors

    names = list(arguments)

    def trace(tensors: Sequence[Any]) -> Any:
        given: Callable[[], list[Any]] = lambda: [*(s.detach().clone() for s in tensors[: len(states)]), *tensors[len(states) :]]
        with _traced(), contextlib.ExitStack() as stack:
            if isinstance(tensors[-1], torch._subclasses.FakeTensor):
                stack.enter_context(tensors[-1].fake_mode)
                stack.enter_context(enable_python_dispatcher()) # operators that are written as others; in C++ some make numbers of symbols
            return make_fx(torch.func.functionalize(make_fx(run, decomposition_table=ctc.table)(*given()), remove="mutations"))(*given())

    tensors: list[Any] = [*states.values(), *arguments.values()]
    # Names of states have dots or are the optimiser's, and might be arguments' all the same.
    of_sizes_alone: Callable[[], list[Any]] = lambda: _without_numbers({**{f"state {name}": value for name, value in states.items()}, **arguments}, opened)
    try:
        tensors = of_sizes_alone() if opened else tensors
        graph = trace(tensors)
    except ctc.TracedWithNumbers:
        tensors = of_sizes_alone()
        graph = trace(tensors)
    split_factors(graph.graph)
    graph.recompile()
    for name, tensor in zip(names, tensors[len(states) :]):
        for dim, symbol in opened.get(name, {}).items():
            size = tensor.shape[dim]
            if not isinstance(size, torch.SymInt) or size.node.maybe_as_int() is not None:
                raise InvalidError(f'dynamic: the module, its loss or its optimizer works for the example\'s size of "{symbol}", {int(size)}, alone (dim {dim} of "{name}"); '
                                   "take sizes from tensors' shapes, name the dim of other inputs and targets of the same size, too, or leave it out of dynamic") # fmt: skip
    holder = _holder(states)

    def forward(given: Sequence[Any]) -> Any:
        first: dict[str, Any] = {}
        for name, value in zip(names, given):
            for dim, symbol in opened.get(name, {}).items():
                torch._check(first.setdefault(symbol, value.shape[dim]) == value.shape[dim])
        results, values = graph(*(holder.get_buffer(name) for name in states), *given)
        for name, value in zip(updated, values):
            holder.get_buffer(name).copy_(value)
        return results

    scope = {"run": forward}
    exec(f"def forward(self, {', '.join(names)}):\n    return run(({', '.join(names)},))", scope) # noqa: S102 - inputs' names are those of the function
    kind = type("Program", (type(holder),), {"forward": scope["forward"]})
    holder.__class__ = kind
    # torch.export infers which sizes serve, such as those up to a table's.
    sizes = {name: {dim: torch.export.Dim.AUTO for dim in opened.get(name, {})} or None for name in names}
    with torch.no_grad():
        try:
            program = torch.export.export(holder, tuple(arguments.values()), strict=False, dynamic_shapes=sizes if opened else None)
        except RuntimeError as error:
            raise _takes_numbers(error) or error
    own = program.graph_signature.inputs_to_buffers
    writes = [n for n in program.graph.nodes if n.target is torch.ops.aten.copy_.default and n.args[0].name in own]
    _check_memory(states, {own[n.args[0].name] for n in writes if _copied(n.args[1]) is not n.args[0]})
    return program


def export_training(module: Any, loss: Callable[..., Any], optimizer: Any, example: Any, path: str | os.PathLike[str], *, dynamic: bool | _Open = False) -> None:
    """Writes what compile_training compiles as an archive (.pt2), for tc-compile elsewhere. Arguments are compile_training's."""
    import torch
    from torch.export.pt2_archive._package import package_pt2

    if not isinstance(example, (tuple, list)) or len(example) != 2:
        raise InvalidError("example is (inputs, targets), each a tensor or a tuple of tensors")
    if not callable(loss):
        raise InvalidError(f"loss is of type {type(loss).__name__}; give a function of the module's output and the targets, such as torch.nn.functional.cross_entropy")
    if not isinstance(optimizer, torch.optim.Optimizer) and not callable(optimizer):
        raise InvalidError(f"optimizer is of type {type(optimizer).__name__}; give one of torch.optim, or a function that makes one of the parameters")
    inputs, targets = _tuple(example[0]), _tuple(example[1])
    module, optimizer = copy.deepcopy((module, optimizer)) if isinstance(optimizer, torch.optim.Optimizer) else (copy.deepcopy(module), optimizer)
    optimizer = optimizer if isinstance(optimizer, torch.optim.Optimizer) else optimizer(module.parameters())
    parameters = dict(module.named_parameters())
    fixed = {name: p for name, p in parameters.items() if not p.requires_grad} | dict(module.named_buffers())
    trained = [name for name, p in parameters.items() if p.requires_grad]
    if not trained:
        raise InvalidError("the module has no parameter that requires a gradient; call requires_grad_() on those to train")
    moments = _initial_states(optimizer, {p: name for name, p in parameters.items()})
    state_of = _state_names(module)
    states = {**{state_of[name]: value for name, value in (parameters | fixed).items()}, **{name: value for name, (_, _, value) in moments.items()}}
    if tied := _tied(module, state_of):
        states[_TIED] = torch.tensor(list(json.dumps(tied).encode()), dtype=torch.uint8)
    if take := _stepping(optimizer, moments):
        states[_RATES] = _rates_of(optimizer)
    kept_as_they_are = [name for name in (_TIED, _RATES) if name in states]
    count = len(states)
    modes = {m: m.training for m in module.modules()} if module.training else {}

    class Model(torch.nn.Module):
        """The module and its loss, with what the module makes of its buffers."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, given: Any, wanted: Any) -> Any:
            value = loss(self.module(*given), *wanted)
            return value, {name: functools.reduce(getattr, name.split("."), self.module) for name in fixed}

    model = Model()

    def step(*flat: Any) -> Any:
        now = dict(zip(states, flat[:count]))
        given, wanted = flat[count : count + len(inputs)], flat[count + len(inputs) :]
        module.train()
        for m, mode in modes.items(): # some of a module in training may not be
            m.training = mode
        at = {name: now[state_of[name]].detach().clone().requires_grad_() for name in trained}
        own = {name: now[state_of[name]].detach().clone() for name in fixed}
        with torch.enable_grad():
            found, made = torch.func.functional_call(model, {f"module.{name}": value for name, value in {**at, **own}.items()}, (given, wanted))
            if not isinstance(found, torch.Tensor) or found.numel() != 1 or not found.requires_grad:
                what = f"{found.dtype} {list(found.shape)}".removeprefix("torch.") if isinstance(found, torch.Tensor) else f"a {type(found).__name__}"
                raise InvalidError(f"the loss must be a tensor with one element that depends on parameters that require a gradient, but is {what}"
                                   f"{', which does not' if isinstance(found, torch.Tensor) and not found.requires_grad else ''}") # fmt: skip
            # None of those that the loss does not depend on, which optimisers leave as they are.
            gradients = dict(zip(trained, torch.autograd.grad(found, list(at.values()), torch.ones_like(found), allow_unused=True)))
        for name, gradient in gradients.items():
            if gradient is not None and gradient.layout != torch.strided:
                raise InvalidError(f'the gradient of "{name}" is sparse, which a compiled step does not have; make its embedding with sparse=False')
        new = {**{name: at[name].detach() for name in trained}, **{name: now[name].clone() for name in moments}}
        for name in trained:
            new[name].grad = gradients[name]
        rates = list(now[_RATES].unbind()) if take else None
        (take or _take_step)(optimizer, {id(p): new[name] for name, p in parameters.items() if name in new}, moments, new, rates)
        return {"loss": found.detach().reshape(())}, [*(new[name] for name in [*trained, *moments]), *(made[name].detach() for name in fixed), *(now[n].clone() for n in kept_as_they_are)]

    def evaluate(*flat: Any) -> Any:
        now = dict(zip(parameters | fixed, flat[: len(kept)]))
        module.eval()
        with torch.no_grad():
            return tuple(torch.utils._pytree.tree_leaves(torch.func.functional_call(module, now, flat[len(kept) :]))), []

    kept = {state_of[name]: value for name, value in (parameters | fixed).items()}
    taken: set[str] = set()
    names = _argument_names(module.forward, 0, len(inputs), "input", taken)
    names += _argument_names(loss.forward if isinstance(loss, torch.nn.Module) else loss, 1, len(targets), "target", taken)
    arguments = dict(zip(names, [*inputs, *targets]))
    for_evaluation = dict(zip(names, inputs))
    opened = _open_dims(dynamic, arguments)
    updated = [*(state_of[n] for n in trained), *moments, *(state_of[n] for n in fixed), *kept_as_they_are]
    programs = {
        "step": _export(step, states, updated, arguments, opened),
        "evaluate": _export(evaluate, kept, [], for_evaluation, {name: dims for name, dims in opened.items() if name in for_evaluation}),
    } # fmt: skip
    package_pt2(os.fspath(path), exported_programs=programs, extra_files={"tc.shared_states": ""})


def compile_training(module: Any, loss: Callable[..., Any], optimizer: Any, example: Any, *, dynamic: bool | _Open = False,
                     output: str | os.PathLike[str] | None = None, threads: int = 0, **options: Any) -> TrainingArtifact: # fmt: skip
    """Compiles steps of training and evaluation of a torch.nn.Module into one artifact.

    loss: (the module's output, *targets) -> a scalar tensor. optimizer: of torch.optim, made of the module's parameters, or a function that makes one of
    them; what it has gathered so far is the artifact's first state, as the module's parameters and buffers are. example: (inputs, targets), each a
    tensor or a tuple of them, whose shapes and dtypes are those of all calls. dynamic: True leaves the first dim open, the batch, of inputs and targets
    that have the first one's size there; {argument: {dim: name}} those dims, with one size for each name in a call. output: where the artifact stays (None: in memory). threads: of later
    runs. Other keywords are tc-compile's options. The module and the optimiser stay as they are. Raises UnsupportedError, which names nodes, and other
    TcErrors.
    """
    with tempfile.TemporaryDirectory(prefix="tc-") as folder:
        path = os.path.join(folder, "training.pt2")
        export_training(module, loss, optimizer, example, path, dynamic=dynamic)
        device = "cuda" if options.get("target") == "cuda" else None
        return TrainingArtifact(_compile_file(path, output, folder, _options(options)), threads=threads, device=device)
