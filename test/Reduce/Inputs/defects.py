"""Seeded defects in a network of some 60 nodes shrink to a few nodes that show them still.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: defects.py MODELS"""
import os
import re
import shutil
import subprocess
import sys

INPUTS = os.path.dirname(os.path.abspath(__file__))
MODELS = sys.argv[1]
PYTHON = f"{sys.executable} -S {INPUTS}/judge.py"
MOST_NODES = 5
REAL, REDUCE = shutil.which("tc-compile"), shutil.which("tc-reduce")


def run(words, code=0, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    assert done.returncode == code, (words, done.returncode, done.stdout)
    return done.stdout


def reduce(name, model, *options, most=MOST_NODES, program=REDUCE, **environment):
    text = run([program, model, "-o", name, "--jobs", "2", *options], env={**os.environ, **environment})
    nodes = int(re.search(r": (\d+) nodes?, ", text).group(1))
    print(text, end="")
    assert nodes <= most, text
    assert open(name + ".mlir").read().count("graph.node") == nodes
    assert os.path.exists(name + ".onnx") == model.endswith(".onnx")


def network(name, defect):
    run([sys.executable, f"{INPUTS}/network.py", f"{name}.onnx", defect])
    return f"{name}.onnx"


# The compiler's own sentences: the small models fail as the large ones do, in both forms.
for name, defect, code, options in (("refused", "unknown", 2, []), ("invalid", "contradiction", 1, []), ("wrong", "cancellation", 3, ["--verify"])):
    judged = ["--code", str(code), *options, "--", "--cpu", "x86-64-v3"]
    reduce(f"small-{name}", network(name, defect), *judged, most=2)
    for form in ("mlir", "onnx"):
        run(["tc-compile", f"small-{name}.{form}", "-o", "out.bin", "--cpu", "x86-64-v3", *options], code)

# A compiler that crashes, is killed, hangs.
os.makedirs("defect", exist_ok=True)
shutil.copy(f"{INPUTS}/compiler.py", "defect/tc-compile")
os.chmod("defect/tc-compile", 0o755)
shutil.copy(REDUCE, "defect/tc-reduce")
environment = {"INPUTS": INPUTS, "TC_COMPILE": REAL, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
run([sys.executable, f"{INPUTS}/network.py", "plain.onnx"])
for how in ("crash", "abort"):
    reduce(f"small-{how}", "plain.onnx", program="defect/tc-reduce", most=2, HOW=how, **environment)
reduce("small-hang", "small-crash.mlir", "--seconds", "2", program="defect/tc-reduce", most=2, HOW="hang", **environment)

# What a command calls interesting.
for name, defect, pattern in (
    ("twice", "twice", "transpose-read-twice"),
    ("turned", "turned", "product-of-transpose-of-softmax"),
    ("strided", "convolution", "strided-convolution"),
    ("joined", "joined", "joined"),
    ("loop", "loop", "exp-in-loop"),
    ("function", "function", "tanh-of-tanh"),
):
    reduce(f"small-{name}", network(name, defect), "--command", f"{PYTHON} {pattern} {{}}", most=3)
assert "graphs" not in open("small-loop.mlir").read()
assert "private" not in open("small-function.mlir").read()

# Seeded numbers stand for weights, so that no file has to hold them.
command = f"{PYTHON} product-of-weights-of-gelu {{}} && tc-compile {{}} -o - --compile-to=prim > {os.devnull}"
reduce("small-weights", "plain.onnx", "--command", command, most=2)
assert "seed_0_f32_" in open("small-weights.mlir").read() and not os.path.exists("small-weights.mlir.data")
run(["tc-compile", "small-weights.mlir", "-o", "out.bin", "--cpu", "x86-64-v3", "--verify"])

# Another runtime is wrong.
reduce("small-peer", "plain.onnx", "--command", f"{sys.executable} {INPUTS}/peer.py {{onnx}}", most=1)

# The other doors.
for door in ("pt2", "pt"):
    reduce(f"small-{door}", f"{MODELS}/digits/model.{door}", "--command", f"{PYTHON} pool-of-relu {{}}", most=2)
