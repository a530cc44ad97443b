#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs the archives of test/Torch/custom, whose operators write their arguments, and compares with PyTorch's
values; checks what is said about schemas that do not fit.

usage: custom_op_torch.py BIN LIBRARY
"""

import json
import os
import sys
import tempfile

import numpy as np
from checks import check, run, verdict

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCHIVES = os.path.join(ROOT, "test", "Torch", "custom")
SIGNATURES = os.path.join(ROOT, "examples", "custom-op", "torch_operators.json")
# Archive, the inputs and outputs it is compared with, numbers of rows.
CASES = (
    ("parts.pt2", "parts", (3, 5)),
    ("parts-functional.pt2", "parts", (3,)),
    ("states.pt2", "states", (3,)),
    ("states-functional.pt2", "states", (3,)),
    ("traced.pt", "traced", (3,)),
    ("scripted.pt", "scripted", (3, 5)),
)


def main(folder, bin_folder, library):
    compiler, runner = os.path.join(bin_folder, "tc-compile"), os.path.join(bin_folder, "tc-run")
    path = lambda name: os.path.join(folder, name)
    archive = lambda name: os.path.join(ARCHIVES, name)

    for name, values, sizes in CASES:
        for rows in sizes:
            # A scripted model says no sizes.
            shapes = [f"--shape={n}={rows},4:f32" for n in "xy"] if name == "scripted.pt" else []
            done = run(compiler, archive(name), "-o", path("m.bin"), "--cpu", "x86-64-v3", "--custom-op", SIGNATURES, *shapes)
            check(f"compile {name} {rows}", done.returncode == 0, done.stderr)
            for threads in (1, 2) if done.returncode == 0 else ():
                files = [archive(f"{values}.{rows}.{end}.npz") for end in ("in", "out")]
                done = run(runner, path("m.bin"), "--inputs", files[0], "--expect", files[1], "--max-rel", "2e-5",
                           "--threads", str(threads), "--custom-op", library)
                check(f"run {name} {rows} {threads}", done.returncode == 0, done.stdout + done.stderr)

    # Runs add to the buffer: n times the number of the element, each.
    for name in ("states.pt2", "states-functional.pt2"):
        run(compiler, archive(name), "-o", path("m.bin"), "--cpu", "x86-64-v3", "--custom-op", SIGNATURES)
        done = run(runner, path("m.bin"), "--inputs", archive("states.3.in.npz"), "--runs", "3", "--state-out", path("s.npz"), "--custom-op", library)
        check(f"states {name}", done.returncode == 0, done.stderr)
        states = np.load(path("s.npz"))
        check(f"states {name}", np.array_equal(states["total"], np.arange(4) * (1 + 3 * 2)), states["total"])

    with open(SIGNATURES, encoding="utf-8") as file:
        good = json.load(file)["operators"]

    def given(operators, name="traced.pt"):
        with open(path("c.json"), "w", encoding="utf-8") as file:
            json.dump({"operators": operators}, file)
        if os.path.exists(path("c.bin")):
            os.remove(path("c.bin"))
        done = run(compiler, archive(name), "-o", path("c.bin"), "--custom-op", path("c.json"))
        check("no partial file", done.returncode == 0 or not os.path.exists(path("c.bin")))
        return done

    # Calls are breaks between kernels, which --explain counts.
    done = run(compiler, archive("parts.pt2"), "-o", path("m.bin"), "--cpu", "x86-64-v3", "--custom-op", SIGNATURES, "--explain", "-q")
    check("explain", "  breaks: 4 calls of functions of yours: example_accumulate, example_bump x 2, example_exchange\n" in done.stdout, done.stdout)
    done = run(compiler, archive("parts.pt2"), "--custom-op", SIGNATURES, "--explain=-")
    counted = json.loads(done.stdout)
    check("explain", counted["graph"]["breaks"] == 4 and counted["host_calls"]["example_bump"] == 2, done.stdout)
    # With --allow-host-ops they are for what tc refuses, and it knows none of these operators.
    done = run(compiler, archive("parts.pt2"), "--custom-op", SIGNATURES, "--allow-host-ops", "--explain=-")
    check("allow-host-ops", json.loads(done.stdout)["graph"]["breaks"] == 4, done.stdout)
    done = run(compiler, archive("parts.pt2"), "-o", path("c.bin"), "--allow-host-ops")
    check("allow-host-ops alone", done.returncode == 1 and "give their signatures by --custom-op" in done.stderr, done.stderr)

    # What archives call and no signature says.
    done = run(compiler, archive("traced.pt"), "-o", path("c.bin"))
    check("no signature", done.returncode == 2 and "example.exchange" in done.stderr and "--custom-op" in done.stderr, done.stderr)
    done = run(compiler, archive("parts.pt2"), "-o", path("c.bin"))
    check("no signature", done.returncode == 2 and "example.bump" in done.stderr and "--custom-op" in done.stderr, done.stderr)
    done = run(compiler, archive("parts-functional.pt2"), "-o", path("c.bin"))
    check("no signature", done.returncode == 2 and "it calls example.bump.default" in done.stderr and "\"schema\"" in done.stderr, done.stderr)
    plain = [
        {"domain": "example", "name": "bump", "function": "f", "operands": [{"name": "x"}], "attributes": [{"name": "n", "type": "int"}],
         "results": [{"dtype": "x", "dims": "x"}]}
    ]
    done = given(good[:1] + plain)
    check("no schema", done.returncode == 2 and "without a \"schema\"" in done.stderr, done.stderr)
    done = given(good[:1] + plain + good[2:], "parts.pt2")
    check("no schema", done.returncode == 1 and "returns nothing" in done.stderr and "\"schema\"" in done.stderr, done.stderr)

    def altered(schema, **more):
        return given([good[0], {"schema": schema, "function": "example_bump"} | more, good[2]])

    done = altered("example::bump(Tensor(a!) x) -> ()")
    check("too few", done.returncode == 1 and "no overload of example::bump takes (" in done.stderr and "correct its \"schema\"" in done.stderr, done.stderr)
    tensor = [{"dtype": "x", "dims": "x"}]
    for schema, more, part in (
        ("bump", {}, "\"schema\" is not what"),
        ("example::bump(Tensor(a!) x, int n)", {}, "\"schema\" is not what"),
        ("example::bump(Tensor x, int n) -> ()", {}, "returns nothing and writes nothing"),
        ("example::bump(Tensor(a!) x, int n) -> ()", {"results": tensor}, "\"results\" has 1"),
        ("example::bump(Tensor(a!) x, int n) -> Tensor", {}, "\"results\" has 0"),
        ("example::bump(Tensor(a) x, int n) -> Tensor(a)", {}, "a view of an argument"),
        ("example::bump(Tensor(a!) x, int n) -> int", {}, "returns int"),
        ("example::bump(Tensor[] x, int n) -> Tensor", {"results": [{"dtype": "f32", "dims": []}]}, "is of the type Tensor[]"),
        ("example::bump(Tensor(a!) x, int? n=3) -> ()", {}, "is of the type int?"),
        ("example::bump(Tensor(a!) x, complex n) -> ()", {}, "is of the type complex"),
        ("example::bump(Tensor(a!) x, int n=zero) -> ()", {}, "the default of its argument \"n\""),
        ("example::bump(Tensor(a!) x, int n=\"zero\") -> ()", {}, "the default of its argument \"n\""),
        ("example::bump(Tensor(a!) x, str n=1) -> ()", {}, "the default of its argument \"n\""),
        ("example::bump(Tensor(a!) x, int n) -> ()", {"domain": "example"}, "has the key \"domain\""),
        ("example::bump(Tensor(a!) x, int n) -> ()", {"attributes": []}, "has the key \"attributes\""),
        ("example::bump(Tensor(a!) x, int n) -> ()", {"operands": [{"name": "n"}]}, "operand \"n\" is no tensor"),
        ("example::accumulate(Tensor x, Tensor(a!) total, float decay=1) -> Tensor", {"results": tensor}, "two signatures"),
    ):
        done = altered(schema, **more)
        check(f"{schema} {more}", done.returncode == 1 and "c.json: error: operator 1" in done.stderr and part in done.stderr, done.stderr)
    done = altered("example::bump(Tensor(a!) x, int n) -> ()", operands=[{"name": "x", "dtype": "f64"}])
    check("dtype", done.returncode == 1 and "operand x is" in done.stderr, done.stderr)
    # A tensor that may be None, and is.
    none = [good[0], good[1], good[2] | {"schema": "example::exchange(Tensor(a!) x, Tensor(b!) y, Tensor? more=None) -> ()"}]
    done = given(none)
    check("None", done.returncode == 0, done.stderr)
    done = run(runner, path("c.bin"), "--inputs", archive("traced.3.in.npz"), "--expect", archive("traced.3.out.npz"), "--custom-op", library)
    check("None", done.returncode == 0, done.stdout + done.stderr)
    like = {"schema": "example::bump(Tensor? x, int n) -> Tensor", "results": [{"dtype": "x", "dims": []}]}
    done = given([good[0], good[1] | like, good[2]])
    check("like None", done.returncode == 1 and "no" in done.stderr and "always given" in done.stderr, done.stderr)
    # An argument that only other operators take stays at None, and is not given.
    done = altered("example::bump(Tensor(a!) x, int n, *, Generator? generator=None) -> ()")
    check("omitted", done.returncode == 0, done.stderr)
    return verdict("custom operators of PyTorch")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        sys.exit(main(work, sys.argv[1], sys.argv[2]))
