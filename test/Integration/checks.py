# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of this folder share: checks that are counted, commands, and the command line of those for GPUs."""
import os
import shutil
import subprocess
import sys

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


def main_of_cuda(name, main):
    """Runs main(BIN, FOLDER): the command line is BIN [--fake FOLDER], None without. Not where nothing compiles for GPUs."""
    if not shutil.which("ptxas") and not os.access("/usr/local/cuda/bin/ptxas", os.X_OK):
        print(f"{name}: not run: there is no ptxas")
        sys.exit(0)
    main(sys.argv[1], sys.argv[sys.argv.index("--fake") + 1] if "--fake" in sys.argv else None)
    sys.exit(verdict(name))
