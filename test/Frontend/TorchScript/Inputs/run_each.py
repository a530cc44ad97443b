# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs each archive: run_each.py FOLDER OUT NAME[:RUNS]..."""
import os, subprocess, sys
import numpy as np

folder, out, names = sys.argv[1], sys.argv[2], sys.argv[3:]
WORDS = {"float32": "f32", "int64": "i64", "bool": "bool"}
os.makedirs(out, exist_ok=True)
for name in names:
    name, _, runs = name.partition(":")
    inputs = np.load(f"{folder}/{name}.in.npz")
    code = "xy"
    shapes = [f"--shape={code[i]}={','.join(map(str, inputs[key].shape))}:{WORDS[str(inputs[key].dtype)]}" for i, key in enumerate(inputs)]
    subprocess.run(["tc-compile", f"{folder}/{name}.pt", "-q", "-o", f"{out}/{name}.bin", *shapes], check=True)
    subprocess.run(["tc-run", f"{out}/{name}.bin", "--inputs", f"{folder}/{name}.in.npz", "--expect", f"{folder}/{name}.out.npz",
                    "--max-rel", "2e-5", "--runs", runs or "1"], check=True, stdout=subprocess.DEVNULL)
