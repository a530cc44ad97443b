# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Larger operators: recurrent networks, attention, signal processing, detection, losses, windows with every padding."""
import numpy as np
from onnx import numpy_helper

from generate import NoFit
from opinion import onnx_type
from operators import FLOAT_TYPES, INTEGER_TYPES, operator, types_of
from operators_products import resize_function, transposed_convolution, window

F32 = np.dtype(np.float32)


def sizes(g, rank, low=1, high=6):
    return tuple(g.integer(low, high) for _ in range(rank))


def is_tame(value):
    return value.is_finite() and 0 not in value.shape and (value.size == 0 or np.abs(value.array).max() < 1e3)


def drawn(g, dtype, shape, kind="normal"):
    """A value of this type and shape, of numbers of one magnitude."""
    return g.pick({dtype}, lambda v: v.shape == tuple(shape) and is_tame(v), lambda: g.leaf(dtype, tuple(shape), kind), p_new=0.5)


# --- recurrent networks

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"Sigmoid": sigmoid, "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0), "Softsign": lambda x: x / (1 + np.abs(x))}


@operator(weight=2)
def recurrent(g):
    op = g.choice(["RNN", "GRU", "LSTM"])
    dtype = g.dtype(types_of(g, op, among={F32, np.dtype(np.float64), np.dtype(np.float16)}))
    steps, batch, width, hidden = g.integer(1, 5), g.integer(1, 3), g.integer(1, 9), g.choice([1, 2, 3, 4, 5, 8, 17])
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    direction = g.choice(["forward", "forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    layout = g.integer(0, 1) if g.opset >= 14 and g.chance(0.3) else 0
    x = drawn(g, dtype, (batch, steps, width) if layout else (steps, batch, width))
    w, r = g.leaf(dtype, (dirs, gates * hidden, width), "normal"), g.leaf(dtype, (dirs, gates * hidden, hidden), "normal")
    inputs = [x, w, r, g.leaf(dtype, (dirs, 2 * gates * hidden), "normal") if g.chance(0.7) else ""]
    lengths = g.rng.integers(1, steps + 1, batch).astype(np.int32) if g.chance(0.4) else None
    inputs.append("" if lengths is None else g.constant(lengths) if g.chance(0.5) or g.is_body else g.input(lengths))
    state = (batch, dirs, hidden) if layout else (dirs, batch, hidden)
    inputs.append(g.leaf(dtype, state, "normal") if g.chance(0.5) else "")
    peephole = op == "LSTM" and g.chance(0.3)
    if op == "LSTM":
        inputs.append(g.leaf(dtype, state, "normal") if g.chance(0.5) else "")
        inputs.append(g.leaf(dtype, (dirs, 3 * hidden), "normal") if peephole else "")
    while not inputs[-1]:
        inputs.pop()
    attributes = {"hidden_size": hidden, "direction": direction}
    if g.opset >= 14 and layout:
        attributes["layout"] = 1
    functions = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[op] * dirs
    if g.chance(0.3):
        functions = [g.choice(sorted(ACTIVATIONS)) for _ in functions]
        attributes["activations"] = functions
    clip = g.choice([0.5, 2.0]) if g.chance(0.2) else None
    if clip:
        attributes["clip"] = clip
    before = op == "GRU" and g.chance(0.5)
    if op == "GRU":
        attributes["linear_before_reset"] = 0 if before else 1
    forget = op == "LSTM" and g.chance(0.15)
    if forget:
        attributes["input_forget"] = 1
    bound = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)

    def run(x, w, r, b=None, _=None, h0=None, c0=None, peep=None):
        if layout:
            x = x.swapaxes(0, 1)
            h0 = None if h0 is None else h0.swapaxes(0, 1)
            c0 = None if c0 is None else c0.swapaxes(0, 1)
        y, hs, cs = np.zeros((steps, dirs, batch, hidden)), np.zeros((dirs, batch, hidden)), np.zeros((dirs, batch, hidden))
        for d in range(dirs):
            act = [ACTIVATIONS[f] for f in functions[d * len(functions) // dirs : (d + 1) * len(functions) // dirs]]
            biases = np.zeros(2 * gates * hidden) if b is None else b[d]
            wb, rb = np.split(biases, 2)
            p = np.zeros((3, hidden)) if peep is None else peep[d].reshape(3, hidden)  # i, o, f
            for n in range(batch):
                h = np.zeros(hidden) if h0 is None else h0[d, n]
                c = np.zeros(hidden) if c0 is None else c0[d, n]
                count = steps if lengths is None else int(lengths[n])
                for t in range(count)[:: -1 if direction == "reverse" or d else 1]:
                    xs = np.split(w[d] @ x[t, n] + wb, gates)
                    hr = np.split(r[d] @ h, gates)
                    rs = np.split(rb, gates)
                    if op == "RNN":
                        h = act[0](bound(xs[0] + hr[0] + rs[0]))
                    elif op == "GRU":
                        z, reset = act[0](bound(xs[0] + hr[0] + rs[0])), act[0](bound(xs[1] + hr[1] + rs[1]))
                        inner = r[d][2 * hidden :] @ (reset * h) + rs[2] if before else reset * (hr[2] + rs[2])
                        h = (1 - z) * act[1](bound(xs[2] + inner)) + z * h
                    else:
                        i = act[0](bound(xs[0] + hr[0] + rs[0] + p[0] * c))
                        f = 1 - i if forget else act[0](bound(xs[2] + hr[2] + rs[2] + p[2] * c))
                        c = f * c + i * act[1](bound(xs[3] + hr[3] + rs[3]))
                        h = act[0](bound(xs[1] + hr[1] + rs[1] + p[1] * c)) * act[2](bound(c))
                    y[t, d, n] = h
                hs[d, n], cs[d, n] = h, c
        if layout:
            y, hs, cs = y.transpose(2, 0, 1, 3), hs.swapaxes(0, 1), cs.swapaxes(0, 1)
        return [v for v, has in zip([y, hs, cs], results) if has]

    results = [g.chance(0.7) for _ in range(3 if op == "LSTM" else 2)]
    results[0] = results[0] or not any(results)
    g.add(op, inputs, [dtype] * len(results), run, outputs=results, **attributes)


# --- attention

@operator(since=23, weight=2)
def attention(g):
    dtype = g.dtype({F32, np.dtype(np.float64), np.dtype(np.float16)})
    batch, queries, keys = g.integer(1, 2), g.integer(1, 6), g.integer(1, 7)
    kv_heads = g.integer(1, 2)
    heads, size, v_size = kv_heads * g.integer(1, 2), g.choice([1, 2, 4, 8]), g.choice([1, 3, 4, 8])
    attributes = {}
    if g.chance(0.6):
        shapes = [(batch, heads, queries, size), (batch, kv_heads, keys, size), (batch, kv_heads, keys, v_size)]
    else:
        shapes = [(batch, queries, heads * size), (batch, keys, kv_heads * size), (batch, keys, kv_heads * v_size)]
        attributes.update(q_num_heads=heads, kv_num_heads=kv_heads)
    inputs = [drawn(g, dtype, shape) for shape in shapes]
    past = g.integer(1, 3) if g.chance(0.25) else 0
    if g.chance(0.5):
        shape = g.choice([(queries, past + keys), (1, 1, queries, past + keys), (batch, heads, queries, past + keys)])
        if g.chance(0.5):
            mask = g.rng.random(shape) < 0.7
            mask[..., 0] = True  # a row without a key has no softmax
            inputs.append(g.constant(mask) if g.is_body or g.chance(0.5) else g.input(mask))
        else:
            inputs.append(drawn(g, dtype, shape))
    if past:
        inputs += [""] if len(inputs) == 3 else []
        inputs += [drawn(g, dtype, (batch, kv_heads, past, size)), drawn(g, dtype, (batch, kv_heads, past, v_size))]
    if g.chance(0.4):
        attributes["is_causal"] = 1
    if g.chance(0.3):
        attributes["scale"] = g.choice([0.25, 0.5, 1.0])
    if g.chance(0.2):
        attributes["softcap"] = g.choice([1.0, 4.0])
    outputs = [True, past > 0, past > 0]
    g.add("Attention", inputs, [dtype] * 3, None, outputs=outputs, **attributes)


@operator(since=23)
def rotary_embedding(g):
    dtype = g.dtype({F32, np.dtype(np.float16)})
    batch, steps, heads, size = g.integer(1, 2), g.integer(1, 4), g.integer(1, 3), 2 * g.integer(1, 5)
    rotated = size if g.chance(0.6) else 2 * g.integer(1, size // 2)
    attributes = {"interleaved": g.integer(0, 1)}
    if rotated != size:
        attributes["rotary_embedding_dim"] = rotated
    if g.chance(0.5):
        shape = (batch, heads, steps, size)
    else:
        shape = (batch, steps, heads * size)
        attributes["num_heads"] = heads
    x = drawn(g, dtype, shape)
    if g.chance(0.6):
        rows = g.integer(1, 6)
        cache = (rows, rotated // 2)
        ids = g.rng.integers(0, rows, (batch, steps)).astype(np.int64)
        extra = [g.constant(ids) if g.is_body or g.chance(0.5) else g.input(ids)]
    else:
        cache, extra = (batch, steps, rotated // 2), []
    g.add("RotaryEmbedding", [x, g.leaf(dtype, cache, "normal"), g.leaf(dtype, cache, "normal"), *extra], [dtype], **attributes)


@operator(since=24)
def tensor_scatter(g):
    x = g.pick(types_of(g, "TensorScatter"), lambda v: 0 not in v.shape, least_rank=3)
    shape = g[x].shape
    axis = g.integer(1, len(shape) - 1)
    n = g.integer(1, shape[axis])
    update = g.leaf(g[x].dtype, (*shape[:axis], n, *shape[axis + 1 :]))
    circular = g.chance(0.4)
    at = g.rng.integers(0, shape[axis] if circular else shape[axis] - n + 1, shape[0]).astype(np.int64)

    def write(cache, new, places=None):
        result = cache.copy()
        for b in range(shape[0]):
            rows, source = np.moveaxis(result[b], axis - 1, 0), np.moveaxis(new[b], axis - 1, 0)
            for i in range(n):
                rows[((0 if places is None else int(places[b])) + i) % shape[axis]] = source[i]
        return [result]

    inputs = [x, update] + ([g.constant(at)] if g.chance(0.8) else [])
    g.add("TensorScatter", inputs, [g[x].dtype], write, axis=axis - g.integer(0, 1) * len(shape), mode="circular" if circular else "linear")


@operator(since=27)
def causal_conv(g):
    dtype = g.dtype({F32, np.dtype(np.float16)})
    batch, channels, steps, k = g.integer(1, 2), g.integer(1, 4), g.integer(1, 7), g.integer(1, 4)
    inputs = [drawn(g, dtype, (batch, channels, steps)), g.leaf(dtype, (channels, 1, k), "normal"), g.leaf(dtype, (channels,), "normal") if g.chance(0.5) else ""]
    if k > 1 and g.chance(0.5):
        inputs.append(drawn(g, dtype, (batch, channels, k - 1)))
    while not inputs[-1]:
        inputs.pop()
    g.add("CausalConvWithState", inputs, [dtype, dtype], **({"activation": g.choice(["silu", "none"])}))


@operator(since=27)
def linear_attention(g):
    dtype = F32
    batch, steps, kv_heads, dk, dv = g.integer(1, 2), g.integer(1, 4), g.integer(1, 2), g.integer(1, 4), g.integer(1, 4)
    heads = kv_heads * g.integer(1, 2)
    rule = g.choice(["linear", "gated", "delta", "gated_delta"])
    inputs = [drawn(g, dtype, (batch, steps, heads * dk)), drawn(g, dtype, (batch, steps, kv_heads * dk)), drawn(g, dtype, (batch, steps, kv_heads * dv)),
              drawn(g, dtype, (batch, kv_heads, dk, dv)) if g.chance(0.5) else "",
              g.leaf(dtype, (batch, steps, kv_heads * (dk if g.chance(0.5) else 1)), "unit") if "gated" in rule else "",
              g.leaf(dtype, (batch, steps, kv_heads), "unit") if "delta" in rule else ""]  # fmt: skip
    while not inputs[-1]:
        inputs.pop()
    g.add("LinearAttention", inputs, [dtype, dtype], q_num_heads=heads, kv_num_heads=kv_heads, update_rule=rule)


@operator(since=28)
def swiglu(g):
    x = g.pick({F32, np.dtype(np.float64)} & types_of(g, "SwiGLU"), is_tame)
    y = drawn(g, g[x].dtype, g[x].shape)
    g.add("SwiGLU", [x, y], [g[x].dtype], **({"alpha": g.choice([0.5, 1.5])} if g.chance(0.5) else {}))


# --- signals

@operator(since=17)
def dft(g):
    dtype = g.dtype({F32, np.dtype(np.float64)})
    inverse, real = g.integer(0, 1), g.chance(0.5)
    shape = (*sizes(g, g.integer(1, 2), 1, 3), g.integer(1, 9))
    onesided = real and not inverse and g.chance(0.4)
    x = drawn(g, dtype, (*shape, 1 if real else 2))
    axis = g.integer(1, len(shape) - 1) if len(shape) > 1 else 0
    length = g.integer(1, 9) if g.chance(0.4) else None

    def transform(a, n=None, _=None):
        values = a[..., 0] + (1j * a[..., 1] if a.shape[-1] == 2 else 0)
        n = values.shape[axis] if n is None else int(n)
        result = (np.fft.ifft if inverse else np.fft.fft)(values, n, axis)
        if onesided:
            result = np.take(result, range(n // 2 + 1), axis)
        return [np.stack([result.real, result.imag], -1)]

    inputs = [x, g.constant(np.asarray(length, np.int64)) if length else ""]
    attributes = {"inverse": inverse, "onesided": int(onesided)}
    if g.opset >= 20:
        inputs.append(g.constant(np.asarray(axis, np.int64)))
    else:
        attributes["axis"] = axis
        if not inputs[-1]:
            inputs.pop()
    g.add("DFT", inputs, [dtype], transform, **attributes)


@operator(since=17)
def stft(g):
    batch, length, step = g.integer(1, 2), g.integer(6, 20), g.integer(1, 4)
    frame = g.integer(2, 6)
    x = drawn(g, F32, (batch, length, 1))
    has_window, onesided = g.chance(0.6), g.integer(0, 1)
    inputs = [x, g.constant(np.asarray(step, np.int64)), g.leaf(F32, (frame,), "normal") if has_window else "", g.constant(np.asarray(frame, np.int64))]

    def transform(a, _, weights, __):
        frames = [a[:, s : s + frame, 0] * (1 if weights is None else weights) for s in range(0, length - frame + 1, step)]
        result = np.fft.fft(np.stack(frames, 1), axis=-1)
        result = result[..., : frame // 2 + 1] if onesided else result
        return [np.stack([result.real, result.imag], -1)]

    g.add("STFT", inputs, [F32], transform, onesided=onesided)


@operator(since=17)
def window_function(g):
    op = g.choice(["HannWindow", "HammingWindow", "BlackmanWindow"])
    dtype = g.dtype({F32, np.dtype(np.float64)})
    size = g.integer(2, 12)
    periodic = g.integer(0, 1)
    # The bodies of these functions have constants of f32: HammingWindow's are not those of textbooks.
    a = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (float(np.float32(25 / 46)), float(np.float32(21 / 46)), 0), "BlackmanWindow": (0.42, 0.5, 0.08)}[op]

    def make(_):
        at = 2 * np.pi * np.arange(size) / (size if periodic else size - 1)
        return [a[0] - a[1] * np.cos(at) + a[2] * np.cos(2 * at)]

    if dtype != F32:
        raise NoFit
    g.add(op, [g.constant(np.asarray(size, np.int64))], [dtype], make, periodic=periodic, output_datatype=onnx_type(dtype))


# --- matrices and windows

@operator(since=11)
def det(g):
    n = g.integer(1, 4)
    x = drawn(g, g.dtype({F32, np.dtype(np.float64)}), (*sizes(g, g.integer(0, 2), 1, 3), n, n))
    g.add("Det", [x], [g[x].dtype], lambda a: [np.linalg.det(a)])


@operator(since=18)
def col2im(g):
    rank = g.integer(1, 2)
    spatial = sizes(g, rank, 2, 6)
    kernel, strides, dilations, pads = window(g, spatial)
    count = [(s + pads[i] + pads[i + rank] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, s in enumerate(spatial)]
    x = drawn(g, F32, (g.integer(1, 2), g.integer(1, 3) * int(np.prod(kernel)), int(np.prod(count))))
    g.add("Col2Im", [x, g.constant(np.asarray(spatial, np.int64)), g.constant(np.asarray(kernel, np.int64))], [F32], strides=strides, dilations=dilations, pads=pads)


@operator(weight=2)
def pool_auto_pad(g):
    """Pools with auto_pad or ceil_mode, and MaxPool's indices."""
    op = g.choice(["MaxPool", "AveragePool"])
    spatial = sizes(g, g.integer(1, 3), 2, 9)
    x = drawn(g, g.dtype({F32, np.dtype(np.float16), np.dtype(np.float64)} & types_of(g, op)), (g.integer(1, 2), g.integer(1, 3), *spatial))
    kernel = [g.integer(1, min(3, s)) for s in spatial]
    strides = [g.integer(1, 3) for _ in spatial]
    attributes = {"kernel_shape": kernel, "strides": strides}
    rank = len(spatial)
    if g.chance(0.6) or g.opset < 10:
        mode = g.choice(["VALID", "SAME_UPPER", "SAME_LOWER"])
        attributes["auto_pad"] = mode
        if mode == "VALID":
            count, pads = [(s - k) // t + 1 for s, k, t in zip(spatial, kernel, strides)], [0] * 2 * rank
        else:
            count = [-(-s // t) for s, t in zip(spatial, strides)]
            total = [max((c - 1) * t + k - s, 0) for c, t, k, s in zip(count, strides, kernel, spatial)]
            head = [p // 2 if mode == "SAME_UPPER" else p - p // 2 for p in total]
            pads = head + [p - h for p, h in zip(total, head)]
    else:
        pads = [g.integer(0, k - 1) for k in kernel * 2]
        attributes.update(pads=pads, ceil_mode=1)
        count = []
        for i, s in enumerate(spatial):
            n = -(-(s + pads[i] + pads[rank + i] - kernel[i]) // strides[i]) + 1
            # No window starts in the padding at the end: so say the later versions.
            last = (n - 1) * strides[i] >= s + pads[i]
            if last and g.opset < 22:
                raise NoFit
            count.append(n - last)
    count_pads = op == "AveragePool" and g.chance(0.4)
    if count_pads:
        attributes["count_include_pad"] = 1
    wants_indices = op == "MaxPool" and g.opset >= 8 and g.chance(0.4)
    order = g.integer(0, 1) if wants_indices else 0
    if order:
        attributes["storage_order"] = 1

    def reduce_windows(array):
        result = np.zeros((*array.shape[:2], *count))
        places = np.zeros(result.shape, np.int64)
        numbers = np.arange(int(np.prod(spatial))).reshape(spatial, order="F" if order else "C")
        for at in np.ndindex(*count):
            low = [a * t - p for a, t, p in zip(at, strides, pads)]
            inside = tuple(slice(max(v, 0), min(v + k, s)) for v, k, s in zip(low, kernel, spatial))
            part = array[(..., *inside)].reshape(*array.shape[:2], -1)
            if op == "MaxPool":
                best = part.argmax(-1)
                result[(..., *at)] = part.max(-1)
                for n, c in np.ndindex(*array.shape[:2]):
                    places[(n, c, *at)] = numbers[inside].reshape(-1)[best[n, c]] + (n * array.shape[1] + c) * numbers.size
            else:
                # Padding counts up to its end, not what ceil_mode adds behind.
                full = np.prod([min(v + k, s + pads[rank + i]) - v for i, (v, k, s) in enumerate(zip(low, kernel, spatial))])
                result[(..., *at)] = part.sum(-1) / (full if count_pads else part.shape[-1])
        return [result, places] if wants_indices else [result]

    g.add(op, [x], [g[x].dtype] + ([np.int64] if wants_indices else []), reduce_windows, **attributes)


@operator(weight=2)
def conv_transpose_shapes(g):
    """A transposed convolution whose pads follow from auto_pad or output_shape."""
    spatial = sizes(g, g.integer(1, 2), 1, 6)
    rank = len(spatial)
    channels, filters = g.integer(1, 4), g.integer(1, 4)
    kernel, strides = [g.integer(1, 3) for _ in spatial], [g.integer(1, 3) for _ in spatial]
    x = drawn(g, F32, (g.integer(1, 2), channels, *spatial))
    w = g.leaf(F32, (channels, filters, *kernel), "normal")
    attributes = {"strides": strides, "kernel_shape": kernel}
    full = [(s - 1) * t + k for s, t, k in zip(spatial, strides, kernel)]
    if g.chance(0.5):
        mode = g.choice(["SAME_UPPER", "SAME_LOWER"])
        target = [s * t for s, t in zip(spatial, strides)]
        attributes["auto_pad"] = mode
        if any(t > f for t, f in zip(target, full)):
            raise NoFit
    else:
        mode = "SAME_UPPER"
        target = [g.integer(max(1, f - 2), f) for f in full]
        attributes["output_shape"] = target
        if g.chance(0.5):
            mode = attributes["auto_pad"] = g.choice(["SAME_UPPER", "SAME_LOWER"])
        else:
            mode = "NOTSET"
    total = [f - t for f, t in zip(full, target)]
    # The odd element of the padding goes to the end for SAME_UPPER and to the front else.
    head = [p // 2 if mode == "SAME_UPPER" else p - p // 2 for p in total]

    tail = [p - h for p, h in zip(total, head)]
    function = transposed_convolution(1, strides, [1] * rank, head + tail, [0] * rank)
    g.add("ConvTranspose", [x, w], [F32], function, **attributes)


@operator(weight=1)
def global_lp_pool(g):
    op = g.choice(["GlobalLpPool", "MeanVarianceNormalization"] if g.opset >= 9 else ["GlobalLpPool"])
    x = drawn(g, F32, (g.integer(1, 3), g.integer(1, 4), *sizes(g, g.integer(1, 2), 1, 7)))
    if op == "GlobalLpPool":
        p = g.integer(1, 3)
        g.add(op, [x], [F32], lambda a: [(np.abs(a) ** p).sum(tuple(range(2, a.ndim)), keepdims=True) ** (1 / p)], p=p)
    else:
        axes = sorted(int(a) for a in g.rng.permutation(g[x].array.ndim)[: g.integer(1, 3)])
        reduced = tuple(axes)
        # The body that ONNX gives subtracts the square of the mean from the mean of the squares: open is what that leaves of a small difference.
        if (g[x].array.mean(reduced) ** 2 > 0.5 * g[x].array.var(reduced)).any():
            raise NoFit

        def norm(a):
            center = a - a.mean(reduced, keepdims=True)
            return [center / (np.sqrt((center**2).mean(reduced, keepdims=True)) + 1e-9)]

        g.add(op, [x], [F32], norm, axes=axes)


@operator(since=11)
def max_unpool(g):
    spatial = sizes(g, 2, 1, 4)
    n, c = g.integer(1, 2), g.integer(1, 2)
    x = drawn(g, F32, (n, c, *spatial))
    kernel = strides = [g.integer(1, 2), g.integer(1, 2)]
    whole = [(s - 1) * t + k for s, k, t in zip(spatial, kernel, strides)]
    plane = int(np.prod(whole))
    places = np.stack([g.rng.choice(plane, int(np.prod(spatial)), False) + i * plane for i in range(n * c)]).reshape(n, c, *spatial)

    def scatter(array, i):
        result = np.zeros(n * c * plane)
        result[i.reshape(-1)] = array.reshape(-1)
        return [result.reshape(n, c, *whole)]

    g.add("MaxUnpool", [x, g.constant(places.astype(np.int64))], [F32], scatter, kernel_shape=kernel, strides=strides)


# --- sampling and detection

@operator(since=16)
def grid_sample(g):
    rank = 2 if g.opset < 20 or g.chance(0.8) else 3
    spatial, target = sizes(g, rank, 1, 5), sizes(g, rank, 1, 4)
    n = g.integer(1, 2)
    x = drawn(g, F32, (n, g.integer(1, 3), *spatial))
    grid = g.leaf(F32, (n, *target, rank), "normal")
    modes = ["linear", "nearest"] + (["cubic"] if rank == 2 else [])
    mode = g.choice(modes)
    if g.opset < 20:
        mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    g.add("GridSample", [x, grid], [F32], mode=mode, padding_mode=g.choice(["zeros", "border", "reflection"]), align_corners=g.integer(0, 1))


@operator(since=20)
def affine_grid(g):
    rank = g.integer(2, 3)
    n = g.integer(1, 2)
    theta = g.leaf(F32, (n, rank, rank + 1), "normal")
    g.add("AffineGrid", [theta, g.constant(np.asarray([n, 2, *sizes(g, rank, 2, 5)], np.int64))], [F32], align_corners=g.integer(0, 1))


@operator(since=10)
def roi_align(g):
    h, w = sizes(g, 2, 2, 7)
    n = g.integer(1, 2)
    x = drawn(g, F32, (n, g.integer(1, 3), h, w))
    count = g.integer(1, 3)
    corner = g.rng.random((count, 2)) * [w, h] * 0.6
    rois = np.concatenate([corner, corner + g.rng.random((count, 2)) * [w, h] * 0.5], 1).astype(np.float32)
    batch = g.rng.integers(0, n, count).astype(np.int64)
    rows, columns, samples, mode = g.integer(1, 3), g.integer(1, 3), g.integer(0, 3), g.choice(["avg", "max"])
    attributes = {"output_height": rows, "output_width": columns, "sampling_ratio": samples, "mode": mode}
    scale = g.choice([0.5, 1.0])
    attributes["spatial_scale"] = scale
    half = g.opset >= 16 and g.chance(0.5)
    if g.opset >= 16:
        attributes["coordinate_transformation_mode"] = "half_pixel" if half else "output_half_pixel"
    if mode == "max":
        raise NoFit  # of what, ONNX and its evaluator do not agree

    def align(array, boxes, numbers):
        result = np.zeros((count, array.shape[1], rows, columns))
        for r in range(count):
            x1, y1, x2, y2 = boxes[r] * scale - (0.5 if half else 0)
            width, height = x2 - x1, y2 - y1
            if not half:
                width, height = max(width, 1.0), max(height, 1.0)
            bin_h, bin_w = height / rows, width / columns
            ny, nx = samples or int(np.ceil(height / rows)), samples or int(np.ceil(width / columns))
            for i, j in np.ndindex(rows, columns):
                total = np.zeros(array.shape[1])
                for a, b in np.ndindex(ny, nx):
                    total += bilinear(array[int(numbers[r])], y1 + i * bin_h + (a + 0.5) * bin_h / ny, x1 + j * bin_w + (b + 0.5) * bin_w / nx)
                result[r, :, i, j] = total / max(ny * nx, 1)
        return [result]

    g.add("RoiAlign", [x, g.constant(rois), g.constant(batch)], [F32], align, **attributes)


def bilinear(image, y, x):
    """The value of planes [C, H, W] at a place; 0 more than one element outside."""
    h, w = image.shape[1:]
    if y < -1 or y > h or x < -1 or x > w:
        return np.zeros(image.shape[0])
    y, x = max(y, 0), max(x, 0)
    y0, x0 = min(int(y), h - 1), min(int(x), w - 1)
    y, x = (y if y0 < h - 1 else y0), (x if x0 < w - 1 else x0)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    return (image[:, y0, x0] * (1 - fy) + image[:, y1, x0] * fy) * (1 - fx) + (image[:, y0, x1] * (1 - fy) + image[:, y1, x1] * fy) * fx


@operator(since=11)
def non_max_suppression(g):
    n, classes, boxes = g.integer(1, 2), g.integer(1, 2), g.integer(1, 8)
    corner = g.rng.random((n, boxes, 2))
    # Corners far from where rounding would decide an overlap.
    array = np.concatenate([corner, corner + 0.1 + g.rng.random((n, boxes, 2))], -1).astype(np.float32)
    scores = g.rng.permutation(n * classes * boxes).reshape(n, classes, boxes).astype(np.float32) / 64
    inputs = [g.input(array) if not g.is_body else g.constant(array), g.constant(scores), g.constant(np.asarray([g.integer(0, 4)], np.int64)),
              g.constant(np.asarray([g.choice([0.0, 0.3, 0.5])], np.float32))]  # fmt: skip
    if g.chance(0.5):
        inputs.append(g.constant(np.asarray([g.choice([0.01, 0.1])], np.float32)))
    g.add("NonMaxSuppression", inputs, [np.int64])


# --- losses, movement of old opsets, what does nothing at inference

@operator(since=13)
def loss(g):
    op = g.choice(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    n, c = g.integer(1, 4), g.integer(1, 5)
    spatial = sizes(g, g.integer(0, 2), 1, 4)
    x = drawn(g, F32, (n, c, *spatial))
    labels = g.rng.integers(0, c, (n, *spatial)).astype(np.int64)
    inputs = [x, g.constant(labels)]
    attributes = {"reduction": g.choice(["none", "mean", "sum"])}
    if g.chance(0.5):
        inputs.append(g.leaf(F32, (c,), "positive"))
    if c > 1 and g.chance(0.3) and (labels != 0).any():
        attributes["ignore_index"] = 0
    weights_given, ignored, kind = len(inputs) > 2, attributes.get("ignore_index"), attributes["reduction"]
    logs = op[0] == "S" and g.chance(0.5)

    def compute(scores, at, weights=None):
        if op[0] == "S":
            shifted = scores - scores.max(1, keepdims=True)
            scores = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        weight = np.ones(at.shape) if not weights_given else weights[at]
        if ignored is not None:
            weight = np.where(at == ignored, 0, weight)
        losses = -np.take_along_axis(scores, at[:, None], 1)[:, 0] * weight
        result = losses if kind == "none" else losses.sum() if kind == "sum" else losses.sum() / weight.sum()
        return [result, scores] if logs else [result]

    g.add(op, inputs, [F32] * (2 if logs else 1), compute, **attributes)


@operator(since=9, until=10)
def scatter_9(g):
    x = g.pick(types_of(g, "Scatter"), lambda v: 0 not in v.shape, least_rank=1)
    axis = g.integer(0, g[x].array.ndim - 1)
    shape = g[x].shape
    count = g.integer(1, shape[axis])
    order = np.take(np.argsort(g.rng.random(shape), axis=axis), range(count), axis)

    def put(array, i, updates):
        result = array.copy()
        np.put_along_axis(result, i, updates, axis)
        return [result]

    g.add("Scatter", [x, g.constant(order.astype(np.int64)), g.leaf(g[x].dtype, order.shape, "normal")], [g[x].dtype], put, axis=axis)


@operator(until=9)
def upsample(g):
    x = drawn(g, F32, sizes(g, 4, 1, 4))
    scales = [1.0, 1.0, float(g.integer(1, 3)), float(g.integer(1, 3))]
    mode = g.choice(["nearest", "linear"])

    def grow(array, *_):
        for axis in (2, 3):
            n, s = array.shape[axis], int(scales[axis])
            at = np.arange(n * s) / s
            low = at.astype(int)
            high, part = np.minimum(low + 1, n - 1), at - low
            if mode == "nearest":
                array = np.take(array, low, axis)
            else:
                part = part.reshape([-1 if a == axis else 1 for a in range(4)])
                array = np.take(array, low, axis) * (1 - part) + np.take(array, high, axis) * part
        return [array]

    if g.opset >= 9:
        g.add("Upsample", [x, g.constant(np.asarray(scales, np.float32))], [F32], grow, mode=mode)
    else:
        g.add("Upsample", [x], [F32], grow, mode=mode, scales=scales)


@operator(until=11)
def dropout(g):
    x = g.pick(types_of(g, "Dropout", among=FLOAT_TYPES))
    g.add("Dropout", [x], [g[x].dtype], lambda a: [a], ratio=0.5)


@operator(since=12)
def dropout_12(g):
    x = g.pick(types_of(g, "Dropout", among=FLOAT_TYPES))
    mask = g.chance(0.3)
    g.add("Dropout", [x], [g[x].dtype, np.bool_], lambda a: [a, np.ones(a.shape, bool)][: 2 if mask else 1], outputs=[True, mask])


@operator(since=26)
def bit_cast(g):
    x = g.pick(INTEGER_TYPES, lambda v: len(v.runs) == 1)
    size = g[x].dtype.itemsize
    to = g.choice([t for t in sorted(INTEGER_TYPES, key=str) if t.itemsize == size])
    g.add("BitCast", [x], [to], lambda a: [a.view(to)], to=onnx_type(to))


@operator(since=11, weight=2)
def resize_variants(g):
    """Resize by scales or sizes of chosen axes, with antialiasing and every way to place the samples."""
    rank = g.choice([1, 2, 3, 4])
    x = drawn(g, F32, sizes(g, rank, 1, 6))
    shape = g[x].shape
    mode = g.choice(["linear", "cubic"])
    transforms = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + (["half_pixel_symmetric"] if g.opset >= 19 else [])
    attributes = {"mode": mode, "coordinate_transformation_mode": g.choice(transforms)}
    if mode == "cubic":
        if g.chance(0.4):
            attributes["cubic_coeff_a"] = -0.5
        if g.chance(0.4):
            attributes["exclude_outside"] = 1
    if g.opset >= 18 and g.chance(0.4) and attributes["coordinate_transformation_mode"] != "align_corners":
        attributes["antialias"] = 1
    axes = list(range(rank))
    if g.opset >= 18 and g.chance(0.4):
        axes = sorted(int(a) for a in g.rng.permutation(rank)[: g.integer(1, rank)])
        attributes["axes"] = axes
    last = axes[-2:]
    # With scales, the length that align_corners asks for may be no whole number.
    if attributes["coordinate_transformation_mode"] != "align_corners" and g.chance(0.5):
        scales = np.asarray([g.choice([0.5, 0.75, 1.0, 1.5, 2.0]) if a in last else 1.0 for a in axes], np.float32)
        if any(int(np.floor(shape[a] * s)) < 1 for a, s in zip(axes, scales)):
            raise NoFit
        target = [int(np.floor(shape[a] * s)) for a, s in zip(axes, scales)]
        inputs = [x, "" if g.opset >= 13 else g.constant(np.zeros(0, np.float32)), g.constant(scales)]
    else:
        target = [g.integer(1, 9) if a in last else shape[a] for a in axes]
        empty = "" if g.opset >= 13 else g.constant(np.zeros(0, np.float32))
        scales = [t / shape[a] for a, t in zip(axes, target)]
        inputs = [x, empty, empty, g.constant(np.asarray(target, np.int64))]
    function = resize_function(mode, attributes["coordinate_transformation_mode"], target, [float(s) for s in scales], axes,
                               attributes.get("cubic_coeff_a", -0.75), attributes.get("exclude_outside", 0), attributes.get("antialias", 0))  # fmt: skip
    g.add("Resize", inputs, [F32], function, **attributes)


@operator(since=19)
def deform_conv(g):
    n, c, f = 1, g.integer(1, 3), g.integer(1, 3)
    h, w = sizes(g, 2, 3, 5)
    kernel = [g.integer(1, 2), g.integer(1, 3)]
    strides, pads = [g.integer(1, 2), g.integer(1, 2)], [g.integer(0, 1) for _ in range(4)]
    oh, ow = (h + pads[0] + pads[2] - kernel[0]) // strides[0] + 1, (w + pads[1] + pads[3] - kernel[1]) // strides[1] + 1
    taps = kernel[0] * kernel[1]
    inputs = [drawn(g, F32, (n, c, h, w)), g.leaf(F32, (f, c, *kernel), "normal"), g.leaf(F32, (n, 2 * taps, oh, ow), "normal")]
    inputs.append(g.leaf(F32, (f,), "normal") if g.chance(0.5) else "")
    if g.chance(0.5):
        inputs.append(g.leaf(F32, (n, taps, oh, ow), "unit"))
    while not inputs[-1]:
        inputs.pop()

    def sample(plane, y, x):
        y0, x0 = int(np.floor(y)), int(np.floor(x))
        total = 0.0
        for dy, dx in np.ndindex(2, 2):
            if 0 <= y0 + dy < h and 0 <= x0 + dx < w:
                total = total + plane[:, y0 + dy, x0 + dx] * (1 - abs(y - y0 - dy)) * (1 - abs(x - x0 - dx))
        return total

    def compute(array, weights, offsets, bias=None, mask=None):
        result = np.zeros((n, f, oh, ow))
        for i, j in np.ndindex(oh, ow):
            for t, (a, b) in enumerate(np.ndindex(*kernel)):
                y = i * strides[0] - pads[0] + a + offsets[0, 2 * t, i, j]
                x = j * strides[1] - pads[1] + b + offsets[0, 2 * t + 1, i, j]
                value = sample(array[0], y, x) * (1 if mask is None else mask[0, t, i, j])
                result[0, :, i, j] += weights[:, :, a, b] @ np.broadcast_to(value, (c,))
        return [result if bias is None else result + bias[None, :, None, None]]

    g.add("DeformConv", inputs, [F32], compute, kernel_shape=kernel, strides=strides, pads=pads)
