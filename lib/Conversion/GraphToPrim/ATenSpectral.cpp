//===- ATenSpectral.cpp - Fourier transforms and complex numbers of ATen ------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml), and what torch.fft's
// documentation says of norms and lengths.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Spectral.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

//===--- transforms -----------------------------------------------------------------------------------------------===//

/// A value on its way through transforms: floats with a last dim of 1 (real) or 2 (complex).
struct Signal {
  Value parts;
  int64_t rank; ///< without the dim of parts
};

/// Of integers f32 is made; half precision has no transforms on PyTorch's CPU, and here is computed in f32.
FailureOr<Signal> readSignal(Call &c, StringRef name) {
  FailureOr<Value> self = c.required(name);
  if (failed(self))
    return failure();
  PrimBuilder &b = c.b;
  const int64_t rank = b.rankOf(*self);
  if (b.isComplex(*self))
    return Signal{b.asParts(*self), rank};
  if (isa<IntegerType>(b.elementOf(*self)))
    self = b.convert(*self, c.defaultFloat());
  return Signal{b.unsqueeze(*self, rank), rank};
}

bool isReal(const Signal &signal) { return isOne(getSizes(signal.parts).back()); }

/// The conjugate: imaginary parts change their sign.
Value conjugateParts(PrimBuilder &b, Value parts) {
  const Sizes sizes = getSizes(parts);
  const int64_t last = sizes.size() - 1;
  Value real = b.sliceDim(parts, last, b.size(0), b.size(1));
  Value imaginary = b.sliceDim(parts, last, b.size(1), b.size(1));
  return b.concat({real, b.unary<NegOp>(imaginary)}, last);
}

/// Transforms `signal` along `dim` to `outputs` numbers.
Signal transformDim(PrimBuilder &b, const Signal &signal, int64_t dim, AffineExpr outputs, AffineExpr length,
                    Spectrum kind, SpectrumScale scale) {
  Sizes sizes = getSizes(signal.parts);
  MLIRContext *context = b.getContext();
  AffineExpr before = product(context, SizesRef(sizes).take_front(dim)),
             after = product(context, SizesRef(sizes).slice(dim + 1, signal.rank - dim - 1));
  Value y =
      emitSpectrum(b, b.reshape(signal.parts, {before, sizes[dim], after, sizes.back()}), outputs, length, kind, scale);
  sizes[dim] = outputs;
  sizes.back() = getSizes(y).back();
  return Signal{b.reshape(y, sizes), signal.rank};
}

LogicalResult finish(NodeContext &ctx, const Signal &signal) {
  if (isReal(signal)) {
    Sizes sizes = getSizes(signal.parts);
    sizes.pop_back();
    return ctx.result(ctx.b.reshape(signal.parts, sizes));
  }
  return ctx.result(ctx.b.asComplex(signal.parts));
}

/// Where the words "backward", "ortho" and "forward" put the factor.
FailureOr<SpectrumScale> readNorm(Call &c, bool isForward) {
  const std::string norm = c.ctx.getString("norm", "backward");
  if (norm == "ortho")
    return SpectrumScale::ByRoot;
  if (norm != "backward" && norm != "forward")
    return c.ctx.invalid("norm is \"" + norm + "\"; it may be \"backward\", \"ortho\" or \"forward\"");
  return (norm == "forward") == isForward ? SpectrumScale::ByLength : SpectrumScale::None;
}

/// How many elements there must be to transform.
LogicalResult checkLength(NodeContext &ctx, AffineExpr length) {
  if (auto known = getConstantSize(length); known && *known < 1)
    return ctx.invalid("transforms " + Twine(*known) + " elements; it needs 1 or more");
  return ctx.require(CompareKind::LE, ctx.b.size(1), length, "1 or more elements to transform");
}

enum class Family {
  Complex,       ///< fft: complex to complex
  FromReal,      ///< rfft: real to half of a spectrum, along the last dim
  ToReal,        ///< irfft: half of a spectrum to real numbers, along the last dim
  Hermitian,     ///< hfft: forward, half of a signal to its real spectrum
  FromHermitian, ///< ihfft: real spectrum to half of its signal
};

/// Transforms along `dims`, of these lengths (null: as they are, or twice less 2 for ToReal and Hermitian).
FailureOr<Signal> transformDims(NodeContext &ctx, Signal signal, ArrayRef<int64_t> dims, ArrayRef<AffineExpr> lengths,
                                Family family, bool isForward, SpectrumScale scale) {
  PrimBuilder &b = ctx.b;
  const bool isFromReal = family == Family::FromReal || family == Family::FromHermitian;
  const bool isToReal = family == Family::ToReal || family == Family::Hermitian;
  if (isFromReal && !isReal(signal))
    return ctx.invalid("takes real numbers, but got complex ones");
  auto lengthOf = [&](size_t i) -> FailureOr<AffineExpr> {
    const AffineExpr extent = getSizes(signal.parts)[dims[i]];
    const bool isHalf = isToReal && i + 1 == dims.size();
    AffineExpr length = lengths[i] ? lengths[i] : isHalf ? simplifySize((extent - 1) * 2) : extent;
    if (failed(checkLength(ctx, length)))
      return failure();
    return length;
  };
  auto alongOthers = [&]() -> LogicalResult {
    const Spectrum kind = isForward ? Spectrum::Forward : Spectrum::Inverse;
    for (size_t i = 0; i + (family == Family::Complex ? 0 : 1) < dims.size(); ++i) {
      FailureOr<AffineExpr> length = lengthOf(i);
      if (failed(length))
        return failure();
      signal = transformDim(b, signal, dims[i], *length, *length, kind, scale);
    }
    return success();
  };
  if (!isFromReal && failed(alongOthers()))
    return failure();
  if (family != Family::Complex) {
    FailureOr<AffineExpr> length = lengthOf(dims.size() - 1);
    if (failed(length))
      return failure();
    if (isFromReal) {
      // The half of an inverse is the conjugate of that of a forward transform, as the numbers are real.
      signal = transformDim(b, signal, dims.back(), halfSpectrum(*length), *length, Spectrum::Forward, scale);
      if (family == Family::FromHermitian)
        signal.parts = conjugateParts(b, signal.parts);
    } else {
      if (family == Family::Hermitian && !isReal(signal))
        signal.parts = conjugateParts(b, signal.parts);
      signal = transformDim(b, signal, dims.back(), *length, *length, Spectrum::InverseOfHalf, scale);
    }
  }
  if (isFromReal && failed(alongOthers()))
    return failure();
  return signal;
}

/// fft_fft and the like: along one dim.
NodeHandler transformOne(Family family, bool isForward) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Signal> signal = readSignal(c, "self");
    FailureOr<SpectrumScale> scale = readNorm(c, isForward);
    if (failed(signal) || failed(scale))
      return failure();
    FailureOr<int64_t> dim = ctx.axis(c.integer("dim", -1), signal->rank);
    if (failed(dim))
      return failure();
    AffineExpr length;
    if (c.has("n")) {
      FailureOr<AffineExpr> given = c.size("n");
      if (failed(given))
        return failure();
      length = *given;
    }
    FailureOr<Signal> y = transformDims(ctx, *signal, *dim, length, family, isForward, *scale);
    return failed(y) ? failure() : finish(ctx, *y);
  };
}

/// fft_fft2, fft_fftn and the like; `isOfTwo`: the last two dims are meant where none are named.
NodeHandler transformMany(Family family, bool isForward, bool isOfTwo) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Signal> signal = readSignal(c, "self");
    FailureOr<SpectrumScale> scale = readNorm(c, isForward);
    if (failed(signal) || failed(scale))
      return failure();
    SmallVector<AffineExpr> lengths;
    const bool hasLengths = c.has("s");
    if (hasLengths) {
      FailureOr<Sizes> given = c.sizes("s");
      if (failed(given))
        return failure();
      for (AffineExpr e : *given)
        lengths.push_back(getConstantSize(e) == -1 ? AffineExpr() : e);
    }
    SmallVector<int64_t> dims;
    if (std::optional<SmallVector<int64_t>> given = c.integers("dim"))
      dims = *given;
    else if (isOfTwo)
      dims = {-2, -1};
    else
      for (int64_t i = 0, n = hasLengths ? int64_t(lengths.size()) : signal->rank; i < n; ++i)
        dims.push_back(i - n);
    if (hasLengths && lengths.size() != dims.size())
      return ctx.invalid("argument \"s\" has " + Twine(lengths.size()) + " entries for " + Twine(dims.size()) +
                         " dims");
    lengths.resize(dims.size());
    FailureOr<SmallVector<int64_t>> axes = ctx.axes(dims, signal->rank);
    if (failed(axes))
      return failure();
    if (axes->empty()) {
      if (family != Family::Complex)
        return ctx.invalid("needs a dim to transform");
      return ctx.result(c.tensor("self"));
    }
    FailureOr<Signal> y = transformDims(ctx, *signal, *axes, lengths, family, isForward, *scale);
    return failed(y) ? failure() : finish(ctx, *y);
  };
}

/// _fft_c2c, _fft_r2c and _fft_c2r, which decompositions leave: the norm is a number (0 none, 1 by the root, 2 by the
/// length).
NodeHandler transformCore(Family family) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Signal> signal = readSignal(c, "self");
    std::optional<SmallVector<int64_t>> dims = c.integers("dim");
    if (failed(signal) || !dims || dims->empty())
      return ctx.invalid("needs constant dims");
    FailureOr<SmallVector<int64_t>> axes = ctx.axes(*dims, signal->rank);
    const int64_t norm = c.integer("normalization", 0);
    if (failed(axes) || norm < 0 || norm > 2)
      return ctx.invalid("has a normalization that is none of 0, 1, 2");
    SpectrumScale scale = norm == 0 ? SpectrumScale::None : norm == 1 ? SpectrumScale::ByRoot : SpectrumScale::ByLength;
    SmallVector<AffineExpr> lengths(axes->size());
    Family meant = family;
    bool isForward = family == Family::FromReal;
    if (family == Family::Complex)
      isForward = c.flag("forward", true);
    if (family == Family::ToReal) {
      FailureOr<AffineExpr> last = c.size("last_dim_size");
      if (failed(last))
        return failure();
      lengths.back() = *last;
    }
    if (family == Family::FromReal && !c.flag("onesided", true))
      meant = Family::Complex;
    FailureOr<Signal> y = transformDims(ctx, *signal, *axes, lengths, meant, isForward, scale);
    return failed(y) ? failure() : finish(ctx, *y);
  };
}

/// fft_fftshift (`isBack`: fft_ifftshift): each dim is turned by half of its size.
NodeHandler shift(bool isBack) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    FailureOr<SmallVector<int64_t>> axes = c.dims("dim", ctx.b.rankOf(*self));
    if (failed(axes))
      return failure();
    Value y = *self;
    for (int64_t axis : *axes) {
      const AffineExpr size = getSizes(y)[axis], half = simplifySize(size.floorDiv(2)),
                       rest = simplifySize(size - half);
      const AffineExpr first = isBack ? half : rest;
      Value head = ctx.b.sliceDim(y, axis, ctx.b.size(0), first);
      Value tail = ctx.b.sliceDim(y, axis, first, simplifySize(size - first));
      y = ctx.b.concat({tail, head}, axis);
    }
    return ctx.result(y);
  };
}

/// fft_fftfreq and fft_rfftfreq.
NodeHandler frequencies(bool isHalf) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<AffineExpr> n = c.size("n");
    FailureOr<Type> type = c.dtype(c.defaultFloat());
    if (failed(n) || failed(type))
      return failure();
    std::optional<int64_t> count = getConstantSize(*n);
    if (!count)
      return ctx.unsupported("of an unknown number of elements is not supported");
    if (*count < 1)
      return ctx.invalid("n is " + Twine(*count) + "; it must be 1 or more");
    if (!isa<FloatType>(*type))
      return ctx.unsupported("of another type than floats is not supported");
    Sizes sizes{isHalf ? halfSpectrum(*n) : *n};
    Value i = b.iota(b.getI64Type(), sizes, 0);
    if (!isHalf)
      i = b.select(b.compare(CompareKind::GE, i, double((*count + 1) / 2)), b.binary<SubOp>(i, double(*count)), i);
    return ctx.result(b.binary<MulOp>(b.convert(i, *type), 1 / (double(*count) * c.number("d", 1))));
  };
}

//===--- frames ---------------------------------------------------------------------------------------------------===//

/// The window of n_fft elements: what is given lies in the middle, or ones. Null if it is one everywhere.
FailureOr<Value> readFrameWindow(Call &c, Type type, int64_t count, int64_t given) {
  PrimBuilder &b = c.b;
  if (given < 1 || given > count)
    return c.ctx.invalid("win_length is " + Twine(given) + "; it must lie in [1, n_fft], which is " + Twine(count));
  Value window = c.tensor("window");
  if (!window && given == count)
    return Value();
  if (!window)
    window = b.splat(type, {b.size(given)}, 1);
  if (b.isComplex(window))
    return LogicalResult(c.ctx.unsupported("with a complex window is not supported"));
  if (b.rankOf(window) != 1)
    return LogicalResult(c.ctx.invalid("takes a window of rank 1, but got " + describe(window)));
  FailureOr<Value> fitting = c.ctx.castSizes(b.convert(window, type), {b.size(given)});
  if (failed(fitting) || given == count)
    return fitting;
  return b.pad(*fitting, b.scalar(type, 0), {b.size((count - given) / 2)}, {b.size(count)});
}

struct Frames {
  int64_t count, hop, window; ///< elements of a frame, and from one to the next; elements of the window
};

FailureOr<Frames> readFrames(Call &c) {
  Frames frames;
  frames.count = c.integer("n_fft", 0);
  if (frames.count < 1)
    return c.ctx.invalid("n_fft is " + Twine(frames.count) + "; it must be 1 or more");
  frames.hop = c.integer("hop_length", frames.count / 4);
  frames.window = c.integer("win_length", frames.count);
  if (frames.hop < 1)
    return c.ctx.invalid("hop_length is " + Twine(frames.hop) + "; it must be 1 or more");
  return frames;
}

/// A signal [B, L, parts] that is continued by `count` elements to both sides.
FailureOr<Value> continueSignal(NodeContext &ctx, Value x, int64_t count, StringRef mode) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(x);
  const AffineExpr length = sizes[1], total = simplifySize(length + 2 * count);
  if (mode == "constant") {
    sizes[1] = total;
    return b.pad(x, b.scalar(b.elementOf(x), 0), {b.size(0), b.size(count), b.size(0)}, sizes);
  }
  Type i64 = b.getI64Type();
  Sizes row{total};
  auto all = [&](AffineExpr e) { return b.broadcastTo(b.sizeValue(simplifySize(e)), row); };
  Value index = b.binary<SubOp>(b.iota(i64, row, 0), double(count));
  if (mode == "reflect") {
    if (failed(ctx.require(CompareKind::LE, b.size(count + 1), length, "a signal of more than n_fft / 2 elements")))
      return failure();
    index = b.unary<AbsOp>(index);
    index = b.sub(all(length - 1), b.unary<AbsOp>(b.sub(all(length - 1), index)));
  } else if (mode == "replicate") {
    if (failed(ctx.require(CompareKind::LE, b.size(1), length, "a signal of 1 or more elements")))
      return failure();
    index = b.min(b.max(index, b.splatLike(index, 0)), all(length - 1));
  } else if (mode == "circular") {
    if (failed(ctx.require(CompareKind::LE, b.size(count), length, "a signal of n_fft / 2 or more elements")))
      return failure();
    Value isBefore = b.compare(CompareKind::LT, index, 0), isBehind = b.compare(CompareKind::GE, index, all(length));
    index = b.select(isBefore, b.add(index, all(length)), b.select(isBehind, b.sub(index, all(length)), index));
  } else {
    return ctx.invalid("pad_mode is \"" + mode +
                       "\"; it may be \"constant\", \"reflect\", \"replicate\" or \"circular\"");
  }
  return Value(GatherOp::create(b, x, index, 1));
}

/// stft.default and stft.center.
NodeHandler shortTime(bool hasCenter) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Signal> signal = readSignal(c, "self");
    FailureOr<Frames> frames = readFrames(c);
    if (failed(signal) || failed(frames))
      return failure();
    if (c.flag("align_to_window"))
      return ctx.unsupported("with align_to_window is not supported");
    if (signal->rank != 1 && signal->rank != 2)
      return ctx.invalid("takes a signal of rank 1 or 2, but got " + describe(c.tensor("self")));
    Value x = signal->rank == 1 ? b.unsqueeze(signal->parts, 0) : signal->parts;
    if (hasCenter && c.flag("center", true)) {
      FailureOr<Value> longer = continueSignal(ctx, x, frames->count / 2, ctx.getString("pad_mode", "reflect"));
      if (failed(longer))
        return failure();
      x = *longer;
    }
    const bool isOfReal = isReal(*signal);
    const Sizes sizes = getSizes(x);
    if (failed(ctx.require(CompareKind::LE, b.size(frames->count), sizes[1], "a signal of n_fft or more elements")))
      return failure();
    FailureOr<Value> window = readFrameWindow(c, b.elementOf(x), frames->count, frames->window);
    if (failed(window))
      return failure();
    const bool isHalf = c.flag("onesided", isOfReal);
    if (isHalf && !isOfReal)
      return ctx.invalid("gives half of a spectrum of complex numbers, which does not mirror itself");
    const AffineExpr length = b.size(frames->count);
    const AffineExpr steps = simplifySize((sizes[1] - frames->count).floorDiv(frames->hop) + 1);
    Sizes grid{steps, length};
    Value start = b.binary<MulOp>(b.iota(b.getI64Type(), grid, 0), double(frames->hop));
    Value framed = GatherOp::create(b, x, b.add(start, b.iota(b.getI64Type(), grid, 1)), 1); // [B, steps, n_fft, parts]
    if (*window)
      framed = b.mul(framed, b.broadcastInDims(*window, getSizes(framed), {2}));
    const AffineExpr outputs = isHalf ? halfSpectrum(length) : length;
    Signal y = transformDim(b, {framed, 3}, 2, outputs, length, Spectrum::Forward,
                            c.flag("normalized") ? SpectrumScale::ByRoot : SpectrumScale::None);
    Value turned = b.transpose(y.parts, {0, 2, 1, 3});
    if (signal->rank == 1)
      turned = b.take(turned, 0, 0);
    // PyTorch asks for return_complex unless it is given complex numbers.
    return ctx.result(c.flag("return_complex", !isOfReal) ? b.asComplex(turned) : turned);
  };
}

/// Frames [B, F, n] that begin `hop` elements apart, added up: [B, n + hop (F - 1)].
Value addFrames(PrimBuilder &b, Value frames, int64_t count, int64_t hop) {
  const Sizes sizes = getSizes(frames);
  // Each frame in pieces of `hop` elements; piece j of frame f belongs to piece f + j of the sum.
  const int64_t pieces = (count + hop - 1) / hop;
  Value zero = b.scalar(b.elementOf(frames), 0);
  Value whole = b.pad(frames, zero, Sizes(3, b.size(0)), {sizes[0], sizes[1], b.size(pieces * hop)});
  Value cut = b.reshape(whole, {sizes[0], sizes[1], b.size(pieces), b.size(hop)});
  const AffineExpr rows = simplifySize(sizes[1] + (pieces - 1));
  Value sum;
  for (int64_t j = 0; j < pieces; ++j) {
    Value piece = b.pad(b.take(cut, 2, j), zero, {b.size(0), b.size(j), b.size(0)}, {sizes[0], rows, b.size(hop)});
    sum = sum ? b.add(sum, piece) : piece;
  }
  Value flat = b.reshape(sum, {sizes[0], simplifySize(rows * hop)});
  return b.sliceDim(flat, 1, b.size(0), simplifySize((sizes[1] - 1) * hop + count));
}

LogicalResult inverseShortTime(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  FailureOr<Frames> frames = readFrames(c);
  if (failed(self) || failed(frames))
    return failure();
  if (!b.isComplex(*self))
    return ctx.invalid("takes complex numbers, but got " + describe(*self));
  if (c.flag("return_complex"))
    return ctx.unsupported("with return_complex is not supported");
  constexpr int64_t kMostPieces = 1024;
  if ((frames->count + frames->hop - 1) / frames->hop > kMostPieces)
    return ctx.unsupported("with more than " + Twine(kMostPieces) + " frames that overlap is not supported");
  const int64_t rank = b.rankOf(*self);
  if (rank != 2 && rank != 3)
    return ctx.invalid("takes a spectrum of rank 2 or 3, but got " + describe(*self));
  Value parts = b.asParts(*self);
  if (rank == 2)
    parts = b.unsqueeze(parts, 0);
  const Sizes sizes = getSizes(parts); // [B, bins, F, 2]
  const AffineExpr length = b.size(frames->count), half = halfSpectrum(length);
  const bool isHalf = c.flag("onesided", getConstantSize(sizes[1]) != frames->count);
  if (failed(ctx.requireEqual(sizes[1], isHalf ? half : length, "as many frequencies as n_fft has")) ||
      failed(ctx.require(CompareKind::LE, b.size(1), sizes[2], "1 or more frames")))
    return failure();
  Type type = b.elementOf(parts);
  FailureOr<Value> window = readFrameWindow(c, type, frames->count, frames->window);
  if (failed(window))
    return failure();
  Signal spectrum{b.transpose(parts, {0, 2, 1, 3}), 3};
  Signal y = transformDim(b, spectrum, 2, length, length, isHalf ? Spectrum::InverseOfHalf : Spectrum::Inverse,
                          c.flag("normalized") ? SpectrumScale::ByRoot : SpectrumScale::ByLength);
  Value real = b.take(y.parts, 3, 0); // [B, F, n]
  const Sizes framed = getSizes(real);
  Value shape = *window ? *window : b.splat(type, {length}, 1);
  Value sum = addFrames(b, b.mul(real, b.broadcastInDims(shape, framed, {2})), frames->count, frames->hop);
  Sizes one{b.size(1), framed[1], framed[2]};
  Value envelope = addFrames(b, b.broadcastInDims(b.mul(shape, shape), one, {2}), frames->count, frames->hop);
  // What the padding of the forward transform had added goes.
  const int64_t skipped = c.flag("center", true) ? frames->count / 2 : 0;
  const AffineExpr all = getSizes(sum)[1];
  AffineExpr wanted = simplifySize(all - 2 * skipped), kept = wanted;
  if (c.has("length")) {
    FailureOr<AffineExpr> given = c.size("length");
    if (failed(given))
      return failure();
    wanted = *given;
    // Beyond the last frame there is nothing.
    const AffineExpr available = simplifySize(all - skipped);
    auto [low, high] = b.bounds(simplifySize(wanted - available));
    if (low > 0)
      kept = available;
    else if (high <= 0 || succeeded(ctx.require(CompareKind::LE, wanted, available, "a length within its frames")))
      kept = wanted;
    else
      return failure();
  }
  if (failed(ctx.require(CompareKind::LE, b.size(1), kept, "frames that leave elements")))
    return failure();
  sum = b.sliceDim(sum, 1, b.size(skipped), kept);
  envelope = b.sliceDim(envelope, 1, b.size(skipped), kept);
  Value least = b.reduce(ReduceKind::Min, envelope, {0, 1});
  b.guard(b.convert(b.compare(CompareKind::GT, least, 1e-11), b.getI64Type()), 1,
          "node \"" + graph::getNodeName(b.getLoc()) + "\": the windows of its frames add up to 0 somewhere");
  Value result = b.div(sum, b.broadcastTo(envelope, getSizes(sum)));
  if (kept != wanted) {
    Sizes target = getSizes(result);
    target[1] = wanted;
    result = b.pad(result, b.scalar(type, 0), Sizes(2, b.size(0)), target);
  }
  return ctx.result(rank == 2 ? b.take(result, 0, 0) : result);
}

//===--- windows --------------------------------------------------------------------------------------------------===//

/// Element i of a window whose last element is number `last`, of a function of i / last.
using WindowShape = double (*)(double position, double alpha, double beta);

double cosineWindow(double position, double alpha, double beta) { return alpha - beta * std::cos(2 * M_PI * position); }
double blackmanWindow(double position, double, double) {
  return 0.42 - 0.5 * std::cos(2 * M_PI * position) + 0.08 * std::cos(4 * M_PI * position);
}
double triangleWindow(double position, double, double) { return 1 - std::abs(2 * position - 1); }
double kaiserWindow(double position, double, double beta) {
  const double offset = 2 * position - 1;
  beta = std::abs(beta); // the function is even; the library's takes no number below 0
  return std::cyl_bessel_i(0.0, beta * std::sqrt(std::max(0.0, 1 - offset * offset))) / std::cyl_bessel_i(0.0, beta);
}

/// hann_window and the like: constants.
NodeHandler makeWindow(WindowShape shape, double alpha, double beta) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<AffineExpr> length = c.size("window_length");
    FailureOr<Type> type = c.dtype(c.defaultFloat());
    if (failed(length) || failed(type))
      return failure();
    if (!isa<FloatType>(*type))
      return ctx.invalid("makes floats only");
    constexpr int64_t kMost = 1 << 24;
    std::optional<int64_t> count = getConstantSize(*length);
    if (!count || *count > kMost)
      return ctx.unsupported("of an unknown length, or of more than 2^24 elements, is not supported");
    if (*count < 0)
      return ctx.invalid("window_length is " + Twine(*count) + "; it must not be negative");
    // Where e^beta is no f64 any more, the quotient is none either.
    const double steepness = c.number("beta", beta);
    if (shape == kaiserWindow && !(std::abs(steepness) <= 700))
      return ctx.unsupported("with beta = " + llvm::formatv("{0}", steepness).str() +
                             " is not supported; it may be -700 to 700");
    // A periodic one lacks the last element of a longer one.
    const int64_t last = c.flag("periodic", true) ? *count : *count - 1;
    SmallVector<double> values(*count, 1.0);
    for (int64_t i = 0; *count > 1 && i < *count; ++i)
      values[i] = shape(double(i) / double(last), c.number("alpha", alpha), steepness);
    auto constant = RankedTensorType::get({*count}, b.getF64Type());
    Value window =
        prim::ConstantOp::create(b, cast<TypedAttr>(DenseElementsAttr::get(constant, ArrayRef<double>(values))));
    return ctx.result(b.convert(window, *type));
  };
}

//===--- complex numbers ------------------------------------------------------------------------------------------===//

LogicalResult viewAsReal(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (!ctx.b.isComplex(*self))
    return ctx.invalid("takes complex numbers, but got " + describe(*self));
  return ctx.result(ctx.b.asParts(*self));
}

LogicalResult viewAsComplex(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  const Sizes sizes = getSizes(*self);
  if (sizes.empty() || getConstantSize(sizes.back()) != 2)
    return ctx.invalid("takes a last dim of 2, but got " + describe(*self));
  if (!ctx.b.elementOf(*self).isF32() && !ctx.b.elementOf(*self).isF64())
    return ctx.unsupported("of half precision is not supported; complex numbers are of f32 and f64");
  return ctx.result(ctx.b.asComplex(*self));
}

/// real, and (`isImaginary`) imag.
NodeHandler partOf(bool isImaginary) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    if (!ctx.b.isComplex(*self))
      return isImaginary ? ctx.invalid("takes complex numbers, but got " + describe(*self)) : ctx.result(*self);
    return ctx.result(ctx.b.take(ctx.b.asParts(*self), ctx.b.rankOf(*self), isImaginary));
  };
}

/// Of values there is only one form: nothing waits to be negated or conjugated.
LogicalResult resolved(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  return failed(self) ? failure() : ctx.result(*self);
}

LogicalResult conjugate(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  return ctx.result(ctx.b.isComplex(*self) ? ctx.b.asComplex(conjugateParts(ctx.b, ctx.b.asParts(*self))) : *self);
}

/// complex, and (`isPolar`) polar.
NodeHandler makeComplex(StringRef first, StringRef second, bool isPolar) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> x = c.floats(first), y = c.floats(second);
    if (failed(x) || failed(y))
      return failure();
    Type type = b.elementOf(*x);
    if (type != b.elementOf(*y) || (!type.isF32() && !type.isF64()))
      return ctx.unsupported("of " + describe(*x) + " and " + describe(*y) +
                             " is not supported; complex numbers are made of two of f32 or of f64");
    Value operands[] = {*x, *y};
    if (failed(ctx.broadcastTogether(operands)))
      return failure();
    if (isPolar)
      return ctx.result(joinComplex(b, b.mul(operands[0], b.unary<CosOp>(operands[1])),
                                    b.mul(operands[0], b.unary<SinOp>(operands[1]))));
    return ctx.result(joinComplex(b, operands[0], operands[1]));
  };
}

LogicalResult angle(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (b.isComplex(*self)) {
    Value parts = b.asParts(*self);
    const int64_t rank = b.rankOf(*self);
    return ctx.result(b.binary<Atan2Op>(b.take(parts, rank, 1), b.take(parts, rank, 0)));
  }
  // Of real numbers: pi below 0, also NaN stays.
  if (isa<IntegerType>(b.elementOf(*self)))
    self = b.convert(*self, c.defaultFloat());
  Value isNegative = b.compare(CompareKind::LT, *self, 0), isNan = b.compare(CompareKind::NE, *self, *self);
  Value half = b.select(isNegative, b.splatLike(*self, M_PI), b.splatLike(*self, 0));
  return ctx.result(b.select(isNan, *self, half));
}

} // namespace

void tc::populateATenSpectral(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
    onOp.takeComplex(ComplexUse::Moved, {type});
  };
  const struct {
    const char *name;
    Family family;
    bool isForward;
  } kinds[] = {{"fft", Family::Complex, true},    {"ifft", Family::Complex, false},
               {"rfft", Family::FromReal, true},  {"irfft", Family::ToReal, false},
               {"hfft", Family::Hermitian, true}, {"ihfft", Family::FromHermitian, false}};
  for (const auto &kind : kinds) {
    const std::string name = std::string("fft_") + kind.name;
    on(name + ".default", transformOne(kind.family, kind.isForward));
    on(name + "2.default", transformMany(kind.family, kind.isForward, /*isOfTwo=*/true));
    on(name + "n.default", transformMany(kind.family, kind.isForward, /*isOfTwo=*/false));
  }
  on("_fft_c2c.default", transformCore(Family::Complex));
  on("_fft_r2c.default", transformCore(Family::FromReal));
  on("_fft_c2r.default", transformCore(Family::ToReal));
  on("fft_fftshift.default", shift(/*isBack=*/false));
  on("fft_ifftshift.default", shift(/*isBack=*/true));
  on("fft_fftfreq.default", frequencies(/*isHalf=*/false), 0);
  on("fft_rfftfreq.default", frequencies(/*isHalf=*/true), 0);
  on("stft.default", shortTime(/*hasCenter=*/false));
  on("stft.center", shortTime(/*hasCenter=*/true));
  on("istft.default", inverseShortTime);
  for (StringRef suffix : {".default", "_copy.default"}) {
    on(("view_as_real" + suffix).str(), viewAsReal);
    on(("view_as_complex" + suffix).str(), viewAsComplex);
  }
  on("real.default", partOf(/*isImaginary=*/false));
  on("imag.default", partOf(/*isImaginary=*/true));
  for (StringRef name : {"resolve_conj.default", "resolve_neg.default"})
    on(name, resolved);
  for (StringRef name : {"conj.default", "_conj.default", "_conj_copy.default", "_conj_physical.default"})
    on(name, conjugate);
  on("polar.default", makeComplex("abs", "angle", /*isPolar=*/true), 2);
  on("complex.default", makeComplex("real", "imag", /*isPolar=*/false), 2);
  on("angle.default", angle);
  const struct {
    const char *name;
    WindowShape shape;
    double alpha, beta;
    std::vector<const char *> overloads;
  } windows[] = {
      {"hann", cosineWindow, 0.5, 0.5, {"default", "periodic"}},
      {"hamming", cosineWindow, 0.54, 0.46, {"default", "periodic", "periodic_alpha", "periodic_alpha_beta"}},
      {"blackman", blackmanWindow, 0, 0, {"default", "periodic"}},
      {"bartlett", triangleWindow, 0, 0, {"default", "periodic"}},
      {"kaiser", kaiserWindow, 0, 12, {"default", "periodic", "beta"}}};
  for (const auto &window : windows)
    for (const char *overload : window.overloads)
      on((Twine(window.name) + "_window." + overload).str(), makeWindow(window.shape, window.alpha, window.beta), 0);
}
