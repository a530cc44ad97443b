//===- Composite.cpp - softmax, norm, attention, products, rnn, fft -----------------------------------------------===//
//
// Evaluated by their definitions, in double throughout; only the results are rounded.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Gemm.h"
#include "Handlers.h"

#include <cmath>
#include <complex>
#include <limits>

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Replaces `size` values that lie `stride` apart by their softmax.
void softmax(double *values, int64_t size, int64_t stride, bool log) {
  double max = -kInfinity, sum = 0;
  for (int64_t i = 0; i < size; ++i)
    max = maxNaN(max, values[i * stride]);
  for (int64_t i = 0; i < size; ++i)
    sum += std::exp(values[i * stride] - max);
  for (int64_t i = 0; i < size; ++i) {
    double &value = values[i * stride];
    value = log ? value - max - std::log(sum) : std::exp(value - max) / sum;
  }
}

llvm::Expected<Tensor> evalSoftmax(SoftmaxOp op, const Call &call) {
  const Shape &shape = call.shapes[0];
  int64_t axis = op.getAxis();
  if (!call.isFloat(0) || axis < 0 || axis >= int64_t(shape.size()))
    return call.fail("needs floats and an axis in range");
  int64_t outer = countElements(ArrayRef(shape).take_front(axis));
  int64_t inner = countElements(ArrayRef(shape).drop_front(axis + 1));
  std::vector<double> values = toDoubles(call.operands[0]);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      softmax(values.data() + o * shape[axis] * inner + i, shape[axis], inner, op.getLog());
  return call.makeDoubles(values);
}

llvm::Expected<Tensor> evalNorm(NormOp op, const Call &call) {
  const Shape &shape = call.shapes[0];
  for (int64_t dim : op.getDims())
    if (!call.isFloat(0) || dim < 0 || dim >= int64_t(shape.size()))
      return call.fail("needs floats and dims in range");
  Shape strides = getKeptStrides(shape, op.getDims());
  int64_t rows = 1, count = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    (llvm::is_contained(op.getDims(), int64_t(dim)) ? count : rows) *= shape[dim];
  double epsilon = op.getEpsilon().convertToDouble();
  std::vector<double> values = toDoubles(call.operands[0]), mean(rows, 0), square(rows, 0);
  if (!op.getRms())
    forEachIndex(shape, strides, [&](int64_t i, int64_t row) { mean[row] += values[i]; });
  for (double &sum : mean)
    sum /= count;
  forEachIndex(shape, strides, [&](int64_t i, int64_t row) {
    values[i] -= mean[row];
    square[row] += values[i] * values[i];
  });
  forEachIndex(shape, strides, [&](int64_t i, int64_t row) { values[i] /= std::sqrt(square[row] / count + epsilon); });
  return call.makeDoubles(values);
}

llvm::Expected<Tensor> evalAttention(AttentionOp op, const Call &call) {
  const Tensor &query = call.operands[0], &key = call.operands[1], &value = call.operands[2];
  size_t rank = query.shape.size();
  if (!call.isFloat(0) || rank < 2 || key.shape.size() != rank || value.shape.size() != rank)
    return call.fail("needs floats of equal rank, at least 2");
  int64_t t = query.shape[rank - 2], d = query.shape[rank - 1], s = key.shape[rank - 2], e = value.shape[rank - 1];
  Shape batchShape(ArrayRef(query.shape).drop_back(2)), scoreShape = batchShape;
  scoreShape.append({t, s});
  auto hasShape = [&](const Tensor &tensor, int64_t rows, int64_t columns) {
    Shape expected = batchShape;
    expected.append({rows, columns});
    return tensor.shape == expected;
  };
  if (!hasShape(key, s, d) || !hasShape(value, s, e) || (op.getMask() && call.operands[3].shape != scoreShape))
    return call.fail("operands differ in sizes");
  std::vector<double> q = toDoubles(query), k = toDoubles(key), v = toDoubles(value), mask;
  if (op.getMask() && !call.isFloat(3))
    return call.fail("the mask must be floats");
  if (op.getMask())
    mask = toDoubles(call.operands[3]);
  double scale = op.getScale().convertToDouble();
  int64_t batch = countElements(batchShape);
  std::vector<double> result(batch * t * e, 0), transposed(d * s), scores(t * s);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < s; ++i)
      for (int64_t j = 0; j < d; ++j)
        transposed[j * s + i] = k[(b * s + i) * d + j];
    std::fill(scores.begin(), scores.end(), 0);
    multiply(t, s, d, q.data() + b * t * d, d, transposed.data(), s, scores.data(), s);
    for (int64_t i = 0; i < t; ++i) {
      for (int64_t j = 0; j < s; ++j) {
        double &score = scores[i * s + j];
        score = score * scale + (mask.empty() ? 0 : mask[(b * t + i) * s + j]);
        if (op.getCausal() && j > i + (s - t))
          score = -kInfinity;
      }
      softmax(scores.data() + i * s, s, 1, false);
      for (int64_t j = 0; op.getZeroNan() && j < s; ++j)
        if (std::isnan(scores[i * s + j]))
          scores[i * s + j] = 0;
    }
    multiply(t, e, s, scores.data(), s, v.data() + b * s * e, e, result.data() + b * t * e, e);
  }
  return call.makeDoubles(result);
}

/// Number `i` of `bits` bits of a row of bytes.
double numberAt(const double *bytes, int64_t bits, int64_t i) {
  int64_t each = 8 / bits;
  return double((int64_t(bytes[i / each]) >> (i % each * bits)) & ((int64_t(1) << bits) - 1));
}

llvm::Expected<Tensor> evalBlockDot(BlockDotOp op, const Call &call) {
  const Tensor &lhs = call.operands[0];
  const int64_t bits = op.getBits(), block = op.getBlock();
  const int64_t k = lhs.shape.back(), n = call.operands[1].shape[0], rowBytes = call.operands[1].shape[1],
                blocks = call.operands[2].shape[1];
  if (!call.isFloat(0) || call.isFloat(1) || !call.isFloat(2))
    return call.fail("needs floats, packed integers and floats");
  std::vector<double> x = toDoubles(lhs), packed = toDoubles(call.operands[1]), scales = toDoubles(call.operands[2]),
                      zeros, weights(k * n);
  if (op.getZeros())
    zeros = toDoubles(call.operands[3]);
  const bool isPacked = op.getZeros() && !call.isFloat(3);
  const int64_t zeroRow = op.getZeros() ? call.operands[3].shape[1] : 0;
  for (int64_t row = 0; row < n; ++row)
    for (int64_t i = 0; i < k; ++i) {
      int64_t of = i / block;
      double zero = zeros.empty() ? double(op.getCentre())
                    : isPacked    ? numberAt(zeros.data() + row * zeroRow, bits, of)
                                  : zeros[row * zeroRow + of];
      const double *bytes = packed.data() + row * rowBytes;
      double number = op.isSigned() ? bytes[i] : numberAt(bytes, bits, i);
      weights[i * n + row] = (number - zero) * scales[row * blocks + of];
    }
  const int64_t m = countElements(ArrayRef(lhs.shape).drop_back());
  std::vector<double> result(m * n, 0);
  multiply(m, n, k, x.data(), k, weights.data(), n, result.data(), n);
  return call.makeDoubles(result);
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// One direction of a recurrent layer; see prim.rnn for shapes and gate orders.
struct Recurrence {
  int64_t steps, batch, hidden, gateCount;
  std::vector<double> gates, recurrent, bias, peephole;
  std::vector<double> h, c; // state, [B, H]
  bool linearBeforeReset;

  /// sum over H of the state times the recurrent weights of gate g, plus its recurrent bias.
  std::vector<double> project(const double *state, int64_t gate) const {
    std::vector<double> sums(bias.begin() + gate * hidden, bias.begin() + (gate + 1) * hidden);
    multiply(1, hidden, hidden, state, hidden, recurrent.data() + gate * hidden, gateCount * hidden, sums.data(),
             hidden);
    return sums;
  }
  void stepLstm(const double *x, double *state, double *cell) const {
    std::vector<double> i = project(state, 0), o = project(state, 1), f = project(state, 2), g = project(state, 3);
    for (int64_t j = 0; j < hidden; ++j) {
      double input = logistic(x[j] + i[j] + peephole[j] * cell[j]);
      double forget = logistic(x[2 * hidden + j] + f[j] + peephole[2 * hidden + j] * cell[j]);
      cell[j] = forget * cell[j] + input * std::tanh(x[3 * hidden + j] + g[j]);
      state[j] = logistic(x[hidden + j] + o[j] + peephole[hidden + j] * cell[j]) * std::tanh(cell[j]);
    }
  }
  void stepGru(const double *x, double *state) const {
    std::vector<double> z = project(state, 0), r = project(state, 1), n(hidden), reset(hidden);
    for (int64_t j = 0; j < hidden; ++j) {
      z[j] = logistic(x[j] + z[j]);
      r[j] = logistic(x[hidden + j] + r[j]);
      reset[j] = r[j] * state[j];
    }
    n = project(linearBeforeReset ? state : reset.data(), 2);
    for (int64_t j = 0; j < hidden; ++j) {
      double candidate = std::tanh(x[2 * hidden + j] + (linearBeforeReset ? r[j] * n[j] : n[j]));
      state[j] = (1 - z[j]) * candidate + z[j] * state[j];
    }
  }
  void stepRnn(const double *x, double *state) const {
    std::vector<double> n = project(state, 0);
    for (int64_t j = 0; j < hidden; ++j)
      state[j] = std::tanh(x[j] + n[j]);
  }
};

Results evalRnn(const Call &call) {
  auto op = cast<RnnOp>(call.op);
  const Tensor &gates = call.operands[0], &initial = call.operands[3];
  int64_t gateCount = op.getKind() == RnnKind::LSTM ? 4 : op.getKind() == RnnKind::GRU ? 3 : 1;
  if (!call.isFloat(0) || gates.shape.size() != 3 || initial.shape.size() != 2)
    return call.fail("gates must be floats [T, B, G * H] and initialHidden [B, H]");
  int64_t steps = gates.shape[0], batch = gates.shape[1], hidden = initial.shape[1];
  Shape expected[] = {{steps, batch, gateCount * hidden},
                      {hidden, gateCount * hidden},
                      {gateCount * hidden},
                      {batch, hidden},
                      {batch, hidden},
                      {3 * hidden},
                      {batch}};
  for (size_t i = 0; i < std::size(expected); ++i)
    if (call.operands[i].shape != expected[i] || call.isFloat(i) != (i != 6))
      return call.fail("operand " + Twine(i) + " has the wrong sizes or element type");
  Recurrence layer{steps,
                   batch,
                   hidden,
                   gateCount,
                   toDoubles(gates),
                   toDoubles(call.operands[1]),
                   toDoubles(call.operands[2]),
                   toDoubles(call.operands[5]),
                   toDoubles(initial),
                   toDoubles(call.operands[4]),
                   op.getLinearBeforeReset()};
  std::vector<int64_t> lengths = toInts(call.operands[6]);
  std::vector<double> all(steps * batch * hidden, 0);
  for (int64_t step = 0; step < steps; ++step) {
    int64_t t = op.getReverse() ? steps - 1 - step : step;
    for (int64_t b = 0; b < batch; ++b) {
      if (t >= lengths[b])
        continue;
      const double *x = layer.gates.data() + (t * batch + b) * gateCount * hidden;
      double *h = layer.h.data() + b * hidden;
      if (op.getKind() == RnnKind::LSTM)
        layer.stepLstm(x, h, layer.c.data() + b * hidden);
      else if (op.getKind() == RnnKind::GRU)
        layer.stepGru(x, h);
      else
        layer.stepRnn(x, h);
      std::copy(h, h + hidden, all.data() + (t * batch + b) * hidden);
    }
  }
  if (countElements(call.shapes[0]) != int64_t(all.size()) || countElements(call.shapes[1]) != batch * hidden ||
      countElements(call.shapes[2]) != batch * hidden)
    return call.fail("results have the wrong sizes");
  return std::vector<Tensor>{fromDoubles(call.elementTypes[0], call.shapes[0], all),
                             fromDoubles(call.elementTypes[1], call.shapes[1], layer.h),
                             fromDoubles(call.elementTypes[2], call.shapes[2], layer.c)};
}

using Complex = std::complex<double>;

/// The transform of `count` elements, `stride` apart from `from` on, by splitting off the least factor of `count`
/// again and again. roots[j * spread] = exp(-+2 pi i j / count).
void transform(const Complex *from, int64_t stride, int64_t count, Complex *to, const std::vector<Complex> &roots,
               int64_t spread) {
  int64_t factor = 2;
  while (factor * factor <= count && count % factor)
    ++factor;
  if (factor * factor > count)
    factor = count;
  const int64_t rest = count / factor;
  if (rest == 1) {
    for (int64_t k = 0; k < count; ++k) {
      to[k] = 0;
      for (int64_t n = 0; n < count; ++n)
        to[k] += from[n * stride] * roots[n * k % count * spread];
    }
    return;
  }
  std::vector<Complex> parts(count);
  for (int64_t i = 0; i < factor; ++i)
    transform(from + i * stride, stride * factor, rest, parts.data() + i * rest, roots, spread * factor);
  for (int64_t k = 0; k < count; ++k) {
    to[k] = 0;
    for (int64_t i = 0; i < factor; ++i)
      to[k] += parts[i * rest + k % rest] * roots[i * k % count * spread];
  }
}

llvm::Expected<Tensor> evalFft(FftOp op, const Call &call) {
  llvm::Expected<int64_t> length = call.frame.evaluate(op.getLengthExpr());
  if (!length)
    return call.fail(llvm::toString(length.takeError()));
  const Shape &in = call.operands[0].shape, &out = call.shapes[0];
  if (countElements(out) == 0)
    return call.makeDoubles({});
  if (*length < 1 || out[1] > *length)
    return call.fail("a transform of " + Twine(*length) + " elements has no " + Twine(out[1]));
  const std::vector<double> values = toDoubles(call.operands[0]);
  std::vector<double> result(countElements(out));
  std::vector<Complex> roots(*length), row(*length), spectrum(*length);
  for (int64_t j = 0; j < *length; ++j)
    roots[j] = std::polar(1.0, (op.getInverse() ? 2 : -2) * M_PI * double(j) / double(*length));
  for (int64_t p = 0; p < in[0]; ++p)
    for (int64_t q = 0; q < in[2]; ++q) {
      auto at = [&](int64_t n) -> Complex {
        if (n >= in[1])
          return 0;
        const double *element = values.data() + ((p * in[1] + n) * in[2] + q) * in[3];
        return {element[0], in[3] == 2 ? element[1] : 0};
      };
      for (int64_t n = 0; n < *length; ++n)
        row[n] = op.getHalf() && n > *length / 2 ? std::conj(at(*length - n)) : at(n);
      transform(row.data(), 1, *length, spectrum.data(), roots, 1);
      for (int64_t k = 0; k < out[1]; ++k) {
        double *element = result.data() + ((p * out[1] + k) * out[2] + q) * out[3];
        element[0] = spectrum[k].real();
        if (out[3] == 2)
          element[1] = spectrum[k].imag();
      }
    }
  return call.makeDoubles(result);
}

} // namespace

void tc::prim::interpreter::addCompositeHandlers(Registry &registry) {
  registry.add<SoftmaxOp>(evalSoftmax);
  registry.add<NormOp>(evalNorm);
  registry.add<AttentionOp>(evalAttention);
  registry.add<BlockDotOp>(evalBlockDot);
  registry.add<FftOp>(evalFft);
  registry.add(RnnOp::getOperationName(), evalRnn);
}
