//===- ImportOnnx.cpp - an ONNX file to a module of the graph dialect ---------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ImportGraph.h"
#include "OnnxFile.h"
#include "OnnxLibrary.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using llvm::Error;
using llvm::Twine;

namespace tc {

using namespace onnxfe;

void registerOnnxDialects(DialectRegistry &registry) { registry.insert<base::TCDialect, graph::GraphDialect>(); }

namespace {

std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return ((domain.empty() ? "ai.onnx" : domain) + ":" + name + ":" + overload).str();
}

// Names of the symbolic dims of the tensor in this type; null where there are none.
ArrayAttr getDimNames(OpBuilder &builder, const onnx::TypeProto &type) {
  if (type.has_sequence_type())
    return getDimNames(builder, type.sequence_type().elem_type());
  if (type.has_optional_type())
    return getDimNames(builder, type.optional_type().elem_type());
  if (!type.has_tensor_type() || !type.tensor_type().has_shape())
    return {};
  SmallVector<StringRef> names;
  bool any = false;
  for (const onnx::TensorShapeProto::Dimension &dim : type.tensor_type().shape().dim()) {
    names.push_back(dim.has_dim_param() ? StringRef(dim.dim_param()) : StringRef());
    any |= !names.back().empty();
  }
  return any ? builder.getStrArrayAttr(names) : ArrayAttr();
}

DictionaryAttr getValueAttrs(OpBuilder &builder, const onnx::ValueInfoProto &info) {
  NamedAttrList attrs;
  attrs.set(graph::kNameAttr, builder.getStringAttr(info.name()));
  if (ArrayAttr dims = getDimNames(builder, info.type()))
    attrs.set(graph::kDimsAttr, dims);
  if (!info.type().denotation().empty())
    attrs.set(graph::kDenotationAttr, builder.getStringAttr(info.type().denotation()));
  return attrs.getDictionary(builder.getContext());
}

class FileImporter {
public:
  FileImporter(MLIRContext *context, StringRef path, const ImportOptions &options)
      : context(context), importer(context) {
    importer.path = path.str();
    importer.fileName = llvm::sys::path::filename(path).str();
    importer.options = options;
  }

  llvm::Expected<OwningOpRef<ModuleOp>> run();

private:
  Error load();
  Error importMain();
  Error collectFunctions();
  Error importFunction(const onnx::FunctionProto &function, StringRef symbol);
  // Nodes of the model with all calls of model-local functions expanded; nullopt above `limit`.
  std::optional<uint64_t> countExpanded(uint64_t limit);
  Error finish(graph::FuncOp func, ArrayRef<Value> results, ArrayRef<Attribute> argAttrs, ArrayRef<Attribute> resAttrs);
  DictionaryAttr getOpsets();

  MLIRContext *context;
  GraphImporter importer;
  std::unique_ptr<onnx::ModelProto> model;
  OwningOpRef<ModuleOp> module;
  // Outputs as the file declares them; inference replaces their symbolic sizes.
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> declaredOutputs;
  llvm::StringMap<const onnx::FunctionProto *> functionOf;
  std::vector<std::pair<const onnx::FunctionProto *, std::string>> functionSymbols;
};

Error FileImporter::load() {
  BlobStore &store = base::getBlobStore(context);
  llvm::Expected<StringRef> blob = store.addFile(importer.path);
  if (!blob)
    return blob.takeError();
  importer.modelBlob = blob->str();
  ArrayRef<char> bytes = *store.lookup(*blob);
  if (bytes.empty())
    return importer.error("the file is empty; an ONNX model is expected");
  llvm::Expected<std::string> skeleton = makeSkeleton(bytes, {importer.options.maxDepth, importer.options.maxNodes});
  if (!skeleton)
    return importer.error(llvm::toString(skeleton.takeError()));
  model = parseModel(*skeleton);
  if (!model || !model->has_graph())
    return importer.error("it is no ONNX model; a file with a ModelProto that has a graph is expected");
  importer.irVersion = model->ir_version();
  if (importer.irVersion < 1)
    return importer.error("it is no ONNX model, as it has no IR version");
  if (importer.irVersion > onnx::IR_VERSION)
    return importer.error("IR version " + Twine(importer.irVersion) + " is not supported; supported are 1 to " +
                          Twine(static_cast<int>(onnx::IR_VERSION)) + "; export the model with an older onnx");
  // Before IR version 3 there were no opsets.
  if (model->opset_import_size() == 0) {
    if (importer.irVersion >= 3)
      return importer.error("it imports no opset; each model of IR version 3 or later must");
    model->add_opset_import()->set_version(1);
  }
  return importer.setOpsets(model->opset_import());
}

Error FileImporter::collectFunctions() {
  llvm::StringSet<> symbols;
  symbols.insert("main");
  for (const onnx::FunctionProto &function : model->functions()) {
    std::string key = functionKey(function.domain(), function.name(), function.overload());
    if (function.name().empty())
      return importer.error("it has a function without a name");
    if (!functionOf.try_emplace(key, &function).second)
      return importer.error("it has two functions named " + quote(function.name()) + " in domain " +
                            quote(function.domain()));
    std::string base = (function.domain().empty() ? "" : function.domain() + "_") + function.name() +
                       (function.overload().empty() ? "" : "_" + function.overload());
    std::string symbol = base;
    for (unsigned i = 1; !symbols.insert(symbol).second; ++i)
      symbol = base + "_" + std::to_string(i);
    importer.functions[key] = symbol;
    functionSymbols.push_back({&function, symbol});
  }
  // No function may call itself, directly or not: visit callees before callers, with an explicit stack.
  enum State { Open = 1, Done };
  llvm::DenseMap<const onnx::FunctionProto *, int> state;
  auto callees = [&](const onnx::FunctionProto *function) {
    SmallVector<const onnx::FunctionProto *> result;
    auto visit = [&](auto &self, const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) -> void {
      for (const onnx::NodeProto &node : nodes) {
        if (auto it = functionOf.find(functionKey(node.domain(), node.op_type(), node.overload()));
            it != functionOf.end())
          result.push_back(it->second);
        for (const onnx::AttributeProto &attribute : node.attribute()) {
          self(self, attribute.g().node());
          for (const onnx::GraphProto &graph : attribute.graphs())
            self(self, graph.node());
        }
      }
    };
    visit(visit, function->node());
    return result;
  };
  for (auto &[root, symbol] : functionSymbols) {
    std::vector<std::pair<const onnx::FunctionProto *, SmallVector<const onnx::FunctionProto *>>> stack;
    if (state[root])
      continue;
    state[root] = Open;
    stack.push_back({root, callees(root)});
    while (!stack.empty()) {
      if (stack.back().second.empty()) {
        state[stack.back().first] = Done;
        stack.pop_back();
        continue;
      }
      const onnx::FunctionProto *next = stack.back().second.pop_back_val();
      if (state[next] == Open)
        return importer.error("the function " + quote(next->name()) +
                              " calls itself, directly or through others; "
                              "functions must not be recursive");
      if (!state[next]) {
        state[next] = Open;
        stack.push_back({next, callees(next)});
      }
    }
  }
  return Error::success();
}

std::optional<uint64_t> FileImporter::countExpanded(uint64_t limit) {
  llvm::DenseMap<const onnx::FunctionProto *, uint64_t> known;
  // Depth of calls is at most the number of functions; a file with a chain of very many is not worth inference.
  if (functionSymbols.size() > 1000)
    return std::nullopt;
  auto count = [&](auto &self, const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) -> uint64_t {
    uint64_t total = 0;
    for (const onnx::NodeProto &node : nodes) {
      ++total;
      if (auto it = functionOf.find(functionKey(node.domain(), node.op_type(), node.overload()));
          it != functionOf.end()) {
        auto [entry, isNew] = known.try_emplace(it->second, 0);
        if (isNew) {
          uint64_t inner = self(self, it->second->node());
          known[it->second] = inner;
          total += inner;
        } else {
          total += entry->second;
        }
      }
      for (const onnx::AttributeProto &attribute : node.attribute()) {
        total += self(self, attribute.g().node());
        for (const onnx::GraphProto &graph : attribute.graphs())
          total += self(self, graph.node());
      }
      total = std::min(total, limit + 1);
    }
    return total;
  };
  uint64_t total = count(count, model->graph().node());
  return total > limit ? std::nullopt : std::optional<uint64_t>(total);
}

DictionaryAttr FileImporter::getOpsets() {
  NamedAttrList opsets;
  for (const auto &entry : importer.opsets)
    opsets.set(entry.first(), importer.builder.getI64IntegerAttr(entry.second));
  return opsets.getDictionary(context);
}

// Sets type and attributes of a function whose body is complete but for its end.
Error FileImporter::finish(graph::FuncOp func, ArrayRef<Value> results, ArrayRef<Attribute> argAttrs,
                           ArrayRef<Attribute> resAttrs) {
  OpBuilder &builder = importer.builder;
  graph::YieldOp::create(builder, func.getLoc(), results);
  func.setFunctionType(builder.getFunctionType(func.getBody().getArgumentTypes(), TypeRange(ValueRange(results))));
  func.setOpsetsAttr(getOpsets());
  if (!argAttrs.empty())
    func.setArgAttrsAttr(builder.getArrayAttr(argAttrs));
  if (!resAttrs.empty())
    func.setResAttrsAttr(builder.getArrayAttr(resAttrs));
  return Error::success();
}

Error FileImporter::importMain() {
  const onnx::GraphProto &graph = model->graph();
  OpBuilder &builder = importer.builder;
  builder.setInsertionPointToEnd(module->getBody());
  Location loc = importer.getLocation("main", 0);
  auto func = graph::FuncOp::create(builder, loc, "main", builder.getFunctionType({}, {}));
  Block *block = builder.createBlock(&func.getBody());
  GraphImporter::Scope &scope = importer.pushScope();
  importer.declareTypes(scope, graph.value_info());
  importer.declareTypes(scope, graph.output());

  llvm::StringMap<const onnx::TensorProto *> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (!initializers.try_emplace(tensor.name(), &tensor).second)
      return importer.error("it has two initializers named " + quote(tensor.name()));
  // An initializer that is an input too is a default, which the caller may override; before IR version 4 every
  // initializer had to be an input, and there it is a constant.
  llvm::StringMap<Attribute> defaults;
  SmallVector<Attribute> argAttrs, resAttrs;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    auto initializer = initializers.find(input.name());
    if (initializer != initializers.end() && importer.irVersion < 4)
      continue;
    if (input.name().empty())
      return importer.error("it has an input without a name");
    llvm::Expected<Type> type = importer.importType(input.type(), input.name());
    if (!type)
      return type.takeError();
    DictionaryAttr attrs = getValueAttrs(builder, input);
    if (initializer != initializers.end()) {
      GraphImporter::AttrResult value = importer.importTensor(*initializer->second, "", input.name());
      if (!value)
        return value.takeError();
      NamedAttrList withDefault(attrs);
      withDefault.set(graph::kDefaultAttr, *value);
      attrs = withDefault.getDictionary(context);
      defaults[input.name()] = *value;
    }
    argAttrs.push_back(attrs);
    Value argument = block->addArgument(*type, NameLoc::get(builder.getStringAttr(input.name())));
    if (Error error = importer.define(input.name(), argument, ""))
      return error;
  }
  if (Error error = importer.importInitializers(graph, &defaults))
    return error;
  if (Error error = importer.importNodes(graph.node()))
    return error;
  SmallVector<Value> results;
  for (const onnx::ValueInfoProto &output : declaredOutputs) {
    Value value = importer.lookup(output.name());
    if (!value)
      return importer.error("the output " + quote(output.name()) + " is defined by no node, input or initializer");
    results.push_back(value);
    NamedAttrList attrs(getValueAttrs(builder, output));
    // The value may be an input or a constant, whose type stands, or have the type that was inferred; what the file
    // declares, be it nothing, is kept for the conversion.
    llvm::Expected<Type> declared = importer.importType(output.type(), output.name());
    if (!declared)
      return declared.takeError();
    if (*declared != value.getType())
      attrs.set(graph::kDeclaredTypeAttr, TypeAttr::get(*declared));
    resAttrs.push_back(attrs.getDictionary(context));
  }
  importer.popScope();
  return finish(func, results, argAttrs, resAttrs);
}

Error FileImporter::importFunction(const onnx::FunctionProto &function, StringRef symbol) {
  OpBuilder &builder = importer.builder;
  builder.setInsertionPointToEnd(module->getBody());
  auto func =
      graph::FuncOp::create(builder, importer.getLocation(function.name(), 0), symbol, builder.getFunctionType({}, {}));
  func.setPrivate();
  func.setDomain(function.domain().empty() ? "ai.onnx" : StringRef(function.domain()));
  func.setOpType(StringRef(function.name()));
  if (!function.overload().empty())
    func.setOverload(StringRef(function.overload()));
  if (Error error = importer.setOpsets(function.opset_import()))
    return error;
  SmallVector<StringRef> parameters(function.attribute().begin(), function.attribute().end());
  NamedAttrList defaults;
  for (const onnx::AttributeProto &attribute : function.attribute_proto()) {
    if (attribute.name().empty() || defaults.get(attribute.name()))
      return importer.error("the function " + quote(function.name()) + " has two attributes of one name");
    GraphImporter::AttrResult value = importer.importAttribute(attribute, function.name());
    if (!value)
      return value.takeError();
    defaults.set(attribute.name(), *value);
    parameters.push_back(attribute.name());
  }
  if (!parameters.empty())
    func.setAttrParamsAttr(builder.getStrArrayAttr(parameters));
  if (!defaults.empty())
    func.setAttrDefaultsAttr(defaults.getDictionary(context));

  Block *block = builder.createBlock(&func.getBody());
  GraphImporter::Scope &scope = importer.pushScope();
  importer.declareTypes(scope, function.value_info());
  SmallVector<Attribute> argAttrs, resAttrs;
  auto nameAttr = [&](StringRef name) {
    return builder.getDictionaryAttr(builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(name)));
  };
  for (const std::string &input : function.input()) {
    Value argument = block->addArgument(base::UnknownType::get(context), NameLoc::get(builder.getStringAttr(input)));
    if (Error error = importer.define(input, argument, function.name()))
      return error;
    argAttrs.push_back(nameAttr(input));
  }
  if (Error error = importer.importNodes(function.node()))
    return error;
  SmallVector<Value> results;
  for (const std::string &output : function.output()) {
    Value value = importer.lookup(output);
    if (!value)
      return importer.error("the output " + quote(output) + " of function " + quote(function.name()) +
                            " is defined by nothing");
    results.push_back(value);
    resAttrs.push_back(nameAttr(output));
  }
  importer.popScope();
  return finish(func, results, argAttrs, resAttrs);
}

llvm::Expected<OwningOpRef<ModuleOp>> FileImporter::run() {
  context->getOrLoadDialect<base::TCDialect>();
  context->getOrLoadDialect<graph::GraphDialect>();
  if (Error error = load())
    return std::move(error);
  OpBuilder &builder = importer.builder;
  module = ModuleOp::create(importer.getLocation("model", 0));
  ModuleOp op = *module;
  if (!model->producer_name().empty())
    op->setAttr(graph::kProducerAttr,
                builder.getStringAttr(model->producer_name() +
                                      (model->producer_version().empty() ? "" : " " + model->producer_version())));
  op->setAttr(graph::kIrVersionAttr, builder.getI64IntegerAttr(model->ir_version()));
  if (!model->graph().name().empty())
    op->setAttr(graph::kGraphNameAttr, builder.getStringAttr(model->graph().name()));
  NamedAttrList metadata;
  for (const onnx::StringStringEntryProto &entry : model->metadata_props())
    if (!entry.key().empty())
      metadata.set(entry.key(), builder.getStringAttr(entry.value()));
  if (!metadata.empty())
    op->setAttr(graph::kMetadataAttr, metadata.getDictionary(context));

  if (Error error = collectFunctions())
    return std::move(error);
  declaredOutputs = model->graph().output();
  // Inference walks into calls of functions; files whose expansion explodes do without it.
  if (importer.options.inferShapes && countExpanded(1'000'000))
    inferShapes(*model);
  if (Error error = importMain())
    return std::move(error);
  for (auto &[function, symbol] : functionSymbols)
    if (Error error = importFunction(*function, symbol))
      return std::move(error);

  std::string problem;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (problem.empty())
      problem = diagnostic.str();
    return success();
  });
  if (failed(mlir::verify(op)))
    return importer.error("internal error: the imported graph is not valid: " + problem);
  return std::move(module);
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> importOnnx(MLIRContext *context, StringRef path, const ImportOptions &options) {
  return FileImporter(context, path, options).run();
}

Attribute getOnnxAttributeDefault(MLIRContext *context, StringRef domain, StringRef type, int64_t opset,
                                  StringRef attribute) {
  std::optional<onnx::AttributeProto> value = getAttributeDefault(domain, type, static_cast<int>(opset), attribute);
  if (!value)
    return {};
  GraphImporter importer(context);
  GraphImporter::AttrResult attr = importer.importAttribute(*value, type);
  if (!attr) {
    llvm::consumeError(attr.takeError());
    return {};
  }
  return *attr;
}

} // namespace tc
