//===- Preferences.cpp - what the kernels of a machine do well ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Transforms/Preferences.h"

#include <iterator>

using namespace tc;

Preferences::Preferences(machine::VectorUnit narrowest, machine::VectorUnit widest)
    : lanes(widest.width()), leastLanes(narrowest.width()), lineChannels(lanes / 4), transposedChannels(leastLanes),
      patchPositions(lanes) {}

Preferences Preferences::get(machine::TargetKind target) {
  Preferences result(*std::begin(machine::kVectorUnits), *std::prev(std::end(machine::kVectorUnits)));
  if (target == machine::TargetKind::Cuda) {
    // A quarter of the multiprocessors; what a block's registers hold.
    result.leastRows = 33;
    result.longRow = 32769;
  }
  return result;
}
