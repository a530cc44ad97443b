# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The container of samples: what make_container.py writes and run.py reads.

One xz stream: a line of JSON with the length of the index, the index (JSON), then blobs one behind the other. The index:

    blobs    [length, ...]
    samples  [{entry, dtype, sample, tolerances {dtype: {rtol, atol}}, random?, inputs, outputs, others?, moves?, pt2?, pt?, pt2_none?, pt_none?}]

inputs, outputs and others are lists of [dtype, shape, blob], in which a Python number has dtype "number" and its value as f64; pt2 and pt are lists of [member, blob]. Blobs that are alike are one.
Outputs of random operators have no values. `others` are outputs that count as right just as well, and `moves` how far from them is still right, for each output. pt2_none and pt_none say why
PyTorch itself makes no archive.
"""

import io
import json
import lzma
import struct
import zipfile


class Writer:
    def __init__(self):
        self.samples, self.blobs, self.numbers = [], [], {}

    def blob(self, data):
        number = self.numbers.setdefault(data, len(self.blobs))
        if number == len(self.blobs):
            self.blobs.append(data)
        return number

    def add(self, record):
        record = dict(record)
        for kind in ("inputs", "outputs", "others"):
            if kind in record:
                record[kind] = [[dtype, shape, self.blob(data)] for dtype, shape, data in record[kind]]
        for door in ("pt2", "pt"):
            if door in record:
                record[door] = [[name, self.blob(data)] for name, data in record[door]]
        self.samples.append(record)

    def describe(self):
        return f"{len(self.samples)} samples, {sum(map(len, self.blobs))} bytes in {len(self.blobs)} blobs"

    def write(self, path):
        # Text first, then numbers: alike lies beside alike.
        order = sorted(range(len(self.blobs)), key=lambda i: not is_text(self.blobs[i]))
        place = {old: new for new, old in enumerate(order)}
        for sample in self.samples:
            for kind in ("inputs", "outputs", "others", "pt2", "pt"):
                for item in sample.get(kind, ()):
                    item[-1] = place[item[-1]]
        index = json.dumps({"blobs": [len(self.blobs[i]) for i in order], "samples": self.samples}, separators=(",", ":")).encode()
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 64 << 20}]
        with lzma.open(path, "wb", filters=filters) as f:
            f.write(json.dumps(len(index)).encode() + b"\n" + index)
            for i in order:
                f.write(self.blobs[i])
        with open(path, "rb") as f:
            return f.seek(0, io.SEEK_END)


def is_text(data):
    return data[:1] in (b"{", b"c") or data[:6] == b"class "


class Container:
    def __init__(self, path):
        with lzma.open(path, "rb") as f:
            data = f.read()
        end = data.index(b"\n") + 1
        length = int(data[:end])
        index = json.loads(data[end : end + length])
        self.samples = index["samples"]
        self.data, self.starts, start = memoryview(data), [], end + length
        for size in index["blobs"]:
            self.starts.append((start, size))
            start += size

    def blob(self, number):
        start, size = self.starts[number]
        return self.data[start : start + size]

    def archive(self, sample, door):
        """The bytes of an archive as PyTorch writes it: records aligned to 64 bytes, code deflated."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, number in sample[door]:
                data = self.blob(number)
                info = zipfile.ZipInfo(name)
                info.compress_type = zipfile.ZIP_DEFLATED if "/code/" in name and len(data) > 200 else zipfile.ZIP_STORED
                # A local header has 30 bytes, the name and the extra field, which has 4 bytes of its own.
                pad = -(stream.tell() + 30 + len(name.encode()) + 4) % 64
                info.extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
                archive.writestr(info, bytes(data))
        return stream.getvalue()
