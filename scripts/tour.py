#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lead through the phases of tc on models/digits: each with its command, what it is for, and some lines of what came out.

usage: tour.py BIN [FOLDER]      BIN: folder with the tools; FOLDER: where the files go; default: tour beside BIN

On a terminal it waits for the Enter key between the steps. Exit status 0 only where every step worked.
"""
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
DIGITS = os.path.join("models", "digits")
MODEL = os.path.join(DIGITS, "model.onnx")
WIDTH = 150

# What a phase is for, lines to show, and how many of them there are.
PHASES = [
    ("import", "The file, faithfully. Each node is a graph.node with its operator, opset, attributes and name; nothing is interpreted "
     "yet.", r"graph\.node", "nodes"),
    ("prim", "What the operators mean, in a few primitives. Sizes are numbers or symbols (batch), constants are folded, and each error "
     "or unsupported operator has been told by now.", r"= prim\.(?!constant)", "primitives"),
    ("fuse", "Primitives that share a loop are one kernel.region. The cost of a region, as an expression of the sizes, decided it; "
     "--explain says why it did not grow further.", r"kernel\.region\(", "regions"),
    ("schedule", "Each region gets a schedule: tiles, vector widths, the algorithm. Later phases only obey; tuning edits nothing but "
     "these.", r"schedule = ", "schedules"),
    ("kernel", "Each region becomes a function per machine (here AVX2 and AVX-512), in LLVM's dialect. The program launches them.",
     r"host\.launch", "launches"),
    ("host", "The program is planned: where each value lives in one arena, which launches share threads, what sizes are "
     "checked.", r"host\.place<arena", "values in the arena"),
    ("object", "Machine code per variant, linked and checked.", r"host\.binary", "variants"),
]


class Tour:
    def __init__(self, tools, folder):
        self.tools = tools
        self.folder = folder
        self.waits = sys.stdin.isatty() and sys.stdout.isatty()
        self.step = 0

    def head(self, title, text):
        if self.step and self.waits:
            input("\n[Enter] goes on, Ctrl-C ends ")
        self.step += 1
        print(f"\n{self.step}. {title}\n")
        line = "  "
        for word in text.split():
            if len(line) + len(word) > 100:
                print(line.rstrip())
                line = "  "
            line += word + " "
        print(line.rstrip() + "\n")

    def run(self, tool, *words):
        print("  $ " + shlex.join([os.path.relpath(os.path.join(self.tools, tool)), *words]))
        result = subprocess.run([os.path.join(self.tools, tool), *words], capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"tour.py: error: {tool} failed with status {result.returncode}\n{result.stderr}")
        return result.stdout + result.stderr

    def show(self, lines, most):
        lines = [re.sub(r" loc\(#?\w+\)", "", line).rstrip() for line in lines]
        for line in lines[:most]:
            print("    " + (line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."))
        if len(lines) > most:
            print(f"    ... and {len(lines) - most} more")

    def phase(self, name, text, pattern, what):
        self.head(f"Phase {name}", text)
        path = os.path.join(self.folder, f"{name}.mlir")
        self.run("tc-compile", MODEL, "-o", path, f"--compile-to={name}", "-q")
        with open(path, errors="replace") as f:
            found = [line.strip() for line in f if re.search(pattern, line) and not line.startswith("#")]
        if not found:
            sys.exit(f"tour.py: error: {path} has no {what}")
        if name == "schedule":
            found = [re.search(r"schedule = (#kernel\S*<.*?>)", line).group(1) for line in found]
        if name == "host":
            found = ["{} at {}".format(*re.search(r"(@\w+).*(host\.place<.*?>)\]", line).groups()) for line in found]
        print(f"\n  {len(found)} {what}:\n")
        self.show(found, 4)


def main(tools, folder):
    tour = Tour(tools, folder)
    artifact = os.path.join(folder, "digits.bin")
    print("tc in phases: from a trained model that reads digits to native code. Every command can be run again as it stands.")
    tour.head("The model", "What is in the file, before anything is compiled.")
    tour.show(tour.run("tc-inspect", MODEL).splitlines(), 16)
    for phase in PHASES:
        tour.phase(*phase)
    tour.head("Phase artifact", "Code, constants and tables in one file, which libtcrt checks and maps. --verify compares a run with "
              "the model in float64.")
    tour.show(tour.run("tc-compile", MODEL, "-o", artifact, "--verify").splitlines(), 6)
    tour.head("Running it", "No compiler, Python or framework is needed from here on. The expected outputs are of float64.")
    tour.run("tc-run", artifact, "--inputs", os.path.join(DIGITS, "inputs.npz"), "--expect", os.path.join(DIGITS, "outputs.npz"), "--max-rel",
             "2e-5")
    tour.show(tour.run("tc-run", artifact, "--random-inputs", "--dim", "batch=32", "--profile").splitlines(), 12)
    tour.head("How fast is it?", "Beside ONNX Runtime, OpenVINO and PyTorch where python3 finds them, and beside what this machine could do "
              "at most. The page has the kernels as a graph and in a roofline plot.")
    page = os.path.join(folder, "digits.html")
    tour.show(tour.run("tc-bench", MODEL, "--dim", "batch=32", "--static", "--seconds", "0.2", "--html", page).splitlines(), 12)
    print(f"\nAll of it is in {os.path.relpath(folder)}: the IR of each phase, the artifact, and {os.path.relpath(page)} for a browser.")
    print("To go on: README.md (I want to ...), docs/, lib/README.md.")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n")[1])
    tools = os.path.abspath(sys.argv[1])
    target = os.path.abspath(sys.argv[2]) if len(sys.argv) == 3 else os.path.join(os.path.dirname(tools), "tour")
    os.makedirs(target, exist_ok=True)
    os.chdir(ROOT)
    try:
        main(os.path.relpath(tools), os.path.relpath(target))
    except (KeyboardInterrupt, EOFError):
        sys.exit(130)
