# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own threads for programs on CPUs.

Threads of OpenMP wait actively for milliseconds behind an operator of PyTorch, on the cores that threads of tc's would need. So a program runs in a parallel
region of the OpenMP that PyTorch has loaded.
"""
from __future__ import annotations

import ctypes
import functools
import logging
import os
from typing import Any

import torch

from .._tcrt import ffi, lib

log = logging.getLogger(__name__.rpartition(".")[0])


@functools.cache
def _team() -> Any:
    """A tcrt_team_t of regions of OpenMP; None: PyTorch has other threads."""
    path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        library = ctypes.CDLL(None) # of the process, as LD_PRELOAD says; else what PyTorch's library needs
        if not hasattr(library, "GOMP_parallel"):
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        parallel, number = (ctypes.cast(entry, ctypes.c_void_p).value or 0 for entry in (library.GOMP_parallel, library.omp_get_thread_num))
    except (OSError, AttributeError) as error:
        log.info("programs run on threads of their own: %s", error)
        return None
    team = ffi.new("tcrt_team_t *")
    lib.tc_team_of_openmp(parallel, number, team)
    return team


_is_forked = False


def _remember_fork() -> None:
    global _is_forked
    _is_forked = True


os.register_at_fork(after_in_child=_remember_fork)


def team_of(threads: int) -> Any:
    """The team for contexts with so many threads (0: one per usable core), a tcrt_team_t; None: the model's own threads. OpenMP would wait in a child of fork for threads of its parent,
    and end threads and make others where PyTorch's operators have another number of them."""
    threads = threads or len(os.sched_getaffinity(0))
    return _team() if 1 < threads == torch.get_num_threads() and not _is_forked else None
