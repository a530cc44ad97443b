#!/usr/bin/env python3
"""tc-compile with a defect: it ends badly on a softmax of a product. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

HOW (crash, abort, hang) and TC_COMPILE, the real one, come from the environment."""
import os
import sys
import time

sys.path.insert(0, os.environ["INPUTS"])
import judge

if "--compile-to=import" in sys.argv:
    os.execv(os.environ["TC_COMPILE"], sys.argv)
if judge.PATTERNS["softmax-of-product"](judge.read(sys.argv[1])):
    if os.environ["HOW"] == "crash":
        print(f"{sys.argv[1]}: error: internal error: tc-compile crashed in phase kernel; this is a defect of tc", file=sys.stderr)
        sys.exit(6)
    if os.environ["HOW"] == "abort":
        os.abort()
    time.sleep(60)
