# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces text in the code of an archive: replace.py ARCHIVE OUT OLD NEW"""
import sys, zipfile

good, out, old, new = sys.argv[1:]
found = 0
with zipfile.ZipFile(good) as archive, zipfile.ZipFile(out, "w") as changed:
    for info in archive.infolist():
        data = archive.read(info)
        if info.filename.endswith(".py"):
            found += data.count(old.encode())
            data = data.replace(old.encode(), new.encode())
        changed.writestr(info.filename, data)
assert found, f"no {old}"
