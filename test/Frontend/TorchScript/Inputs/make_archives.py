#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the archives of this folder with their inputs and outputs: make_archives.py (PyTorch 2.15, numpy).

They are rewritten without debug information, so that they stay small; the code and the pickles are PyTorch's."""
import io, math, os, warnings, zipfile
from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, module, inputs=(), edit=None, want=None):
    """Without inputs, as of a model that is refused: the archive alone."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(f"{HERE}/{name}.pt", "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            path = name + info.filename[info.filename.index("/"):]
            if path.endswith(".debug_pkl") or path.endswith("serialization_id"):
                continue
            data = old.read(info)
            if edit:
                data = edit(path, data)
            kind = zipfile.ZIP_DEFLATED if "/code/" in path else zipfile.ZIP_STORED
            new.writestr(zipfile.ZipInfo(path), data, compress_type=kind)
    if not inputs:
        return
    outputs = want if want is not None else module(*[x.clone() for x in inputs])
    flat = outputs if isinstance(outputs, (tuple, list)) else outputs.values() if isinstance(outputs, dict) else [outputs]
    names = getattr(type(outputs), "_fields", None) or (list(outputs) if isinstance(outputs, dict) else None)
    np.savez(f"{HERE}/{name}.in.npz", **{f"input_{i}": x.numpy() for i, x in enumerate(inputs)})
    np.savez(f"{HERE}/{name}.out.npz", **{names[i] if names else f"output_{i}": x.numpy() for i, x in enumerate(flat)})


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))


class Conv(nn.Module):
    """Batch normalisation asks for the rank of its input, pooling has an optional list."""
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool, self.out = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2), nn.Linear(8, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.conv(x))))
        return self.out(self.drop(torch.flatten(x, 1)))


class Branches(nn.Module):
    """A training flag, an optional input, a string, a default, and an early return; a list over modules; breaks."""
    def __init__(self):
        super().__init__()
        self.mode, self.scale, self.words = "twice", 3, {"twice": 2.0, "thrice": 3.0}
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x, y: Optional[torch.Tensor] = None, flag: bool = True):
        if self.training:
            raise RuntimeError("not for training")
        if x.dim() != 2 or x.size(1) != 4:
            raise ValueError("expected [N, 4], got {}".format(x.size()))
        if y is not None:
            return x + y
        parts: List[torch.Tensor] = []
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i % 2 == 0:
                parts.append(x * self.words[self.mode])
        i = 0
        while flag:
            if i >= self.scale:
                break
            i += 1
        sizes = [s for s in [5, 2, 9]]
        sizes.sort()
        return torch.cat(parts, dim=1) * float(i) + len(self.mode) + sizes[-1] % 4


class Pair(NamedTuple):
    sum: torch.Tensor
    product: torch.Tensor


class Tuples(nn.Module):
    def forward(self, x, y):
        return Pair(x + y, x * y)


class Dicts(nn.Module):
    def forward(self, x) -> Dict[str, torch.Tensor]:
        result: Dict[str, torch.Tensor] = {}
        result["twice"] = x * 2.0
        result["relu"] = torch.relu(x)
        return result


class Sizes(nn.Module):
    """What a trace computes of sizes: tensors that hold them."""
    def forward(self, x):
        b, c, h, w = x.shape
        return x.reshape(b * c, h * w // 2, 2).permute(1, 0, 2)


class Divide(nn.Module):
    def forward(self, x, y):
        return torch.div(x, y)


class Form(Enum):
    LAST = "last"
    FIRST = "first"


class Notes(nn.Module):
    """An enum; attributes that a run sets: one before it reads it, one to what it is already."""
    def __init__(self):
        super().__init__()
        self.form, self.levels, self.scales = Form.FIRST, torch.jit.Attribute([], List[torch.Tensor]), [torch.full((4,), 2.0)]
        self.conv = nn.Conv1d(3, 3, 2, padding="same")

    def forward(self, x):
        self.scales = [s.to(x.dtype) for s in self.scales]
        self.levels = [self.conv(x)]
        self.levels.append(self.levels[0] * self.scales[0])
        if self.form == Form.LAST:
            return self.levels[0]
        return self.levels[1]


class Found(nn.Module):
    """What only traces hold of sizes and convolutions; a list of as many tensors as the mask has dims."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding="same")

    def forward(self, x):
        rows, columns = torch.where(x[0] > 0)
        return self.conv(x) * torch._shape_as_tensor(x)[2], rows, columns


class Attend(nn.Module):
    """In evaluation: fused attention with its weights, masks of queries and of keys, tensors of several lengths. The second input pads."""
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)
        self.encode = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4, batch_first=True), 1)
        self.causal = nn.Buffer(torch.ones(3, 3).triu(1).bool())

    def forward(self, x, y):
        a, weights = self.attend(x, x, x, key_padding_mask=y)
        b, each = self.attend(x, x, x, attn_mask=self.causal, average_attn_weights=False)
        return a, weights, b, each, self.encode(x, src_key_padding_mask=y)


class Projected(nn.Module):
    """Fused attention whose queries, keys and values are the same tensor or others."""
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x, y):
        a = self.attend
        return tuple(torch._native_multi_head_attention(*qkv, 4, 2, a.in_proj_weight, a.in_proj_bias, a.out_proj.weight, a.out_proj.bias, need_weights=False)[0]
                     for qkv in ((x, x, x), (x, y, y), (x, x, y), (x, y, x)))  # fmt: skip


class Unpacked(nn.Module):
    """As many names as were found when it was traced."""
    def forward(self, x):
        total = x.new_zeros(x.shape[1])
        for row in torch.nonzero(x.sum(1) > 0):
            total = total + x[row].squeeze(0)
        return total


class Counted(nn.Module):
    """Sizes that change in place, which a trace holds as tensors."""
    def forward(self, x):
        b = x.shape[0]
        y = x.reshape(b, -1)
        b *= 2
        return y, x.reshape(b, -1) * b


class Cached(nn.Module):
    """Numbers of attributes that it writes further down: a place in a cache, and what a branch and a range ask."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4))
        self.register_buffer("at", torch.tensor(0))

    def forward(self, x):
        self.cache[self.at] = x.sum()
        y = x + 1
        if torch.jit.is_scripting():
            if bool(self.at > 1):
                y = x * 2
            y = y + self.cache[:int(self.at) + 1].sum() + torch.full((2,), float(self.at))
        self.at.add_(1)
        return y, self.cache + 0


class Laid(nn.Module):
    """Buffers that do not lie row by row: what gives a copy of them, and what a view."""

    def __init__(self):
        super().__init__()
        self.register_buffer("turned", torch.arange(6.0).reshape(2, 3).t())
        self.register_buffer("apart", torch.arange(6.0)[::2])

    def forward(self, x):
        self.turned.contiguous().add_(x)
        self.turned.flatten().mul_(3)
        self.apart.contiguous().sub_(1)
        self.turned.t().reshape(-1).add_(10)
        return self.turned * 1, self.apart + x


class Shared(nn.Module):
    """Buffers that share memory, which forward writes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("whole", torch.zeros(2))
        self.register_buffer("part", self.whole[1:])

    def forward(self, x):
        self.part.add_(x)
        return self.whole + 0


class Counter(nn.Module):
    count: int

    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x):
        self.count += 1
        return x + self.count


class Kept(nn.Module):
    """Numbers and tensors that forward sets anew, while what held the old ones keeps them."""

    count: int
    share: float
    isLate: bool

    def __init__(self):
        super().__init__()
        self.count, self.share, self.isLate = 0, 1.0, False
        self.register_buffer("last", torch.zeros(2))
        self.register_buffer("runs", torch.zeros((), dtype=torch.long))
        self.norm, self.again = nn.BatchNorm1d(2, momentum=None), nn.BatchNorm1d(2)
        self.first, self.second = Counter(), Counter()

    def forward(self, x):
        before = self.last
        self.last = self.last * 0.5 + x[0]
        self.last += 1
        self.runs += 1
        self.count += 2
        self.share = self.share * 0.5
        late = self.isLate
        self.isLate = self.count > 3
        counted = self.first(self.second(self.first(x)))
        return before + 0, self.last * self.share, self.runs * self.count, torch.tensor(late), self.again(self.norm(x)), counted


class Backwards(nn.Module):
    """Lists from their ends; tensors of numbers, which forward writes."""

    def forward(self, x):
        parts = [x, x + 1, x + 2, x * 3]
        sizes = x.shape[::-1]
        made = torch.tensor([1.0, 2.0, 3.0])
        twice, other = made.mul_(2), torch.tensor([1.0, 2.0, 3.0])
        twice = twice + other
        made[0] = 7.0
        count = torch.tensor([x.size(0), 5])
        count += 1
        return (torch.cat(parts[::-1]), torch.cat(parts[-1:0:-2]), torch.cat(parts[1::-1]), x.reshape(sizes), x * twice, count,
                torch.tensor([len("abcdef"[4:0:-3])]))


class Packed(nn.Module):
    """Sequences of several lengths, in any order, through layers of two kinds."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(3, 2)

    def forward(self, x, y):
        packed = nn.utils.rnn.pack_padded_sequence(x, y, batch_first=True, enforce_sorted=False)
        w, (h, c) = self.lstm(packed)
        w, counts = nn.utils.rnn.pad_packed_sequence(w, batch_first=True, padding_value=-1.0, total_length=6)
        z, g = self.gru(packed)
        z, _ = nn.utils.rnn.pad_packed_sequence(z)
        return w, counts, h, c, z, g


class Parts(nn.Module):
    """Numbers of tensors that follow from operands, and sizes that a trace computes in floats."""

    def forward(self, x):
        small = F.interpolate(x, scale_factor=0.5, mode="area")
        a, b, c = torch.tensor_split(x[0], torch.tensor([1, 3]), dim=1)
        d, e = torch.tensor_split(x[0], torch.tensor(2), dim=1)
        f, g = torch.split_with_sizes_copy(x[0], [1, 4], dim=1)
        (at,) = torch.nonzero(x[0, 0, 0], as_tuple=True)
        up, along = torch.gradient(x[0])
        return small, a, b, c, d, e, f, g, at, up, along


class Chosen(nn.Module):
    """Tuples, lists and dicts of branches that data choose between, written to later by one of two names."""

    def early(self, x, yes: bool) -> Tuple[torch.Tensor, Tuple[torch.Tensor, int]]:
        if yes:
            return x, (x + 1, 3)
        return x * 2, (x * 3, 4)

    def lists(self, x, yes: bool):
        if yes:
            a = [x, x + 1]
            b = a
        else:
            a = [x + 2, x]
            b = a
        a[0] = a[0] * 100
        return b[0] + a[1]

    def dicts(self, x, yes: bool):
        if yes:
            d = {"a": x, "b": x + 1}
        else:
            d = {"a": x - 1, "b": x}
        d["c"] = d["a"] * d["b"]
        return d["c"]

    def forward(self, x):
        yes = bool(x.sum() > 0)
        a, (b, n) = self.early(x, yes)
        c, (d, m) = self.early(x, not yes)
        return (a, b * n, c, d * m, self.lists(x, yes), self.lists(x, not yes), self.dicts(x, yes), self.dicts(x, not yes))


class Counts(nn.Module):
    """Python's arithmetic of numbers that data decide, and math's of those that are known."""

    def forward(self, x):
        n, m = int(x[0, 0]), int(x[0, 1])
        known = math.fmod(7.5, 2.0) + math.atan2(1.0, 2.0) + math.copysign(3.0, -1.0) + math.gcd(12, 18) + math.factorial(5) + math.expm1(0.5)
        if math.isnan(known) or math.isinf(known) or not math.isfinite(known):
            known = 0.0
        return x * (n << 2), x + (m >> 1), x * (2**n), x - (n ^ m), x * (n % m), x * (float(n) % 0.7), x * known, x * (-n // m)


R = torch.randn
write("traced", torch.jit.trace(MLP().eval(), R(2, 4)), [R(2, 4)])
write("scripted", torch.jit.script(MLP().eval()), [R(2, 4)])
write("conv", torch.jit.script(Conv().eval()), [R(2, 1, 6, 6)])
write("frozen", torch.jit.freeze(torch.jit.script(Conv().eval())), [R(2, 1, 6, 6)])
write("branches", torch.jit.script(Branches().eval()), [R(2, 4)])
write("tuples", torch.jit.script(Tuples()), [R(2, 3), R(2, 3)])
write("dicts", torch.jit.script(Dicts()), [R(2, 3)])
write("sizes", torch.jit.trace(Sizes(), R(2, 3, 4, 5)), [R(2, 3, 4, 5)])
# Before version 4 integers were divided towards zero.
x, y = torch.tensor([7, -7, 8, -9]), torch.tensor([2, 2, -3, 4])
write("version3", torch.jit.script(Divide()), [x, y], want=torch.div(x, y, rounding_mode="trunc"),
      edit=lambda path, data: b"3\n" if path.endswith("/version") else data)
write("notes", torch.jit.script(Notes().eval()), [R(2, 3, 4)])
write("found", torch.jit.trace(Found().eval(), R(2, 2, 5), check_trace=False), [R(2, 2, 5)])
padding = torch.tensor([[False, False, True], [False, True, True]])
write("attend", torch.jit.trace(Attend().eval(), (R(2, 3, 4), padding), check_trace=False), [R(2, 3, 4), padding])
x = torch.tensor([[1.0, 2.0], [-3.0, 1.0], [0.5, 0.25]])
write("unpacked", torch.jit.trace(Unpacked(), x, check_trace=False), [x])
write("projected", torch.jit.trace(Projected().eval(), (R(2, 3, 4), R(2, 3, 4)), check_trace=False), [R(2, 3, 4), R(2, 3, 4)])
write("counted", torch.jit.trace(Counted(), R(2, 4), check_trace=False), [R(2, 4)])
for name, model, count in (("cached", Cached, 3), ("laid", Laid, 1)):
    x = torch.tensor([1.0, 2.0]) if name == "cached" else torch.tensor([2.0])
    for suffix, make in (("", torch.jit.script), ("_traced", lambda module: torch.jit.trace(module, x, check_trace=False))):
        # To trace is a run, which counts; so is each run that wants something.
        module, buffer = make(model()), io.BytesIO()
        torch.jit.save(module, buffer)
        again = torch.jit.load(io.BytesIO(buffer.getvalue()))
        write(name + suffix, module, [x], want=[again(x) for _ in range(count)][-1])
write("shared", torch.jit.script(Shared()))
x = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]])
module, buffer = torch.jit.script(Kept()), io.BytesIO()
torch.jit.save(module, buffer)
again = torch.jit.load(io.BytesIO(buffer.getvalue()))
write("kept", module, [x], want=[again(x) for _ in range(3)][-1])
write("backwards", torch.jit.script(Backwards()), [R(2, 3)])
x, lengths = R(3, 5, 3), torch.tensor([2, 5, 3])
write("packed", torch.jit.script(Packed().eval()), [x, lengths])
write("packed_traced", torch.jit.trace(Packed().eval(), (x, lengths), check_trace=False), [x, lengths])
write("parts", torch.jit.trace(Parts(), R(1, 2, 5), check_trace=False), [R(1, 2, 5)])
write("chosen", torch.jit.script(Chosen()), [R(2, 3)])
write("counts", torch.jit.script(Counts()), [torch.tensor([[3.0, 11.0], [2.0, 5.0]])])
