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
    quartile = torch_compile.third_quartile
    assert [quartile(range(n)) for n in (1, 2, 9, 17)] == [0, 0, 6, 12]
    within = lambda errors, of_eager: torch_compile.is_within(errors, of_eager, 1e-4, min)
    assert within([9e-5], [1e-6])
    assert within([0.2, 6e-5, 0.1, 0.2, 6e-5], [0.01, 0.2, 0.2, 0.1, 5e-5])
    assert not within([0.2, 2e-3, 0.1, 0.2, 2e-3], [5e-5, 0.2, 0.2, 0.2, 5e-5]) # never near
    assert not within([0.9, 6e-5, 0.9, 0.8, 6e-5], [5e-5, 0.2, 0.2, 0.2, 5e-5]) # often too far
    assert within([0.9, 6e-5, 6e-5, 6e-5, 6e-5], [5e-5] * 5) # once
    assert not within([float("inf")], [float("inf")])
    assert not within([1e-6, 1e-6, 1e-6, 1e-6, float("nan")], [1.0] * 5)


def judge(first, later):
    """What is right of gradients [1, 1 + error], errors of (eager, tc) in the first run and in those of values nearby; and how many runs it took."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(64, 1)
    weights, later = [module.weight.clone()], iter(later)

    def found(errors):
        return {backend: ([1.0], [torch.tensor([1, 1.0 + error])], 0.0) for backend, error in zip(("eager", "tc"), errors)}

    def run_again(module, inputs):
        weights.append(module.weight.clone())
        return truth, found(next(later))

    truth = [1.0], [torch.ones(2, dtype=torch.float64)]
    result = {"eager": {}, "tc": {}}
    torch_compile.judge_training(result, module, [torch.ones(3)], found(first), truth, run_again)
    assert all(0 < (w - weights[0]).abs().max() <= 1e-3 * weights[0].abs().max() for w in weights[1:])
    return result["tc"]["right"], len(weights)


def test_gradients_that_jump_are_judged_over_several_runs():
    assert judge((1e-6, 2e-6), []) == (True, 1)
    assert judge((1e-6, 0.2), [(0.2, 1e-6)] * 8) == (True, 9)
    assert judge((1e-6, 0.01), [(0.2, 0.01), (1e-6, 0.01)] * 8) == (False, 17) # never near
    assert judge((1e-6, 0.01), [(0.2, 0.01), (1e-6, 0.01)] * 7 + [(0.2, 1e-5), (1e-6, 0.01)]) == (False, 17) # near once
    assert judge((1e-6, 0.01), [(0.2, 0.01)] * 8) == (True, 9) # eager as well
    assert judge((1e-6, 0.2), [(1e-6, 1e-6)] * 8) == (True, 9) # once
    assert judge((1e-6, 0.2), [(1e-6, 1e-6), (1e-6, 0.2)] * 8) == (False, 17) # often, and eager never
    assert judge((1e-6, 0.2), [(0.1, 1e-6), (1e-6, 0.2)] * 8) == (True, 9)
