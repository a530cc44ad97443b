//===- LowerToLLVM.cpp - kernel bodies to the LLVM dialect --------------------------------------------------------===//
//
// Polynomials for the f32 functions, upstream's but for those with a better form on AVX-512; calls into the code
// library for what has none; then upstream's conversions.
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

/// e^x of 16 lanes with AVX-512: x = n ln 2 + r, e^x = 2^n p(r), where vscalefps brings in 2^n with the right overflow.
/// Half the instructions of the general form, which builds 2^n from bits and guards its range. Results below the
/// smallest normal number are 0, as they are there. p: the minimax polynomial of S. Moshier, Cephes, single/expf.c; at
/// most 1.1 units in the last place off.
struct ExpAvx512Pattern : public OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || type.getShape() != ArrayRef<int64_t>{16} || !type.getElementType().isF32())
      return rewriter.notifyMatchFailure(op, "is not one register of f32");
    Location loc = op.getLoc();
    auto constant = [&](double value) -> Value {
      return arith::ConstantOp::create(rewriter, loc,
                                       DenseElementsAttr::get(type, rewriter.getF32FloatAttr(float(value))));
    };
    auto fma = [&](Value a, Value b, Value c) -> Value { return math::FmaOp::create(rewriter, loc, a, b, c); };
    Value x = op.getOperand(), most = constant(89);
    // NaN stays NaN; infinity would leave no remainder.
    Value isMore = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OGT, x, most);
    Value clamped = arith::SelectOp::create(rewriter, loc, isMore, most, x);
    // Adding 1.5 * 2^23 rounds to an integer.
    Value magic = constant(12582912);
    Value n = arith::SubFOp::create(rewriter, loc, fma(clamped, constant(1.44269504088896341), magic), magic);
    Value r = fma(n, constant(-0.693359375), clamped);
    r = fma(n, constant(2.12194440e-4), r);
    Value p = constant(1.9875691500e-4);
    for (double coefficient :
         {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0})
      p = fma(p, r, constant(coefficient));
    Value isNormal = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UGE, x, constant(-87.336544));
    Value mask = LLVM::BitcastOp::create(rewriter, loc, rewriter.getI16Type(), isNormal);
    Value current = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(4)); // rounding as it is set
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(op, Type(type),
                                                       rewriter.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
                                                       ValueRange{p, n, constant(0), mask, current});
    return success();
  }
};

} // namespace

LogicalResult tc::codegen::lowerToLLVM(host::VariantOp variant, bool isAvx512) {
  MLIRContext *context = variant.getContext();
  IRRewriter rewriter(context);
  DominanceInfo dominance(variant);
  eliminateCommonSubExpressions(rewriter, dominance, variant);
  // Which zero a maximum gives is not told (prim.max): one instruction and the NaN's blend, instead of six.
  variant.walk([](Operation *op) {
    if (auto maximum = dyn_cast<arith::MaximumFOp>(op))
      maximum.setFastmath(maximum.getFastmath() | arith::FastMathFlags::nsz);
    else if (auto minimum = dyn_cast<arith::MinimumFOp>(op))
      minimum.setFastmath(minimum.getFastmath() | arith::FastMathFlags::nsz);
  });
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
    if (isAvx512)
      patterns.add<ExpAvx512Pattern>(context, /*benefit=*/2);
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
