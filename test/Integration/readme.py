#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run the commands that READMEs show: every ```sh block, in a folder where models/, test/ and examples/ are
those of the repository, with this interpreter as python3; then every ```python run block, as one program.

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


def program(path):
    with open(path) as f:
        return "\n".join(re.findall(r"^```python run\n(.*?)^```$", f.read(), re.DOTALL | re.MULTILINE))


def main(tools, readmes):
    path = os.pathsep.join([os.path.realpath(tools), os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}
    has_package = subprocess.run([sys.executable, "-c", "import tc_compiler"], env=environment, capture_output=True).returncode == 0
    failed = count = 0
    for readme in readmes:
        lines = commands(readme)
        with tempfile.TemporaryDirectory(prefix="tc-readme-") as folder:
            for name in ("models", "test", "examples"):
                os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
            for line in lines:
                result = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True)
                count += 1
                if result.returncode:
                    failed += 1
                    print(f"{os.path.relpath(readme, ROOT)}: FAILED with status {result.returncode}: {line}\n{result.stderr.strip()}")
            code = program(readme)
            if code and not has_package:
                print(f"{os.path.relpath(readme, ROOT)}: not run, as the Python package was not built: the blocks of Python")
            elif code:
                result = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
                count += 1
                if result.returncode:
                    failed += 1
                    print(f"{os.path.relpath(readme, ROOT)}: FAILED with status {result.returncode}: Python\n{result.stderr.strip()}")
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
