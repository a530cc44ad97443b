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


PROGRAM = """
from typing import Any, assert_type
import numpy as np
import tc_compiler as tc

artifact = tc.compile("model.onnx", dims={"batch": "1..64"}, verify=True)
assert_type(artifact, tc.Artifact)
assert_type(artifact.run({"x": np.zeros(3, np.float32)}), dict[str, Any])
assert_type(artifact.main.inputs[0].shape, tuple[int | str | None, ...])
assert_type(artifact.explain(), list[dict[str, Any]])
assert_type(tc.InferenceSession("model.bin").run(["y"], {}), list[Any])
assert_type(tc.TrainingArtifact("training.bin").step(1), float)
with tc.load(b"", threads=2) as loaded:
    loaded.run(1)
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_users_programs_are_typed(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    result = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"], cwd=tmp_path, capture_output=True, text=True)
    (error,) = [line for line in result.stdout.splitlines() if "error:" in line]
    assert 'program.py:14: error: Argument 1 to "run" of "Artifact" has incompatible type "int"' in error, result.stdout
