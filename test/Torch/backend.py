#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's op_db through torch.compile(backend="tc"), beside eager: results and gradients.

usage: backend.py [--filter RE] [--samples 2] [--part I/N] [--out FILE.json]      scripts/test_torch.sh --operators runs it

Takes half an hour, so CI does not run it. Each entry's first samples in f32 (or the first type that it has); results and the gradients of all that has some are compared
with PyTorch's tolerances for gradients. What eager refuses is left out; random operators run under the same seed.
"""
import argparse
import json
import logging
import os
import re
import sys
import warnings

import torch
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")


def first_dtype(op):
    for dtype in (torch.float32, torch.int64, torch.complex64, torch.bool):
        if dtype in op.dtypes:
            return dtype
    return next(iter(op.dtypes), torch.float32)


def run(function, leaves, spec):
    """Results and gradients of their weighted sum."""
    given = [x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x for x in leaves]
    torch.manual_seed(11)
    results = [x for x in pytree.tree_leaves(function(*given)) if isinstance(x, torch.Tensor)]
    chosen = [x for x in results if x.requires_grad]
    gradients = []
    wanted = [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad]
    if chosen and wanted:
        total = sum((x.abs() if x.is_complex() else x).sum() * (i + 1) / 3 for i, x in enumerate(chosen))
        gradients = torch.autograd.grad(total, wanted, allow_unused=True)
    return results, list(gradients)


def check(op, sample):
    """"right", or what is wrong."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def function(*tensors):
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        x, args, kwargs = pytree.tree_unflatten(filled, spec)
        return op.op(x, *args, **kwargs)

    tensors = [leaves[i] for i in places]
    try:
        expected = run(function, tensors, spec)
    except Exception as error:
        return f"eager: {error}"[:100]
    torch._dynamo.reset()
    try:
        actual = run(torch.compile(function, backend="tc"), tensors, spec)
    except Exception as error:
        return "failed: " + " ".join(str(error).split())[:600]
    for kind, a, e in zip(("result", "gradient"), actual, expected):
        if len(a) != len(e):
            return f"{kind}s: {len(a)} of {len(e)}"
        for i, (x, y) in enumerate(zip(a, e)):
            if (x is None) != (y is None):
                return f"{kind} {i}: {'none' if x is None else 'one'}"
            if x is None:
                continue
            if x.dtype != y.dtype or x.shape != y.shape:
                return f"{kind} {i}: {x.dtype} {tuple(x.shape)} for {y.dtype} {tuple(y.shape)}"
            if x.layout != torch.strided or x.is_quantized:
                continue
            if y.dtype.itemsize == 1 and y.is_floating_point():
                x, y = x.float(), y.float()
            size = float(y.abs().nan_to_num(0, 0, 0).max()) if y.numel() and (y.is_floating_point() or y.is_complex()) else 0
            try:
                torch.testing.assert_close(x, y, rtol=1e-3 if y.dtype.itemsize > 2 else 2e-2, atol=1e-5 + 1e-4 * size, equal_nan=True)
            except AssertionError as error:
                return f"{kind} {i}: " + " ".join(str(error).split())[:250]
    return "right"


def main():
    from tc_compiler.dynamo import counters
    from torch.testing._internal.common_methods_invocations import op_db

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--out")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    part, parts = map(int, options.part.split("/"))
    found = json.load(open(options.out)) if options.out and os.path.exists(options.out) else {} # goes on where it was
    for op in [o for o in op_db if re.search(options.filter, o.full_name)][part::parts]:
        if op.full_name in found or "empty" in op.full_name or op.full_name == "linalg.eigh": # whose numbers are any, or vectors of either sign
            continue
        dtype = first_dtype(op)
        torch.manual_seed(1)
        try:
            samples = []
            for sample in op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)):
                samples.append(sample)
                if len(samples) == options.samples:
                    break
        except Exception as error:
            found[op.full_name] = [f"eager: {error}"[:100]]
            continue
        for index, sample in enumerate(samples):
            before = counters["eager"]
            result = check(op, sample)
            if counters["eager"] > before and result == "right":
                result = "right, by PyTorch in part"
            found.setdefault(op.full_name, []).append(result)
            if not result.startswith(("right", "eager")):
                print(f"{op.full_name} {index}: {result}", flush=True)
        if options.out:
            with open(options.out, "w") as file:
                json.dump(found, file, indent=1)
    flat = [r for results in found.values() for r in results]
    counts = {k: sum(r.split(":")[0].split(" ")[0].rstrip(",") == k for r in flat) for k in ("right", "failed", "eager")}
    wrong = len(flat) - sum(counts.values())
    print(f"{len(flat)} samples: {counts['right']} right ({sum(r.endswith('in part') for r in flat)} by PyTorch in part), {wrong} wrong, {counts['failed']} failed, {counts['eager']} refused by eager")
    sys.exit(1 if wrong or counts["failed"] else 0)


if __name__ == "__main__":
    main()
