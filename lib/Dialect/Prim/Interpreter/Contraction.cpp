//===- Contraction.cpp - dot_general, conv, window_reduce ---------------------------------------------------------===//
//
// Integers of at most 16 bits are multiplied as doubles: their sums are exact below 2^53, that is for fewer than 2^21
// products. Wider ones take a plain loop.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Gemm.h"
#include "Handlers.h"

#include <cstring>

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

namespace {

/// Elements of `values` (of `shape`) with dims in the given order.
template <typename T> std::vector<T> permute(std::vector<T> values, ArrayRef<int64_t> shape, ArrayRef<int64_t> order) {
  if (llvm::is_sorted(order))
    return values;
  std::vector<T> result(values.size());
  Shape strides = getStrides(shape), permuted, sizes;
  for (int64_t dim : order) {
    sizes.push_back(shape[dim]);
    permuted.push_back(strides[dim]);
  }
  copyStrided(sizeof(T), sizes, reinterpret_cast<const char *>(values.data()), permuted,
              reinterpret_cast<char *>(result.data()), getStrides(sizes));
  return result;
}

int64_t countDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  return countElements(llvm::map_to_vector(dims, [&](int64_t dim) { return shape[dim]; }));
}

/// Dims that are neither batch nor contracted.
Shape getFreeDims(int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  Shape dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

Shape concat(ArrayRef<int64_t> a, ArrayRef<int64_t> b, ArrayRef<int64_t> c) {
  Shape all(a);
  llvm::append_range(all, b);
  llvm::append_range(all, c);
  return all;
}

/// Whether sums of this many products of such integers are exact as doubles.
bool isExactInDouble(const Tensor &tensor, int64_t products) {
  if (products >= (int64_t(1) << 21))
    return false;
  return tensor.elementType.getIntOrFloatBitWidth() <= 16 ||
         llvm::all_of(toInts(tensor), [](int64_t v) { return v > -65536 && v < 65536; });
}

/// Sums of products that were made as doubles, in the result's type.
Tensor makeSums(const Call &call, const std::vector<double> &sums) {
  if (isa<FloatType>(call.elementTypes[0]))
    return call.makeDoubles(sums);
  return call.makeInts(std::vector<int64_t>(sums.begin(), sums.end()));
}

llvm::Expected<Tensor> evalDotGeneral(DotGeneralOp op, const Call &call) {
  const Tensor &lhs = call.operands[0], &rhs = call.operands[1];
  Shape lhsFree = getFreeDims(lhs.shape.size(), op.getLhsBatch(), op.getLhsContract());
  Shape rhsFree = getFreeDims(rhs.shape.size(), op.getRhsBatch(), op.getRhsContract());
  int64_t batch = countDims(lhs.shape, op.getLhsBatch()), m = countDims(lhs.shape, lhsFree);
  int64_t n = countDims(rhs.shape, rhsFree), k = countDims(lhs.shape, op.getLhsContract());
  Shape lhsOrder = concat(op.getLhsBatch(), lhsFree, op.getLhsContract());
  Shape rhsOrder = concat(op.getRhsBatch(), op.getRhsContract(), rhsFree);
  bool isFloat = call.isFloat(0);
  if (isFloat != call.isFloat(1) || isFloat != isa<FloatType>(call.elementTypes[0]))
    return call.fail("mixes floats and integers");
  if (isFloat || (isExactInDouble(lhs, k) && isExactInDouble(rhs, k))) {
    std::vector<double> a = permute(toDoubles(lhs), lhs.shape, lhsOrder);
    std::vector<double> b = permute(toDoubles(rhs), rhs.shape, rhsOrder);
    std::vector<double> c(batch * m * n, 0);
    for (int64_t i = 0; i < batch; ++i)
      multiply(m, n, k, a.data() + i * m * k, k, b.data() + i * k * n, n, c.data() + i * m * n, n);
    return makeSums(call, c);
  }
  std::vector<int64_t> a = permute(toInts(lhs), lhs.shape, lhsOrder), b = permute(toInts(rhs), rhs.shape, rhsOrder);
  std::vector<int64_t> c(batch * m * n, 0);
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t row = 0; row < m; ++row)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t column = 0; column < n; ++column) {
          uint64_t product = uint64_t(a[(i * m + row) * k + p]) * uint64_t(b[(i * k + p) * n + column]);
          int64_t &sum = c[(i * m + row) * n + column];
          sum = int64_t(uint64_t(sum) + product);
        }
  return call.makeInts(c);
}

/// Geometry that conv and window_reduce share.
struct Windows {
  Shape input, output, kernel; // spatial sizes
  ArrayRef<int64_t> strides, dilations, low;

  /// For the output position `t` and kernel position `k` (linear indices): the linear input position, or -1 outside.
  int64_t find(int64_t t, int64_t k) const {
    int64_t position = 0, stride = 1;
    for (size_t dim = input.size(); dim-- > 0;) {
      int64_t at = (t % output[dim]) * strides[dim] + (k % kernel[dim]) * dilations[dim] - low[dim];
      if (at < 0 || at >= input[dim])
        return -1;
      position += at * stride;
      stride *= input[dim];
      t /= output[dim];
      k /= kernel[dim];
    }
    return position;
  }
};

llvm::Expected<Tensor> evalConv(ConvOp op, const Call &call) {
  const Tensor &input = call.operands[0], &filter = call.operands[1];
  if (call.isFloat(0) != call.isFloat(1) || call.isFloat(0) != isa<FloatType>(call.elementTypes[0]))
    return call.fail("mixes floats and integers");
  auto spatial = [](ArrayRef<int64_t> shape) { return Shape(shape.drop_front().drop_back()); };
  Windows windows{spatial(input.shape), spatial(call.shapes[0]), Shape(ArrayRef(filter.shape).drop_back(2)),
                  op.getStrides(),      op.getDilations(),       op.getPadLow()};
  int64_t batch = input.shape[0], groups = op.getGroups(), channels = input.shape.back();
  int64_t outputs = filter.shape.back(), perGroup = filter.shape[filter.shape.size() - 2];
  if (groups < 1 || channels != perGroup * groups || outputs % groups != 0)
    return call.fail("(C2) groups must divide input and output channels");
  int64_t kernel = countElements(windows.kernel), positions = countElements(windows.output);
  int64_t inputPositions = countElements(windows.input), groupOutputs = outputs / groups;
  if (!call.isFloat(0) && !(isExactInDouble(input, kernel * perGroup) && isExactInDouble(filter, kernel * perGroup)))
    return call.fail("integers beyond 16 bits are not supported");
  std::vector<double> x = toDoubles(input), w = toDoubles(filter), y(batch * positions * outputs, 0);

  if (perGroup == 1) {
    // Depthwise: one product per output channel and kernel position. Inputs are repeated where a group has more
    // outputs.
    std::vector<double> repeated(outputs);
    for (int64_t row = 0; row < batch * positions; ++row)
      for (int64_t k = 0; k < kernel; ++k) {
        int64_t at = windows.find(row % positions, k);
        if (at < 0)
          continue;
        const double *from = x.data() + (row / positions * inputPositions + at) * channels;
        for (int64_t o = 0; o < outputs && groupOutputs > 1; ++o)
          repeated[o] = from[o / groupOutputs];
        multiplyAdd(outputs, groupOutputs > 1 ? repeated.data() : from, w.data() + k * outputs,
                    y.data() + row * outputs);
      }
    return makeSums(call, y);
  }

  // Gathers the windows of some output positions as rows of a matrix, then multiplies it with the filter.
  constexpr int64_t kRows = 64;
  std::vector<double> patches(kRows * kernel * perGroup);
  for (int64_t first = 0; first < batch * positions; first += kRows) {
    int64_t rows = std::min(kRows, batch * positions - first);
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t k = 0; k < kernel; ++k) {
          int64_t at = windows.find((first + row) % positions, k);
          double *patch = patches.data() + (row * kernel + k) * perGroup;
          if (at < 0)
            std::fill_n(patch, perGroup, 0.0);
          else
            std::memcpy(patch,
                        x.data() + ((first + row) / positions * inputPositions + at) * channels + group * perGroup,
                        perGroup * sizeof(double));
        }
      multiply(rows, groupOutputs, kernel * perGroup, patches.data(), kernel * perGroup,
               w.data() + group * groupOutputs, outputs, y.data() + first * outputs + group * groupOutputs, outputs);
    }
  }
  return makeSums(call, y);
}

template <typename T, typename Combine>
std::vector<T> reduceWindows(const std::vector<T> &from, const Windows &windows, int64_t batch, int64_t channels,
                             T neutral, Combine combine) {
  int64_t positions = countElements(windows.output), kernel = countElements(windows.kernel);
  int64_t inputPositions = countElements(windows.input);
  std::vector<T> result(batch * positions * channels, neutral);
  for (int64_t row = 0; row < batch * positions; ++row)
    for (int64_t k = 0; k < kernel; ++k) {
      int64_t at = windows.find(row % positions, k);
      if (at < 0)
        continue;
      const T *source = from.data() + (row / positions * inputPositions + at) * channels;
      T *to = result.data() + row * channels;
      for (int64_t c = 0; c < channels; ++c)
        to[c] = combine(to[c], source[c]);
    }
  return result;
}

llvm::Expected<Tensor> evalWindowReduce(WindowReduceOp op, const Call &call) {
  const Tensor &operand = call.operands[0];
  auto spatial = [](ArrayRef<int64_t> shape) { return Shape(shape.drop_front().drop_back()); };
  Windows windows{spatial(operand.shape), spatial(call.shapes[0]), Shape(op.getWindow()),
                  op.getStrides(),        op.getDilations(),       op.getPadLow()};
  int64_t batch = operand.shape[0], channels = operand.shape.back();
  if (call.shapes[0][0] != batch || call.shapes[0].back() != channels)
    return call.fail("operand and result differ in batch or channels");
  if (countElements(windows.kernel) < 0)
    return call.fail("the window's sizes are negative");
  ReduceKind kind = op.getKind();
  if (call.isFloat(0))
    return call.makeDoubles(reduceWindows(toDoubles(operand), windows, batch, channels, neutralDouble(kind),
                                          [kind](double a, double b) { return combine(kind, a, b); }));
  bool isUnsigned = isUnsignedElement(operand.elementType);
  return call.makeInts(reduceWindows(toInts(operand), windows, batch, channels, neutralInt(kind, operand.elementType),
                                     [=](int64_t a, int64_t b) { return combine(kind, a, b, isUnsigned); }));
}

} // namespace

void tc::prim::interpreter::addContractionHandlers(Registry &registry) {
  registry.add<DotGeneralOp>(evalDotGeneral);
  registry.add<ConvOp>(evalConv);
  registry.add<WindowReduceOp>(evalWindowReduce);
}
