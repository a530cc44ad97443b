//===- FftPasses.h - code of the passes of a Fourier transform ------------------------------------------*- C++ -*-===//
//
// FftPlan.h says what a pass is. Real and imaginary parts lie apart, in planes of the worker's scratch, of which a pass
// reads one pair and writes another. Lanes run along the elements of one transform, or (`batch`) along so many
// transforms whose elements lie beside each other. The first pass reads what the caller says, the last one gives its
// results to the caller.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_FFTPASSES_H
#define TC_LIB_CODEGEN_FFTPASSES_H

#include "CPU/FftPlan.h"
#include "CPU/MicroKernel.h"

namespace tc::codegen {

/// Vectors of real and imaginary parts.
struct ComplexVector {
  mlir::Value re, im;

  ComplexVector swapped() const { return {im, re}; }
};

/// Addresses of real and imaginary parts.
struct Planes {
  mlir::Value re, im;
};

/// Elements of a transform: those of `index`, of the transforms of `lane` where lanes run along transforms.
struct FftElements {
  Index index, lane;
  /// They are known to lie in [begin, end).
  int64_t begin = 0, end = INT64_MAX;
  /// i64: so many lanes are elements; null: all.
  mlir::Value valid;
};

class FftPasses {
public:
  using Load = std::function<ComplexVector(const FftElements &)>;
  using Store = std::function<void(const FftElements &, ComplexVector)>;

  /// `element`: f32 or f64. `batch`: transforms that lanes run along, a multiple of the width; 0: lanes run along
  /// elements.
  FftPasses(Emitter &e, mlir::Type element, int64_t batch) : e(e), element(element), batch(batch) {}

  /// Elements of planes more than the transform has, which the first pass may write.
  static constexpr int64_t kSlack = 16 * 16 + 16;

  Load from(Planes planes);
  Store to(Planes planes);

  /// All passes of a plan; the first one writes buffers[first], the others the buffer that they do not read.
  void emit(const FftPlan &plan, Planes twiddles, const Load &load, const Store &store, const Planes (&buffers)[2],
            unsigned first = 0);
  /// A length that the run knows: at least kLeastRunTime, whole vectors, and smooth.
  struct RunTimeLength {
    mlir::Value value, oddFactors; // primes other than 2, each as often as it divides the length
  };
  static constexpr int64_t kLeastRunTime = 16;
  /// `length` as one, and whether it is.
  std::pair<RunTimeLength, mlir::Value> factorize(mlir::Value length);
  /// The transform of the elements of buffers[0], with lanes along elements. The factors lie as forRunTimePasses says,
  /// and the roots of unity of a pass's radix from rootsOf(length, radix) on. Leaves the result in buffers[0], which
  /// may then be the other one.
  void emitRunTime(RunTimeLength length, Planes twiddles, Planes (&buffers)[2]);
  /// Calls body(radix, m, where its factors begin) for the passes that have factors.
  void forRunTimePasses(RunTimeLength length, llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value)> body);
  mlir::Value rootsOf(mlir::Value length, mlir::Value radix) { return e.add(length, e.mul(radix, e.i64(16))); }

  ComplexVector mul(ComplexVector x, ComplexVector y);
  ComplexVector conjugate(ComplexVector x) { return {x.re, negate(x.im)}; }
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value negate(mlir::Value x);
  /// All lanes are `value`.
  mlir::Value constant(double value);
  /// Elements of a table: one for all lanes, or one for each.
  ComplexVector loadTable(Planes table, const Index &index);
  /// The vector's lanes in reverse order.
  mlir::Value reverse(mlir::Value vector);
  /// Parts in turn, of any type, at `pointer` from element `offset` (i64) on. `valid`: so many lanes are stored; null:
  /// all.
  void storePairs(ComplexVector x, mlir::Value pointer, mlir::Value offset, mlir::Value valid);

  /// Bodies of loops are long enough: LLVM is not to unroll the loop around what is emitted now.
  void keepRolled() { disableUnrolling(e.builder().getInsertionBlock()->getParentOp()); }

private:
  /// A pass with lanes along the m first elements of its butterflies, as s is 1.
  void firstPass(int64_t radix, Extent m, Planes twiddles, const Load &load, Planes to);
  void pass(int64_t radix, Extent m, Extent s, Planes twiddles, const Load &load, const Store &store);
  /// A pass of an odd radix that only the run knows: each result is a loop over what it is the sum of.
  void oddPass(mlir::Value radix, mlir::Value m, mlir::Value s, Planes twiddles, Planes roots, Planes from, Planes to);
  /// Of a length that the run knows, with t factors 2: t less the bits of the first radix.
  mlir::Value bitsAfterFirstPass(mlir::Value length);
  /// The least odd prime up to kLargestPrime that divides `number`, or 1.
  mlir::Value leastOddFactor(mlir::Value number);
  /// Results of the first pass that lie beside each other are a vector.
  int64_t firstRadix() const { return e.width(); }
  static constexpr int64_t kNextRadix = 4;

  ComplexVector add(ComplexVector x, ComplexVector y) { return {add(x.re, y.re), add(x.im, y.im)}; }
  ComplexVector sub(ComplexVector x, ComplexVector y) { return {sub(x.re, y.re), sub(x.im, y.im)}; }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  /// The transform of a few elements in registers.
  llvm::SmallVector<ComplexVector> butterfly(llvm::ArrayRef<ComplexVector> x);
  llvm::SmallVector<ComplexVector> oddButterfly(llvm::ArrayRef<ComplexVector> x);
  /// x * exp(-2 pi i numerator / denominator).
  ComplexVector rotate(ComplexVector x, int64_t numerator, int64_t denominator);
  Planes offset(Planes planes, mlir::Value elements);

  Emitter &e;
  mlir::Type element;
  int64_t batch;
};

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_FFTPASSES_H
