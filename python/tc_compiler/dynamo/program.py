# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Part of a graph of AOTAutograd as an ExportedProgram, which torch.export.save writes and tc-compile reads."""
from __future__ import annotations

import dataclasses
import math
import operator
import types
from typing import Any, Callable, Sequence

import sympy
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import ValueRanges

from ..arrays import plain
from . import symbols

aten = torch.ops.aten
# What stays of a node's metadata: what it computes and where it was written.
_KEPT = ("val", "stack_trace")


@dataclasses.dataclass
class Program:
    """`exported`: takes row-major tensors; `inputs`: (name, node of the whole graph, dims of it in the order of memory) of each that a call gives;
    `sizes`: (name, symbol, shift) of inputs that stand for a number by having so many rows of no elements, `shift` more where it may be negative; `outputs`: as inputs, without names; `nodes`: nodes of the whole graph by the
    names that the program gives them."""

    exported: ExportedProgram
    inputs: list[tuple[str, fx.Node, tuple[int, ...]]]
    sizes: list[tuple[str, sympy.Symbol, int]]
    outputs: list[tuple[fx.Node, tuple[int, ...]]]
    nodes: dict[str, fx.Node]


def layout(value: torch.Tensor) -> tuple[int, ...]:
    """The dims in the order in which a program reads or writes them: that of memory where the elements lie in a row."""
    order = symbols.physical_order(value)
    return tuple(range(value.dim())) if order is None else order


def shift_of(symbol: sympy.Symbol, shape_env: Any) -> int:
    """What makes a size of a number: 0 where it is one by its range, else more than the numbers of programs lie below 0. Dynamo guards the sign of a number that is
    known, as Python's integers are: products of sizes with a large shift would leave 64 bits."""
    bounds = shape_env.var_to_range.get(symbol)
    if bounds is not None and bounds.lower >= 0:
        return 0
    known = shape_env.create_symintnode(symbol, hint=None).node.hint
    if known is not None and not shape_env.frozen:
        for shift in (0, 2**4, 2**8, 2**12, symbols.FARTHEST): # powers of a number with a shift lie near the number's own
            if known >= -shift and shape_env.evaluate_expr(sympy.Ge(symbol, -shift)):
                return shift
    return 2**60


class _Sizes:
    """Nodes that compute sizes from the inputs' own."""

    def __init__(self, graph: fx.Graph, shape_env: Any):
        self.graph, self.shape_env = graph, shape_env
        self.places: dict[sympy.Expr, tuple[fx.Node, int]] = {}
        self.made: dict[sympy.Expr, Any] = {}

    def add_input(self, node: fx.Node) -> None:
        for dim, size in enumerate(node.meta["val"].shape):
            expr = symbols.expression(size)
            if isinstance(expr, sympy.Basic):
                self.places.setdefault(expr, (node, dim))

    def add_number(self, symbol: sympy.Symbol, node: fx.Node, shift: int) -> None:
        """`node` has `symbol` + `shift` rows."""
        self.add_input(node)
        if shift:
            size = self.get(self._number(symbol + shift))
            self.made[symbol] = made = self.graph.call_function(operator.sub, (size, shift))
            made.meta["val"] = self._number(symbol)

    def get(self, value: Any) -> Any:
        """A number, or the node that computes it."""
        expr = symbols.expression(value)
        if not isinstance(expr, sympy.Basic):
            return expr
        if expr.is_Integer:
            return int(expr)
        if expr not in self.made:
            if expr in self.places:
                made = self.graph.call_function(aten.sym_size.int, self.places[expr])
                made.meta["val"] = self._number(expr)
            else:
                proxies = {str(s): fx.Proxy(self.get(self._number(s))) for s in expr.free_symbols}
                called: Callable[[Any], Callable[[Any], Any]] = lambda function: lambda of: fx.Proxy(self.graph.call_function(function, (of.node,)))
                rounded = types.SimpleNamespace(trunc=torch.sym_int, floor=called(math.floor), ceil=called(math.ceil))
                functions = {"max": torch.sym_max, "min": torch.sym_min, "math": rounded, "torch": torch}
                before = set(self.graph.nodes)
                made = eval(symbols.text(value), functions, proxies).node # noqa: S307 - an expression of SymPy's
                for node in self.graph.nodes:
                    if node not in before:
                        node.meta["val"] = node.target(*fx.map_arg(node.args, lambda n: n.meta["val"]))
            self.made[expr] = made
        return self.made[expr]

    def _number(self, expr: sympy.Expr) -> torch.SymInt:
        return self.shape_env.create_symintnode(expr, hint=None)


def build(nodes: Sequence[fx.Node], outputs: Sequence[fx.Node], root: fx.GraphModule, frozen: dict[fx.Node, torch.Tensor], fake_mode: Any) -> Program:
    """The program of `nodes`, in their order. What they take from elsewhere are its inputs; `frozen` ones are its parameters."""
    graph, env, own = fx.Graph(), {}, set(nodes)
    shape_env = fake_mode.shape_env
    sizes = _Sizes(graph, shape_env)
    taken: dict[fx.Node, None] = {}
    numbers: set[sympy.Symbol] = set()
    modules: dict[str, Any] = {}
    for node in nodes:
        for value in node.all_input_nodes:
            given = value.meta.get("val")
            if isinstance(given, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                numbers |= symbols.symbols_of(given)
            elif value.op == "get_attr" and not isinstance(given, torch.Tensor):
                modules[value.target] = getattr(root, value.target)
            elif value not in own:
                taken[value] = None
    specs: list[InputSpec] = []
    state: dict[str, torch.Tensor] = {}
    inputs: list[Any] = []
    size_inputs: list[Any] = []

    def add_placeholder(name: str, value: torch.Tensor, tensor: torch.Tensor | None = None) -> fx.Node:
        placeholder = graph.placeholder(name)
        placeholder.meta["val"] = value
        if tensor is None:
            specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(name=placeholder.name), None))
        else:
            specs.append(InputSpec(InputKind.BUFFER, TensorArgument(name=placeholder.name), placeholder.name, True))
            state[placeholder.name] = tensor
        return placeholder

    def row_major(value: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
        with fake_mode:
            return torch.empty([value.shape[dim] for dim in order], dtype=value.dtype, device=value.device)

    # Parameters come first in a program's signature.
    for node in sorted(taken, key=lambda n: n not in frozen and n.op != "get_attr"):
        value = node.meta["val"]
        constant = frozen.get(node)
        if constant is None and node.op == "get_attr":
            constant = getattr(root, node.target)
        if constant is not None:
            env[node] = add_placeholder(f"w_{node.name}", value, plain(constant.detach()))
            continue
        order = layout(value)
        numbers |= symbols.symbols_of(*value.shape)
        name = f"x{len(inputs)}"
        env[node] = add_placeholder(name, row_major(value, order))
        sizes.add_input(env[node])
        inputs.append((name, node, order))
    for node in nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor):
                numbers |= symbols.symbols_of(*value.shape)
    for symbol in sorted(numbers, key=str):
        if symbol not in sizes.places:
            shift = shift_of(symbol, shape_env)
            number = shape_env.create_symintnode(symbol + shift, hint=None)
            with fake_mode:
                base = torch.empty([number, 0], dtype=torch.uint8)
            name = f"size_{symbol}"
            sizes.add_number(symbol, add_placeholder(name, base), shift)
            size_inputs.append((name, symbol, shift))
    for name, node, order in inputs:
        if order != tuple(range(len(order))):
            inverse = [order.index(dim) for dim in range(len(order))]
            moved = graph.call_function(aten.permute.default, (env[node], inverse))
            moved.meta["val"] = node.meta["val"]
            env[node] = moved

    def resolve(node: fx.Node) -> Any:
        if node in env:
            return env[node]
        if node.op == "get_attr":
            env[node] = graph.get_attr(node.target)
            env[node].meta = dict(node.meta)
            return env[node]
        return sizes.get(node.meta["val"])

    named = {}
    for node in nodes:
        made = graph.node_copy(node, resolve)
        made.meta = {key: node.meta[key] for key in _KEPT if key in node.meta}
        env[node] = made
        named[made.name] = node
    results, out_specs, written = [], [], []
    for node in outputs:
        order, result = layout(node.meta["val"]), env[node]
        if order != tuple(range(len(order))):
            result = graph.call_function(aten.permute.default, (result, list(order)))
            result.meta["val"] = row_major(node.meta["val"], order)
        results.append(result)
        out_specs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=result.name), None))
        written.append((node, order))
    graph.output(tuple(results))
    given = len(inputs) + len(size_inputs)
    signature = ModuleCallSignature([], [], pytree.tree_structure(((0,) * given, {})), pytree.tree_structure((0,) * len(results)))
    ranges = {symbol: shape_env.var_to_range[symbol] for symbol in numbers if symbol in shape_env.var_to_range}
    ranges |= {symbol: ValueRanges(-shift, 2**60) for _, symbol, shift in size_inputs if shift}
    exported = ExportedProgram(root=fx.GraphModule(modules, graph), graph=graph, graph_signature=ExportGraphSignature(specs, out_specs), state_dict=state,
                               range_constraints=ranges, module_call_graph=[ModuleCallEntry("", signature)]) # fmt: skip
    exported._guards_code = [] # Dynamo checks them
    return Program(exported, inputs, size_inputs, written, named)
