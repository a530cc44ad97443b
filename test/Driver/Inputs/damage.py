"""damage.py flip|cut|header FILE. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import sys

with open(sys.argv[2], "rb") as f:
    data = bytearray(f.read())
if sys.argv[1] == "cut":
    del data[-1:]
else:
    data[4096 + 1000 if sys.argv[1] == "flip" else 20] ^= 1
with open(sys.argv[2], "wb") as f:
    f.write(data)
