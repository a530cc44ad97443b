#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same model through all doors: model.onnx, model.pt2 and model.pt of full exports.

usage: doors.py BIN ZOO [--models NAME ...] [--doors onnx pt2 pt] [--cpu x86-64-v3] [--target cpu] [--jobs 1] [--rounds 0]

ZOO is a folder that make_zoo.py made. Each archive must compile and agree with outputs.npz (max|a-b| <= 2e-5 max|b|) with one thread
and with two; models of unknown sizes do so at three other sizes, too, whose references reference.py makes from model.onnx in float64.
The table has the kernels and compile times (CPU seconds) of each door beside ONNX's: kernels may differ by 10 %, compile times by 1.2. Exit status 0:
all that is right and within these; times count on a quiet machine alone, so they are told and fail nothing. --rounds N also times runs with one
thread, or on the GPU of --target cuda: N rounds in which the doors take turns, and the median over the rounds of each door's time beside ONNX's.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import fill
from run import MAX_REL, OTHER_DIMS

KERNELS_RATIO, KERNELS_SLACK = 1.1, 1
# Traces have the sizes of their inputs; what is unknown, the command line names.
SHAPES = {"block768_dyn": ["x=batch,sequence,768"], "minilm": ["input_ids=batch,sequence", "attention_mask=batch,sequence"]}


def call(*command):
    """(exit status, text, seconds of CPU time, which a busy machine lengthens less than those on the clock)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result.returncode, (result.stderr + result.stdout).strip(), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_errors(text):
    lines = [line.partition("error: ")[2] for line in text.splitlines() if "error: " in line]
    return "; ".join(line[:100] for line in lines[:3]) or text[-200:]


def target_of(options):
    return ["--cpu", options.cpu] if options.target == "cpu" else ["--target", options.target]


def other_sizes(options, name, folder):
    """[(what, inputs, outputs)] of models with unknown sizes."""
    sets = []
    for batch, sequence in OTHER_DIMS.get(name, []):
        arrays = fill.make_inputs(name, {"batch": batch, "sequence": sequence})
        inputs, outputs = (os.path.join(folder, f"{kind}_{batch}_{sequence}.npz") for kind in ("inputs", "outputs"))
        fill.write_reference(onnx.load(os.path.join(options.zoo, name, "model.onnx")), arrays, outputs)
        values = np.load(outputs)
        np.savez(inputs, **{f"input_{i}": x for i, x in enumerate(arrays.values())})
        np.savez(outputs, **{f"output_{i}": values[k] for i, k in enumerate(values.files)})
        sets.append((f"batch={batch}, sequence={sequence}", inputs, outputs))
    return sets


def test_door(options, folder, name, door, sets):
    """(kernels, seconds, sentence): an empty sentence where all is right."""
    source, shapes = os.path.join(options.zoo, name), [f"--shape={shape}" for shape in SHAPES.get(name, [])] if door == "pt" else []
    artifact, explain = os.path.join(folder, door + ".bin"), os.path.join(folder, door + ".json")
    code, text, seconds = call(os.path.join(options.bin, "tc-compile"), os.path.join(source, "model." + door), "-o", artifact, "-q", *target_of(options),
                               "--jobs", options.jobs, f"--explain={explain}", *shapes)  # fmt: skip
    if code:
        return None, seconds, f"tc-compile exited with {code}: {first_errors(text)}"
    with open(explain) as f:
        kernels = json.load(f)["kernel_count"]
    wrong = []
    for what, inputs, outputs in [("", os.path.join(source, "inputs.npz"), os.path.join(source, "outputs.npz")), *sets]:
        for threads in (1, 2) if options.target == "cpu" else (1,):
            code, text, _ = call(os.path.join(options.bin, "tc-run"), artifact, "--device", options.target, "--inputs", inputs, "--expect", outputs,
                                 "--max-rel", MAX_REL, "--threads", threads)  # fmt: skip
            if code:
                wrong.append(f"{what or 'as exported'}, {threads} threads: tc-run exited with {code}: {text[-200:]}")
    return kernels, seconds, "; ".join(wrong)


def time_runs(options, folder, name, doors):
    """Ratios of run times to ONNX's: what slows the machine for a while slows all doors of a round, and each goes first in turn."""
    inputs, rounds = os.path.join(options.zoo, name, "inputs.npz"), []
    for i in range(options.rounds):
        times = {}
        for door in doors[i % len(doors) :] + doors[: i % len(doors)]:
            code, text, _ = call(os.path.join(options.bin, "tc-run"), os.path.join(folder, door + ".bin"), "--device", options.target, "--inputs", inputs,
                                 "--threads", 1, f"--benchmark={options.seconds}", "--json", "-")  # fmt: skip
            if code:
                return f"tc-run exited with {code}: {text[-200:]}"
            times[door] = json.loads(text)["median_us"]
        rounds.append(times)
    fastest = min(times["onnx"] for times in rounds)
    ratios = {door: statistics.median(times[door] / times["onnx"] for times in rounds) for door in doors if door != "onnx"}
    return f"onnx {fastest:.0f} us; " + ", ".join(f"{door} {ratio:.3f}" for door, ratio in ratios.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("zoo")
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--doors", nargs="+", default=["onnx", "pt2", "pt"], choices=["onnx", "pt2", "pt"])
    parser.add_argument("--cpu", default="x86-64-v3")
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each run that is timed")
    options = parser.parse_args()
    passed = failed = 0
    print("model door kernels seconds what")
    for name in options.models or sorted(os.listdir(options.zoo)):
        source, onnxs = os.path.join(options.zoo, name), None
        with tempfile.TemporaryDirectory(prefix="tc-doors-") as folder:
            sets, compiled = other_sizes(options, name, folder), []
            for door in options.doors:
                if not os.path.exists(os.path.join(source, "model." + door)):
                    continue
                kernels, seconds, what = test_door(options, folder, name, door, sets)
                if not what and onnxs and kernels > max(onnxs[0] * KERNELS_RATIO, onnxs[0] + KERNELS_SLACK):
                    what = f"{kernels} kernels, {onnxs[0]} through ONNX"
                ratio = f", {seconds / onnxs[1]:.2f} of ONNX's" if onnxs else ""
                print(f"{name} {door} {kernels or '-'} {seconds:.1f}{ratio} {'FAILED: ' + what if what else 'right'}", flush=True)
                onnxs = (kernels, seconds) if door == "onnx" and kernels is not None else onnxs
                passed, failed = passed + (not what), failed + bool(what)
                compiled += [door] if kernels is not None else []
            if options.rounds and len(compiled) > 1 and compiled[0] == "onnx":
                print(f"{name} run time: {time_runs(options, folder, name, compiled)}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
