#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write an archive of this folder with something changed: what other writers, machines and damage make of one.

usage: change.py IN OUT EDIT
"""
import json
import sys
import zipfile

import numpy as np

WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 12: 1, 13: 2}  # by the numbers of schema.py's ScalarType
SPARSE = b"\x80\x02ctorch._utils\n_rebuild_sparse_tensor\n)R."


def config(members, folder="weights"):
    name = next(name for name in members if f"/{folder}/" in name and name.endswith("_config.json"))
    return name, json.loads(members[name])


def change(members, edit):
    root = next(iter(members)).split("/")[0] + "/"
    if edit == "big":
        for folder in ("weights", "constants"):
            for entry in config(members, folder)[1]["config"].values():
                name, width = f"{root}data/{folder}/{entry['path_name']}", WIDTHS[entry["tensor_meta"]["dtype"]]
                if isinstance(members[name], bytes):  # once for all tensors of a storage
                    members[name] = bytearray(np.frombuffer(members[name], f"V{width}").view(f"u{width}").byteswap().tobytes())
        members[root + "byteorder"] = b"big"
    elif edit == "no-order":
        members[root + "byteorder"] = b"middle"
    elif edit == "missing":
        del members[root + "data/weights/weight_0"]
    elif edit == "short":
        members[root + "data/weights/weight_0"] = members[root + "data/weights/weight_0"][:100]
    elif edit == "compiled":
        for name in [name for name in members if "/models/" in name]:
            del members[name]
        members[root + "data/aotinductor/model/model.so"] = b"\x7fELF"
    elif edit == "no-program":
        for name in [name for name in members if "/models/" in name]:
            del members[name]
    elif edit == "renamed":  # the one model's name is anybody's
        for name in [name for name in members if "/model" in name]:
            members[name.replace("/model.json", "/net.v1.json").replace("/model_", "/net.v1_")] = members.pop(name)
    elif edit == "newer":
        name = max(name for name in members if "/models/" in name)
        members[name] = members[name].replace(b'"major": 8', b'"major": 9')
    elif edit == "sparse-pickle":
        members[root + "data/weights/weight_0"] = nested(SPARSE)
    elif edit == "foreign-pickle":
        members[root + "data/weights/weight_0"] = nested(b"\x80\x02cos\nsystem\n(X\x04\0\0\0truetR.")
    else:
        name, file = config(members)
        entry = file["config"]["weight"]
        meta = entry["tensor_meta"]
        {
            "stride": lambda: meta["strides"].__setitem__(0, {"as_int": 2**62}),
            "negative-stride": lambda: meta["strides"].__setitem__(0, {"as_int": -1}),
            "offset": lambda: meta.__setitem__("storage_offset", {"as_int": 1}),
            "sizes": lambda: meta.__setitem__("sizes", [{"as_int": 2**32}, {"as_int": 2**32}]),
            "repeat": lambda: meta.update(sizes=[{"as_int": 2**20}, {"as_int": 2**20}], strides=[{"as_int": 0}, {"as_int": 0}]),
            "repeat-often": lambda: (
                meta.update(sizes=[{"as_int": 2**24}], strides=[{"as_int": 0}]),
                file["config"].update({f"again_{i}": entry for i in range(20)}),
            ),
            "layout": lambda: meta.__setitem__("layout", 1),
            "dtype": lambda: meta.__setitem__("dtype", 9),
            "no-dtype": lambda: meta.__setitem__("dtype", 99),
            "object": lambda: entry.__setitem__("path_name", "custom_obj_0"),
        }[edit]()
        members[name] = json.dumps(file).encode()


def nested(pickle):
    import io

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle)
    return stream.getvalue()


def main():
    source, target, edit = sys.argv[1:]
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if edit not in ("deflate", "flip"):
        change(members, edit)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if edit == "deflate" else zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, bytes(data))
    if edit == "flip":
        with open(target, "r+b") as f:
            data = f.read()
            f.seek(data.index(members[next(name for name in members if name.endswith("/weight_0"))]))
            f.write(b"\xff")


if __name__ == "__main__":
    main()
