# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A skipped test must say which package or device it needs, of those that the tests' environment need not have, and that must indeed be missing:
so nothing that could run is skipped."""
import importlib.util
import os

import pytest

OPTIONAL = {
    "torch": lambda: importlib.util.find_spec("torch") is not None,
    "onnxruntime": lambda: importlib.util.find_spec("onnxruntime") is not None,
    "cupy": lambda: importlib.util.find_spec("cupy") is not None,
    "mypy": lambda: importlib.util.find_spec("mypy") is not None,
    "cuda": lambda: os.path.exists("/dev/nvidiactl"),
}
_unexplained = []


def is_explained(reason):
    """Whether the reason of a skip names something optional that is not here."""
    return any(name in reason.lower() and not is_here() for name, is_here in OPTIONAL.items())


def _look(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not is_explained(reason):
            _unexplained.append(f"{report.nodeid}: {reason}")


def pytest_runtest_logreport(report):
    _look(report)


def pytest_collectreport(report):
    _look(report)


def pytest_sessionfinish(session):
    if _unexplained:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for line in _unexplained:
        terminalreporter.write_line(f"SKIPPED, though nothing optional is missing: {line}", red=True)
