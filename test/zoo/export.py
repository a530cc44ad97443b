# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Export a PyTorch module to every format that tc-compile reads, with reference inputs and outputs.

Each model gets a folder  OUT/<name>/  holding
  model.onnx        torch.export-based ONNX exporter (weights inside; over 1.5 GB: model.onnx.data beside it)
  model_ts.onnx     TorchScript-based ONNX exporter (older, still common graph style)
  model.pt          TorchScript archive (torch.jit.trace)
  model.pt2         torch.export archive
  inputs.npz        arrays input_0, input_1, ... in positional order
  outputs.npz       arrays output_0, ... computed by eager PyTorch in float64 where possible, else in the model's dtype
                    (both .npz empty where the inputs exceed 40 M elements: such models are for timing)
  meta.json         formats written, shapes, dtypes, parameter count, errors met while exporting
Weights are random but seeded; the arithmetic, shapes and graphs are those of the real architectures.
"""
import json, os, sys, time, traceback, warnings, copy
import numpy as np
import torch

warnings.filterwarnings("ignore")


def _flat(o):
    if isinstance(o, torch.Tensor):
        return [o]
    if o is None or isinstance(o, (int, float, str, bool)):
        return []
    if isinstance(o, dict) or hasattr(o, "to_tuple"):
        o = list(o.values())
    out = []
    for x in o:
        out += _flat(x)
    return out


class Flat(torch.nn.Module):
    """Positional tensors in, flat tuple of tensors out."""

    def __init__(self, m, names=None, kw=None):
        super().__init__()
        self.m, self.names, self.kw = m, names, kw or {}

    def forward(self, *xs):
        if self.names:
            o = self.m(**dict(zip(self.names, xs)), **self.kw)
        else:
            o = self.m(*xs, **self.kw)
        o = _flat(o)
        return o[0] if len(o) == 1 else tuple(o)


def export(out, name, module, inputs, names=None, kw=None, formats=("onnx", "onnx_ts", "pt", "pt2"), dynamic=None, opset=None, dim_max=4096):
    d = os.path.join(out, name)
    os.makedirs(d, exist_ok=True)
    if os.path.exists(os.path.join(d, "meta.json")):
        return
    t0 = time.time()
    m = Flat(module, names, kw).eval()
    xs = tuple(inputs)
    meta = {"name": name, "errors": {}, "formats": [], "inputs": [[list(x.shape), str(x.dtype)] for x in xs]}
    big_inputs = sum(x.numel() for x in xs) > 40e6 or name.startswith("attention_4k")  # for timing: no stored data
    with torch.no_grad():
        if big_inputs:
            ref = []
            meta["reference"] = "none"
        else:
            ref = _flat(m(*xs))
            try:
                m64 = copy.deepcopy(m).double()
                low = (torch.float32, torch.bfloat16, torch.float16)
                r64 = _flat(m64(*[x.double() if x.dtype in low else x for x in xs]))
                ref = [b.float() if a.dtype in low else b for a, b in zip(ref, r64)]
                meta["reference"] = "float64"
            except Exception:  # a module with hard-coded dtypes
                meta["reference"] = "model dtype"
            sizes = [float(r.abs().max()) for r in ref if r.is_floating_point() and r.numel()]
            if sizes and not 1e-2 < max(sizes) < 1e6:
                raise ValueError(f"{name}: outputs of size {max(sizes):.2g} test nothing")
    data = [] if big_inputs else xs
    meta["outputs"] = [[list(x.shape), str(x.dtype)] for x in ref]
    meta["parameters"] = sum(p.numel() for p in m.parameters())
    meta["dynamic"] = dynamic
    npf = lambda t: t.detach().float().numpy() if t.dtype == torch.bfloat16 else t.detach().numpy()
    np.savez(os.path.join(d, "inputs.npz"), **{f"input_{i}": npf(x) for i, x in enumerate(data)})
    np.savez(os.path.join(d, "outputs.npz"), **{f"output_{i}": npf(x) for i, x in enumerate(ref)})
    inn = names or [f"input_{i}" for i in range(len(xs))]
    outn = [f"output_{i}" for i in range(max(1, len(ref)))]
    dyn_shapes = None
    if dynamic:  # dynamic: per input {dim: name}
        dims = {}
        dyn_shapes = (tuple({k: dims.setdefault(v, torch.export.Dim(v, min=1, max=dim_max)) for k, v in (dynamic[i] or {}).items()} or None
                            for i in range(len(xs))),)

    def attempt(fmt, fn):
        if fmt not in formats:
            return
        try:
            with torch.no_grad():
                fn()
            meta["formats"].append(fmt)
        except Exception as e:
            meta["errors"][fmt] = (type(e).__name__ + ": " + str(e))[:400]

    big = meta["parameters"] * 4 > 1.5e9
    attempt("onnx", lambda: torch.onnx.export(m, xs, os.path.join(d, "model.onnx"), input_names=inn, output_names=outn,
            dynamo=True, external_data=big, dynamic_shapes=dyn_shapes, opset_version=opset, verbose=False))
    axes = {inn[i]: dict(dynamic[i]) for i in range(len(xs)) if dynamic and dynamic[i]} if dynamic else None
    attempt("onnx_ts", lambda: torch.onnx.export(m, xs, os.path.join(d, "model_ts.onnx"), input_names=inn, output_names=outn,
            dynamo=False, dynamic_axes=axes, opset_version=17))
    attempt("pt", lambda: torch.jit.save(torch.jit.trace(m, xs, check_trace=False), os.path.join(d, "model.pt")))
    attempt("pt2", lambda: torch.export.save(torch.export.export(m, xs, dynamic_shapes=dyn_shapes), os.path.join(d, "model.pt2")))
    meta["seconds"] = round(time.time() - t0, 1)
    json.dump(meta, open(os.path.join(d, "meta.json"), "w"), indent=1)
    print(f"{name:24s} {meta['parameters']/1e6:8.2f} M  {meta['formats']}  {list(meta['errors'])}  {meta['seconds']} s", flush=True)


def run(models, argv):
    out = argv[1]
    want = argv[2:]
    for name, make in models.items():
        if want and name not in want:
            continue
        torch.manual_seed(0)
        try:
            r = make()
            export(out, name, *r[:2], **(r[2] if len(r) > 2 else {}))
        except Exception:
            print(name, "FAILED"); traceback.print_exc(limit=3)
