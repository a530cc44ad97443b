#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hostile models: an honest exit code and a sentence, within limits of time and memory, and nothing left behind.

usage: hostile.py BIN [CASE ...] [--keep DIR] [--list]

models.py has the cases, each with the exit codes that tc-compile may give. A refusal must be a sentence that names the
file, and must leave no file. One line per case: seconds, memory (largest of tc-compile and its children), exit code.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time


from models import CASES

ADDRESS_SPACE = 8 << 30


def call(command, seconds, folder):
    """Exit code (None: it took too long), standard error, seconds, gigabytes."""
    errors = os.path.join(folder, "stderr")
    with open(errors, "wb") as stderr:
        started = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
                                 cwd=folder, start_new_session=True,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE,) * 2))
        code = None
        # Twice the limit, so that a line says by how much it was missed.
        while time.monotonic() - started < 2 * seconds:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.005)
        else:
            os.killpg(child.pid, 9)
            done, status, usage = os.wait4(child.pid, 0)
        child.returncode = 0 if code is None else code
        spent = time.monotonic() - started
    with open(errors, "rb") as f:
        text = f.read().decode(errors="replace")
    os.remove(errors)
    return code, text, spent, usage.ru_maxrss / 2**20


def check_run(binaries, case, folder):
    """What is wrong with a run of the artifact."""
    command = [os.path.join(binaries, "tc-run"), "model.bin", *case.arguments]
    code, text, _, _ = call([*command, "--random-inputs=0"], case.seconds, folder)
    if code not in case.run:
        return [f"tc-run gives {code}, allowed are {case.run}: {text.strip()[:200]}"]
    return []


def check(binaries, name, folder):
    case = CASES[name]
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.write())
    command = [os.path.join(binaries, "tc-compile"), "model.onnx", "-o", "model.bin", *case.flags]
    code, text, seconds, gigabytes = call(command, case.seconds, folder)
    wrong = []
    if code is None:
        wrong.append("it does not end")
    elif code not in case.codes:
        wrong.append(f"exit code {code}, allowed are {case.codes}: {text.strip()[:300]}")
    elif code != 0:
        wrong += [f"no sentence: {text[:200]!r}"] * ("model.onnx: error: " not in text)
        wrong += [f"the sentence does not say {word!r}: {text.strip()[:300]}" for word in case.says if word not in text]
        wrong += ["the sentence is longer than 2,000 characters"] * (len(text) > 2000)
    left = set(os.listdir(folder)) - {"model.onnx"}
    if left != ({"model.bin"} if code == 0 else set()):
        wrong.append(f"it leaves {sorted(left)}")
    if seconds > case.seconds:
        wrong.append(f"it takes more than {case.seconds} s")
    if gigabytes > case.gigabytes:
        wrong.append(f"it takes more than {case.gigabytes} GB")
    print(f"{name:32} {seconds:6.2f} s {gigabytes:6.2f} GB  exit {code}", flush=True)
    if code == 0 and case.run and not wrong:
        wrong += check_run(binaries, case, folder)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--keep")
    options = parser.parse_args()
    binaries = os.path.abspath(options.binaries)
    failures = 0
    for name in options.cases or CASES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = temporary
            if options.keep:
                folder = os.path.join(options.keep, name)
                os.makedirs(folder)
            for what in check(binaries, name, folder):
                failures += 1
                print(f"FAILED {name}: {what}", flush=True)
    print("hostile:", "ok" if failures == 0 else f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
