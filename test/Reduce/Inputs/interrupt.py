"""interrupt.py MODEL: a search that is interrupted writes what it has found, and leaves nothing behind. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"""
import os
import signal
import subprocess
import sys
import time

os.makedirs("scratch")
command = ["tc-reduce", sys.argv[1], "-o", "stopped", "--jobs", "1", "-v", "--command", "sleep 0.3; grep -q Magic {}"]
search = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": os.path.abspath("scratch")})
# The first step that made it smaller has been told.
lines = [search.stderr.readline()]
time.sleep(0.5)
search.send_signal(signal.SIGINT)
lines += search.stderr.readlines()
assert search.wait(60) == 0, lines
assert "tries, interrupted, in" in lines[-1], lines
assert os.path.getsize("stopped.mlir") > 0 and os.path.getsize("stopped.onnx") > 0 and not os.listdir("scratch"), os.listdir(".")
