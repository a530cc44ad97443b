# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tc-compile says of archives with other code: errors.py ARCHIVE FOLDER

Each case replaces the body of forward, or a member, of an archive that is right."""
import os, re, subprocess, sys, zipfile

good, folder = sys.argv[1], sys.argv[2]
BODIES = {
    "fork": "def g():\n      return x\n    y = fork(g)\n    return y",
    "class": "y = __torch__.torch.classes.quantized.Conv2dPackedParamsBase\n    return x",
    "method": "return (self).missing(x, )",
    "attribute": "return self.missing",
    "variable": "return y",
    "operator": "return torch.no_such_operator(x)",
    "arguments": "return torch.relu(x, 1, 2)",
    "prim": "return ops.prim.rpc_async(x)",
    "constant": "return CONSTANTS.c7",
    "raise": 'ops.prim.RaiseException("never {}", "builtins.ValueError")\n    return x',
    "endless": "while True:\n      pass\n    return x",
    "recursion": "return (self).forward(x, )",
    "state": "part = self.a\n    part.weight = torch.cat([part.weight, part.weight])\n    return x",
    "branches of two ranks": "if bool(torch.gt(torch.sum(x), 0)):\n      y = torch.flatten(torch.unsqueeze(x, 0))\n    else:\n      y = torch.unsqueeze(x, 0)\n    return torch.add(y, torch.size(y)[0])",
    "in-place shape": "return torch.unsqueeze_(x, 0)",
    "strides": "return torch.add(x, torch.stride(x, 0))",
    "text": 'return "y"',
    "nothing": "return None",
    "index": "return [x][3]",
    "gradient": "return torch.grad([x], [x])",
    "huge": "return torch.add(x, torch.mul(9223372036854775807, 2))",
    "zero": "return torch.add(x, torch.floordiv(1, 0))",
    "list": "l = torch.mul([1], 100000000)\n    return x",
    "doubled list": "l = [1]\n    for i in range(60):\n      l = torch.add(l, l)\n    return x",
    "many lists": "for i in range(1000):\n      l = torch.mul([1], 1000000)\n    return x",
    "doubled text": "s = \"a\"\n    for i in range(60):\n      s = torch.add(s, s)\n    return x",
    "joined text": "s = \"a\"\n    for i in range(60):\n      s = torch.join(s, [s, s, s])\n    return x",
    "replaced text": "s = \"aa\"\n    for i in range(60):\n      s = torch.replace(s, \"a\", s)\n    return x",
    "dict": "d = annotate(Dict[int, int], {})\n    for i in range(1000000):\n      torch._set_item(d, i, i)\n    return x",
    "large result": "return torch.zeros([1000000, 1000000, 1000000])",
    "floats into integers": "y = torch.to(x, 4)\n    z = torch.add_(y, x)\n    return z",
    "a float into integers": "y = torch.to(x, 4)\n    z = torch.mul_(y, 1.5)\n    return z",
    "out of integers": "y = torch.to(x, 4)\n    z = torch.add(x, x, out=y)\n    return z",
    "integers into bools": "y = torch.gt(x, 0)\n    z = torch.add_(y, torch.to(x, 4))\n    return z",
    "out of floats": "y = torch.to(x, 7)\n    z = torch.gt(x, 0, out=y)\n    z = torch.add(y, x, out=y)\n    return z",
    "loop without a variable": "for in range(3):\n      pass\n    return x",
    "chunks": "y, z = torch.chunk(x, -1, 1)\n    return y",
    "types of a dict": "d = annotate(Dict[str], {})\n    return x",
    "range of a float": "y = torch._functional_sym_constrain_range(1.5, 0, 1, x)\n    return y",
    "raise behind a refusal": "y = torch.no_such_operator(x)\n    if torch.gt(torch.dim(y), 3):\n      ops.prim.RaiseException(_9, \"builtins.ValueError\")\n    else:\n      pass\n    return y",
    "return before a raise": "if bool(torch.gt(torch.sum(x), 0)):\n      return x\n      ops.prim.RaiseException(\"a\", \"b\")\n    else:\n      pass\n    return x",
    "nodes": "z = x\n    while True:\n      z = torch.relu(z)\n    return z",
}


def run(name, edit):
    path = f"{folder}/{name.replace(' ', '-')}.pt"
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            data = edit(info.filename.split("/", 1)[1], old.read(info))
            if data is not None:
                new.writestr(info.filename, data)
    result = subprocess.run(["tc-compile", path, "-q", "-o", f"{folder}/out.bin", "--shape", "x=2,4:f32"], capture_output=True, text=True)
    text = (result.stdout + result.stderr).replace(folder + "/", "").strip()
    # The mangled names that PyTorch counts up in one process are no part of what is tested.
    print(f"{name}: {result.returncode}: {re.sub(r'___torch_mangle_[0-9]+', 'MANGLED', text)}".rstrip())


for name, body in BODIES.items():
    def edit(member, data, body=body):
        if b"class MLP" not in data:
            return data
        head, _ = data.decode().split("-> Tensor:\n")
        return (head + "-> Tensor:\n    " + body + "\n").encode()
    run(name, edit)
run("syntax", lambda member, data: data.replace(b"return ", b"return ((") if b"class MLP" in data else data)
for kind in ("Optional", "List", "Tuple", "Dict", "Optional[Tensor, Tensor]"):
    run("input of type " + kind, lambda member, data: data.replace(b"x: Tensor", b"x: " + kind.encode()) if b"class MLP" in data else data)
run("no code", lambda member, data: None if member.startswith("code/") else data)
run("no version", lambda member, data: None if member.endswith("version") else data)
run("version 99", lambda member, data: b"99\n" if member.endswith("version") else data)
run("no weights", lambda member, data: None if member == "data/0" else data)
run("empty pickle", lambda member, data: b"\x80\x02)." if member == "data.pkl" else data)
