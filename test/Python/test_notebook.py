# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/notebook.py: it runs a notebook's cells, names the one that fails, and refuses results that are kept."""
import json
import os
import subprocess
import sys

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "notebook.py")


def write(path, *codes, outputs=()):
    cells = [{"cell_type": "markdown", "id": "head", "metadata": {}, "source": ["# Numbers"]}]
    for index, code in enumerate(codes):
        cells.append({"cell_type": "code", "execution_count": len(outputs) or None, "id": f"c{index}", "metadata": {}, "outputs": list(outputs),
                      "source": code.splitlines(True)}) # fmt: skip
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def call(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def test_cells_run_one_after_the_other(tmp_path):
    path = write(tmp_path / "a.ipynb", "import os\nx = 20", "def f(): return x + 1\nf() * 2", "print(os.path.basename(os.getcwd()))\nNone")
    assert call("--strip", path).returncode == 0
    result = call(path)
    assert result.returncode == 0 and result.stdout.split() == ["42", tmp_path.name], result.stderr


def test_what_is_shown_is_made(tmp_path):
    path = write(tmp_path / "a.ipynb", "class Bad:\n    def _repr_html_(self): raise ValueError('no page')", "Bad()", "print('later')")
    call("--strip", path)
    result = call(path)
    assert result.returncode == 1 and 'a.ipynb: error: cell "c1": ValueError: no page;' in result.stderr and "later" not in result.stdout


def test_results_are_refused(tmp_path):
    path = write(tmp_path / "a.ipynb", "1 + 1", outputs=[{"output_type": "stream", "name": "stdout", "text": ["2"]}])
    result = call(path)
    assert result.returncode == 1 and "it is kept with results" in result.stderr and result.stdout == ""
    call("--strip", path)
    assert call(path).stdout == "2\n"
