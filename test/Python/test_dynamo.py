# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(backend="tc") beside eager: results, gradients, updates, random numbers, layouts, sizes, what PyTorch runs.

usage: PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python/test_dynamo.py      needs PyTorch; skipped without

TC_TEST_DEVICE=cuda has all of it on a GPU.
"""
import copy
import gc
import logging
import operator
import os
import threading

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F # noqa: E402
from tc_compiler import RefusedError # noqa: E402
from tc_compiler.dynamo import counters, tc # noqa: E402
from torch import nn # noqa: E402

DEVICE = os.environ.get("TC_TEST_DEVICE", "cpu")
torch.set_default_device(DEVICE)
torch.backends.cudnn.allow_tf32 = False

@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)


def same(actual, expected, tolerance=2e-5):
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            same(a, e, tolerance)
    elif isinstance(expected, torch.Tensor):
        assert (actual.dtype, actual.shape, actual.requires_grad) == (expected.dtype, expected.shape, expected.requires_grad)
        size = float(expected.detach().abs().nan_to_num(0, 0, 0).max()) if expected.numel() and expected.dtype != torch.bool else 0
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance * size + 1e-30, equal_nan=True)
    else:
        assert actual == expected


def check(function, *inputs, tolerance=2e-5, strides=False, **options):
    """Compares with eager, twice with other numbers; returns the compiled function."""
    compiled = torch.compile(function, backend="tc", options=options, fullgraph=True)
    for _ in range(2):
        given = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
        for g, x in zip(given, inputs): # clone makes some layouts another
            if isinstance(x, torch.Tensor) and g.stride() != x.stride():
                g.as_strided_(x.shape, x.stride()) if x.untyped_storage().nbytes() <= g.untyped_storage().nbytes() else None
        others = copy.deepcopy(given)
        torch.manual_seed(7)
        expected = function(*given)
        torch.manual_seed(7)
        actual = compiled(*others)
        same(actual, expected, tolerance)
        same(others, given, tolerance)
        if strides:
            assert actual.stride() == expected.stride()
    return compiled


def trains(make, *inputs, steps=3, dynamic=False, loss=lambda y: y.square().mean(), sizes=None, options=None, tolerance=2e-4):
    """Steps of SGD beside eager's under the same seeds: losses, gradients, buffers."""
    models = [make(), None]
    models[1] = copy.deepcopy(models[0])
    runs = [models[0], torch.compile(models[1], backend="tc", dynamic=dynamic, options=options or {})]
    optimisers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in models]
    for step in range(steps):
        given = [x[: sizes[step]] if sizes else x for x in inputs]
        losses = []
        for run, optimiser in zip(runs, optimisers):
            torch.manual_seed(step)
            optimiser.zero_grad()
            value = loss(run(*given))
            value.backward()
            optimiser.step()
            losses.append(value.detach())
        same(losses[1], losses[0], tolerance)
        same([p.grad for p in models[1].parameters()], [p.grad for p in models[0].parameters()], tolerance)
        same(list(models[1].state_dict().values()), list(models[0].state_dict().values()), tolerance)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs cuda: a GPU")


class Block(nn.Module):
    def __init__(self, width=32, heads=4, dropout=0.1):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norms[1](x))


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3), nn.Flatten(), nn.Linear(72, 5))


@pytest.mark.parametrize("dynamic", [False, True])
def test_training_of_convolutions(dynamic):
    trains(convolutions, torch.randn(6, 3, 8, 8), dynamic=dynamic, sizes=[6, 4, 5] if dynamic else None)


@pytest.mark.parametrize("dynamic", [False, True])
def test_training_of_a_transformer(dynamic):
    trains(Block, torch.randn(6, 7, 32), dynamic=dynamic, sizes=[6, 4, 5] if dynamic else None)


def test_training_without_operators_of_eager():
    trains(Block, torch.randn(2, 7, 32), options={"fallback": True})
    programs, eager = (2, 1) if DEVICE == "cpu" else (5, 4) # the dropout's mask; on GPUs the dropout itself and attention
    assert counters["graphs"] == 2 and counters["programs"] == programs and counters["eager"] <= eager


def test_gradients_of_rare_operators():
    """Which values they have test/Driver/pt2-training.test says; here, that this PyTorch's graphs hold nothing that tc lacks."""
    mask = torch.tensor([[True, False, True], [False, True, True]])

    class Rare(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.pairs = nn.Parameter(torch.randn(4, 3)), nn.Bilinear(3, 3, 2)

        def forward(self, x):
            filled = torch.zeros(2, 3).masked_scatter(mask, x[:2] * self.weight[:2])
            near = torch.cdist(x, self.weight).sum() + F.pdist(self.weight).sum()
            image = F.interpolate(self.weight[None, None], size=(2, 5), mode="bilinear", antialias=True)
            return self.pairs(filled, filled + 1).sum() + near + image.square().sum() + F.rrelu(x * self.weight).sum()

    trains(Rare, torch.randn(4, 3), options={"fallback": False}, loss=lambda y: y * 0.1)


@pytest.mark.parametrize("name", ["det", "slogdet", "solve", "right", "inv", "lu_solve"])
@pytest.mark.parametrize("turned", [False, True])
def test_gradients_through_factors(name, turned):
    """PyTorch keeps factors for determinants of the matrix or of the transposed one, as it lies in memory."""
    functions = {"det": torch.linalg.det, "slogdet": lambda x: torch.linalg.slogdet(x)[1], "solve": lambda x: torch.linalg.solve(x, torch.ones(4, 2)), "inv": torch.linalg.inv,
                 "right": lambda x: torch.linalg.solve(x, torch.ones(2, 4), left=False), "lu_solve": lambda x: torch.linalg.lu_solve(*torch.linalg.lu_factor(x), torch.ones(4, 2))} # fmt: skip

    class Matrix(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4, 4) + 3 * torch.eye(4))

        def forward(self, x):
            return functions[name](self.weight.mT * x if turned else self.weight * x)

    trains(Matrix, torch.randn(4), steps=2, options={"fallback": False}, loss=lambda y: y.sum() * 1e-3)


def test_gradients_of_determinants_without_elements():
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        x = torch.ones(shape, requires_grad=True)
        for function in (torch.linalg.det, lambda x: torch.linalg.slogdet(x)[1], torch.logdet):
            results = [torch.compile(function, backend="tc")(x), function(x)]
            same(*results)
            same(*(torch.autograd.grad(y.sum(), x, allow_unused=True) for y in results))


def gradients_of(function, *inputs, compiled=True):
    inputs = [x.clone().requires_grad_() for x in inputs]
    result = (torch.compile(function, backend="tc", fullgraph=True) if compiled else function)(*inputs)
    result.backward(torch.ones_like(result))
    return [x.grad for x in inputs]


def check_gradients(function, *inputs, tolerance=2e-5):
    torch._dynamo.reset()
    same(gradients_of(function, *inputs), gradients_of(function, *inputs, compiled=False), tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_where_functions_bend(dtype):
    x = torch.tensor([-4.0, -3, -1, 0, 0.5, 1, 3, 4, 6, 21, -200, float("nan"), float("inf")], dtype=dtype)
    for function in (F.hardtanh, F.relu6, F.hardswish, F.hardsigmoid, F.softplus, lambda x: F.softplus(x, beta=3, threshold=2), F.logsigmoid, F.silu):
        check_gradients(function, x, tolerance=2e-5 if dtype == torch.float32 else 1e-2)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gradients_of_losses_where_they_end(reduction):
    p, sign = torch.tensor([0.0, 1, 0.5, 1e-20, 1 - 1e-7, 0.3]), torch.tensor([-1.0, 1, -1, 1, 1, -1])
    for target in (torch.tensor([0.0, 1, 1, 0.3, 1, 0]), torch.tensor([1.0, 0, 0, 0.7, 0, 1])):
        check_gradients(lambda p: F.binary_cross_entropy(p, target, reduction=reduction), p)
        check_gradients(lambda p: F.binary_cross_entropy(p, target, weight=torch.arange(6.0), reduction=reduction), p)
    check_gradients(lambda x: F.soft_margin_loss(x, sign, reduction=reduction), torch.tensor([0.0, 0, 3, -3, 90, -90]))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_grids_on_pixels_and_borders(padding):
    image = torch.randn(1, 2, 5, 5)
    grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 5), torch.linspace(-1, 1, 5), indexing="xy"), -1)[None]
    for grid in (grid, torch.randn(1, 6, 7, 2) * 1.5): # exactly on pixels and the border; inside and outside
        check_gradients(lambda i, g: F.grid_sample(i, g, padding_mode=padding, align_corners=True), image, grid, tolerance=1e-4)
    for align in (True, False):
        check_gradients(lambda i, g: F.grid_sample(i, g, padding_mode=padding, align_corners=align), torch.randn(1, 2, 3, 4, 5), torch.randn(1, 3, 4, 5, 3) * 1.5, tolerance=1e-4)


@pytest.mark.parametrize("channels, results, groups, kernel, stride", [(32, 48, 2, 3, 1), (48, 48, 3, 5, 2), (34, 32, 2, 1, 1), (8, 16, 4, 3, 1), (6, 12, 6, 3, 2), (64, 40, 1, 3, 1)])
def test_gradients_of_convolutions(channels, results, groups, kernel, stride):
    weight = torch.randn(results, channels // groups, kernel, kernel)
    check_gradients(lambda x, w: F.conv2d(x, w, None, stride, kernel // 2, 1, groups), torch.randn(3, channels, 17, 14), weight)
    if kernel == 3:
        volume = torch.randn(results, channels // groups, 2, kernel, kernel)
        check_gradients(lambda x, w: F.conv3d(x, w, None, stride, (1, 1, 0), 1, groups), torch.randn(2, channels, 5, 13, 10), volume)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_in_half_precision(dtype):
    """PyTorch's metadata gives running statistics and gradients of f32 parameters in f32."""
    models = [nn.BatchNorm1d(8).to(dtype) for _ in range(2)]
    x = torch.randn(16, 8).to(dtype)
    same(torch.compile(models[1], backend="tc")(x), models[0](x), 1e-2)
    same(list(models[1].state_dict().values()), list(models[0].state_dict().values()), 1e-2)
    for norm in (nn.LayerNorm(8), nn.GroupNorm(2, 8)):
        models = [nn.Sequential(nn.Linear(8, 8), norm, nn.Linear(8, 8)) for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        models[1] = copy.deepcopy(models[1])
        for model, run in zip(models, (models[0], torch.compile(models[1], backend="tc"))):
            with torch.autocast(DEVICE, dtype):
                y = run(x.float())
            y.float().square().sum().backward()
        same([p.grad for p in models[1].parameters()], [p.grad for p in models[0].parameters()], 3e-2)


def test_autocast():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block(dropout=0.0)

        def forward(self, x):
            with torch.autocast(DEVICE, torch.bfloat16):
                return self.block(x).float()

    trains(Half, torch.randn(4, 7, 32), tolerance=3e-2, steps=2)


def test_inference_and_freezing():
    model = convolutions().eval()
    x = torch.randn(4, 3, 8, 8)
    with torch.no_grad():
        expected = model(x)
        for freezing in (False, True):
            compiled = torch.compile(model, backend="tc", options={"freezing": freezing})
            same(compiled(x), expected)
            torch._dynamo.reset()
        compiled = torch.compile(model, backend="tc", options={"freezing": True})
        compiled(x)
        model[-1].bias += 1 # is not seen
        same(compiled(x), expected)
        same(torch.compile(model, backend="tc")(x), expected + 1)


@pytest.fixture
def packed(monkeypatch):
    """How often programs have packed their weights."""
    from tc_compiler.dynamo import segment

    class Counting:
        def __getattr__(self, name):
            if name == "tc_run_at":
                calls.append(name)
            return getattr(lib, name)

    calls, lib = [], segment.lib
    monkeypatch.setattr(segment, "lib", Counting())
    return calls


needs_packing = pytest.mark.skipif(DEVICE != "cpu", reason="programs of GPUs read weights in each call")


@needs_packing
def test_weights_are_packed_once_and_after_a_change(packed):
    model, other = convolutions().eval(), convolutions().eval()
    x = torch.randn(2, 3, 8, 8)
    compiled = torch.compile(model, backend="tc")
    weight = model[0].weight

    def agree(times, mode=torch.no_grad):
        with mode():
            for _ in range(3):
                same(compiled(x), model(x))
        assert len(packed) == times, packed

    agree(1)
    with torch.no_grad():
        weight.add_(1)
    agree(2)
    model.load_state_dict(other.state_dict())
    agree(3)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).sum().backward()
    optimiser.step()
    agree(4)
    with torch.no_grad():
        model[0].weight.data = torch.randn_like(weight)
    agree(5)
    model[0].weight.data.mul_(2) # nothing counts it
    agree(6)
    model[0].weight = nn.Parameter(torch.randn_like(weight))
    same(compiled(x), model(x)) # with gradients: another graph, which packs nothing
    agree(7)
    with torch.no_grad():
        model[-1].bias.zero_() # is read where it is, or packed
        same(compiled(x), model(x))
    with torch.inference_mode():
        same(compiled(x), model(x))
        before = len(packed)
        model[0].weight.add_(1)
        same(compiled(x), model(x))
        same(compiled(x), model(x))
    assert len(packed) == before + 1


@needs_packing
def test_weights_without_versions_are_packed_in_each_call(packed):
    with torch.inference_mode():
        model = convolutions().eval()
        x = torch.randn(2, 3, 8, 8)
        compiled = torch.compile(model, backend="tc")
        for times in range(1, 4):
            same(compiled(x), model(x))
            assert len(packed) == times
            model[0].weight[1, 2, 0, 1] += 1 # one element


@needs_packing
def test_weights_of_two_programs_and_threads(packed):
    model = convolutions().eval()
    inputs = [torch.randn(2, 3, 8, 8), torch.randn(3, 3, 8, 8)]
    programs = [torch.compile(model, backend="tc", dynamic=False), torch.compile(lambda x: model(x) * 2, backend="tc", dynamic=False)]
    failures = []

    def call(times):
        try:
            with torch.no_grad():
                for _ in range(times):
                    for x in inputs:
                        same(programs[0](x), model(x))
                        same(programs[1](x), model(x) * 2)
        except BaseException as error: # noqa: BLE001 - asserts of another thread
            failures.append(error)

    for _ in range(2):
        call(1)
        threads = [threading.Thread(target=call, args=(5,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        with torch.no_grad():
            model[0].weight.mul_(-1)


@needs_packing
def test_weights_that_are_packed_in_each_call(packed):
    model, x = convolutions().eval(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        same(torch.compile(model, backend="tc", options={"prepack": False})(x), model(x))
    assert not packed


def test_freezing_of_several_objects():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x)

    x, models = torch.randn(2, 4), [Model() for _ in range(3)]
    with torch.no_grad():
        for model in models:
            same(torch.compile(model, backend="tc", options={"freezing": True})(x), model(x))
        compiled = torch.compile(models[0], backend="tc", options={"freezing": True})
        models[0].linear.weight = nn.Parameter(torch.randn(4, 4))
        same(compiled(x), models[0](x))
        product = torch.compile(lambda x, w: x * w, backend="tc", options={"freezing": True})
        for _ in range(2):
            weight = nn.Parameter(torch.randn(4))
            same(product(x, weight), x * weight)


def test_layouts_of_inputs_and_outputs():
    x = torch.randn(2, 3, 5, 7)
    check(lambda x: F.relu(x) * 2, x.to(memory_format=torch.channels_last), strides=True)
    check(lambda x: x.permute(0, 2, 3, 1).relu().permute(0, 3, 1, 2) + 1, x)
    for given in (x.transpose(1, 3), x[:, :, ::2], x[:, 1:], x[..., 0], x.as_strided((2, 3, 2), (105, 35, 1), 3), torch.randn(4, 1).expand(4, 6), torch.randn(3, 1, 5)):
        compiled = torch.compile(lambda x: (x.exp().sum(0), x * 2), backend="tc", fullgraph=True)
        same(compiled(given), (given.exp().sum(0), given * 2))
        torch._dynamo.reset()


def test_results_that_show_inputs_or_each_other():
    def function(x, y):
        z = x + y
        return z.t(), z, z.view(-1), x.t(), x, y[1:], z.detach(), z[0]

    check(function, torch.randn(4, 4), torch.randn(4, 4))
    check(lambda x: (x.view(-1), x.view(2, 8)[1]), torch.randn(4, 4)) # no program
    check(lambda x: x.view(torch.int32) + 1, torch.randn(4, 4))


@pytest.mark.parametrize("dynamic", [False, True])
def test_parts_of_inputs_and_results(dynamic):
    def function(x):
        y = x * 2
        return *x.chunk(2, 1), x.split([1, x.shape[0] - 1])[1], y.t(), y[1:3], y.split(2)[0], *[t + 1 for t in x.unbind(1)[:2]]

    compiled = torch.compile(function, backend="tc", dynamic=dynamic, fullgraph=True)
    for n in (4, 7):
        for x in (torch.randn(n, n + 1), torch.randn(n, n + 1, requires_grad=True)):
            actual, expected = compiled(x), function(x)
            same(actual, expected)
            assert [t.stride() for t in actual] == [t.stride() for t in expected]
            actual, expected = [t.detach() for t in actual], [t.detach() for t in expected]
            for results in (actual, expected): # they show each other
                results[4].mul_(3)
                results[5].add_(1)
            same(actual, expected)


def test_updates_of_inputs():
    def function(x, y):
        x.add_(y)
        y[1:] *= 2
        return x * y

    check(function, torch.randn(4, 4), torch.randn(4, 4))
    check(lambda x: x.t().mul_(3) if x.t().mul_(3) is None else x, torch.randn(3, 4))


def test_gradients_with_what_buffers_were_before_their_update():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4))
            self.register_buffer("scale", torch.ones(4, 4))

        def forward(self, x):
            y = x * self.scale.clone().t() * self.weight
            with torch.no_grad():
                self.scale.add_(1)
            return y * (self.scale[1] * 2)

    trains(Model, torch.randn(4, 4))


def test_random_numbers_are_eagers():
    def function(x):
        a = torch.rand(3, 4, device=DEVICE) + torch.randn_like(x)
        b = F.dropout(a.relu(), 0.4) * torch.randint(0, 5, (3, 4), device=DEVICE)
        c = torch.bernoulli(torch.sigmoid(b)) + torch.rand_like(b)
        return F.rrelu(c, training=True), torch.multinomial(torch.softmax(c, 1), 2), torch.randperm(6, device=DEVICE)

    check(function, torch.randn(3, 4))


def test_sizes_that_depend_on_data():
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    torch._dynamo.config.capture_scalar_outputs = True
    try:
        check(lambda x: (x[x > 0] * 2 + 1, torch.nonzero(x).sum()), torch.randn(5, 6))
        check(lambda x, n: x.exp() * n.item(), torch.randn(5), torch.tensor(3))
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False
        torch._dynamo.config.capture_scalar_outputs = False


def test_what_is_not_supported_is_eagers(caplog):
    def function(x):
        y = torch.special.bessel_j0(x.exp()) * 2
        return torch.linalg.eigvals(y).abs().sort().values + y.sum(0)

    with caplog.at_level(logging.INFO, "tc_compiler.dynamo"):
        check(function, torch.rand(4, 4))
    assert counters["eager"] == 2 and counters["programs"] == 3
    assert "PyTorch runs aten.special_bessel_j0.default: " in caplog.text
    torch._dynamo.reset()
    with pytest.raises(Exception, match="special_bessel_j0"):
        check(function, torch.rand(4, 4), fallback=False)


def test_small_programs():
    check(lambda x: torch.special.bessel_j0(x + 1) * 2, torch.rand(4), least_operators=2)
    assert counters["programs"] == 0


@pytest.mark.parametrize("name, more", [("flash", (0.0, True, False)), ("efficient", (None, False, 0.0, True)), ("cudnn", (None, False, 0.0, True, False))])
def test_attention_of_gpus(name, more):
    """Operators that only GPUs have: what becomes of their nodes."""
    from tc_compiler.dynamo.prepare import join_attention

    target = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention").default
    for keys, dropout, uses, is_joined in ((7, 0.0, [0], True), (8, 0.0, [0], False), (7, 0.5, [0], False), (7, 0.0, [0, 1], False)):
        graph, q, k = torch.fx.Graph(), torch.empty(2, 3, 7, 16, device="meta"), torch.empty(2, 3, keys, 16, device="meta")
        given = [graph.placeholder(n) for n in "qkv"]
        for node, value in zip(given, (q, k, k)):
            node.meta["val"] = value
        node = graph.call_function(target, (*given, *[dropout if isinstance(m, float) else m for m in more]), {"scale": 0.3})
        node.meta["val"] = (q, q[..., 0])
        parts = [graph.call_function(operator.getitem, (node, i)) for i in uses]
        graph.output(tuple(parts))
        join_attention(graph)
        joined = [n for n in graph.nodes if n.target is torch.ops.aten.scaled_dot_product_attention.default]
        assert bool(joined) is is_joined
        if is_joined:
            assert joined[0].args == (*given, None, 0.0, True) and joined[0].kwargs == {"scale": 0.3} and joined[0].meta["val"] is q


def test_custom_operators():
    @torch.library.custom_op("tctest::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    check(lambda x: twice(x + 1) + 1, torch.randn(3))

    @torch.library.custom_op("tctest::fill", mutates_args=("x",))
    def fill(x: torch.Tensor) -> None:
        x.fill_(3)

    def function(x):
        y = x * 2
        fill(y)
        z = y + x
        fill(x)
        return z, x + y

    check(function, torch.randn(3))


def elements(value):
    return value.resolve_conj().resolve_neg().clone()


def test_lazy_conjugates_and_negatives():
    """What PyTorch keeps as a bit of a tensor is computed wherever a program reads the memory."""
    z, b = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64)
    negative = torch._neg_view(torch.randn(3))
    for function, inputs in {
        lambda x: (x * 2, x.T, x[1:] + 1): [z, z.conj(), z.mH, z.conj()[:, ::2]],
        lambda x: x + 1: [negative, -negative, z.conj().imag, torch._efficientzerotensor(3)],
        lambda x: (x.conj().imag * 2, -x.conj().imag, (x + 1).conj().imag): [z, z.conj()],
        lambda x: x @ b.mH: [z, z.conj()],
        lambda x: x.conj()[x.abs() > 1] * 2: [z, z.conj()],
    }.items():
        compiled = torch.compile(function, backend="tc")
        for x in inputs:
            same(compiled(x), function(x))
    for x in (z.clone(), z.clone()):
        torch.compile(lambda x: x.mul_(2j), backend="tc")(x.conj())
        same(x, elements((z.conj() * 2j).conj()))


@pytest.mark.parametrize("freezing", [False, True])
def test_lazy_parameters_and_buffers(freezing):
    module = nn.Module()
    module.w, z = nn.Parameter(torch.randn(3, dtype=torch.complex64).conj()), torch.randn(3, dtype=torch.complex64)
    module.register_buffer("b", torch.randn(3, dtype=torch.complex64).conj())
    module.forward = lambda x: x * module.w + module.b
    with torch.no_grad():
        compiled = torch.compile(module, backend="tc", options={"freezing": freezing})
        for _ in range(2):
            same(compiled(z), module(z))


def test_lazy_gradients():
    for make, lazy in ((lambda: torch.randn(3, dtype=torch.complex64), torch.conj), (lambda: torch.randn(3), torch._neg_view)):
        x, gradient, found = make(), make(), []
        for function in (lambda x: x * x.abs(), torch.compile(lambda x: x * x.abs(), backend="tc")):
            given = x.clone().requires_grad_()
            for g in (gradient, lazy(gradient)): # which nothing guards
                function(given).backward(g)
            found.append(given.grad)
        same(elements(found[1]), elements(found[0]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.uint8, torch.bool, torch.complex64])
def test_dtypes(dtype):
    x = torch.randint(0, 2, (3, 5)).to(dtype)
    check(lambda x: (x.flip(0), torch.cat([x, x]), x != 0, x & x if not dtype.is_floating_point and not dtype.is_complex else x * x), x, tolerance=1e-2 if dtype.itemsize == 2 else 1e-5)


def test_types_that_tc_lacks():
    check(lambda x: (x.to(torch.complex32).to(torch.complex64) * 2, x + 1), torch.randn(3, dtype=torch.complex64), tolerance=1e-2)


def test_sizes_zero_and_one_and_numbers():
    for shape in ((0, 4), (1, 4), (1, 1), ()):
        check(lambda x: (x * 2, x.sum(), x.reshape(-1)), torch.randn(shape))
    check(lambda x, n, f: (x * n + f, n + 1, f), torch.randn(3), 4, 0.5)
    check(lambda x: (x + 1, None, 7, x.shape[0]), torch.randn(3))
    check(lambda x: x * float("inf") + torch.tensor([float("nan"), 1.0, 2.0], device=DEVICE), torch.randn(3))


def test_dynamic_sizes():
    compiled = torch.compile(lambda x, y: (torch.cat([x, y]).softmax(0), x[: x.shape[0] // 2] * x.shape[0], torch.arange(x.shape[0] * 2, device=DEVICE)), backend="tc", dynamic=True, fullgraph=True)
    for n, m in ((4, 3), (9, 2), (5, 5), (1, 3), (0, 2), (9, 2)):
        x, y = torch.randn(n, 3), torch.randn(m, 3)
        same(compiled(x, y), (torch.cat([x, y]).softmax(0), x[: n // 2] * n, torch.arange(2 * n)))
    compiled = torch.compile(lambda n, x: torch.zeros(n, device=DEVICE) + x, backend="tc", dynamic=True, fullgraph=True)
    for n in (3, 8, 5):
        same(compiled(n, torch.tensor(2.0)), torch.full((n,), 2.0))


@pytest.mark.skipif(DEVICE != "cpu", reason="runs on GPUs do not wait for checks")
def test_indices_out_of_range():
    functions = [lambda x, i: F.embedding(i, x), lambda x, i: F.cross_entropy(x, i), lambda x, i: x.index_add(0, i, torch.ones(1, 4)), lambda x, i: x.gather(1, i[:, None])]
    for function in functions:
        torch._dynamo.reset()
        x, compiled = torch.randn(1, 4), torch.compile(function, backend="tc", fullgraph=True)
        same(compiled(x, torch.tensor([0])), function(x, torch.tensor([0])))
        with pytest.raises(RefusedError, match="an index is outside of"):
            compiled(x, torch.tensor([9]))
    check(lambda x, i: F.cross_entropy(x, i), torch.randn(3, 4), torch.tensor([1, -100, 3])) # nothing is read for what is ignored
    for options in ({"check_bounds": False}, {"arguments": {"check_bounds": False}}):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, i: F.embedding(i, x) * 1, backend="tc", options=options)
        same(compiled(torch.arange(3.0)[:, None], torch.tensor([9])), torch.tensor([[2.0]]))
    with pytest.raises(Exception, match="check_bounds must be True, False or None"):
        torch.compile(lambda x: x + 1, backend="tc", options={"check_bounds": 1})(torch.ones(2))


def test_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        x, i = torch.ones(3), torch.arange(3)
        functions = [lambda x, i: x * torch.ones(3, device=DEVICE) + torch.full((3,), 1.5, device=DEVICE), lambda x, i: torch.linspace(0, 1, 3, device=DEVICE) + torch.arange(0.0, 3.0, device=DEVICE),
                     lambda x, i: torch.eye(3, device=DEVICE) @ x, lambda x, i: (i > 1) * 1.5, lambda x, i: i / 3, lambda x, i: i.sqrt(), lambda x, i: torch.where(i > 1, 1.0, 0.1)]  # fmt: skip
        for function in functions:
            torch._dynamo.reset()
            same(torch.compile(function, backend="tc", fullgraph=True, options={"fallback": False})(x, i), function(x, i), 1e-14)
    finally:
        torch.set_default_dtype(torch.float32)


def test_numbers_that_are_no_sizes():
    functions = [lambda x, n: x * n + (n - 1), lambda x, n: x.roll(n, 0) + 1, lambda x, n: x[:, :n] * 2, lambda x, n: torch.full((3,), n, device=DEVICE) + x[0]]
    for function in functions:
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="tc", fullgraph=True)
        for n in (2, 3, -1, 0, -7, 10**11): # the second one makes it a symbol
            x = torch.randn(4, 3)
            same(compiled(x, n), function(x, n))


def test_sizes_that_floats_compute():
    compiled = torch.compile(lambda x: F.interpolate(x, scale_factor=1.5) * 2, backend="tc", dynamic=True, fullgraph=True)
    for n in (5, 8, 3):
        x = torch.randn(2, 3, n)
        same(compiled(x), F.interpolate(x, scale_factor=1.5) * 2)


def test_layouts_that_a_size_of_one_hides():
    def function(x):
        return torch.special.bessel_j0(x.permute(0, 2, 1)) * 2, x.transpose(1, 2).relu()

    with torch.fx.experimental._config.patch(backed_size_oblivious=True):
        compiled = torch.compile(function, backend="tc")
        for n in (1, 4, 7):
            for x in (torch.randn(2, n, 3), torch.randn(2, 3, n).transpose(1, 2)):
                torch._dynamo.mark_dynamic(x, 1)
                same(compiled(x), function(x))


def test_optimisers():
    for make in (lambda p: torch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True), lambda p: torch.optim.RMSprop(p), lambda p: torch.optim.Adagrad(p)):
        torch._dynamo.reset()
        models = [nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)) for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        optimisers = [make(m.parameters()) for m in models]
        steps = [optimisers[0].step, torch.compile(optimisers[1].step, backend="tc")]
        for _ in range(3):
            x = torch.randn(4, 5)
            for model, optimiser, step in zip(models, optimisers, steps):
                optimiser.zero_grad()
                model(x).square().mean().backward()
                step()
        same(list(models[1].parameters()), list(models[0].parameters()))


def test_checkpoints_and_higher_order_operators():
    from torch.utils.checkpoint import checkpoint

    class Checked(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=False)

    trains(Checked, torch.randn(2, 7, 32))
    check(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() * 2, (x,)), torch.randn(3))


def test_training_through_branches():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 3))

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x @ self.weight, lambda x: x @ self.weight.t(), (x,))

    trains(Branch, torch.randn(3, 3))


def test_second_derivatives_and_functions_of_torch_func():
    check(torch.func.grad(lambda x: x.sin().square().sum()), torch.randn(5))
    check(torch.func.vmap(lambda x: x @ x.t()), torch.randn(3, 4, 4))


def test_threads_and_leaks():
    compiled = torch.compile(lambda x: (x @ x).relu() + 1, backend="tc")
    x = torch.randn(64, 64)
    expected = compiled(x)
    wrong = []

    def work():
        for _ in range(50):
            if not torch.equal(compiled(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        compiled(x)
    gc.collect()
    assert len(gc.get_objects()) < before + 50


@pytest.mark.skipif(DEVICE != "cpu" or "OpenMP" not in torch.__config__.parallel_info(), reason="threads of OpenMP are CPUs'")
def test_programs_run_in_pytorchs_threads():
    had = torch.get_num_threads()

    def own_threads():
        gc.collect()
        return sum(open(f"/proc/self/task/{task}/comm").read().startswith("tcrt-") for task in os.listdir("/proc/self/task"))

    try:
        torch.set_num_threads(3)
        x = torch.randn(1000, 1000)
        compiled = torch.compile(lambda x: x.exp() @ x, backend="tc")
        own = torch.compile(lambda x: x.cos() @ x, backend="tc", options={"threads": 2})
        expected = x.exp() @ x
        before = own_threads() # of other tests
        for _ in range(3):
            same(compiled(x), expected)
        assert own_threads() == before
        for _ in range(2):
            same(own(x), x.cos() @ x)
        assert own_threads() == before + 1
        torch.set_num_threads(1) # the compiled graph keeps its number
        same(compiled(x), expected)
    finally:
        torch.set_num_threads(had)


def test_forks():
    compiled = torch.compile(lambda x: x * 2 + 1, backend="tc")
    x = torch.randn(5)
    compiled(x)
    if DEVICE == "cpu":
        large = torch.randn(600, 600)
        shared = torch.compile(lambda x: x.exp() @ x, backend="tc")
        expected = shared(large) # by threads that the child does not have
    child = os.fork()
    if not child:
        is_right = False
        try:
            if DEVICE == "cpu":
                is_right = torch.equal(compiled(x), x * 2 + 1) and bool((shared(large).numpy() == expected.numpy()).all()) # PyTorch's operators would hang
            else: # where PyTorch itself does nothing in forks; what ends there must leave the GPU alone
                del compiled
                torch._dynamo.reset()
                gc.collect()
                is_right = True
        finally:
            os._exit(not is_right)
    assert os.waitpid(child, 0)[1] == 0


def test_options():
    with pytest.raises(Exception, match="there is no option freezin; options are freezing, mode"):
        torch.compile(lambda x: x + 1, backend="tc", options={"freezin": True})(torch.ones(2))
    with pytest.raises(Exception, match='there is no mode "fast"; modes are default'):
        torch.compile(lambda x: x + 1, backend="tc", options={"mode": "fast"})(torch.ones(2))
    for wrong, sentence in (({"threads": -1}, "threads must be a number from 0, but is -1"), ({"threads": "2"}, "threads must be a number from 0, but is '2'"),
                            ({"least_operators": None}, "least_operators must be a number"), ({"fallback": "no"}, "fallback must be True or False"),
                            ({"arguments": 3}, "arguments must be a dict of options of tc-compile, but is 3"), ({"mode": ["x"]}, "there is no mode")): # fmt: skip
        torch._dynamo.reset()
        with pytest.raises(Exception, match=sentence):
            torch.compile(lambda x: x + 1, backend="tc", options=wrong)(torch.ones(2))
    with pytest.raises(Exception, match="precison"):
        torch.compile(lambda x: x + 1, backend="tc", options={"arguments": {"precison": "bf16"}})(torch.ones(2))
    same(torch.compile(lambda x: x + 1, backend=tc, mode="max-autotune", options=None)(torch.ones(2)), torch.full((2,), 2.0))


def test_precision_that_is_chosen():
    """auto:R goes by the weights, which programs hold only where they are frozen."""
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval(), torch.randn(4, 64)
    for options in ({"precision": "auto:0.01"}, {"precision": ["auto:0.01"], "freezing": True}, {"arguments": {"precision": "auto:0.01"}}):
        torch._dynamo.reset()
        with pytest.raises(Exception, match='"auto:R" is chosen by the errors .* add the option freezing'):
            torch.compile(model, backend="tc", options=options)(x) # with gradients
    torch._dynamo.reset()
    with torch.inference_mode():
        same(torch.compile(model, backend="tc", options={"precision": "auto:0.01", "freezing": True})(x), model(x), tolerance=0.05)


def test_cache(tmp_path):
    for _ in range(2):
        torch._dynamo.reset()
        check(lambda x: x.exp() + 1, torch.randn(5), cache=str(tmp_path))
    assert any(tmp_path.iterdir())


@needs_gpu
def test_values_of_several_devices():
    scale, row, x = torch.tensor(2.0, device="cpu"), torch.randn(4, device="cpu"), torch.randn(4, 4, device="cuda")

    def function(x, scale, row):
        return (x * scale + row.to("cuda")).relu(), (x.sum() * scale).cpu() + 1, row * 2

    expected = function(x, scale, row)
    actual = torch.compile(function, backend="tc")(x, scale, row)
    same(actual, expected)
    assert [t.device for t in actual] == [t.device for t in expected]


@needs_gpu
def test_streams_of_the_caller():
    x = torch.randn(512, 512, device="cuda")
    compiled = torch.compile(lambda x: (x @ x).relu() + 1, backend="tc")
    compiled(x)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for i in range(30):
        with torch.cuda.stream(streams[i % 3]):
            streams[i % 3].wait_stream(torch.cuda.default_stream())
            y = x * (i + 1)
            z = compiled(y) * 2
        streams[i % 3].synchronize()
        same(z, ((y.double() @ y.double()).relu() + 1).float() * 2)


@needs_gpu
@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes_of_gpus(mode):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)) for _ in range(3)]).cuda()
    with torch.no_grad():
        compiled = torch.compile(model, backend="tc", mode=mode)
        inputs = [torch.randn(8, 64, device="cuda") for _ in range(4)]
        for result, x in [(compiled(x), x) for x in inputs]: # earlier results stay what they are
            same(result, model(x))


@needs_gpu
def test_tf32_where_pytorch_may():
    x, y = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
    compiled, exact, errors = torch.compile(lambda x, y: x @ y, backend="tc"), x.double() @ y.double(), []
    for torch.backends.cuda.matmul.allow_tf32 in (True, False):
        errors.append(float((compiled(x, y) - exact).abs().max() / exact.abs().max()))
    assert errors[0] > 1e-5 > errors[1]


@needs_gpu
def test_training_with_scaled_gradients():
    models = [convolutions().cuda(), None]
    models[1] = copy.deepcopy(models[0])
    runs, optimisers = [models[0], torch.compile(models[1], backend="tc")], [torch.optim.SGD(m.parameters(), 1e-2) for m in models]
    scalers = [torch.amp.GradScaler("cuda", init_scale=256.0) for _ in models] # at which nothing overflows
    for step in range(25):
        x, target, losses = torch.randn(6, 3, 8, 8, device="cuda"), torch.randint(0, 5, (6,), device="cuda"), []
        for run, optimiser, scaler in zip(runs, optimisers, scalers):
            torch.manual_seed(step)
            optimiser.zero_grad()
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(run(x), target)
            scaler.scale(loss).backward()
            scaler.step(optimiser)
            scaler.update()
            losses.append(loss.detach())
        same(losses[1], losses[0], 2e-2)
