//===- ToolText.cpp - help and manual page of a tool --------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ToolText.h"

#include <algorithm>
#include <sstream>

using namespace tc;

namespace {

std::vector<std::string> split(const std::string &text, const std::string &separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos)
      return parts;
    begin = end + separator.size();
  }
}

std::string trim(const std::string &text) {
  const size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

std::string onOneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// The part before two spaces, and the part behind them.
std::pair<std::string, std::string> splitExample(const std::string &line) {
  const std::string text = trim(line);
  const size_t at = text.find("  ");
  return {text.substr(0, at), at == std::string::npos ? "" : trim(text.substr(at))};
}

/// For the body of a roff line.
std::string roff(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if (c == '\'')
      result += "\\(aq";
    else if (c == '^')
      result += "\\(ha";
    else if (c == '~')
      result += "\\(ti";
    else if (c == '"')
      result += "\\(dq";
    else if (c == '`')
      result += "\\(ga";
    else
      result += c;
  }
  return !result.empty() && result[0] == '.' ? "\\&" + result : result;
}

std::string bold(const std::string &text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string &text) { return "\\fI" + roff(text) + "\\fR"; }

std::string optionHead(const OptionText &option) {
  std::string text;
  for (const std::string &name : option.names)
    text += (text.empty() ? "" : ", ") + bold(name);
  if (!option.isFlag())
    text += option.isOptional ? "[=" + italic(option.value) + "]" : " " + italic(option.value);
  return text;
}

} // namespace

bool OptionText::takesFile() const {
  return !extensions.empty() || value.compare(0, 4, "FILE") == 0 || value == "OUT" || !fileExtensions().empty();
}

std::vector<std::string> OptionText::fileExtensions() const {
  // FILE.npz, NAME=FILE
  const size_t at = value.find("FILE.");
  if (extensions.empty() && at != std::string::npos)
    return {value.substr(at + 5)};
  return extensions;
}

void ToolText::readFooter(const std::string &footer) {
  for (const std::string &paragraph : split(footer, "\n\n")) {
    const std::string text = trim(paragraph);
    if (text.compare(0, 9, "Examples:") == 0) {
      for (const std::string &line : split(text.substr(9), "\n"))
        if (!trim(line).empty())
          examples.push_back(trim(line));
    } else if (text.compare(0, 11, "Exit codes:") == 0) {
      for (const std::string &code : split(onOneLine(text.substr(11)), ";"))
        exitCodes.push_back(trim(code));
    } else if (!text.empty()) {
      notes += (notes.empty() ? "" : "\n\n") + text;
    }
  }
}

std::string tc::makeHelp(const ToolText &tool) {
  const size_t column = 30;
  std::string text = tool.summary + "\nUsage: " + tool.name + " [OPTIONS]";
  for (const OptionText &operand : tool.operands)
    text += " " + operand.names.front() + (operand.isRepeated ? "..." : "");
  text += "\n";
  auto addLine = [&](std::string head, const std::string &description) {
    head = "  " + head;
    text += head + (head.size() < column ? std::string(column - head.size(), ' ') : " ") + description + "\n";
  };
  text += "\nPositionals:\n";
  for (const OptionText &operand : tool.operands)
    addLine(operand.names.front(), operand.description);
  std::string group;
  for (const OptionText &option : tool.options) {
    if (option.group != group)
      text += "\n" + option.group + ":\n";
    group = option.group;
    std::string head;
    for (const std::string &name : option.names)
      head += (head.empty() ? "" : ",") + name;
    if (!option.isFlag())
      head += option.isOptional ? "[=" + option.value + "]" : " " + option.value;
    addLine(head, option.description);
  }
  if (!tool.notes.empty())
    text += "\n" + tool.notes + "\n";
  text += "\nExamples:\n";
  for (const std::string &example : tool.examples)
    text += "  " + example + "\n";
  text += "\n";
  std::string line = "Exit codes: ";
  for (size_t i = 0; i < tool.exitCodes.size(); ++i) {
    std::istringstream words(tool.exitCodes[i] + (i + 1 < tool.exitCodes.size() ? ";" : ""));
    for (std::string word; words >> word;) {
      if (line.size() + word.size() > 118) {
        text += trim(line) + "\n";
        line.clear();
      }
      line += word + " ";
    }
  }
  return text + trim(line) + "\n";
}

std::string tc::makeManPage(const ToolText &tool) {
  std::string title = tool.name;
  std::transform(title.begin(), title.end(), title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  std::string summary = onOneLine(tool.summary);
  // NAME takes the first sentence, without its capital and full stop.
  std::string first = summary.substr(0, std::min(summary.find_first_of(".;"), summary.size()));
  if (!first.empty() && first[0] >= 'A' && first[0] <= 'Z')
    first[0] = char(first[0] + 32);
  std::string page = ".TH " + title + " 1 \"\" \"tc " TC_VERSION "\" \"tc\"\n";
  page += ".SH NAME\n" + roff(tool.name) + " \\- " + roff(first) + "\n";
  page += ".SH SYNOPSIS\n" + bold(tool.name) + " [" + italic("option") + " ...]";
  for (const OptionText &operand : tool.operands)
    page += " " + italic(operand.names.front()) + (operand.isRepeated ? " ..." : "");
  page += "\n.SH DESCRIPTION\n" + roff(summary) + "\n";
  for (const OptionText &operand : tool.operands)
    page += ".TP\n" + italic(operand.names.front()) + "\n" + roff(operand.description) + "\n";
  page += ".SH OPTIONS\n";
  std::string group;
  for (const OptionText &option : tool.options) {
    if (option.group != group)
      page += ".SS " + roff(option.group) + "\n";
    group = option.group;
    page += ".TP\n" + optionHead(option) + "\n" + roff(option.description) + "\n";
  }
  if (!tool.notes.empty())
    page += ".SH NOTES\n" + roff(onOneLine(tool.notes)) + "\n";
  if (!tool.examples.empty())
    page += ".SH EXAMPLES\n";
  for (const std::string &example : tool.examples) {
    const auto [command, meaning] = splitExample(example);
    page += ".TP\n" + bold(command) + "\n" + (meaning.empty() ? "\\&" : roff(meaning)) + "\n";
  }
  page += ".SH EXIT STATUS\n";
  for (const std::string &code : tool.exitCodes) {
    const size_t space = code.find(' ');
    page += ".TP\n" + bold(code.substr(0, space)) + "\n" + roff(code.substr(space + 1)) + "\n";
  }
  page += ".SH SEE ALSO\n";
  std::string others;
  for (const char *other : {"tc-bench", "tc-compile", "tc-inspect", "tc-opt", "tc-run"})
    if (tool.name != other)
      others += (others.empty() ? "" : ",\n") + std::string(".BR ") + roff(other) + " (1)";
  return page + others + "\n";
}

std::string tc::printable(std::string message) {
  constexpr size_t kMost = 4000, kEnd = 1000;
  if (message.size() > kMost)
    message.replace(kMost - kEnd, message.size() - kMost, " ... ");
  for (char &c : message)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f')
      c = '?';
  return message;
}

std::string tc::generate(const ToolText &tool, const std::string &what) {
  return what == "bash"   ? makeBashCompletion(tool)
         : what == "zsh"  ? makeZshCompletion(tool)
         : what == "fish" ? makeFishCompletion(tool)
         : what == "man"  ? makeManPage(tool)
                          : "";
}

OptionText tc::generateOption() {
  return {{"--generate"},
          "WHAT",
          "print what a shell completes: bash, zsh, fish; or the manual page: man",
          "Other",
          {"bash", "zsh", "fish", "man"}};
}
