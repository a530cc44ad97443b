# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile one model in surroundings that differ in all that must not matter, and compare the bytes.

usage: same_bytes.py SOURCE
"""
import os
import shutil
import subprocess
import sys

MODELS = os.path.join(sys.argv[1], "models/digits")
HERE = os.getcwd()


def build(name, model, options=(), folder=".", environment=(), before=None, prefix=()):
    os.makedirs(folder, exist_ok=True)
    output = os.path.join(HERE, name + ".bin")
    command = [*prefix, "tc-compile", model, "-o", output, "-q", *options]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "TZ", "TC_"))}
    done = subprocess.run(command, cwd=folder, env={**inherited, **dict(environment)}, preexec_fn=before, capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    with open(output, "rb") as f:
        return f.read()


def narrow():
    """One core, and another umask."""
    os.umask(0o077)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


locales = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split() if shutil.which("locale") else []
# One whose numbers have commas, where there is one.
comma = next((name for name in locales if name.startswith(("de_", "fr_", "tr_"))), "tr_TR.UTF-8")
for file, options in (("model.onnx", []), ("model.onnx", ["--dim", "batch=1,1..64", "--precision", "bf16", "--cpu", "x86-64-v4"]), ("model.pt2", ["--cpu", "x86-64-v3"])):
    model = os.path.join(MODELS, file)
    shutil.copy(model, "same" + os.path.splitext(file)[1])
    copied = os.path.join(HERE, "same" + os.path.splitext(file)[1])
    first = build("first", model, options + ["--jobs", "1"])
    ways = {
        "locale": dict(environment={"LC_ALL": comma, "LANG": comma, "TZ": "Asia/Kolkata"}),
        "folder": dict(folder="elsewhere/deep", environment={"HOME": "/nonexistent", "TMPDIR": HERE, "USER": "nobody", "HOSTNAME": "other"}),
        "cores": dict(before=narrow),
        "copy": dict(folder="elsewhere"),
        "cache": dict(environment={"TC_CACHE_DIR": os.path.join(HERE, "cache")}),
        "cached": dict(environment={"TC_CACHE_DIR": os.path.join(HERE, "cache")}),
    }
    if shutil.which("setarch"):
        ways["layout"] = dict(prefix=["setarch", "-R"])
    for name, way in ways.items():
        where = copied if name == "copy" else model
        jobs = [] if name in ("cores", "cached") else ["--jobs", "3"]
        assert build("other", where, options + jobs, **way) == first, (file, options, name)
    # What a machine has beyond the CPUs that are asked for changes nothing either: nobody looks.
    for word in (HERE, sys.argv[1], "/tmp/", "nobody"):
        assert word.encode() not in first, (file, word)
print("equal")
