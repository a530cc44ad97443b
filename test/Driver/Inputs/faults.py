#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile and run while the system refuses something.

usage: faults.py threads|memory|allowed_memory|allowed_time|disk|killed|crashes|modules FOLDER
"""
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

from long_model import write_model

NOBODY = 65534
COMPILE = ["tc-compile", "model.onnx", "-o", "out.bin", "--cpu", "x86-64-v3"]


def run(command, before=None, **options):
    done = subprocess.run(command, preexec_fn=before, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300, **options)
    assert done.returncode >= 0, (command, done.returncode, done.stderr)
    return done.returncode, done.stderr


def files():
    return sorted(os.listdir("."))


def threads():
    """Without a single thread more, everything is done by the one there is, with the same result."""
    run(COMPILE)
    shutil.move("out.bin", "expected.bin")
    os.chmod(".", 0o777)
    os.environ["TMPDIR"] = os.getcwd()

    def alone():
        # The limit does not hold for root, and counts all of the user's.
        if os.geteuid() == 0:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

    code, text = run(COMPILE + ["--jobs", "4"], alone)
    assert code == 0, (code, text)
    assert open("out.bin", "rb").read() == open("expected.bin", "rb").read()
    code, text = run(["tc-run", "out.bin", "--random-inputs", "--dim", "n=64", "--threads", "4"], alone, stdout=subprocess.DEVNULL)
    assert code == 0 and "only 1 of 4 threads could be made" in text, (code, text)


def memory():
    """With less and less memory: done, or exit code 5 and a sentence; nothing is left behind."""
    codes = set()
    before = files()
    for mebibytes in (2000, 700, 600, 560, 520, *range(480, 250, -10)):
        limit = mebibytes << 20

        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        if subprocess.run(["tc-compile", "--version"], preexec_fn=limited, capture_output=True).returncode:
            break  # not even the program fits, with what its libraries allocate before it begins
        code, text = run(COMPILE + ["--jobs", "2"], limited)
        codes.add(code)
        assert code in (0, 5), (mebibytes, code, text)
        assert code == 0 or re.search(r": error: .*memory", text), (mebibytes, text)
        if code == 0:
            os.remove("out.bin")
        assert files() == before, files()
    assert codes == {0, 5}, codes
    code, text = run(["tc-run", "--help"], stdout=subprocess.DEVNULL)
    assert code == 0


def allowed_memory():
    """--max-compile-memory is kept: done, or exit code 5 and a sentence; nothing is left behind."""
    codes = set()
    before = files()
    for mebibytes in (1, 40, 60, 70, 80, 90, 100, 150, 2000):
        code, text = run(COMPILE + ["--jobs", "2", "--max-compile-memory", f"{mebibytes}M"])
        codes.add(code)
        assert code in (0, 5), (mebibytes, code, text)
        assert code == 0 or text.startswith(f"model.onnx: error: the memory of --max-compile-memory {mebibytes}M is used up in phase "), (
            mebibytes,
            text,
        )
        if code == 0:
            os.remove("out.bin")
        assert files() == before, files()
    assert codes == {0, 5}, codes
    for wrong in ("0", "many", "5Q", "-1M"):
        code, text = run(COMPILE + ["--max-compile-memory=" + wrong])
        assert code == 1 and "is no size; give one such as 500M or 4G" in text, (wrong, code, text)


def allowed_time():
    """--max-compile-time is kept, also by what verifies; measuring stops before it, and what it found is used."""
    os.environ["TMPDIR"] = os.getcwd()
    before = files()
    start = time.monotonic()
    run(COMPILE)
    whole = time.monotonic() - start
    expected = open("out.bin", "rb").read()
    codes = set()
    for share in (0.01, 0.5, 0.8, 0.9, 1, 1.5, 20):
        for more in ([], ["--verify"]) if share > 0.9 else ([],):
            with open("out.bin", "wb") as f:
                f.write(b"old")
            seconds = f"{whole * share:.3f}"
            start = time.monotonic()
            code, text = run(COMPILE + ["--max-compile-time", seconds, *more])
            took = time.monotonic() - start
            codes.add(code)
            assert code in (0, 5) and (code == 5 or share > 0.4), (share, code, text)
            assert open("out.bin", "rb").read() == (b"old" if code else expected), (share, code)
            assert code == 0 or took < whole * share + 1, (share, took)
            assert code == 0 or f"model.onnx: error: the time of --max-compile-time {seconds} is over in phase " in text, text
            os.remove("out.bin")
            assert files() == before, (share, files())
    assert codes == {0, 5}, codes
    # To measure all takes eight times as long as to compile.
    tune = COMPILE + ["--dim", "n=32", "--mode", "max-autotune", "--tuning-db", "db.json", "--max-compile-time"]
    code, text = run(tune + [f"{5 * whole:.1f}"])
    assert code == 0 and f"--max-compile-time {5 * whole:.1f} left" in text and os.path.exists("out.bin"), (code, text)
    # What was measured in part is not kept, and the rest is measured another time.
    with open("db.json") as f:
        assert len(json.load(f)["records"]) < 12
    code, text = run(tune + ["2000"])
    assert code == 0 and "left" not in text, (code, text)
    for wrong in ("0", "soon", "-1", "nan", "inf", "1e300"):
        code, text = run(COMPILE + ["--max-compile-time=" + wrong])
        assert code == 1 and "is no time; give seconds, such as 30 or 0.5" in text, (wrong, code, text)


def disk():
    """A full disk, wherever something is printed or written."""
    os.symlink("/dev/full", "full.mlir")
    for command in (
        ["tc-compile", "model.onnx", "-o", "-", "--compile-to=prim"],
        ["tc-compile", "model.onnx", "-o", "-", "--compile-to=kernel"],
        ["tc-compile", "model.onnx", "--explain", "--cpu", "x86-64-v3"],
        ["tc-compile", "model.onnx", "--explain=-", "--cpu", "x86-64-v3"],
        ["tc-compile", "--help"],
        ["tc-compile", "--version"],
        ["tc-inspect", "--operators"],
        ["tc-inspect", "--operators=json"],
        ["tc-run", "--help"],
    ):
        with open("/dev/full", "w") as full:
            code, text = run(command, stdout=full)
        assert code == 1 and "standard output cannot be written" in text, (command, code, text)
    for command in (
        ["tc-compile", "model.onnx", "-o", "full.mlir", "--compile-to=prim"],
        ["tc-compile", "model.onnx", "--explain=full.mlir", "--cpu", "x86-64-v3"],
    ):
        code, text = run(command)
        assert code == 1 and "full.mlir: error: the file cannot be written" in text, (command, code, text)
    # A disk of 64 KiB.
    before = files()

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    code, text = run(["tc-compile", "model.onnx", "-o", "out.bin", "--compile-to=kernel"], small)
    assert code == 1 and "the file cannot be written: File too large" in text, (code, text)
    assert files() == before, files()


def killed():
    """Whenever a compile is ended, and however, its folder is as it was, or has the whole artifact."""
    start = time.monotonic()
    run(COMPILE)
    whole = time.monotonic() - start
    os.remove("out.bin")
    before = files()
    for number, how in enumerate([signal.SIGKILL, signal.SIGTERM, signal.SIGINT] * 4):
        process = subprocess.Popen(COMPILE, stderr=subprocess.DEVNULL)
        # Most of these in the last quarter, where files are written.
        time.sleep(whole * (0.3 if number < 3 else 0.75 + number / 40))
        process.send_signal(how)
        process.wait()
        if "out.bin" in files():
            run(["tc-inspect", "out.bin"], stdout=subprocess.DEVNULL)
            os.remove("out.bin")
        assert files() == before, (how, files())
    # An artifact that is replaced is the old or the new one.
    shutil.copy("model.onnx", "out.bin")
    code, text = run(COMPILE)
    assert code == 0 and run(["tc-inspect", "out.bin"], stdout=subprocess.DEVNULL)[0] == 0, text


def crashes():
    """All threads crash at once: one sentence, one reproducer, exit code 6."""
    libc = ctypes.CDLL(None, use_errno=True)
    tgkill = 234  # x86-64
    process = subprocess.Popen(COMPILE + ["-v", "--jobs", "4"], stderr=subprocess.PIPE, text=True)
    seen = ""
    for line in process.stderr:
        seen += line
        if line.startswith("fuse"):
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                libc.syscall(tgkill, process.pid, int(thread), signal.SIGSEGV)
            break
    seen += process.stderr.read()
    assert process.wait() == 6, (process.returncode, seen)
    assert len(re.findall("internal error: tc-compile crashed in phase", seen)) == 1, seen
    assert "note: the module before that phase is in out.bin.reproducer.mlir" in seen, seen


def modules():
    """Modules that are deep, empty or incomplete are the user's error."""
    deep = 200000
    for text, why in (
        ("", "the file is empty"),
        ("\n", "the module is empty"),
        ("module {}", "the module is empty"),
        ("module {", "expected operation name"),
        ("func.func private @f()", "has no function of phase"),
        ("module {" * deep + "}" * deep, "nested deeper than"),
        ("func.func private @f(" + "tuple<" * deep + ">" * deep + ")", "nested deeper than"),
        ("module attributes {a = " + "[" * deep + "]" * deep + "} {}", "nested deeper than"),
        ("(" * deep, "nested deeper than"),
        ("module {" * 400 + "}" * 400, "has no function of phase"),
    ):
        with open("m.mlir", "w") as f:
            f.write(text)
        code, said = run(["tc-compile", "m.mlir", "-o", "out.bin"])
        assert code == 1 and why in said and said.startswith("m.mlir: error: "), (text[:40], code, said)
        assert not os.path.exists("out.bin")


os.makedirs(sys.argv[2], exist_ok=True)
os.chdir(sys.argv[2])
write_model("model.onnx", 6)
globals()[sys.argv[1]]()
