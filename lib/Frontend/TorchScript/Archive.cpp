//===- Archive.cpp - the members of a TorchScript archive ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Archive.h"

using namespace llvm;
using namespace tc::torchscript;

Expected<const SourceFile *> Archive::findSource(StringRef qualifier) {
  auto [entry, isNew] = sources.try_emplace(qualifier);
  if (!isNew)
    return entry->second.get();
  std::string path = "code/" + qualifier.str() + ".py";
  std::replace(path.begin() + 5, path.end() - 3, '.', '/');
  Expected<std::optional<std::string>> text = readCode(path);
  if (!text)
    return text.takeError();
  if (!*text)
    return nullptr;
  Expected<std::unique_ptr<SourceFile>> parsed = parseSource(path, std::move(**text));
  if (!parsed)
    return parsed.takeError();
  return (sources[qualifier] = std::move(*parsed)).get();
}

std::optional<SourceLine> Archive::findLine(const SourceFile &file, Position at) {
  auto [entry, isNew] = ranges.try_emplace(&file);
  if (isNew)
    if (std::optional<tc::torch::Pickle> pickle = readRanges(file.path + ".debug_pkl"))
      entry->second = std::make_unique<SourceRanges>(std::move(*pickle), file.text);
  return entry->second ? entry->second->find(at) : std::nullopt;
}
