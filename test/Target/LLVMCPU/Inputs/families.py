"""families.py FILE.mlir: every kernel family and every helper that kernels call, in one module of phase prim.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import sys

body, results, arguments = [], [], []
count = 0


def value(text, kind, keep=False):
    """A new value of type `kind`; an output of the function with `keep`."""
    global count
    name = f"%v{count}"
    count += 1
    body.append(f"  {name} = {text}")
    if keep:
        results.append((name, kind))
    return name


def argument(kind):
    name = f"%a{len(arguments)}"
    arguments.append(f"{name}: {kind}")
    return name


UNARY = "abs neg sign ceil floor round trunc exp expm1 sin cos tan atan sinh cosh tanh asinh erf logistic".split()
INSIDE = "asin acos atanh".split()           # |x| < 1
POSITIVE = "sqrt rsqrt reciprocal log log1p acosh".split()  # x >= 1
for element in ("f64", "f32", "f16", "bf16"):
    t = f"tensor<5x9x{element}>"
    x, y = argument(t), argument(t)
    one = value(f"prim.splat 1.0 : {element} : {t}", t)
    size = value(f"prim.abs {x} : {t}", t)
    above = value(f"prim.add {size}, {one} : {t}", t)
    inside = value(f"prim.div {x}, {above} : {t}", t)
    for op, operand in [(o, x) for o in UNARY] + [(o, inside) for o in INSIDE] + [(o, above) for o in POSITIVE]:
        value(f"prim.{op} {operand} : {t}", t, keep=True)
    for op in ("add", "sub", "mul", "div", "rem", "max", "min"):
        value(f"prim.{op} {x}, {above} : {t}", t, keep=True)
    value(f"prim.pow {above}, {y} : {t}", t, keep=True)
    value(f"prim.atan2 {above}, {y} : {t}", t, keep=True)
    # Conversions to and from all others, and to integers.
    for other in ("f64", "f32", "f16", "bf16", "i32", "i64", "i8", "ui8"):
        if other != element:
            to = f"tensor<5x9x{other}>"
            there = value(f"prim.convert {x} : {t} -> {to}", to, keep=True)
            value(f"prim.convert {there} : {to} -> {t}", t, keep=True)
    # Reductions over trailing and leading dims, softmax, norm, products.
    rows, columns, square = f"tensor<5x{element}>", f"tensor<9x{element}>", f"tensor<5x5x{element}>"
    for kind in ("sum", "max", "min", "prod"):
        value(f"prim.reduce {kind} {x} [1] : {t} -> {rows}", rows, keep=True)
        value(f"prim.reduce {kind} {x} [0] : {t} -> {columns}", columns, keep=True)
    value(f"prim.softmax {x} axis = 1 : {t}", t, keep=True)
    value(f"prim.norm {x} [1] epsilon = 1.0e-5 : {t}", t, keep=True)
    value(f"prim.dot_general {x}, {y} batch [] x [] contract [1] x [1] : ({t}, {t}) -> {square}", square, keep=True)

for element in ("i8", "ui8", "i16", "i32", "i64"):
    t = f"tensor<3x7x{element}>"
    x, y = argument(t), argument(t)
    one = value(f"prim.splat 1 : {element} : {t}", t)
    odd = value(f"prim.or {y}, {one} : {t}", t)
    for op in ("add", "sub", "mul", "div", "rem", "max", "min", "and", "or", "xor", "shl", "shr", "pow"):
        value(f"prim.{op} {x}, {odd} : {t}", t, keep=True)

# The generators with kernels of their own, at sizes with tails.
a, b = "tensor<33x70xf32>", "tensor<70x50xf32>"
x = argument(a)
w = value(f"prim.constant dense<0.5> : {b}", b)
value(f"prim.dot_general {x}, {w} batch [] x [] contract [1] x [0] : ({a}, {b}) -> tensor<33x50xf32>", "tensor<33x50xf32>", keep=True)
image, image_out = "tensor<2x9x9x24xf32>", "tensor<2x9x9x40xf32>"
x = argument(image)
w = value("prim.constant dense<0.25> : tensor<3x3x24x40xf32>", "")
conv = "strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1]"
value(f"prim.conv {x}, {w} {conv} groups 1 : ({image}, tensor<3x3x24x40xf32>) -> {image_out}", image_out, keep=True)
w = value("prim.constant dense<0.25> : tensor<3x3x1x24xf32>", "")
value(f"prim.conv {x}, {w} {conv} groups 24 : ({image}, tensor<3x3x1x24xf32>) -> {image}", image, keep=True)
value(f"prim.window_reduce max {x} window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : {image} -> tensor<2x4x4x24xf32>", "tensor<2x4x4x24xf32>", keep=True)
heads = "tensor<3x21x16xf32>"
q, k, v = (argument(heads) for _ in range(3))
value(f"prim.attention {q}, {k}, {v} scale 0.25 causal : ({heads}, {heads}, {heads}) -> {heads}", heads, keep=True)
for t, s, d, e in ((1, 21, 16, 20), (3, 40, 10, 16), (8, 600, 24, 33)):
    q, k, v, y = f"tensor<3x{t}x{d}xf32>", f"tensor<3x{s}x{d}xf32>", f"tensor<3x{s}x{e}xf32>", f"tensor<3x{t}x{e}xf32>"
    x, z, w = argument(q), argument(k), argument(v)
    value(f"prim.attention {x}, {z}, {w} scale 0.25 causal : ({q}, {k}, {v}) -> {y}", y, keep=True)
for kind, gates in (("lstm", 4), ("gru", 3)):
    x, h = argument(f"tensor<5x4x{gates * 20}xf32>"), argument("tensor<4x20xf32>")
    w = value(f"prim.constant dense<0.1> : tensor<20x{gates * 20}xf32>", "")
    bias = value(f"prim.constant dense<0.2> : tensor<{gates * 20}xf32>", "")
    peep = value("prim.constant dense<0.3> : tensor<60xf32>", "")
    n = value("prim.constant dense<5> : tensor<4xi32>", "")
    step = "tensor<4x20xf32>"
    name = f"%v{count}"
    count += 1
    body.append(f"  {name}:3 = prim.rnn {kind} {x}, {w}, {bias}, {h}, {h}, {peep}, {n} : (tensor<5x4x{gates * 20}xf32>, "
                f"tensor<20x{gates * 20}xf32>, tensor<{gates * 20}xf32>, {step}, {step}, tensor<60xf32>, tensor<4xi32>) -> "
                f"(tensor<5x4x20xf32>, {step}, {step})")
    results.append((f"{name}#0", "tensor<5x4x20xf32>"))
table, ids = argument("tensor<11x6xf32>"), argument("tensor<4x3xi64>")
value(f"prim.gather {table}[{ids}] axis = 0 : (tensor<11x6xf32>, tensor<4x3xi64>) -> tensor<4x3x6xf32>", "tensor<4x3x6xf32>", keep=True)
value(f"prim.arg_reduce max {table} axis = 1 : tensor<11x6xf32> -> tensor<11xi64>", "tensor<11xi64>", keep=True)

with open(sys.argv[1], "w") as f:
    f.write(f"func.func @main({', '.join(arguments)}) -> ({', '.join(kind for _, kind in results)}) {{\n")
    f.write("\n".join(body) + "\n")
    f.write(f"  return {', '.join(name for name, _ in results)} : {', '.join(kind for _, kind in results)}\n}}\n")
