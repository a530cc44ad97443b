//===- Preferences.h - what the kernels of a machine do well ------------------------------------------*- C++ -*-===//
//
// Fusion, the dims of regions and groups of launches are weighed before schedules are chosen. What of that differs
// between machines stands here, and nowhere else in these passes: how many elements fill a vector, what a gather costs,
// what a fork of threads does. Numbers without a source in the machine are measured: DECISIONS.md.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PREFERENCES_H
#define TC_TRANSFORMS_PREFERENCES_H

#include "tc/Dialect/Machine/IR/Machine.h"

namespace tc {

struct Preferences {
  /// f32 lanes of the widest vectors that code is made for, and of the narrowest.
  int64_t lanes, leastLanes;

  //===--- movement -----------------------------------------------------------------------------------------------===//

  /// Reads of one element whose neighbours lie apart, and reads of all, from which on a launch that turns them once is
  /// worth it.
  int64_t gatheredReads = 8, gatheredInAll = 16 * 1024;
  /// Elements for each that is given, of gathered slices, that are read from a copy.
  int64_t sliceReads = 16;
  /// Gathers one after another in a region at positions that those before give: each waits for the one before, and a
  /// processor's window holds too few of longer chains to fill the time.
  int gathersInTurn = 2;
  /// Elements of a concat from which on a launch of its own is worth it for parts that fill no vector.
  double concatElements = 4096;

  //===--- convolutions and windows -------------------------------------------------------------------------------===//

  /// Channels of a convolution's result so few that lanes run along the lines of the image: a vector of them would have
  /// a quarter of its lanes in use at most.
  int64_t lineChannels;
  /// The same between images that lie channels first: of the result, of the input, and the least length of a line.
  int64_t lineChannelsFirst = 64, lineSourcesFirst = 4, leastLine = 64;
  /// An element is read for each position of the window and each block of output channels: from this number of channels
  /// on gathers cost more than turning the input once, and of patches that do not overlap at any number, if the window
  /// has so many positions.
  int64_t transposedChannels, patchPositions;

  //===--- rows ---------------------------------------------------------------------------------------------------===//

  /// Fewer rows than `leastRows`, each of `longRow` elements or more, are reduced by kernels of their own, which all of
  /// the machine takes part in, before others read the results: a row is one task where both are one kernel.
  int64_t leastRows = 0, longRow = 0;

  //===--- launches -----------------------------------------------------------------------------------------------===//

  /// Ranges that keep the threads of a small machine busy; a launch or a group that has them needs no company. The same
  /// for launches in steps.
  int64_t enoughRanges = 8, enoughStepRanges = 64;
  /// Work below which a fork costs more than it gains: it takes 2 us where the pool's threads are awake, 30 where not.
  int64_t forkFlops = 4000000, forkBytes = 1 << 20;
  /// The same of a single task, which nobody shares without company: a recurrent layer of a small batch.
  int64_t forkTaskFlops = 2000000;
  /// How far a member of a group is looked for: every value that is computed earlier lives longer.
  unsigned groupWindow = 48;

  /// Of a target whose variants have the vectors between `narrowest` and `widest`.
  Preferences(machine::VectorUnit narrowest, machine::VectorUnit widest);
  /// Those that all variants of the target share, as one plan serves them. GPUs have those of CPUs so far but for rows:
  /// no kernel of theirs has been measured with others.
  static Preferences get(machine::TargetKind target);
};

} // namespace tc

#endif // TC_TRANSFORMS_PREFERENCES_H
