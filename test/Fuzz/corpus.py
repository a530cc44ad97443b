#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write what the fuzzers of files begin with: DIR/{onnx,pt2,pt,code,zip,pickle,npy,npz,pb,json,tune,custom-op,tuning-db}.

usage: corpus.py BIN DIR

ONNX: the smallest model of each operator that ONNX's backend tests and test/Integration have, and the graphs of test/Fuzz/graphs. The same
in every run.
"""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
import warnings
import zipfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "Hostile"))


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def onnx_models():
    import operands

    for key, cases in operands.base_models().items():
        for name, model, _ in cases:
            yield name, model
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            # Control flow, sequences and function bodies that are written out.
            if case.name.startswith(("test_loop", "test_scan", "test_if", "test_sequence", "test_optional")) or case.name.endswith("_expanded"):
                if case.model.ByteSize() < 3000:
                    yield case.name, case.model
    for name in sorted(os.listdir(os.path.join(HERE, "graphs"))):
        with open(os.path.join(HERE, "graphs", name)) as f:
            text = f.read()
        with contextlib.suppress(Exception):
            yield name, onnx.parser.parse_model("\n".join(line for line in text.splitlines() if not line.startswith("#")))


def arrays():
    for kind in ("f4", "f8", "f2", "i8", "i4", "u1", "b1", "c8"):
        for shape in ((), (3,), (2, 3), (0, 5), (1, 2, 2, 2)):
            yield np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    yield np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3))
    yield np.arange(4, dtype=">i4")
    yield np.zeros(2, "V2")


def archives(folder, path, data):
    """An archive, the archives that it holds, and the pickles of all of them."""
    if len(data) < 20000:
        write(f"{folder}/zip", path.replace("/", "_"), data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            inner = archive.read(name)
            if inner.startswith(b"PK"):
                archives(folder, f"{path}_{name}", inner)
            elif name.endswith("pkl") and len(inner) < 20000:
                write(f"{folder}/pickle", f"{path}_{name}".replace("/", "_"), inner)


def main():
    binaries, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    for name, model in onnx_models():
        if model.ByteSize() < 50000:
            write(f"{folder}/onnx", name + ".onnx", model.SerializeToString())
    shutil.copytree(os.path.join(HERE, "pt2"), f"{folder}/pt2")
    shutil.copy(os.path.join(ROOT, "models", "digits", "model.pt2"), f"{folder}/pt2/digits.pt2")
    layouts = os.path.join(HERE, "..", "Frontend", "ExportedProgram", "Inputs")
    for name in sorted(os.listdir(layouts)):
        if name.endswith(".pt2"):
            shutil.copy(os.path.join(layouts, name), f"{folder}/pt2/layout_{name}")
    for name in sorted(os.listdir(f"{folder}/pt2")):
        with open(f"{folder}/pt2/{name}", "rb") as f:
            archives(folder, name, f.read())
    with open(os.path.join(ROOT, "models", "digits", "model.pt"), "rb") as f:
        archives(folder, "digits.pt", f.read())
    scripts = os.path.join(HERE, "..", "Frontend", "TorchScript", "Inputs")
    plain = {}  # with stored members: the fuzzer changes what is in them
    for name in sorted(os.listdir(scripts)):
        if name.endswith(".pt"):
            with zipfile.ZipFile(f"{scripts}/{name}") as archive:
                plain[name] = {info.filename: archive.read(info) for info in archive.infolist()}
    for name in sorted(os.listdir(os.path.join(HERE, "pt"))):
        with open(os.path.join(HERE, "pt", name), "rb") as f:
            plain[name.replace(".txt", ".pt")] = {**plain["tuples.pt"], "tuples/code/__torch__.py": f.read()}
    # What earlier versions of PyTorch wrote: the same, but for the number.
    for version in (1, 5, 8):
        plain[f"version{version}.pt"] = {**plain["branches.pt"], "branches/version": f"{version}\n".encode()}
    for name, members in plain.items():
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for path, data in members.items():
                archive.writestr(zipfile.ZipInfo(path), data)
        write(f"{folder}/pt", name, stream.getvalue())
        for path, data in members.items():
            if path.endswith(".py") and len(data) < 20000:
                write(f"{folder}/code", f"{name}_{path}".replace("/", "_"), data if isinstance(data, bytes) else data.encode())
    for i, array in enumerate(arrays()):
        stream = io.BytesIO()
        np.save(stream, array)
        write(f"{folder}/npy", f"{i:02}.npy", stream.getvalue())
        if array.dtype.kind != "V" and array.dtype.isnative:
            write(f"{folder}/pb", f"{i:02}.pb", numpy_helper.from_array(np.ascontiguousarray(array)).SerializeToString())
    for i, save in enumerate((np.savez, np.savez_compressed)):
        stream = io.BytesIO()
        save(stream, x=np.ones((2, 3), "f4"), y=np.arange(5), input_0=np.zeros(0, "f2"))
        write(f"{folder}/npz", f"{i}.npz", stream.getvalue())
    for i, kind in enumerate((onnx.TensorProto.STRING, onnx.TensorProto.INT4, onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.BFLOAT16)):
        values = [b"a", b"", b"bc"] if kind == onnx.TensorProto.STRING else [1, 2, 3]
        write(f"{folder}/pb", f"typed{i}.pb", helper.make_tensor("x", kind, [3], values).SerializeToString())
    tensor = numpy_helper.from_array(np.ones(2, "f4"))
    sequence = onnx.SequenceProto(name="s", elem_type=onnx.SequenceProto.TENSOR, tensor_values=[tensor, tensor])
    write(f"{folder}/pb", "sequence.pb", sequence.SerializeToString())
    write(f"{folder}/pb", "optional.pb", onnx.OptionalProto(elem_type=onnx.OptionalProto.TENSOR, tensor_value=tensor).SerializeToString())
    write(f"{folder}/pb", "optional_of_sequence.pb",
          onnx.OptionalProto(elem_type=onnx.OptionalProto.SEQUENCE, sequence_value=sequence).SerializeToString())
    write(f"{folder}/pb", "map.pb", onnx.MapProto(key_type=onnx.TensorProto.INT64, keys=[1, 2], values=sequence).SerializeToString())
    manifest = subprocess.run([os.path.join(binaries, "tc-compile"), os.path.join(ROOT, "models", "digits", "model.onnx"), "-o", f"{folder}/digits.bin",
                               "--cpu", "x86-64-v3"], capture_output=True)  # fmt: skip
    if manifest.returncode:
        sys.exit(manifest.stderr.decode())
    text = subprocess.run([os.path.join(binaries, "tc-inspect"), "--json", f"{folder}/digits.bin"], check=True, capture_output=True).stdout
    os.remove(f"{folder}/digits.bin")
    tune = ["--tuning-candidates", f"{folder}/digits.tune", "--cpu", "x86-64-v3", "--dim", "batch=2", "-q"]
    subprocess.run([os.path.join(binaries, "tc-compile"), os.path.join(ROOT, "models", "digits", "model.onnx"), *tune], check=True)
    with open(f"{folder}/digits.tune", "rb") as f:
        write(f"{folder}/tune", "digits.tune", f.read())
    os.remove(f"{folder}/digits.tune")
    write(f"{folder}/json", "inspect.json", json.dumps(json.loads(text), indent=None).encode())
    write(f"{folder}/json", "odd.json", json.dumps([None, True, -1.5e300, "\u0000\ud7ff", {"a": [[], {}]}, 2**63, -(2**63)]).encode())
    for root, _, files in os.walk(os.path.join(ROOT, "examples", "custom-op")):
        for name in files:
            if name.endswith(".json"):
                with open(os.path.join(root, name), "rb") as f:
                    write(f"{folder}/custom-op", name, f.read())
    for root, _, files in os.walk(os.path.join(ROOT, "test")):
        for name in files:
            if name.endswith(".json") and "tun" in os.path.join(root, name):
                with open(os.path.join(root, name), "rb") as f:
                    write(f"{folder}/tuning-db", name, f.read())
    print({name: len(os.listdir(os.path.join(folder, name))) for name in sorted(os.listdir(folder))})


if __name__ == "__main__":
    main()
