# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts: compiled models that libtcrt loads and runs."""
from __future__ import annotations

import collections
import dataclasses
import functools
import html
import json
import math
import os
import threading
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from . import pictures, reports
from ._tcrt import ffi, lib
from .arrays import (
    DeviceArray, View, _bytes_of, _check, _text, array_of_torch, dtype_of_torch, gpu_named_by, gpu_of, is_index, is_of_torch,
    is_on_gpu, problem_of_target, refused, resolved, stream_of, view_of,
) # fmt: skip
from .dtypes import DTYPES, DType, pack, unpack
from .errors import InvalidError, RefusedError, TcError

Arrays = Mapping[str, Any]
_DEVICES = {"cpu": lib.TCRT_DEVICE_CPU, "cuda": lib.TCRT_DEVICE_CUDA}


_from_buffer, _MISSING = ffi.from_buffer, object()
_generation = 0 # of processes: forks count


def _count_fork() -> None:
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_count_fork)


@dataclasses.dataclass(frozen=True)
class Value:
    """An input or output. `dtype`: NumPy's, of what is inside where it is no tensor; `shape`: sizes, or names of symbols, or None where only a run
    knows; `kind`: "tensor", "sequence", "optional" or "map"; `has_default`: an input that may be left out."""

    name: str
    dtype: DType
    shape: tuple[int | str | None, ...]
    kind: str = "tensor"
    has_default: bool = False
    inner: int = 0


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A size that the run knows: minimum <= size <= maximum, size % divisor == 0."""

    name: str
    minimum: int
    maximum: int
    divisor: int


def _values(model: Any, function: int, count: int, get: Callable[[Any, int, int, Any], int]) -> list[Value]:
    info, symbol, values = ffi.new("tcrt_value_info_t *"), ffi.new("tcrt_symbol_info_t *"), []
    kinds = ["tensor", "sequence", "optional", "map"]
    for index in range(count):
        _check(get(model, function, index, info))
        shape: list[int | str | None] = []
        for dim in range(info.rank):
            if info.symbols[dim] >= 0:
                _check(lib.tcrt_model_function_symbol(model, function, info.symbols[dim], symbol))
                shape.append(_text(symbol.name))
            else:
                shape.append(info.dims[dim] if info.dims[dim] >= 0 else None)
        has_default = bool(info.flags & lib.TCRT_VALUE_FLAG_DEFAULT)
        values.append(Value(_text(info.name), DTYPES[info.dtype], tuple(shape), kinds[info.kind], has_default, info.inner))
    return values


# Artifacts that were given as bytes, with a mark for each model and context that reads them. The collector ends what is in a cycle in any order, but
# not what the module has; a deque needs no lock, which a destructor could not wait for.
_read: dict[int, tuple[Any, collections.deque[Any]]] = {}


def _keep(data: Any) -> int:
    """The key of bytes that libtcrt reads, 0 of none, for whoever ends with `_release`."""
    if data is None:
        return 0
    _read.setdefault(id(data), (data, collections.deque()))[1].append(None)
    return id(data)


def _release(key: int) -> None:
    if key:
        readers = _read[key][1]
        readers.pop()
        if not readers:
            del _read[key]


def _close(key: int, handle: Any) -> None:
    lib.tcrt_model_close(handle)
    _release(key)


def _destroy(key: int, handle: Any) -> None:
    lib.tcrt_context_destroy(handle)
    _release(key)


def _create_context(model: "Artifact", stream: int = 0, team: Any = None) -> Any:
    """A tcrt_context_t, which is destroyed with the result; `stream`: the caller's on a GPU (0: one of its own); `team`: a tcrt_team_t."""
    options = ffi.new("tcrt_context_options_t *")
    options.size = ffi.sizeof("tcrt_context_options_t")
    options.threads = model._threads
    options.profile = lib.TCRT_PROFILE_KERNELS if model._profiles else lib.TCRT_PROFILE_OFF
    options.stream = ffi.cast("void *", stream)
    options.team = team if team is not None else ffi.NULL
    options.device_outputs = True # _array_of copies them
    made, data = ffi.new("tcrt_context_t **"), model._data # close() takes these away after the model
    _check(lib.tcrt_context_create(model._handle(), options, made))
    return ffi.gc(made[0], functools.partial(_destroy, _keep(data)))


class _Context:
    """A context of one function, with the tensors that its calls are given; by one thread at a time."""

    def __init__(self, model: "Artifact", function: "Function"):
        self.model = model._handle() # which must be closed later
        self.handle = _create_context(model, model._stream)
        _check(lib.tcrt_context_set_function(self.handle, function.index))
        self._prepare(function)

    def _prepare(self, function: "Function") -> None:
        """Tensors for the function's calls."""
        self.inputs = ffi.new("tcrt_tensor_t[]", max(1, len(function.inputs)))
        self.outputs = ffi.new("tcrt_tensor_t[]", max(1, len(function.outputs)))
        self.shapes: list[tuple[int, ...] | None] = [None] * len(function.inputs)
        self.output_shapes: list[tuple[int, ...] | None] | None = None
        # Arrays of NumPy's own dtypes are read where they are; None: others.
        self.plan = [(i, v.name, np.dtype(v.dtype.array) if v.dtype.is_of_numpy else None, self.inputs[i]) for i, v in enumerate(function.inputs)]
        self.output_plan: list[tuple[int, Any, tuple[int, ...] | None, np.dtype]] = []


class _Place:
    """Where a run's arrays are. `stream`: the run's; `waits`: it is over when the call returns, in any case; `is_to_gpu`: results without an array in
    `out` stay on the GPU; `owner`: of the stream."""

    def __init__(self, artifact: "Artifact", stream: int, owner: Any, waits: bool, is_to_gpu: bool, out: Arrays):
        self.artifact, self.stream, self.owner, self.waits, self.is_to_gpu, self.out = artifact, stream, owner, waits, is_to_gpu, out

    @classmethod
    def of(cls, artifact: "Artifact", stream: Any, device: str | None, out: Arrays, has_gpu_inputs: bool) -> "_Place":
        is_to_gpu = has_gpu_inputs if device is None else device != "cpu"
        if artifact._gpu is None:
            if device is not None and device != "cpu":
                raise InvalidError(f'{artifact.path}: it runs on the CPU, so results are not on {device}; load it with device="{device}"')
            if stream is not None:
                raise InvalidError(f'{artifact.path}: it runs on the CPU, which has no streams; leave out stream, or load it with device="cuda"')
        elif device is not None and device != "cpu" and device != "cuda" and gpu_of(device) != artifact._gpu:
            raise InvalidError(f'{artifact.path}: it runs on cuda:{artifact._gpu}, so results are not on {device}; load it with device="{device}"')
        own = artifact._stream if stream is None and artifact._stream else stream_of(stream)
        return cls(artifact, own, stream, stream is None, is_to_gpu, out)

    def view_of(self, array: Any, value: Value) -> View:
        """Where an input on a GPU lies."""
        path, name = self.artifact.path, value.name
        if self.artifact._gpu is None:
            raise RefusedError(f'{path}: input "{name}" is in memory of a GPU, but the artifact runs on the CPU; give it from host memory (.cpu(), .get()), or load the artifact with device="cuda"') # fmt: skip
        if value.dtype.is_packed or value.dtype.name == "string":
            raise RefusedError(f'{path}: input "{name}" has elements of {value.dtype.name}, which are taken from host memory alone')
        view: View | None = None
        gpu: int | None = gpu_named_by(array) # before it is exported, which PyTorch refuses for GPUs that are not the current one
        try:
            if gpu in (self.artifact._gpu, -1):
                view = view_of(resolved(array), self.stream)
                gpu = view.gpu
        except (BufferError, RuntimeError, TypeError, NotImplementedError, ValueError) as error:
            raise refused(path, name, error) from error
        if view is None or gpu not in (self.artifact._gpu, -1):
            raise RefusedError(f'{path}: input "{name}" is on cuda:{gpu}, but the artifact runs on cuda:{self.artifact._gpu}; move it there, or load the artifact with device="cuda:{gpu}"') # fmt: skip
        if not view.has(value.dtype):
            raise RefusedError(f'{path}: input "{name}" is {view.name}, but the model takes {value.dtype.array}; convert it')
        if not view.is_contiguous:
            raise RefusedError(f'{path}: input "{name}" is not row-major, and arrays on a GPU are not copied; give what its .contiguous() returns')
        return view

    def target_of(self, value: Value) -> View:
        """Where an array of `out` lies."""
        path, name, array = self.artifact.path, value.name, self.out[value.name]
        if value.dtype.is_packed or value.dtype.name == "string":
            raise InvalidError(f'{path}: output "{name}" has elements of {value.dtype.name}, which are not written into arrays of the caller; leave it out of out')
        gpu, view = gpu_named_by(array) if is_on_gpu(array) else None, None
        if gpu is not None and self.artifact._gpu is None:
            raise InvalidError(f'{path}: output "{name}": what out gives is in memory of a GPU, but the artifact runs on the CPU; give an array in host memory')
        try:
            if gpu in (None, self.artifact._gpu, -1):
                view = view_of(array, self.stream)
                gpu = view.gpu
        except (BufferError, RuntimeError, TypeError, NotImplementedError, ValueError) as error:
            raise InvalidError(f'{path}: output "{name}" cannot be written into what out gives: {error}') from error
        if view is None or gpu not in (None, self.artifact._gpu, -1):
            raise InvalidError(f'{path}: output "{name}": what out gives is on cuda:{gpu}, but the artifact runs on cuda:{self.artifact._gpu}')
        return view

    def check_target(self, target: View, value: Value, shape: tuple[int, ...]) -> None:
        problem = problem_of_target(target, value.dtype, shape)
        if problem is not None:
            raise InvalidError(f'{self.artifact.path}: output "{value.name}": what out gives is {problem}')

    def take(self, tensor: Any, value: Value, target: View | None) -> Any:
        """The result in a tensor that belongs to a context; the run is over."""
        shape = tuple(tensor.dims[0 : tensor.rank])
        is_on_host = tensor.device == lib.TCRT_DEVICE_CPU
        size, gpu, stream = int(tensor.size_bytes), self.artifact._gpu or 0, ffi.cast("void *", self.stream)
        if target is not None:
            self.check_target(target, value, shape)
            data = ffi.cast("void *", target.address)
            if size and is_on_host and target.gpu is None:
                ffi.memmove(data, tensor.data, size)
            elif size:
                to_gpu, from_gpu = target.gpu is not None, not is_on_host
                direction = lib.TCRT_COPY_HOST_TO_DEVICE if not from_gpu else lib.TCRT_COPY_DEVICE_TO_DEVICE if to_gpu else lib.TCRT_COPY_DEVICE_TO_HOST
                _check(lib.tcrt_gpu_copy(gpu, data, tensor.data, size, direction, stream))
                _check(lib.tcrt_gpu_wait(gpu, stream))
            return self.out[value.name]
        if not self.is_to_gpu or is_on_host or value.dtype.is_packed:
            return _array_of(tensor, self.artifact)
        result = DeviceArray(shape, value.dtype, gpu, self.stream, self.owner)
        if size:
            _check(lib.tcrt_gpu_copy(gpu, ffi.cast("void *", result._address), tensor.data, size, lib.TCRT_COPY_DEVICE_TO_DEVICE, stream))
            _check(lib.tcrt_gpu_wait(gpu, stream)) # the context's memory is its next run's
        return result


class Function:
    """A function of an artifact. Calls may come from any number of threads at once; each runs in a context of its own, which is kept for later
    ones. Functions that have states run one call after the other, in one context."""

    def __init__(self, artifact: "Artifact", index: int):
        info = ffi.new("tcrt_function_info_t *")
        model = artifact._handle()
        _check(lib.tcrt_model_function(model, index, info))
        self.artifact, self.index, self.name = artifact, index, _text(info.name)
        self.inputs = _values(model, index, info.input_count, lib.tcrt_model_function_input)
        self.outputs = _values(model, index, info.output_count, lib.tcrt_model_function_output)
        symbol = ffi.new("tcrt_symbol_info_t *")
        self.symbols = []
        for i in range(info.symbol_count):
            _check(lib.tcrt_model_function_symbol(model, index, i, symbol))
            self.symbols.append(Symbol(_text(symbol.name), symbol.min, symbol.max, symbol.divisor))
        self._names = {value.name for value in self.inputs}
        self._has_keywords = not self._names.isdisjoint(("stream", "device", "out"))
        self._are_tensors = all(value.kind == "tensor" for value in self.inputs + self.outputs)
        self._contexts: collections.deque[_Context] = collections.deque()
        self._placed_contexts: collections.deque[_Context] = collections.deque() # whose tensors may be on a GPU, or the caller's

    def __repr__(self) -> str:
        def show(values: list[Value]) -> str:
            return ", ".join(f"{v.name}: {'' if v.kind == 'tensor' else v.kind + ' of '}{v.dtype.name}{list(v.shape)}" for v in values)

        return f"{self.name}({show(self.inputs)}) -> ({show(self.outputs)})"

    def __call__(self, inputs: Arrays | None = None, /, *, stream: Any = None, device: str | None = None, out: Arrays | None = None, **named: Any) -> dict[str, Any]:
        """Runs the function. Inputs by name: NumPy arrays, what DLPack exports (torch tensors), or what numpy.asarray takes; lists are sequences, None is
        an optional that is absent, dicts are maps. dtypes must be the model's. Contiguous arrays are read where they are; in memory of a GPU, which
        also __cuda_array_interface__ may show, by code for that GPU alone.

        Results are by the outputs' names: new NumPy arrays, or DeviceArrays where an input is in memory of the GPU or device is "cuda" ("cpu": in no
        case). out: arrays that results are written into, and which are returned, by names of outputs. stream: an int or a stream object; the run comes
        after what is in that stream, before what comes later, and is not waited for where all arrays are on the GPU (None: CUDA's default stream, and
        the run is over when it returns). Where an input has one of these three names, the keyword is that input, unless `inputs` has it.

        Raises RefusedError for inputs that the model does not take, InvalidError for wrong out, stream and device, and other TcErrors."""
        if type(inputs) is not dict and inputs is not None and not isinstance(inputs, Mapping):
            first = self.inputs[0].name if self.inputs else "x"
            raise InvalidError(f'{self.artifact.path}: inputs are given by name, not as {type(inputs).__name__}: artifact({{"{first}": array}})')
        given = {**(inputs or {}), **named}
        if self._has_keywords:
            options = {"stream": stream, "device": device, "out": out}
            for name in options.keys() & self._names - given.keys():
                if options[name] is not None:
                    given[name], options[name] = options[name], None
            stream, device, out = options.values()
        results = self.run_list(given, stream=stream, device=device, out=out)
        return {value.name: result for value, result in zip(self.outputs, results)}

    def run_list(self, given: Arrays, wanted: Sequence[int] | None = None, *, stream: Any = None, device: str | None = None, out: Arrays | None = None) -> list[Any]:
        """As a call, but the outputs of these indices (None: all) in a list."""
        artifact, place = self.artifact, None
        if artifact._model is None:
            artifact._handle()
        if out is not None and not isinstance(out, Mapping):
            raise InvalidError(f"{artifact.path}: out is a {type(out).__name__}; give a dict of arrays by the names of outputs")
        if stream is not None or device is not None or out:
            place = _Place.of(artifact, stream, device, out or {}, any(map(is_on_gpu, given.values())))
        else:
            for array in given.values():
                if type(array) is not np.ndarray and is_on_gpu(array):
                    place = _Place.of(artifact, None, None, {}, True)
                    break
        if artifact._state_lock is not None:
            with artifact._state_lock:
                context = artifact._only_context(self, place is not None)
                return self._run_in(context, given, wanted) if place is None else self._run_placed(context, given, wanted, place)
        contexts = self._contexts if place is None else self._placed_contexts
        try:
            context = contexts.pop()
        except IndexError:
            context = _Context(artifact, self)
        try:
            return self._run_in(context, given, wanted) if place is None else self._run_placed(context, given, wanted, place)
        finally:
            contexts.append(context)
            if artifact._model is None: # closed while the call was under way
                contexts.clear()

    def _run_in(self, context: _Context, given: Arrays, wanted: Sequence[int] | None) -> list[Any]:
        # Most of what a small model's call takes is here: no work but for what changes from call to call.
        if self.artifact._generation != _generation:
            self._refuse_fork()
        kept: list[Any] = []
        if not self._are_tensors:
            self._check_names(given)
            return self._run_values(context, given, wanted, kept)
        shapes, found = context.shapes, 0
        for index, name, dtype, tensor in context.plan:
            array = given.get(name, _MISSING)
            if array is _MISSING:
                self._leave_out(context, index)
                continue
            found += 1
            if dtype is not None and type(array) is np.ndarray and array.dtype == dtype and array.flags.c_contiguous:
                buffer = _from_buffer(array)
                kept.append(buffer)
                tensor.data = buffer
                shape = array.shape
                if shape != shapes[index]:
                    tensor.size_bytes = array.nbytes
            else:
                shape = self._fill(tensor, self.inputs[index], array, kept)
            if shape != shapes[index]:
                if len(shape) > lib.TCRT_MAX_RANK:
                    raise RefusedError(f'{self.artifact.path}: input "{name}" has rank {len(shape)}; at most {lib.TCRT_MAX_RANK} is supported')
                context.output_shapes = None # also where the call fails
                shapes[index] = shape
                tensor.dtype, tensor.rank = self.inputs[index].dtype.number, len(shape)
                tensor.dims[0 : len(shape)] = shape
        if found != len(given):
            self._check_names(given)
        if context.output_shapes is None:
            self._infer(context)
        results: list[Any] = []
        for index, tensor, shape, dtype in context.output_plan:
            if shape is None:
                tensor.data = ffi.NULL
                results.append(None)
                continue
            result = np.empty(shape, dtype)
            buffer = _from_buffer(result if dtype.isbuiltin == 1 else _bytes_of(result))
            tensor.data = buffer
            kept.append(buffer)
            results.append(result)
        status = lib.tc_run(context.handle, len(self.inputs), context.inputs, len(self.outputs), context.outputs)
        if status:
            context.output_shapes = None
            _check(status)
        for index, tensor, shape, _ in context.output_plan:
            if shape is None:
                results[index] = _array_of(tensor, self.artifact)
        return results if wanted is None else [results[index] for index in wanted]

    def _run_placed(self, context: _Context, given: Arrays, wanted: Sequence[int] | None, place: _Place) -> list[Any]:
        """A run some of whose arrays are on a GPU, or given by the caller for results."""
        if self.artifact._generation != _generation:
            self._refuse_fork()
        artifact, kept = self.artifact, []
        if not self._are_tensors:
            raise RefusedError(f"{artifact.path}: functions with sequences, optionals or maps take and return arrays in host memory, without out, stream and device")
        self._check_names(given)
        gpu, waits = artifact._gpu or 0, place.waits
        for index, value in enumerate(self.inputs):
            array, tensor = given.get(value.name, _MISSING), context.inputs[index]
            if array is _MISSING:
                self._leave_out(context, index)
                continue
            if is_on_gpu(array):
                view = place.view_of(array, value)
                kept.append(view)
                shape, tensor.device = view.shape, lib.TCRT_DEVICE_CUDA
                tensor.data, tensor.size_bytes = ffi.cast("void *", view.address), math.prod(shape) * value.dtype.bits // 8
            else:
                shape, tensor.device, waits = self._fill(tensor, value, array, kept), lib.TCRT_DEVICE_CPU, True
            if shape != context.shapes[index] or not tensor.dtype:
                if len(shape) > lib.TCRT_MAX_RANK:
                    raise RefusedError(f'{artifact.path}: input "{value.name}" has rank {len(shape)}; at most {lib.TCRT_MAX_RANK} is supported')
                context.output_shapes = None # also where the call fails
                context.shapes[index] = shape
                tensor.dtype, tensor.rank = value.dtype.number, len(shape)
                tensor.dims[0 : len(shape)] = shape
        targets = {value.name: place.target_of(value) for value in self.outputs if value.name in place.out}
        for name in place.out.keys() - targets.keys():
            raise InvalidError(f'{artifact.path}: there is no output "{name}" for out; outputs are {", ".join(value.name for value in self.outputs)}')
        if context.output_shapes is None:
            self._infer(context)
        results: list[Any] = []
        for (index, tensor, bound, _), value in zip(context.output_plan, self.outputs):
            target = targets.get(value.name)
            tensor.data, tensor.device, result = ffi.NULL, lib.TCRT_DEVICE_CPU, None
            if target is not None and bound is not None:
                place.check_target(target, value, bound)
                tensor.data, result = ffi.cast("void *", target.address), place.out[value.name]
                if target.gpu is None:
                    waits = True
                else:
                    tensor.device = lib.TCRT_DEVICE_CUDA
            elif bound is None: # what the run tells is copied from the context
                waits = True
            elif place.is_to_gpu:
                result = DeviceArray(bound, value.dtype, gpu, place.stream, place.owner)
                tensor.data, tensor.device = ffi.cast("void *", result._address), lib.TCRT_DEVICE_CUDA
            else:
                result, waits = np.empty(bound, value.dtype.numpy), True
                tensor.data = buffer = _from_buffer(_bytes_of(result))
                kept.append(buffer)
            results.append(result)
        stream = ffi.cast("void *", place.stream)
        status = lib.tc_run_on(context.handle, gpu, stream, waits, len(self.inputs), context.inputs, len(self.outputs), context.outputs)
        if status:
            context.output_shapes = None
            _check(status)
        for (index, tensor, bound, _), value in zip(context.output_plan, self.outputs):
            if bound is None:
                results[index] = place.take(tensor, value, targets.get(value.name))
        return results if wanted is None else [results[index] for index in wanted]

    def _refuse_fork(self) -> None:
        raise InvalidError(f"{self.artifact.path}: a forked process cannot use an artifact that its parent loaded; load it again")

    def _check_names(self, given: Arrays) -> None:
        for name in given:
            if name not in self._names:
                raise RefusedError(f'{self.artifact.path}: there is no input "{name}"; inputs are {", ".join(sorted(self._names))}')

    def _missing(self, value: Value) -> RefusedError:
        return RefusedError(f'{self.artifact.path}: input "{value.name}" is missing; inputs are {", ".join(v.name for v in self.inputs)}')

    def _leave_out(self, context: _Context, index: int) -> None:
        value, tensor = self.inputs[index], context.inputs[index]
        if not value.has_default:
            raise self._missing(value)
        if tensor.dtype != 0:
            context.output_shapes = None
        tensor.dtype, context.shapes[index] = 0, None

    def _fill(self, tensor: Any, value: Value, given: Any, kept: list[Any]) -> tuple[int, ...]:
        """Lets the tensor show what is given, whose shape this returns; `kept`: what must live until the run is over."""
        if type(given) is not np.ndarray and is_on_gpu(given): # inside of a sequence, an optional or a map
            raise RefusedError(f'{self.artifact.path}: input "{value.name}" holds an array in memory of a GPU; give it from host memory (.cpu(), .get())')
        array = given if type(given) is np.ndarray else self._as_array(given, value)
        if value.dtype.name == "string":
            strings, buffers = _strings_of(array)
            kept += [strings, buffers]
            tensor.data, tensor.size_bytes = strings, array.size * ffi.sizeof("tcrt_string_t")
            return array.shape
        if array.dtype != value.dtype.numpy:
            raise RefusedError(
                f'{self.artifact.path}: input "{value.name}" is {array.dtype}, but the model takes {value.dtype.numpy}; convert it with .astype("{value.dtype.numpy}")'
            )
        if value.dtype.is_packed:
            data = pack(array, value.dtype.bits)
        else:
            data = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        buffer = ffi.from_buffer(_bytes_of(data))
        kept.append(buffer)
        tensor.data, tensor.size_bytes = buffer, data.nbytes
        return array.shape

    def _as_array(self, given: Any, value: Value) -> np.ndarray:
        if is_of_torch(given) and dtype_of_torch(given) is not value.dtype:
            kind = str(given.dtype).removeprefix("torch.")
            text = f"is {kind}, but the model takes {value.dtype.array}; convert it with .to"
            raise RefusedError(f'{self.artifact.path}: input "{value.name}" {text}')
        try:
            return _as_array(given, value)
        except TcError:
            raise
        except (BufferError, RuntimeError, TypeError, NotImplementedError, ValueError, OverflowError) as error:
            raise refused(self.artifact.path, value.name, error) from error

    def _infer(self, context: _Context) -> None:
        context.output_shapes = None
        for index in range(len(self.inputs)):
            tensor = context.inputs + index if context.inputs[index].dtype else ffi.NULL
            _check(lib.tcrt_context_set_input(context.handle, index, tensor))
        _check(lib.tcrt_context_infer(context.handle))
        shapes: list[tuple[int, ...] | None] = []
        tensor = ffi.new("tcrt_tensor_t *")
        for index, value in enumerate(self.outputs):
            _check(lib.tcrt_context_output_shape(context.handle, index, tensor))
            shape = tuple(tensor.dims[0 : tensor.rank])
            # What is of another form in arrays, or of a size that the run tells, or of no size, is copied from the context.
            is_bound = all(size > 0 for size in shape) and value.dtype.name != "string" and not value.dtype.is_packed
            shapes.append(shape if is_bound else None)
            if is_bound:
                output = context.outputs[index]
                output.dtype, output.size_bytes, output.device = value.dtype.number, tensor.size_bytes, lib.TCRT_DEVICE_CPU
        context.output_shapes = shapes
        context.output_plan = [(i, context.outputs[i], shape, value.dtype.numpy) for i, (value, shape) in enumerate(zip(self.outputs, shapes))]

    def _run_values(self, context: _Context, given: Arrays, wanted: Sequence[int] | None, kept: list[Any]) -> list[Any]:
        """A run of a function some of whose inputs or outputs are no tensors."""
        for index, value in enumerate(self.inputs):
            if value.name not in given:
                if not value.has_default:
                    raise self._missing(value)
                _check(lib.tcrt_context_set_input_value(context.handle, index, ffi.NULL))
                continue
            tree = ffi.new("tcrt_value_t *")
            self._fill_tree(tree, value, _OF_NAME[value.kind], given[value.name], kept, 0)
            kept.append(tree)
            _check(lib.tcrt_context_set_input_value(context.handle, index, tree))
        try:
            _check(lib.tcrt_context_run(context.handle))
            tree = ffi.new("tcrt_value_t *")
            results = []
            for index in range(len(self.outputs)) if wanted is None else wanted:
                _check(lib.tcrt_context_get_output_value(context.handle, index, tree))
                results.append(_tree_of(tree, self.artifact))
            return results
        finally: # the trees end with this call
            for index in range(len(self.inputs)):
                lib.tcrt_context_set_input_value(context.handle, index, ffi.NULL)

    def _fill_tree(self, tree: Any, value: Value, kind: int, given: Any, kept: list[Any], depth: int) -> None:
        tree.kind = kind
        inner = value.inner >> (8 * depth) & 0xFF
        if kind == lib.TCRT_VALUE_TENSOR:
            shape = self._fill(tree.tensor, value, given, kept)
            tree.tensor.dtype, tree.tensor.rank = value.dtype.number, len(shape)
            for dim, size in enumerate(shape):
                tree.tensor.dims[dim] = size
            return
        if kind == lib.TCRT_VALUE_MAP:
            keys = dataclasses.replace(value, dtype=DTYPES[value.inner >> 16 & 0xFF])
            parts: Iterable[tuple[Value, Any]] = ((keys, np.array(list(given.keys()))), (value, np.array(list(given.values()))))
            inner = lib.TCRT_VALUE_TENSOR
        elif kind == lib.TCRT_VALUE_OPTIONAL:
            parts = [] if given is None else [(value, given)]
        else:
            parts = [(value, element) for element in given]
        parts = list(parts)
        elements = ffi.new("tcrt_value_t[]", max(1, len(parts)))
        kept.append(elements)
        for index, (of, element) in enumerate(parts):
            self._fill_tree(elements + index, of, inner, element, kept, depth + 1)
        tree.count, tree.elements = len(parts), elements


_OF_NAME = {
    "tensor": lib.TCRT_VALUE_TENSOR,
    "sequence": lib.TCRT_VALUE_SEQUENCE,
    "optional": lib.TCRT_VALUE_OPTIONAL,
    "map": lib.TCRT_VALUE_MAP,
}


def _as_array(given: Any, value: Value) -> np.ndarray:
    if isinstance(given, np.ndarray):
        return np.asarray(given)
    if is_of_torch(given):
        return array_of_torch(given)
    if hasattr(given, "__dlpack__") and not hasattr(given, "__array_interface__"):
        return np.from_dlpack(given)
    if value.dtype.name == "string":
        return np.asarray(given, dtype=object)
    array = np.asarray(given)
    # Numbers and lists of Python have no dtype of their own.
    return array.astype(value.dtype.numpy) if isinstance(given, (bool, int, float, complex, list, tuple)) else array


def _strings_of(array: np.ndarray) -> tuple[Any, Any]:
    flat = [x if isinstance(x, bytes) else str(x).encode() for x in array.reshape(-1)]
    buffers = [ffi.from_buffer(x) if x else ffi.NULL for x in flat]
    strings = ffi.new("tcrt_string_t[]", max(1, len(flat)))
    for index, (data, buffer) in enumerate(zip(flat, buffers)):
        strings[index].data, strings[index].size_bytes = buffer, len(data)
    return strings, (flat, buffers)


def _array_of(tensor: Any, artifact: Artifact) -> np.ndarray:
    """A copy of a tensor of the artifact's context, in host memory."""
    dtype, shape = DTYPES[tensor.dtype], tuple(tensor.dims[0 : tensor.rank])
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.name == "string":
        strings, array = ffi.cast("tcrt_string_t *", tensor.data), np.empty(count, object)
        for index in range(count):
            string = strings[index]
            array[index] = ffi.unpack(string.data, string.size_bytes).decode(errors="surrogateescape") if string.size_bytes else ""
        return array.reshape(shape)
    if count == 0:
        return np.empty(shape, dtype.numpy)
    if tensor.device == lib.TCRT_DEVICE_CUDA:
        data = np.empty((count * dtype.bits + 7) // 8, np.uint8)
        _check(lib.tcrt_gpu_copy(artifact._gpu or 0, _from_buffer(data), tensor.data, data.nbytes, lib.TCRT_COPY_DEVICE_TO_HOST, ffi.NULL))
        return unpack(data, dtype, shape) if dtype.is_packed else data.view(dtype.numpy).reshape(shape)
    data = np.frombuffer(ffi.buffer(tensor.data, (count * dtype.bits + 7) // 8), np.uint8)
    return unpack(data, dtype, shape) if dtype.is_packed else data.view(dtype.numpy).reshape(shape).copy()


def _tree_of(tree: Any, artifact: Artifact) -> Any:
    if tree.kind == lib.TCRT_VALUE_TENSOR:
        return _array_of(tree.tensor, artifact)
    elements = [_tree_of(tree.elements + index, artifact) for index in range(tree.count)]
    if tree.kind == lib.TCRT_VALUE_OPTIONAL:
        return elements[0] if elements else None
    return dict(zip(elements[0].tolist(), elements[1].tolist())) if tree.kind == lib.TCRT_VALUE_MAP else elements


class _Functions(dict[str, Function]):
    """An artifact's functions by name; a name that there is not raises InvalidError."""

    def __init__(self, path: str, functions: Iterable[Function]):
        super().__init__((f.name, f) for f in functions)
        self._path = path

    def __missing__(self, name: str) -> Function:
        raise InvalidError(f'{self._path}: there is no function "{name}"; functions are {", ".join(self)}')


class Artifact:
    """A compiled model. Thread-safe; a forked process must load it again.

    source: a path, or the artifact's bytes, which are kept. device: "cpu" or "cuda", with ":1" for another GPU (None: the artifact's own).
    variant: one of its CPU variants (None: the best for this machine). threads: of a run, the caller's included (0: one per usable core).
    verify_weights: checks the hashes of all of the file. profile: times kernels, see profile(). Raises InvalidError, MachineError.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes, *, device: str | None = None, variant: str | None = None, threads: int = 0,
                 verify_weights: bool = False, profile: bool = False): # fmt: skip
        options = ffi.new("tcrt_model_options_t *")
        options.size = ffi.sizeof("tcrt_model_options_t")
        options.verify_weights = verify_weights
        for given, what in ((variant, "variant"), (device, "device")):
            if not isinstance(given, (str, type(None))):
                raise InvalidError(f"{what} is {given!r}; give its name as a text, or None")
        name = ffi.new("char[]", variant.encode()) if variant else ffi.NULL
        options.variant = name
        kind, _, number = (device or "cpu").partition(":")
        if kind not in _DEVICES or not is_index(number):
            raise InvalidError(f'there is no device "{device}"; devices are cpu, cuda and cuda:INDEX')
        if not isinstance(threads, (int, np.integer)) or not 0 <= threads < 2**31:
            raise InvalidError(f"threads is {threads!r}; give the number of threads of a run, or 0 for one per usable core")
        if variant and "\0" in variant:
            raise InvalidError(f"there is no variant {variant!r}: names have no NUL characters")
        options.device, options.device_index = _DEVICES[kind], int(number or 0)
        opened = ffi.new("tcrt_model_t **")
        data = None
        if isinstance(source, (bytes, bytearray, memoryview)):
            self.path, data = "artifact", ffi.from_buffer(source)
            status = lib.tcrt_model_open_memory(data, len(data), b"artifact", options, opened)
        else:
            self.path = os.fspath(source)
            if b"\0" in os.fsencode(self.path):
                raise InvalidError(f"{self.path!r}: no path has a NUL character; give the path of an artifact")
            status = lib.tcrt_model_open_file(os.fsencode(self.path), options, opened)
        _check(status)
        self._data, self._generation = data, _generation
        self._model = ffi.gc(opened[0], functools.partial(_close, _keep(data)))
        self._threads, self._profiles = threads, profile
        self._gpu = options.device_index if self._runs_on(variant) == lib.TCRT_DEVICE_CUDA else None
        self._stream = 0 # of the contexts; 0: each has one of its own
        self._state_lock = threading.Lock() if lib.tcrt_model_state_count(self._model) else None
        self._contexts_of_states: dict[tuple[int, bool], _Context] = {}
        self.functions = _Functions(self.path, (Function(self, i) for i in range(lib.tcrt_model_function_count(self._model))))

    def _runs_on(self, variant: str | None) -> int:
        info, names = ffi.new("tcrt_variant_info_t *"), []
        for index in range(lib.tcrt_model_variant_count(self._model)):
            _check(lib.tcrt_model_variant(self._model, index, info))
            names.append(_text(info.name))
            if variant is None or names[-1] == variant:
                return int(info.device)
        if variant is None:
            return lib.TCRT_DEVICE_CPU
        raise InvalidError(f'{self.path}: there is no variant "{variant}"; variants are {", ".join(names)}')

    def _handle(self) -> Any:
        if self._model is None:
            raise InvalidError(f"{self.path}: the artifact is closed")
        return self._model

    def _only_context(self, function: Function, is_placed: bool = False) -> _Context:
        """`is_placed`: with tensors that may be on a GPU, or the caller's."""
        self._handle()
        contexts = self._contexts_of_states # close() may put another one there
        if not contexts:
            contexts[-1, False] = _Context(self, function)
        first = contexts[-1, False]
        context = contexts.get((function.index, is_placed))
        if context is None: # the same context, and so the same states, with tensors for this function
            context = _Context.__new__(_Context)
            context.handle, context.model = first.handle, first.model
            context._prepare(function)
            contexts[function.index, is_placed] = context
        _check(lib.tcrt_context_set_function(context.handle, function.index))
        return context

    @property
    def main(self) -> Function:
        """The first function, which most models have alone."""
        return next(iter(self.functions.values()))

    @property
    def inputs(self) -> list[Value]:
        """Of the first function."""
        return self.main.inputs

    @property
    def outputs(self) -> list[Value]:
        """Of the first function."""
        return self.main.outputs

    def run(self, inputs: Arrays | None = None, /, *, stream: Any = None, device: str | None = None, out: Arrays | None = None, **named: Any) -> dict[str, Any]:
        """Runs the first function, see Function.__call__. Inputs by name, of the dtypes and sizes of `inputs`: NumPy arrays, what DLPack exports, numbers
        and lists; lists of them are sequences, None is an absent optional, dicts are maps. Returns arrays by the outputs' names. Raises RefusedError for
        inputs that the model does not take, InvalidError after close(), MachineError where memory runs out."""
        return self.main(inputs, stream=stream, device=device, out=out, **named)

    __call__ = run

    @property
    def manifest(self) -> dict[str, Any]:
        """What the compiler wrote about the artifact."""
        text, size = ffi.new("char **"), ffi.new("uint64_t *")
        _check(lib.tcrt_model_manifest(self._handle(), text, size))
        manifest: dict[str, Any] = json.loads(ffi.buffer(text[0], size[0])[:])
        return manifest

    def profile(self) -> list[dict[str, Any]]:
        """Kernels, longest first: {"kernel", "nodes", "launches", "time_ns", "flops", "bytes"}, of all runs since the artifact was loaded with
        profile=True."""
        if not self._profiles:
            raise InvalidError(f"{self.path}: load the artifact with profile=True to time its kernels")
        totals: dict[str, dict[str, Any]] = {}
        entry = ffi.new("tcrt_profile_entry_t *")
        handles = {c.handle: c for f in self.functions.values() for c in [*f._contexts, *f._placed_contexts]}
        handles.update({c.handle: c for c in self._contexts_of_states.values()})
        for context in handles:
            for index in range(lib.tcrt_context_profile_count(context)):
                _check(lib.tcrt_context_profile(context, index, entry))
                if entry.launches:
                    name = _text(entry.kernel)
                    total = totals.setdefault(name, {"kernel": name, "nodes": _text(entry.nodes), "launches": 0, "time_ns": 0, "flops": entry.flops, "bytes": entry.bytes}) # fmt: skip
                    total["launches"] += entry.launches
                    total["time_ns"] += entry.time_ns
        return sorted(totals.values(), key=lambda total: -total["time_ns"])

    def guards(self) -> list[dict[str, Any]]:
        """What runs are refused for: {"function", "kind", "inputs", "condition", "from", "costs", "give_up"}, all of them text; none in artifacts
        of tc before 0.1."""
        return reports.guards(self.manifest)

    def explain(self) -> list[dict[str, Any]]:
        """What became of the model, a kernel a row, in the order of their first launches: {"kernel", "function", "nodes": the model's, joined by "+",
        "strategy", "flops" and "bytes" of a launch: numbers, or expressions of the symbols as text, "unfused_bytes" and "unfused_launches": what its
        nodes would take one by one, "reads": names of kernels and inputs}."""
        return reports.kernels(self.manifest)

    def _repr_svg_(self) -> str | None:
        """The first function's kernels as a graph, for pages of their own; None where the manifest does not say what they read."""
        if self._model is None:
            return None
        return pictures.graph(self.manifest, self.main.name, self.profile() if self._profiles else (), is_page=True) or None

    def _repr_html_(self) -> str:
        """What notebooks show: functions, each one's kernels as a graph, guards; with profile=True the times of the runs so far."""
        if self._model is None:
            return html.escape(repr(self))
        manifest, profile = self.manifest, self.profile() if self._profiles else []
        values = [{"function": f.name, "": kind, "name": v.name, "kind": v.kind, "dtype": v.dtype.name, "shape": str(list(v.shape))}
                  for f in self.functions.values() for kind, vs in (("input", f.inputs), ("output", f.outputs)) for v in vs] # fmt: skip
        parts = [reports.table(values, ("function", "", "name", "kind", "dtype", "shape"))]
        parts += [pictures.graph(manifest, name, profile) for name in self.functions] + [pictures.bars(profile)]
        if kernels := reports.kernels(manifest):
            parts.append(reports.table(kernels, ("kernel", "nodes", "strategy", "flops", "bytes", "unfused_bytes", "unfused_launches")))
        if guards := reports.guards(manifest):
            parts.append(reports.table(guards, ("condition", "inputs", "from")))
        return "\n".join([f"<b>{html.escape(self.path)}</b>", *(reports.scrolled(part) for part in parts if part)])

    def close(self) -> None:
        """Frees the model once no call uses it; later calls raise InvalidError, and calls under way end as usual."""
        self._model = self._data = None # first, so that calls that end from now on keep nothing
        for function in self.functions.values():
            function._contexts.clear()
            function._placed_contexts.clear()
        self._contexts_of_states = {}
        if self._gpu is not None:
            lib.tcrt_gpu_trim()

    def __enter__(self) -> "Artifact":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tc_compiler.Artifact {self.path}: {'; '.join(map(repr, self.functions.values()))}>"


def load(source: str | os.PathLike[str] | bytes, **options: Any) -> Artifact:
    """Loads an artifact: a path, or its bytes, which are kept. Options are Artifact's: device, variant, threads, verify_weights, profile. Raises
    InvalidError where it cannot be read, is corrupt or of another version, MachineError where this machine cannot run it.
    What compile_training made is a TrainingArtifact."""
    artifact = Artifact(source, **options)
    if (options.get("device") or "").startswith("cuda") and artifact._gpu is None:
        raise InvalidError(f"{artifact.path}: the artifact has no code for GPUs; compile it with target=\"cuda\"")
    if not {"step", "evaluate"} <= set(artifact.functions):
        return artifact
    from .training import TrainingArtifact

    artifact.close()
    return TrainingArtifact(source, **options)


def version() -> str:
    """libtcrt's version."""
    return _text(lib.tcrt_version())
