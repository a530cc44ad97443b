//===- LowerToLLVM.cpp - kernel bodies to the LLVM dialect --------------------------------------------------------===//
//
// Polynomials for the f32 functions, calls into the code library for what has none, then upstream's conversions.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/LowerToLLVM.h"

#include "tc/Codegen/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tc;

namespace {
/// f64 transcendentals and the few f32 functions without an inlined polynomial are calls of one lane each, resolved in
/// the code library that is linked into every variant.
struct ScalarCallPattern : public RewritePattern {
  ScalarCallPattern(MLIRContext *context, StringRef opName, StringRef function, bool f32Too)
      : RewritePattern(opName, 1, context), function(function), f32Too(f32Too) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
    if (!element.isF64() && !(f32Too && element.isF32()))
      return rewriter.notifyMatchFailure(op, "has an inlined form");
    std::string name = (function + (element.isF32() ? "_f32" : "_f64")).str();
    Operation *parent = op->getParentOfType<LLVM::LLVMFuncOp>()->getParentOp();
    auto callee = dyn_cast_or_null<LLVM::LLVMFuncOp>(SymbolTable::lookupSymbolIn(parent, name));
    if (!callee) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(&parent->getRegion(0).front());
      SmallVector<Type> arguments(op->getNumOperands(), element);
      callee = LLVM::LLVMFuncOp::create(rewriter, op->getLoc(), name, LLVM::LLVMFunctionType::get(element, arguments));
    }
    auto call = [&](ValueRange operands) -> Value {
      return LLVM::CallOp::create(rewriter, op->getLoc(), callee, operands).getResult();
    };
    auto vectorType = dyn_cast<VectorType>(type);
    if (!vectorType) {
      rewriter.replaceOp(op, call(op->getOperands()));
      return success();
    }
    Value result = LLVM::PoisonOp::create(rewriter, op->getLoc(), type);
    for (int64_t lane = 0; lane < vectorType.getNumElements(); ++lane) {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(vector::ExtractOp::create(rewriter, op->getLoc(), operand, ArrayRef<int64_t>{lane}));
      result = vector::InsertOp::create(rewriter, op->getLoc(), call(operands), result, ArrayRef<int64_t>{lane});
    }
    rewriter.replaceOp(op, result);
    return success();
  }
  StringRef function;
  bool f32Too;
};

} // namespace

LogicalResult tc::codegen::lowerToLLVM(host::VariantOp variant) {
  MLIRContext *context = variant.getContext();
  IRRewriter rewriter(context);
  DominanceInfo dominance(variant);
  eliminateCommonSubExpressions(rewriter, dominance, variant);
  {
    RewritePatternSet patterns(context);
    struct Call {
      StringRef op, function;
      bool f32Too;
    };
    static const Call calls[] = {
        {"math.exp", "tc_exp", false},     {"math.log", "tc_log", false},     {"math.sin", "tc_sin", false},
        {"math.cos", "tc_cos", false},     {"math.asin", "tc_asin", false},   {"math.acos", "tc_acos", false},
        {"math.atan", "tc_atan", false},   {"math.tanh", "tc_tanh", false},   {"math.erf", "tc_erf", false},
        {"math.log1p", "tc_log1p", false}, {"math.expm1", "tc_expm1", false}, {"math.atan2", "tc_atan2", false},
        {"arith.remf", "tc_fmod", true}};
    for (const Call &call : calls)
      patterns.add<ScalarCallPattern>(context, call.op, call.function, call.f32Too);
    MathPolynomialApproximationOptions options;
    options.enableAvx2 = false;
    populateMathPolynomialApproximationPatterns(patterns, options);
    math::populateExpansionPatterns(patterns, {"tan", "copysign"});
    vector::populateVectorBitCastLoweringPatterns(patterns);
    vector::populateVectorBroadcastLoweringPatterns(patterns);
    vector::populateVectorShapeCastLoweringPatterns(patterns);
    if (failed(applyPatternsGreedily(variant, std::move(patterns))))
      return failure();
  }
  {
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<scf::SCFDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(variant, target, std::move(patterns))))
      return failure();
  }
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  LLVMConversionTarget target(*context);
  target.addLegalOp<host::VariantOp>();
  target.addLegalDialect<NVVM::NVVMDialect>();
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  if (failed(applyFullConversion(variant, target, std::move(patterns))))
    return failure();
  return success();
}
