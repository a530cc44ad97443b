#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU suite: each entry is (make module, make inputs, dtype).  Exported by   gpu_zoo.py OUT [name ...]   as the open zoo is
(on a machine without onnxscript: FORMATS=pt2,pt), and timed against torch.compile by ../../benchmarks/compare_gpu.py."""
import os, sys
import torch, torch.nn as nn, torch.nn.functional as F
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_zoo import FusionDemo, Pointwise, Reduction, InfoScorer, QCScorer, SmallOps, Block, LinearGelu, MatMul, tv, bert, R
from export import run

f32, bf16, f16 = torch.float32, torch.bfloat16, torch.float16


class Norm(nn.Module):
    def __init__(s, d): super().__init__(); s.n = nn.LayerNorm(d)
    def forward(s, x): return s.n(x)

class Softmax(nn.Module):
    def forward(s, x): return F.softmax(x, -1)

class SwiGLU(nn.Module):
    def __init__(s, d=4096, h=11008):
        super().__init__(); s.g, s.u, s.d = nn.Linear(d, h, False), nn.Linear(d, h, False), nn.Linear(h, d, False)
    def forward(s, x): return s.d(F.silu(s.g(x)) * s.u(x))

class Attention(nn.Module):
    def __init__(s, causal): super().__init__(); s.causal = causal
    def forward(s, q, k, v): return F.scaled_dot_product_attention(q, k, v, is_causal=s.causal)

class ColumnSum(nn.Module):
    def forward(s, x): return (x * x).sum(0)

class TransposeAdd(nn.Module):
    def forward(s, x, y): return x.t() + y

def simple_net(): return nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10))
def zoo(make): return lambda: make()[0]
def like(make): return lambda: make()[1]
def rand(*shapes): return lambda: [R(*s) for s in shapes]
def ids(b, t): return lambda: [torch.randint(0, 30000, (b, t)), torch.ones(b, t, dtype=torch.int64)]

SUITE = {
    "fusion_demo": (FusionDemo, rand((64, 128, 512)), f32),
    "pointwise_4096": (Pointwise, rand((4096, 4096), (4096, 4096)), f32),
    "reduction_2000": (Reduction, rand((2000, 2000)), f32),
    "info_scorer": (InfoScorer, rand((32, 196, 768)), f32),
    "qc_scorer": (QCScorer, rand((8, 128, 64), (8, 512, 64)), f32),
    "layernorm_8192_bf16": (lambda: Norm(8192), rand((8192, 8192)), bf16),
    "softmax_4097": (Softmax, rand((8192, 4097)), f32),
    "column_sum_16384": (ColumnSum, rand((16384, 4096)), f32),
    "transpose_add_8192": (TransposeAdd, rand((8192, 8192), (8192, 8192)), f32),
    "small_ops_b8": (SmallOps, rand((8, 256)), f32),
    "simple_net_b256": (simple_net, rand((256, 1024)), f32),
    "linear_gelu_bf16": (lambda: LinearGelu(768, 3072), rand((4096, 768)), bf16),
    "matmul_4096_f32": (MatMul, rand((4096, 4096), (4096, 4096)), f32),
    "matmul_4096_bf16": (MatMul, rand((4096, 4096), (4096, 4096)), bf16),
    "matmul_8192_bf16": (MatMul, rand((8192, 8192), (8192, 8192)), bf16),
    "swiglu_decode_b1_bf16": (SwiGLU, rand((1, 4096)), bf16),
    "swiglu_2048_bf16": (SwiGLU, rand((2048, 4096)), bf16),
    "attention_4k_bf16": (lambda: Attention(False), rand(*[(4, 16, 4096, 128)] * 3), bf16),
    "attention_4k_causal_bf16": (lambda: Attention(True), rand(*[(4, 16, 4096, 128)] * 3), bf16),
    "block768_f32": (Block, rand((32, 128, 768)), f32),
    "block768_bf16": (Block, rand((32, 128, 768)), bf16),
    "resnet18_b16_f32": (zoo(lambda: tv("resnet18")), rand((16, 3, 224, 224)), f32),
    "resnet50_b1_f32": (zoo(lambda: tv("resnet50")), rand((1, 3, 224, 224)), f32),
    "resnet50_b32_f16": (zoo(lambda: tv("resnet50")), rand((32, 3, 224, 224)), f16),
    "mobilenet_v2_b1_f32": (zoo(lambda: tv("mobilenet_v2")), rand((1, 3, 224, 224)), f32),
    "vit_b_16_b8_bf16": (zoo(lambda: tv("vit_b_16")), rand((8, 3, 224, 224)), bf16),
    "bert_b1_s128_f32": (zoo(lambda: bert(1, 128)), ids(1, 128), f32),
    "bert_b8_s128_bf16": (zoo(lambda: bert(8, 128)), ids(8, 128), bf16),
}
KW = {"bert": dict(names=["input_ids", "attention_mask"], kw={"return_dict": False})}


@torch.no_grad()
def calibrate(m, xs):
    """Batch norms of random networks get the statistics of the inputs, so that activations stay in the range of f16."""
    norms = [x for x in m.modules() if isinstance(x, nn.modules.batchnorm._BatchNorm)]
    if not norms: return
    for x in norms: x.train(); x.momentum = 1.0
    m(*xs)
    m.eval()


def make(name):
    """(module in eval mode, positional inputs, export keywords), seeded."""
    mk, ins, dt = SUITE[name]
    torch.manual_seed(0)
    m = mk().eval()
    xs = ins()
    calibrate(m, xs)
    m = m.to(dt)
    xs = [x.to(dt) if x.is_floating_point() else x for x in xs]
    kw = dict(KW["bert"]) if name.startswith("bert") else {}
    if os.environ.get("FORMATS"): kw["formats"] = os.environ["FORMATS"].split(",")
    return m, xs, kw


if __name__ == "__main__":
    run({n: (lambda n=n: make(n)) for n in SUITE}, sys.argv)
