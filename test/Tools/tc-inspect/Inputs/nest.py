# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""nest.py ARTIFACT DEPTH: put the artifact into a copy of itself as that of another device, so often."""
import hashlib
import struct
import sys

path, depth = sys.argv[1], int(sys.argv[2])
HEADER, RECORD, ALIGN, ARTIFACT, CUDA = "<8sIIQQIIII32s", "<IIQQ32sQ", 4096, 8, 1


def put(outer, inner):
    magic, version, header_size, _, table_at, count, record_size, flags, reserved, _ = struct.unpack_from(HEADER, outer)
    assert record_size == struct.calcsize(RECORD) and table_at + (count + 1) * record_size <= ALIGN
    offset = -(-len(outer) // ALIGN) * ALIGN
    data = bytearray(outer.ljust(offset, b"\0") + inner)
    record = struct.pack(RECORD, ARTIFACT, CUDA, offset, len(inner), bytes(32), 0)
    table = bytes(data[table_at : table_at + count * record_size]) + record
    data[table_at : table_at + len(table)] = table
    struct.pack_into(HEADER, data, 0, magic, version, header_size, len(data), table_at, count + 1, record_size, flags, reserved, hashlib.sha256(table).digest())
    return bytes(data)


with open(path, "rb") as f:
    plain = f.read()
nested = plain
for _ in range(depth):
    nested = put(plain, nested)
with open(path, "wb") as f:
    f.write(nested)
