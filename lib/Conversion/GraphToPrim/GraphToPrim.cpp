//===- GraphToPrim.cpp - the walk over a graph --------------------------------------------------------------------===//
//
// Gives each node to its handler, in order, and collects what fails. A node whose operands failed is skipped, but still
// checked for a handler, so that one run names all operators that tc lacks. The new function is built beside the old
// one, which goes only if all went well.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Converter.h"

#include "ConstantData.h"
#include "CustomOperator.h"
#include "MixedAttention.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "TorchArguments.h"
#include "VaryingRank.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/Graph/IR/Source.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/Utils/Admission.h"
#include "tc/Support/Suggest.h"
#include "tcrt/artifact_abi.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

std::string fullType(graph::NodeOp node) {
  std::string type = node.getOpType().str();
  if (node.getDomain() != "ai.onnx")
    type = (node.getDomain() + "." + type).str();
  return type;
}

/// The beginning of what is said of a node.
std::string describeNode(graph::NodeOp node) {
  return ("node \"" + node.getNodeName() + "\": " + fullType(node) + " (opset " + Twine(node.getOpset()) + "): ").str();
}

/// Whether its results have types that PyTorch computed, and its arguments may be what its signature says no constant
/// is.
bool isOfTorch(graph::NodeOp node) { return node.getDomain() == "aten" || node.getDomain() == "quantized_decomposed"; }

FunctionExpander functionExpander = nullptr;
DefinitionQuery hasDefinition = nullptr;
OperandCheck findOperandError = nullptr;

/// Replaces `node` by its operator's definition. Fails where there is none for the types that `node` has by now.
LogicalResult expandNode(graph::NodeOp &node, IRRewriter &rewriter) {
  if (!functionExpander)
    return failure();
  node = unifyAttention(node);
  rewriter.setInsertionPoint(node);
  return functionExpander(node, rewriter);
}

} // namespace

void Converter::reportInvalid(Location loc, const Twine &message) {
  ++failedNodes;
  ++report.invalidCount;
  emitError(loc) << message;
}

/// Of an operator that has no handler and no definition.
std::string describeUnknown(graph::NodeOp node) {
  std::vector<std::string> known;
  for (const auto &entry : OpRegistry::get().entries())
    if (entry.first.first == node.getDomain())
      known.push_back(entry.first.second);
  // Names with dots are not typed by hand, and differ little from overload to overload.
  std::string meant = node.getOpType().contains('.') ? "" : didYouMean(node.getOpType().str(), known);
  if (node.getDomain() == "higher_order" && node.getOpType().starts_with("auto_functionalized")) {
    auto callee = dyn_cast_or_null<StringAttr>(node.getNodeAttr("arg0.value"));
    StringRef name = callee ? callee.getValue() : "an operator";
    name.consume_front("torch.ops.");
    return "is not supported: it calls " + name.str() +
           ", which writes its arguments; give its signature by --custom-op, with a \"schema\" as PyTorch prints it, "
           "or "
           "have the operator return new values (mutates_args=())";
  }
  if (node.getDomain() == "higher_order")
    return "is not supported: it has a meaning only where PyTorch runs; cond, while_loop, scan and map are supported";
  return "is not supported" + meant + "; tc-inspect --operators lists what is" +
         (node.getDomain() == "aten" ? ", others can be written by these in Python," : ",") +
         " and --custom-op takes operators of your own";
}

/// The signature by which a node is computed; null: by tc.
const CustomOperator *Converter::findCustom(graph::NodeOp node) {
  const CustomOperator *custom = findCustomOperator(options.customOperators, node);
  const bool isSpare = custom && options.allowHostOps && !node->hasAttr(graph::kFunctionalAttr) &&
                       OpRegistry::get().lookup(node.getDomain(), node.getOpType(), node.getOpset());
  return isSpare && !(hostNodes && hostNodes->contains(node)) ? nullptr : custom;
}

void Converter::reportUnsupported(graph::NodeOp node, StringRef reason) {
  ++failedNodes;
  if (hostNodes && options.allowHostOps && !node->hasAttr(graph::kRefusedAttr) &&
      findCustomOperator(options.customOperators, node))
    hostNodes->insert(node);
  std::string key = (fullType(node) + " " + Twine(node.getOpset()) + " " + reason).str();
  auto [it, isNew] = reasons.try_emplace(key, report.unsupported.size(), node.getLoc());
  if (isNew) {
    UnsupportedNode entry;
    entry.name = node.getNodeName();
    entry.domain = node.getDomain().str();
    entry.type = node.getOpType().str();
    entry.opset = node.getOpset();
    entry.reason = reason.str();
    report.unsupported.push_back(entry);
  }
  ++report.unsupported[it->second.first].count;
  report.unsupported[it->second.first].names.push_back(node.getNodeName());
}

void Converter::emitUnsupported() {
  for (const UnsupportedNode &entry : report.unsupported) {
    std::string type = (entry.domain == "ai.onnx" ? "" : entry.domain + ".") + entry.type;
    auto it = reasons.find((type + " " + Twine(entry.opset) + " " + entry.reason).str());
    if (it == reasons.end())
      continue; // of an input: emitted when it was met
    InFlightDiagnostic error = emitError(it->second.second);
    error << "node \"" << entry.name << "\": ";
    if (!isConstruct(entry.domain))
      error << type << " (opset " << entry.opset << ") ";
    error << entry.reason;
    if (std::string place = graph::describePlace(it->second.second); !place.empty())
      error.attachNote() << "it stands at " << place;
    if (entry.count > 1)
      error.attachNote() << entry.count - 1 << " more node" << (entry.count > 2 ? "s fail" : " fails")
                         << " for the same reason; --explain lists them";
  }
}

/// What a front end, or a pass on graphs, says of a node that it refuses; nullopt of others.
static std::optional<std::string> findRefusal(graph::NodeOp node) {
  auto refused = node->getAttrOfType<StringAttr>(graph::kRefusedAttr);
  if (!refused)
    return std::nullopt;
  return refused.getValue().empty() ? describeUnknown(node) : refused.str();
}

/// A node that is not converted, because its operands failed: are it and its subgraphs known at least?
void Converter::checkSkipped(graph::NodeOp node) {
  ++failedNodes;
  node->walk([&](graph::NodeOp inner) {
    if (inner->hasAttr(graph::kUnknownAttr))
      unknown = unknown ? unknown : inner;
    else if (std::optional<std::string> refusal = findRefusal(inner))
      reportUnsupported(inner, *refusal);
    else if (!inner.getCallee() && !findCustomOperator(options.customOperators, inner) &&
             !OpRegistry::get().lookup(inner.getDomain(), inner.getOpType(), inner.getOpset()) &&
             !(hasDefinition && hasDefinition(inner)))
      reportUnsupported(inner, describeUnknown(inner));
  });
}

/// Takes the static sizes that the front end inferred where the conversion has only a symbol that depends on data.
Value Converter::refine(Value v, Type declared) {
  auto type = dyn_cast_or_null<RankedTensorType>(v ? v.getType() : Type());
  auto known = dyn_cast<RankedTensorType>(declared);
  if (!type || !known || type.hasStaticShape() || known.getRank() != type.getRank())
    return v;
  Sizes sizes = getSizes(v), better = sizes;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    bool ofData = false;
    size.walk([&](AffineExpr e) {
      auto symbol = dyn_cast<AffineSymbolExpr>(e);
      ofData |= symbol && symbol.getPosition() >= inputSymbols;
    });
    // ONNX's inference says 0 where it adds sizes that it does not know.
    if (ofData && !known.isDynamicDim(i) && known.getDimSize(i) > 0)
      better[i] = builder.size(known.getDimSize(i));
  }
  // What contradicts the number of elements is no better knowledge.
  AffineExpr elements = product(builder.getContext(), getSizes(skipReshapes(v))),
             declaredElements = product(builder.getContext(), better);
  if (better == sizes ||
      (getConstantSize(elements) && getConstantSize(declaredElements) && elements != declaredElements))
    return v;
  for (auto [i, size] : llvm::enumerate(sizes))
    if (better[i] != size)
      builder.guard(builder.sizeValue(size), known.getDimSize(i),
                    "node \"" + graph::getNodeName(builder.getLoc()) + "\": dim " + Twine(i) +
                        " of its result is not " + Twine(known.getDimSize(i)) + ", as the model declares");
  return builder.reshape(v, better);
}

/// Small integer tensors that are known become constants or prim.sizes: what computed them is dead.
Value Converter::foldIntegers(Value v) {
  auto type = dyn_cast_or_null<RankedTensorType>(v ? v.getType() : Type());
  Operation *op = v ? v.getDefiningOp() : nullptr;
  if (!type || !op || isa<prim::ConstantOp, SizesOp, SplatOp>(op) || !isa<IntegerType>(type.getElementType()))
    return v;
  std::optional<Sizes> known = ints.get(v);
  if (!known || known->size() > 64)
    return v;
  SmallVector<Attribute> constants;
  for (AffineExpr e : *known)
    if (auto c = getConstantSize(e))
      constants.push_back(
          IntegerAttr::get(type.getElementType(), APInt(64, uint64_t(*c)).zextOrTrunc(type.getElementTypeBitWidth())));
  if (constants.size() == known->size())
    return prim::ConstantOp::create(builder, cast<TypedAttr>(DenseElementsAttr::get(type, constants)));
  if (type.getRank() > 1 || type.getElementTypeBitWidth() < 32)
    return v;
  Value sizes = type.getRank() == 0 ? builder.sizeValue(known->front()) : builder.sizesValue(*known);
  return builder.convert(sizes, type.getElementType());
}

void Converter::convertNode(graph::NodeOp node) {
  builder.setLoc(node.getLoc());
  SmallVector<Value> operands;
  for (Value input : node.getInputs()) {
    if (isPoisoned(input))
      return checkSkipped(node);
    operands.push_back(values.lookup(input));
  }
  if (node->hasAttr(graph::kRefusedAttr) || node->hasAttr(graph::kUnknownAttr))
    return checkSkipped(node);
  if (node.getCallee())
    if (auto callee = module.lookupSymbol<graph::FuncOp>(*node.getCallee()))
      return node.getDomain() == graph::kOwnDomain && node.getOpType() == graph::kOnnxRuntime
                 ? convertBackendPart(node, callee, operands)
                 : convertCall(node, callee, operands);
  const CustomOperator *custom = findCustom(node);
  const OpEntry *entry =
      custom ? nullptr : OpRegistry::get().lookup(node.getDomain(), node.getOpType(), node.getOpset());
  NodeContext ctx(node, builder, ints, *this, operands, parameters);
  std::string prefix = describeNode(node);
  // What operators of the user's own ask for, their signature says.
  const OperandRules *rules =
      custom ? nullptr : OpRegistry::get().lookupRules(node.getDomain(), node.getOpType(), node.getOpset());
  for (size_t i = 0; entry && i < entry->minOperands; ++i)
    if (!ctx.has(i))
      return reportInvalid(node.getLoc(), prefix + "operand " + Twine(i) + " is missing");
  if (entry && findOperandError) {
    auto types = llvm::map_to_vector(operands, [&](Value v) -> Type {
      auto tensor = dyn_cast_or_null<TensorType>(v ? v.getType() : Type());
      bool asFloat = tensor && entry->takesAnyFloat && isa<FloatType>(tensor.getElementType());
      return asFloat ? tensor.clone(builder.getF32Type()) : Type(tensor);
    });
    if (auto first = dyn_cast_or_null<TensorType>(types.empty() ? Type() : types[0]); first && entry->takesAnyInteger)
      if (auto integer = dyn_cast<IntegerType>(first.getElementType()); integer && integer.getWidth() >= 8)
        types[0] = first.clone(builder.getI64Type());
    if (std::string error = findOperandError(node, types); !error.empty())
      return reportInvalid(node.getLoc(), prefix + error);
  }
  if (!custom)
    if (std::string error = findTorchArgumentError(node); !error.empty())
      return reportInvalid(node.getLoc(), prefix + error);
  if (rules)
    if (std::string error = findRuleError(ctx, *rules, node.getDomain() == "aten"); !error.empty())
      return reportInvalid(node.getLoc(), prefix + error);
  if (!custom && !entry) {
    if (!convertDefinition(node, operands))
      reportUnsupported(node, describeUnknown(node));
    return;
  }
  bool hasComplex = llvm::any_of(operands, [&](Value v) { return v && builder.isComplex(v); });
  ComplexUse complexUse = entry && hasComplex ? entry->complexUse : ComplexUse::Moved;
  if (complexUse == ComplexUse::None)
    return reportUnsupported(node, "on complex numbers is not supported");
  int64_t failedBefore = failedNodes;
  LogicalResult emitted = custom                              ? convertCustomOperator(ctx, *custom, isEarly)
                          : complexUse == ComplexUse::ByParts ? ctx.emitByParts(entry->handler)
                                                              : entry->handler(ctx);
  // An argument that a handler of PyTorch's operators asked for as a constant may be none.
  if (isOfTorch(node) && (ctx.isUnsupported() || ctx.isInvalid()))
    emitted = failure();
  if (failed(emitted)) {
    SmallVector<unsigned> varying(ctx.resultsOfVaryingRank());
    if (leavingFrom && leavingFrom->getParentOp() == node) {
      varying = std::exchange(leaving, {});
      leavingFrom = nullptr;
      failedNodes = failedBefore;
    }
    if (!varying.empty())
      return convertVarying(node, varying);
    if (ctx.isInvalid())
      return reportInvalid(node.getLoc(), prefix + ctx.reason());
    if (ctx.isUnsupported())
      return reportUnsupported(node, ctx.reason());
    if (failedNodes == failedBefore) // a handler must say why
      return reportUnsupported(node, "is not supported in this form");
    return;
  }
  for (auto [i, result] : llvm::enumerate(node.getOutputs())) {
    Value v = i < ctx.results().size() ? ctx.results()[i] : Value();
    if (!v && !result.use_empty()) {
      reportUnsupported(node, ("with result " + Twine(i) + " is not supported").str());
      continue;
    }
    if (v && !admit(node, v))
      continue;
    if (v && isOfTorch(node) && !agrees(node, i, v))
      continue;
    values[result] = foldIntegers(refine(v, result.getType()));
  }
}

/// Whether an ATen result is of the type that the archive, which PyTorch computed, has for it; else says so. What
/// nobody reads has no say: PyTorch 2.11 declares the states of recurrent layers with a dim too many.
bool Converter::agrees(graph::NodeOp node, unsigned index, Value v) {
  auto declared = dyn_cast<RankedTensorType>(node->getResult(index).getType());
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!declared || !type || node->getResult(index).use_empty() ||
      (declared.getElementType() == type.getElementType() &&
       succeeded(verifyCompatibleShape(declared.getShape(), type.getShape()))))
    return true;
  std::string text;
  llvm::raw_string_ostream(text) << RankedTensorType::get(declared.getShape(), declared.getElementType());
  reportInvalid(node.getLoc(), describeNode(node) + "tc computes " + describe(v) + " as result " + Twine(index) +
                                   ", but the model declares " + text +
                                   "; please report this, and export what the node computes in another way meanwhile");
  return false;
}

/// Whether a result is one that an artifact can hold; else says so.
bool Converter::admit(graph::NodeOp node, Value result) {
  std::optional<Refusal> refusal = refuseType(result.getType());
  if (!refusal)
    return true;
  if (refusal->kind == base::ErrorKind::Unsupported)
    reportUnsupported(node, "with a result that " + refusal->what);
  else
    reportInvalid(node.getLoc(), describeNode(node) + "a result " + refusal->what);
  return false;
}

/// Expands a node that expandFunctions left, as its definition depends on types that the front end did not know. The
/// node itself stays: the function that it is part of may be converted again, with operands of other types.
bool Converter::convertDefinition(graph::NodeOp node, ArrayRef<Value> operands) {
  OpBuilder b(node.getContext());
  graph::FuncOp function =
      graph::FuncOp::create(b, node.getLoc(), "definition", FunctionType::get(node.getContext(), {}, {}));
  definitions.emplace_back(function);
  Block &block = function.getBody().emplaceBlock();
  b.setInsertionPointToEnd(&block);
  IRMapping mapping;
  for (auto [input, operand] : llvm::zip_equal(node.getInputs(), operands)) {
    if (mapping.contains(input))
      continue;
    Type type = b.getNoneType();
    if (operand) {
      auto tensor = cast<RankedTensorType>(operand.getType());
      Type element = tensor.getElementType();
      type = base::isHandle(element) ? element : RankedTensorType::get(tensor.getShape(), element);
    }
    Value argument = block.addArgument(type, node.getLoc());
    mapping.map(input, argument);
    values[argument] = operand;
  }
  auto copy = cast<graph::NodeOp>(b.clone(*node, mapping));
  graph::YieldOp::create(b, node.getLoc(), copy->getResults());
  IRRewriter rewriter(copy);
  if (failed(expandNode(copy, rewriter)))
    return false;
  FailureOr<SmallVector<Value>> results = convertBody(block);
  if (succeeded(results)) // else what failed in it is reported
    for (auto [result, value] : llvm::zip_equal(node.getOutputs(), *results))
      values[result] = refine(value, result.getType());
  return true;
}

/// `node` is an If whose branches give these results different ranks, or one that yields such results of a node inside.
void Converter::convertVarying(graph::NodeOp node, ArrayRef<unsigned> varying) {
  if (isEarly) { // the users to come can't be moved into the branches yet
    ++failedNodes;
    return;
  }
  if (succeeded(moveUserIntoBranches(node, varying)))
    return convertNode(node); // the rest of its results; the new node comes later in the block
  auto parent = dyn_cast<graph::NodeOp>(node->getParentOp());
  if (!parent || parent.getOpType() != "If" || parent.getDomain() != node.getDomain())
    return reportUnsupported(node, "with branches whose results differ in rank, up to an output of the graph, is not "
                                   "supported");
  leaving = yieldedAs(node, varying);
  leavingFrom = node->getBlock()->getTerminator();
  ++failedNodes;
}

/// Inlines a function that the model brings along.
void Converter::convertCall(graph::NodeOp node, graph::FuncOp callee, ArrayRef<Value> operands) {
  if (callDepth >= 32)
    return reportInvalid(node.getLoc(), "node \"" + Twine(node.getNodeName()) + "\": function " +
                                            Twine(callee.getSymName()) + " calls itself, or calls nest deeper than 32");
  // Attribute parameters: the caller's attributes (which may name its own parameters) over the defaults.
  NamedAttrList given(callee.getAttrDefaultsAttr() ? callee.getAttrDefaultsAttr() : DictionaryAttr());
  for (NamedAttribute attr : node.getAttrs()) {
    Attribute value = attr.getValue();
    if (auto ref = dyn_cast<graph::RefAttr>(value))
      value = parameters ? parameters.get(ref.getParam()) : Attribute();
    if (value)
      given.set(attr.getName(), value);
  }
  Block &block = callee.getBody().front();
  for (auto [i, argument] : llvm::enumerate(block.getArguments()))
    values[argument] = i < operands.size() ? operands[i] : Value();
  DictionaryAttr outer = parameters;
  parameters = given.getDictionary(module.getContext());
  ++callDepth;
  FailureOr<SmallVector<Value>> results = convertBody(block);
  --callDepth;
  parameters = outer;
  if (failed(results)) {
    ++failedNodes;
    return;
  }
  for (auto [i, result] : llvm::enumerate(node.getOutputs()))
    values[result] = i < results->size() ? (*results)[i] : Value();
}

void Converter::convertConstant(graph::ConstantOp constant) {
  builder.setLoc(constant.getLoc());
  auto state = constant->getAttrOfType<StringAttr>(graph::kStateAttr);
  if (state && states.lookup(state.getValue()) == constant)
    values[constant.getResult()] = prim::ReadStateOp::create(builder, constant.getType(), state.getValue());
  else if (Value v = makeConstant(builder, cast<TypedAttr>(constant.getValue())))
    values[constant.getResult()] = v;
  else
    values.erase(constant.getResult());
  if (isPoisoned(constant.getResult()) && !constant.getResult().use_empty()) {
    ++failedNodes;
    ++report.invalidCount;
    emitError(constant.getLoc()) << "constant \"" << graph::getNodeName(constant.getLoc()) << "\" of type "
                                 << constant.getResult().getType()
                                 << " is not supported; supported: dense integers, floats, complex numbers and strings";
  }
}

FailureOr<SmallVector<Value>> Converter::convertBody(Block &block) {
  bool ok = true;
  for (Operation &op : block) {
    if (auto node = dyn_cast<graph::NodeOp>(op)) {
      for (Value result : node.getOutputs())
        values.erase(result); // of an earlier conversion of the same body
      if (node.getDomain() == graph::kOwnDomain && node.getOpType() == graph::kWriteState)
        convertStateWrite(node);
      else
        convertNode(node);
    } else if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
      convertConstant(constant);
    } else if (auto none = dyn_cast<graph::NoneOp>(op)) {
      values[none.getResult()] = Value();
    } else if (auto yield = dyn_cast<graph::YieldOp>(op)) {
      SmallVector<Value> results;
      for (Value v : yield.getValues()) {
        ok &= !isPoisoned(v);
        results.push_back(values.lookup(v));
      }
      if (ok)
        return results;
    }
  }
  return failure();
}

FailureOr<SmallVector<Value>> Converter::convertRegion(Region &region, ValueRange arguments, Value iteration) {
  if (iteration)
    iterations.push_back(iteration);
  auto leave = llvm::make_scope_exit([&] {
    if (iteration)
      iterations.pop_back();
  });
  Block &block = region.front();
  Location loc = builder.getLoc();
  for (auto [i, argument] : llvm::enumerate(block.getArguments()))
    values[argument] = i < arguments.size() ? arguments[i] : Value();
  FailureOr<SmallVector<Value>> results = convertBody(block);
  builder.setLoc(loc);
  if (failed(results))
    ++failedNodes;
  return results;
}

/// Remembers what a function writes to a state; addStates emits it at the end.
void Converter::convertStateWrite(graph::NodeOp node) {
  auto name = dyn_cast_or_null<StringAttr>(node.getNodeAttr(graph::kStateParam));
  Value value = node.getInputs().empty() || isPoisoned(node.getInputs()[0]) ? Value() : values[node.getInputs()[0]];
  graph::ConstantOp constant = name ? states.lookup(name.getValue()) : graph::ConstantOp();
  if (!constant || !value) {
    ++failedNodes; // what failed before is reported
    if (!constant)
      reportInvalid(node.getLoc(), describeNode(node) + "writes a state that the function does not have");
    return;
  }
  builder.setLoc(node.getLoc());
  if (Operation *symbol = SymbolTable::lookupSymbolIn(module, name.getValue()); symbol && !isa<prim::StateOp>(symbol))
    return reportUnsupported(node, ("of the state \"" + name.getValue() +
                                    "\" is not supported, as a function has this name; rename it in the model")
                                       .str());
  auto type = cast<RankedTensorType>(constant.getType());
  Type element = type.getElementType();
  if (!element.isIntOrFloat() || isNarrowElement(element) ||
      (!element.isInteger(1) && element.getIntOrFloatBitWidth() % 8 != 0))
    return reportUnsupported(node, "of a state of " + describe(value) +
                                       " is not supported; supported are integers and "
                                       "floats of whole bytes, and bools");
  NodeContext ctx(node, builder, ints, *this, value, parameters);
  FailureOr<Value> fitting = failure();
  if (builder.elementOf(value) != type.getElementType())
    (void)ctx.invalid("the state holds elements of another type than " + describe(value));
  else
    fitting = ctx.castSizes(value, getSizes(values[constant.getResult()]));
  if (failed(fitting))
    reportInvalid(node.getLoc(), "state \"" + name.getValue() + "\": " + ctx.reason());
  else
    written[name.getValue()] = *fitting;
}

/// States of the module that the function reads and writes.
void Converter::addStates(func::FuncOp function) {
  builder.setLoc(function.getLoc());
  builder.setInsertionPoint(function.getBody().back().getTerminator());
  for (auto [name, value] : written)
    prim::WriteStateOp::create(builder, name, value);
  builder.setInsertionPointToStart(module.getBody());
  for (const auto &state : states)
    if (graph::ConstantOp constant = state.second; !SymbolTable::lookupSymbolIn(module, state.first))
      prim::StateOp::create(builder, state.first, cast<RankedTensorType>(constant.getType()), constant.getValue());
}

FailureOr<RankedTensorType> Converter::argumentType(graph::FuncOp source, unsigned index) {
  Type type = source.getArgumentTypes()[index];
  StringRef name = source.getArgName(index);
  Location loc = source.getBody().getArgument(index).getLoc();
  // A sequence, optional or map is a handle; any value may be inside.
  if (base::isHandle(type))
    return makeType(type, {});
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<IntegerType, FloatType, ComplexType, base::StringType>(tensor.getElementType())) {
    UnsupportedNode entry;
    entry.name = name.str();
    entry.type = "input";
    llvm::raw_string_ostream(entry.reason) << "of type " << type << " is not supported";
    entry.count = 1;
    emitError(loc)
        << "input \"" << name << "\": type " << type
        << " is not supported; supported: tensors of integers, floats, complex numbers or strings with a known rank, "
           "sequences, optionals and maps of them";
    ++failedNodes;
    report.unsupported.push_back(entry);
    return failure();
  }
  if (auto it = options.elementTypes.find(name.str()); it != options.elementTypes.end()) {
    std::string own;
    llvm::raw_string_ostream(own) << tensor.getElementType();
    bool isUnsigned = StringRef(it->second).starts_with("u");
    if ((isUnsigned ? "ui" + it->second.substr(1) : it->second) != own) {
      reportInvalid(loc, "input \"" + name + "\": --shape says " + it->second + ", but the model has " + own);
      return failure();
    }
  }
  FailureOr<Sizes> sizes = argumentSizes.read(source, index);
  if (failed(sizes))
    return failure();
  RankedTensorType result = makeType(tensor.getElementType(), *sizes);
  if (std::optional<Refusal> refusal = refuseType(result)) { // sizes given by options; the others are checked before
    reportInvalid(loc, "input \"" + name + "\" " + refusal->what);
    return failure();
  }
  return result;
}

/// Holds a computed output against what the file declares: element type, rank and sizes that are known on both sides
/// must agree; a declared size of a dim that is not known yet becomes a guard.
void Converter::checkOutput(graph::FuncOp source, unsigned index, Value v) {
  Type declared = source.getResultTypes()[index];
  if (auto attr = source.getResultAttrOfType<TypeAttr>(index, graph::kDeclaredTypeAttr))
    declared = attr.getValue();
  auto type = dyn_cast<RankedTensorType>(v.getType());
  auto tensor = dyn_cast<TensorType>(declared);
  if (!type || isa<base::UnknownType, NoneType>(declared))
    return;
  auto ranked = dyn_cast<RankedTensorType>(declared);
  // What is inside of sequences and optionals is checked when it is taken out. A loop that starts with an optional may
  // end with what is inside.
  bool isHandle = base::isHandle(declared);
  auto optional = dyn_cast<base::OptType>(type.getElementType());
  Type inside = optional && !isa<base::OptType>(declared) ? optional.getElementType() : type.getElementType();
  bool agrees = isHandle ? inside.getTypeID() == declared.getTypeID()
                         : tensor && tensor.getElementType() == type.getElementType() &&
                               (!ranked || succeeded(verifyCompatibleShape(ranked.getShape(), type.getShape())));
  StringRef name = source.getResultName(index);
  if (!agrees) {
    std::string text;
    llvm::raw_string_ostream(text) << declared;
    return reportInvalid(v.getDefiningOp() ? v.getLoc() : UnknownLoc::get(v.getContext()),
                         "output \"" + name + "\": the model declares it as " + text + ", but its nodes compute " +
                             describe(v) + "; correct the declaration, or the nodes");
  }
  if (ranked)
    for (auto [i, size] : llvm::enumerate(getSizes(v)))
      if (type.isDynamicDim(i) && !ranked.isDynamicDim(i))
        builder.guard(builder.sizeValue(size), ranked.getDimSize(i),
                      "output \"" + name + "\": dim " + Twine(i) + " is not " + Twine(ranked.getDimSize(i)) +
                          ", as the model declares");
}

/// What a caller sees of an argument or result that is a string or a handle; null of others.
TypeAttr rememberWord(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return base::isWord(element) ? TypeAttr::get(element) : TypeAttr();
}

FailureOr<func::FuncOp> Converter::convert(graph::FuncOp source) {
  MLIRContext *context = module.getContext();
  Builder b(context);
  // Inputs with an explicit shape first: their dims' names fix those of the others.
  unsigned count = source.getNumArguments();
  SmallVector<Type> inputs(count);
  argumentSizes.readOptions(source);
  for (bool withShape : {true, false})
    for (unsigned i = 0; i < count; ++i)
      if (withShape == (options.shapes.find(source.getArgName(i).str()) != options.shapes.end())) {
        FailureOr<RankedTensorType> type = argumentType(source, i);
        if (succeeded(type))
          inputs[i] = *type;
      }
  argumentSizes.checkOptions(source);
  auto function = func::FuncOp::create(source.getLoc(), source.getSymName(), b.getFunctionType({}, {}));
  OwningOpRef<func::FuncOp> owner(function);
  // Before the function goes on failure: regions that were given up use its values.
  auto dropRegions = llvm::make_scope_exit([&] {
    for (auto &region : regions)
      region->dropAllReferences();
  });
  Block *block = new Block();
  function.getBody().push_back(block);
  builder.setInsertionPointToEnd(block);
  for (unsigned i = 0; i < count; ++i)
    if (inputs[i])
      values[source.getBody().getArgument(i)] = block->addArgument(inputs[i], source.getBody().getArgument(i).getLoc());
  inputSymbols = symbols.size();
  if (llvm::all_of(inputs, [](Type type) { return bool(type); }))
    for (auto [argument, value] :
         llvm::zip_equal(source.getBody().getArguments(), argumentSizes.applyMaps(source, block)))
      values[argument] = value;
  // Whoever writes it: functions may have a state in common. Those that were converted declared theirs.
  llvm::StringSet<> writtenNames;
  module.walk([&](graph::NodeOp node) {
    if (auto name = dyn_cast_or_null<StringAttr>(node.getNodeAttr(graph::kStateParam));
        name && node.getDomain() == graph::kOwnDomain)
      writtenNames.insert(name.getValue());
  });
  for (auto state : module.getOps<prim::StateOp>())
    writtenNames.insert(state.getSymName());
  for (auto constant : source.getBody().front().getOps<graph::ConstantOp>())
    if (auto name = constant->getAttrOfType<StringAttr>(graph::kStateAttr);
        name && writtenNames.contains(name.getValue()))
      states[name.getValue()] = constant;
  FailureOr<SmallVector<Value>> results = convertBody(source.getBody().front());
  if (unknown && report.unsupported.empty() && report.invalidCount == 0)
    reportUnsupported(unknown, unknown->getAttrOfType<StringAttr>(graph::kUnknownAttr).getValue());
  emitUnsupported();
  if (failed(results) || failedNodes > 0) {
    if (failedNodes == 0) {
      reportInvalid(source.getLoc(), "the graph has no outputs that can be computed");
    }
    return failure();
  }
  for (auto [i, v] : llvm::enumerate(*results))
    if (!v) {
      reportInvalid(source.getLoc(), "output " + Twine(i) + " of the graph is absent");
      return failure();
    }
  builder.setLoc(source.getLoc());
  for (auto [i, v] : llvm::enumerate(*results))
    checkOutput(source, i, v);
  if (failedNodes > 0)
    return failure();
  for (auto [i, v] : llvm::enumerate(*results)) {
    // The caller sees what the model declares: an optional may be known to have a value here.
    Type declared = source.getResultTypes()[i];
    auto sequence = dyn_cast<base::SeqType>(PrimBuilder::elementOf(v));
    if (base::isHandle(declared))
      v = builder.asWords(v, declared);
    else if (sequence && isInsideOfEmpty(sequence.getElementType()))
      v = builder.asWords(v, base::SeqType::get(v.getContext(), forgetEmpty(sequence.getElementType())));
  }
  func::ReturnOp::create(builder, *results);
  function.setFunctionType(b.getFunctionType(inputs, ValueRange(*results).getTypes()));
  function->setAttr(kSymbolsAttr, symbols.getAttr());
  if (ArrayAttr listed = argumentSizes.getListedSizes())
    function->setAttr(kListedSizesAttr, listed);
  if (ArrayAttr buckets = argumentSizes.getBuckets())
    function->setAttr(kBucketsAttr, buckets);
  if (ArrayAttr strings = symbols.getStringsAttr())
    function->setAttr(kStringsAttr, strings);
  // All at once: each change of one of them copies the list.
  SmallVector<NamedAttrList> argAttrs(count), resultAttrs(results->size());
  for (unsigned i = 0; i < count; ++i) {
    argAttrs[i].set("tc.name", b.getStringAttr(source.getArgName(i)));
    if (TypedAttr value = source.getArgDefault(i))
      argAttrs[i].set("tc.default", defaultWords(value));
    if (TypeAttr type = rememberWord(inputs[i]))
      argAttrs[i].set(kValueAttr, type);
  }
  for (unsigned i = 0; i < results->size(); ++i) {
    resultAttrs[i].set("tc.name", b.getStringAttr(source.getResultName(i)));
    if (TypeAttr type = rememberWord((*results)[i].getType()))
      resultAttrs[i].set(kValueAttr, type);
  }
  auto dictionary = [&](NamedAttrList &attrs) { return attrs.getDictionary(context); };
  function.setAllArgAttrs(llvm::map_to_vector(argAttrs, dictionary));
  function.setAllResultAttrs(llvm::map_to_vector(resultAttrs, dictionary));

  addStates(function);
  // Shape arithmetic and unused nodes are dead now.
  for (auto &region : regions)
    region->dropAllReferences();
  regions.clear();
  function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
  drawRandom(function);
  eraseWordTypes(function);
  return owner.release();
}

/// Where nodes draw from the context's sequence of random numbers, the next run draws others.
void Converter::drawRandom(func::FuncOp function) {
  prim::ReadStateOp drawn;
  function.walk([&](prim::ReadStateOp op) { drawn = op.getState() == TCRT_RANDOM_STATE ? op : drawn; });
  if (!drawn)
    return;
  builder.setInsertionPoint(function.getBody().back().getTerminator());
  builder.setLoc(function.getLoc());
  Value state = prim::ReadStateOp::create(builder, drawn.getType(), TCRT_RANDOM_STATE);
  prim::WriteStateOp::create(builder, TCRT_RANDOM_STATE, builder.add(state, builder.constantI64s({0, 1})));
  if (!SymbolTable::lookupSymbolIn(module, TCRT_RANDOM_STATE)) {
    builder.setInsertionPointToStart(module.getBody());
    prim::StateOp::create(builder, TCRT_RANDOM_STATE, drawn.getType(), TypedAttr());
  }
}

/// A default value as the program holds it: strings as their ids.
TypedAttr Converter::defaultWords(TypedAttr value) {
  auto data = dyn_cast<base::DataAttr>(value);
  if (!data || !isa<base::StringType>(data.getType().getElementType()))
    return value;
  FailureOr<SmallVector<StringRef>> texts = base::getStrings(data);
  SmallVector<int64_t> ids;
  for (StringRef text : succeeded(texts) ? *texts : SmallVector<StringRef>())
    ids.push_back(symbols.addString(text));
  auto type = RankedTensorType::get(data.getType().getShape(), IntegerType::get(value.getContext(), 64));
  return cast<TypedAttr>(base::fromDense(DenseElementsAttr::get(type, ArrayRef<int64_t>(ids))));
}

/// Strings and handles become i64.
void Converter::eraseWordTypes(func::FuncOp function) {
  auto erase = [&](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !base::isWord(tensor.getElementType()))
      return type;
    return RankedTensorType::get(tensor.getShape(), builder.getI64Type(), tensor.getEncoding());
  };
  auto inputs = llvm::map_to_vector(function.getArgumentTypes(), erase);
  auto results = llvm::map_to_vector(function.getResultTypes(), erase);
  function.setFunctionType(FunctionType::get(function.getContext(), inputs, results));
  SmallVector<Operation *> casts;
  function.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(erase(argument.getType()));
    for (Value result : op->getResults())
      result.setType(erase(result.getType()));
    if (isa<BitcastOp>(op))
      casts.push_back(op);
  });
  for (Operation *op : casts)
    if (op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
}

void tc::setFunctionExpander(FunctionExpander expander, DefinitionQuery query) {
  functionExpander = expander;
  hasDefinition = query;
}

void tc::setOperandCheck(OperandCheck check) { findOperandError = check; }

/// Expands nodes without a handler by their operators' definitions, which may use operators without a handler in turn.
/// Their operands are checked here, as far as the front end knows their types. The number of nodes with wrong ones.
static int64_t expandFunctions(ModuleOp module, const GraphToPrimOptions &options) {
  int64_t wrong = 0;
  if (!functionExpander)
    return wrong;
  IRRewriter rewriter(module.getContext());
  llvm::DenseSet<Operation *> failed;
  for (int64_t round = 0; round < 8; ++round) {
    SmallVector<graph::NodeOp> nodes;
    module.walk([&](graph::NodeOp node) {
      if (!node.getCallee() && !failed.contains(node) && !findCustomOperator(options.customOperators, node) &&
          !OpRegistry::get().lookup(node.getDomain(), node.getOpType(), node.getOpset()))
        nodes.push_back(node);
    });
    if (nodes.empty())
      break;
    for (graph::NodeOp node : nodes) {
      std::string error = findOperandError ? findOperandError(node, llvm::to_vector(node.getInputs().getTypes())) : "";
      if (!error.empty()) {
        emitError(node.getLoc()) << describeNode(node) << error;
        ++wrong;
      }
      if (!error.empty() || llvm::failed(expandNode(node, rewriter)))
        failed.insert(node);
    }
  }
  return wrong;
}

using ConvertedFunctions = SmallVector<std::pair<graph::FuncOp, func::FuncOp>>;

/// The public functions of the module, beside it.
static FailureOr<ConvertedFunctions> convertFunctions(ModuleOp module, const GraphToPrimOptions &options,
                                                      GraphToPrimReport &report,
                                                      llvm::DenseSet<Operation *> &hostNodes) {
  ConvertedFunctions converted;
  bool ok = true;
  for (auto source : module.getOps<graph::FuncOp>()) {
    if (source.isPrivate())
      continue; // inlined where it is called
    Converter converter(module, options, report);
    converter.setHostNodes(hostNodes);
    FailureOr<func::FuncOp> function = converter.convert(source);
    ok &= succeeded(function);
    if (succeeded(function))
      converted.push_back({source, *function});
  }
  if (ok)
    return converted;
  for (auto &[source, function] : converted)
    function->erase();
  return failure();
}

/// Likewise; nodes that are refused and have a signature are computed by its function in the next try.
static FailureOr<ConvertedFunctions> convertWithHostOps(ModuleOp module, const GraphToPrimOptions &options,
                                                        GraphToPrimReport &report) {
  llvm::DenseSet<Operation *> hostNodes;
  if (!options.allowHostOps)
    return convertFunctions(module, options, report, hostNodes);
  for (;;) {
    const size_t known = hostNodes.size();
    std::vector<Diagnostic> said;
    FailureOr<ConvertedFunctions> converted;
    {
      ScopedDiagnosticHandler keep(module.getContext(), [&](Diagnostic &diagnostic) {
        said.push_back(std::move(diagnostic));
        return success();
      });
      report = {};
      converted = convertFunctions(module, options, report, hostNodes);
    }
    if (failed(converted) && hostNodes.size() > known)
      continue;
    for (Diagnostic &diagnostic : said)
      module.getContext()->getDiagEngine().emit(std::move(diagnostic));
    return converted;
  }
}

LogicalResult tc::convertGraphToPrim(ModuleOp module, const GraphToPrimOptions &options, GraphToPrimReport *report) {
  GraphToPrimReport local;
  GraphToPrimReport &out = report ? *report : local;
  out = {};
  int64_t wrong = expandFunctions(module, options);
  if (wrong > 0) {
    out.invalidCount = wrong;
    return failure();
  }
  FailureOr<ConvertedFunctions> converted = convertWithHostOps(module, options, out);
  if (failed(converted))
    return failure();
  SmallVector<graph::FuncOp> sources(module.getOps<graph::FuncOp>());
  for (auto &[source, function] : *converted)
    module.insert(source, function);
  for (graph::FuncOp source : sources)
    source.erase();
  // The model's metadata stays on the module.
  for (auto [from, to] :
       {std::pair(graph::kProducerAttr, "tc.producer"), std::pair(graph::kMetadataAttr, "tc.metadata"),
        std::pair(graph::kIrVersionAttr, "tc.ir_version")})
    if (Attribute value = module->removeAttr(from))
      module->setAttr(to, value);
  return success();
}
