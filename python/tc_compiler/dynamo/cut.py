# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which nodes of a graph of AOTAutograd are compiled, and in which program.

Programs and what PyTorch runs take turns: first what PyTorch runs at level -1, then for each level its program and what PyTorch runs after it.
"""
from __future__ import annotations

import collections
import operator
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from ..dtypes import DTYPES
from . import symbols
from .prepare import dropout_mask
from .views import LAZY, is_view, schema_of

aten = torch.ops.aten


# Those of a byte or more that PyTorch's archives hold.
_DTYPES = {f"torch.{dtype.array}" for dtype in DTYPES.values() if dtype.number <= 20}
# Operators with graphs of their own that programs may hold.
_HIGHER_ORDER = {"cond", "map_impl", "scan", "while_loop"}


def is_number(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    """The tensors that the node makes."""
    return [leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor)]


# Random operators whose first argument gives a shape alone: they run before it is computed.
SHAPED = {dropout_mask, aten.rand_like.default, aten.randn_like.default, aten.randint_like.default, aten.randint_like.low_dtype, aten.bernoulli.p}


# Those that read their first argument's memory, whatever it shows.
MEMORY = {aten.as_strided.default, aten.as_strided_scatter.default}


def _is_in_a_row(node: fx.Node) -> bool:
    """Whether a program sees the memory of the node's first argument as it is: a value that the graph computes, whole and in row-major order."""
    given, value = node.args[0], node.args[0].meta["val"]
    is_whole = given.op == "call_function" and not is_view(given) and given.target not in LAZY and value.storage_offset() == 0
    return is_whole and symbols.physical_order(value) == tuple(range(value.dim()))


def _laid_out(graph: fx.Graph) -> set[fx.Node]:
    """Nodes that read memory which programs do not see as it is, with all that they show up to what made it: PyTorch's own memory is then read."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        if node.target not in MEMORY or _is_in_a_row(node):
            continue
        found.add(node)
        given = node.args[0]
        while isinstance(given, fx.Node) and given.op == "call_function":
            found.add(given)
            schema = schema_of(given)
            is_alias = given.target is operator.getitem or (schema is not None and schema.returns and schema.returns[0].alias_info is not None)
            given = given.args[0] if is_alias else None
    return found


def _is_random(node: fx.Node) -> bool:
    if node.target is dropout_mask:
        return True
    schema = schema_of(node)
    if schema is None or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    # Attention and others that leave elements out only if they are asked to.
    given = {**{a.name: a.default_value for a in schema.arguments}, **dict(zip((a.name for a in schema.arguments), node.args)), **node.kwargs}
    return given.get("dropout_p") != 0 and given.get("train", given.get("training")) is not False


def device_of(graph: fx.Graph) -> torch.device:
    """Where programs of this graph run: the GPU that most of its values are on, or the CPU."""
    counts = collections.Counter(t.device for n in graph.nodes if n.op == "call_function" for t in tensors_of(n) if t.device.type == "cuda")
    return counts.most_common(1)[0][0] if counts else torch.device("cpu")


def reasons_for_eager(graph: fx.Graph, updates: set[fx.Node], device: torch.device) -> dict[fx.Node, str]:
    """Nodes that PyTorch runs whatever tc supports, with the reason; `updates` are not among them. `device`: of programs."""
    eager: dict[fx.Node, str] = {}
    known: set[sympy.Symbol] = set()
    laid_out = _laid_out(graph)
    for node in graph.nodes:
        if node.op != "call_function" or node in updates:
            continue
        tensors, schema = tensors_of(node), schema_of(node)
        new = {s for t in tensors for s in symbols.symbols_of(*t.shape)} | (symbols.symbols_of(node.meta["val"]) if is_number(node) else set())
        new = {s for s in new - known if free_unbacked_symbols(s)}
        known |= new
        numbers = [a.meta.get("val") for a in node.all_input_nodes]
        if node.target is operator.getitem and node.args[0] in eager:
            eager[node] = eager[node.args[0]]
        elif "val" not in node.meta:
            eager[node] = "PyTorch does not say what it makes"
        elif isinstance(node.target, torch._ops.HigherOrderOperator) and node.target.name() not in _HIGHER_ORDER:
            eager[node] = "a higher-order operator without a meaning of its own"
        elif _is_random(node):
            eager[node] = "its random numbers are PyTorch's"
        elif new:
            eager[node] = "sizes of its results depend on data"
        elif schema is not None and schema.is_mutable:
            eager[node] = "it updates a tensor"
        elif schema is not None and not schema.returns:
            eager[node] = "it has an effect and no result"
        elif any(isinstance(n, (torch.SymFloat, torch.SymBool)) for n in numbers) and not is_number(node):
            eager[node] = "it takes a number that a run computes"
        elif node in laid_out:
            eager[node] = "memory is read that programs see in another order, or not at all"
        elif not is_number(node) and any(symbols.is_far(n) for n in numbers):
            eager[node] = "it takes a number that is no size by far"
        elif any(t.layout != torch.strided or t.is_quantized for t in tensors):
            eager[node] = "its result is no dense tensor"
        elif any(t.device.type not in ("cpu", "cuda") for t in tensors):
            eager[node] = "tc has no code for its device"
        elif other := next((t.device for t in tensors if t.device != device), None):
            eager[node] = f"it computes on {other}, the rest of the graph on {device}"
        elif other := next((t.device for a in node.all_input_nodes for t in tensors_of(a) if t.device != device and (t.device.type != "cpu" or t.dim())), None):
            eager[node] = f"it takes a tensor of {other} to {device}"
        elif unknown := {str(t.dtype) for a in (node, *node.all_input_nodes) for t in tensors_of(a)} - _DTYPES:
            eager[node] = f"tc does not know {', '.join(sorted(unknown))}"
    return eager


class Cut:
    """The level of each node, and whether PyTorch runs it."""

    def __init__(self, graph: fx.Graph, eager: dict[fx.Node, str], updates: set[fx.Node]):
        self.level: dict[fx.Node, int] = {}
        self.is_eager: dict[fx.Node, bool] = {}
        definer: dict[sympy.Symbol, fx.Node] = {}
        ordered = floor = -1 # the level of the last node that keeps its place; the least level after an update
        for node in graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self.level[node], self.is_eager[node] = -1, False
            elif node.op == "call_function" and node not in updates:
                self.is_eager[node] = is_eager = node in eager
                if is_number(node) and not is_eager:
                    makers = [definer[s] for s in symbols.symbols_of(node.meta["val"]) if s in definer]
                    self.level[node] = max((self.level[m] + 1 for m in makers), default=-1)
                    continue
                arguments = node.all_input_nodes
                if node.target in SHAPED and isinstance(node.args[0], fx.Node) and is_eager:
                    arguments = [a for a in arguments if a is not node.args[0] or a in node.args[1:]]
                level = max([-1 if is_eager else 0, floor, *(self.level[a] + (self.is_eager[a] and not is_eager) for a in arguments)])
                schema = schema_of(node)
                if is_eager and (_is_random(node) or schema is None or schema.is_mutable or not schema.returns):
                    if not _is_random(node) and schema is not None and (schema.is_mutable or not schema.returns):
                        level = max([level, *self.level.values()])
                        floor = level + 1
                    level = ordered = max(level, ordered)
                self.level[node] = level
                if is_eager:
                    for tensor in tensors_of(node):
                        for symbol in symbols.symbols_of(*tensor.shape):
                            definer.setdefault(symbol, node) if free_unbacked_symbols(symbol) else None
                    if is_number(node):
                        for symbol in symbols.symbols_of(node.meta["val"]):
                            definer.setdefault(symbol, node)

    @property
    def count(self) -> int:
        return 1 + max(self.level.values(), default=0)

    def is_compiled(self, node: fx.Node) -> bool:
        return self.is_eager.get(node) is False and node.op == "call_function" and not is_number(node)
