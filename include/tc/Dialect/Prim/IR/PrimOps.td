//===- PrimOps.td - operations of prim --------------------------------------------------------------------*- tablegen -*-===//
//
// Conventions: C1, C2, ... number the constraints that the verifier cites. `size expressions` are the results of an
// affine map without dims over the function's symbols (see PrimBase.td).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_IR_PRIMOPS
#define TC_DIALECT_PRIM_IR_PRIMOPS

include "tc/Dialect/Prim/IR/PrimBase.td"

//===--- constants and sizes ----------------------------------------------------------------------------------------===//

def Prim_ConstantOp : Prim_Op<"constant", "Function", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known at compile time";
  let description = [{
    `value` is `#tc.data` (bytes in a blob) or, for splats and for at most 64 elements, a builtin dense attribute.
  }];
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}
def Prim_SplatOp : Prim_Addressed<"splat", "View"> {
  let summary = "All elements equal to `value`, any shape";
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_IotaOp : Prim_Op<"iota", "Movement", [Pure]> {
  let summary = "Element = its index along `axis`";
  let arguments = (ins I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`axis` `=` $axis attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_SizesOp : Prim_Op<"sizes", "Movement", [Pure]> {
  let summary = "A 0-D or 1-D i64 tensor of size expressions: how sizes enter arithmetic on values";
  let description = "(C1) as many expressions as elements. Example: `prim.sizes affine_map<()[s0] -> (s0, 768)> : tensor<2xi64>`.";
  let arguments = (ins AffineMapAttr:$map);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$map attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Prim_BindSymbolOp : Prim_Op<"bind_symbol", "Function"> {
  let summary = "Defines symbol `symbol` from a 0-D i64 tensor: a size that depends on data, or a guard";
  let description = [{
    A run in which the value is not in the symbol's range fails with `message`, a sentence without a file name; where it is
    absent, with one that names the symbol. A symbol with one possible value is a guard: nothing need read it.
  }];
  let arguments = (ins AnyRankedTensor:$value, I64Attr:$symbol, OptionalAttr<StrAttr>:$message);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "int64_t":$symbol), [{
    build($_builder, $_state, value, $_builder.getI64IntegerAttr(symbol), ::mlir::StringAttr());
  }]>];
  let assemblyFormat = "$value `to` $symbol attr-dict `:` type($value)";
}
def Prim_GuardOp : Prim_Op<"guard", "Function"> {
  let summary = "Refuses the run unless two sizes compare as `kind` says; with `orOne`, also where the first is 1";
  let description = [{
    `sizes` is a map with two results. What follows in the block may rely on it: whoever mentions one of its symbols runs after it.
    `what` reads on from the node's name in the message: "Concat needs equal sizes in dim 1".
    (C1) the map has two results. (C2) kind is eq or le.
  }];
  let arguments = (ins Prim_CompareKind:$kind, AffineMapAttr:$sizes, StrAttr:$what, UnitAttr:$orOne);
  let assemblyFormat = "$kind $sizes (`or_one` $orOne^)? $what attr-dict";
  let hasVerifier = 1;
}

//===--- elementwise ------------------------------------------------------------------------------------------------===//

def Prim_AbsOp : Prim_Unary<"abs">;
def Prim_NegOp : Prim_Unary<"neg">;
def Prim_SignOp : Prim_Unary<"sign"> { let description = "-1, 0 or 1; NaN stays NaN."; }
def Prim_CeilOp : Prim_Unary<"ceil">;
def Prim_FloorOp : Prim_Unary<"floor">;
def Prim_RoundOp : Prim_Unary<"round"> { let description = "Half to even."; }
def Prim_TruncOp : Prim_Unary<"trunc">;
def Prim_SqrtOp : Prim_Unary<"sqrt">;
def Prim_RsqrtOp : Prim_Unary<"rsqrt">;
def Prim_ReciprocalOp : Prim_Unary<"reciprocal">;
def Prim_ExpOp : Prim_Unary<"exp", [Prim_Transcendental]>;
def Prim_Expm1Op : Prim_Unary<"expm1", [Prim_Transcendental]>;
def Prim_LogOp : Prim_Unary<"log", [Prim_Transcendental]>;
def Prim_Log1pOp : Prim_Unary<"log1p", [Prim_Transcendental]>;
def Prim_SinOp : Prim_Unary<"sin", [Prim_Transcendental]>;
def Prim_CosOp : Prim_Unary<"cos", [Prim_Transcendental]>;
def Prim_TanOp : Prim_Unary<"tan", [Prim_Transcendental]>;
def Prim_AsinOp : Prim_Unary<"asin", [Prim_Transcendental]>;
def Prim_AcosOp : Prim_Unary<"acos", [Prim_Transcendental]>;
def Prim_AtanOp : Prim_Unary<"atan", [Prim_Transcendental]>;
def Prim_SinhOp : Prim_Unary<"sinh", [Prim_Transcendental]>;
def Prim_CoshOp : Prim_Unary<"cosh", [Prim_Transcendental]>;
def Prim_TanhOp : Prim_Unary<"tanh", [Prim_Transcendental]>;
def Prim_AsinhOp : Prim_Unary<"asinh", [Prim_Transcendental]>;
def Prim_AcoshOp : Prim_Unary<"acosh", [Prim_Transcendental]>;
def Prim_AtanhOp : Prim_Unary<"atanh", [Prim_Transcendental]>;
def Prim_ErfOp : Prim_Unary<"erf", [Prim_Transcendental]>;
def Prim_LogisticOp : Prim_Unary<"logistic", [Prim_Transcendental]> { let description = "1 / (1 + exp(-x))."; }
def Prim_NotOp : Prim_Unary<"not"> { let description = "Of bool: logical; of integers: bitwise."; }

def Prim_AddOp : Prim_Binary<"add", [Commutative]>;
def Prim_SubOp : Prim_Binary<"sub">;
def Prim_MulOp : Prim_Binary<"mul", [Commutative]>;
def Prim_DivOp : Prim_Binary<"div"> {
  let description = "Integers truncate toward zero; division of an integer by zero gives 0, and MIN / -1 gives MIN.";
}
def Prim_RemOp : Prim_Binary<"rem", [Prim_Costly]> { let description = "C's % and fmod: the sign of the dividend; integer x rem 0 is 0."; }
def Prim_PowOp : Prim_Binary<"pow", [Prim_Transcendental]>;
def Prim_Atan2Op : Prim_Binary<"atan2", [Prim_Transcendental]>;
def Prim_MaxOp : Prim_Binary<"max", [Commutative]> { let description = "NaN if either is NaN."; }
def Prim_MinOp : Prim_Binary<"min", [Commutative]> { let description = "NaN if either is NaN."; }
def Prim_AndOp : Prim_Binary<"and", [Commutative]>;
def Prim_OrOp : Prim_Binary<"or", [Commutative]>;
def Prim_XorOp : Prim_Binary<"xor", [Commutative]>;
def Prim_ShlOp : Prim_Binary<"shl"> { let description = "A shift by the width or more gives 0."; }
def Prim_ShrOp : Prim_Binary<"shr"> { let description = "Logical for unsigned, arithmetic for signed elements; by the width or more: 0 or -1."; }

def Prim_CompareOp : Prim_Op<"compare", "Pointwise", [Pure, Prim_Elementwise, SameTypeOperands]> {
  let arguments = (ins Prim_CompareKind:$kind, AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let builders = [OpBuilder<(ins "::tc::prim::CompareKind":$kind, "::mlir::Value":$lhs, "::mlir::Value":$rhs)>];
  let hasVerifier = 1;
}
class Prim_Test<string mnemonic> : Prim_Op<mnemonic, "Pointwise", [Pure, Prim_Elementwise]> {
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
def Prim_IsNanOp : Prim_Test<"is_nan">;
def Prim_IsInfOp : Prim_Test<"is_inf">;
def Prim_SelectOp : Prim_Op<"select", "Pointwise", [Pure, Prim_Elementwise, AllTypesMatch<["ifTrue", "ifFalse", "result"]>]> {
  let summary = "result = condition ? ifTrue : ifFalse, elementwise";
  let arguments = (ins AnyRankedTensor:$condition, AnyRankedTensor:$ifTrue, AnyRankedTensor:$ifFalse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$condition `,` $ifTrue `,` $ifFalse attr-dict `:` type($condition) `,` type($result)";
  let hasVerifier = 1;
}
def Prim_ConvertOp : Prim_Op<"convert", "Pointwise", [Pure, Prim_Elementwise]> {
  let summary = "Change the element type by value";
  let description = [{
    float to integer truncates toward zero, out of range saturates and NaN gives 0; integer to narrower integer wraps;
    anything to i1 is `!= 0`; float to narrower float rounds to nearest even.
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Type":$elementType)>];
  let hasVerifier = 1;
}

def Prim_BitcastOp : Prim_Op<"bitcast", "Pointwise", [Pure, Prim_Elementwise]> {
  let summary = "Read the bits of each element as another element type of the same width";
  let description = [{
    (C1) Both element types have the same number of bits, and neither is i1. Source: ONNX BitCast-26.
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Type":$elementType)>];
  let hasVerifier = 1;
}

//===--- movement ---------------------------------------------------------------------------------------------------===//

def Prim_ReshapeOp : Prim_Addressed<"reshape", "View", [Prim_Bijective, Prim_Selects],
                                    ["getAccess", "mapOperand", "getSourceDim"]> {
  let summary = "The same elements in row-major order under other sizes";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_StorageOp : Prim_Op<"storage", "Function", [Pure]> {
  let summary = "A view: a tensor of narrow or complex elements, and what holds it in an artifact";
  let description = [{
    Narrow element types are the floats of at most 8 bits and the integers of 2 and 4 bits. One side has such a type, the other is
    ui8: for 8 and 6 bits of the same sizes; for 4 and 2 bits 1-D, the elements in row-major order from each byte's low bits on,
    unused bits 0. A tensor of complex elements is one of their floats with a last dim of 2, real and imaginary part.
    (C1) One side is narrow and the other ui8, or one is complex and the other of its floats. (C2) The sizes fit. Stands in the
    function, never in a fused region; but for views of complex elements while a graph is converted, made by tc-expand-narrow-types
    and tc-expand-complex.
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
def Prim_TransposeOp : Prim_Addressed<"transpose", "Strided", [Prim_Bijective, Prim_Selects], ["mapOperand", "getSourceDim"]> {
  let summary = "result dim i is operand dim permutation[i]";
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand $permutation attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$permutation)>];
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_BroadcastOp : Prim_Addressed<"broadcast", "Strided", [Prim_Selects], ["mapOperand", "getSourceDim"]> {
  let summary = "Repeat along dims: operand dim i goes to result dim dims[i]";
  let description = [{
    (C1) dims is strictly increasing and in range. An operand size equals the result's or is 1; where neither is provable
    the size at run time decides: the index along it is 0 if the operand's size is 1.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Prim_SliceOp : Prim_Addressed<"slice", "Part", [Prim_Selects], ["getAccess", "getSourceDim"]> {
  let summary = "result[i..] = operand[starts + i * steps]";
  let description = "`starts`: a size expression per dim, in range. `steps`: not 0, may be negative. The result's type has the sizes.";
  let arguments = (ins AnyRankedTensor:$operand, AffineMapAttr:$starts, DenseI64ArrayAttr:$steps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand `from` $starts `step` $steps attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
def Prim_DynamicSliceOp : Prim_Op<"dynamic_slice", "Movement", [Pure, Prim_Selects], ["getAccess"]> {
  let summary = "Slice whose starts are data: i64 0-D tensors, clamped so that the window lies inside";
  let arguments = (ins AnyRankedTensor:$operand, Variadic<AnyRankedTensor>:$starts);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand `from` `(` $starts `)` attr-dict `:` functional-type(operands, results)";
}
def Prim_PadOp : Prim_Op<"pad", "Movement", [Pure, Prim_Costly], ["getSourceDim"]> {
  let summary = "Surround with `value` (0-D): result[i] = operand[i - low] where inside, else value";
  let description = "`low`: a size expression per dim, may be negative (crops). Sizes of the result from its type.";
  let arguments = (ins AnyRankedTensor:$operand, AnyRankedTensor:$value, AffineMapAttr:$low);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand `,` $value `low` $low attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Prim_ConcatOp : Prim_Op<"concat", "Movement", [Pure, Prim_Costly], ["getAccess", "mapOperand"]> {
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$inputs `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "int64_t":$axis)>];
  let hasVerifier = 1;
}
def Prim_GatherOp : Prim_Op<"gather", "Movement", [Pure, Prim_Selects, Prim_Costly], ["getAccess", "mapOperand", "getSourceDim"]> {
  let summary = "Select slices of `source` along `axis` by integer index";
  let description = [{
    result[i.., j.., k..] = source[i.., indices[j..], k..]
    Shapes: source [I.., A, K..], indices [J..] of i32 or i64, result [I.., J.., K..]; A may be symbolic.
    (C1) 0 <= axis < rank(source).  (C2) element types of source and result match.
    Indices in [-A, A) are valid: negative ones count from the end; the rest are clamped, so that memory is never overrun.
    Source: ONNX Gather-13.
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$indices, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `[` $indices `]` `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$indices, "int64_t":$axis)>];
  let hasVerifier = 1;
}
def Prim_GatherElementsOp : Prim_Op<"gather_elements", "Movement", [Pure, Prim_Selects, Prim_Costly], ["getAccess", "mapOperand"]> {
  let summary = "result[i..] = source[i.. with position axis replaced by indices[i..]]; negative and wild indices as in gather";
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$indices, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `[` $indices `]` `axis` `=` $axis attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Prim_GatherNDOp : Prim_Op<"gather_nd", "Movement", [Pure, Prim_Selects, Prim_Costly], ["getAccess", "mapOperand", "getSourceDim"]> {
  let summary = "result[b.., j.., k..] = source[b.., indices[b.., j.., 0..D-1].., k..]";
  let description = [{
    source [B.., A1..AD, K..], indices [B.., J.., D], result [B.., J.., K..]; batchDims = rank of B.
    (C1) the last dim of indices is static. Negative and wild indices as in gather. Source: ONNX GatherND-13.
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$indices, I64Attr:$batchDims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `[` $indices `]` `batch_dims` `=` $batchDims attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Prim_ScatterNDOp : Prim_Op<"scatter_nd", "Alone", [Pure]> {
  let summary = "A copy of `source` with slices at `indices` replaced by or combined with `updates`";
  let description = [{
    indices [J.., D], updates [J.., K..], source [A1..AD, K..]. Without `kind` the last update in row-major order wins.
    `order` [J] of i64 changes nothing: the numbers of the updates as what they name rises, equal ones as they come.
    (C1) with `order` D is 1, and J one dim.
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$indices, AnyRankedTensor:$updates,
                   Optional<AnyRankedTensor>:$order, OptionalAttr<Prim_ReduceKind>:$kind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `[` $indices `]` `,` $updates (`order` $order^)? (`kind` $kind^)? attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source, "::mlir::Value":$indices, "::mlir::Value":$updates,
                             "::tc::prim::ReduceKindAttr":$kind),
                            [{ build($_builder, $_state, result, source, indices, updates, ::mlir::Value(), kind); }]>];
  let hasVerifier = 1;
}
def Prim_ScatterElementsOp : Prim_Op<"scatter_elements", "Alone", [Pure]> {
  let summary = "Inverse of gather_elements: result = source; result[.. indices[i..] ..] = or combine= updates[i..]";
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$indices, AnyRankedTensor:$updates, I64Attr:$axis,
                   OptionalAttr<Prim_ReduceKind>:$kind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `[` $indices `]` `,` $updates `axis` `=` $axis (`kind` $kind^)? attr-dict `:` functional-type(operands, results)";
}

//===--- reductions -------------------------------------------------------------------------------------------------===//

def Prim_ReduceOp : Prim_Op<"reduce", "Reduce", [Pure], ["getReducedDims"], ["getCombinedSizes"]> {
  let summary = "Combine the elements along `dims`; the reduced dims are dropped";
  let description = [{
    (C1) dims strictly increasing and in range. f16 and bf16 sums accumulate in f32, all others in the element type. Empty: sum 0,
    prod 1, max lowest value or -inf, min highest or +inf, and true, or false. max and min give NaN if an element is NaN.
  }];
  let arguments = (ins Prim_ReduceKind:$kind, AnyRankedTensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $operand $dims attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::tc::prim::ReduceKind":$kind, "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$dims)>];
  let hasVerifier = 1;
}
def Prim_ArgReduceOp : Prim_Op<"arg_reduce", "Reduce", [Pure], ["getReducedDims"], ["getCombinedSizes"]> {
  let summary = "i64 index of the max or min along `axis` (dropped); ties: the first, or the last with `lastIndex`; a NaN wins";
  let arguments = (ins Prim_ReduceKind:$kind, AnyRankedTensor:$operand, I64Attr:$axis, UnitAttr:$lastIndex);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $operand `axis` `=` $axis (`last` $lastIndex^)? attr-dict `:` type($operand) `->` type($result)";
}
def Prim_ScanOp : Prim_Op<"scan", "Alone", [Pure]> {
  let summary = "Cumulative combination along `axis`";
  let arguments = (ins Prim_ReduceKind:$kind, AnyRankedTensor:$operand, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $operand `axis` `=` $axis (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` type($operand) `->` type($result)";
}

def Prim_ArgSortOp : Prim_Op<"arg_sort", "Alone", [Pure]> {
  let summary = "Positions of the first rows in lexicographic order";
  let description = [{
    operand [B.., N, M], result [B.., K] of i64, K <= N: for each b the numbers of the first K of the N rows of M keys, in rising
    order, or falling order with `descending`; equal rows in the order of their numbers either way. NaN is above all numbers, -0
    equals 0. `key_bits`: keys are known to lie in [0, 2^key_bits). (C1) the result has the operand's leading sizes B and one dim
    more. (C2) key_bits, at least 1, stand with integers that have more, in rising order.
  }];
  let arguments = (ins AnyRankedTensor:$operand, UnitAttr:$descending, OptionalAttr<I64Attr>:$keyBits);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand (`descending` $descending^)? (`key_bits` $keyBits^)? attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Prim_FftOp : Prim_Op<"fft", "Alone", [Pure], [], ["getFlops"]> {
  let summary = "Discrete Fourier transforms of N elements each, not scaled";
  let description = [{
    result[p, k, q] = sum over n < N of operand[p, n, q] * exp(-2 pi i n k / N), with `inverse` exp(+2 pi i n k / N).
    operand [P, L, Q, C], result [P, K, Q, R]. C is 1 or 2: real elements, or real and imaginary parts. R likewise: the real parts of
    the sums, or both. `length` is a map with one result, N. Elements from L on are 0; those from N on are not read. With `half`
    elements from N / 2 + 1 on are the conjugates of those at N - n.
    (C1) element types are f32 or f64, the same for both. (C2) operand and result have these sizes. (C3) K is at most N.
  }];
  let arguments = (ins AnyRankedTensor:$operand, AffineMapAttr:$length, UnitAttr:$inverse, UnitAttr:$half);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "(`inverse` $inverse^)? (`half` $half^)? $operand `length` $length attr-dict `:` type($operand) `->` type($result)";
  let extraClassDeclaration = [{
    /// N.
    ::mlir::AffineExpr getLengthExpr() { return getLength().getResult(0); }
  }];
  let hasVerifier = 1;
}

//===--- contractions and windows -----------------------------------------------------------------------------------===//

def Prim_DotGeneralOp : Prim_Repeated<"dot_general", "Contraction", "Part", ["getCombinedSizes"]> {
  let summary = "Batched matrix product with any dims contracted";
  let description = [{
    result dims: batch dims (in the order of lhsBatch), then the other lhs dims in order, then the other rhs dims in order.
    (C1) batch and contracting dims are disjoint, in range and of equal sizes on both sides. Accumulates f16 and bf16 in f32,
    narrow integers in i32; the result type's element may be wider than the operands'.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs, DenseI64ArrayAttr:$lhsBatch, DenseI64ArrayAttr:$rhsBatch,
                   DenseI64ArrayAttr:$lhsContract, DenseI64ArrayAttr:$rhsContract);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs `batch` $lhsBatch `x` $rhsBatch `contract` $lhsContract `x` $rhsContract attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "::llvm::ArrayRef<int64_t>":$lhsBatch,
      "::llvm::ArrayRef<int64_t>":$rhsBatch, "::llvm::ArrayRef<int64_t>":$lhsContract, "::llvm::ArrayRef<int64_t>":$rhsContract)>];
  let hasVerifier = 1;
}
def Prim_ConvOp : Prim_Repeated<"conv", "Contraction", "Part", ["getCombinedSizes"]> {
  let summary = "Convolution (correlation) over any number of spatial dims, channels last";
  let description = [{
    input [N, S.., C], filter [K.., C / groups, O], result [N, T.., O]; padLow and padHigh (may be negative) in elements.
    T = floor((S + padLow + padHigh - dilation * (K - 1) - 1) / stride) + 1. GraphToPrim adds the transposes that channels-first
    models need; they cancel between layers. (C1) as many strides, dilations, pads as spatial dims.
    (C2) groups divides C and O.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$filter, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                   DenseI64ArrayAttr:$padLow, DenseI64ArrayAttr:$padHigh, I64Attr:$groups);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $filter `strides` $strides `dilations` $dilations `pads` $padLow $padHigh `groups` $groups attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$filter, "::llvm::ArrayRef<int64_t>":$strides,
      "::llvm::ArrayRef<int64_t>":$dilations, "::llvm::ArrayRef<int64_t>":$padLow, "::llvm::ArrayRef<int64_t>":$padHigh, "int64_t":$groups)>];
  let hasVerifier = 1;
}
def Prim_WindowReduceOp : Prim_Repeated<"window_reduce", "Window", "Part", ["getCombinedSizes"]> {
  let summary = "Pooling: combine the elements of each window, channels last";
  let description = [{
    operand [N, S.., C], result [N, T.., C] with T as in conv over `window` (T comes from the result type, so that ceil mode is possible).
    Elements outside the operand are left out (they equal the neutral element of `kind`).
  }];
  let arguments = (ins Prim_ReduceKind:$kind, AnyRankedTensor:$operand, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                   DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$padLow);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $operand `window` $window `strides` $strides `dilations` $dilations `low` $padLow attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

//===--- composites: a target may take them whole; otherwise the decompose pass expands them -------------------------===//

def Prim_SoftmaxOp : Prim_Op<"softmax", "Alone", [Pure, SameOperandsAndResultType]> {
  let summary = "exp(x - max) / sum(exp(x - max)) along `axis`; with `log`, its logarithm";
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$axis, UnitAttr:$log);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand `axis` `=` $axis (`log` $log^)? attr-dict `:` type($result)";
}
def Prim_NormOp : Prim_Op<"norm", "Alone", [Pure, AllTypesMatch<["operand", "result"]>]> {
  let summary = "(x - mean) * rsqrt(variance + epsilon) over `dims`; with `rms`, x * rsqrt(mean of squares + epsilon)";
  let description = "Statistics in f32 for narrower elements. Scale and bias are separate elementwise ops.";
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$dims, F64Attr:$epsilon, UnitAttr:$rms);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand $dims `epsilon` `=` $epsilon (`rms` $rms^)? attr-dict `:` type($result)";
}
def Prim_AttentionOp : Prim_Repeated<"attention", "Contraction", "Part", ["getFlops"]> {
  let summary = "softmax(scale * q k^T + mask) v";
  let description = [{
    query [B.., T, D], key [B.., S, D], value [B.., S, E], optional additive mask [B.., T, S], result [B.., T, E].
    With `causal`, position t sees s <= t + (S - T). With `zero_nan`, weights of softmax that are no number count as 0: those
    of a position that sees nothing, or whose scores are no numbers.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value, Optional<AnyRankedTensor>:$mask,
                   F64Attr:$scale, UnitAttr:$causal, UnitAttr:$zeroNan);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$query `,` $key `,` $value (`mask` $mask^)? `scale` $scale (`causal` $causal^)? (`zero_nan` $zeroNan^)? attr-dict `:` functional-type(operands, results)";
}
def Prim_BlockDotOp : Prim_Repeated<"block_dot", "Contraction", "View", ["getCombinedSizes"]> {
  let summary = "Product with a matrix of numbers of few bits that share scales in blocks along K";
  let description = [{
    result[r.., n] = sum over k of lhs[r.., k] * (number[n, k] - zero[n, k / block]) * scales[n, k / block], accumulated in f32.
    lhs [R.., K] floats; packed [N, J * block * bits / 8] ui8 with J = ceil(K / block): numbers of `bits` bits, the low bits of a byte
    first; scales [N, J] floats; zeros: ui8 [N, ceil(J * bits / 8)], packed likewise, or floats [N, J]; without them 2^(bits - 1).
    Packed may be i8, numbers of 8 bits with a sign; without zeros their zero is 0.
    (C1) bits is 2, 4 or 8, and 8 for i8; block is a power of 2 and at least 16. (C2) the operands have these sizes, the result
    [R.., N].
    Source: MatMulNBits of com.microsoft.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$packed, AnyRankedTensor:$scales, Optional<AnyRankedTensor>:$zeros,
                   I64Attr:$bits, I64Attr:$block);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $packed `,` $scales (`zeros` $zeros^)? `bits` `=` $bits `block` `=` $block attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static Addressing readsThrough() { return Addressing::View; }
    /// Numbers have a sign.
    bool isSigned();
    /// What numbers are less without zeros.
    int64_t getCentre() { return isSigned() ? 0 : int64_t(1) << (getBits() - 1); }
  }];
  let hasVerifier = 1;
}
def Prim_RnnOp : Prim_Repeated<"rnn", "Alone", "Strided", ["getFlops"]> {
  let summary = "One direction of a recurrent layer over time";
  let description = [{
    gates [T, B, G * H]: the input's part of the gates, biases included, in the cell's gate order (lstm: i, o, f, c; gru: z, r, h;
    rnn: one); recurrent [H, G * H]; recurrentBias [G * H] (zeros unless gru with linearBeforeReset); initialHidden [B, H];
    initialCell [B, H] and peephole [3 * H] (i, o, f) are read for lstm only, pass zeros otherwise.
    Results: hidden [T, B, H] at every step, finalHidden [B, H], finalCell [B, H]. `reverse` runs from T-1 to 0.
    sequenceLengths [B] i32: steps beyond give 0 and keep the state. Sources: ONNX LSTM-14, GRU-14, RNN-14 with default activations.
  }];
  let arguments = (ins Prim_RnnKind:$kind, AnyRankedTensor:$gates, AnyRankedTensor:$recurrent, AnyRankedTensor:$recurrentBias,
                   AnyRankedTensor:$initialHidden, AnyRankedTensor:$initialCell, AnyRankedTensor:$peephole,
                   AnyRankedTensor:$sequenceLengths, UnitAttr:$reverse, UnitAttr:$linearBeforeReset);
  let results = (outs AnyRankedTensor:$hidden, AnyRankedTensor:$finalHidden, AnyRankedTensor:$finalCell);
  let assemblyFormat = "$kind operands attr-dict `:` functional-type(operands, results)";
}

//===--- states -----------------------------------------------------------------------------------------------------===//

def Prim_StateOp : Prim_Op<"state", "Function", [Symbol]> {
  let summary = "A tensor that outlives a run: each context of the runtime has one, which all functions of the module see";
  let description = [{
    Stands in the module. `initial` is its value in a new context, zeros without it.
    (C1) `type` is a tensor of static sizes, of integers or floats of whole bytes, or i1. (C2) `initial` is of this type.
    Example: `prim.state @runs : tensor<i64> = dense<0> : tensor<i64>`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, OptionalAttr<TypedAttrInterface>:$initial);
  let assemblyFormat = "$sym_name `:` $type (`=` $initial^)? attr-dict";
  let hasVerifier = 1;
}
def Prim_ReadStateOp : Prim_Op<"read_state", "Function", [MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value that a state has when the function is called, wherever in the function this stands";
  let description = "(C1) `state` names a prim.state of the module, whose type is the result's.";
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$state attr-dict `:` type($result)";
}
def Prim_WriteStateOp : Prim_Op<"write_state", "Function", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Gives a state the value that it has when the function has returned";
  let description = [{
    (C1) `state` names a prim.state of the module, whose type is the value's. (C2) Stands in the function itself, not in a loop or
    branch, and no other op of the function writes this state.
  }];
  let arguments = (ins FlatSymbolRefAttr:$state, AnyRankedTensor:$value);
  let assemblyFormat = "$state `,` $value attr-dict `:` type($value)";
}

//===--- host values --------------------------------------------------------------------------------------------------===//

def Prim_HostCallOp : Prim_Op<"host_call", "Function", [NoMemoryEffect]> {
  let summary = "Calls a function of the runtime, which is no kernel: on strings, sequences, optionals, or a custom operator";
  let description = [{
    `callee` is a name that libtcrt, libtcrt-host or the caller of the runtime gives a function to (include/tcrt/function.h). Sizes of the
    results are known before the call; what is not is returned as a handle, and asked for by object_dims and object_data.
    `words` has for each operand, then each result: 0 for plain elements, 1 for ids of strings, 2 for a handle (both i64). While a graph is
    converted, such elements have the types !tc.string, !tc.seq, !tc.opt and !tc.map instead; at the end of that they become i64.
    Functions read nothing but their operands and write nothing but their results, but may refuse values: calls are not moved out of
    branches. (C1) as many words as operands and results, each 0, 1 or 2; 1 and 2 are of i64, 2 is 0-D.
  }];
  let arguments = (ins StrAttr:$callee, Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$words);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$callee `(` $inputs `)` `words` $words attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

//===--- control flow -----------------------------------------------------------------------------------------------===//

def Prim_IfOp
    : Prim_Op<"if", "Function", [SingleBlock, RecursiveMemoryEffects, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs one region by a 0-D bool; regions see outer values";
  let description = [{
    `binds` lists the symbols that the op defines: each stands alone as a dim of a result, and takes the size of what the
    branch yields there. All other sizes of a yielded value equal those of the result.
    (C1) both branches yield as many values as there are results, of their element types and ranks.
    (C2) each symbol of `binds` is a dim of a result. An op that binds symbols stays, whether its results are used or not.
  }];
  let arguments = (ins AnyRankedTensor:$condition, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$binds);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$thenRegion, SizedRegion<1>:$elseRegion);
  let assemblyFormat = "$condition (`binds` $binds^)? `:` type($condition) `->` `(` type($results) `)` $thenRegion `else` $elseRegion attr-dict";
  let hasVerifier = 1;
}
def Prim_WhileOp
    : Prim_Op<"while", "Function", [SingleBlock, RecursiveMemoryEffects, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs `body` while its first yielded value (0-D bool) is true, at most `maxTrips` times; carries tensors";
  let description = [{
    Operands: initial condition, then carried values. The body's arguments: iteration number (0-D i64), carried values; it yields the
    next condition, then the next carried values. `binds` lists the symbols of carried sizes that change: each stands alone as a
    dim of a result, and takes the size of the initial value, then that of what the body yields, once an iteration ends.
    (C1) arguments of the body and results are the carried values, of equal types; initial and yielded values have their element
    types and ranks. (C2) each symbol of `binds` is a dim of a result. An op that binds symbols stays, as IfOp does.
  }];
  let arguments = (ins AnyRankedTensor:$maxTrips, AnyRankedTensor:$condition, Variadic<AnyRankedTensor>:$inits,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$binds);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$maxTrips `,` $condition (`carry` $inits^)? (`binds` $binds^)? `:` functional-type(operands, results) $body attr-dict";
  let hasVerifier = 1;
}
def Prim_YieldOp : Prim_Op<"yield", "Function", [Pure, Terminator, ParentOneOf<["IfOp", "WhileOp"]>]> {
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
