//===- LowerKernels.cpp - scheduled regions to functions
//-------------------------------------------------------------===//
//
// For each distinct region (printed without locations, with its schedule) and each CPU variant: a function made by the
// region's generator, then lowered to the LLVM dialect with upstream's conversions. In the model's function a
// host.launch takes the region's place.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Generators.h"
#include "tc/Codegen/CPU/Passes.h"

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
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace tc::codegen::cpu {
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "tc/Codegen/CPU/Passes.h.inc"

std::optional<CpuVariant> resolveCpuVariant(llvm::StringRef name) {
  if (name == "x86-64-v3")
    return CpuVariant{"x86-64-v3", "x86-64-v3", ""};
  if (name == "x86-64-v4")
    return CpuVariant{"x86-64-v4", "x86-64-v4", ""};
  if (name == "native") {
    CpuVariant variant{"native", llvm::sys::getHostCPUName().str(), ""};
    // Sorted, so that the list is the same on every run.
    llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    llvm::SmallVector<std::string> on;
    for (auto &feature : features)
      on.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(on);
    variant.features = llvm::join(on, ",");
    return variant;
  }
  return std::nullopt;
}

namespace {
using namespace mlir;

CpuInfo infoOf(const CpuVariant &variant) {
  bool wide = variant.cpu == "x86-64-v4" || StringRef(variant.features).contains("+avx512f");
  CpuInfo info;
  info.vectorBits = wide ? 512 : 256;
  info.vectorRegisters = wide ? 32 : 16;
  return info;
}

/// Collects the symbols that sizes anywhere in the region mention, in increasing order.
SmallVector<int64_t> symbolsOf(kernel::RegionOp region, ArrayRef<Launch> launches) {
  llvm::SmallDenseSet<int64_t> found;
  auto addExpr = [&](AffineExpr expr) {
    if (expr)
      expr.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          found.insert(symbol.getPosition());
      });
  };
  auto addType = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (AffineExpr expr : prim::getSizes(tensor))
        addExpr(expr);
  };
  for (Type type : region.getOperandTypes())
    addType(type);
  region.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      addType(type);
    for (NamedAttribute attr : op->getAttrs())
      if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()))
        for (AffineExpr expr : map.getValue().getResults())
          addExpr(expr);
  });
  for (const Launch &launch : launches) {
    addExpr(launch.tasks);
    addExpr(launch.grain);
    addExpr(launch.scratch);
    for (RankedTensorType type : launch.temporaries)
      addType(type);
  }
  SmallVector<int64_t> sorted(found.begin(), found.end());
  llvm::sort(sorted);
  return sorted;
}

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

/// Kernel bodies to the LLVM dialect.
LogicalResult lowerToLLVM(host::VariantOp variant) {
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

struct LowerKernelsPass : public impl::LowerKernelsPassBase<LowerKernelsPass> {
  using LowerKernelsPassBase::LowerKernelsPassBase;

  struct Kernel {
    std::string name;
    kernel::RegionOp region;
    const Generator *generator;
    SmallVector<Launch> launches;
    SmallVector<int64_t> symbols;
  };

  /// A short readable name: the ops, without movement.
  static std::string describe(kernel::RegionOp region) {
    std::string text;
    unsigned count = 0;
    for (Operation &op : region.getBody().front().without_terminator()) {
      if (isa<prim::ReshapeOp, prim::TransposeOp, prim::BroadcastOp, prim::SplatOp, prim::ConstantOp, prim::SliceOp>(
              op))
        continue;
      if (++count > 4)
        return text + "_more";
      text += ("_" + op.getName().stripDialect()).str();
    }
    return text.empty() ? "_move" : text;
  }

  static std::string keyOf(kernel::RegionOp region) {
    std::string key;
    llvm::raw_string_ostream os(key);
    auto clone = cast<kernel::RegionOp>(region->cloneWithoutRegions());
    (void)clone;
    clone->erase();
    os << region.getScheduleAttr() << '\n';
    for (Type type : region.getOperandTypes())
      os << type << ',';
    OpPrintingFlags flags;
    flags.useLocalScope().elideLargeElementsAttrs(1 << 20);
    for (Operation &op : region.getBody().front())
      op.print(os, flags), os << '\n';
    return key;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    SmallVector<std::string> names(variants.begin(), variants.end());
    if (names.empty())
      names = {"x86-64-v3", "x86-64-v4"};
    SmallVector<CpuVariant> cpus;
    for (const std::string &name : names) {
      auto variant = resolveCpuVariant(name);
      if (!variant) {
        module.emitError() << "unknown CPU variant '" << name << "'; known are x86-64-v3, x86-64-v4 and native";
        return signalPassFailure();
      }
      cpus.push_back(*variant);
    }

    llvm::StringMap<unsigned> known;
    std::vector<Kernel> kernels;
    SmallVector<kernel::RegionOp> regions;
    module.walk([&](kernel::RegionOp region) { regions.push_back(region); });
    SmallVector<kernel::RegionOp> done;
    for (kernel::RegionOp region : regions) {
      auto schedule = region.getScheduleAttr();
      const Generator *generator = schedule ? lookupGenerator(schedule.getStrategy()) : nullptr;
      if (!generator) {
        region.emitError("region has no schedule that a CPU code generator knows");
        return signalPassFailure();
      }
      auto [entry, isNew] = known.try_emplace(keyOf(region), kernels.size());
      if (isNew) {
        Kernel kernel;
        kernel.name = "k" + std::to_string(kernels.size()) + describe(region);
        kernel.region = region;
        kernel.generator = generator;
        kernel.launches = generator->launches(region, schedule);
        kernel.symbols = symbolsOf(region, kernel.launches);
        kernels.push_back(std::move(kernel));
      }
      replaceByLaunches(region, kernels[entry->second]);
      done.push_back(region);
    }

    OpBuilder builder(context);
    builder.setInsertionPointToEnd(module.getBody());
    for (const CpuVariant &cpu : cpus) {
      auto variant = host::VariantOp::create(builder, module.getLoc(), cpu.name, "cpu", cpu.cpu, cpu.features);
      OpBuilder::InsertionGuard guard(builder);
      builder.createBlock(&variant.getBody());
      for (Kernel &kernel : kernels)
        for (unsigned i = 0; i < kernel.launches.size(); ++i)
          if (failed(emitKernel(builder, variant, kernel, i, infoOf(cpu))))
            return signalPassFailure();
      if (failed(lowerToLLVM(variant)))
        return signalPassFailure();
    }
    for (kernel::RegionOp region : done)
      region.erase();
    // Constants that only fed packed inputs are dead now.
    module.walk([](prim::ConstantOp op) {
      if (op->use_empty())
        op->erase();
    });
  }

  void replaceByLaunches(kernel::RegionOp region, Kernel &kernel) {
    OpBuilder builder(region);
    MLIRContext *context = &getContext();
    SmallVector<Value> inputs;
    llvm::SmallDenseMap<unsigned, PackedInput> packed;
    for (PackedInput &input : kernel.generator->packing(region, region.getScheduleAttr()))
      packed[input.input] = input;
    for (auto [i, input] : llvm::enumerate(region.getInputs())) {
      if (auto constant = input.getDefiningOp<prim::ConstantOp>()) {
        auto found = packed.find(i);
        AffineMapAttr map = found == packed.end() ? AffineMapAttr() : AffineMapAttr::get(found->second.map);
        Type type = found == packed.end() ? input.getType() : Type(found->second.type);
        inputs.push_back(host::ConstantOp::create(builder, constant.getLoc(), type, constant.getValue(), map));
      } else {
        inputs.push_back(input);
      }
    }
    auto mapOf = [&](AffineExpr expr) { return AffineMapAttr::get(prim::makeSizeMap(context, {expr})); };
    for (auto [i, launch] : llvm::enumerate(kernel.launches)) {
      bool last = i + 1 == kernel.launches.size();
      SmallVector<Type> outputs;
      if (last)
        outputs = llvm::to_vector(region.getResultTypes());
      else
        outputs.append(launch.temporaries.begin(), launch.temporaries.end());
      auto op = host::LaunchOp::create(
          builder, region.getLoc(), outputs, FlatSymbolRefAttr::get(context, kernel.name + launch.suffix), inputs,
          builder.getDenseI64ArrayAttr(kernel.symbols), mapOf(launch.tasks), mapOf(launch.grain),
          launch.scratch ? mapOf(launch.scratch) : AffineMapAttr(),
          launch.inPlace.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(launch.inPlace), DictionaryAttr(),
          last ? region.getCostAttr() : DictionaryAttr());
      if (auto nodes = region->getAttr("nodes"))
        op->setAttr("nodes", nodes);
      if (last)
        region.replaceAllUsesWith(op.getOutputs());
      else
        llvm::append_range(inputs, op.getOutputs());
    }
  }

  LogicalResult emitKernel(OpBuilder &builder, host::VariantOp variant, Kernel &kernel, unsigned number,
                           const CpuInfo &info) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&variant.getBody().front());
    MLIRContext *context = &getContext();
    Launch &launch = kernel.launches[number];
    Location loc = kernel.region.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(context);
    Type i64 = builder.getI64Type();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, i64, i64, i64});
    auto function = LLVM::LLVMFuncOp::create(builder, loc, kernel.name + launch.suffix, type);
    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToStart(entry);
    unsigned inputs = kernel.region.getInputs().size(), outputs = 0;
    for (unsigned i = 0; i < number; ++i)
      inputs += kernel.launches[i].temporaries.size();
    bool last = number + 1 == kernel.launches.size();
    outputs = last ? kernel.region.getOutputs().size() : launch.temporaries.size();
    {
      Emitter emitter(kernel.region, info, builder, loc, entry->getArgument(0), inputs, outputs, kernel.symbols,
                      bool(launch.scratch));
      if (launch.scratch)
        emitter.setWorker(entry->getArgument(3), launch.scratch);
      kernel.generator->emit(kernel.region, kernel.region.getScheduleAttr(), number, emitter, entry->getArgument(1),
                             entry->getArgument(2));
      if (emitter.error)
        return kernel.region.emitError() << *emitter.error;
    }
    LLVM::ReturnOp::create(builder, loc, ValueRange{});
    return success();
  }
};
} // namespace
} // namespace tc::codegen::cpu
