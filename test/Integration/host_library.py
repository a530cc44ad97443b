#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs models that need libtcrt-host through the tools: what they compute, what is said of bad values, and where it is found.

usage: host_library.py BIN
"""

import glob
import os
import shutil
import sys
import tempfile

import numpy as np
import onnx
from checks import check, run, verdict
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IMAGES = os.path.join(ROOT, "test", "Unit", "RuntimeHost", "images")


def save(path, nodes, inputs, outputs):
    def values(given):
        return [helper.make_tensor_value_info(*value) for value in given]

    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def main(folder, bin_folder):
    tool = lambda name: os.path.join(bin_folder, name)
    path = lambda name: os.path.join(folder, name)

    def compile_model(name):
        done = run(tool("tc-compile"), path(name + ".onnx"), "-o", path(name + ".bin"), "--cpu", "x86-64-v3")
        check(f"compile {name}", done.returncode == 0, done.stderr)

    # The image goes on into a kernel, and its size is the run's.
    save(
        path("image.onnx"),
        [helper.make_node("ImageDecoder", ["bytes"], ["i"]), helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT)],
        [("bytes", TensorProto.UINT8, ["n"])],
        [("y", TensorProto.FLOAT, ["h", "w", 3])],
    )
    compile_model("image")

    def decode(data, runner=tool("tc-run")):
        np.save(path("bytes.npy"), np.frombuffer(data, dtype=np.uint8))
        done = run(runner, path("image.bin"), "--input", "bytes=" + path("bytes.npy"), "--outputs", path("y.npz"))
        return done, np.load(path("y.npz"))["y"] if done.returncode == 0 else None

    for name in ("rgb.jpg", "rgb.png", "rgb.bmp", "rgb.ppm", "rgb_raw.tif", "lossless.webp", "rgb.jp2"):
        with open(os.path.join(IMAGES, name), "rb") as file:
            data = file.read()
        with open(os.path.join(IMAGES, name + ".rgb"), "rb") as file:
            expected = np.frombuffer(file.read(), dtype=np.uint8).reshape(13, 19, 3)
        done, y = decode(data)
        check(name, y is not None and np.array_equal(y, expected), done.stderr)
        done, y = decode(data[:40])
        check(f"{name} cut off", y is not None and y.shape == (0, 0, 3) and "cannot be decoded" in done.stderr, done.stderr)
    done, y = decode(b"")
    check("no bytes", y is not None and y.shape == (0, 0, 3) and "warning: node \"ImageDecoder#0\"" in done.stderr, done.stderr)
    done, y = decode(b"P6 60000 60000 255\nabc")
    check("too large", done.returncode == 4 and "60000 x 60000" in done.stderr, done.stderr)

    # Where the library is: next to the tool's folder, or nowhere.
    os.makedirs(path("bin"))
    shutil.copy(tool("tc-run"), path("bin"))
    done, y = decode(data, path("bin/tc-run"))
    check("no library", done.returncode == 5 and "install libtcrt-host" in done.stderr, done.stderr)
    os.makedirs(path("lib"))
    for library in glob.glob(os.path.join(bin_folder, os.pardir, "lib", "libtcrt-host.so.*")):
        shutil.copy(library, path("lib"))
    done, y = decode(data, path("bin/tc-run"))
    check("library beside", y is not None and np.array_equal(y, expected), done.stderr)

    done = run(tool("tc-inspect"), path("image.bin"))
    check("inspect", "image_decode             of libtcrt-host" in done.stdout, done.stdout)
    done = run(tool("tc-compile"), path("image.onnx"), "-o", path("v.bin"), "--verify")
    check("verify", done.returncode == 2 and "image_decode" in done.stderr and not os.path.exists(path("v.bin")), done.stderr)

    for what, attributes, dtype, code, part in (
        ("pixel format", {"pixel_format": "HSV"}, TensorProto.UINT8, 1, "pixel_format is \"HSV\""),
        ("bytes' type", {}, TensorProto.INT32, 1, "it must be a tensor of uint8"),
    ):
        save(path("bad.onnx"), [helper.make_node("ImageDecoder", ["x"], ["y"], **attributes)], [("x", dtype, [3])], [("y", TensorProto.UINT8, None)])
        done = run(tool("tc-compile"), path("bad.onnx"), "-o", path("bad.bin"))
        check(what, done.returncode == code and part in done.stderr, done.stderr)

    for pattern, code, expected in (("a.c", 0, [True, False, True]), ("(a", 4, None)):
        save(
            path("regex.onnx"),
            [helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)],
            [("x", TensorProto.STRING, ["n"])],
            [("y", TensorProto.BOOL, ["n"])],
        )
        compile_model("regex")
        with open(path("x.pb"), "wb") as file:
            file.write(numpy_helper.from_array(np.array(["abc", "abcd", "a\u00e4c"], dtype=object), "x").SerializeToString())
        done = run(tool("tc-run"), path("regex.bin"), "--input", "x=" + path("x.pb"), "--outputs", path("m.npz"))
        check(f"regex {pattern}", done.returncode == code, done.stderr)
        if expected:
            check(f"regex {pattern}", np.load(path("m.npz"))["y"].tolist() == expected)
        else:
            check(f"regex {pattern}", "is no regular expression" in done.stderr, done.stderr)
    return verdict("libtcrt-host")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        sys.exit(main(work, sys.argv[1]))
