#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes quantized.pt (traced), quantized_scripted.pt and quantized_frozen.pt, a network quantised by eager PyTorch, without debug information, with inputs and
outputs: make_quantized.py (PyTorch 2.15, numpy)."""
import io, os, warnings, zipfile
import numpy as np
import torch
import torch.ao.quantization as quantization

warnings.filterwarnings("ignore")
torch.manual_seed(0)
HERE = os.path.dirname(os.path.abspath(__file__))
torch.backends.quantized.engine = next(engine for engine in torch.backends.quantized.supported_engines if engine != "none")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.begin, self.end = quantization.QuantStub(), quantization.DeQuantStub()
        self.a = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU())
        self.b, self.pool, self.mean, self.out = torch.nn.Conv2d(8, 8, 1), torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(16, 5)
        self.sum, self.cat = torch.ao.nn.quantized.FloatFunctional(), torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.pool(self.a(self.begin(x)))
        y = self.sum.add(x, self.b(x))
        x = torch.flatten(self.mean(self.cat.cat([x, y], 1)), 1)
        return self.end(self.out(x))


model = Net().eval()
model.qconfig = quantization.get_default_qconfig("fbgemm")
quantization.fuse_modules(model, [["a.0", "a.1"]], inplace=True)
quantization.prepare(model, inplace=True)
for _ in range(4):
    model(torch.randn(2, 3, 8, 8))
quantization.convert(model, inplace=True)
x = torch.randn(2, 3, 8, 8)
for name, module in (("quantized", torch.jit.trace(model, x)), ("quantized_scripted", torch.jit.script(model)), ("quantized_frozen", torch.jit.freeze(torch.jit.script(model)))):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(f"{HERE}/{name}.pt", "w") as new:
        for info in old.infolist():
            path = name + info.filename[info.filename.index("/"):]
            if not path.endswith(("serialization_id", ".debug_pkl")):
                kind = zipfile.ZIP_DEFLATED if "/code/" in path else zipfile.ZIP_STORED
                new.writestr(zipfile.ZipInfo(path), old.read(info), compress_type=kind)
np.savez(f"{HERE}/quantized.in.npz", x=x.numpy())
np.savez(f"{HERE}/quantized.out.npz", output_0=model(x).detach().numpy())
