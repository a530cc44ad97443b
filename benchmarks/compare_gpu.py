#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc and torch.compile side by side on one GPU, in one run.

usage: compare_gpu.py ARTIFACTS OUT.json MODES [name ...]
  ARTIFACTS  folder with <name>.bin for the suite of ../test/zoo/gpu_zoo.py ('-' : torch only)
  MODES      of default,reduce-overhead,max-autotune,max-autotune-no-cudagraphs
  TC=dir     folder with tc-run (default: found on PATH)
gpu = microseconds of GPU time per run, by events, L2 flushed before each (triton.testing.do_bench); wall = one run to completion,
host-timed, warm.  TF32 is allowed for torch's float32; set TF32=1 where tc was compiled with --precision tf32.  The artifact must hold the
weights that gpu_zoo.make(name) seeds (export and compile from the same torch version); a line that is missing, fails or differs from
eager in exact f32 (by 2e-5 in f32, else by 2e-2 or 1.5 times eager's own error, relative to the largest value) counts as 0.001.
Last lines: for each clock the geometric mean and the worst of best torch mode / tc.
"""
import copy, gc, json, math, os, subprocess, sys, tempfile, time
import numpy as np
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "zoo"))
import torch, triton
import gpu_zoo

art, outf, modes = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
names = sys.argv[4:] or list(gpu_zoo.SUITE)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
work = tempfile.mkdtemp(prefix="tc-compare-")
TC = os.path.join(os.environ["TC"], "tc-run") if os.environ.get("TC") else "tc-run"

def aslist(out): return list(out) if isinstance(out, (tuple, list)) else [out]
def distance(got, want):
    """max|a-b| / max|b| over all outputs, or a sentence."""
    if len(got) != len(want): return f"{len(got)} outputs, expected {len(want)}"
    d = [float((g.float().cpu() - w.float().cpu()).abs().max() / (w.float().abs().max().cpu() + 1e-30)) for g, w in zip(got, want)]
    return max(d) if all(math.isfinite(v) for v in d) else "not finite"
def gpu(f): return triton.testing.do_bench(f, warmup=50, rep=200, return_mode="median") * 1e3
def wall(f, n=50):
    for _ in range(10): f()
    torch.cuda.synchronize(); ts = []
    for _ in range(n):
        t = time.perf_counter(); f(); torch.cuda.synchronize(); ts.append(time.perf_counter() - t)
    return sorted(ts)[n // 2] * 1e6

print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
rows, ratio = [], {"gpu": [], "wall": []}
for name in names:
    m, xs, kw = gpu_zoo.make(name)
    m = m.cuda(); xs = [x.cuda() for x in xs]; r = {"name": name}
    call = (lambda g: (lambda: g(**dict(zip(kw["names"], xs)), **kw.get("kw", {})))) if kw.get("names") else (lambda g: (lambda: g(*xs)))
    with torch.inference_mode():
        for mode in ["eager"] + modes:
            torch._dynamo.reset(); gc.collect(); torch.cuda.empty_cache()
            try:
                t = time.perf_counter()
                c = m if mode == "eager" else torch.compile(m, mode=mode)
                f = call(c); f(); torch.cuda.synchronize(); r[mode + "_compile_s"] = round(time.perf_counter() - t, 2)
                r[mode + "_gpu"], r[mode + "_wall"] = gpu(f), wall(f)
            except Exception as e: r[mode + "_error"] = repr(e)[:200]
        got = aslist(call(m)())
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # the reference: exact f32
        m32 = copy.deepcopy(m).float(); ys = [x.float() if x.is_floating_point() else x for x in xs]
        want = aslist(m32(**dict(zip(kw["names"], ys)), **kw.get("kw", {})) if kw.get("names") else m32(*ys)); del m32, ys
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        r["eager_err"] = distance(got, want); del got
    p = os.path.join(art, name + ".bin")
    if art != "-":
        np.savez(work + "/in.npz", **{f"input_{i}": (x.float() if x.is_floating_point() else x).cpu().numpy() for i, x in enumerate(xs)})
        q = subprocess.run([TC, p, "--device", "cuda:0", "--inputs", work + "/in.npz", "--outputs", work + "/out.npz"], capture_output=True, text=True)
        tol = 2e-5 if gpu_zoo.SUITE[name][2] == torch.float32 and not os.environ.get("TF32") else 2e-2
        if gpu_zoo.SUITE[name][2] != torch.float32 and isinstance(r["eager_err"], float): tol = max(tol, 1.5 * r["eager_err"])
        r["tc_err"] = "failed: " + q.stderr[-200:]
        if q.returncode == 0:
            z = np.load(work + "/out.npz")
            r["tc_err"] = distance([torch.from_numpy(np.asarray(z[k], dtype=np.float32)) for k in z.files], want)
    del m, xs, want; gc.collect(); torch.cuda.empty_cache()
    if art != "-":
        q = subprocess.run([TC, p, "--device", "cuda:0", "--random-inputs", "--benchmark=2", "--json", work + "/bench.json"], capture_output=True, text=True)
        if q.returncode == 0 and isinstance(r["tc_err"], float) and r["tc_err"] <= tol:
            j = json.load(open(work + "/bench.json")); r["tc_gpu"], r["tc_wall"] = j["gpu_us"], j["median_us"]
            for k in ratio:
                best = min(v for kk, v in r.items() if kk.endswith("_" + k) and not kk.startswith("tc"))
                ratio[k].append(best / r["tc_" + k]); r["best_over_tc_" + k] = ratio[k][-1]
        else:
            r["tc_error"] = q.stderr[-300:]
            for k in ratio: ratio[k].append(0.001)
    rows.append(r); json.dump(rows, open(outf, "w"), indent=1)
    print(name, {k: (round(v, 2) if isinstance(v, float) else v) for k, v in r.items() if k != "name"}, flush=True)
for k, v in ratio.items():
    if v: print(f"{k}: geomean best torch / tc = {math.exp(sum(map(math.log, v)) / len(v)):.3f}   worst = {min(v):.3f}   of {len(v)}")
