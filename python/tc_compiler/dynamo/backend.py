# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend itself: options, AOTAutograd, what became of graphs."""
from __future__ import annotations

import collections
import dataclasses
import logging
import os
import time
from typing import Any, Callable, Sequence

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils._python_dispatch import _disable_current_modes

from ..compiler import _options
from .wrapper import Settings, Wrapper

log = logging.getLogger(__name__.rpartition(".")[0])
# Graphs, programs, operators in them, operators that PyTorch runs, seconds of compiling; since the process began.
counters: collections.Counter[str] = collections.Counter()
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclasses.dataclass
class Options:
    """torch.compile(..., options={...}).

    freezing: parameters and buffers that inference graphs take become part of the artifact, packed for its kernels; later changes to them are not seen.
    Needs torch.no_grad() or torch.inference_mode(). mode: tc-compile's --mode. precision: --precision; auto:R with freezing alone. cpu: --cpu.
    threads: of runs (None: torch.get_num_threads()). prepack: without freezing, weights of inference graphs on CPUs are packed for kernels once, and again
    when they have changed, which takes memory for another copy of them; False: in each call. cache: a folder of earlier results, $TC_CACHE_DIR without it.
    least_operators: smaller programs run by PyTorch. fallback: False refuses graphs with operators that tc does not support, instead of leaving those to
    PyTorch. check_bounds: whether a run of an index out of range is refused, as eager's is, or takes the nearest element; None: refused on CPUs, where it
    costs a comparison for each. arguments: further options of tc-compile, {"verify": True}.
    """

    freezing: bool = False
    mode: str | None = None
    precision: str | Sequence[str] | None = None
    cpu: str = "native"
    threads: int | None = None
    prepack: bool = True
    cache: str | os.PathLike[str] | None = None
    least_operators: int = 1
    fallback: bool = True
    check_bounds: bool | None = None
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.mode, (str, type(None))) or self.mode not in _MODES:
            raise ValueError(f'tc: there is no mode "{self.mode}"; modes are {", ".join(m for m in _MODES if m)}')
        for name, least in (("threads", 0), ("least_operators", 0)):
            value = getattr(self, name)
            if not (value is None and name == "threads") and (not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31):
                raise ValueError(f"tc: the option {name} must be a number from {least}, but is {value!r}")
        for name in ("freezing", "prepack", "fallback"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"tc: the option {name} must be True or False, but is {getattr(self, name)!r}")
        if not isinstance(self.precision, (str, list, tuple, type(None))):
            raise ValueError(f"tc: the option precision must be a text as of tc-compile's --precision, or a list of such, but is {self.precision!r}")
        if not isinstance(self.check_bounds, (bool, type(None))):
            raise ValueError(f"tc: the option check_bounds must be True, False or None, but is {self.check_bounds!r}")
        if not isinstance(self.arguments, dict):
            raise ValueError(f"tc: the option arguments must be a dict of options of tc-compile, but is {self.arguments!r}")
        if self.check_bounds is None and "check_bounds" in self.arguments:
            self.check_bounds = bool(self.arguments["check_bounds"])

    def chooses_precision(self) -> bool:
        given = [self.precision, self.arguments.get("precision")]
        return any(str(text).split(":")[0] == "auto" for value in given for text in ([value] if isinstance(value, str) else value or ()))

    def command_line(self) -> list[str]:
        return _options({"cpu": self.cpu, "mode": None if self.mode == "default" else self.mode, "precision": self.precision, "cache_dir": self.cache, **self.arguments})


def tc(module: fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """What torch.compile calls for each of Dynamo's graphs. Raises ValueError for options that there are not, TcError where a compile fails."""
    names = [f.name for f in dataclasses.fields(Options)]
    if unknown := sorted(str(name) for name in options or () if name not in names):
        raise ValueError(f"tc: there is no option {', '.join(unknown)}; options are {', '.join(names)}")
    chosen = Options(**{"mode": mode, **(options or {})})
    frozen: dict[int, torch.Tensor] = {}
    static: set[int] = set() # parameters and buffers
    freezes = chosen.freezing and not torch.is_grad_enabled()
    if chosen.chooses_precision() and not freezes:
        # Weights would be inputs, and random numbers would stand for them.
        raise ValueError('tc: the precision "auto:R" is chosen by the errors that products with the weights make, and a program holds weights only where '
                         'they are frozen; add the option freezing and call it under torch.inference_mode(), or give a type such as "bf16"') # fmt: skip
    if freezes:
        # PyTorch 2.9 to 2.11 free guards of this kind twice when a frozen tensor goes (Python 3.12 and later); 2.12 has given it up.
        if getattr(torch._dynamo.config, "use_recursive_dict_tags_for_guards", False):
            torch._dynamo.config.use_recursive_dict_tags_for_guards = False
    for index, (node, value) in enumerate(zip((n for n in module.graph.nodes if n.op == "placeholder"), example_inputs)):
        kind = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
        if isinstance(value, torch.Tensor) and (kind or isinstance(value, torch.nn.Parameter)):
            if not freezes:
                static.add(index)
            elif not torch._subclasses.fake_tensor.is_fake(value):
                frozen[index] = value
                # Of another object with the same code, or once the attribute is another tensor, Dynamo makes another graph.
                install_guard(node._dynamo_source.make_guard(GuardBuilder.ID_MATCH))

    def compiler(kind: str) -> Callable[..., Any]:
        def compile_graph(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
            is_whole = kind == "inference" and len(inputs) == len(example_inputs)
            return _compile(graph, kind, chosen, frozen if is_whole else {}, static if is_whole and chosen.prepack else set())

        return compile_graph

    backend = aot_autograd(fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference"),
                           partition_fn=_partition, keep_inference_input_mutations=True) # fmt: skip
    compiled: Callable[..., Any] = backend(module, example_inputs)
    zeros = {i for i, value in enumerate(example_inputs) if isinstance(value, torch.Tensor) and value._is_zerotensor()}
    if not zeros:
        return compiled
    # Dynamo guards which are; graphs of AOTAutograd do not say it. A sum, as a gradient may be wanted.
    return lambda *given: compiled(*(value + torch.zeros_like(value) if i in zeros else value for i, value in enumerate(given)))


def _partition(*arguments: Any, **more: Any) -> Any:
    """Forward and backward graph. States of random numbers that a recomputation needs are saved by value: those of GPUs' generators are then eager's."""
    with torch._functorch.config.patch(graphsafe_rng_functionalization=False):
        return min_cut_rematerialization_partition(*arguments, **more)


def _compile(graph: fx.GraphModule, kind: str, options: Options, frozen: dict[int, torch.Tensor], static: set[int]) -> Callable[..., Any]:
    started = time.monotonic()
    fake_mode = torch._guards.detect_fake_mode([n.meta.get("val") for n in graph.graph.nodes if n.op == "placeholder"])
    if fake_mode is None:
        fake_mode = torch._subclasses.FakeTensorMode(shape_env=torch.fx.experimental.symbolic_shapes.ShapeEnv())
    updated = {n.args[0] for n in graph.graph.nodes if n.target is torch.ops.aten.copy_.default}
    placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    kept = {i: tensor for i, tensor in frozen.items() if placeholders[i] not in updated}
    unchanged = frozenset(i for i in static if placeholders[i] not in updated)
    threads = options.threads if options.threads is not None else torch.get_num_threads()
    wrapper = Wrapper(graph, Settings(options.command_line(), threads, kept, unchanged, options.least_operators, options.fallback, options.check_bounds), fake_mode)
    with _disable_current_modes(): # AOTAutograd's own, which would take tensors of constants for its
        call = wrapper.make()
    seconds = time.monotonic() - started
    counts: dict[str, Any] = {"graphs": 1, "programs": len(wrapper.programs), "operators": sum(wrapper.programs), "eager": len(wrapper.eager), "seconds": seconds}
    counters.update(counts)
    log.info("%s graph: %d programs of %s operators, %d operators by PyTorch, %.1f s", kind, len(wrapper.programs), wrapper.programs, len(wrapper.eager), seconds)
    for name, reason in wrapper.eager.items():
        log.info("%s: PyTorch runs %s", name, reason)
    return call
