//===- Pytree.cpp - names of what programs of torch.export take and give ------------------------------------------===//
//
// Source: torch/utils/_pytree.py, treespec_dumps: [1, {"type", "context", "children_spec"}], where a leaf has no type.
// A dict's context is text again: a list of its keys, as is that of the output classes of transformers.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Pytree.h"

using namespace tc::exported;
using llvm::StringRef;

namespace {

json parse(StringRef source) {
  if (source.empty() || tc::isJsonTooDeep(source.data(), source.size()))
    return json();
  json parsed = tc::parseJson(source.data(), source.size());
  return parsed.is_discarded() ? json() : parsed;
}

/// What a key of a dict, or an entry of a list of names, is called.
std::string nameOf(const json &key) {
  if (key.is_string())
    return key.get<std::string>();
  return key.is_number_integer() || key.is_boolean() ? key.dump() : std::string();
}

/// The names of a node's children; empty where they have none.
std::vector<std::string> namesOf(const json &node, size_t count, const json *fields) {
  StringRef context = text(member(node, "context"));
  const json *names = nullptr;
  json parsed;
  if (fields)
    if (const json *entry = member(*fields, context.str().c_str()))
      names = member(*entry, "field_names");
  if (!names) {
    parsed = parse(context);
    const json *inner = parsed.is_object() ? member(parsed, "dict_context") : nullptr; // of a defaultdict
    names = inner ? inner : &parsed;
  }
  std::vector<std::string> result;
  if (!names->is_array() || names->size() != count)
    return result;
  for (const json &name : *names) {
    result.push_back(nameOf(name));
    if (result.back().empty())
      return {};
  }
  return result;
}

void collect(const json &node, const json *fields, LeafPath &path, std::vector<LeafPath> &leaves) {
  const json *children = member(node, "children_spec");
  if (!member(node, "type") || !children || !children->is_array()) {
    leaves.push_back(path);
    return;
  }
  std::vector<std::string> names = namesOf(node, children->size(), fields);
  for (size_t i = 0; i < children->size(); ++i) {
    path.push_back(names.empty() ? PathStep{std::to_string(i), true} : PathStep{names[i], false});
    collect((*children)[i], fields, path, leaves);
    path.pop_back();
  }
}

} // namespace

std::vector<LeafPath> tc::exported::readPytree(StringRef spec, const json *fields) {
  json parsed = parse(spec);
  std::vector<LeafPath> leaves;
  LeafPath path;
  if (parsed.is_array() && parsed.size() == 2 && parsed[1].is_object())
    collect(parsed[1], fields, path, leaves);
  return leaves;
}

std::string tc::exported::joinPath(llvm::ArrayRef<PathStep> path) {
  std::string joined;
  for (const PathStep &step : path)
    joined += (joined.empty() ? "" : ".") + step.name;
  return joined;
}
