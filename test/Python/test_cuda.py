# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in memory of a GPU, on one: with PyTorch and, where it is installed, CuPy. fake_cuda.py is about all that needs none.

usage: PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python/test_cuda.py      needs a GPU and PyTorch
"""
import gc
import importlib.util
import os
import threading

import numpy as np
import pytest
import tc_compiler as tc

if not os.path.exists("/dev/nvidiactl"):
    pytest.skip("needs cuda: there is no GPU", allow_module_level=True)
torch = pytest.importorskip("torch")

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.uint8]


class Sum(torch.nn.Module):
    def forward(self, x, y):
        return {"z": x + y}


class Product(torch.nn.Module):
    def __init__(self, w):
        super().__init__()
        self.register_buffer("w", w)

    def forward(self, x):
        return {"y": x @ self.w}


def sums(dtype=torch.float32):
    x = torch.ones(8, 4, dtype=dtype) # twice one tensor is one input to PyTorch 2.11
    return tc.compile(Sum(), (x, x.clone()), dims={"x.0": "1..1000000", "y.0": "1..1000000"}, target="cuda")


@pytest.fixture(scope="module")
def add():
    return sums()


@pytest.fixture(scope="module")
def product():
    """y = x w of 1024 x 1024, and w."""
    w = torch.rand(1024, 1024)
    return tc.compile(Product(w), (torch.ones(8, 1024),), dims={"x.0": "1..4096"}, target="cuda"), w.cuda()


def close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=float(5e-3 * expected.abs().max()))


def test_no_copies(add):
    x, y = torch.rand(8, 4, device="cuda"), torch.rand(8, 4, device="cuda")
    z = add(x=x, y=y)["z"]
    assert isinstance(z, tc.DeviceArray) and z.device == f"cuda:{x.device.index}" and z.shape == (8, 4)
    taken = torch.from_dlpack(z)
    assert taken.data_ptr() == z.__cuda_array_interface__["data"][0]
    torch.testing.assert_close(taken, x + y, rtol=0, atol=0)
    torch.testing.assert_close(torch.as_tensor(z, device="cuda"), x + y, rtol=0, atol=0) # by the interface
    np.testing.assert_array_equal(z.numpy(), (x + y).cpu().numpy())
    np.testing.assert_array_equal(add({"x": x, "y": y.cpu().numpy()}, device="cpu")["z"], (x + y).cpu().numpy())
    torch.testing.assert_close(torch.from_dlpack(add(x=z, y=z)["z"]), 2 * (x + y), rtol=0, atol=0)
    assert add({"x": x.requires_grad_(), "y": y})["z"].shape == (8, 4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    artifact = sums(dtype)
    x = torch.arange(12, device="cuda").reshape(3, 4).to(dtype)
    z = torch.from_dlpack(artifact(x=x, y=x)["z"])
    assert z.dtype == dtype
    torch.testing.assert_close(z, x + x, rtol=0, atol=0)
    with pytest.raises(tc.RefusedError, match='input "y" is .*, but the model takes'):
        artifact(x=x, y=x.to(torch.complex64))


@pytest.mark.parametrize("n", [1, 3, 1000, 100000])
def test_sizes(add, n):
    x = torch.rand(n, 4, device="cuda")
    torch.testing.assert_close(torch.from_dlpack(add(x=x, y=x)["z"]), 2 * x, rtol=0, atol=0)
    torch.testing.assert_close(torch.from_numpy(add(x=x.cpu().numpy(), y=x.cpu())["z"]), 2 * x.cpu(), rtol=0, atol=0)


def test_refused(add):
    x = torch.rand(8, 4, device="cuda")
    with pytest.raises(tc.RefusedError, match=r'input "y" is not row-major, .* \.contiguous\(\)'):
        add(x=x, y=torch.rand(4, 8, device="cuda").T)
    with pytest.raises(tc.RefusedError, match='input "y" is float16, but the model takes float32'):
        add(x=x, y=x.half())
    with pytest.raises(tc.InvalidError, match='output "z": what out gives is not row-major'):
        add({"x": x, "y": x}, out={"z": torch.rand(4, 8, device="cuda").T})
    with pytest.raises(tc.InvalidError, match=r"float32\[4, 8\], but float32\[8, 4\] is written"):
        add({"x": x, "y": x}, out={"z": torch.rand(4, 8, device="cuda")})
    with pytest.raises(tc.InvalidError, match="overlaps"):
        add({"x": x, "y": x}, out={"z": x})
    if torch.cuda.device_count() > 1:
        with pytest.raises(tc.RefusedError, match='input "y" is on cuda:1, but the artifact runs on cuda:0'):
            add(x=x, y=x.to("cuda:1"))
    with pytest.raises(tc.MachineError, match="there is no GPU 99"):
        tc.DeviceArray.from_host(np.ones(1, np.float32), "cuda:99")
    torch.testing.assert_close(torch.from_dlpack(add(x=x, y=x)["z"]), 2 * x, rtol=0, atol=0)


def test_cpu_artifact():
    x, target = torch.ones(2), torch.zeros(2)
    artifact = tc.compile(Sum(), (x, x))
    with pytest.raises(tc.RefusedError, match='input "x" is in memory of a GPU, but the artifact runs on the CPU'):
        artifact(x=x.cuda(), y=x)
    assert artifact({"x": x, "y": x}, out={"z": target})["z"] is target and target.tolist() == [2, 2]
    assert artifact({"x": x.pin_memory(), "y": x})["z"].tolist() == [2, 2]


def test_out(add):
    x = torch.rand(8, 4, device="cuda")
    for target in (torch.zeros(8, 4, device="cuda"), torch.zeros(8, 4), torch.zeros(8, 4).pin_memory()):
        assert add({"x": x, "y": x}, out={"z": target})["z"] is target
        torch.testing.assert_close(target.cpu(), 2 * x.cpu(), rtol=0, atol=0)
    target = torch.zeros(9, 4, device="cuda")[1:] # not at the beginning of its memory
    add({"x": x, "y": x}, out={"z": target})
    torch.testing.assert_close(target, 2 * x, rtol=0, atol=0)


def busy(seconds=0.02):
    torch.cuda._sleep(int(seconds * 2e9))


def test_order_of_streams(product):
    """What is enqueued before the run is read, what comes after reads its results, with streams that take a while to begin."""
    artifact, w = product
    x = torch.rand(64, 1024, device="cuda")
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        with torch.cuda.stream(stream):
            warm = [artifact.run({"x": x}, stream=stream) for _ in range(4)] # memory that the driver need not find later
            stream.synchronize()
            close(torch.from_dlpack(warm.pop()["y"]), x @ w)
            del warm
            for turn in range(5):
                busy()
                given = x * (turn + 1)
                y = torch.from_dlpack(artifact.run({"x": given}, stream=stream)["y"])
                assert not stream.query() # nobody waited
                close(y, given @ w)
                target = torch.zeros_like(y)
                busy()
                artifact.run({"x": given}, out={"y": target}, stream=stream)
                close(target + 0, given @ w)
    # Without a stream: the producer's is waited for.
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        busy()
        given = x * 7
        y = artifact.run({"x": given})["y"]
        close(torch.from_dlpack(y), given @ w)
    # A consumer of another stream.
    with torch.cuda.stream(side):
        busy()
        given = x * 3
        y = artifact.run({"x": given}, stream=side)["y"]
    with torch.cuda.stream(torch.cuda.Stream()):
        taken = torch.from_dlpack(y)
        result = taken + 0
        del y, taken
        for _ in range(8): # memory that was freed too early would be written
            artifact.run({"x": x}, stream=torch.cuda.current_stream())
        close(result, given @ w)
    torch.cuda.synchronize()


def test_memory(product):
    artifact, w = product
    x = torch.rand(256, 1024, device="cuda")

    def used():
        gc.collect()
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        return total - free

    def turn(count):
        for _ in range(count):
            taken = torch.from_dlpack(artifact.run({"x": x})["y"])
            close(taken, x @ w)

    turn(3)
    before = used()
    turn(200)
    assert used() - before < 64 << 20
    taken = torch.from_dlpack(artifact.run({"x": x})["y"])
    gc.collect()
    others = [artifact.run({"x": x + i})["y"] for i in range(20)]
    close(taken, x @ w)
    addresses = {y.__cuda_array_interface__["data"][0] for y in others}
    assert len(addresses) == 20 and taken.data_ptr() not in addresses


def test_another_gpu(tmp_path):
    if torch.cuda.device_count() < 2:
        return
    tc.compile(Sum(), (torch.ones(8, 4),) * 2, target="cuda", output=tmp_path / "sum.bin")
    with tc.load(tmp_path / "sum.bin", device="cuda:1") as artifact, torch.cuda.device(1):
        x = torch.rand(8, 4, device="cuda:1")
        z = artifact(x=x, y=x)["z"]
        assert z.device == "cuda:1" and z.__dlpack_device__() == (2, 1)
        torch.testing.assert_close(torch.from_dlpack(z), 2 * x, rtol=0, atol=0)
        with pytest.raises(tc.RefusedError, match='input "y" is on cuda:0, but the artifact runs on cuda:1'):
            artifact(x=x, y=x.to("cuda:0"))


def test_outlives_the_artifact():
    artifact = sums()
    x = torch.rand(1000, 4, device="cuda")
    z = torch.from_dlpack(artifact(x=x, y=x)["z"])
    artifact.close()
    del artifact
    gc.collect()
    torch.testing.assert_close(z, 2 * x, rtol=0, atol=0)


def test_memory_that_runs_out(add):
    x = torch.rand(8, 4, device="cuda")
    _, total = torch.cuda.mem_get_info()
    with pytest.raises(tc.MachineError, match="the GPU has no memory left for an array"):
        tc.OrtValue.ortvalue_from_shape_and_type((total,), np.float32, "cuda", 0)
    torch.testing.assert_close(torch.from_dlpack(add(x=x, y=x)["z"]), 2 * x, rtol=0, atol=0)


def test_threads(product):
    artifact, w = product
    wrong = []

    def work(seed):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for turn in range(30):
                x = torch.rand(8 * (seed % 4 + 1), 1024, device="cuda")
                y = torch.from_dlpack(artifact.run({"x": x}, stream=stream if turn % 3 else None)["y"])
                expected = x @ w
                if (y - expected).abs().max() > 5e-3 * expected.abs().max():
                    wrong.append((seed, turn))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_lock_is_released(product):
    """Another thread counts while runs are waited for."""
    artifact, _ = product
    x = torch.rand(4096, 1024, device="cuda")
    artifact.run({"x": x})
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    during = []
    for _ in range(20):
        busy()
        before = counted[0]
        artifact.run({"x": x})
        during.append(counted[0] - before)
    done.set()
    thread.join()
    assert sum(during) > 1000


def test_onnxruntime_interface(product, tmp_path):
    w, path = product[1], tmp_path / "product.bin"
    tc.compile(Product(w.cpu()), (torch.ones(8, 1024),), dims={"x.0": "1..4096"}, target="cuda", output=path)
    stream = torch.cuda.Stream()
    for options in ({}, {"device_id": 0, "user_compute_stream": str(stream.cuda_stream)}):
        session = tc.InferenceSession(str(path), providers=[("CUDAExecutionProvider", options)])
        with torch.cuda.stream(stream if options else torch.cuda.default_stream()):
            x = torch.rand(16, 1024, device="cuda")
            y = torch.empty(16, 1024, device="cuda")
            binding = session.io_binding()
            binding.bind_input("x", "cuda", 0, np.float32, list(x.shape), x.data_ptr())
            binding.bind_output("y", "cuda", 0, np.float32, list(y.shape), y.data_ptr())
            for turn in range(3):
                busy()
                x += 1
                session.run_with_iobinding(binding)
                close(y, x @ w)
            np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], y.cpu().numpy())
            binding.clear_binding_outputs()
            binding.bind_output("y", "cuda")
            session.run_with_iobinding(binding)
            (value,) = binding.get_outputs()
            assert value.device_name() == "cuda" and value.data_ptr() not in (0, y.data_ptr())
            close(torch.from_dlpack(value), x @ w)
            (result,) = session.run(None, {"x": x.cpu().numpy()})
            close(torch.from_numpy(result).cuda(), x @ w)
    value = tc.OrtValue.ortvalue_from_numpy(x.cpu().numpy(), "cuda", 0)
    close(torch.from_dlpack(value.to_dlpack()), x)
    (result,) = session.run(["y"], {"x": value})
    assert isinstance(result, np.ndarray)
    shared = tc.OrtValue.from_dlpack(x)
    assert shared.data_ptr() == x.data_ptr()


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="cupy is not installed")
def test_cupy(add, product):
    import cupy

    x = cupy.random.random((8, 4), dtype=cupy.float32)
    z = add(x=x, y=x)["z"]
    for taken in (cupy.from_dlpack(z), cupy.asarray(z)):
        assert taken.data.ptr == z.__cuda_array_interface__["data"][0]
        cupy.testing.assert_array_equal(taken, 2 * x)
    target = cupy.zeros((8, 4), cupy.float32)
    assert add({"x": x, "y": x}, out={"z": target})["z"] is target
    cupy.testing.assert_array_equal(target, 2 * x)
    artifact, w = product
    weights = cupy.from_dlpack(w)
    for stream in (cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)):
        with stream:
            x = cupy.random.random((64, 1024), dtype=cupy.float32)
            y = cupy.from_dlpack(artifact.run({"x": x}, stream=stream)["y"])
            cupy.testing.assert_allclose(y, x @ weights, rtol=0, atol=3)
            stream.synchronize()


def test_training():
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    x, target = torch.rand(16, 4), torch.randint(0, 2, (16,))
    artifact = tc.compile_training(module, torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.1), (x, target), target="cuda")
    losses = [artifact.step(x.cuda(), target.cuda()) for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    (logits,) = artifact.evaluate(x.cuda())
    module.load_state_dict({k: torch.from_numpy(v) for k, v in artifact.state_dict().items() if not k.startswith(("optimizer.", "tc."))})
    torch.testing.assert_close(torch.from_dlpack(logits).cpu(), module(x).detach(), rtol=0, atol=1e-3)
