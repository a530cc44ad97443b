//===- Machine.td - what code is made for ----------------------------------------------------------------*- tablegen -*-===//
//
// A machine is an attribute with what schedules, code generators and cost models may know of it. Machines.def lists those with a name.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_MACHINE_IR_MACHINE
#define TC_DIALECT_MACHINE_IR_MACHINE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/Interfaces.td"
include "mlir/IR/OpBase.td"

def Machine_Dialect : Dialect {
  let name = "machine";
  let cppNamespace = "::tc::machine";
  let summary = "Descriptions of processors";
  let useDefaultAttributePrinterParser = 1;
}

//===--- enumerations -----------------------------------------------------------------------------------------------===//

class Machine_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tc::machine";
  let genSpecializedAttr = 0;
}

def Machine_DeviceKind : Machine_Enum<"DeviceKind", "What runs kernels", [
    I32EnumAttrCase<"Cpu", 0, "cpu">, I32EnumAttrCase<"Cuda", 1, "cuda">]>;
def Machine_TargetKind : Machine_Enum<"TargetKind", "A device, and how much is done for it: reference is plain loops for CPUs", [
    I32EnumAttrCase<"Cpu", 0, "cpu">, I32EnumAttrCase<"Cuda", 1, "cuda">, I32EnumAttrCase<"Reference", 2, "reference">]>;
def Machine_MmaKind : Machine_Enum<"MmaKind", "Instructions of a GPU that multiply matrices", [
    I32EnumAttrCase<"Warp", 0, "mma">, I32EnumAttrCase<"WarpGroup", 1, "wgmma">, I32EnumAttrCase<"TensorMemory", 2, "tcgen05">]>;

def Machine_CpuUnits : I32BitEnumAttr<"CpuUnits", "Instructions of a CPU for sums of products of narrow elements", [
    I32BitEnumAttrCaseNone<"None", "none">,
    I32BitEnumAttrCaseBit<"Vnni", 0, "vnni">,         // vpdpbusd
    I32BitEnumAttrCaseBit<"Bf16", 1, "bf16">,         // vdpbf16ps
    I32BitEnumAttrCaseBit<"AmxInt8", 2, "amx_int8">,  // tdpbusd
    I32BitEnumAttrCaseBit<"AmxBf16", 3, "amx_bf16">]> // tdpbf16ps
{
  let cppNamespace = "::tc::machine";
  let genSpecializedAttr = 0;
  let separator = "|";
}

//===--- attributes -------------------------------------------------------------------------------------------------===//

def Machine_MachineInterface : AttrInterface<"MachineAttr"> {
  let cppNamespace = "::tc::machine";
  let description = "A processor that code is made for.";
  let methods = [
    InterfaceMethod<"What runs its kernels.", "::tc::machine::DeviceKind", "getDevice">,
    InterfaceMethod<"The name that parseMachine takes.", "::llvm::StringRef", "getName">,
    InterfaceMethod<"The vector registers of a thread.", "::tc::machine::VectorUnit", "getVectors">
  ];
}

class Machine_Attr<string cppName, string attrMnemonic> : AttrDef<Machine_Dialect, cppName, [Machine_MachineInterface]> {
  let mnemonic = attrMnemonic;
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
/// A number that is left out where it is not known, or the usual one.
class Machine_Number<string description, int usual = 0>
    : DefaultValuedParameter<"int64_t", !cast<string>(usual), description>;

def Machine_CpuAttr : Machine_Attr<"Cpu", "cpu"> {
  let summary = "A kind of CPU";
  let description = [{
    `#machine.cpu<name = "x86-64-v4-vnni", cpu = "x86-64-v4", features = "+avx512vnni", vectorBits = 512, vectorRegisters = 32,
    masks = true, units = vnni, l1Bytes = 32768>`: the variant's name, what LLVM calls the processor and its features, and what
    code generators use of these. What is left out is that of AVX2; sizes of caches and the number of cores are unknown then.

    (C1) A name and LLVM's cpu are given.  (C2) vectorBits is 128, 256 or 512, vectorRegisters 16 or 32; 512 bits come with masks and
    32 registers.  (C3) units need 512 bits.  (C4) Caches grow with their level, and no number is negative.
  }];
  let parameters = (ins StringRefParameter<"the variant's name">:$name, StringRefParameter<"as LLVM calls it">:$cpu,
                        StringRefParameter<"LLVM's: +feature,-feature", [{""}]>:$features,
                        Machine_Number<"of a vector register", 256>:$vectorBits,
                        Machine_Number<"of a thread", 16>:$vectorRegisters,
                        DefaultValuedParameter<"bool", "false", "vector instructions take masks">:$masks,
                        DefaultValuedParameter<"::tc::machine::CpuUnits", "::tc::machine::CpuUnits::None">:$units,
                        Machine_Number<"of data, of a core">:$l1Bytes, Machine_Number<"of a core">:$l2Bytes,
                        Machine_Number<"of all cores that share it">:$l3Bytes, Machine_Number<"of the machine">:$cores);
  let extraClassDeclaration = [{
    static constexpr ::tc::machine::DeviceKind getDevice() { return ::tc::machine::DeviceKind::Cpu; }
    ::tc::machine::VectorUnit getVectors() const { return {getVectorBits(), getVectorRegisters()}; }
    /// Whether it has all of these.
    bool has(::tc::machine::CpuUnits units) const { return (getUnits() & units) == units; }
  }];
}

def Machine_MmaAttr : AttrDef<Machine_Dialect, "Mma"> {
  let mnemonic = "mma";
  let summary = "What a GPU multiplies matrices with: `#machine.mma<wgmma, f16, bf16>`";
  let description = "(C1) There is a type, and none is given twice.";
  let parameters = (ins EnumParameter<Machine_MmaKind>:$kind, ArrayRefParameter<"::mlir::Type", "of operands">:$types);
  let assemblyFormat = "`<` $kind `,` $types `>`";
  let genVerifyDecl = 1;
}

def Machine_GpuAttr : Machine_Attr<"Gpu", "gpu"> {
  let summary = "A GPU of NVIDIA";
  let description = [{
    `#machine.gpu<name = "sm_80", multiprocessors = 108, sharedBytes = 167936, sharedBytesPerBlock = 166912, threads = 2048,
    l2Bytes = 41943040, gigabytesPerSecond = 2039, gigaflops = 19500, mmaGigaflops = 312000, mma = [#machine.mma<mma, f16>]>`. Shared memory,
    registers (of 32 bits) and threads are those of a multiprocessor; a block may ask for `sharedBytesPerBlock` and has at most
    `threadsPerBlock`. `gigaflops` is what f32 multiply-adds reach, `mmaGigaflops` dense products of f16.

    (C1) The name is sm_ and a number of two digits or more, perhaps with an "a": code for that chip alone.  (C2) A block gets no
    more shared memory and threads than a multiprocessor has.  (C3) Numbers are not negative, and threads come in warps.
    (C4) `mma` holds #machine.mma, each kind once.
  }];
  let parameters = (ins StringRefParameter<"of the chip">:$name, Machine_Number<"of the GPU">:$multiprocessors,
                        Machine_Number<"of a multiprocessor">:$sharedBytes, Machine_Number<"at most">:$sharedBytesPerBlock,
                        Machine_Number<"of a multiprocessor", 65536>:$registers,
                        Machine_Number<"resident in a multiprocessor">:$threads, Machine_Number<"at most", 1024>:$threadsPerBlock,
                        Machine_Number<"of the GPU">:$l2Bytes, Machine_Number<"of its memory">:$gigabytesPerSecond,
                        Machine_Number<"of f32">:$gigaflops, Machine_Number<"of products of f16">:$mmaGigaflops,
                        OptionalParameter<"::mlir::ArrayAttr", "of MmaAttr">:$mma);
  let extraClassDeclaration = [{
    static constexpr ::tc::machine::DeviceKind getDevice() { return ::tc::machine::DeviceKind::Cuda; }
    /// Sixteen bytes a thread and access.
    ::tc::machine::VectorUnit getVectors() const { return {128, 32}; }
    /// As tcrt_section_t::arch: sm_90 is 900; sm_90a, whose code runs on no other GPU, 901.
    unsigned getArch() const;
    /// Whether it has this kind of instructions.
    bool hasMma(::tc::machine::MmaKind kind) const;
  }];
}

#endif
