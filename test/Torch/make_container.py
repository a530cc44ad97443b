#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make samples.xz: PyTorch's own samples of its operators, each as a .pt2 and a .pt archive with inputs and expected outputs.

usage: make_container.py OUT.xz [--entries entries.json] [--per 8] [--filter RE] [--dtypes float32,int64,bool] [--jobs 2]

Made with torch 2.15.0 and expecttest 0.3.0 (pip install torch==2.15.0 expecttest==0.3.0); others draw other samples. Nothing else
needs PyTorch: run.py reads the container with Python's standard library and NumPy.

Samples are those of torch.testing._internal's op_db, evenly spaced, with fixed seeds. Expected values are those of eager PyTorch
computed in float64 where that says the same as in the sample's own dtype; where it does not (nextafter, finfo of the dtype) the
sample has both, and how far the result moves when inputs are rounded. Tolerances are PyTorch's: assert_close's, or the widest override
for the operator on CPUs. Archives lose what tells of this machine (stack traces, example inputs, serialization ids), and members that
are alike are kept once.
container.py describes the format.
"""
import argparse
import contextlib
import io
import json
import logging
import multiprocessing
import os
import random
import re
import signal
import struct
import sys
import warnings
import zipfile

import container
import numpy as np

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = "2.15.0"
TIMEOUT = 60
# What PyTorch leaves in memory that is not initialised has no expected values.
UNINITIALISED = re.compile(r"^(new_)?empty|^resize_|^resize_as_|permuted$")


class Late(Exception):
    pass


def alarm(seconds):
    def late(*_):
        raise Late()

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)


def import_torch():
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    return torch


def key(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def pick(samples, count):
    if len(samples) <= count:
        return list(enumerate(samples))
    return [(i, samples[i]) for i in (round(k * (len(samples) - 1) / (count - 1)) for k in range(count))]


def seed_all(torch, seed=0):
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@contextlib.contextmanager
def own_seeds(torch):
    """op_db gives random operators the same seed before each call, so that nobody would see that they are random."""
    kept, torch.manual_seed = torch.manual_seed, lambda seed: torch.default_generator
    try:
        yield
    finally:
        torch.manual_seed = kept


def SeedWatcher(torch):
    """Notes whether an operator draws random numbers."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watcher(TorchDispatchMode):
        is_seeded = False

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.is_seeded |= torch.Tag.nondeterministic_seeded in function.tags
            return function(*args, **(kwargs or {}))

    return Watcher()


def wrap(torch, op, sample):
    """A module of the sample's tensors alone, and these."""
    import torch.utils._pytree as pytree

    leaves, spec = pytree.tree_flatten((sample.input, list(sample.args), dict(sample.kwargs)))
    hole = object()
    fixed = [hole if isinstance(x, torch.Tensor) else x for x in leaves]

    class Sample(torch.nn.Module):
        def forward(self, *tensors):
            given = iter(tensors)
            filled = [next(given) if f is hole else f for f in fixed]
            x, args, kwargs = pytree.tree_unflatten(filled, spec)
            return op.op(x, *args, **kwargs)

    return Sample().eval(), [x for x in leaves if isinstance(x, torch.Tensor)]


def flat(torch, value):
    import torch.utils._pytree as pytree

    return [t.resolve_conj().resolve_neg().detach() for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def is_number(value):
    return isinstance(value, (bool, int, float))


def to_array(torch, tensor):
    """(dtype, shape, bytes) in C order; the dtype in tc's names."""
    tensor = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)
    name = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
            "uint8": "u8", "bool": "bool", "complex64": "c64", "complex128": "c128"}.get(str(tensor.dtype)[6:], str(tensor.dtype)[6:])  # fmt: skip
    return name, list(tensor.shape), tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def tolerance(torch, op, dtype):
    """{rtol, atol}: assert_close's own, or the widest that op_db's tests ask for on CPUs."""
    from torch.testing._comparison import default_tolerances
    from torch.testing._internal.common_device_type import toleranceOverride

    rtol, atol = default_tolerances(dtype)
    for decorator in op.decorators or ():
        for inner in getattr(decorator, "decorators", (decorator,)):
            if isinstance(inner, toleranceOverride) and getattr(decorator, "device_type", None) in (None, "cpu") and dtype in inner.d:
                rtol, atol = max(rtol, inner.d[dtype].rtol), max(atol, inner.d[dtype].atol)
    return {"rtol": rtol, "atol": atol}


def is_close(torch, a, b, tolerances):
    return a.shape == b.shape and torch.allclose(a, b, rtol=tolerances["rtol"], atol=tolerances["atol"], equal_nan=True)


def in_float64(torch, module, tensors, wanted, generator=None):
    """What the sample gives in float64, rounded to the dtypes of `wanted`; None where it cannot be computed so. generator: with inputs up to half a unit in
    the last place away."""
    low = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    if not any(t.dtype in low for t in wanted):
        return None

    def widened(tensor):
        if tensor.dtype not in low:
            return tensor.clone()
        wide = tensor.to(low[tensor.dtype])
        return wide if generator is None else wide * (1 + 2.0**-24 * (2 * torch.rand(tensor.shape, generator=generator, dtype=torch.float64) - 1))

    try:
        alarm(TIMEOUT)
        seed_all(torch)
        wide = flat(torch, module(*map(widened, tensors)))
    except (Exception, Late):
        return None
    finally:
        signal.alarm(0)
    if len(wide) != len(wanted) or any(w.shape != t.shape or (w.dtype != t.dtype and w.dtype != low.get(t.dtype)) for w, t in zip(wide, wanted)):
        return None
    return [w.to(t.dtype) for w, t in zip(wide, wanted)]


def moves(torch, module, tensors, wide):
    """How far each output moves in float64 when the inputs are rounded: no f32 answer is wrong by that."""
    generator, most = torch.Generator().manual_seed(1), [0.0] * len(wide)
    for _ in range(8):
        other = in_float64(torch, module, tensors, wide, generator)
        if other is None or any(t.dtype.is_floating_point and not (t.isfinite().all() and o.isfinite().all()) for t, o in zip(wide, other)):
            return None
        distances = [float((o - t).abs().max()) if t.is_floating_point() and t.numel() else 0.0 for t, o in zip(wide, other)]
        most = list(map(max, most, distances))
    return most


def strip_program(text):
    program = json.loads(text)

    def walk(node):
        if isinstance(node, dict):
            if isinstance(node.get("metadata"), dict):
                node["metadata"] = {}
            for inner in node.values():
                walk(inner)
        elif isinstance(node, list):
            for inner in node:
                walk(inner)

    walk(program)
    return json.dumps(program, separators=(",", ":")).encode()


def members(data):
    """[(name, bytes)] of an archive of PyTorch without what tells of this machine or is not read."""
    result = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if "/sample_inputs/" in name or name.endswith((".debug_pkl", "/serialization_id")):
                continue
            content = archive.read(name)
            if name.endswith("/models/model.json"):
                content = strip_program(content)
            result.append((name, content))
    return result


def exported(torch, module, tensors):
    program = torch.export.export(module, tuple(t.clone() for t in tensors), strict=False)
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return members(stream.getvalue())


def traced(torch, module, tensors):
    function = torch.jit.trace(module, tuple(t.clone() for t in tensors), check_trace=False)
    stream = io.BytesIO()
    torch.jit.save(function, stream)
    return members(stream.getvalue())


def make_sample(torch, op, dtype, number, sample):
    """The record of a sample (container.Writer.add), or a reason why there is none."""
    module, tensors = wrap(torch, op, sample)
    if any(t.is_sparse or t.layout != torch.strided or t.is_quantized for t in tensors):
        return "a tensor that is not strided"
    runs = []
    try:
        with own_seeds(torch), SeedWatcher(torch) as watcher:
            # Small integers may be equal by chance.
            while len(runs) < (8 if watcher.is_seeded else 2):
                alarm(TIMEOUT)
                seed_all(torch, len(runs))
                runs.append([t.clone() if t.layout == torch.strided else t for t in flat(torch, module(*[t.clone() for t in tensors]))])
    except (Exception, Late) as error:
        return f"eager: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
    finally:
        signal.alarm(0)
    wanted = runs[0]
    if any(t.layout != torch.strided or t.is_quantized for t in wanted):
        return "a result that is not strided"
    tolerances = {}
    for t in wanted:
        tolerances[to_array(torch, t[:0] if t.dim() else t)[0]] = tolerance(torch, op, t.dtype)
    first = [to_array(torch, t) for t in runs[0]]
    is_random = UNINITIALISED.search(key(op)) is not None or any([to_array(torch, t) for t in run] != first for run in runs[1:])
    record = {"entry": key(op), "dtype": str(dtype)[6:], "sample": number, "tolerances": tolerances}
    if is_random:
        record["random"] = True
    others = None
    if not is_random:
        wide = in_float64(torch, module, tensors, wanted)
        if wide is not None:
            if all(is_close(torch, w, t, tolerance(torch, op, t.dtype)) for w, t in zip(wide, wanted)):
                wanted = wide
            else:
                others = wide
    record["inputs"] = [to_array(torch, t) for t in tensors]
    record["outputs"] = [(*to_array(torch, t)[:2], b"") if is_random else to_array(torch, t) for t in wanted]
    if not wanted:  # item
        result = module(*[t.clone() for t in tensors])
        if not is_number(result):
            return "neither a tensor nor a number"
        record["outputs"] = [("number", [], struct.pack("<d", result))]
    if others:
        record["others"] = [to_array(torch, t) for t in others]
        if (far := moves(torch, module, tensors, others)) is not None:
            record["moves"] = far
    for door, make in (("pt2", exported), ("pt", traced)):
        try:
            alarm(TIMEOUT)
            seed_all(torch)
            record[door] = make(torch, module, tensors)
        except (Exception, Late) as error:
            record[door + "_none"] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:160]
        finally:
            signal.alarm(0)
    return record


def make_entry(job):
    name, dtypes, per = job
    torch = import_torch()
    from torch.testing._internal.common_methods_invocations import op_db

    records, none = [], []
    for op in op_db:
        if key(op) != name:
            continue
        for dtype_name in dtypes:
            dtype = getattr(torch, dtype_name)
            if dtype not in op.supported_dtypes("cpu"):
                continue
            seed_all(torch)
            try:
                samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
            except Exception as error:
                none.append((name, dtype_name, f"samples: {type(error).__name__}: {error}"[:160]))
                continue
            for number, sample in pick(samples, per):
                try:
                    result = make_sample(torch, op, dtype, number, sample)
                except Exception as error:
                    result = f"{type(error).__name__}: {error}"[:200]
                if isinstance(result, str):
                    none.append((name, dtype_name, number, result))
                else:
                    records.append(result)
        break
    return name, records, none


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--entries", default=os.path.join(HERE, "entries.txt"), help='one name a line; "all": op_db itself')
    parser.add_argument("--per", type=int, default=8)
    parser.add_argument("--filter", default="")
    parser.add_argument("--dtypes", default="float32,int64,bool")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    torch = import_torch()
    if torch.__version__.split("+")[0] != TORCH:
        sys.exit(f"make_container.py: error: torch {torch.__version__} is installed; samples are those of torch {TORCH}")
    if options.entries == "all":
        from torch.testing._internal.common_methods_invocations import op_db

        names = list(dict.fromkeys(key(op) for op in op_db))
    else:
        with open(options.entries) as f:
            names = f.read().split()
    jobs = [(name, options.dtypes.split(","), options.per) for name in names if re.search(options.filter, name)]
    writer = container.Writer()
    left = 0
    with multiprocessing.Pool(options.jobs, maxtasksperchild=20) as pool:
        for done, (name, records, none) in enumerate(pool.imap(make_entry, jobs), 1):
            for record in records:
                writer.add(record)
            left += len(none)
            for line in none:
                print("no sample:", *line, flush=True)
            if done % 20 == 0:
                print(done, name, writer.describe(), flush=True)
    size = writer.write(options.out)
    print(f"{options.out}: {writer.describe()}, {size} bytes; {left} samples were left out")


if __name__ == "__main__":
    main()
