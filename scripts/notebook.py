#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs notebooks without Jupyter, and refuses those that are kept with results: they age, and differ with each run.

usage: notebook.py [--strip] NOTEBOOK...      --strip: takes the results out instead

The cells of a notebook run in one namespace, in its folder, and what a cell ends with is made into what would be shown. Only errors count. The first
one ends the notebook.
"""
import argparse
import ast
import json
import os
import sys
import traceback


def cells_of(notebook):
    """(name, cell) of each cell of code."""
    return [(cell.get("id", str(i)), cell) for i, cell in enumerate(notebook["cells"]) if cell["cell_type"] == "code"]


def strip(notebook):
    """Takes the results out."""
    for _, cell in cells_of(notebook):
        cell["outputs"], cell["execution_count"], cell["metadata"] = [], None, {}
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def text_of(notebook):
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def show(value):
    """What a notebook shows, which is made and thrown away but for text."""
    for name in ("_repr_html_", "_repr_svg_"):
        if hasattr(value, name):
            getattr(value, name)()
    if value is not None:
        print(repr(value))


def run_cell(code, namespace, name):
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is not None:
        show(eval(compile(ast.Expression(last.value), name, "eval"), namespace))


def run(path, notebook):
    """Whether all cells ran."""
    namespace, before = {"__name__": "__main__"}, os.getcwd()
    os.chdir(os.path.dirname(os.path.abspath(path)))
    try:
        for name, cell in cells_of(notebook):
            try:
                run_cell("".join(cell["source"]), namespace, name)
            except Exception as error:
                traceback.print_exc()
                print(f'{path}: error: cell "{name}": {type(error).__name__}: {error}; mend the cell, or what it calls', file=sys.stderr)
                return False
        return True
    finally:
        os.chdir(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strip", action="store_true")
    parser.add_argument("notebooks", nargs="+")
    options = parser.parse_args()
    failed = 0
    for path in options.notebooks:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        notebook = json.loads(text)
        strip(notebook)
        if options.strip:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text_of(notebook))
            continue
        if text != text_of(notebook):
            print(f"{path}: error: it is kept with results, or in another form; scripts/notebook.py --strip {path} takes them out", file=sys.stderr)
            failed += 1
        elif not run(path, notebook):
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
