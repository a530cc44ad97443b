# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of torch_operators.json, as PyTorch is told of them. They write their arguments."""

import torch

library = torch.library.Library("example", "DEF")


def accumulate(x, total, decay=1.0):
    total.mul_(decay).add_(x)
    return x - total


def bump(x, n):
    x.add_(n * torch.arange(x.shape[0], dtype=x.dtype).reshape([-1] + [1] * (x.dim() - 1)))


def exchange(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


for function, schema, fake in (
    (accumulate, "accumulate(Tensor x, Tensor(a!) total, float decay=1) -> Tensor", lambda x, total, decay=1.0: torch.empty_like(x)),
    (bump, "bump(Tensor(a!) x, int n) -> ()", lambda x, n: None),
    (exchange, "exchange(Tensor(a!) x, Tensor(b!) y) -> ()", lambda x, y: None),
):
    name = library.define(schema)
    library.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"example::{name}", fake, lib=library)
