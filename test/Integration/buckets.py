# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with `--dim s=bucket:...`, which run padded and masked, against the same models without it.

usage: buckets.py BIN [CASE ...]

Each model is compiled with and without buckets and run at random sizes and at each bucket's edges, on the same inputs; results must be equal within rounding.
Inputs of which a name begins with W are weights. A case also says which operators must not be padded: others that are not are an error, too, as that is slow.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

# Name: graph, operators that run unpadded, options, what inputs are (default: normal).
CASES = {
    "mlp": ("(float[s,24] x, float[24,32] W1, float[32] Wb, float[32,10] W2) => (float[s,10] y) { h = MatMul(x, W1) a = Add(h, Wb) r = Gelu(a) y = MatMul(r, W2) }", ""),
    "attention": ("(float[b,s,32] x, float[32,32] Wq, float[32,32] Wk, float[32,32] Wv, float[32] Wb) => (float[b,s,32] y) { q0 = MatMul(x, Wq) k0 = MatMul(x, Wk) kb = Add(k0, Wb) "
                  "v0 = MatMul(x, Wv) h = Constant<value_ints = [0, 0, 4, 8]>() f = Constant<value_ints = [0, 0, 32]>() c = Constant<value_float = 0.3535>() q1 = Reshape(q0, h) k1 = Reshape(kb, h) "
                  "v1 = Reshape(v0, h) q = Transpose<perm = [0, 2, 1, 3]>(q1) k = Transpose<perm = [0, 2, 3, 1]>(k1) v = Transpose<perm = [0, 2, 1, 3]>(v1) p = MatMul(q, k) m = Mul(p, c) "
                  "w = Softmax<axis = -1>(m) o = MatMul(w, v) t = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(t, f) }", ""),
    "masked_attention": ("(float[b,s,16] x, int64[b,s] mask) => (float[b,s,16] y) { k = Transpose<perm = [0, 2, 1]>(x) p = MatMul(x, k) f = Cast<to = 1>(mask) one = Constant<value_float = 1.0>() "
                         "big = Constant<value_float = -10000.0>() n = Sub(one, f) g = Mul(n, big) a = Constant<value_ints = [1]>() u = Unsqueeze(g, a) m = Add(p, u) w = Softmax<axis = -1>(m) "
                         "y = MatMul(w, x) }", "", (), {"mask": "bits"}),
    "causal": ("(float[b,s,16] x) => (float[b,s,16] y) { k = Transpose<perm = [0, 2, 1]>(x) p = MatMul(x, k) n = Shape<start = 1, end = 2>(x) nn = Concat<axis = 0>(n, n) "
               "low = Constant<value_float = -10000.0>() e = Expand(low, nn) one = Constant<value = int64 {1}>() t = Trilu<upper = 1>(e, one) m = Add(p, t) w = Softmax<axis = -1>(m) "
               "y = MatMul(w, x) }", ""),
    "einsum_attention": ("(float[b,s,12] x, float[b,t,12] z) => (float[b,t,12] y) { p = Einsum<equation = \"bth,bsh->bts\">(z, x) w = Softmax<axis = 2>(p) y = Einsum<equation = \"bts,bsh->bth\">(w, x) }", ""),
    "multi_head": ("(float[b,s,32] q, float[b,s,32] v) => (float[b,s,32] y) { y = com.microsoft.MultiHeadAttention<num_heads = 4>(q, q, v) }", ""),
    "cross": ("(float[b,t,32] q, float[b,s,32] k) => (float[b,t,32] y) { y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, k) }", ""),
    "conv": ("(float[b,4,s] x, float[6,4,3] W1, float[6] Wb, float[5,6,2] W2) => (float[b,5,t] y) { a = Conv<pads = [1, 1], strides = [2]>(x, W1, Wb) r = Exp(a) y = Conv<pads = [3, 0], dilations = [2]>(r, W2) }", ""),
    "pools": ("(float[b,4,s] x) => (float[b,4,t] y, float[b,4,u] z, float[b,4,1] g) { e = Exp(x) y = MaxPool<kernel_shape = [3], pads = [1, 1]>(e) "
              "z = AveragePool<kernel_shape = [4], strides = [2], pads = [2, 2], count_include_pad = 0>(e) g = GlobalAveragePool(e) }", ""),
    "means": ("(float[b,s,8] x) => (float[b,8] a, float[b,8] c, float[b,8] d, float[b,8] e, float[b,8] f, float[b,8] g) { ax = Constant<value_ints = [1]>() q = Exp(x) r = Reciprocal(x) "
              "a = ReduceMean<keepdims = 0>(r, ax) c = ReduceMax<keepdims = 0>(q, ax) n = Neg(q) d = ReduceMin<keepdims = 0>(n, ax) e = ReduceL2<keepdims = 0>(q, ax) "
              "f = ReduceLogSumExp<keepdims = 0>(x, ax) h = Sign(x) g = ReduceProd<keepdims = 0>(h, ax) }", ""),
    "all": ("(float[b,s] x) => (float y, bool z) { e = Exp(x) y = ReduceSum<keepdims = 0>(e) l = Less(x, e) c = Cast<to = 6>(l) m = ReduceMin<keepdims = 0>(c) z = Cast<to = 9>(m) }", ""),
    "integers": ("(int64[b,s] x) => (int64[b] y, int64[b] z, int64[b] w) { ax = Constant<value_ints = [1]>() o = Constant<value = int64 {7}>() a = Add(x, o) y = ReduceMax<keepdims = 0>(a, ax) n = Neg(a) "
                 "z = ReduceMax<keepdims = 0>(n, ax) w = ReduceMin<keepdims = 0>(a, ax) }", "", (), {"x": "integers"}),
    "layer_norm": ("(float[b,s,16] x, float[16] Ws, float[16] Wb) => (float[b,s,16] y) { y = LayerNormalization<axis = -1>(x, Ws, Wb) }", ""),
    "norm_over": ("(float[b,6,s] x, float[6] Ws, float[6] Wb) => (float[b,6,s] y) { y = InstanceNormalization(x, Ws, Wb) }", "norm"),
    "cumsum": ("(float[s,3] x) => (float[s,3] a, float[s,3] c, float[s,3] d, float[3] e) { z = Constant<value = int64 {0}>() q = Exp(x) a = CumSum(q, z) c = CumSum<reverse = 1>(q, z) "
               "d = CumSum<exclusive = 1, reverse = 1>(q, z) ax = Constant<value_ints = [0]>() e = ReduceSum<keepdims = 0>(c, ax) }", ""),
    "argmax": ("(float[b,s] x) => (int64[b] y, int64[b] z) { n = Neg(x) r = Relu(n) m = Neg(r) y = ArgMax<axis = 1, keepdims = 0>(m) z = ArgMin<axis = 1, keepdims = 0>(r) }", ""),
    "argmax_last": ("(float[b,s] x) => (int64[b] y) { r = Relu(x) m = Neg(r) y = ArgMax<axis = 1, keepdims = 0, select_last_index = 1>(m) }", "arg_reduce"),
    "concat": ("(float[b,s,4] x, float[1,2,4] W) => (float[b,t,4] y, float[b,s,8] z) { n = Shape<start = 0, end = 1>(x) o = Constant<value_ints = [2, 4]>() m = Concat<axis = 0>(n, o) e = Expand(W, m) "
               "q = Exp(x) y = Concat<axis = 1>(e, q) z = Concat<axis = 2>(q, x) }", ""),
    "concat_behind": ("(float[b,s,4] x, float[b,2,4] u) => (float[b,t,4] y, float[b,w,4] z) { q = Exp(x) y = Concat<axis = 1>(q, u) z = Concat<axis = 1>(q, x) }", ""),
    "cache": ("(float[b,s,16] past, float[b,1,16] x) => (float[b,1,16] y, float[b,t,16] next) { next = Concat<axis = 1>(past, x) k = Transpose<perm = [0, 2, 1]>(next) p = MatMul(x, k) w = Softmax<axis = -1>(p) "
              "y = MatMul(w, next) }", ""),
    "products": ("(float[b,s,8] x, float[b,s,5] z) => (float[b,8,5] y, float[b,s,s] g) { e = Exp(x) t = Transpose<perm = [0, 2, 1]>(e) y = MatMul(t, z) g = MatMul(e, t) }", ""),
    "embedding": ("(int64[b,s] ids, float[40,12] We, float[64,12] Wp) => (float[b,12] y) { e = Gather(We, ids) n = Shape<start = 1, end = 2>(ids) z = Constant<value = int64 {0}>() o = Constant<value = int64 {1}>() "
                  "ax = Constant<value_ints = [0]>() k = Squeeze(n, ax) r = Range(z, k, o) p = Gather(Wp, r) a = Add(e, p) m = Constant<value_ints = [1]>() y = ReduceMean<keepdims = 0>(a, m) }", "", (), {"ids": "ids"}),
    "indices": ("(float[b,s,4] x, int64[3] W0) => (float[b,4] last, float[b,3,4] some) { i = Constant<value = int64 {-1}>() e = Exp(x) last = Gather<axis = 1>(e, i) some = Gather<axis = 1>(e, W0) }", "", (), {"W0": "around"}),
    "points": ("(float[b,s,4] x, int64[7,2] W) => (float[7,4] y, float[b,s,1] z) { e = Exp(x) y = GatherND(e, W) n = Neg(e) i = ArgMax<axis = 2>(n) z = GatherElements<axis = 2>(e, i) }", "",
               (), {"W": "back"}),
    "slices": ("(float[b,s,4] x) => (float[b,1,4] a, float[b,t,4] c, float[b,s,4] d, float[b,u,4] e) { q = Exp(x) one = Constant<value_ints = [1]>() m1 = Constant<value_ints = [-1]>() z = Constant<value_ints = [0]>() "
               "far = Constant<value_ints = [9223372036854775807]>() low = Constant<value_ints = [-9223372036854775807]>() two = Constant<value_ints = [2]>() a = Slice(q, m1, far, one) c = Slice(q, z, far, one, two) "
               "d = Slice(q, m1, low, one, m1) e = Slice(q, z, m1, one) }", "slice"),
    "merged": ("(float[b,s,8] x, float[8,6] W) => (float[b,s,6] y, float[t] z) { r = Constant<value_ints = [-1, 8]>() f = Reshape(x, r) g = MatMul(f, W) h = Shape<start = 0, end = 2>(x) c = Constant<value_ints = [6]>() "
               "n = Concat<axis = 0>(h, c) y = Reshape(g, n) m = Constant<value_ints = [-1]>() z = Reshape(y, m) }", "reshape"),
    "led": ("(float[s,2,8] x, float[8,6] W) => (float[t,6] y, float[6] z) { r = Constant<value_ints = [-1, 8]>() f = Reshape(x, r) y = MatMul(f, W) e = Exp(y) ax = Constant<value_ints = [0]>() z = ReduceSum<keepdims = 0>(e, ax) }", ""),
    "pads": ("(float[b,s] x) => (float[b,t] y, float[b] z) { e = Exp(x) p = Constant<value_ints = [0, 3, 0, 2]>() v = Constant<value_float = -2.0>() y = Pad(e, p, v) ax = Constant<value_ints = [1]>() z = ReduceMin<keepdims = 0>(y, ax) }", ""),
    "reflect": ("(float[b,s] x) => (float[b,t] y) { e = Exp(x) p = Constant<value_ints = [0, 1, 0, 1]>() y = Pad<mode = \"reflect\">(e, p) }", ""),
    "tops": ("(float[b,s] x) => (float[b,1] y, int64[b,1] i, float[b,s] z) { k = Constant<value_ints = [1]>() e = Exp(x) y, i = TopK<axis = 1>(e, k) z = LogSoftmax<axis = 1>(e) }", "arg_sort"),
    "gru": ("(float[s,b,4] x, float[1,9,4] W, float[1,9,3] Wr) => (float[s,1,b,3] y, float[1,b,3] z) { y, z = GRU<hidden_size = 3>(x, W, Wr) }", "rnn*"),
    "gru_batch": ("(float[t,s,4] x, float[1,9,4] W, float[1,9,3] Wr) => (float[t,1,s,3] y, float[1,s,3] z) { y, z = GRU<hidden_size = 3>(x, W, Wr) }", ""),
    "scatter": ("(float[b,s] x, int64[b,2] W, float[b,2] u) => (float[b,s] y) { e = Exp(x) y = ScatterElements<axis = 1>(e, W, u) }", "scatter_elements", ("--dim", "b=3"), {"W": "few"}),
    "fft": ("(float[b,s,1] x) => (float[b,s,2] y) { z = Constant<value = int64 {1}>() n = Constant<value_ints = [0]>() e = Exp(x) y = DFT(e, , z) }", "fft*"),
    "resize": ("(float[b,2,s] x) => (float[b,2,t] y) { e = Exp(x) c = Constant<value_floats = [1.0, 1.0, 2.0]>() y = Resize<mode = \"linear\">(e, , c) }", ""),
    "tiles": ("(float[s,4] x) => (float[t,4] y, float[u,4] z) { r = Constant<value_ints = [2, 1]>() e = Exp(x) y = Tile(e, r) k = Constant<value_ints = [1, 2]>() w = Tile(e, k) q = Constant<value_ints = [-1, 4]>() z = Reshape(w, q) }", "reshape"),
    "split": ("(float[b,6,s] x) => (float[b,2,s] y) { a, c, d = Split<axis = 1, num_outputs = 3>(x) e = Mul(a, c) y = Sub(e, d) }", ""),
    "branch": ("(float[b,s] x, bool c) => (float[b,s] y) { e = Exp(x) y = If(c) <then_branch = g1 () => (float[b,s] u) { u = Softmax<axis = 1>(e) }, else_branch = g2 () => (float[b,s] v) { v = Neg(e) }> }", "*"),
    "nonzero": ("(float[s] x) => (int64[1,n] y) { y = NonZero(x) }", "*"),
    "halves": ("(float16[b,s,16] x) => (float16[b,s,16] y) { k = Transpose<perm = [0, 2, 1]>(x) p = MatMul(x, k) w = Softmax<axis = -1>(p) y = MatMul(w, x) }", ""),
    "two": ("(float[s,t,8] x) => (float[8] y, float[s,t] z) { e = Exp(x) ax = Constant<value_ints = [0, 1]>() y = ReduceMean<keepdims = 0>(e, ax) b = Constant<value_ints = [2]>() r = ReduceSum<keepdims = 0>(e, b) "
            "z = Softmax<axis = 0>(r) }", "", ("--dim", "t=bucket:4,12")),
    "listed": ("(float[b,s] x) => (float[b] y) { e = Exp(x) ax = Constant<value_ints = [1]>() y = ReduceMean<keepdims = 0>(e, ax) }", "", ("--dim", "b=1,3,1..9")),
    "bounds": ("(int64[b,s] ids, float[40,12] We) => (float[b,12] y) { o = Constant<value = int64 {50}>() n = Neg(ids) a = Add(n, o) e = Gather(We, a) m = Constant<value_ints = [1]>() y = ReduceMean<keepdims = 0>(e, m) }", "",
               ("--check-bounds",), {"ids": "above"}),
}
BUCKETS = [4, 16, 40]


def make(text, rng, kinds):
    model = parser.parse_model('<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]> g ' + text)
    for value in [v for v in model.graph.input if v.name[0] == "W"]:
        model.graph.input.remove(value)
        tensor = value.type.tensor_type
        dims = [d.dim_value or 3 for d in tensor.shape.dim]
        model.graph.initializer.append(numpy_helper.from_array(values(rng, dims, helper.tensor_dtype_to_np_dtype(tensor.elem_type), kinds.get(value.name)), value.name))
    return model


def values(rng, dims, dtype, kind):
    if dtype == np.bool_:
        return rng.integers(0, 2, dims).astype(dtype)
    if kind:
        low, high = {"bits": (0, 2), "ids": (-40, 40), "few": (0, 2), "around": (-3, 3), "back": (-1, 1), "integers": (-90, 90), "above": (11, 50)}[kind]
        return rng.integers(low, high, dims).astype(dtype)
    return rng.standard_normal(dims).astype(dtype)


def run(*command, code=0):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != code:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check(bin_dir, name, folder):
    text, exact, options, kinds = (CASES[name] + ((), {}))[:4] if len(CASES[name]) == 2 else (CASES[name] + ({},))[:4]
    rng = np.random.default_rng(len(name) + sum(map(ord, name)))
    model = make(text, rng, kinds)
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    tool = lambda tool: os.path.join(bin_dir, tool)
    buckets = ",".join(map(str, BUCKETS))
    plain = [option for option in options if "bucket" not in option and option != "--dim" or option == "--dim" and "bucket" not in options[options.index(option) + 1]]
    run(tool("tc-compile"), path, "-o", path + ".open.bin", "-q", "--cpu", "x86-64-v3", *plain)
    said = run(tool("tc-compile"), path, "-o", path + ".bin", "-q", "--cpu", "x86-64-v3", "--dim", "s=bucket:" + buckets, *options)
    found = re.search("padding would change results: (.*)", said)
    names = {entry.split(" of ")[0] for entry in found[1].split(", ")} if found else set()
    allowed = exact.rstrip("*").split(", ") if exact else []
    if not exact.endswith("*") and names != set(allowed):
        raise SystemExit(f"{name}: {sorted(names)} are not padded, expected {allowed}\n{said}")
    sizes = sorted({1, 2, 3, 4, 5, 15, 16, 17, 39, 40, *rng.integers(1, 41, 3).tolist()})
    for size in sizes:
        dims = {"s": size, "b": int(rng.integers(1, 4)), "t": int(rng.integers(1, 13))}
        if "--dim" in options and "b=3" in options:
            dims["b"] = 3
        arrays = {}
        for value in model.graph.input:
            tensor = value.type.tensor_type
            shape = [dims[d.dim_param] if d.dim_param else d.dim_value for d in tensor.shape.dim]
            arrays[value.name] = values(rng, shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type), kinds.get(value.name))
        if name in ("scatter", "reflect", "indices") and size < 3:
            continue
        np.savez(path + ".in.npz", **arrays)
        run(tool("tc-run"), path + ".open.bin", "--inputs", path + ".in.npz", "--outputs", path + ".out.npz")
        said = run(tool("tc-run"), path + ".bin", "--inputs", path + ".in.npz", "--expect", path + ".out.npz", "--max-rel", "2e-3" if name == "halves" else "3e-5", "--json", "-")
        bucket = next(b for b in BUCKETS if size <= b)
        if name != "nonzero" and f"s<={bucket}" not in re.search('"entry": "(.*?)"', said)[1]:
            raise SystemExit(f"{name}: s = {size} ran by {re.search('.entry.*', said)[0]}")
    run(tool("tc-run"), path + ".bin", "--random-inputs", "--dim", "s=41", code=4)
    print(f"{name}: {len(sizes)} sizes" + (f"; not padded: {', '.join(sorted(names))}" if names else ""), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        for case in sys.argv[2:] or CASES:
            check(sys.argv[1], case, root)
