# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The binding that cffi makes of tcrt.h (python/make_binding.py).
from typing import Any

ffi: Any
lib: Any
