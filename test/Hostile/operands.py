#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that an operator does not take: every operator, each operand in turn, of another type, rank or size, or with odd values.

usage: operands.py BIN [REGEX] [--full | --run] [--jobs N] [--keep DIR]

The nodes are those of ONNX's backend tests and of test/Integration (com.microsoft), one or two for each operator. tc-compile must answer
each with 0, or with 1 or 2 and a sentence; where ONNX's schemas have no such type, with 1 or 2. Without --full: a few types and ranks for
each operand, odd integers in nodes of constants, and the program is compiled as far as its regions. --run: the nodes as they are, run with odd integers as inputs: sizes,
starts, indices. tc-run must take or refuse them, or lack the memory (0, 4, 5).
"""
import argparse
import contextlib
import copy
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnx.compose
from onnx import TensorProto as T, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
FULL_TYPES = (T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.INT64, T.INT32, T.INT8, T.UINT8, T.UINT64, T.BOOL, T.STRING, T.COMPLEX64, T.INT4, T.FLOAT8E4M3FN)
TYPES = (T.FLOAT, T.INT64, T.BOOL, T.STRING)
# Operators that take any float where ONNX asks for float.
ANY_FLOAT = {"NonMaxSuppression"}
# What operators that read constants may find in them.
VALUES = (-1, 0, 1, 7, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), float("nan"), float("inf"), -0.5, 1e-30, 1e30)
FEW_VALUES = (-1, -(2**63), 2**62, float("nan"))


def base_models():
    """{(domain, operator): [models]}: those with the most operands, and the fewest."""
    found = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            nodes = case.model.graph.node
            if len(nodes) == 1 and "_expanded" not in case.name and case.data_sets:
                values = [v for v in case.data_sets[0][0]]
                found.setdefault((nodes[0].domain or "ai.onnx", nodes[0].op_type), []).append((case.name, case.model, values))
        sys.path.insert(0, os.path.join(HERE, "..", "Integration"))
        import microsoft
        import one_node

        if not one_node.CASES:
            microsoft.quantised()
        for name, case in one_node.CASES.items():
            if case[0] == "com.microsoft":
                values = [v for i, v in enumerate(case[2]) if v is not None and i not in case[5]]
                found.setdefault((case[0], case[1]), []).append((name, one_node.make_model(name, "static"), values))
    models = {}
    for key, cases in sorted(found.items()):
        cases.sort(key=lambda c: sum(bool(n) for n in c[1].graph.node[0].input))
        models[key] = [cases[-1]] + ([cases[0]] if len(cases) > 1 and cases[0][0] != cases[-1][0] else [])
    return models


def allowed_types(node, opset, index):
    """The types that some version of the operator takes there, from its own on; None where that is not known."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None
    operand = schema.inputs[min(index, len(schema.inputs) - 1)]
    found = set(operand.types)
    for other in onnx.defs.get_all_schemas_with_history():
        if (other.name, other.domain) == (schema.name, schema.domain) and other.since_version > schema.since_version:
            found |= {t for o in other.inputs if o.name == operand.name for t in o.types}
    if node.op_type in ANY_FLOAT and "tensor(float)" in found:
        found |= {"tensor(double)", "tensor(float16)", "tensor(bfloat16)"}
    return found


def mutants(model, values, full):
    """(what, model, whether it must be refused)."""
    graph = model.graph
    node = graph.node[0]
    opset = next((o.version for o in model.opset_import if o.domain == node.domain), 1)
    by_name = {info.name: (i, info) for i, info in enumerate(graph.input)}
    for index, name in enumerate(node.input):
        if name not in by_name:
            continue
        at, info = by_name[name]
        if not info.type.HasField("tensor_type"):
            continue
        was = info.type.tensor_type
        allowed = allowed_types(node, opset, index)

        def changed(edit):
            new = copy.deepcopy(model)
            for output in new.graph.output:
                output.ClearField("type")
            edit(new.graph.input[at].type)
            return new

        for kind in FULL_TYPES if full else TYPES:
            if kind != was.elem_type:
                text = f"tensor({T.DataType.Name(kind).lower()})"
                wrong = allowed is not None and text not in allowed and not any(t.startswith("optional") for t in allowed)
                yield f"{index}:{text}", changed(lambda t: setattr(t.tensor_type, "elem_type", kind)), wrong
        wrong = allowed is not None and not any(t.startswith(("seq", "optional")) for t in allowed)
        yield f"{index}:seq", changed(lambda t: t.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(was.elem_type, [2])))), wrong
        dims = [d.dim_value for d in was.shape.dim]
        shapes = [dims[:-1], dims + [2], [], dims + [1]] if dims else [[2], [1], [2, 3]]
        shapes += [[*dims[:d], dims[d] + by, *dims[d + 1 :]] for d in range(len(dims)) for by in ((1, -1) if full else (-1,))] + [[2**40] * len(dims)]
        if full:
            shapes += [[0] * len(dims), [3] * 5, [None] * len(dims)]
        for shape in shapes:
            if shape != dims:
                def reshape(t, shape=shape):
                    t.CopyFrom(helper.make_tensor_type_proto(was.elem_type, [d if d is None else max(d, 0) for d in shape]))
                yield f"{index}:{shape}", changed(reshape), False
        if at >= len(values) or not isinstance(values[at], np.ndarray) or values[at].dtype.kind not in "iufb" or not was.elem_type in (T.FLOAT, T.INT64, T.INT32, T.BOOL, T.DOUBLE, T.UINT8, T.INT8):
            continue
        value = values[at]
        if value.size > 64:
            continue
        for number in VALUES if full else FEW_VALUES:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if value.dtype.kind in "iub" and not (isinstance(number, int) and (value.dtype.kind == "b" or np.iinfo(value.dtype).min <= number <= np.iinfo(value.dtype).max)):
                    continue
                for which in {"all", "last"} if value.size > 1 else {"all"}:
                    array = np.array(value)
                    if which == "all":
                        array[...] = number
                    else:
                        array[(-1,) * array.ndim] = number
                    new = copy.deepcopy(model)
                    del new.graph.input[at]
                    new.graph.initializer.append(numpy_helper.from_array(array, name))
                    for output in new.graph.output:
                        output.ClearField("type")
                    yield f"{index}={number} ({which})", new, False


NUMBERS = (T.FLOAT, T.DOUBLE, T.INT64, T.INT32, T.INT8, T.UINT8, T.UINT64, T.BOOL)


def odd_values(model, values):
    """(input, number, which elements, all values) with odd integers in one input: sizes, starts, indices. Nothing where an input is no tensor
    of numbers."""
    kinds = [i.type.tensor_type.elem_type for i in model.graph.input]
    if len(values) != len(kinds) or not all(isinstance(v, np.ndarray) and k in NUMBERS for v, k in zip(values, kinds)):
        return
    for i, value in enumerate(values):
        if kinds[i] not in (T.INT64, T.INT32) or not 0 < value.size <= 64:
            continue
        info = np.iinfo(value.dtype)
        for number in (-1, 0, 1, 7, 2**30, 2**40, info.max, info.max - 1, info.max // 2, info.min + 1, info.min):
            for which in ("all", "last") if value.size > 1 else ("all",):
                if info.min <= number <= info.max:
                    array = np.array(value)
                    array[(...) if which == "all" else (-1,) * array.ndim] = number
                    yield i, number, which, [array if j == i else v for j, v in enumerate(values)]


def folded(model, values):
    """Models all of whose inputs are constants."""
    for i, number, which, every in odd_values(model, values):
        new = copy.deepcopy(model)
        for output in new.graph.output:
            output.ClearField("type")
        new.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), info.name) for v, info in zip(every, new.graph.input))
        del new.graph.input[:]
        yield f"{i}={number} ({which}), all constant", new, False


def merge(group):
    """One model of many; the names of the i-th begin with m<i>_."""
    nodes, inputs, outputs, initializers, opsets, functions = [], [], [], [], {}, {}
    for i, (_, model, _) in group:
        model = onnx.compose.add_prefix(model, f"m{i}_")
        model.graph.node[0].name = f"m{i}_node"
        nodes += model.graph.node
        inputs += model.graph.input
        outputs += model.graph.output
        initializers += model.graph.initializer
        opsets.update({o.domain: o.version for o in model.opset_import})
        functions.update({(f.domain, f.name): f for f in model.functions})
    graph = helper.make_graph(nodes, "operands", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets.items()], ir_version=13)


class Tool:
    def __init__(self, binary, full, keep):
        self.binary, self.full, self.keep, self.runs = binary, full, keep, 0

    def compile(self, model):
        self.runs += 1
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/model.onnx", "wb") as f:
                f.write(model.SerializeToString())
            flags = ["-o", "model.bin", "--cpu", "x86-64-v3", "--jobs", "1"] if self.full else ["--compile-to=schedule", "-o", "model.mlir"]
            try:
                made = subprocess.run([self.binary, "model.onnx", *flags], cwd=folder, capture_output=True, timeout=20)
                return made.returncode, made.stderr.decode(errors="replace")
            except subprocess.TimeoutExpired:
                return None, ""

    def single(self, what, model, wrong):
        code, text = self.compile(model)
        reason = None
        if code not in (0, 1, 2):
            reason = f"exit code {code}: {text.strip()[-300:]}"
        elif code and not re.search(r"^model\.onnx: error: ", text, re.M):
            reason = f"no sentence: {text.strip()[:300]!r}"
        elif wrong and code == 0:
            reason = "taken, which ONNX's schemas do not allow"
        return code, reason

    def group(self, group):
        """Yields (mutant, exit code, what is wrong with it) of all: [(number, mutant)]."""
        while len(group) > 1:
            code, text = self.compile(merge(group))
            if code not in (1, 2):
                break
            named = {int(n) for n in re.findall(r'"m(\d+)_', "".join(re.findall(r"^model\.onnx: error: .*", text, re.M)))}
            if not named & {i for i, _ in group}:
                break
            for i, mutant in group:
                if i in named:
                    yield mutant, code, None
            group = [(i, mutant) for i, mutant in group if i not in named]
        if len(group) > 1 and code == 0:
            for _, mutant in group:
                yield mutant, 0, "taken, which ONNX's schemas do not allow" if mutant[2] else None
        elif len(group) == 1:
            yield group[0][1], *self.single(*group[0][1])
        elif group:
            yield from self.group(group[: len(group) // 2])
            yield from self.group(group[len(group) // 2 :])


def check(tool, key, name, model, values):
    """(exit codes, failures) of one operator's mutants."""
    codes, failures = {}, []
    for mutant, code, reason in tool.group(list(enumerate([*mutants(model, values, tool.full), *folded(model, values)]))):
        codes[code] = codes.get(code, 0) + 1
        if reason:
            failures.append(f"{key[0]}.{key[1]} {name} {mutant[0]}: {reason}")
            if tool.keep:
                with open(os.path.join(tool.keep, re.sub(r"\W+", "_", f"{key[1]}_{name}_{mutant[0]}") + ".onnx"), "wb") as f:
                    f.write(mutant[1].SerializeToString())
    return codes, failures


def run_values(tool, key, name, model, values):
    """As check, of runs with odd integers."""
    codes, failures = {}, []
    odd = list(odd_values(model, values))
    with tempfile.TemporaryDirectory() as folder:
        artifact = f"{folder}/model.bin"
        with open(f"{folder}/model.onnx", "wb") as f:
            f.write(model.SerializeToString())
        made = subprocess.run([tool.binary, f"{folder}/model.onnx", "-o", artifact, "--cpu", "x86-64-v3", "--jobs", "1"], capture_output=True) if odd else None
        if not made or made.returncode:
            return codes, failures
        for i, number, which, every in odd:
            np.savez(f"{folder}/in.npz", **{f"input_{j}": v for j, v in enumerate(every)})
            run = [os.path.join(os.path.dirname(tool.binary), "tc-run"), artifact, "--inputs", f"{folder}/in.npz", "--threads", "1"]
            tool.runs += 1
            try:
                done = subprocess.run(run, capture_output=True, timeout=20, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2))
                code, text = done.returncode, done.stderr.decode(errors="replace")
            except subprocess.TimeoutExpired:
                code, text = None, ""
            codes[code] = codes.get(code, 0) + 1
            if code not in (0, 4, 5) or code and ": error: " not in text:
                failures.append(f"{key[0]}.{key[1]} {name} {i}={number} ({which}): tc-run gives {code}: {text.strip()[-200:]}")
    return codes, failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("regex", nargs="?", default="")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    options = parser.parse_args()
    tool = Tool(os.path.join(os.path.abspath(options.binaries), "tc-compile"), options.full, options.keep)
    counts, failed = {}, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = []
        for key, cases in base_models().items():
            if re.search(options.regex, ".".join(key)):
                function = run_values if options.run else check
                jobs += [pool.submit(function, tool, key, *case) for case in (cases if options.full or options.run else cases[:1])]
        for job in jobs:
            codes, failures = job.result()
            for code, count in codes.items():
                counts[code] = counts.get(code, 0) + count
            failed += len(failures)
            for failure in failures:
                print(failure, flush=True)
    print(f"operands: {sum(counts.values())} models in {tool.runs} runs, exit codes {dict(sorted(counts.items(), key=str))}, {failed} failures")
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
