//===- ToolText.h - help, manual page and completion of a tool ------------------------------------------*- C++ -*-===//
//
// A tool's options are one table, which --help, the manual page and the completions of shells are made from. Tools
// whose options CLI11 reads have it from there (CommandLine.h). C++ alone, for all tools.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_TOOLTEXT_H
#define TC_SUPPORT_TOOLTEXT_H

#include <string>
#include <vector>

namespace tc {

struct OptionText {
  std::vector<std::string> names; ///< with their dashes; of an operand: its name
  std::string value;              ///< what stands for the value in texts: NAME=SIZE; empty: a flag
  std::string description;
  std::string group = "Options";
  std::vector<std::string> choices = {};    ///< the values that it takes; empty: any
  std::vector<std::string> extensions = {}; ///< of the files that it takes, without a dot
  bool isOptional = false;                  ///< the value may be left out, and is given after '=' only
  bool isList = false;                      ///< values with commas between them
  bool isRepeated = false;                  ///< can be given several times

  bool isFlag() const { return value.empty(); }
  bool takesDirectory() const { return value == "DIR"; }
  /// FILE, FILE.npz, OUT, or a file of known extensions.
  bool takesFile() const;
  std::vector<std::string> fileExtensions() const;
};

struct ToolText {
  std::string name, summary;
  std::vector<OptionText> operands; ///< in their order
  std::vector<OptionText> options;  ///< those of a group in one row
  std::string notes;                ///< paragraphs between options and examples
  /// Lines "command   what it does", with two spaces or more between them.
  std::vector<std::string> examples;
  std::vector<std::string> exitCodes; ///< "0 done"

  /// Fills notes, examples and exitCodes from "Examples:\n  ...\n\nExit codes: 0 done; 1 ...".
  void readFooter(const std::string &footer);
};

/// What --help prints, for tools that have no library for it.
std::string makeHelp(const ToolText &tool);
/// The manual page, for section 1, in man(7).
std::string makeManPage(const ToolText &tool);
std::string makeBashCompletion(const ToolText &tool);
std::string makeZshCompletion(const ToolText &tool);
std::string makeFishCompletion(const ToolText &tool);

/// A message as a terminal may show it: control characters, which names in models may hold, are question marks, and the
/// middle of what is longer than 4,000 bytes is left out. Ends of lines stay.
std::string printable(std::string message);

/// What --generate prints, which takes "bash", "zsh", "fish" or "man"; empty for another word.
std::string generate(const ToolText &tool, const std::string &what);
/// The option --generate itself.
OptionText generateOption();

} // namespace tc

#endif // TC_SUPPORT_TOOLTEXT_H
