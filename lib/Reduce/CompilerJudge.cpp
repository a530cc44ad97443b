//===- CompilerJudge.cpp - whether tc-compile still fails in the same way -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Reduce/CompilerJudge.h"

#include "Edits.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace tc;
using namespace tc::reduce;

std::string Outcome::describe(const ChildLimits &limits) const {
  switch (result.end) {
  case ProgramResult::End::Exited:
    return "exit code " + std::to_string(result.code);
  case ProgramResult::End::Killed:
    return "signal " + std::to_string(result.code);
  case ProgramResult::End::TimedOut:
    return "no end within " + std::to_string(limits.seconds) + " s";
  case ProgramResult::End::NotStarted:
    break;
  }
  return "no start";
}

/// An error without what is in quotes, and with # for each number.
static std::string getReason(StringRef error) {
  error = error.split("; this is a defect of tc").first;
  std::string reason;
  bool quoted = false;
  for (char c : error) {
    if (c == '"')
      quoted = !quoted;
    else if (!quoted && (!llvm::isDigit(c) || reason.empty() || reason.back() != '#'))
      reason += llvm::isDigit(c) ? '#' : c;
  }
  return reason;
}

Outcome CompilerJudge::run(const std::string &path) const {
  // The compiler may leave a reproducer, and weights.
  const std::string folder = path + ".out";
  llvm::sys::fs::create_directories(folder);
  std::vector<std::string> words = {program, path, "-q"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"-o", folder + (after.empty() ? "/out.bin" : "/out.mlir")});
  if (!after.empty())
    words.push_back("--compile-to=" + after);
  if (verify)
    words.push_back("--verify");
  Outcome outcome;
  outcome.result = runProgram(limits, words);
  llvm::sys::fs::remove_directories(folder);
  SmallVector<StringRef> lines;
  StringRef(outcome.result.output).split(lines, '\n');
  for (StringRef line : lines) {
    auto [file, error] = line.split(": error: ");
    if (error.empty())
      continue;
    outcome.errors.push_back(error.str());
    outcome.reasons.push_back(getReason(error));
  }
  return outcome;
}

bool CompilerJudge::isSame(const Outcome &outcome, const Outcome &first) const {
  if (outcome.result.end != first.result.end || outcome.result.code != first.result.code)
    return false;
  if (!message.empty())
    return llvm::any_of(outcome.errors, [&](StringRef error) { return error.contains(message); });
  // What is wrong by how much is another number each time.
  constexpr int kDiffers = 3;
  if (first.reasons.empty() || first.result.code == kDiffers)
    return true;
  return llvm::is_contained(outcome.reasons, first.reasons.front());
}

std::vector<std::string> tc::reduce::selectOptions(const std::vector<std::string> &options, ModuleOp module) {
  graph::FuncOp main = getMain(module);
  // Of a dim its name or INPUT.N, of a shape the input.
  auto isOpen = [&](StringRef name, bool isDim) {
    for (BlockArgument argument : main.getArguments()) {
      const unsigned number = argument.getArgNumber();
      auto tensor = dyn_cast<ShapedType>(argument.getType());
      if (!tensor || tensor.hasStaticShape())
        continue;
      const StringRef input = main.getArgName(number);
      if (name == input || (isDim && name.rsplit('.').first == input))
        return true;
      for (Attribute dim :
           main.getArgDims(number) && isDim ? main.getArgDims(number).getValue() : ArrayRef<Attribute>())
        if (cast<StringAttr>(dim).getValue() == name)
          return true;
    }
    return false;
  };
  std::vector<std::string> selected;
  for (size_t i = 0; i < options.size(); ++i) {
    auto [option, value] = StringRef(options[i]).split('=');
    const bool isDim = option == "--dim";
    if (!isDim && option != "--shape" && option != "--input-shape") {
      selected.push_back(options[i]);
      continue;
    }
    const bool isApart = options[i].size() == option.size();
    if (isApart && i + 1 < options.size())
      value = options[i + 1];
    if (isOpen(value.split('=').first, isDim)) {
      selected.push_back(options[i]);
      if (isApart && i + 1 < options.size())
        selected.push_back(options[i + 1]);
    }
    i += isApart;
  }
  return selected;
}
