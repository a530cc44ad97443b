# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(backend="tc") where PyTorch's own cases of Inductor (test/Torch/inductor_suite.py) found it wrong: memory, versions, signs of numbers; layers of attention.

usage: PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python/test_dynamo_cases.py      needs PyTorch; skipped without
"""
import itertools

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F # noqa: E402
from tc_compiler.dynamo import counters # noqa: E402
from torch import nn # noqa: E402

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)


def check(function, *inputs, dynamic=None, eager=0):
    """Compares with eager; `eager`: how many operators PyTorch runs. NaN stands where NaN does."""
    before = counters["eager"]
    compiled = torch.compile(function, backend="tc", dynamic=dynamic, fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), function(*inputs), equal_nan=True, rtol=2e-5, atol=2e-5)
    assert counters["eager"] - before == eager
    return compiled


@pytest.mark.parametrize("is_last", [False, True])
def test_as_strided_of_views(is_last):
    """It reads the memory of what it is a view of, whatever the view before it was."""

    def function(x):
        y = x.to(memory_format=torch.channels_last) + 1 if is_last else x + 1
        windows = aten.as_strided(y, [2, 3, 2, 20, 12], [1200, 400, 160, 1, 20])
        return (
            aten.as_strided(windows, [2, 3, 2, 2, 12, 12], [1200, 400, 160, 8, 20, 1]).clone(),
            aten.as_strided(y[1:, :, 3:], [5, 7], [20, 3]) * 2,
            aten.as_strided(y[0], [4], [2], 9) * 2,
        )

    check(function, torch.randn(2, 3, 20, 20))


@pytest.mark.parametrize("dynamic", [False, True])
def test_as_strided_of_inputs(dynamic):
    """Inputs lie where they do: with gaps, behind an offset, parts of which a view before it shows."""
    x = torch.randn(10, 12)
    for given in (x, x[:, :6], x.T[:4], x[2:]):
        torch._dynamo.reset()
        check(lambda x: (aten.as_strided(x, [3, 4], [2, 3]) * 1, aten.as_strided(x, [3, 4], [2, 3], 1) * 2), given, dynamic=dynamic, eager=2)
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(lambda x: aten.as_strided(x[:, :3], [3, 4], [2, 3]) * 1, backend="tc", dynamic=dynamic)(given),
                                   aten.as_strided(given[:, :3], [3, 4], [2, 3])) # fmt: skip

    def function(x):
        y = x + 1
        return aten.as_strided(y[1:], [3, 2], [1, 2]) * 2, aten.as_strided(y[1], [3, 2], [1, 2]) * 2, aten.as_strided(y[1], [3, 2], [1, 2], 5) * 2

    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="tc", dynamic=dynamic)(x), function(x))


def test_memory_of_odd_views():
    """Memory that views of other kinds show is PyTorch's own."""
    x, z = torch.randn(4, 6, 5), torch.randn(4, 4, dtype=torch.complex64)
    for function, given in ((lambda x: aten.as_strided((x + 1).transpose(0, 2).view(torch.int32), [4, 3], [2, 1]) + 0, x),
                            (lambda z: aten.as_strided((z * 2).conj()[1:], [4, 3], [2, 1]) + 0, z),
                            (lambda x: aten.as_strided_scatter((x + 1)[:, 1:], x[0, :2, :2], [2, 2], [4, 1], 3), x),
                            (lambda x: aten.as_strided_scatter((x + 1)[1:, ::2], x[0, :3, :4], [3, 4], [4, 1], 35), x)): # fmt: skip
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(function, backend="tc", fullgraph=True)(given), function(given))


def test_results_share_memory():
    """Parts of one value, with it and without."""

    def parts(x):
        y, z = x + 1, x + 2
        return y, y[:, :2], y[:, 1], z[1:], z[:, :2]

    x = torch.zeros(4, 6)
    actual, expected = torch.compile(parts, backend="tc", fullgraph=True)(x), parts(x)
    for results in (actual, expected):
        results[1].fill_(100)
        results[4].fill_(50)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("is_last", [False, True])
def test_as_strided_scatter(is_last):
    def function(x, part):
        y = x.to(memory_format=torch.channels_last) + 1 if is_last else x + 1
        return aten.as_strided_scatter(y, part, [3, 4], [2, 7]), aten.as_strided_scatter(x, part, [3, 4], [2, 7], 3)

    check(function, torch.randn(2, 3, 4, 5)[:, :, 1:], torch.randn(3, 4), eager=1 + 2 * is_last) # that and what makes it


def test_results_with_gaps():
    def function(x):
        result = torch.empty_strided(x.size(), x.stride())
        result[:] = x + x
        return result

    x = torch.randn(16, 16)[:, :8]
    assert check(function, x)(x).stride() == x.stride() == (16, 1)


@pytest.mark.parametrize("mode", ["training", "no_grad", "inference_mode"])
def test_versions(mode):
    """An update in a graph counts as one."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.sums = nn.Buffer(torch.zeros(1)), nn.Buffer(torch.zeros(2))
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            self.calls.add_(1)
            self.sums.add_(x)
            return (self.weight * x).sum() + self.calls.sum()

    module, given = Counting(), torch.ones(2)
    versions = [buffer._version for buffer in module.buffers()]
    with {"training": torch.enable_grad, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode}[mode]():
        assert torch.compile(module, backend="tc", fullgraph=True)(given).item() == 3
    assert [buffer.tolist() for buffer in module.buffers()] == [[1], [1, 1]]
    assert [buffer._version - before for buffer, before in zip(module.buffers(), versions)] == [1, 1]


def test_places_beyond_what_is_written():
    """Elements that a scatter leaves as they are read no index of the user's."""

    def function(x, part):
        return aten.slice_scatter(x, part[:, :, :40], 2, 10, -10, 2), aten.slice_scatter(x, part[:, :, :3], 2, 0, 9, 3), aten.diagonal_scatter(x[0].T, part[0, :, 0])

    check(function, torch.randn(4, 8, 100), torch.randn(4, 8, 80))
    torch._dynamo.reset()
    check(function, torch.randn(4, 8, 100), torch.randn(4, 8, 80), dynamic=True)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_given_sum_of_weights(reduction):
    """A mean's gradient is divided by the sum of weights that it is given, also where all targets are ignored."""

    def function(g, scores, target, weight, total):
        return aten.nll_loss_backward(g, scores, target, weight, reduction, -100, total)

    for target in ([0, 1, 2, -100, 4], [-100] * 5):
        g = torch.randn(5) if reduction == 0 else torch.randn(())
        check(function, g, torch.randn(5, 5), torch.tensor(target), torch.rand(5), torch.tensor(0.7))
        torch._dynamo.reset()


def test_signs_of_numbers():
    """Products of sizes that a negative number is part of."""
    x = torch.randn(1, 2, 8, 9)
    for n in (3, -2, 5, -1, 0, 1, 4, -3, 2):
        def function(x, n):
            return x[:, :, n:] * n, F.pad(x, (n, 2 * n, 1, n)), aten.reflection_pad2d(x, [n, 1, n, 2])

        def backward(g, x, n):
            return aten.reflection_pad2d_backward(g, x, [n, 1, n, 2])

        if n == 3:
            compiled, gradient = (torch.compile(f, backend="tc", dynamic=True, fullgraph=True) for f in (function, backward))
        expected = function(x, n)
        torch.testing.assert_close(compiled(x, n), expected)
        g = torch.randn_like(expected[2])
        torch.testing.assert_close(gradient(g, x, n), backward(g, x, n))


def test_numbers_below_zero():
    """Bounds that follow from sizes and may be negative, powers of numbers that are."""
    x = torch.randn(6, 8)
    for function in (lambda x: torch.arange(8).clamp(max=x.shape[0] - 7), lambda x: torch.zeros(3, dtype=torch.int64).clamp(min=x.shape[0] - 3),
                     lambda x: torch.arange(8, dtype=torch.int16).clamp(5 - x.shape[1], x.shape[0] - 2)): # fmt: skip
        torch._dynamo.reset()
        compiled = check(function, x, dynamic=True)
        torch.testing.assert_close(compiled(x[:3, :2]), function(x[:3, :2]))
    torch._dynamo.reset()

    def powers(x, n):
        return x + (n * n - n) * (n * n + 3), x + n**3 * x.shape[0] ** 2, x + (n * n * n) // 4

    compiled = torch.compile(powers, backend="tc", dynamic=True, fullgraph=True)
    for n in (-2, 3, -30, 100, -1000):
        torch.testing.assert_close(compiled(torch.arange(200), n), powers(torch.arange(200), n))
    squares = torch.compile(lambda x, n: x * (n * n) + n**3 // 4, backend="tc", dynamic=True, fullgraph=True)
    for n in (-70000, 5, -5):
        assert squares(torch.arange(2), n).tolist() == [n**3 // 4, n * n + n**3 // 4]


@pytest.mark.parametrize("norm_first, activation, bias", list(itertools.product([False, True], ["relu", "gelu"], [True, False])))
def test_encoder_layers(norm_first, activation, bias):
    """nn.TransformerEncoder in inference, whose layers may be an operator each."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=norm_first, activation=activation, bias=bias).eval()
    x, hidden = torch.randn(3, 7, 32), torch.zeros(3, 7, dtype=torch.bool)
    hidden[1, -2:] = True
    causal = nn.Transformer.generate_square_subsequent_mask(7)
    with torch.no_grad():
        for masks in ({}, {"src_mask": causal}, {"src_key_padding_mask": hidden}, {"src_mask": causal, "src_key_padding_mask": torch.where(hidden, -torch.inf, 0.0)}):
            torch._dynamo.reset()
            check(lambda x, masks=masks: layer(x, **masks), x)


@pytest.mark.parametrize("needed, averaged", [(True, True), (True, False), (False, True)])
def test_native_attention(needed, averaged):
    module = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x, y = torch.randn(3, 7, 16), torch.randn(3, 7, 16)
    padding = torch.zeros(3, 7, dtype=torch.bool)
    padding[0], padding[1, 3:] = True, True # nothing is seen in the first
    weights = [module.in_proj_weight, module.in_proj_bias, module.out_proj.weight, module.out_proj.bias]
    masks = [(None, None), (torch.ones(7, 7, dtype=torch.bool).triu(1), 0), (padding, 1), (torch.rand(3, 4, 7, 7) < 0.4, 2)]
    with torch.no_grad():
        for (mask, kind), inputs in itertools.product(masks, [(x, x, x), (x, y, y), (x, y, x)]):

            def function(*inputs, mask=mask, kind=kind):
                results = torch._native_multi_head_attention(*inputs, 16, 4, *weights, mask, needed, averaged, kind)
                return results if needed else results[0]

            torch._dynamo.reset()
            check(function, *inputs)


@pytest.mark.parametrize("function", [lambda w, p: torch.exp(1j * p) * w, lambda w, p: w / (2 - 1j) * p, lambda w, p: (3j - w) * (p * 2j).exp()])
def test_gradients_of_products_with_complex_numbers(function):
    """PyTorch asks for the conjugate of the number, a tensor that lazily is one."""
    given = torch.randn(3, 9, dtype=torch.complex64), torch.randn(3, 1)
    gradients = []
    for call in (function, torch.compile(function, backend="tc", options={"fallback": False})):
        inputs = [x.clone().requires_grad_() for x in given]
        call(*inputs).abs().sum().backward()
        gradients.append([x.grad for x in inputs])
    torch.testing.assert_close(*gradients)
