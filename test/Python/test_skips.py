# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""conftest.py: a skip that names nothing optional fails the run."""
import os
import shutil
import subprocess
import sys

import conftest
import pytest


def run(folder, reason):
    shutil.copy(os.path.join(os.path.dirname(__file__), "conftest.py"), folder)
    (folder / "test_one.py").write_text(f"import pytest\n\ndef test_one():\n    pytest.skip({reason!r})\n")
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)], capture_output=True, text=True)


def test_unexplained(tmp_path):
    result = run(tmp_path, "not today")
    assert result.returncode == 1 and "not today" in result.stdout


@pytest.mark.parametrize("name", conftest.OPTIONAL)
def test_explained(tmp_path, name):
    assert conftest.is_explained(f"needs {name}") is not conftest.OPTIONAL[name]()
    assert run(tmp_path, f"needs {name}").returncode == (1 if conftest.OPTIONAL[name]() else 0)
