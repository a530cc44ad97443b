# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks which libraries the named tools need, and the size of libtcrt.so beside them without its symbols.

usage: footprint.py tool...
"""
import os
import shutil
import subprocess
import sys
import tempfile

ALLOWED = ("linux-vdso.so", "libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "ld-linux-x86-64.so")
MOST_BYTES = 300 * 1000

for tool in sys.argv[1:]:
    listing = subprocess.run(["ldd", shutil.which(tool)], capture_output=True, text=True, check=True).stdout
    names = [os.path.basename(line.split()[0]) for line in listing.splitlines() if line.strip()]
    extra = [name for name in names if not name.startswith(ALLOWED)]
    if extra:
        sys.exit(f"{tool} needs {', '.join(extra)}")
library = os.path.join(os.path.dirname(shutil.which(sys.argv[1])), "..", "lib", "libtcrt.so")
with tempfile.TemporaryDirectory() as folder:
    stripped = os.path.join(folder, "libtcrt.so")
    subprocess.run(["strip", "-o", stripped, library], check=True)
    size = os.path.getsize(stripped)
if size > MOST_BYTES:
    sys.exit(f"libtcrt.so has {size} bytes, at most {MOST_BYTES} are allowed")
exported = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
names = [line.split()[-1] for line in exported.splitlines()]
foreign = [name for name in names if not name.startswith("tcrt_")]
if foreign:
    sys.exit(f"libtcrt.so exports {', '.join(foreign)}")
