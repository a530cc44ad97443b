//===- FftPlan.cpp - how a Fourier transform of known length is cut into passes -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/FftPlan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <optional>

using namespace tc::codegen;

namespace {

constexpr int64_t kMostRadix = 16;

int64_t leastFactor(int64_t n) {
  int64_t factor = 2;
  while (factor * factor <= n && n % factor)
    ++factor;
  return factor * factor <= n ? factor : n;
}

/// Instructions of a butterfly of so many elements.
double butterflyOperations(int64_t radix) {
  if (radix <= 1)
    return 0;
  const int64_t factor = leastFactor(radix), rest = radix / factor;
  if (rest == 1)
    return factor == 2 ? 4 : double((factor - 1) * (factor + 2));
  return double(rest) * butterflyOperations(factor) + double(factor) * butterflyOperations(rest) +
         3 * double((factor - 1) * (rest - 1));
}

struct Planner {
  int64_t length, width;
  bool alongElements;
  int64_t most;

  struct Step {
    double cycles;
    int64_t radix; // 0: there is none
  };
  llvm::DenseMap<int64_t, Step> known = llvm::DenseMap<int64_t, Step>();

  double cyclesOf(int64_t radix, int64_t m, int64_t s) const {
    // Loads and stores, and the factors of all but the last pass.
    double vector = butterflyOperations(radix) / 2 + 3 * double(radix) + (m > 1 ? 3 * double(radix - 1) : 0);
    if (!alongElements)
      return vector * double(m * s);
    if (s > 1)
      return vector * double(m * int64_t(llvm::divideCeil(s, width))) + double(m);
    // Turned in registers.
    vector += 2 * double(llvm::divideCeil(radix, width)) * double(width) * std::log2(double(width));
    return vector * double(llvm::divideCeil(m, width));
  }

  /// The best way on where transforms of `rest` elements are left.
  Step bestOf(int64_t rest) {
    if (rest == 1)
      return {0, 0};
    if (auto found = known.find(rest); found != known.end())
      return found->second;
    std::optional<Step> best;
    for (int64_t radix = 2; radix <= kMostRadix; ++radix) {
      const bool isPrime = leastFactor(radix) == radix;
      if (rest % radix || (isPrime ? radix > kLargestPrime : radix > most))
        continue;
      if (alongElements && radix == length)
        continue; // its lanes would be a single one
      const double cycles = cyclesOf(radix, rest / radix, length / rest) + bestOf(rest / radix).cycles;
      if (!best || cycles <= best->cycles)
        best = Step{cycles, radix};
    }
    const Step step = best.value_or(Step{HUGE_VAL, 0});
    known[rest] = step;
    return step;
  }
};

/// The transform of x, in place, of any smooth length.
void transform(std::vector<HostComplex> &x) {
  const int64_t count = int64_t(x.size());
  if (count == 1)
    return;
  const int64_t factor = leastFactor(count), rest = count / factor;
  std::vector<std::vector<HostComplex>> parts(factor, std::vector<HostComplex>(rest));
  for (int64_t n = 0; n < count; ++n)
    parts[n % factor][n / factor] = x[n];
  for (std::vector<HostComplex> &part : parts)
    transform(part);
  std::vector<HostComplex> roots(count);
  for (int64_t j = 0; j < count; ++j)
    roots[j] = rootOfUnity(j, count);
  for (int64_t k = 0; k < count; ++k) {
    x[k] = 0;
    for (int64_t i = 0; i < factor; ++i)
      x[k] += parts[i][k % rest] * roots[i * k % count];
  }
}

} // namespace

bool tc::codegen::isSmooth(int64_t length) {
  for (int64_t prime : {2, 3, 5, 7, 11, 13})
    while (length % prime == 0)
      length /= prime;
  return length == 1;
}

FftPlan tc::codegen::planFft(int64_t length, int64_t width, bool alongElements, int64_t radix) {
  Planner planner{length, width, alongElements, radix};
  FftPlan plan;
  if (length == 1)
    plan.passes.push_back({1, 1, 1, 0});
  plan.cycles = planner.bestOf(length).cycles;
  for (int64_t rest = length; rest > 1;) {
    const int64_t step = planner.bestOf(rest).radix;
    if (!step)
      return {};
    rest /= step;
    plan.passes.push_back({step, rest, length / rest / step, plan.tableSize});
    if (rest > 1)
      plan.tableSize += (step - 1) * rest;
  }
  return plan;
}

int64_t tc::codegen::chooseConvolution(int64_t length, int64_t width, int64_t radix) {
  const int64_t least = 2 * length - 1;
  int64_t best = 0;
  double cycles = HUGE_VAL;
  // Whole vectors in all passes.
  for (int64_t power = 16; power / 2 < least; power *= 2)
    for (int64_t odd : {1, 3, 5, 7, 9, 15})
      if (const int64_t count = power * odd; count >= least && count < 2 * least + 32)
        if (const FftPlan plan = planFft(count, width, /*alongElements=*/true, radix);
            !plan.passes.empty() && plan.cycles < cycles) {
          best = count;
          cycles = plan.cycles;
        }
  return best;
}

HostComplex tc::codegen::rootOfUnity(int64_t numerator, int64_t denominator) {
  const long double angle = -2 * 3.14159265358979323846264338327950288L * (long double)(numerator % denominator);
  return std::polar(1.0L, angle / (long double)(denominator));
}

std::vector<HostComplex> tc::codegen::makeTwiddles(const FftPlan &plan) {
  std::vector<HostComplex> table;
  table.reserve(plan.tableSize);
  for (const FftPass &pass : plan.passes)
    if (pass.m > 1)
      for (int64_t k = 1; k < pass.radix; ++k)
        for (int64_t p = 0; p < pass.m; ++p)
          table.push_back(rootOfUnity(p * k, pass.radix * pass.m));
  return table;
}

std::vector<HostComplex> tc::codegen::makeChirp(int64_t length) {
  std::vector<HostComplex> chirp(length);
  for (int64_t n = 0; n < length; ++n)
    chirp[n] = rootOfUnity(n * n % (2 * length), 2 * length);
  return chirp;
}

std::vector<HostComplex> tc::codegen::makeChirpSpectrum(int64_t length, int64_t convolution) {
  const std::vector<HostComplex> chirp = makeChirp(length);
  std::vector<HostComplex> wrapped(convolution);
  for (int64_t n = 0; n < length; ++n)
    wrapped[n] = wrapped[(convolution - n) % convolution] = std::conj(chirp[n]);
  transform(wrapped);
  for (HostComplex &element : wrapped)
    element /= (long double)(convolution);
  return wrapped;
}
