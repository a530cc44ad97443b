//===- Completion.cpp - what shells complete ----------------------------------------------------------------------===//
//
// A script per shell that needs no other one: bash's works without the package bash-completion.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ToolText.h"

using namespace tc;

namespace {

std::string join(const std::vector<std::string> &words, const std::string &separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// In single quotes, for bash and zsh.
std::string quote(const std::string &text) { return "'" + replaceAll(text, "'", "'\\''") + "'"; }

std::string functionName(const ToolText &tool) { return "_" + replaceAll(tool.name, "-", "_"); }

std::string head(const ToolText &tool, const std::string &shell) {
  return "# " + shell + " completion of " + tool.name + "; made by " + tool.name + " --generate " + shell + "\n";
}

const char *const bashHelpers = R"(
  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} before= equals= kept=
  COMPREPLY=()
  # "=" is a word of its own, unless COMP_WORDBREAKS was changed.
  if [[ $cur == = ]]; then
    cur= equals=1
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD-2]} equals=1
  elif [[ $cur == --*=* ]]; then
    option=${cur%%=*} before=${cur%%=*}= cur=${cur#*=} equals=1
  fi
  _tc_words() { mapfile -t COMPREPLY < <(compgen -P "$before$kept" -W "$1" -- "$cur"); }
  _tc_list() {
    if [[ $cur == *,* ]]; then kept=${cur%,*},; fi
    cur=${cur##*,}
    _tc_words "$1"
  }
  _tc_files() {
    local extension
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -P "$before" -d -- "$cur"
      if (($# == 0)); then compgen -P "$before" -f -- "$cur"; fi
      for extension; do compgen -P "$before" -f -X "!*.$extension" -- "$cur"; done)
  }
)";

std::string bashAction(const OptionText &option) {
  if (!option.choices.empty())
    return (option.isList ? "_tc_list " : "_tc_words ") + quote(join(option.choices, " "));
  if (option.takesDirectory())
    return "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -P \"$before\" -d -- \"$cur\")";
  if (option.takesFile())
    return "_tc_files" + (option.fileExtensions().empty() ? "" : " " + join(option.fileExtensions(), " "));
  return ":";
}

/// For the text in brackets of an _arguments specification.
std::string zshText(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

std::string zshAction(const OptionText &option) {
  if (!option.choices.empty())
    return option.isList ? "_sequence compadd - " + join(option.choices, " ") : "(" + join(option.choices, " ") + ")";
  if (option.takesDirectory())
    return "_files -/";
  const std::vector<std::string> extensions = option.fileExtensions();
  if (option.takesFile())
    // One name in parentheses would be a qualifier.
    return extensions.empty()       ? "_files"
           : extensions.size() == 1 ? "_files -g \"*." + extensions.front() + "\""
                                    : "_files -g \"*.(" + join(extensions, "|") + ")\"";
  return " ";
}

std::string fishText(const std::string &text) {
  return "'" + replaceAll(replaceAll(text, "\\", "\\\\"), "'", "\\'") + "'";
}

/// Files of these extensions and folders; fish's own function takes one extension.
const char *const fishHelpers = R"(function __tc_files
  set -l files (complete -C "__fish_command_without_completions "(commandline -ct))
  string match -r -- '^.*\.(?:'(string join '|' $argv)')$' $files
  string match -r -- '^.*/$' $files
end
)";

std::string fishFiles(const std::vector<std::string> &extensions) {
  return "'(__tc_files " + join(extensions, " ") + ")'";
}

} // namespace

std::string tc::makeBashCompletion(const ToolText &tool) {
  std::string text = head(tool, "bash") + functionName(tool) + "() {" + bashHelpers + "  case $option in\n";
  std::string names;
  for (const OptionText &option : tool.options) {
    names += (names.empty() ? "" : " ") + join(option.names, " ");
    if (!option.isFlag() && !option.isOptional)
      text += "  " + join(option.names, "|") + ") " + bashAction(option) + "; return ;;\n";
  }
  text += "  esac\n  case $equals$option in\n";
  for (const OptionText &option : tool.options)
    if (option.isOptional)
      text += "  1" + join(option.names, "|1") + ") " + bashAction(option) + "; return ;;\n";
  text += "  esac\n  if [[ $cur == -* ]]; then\n    _tc_words " + quote(names) + "\n    return\n  fi\n";
  if (!tool.operands.empty())
    text += "  " + bashAction(tool.operands.front()) + "\n";
  return text + "}\ncomplete -o default -F " + functionName(tool) + " " + tool.name + "\n";
}

std::string tc::makeZshCompletion(const ToolText &tool) {
  const std::string function = "_" + tool.name;
  std::string text = "#compdef " + tool.name + "\n" + head(tool, "zsh") + function + "() {\n  _arguments -s -S :";
  for (const OptionText &option : tool.options)
    for (const std::string &name : option.names) {
      const bool isLong = name.compare(0, 2, "--") == 0;
      std::string argument = option.isRepeated ? "*" + name : name;
      if (!option.isFlag())
        argument += option.isOptional ? "=-" : isLong ? "=" : "";
      argument += "[" + zshText(option.description) + "]";
      if (!option.isFlag())
        argument += (option.isOptional ? "::" : ":") + zshText(option.value) + ":" + zshAction(option);
      text += " \\\n    " + quote(argument);
    }
  for (const OptionText &operand : tool.operands)
    text += " \\\n    " +
            quote((operand.isRepeated ? "*:" : ":") + zshText(operand.names.front()) + ":" + zshAction(operand));
  text += "\n}\n";
  // zsh runs the file as the function itself where it has loaded it from $fpath.
  text += "if [ \"$funcstack[1]\" = " + function + " ]; then\n  " + function + " \"$@\"\nelse\n  compdef " + function +
          " " + tool.name + "\nfi\n";
  return text;
}

std::string tc::makeFishCompletion(const ToolText &tool) {
  std::string text = head(tool, "fish") + fishHelpers;
  const std::string start = "complete -c " + tool.name;
  if (!tool.operands.empty() && !tool.operands.front().fileExtensions().empty())
    text += start + " -f\n" + start + " -a " + fishFiles(tool.operands.front().fileExtensions()) + "\n";
  for (const OptionText &option : tool.options) {
    text += start;
    for (const std::string &name : option.names)
      text += name.compare(0, 2, "--") == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.isFlag() && !option.isOptional) {
      if (!option.choices.empty())
        text += option.isList ? " -x -a " + fishText("(__fish_append , " + join(option.choices, " ") + ")")
                              : " -x -a " + fishText(join(option.choices, " "));
      else if (option.takesDirectory())
        text += " -x -a '(__fish_complete_directories)'";
      else if (option.takesFile())
        text += option.fileExtensions().empty() ? " -r -F" : " -x -a " + fishFiles(option.fileExtensions());
      else
        text += " -x";
    }
    text += " -d " + fishText(option.description) + "\n";
  }
  return text;
}
