#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run.py's comparison finds what it should, and its list of refusals stays true.

usage: compare.py
"""
import os
import sys
import tempfile
import types

import numpy as np
import run

NAN, INF = float("nan"), float("inf")
TOLERANCES = {"f32": {"rtol": 1e-3, "atol": 1e-6}, "i64": {"rtol": 0, "atol": 0}}


def f32(*values, shape=None):
    return ("f32", [len(values)] if shape is None else shape, np.array(values, np.float32).tobytes())


def i64(*values, shape=None):
    return ("i64", [len(values)] if shape is None else shape, np.array(values, np.int64).tobytes())


NUMBER = ("number", [], np.float64(3).tobytes())
# Actual, expected, the other that is right just as well, a part of the sentence (None: they agree).
COMPARISONS = [
    ([f32(1, 2)], [f32(1, 2.001)], None, None),
    ([f32(1, 2)], [f32(1, 2.01)], None, "1 of 2 values differ; at [1]"),
    ([f32(1, 2)], [f32(1, 2), f32(1)], None, "1 outputs, expected 2"),
    ([f32(1, 2)], [i64(1, 2)], None, "is f32, expected i64"),
    ([f32(1, 2)], [f32(1, 2, shape=[2, 1])], None, "shape [2]"),
    ([f32(NAN, 2)], [f32(NAN, 2)], None, None),
    ([f32(NAN, 2)], [f32(1, 2)], None, "1 of 2"),
    ([f32(1, 2)], [f32(NAN, 2)], None, "1 of 2"),
    ([f32(INF)], [f32(INF)], None, None),
    ([f32(-INF)], [f32(INF)], None, "1 of 1"),
    ([f32(3e38)], [f32(INF)], None, "1 of 1"),
    ([i64(7)], [i64(8)], None, "1 of 1"),
    ([i64(2**60 + 1)], [i64(2**60)], None, "1 of 1"),
    ([f32(5)], [f32(1)], [f32(5)], None),
    # Sums that cancel: as far from float64 as PyTorch is, and no farther.
    ([f32(1000, 1.001)], [f32(1000, 1.0018)], [f32(1000, 1)], None),
    ([f32(1000, 0.995)], [f32(1000, 1.0018)], [f32(1000, 1)], "1 of 2"),
    ([i64(3, shape=[])], [NUMBER], None, None),
    ([i64(4, shape=[])], [NUMBER], None, "1 of 1"),
    ([f32(3, shape=[])], [NUMBER], None, "expected a number"),
    ([f32(4)], [f32(1)], [f32(5)], "1 of 1"),
    ([f32(4)], [("f32", [1], b"")], "random", None),
    ([f32(4)], [("f32", [2], b"")], "random", "shape [1]"),
    ([f32(shape=[0, 3])], [f32(shape=[0, 3])], None, None),
]
# The same where the result moves when inputs are rounded: actual, by how much, a part of the sentence.
MOVES = [(f32(5.3), [0.5], None), (f32(5.6), [0.5], "1 of 1"), (f32(5.3), None, "1 of 1"), (f32(1), [0.5], None)]
# Indices that name the same values, or do not: actual, expected.
SOURCE = np.array([3, 1, 1, NAN, NAN], np.float32)
ORDERS = [([2, 1, 0, 4, 3], True), ([1, 2, 0, 3, 4], True), ([1, 1, 0, 3, 4], False), ([1, 0, 2, 3, 4], False), ([1, 2, 0, 3, 5], False)]
# The same of fewer indices than each line of [[3, 1], [1, 1], [NaN, 1]] has.
MATRIX = np.array([[3, 1], [1, 1], [NAN, 1]], np.float32)
CHOICES = [(i64(1, 0, 0), i64(1, 1, 0), True), (i64(1, 0, 1), i64(1, 1, 0), False), (i64(1, 2), i64(1, 0), True), (i64(0, 2), i64(1, 0), False),
           (i64(1, 2, shape=[1, 2]), i64(1, 0, shape=[1, 2]), True), (i64(1, 3), i64(1, 0), False),
           (i64(0, 0, 1, 2, shape=[2, 2]), i64(0, 0, 1, 1, shape=[2, 2]), True)]  # fmt: skip
# Eigenvectors of a matrix, and other ones: entry, found, whether they are as right.
HALF = 2**-0.5
EIGEN = [f32(1, 3, shape=[2]), f32(HALF, HALF, -HALF, HALF, shape=[2, 2])]
BASES = [([EIGEN[0], f32(-HALF, HALF, HALF, HALF, shape=[2, 2])], True), ([EIGEN[0], f32(HALF, -HALF, -HALF, -HALF, shape=[2, 2])], True),
         ([EIGEN[0], f32(HALF, HALF, HALF, -HALF, shape=[2, 2])], False), ([EIGEN[0], f32(1, 0, 0, 1, shape=[2, 2])], False),
         ([f32(1, 3.1, shape=[2]), EIGEN[1]], False), ([EIGEN[0], f32(1, 1, -1, 1, shape=[2, 2])], False)]  # fmt: skip
# What a run found, the list, and parts of what is not as expected.
JUDGEMENTS = [
    ({"pt2 a f32 0": ("refused", "x: error: no")}, "pt2 a f32 0: no\n", []),
    ({"pt2 a f32 0": ("refused", "x: error: no")}, "pt2 a * *: no\n", []),
    ({"pt2 a f32 0": ("refused", "x: error: no")}, "", ["refused"]),
    ({"pt2 a f32 0": ("passed", "")}, "pt2 a f32 0: no\n", ["passes; delete"]),
    ({"pt2 a f32 0": ("passed", "")}, "pt2 a * *: no\n", ["passes; delete"]),
    ({"pt2 a f32 0": ("wrong", "1 of 2")}, "pt2 a f32 0: no\n", ["wrong"]),
    ({"pt2 a f32 0": ("defect", "crashed")}, "pt2 a * *: no\n", ["defect", "passes; delete"]),
    ({"pt2 b f32 0": ("passed", "")}, "pt2 a * *: no\n", []),
]


def main():
    failed = 0
    for actual, wanted, other, part in COMPARISONS:
        said = run.difference(actual, wanted, other, TOLERANCES)
        if (said is None) != (part is None) or (part and part not in said):
            print(f"{actual}, expected {wanted}, other {other}: {said!r} lacks {part!r}")
            failed += 1
    for actual, moves, part in MOVES:
        said = run.difference([actual], [f32(1)], [f32(5)], TOLERANCES, moves=moves)
        if (said is None) != (part is None) or (part and part not in said):
            print(f"{actual}, expected 1 or 5, which moves by {moves}: {said!r} lacks {part!r}")
            failed += 1
    for indices, same in ORDERS:
        said = run.difference([i64(*indices)], [i64(1, 2, 0, 3, 4)], None, TOLERANCES, SOURCE)
        if (said is None) != same:
            print(f"indices {indices}: {said!r}")
            failed += 1
    for actual, wanted, same in CHOICES:
        said = run.difference([actual], [wanted], None, TOLERANCES, MATRIX)
        if (said is None) != same:
            print(f"choice {actual}, expected {wanted}: {said!r}")
            failed += 1
    for actual, same in BASES:
        if run.is_other_basis("linalg.eigh", actual, EIGEN, TOLERANCES) != same:
            print(f"basis {actual}: not {same}")
            failed += 1
    for results, text, parts in JUDGEMENTS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "list.txt")
            with open(path, "w") as f:
                f.write(text)
            said = run.judge(types.SimpleNamespace(expected_failures=path), results)
        if len(said) != len(parts) or not all(any(part in sentence for sentence in said) for part in parts):
            print(f"{results} with {text!r}: {said}, expected {parts}")
            failed += 1
    print(f"{len(COMPARISONS) + len(MOVES) + len(ORDERS) + len(CHOICES) + len(BASES) + len(JUDGEMENTS)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
