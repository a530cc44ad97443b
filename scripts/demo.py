#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile models/digits with tc-compile, run it with tc-run, and show what came out.

usage: demo.py BIN [FOLDER]      BIN: folder with tc-compile and tc-run; FOLDER: where artifacts go, a temporary one by default

Exit status 0 only where every step worked, the outputs match the reference and accuracy is at least 98 %.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "digits")
MAX_REL = 2e-5
SHOWN = 8


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"demo.py: error: {os.path.basename(command[0])} failed with status {result.returncode}\n{result.stderr}")
    return result.stdout


def picture(image):
    """The rows of an 8x8 image as text, two characters a pixel."""
    shades = " .:-=+*#%@"
    return ["".join(2 * shades[int(p * (len(shades) - 1))] for p in row) for row in image]


def main(bin_dir, folder):
    tool = lambda name: os.path.join(bin_dir, name)
    at = lambda name: os.path.relpath(os.path.join(DIGITS, name))
    artifact, outputs, timing = (os.path.join(folder, n) for n in ("digits.bin", "logits.npz", "timing.json"))

    start = time.perf_counter()
    run(tool("tc-compile"), at("model.onnx"), "-o", artifact)
    seconds = time.perf_counter() - start
    print(f"compiled {at('model.onnx')} in {seconds:.2f} s: {os.path.getsize(artifact) / 1024:.0f} KiB of native code and weights\n")

    check = run(tool("tc-run"), artifact, "--inputs", at("inputs.npz"), "--outputs", outputs,
                "--expect", at("outputs.npz"), "--max-rel", str(MAX_REL))
    images = np.load(at("inputs.npz"))["images"][:, 0]
    labels = np.load(at("labels.npz"))["labels"]
    logits = np.load(outputs)["logits"]
    predicted = logits.argmax(1)

    for row in zip(*map(picture, images[:SHOWN])):
        print("  ".join(row))
    for text, values in (("is", labels), ("read", predicted)):
        print("  ".join(f"{text} {v}".center(16) for v in values[:SHOWN]))

    right = int((predicted == labels).sum())
    expected = np.load(at("outputs.npz"))["logits"]
    error = float(np.abs(logits - expected).max() / np.abs(expected).max())
    print(f"\naccuracy: {right} of {len(labels)} held-out images read right ({right / len(labels):.1%})")
    print(f"check:    largest difference to the float64 reference is {error:.1e} of the largest output (allowed: {MAX_REL:.0e})")
    if check.strip():
        print("          tc-run: " + check.strip().replace("\n", "\n          "))

    run(tool("tc-run"), artifact, "--inputs", at("inputs.npz"), "--threads", "1", "--benchmark=0.5", "--json", timing)
    with open(timing) as f:
        result = json.load(f)
    median = result["median_us"]
    print(f"time:     {median:.0f} us for {len(labels)} images on one thread, {len(labels) / median * 1e6:,.0f} images a second; "
          f"loading the artifact took {result['load_us']:.0f} us")
    if right / len(labels) < 0.98 or not error <= MAX_REL:
        sys.exit("demo.py: error: the model does not do what it should")
    name = lambda tool_name: os.path.relpath(tool(tool_name))
    print("\nWhat next:")
    for command, meaning in (
            ("scripts/demo.sh --tour", "through the phases of the compiler, on this model"),
            (name("tc-compile") + " MODEL.onnx --explain", "what is fused in a model of yours, or what tc lacks for it"),
            (name("tc-compile") + " MODEL.onnx -o MODEL.bin --verify", "compile it, and compare it with float64"),
            (name("tc-run") + " MODEL.bin --random-inputs --benchmark", "time it"),
            ("README.md", '"I want to ...", from a program in C, coming from other runtimes')):
        print(f"  {command:<60} {meaning}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n")[1])
    with tempfile.TemporaryDirectory(prefix="tc-demo-") as temporary:
        main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else temporary)
