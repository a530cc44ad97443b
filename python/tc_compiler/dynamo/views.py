# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which nodes show the elements of others."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def schema_of(node: fx.Node) -> Any:
    """The schema of an operator of PyTorch; None of what is none."""
    return node.target._schema if isinstance(node.target, torch._ops.OpOverload) else None


# Views whose elements PyTorch changes when they are read.
LAZY = {aten._conj.default, aten._neg_view.default}


def is_view(node: fx.Node) -> bool:
    """Whether the result is a tensor, or a list of them, that shows its first argument's elements, as they are, by strides; or one of such a list."""
    schema, value = schema_of(node), node.meta.get("val")
    if node.target is operator.getitem:
        return isinstance(value, torch.Tensor) and schema_of(node.args[0]) is not None and is_view(node.args[0])
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, torch.Tensor) for v in value):
        value = value[0]
    if schema is None or len(schema.returns) != 1 or not isinstance(value, torch.Tensor) or not node.args or node.target in LAZY:
        return False
    alias = schema.returns[0].alias_info
    if alias is None or alias.is_write or not isinstance(node.args[0], fx.Node):
        return False
    return bool(value.dtype == node.args[0].meta["val"].dtype and value.layout == torch.strided)
