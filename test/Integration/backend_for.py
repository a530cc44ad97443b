#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles models with --backend-for and runs them: with a library that stands for ONNX Runtime (test/Unit/FakeOrt), and with the
real one where this Python has it.

usage: backend_for.py BIN FAKE
"""

import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from checks import check, verdict
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def save(path, nodes, inputs, outputs, weights=(), opset=20):
    def values(given):
        return [helper.make_tensor_value_info(*value) for value in given]

    tensors = [numpy_helper.from_array(array, name) for name, array in weights]
    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)


def find_runtime():
    """libonnxruntime.so of this Python, or None."""
    found = importlib.util.find_spec("onnxruntime")
    files = glob.glob(os.path.join(os.path.dirname(found.origin), "capi", "libonnxruntime.so.*")) if found else []
    return files[0] if files else None


class Tools:
    def __init__(self, folder, bin_folder):
        self.folder, self.bin = folder, bin_folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def __call__(self, tool, *words, **environment):
        return subprocess.run(
            [os.path.join(self.bin, tool), *words], capture_output=True, text=True, timeout=300, cwd=self.folder, env={**os.environ, **environment}
        )

    def compile(self, name, *options):
        done = self("tc-compile", name + ".onnx", "-o", name + ".bin", "--cpu", "x86-64-v3", "-q", *options)
        check(f"compile {name} {options}", done.returncode == 0, done.stderr)
        return done

    def compute(self, name, inputs, *options, **environment):
        np.savez(self.path("in.npz"), **inputs)
        done = self("tc-run", name + ".bin", "--inputs", "in.npz", "--outputs", "out.npz", *options, **environment)
        return done, dict(np.load(self.path("out.npz"))) if done.returncode == 0 else None


def save_layers(path):
    """Two layers with an open batch, a softmax between them."""
    rng = np.random.default_rng(1)
    weights = [(f"w{i}", rng.standard_normal((32, 32)).astype(np.float32)) for i in range(2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="/a/mul"),
        helper.make_node("Relu", ["a"], ["b"], name="/a/relu"),
        helper.make_node("Softmax", ["b"], ["c"], name="soft"),
        helper.make_node("MatMul", ["c", "w1"], ["d"], name="/b/mul"),
        helper.make_node("Add", ["d", "x"], ["y"], name="/b/add"),
    ]
    save(path, nodes, [("x", FLOAT, ["n", 32])], [("y", FLOAT, ["n", 32]), ("b", FLOAT, ["n", 32])], weights)

    def compute(x):
        b = np.maximum(x @ weights[0][1], 0)
        c = np.exp(b - b.max(1, keepdims=True))
        return c / c.sum(1, keepdims=True) @ weights[1][1] + x, b

    return compute


def test_fake(tools, fake):
    expect = save_layers(tools.path("layers.onnx"))
    tools.compile("layers", "--backend-for", "/a/mul=onnxruntime", "--backend-for", "/a/relu=onnxruntime", "--backend-for", "/b/*=onnxruntime", "--explain=explain.json")
    with open(tools.path("explain.json"), encoding="utf-8") as file:
        parts = json.load(file)["backend_parts"]
    check("parts", [part["nodes"] for part in parts] == [["/a/mul", "/a/relu"], ["/b/mul", "/b/add"]] and parts[0]["taken"], parts)
    # What is named whole goes, and so does the part of a pattern that computes more than it hands over.
    tools.compile("layers", "--backend-for", "/a/mul=onnxruntime", "--backend-for", "/b/mul=onnxruntime")
    for rows in (1, 5, 0):
        x = np.random.default_rng(rows).standard_normal((rows, 32)).astype(np.float32)
        log = tools.path(f"log{rows}")
        done, got = tools.compute("layers", {"x": x}, "--threads", "3", TCRT_ONNXRUNTIME=fake, FAKE_ORT_LOG=log)
        check(f"run {rows}", done.returncode == 0, done.stderr)
        if got:
            y, b = expect(x) if rows else (x, x)
            check(f"values {rows}", np.allclose(got["y"], y, atol=1e-5) and np.allclose(got["b"], b, atol=1e-5), got)
        with open(log, encoding="utf-8") as file:
            lines = file.read().splitlines()
        sessions = [line for line in lines if line.startswith("session of")]
        check(f"sessions {rows}", sessions == ["session of MatMul, 3 threads, spinning 0"] * 2, lines)
        check(f"releases {rows}", lines.count("session released") == 2, lines)
    # A context keeps its sessions.
    log = tools.path("log-many")
    done = tools("tc-run", "layers.bin", "--random-inputs", "--dim", "n=4", "--benchmark=0.05", TCRT_ONNXRUNTIME=fake, FAKE_ORT_LOG=log)
    with open(log, encoding="utf-8") as file:
        lines = file.read().splitlines()
    check("kept", done.returncode == 0 and len([line for line in lines if line.startswith("session of")]) == 2 and len(lines) > 8, lines[:9])

    # Sizes that only the run knows.
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="relu"), helper.make_node("NonZero", ["r"], ["i"], name="where"), helper.make_node("Cast", ["i"], ["y"], name="cast", to=FLOAT)]
    save(tools.path("where.onnx"), nodes, [("x", FLOAT, ["n"])], [("y", FLOAT, [1, "m"])])
    tools.compile("where", "--backend-for", "relu=onnxruntime", "--backend-for", "where=onnxruntime")
    for x in ([1, -1, 2, 0, 3], [-1, -2], []):
        done, got = tools.compute("where", {"x": np.array(x, dtype=np.float32)}, TCRT_ONNXRUNTIME=fake)
        check(f"where {x}", got is not None and np.array_equal(got["y"], [[i for i, v in enumerate(x) if v > 0]]), (done.stderr, got))

    # An operator that nobody defines but the library: known sizes, open ones, and a rank that no one knows.
    for dims, what in (([2, 4], "known"), (["n", 4], "open"), (None, "unknown")):
        nodes = [helper.make_node("Relu", ["x"], ["r"], name="relu"), helper.make_node("Twice", ["r"], ["t"], name="twice", domain="my.ops")]
        nodes.append(helper.make_node("Neg", ["t"], ["y"], name="neg"))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, dims or [2, 4])], [helper.make_tensor_value_info("y", FLOAT, dims)])
        if dims:
            graph.value_info.append(helper.make_tensor_value_info("t", FLOAT, dims))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("my.ops", 1)], ir_version=10), tools.path("own.onnx"))
        done = tools("tc-compile", "own.onnx", "-o", "own.bin", "-q", "--backend-for", "*w*=onnxruntime", "--explain=own.json")
        if not dims:
            check(what, done.returncode == 2 and 'node "twice": my.ops.Twice' in done.stderr and "Traceback" not in done.stderr, done.stderr)
            continue
        with open(tools.path("own.json"), encoding="utf-8") as file:
            parts = json.load(file)["backend_parts"]
        check(f"own {what}", done.returncode == 0 and parts[0]["taken"] and parts[0]["reason"] == 'tc has no code for "twice"', (done.stderr, parts))
        x = np.random.default_rng(3).standard_normal((2, 4)).astype(np.float32)
        done, got = tools.compute("own", {"x": x}, TCRT_ONNXRUNTIME=fake)
        check(f"own {what}", got is not None and np.array_equal(got["y"], -2 * np.maximum(x, 0)), done.stderr or got)

    # Nodes of branches, which stay.
    branches = [helper.make_graph([helper.make_node(kind, ["x"], ["b"], name=f"in/{kind}")], kind, [], [helper.make_tensor_value_info("b", FLOAT, [2])]) for kind in ("Neg", "Relu")]
    nodes = [helper.make_node("If", ["c"], ["y"], name="if", then_branch=branches[0], else_branch=branches[1])]
    save(tools.path("if.onnx"), nodes, [("c", TensorProto.BOOL, []), ("x", FLOAT, [2])], [("y", FLOAT, [2])])
    done = tools("tc-compile", "if.onnx", "--backend-for", "i*=onnxruntime", "--explain=if.json")
    with open(tools.path("if.json"), encoding="utf-8") as file:
        reasons = {part["nodes"][0]: part["reason"] for part in json.load(file)["backend_parts"]}
    check("branches", reasons == {"if": "it holds a graph of its own", "in/Neg": "it stands inside of a branch or loop", "in/Relu": "it stands inside of a branch or loop"}, reasons)
    # Files of PyTorch have no nodes of ONNX.
    digits = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "models", "digits")
    for program in ("model.pt2", "model.pt"):
        program = os.path.join(digits, program)
        done = tools("tc-compile", program, "-o", "no.bin", "--backend-for", "*=onnxruntime")
        sentence = rf"{re.escape(program)}: error: --backend-for: node \"[^\"]+\" is of PyTorch, and ONNX Runtime takes nodes of ONNX; "
        sentence += r"export the model with torch\.onnx\.export, or leave the option out\n"
        check(program, done.returncode == 1 and re.fullmatch(sentence, done.stderr) and not os.path.exists(tools.path("no.bin")), done.stderr)

    # What artifacts say of it.
    done = tools("tc-inspect", "layers.bin")
    check("inspect", "onnxruntime_run          of libtcrt-ort, which calls ONNX Runtime" in done.stdout and "--backend-for /a/mul=onnxruntime" in done.stdout, done.stdout)
    done = tools("tc-inspect", "layers.bin", "--sbom")
    check("sbom", '"ONNX Runtime"' in done.stdout, done.stdout + done.stderr)
    done = tools("tc-refit", "layers.bin", "layers.onnx", "-o", "again.bin", "-q")
    with open(tools.path("layers.bin"), "rb") as one, open(tools.path("again.bin"), "rb") as two:
        check("refit", done.returncode == 0 and one.read() == two.read(), done.stderr)

    # What fails.
    x = {"x": np.ones((2, 32), dtype=np.float32)}
    for what, environment, code, parts in (
        ("no library", {"TCRT_ONNXRUNTIME": "/none.so"}, 5, ("layers.bin: error: ONNX Runtime computes parts of the model", "/none.so", "set TCRT_ONNXRUNTIME", "--backend-for")),
        ("another library", {"TCRT_ONNXRUNTIME": "libm.so.6"}, 5, ("libm.so.6 is not ONNX Runtime",)),
        ("old", {"FAKE_ORT": "old"}, 5, ("0.fake is too old; install 1.12 or newer",)),
        ("session", {"FAKE_ORT": "session"}, 5, ('node "/a/mul": ONNX Runtime 0.fake does not take this part of the model: Load model failed: FAKE_ORT says so; compile without',)),
        ("run", {"FAKE_ORT": "run"}, 5, ('node "/a/mul": ONNX Runtime 0.fake: Non-zero status code returned FAKE_ORT says so',)),
    ):
        done, got = tools.compute("layers", x, **{"TCRT_ONNXRUNTIME": fake, **environment})
        check(what, done.returncode == code and all(part in done.stderr for part in parts) and done.stderr.count("\n") == 1, done.stderr)
    os.makedirs(tools.path("bin"))
    shutil.copy(os.path.join(tools.bin, "tc-run"), tools.path("bin"))
    done = subprocess.run([tools.path("bin/tc-run"), "layers.bin", "--random-inputs"], capture_output=True, text=True, cwd=tools.folder)
    check("no libtcrt-ort", done.returncode == 5 and "nor in libtcrt-ort" in done.stderr and "install libtcrt-ort" in done.stderr, done.stderr)
    for options, code, part in (
        (("--backend-for", "/a/mul"), 1, "--backend-for /a/mul names no library; after the node or pattern comes =onnxruntime"),
        (("--backend-for", "/a/mul=openvino"), 1, "is not known; after the node or pattern comes =onnxruntime"),
        (("--backend-for", "/z=onnxruntime"), 1, "--backend-for /z names no node of the model"),
        (("--backend-for", "*=onnxruntime", "--target", "cuda"), 1, "--target cuda"),
        (("--backend-for", "/a/mul=onnxruntime", "--verify"), 2, "compile without --verify"),
        (("--backend-for", "soft=onnxruntime", "--stop-after", "2"), 1, "--backend-for soft names no node"),
    ):
        done = tools("tc-compile", "layers.onnx", "-o", "no.bin", "-q", *options)
        check(f"refused {options}", done.returncode == code and part in done.stderr and not os.path.exists(tools.path("no.bin")), done.stderr)
    done = tools("tc-compile", "layers.onnx", "-o", "idle.bin", "-q", "--backend-for", "soft*=onnxruntime")
    check("idle", done.returncode == 0 and "--backend-for changes nothing" in done.stderr, done.stderr)
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"], name="sequence"),
        helper.make_node("SequenceAt", ["s", "zero"], ["y"], name="at"),
    ]
    save(tools.path("sequence.onnx"), nodes, [("x", FLOAT, [2])], [("y", FLOAT, [2])], [("zero", np.array(0))])
    done = tools("tc-compile", "sequence.onnx", "-o", "no.bin", "-q", "--backend-for", "at=onnxruntime")
    check("sequence", done.returncode == 1 and 'node "at" cannot be handed to ONNX Runtime: one of its values is no tensor of numbers' in done.stderr, done.stderr)


def test_real(tools, library):
    """Each node of a model with an open batch, and the whole of it, against tc alone."""
    rng = np.random.default_rng(2)
    weights = [("w0", rng.standard_normal((8, 3, 3, 3)).astype(np.float32)), ("b0", rng.standard_normal(8).astype(np.float32)), ("w1", rng.standard_normal((8 * 6 * 6, 10)).astype(np.float32)), ("shape", np.array([0, -1]))]
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["a"], name="conv"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Reshape", ["b", "shape"], ["c"], name="reshape"),
        helper.make_node("MatMul", ["c", "w1"], ["d"], name="mul"),
        helper.make_node("Greater", ["d", "limit"], ["e"], name="greater"),
        helper.make_node("NonZero", ["e"], ["f"], name="where"),
        helper.make_node("Softmax", ["d"], ["y"], name="soft"),
    ]
    weights.append(("limit", np.array(2, dtype=np.float32)))
    save(tools.path("net.onnx"), nodes, [("x", FLOAT, ["n", 3, 8, 8])], [("y", FLOAT, ["n", 10]), ("f", TensorProto.INT64, [2, "m"])], weights)
    inputs = {"x": rng.standard_normal((3, 3, 8, 8)).astype(np.float32)}
    tools.compile("net")
    _, expected = tools.compute("net", inputs)
    names = [node.name for node in nodes]
    for chosen in [names, *[[name] for name in names]]:
        tools.compile("net", *[word for name in chosen for word in ("--backend-for", name + "=onnxruntime")])
        done, got = tools.compute("net", inputs, "--threads", "2", TCRT_ONNXRUNTIME=library)
        ok = got is not None and np.allclose(got["y"], expected["y"], atol=1e-5) and np.array_equal(got["f"], expected["f"])
        check(f"real {chosen}", ok, done.stderr or got)
    # What is wrong with the input is said as ONNX Runtime says it.
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="mul")]
    save(tools.path("free.onnx"), nodes, [("x", FLOAT, ["n", "k"]), ("w", FLOAT, ["m", 4])], [("y", FLOAT, ["n", 4])])
    tools.compile("free", "--backend-for", "mul=onnxruntime")
    done, got = tools.compute("free", {"x": np.ones((2, 3), dtype=np.float32), "w": np.ones((3, 4), dtype=np.float32)}, TCRT_ONNXRUNTIME=library)
    check("free", got is not None and np.array_equal(got["y"], np.full((2, 4), 3)), done.stderr)


def main(folder, bin_folder, fake):
    tools = Tools(folder, bin_folder)
    test_fake(tools, fake)
    library = find_runtime()
    if library:
        test_real(tools, library)
    else:
        print("backend-for: ONNX Runtime itself was not tried, as this Python has none")
    return verdict("backend-for")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        sys.exit(main(work, os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
