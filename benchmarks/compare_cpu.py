#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc and its CPU peers side by side on a zoo folder, in one run: ONNX Runtime, OpenVINO, eager, Inductor (frozen), IREE.

usage: compare_cpu.py ZOO OUT.json THREADS [name ...]
Each engine lives in a process of its own (one that crashes counts as failed) and waits on its standard input between rounds.
  TC=dir          folder with tc-compile and tc-run (engine "tc" is left out where unset)
  PEERS="ort openvino eager inductor iree"   BUDGET=3 (seconds of timing per engine and round)   ROUNDS=2 (best round counts)
Each engine sees the same model.onnx (eager and Inductor: model.pt2), the same inputs.npz and as many threads; err is
max|out-ref| / max|ref|; a peer that is wrong (over 1e-3) does not count, a model that tc fails or gets wrong (over TOL, 2e-5)
counts as 0.001.  Prints per model the median microseconds and best peer / tc; last lines: geometric mean and worst ratio.
Peers: pip install onnxruntime openvino iree-base-compiler[onnx] iree-base-runtime torch
"""
import json, os, subprocess, sys, time, warnings, tempfile
warnings.filterwarnings("ignore")
WORKER = sys.argv[1] == "--worker"
if WORKER: engine, folder, T = sys.argv[2], sys.argv[3], int(sys.argv[4])
else:
    zoo, outf, T = sys.argv[1], sys.argv[2], int(sys.argv[3])
    names = sys.argv[4:] or sorted(os.listdir(zoo))
os.environ["OMP_NUM_THREADS"] = str(T)
os.environ["TORCHINDUCTOR_FREEZING"] = "1"
import numpy as np
TC = os.environ.get("TC")
PEERS = (["tc"] if TC else []) + os.environ.get("PEERS", "ort openvino eager inductor iree").split()
BUDGET = float(os.environ.get("BUDGET", "3"))
ROUNDS = int(os.environ.get("ROUNDS", "2"))

def timeit(f):
    f(); t0 = time.perf_counter(); f(); one = time.perf_counter() - t0
    n = max(5, min(20000, int(BUDGET / max(one, 1e-6))))
    for _ in range(min(n, 5)): f()
    ts = []
    for _ in range(n):
        t0 = time.perf_counter(); f(); ts.append(time.perf_counter() - t0)
    return float(np.median(ts) * 1e6)

def err(out, ref):
    """max|out-ref| / max|ref| over all outputs, or a sentence that says why they can't be compared."""
    if len(out) != len(ref): return f"{len(out)} outputs, expected {len(ref)}"
    e = 0.0
    for o, r in zip(out, ref):
        o = np.asarray(o, dtype=np.float64); r = np.asarray(r, dtype=np.float64)
        if o.shape != r.shape: return f"shape {o.shape} for {r.shape}"
        if not np.array_equal(np.isnan(o), np.isnan(r)): return "NaN differs"
        inf = np.isinf(r)
        if not np.array_equal(np.isinf(o), inf) or not np.array_equal(np.sign(o[inf]), np.sign(r[inf])): return "infinity differs"
        f = np.isfinite(r)
        if f.any(): e = max(e, float(np.abs(o[f] - r[f]).max() / (np.abs(r[f]).max() + 1e-30)))
    return e

def ort(d, xs):
    import onnxruntime as rt
    so = rt.SessionOptions(); so.intra_op_num_threads = T; so.inter_op_num_threads = 1
    t0 = time.time(); s = rt.InferenceSession(os.path.join(d, "model.onnx"), so, providers=["CPUExecutionProvider"]); c = time.time() - t0
    feed = {i.name: x for i, x in zip(s.get_inputs(), xs)}
    return c, s.run(None, feed), lambda: s.run(None, feed)

def openvino(d, xs):
    import openvino as ov
    core = ov.Core(); t0 = time.time()
    m = core.compile_model(os.path.join(d, "model.onnx"), "CPU", {"INFERENCE_NUM_THREADS": T, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    c = time.time() - t0; r = m.create_infer_request()
    for i, x in enumerate(xs): r.set_input_tensor(i, ov.Tensor(x))
    r.infer()
    return c, [np.array(r.get_output_tensor(i).data) for i in range(len(m.outputs))], lambda: r.infer()

def load_ep(d):
    import torch
    torch.set_num_threads(T)
    return torch.export.load(os.path.join(d, "model.pt2")).module() if os.path.exists(os.path.join(d, "model.pt2")) else torch.jit.load(os.path.join(d, "model.pt"))

def eager(d, xs):
    import torch
    m = load_ep(d); tx = [torch.from_numpy(x) for x in xs]
    def f():
        with torch.no_grad(): return m(*tx)
    o = f(); o = o if isinstance(o, (tuple, list)) else [o]
    return 0.0, [x.numpy() for x in o], f

def inductor(d, xs):
    import torch, torch._inductor.config as ic
    ic.freezing = True
    torch._dynamo.reset()
    m = load_ep(d); tx = [torch.from_numpy(x) for x in xs]
    cm = torch.compile(m, mode=os.environ.get("TMODE") or None)
    def f():
        with torch.no_grad(): return cm(*tx)
    t0 = time.time(); o = f(); c = time.time() - t0
    o = o if isinstance(o, (tuple, list)) else [o]
    return c, [x.numpy() for x in o], f

def iree(d, xs):
    import iree.runtime as ireert
    td = tempfile.mkdtemp(); src = os.path.join(td, "m.mlir"); vm = os.path.join(td, "m.vmfb"); t0 = time.time()
    b = os.path.dirname(sys.executable)
    subprocess.run([b + "/iree-import-onnx", os.path.join(d, "model.onnx"), "-o", src, "--opset-version", "20"], check=True, capture_output=True, timeout=300)
    subprocess.run([b + "/iree-compile", src, "-o", vm, "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", "--iree-llvmcpu-fail-on-large-vector=false", "--iree-llvmcpu-stack-allocation-limit=1048576"], check=True, capture_output=True, timeout=600)
    c = time.time() - t0
    cfg = (os.environ.setdefault("IREE_TASK_TOPOLOGY_GROUP_COUNT", str(T)), ireert.Config("local-sync" if T == 1 else "local-task"))[1]
    ctx = ireert.SystemContext(config=cfg)
    ctx.add_vm_module(ireert.VmModule.mmap(ctx.instance, vm))
    mod = [m for n, m in ctx.modules.items() if n not in ("hal",)][-1]
    fns = mod.vm_module.function_names; fn = mod[[n for n in fns if not n.startswith("__") and not n.endswith("$async")][0]]
    dx = [ireert.asdevicearray(cfg.device, x) for x in xs]
    def f():
        o = fn(*dx); o = o if isinstance(o, (tuple, list)) else [o]
        return [x.to_host() for x in o]
    return c, f(), f

def tc(d, xs):
    td = tempfile.mkdtemp(); b = os.path.join(td, "m.bin"); t0 = time.time()
    subprocess.run([TC + "/tc-compile", os.path.join(d, "model.onnx"), "-o", b, "--cpu", "native", *os.environ.get("TC_FLAGS", "").split()],
                   check=True, capture_output=True, timeout=600)
    c = time.time() - t0
    run = [TC + "/tc-run", b, "--inputs", d + "/inputs.npz", "--threads", str(T)]
    subprocess.run(run + ["--outputs", td + "/o.npz"], check=True, capture_output=True, timeout=600)
    z = np.load(td + "/o.npz"); o = [z[f"output_{i}"] if f"output_{i}" in z else z[z.files[i]] for i in range(len(z.files))]
    def timed():
        subprocess.run(run + [f"--benchmark={BUDGET}", "--json", td + "/b.json"], check=True, capture_output=True, timeout=600)
        return json.load(open(td + "/b.json"))["median_us"]
    timed.self_timed = True
    return c, o, timed

if WORKER:  # prints one JSON line when ready, then one per line read
    out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)  # an engine's own prints go to stderr
    say = lambda x: (out.write(json.dumps(x) + "\n"), out.flush())
    try:
        zi, zo = np.load(folder + "/inputs.npz"), np.load(folder + "/outputs.npz")
        xs = [zi[f"input_{i}"] for i in range(len(zi.files))]; ref = [zo[f"output_{i}"] for i in range(len(zo.files))]
        c, o, f = globals()[engine](folder, xs)
        say({"compile_s": round(c, 2), "err": err(o, ref)})
        for _ in sys.stdin: say({"us": f() if hasattr(f, "self_timed") else timeit(f)})
    except subprocess.CalledProcessError as e: say({"fail": e.stderr.decode(errors="replace")[-300:]})
    except Exception as e: say({"fail": (type(e).__name__ + ": " + str(e))[:300]})
    out.flush(); os._exit(0)


class Engine:
    def __init__(s, name, folder):
        s.p = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--worker", name, folder, str(T)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        s.r = {"us": float("inf")}; s.read()
    def read(s):
        line = s.p.stdout.readline()
        got = json.loads(line) if line else {"fail": f"died, status {s.p.wait()}"}
        if "us" in got: got["us"] = min(got["us"], s.r["us"])
        s.r.update(got)
        if "fail" in s.r: s.r.pop("us", None)
    def round(s):
        if "fail" in s.r: return
        try: s.p.stdin.write("go\n"); s.p.stdin.flush(); s.read()
        except OSError: s.r = {"fail": "died"}
    def close(s):
        try: s.p.stdin.close(); s.p.wait(20)
        except Exception: s.p.kill()


res = json.load(open(outf)) if os.path.exists(outf) else {}
ratios, ort_ratios, failed = [], [], []
TOL = float(os.environ.get("TOL", "2e-5"))
for n in names:
    d = os.path.join(zoo, n)
    if not os.path.exists(d + "/model.onnx") or not np.load(d + "/inputs.npz").files: continue
    engines = {p: Engine(p, d) for p in PEERS}
    for _ in range(ROUNDS):
        for e in engines.values(): e.round()
    for e in engines.values(): e.close()
    r = res.setdefault(n, {})[f"t{T}"] = {p: e.r for p, e in engines.items()}
    good = {p: v["us"] for p, v in r.items() if p != "tc" and "us" in v and isinstance(v["err"], float) and v["err"] <= 1e-3}
    best = min(good.values(), default=float("nan"))
    note = ""
    if TC:
        t = r.get("tc", {})
        ok = "us" in t and isinstance(t["err"], float) and t["err"] <= TOL
        ratio = best / t["us"] if ok and good else (1.0 if ok else 0.001)
        if not ok: failed.append(n)
        ratios.append(ratio); note = f"best peer / tc = {ratio:.2f}"
        if "ort" in good: ort_ratios.append(good["ort"] / t["us"] if ok else 0.001)
    print(n, T, {p: (round(v["us"], 1), v["compile_s"], float("%.2g" % v["err"]) if isinstance(v["err"], float) else v["err"]) if "us" in v
                 else v["fail"][:80] for p, v in r.items()}, note, flush=True)
    if TC: r["best_peer_over_tc"] = ratio
    json.dump(res, open(outf, "w"), indent=1)
geo = lambda v: float(np.exp(np.mean(np.log(v)))) if v else float("nan")
if ratios:
    print(f"ORT / tc: geomean = {geo(ort_ratios):.3f}   worst = {min(ort_ratios, default=float('nan')):.3f}   failed or wrong: {failed}")
    print(f"best peer / tc: geomean = {geo(ratios):.3f}   worst = {min(ratios):.3f}   models = {len(ratios)}")
    sys.exit(1 if failed else 0)
