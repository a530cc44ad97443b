# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of one node, compiled and run, against NumPy: what ml.py and microsoft.py share.

A case is compiled twice, with the sizes of its operands and with sizes that only the run knows, and run once each.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = {}
VERSIONS = {"": 21, "ai.onnx.ml": 5, "com.microsoft": 1}


def case(name, domain, op, operands, expected, fixed=(), constants=(), version=None, tolerance=2e-5, atol=1e-6, ways=("static", "dynamic"), max_bytes=None,
         options=(), variants=None, **attrs):
    """`operands`: arrays, dictionaries (maps from and to NumPy scalars or strings), or None where one is absent; `expected`:
    what the results must be, arrays or lists of dictionaries (None: not compared).
    `constants`: numbers of operands that are initializers; `fixed`: those whose sizes stay as they are.
    `max_bytes`: what the artifact may take. `options`: of tc-compile. `variants`: instead of those of main."""
    assert name not in CASES, name
    CASES[name] = (domain, op, operands, expected, set(fixed), set(constants), version or VERSIONS[domain], tolerance, atol, ways, attrs, max_bytes, options, variants)


def convolve(x, w, strides, pads, dilations, groups):
    """x and w less their zero points, of int64, or dequantised."""
    rank, filters = x.ndim - 2, w.shape[0]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
    count = [(s - (k - 1) * d - 1) // t + 1 for s, k, d, t in zip(x.shape[2:], w.shape[2:], dilations, strides)]
    y = np.zeros((x.shape[0], filters, *count), np.result_type(x, w))
    fg, cg = filters // groups, x.shape[1] // groups
    for at in np.ndindex(*w.shape[2:]):
        part = x[(slice(None), slice(None), *(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilations, count, strides)))]
        for i in range(groups):
            y[:, i * fg : (i + 1) * fg] += np.einsum("nc...,fc->nf...", part[:, i * cg : (i + 1) * cg], w[(slice(i * fg, (i + 1) * fg), slice(None), *at)])
    return y


# Name, input, filter, strides, pads, dilations, groups: lines that are copied whole and not, at the borders and beyond; channels and
# filters that end within blocks; a few rows and many; no batch.
CONVOLUTIONS = (("3x3", (2, 5, 9, 11), (18, 5, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 1),
                ("first", (1, 3, 30, 30), (32, 3, 7, 7), [2, 2], [3, 3, 3, 3], [1, 1], 1),
                ("1x1", (1, 64, 6, 7), (40, 64, 1, 1), [1, 1], [0, 0, 0, 0], [1, 1], 1),
                ("1x1_strided", (2, 20, 9, 9), (17, 20, 1, 1), [2, 2], [0, 0, 0, 0], [1, 1], 1),
                ("dilated", (1, 6, 12, 13), (16, 6, 3, 2), [1, 2], [2, 0, 1, 3], [2, 3], 1),
                ("groups", (1, 12, 8, 8), (20, 3, 3, 3), [1, 1], [1, 0, 0, 1], [1, 1], 4),
                ("wide_groups", (1, 40, 6, 6), (48, 20, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 2),
                ("depthwise", (2, 37, 9, 10), (37, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 37),
                ("depthwise_strided", (1, 16, 12, 11), (16, 1, 5, 3), [2, 1], [2, 1, 2, 1], [1, 2], 16),
                ("multiplier", (1, 4, 7, 7), (8, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 4),
                ("line", (3, 7, 40), (9, 7, 5), [1], [2, 2], [1], 1),
                ("volume", (1, 4, 5, 6, 7), (6, 4, 3, 2, 3), [1, 1, 2], [1, 0, 1, 1, 1, 1], [1, 2, 1], 1),
                ("long", (1, 600, 5, 5), (33, 600, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 1),
                ("none", (0, 4, 5, 5), (6, 4, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 1),
                ("one", (1, 1, 1, 1), (1, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 1))


def element_type(array):
    if array.dtype == object:
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def map_parts(table):
    """Keys and values as arrays."""
    return [np.array(part, object if isinstance(part[0], str) else None) for part in (list(table), list(table.values()))]


def map_proto(table):
    # numpy_helper.from_dict takes strings for the names of types.
    keys, values = map_parts(table)
    named = {"string_keys": [key.encode() for key in keys]} if keys.dtype == object else {"keys": keys.tolist()}
    return onnx.MapProto(key_type=element_type(keys), values=numpy_helper.from_list([np.asarray(v, values.dtype) for v in values]), **named)


def type_proto(value, dims):
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_proto(value[0], dims))
    if isinstance(value, dict):
        keys, values = map_parts(value)
        return helper.make_map_type_proto(element_type(keys), helper.make_tensor_type_proto(element_type(values), []))
    return helper.make_tensor_type_proto(element_type(value), dims)


def make_model(name, way):
    domain, op, operands, expected, fixed, constants, version, _, _, _, attrs, _, _, _ = CASES[name]
    inputs, initializers, names = [], [], []
    for i, array in enumerate(operands):
        names.append("" if array is None else f"x{i}")
        if array is None:
            continue
        if i in constants:
            initializers.append(numpy_helper.from_array(array, f"x{i}"))
            continue
        shape = () if isinstance(array, dict) else array.shape
        dims = [f"x{i}_{d}" if way == "dynamic" and i not in fixed else size for d, size in enumerate(shape)]
        inputs.append(helper.make_value_info(f"x{i}", type_proto(array, dims)))
    results = [f"y{i}" for i in range(len(expected))]
    node = helper.make_node(op, names, results, domain=domain, **attrs)
    outputs = [helper.make_value_info(n, type_proto(np.float32(0) if e is None else e, None)) for n, e in zip(results, expected)]
    opsets = [helper.make_opsetid("", VERSIONS[""])] if domain else []
    graph = helper.make_graph([node], name, inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=opsets + [helper.make_opsetid(domain, version)], ir_version=10)


def differs(actual, expected, tolerance, atol):
    if isinstance(expected, list):
        actual = [{key.decode() if isinstance(key, bytes) else key: value[()] for key, value in table.items()}
                  for table in numpy_helper.to_list(actual)]
        return None if actual == expected else f"is {actual}, expected {expected}"
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"is {actual.dtype}{list(actual.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.dtype == object:
        wrong = actual != expected
    elif not np.issubdtype(expected.dtype, np.floating) and expected.dtype.name != "bfloat16":
        wrong = np.abs(actual.astype(np.int64) - expected.astype(np.int64)) > atol
    else:
        a, e = actual.astype(np.float64), expected.astype(np.float64)
        # NaN and infinity must stand at the same places.
        wrong = ~np.isclose(a, e, rtol=tolerance, atol=atol, equal_nan=True)
    if not wrong.any():
        return None
    at = tuple(np.argwhere(wrong)[0])
    return f"differs in {wrong.sum()} of {wrong.size} elements, first at {list(map(int, at))}: {actual[at]}, expected {expected[at]}"


def run_case(bin_dir, name, way, folder, variant=None):
    _, _, operands, expected, _, constants, _, tolerance, atol, _, _, max_bytes, options, _ = CASES[name]
    model, artifact = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.bin")
    with open(model, "wb") as f:
        f.write(make_model(name, way).SerializeToString())
    made = subprocess.run([f"{bin_dir}/tc-compile", model, "-o", artifact, *options] + (["--cpu", variant] if variant else []), capture_output=True, text=True)
    if made.returncode:
        return f"tc-compile exit {made.returncode}: {made.stderr.strip()}"
    if max_bytes and os.path.getsize(artifact) > max_bytes:
        return f"the artifact has {os.path.getsize(artifact)} bytes, more than {max_bytes}"
    inputs = []
    for i, value in enumerate(operands):
        if value is not None and i not in constants:
            with open(f"{folder}/x{i}.pb", "wb") as f:
                proto = map_proto(value) if isinstance(value, dict) else numpy_helper.from_array(np.asarray(value))
                f.write(proto.SerializeToString())
            inputs += ["--input", f"x{i}={folder}/x{i}.pb"]
    ran = subprocess.run([f"{bin_dir}/tc-run", artifact, *inputs, "--output-dir", folder], capture_output=True, text=True)
    if ran.returncode == 5 and variant: # not a machine for it
        return None
    if ran.returncode:
        return f"tc-run exit {ran.returncode}: {(ran.stdout + ran.stderr).strip()}"
    for i, value in enumerate(expected):
        if value is not None:
            with open(f"{folder}/output_{i}.pb", "rb") as f:
                tensor = (onnx.SequenceProto if isinstance(value, list) else TensorProto).FromString(f.read())
            result = tensor if isinstance(value, list) else numpy_helper.to_array(tensor)
            if not isinstance(value, list) and tensor.data_type == TensorProto.STRING:
                result = np.array([text.decode() for text in tensor.string_data], object).reshape(tuple(tensor.dims))
            reason = differs(result, value, tolerance, atol)
            if reason:
                return f"result {i} {reason}"
    return None


def main(variants=(None,)):
    """usage: SCRIPT BIN [CASE ...]. `variants`: CPU variants to compile for, one after the other; None: the default ones."""
    bin_dir, names = sys.argv[1], sys.argv[2:] or list(CASES)
    failed = 0
    for name in names:
        for way in CASES[name][9]:
            for variant in CASES[name][13] or variants:
                with tempfile.TemporaryDirectory() as folder:
                    reason = run_case(bin_dir, name, way, folder, variant)
                if reason:
                    failed += 1
                    print(f"{name} ({way}{', ' + variant if variant else ''}): {reason}", flush=True)
    print(f"{len(names)} cases, {failed} failures")
    return 1 if failed else 0
