#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels compute with nothing that other values left behind in their memory: it may be denormal, and slow by a hundred times.

usage: denormals.py BIN

Each artifact runs once on one thread, in memory full of denormal numbers, which the processor's flag for denormal operands
must not show afterwards.
"""
import ctypes
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

import tuning
from checks import check, verdict

libm, libc = ctypes.CDLL("libm.so.6"), ctypes.CDLL(None)
libm.fesetenv.argtypes = [ctypes.c_void_p]
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)


# As in tcrt.h.
class Allocator(ctypes.Structure):
    _fields_ = [("user", ctypes.c_void_p), ("allocate", Allocate), ("release", Release)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_uint32), ("memory_limit", ctypes.c_uint64), ("variant", ctypes.c_char_p),
                ("executor", ctypes.c_void_p), ("allocator", ctypes.POINTER(Allocator)), ("profile", ctypes.c_int),
                ("device_outputs", ctypes.c_int)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("dims", ctypes.c_int64 * 16), ("data", ctypes.c_void_p),
                ("size_bytes", ctypes.c_uint64), ("device", ctypes.c_uint32)]


def models():
    """Those of tuning.py, and products whose columns end within a panel."""
    yield from tuning.models()
    for columns in (1, 2, 9, 15, 17, 33):
        given = {"x": tuning.normal(2, 30, 64), "w": tuning.normal(2, 64, columns)}
        yield f"columns{columns}", tuning.one("MatMul", ["x", "w"]), given, {}, TensorProto.FLOAT
        given = {"x": tuning.normal(30, 64), "w": tuning.normal(columns, 64)}
        yield f"rows{columns}", tuning.one("Gemm", ["x", "w"], transB=1), given, {}, TensorProto.FLOAT


@Allocate
def allocate(user, size, alignment):
    size = max(-(-size // alignment), 1) * alignment
    data = libc.aligned_alloc(alignment, size)
    ctypes.memset(data, 0, size)
    np.frombuffer((ctypes.c_char * (size // 4 * 4)).from_address(data), np.uint32)[:] = 0x12345
    return data


@Release
def release(user, data, size):
    libc.free(data)


def meets_denormals(tcrt, path, inputs):
    """Whether a run had a denormal operand."""
    model, context = ctypes.c_void_p(), ctypes.c_void_p()
    allocator = Allocator(None, allocate, release)
    options = ContextOptions(ctypes.sizeof(ContextOptions), 1, 0, None, None, ctypes.pointer(allocator), 0, 0)

    def call(name, *arguments):
        check(f"{path}: {name}", getattr(tcrt, name)(*arguments) == 0, tcrt.tcrt_last_error())

    call("tcrt_model_open_file", path.encode(), None, ctypes.byref(model))
    call("tcrt_context_create", model, ctypes.byref(options), ctypes.byref(context))
    for name, value in inputs.items():
        index = ctypes.c_uint32()
        call("tcrt_model_find_input", model, name.encode(), ctypes.byref(index))
        tensor = Tensor(helper.np_dtype_to_tensor_dtype(value.dtype), value.ndim, (ctypes.c_int64 * 16)(*value.shape), value.ctypes.data,
                        value.nbytes, 0)
        call("tcrt_context_set_input", context, index, ctypes.byref(tensor))
    environment = (ctypes.c_uint32 * 8)()  # x86-64's fenv_t; MXCSR is its last word
    libm.fesetenv(-1)
    status = tcrt.tcrt_context_run(context)
    libm.fegetenv(environment)
    check(f"{path}: runs", status == 0, tcrt.tcrt_last_error())
    tcrt.tcrt_context_destroy(context)
    tcrt.tcrt_model_close(model)
    return bool(environment[7] & 2)


def main(bin_dir):
    tcrt = ctypes.CDLL(os.path.join(bin_dir, "..", "lib", "libtcrt.so"))
    tcrt.tcrt_last_error.restype = ctypes.c_char_p
    tcrt.tcrt_context_destroy.argtypes = tcrt.tcrt_model_close.argtypes = tcrt.tcrt_context_run.argtypes = [ctypes.c_void_p]
    with tempfile.TemporaryDirectory() as folder:
        tools = tuning.Tools(bin_dir, folder)
        for name, nodes, inputs, constants, output in models():
            for cpu in ("x86-64-v3", "native"):
                model, artifact = tools.path("m.onnx"), tools.path(f"{name}-{cpu}.bin")
                tuning.save(model, nodes, inputs, output, constants)
                done = tools.compile(model, artifact, "--cpu", cpu, "--jobs", "1")
                check(f"{name} compiles", done.returncode == 0, done.stderr)
                check(f"{name} for {cpu}", not meets_denormals(tcrt, artifact, inputs), "computes with what lay in its memory")
    return verdict("denormals")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
