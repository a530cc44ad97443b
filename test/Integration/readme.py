#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run the commands that READMEs show: every ```sh block, in a folder where models/ is that of the repository.

usage: readme.py BIN README...      exit status 0: every command exited with 0
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def commands(path):
    with open(path) as f:
        blocks = re.findall(r"^```sh\n(.*?)^```$", f.read(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.strip() and not line.startswith("#")]


def main(tools, readmes):
    environment = {**os.environ, "PATH": os.path.realpath(tools) + os.pathsep + os.environ["PATH"], "NO_COLOR": "1"}
    failed = count = 0
    for readme in readmes:
        lines = commands(readme)
        with tempfile.TemporaryDirectory(prefix="tc-readme-") as folder:
            os.symlink(os.path.join(ROOT, "models"), os.path.join(folder, "models"))
            for line in lines:
                result = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
                count += 1
                if result.returncode:
                    failed += 1
                    print(f"{os.path.relpath(readme, ROOT)}: FAILED with status {result.returncode}: {line}\n{result.stderr.strip()}")
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
