//===- Infer.cpp - tc_infer: symbols, output sizes and the arena from the input sizes ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tc;
using namespace tc::host;
using tc::hosttollvm::ProgramBuilder;

/// Stores or calls in a function that is part of a longer one.
static constexpr size_t kMostInPart = 256;

LogicalResult ProgramBuilder::buildInfer() {
  auto function = beginFunction("tc_infer" + suffix.str(), i32, {ptr});
  loadFrame(function.getArgument(0));
  Value inputDims = load(ptr, at(frame, offsetof(tcrt_frame_t, input_dims)));
  Value outputDims = load(ptr, at(frame, offsetof(tcrt_frame_t, output_dims)));

  // Which symbols the runtime binds, and which dims are left.
  llvm::SmallDenseSet<unsigned> known;
  struct Derived {
    AffineExpr expr;
    int64_t number;
    unsigned input, dim;
  };
  SmallVector<Derived> expressions;
  int64_t number = 0;
  for (auto [i, type] : llvm::enumerate(main.getArgumentTypes()))
    for (auto [d, expr] : llvm::enumerate(prim::getSizes(type))) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
        known.insert(symbol.getPosition());
      else if (!prim::getConstantSize(expr))
        expressions.push_back({expr, number, unsigned(i), unsigned(d)});
      ++number;
    }
  // Solve a * s + b for the one unknown s, as often as that tells something new.
  for (bool changed = true; changed;) {
    changed = false;
    for (Derived &derived : expressions) {
      SmallVector<unsigned> unknown =
          llvm::filter_to_vector(getSymbols(derived.expr), [&](unsigned s) { return !known.contains(s); });
      if (unknown.size() != 1)
        continue;
      unsigned symbol = unknown.front();
      auto evaluateAt = [&](int64_t value) {
        return prim::simplifySize(
            derived.expr.replace(getAffineSymbolExpr(symbol, context), getAffineConstantExpr(value, context)));
      };
      auto slope = prim::getConstantSize(prim::simplifySize(evaluateAt(1) - evaluateAt(0)));
      auto next = prim::getConstantSize(prim::simplifySize(evaluateAt(3) - evaluateAt(2)));
      if (!slope || *slope <= 0 || slope != next)
        continue;
      Value dim = load(i64, at(inputDims, 8 * derived.number));
      Value solved = floorDiv(LLVM::SubOp::create(b, loc, dim, size(evaluateAt(0))), c64(*slope));
      store(solved, at(frameSymbols, 8 * int64_t(symbol)));
      checkSymbol(symbol, solved);
      known.insert(symbol);
      changed = true;
    }
  }
  // Symbols that no input and no op defines are mentioned nowhere, or the module is wrong.
  WalkResult walk = main.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        for (AffineExpr expr : prim::getSizes(tensor))
          for (unsigned symbol : getSymbols(expr))
            if (!known.contains(symbol) && !boundByData.contains(symbol))
              return op->emitError() << "the size \"" << symbolName(symbol) << "\" is defined by no input and no op";
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();

  overflow = LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(false));
  auto checkOverflow = [&] {
    failIf(overflow, TCRT_CODE_NO_MEMORY, "the memory needed for these input sizes exceeds what can be addressed");
    overflow = LLVM::ConstantOp::create(b, loc, i1, b.getBoolAttr(false));
  };
  for (const Derived &derived : expressions) {
    Value expected = size(derived.expr);
    Value dim = load(i64, at(inputDims, 8 * derived.number));
    auto name = main.getArgAttrOfType<StringAttr>(derived.input, "tc.name");
    failIf(compare(LLVM::ICmpPredicate::ne, dim, expected), TCRT_CODE_REFUSED,
           llvm::formatv("input \"{0}\": dim {1} must be {2}", name ? name.getValue() : "?", derived.dim,
                         prim::formatSize(derived.expr, symbols)));
  }
  for (auto guard : main.getOps<prim::GuardOp>())
    if (isCheckedByInfer(guard))
      emitGuard(guard);
  // Sizes that can become negative for some inputs.
  llvm::SetVector<AffineExpr> sizes;
  auto addSizes = [&](TypeRange types) {
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        for (AffineExpr expr : prim::getSizes(tensor))
          if (!isBoundByData(expr) && prim::getSizeBounds(expr, symbols).first < 0)
            sizes.insert(expr);
  };
  main.walk([&](Operation *op) { addSizes(op->getResultTypes()); });
  for (AffineExpr expr : sizes)
    failIf(
        compare(LLVM::ICmpPredicate::slt, size(expr), c64(0)), TCRT_CODE_REFUSED,
        llvm::formatv("these input sizes give a negative size {0} inside the model", prim::formatSize(expr, symbols)));

  number = 0;
  SmallVector<std::pair<int64_t, int64_t>> constantDims;
  for (Type type : main.getResultTypes()) {
    for (AffineExpr expr : prim::getSizes(type)) {
      if (auto constant = prim::getConstantSize(expr); constant && main.getNumResults() > kMostInPart)
        constantDims.push_back({number, *constant});
      else
        store(isBoundByData(expr) ? c64(-1) : size(expr), at(outputDims, 8 * number));
      ++number;
    }
    AffineExpr bytes = getSizeBytes(type);
    if (!isBoundByData(bytes))
      size(bytes); // for its overflow
  }
  Value scratch = c64(0);
  for (AffineExpr expr : main->getAttrOfType<AffineMapAttr>(kScratchAttr).getValue().getResults()) {
    Value bytes = size(expr);
    scratch = select(compare(LLVM::ICmpPredicate::sgt, bytes, scratch), bytes, scratch);
  }
  Value workers = load(i64, at(frame, offsetof(tcrt_frame_t, worker_count)));
  scratch = arithmetic(AffineExprKind::Mul, scratch, workers);
  Value bytes = scratch;
  for (AffineExpr segment : segmentBytes)
    bytes = arithmetic(AffineExprKind::Add, bytes, size(segment));
  checkOverflow();
  store(bytes, at(frame, offsetof(tcrt_frame_t, arena_size)));
  overflow = Value();
  SmallVector<LaunchOp> costly;
  for (auto &[op, id] : launchIds)
    if (auto launch = cast<LaunchOp>(op); hosttollvm::hasDynamicCost(launch) && !isCostBoundByData(launch))
      costly.push_back(launch);
  // In functions of bounded size, as LLVM's work grows faster than a function.
  SmallVector<std::string> dimParts, costParts;
  auto name = [&](StringRef what, ArrayRef<std::string> before) {
    return "tc_infer" + suffix.str() + "." + what.str() + std::to_string(before.size());
  };
  for (size_t i = 0; i < constantDims.size(); i += kMostInPart)
    dimParts.push_back(name("dims", dimParts));
  for (size_t i = 0; costly.size() > kMostInPart && i < costly.size(); i += kMostInPart)
    costParts.push_back(name("costs", costParts));
  callParts(dimParts, {frame});
  callParts(costParts, {frame});
  if (costParts.empty())
    llvm::for_each(costly, [&](LaunchOp launch) { emitCost(launch); });
  LLVM::ReturnOp::create(b, loc, c32(0));
  auto buildParts = [&](ArrayRef<std::string> names, auto rest, auto emit) {
    for (const std::string &part : names) {
      auto function = beginFunction(part, i32, {ptr});
      markPart(function);
      loadFrame(function.getArgument(0));
      emit(rest.take_front(kMostInPart));
      rest = rest.drop_front(std::min(kMostInPart, rest.size()));
      LLVM::ReturnOp::create(b, loc, c32(0));
    }
  };
  buildParts(dimParts, ArrayRef(constantDims), [&](auto dims) {
    Value all = load(ptr, at(frame, offsetof(tcrt_frame_t, output_dims)));
    for (auto [place, size] : dims)
      store(c64(size), at(all, 8 * place));
  });
  buildParts(costParts, ArrayRef(costly),
             [&](auto launches) { llvm::for_each(launches, [&](LaunchOp launch) { emitCost(launch); }); });
  return success();
}
