#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantised from data: tc --quantize int8 beside tc in f32 and ONNX Runtime with and without quantize_static, in one run.

usage: int8.py FOLDER [--bin build/bin] [--cpu native] [--threads 1] [--seconds 2] [--rounds 3] [--method minmax] [--budget R] [--table FILE.json]
               [--models resnet18 mobilenet_v2 squeezenet1_1 encoder vit]

Makes each model with seeded random weights as FOLDER/<name>/model.onnx, with data.npz, samples to calibrate with, and test.npz, others that
errors and times are of. Engines run in turns, each time in a process of its own: tc and tc int8 by tc-run, ort and ort int8 here; the time is the
median of the rounds' medians. Errors are max|out - ref| / max|ref| and, in brackets, of the root mean squares, against ONNX Runtime in f32.
Without AVX-512 VNNI or AVX-VNNI times of int8 say nothing: the script says whether this machine has either, and ONNX Runtime, whose sums of pairs
saturate then, gets weights of 7 bits (reduce_range), as its manual says. --seconds 0 only compares errors.
Needs an environment with requirements-bench.txt.
"""
import argparse
import json
import os
import subprocess
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import numpy as np

MODELS = {}
SAMPLES, BATCH = 8, 1
UNITS = [f for f in ("avx_vnni", "avx512_vnni", "amx_int8") if f in open("/proc/cpuinfo").read()]


def model(make):
    MODELS[make.__name__] = make
    return make


def vision(name, size=224):
    import torch
    import torchvision

    net = getattr(torchvision.models, name)(weights=None)
    # Statistics of norms as training leaves them: else random layers drown in what a range holds.
    net.train()
    with torch.no_grad():
        for _ in range(8):
            net(torch.randn(8, 3, size, size))
    return net, lambda n: [torch.randn(n, 3, size, size)]


@model
def resnet18():
    return vision("resnet18")


@model
def mobilenet_v2():
    return vision("mobilenet_v2")


@model
def squeezenet1_1():
    return vision("squeezenet1_1")


@model
def encoder():
    """Six layers of a BERT of 384, behind embeddings, for 128 tokens."""
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self, width=384, heads=12, depth=6, words=2048):
            super().__init__()
            self.words = torch.nn.Embedding(words, width)
            self.places = torch.nn.Parameter(torch.randn(128, width) * 0.5)
            layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, activation="gelu", dropout=0)
            self.layers = torch.nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
            self.last = torch.nn.Linear(width, 64)

        def forward(self, ids):
            return self.last(self.layers(self.words(ids) + self.places))

    return Encoder(), lambda n: [torch.randint(0, 2048, (n, 128))]


@model
def vit():
    import torch
    import torchvision

    net = torchvision.models.VisionTransformer(image_size=224, patch_size=16, num_layers=6, num_heads=6, hidden_dim=384, mlp_dim=1536)
    torch.nn.init.normal_(net.heads.head.weight, std=0.02)
    return net, lambda n: [torch.randn(n, 3, 224, 224)]


def export(name, folder):
    import torch

    torch.manual_seed(0)
    net, samples = MODELS[name]()
    net.eval()
    os.makedirs(folder, exist_ok=True)
    example = samples(BATCH)
    torch.onnx.export(net, tuple(example), f"{folder}/model.onnx", input_names=["x"], output_names=["y"], dynamo=True, external_data=False,
                      optimize=True, verbose=False)
    for file, count in (("data", SAMPLES), ("test", BATCH)):
        np.savez(f"{folder}/{file}.npz", x=samples(count)[0].numpy())


def quantize(folder, method):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.calibrate import CalibrationDataReader
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            x = np.load(f"{folder}/data.npz")["x"]
            self.left = iter({
  "x" : x [i:i + BATCH]} for i in range(0, len(x), BATCH))

        def get_next(self):
            return next(self.left, None)

    methods = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}
    quant_pre_process(f"{folder}/model.onnx", f"{folder}/prepared.onnx", skip_symbolic_shape=True)
    quantize_static(f"{folder}/prepared.onnx", f"{folder}/ort_int8.onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, calibrate_method=methods[method.split(":")[0]],
                    reduce_range=not UNITS)


def run_ort(path, folder, threads, seconds, out):
    """In a process of its own: writes the outputs, prints the median in microseconds."""
    import onnxruntime as rt

    options = rt.SessionOptions()
    options.intra_op_num_threads = threads
    session = rt.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = dict(np.load(f"{folder}/test.npz"))
    np.savez(out, *session.run(None, feed))
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - begin)
    print(json.dumps(float(np.median(times) * 1e6) if times else None))


def run_tc(args, artifact, folder, out):
    test = f"{folder}/test.npz"
    tool = [f"{args.bin}/tc-run", artifact, "--inputs", test, "--threads", str(args.threads)]
    subprocess.run([*tool, "--outputs", out], check=True, stdout=subprocess.DEVNULL)
    if not args.seconds:
        return None
    result = subprocess.run([*tool, f"--benchmark={args.seconds}", "--json", "-"], check=True, stdout=subprocess.PIPE, text=True)
    text = result.stdout[result.stdout.index("{"):]
    return json.loads(text)["median_us"]


def compare(out, reference):
    a, b = (list(np.load(f).values())[0].astype(np.float64) for f in (out, reference))
    return float(abs(a - b).max() / abs(b).max()), float(np.sqrt(((a - b)**2).mean() / (b**2).mean()))


def measure(name, args):
    folder = f"{args.folder}/{name}"
    if not os.path.exists(f"{folder}/test.npz"):
        export(name, folder)
    quantize(folder, args.method)
    tool = [f"{args.bin}/tc-compile", f"{folder}/model.onnx", "--cpu", args.cpu, "-q", "-o"]
    subprocess.run([*tool, f"{folder}/tc.bin"], check=True)
    begin = time.time()
    more = ["--quantize-budget", str(args.budget)] if args.budget else []
    subprocess.run([*tool, f"{folder}/tc_int8.bin", "--quantize", "int8", "--calibrate", f"{folder}/data.npz", "--calibrate-method", args.method,
                    *more, f"--explain={folder}/explain.json"], check=True)
    row = {"compile_s": time.time() - begin, "times": {}, "errors": {}}
    explain = json.load(open(f"{folder}/explain.json"))
    row["products"] = [explain["quantization"]["quantized"], len(explain["quantization"]["nodes"])]
    row["integer_kernels"] = sum("summed in i32" in k.get("product", "") for k in explain["kernels"])
    engines = ["ort", "ort int8", "tc", "tc int8"]
    for _ in range(args.rounds if args.seconds else 1):
        for engine in engines:
            out = f"{folder}/{engine.replace(' ', '_')}.out.npz"
            if engine.startswith("tc"):
                micros = run_tc(args, f"{folder}/{engine.replace(' ', '_')}.bin", folder, out)
            else:
                path = f"{folder}/{'model' if engine == 'ort' else 'ort_int8'}.onnx"
                worker = subprocess.run([sys.executable, __file__, "--worker", path, folder, str(args.threads), str(args.seconds), out],
                                        check=True, stdout=subprocess.PIPE, text=True)
                micros = json.loads(worker.stdout.splitlines()[-1])
            row["times"].setdefault(engine, []).append(micros)
    for engine in engines:
        row["errors"][engine] = compare(f"{folder}/{engine.replace(' ', '_')}.out.npz", f"{folder}/ort.out.npz")
        known = [t for t in row["times"][engine] if t]
        row["times"][engine] = float(np.median(known)) if known else None
    return row


def main():
    if sys.argv[1:2] == ["--worker"]:
        path, folder, threads, seconds, out = sys.argv[2:]
        return run_ort(path, folder, int(threads), float(seconds), out)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--method", default="minmax")
    parser.add_argument("--budget", type=float)
    parser.add_argument("--table")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    args = parser.parse_args()
    print("VNNI: " + (", ".join(UNITS) or "none, times of int8 say nothing"))
    rows = {}
    for name in args.models:
        row = rows[name] = measure(name, args)
        t, e = row["times"], row["errors"]
        print(f"{name}: {row['products'][0]} of {row['products'][1]} products in bytes, {row['integer_kernels']} kernels of integers")
        for engine in t:
            gain = f"{t[engine]:10.0f} us  {t[engine.split()[0]] / t[engine]:5.2f} of f32" if t[engine] else ""
            print(f"  {engine:9} error {e[engine][0]:.1e} ({e[engine][1]:.1e}) {gain}", flush=True)
    if args.table:
        json.dump(rows, open(args.table, "w"), indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
