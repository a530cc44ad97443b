#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile(backend="tc") beside eager and Inductor: inference and training steps of the architectures of torch_models.py.

usage: torch_compile.py OUT.json [--kinds inference training] [--filter RE] [--peers inductor] [--steps 5] [--seconds 2] [--threads 2]
                        [--device cpu] [--mode MODE] [--freezing] [--again]

Each model runs in a process of its own. Right: inference within 1e-4 of eager's largest value in each output; training: the losses of some steps of SGD within
1e-3, the gradients of the first within 1e-4 of those in float64 under the same seeds, or three times as far as eager's. Where a step is farther, a rounding may
have decided a ReLU or a maximum, with which gradients jump: eight more runs, and another eight where they do not suffice, take parameters and inputs that are
up to a thousandth away, where other elements are next to such an edge, each beside float64 with the same values. Then the smallest error of all runs, which
shows what is wrong each time, is compared with eager's smallest, and the third quartile, which shows what is often far off, with eager's largest, as jumps differ
by orders of magnitude; of losses, to which each jump of a step before adds, the median in place of the smallest. A process that ends by a signal is repeated without peers, so that what they destroy is not tc's ("ended" says how it went).
On a GPU ("cuda") each time ends with what was enqueued, and products are exact f32's. --mode is torch.compile's, of both.
first_s: the first call, with the compile (Inductor's caches are off); run_us: the median of calls after that, taken in turns. Needs an environment with
requirements-bench.txt, timm==1.0.31 and tc_compiler (PYTHONPATH=build/python TC_BIN=build/bin).
"""
import argparse
import copy
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")


def floats(value):
    import torch
    from torch.utils import _pytree as pytree

    if hasattr(value, "to_tuple"):
        value = value.to_tuple()
    return [x for x in pytree.tree_leaves(value) if isinstance(x, torch.Tensor)]


def error(actual, expected, floor=0.0):
    """The largest difference by the largest value of each tensor, or by that of all times `floor`; infinite where shapes or what is no number differ."""
    import torch

    worst = 0.0
    least = floor * max((float(e.detach().abs().max()) for e in expected if e.numel()), default=0)
    if len(actual) != len(expected):
        return math.inf
    for a, e in zip(actual, expected):
        if a.shape != e.shape or not torch.equal(a.isnan(), e.isnan()):
            return math.inf
        if a.numel():
            a, e = a.detach().double().nan_to_num(), e.detach().double().nan_to_num()
            worst = max(worst, float((a - e).abs().max()) / (max(float(e.abs().max()), least) or 1.0))
    return worst


def first_quartile(errors):
    return sorted(errors)[(len(errors) - 1) // 4]


def third_quartile(errors):
    return sorted(errors)[3 * (len(errors) - 1) // 4]


def is_within(errors, of_eager, least, near):
    """Whether errors of some runs are numbers, and at most `least`, or three times eager's: what `near` chooses of both, and the third quartile with eager's largest."""
    return all(map(math.isfinite, errors)) and near(errors) <= max(least, 3 * near(of_eager)) and third_quartile(errors) <= max(least, 3 * max(of_eager))


def perturbed(tensor, generator):
    """Values up to a thousandth away."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    return tensor * (1 + 1e-3 * (2 * torch.rand(tensor.shape, generator=generator) - 1)).to(tensor)


def train(call, module, inputs, steps, wait=lambda: None):
    """The losses of some steps, the gradients of the first and its seconds."""
    import torch

    losses, gradients, seconds = [], [], 0.0
    for step in range(steps):
        torch.manual_seed(100 + step)
        started = time.perf_counter()
        loss = call(inputs)
        if step == 0:
            wait()
            seconds = time.perf_counter() - started
            gradients = [p.grad.clone() for p in module.parameters() if p.grad is not None]
        losses.append(float(loss))
    return losses, gradients, seconds


def judge_training(result, module, inputs, found, truth, run_again):
    """Adds the errors of what was `found`, and whether they are right. `truth`: (losses, gradients) of float64, or None.
    `run_again(module, inputs)`: truth and what is found with other values."""
    import torch

    def errors(found, truth):
        losses = truth[0] if truth else found["eager"][0]
        return {backend: (max(abs(a - e) / max(abs(e), 1e-3) for a, e in zip(of[0], losses)), error(of[1], truth[1], floor=1e-3) if truth else 0.0)
                for backend, of in found.items()} # fmt: skip

    def is_right(backend):
        # Losses, gradients. The smallest of some gradients' errors is one run's luck where a step jumps at nearly all values.
        chosen = ((1e-3, statistics.median), (1e-4, first_quartile))
        return all(is_within([run[backend][i] for run in runs], [run["eager"][i] for run in runs], *of) for i, of in enumerate(chosen))

    runs, generator = [errors(found, truth)], torch.Generator().manual_seed(7)
    while truth and not all(map(is_right, found)) and len(runs) < 17:
        for _ in range(8):
            near = copy.deepcopy(module)
            with torch.no_grad():
                for parameter in near.parameters():
                    parameter.copy_(perturbed(parameter, generator))
            truth_there, found_there = run_again(near, [perturbed(x, generator) for x in inputs])
            runs.append(errors(found_there, truth_there))
    for backend in found:
        losses, gradients = zip(*(run[backend] for run in runs))
        result[backend].update(loss_error=losses[0], gradient_error=gradients[0] if truth else None, right=is_right(backend))
        if len(runs) > 1:
            result[backend].update(loss_errors=losses, gradient_errors=gradients)


def measure(options, name, kind):
    import torch
    import torch_models

    torch.set_num_threads(options.threads)
    torch._dynamo.config.cache_size_limit = 64
    torch._inductor.config.force_disable_caches = True
    import logging

    from tc_compiler.dynamo import counters

    logging.getLogger("torch._inductor").setLevel(logging.ERROR)
    torch_models.declare()
    module, draw, _, batches, _ = torch_models.build(name)
    with torch.no_grad():
        for parameter in module.parameters(): # heads that begin at 0 would hide all before them
            if not parameter.any():
                parameter.uniform_(-0.1, 0.1)
    torch.manual_seed(1)
    torch.backends.cudnn.allow_tf32 = False
    inputs = [x.to(options.device) for x in draw(batches[0] if kind == "inference" else 8)]
    module = (module.eval() if kind == "inference" else module.train()).to(options.device)
    wait = torch.cuda.synchronize if options.device.startswith("cuda") else lambda: None
    result = {"model": name, "kind": kind}

    def loss_of(output):
        return sum(x.float().square().mean() for x in floats(output) if x.is_floating_point() and x.requires_grad)

    def runner(backend, module):
        """A call: inference, or a step of SGD, which gives its loss."""
        chosen = {"options": {"freezing": True}} if options.freezing and kind == "inference" else {"mode": options.mode}
        compiled = module if backend == "eager" else torch.compile(module, backend=backend, **chosen)
        if kind == "inference":
            def call(inputs):
                with torch.no_grad():
                    return compiled(*inputs)
        else:
            optimiser = torch.optim.SGD(module.parameters(), lr=1e-3)

            def call(inputs):
                optimiser.zero_grad(set_to_none=True)
                loss = loss_of(compiled(*inputs))
                loss.backward()
                optimiser.step()
                return loss.detach()
        return call

    def find_truth(module, inputs):
        """Losses and gradients in float64, which says what is right; None where the model does not run in it."""
        try:
            double = copy.deepcopy(module).double()
            return train(runner("eager", double), double, [x.double() if x.is_floating_point() else x for x in inputs], options.steps)
        except Exception:
            return None

    def run_again(module, inputs):
        for backend in outputs:
            modules[backend].load_state_dict(module.state_dict())
        return find_truth(module, inputs), {backend: train(runs[backend], modules[backend], inputs, options.steps) for backend in outputs}

    runs, outputs, modules = {}, {}, {}
    truth = find_truth(module, inputs) if kind == "training" else None
    for backend in ["eager", *options.peers, "tc"]:
        modules[backend] = copy.deepcopy(module)
        torch._dynamo.reset() if backend == "eager" else None
        try:
            runs[backend] = runner(backend, modules[backend])
            if kind == "training":
                outputs[backend] = train(runs[backend], modules[backend], inputs, options.steps, wait)
                seconds = outputs[backend][2]
            else:
                torch.manual_seed(100)
                started = time.perf_counter()
                outputs[backend] = floats(runs[backend](inputs))
                wait()
                seconds = time.perf_counter() - started
            result[backend] = {"first_s": round(seconds, 3)}
        except Exception as problem:
            runs.pop(backend, None)
            lines = [line for line in str(problem).splitlines() if line.strip()]
            result[backend] = {"error": (type(problem).__name__ + ": " + " | ".join(lines[:3]))[:400]}
    if kind == "inference":
        for backend in outputs:
            result[backend]["error_of_eager"] = error(outputs[backend], outputs["eager"])
            result[backend]["right"] = result[backend]["error_of_eager"] <= 1e-4
    else:
        judge_training(result, module, inputs, outputs, truth, run_again)
    result["tc"].update(programs=counters["programs"], operators=counters["operators"], by_pytorch=counters["eager"], compile_s=round(counters["seconds"], 2))
    times = {backend: [] for backend in runs}
    for run in runs.values():
        run(inputs)
    wait()
    started = time.perf_counter()
    while time.perf_counter() - started < options.seconds * len(runs) or min(map(len, times.values())) < 5:
        for backend, run in runs.items():
            begun = time.perf_counter()
            run(inputs)
            wait()
            times[backend].append(time.perf_counter() - begun)
    for backend, found in times.items():
        result[backend]["run_us"] = round(statistics.median(found) * 1e6, 1)
    return result


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def table(results, stream=sys.stdout):
    for kind in ("inference", "training"):
        rows = [r for r in results if r["kind"] == kind]
        if not rows:
            continue
        right = [r for r in rows if r.get("tc", {}).get("right")]
        print(f"{kind}: {len(right)} of {len(rows)} right", file=stream)
        for peer in ("eager", "inductor"):
            both = [r for r in rows if "run_us" in r.get(peer, {}) and "run_us" in r.get("tc", {})]
            speed = {r["model"]: r[peer]["run_us"] / r["tc"]["run_us"] for r in both}
            if speed:
                worst = min(speed, key=speed.get)
                first = [r["tc"]["first_s"] / r[peer]["first_s"] for r in both]
                print(f"  {peer} / tc, {len(both)}: run geometric mean {geomean(list(speed.values())):.3f}, worst {speed[worst]:.3f} ({worst}); first call tc / {peer} geometric mean {geomean(first):.2f}", file=stream)
        for r in sorted(rows, key=lambda r: r["model"]):
            of = r.get("tc", {})
            others = " ".join(f"{p} {r[p]['run_us']:.0f} us {r[p]['first_s']:.1f} s" if "run_us" in r.get(p, {}) else f"{p} {r.get(p, {}).get('error', '-')[:80]}" for p in ("eager", "inductor"))
            print(f"  {r['model']}: {'right' if of.get('right') else 'WRONG' if 'run_us' in of else 'failed'} tc {of.get('run_us', 0):.0f} us {of.get('first_s', 0):.1f} s | {others} | programs {of.get('programs')} by PyTorch {of.get('by_pytorch')} "
                  f"{of.get('error_of_eager', of.get('loss_error', ''))} {of.get('gradient_error', '')} {of.get('error', r.get('error', ''))}", file=stream)  # fmt: skip


def measure_apart(command, peers, environment, timeout=900):
    """What the process of this command found, which it writes to the file that is its last argument. What ends it by a signal may have been a peer's: code
    of Inductor that wrote past a tensor's end was only found by tc's next allocation. Without peers it is seen whose it was."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "one.json")
        try:
            done = subprocess.run([*command, "--peers", *peers, "--", out], capture_output=True, text=True, timeout=timeout,
                                  env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, **environment}) # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"{timeout} s"}
        if os.path.exists(out):
            with open(out) as file:
                return json.load(file)
    how = f"signal {-done.returncode}: {done.stderr[-300:]}" if done.returncode < 0 else done.stderr[-300:]
    if done.returncode < 0 and peers:
        return {**measure_apart(command, [], environment, timeout), "ended": f"with {', '.join(peers)} in the process, {how}"}
    return {"error": how}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--kinds", nargs="+", default=["inference", "training"])
    parser.add_argument("--filter", default="")
    parser.add_argument("--peers", nargs="*", default=["inductor"])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode")
    parser.add_argument("--freezing", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if options.one:
        result = measure(options, *options.one)
        with open(options.out, "w") as file:
            json.dump(result, file)
        return
    import torch_models

    torch_models.declare()
    results = json.load(open(options.out)) if os.path.exists(options.out) else []
    for name in filter(lambda n: re.search(options.filter, n), torch_models.MODELS):
        for kind in options.kinds:
            if not options.again and any((r["model"], r["kind"]) == (name, kind) for r in results):
                continue
            results = [r for r in results if (r["model"], r["kind"]) != (name, kind)]
            command = [sys.executable, __file__, "--one", name, kind, "--steps", str(options.steps), "--seconds", str(options.seconds), "--threads", str(options.threads), "--device", options.device]
            command += ["--freezing"] * options.freezing + (["--mode", options.mode] if options.mode else [])
            result = {"model": name, "kind": kind, **measure_apart(command, options.peers, {"OMP_NUM_THREADS": str(options.threads)})}
            results.append(result)
            table([result])
            sys.stdout.flush()
            with open(options.out, "w") as file:
                json.dump(results, file, indent=1)
    table(results)


if __name__ == "__main__":
    main()
