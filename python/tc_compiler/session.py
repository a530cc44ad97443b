# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime's interface: a script written for it runs with `import tc_compiler as onnxruntime`.

Source: the names and behaviour of onnxruntime.InferenceSession, ONNX Runtime 1.2x's Python API.
"""
from __future__ import annotations

import concurrent.futures
import ctypes
import datetime
import enum
import json
import math
import operator
import os
import tempfile
import warnings
from typing import Any, Callable, Container, Mapping, Sequence

import numpy as np

from ._tcrt import lib
from .arrays import LAZY, DeviceArray, array_of_torch, gpu_of, is_lazy, is_of_torch, is_on_gpu, stream_of, view_of
from .artifact import Artifact, Value
from .compiler import compile
from .dtypes import DTYPES, DType
from .errors import InvalidError, UnsupportedError

_MAGIC = b"tcart\r\n\x1a"


class GraphOptimizationLevel(enum.IntEnum):
    """ONNX Runtime's names; all levels are the same here, as everything happens when the model is compiled."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """ONNX Runtime's names; they change nothing."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """Options of a session, with ONNX Runtime's names; others raise AttributeError. `intra_op_num_threads` threads of a run (0: one per usable core),
    `enable_profiling` with `profile_file_prefix` (see InferenceSession.end_profiling) and sizes of named dims count; the rest may be set and changes
    nothing: the model is compiled."""

    __slots__ = ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling", "execution_mode", "execution_order",
                 "graph_optimization_level", "inter_op_num_threads", "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid",
                 "optimized_model_filepath", "profile_file_prefix", "use_deterministic_compute", "use_per_session_threads", "_dims", "_entries") # fmt: skip

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = self.enable_mem_pattern = self.enable_mem_reuse = self.use_per_session_threads = True
        self.enable_profiling = self.use_deterministic_compute = False
        self.execution_mode: Any = ExecutionMode.ORT_SEQUENTIAL
        self.graph_optimization_level: Any = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = self.intra_op_num_threads = self.log_verbosity_level = 0
        self.log_severity_level = -1
        self.execution_order: Any = 0
        self.logid = self.optimized_model_filepath = ""
        self.profile_file_prefix = "tc_profile"
        self._dims: dict[str, int] = {}
        self._entries: dict[str, str] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """The size of a named dim, for which a model is compiled; artifacts have their sizes already."""
        self._dims[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept, and changes nothing."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """What add_session_config_entry was given; raises InvalidError where it was not."""
        if key not in self._entries:
            raise InvalidError(f'the session options have no entry "{key}"; set it by add_session_config_entry')
        return self._entries[key]

    def register_custom_ops_library(self, path: str) -> None:
        """Raises UnsupportedError: ONNX Runtime's libraries of kernels are its own."""
        raise UnsupportedError(f"{path}: is a library of ONNX Runtime's custom operators, which tc does not call; write them for tc-compile's --custom-op, and give tc.compile custom_op=")

    def add_initializer(self, name: str, ort_value: Any) -> None:
        """Raises UnsupportedError: weights are packed when the model is compiled."""
        raise UnsupportedError(f'the initializer "{name}" cannot be given by a session; write it into the model, or make it an input')


class RunOptions:
    """ONNX Runtime's names. A run does not begin where `terminate` is set; the others change nothing, as compiled code has no options."""

    __slots__ = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "terminate", "training_mode", "_entries")

    def __init__(self) -> None:
        self.log_severity_level, self.log_verbosity_level, self.logid = -1, 0, ""
        self.only_execute_path_to_fetches = self.terminate = self.training_mode = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept, and changes nothing."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """What add_run_config_entry was given; raises InvalidError where it was not."""
        if key not in self._entries:
            raise InvalidError(f'the run options have no entry "{key}"; set it by add_run_config_entry')
        return self._entries[key]


class NodeArg:
    """An input or output: `name`, `type` ("tensor(float)", "seq(tensor(int64))"), `shape` (sizes, names of symbols, None)."""

    def __init__(self, value: Value, unnamed: Container[str] = ()):
        self.name, self.shape = value.name, [None if size in unnamed else size for size in value.shape]
        self.type = f"tensor({value.dtype.onnx})"
        if value.kind == "map":
            self.type = f"map({value.dtype.onnx})"
        elif value.kind != "tensor":
            self.type = f"{'seq' if value.kind == 'sequence' else 'optional'}({self.type})"

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """`producer_name` (with its version), `graph_name`, and `custom_metadata_map`, the model's metadata_props, as the artifact says; ONNX Runtime's other fields are empty."""

    def __init__(self, manifest: Mapping[str, Any], name: str):
        model = manifest.get("model", {})
        self.producer_name, self.graph_name, self.version = str(model.get("producer", "")), name, 0
        self.domain = self.description = self.graph_description = ""
        self.custom_metadata_map: dict[str, str] = dict(model.get("metadata", {}))


def _dtype_of(element_type: Any) -> DType:
    """The type that NumPy or, by its number, ONNX calls so."""
    name = DTYPES[element_type].array if isinstance(element_type, int) and element_type in DTYPES else None
    if name is None:
        try:
            dtype = np.dtype(element_type)
            name = dtype.name if dtype.isnative else ""
        except TypeError:
            name = ""
    for dtype in DTYPES.values():
        if dtype.array == name:
            return dtype
    raise InvalidError(f"ONNX has no tensors of {element_type}")


def _shape_of(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """The sizes, of an array that an address space can hold; raises InvalidError for others."""
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        sizes = (-1,)
    if any(size < 0 for size in sizes) or math.prod(sizes) * dtype.bits >= 2**66 or len(sizes) > lib.TCRT_MAX_RANK:
        most = lib.TCRT_MAX_RANK
        raise InvalidError(f"there are no arrays of shape {shape}; give a size of 0 or more for each of at most {most} dims")
    return sizes


def _device_of(device_type: str, device_id: int) -> str:
    kind = device_type.lower()
    if kind not in ("cpu", "cuda"):
        raise InvalidError(f'there are no arrays on "{device_type}"; devices are cpu and cuda')
    return "cpu" if kind == "cpu" else f"cuda:{device_id}"


def _shown(data: Any) -> np.ndarray:
    """The array, without a copy, of what is in host memory."""
    try:
        if is_lazy(data):
            raise BufferError(LAZY)
        if is_of_torch(data):
            return array_of_torch(data)
        return np.from_dlpack(data) if hasattr(data, "__dlpack__") else np.asarray(data)
    except InvalidError:
        raise
    except (BufferError, RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        raise InvalidError(f"an OrtValue cannot show what is given: {error}") from error


class OrtValue:
    """An array as ONNX Runtime's OrtValue, in host memory or that of a GPU."""

    def __init__(self, array: np.ndarray | DeviceArray):
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """The array itself, not a copy; for "cuda" a copy there. Raises InvalidError for tensors of PyTorch that have no array to
        show."""
        device = _device_of(device_type, device_id)
        if device == "cpu" and not isinstance(array, np.ndarray):
            array = _shown(array)
        return OrtValue(np.asarray(array) if device == "cpu" else DeviceArray.from_host(array, device))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """A new array, of zeros in host memory. element_type: NumPy's, or the number of ONNX's TensorProto.DataType."""
        dtype, device = _dtype_of(element_type), _device_of(device_type, device_id)
        shape = _shape_of(shape, dtype)
        return OrtValue(np.zeros(shape, dtype.numpy) if device == "cpu" else DeviceArray(shape, dtype, gpu_of(device), stream_of(None)))

    @staticmethod
    def from_dlpack(data: Any) -> "OrtValue":
        """What exports DLPack, without a copy. Raises InvalidError for what cannot be shown so."""
        if not is_on_gpu(data):
            return OrtValue(_shown(data))
        try:
            view = view_of(data)
        except (BufferError, RuntimeError, TypeError, NotImplementedError, ValueError) as error:
            raise InvalidError(f"an OrtValue cannot show what is given: {error}") from error
        if view.dtype is None or view.gpu is None or not view.is_contiguous:
            raise InvalidError("an OrtValue is row-major, of a type that ONNX has; give what .contiguous() returns")
        return OrtValue(DeviceArray(view.shape, view.dtype, view.gpu, stream_of(None), view.owner, view.address))

    def numpy(self) -> np.ndarray:
        """The array itself, not a copy; of one on a GPU a copy."""
        return self._array.numpy() if isinstance(self._array, DeviceArray) else self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if isinstance(self._array, DeviceArray):
            return self._array.__array__(dtype, copy)
        if copy:
            return np.array(self._array, dtype)
        return np.asarray(self._array, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def to_dlpack(self) -> Any:
        """A DLPack capsule, for the default stream."""
        return self._array.__dlpack__()

    def shape(self) -> list[int]:
        """Its sizes."""
        return list(self._array.shape)

    def _type(self) -> DType:
        return self._array._type if isinstance(self._array, DeviceArray) else _dtype_of(self._array.dtype)

    def data_type(self) -> str:
        """ONNX Runtime's name of the type: "tensor(float)"; raises InvalidError for types that models have not."""
        return f"tensor({self._type().onnx})"

    def element_type(self) -> int:
        """The number of ONNX's TensorProto.DataType."""
        return self._type().number

    def data_ptr(self) -> int:
        """The address of its first element."""
        return self._array._address if isinstance(self._array, DeviceArray) else self._array.ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """Bytes of its elements."""
        return self._array.nbytes

    def device_name(self) -> str:
        """"cpu" or "cuda"."""
        return "cuda" if isinstance(self._array, DeviceArray) else "cpu"

    def has_value(self) -> bool:
        """Always True."""
        return True

    def is_tensor(self) -> bool:
        """Always True."""
        return True

    def update_inplace(self, data: "np.ndarray | OrtValue") -> None:
        """Copies an array, of the same sizes and type, into this one, which stays where it is. Raises InvalidError for others."""
        source = data._array if isinstance(data, OrtValue) else data
        if is_of_torch(source) and not is_on_gpu(source):
            source = array_of_torch(source)
        if isinstance(source, DeviceArray):
            source.copy_to(self._array)
            return
        source, own = np.asarray(source), self._array.dtype
        if source.shape != tuple(self._array.shape) or source.dtype != own:
            given = f"{source.dtype}{list(source.shape)}"
            raise InvalidError(f"the value is {own}{self.shape()}, but was given {given}; convert it with .astype and .reshape")
        if isinstance(self._array, DeviceArray):
            self._array._copy_from(np.ascontiguousarray(source))
        elif not self._array.flags.writeable:
            raise InvalidError("the value shows an array that is read-only; make it of a copy")
        else:
            self._array[...] = source


class IOBinding:
    """Inputs and outputs of later runs by `session.run_with_iobinding`. Arrays are read and written where they are."""

    def __init__(self, session: "InferenceSession"):
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | str] = {} # or where a new array is made
        self._results: list[OrtValue] = []

    def _place(self, name: str, device_type: str, device_id: int) -> str:
        device, artifact = _device_of(device_type, device_id), self._session._artifact
        if device != "cpu" and artifact._gpu is None:
            raise InvalidError(f'{artifact.path}: "{name}" cannot be bound to memory of a GPU, as the session runs on the CPU; make it with providers=["CUDAExecutionProvider"]') # fmt: skip
        return device

    def _array_at(self, name: str, address: int, device_type: str, device_id: int, element_type: Any, shape: Sequence[int]) -> Any:
        device, dtype = self._place(name, device_type, device_id), _dtype_of(element_type)
        path = self._session._artifact.path
        if dtype.name == "string":
            raise InvalidError(f'{path}: "{name}": strings have no address that NumPy and tc share; bind an array or an OrtValue')
        shape = _shape_of(shape, dtype)
        if math.prod(shape) and (not isinstance(address, (int, np.integer)) or not 0 < address < 2**64):
            raise InvalidError(f'{path}: "{name}": there is no memory at the address {address!r}; give data_ptr() of an array')
        if device != "cpu":
            return DeviceArray(tuple(shape), dtype, gpu_of(device), stream_of(self._session._artifact._stream), None, address)
        count = int(np.prod(shape, dtype=np.int64))
        if not count:
            return np.empty(shape, dtype.numpy)
        memory: Any = (ctypes.c_char * (count * dtype.numpy.itemsize)).from_address(address)
        return np.frombuffer(memory, dtype.numpy).reshape(shape)

    def _check_input(self, name: str) -> None:
        names = [value.name for value in self._session._function.inputs]
        if name not in names:
            raise InvalidError(f'{self._session._artifact.path}: there is no input "{name}"; inputs are {", ".join(names)}')

    def bind_cpu_input(self, name: str, array: np.ndarray) -> None:
        """Later runs read the array, and what is in it then. Raises InvalidError for names that the model has not."""
        self._check_input(name)
        self._inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Later runs read the value's array. Raises InvalidError for names that the model has not."""
        self._check_input(name)
        self._place(name, value.device_name(), 0)
        self._inputs[name] = value._array

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Later runs read `shape` elements at the address, which the caller keeps. device_type: "cpu" or "cuda"; what the caller has enqueued for it in CUDA's
        default stream, or the session's user_compute_stream, comes first. Raises InvalidError where the session cannot read it."""
        self._check_input(name)
        self._inputs[name] = self._array_at(name, buffer_ptr, device_type, device_id, element_type, shape)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Sequence[int] | None = None,
                    buffer_ptr: int | None = None) -> None: # fmt: skip
        """Later runs give the output, in a new array there, or at the address, which the caller keeps. Raises InvalidError for names that
        the model has not."""
        self._session._index_of(name)
        if buffer_ptr is None:
            self._outputs[name] = self._place(name, device_type, device_id)
            return
        if element_type is None or shape is None:
            raise InvalidError(f'{self._session._artifact.path}: output "{name}" needs element_type and shape with buffer_ptr')
        self._outputs[name] = OrtValue(self._array_at(name, buffer_ptr, device_type, device_id, element_type, shape))

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Later runs write the output into the value's array."""
        self._session._index_of(name)
        self._place(name, value.device_name(), 0)
        self._outputs[name] = value

    def clear_binding_inputs(self) -> None:
        """Forgets what inputs are bound to."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets what outputs are bound to."""
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        """Nothing is under way between runs."""

    def synchronize_outputs(self) -> None:
        """Nothing is under way between runs."""

    def get_outputs(self) -> list[OrtValue]:
        """The last run's outputs, in the order in which they were bound (none were: the model's)."""
        return self._results

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The arrays of get_outputs."""
        return [value.numpy() for value in self._results]


class InferenceSession:
    """A model to run. Thread-safe, as Artifact.

    path_or_bytes: an artifact, or a model that is compiled first (.onnx, .pt2, .pt, ONNX's bytes); $TC_CACHE_DIR keeps what was compiled. providers:
    "CUDAExecutionProvider" first compiles for GPUs; of its options `device_id` and `user_compute_stream` count: the stream, which must outlive the session,
    is that of its runs, which wait for it. An artifact without code for GPUs, and a model where there is no driver, run on the CPU, with a RuntimeWarning, and
    get_providers says so. Raises TcErrors.
    """

    def __init__(self, path_or_bytes: str | os.PathLike[str] | bytes, sess_options: SessionOptions | None = None, providers: Sequence[Any] | None = None,
                 provider_options: Sequence[Any] | None = None, **_: Any): # fmt: skip
        if not isinstance(sess_options, (SessionOptions, type(None))):
            raise InvalidError(f"sess_options is of type {type(sess_options).__name__}; give a SessionOptions, and providers by name: providers=[...]")
        self._source, self._options = path_or_bytes, sess_options or SessionOptions()
        self._load(providers, provider_options)

    def _load(self, providers: Sequence[Any] | None, provider_options: Sequence[Any] | None) -> None:
        path_or_bytes, options = self._source, self._options
        names: list[str] = [provider if isinstance(provider, str) else provider[0] for provider in providers or []]
        if provider_options and len(provider_options) != len(names):
            raise InvalidError(f"{len(provider_options)} provider_options are given for {len(names)} providers; give a dict for each")
        if unknown := [name for name in names if name not in get_all_providers()]:
            warnings.warn(f"there is no provider {', '.join(unknown)}; there are {', '.join(get_all_providers())}", UserWarning, stacklevel=3)
            known = [i for i, name in enumerate(names) if name not in unknown]
            names, providers = [names[i] for i in known], [(providers or [])[i] for i in known]
            provider_options = [provider_options[i] for i in known] if provider_options else None
        is_cuda = bool(names) and names[0] == "CUDAExecutionProvider"
        if is_cuda and not self._is_artifact(path_or_bytes) and "CUDAExecutionProvider" not in get_available_providers():
            warnings.warn("CUDAExecutionProvider is not available, as there is no NVIDIA driver; the model runs on the CPU", RuntimeWarning, stacklevel=3)
            is_cuda, providers, provider_options = False, ["CPUExecutionProvider"], None
        self._providers = ["CUDAExecutionProvider"] if is_cuda else ["CPUExecutionProvider"]
        first = providers[0] if providers else ""
        given = dict(first[1] if not isinstance(first, str) else (list(provider_options or []) or [{}])[0] or {})
        self._provider_options = {key: str(value) for key, value in given.items()}
        device = f"cuda:{given.get('device_id', 0)}" if is_cuda else None
        threads = getattr(options, "intra_op_num_threads", 0)
        if self._is_artifact(path_or_bytes):
            self._artifact = Artifact(path_or_bytes, threads=threads, device=device, profile=options.enable_profiling)
            if is_cuda and self._artifact._gpu is None:
                text = "the artifact has no code for GPUs, so it runs on the CPU; compile it with --target=cuda"
                warnings.warn(f"{self._artifact.path}: {text}", RuntimeWarning, stacklevel=3)
                self._artifact = Artifact(path_or_bytes, threads=threads, profile=options.enable_profiling)
                is_cuda, self._providers, self._provider_options = False, ["CPUExecutionProvider"], {}
        else:
            with tempfile.TemporaryDirectory(prefix="tc-") as folder:
                output = os.path.join(folder, "model.bin") if device not in (None, "cuda:0") or options.enable_profiling else None
                self._artifact = compile(path_or_bytes, output=output, dims=getattr(options, "_dims", None), threads=threads, target="cuda" if is_cuda else None)
                if output is not None: # compile's is on the first GPU, and without times
                    with open(output, "rb") as file:
                        self._artifact = Artifact(file.read(), threads=threads, device=device, profile=options.enable_profiling)
        if is_cuda and given.get("user_compute_stream"):
            self._artifact._stream = self._stream_of(given["user_compute_stream"])
        self._function = self._artifact.main
        self._indices = {value.name: index for index, value in enumerate(self._function.outputs)}
        # What the compiler calls dims that the model has no names for.
        self._unnamed = {f"{value.name}_dim{axis}" for value in self._function.inputs for axis in range(len(value.shape))}
        self._workers: concurrent.futures.ThreadPoolExecutor | None = None

    @staticmethod
    def _stream_of(given: Any) -> int:
        try:
            return stream_of(int(given))
        except ValueError:
            raise InvalidError(f'user_compute_stream is "{given}"; give the address of a CUstream in decimal') from None

    @staticmethod
    def _is_artifact(source: Any) -> bool:
        if isinstance(source, (bytes, bytearray, memoryview)):
            return bytes(source[: len(_MAGIC)]) == _MAGIC
        try:
            with open(source, "rb") as file:
                return file.read(len(_MAGIC)) == _MAGIC
        except OSError as error:
            raise InvalidError(f"{source}: cannot be read: {error.strerror}") from None
        except ValueError:
            raise InvalidError(f"{source!r}: no path has a NUL character; give the path of a model") from None

    def _index_of(self, name: str) -> int:
        if name not in self._indices:
            raise InvalidError(f'{self._artifact.path}: there is no output "{name}"; outputs are {", ".join(self._indices)}')
        return self._indices[name]

    def _check(self, run_options: RunOptions | None) -> None:
        if run_options is not None and run_options.terminate:
            raise InvalidError(f"{self._artifact.path}: the run was not begun, as terminate of its RunOptions is set")

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a run must be given, in the model's order."""
        return [NodeArg(value, self._unnamed) for value in self._function.inputs if not value.has_default]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return [NodeArg(value, self._unnamed) for value in self._function.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that may be left out, as the model has values for them."""
        return [NodeArg(value, self._unnamed) for value in self._function.inputs if value.has_default]

    def get_modelmeta(self) -> ModelMetadata:
        """What the artifact says of its model."""
        return ModelMetadata(self._artifact.manifest, self._function.name)

    def get_providers(self) -> list[str]:
        """"CPUExecutionProvider" or "CUDAExecutionProvider": where the model runs."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options that the provider was given, as text."""
        return {name: dict(self._provider_options) for name in self._providers}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        """Loads the model again, to run there; see InferenceSession. Not while it runs."""
        self._load(providers, provider_options)

    def disable_fallback(self) -> None:
        """Accepted: a run that fails is not tried elsewhere."""

    def enable_fallback(self) -> None:
        """Accepted, and changes nothing."""

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def end_profiling(self) -> str:
        """Writes the times of kernels since the session was made, with `enable_profiling`, and returns the file's path: a trace of Chrome's format, of an
        event for each kernel as long as all its launches, longest first. Raises InvalidError without that option."""
        if not self._options.enable_profiling:
            raise InvalidError("the session times no kernels; set enable_profiling of its SessionOptions")
        events, at = [], 0.0
        for kernel in self._artifact.profile():
            duration = kernel["time_ns"] / 1000
            rest = {key: kernel[key] for key in ("nodes", "launches", "flops", "bytes")}
            events.append({"cat": "Node", "ph": "X", "pid": os.getpid(), "tid": 0, "ts": at, "dur": duration, "name": kernel["kernel"], "args": rest})
            at += duration
        path = f"{self._options.profile_file_prefix}_{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(events, file)
        return path

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        """The outputs of these names (None or empty: all), in their order, as new NumPy arrays. input_feed: arrays by names of inputs, of the model's
        dtypes and sizes that get_inputs allows; OrtValues. Raises RefusedError for others, InvalidError for names of outputs that the model has not."""
        if isinstance(output_names, str):
            raise InvalidError(f'{self._artifact.path}: names of outputs are given as a list, but were given as the text "{output_names}"; give ["{output_names}"]')
        self._check(run_options)
        wanted = [self._index_of(name) for name in output_names] if output_names else None
        if not isinstance(input_feed, Mapping):
            raise InvalidError(f"{self._artifact.path}: inputs are given as a dict of arrays by names, but were given as {type(input_feed).__name__}")
        feed = {name: value._array if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        return self._function.run_list(feed, wanted, device="cpu" if any(map(is_on_gpu, feed.values())) else None)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: RunOptions | None = None) -> list[OrtValue]:
        """As run, with OrtValues."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], callback: Callable[[list[Any], Any, str], None], user_data: Any,
                  run_options: RunOptions | None = None) -> None: # fmt: skip
        """Runs on another thread, which then calls callback(outputs, user_data, error); error is "" where all is well, else outputs is []."""
        if self._workers is None:
            self._workers = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="tc")

        def work() -> None:
            try:
                outputs, error = self.run(output_names, input_feed, run_options), ""
            except Exception as exception: # the callback is told
                outputs, error = [], str(exception)
            callback(outputs, user_data, error)

        self._workers.submit(work)

    def io_binding(self) -> IOBinding:
        """Names bound to arrays, for run_with_iobinding."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """A run whose inputs and outputs are what was bound. Raises InvalidError where what an output is bound to has another dtype or other sizes."""
        self._check(run_options)
        names, bound = list(iobinding._outputs) or list(self._indices), iobinding._outputs
        # Strings, and elements of less than a byte, are of another form in arrays.
        copied = {value.name for value in self._function.outputs if value.dtype.name == "string" or value.dtype.is_packed}
        out = {name: value._array for name, value in bound.items() if isinstance(value, OrtValue) and name not in copied}
        devices = {value for value in bound.values() if isinstance(value, str)} - {"cpu"}
        if len(devices) > 1:
            raise InvalidError(f"{self._artifact.path}: outputs are bound to {' and '.join(sorted(devices))}; a run has one GPU")
        iobinding._results = []
        wanted = [self._index_of(name) for name in names]
        device = devices.pop() if devices else "cpu" if any(map(is_on_gpu, iobinding._inputs.values())) else None
        for name, array in zip(names, self._function.run_list(iobinding._inputs, wanted, device=device, out=out)):
            value = bound.get(name, "cpu")
            if not isinstance(value, OrtValue):
                value = OrtValue(array.numpy() if value == "cpu" and isinstance(array, DeviceArray) else array)
            elif name in copied:
                value.update_inplace(array)
            iobinding._results.append(value)


def get_available_providers() -> list[str]:
    """"CPUExecutionProvider", and "CUDAExecutionProvider" where there is a driver."""
    return (["CUDAExecutionProvider"] if os.path.exists("/dev/nvidiactl") else []) + ["CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """All that there are."""
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]


def get_device() -> str:
    """"GPU" where there is a driver, else "CPU"."""
    return "GPU" if len(get_available_providers()) > 1 else "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted: there is no log."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: there is no log."""


def disable_telemetry_events() -> None:
    """Accepted: there are none."""


def enable_telemetry_events() -> None:
    """Accepted: there are none."""
