//===- HostOps.td - the host program ---------------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_HOST_IR_HOSTOPS
#define TC_DIALECT_HOST_IR_HOSTOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "tc/Dialect/Machine/IR/Constraints.td"
include "tc/Dialect/TC/IR/TC.td"

def Host_Dialect : Dialect {
  let name = "host";
  let cppNamespace = "::tc::host";
  let summary = "The straight-line program that launches kernels";
  let hasConstantMaterializer = 0;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::tc::base::TCDialect", "::tc::machine::MachineDialect"];
}

def Host_PlaceKind : I32EnumAttr<"PlaceKind", "The memory that a value lives in", [
    I32EnumAttrCase<"Arena", 0, "arena">, I32EnumAttrCase<"Input", 1, "input">, I32EnumAttrCase<"Output", 2, "output">,
    I32EnumAttrCase<"Weights", 3, "weights">, I32EnumAttrCase<"Heap", 4, "heap">,
    I32EnumAttrCase<"LateOutput", 5, "late_output">, I32EnumAttrCase<"State", 6, "state">]> {
  let cppNamespace = "::tc::host";
  let genSpecializedAttr = 0;
}
def Host_PlaceAttr : AttrDef<Host_Dialect, "Place"> {
  let mnemonic = "place";
  let summary = "Where a value lives: made by tc-plan-memory, obeyed by the host program";
  let description = [{
    `#host.place<arena[0], affine_map<()[s0] -> (s0 * 512 + 64)>>`: `offset` bytes (a size expression) into segment `index` of the arena, into the
    caller's buffer of input or output `index`, or into the weights section. heap: memory of its own (number `index`) whose size
    depends on data, allocated where the value is defined; late_output: memory of output `index` that the runtime gives once its
    sizes are known; state: that of state `index`, which the context owns.
  }];
  let parameters = (ins EnumParameter<Host_PlaceKind>:$kind, "int64_t":$index, "::mlir::AffineMapAttr":$offset);
  let assemblyFormat = "`<` $kind `[` $index `]` `,` $offset `>`";
}

def Host_ConstantOp : Op<Host_Dialect, "constant", [Pure]> {
  let summary = "A constant as kernels read it: `data` rearranged by `map`";
  let description = [{
    result[i..] = data[map(i..)], and 0 where map(i..) lies outside of data. Without `map`: the data as it is. The bytes are made
    when the artifact is written; equal constants are stored once. Example, 16-column panels of a [K, N] matrix:
    `map = affine_map<(p, k, c) -> (k, p * 16 + c)>`, result tensor<?xKx16xf32>.

    `transform` is a matrix of as many rows as the result's first size, for data of floats of at most 32 bits: then
    result[r, i..] = sum over t of transform[r, t] * data[map(t, i..)], in double.

    `tf32`: what is so made, of f32, is rounded to the nearest number of 11 significant bits.
  }];
  let arguments = (ins TypedAttrInterface:$data, OptionalAttr<AffineMapAttr>:$map,
                   OptionalAttr<F64ElementsAttr>:$transform, UnitAttr:$tf32);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$data (`map` $map^)? (`transform` $transform^)? (`tf32` $tf32^)? attr-dict `:` type($result)";
}

def Host_LaunchOp : Op<Host_Dialect, "launch", []> {
  let summary = "Runs a kernel over [0, tasks)";
  let description = [{
    `kernel` names a function of every variant's module, of type tcrt_kernel_fn. Its argument words are, in order: addresses of
    the inputs, addresses of the outputs, the address of the scratch if `scratch` is given (worker w owns the bytes from w * scratch on;
    that of the members of a group lies one behind the other), then the values of the `symbols` (positions in the function's
    prim.symbols). `tasks`, `grain` and `scratch` are size expressions (maps with one result). `inPlace` lists (input, output) pairs, flattened, that may share memory. Inputs and outputs do not
    overlap otherwise. Sizes of buffers come from the tensor types. `device` names grid, block and shared memory for GPU kernels.
    Launches that follow one another with the same `group` run at the same time (tc-group-launches).
    `steps`, a size expression, makes it a launch in steps: step s calls the kernel for ranges of [s * tasks, (s + 1) * tasks) and
    begins when all tasks of the steps before it are done. What a step wrote to the outputs, later ones may read. The members of a
    group have the same steps and take them together.
    `tied` lists (input, output) pairs, flattened: the output is the input's memory, which the launch changes; nothing but launches
    of the same kernel has the input.

    (C1) A launch with `device` has no `group`.  (C2) No member of a group reads what another one computes.
    (C3) A launch with `device` has no `steps`, which is a map with one result.  (C4) Members of a group have equal `steps`.
    (C5) What is tied is what another launch made, of the same type.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$symbols,
                   AffineMapAttr:$tasks, AffineMapAttr:$grain, OptionalAttr<AffineMapAttr>:$steps, OptionalAttr<AffineMapAttr>:$scratch,
                   OptionalAttr<DenseI64ArrayAttr>:$inPlace, OptionalAttr<DenseI64ArrayAttr>:$tied, OptionalAttr<DictionaryAttr>:$device,
                   OptionalAttr<TC_CostAttr>:$cost, OptionalAttr<I64Attr>:$group);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether this launch runs at the same time as the one before it.
    bool joinsPrevious();
    /// The input that is the memory of an output, or null.
    ::mlir::Value getTiedInput(unsigned output);
  }];
  let assemblyFormat = "$kernel `(` $inputs `)` `symbols` $symbols `tasks` $tasks `grain` $grain (`steps` $steps^)? (`scratch` $scratch^)? (`in_place` $inPlace^)? (`tied` $tied^)? attr-dict `:` functional-type($inputs, $outputs)";
}

def Host_GuardAttr : AttrDef<Host_Dialect, "Guard"> {
  let mnemonic = "guard";
  let summary = "When something runs: for these sizes, on this machine";
  let description = [{
    `#host.guard<sizes = #few, machine = #machine.cpu<...>>` with `#few = affine_set<()[s0] : (16 - s0 >= 0)>`: the set is over the symbols of the function; a
    program for another machine leaves out what stands behind the guard. (C1) One of the two is given; the set has no dims.
  }];
  let parameters = (ins OptionalParameter<"::mlir::IntegerSetAttr">:$sizes,
                        OptionalParameter<"::tc::machine::MachineAttr">:$machine);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def Host_ChooseOp : Op<Host_Dialect, "choose", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Runs the launches of the first region whose guard holds; the last region has none";
  let description = [{
    What a region yields lives where the results do, so that nothing is copied. Regions see outer values.

    (C1) There is one guard fewer than regions, and a region at least.  (C2) Each region yields values of the results' types, each
    computed by a launch in it and yielded once.
  }];
  let arguments = (ins TypedArrayAttrBase<Host_GuardAttr, "guards">:$guards);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$cases);
  let assemblyFormat = "$guards `:` type($results) $cases attr-dict-with-keyword";
  let hasVerifier = 1;
}
def Host_YieldOp : Op<Host_Dialect, "yield", [Pure, Terminator, HasParent<"ChooseOp">]> {
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Host_CopyOp : Op<Host_Dialect, "copy", [AllTypesMatch<["input", "result"]>]> {
  let summary = "The same bytes at another place";
  let description = "Made by tc-plan-memory where an output is an input, a constant, or the same value as another output.";
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

class Host_OfMachines<string mnemonic, list<Trait> traits> : Op<Host_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::tc::machine::DeviceKind getDevice() { return getMachine().getDevice(); }
    /// The CPU, or the first of the GPUs.
    ::tc::machine::MachineAttr getMachine() { return ::mlir::cast<::tc::machine::MachineAttr>(getMachines()[0]); }
  }];
}

def Host_VariantOp : Host_OfMachines<"variant", [Symbol, SymbolTable, NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "The kernels of one target variant: llvm.func ops";
  let description = [{
    `machines` is the CPU that they are for, or all GPUs that share them. (C1) A CPU stands alone. (C2) There is a machine, and
    all are of one device.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Machine_MachineArray:$machines);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `machines` $machines attr-dict-with-keyword $body";
}

def Host_BinaryOp : Host_OfMachines<"binary", [Symbol]> {
  let summary = "Object code of one target variant (phase object)";
  let description = [{
    Replaces the host.variant of the same name. `requires`: TCRT_CPU_* bits that the machine must have. `object`: the bytes of a
    linked ELF shared object (artifact_abi.h says what it may hold), as a dense resource. (C1, C2) As host.variant.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Machine_MachineArray:$machines, I64Attr:$requires, ElementsAttr:$object);
  let assemblyFormat = "$sym_name `machines` $machines `requires` $requires attr-dict-with-keyword `object` $object";
}

#endif
