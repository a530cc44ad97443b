//===- Suggest.cpp - the name that was meant ----------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/Suggest.h"

#include <algorithm>
#include <cctype>

/// Edits between two words, swapped neighbours counting once; beyond `most` only that it is more.
static size_t countEdits(const std::string &a, const std::string &b, size_t most) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most)
    return most + 1;
  auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + !same(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string tc::findNearest(const std::string &word, const std::vector<std::string> &names) {
  // No one mistypes a long name, and comparing hostile ones would take their length squared.
  if (word.empty() || word.size() > 100)
    return "";
  // A third of the letters: beyond, it is another word.
  size_t most = std::min<size_t>((word.size() + 1) / 3, 3);
  std::string nearest;
  for (const std::string &name : names)
    if (size_t edits = countEdits(word, name, most); edits <= most && !name.empty()) {
      nearest = name;
      if (edits == 0)
        break;
      most = edits - 1;
    }
  // Or it is cut short.
  for (const std::string &name : names)
    if (nearest.empty() && word.size() >= 3 && name.compare(0, word.size(), word) == 0)
      nearest = name;
  return nearest;
}

std::string tc::didYouMean(const std::string &word, const std::vector<std::string> &names) {
  const std::string nearest = findNearest(word, names);
  return nearest.empty() ? "" : " (did you mean \"" + nearest + "\"?)";
}
