//===- PrimBase.td - dialect, attributes and base classes of prim ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_IR_PRIMBASE
#define TC_DIALECT_PRIM_IR_PRIMBASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "tc/Dialect/Prim/IR/PrimInterfaces.td"

def Prim_Dialect : Dialect {
  let name = "prim";
  let cppNamespace = "::tc::prim";
  let summary = "The few tensor primitives that every model becomes";
  let description = [{
    Values are ranked tensors. A dimension is a number or an expression over the symbols of the enclosing function: a type
    with such a dimension carries `#prim.dims` as its encoding, so that two types are equal exactly when all their sizes are
    provably equal. The function's `prim.symbols` attribute lists the symbols (`#prim.symbol`) in order; symbol `s<i>` of
    every expression is entry i.

    Integers without a sign are signed; `ui8` to `ui64` are unsigned; `i1` is bool. Nothing broadcasts implicitly.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Prim_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Prim_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Prim_DimsAttr : Prim_Attr<"Dims", "dims",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Encoding of a tensor type: one size expression per dimension, over the function's symbols";
  let description = [{
    `#prim.dims<affine_map<()[s0, s1] -> (s0, s1 * 4, 768)>>`. Built by prim::makeType only, which simplifies expressions and
    keeps the number of symbols minimal, so that equal sizes give equal attributes. At least one size is no constant.
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$map);
  let assemblyFormat = "`<` $map `>`";
}

def Prim_SymbolAttr : Prim_Attr<"Symbol", "symbol"> {
  let summary = "A symbolic size: name, inclusive range, divisor";
  let description = "`max` is INT64_MAX where no upper bound is known. min >= 0, divisor >= 1.";
  let parameters = (ins StringRefParameter<"as a user wrote it">:$name, "int64_t":$min, "int64_t":$max, "int64_t":$divisor);
  let assemblyFormat = "`<` $name `,` $min `,` $max `,` $divisor `>`";
}

def Prim_ReduceKind : I32EnumAttr<"ReduceKind", "How elements are combined", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">, I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"Min", 3, "min">, I32EnumAttrCase<"And", 4, "and">, I32EnumAttrCase<"Or", 5, "or">]> {
  let cppNamespace = "::tc::prim";
}
def Prim_CompareKind : I32EnumAttr<"CompareKind", "Ordered comparison; NE is true for NaN", [
    I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">, I32EnumAttrCase<"LT", 2, "lt">,
    I32EnumAttrCase<"LE", 3, "le">, I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]> {
  let cppNamespace = "::tc::prim";
}
def Prim_RnnKind : I32EnumAttr<"RnnKind", "Cell of a recurrent layer", [
    I32EnumAttrCase<"LSTM", 0, "lstm">, I32EnumAttrCase<"GRU", 1, "gru">, I32EnumAttrCase<"RNN", 2, "rnn">]> {
  let cppNamespace = "::tc::prim";
}

class Prim_HasRole<string role> : ParamNativeOpTrait<"HasRole", "::tc::prim::Role::" # role> {
  let cppNamespace = "::tc::prim";
}
def Prim_Bijective : NativeOpTrait<"BijectiveTrait"> { let cppNamespace = "::tc::prim"; }
def Prim_Selects : NativeOpTrait<"SelectsTrait"> { let cppNamespace = "::tc::prim"; }
def Prim_Transcendental : NativeOpTrait<"TranscendentalTrait"> { let cppNamespace = "::tc::prim"; }
def Prim_Costly : NativeOpTrait<"CostlyTrait"> { let cppNamespace = "::tc::prim"; }

// `role`: an enumerator of Role. `fusion`, `cost`: the methods of the interfaces that the op defines itself.
class Prim_Op<string mnemonic, string role, list<Trait> traits = [], list<string> fusion = [], list<string> cost = []>
    : Op<Prim_Dialect, mnemonic,
         !listconcat(traits, [Prim_HasRole<role>, DeclareOpInterfaceMethods<Prim_FusionOpInterface, fusion>,
                              DeclareOpInterfaceMethods<Prim_CostOpInterface, cost>])>;
// Movement whose positions in the operand follow as `addressing`, an enumerator of Addressing, says.
class Prim_Addressed<string mnemonic, string addressing, list<Trait> traits = [], list<string> fusion = []>
    : Prim_Op<mnemonic, "Movement", !listconcat([Pure], traits), fusion> {
  let extraClassDeclaration = "static Addressing getAddressing() { return Addressing::" # addressing # "; }";
}
// Reads its operands again and again, and through movement ops up to `through`, an enumerator of Addressing.
class Prim_Repeated<string mnemonic, string role, string through, list<string> cost = []>
    : Prim_Op<mnemonic, role, [Pure], [], cost> {
  let extraClassDeclaration = "static Addressing readsThrough() { return Addressing::" # through # "; }";
}

// The op computes each element of its result from the elements of its operands at the same index. Its meaning for one
// element is given by the registry of emissions (codegen) and by the interpreter.
def Prim_Elementwise : NativeOpTrait<"PointwiseTrait"> { let cppNamespace = "::tc::prim"; }

class Prim_Unary<string mnemonic, list<Trait> traits = []>
    : Prim_Op<mnemonic, "Pointwise", !listconcat(traits, [Pure, SameOperandsAndResultType, Prim_Elementwise])> {
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}
class Prim_Binary<string mnemonic, list<Trait> traits = []>
    : Prim_Op<mnemonic, "Pointwise", !listconcat(traits, [Pure, SameOperandsAndResultType, Prim_Elementwise])> {
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

#endif
