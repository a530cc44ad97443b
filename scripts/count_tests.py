#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Print "N passed, N failed" for JUnit reports as ctest and pytest write them; a skipped or disabled test is named and counts as failed, but for those of
pytest, which itself refuses a skip without need (test/Python/conftest.py).

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
    left_out = [c for c in cases if c.get("status") is None and c.find("skipped") is not None]
    ran = [c for c in cases if c not in left_out]
    bad = [c for c in ran if c.get("status", "run") != "run" or c.find("failure") is not None or c.find("error") is not None]
    for case in left_out + bad:
        if case in left_out or case.get("status") in ("disabled", "notrun", "skipped"):
            print(f"{case.get('name')}: did not run")
    return (len(ran) - len(bad), len(bad)) if ran else (0, 1)


def main(paths):
    passed, failed = (sum(column) for column in zip(*map(count, paths)))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
