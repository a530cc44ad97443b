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
#include "tc/Support/ToolText.h"
#include "tc/Support/ToolVersion.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace tc {

/// A sentence without the tool's name, which says what was meant where a name is near. `positional` is what the tool
/// takes without an option: "model".
inline std::string describeParseError(const CLI::App &app, const CLI::ParseError &error,
                                      const std::string &positional) {
  if (dynamic_cast<const CLI::RequiredError *>(&error))
    return "no " + positional + " is given";
  if (dynamic_cast<const CLI::FileError *>(&error))
    return "the file of --config cannot be read: " + app.get_config_ptr()->as<std::string>();
  const std::string what = error.what();
  const size_t colon = what.find(": "), equals = what.find(" = ");
  // CommandLine's own checks, and what CLI11 finds by itself: "--jobs: takes ...", "--verify = maybe".
  if (dynamic_cast<const CLI::ValidationError *>(&error) && what.compare(colon + 2, 6, "takes ") == 0)
    return what.substr(0, colon) + what.substr(colon + 1);
  if (dynamic_cast<const CLI::ConversionError *>(&error) && colon < equals && equals != std::string::npos)
    return what.substr(colon + 2, equals - colon - 2) + " does not take \"" + what.substr(equals + 3) + "\"";
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error) && what.find(" missing") != std::string::npos)
    return what.substr(0, colon) + " needs a value";
  const std::vector<std::string> extras = app.remaining();
  if (!dynamic_cast<const CLI::ExtrasError *>(&error) || extras.empty())
    return what;
  if (extras.front().compare(0, 1, "-") != 0)
    return "only one " + positional + " can be given, and \"" + extras.front() + "\" is another";
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  const std::string word = extras.front().substr(0, extras.front().find('='));
  return "there is no option " + word + didYouMean(word, names);
}

/// A command line that CLI11 reads, with what its help, manual page and completion say beside that.
class CommandLine : public CLI::App {
public:
  using CLI::App::App;

  /// Describes an option by `lead`, its values with a note behind each that needs one ("f32 (default)"), and `tail`.
  void setChoices(CLI::Option *option, const std::string &lead, const std::vector<std::string> &values,
                  const std::string &tail = "") {
    std::string text = lead;
    for (const std::string &value : values) {
      text += (&value == &values.front() ? "" : ", ") + value;
      values_[option].choices.push_back(value.substr(0, value.find(' ')));
    }
    option->description(text + tail);
  }
  /// The extensions of the files that an option takes, where its value's name does not say so.
  void setExtensions(CLI::Option *option, const std::vector<std::string> &extensions) {
    values_[option].extensions = extensions;
  }
  /// Lets an option take whole numbers in a range.
  void setWholeNumber(CLI::Option *option, uint64_t least = 0, uint64_t most = UINT32_MAX) {
    const std::string range =
        (least ? "from " + std::to_string(least) + " to " : "up to ") + std::to_string(most) + ", not \"";
    auto check = [=](const std::string &text) -> std::string {
      errno = 0;
      const uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
      const bool isNumber = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && errno == 0;
      return isNumber && value >= least && value <= most ? "" : "takes a whole number " + range + text + "\"";
    };
    option->check(CLI::Validator(check, ""));
  }
  /// The same for numbers that are not negative, or not 0 either.
  void setNumber(CLI::Option *option, bool isPositive = false) {
    auto check = [=](const std::string &text) -> std::string {
      char *end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      const bool isNumber = !text.empty() && !*end && std::isfinite(value);
      return isNumber && (isPositive ? value > 0 : value >= 0)
                 ? ""
                 : std::string("takes a number ") + (isPositive ? "above 0" : "that is not negative") + ", not \"" +
                       text + "\"";
    };
    option->check(CLI::Validator(check, ""));
  }
  /// What a flag can be given behind '='.
  void setOptionalValue(CLI::Option *flag, const std::string &value, const std::vector<std::string> &choices = {}) {
    values_[flag].optional = value;
    values_[flag].choices = choices;
  }

  /// --help, --version and --generate, in a group of their own.
  void addCommonOptions() {
    set_help_flag("-h,--help", "this text")->group("Other");
    set_version_flag("--version", getVersionText(get_name()), "versions of tc and LLVM, and tc's commit")
        ->group("Other");
    const OptionText generated = generateOption();
    CLI::Option *option = add_option_function<std::string>(
        generated.names.front(),
        [this](const std::string &what) {
          const std::string text = generate(describe(), what);
          if (text.empty())
            throw CLI::ValidationError("--generate takes bash, zsh, fish or man, not \"" + what + "\"");
          throw CLI::CallForVersion(text.substr(0, text.size() - 1), 0);
        },
        generated.description);
    option->type_name(generated.value)->group(generated.group)->configurable(false);
    values_[option].choices = generated.choices;
  }

  /// What --help and --version print. CLI11 shows a flag with an optional value as --flag{default}, and leaves two
  /// lines empty between groups.
  std::string describeSuccess(const CLI::Success &success) const {
    if (!dynamic_cast<const CLI::CallForHelp *>(&success))
      return std::string(success.what()) + "\n";
    std::string text = help();
    for (size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at))
      text.erase(at, 1);
    for (const auto &[option, value] : values_) {
      if (value.optional.empty())
        continue;
      const size_t at = text.find(option->get_name() + "{"), brace = text.find('{', at);
      // The column of the descriptions stays.
      const size_t end = text.find_first_not_of(' ', text.find('}', at) + 1), width = end - brace;
      const std::string shown = "[=" + value.optional + "]";
      text.replace(brace, width, shown + std::string(width > shown.size() ? width - shown.size() : 1, ' '));
    }
    return text;
  }

  ToolText describe() const {
    ToolText tool;
    tool.name = get_name();
    tool.summary = get_description();
    tool.readFooter(get_footer());
    for (const std::string &group : get_groups())
      for (const CLI::Option *option : get_options()) {
        if (option->get_group() != group || group.empty())
          continue;
        OptionText text;
        if (option->get_positional()) {
          text.names = {option->get_name(true)};
          text.value = text.names.front();
        } else {
          for (const std::string &name : option->get_snames())
            text.names.push_back("-" + name);
          for (const std::string &name : option->get_lnames())
            text.names.push_back("--" + name);
          text.value = option->get_items_expected_max() == 0 ? "" : option->get_type_name();
        }
        text.description = option->get_description();
        text.group = group;
        text.isList = option->get_delimiter() == ',' || option->get_type_name() == "NAME,...";
        text.isRepeated = option->get_items_expected_max() > 1;
        const auto known = values_.find(option);
        if (known != values_.end()) {
          text.choices = known->second.choices;
          text.extensions = known->second.extensions;
          text.isOptional = !known->second.optional.empty();
          text.value = text.isOptional ? known->second.optional : text.value;
        }
        (option->get_positional() ? tool.operands : tool.options).push_back(text);
      }
    return tool;
  }

private:
  struct Values {
    std::vector<std::string> choices, extensions;
    std::string optional;
  };
  std::map<const CLI::Option *, Values> values_;
};

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
