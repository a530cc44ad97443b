//===- RegionProblem.cpp - what a region computes, and how its values lie in memory --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Analysis/RegionProblem.h"
#include "tc/Analysis/Access.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <catch2/catch.hpp>

using namespace mlir;
using namespace tc;

namespace {
struct Regions {
  Regions() { context.loadDialect<func::FuncDialect, prim::PrimDialect, kernel::KernelDialect>(); }

  /// The region of this function; what was parsed before is gone.
  kernel::RegionOp parse(const std::string &function) {
    module = parseSourceString<ModuleOp>(function, &context);
    REQUIRE(module);
    kernel::RegionOp found;
    module->walk([&](kernel::RegionOp region) { found = region; });
    REQUIRE(found);
    return found;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
};

const char *const kProduct = R"(
func.func @main(%x: tensor<4x8xf32>, %b: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>) {
  %w = prim.constant dense<1.0> : tensor<8x16xf32>
  %r:2 = kernel.region(%a = %x : tensor<4x8xf32>, %c = %w : tensor<8x16xf32>, %d = %b : tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>) {
    %0 = prim.dot_general %a, %c batch [] x [] contract [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = prim.add %0, %d : tensor<4x16xf32>
    %2 = prim.neg %a : tensor<4x8xf32>
    kernel.yield %1, %2 : tensor<4x16xf32>, tensor<4x8xf32>
  }
  return %r#0, %r#1 : tensor<4x16xf32>, tensor<4x8xf32>
})";
} // namespace

TEST_CASE_METHOD(Regions, "a region's anchor, its canonical form and its epilogue are found once") {
  kernel::RegionOp op = parse(kProduct);
  const RegionProblem region(op);
  auto dot = region.findAnchor<prim::DotGeneralOp>();
  REQUIRE(dot);
  CHECK(!region.findAnchor<prim::ConvOp>());
  const Product *product = region.findProduct();
  REQUIRE(product);
  CHECK((product->m == 4 && product->n == 16 && product->k == 8));
  CHECK(!region.findConvolution());
  CHECK(!region.findReduction());
  const Epilogue *epilogue = region.findEpilogue(dot.getResult());
  REQUIRE(epilogue);
  CHECK(epilogue->roots() == ArrayRef<unsigned>{0});
  CHECK(epilogue->inPlace() == SmallVector<int64_t>{2, 0});
  CHECK(region.findProduct() == product);
  CHECK(region.findEpilogue(dot.getResult()) == epilogue);
  // One output does not depend on the product.
  CHECK(!region.findWholeEpilogue(dot.getResult()));
  CHECK((!region.isConstant(0) && region.isConstant(1) && !region.isConstant(2)));
}

TEST_CASE_METHOD(Regions, "a convolution that only mixes channels is a product, too; of two anchors there is none") {
  const std::string conv = "prim.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : "
                           "(tensor<1x6x6x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x6x6x8xf32>\n";
  auto makeRegion = [&](const std::string &body, const std::string &result) {
    return parse("func.func @main(%x: tensor<1x6x6x8xf32>, %w: tensor<1x1x8x8xf32>) -> tensor<1x6x6x8xf32> {\n"
                 "%r = kernel.region(%a = %x : tensor<1x6x6x8xf32>, %f = %w : tensor<1x1x8x8xf32>) -> "
                 "(tensor<1x6x6x8xf32>) {\n" +
                 body + "kernel.yield " + result + " : tensor<1x6x6x8xf32>\n}\nreturn %r : tensor<1x6x6x8xf32>\n}");
  };
  {
    const RegionProblem region(makeRegion("%0 = " + conv, "%0"));
    REQUIRE(region.findProduct());
    CHECK((region.findProduct()->m == 36 && region.findProduct()->k == 8));
    REQUIRE(region.findConvolution());
    CHECK(region.findConvolution()->taps() == 1);
    CHECK(region.findWholeEpilogue(region.findAnchor()->getResult(0)));
    CHECK(region.findYielded<prim::ConvOp>());
    CHECK(!region.findYielded<prim::AddOp>());
  }
  const RegionProblem region(
      makeRegion("%0 = " + conv + "%1 = " + conv + "%2 = prim.add %0, %1 : tensor<1x6x6x8xf32>\n", "%2"));
  CHECK(!region.findAnchor());
  CHECK(!region.findProduct());
  CHECK(!region.findConvolution());
  CHECK(!region.findOnly<prim::ConvOp>());
  CHECK(region.findOnly<prim::AddOp>());
}

TEST_CASE_METHOD(Regions, "a reduction has the sizes of what stays and of what goes") {
  kernel::RegionOp op = parse(R"(
func.func @main(%x: tensor<3x5x7xf32>) -> tensor<3x7xf32> {
  %r = kernel.region(%a = %x : tensor<3x5x7xf32>) -> (tensor<3x7xf32>) {
    %0 = prim.reduce sum %a [1] : tensor<3x5x7xf32> -> tensor<3x7xf32>
    kernel.yield %0 : tensor<3x7xf32>
  }
  return %r : tensor<3x7xf32>
})");
  const RegionProblem region(op);
  const Reduction *reduction = region.findReduction();
  REQUIRE(reduction);
  auto sizes = [&](ArrayRef<AffineExpr> of) {
    return llvm::map_to_vector(of, [](AffineExpr size) { return *prim::getConstantSize(size); });
  };
  CHECK(sizes(reduction->reduced) == SmallVector<int64_t>{5});
  CHECK(sizes(reduction->outer) == SmallVector<int64_t>{3});
  CHECK(reduction->keepsLast);
  CHECK(!getRowRank(reduction->op));
}

TEST_CASE_METHOD(Regions, "how a value lies in memory follows the ops that lead to it") {
  kernel::RegionOp op = parse(R"(
func.func @main(%x: tensor<6x32xf32>, %b: tensor<6xf32>) -> tensor<32x6xf32> {
  %r = kernel.region(%a = %x : tensor<6x32xf32>, %c = %b : tensor<6xf32>) -> (tensor<32x6xf32>) {
    %0 = prim.broadcast %c [0] : tensor<6xf32> -> tensor<6x32xf32>
    %1 = prim.add %0, %a : tensor<6x32xf32>
    %2 = prim.transpose %1 [1, 0] : tensor<6x32xf32> -> tensor<32x6xf32>
    %3 = prim.slice %2 from affine_map<() -> (4, 0)> step [2, 1] : tensor<32x6xf32> -> tensor<8x6xf32>
    %4 = prim.reshape %a : tensor<6x32xf32> -> tensor<6x2x16xf32>
    kernel.yield %2 : tensor<32x6xf32>
  }
  return %r : tensor<32x6xf32>
})");
  const RegionProblem region(op);
  auto values =
      llvm::map_to_vector(region.getBody().without_terminator(), [](Operation &op) { return Value(op.getResult(0)); });
  const Value added = values[1], transposed = values[2], sliced = values[3], reshaped = values[4];
  // What is repeated says nothing of how the other operand lies.
  CHECK(isInnermost(added, 1));
  CHECK(!isInnermost(added, 0));
  CHECK(isInnermost(transposed, 0));
  CHECK(!isInnermost(transposed, 1));
  CHECK(transposesInnermost(transposed.getDefiningOp()));
  CHECK(isReadByVectors(transposed, 0));
  CHECK(!isReadByVectors(transposed, 1));
  CHECK(!isReadByVectors(sliced, 0)); // every other element
  CHECK(isReadByVectors(reshaped, 2));
  CHECK(inputThroughReshapes(reshaped) == 0u);
  CHECK(!inputThroughReshapes(transposed));
  const DimMap map = mapOperand(transposed.getDefiningOp(), 0, identityMap(transposed));
  CHECK(map == DimMap{1, 0});
  CHECK(!alignedRank(added, map, transposed));
}
