//===- SeededBlob.cpp - numbers that stand for weights ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/SeededBlob.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tc;

namespace {

struct Format {
  StringLiteral name;
  /// As many bits as the type holds exactly.
  unsigned bytes, bits;
  const fltSemantics &(*getSemantics)();
};

/// In the order of SeededType.
constexpr Format kFormats[] = {{"f16", 2, 11, APFloat::IEEEhalf},
                               {"bf16", 2, 8, APFloat::BFloat},
                               {"f32", 4, 24, APFloat::IEEEsingle},
                               {"f64", 8, 24, APFloat::IEEEdouble}};

} // namespace

std::string tc::getSeededKey(uint64_t seed, SeededType type, uint64_t bytes) {
  return ("seed_" + Twine(seed) + "_" + kFormats[unsigned(type)].name + "_" + Twine(bytes)).str();
}

std::optional<std::vector<char>> tc::makeSeededBytes(StringRef key, uint64_t bytes) {
  uint64_t seed = 0, named = 0;
  if (!key.consume_front("seed_") || key.consumeInteger(10, seed) || !key.consume_front("_"))
    return std::nullopt;
  auto [name, number] = key.split('_');
  const auto *format = find_if(kFormats, [name = name](const Format &known) { return known.name == name; });
  if (format == std::end(kFormats) || number.getAsInteger(10, named) || named != bytes || bytes % format->bytes)
    return std::nullopt;
  std::vector<char> result(bytes);
  const int64_t scale = int64_t(1) << format->bits;
  uint64_t state = seed * 0x9E3779B97F4A7C15u;
  for (uint64_t at = 0; at < bytes; at += format->bytes) {
    // SplitMix64: Steele et al., Fast splittable pseudorandom number generators, 2014.
    uint64_t word = state += 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    word ^= word >> 31;
    APFloat value(double(int64_t(word >> (64 - format->bits)) * 2 - scale + 1) / double(scale));
    bool lost = false;
    value.convert(format->getSemantics(), APFloat::rmNearestTiesToEven, &lost);
    const uint64_t raw = value.bitcastToAPInt().getZExtValue();
    for (unsigned i = 0; i < format->bytes; ++i)
      result[at + i] = char(raw >> (8 * i));
  }
  return result;
}
