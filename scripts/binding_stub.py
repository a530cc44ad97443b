#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes python/tc_compiler/_tcrt.pyi, the types of the binding, from the binding that was built.

usage: binding_stub.py [--check]      --check: fails where the file is not what would be written

PYTHONPATH names the folder of the package, such as build/python. What a function takes and returns is an int, text of C or of cffi (Any), or nothing, so
that a checker finds names that tcrt.h has no more, and calls with too few arguments.
"""
import os
import string
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "tc_compiler", "_tcrt.pyi")
HEAD = '''# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The binding that cffi makes of tcrt.h (python/make_binding.py); scripts/binding_stub.py writes this file.
from typing import Any

ffi: Any # cffi's, which has no types

class _Lib:
'''


def type_of(ctype):
    if ctype.kind == "enum" or ctype.kind == "primitive" and "float" not in ctype.cname and "double" not in ctype.cname:
        return "int"
    return {"void": "None", "primitive": "float"}.get(ctype.kind, "Any")


def stub_of(ffi, lib):
    lines = []
    for name in dir(lib):
        value = getattr(lib, name)
        if isinstance(value, int):
            lines.append(f"    {name}: int")
            continue
        function = ffi.typeof(value)
        arguments = "".join(f", {letter}: {type_of(argument)}" for letter, argument in zip(string.ascii_lowercase, function.args))
        lines.append(f"    def {name}(self{arguments}, /) -> {type_of(function.result)}: ...")
    return HEAD + "\n".join(lines) + "\n\nlib: _Lib\n"


def main():
    from tc_compiler._tcrt import ffi, lib

    text = stub_of(ffi, lib)
    if sys.argv[1:] == ["--check"]:
        with open(PATH, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit("python/tc_compiler/_tcrt.pyi: error: it is not what the binding is; scripts/binding_stub.py, with the built package on PYTHONPATH, writes it anew")
        return
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
