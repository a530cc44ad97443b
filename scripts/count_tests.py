#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Print "N passed, N failed" for a JUnit report as ctest writes it; a skipped or disabled test is named and counts as failed.

usage: count_tests.py REPORT.xml      exit status 0: all passed
"""
import sys
import xml.etree.ElementTree as tree


def main(path):
    try:
        cases = tree.parse(path).getroot().findall(".//testcase")
    except (OSError, tree.ParseError) as error:
        print(f"count_tests.py: error: cannot read the report {path}: {error}", file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    bad = [c for c in cases if c.get("status") != "run" or c.find("failure") is not None or c.find("error") is not None]
    for case in bad:
        if case.get("status") in ("disabled", "notrun", "skipped"):
            print(f"{case.get('name')}: did not run")
    print(f"{len(cases) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
