#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check that the options of --help, those that bash completes and those that the tool takes are the same.

usage: options.py TOOL...
"""
import re
import subprocess
import sys


def ask(*words):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def check(tool):
    shown = set()
    for line in ask(tool, "--help").stdout.splitlines():
        match = re.match(r"  (-\S+)", line)
        if match:
            shown.update(re.sub(r"\[.*", "", name) for name in match.group(1).split(","))
    completion = ask(tool, "--generate", "bash").stdout
    (completed,) = re.findall(r"if \[\[ \$cur == -\* \]\]; then\n\s*_tc_words '([^']*)'", completion)
    assert set(completed.split()) == shown, f"{tool}: {set(completed.split()) ^ shown}"
    for name in sorted(shown):
        # No file of this name is there; --help takes no value.
        result = ask(tool, f"{name}=1" if name.startswith("--") else name, "no-such-file", "another")
        assert "there is no option" not in result.stderr, f"{tool} {name}: {result.stderr}"
    values = re.findall(r"^  1?(-\S+)\) _tc_(?:words|list) '([^']*)'", completion, re.MULTILINE)
    for name, choices in values:
        for choice in choices.split():
            # Values are checked before the file is opened; an option may want another beside it.
            result = ask(tool, f"{name}={choice}", "no-such-file")
            wrong = re.search(rf"is not known|takes .* not|is no phase|no peer \"{re.escape(choice)}\"", result.stderr)
            assert not wrong, f"{tool} {name}={choice}: {result.stderr}"
    print(f"{tool}: {len(shown)} options, {len(values)} with known values")


for name in sys.argv[1:]:
    check(name)
