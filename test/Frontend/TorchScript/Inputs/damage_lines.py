# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages the debug information of an archive in many ways, and compiles: damage_lines.py ARCHIVE FOLDER"""
import io, pickle, random, re, subprocess, sys, zipfile

good, folder = sys.argv[1], sys.argv[2]
ENDLESS = ("FORMAT_WITH_STRING_TABLE", ("net.py", "x\n" * 5000), ((0, (([1] * 5000, 0, 2**62), 2**62, 2**62), 0),))
OTHERS = [b"", b"\x80\x02.", b"\x80\x02).", pickle.dumps(ENDLESS, 2), pickle.dumps((("a", 1), (0, ("x", None, -1), 3)), 2),
          pickle.dumps(((0, ("x\ny\n", "old.py", 7), 3, 4), (2, (("x\ny\n", "old.py", 7), 2, 4), 0)), 2),
          pickle.dumps(("FORMAT_WITH_STRING_TABLE", ("a\nb", 3), ((0, (([0, 1, 9], 0, 4), 0, 1), 0),)), 2)]


def run(edit):
    path = f"{folder}/damaged.pt"
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, edit(data) if info.filename.endswith(".debug_pkl") else data)
    result = subprocess.run(["tc-compile", path, "-q", "-o", f"{folder}/out.bin"], capture_output=True, text=True, errors="replace")
    errors = re.findall(r'error: node "([^"]*)"', result.stderr)
    assert result.returncode == 2 and errors == ["first/blend#1", "parts#4"], (result, errors)
    return result.stderr


for data in OTHERS:
    text = run(lambda _: data)
    assert ("old.py:8" in text) == (b"old.py" in data), text
assert "it stands at code/__torch__/net.py:27:21" in run(lambda _: b"")
random.seed(1)
for _ in range(25):
    def flip(data):
        data = bytearray(data[:random.choice([len(data), random.randrange(len(data))])])
        for _ in range(random.randrange(4)):
            if data:
                data[random.randrange(len(data))] = random.randrange(256)
        return bytes(data)
    run(flip)
