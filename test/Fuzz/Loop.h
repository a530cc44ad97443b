//===- Loop.h - inputs by number, each in a process that may die ----------------------------------------*- C++ -*-===//
//
// fuzzMain makes input i from random numbers of its own and gives it to a function, in a child process: what dies,
// hangs or answers wrongly is written down, kept, and the next child goes on behind it. The same numbers give the same
// inputs, so that `--from I --count 1` repeats one.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TEST_FUZZ_LOOP_H
#define TC_TEST_FUZZ_LOOP_H

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tc::fuzz {

using Random = std::mt19937_64;

/// A number below `count`, which is at least 1.
inline uint64_t pick(Random &random, uint64_t count) { return random() % count; }

/// A number that readers may not expect.
int64_t oddNumber(Random &random);
/// Changes, adds, drops or copies a few bytes.
void mutateBytes(std::string &bytes, Random &random);

enum class Answer { Taken, Refused, Wrong };

struct Target {
  /// Changes an input of the corpus; `others` are the whole corpus.
  std::function<void(std::string &input, const std::vector<std::string> &others, Random &random)> mutate;
  /// Reads it; `path` is a file that holds it. `why` says what is wrong with the answer.
  std::function<Answer(const std::string &input, const std::string &path, std::string &why)> take;
};

/// usage: PROGRAM TARGET --count N [--from I] [--seconds S] [--keep DIR] FILE|DIR...
/// Seconds: what one input may take (default 20). Exit status 0: each was taken, or refused with a sentence.
int fuzzMain(int argc, char **argv, const std::function<const Target *(const std::string &name)> &lookup);

} // namespace tc::fuzz

#endif // TC_TEST_FUZZ_LOOP_H
