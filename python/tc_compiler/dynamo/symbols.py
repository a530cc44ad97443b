# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes as expressions: text that Python evaluates in each call, nodes that a program computes."""
from __future__ import annotations

from typing import Any, Iterable

import sympy
import torch
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


def physical_order(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Dims by falling strides: permuted so, the tensor is row-major. None if its elements do not lie in a row (gaps, overlaps)."""
    sizes, strides = tensor.shape, tensor.stride()
    order = sorted(range(len(sizes)), key=lambda dim: (-hint(strides[dim]), dim) if hint(sizes[dim]) != 1 else (-hint(strides[dim]) - 0.5, dim))
    expected: Any = 1
    for dim in reversed(order):
        if hint(sizes[dim]) != 1 and hint(strides[dim]) != hint(expected):
            return None
        expected = expected * sizes[dim]
    # Where row-major says the same, it is that.
    expected = 1
    for dim in reversed(range(len(sizes))):
        if hint(sizes[dim]) != 1 and hint(strides[dim]) != hint(expected):
            return tuple(order)
        expected = expected * sizes[dim]
    return tuple(range(len(sizes)))


def row_major_strides(sizes: Iterable[Any], order: Iterable[int]) -> list[Any]:
    """Strides of a tensor of these sizes whose dims lie in this order."""
    sizes, expected = list(sizes), 1
    strides: list[Any] = [1] * len(sizes)
    for dim in reversed(list(order)):
        strides[dim] = expected
        expected = expected * (max(sizes[dim], 1) if isinstance(sizes[dim], int) else sizes[dim])
    return strides
