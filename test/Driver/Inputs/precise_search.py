# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How --precision auto:R searches: in few runs, and with --max-compile-time no longer than that allows.

usage: precise_search.py few|timed FOLDER
"""
import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)
F = np.float32
CPUS = ["--cpu", "x86-64-v4-bf16,x86-64-v3"]


def run(*command):
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=600)
    return done.returncode, done.stderr


def save(name, hidden, layers):
    """Products of which the last, of 1 + x / 256, loses all of x in bf16 (see precise.py)."""
    constants = {"fine_w": rng.standard_normal((64, 64)).astype(F) / 8, "one": F(1), "step": F(1 / 256), "many": F(256)}
    constants["offset"] = (np.ones(64) @ constants["fine_w"].astype(np.float64)).astype(F)
    node = lambda kind, inputs, output, name="": helper.make_node(kind, inputs.split(), [output], name=name or output)
    nodes, last, size = [], "x", 64
    for i in range(layers):
        width = 64 if i == layers - 1 else hidden
        constants[f"w{i}"] = (rng.standard_normal((size, width)) / size ** 0.5).astype(F)
        nodes.append(node("MatMul", f"{last} w{i}", f"m{i}", f"/product/{i}"))
        nodes.append(node("Tanh", f"m{i}", f"t{i}"))
        last, size = f"t{i}", width
    nodes += [node("Mul", "x step", "f"), node("Add", "f one", "g"), node("MatMul", "g fine_w", "h", "/fine/product"),
              node("Sub", "h offset", "i"), node("Mul", "i many", "j"), node("Add", f"{last} j", "y")]
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 64])
    graph = helper.make_graph(nodes, name, [info("x")], [info("y")], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), name + ".onnx")
    np.savez("data.npz", x=rng.standard_normal((64, 64)).astype(F))


def few():
    """One of 65 products needs f32: to find it takes a fraction of 65 runs, and --explain changes nothing but what is told."""
    save("deep", 64, 64)
    search = ["tc-compile", "deep.onnx", *CPUS, "--precision", "auto:0.02", "--calibrate", "data.npz"]
    code, text = run(*search, "-o", "deep.bin", "--logs", "precision")
    assert code == 0 and "note: 64 in bf16 of 65 nodes; f32: /fine/product (--explain says why)" in text, text
    runs = [int(count) for count in re.findall(r"precision: (\d+) runs of the model\n", text)]
    assert runs and runs[-1] <= 24, text
    assert re.search(r"precision: alone: /fine/product in bf16: [0-9.]+e-01\n", text), text
    assert re.search(r"precision: alone: /product/\d+ and \d+ more in bf16: [0-9.]+e-04\n", text), text
    assert re.search(r"precision: mixture: 65 of 65 in bf16: [0-9.e-]+, too much; 2.0e-02 is allowed\n", text), text
    assert re.search(r"precision: mixture: 64 of 65 in bf16: [0-9.e-]+, kept; 2.0e-02 is allowed\n", text), text
    assert re.search(r"precision: as the artifact computes it: [0-9.e-]+, 2.0e-02 is allowed\n", text), text
    code, text = run(*search, "-o", "told.bin", "--explain=told.json", "-q", "--max-compile-time", "3000")
    assert code == 0 and open("deep.bin", "rb").read() == open("told.bin", "rb").read(), text
    told = json.load(open("told.json"))["precision"]
    assert all(node["error_alone"] > 0 for node in told["nodes"]) and "undecided" not in told, told


def timed():
    """The search ends in time, whatever it has found by then, and what was not shown to keep the budget stays f32."""
    save("timed", 1024, 3)
    compile = ["tc-compile", "timed.onnx", *CPUS]
    code, text = run(*compile, "-o", "f32.bin")
    assert code == 0, text
    code, text = run("tc-run", "f32.bin", "--inputs", "data.npz", "--outputs", "y.npz")
    assert code == 0, text
    search = [*compile, "-o", "out.bin", "--precision", "auto:0.02"]
    start = time.monotonic()
    code, text = run(*search, "--calibrate", ",".join(["data.npz"] * 20), "--logs", "precision")
    limit = 5 * (time.monotonic() - start) + 3
    assert code == 0 and "3 in bf16 of 4 nodes" in text and "raise" not in text, text
    seconds = float(re.search(r"precision: 4 nodes or groups of nodes, 20 runs of the calibration data, which take ([0-9.]+) s", text)[1]) / 20
    for share in (0.1, 2):  # of the time, for what f32 gives in all runs
        samples = int(share * limit / seconds) + 1
        with open("search.json", "w") as file:  # a list that is too long for a command line
            json.dump({"calibrate": ["data.npz"] * samples}, file)
        start = time.monotonic()
        code, text = run(*search, "--config", "search.json", "--max-compile-time", f"{limit:.1f}", "--explain=out.json")
        took = time.monotonic() - start
        assert code == 0 and took < limit + 1, (code, took, limit, text)
        told = json.load(open("out.json"))["precision"]
        left = told.get("undecided", 0)
        line = (f"tc-compile: warning: --max-compile-time {limit:.1f} ended the search of --precision auto:0.02: {4 - left} of 4 nodes are decided, "
                f"{left} {'is left and stays' if left == 1 else 'are left and stay'} f32; raise --max-compile-time, or give fewer samples of inputs\n")
        assert (line in text) == (left > 0) and ("raise" in text) == (left > 0), text
        reason = f"--max-compile-time {limit:.1f} ended the search before it was decided"
        assert sum(node.get("reason") == reason for node in told["nodes"]) == left, told
        code, text = run("tc-run", "out.bin", "--inputs", "data.npz", "--expect", "y.npz", "--max-rel", "0.0202")
        assert code == 0, text
    # Not even the first runs could be done.
    assert left == 4 and told["runs"] == 0 and open("out.bin", "rb").read() == open("f32.bin", "rb").read(), told


os.makedirs(sys.argv[2], exist_ok=True)
os.chdir(sys.argv[2])
{"few": few, "timed": timed}[sys.argv[1]]()
