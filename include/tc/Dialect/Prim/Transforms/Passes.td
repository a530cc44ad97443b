//===- Passes.td - passes inside prim ---------------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_TRANSFORMS_PASSES
#define TC_DIALECT_PRIM_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def BlockProductsPass : Pass<"tc-block-products", "::mlir::func::FuncOp"> {
  let summary = "Products with weights of bytes that the model widens and scales, as prim.block_dot";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def CanonicalizePrimPass : Pass<"tc-canonicalize-prim", "::mlir::func::FuncOp"> {
  let summary = "Simpler prim: identities of arithmetic, and transposes moved towards the results until they cancel";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def CheckBoundsPass : Pass<"tc-check-bounds", "::mlir::func::FuncOp"> {
  let summary = "Make a run fail where an index is out of range, instead of clamping it";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def DecomposeCompositesPass : Pass<"tc-decompose-composites", "::mlir::func::FuncOp"> {
  let summary = "Write softmax, norm, attention and rnn as reductions, products, elementwise ops and loops";
  let description = [{
    In a pipeline the target says for each op whether it takes it whole. Attention and rnn of floats below 32 bits become
    their f32 forms between conversions.
  }];
  let options = [ListOption<"keep", "keep", "std::string", "Composites that stay: softmax, norm, attention, rnn">];
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def ExpandComplexPass : Pass<"tc-expand-complex", "::mlir::func::FuncOp"> {
  let summary = "Complex elements as pairs of floats, real and imaginary part, along a last dim";
  let description = [{
    Signatures and calls of the runtime's functions keep their types: prim.storage stands between them and the pairs. Arithmetic
    is refused with an error, but for sums of scatters.
  }];
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def ExpandNarrowTypesPass : Pass<"tc-expand-narrow-types", "::mlir::func::FuncOp"> {
  let summary = "Floats of at most 8 bits and integers of 2 and 4 bits as bytes, so that fused code has no such elements";
  let description = [{
    Signatures keep their types: prim.storage stands between them and the bytes. Arithmetic on narrow floats is done in f32.
    Reductions, products and composites of narrow elements are refused with an error.
  }];
  let dependentDialects = ["::tc::base::TCDialect", "::tc::prim::PrimDialect"];
}

def FoldConstantsPass : Pass<"tc-fold-constants", "::mlir::func::FuncOp"> {
  let summary = "Evaluates what is known at compile time";
  let description = [{
    A result that depends on constants only becomes a constant where it is at most `max-bytes` large, no larger than the
    constants that it is made of, or a table of at most 16 MiB whose elements take far longer to compute than to read (values
    of functions, gathered elements, sums, and operands of products that are made of no constant; see kFreeTableBytes for what
    all of them may add to an artifact), or bytes that are widened for products alone; larger results stay and are computed at
    run time. Only values that something unknown reads
    are stored; what lies between is evaluated and dropped. Splats stay symbolic (prim.splat, also under dynamic sizes), as do
    iotas and broadcasts that enlarge a constant. A prim.if with a known condition is replaced by the branch that it takes.
    Every element keeps its bits, NaN and -0.0 included.
  }];
  let options = [
    Option<"maxBytes", "max-bytes", "int64_t", "65536", "Largest result that is stored although its inputs are smaller">,
    Option<"maxWork", "max-work", "int64_t", "8589934592", "Most multiplications, or bytes, that one folded value may cost">,
  ];
  let dependentDialects = ["::tc::base::TCDialect", "::tc::prim::PrimDialect"];
}

def FoldConvScalePass : Pass<"tc-fold-conv-scale", "::mlir::func::FuncOp"> {
  let summary = "Multiply factors per channel, such as those of batch normalization, into the weights before them";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def InferInputRangesPass : Pass<"tc-infer-input-ranges", "::mlir::func::FuncOp"> {
  let summary = "Write on integer inputs which values make sense, from the dims that they select from";
}

def NarrowProductsPass : Pass<"tc-narrow-products", "::mlir::func::FuncOp"> {
  let summary = "Products of 8-bit integers less zero points as products of the bytes, with the zero points' share after them";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def RecognizeCompositesPass : Pass<"tc-recognize-composites", "::mlir::func::FuncOp"> {
  let summary = "Find attention written as two matrix products around a softmax";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def RoundProductsPass : Pass<"tc-round-products", "::mlir::func::FuncOp"> {
  let summary = "Operands of f32 products rounded to bf16, or constant ones to f16";
  let options = [
    Option<"precision", "precision", "std::string", "\"f32\"", "f32 and tf32: nothing; bf16; f16">,
    ListOption<"nodePrecisions", "node-precision", "std::string", "NODE=PRECISION, by name or pattern: of some nodes; the last counts">,
  ];
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def SinkDequantizePass : Pass<"tc-sink-dequantize", "::mlir::func::FuncOp"> {
  let summary = "Products, moves and maxima of dequantised bytes as those of the bytes, dequantised after";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def SinkWindowTransposesPass : Pass<"tc-sink-window-transposes", "::mlir::func::FuncOp"> {
  let summary = "Window reductions of images that have their channels first, as images of one channel";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def SplitTransposedConvsPass : Pass<"tc-split-transposed-convs", "::mlir::func::FuncOp"> {
  let summary = "Convolutions of operands spread out with zeros, by phases: without the products with zero";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def SplitWindowsPass : Pass<"tc-split-windows", "::mlir::func::FuncOp"> {
  let summary = "Reductions of long windows as those of short windows, which neighbours share";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def SubsampleConvsPass : Pass<"tc-subsample-convs", "::mlir::func::FuncOp"> {
  let summary = "Convolutions whose readers leave out pixels compute the others only";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def SpecializeSizesPass : Pass<"tc-specialize-sizes", "::mlir::func::FuncOp"> {
  let summary = "Code of their own for the sizes that --dim lists, and for buckets";
  let description = [{
    The body of a function with prim.listed_sizes becomes the last of several, which prim.if chooses among by the sizes of the run: the
    others are copies in which the listed symbols are numbers. prim.specialized says which there are. For prim.buckets they are
    copies on tensors padded to each bucket, masked where an op would read the padding, and there is no general one. Ops that
    masks cannot make right stay on exact sizes, which a warning names.
  }];
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def TrimProductsPass : Pass<"tc-trim-products", "::mlir::func::FuncOp"> {
  let summary = "Products without rows and columns that nobody reads, without sums of zeros, and without trailing dims of 1";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def VerifyPrimPass : Pass<"tc-verify-prim", "::mlir::func::FuncOp"> {
  let summary = "Check what the phase prim promises";
  let description = "Only prim ops; every tensor ranked with sizes known or symbolic; every symbol listed and defined.";
}

def WidenProductsPass : Pass<"tc-widen-products", "::mlir::func::FuncOp"> {
  let summary = "Products of f16 and bf16 as products with sums of f32, rounded after";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

#endif
