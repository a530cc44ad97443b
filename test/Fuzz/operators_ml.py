# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ai.onnx.ml by onnx's evaluator, and the operators of com.microsoft that models in float carry, which it does not know."""
import numpy as np

from generate import NoFit
from operators import erf, operator
from operators_network import drawn, is_tame
from operators_products import normalize

F32 = np.dtype(np.float32)
ML = "ai.onnx.ml"


def table(g):
    """A value of examples by features."""
    return g.pick({F32}, lambda v: is_tame(v) and v.shape[1] < 9, lambda: g.leaf(F32, (g.integer(1, 6), g.integer(1, 5)), "normal"), rank=2)


@operator(weight=3)
def features(g):
    op = g.choice(["Scaler", "Imputer", "Normalizer", "Binarizer", "ArrayFeatureExtractor", "LinearRegressor", "LabelEncoder", "FeatureVectorizer"])
    x = table(g)
    n, width = g[x].shape
    if op == "Scaler":
        offset, scale = g.rng.standard_normal(width).astype(np.float32).tolist(), g.rng.random(width).astype(np.float32).tolist()
        g.add(op, [x], [F32], lambda a: [(a - np.array(offset)) * np.array(scale)], domain=ML, offset=offset, scale=scale)
    elif op == "Imputer":
        values = [float(v) for v in g.rng.integers(-3, 4, g.choice([1, width]))]
        y = g.add("Where", [g.leaf(np.bool_, (n, width)), x, g.constant(np.asarray(np.nan, np.float32))], [F32]) if g.opset >= 9 else x
        g.add(op, [y], [F32], lambda a: [np.where(np.isnan(a), np.array(values), a)], domain=ML, imputed_value_floats=values, replaced_value_float=float("nan"))
    elif op == "Normalizer":
        norm = g.choice(["MAX", "L1", "L2"])

        def scale_rows(a):
            size = {"MAX": lambda: a.max(1), "L1": lambda: np.abs(a).sum(1), "L2": lambda: np.sqrt((a * a).sum(1))}[norm]()
            return [a / size[:, None]]

        if (scale_rows(g[x].array)[0] > 1e6).any() or not np.isfinite(scale_rows(g[x].array)[0]).all():
            raise NoFit
        g.add(op, [x], [F32], scale_rows, domain=ML, norm=norm)
    elif op == "Binarizer":
        limit = float(g.choice([-0.5, 0.0, 0.25]))
        g.add(op, [x], [F32], lambda a: [(a > limit).astype(np.float64)], domain=ML, threshold=limit)
    elif op == "ArrayFeatureExtractor":
        i = g.rng.integers(0, width, g.integer(1, 4)).astype(np.int64)
        g.add(op, [x, g.constant(i)], [F32], lambda a, _: [a[:, i]], domain=ML)
    elif op == "LinearRegressor":
        targets = g.integer(1, 3)
        w, b = g.rng.standard_normal((targets, width)).astype(np.float32), g.rng.standard_normal(targets).astype(np.float32)
        g.add(op, [x], [F32], lambda a: [a @ w.T.astype(np.float64) + b], domain=ML, coefficients=w.reshape(-1).tolist(), intercepts=b.tolist(), targets=targets)
    elif op == "FeatureVectorizer":
        g.add(op, [x, x], [F32], lambda a, b: [np.concatenate([a, b], 1)], domain=ML, inputdimensions=[width, width])
    else:
        x = g.pick({np.dtype(np.int64)}, lambda v: len(v.runs) == 1)
        keys, values = [-2, 0, 1, 5], [0.5, -1.0, 2.0, 8.0]
        g.add(op, [x], [F32], lambda a: [np.vectorize(lambda v: dict(zip(keys, values)).get(int(v), -7.0), otypes=[np.float64])(a)], domain=ML, keys_int64s=keys,
              values_floats=values, default_float=-7.0)  # fmt: skip


@operator(weight=2)
def trees(g):
    """A regression by some random trees, of depth 1 to 4."""
    x = table(g)
    width = g[x].shape[1]
    targets = g.integer(1, 2)
    mode_names = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
    mode = g.choice(mode_names)
    nodes, leaves = [], []  # (tree, id, feature, value, mode, true, false), (tree, node, target, weight)
    thresholds = np.round(g.rng.standard_normal(64), 2).astype(np.float32)

    def grow(tree, depth):
        at = sum(n[0] == tree for n in nodes)
        nodes.append(None)
        nodes[-1] = [tree, at, 0, 0.0, "LEAF", 0, 0]
        mine = len(nodes) - 1
        if depth and g.chance(0.8):
            nodes[mine][2:5] = [g.integer(0, width - 1), float(g.choice(thresholds.tolist())), mode]
            nodes[mine][5] = grow(tree, depth - 1)
            nodes[mine][6] = grow(tree, depth - 1)
        else:
            leaves.append((tree, at, g.integer(0, targets - 1), float(np.float32(g.rng.standard_normal()))))
        return at

    for tree in range(g.integer(1, 4)):
        grow(tree, g.integer(1, 4))
    aggregate = g.choice(["SUM", "AVERAGE", "MIN", "MAX"])
    base = [float(v) for v in g.rng.integers(-2, 3, targets)] if g.chance(0.4) else []
    by_place = {(n[0], n[1]): n for n in nodes}
    count = max(n[0] for n in nodes) + 1
    less = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater}[mode]
    if targets > 1 and aggregate in ("MIN", "MAX"):
        raise NoFit  # what a target is that no leaf adds to is open

    def predict(a):
        result = np.zeros((a.shape[0], targets))
        for row, values in enumerate(a):
            found = [[] for _ in range(targets)]
            for tree in range(count):
                node = by_place[tree, 0]
                while node[4] != "LEAF":
                    node = by_place[tree, node[5] if less(values[node[2]], node[3]) else node[6]]
                for t, n, target, weight in leaves:
                    if (t, n) == (tree, node[1]):
                        found[target].append(weight)
            for target, numbers in enumerate(found):
                total = {"SUM": sum, "AVERAGE": lambda v: sum(v) / count, "MIN": min, "MAX": max}[aggregate](numbers)
                result[row, target] = total + (base[target] if base else 0)
        return [result]

    column = lambda i: [n[i] for n in nodes]  # noqa: E731
    g.add("TreeEnsembleRegressor", [x], [F32], predict, domain=ML, n_targets=targets, aggregate_function=aggregate, nodes_treeids=column(0), nodes_nodeids=column(1),
          nodes_featureids=column(2), nodes_values=column(3), nodes_modes=column(4), nodes_truenodeids=column(5), nodes_falsenodeids=column(6),
          target_treeids=[v[0] for v in leaves], target_nodeids=[v[1] for v in leaves], target_ids=[v[2] for v in leaves],
          target_weights=[v[3] for v in leaves], **({"base_values": base} if base else {}))  # fmt: skip


@operator(weight=2)
def microsoft(g):
    op = g.choice(["QuickGelu", "BiasGelu", "FastGelu", "FusedMatMul", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
    add = lambda inputs, function, dtypes=(F32,), **a: g.add(op, inputs, list(dtypes), function, domain="com.microsoft", **a)  # noqa: E731
    if op == "QuickGelu":
        x = g.pick({F32}, is_tame)
        add([x], lambda a: [a / (1 + np.exp(-1.5 * a))], alpha=1.5)
    elif op in ("BiasGelu", "FastGelu"):
        x = g.pick({F32}, is_tame, least_rank=1)
        bias = drawn(g, F32, g[x].shape[-1:])
        if op == "BiasGelu":
            add([x, bias], lambda a, b: [0.5 * (a + b) * (1 + erf((a + b) / np.sqrt(2)))])
        else:
            add([x, bias], lambda a, b: [0.5 * (a + b) * (1 + np.tanh(np.sqrt(2 / np.pi) * ((a + b) + 0.044715 * (a + b) ** 3)))])
    elif op == "FusedMatMul":
        ta, tb, alpha = g.integer(0, 1), g.integer(0, 1), g.choice([1.0, 0.5])
        m, k, n = g.integer(1, 9), g.integer(1, 17), g.integer(1, 17)
        batch = (g.integer(1, 2),) if g.chance(0.4) else ()
        x, y = drawn(g, F32, (*batch, *((k, m) if ta else (m, k)))), g.leaf(F32, (*batch, *((n, k) if tb else (k, n))), "normal")
        add([x, y], lambda a, b: [alpha * ((a.swapaxes(-1, -2) if ta else a) @ (b.swapaxes(-1, -2) if tb else b))], transA=ta, transB=tb, alpha=alpha)
    else:
        x = g.pick({F32}, is_tame, lambda: g.leaf(F32, (g.integer(1, 2), g.integer(1, 4), g.integer(1, 17)), "normal"), rank=3)
        width = g[x].shape[-1]
        skip, gamma, beta = drawn(g, F32, g[x].shape), g.leaf(F32, (width,), "normal"), g.leaf(F32, (width,), "normal")
        center = op == "SkipLayerNormalization"
        epsilon = float(np.float32(1e-3))

        def norm(a, s, scale, shift=0.0):
            return [normalize(a + s, (-1,), epsilon, center) * scale + shift]

        add([x, skip, gamma] + ([beta] if center else []), norm, epsilon=epsilon)
