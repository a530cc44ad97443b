#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write docs/operators.md from what tc-inspect --operators says.

usage: operators_page.py BIN [--check]      BIN: folder with tc-inspect; --check: fail if the page is not up to date
"""
import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PAGE = os.path.join(ROOT, "docs", "operators.md")
HEAD = """# Operators

Made by scripts/operators_page.py from `tc-inspect --operators=json`; the tests fail when it is out of date.

An operator is supported by a handler of its own, or by expansion: ONNX defines it by a function body, whose operators are all
supported. Versions are the opsets of the domain that brought them; those in brackets are not supported. Element types are
those that ONNX allows for the newest version. What a particular node lacks, `tc-compile MODEL --explain` says.
"""


def row(entry):
    versions = [str(v["version"]) if v["support"] != "none" else f"({v['version']})" for v in entry["versions"]]
    newest = entry["versions"][-1]
    support = {"none": "no", "handler": "yes", "expansion": "by expansion"}[newest["support"]]
    if newest["missing"]:
        support += ", its body needs " + ", ".join(newest["missing"])
    if newest["deprecated"]:
        support += "; deprecated"
    return f"| {entry['type']} | {', '.join(versions)} | {support} | {' '.join(entry['dtypes'])} |"


def page(table):
    lines = [HEAD]
    for domain in sorted({entry["domain"] for entry in table}):
        entries = [entry for entry in table if entry["domain"] == domain]
        current = [entry for entry in entries if not entry["versions"][-1]["deprecated"]]
        supported = [entry for entry in current if entry["versions"][-1]["support"] != "none"]
        lines.append(f"## {domain}\n")
        if any(entry["dtypes"] for entry in entries):
            lines.append(f"{len(supported)} of {len(current)} operators, the deprecated ones not counted.\n")
            lines += ["| operator | versions | supported | element types |", "|---|---|---|---|"]
            lines += [row(entry) for entry in entries]
        else:  # no schemas: the names are all there is to say
            lines.append(f"{len(entries)} operators have handlers: " + ", ".join(f"`{entry['type']}`" for entry in entries) + ".")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main(tools, *options):
    command = [os.path.join(tools, "tc-inspect"), "--operators=json"]
    text = page(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    if "--check" in options:
        with open(PAGE) as f:
            if f.read() == text:
                return 0
        print("docs/operators.md: error: the page is not what the compiler says; scripts/operators_page.py BIN writes it anew")
        return 1
    os.makedirs(os.path.dirname(PAGE), exist_ok=True)
    with open(PAGE, "w") as f:
        f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
