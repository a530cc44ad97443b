# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of kernels.py, by name, and what they are made of: operators in float64."""
import numpy as np
from onnx import helper

CASES = {}


def info(name, dims, element):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(element)), dims)


def case(name, nodes, inputs, outputs, reference, shapes, constants=(), tolerance=2e-6, threads=(1, 2), element=np.float32):
    """`inputs`: declared dims by name; `shapes`: dicts of real shapes, or of values; `reference`: from float64 arrays to float64
    arrays; `tolerance`: of the largest value, or a pair (rtol, atol) for each; `element`: of all inputs and outputs."""
    CASES[name] = (nodes, inputs, outputs, reference, shapes, dict(constants), tolerance, threads, element)


def matmul(trans_a=False, trans_b=False):
    def nodes():
        out = []
        names = ["a", "b"]
        for i, transposed in enumerate((trans_a, trans_b)):
            if transposed:
                out.append(helper.make_node("Transpose", [names[i]], [names[i] + "t"], perm=[0, 2, 1]))
                names[i] += "t"
        return out + [helper.make_node("MatMul", names, ["y"])]

    def reference(v):
        a, b = (v[n].transpose(0, 2, 1) if t else v[n] for n, t in (("a", trans_a), ("b", trans_b)))
        return [a @ b]
    return nodes(), reference


def random(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def recurrent(kind, x, hidden, cell, w, r, bias, peephole, lengths, linear, reverse):
    """One direction of a recurrent layer: all results, the last hidden state and cell."""
    def logistic(a):
        return 1 / (1 + np.exp(-a))
    size, y, (wb, rb) = r.shape[1], np.zeros((*x.shape[:2], r.shape[1])), np.split(bias, 2)
    p = np.split(peephole, 3)
    for t in range(len(x))[::-1 if reverse else 1]:
        given, own = np.split(x[t] @ w.T + wb, len(r) // size, 1), np.split(hidden @ r.T + rb, len(r) // size, 1)
        if kind == "LSTM":
            i, f, c = logistic(given[0] + own[0] + p[0] * cell), logistic(given[2] + own[2] + p[2] * cell), np.tanh(given[3] + own[3])
            new_cell = f * cell + i * c
            new = logistic(given[1] + own[1] + p[1] * new_cell) * np.tanh(new_cell)
        elif kind == "GRU":
            z, s, new_cell = logistic(given[0] + own[0]), logistic(given[1] + own[1]), cell
            new = (1 - z) * np.tanh(given[2] + (s * own[2] if linear else (s * hidden) @ r[2 * size:].T + rb[2 * size:])) + z * hidden
        else:
            new, new_cell = np.tanh(given[0] + own[0]), cell
        on = (t < lengths)[:, None]
        y[t], hidden, cell = np.where(on, new, 0), np.where(on, new, hidden), np.where(on, new_cell, cell)
    return y, hidden, cell


def convolve_any(x, filters, strides, dilations, low, high, groups):
    """A convolution of x [N, C, S..] over any number of dims."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(low, high)])
    out = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(x.shape[2:], dilations, filters.shape[2:], strides)]
    parts = []
    for part, filter in zip(np.split(x, groups, 1), np.split(filters.astype(np.float64), groups)):
        total = np.zeros((x.shape[0], filter.shape[0], *out))
        for taps in np.ndindex(*filter.shape[2:]):
            window = part[(slice(None), slice(None), *[slice(k * d, k * d + (t - 1) * s + 1, s) for k, d, t, s in zip(taps, dilations, out, strides)])]
            total += np.einsum("nc...,oc->no...", window, filter[(slice(None), slice(None), *taps)])
        parts.append(total)
    return np.concatenate(parts, 1)


def convolve(x, w, stride, pad, groups):
    return convolve_any(x, w, [stride] * 2, [1] * 2, [pad] * 2, [pad] * 2, groups)


def convolve_transposed(x, w, stride, pad, extra, groups, dilation=1):
    n, c, h, v = x.shape
    per, k = w.shape[1], w.shape[2:]
    y = np.zeros((n, per * groups, *((size - 1) * stride + (taps - 1) * dilation + 1 + extra for size, taps in ((h, k[0]), (v, k[1])))))
    for g in range(groups):
        rows = slice(g * c // groups, (g + 1) * c // groups)
        for i in range(k[0]):
            for j in range(k[1]):
                part = np.einsum("nchw,co->nohw", x[:, rows], w[rows, :, i, j])
                top, left = i * dilation, j * dilation
                y[:, g * per:(g + 1) * per, top:top + h * stride:stride, left:left + v * stride:stride][:, :, :h, :v] += part
    end = [y.shape[2] - pad, y.shape[3] - pad]
    return y[:, :, pad:end[0], pad:end[1]]
