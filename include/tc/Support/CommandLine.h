//===- CommandLine.h - messages and help of command lines -----------------------------------------------*- C++ -*-===//
//
// For the tools whose options CLI11 reads.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_COMMANDLINE_H
#define TC_SUPPORT_COMMANDLINE_H

#include "tc/Support/Suggest.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tc {

/// A sentence without the tool's name, which says what was meant where a name is near. `positional` is what the tool
/// takes without an option: "model".
inline std::string describeParseError(const CLI::App &app, const CLI::ParseError &error,
                                      const std::string &positional) {
  if (dynamic_cast<const CLI::RequiredError *>(&error))
    return "no " + positional + " is given";
  const std::vector<std::string> extras = app.remaining();
  if (!dynamic_cast<const CLI::ExtrasError *>(&error) || extras.empty())
    return error.what();
  if (extras.front().compare(0, 1, "-") != 0)
    return "only one " + positional + " can be given, and \"" + extras.front() + "\" is another";
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  const std::string word = extras.front().substr(0, extras.front().find('='));
  return "there is no option " + word + didYouMean(word, names);
}

/// What --help and --version print. CLI11 shows a flag with an optional value as --flag{default}, and leaves two lines
/// empty between groups.
inline std::string describeSuccess(const CLI::App &app, const CLI::Success &success) {
  if (!dynamic_cast<const CLI::CallForHelp *>(&success))
    return std::string(success.what()) + "\n";
  std::string text = app.help();
  auto replaceAll = [&](const std::string &from, const std::string &to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
      text.replace(at, from.size(), to);
  };
  replaceAll("\n\n\n", "\n\n");
  const std::string value = "[=X]";
  for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at)) {
    // The column of the descriptions stays.
    const size_t end = text.find_first_not_of(' ', text.find('}', at) + 1), width = end - at;
    text.replace(at, width, value + std::string(width - value.size(), ' '));
  }
  return text;
}

/// The command line as a shell takes it.
inline std::string describeCommand(int argc, char **argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    text += i ? " " : "";
    if (!word.empty() && word.find_first_of(" \t\n\"'\\$`*?[](){}<>|&;#~!") == std::string::npos) {
      text += word;
      continue;
    }
    text += "'";
    for (char c : word)
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

} // namespace tc

#endif // TC_SUPPORT_COMMANDLINE_H
