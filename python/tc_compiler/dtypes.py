# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types: tc's, NumPy's and ONNX Runtime's names of them.

Types that NumPy lacks (bf16, floats of 8, 6 and 4 bits, integers of 4 and 2 bits) are those of the package ml_dtypes, which holds an element a
byte or more; tc packs the ones of less than a byte.
"""
from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from .errors import InvalidError


@dataclasses.dataclass(frozen=True)
class DType:
    """`number`: tcrt_dtype_t; `name`: tc's; `array`: NumPy's or ml_dtypes'; `onnx`: ONNX Runtime's in 'tensor(...)'; `bits` of an element in tc."""

    number: int
    name: str
    array: str
    onnx: str
    bits: int

    @functools.cached_property
    def numpy(self) -> np.dtype:
        """The dtype of arrays; raises InvalidError where it is of ml_dtypes, which is not installed."""
        if self.name == "string":
            return np.dtype(object)
        try:
            return np.dtype(self.array)
        except TypeError:
            pass
        try:
            import ml_dtypes
        except ImportError:
            raise InvalidError(f"arrays of {self.name} need the package ml_dtypes; install it with: pip install ml_dtypes") from None
        made: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.array))
        return made

    @property
    def is_of_numpy(self) -> bool:
        return self.number in range(1, 16) and self.name != "string"

    @property
    def is_packed(self) -> bool:
        return self.bits < 8


DTYPES = {
    dtype.number: dtype
    for dtype in (
        DType(1, "f32", "float32", "float", 32),
        DType(2, "u8", "uint8", "uint8", 8),
        DType(3, "i8", "int8", "int8", 8),
        DType(4, "u16", "uint16", "uint16", 16),
        DType(5, "i16", "int16", "int16", 16),
        DType(6, "i32", "int32", "int32", 32),
        DType(7, "i64", "int64", "int64", 64),
        DType(8, "string", "object", "string", 128),
        DType(9, "bool", "bool", "bool", 8),
        DType(10, "f16", "float16", "float16", 16),
        DType(11, "f64", "float64", "double", 64),
        DType(12, "u32", "uint32", "uint32", 32),
        DType(13, "u64", "uint64", "uint64", 64),
        DType(14, "c64", "complex64", "complex64", 64),
        DType(15, "c128", "complex128", "complex128", 128),
        DType(16, "bf16", "bfloat16", "bfloat16", 16),
        DType(17, "f8e4m3fn", "float8_e4m3fn", "float8e4m3fn", 8),
        DType(18, "f8e4m3fnuz", "float8_e4m3fnuz", "float8e4m3fnuz", 8),
        DType(19, "f8e5m2", "float8_e5m2", "float8e5m2", 8),
        DType(20, "f8e5m2fnuz", "float8_e5m2fnuz", "float8e5m2fnuz", 8),
        DType(21, "u4", "uint4", "uint4", 4),
        DType(22, "i4", "int4", "int4", 4),
        DType(23, "f4e2m1", "float4_e2m1fn", "float4e2m1", 4),
        DType(24, "f8e8m0", "float8_e8m0fnu", "float8e8m0", 8),
        DType(25, "u2", "uint2", "uint2", 2),
        DType(26, "i2", "int2", "int2", 2),
        DType(27, "f6e2m3", "float6_e2m3fn", "float6e2m3", 8),
        DType(28, "f6e3m2", "float6_e3m2fn", "float6e3m2", 8),
    )
}


def pack(array: np.ndarray, bits: int) -> np.ndarray:
    """The elements, a byte each, as bytes of 8 // bits elements, low bits first; 1-D."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    per_byte = 8 // bits
    padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
    padded[: flat.size] = flat
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    packed: np.ndarray = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8)
    return packed


def unpack(data: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """What `pack` made of an array of this type and shape."""
    per_byte = 8 // dtype.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(dtype.bits)
    values = (data.reshape(-1, 1) >> shifts & np.uint8((1 << dtype.bits) - 1)).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if dtype.name.startswith("i"): # ml_dtypes wants the sign in the whole byte
        sign = np.uint8(1 << (dtype.bits - 1))
        values = (values ^ sign) - sign
    elements: np.ndarray = values.astype(np.uint8).view(dtype.numpy).reshape(shape)
    return elements
