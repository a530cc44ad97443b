# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in memory of a GPU, without one: on the driver of test/Unit/FakeCuda, whose memory is the host's and whose streams do nothing until somebody
waits for them. Its kernels compute in artifacts of tc-test-artifact: "chain" y = 81 x (2187 x of an odd number), "device" y = 3 x, and z, of a size that
the run tells, y's first half.

usage: LD_LIBRARY_PATH=build/test/Unit/fake-cuda PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python/fake_cuda.py
"""
import ctypes
import gc
import os
import subprocess
import threading

import numpy as np
import pytest
import tc_compiler as tc
from tc_compiler._tcrt import ffi
from tc_compiler.arrays import _capsule_get

cuda = ctypes.CDLL("libcuda.so.1")


def report(what):
    """"calls", "problems" or "live", as lines."""
    size = cuda.fakeCudaReport(what.encode(), None, 0)
    text = ctypes.create_string_buffer(size)
    cuda.fakeCudaReport(what.encode(), text, size)
    return text.value.decode().splitlines()


def calls(name):
    return sum(line.startswith(name) for line in report("calls"))


class Stream:
    """As PyTorch's."""

    def __init__(self):
        made = ctypes.c_void_p()
        cuda.cuCtxPushCurrent_v2(ctypes.c_void_p(1))
        assert cuda.cuStreamCreate(ctypes.byref(made), 1) == 0
        self.cuda_stream = made.value

    def end(self):
        assert cuda.cuStreamDestroy_v2(ctypes.c_void_p(self.cuda_stream)) == 0


class Exporter:
    """What has DLPack's methods of version 0 alone, and says which stream it was asked for."""

    def __init__(self, array, gpu=0, stride=1):
        self.array, self.gpu, self.stride, self.streams = array, gpu, stride, []

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__(stream=stream)
        tensor = ffi.cast("tc_dlpack_t *", _capsule_get(capsule, b"dltensor")).tensor
        tensor.device_id, tensor.strides[0] = self.gpu, self.stride
        return capsule

    def __dlpack_device__(self):
        return 2, self.gpu


class Interface:
    """What has the CUDA array interface alone."""

    def __init__(self, array, **changes):
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__cuda_array_interface__, **self.changes}


class ReadOnly:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, *, stream=None, max_version=None):
        capsule = self.array.__dlpack__(stream=stream, max_version=max_version)
        ffi.cast("tc_dlpack_versioned_t *", _capsule_get(capsule, b"dltensor_versioned")).flags = 1
        return capsule

    def __dlpack_device__(self):
        return 2, 0


def artifact(name, folder):
    path = str(folder / f"{name}.bin")
    subprocess.run([os.path.join(os.environ["TC_BIN"], "tc-test-artifact"), name, path], check=True)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture
def chain(folder):
    with tc.load(artifact("chain", folder), device="cuda") as model:
        model.run({"x": X}, device="cuda") # loads code and weights
        yield model
    assert report("problems") == []


X = (np.arange(1000) % 8).astype(np.float32) # products of which are exact
Y = 81 * X


def on_gpu(array, stream=None):
    return tc.DeviceArray.from_host(array, stream=stream)


def test_inputs_and_results(chain):
    x = on_gpu(X)
    copies = calls("cuMemcpy")
    y = chain(x=x)["y"]
    assert calls("cuMemcpy") == copies # of x none
    assert isinstance(y, tc.DeviceArray) and y.shape == (1000,) and y.dtype == np.float32 and y.device == "cuda:0" and y.stream == 1
    assert (y.ndim, y.size, y.nbytes, len(y)) == (1, 1000, 4000, 1000) and repr(y) == "<tc_compiler.DeviceArray f32[1000] on cuda:0>"
    np.testing.assert_array_equal(y.numpy(), Y)
    np.testing.assert_array_equal(np.asarray(y), Y)
    assert np.asarray(y, np.float64).dtype == np.float64
    # Host arrays as before; where results are is the caller's to say.
    np.testing.assert_array_equal(chain(x=X)["y"], Y)
    np.testing.assert_array_equal(chain({"x": X}, device="cuda")["y"].numpy(), Y)
    again = chain({"x": x}, device="cpu")["y"]
    assert type(again) is np.ndarray
    np.testing.assert_array_equal(again, Y)
    np.testing.assert_array_equal(chain(x=y)["y"].numpy(), 81 * Y) # results go on


@pytest.mark.parametrize("n", [1, 3, 0, 999, 1000])
def test_sizes(chain, n):
    for array in (X[:n], on_gpu(X[:n])):
        y = chain({"x": array}, device="cuda")["y"]
        assert y.shape == (n,)
        np.testing.assert_array_equal(y.numpy(), (2187 if n % 2 else 81) * X[:n])


def test_sizes_that_the_run_tells(folder):
    with tc.load(artifact("device", folder), device="cuda") as model:
        for n in (1000, 7, 0, 1000):
            for given in (X[:n], on_gpu(X[:n])):
                for device in ("cuda", "cpu"):
                    results = model.run({"x": given}, device=device)
                    assert all(isinstance(r, tc.DeviceArray if device == "cuda" and n > 1 else (np.ndarray, tc.DeviceArray)) for r in results.values())
                    np.testing.assert_array_equal(np.asarray(results["y"]), 3 * X[:n])
                    np.testing.assert_array_equal(np.asarray(results["z"]), 3 * X[: n // 2])
        first = model.run({"x": on_gpu(X)})["z"]
        model.run({"x": on_gpu(X + 1)})
        np.testing.assert_array_equal(first.numpy(), 3 * X[:500]) # not the context's memory
        for target in (np.zeros(500, np.float32), on_gpu(np.zeros(500, np.float32))):
            assert model.run({"x": on_gpu(X)}, out={"z": target})["z"] is target
            np.testing.assert_array_equal(np.asarray(target), 3 * X[:500])
        with pytest.raises(tc.InvalidError, match=r'output "z": what out gives is float32\[400\], but float32\[500\] is written'):
            model.run({"x": X}, out={"z": np.zeros(400, np.float32)})


@pytest.mark.parametrize("give", [Exporter, Interface, ReadOnly])
def test_foreign_arrays(chain, give):
    x = on_gpu(X)
    copies = calls("cuMemcpy")
    y = chain(x=give(x))["y"]
    assert calls("cuMemcpy") == copies
    np.testing.assert_array_equal(y.numpy(), Y)


def test_streams_of_producers(chain):
    stream, x = Stream(), on_gpu(X)
    exporter = Exporter(x)
    chain(x=exporter)
    chain({"x": exporter}, stream=stream)
    chain({"x": exporter}, stream=0)
    chain({"x": exporter}, stream=type("S", (), {"ptr": stream.cuda_stream})())
    chain({"x": exporter}, stream=type("S", (), {"__cuda_stream__": lambda self: (0, stream.cuda_stream)})())
    assert exporter.streams == [1, stream.cuda_stream, 1, stream.cuda_stream, stream.cuda_stream]
    # What the interface names is waited for in the stream, not by the host.
    waits = calls("cuStreamSynchronize")
    chain({"x": Interface(x, stream=stream.cuda_stream)}, stream=1)
    assert calls("cuStreamSynchronize") == waits
    for wrong in ("s", -1, True, object()):
        with pytest.raises(tc.InvalidError, match="stream is .*; give the address of a CUstream"):
            chain({"x": x}, stream=wrong)
    x.numpy()
    stream.end()


def test_asynchronous(chain):
    """With a stream a run waits for nothing, and comes between what is before and after it there."""
    stream = Stream()
    warm = chain({"x": on_gpu(X, stream)}, stream=stream)["y"]
    warm.numpy()
    x = on_gpu(X, stream)
    waits = calls("cuStreamSynchronize")
    y = chain({"x": x}, stream=stream)["y"]
    z = chain({"x": y}, stream=stream)["y"]
    other = on_gpu(np.zeros(1000, np.float32), stream)
    waits += 1 # of from_host
    chain({"x": z}, stream=stream, out={"y": other})
    assert calls("cuStreamSynchronize") == waits
    assert y.stream == stream.cuda_stream
    del x, y # their memory comes again in this stream alone, when the runs have read it
    np.testing.assert_array_equal(other.numpy(), 81 * 81 * Y)
    np.testing.assert_array_equal(z.numpy(), 81 * Y)
    # Arrays in host memory are read and written before the call returns.
    waits = calls("cuStreamSynchronize")
    chain({"x": X}, stream=stream)
    assert calls("cuStreamSynchronize") > waits
    del z, other, warm
    stream.end()


@pytest.mark.parametrize("is_given", [True, False])
def test_comes_after_what_was_enqueued(chain, is_given):
    """In the stream that the run is given, or else in the default stream."""
    stream = Stream()
    handle = stream.cuda_stream if is_given else 1
    x, later = on_gpu(np.zeros(1000, np.float32), handle), X + 1
    address = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
    assert cuda.cuMemcpyHtoDAsync_v2(address, ctypes.c_void_p(later.ctypes.data), ctypes.c_size_t(4000), ctypes.c_void_p(handle)) == 0
    y = chain({"x": x}, stream=stream)["y"] if is_given else chain(x=x)["y"]
    np.testing.assert_array_equal(y.numpy(), 81 * later)
    # An array of another stream.
    x = on_gpu(np.zeros(1000, np.float32), handle)
    address = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
    assert cuda.cuMemcpyHtoDAsync_v2(address, ctypes.c_void_p(later.ctypes.data), ctypes.c_size_t(4000), ctypes.c_void_p(handle)) == 0
    y = chain(x=x)["y"] if is_given else chain({"x": x}, stream=stream)["y"]
    np.testing.assert_array_equal(y.numpy(), 81 * later)
    del x, y
    stream.end()


def test_out(chain):
    x, target = on_gpu(X), on_gpu(np.zeros(1000, np.float32))
    allocations = calls("cuMemAlloc")
    chain({"x": x}, out={"y": target})
    np.testing.assert_array_equal(target.numpy(), Y)
    host = np.zeros(1000, np.float32)
    for given in (X, x):
        for y in (host, Exporter(target), Interface(target)):
            assert chain({"x": given}, out={"y": y})["y"] is y
        np.testing.assert_array_equal(host, Y)
    assert calls("cuMemAlloc") <= allocations + 2 # of the host's x and y
    read_only = np.zeros(1000, np.float32)
    read_only.flags.writeable = False
    wrong = {
        r"float32\[999\], but float32\[1000\] is written": np.zeros(999, np.float32),
        r"float64\[1000\], but float32\[1000\] is written": np.zeros(1000),
        "what out gives is read-only": read_only,
        "not row-major": np.zeros(2000, np.float32)[::2],
        "cannot be written into what out gives: list has neither": [0.0] * 1000,
        "is on cuda:1, but the artifact runs on cuda:0": Exporter(target, gpu=1),
    }
    for text, array in wrong.items():
        with pytest.raises(tc.InvalidError, match=f'chain.bin: output "y".*{text}'):
            chain({"x": x}, out={"y": array})
    for array in (ReadOnly(target), Interface(target, data=(target.__cuda_array_interface__["data"][0], True))):
        with pytest.raises(tc.InvalidError, match="read-only"):
            chain({"x": x}, out={"y": array})
    with pytest.raises(tc.InvalidError, match='no output "w" for out; outputs are y'):
        chain({"x": x}, out={"w": target})
    with pytest.raises(tc.InvalidError, match='output "y" overlaps that of input "x"'):
        chain({"x": x}, out={"y": x})
    np.testing.assert_array_equal(chain(x=x)["y"].numpy(), Y)


def test_refused(chain):
    x = on_gpu(X)
    wrong = {
        "is on cuda:1, but the artifact runs on cuda:0; move it there": Exporter(x, gpu=1),
        r"is not row-major, .* its .contiguous\(\) returns": Exporter(x, stride=2),
        "is not row-major": Interface(x, strides=(8,)),
        "is int32, but the model takes float32; convert it": Interface(x, typestr="<i4"),
        "cannot be read: it has a mask": Interface(x, mask=x),
        "cannot be read: its address is not of a GPU": Interface(x, data=(64, False)),
        "its dims are|its rank is 2": Interface(x, shape=(500, 2)),
    }
    for text, array in wrong.items():
        with pytest.raises(tc.RefusedError, match=f'chain.bin: input "x".*({text})'):
            chain(x=array)
    with pytest.raises(tc.InvalidError, match="it runs on cuda:0, so results are not on cuda:1"):
        chain({"x": x}, device="cuda:1")
    with pytest.raises(tc.InvalidError, match='no device "tpu" for arrays'):
        chain({"x": x}, device="tpu")
    np.testing.assert_array_equal(chain(x=x)["y"].numpy(), Y)


def test_on_the_cpu():
    model = tc.compile(os.path.join(os.path.dirname(__file__), "..", "..", "models", "digits", "model.onnx"))
    images = np.zeros((1, 1, 8, 8), np.float32)
    for array in (on_gpu(images), Exporter(on_gpu(images)), Interface(on_gpu(images))):
        with pytest.raises(tc.RefusedError, match='input "images" is in memory of a GPU, but the artifact runs on the CPU; give it from host memory'):
            model(images=array)
    with pytest.raises(tc.InvalidError, match="what out gives is in memory of a GPU"):
        model({"images": images}, out={"logits": on_gpu(np.zeros((1, 10), np.float32))})
    session = tc.InferenceSession(os.path.join(os.path.dirname(__file__), "..", "..", "models", "digits", "model.onnx"))
    with pytest.raises(tc.InvalidError, match='"images" cannot be bound to memory of a GPU, as the session runs on the CPU'):
        session.io_binding().bind_ortvalue_input("images", tc.OrtValue.ortvalue_from_numpy(images, "cuda", 0))


def take(capsule):
    """As a consumer of DLPack does: the tensor and its deleter, the capsule renamed."""
    is_versioned = "versioned" in repr(capsule)
    name = b"dltensor_versioned" if is_versioned else b"dltensor"
    managed = ffi.cast("tc_dlpack_versioned_t *" if is_versioned else "tc_dlpack_t *", _capsule_get(capsule, name))
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
    take.name = b"used_" + name
    rename(capsule, take.name)
    return managed


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_lives_as_long_as_it_is_used(chain, version):
    y = chain(x=on_gpu(X))["y"]
    capsule = y.__dlpack__(max_version=version)
    managed = take(capsule)
    address = managed.tensor.data
    assert (managed.tensor.device_type, managed.tensor.code, managed.tensor.bits, managed.tensor.lanes) == (2, 2, 32, 1)
    assert (managed.tensor.ndim, managed.tensor.shape[0], managed.tensor.strides[0]) == (1, 1000, 1)
    y.numpy()
    del y, capsule
    other = chain(x=on_gpu(X + 1))["y"] # does not get the memory
    values = np.frombuffer(ffi.buffer(address, 4000), np.float32)
    np.testing.assert_array_equal(values, Y)
    assert other.__cuda_array_interface__["data"][0] != int(ffi.cast("uintptr_t", address))
    thread = threading.Thread(target=managed.deleter, args=(managed,)) # whichever thread
    thread.start()
    thread.join()
    del other
    chain.close()
    gc.collect()
    assert "allocations" not in " ".join(report("live"))


def test_memory_comes_again(chain):
    x = on_gpu(X)
    for _ in range(3):
        chain(x=x)["y"].numpy()
    allocations, frees = calls("cuMemAlloc"), calls("cuMemFree")
    for _ in range(20):
        chain(x=x)["y"].__dlpack__(stream=1) # a capsule that nobody takes
    assert (calls("cuMemAlloc"), calls("cuMemFree")) == (allocations, frees)
    stream = Stream()
    chain(x=x)["y"].__dlpack__(stream=stream.cuda_stream) # other streams may still use it: the driver frees it, which waits
    assert calls("cuMemFree") == frees + 1
    for y in (chain(x=x)["y"], chain(x=x)["y"]):
        with pytest.raises(BufferError, match="copy it with copy_to"):
            y.__dlpack__(copy=True)
        with pytest.raises(BufferError):
            y.__dlpack__(dl_device=(1, 0))
    stream.end()


def test_exported_streams(chain):
    """A consumer's stream waits for what makes the array."""
    producer, consumer = Stream(), Stream()
    y = chain({"x": on_gpu(X, producer)}, stream=producer)["y"]
    waits = calls("cuStreamSynchronize")
    managed = take(y.__dlpack__(stream=consumer.cuda_stream))
    target = np.zeros(1000, np.float32)
    assert calls("cuStreamSynchronize") == waits and calls("cuStreamWaitEvent") > 0
    assert cuda.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(target.ctypes.data), ctypes.c_uint64(int(ffi.cast("uintptr_t", managed.tensor.data))), ctypes.c_size_t(4000),
                                     ctypes.c_void_p(consumer.cuda_stream)) == 0 # fmt: skip
    assert not target.any()
    assert cuda.cuStreamSynchronize(ctypes.c_void_p(consumer.cuda_stream)) == 0
    np.testing.assert_array_equal(target, Y)
    managed.deleter(managed)
    del y
    producer.end()
    consumer.end()


def test_copy_to(chain):
    y = chain(x=on_gpu(X))["y"]
    host, device = np.zeros(1000, np.float32), on_gpu(np.zeros(1000, np.float32))
    y.copy_to(host)
    y.copy_to(device)
    np.testing.assert_array_equal(host, Y)
    np.testing.assert_array_equal(device.numpy(), Y)
    for wrong, text in ((np.zeros(3, np.float32), r"float32\[3\], but float32\[1000\] is written"), ([1.0], "list has neither"), (Exporter(device, gpu=1), "on cuda:1")):
        with pytest.raises(tc.InvalidError, match=f"the target .*{text}"):
            y.copy_to(wrong)
    with pytest.raises(ValueError, match="without a copy"):
        y.__array__(copy=False)
    assert float(on_gpu(np.float32(3))) == 3 and on_gpu(np.float32(3)).shape == ()
    with pytest.raises(tc.InvalidError, match="<U1 cannot be in memory of a GPU"):
        on_gpu(np.array(["a"]))


def test_bf16():
    import ml_dtypes
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, ["n", 4]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "graph", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with tc.compile(model, target="cuda") as compiled: # whose kernels this driver does not run
        x = on_gpu(np.ones((2, 4), ml_dtypes.bfloat16))
        for given in (x, ReadOnly(x), Interface(x)):
            z = compiled(x=given, y=x)["z"]
            assert z.dtype == ml_dtypes.bfloat16 and z.shape == (2, 4) and z.__cuda_array_interface__["typestr"] == "|V2"
            managed = take(z.__dlpack__())
            assert (managed.tensor.code, managed.tensor.bits, list(managed.tensor.strides[0:2])) == (4, 16, [4, 1])
            managed.deleter(managed)
        with pytest.raises(tc.RefusedError, match='input "y" is float16, but the model takes bfloat16'):
            compiled(x=x, y=on_gpu(np.ones((2, 4), np.float16)))
        with pytest.raises(tc.RefusedError, match='input "y" is missing'):
            compiled(x=x)
        # A refused call leaves no sizes behind.
        wider = on_gpu(np.ones((3, 4), ml_dtypes.bfloat16))
        for wrong in (on_gpu(np.ones((3, 4), np.float16)), x):
            with pytest.raises(tc.RefusedError):
                compiled(x=wider, y=wrong)
        assert compiled(x=x, y=x)["z"].shape == (2, 4) and compiled(x=wider, y=wider)["z"].shape == (3, 4)


def test_memory_that_runs_out(chain):
    x = on_gpu(X)
    chain(x=x)
    large = 1 << 40
    with pytest.raises(tc.MachineError, match=r"GPU 0: the GPU has no memory left for an array \(4398046511104 bytes\)|bad_alloc"):
        tc.OrtValue.ortvalue_from_shape_and_type((large,), np.float32, "cuda", 0)
    with pytest.raises(tc.MachineError, match="there is no GPU 7; this machine shows 1"):
        tc.DeviceArray.from_host(X, "cuda:7")
    np.testing.assert_array_equal(chain(x=x)["y"].numpy(), Y)


def test_runs_that_find_no_memory(folder):
    code = """
import sys, numpy as np, tc_compiler as tc
model = tc.load(sys.argv[1], device="cuda")
small, large = (tc.DeviceArray.from_host(np.ones(n, np.float32)) for n in (10, 100000))
for given in (small, large, small, np.ones(100000, np.float32), small, large):
    try:
        y = model.run({"x": given}, device="cuda")["y"]
        print(y.shape[0], y.numpy()[0])
    except tc.MachineError as error:
        print(error.code, "no memory left" in str(error))
"""
    command = [os.sys.executable, "-c", code, artifact("chain", folder)]
    result = subprocess.run(command, env={**os.environ, "FAKE_CUDA": "memory=700000"}, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["10 81.0", "5 True", "10 81.0", "5 True", "10 81.0", "5 True"]


def test_no_gpu(folder):
    code = "import sys, numpy as np, tc_compiler as tc\nx = np.ones(2, np.float32)\n" \
           "for call in (lambda: tc.load(sys.argv[1], device='cuda').run({'x': x}, device='cuda'), lambda: tc.DeviceArray.from_host(x)):\n" \
           "    try: call()\n    except tc.MachineError as error: print(error)" # fmt: skip
    command = [os.sys.executable, "-c", code, artifact("chain", folder)]
    for settings, text in (({"FAKE_CUDA": "devices=0"}, "this machine shows"), ({"LD_LIBRARY_PATH": ""}, "the NVIDIA driver")):
        lines = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(lines) == 2 or os.path.exists("/dev/nvidiactl")
        assert all(text in line for line in lines)


def test_forks(chain):
    x, y = on_gpu(X), chain(x=on_gpu(X))["y"]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            on_gpu(X)
        except tc.MachineError as error:
            status = 0 if "forked from one that used CUDA" in str(error) else 2
        try:
            chain(x=x)
            status = 3
        except tc.InvalidError:
            pass
        before = report("calls")
        del x, y # which are the parent's
        os._exit(status if report("calls") == before else 4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(y.numpy(), Y)


def test_threads(chain):
    """Each with a stream of its own."""
    wrong = []

    def work(seed):
        stream = Stream()
        for turn in range(20):
            n = 10 * (seed % 5 + 1) + turn % 2
            x = on_gpu(X[:n] + seed, stream)
            y = chain({"x": x}, stream=stream if turn % 3 else None)["y"]
            if not np.array_equal(y.numpy(), (2187 if n % 2 else 81) * (X[:n] + seed)):
                wrong.append((seed, turn))
        del x, y
        stream.end()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_ort_values(chain):
    value = tc.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
    assert (value.device_name(), value.shape(), value.data_type(), value.element_type(), value.tensor_size_in_bytes()) == ("cuda", [1000], "tensor(float)", 1, 4000)
    assert value.data_ptr() == value._array.__cuda_array_interface__["data"][0] and value.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(value.numpy(), X)
    np.testing.assert_array_equal(np.asarray(value), X)
    value.update_inplace(X + 1)
    np.testing.assert_array_equal(value.numpy(), X + 1)
    value.update_inplace(tc.OrtValue.ortvalue_from_numpy(X, "cuda", 0))
    np.testing.assert_array_equal(value.numpy(), X)
    host = tc.OrtValue.ortvalue_from_numpy(np.zeros(1000, np.float32))
    host.update_inplace(value)
    np.testing.assert_array_equal(host.numpy(), X)
    with pytest.raises(tc.InvalidError, match=r"the value is float32\[1000\], but was given float64\[1000\]"):
        value.update_inplace(X.astype(np.float64))
    with pytest.raises(tc.InvalidError, match='no arrays on "dml"'):
        tc.OrtValue.ortvalue_from_numpy(X, "dml", 0)
    assert tc.OrtValue.ortvalue_from_shape_and_type([2, 3], 16, "cuda", 0).data_type() == "tensor(bfloat16)"
    again = tc.OrtValue.from_dlpack(value)
    assert again.data_ptr() == value.data_ptr() and again.data_type() == "tensor(float)"
    assert "dltensor" in repr(value.to_dlpack())
    assert chain(x=value)["y"].numpy()[1] == 81


def test_session(folder):
    path = artifact("chain", folder)
    stream = Stream()
    options = {"device_id": 0, "user_compute_stream": str(stream.cuda_stream)}
    with pytest.raises(tc.InvalidError, match='user_compute_stream is "s"'):
        tc.InferenceSession(path, providers=[("CUDAExecutionProvider", {"user_compute_stream": "s"})])
    for given in ({"providers": ["CUDAExecutionProvider"]}, {"providers": ["CUDAExecutionProvider"], "provider_options": [options]},
                  {"providers": [("CUDAExecutionProvider", options), "CPUExecutionProvider"]}): # fmt: skip
        session = tc.InferenceSession(path, **given)
        assert session.get_providers() == ["CUDAExecutionProvider"]
        if len(given) == 2 or "CPUExecutionProvider" in given["providers"]:
            assert session.get_provider_options()["CUDAExecutionProvider"] == {key: str(value) for key, value in options.items()}
            created = calls("cuStreamCreate")
            session.run(None, {"x": X})
            assert calls("cuStreamCreate") <= created + 1 # of the weights
        x = tc.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
        for feed in ({"x": X}, {"x": x}, {"x": Exporter(x)}):
            (y,) = session.run(None, feed)
            assert type(y) is np.ndarray
            np.testing.assert_array_equal(y, Y)
        (y,) = session.run_with_ort_values(["y"], {"x": x})
        np.testing.assert_array_equal(y.numpy(), Y)

        target = tc.OrtValue.ortvalue_from_shape_and_type([1000], np.float32, "cuda", 0)
        binding = session.io_binding()
        binding.bind_input("x", "cuda", 0, np.float32, [1000], x.data_ptr())
        binding.bind_output("y", "cuda", 0, np.float32, [1000], target.data_ptr())
        copies = calls("cuMemcpy")
        session.run_with_iobinding(binding)
        assert calls("cuMemcpy") == copies
        (result,) = binding.get_outputs()
        assert result.data_ptr() == target.data_ptr() and result.device_name() == "cuda"
        np.testing.assert_array_equal(target.numpy(), Y)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)
        x.update_inplace(X + 1)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(target.numpy(), Y + 81)
        x.update_inplace(X)
        binding.clear_binding_outputs()
        for bind, kind in ((lambda: binding.bind_output("y", "cuda"), "cuda"), (lambda: binding.bind_output("y"), "cpu"), (lambda: binding.bind_ortvalue_output("y", target), "cuda")):
            bind()
            session.run_with_iobinding(binding)
            assert binding.get_outputs()[0].device_name() == kind
            np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)
        binding.bind_ortvalue_input("x", x)
        session.run_with_iobinding(binding)
        with pytest.raises(tc.InvalidError, match="needs element_type and shape"):
            binding.bind_output("y", "cuda", 0, buffer_ptr=target.data_ptr())
        binding.bind_output("y", "cuda", 0, np.float32, [999], target.data_ptr())
        with pytest.raises(tc.InvalidError, match=r"float32\[999\], but float32\[1000\] is written"):
            session.run_with_iobinding(binding)
        done, got = threading.Event(), []
        session.run_async(["y"], {"x": x}, lambda *result: (got.append(result), done.set()), None)
        assert done.wait(30) and got[0][2] == ""
        np.testing.assert_array_equal(got[0][0][0], Y)
        del session, binding, result, target, x
        gc.collect()
    stream.end()


def test_lock_is_released(chain):
    """Runs of threads at once: with the lock held none of them would come to an end before the others began."""
    x, results = on_gpu(X), []
    threads = [threading.Thread(target=lambda: results.append(chain(x=x)["y"].numpy())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16 and all(np.array_equal(y, Y) for y in results)


def test_nothing_is_left():
    gc.collect()
    from tc_compiler._tcrt import lib

    lib.tcrt_gpu_trim()
    assert report("live") == [] and report("problems") == []
