//===- ArgumentSizes.cpp - sizes of a function's arguments, by model and options ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ArgumentSizes.h"

#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Support/Suggest.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

/// What was meant by a name that is not there, and what is.
static std::string suggest(const std::string &name, ArrayRef<std::string> names, StringRef known) {
  if (names.empty())
    return "; leave the option out, as all its sizes are fixed";
  constexpr size_t kShown = 8;
  std::string text = didYouMean(name, names.vec()) + "; " + known.str();
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i ? ", \"" : "\"") + names[i] + "\"";
  return text + (names.size() > kShown ? ", ..." : "");
}

/// What an open dim of an argument is called in options: its name, or INPUT_dimN.
static std::string keyOf(graph::FuncOp source, unsigned index, int64_t dim) {
  ArrayAttr dims = source.getArgDims(index);
  auto name = dims && dim < int64_t(dims.size()) ? dyn_cast<StringAttr>(dims[dim]) : StringAttr();
  return name && !name.getValue().empty() ? name.str() : (source.getArgName(index) + "_dim" + Twine(dim)).str();
}

/// Options may also call dims by their places: INPUT.N, and INPUT_dimN.
void ArgumentSizes::readOptions(graph::FuncOp source) {
  std::map<std::string, std::string> places;
  llvm::StringSet<> keys;
  for (unsigned i = 0; i < source.getNumArguments(); ++i) {
    auto tensor = dyn_cast<RankedTensorType>(source.getArgumentTypes()[i]);
    for (int64_t d = 0; tensor && d < tensor.getRank(); ++d)
      if (tensor.isDynamicDim(d)) {
        std::string key = keyOf(source, i, d);
        keys.insert(key);
        for (StringRef sign : {".", "_dim"})
          places.try_emplace((source.getArgName(i) + sign + Twine(d)).str(), key);
      }
  }
  for (const auto &[name, sizes] : options.dims) {
    auto place = keys.contains(name) ? places.end() : places.find(name);
    auto [given, isNew] = givenDims.try_emplace(place == places.end() ? name : place->second, sizes);
    if (!isNew && !(given->second == sizes))
      report(source.getLoc(), "--dim names the dimension \"" + given->first + "\" twice, with different sizes");
  }
}

/// The size of the dim `key`; `wanted` is what --shape says, or -1, and `range` what the model takes.
FailureOr<AffineExpr> ArgumentSizes::openSize(const std::string &key, int64_t wanted, std::pair<int64_t, int64_t> range,
                                              Location loc, StringRef input) {
  AffineExpr &size = namedSizes[key];
  auto given = givenDims.find(key);
  auto refuse = [&](const Twine &option, int64_t min, int64_t max) {
    auto text = [](int64_t low, int64_t high) {
      return low == high         ? std::to_string(low)
             : high == INT64_MAX ? std::to_string(low) + " or more"
                                 : std::to_string(low) + " to " + std::to_string(high);
    };
    report(loc, "input \"" + input + "\": " + option + " gives dim \"" + Twine(key) + "\" the size " + text(min, max) +
                    "; the model takes " + text(range.first, range.second));
    return failure();
  };
  auto isOutside = [&](int64_t min, int64_t max) { return max < range.first || min > range.second; };
  if (wanted >= 0 && isOutside(wanted, wanted))
    return refuse("--shape", wanted, wanted);
  if (size) {
    if (auto known = getConstantSize(size); wanted >= 0 && known != wanted) {
      report(loc, "input \"" + input + "\": --shape gives dim \"" + Twine(key) + "\" the size " + Twine(wanted) +
                      ", which contradicts another option");
      return failure();
    }
    return size;
  }
  const int64_t divisor = given == givenDims.end() ? 1 : given->second.divisor;
  if (wanted >= 0 && given != givenDims.end() && (wanted < given->second.min || wanted > given->second.max)) {
    report(loc, "input \"" + input + "\": --shape gives dim \"" + Twine(key) + "\" the size " + Twine(wanted) +
                    ", --dim others; leave one of them out");
    return failure();
  }
  if (wanted >= 0 && wanted % divisor != 0) {
    report(loc, "input \"" + input + "\": --shape gives dim \"" + Twine(key) + "\" the size " + Twine(wanted) +
                    ", --dim multiples of " + Twine(divisor) + "; leave one of them out");
    return failure();
  }
  if (wanted >= 0)
    return size = builder.size(wanted);
  if (given != givenDims.end()) {
    const DimSizes &sizes = given->second;
    if (isOutside(sizes.min, sizes.max))
      return refuse("--dim", sizes.min, sizes.max);
    for (const std::vector<int64_t> *list : {&sizes.listed, &sizes.buckets})
      for (int64_t one : *list)
        if (isOutside(one, one))
          return refuse("--dim", one, one);
    range = {std::max(range.first, sizes.min), std::min(range.second, sizes.max)};
  }
  if (!alignToMultiples(range.first, range.second, divisor)) {
    report(loc, "input \"" + input + "\": --dim gives dim \"" + Twine(key) + "\" multiples of " + Twine(divisor) +
                    ", of which none lies in the " + Twine(range.first) + " to " + Twine(range.second) +
                    " that the model takes; give a divisor that has one");
    return failure();
  }
  if (range.first == range.second)
    return size = builder.size(range.first);
  size = builder.symbols.add(key, range.first, range.second, divisor);
  if (given == givenDims.end())
    return size;
  for (auto [sizes, lists] : {std::pair(&given->second.listed, &listed), std::pair(&given->second.buckets, &buckets)}) {
    if (sizes->empty())
      continue;
    SmallVector<int64_t> numbers = {cast<AffineSymbolExpr>(size).getPosition()};
    llvm::append_range(numbers, *sizes);
    lists->push_back(DenseI64ArrayAttr::get(builder.getContext(), numbers));
  }
  return size;
}

ArrayAttr ArgumentSizes::getListedSizes() const {
  return listed.empty() ? nullptr : ArrayAttr::get(builder.getContext(), listed);
}

ArrayAttr ArgumentSizes::getBuckets() const {
  return buckets.empty() ? nullptr : ArrayAttr::get(builder.getContext(), buckets);
}

FailureOr<Sizes> ArgumentSizes::read(graph::FuncOp source, unsigned index) {
  auto tensor = cast<RankedTensorType>(source.getArgumentTypes()[index]);
  StringRef name = source.getArgName(index);
  Location loc = source.getBody().getArgument(index).getLoc();
  const std::vector<int64_t> *given = nullptr;
  if (auto it = options.shapes.find(name.str()); it != options.shapes.end())
    given = &it->second;
  if (given && int64_t(given->size()) != tensor.getRank()) {
    report(loc, "input \"" + name + "\": --shape has " + Twine(given->size()) + " sizes, the input has rank " +
                    Twine(tensor.getRank()));
    return failure();
  }
  Sizes sizes;
  for (int64_t i = 0; i < tensor.getRank(); ++i) {
    int64_t wanted = given ? (*given)[i] : -1;
    if (!tensor.isDynamicDim(i)) {
      if (wanted >= 0 && wanted != tensor.getDimSize(i)) {
        report(loc, "input \"" + name + "\": --shape gives dim " + Twine(i) + " the size " + Twine(wanted) +
                        ", the model has " + Twine(tensor.getDimSize(i)));
        return failure();
      }
      sizes.push_back(builder.size(tensor.getDimSize(i)));
      continue;
    }
    auto ranges = source.getArgAttrOfType<DenseI64ArrayAttr>(index, graph::kRangesAttr);
    std::pair<int64_t, int64_t> range(0, INT64_MAX);
    if (ranges && 2 * i + 1 < ranges.size())
      range = {ranges[2 * i], ranges[2 * i + 1]};
    FailureOr<AffineExpr> size = openSize(keyOf(source, index, i), wanted, range, loc, name);
    if (failed(size))
      return failure();
    sizes.push_back(*size);
  }
  return sizes;
}

void ArgumentSizes::checkOptions(graph::FuncOp source) {
  const unsigned count = source.getNumArguments();
  Location unknown = builder.getUnknownLoc();
  std::vector<std::string> inputNames, dimNames;
  for (unsigned i = 0; i < count; ++i)
    inputNames.push_back(source.getArgName(i).str());
  for (const auto &entry : namedSizes)
    dimNames.push_back(entry.first().str());
  llvm::sort(dimNames);
  for (const auto &entry : options.shapes)
    if (llvm::none_of(llvm::seq<unsigned>(0, count), [&](unsigned i) { return source.getArgName(i) == entry.first; }))
      report(unknown, "--shape names the input \"" + Twine(entry.first) + "\", which the model does not have" +
                          suggest(entry.first, inputNames, "its inputs are "));
  for (const auto &entry : givenDims)
    if (!namedSizes.count(entry.first))
      report(unknown, "--dim names the dimension \"" + Twine(entry.first) + "\", which no input of the model has" +
                          suggest(entry.first, dimNames, "its open dims are "));
}

SmallVector<Value> ArgumentSizes::applyMaps(graph::FuncOp source, Block *block) {
  Sizes all;
  SmallVector<Value> arguments(block->getArguments());
  for (Value argument : arguments)
    llvm::append_range(all, getSizes(argument));
  for (unsigned i = 0; i < source.getNumArguments(); ++i) {
    auto map = source.getArgAttrOfType<AffineMapAttr>(i, graph::kSizesAttr);
    Sizes have = getSizes(arguments[i]), must;
    if (!map)
      continue;
    if (map.getValue().getNumSymbols() != all.size() || map.getValue().getNumResults() != have.size()) {
      report(source.getLoc(), "input \"" + source.getArgName(i) + "\": graph.sizes fits other arguments");
      continue;
    }
    builder.setLoc(NameLoc::get(builder.getStringAttr(source.getArgName(i))));
    for (auto [d, size] : llvm::enumerate(map.getValue().getResults())) {
      AffineExpr expr = simplifySize(size.replaceDimsAndSymbols({}, all));
      must.push_back(expr);
      if (expr == have[d])
        continue;
      const std::string what = "dim " + std::to_string(d) + " must be " + formatSize(expr, builder.symbols.getAttr());
      auto x = getConstantSize(have[d]), y = getConstantSize(expr);
      if (x && y)
        report(builder.getUnknownLoc(), "input \"" + source.getArgName(i) + "\": " + what + ", but is " + Twine(*x));
      else
        prim::GuardOp::create(builder, CompareKind::EQ, makeSizeMap(builder.getContext(), {have[d], expr}),
                              "the input's " + what, false);
    }
    arguments[i] = builder.reshape(arguments[i], must);
  }
  return arguments;
}
