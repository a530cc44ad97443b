# Damaged ONNX files are refused or imported, and never crash: mutate.py MODEL_DIR WORK_DIR [COUNT [SEED]]
# Takes the .onnx files of MODEL_DIR, writes COUNT damaged copies of each, and imports them all.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import glob
import os
import random
import shutil
import subprocess
import sys

models, work = sys.argv[1], sys.argv[2]
count = int(sys.argv[3]) if len(sys.argv) > 3 else 20
rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 0)


def damage(data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        if not data:
            break
        at = rng.randrange(len(data))
        end = min(len(data), at + rng.choice([1, 2, 8, 64]))
        kind = rng.randrange(7)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            del data[at:end]
        elif kind == 3:
            data[at:at] = data[at:end]
        elif kind == 4:
            data[at:at] = bytes(rng.randrange(256) for _ in range(end - at))
        elif kind == 5 and rng.random() < 0.2:
            del data[at:]
        else:
            other = rng.randrange(len(data))
            data[at:end] = data[other:other + end - at]
    return bytes(data)


shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
files = []
for path in sorted(glob.glob(os.path.join(models, "*.onnx"))):
    with open(path, "rb") as f:
        data = f.read()
    for i in range(count):
        name = os.path.basename(path)[:-5] + f"-{i}.onnx"
        with open(os.path.join(work, name), "wb") as f:
            f.write(damage(data))
        files.append(name)

bad = 0
for begin in range(0, len(files), 200):
    batch = files[begin:begin + 200]
    done = subprocess.run(["tc-opt", "--import-onnx-each", *batch], cwd=work, capture_output=True, timeout=300)
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode or len(lines) != len(batch) or done.stderr:
        bad += 1
        print(f"exit {done.returncode} at {lines[-1] if lines else batch[0]}")
        print(done.stderr.decode(errors="replace")[:4000])
    for name, line in zip(batch, lines):
        if line != f"{name}: ok" and not line.startswith(f"{name}: {name}: error: "):
            bad += 1
            print("no sentence:", line)
        if "internal error" in line:
            bad += 1
            print(line)
print(f"{len(files)} files, {bad} problems")
sys.exit(bad != 0)
