# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""benchmarks/torch_compile.py: what it calls right, and what of a process that ended by a signal."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../benchmarks"))
import torch_compile  # noqa: E402

# Gives the peers, or ends as where memory is damaged while there are any; with "always" there or not.
CHILD = """
import json, os, sys
peers = sys.argv[sys.argv.index("--peers") + 1:sys.argv.index("--")]
if peers or "always" in sys.argv:
    print("free(): invalid next size", file=sys.stderr, flush=True)
    os.abort()
json.dump({"peers": peers}, open(sys.argv[-1], "w"))
"""


def test_a_peer_that_ends_the_process_takes_nothing_from_tc():
    command = [sys.executable, "-c", CHILD]
    assert torch_compile.measure_apart(command, [], {}) == {"peers": []}
    result = torch_compile.measure_apart(command, ["inductor"], {})
    assert result["peers"] == [] and "error" not in result
    assert result["ended"].startswith("with inductor in the process, signal 6: free(): invalid")
    result = torch_compile.measure_apart([*command, "always"], ["inductor"], {})
    assert result["error"].startswith("signal 6: free(): invalid") and "ended" in result


def test_errors_of_runs():
    assert torch_compile.is_within([9e-5], [1e-6], 1e-4)
    assert torch_compile.is_within([0.2, 6e-5, 0.1], [0.01, 0.2, 0.2], 1e-4)
    assert not torch_compile.is_within([0.2, 2e-3, 0.1], [5e-5, 0.2, 0.2], 1e-4) # never near
    assert not torch_compile.is_within([0.9, 6e-5, 0.1], [5e-5, 0.2, 0.2], 1e-4) # once too far
    assert torch_compile.is_within([0.9, 6e-5, 0.1], [5e-5, 0.2, 0.2], 1e-4, [0, 1.0])
    assert not torch_compile.is_within([0.9, 2e-3, 0.1], [5e-5, 0.2, 0.2], 1e-4, [0, 1.0]) # never near
    assert torch_compile.is_within([0.9, 2e-3, 0.1], [5e-5, 0.2, 0.2], 1e-4, [3e-3, 1.0]) # nor is the truth
    assert not torch_compile.is_within([float("inf")], [float("inf")], 1e-4)
    assert not torch_compile.is_within([float("nan")], [1.0], 1e-4)


def test_losses_of_chaotic_steps():
    import statistics

    losses = [0.11, 0.11, 0.063, 0.14, 0.12, 0.22, 0.1, 0.26, 0.13] # of a network with 80 layers of ReLU
    of_eager = [0.04, 0.018, 0.06, 0.29, 0.09, 0.13, 0.06, 0.08, 0.1]
    for choose in (min, statistics.median):
        assert torch_compile.is_within(losses, of_eager, 1e-3, chosen=(choose, max)) == (choose is not min)
    assert not torch_compile.is_within([0.25] * 9, of_eager, 1e-3, chosen=(statistics.median, max))
    assert not torch_compile.is_within([*losses, 0.9], of_eager, 1e-3, chosen=(statistics.median, max))


def judge(first, later, truths=()):
    """What is right of gradients [1, 1 + error], errors of (eager, tc) in the first run and in those of neighbours. truths: what the second gradient is in
    float64 in the latter, 1 where they end."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(64, 1)
    weights, later, truths = [module.weight.clone()], iter(later), iter(truths)

    def found(errors, gradient=1.0):
        return {backend: ([1.0], [torch.tensor([1, gradient + error])], 0.0) for backend, error in zip(("eager", "tc"), errors)}

    def exact(gradient):
        return [1.0], [torch.tensor([1, gradient], dtype=torch.float64)], 0.0

    def run_again(module, inputs):
        weights.append(module.weight.clone())
        gradient = next(truths, 1.0)
        return exact(gradient), found(next(later), gradient)

    truth = exact(1.0)
    result = {"eager": {}, "tc": {}}
    torch_compile.judge_training(result, module, [torch.ones(3)], found(first), truth, run_again)
    assert all(0 < (w - weights[0]).abs().max() <= 2**-24 for w in weights[1:])
    return result["tc"]["right"], len(weights)


def test_gradients_that_jump_are_judged_over_several_runs():
    assert judge((1e-6, 2e-6), []) == (True, 1)
    assert judge((1e-6, 0.2), [(0.2, 1e-6)] * 8) == (True, 9)
    assert judge((1e-6, 0.01), [(0.2, 0.01)] * 8) == (False, 9)
    assert judge((1e-6, 0.2), [(1e-6, 1e-6)] * 8) == (False, 9)
    # Once far, where float64 is as far from one neighbour to the next, too.
    assert judge((1e-6, 1e-6), []) == (True, 1)
    assert judge((1e-6, 0.02), [(1e-6, 1e-6)] * 8, [1.0, 0.97]) == (True, 9)
    assert judge((1e-6, 0.02), [(1e-6, 1e-6)] * 8, [1.0, 0.999]) == (False, 9)
    assert judge((1e-6, 0.02), [(1e-6, 0.02)] * 8, [1.0, 0.97]) == (False, 9)
