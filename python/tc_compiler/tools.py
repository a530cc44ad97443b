# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands tc-compile, tc-run, ... of an environment that the package is installed in."""
from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Becomes the tool that this process is called as."""
    name = os.path.basename(sys.argv[0])
    path = os.path.join(os.path.dirname(__file__), "bin", name)
    try:
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: error: {path} cannot be run: {error.strerror}; install tc_compiler once more")
