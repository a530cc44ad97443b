#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random ONNX graphs through tc-compile and tc-run, optimised and for the reference target, compared with the value of each by onnx's
evaluator in float64 (opinion.py).

usage: fuzz.py BIN --graphs FOLDER
       fuzz.py BIN [--count N | --seconds S] [--seed S] [--jobs J] [--batch B] [--keep FOLDER] [--only SEED]

Graph k of a run has the seed SEED + k and is the same in every run. Graphs share a model, --batch of them at a time, as starting a compiler
costs more than compiling a small graph; a batch that fails is taken apart. A graph that fails is made smaller while it still fails,
and written to FOLDER (default BIN/../fuzz): model.onnx, inputs.npz, graph.txt with what is wrong and how to repeat it. Nodes that tc
refuses as not supported are counted and listed by reason; they are no failures.

Exit status 0: no graph failed.
"""
import argparse
import collections
import copy
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import generate
import numpy as np
import onnx
from opinion import Value, evaluate

TIMEOUT = 60
TARGETS = ["cpu", "reference"]


class Outcome:
    """What became of a graph on a target. kind: clean, refused, crash, error, wrong."""

    def __init__(self, kind, detail="", output=None):
        self.kind, self.detail, self.output = kind, detail, output

    @property
    def failed(self):
        return self.kind in ("crash", "error", "wrong")


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
            flags = ["--target", "reference"] if target == "reference" else ["--cpu", cpu]
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

def reevaluate(graph, opset, rng):
    for node in graph.nodes:
        reads, dtypes, implementation = graph.calls[node.name]
        values = evaluate(node, opset, {n: graph.values[n] for n in reads}, dtypes, rng, implementation)
        for name, value in zip([n for n in node.output if n], values):
            graph.values[name] = value


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
            if name and name not in graph.outputs and graph.values[name].dtype.kind != "V":
                smaller = copied(graph)
                smaller.outputs = [name]
                yield smaller
    for node in graph.nodes:
        results = [n for n in node.output if n]
        if any(n in graph.outputs or graph.values[n].dtype.kind == "V" for n in results):
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
                reevaluate(smaller, opset, np.random.default_rng(0))
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
    flags = "--target reference" if target == "reference" else f"--cpu {cpu}"
    with open(os.path.join(folder, "graph.txt"), "w") as f:
        f.write(f"seed {seed}, opset {opset}, target {target}\n{outcome.kind}: {outcome.detail}\n\n"
                f"tc-compile model.onnx -o m.bin {flags} && tc-run m.bin --inputs inputs.npz --outputs out.npz --threads {threads}\n\n"
                f"{onnx.printer.to_text(model)}\n")  # fmt: skip
        for name in graph.inputs + graph.outputs:
            f.write(f"\n{name} = {np.array2string(graph.values[name].stored(), threshold=200)}\n")


# --- a run

def fuzz_batch(job):
    """Returns [(seed, target, kind, detail)] of the graphs of one model, and how many of each operator they have."""
    options, first, count = job
    rng = np.random.default_rng([options.seed, first, 7])
    opset = int(generate.OPSETS[rng.integers(len(generate.OPSETS))])
    cpu, threads = ["x86-64-v3", "native"][rng.integers(2)], int(rng.integers(1, 3))
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
    scratch = tempfile.mkdtemp(prefix="tc-fuzz-")
    session = Session(options.bin, scratch)
    try:
        for target in TARGETS:
            for prefix, outcome in session.try_graphs(graphs, opset, target, cpu, threads).items():
                detail = outcome.detail
                if outcome.failed:
                    small, outcome = minimize(session, graphs, prefix, opset, target, cpu, threads, outcome)
                    folder = os.path.join(options.keep, f"{seeds[prefix]}-{target}")
                    write_reproducer(folder, session, small, opset, target, cpu, threads, outcome, seeds[prefix])
                    detail = f"{[n.op_type for n in small.nodes]} {outcome.detail}"
                results.append((seeds[prefix], target, outcome.kind, detail))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return results, operators


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, help="go on for so long, whatever --count says")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the batch of this seed only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--graphs", help="instead: check the graphs of the text files in this folder")
    parser.add_argument("--keep", help="folder of reproducers")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    if options.graphs:
        return 1 if check_graphs(options) else 0
    options.keep = os.path.abspath(options.keep or os.path.join(options.bin, "..", "fuzz"))
    start = time.perf_counter()

    def batches():
        first = options.seed
        while time.perf_counter() - start < options.seconds if options.seconds else first < options.seed + options.count:
            last = first + options.batch if options.seconds else min(first + options.batch, options.seed + options.count)
            if options.only is None or first <= options.only < last:
                yield options, first, last - first
            first = last

    kinds, reasons, operators, failed = collections.Counter(), collections.defaultdict(collections.Counter), collections.Counter(), set()
    seen = set()

    def take(answer):
        results, counts = answer
        operators.update(counts)
        for seed, target, kind, detail in results:
            seen.add(seed)
            kinds[target, kind] += 1
            reasons[kind][generalize(detail)] += 1
            if kind in ("crash", "error", "wrong"):
                failed.add(seed)
                print(f"seed {seed} {target} {kind}: {detail[:400]}", flush=True)

    if options.jobs == 1:
        for job in batches():
            take(fuzz_batch(job))
    else:
        with multiprocessing.Pool(options.jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
            for answer in pool.imap_unordered(fuzz_batch, batches()):
                take(answer)
    seconds = time.perf_counter() - start
    for kind in "unevaluated", "invalid", "refused":
        if reasons[kind]:
            print(f"\n# {kind}")
            for reason, count in reasons[kind].most_common(40):
                print(f"{count:6} {reason}")
    print("\n# operators\n" + " ".join(f"{op}:{n}" for op, n in operators.most_common()))
    print("\n" + ", ".join(f"{target} {kind} {n}".strip() for (target, kind), n in sorted(kinds.items())))
    print(f"{len(seen)} graphs in {seconds:.0f} s ({len(seen) / seconds:.1f}/s), {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
