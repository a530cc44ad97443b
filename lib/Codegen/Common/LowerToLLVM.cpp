//===- LowerToLLVM.cpp - tc-lower-to-llvm: kernel bodies to the LLVM dialect --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Codegen/Passes.h"
#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace tc::codegen {
#define GEN_PASS_DEF_LOWERTOLLVMPASS
#include "tc/Codegen/Passes.h.inc"
} // namespace tc::codegen

using namespace mlir;
using namespace tc;

namespace {
/// What is rounded to 16 bits and computed on with is not rounded: products and what follows them err less, and it is
/// an instruction for each op. CPUs round after each op, as the reference does.
void keepPrecision(host::VariantOp variant) {
  variant.walk([](arith::ExtFOp widen) {
    if (auto narrow = widen.getIn().getDefiningOp<arith::TruncFOp>();
        narrow && narrow.getIn().getType() == widen.getType()) {
      widen.replaceAllUsesWith(narrow.getIn());
      widen.erase();
    }
  });
}

struct LowerToLLVMPass : public codegen::impl::LowerToLLVMPassBase<LowerToLLVMPass> {
  void runOnOperation() override {
    host::VariantOp variant = getOperation();
    MLIRContext *context = &getContext();
    if (variant.getDevice() == machine::DeviceKind::Cuda)
      keepPrecision(variant);
    {
      RewritePatternSet patterns(context);
      populateSCFToControlFlowConversionPatterns(patterns);
      ConversionTarget target(*context);
      target.addIllegalDialect<scf::SCFDialect>();
      target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
      if (failed(applyPartialConversion(variant, target, std::move(patterns))))
        return signalPassFailure();
    }
    LLVMTypeConverter converter(context);
    RewritePatternSet patterns(context);
    LLVMConversionTarget target(*context);
    target.addLegalOp<host::VariantOp, ModuleOp>(); // of a chip's kernels
    target.addLegalDialect<NVVM::NVVMDialect>();
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    if (failed(applyFullConversion(variant, target, std::move(patterns))))
      return signalPassFailure();
  }
};
} // namespace
