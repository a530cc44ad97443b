#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Print "N passed, N failed" for JUnit reports as ctest and pytest write them; a skipped or disabled test is named and counts as failed.

usage: count_tests.py REPORT.xml...      exit status 0: all passed
"""
import sys
import xml.etree.ElementTree as tree


def count(path):
    """How many passed, and failed."""
    try:
        cases = tree.parse(path).getroot().findall(".//testcase")
    except (OSError, tree.ParseError) as error:
        print(f"count_tests.py: error: cannot read the report {path}: {error}", file=sys.stderr)
        return 0, 1
    # pytest gives no status.
    bad = [c for c in cases if c.get("status", "run") != "run" or any(c.find(kind) is not None for kind in ("failure", "error", "skipped"))]
    for case in bad:
        if case.get("status") in ("disabled", "notrun", "skipped") or (case.get("status") is None and case.find("skipped") is not None):
            print(f"{case.get('name')}: did not run")
    return (len(cases) - len(bad), len(bad)) if cases else (0, 1)


def main(paths):
    passed, failed = (sum(column) for column in zip(*map(count, paths)))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
