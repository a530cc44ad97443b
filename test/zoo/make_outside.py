#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models outside the zoo: what else a user of an inference compiler brings, exported to ONNX only.

  pip install torch torchvision transformers onnx onnxscript
  make_outside.py OUT [name ...]

Four groups: torchvision's networks, transformers' architectures in small configurations, small modules of our own
(recurrent, audio, video, point clouds, graphs, recommenders, generators, classical ones), and single blocks and layers,
which begin and end with PyTorch's layout. All are float32 with seeded
random weights, mostly batch 1, and sized so that a forward takes about 0.1 to 150 ms on one core. A model whose folder
in OUT is complete is skipped. OUT/<name>/ holds what export.py describes, with model.onnx as the only format.
"""
import math, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch, torch.nn as nn, torch.nn.functional as F
from export import run

R = torch.randn


def seed(m, weights=True):
    """Seeded statistics and gains, so that activations neither vanish nor explode and no parameter is a no-op."""
    for x in m.modules():
        if isinstance(x, nn.modules.batchnorm._BatchNorm):
            for p, lo, hi in ((x.running_mean, -.1, .1), (x.running_var, .5, 1.5), (x.weight, .5, 1.5), (x.bias, -.1, .1)):
                nn.init.uniform_(p, lo, hi)
        elif not weights: continue
        elif isinstance(x, nn.modules.conv._ConvTransposeNd):
            fan = x.in_channels // x.groups * math.prod(x.kernel_size) / math.prod(x.stride)
            nn.init.normal_(x.weight, std=(2 / fan) ** 0.5)
        elif isinstance(x, nn.modules.conv._ConvNd): nn.init.kaiming_normal_(x.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(x, nn.Linear): nn.init.normal_(x.weight, std=x.in_features ** -0.5)
    for p in m.parameters():  # constant ones: zero biases, unit norms, layer scales of 1e-6
        if p.numel() > 1 and p.is_floating_point() and p.min() == p.max():
            nn.init.uniform_(p, *((-.1, .1) if p.flatten()[0] == 0 else (.5, 1.5)))
    return m

def own(m, *xs, weights=True, **kw):
    return seed(m, weights), list(xs), dict(formats=("onnx",), **kw)

def tv(name, *shape, var=1, **kw):
    """A torchvision model; var: multiplies all running variances, where many residual blocks would explode."""
    import torchvision
    r = own(torchvision.models.get_model(name, weights=None, **kw), R(*(shape or (1, 3, 224, 224))))
    for x in r[0].modules():
        if isinstance(x, nn.BatchNorm2d): x.running_var *= var
    return r

def hf(cls, xs, attn="eager", call=None, pick=None, weights=True, **cfg):
    """A transformers model of a small configuration; xs: inputs by name; call: further arguments; pick: a part of it."""
    import transformers
    c = getattr(transformers, cls)
    m = c(c.config_class(attn_implementation=attn, **cfg))
    return own(getattr(m, pick) if pick else m, *xs.values(), weights=weights, names=list(xs), kw=call or {})

def ids(b, t, mask=0):
    """Tokens; mask: how many at the end of each row are padding, 0 for no mask at all."""
    x = {"input_ids": torch.randint(10, 1000, (b, t))}
    if mask: x["attention_mask"] = (torch.arange(t) < t - mask).long().expand(b, t).contiguous()
    return x

def px(*shape): return {"pixel_values": R(*(shape or (1, 3, 224, 224)))}

NC = {"use_cache": False}
ENC = dict(vocab_size=1000, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
DEC = dict(ENC, call=NC)
D2 = dict(vocab_size=1000, hidden_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=512, call=NC)
E2 = dict(ENC, num_hidden_layers=2)
VIT = dict(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768)
W2V = dict(ENC, vocab_size=32, conv_dim=(192,) * 7, num_conv_pos_embeddings=32, num_conv_pos_embedding_groups=8)


def mlp(*d, act=nn.ReLU):
    l = []
    for i, o in zip(d, d[1:]): l += [nn.Linear(i, o), act()]
    return nn.Sequential(*l[:-1])

def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())

class Res(nn.Module):
    """x + f(x)."""
    def __init__(s, *f): super().__init__(); s.f = nn.Sequential(*f)
    def forward(s, x): return x + s.f(x)

class Mha(nn.Module):
    """Multi-head attention, to itself or to a context."""
    def __init__(s, d, h, dc=None):
        super().__init__(); s.h = h
        s.q, s.k, s.v, s.o = nn.Linear(d, d), nn.Linear(dc or d, d), nn.Linear(dc or d, d), nn.Linear(d, d)
    def forward(s, x, c=None):
        c = x if c is None else c
        q, k, v = (y.unflatten(-1, (s.h, -1)).transpose(1, 2) for y in (s.q(x), s.k(c), s.v(c)))
        return s.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

class Dlrm(nn.Module):
    def __init__(s, n=8, d=32):
        super().__init__(); s.bot, s.e = mlp(13, 128, d), nn.ModuleList(nn.Embedding(1000, d) for _ in range(n))
        s.i, s.j = torch.tril_indices(n + 1, n + 1, -1).tolist(); s.top = mlp(d + n * (n + 1) // 2, 256, 64, 1)
    def forward(s, x, i):
        b = s.bot(x)
        z = torch.stack([b] + [e(i[:, n]).sum(1) for n, e in enumerate(s.e)], 1)
        return torch.sigmoid(s.top(torch.cat([b, (z @ z.transpose(1, 2))[:, s.i, s.j]], 1)) * 0.1)

class DeepFm(nn.Module):
    def __init__(s, n=20, d=16):
        super().__init__(); s.w, s.e, s.m = nn.Embedding(5000, 1), nn.Embedding(5000, d), mlp(n * d, 200, 200, 1)
    def forward(s, i):
        e = s.e(i)
        fm = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(0.02 * (s.w(i).sum(1) + fm + s.m(e.flatten(1))))

def autoencoder():
    c = [1, 16, 32, 64]
    l = [y for i, o in zip(c, c[1:]) for y in (nn.Conv2d(i, o, 3, 2, 1), nn.ReLU())]
    l += [y for i, o in zip(c[:0:-1], c[-2::-1]) for y in (nn.ConvTranspose2d(i, o, 3, 2, 1, output_padding=1), nn.ReLU())]
    return nn.Sequential(*l[:-1], nn.Sigmoid())

def dcgan(w=32):
    l = []
    for i, o, s, p in ((100, 8 * w, 1, 0), (8 * w, 4 * w, 2, 1), (4 * w, 2 * w, 2, 1), (2 * w, w, 2, 1)):
        l += [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
    return nn.Sequential(*l, nn.ConvTranspose2d(w, 3, 4, 2, 1, bias=False), nn.Tanh())

class Unet(nn.Module):
    def __init__(s, w=16, n=3):
        super().__init__(); c = [w << i for i in range(n + 1)]
        two = lambda i, o: nn.Sequential(cbr(i, o), cbr(o, o))
        s.inp, s.out = two(3, w), nn.Conv2d(w, 5, 1)
        s.down = nn.ModuleList(two(i, o) for i, o in zip(c, c[1:]))
        s.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(c, c[1:]))
        s.dec = nn.ModuleList(two(o, i) for i, o in zip(c, c[1:]))
    def forward(s, x):
        x, skip = s.inp(x), []
        for d in s.down: skip.append(x); x = d(F.max_pool2d(x, 2))
        for u, d, k in zip(s.up[::-1], s.dec[::-1], skip[::-1]): x = d(torch.cat([k, u(x)], 1))
        return s.out(x)

class TimeRes(nn.Module):
    """Residual block of a diffusion U-Net, shifted by the time embedding."""
    def __init__(s, i, o, t):
        super().__init__(); s.n1, s.n2, s.t = nn.GroupNorm(16, i), nn.GroupNorm(16, o), nn.Linear(t, o)
        s.c1, s.c2, s.r = nn.Conv2d(i, o, 3, 1, 1), nn.Conv2d(o, o, 3, 1, 1), nn.Conv2d(i, o, 1) if i != o else nn.Identity()
    def forward(s, x, t):
        y = s.c1(F.silu(s.n1(x))) + s.t(F.silu(t))[:, :, None, None]
        return s.r(x) + s.c2(F.silu(s.n2(y)))

class Spatial(nn.Module):
    """Spatial transformer: self-attention, cross-attention to the context, gated feed-forward."""
    def __init__(s, d, dc, h=4):
        super().__init__(); s.g, s.i, s.o = nn.GroupNorm(16, d), nn.Conv2d(d, d, 1), nn.Conv2d(d, d, 1)
        s.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(3)); s.a, s.c = Mha(d, h), Mha(d, h, dc)
        s.f1, s.f2 = nn.Linear(d, 8 * d), nn.Linear(4 * d, d)
    def forward(s, x, c):
        y = s.i(s.g(x)).flatten(2).transpose(1, 2)
        y = y + s.a(s.n[0](y)); y = y + s.c(s.n[1](y), c)
        a, g = s.f1(s.n[2](y)).chunk(2, -1)
        return x + s.o((y + s.f2(a * F.gelu(g))).transpose(1, 2).reshape(x.shape))

class SdUnet(nn.Module):
    """One down and one up level of a latent-diffusion U-Net."""
    def __init__(s, w=64, dc=128, t=256):
        super().__init__(); s.w = w; s.te = mlp(w, t, t, act=nn.SiLU); s.i, s.o = nn.Conv2d(4, w, 3, 1, 1), nn.Conv2d(w, 4, 3, 1, 1)
        s.r1, s.a1, s.d = TimeRes(w, w, t), Spatial(w, dc), nn.Conv2d(w, w, 3, 2, 1)
        s.r2, s.a2, s.r3 = TimeRes(w, 2 * w, t), Spatial(2 * w, dc), TimeRes(2 * w, 2 * w, t)
        s.u, s.r4, s.a4, s.n = nn.Conv2d(2 * w, 2 * w, 3, 1, 1), TimeRes(3 * w, w, t), Spatial(w, dc), nn.GroupNorm(16, w)
        s.register_buffer("f", torch.exp(torch.arange(w // 2) * (-math.log(1e4) / (w // 2))))
    def forward(s, x, t, c):
        a = t[:, None] * s.f; t = s.te(torch.cat([a.cos(), a.sin()], -1))
        k = s.a1(s.r1(s.i(x), t), c)
        y = s.r3(s.a2(s.r2(s.d(k), t), c), t)
        y = s.u(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        return s.o(F.silu(s.n(s.a4(s.r4(torch.cat([y, k], 1), t), c))))

class Yolo(nn.Module):
    """A small detector: backbone, two-scale neck, decoded boxes of both scales in one list."""
    def __init__(s, w=24, nc=20, na=3):
        super().__init__(); c = lambda *a: cbr(*a, act=nn.SiLU); s.na, s.no = na, nc + 5
        s.b1 = nn.Sequential(c(3, w, 3, 2), c(w, 2 * w, 3, 2), Res(c(2 * w, w, 1), c(w, 2 * w)), c(2 * w, 4 * w, 3, 2), Res(c(4 * w, 2 * w, 1), c(2 * w, 4 * w)))
        s.b2 = nn.Sequential(c(4 * w, 8 * w, 3, 2), Res(c(8 * w, 4 * w, 1), c(4 * w, 8 * w)))
        s.pool, s.l = c(32 * w, 4 * w, 1), c(8 * w, 8 * w, 1)
        s.n1, s.n2, s.n3 = c(8 * w, 4 * w), c(4 * w, 4 * w, 3, 2), c(8 * w, 8 * w)
        s.h = nn.ModuleList(nn.Conv2d(i, na * s.no, 1) for i in (4 * w, 8 * w))
        s.anchor = nn.Parameter(torch.rand(2, 1, na, 1, 1, 2) * 40 + 10)
    def forward(s, x):
        a = s.b1(x); b = s.l(s.b2(a)); p = [b]
        for _ in range(3): p.append(F.max_pool2d(p[-1], 5, 1, 2))
        b = s.pool(torch.cat(p, 1))
        a = s.n1(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1))
        b = s.n3(torch.cat([s.n2(a), b], 1)); out = []
        for y, h, an, st in zip((a, b), s.h, s.anchor, (8, 16)):
            n, _, ny, nx = y.shape
            y = torch.sigmoid(h(y).view(n, s.na, s.no, ny, nx).permute(0, 1, 3, 4, 2))
            g = torch.stack(torch.meshgrid(torch.arange(nx), torch.arange(ny), indexing="xy"), -1).to(y.dtype)
            out.append(torch.cat([(y[..., :2] * 2 - 0.5 + g) * st, (y[..., 2:4] * 2) ** 2 * an, y[..., 4:]], -1).flatten(1, 3))
        return torch.cat(out, 1)

def espcn(r=3):
    return nn.Sequential(nn.Conv2d(1, 64, 5, 1, 2), nn.Tanh(), nn.Conv2d(64, 32, 3, 1, 1), nn.Tanh(), nn.Conv2d(32, r * r, 3, 1, 1), nn.PixelShuffle(r))

def style(w=16):
    def c(i, o, k=3, s=1, act=True):
        return [nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o, affine=True)] + [nn.ReLU()] * act
    up = lambda: nn.Upsample(scale_factor=2, mode="nearest")
    return nn.Sequential(*c(3, w, 9), *c(w, 2 * w, 3, 2), *c(2 * w, 4 * w, 3, 2), *(Res(*c(4 * w, 4 * w), *c(4 * w, 4 * w, act=False)) for _ in range(3)),
                         up(), *c(4 * w, 2 * w), up(), *c(2 * w, w), nn.ReflectionPad2d(4), nn.Conv2d(w, 3, 9))

class Crnn(nn.Module):
    def __init__(s):
        super().__init__(); s.c = nn.Sequential(cbr(1, 32), nn.MaxPool2d(2), cbr(32, 64), nn.MaxPool2d(2), cbr(64, 128), nn.MaxPool2d((2, 1)), cbr(128, 128), nn.MaxPool2d((4, 1)))
        s.r, s.o = nn.GRU(128, 96, 2, batch_first=True, bidirectional=True), nn.Linear(192, 37)
    def forward(s, x): return F.log_softmax(s.o(s.r(s.c(x).squeeze(2).transpose(1, 2))[0]), -1)

class Gru(nn.Module):
    def __init__(s): super().__init__(); s.r, s.o = nn.GRU(64, 128, 2, batch_first=True), nn.Linear(128, 12)
    def forward(s, x, h): y, h = s.r(x, h); return s.o(y[:, -1]), h

class LstmLm(nn.Module):
    def __init__(s): super().__init__(); s.e, s.r, s.o = nn.Embedding(2000, 256), nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 2000)
    def forward(s, x): return s.o(s.r(s.e(x))[0])

class TextCnn(nn.Module):
    def __init__(s): super().__init__(); s.e, s.c, s.o = nn.Embedding(5000, 100), nn.ModuleList(nn.Conv1d(100, 100, k) for k in (3, 4, 5)), nn.Linear(300, 4)
    def forward(s, x):
        x = s.e(x).transpose(1, 2)
        return s.o(torch.cat([F.relu(c(x)).amax(-1) for c in s.c], 1))

class Causal(nn.Module):
    def __init__(s, i, o, k, d): super().__init__(); s.p, s.c = (k - 1) * d, nn.Conv1d(i, o, k, dilation=d)
    def forward(s, x): return s.c(F.pad(x, (s.p, 0)))

def tcn(c=48):
    return nn.Sequential(nn.Conv1d(6, c, 1), *(Res(Causal(c, c, 3, 1 << i), nn.ReLU(), Causal(c, c, 3, 1 << i), nn.ReLU()) for i in range(6)), nn.Conv1d(c, 10, 1))

class Wavenet(nn.Module):
    def __init__(s, c=48, n=10):
        super().__init__(); s.i, s.o = Causal(1, c, 2, 1), nn.Sequential(nn.ReLU(), nn.Conv1d(c, c, 1), nn.ReLU(), nn.Conv1d(c, 256, 1))
        s.g, s.r = nn.ModuleList(Causal(c, 2 * c, 2, 1 << i) for i in range(n)), nn.ModuleList(nn.Conv1d(c, 2 * c, 1) for _ in range(n))
    def forward(s, x):
        x, skip = s.i(x), 0
        for g, r in zip(s.g, s.r):
            a, b = g(x).chunk(2, 1); y, k = r(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1); x, skip = x + y, skip + k
        return s.o(skip)

class ConvTasnet(nn.Module):
    def __init__(s, n=128, b=64, h=128, src=2):
        super().__init__(); s.src, s.enc, s.dec = src, nn.Conv1d(1, n, 16, 8, bias=False), nn.ConvTranspose1d(n, 1, 16, 8, bias=False)
        blk = lambda d: Res(nn.Conv1d(b, h, 1), nn.PReLU(), nn.GroupNorm(1, h), nn.Conv1d(h, h, 3, 1, d, d, h), nn.PReLU(), nn.GroupNorm(1, h), nn.Conv1d(h, b, 1))
        s.sep = nn.Sequential(nn.GroupNorm(1, n), nn.Conv1d(n, b, 1), *(blk(1 << i) for _ in range(2) for i in range(5)), nn.PReLU(), nn.Conv1d(b, n * src, 1))
    def forward(s, x):
        w = F.relu(s.enc(x)); m = torch.sigmoid(s.sep(w)).unflatten(1, (s.src, -1))
        return s.dec((w[:, None] * m).flatten(0, 1)).view(x.shape[0], s.src, -1)

class Hifigan(nn.Module):
    def __init__(s, w=64):
        super().__init__(); s.pre, s.post = nn.Conv1d(80, w, 7, 1, 3), nn.Conv1d(w >> 4, 1, 7, 1, 3)
        s.up = nn.ModuleList(nn.ConvTranspose1d(w >> i, w >> i + 1, k, u, (k - u) // 2) for i, (u, k) in enumerate(((8, 16), (8, 16), (2, 4), (2, 4))))
        blk = lambda c, k: nn.Sequential(*(Res(nn.LeakyReLU(.1), nn.Conv1d(c, c, k, 1, (k - 1) * d // 2, d), nn.LeakyReLU(.1), nn.Conv1d(c, c, k, 1, k // 2)) for d in (1, 3, 5)))
        s.res = nn.ModuleList(nn.ModuleList(blk(w >> i + 1, k) for k in (3, 7)) for i in range(4))
    def forward(s, x):
        x = s.pre(x)
        for u, r in zip(s.up, s.res): x = u(F.leaky_relu(x, .1)); x = (r[0](x) + r[1](x)) * 0.25
        return torch.tanh(s.post(F.leaky_relu(x)))

def conv3d():
    l = [y for i, o in ((1, 8), (8, 16), (16, 32)) for y in (nn.Conv3d(i, o, 3, 1, 1), nn.BatchNorm3d(o), nn.ReLU(), nn.MaxPool3d(2))]
    return nn.Sequential(*l, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 3))

class Vnet3d(nn.Module):
    def __init__(s, w=8):
        super().__init__(); c = lambda i, o: nn.Sequential(nn.Conv3d(i, o, 3, 1, 1), nn.BatchNorm3d(o), nn.PReLU(o))
        s.i, s.c1, s.c2, s.o = c(1, w), c(2 * w, 2 * w), c(4 * w, 4 * w), nn.Conv3d(w, 2, 1)
        s.d1, s.d2, s.u2, s.u1 = nn.Conv3d(w, 2 * w, 2, 2), nn.Conv3d(2 * w, 4 * w, 2, 2), nn.ConvTranspose3d(4 * w, 2 * w, 2, 2), nn.ConvTranspose3d(2 * w, w, 2, 2)
        s.m2, s.m1 = c(4 * w, 2 * w), c(2 * w, w)
    def forward(s, x):
        a = s.i(x) + x; b = s.d1(a); b = b + s.c1(b); c = s.d2(b); c = c + s.c2(c)
        b = s.m2(torch.cat([s.u2(c), b], 1)); a = s.m1(torch.cat([s.u1(b), a], 1))
        return F.softmax(s.o(a) * 0.1, 1)

class Pointnet(nn.Module):
    def __init__(s, nc=40):
        super().__init__(); c = lambda i, o: nn.Sequential(nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU())
        s.t, s.tl = nn.Sequential(c(3, 64), c(64, 128), c(128, 256)), mlp(256, 128, 9)
        s.a, s.b = c(3, 64), nn.Sequential(c(64, 128), c(128, 512))
        s.o = nn.Sequential(nn.Linear(512, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, nc))
    def forward(s, x):
        t = s.tl(s.t(x).amax(-1)).view(-1, 3, 3) * 0.1 + torch.eye(3, dtype=x.dtype)
        return s.o(s.b(s.a(t @ x)).amax(-1))

class Gat(nn.Module):
    """Two graph-attention layers over a dense adjacency."""
    def __init__(s, i=64, d=16, h=4, o=7):
        super().__init__(); s.h = h; s.w = nn.ModuleList([nn.Linear(i, h * d), nn.Linear(h * d, h * o)])
        s.a = nn.ParameterList(nn.Parameter(R(2, h, e) / e ** 0.5) for e in (d, o))
    def layer(s, x, adj, w, a):
        x = w(x).unflatten(-1, (s.h, -1)); l, r = (x * a[0]).sum(-1).t(), (x * a[1]).sum(-1).t()
        e = F.leaky_relu(l[:, :, None] + r[:, None, :], 0.2).masked_fill(adj == 0, -1e9)
        return F.softmax(e, -1) @ x.transpose(0, 1)
    def forward(s, x, adj):
        x = F.elu(s.layer(x, adj, s.w[0], s.a[0]).transpose(0, 1).flatten(1))
        return s.layer(x, adj, s.w[1], s.a[1]).mean(0)

class LinearAttention(nn.Module):
    def __init__(s, d=256, h=4): super().__init__(); s.h, s.qkv, s.o = h, nn.Linear(d, 3 * d), nn.Linear(d, d)
    def forward(s, x):
        q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).unbind(2)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.einsum("blhd,blhe->bhde", k, v); z = 1 / torch.einsum("blhd,bhd->blh", q, k.sum(1))
        return s.o(torch.einsum("blhd,bhde,blh->blhe", q, kv, z).flatten(2))

class Mamba(nn.Module):
    """Selective state-space block, its scan unrolled."""
    def __init__(s, d=128, n=16, k=4, r=8):
        super().__init__(); e = 2 * d; s.n, s.r, s.k = n, r, k; s.norm, s.i, s.o = nn.LayerNorm(d), nn.Linear(d, 2 * e), nn.Linear(e, d)
        s.c, s.x, s.dt = nn.Conv1d(e, e, k, groups=e), nn.Linear(e, r + 2 * n), nn.Linear(r, e)
        s.a, s.d = nn.Parameter(torch.log(torch.arange(1., n + 1)).repeat(e, 1)), nn.Parameter(torch.ones(e))
    def forward(s, x):
        y, z = s.i(s.norm(x)).chunk(2, -1)
        y = F.silu(s.c(F.pad(y.transpose(1, 2), (s.k - 1, 0))).transpose(1, 2))
        dt, b, c = s.x(y).split([s.r, s.n, s.n], -1); dt = F.softplus(s.dt(dt))
        da, db = torch.exp(dt[..., None] * -torch.exp(s.a)), (dt * y)[..., None] * b[:, :, None]
        h, out = torch.zeros_like(da[:, 0]), []
        for t in range(x.shape[1]): h = da[:, t] * h + db[:, t]; out.append((h * c[:, t, None]).sum(-1))
        return x + s.o((torch.stack(out, 1) + y * s.d) * F.silu(z))

class Kmeans(nn.Module):
    def __init__(s, n=32, d=64): super().__init__(); s.c = nn.Parameter(R(n, d))
    def forward(s, x):
        d = (x * x).sum(1, keepdim=True) - 2 * x @ s.c.t() + (s.c * s.c).sum(1)
        return d.argmin(1), d.amin(1)

class Retrieval(nn.Module):
    def __init__(s, n=5000, d=256): super().__init__(); s.db = nn.Parameter(F.normalize(R(n, d), dim=-1))
    def forward(s, q): return torch.topk(F.normalize(q, dim=-1) @ s.db.t(), 10)

class Moe(nn.Module):
    def __init__(s, d=256): super().__init__(); s.g, s.e = nn.Linear(d, 2), nn.ModuleList(mlp(d, 4 * d, d, act=nn.GELU) for _ in range(2))
    def forward(s, x):
        g = F.softmax(s.g(x), -1)
        return x + sum(g[..., i:i + 1] * e(x) for i, e in enumerate(s.e))

class Nbeats(nn.Module):
    def __init__(s, back=60, fore=12, w=128, n=6):
        super().__init__(); s.back = back
        s.b = nn.ModuleList(nn.Sequential(mlp(back, w, w, w, w), nn.ReLU(), nn.Linear(w, back + fore)) for _ in range(n))
    def forward(s, x):
        y = 0
        for b in s.b: t = b(x); x, y = x - t[:, :s.back], y + t[:, s.back:]
        return y

class Dit(nn.Module):
    """Diffusion transformer block: norms without gains, shifted, scaled and gated by the condition."""
    def __init__(s, d=384, h=6):
        super().__init__(); s.n, s.a, s.f = nn.LayerNorm(d, elementwise_affine=False, eps=1e-6), Mha(d, h), mlp(d, 4 * d, d, act=lambda: nn.GELU("tanh"))
        s.m = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))
    def forward(s, x, c):
        a, b, g, a2, b2, g2 = s.m(c)[:, None].chunk(6, -1)
        x = x + g * s.a(s.n(x) * (1 + b) + a)
        return x + g2 * s.f(s.n(x) * (1 + b2) + a2)

class MixerBlock(nn.Module):
    def __init__(s, t, d): super().__init__(); s.n1, s.n2, s.t, s.c = nn.LayerNorm(d), nn.LayerNorm(d), mlp(t, d // 2, t, act=nn.GELU), mlp(d, 4 * d, d, act=nn.GELU)
    def forward(s, x):
        x = x + s.t(s.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + s.c(s.n2(x))

class Mixer(nn.Module):
    def __init__(s, d=256, n=6, t=49):
        super().__init__(); s.p, s.b, s.n, s.o = nn.Conv2d(3, d, 16, 16), nn.Sequential(*(MixerBlock(t, d) for _ in range(n))), nn.LayerNorm(d), nn.Linear(d, 100)
    def forward(s, x): return s.o(s.n(s.b(s.p(x).flatten(2).transpose(1, 2))).mean(1))

def convmixer(d=192, n=6):
    end = lambda: (nn.GELU(), nn.BatchNorm2d(d))
    blk = lambda: nn.Sequential(Res(nn.Conv2d(d, d, 7, groups=d, padding="same"), *end()), nn.Conv2d(d, d, 1), *end())
    return nn.Sequential(nn.Conv2d(3, d, 7, 7), *end(), *(blk() for _ in range(n)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(d, 100))

class Nerf(nn.Module):
    def __init__(s, w=192):
        super().__init__(); s.a, s.b = nn.Sequential(mlp(63, w, w, w, w), nn.ReLU()), nn.Sequential(mlp(w + 63, w, w, w, w), nn.ReLU())
        s.d, s.f, s.c = nn.Linear(w, 1), nn.Linear(w, w), mlp(w + 27, w // 2, 3)
    def enc(s, x, n):
        y = (x[..., None] * (2.0 ** torch.arange(n)).to(x.dtype)).flatten(1)
        return torch.cat([x, y.sin(), y.cos()], -1)
    def forward(s, x, v):
        e = s.enc(x, 10); h = s.b(torch.cat([s.a(e), e], -1))
        return torch.sigmoid(s.c(torch.cat([s.f(h), s.enc(F.normalize(v, dim=-1), 4)], -1))), F.relu(s.d(h))

class Preprocess(nn.Module):
    """Interleaved bytes as floats in, normalised planes out."""
    def __init__(s):
        super().__init__()
        for n, v in (("m", (0.485, 0.456, 0.406)), ("d", (0.229, 0.224, 0.225))): s.register_buffer(n, torch.tensor(v).view(1, 3, 1, 1))
    def forward(s, x):
        x = F.interpolate(x.permute(0, 3, 1, 2), size=(256, 256), mode="bilinear", align_corners=False)
        return (x[:, :, 16:240, 16:240] / 255 - s.m) / s.d

class CausalSdpa(nn.Module):
    def forward(s, q, k, v): return F.scaled_dot_product_attention(q, k, v, is_causal=True)

class Decode(nn.Module):
    """One token against a cache of keys and values; the caches come back one longer."""
    def __init__(s, d=512, h=8): super().__init__(); s.h, s.n, s.qkv, s.o = h, nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
    def forward(s, x, k, v):
        q, a, b = s.qkv(s.n(x)).unflatten(-1, (3, s.h, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        k, v = torch.cat([k, a], 2), torch.cat([v, b], 2)
        p = F.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1)
        return x + s.o((p @ v).transpose(1, 2).flatten(2)), k, v

class LogMel(nn.Module):
    """Framed, windowed, Fourier-transformed by matrices, summed in triangular bands, logarithm."""
    def __init__(s, n=400, hop=160, bands=80):
        super().__init__(); s.n, s.hop = n, hop; f = n // 2 + 1
        w, a = torch.hann_window(n)[:, None], 2 * math.pi / n * torch.arange(n)[:, None] * torch.arange(f)
        c = 2595 * torch.log10(1 + torch.arange(f) * (16000 / n) / 700); e = torch.linspace(0, float(c[-1]), bands + 2)
        tri = torch.minimum((c[:, None] - e[:-2]) / (e[1:-1] - e[:-2]), (e[2:] - c[:, None]) / (e[2:] - e[1:-1])).clamp(min=0)
        for k, v in (("re", w * a.cos()), ("im", w * a.sin()), ("mel", tri)): s.register_buffer(k, v)
    def forward(s, x):
        x = x.unfold(-1, s.n, s.hop)
        return torch.log(((x @ s.re) ** 2 + (x @ s.im) ** 2) @ s.mel + 1e-3)

def channels_odd():
    return nn.Sequential(cbr(3, 37), cbr(37, 53, 3, 2), cbr(53, 53, 3, 1, 53), cbr(53, 37, 1), cbr(37, 53, 5), nn.AvgPool2d(3, 2), nn.Conv2d(53, 11, 1))

class SwiGlu(nn.Module):
    def __init__(s, d=2048, f=5632): super().__init__(); s.g, s.u, s.d = (nn.Linear(i, o, bias=False) for i, o in ((d, f), (d, f), (f, d)))
    def forward(s, x): return s.d(F.silu(s.g(x)) * s.u(x))

class Swap(nn.Module):
    def forward(s, x): return x.transpose(1, 2)

class Conformer(nn.Module):
    def __init__(s, d=144, h=4, k=15):
        super().__init__(); ff = lambda: nn.Sequential(nn.LayerNorm(d), mlp(d, 4 * d, d, act=nn.SiLU))
        s.f1, s.f2, s.n, s.a, s.o = ff(), ff(), nn.LayerNorm(d), Mha(d, h), nn.LayerNorm(d)
        s.c = nn.Sequential(nn.LayerNorm(d), Swap(), nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, k, 1, k // 2, groups=d), nn.BatchNorm1d(d), nn.SiLU(), nn.Conv1d(d, d, 1), Swap())
    def forward(s, x):
        x = x + 0.5 * s.f1(x); x = x + s.a(s.n(x)); x = x + s.c(x)
        return s.o(x + 0.5 * s.f2(x))

clip8 = (1, 3, 8, 64, 64)

def resnet(block, *channels):
    import torchvision
    return getattr(torchvision.models.resnet, block)(*channels)

def separable():
    return nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.BatchNorm2d(64), nn.ReLU6(), nn.Conv2d(64, 128, 1), nn.BatchNorm2d(128), nn.ReLU6())

def group_norm(channels, groups):
    half = lambda: [nn.GroupNorm(groups, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1)]
    return nn.Sequential(*half(), *half())

class Up(nn.Module):
    def __init__(s): super().__init__(); s.c = nn.Sequential(nn.Conv2d(128, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.SiLU(), nn.Conv2d(64, 64, 3, padding=1))
    def forward(s, a, b): return s.c(torch.cat([F.interpolate(a, scale_factor=2, mode="nearest"), b], 1))

class Squeeze(nn.Module):
    def __init__(s, c): super().__init__(); s.a, s.b, s.c = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1), nn.Conv2d(c, c, 3, padding=1)
    def forward(s, x): return s.c(x) * torch.sigmoid(s.b(torch.relu(s.a(x.mean((2, 3), keepdim=True)))))

class Pyramid(nn.Module):
    def __init__(s):
        import torchvision
        super().__init__(); s.f = torchvision.ops.FeaturePyramidNetwork([64, 128, 256], 64)
    def forward(s, a, b, c): return tuple(s.f({"a": a, "b": b, "c": c}).values())


class Fn(nn.Module):
    """A function of its parts and inputs."""
    def __init__(self, fn, /, **parts):
        super().__init__(); self.fn = fn
        for k, v in parts.items(): setattr(self, k, v)
    def forward(self, *x): return self.fn(self, *x)

def c3(i, o, s=1): return nn.Conv2d(i, o, 3, s, 1)
def param(*s): return nn.Parameter(R(*s) * 0.1)

def stn(s,x):
    t=s.l(x).view(-1,2,3)*0.05+torch.eye(2,3,dtype=x.dtype); g=F.affine_grid(t,x.shape,align_corners=False)
    return s.n(F.grid_sample(x,g,align_corners=False))

def vqvae(s,x):
    z=s.e(x); b,c,h,w=z.shape; f=z.permute(0,2,3,1).reshape(-1,c)
    d=(f*f).sum(1,keepdim=True)-2*f@s.k.weight.t()+(s.k.weight**2).sum(1)
    return s.d(s.k(d.argmin(1)).view(b,h,w,c).permute(0,3,1,2))

def bifpn(s,a,b,c):
    up=lambda x: F.interpolate(x,scale_factor=2.0,mode="nearest"); w=torch.relu(s.w); w=w/(w.sum()+1e-4)
    m=s.c1(F.silu(w[0]*b+w[1]*up(c))); p=s.c2(F.silu(w[0]*a+w[1]*up(m))); q=s.c3(F.silu(w[0]*b+w[1]*m+w[2]*F.max_pool2d(p,3,2,1)))
    return p,q,s.c4(F.silu(w[0]*c+w[1]*F.max_pool2d(q,3,2,1)))

def modconv(s,x,y):
    b,c,h,w=x.shape; m=s.s(y).view(b,1,c,1,1)+1; k=s.k[None]*m; d=torch.rsqrt((k*k).sum((2,3,4),keepdim=True)+1e-8); k=(k*d).view(-1,c,3,3)
    return F.leaky_relu(F.conv2d(x.reshape(1,-1,h,w),k,padding=1,groups=b).view(b,-1,h,w)+s.n*0.1,0.2)

def edgeconv(s,x):
    d=torch.cdist(x,x); i=d.topk(8,largest=False)[1]; f=x[torch.arange(x.shape[0])[:,None,None],i]; c=x[:,:,None].expand_as(f)
    return s.m(torch.cat([c,f-c],-1)).amax(2)

def nvp(s,x):
    for i,(a,b) in enumerate(zip(s.a,s.b)):
        p,q=x.chunk(2,1);
        if i%2: p,q=q,p
        x=torch.cat([p,q*torch.exp(torch.tanh(a(p)))+b(p)],1)
    return x

def deepspeech(s,x):
    y=s.c(x[:,None]); b,c,t,f=y.shape; y=y.transpose(1,2).reshape(b,t,c*f); return F.log_softmax(s.o(s.r(y)[0]),-1)

class ChannelNorm(nn.Module):
    def __init__(s,c): super().__init__(); s.w,s.b=nn.Parameter(torch.ones(c)),nn.Parameter(torch.zeros(c))
    def forward(s,x): u=x.mean(1,keepdim=True); v=((x-u)**2).mean(1,keepdim=True); return (x-u)/torch.sqrt(v+1e-6)*s.w[:,None,None]+s.b[:,None,None]

def nafnet(s,x):
    for i in range(4):
        y=s.dw[i](s.a[i](s.n[i](x))); p,q=y.chunk(2,1); y=p*q; x=x+s.o[i](y*s.g[i](y.mean((2,3),keepdim=True)))
    return x

def rcan(s,x):
    y=s.h(x)
    for a,b,d,u in zip(s.a,s.b,s.d,s.u): z=b(torch.relu(a(y))); y=y+z*torch.sigmoid(u(torch.relu(d(z.mean((2,3),keepdim=True)))))
    return s.t(F.pixel_shuffle(s.p(y),2))

def edges(s,x):
    b=F.conv2d(x,s.g,padding=2,groups=3); e=F.conv2d(b.mean(1,keepdim=True),s.k,padding=1); return (e.pow(2).sum(1)>0.1).float()

def gmlp(s,x):
    for n,u,t,v in zip(s.n,s.u,s.t,s.v): a,b=F.gelu(u(n(x))).chunk(2,-1); x=x+v(a*t(b.transpose(1,2)).transpose(1,2))
    return x

def iou(s,b,c):
    l,h=torch.maximum(b[:,None,:2],b[None,:,:2]),torch.minimum(b[:,None,2:],b[None,:,2:]); i=(h-l).clamp(min=0).prod(-1)
    a=(b[:,2]-b[:,0])*(b[:,3]-b[:,1]); return (i/(a[:,None]+a[None]-i+1e-6)*torch.sigmoid(c)[None]).amax(1)

def toeplitz(s,x):
    """A filter over time for each channel, as a matrix of its shifts."""
    i=torch.arange(s.k.shape[1]); k=torch.where(i[:,None]>=i,s.k[:,(i[:,None]-i).clamp(min=0)],0.)
    return F.glu(s.o(F.gelu(torch.einsum("dts,bsd->btd",k,x))),-1)+x

def running(s,x):
    """A running maximum by doubling distances."""
    c=torch.cumsum(x,-1); m=c
    for k in range(11): m=torch.maximum(m,F.pad(m[:,:-2**k],(2**k,0),value=-1e9))
    return (c-m).amin(-1),torch.cumsum(x*torch.sigmoid(m),-1)

def forest(s,x):
    """Decision trees of depth 5 as products."""
    leaf=(((x[:,s.i]<s.th).to(x.dtype)@s.c)==s.d).to(x.dtype)
    return torch.einsum("btl,tlk->bk",leaf,s.v)

def forest_parts(trees=30,depth=5,features=40):
    n,l=2**depth-1,2**depth; c,d=torch.zeros(n,l),torch.zeros(l)
    for leaf in range(l):
        at=0
        for k in range(depth): right=leaf>>(depth-1-k)&1; c[at,leaf]=-1 if right else 1; d[leaf]+=not right; at=2*at+1+right
    p=lambda t: nn.Parameter(t,requires_grad=False)
    return dict(i=p(torch.randint(0,features,(trees,n))),th=param(trees,n),c=p(c),d=p(d),v=param(trees,l,4))

def axes(s,x):
    """Mixing along each axis of an image by itself."""
    for h,w,c in zip(s.h,s.w,s.c):
        x=x+F.gelu(torch.einsum("bhwc,hk->bkwc",x,h)+torch.einsum("bhwc,wk->bhkc",x,w)+torch.einsum("bhwc,ck->bhwk",x,c))
    return x.mean((1,2))

def performer(s,x):
    def phi(x): x=x/x.shape[-1]**.25; u=x@s.w; return torch.exp(u-x.pow(2).sum(-1,True)/2-u.amax((-1,-2),True))+1e-4
    q,k,v=s.qkv(x).unflatten(-1,(3,4,-1)).permute(2,0,3,1,4); q,k=phi(q),phi(k)
    y=torch.einsum("bhnm,bhmd->bhnd",q,torch.einsum("bhnm,bhnd->bhmd",k,v))/torch.einsum("bhnm,bhm->bhn",q,k.sum(2))[...,None]
    return x+s.o(y.transpose(1,2).flatten(2))

def dense(s,x):
    for l in s.l: x=torch.cat([l(x),x],1)
    return s.o(x)

def condconv(s,x):
    b,c,h,w=x.shape; k=torch.einsum("be,eoihw->boihw",s.r(x.mean((2,3))).softmax(1),s.w).flatten(0,1)
    return F.relu(F.conv2d(x.reshape(1,b*c,h,w),k,padding=1,groups=b).view(b,-1,h,w))

MODELS = {
    # torchvision
    "alexnet": lambda: tv("alexnet"),
    "squeezenet1_1": lambda: tv("squeezenet1_1"),
    "densenet121": lambda: tv("densenet121"),
    "googlenet": lambda: tv("googlenet", aux_logits=False, init_weights=False),
    "inception_v3": lambda: tv("inception_v3", 1, 3, 299, 299, aux_logits=False, init_weights=False),
    "mnasnet1_0": lambda: tv("mnasnet1_0"),
    "mobilenet_v3_small": lambda: tv("mobilenet_v3_small"),
    "mobilenet_v3_large": lambda: tv("mobilenet_v3_large"),
    "mobilenet_v2_b8": lambda: tv("mobilenet_v2", 8, 3, 224, 224),
    "shufflenet_v2_x0_5": lambda: tv("shufflenet_v2_x0_5"),
    "shufflenet_v2_x1_0": lambda: tv("shufflenet_v2_x1_0"),
    "efficientnet_b0": lambda: tv("efficientnet_b0"),
    "efficientnet_v2_s": lambda: tv("efficientnet_v2_s", 1, 3, 128, 128, var=3),
    "regnet_x_800mf": lambda: tv("regnet_x_800mf"),
    "regnet_y_400mf": lambda: tv("regnet_y_400mf"),
    "resnet50": lambda: tv("resnet50"),
    "resnext50_32x4d": lambda: tv("resnext50_32x4d"),
    "resnet34_b4": lambda: tv("resnet34", 4, 3, 112, 112),
    "wide_resnet50_2_b2": lambda: tv("wide_resnet50_2", 2, 3, 112, 112),
    "vgg11": lambda: tv("vgg11", 1, 3, 128, 128),
    "convnext_tiny": lambda: tv("convnext_tiny"),
    "swin_t": lambda: tv("swin_t"),
    "maxvit_t": lambda: tv("maxvit_t"),
    "r3d_18": lambda: tv("r3d_18", *clip8),
    "mc3_18": lambda: tv("mc3_18", *clip8),
    "r2plus1d_18": lambda: tv("r2plus1d_18", *clip8),
    "lraspp_mobilenet_v3_large": lambda: tv("lraspp_mobilenet_v3_large", weights_backbone=None),
    "swin_v2_t": lambda: tv("swin_v2_t"),
    "vit_b_32": lambda: tv("vit_b_32"),
    "efficientnet_b1": lambda: tv("efficientnet_b1", var=3),
    "regnet_y_800mf": lambda: tv("regnet_y_800mf"),
    "mnasnet0_5": lambda: tv("mnasnet0_5"),
    "deeplabv3_mobilenet_v3_large": lambda: tv("deeplabv3_mobilenet_v3_large", 1, 3, 224, 224, var=3, weights_backbone=None),
    "fcn_resnet50": lambda: tv("fcn_resnet50", 1, 3, 128, 128, weights_backbone=None),
    "shufflenet_v2_x1_5": lambda: tv("shufflenet_v2_x1_5"),
    "densenet169": lambda: tv("densenet169"),
    "vgg16_bn": lambda: tv("vgg16_bn", 1, 3, 96, 96),
    # transformers: encoders of text
    "distilbert": lambda: hf("DistilBertModel", ids(1, 64, 16), vocab_size=1000, dim=384, n_layers=4, n_heads=6, hidden_dim=1536),
    "albert": lambda: hf("AlbertModel", ids(1, 96), attn="sdpa", **ENC, embedding_size=128),
    "roberta": lambda: hf("RobertaForSequenceClassification", ids(4, 48), **ENC),
    "electra": lambda: hf("ElectraModel", ids(2, 64, 10), attn="sdpa", **ENC, embedding_size=128),
    "deberta_v2": lambda: hf("DebertaV2Model", ids(1, 64, 8), **ENC, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=32,
                             norm_rel_ebd="layer_norm", share_att_key=True, position_biased_input=False),
    "mobilebert": lambda: hf("MobileBertModel", ids(1, 64), vocab_size=1000, num_hidden_layers=6, classifier_activation=False),
    "squeezebert": lambda: hf("SqueezeBertModel", ids(1, 64), **ENC, embedding_size=256),
    "convbert": lambda: hf("ConvBertModel", ids(1, 64), **ENC, embedding_size=128),
    "funnel": lambda: hf("FunnelModel", ids(1, 64), vocab_size=1000, block_sizes=[2, 2, 2], d_model=256, n_head=4, d_head=64, d_inner=1024),
    "xlnet": lambda: hf("XLNetModel", ids(1, 48), call={"use_mems": False}, vocab_size=1000, d_model=256, n_layer=4, n_head=4, d_inner=1024),
    "t5_encoder": lambda: hf("T5EncoderModel", ids(1, 64), weights=False, vocab_size=1000, d_model=256, d_kv=64, d_ff=1024, num_layers=4, num_heads=4),
    # transformers: decoders
    "bart": lambda: hf("BartModel", {**ids(1, 48), "decoder_input_ids": torch.randint(10, 1000, (1, 24))}, call=NC, vocab_size=1000, d_model=256, encoder_layers=3,
                       decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024),
    "gpt_neox": lambda: hf("GPTNeoXForCausalLM", ids(1, 64), **DEC),
    "opt": lambda: hf("OPTForCausalLM", ids(1, 48), call=NC, vocab_size=1000, hidden_size=256, word_embed_proj_dim=256, num_hidden_layers=4, num_attention_heads=4, ffn_dim=1024),
    "bloom": lambda: hf("BloomForCausalLM", ids(1, 48), call=NC, vocab_size=1000, hidden_size=256, n_layer=4, n_head=4),
    "phi": lambda: hf("PhiForCausalLM", ids(1, 64), **DEC),
    "llama_s64": lambda: hf("LlamaForCausalLM", ids(1, 64), **{**DEC, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1376}, num_key_value_heads=4),
    "llama_s1": lambda: hf("LlamaForCausalLM", ids(1, 1), **{**DEC, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1376}, num_key_value_heads=4),
    "mistral_b4": lambda: hf("MistralForCausalLM", ids(4, 48), attn="sdpa", **DEC, num_key_value_heads=2, sliding_window=32),
    "qwen2": lambda: hf("Qwen2ForCausalLM", ids(1, 64), attn="sdpa", **DEC, num_key_value_heads=2),
    "gemma": lambda: hf("GemmaForCausalLM", ids(1, 32), **DEC, num_key_value_heads=1, head_dim=64),
    # transformers: images
    "clip_vision": lambda: hf("CLIPVisionModel", px(), attn="sdpa", hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=4, projection_dim=128),
    "vit_tiny": lambda: hf("ViTForImageClassification", px(4, 3, 96, 96), **VIT, image_size=96, num_labels=100),
    "deit_tiny": lambda: hf("DeiTModel", px(), attn="sdpa", **VIT),
    "beit": lambda: hf("BeitModel", px(), **VIT, use_relative_position_bias=True),
    "dinov2": lambda: hf("Dinov2Model", px(), hidden_size=192, num_hidden_layers=4, num_attention_heads=3, image_size=224, patch_size=14),
    "segformer": lambda: hf("SegformerForSemanticSegmentation", px(1, 3, 128, 128), num_labels=19),
    "swin2sr": lambda: hf("Swin2SRForImageSuperResolution", px(1, 3, 48, 48), image_size=48, embed_dim=60, depths=[2, 2], num_heads=[6, 6], window_size=8, upscale=2),
    "pvt": lambda: hf("PvtForImageClassification", px()),
    "poolformer": lambda: hf("PoolFormerForImageClassification", px()),
    "focalnet": lambda: hf("FocalNetForImageClassification", px(), embed_dim=48, depths=[2, 2, 2, 2]),
    "convnextv2": lambda: hf("ConvNextV2ForImageClassification", px(), hidden_sizes=[40, 80, 160, 320], depths=[2, 2, 2, 2]),
    # transformers: sound, video, time series
    "whisper_encoder": lambda: hf("WhisperModel", {"input_features": R(1, 80, 400)}, pick="encoder", d_model=256, encoder_layers=4, encoder_attention_heads=4, encoder_ffn_dim=1024,
                                  decoder_layers=1, decoder_attention_heads=4, max_source_positions=200, vocab_size=1000, decoder_start_token_id=2, pad_token_id=0, bos_token_id=1, eos_token_id=2),
    "wav2vec2": lambda: hf("Wav2Vec2Model", {"input_values": R(1, 8000)}, **W2V),
    "hubert": lambda: hf("HubertModel", {"input_values": R(1, 8000)}, attn="sdpa", **W2V, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True),
    "ast": lambda: hf("ASTModel", {"input_values": R(1, 256, 128)}, **VIT, max_length=256),
    "timesformer": lambda: hf("TimesformerModel", px(1, 4, 3, 96, 96), **VIT, image_size=96, num_frames=4),
    "vivit": lambda: hf("VivitModel", px(1, 8, 3, 96, 96), **VIT, image_size=96, num_frames=8),
    "patchtsmixer": lambda: hf("PatchTSMixerForPrediction", {"past_values": R(4, 96, 7)}, context_length=96, prediction_length=24, num_input_channels=7, d_model=48, num_layers=4),
    "patchtst": lambda: hf("PatchTSTForPrediction", {"past_values": R(4, 96, 7)}, context_length=96, prediction_length=24, num_input_channels=7, patch_length=12, patch_stride=12,
                           d_model=64, ffn_dim=128, num_hidden_layers=3, num_attention_heads=4),
    # transformers: more architectures of each kind
    "mobilevit": lambda: hf("MobileViTForImageClassification", px(1, 3, 256, 256)),
    "mobilevitv2": lambda: hf("MobileViTV2ForImageClassification", px(1, 3, 256, 256)),
    "cvt": lambda: hf("CvtForImageClassification", px(), depth=[1, 2, 4]),
    "hf_resnet": lambda: hf("ResNetForImageClassification", px(), depths=[2, 2, 2, 2]),
    "hf_efficientnet": lambda: hf("EfficientNetForImageClassification", px(1, 3, 128, 128), image_size=128, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280),
    "mobilenet_v1": lambda: hf("MobileNetV1ForImageClassification", px()),
    "yolos": lambda: hf("YolosForObjectDetection", px(1, 3, 160, 160), **VIT, image_size=[160, 160], num_detection_tokens=20, num_labels=20),
    "dpt": lambda: hf("DPTForDepthEstimation", px(1, 3, 96, 96), **VIT, image_size=96, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64),
    "glpn": lambda: hf("GLPNForDepthEstimation", px(1, 3, 96, 96)),
    "hiera": lambda: hf("HieraForImageClassification", px(), depths=[1, 2, 3, 1]),
    "siglip": lambda: hf("SiglipVisionModel", px(), attn="sdpa", hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=4),
    "vit_msn": lambda: hf("ViTMSNModel", px(), **VIT),
    "videomae": lambda: hf("VideoMAEModel", px(1, 8, 3, 96, 96), **VIT, image_size=96, num_frames=8),
    "mpnet": lambda: hf("MPNetModel", ids(1, 64), **ENC),
    "ernie": lambda: hf("ErnieModel", ids(2, 64, 9), **ENC),
    "fnet": lambda: hf("FNetModel", ids(1, 64), **{k: v for k, v in ENC.items() if k != "num_attention_heads"}),
    "nystromformer": lambda: hf("NystromformerModel", ids(1, 64), **ENC),
    "bigbird": lambda: hf("BigBirdModel", ids(1, 64), **ENC, attention_type="original_full"),
    "roformer": lambda: hf("RoFormerModel", ids(1, 64), **ENC, embedding_size=256),
    "layoutlm": lambda: hf("LayoutLMModel", ids(1, 64), **ENC),
    "gptj": lambda: hf("GPTJForCausalLM", ids(1, 48), call=NC, vocab_size=1000, n_embd=256, n_layer=4, n_head=4, rotary_dim=32),
    "codegen": lambda: hf("CodeGenForCausalLM", ids(1, 48), call=NC, vocab_size=1000, n_embd=256, n_layer=4, n_head=4, rotary_dim=32),
    "falcon": lambda: hf("FalconForCausalLM", ids(1, 64), **DEC),
    "olmo2": lambda: hf("Olmo2ForCausalLM", ids(1, 64), **DEC),
    "gemma2": lambda: hf("Gemma2ForCausalLM", ids(1, 64), **DEC, num_key_value_heads=2, head_dim=64),
    "phi3": lambda: hf("Phi3ForCausalLM", ids(1, 64), **DEC, pad_token_id=0),
    "qwen3": lambda: hf("Qwen3ForCausalLM", ids(1, 64), attn="sdpa", **DEC, num_key_value_heads=2),
    "starcoder2": lambda: hf("Starcoder2ForCausalLM", ids(1, 64), **DEC, num_key_value_heads=2),
    "marian": lambda: hf("MarianModel", {**ids(1, 48), "decoder_input_ids": torch.randint(10, 1000, (1, 24))}, call=NC, vocab_size=1000, d_model=256, encoder_layers=3, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=1024, decoder_ffn_dim=1024, pad_token_id=1, decoder_start_token_id=1),
    "t5": lambda: hf("T5Model", {**ids(1, 48), "decoder_input_ids": torch.randint(10, 1000, (1, 24))}, weights=False, call=NC, vocab_size=1000, d_model=256, d_kv=64, d_ff=1024, num_layers=3, num_heads=4),
    "speech2text": lambda: hf("Speech2TextModel", {"input_features": R(1, 200, 80)}, pick="encoder", vocab_size=1000, d_model=256, encoder_layers=3, encoder_attention_heads=4, encoder_ffn_dim=1024, decoder_layers=1, decoder_attention_heads=4),
    "sew": lambda: hf("SEWModel", {"input_values": R(1, 8000)}, **ENC),
    "wavlm": lambda: hf("WavLMModel", {"input_values": R(1, 8000)}, **W2V),
    "unispeech": lambda: hf("UniSpeechModel", {"input_values": R(1, 8000)}, **W2V),
    "perceiver": lambda: hf("PerceiverModel", {"inputs": R(1, 128, 64)}, d_model=64, num_latents=64, d_latents=256, num_self_attends_per_block=3, num_self_attention_heads=4, num_cross_attention_heads=1),
    "mamba_hf": lambda: hf("MambaForCausalLM", ids(1, 16), call=NC, vocab_size=1000, hidden_size=128, num_hidden_layers=2, state_size=8),
    "clip_text": lambda: hf("CLIPTextModel", ids(1, 32), **ENC),
    # our own: tables, recommenders, time series
    "mlp_b1": lambda: own(mlp(784, 512, 256, 10), R(1, 784)),
    "mlp_b256": lambda: own(mlp(203, 451, 317, 77, 13), R(256, 203)),
    "logreg_b1000": lambda: own(nn.Sequential(nn.Linear(30, 3), nn.Softmax(-1)), R(1000, 30)),
    "dlrm": lambda: own(Dlrm(), R(64, 13), torch.randint(0, 1000, (64, 8, 4))),
    "deepfm": lambda: own(DeepFm(), torch.randint(0, 5000, (32, 20))),
    "nbeats": lambda: own(Nbeats(), R(16, 60)),
    "kmeans": lambda: own(Kmeans(), R(1000, 64)),
    "retrieval": lambda: own(Retrieval(), R(8, 256)),
    "moe2": lambda: own(Moe(), R(1, 64, 256)),
    "gat_dense": lambda: own(Gat(), R(200, 64), ((torch.rand(200, 200) < 0.05) | torch.eye(200, dtype=torch.bool)).float()),
    "pointnet": lambda: own(Pointnet(), R(1, 3, 1024)),
    "nerf": lambda: own(Nerf(), R(1024, 3), R(1024, 3)),
    # our own: images and volumes
    "autoencoder": lambda: own(autoencoder(), R(4, 1, 64, 64)),
    "dcgan": lambda: own(dcgan(), R(4, 100, 1, 1)),
    "encoder_1d": lambda: own(nn.Sequential(nn.Conv1d(1, 32, 7, padding=3), nn.ELU(), nn.Conv1d(32, 64, 4, 2, 1), nn.ELU(), nn.Conv1d(64, 128, 8, 4, 2), nn.ELU(), nn.Conv1d(128, 256, 10, 5, 3), nn.ELU(), nn.Conv1d(256, 128, 7, padding=3)), R(1, 1, 16000)),
    "unet": lambda: own(Unet(), R(1, 3, 96, 96)),
    "sd_unet": lambda: own(SdUnet(), R(1, 4, 32, 32), torch.tensor([37.0]), R(1, 77, 128)),
    "dit_block": lambda: own(Dit(), R(1, 256, 384), R(1, 384)),
    "yolo": lambda: own(Yolo(), torch.rand(1, 3, 192, 192)),
    "espcn": lambda: own(espcn(), torch.rand(1, 1, 80, 80)),
    "style": lambda: own(style(), torch.rand(1, 3, 96, 96)),
    "crnn": lambda: own(Crnn(), R(1, 1, 32, 160)),
    "mlp_mixer": lambda: own(Mixer(), R(1, 3, 112, 112)),
    "convmixer": lambda: own(convmixer(), R(1, 3, 112, 112)),
    "channels_odd": lambda: own(channels_odd(), R(1, 3, 61, 47)),
    "preprocess": lambda: own(Preprocess(), torch.randint(0, 256, (1, 360, 480, 3)).float()),
    "conv3d": lambda: own(conv3d(), R(1, 1, 24, 40, 40)),
    "vnet3d": lambda: own(Vnet3d(), R(1, 1, 32, 32, 32)),
    # our own: sequences and sound
    "gru": lambda: own(Gru(), R(4, 50, 64), R(2, 4, 128)),
    "lstm_lm_b1": lambda: own(LstmLm(), torch.randint(0, 2000, (1, 35))),
    "lstm_lm_b16": lambda: own(LstmLm(), torch.randint(0, 2000, (16, 35))),
    "textcnn": lambda: own(TextCnn(), torch.randint(0, 5000, (8, 60))),
    "tcn": lambda: own(tcn(), R(2, 6, 400)),
    "wavenet": lambda: own(Wavenet(), R(1, 1, 1000)),
    "conv_tasnet": lambda: own(ConvTasnet(), R(1, 1, 8000)),
    "hifigan": lambda: own(Hifigan(), R(1, 80, 32)),
    "conformer": lambda: own(nn.Sequential(Conformer(), Conformer()), R(1, 100, 144)),
    "log_mel": lambda: own(LogMel(), R(1, 16000)),
    "linear_attention": lambda: own(LinearAttention(), R(1, 512, 256)),
    "attention_long": lambda: own(CausalSdpa(), *R(3, 1, 8, 1024, 64).unbind(0)),
    "decode_kv": lambda: own(Decode(), R(1, 1, 512), R(1, 8, 255, 64), R(1, 8, 255, 64)),
    "mamba": lambda: own(Mamba(), R(1, 16, 128)),
    "swiglu_row": lambda: own(SwiGlu(), R(1, 2048)),
    # blocks and layers
    "mamba2": lambda: hf("Mamba2ForCausalLM", ids(1,32), call=NC, vocab_size=1000, hidden_size=128, num_hidden_layers=2, state_size=16, num_heads=8, head_dim=32, n_groups=1, chunk_size=16),
    "recurrent_gemma": lambda: hf("RecurrentGemmaForCausalLM", ids(1,16), call=NC, vocab_size=1000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, lru_width=128, intermediate_size=384, attention_window_size=32),
    "rwkv": lambda: hf("RwkvForCausalLM", ids(1,16), call=NC, vocab_size=1000, hidden_size=128, num_hidden_layers=2, attention_hidden_size=128),
    "zamba2": lambda: hf("Zamba2ForCausalLM", ids(1,16), vocab_size=1000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256, mamba_d_state=16, n_mamba_heads=4, chunk_size=16, hybrid_layer_ids=[1], layers_block_type=["mamba","hybrid","mamba"], call=NC),
    "xlstm": lambda: hf("xLSTMForCausalLM", ids(1,32), vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_heads=4, chunk_size=16, call=NC),
    "lfm2": lambda: hf("Lfm2ForCausalLM", ids(1,40), layer_types=["conv","full_attention"], **D2),
    "gemma3": lambda: hf("Gemma3ForCausalLM", ids(1,64), head_dim=64, **D2),
    "gpt_neo": lambda: hf("GPTNeoForCausalLM", ids(1,64), vocab_size=1000, hidden_size=256, num_layers=2, num_heads=4, attention_types=[[["global","local"],1]], window_size=16, call=NC),
    "mpt": lambda: hf("MptForCausalLM", ids(1,48), vocab_size=1000, d_model=256, n_layers=2, n_heads=4, call=NC),
    "esm": lambda: hf("EsmModel", ids(1,64,8), position_embedding_type="rotary", pad_token_id=1, mask_token_id=4, **E2),
    "rembert": lambda: hf("RemBertModel", ids(1,64), **E2),
    "textnet": lambda: hf("TextNetForImageClassification", px(1,3,160,160)),
    "hgnet_v2": lambda: hf("HGNetV2ForImageClassification", px(1,3,160,160)),
    "regnet_hf": lambda: hf("RegNetForImageClassification", px(1,3,128,128), depths=[1,1,2,1]),
    "sam_vision": lambda: hf("SamVisionModel", px(1,3,256,256), image_size=256, hidden_size=192, num_hidden_layers=2, num_attention_heads=3, window_size=7, global_attn_indexes=[1], output_channels=64),
    "superpoint": lambda: hf("SuperPointForKeypointDetection", px(1,3,96,96)),
    "decision_transformer": lambda: hf("DecisionTransformerModel", {"states": R(1,20,17), "actions": R(1,20,4), "rewards": R(1,20,1), "returns_to_go": R(1,20,1), "timesteps": torch.arange(20)[None]}),
    "mvit_v2_s": lambda: tv("mvit_v2_s", 1,3,16,224,224),
    "swin3d_t": lambda: tv("swin3d_t", 1,3,8,64,64),
    "mimi": lambda: hf("MimiModel", {"input_values": R(1,1,4800)}, pick="encoder"),
    "deepseek_v3": lambda: hf("DeepseekV3ForCausalLM", ids(1,24), n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=128, kv_lora_rank=64, q_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=32, first_k_dense_replace=2, n_group=1, topk_group=1, **{**D2,"num_key_value_heads":4}),
    "regnet_x_3_2gf": lambda: tv("regnet_x_3_2gf", var=4),
    "stn": lambda: own(Fn(stn,l=nn.Sequential(nn.Conv2d(32,8,7,4),nn.ReLU(),nn.AdaptiveAvgPool2d(3),nn.Flatten(),nn.Linear(72,6)),n=nn.Sequential(c3(32,64),nn.ReLU(),c3(64,10))),R(1,32,64,64)),
    "vqvae": lambda: own(Fn(vqvae,e=nn.Sequential(c3(3,64,2),nn.ReLU(),c3(64,64,2)),k=nn.Embedding(256,64),d=nn.Sequential(nn.ConvTranspose2d(64,64,4,2,1),nn.ReLU(),nn.ConvTranspose2d(64,3,4,2,1))),R(1,3,96,96)),
    "bifpn": lambda: own(Fn(bifpn,w=nn.Parameter(torch.rand(3)),**{f"c{i}":nn.Sequential(nn.Conv2d(64,64,3,1,1,groups=64),nn.Conv2d(64,64,1),nn.BatchNorm2d(64)) for i in (1,2,3,4)}),R(1,64,64,64),R(1,64,32,32),R(1,64,16,16)),
    "modconv": lambda: own(Fn(modconv,s=nn.Linear(64,64),k=param(64,64,3,3),n=param(1,1,32,32)),R(4,64,32,32),R(4,64)),
    "edgeconv": lambda: own(Fn(edgeconv,m=mlp(6,64,64)),R(1,256,3)),
    "nvp": lambda: own(Fn(nvp,a=nn.ModuleList(mlp(32,128,32) for _ in range(4)),b=nn.ModuleList(mlp(32,128,32) for _ in range(4))),R(64,64)),
    "deepspeech": lambda: own(Fn(deepspeech,c=nn.Sequential(nn.Conv2d(1,16,(11,21),2,(5,10)),nn.Hardtanh(0,20),nn.Conv2d(16,16,(11,11),(1,2),5)),r=nn.LSTM(320,128,2,batch_first=True,bidirectional=True),o=nn.Linear(256,29)),R(1,100,80)),
    "nafnet": lambda: own(Fn(nafnet,n=nn.ModuleList(ChannelNorm(32) for _ in range(4)),a=nn.ModuleList(nn.Conv2d(32,64,1) for _ in range(4)),dw=nn.ModuleList(nn.Conv2d(64,64,3,1,1,groups=64) for _ in range(4)),g=nn.ModuleList(nn.Conv2d(32,32,1) for _ in range(4)),o=nn.ModuleList(nn.Conv2d(32,32,1) for _ in range(4))),R(1,32,96,96)),
    "rcan": lambda: own(Fn(rcan,h=c3(3,32),a=nn.ModuleList(c3(32,32) for _ in range(4)),b=nn.ModuleList(c3(32,32) for _ in range(4)),d=nn.ModuleList(nn.Conv2d(32,4,1) for _ in range(4)),u=nn.ModuleList(nn.Conv2d(4,32,1) for _ in range(4)),p=c3(32,128),t=c3(32,3)),R(1,3,64,64)),
    "edges": lambda: own(Fn(edges,g=param(3,1,5,5),k=param(2,1,3,3)),R(1,3,160,160)),
    "gmlp": lambda: own(Fn(gmlp,n=nn.ModuleList(nn.LayerNorm(128) for _ in range(3)),u=nn.ModuleList(nn.Linear(128,512) for _ in range(3)),t=nn.ModuleList(nn.Linear(100,100) for _ in range(3)),v=nn.ModuleList(nn.Linear(256,128) for _ in range(3))),R(2,100,128)),
    "iou": lambda: own(Fn(iou),torch.rand(300,4),R(300)),
    "srcnn": lambda: own(nn.Sequential(nn.Conv2d(1,64,9,1,4),nn.ReLU(),nn.Conv2d(64,32,1),nn.ReLU(),nn.Conv2d(32,1,5,1,2)),R(1,1,96,96)),
    "fsrcnn": lambda: own(nn.Sequential(nn.Conv2d(1,56,5,1,2),nn.PReLU(56),nn.Conv2d(56,12,1),nn.PReLU(12),c3(12,12),nn.PReLU(12),nn.Conv2d(12,56,1),nn.PReLU(56),nn.ConvTranspose2d(56,1,9,2,4,output_padding=1)),R(1,1,64,64)),
    "toeplitz": lambda: own(Fn(toeplitz,k=param(32,256),o=nn.Linear(32,64)),R(2,256,32)),
    "running": lambda: own(Fn(running),R(64,2000)),
    "forest": lambda: own(Fn(forest,**forest_parts()),R(1024,40)*0.1),
    "axes": lambda: own(Fn(axes,h=nn.ParameterList(param(18,18) for _ in range(3)),w=nn.ParameterList(param(22,22) for _ in range(3)),c=nn.ParameterList(param(54,54) for _ in range(3))),R(2,18,22,54)),
    "performer": lambda: own(Fn(performer,w=param(33,53),qkv=nn.Linear(132,396),o=nn.Linear(132,132)),R(2,300,132)),
    "dense_narrow": lambda: own(Fn(dense,l=nn.ModuleList(nn.Sequential(nn.BatchNorm2d(11+5*i),nn.ReLU(),c3(11+5*i,5)) for i in range(14)),o=nn.Conv2d(81,11,1)),R(1,11,37,41)),
    "multiplier": lambda: own(nn.Sequential(cbr(3,29,3,2),nn.Conv2d(29,87,5,1,2,groups=29),nn.ReLU6(),nn.Conv2d(87,29,1),nn.Conv2d(29,58,3,2,1,groups=29),nn.ReLU6(),nn.Conv2d(58,41,1)),R(1,3,142,106)),
    "condconv_narrow": lambda: own(nn.Sequential(*(Fn(condconv,w=param(3,o,i,3,3),r=nn.Linear(i,3)) for i,o in ((6,18),(18,30))),nn.Conv2d(30,4,1)),R(4,6,50,42)),
    "odd_mlp": lambda: own(Res(nn.Linear(131,517),nn.GELU("tanh"),nn.Linear(517,131)),R(1001,131)),
    "flatten": lambda: own(nn.Sequential(nn.Conv2d(1,11,3,2,1),nn.ReLU(),nn.Flatten(),nn.Linear(2156,59),nn.ELU()),R(8,1,28,28)),
    "block_basic": lambda: own(resnet("BasicBlock", 64, 64), R(1, 64, 56, 56)),
    "block_bottleneck": lambda: own(resnet("Bottleneck", 256, 64), R(1, 256, 56, 56)),
    "block_bottleneck_deep": lambda: own(resnet("Bottleneck", 1024, 256), R(1, 1024, 14, 14)),
    "block_separable": lambda: own(separable(), R(1, 64, 56, 56)),
    "block_group_norm": lambda: own(group_norm(128, 32), R(1, 128, 32, 32)),
    "block_group_norm_b4": lambda: own(group_norm(64, 8), R(4, 64, 56, 56)),
    "block_layer_norm_image": lambda: own(group_norm(64, 1), R(2, 64, 40, 40)),
    "block_up": lambda: own(Up(), R(1, 64, 14, 14), R(1, 64, 28, 28)),
    "block_squeeze": lambda: own(Squeeze(64), R(1, 64, 28, 28)),
    "block_pyramid": lambda: own(Pyramid(), R(1, 64, 56, 56), R(1, 128, 28, 28), R(1, 256, 14, 14)),
    "block_transformer": lambda: own(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), R(2, 64, 256)),
    "block_conv1d": lambda: own(nn.Sequential(nn.Conv1d(80, 128, 5, padding=2), nn.ReLU(), nn.Conv1d(128, 80, 5, padding=2)), R(1, 80, 200)),
    "layer_conv3x3": lambda: own(nn.Conv2d(64, 128, 3, padding=1), R(1, 64, 28, 28)),
    "layer_conv1x1": lambda: own(nn.Conv2d(64, 64, 1), R(1, 64, 56, 56)),
    "layer_conv_dilated": lambda: own(nn.Conv2d(64, 64, 3, 1, 4, 4), R(1, 64, 32, 32)),
    "layer_conv_transposed": lambda: own(nn.ConvTranspose2d(64, 32, 4, 2, 1), R(1, 64, 28, 28)),
    "layer_patches": lambda: own(nn.Conv2d(3, 384, 16, 16), R(1, 3, 224, 224)),
    "layer_stem": lambda: own(nn.Conv2d(3, 64, 7, 2, 3), R(1, 3, 224, 224)),
    "layer_max_pool": lambda: own(nn.MaxPool2d(3, 2, 1), R(1, 64, 112, 112)),
    "layer_avg_pool": lambda: own(nn.AvgPool2d(7), R(4, 512, 14, 14)),
    "layer_pixel_shuffle": lambda: own(nn.PixelShuffle(2), R(1, 64, 56, 56)),
    "layer_upsample": lambda: own(nn.Upsample(scale_factor=2), R(1, 64, 28, 28)),
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    run(MODELS, sys.argv)
