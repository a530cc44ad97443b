#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs whose custom operators write through views, by hand with PyTorch: undecomposed, after run_decompositions, and traced.
Each is compiled and compared with PyTorch; a wrong number fails, a refusal is counted.

usage: programs.py BIN LIBRARY [FIRST] [COUNT]
"""

import collections
import os
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
EXAMPLE = os.path.join(ROOT, "examples", "custom-op")
sys.path.insert(0, EXAMPLE)
import torch_operators  # noqa: E402, F401  registers them

warnings.filterwarnings("ignore")
torch.set_grad_enabled(False)
ops = torch.ops.example

VIEWS = {
    0: [lambda t: t],
    1: [lambda t: t[1:], lambda t: t[:-1], lambda t: t.unsqueeze(0), lambda t: t[::2], lambda t: t.view(-1, 1), lambda t: t[0]],
    2: [lambda t: t[1:], lambda t: t.t(), lambda t: t[0], lambda t: t[:, :1], lambda t: t.reshape(-1), lambda t: t.unsqueeze(1)],
    3: [lambda t: t.squeeze(1), lambda t: t.permute(2, 1, 0), lambda t: t[0], lambda t: t[-1], lambda t: t.transpose(0, 1), lambda t: t.chunk(2, 0)[0]],
}
STEPS = ("view", "view", "view", "bump", "accumulate", "from", "exchange", "add_", "new")


class Program(torch.nn.Module):
    """Steps on a pool of tensors, each on one of them and with numbers of its own."""

    def __init__(self, seed):
        super().__init__()
        r = random.Random(seed)
        self.steps = [(r.choice(STEPS), r.random(), r.random(), r.randint(0, 5)) for _ in range(r.randint(4, 12))]

    def forward(self, x, y):
        pool, outputs = [x, y + 0.5], []
        for kind, a, b, number in self.steps:
            t, u = pool[int(a * len(pool))], pool[int(b * len(pool))]
            # One memory is not given twice, but for two of its rows.
            isOther = u.shape == t.shape and u.untyped_storage()._cdata != t.untyped_storage()._cdata
            if kind == "view":
                view = VIEWS[min(t.dim(), 3)][number % len(VIEWS[min(t.dim(), 3)])](t)
                pool.append(view if view.numel() else t)
            elif kind == "bump" and t.dim():
                ops.bump(t, number + 1)
            elif kind == "accumulate":
                outputs.append(ops.accumulate(t * 1.5, t, 0.5))
            elif kind == "from" and isOther:
                outputs.append(ops.accumulate(u, t))
            elif kind == "exchange" and isOther:
                ops.exchange(t, u)
            elif kind == "exchange" and t.dim() and t.shape[0] >= 2:
                ops.exchange(t[0], t[1])
            elif kind == "add_":
                t.add_(b)
            elif kind == "new":
                pool.append(t * 2)
        # x itself is an output where it is written.
        return tuple(outputs) + tuple(t * 1 for t in pool)


def main(folder, bin_folder, library, first, count):
    path = lambda name: os.path.join(folder, name)
    found = collections.Counter()
    for seed in range(first, first + count):
        program = Program(seed).eval()
        generator = torch.Generator().manual_seed(seed)
        inputs = [torch.randn(3, 4, generator=generator) for _ in range(2)]
        given = [t.clone() for t in inputs]
        expected = {f"output_{i}": v.numpy() for i, v in enumerate(program(*given))}
        np.savez(path("in.npz"), x=inputs[0].numpy(), y=inputs[1].numpy())
        exported = torch.export.export(program, tuple(inputs))
        torch.export.save(exported, path("plain.pt2"))
        torch.export.save(exported.run_decompositions(), path("functional.pt2"))
        torch.jit.save(torch.jit.trace(program, tuple(t.clone() for t in inputs), check_trace=False), path("traced.pt"))
        for name in ("plain.pt2", "functional.pt2", "traced.pt"):
            command = [os.path.join(bin_folder, "tc-compile"), path(name), "-o", path("m.bin"), "--cpu", "x86-64-v3", "-q",
                       "--custom-op", os.path.join(EXAMPLE, "torch_operators.json")]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                found[name, "refused"] += 1
                print(f"{seed} {done.stderr.strip()}")
                continue
            command = [os.path.join(bin_folder, "tc-run"), path("m.bin"), "--inputs", path("in.npz"), "--outputs", path("out.npz"),
                       "--threads", str(1 + seed % 2), "--custom-op", library]
            done = subprocess.run(command, capture_output=True, text=True)
            got = dict(np.load(path("out.npz"))) if done.returncode == 0 else {}
            wanted = dict(expected)
            if "x.updated" in got or not torch.equal(given[0], inputs[0]):
                wanted["x.updated"] = given[0].numpy()
            right = got.keys() == wanted.keys() and all(np.allclose(got[k], v, rtol=1e-5, atol=1e-5) for k, v in wanted.items())
            found[name, "right" if right else "wrong"] += 1
            if not right:
                print(f"{seed} {name}: wrong {done.stderr.strip()}")
    print(dict(found))
    return any(what == "wrong" for _, what in found)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        sys.exit(main(work, sys.argv[1], sys.argv[2], *(int(n) for n in (sys.argv[3:] + ["0", "100"][len(sys.argv) - 3:]))))
