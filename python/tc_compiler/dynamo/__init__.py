# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend "tc" of torch.compile.

  compiled = torch.compile(model, backend="tc", options={"freezing": True})

Dynamo and AOTAutograd make graphs of ATen's operators (forward, backward, inference); tc compiles each for this machine, and what it does not support is
run by PyTorch. Needs PyTorch (2.11 and 2.15 were tested), which the package imports only here. README.md of this folder says what is where.
"""
from .backend import Options, counters, tc

__all__ = ["Options", "counters", "tc"]
