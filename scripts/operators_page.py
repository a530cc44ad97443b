#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write docs/operators.md from what tc-inspect --operators and the conformance tests say.

usage: operators_page.py BIN [--check]      BIN: folder with tc-inspect; --check: fail if the page is not up to date, or if a version of an
operator that the installed onnx package knows is not supported
"""
import collections
import contextlib
import copy
import io
import json
import os
import subprocess
import sys
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
CONFORMANCE = os.path.join(ROOT, "test", "Conformance")
# The ways of test/Conformance and what the page calls them.
WAYS = {"static": "as given", "dynamic": "dynamic", "constant": "constant"}
PAGE = os.path.join(ROOT, "docs", "operators.md")
HEAD = """# Operators

Made by scripts/operators_page.py from `tc-inspect --operators=json` and test/Conformance; the tests fail when it is out of date.

An operator is supported by a handler of its own, or by expansion: ONNX defines it by a function body, whose operators are all
supported. Versions are the opsets of the domain that brought them; those in brackets are not supported. Element types are
those that ONNX allows for the newest version; reductions and running sums take all integers beside them. The columns between
count the cases of ONNX's backend tests for the operator that pass, of all there are: as given, dynamic (all sizes unknown until
the run), and constant (all inputs constants, so that no kernel is left); test/Conformance/expected_failures.txt has the reasons
for the others.
PyTorch's operators are counted against PyTorch's own table (scripts/torch_schemas.py): Core ATen by overload, all by name. In-place and
out= forms come with the operator that computes what they write.
What a particular node lacks, `tc-compile MODEL --explain` says.
"""


def count_cases():
    """{(domain, type): {way: [passing, all]}} of the backend's node cases, without those that write out function bodies."""
    sys.path.insert(0, CONFORMANCE)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        from cases import NoMeaning, apply_way
        from run import expected_failures

        cases = [case for case in collect_testcases(None) if "_expanded" not in case.name]
    failing = expected_failures(os.path.join(CONFORMANCE, "expected_failures.txt"))
    counts = collections.defaultdict(lambda: {way: [0, 0] for way in WAYS})
    for case in cases:
        for way in WAYS:
            try:  # a case may lack a way
                apply_way(copy.deepcopy(case.model), way, [b""] * len(case.data_sets[0][0]))
            except NoMeaning:
                continue
            for key in {(node.domain or "ai.onnx", node.op_type) for node in case.model.graph.node}:
                counts[key][way][0] += f"{way} {case.kind}/{case.name}" not in failing
                counts[key][way][1] += 1
    return counts


def unsupported_versions(table):
    """Versions of operators that ONNX defines and tc does not take."""
    import onnx

    supported = {(entry["domain"], entry["type"], version["version"]) for entry in table for version in entry["versions"] if version["support"] != "none"}
    known = {(schema.domain or "ai.onnx", schema.name, schema.since_version) for schema in onnx.defs.get_all_schemas_with_history()}
    return sorted(known - supported)


def row(entry, cases):
    versions = [str(v["version"]) if v["support"] != "none" else f"({v['version']})" for v in entry["versions"]]
    newest = entry["versions"][-1]
    support = {"none": "no", "handler": "yes", "expansion": "by expansion"}[newest["support"]]
    if newest["missing"]:
        support += ", its body needs " + ", ".join(newest["missing"])
    if newest["deprecated"]:
        support += "; deprecated"
    tested = [f"{passing} of {count}" if count else "" for passing, count in (cases[way] for way in WAYS)]
    return "| " + " | ".join([entry["type"], ", ".join(versions), support, *tested, " ".join(entry["dtypes"])]) + " |"


def torch_section(domain, entries):
    """PyTorch's operators: Core ATen one by one, of the others those that are supported."""
    is_supported = lambda entry: entry["versions"][-1]["support"] != "none"
    names = {entry["type"].partition(".")[0] for entry in entries}
    taken = sorted({entry["type"].partition(".")[0] for entry in entries if is_supported(entry)})
    core = [entry for entry in entries if entry["core"]]
    lines = []
    if core:
        missing = [f"`{entry['type']}`" for entry in core if not is_supported(entry)]
        lines.append(f"{len(core) - len(missing)} of the {len(core)} operators of Core ATen have handlers" + (f"; not: {', '.join(missing)}" if missing else "") + ".")
        lines.append(f"Of the {len(names)} names on tensors that PyTorch has, in-place and out= forms not counted, these {len(taken)} have one in some overload.")
    for letter in sorted({name.lstrip("_")[0].lower() for name in taken}):
        overloads = {name: [e["type"].partition(".")[2] for e in entries if is_supported(e) and e["type"].partition(".")[0] == name]
                     for name in taken if name.lstrip("_")[0].lower() == letter}  # fmt: skip
        lines.append("- " + ", ".join(f"`{name}`" + ("" if o == ["default"] else f" ({' '.join(o)})") for name, o in overloads.items()))
    return lines


def page(table, cases):
    lines = [HEAD]
    for domain in sorted({entry["domain"] for entry in table}):
        entries = [entry for entry in table if entry["domain"] == domain]
        current = [entry for entry in entries if not entry["versions"][-1]["deprecated"]]
        supported = [entry for entry in current if entry["versions"][-1]["support"] != "none"]
        lines.append(f"## {domain}\n")
        if any(entry["dtypes"] for entry in entries):
            lines.append(f"{len(supported)} of {len(current)} operators, the deprecated ones not counted.\n")
            lines.append("| operator | versions | supported | " + " | ".join(WAYS.values()) + " | element types |")
            lines.append("|---|---|---|" + "---|" * len(WAYS) + "---|")
            lines += [row(entry, cases[entry["domain"], entry["type"]]) for entry in entries]
        elif any("core" in entry for entry in entries):
            lines += torch_section(domain, entries)
        else:  # no schemas: the names are all there is to say
            lines.append(f"{len(entries)} operators have handlers: " + ", ".join(f"`{entry['type']}`" for entry in entries) + ".")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main(tools, *options):
    command = [os.path.join(tools, "tc-inspect"), "--operators=json"]
    table = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    text = page(table, count_cases())
    if "--check" in options:
        missing = unsupported_versions(table)
        for domain, operator, version in missing:
            print(f"{domain}: error: {operator} (opset {version}) is not supported; give it a handler")
        with open(PAGE) as f:
            if f.read() == text:
                return 1 if missing else 0
        print("docs/operators.md: error: the page is not what the compiler says; scripts/operators_page.py BIN writes it anew")
        return 1
    os.makedirs(os.path.dirname(PAGE), exist_ok=True)
    with open(PAGE, "w") as f:
        f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
