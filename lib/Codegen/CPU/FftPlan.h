//===- FftPlan.h - how a Fourier transform of known length is cut into passes ---------------------------*- C++ -*-===//
//
// A transform of N = r m elements by the Stockham algorithm, decimation in frequency: with w = exp(-2 pi i / N)
//
//   y[r p + k] = w^(p k) * sum over j < r of x[p + m j] * exp(-2 pi i j k / r)      for p < m, k < r
//
// after which what remains are r transforms of m elements, the elements of each r apart. A pass does this for s
// transforms whose elements lie beside each other: x[(p + m j) s + q], q < s. The first pass has s = 1 (or as many as
// there are lanes), the next one s times r; the result lies in natural order.
//
// Source: Van Loan, "Computational Frameworks for the Fast Fourier Transform", section 1.7.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_FFTPLAN_H
#define TC_LIB_CODEGEN_FFTPLAN_H

#include "llvm/ADT/SmallVector.h"

#include <complex>
#include <cstdint>
#include <vector>

namespace tc::codegen {

/// The largest prime radix.
inline constexpr int64_t kLargestPrime = 13;

struct FftPass {
  /// r, m and s of the head of this file.
  int64_t radix, m, s;
  /// Where the pass's factors w^(p k) begin in the table of all: element (k - 1) * m + p is that of p and k > 0. None
  /// for the last pass, in which p is 0.
  int64_t table;
};

struct FftPlan {
  llvm::SmallVector<FftPass> passes;
  int64_t tableSize = 0;
  /// Estimated cycles.
  double cycles = 0;
};

/// Whether no prime factor of `length` is larger than kLargestPrime.
bool isSmooth(int64_t length);
/// The cheapest passes for a transform of smooth length, on vectors of `width` elements. `alongElements`: lanes run
/// along the elements of one transform, in two passes at least, else along `width` transforms. `radix`: the largest
/// that is no prime.
FftPlan planFft(int64_t length, int64_t width, bool alongElements, int64_t radix);
/// The cheapest smooth length for a convolution of `length` elements.
int64_t chooseConvolution(int64_t length, int64_t width, int64_t radix);

using HostComplex = std::complex<long double>;

/// exp(-2 pi i numerator / denominator), for a denominator above 0.
HostComplex rootOfUnity(int64_t numerator, int64_t denominator);
/// The factors of all passes.
std::vector<HostComplex> makeTwiddles(const FftPlan &plan);
/// exp(-pi i n^2 / length) for n < length.
std::vector<HostComplex> makeChirp(int64_t length);
/// The transform, divided by `convolution`, of what the chirp is convolved with: its conjugates, wrapped around.
std::vector<HostComplex> makeChirpSpectrum(int64_t length, int64_t convolution);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_FFTPLAN_H
