//===- CheckSizes.cpp - sizes on the command line -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CheckSizes.h"

#include "llvm/ADT/StringSet.h"

using namespace tc;
using llvm::StringRef;

std::string tc::driver::findSizeError(const CompileRequest &request) {
  llvm::StringSet<> names;
  for (const std::string &text : request.dims) {
    GraphToPrimOptions parsed;
    if (std::string conflict; !parseDimOption(text, parsed, &conflict))
      return "--dim " + text + (conflict.empty() ? " is not of the form " + kDimForms.str() : ": " + conflict);
    if (StringRef name = parsed.dims.begin()->first; !names.insert(name).second)
      return ("--dim gives \"" + name + "\" twice; give each dim one size or range").str();
  }
  names.clear();
  for (const std::string &text : request.shapes) {
    GraphToPrimOptions parsed;
    if (!parseShapeOption(text, parsed))
      return "--shape " + text +
             " is not of the form INPUT=SIZE,SIZE,... or, with the element type, INPUT=SIZE,SIZE,...:f32";
    if (StringRef name = parsed.shapes.begin()->first; !names.insert(name).second)
      return ("--shape gives \"" + name + "\" twice; give each input one shape").str();
  }
  return "";
}
