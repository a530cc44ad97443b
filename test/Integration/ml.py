#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of ai.onnx.ml, and TfIdfVectorizer, against references in NumPy, which say what the specification does, or ONNX Runtime where it is silent.

usage: ml.py BIN [CASE ...]
"""
import sys

import numpy as np
from onnx import helper

from one_node import case, main

ML = "ai.onnx.ml"
TYPES = ("float32", "float64", "int64", "int32")
INF, NAN = float("inf"), float("nan")


def rng(seed):
    return np.random.default_rng(seed)


def tensor(name, array):
    return helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.ravel())


def floats(values):
    """What a list attribute holds: float32 numbers."""
    return [float(v) for v in np.asarray(values, np.float32).ravel()]


def wide(x):
    return x.astype(np.float64 if x.dtype == np.float64 else np.float32)


#===--- features ------------------------------------------------------------------------------------------------------------===#

def features():
    x = rng(0).standard_normal((5, 3)) * 2
    x[2] = 0
    for kind in TYPES:
        v = x.astype(kind)
        case(f"extract_{kind}", ML, "ArrayFeatureExtractor", [v, np.array([[2, 0, 2]])], [v[:, [2, 0, 2]]], fixed=[1])
        case(f"binarize_{kind}", ML, "Binarizer", [v], [(v > 0.5).astype(kind)], threshold=0.5)
        joined = np.concatenate([v[:, :2], v, np.zeros((5, 2))], 1).astype(np.float32)
        case(f"vectorize_{kind}", ML, "FeatureVectorizer", [v, v], [joined], inputdimensions=[2, 5])
        offset, scale = [0.5, 1.0, -2.0], [2.0, -3.0, 0.25]
        case(f"scale_{kind}", ML, "Scaler", [v], [((wide(v) - offset) * scale).astype(np.float32)], offset=offset, scale=scale)
        w = wide(v)
        for norm, size in (("MAX", w.max(1)), ("L1", np.abs(w).sum(1)), ("L2", np.sqrt((w * w).sum(1)))):
            size[size == 0] = 1
            case(f"normalize_{norm}_{kind}", ML, "Normalizer", [v], [(w / size[:, None]).astype(np.float32)], norm=norm)
        cats = [1, 0, -1]
        case(f"one_hot_{kind}", ML, "OneHotEncoder", [v], [(v.astype(np.int64)[..., None] == cats).astype(np.float32)], cats_int64s=cats)
        kind_of = "floats" if v.dtype.kind == "f" else "int64s"
        values = [7.0, 8.0, 9.0] if kind_of == "floats" else [7, 8, 9]
        case(f"impute_{kind}", ML, "Imputer", [v], [np.where(v == 0, np.array(values, kind), v)],
             **{f"imputed_value_{kind_of}": values, "replaced_value_float": 0.0, "replaced_value_int64": 0})
    gaps = x.astype(np.float32)
    gaps[1, 1] = gaps[4, 2] = NAN
    case("impute_nan", ML, "Imputer", [gaps], [np.where(np.isnan(gaps), np.float32(0.5), gaps)], imputed_value_floats=[0.5],
         replaced_value_float=NAN)
    case("extract_1d", ML, "ArrayFeatureExtractor", [x[0], np.array([1])], [x[:1, [1]]], fixed=[1])
    case("vectorize_1d", ML, "FeatureVectorizer", [x[0], x[1]], [np.concatenate([x[:1], x[1:2]], 1).astype(np.float32)], inputdimensions=[3, 3])
    case("scale_one", ML, "Scaler", [gaps], [(gaps - np.float32(0.5)) * np.float32(2)], offset=[0.5], scale=[2.0])
    case("binarize_nan", ML, "Binarizer", [gaps], [(gaps > 0).astype(np.float32)])

    # LabelEncoder: a key that is given twice counts as first given; NaN is a key of its own.
    whole = rng(1).integers(-4, 5, (3, 7))
    table = {2: 1.5, -1: 2.5, 0: 3.5, 7: 4.5}
    case("labels_int_float", ML, "LabelEncoder", [whole], [np.vectorize(lambda k: table.get(k, 9))(whole).astype(np.float32)],
         keys_int64s=[2, -1, 0, 2, 7], values_floats=[1.5, 2.5, 3.5, 0.0, 4.5], default_float=9.0)
    odd = np.array([1.5, NAN, 2.5, 0.0, -0.0, INF, -INF], np.float32)
    case("labels_float_int", ML, "LabelEncoder", [odd], [np.array([-1, 2, 1, 3, 3, 4, -1])], keys_floats=[2.5, NAN, 0.0, INF],
         values_int64s=[1, 2, 3, 4])
    keys = rng(2).permutation(200)[:100]
    for kind in ("int16", "int32", "int64", "float32", "float64"):
        # Half as many keys as there are values, in no order.
        some, to = np.arange(200).astype(kind), (keys * 3).astype("int16")
        expected = np.array([3 * v if v in set(keys) else -7 for v in range(200)], np.int16)
        case(f"labels_tensor_{kind}", ML, "LabelEncoder", [some], [expected], keys_tensor=tensor("k", keys.astype(kind)),
             values_tensor=tensor("v", to), default_tensor=tensor("d", np.array([-7], np.int16)))


def strings():
    """Labels, keys and categories that are strings."""
    def words(*values):
        return np.array(values, object)
    x = words("b", "", "ü", "zz", "a", "b").reshape(2, 3)
    table = {"a": 1.5, "zz": 2.5, "": 3.5, "ü": 4.5}
    case("labels_string_float", ML, "LabelEncoder", [x], [np.array([table.get(v, -1) for v in x.ravel()], np.float32).reshape(2, 3)],
         keys_strings=list(table), values_floats=list(table.values()), default_float=-1.0)
    case("labels_string_string", ML, "LabelEncoder", [x], [words(*(f"<{v}>" if v in table else "_Unused" for v in x.ravel())).reshape(2, 3)],
         keys_strings=list(table), values_strings=[f"<{k}>" for k in table])
    case("labels_int_string", ML, "LabelEncoder", [np.array([3, 1, 2])], [words("x", "b", "a")], keys_int64s=[2, 1], values_strings=["a", "b"],
         default_string="x")
    case("labels_1_string", ML, "LabelEncoder", [x], [np.array([[0, -1, -1], [1, -1, 0]])], version=1, classes_strings=["b", "zz"])
    case("labels_1_int", ML, "LabelEncoder", [np.array([1, 5, 0])], [words("zz", "_Unused", "b")], version=1, classes_strings=["b", "zz"])
    case("category_string", ML, "CategoryMapper", [x], [np.array([[4, 5, 5], [7, 5, 4]])], cats_strings=["b", "zz"], cats_int64s=[4, 7], default_int64=5)
    case("category_int", ML, "CategoryMapper", [np.array([[7, 5, 4]])], [words("zz", "?", "b")[None]], cats_strings=["b", "zz"], cats_int64s=[4, 7],
         default_string="?")
    case("category_none", ML, "CategoryMapper", [np.array([7, 5])], [words("_Unused", "_Unused")])
    case("one_hot_string", ML, "OneHotEncoder", [x], [(x[..., None] == words("a", "b")).astype(np.float32)], cats_strings=["a", "b"])
    case("extract_string", ML, "ArrayFeatureExtractor", [x, np.array([2, 0])], [x[:, [2, 0]]], fixed=[1])
    v, w = rng(20).standard_normal((5, 4)).astype(np.float32), rng(21).standard_normal((3, 4)).astype(np.float32)
    scores = v.astype(np.float64) @ w.T
    case("classifier_string", ML, "LinearClassifier", [v], [words("no", "yes", "")[scores.argmax(1)], scores.astype(np.float32)],
         coefficients=floats(w), intercepts=[0.0] * 3, classlabels_strings=["no", "yes", ""])
    ensemble, x = grow(22, 5, 3, 4, targets=3), rows(23, 9, 4)
    scores = aggregate(ensemble, x, 3)
    case("tree_classifier_string", ML, "TreeEnsembleClassifier", [x], [words("u", "v", "w")[scores.argmax(1)], scores.astype(np.float32)], version=3,
         tolerance=1e-4, atol=1e-5, classlabels_strings=["u", "v", "w"], **numbered(ensemble, "class"))


#===--- maps -----------------------------------------------------------------------------------------------------------------===#

def maps():
    """Their results are one row, as in ONNX Runtime."""
    kinds = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "string": str}
    for key, words in (("int64", [5, 4, -1]), ("string", ["c", "", "ü"])):
        for kind, make in kinds.items():
            zero, type_ = ("", object) if kind == "string" else (make(0), make)
            # Not all words of the vocabulary are keys, nor the other way round; a word may come twice.
            table = {words[0]: make(3), words[2]: make(7), (9 if key == "int64" else "other"): make(1)}
            if key == "int64":
                table = {np.int64(k): v for k, v in table.items()}
            expected = np.array([[table.get(w, zero) for w in [*words, words[0]]]], type_)
            case(f"dict_{key}_{kind}", ML, "DictVectorizer", [table], [expected], **{f"{key}_vocabulary": [*words, words[0]]})
    numbers = {np.int64(k): np.float32(v) for k, v in ((7, 1.5), (0, -2.75), (3, 1e6), (2, 0.1))}
    texts = {k: f"{v:g}" for k, v in numbers.items()}
    casts = {"TO_FLOAT": (np.float32, np.float32(0)), "TO_INT64": (lambda v: np.int64(float(v)), np.int64(0)), "TO_STRING": (str, "0.f")}
    for kind, table in (("float", numbers), ("string", texts)):
        for to, (cast, pad) in casts.items():
            if (kind, to) == ("float", "TO_STRING"):
                cast = "{:f}".format
            type_ = object if to == "TO_STRING" else None
            dense = np.array([[cast(table[k]) for k in sorted(table)]], type_)
            case(f"cast_map_{kind}_{to}", ML, "CastMap", [table], [dense], cast_to=to)
            # Keys from max_map on are dropped.
            sparse = np.array([[cast(table[k]) if k in table else pad for k in range(5)]], type_)
            case(f"cast_map_{kind}_{to}_sparse", ML, "CastMap", [table], [sparse], cast_to=to, map_form="SPARSE", max_map=5)
    below = {np.int64(-3): np.float32(1), np.int64(-5): np.float32(2)}
    case("cast_map_negative", ML, "CastMap", [below], [np.array([[2, 1]], np.float32)])
    case("cast_map_no_room", ML, "CastMap", [numbers], [np.zeros((1, 0), np.float32)], map_form="SPARSE", max_map=0)

    x = rng(30).standard_normal((3, 3)).astype(np.float32)
    x[1] = NAN, INF, -INF
    for key, labels in (("int64s", [5, -3, 9]), ("strings", ["b", "", "ü"])):
        rows = [dict(zip(labels, row)) for row in x]
        rows[1][labels[0]] = Same(NAN)
        case(f"zip_{key}", ML, "ZipMap", [x], [rows], **{f"classlabels_{key}": labels})
        case(f"zip_row_{key}", ML, "ZipMap", [x[0]], [rows[:1]], **{f"classlabels_{key}": labels})
    case("zip_twice", ML, "ZipMap", [x[2:]], [[{5: x[2, 2], 1: x[2, 1]}]], classlabels_int64s=[5, 1, 5])


class Same(np.float32):
    """A NaN that equals all others."""
    def __eq__(self, other):
        return bool(np.isnan(other))
    __hash__ = None


#===--- text -----------------------------------------------------------------------------------------------------------------===#

def tf_idf(x, grams, columns, weights, mode, shortest, longest, skips):
    """Weighted counts of `grams` (tuples) in the rows of x, with equal distances of 1 to skips + 1 between their elements."""
    result = np.zeros((len(x), max(columns) + 1), np.float32)
    for row, out in zip(x, result):
        for gram, column in zip(grams, columns):
            if shortest <= len(gram) <= longest:
                for distance in range(1, skips + 2 if len(gram) > 1 else 2):
                    reach = distance * (len(gram) - 1)
                    out[column] += sum(tuple(row[i:i + reach + 1:distance]) == gram for i in range(len(row) - reach))
    if mode == "IDF":
        result = np.minimum(result, 1)
    if mode != "TF" and weights is not None:
        factors = np.zeros(result.shape[1], np.float32)
        factors[columns] = weights
        result *= factors
    return result


def text():
    r = rng(31)
    alphabet = ["a", "", "ü", "the", "x y", "b"]
    for kind in ("string", "int32", "int64"):
        def element(i):
            return alphabet[i] if kind == "string" else i - 2
        grams = [tuple(map(element, g)) for n in (1, 2, 3) for g in sorted({tuple(r.integers(0, 4, n)) for _ in range(3 * n)})]
        columns = [int(c) for c in r.permutation(len(grams) + 2)[:len(grams)]]
        weights = floats(r.standard_normal(len(grams)))
        starts = [sum(len(g) for g in grams if len(g) < n) for n in (1, 2, 3)]
        pool = [e for g in grams for e in g]
        x = np.array([[element(i) for i in row] for row in r.integers(0, 6, (4, 23))], object if kind == "string" else kind)

        def add(name, x, mode, shortest, longest, skips, columns=columns, weights=weights):
            expected = tf_idf(np.atleast_2d(x), grams, columns, weights, mode, shortest, longest, skips)
            attrs = {} if weights is None else dict(weights=weights)
            case(f"tf_idf_{kind}_{name}", "", "TfIdfVectorizer", [x], [expected[0] if x.ndim == 1 else expected], mode=mode,
                 ngram_counts=starts, ngram_indexes=columns, min_gram_length=shortest, max_gram_length=longest, max_skip_count=skips,
                 **{"pool_strings" if kind == "string" else "pool_int64s": pool}, **attrs)
        add("row", x[0], "TFIDF", 1, 2, 1)
        if kind != "string":
            continue
        for mode in ("TF", "IDF", "TFIDF"):
            for shortest, longest, skips in ((1, 1, 0), (1, 3, 0), (2, 3, 2), (3, 3, 1), (2, 2, 40)):
                add(f"{mode}_{shortest}{longest}{skips}", x, mode, shortest, longest, skips)
        add("short", x[:, :1], "TF", 1, 3, 1)
        add("none", x[:, :0], "TFIDF", 1, 3, 1)
        add("no_rows", x[:0], "TF", 1, 3, 1)
        add("plain", x, "TFIDF", 1, 3, 0, weights=None)
        add("shared", x, "IDF", 1, 3, 0, columns=[c % 5 for c in columns], weights=None)


#===--- linear models and support vector machines ----------------------------------------------------------------------------===#

def logistic(v):
    return 1 / (1 + np.exp(-v))


def softmax(v):
    e = np.exp(v - v.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_zero(v):
    top = v.max(-1, keepdims=True)
    near = np.abs(v) <= 1e-7
    e = np.where(near, v * np.exp(-top), np.exp(v - top))
    total = np.where(near, 0, e).sum(-1, keepdims=True)
    return np.where(total == 0, 0.5, e / np.where(total == 0, 1, total))


def probit(v):
    x = 2 * v - 1
    with np.errstate(all="ignore"):
        log = np.log((1 - x) * (1 + x))
        half = 2 / (np.pi * 0.147) + log / 2
        return np.sqrt(2) * np.where(x < 0, -1, 1) * np.sqrt(np.sqrt(half * half - log / 0.147) - half)


TRANSFORMS = {"NONE": lambda v: v, "LOGISTIC": logistic, "SOFTMAX": softmax, "SOFTMAX_ZERO": softmax_zero, "PROBIT": probit}


def finish(scores, transform, second=None):
    """`second`: None, complement or negation, for what becomes of the one score of two classes."""
    if scores.shape[-1] == 1:
        if second is None:
            return probit(scores) if transform == "PROBIT" else scores
        complement = transform == "PROBIT" or (transform == "NONE" and second == "complement")
        scores = np.concatenate([1 - scores if complement else -scores, scores], -1)
    return TRANSFORMS[transform](scores)


def models():
    x = rng(3).standard_normal((6, 4)).astype(np.float32) * 0.3
    coefficients, intercepts = rng(4).standard_normal((3, 4)).astype(np.float32) * 0.5, np.array([0.1, -0.2, 0.3], np.float32)
    for transform in TRANSFORMS:
        for rows in (1, 3):
            w, b = coefficients[:rows], intercepts[:rows]
            scores = x.astype(np.float64) @ w.T.astype(np.float64) + b
            case(f"regressor_{rows}_{transform}", ML, "LinearRegressor", [x], [finish(scores, transform).astype(np.float32)],
                 coefficients=floats(w), intercepts=floats(b), targets=rows, post_transform=transform)
            labels = [5, 7, 2] if rows == 3 else [5, 7]
            index = scores.argmax(1) if rows == 3 else (scores[:, 0] > 0).astype(int)
            case(f"classifier_{rows}_{transform}", ML, "LinearClassifier", [x],
                 [np.array(labels)[index], finish(scores, transform, "complement").astype(np.float32)], coefficients=floats(w),
                 intercepts=floats(b), classlabels_ints=labels, post_transform=transform)
    for kind in TYPES:
        v = (x * 5).astype(kind)
        scores = v.astype(np.float64) @ coefficients.T + intercepts
        case(f"regressor_{kind}", ML, "LinearRegressor", [v], [scores.astype(np.float32)], coefficients=floats(coefficients),
             intercepts=floats(intercepts), targets=3)
    case("regressor_row", ML, "LinearRegressor", [x[0]], [(x[:1] @ coefficients[:1].T).astype(np.float32)], coefficients=floats(coefficients[0]))

    vectors, gamma, coef0, degree = rng(5).standard_normal((6, 4)).astype(np.float32), 0.5, 0.25, 3
    parameters = floats([gamma, coef0, degree])
    product = x.astype(np.float64) @ vectors.T
    distance = ((x[:, None].astype(np.float64) - vectors) ** 2).sum(-1)
    kernels = {"LINEAR": product, "POLY": (gamma * product + coef0) ** degree, "SIGMOID": np.tanh(gamma * product + coef0), "RBF": np.exp(-gamma * distance)}
    weights = rng(6).standard_normal(6).astype(np.float32)
    for kind, kernel in kernels.items():
        scores = (kernel @ weights + 0.2)[:, None]
        common = dict(kernel_type=kind, kernel_params=parameters, support_vectors=floats(vectors))
        case(f"svm_regressor_{kind}", ML, "SVMRegressor", [x], [scores.astype(np.float32)], coefficients=floats(weights), n_supports=6, rho=[0.2], **common)
        case(f"svm_one_class_{kind}", ML, "SVMRegressor", [x], [np.where(scores > 0, 1, -1).astype(np.float32)], coefficients=floats(weights),
             n_supports=6, rho=[0.2], one_class=1, **common)
        # Two classes: one pair, whose positive score is a vote for the first.
        first = kernel[:, :2] @ weights[:2] + kernel[:, 2:] @ weights[2:] + 0.1
        for transform in ("NONE", "LOGISTIC"):
            case(f"svm_2_{kind}_{transform}", ML, "SVMClassifier", [x],
                 [np.where(first > 0, 5, 7), finish(first[:, None], transform, "negation").astype(np.float32)], coefficients=floats(weights),
                 vectors_per_class=[2, 4], rho=floats([0.1]), classlabels_ints=[5, 7], post_transform=transform, **common)
        case(f"svm_2_{kind}_probabilities", ML, "SVMClassifier", [x], [np.where(first > 0, 5, 7), couple(first[:, None], [-0.5], [0.1], 2)],
             coefficients=floats(weights), vectors_per_class=[2, 4], rho=floats([0.1]), classlabels_ints=[5, 7], prob_a=[-0.5],
             prob_b=floats([0.1]), tolerance=1e-4, **common)
    # Three classes: three pairs.
    table, rho, kernel = rng(7).standard_normal((2, 6)).astype(np.float32), floats([0.1, -0.2, 0.05]), kernels["RBF"]
    ranges, pairs = [slice(0, 2), slice(2, 3), slice(3, 6)], []
    votes = np.zeros((6, 3))
    for i in range(3):
        for j in range(i + 1, 3):
            score = kernel[:, ranges[i]] @ table[j - 1, ranges[i]] + kernel[:, ranges[j]] @ table[i, ranges[j]] + rho[len(pairs)]
            pairs.append(score)
            votes[:, i] += score > 0
            votes[:, j] += score <= 0
    pairs, labels = np.stack(pairs, 1), np.array([9, 4, 6])[votes.argmax(1)]
    common = dict(coefficients=floats(table), vectors_per_class=[2, 1, 3], rho=rho, classlabels_ints=[9, 4, 6], kernel_type="RBF",
                  kernel_params=parameters, support_vectors=floats(vectors))
    case("svm_3", ML, "SVMClassifier", [x], [labels, pairs.astype(np.float32)], **common)
    a, c = floats([-0.5, -0.4, -0.6]), floats([0.1, 0.2, 0.05])
    case("svm_3_probabilities", ML, "SVMClassifier", [x], [labels, couple(pairs, a, c, 3)], prob_a=a, prob_b=c, tolerance=1e-4, **common)
    linear = x.astype(np.float64) @ coefficients.T + 0.1
    case("svm_linear", ML, "SVMClassifier", [x], [np.array([9, 4, 6])[linear.argmax(1)], linear.astype(np.float32)],
         coefficients=floats(coefficients), rho=floats([0.1]), classlabels_ints=[9, 4, 6], kernel_params=parameters)


def couple(scores, a, c, classes):
    """Probabilities of classes from scores of pairs: Wu, Lin and Weng, algorithm 2, row by row."""
    result = []
    for row in scores:
        r, k = np.zeros((classes, classes)), 0
        for i in range(classes):
            for j in range(i + 1, classes):
                r[i, j] = np.clip(logistic(-(row[k] * a[k] + c[k])), 1e-7, 1 - 1e-7)
                r[j, i] = 1 - r[i, j]
                k += 1
        q = -r.T * r
        for i in range(classes):
            q[i, i] = sum(r[j, i] ** 2 for j in range(classes) if j != i)
        p = np.full(classes, 1 / classes)
        for _ in range(100):
            qp = q @ p
            pqp = p @ qp
            if np.abs(qp - pqp).max() < 0.005 / classes:
                break
            for i in range(classes):
                step = (pqp - qp[i]) / q[i, i]
                p[i] += step
                pqp = (pqp + step * (step * q[i, i] + 2 * qp[i])) / (1 + step) ** 2
                qp = (qp + step * q[i]) / (1 + step)
                p /= 1 + step
        result.append(p)
    return np.array(result).astype(np.float32)


#===--- trees ----------------------------------------------------------------------------------------------------------------===#

MODES = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER"]


def decides(mode, x, v, track):
    if np.isnan(x):
        return track or mode == "NEQ"
    if mode == "MEMBER":
        return x in v
    return {"LEQ": x <= v, "LT": x < v, "GTE": x >= v, "GT": x > v, "EQ": x == v, "NEQ": x != v}[mode]


def grow(seed, trees, depth, features, targets=1, per_leaf=1, modes=("LEQ",), track=0.0, leaf=0.0, whole=False):
    """A list of trees: nested (mode, feature, value, track, if true, if false), or {target: weight} for leaves."""
    r = rng(seed)

    def node(left, tree):
        if left == 0 or (left < depth and r.random() < leaf):
            of = [tree % targets] if per_leaf == 1 else r.permutation(targets)[:per_leaf]
            return {int(t): float(np.float32(r.standard_normal())) for t in of}
        mode = modes[r.integers(len(modes))]
        value = float(r.integers(-3, 4)) if whole else float(np.float32(r.standard_normal()))
        if mode == "MEMBER":
            value = {float(v) for v in r.permutation(np.arange(-3, 4))[:r.integers(1, 5)]}
        return (mode, int(r.integers(features)), value, bool(r.random() < track), node(left - 1, tree), node(left - 1, tree))
    return [node(depth, t) for t in range(trees)]


def reached(tree, row):
    while not isinstance(tree, dict):
        mode, feature, value, track, yes, no = tree
        tree = yes if decides(mode, row[feature], value, track) else no
    return tree


def aggregate(trees, x, targets, how="SUM"):
    x = x if x.dtype == np.float64 else x.astype(np.float32)
    scores = np.zeros((len(x), targets))
    for n, row in enumerate(x):
        for t in range(targets):
            weights = [leaf[t] for leaf in (reached(tree, row) for tree in trees) if t in leaf]
            if weights:
                scores[n, t] = {"SUM": sum, "AVERAGE": lambda w: sum(w) / len(trees), "MIN": min, "MAX": max}[how](weights)
    return scores


def numbered(trees, prefix):
    """Attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""
    columns = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    attrs = {f"nodes_{c}": [] for c in columns} | {f"{prefix}_{c}": [] for c in ("treeids", "nodeids", "ids", "weights")}
    for t, tree in enumerate(trees):
        rows, open_nodes = [None], [(tree, 0)]
        while open_nodes:
            node, at = open_nodes.pop()
            if isinstance(node, dict):
                rows[at] = (t, at, 0, 0.0, "LEAF", 0, 0, 0)
                for target, weight in node.items():
                    for c, v in zip(("treeids", "nodeids", "ids", "weights"), (t, at, target, weight)):
                        attrs[f"{prefix}_{c}"].append(v)
                continue
            mode, feature, value, track, yes, no = node
            rows[at] = (t, at, feature, value, "BRANCH_" + mode, len(rows), len(rows) + 1, int(track))
            open_nodes += [(yes, len(rows)), (no, len(rows) + 1)]
            rows += [None, None]
        for row in rows:
            for c, v in zip(columns, row):
                attrs[f"nodes_{c}"].append(v)
    return attrs


def shared(trees, kind):
    """Attributes of TreeEnsemble."""
    nodes, leaves, members, roots = [], [], [], []

    def add(tree):
        """Whether it is a leaf, and its number."""
        if isinstance(tree, dict):
            (target, weight), = tree.items()
            leaves.append((target, weight))
            return 1, len(leaves) - 1
        mode, feature, value, track, yes, no = tree
        at = len(nodes)
        nodes.append(None)
        nodes[at] = [feature, 0.0 if mode == "MEMBER" else value, MODES.index(mode), int(track), *add(yes), *add(no), value]
        return 0, at
    for tree in trees:
        roots.append(add(tree)[1])
    for node in nodes:
        if node[2] == 6:
            members += sorted(node[8]) + [NAN]
    features, splits, modes, tracks, true_leaf, true, false_leaf, false, _ = zip(*nodes)
    attrs = dict(tree_roots=roots, nodes_featureids=features, nodes_splits=tensor("s", np.array(splits, kind)),
                 nodes_modes=tensor("m", np.array(modes, np.uint8)), nodes_missing_value_tracks_true=tracks, nodes_trueleafs=true_leaf,
                 nodes_truenodeids=true, nodes_falseleafs=false_leaf, nodes_falsenodeids=false, leaf_targetids=[t for t, _ in leaves],
                 leaf_weights=tensor("w", np.array([w for _, w in leaves], kind)))
    if members:
        attrs["membership_values"] = tensor("v", np.array(members, kind))
    return attrs


def rows(seed, count, features, whole=False, missing=0.0):
    r = rng(seed)
    x = (r.integers(-3, 4, (count, features)) if whole else r.standard_normal((count, features))).astype(np.float32)
    x[r.random(x.shape) < missing] = NAN
    if count > 2 and features > 1:
        x[0, 0], x[1, 1] = INF, -INF
    return x


def trees():
    split = dict(modes=MODES[:6], whole=True)
    # name, what grows, rows, aggregate function
    for name, how, count, function in (
            ("leq", {}, 33, "SUM"), ("one_row", {}, 1, "SUM"), ("no_row", {}, 0, "SUM"), ("stump", dict(trees=1, depth=1, features=1), 5, "SUM"),
            ("leaves", dict(trees=3, depth=0), 4, "SUM"), ("modes", split, 40, "SUM"), ("missing", dict(track=0.5, **split), 40, "SUM"),
            ("missing_true", dict(track=1.0), 20, "SUM"), ("ragged", dict(depth=9, leaf=0.3), 20, "SUM"),
            ("deep", dict(trees=2, depth=36, leaf=0.47), 20, "SUM"), ("targets", dict(targets=3, trees=6), 9, "SUM"),
            ("targets_uneven", dict(targets=3, trees=7), 9, "SUM"), ("targets_dense", dict(targets=4, per_leaf=2), 9, "SUM"),
            ("average", dict(targets=2), 9, "AVERAGE"), ("min", {}, 9, "MIN"), ("max_targets", dict(targets=3, trees=7), 9, "MAX"),
            ("min_dense", dict(targets=4, per_leaf=2, trees=2), 9, "MIN"), ("wide", dict(features=3000, trees=700, depth=5), 3, "SUM")):
        given = dict(seed=8, trees=8, depth=4, features=5) | how
        ensemble, targets = grow(**given), given.get("targets", 1)
        x = rows(9, count, given["features"], given.get("whole", False), 0.2 if "track" in given else 0)
        base = floats(np.arange(targets) * 0.5 + 0.25)
        case(f"tree_regressor_{name}", ML, "TreeEnsembleRegressor", [x], [(aggregate(ensemble, x, targets, function) + base).astype(np.float32)],
             version=3, tolerance=1e-4, atol=1e-5, n_targets=targets, aggregate_function=function, base_values=base, **numbered(ensemble, "target"))
    ensemble = grow(10, 6, 4, 3, **split)
    for kind in TYPES:
        x = rows(11, 12, 3, whole=True)[2:].astype(kind)
        case(f"tree_regressor_{kind}", ML, "TreeEnsembleRegressor", [x], [aggregate(ensemble, x, 1).astype(np.float32)], version=1,
             tolerance=1e-4, atol=1e-5, n_targets=1, **numbered(ensemble, "target"))
    # Numbers that float32 can't tell apart.
    close = 1 + 2.0 ** -40
    attrs = numbered([("LT", 0, 0.0, False, {0: 1.0}, {0: 2.0})], "target")
    del attrs["nodes_values"], attrs["target_weights"]
    case("tree_regressor_double", ML, "TreeEnsembleRegressor", [np.array([[1.0], [close], [close + 2.0 ** -45]])],
         [np.array([[1], [2], [2]], np.float32)], version=3, n_targets=1, nodes_values_as_tensor=tensor("v", np.array([close, 0, 0])),
         target_weights_as_tensor=tensor("w", np.array([2.0, 1.0])), **{**attrs, "target_nodeids": [2, 1]})
    for transform in TRANSFORMS:
        for targets, per_leaf in ((1, 1), (3, 1), (3, 3)):
            ensemble, x = grow(12, 6, 3, 4, targets=targets, per_leaf=per_leaf), rows(13, 9, 4)
            scores = aggregate(ensemble, x, targets) + (0.25 if targets == 1 else [0.25, 0.5, 0.75])
            base = floats([0.25, 0.5, 0.75][:targets])
            case(f"tree_regressor_{targets}{per_leaf}_{transform}", ML, "TreeEnsembleRegressor", [x], [finish(scores, transform).astype(np.float32)],
                 version=3, tolerance=1e-4, atol=1e-5, n_targets=targets, post_transform=transform, base_values=base, **numbered(ensemble, "target"))
            if targets == 3:
                case(f"tree_classifier_{per_leaf}_{transform}", ML, "TreeEnsembleClassifier", [x],
                     [np.array([7, 5, 9])[scores.argmax(1)], finish(scores, transform).astype(np.float32)], version=3, tolerance=1e-4, atol=1e-5,
                     classlabels_int64s=[7, 5, 9], post_transform=transform, base_values=base, **numbered(ensemble, "class"))
        # Two classes with the weights of one: 1 - s and s where no weight is negative, else -s and s.
        for positive in (False, True):
            ensemble, x = grow(14, 5, 3, 4), rows(15, 20, 4)
            if positive:
                ensemble = [absolute(tree) for tree in ensemble]
            scores = aggregate(ensemble, x, 1) / (5 if positive else 1)
            if positive:
                ensemble = [absolute(tree, 5) for tree in ensemble]
            picked = np.where(scores[:, 0] > (0.5 if positive else 0), 5, 7)
            case(f"tree_classifier_two_{'positive' if positive else 'mixed'}_{transform}", ML, "TreeEnsembleClassifier", [x],
                 [picked, finish(scores, transform, "complement" if positive else "negation").astype(np.float32)], version=3, tolerance=1e-4,
                 atol=1e-5, classlabels_int64s=[7, 5], post_transform=transform, **numbered(ensemble, "class"))
    ensemble, x = grow(16, 5, 3, 4), rows(17, 9, 4)
    scores = aggregate(ensemble, x, 1)
    case("tree_classifier_one_label", ML, "TreeEnsembleClassifier", [x], [(scores[:, 0] > 0).astype(np.int64), scores.astype(np.float32)],
         version=1, tolerance=1e-4, atol=1e-5, classlabels_int64s=[7], **numbered(ensemble, "class"))
    for kind in ("float16", "float32", "float64"):
        for function, how in enumerate(("AVERAGE", "SUM", "MIN", "MAX")):
            ensemble, x = grow(18, 7, 4, 3, targets=2, modes=MODES, whole=True, track=0.3), rows(19, 30, 3, True, 0.2).astype(kind)
            for_kind = [rounded(tree, kind) for tree in ensemble]
            case(f"tree_ensemble_{kind}_{how}", ML, "TreeEnsemble", [x], [aggregate(for_kind, x, 2, how).astype(kind)], n_targets=2,
                 aggregate_function=function, tolerance=2e-3 if kind == "float16" else 1e-4, atol=1e-3 if kind == "float16" else 1e-5,
                 **shared(for_kind, kind))


def absolute(tree, divide=1):
    if isinstance(tree, dict):
        return {t: float(np.float32(abs(w) / divide)) for t, w in tree.items()}
    return (*tree[:4], absolute(tree[4], divide), absolute(tree[5], divide))


def rounded(tree, kind):
    if isinstance(tree, dict):
        return {t: float(np.array(w, kind)) for t, w in tree.items()}
    return (*tree[:4], rounded(tree[4], kind), rounded(tree[5], kind))


if __name__ == "__main__":
    features()
    strings()
    maps()
    text()
    models()
    trees()
    sys.exit(main())
