#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small programs with views and in-place operators: each is right, or refused with a sentence.

usage: writes.py BIN [--count N] [--seed S] [--keep FOLDER] [--dynamic]        by hand, with PyTorch
       writes.py --make FOLDER                                                 test/Torch/writes, which CI compiles and runs

A program is a list of lines of Python over tensors t0, t1, ...; what it returns are all of them, as they are at the end. It runs eagerly, and
through torch.export and tc.
"""
import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile

import numpy
import torch


# of the first dim, where it is dynamic: that of 1 makes views of what are copies else.
OTHER_SIZES = (1, 2, 5)


class Program:
    """Lines are added one by one and run at once, so that each fits the shapes that are there."""

    def __init__(self, rng, dynamic):
        self.rng, self.dynamic = rng, dynamic
        self.inputs = [torch.randn(rng.choice([(4,), (3, 4), (4, 4), (2, 3, 4), (6, 2)]), generator=torch.Generator().manual_seed(rng.randrange(1 << 30)))]
        self.lines, self.scope, self.count = [], {"torch": torch, "x": self.inputs[0].clone()}, 0
        self.add("x * 1")
        for _ in range(rng.randrange(4, 14)):
            self.step()

    def names(self):
        return [n for n in self.scope if n[0] == "t" and n[1:].isdigit()]

    def run(self, line):
        trial = {k: v for k, v in self.scope.items()}
        before = {n: trial[n].clone() for n in self.names()}
        try:
            exec(line, trial)  # noqa: S102
        except (RuntimeError, IndexError, ValueError, TypeError):
            for n, v in before.items():
                try:
                    self.scope[n].copy_(v)
                except RuntimeError:
                    pass
            return False
        self.lines.append(line)
        self.scope = trial
        return True

    def add(self, expression):
        ok = self.run(f"t{self.count} = {expression}")
        self.count += ok
        return ok

    def some(self):
        return self.rng.choice(self.names()[-6:])

    def step(self):
        r, n = self.rng, self.some()
        t = self.scope[n]
        rank = t.dim()
        dim = r.randrange(-rank, rank) if rank else 0
        size = t.size(dim) if rank else 1
        view = [
            f"{n}.select({dim}, {r.randrange(-size, size) if size else 0})",
            f"{n}[{r.randrange(0, size + 1)}:{r.choice(['', r.randrange(-size, size + 1)])}:{r.choice([1, 1, 2, 3])}]",
            f"{n}.narrow({dim}, {r.randrange(0, size + 1)}, {r.randrange(0, size + 1)})",
            f"{n}.transpose({dim}, {r.randrange(-rank, rank) if rank else 0})",
            f"{n}.permute({sorted(range(rank), key=lambda _: r.random())})",
            f"{n}.view(-1)",
            f"{n}.reshape(-1)",
            f"{n}.flatten()",
            f"{n}.reshape({list(t.shape)[::-1]})",
            f"{n}.unsqueeze({dim})",
            f"{n}.squeeze()",
            f"{n}.contiguous()",
            f"{n}.detach()",
            f"{n}.t()",
            f"{n}.diagonal({r.randrange(-1, 2)})",
            f"{n}.chunk(2, {dim})[{r.randrange(2)}]",
            f"{n}.split({r.randrange(1, 3)}, {dim})[0]",
            f"{n}.unbind({dim})[0]",
            f"{n}.expand_as({n})",
            f"{n}.view_as({n})",
            f"{n}.movedim({dim}, 0)",
            f"{n}.to(torch.float32)",
            f"torch.nn.functional.dropout({n}, 0.5, False)",
            f"{n}.as_strided((2, 2), (2, 1))",
        ]
        other = self.some()
        number = r.choice([2, -1, 0.5, 3])
        write = [
            f"{n}.add_({number})",
            f"{n}.mul_({number})",
            f"{n}.relu_()",
            f"{n}.neg_()",
            f"{n}.fill_({number})",
            f"{n}.zero_()",
            f"{n}.clamp_(min=-0.5)",
            f"{n}.add_({other}, alpha={number})",
            f"{n}.mul_({other})",
            f"{n}.copy_({other})",
            f"{n}.copy_({other}.sum())",
            f"{n}.masked_fill_({n} > 0, {number})",
            f"{n}[{r.randrange(0, size) if size else 0}] = {number}",
            f"{n}[..., 0] += {number}",
            f"{n}[1:] *= {number}",
            f"{n}[{n} > 0.3] = {number}",
            f"{n}.sigmoid_()",
            f"torch.add({other}, {number}, out={n})",
            f"torch.mul({other}, {n}.clone(), out={n})",
            f"{n}.t_()",
            f"{n}.unsqueeze_(0)",
            f"{n}.index_fill_(0, torch.tensor([0]), {number})",
        ]
        fresh = [f"{n} + 1", f"{n}.clone()", f"{n} * {other}", f"{n}.sum()", f"torch.zeros_like({n})"]
        kind = r.random()
        if kind < 0.42:
            self.add(r.choice(view))
        elif kind < 0.9:
            self.run(r.choice(write))
        else:
            self.add(r.choice(fresh))

    def source(self):
        names = self.names()
        body = "".join(f"        {line}\n" for line in self.lines)
        return f"class M(torch.nn.Module):\n    def forward(self, x):\n{body}        return ({', '.join(names)},)\n"

    def outputs(self):
        scope = {"torch": torch}
        exec(self.source(), scope)  # noqa: S102
        model = scope["M"]()
        return model, [o.detach().clone() for o in model(self.inputs[0].clone())]


class Handful(torch.nn.Module):
    """One of each kind, for CI."""

    def forward(self, x, i):
        a = x.clone()  # a view of a view, and one made before the write
        before = a[:, 1]
        a.transpose(0, 1)[1:4:2].mul_(3)
        b = x + 1  # the base, with a view that is read later
        row = b[-1]
        b.relu_().add_(x, alpha=2)
        c = x * 2  # pieces
        first, second = c.chunk(2, 1)
        second.copy_(first)
        c.unbind(0)[2].fill_(7)
        c.split([1, 3])[1].neg_()
        d = x[:, :4].clone()  # diagonals
        d.diagonal().add_(10)
        d.diagonal(-1)[1:].zero_()
        e = x * 1  # reshape: a name of contiguous tensors, a copy of others
        e.reshape(-1)[5] = 50
        e.t().reshape(-1).zero_()
        e.contiguous().sigmoid_()
        f = x.clone()  # by mask and by index
        f[f > 0.5] = -1
        f[i, 1] = x[0, :2]
        f[..., 0] += 4
        g = torch.zeros(4, 6)  # out=, which converts
        torch.add(x, 1, out=g)
        h = x.clone()  # the tensor becomes a view of what it was
        old = h.view(2, 12)
        h.t_().unsqueeze_(0)
        h.mul_(2)
        k = torch.arange(6)  # integers stay integers
        k[1::2] += 10
        k.div_(2, rounding_mode="floor")
        k[2] = x[0, 0] * 100
        s = torch.zeros(3, 4)  # its own elements in memory
        s.as_strided((2, 2), (5, 2), 1).copy_(x[:2, :2])
        m = torch.nn.functional.dropout(s, 0.5, False)  # the tensor itself
        m.sub_(1)
        return before, a, row, b, c, first, d, e, f, g, h, old, k, s


def make(folder):
    generator = torch.Generator().manual_seed(7)
    inputs = (torch.randn(4, 6, generator=generator), torch.tensor([3, 1]))
    want = Handful()(*inputs)
    exported = torch.export.export(Handful(), inputs)
    for node in exported.graph.nodes:
        node.meta.pop("stack_trace", None)  # it names the folders of whoever makes it
    torch.export.save(exported, os.path.join(folder, "model.pt2"))
    numpy.savez_compressed(os.path.join(folder, "inputs.npz"), x=inputs[0].numpy(), i=inputs[1].numpy())
    numpy.savez_compressed(os.path.join(folder, "outputs.npz"), **{f"output_{n}": o.numpy() for n, o in enumerate(want)})


def check(program, tools, folder):
    """A word, and more about it."""
    model, want = program.outputs()
    dims = {0: torch.export.Dim.AUTO} if program.dynamic else None
    try:
        exported = torch.export.export(model, tuple(program.inputs), dynamic_shapes=(dims,) if dims else None)
    except Exception as e:  # noqa: BLE001: PyTorch raises what it likes
        return "not exported", str(e).split("\n")[0][:100]
    path = os.path.join(folder, "m")
    torch.export.save(exported, path + ".pt2")
    done = subprocess.run([tools + "/tc-compile", path + ".pt2", "-o", path + ".bin", "--cpu", "x86-64-v3"], capture_output=True, text=True)
    if done.returncode:
        return ("refused" if done.returncode > 0 and "error: " in done.stderr else "CRASH"), done.stderr.split("error: ")[-1].strip().split("\n")[0]
    sets = [(program.inputs[0], want)]
    for size in OTHER_SIZES if program.dynamic else ():
        other = torch.randn(size, *program.inputs[0].shape[1:], generator=torch.Generator().manual_seed(size))
        try:
            sets.append((other, [o.detach().clone() for o in model(other.clone())]))
        except Exception:  # noqa: BLE001, S112: of this size the program does not run
            continue
    guarded = 0
    for x, outputs in sets:
        numpy.savez(path + "_in.npz", x=x.numpy())
        numpy.savez(path + "_out.npz", **{f"output_{i}": o.numpy() for i, o in enumerate(outputs)})
        done = subprocess.run(
            [tools + "/tc-run", path + ".bin", "--inputs", path + "_in.npz", "--expect", path + "_out.npz", "--max-rel", "2e-5"], capture_output=True, text=True
        )
        if done.returncode == 4 and x is not program.inputs[0] and "error: " in done.stderr:
            guarded += 1
        elif done.returncode:
            return "WRONG", f"{tuple(x.shape)}: {(done.stdout + done.stderr).strip()[-300:]}"
    return "right", f"{guarded} of {len(sets) - 1} other sizes guarded against" if guarded else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tools", nargs="?")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep")
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--make", metavar="FOLDER")
    options = parser.parse_args()
    if options.make:
        return make(options.make)
    found, reasons = collections.Counter(), collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        program = Program(random.Random(seed), options.dynamic)
        with tempfile.TemporaryDirectory() as folder:
            if options.keep:
                folder = os.path.join(options.keep, str(seed))
                os.makedirs(folder, exist_ok=True)
            try:
                word, more = check(program, options.tools, folder)
            except Exception as e:  # noqa: BLE001: the program itself does not run twice
                word, more = "no program", str(e).split("\n")[0][:100]
        found[word] += 1
        if more and word in ("right", "refused", "not exported", "no program"):
            reasons[word + ": " + more] += 1
        if word in ("WRONG", "CRASH"):
            print(f"--- {word}, seed {seed}: {more}\n{program.source()}", flush=True)
    for reason, times in reasons.most_common(40):
        print(f"{times:5} {reason}")
    print(dict(found))
    return 1 if found["WRONG"] or found["CRASH"] else 0


if __name__ == "__main__":
    sys.exit(main())
