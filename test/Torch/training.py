#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make training/: gradients of many small functions, and steps of optimisers, with PyTorch's values.

usage: training.py [NAME]...      all files, or those of these names; with PyTorch 2.15; CI needs the files alone

plain.pt2 holds the graphs as AOTAutograd sees them, core.pt2 after core decompositions, half.pt2 those of bf16 and f16, rest.pt2
those of operators that few models have (of PyTorch 2.11). Expected values are PyTorch's in
float64, rounded. Each case is a function of tensors; its outputs are the gradients of all of its float inputs, of a result that is weighted unevenly.
"""
import io
import os
import sys
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "training")
torch.manual_seed(46)
r = torch.randn
ints = lambda n, *shape: torch.randint(0, n, shape)
CASES = []
HALF = []  # those that narrow types take, too


def case(function, *inputs):
    CASES.append((function, list(inputs)))


def convolutions():
    conv = lambda **options: lambda x, w, b: torch.convolution(x, w, b, **{**dict(stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=False, output_padding=[0, 0], groups=1), **options})
    case(conv(stride=[2, 1], padding=[1, 0], dilation=[1, 2]), r(2, 3, 7, 6), r(5, 3, 3, 2), r(5))
    case(conv(groups=2, padding=[1, 2], stride=[3, 2]), r(1, 4, 8, 5), r(6, 2, 3, 3), r(6))
    case(conv(groups=5), r(2, 5, 4, 4), r(10, 1, 3, 1), r(10))
    case(conv(transposed=True, stride=[2, 3], padding=[1, 0], output_padding=[1, 2], groups=2, dilation=[2, 1]), r(2, 4, 3, 4), r(4, 3, 3, 2), r(6))
    case(conv(), r(1, 1, 1, 1), r(1, 1, 1, 1), r(1))
    case(conv(), r(0, 2, 3, 3), r(3, 2, 2, 2), r(3))
    case(lambda x, w: F.conv1d(x, w, stride=3, padding=2), r(2, 3, 11), r(4, 3, 5))
    case(lambda x, w: F.conv3d(x, w, stride=(1, 2, 1), padding=(0, 1, 1)), r(1, 2, 3, 5, 4), r(3, 2, 2, 3, 3))


def windows():
    case(lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), r(2, 2, 7, 6))
    case(lambda x: F.max_pool2d(x, (2, 3), 1, dilation=(2, 1)), r(1, 2, 5, 6))
    case(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), r(2, 2, 7, 6))
    case(lambda x: F.avg_pool2d(x, (2, 3), divisor_override=5), r(1, 2, 5, 6))
    case(lambda x: F.max_pool3d(x, 2), r(1, 2, 4, 5, 4))
    case(lambda x: F.avg_pool3d(x, 2, padding=1), r(1, 2, 4, 5, 4))
    case(lambda x: F.adaptive_avg_pool2d(x, (3, 2)), r(2, 2, 7, 5))
    case(lambda x: F.adaptive_max_pool2d(x, (3, 2)), r(2, 2, 7, 5))
    for mode in ("nearest", "bilinear", "bicubic", "nearest-exact"):
        case(lambda x, mode=mode: F.interpolate(x, size=(7, 3), mode=mode), r(2, 2, 4, 5))
    case(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True), r(1, 2, 3, 4))
    case(lambda x: F.interpolate(x, size=5, mode="linear"), r(2, 2, 3))
    for mode in ("reflect", "replicate", "circular", "constant"):
        case(lambda x, mode=mode: F.pad(x, (1, 2, 2, 0), mode=mode), r(1, 2, 4, 5))
    for mode in ("zeros", "border", "reflection"):
        for kind in ("bilinear", "nearest", "bicubic"):
            case(lambda x, g, mode=mode, kind=kind: F.grid_sample(x, g, mode=kind, padding_mode=mode, align_corners=kind == "bicubic"), r(2, 2, 4, 5), r(2, 3, 2, 2) * 0.6)
    case(lambda x: x.unfold(1, 3, 2), r(2, 8))
    case(lambda x: x.unfold(0, 2, 2).unfold(1, 3, 1), r(5, 4))
    case(lambda x: F.unfold(x, (2, 3), stride=(1, 2), padding=1), r(1, 2, 4, 5))
    case(lambda x: F.fold(x, (4, 5), (2, 2)), r(1, 8, 12))
    case(lambda x: F.pixel_shuffle(x, 2), r(1, 8, 2, 3))


def norms():
    for weight in (True, False):
        w = (r(6), r(6)) if weight else ()
        case(lambda x, *w: F.layer_norm(x, (6,), *w), r(3, 2, 6), *w)
        case(lambda x, *w: F.group_norm(x, 3, *w), r(2, 6, 3, 1), *w)
        case(lambda x, *w: F.batch_norm(x, None, None, *w, training=True), r(4, 6, 3), *w)
        case(lambda x, *w: F.batch_norm(x, torch.full((6,), 0.3, dtype=x.dtype), torch.full((6,), 1.7, dtype=x.dtype), *w), r(4, 6), *w)
    case(lambda x, w: F.rms_norm(x, (2, 6), w), r(3, 2, 6), r(2, 6))
    case(lambda x: F.instance_norm(x), r(2, 3, 4, 5))
    case(lambda v, g: torch._weight_norm(v, g, 0), r(4, 5), r(4, 1))
    case(lambda x: F.layer_norm(x, (5,)), r(0, 5))


def activations():
    for f in (F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish, F.hardswish, F.hardsigmoid, F.hardtanh, F.relu6, F.leaky_relu, F.softplus, F.logsigmoid,
              F.softshrink, F.hardshrink, F.tanhshrink, F.softsign, F.relu, torch.sigmoid, torch.tanh):  # fmt: skip
        case(f, r(3, 5) * 3)
    case(lambda x: F.elu(x, alpha=0.7), r(5).double())
    case(lambda x: F.elu(x * 1, alpha=0.7, inplace=True), r(5))  # the gradient reads the result
    case(lambda x: F.leaky_relu(x * 1, 0.2, inplace=True), r(5))
    case(lambda x: F.gelu(x, approximate="tanh"), r(3, 5))
    case(lambda x: F.glu(x, 0), r(4, 3))
    case(F.prelu, r(2, 3, 4), r(3))
    case(F.prelu, r(2, 3), r(1))
    case(lambda x: F.softmax(x, 0), r(3, 4))
    case(lambda x: F.log_softmax(x, -1), r(3, 1))
    case(lambda x: F.softmax(x, 0), r(()))


def losses():
    weight = lambda y: torch.linspace(0.5, 2, 4, dtype=y.dtype)
    for reduction in ("none", "mean", "sum"):
        o = dict(reduction=reduction)
        t = ints(4, 6)
        case(lambda y, t, o=o: F.cross_entropy(y, t, weight=weight(y), ignore_index=1, **o), r(6, 4), t)
        case(lambda y, t, o=o: F.cross_entropy(y, t, label_smoothing=0.2, **o), r(2, 4, 3), ints(4, 2, 3))
        case(lambda y, t, o=o: F.nll_loss(y, t, ignore_index=2, **o), r(2, 4, 3, 2), ints(4, 2, 3, 2))
        case(lambda y, t, o=o: F.multi_margin_loss(y, t, weight=weight(y), p=2, margin=0.8, **o), r(6, 4), t)
        case(lambda y, t, o=o: F.multilabel_margin_loss(y, t, **o), r(3, 4), torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [2, 1, 0, 3]]))
        for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div, F.soft_margin_loss):
            case(lambda y, t, f=f, o=o: f(y, t.detach().abs(), **o), r(3, 4), r(3, 4))
        case(lambda y, t, o=o: F.binary_cross_entropy(y.sigmoid(), t.detach().sigmoid(), **o), r(3, 4), r(3, 4))
        case(lambda y, t, o=o: F.binary_cross_entropy_with_logits(y, t.detach().sigmoid(), pos_weight=weight(y), **o), r(3, 4), r(3, 4))
    case(lambda y, t: F.multi_margin_loss(y, t), r(4), torch.tensor(2))
    case(lambda y, t: F.multilabel_margin_loss(y, t), r(4), torch.tensor([1, 3, -1, 0]))
    for p in (1.0, 2.0, 3.0, float("inf")):
        case(lambda x, y, p=p: torch.cdist(x, y, p=p), r(2, 3, 4), r(2, 5, 4))
    case(lambda x: torch.cdist(x, x.detach()), r(3, 4))  # rows at the distance 0


def attention():
    a = F.scaled_dot_product_attention
    case(lambda q, k, v: a(q, k, v), r(2, 2, 5, 4), r(2, 2, 7, 4), r(2, 2, 7, 4))
    case(lambda q, k, v: a(q, k, v, is_causal=True, scale=0.3), r(1, 2, 5, 4), r(1, 2, 5, 4), r(1, 2, 5, 4))
    mask = torch.ones(5, 7, dtype=torch.bool).tril(1)
    case(lambda q, k, v: a(q, k, v, attn_mask=mask), r(1, 2, 5, 4), r(1, 2, 7, 4), r(1, 2, 7, 4))
    case(lambda q, k, v: a(q, k, v, attn_mask=torch.linspace(-1, 1, 35, dtype=q.dtype).reshape(1, 1, 5, 7)), r(1, 2, 5, 4), r(1, 2, 7, 4), r(1, 2, 7, 4))
    case(lambda q, k, v: a(q, k, v, enable_gqa=True), r(1, 4, 3, 4), r(1, 2, 5, 4), r(1, 2, 5, 4))
    case(lambda q, k, v: a(q, k, v), r(1, 1, 1, 8), r(1, 1, 1, 8), r(1, 1, 1, 8))


def tables():
    i = torch.tensor([1, 4, 4, 0, 2, 1])
    case(lambda w: F.embedding(i.reshape(2, 3), w, padding_idx=4), r(5, 3))
    case(lambda w: F.embedding(i, w, scale_grad_by_freq=True), r(5, 3))
    offsets = torch.tensor([0, 2, 2, 5])  # the second bag is empty
    for mode in ("sum", "mean", "max"):
        case(lambda w, mode=mode: F.embedding_bag(i, w, offsets, mode=mode), r(5, 3))
    case(lambda w: F.embedding_bag(i, w, offsets, mode="mean", padding_idx=4), r(5, 3))
    case(lambda w: F.embedding_bag(i, w, torch.tensor([0, 2, 6]), mode="sum", include_last_offset=True), r(5, 3))
    case(lambda x: x[torch.tensor([0, 2, 2])], r(4, 3))
    case(lambda x: x[:, torch.tensor([[0, 1], [1, 1]])], r(2, 3))
    case(lambda x: x.gather(1, torch.tensor([[0, 0], [2, 1]])), r(2, 3))
    case(lambda x, y: x.index_put((torch.tensor([1, 1]),), y, accumulate=True), r(3, 2), r(2, 2))
    case(lambda x, y: x.scatter_add(0, torch.tensor([[1, 1], [0, 1]]), y), r(3, 2), r(2, 2))
    case(lambda x, y: x.scatter(0, torch.tensor([[2, 0]]), y), r(3, 2), r(1, 2))
    case(lambda x: x[1:, ::2].diagonal(), r(4, 6))
    case(lambda x: x.as_strided((3, 2), (2, 1), 1), r(3, 4))


def others():
    for f in (lambda x: x.cumsum(0), lambda x: x.cumprod(1), lambda x: x.logcumsumexp(1), lambda x: x.cummax(1)[0], lambda x: x.prod(1), lambda x: x.var(1),
              lambda x: x.std(), lambda x: x.logsumexp(0), lambda x: x.max(1)[0], lambda x: x.amax(0), lambda x: x.median(1)[0], lambda x: x.sort(0)[0],
              lambda x: x.topk(2, 1)[0], lambda x: x.norm(3), lambda x: torch.fft.rfft(x).abs()):  # fmt: skip
        case(f, r(3, 4))
    case(lambda x: x.sum(1), r(0, 4))
    case(lambda x: torch.linalg.solve(x, torch.eye(3, dtype=x.dtype)), r(3, 3) + 4 * torch.eye(3))
    case(lambda x: torch.linalg.cholesky(x @ x.t()), r(3, 3) + 4 * torch.eye(3))
    case(lambda x, h, a, b: torch.gru_cell(x, h, a, b), r(2, 3), r(2, 4), r(12, 3), r(12, 4))
    case(lambda x, h, c, a, b: torch.lstm_cell(x, (h, c), a, b)[0], r(2, 3), r(2, 4), r(2, 4), r(16, 3), r(16, 4))
    case(torch.bmm, r(2, 3, 4), r(2, 4, 5))
    case(lambda b, x, w: torch.addmm(b, x, w, alpha=0.5), r(5), r(3, 4), r(4, 5))


REST, REST_CALLS = [], []  # of operators that few models have


def rest():
    add = lambda function, *inputs: REST.append((function, list(inputs)))
    add(F.bilinear, r(2, 5, 3), r(2, 5, 4), r(6, 3, 4), r(6))
    add(lambda x, y, w: F.bilinear(x, y, w), r(0, 3), r(0, 4), r(2, 3, 4))
    add(lambda x, y, z: torch._trilinear(x, y, z, [2], [0, 1], [], [1, 2]), r(3, 4), r(5), r(3, 4, 5))
    mask = torch.tensor([[True, False, True], [False, True, True]])
    add(lambda x, y: x.masked_scatter(mask, y), r(2, 3), r(2, 4))
    add(lambda x, y: x.masked_scatter(mask[0], y), r(2, 3), r(4))
    add(lambda x, y: x.masked_scatter(torch.zeros(2, 3, dtype=torch.bool), y), r(2, 3), r(2))
    add(lambda x, y: x.masked_scatter(mask[:0], y), r(0, 3), r(0))
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        add(lambda x, p=p: F.pdist(x, p), torch.cat([r(4, 3), torch.ones(2, 3)]))  # two rows are equal
    add(lambda x, y: torch.cdist(x, y), r(3, 2), r(4, 2))
    add(lambda x, y: torch.cdist(x, y, 1.5), r(2, 1, 3, 2), r(5, 4, 2))  # dims in front are repeated
    add(lambda x, y: torch.cdist(x, y), r(3, 0), r(4, 0))
    add(lambda x: F.pdist(x), r(1, 3))
    add(lambda x: F.pdist(x), torch.tensor([[1.0, float("nan")], [0.0, 2.0], [3.0, 1.0]]))
    add(lambda x: F.rrelu(x, 0.1, 0.4), r(3, 4))
    samples = torch.rand(2, 3, 2)
    add(lambda x: F.fractional_max_pool2d(x, (2, 3), output_size=(3, 2), _random_samples=samples.to(x.dtype)), r(2, 3, 7, 6))
    solid = torch.rand(1, 2, 3)
    add(lambda x: F.fractional_max_pool3d(x, 2, output_size=(2, 3, 2), _random_samples=solid.to(x.dtype)), r(1, 2, 5, 7, 4))
    for mode in ("bilinear", "bicubic"):
        add(lambda x, mode=mode: F.interpolate(x, size=(3, 9), mode=mode, antialias=True), r(2, 2, 7, 5))
        add(lambda x, mode=mode: F.interpolate(x, scale_factor=(0.4, 0.7), mode=mode, antialias=True, align_corners=True), r(1, 2, 7, 6))
    i, offsets = torch.tensor([1, 4, 4, 0, 2, 1]), torch.tensor([0, 2, 2, 5])
    add(lambda w, s: F.embedding_bag(i, w, offsets, mode="sum", per_sample_weights=s), r(5, 3), r(6))
    add(lambda w, s: F.embedding_bag(i, w, torch.tensor([0, 2, 6]), mode="sum", per_sample_weights=s, include_last_offset=True, padding_idx=4), r(5, 3), r(6))
    call = lambda function, *inputs: REST_CALLS.append((function, list(inputs)))
    a = torch.ops.aten
    for training, is_result in ((True, False), (True, True), (False, False)):
        call(lambda g, x, noise, o=(training, is_result): [a.rrelu_with_noise_backward(g, x, noise, 0.1, 0.3, *o)], r(3, 4), r(3, 4), torch.rand(3, 4))
    call(lambda g, x, w, m, v: a.batch_norm_backward(g, x, w, m, v, x.mean((0, 2)), x.var((0, 2)).rsqrt(), True, 1e-5, [True, True, True], torch.empty(0, dtype=torch.uint8)),
         r(4, 3, 2), r(4, 3, 2), r(3), r(3), r(3).abs())  # fmt: skip
    call(lambda x, w, b, m, v: [y for i, y in enumerate(a._batch_norm_with_update_functional(x, w, b, m, v, 0.3, 1e-5)) if i != 3],
         r(4, 3, 2), r(3), r(3), r(3), r(3).abs())  # fmt: skip
    l, factor = torch.linalg, torch.linalg.lu_factor
    for shape in ((3, 3), (2, 4, 3), (2, 3, 5), (1, 1), (0, 3, 3)):
        call(lambda x: [*l.lu(x), *torch.lu_unpack(*factor(x))], r(*shape))
        add(lambda x: sum((i + 1) * part.square().sum() for i, part in enumerate(l.lu(x)[1:])), r(*shape))
    for left in (True, False):
        for adjoint in (True, False):
            call(lambda x, y, o=dict(left=left, adjoint=adjoint): [l.lu_solve(*factor(x), y, **o)], r(2, 4, 4), r(3, 1, 4, 4))
    add(lambda x, y: l.solve(x, y), r(2, 3, 3), r(2, 3, 2))
    add(lambda x, y: l.lu_solve(*factor(x), y), r(2, 3, 3), r(2, 3, 2))
    add(lambda x, y: torch.lu_solve(y, *factor(x)), r(3, 3), r(2, 3, 0))
    for m, n, k in ((4, 4, 4), (5, 3, 2), (3, 3, 0), (1, 1, 1)):
        add(l.householder_product, r(2, m, n), r(2, k))
    call(lambda x, t: [l.householder_product(x, t)], r(0, 3, 2), r(0, 2))
    for left in (True, False):
        for transpose in (True, False):
            call(lambda x, t, y, o=(left, transpose): [torch.ormqr(x, t, y if o[0] else y.mT, *o)], r(2, 4, 3), r(2, 3), r(2, 4, 5))
    numbers = torch.tensor([0.0, -0.0, -2.0, float("nan"), float("inf"), 0.3, 1.0, 4.5, 7.0])
    call(lambda x: [torch.special.entr(x), torch.special.entr(x[:0])], numbers)
    call(lambda x: [torch.mvlgamma(x + 2, p) for p in (1, 3, 4)], r(2, 3).abs())
    add(lambda x: torch.special.entr(x) + torch.mvlgamma(x + 2, 3), r(2, 3).abs())
    # Products by groups: of rows, of columns, and of terms, as the gradients of both; whole numbers are exact in bf16.
    whole = lambda *shape: torch.randint(-3, 4, shape).float()
    ends = torch.tensor([8, 8, 24], dtype=torch.int32)  # the second group is empty
    call(lambda x, y: grouped(x, y, ends), whole(24, 8), whole(3, 8, 16))
    call(lambda x, y: grouped(x, y, ends), whole(3, 16, 8), whole(8, 24))
    call(lambda x, y: grouped(x, y, ends), whole(8, 24), whole(24, 16))
    call(lambda x, y: grouped(x, y, None), whole(2, 8, 8), whole(2, 8, 16))


def grouped(x, y, ends):
    """torch._grouped_mm, which is one of bf16; float64 has what it says."""
    if x.dtype == torch.float32:
        return [torch._grouped_mm(x.bfloat16(), y.bfloat16(), offs=ends).float()]
    if ends is None:
        return [x @ y]
    groups = list(zip([0, *ends.tolist()[:-1]], ends.tolist()))
    rest = (x.shape[0] if x.dim() == 2 else y.shape[1]) - int(ends[-1])
    if x.dim() == 2 and y.dim() == 2:
        return [torch.stack([x[:, a:b] @ y[a:b] for a, b in groups])]
    if x.dim() == 2:
        return [torch.cat([*(x[a:b] @ m for m, (a, b) in zip(y, groups)), x.new_zeros(rest, y.shape[2])])]
    return [torch.cat([*(m @ y[:, a:b] for m, (a, b) in zip(x, groups)), x.new_zeros(x.shape[1], rest)], 1)]


CALLS = []  # functions of tensors whose results are compared themselves


def calls():
    two = [r(2, 3), r(4)]
    CALLS.append((lambda a, b, c, d: lists_of([a, b], [c, d]), [*two, r(2, 3), r(4)]))
    step = [torch.tensor(3.0), torch.tensor(5.0)]
    o = dict(lr=0.1, weight_decay=0.01, maximize=False)
    adam = dict(o, beta1=0.9, beta2=0.99, eps=1e-6)
    a = torch.ops.aten
    for amsgrad in (False, True):
        for f in (a._fused_adam, a._fused_adamw):
            CALLS.append((lambda p, g, m, v, s, f=f, amsgrad=amsgrad: [x for t in f([p], [g], [m], [v], [v * 1.5] if amsgrad else [], [s.float()], amsgrad=amsgrad, **adam) for x in t],
                          [r(2, 3), r(2, 3), r(2, 3), r(2, 3).abs(), step[0]]))  # fmt: skip
    CALLS.append((lambda p, g, m, v, s, k, i: [x for t in a._fused_adamw.tensor_lr([p], [g], [m], [v], [], [s.float()], amsgrad=False, grad_scale=k.float(), found_inf=i.float(), **{**adam, "lr": k.float() * 0.01, "maximize": True}) for x in t],
                  [r(3), r(3), r(3), r(3).abs(), step[1], torch.tensor([4.0]), torch.tensor([0.0])]))  # fmt: skip
    for nesterov, first in ((False, True), (True, False), (False, False)):
        CALLS.append((lambda p, g, m, nesterov=nesterov, first=first: [x for t in a._fused_sgd([p], [g], [m], momentum=0.9, dampening=0.0 if nesterov else 0.2, nesterov=nesterov, is_first_step=first, **o) for x in t],
                      [r(2, 3), r(2, 3), r(2, 3)]))  # fmt: skip
    CALLS.append((lambda p, g, m, s: [x for t in a._fused_adagrad([p], [g], [m], [s.float()], lr_decay=0.1, eps=1e-6, **o) for x in t], [r(2, 3), r(2, 3), r(2, 3).abs(), step[0]]))


def lists_of(p, g):
    f = torch
    return [*f._foreach_add(p, g, alpha=0.3), *f._foreach_add(p, 2.0), *f._foreach_add(p, [1.0, -1.0]), *f._foreach_sub(p, g, alpha=2),
            *f._foreach_mul(p, g), *f._foreach_mul(p, 0.5), *f._foreach_div(p, [2.0, 4.0]), *f._foreach_lerp(p, g, 0.25), *f._foreach_lerp(p, g, g),
            *f._foreach_addcdiv(p, g, f._foreach_exp(g), [0.1, 0.2]), *f._foreach_addcmul(p, g, g, 0.3), *f._foreach_sqrt(f._foreach_abs(g)), *f._foreach_neg(g),
            *f._foreach_maximum(p, g), *f._foreach_maximum(p, 0.1), *f._foreach_clamp_max(p, [0.1, 0.2]), *f._foreach_minimum(p, g), *f._foreach_norm(g),
            *f._foreach_norm(g, 1), *f._foreach_pow(f._foreach_abs(p), 3), *f._foreach_pow(2.0, p), *f._foreach_max(p), *f._foreach_reciprocal(f._foreach_exp(p))]  # fmt: skip


def gradients(function, inputs):
    floats = [i for i, x in enumerate(inputs) if x.is_floating_point()]

    def value(*wanted):
        given = list(inputs)
        for i, x in zip(floats, wanted):
            given[i] = x
        y = function(*given)
        return (y * torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)).sum() if y.numel() else y.sum()

    _, pull = torch.func.vjp(value, *[inputs[i] for i in floats])
    return pull(torch.ones((), dtype=inputs[floats[0]].dtype))


def in_type(dtype):
    """A dozen cases whose functions compute in a narrow type; in float64 they stay there."""
    for function, inputs in HALF[::3]:
        narrow = lambda *given, f=function: f(*[x.to(dtype) if x.dtype == torch.float32 else x for x in given])
        yield lambda *given, n=narrow: (y := n(*given)).to(torch.float32 if y.dtype == dtype else y.dtype), inputs


def save(program, path):
    """Without what only PyTorch reads, as these files are committed."""
    for node in program.graph.nodes:
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "from_node", "custom"):
            node.meta.pop(key, None)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED, 9)


def make(name, cases, calls, table):
    flat = [x for _, inputs in cases + calls for x in inputs]

    def run(*given):
        results, at = [], 0
        for i, (function, inputs) in enumerate(cases + calls):
            mine = given[at : at + len(inputs)]
            at += len(inputs)
            results += gradients(function, mine) if i < len(cases) else function(*mine)
        return tuple(results)

    with torch.backends.mkldnn.flags(enabled=False):
        got = run(*flat)
        wide = run(*[x.double() if x.is_floating_point() else x for x in flat])
        # Gradients of which PyTorch itself keeps no hundredth are left out: in narrow types, those through norms of few elements.
        size = lambda x: float(x.abs().nan_to_num().max()) if x.numel() else 0.0
        kept = [size(w.double() - g.double()) <= 1e-2 * size(w) for w, g in zip(wide, got)]
        chosen = lambda results: tuple(x for x, is_kept in zip(results, kept) if is_kept)
        print(name, len(kept), "results, left out:", [(i, size(wide[i])) for i, is_kept in enumerate(kept) if not is_kept])
        graph = make_fx(torch.func.functionalize(lambda *x: chosen(run(*x)), remove="mutations"), decomposition_table=table)(*flat)

    class Program(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.graph = graph

        def forward(self, x):
            return tuple(self.graph(*x))

    with torch.no_grad():
        save(torch.export.export(Program(), (tuple(flat),), strict=False), os.path.join(FOLDER, name + ".pt2"))
    np.savez_compressed(os.path.join(FOLDER, name + ".in.npz"), **{f"x.{i}": x.numpy() for i, x in enumerate(flat)})
    np.savez_compressed(os.path.join(FOLDER, name + ".out.npz"), **{f"output_{i}": w.to(g.dtype).contiguous().numpy() for i, (w, g) in enumerate(zip(chosen(wide), chosen(got)))})


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for part in (convolutions, norms, activations):
        part()
    HALF.extend(c for c in CASES if all(x.dtype == torch.float32 for x in c[1]))
    for part in (windows, losses, attention, tables, others, calls, rest):
        part()
    files = {
        "plain": lambda: (CASES, CALLS, {}),
        "core": lambda: (CASES, CALLS, torch._decomp.core_aten_decompositions()),
        "half": lambda: ([*in_type(torch.bfloat16), *in_type(torch.float16)], [], {}),
        "rest": lambda: (REST, REST_CALLS, {}),
    }
    for name in sys.argv[1:] or files:
        make(name, *files[name]())


if __name__ == "__main__":
    main()
