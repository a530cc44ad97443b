# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled part of a graph: an artifact, called with addresses of tensors."""
from __future__ import annotations

import collections
import json
import logging
import math
import operator
import os
import re
import subprocess
import tempfile
import weakref
from typing import Any, Callable, Collection, Sequence

import torch
from torch._export.serde.serialize import SerializeError

from .._tcrt import ffi, lib
from ..arrays import _check
from ..artifact import Artifact, _create_context
from ..compiler import _environment, find_tool
from ..errors import InternalError, InvalidError, UnsupportedError, error_of
from .program import Program
from .threads import team_of

log = logging.getLogger(__name__.rpartition(".")[0])
_segments: weakref.WeakSet[Segment] = weakref.WeakSet()


def _reload_after_fork() -> None:
    for segment in list(_segments):
        segment.pools.clear()
        segment.artifact = None


os.register_at_fork(after_in_child=_reload_after_fork)


class Refused(Exception):
    """Nodes of the program that tc does not support, each with the reason; empty: it does not support the program as a whole."""

    def __init__(self, reasons: dict[str, str], text: str):
        super().__init__(text)
        self.reasons = reasons


def compile_program(program: Program, arguments: Sequence[str]) -> bytes:
    """The artifact's bytes. Raises Refused, and TcError for all else."""
    with tempfile.TemporaryDirectory(prefix="tc-") as folder:
        path, target = os.path.join(folder, "graph.pt2"), os.path.join(folder, "graph.bin")
        try:
            torch.export.save(program.exported, path)
        except SerializeError as error: # operators with graphs, of forms that archives lack
            raise Refused({name: "archives of PyTorch cannot hold it" for name in re.findall(r"serializing node (\w+)", str(error))}, str(error)) from None
        command = [find_tool("tc-compile"), path, "-o", target, "-q", *arguments]
        result = subprocess.run(command, capture_output=True, env=_environment())
        if result.returncode == 0:
            with open(target, "rb") as file:
                return file.read()
        text = result.stderr.decode(errors="replace").strip().replace(path, "graph") # the file goes
        failure = error_of(result.returncode, text or f"tc-compile ended with status {result.returncode}")
        if isinstance(failure, UnsupportedError): # which says all that is not supported
            found = subprocess.run([*command, "--explain=json"], capture_output=True, env=_environment())
            try:
                entries = json.loads(found.stdout).get("unsupported", [])
            except ValueError:
                entries = []
            raise Refused({name: entry["reason"] for entry in entries for name in entry["nodes"]}, str(failure))
        # What tc takes for something else than PyTorch does, or fails at.
        if not isinstance(failure, (InvalidError, InternalError)) or "graph: error: " not in str(failure):
            raise failure
        log.warning("%s", failure)
        raise Refused({name: line for line in str(failure).splitlines() for name in re.findall(r'error: node "([^"]+)"', line)}, str(failure))


class _State:
    """What one call at a time needs."""

    __slots__ = ("addresses", "current", "handle", "held", "inputs", "kept", "outputs", "prepared", "sizes", "statics")
    addresses: Any
    handle: Any
    inputs: Any
    outputs: Any
    sizes: tuple[Any, ...] | None
    kept: Any
    # Of tensors that seldom change: where they lie and their sizes; what tells whether they are those of the call before; their memory, so that no other
    # tensor has their addresses; the inputs of what packs them.
    statics: Any
    current: tuple[int, ...] | None
    held: Any
    prepared: Any


_version_of = operator.attrgetter("_version")


class Segment:
    """`names`: of the inputs; `statics`: those that are packed once, and again where they have changed; `on_host`: those that are in host memory though the program runs on a GPU. `find_shapes`, which is set later: sizes of
    symbols -> the shapes of inputs and of outputs, in the order of memory."""

    def __init__(self, data: bytes, threads: int, device: torch.device, on_host: Collection[str]):
        self.data, self.threads, self.device, self.on_host = data, threads, device, frozenset(on_host)
        self.find_shapes: Callable[..., tuple[list[Any], list[Any]]] | None = None
        self.artifact: Artifact | None = None
        self.pools: dict[int, collections.deque[_State]] = collections.defaultdict(collections.deque)
        _segments.add(self)
        self.names = [value.name for value in self._load().main.inputs]
        self.statics = [value.name for value in self._prepare.inputs] if self._prepare else []

    def _load(self) -> Artifact:
        device = f"cuda:{self.device.index or 0}" if self.device.type == "cuda" else None
        self.artifact = Artifact(self.data, threads=self.threads, device=device)
        self._prepare = self.artifact.functions.get(f"{self.artifact.main.name}.prepare")
        return self.artifact

    def state(self, stream: int = 0) -> _State:
        """A new one, for calls in this stream of a GPU."""
        artifact = self.artifact or self._load()
        state, function = _State(), artifact.main
        is_on_gpu = self.device.type == "cuda"
        state.handle = _create_context(artifact, (stream or 1) if is_on_gpu else 0, None if is_on_gpu else team_of(self.threads)) # 1: CUDA's default stream
        state.kept, state.sizes = artifact._model, None
        state.inputs, state.outputs = ffi.new("tcrt_tensor_t[]", max(1, len(self.names))), ffi.new("tcrt_tensor_t[]", max(1, len(function.outputs)))
        state.addresses = ffi.new("uintptr_t[]", len(self.names) + len(function.outputs))
        state.current = state.held = None
        if self._prepare:
            state.statics, state.prepared = ffi.new("tc_static_t[]", len(self.statics)), ffi.new("tcrt_tensor_t[]", len(self.statics))
            for static, tensor, value in zip(state.statics, state.prepared, self._prepare.inputs):
                sizes = [int(size or 0) for size in value.shape] # all are known
                static.input, static.bytes = self.names.index(value.name), (math.prod(sizes) * value.dtype.bits + 7) // 8
                tensor.dtype, tensor.rank, tensor.size_bytes = value.dtype.number, len(sizes), static.bytes
                tensor.dims[0 : len(sizes)] = sizes
        for values, tensors in ((function.inputs, state.inputs), (function.outputs, state.outputs)):
            for index, value in enumerate(values):
                tensors[index].dtype = value.dtype.number
                is_on_device = is_on_gpu and not (tensors == state.inputs and value.name in self.on_host)
                tensors[index].device = lib.TCRT_DEVICE_CUDA if is_on_device else lib.TCRT_DEVICE_CPU
        return state

    def resize(self, state: _State, sizes: tuple[Any, ...]) -> None:
        """Before a call of other sizes than the last."""
        assert self.artifact and self.find_shapes # there was a state
        function, shapes = self.artifact.main, self.find_shapes(*sizes)
        state.sizes = sizes
        for values, tensors, found in ((function.inputs, state.inputs, shapes[0]), (function.outputs, state.outputs, shapes[1])):
            for index, (value, shape) in enumerate(zip(values, found)):
                tensor, count = tensors[index], 1
                tensor.rank = len(shape)
                for dim, size in enumerate(shape):
                    tensor.dims[dim] = size
                    count *= size
                tensor.size_bytes = (count * value.dtype.bits + 7) // 8

    def prepare(self, state: _State, tensors: tuple[torch.Tensor, ...]) -> None:
        """Packs the static inputs, unless they are what they were in the call before: the same memory, versions and samples of the elements."""
        try:
            current = (lib.tc_mark(state.addresses, len(tensors), state.statics), *map(_version_of, tensors))
        except RuntimeError: # made under inference_mode: nothing counts what is written
            current = None
        if current is not None and current == state.current:
            return
        assert self._prepare
        state.current = None
        addresses = ffi.new("uintptr_t[]", [state.addresses[static.input] for static in state.statics])
        _check(lib.tcrt_context_set_function(state.handle, self._prepare.index))
        _check(lib.tc_run_at(state.handle, 1, len(tensors), state.prepared, 0, ffi.NULL, addresses))
        _check(lib.tcrt_context_set_function(state.handle, 0))
        state.held = None if current is None else [tensor.untyped_storage() for tensor in tensors]
        state.current = current

    def fail(self, status: int) -> None:
        """Raises what a run of this status means."""
        _check(status)


def fit(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """A copy with these strides."""
    if tuple(tensor.shape) != tuple(size):
        raise RuntimeError(f"tc: a tensor of shape {tuple(tensor.shape)} came where the graph has {tuple(size)}")
    return torch.empty_strided(tuple(size), tuple(stride), dtype=tensor.dtype, device=tensor.device).copy_(tensor)
