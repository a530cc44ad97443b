//===- ConvertGraphToPrim.cpp - the pass tc-convert-graph-to-prim -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Conversion/Passes.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"

namespace tc::conversion {
#define GEN_PASS_DEF_CONVERTGRAPHTOPRIMPASS
#include "tc/Conversion/Passes.h.inc"
} // namespace tc::conversion

using namespace mlir;
using namespace tc;

bool tc::alignToMultiples(int64_t &min, int64_t &max, int64_t divisor) {
  const int64_t below = max == INT64_MAX ? max : max / divisor * divisor, rest = min % divisor;
  if (rest != 0 && min > below - (divisor - rest))
    return false;
  min += rest ? divisor - rest : 0;
  max = below;
  return true;
}

/// What sizes that were each well formed say against each other; empty: nothing. Brings the ends to multiples.
static std::string alignToDivisor(DimSizes &sizes) {
  const std::string multiple = "multiple of " + std::to_string(sizes.divisor);
  for (int64_t size : sizes.listed)
    if (size % sizes.divisor != 0)
      return std::to_string(size) + " is no " + multiple + "; list multiples, or leave multiple-of out";
  if (!alignToMultiples(sizes.min, sizes.max, sizes.divisor))
    return "no " + multiple + " lies in " + std::to_string(sizes.min) + ".." + std::to_string(sizes.max) +
           "; give a range that has one";
  return "";
}

bool tc::parseDimOption(StringRef text, GraphToPrimOptions &options, std::string *conflict) {
  auto [name, value] = text.rsplit('=');
  DimSizes sizes;
  if (value.consume_front("bucket:")) {
    SmallVector<StringRef> parts;
    value.split(parts, ',');
    for (StringRef part : parts) {
      int64_t size = 0;
      if (part.getAsInteger(10, size) || size <= (sizes.buckets.empty() ? 0 : sizes.buckets.back()))
        return false;
      sizes.buckets.push_back(size);
    }
    sizes.min = 1; // a run without elements is none that is worth padding, and many sizes are one less
    sizes.max = sizes.buckets.back();
    if (name.empty())
      return false;
    options.dims[name.str()] = sizes;
    return true;
  }
  bool isMultiple = value.consume_front("multiple-of:");
  if (isMultiple) {
    StringRef divisor;
    std::tie(divisor, value) = value.split(',');
    if (divisor.getAsInteger(10, sizes.divisor) || sizes.divisor < 1 || (value.empty() && text.ends_with(",")))
      return false;
  }
  SmallVector<StringRef> parts;
  if (!isMultiple || !value.empty())
    value.split(parts, ',');
  bool hasRange = false;
  for (StringRef part : parts) {
    auto [low, high] = part.split("..");
    int64_t min = 0, max = INT64_MAX;
    if (low.getAsInteger(10, min) || min < 0)
      return false;
    if (part == low) {
      if (!llvm::is_contained(sizes.listed, min))
        sizes.listed.push_back(min);
      continue;
    }
    if (hasRange || (!high.empty() && high.getAsInteger(10, max)) || max < min)
      return false;
    hasRange = true;
    sizes.min = min;
    sizes.max = max;
  }
  if (name.empty() || llvm::any_of(sizes.listed, [&](int64_t size) { return size < sizes.min || size > sizes.max; }))
    return false;
  if (std::string what = alignToDivisor(sizes); !what.empty()) {
    if (conflict)
      *conflict = std::move(what);
    return false;
  }
  if (parts.size() == 1 && !hasRange && !isMultiple) {
    sizes.min = sizes.max = sizes.listed.front();
    sizes.listed.clear();
  }
  options.dims[name.str()] = sizes;
  return true;
}

bool tc::parseShapeOption(StringRef text, GraphToPrimOptions &options) {
  auto [name, value] = text.rsplit('=');
  if (name.empty())
    return false;
  StringRef type;
  std::tie(value, type) = value.split(':');
  std::vector<int64_t> sizes;
  std::vector<std::string> names;
  SmallVector<StringRef> parts;
  if (!value.empty())
    value.split(parts, value.contains('x') && value.find_first_not_of("0123456789x-") == StringRef::npos ? 'x' : ',');
  bool isNamed = false;
  for (StringRef part : parts) {
    part = part.trim();
    names.emplace_back();
    if (!part.empty() && (llvm::isAlpha(part.front()) || part.front() == '_')) {
      if (!llvm::all_of(part, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }))
        return false;
      isNamed = true;
      names.back() = part.str();
      sizes.push_back(-1);
    } else if (part.getAsInteger(10, sizes.emplace_back()) || sizes.back() < -1) {
      return false;
    }
  }
  if (isNamed)
    options.shapeNames[name.str()] = names;
  if (!type.empty()) {
    // Python's words are as good as IR's.
    for (auto [word, shorter] : {std::pair("bfloat", "bf"), std::pair("float", "f"), std::pair("uint", "u"),
                                 std::pair("int", "i"), std::pair("bool", "i1")})
      if (StringRef rest = type; rest.consume_front(word)) {
        type = {};
        options.elementTypes[name.str()] = shorter + rest.str();
        break;
      }
    if (!type.empty())
      options.elementTypes[name.str()] = type.str();
  }
  options.shapes[name.str()] = sizes;
  return true;
}

namespace {

struct ConvertGraphToPrimPass : public conversion::impl::ConvertGraphToPrimPassBase<ConvertGraphToPrimPass> {
  using ConvertGraphToPrimPassBase::ConvertGraphToPrimPassBase;

  void runOnOperation() override {
    GraphToPrimOptions conversionOptions;
    for (const std::string &text : dims)
      if (std::string conflict; !parseDimOption(text, conversionOptions, &conflict)) {
        getOperation().emitError() << "--dim " << text
                                   << (conflict.empty() ? " is not of the form " + kDimForms.str() : ": " + conflict);
        return signalPassFailure();
      }
    for (const std::string &text : shapes)
      if (!parseShapeOption(text, conversionOptions)) {
        getOperation().emitError() << "--shape " << text << " is not of the form INPUT=SIZE,SIZE,...";
        return signalPassFailure();
      }
    conversionOptions.allowHostOps = allowHostOps;
    for (const std::string &path : customOps)
      if (llvm::Error error = readCustomOperators(path, conversionOptions.customOperators)) {
        getOperation().emitError() << llvm::toString(std::move(error));
        return signalPassFailure();
      }
    if (failed(convertGraphToPrim(getOperation(), conversionOptions)))
      signalPassFailure();
  }
};

} // namespace
