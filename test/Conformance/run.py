#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile every backend test case of the `onnx` package with tc-compile, run it with tc-run and compare by the package's own rule.

usage: run.py BIN [--way static|dynamic|constant]... [--target cpu|cuda] [--in-process] [--filter RE] [--jobs N] [--third K] [--work FOLDER]
              [--again] [--prune] [--summary FILE]

BIN is the folder of tc-compile and tc-run. Ways: the model as it is (static); all sizes unknown but the lengths that fix a rank (dynamic);
all inputs constant, where no kernel may be left (constant). Results are kept in FOLDER (default BIN/../conformance) and repeated only when
the tools, the case or these scripts changed. --third K takes every third case, from K modulo 3 on, in the ways other than static;
with "commit" as K another third for each commit. --target cuda compiles for GPUs and runs on one: results are then kept apart.

--in-process runs artifacts here, by the Python package (on PYTHONPATH), rather than with tc-run: a process of its own takes 0.25 s for its
context of a GPU, and all wait for each other. What fails so is run with tc-run as well, whose result counts.

expected_failures.txt lists what does not pass yet, with reasons; a case that passes all the same is a failure, so that the list stays true.
Where the reason begins with "wrong in ONNX", the case is evaluated by onnx's ReferenceEvaluator in float64, which must fail it, too. Exit
status 0: every case did what was expected.
"""
import argparse
import collections
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cases
import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
# Options of tc-compile and tc-run. One CPU variant: the zoo and the lit tests cover the others.
DEVICE = {"cpu": (["--cpu", "x86-64-v3"], []), "cuda": (["--target", "cuda"], ["--device", "cuda"])}
TIMEOUT = 60
# Operators whose values are a stream that ONNX leaves open: dtype and shape are compared, and two runs with each other.
# So are the values of Dropout in training, where the package expects NumPy's stream. Their distribution: test/Integration/operators.py.
RANDOM_CASES = {f"node/test_training_dropout{form}" for form in ("", "_default", "_default_mask", "_mask")}
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


class Failed(Exception):
    """A case that did not pass, with the reason."""


def first_error(text):
    lines = text.strip().splitlines()
    return next((line for line in lines if "error:" in line), lines[-1] if lines else "no message")


def call(*command):
    start = time.perf_counter()
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Failed(f"{os.path.basename(command[0])} did not end within {TIMEOUT} s")
    if result.returncode:
        raise Failed(f"{os.path.basename(command[0])} exited with {result.returncode}: {first_error(result.stderr)}")
    return time.perf_counter() - start


def comparable(values, nested=False):
    """Element types that NumPy cannot promote with Python's float, in float32: it holds all their values. The package's rule takes an element
    of a sequence for a list of tensors: each is put into one, so that its shape and dtype count, and 0-D elements are no error."""
    if isinstance(values, (list, tuple)):
        return [[comparable(v)] if isinstance(v, np.ndarray) and nested else comparable(v, True) for v in values]
    if isinstance(values, np.ndarray) and values.dtype.kind == "V" and values.dtype.name != "bfloat16":
        return values.astype(np.float32)
    return values


def element_types(values):
    if isinstance(values, (list, tuple)):
        return [element_types(v) for v in values]
    return None if values is None else values.dtype.name.replace("object", "str").replace("StringDType", "str").rstrip("0123456789")\
        if values.dtype.kind in "OUST" else values.dtype.name  # fmt: skip


def compare(expected, actual, rtol, atol, only_shape):
    from onnx.backend.test.runner import Runner

    if element_types(expected) != element_types(actual):
        raise Failed(f"element types differ: {element_types(actual)}, expected {element_types(expected)}")
    if only_shape:
        if [v.shape for v in actual] != [v.shape for v in expected]:
            raise Failed(f"shapes differ: {[v.shape for v in actual]}, expected {[v.shape for v in expected]}")
        return
    present = [i for i, v in enumerate(expected) if v is not None]
    if present != [i for i, v in enumerate(actual) if v is not None]:
        raise Failed("an optional output is present in one and absent in the other")
    try:
        Runner.assert_similar_outputs(comparable([expected[i] for i in present]), comparable([actual[i] for i in present]), rtol, atol)
    except (AssertionError, TypeError, ValueError) as error:
        raise Failed("outputs differ: " + " ".join(str(error).split())[:400])


def is_wrong_in_onnx(folder):
    """Whether onnx's ReferenceEvaluator fails the case when it computes in float64 what the case has in float32: its expected values are further
    from what the operator means than the case allows."""
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "case.json")) as f:
        meta = json.load(f)
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    inputs, expected = ([onnx.numpy_helper.to_array(onnx.load_tensor_from_string(text)) for text in values_in(os.path.join(folder, "set0"), kind)]
                        for kind in ("input", "output"))  # fmt: skip
    wide = {v.name: x.astype(np.float64) if x.dtype == np.float32 else x for v, x in zip(model.graph.input, inputs)}
    actual = [np.asarray(y).astype(e.dtype) for y, e in zip(ReferenceEvaluator(model).run(None, wide), expected)]
    try:
        compare(expected, actual, meta["rtol"], meta["atol"], False)
    except Failed:
        return True
    return False


def operators_of(model):
    return sorted({node.op_type for node in model.graph.node})


def read(path):
    with open(path, "rb") as f:
        return f.read()


def values_in(folder, kind):
    count = sum(name.startswith(kind + "_") for name in os.listdir(folder))
    return [read(os.path.join(folder, f"{kind}_{i}.pb")) for i in range(count)]


KEPT = []


def passes_here(options, folder, artifact, model, meta):
    """Whether the artifact does what is expected when the Python package runs it in this process."""
    import tc_compiler

    try:
        loaded = tc_compiler.load(artifact, device=options.target, threads=1)
        if not KEPT: # the first one keeps the process's context of the GPU
            KEPT.append(loaded)
        for number in range(meta["sets"]):
            data = os.path.join(folder, f"set{number}")
            given = {i.name: cases.from_proto(d, i.type) for d, i in zip(values_in(data, "input"), model.graph.input)}
            expected = [cases.from_proto(d, o.type) for d, o in zip(values_in(data, "output"), model.graph.output)]
            compare(expected, list(loaded.run(given).values()), meta["rtol"], meta["atol"], False)
    except Exception: # of any kind: tc-run says what it is
        return False
    return True


def run_sets(options, folder, scratch, model, meta, way, only_shape):
    """Run the artifact on the data sets and compare."""
    artifact, out = os.path.join(scratch, "m.bin"), os.path.join(scratch, "out")
    if options.in_process and not only_shape and way != "constant" and passes_here(options, folder, artifact, model, meta):
        return
    for number in range(1 if way == "constant" else meta["sets"]):
        data = os.path.join(folder, f"set{number}")
        expected = [cases.from_proto(d, o.type) for d, o in zip(values_in(data, "output"), model.graph.output)]
        given = [] if way == "constant" else range(len(values_in(data, "input")))
        inputs = [f"--input={model.graph.input[i].name}={os.path.join(data, f'input_{i}.pb')}" for i in given]
        runs = []
        for _ in range(2 if only_shape else 1):
            shutil.rmtree(out, ignore_errors=True)
            call(os.path.join(options.bin, "tc-run"), artifact, *inputs, "--output-dir", out, "--threads", "1", *DEVICE[options.target][1])
            runs.append(values_in(out, "output"))
        if runs[0] != runs[-1]:
            raise Failed("two runs of a random operator with the same seed differ")
        actual = [cases.from_proto(d, o.type) for d, o in zip(runs[0], model.graph.output)]
        if len(actual) != len(expected):
            raise Failed(f"{len(actual)} outputs, expected {len(expected)}")
        compare(expected, actual, meta["rtol"], meta["atol"], only_shape)


def run_case(options, name, way):
    """Returns {"status", "reason", "ops", "seconds"}; status: passed, failed or none (the case does not have the way)."""
    folder = os.path.join(options.work, "cases", name)
    model = onnx.load(os.path.join(folder, "model.onnx"))
    whole = os.path.join(options.work, "cases", name.split("_expanded")[0], "model.onnx")
    whole = onnx.load(whole) if "_expanded" in name and os.path.exists(whole) else None
    with open(os.path.join(folder, "case.json")) as f:
        meta = json.load(f)
    result = {"status": "passed", "reason": "", "ops": operators_of(model)}
    scratch = tempfile.mkdtemp(prefix="tc-conformance-")
    try:
        cases.apply_way(model, way, values_in(os.path.join(folder, "set0"), "input"), whole)
        path = os.path.join(scratch, "model.onnx")
        onnx.save(model, path)
        explain = os.path.join(scratch, "explain.json")
        flags = [f"--explain={explain}"] if way == "constant" else []
        result["seconds"] = call(os.path.join(options.bin, "tc-compile"), path, "-o", os.path.join(scratch, "m.bin"), "--jobs", "1",
                                 *DEVICE[options.target][0], *flags)  # fmt: skip
        is_random = name in RANDOM_CASES or any(op in RANDOM for op in result["ops"])
        run_sets(options, folder, scratch, model, meta, way, is_random)
        if flags and not is_random:
            with open(explain) as f:
                kernels = json.load(f)["kernel_count"]
            if kernels:
                raise Failed(f"{kernels} kernels are left, although all inputs are constant")
    except cases.NoMeaning as reason:
        result.update(status="none", reason=str(reason))
    except Failed as reason:
        result.update(status="failed", reason=str(reason).replace(scratch + "/", ""))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return result


def run_one(job):
    options, name, way = job
    try:
        return name, way, run_case(options, name, way)
    except Exception as error:  # a defect of these scripts is no result of the case, but must not end the run
        return name, way, {"status": "failed", "reason": f"run.py: {type(error).__name__}: {error}", "ops": []}


def start_worker(counter, gpus):
    """A process of the pool. Contexts of a GPU are made one after another: each takes another one, if there are several."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with counter.get_lock():
        counter.value += 1
        if gpus > 1:
            os.environ["CUDA_VISIBLE_DEVICES"] = str(counter.value % gpus)


def digest(paths):
    sha = hashlib.sha256()
    for path in paths:
        sha.update(read(path))
    return sha.hexdigest()


def expected_failures(path):
    """{"<way> <kind>/<name>": reason}; "all" as the way stands for the three of them."""
    known = {}
    with open(path) as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            key, colon, reason = line.partition(": ")
            words = key.split()
            if not colon or not reason or len(words) != 2 or words[0] not in [*cases.WAYS, "all"]:
                sys.exit(f'{path}:{number}: error: expected "<way> <kind>/<case>: <reason>"')
            for way in cases.WAYS if words[0] == "all" else [words[0]]:
                known[f"{way} {words[1]}"] = reason
    return known


def prune(path, passed):
    """Delete the lines of cases that pass; a line for all ways stays until somebody splits it."""
    with open(path) as f:
        lines = f.readlines()
    with open(path, "w") as f:
        f.writelines(line for line in lines if line.partition(": ")[0] not in passed)


def generalize(reason):
    """The reason without what is particular to one case."""
    reason = re.sub(r"^.*?: error: ", "", reason)
    reason = re.sub(r'node "[^"]*": ', "", reason)
    reason = re.sub(r"outputs differ: .*?(Mismatched elements|mismatch|incorrect shape|not equal|x and y|$).*", r"outputs differ (\1)", reason)
    return re.sub(r"tensor<[^>]*>|#\S+", "T", re.sub(r"\b\d+\b", "N", reason))[:160]


def summarize(results, known, stream):
    """Counts, then failures by operator and by reason."""
    counts = collections.Counter((way, r["status"]) for (name, way), r in results.items())
    for way in cases.WAYS:
        if any(k[0] == way for k in counts):
            ran = counts[way, "passed"] + counts[way, "failed"]
            print(f"{way}: {counts[way, 'passed']} of {ran} pass; {counts[way, 'none']} cases do not have this way", file=stream)
    failures = {key: r for key, r in results.items() if r["status"] == "failed"}
    groups = collections.defaultdict(list)
    for key, r in failures.items():
        groups[" ".join(r["ops"][:4]) + (" ..." if len(r["ops"]) > 4 else "")].append((key, r))
    print("\n# failures by operator", file=stream)
    for ops, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(members):5} {ops}", file=stream)
        reasons = collections.defaultdict(list)
        for (name, way), r in members:
            reasons[generalize(r["reason"])].append(f"{name}" if way == "static" else f"{name}[{way}]")
        for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
            print(f"        {len(names):4} {reason}\n             {' '.join(sorted(names)[:6])}", file=stream)
    print("\n# failures by reason", file=stream)
    for reason, count in collections.Counter(generalize(r["reason"]) for r in failures.values()).most_common():
        print(f"{count:5} {reason}", file=stream)
    seconds = sorted(r["seconds"] for r in results.values() if "seconds" in r)
    if seconds:
        print(f"\n# tc-compile: median {seconds[len(seconds) // 2]:.3f} s, 95th percentile {seconds[len(seconds) * 95 // 100]:.3f} s", file=stream)


class Store:
    """Results of earlier runs: one JSON file, keyed by way and case, each with the digest of what it depends on."""

    def __init__(self, options):
        self.path = os.path.join(options.work, "results.json")
        self.options, self.entries = options, {}
        if os.path.exists(self.path):
            with open(self.path) as f:
                self.entries = json.load(f)
        tools = [os.path.join(options.bin, t) for t in ("tc-compile", "tc-run")]
        self.common = digest([*tools, os.path.join(HERE, "run.py"), os.path.join(HERE, "cases.py"), os.path.join(options.work, "cases", "stamp.txt")])

    def get(self, name, way):
        entry = self.entries.get(f"{way} {name}")
        return entry["result"] if entry and entry["digest"] == self.common else None

    def put(self, name, way, result):
        self.entries[f"{way} {name}"] = {"digest": self.common, "result": result}

    def save(self):
        with tempfile.NamedTemporaryFile("w", dir=self.options.work, delete=False) as f:
            json.dump(self.entries, f)
        os.replace(f.name, self.path)


def third(text):
    """A number; "commit" is one that changes with each commit, 0 where there is no checkout."""
    if text != "commit":
        return int(text)
    head = subprocess.run(["git", "-C", HERE, "rev-parse", "HEAD"], capture_output=True, text=True)
    return int(head.stdout[:8], 16) if head.returncode == 0 else 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--way", nargs="+", action="extend", choices=cases.WAYS)
    parser.add_argument("--target", choices=DEVICE, default="cpu")
    parser.add_argument("--in-process", action="store_true", help="run artifacts here, by the Python package")
    parser.add_argument("--gpus", type=int, default=1, help="how many GPUs the runs are dealt to")
    parser.add_argument("--filter", help="regular expression that a case's <kind>/<name> must contain")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--third", type=third, help="a number, or commit: only every third case in the ways dynamic and constant")
    parser.add_argument("--work", help="folder of cases and results")
    parser.add_argument("--again", action="store_true", help="repeat what is up to date, too")
    parser.add_argument("--summary", help="file for the summary of failures (default: standard output)")
    parser.add_argument("--prune", action="store_true", help="delete the lines of expected_failures.txt that pass now")
    parser.add_argument("--expect", default=os.path.join(HERE, "expected_failures.txt"), help="list of expected failures")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    options.work = os.path.abspath(options.work or os.path.join(options.bin, "..", "conformance" if options.target == "cpu" else "conformance-" + options.target))
    options.way = options.way or ["static"]
    return options


def main():
    options = parse_options()
    known = expected_failures(options.expect)
    os.makedirs(options.work, exist_ok=True)
    names = cases.write_corpus(os.path.join(options.work, "cases"))
    unknown = sorted({key.split()[1] for key in known} - set(names))
    if unknown:
        sys.exit(f"{options.expect}: error: there is no case {unknown[0]}")
    jobs = [(options, name, way) for way in options.way for i, name in enumerate(names)
            if (not options.filter or re.search(options.filter, name))
            and (way == "static" or options.third is None or i % 3 == options.third % 3)]  # fmt: skip
    store = Store(options)
    results = {(name, way): store.get(name, way) for _, name, way in jobs}
    todo = [job for job in jobs if options.again or results[job[1], job[2]] is None]
    with multiprocessing.Pool(options.jobs, initializer=start_worker, initargs=(multiprocessing.Value("i", 0), options.gpus)) as pool:
        for done, (name, way, result) in enumerate(pool.imap_unordered(run_one, todo, chunksize=4), 1):
            results[name, way] = result
            store.put(name, way, result)
            if result["status"] == "failed" and f"{way} {name}" not in known: # at once: a run may be cut
                print(f"{way} {name}: FAILED: {result['reason']}"[:300], file=sys.stderr, flush=True)
            if done % 100 == 0:
                store.save()
                print(f"{done} of {len(todo)}", file=sys.stderr, flush=True)
    store.save()
    if options.prune:
        prune(options.expect, {f"{way} {name}" for (name, way), r in results.items() if r["status"] == "passed"})
        known = expected_failures(options.expect)
    wrong = []
    for (name, way), result in sorted(results.items()):
        reason = known.get(f"{way} {name}")
        if result["status"] == "failed" and not reason:
            wrong.append(f"{way} {name}: FAILED: {result['reason']}")
        elif result["status"] != "failed" and reason:
            wrong.append(f"{way} {name}: {result['status']}, but is listed as failing: {reason}")
        elif reason and reason.startswith("wrong in ONNX") and not is_wrong_in_onnx(os.path.join(options.work, "cases", name)):
            wrong.append(f"{way} {name}: onnx's ReferenceEvaluator passes it in float64, but it is listed as {reason}")
    for line in wrong:
        print(line)
    if options.summary:
        with open(options.summary, "w") as f:
            summarize(results, known, f)
    else:
        summarize(results, known, sys.stdout)
    print(f"{len(results) - len(wrong)} as expected, {len(wrong)} not")
    return 1 if wrong or not results else 0


if __name__ == "__main__":
    sys.exit(main())
