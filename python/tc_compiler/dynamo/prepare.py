# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators written as others that say the same, before a graph is cut: more of it can then be compiled."""
from __future__ import annotations

import operator

import torch
from torch import fx

from . import symbols
from .views import LAZY, is_view

aten = torch.ops.aten


def dropout_mask(like: torch.Tensor, p: float) -> torch.Tensor:
    """The mask of native_dropout on a CPU: its numbers are those of eager's dropout."""
    return torch.empty_like(like, dtype=torch.bool).bernoulli_(1.0 - p)


def split_dropout(graph: fx.Graph) -> None:
    """Writes native_dropout on CPUs as a mask of random numbers and products, so that all but the mask is compiled."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not aten.native_dropout.default or node.meta["val"][0].device.type != "cpu":
            continue
        x, p, train = (list(node.args) + [None])[:3]
        if train is False:
            continue
        value, mask_value = node.meta["val"]
        with graph.inserting_before(node):
            mask = graph.call_function(dropout_mask, (x, p))
            mask.meta = {**node.meta, "val": mask_value}
            kept = graph.call_function(aten.mul.Tensor, (x, mask))
            kept.meta = {**node.meta, "val": value}
            scaled = graph.call_function(aten.mul.Scalar, (kept, 0.0 if p == 1 else 1.0 / (1.0 - p)))
            scaled.meta = {**node.meta, "val": value}
        for user in list(node.users):
            user.replace_all_uses_with((scaled, mask)[user.args[1]])
            graph.erase_node(user)
        graph.erase_node(node)


def write_negatives(graph: fx.Graph) -> None:
    """Writes views that negate lazily, as imag of a conjugate is one, as negations."""
    for node in graph.nodes:
        if node.target is aten._neg_view.default:
            node.target = aten.neg.default


def fold_conjugates(graph: fx.Graph) -> None:
    """Conjugates numbers, of which gradients of products with a number ask for a tensor that lazily is one."""
    for node in list(graph.nodes):
        if node.target is not aten._conj.default or isinstance(node.args[0], fx.Node) or any(user.op == "output" for user in node.users):
            continue
        number = node.args[0].conjugate()
        replace = lambda argument, node=node, number=number: number if argument is node else argument
        for user in list(node.users):
            user.args, user.kwargs = fx.node.map_arg(user.args, replace), fx.node.map_arg(user.kwargs, replace)
        graph.erase_node(node)


def root_strides(graph: fx.Graph) -> None:
    """Writes as_strided of views as of the value that they are views of, in the order in which that lies in memory: it reads memory, whatever the view was.
    What is given to the graph lies where it does."""
    for node in graph.nodes:
        if node.target is not aten.as_strided.default:
            continue
        given = root = node.args[0]
        while is_view(root):
            root = root.args[0]
        order = symbols.physical_order(root.meta["val"]) if root.op == "call_function" else None
        if order is None or root.target in LAZY or root.meta["val"].storage_offset() != 0:
            continue
        offset = node.args[3] if len(node.args) > 3 else node.kwargs.get("storage_offset")
        with graph.inserting_before(node):
            if offset is None:
                offset = given.meta["val"].storage_offset()
            if isinstance(offset, torch.SymInt):
                place = graph.call_function(aten.sym_storage_offset.default, (given,))
                place.meta["val"], offset = offset, place
            if order != tuple(range(len(order))):
                memory = graph.call_function(aten.permute_copy.default, (root, list(order)))
                memory.meta = {**root.meta, "val": root.meta["val"].permute(order)}
                root = memory
        node.args = (root, *node.args[1:3], offset)
        node.kwargs = {}


# What scaled_dot_product_attention becomes on GPUs, with the number of its mask's argument, and of dropout_p, which is_causal follows.
_ATTENTION = {
    aten._scaled_dot_product_flash_attention.default: (None, 3),
    aten._scaled_dot_product_efficient_attention.default: (3, 5),
    aten._scaled_dot_product_cudnn_attention.default: (3, 5),
}


def join_attention(graph: fx.Graph) -> None:
    """Writes attention that only its result is used of, as inference has it, as the operator that it came from: tc has a kernel of its own. What a
    gradient needs of it, such as states of random numbers, has PyTorch's kernels on both sides."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _ATTENTION:
            continue
        mask_index, dropout_index = _ATTENTION[node.target]
        defaults = [argument.default_value for argument in node.target._schema.arguments]
        arguments = [*node.args, *defaults[len(node.args) :]]
        query, key, value = arguments[:3]
        dropout_p, is_causal = arguments[dropout_index : dropout_index + 2]
        is_square = symbols.expression(query.meta["val"].shape[-2]) == symbols.expression(key.meta["val"].shape[-2])
        users = list(node.users)
        if dropout_p != 0 or (is_causal and not is_square) or any(u.target is not operator.getitem or u.args[1] != 0 for u in users):
            continue
        with graph.inserting_before(node):
            mask = arguments[mask_index] if mask_index is not None else None
            joined = graph.call_function(aten.scaled_dot_product_attention.default, (query, key, value, mask, 0.0, is_causal), {"scale": node.kwargs.get("scale")})
            joined.meta = {**node.meta, "val": node.meta["val"][0]}
        for user in users:
            user.replace_all_uses_with(joined)
            graph.erase_node(user)
        graph.erase_node(node)


# Determinants, with the numbers of LU factors and pivots among the results, which their gradients need.
_FACTORED = {aten._linalg_det.default: (1, 2), aten._linalg_slogdet.default: (2, 3)}


def split_factors(graph: fx.Graph) -> None:
    """Writes LU factors that a gradient needs as those of torch.linalg.lu_factor: PyTorch takes them of the transposed matrix where the matrix lies in a
    row (aten/src/ATen/native/BatchLinearAlgebra.cpp), which programs do not know."""
    for node in list(graph.nodes):
        wanted = _FACTORED.get(node.target, ())
        users = [user for user in node.users if user.target is operator.getitem and user.args[1] in wanted]
        matrix = node.args[0] if users else None
        if matrix is None or matrix.meta["val"].is_complex():
            continue
        values = [node.meta["val"][i] for i in wanted]
        with graph.inserting_before(node):
            if matrix.meta["val"].is_contiguous():
                turned = graph.call_function(aten.transpose.int, (matrix, -2, -1))
                turned.meta = {**node.meta, "val": matrix.meta["val"].mT}
                matrix = turned
            factored = graph.call_function(aten.linalg_lu_factor_ex.default, (matrix,))
            factored.meta = {**node.meta, "val": (*values, values[1].new_empty(values[1].shape[:-1]))}
            parts = [graph.call_function(operator.getitem, (factored, i)) for i in range(2)]
            for part, value in zip(parts, values):
                part.meta = {**node.meta, "val": value}
        for user in users:
            user.replace_all_uses_with(parts[wanted.index(user.args[1])])
            graph.erase_node(user)
