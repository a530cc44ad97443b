//===- Program.cpp - programs of torch.export to graph ------------------------------------------------------------===//
//
// The signature: what the program takes and gives, under which names, and of which sizes. Nodes.cpp has the rest.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Frontend/ExportedProgram.h"

#include "Archive.h"
#include "Nodes.h"
#include "Pytree.h"
#include "Sizes.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Signature.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tc;
using namespace tc::exported;

namespace {

class Importer {
public:
  Importer(MLIRContext *context, StringRef path, const Archive &archive)
      : context(context), path(path), archive(archive), builder(context), unknown(builder.getUnknownLoc()) {}

  /// Adds the model's function.
  llvm::Error run(ModuleOp module);

private:
  /// What the program calls a constant, and the archive's value.
  struct Constant {
    StringRef value, name;
    base::DataAttr data;
  };
  struct Output {
    std::string name;
    Value value;
    ArrayAttr dims;
  };

  llvm::Error error(const Twine &what) { return archive.error(what); }
  llvm::Error readInputs(const json &specs, NodeImporter &nodes, const Scope &scope);
  llvm::Error readConstant(const json &spec, NodeImporter &nodes, const Scope &scope);
  llvm::Error addOutputs(const json &specs, NodeImporter &nodes, Scope &scope);
  void nameOutputs(SmallVectorImpl<Output> &updates);
  /// Models of one archive have states of their own, whatever they call them, unless it says otherwise.
  StringAttr stateName(StringRef name) {
    return builder.getStringAttr(archive.model().empty() || archive.sharesStates() ? name
                                                                                   : archive.model() + "." + name);
  }

  MLIRContext *context;
  StringRef path;
  const Archive &archive;
  OpBuilder builder;
  Location unknown;
  const json *callSignature = nullptr, *tupleFields = nullptr;
  SmallVector<ProgramInput> inputs;
  SmallVector<Constant> constants;
  SmallVector<Output> outputs;
  ProgramSizes sizes;
};

/// Makes `name` one that `taken` does not have yet.
std::string makeUnique(std::string name, llvm::StringSet<> &taken) {
  std::string unique = name;
  for (int64_t i = 1; !taken.insert(unique).second; ++i)
    unique = name + "_" + std::to_string(i);
  return unique;
}

llvm::Error Importer::readConstant(const json &spec, NodeImporter &nodes, const Scope &scope) {
  static const std::pair<const char *, const char *> kinds[] = {
      {"parameter", "parameter_name"}, {"buffer", "buffer_name"}, {"tensor_constant", "tensor_constant_name"}};
  for (auto [kind, nameKey] : kinds) {
    const json *held = member(spec, kind);
    if (!held)
      continue;
    StringRef name = text(member(*held, nameKey));
    const json *argument = member(*held, "arg");
    base::DataAttr data = archive.constant(name);
    if (!argument || !data)
      return error(Twine(kind) + " \"" + name + "\" has no data in the archive");
    StringRef value = text(member(*argument, "name"));
    // The nodes' types were made of what the program says of it.
    const json *tensors = member(scope.graph, "tensor_values");
    if (tensors && member(*tensors, value.str().c_str())) {
      llvm::Expected<Type> declared = nodes.typeOf(scope, value);
      if (!declared)
        return declared.takeError();
      auto shaped = dyn_cast<RankedTensorType>(*declared);
      auto stored = cast<RankedTensorType>(data.getType());
      if (shaped && (shaped.getElementType() != stored.getElementType() ||
                     failed(verifyCompatibleShape(shaped.getShape(), stored.getShape())))) {
        std::string text;
        llvm::raw_string_ostream(text) << stored << " in the archive, but the program declares it as " << shaped;
        return error(Twine(kind) + " \"" + name + "\" is a " + text + "; the archive is damaged");
      }
    }
    constants.push_back({value, name, data});
    return llvm::Error::success();
  }
  if (const json *object = member(spec, "custom_obj"))
    return error("the model holds \"" + text(member(*object, "custom_obj_name")) +
                 "\", an object of a class that only PyTorch can run; keep such objects out of what is exported");
  return error(
      "an input of the program is of a kind that tc does not know; supported are tensors, numbers, parameters, "
      "buffers and constants");
}

llvm::Error Importer::readInputs(const json &specs, NodeImporter &nodes, const Scope &scope) {
  std::vector<LeafPath> paths;
  SmallVector<StringRef> argumentNames;
  if (callSignature) {
    paths = readPytree(text(member(*callSignature, "in_spec")), tupleFields);
    if (const json *names = member(*callSignature, "forward_arg_names"); names && names->is_array())
      for (const json &name : *names)
        argumentNames.push_back(text(&name));
  }
  llvm::StringSet<> taken;
  size_t leaf = 0;
  for (const json &spec : specs) {
    if (member(spec, "token"))
      continue;
    // A value that was given when the model was exported: what depends on it was decided then.
    if (member(spec, "constant_input")) {
      ++leaf;
      continue;
    }
    const json *user = member(spec, "user_input");
    if (!user) {
      if (llvm::Error e = readConstant(spec, nodes, scope))
        return e;
      continue;
    }
    const json *argument = member(*user, "arg");
    StringRef value = argument ? NodeImporter::nameOf(*argument) : StringRef();
    if (argument && NodeImporter::isConstant(*argument)) {
      ++leaf;
      continue;
    }
    if (value.empty())
      return error("an input of the program is no tensor and no number; supported are tensors and numbers");
    ProgramInput input;
    input.value = value;
    llvm::Expected<Type> type = nodes.typeOf(scope, value, &input.sizes);
    if (!type)
      return type.takeError();
    input.type = cast<RankedTensorType>(*type);
    if (const json *numbers = member(scope.graph, "sym_int_values"))
      if (const json *number = member(*numbers, value.str().c_str()))
        if (const json *expr = member(*number, "as_expr"))
          input.number = parseSizeExpr(text(member(*expr, "expr_str")));
    // The path is (args, kwargs), the number or name of the argument, and the way into it.
    std::string name = value.str();
    if (leaf < paths.size() && paths[leaf].size() > 2) {
      LeafPath path(paths[leaf].begin() + 1, paths[leaf].end());
      const size_t position = path[0].isIndex ? std::stoul(path[0].name) : 0;
      if (path[0].isIndex && position < argumentNames.size() && !argumentNames[position].empty())
        path[0].name = argumentNames[position].str();
      name = joinPath(path);
    }
    ++leaf;
    input.name = makeUnique(name, taken);
    inputs.push_back(std::move(input));
  }
  return llvm::Error::success();
}

/// The names of user outputs from the way to them, and those of inputs that the program updates.
void Importer::nameOutputs(SmallVectorImpl<Output> &updates) {
  llvm::StringSet<> taken;
  for (Output &output : outputs)
    output.name = makeUnique(output.name, taken);
  for (Output &update : updates) {
    update.name = makeUnique(update.name, taken);
    outputs.push_back(update);
  }
}

llvm::Error Importer::addOutputs(const json &specs, NodeImporter &nodes, Scope &scope) {
  std::vector<LeafPath> paths;
  if (callSignature)
    paths = readPytree(text(member(*callSignature, "out_spec")), tupleFields);
  SmallVector<Output> updates;
  size_t leaf = 0;
  auto take = [&](const json &argument, std::string name) -> llvm::Expected<Output> {
    llvm::Expected<Value> value = nodes.valueOf(scope, "output", argument);
    if (!value)
      return value.takeError();
    SmallVector<std::optional<SizeExpr>> exprs;
    if (StringRef valueName = NodeImporter::nameOf(argument); !valueName.empty()) {
      llvm::Expected<Type> type = nodes.typeOf(scope, valueName, &exprs);
      if (!type)
        return type.takeError();
    }
    return Output{std::move(name), *value, sizes.nameDims(builder, exprs)};
  };
  for (const json &spec : specs) {
    if (member(spec, "token"))
      continue;
    static const std::pair<const char *, const char *> states[] = {{"buffer_mutation", "buffer_name"},
                                                                   {"parameter_mutation", "parameter_name"}};
    bool isState = false;
    for (auto [kind, nameKey] : states) {
      const json *mutation = member(spec, kind);
      const json *argument = mutation ? member(*mutation, "arg") : nullptr;
      if (!argument)
        continue;
      StringRef name = text(member(*mutation, nameKey));
      llvm::Expected<Value> value = nodes.lookup(scope, "output", text(member(*argument, "name")));
      if (!value)
        return value.takeError();
      if (llvm::none_of(constants, [&](const Constant &constant) { return constant.name == name; }))
        return error("the program updates \"" + name + "\", which it does not have; the archive is damaged");
      if (StringRef sharer = archive.findSharer(name); !sharer.empty())
        return error(
            "the program updates \"" + name + "\", which lies in the memory of \"" + sharer +
            "\", which is not supported; give each memory of its own by .clone() before the model is exported");
      Location loc = NameLoc::get(builder.getStringAttr(name));
      graph::NodeOp::create(builder, loc, graph::kOwnDomain, graph::kWriteState, 1, TypeRange(), *value,
                            builder.getNamedAttr(graph::kStateParam, stateName(name)));
      isState = true;
    }
    if (isState)
      continue;
    if (const json *mutation = member(spec, "user_input_mutation")) {
      const json *argument = member(*mutation, "arg");
      StringRef name = text(member(*mutation, "user_input_name"));
      auto input = llvm::find_if(inputs, [&](const ProgramInput &input) { return input.value == name; });
      if (!argument || input == inputs.end())
        return error("the program updates the input \"" + name + "\", which it does not have; the archive is damaged");
      llvm::Expected<Output> output = take(json{{"as_tensor", *argument}}, input->name + ".updated");
      if (!output)
        return output.takeError();
      updates.push_back(*output);
      continue;
    }
    if (const json *loss = member(spec, "loss_output")) {
      const json *argument = member(*loss, "arg");
      llvm::Expected<Output> output = take(json{{"as_tensor", argument ? *argument : json()}}, "loss");
      if (!output)
        return output.takeError();
      outputs.push_back(*output);
      ++leaf;
      continue;
    }
    const json *user = member(spec, "user_output");
    const json *argument = user ? member(*user, "arg") : nullptr;
    if (!argument)
      return error("an output of the program is of a kind that tc does not know, such as a gradient; supported are "
                   "tensors, numbers, and updates of buffers and inputs");
    const LeafPath path = leaf < paths.size() ? paths[leaf] : LeafPath();
    ++leaf;
    // None and words are no tensors that a caller could be given.
    if (member(*argument, "as_none") || member(*argument, "as_string"))
      continue;
    // Tuples and lists are counted through.
    std::string name = "output_" + std::to_string(outputs.size());
    if (llvm::any_of(path, [](const PathStep &step) { return !step.isIndex; }))
      name = (path[0].isIndex ? "output_" : "") + joinPath(path);
    llvm::Expected<Output> output = take(*argument, name);
    if (!output)
      return output.takeError();
    outputs.push_back(*output);
  }
  nameOutputs(updates);
  return llvm::Error::success();
}

llvm::Error Importer::run(ModuleOp result) {
  const json &file = archive.program();
  int64_t opset = 1;
  if (const json *versions = member(file, "opset_version"))
    opset = std::max<int64_t>(1, integer(member(*versions, "aten")).value_or(1));
  const json *module = member(file, "graph_module");
  const json *graph = module ? member(*module, "graph") : nullptr;
  const json *signature = module ? member(*module, "signature") : nullptr;
  const json *inputSpecs = signature ? member(*signature, "input_specs") : nullptr;
  const json *outputSpecs = signature ? member(*signature, "output_specs") : nullptr;
  if (!graph || !inputSpecs || !inputSpecs->is_array() || !outputSpecs || !outputSpecs->is_array())
    return error("the program has no graph or no signature; the archive is damaged");
  tupleFields = member(*module, "treespec_namedtuple_fields");
  if (const json *calls = member(*module, "module_call_graph"); calls && calls->is_array() && !calls->empty())
    callSignature = member((*calls)[0], "signature");

  NodeImporter nodes(builder, archive, llvm::sys::path::filename(path), opset);
  Scope scope(*graph);
  if (llvm::Error e = readInputs(*inputSpecs, nodes, scope))
    return e;
  if (std::string what = sizes.read(context, inputs, file); !what.empty())
    return error(what);

  builder.setInsertionPointToEnd(result.getBody());
  SmallVector<Type> argumentTypes;
  SmallVector<DictionaryAttr> argumentAttrs;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    argumentTypes.push_back(input.type);
    argumentAttrs.push_back(sizes.describe(builder, input, i));
  }
  auto function = graph::FuncOp::create(builder, unknown, archive.model().empty() ? "main" : archive.model(),
                                        builder.getFunctionType(argumentTypes, {}));
  function.setOpsetsAttr(builder.getDictionaryAttr(builder.getNamedAttr("aten", builder.getI64IntegerAttr(opset))));
  Block *body = &function.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(body);
  for (const ProgramInput &input : inputs) {
    BlockArgument argument = body->addArgument(input.type, unknown);
    nodes.layouts.describe(argument, NodeImporter::metaOf(scope, input.value));
    scope.values[input.value] = argument;
  }
  nodes.layouts.describe(function);
  for (const Constant &held : constants) {
    Location loc = NameLoc::get(builder.getStringAttr(held.value));
    auto constant = graph::ConstantOp::create(builder, loc, held.data.getType(), held.data);
    constant->setAttr(graph::kStateAttr, stateName(held.name));
    if (StringRef sharer = archive.findSharer(held.name); !sharer.empty())
      constant->setAttr(graph::kSharesAttr, builder.getStringAttr(sharer));
    nodes.layouts.describe(constant, NodeImporter::metaOf(scope, held.value));
    scope.values[held.value] = constant;
  }
  sizes.emitGuards(builder, body->getArguments(), opset);
  if (llvm::Error e = nodes.importNodes(scope))
    return e;
  if (llvm::Error e = addOutputs(*outputSpecs, nodes, scope))
    return e;

  SmallVector<Value> yielded;
  SmallVector<DictionaryAttr> resultAttrs;
  for (const Output &output : outputs) {
    yielded.push_back(output.value);
    resultAttrs.push_back(
        builder.getDictionaryAttr({builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(output.name)),
                                   builder.getNamedAttr(graph::kDimsAttr, output.dims)}));
  }
  graph::YieldOp::create(builder, unknown, yielded);
  function.setFunctionTypeAttr(TypeAttr::get(builder.getFunctionType(argumentTypes, ValueRange(yielded).getTypes())));
  function.setAllArgAttrs(argumentAttrs);
  function.setAllResultAttrs(resultAttrs);
  StringRef producer = text(member(file, "torch_version"));
  result->setAttr(graph::kProducerAttr, builder.getStringAttr(("PyTorch " + producer).str()));
  return llvm::Error::success();
}

/// States that functions have in common are of one type.
llvm::Error checkSharedStates(ModuleOp module, const Archive &archive) {
  llvm::StringMap<Type> types;
  std::string wrong;
  module.walk([&](graph::ConstantOp constant) {
    auto name = constant->getAttrOfType<StringAttr>(graph::kStateAttr);
    Type type = constant.getType();
    if (name && wrong.empty() && types.try_emplace(name.getValue(), type).first->second != type)
      llvm::raw_string_ostream(wrong) << "the state \"" << name.getValue() << "\" is " << types.lookup(name.getValue())
                                      << " in one model and " << type
                                      << " in another; give states that models do not share names of their own";
  });
  return wrong.empty() ? llvm::Error::success() : archive.error(wrong);
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> tc::importExportedProgram(MLIRContext *context, StringRef path) {
  context->loadDialect<graph::GraphDialect, tc::base::TCDialect>();
  llvm::Expected<std::vector<Archive>> models = Archive::open(context, path);
  if (!models)
    return models.takeError();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  for (const Archive &model : *models)
    if (llvm::Error e = Importer(context, path, model).run(*module))
      return std::move(e);
  if (models->size() > 1 && models->front().sharesStates())
    if (llvm::Error e = checkSharedStates(*module, models->front()))
      return std::move(e);
  if (failed(module->verify()))
    return models->front().error("the program is not well-formed");
  return module;
}
