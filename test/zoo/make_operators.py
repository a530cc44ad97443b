#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of one operator, or of the few that one operation is exported as, in the sizes of common networks.

usage: make_operators.py FOLDER [NAME ...]

Writes FOLDER/NAME/{model.onnx, inputs.npz, outputs.npz}; the outputs are ONNX Runtime's, in the model's own types. For bench's
compare_cpu.py: what a layer costs whose neighbours are not there to share its layout. Weights and inputs come from a fixed seed.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(0)
FOLDER, WANTED = None, []


def model(name, nodes, inputs, constants={}, outputs=("y",)):
    """`nodes`: (operator, inputs, outputs, attributes) each; `inputs` and `constants`: arrays by name."""
    if WANTED and name not in WANTED:
        return
    renamed = {old: f"input_{i}" for i, old in enumerate(inputs)} | {old: f"output_{i}" for i, old in enumerate(outputs)}
    nodes = [helper.make_node(op, [renamed.get(n, n) for n in of], [renamed.get(n, n) for n in to], **attributes) for op, of, to, attributes in nodes]
    inputs = {renamed[n]: v for n, v in inputs.items()}
    names = [renamed[n] for n in outputs]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()],
                              [helper.make_empty_tensor_value_info(n) for n in names], [numpy_helper.from_array(v, n) for n, v in constants.items()])
    made = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    onnx.save(made, f"{folder}/model.onnx")
    np.savez(f"{folder}/inputs.npz", **inputs)
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", providers=["CPUExecutionProvider"])
    np.savez(f"{folder}/outputs.npz", **dict(zip(names, session.run(None, inputs))))


def f32(*dims):
    return RANDOM.standard_normal(dims).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def make():
    model("up2_nchw", [("Resize", ["x", "", "s"], ["y"], dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))], dict(x=f32(1, 64, 56, 56)), dict(s=np.array([1, 1, 2, 2], np.float32)))
    model("up_bilinear", [("Resize", ["x", "", "s"], ["y"], dict(mode="linear", coordinate_transformation_mode="half_pixel"))], dict(x=f32(1, 64, 56, 56)), dict(s=np.array([1, 1, 2, 2], np.float32)))
    model("up_bilinear_align", [("Resize", ["x", "", "", "s"], ["y"], dict(mode="linear", coordinate_transformation_mode="align_corners"))], dict(x=f32(1, 21, 65, 65)), dict(s=i64(1, 21, 129, 129)))
    model("maxpool3s2", [("MaxPool", ["x"], ["y"], dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))], dict(x=f32(1, 64, 112, 112)))
    model("maxpool2", [("MaxPool", ["x"], ["y"], dict(kernel_shape=[2, 2], strides=[2, 2]))], dict(x=f32(1, 64, 112, 112)))
    model("maxpool3s1", [("MaxPool", ["x"], ["y"], dict(kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]))], dict(x=f32(1, 64, 56, 56)))
    model("avgpool7", [("AveragePool", ["x"], ["y"], dict(kernel_shape=[7, 7], strides=[7, 7]))], dict(x=f32(4, 512, 14, 14)))
    model("avgpool2", [("AveragePool", ["x"], ["y"], dict(kernel_shape=[2, 2], strides=[2, 2]))], dict(x=f32(1, 128, 56, 56)))
    model("avgpool3pad", [("AveragePool", ["x"], ["y"], dict(kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]))], dict(x=f32(1, 64, 56, 56)))
    model("maxpool1d", [("MaxPool", ["x"], ["y"], dict(kernel_shape=[4], strides=[4]))], dict(x=f32(8, 64, 2048)))
    model("maxpool3d", [("MaxPool", ["x"], ["y"], dict(kernel_shape=[2, 2, 2], strides=[2, 2, 2]))], dict(x=f32(1, 32, 16, 56, 56)))
    model("gap", [("GlobalAveragePool", ["x"], ["y"], {})], dict(x=f32(8, 512, 14, 14)))
    model("hwc2chw", [("Transpose", ["x"], ["y"], dict(perm=[0, 3, 1, 2]))], dict(x=f32(4, 224, 224, 3)))
    model("chw2hwc", [("Transpose", ["x"], ["y"], dict(perm=[0, 2, 3, 1]))], dict(x=f32(4, 3, 224, 224)))
    model("hwc2chw_u8", [("Transpose", ["x"], ["t"], dict(perm=[0, 3, 1, 2])), ("Cast", ["t"], ["c"], dict(to=1)), ("Mul", ["c", "k"], ["y"], {})], dict(x=RANDOM.integers(0, 255, (4, 224, 224, 3)).astype(np.uint8)), dict(k=np.float32(1/255)))
    model("slice_step2", [("Slice", ["x", "b", "e", "a", "s"], ["y"], {})], dict(x=f32(256, 4096)), dict(b=i64(0), e=i64(4096), a=i64(1), s=i64(2)))
    model("rotary_pairs", [("Slice", ["x", "b0", "e", "a", "s"], ["p"], {}), ("Slice", ["x", "b1", "e", "a", "s"], ["q"], {}), ("Neg", ["q"], ["n"], {}), ("Unsqueeze", ["n", "u"], ["n1"], {}), ("Unsqueeze", ["p", "u"], ["p1"], {}), ("Concat", ["n1", "p1"], ["c"], dict(axis=-1)), ("Reshape", ["c", "sh"], ["r"], {}), ("Mul", ["x", "cos"], ["xc"], {}), ("Mul", ["r", "sin"], ["rs"], {}), ("Add", ["xc", "rs"], ["y"], {})], dict(x=f32(1, 16, 256, 64)), dict(b0=i64(0), b1=i64(1), e=i64(64), a=i64(3), s=i64(2), u=i64(4), sh=i64(1, 16, 256, 64), cos=f32(256, 64), sin=f32(256, 64)))
    model("flip", [("Slice", ["x", "b", "e", "a", "s"], ["y"], {})], dict(x=f32(256, 4096)), dict(b=i64(-1), e=i64(-99999), a=i64(1), s=i64(-1)))
    model("focus", [("Slice", ["x", "b0", "e", "a", "s"], ["p"], {}), ("Slice", ["x", "b1", "e", "a", "s"], ["q"], {}), ("Concat", ["p", "q"], ["y"], dict(axis=1))], dict(x=f32(1, 3, 640, 640)), dict(b0=i64(0, 0), b1=i64(1, 1), e=i64(640, 640), a=i64(2, 3), s=i64(2, 2)))
    model("s2d", [("SpaceToDepth", ["x"], ["y"], dict(blocksize=2))], dict(x=f32(1, 16, 128, 128)))
    model("d2s", [("DepthToSpace", ["x"], ["y"], dict(blocksize=2))], dict(x=f32(1, 64, 64, 64)))
    model("channel_shuffle", [("Reshape", ["x", "a"], ["r"], {}), ("Transpose", ["r"], ["t"], dict(perm=[0, 2, 1, 3, 4])), ("Reshape", ["t", "b"], ["y"], {})], dict(x=f32(1, 116, 28, 28)), dict(a=i64(1, 2, 58, 28, 28), b=i64(1, 116, 28, 28)))
    model("tile", [("Tile", ["x", "r"], ["y"], {})], dict(x=f32(64, 256)), dict(r=i64(8, 4)))
    model("expand_mid", [("Expand", ["x", "r"], ["y"], {})], dict(x=f32(8, 1, 128, 64)), dict(r=i64(8, 4, 128, 64)))
    model("pad_reflect", [("Pad", ["x", "p"], ["y"], dict(mode="reflect"))], dict(x=f32(1, 64, 56, 56)), dict(p=i64(0, 0, 3, 3, 0, 0, 3, 3)))
    model("pad_const", [("Pad", ["x", "p"], ["y"], dict(mode="constant"))], dict(x=f32(1, 64, 56, 56)), dict(p=i64(0, 0, 1, 1, 0, 0, 1, 1)))
    model("softmax", [("Softmax", ["x"], ["y"], dict(axis=-1))], dict(x=f32(1024, 1024)))
    model("softmax_ch", [("Softmax", ["x"], ["y"], dict(axis=1))], dict(x=f32(1, 21, 128, 128)))
    model("logsoftmax", [("LogSoftmax", ["x"], ["y"], dict(axis=-1))], dict(x=f32(128, 10000)))
    model("layernorm", [("LayerNormalization", ["x", "g", "b"], ["y"], dict(axis=-1))], dict(x=f32(512, 768)), dict(g=f32(768), b=f32(768)))
    model("groupnorm", [("InstanceNormalization", ["x", "g", "b"], ["y"], {})], dict(x=f32(4, 64, 56, 56)), dict(g=f32(64), b=f32(64)))
    model("batchnorm", [("BatchNormalization", ["x", "g", "b", "m", "v"], ["y"], {})], dict(x=f32(4, 64, 56, 56)), dict(g=f32(64), b=f32(64), m=f32(64), v=np.abs(f32(64))+1))
    model("gelu", [("Gelu", ["x"], ["y"], {})], dict(x=f32(512, 3072)))
    model("erf", [("Erf", ["x"], ["y"], {})], dict(x=f32(512, 3072)))
    model("silu", [("Sigmoid", ["x"], ["s"], {}), ("Mul", ["x", "s"], ["y"], {})], dict(x=f32(512, 3072)))
    model("relu", [("Relu", ["x"], ["y"], {})], dict(x=f32(512, 3072)))
    model("add_bias", [("Add", ["x", "b"], ["y"], {})], dict(x=f32(512, 3072)), dict(b=f32(3072)))
    model("reduce_mean_last", [("ReduceMean", ["x", "a"], ["y"], {})], dict(x=f32(2048, 2048)), dict(a=i64(-1)))
    model("reduce_sum_first", [("ReduceSum", ["x", "a"], ["y"], {})], dict(x=f32(2048, 2048)), dict(a=i64(0)))
    model("reduce_max_mid", [("ReduceMax", ["x", "a"], ["y"], {})], dict(x=f32(64, 128, 256)), dict(a=i64(1)))
    model("reduce_all", [("ReduceSum", ["x"], ["y"], dict(keepdims=0))], dict(x=f32(2048, 2048) + 1))
    model("l2norm", [("ReduceL2", ["x", "a"], ["n"], {}), ("Div", ["x", "n"], ["y"], {})], dict(x=f32(1024, 512)), dict(a=i64(-1)))
    model("argmax", [("ArgMax", ["x"], ["y"], dict(axis=-1))], dict(x=f32(512, 4096)))
    model("argmax_ch", [("ArgMax", ["x"], ["y"], dict(axis=1))], dict(x=f32(1, 21, 128, 128)))
    model("topk", [("TopK", ["x", "k"], ["v", "i"], {})], dict(x=f32(64, 1000)), dict(k=i64(5)), outputs=("v", "i"))
    model("topk_long", [("TopK", ["x", "k"], ["v", "i"], {})], dict(x=f32(4, 50000)), dict(k=i64(50)), outputs=("v", "i"))
    model("cumsum", [("CumSum", ["x", "a"], ["y"], {})], dict(x=f32(512, 1024)), dict(a=np.int64(1)))
    model("cumsum0", [("CumSum", ["x", "a"], ["y"], {})], dict(x=f32(512, 1024)), dict(a=np.int64(0)))
    model("gather_rows", [("Gather", ["w", "x"], ["y"], {})], dict(x=RANDOM.integers(0, 30000, (8, 128)).astype(np.int64)), dict(w=f32(30000, 256)))
    model("gather_cols", [("Gather", ["x", "i"], ["y"], dict(axis=1))], dict(x=f32(512, 1024), i=RANDOM.integers(0, 1024, (500, )).astype(np.int64)))
    model("gather_elements", [("GatherElements", ["x", "i"], ["y"], dict(axis=1))], dict(x=f32(512, 1024), i=RANDOM.integers(0, 1024, (512, 256)).astype(np.int64)))
    model("scatter_nd", [("ScatterND", ["x", "i", "u"], ["y"], {})], dict(x=f32(4096, 64), i=RANDOM.permutation(4096)[:1024, None].astype(np.int64), u=f32(1024, 64)))
    model("scatter_elements", [("ScatterElements", ["x", "i", "u"], ["y"], dict(axis=1, reduction="add"))], dict(x=f32(256, 512), i=RANDOM.integers(0, 512, (256, 256)).astype(np.int64), u=f32(256, 256)))
    model("onehot", [("OneHot", ["x", "d", "v"], ["y"], {})], dict(x=RANDOM.integers(0, 1000, (256, )).astype(np.int64)), dict(d=i64(1000), v=np.array([0, 1], np.float32)))
    model("where", [("Where", ["c", "x", "z"], ["y"], {})], dict(c=RANDOM.random((512, 3072))>.5, x=f32(512, 3072), z=f32(512, 3072)))
    model("concat_ch", [("Concat", ["x", "z"], ["y"], dict(axis=1))], dict(x=f32(4, 64, 28, 28), z=f32(4, 32, 28, 28)))
    model("concat_last", [("Concat", ["x", "z"], ["y"], dict(axis=2))], dict(x=f32(8, 256, 48), z=f32(8, 256, 80)))
    model("split3", [("Split", ["x"], ["a", "b", "c"], dict(axis=-1, num_outputs=3))], dict(x=f32(256, 2304)), outputs=("a", "b", "c"))
    model("transpose2d", [("Transpose", ["x"], ["y"], dict(perm=[1, 0]))], dict(x=f32(1000, 1000)))
    model("transpose_heads", [("Transpose", ["x"], ["y"], dict(perm=[0, 2, 1, 3]))], dict(x=f32(8, 128, 12, 64)))
    model("transpose_heads_k", [("Transpose", ["x"], ["y"], dict(perm=[0, 2, 3, 1]))], dict(x=f32(8, 128, 12, 64)))
    model("triu", [("Trilu", ["x"], ["y"], dict(upper=0))], dict(x=f32(16, 256, 256)))
    model("clip_cast", [("Clip", ["x", "lo", "hi"], ["c"], {}), ("Cast", ["c"], ["y"], dict(to=2))], dict(x=f32(1, 3, 512, 512)*255), dict(lo=np.float32(0), hi=np.float32(255)))
    model("pow_sqrt", [("Pow", ["x", "p"], ["a"], {}), ("Sqrt", ["a"], ["y"], {})], dict(x=np.abs(f32(512, 1024))+.1), dict(p=np.float32(1.7)))
    model("sincos", [("Sin", ["x"], ["a"], {}), ("Cos", ["x"], ["b"], {}), ("Mul", ["a", "b"], ["y"], {})], dict(x=f32(512, 1024)))
    model("gemm_small", [("Gemm", ["x", "w", "b"], ["y"], {})], dict(x=f32(32, 128)), dict(w=f32(128, 64), b=f32(64)))
    model("gemm_tt", [("Gemm", ["x", "w"], ["y"], dict(transA=1, transB=1))], dict(x=f32(512, 256)), dict(w=f32(384, 512)))
    model("matmul_dyn", [("MatMul", ["x", "z"], ["y"], {})], dict(x=f32(384, 512), z=f32(512, 384)))
    model("matmul_gemv", [("MatMul", ["x", "w"], ["y"], {})], dict(x=f32(1, 4096)), dict(w=f32(4096, 4096)))
    model("matmul_vec", [("MatMul", ["w", "x"], ["y"], {})], dict(x=f32(2048, 1)), dict(w=f32(2048, 2048)))
    model("matmul_row", [("MatMul", ["x", "z"], ["y"], {})], dict(x=f32(1, 2048), z=f32(2048, 2048)))
    model("matmul_rows4_t", [("Einsum", ["x", "z"], ["y"], dict(equation="mk,nk->mn"))], dict(x=f32(4, 2048), z=f32(2048, 2048)))
    model("matmul_rows8", [("MatMul", ["x", "z"], ["y"], {})], dict(x=f32(8, 2048), z=f32(2048, 2048)))
    model("bmm_row", [("MatMul", ["x", "z"], ["y"], {})], dict(x=f32(64, 1, 64), z=f32(64, 64, 500)))
    model("gram", [("Transpose", ["x"], ["t"], dict(perm=[1, 0])), ("MatMul", ["t", "x"], ["y"], {})], dict(x=f32(4096, 64)))
    model("distances", [("Sub", ["x", "z"], ["d"], {}), ("Mul", ["d", "d"], ["q"], {}), ("ReduceSum", ["q", "a"], ["s"], dict(keepdims=0)), ("Sqrt", ["s"], ["r"], {}), ("Neg", ["r"], ["n"], {}), ("Exp", ["n"], ["y"], {})],
          dict(x=f32(300, 1, 16), z=f32(1, 100, 16)), dict(a=i64(-1)))
    model("bmm", [("MatMul", ["x", "z"], ["y"], {})], dict(x=f32(96, 64, 64), z=f32(96, 64, 64)))
    model("bmm_kt", [("Transpose", ["z"], ["t"], dict(perm=[0, 2, 1])), ("MatMul", ["x", "t"], ["y"], {})], dict(x=f32(96, 128, 64), z=f32(96, 128, 64)))
    model("einsum_bhqk", [("Einsum", ["x", "z"], ["y"], dict(equation="bqhd,bkhd->bhqk"))], dict(x=f32(2, 128, 8, 64), z=f32(2, 128, 8, 64)))
    model("grid_sample", [("GridSample", ["x", "g"], ["y"], dict(mode="linear", padding_mode="zeros", align_corners=0))], dict(x=f32(1, 32, 64, 64), g=(RANDOM.random((1, 64, 64, 2))*2-1).astype(np.float32)))
    model("lrn", [("LRN", ["x"], ["y"], dict(size=5))], dict(x=f32(1, 64, 55, 55)))
    model("prelu", [("PRelu", ["x", "s"], ["y"], {})], dict(x=f32(1, 64, 112, 112)), dict(s=f32(64, 1, 1)))
    model("hardswish", [("HardSwish", ["x"], ["y"], {})], dict(x=f32(1, 64, 112, 112)))
    model("conv1x1_nchw", [("Conv", ["x", "w"], ["y"], {})], dict(x=f32(1, 64, 56, 56)), dict(w=f32(64, 64, 1, 1)))
    model("conv1x1_256", [("Conv", ["x", "w"], ["y"], {})], dict(x=f32(1, 256, 28, 28)), dict(w=f32(256, 256, 1, 1)))
    model("conv3x3_s2", [("Conv", ["x", "w"], ["y"], dict(strides=[2, 2], pads=[1, 1, 1, 1]))], dict(x=f32(1, 64, 56, 56)), dict(w=f32(128, 64, 3, 3)))
    model("conv_dw", [("Conv", ["x", "w"], ["y"], dict(group=96, pads=[1, 1, 1, 1]))], dict(x=f32(1, 96, 56, 56)), dict(w=f32(96, 1, 3, 3)))
    model("conv_grouped", [("Conv", ["x", "w"], ["y"], dict(group=4, pads=[1, 1, 1, 1]))], dict(x=f32(1, 128, 28, 28)), dict(w=f32(128, 32, 3, 3)))
    model("conv_stem", [("Conv", ["x", "w"], ["y"], dict(strides=[2, 2], pads=[3, 3, 3, 3]))], dict(x=f32(1, 3, 224, 224)), dict(w=f32(64, 3, 7, 7)))
    model("conv_stem3", [("Conv", ["x", "w"], ["y"], dict(strides=[2, 2], pads=[1, 1, 1, 1]))], dict(x=f32(1, 3, 224, 224)), dict(w=f32(32, 3, 3, 3)))
    model("conv1d_k7", [("Conv", ["x", "w"], ["y"], dict(pads=[3, 3]))], dict(x=f32(1, 64, 2000)), dict(w=f32(64, 64, 7)))
    model("conv3d", [("Conv", ["x", "w"], ["y"], dict(pads=[1]*6))], dict(x=f32(1, 16, 8, 28, 28)), dict(w=f32(32, 16, 3, 3, 3)))
    model("convT", [("ConvTranspose", ["x", "w"], ["y"], dict(strides=[2, 2]))], dict(x=f32(1, 64, 28, 28)), dict(w=f32(64, 32, 2, 2)))
    model("lstm_b1", [("LSTM", ["x", "w", "r", "b"], ["y"], dict(hidden_size=128))], dict(x=f32(50, 1, 64)), dict(w=f32(1, 512, 64)*.1, r=f32(1, 512, 128)*.1, b=f32(1, 1024)*.1))
    model("gru_b8", [("GRU", ["x", "w", "r", "b"], ["y"], dict(hidden_size=256, linear_before_reset=1))], dict(x=f32(30, 8, 128)), dict(w=f32(1, 768, 128)*.1, r=f32(1, 768, 256)*.1, b=f32(1, 1536)*.1))
    model("mha", [("MatMul", ["q", "kt"], ["s"], {}), ("Mul", ["s", "c"], ["sc"], {}), ("Softmax", ["sc"], ["p"], dict(axis=-1)), ("MatMul", ["p", "v"], ["y"], {})], dict(q=f32(1, 8, 256, 64), kt=f32(1, 8, 64, 256), v=f32(1, 8, 256, 64)), dict(c=np.float32(.125)))
    model("qdq", [("QuantizeLinear", ["x", "s", "z"], ["q"], {}), ("DequantizeLinear", ["q", "s", "z"], ["y"], {})], dict(x=f32(512, 1024)), dict(s=np.float32(.05), z=np.uint8(128)))
    model("nonzero", [("NonZero", ["x"], ["y"], {})], dict(x=(RANDOM.random((512, 512))>.7).astype(np.float32)))
    model("unique_sort", [("TopK", ["x", "k"], ["v", "i"], dict(largest=0))], dict(x=f32(16, 4096)), dict(k=i64(4096)), outputs=("v", "i"))


if __name__ == "__main__":
    FOLDER, WANTED = sys.argv[1], sys.argv[2:]
    make()
