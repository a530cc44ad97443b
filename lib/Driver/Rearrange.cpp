//===- Rearrange.cpp - constants as kernels read them -------------------------------------------------------------===//
//
// Packing at compile time. Where a map divides nothing that the innermost dim of the result is part of, the position in
// the data moves by a fixed stride along it, and the part of a row that lies inside the data is an interval: one
// evaluation a row, or one for the last two dims where rows are short. Other maps (interleaved pairs, for instance) go
// element by element, but an expression is evaluated once for each position along the dims that it mentions, which are
// few. Rows are independent, so threads share them; a few megabytes are made at a time.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Driver/Assemble.h"
#include "tc/Support/Threads.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Threading.h"
#include <cstring>
#include <functional>
#include <numeric>

using namespace mlir;

namespace {

constexpr int64_t kChunkBytes = 8 << 20;
/// Of an expression.
constexpr int64_t kMostValues = 1 << 20;

/// The slope of `expr` along dim `dim`; nullopt: it has none, as a division or remainder contains the dim.
std::optional<int64_t> slopeAlong(AffineExpr expr, unsigned dim) {
  if (!expr.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  const std::optional<int64_t> left = slopeAlong(binary.getLHS(), dim), right = slopeAlong(binary.getRHS(), dim);
  if (expr.getKind() == AffineExprKind::Add && left && right)
    return *left + *right;
  if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      factor && expr.getKind() == AffineExprKind::Mul && left)
    return *left * factor.getValue();
  return std::nullopt;
}

int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims) {
  return tc::prim::evaluate(expr, [&](AffineExpr dim) { return dims[cast<AffineDimExpr>(dim).getPosition()]; });
}

/// The values of an expression for all positions along the dims that it mentions; none if those are too many.
struct Table {
  SmallVector<int64_t> strides; // by dim; 0: not mentioned
  std::vector<int64_t> values;
};

Table tabulate(AffineExpr expr, ArrayRef<int64_t> shape, int64_t mostValues) {
  Table table;
  table.strides.assign(shape.size(), 0);
  int64_t count = 1;
  for (int64_t i = int64_t(shape.size()) - 1; i >= 0; --i)
    if (expr.isFunctionOfDim(i)) {
      table.strides[i] = count;
      count *= shape[i];
      if (count > mostValues)
        return table;
    }
  SmallVector<int64_t> at(shape.size(), 0);
  for (int64_t number = 0; number < count; ++number) {
    for (size_t i = 0; i < shape.size(); ++i)
      if (table.strides[i])
        at[i] = number / table.strides[i] % shape[i];
    table.values.push_back(evaluate(expr, at));
  }
  return table;
}

class Arranger {
public:
  Arranger(ArrayRef<char> data, ArrayRef<int64_t> dataShape, int64_t elementBytes, AffineMap map,
           ArrayRef<int64_t> resultShape)
      : data(data), dataShape(dataShape), elementBytes(elementBytes), map(map), resultShape(resultShape) {
    strides.assign(dataShape.size(), 1);
    for (int64_t i = int64_t(dataShape.size()) - 2; i >= 0; --i)
      strides[i] = strides[i + 1] * dataShape[i + 1];
    for (AffineExpr expr : map.getResults()) {
      std::optional<int64_t> slope = resultShape.empty() ? 0 : slopeAlong(expr, resultShape.size() - 1);
      isLinear &= slope.has_value();
      slopes.push_back(slope.value_or(0));
    }
    // A table is worth its time where many rows share a value.
    SmallVector<int64_t> shape(resultShape);
    if (isLinear && !shape.empty())
      shape.back() = 1;
    const int64_t rows = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
    for (AffineExpr expr : map.getResults())
      tables.push_back(tabulate(expr, shape, isLinear ? std::min(rows / 8, kMostValues) : kMostValues));
    if (isLinear)
      findBlocks();
  }

  /// Rows [begin, end) of the result, rows being runs along its innermost dim.
  void rows(int64_t begin, int64_t end, char *out) const {
    int64_t length = resultShape.empty() ? 1 : resultShape.back();
    SmallVector<int64_t> at(resultShape.size(), 0);
    for (int64_t row = begin; row < end; ++row, out += length * elementBytes) {
      int64_t rest = row;
      for (int64_t i = int64_t(resultShape.size()) - 2; i >= 0; --i) {
        at[i] = rest % resultShape[i];
        rest /= resultShape[i];
      }
      const int64_t blockRows = blockOffsets.empty() ? 0 : int64_t(blockOffsets.size()) / length;
      if (blockRows && at[at.size() - 2] == 0 && row + blockRows <= end && block(at, out)) {
        row += blockRows - 1;
        out += (blockRows - 1) * length * elementBytes;
      } else if (isLinear)
        linearRow(at, length, out);
      else
        anyRow(at, length, out);
    }
  }

private:
  template <typename T> static void copyStrided(const char *from, int64_t stride, char *to, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * sizeof(T), from + i * stride * int64_t(sizeof(T)), sizeof(T));
  }

  /// Rows of a few elements are evaluated together, as blocks of the last two dims, if the map is linear along both.
  void findBlocks() {
    constexpr int64_t kLongRow = 16;
    const size_t rank = resultShape.size();
    if (rank < 2 || resultShape[rank - 1] >= kLongRow || resultShape[rank - 2] < 2 || resultShape[rank - 1] < 1)
      return;
    SmallVector<int64_t> outer;
    for (AffineExpr expr : map.getResults()) {
      std::optional<int64_t> slope = slopeAlong(expr, rank - 2);
      if (!slope)
        return;
      outer.push_back(*slope);
    }
    blockLeast.assign(outer.size(), 0);
    blockMost.assign(outer.size(), 0);
    for (int64_t i = 0; i < resultShape[rank - 2]; ++i)
      for (int64_t j = 0; j < resultShape[rank - 1]; ++j) {
        int64_t offset = 0;
        for (size_t d = 0; d < outer.size(); ++d) {
          const int64_t position = outer[d] * i + slopes[d] * j;
          blockLeast[d] = std::min(blockLeast[d], position);
          blockMost[d] = std::max(blockMost[d], position);
          offset += position * strides[d];
        }
        blockOffsets.push_back(offset);
      }
  }

  /// The value of the map's result `d` at a row's first position.
  int64_t startOf(size_t d, ArrayRef<int64_t> at) const {
    const Table &table = tables[d];
    if (table.values.empty())
      return evaluate(map.getResult(d), at);
    int64_t index = 0;
    for (size_t i = 0; i + 1 < at.size(); ++i)
      index += table.strides[i] * at[i];
    return table.values[index];
  }

  /// The block from `at` on; false, and nothing is written, if a part of it lies outside of the data.
  bool block(ArrayRef<int64_t> at, char *out) const {
    int64_t base = 0;
    for (size_t d = 0; d < map.getNumResults(); ++d) {
      const int64_t start = startOf(d, at);
      if (start + blockLeast[d] < 0 || start + blockMost[d] >= dataShape[d])
        return false;
      base += start * strides[d];
    }
    const char *from = data.data() + base * elementBytes;
    if (elementBytes == 2)
      copyOffsets<uint16_t>(from, out);
    else if (elementBytes == 1)
      copyOffsets<uint8_t>(from, out);
    else
      for (auto [i, offset] : llvm::enumerate(blockOffsets))
        std::memcpy(out + int64_t(i) * elementBytes, from + offset * elementBytes, elementBytes);
    return true;
  }
  template <typename T> void copyOffsets(const char *from, char *to) const {
    for (int64_t offset : blockOffsets) {
      std::memcpy(to, from + offset * int64_t(sizeof(T)), sizeof(T));
      to += sizeof(T);
    }
  }

  /// `at` is the row's first position.
  void linearRow(ArrayRef<int64_t> at, int64_t length, char *out) const {
    int64_t low = 0, high = length, base = 0, step = 0;
    for (size_t d = 0; d < map.getNumResults(); ++d) {
      const int64_t start = startOf(d, at), slope = slopes[d];
      base += start * strides[d];
      step += slope * strides[d];
      // 0 <= start + slope * j < size
      int64_t size = dataShape[d];
      if (slope == 0) {
        if (start < 0 || start >= size)
          high = 0;
      } else if (slope > 0) {
        low = std::max(low, llvm::divideCeilSigned(-start, slope));
        high = std::min(high, llvm::divideFloorSigned(size - 1 - start, slope) + 1);
      } else {
        low = std::max(low, llvm::divideCeilSigned(start - (size - 1), -slope));
        high = std::min(high, llvm::divideFloorSigned(start, -slope) + 1);
      }
    }
    if (low >= high) {
      std::memset(out, 0, length * elementBytes);
      return;
    }
    std::memset(out, 0, low * elementBytes);
    std::memset(out + high * elementBytes, 0, (length - high) * elementBytes);
    const char *from = data.data() + (base + step * low) * elementBytes;
    char *to = out + low * elementBytes;
    int64_t count = high - low;
    if (step == 1 || count == 1)
      std::memcpy(to, from, count * elementBytes);
    else if (elementBytes == 4)
      copyStrided<uint32_t>(from, step, to, count);
    else if (elementBytes == 2)
      copyStrided<uint16_t>(from, step, to, count);
    else if (elementBytes == 1)
      copyStrided<uint8_t>(from, step, to, count);
    else
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(to + i * elementBytes, from + i * step * elementBytes, elementBytes);
  }

  void anyRow(SmallVectorImpl<int64_t> &at, int64_t length, char *out) const {
    SmallVector<int64_t> starts; // of the row in each table
    for (const Table &table : tables) {
      int64_t start = 0;
      for (size_t i = 0; i + 1 < at.size(); ++i)
        start += table.strides[i] * at[i];
      starts.push_back(start);
    }
    for (int64_t j = 0; j < length; ++j, out += elementBytes) {
      if (!at.empty())
        at.back() = j;
      int64_t offset = 0;
      bool inside = true;
      for (auto [d, expr] : llvm::enumerate(map.getResults())) {
        const Table &table = tables[d];
        int64_t position = table.values.empty() ? evaluate(expr, at)
                                                : table.values[starts[d] + (at.empty() ? 0 : table.strides.back() * j)];
        inside &= position >= 0 && position < dataShape[d];
        offset += position * strides[d];
      }
      if (inside)
        std::memcpy(out, data.data() + offset * elementBytes, elementBytes);
      else
        std::memset(out, 0, elementBytes);
    }
  }

  ArrayRef<char> data;
  ArrayRef<int64_t> dataShape;
  int64_t elementBytes;
  AffineMap map;
  ArrayRef<int64_t> resultShape;
  SmallVector<int64_t> strides;
  SmallVector<int64_t> slopes; // of the map's results along the innermost dim
  std::vector<Table> tables; // by dim of the data; if the map is linear along the innermost dim, of its first positions
  bool isLinear = true;
  std::vector<int64_t> blockOffsets;          // of a block's elements from its first; none: no blocks
  SmallVector<int64_t> blockLeast, blockMost; // positions in a block, by dim of the data
};

/// 0: as many as there are.
int64_t threadsOf(unsigned jobs) { return jobs ? jobs : llvm::hardware_concurrency().compute_thread_count(); }

} // namespace

llvm::Error tc::driver::rearrange(ArrayRef<char> data, ArrayRef<int64_t> dataShape, int64_t elementBytes, AffineMap map,
                                  ArrayRef<int64_t> resultShape, unsigned jobs, artifact::WeightSink sink) {
  Arranger arranger(data, dataShape, elementBytes, map, resultShape);
  int64_t rows = 1, length = resultShape.empty() ? 1 : resultShape.back();
  for (int64_t size : resultShape.empty() ? resultShape : resultShape.drop_back())
    rows *= size;
  if (rows == 0 || length == 0)
    return llvm::Error::success();
  int64_t rowBytes = length * elementBytes;
  int64_t rowsPerChunk = std::max<int64_t>(1, kChunkBytes / rowBytes);
  std::vector<char> chunk(std::min(rows, rowsPerChunk) * rowBytes);
  for (int64_t first = 0; first < rows; first += rowsPerChunk) {
    int64_t count = std::min(rowsPerChunk, rows - first);
    // A thread costs about as much as arranging 100 KB.
    int64_t threads = std::min<int64_t>({threadsOf(jobs), count, 1 + count * rowBytes / (1 << 18)});
    auto work = [&](unsigned number) {
      int64_t begin = count * number / threads, end = count * (number + 1) / threads;
      arranger.rows(first + begin, first + end, chunk.data() + begin * rowBytes);
    };
    runOnThreads(unsigned(threads), work);
    if (llvm::Error error = sink(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(chunk.data()), count * rowBytes)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error tc::driver::rearrangeTransformed(ArrayRef<float> data, ArrayRef<int64_t> dataShape, AffineMap map,
                                             ArrayRef<int64_t> resultShape, ArrayRef<double> transform, unsigned jobs,
                                             artifact::WeightSink sink) {
  const int64_t rows = resultShape[0], terms = int64_t(transform.size()) / rows;
  SmallVector<int64_t> sourceShape(resultShape);
  sourceShape[0] = terms;
  std::vector<float> source;
  auto keep = [&](ArrayRef<uint8_t> bytes) -> llvm::Error {
    const float *from = reinterpret_cast<const float *>(bytes.data());
    source.insert(source.end(), from, from + bytes.size() / sizeof(float));
    return llvm::Error::success();
  };
  const ArrayRef<char> bytes(reinterpret_cast<const char *>(data.data()), data.size() * sizeof(float));
  if (llvm::Error error = rearrange(bytes, dataShape, sizeof(float), map, sourceShape, jobs, keep))
    return error;
  const int64_t count = int64_t(source.size()) / terms;
  constexpr int64_t kChunk = 1 << 16, kWorthAThread = 1 << 15;
  std::vector<float> chunk(std::min(count, kChunk));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t first = 0; first < count; first += kChunk) {
      const int64_t here = std::min(kChunk, count - first);
      const int64_t threads = std::min<int64_t>(threadsOf(jobs), 1 + here / kWorthAThread);
      runOnThreads(unsigned(threads), [&](unsigned number) {
        const int64_t begin = here * number / threads, size = here * (number + 1) / threads - begin;
        std::vector<double> sums(size, 0.0);
        for (int64_t t = 0; t < terms; ++t)
          if (const double factor = transform[row * terms + t]; factor != 0)
            for (int64_t i = 0; i < size; ++i)
              sums[i] += factor * source[t * count + first + begin + i];
        std::copy(sums.begin(), sums.end(), chunk.begin() + begin);
      });
      if (llvm::Error error =
              sink(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(chunk.data()), here * sizeof(float))))
        return error;
    }
  return llvm::Error::success();
}
