//===- Suggest.h - the name that was meant --------------------------------------------------------------*- C++ -*-===//
//
// For messages about names that are not known: what is nearest to them among those that are. C++ alone, for all tools.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_SUGGEST_H
#define TC_SUPPORT_SUGGEST_H

#include <string>
#include <vector>

namespace tc {

/// The name that `word` was meant to be: few letters inserted, left out, changed or swapped, without regard to case.
/// The first of equally near ones; empty where none is near.
std::string findNearest(const std::string &word, const std::vector<std::string> &names);

/// ` (did you mean "name"?)`, or nothing where no name is near.
std::string didYouMean(const std::string &word, const std::vector<std::string> &names);

} // namespace tc

#endif // TC_SUPPORT_SUGGEST_H
