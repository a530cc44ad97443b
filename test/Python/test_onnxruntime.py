# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One script for ONNX Runtime, run with it (where it is installed) and with tc_compiler under its name: both say the same."""
import importlib.util
import json
import os
import threading

import numpy as np
import onnx
import pytest
import tc_compiler

DIGITS = os.path.join(os.path.dirname(__file__), "..", "..", "models", "digits")


def script(onnxruntime):
    """What a program sees of a session, as plain data; arrays in a list of their own."""
    said, arrays = [], []
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_free_dimension_override_by_name("batch", 4)
    said.append(options.get_session_config_entry("session.intra_op.allow_spinning"))
    session = onnxruntime.InferenceSession(os.path.join(DIGITS, "model.onnx"), sess_options=options, providers=["CPUExecutionProvider"])
    said += [session.get_providers(), list(session.get_provider_options()), session.get_session_options().intra_op_num_threads]
    said += [(arg.name, arg.type, arg.shape) for arg in session.get_inputs() + session.get_outputs()]
    said.append([arg.name for arg in session.get_overridable_initializers()])
    said.append("CPUExecutionProvider" in onnxruntime.get_available_providers())
    images = np.load(os.path.join(DIGITS, "inputs.npz"))["images"][:4]
    arrays += session.run(None, {"images": images})
    arrays += session.run(["logits"], {"images": images}, onnxruntime.RunOptions())
    value = onnxruntime.OrtValue.ortvalue_from_numpy(images)
    said += [value.shape(), value.data_type(), value.device_name(), value.is_tensor(), value.has_value(), value.tensor_size_in_bytes()]
    (result,) = session.run_with_ort_values(["logits"], {"images": value})
    arrays.append(result.numpy())

    binding = session.io_binding()
    binding.bind_cpu_input("images", images)
    binding.bind_output("logits")
    session.run_with_iobinding(binding)
    arrays += binding.copy_outputs_to_cpu()
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    source, target = images.copy(), np.zeros((4, 10), np.float32)
    binding.bind_input("images", "cpu", 0, np.float32, source.shape, source.ctypes.data)
    binding.bind_output("logits", "cpu", 0, np.float32, target.shape, target.ctypes.data)
    session.run_with_iobinding(binding)
    arrays.append(target.copy())
    source[:] = source[::-1].copy() # what is bound is read anew
    session.run_with_iobinding(binding)
    arrays.append(target[::-1].copy())

    done, got = threading.Event(), []

    def callback(results, user_data, error):
        got.append((user_data, error))
        arrays.extend(results)
        done.set()

    session.run_async(["logits"], {"images": images}, callback, "mine")
    assert done.wait(60)
    for names, feed in ((["nothing"], {"images": images}), (None, {}), (None, {"images": images.astype(np.float64)}), (None, {"images": images[:3]})):
        try:
            session.run(names, feed)
            said.append("taken")
        except Exception:
            said.append("refused")
    return said + got, arrays


def test_script():
    said, arrays = script(tc_compiler)
    expected = np.load(os.path.join(DIGITS, "outputs.npz"))["logits"][:4]
    assert len(arrays) == 7
    for array in arrays:
        np.testing.assert_allclose(array, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    assert ("images", "tensor(float)", [4, 1, 8, 8]) in said and said.count("refused") == 4


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_same_as_onnxruntime():
    import onnxruntime

    (said, arrays), (theirs, expected) = script(tc_compiler), script(onnxruntime)
    assert said == theirs
    for array, other in zip(arrays, expected, strict=True):
        assert array.dtype == other.dtype
        np.testing.assert_allclose(array, other, rtol=0, atol=2e-5 * np.abs(other).max())


def test_binding_errors():
    session = tc_compiler.InferenceSession(os.path.join(DIGITS, "model.onnx"))
    binding = session.io_binding()
    with pytest.raises(tc_compiler.InvalidError, match='no output "nothing"'):
        binding.bind_output("nothing")
    with pytest.raises(tc_compiler.InvalidError, match='"images" cannot be bound to memory of a GPU, as the session runs on the CPU'):
        binding.bind_input("images", "cuda", 0, np.float32, (1, 1, 8, 8), 64)
    binding.bind_cpu_input("images", np.zeros((2, 1, 8, 8), np.float32))
    binding.bind_ortvalue_output("logits", tc_compiler.OrtValue.ortvalue_from_shape_and_type((3, 10), np.float32))
    with pytest.raises(tc_compiler.InvalidError, match=r"float32\[3, 10\], but float32\[2, 10\] is written"):
        session.run_with_iobinding(binding)
    with pytest.raises(tc_compiler.InvalidError, match="no entry"):
        tc_compiler.SessionOptions().get_session_config_entry("none")


def test_options_are_onnxruntimes():
    """Each option can be read before it is set; a name that ONNX Runtime has not is an error, as there."""
    options, run_options = tc_compiler.SessionOptions(), tc_compiler.RunOptions()
    for given, names in ((options, "enable_cpu_mem_arena enable_mem_pattern enable_mem_reuse execution_order inter_op_num_threads log_verbosity_level logid "
                                   "optimized_model_filepath use_deterministic_compute use_per_session_threads"),
                         (run_options, "log_severity_level log_verbosity_level logid only_execute_path_to_fetches terminate training_mode")): # fmt: skip
        for name in names.split():
            setattr(given, name, getattr(given, name))
        with pytest.raises(AttributeError, match="intra_op_threads"):
            given.intra_op_threads = 1
    assert options.graph_optimization_level == tc_compiler.GraphOptimizationLevel.ORT_ENABLE_ALL
    run_options.add_run_config_entry("a", "b")
    assert run_options.get_run_config_entry("a") == "b"
    with pytest.raises(tc_compiler.InvalidError, match="no entry"):
        run_options.get_run_config_entry("b")
    with pytest.raises(tc_compiler.UnsupportedError, match="--custom-op"):
        options.register_custom_ops_library("libops.so")
    with pytest.raises(tc_compiler.UnsupportedError, match='initializer "w"'):
        options.add_initializer("w", None)
    session = tc_compiler.InferenceSession(os.path.join(DIGITS, "model.onnx"))
    session.disable_fallback()
    session.set_providers(["CPUExecutionProvider"])
    assert session.run(None, {"images": np.zeros((1, 1, 8, 8), np.float32)})[0].shape == (1, 10)
    with pytest.raises(tc_compiler.InvalidError, match="a dict of arrays by names, but were given as NoneType"):
        session.run(None, None)


def test_inputs_with_values_of_the_model():
    """Initializers that are inputs as well may be left out, so they are overridable; a dim without a name has none."""
    onnx_value, number = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "sum", [onnx_value("x", number, ["N", None]), onnx_value("w", number, [1])],
                                   [onnx_value("y", number, ["N", None])], [onnx.helper.make_tensor("w", number, [1], [2.0])])  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    session = tc_compiler.InferenceSession(model.SerializeToString())
    assert [(arg.name, arg.shape) for arg in session.get_inputs()] == [("x", ["N", None])]
    assert [(arg.name, arg.shape) for arg in session.get_overridable_initializers()] == [("w", [1])]
    assert session.get_outputs()[0].shape == ["N", None]
    x = np.ones((2, 3), np.float32)
    assert (session.run(None, {"x": x})[0] == 3).all() and (session.run(None, {"x": x, "w": np.ones(1, np.float32)})[0] == 2).all()


def test_wrong_uses():
    path, x = os.path.join(DIGITS, "model.onnx"), np.zeros((1, 1, 8, 8), np.float32)
    with pytest.warns(UserWarning, match="no provider Other; there are CUDAExecutionProvider, CPUExecutionProvider"):
        session = tc_compiler.InferenceSession(path, providers=[("Other", {"a": 1}), "CPUExecutionProvider"])
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    with pytest.raises(tc_compiler.InvalidError, match="2 provider_options are given for 1 providers"):
        tc_compiler.InferenceSession(path, providers=["CPUExecutionProvider"], provider_options=[{}, {}])
    with pytest.raises(tc_compiler.InvalidError, match=r'the text "logits"; give \["logits"\]'):
        session.run("logits", {"images": x})
    options = tc_compiler.RunOptions()
    options.terminate = True
    errors, done = [], threading.Event()
    for run in (session.run, session.run_with_ort_values):
        with pytest.raises(tc_compiler.InvalidError, match="terminate"):
            run(None, {"images": x}, options)
    session.run_async(None, {"images": x}, lambda outputs, data, error: (errors.append(error), done.set()), None, options)
    assert done.wait(60) and "terminate" in errors[0]
    binding = session.io_binding()
    value = tc_compiler.OrtValue.ortvalue_from_numpy(x)
    for bind in (lambda: binding.bind_cpu_input("none", x), lambda: binding.bind_ortvalue_input("none", value),
                 lambda: binding.bind_input("none", "cpu", 0, np.float32, x.shape, x.ctypes.data)):  # fmt: skip
        with pytest.raises(tc_compiler.InvalidError, match='there is no input "none"; inputs are images'):
            bind()
    with pytest.raises(tc_compiler.InvalidError, match="terminate"):
        session.run_with_iobinding(binding, options)


def test_metadata():
    """What the model says of itself, such as the classes' names that detectors keep there."""
    model = onnx.load(os.path.join(DIGITS, "model.onnx"))
    producer = " ".join(filter(None, (model.producer_name, model.producer_version)))
    onnx.helper.set_model_props(model, {"names": "{0: 'zero'}", "stride": "32"})
    meta = tc_compiler.InferenceSession(model.SerializeToString()).get_modelmeta()
    assert meta.custom_metadata_map == {"names": "{0: 'zero'}", "stride": "32"} and meta.producer_name == producer


def test_bound_addresses():
    session, x = tc_compiler.InferenceSession(os.path.join(DIGITS, "model.onnx")), np.zeros((1, 1, 8, 8), np.float32)
    binding = session.io_binding()
    for shape in ([-1, 3], [2**62, 2**62], [2**40, 2**40], [1.5], [1] * 40):
        with pytest.raises(tc_compiler.InvalidError, match="there are no arrays of shape"):
            binding.bind_input("images", "cpu", 0, np.float32, shape, x.ctypes.data)
    with pytest.raises(tc_compiler.InvalidError, match="there are no arrays of shape"):
        tc_compiler.OrtValue.ortvalue_from_shape_and_type([-1], np.float32)
    with pytest.raises(tc_compiler.InvalidError, match="strings have no address"):
        binding.bind_input("images", "cpu", 0, object, [2], x.ctypes.data)
    for address in (0, -5, 2**64, None):
        with pytest.raises(tc_compiler.InvalidError, match="there is no memory at the address"):
            binding.bind_input("images", "cpu", 0, np.float32, x.shape, address)


def test_update_in_place():
    value = tc_compiler.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    for wrong in (np.ones(3, np.float32), np.ones((2, 3)), np.ones((2, 3), np.dtype(np.float32).newbyteorder()), 5.0):
        with pytest.raises(tc_compiler.InvalidError, match=r"the value is float32\[2, 3\], but was given"):
            value.update_inplace(wrong)
    assert not value.numpy().any()
    value.update_inplace(np.ones((2, 3), np.float32))
    assert value.numpy().all()


def test_provider_without_code(tmp_path):
    path = str(tmp_path / "model.bin")
    tc_compiler.compile(os.path.join(DIGITS, "model.onnx"), output=path)
    with pytest.warns(RuntimeWarning, match="the artifact has no code for GPUs, so it runs on the CPU"):
        session = tc_compiler.InferenceSession(path, providers=[("CUDAExecutionProvider", {"user_compute_stream": "5"}), "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"] and session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert session.run(None, {"images": np.zeros((1, 1, 8, 8), np.float32)})[0].shape == (1, 10)


def test_providers_of_a_machine_without_gpus(monkeypatch):
    monkeypatch.setattr("tc_compiler.session.get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.warns(RuntimeWarning, match="CUDAExecutionProvider is not available, as there is no NVIDIA driver"):
        session = tc_compiler.InferenceSession(os.path.join(DIGITS, "model.onnx"), providers=["CUDAExecutionProvider", "CPUExecutionProvider"], provider_options=[{"device_id": 0}, {}])
    assert session.get_providers() == ["CPUExecutionProvider"] and session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert session.run(None, {"images": np.zeros((1, 1, 8, 8), np.float32)})[0].shape == (1, 10)


def test_profiling(tmp_path):
    options = tc_compiler.SessionOptions()
    with pytest.raises(tc_compiler.InvalidError, match="set enable_profiling"):
        tc_compiler.InferenceSession(os.path.join(DIGITS, "model.onnx"), options).end_profiling()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = tc_compiler.InferenceSession(os.path.join(DIGITS, "model.onnx"), options)
    for _ in range(3):
        session.run(None, {"images": np.zeros((1, 1, 8, 8), np.float32)})
    path = session.end_profiling()
    with open(path) as file:
        events = json.load(file)
    assert path.startswith(str(tmp_path)) and events and all(e["ph"] == "X" and e["dur"] > 0 and e["args"]["launches"] % 3 == 0 for e in events)


def test_inputs_are_given_by_name():
    artifact = tc_compiler.compile(os.path.join(DIGITS, "model.onnx"))
    x = np.zeros((1, 1, 8, 8), np.float32)
    for wrong in (x, [x], 5):
        with pytest.raises(tc_compiler.InvalidError, match=r'inputs are given by name, not as \w+: artifact\({"images": array}\)'):
            artifact(wrong)
