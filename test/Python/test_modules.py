# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tc.compile of PyTorch's modules and programs: dims, errors.

usage: PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python/test_modules.py      needs PyTorch; skipped without
"""
import numpy as np
import pytest
import tc_compiler as tc

torch = pytest.importorskip("torch")
from torch import nn # noqa: E402


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, y):
        return self.linear(x) + y.sum(1, keepdim=True), torch.cat([x, y], 1)


def test_modules():
    torch.manual_seed(0)
    module, x, y = Two().eval(), torch.randn(5, 4), torch.randn(5, 2)
    for model, inputs in ((module, (x, y)), (torch.export.export(module, (x, y)), None), (torch.jit.trace(module, (x, y)), None)):
        artifact = tc.compile(model, inputs, threads=1)
        with torch.no_grad():
            for actual, expected in zip(artifact.run(dict(zip((v.name for v in artifact.inputs), (x, y)))).values(), module(x, y)):
                np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_open_dims():
    torch.manual_seed(0)
    module = Two().eval()
    artifact = tc.compile(module, (torch.randn(5, 4), torch.randn(5, 2)), dims={"x.0": "8,1..64", "y.1": "1..9"}, threads=1)
    assert [(s.name, s.minimum, s.maximum) for s in artifact.main.symbols] == [("x.0", 1, 64), ("y.1", 1, 9)]
    for n, m in ((8, 2), (1, 9), (64, 1), (5, 4)):
        x, y = torch.randn(n, 4), torch.randn(n, m)
        with torch.no_grad():
            for actual, expected in zip(artifact(x=x, y=y).values(), module(x, y)):
                np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(tc.RefusedError):
        artifact(x=torch.randn(65, 4), y=torch.randn(65, 2))


def test_other_dims_of_the_same_size_stay_fixed():
    class Square(nn.Module):
        def forward(self, x, y):
            return x @ y, y + 1

    artifact = tc.compile(Square(), (torch.randn(5, 5), torch.randn(5, 5)), dims={"x.1": "1..9"}, threads=1)
    assert [v.shape for v in artifact.inputs] == [(5, "x.1"), ("x.1", 5)]
    x, y = torch.randn(5, 7), torch.randn(7, 5)
    np.testing.assert_allclose(list(artifact(x=x, y=y).values())[0], (x @ y).numpy(), rtol=1e-5, atol=1e-5)


def test_wrong_dims():
    module, inputs = Two().eval(), (torch.randn(5, 4), torch.randn(5, 2))
    for name in ("z.0", "x", "x.2", "x.a"):
        with pytest.raises(tc.InvalidError, match=f'there is no dim "{name}"; dims of this module are x.0, x.1, y.0, y.1'):
            tc.compile(module, inputs, dims={name: "1..4"})
    with pytest.raises(tc.InvalidError, match="cannot be exported with open x.1"):
        tc.compile(module, inputs, dims={"x.1": "1..4"})
    with pytest.raises(tc.InvalidError, match='"x.0" is 1 in example_inputs'):
        tc.compile(module, (torch.randn(1, 4), torch.randn(1, 2)), dims={"x.0": "1..4"})
    with pytest.raises(tc.InvalidError, match="needs example_inputs"):
        tc.compile(module)


def outcome(call):
    try:
        return call()
    except tc.TcError as error:
        return f"{type(error).__name__}: {error}"


def test_lazy_tensors(tmp_path):
    """A tensor whose conjugate or negative is a bit is read as PyTorch does, and nothing is written to it."""
    class Complex(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(3, dtype=torch.complex64).conj())
            self.register_buffer("b", torch.randn(3, dtype=torch.complex64).conj())

        def forward(self, x):
            return x * self.w + self.b

    module, z = Complex().eval(), torch.randn(3, dtype=torch.complex64)
    artifact = tc.compile(module, (z,))
    for x in (z, z.conj()):
        np.testing.assert_allclose(*artifact.run({"x": x}).values(), module(x).detach().resolve_conj().numpy(), rtol=1e-5)
    assert module.w.is_conj()
    path, x = str(tmp_path / "model.bin"), torch.tensor([0.25, -0.5, 3])
    halves = tc.compile(nn.Hardtanh(), (torch.ones(3),), output=path)
    session, name, given = tc.InferenceSession(path), halves.outputs[0].name, halves.inputs[0].name
    for feed in (torch._neg_view(x), -x, torch._neg_view(x).requires_grad_()):
        np.testing.assert_array_equal(halves.run({given: feed})[name], [-0.25, 0.5, -1])
        np.testing.assert_array_equal(session.run(None, {given: feed})[0], [-0.25, 0.5, -1])
    for lazy in (torch._neg_view(torch.zeros(3)), torch._efficientzerotensor(3)):
        assert "lazily; give one with its elements in memory" in outcome(lambda: halves.run({given: x}, out={name: lazy}))
        assert "InvalidError: an OrtValue cannot show what is given: PyTorch" in outcome(lambda: tc.OrtValue.from_dlpack(lazy))
        assert "InvalidError: an OrtValue cannot show what is given: PyTorch" in outcome(lambda: tc.OrtValue.ortvalue_from_numpy(lazy))
    for wrong, text in ((x.bfloat16(), "is bfloat16, but the model takes float32"), (x.to_sparse(), "cannot be read: "), (x.to("meta"), "cannot be read: ")):
        assert f'RefusedError: {path}: input "{given}" {text}' in outcome(lambda: halves.run({given: wrong}))
