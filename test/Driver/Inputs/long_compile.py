"""What takes a while: a crash in the middle of it, and the progress bar. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: long_compile.py crash|bar|tune|choose FOLDER
"""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import onnx

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


def on_terminal(*options, until=None, columns=100, **environment):
    """What tc-compile writes to a terminal, up to a match of `until`."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    base = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    process = subprocess.Popen(["tc-compile", "model.onnx", "-o", "out.bin", "--jobs", "1", "--cpu", "x86-64-v3", *options], stderr=terminal,
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
    # It moves with the work in each phase, most of it in phase object, and never goes back.
    frames = [(len(filled), stage) for filled, stage in re.findall(r"\[\x1b\[32m(=*) *\x1b\[0m\] (\w+)", text)]
    fills = [filled for filled, _ in frames]
    assert fills == sorted(fills), frames
    of_object = [filled for filled, stage in frames if stage == "object"]
    assert of_object[-1] - of_object[0] >= 12 and len(set(of_object)) >= 6 and of_object[-1] >= 24, frames
    assert re.search(r"\r\x1b\[K\[\x1b\[32m=+ *\x1b\[0m\] object \d+/\d+, \d+ s", text), repr(text)
    assert re.search(r"\r\x1b\[Kout\.bin: [^\r\x1b]* s\r\n$", text), repr(text)  # erased before the line at the end
    on_terminal(until=r"\r\x1b\[K\[=+ *\] \w+", NO_COLOR="1")
    text = on_terminal(TERM="dumb")
    assert re.fullmatch(r"out\.bin: [^\r\x1b]* s\r\n", text), repr(text)


def tune():
    """Measuring shows which schedule of how many, and the best so far; a line is no longer than the terminal."""
    text = on_terminal("--mode", "max-autotune", "--dim", "n=64", NO_COLOR="1")
    assert re.search(r"\] tuning \d+/6 schedule \d+ of \d+, best \d+\.\d us: M\?tMul[^\r]*, \d+ s", text), repr(text)
    fills = [len(filled) for filled in re.findall(r"\[(=*) *\] ", text)]
    assert fills == sorted(fills) and len(set(fills)) >= 5, fills
    text = on_terminal("--mode", "max-autotune", "--dim", "n=64", columns=50, NO_COLOR="1")
    frames = re.findall(r"\r\x1b\[K(\[=* *\] [^\r]*)(?=\r)", text)
    assert frames and all(len(frame) < 50 for frame in frames) and any("..., " in frame for frame in frames), frames


def choose():
    """So does the search of --precision auto."""
    on_terminal("--precision", "auto:0.01", until=r"\[=* *\] precision", NO_COLOR="1")


os.makedirs(sys.argv[2], exist_ok=True)
os.chdir(sys.argv[2])
write_model("model.onnx", {"tune": 3, "bar": 48, "choose": 48}.get(sys.argv[1], 24))
if sys.argv[1] == "tune":
    # A name that would move the cursor.
    model = onnx.load("model.onnx")
    for node in model.graph.node:
        node.name = node.op_type.replace("a", "\x1b")
    onnx.save(model, "model.onnx")
{"crash": crash, "bar": bar, "tune": tune, "choose": choose}[sys.argv[1]]()
