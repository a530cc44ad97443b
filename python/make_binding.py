#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the C source of tc_compiler._tcrt, the binding of libtcrt.

usage: make_binding.py INCLUDE OUT.c [--cc cc]

The declarations are those of tcrt.h in the folder INCLUDE, as the preprocessor leaves them. The module uses the stable ABI of Python 3.11, so that
one file serves all later versions. Needs cffi.
"""
import argparse
import re
import subprocess

import cffi

CONSTANTS = ["TCRT_MAX_RANK", "TCRT_ALL_STATES"]
# A run is one call, so that the interpreter's lock is given up once.
RUN = "tcrt_status_t tc_run(tcrt_context_t *context, uint32_t input_count, const tcrt_tensor_t *inputs, uint32_t output_count, tcrt_tensor_t *outputs)"
# The same with the data of inputs and then outputs by their addresses; 0: of an output, none is bound.
RUN_AT = "tcrt_status_t tc_run_at(tcrt_context_t *context, uint32_t input_count, tcrt_tensor_t *inputs, uint32_t output_count, tcrt_tensor_t *outputs, const uintptr_t *addresses)"
SOURCE = """
#include <alloca.h>
#include "tcrt/tcrt.h"

/* Binds all inputs but those without dtype, and the outputs that have data; runs; says what the outputs are. */
static %s {
  for (uint32_t i = 0; i < input_count; ++i) {
    const tcrt_status_t status = tcrt_context_set_input(context, i, inputs[i].dtype ? &inputs[i] : NULL);
    if (status != TCRT_OK)
      return status;
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    const tcrt_status_t status = tcrt_context_set_output(context, i, outputs[i].data ? &outputs[i] : NULL);
    if (status != TCRT_OK)
      return status;
  }
  tcrt_status_t status = tcrt_context_run(context);
  for (uint32_t i = 0; i < output_count && status == TCRT_OK; ++i)
    status = tcrt_context_get_output(context, i, &outputs[i]);
  return status;
}

static %s {
  for (uint32_t i = 0; i < input_count; ++i) {
    inputs[i].data = (void *)addresses[i];
    const tcrt_status_t status = tcrt_context_set_input(context, i, &inputs[i]);
    if (status != TCRT_OK)
      return status;
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    outputs[i].data = (void *)addresses[input_count + i];
    const tcrt_status_t status = tcrt_context_set_output(context, i, outputs[i].data ? &outputs[i] : NULL);
    if (status != TCRT_OK)
      return status;
  }
  return tcrt_context_run(context);
}
""" % (RUN, RUN_AT)


def declarations(include, cc):
    """What tcrt.h declares, without the declarations of system headers and the records of the file format."""
    text = subprocess.run([cc, "-E", "-D__attribute__(x)=", f"-I{include}", f"{include}/tcrt/tcrt.h"], check=True, capture_output=True, text=True).stdout
    kept, header = [], ""
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            header = marker[1].rpartition("/")[2]
        elif header == "tcrt.h" or header == "artifact_abi.h" and not line.lstrip().startswith("#"):
            kept.append((header, line))
    records = "\n".join(line for name, line in kept if name == "artifact_abi.h")
    enums = re.findall(r"(?:typedef )?enum \w*\s*\{[^}]*\}\s*\w*;", records)
    return "\n".join(enums + [line for name, line in kept if name == "tcrt.h"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include")
    parser.add_argument("out")
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    ffi = cffi.FFI()
    ffi.cdef("\n".join(f"#define {name} ..." for name in CONSTANTS))
    ffi.cdef(declarations(options.include, options.cc))
    ffi.cdef(RUN + ";" + RUN_AT + ";")
    ffi.set_source("tc_compiler._tcrt", SOURCE, py_limited_api=True)
    ffi.emit_c_code(options.out)


if __name__ == "__main__":
    main()
