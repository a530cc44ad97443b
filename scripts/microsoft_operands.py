#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write lib/Frontend/ONNX/MicrosoftOperands.def: the types of operands of com.microsoft's operators, as ONNX Runtime declares them.

usage: microsoft_operands.py BIN      BIN: folder with tc-inspect

Needs onnxruntime (requirements-bench.txt), and lists the operators that have a handler. ONNX's own operators need no such file: its
library, which the front end links, has their schemas.
"""
import json
import os
import subprocess
import sys

import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

TO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "Frontend", "ONNX", "MicrosoftOperands.def")
HEAD = """//===- MicrosoftOperands.def - types of the operands of com.microsoft's operators ---------------------------------===//
//
// Made by scripts/microsoft_operands.py from the schemas of ONNX Runtime {version}. Don't edit.
// OPERAND(operator, name, type variable, element types); VARIADIC: the last one, any number of times
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

"""


def main():
    text = subprocess.run([os.path.join(sys.argv[1], "tc-inspect"), "--operators=json"], check=True, capture_output=True, text=True).stdout
    operators = json.loads(text)
    wanted = {o["type"] for o in operators if o["domain"] == "com.microsoft"}
    schemas = {s.name: s for s in get_all_operator_schema() if s.domain == "com.microsoft" and s.name in wanted}
    with open(TO, "w") as f:
        f.write(HEAD.format(version=onnxruntime.__version__))
        for name, schema in sorted(schemas.items()):
            allowed = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}
            for operand in schema.inputs:
                types = sorted(t.removeprefix("tensor(").removesuffix(")") for t in allowed.get(operand.typeStr, [operand.typeStr]))
                macro = "VARIADIC" if operand.option.name == "Variadic" else "OPERAND"
                variable = operand.typeStr if operand.isHomogeneous else ""
                f.write(f'{macro}({name}, "{operand.name}", "{variable}", "{" ".join(types)}")\n')
    print("without a schema:", sorted(wanted - set(schemas)) or "none")


if __name__ == "__main__":
    main()
