#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--mode max-autotune and --tuning-db. Nothing here depends on what is fast: times are measured, but not looked at.

usage: tuning.py BIN
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from checks import check, run, verdict

rng = np.random.default_rng(0)
NATIVE = "--cpu", "native", "--jobs", "1"  # one variant: this is about schedules


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def save(path, nodes, inputs, output, constants={}, opset=20):
    """A model of these nodes with the output y; inputs are arrays, or shapes with names of dims."""
    def value(name, given):
        if isinstance(given, np.ndarray):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(given.dtype), given.shape)
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, given)

    graph = helper.make_graph([helper.make_node(op, ins, [out], **attributes) for op, ins, out, attributes in nodes], "g",
                              [value(n, v) for n, v in inputs.items()], [helper.make_tensor_value_info("y", output, None)],
                              [numpy_helper.from_array(v, n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)


def one(op, names, **attributes):
    return [(op, names, "y", attributes)]


def models():
    """Name, nodes, inputs, constants, type of the output: each strategy that offers schedules to choose from."""
    f, i = TensorProto.FLOAT, TensorProto.INT32
    bias = [("MatMul", ["x", "w"], "t", {}), ("Add", ["t", "b"], "u", {}), ("Relu", ["u"], "y", {})]
    yield "gemm", bias, {"x": normal(75, 130)}, {"w": normal(130, 200), "b": normal(200)}, f
    yield "gemm_512", one("MatMul", ["x", "w"]), {"x": normal(40, 512)}, {"w": normal(512, 90)}, f
    yield "vector", one("MatMul", ["x", "w"]), {"x": normal(1, 200)}, {"w": normal(200, 33)}, f
    yield "tiny", one("MatMul", ["x", "w"]), {"x": normal(3, 20)}, {"w": normal(20, 5)}, f
    yield "two_inputs", one("MatMul", ["x", "w"]), {"x": normal(2, 70, 64), "w": normal(2, 64, 50)}, {}, f
    yield "transposed", one("Gemm", ["x", "w"], transA=1, transB=1), {"x": normal(64, 70), "w": normal(50, 64)}, {}, f
    pads = {"pads": [1, 1, 1, 1]}
    yield "conv3", one("Conv", ["x", "w"], **pads), {"x": normal(1, 40, 15, 13)}, {"w": normal(36, 40, 3, 3)}, f
    yield "conv1", one("Conv", ["x", "w"]), {"x": normal(2, 24, 9, 11)}, {"w": normal(40, 24, 1, 1)}, f
    chain = [("Conv", ["x", "v"], "t", {}), ("Relu", ["t"], "r", {}), ("Conv", ["r", "w"], "y", pads)]
    yield "chain", chain, {"x": normal(1, 8, 21, 18)}, {"v": normal(40, 8, 1, 1), "w": normal(72, 40, 3, 3)}, f
    yield "conv5", one("Conv", ["x", "w"], strides=[2, 2]), {"x": normal(1, 3, 31, 29)}, {"w": normal(20, 3, 5, 5)}, f
    yield "groups", one("Conv", ["x", "w"], group=2, **pads), {"x": normal(1, 16, 10, 9)}, {"w": normal(40, 8, 3, 3)}, f
    yield "line", one("Conv", ["x", "w"]), {"x": normal(1, 16, 100)}, {"w": normal(24, 16, 3)}, f
    attention = [("Transpose", ["k"], "kt", {"perm": [0, 1, 3, 2]}), ("MatMul", ["q", "kt"], "s", {}),
                 ("Softmax", ["s"], "p", {}), ("MatMul", ["p", "v"], "y", {})]
    yield "attention", attention, {n: normal(1, 2, 130, 40) for n in "qkv"}, {}, f
    softmax = [("Softmax", ["x"], "p", {}), ("Log", ["p"], "l", {}), ("Mul", ["p", "l"], "y", {})]
    yield "rows", softmax, {"x": normal(40, 333)}, {}, f
    yield "long", [("Exp", ["x"], "e", {}), ("Mul", ["e", "x"], "y", {})], {"x": normal(2, 70000)}, {}, f
    integers = {"x": rng.integers(0, 256, (50, 100)).astype(np.uint8)}
    yield "integers", one("MatMulInteger", ["x", "w"]), integers, {"w": rng.integers(-128, 128, (100, 130)).astype(np.int8)}, i


class Tools:
    def __init__(self, bin_dir, folder):
        self.bin_dir, self.folder = bin_dir, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, model, output, *options):
        return run(f"{self.bin_dir}/tc-compile", model, "-o", output, *options)

    def outputs(self, artifact, inputs):
        np.savez(self.path("in.npz"), **inputs)
        done = run(f"{self.bin_dir}/tc-run", artifact, "--inputs", self.path("in.npz"), "--outputs", self.path("out.npz"))
        check(f"{artifact} runs", done.returncode == 0, done.stderr)
        with np.load(self.path("out.npz")) as f:
            return f["y"]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def with_schedule(database, schedule):
    """As if `schedule` were the fastest for all kernels."""
    return dict(database, records=[dict(r, schedule=schedule) for r in database["records"]])


def write(path, database):
    with open(path, "w") as f:
        json.dump(database, f)


def measured(log):
    return re.findall(r"^tuning: measured .* us: (#kernel\.cpu\.\w+<.*>)$", log, re.M)


def check_candidates(tools):
    """Every schedule that is measured computes the right numbers, and a record of it makes the compiler take it."""
    strategies, count = set(), 0
    for name, nodes, inputs, constants, output in models():
        model, db, forced = tools.path("m.onnx"), tools.path(f"{name}.json"), tools.path("forced.json")
        save(model, nodes, inputs, output, constants)
        done = tools.compile(model, tools.path("plain.bin"), *NATIVE)
        check(f"{name} compiles", done.returncode == 0, done.stderr)
        expected = tools.outputs(tools.path("plain.bin"), inputs)
        done = tools.compile(model, tools.path("tuned.bin"), "--mode", "max-autotune", "--tuning-db", db, "--logs", "tuning", *NATIVE)
        check(f"{name} is tuned", done.returncode == 0, done.stderr)
        schedules = measured(done.stderr)
        with open(db) as f:
            database = json.load(f)
        check(f"{name} has records", database["records"], database)
        # From the database the same artifact comes, whatever was found.
        done = tools.compile(model, tools.path("again.bin"), "--tuning-db", db, *NATIVE)
        check(f"{name}: the database gives the tuned artifact",
              done.returncode == 0 and read(tools.path("again.bin")) == read(tools.path("tuned.bin")), done.stderr)
        check(f"{name} has schedules to choose from", schedules, done.stderr)
        for schedule in schedules:
            write(forced, with_schedule(database, schedule))
            done = tools.compile(model, tools.path("forced.bin"), "--tuning-db", forced, "--logs", "tuning", *NATIVE)
            check(f"{name}: a record is obeyed", done.returncode == 0 and ": recorded: " in done.stderr and " instead of " in done.stderr,
                  f"{schedule}: {done.stderr}")
            actual = tools.outputs(tools.path("forced.bin"), inputs)
            scale = np.abs(expected).max()
            check(f"{name}: numbers", np.abs(actual.astype(np.float64) - expected).max() <= (2e-5 * scale if output == TensorProto.FLOAT else 0),
                  schedule)
            strategies.add(re.match(r"#kernel\.cpu\.(\w+)<", schedule)[1])
            count += 1
    check("all strategies offer something", strategies >= {"attention", "contract", "narrow_gemm", "loops", "winograd"}, strategies)
    print(f"{count} schedules")


def check_database(tools):
    model, db, other = tools.path("m.onnx"), tools.path("db.json"), tools.path("other.json")
    save(model, one("MatMul", ["x", "w"]), {"x": normal(30, 64)}, TensorProto.FLOAT, {"w": normal(64, 100)})
    plain, tuned = tools.path("plain.bin"), tools.path("tuned.bin")
    tools.compile(model, plain)
    done = tools.compile(model, tuned, "--mode", "max-autotune", "--tuning-db", db, "--logs", "tuning")
    check("tuned", done.returncode == 0, done.stderr)
    with open(db) as f:
        database = json.load(f)
    candidates = measured(done.stderr)
    steering = with_schedule(database, candidates[0])

    def compiled(text, *options):
        with open(other, "w") as f:
            f.write(text)
        done = tools.compile(model, tuned, "--tuning-db", other, *options)
        return done

    # Nothing in it, or nothing that holds: the default.
    done = compiled("")
    check("empty", done.returncode == 0 and read(tuned) == read(plain), done.stderr)
    check("empty: said", "has no records of this machine" in done.stderr, done.stderr)
    machine = database["records"][0]["machine"]
    foreign = json.loads(json.dumps(steering).replace(machine, "elsewhere"))
    done = compiled(json.dumps(foreign))
    check("another machine's", done.returncode == 0 and read(tuned) == read(plain) and "elsewhere" in done.stderr, done.stderr)
    done = compiled(json.dumps(foreign), "--tuning-machine", "elsewhere", "-q")
    steered = read(tuned)
    check("another machine's, wanted", done.returncode == 0 and steered != read(plain) and not done.stderr, done.stderr)
    done = compiled(json.dumps(steering))
    check("this machine's", done.returncode == 0 and read(tuned) == steered, done.stderr)
    # Code by schedules that a file holds cannot be taken for other weights without it.
    done = tools.compile(model, tools.path("refit.bin"), "--refit", tuned)
    check("refit of what was tuned", done.returncode == 1 and "was compiled with --tuning-db or --mode max-autotune, which decides" in done.stderr, done.stderr)
    done = compiled(json.dumps(foreign), "--tuning-machine", "nowhere")
    check("no such machine", done.returncode == 1 and "it has elsewhere" in done.stderr, done.stderr)
    for what, change, reason in (
            ("offer", {"schedule": candidates[0].replace("tileM = ", "tileM = 1")}, "offer now"),
            ("hostile", {"schedule": re.sub(r"tileN = \d+", "tileN = 0", candidates[0])}, "offer now"),
            ("no schedule", {"schedule": "?"}, "offer now"),
            ("generators", {"generators": 0}, "another version")):
        records = [dict(r, **change) for r in steering["records"]]
        done = compiled(json.dumps(dict(steering, records=records)), "--explain")
        check(what, done.returncode == 0 and read(tuned) == read(plain) and reason in done.stdout, done.stdout + done.stderr)

    # Damaged: refused, and left as it is.
    text = json.dumps(steering)
    lacking = [{k: v for k, v in r.items() if k != "variant"} for r in steering["records"]]
    for what, bad, reason in (("truncated", text[:len(text) // 2], "damaged"), ("no JSON", "hello", "damaged"),
                              ("a list", "[]", "damaged"), ("another file", '{"format": "x"}', "no tuning database"),
                              ("version", json.dumps(dict(steering, version=2)), "version 2"),
                              ("no records", json.dumps({k: v for k, v in steering.items() if k != "records"}), "damaged"),
                              ("record", json.dumps(dict(steering, records=lacking)), "record 0 lacks"),
                              ("machine", json.dumps(dict(steering, machines={machine: {}})), "lacks something"),
                              ("unknown machine", json.dumps(dict(steering, machines={})), "record 0 lacks")):
        for options in ((), ("--mode", "max-autotune")):
            if os.path.exists(tuned):
                os.remove(tuned)
            done = compiled(bad, *options)
            check(f"{what} {options}", done.returncode == 1 and reason in done.stderr and done.stderr.count("\n") == 1 and
                  not os.path.exists(tuned) and read(other).decode() == bad, done.stderr)
    os.remove(other)
    done = tools.compile(model, tuned, "--tuning-db", other)
    check("missing", done.returncode == 1 and "cannot read" in done.stderr, done.stderr)
    done = tools.compile(model, tuned, "--mode", "max-autotune", "--tuning-db", tools.path("no/such/folder.json"))
    check("no folder", done.returncode == 1, done.stderr)


def check_sizes(tools):
    """Sizes that only the run knows are measured at the upper end of their range; without one, at a likely size."""
    model, db = tools.path("m.onnx"), tools.path("sizes.json")
    save(model, one("MatMul", ["x", "w"]), {"x": ["n", 64]}, TensorProto.FLOAT, {"w": normal(64, 100)})
    cache = tools.path("cache")
    done = tools.compile(model, tools.path("a.bin"), "--mode", "max-autotune", "--explain", "--cache-dir", cache)
    check("likely size", done.returncode == 0 and re.search(r"measured: .* at n = 128$", done.stdout, re.M), done.stdout + done.stderr)
    check("what it gained and cost", re.search(r"a\.bin: .* measured kernels .*; tuning took [0-9.]+ s\n.*a\.bin: ", done.stderr), done.stderr)
    # The cache's folder keeps what was measured, where no file is named for it.
    with open(os.path.join(cache, "tuning.json")) as f:
        check("beside the cache", len(json.load(f)["records"]) == 1)
    done = tools.compile(model, tools.path("c.bin"), "--mode", "max-autotune", "--explain", "--cache-dir", cache)
    check("recorded beside the cache", done.returncode == 0 and "recorded: " in done.stdout, done.stdout + done.stderr)
    check("the same", read(tools.path("a.bin")) == read(tools.path("c.bin")))
    done = run(f"{tools.bin_dir}/tc-cache", "stats", "--cache-dir", cache)
    check("tc-cache tells of it", "tuning.json: 1 measured kernels" in done.stdout, done.stdout)
    # Nothing is known of sizes that the run computes.
    save(tools.path("data.onnx"), [("Compress", ["x", "mask"], "t", {"axis": 0}), ("MatMul", ["t", "w"], "y", {})],
         {"x": normal(30, 64), "mask": np.ones(30, bool)}, TensorProto.FLOAT, {"w": normal(64, 100)})
    done = tools.compile(tools.path("data.onnx"), tools.path("d.bin"), "--mode", "max-autotune", "--explain")
    check("computed size", done.returncode == 0, done.stdout + done.stderr)
    done = tools.compile(model, tools.path("a.bin"), "--mode", "max-autotune", "--explain", "--dim", "n=1..48", "--tuning-db", db)
    check("range", done.returncode == 0 and "measured: " in done.stdout, done.stdout + done.stderr)
    x = normal(17, 64)
    done = tools.compile(model, tools.path("b.bin"))
    check("range: numbers", np.allclose(tools.outputs(tools.path("a.bin"), {"x": x}), tools.outputs(tools.path("b.bin"), {"x": x}), atol=1e-4))
    done = tools.compile(model, tools.path("a.bin"), "--explain", "--dim", "n=1..49", "--tuning-db", db)
    check("another range", done.returncode == 0 and "recorded" not in done.stdout, done.stdout + done.stderr)


def check_together(tools):
    """Several that extend one file at once lose nothing."""
    db, running = tools.path("together.json"), []
    for k in (32, 48, 64, 80):
        model = tools.path(f"m{k}.onnx")
        save(model, one("MatMul", ["x", "w"]), {"x": normal(20, k)}, TensorProto.FLOAT, {"w": normal(k, 40)})
        running.append(subprocess.Popen([f"{tools.bin_dir}/tc-compile", model, "-o", tools.path(f"m{k}.bin"), "--mode", "max-autotune",
                                         "--tuning-db", db, "--jobs", "1", "--tuning-threads", "1"], stderr=subprocess.PIPE))
    for process in running:
        _, error = process.communicate(timeout=120)
        check("together", process.returncode == 0, error)
    with open(db) as f:
        records = json.load(f)["records"]
    check("together: records", len(records) == len(running), records)
    check("together: no other files", [f for f in os.listdir(tools.folder) if f.startswith("together")] == ["together.json"])


def main(bin_dir):
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(bin_dir, folder)
        check_candidates(tools)
        check_database(tools)
        check_sizes(tools)
        check_together(tools)
    return verdict("tuning")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
