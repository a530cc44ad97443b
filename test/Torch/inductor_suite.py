#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases that PyTorch tests Inductor with, through torch.compile(backend="tc").

usage: inductor_suite.py PATH/test_torchinductor.py [--filter RE] [--dynamic] [--part I/N] [--out FILE.json]      scripts/test_torch.sh --inductor runs it twice

The file is test/inductor/test_torchinductor.py of PyTorch's sources, which are not part of PyTorch's packages; README.md says where they are found. Cases that look at what
Inductor wrote or counted are left out. --dynamic makes symbols of all sizes, as test_torchinductor_dynamic_shapes.py does. inductor_expected_failures.txt names the cases
that fail, each with a reason; the exit code is 1 where others do, or where one of those does not.
"""
import argparse
import functools
import importlib.util
import inspect
import json
import logging
import os
import re
import signal
import sys
import types
import unittest
import warnings

# A case is about Inductor where its text says one of these: the code that it wrote, counts of kernels, its own passes, ahead-of-time packages, parts of its compiler.
INTERNALS = re.compile(r"""run_and_get|run_fw_bw|FileCheck|metrics\b|aoti|_run_and_assert|add_scheduler_init_hook|pad_mm|complex_memory_overlap|OptimizationContext
                           |V\.|lowering|compile_fx_inner|counters\[|generated_kernel|_inductor\.(?!config\.patch|utils|test_operators)|TORCH_LOGS|torch\.ops\.inductor
                           |inductor_prims|test_operators|mock\.patch|subprocess|unbacked_symint_to_fallback""", re.X)
SECONDS = 120 # of a case
EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inductor_expected_failures.txt")


def load(path):
    """The module of cases, whose compile_fx is tc. Names that this PyTorch no longer has become stubs: decorators that change nothing."""
    import torch._inductor.compile_fx
    from tc_compiler.dynamo import tc

    @functools.wraps(torch._inductor.compile_fx.compile_fx)
    def compile_fx(module, inputs, *arguments, **options):
        return tc(module, inputs)

    torch._inductor.compile_fx.compile_fx = compile_fx
    spec = importlib.util.spec_from_file_location("test_torchinductor", path)
    for _ in range(50):
        module = importlib.util.module_from_spec(spec)
        sys.modules["test_torchinductor"] = module
        try:
            spec.loader.exec_module(module)
            return module
        except ModuleNotFoundError as error:
            sys.modules[error.name] = types.ModuleType(error.name)
        except ImportError as error:
            name = re.search(r"cannot import name '(\w+)'", str(error))
            if not name or error.name not in sys.modules:
                raise
            setattr(sys.modules[error.name], name[1], lambda function=None, *rest, **more: function if callable(function) else (lambda f: f))
        libraries = [value for value in vars(module).values() if isinstance(value, torch.library.Library)]
        for library in libraries: # which the next attempt defines again
            library._destroy()
    raise ImportError(f"{path} asks for too much that this PyTorch does not have")


def cases(module, dynamic):
    """The class of cases, and the text of each by name."""
    class Suite(module.SweepInputs2, module.TestCase):
        common = module.check_model
        device = "cpu"
        gen = module.InputGen(10, "cpu")

    Suite.populate() # sums of all pairs of kinds of inputs
    texts = {name: "" for name in dir(Suite) if name.startswith("test_")}
    suffix = "dynamic" if dynamic else "cpu"
    module.copy_tests(module.CommonTemplate, Suite, suffix)
    texts |= {f"{name}_{suffix}": inspect.getsource(inspect.unwrap(test)) for name, test in vars(module.CommonTemplate).items() if name.startswith("test_")}
    return Suite, texts


def run(suite, name):
    """"right", "skipped: ...", or what went wrong."""
    def late(*_):
        raise TimeoutError(f"no end after {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    result = unittest.TestResult()
    try:
        suite(name).run(result)
    finally:
        signal.alarm(0)
    if result.skipped:
        return "skipped: " + result.skipped[0][1]
    if result.expectedFailures:
        return "skipped: PyTorch expects it to fail"
    if problems := result.errors + result.failures:
        lines = [line.strip() for line in problems[0][1].strip().splitlines()]
        start = max((i for i, line in enumerate(lines) if re.match(r"[\w.]*(Error|Exception|Refusal|Unsupported|Failure)\b", line)), default=-1)
        return "failed: " + " ".join(lines[start:])[:700]
    return "right"


def expected_failures():
    """Reasons by names of cases, without suffix."""
    with open(EXPECTED) as file:
        return dict(line.rstrip("\n").split(": ", 1) for line in file if not line.startswith("#"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--filter", default="")
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--out")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch
    from tc_compiler.dynamo import counters

    module = load(options.file)
    module.assertGeneratedKernelCountEqual = lambda *_: None
    suite, texts = cases(module, options.dynamic)
    part, parts = map(int, options.part.split("/"))
    names = [name for name in sorted(texts) if re.search(options.filter, name)][part::parts]
    expected, wrong = expected_failures(), 0
    found = json.load(open(options.out)) if options.out and os.path.exists(options.out) else {} # goes on where it was
    with torch._dynamo.config.patch(**({"assume_static_by_default": False} if options.dynamic else {})):
        for name in names:
            if name in found:
                continue
            if INTERNALS.search(texts[name]):
                found[name] = "internal"
                continue
            before = counters["eager"]
            if options.out:
                with open(options.out, "w") as file:
                    json.dump({**found, name: "failed: the process ended"}, file, indent=1)
            found[name] = run(suite, name)
            if found[name] == "right" and counters["eager"] > before:
                found[name] = "right, by PyTorch in part"
            known = expected.get(name.rpartition("_")[0])
            if found[name].startswith("failed") and known:
                found[name] = f"expected: {known}"
            elif found[name].startswith("failed") or known:
                print(f"{name}: {found[name] if not known else 'is listed in inductor_expected_failures.txt and does not fail'}", flush=True)
                wrong += 1
    if options.out:
        with open(options.out, "w") as file:
            json.dump(found, file, indent=1)
    counts = {kind: sum(value.startswith(kind) for value in found.values()) for kind in ("right", "failed", "expected", "skipped", "internal")}
    in_part = sum(value.endswith("in part") for value in found.values())
    print(f"{len(found)} cases: {counts['right']} right ({in_part} by PyTorch in part), {counts['failed']} failed, {counts['expected']} as expected, "
          f"{counts['skipped']} left out by PyTorch, {counts['internal']} about Inductor's internals") # fmt: skip
    sys.exit(1 if wrong or counts["failed"] else 0)


if __name__ == "__main__":
    main()
