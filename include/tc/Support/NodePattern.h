//===- NodePattern.h - nodes that an option names -------------------------------------------------------*- C++ -*-===//
//
// A name, or a pattern whose * is any text: `/layer3/*`. A name of its own counts as such, whatever characters are in
// it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_NODEPATTERN_H
#define TC_SUPPORT_NODEPATTERN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tc {

struct NodePattern {
  explicit NodePattern(const std::string &text) : text(text) {
    if (llvm::Expected<llvm::GlobPattern> made = llvm::GlobPattern::create(this->text))
      glob = std::move(*made);
    else
      llvm::consumeError(made.takeError());
  }
  // The glob reads the text.
  NodePattern(const NodePattern &) = delete;
  NodePattern &operator=(const NodePattern &) = delete;

  bool isExact(llvm::StringRef name) const { return name == text; }
  bool matches(llvm::StringRef name) const { return isExact(name) || (glob && glob->match(name)); }

  const std::string text;
  std::optional<llvm::GlobPattern> glob;
  bool isUsed = false;
};

/// Several, of which a node has to match one.
class NodePatterns {
public:
  explicit NodePatterns(llvm::ArrayRef<std::string> texts) {
    for (const std::string &text : texts)
      patterns.push_back(std::make_unique<NodePattern>(text));
  }
  bool matches(llvm::ArrayRef<llvm::StringRef> names) const {
    for (const std::unique_ptr<NodePattern> &pattern : patterns)
      for (llvm::StringRef name : names)
        if (pattern->matches(name))
          return true;
    return false;
  }
  llvm::ArrayRef<std::unique_ptr<NodePattern>> all() const { return patterns; }
  bool empty() const { return patterns.empty(); }

private:
  std::vector<std::unique_ptr<NodePattern>> patterns;
};

/// Values for nodes, each as PATTERN=VALUE: the last one counts whose pattern a node matches.
class NodeValues {
public:
  explicit NodeValues(llvm::ArrayRef<std::string> texts) {
    for (llvm::StringRef text : texts) {
      auto [pattern, value] = text.rsplit('=');
      values.emplace_back(std::make_unique<NodePattern>(pattern.str()), value.str());
    }
  }
  llvm::StringRef find(llvm::ArrayRef<llvm::StringRef> names, llvm::StringRef otherwise) const {
    llvm::StringRef found = otherwise;
    for (auto &[pattern, value] : values)
      for (llvm::StringRef name : names)
        if (pattern->matches(name))
          found = value;
    return found;
  }

private:
  std::vector<std::pair<std::unique_ptr<NodePattern>, std::string>> values;
};

} // namespace tc

#endif // TC_SUPPORT_NODEPATTERN_H
