#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--mode max-autotune and --tuning-db, --tuning-candidates and tc-run --tune. Nothing here depends on what is fast: times are
measured, but not looked at.

usage: tuning.py BIN
"""
import contextlib
import json
import hashlib
import os
import pty
import re
import struct
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

    def tune(self, candidates, db, *options):
        return run(f"{self.bin_dir}/tc-run", candidates, "--tune", db, *options)

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
    check("missing", done.returncode == 1 and "cannot be read" in done.stderr, done.stderr)
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


HEADER = "<8sIIQQ32s"  # magic, version, reserved, offset of the index, size of the file, SHA-256 of the index


def index_of(candidates):
    return json.loads(candidates[struct.unpack_from(HEADER, candidates)[3]:])


def with_index(candidates, text):
    """The file with another index, whose hash is right."""
    magic, version, reserved, offset, _, _ = struct.unpack_from(HEADER, candidates)
    head = struct.pack(HEADER, magic, version, reserved, offset, offset + len(text), hashlib.sha256(text).digest())
    return head + candidates[len(head):offset] + text


def on_terminal(*words):
    """What a command writes to a terminal."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(words, stdout=terminal, stderr=terminal)
    os.close(terminal)
    text = b""
    with contextlib.suppress(OSError):  # the end, on Linux
        while part := os.read(main, 4096):
            text += part
    os.close(main)
    return text.decode() if process.wait() == 0 else ""


def check_elsewhere(tools):
    """What tc-run measures of a file of candidates is what tc-compile would measure, and is used as if it had."""
    model, candidates = tools.path("m.onnx"), tools.path("m.tune")
    for name, nodes, inputs, constants, _ in models():
        if name not in ("gemm", "chain", "attention", "rows", "integers"):
            continue
        save(model, nodes, inputs, TensorProto.FLOAT if name != "integers" else TensorProto.INT32, constants)
        db, home = tools.path(f"{name}-there.json"), tools.path(f"{name}.json")
        cpus = ("--jobs", "1") if name == "chain" else NATIVE  # several variants, of which the machine takes one
        done = run(f"{tools.bin_dir}/tc-compile", model, "--tuning-candidates", candidates, *cpus)
        check(f"{name}: candidates", done.returncode == 0 and re.search(r"m\.tune: [0-9.]+ .B, \d+ schedules of \d+ kernel", done.stderr), done.stderr)
        kernels = {k["kernel"]: k for k in index_of(read(candidates))["kernels"]}
        done = tools.tune(candidates, db)
        check(f"{name}: measured there", done.returncode == 0 and done.stdout.count(": measured: ") == len(kernels), done.stdout + done.stderr)
        with open(db) as f:
            database = json.load(f)
        if cpus == NATIVE:
            with open(home) as f:
                here = json.load(f)
            check(f"{name}: one machine", database["machines"] == here["machines"], database["machines"])
            known = [[(r["kernel"], r["machine"], r["variant"], r["what"], r["default"], r["generators"]) for r in d["records"]] for d in (database, here)]
            check(f"{name}: the same kernels", known[0] == known[1], known)
        for record in database["records"]:
            kernel = kernels[record["kernel"]]
            offered = [v for v in kernel["variants"] if v["name"] == record["variant"]][0]["schedules"]
            check(f"{name}: a schedule of the file", record["schedule"] in [kernel["schedules"][i]["schedule"] for i in offered], record)
        before = read(db)
        for output, options in (("a.bin", ()), ("b.bin", ("--mode", "max-autotune"))):
            done = tools.compile(model, tools.path(output), "--tuning-db", db, "--explain", *cpus, *options)
            check(f"{name}: {output} takes it", done.returncode == 0 and "measured: " not in done.stdout and done.stdout.count("recorded: ") >= len(kernels),
                  done.stdout + done.stderr)
        check(f"{name}: as if it had been measured here", read(tools.path("a.bin")) == read(tools.path("b.bin")) and read(db) == before)
        done = tools.tune(candidates, db, "--json", "-")
        report = json.loads(done.stdout)
        check(f"{name}: nothing is left", {k["state"] for k in report["kernels"]} == {"recorded"} and read(db) == before, report)
        done = tools.tune(candidates, db)
        check(f"{name}: nothing is left, it says", done.returncode == 0 and "nothing is left to measure" in done.stdout, done.stdout + done.stderr)
        # What is recorded is not proposed again.
        os.remove(candidates)
        done = run(f"{tools.bin_dir}/tc-compile", model, "--tuning-candidates", candidates, "--tuning-db", db, *cpus)
        check(f"{name}: nothing to propose", done.returncode == 0 and "that lacks a record" in done.stderr and not os.path.exists(candidates), done.stderr)
    again = tools.path("again.tune")
    # All schedules that are measured here are in the file, and no others of that variant.
    save(model, one("MatMul", ["x", "w"]), {"x": normal(75, 130)}, TensorProto.FLOAT, {"w": normal(130, 200)})
    done = tools.compile(model, tools.path("a.bin"), "--mode", "max-autotune", "--logs", "tuning", "--tuning-candidates", candidates)
    check("measure here or there", done.returncode == 1 and "leave one of them out" in done.stderr, done.stderr)
    done = tools.compile(model, tools.path("a.bin"), "--mode", "max-autotune", "--logs", "tuning", *NATIVE)
    run(f"{tools.bin_dir}/tc-compile", model, "--tuning-candidates", candidates, *NATIVE)
    kernel = index_of(read(candidates))["kernels"][0]
    offered = [[kernel["schedules"][i]["schedule"] for i in v["schedules"][1:]] for v in kernel["variants"]]
    check("the same candidates", measured(done.stderr) in offered, (offered, done.stderr))
    # Threads are the machine's; an artifact beside it is as without.
    check("threads", tools.tune(candidates, tools.path("one.json"), "--threads", "1").returncode == 0)
    with open(tools.path("one.json")) as f:
        check("threads: machine", [m["threads"] for m in json.load(f)["machines"].values()] == [1])
    text = on_terminal(f"{tools.bin_dir}/tc-run", candidates, "--tune", tools.path("terminal.json"), "--threads", "1")
    check("what is measured", re.search(r"^\rmeasuring 1 of 1 kernel, \d+ schedules: MatMul#0 +\r +\rMatMul#0: measured: ", text), repr(text))
    tools.compile(model, tools.path("a.bin"))
    done = tools.compile(model, tools.path("b.bin"), "--tuning-candidates", candidates)
    check("with an artifact", done.returncode == 0 and read(tools.path("a.bin")) == read(tools.path("b.bin")), done.stderr)
    run(f"{tools.bin_dir}/tc-compile", model, "--tuning-candidates", again)
    check("the same file", read(again) == read(candidates))


def check_damaged_candidates(tools):
    """Refused with a sentence, whatever is in it."""
    model, good, bad, db = tools.path("m.onnx"), tools.path("good.tune"), tools.path("bad.tune"), tools.path("bad.json")
    save(model, one("MatMul", ["x", "w"]), {"x": normal(30, 64)}, TensorProto.FLOAT, {"w": normal(64, 100)})
    run(f"{tools.bin_dir}/tc-compile", model, "--tuning-candidates", good, *NATIVE)
    whole = read(good)
    index = index_of(whole)

    def judged(what, data, *reasons):
        with open(bad, "wb") as f:
            f.write(data)
        done = tools.tune(bad, db)
        check(what, done.returncode in (1, 5) and re.match(r".*bad\.tune: error: [^\n]*\n$", done.stderr) and any(r in done.stderr for r in reasons),
              f"{done.returncode} {done.stderr}")

    for size in (0, 7, 8, 63, 64, 4096, len(whole) // 2, len(whole) - 1):
        judged(f"{size} bytes", whole[:size], "no file of tuning candidates" if size < 64 else "is damaged")
    judged("a model", read(model), "no file of tuning candidates")
    judged("version", whole[:8] + b"\2" + whole[9:], "has version 2, and this tc reads version 1")
    judged("hash", whole[:40] + b"!" + whole[41:], "another hash")
    judged("no JSON", with_index(whole, b"hello"), "no JSON")
    judged("deep", with_index(whole, b"[" * 100000), "no JSON")
    judged("no kernels", with_index(whole, json.dumps({k: v for k, v in index.items() if k != "kernels"}).encode()), '"kernels"')
    odd = None, True, -1, 1 << 62, (1 << 64) - 1, 1e300, "", "x", [], [-1], [1 << 62, 1 << 62], {}, [[]], [{}]

    def places(value, path=()):
        yield path
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            yield from places(inner, path + (key,))

    tried = 0
    for place in list(places(index))[1:]:
        for value in (*odd, "drop")[tried % 3::3]:
            changed = json.loads(json.dumps(index))
            inside = changed
            for key in place[:-1]:
                inside = inside[key]
            if value == "drop":
                del inside[place[-1]]
            else:
                inside[place[-1]] = value
            with open(bad, "wb") as f:
                f.write(with_index(whole, json.dumps(changed).encode()))
            if os.path.exists(db):
                os.remove(db)
            done = tools.tune(bad, db)
            check(f"{place} {value}", done.returncode in (0, 1, 5) and (done.returncode == 0 or ": error: " in done.stderr), f"{done.returncode} {done.stderr}")
        tried += 1
    # Code that was changed is told by the artifact's own hashes.
    kernel = index["kernels"][0]
    at = kernel["offset"] + 4096 + 64
    judged("code", whole[:at] + bytes(b ^ 255 for b in whole[at:at + 4096]) + whole[at + 4096:], "no kernel can be measured here")
    with open("/proc/cpuinfo") as f:
        has_amx = "amx_tile" in f.read()
    if not has_amx:  # code that does not run here
        run(f"{tools.bin_dir}/tc-compile", model, "--tuning-candidates", bad, "--cpu", "x86-64-v4-amx")
        done = tools.tune(bad, db)
        check("another CPU's", done.returncode == 5 and "no kernel can be measured here: no variant of the artifact runs on this CPU" in done.stderr, done.stderr)
    tools.compile(model, bad)
    done = tools.tune(bad, db)
    check("an artifact", done.returncode == 1 and "no file of tuning candidates" in done.stderr, done.stderr)


def main(bin_dir):
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(bin_dir, folder)
        check_candidates(tools)
        check_database(tools)
        check_sizes(tools)
        check_together(tools)
        check_elsewhere(tools)
        check_damaged_candidates(tools)
    return verdict("tuning")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
