#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of small modules as .pt2 archives: which compile, and whether losses and gradients are PyTorch's.

usage: torch_training.py FOLDER [--bin build/bin] [--stage export|compile|table]... [--filter RE] [--table FILE] [--forms plain core] [--cpu x86-64-v3] [--again]

A step takes parameters, buffers and a batch, and gives the loss, the gradient of every parameter and input, buffers, and parameters after an update where
it has an optimiser. plain.pt2 holds what AOTAutograd sees, core.pt2 the same after core decompositions. Expected values are eager PyTorch's in float64;
right is --max-rel 2e-5 of each output's largest value, with 1 and 2 threads. What is refused is counted by operator.
Stage export needs an environment with requirements-bench.txt.
"""
import argparse
import collections
import contextlib
import importlib
import json
import os
import re
import sys
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_models import call, generalize  # noqa: E402

warnings.filterwarnings("ignore")
FORMS = {"plain": "plain.pt2", "core": "core.pt2"}
STEPS = {}


def declare():
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Net(nn.Module):
        """A module of parts and a function of them and the inputs."""

        def __init__(self, function, **parts):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)
            self.function = function

        def forward(self, *inputs):
            return self.function(self, *inputs)

    def images(n=4, c=3, h=13, w=11):
        return torch.randn(n, c, h, w)

    def classes(n=4, count=5):
        return torch.randint(0, count, (n,))

    def over(name, module, inputs, targets, loss, optimiser=None):
        """module and the like are functions, so that seeds decide them."""
        STEPS[name] = lambda: (module(), inputs(), targets(), loss, optimiser)

    flat = lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    entropy = lambda y, t: F.cross_entropy(y, t)
    square = lambda y: (y * torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)).square().mean()

    # ---- dense and convolutional nets
    over("mlp", lambda: nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 5)), lambda: [torch.randn(6, 7)], lambda: [classes(6)], entropy, "sgd")
    for act in ("GELU", "SiLU", "Mish", "Hardswish", "ELU", "SELU", "CELU", "LeakyReLU", "Softplus", "Hardsigmoid", "Hardtanh", "ReLU6", "LogSigmoid", "Softshrink", "Hardshrink", "Tanhshrink", "Softsign", "PReLU"):
        over("act_" + act.lower(), lambda act=act: nn.Sequential(nn.Linear(5, 9), getattr(nn, act)(), nn.Linear(9, 3)), lambda: [torch.randn(4, 5) * 3], lambda: [], square)
    over("glu", lambda: nn.Sequential(nn.Linear(5, 8), nn.GLU(), nn.Linear(4, 3)), lambda: [torch.randn(4, 5)], lambda: [], square)
    over("gelu_tanh", lambda: nn.Sequential(nn.Linear(5, 8), nn.GELU(approximate="tanh")), lambda: [torch.randn(4, 5)], lambda: [], square)
    over("cnn_bn", lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, stride=2, bias=False), nn.BatchNorm2d(12), nn.ReLU(), flat(), nn.Linear(12, 5)),
         lambda: [images()], lambda: [classes()], entropy, "sgd")  # fmt: skip
    over("cnn_dilated", lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=2, dilation=2), nn.ELU(), nn.Conv2d(8, 8, (3, 2), stride=(2, 3), padding=(0, 1)), nn.AvgPool2d(2), flat(), nn.Linear(8, 5)),
         lambda: [images()], lambda: [classes()], entropy)  # fmt: skip
    over("cnn_groups", lambda: nn.Sequential(nn.Conv2d(4, 8, 3, groups=2, stride=2), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 8, 3, groups=8, padding=1), nn.Hardswish(), nn.Conv2d(8, 5, 1), flat()),
         lambda: [images(c=4)], lambda: [classes()], entropy, "adam")  # fmt: skip
    over("cnn_padding_modes", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), nn.Conv2d(4, 4, 3, padding=1, padding_mode="replicate"), nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), flat()),
         lambda: [images()], lambda: [classes(count=4)], entropy)  # fmt: skip
    over("conv1d", lambda: nn.Sequential(nn.Conv1d(3, 6, 5, stride=2, padding=2), nn.ReLU(), nn.Conv1d(6, 6, 3, dilation=3), nn.AvgPool1d(2), nn.Flatten(), nn.LazyLinear(5)), lambda: [torch.randn(3, 3, 31)], lambda: [classes(3)], entropy)
    over("conv3d", lambda: nn.Sequential(nn.Conv3d(2, 4, 3, padding=1, bias=False), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(4, 4, (1, 2, 3)), nn.AdaptiveAvgPool3d(1), nn.Flatten()), lambda: [torch.randn(2, 2, 5, 6, 7)], lambda: [classes(2, 4)], entropy)
    over("residual", lambda: Net(lambda m, x: m.head(F.relu(m.b(F.relu(m.n(m.a(x)))) + m.short(x))), a=nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), n=nn.BatchNorm2d(8), b=nn.Conv2d(8, 8, 3, padding=1), short=nn.Conv2d(3, 8, 1, stride=2), head=nn.Sequential(flat(), nn.Linear(8, 5))),
         lambda: [images()], lambda: [classes()], entropy, "momentum")  # fmt: skip
    over("depthwise", lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU6(), nn.Conv2d(8, 8, 3, padding=1, groups=8, stride=2, bias=False), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 5, padding=2, groups=8), nn.Hardsigmoid(), nn.Conv2d(8, 5, 1), flat()), lambda: [images()], lambda: [classes()], entropy, "adamw")
    over("squeeze_excite", lambda: Net(lambda m, x: m.head((y := m.a(x)) * m.s(y)), a=nn.Conv2d(3, 8, 3), s=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 8, 1), nn.Sigmoid()), head=nn.Sequential(nn.AdaptiveMaxPool2d((2, 3)), nn.Flatten(), nn.Linear(48, 5))), lambda: [images()], lambda: [classes()], entropy)
    over("unet_transposed", lambda: Net(lambda m, x: m.out(torch.cat([m.up(F.relu(m.down(x))), x], 1)), down=nn.Conv2d(3, 6, 3, stride=2, padding=1), up=nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1), out=nn.Conv2d(7, 2, 3, padding=1)),
         lambda: [images(h=12, w=8)], lambda: [torch.randint(0, 2, (4, 12, 8))], entropy)  # fmt: skip
    over("transposed_groups", lambda: nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=(2, 1), padding=1, output_padding=(1, 0), groups=2, dilation=(1, 2)), nn.ReLU(), nn.ConvTranspose2d(6, 3, 2, bias=False)), lambda: [images(2, 4, 5, 6)], lambda: [], square)
    for mode in ("nearest", "bilinear", "bicubic"):
        over("unet_" + mode, lambda mode=mode: Net(lambda m, x: m.out(F.interpolate(F.relu(m.down(x)), size=x.shape[2:], mode=mode) + m.skip(x)), down=nn.Conv2d(3, 4, 3, stride=2, padding=1), skip=nn.Conv2d(3, 4, 1), out=nn.Conv2d(4, 2, 3, padding=1)),
             lambda: [images()], lambda: [torch.randint(0, 2, (4, 13, 11))], entropy)  # fmt: skip
    over("upsample_aligned", lambda: nn.Sequential(nn.Conv2d(3, 2, 1), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(2, 2, 3)), lambda: [images(2, 3, 5, 4)], lambda: [], square)
    over("pixel_shuffle", lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(2, 4, 3), nn.PixelUnshuffle(2)), lambda: [images(2, 3, 5, 4)], lambda: [], square)
    over("sampler", lambda: Net(lambda m, x: F.grid_sample(m.a(x), F.affine_grid(m.t(x.mean((2, 3))).reshape(-1, 2, 3) * 0.3, (4, 4, 7, 6), align_corners=False), align_corners=False, padding_mode="border"), a=nn.Conv2d(3, 4, 1), t=nn.Linear(3, 6)), lambda: [images()], lambda: [], square)
    over("pools", lambda: Net(lambda m, x: torch.cat([f(m.a(x)).flatten(1) for f in (m.p, m.q, m.r, m.l)], 1), a=nn.Conv2d(3, 4, 1), p=nn.MaxPool2d(3, 2, 1, dilation=1, ceil_mode=True), q=nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), r=nn.AdaptiveAvgPool2d((3, 4)), l=nn.LPPool2d(2, 2)), lambda: [images()], lambda: [], square)

    # ---- norms
    over("norms", lambda: Net(lambda m, x: (m.i(m.c(x)) * m.g(x.repeat(1, 2, 1, 1))[..., 1:-1, 1:-1]).flatten(1), c=nn.Conv2d(3, 6, 3, bias=False), i=nn.InstanceNorm2d(6, affine=True), g=nn.GroupNorm(3, 6)), lambda: [images()], lambda: [], square)
    over("layer_norm", lambda: nn.Sequential(nn.Linear(5, 9), nn.LayerNorm(9), nn.Linear(9, 9), nn.LayerNorm((3, 9)), nn.RMSNorm(9)), lambda: [torch.randn(2, 3, 5)], lambda: [], square, "adam")
    over("bn1d_eval", lambda: nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9).eval(), nn.Linear(9, 2)), lambda: [torch.randn(4, 5)], lambda: [], square)
    over("weight_norm", lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)), nn.Tanh(), nn.utils.parametrizations.weight_norm(nn.Linear(4, 3), dim=None)), lambda: [torch.randn(4, 5)], lambda: [], square)
    over("vector_norms", lambda: Net(lambda m, x: torch.cat([F.normalize(m.a(x)), torch.linalg.vector_norm(m.a(x), 3, -1, keepdim=True), torch.cdist(m.a(x), x), F.cosine_similarity(m.a(x), x)[:, None]], 1), a=nn.Linear(5, 5)), lambda: [torch.randn(4, 5)], lambda: [], square)

    # ---- sequences
    over("encoder", lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False), lambda: [torch.randn(2, 7, 16)], lambda: [], square, "adam")
    over("decoder", lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 32, dropout=0.0, activation="gelu", norm_first=True, batch_first=True), 1), lambda: [torch.randn(2, 5, 16), torch.randn(2, 7, 16)], lambda: [], square)
    over("attention_causal", lambda: Net(lambda m, x: F.scaled_dot_product_attention(*(m.p(x).reshape(2, 7, 3, 2, 8).permute(2, 0, 3, 1, 4)), is_causal=True).transpose(1, 2).reshape(2, 7, 16) + x, p=nn.Linear(16, 48)), lambda: [torch.randn(2, 7, 16)], lambda: [], square)
    over("attention_bias", lambda: Net(lambda m, x: F.scaled_dot_product_attention(*(m.p(x).reshape(2, 7, 3, 2, 8).permute(2, 0, 3, 1, 4)), attn_mask=m.t(torch.arange(7))[:, :7].reshape(1, 1, 7, 7)), p=nn.Linear(16, 48), t=nn.Embedding(7, 7)), lambda: [torch.randn(2, 7, 16)], lambda: [], square)
    over("attention_by_hand", lambda: Net(lambda m, x: torch.softmax(torch.einsum("bqd,bkd->bqk", m.q(x), m.k(x)).masked_fill(torch.triu(torch.ones(7, 7), 1).bool(), float("-inf")), -1) @ m.v(x), q=nn.Linear(16, 8), k=nn.Linear(16, 8, bias=False), v=nn.Linear(16, 8)), lambda: [torch.randn(2, 7, 16)], lambda: [], square)
    over("attention_grouped", lambda: Net(lambda m, x: F.scaled_dot_product_attention(m.q(x).reshape(2, 7, 4, 4).transpose(1, 2), m.k(x).reshape(2, 7, 2, 4).transpose(1, 2), m.v(x).reshape(2, 7, 2, 4).transpose(1, 2), enable_gqa=True), q=nn.Linear(8, 16), k=nn.Linear(8, 8), v=nn.Linear(8, 8)), lambda: [torch.randn(2, 7, 8)], lambda: [], square)
    over("multihead", lambda: Net(lambda m, x: m.a(x, x, x, need_weights=True)[0], a=nn.MultiheadAttention(16, 4, batch_first=True, add_bias_kv=True)), lambda: [torch.randn(2, 7, 16)], lambda: [], square)
    over("language_model", lambda: Net(lambda m, i: m.o(m.n(m.b(m.e(i) + m.p(torch.arange(7))))), e=nn.Embedding(20, 16, padding_idx=0), p=nn.Embedding(9, 16), b=nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), n=nn.LayerNorm(16), o=nn.Linear(16, 20)),
         lambda: [torch.randint(0, 20, (3, 7))], lambda: [torch.randint(0, 20, (3, 7))], lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten(), ignore_index=3, label_smoothing=0.1), "adamw")  # fmt: skip
    over("tied", lambda: Net(lambda m, i: m.e(i).mean(1) @ m.e.weight.t(), e=nn.Embedding(11, 6)), lambda: [torch.randint(0, 11, (4, 5))], lambda: [classes(4, 11)], entropy, "adagrad")
    over("embedding_bag", lambda: Net(lambda m, i: m.o(m.e(i) + m.f(i)), e=nn.EmbeddingBag(11, 6, mode="mean"), f=nn.EmbeddingBag(11, 6, mode="sum"), o=nn.Linear(6, 3)), lambda: [torch.randint(0, 11, (4, 5))], lambda: [classes(4, 3)], entropy)
    over("embedding_bag_max", lambda: Net(lambda m, i: m.e(i), e=nn.EmbeddingBag(11, 6, mode="max")), lambda: [torch.randint(0, 11, (4, 5))], lambda: [], square)
    for kind in ("RNN", "GRU", "LSTM"):
        over(kind.lower(), lambda kind=kind: Net(lambda m, x: m.o(m.r(x)[0][:, -1]), r=getattr(nn, kind)(5, 6, num_layers=2 if kind == "LSTM" else 1, bidirectional=kind == "GRU", batch_first=True), o=nn.Linear(12 if kind == "GRU" else 6, 3)), lambda: [torch.randn(2, 5, 5)], lambda: [classes(2, 3)], entropy, "rmsprop")
        over(kind.lower() + "_cell", lambda kind=kind: Net(lambda m, x: m.r(m.i(x), None if kind != "LSTM" else (x, x))[0] if kind == "LSTM" else m.r(m.i(x), x), i=nn.Linear(6, 5), r=getattr(nn, kind + "Cell")(5, 6)), lambda: [torch.randn(3, 6)], lambda: [], square)

    # ---- losses
    def loss(name, function, target, positive=False):
        over("loss_" + name, lambda: nn.Sequential(nn.Linear(4, 5), *([nn.Sigmoid()] if positive else [])), lambda: [torch.randn(6, 4)], target, function)

    weights = lambda y: torch.linspace(0.5, 2, y.shape[1], dtype=y.dtype)
    each = lambda v: (v * torch.linspace(0.5, 1.5, v.numel(), dtype=v.dtype).reshape(v.shape)).sum()
    real = lambda: [torch.randn(6, 5)]
    for reduction in ("none", "mean", "sum"):
        r = dict(reduction=reduction)
        loss("nll_" + reduction, lambda y, t, r=r: each(F.nll_loss(F.log_softmax(y, 1), t, weight=weights(y), ignore_index=2, **r)), lambda: [classes(6)])
        loss("cross_" + reduction, lambda y, t, r=r: each(F.cross_entropy(y, t, weight=weights(y), ignore_index=1, **r)), lambda: [classes(6)])
        loss("mse_" + reduction, lambda y, t, r=r: each(F.mse_loss(y, t, **r)), real)
        loss("l1_" + reduction, lambda y, t, r=r: each(F.l1_loss(y, t, **r)), real)
        loss("smooth_" + reduction, lambda y, t, r=r: each(F.smooth_l1_loss(y, t, beta=0.7, **r)), real)
        loss("huber_" + reduction, lambda y, t, r=r: each(F.huber_loss(y, t, delta=0.7, **r)), real)
        loss("bce_" + reduction, lambda y, t, r=r: each(F.binary_cross_entropy(y, t, **r)), lambda: [torch.rand(6, 5)], positive=True)
        loss("bce_logits_" + reduction, lambda y, t, r=r: each(F.binary_cross_entropy_with_logits(y, t, pos_weight=weights(y), **r)), lambda: [torch.rand(6, 5)])
        loss("kl_" + reduction, lambda y, t, r=r: each(F.kl_div(F.log_softmax(y, 1), F.softmax(t, 1), **r)), real)
    loss("soft_targets", lambda y, t: F.cross_entropy(y, F.softmax(t, 1)), real)
    loss("poisson", lambda y, t: F.poisson_nll_loss(y, t), lambda: [torch.rand(6, 5)])
    loss("gaussian", lambda y, t: (y.exp() + 0.1).log().add((y - t).square() / (y.exp() + 0.1)).mean(), real)
    loss("hinge", lambda y, t: F.hinge_embedding_loss(y, t.sign()), real)
    loss("margin", lambda y, t: F.multi_margin_loss(y, t, weight=weights(y)), lambda: [classes(6)])
    loss("multilabel", lambda y, t: F.multilabel_soft_margin_loss(y, (t > 0).to(y.dtype)), real)
    loss("multilabel_margin", lambda y, t: F.multilabel_margin_loss(y, t), lambda: [torch.tensor([[3, 0, -1, 1, 2]] * 6)])
    loss("soft_margin", lambda y, t: F.soft_margin_loss(y, t.sign()), real)
    loss("triplet", lambda y, t: F.triplet_margin_loss(y, t, t.flip(0)), real)
    loss("cosine", lambda y, t: F.cosine_embedding_loss(y, t, torch.tensor([1, -1] * 3)), real)
    loss("ranking", lambda y, t: F.margin_ranking_loss(y[:, 0], y[:, 1], t[:, 0].sign(), margin=0.2), real)
    over("loss_pixels", lambda: nn.Conv2d(3, 4, 1), lambda: [images()], lambda: [torch.randint(0, 4, (4, 13, 11))], lambda y, t: F.cross_entropy(y, t, weight=weights(y), ignore_index=0))

    # ---- indices, running sums, other functions
    over("indices", lambda: Net(lambda m, x: torch.cat([m.a(x)[torch.tensor([0, 2, 2])], m.a(x).gather(0, torch.tensor([[1] * 5])), m.a(x).index_select(0, torch.tensor([3, 3])), torch.take_along_dim(m.a(x), m.a(x).argsort(0), 0)], 0), a=nn.Linear(4, 5)), lambda: [torch.randn(4, 4)], lambda: [], square)
    over("scatters", lambda: Net(lambda m, x: torch.zeros(6, 5, dtype=x.dtype).index_add(0, torch.tensor([0, 2, 2, 5]), m.a(x)) + torch.zeros(6, 5, dtype=x.dtype).scatter_add(0, torch.tensor([[1] * 5, [4] * 5]), m.a(x)[:2]) + torch.zeros(6, 5, dtype=x.dtype).index_put((torch.tensor([1, 1, 3, 0]),), m.a(x), accumulate=True), a=nn.Linear(4, 5)), lambda: [torch.randn(4, 4)], lambda: [], square)
    over("scans", lambda: Net(lambda m, x: torch.cat([m.a(x).cumsum(1), m.a(x).cumprod(0), m.a(x).logcumsumexp(1), m.a(x).cummax(1)[0], m.a(x).logsumexp(1, keepdim=True)], 1), a=nn.Linear(4, 5)), lambda: [torch.randn(4, 4)], lambda: [], square)
    over("reductions", lambda: Net(lambda m, x: torch.stack([(y := m.a(x)).max(1)[0], y.amin(1), y.var(1), y.std(1), y.prod(1), y.median(1)[0], y.topk(2, 1)[0].sum(1), y.sort(1)[0][:, 1], y.norm(dim=1)], 1), a=nn.Linear(4, 5)), lambda: [torch.randn(4, 4)], lambda: [], square)
    over("functions", lambda: Net(lambda m, x: torch.stack([f(m.a(x)) for f in (torch.sin, torch.atan, torch.erf, torch.asinh, torch.expm1, torch.abs, torch.cosh, lambda v: torch.log1p(v * v), lambda v: v.pow(3), lambda v: (v * v + 1).rsqrt(), lambda v: torch.atan2(v, x[:, :1]), lambda v: v.clamp(-0.3, 0.4), lambda v: torch.where(v > 0, v, v * v), lambda v: torch.hypot(v, x[:, 1:2]), torch.special.i0e, torch.sinc, lambda v: torch.lgamma(v * v + 1))]), a=nn.Linear(4, 5)), lambda: [torch.randn(4, 4)], lambda: [], square)
    over("movement", lambda: Net(lambda m, x: torch.cat([(y := m.a(x)).roll(1, 0).flatten(), y.flip(1).flatten(), y.tril().flatten(), y.repeat(2, 1).flatten(), y.unfold(1, 2, 2).flatten(), y.diagonal().flatten(), F.pad(y, (1, -1, 2, 0)).flatten(), y.expand(2, 4, 5).flatten(), torch.repeat_interleave(y, 2, 1).flatten(), F.unfold(y[None, None], 2).flatten(), F.fold(y.reshape(1, 4, 5)[:, :, :4], (3, 3), 2).flatten(), y.as_strided((3, 2), (2, 1)).flatten()]), a=nn.Linear(4, 5)), lambda: [torch.randn(4, 4)], lambda: [], square)
    over("solves", lambda: Net(lambda m, x: torch.linalg.solve(y := m.a(x) + 5 * torch.eye(4, dtype=x.dtype), x) + torch.linalg.inv(y) + torch.linalg.cholesky(y @ y.t()) + torch.logdet(y), a=nn.Linear(4, 4)), lambda: [torch.randn(4, 4)], lambda: [], square)
    over("spectrum", lambda: Net(lambda m, x: torch.fft.rfft(m.a(x)).abs().square(), a=nn.Linear(4, 6)), lambda: [torch.randn(3, 4)], lambda: [], square)
    over("experts", lambda: Net(lambda m, x: sum(g[:, None] * e(x) for g, e in zip(torch.softmax(m.g(x), 1).unbind(1), m.e)), g=nn.Linear(4, 3), e=nn.ModuleList(nn.Linear(4, 5) for _ in range(3))), lambda: [torch.randn(4, 4)], lambda: [], square, "adam")
    over("second_order", lambda: Net(lambda m, x: torch.autograd.grad(m.a(x).tanh().sum(), m.a.weight, create_graph=True)[0], a=nn.Linear(4, 5)), lambda: [torch.randn(4, 4)], lambda: [], square)
    # Linear in x whatever is left out: the loss is the gradient's product with x.
    for kind in ("dropout", "alpha_dropout", "dropout2d"):
        over(kind, lambda kind=kind: Net(lambda m, x: m.w(F.dropout2d(x, 0.3) if kind == "dropout2d" else getattr(F, "dropout")(x, 0.3 if kind == "dropout" else 0.6)), w=nn.Linear(6, 1, bias=False)), lambda: [torch.randn(4, 3, 6)], lambda: [], None)


def build(name):
    """The step as a function of flat tensors, those, and how to say it in float64."""
    import torch

    torch.manual_seed(len(name) * 131 + sum(map(ord, name)))
    module, inputs, targets, loss, optimiser = STEPS[name]()
    module.train()
    for m in module.modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and name.endswith("_eval"):
            m.eval()
    if any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in module.parameters()):
        module(*inputs)
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    for b in buffers.values():  # not the trivial ones of a new module
        if b.is_floating_point():
            b.data.add_(torch.rand_like(b) * 0.1)
    np_, nb, ni = len(parameters), len(buffers), len(inputs)

    def run(*flat):
        given, targets = list(flat[np_ + nb : np_ + nb + ni]), flat[np_ + nb + ni :]
        floats = [i for i, x in enumerate(given) if x.is_floating_point()]

        def value(*wanted):
            state = [b.clone() for b in flat[np_ : np_ + nb]]
            for i, x in zip(floats, wanted[np_:]):
                given[i] = x
            y = torch.func.functional_call(module, {**dict(zip(parameters, wanted)), **dict(zip(buffers, state))}, tuple(given))
            return loss(y, *targets) if loss else y.sum(), state

        at = list(flat[:np_]) + [given[i] for i in floats]
        value, pull, state = torch.func.vjp(value, *at, has_aux=True)
        gradients = pull(torch.ones_like(value))
        if not loss:  # random: PyTorch's numbers are others
            return (value - (gradients[-1] * at[-1]).sum() + 1,)
        results = [value, *gradients, *state]
        if optimiser:
            results += update(optimiser, flat[:np_], gradients[:np_])
        return tuple(results)

    return run, [t.detach().clone() for t in (*parameters.values(), *buffers.values(), *inputs, *targets)]


def update(kind, parameters, gradients):
    """The first step of an optimiser, by PyTorch's own functions over lists, and its states."""
    import torch

    with torch.no_grad():
        new = [p.clone() for p in parameters]
        gradients = [g.detach() for g in gradients]
        states = lambda: [torch.full_like(p, 0.01) for p in new]
        steps = [torch.tensor(3.0) for _ in new]
        first, second = states(), states()
        f = lambda *given, **options: getattr(importlib.import_module(f"torch.optim.{'sgd' if kind == 'momentum' else kind}"), "sgd" if kind == "momentum" else kind)(*given, foreach=True, maximize=False, **options)
        if kind == "sgd":
            f(new, gradients, [None] * len(new), weight_decay=0.01, momentum=0, lr=0.1, dampening=0, nesterov=False)
            return new
        if kind == "momentum":
            f(new, gradients, first, weight_decay=0.01, momentum=0.9, lr=0.1, dampening=0, nesterov=True)
            return new + first
        if kind in ("adam", "adamw"):
            f(new, gradients, first, second, [], steps, capturable=False, amsgrad=False, beta1=0.9, beta2=0.99, lr=0.01, weight_decay=0.01, eps=1e-6)
        elif kind == "adagrad":
            f(new, gradients, first, steps, lr=0.01, weight_decay=0.01, lr_decay=0.1, eps=1e-6)
        else:
            f(new, gradients, first, [], [], steps, lr=0.01, alpha=0.9, eps=1e-6, weight_decay=0.01, momentum=0, centered=False)
        return new + first + second


def export(folder, name):
    import numpy as np
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    run, flat = build(name)
    errors = {}
    got = run(*[x.clone() for x in flat])
    double = lambda x: x.double() if x.is_floating_point() else x.clone()
    wide = run(*[double(x) for x in flat])
    with torch.backends.mkldnn.flags(enabled=False):
        moved = run(*[double(x) * (1 + (torch.rand(x.shape) - 0.5).sign() * 2.0**-24) if x.is_floating_point() else x.clone() for x in flat])
    # Inputs that are rounded to f32 in another way change such results by more than the tolerance, or all of a result is what rounding leaves of 0: what
    # is left out is named.
    largest = max(float(w.abs().max()) for w in wide if w.numel())
    wanted, left_out = [], []
    for w, m in zip(wide, moved):
        size = float(w.abs().max()) if w.numel() and w.is_floating_point() else 1.0
        change = float((w.double() - m.double()).abs().max()) / (size or 1) if w.numel() else 0
        is_used = not (0 < size < 1e-9 * largest or change > 1e-5)
        wanted.append(is_used)
        if not is_used:
            left_out.append(f"output {len(wanted) - 1}: largest {size:.1e}, moves by {change:.1e}")
    chosen = lambda results: tuple(r for r, is_used in zip(results, wanted) if is_used)
    np.savez(os.path.join(path, "inputs.npz"), **{f"arg.{i}": x.numpy() for i, x in enumerate(flat)})
    np.savez(os.path.join(path, "outputs.npz"), **{f"output_{i}": w.to(g.dtype).contiguous().numpy() for i, (w, g) in enumerate(zip(chosen(wide), chosen(got)))})
    for form, file in FORMS.items():
        table = torch._decomp.core_aten_decompositions() if form == "core" else {}
        try:
            with torch.backends.mkldnn.flags(enabled=False):  # as on other machines
                graph = make_fx(torch.func.functionalize(lambda *x: chosen(run(*x)), remove="mutations"), decomposition_table=table)(*flat)

            class Step(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.graph = graph

                def forward(self, arg):
                    return tuple(self.graph(*arg))

            with torch.no_grad():
                torch.export.save(torch.export.export(Step(), (tuple(flat),), strict=False), os.path.join(path, file))
        except Exception as error:
            errors[form] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:200]
            if os.path.exists(os.path.join(path, file)):
                os.remove(os.path.join(path, file))
    with open(os.path.join(path, "meta.json"), "w") as f:
        json.dump({"errors": errors, "left_out": left_out}, f)
    return [*errors.values(), *left_out]


def compile_form(options, path, form):
    """{"status": right, wrong, refused or defect, "reason", "seconds"}"""
    artifact = os.path.join(path, form + ".bin")
    started = time.time()
    code, text = call(os.path.join(options.bin, "tc-compile"), os.path.join(path, FORMS[form]), "-o", artifact, "--cpu", options.cpu, "--jobs", "1", "-q")
    seconds = round(time.time() - started, 1)
    if code:
        lines = [line for line in text.splitlines() if "error:" in line] or text.splitlines()[-1:] or ["no message"]
        return {"status": "refused" if code in (1, 2) else "defect", "reason": lines[0].partition("error: ")[2] or lines[0], "all": lines[:40], "seconds": seconds}
    result = {"status": "right", "reason": "", "seconds": seconds}
    for threads in ("1", "2"):
        code, text = call(os.path.join(options.bin, "tc-run"), artifact, "--inputs", os.path.join(path, "inputs.npz"), "--expect", os.path.join(path, "outputs.npz"),
                          "--max-rel", "2e-5", "--threads", threads, timeout=300)  # fmt: skip
        if code:
            result = {"status": "wrong" if code == 3 else "defect", "reason": f"{threads} threads: " + " ".join(text.split())[-300:], "seconds": seconds}
            break
    os.remove(artifact)
    return result


def write_table(options, names, results, stream):
    for form in options.forms:
        mine = [results[n][form] for n in names if form in results.get(n, {})]
        counts = collections.Counter(r["status"] for r in mine)
        print(f"{form}: {counts['right']} of {len(mine)} right; wrong {counts['wrong']}, refused {counts['refused']}, defects {counts['defect']}", file=stream)
    missing = collections.defaultdict(set)
    for n in names:
        for r in results.get(n, {}).values():
            for line in r.get("all", []):
                missing[generalize(line)].add(n)
    for reason, steps in sorted(missing.items(), key=lambda item: -len(item[1])):
        print(f"{len(steps):4} {reason}  [{' '.join(sorted(steps)[:6])}]", file=stream)
    for n in names:
        for form, r in results.get(n, {}).items():
            print(f"{n} {form} {r['status']} {r['seconds']} {r['reason'][:160]}", file=stream)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--cpu", default="x86-64-v3")
    parser.add_argument("--stage", nargs="+", action="extend", choices=("export", "compile", "table"))
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--filter", default="")
    parser.add_argument("--table")
    parser.add_argument("--again", action="store_true", help="export and compile also what is there")
    options = parser.parse_args()
    stages = options.stage or ["export", "compile", "table"]
    chosen = lambda name: re.search(options.filter, name)
    if "export" in stages:
        declare()
        for n in filter(chosen, STEPS):
            if options.again or not os.path.exists(os.path.join(options.folder, n, "meta.json")):
                print("exported", n, export(options.folder, n) or "", flush=True)
    names = [n for n in sorted(os.listdir(options.folder)) if chosen(n) and os.path.exists(os.path.join(options.folder, n, "meta.json"))]
    store = os.path.join(options.folder, "results.json")
    results = {}
    if os.path.exists(store):
        with open(store) as f:
            results = json.load(f)
    if "compile" in stages:
        stamp = os.stat(os.path.join(options.bin, "tc-compile")).st_mtime
        for n in names:
            for form in options.forms:
                path, old = os.path.join(options.folder, n), results.get(n, {}).get(form)
                if not os.path.exists(os.path.join(path, FORMS[form])) or (old and old.get("stamp") == stamp and not options.again):
                    continue
                result = compile_form(options, path, form)
                results.setdefault(n, {})[form] = {**result, "stamp": stamp}
                print(n, form, result["status"], result["seconds"], result["reason"][:120], flush=True)
        with open(store, "w") as f:
            json.dump(results, f)
    if "table" in stages:
        with open(options.table, "w") if options.table else contextlib.nullcontext(sys.stdout) as f:
            write_table(options, names, results, f)


if __name__ == "__main__":
    main()
