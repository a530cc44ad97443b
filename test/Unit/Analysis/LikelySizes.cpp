//===- LikelySizes.cpp - what is planned for where only the run knows a size ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Analysis/LikelySizes.h"

#include "mlir/IR/Builders.h"
#include <catch2/catch.hpp>

using namespace mlir;
using namespace tc;

namespace {
struct Symbols {
  Symbols() { context.loadDialect<prim::PrimDialect>(); }

  /// The likely size of a symbol with this range.
  int64_t likely(int64_t usual, int64_t min, int64_t max, int64_t divisor = 1) {
    return getLikelySize(n, symbols(min, max, divisor), usual);
  }
  ArrayAttr symbols(int64_t min, int64_t max, int64_t divisor = 1) {
    return Builder(&context).getArrayAttr({prim::SymbolAttr::get(&context, "n", min, max, divisor)});
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  AffineExpr n = getAffineSymbolExpr(0, &context);
};
} // namespace

TEST_CASE_METHOD(Symbols, "a size without a declared range is what is usual") {
  CHECK(likely(64, 0, INT64_MAX) == 64);
  CHECK(likely(1, 1, INT64_MAX) == 1);
  CHECK(getLikelySize(n + 100, symbols(0, INT64_MAX), 64) == 64);
  CHECK(getLikelySize(n, ArrayAttr(), 64) == 64);
  CHECK(getLikelySize(getAffineSymbolExpr(1, &context), symbols(1, 8), 64) == 64); // a symbol that is not listed
  CHECK(getLikelySize(getAffineConstantExpr(5, &context), symbols(1, 8), 64) == 5);
}

TEST_CASE_METHOD(Symbols, "a range that leaves out what is usual has a power of two near it, or an end") {
  CHECK(likely(64, 1, 64) == 64);
  CHECK(likely(64, 1, 8) == 8);
  CHECK(likely(64, 1, 13) == 8);
  CHECK(likely(64, 9, 13) == 13);
  CHECK(likely(64, 200, 1000) == 256);
  CHECK(likely(64, 130, 200) == 130);
  CHECK(likely(64, 100, INT64_MAX) == 128);
  CHECK(likely(64, INT64_MAX - 1, INT64_MAX) == INT64_MAX - 1);
  CHECK(likely(64, 0, 0) == 0);
  CHECK(likely(64, 0, 1) == 1);
}

TEST_CASE_METHOD(Symbols, "a symbol's likely size is a multiple of its divisor where the range has one") {
  CHECK(likely(64, 0, INT64_MAX, 48) == 48);
  CHECK(likely(1, 0, INT64_MAX, 8) == 8);
  CHECK(likely(128, 1, 100, 24) == 72);
  CHECK(likely(64, 50, 70, 24) == 64); // none
  CHECK(likely(64, 1, 60, 24) == 24);
  CHECK(likely(64, 40, INT64_MAX, 128) == 128);
  CHECK(likely(64, 0, INT64_MAX, 64) == 64);
}

TEST_CASE_METHOD(Symbols, "expressions have the range that their symbols give them") {
  CHECK(getLikelySize(n * 3, symbols(1, 6), 64) == 16);
  CHECK(getLikelySize(n + 100, symbols(1, 6), 64) == 101);
  CHECK(getLikelySize((n + 1).floorDiv(2), symbols(1, 7), 64) == 4);
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  (*module)->setAttr(prim::kSymbolsAttr, symbols(1, 6));
  CHECK(evaluateLikely(n * n + 1, *module, 64) == 17);
  CHECK(getLikelySize(n, *module, 64) == 4);
  CHECK(getLikelyCount({n, getAffineConstantExpr(10, &context), n}, *module) == 160);
  CHECK(getLikelyCount({}, *module) == 1);
}

TEST_CASE_METHOD(Symbols, "a function may assume sizes, which its bounds do not follow") {
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  (*module)->setAttr(prim::kSymbolsAttr, symbols(1, 6));
  std::optional<AssumedSizes> assumed(std::in_place, *module, builder.getDenseI64ArrayAttr({100}));
  CHECK(getLikelySize(n, *module, 64) == 100);
  CHECK(getLikelySize(n * 3 + 1, *module, 64) == 301);
  CHECK(evaluateLikely(n.floorDiv(7), *module, 64) == 14);
  CHECK(getLargestSize(n, *module) == 6);
  CHECK(getLikelySize(getAffineSymbolExpr(1, &context), *module, 64) == 1); // a symbol that is not listed
  assumed.reset();
  CHECK(getLikelySize(n, *module, 64) == 4);
}

TEST_CASE_METHOD(Symbols, "an indicator is 1 where its expression is at least zero, and is written as a comparison") {
  const AffineExpr few = prim::makeIndicator(5 - n), m = getAffineSymbolExpr(1, &context);
  auto at = [&](AffineExpr expr, int64_t size) { return prim::evaluate(expr, [&](AffineExpr) { return size; }); };
  for (int64_t size : {0, 1, 5})
    CHECK(at(few, size) == 1);
  for (int64_t size : {int64_t(6), int64_t(1) << 40, int64_t(1) << 61})
    CHECK(at(few, size) == 0);
  CHECK(prim::formatSize(few * n * 2, symbols(1, 6)) == "(n <= 5) * n * 2");
  CHECK(prim::formatSize(prim::makeIndicator(-(n * m * 3) + 7), ArrayAttr()) == "(s0 * s1 * 3 <= 7)");
  CHECK(prim::formatCondition(-n, /*isEquality=*/false, ArrayAttr()) == "s0 <= 0");
  CHECK(prim::formatCondition(n - 8, /*isEquality=*/true, symbols(1, 6)) == "n = 8");
  CHECK(prim::formatCondition(8 - n, /*isEquality=*/true, symbols(1, 6)) == "n = 8");
}
