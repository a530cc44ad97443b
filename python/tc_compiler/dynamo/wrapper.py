# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of AOTAutograd as Python functions that call artifacts, and PyTorch's operators where tc has none.

The function's text is made once, so that a call does nothing but what changes from call to call.
"""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import math
import operator
from typing import Any, Callable, Sequence

import sympy
import torch
from torch import fx
from torch.utils._sympy.solve import try_solve

from .._tcrt import lib
from ..arrays import plain
from . import program as programs
from . import symbols
from .cut import MEMORY, SHAPED, Cut, device_of, is_number, reasons_for_eager, tensors_of
from .prepare import fold_conjugates, join_attention, root_strides, split_dropout, split_factors, write_negatives
from .segment import Refused, Segment, compile_program, fit
from .views import is_view

log = logging.getLogger(__name__.rpartition(".")[0])
aten = torch.ops.aten
_guards = torch._C._dynamo.guards


@dataclasses.dataclass
class Settings:
    """Of one graph. `arguments`: tc-compile's; `frozen`: values of placeholders that never change, by index; `static`: indices of those that seldom do; `least_operators`: of a program, smaller
    ones run by PyTorch; `fallback`: whether PyTorch may run what tc does not support; `check_bounds`: see Options."""

    arguments: Sequence[str]
    threads: int
    frozen: dict[int, torch.Tensor] = dataclasses.field(default_factory=dict)
    static: frozenset[int] = frozenset()
    least_operators: int = 1
    fallback: bool = True
    check_bounds: bool | None = None


def _empty_text(shape: str, strides: str, dtype: torch.dtype, device: torch.device) -> str:
    """Text of a new tensor with this text of its shape and strides."""
    if device.type == "cpu":
        return f"empty_cpu({shape}, {strides}, {dtype})"
    return f"empty_strided({shape}, {strides}, dtype={dtype}, device={str(device)!r})"


def _empty_like_text(value: torch.Tensor, strides: Sequence[Any]) -> str:
    """Text of a new tensor like the value, with these strides."""
    return _empty_text(symbols.tuple_text(value.shape), symbols.tuple_text(strides), value.dtype, value.device)


def _gpu_arguments(given: Sequence[str]) -> list[str]:
    """tc-compile's on GPUs, where --cpu means nothing: products in TF32 where PyTorch may compute its own so, by a setting that Dynamo guards."""
    products = torch.backends.cuda.matmul
    is_tf32 = getattr(products, "fp32_precision", "none") == "tf32"
    if not is_tf32:
        with contextlib.suppress(RuntimeError): # where a script has set it both ways
            is_tf32 = products.allow_tf32
    is_chosen = any(argument.startswith("--precision") for argument in given)
    return [*(a for a in given if not a.startswith("--cpu=")), "--target=cuda", *(["--precision=tf32"] if is_tf32 and not is_chosen else [])]


def _is_tangent(node: fx.Node) -> bool:
    """Whether it is a gradient that a backward graph is given; AOTAutograd has no other mark of them."""
    return node.op == "placeholder" and str(node.target).startswith("tangents")


class Wrapper:
    """Compiles a graph: `make` returns the function that runs it, which takes a list of arguments and empties it. Afterwards `programs` has the number
    of operators in each program, `eager` the nodes that PyTorch runs, with the reason."""

    def __init__(self, module: fx.GraphModule, settings: Settings, fake_mode: Any):
        self.module, self.graph, self.settings, self.fake_mode = module, module.graph, settings, fake_mode
        self.lines: list[str] = []
        self.globals: dict[str, Any] = {
            "torch": torch, "math": math, "run": lib.tc_run_at, "check": _guards.assert_size_stride, "fit": fit, "empty_cpu": _guards._empty_strided_cpu,
            "plain": plain, "empty_strided": torch.empty_strided, "foreach_copy": torch._foreach_copy_,
        } # fmt: skip
        self.name: dict[fx.Node, str] = {}
        self.known: set[sympy.Symbol] = set() # which are variables
        self.in_place: dict[fx.Node, str] = {} # values that lie as the graph says

    def make(self) -> Callable[[list[Any]], tuple[Any, ...]]:
        split_dropout(self.graph)
        join_attention(self.graph)
        split_factors(self.graph)
        write_negatives(self.graph)
        fold_conjugates(self.graph)
        root_strides(self.graph)
        self.graph.eliminate_dead_code()
        nodes = list(self.graph.nodes)
        self.placeholders = [n for n in nodes if n.op == "placeholder"]
        self.results = list(nodes[-1].args[0])
        self.updates = [n for n in nodes if n.target is aten.copy_.default and n.args[0].op == "placeholder"]
        updates = set(self.updates)
        self.device = device_of(self.graph)
        self.has_tangents = any(_is_tangent(n) for n in self.placeholders)
        self.has_complex = any(t.is_complex() for n in nodes for t in tensors_of(n))
        eager = reasons_for_eager(self.graph, updates, self.device)
        compiled: dict[tuple[Any, ...], tuple[Segment, programs.Program] | None] = {}
        while True:
            self.cut = Cut(self.graph, eager, updates)
            refused: dict[fx.Node, str] = {}
            segments = []
            for level in self._choose():
                key = tuple((n, n in self.wanted) for n in level)
                if key not in compiled: # others may have been refused, of which this one knows nothing
                    compiled[key] = self._compile(level, refused)
                segments.append(compiled[key])
            if not refused:
                break
            eager.update(refused)
        self.programs = [sum(n.target is not operator.getitem for n in s[1].nodes.values()) for s in segments if s]
        self.eager = {n.name: f"{n.target}: {reason}" for n, reason in eager.items() if n.target is not operator.getitem}
        self._write(segments)
        text = "def call(arguments):\n" + "".join(f"    {line}\n" for line in self.lines)
        log.debug("%s", text)
        exec(compile(text, "<tc>", "exec"), self.globals) # noqa: S102 - the text made above
        call: Callable[[list[Any]], tuple[Any, ...]] = self.globals["call"]
        setattr(call, "_boxed_call", True)
        return call

    def _may_be_lazy(self, node: fx.Node) -> bool:
        """Whether a given value's elements may not be in memory, see plain. Dynamo guards the bits of a call's arguments, but not
        those of gradients, nor of what PyTorch made."""
        value = node.meta["val"]
        if node.op == "placeholder":
            return value.is_conj() or value.is_neg() or _is_tangent(node) or (self.has_tangents and value.is_complex())
        return self.has_complex and self.cut.is_eager.get(node, False)

    # ----------------------------------------------------------------------------------------------------- compiling

    def _base(self, node: fx.Node, is_root: Callable[[fx.Node], bool]) -> fx.Node | None:
        """The value that the node is a view of, in as many steps as it takes to come to a root."""
        while not is_root(node):
            if node.op != "call_function" or self.cut.is_eager[node] or not is_view(node):
                return None
            node = node.args[0]
        return node

    def _is_given(self, node: fx.Node) -> bool:
        """Whether the value is there without a program's doing."""
        return node.op in ("placeholder", "get_attr") or self.cut.is_eager.get(node, False)

    def _choose(self) -> list[list[fx.Node]]:
        """The nodes of each level's program; `wanted`: those whose values are used outside of programs or in other levels' ones."""
        level = self.cut.level
        taken = [n for n in self.results if isinstance(n, fx.Node)] + [n for u in self.updates for n in u.args[:2] if isinstance(n, fx.Node)]
        for node, is_eager in self.cut.is_eager.items():
            if is_eager:
                shape = node.args[0] if node.target in SHAPED else None
                taken += [a for a in node.all_input_nodes if a is not shape]
        kept: set[fx.Node] = set()
        self.wanted: set[fx.Node] = set()
        stack: list[fx.Node] = []

        def shown(node: fx.Node) -> fx.Node:
            root = node
            while is_view(root) and self.cut.is_compiled(root.args[0]) and level[root.args[0]] == level[node]:
                root = root.args[0]
            return root if isinstance(root.meta["val"], torch.Tensor) else node

        def is_whole(node: fx.Node, root: fx.Node) -> bool:
            return isinstance(node.meta["val"], torch.Tensor) and node.meta["val"].numel() == root.meta["val"].numel()

        def want(node: fx.Node) -> None:
            if not self.cut.is_compiled(node) or self._base(node, self._is_given) is not None:
                return
            # Of values that are views of one another one is a result, which is as large as any; the function makes the others.
            # Parts of one that is a result show its memory too: callers may update it.
            root = shown(node)
            if root is not node and symbols.physical_order(root.meta["val"]) is not None and (root in whole or is_whole(node, root)):
                node = root
            self.wanted.add(node)
            stack.append(node)

        whole = {root for node in taken if self.cut.is_compiled(node) and is_whole(node, root := shown(node))}
        parts = collections.Counter(shown(n) for n in set(self.results) if isinstance(n, fx.Node) and self.cut.is_compiled(n))
        whole |= {root for root, count in parts.items() if count > 1} # which share memory
        for node in taken:
            want(node)
        while stack:
            node = stack.pop()
            if node in kept:
                continue
            kept.add(node)
            for argument in node.all_input_nodes:
                if not self.cut.is_compiled(argument):
                    continue
                if level[argument] == level[node] or self._base(argument, self._is_given) is not None or not isinstance(argument.meta["val"], torch.Tensor):
                    stack.append(argument)
                else:
                    want(argument)
        # Views of what is given are computed by each program that takes them.
        levels: list[list[fx.Node]] = [[] for _ in range(self.cut.count)]
        for number, nodes in enumerate(levels):
            own = {n for n in kept if level[n] == number and self._base(n, self._is_given) is None}
            stack = list(own)
            while stack:
                for argument in stack.pop().all_input_nodes:
                    if argument in kept and argument not in own and self._base(argument, self._is_given) is not None:
                        own.add(argument)
                        stack.append(argument)
            nodes += [n for n in self.graph.nodes if n in own]
        return levels

    def _compile(self, nodes: list[fx.Node], refused: dict[fx.Node, str]) -> tuple[Segment, programs.Program] | None:
        outputs = [n for n in nodes if n in self.wanted]
        if not outputs:
            return None
        operators = sum(n.target is not operator.getitem and not is_view(n) for n in nodes)
        if operators < self.settings.least_operators:
            refused.update((n, f"a program of {operators} operators is too small to compile") for n in nodes if self._base(n, self._is_given) is None)
            return None
        frozen = {self.placeholders[i]: tensor for i, tensor in self.settings.frozen.items()}
        program = programs.build(nodes, outputs, self.module, frozen, self.fake_mode)
        arguments = _gpu_arguments(self.settings.arguments) if self.device.type == "cuda" else self.settings.arguments
        checks = self.settings.check_bounds
        if checks or (checks is None and self.device.type == "cpu"): # else a run waits for the GPU
            arguments = ["--check-bounds", *(a for a in arguments if a != "--check-bounds")]
        if self.device.type == "cpu": # others are copied to a row in each call
            static = {node for node in (self.placeholders[i] for i in self.settings.static) if not self._may_be_lazy(node)}
            names = [name for name, node, _ in program.inputs if node in static and symbols.physical_order(node.meta["val"]) is not None]
            arguments = [*arguments, *(f"--static-input={name}" for name in names)]
        try:
            on_host = {name for name, node, _ in program.inputs if node.meta["val"].device != self.device}
            return Segment(compile_program(program, arguments), self.settings.threads, self.device, on_host), program
        except Refused as error:
            if not self.settings.fallback:
                raise RuntimeError(f"tc: {error}") from None
            found = {program.nodes[name]: reason for name, reason in error.reasons.items() if name in program.nodes}
            for node in found or [n for n in nodes if self._base(n, self._is_given) is None]:
                reason = found.get(node) or str(error).splitlines()[0]
                source = node.args[0] if node.target is operator.getitem else node
                refused.update((n, reason) for n in [source, *(u for u in source.users if u.target is operator.getitem)])
            return None

    # ------------------------------------------------------------------------------------------------------- writing

    def _write(self, segments: list[tuple[Segment, programs.Program] | None]) -> None:
        names = [f"a{i}" for i in range(len(self.placeholders))]
        self.name = dict(zip(self.placeholders, names))
        self.lines.append(f"{', '.join(names)}{',' if len(names) == 1 else ''} = arguments" if names else "pass")
        self.lines.append("arguments.clear()")
        for placeholder in self.placeholders:
            self._learn(placeholder)
        for level in range(-1, len(segments)):
            if level >= 0 and (segment := segments[level]):
                self._write_segment(*segment)
            for node in self.graph.nodes:
                if self.cut.is_eager.get(node) and self.cut.level[node] == level:
                    self.name[node], text = f"e{len(self.name)}", self._call(node)
                    self.lines.append(f"{self.name[node]} = {text}")
                    self._learn(node)
        pairs = [(self._value(u.args[0]), self._value(u.args[1])) for u in self.updates] # when all has been read
        # Gradients are computed with what arguments were before an update.
        updated = {u.args[0] for u in self.updates}
        for result in self.results:
            shown = result
            while isinstance(shown, fx.Node) and shown not in self.updates and is_view(shown):
                shown = shown.args[0]
            if shown in updated:
                name = f"b{len(self.lines)}"
                self.lines.append(f"{name} = {self._value(result)}.clone()")
                self.name[result] = name
        # .data, as AOTAutograd counts the versions of what is updated.
        if len(pairs) > 1:
            self.lines.append(f"foreach_copy([{', '.join(f'{t}.data' for t, _ in pairs)}], [{', '.join(v for _, v in pairs)}])")
        elif pairs:
            self.lines.append(f"{pairs[0][0]}.data.copy_({pairs[0][1]})")
        self.lines.append("return (" + "".join(self._result(r) + ", " for r in self.results) + ")")

    def _result(self, node: Any) -> str:
        """Text of a result: with gaps where the graph says so, as of empty_strided; programs write elements that lie in a row."""
        value = node.meta["val"] if isinstance(node, fx.Node) and self.cut.is_compiled(node) and not is_view(node) else None
        if not isinstance(value, torch.Tensor) or symbols.physical_order(value) is not None or not symbols.has_gaps_alone(value):
            return self._value(node)
        self._need(*value.shape, *value.stride())
        return f"fit({self._value(node)}, {symbols.tuple_text(value.shape)}, {symbols.tuple_text(value.stride())})"

    def _places(self, node: fx.Node) -> list[tuple[Any, str]]:
        """Sizes that the node's value tells, with the text of each."""
        value = node.meta.get("val")
        return [(value, self.name[node])] if is_number(node) else [(s, f"{self.name[node]}.size({d})") for d, s in enumerate(getattr(value, "shape", ()))]

    def _learn(self, node: fx.Node) -> None:
        """Makes variables of symbols that the node's value tells."""
        for size, text in self._places(node):
            expr = symbols.expression(size)
            if isinstance(expr, sympy.Symbol) and expr not in self.known:
                self.known.add(expr)
                self.lines.append(f"{expr} = {text}")

    def _need(self, *sizes: Any) -> None:
        """Makes variables of symbols of these that only expressions of arguments tell."""
        for symbol in sorted(symbols.symbols_of(*sizes) - self.known, key=str):
            for node in self.placeholders:
                for size, text in self._places(node):
                    expr = symbols.expression(size)
                    if symbol not in self.known and isinstance(expr, sympy.Basic) and expr.free_symbols == {symbol}:
                        given = sympy.Symbol("given", integer=True)
                        solved = try_solve(sympy.Eq(expr, given), symbol)
                        if solved is not None and isinstance(solved[0], sympy.Eq):
                            self.known.add(symbol)
                            self.lines += [f"given = {text}", f"{symbol} = int({symbols.text_of(solved[1])})"]
            if symbol not in self.known:
                raise RuntimeError(f"tc: no argument of the graph tells the size {symbol}")

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.globals)}"
        self.globals[name] = value
        return name

    def _value(self, value: Any) -> str:
        """Text of an argument or result."""
        if isinstance(value, fx.Node):
            if value not in self.name:
                self.name[value] = self._computed(value)
            return self.name[value]
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            self._need(value)
            return symbols.text(value)
        if isinstance(value, (list, tuple)):
            inner = "".join(self._value(v) + ", " for v in value)
            return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
        if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
            return repr(value)
        return self._constant(value)

    def _computed(self, node: fx.Node) -> str:
        if node.op == "get_attr":
            value = getattr(self.module, node.target)
            return self._constant(plain(value) if isinstance(value, torch.Tensor) else value)
        if is_number(node):
            return self._value(node.meta["val"])
        if node in self.updates:
            return self._value(node.args[0])
        root = self._base(node, lambda n: n in self.name or self._is_given(n))
        if root is None:
            raise RuntimeError(f"tc: the graph's {node.format_node()} was not computed")
        given, value, base = self._in_place(root), node.meta["val"], root.meta["val"]
        offset = value.storage_offset() - base.storage_offset()
        places = [symbols.tuple_text(value.shape), symbols.tuple_text(value.stride()), symbols.text(offset)]
        if places == [symbols.tuple_text(base.shape), symbols.tuple_text(base.stride()), "0"]:
            return given
        self._need(*value.shape, *value.stride(), offset)
        name = f"v{len(self.name)}"
        self.lines.append(f"{name} = {given}.as_strided({places[0]}, {places[1]}, {given}.storage_offset(){'' if places[2] == '0' else ' + ' + places[2]})")
        return name

    def _call(self, node: fx.Node) -> str:
        arguments = []
        for index, argument in enumerate(node.args):
            if index == 0 and node.target in SHAPED and isinstance(argument, fx.Node): # whatever its elements are
                value = argument.meta["val"]
                self._need(*value.shape, *value.stride())
                arguments.append(_empty_like_text(value, value.stride()))
            elif index == 0 and node.target in MEMORY:
                arguments.append(self._value(argument) if self.cut.is_eager.get(argument) else self._in_place(argument))
            else:
                arguments.append(self._value(argument))
        if node.target is operator.getitem:
            return f"{arguments[0]}[{arguments[1]}]"
        arguments += [f"{k}={self._value(v)}" for k, v in node.kwargs.items()]
        return f"{self._constant(node.target)}({', '.join(arguments)})"

    def _in_place(self, node: fx.Node) -> str:
        """The node's value where it lies as the graph says, or a copy that does: values from elsewhere may not."""
        if node not in self.in_place:
            value, given = node.meta["val"], self._value(node)
            self._need(*value.shape, *value.stride())
            size, stride = symbols.tuple_text(value.shape), symbols.tuple_text(value.stride())
            self.in_place[node] = name = f"f{len(self.in_place)}"
            given = f"plain({given})" if self._may_be_lazy(node) else given
            self.lines += [f"{name} = {given}", f"try: check({name}, {size}, {stride})", f"except AssertionError: {name} = fit({name}, {size}, {stride})"]
        return self.in_place[node]

    def _write_segment(self, segment: Segment, program: programs.Program) -> None:
        inputs = {name: (node, order) for name, node, order in program.inputs}
        numbers, addresses, shapes, out_shapes = {name: rest for name, *rest in program.sizes}, [], [], []
        used: set[sympy.Symbol] = set()
        tensors = {}
        for name in segment.names:
            if name in numbers:
                symbol, shift = numbers[name]
                self._need(self.fake_mode.shape_env.create_symintnode(symbol, hint=None))
                addresses.append("0") # of no bytes
                shapes.append(f"({symbol} + {shift}, 0)")
                used.add(symbol)
                continue
            node, order = inputs[name]
            value = node.meta["val"]
            if symbols.physical_order(value) is None:
                variable = f"c{len(self.lines)}"
                given = self._value(node)
                self.lines.append(f"{variable} = {f'plain({given})' if self._may_be_lazy(node) else given}.contiguous()")
            else:
                variable = self._in_place(node)
            tensors[name] = variable
            addresses.append(f"{variable}.data_ptr()")
            shapes.append(symbols.tuple_text(value.shape[dim] for dim in order))
            used |= symbols.symbols_of(*value.shape)
        for node, order in program.outputs:
            value = node.meta["val"]
            self._need(*value.shape)
            used |= symbols.symbols_of(*value.shape)
            self.name[node] = name = f"o{len(self.name)}"
            self.in_place[node] = name
            self.lines.append(f"{name} = {_empty_like_text(value, symbols.row_major_strides(value.shape, order))}")
            addresses.append(f"{name}.data_ptr()")
            out_shapes.append(symbols.tuple_text(value.shape[dim] for dim in order))
        variables = "".join(f"{s}, " for s in sorted(used, key=str))
        segment.find_shapes = eval(f"lambda {variables[:-2]}: ([{', '.join(shapes)}], [{', '.join(out_shapes)}])", {"math": math, "torch": torch}) # noqa: S307
        own, stream, waits = self._constant(segment), "0", 1
        if segment.device.type == "cuda":
            stream = f"torch.cuda.current_stream({segment.device.index or 0}).cuda_stream"
            waits = int(bool(segment.on_host)) # a run reads them where they are
        self.lines += [
            f"pool = {own}.pools[{stream}]",
            "try: state = pool.pop()",
            f"except IndexError: state = {own}.state({stream})",
            f"if state.sizes != ({variables}): {own}.resize(state, ({variables}))",
            "addresses = state.addresses",
            *(f"addresses[{i}] = {address}" for i, address in enumerate(addresses)),
            *([f"{own}.prepare(state, ({''.join(f'{tensors[name]}, ' for name in segment.statics)}))"] if segment.statics else []),
            f"status = run(state.handle, {waits}, {len(segment.names)}, state.inputs, {len(program.outputs)}, state.outputs, addresses)",
            f"if status: {own}.fail(status)",
            "pool.append(state)",
        ]
