//===- ConfigFile.h - the options of a command line as JSON ---------------------------------------------*- C++ -*-===//
//
// An object whose keys are the long names of options:
//
//   {"model": "model.onnx", "output": "model.bin", "target": ["cpu", "cuda"], "dim": {"batch": "1..64"}, "verify":
//   true}
//
// A flag is true or false; what can be repeated is a list, or an object where its values are NAME=VALUE; null is as
// good as nothing. What the command line gives as well replaces it. Paths are those of the command line.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_CONFIGFILE_H
#define TC_SUPPORT_CONFIGFILE_H

#include "tc/Format/Json.h"
#include "tc/Support/CommandLine.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace tc {

/// For CLI::App::config_formatter. Throws CLI::ConfigError with a sentence that names the key.
class ConfigFile : public CLI::Config {
public:
  explicit ConfigFile(const CLI::App &app) : app(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream &stream) const override {
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    const nlohmann::json json = parseJson(text.data(), text.size());
    if (!json.is_object())
      throw CLI::ConfigError(file() + " is no JSON object of options, such as {\"mode\": \"default\"}");
    std::vector<CLI::ConfigItem> items;
    for (const auto &[key, value] : json.items()) {
      const CLI::Option *option = find(key);
      CLI::ConfigItem item;
      item.name = option->get_positional() ? option->get_name(true) : option->get_lnames().front();
      addValues(key, *option, value, item.inputs);
      if (!item.inputs.empty())
        items.push_back(item);
    }
    return items;
  }

  /// All options: as they were given, or with their defaults.
  std::string to_config(const CLI::App *, bool, bool, std::string) const override {
    nlohmann::ordered_json json;
    for (CLI::Option *option : const_cast<CLI::App &>(app).get_options())
      if (option->get_configurable())
        json[keyOf(*option)] = describe(*option);
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

private:
  static bool isFlag(const CLI::Option &option) { return option.get_items_expected_max() == 0; }
  static bool isList(const CLI::Option &option) { return option.get_items_expected_max() > 1; }
  static bool isOfNames(const CLI::Option &option) { return option.get_type_name().find('=') != std::string::npos; }

  static std::string keyOf(const CLI::Option &option) {
    std::string key = option.get_positional()       ? option.get_name(true)
                      : option.get_lnames().empty() ? ""
                                                    : option.get_lnames().front();
    if (option.get_positional())
      for (char &c : key)
        c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
    return key;
  }

  const CLI::Option *find(const std::string &key) const {
    std::vector<std::string> known;
    for (const CLI::Option *option : app.get_options()) {
      if (!option->get_configurable())
        continue;
      known.push_back(keyOf(*option));
      for (const std::string &name : option->get_lnames())
        if (name == key)
          return option;
      if (known.back() == key)
        return option;
    }
    throw CLI::ConfigError(file() + " has \"" + key + "\", which is no option" + didYouMean(key, known) +
                           "; --dump-config prints all");
  }

  std::string file() const { return app.get_config_ptr()->as<std::string>(); }

  [[noreturn]] void refuse(const std::string &key, const char *expected) const {
    throw CLI::ConfigError(file() + " gives \"" + key + "\" what it does not take; expected " + expected);
  }

  /// A string, number or list of them, with commas between.
  std::string wordOf(const std::string &key, const nlohmann::json &value) const {
    if (value.is_string())
      return value.get<std::string>();
    if (value.is_number())
      return value.dump();
    std::string text;
    if (!value.is_array())
      refuse(key, "a string or a number");
    for (const nlohmann::json &part : value) {
      if (part.is_structured())
        refuse(key, "a list of strings or numbers");
      text += (text.empty() ? "" : ",") + wordOf(key, part);
    }
    return text;
  }

  void addValues(const std::string &key, const CLI::Option &option, const nlohmann::json &value,
                 std::vector<std::string> &inputs) const {
    if (value.is_null())
      return;
    if (isFlag(option)) {
      // --explain=FILE.json has a value, too.
      if (!value.is_boolean() && !value.is_string())
        refuse(key, "true or false");
      if (value != false)
        inputs.push_back(value.is_string() ? value.get<std::string>() : "true");
    } else if (value.is_object()) {
      if (!isList(option) || !isOfNames(option))
        refuse(key, "a value");
      for (const auto &[name, part] : value.items())
        inputs.push_back(name + "=" + wordOf(key, part));
    } else if (value.is_array() && isList(option)) {
      for (const nlohmann::json &part : value)
        inputs.push_back(wordOf(key, part));
    } else {
      inputs.push_back(wordOf(key, value));
    }
  }

  static nlohmann::ordered_json describe(CLI::Option &option) {
    const std::vector<std::string> results = option.count() ? option.results() : std::vector<std::string>();
    if (isFlag(option)) {
      const std::string value = results.empty() ? "false" : results.front();
      if (value == "true" || value == "false")
        return value == "true";
      return value;
    }
    if (isList(option)) {
      auto hasName = [](const std::string &text) { return text.find('=') != std::string::npos; };
      if (isOfNames(option) && results.size() == 1 && !hasName(results.front()))
        return results.front();
      const bool haveNames = isOfNames(option) && std::all_of(results.begin(), results.end(), hasName);
      nlohmann::ordered_json list = haveNames ? nlohmann::ordered_json::object() : nlohmann::ordered_json::array();
      for (const std::string &text : results)
        if (haveNames)
          list[text.substr(0, text.rfind('='))] = text.substr(text.rfind('=') + 1);
        else
          list.push_back(text);
      return list;
    }
    option.capture_default_str();
    const std::string value = results.empty() ? option.get_default_str() : results.front();
    if (option.get_type_name() == "N" && !value.empty())
      return nlohmann::ordered_json::parse(value, nullptr, /*allow_exceptions=*/false);
    return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  }

  const CLI::App &app;
};

} // namespace tc

#endif // TC_SUPPORT_CONFIGFILE_H
