# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package's types: annotations and docstrings of all that is public; mypy's opinion, where it is installed."""
import importlib.util
import inspect
import os
import re
import subprocess
import sys

import pytest
import tc_compiler as tc

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def members():
    for name in tc.__all__:
        thing = getattr(tc, name)
        yield name, thing
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                function = value.fget if isinstance(value, property) else value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
                if inspect.isfunction(function) and not member.startswith("_"):
                    yield f"{name}.{member}", function


@pytest.mark.parametrize("name, thing", list(members()))
def test_annotated(name, thing):
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert signature.return_annotation is not inspect.Signature.empty
        missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name != "self"]
        assert not missing
    assert thing.__doc__


def test_reference_has_all():
    with open(os.path.join(ROOT, "docs", "python-api.md")) as file:
        named = re.findall(r"^\.\. auto\w+:: tc_compiler\.(\w+)$", file.read(), re.MULTILINE)
    assert sorted(named) == sorted(tc.__all__)


def test_marked():
    assert os.path.exists(os.path.join(os.path.dirname(tc.__file__), "py.typed"))


def test_stub_is_the_binding():
    result = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "binding_stub.py"), "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy():
    result = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", os.devnull], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
