# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python package: arrays in and out, errors, threads, forks, ONNX Runtime's interface.

usage: PYTHONPATH=build/python TC_BIN=build/bin pytest test/Python
"""
import gc
import os
import resource
import subprocess
import sys
import threading
import weakref

import numpy as np
import onnx
import pytest
import tc_compiler as tc
from onnx import TensorProto, helper


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def sum_model(dtype=TensorProto.FLOAT, shape=("n", 4)):
    return model([helper.make_node("Add", ["x", "y"], ["z"])], [tensor("x", shape, dtype), tensor("y", shape, dtype)], [tensor("z", shape, dtype)])


@pytest.fixture(scope="module")
def add():
    return tc.compile(sum_model(), threads=1)


def test_run(add):
    assert [(v.name, v.dtype.name, v.shape) for v in add.inputs] == [("x", "f32", ("n", 4)), ("y", "f32", ("n", 4))]
    assert [s.name for s in add.main.symbols] == ["n"]
    for n in (1, 3, 0, 3, 1000):
        x, y = np.random.rand(n, 4).astype(np.float32), np.random.rand(n, 4).astype(np.float32)
        (result,) = add.run({"x": x, "y": y}).values()
        assert result.dtype == np.float32 and result.shape == (n, 4)
        np.testing.assert_array_equal(result, x + y)
        np.testing.assert_array_equal(add(x=x, y=y)["z"], x + y)


def test_results_are_new_arrays(add):
    x = np.ones((2, 4), np.float32)
    first = add(x=x, y=x)["z"]
    add(x=x, y=5 * x)
    np.testing.assert_array_equal(first, 2 * x)


def test_layouts(add):
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    for view in (x[:, ::2], np.asfortranarray(x[:, :4]), x.T[::2].T, x[::-1, :4]):
        np.testing.assert_array_equal(add(x=view, y=np.zeros((4, 4), np.float32))["z"], view)
    np.testing.assert_array_equal(add(x=[[1, 2, 3, 4]], y=[[0.5, 0, 0, 0]])["z"], [[1.5, 2, 3, 4]])
    read_only = np.ones((1, 4), np.float32)
    read_only.flags.writeable = False
    np.testing.assert_array_equal(add(x=read_only, y=read_only)["z"], 2 * read_only)


class Exporter:
    """What has DLPack's methods alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack(add):
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(add(x=Exporter(x), y=x)["z"], 2 * x)


@pytest.mark.parametrize("name", ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BFLOAT16"])
def test_dtypes(name):
    dtype = getattr(TensorProto, name)
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    artifact = tc.compile(sum_model(dtype, ()), threads=1)
    result = artifact(x=np.array(3, kind), y=np.array(4, kind))["z"]
    assert result.shape == () and result.dtype == kind and float(result) == 7
    artifact = tc.compile(sum_model(dtype), threads=1)
    x = np.arange(12).reshape(3, 4).astype(kind)
    np.testing.assert_array_equal(artifact(x=x, y=x)["z"].astype(np.float64), 2 * np.arange(12).reshape(3, 4))


def test_bool_and_strings():
    both = tc.compile(model([helper.make_node("And", ["x", "y"], ["z"])], [tensor("x", ["n"], TensorProto.BOOL), tensor("y", ["n"], TensorProto.BOOL)], [tensor("z", ["n"], TensorProto.BOOL)])) # fmt: skip
    assert both(x=np.array([True, True]), y=np.array([True, False]))["z"].tolist() == [True, False]
    joined = tc.compile(model([helper.make_node("StringConcat", ["x", "y"], ["z"])], [tensor("x", ["n"], TensorProto.STRING), tensor("y", ["n"], TensorProto.STRING)], [tensor("z", ["n"], TensorProto.STRING)])) # fmt: skip
    result = joined(x=["a", "ü", ""], y=np.array(["b", "", ""], object))["z"]
    assert result.tolist() == ["ab", "ü", ""]


def test_packed():
    import ml_dtypes

    nodes = [helper.make_node("Cast", ["x"], ["z"], to=TensorProto.INT4), helper.make_node("Cast", ["z"], ["w"], to=TensorProto.INT32)]
    artifact = tc.compile(model(nodes, [tensor("x", ["n"], TensorProto.INT32)], [tensor("z", ["n"], TensorProto.INT4), tensor("w", ["n"], TensorProto.INT32)]))
    values = np.array([-8, 7, 0, -1, 3], np.int32)
    results = artifact(x=values)
    assert results["z"].dtype == ml_dtypes.int4 and results["z"].astype(np.int32).tolist() == values.tolist() == results["w"].tolist()
    back = tc.compile(model([helper.make_node("Cast", ["x"], ["z"], to=TensorProto.INT32)], [tensor("x", ["n"], TensorProto.INT4)], [tensor("z", ["n"], TensorProto.INT32)]))
    assert back(x=results["z"])["z"].tolist() == values.tolist()


def test_sizes_that_data_decide():
    artifact = tc.compile(model([helper.make_node("NonZero", ["x"], ["z"])], [tensor("x", ["n"])], [tensor("z", [1, None], TensorProto.INT64)]))
    for values in ([0, 1, 2], [0, 0], [], [5]):
        assert artifact(x=np.array(values, np.float32))["z"].tolist() == [list(np.nonzero(values)[0])]


def test_sequences_and_optionals():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    nodes = [helper.make_node("SequenceInsert", ["s", "x"], ["t"])]
    artifact = tc.compile(model(nodes, [sequence, tensor("x", ["n"])], [helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)]))
    result = artifact(s=[np.ones(2, np.float32)], x=np.zeros(3, np.float32))["t"]
    assert [x.tolist() for x in result] == [[1, 1], [0, 0, 0]]
    assert [x.tolist() for x in artifact(s=[], x=np.zeros(1, np.float32))["t"]] == [[0]]
    assert artifact.inputs[0].kind == "sequence"


def test_errors(add, tmp_path):
    x = np.ones((2, 4), np.float32)
    with pytest.raises(tc.RefusedError, match='input "y" is missing; inputs are x, y'):
        add(x=x)
    for wrong in (x, [x]):
        with pytest.raises(tc.InvalidError, match=r"out is a \w+; give a dict of arrays by the names of outputs"):
            add(x=x, y=x, out=wrong)
    with pytest.raises(tc.InvalidError, match="dims is 'batch=8'; give a dict of sizes by names"):
        tc.compile(sum_model(), dims="batch=8")
    with pytest.raises(tc.RefusedError, match='no input "w"'):
        add(x=x, y=x, w=x)
    with pytest.raises(tc.RefusedError, match="is float64, but the model takes float32"):
        add(x=x, y=x.astype(np.float64))
    for wrong in (np.ones((3, 4), np.float32), np.ones((2, 5), np.float32), np.ones(4, np.float32), np.ones((1,) * 20, np.float32)):
        with pytest.raises(tc.TcError) as caught:
            add(x=x, y=wrong)
        assert caught.value.code in (1, 4)
    np.testing.assert_array_equal(add(x=x, y=x)["z"], 2 * x) # works on
    with pytest.raises(tc.InvalidError, match="no.bin"):
        tc.load(tmp_path / "no.bin")
    with pytest.raises(tc.InvalidError):
        tc.load(b"no artifact")
    with pytest.raises(tc.InvalidError, match='no device "tpu"'):
        tc.load(b"", device="tpu")
    with pytest.raises(tc.UnsupportedError, match="NoSuchOperator"):
        tc.compile(model([helper.make_node("NoSuchOperator", ["x"], ["z"])], [tensor("x", [1])], [tensor("z", [1])]))
    with pytest.raises(tc.InvalidError, match="--no-such-option"):
        tc.compile(sum_model(), no_such_option=3)
    assert issubclass(tc.RefusedError, tc.TcError) and tc.UnsupportedError.code == 2


def test_values_that_are_none(add, tmp_path):
    """Each is refused with a sentence."""
    path, x = tmp_path / "model.bin", np.ones((2, 4), np.float32)
    tc.compile(sum_model(), output=path)
    for threads in (-1, 2**40, 1.5, None):
        with pytest.raises(tc.InvalidError, match="threads is .*; give the number of threads"):
            tc.load(path, threads=threads)
    options = tc.SessionOptions()
    options.intra_op_num_threads = -4
    with pytest.raises(tc.InvalidError, match="threads is -4"):
        tc.InferenceSession(path, options)
    for device in ("cuda:99999999999999999999", "cuda:2147483648"):
        with pytest.raises(tc.InvalidError, match=f'no device "{device}"'):
            tc.load(path, device=device)
        with pytest.raises(tc.InvalidError, match=f'no device "{device}" for arrays'):
            tc.OrtValue.ortvalue_from_shape_and_type([2], np.float32, "cuda", int(device[5:]))
    with pytest.raises(tc.InvalidError, match='there is no variant "bogus"; variants are '):
        tc.load(path, variant="bogus")
    for wrong in ({"variant": 3}, {"variant": b"x"}, {"device": 3}):
        with pytest.raises(tc.InvalidError, match="give its name as a text, or None"):
            tc.load(path, **wrong)
    with pytest.raises(tc.InvalidError, match="sess_options is of type list; give a SessionOptions"):
        tc.InferenceSession(path, ["CPUExecutionProvider"])
    with pytest.raises(tc.InvalidError, match="the artifact has no code for GPUs; compile it with target"):
        tc.load(path, device="cuda")
    with pytest.raises(tc.InvalidError, match='there is no function "step"; functions are main'):
        tc.load(path).functions["step"]
    for call in (tc.load, tc.InferenceSession):
        with pytest.raises(tc.InvalidError, match="no path has a NUL character"):
            call(f"{path}\0junk")
    with pytest.raises(tc.InvalidError, match="holds a NUL character"):
        tc.compile("model.onnx\0junk")
    for wrong in ([[1, 2], [3]], ["a"], [10**400]):
        with pytest.raises(tc.RefusedError, match='input "x" cannot be read: '):
            add(x=wrong, y=x)
    with pytest.raises(tc.InvalidError, match='it is no training artifact, as it has no function "step"'):
        tc.TrainingArtifact(path).step(x, x)


def test_sizes_of_refused_calls():
    artifact = tc.compile(model([helper.make_node("Mul", ["x", "y"], ["z"])], [tensor("x", ["n"]), tensor("y", [1])], [tensor("z", ["n"])]))
    x, y = np.arange(6, dtype=np.float32), np.full(1, 2, np.float32)
    assert artifact(x=x[:3], y=y)["z"].tolist() == [0, 2, 4]
    with pytest.raises(tc.RefusedError):
        artifact(x=x, y=y.astype(np.float64))
    assert artifact(x=x, y=y)["z"].tolist() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(tc.RefusedError):
        artifact(x=x[:2], y=y.astype(np.float64))
    assert artifact(x=x[:2], y=y)["z"].tolist() == [0, 2]


@pytest.mark.parametrize("wrap", [lambda array: array, Exporter])
def test_out(add, wrap):
    x = np.ones((3, 4), np.float32)
    target = np.zeros((3, 4), np.float32)
    given = wrap(target)
    assert add({"x": x, "y": x}, out={"z": given})["z"] is given
    np.testing.assert_array_equal(target, 2 * x)
    np.testing.assert_array_equal(add(x=x, y=target)["z"], 3 * x)
    empty = np.zeros((0, 4), np.float32)
    assert add({"x": empty, "y": empty}, out={"z": wrap(empty.copy())})["z"] is not None
    wrong = {
        r"what out gives is float32\[2, 4\], but float32\[3, 4\] is written": np.zeros((2, 4), np.float32),
        "float64": np.zeros((3, 4)),
        "not row-major": np.zeros((4, 3), np.float32).T,
    }
    for text, array in wrong.items():
        with pytest.raises(tc.InvalidError, match=f'output "z".*{text}'):
            add({"x": x, "y": x}, out={"z": wrap(array)})
    with pytest.raises(tc.InvalidError, match='output "z" overlaps that of input "x"'):
        add({"x": target, "y": x}, out={"z": wrap(target)})
    target.flags.writeable = False
    with pytest.raises(tc.InvalidError, match='output "z".*read-only'):
        add({"x": x, "y": x}, out={"z": wrap(target)})
    with pytest.raises(tc.InvalidError, match='no output "w" for out; outputs are z'):
        add({"x": x, "y": x}, out={"w": target})
    with pytest.raises(tc.InvalidError, match="cannot be written into what out gives: list has neither"):
        add({"x": x, "y": x}, out={"z": [1]})


def test_byte_orders(add):
    x, other = np.ones((2, 4), np.float32), np.zeros((2, 4), np.dtype(np.float32).newbyteorder())
    with pytest.raises(tc.InvalidError, match='output "z" cannot be written into what out gives: its byte order is not this machine'):
        add({"x": x, "y": x}, out={"z": other})
    session = tc.InferenceSession(sum_model().SerializeToString())
    binding = session.io_binding()
    with pytest.raises(tc.InvalidError, match="no tensors of"):
        binding.bind_output("z", "cpu", 0, other.dtype, other.shape, other.ctypes.data)
    for name in "xy":
        binding.bind_cpu_input(name, x)
    binding.bind_ortvalue_output("z", tc.OrtValue.ortvalue_from_numpy(other))
    with pytest.raises(tc.InvalidError, match="its byte order is not this machine's"):
        session.run_with_iobinding(binding)
    assert not other.any()


def test_tensors():
    torch = pytest.importorskip("torch")
    for name, dtype in (("FLOAT", torch.float32), ("BFLOAT16", torch.bfloat16), ("BOOL", torch.bool)):
        kind, shape = getattr(TensorProto, name), ("n", 4)
        node = helper.make_node("Or" if name == "BOOL" else "Add", ["x", "y"], ["z"])
        artifact = tc.compile(model([node], [tensor("x", shape, kind), tensor("y", shape, kind)], [tensor("z", shape, kind)]))
        x, target = torch.ones(3, 4).to(dtype), torch.zeros(3, 4).to(dtype)
        assert artifact({"x": x, "y": x}, out={"z": target})["z"] is target
        assert target.equal(x + x)
        part = torch.zeros(9, 4).to(dtype)[3:6]
        artifact({"x": x, "y": x}, out={"z": part.requires_grad_(name == "FLOAT")})
        assert part.equal(x + x)
        with pytest.raises(tc.InvalidError, match="not row-major"):
            artifact({"x": x, "y": x}, out={"z": torch.zeros(4, 3).to(dtype).T})


def test_out_of_sizes_that_data_decide():
    artifact = tc.compile(model([helper.make_node("NonZero", ["x"], ["z"])], [tensor("x", ["n"])], [tensor("z", [1, None], TensorProto.INT64)]))
    target = np.zeros((1, 2), np.int64)
    assert artifact({"x": np.array([0, 1, 2], np.float32)}, out={"z": target})["z"] is target and target.tolist() == [[1, 2]]
    with pytest.raises(tc.InvalidError, match=r"int64\[1, 2\], but int64\[1, 1\] is written"):
        artifact({"x": np.array([0, 1, 0], np.float32)}, out={"z": target})


def test_no_gpu_on_the_cpu(add):
    x = np.ones((1, 4), np.float32)
    with pytest.raises(tc.InvalidError, match='runs on the CPU, so results are not on cuda; load it with device="cuda"'):
        add({"x": x, "y": x}, device="cuda")
    with pytest.raises(tc.InvalidError, match="runs on the CPU, which has no streams"):
        add({"x": x, "y": x}, stream=1)
    np.testing.assert_array_equal(add({"x": x, "y": x}, device="cpu")["z"], 2 * x)


def test_inputs_called_as_keywords():
    names = ["stream", "device", "out"]
    nodes = [helper.make_node("Sum", names, ["y"])]
    artifact = tc.compile(model(nodes, [tensor(name, [2]) for name in names], [tensor("y", [2])]))
    x, target = np.ones(2, np.float32), np.zeros(2, np.float32)
    assert artifact(stream=x, device=x, out=x)["y"].tolist() == [3, 3]
    assert artifact({name: x for name in names}, out={"y": target})["y"] is target and target.tolist() == [3, 3]


def test_options(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(sum_model(), path)
    artifact = tc.compile(path, output=tmp_path / "model.bin", dims={"n": 3}, verify=True, cpu=["x86-64-v3"], precision=None)
    assert artifact.inputs[0].shape == (3, 4)
    again = tc.load(str(tmp_path / "model.bin"), profile=True)
    x = np.ones((3, 4), np.float32)
    again(x=x, y=x)
    again(x=x, y=x)
    (kernel,) = again.profile()
    assert kernel["launches"] == 2 and kernel["time_ns"] > 0
    assert again.manifest["producer"]["name"] == "tc"
    with pytest.raises(tc.InvalidError, match="profile=True"):
        artifact.profile()
    again.close()
    with pytest.raises(tc.InvalidError, match="closed"):
        again(x=x, y=x)


def test_threads(add):
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(50):
            x = random.random((seed % 7 + 1, 4), np.float32)
            if not np.array_equal(add(x=x, y=x)["z"], 2 * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_close_while_a_call_is_under_way():
    artifact, x = tc.compile(sum_model()), np.ones((2, 4), np.float32)
    run = artifact.main._run_in

    def closing(*arguments): # as another thread may
        result = run(*arguments)
        artifact.close()
        return result

    artifact.main._run_in = closing
    np.testing.assert_array_equal(artifact(x=x, y=x)["z"], 2 * x)
    artifact.main._run_in = run
    for _ in range(2):
        with pytest.raises(tc.InvalidError, match="the artifact is closed"):
            artifact(x=x, y=x)


def test_forks(add):
    x = np.ones((1, 4), np.float32)
    child = os.fork()
    if child == 0:
        try:
            add(x=x, y=x)
            os._exit(1)
        except tc.InvalidError as error:
            os._exit(0 if "forked" in str(error) else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(add(x=x, y=x)["z"], 2 * x)


def test_bytes_stay_as_long_as_contexts(tmp_path):
    class Data(bytearray): # which a weak reference can watch
        pass

    tc.compile(sum_model(), output=tmp_path / "model.bin")
    data = Data((tmp_path / "model.bin").read_bytes())
    watch = weakref.ref(data)
    artifact = tc.load(data)
    x = np.ones((2, 4), np.float32)
    artifact(x=x, y=x)
    context = artifact.main._contexts[0] # as a call on another thread has it
    del data, artifact
    gc.collect()
    assert watch() is not None
    del context
    gc.collect()
    assert watch() is None


def test_bytes_stay_until_the_collector_has_ended_contexts(tmp_path):
    # Pages, which libtcrt reads where they are, and which are gone with their last user: too early, that ends the process.
    tc.compile(sum_model(), output=tmp_path / "model.bin")
    code = f"""
import gc, mmap, numpy as np, tc_compiler as tc
x = np.ones((2, 4), np.float32)
for _ in range(3):
    with open({str(tmp_path / "model.bin")!r}, "rb") as file:
        artifact = tc.load(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    artifact(x=x, y=x)
    contexts = [artifact.main._contexts[0]]
    contexts.append(contexts)
    del artifact, contexts
    gc.collect()
print("ended")
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "ended\n"


def test_leaks(add, tmp_path):
    x = np.ones((4096, 4), np.float32)

    def peak():
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(100):
        add(x=x, y=x)
    tc.compile(sum_model(), output=tmp_path / "model.bin")
    data = (tmp_path / "model.bin").read_bytes()
    before = peak()
    for _ in range(1000):
        add(x=x, y=x)
    for _ in range(100):
        with tc.load(data) as artifact:
            artifact(x=x, y=x)
    assert peak() - before < 8 << 10 # KiB


def test_imports():
    code = "import sys, tc_compiler; print(sorted({'torch', 'onnx', 'ml_dtypes'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_session(tmp_path):
    import tc_compiler as onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = 99
    session = onnxruntime.InferenceSession(sum_model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert [(i.name, i.type, i.shape) for i in session.get_inputs()] == [("x", "tensor(float)", ["n", 4]), ("y", "tensor(float)", ["n", 4])]
    assert session.get_outputs()[0].name == "z" and session.get_providers() == ["CPUExecutionProvider"]
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x, "y": x})[0], 2 * x)
    np.testing.assert_array_equal(session.run(["z"], {"x": x, "y": onnxruntime.OrtValue.ortvalue_from_numpy(x)})[0], 2 * x)
    with pytest.raises(tc.InvalidError, match='no output "w"'):
        session.run(["w"], {"x": x, "y": x})
    done, got = threading.Event(), []

    def callback(outputs, user_data, error):
        got.append((outputs, user_data, error))
        done.set()

    session.run_async(None, {"x": x, "y": x}, callback, 7)
    assert done.wait(30) and got[0][1:] == (7, "") and got[0][0][0][0, 0] == 2
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_input("y", onnxruntime.OrtValue.ortvalue_from_numpy(x))
    target = onnxruntime.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
    binding.bind_ortvalue_output("z", target)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target.numpy(), 2 * x)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], 2 * x)
    tc.compile(sum_model(), output=tmp_path / "model.bin")
    np.testing.assert_array_equal(onnxruntime.InferenceSession(str(tmp_path / "model.bin")).run(None, {"x": x, "y": x})[0], 2 * x)
    with pytest.raises(tc.InvalidError, match="missing.onnx"):
        onnxruntime.InferenceSession(str(tmp_path / "missing.onnx"))


def test_ptxas_of_wheels(tmp_path, monkeypatch):
    ptxas = tmp_path / "nvidia" / "cu13" / "bin" / "ptxas"
    ptxas.parent.mkdir(parents=True)
    ptxas.write_text("#!/bin/sh\n")
    ptxas.chmod(0o644) # as pip leaves it
    monkeypatch.setenv("PATH", "/first")
    code = "from tc_compiler import compiler; print(compiler._environment()['PATH'])"
    path = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}, capture_output=True, text=True, check=True)
    assert path.stdout.strip() == f"/first:{ptxas.parent}" and os.access(ptxas, os.X_OK)


def test_parts_of_onnxruntime(monkeypatch):
    """A library that stands for ONNX Runtime (test/Unit/FakeOrt) computes a node."""
    fake = os.path.join(os.environ["TC_BIN"], os.pardir, "test", "Unit", "fake-ort", "libonnxruntime.so")
    nodes = [helper.make_node("Add", ["x", "x"], ["y"], name="add"), helper.make_node("Neg", ["y"], ["z"], name="neg")]
    whole = model(nodes, [tensor("x", ("n", 4))], [tensor("z", ("n", 4))])
    monkeypatch.setenv("TCRT_ONNXRUNTIME", os.path.abspath(fake))
    x = np.random.rand(3, 4).astype(np.float32)
    np.testing.assert_array_equal(tc.compile(whole, backend_for="add=onnxruntime").run({"x": x})["z"], -2 * x)
    with pytest.raises(tc.TcError, match='node "add": ONNX Runtime 0.fake: .*FAKE_ORT says so'):
        monkeypatch.setenv("FAKE_ORT", "run")
        tc.compile(whole, backend_for="add=onnxruntime").run({"x": x})
