//===- Movement.cpp - copies between strides, against element by element
//----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Dialect/Prim/Interpreter/Handlers.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

using namespace tc::prim::interpreter;

namespace {

void copyEach(int64_t elementBytes, llvm::ArrayRef<int64_t> shape, const char *from,
              llvm::ArrayRef<int64_t> fromStrides, char *to, llvm::ArrayRef<int64_t> toStrides) {
  if (shape.empty()) {
    std::memcpy(to, from, elementBytes);
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i)
    copyEach(elementBytes, shape.drop_front(), from + i * fromStrides[0] * elementBytes, fromStrides.drop_front(),
             to + i * toStrides[0] * elementBytes, toStrides.drop_front());
}

} // namespace

TEST_CASE("copies between strides move every element to its place, and nothing else") {
  std::mt19937 random(5);
  auto pick = [&](int64_t most) { return int64_t(random() % uint64_t(most)); };
  for (int round = 0; round < 600; ++round) {
    const int64_t bytes = std::vector<int64_t>{1, 2, 3, 4, 8, 16}[pick(6)];
    Shape shape;
    for (int64_t rank = pick(6); rank > 0; --rank)
      shape.push_back(pick(8) == 0 ? pick(3) : 1 + pick(rank < 3 ? 70 : 6));
    // Of each side the dims lie in an order of their own; some are read backwards, repeated, or with gaps.
    auto strides = [&](bool isRead, int64_t &first, int64_t &size) {
      Shape order, result(shape.size(), 0);
      for (size_t i = 0; i < shape.size(); ++i)
        order.insert(order.begin() + pick(int64_t(i) + 1), int64_t(i));
      first = 0;
      size = 1;
      for (int64_t dim : order) {
        if (isRead && pick(6) == 0)
          continue; // a repeated dim
        result[dim] = size;
        size *= std::max<int64_t>(1, shape[dim]) + (pick(4) == 0);
        if (isRead && pick(5) == 0) {
          first += result[dim] * std::max<int64_t>(0, shape[dim] - 1);
          result[dim] = -result[dim];
        }
      }
      return result;
    };
    int64_t fromFirst, fromSize, toFirst, toSize;
    const Shape from = strides(/*isRead=*/true, fromFirst, fromSize), to = strides(/*isRead=*/false, toFirst, toSize);
    std::vector<char> source(fromSize * bytes), got(toSize * bytes, 'x'), want = got;
    for (char &byte : source)
      byte = char(random());
    copyStrided(bytes, shape, source.data() + fromFirst * bytes, from, got.data(), to);
    if (llvm::all_of(shape, [](int64_t size) { return size > 0; }))
      copyEach(bytes, shape, source.data() + fromFirst * bytes, from, want.data(), to);
    CAPTURE(round, bytes, std::vector<int64_t>(shape.begin(), shape.end()));
    REQUIRE(got == want);
  }
}
