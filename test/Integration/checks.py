# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What custom_op.py and host_library.py share: checks that are counted, and commands."""
import subprocess

failures = 0


def check(what, ok, detail=""):
    global failures
    if not ok:
        failures += 1
        print(f"FAILED {what}: {detail}")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def verdict(name):
    """Prints it; the exit status."""
    print(f"{name}:", "ok" if failures == 0 else f"{failures} failures")
    return 1 if failures else 0
