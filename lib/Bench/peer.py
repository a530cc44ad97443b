#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One peer of tc-bench, in a process of its own: loads a model, writes its outputs, then times runs on request.

usage: peer.py PEER MODEL INPUTS.npz OUTPUTS.npz THREADS

Prints one JSON object per line: first {"version", "load_s", "import_s", "build_s", "first_run_s"} once the model is loaded, has
run and OUTPUTS.npz is written (arrays output_0, output_1, ...), or {"absent": why} where the peer is not installed, or {"fail": why}.
"build_s" is what comes before the first run: reading the model, building the session; of inductor the first call, too, which compiles.
For each line read from standard input, a number of seconds, it then times runs for about so long and prints {"us": [...],
"peak_rss_bytes"}.
Inputs and outputs are buffers that the caller owns, wherever the peer can take such.
"""
import importlib
import json
import os
import sys
import time


class Stages:
    """Seconds of each stage of loading, which begins where the one before it ends."""

    def __init__(self):
        self.seconds, self.start = {}, time.perf_counter()

    def end(self, name):
        now = time.perf_counter()
        self.seconds[name], self.start = now - self.start, now


def ort(model, inputs, threads, stages):
    np = need("numpy")
    runtime = need("onnxruntime")
    stages.end("import_s")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {i.name: inputs[k] for k, i in enumerate(session.get_inputs()) if k in inputs}
    names = [o.name for o in session.get_outputs()]
    stages.end("build_s")
    first = session.run(names, feed)
    stages.end("first_run_s")
    values = {name: runtime.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    outputs = []
    for name, array in zip(names, first):
        if isinstance(array, np.ndarray) and array.dtype != object and array.size:
            outputs.append(runtime.OrtValue.ortvalue_from_numpy(array))
            binding.bind_ortvalue_output(name, outputs[-1])
        else:
            binding.bind_output(name)
    keep = values, outputs
    return runtime.__version__, first, lambda: (session.run_with_iobinding(binding), keep)


def openvino(model, inputs, threads, stages):
    np = need("numpy")
    ov = need("openvino")
    stages.end("import_s")
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                      "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for i in range(len(compiled.inputs)):
        if i in inputs:  # which main holds
            request.set_input_tensor(i, ov.Tensor(inputs[i], shared_memory=inputs[i].ndim > 0))
    stages.end("build_s")
    request.infer()
    stages.end("first_run_s")
    first = [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))]
    keep = [np.empty_like(array) for array in first]  # a shared tensor does not hold its array
    for i, array in enumerate(keep):
        if array.ndim and array.size:
            request.set_output_tensor(i, ov.Tensor(array, shared_memory=True))
    return ov.__version__.split("-")[0], first, lambda: (request.infer(), keep)


def load_torch(model, inputs, threads, stages):
    torch = need("torch")
    stages.end("import_s")
    torch.set_num_threads(threads)
    if model.endswith(".pt2"):
        module = torch.export.load(model).module()
    else:
        module = torch.jit.load(model).eval()
    tensors = [torch.from_numpy(inputs[i]) for i in sorted(inputs)]

    def run(function):
        with torch.no_grad():
            return function(*tensors)

    def to_arrays(result):
        result = result if isinstance(result, (tuple, list)) else [result]
        return [(r.float() if r.dtype == torch.bfloat16 else r).numpy() for r in result]

    return torch, module, run, to_arrays


def torch(model, inputs, threads, stages):
    library, module, run, to_arrays = load_torch(model, inputs, threads, stages)
    stages.end("build_s")
    first = run(module)
    stages.end("first_run_s")
    return library.__version__, to_arrays(first), lambda: run(module)


def inductor(model, inputs, threads, stages):
    library, module, run, to_arrays = load_torch(model, inputs, threads, stages)
    importlib.import_module("torch._inductor.config").freezing = True
    compiled = library.compile(module)
    run(compiled)
    stages.end("build_s")
    first = run(compiled)
    stages.end("first_run_s")
    return library.__version__, to_arrays(first), lambda: run(compiled)


PEERS = {"ort": ort, "openvino": openvino, "torch": torch, "inductor": inductor}


class Absent(Exception):
    pass


def need(module):
    try:
        return importlib.import_module(module)
    except Exception as problem:  # a library that lacks another one raises what it likes
        why = f"{problem}".split("\n")[0][:200] or type(problem).__name__
        raise Absent(f"the Python package {module} cannot be imported ({why}); pip install {module}") from problem


def measure(run, seconds):
    for _ in range(3):
        run()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 200000):
        start = time.perf_counter()
        run()
        times.append(round((time.perf_counter() - start) * 1e6, 3))
    return times


def peak_rss():
    """Of this process; getrusage would have that of the one which started it among it."""
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), 0)


def main():
    peer, model, inputs_file, outputs_file, threads = sys.argv[1:]
    # What a peer prints by itself must not get into the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        np = need("numpy")
        with np.load(inputs_file) as arrays:
            inputs = {int(name.rsplit("_", 1)[1]): np.ascontiguousarray(arrays[name]) for name in arrays.files}
        start, stages = time.perf_counter(), Stages()
        version, outputs, run = PEERS[peer](model, inputs, int(threads), stages)
        np.savez(outputs_file, **{f"output_{i}": np.asarray(array) for i, array in enumerate(outputs)})
        say({"version": version, "load_s": time.perf_counter() - start, **stages.seconds})
        for line in sys.stdin:
            times = measure(run, float(line))
            say({"us": times, "peak_rss_bytes": peak_rss()})
    except Absent as reason:
        say({"absent": str(reason)})
    except Exception as problem:  # whatever a peer throws is its answer
        say({"fail": f"{type(problem).__name__}: {problem}".split("\n")[0][:300]})
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
