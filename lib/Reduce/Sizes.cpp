//===- Sizes.cpp - other sizes of a graph's inputs and constants --------------------------------------------------===//
//
// Which dims belong together nobody says: those of one size change together, as most often they are one. Numbers in
// small constants and attributes may be that size, too (the shape of a Reshape). Inner types are hints; where the
// change in them would be wrong, as behind a concatenation, they are forgotten.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Edits.h"
#include "FunctionEditor.h"

#include "tc/Conversion/GraphToPrim/GraphTypes.h"
#include "tc/Dialect/TC/IR/Seeded.h"
#include "tc/Support/ChildProcess.h"

#include "mlir/AsmParser/AsmParser.h"
#include <cstring>
#include <set>

using namespace mlir;
using namespace tc;
using namespace tc::reduce;

/// Constants of more elements hold no sizes.
static constexpr uint64_t kMostSizes = 64;

std::vector<int64_t> tc::reduce::getStaticSizes(graph::FuncOp main) {
  std::set<int64_t, std::greater<int64_t>> sizes;
  auto add = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (int64_t size : tensor.getShape())
        if (!ShapedType::isDynamic(size) && size > 1)
          sizes.insert(size);
  };
  for (Type type : main.getArgumentTypes())
    add(type);
  main.walk([&](graph::ConstantOp constant) { add(constant.getType()); });
  return {sizes.begin(), sizes.end()};
}

static RankedTensorType changeType(RankedTensorType type, const SizeChange &change) {
  SmallVector<int64_t> shape(type.getShape());
  llvm::replace(shape, change.from, change.to);
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

/// The leading elements of a constant, in a type that is not larger in any dim; null where elements are no whole bytes.
static base::DataAttr crop(base::DataAttr data, RankedTensorType type, uint64_t seed) {
  if (base::isSeeded(data))
    return base::makeSeeded(type, seed);
  std::optional<unsigned> bits = base::getPackedBitWidth(type.getElementType());
  FailureOr<ArrayRef<char>> bytes = base::getBytes(data);
  if (!bits || *bits % 8 || failed(bytes))
    return {};
  const size_t size = *bits / 8;
  std::vector<char> result;
  result.reserve(*base::getPackedSizeBytes(type));
  SmallVector<int64_t> index(type.getRank());
  for (uint64_t count = *base::getNumElements(type); count > 0; --count) {
    uint64_t from = 0;
    for (int64_t d = 0; d < type.getRank(); ++d)
      from = from * data.getType().getDimSize(d) + index[d];
    result.insert(result.end(), bytes->begin() + from * size, bytes->begin() + (from + 1) * size);
    for (int64_t d = type.getRank(); d-- > 0 && ++index[d] == type.getDimSize(d);)
      index[d] = 0;
  }
  return base::makeData(type, std::move(result));
}

static base::DataAttr changeNumbers(base::DataAttr data, const SizeChange &change) {
  FailureOr<ArrayRef<char>> bytes = base::getBytes(data);
  if (!data.getType().getElementType().isInteger(64) || failed(bytes) ||
      base::getNumElements(data.getType()).value_or(kMostSizes + 1) > kMostSizes)
    return data;
  std::vector<char> result(bytes->begin(), bytes->end());
  for (size_t at = 0; at < result.size(); at += sizeof(int64_t))
    if (base::readElement<int64_t>(*bytes, at / sizeof(int64_t)) == change.from)
      std::memcpy(result.data() + at, &change.to, sizeof(int64_t));
  return base::makeData(data.getType(), std::move(result));
}

static Attribute changeAttribute(Attribute attr, const SizeChange &change) {
  if (auto number = dyn_cast<IntegerAttr>(attr))
    return number.getType().isSignlessInteger(64) && number.getInt() == change.from
               ? IntegerAttr::get(number.getType(), change.to)
               : attr;
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attr)) {
    SmallVector<int64_t> changed(numbers.asArrayRef());
    llvm::replace(changed, change.from, change.to);
    return DenseI64ArrayAttr::get(attr.getContext(), changed);
  }
  return attr;
}

bool tc::reduce::changeSize(graph::FuncOp main, const SizeChange &change) {
  uint64_t seed = 0;
  bool possible = true;
  auto changeValue = [&](Value value, bool isInput) {
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      value.setType(change.forget && !isInput ? Type(UnrankedTensorType::get(type.getElementType()))
                                              : Type(changeType(type, change)));
  };
  for (BlockArgument argument : main.getArguments())
    changeValue(argument, /*isInput=*/true);
  main.walk([&](Operation *op) {
    if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
      auto data = dyn_cast<base::DataAttr>(constant.getValue());
      auto type = cast<RankedTensorType>(constant.getType());
      RankedTensorType changed = changeType(type, change);
      if (changed != type)
        data = data ? crop(data, changed, seed) : data;
      ++seed;
      if (!data) {
        possible = possible && changed == type;
        return;
      }
      constant->setAttr(constant.getValueAttrName(), changeNumbers(data, change));
      constant.getResult().setType(changed);
      return;
    }
    auto node = dyn_cast<graph::NodeOp>(op);
    if (!node)
      return;
    SmallVector<NamedAttribute> attrs;
    for (NamedAttribute attr : node.getAttrs())
      attrs.emplace_back(attr.getName(), changeAttribute(attr.getValue(), change));
    node.setAttrsAttr(DictionaryAttr::get(node.getContext(), attrs));
    for (Value result : node.getResults())
      changeValue(result, /*isInput=*/false);
    for (Region &region : node.getGraphs())
      for (BlockArgument argument : region.getArguments())
        changeValue(argument, /*isInput=*/false);
  });
  if (!possible)
    return false;
  FunctionEditor editor(main);
  editor.forgetOutputTypes();
  return editor.finish();
}

void tc::reduce::refineTypes(graph::FuncOp main, const GraphToPrimOptions &sizes) {
  SmallVector<Value> values;
  for (graph::NodeOp node : main.getBody().getOps<graph::NodeOp>())
    for (Value result : node.getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (type ? !type.hasStaticShape() : isa<UnrankedTensorType, base::UnknownType>(result.getType()))
        values.push_back(result);
    }
  if (values.empty())
    return;
  ChildLimits limits;
  limits.moreBytes = uint64_t(4) << 30;
  limits.seconds = 120;
  // The model may be one that crashes the conversion.
  std::optional<std::string> text = runInChild(limits, [&] {
    GraphTypes types(main, sizes);
    std::string lines;
    llvm::raw_string_ostream stream(lines);
    for (Value value : values) {
      if (llvm::Expected<RankedTensorType> type = types.getType(value))
        stream << *type;
      else
        llvm::consumeError(type.takeError());
      stream << "\n";
    }
    return lines;
  });
  SmallVector<StringRef> lines;
  if (text)
    StringRef(*text).split(lines, '\n');
  for (auto [value, line] : llvm::zip(values, lines))
    if (auto type = line.empty() ? Type() : parseType(line, main.getContext()))
      value.setType(type);
  FunctionEditor(main).finish();
}
