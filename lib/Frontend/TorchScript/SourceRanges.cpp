//===- SourceRanges.cpp - lines of Python that an archive's code was made of --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "SourceRanges.h"

#include "tc/Dialect/Graph/IR/Source.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using torch::PickledValue;

/// Characters of Python that the lines of one file of code are looked up in: a table of a few strings may stand for
/// texts of any length.
static constexpr uint64_t kMaxCharacters = uint64_t(1) << 24;

static bool isSequence(const PickledValue &value, size_t count) {
  return (value.kind == PickledValue::Kind::Tuple || value.kind == PickledValue::Kind::List) &&
         value.items.size() >= count;
}
static bool isInt(const PickledValue &value) { return value.kind == PickledValue::Kind::Int && value.integer >= 0; }

SourceRanges::SourceRanges(torch::Pickle given, StringRef code) : pickle(std::move(given)) {
  const PickledValue *all = &pickle.root();
  if (isSequence(*all, 3) && all->items[0]->isString() && isSequence(*all->items[1], 0)) {
    strings = all->items[1];
    all = all->items[2];
  }
  if (!isSequence(*all, 1))
    return;
  for (const PickledValue *range : all->items)
    if (isSequence(*range, 2) && isInt(*range->items[0]) && isSequence(*range->items[1], 3))
      ranges.push_back({uint64_t(range->items[0]->integer), range->items[1]});
  llvm::stable_sort(ranges, llvm::less_first());
  lines.push_back(0);
  for (auto [i, character] : llvm::enumerate(code))
    if (character == '\n')
      lines.push_back(i + 1);
}

const std::string *SourceRanges::stringOf(const PickledValue &value) const {
  if (value.isString())
    return &value.text;
  if (!strings || !isInt(value) || uint64_t(value.integer) >= strings->items.size())
    return nullptr;
  const PickledValue &found = *strings->items[size_t(value.integer)];
  return found.isString() ? &found.text : nullptr;
}

/// "net.py(12): forward", a line of the stack that a tracer leaves.
static std::optional<SourceLine> parseFrame(StringRef frame) {
  StringRef head = frame.rsplit("): ").first, number;
  SourceLine line;
  std::tie(line.file, number) = head.rsplit('(');
  if (head.size() == frame.size() || line.file.empty() || number.getAsInteger(10, line.line))
    return std::nullopt;
  line.isOfTorch = graph::isSourceOfTorch(line.file);
  return line;
}

const SourceRanges::Text &SourceRanges::textOf(const PickledValue &source) {
  auto [entry, isNew] = texts.try_emplace(&source);
  Text &text = entry->second;
  if (!isNew || !isSequence(source, 3))
    return text;
  if (const std::string *file = stringOf(*source.items[1]))
    text.file = *file;
  text.firstLine = isInt(*source.items[2]) ? std::min<int64_t>(source.items[2]->integer, INT32_MAX) : 0;
  llvm::SmallVector<const PickledValue *> pieces(source.items[0]->items.begin(), source.items[0]->items.end());
  if (source.items[0]->isString())
    pieces = {source.items[0]};
  // Innermost first: the first frame that is not of PyTorch, else the innermost.
  bool isStack = true;
  uint64_t at = 0;
  for (const PickledValue *piece : pieces) {
    const std::string *string = stringOf(*piece);
    if (!string || (charactersRead += string->size()) > kMaxCharacters)
      break;
    for (StringRef rest = *string; !rest.empty();) {
      auto [line, behind] = rest.split('\n');
      at += line.size() + 1;
      text.ends.push_back(at);
      if (isStack && (!text.traced || text.traced->isOfTorch))
        if (std::optional<SourceLine> frame = parseFrame(line); frame && (!text.traced || !frame->isOfTorch))
          text.traced = frame;
      isStack &= text.traced.has_value();
      rest = behind;
    }
  }
  return text;
}

std::optional<SourceLine> SourceRanges::find(Position at) {
  if (ranges.empty() || at.line < 1 || at.line > lines.size() || at.column < 1)
    return std::nullopt;
  const uint64_t offset = lines[at.line - 1] + at.column - 1;
  auto range = llvm::partition_point(ranges, [&](const auto &other) { return other.first <= offset; });
  if (range == ranges.begin())
    return std::nullopt;
  const PickledValue &found = *std::prev(range)->second;
  const Text &text = textOf(*found.items[0]);
  SourceLine line;
  if (text.traced) {
    line = *text.traced;
  } else {
    const uint64_t start = isInt(*found.items[1]) ? uint64_t(found.items[1]->integer) : 0;
    const int64_t number =
        text.firstLine +
        int64_t(llvm::partition_point(text.ends, [&](uint64_t end) { return end <= start; }) - text.ends.begin());
    if (number < 1 || number > INT32_MAX)
      return std::nullopt;
    line = {text.file, uint32_t(number), graph::isSourceOfTorch(text.file)};
  }
  // The name stands in messages of one line.
  if (line.file.empty() || !llvm::all_of(line.file, [](char c) { return uint8_t(c) >= 0x20 && c != 0x7f; }))
    return std::nullopt;
  return line;
}
