# Checks the interpreter of prim against NumPy on random cases of every op.
#
#   check_interpreter.py <tc-interpret> [SEED]
#
# Each family of ops is one function with all its cases, run once in the model's dtypes and once with --f64. Integers
# and bools must be equal; floats may differ by one unit in the last place of the dtype (the interpreter computes in
# float64 and rounds once; so does this file). SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import itertools
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

tool = sys.argv[1]
rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 0)

MLIR = {"f4": "f32", "f8": "f64", "f2": "f16", "bf16": "bf16", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
        "u1": "ui8", "u2": "ui16", "u4": "ui32", "u8": "ui64", "b1": "i1"}
NAME = {np.dtype("f4"): "f32", np.dtype("f8"): "f64", np.dtype("f2"): "f16", np.dtype("i1"): "i8", np.dtype("i2"): "i16",
        np.dtype("i4"): "i32", np.dtype("i8"): "i64", np.dtype("u1"): "ui8", np.dtype("u2"): "ui16",
        np.dtype("u4"): "ui32", np.dtype("u8"): "ui64", np.dtype("b1"): "i1"}
EPS = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7, "f64": 2.0**-50}
TINY = {"f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133, "f64": 1e-300}


def ty(shape, element):
    return "tensor<" + "".join(f"{d}x" for d in shape) + element + ">"


def to_bf16(x):
    """Float32 values that are exact in bfloat16."""
    return (x.astype("f4").view("u4") & np.uint32(0xFFFF0000)).view("f4")


class Family:
    """A function under construction: arguments, body and expected results."""

    def __init__(self, name):
        self.name, self.args, self.body, self.results, self.inputs, self.expected = name, [], [], [], {}, []

    def arg(self, array, element=None, symbolic=None):
        element = element or NAME[array.dtype]
        value = f"%a{len(self.args)}"
        self.inputs[f"input_{len(self.args)}"] = array
        self.args.append((value, ty(array.shape, element)))
        return value, ty(array.shape, element)

    def op(self, text, types, expected, slack=1.0, label=None, largest=False):
        """`text`: the op with its type signature. One entry of `types` and `expected` per result. `largest`: rounding errors are those
        of the result's largest number, as all are sums of the same."""
        base = len(self.body)
        names = [f"%r{base}_{i}" for i in range(len(types))]
        self.body.append(f"{', '.join(names)} = {text}")
        for name, t, e in zip(names, types, expected):
            self.results.append((name, t))
            self.expected.append((np.asarray(e), t, slack, label or text, largest))

    def module(self):
        args = ", ".join(f"{v}: {t}" for v, t in self.args)
        types = ", ".join(t for _, t in self.results)
        return (f"func.func @{self.name}({args}) -> ({types}) {{\n  " + "\n  ".join(self.body) +
                f"\n  return {', '.join(v for v, _ in self.results)} : {types}\n}}\n")

    def check(self):
        with tempfile.TemporaryDirectory() as folder:
            path = lambda name: os.path.join(folder, name)
            with open(path("m.mlir"), "w") as file:
                file.write(self.module())
            np.savez(path("in.npz"), **self.inputs)
            for f64 in (False, True):
                command = [tool, path("m.mlir"), "--inputs", path("in.npz"), "--outputs", path("out.npz")]
                run = subprocess.run(command + ["--f64"] * f64, capture_output=True, text=True)
                if run.returncode:
                    print(run.stdout + run.stderr + self.module())
                    sys.exit(f"{self.name}: tc-interpret failed")
                with np.load(path("out.npz")) as out:
                    for i, case in enumerate(self.expected):
                        compare(out[f"output_{i}"], *case, f64)
        print(f"{self.name}: {len(self.expected)} results")


def compare(got, want, result_type, slack, label, largest, f64):
    element = result_type[result_type.rindex("x") + 1:-1] if "x" in result_type else result_type[7:-1]
    if got.shape != want.shape:
        sys.exit(f"{label}: shape {got.shape}, expected {want.shape}")
    if element not in EPS:
        if not np.array_equal(got, want):
            sys.exit(f"{label}: got\n{got}\nexpected\n{want}")
        return
    got, want = got.astype("f8"), want.astype("f8")
    held = "f64" if f64 else element
    if not f64 and element != "f64":
        # Overflow of the dtype.
        with np.errstate(over="ignore"):
            limit = {"f32": 3.4028235677973366e38, "f16": 65520.0, "bf16": 3.396e38}[element]
            want = np.where(np.abs(want) >= limit, np.copysign(np.inf, want), want)
    bad_nan = np.isnan(got) != np.isnan(want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore", over="ignore"):
        # NumPy sums in another order, which shows in float64.
        close = np.abs(got - want) <= slack * (256 if held == "f64" else 1) * (EPS[held] * (np.abs(want).max() if largest else np.abs(want)) + TINY[held])
    if bad_nan.any() or not (same | close).all():
        at = np.unravel_index(np.argmin((same | close) & ~bad_nan), got.shape) if got.shape else ()
        sys.exit(f"{label} (f64={f64}): at {at} got {got[at]!r}, expected {want[at]!r}")


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -0.5, -1.5]


def floats(shape, kind="f4", special=False, low=-3.0, high=3.0):
    x = rng.uniform(low, high, shape)
    if special:
        x.reshape(-1)[: len(SPECIAL)] = SPECIAL
    return to_bf16(x) if kind == "bf16" else x.astype(kind)


def ints(shape, kind, low=None, high=None):
    info = np.iinfo(kind)
    x = rng.integers(info.min if low is None else low, info.max if high is None else high, shape, dtype=kind, endpoint=True)
    if low is None:
        x.reshape(-1)[:3] = [info.min, info.max, 0]
    return x


def wrap(values, kind):
    """Python integers as a wrapped array."""
    bits = 8 * np.dtype(kind).itemsize
    out = [int(v) & (2**bits - 1) for v in values]
    if np.dtype(kind).kind == "i":
        out = [v - 2**bits if v >= 2 ** (bits - 1) else v for v in out]
    return np.array(out, dtype=kind)


FLOATS = ["f4", "f8", "f2", "bf16"]
INTS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def elementwise():
    family = Family("elementwise")
    erf = np.vectorize(math.erf)
    unary = {"abs": np.abs, "neg": np.negative, "sign": np.sign, "ceil": np.ceil, "floor": np.floor, "round": np.rint,
             "trunc": np.trunc, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
             "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos,
             "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
             "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf,
             "logistic": lambda x: 1 / (1 + np.exp(-x))}
    for kind in FLOATS:
        x = floats((4, 9), kind, special=True)
        value, t = family.arg(x, MLIR[kind])
        for name, f in unary.items():
            family.op(f"prim.{name} {value} : {t}", [t], [f(x.astype("f8"))], slack=8 if kind == "f8" else 1)
        y = floats((4, 9), kind, special=False)
        y[0, :4] = [0, np.nan, -np.inf, 2]
        other, _ = family.arg(y, MLIR[kind])
        binary = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod, "pow": np.power,
                  "atan2": np.arctan2, "max": np.maximum, "min": np.minimum}
        for name, f in binary.items():
            family.op(f"prim.{name} {value}, {other} : {t}", [t], [f(x.astype("f8"), y.astype("f8"))],
                      slack=8 if kind == "f8" else 1)
        bool_t = ty(x.shape, "i1")
        for name, f in {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                        "ge": np.greater_equal}.items():
            family.op(f"prim.compare {name} {value}, {other} : {t} -> {bool_t}", [bool_t], [f(x, y)])
        family.op(f"prim.is_nan {value} : {t} -> {bool_t}", [bool_t], [np.isnan(x)])
        family.op(f"prim.is_inf {value} : {t} -> {bool_t}", [bool_t], [np.isinf(x)])
        c, _ = family.arg(rng.random(x.shape) < 0.5)
        family.op(f"prim.select {c}, {value}, {other} : {bool_t}, {t}", [t], [np.where(family.inputs["input_" + c[2:]], x, y)])
    family.check()


def integers():
    family = Family("integers")
    for kind in INTS:
        x, y = ints((40,), kind), ints((40,), kind)
        y[:6] = [0, 1, 0, 7, 3, 2]
        if kind[0] == "i":
            y[6] = -1
            x[6] = np.iinfo(kind).min
        bits = 8 * np.dtype(kind).itemsize
        a, t = family.arg(x)
        b, _ = family.arg(y)
        xs, ys = [int(v) for v in x], [int(v) for v in y]

        def divide(p, q):
            return 0 if q == 0 else (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1)

        def power(p, q):
            if q < 0:
                return 1 if p == 1 else (-1 if q % 2 else 1) if p == -1 else 0
            return pow(p, q, 2**bits)

        def shl(p, q):
            return p << q if 0 <= q < bits else 0

        def shr(p, q):
            return p >> q if 0 <= q < bits else (-1 if p < 0 else 0)

        binary = {"add": lambda p, q: p + q, "sub": lambda p, q: p - q, "mul": lambda p, q: p * q, "div": divide,
                  "rem": lambda p, q: 0 if q == 0 else p - q * divide(p, q), "pow": power, "max": max, "min": min,
                  "and": lambda p, q: p & q, "or": lambda p, q: p | q, "xor": lambda p, q: p ^ q, "shl": shl, "shr": shr}
        for name, f in binary.items():
            family.op(f"prim.{name} {a}, {b} : {t}", [t], [wrap([f(p, q) for p, q in zip(xs, ys)], kind)])
        for name, f in {"abs": abs, "neg": lambda p: -p, "sign": lambda p: (p > 0) - (p < 0), "not": lambda p: ~p}.items():
            family.op(f"prim.{name} {a} : {t}", [t], [wrap([f(p) for p in xs], kind)])
        bool_t = ty(x.shape, "i1")
        family.op(f"prim.compare lt {a}, {b} : {t} -> {bool_t}", [bool_t], [x < y])
        family.op(f"prim.compare ge {a}, {b} : {t} -> {bool_t}", [bool_t], [x >= y])
    p, q = rng.random(16) < 0.5, rng.random(16) < 0.5
    a, t = family.arg(p)
    b, _ = family.arg(q)
    for name, f in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "max": np.maximum}.items():
        family.op(f"prim.{name} {a}, {b} : {t}", [t], [f(p, q)])
    family.op(f"prim.not {a} : {t}", [t], [~p])
    family.check()


def bits():
    family = Family("bits")
    for source, target in [("f4", "u4"), ("f8", "i8"), ("f2", "i2"), ("i4", "f4"), ("u8", "f8"), ("i1", "u1")]:
        x = floats((3, 7), source, special=True) if source in FLOATS else ints((3, 7), source, low=0 if target in FLOATS else None)
        value, t = family.arg(x)
        to = ty(x.shape, MLIR[target])
        family.op(f"prim.bitcast {value} : {t} -> {to}", [to], [x.view(target)])
    # f8E4M3FN 1.0, -2.0; i4 elements from the low bits on.
    codes, _ = family.arg(np.array([0x38, 0xC0], "u1"))
    family.op(f"prim.convert %f8 : tensor<2xf8E4M3FN> -> tensor<2xf32>", ["tensor<2xf32>"], [np.float32([1, -2])])
    family.body.insert(-1, f"%f8 = prim.storage {codes} : tensor<2xui8> -> tensor<2xf8E4M3FN>")
    packed, _ = family.arg(np.array([0x71, 0x0F], "u1"))
    family.op("prim.convert %i4 : tensor<3xi4> -> tensor<3xi32>", ["tensor<3xi32>"], [np.int32([1, 7, -1])])
    family.body.insert(-1, f"%i4 = prim.storage {packed} : tensor<2xui8> -> tensor<3xi4>")
    family.op("prim.storage %i4 : tensor<3xi4> -> tensor<2xui8>", ["tensor<2xui8>"], [np.array([0x71, 0x0F], "u1")])
    family.check()


def convert():
    family = Family("convert")
    for source in FLOATS + INTS + ["b1"]:
        if source == "b1":
            x = rng.random(30) < 0.5
        elif source in FLOATS:
            x = floats((30,), source, special=True, low=-300, high=300)
            if source != "f2":
                x[12:16] = to_bf16(np.array([1e20, -1e20, 4e9, -4e9]))
        else:
            x = ints((30,), source)
            if source in ("i8", "u8"):
                x[3:5] = [2**53 + 1, 2**60 + 2**36 + 1]
        value, t = family.arg(x, MLIR[source])
        for target in FLOATS + INTS + ["b1"]:
            to = ty(x.shape, MLIR[target])
            if target == "b1":
                want = x != 0
            elif target in INTS and source in FLOATS:
                info = np.iinfo(target)
                want = np.array([0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v)
                                 for v in x.astype("f8").tolist()], dtype=target)
            elif target in INTS:
                want = wrap(x.tolist(), target)
            else:
                want = x.astype("f8")
            family.op(f"prim.convert {value} : {t} -> {to}", [to], [want], slack=0.5)
    family.check()


def movement():
    family = Family("movement")
    for kind in ("f4", "bf16", "i1", "i8", "b1"):
        x = rng.random((3, 4, 5)) < 0.5 if kind == "b1" else floats((3, 4, 5), kind) if kind in FLOATS else ints((3, 4, 5), kind)
        element = MLIR[kind]
        value, t = family.arg(x, element)

        def op(text, want, *more):
            to = ty(want.shape, element)
            family.op(f"{text} : {t} -> {to}", [to], [want])

        op(f"prim.reshape {value}", x.reshape(12, 5))
        for p in itertools.permutations(range(3)):
            op(f"prim.transpose {value} {list(p)}", x.transpose(p))
        op(f"prim.broadcast {value} [0, 2, 3]", np.broadcast_to(x[:, None], (3, 2, 4, 5)))
        op(f"prim.slice {value} from affine_map<() -> (1, 3, 0)> step [1, -1, 2]", x[1:3, 3:0:-1, ::2])
        op(f"prim.slice {value} from affine_map<() -> (2, 0, 0)> step [1, 1, 1]", x[2:2])
        one, one_t = family.arg(np.asarray(x[0, 0, :1].reshape(1, 1)), element)
        to = ty((2, 3, 4), element)
        family.op(f"prim.broadcast {one} [0, 2] : {one_t} -> {to}", [to], [np.broadcast_to(x[0, 0, 0], (2, 3, 4))])
        pad, pad_t = family.arg(np.asarray(x[1, 1, 1]), element)
        for low, high in [((1, 0, 2), (0, 3, 1)), ((-1, 1, -2), (2, -3, 0)), ((5, 0, 0), (-7, 0, 0))]:
            full = np.pad(x, [(max(l, 0), max(h, 0)) for l, h in zip(low, high)], constant_values=x[1, 1, 1])
            want = full[tuple(slice(max(-l, 0), full.shape[d] - max(-h, 0)) for d, (l, h) in enumerate(zip(low, high)))]
            to = ty(want.shape, element)
            family.op(f"prim.pad {value}, {pad} low affine_map<() -> {tuple(low)}> : ({t}, {pad_t}) -> {to}", [to], [want])
        for axis in range(3):
            want = np.concatenate([x, x, x], axis)
            to = ty(want.shape, element)
            family.op(f"prim.concat {value}, {value}, {value} axis = {axis} : ({t}, {t}, {t}) -> {to}", [to], [want])
        starts = [family.arg(np.asarray(s, dtype="i8")) for s in (1, 9, -4)]
        to = ty((2, 3, 2), element)
        family.op(f"prim.dynamic_slice {value} from ({', '.join(s for s, _ in starts)}) : ({t}, tensor<i64>, tensor<i64>, "
                  f"tensor<i64>) -> {to}", [to], [x[1:3, 1:4, 0:2]])
    for element, dtype in (("f32", "f4"), ("i64", "i8"), ("f16", "f2")):
        to = ty((3, 4), element)
        family.op(f"prim.iota axis = 1 : {to}", [to], [np.broadcast_to(np.arange(4, dtype=dtype), (3, 4))])
    family.op("prim.splat -2.5 : f32 : tensor<2x3xf32>", ["tensor<2x3xf32>"], [np.full((2, 3), -2.5)])
    family.op("prim.splat 7 : i64 : tensor<2xi64>", ["tensor<2xi64>"], [np.full(2, 7)])
    family.op("prim.sizes affine_map<() -> (3, 5)> : tensor<2xi64>", ["tensor<2xi64>"], [np.array([3, 5])])
    family.op("prim.constant dense<[[1.0, -0.0], [2.5, 3.0]]> : tensor<2x2xbf16>", ["tensor<2x2xbf16>"],
              [np.array([[1, -0.0], [2.5, 3]])])
    family.op("prim.constant dense<[true, false, true]> : tensor<3xi1>", ["tensor<3xi1>"], [np.array([True, False, True])])
    family.check()


def gather():
    family = Family("gather")
    clamp = lambda i, n: np.clip(np.where((i < 0) & (i >= -n), i + n, i), 0, n - 1)
    for kind, index_kind in itertools.product(("f4", "i2"), ("i4", "i8")):
        element = MLIR[kind]
        x = floats((3, 4, 5), kind) if kind in FLOATS else ints((3, 4, 5), kind)
        value, t = family.arg(x)
        for axis in range(3):
            indices = rng.integers(-9, 9, (2, 3)).astype(index_kind)
            i, it = family.arg(indices)
            want = np.take(x, clamp(indices, x.shape[axis]), axis)
            to = ty(want.shape, element)
            family.op(f"prim.gather {value}[{i}] axis = {axis} : ({t}, {it}) -> {to}", [to], [want])
            shape = [2, 3, 4]
            shape[axis] = 6
            indices = rng.integers(-9, 9, shape).astype(index_kind)
            i, it = family.arg(indices)
            part = x[tuple(slice(None) if d == axis else slice(shape[d]) for d in range(3))]
            want = np.take_along_axis(part, clamp(indices, x.shape[axis]), axis)
            to = ty(want.shape, element)
            family.op(f"prim.gather_elements {value}[{i}] axis = {axis} : ({t}, {it}) -> {to}", [to], [want])
            updates = (floats(shape, kind) if kind in FLOATS else ints(shape, kind, -9, 9))
            u, ut = family.arg(updates)
            for reduce in ("", "sum", "prod", "max", "min"):
                want = x.astype("f8" if kind in FLOATS else "i8").copy()
                for at in np.ndindex(*shape):
                    to_at = list(at)
                    to_at[axis] = clamp(indices[at], x.shape[axis])
                    to_at = tuple(to_at)
                    f = {"": lambda a, b: b, "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[reduce]
                    want[to_at] = f(want[to_at], updates[at])
                want = want if kind in FLOATS else wrap(want.reshape(-1).tolist(), kind).reshape(x.shape)
                family.op(f"prim.scatter_elements {value}[{i}], {u} axis = {axis} " + (f"kind {reduce} " if reduce else "") +
                          f": ({t}, {it}, {ut}) -> {t}", [t], [want], slack=4)
        for depth, batch in ((1, 0), (2, 0), (3, 0), (1, 1), (2, 1)):
            lead = (3, 2) if batch else (2, 3)
            indices = rng.integers(-9, 9, lead + (depth,)).astype(index_kind)
            i, it = family.arg(indices)
            rest = x.shape[batch + depth:]
            want = np.empty(lead + rest, x.dtype)
            for at in np.ndindex(*lead):
                where = at[:batch] + tuple(int(clamp(indices[at + (d,)], x.shape[batch + d])) for d in range(depth))
                want[at] = x[where]
            to = ty(want.shape, element)
            family.op(f"prim.gather_nd {value}[{i}] batch_dims = {batch} : ({t}, {it}) -> {to}", [to], [want])
            if batch:
                continue
            updates = floats(lead + rest, kind) if kind in FLOATS else ints(lead + rest, kind, -9, 9)
            u, ut = family.arg(updates)
            for reduce in ("", "sum", "max"):
                want = x.astype("f8" if kind in FLOATS else "i8").copy()
                for at in np.ndindex(*lead):
                    where = tuple(int(clamp(indices[at + (d,)], x.shape[d])) for d in range(depth))
                    f = {"": lambda a, b: b, "sum": np.add, "max": np.maximum}[reduce]
                    want[where] = f(want[where], updates[at])
                want = want if kind in FLOATS else wrap(want.reshape(-1).tolist(), kind).reshape(x.shape)
                family.op(f"prim.scatter_nd {value}[{i}], {u} " + (f"kind {reduce} " if reduce else "") +
                          f": ({t}, {it}, {ut}) -> {t}", [t], [want], slack=4)
    family.check()


def reduction():
    family = Family("reduction")
    numpy = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
    for kind in ("f4", "f8", "f2", "bf16", "i1", "i4", "u1", "i8"):
        element = MLIR[kind]
        x = floats((3, 4, 5), kind, low=-2, high=2) if kind in FLOATS else ints((3, 4, 5), kind)
        if kind in FLOATS:
            x[0, 1, 2] = np.nan
        wide = x.astype("f8") if kind in FLOATS else x.astype(object)
        value, t = family.arg(x, element)
        for dims in ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2], []):
            for name, f in numpy.items():
                want = f(wide, axis=tuple(dims)) if dims else wide
                want = np.asarray(want)
                if kind not in FLOATS:
                    want = wrap(want.reshape(-1).tolist(), kind).reshape(want.shape)
                to = ty(want.shape, element)
                family.op(f"prim.reduce {name} {value} {dims} : {t} -> {to}", [to], [want], slack=16 if kind == "f8" else 1.01)
        empty, et = family.arg(x[:, :0], element)
        to = ty((3, 5), element)
        ends = (-np.inf, np.inf) if kind in FLOATS else (np.iinfo(kind).min, np.iinfo(kind).max)
        for name, v in (("sum", 0), ("prod", 1), ("max", ends[0]), ("min", ends[1])):
            family.op(f"prim.reduce {name} {empty} [1] : {et} -> {to}", [to], [np.full((3, 5), v)])
        y = x.copy()
        y[y == y.max()] = y.min()
        y[0, 0, 1] = y[0, 0, 3] = y[2, 3, 1]
        value, t = family.arg(y, element)
        for axis, name, last in itertools.product(range(3), ("max", "min"), (False, True)):
            f = np.argmax if name == "max" else np.argmin
            want = y.shape[axis] - 1 - f(np.flip(y, axis), axis) if last else f(y, axis)
            to = ty(want.shape, "i64")
            family.op(f"prim.arg_reduce {name} {value} axis = {axis} {'last ' * last}: {t} -> {to}", [to], [want.astype("i8")])
        for axis, exclusive, reverse in itertools.product(range(3), (False, True), (False, True)):
            w = np.flip(wide, axis) if reverse else wide
            want = np.cumsum(w, axis)
            if exclusive:
                want = np.concatenate([np.zeros_like(want.take([0], axis)), want.take(range(want.shape[axis] - 1), axis)], axis)
            want = np.flip(want, axis) if reverse else want
            if kind not in FLOATS:
                want = wrap(want.reshape(-1).tolist(), kind).reshape(want.shape)
            base, bt = family.arg(x, element)
            family.op(f"prim.scan sum {base} axis = {axis} {'exclusive ' * exclusive}{'reverse ' * reverse}: {bt} -> {bt}",
                      [bt], [want], slack=16 if kind == "f8" else 1.01)
    p = rng.random((3, 4)) < 0.6
    value, t = family.arg(p)
    family.op(f"prim.reduce and {value} [1] : {t} -> tensor<3xi1>", ["tensor<3xi1>"], [p.all(1)])
    family.op(f"prim.reduce or {value} [0] : {t} -> tensor<4xi1>", ["tensor<4xi1>"], [p.any(0)])
    family.check()


def contraction():
    family = Family("contraction")
    for kind in ("f4", "f8", "f2", "bf16", "i1", "u1", "i4"):
        make = lambda shape: floats(shape, kind, low=-1, high=1) if kind in FLOATS else ints(shape, kind, 0 if kind[0] == "u" else -99, 99)
        element = MLIR[kind]
        result = element if kind in FLOATS else "i32"
        wide = "f8" if kind in FLOATS else "i8"
        slack = 256 if kind == "f8" else 1.01
        cases = [((2, 3, 7), (2, 7, 4), [0], [0], [2], [1], "bmk,bkn->bmn"), ((9, 70), (70, 67), [], [], [1], [0], "mk,kn->mn"),
                 ((5, 6), (8, 6), [], [], [1], [1], "mk,nk->mn"), ((4, 2, 3), (3, 5, 2), [1], [2], [2], [0], "mbk,knb->bmn"),
                 ((2, 3, 4), (4, 3, 5), [], [], [1, 2], [1, 0], "mij,jin->mn"), ((3,), (4,), [], [], [], [], "m,n->mn"),
                 ((0, 3), (3, 2), [], [], [1], [0], "mk,kn->mn"), ((2, 0), (0, 3), [], [], [1], [0], "mk,kn->mn")]
        for ls, rs, lb, rb, lc, rc, einsum in cases:
            a, b = make(ls), make(rs)
            (l, lt), (r, rt) = family.arg(a, element), family.arg(b, element)
            want = np.einsum(einsum, a.astype(wide), b.astype(wide))
            to = ty(want.shape, result)
            family.op(f"prim.dot_general {l}, {r} batch {lb} x {rb} contract {lc} x {rc} : ({lt}, {rt}) -> {to}", [to],
                      [want], slack=slack)
        if kind == "i4":
            continue
        for size, kernel, stride, dilation, low, high, groups, channels, outputs in [
                ((7,), (3,), [1], [1], [1], [1], 1, 4, 6), ((9, 8), (3, 2), [2, 1], [1, 2], [1, 0], [1, 2], 1, 3, 5),
                ((6, 6), (3, 3), [1, 1], [1, 1], [1, 1], [1, 1], 4, 4, 8), ((6, 5), (3, 3), [2, 2], [1, 1], [-1, 1], [1, 0], 2, 6, 4),
                ((3, 4, 5), (2, 2, 2), [1, 1, 2], [1, 1, 1], [0, 1, 0], [1, 0, 0], 1, 2, 3)]:
            x, w = make((2, *size, channels)), make((*kernel, channels // groups, outputs))
            out = [(s + l + h - d * (k - 1) - 1) // st + 1 for s, l, h, d, k, st in zip(size, low, high, dilation, kernel, stride)]
            want = np.zeros((2, *out, outputs), wide)
            for at in np.ndindex(*out):
                for k in np.ndindex(*kernel):
                    i = [p * st + q * d - l for p, st, q, d, l in zip(at, stride, k, dilation, low)]
                    if any(v < 0 or v >= s for v, s in zip(i, size)):
                        continue
                    for g in range(groups):
                        cs, os_ = channels // groups, outputs // groups
                        want[(slice(None), *at, slice(g * os_, (g + 1) * os_))] += (
                            x[(slice(None), *i, slice(g * cs, (g + 1) * cs))].astype(wide) @ w[k][:, g * os_:(g + 1) * os_].astype(wide))
            (xv, xt), (wv, wt) = family.arg(x, element), family.arg(w, element)
            to = ty(want.shape, result)
            family.op(f"prim.conv {xv}, {wv} strides {stride} dilations {dilation} pads {low} {high} groups {groups} : "
                      f"({xt}, {wt}) -> {to}", [to], [want], slack=slack)
            window = {"max": np.maximum, "min": np.minimum, "sum": np.add}
            for name, f in window.items():
                start = 0 if name == "sum" else (-np.inf if name == "max" else np.inf) if kind in FLOATS else (
                    np.iinfo(kind).min if name == "max" else np.iinfo(kind).max)
                pool = np.full((2, *out, channels), start, wide)
                for at in np.ndindex(*out):
                    for k in np.ndindex(*kernel):
                        i = [p * st + q * d - l for p, st, q, d, l in zip(at, stride, k, dilation, low)]
                        if all(0 <= v < s for v, s in zip(i, size)):
                            pool[(slice(None), *at)] = f(pool[(slice(None), *at)], x[(slice(None), *i)])
                if kind not in FLOATS:
                    pool = wrap(pool.reshape(-1).tolist(), kind).reshape(pool.shape)
                to = ty(pool.shape, element)
                family.op(f"prim.window_reduce {name} {xv} window {list(kernel)} strides {stride} dilations {dilation} low {low} "
                          f": {xt} -> {to}", [to], [pool], slack=slack)
    family.check()


def composite():
    family = Family("composite")

    def softmax(x, axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    for kind in FLOATS:
        element, slack = MLIR[kind], 64 if kind == "f8" else 1.01
        x = floats((3, 4, 5), kind)
        value, t = family.arg(x, element)
        for axis in range(3):
            s = softmax(x.astype("f8"), axis)
            family.op(f"prim.softmax {value} axis = {axis} : {t}", [t], [s], slack=slack)
            family.op(f"prim.softmax {value} axis = {axis} log : {t}", [t], [np.log(s)], slack=8 * slack)
        for dims in ([2], [1, 2], [0]):
            w, d = x.astype("f8"), tuple(dims)
            norm = (w - w.mean(d, keepdims=True)) / np.sqrt(w.var(d, keepdims=True) + 1e-5)
            family.op(f"prim.norm {value} {dims} epsilon = 1.0e-5 : {t}", [t], [norm], slack=64)
            rms = w / np.sqrt((w * w).mean(d, keepdims=True) + 1e-5)
            family.op(f"prim.norm {value} {dims} epsilon = 1.0e-5 rms : {t}", [t], [rms], slack=slack)
        q, k, v, m = (floats(s, kind) for s in ((2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 5), (2, 3, 4, 6)))
        (qv, qt), (kv, kt), (vv, vt), (mv, mt) = (family.arg(a, element) for a in (q, k, v, m))
        for mask, causal in itertools.product((False, True), (False, True)):
            scores = 0.25 * np.einsum("abtd,absd->abts", q.astype("f8"), k.astype("f8")) + (m.astype("f8") if mask else 0)
            if causal:
                scores = np.where(np.arange(6)[None, :] <= np.arange(4)[:, None] + 2, scores, -np.inf)
            want = softmax(scores, 3) @ v.astype("f8")
            to = ty(want.shape, element)
            family.op(f"prim.attention {qv}, {kv}, {vv} " + (f"mask {mv} " if mask else "") + "scale 2.5e-1 " +
                      "causal " * causal + f": ({', '.join([qt, kt, vt] + [mt] * mask)}) -> {to}", [to], [want], slack=4 * slack)
        # A row that sees nothing has weights of 0 with zero_nan.
        hidden = m.copy()
        hidden[0, 0, 1] = -np.inf
        hv, ht = family.arg(hidden, element)
        with np.errstate(invalid="ignore"):
            weights = softmax(0.25 * np.einsum("abtd,absd->abts", q.astype("f8"), k.astype("f8")) + hidden.astype("f8"), 3)
        family.op(f"prim.attention {qv}, {kv}, {vv} mask {hv} scale 2.5e-1 zero_nan : ({qt}, {kt}, {vt}, {ht}) -> {to}", [to],
                  [np.nan_to_num(weights) @ v.astype("f8")], slack=4 * slack)
        for bits, zeros in itertools.product((2, 4, 8), (False, True)):
            q, z = rng.integers(0, 2 ** bits, (5, 3, 16)), rng.integers(0, 2 ** bits, (5, 3))
            x, s = floats((2, 40), kind), floats((5, 3), kind, low=0.1, high=1)
            pack = lambda a: np.bitwise_or.reduce(np.pad(a.astype("u1"), ((0, 0), (0, -a.shape[1] % (8 // bits)))).reshape(5, -1, 8 // bits) <<
                                                  (np.arange(8 // bits, dtype="u1") * bits).astype("u1"), -1).astype("u1")
            args = [family.arg(x, element), family.arg(pack(q.reshape(5, -1))), family.arg(s, element)] + [family.arg(pack(z))] * zeros
            centre = z[..., None].astype("f8") if zeros else 2 ** (bits - 1)
            w = ((q.astype("f8") - centre) * s[..., None].astype("f8")).reshape(5, -1)[:, :40]
            to = ty((2, 5), element)
            family.op(f"prim.block_dot {', '.join(a for a, _ in args[:3])} " + (f"zeros {args[3][0]} " if zeros else "") +
                      f"bits = {bits} block = 16 : ({', '.join(t for _, t in args)}) -> {to}", [to], [x.astype("f8") @ w.T], slack=64 * slack)
        for n, extent, parts, outputs, real, inverse in [
                (1, 1, 1, 1, 0, 0), (8, 8, 1, 4, 0, 0), (9, 9, 2, 9, 0, 1), (7, 10, 2, 7, 1, 0), (13, 6, 1, 13, 0, 1), (30, 30, 2, 16, 1, 1)]:
            if kind not in ("f4", "f8"):
                continue
            x = floats((2, extent, 3, parts), kind)
            z = x[..., 0].astype("f8") + (1j * x[..., 1] if parts == 2 else 0)
            want = (np.fft.ifft(z, n, 1) * n if inverse else np.fft.fft(z, n, 1))[:, :outputs]
            want = np.stack([want.real] if real else [want.real, want.imag], -1)
            (v, t), to = family.arg(x, element), ty(want.shape, element)
            family.op(f"prim.fft {'inverse ' * inverse}{v} length affine_map<() -> ({n})> : {t} -> {to}", [to], [want], largest=True)
        for n in (6, 7) if kind in ("f4", "f8") else ():
            x = floats((2, n // 2 + 1, 1, 2), kind)
            want = np.fft.irfft(x[..., 0].astype("f8") + 1j * x[..., 1], n, 1)[..., None] * n
            # Numbers that have no counterpart count as they are.
            x[:, 0, :, 1] = 0
            x[:, -1, :, 1] *= n % 2
            (v, t), to = family.arg(x, element), ty(want.shape, element)
            family.op(f"prim.fft inverse half {v} length affine_map<() -> ({n})> : {t} -> {to}", [to], [want], largest=True)
        for cell, gates in (("lstm", 4), ("gru", 3), ("rnn", 1)):
            for reverse, linear in itertools.product((False, True), (False, True) if cell == "gru" else (False,)):
                steps, batch, hidden = 5, 3, 4
                arrays = [floats((steps, batch, gates * hidden), kind), floats((hidden, gates * hidden), kind, low=-1, high=1),
                          floats((gates * hidden,), kind), floats((batch, hidden), kind), floats((batch, hidden), kind),
                          floats((3 * hidden,), kind)]
                lengths = np.array([5, 3, 0], "i4")
                values = [family.arg(a, element) for a in arrays] + [family.arg(lengths)]
                x, r, b, h, c, p = (a.astype("f8") for a in arrays)
                h, c, all_h = h.copy(), c.copy(), np.zeros((steps, batch, hidden))
                cut = lambda a, i: a[..., i * hidden:(i + 1) * hidden]
                for time in (reversed(range(steps)) if reverse else range(steps)):
                    old_h, old_c, g = h, c, x[time]
                    if cell == "lstm":
                        z = g + h @ r + b
                        i = sigmoid(cut(z, 0) + cut(p, 0) * c)
                        f = sigmoid(cut(z, 2) + cut(p, 2) * c)
                        c = f * c + i * np.tanh(cut(z, 3))
                        h = sigmoid(cut(z, 1) + cut(p, 1) * c) * np.tanh(c)
                    elif cell == "gru":
                        z = sigmoid(cut(g, 0) + h @ cut(r, 0) + cut(b, 0))
                        reset = sigmoid(cut(g, 1) + h @ cut(r, 1) + cut(b, 1))
                        n = reset * (h @ cut(r, 2) + cut(b, 2)) if linear else (reset * h) @ cut(r, 2) + cut(b, 2)
                        h = (1 - z) * np.tanh(cut(g, 2) + n) + z * h
                    else:
                        h = np.tanh(g + h @ r + b)
                    live = (time < lengths)[:, None]
                    all_h[time] = np.where(live, h, 0)
                    h, c = np.where(live, h, old_h), np.where(live, c, old_c)
                types = [ty(s, element) for s in ((steps, batch, hidden), (batch, hidden), (batch, hidden))]
                flags = [n for n, on in (("reverse", reverse), ("linearBeforeReset", linear)) if on]
                family.op(f"prim.rnn {cell} {', '.join(v for v, _ in values)} " + ("{" + ", ".join(flags) + "} " if flags else "") +
                          f": ({', '.join(t for _, t in values)}) -> ({', '.join(types)})", types, [all_h, h, c], slack=16 * slack)
    family.check()


np.seterr(all="ignore")
for check in (elementwise, integers, bits, convert, movement, gather, reduction, contraction, composite):
    check()
print("all equal")
