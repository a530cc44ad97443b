# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training artifacts beside PyTorch: losses, states, evaluation, saved states, the C program.

usage: PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python/test_training.py      needs PyTorch; skipped without
"""
import copy
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tc_compiler as tc

torch = pytest.importorskip("torch")
from torch import nn # noqa: E402


def convolutions():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10))


class Transformer(nn.Module):
    def __init__(self, width=32, heads=4, words=50, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(9, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.layers(self.words(tokens) + self.places[: tokens.shape[1]], mask=mask, is_causal=True))


def next_word(logits, tokens):
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def images(n=16):
    return torch.randn(n, 1, 8, 8), torch.randint(0, 10, (n,))


def follows(module, make, loss, draw, steps=20, tolerance=1e-4, compares_states=True):
    """The artifact's losses and states beside PyTorch's."""
    optimizer = make(module.parameters())
    artifact = tc.compile_training(module, loss, optimizer, draw())
    for _ in range(steps):
        x, target = draw()
        optimizer.zero_grad()
        expected = loss(module(x), target)
        expected.backward()
        optimizer.step()
        assert artifact.step(x, target) == pytest.approx(float(expected.detach()), abs=tolerance)
    states = artifact.state_dict()
    for name, value in module.state_dict().items() if compares_states else ():
        np.testing.assert_allclose(states[name], value.numpy(), rtol=1e-3, atol=1e-3 * float(value.abs().max()) + 1e-6, err_msg=name)
    return artifact


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3, amsgrad=True, weight_decay=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5, centered=True),
    "nadam": lambda p: torch.optim.NAdam(p),
    "groups": lambda p: torch.optim.AdamW([{"params": (q := list(p))[:1], "lr": 1e-2, "weight_decay": 0.0}, {"params": q[1:]}], lr=1e-3),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_optimisers(kind):
    module = convolutions()
    artifact = follows(module, OPTIMIZERS[kind], nn.CrossEntropyLoss(), images)
    x, _ = images()
    with torch.no_grad():
        np.testing.assert_allclose(artifact.evaluate(x)[0], module.eval()(x).numpy(), rtol=1e-3, atol=1e-3)
    module.train()


SCHEDULED = {
    **OPTIMIZERS,
    "adamax": lambda p: torch.optim.Adamax(p),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5), # makes a number of its rate, as rmsprop does
}


@pytest.mark.parametrize("kind", SCHEDULED)
def test_learning_rates(kind):
    """Rates that a scheduler of PyTorch gives, step by step."""
    torch.manual_seed(1)
    module, loss = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), nn.MSELoss()
    optimizer = SCHEDULED[kind](module.parameters())
    given = [group["lr"] for group in optimizer.param_groups]
    artifact = tc.compile_training(module, loss, optimizer, (torch.randn(5, 6), torch.randn(5, 3)))
    assert artifact.learning_rates == given
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
    for _ in range(8):
        x, target = torch.randn(5, 6), torch.randn(5, 3)
        optimizer.zero_grad()
        expected = loss(module(x), target)
        expected.backward()
        artifact.learning_rates = schedule.get_last_lr()
        assert artifact.step(x, target) == pytest.approx(float(expected.detach()), abs=1e-5)
        optimizer.step()
        schedule.step()
    states = artifact.state_dict()
    assert states["optimizer.lr"].dtype == np.float64
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(states[name], value.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
    artifact.learning_rates = 0
    artifact.step(x, target)
    np.testing.assert_array_equal(artifact.state_dict()["0.weight"], states["0.weight"])
    with pytest.raises(tc.RefusedError, match=f"a learning rate for each group of parameters, {len(given)} in all, but 3 were given"):
        artifact.learning_rates = [1.0, 2.0, 3.0]
    artifact.reset()
    assert artifact.learning_rates == given


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "RAdam", "NAdam", "Adamax"])
def test_counts_of_steps_are_numbers_of_python(kind):
    """In f32 1 - beta ** step, and RAdam's differences of them, lose digits."""
    torch.manual_seed(2)
    module, loss = nn.Linear(6, 3), nn.MSELoss()
    before = {name: value.detach().clone() for name, value in module.named_parameters()}
    optimizer = getattr(torch.optim, kind)(module.parameters(), lr=0.01)
    artifact = tc.compile_training(module, loss, optimizer, (torch.randn(5, 6), torch.randn(5, 3)))
    for _ in range(12):
        x, target = torch.randn(5, 6), torch.randn(5, 3)
        optimizer.zero_grad()
        loss(module(x), target).backward()
        optimizer.step()
        artifact.step(x, target)
    states = artifact.state_dict()
    for name, value in module.state_dict().items():
        moved = (value - before[name]).numpy()
        np.testing.assert_allclose(states[name] - before[name].numpy(), moved, rtol=0, atol=2e-5 * np.abs(moved).max(), err_msg=name)
    assert states["optimizer.step.weight"].dtype == np.float32 # as state_dict has it


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.rnn, self.drop, self.head = nn.Embedding(20, 6), nn.GRU(6, 5, batch_first=True), nn.Dropout(0.0), nn.Linear(5, 20)

    def forward(self, tokens, scale):
        return self.head(self.drop(self.rnn(self.words(tokens))[0])) * scale


DYNAMIC = {
    "images": (convolutions, nn.CrossEntropyLoss(), True, lambda n, _: (torch.randn(n, 1, 8, 8), torch.randint(0, 10, (n,)))),
    "words": (Transformer, next_word, {"tokens": {0: "batch", 1: "length"}, "target_0": {0: "batch", 1: "length"}}, lambda n, m: (t := torch.randint(0, 50, (n, m)), t)),
    "steps": (Recurrent, lambda y, t: nn.functional.cross_entropy(y.flatten(0, 1), t.flatten()), True, lambda n, _: ((torch.randint(0, 20, (n, 4)), torch.tensor(1.5)), torch.randint(0, 20, (n, 4)))),
}


@pytest.mark.parametrize("kind", DYNAMIC)
def test_open_dims(kind):
    torch.manual_seed(1)
    make, loss, dynamic, draw = DYNAMIC[kind]
    module = make()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, eps=1e-4)
    artifact = tc.compile_training(module, loss, optimizer, draw(4, 7), dynamic=dynamic)
    for n, m in ((4, 7), (3, 5), (1, 9), (8, 3), (2, 8)):
        inputs, target = draw(n, m)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        optimizer.zero_grad()
        expected = loss(module(*inputs), target)
        expected.backward()
        optimizer.step()
        assert artifact.step(*inputs, target) == pytest.approx(float(expected.detach()), abs=1e-5)
    module.eval()
    with torch.no_grad():
        np.testing.assert_allclose(artifact.evaluate(*inputs)[0], module(*inputs).numpy(), rtol=1e-3, atol=1e-4)
    states = artifact.state_dict()
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(states[name], value.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)
    with pytest.raises(tc.RefusedError):
        artifact.step(*inputs, target[:1]) # one size for each name
    if kind == "words": # places are a table of 9
        with pytest.raises(tc.RefusedError):
            artifact.step(*draw(2, 10))


def test_what_is_no_loss_or_optimizer():
    for loss, optimizer, sentence in ((None, OPTIMIZERS["sgd"], "loss is of type NoneType; give a function"), (nn.CrossEntropyLoss(), "adam", "optimizer is of type str; give one of torch.optim"),
                                      (nn.CrossEntropyLoss(), None, "optimizer is of type NoneType")):  # fmt: skip
        with pytest.raises(tc.InvalidError, match=sentence):
            tc.compile_training(convolutions(), loss, optimizer, images(2))


def test_open_dims_that_are_none():
    compile_with = lambda dynamic, module=None, n=16: tc.compile_training(module or convolutions(), nn.CrossEntropyLoss(), OPTIMIZERS["sgd"], images(n), dynamic=dynamic)
    for dynamic, sentence in (({"image": {0: "n"}}, 'there is no argument "image"; arguments are input, target'), ({"target": {1: "n"}}, r'"target" has no dim 1; its shape in the example is \[16\]'),
                              ({"input": {0: "n", 2: "n"}}, 'dim 2 of "input" is 8 in the example; give 2 or more along open dims, and the same along all of one name')): # fmt: skip
        with pytest.raises(tc.InvalidError, match=sentence):
            compile_with(dynamic)
    with pytest.raises(tc.InvalidError, match='dim 0 of "input" is 1 in the example'):
        compile_with(True, n=1)

    class Fixed(nn.Sequential):
        def forward(self, x):
            return super().forward(x + torch.zeros(16, 1, 1, 1))

    with pytest.raises(tc.InvalidError, match='works for the example\'s size of "batch", 16, alone'):
        compile_with(True, Fixed(*convolutions()))


def test_learning_rates_that_are_numbers():
    """An optimiser that neither takes a tensor nor moves by a multiple of its rate keeps that of the compile."""

    class Clipped(torch.optim.SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-min(float(group["lr"]), 0.01))

    module, x, target = nn.Linear(3, 2), torch.randn(4, 3), torch.randn(4, 2)
    artifact = tc.compile_training(module, nn.MSELoss(), Clipped(module.parameters(), lr=0.1), (x, target))
    gradient, = torch.autograd.grad(nn.MSELoss()(module(x), target), [module.bias])
    artifact.step(x, target)
    np.testing.assert_allclose(artifact.state_dict()["bias"], (module.bias - 0.01 * gradient).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert "optimizer.lr" not in artifact.state_dict()
    for use in (lambda: artifact.learning_rates, lambda: setattr(artifact, "learning_rates", 0.1)):
        with pytest.raises(tc.RefusedError, match="takes its learning rate as a number of the compile"):
            use()


def test_transformer():
    torch.manual_seed(1)
    module = Transformer()

    def draw():
        tokens = torch.randint(0, 50, (4, 9))
        return tokens, tokens

    # Keys' biases have no gradient but what rounding leaves, which a small eps would make as large as any.
    follows(module, lambda p: torch.optim.AdamW(p, lr=1e-3, eps=1e-4), next_word, draw)


def test_muon():
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this PyTorch has no Muon")
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 3, bias=False))
    follows(module, lambda p: torch.optim.Muon(p, lr=1e-2), nn.MSELoss(), lambda: (torch.randn(5, 6), torch.randn(5, 3)), tolerance=5e-2, compares_states=False) # computes in bf16


def test_interface(tmp_path):
    module = convolutions()
    before = copy.deepcopy(module.state_dict())
    x, target = images()
    path = tmp_path / "training.bin"
    artifact = tc.compile_training(module, nn.CrossEntropyLoss(), OPTIMIZERS["momentum"], (x, target), output=path, cpu="x86-64-v3")
    assert [f.name for f in artifact.functions.values()] == ["evaluate", "step"]
    assert [v.name for v in artifact.functions["step"].inputs] == ["input", "target"] and artifact.functions["step"].outputs[0].name == "loss"
    first = [artifact.step(x, target) for _ in range(3)]
    assert first[2] < first[0]
    for name, value in module.state_dict().items(): # which stays as it is
        assert torch.equal(value, before[name])
    states = artifact.state_dict()
    assert states["optimizer.momentum_buffer.0.weight"].any() and states["1.num_batches_tracked"] == 3
    module.load_state_dict({k: torch.from_numpy(v) for k, v in states.items() if not k.startswith("optimizer.")})
    with torch.no_grad():
        np.testing.assert_allclose(artifact.evaluate(x)[0], module.eval()(x).numpy(), rtol=1e-4, atol=1e-4)
    # Others begin where the compile did, and go on where states come from.
    other = tc.load(path)
    assert isinstance(other, tc.TrainingArtifact)
    assert other.step(x, target) == first[0]
    other.load_state_dict(states)
    artifact.reset()
    assert artifact.step(x, target) == first[0]
    artifact.load_state_dict({k: v for k, v in module.state_dict().items()}) # of PyTorch
    np.testing.assert_array_equal(artifact.state_dict()["0.weight"], states["0.weight"])
    artifact.load_state_dict(states)
    assert artifact.step(x, target) == other.step(x, target)
    with pytest.raises(tc.RefusedError, match="there is no wrong; missing are 0.weight"):
        artifact.load_state_dict({"wrong": np.zeros(3)})
    with pytest.raises(tc.RefusedError, match=r'state "5.bias" is f32 \[10\], but was given float64 \[10\]'):
        artifact.load_state_dict({"5.bias": np.zeros(10)}, strict=False)
    with pytest.raises(tc.RefusedError, match="step takes input, target, but was given 1 arguments"):
        artifact.step(x)
    pytest.importorskip("safetensors")
    artifact.save_states(tmp_path / "states.safetensors")
    other.reset()
    other.load_states(tmp_path / "states.safetensors")
    assert artifact.step(x, target) == other.step(x, target)
    for wrong in (path, tmp_path / "none.safetensors"):
        with pytest.raises(tc.InvalidError, match=f"^{re.escape(os.fspath(wrong))}: error: the file holds no states that can be read"):
            other.load_states(wrong)
    with pytest.raises(tc.InvalidError, match="states: error: the states cannot be written"):
        artifact.save_states(tmp_path / "none" / "states")


def linear(dtype=torch.float32, **more):
    x, target = torch.randn(2, 4, dtype=dtype), torch.randn(2, 3, dtype=dtype)
    module = nn.Linear(4, 3).to(dtype)
    return tc.compile_training(module, nn.functional.mse_loss, lambda p: torch.optim.SGD(p, lr=0.1), ((x,), (target,)), **more), module, x, target


def test_refused_states_change_nothing():
    artifact, _, x, _ = linear()
    before = artifact.state_dict()
    for wrong in (np.zeros(9, np.float32), torch.zeros(3, device="meta"), np.zeros(3, np.dtype(np.float32).newbyteorder())):
        with pytest.raises(tc.RefusedError, match='state "bias" '):
            artifact.load_state_dict({"weight": before["weight"] + 7, "bias": wrong})
        np.testing.assert_array_equal(artifact.state_dict()["weight"], before["weight"])
    for rate in (np.float32(0.5), torch.tensor(0.5), np.array(0.5), torch.tensor([0.5]), 0.5):
        artifact.learning_rates = 0.1
        artifact.learning_rates = rate
        assert artifact.learning_rates == [0.5]
    for rate in (None, "much", ["much"]):
        with pytest.raises(tc.RefusedError, match="learning rates are a number, or one for each group"):
            artifact.learning_rates = rate


def test_states_of_types_that_numpy_lacks(tmp_path, monkeypatch):
    """They come from files without ml_dtypes."""
    safetensors = pytest.importorskip("safetensors.torch")
    artifact, module, _, _ = linear(torch.bfloat16, output=tmp_path / "training.bin")
    states = {name: torch.zeros_like(value.detach()) for name, value in module.state_dict().items()}
    safetensors.save_file(states, tmp_path / "states")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    artifact.load_states(tmp_path / "states")
    for index, _, dtype, shape in [s for s in artifact._states() if s[1] in states]:
        bits = np.ones(shape, np.uint16)
        tensor, _buffer = artifact._tensor(dtype, shape, bits)
        assert tc._tcrt.lib.tcrt_context_read_state(artifact._only_context(artifact.main).handle, index, tensor) == 0 and not bits.any()
    with pytest.raises(tc.RefusedError, match=r'state "bias" is bf16 \[3\], but was given float32 \[3\]'):
        artifact.load_state_dict({**states, "bias": np.zeros(3, np.float32)})


class Kinds(nn.Module):
    """Several inputs, a dict as output, tied, frozen and unused parameters, buffers that are updated, replaced, not persistent."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(20, 8, max_norm=1.0), nn.Linear(8, 20, bias=False)
        self.head.weight = self.words.weight
        self.frozen, self.unused = nn.Linear(8, 8), nn.Linear(3, 4)
        self.frozen.requires_grad_(False)
        self.norm = nn.BatchNorm1d(8)
        self.norm.eval()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.tensor(0.0), persistent=False)

    def forward(self, tokens, scale):
        x = self.words(tokens)
        if self.training:
            self.mean = self.mean * 0.9 + x.detach().mean((0, 1)) * 0.1
            self.calls += 1
        x = self.frozen(x - self.mean) * scale + self.calls
        return {"logits": self.head(self.norm(x.flatten(0, 1))), "all": (x, tokens)}


def test_kinds_of_parameters_and_buffers():
    torch.manual_seed(1)
    module = Kinds()

    def loss(made, target, weight):
        return (nn.functional.cross_entropy(made["logits"], target.flatten(), reduction="none") * weight).sum().reshape(1)

    draw = lambda: ((torch.randint(0, 20, (3, 5)), torch.tensor(1.5)), (torch.randint(0, 20, (3, 5)), torch.rand(15)))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, weight_decay=0.5)
    artifact = tc.compile_training(module, loss, optimizer, draw())
    for _ in range(5):
        inputs, targets = draw()
        optimizer.zero_grad()
        expected = loss(module(*inputs), *targets)
        expected.backward()
        optimizer.step()
        assert artifact.step(*inputs, *targets) == pytest.approx(float(expected.detach()), rel=1e-4)
    states = {n: torch.from_numpy(v) for n, v in artifact.state_dict().items()}
    assert states["tc.buffer.calls"] == 5
    own = {n: v for n, v in states.items() if not n.startswith(("optimizer.", "tc."))}
    assert list(sorted(own)) == sorted(module.state_dict())
    for name, value in module.state_dict().items():
        torch.testing.assert_close(own[name], value, rtol=1e-3, atol=1e-4)
    # Frozen parameters are states too, and one of two names that are tied is enough to set both.
    with torch.no_grad():
        module.frozen.weight.mul_(2)
        module.head.weight.mul_(0.5)
    artifact.load_state_dict(module.state_dict())
    x, scale = inputs
    module.eval()
    with torch.no_grad():
        np.testing.assert_allclose(artifact.evaluate(x, scale)[0], module(x, scale)["logits"], rtol=1e-3, atol=1e-4)


def test_bf16_and_what_functions_of_torch_func_lack():
    from torch.utils.checkpoint import checkpoint

    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.middle, self.last = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 6).bfloat16(), nn.Linear(6, 2)

        def forward(self, x):
            y = self.middle(self.rnn(x)[0][:, -1].bfloat16()).float() * 4
            for reentrant in (False, True):
                y = y + Round.apply(checkpoint(torch.tanh, y, use_reentrant=reentrant))
            return self.last(y)

    torch.manual_seed(1)
    module = Model()
    artifact = follows(module, lambda p: torch.optim.SGD(p, lr=1e-3), nn.MSELoss(), lambda: (torch.randn(3, 6, 4), torch.randn(3, 2)), steps=5, tolerance=5e-2, compares_states=False)
    artifact.load_state_dict(module.state_dict())
    weight = artifact.state_dict()["middle.weight"]
    assert weight.dtype.name == "bfloat16" and np.array_equal(weight.astype(np.float32), module.middle.weight.detach().float().numpy())


def test_factors():
    """PyTorch keeps factors for determinants of the transposed matrix where the matrix lies in a row."""

    class Gaussian(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5, 5) * 0.3 + 2 * torch.eye(5))

        def forward(self, x):
            return torch.linalg.solve(self.weight, x.mT).square().sum(0) + torch.linalg.slogdet(self.weight)[1] + torch.linalg.det(self.weight.mT) * 0.01

    torch.manual_seed(1)
    follows(Gaussian(), lambda p: torch.optim.SGD(p, lr=1e-2), nn.MSELoss(), lambda: (torch.randn(4, 5), torch.randn(4)), steps=5)


CTC = {
    "mean": {},
    "sum": {"reduction": "sum", "blank": 4},
    "impossible": {"zero_infinity": True, "reduction": "sum"}, # targets that are longer than the input
    "joined": {"zero_infinity": True}, # targets one after the other
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("kind", CTC)
def test_ctc(kind, dynamic):
    torch.manual_seed(1)
    module, loss = nn.Linear(6, 5), lambda y, t, n, m: nn.functional.ctc_loss(y.log_softmax(-1), t, n, m, **CTC[kind])
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)

    def draw(n):
        lengths, sizes = torch.randint(1 if kind == "impossible" else 9, 13, (n,)), torch.randint(0, 5, (n,))
        lengths[:2], sizes[:2] = torch.tensor([11, 1 if kind == "impossible" else 12]), torch.tensor([0, 4])
        targets = torch.randint(0, 4, (n, 4)) + (kind != "sum")
        targets[0] = targets[0, 0] # paths between equal labels pass a blank
        inside = torch.arange(4) < sizes[:, None]
        return torch.randn(12, n, 6), torch.where(inside, targets, -100), lengths, sizes # behind a target's end may be anything

    if kind == "joined": # their number is that of the lengths' sum
        fixed = torch.randint(1, 5, (9,)), torch.tensor([12, 7, 9]), torch.tensor([4, 2, 3])
        draw = lambda n: (torch.randn(12, 3, 6), *fixed)
    opened = {"input": {1: "n"}, "t": {0: "n"}, "n": {0: "n"}, "m": {0: "n"}} if kind != "joined" else {"input": {0: "length"}}
    x, *targets = draw(3)
    artifact = tc.compile_training(module, loss, optimizer, (x, tuple(targets)), dynamic=dynamic and opened)
    for n in (3, 3, 5, 2) if dynamic else (3, 3):
        x, *targets = draw(n)
        optimizer.zero_grad()
        expected = loss(module(x), *targets)
        expected.backward()
        optimizer.step()
        assert artifact.step(x, *targets) == pytest.approx(float(expected.detach()), rel=1e-5)
        np.testing.assert_allclose(artifact.state_dict()["weight"], module.weight.detach().numpy(), atol=1e-5)


def test_checkpoints_draw_once():
    """What a checkpoint computes again has the numbers of the first time: its gradient is that of the loss."""
    from torch.utils.checkpoint import checkpoint

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4000))

        def forward(self, x):
            return checkpoint(lambda x: nn.functional.dropout(x * self.scale, 0.5, self.training), x, use_reentrant=False)

    artifact = tc.compile_training(Model(), lambda y: y.sum(), lambda p: torch.optim.SGD(p, lr=1.0), (torch.ones(4000), ()))
    loss = artifact.step(torch.ones(4000))
    assert (1 - artifact.state_dict()["scale"]).sum() == pytest.approx(loss) # the gradient is the mask that the loss is the sum of


def test_refusals():
    x, target = images()
    with pytest.raises(tc.InvalidError, match="SGD with dampening is not supported"):
        tc.compile_training(convolutions(), nn.CrossEntropyLoss(), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1), (x, target))
    with pytest.raises(tc.InvalidError, match="LBFGS is not supported"):
        tc.compile_training(convolutions(), nn.CrossEntropyLoss(), torch.optim.LBFGS, (x, target))
    with pytest.raises(tc.InvalidError, match="parameters that are not the module's"):
        tc.compile_training(convolutions(), nn.CrossEntropyLoss(), torch.optim.SGD(convolutions().parameters(), lr=0.1), (x, target))
    with pytest.raises(tc.InvalidError, match=r"example is \(inputs, targets\)"):
        tc.compile_training(convolutions(), nn.CrossEntropyLoss(), OPTIMIZERS["sgd"], x)
    # By one or the other, as PyTorch's version has it.
    with pytest.raises(tc.InvalidError, match="takes a number or a size from a tensor's elements|Adafactor is not supported: "):
        tc.compile_training(convolutions(), nn.CrossEntropyLoss(), torch.optim.Adafactor, (x, target))
    with pytest.raises(tc.InvalidError, match="has no parameter that requires a gradient"):
        tc.compile_training(convolutions().requires_grad_(False), nn.CrossEntropyLoss(), OPTIMIZERS["sgd"], (x, target))
    for loss, what in ((nn.CrossEntropyLoss(reduction="none"), r"is float32 \[16\]"), (lambda y, t: y.sum().detach(), r"is float32 \[\], which does not"), (lambda y, t: None, "is a NoneType")):
        with pytest.raises(tc.InvalidError, match="the loss must be a tensor with one element .*" + what):
            tc.compile_training(convolutions(), loss, OPTIMIZERS["sgd"], (x, target))
    for make in (nn.Embedding, nn.EmbeddingBag):
        with pytest.raises(tc.InvalidError, match='the gradient of "weight" is sparse, which a compiled step does not have'):
            tc.compile_training(make(9, 4, sparse=True), lambda y: y.sum(), OPTIMIZERS["sgd"], (torch.randint(0, 9, (5, 3)), ()))
    for dynamic in (False, True):
        with pytest.raises(tc.InvalidError, match="aten.equal.default takes numbers or sizes from a tensor's elements, which a compiled step cannot do"):
            tc.compile_training(nn.Linear(6, 5), lambda y, t: y.sum() * (1 if torch.equal(t, t) else 2), OPTIMIZERS["sgd"], (torch.randn(3, 6), torch.ones(3)), dynamic=dynamic)
    with pytest.raises(tc.InvalidError, match="give tensors instead, such as the lengths of ctc_loss"):
        tc.compile_training(nn.Linear(6, 5), lambda y, t: nn.functional.ctc_loss(y.log_softmax(-1), t, (9, 8), (3, 2)), OPTIMIZERS["sgd"], (torch.randn(9, 2, 6), torch.randint(1, 5, (2, 4))))
    module = convolutions()
    module.register_buffer("part", module[1].running_mean[2:])
    with pytest.raises(tc.InvalidError, match='"1.running_mean", which a step changes, and "part" share memory'):
        tc.compile_training(module, nn.CrossEntropyLoss(), OPTIMIZERS["sgd"], (x, target))


@pytest.mark.parametrize("decay", [1.0, 0.95])
def test_without_python(tmp_path, decay):
    """The C program of examples/c follows PyTorch's losses for 100 steps, with constant and with falling learning rates."""
    module, loss = convolutions(), nn.CrossEntropyLoss()
    optimizer = OPTIMIZERS["adamw"](module.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, decay)
    tc.compile_training(module, loss, optimizer, images(), output=tmp_path / "training.bin")
    expected = []
    with open(tmp_path / "data.raw", "wb") as data:
        for _ in range(100):
            x, target = images()
            data.write(x.numpy().tobytes() + target.numpy().tobytes())
            optimizer.zero_grad()
            value = loss(module(x), target)
            value.backward()
            optimizer.step()
            schedule.step()
            expected.append(float(value.detach()))
    program = os.path.join(os.environ["TC_BIN"], "tc-sample-train")
    text = subprocess.run([program, tmp_path / "training.bin", tmp_path / "data.raw", *([str(decay)] if decay != 1 else [])], check=True, capture_output=True, text=True).stdout
    found = [float(x) for x in re.findall(r"loss (\S+)", text)]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    for arguments, sentence in (([], "usage: train"), (["none.bin", "none.raw"], "cannot read none.raw"), ([tmp_path / "data.raw", tmp_path / "data.raw"], "data.raw: error: ")):
        failed = subprocess.run([program, *arguments], capture_output=True, text=True)
        assert failed.returncode == 1 and sentence in failed.stderr


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_losses_of_types_without_python(tmp_path, dtype):
    _, module, x, target = linear(dtype, output=tmp_path / "training.bin")
    (tmp_path / "data.raw").write_bytes(b"".join(t.flatten().view(torch.uint8).numpy().tobytes() for t in (x, target)))
    command = [os.path.join(os.environ["TC_BIN"], "tc-sample-train"), tmp_path / "training.bin", tmp_path / "data.raw"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(text.split()[-1]) == pytest.approx(float(nn.functional.mse_loss(module(x), target).detach()), rel=2e-2)


def test_open_dims_without_python(tmp_path):
    linear(output=tmp_path / "training.bin", dynamic=True)
    (tmp_path / "data.raw").write_bytes(bytes(100))
    command = [os.path.join(os.environ["TC_BIN"], "tc-sample-train"), tmp_path / "training.bin", tmp_path / "data.raw"]
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.returncode == 4 and 'input "input" has sizes of any kind' in failed.stderr and len(failed.stderr.splitlines()) == 1
