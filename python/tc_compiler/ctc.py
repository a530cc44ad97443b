# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CTC loss and its gradient as loops over time. PyTorch's operators make sizes of the lengths' elements, which a compiled step cannot do.

Graves et al., Connectionist Temporal Classification (ICML 2006), section 4.1, in logarithms. A target's states are its labels with blanks between them; T: times,
N: samples, C: classes, L: states of the longest target.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten
_IMPOSSIBLE = -math.inf


class TracedWithNumbers(Exception):
    """A loop is traced on tensors without elements alone."""


def _states(targets: Any, lengths: Any, longest: int, blank: int) -> tuple[Any, Any]:
    """Labels of the states [N, L], and whether a path may come from two states before."""
    place = torch.arange(longest, device=targets.device)
    if targets.dim() == 1: # one after the other
        offsets = (lengths.cumsum(0) - lengths).unsqueeze(1) + place
        targets = targets[offsets.clamp(max=max(targets.shape[0] - 1, 0))] if longest else targets.new_empty(lengths.shape[0], 0)
    targets = torch.where(place < lengths.unsqueeze(1), targets[:, :longest], blank) # what is behind a target's end may be no label
    blanks = torch.full_like(targets, blank)
    labels = torch.cat([torch.stack([blanks, targets], 2).flatten(1), torch.full_like(lengths.unsqueeze(1), blank)], 1)
    before = torch.cat([labels[:, :2], labels[:, :-2]], 1) # the first two have none
    return labels, (labels != blank) & (labels != before)


def _log_sum(*values: Any) -> Any:
    most = values[0]
    for value in values[1:]:
        most = torch.maximum(most, value)
    most = torch.where(most == _IMPOSSIBLE, 0.0, most)
    return sum((value - most).exp() for value in values).log() + most


def _pad(value: Any, before: int, behind: int) -> Any:
    return aten.constant_pad_nd(value, [before, behind], _IMPOSSIBLE)


def _over_time(move: Callable[..., Any], first: Any, xs: Sequence[Any], more: Sequence[Any]) -> tuple[Any, Any]:
    """move(state, *slices of xs, *more) -> the next state, from `first` on. The last one, and all of them."""
    from torch._higher_order_ops.scan import scan_op

    if not isinstance(first, FakeTensor):
        raise TracedWithNumbers()

    def step(state: Any, *arguments: Any) -> list[Any]:
        state = move(state, *arguments)
        return [state, state.clone()]

    last, states = scan_op(step, [first], list(xs), tuple(more))
    return last, states


def _as_lengths(lengths: Any, like: Any) -> Any:
    return lengths.to(device=like.device, dtype=torch.int64) if isinstance(lengths, torch.Tensor) else torch.tensor(lengths, dtype=torch.int64, device=like.device)


def _prepare(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> tuple[Any, ...]:
    """The lengths, the states' labels [T, N, L], their log-probabilities, where two states can be passed, and how many are behind each [N, L]."""
    longest = targets.shape[-1] if isinstance(target_lengths, torch.Tensor) else max(target_lengths)
    times, lengths = _as_lengths(input_lengths, log_probs), _as_lengths(target_lengths, log_probs)
    labels, can_skip = _states(targets.to(torch.int64), lengths, longest, blank)
    state = torch.arange(labels.shape[1], device=labels.device)
    behind = 2 * lengths.unsqueeze(1) - state
    labels = labels.unsqueeze(0).expand(log_probs.shape[0], *labels.shape)
    return times, labels, log_probs.gather(2, labels), can_skip, behind


def forward(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, zero_infinity: bool = False) -> tuple[Any, Any]:
    """_ctc_loss: the losses [N], and logarithms of the probabilities that paths are in a state [N, T, L]."""
    times, _, chances, can_skip, behind = _prepare(log_probs, targets, input_lengths, target_lengths, blank)
    time = torch.arange(log_probs.shape[0], device=log_probs.device)
    # Before time 0 a path is in the state before the first: it gets to the first two.
    first = torch.full_like(chances[0], _IMPOSSIBLE)
    first[:, 0] = 0.0

    def move(paths: Any, time: Any, chance: Any, can_skip: Any, times: Any) -> Any:
        by_two = torch.where(can_skip, _pad(paths, 2, 0)[:, :-2], _IMPOSSIBLE)
        later = _log_sum(paths, _pad(paths, 1, 0)[:, :-1], by_two) + chance
        return torch.where((time < times).unsqueeze(1), later, paths)

    last, paths = _over_time(move, first, (time, chances), (can_skip, times))
    return -torch.where((behind == 0) | (behind == 1), last, _IMPOSSIBLE).logsumexp(1), paths.transpose(0, 1)


def backward(gradient: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, losses: Any, paths: Any, blank: int, zero_infinity: bool = False) -> Any:
    """_ctc_loss_backward: as PyTorch's, that of logarithms of a softmax, whose own gradient leaves it as it is."""
    times, labels, chances, can_skip, behind = _prepare(log_probs, targets, input_lengths, target_lengths, blank)
    time = torch.arange(log_probs.shape[0], device=log_probs.device)
    # Behind the last time a path is in the last state: it comes there from the last two.
    first = torch.where(behind == 0, 0.0, torch.full_like(chances[0], _IMPOSSIBLE))

    def move(rest: Any, time: Any, chance: Any, can_skip: Any, times: Any) -> Any:
        """From the states of a time to the end, with the chance of the state itself."""
        by_two = _pad(torch.where(can_skip, rest, _IMPOSSIBLE), 0, 2)[:, 2:]
        earlier = _log_sum(rest, _pad(rest, 0, 1)[:, 1:], by_two) + chance
        return torch.where((time < times).unsqueeze(1), earlier, rest)

    rests = _over_time(move, first, (time.flip(0), chances.flip(0)), (can_skip, times))[1].flip(0)
    shares = (paths.transpose(0, 1) + rests - chances + losses.unsqueeze(1)).exp()
    result = log_probs.exp().scatter_add(2, labels, -shares)
    result = torch.where(losses.unsqueeze(1) == math.inf, 0.0 if zero_infinity else math.nan, result)
    return torch.where((time.unsqueeze(1) < times).unsqueeze(2), result * gradient.unsqueeze(1), 0.0)


table = {
    aten._ctc_loss.default: forward,
    aten._ctc_loss.Tensor: forward,
    aten._ctc_loss_backward.default: backward,
    aten._ctc_loss_backward.Tensor: backward,
}
