#!/usr/bin/env python3
"""Random prim functions: fusion and collapsing dims must not change their results.

  check_fuse.py [--bin FOLDER] [--functions N] [--seed S]

tc-opt and tc-interpret come from FOLDER, else from the path. Every function is interpreted as it is and after each pipeline; a difference, a verifier
error or a crash fails, with the function's text in the message. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse, os, random, subprocess, sys, tempfile
import numpy as np

PIPELINES = {
    "off": ["--tc-fuse=fuse=false", "--tc-verify-fuse"],
    "fuse": ["--tc-fuse", "--tc-verify-fuse"],
    "small": ["--tc-fuse=max-ops=3 max-buffers=4", "--tc-verify-fuse"],
    "collapse": ["--tc-fuse", "--tc-collapse-dims", "--tc-verify-fuse"],
}


def tensor(shape):
    return "tensor<" + "".join(f"{d}x" for d in shape) + "f32>"


class Function:
    def __init__(self, rng, number):
        self.rng, self.lines, self.values = rng, [], []
        self.name = f"f{number}"
        self.args = [rng.choice([(8, 4, 6), (8, 4, 6), (8, 24), (4, 6), (6,), (1, 8, 4, 6)]) for _ in range(rng.randint(1, 3))]
        self.values = [(f"%a{i}", s) for i, s in enumerate(self.args)]
        for _ in range(rng.randint(3, 24)):
            self.step()
        picks = [v for v in self.values if v[0].startswith("%v")]
        outs = rng.sample(picks, min(len(picks), rng.randint(1, 3)))
        if picks and picks[-1] not in outs:
            outs.append(picks[-1])
        self.outs = outs

    def add(self, text, shape):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.values.append((name, tuple(shape)))
        return name, tuple(shape)

    def pick(self, test=lambda shape: True):
        found = [v for v in self.values if test(v[1])]
        # Recent values more often, so that chains grow.
        return self.rng.choice(found[-6:] if self.rng.random() < 0.7 else found) if found else None

    def broadcast(self, value, shape):
        """value to shape by its trailing, leading or equal dims; None if neither fits."""
        name, own = value
        if own == shape:
            return name
        for dims in (range(len(own)), range(len(shape) - len(own), len(shape))):
            dims = list(dims)
            if len(own) <= len(shape) and all(0 <= d < len(shape) and own[i] in (1, shape[d]) for i, d in enumerate(dims)):
                return self.add(f"prim.broadcast {name} [{', '.join(map(str, dims))}] : {tensor(own)} -> {tensor(shape)}", shape)[0]
        return None

    def step(self):
        rng = self.rng
        kind = rng.choice(["unary", "unary", "binary", "binary", "binary", "reduce", "reduce", "transpose", "reshape", "slice",
                           "concat", "dot", "keep", "constant", "pad"])
        if kind == "unary":
            n, s = self.pick()
            self.add(f"prim.{rng.choice(['tanh', 'neg', 'abs', 'logistic', 'sin'])} {n} : {tensor(s)}", s)
        elif kind == "binary":
            a, b = self.pick(), self.pick()
            if len(a[1]) < len(b[1]):
                a, b = b, a
            other = self.broadcast(b, a[1])
            if other:
                self.add(f"prim.{rng.choice(['add', 'sub', 'max', 'mul'])} {a[0]}, {other} : {tensor(a[1])}", a[1])
        elif kind == "reduce":
            v = self.pick(lambda s: len(s) > 0)
            if v:
                rank = len(v[1])
                dims = sorted(rng.sample(range(rank), rng.randint(1, rank))) if rng.random() < 0.4 else [rank - 1]
                shape = [d for i, d in enumerate(v[1]) if i not in dims]
                self.add(f"prim.reduce {rng.choice(['max', 'sum'])} {v[0]} [{', '.join(map(str, dims))}] : {tensor(v[1])} -> {tensor(shape)}", shape)
        elif kind == "keep":
            v = self.pick(lambda s: 0 < len(s) < 4)
            if v:
                shape = list(v[1])
                shape.insert(rng.randint(0, len(shape)), 1)
                self.add(f"prim.reshape {v[0]} : {tensor(v[1])} -> {tensor(shape)}", shape)
        elif kind == "transpose":
            v = self.pick(lambda s: len(s) > 1)
            if v:
                p = list(range(len(v[1])))
                rng.shuffle(p)
                shape = [v[1][i] for i in p]
                self.add(f"prim.transpose {v[0]} [{', '.join(map(str, p))}] : {tensor(v[1])} -> {tensor(shape)}", shape)
        elif kind == "reshape":
            v = self.pick(lambda s: len(s) > 1)
            if v:
                i = rng.randrange(len(v[1]) - 1)
                shape = v[1][:i] + (v[1][i] * v[1][i + 1],) + v[1][i + 2:]
                self.add(f"prim.reshape {v[0]} : {tensor(v[1])} -> {tensor(shape)}", shape)
        elif kind == "slice":
            v = self.pick(lambda s: len(s) > 0 and max(s) > 1)
            if v:
                d = max(range(len(v[1])), key=lambda i: v[1][i])
                shape = list(v[1])
                start = rng.randint(0, shape[d] // 2)
                shape[d] -= shape[d] // 2
                starts = ", ".join(str(start) if i == d else "0" for i in range(len(shape)))
                self.add(f"prim.slice {v[0]} from affine_map<() -> ({starts})> step [{', '.join('1' * len(shape))}] : "
                         f"{tensor(v[1])} -> {tensor(shape)}", shape)
        elif kind == "concat":
            v = self.pick(lambda s: 0 < len(s) and np.prod(s) < 1000)
            w = v and self.pick(lambda s: s == v[1])
            if v:
                d = rng.randrange(len(v[1]))
                shape = list(v[1])
                shape[d] *= 2
                self.add(f"prim.concat {v[0]}, {w[0]} axis = {d} : ({tensor(v[1])}, {tensor(w[1])}) -> {tensor(shape)}", shape)
        elif kind == "pad":
            v = self.pick(lambda s: 0 < len(s) and np.prod(s) < 1000)
            if v:
                d = rng.randrange(len(v[1]))
                shape = list(v[1])
                shape[d] += 2
                lows = ", ".join("1" if i == d else "0" for i in range(len(shape)))
                c = self.add("prim.constant dense<0.5> : tensor<f32>", ())[0]
                self.add(f"prim.pad {v[0]}, {c} low affine_map<() -> ({lows})> : ({tensor(v[1])}, tensor<f32>) -> {tensor(shape)}", shape)
        elif kind == "constant":
            self.add("prim.constant dense<0.25> : tensor<f32>", ())
        elif kind == "dot":
            a = self.pick(lambda s: len(s) == 2)
            b = a and self.pick(lambda s: len(s) == 2 and s[1] == a[1][1])
            if b:
                shape = (a[1][0], b[1][0])
                self.add(f"prim.dot_general {a[0]}, {b[0]} batch [] x [] contract [1] x [1] : "
                         f"({tensor(a[1])}, {tensor(b[1])}) -> {tensor(shape)}", shape)

    def text(self):
        args = ", ".join(f"%a{i}: {tensor(s)}" for i, s in enumerate(self.args))
        types = ", ".join(tensor(s) for _, s in self.outs)
        names = ", ".join(n for n, _ in self.outs)
        return f"func.func @{self.name}({args}) -> ({types}) {{\n" + "\n".join(self.lines) + f"\n  return {names} : {types}\n}}\n"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="")
    parser.add_argument("--functions", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    functions = []
    while len(functions) < options.functions:
        f = Function(rng, len(functions))
        if f.outs:
            functions.append(f)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "plain.mlir")
        open(source, "w").write("\n".join(f.text() for f in functions))
        files = {"plain": source}
        for name, passes in PIPELINES.items():
            files[name] = os.path.join(folder, name + ".mlir")
            result = run(os.path.join(options.bin, "tc-opt"), source, *passes, "-o", files[name])
            if result.returncode:
                print(f"{name}: {result.stderr[-2000:]}")
                return 1
        data = np.random.default_rng(options.seed)
        for f in functions:
            inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
            np.savez(inputs, **{f"input_{i}": data.standard_normal(s).astype("f4") for i, s in enumerate(f.args)})
            expected = None
            for name, file in files.items():
                result = run(os.path.join(options.bin, "tc-interpret"), file, "--function", f.name, "--inputs", inputs,
                             "--outputs", outputs)
                got = dict(np.load(outputs)) if result.returncode == 0 else None
                if expected is None:
                    expected = got
                same = got is not None and all(np.allclose(expected[k], got[k], rtol=1e-4, atol=1e-4, equal_nan=True) for k in expected)
                if not same:
                    failures += 1
                    print(f"{f.name} differs after {name}: {result.stderr}\n{f.text()}")
    print(f"{len(functions)} functions, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
