#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random ONNX graphs through tc-compile and tc-run, optimised and for the reference target, compared with the value of each by onnx's
evaluator in float64 (opinion.py).

usage: fuzz.py BIN --graphs FOLDER
       fuzz.py BIN [--count N] [--seconds S] [--seed S] [--jobs J] [--batch B] [--target T]... [--keep FOLDER] [--report FILE] [--only SEED]

Graph k of a run has the seed SEED + k and is the same in every run. Graphs share a model, --batch of them at a time, as starting a compiler
costs more than compiling a small graph; a batch that fails is taken apart. A graph that fails is made smaller while it still fails,
and written to FOLDER (default BIN/../fuzz): model.onnx, inputs.npz, graph.txt with what is wrong and how to repeat it. Nodes that tc
refuses as not supported are counted and listed by reason; they are no failures.

--report writes what came out as JSON, and anew after every batch: a run that was ended goes on where it stood if it is started again with
the same tools, seeds and generator. --seconds ends a run before all of --count is done.

Exit status 0: no graph failed.
"""
import argparse
import collections
import copy
import hashlib
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process per core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import generate
import numpy as np
import onnx
from opinion import Value

TIMEOUT = 60


class Outcome:
    """What became of a graph on a target. kind: clean, refused, crash, error, wrong."""

    def __init__(self, kind, detail="", output=None):
        self.kind, self.detail, self.output = kind, detail, output

    @property
    def failed(self):
        return self.kind in ("crash", "error", "wrong")


def flags_of(target, cpu):
    """The reference target is compiled for one CPU, too: by default it is for two."""
    if target == "cuda":
        return ["--target", "cuda"]
    return ["--target", "reference", "--cpu", "x86-64-v3"] if target == "reference" else ["--cpu", cpu]


class Session:
    """The tools and a scratch folder."""

    def __init__(self, bin_folder, scratch):
        self.bin, self.scratch = bin_folder, scratch

    def call(self, tool, *arguments):
        try:
            result = subprocess.run([os.path.join(self.bin, tool), *arguments], capture_output=True, text=True, errors="replace",
                                    timeout=TIMEOUT, stdin=subprocess.DEVNULL)  # fmt: skip
        except subprocess.TimeoutExpired:
            return -1, f"{tool} did not end within {TIMEOUT} s"
        return result.returncode, result.stderr

    def try_graphs(self, graphs, opset, target, cpu, threads):
        """Outcomes by graph. Graphs that fail in company are tried alone."""
        outcomes, rest = {}, list(graphs)
        model, artifact = os.path.join(self.scratch, "model.onnx"), os.path.join(self.scratch, "m.bin")
        while rest:
            onnx.save(generate.make_model(rest, opset), model)
            flags = flags_of(target, cpu)
            code, text = self.call("tc-compile", model, "-o", artifact, "--jobs", "1", *flags)
            if code == 0:
                break
            refused = {m.group(1): line for line in text.splitlines() for m in [re.search(r'error: node "(g\d+_)', line)] if m} if code == 2 else {}
            if refused:
                for graph in rest:
                    if graph.prefix in refused:
                        outcomes[graph.prefix] = Outcome("refused", refused[graph.prefix])
                rest = [g for g in rest if g.prefix not in refused]
                continue
            if len(rest) > 1:
                for graph in rest:
                    outcomes.update(self.try_graphs([graph], opset, target, cpu, threads))
            else:
                kind = "error" if 0 < code < 6 else "crash"
                outcomes[rest[0].prefix] = Outcome("refused" if code == 2 else kind, f"tc-compile exited with {code}: {first_error(text)}")
            return outcomes
        if rest:
            outcomes.update(self.run(rest, opset, target, cpu, threads, artifact))
        return outcomes

    def run(self, graphs, opset, target, cpu, threads, artifact):
        inputs, outputs = os.path.join(self.scratch, "inputs.npz"), os.path.join(self.scratch, "outputs.npz")
        np.savez(inputs, **{n: g.values[n].stored() for g in graphs for n in g.inputs})
        code, text = self.call("tc-run", artifact, "--inputs", inputs, "--outputs", outputs, "--threads", str(threads))
        if code:
            if len(graphs) > 1:
                outcomes = {}
                for graph in graphs:
                    outcomes.update(self.try_graphs([graph], opset, target, cpu, threads))
                return outcomes
            return {graphs[0].prefix: Outcome("crash" if code < 0 or code == 6 else "error", f"tc-run exited with {code}: {first_error(text)}")}
        outcomes = {}
        with np.load(outputs) as actual:
            for graph in graphs:
                outcomes[graph.prefix] = Outcome("clean")
                for name in graph.outputs:
                    error = graph.values[name].error(actual[name])
                    if error:
                        outcomes[graph.prefix] = Outcome("wrong", f"{name}: {error}", name)
                        break
        return outcomes


def first_error(text):
    lines = text.strip().splitlines()
    return next((line for line in lines if "error:" in line), lines[-1] if lines else "no message")


# --- making failures small

def candidates(graph, output):
    """Smaller graphs: fewer outputs, then each node's results as inputs."""
    if len(graph.outputs) > 1:
        # One output only if that is enough, else parts of them, the largest first.
        parts = [[n for n in graph.outputs if n != output]] if output in graph.outputs else []
        size = len(graph.outputs) // 2
        while size:
            parts += [graph.outputs[i : i + size] for i in range(0, len(graph.outputs), size)]
            size //= 2
        for part in parts:
            smaller = copied(graph)
            smaller.outputs = [n for n in graph.outputs if n not in part or n == output]
            if len(smaller.outputs) < len(graph.outputs):
                yield smaller
        return
    # A value between as the output.
    for node in reversed(graph.nodes):
        for name in node.output:
            if name and name not in graph.outputs and graph.values[name].is_storable:
                smaller = copied(graph)
                smaller.outputs = [name]
                yield smaller
    for node in graph.nodes:
        results = [n for n in node.output if n]
        if any(n in graph.outputs or not graph.values[n].is_storable for n in results):
            continue
        smaller = copied(graph)
        smaller.nodes = [n for n in smaller.nodes if n.name != node.name]
        for name in results:
            smaller.values[name] = Value.leaf(graph.values[name].stored())
            smaller.inputs.append(name)
        yield smaller
    for name in graph.inputs:
        smaller = copied(graph)
        smaller.inputs.remove(name)
        smaller.initializers.append(name)
        yield smaller


def copied(graph):
    result = copy.copy(graph)
    result.values, result.nodes, result.dynamic = dict(graph.values), list(graph.nodes), set(graph.dynamic)
    result.inputs, result.initializers, result.outputs = list(graph.inputs), list(graph.initializers), list(graph.outputs)
    return result


def merged(graphs):
    """Several graphs as one."""
    result = copied(graphs[0])
    for graph in graphs[1:]:
        result.values.update(graph.values)
        result.calls = {**result.calls, **graph.calls}
        result.dynamic |= graph.dynamic
        for field in "nodes", "inputs", "initializers", "outputs":
            setattr(result, field, getattr(result, field) + getattr(graph, field))
    return result


def minimize(session, graphs, prefix, opset, target, cpu, threads, outcome, limit=120):
    """The smallest graph found that fails in the same way: graph `prefix` alone if it does, else with others of its batch."""
    graph = next(g for g in graphs if g.prefix == prefix)
    alone = session.try_graphs([graph], opset, target, cpu, threads)[prefix]
    if alone.kind == outcome.kind:
        outcome = alone
    else:
        graph = merged([graph, *[g for g in graphs if g.prefix != prefix]])
    tries, improved = 0, True
    while improved and tries < limit:
        improved = False
        for smaller in candidates(graph, outcome.output):
            tries += 1
            if tries >= limit:
                break
            generate.prune(smaller)
            try:
                generate.reevaluate(smaller, np.random.default_rng(0))
            except Exception:
                continue
            result = session.try_graphs([smaller], opset, target, cpu, threads)[prefix]
            if result.kind == outcome.kind:
                graph, outcome, improved = smaller, result, True
                break
    return graph, outcome


def write_reproducer(folder, session, graph, opset, target, cpu, threads, outcome, seed):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    model = generate.make_model([graph], opset)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    np.savez(os.path.join(folder, "inputs.npz"), **{n: graph.values[n].stored() for n in graph.inputs})
    np.savez(os.path.join(folder, "expected.npz"), **{n: graph.values[n].stored() for n in graph.outputs})
    flags = " ".join(flags_of(target, cpu))
    with open(os.path.join(folder, "graph.txt"), "w") as f:
        f.write(f"seed {seed}, opset {opset}, target {target}\n{outcome.kind}: {outcome.detail}\n\n"
                f"tc-compile model.onnx -o m.bin {flags} && tc-run m.bin --inputs inputs.npz --outputs out.npz --threads {threads}\n\n"
                f"{onnx.printer.to_text(model)}\n")  # fmt: skip
        for name in graph.inputs + graph.outputs:
            f.write(f"\n{name} = {np.array2string(graph.values[name].stored(), threshold=200)}\n")


# --- a run

def fuzz_batch(job):
    """Of the graphs of one model: the first seed, how many, [(seed, target, kind, detail)], how many nodes of each operator, and the seconds
    that each stage took."""
    options, first, count = job
    rng = np.random.default_rng([options.seed, first, 7])
    opset = int(generate.OPSETS[rng.integers(len(generate.OPSETS))])
    cpu, threads = ["x86-64-v3", "native"][rng.integers(2)], int(rng.integers(1, 3))
    times = collections.Counter()
    began = time.perf_counter()
    graphs, seeds, results, operators = [], {}, [], collections.Counter()
    for seed in range(first, first + count):
        graph = generate.make_graph(seed, opset, f"g{seed}_")
        for reason in graph.unevaluated:
            results.append((seed, "", "unevaluated", reason.split("\n")[0][:160]))
        if not graph.outputs:
            results.append((seed, "", "empty", ""))
            continue
        try:
            onnx.checker.check_model(generate.make_model([graph], opset), full_check=True)
        except Exception as error:
            results.append((seed, "", "invalid", " ".join(str(error).split())[:160]))
            continue
        graphs.append(graph)
        seeds[graph.prefix] = seed
        operators.update(node.op_type for node in graph.nodes)
    times["generate"] += time.perf_counter() - began
    scratch = tempfile.mkdtemp(prefix="tc-fuzz-")
    session = Session(options.bin, scratch)
    try:
        for target in options.target:
            began = time.perf_counter()
            for prefix, outcome in session.try_graphs(graphs, opset, target, cpu, threads).items():
                detail = outcome.detail
                if outcome.failed:
                    small, outcome = minimize(session, graphs, prefix, opset, target, cpu, threads, outcome)
                    folder = os.path.join(options.keep, f"{seeds[prefix]}-{target}")
                    write_reproducer(folder, session, small, opset, target, cpu, threads, outcome, seeds[prefix])
                    detail = f"{[n.op_type for n in small.nodes]} {outcome.detail}"
                results.append((seeds[prefix], target, outcome.kind, detail))
            times[target] += time.perf_counter() - began
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return first, count, results, operators, times


def check_graphs(options):
    """The graphs of files, on all targets; how many fail."""
    failures = 0
    with tempfile.TemporaryDirectory(prefix="tc-fuzz-") as scratch:
        session = Session(options.bin, scratch)
        names = sorted(name for name in os.listdir(options.graphs) if name.endswith(".txt"))
        for name in names:
            graph = generate.read_graph(os.path.join(options.graphs, name))
            for target, cpu in ("cpu", "x86-64-v3"), ("cpu", "native"), ("reference", ""):
                outcome = session.try_graphs([graph], graph.opset, target, cpu, 1)[graph.prefix]
                if outcome.kind != "clean":
                    failures += 1
                    print(f"{name} {target} {cpu} {outcome.kind}: {outcome.detail}")
    print(f"{len(names)} graphs, {failures} failures")
    return failures or not names


def generalize(reason):
    reason = re.sub(r"^.*?error: ", "", reason)
    return re.sub(r"\b\d+\b", "N", re.sub(r'node "[^"]*": |tensor<[^>]*>', "", reason))[:150]


def in_processes(jobs, count):
    """The answers of fuzz_batch, by `count` processes at a time, one for each batch: onnx itself may fall over a graph."""
    context, running = multiprocessing.get_context("fork"), {}
    while True:
        for job in itertools.islice(jobs, count - len(running)):
            reader, writer = context.Pipe(False)
            process = context.Process(target=lambda job=job, writer=writer: writer.send(fuzz_batch(job)))
            process.start()
            writer.close()
            running[reader] = process, job
        if not running:
            return
        for reader in multiprocessing.connection.wait(running):
            process, (_, first, size) = running.pop(reader)
            try:
                yield reader.recv()
            except EOFError:
                process.join()
                yield first, size, [(first, "", "lost", f"the batch's process ended with {process.exitcode}")], {}, {}
            process.join()


class Report:
    """What came out of a run, as JSON; and what is done already of one that was ended."""

    FAILURES = ("crash", "error", "wrong", "lost")

    def __init__(self, options):
        self.path = options.report
        self.targets = set(options.target)
        tool = os.path.join(options.bin, "tc-compile")
        files = sorted(os.path.join(os.path.dirname(os.path.abspath(__file__)), f) for f in os.listdir(os.path.dirname(os.path.abspath(__file__))) if f.endswith(".py"))
        self.data = {"tools": digest([tool, os.path.join(options.bin, "tc-run")]), "generator": digest(files), "seed": options.seed, "batch": options.batch, "targets": options.target,
                     "onnx": onnx.__version__, "batches": [], "seconds": 0.0, "stages": {}, "graphs": 0, "clean": 0, "outcomes": {}, "operators": {},
                     "refused": {}, "unevaluated": {}, "invalid": {}, "failures": []}  # fmt: skip
        self.earlier = 0.0
        if self.path and os.path.exists(self.path):
            with open(self.path) as f:
                data = json.load(f)
            if all(data.get(k) == self.data[k] for k in ("tools", "generator", "seed", "batch", "targets", "onnx")):
                self.data, self.earlier = data, data["seconds"]
        self.done = set(self.data["batches"])

    def take(self, first, count, results, operators, times, seconds):
        """The results of one batch."""
        data = self.data
        data["batches"].append(first)
        add(data["operators"], operators)
        add(data["stages"], {stage: round(t, 2) for stage, t in times.items()})
        data["graphs"] += count
        clean = collections.defaultdict(set)
        for seed, target, kind, detail in results:
            add(data["outcomes"], {f"{target} {kind}".strip(): 1})
            if kind in ("unevaluated", "invalid", "refused"):
                add(data[kind], {generalize(detail): 1})
            if kind in self.FAILURES:
                data["failures"].append({"seed": seed, "target": target, "kind": kind, "detail": detail[:400]})
                print(f"seed {seed} {target} {kind}: {detail[:400]}", flush=True)
            elif kind == "clean":
                clean[seed].add(target)
        data["clean"] += sum(targets == self.targets for targets in clean.values())
        data["seconds"] = round(self.earlier + seconds, 1)
        if self.path:
            with open(self.path + ".new", "w") as f:
                json.dump(data, f, indent=1)
            os.replace(self.path + ".new", self.path)

    def show(self):
        data = self.data
        for kind in "unevaluated", "invalid", "refused":
            if data[kind]:
                print(f"\n# {kind}")
                for reason, count in sorted(data[kind].items(), key=lambda item: -item[1])[:40]:
                    print(f"{count:6} {reason}")
        print("\n# operators\n" + " ".join(f"{op}:{n}" for op, n in sorted(data["operators"].items(), key=lambda item: -item[1])))
        print("\n# seconds of all processes: " + ", ".join(f"{stage} {t:.0f}" for stage, t in data["stages"].items()))
        print(", ".join(f"{kind} {n}" for kind, n in sorted(data["outcomes"].items())))
        failed = len({f["seed"] for f in data["failures"]})
        print(f"{data['graphs']} graphs of {len(data['operators'])} operators in {data['seconds']:.0f} s ({data['graphs'] / max(data['seconds'], 1):.1f}/s), "
              f"{data['clean']} clean through both targets, {failed} failed")  # fmt: skip


def digest(paths):
    result = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            result.update(f.read())
    return result.hexdigest()[:16]


def add(totals, counts):
    for key, count in counts.items():
        totals[key] = totals.get(key, 0) + count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--count", type=int, help="how many graphs (200; with --seconds as many as that allows)")
    parser.add_argument("--seconds", type=float, help="start no batch after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the batch of this seed only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--target", nargs="+", choices=["cpu", "reference", "cuda"], default=["cpu", "reference"])
    parser.add_argument("--graphs", help="instead: check the graphs of the text files in this folder")
    parser.add_argument("--keep", help="folder of reproducers")
    parser.add_argument("--report", help="file for the outcome, as JSON")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    if options.graphs:
        return 1 if check_graphs(options) else 0
    options.keep = os.path.abspath(options.keep or os.path.join(options.bin, "..", "fuzz"))
    count = options.count or (10**9 if options.seconds or options.only is not None else 200)
    start, report = time.perf_counter(), Report(options)

    def batches():
        firsts = range(options.seed, options.seed + count, options.batch)
        for first in firsts if options.only is None else [firsts[(options.only - options.seed) // options.batch]]:
            last = min(first + options.batch, options.seed + count)
            if first in report.done:
                continue
            if options.seconds and time.perf_counter() - start > options.seconds:
                return
            yield options, first, last - first

    for answer in in_processes(batches(), options.jobs):
        report.take(*answer, time.perf_counter() - start)
    report.show()
    return 1 if report.data["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
