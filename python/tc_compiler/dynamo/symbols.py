# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes as expressions: text that Python evaluates in each call, nodes that a program computes."""
from __future__ import annotations

from typing import Any, Iterable, Sequence

import sympy
import torch
from torch.utils._sympy.functions import Max
from torch.utils._sympy.printers import PythonPrinter

_printer = PythonPrinter()


def expression(size: Any) -> sympy.Expr | int | float | bool:
    """Of a number, a SymInt, SymFloat or SymBool."""
    if isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        expr = size.node.expr
        return int(expr) if isinstance(expr, sympy.Integer) else expr
    return size


def text_of(expr: sympy.Expr | int | float | bool) -> str:
    """Python's text of it, in which symbols are variables."""
    return repr(expr) if isinstance(expr, (int, float, bool)) else _printer.doprint(expr)


def text(size: Any) -> str:
    """As text_of, of a number, a SymInt, SymFloat or SymBool."""
    return text_of(expression(size))


def tuple_text(sizes: Iterable[Any]) -> str:
    parts = [text(size) for size in sizes]
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"


def symbols_of(*sizes: Any) -> set[sympy.Symbol]:
    found: set[sympy.Symbol] = set()
    for size in sizes:
        expr = expression(size)
        if isinstance(expr, sympy.Basic):
            found |= expr.free_symbols
    return found


def hint(size: Any) -> int:
    """The size that the graph was made with; 2 for one that only a run knows."""
    if isinstance(size, int):
        return size
    value = size.node.hint
    return 2 if value is None else int(value)


# How far below 0 numbers may lie that programs take.
FARTHEST = 2**16


def is_far(number: Any) -> bool:
    """Whether the number is made of one farther below 0 than that: programs take numbers as sizes with a shift, and their powers would leave 64 bits. Dynamo guards the answer."""
    if not isinstance(number, torch.SymInt):
        return False
    environment = number.node.shape_env
    for symbol in symbols_of(number):
        bounds = environment.var_to_range.get(symbol)
        known = None if bounds is not None and bounds.lower >= -FARTHEST else environment.create_symintnode(symbol, hint=None).node.hint
        if known is not None and not environment.frozen and not environment.evaluate_expr(sympy.Ge(symbol, -FARTHEST)):
            return True
    return False


def _is(size: Any, wanted: Any) -> bool:
    """Whether the two are the same whatever the symbols are; strides of no elements are any."""
    left, right = (e.replace(Max, _without_one) if isinstance(e, sympy.Basic) else e for e in (expression(size), expression(wanted)))
    return bool(left == right or (isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic)) and sympy.expand(left - right) == 0)


def _without_one(*sizes: sympy.Expr) -> sympy.Expr:
    rest = [size for size in sizes if size != 1]
    return rest[0] if len(rest) == 1 else Max(*sizes)


def _is_row_major(sizes: Sequence[Any], strides: Sequence[Any], order: Sequence[int]) -> bool:
    expected: Any = 1
    for dim in reversed(order):
        if not _is(sizes[dim], 1) and not _is(strides[dim], expected):
            return False
        expected = expected * sizes[dim]
    return True


def physical_order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Dims by falling strides: permuted so, the tensor is row-major, whatever its symbols are. None if its elements do not lie in a row (gaps, overlaps)."""
    sizes, strides = tensor.shape, tensor.stride()
    if _is_row_major(sizes, strides, range(len(sizes))):
        return tuple(range(len(sizes)))
    order = sorted(range(len(sizes)), key=lambda dim: (-hint(strides[dim]), dim) if hint(sizes[dim]) != 1 else (-hint(strides[dim]) - 0.5, dim))
    return tuple(order) if _is_row_major(sizes, strides, order) else None


def has_gaps_alone(tensor: torch.Tensor) -> bool:
    """Whether no two elements are in one place, as far as each dim's strides go beyond all that smaller ones span."""
    reach = 0
    for stride, size in sorted((hint(stride), hint(size)) for stride, size in zip(tensor.stride(), tensor.shape) if hint(size) != 1):
        if stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


def row_major_strides(sizes: Iterable[Any], order: Iterable[int]) -> list[Any]:
    """Strides of a tensor of these sizes whose dims lie in this order."""
    sizes, expected = list(sizes), 1
    strides: list[Any] = [1] * len(sizes)
    for dim in reversed(list(order)):
        strides[dim] = expected
        expected = expected * (max(sizes[dim], 1) if isinstance(sizes[dim], int) else sizes[dim])
    return strides
