# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in memory of a GPU, the caller's and tc's own, and what others export by DLPack and __cuda_array_interface__.

Sources: DLPack 1.1 (dlpack.h) and the Python Array API standard's "Data interchange mechanisms"; Numba's "CUDA Array Interface (Version 3)".
"""
from __future__ import annotations

import ctypes
import math
from typing import Any, Sequence

import numpy as np

from ._tcrt import ffi, lib
from .dtypes import DTYPES, DType
from .errors import InvalidError, MachineError, RefusedError, error_of

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13 # DLPack's devices
_TO_DEVICE, _TO_HOST, _WITHIN = lib.TCRT_COPY_HOST_TO_DEVICE, lib.TCRT_COPY_DEVICE_TO_HOST, lib.TCRT_COPY_DEVICE_TO_DEVICE
_DEFAULT_STREAM = 1
_READ_ONLY = 1
# DLPack's names of types: (code, bits).
_CODES = {
    "f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64), "u8": (1, 8), "u16": (1, 16),
    "u32": (1, 32), "u64": (1, 64), "bf16": (4, 16), "c64": (5, 64), "c128": (5, 128), "bool": (6, 8), "f8e4m3fn": (10, 8), "f8e4m3fnuz": (11, 8),
    "f8e5m2": (12, 8), "f8e5m2fnuz": (13, 8), "f8e8m0": (14, 8),
} # fmt: skip
_OF_CODE = {_CODES[dtype.name]: dtype for dtype in DTYPES.values() if dtype.name in _CODES}
_OF_ARRAY = {dtype.array: dtype for dtype in DTYPES.values() if dtype.name != "string"}
# Capsules hold the address of their name, so these stay.
_NAMES = (b"dltensor", b"dltensor_versioned")

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_valid.restype, _capsule_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_capsule_get = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_get.restype, _capsule_get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _text(chars: Any) -> str:
    text: bytes = ffi.string(chars)
    return text.decode(errors="replace")


def _check(status: int) -> None:
    if status:
        text = _text(lib.tcrt_last_error())
        raise error_of(status, text.removeprefix("error: ").replace(": error: ", ": ", 1))


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """The array in a form that the buffer protocol has a name for."""
    return array if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1 else array.view(np.uint8 if array.itemsize == 1 else f"u{array.itemsize}")


def stream_of(stream: Any) -> int:
    """The CUstream of an int, or of a stream of PyTorch, CuPy, Numba or cuda.core; 1 (also for 0 and None) is the default stream."""
    handle = stream
    if hasattr(stream, "__cuda_stream__"):
        made = stream.__cuda_stream__
        handle = (made() if callable(made) else made)[1]
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    elif hasattr(stream, "ptr"):
        handle = stream.ptr
    if handle is None or isinstance(handle, bool):
        handle = 0 if handle is None else -1
    try:
        number = int(handle)
    except (TypeError, ValueError):
        number = -1
    if number < 0:
        raise InvalidError(f"stream is {stream!r}; give the address of a CUstream as an int, or an object with cuda_stream, ptr or __cuda_stream__")
    return number or _DEFAULT_STREAM


def is_index(number: str) -> bool:
    """Whether it may be the number of a device: empty, or decimal and an int32."""
    return not number or (number.isdecimal() and len(number) < 11 and int(number) < 2**31)


def gpu_of(device: Any) -> int:
    """The index that "cuda" or "cuda:1" names."""
    kind, _, number = str(device).partition(":")
    if kind != "cuda" or not is_index(number):
        raise InvalidError(f'there is no device "{device}" for arrays; devices are cpu, cuda and cuda:INDEX')
    return int(number or 0)


class View:
    """Where an array lies. `gpu`: its index, None for host memory, -1 for no elements on whichever; `dtype`: None where the exporter has no name for it, then `itemsize` tells; `owner`: what
    must live as long as the memory is used."""

    __slots__ = ("address", "dtype", "itemsize", "name", "shape", "is_contiguous", "gpu", "is_read_only", "owner")

    def __init__(self, address: int, dtype: DType | None, itemsize: int, name: str, shape: tuple[int, ...], is_contiguous: bool, gpu: int | None,
                 is_read_only: bool, owner: Any): # fmt: skip
        self.address, self.dtype, self.itemsize, self.name, self.shape = address, dtype, itemsize, name, shape
        self.is_contiguous, self.gpu, self.is_read_only, self.owner = is_contiguous, gpu, is_read_only, owner

    def has(self, dtype: DType) -> bool:
        """Whether its elements may be of this type."""
        if self.dtype is not None:
            return self.dtype is dtype
        return not dtype.is_of_numpy and not dtype.is_packed and dtype.name != "string" and self.itemsize * 8 == dtype.bits


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether these strides, in elements, are those of a dense array."""
    if 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def is_on_gpu(given: Any) -> bool:
    """Whether it is an array in memory of a GPU."""
    if isinstance(given, DeviceArray):
        return True
    if isinstance(given, (np.ndarray, np.generic, int, float, complex, list, tuple, dict, str, bytes)) or given is None:
        return False
    if hasattr(given, "__dlpack_device__"):
        try:
            return given.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED)
        except (BufferError, RuntimeError, TypeError, NotImplementedError, ValueError):
            return False # of a device without memory: whoever reads it says so
    return hasattr(given, "__cuda_array_interface__")


LAZY = ("PyTorch conjugates, negates or makes zeros of it lazily; give one with its elements in memory, as "
        "torch.empty(t.shape, dtype=t.dtype).copy_(t) returns") # fmt: skip


def is_of_torch(given: Any) -> bool:
    """Whether it is a tensor of PyTorch, which need not be here."""
    return hasattr(given, "resolve_conj")


def is_lazy(given: Any) -> bool:
    """Whether it is a tensor of PyTorch whose memory does not hold its elements: bits of the tensor conjugate or negate them, or
    it has no memory for zeros."""
    return is_of_torch(given) and (given.is_conj() or given.is_neg() or given._is_zerotensor())


def plain(tensor: Any) -> Any:
    """A tensor of PyTorch with its elements in memory, see is_lazy. Others are returned as they are."""
    if tensor._is_zerotensor():
        return tensor.new_zeros(tensor.shape)
    return tensor.resolve_conj().resolve_neg()


def resolved(given: Any) -> Any:
    """What is to be read: a lazy tensor with its elements in memory, others as they are, without gradients."""
    if getattr(given, "requires_grad", False):
        given = given.detach()
    return plain(given) if is_of_torch(given) else given


def array_of_torch(tensor: Any) -> np.ndarray:
    """The elements of a tensor of PyTorch, of any type that tc has, in host memory. Raises InvalidError where the package of the
    type is not installed, and what PyTorch raises for tensors without elements in memory."""
    dtype = dtype_of_torch(tensor)
    if dtype is None or dtype.is_of_numpy:
        own: np.ndarray = resolved(tensor).cpu().numpy()
        return own
    return bytes_of_torch(tensor).view(dtype.numpy).reshape(tensor.shape)


def bytes_of_torch(tensor: Any) -> np.ndarray:
    """The same as bytes: NumPy has no name for some dtypes."""
    import torch

    data: np.ndarray = resolved(tensor).cpu().contiguous().flatten().view(torch.uint8).numpy()
    return data


def dtype_of_torch(tensor: Any) -> DType | None:
    """tc's type of a tensor of PyTorch."""
    return _OF_ARRAY.get(str(tensor.dtype).removeprefix("torch."))


def gpu_named_by(array: Any) -> int:
    """The index of the GPU that an array on one names; -1: it does not."""
    return int(array.__dlpack_device__()[1]) if hasattr(array, "__dlpack_device__") else -1


_takes_version: dict[type, bool] = {}


def _export(given: Any, stream: int | None) -> Any:
    """The object's capsule, of the newest form that it knows."""
    kind = type(given)
    if _takes_version.get(kind, True):
        try:
            return given.__dlpack__(stream=stream, max_version=(1, 1))
        except TypeError:
            _takes_version[kind] = False
    return given.__dlpack__(stream=stream)


def _view_of_capsule(capsule: Any, owner: Any) -> View:
    is_read_only = False
    if _capsule_valid(capsule, _NAMES[1]):
        managed = ffi.cast("tc_dlpack_versioned_t *", _capsule_get(capsule, _NAMES[1]))
        tensor, is_read_only = managed.tensor, bool(managed.flags & _READ_ONLY)
    else:
        tensor = ffi.cast("tc_dlpack_t *", _capsule_get(capsule, _NAMES[0])).tensor
    rank = tensor.ndim
    shape = tuple(tensor.shape[0:rank]) if rank else ()
    is_contiguous = tensor.strides == ffi.NULL or not rank or is_row_major(shape, list(tensor.strides[0:rank]))
    dtype = _OF_CODE.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    name = dtype.array if dtype else f"type {tensor.code} of {tensor.bits} bits"
    address = int(ffi.cast("uintptr_t", tensor.data))
    gpu = tensor.device_id if tensor.device_type in (_CUDA, _CUDA_MANAGED) else None
    if gpu is None and tensor.device_type not in (_CPU, _CUDA_HOST):
        raise BufferError(f"it is in memory of DLPack's device {tensor.device_type}, which tc does not know")
    return View(address + tensor.byte_offset if address else 0, dtype, 0, name, shape, is_contiguous, gpu, is_read_only, (capsule, owner))


def _view_of_interface(given: Any, stream: int) -> View:
    interface = given.__cuda_array_interface__
    shape, typestr, (address, is_read_only) = tuple(interface["shape"]), interface["typestr"], interface["data"]
    if interface.get("mask") is not None:
        raise BufferError("it has a mask")
    kind = np.dtype(typestr)
    dtype = _OF_ARRAY.get(kind.name) if kind.kind in "biufc" and kind.isnative else None
    strides = interface.get("strides")
    is_contiguous = strides is None or is_row_major([*shape, kind.itemsize], [*strides, 1])
    found = ffi.new("int32_t *")
    _check(lib.tcrt_gpu_find(ffi.cast("void *", address or 0), found))
    gpu = found[0]
    if gpu < 0 and address:
        raise BufferError("its address is not of a GPU")
    theirs = interface.get("stream")
    if theirs is not None and address:
        _check(lib.tcrt_gpu_order(gpu, ffi.cast("void *", theirs), ffi.cast("void *", stream)))
    return View(address or 0, dtype, kind.itemsize, kind.name, shape, is_contiguous, gpu, bool(is_read_only), given)


def view_of(given: Any, stream: int = _DEFAULT_STREAM) -> View:
    """Where the array lies, which must be a NumPy array or export itself. What its producer has enqueued for it comes before what is enqueued in
    `stream` from now on. Raises BufferError where it cannot be shown."""
    if isinstance(given, DeviceArray):
        given._show(stream)
        return View(given._address, given._type, given._type.bits // 8, given._type.array, given.shape, True, given._gpu, False, given)
    if is_lazy(given):
        raise BufferError(LAZY)
    if isinstance(given, np.ndarray):
        if not given.dtype.isnative:
            native = given.dtype.newbyteorder("=")
            raise BufferError(f"its byte order is not this machine's; give an array of {native}, as .astype makes it")
        dtype = _OF_ARRAY.get(given.dtype.name)
        buffer = ffi.from_buffer(_bytes_of(given)) if given.flags.c_contiguous and dtype is not None else ffi.NULL
        return View(int(ffi.cast("uintptr_t", buffer)), dtype, given.itemsize, given.dtype.name, given.shape, given.flags.c_contiguous, None, not given.flags.writeable, (given, buffer)) # fmt: skip
    if getattr(given, "requires_grad", False):
        given = given.detach()
    if hasattr(given, "__dlpack__"):
        on_gpu = not hasattr(given, "__dlpack_device__") or given.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED)
        return _view_of_capsule(_export(given, stream if on_gpu else None), given)
    if hasattr(given, "__cuda_array_interface__"):
        return _view_of_interface(given, stream)
    raise BufferError(f"{type(given).__name__} has neither __dlpack__ nor __cuda_array_interface__")


class DeviceArray:
    """A dense array in memory of a GPU, as runs return it. PyTorch, CuPy, JAX and others take it without a copy (torch.from_dlpack, cupy.from_dlpack,
    cupy.asarray); numpy() and numpy.asarray copy. Its memory is freed when nobody has it any more, also of those that took it.

    `shape`; `dtype`: NumPy's or ml_dtypes'; `device`: "cuda:0". What made it was enqueued in `stream`, and may not be over where a run was given that stream."""

    __slots__ = ("_address", "_type", "_gpu", "_stream", "_memory", "_owner", "shape", "__weakref__")

    def __init__(self, shape: Sequence[int], dtype: DType, gpu: int, stream: int, owner: Any = None, address: int | None = None):
        self.shape, self._type, self._gpu, self._stream = tuple(shape), dtype, gpu, stream
        self._owner = owner # of the stream, or of memory at `address`, which is not freed
        self._address, self._memory = address or 0, None
        if address is None and self.nbytes:
            made = ffi.new("tc_memory_t **")
            _check(lib.tc_memory_create(gpu, self.nbytes, ffi.cast("void *", stream), made))
            self._memory, self._address = ffi.gc(made[0], lib.tc_memory_release), int(ffi.cast("uintptr_t", made[0].data))

    @staticmethod
    def from_host(array: Any, device: str = "cuda", stream: Any = None) -> "DeviceArray":
        """A copy of an array in host memory. device: "cuda" or "cuda:INDEX". stream: in which it will be used first (None: the default stream)."""
        array = array_of_torch(array) if is_of_torch(array) else array
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        dtype = _OF_ARRAY.get(array.dtype.name) if array.dtype.isnative else None
        if dtype is None or dtype.is_packed:
            raise InvalidError(f"arrays of {array.dtype} cannot be in memory of a GPU; convert it with .astype")
        result = DeviceArray(array.shape, dtype, gpu_of(device), stream_of(stream), stream)
        result._copy_from(array)
        return result

    @property
    def dtype(self) -> np.dtype:
        """NumPy's dtype, or that of ml_dtypes; raises InvalidError where that is not installed."""
        return self._type.numpy

    @property
    def device(self) -> str:
        """"cuda:INDEX"."""
        return f"cuda:{self._gpu}"

    @property
    def stream(self) -> int:
        """The CUstream in which it was made; 1 is the default stream."""
        return self._stream

    @property
    def ndim(self) -> int:
        """Its rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.size * self._type.bits // 8

    def _pointers(self) -> tuple[Any, Any]:
        return ffi.cast("void *", self._address), ffi.cast("void *", self._stream)

    def _copy_from(self, array: np.ndarray) -> None:
        if self.nbytes:
            data, stream = self._pointers()
            _check(lib.tcrt_gpu_copy(self._gpu, data, ffi.from_buffer(_bytes_of(array)), self.nbytes, _TO_DEVICE, stream))

    def _show(self, stream: int | None) -> None:
        """Lets what is enqueued in the stream from now on come after what made it. None: it is shown to streams that nobody names."""
        if stream != self._stream:
            if self._memory is not None:
                lib.tc_memory_share(self._memory)
            if stream is not None:
                _check(lib.tcrt_gpu_order(self._gpu, ffi.cast("void *", self._stream), ffi.cast("void *", stream)))

    def numpy(self) -> np.ndarray:
        """A copy in host memory; waits for what makes it."""
        result = np.empty(self.shape, self.dtype)
        if self.nbytes:
            data, stream = self._pointers()
            _check(lib.tcrt_gpu_copy(self._gpu, ffi.from_buffer(_bytes_of(result)), data, self.nbytes, _TO_HOST, stream))
        return result

    def copy_to(self, target: Any) -> None:
        """Copies its elements to an array of the same shape and dtype, in host memory or on the same GPU, and waits. Raises InvalidError for others."""
        try:
            view = view_of(target, self._stream)
        except (BufferError, RuntimeError, TypeError) as error:
            raise InvalidError(f"the target cannot be written: {error}") from error
        problem = problem_of_target(view, self._type, self.shape)
        if problem is None and view.gpu not in (None, -1, self._gpu):
            problem = f"on cuda:{view.gpu}, but the array is on cuda:{self._gpu}"
        if problem is not None:
            raise InvalidError(f"the target is {problem}")
        if self.nbytes:
            data, stream = self._pointers()
            _check(lib.tcrt_gpu_copy(self._gpu, ffi.cast("void *", view.address), data, self.nbytes, _TO_HOST if view.gpu is None else _WITHIN, stream))
            _check(lib.tcrt_gpu_wait(self._gpu, stream))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array in memory of a GPU cannot be shown to NumPy without a copy")
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    def __float__(self) -> float:
        return float(self.numpy())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dims has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<tc_compiler.DeviceArray {self._type.name}{list(self.shape)} on {self.device}>"

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self._gpu

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any: # fmt: skip
        """A capsule. stream: the consumer's (None and 0: the default stream; -1: it orders its work itself)."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__() or copy:
            raise BufferError("tc exports the memory itself; copy it with copy_to")
        if self._type.name not in _CODES:
            raise BufferError(f"DLPack has no arrays of {self._type.name} as tc keeps them")
        if self._memory is None and self.nbytes:
            raise BufferError("the memory belongs to whoever gave its address")
        self._show(None if stream == -1 else stream_of(stream))
        is_versioned = max_version is not None and max_version[0] >= 1
        code, bits = _CODES[self._type.name]
        shape = ffi.new("int64_t[]", self.shape or 1)
        memory = self._memory if self._memory is not None else ffi.NULL
        managed = lib.tc_memory_export(memory, is_versioned, self._gpu, code, bits, len(self.shape), shape)
        if managed == ffi.NULL:
            raise MachineError("no memory left for a DLPack tensor")
        return _capsule_new(int(ffi.cast("uintptr_t", managed)), _NAMES[is_versioned], int(ffi.cast("uintptr_t", lib.tc_capsule_destructor())))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._memory is not None:
            lib.tc_memory_share(self._memory)
        dtype = np.dtype(self._type.array).str if self._type.is_of_numpy else f"|V{self._type.bits // 8}"
        return {"shape": self.shape, "typestr": dtype, "data": (self._address, False), "strides": None, "version": 3, "stream": self._stream}


def problem_of_target(view: View, dtype: DType, shape: tuple[int, ...]) -> str | None:
    """Why results of this dtype and shape cannot be written there; None: they can."""
    if view.is_read_only:
        return "read-only"
    if not view.has(dtype) or view.shape != shape:
        return f"{view.name}{list(view.shape)}, but {dtype.array}{list(shape)} is written"
    return None if view.is_contiguous else "not row-major; give one that .contiguous() returns"


def refused(path: str, name: str, error: Exception) -> RefusedError:
    """For an input that cannot be shown."""
    return RefusedError(f'{path}: input "{name}" cannot be read: {error}')
