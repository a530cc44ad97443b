//===- Generate.cpp - tc-opt's manual page and completion ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Generate.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using llvm::StringRef;

namespace {

/// "--name=<value>", "--name[=<value>]", "-o <value>" or "--name".
tc::OptionText readOption(StringRef head, StringRef description) {
  tc::OptionText option;
  StringRef name = head.take_until([](char c) { return c == '=' || c == '[' || c == ' '; });
  StringRef value = head.drop_front(name.size());
  option.names = {name.str()};
  option.isOptional = value.starts_with("[");
  option.value = value.trim("[]= <>").str();
  option.description = description.trim().str();
  return option;
}

} // namespace

tc::ToolText tc::opt::readHelp(StringRef help) {
  ToolText tool;
  tool.name = "tc-opt";
  tool.operands = {{{"FILE.mlir"}, "FILE.mlir", "a module of any phase; -: standard input"}};
  std::string group = "Options";
  bool takesChoices = false;
  auto [options, footer] = help.split("\nExamples:\n");
  tool.readFooter("Examples:\n" + footer.str());
  llvm::SmallVector<StringRef> lines;
  options.split(lines, '\n');
  for (StringRef line : lines) {
    const size_t indent = line.find_first_not_of(' ');
    if (indent == StringRef::npos)
      continue;
    StringRef text = line.drop_front(indent);
    if (indent == 0) {
      if (text.consume_front("OVERVIEW: "))
        tool.summary = text.str();
      else if (text.consume_back(":") && text != "OPTIONS")
        group = text.str();
      continue;
    }
    auto [head, description] = text.split(" - ");
    head = head.trim();
    if (text.starts_with("=")) {
      // A value of the option before. What stands under a pass belongs to an option of the pass.
      if (takesChoices && !head.contains("empty"))
        tool.options.back().choices.push_back(head.drop_front().str());
      continue;
    }
    takesChoices = indent == 2 && text.starts_with("-");
    // An option with a value that can be left out has two entries.
    if (!text.starts_with("-") || (indent != 2 && indent != 6))
      continue;
    OptionText option = readOption(head, description);
    option.group = indent == 6 ? "Passes" : group;
    if (!tool.options.empty() && tool.options.back().names == option.names) {
      option.isOptional = true;
      tool.options.pop_back();
    }
    tool.options.push_back(option);
  }
  tool.options.push_back(generateOption());
  return tool;
}

int tc::opt::generate(StringRef what, llvm::function_ref<void()> printHelp) {
  int pipe[2];
  const pid_t child = ::pipe(pipe) == 0 ? ::fork() : -1;
  if (child < 0) {
    llvm::errs() << "tc-opt: error: no process can be made: " << std::strerror(errno) << "\n";
    return 1;
  }
  if (child == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    printHelp();
    llvm::outs().flush();
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::string help;
  char bytes[4096];
  for (ssize_t count; (count = ::read(pipe[0], bytes, sizeof bytes)) > 0;)
    help.append(bytes, size_t(count));
  ::close(pipe[0]);
  ::waitpid(child, nullptr, 0);
  const std::string text = tc::generate(readHelp(help), what.str());
  if (text.empty()) {
    llvm::errs() << "tc-opt: error: --generate takes bash, zsh, fish or man, not \"" << what << "\"\n";
    return 1;
  }
  llvm::outs() << text;
  return 0;
}
