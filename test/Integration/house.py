#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/check_house.py finds what it should: each case is a few files of which some break a rule.

usage: house.py

A case is a tree in memory and the breaches that it has, as parts of their sentences; it fails if one of them is not found, and if
anything else is.
"""
import lzma
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import check_house  # noqa: E402

CASES = []


class Files(check_house.Tree):
    def __init__(self, texts):
        super().__init__("", list(texts))
        self.texts = texts


def case(rule, what, texts, *found):
    CASES.append((rule, what, texts, found))


# Layers: TcLow below TcHigh, and a program that links TcLow.
LIBRARIES = {
    "lib/Low/CMakeLists.txt": "tc_add_library(TcLow Low.cpp)\n",
    "lib/High/CMakeLists.txt": "tc_add_library(TcHigh High.cpp LINK TcLow)\n",
    "lib/Low/Own.h": "",
    "tools/run/CMakeLists.txt": "tc_add_tool(run Main.cpp LINK TcLow)\n",
    "test/Unit/CMakeLists.txt": "tc_add_unit_test(unit-low Low/Low.cpp LINK TcLow)\ntc_add_unit_test(unit-high High/High.cpp LINK TcHigh)\n",
    "examples/c/CMakeLists.txt": "add_executable(sample sample.c)\n",
}


def layers(what, texts, *found):
    case(check_house.layer_breaches, what, {**LIBRARIES, **texts}, *found)


layers("a library includes what it links", {"lib/High/High.cpp": '#include "tc/Low/Low.h"\n'})
layers("a source goes up", {"lib/Low/Low.cpp": '#include "tc/High/High.h"\n'}, "which lib/Low does not link")
layers("an indented include", {"lib/Low/Low.cpp": '#ifdef X\n  #  include <tc/High/High.h>\n#endif\n'}, "which lib/Low does not link")
layers("a public header goes up", {"include/tc/Low/Low.h": '#include "tc/High/High.h"\n'}, "which lib/Low does not link")
layers("a table goes up", {"lib/Low/Low.cpp": '#include "tc/High/High.def"\n'}, "includes tc/High/High.def")
layers("generated code goes up", {"lib/Low/Low.cpp": '#include "tc/High/High.h.inc"\n'}, "includes tc/High/High.h.inc")
layers("TableGen goes up", {"include/tc/Low/Low.td": 'include "tc/High/High.td"\n'}, "includes tc/High/High.td")
layers("what a table includes", {"include/tc/Low/Low.def": '#include "tc/High/High.h"\n'}, "includes tc/High/High.h")
layers("a circle", {"lib/Low/CMakeLists.txt": "tc_add_library(TcLow Low.cpp LINK TcHigh)\n"}, "TcLow links itself", "TcHigh links itself")
layers("another library's own header", {"lib/High/High.cpp": '#include "../Low/Own.h"\n'}, "a header of another library's own")
layers("the same from lib/", {"lib/High/High.cpp": '#include "Low/Own.h"\n'}, "a header of another library's own")
layers("a tool sees what it links", {"tools/run/Main.cpp": '#include "tc/Low/Low.h"\n#include "Options.h"\n'})
layers("a tool sees nothing else", {"tools/run/Main.cpp": '#include "tc/High/High.h"\n'}, "which its program does not link")
layers("nor do its headers", {"tools/run/Options.h": '#include "tc/High/High.h"\n'}, "which its program does not link")
layers("a unit test may look inside what it links", {"test/Unit/Low/Low.cpp": '#include "Low/Own.h"\n#include "tc/Low/Low.h"\n'})
layers("a unit test does not link all that others do", {"test/Unit/Low/Low.cpp": '#include "tc/High/High.h"\n'}, "which its program does not link")
layers("an example is a user", {"examples/c/sample.c": '#include "tc/Low/Low.h"\n#include "tcrt/tcrt.h"\n'}, "examples see what users see")
layers("so are public headers", {"include/tcrt/tcrt.h": '#include "tc/Low/Low.h"\n'}, "includes nothing of ours but include/tcrt")
layers("a link of a user's library for its headers", {
    "lib/User/CMakeLists.txt": "add_library(user STATIC a.c)\ntarget_link_libraries(user PRIVATE $<BUILD_INTERFACE:TcLow>)\n",
    "lib/User/a.c": '#include "tc/Low/Names.def"\n#include "tc/High/Names.def"\n'}, "includes tc/High/Names.def")


# Negative tests.
def tests(what, definitions, test, *found):
    case(check_house.test_breaches, what, {"include/tc/Dialect/Prim/IR/Ops.td": definitions, "test/a.mlir": test}, *found)


OP = 'def Prim_OneOp : Prim_Op<"one"> {\n  let hasVerifier = 1;\n}\n'
RUN = "// RUN: tc-opt %s -verify-diagnostics\n"
tests("an op whose error is expected", OP, RUN + "// expected-error @+1 {{is no one}}\n%0 = prim.one %x\n")
tests("on the line itself", OP, RUN + "%0 = prim.one %x // expected-error {{is no one}}\n")
tests("below, behind a note", OP, RUN + "// expected-error @below {{is no one}}\n// expected-note @+1 {{as said}}\n%0 = prim.one %x\n")
tests("an op that stands beside an error of another one", OP,
      RUN + "%0 = prim.one %x\n// expected-error @+1 {{is no two}}\n%1 = prim.two %0\n", "op prim.one has a verifier")
tests("one that a comment names", OP, RUN + "// expected-error @+1 {{is no two}}\n%1 = prim.two %0 // prim.one\n", "op prim.one has a verifier")
tests("what TableGen checks", OP, RUN + "// expected-error @+1 {{operand #0 must be tensor}}\n%0 = prim.one %x\n", "op prim.one has a verifier")
tests("a longer name", OP, RUN + "// expected-error @+1 {{is no one}}\n%0 = prim.one_more %x\n", "op prim.one has a verifier")
tests("a verifier of its class", 'class Prim_Checked<string n> : Prim_Op<n> {\n  let hasVerifier = 1;\n}\ndef Prim_OneOp : Prim_Checked<"one">;\n',
      RUN, "op prim.one has a verifier")
tests("an op without a verifier", 'def Prim_OneOp : Prim_Op<"one">;\n', RUN)
ATTRIBUTE = 'def Prim_DimsAttr : AttrDef<Prim_Dialect, "Dims"> {\n  let mnemonic = "dims";\n  let genVerifyDecl = 1;\n}\n'
tests("an attribute", ATTRIBUTE, RUN + "// expected-error @+1 {{has no dims}}\nmodule attributes {x = #prim.dims<>} {}\n")
tests("an attribute that is right", ATTRIBUTE, RUN + "module attributes {x = #prim.dims<>} {}\n", "attribute #prim.dims has a verifier")
PASS = 'def OnePass : Pass<"tc-one"> {\n  let options = [];\n}\n'
tests("a pass with options", PASS, "// RUN: not tc-opt %s --tc-one=a=1\n")
tests("a pass with options that only works", PASS, "// RUN: tc-opt %s --tc-one=a=1\n", "pass tc-one has options")


# Schedules.
def schedules(what, definitions, test, *found):
    case(check_house.test_breaches, what, {"include/tc/Dialect/Kernel/IR/Schedules.td": definitions, "test/a.mlir": test}, *found)


STRATEGY = "class Kernel_Strategy<string n, string s> : AttrDef<Kernel_Dialect, n> {\n  let genVerifyDecl = 1;\n}\n"
SCHEDULE = 'def Kernel_CpuOne : Kernel_Strategy<"CpuOne", "cpu.one", [Number<"tile", "a tile", 1, 1>]>;\n'
REFUSED = RUN + "// expected-error @+1 {{tile is at least 1, not 0}}\nmodule attributes {x = #kernel.cpu.one<tile = 0>} {}\n"
schedules("a schedule", STRATEGY + SCHEDULE, REFUSED)
schedules("a schedule without a verifier", STRATEGY.replace("genVerifyDecl = 1", "genVerifyDecl = 0") + SCHEDULE, REFUSED, "has no verifier")
schedules("a schedule that a pass refuses", STRATEGY + SCHEDULE, REFUSED.replace("tile is at least 1, not 0", "no code for this region"),
          "schedule cpu.one has no negative test")
schedules("the error of another schedule", STRATEGY + SCHEDULE, REFUSED.replace("cpu.one<", "cpu.two<"), "schedule cpu.one has no negative test")


# Names of machines.
def machines(what, text, *found, name="lib/Low/Low.cpp"):
    case(check_house.device_breaches, what, {name: text}, *found)


machines("a comparison", 'if (device == "cpu")\n', '== "cpu"')
machines("a look-up", 'auto it = devices.lookup("cpu");\n', 'lookup("cpu"')
machines("a code's form", 'if (kind == "cubin")\n', '== "cubin"')
machines("a constant to compare with", 'constexpr StringLiteral kHost = "cpu";\n', 'kHost = "cpu"')
machines("a list of such", 'const char *const kDevices[] = {"cpu"};\n', 'kDevices[] = {"cpu"')
machines("a name", 'options.target("cuda");\n', '"cuda"')
machines("a chip", 'std::string best = "sm_90";\n', '"sm_90"')
machines("a comment", '// if (device == "cuda")\n')
machines("a comment in C", '/* "cuda",\n   "sm_90" */\n', name="lib/Low/low.c")
machines("an enumerator", "if (device == Device::Cuda)\n")
machines("a key", 'Json json = {{"cpu", 1}};\n')
machines("the registry", 'if (device == "cuda")\n', name="lib/Dialect/Machine/IR/Names.cpp")


# What a compressed file holds counts; its own bytes are no lines.
def packed(what, text, *found):
    def rule(tree):
        return check_house.breaches("samples.xz", tree.text("samples.xz"))

    case(rule, what, {"samples.xz": lzma.compress(text)}, *found)


packed("a compressed file", b"a line \nand no newline")
packed("a machine in a compressed file", b"from /" + b"home/somebody/x.py\n", "names a folder of a machine")


def loops(what, text, *found):
    def rule(tree):
        return check_house.breaches("lib/Low/Low.cpp", tree.text("lib/Low/Low.cpp"))

    case(rule, what, {"lib/Low/Low.cpp": b"// " + check_house.SPDX.encode() + b"\n" + text}, *found)


GONE = "which is gone by then"
loops("sizes backwards", b"for (AffineExpr size : llvm::reverse(getSizes(v)))\n", GONE)
loops("a view of sizes", b"for (AffineExpr e : ArrayRef(prim::getSizes(v)).drop_front())\n", GONE)
loops("a part of sizes", b"for (AffineExpr e : getSizes(b.take(v, 0)).drop_back())\n", GONE)
loops("sizes", b"for (AffineExpr size : getSizes(v))\n")
loops("numbered sizes", b"for (auto [i, size] : llvm::enumerate(getSizes(v)))\n")
loops("named sizes", b"const Sizes sizes = getSizes(v);\nfor (AffineExpr size : llvm::reverse(sizes))\n")


def main():
    failed = 0
    for rule, what, texts, found in CASES:
        said = {str(each[-1]) for each in rule(Files(texts))}
        missed = [part for part in found if not any(part in sentence for sentence in said)]
        extra = [sentence for sentence in said if not any(part in sentence for part in found)]
        for text in [f'not found: "{part}"' for part in missed] + [f'found, though it is right: "{sentence}"' for sentence in extra]:
            print(f"{rule.__name__}: {what}: {text}")
        failed += bool(missed or extra)
    print(f"{len(CASES)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
