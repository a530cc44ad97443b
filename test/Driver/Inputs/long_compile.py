"""What takes a while: a crash in the middle of it, and the progress bar. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: long_compile.py crash|bar FOLDER
"""
import os
import pty
import re
import signal
import subprocess
import sys

from long_model import write_model


def crash():
    """A signal after phase fuse was done: exit code 6, the phase, the module before it."""
    process = subprocess.Popen(["tc-compile", "model.onnx", "-o", "out.bin", "-v", "--jobs", "1", "--cpu", "x86-64-v3"], stderr=subprocess.PIPE, text=True)
    seen = ""
    for line in process.stderr:
        seen += line
        if line.startswith("fuse"):
            process.send_signal(signal.SIGSEGV)
            break
    seen += process.stderr.read()
    code = process.wait()
    assert code == 6, (code, seen)
    crashed = re.search(r"model.onnx: error: internal error: tc-compile crashed in phase (\w+); this is a defect of tc", seen)
    assert crashed and crashed.group(1) in ("fuse", "schedule", "kernel", "host", "object", "artifact"), seen
    assert "model.onnx: note: the module before that phase is in out.bin.reproducer.mlir" in seen, seen
    assert not os.path.exists("out.bin")
    subprocess.run(["tc-compile", "out.bin.reproducer.mlir", "--compile-to=schedule", "-o", "again.mlir"], check=True)


def on_terminal(until=None, **environment):
    """What tc-compile writes to a terminal, up to a match of `until`."""
    main, terminal = pty.openpty()
    base = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    process = subprocess.Popen(["tc-compile", "model.onnx", "-o", "out.bin", "--jobs", "1", "--cpu", "x86-64-v3"], stderr=terminal,
                               env={**base, "TERM": "xterm", **environment})
    os.close(terminal)
    text = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:
            break
        if not part:
            break
        text += part
        if until and re.search(until, text.decode()):
            process.terminate()
            process.wait()
            return text.decode()
    assert process.wait() == 0 and not until, text
    return text.decode()


def bar():
    """A bar on a terminal, with colours or without; none on a dumb terminal; of it nothing is left."""
    text = on_terminal()
    assert re.search(r"\r\x1b\[K\[\x1b\[32m=+ *\x1b\[0m\] object \d+/\d+, \d+ s", text), repr(text)
    assert re.search(r"\r\x1b\[Kout\.bin: [^\r\x1b]* s\r\n$", text), repr(text)  # erased before the line at the end
    on_terminal(until=r"\r\x1b\[K\[=+ *\] \w+", NO_COLOR="1")
    text = on_terminal(TERM="dumb")
    assert re.fullmatch(r"out\.bin: [^\r\x1b]* s\r\n", text), repr(text)


os.makedirs(sys.argv[2], exist_ok=True)
os.chdir(sys.argv[2])
write_model("model.onnx", 24)
{"crash": crash, "bar": bar}[sys.argv[1]]()
