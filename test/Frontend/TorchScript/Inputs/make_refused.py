#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes refused_traced.pt and refused_scripted.pt, models of what tc lacks, with their debug information: make_refused.py (PyTorch 2.15)."""
import io, linecache, os, sys, warnings, zipfile
import torch

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = '''import torch

class Blend(torch.nn.Module):
    def forward(self, x):
        return torch.ops.lost.blend(x, x, 0.5)

class Traced(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.linear = Blend(), Blend(), torch.nn.Linear(4, 4)
    def forward(self, x):
        y = self.linear(self.first(x))
        a, b = torch.ops.lost.parts(torch.relu(y))
        return self.second(a) + torch.ops.lost.blend(b, y.view(y.shape[0], -1), 2.0)

class Scripted(torch.nn.Module):
    def forward(self, x):
        y = torch.ops.lost.blend(x, x, 0.5)
        if y.dim() == 3:
            y = y.flatten(1)
        total = torch.zeros(1)
        for i in range(int(x.sum())):
            total = total + torch.ops.lost.parts(x)[0].sum()
        while bool(total.sum() > 3):
            total.unsqueeze_(0)
        values = [y, x]
        return values[int(x.sum())], torch.conv2d(y, y), total
'''
linecache.cache["net.py"] = (len(SOURCE), None, SOURCE.splitlines(True), "net.py")
library = torch.library.Library("lost", "DEF")
library.define("blend(Tensor x, Tensor y, float alpha=1.0) -> Tensor")
library.define("parts(Tensor x) -> (Tensor, Tensor)")
library.impl("blend", lambda x, y, alpha=1.0: x + y * alpha, "CPU")
library.impl("parts", lambda x: (x + 1, x - 1), "CPU")
module = type(sys)("net")
module.__file__ = "net.py"
sys.modules["net"] = module
exec(compile(SOURCE, "net.py", "exec"), module.__dict__)


def write(name, model):
    buffer = io.BytesIO()
    torch.jit.save(model, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(f"{HERE}/{name}.pt", "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith(".debug_pkl"):
                # Strings keep their lengths: where PyTorch is installed is nobody's business.
                for place in (os.path.dirname(os.path.dirname(torch.__file__)), HERE):
                    data = data.replace(place.encode(), b"/usr".ljust(max(0, len(place) - 14), b"/") + b"/site-packages" if len(place) > 18 else b"/" * len(place))
            path = name + info.filename[info.filename.index("/"):]
            if not path.endswith("serialization_id"):
                kind = zipfile.ZIP_DEFLATED if "/code/" in path else zipfile.ZIP_STORED
                new.writestr(zipfile.ZipInfo(path), data, compress_type=kind)


torch.manual_seed(0)
write("refused_traced", torch.jit.trace(module.Traced().eval(), torch.zeros(2, 4)))
write("refused_scripted", torch.jit.script(module.Scripted().eval()))
