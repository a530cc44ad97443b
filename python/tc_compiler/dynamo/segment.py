# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled part of a graph: an artifact, called with addresses of tensors."""
from __future__ import annotations

import collections
import json
import logging
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
        failure = error_of(result.returncode, result.stderr.decode(errors="replace").strip() or f"tc-compile ended with status {result.returncode}")
        if isinstance(failure, UnsupportedError): # which says all that is not supported
            found = subprocess.run([*command, "--explain=json"], capture_output=True, env=_environment())
            try:
                entries = json.loads(found.stdout).get("unsupported", [])
            except ValueError:
                entries = []
            raise Refused({name: entry["reason"] for entry in entries for name in entry["nodes"]}, str(failure))
        # What tc takes for something else than PyTorch does, or fails at.
        if not isinstance(failure, (InvalidError, InternalError)) or f"{path}: error: " not in str(failure):
            raise failure
        log.warning("%s", failure)
        raise Refused({name: line for line in str(failure).splitlines() for name in re.findall(r'error: node "([^"]+)"', line)}, str(failure))


class _State:
    """What one call at a time needs."""

    __slots__ = ("addresses", "handle", "inputs", "outputs", "sizes", "kept")
    addresses: Any
    handle: Any
    inputs: Any
    outputs: Any
    sizes: tuple[Any, ...] | None
    kept: Any


class Segment:
    """`names`: of the inputs; `on_host`: those that are in host memory though the program runs on a GPU. `find_shapes`, which is set later: sizes of
    symbols -> the shapes of inputs and of outputs, in the order of memory."""

    def __init__(self, data: bytes, threads: int, device: torch.device, on_host: Collection[str]):
        self.data, self.threads, self.device, self.on_host = data, threads, device, frozenset(on_host)
        self.find_shapes: Callable[..., tuple[list[Any], list[Any]]] | None = None
        self.artifact: Artifact | None = None
        self.pools: dict[int, collections.deque[_State]] = collections.defaultdict(collections.deque)
        _segments.add(self)
        self.names = [value.name for value in self._load().main.inputs]

    def _load(self) -> Artifact:
        device = f"cuda:{self.device.index or 0}" if self.device.type == "cuda" else None
        self.artifact = Artifact(self.data, threads=self.threads, device=device)
        return self.artifact

    def state(self, stream: int = 0) -> _State:
        """A new one, for calls in this stream of a GPU."""
        artifact = self.artifact or self._load()
        state, function = _State(), artifact.main
        state.handle = _create_context(artifact, (stream or 1) if self.device.type == "cuda" else 0) # 1: CUDA's default stream
        state.kept, state.sizes = artifact._model, None
        state.inputs, state.outputs = ffi.new("tcrt_tensor_t[]", max(1, len(self.names))), ffi.new("tcrt_tensor_t[]", max(1, len(function.outputs)))
        state.addresses = ffi.new("uintptr_t[]", len(self.names) + len(function.outputs))
        for values, tensors in ((function.inputs, state.inputs), (function.outputs, state.outputs)):
            for index, value in enumerate(values):
                tensors[index].dtype = value.dtype.number
                is_on_device = self.device.type == "cuda" and not (tensors == state.inputs and value.name in self.on_host)
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

    def fail(self, status: int) -> None:
        """Raises what a run of this status means."""
        _check(status)


def fit(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """A copy with these strides."""
    if tuple(tensor.shape) != tuple(size):
        raise RuntimeError(f"tc: a tensor of shape {tuple(tensor.shape)} came where the graph has {tuple(size)}")
    return torch.empty_strided(tuple(size), tuple(stride), dtype=tensor.dtype, device=tensor.device).copy_(tensor)
