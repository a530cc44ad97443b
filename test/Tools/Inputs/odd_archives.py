#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write .npz archives that are not what they say to a folder: members that share bytes, an array that is larger than its header
says, one that no input has; and one that is right, with what a program y = 2x + (1, 2, 3, 4) makes of it."""
import io
import struct
import sys
import zipfile

import numpy as np

folder = sys.argv[1]


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(name, members):
    with zipfile.ZipFile(f"{folder}/{name}.npz", "w", zipfile.ZIP_DEFLATED) as z:
        for member, data in members.items():
            z.writestr(member + ".npy", data)


x = np.arange(8, dtype=np.float32).reshape(2, 4)
archive("good", {"x": npy(x)})
y = 2 * x + np.array([1, 2, 3, 4], np.float32)
archive("more", {"y": npy(y), "p": npy(y[y > 0]), "unasked": b"\0" * 1000})
archive("other", {"x": npy(x), "other": b"\0" * 1000})
archive("larger", {"x": npy(x) + b"\0" * (100 * 2**20 - len(npy(x)))})
archive("overlap", {"x": npy(x), "b": npy(x[0])})
with open(f"{folder}/overlap.npz", "r+b") as f:
    data = f.read()
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    f.seek(second + 16)
    f.write(data[first + 16 : first + 28])  # checksum and sizes
    f.seek(second + 42)
    f.write(struct.pack("<I", 0))  # where the first one begins
