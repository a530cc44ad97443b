//===- Graph.cpp - ops and attributes of the graph dialect --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Graph/IR/Graph.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/Graph/IR/Source.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::graph;

#include "tc/Dialect/Graph/IR/GraphDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Graph/IR/GraphAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Graph/IR/GraphOps.cpp.inc"

void GraphDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tc/Dialect/Graph/IR/GraphAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tc/Dialect/Graph/IR/GraphOps.cpp.inc"
      >();
}

bool tc::graph::isGraphType(Type type) {
  return isa<TensorType, NoneType, base::SeqType, base::OptType, base::MapType, base::SparseType, base::UnknownType>(
      type);
}

StringRef tc::graph::getNodeName(Location loc) {
  if (auto name = loc->findInstanceOf<NameLoc>())
    return name.getName();
  return "";
}

bool tc::graph::isSourceOfTorch(StringRef file) { return file.contains("-packages/torch/"); }

Location tc::graph::addSource(Location place, StringRef file, unsigned line) {
  return CallSiteLoc::get(place, FileLineColLoc::get(place.getContext(), file, line, 1));
}

/// Frames read `  File "net.py", line 12, in forward`, the outermost first.
Location tc::graph::addSource(Location place, StringRef trace) {
  StringRef file;
  unsigned line = 0;
  bool isOwn = false; // PyTorch's
  while (!trace.empty()) {
    StringRef text;
    std::tie(text, trace) = trace.split('\n');
    text = text.ltrim();
    if (!text.consume_front("File \""))
      continue;
    auto [path, rest] = text.split('"');
    unsigned number = 0;
    if (path.empty() || !rest.consume_front(", line ") || rest.consumeInteger(10, number))
      continue;
    const bool isTorch = isSourceOfTorch(path);
    if (isTorch && !file.empty() && !isOwn)
      continue;
    file = path;
    line = number;
    isOwn = isTorch;
  }
  return file.empty() ? place : addSource(place, file, line);
}

/// The place of a node in the code of a TorchScript archive; null of others, whose places are nodes of the model's
/// file.
static FileLineColLoc findCode(Location loc) {
  auto call = loc->findInstanceOf<CallSiteLoc>();
  auto place = (call ? call.getCallee() : loc)->findInstanceOf<FileLineColLoc>();
  StringRef file = place ? place.getFilename().getValue() : StringRef();
  return file.starts_with("code/") && file.ends_with(".py") ? place : FileLineColLoc();
}

std::string tc::graph::getSource(Location loc) {
  auto call = loc->findInstanceOf<CallSiteLoc>();
  auto place = call ? dyn_cast<FileLineColLoc>(call.getCaller()) : findCode(loc);
  return place ? (place.getFilename().getValue() + ":" + Twine(place.getLine())).str() : "";
}

std::string tc::graph::describePlace(Location loc) {
  std::string source = getSource(loc);
  FileLineColLoc code = findCode(loc);
  if (!code)
    return source;
  std::string place =
      (code.getFilename().getValue() + ":" + Twine(code.getLine()) + ":" + Twine(code.getColumn())).str();
  return loc->findInstanceOf<CallSiteLoc>() ? source + " (" + place + ")" : place;
}

//===--- attributes of arguments and results ----------------------------------------------------------------------===//

static LogicalResult verifyValueAttr(Operation *op, NamedAttribute attr, bool isResult) {
  StringRef name = attr.getName();
  if (name == kNameAttr || name == kDenotationAttr) {
    if (isa<StringAttr>(attr.getValue()))
      return success();
    return op->emitOpError() << "attribute " << name << " must be a string";
  }
  if (name == kDimsAttr) {
    auto dims = dyn_cast<ArrayAttr>(attr.getValue());
    if (dims && llvm::all_of(dims, [](Attribute dim) { return isa<StringAttr>(dim); }))
      return success();
    return op->emitOpError() << "attribute " << name << " must be an array of strings";
  }
  if (name == kDeclaredTypeAttr && isResult) {
    if (isa<TypeAttr>(attr.getValue()))
      return success();
    return op->emitOpError() << "attribute " << name << " must be a type";
  }
  if (name == kRangesAttr && !isResult) {
    auto ranges = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    if (ranges && ranges.size() % 2 == 0)
      return success();
    return op->emitOpError() << "attribute " << name << " must have two numbers for each dim";
  }
  if (name == kSizesAttr && !isResult) {
    auto map = dyn_cast<AffineMapAttr>(attr.getValue());
    if (map && map.getValue().getNumDims() == 0)
      return success();
    return op->emitOpError() << "attribute " << name << " must be an affine map of symbols";
  }
  if (name == kDefaultAttr && !isResult) {
    if (isa<TypedAttr>(attr.getValue()))
      return success();
    return op->emitOpError() << "attribute " << name << " must be a constant";
  }
  return op->emitOpError() << "attribute " << name
                           << (isResult ? " is unknown on results" : " is unknown on arguments");
}

LogicalResult GraphDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attr) {
  return verifyValueAttr(op, attr, /*isResult=*/false);
}
LogicalResult GraphDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attr) {
  return verifyValueAttr(op, attr, /*isResult=*/true);
}

//===--- #graph.sparse --------------------------------------------------------------------------------------------===//

Attribute SparseAttr::parse(AsmParser &parser, Type type) {
  SMLoc loc = parser.getCurrentLocation();
  base::DataAttr values, indices;
  if (parser.parseLess() || parser.parseAttribute(values) || parser.parseComma() || parser.parseAttribute(indices) ||
      parser.parseGreater())
    return {};
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (!tensor) {
    parser.emitError(loc, "#graph.sparse needs a ranked tensor type");
    return {};
  }
  return parser.getChecked<SparseAttr>(loc, parser.getContext(), values, indices, tensor);
}

void SparseAttr::print(AsmPrinter &printer) const { printer << "<" << getValues() << ", " << getIndices() << ">"; }

LogicalResult SparseAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, base::DataAttr values,
                                 base::DataAttr indices, RankedTensorType type) {
  RankedTensorType valuesType = values.getType(), indicesType = indices.getType();
  if (!type.hasStaticShape() || valuesType.getRank() != 1 || valuesType.getElementType() != type.getElementType())
    return emitError() << "(C1) values of #graph.sparse of " << type << " cannot be " << valuesType;
  bool flat = indicesType.getRank() == 1;
  bool perDim = indicesType.getRank() == 2 && indicesType.getDimSize(1) == type.getRank();
  if (!indicesType.getElementType().isSignlessInteger(64) || (!flat && !perDim) ||
      indicesType.getDimSize(0) != valuesType.getDimSize(0))
    return emitError() << "(C1) indices of #graph.sparse of " << type << " cannot be " << indicesType;
  return success();
}

//===--- graph.func -----------------------------------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getOpsetsAttrName(state.name), builder.getDictionaryAttr({}));
  state.addRegion();
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(arguments, results); };
  if (function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                               getFunctionTypeAttrName(result.name), buildType,
                                               getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)))
    return failure();
  if (!result.attributes.get(getOpsetsAttrName(result.name)))
    result.addAttribute(getOpsetsAttrName(result.name), parser.getBuilder().getDictionaryAttr({}));
  return success();
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult FuncOp::verify() {
  for (Type type : llvm::concat<const Type>(getArgumentTypes(), getResultTypes()))
    if (!isGraphType(type))
      return emitOpError() << "(C2) has a value of type " << type << ", which is no type of a graph";
  Block &block = getBody().front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError() << "must end with graph.yield";
  if (!llvm::equal(yield.getOperandTypes(), getResultTypes()))
    return yield.emitOpError() << "(C1) yields other types than the results of @" << getSymName();
  return success();
}

template <typename T> static T getArgAttrOf(FuncOp func, unsigned index, StringRef name) {
  return func.getArgAttrOfType<T>(index, name);
}
StringRef FuncOp::getArgName(unsigned index) {
  auto name = getArgAttrOf<StringAttr>(*this, index, kNameAttr);
  return name ? name.getValue() : "";
}
StringRef FuncOp::getResultName(unsigned index) {
  auto name = getResultAttrOfType<StringAttr>(index, kNameAttr);
  return name ? name.getValue() : "";
}
ArrayAttr FuncOp::getArgDims(unsigned index) { return getArgAttrOf<ArrayAttr>(*this, index, kDimsAttr); }
ArrayAttr FuncOp::getResultDims(unsigned index) { return getResultAttrOfType<ArrayAttr>(index, kDimsAttr); }
TypedAttr FuncOp::getArgDefault(unsigned index) { return dyn_cast_or_null<TypedAttr>(getArgAttr(index, kDefaultAttr)); }

//===--- graph.constant -------------------------------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===--- graph.node -----------------------------------------------------------------------------------------------===//

void NodeOp::build(OpBuilder &builder, OperationState &state, StringRef domain, StringRef opType, int64_t opset,
                   TypeRange outputs, ValueRange inputs, ArrayRef<NamedAttribute> attrs,
                   ArrayRef<StringRef> regionNames) {
  state.addOperands(inputs);
  state.addTypes(outputs);
  state.addAttribute(getDomainAttrName(state.name), builder.getStringAttr(domain));
  state.addAttribute(getOpTypeAttrName(state.name), builder.getStringAttr(opType));
  state.addAttribute(getOpsetAttrName(state.name), builder.getI64IntegerAttr(opset));
  state.addAttribute(getAttrsAttrName(state.name), builder.getDictionaryAttr(attrs));
  state.addAttribute(getRegionNamesAttrName(state.name), builder.getStrArrayAttr(regionNames));
  for (size_t i = 0; i < regionNames.size(); ++i)
    state.addRegion();
}

// "domain":"Type" opset 17 [overload "o"] [calls @f](operands) [{attrs}] [graphs "name"(args) {...}, ...]
// [attributes {...}] : type
ParseResult NodeOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  // No parseAttribute here: a string attribute would take the colon for that of its type.
  std::string domain, opType, overload;
  int64_t opset = 0;
  if (parser.parseString(&domain) || parser.parseColon() || parser.parseString(&opType) ||
      parser.parseKeyword("opset") || parser.parseInteger(opset))
    return failure();
  result.addAttribute(getDomainAttrName(result.name), builder.getStringAttr(domain));
  result.addAttribute(getOpTypeAttrName(result.name), builder.getStringAttr(opType));
  result.addAttribute(getOpsetAttrName(result.name), builder.getI64IntegerAttr(opset));
  if (succeeded(parser.parseOptionalKeyword("overload"))) {
    if (parser.parseString(&overload))
      return failure();
    result.addAttribute(getOverloadAttrName(result.name), builder.getStringAttr(overload));
  }
  if (succeeded(parser.parseOptionalKeyword("calls"))) {
    StringAttr callee;
    if (parser.parseSymbolName(callee))
      return failure();
    result.addAttribute(getCalleeAttrName(result.name), FlatSymbolRefAttr::get(callee));
  }
  SMLoc operandsLoc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  NamedAttrList attrs;
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren) || parser.parseOptionalAttrDict(attrs))
    return failure();
  result.addAttribute(getAttrsAttrName(result.name), attrs.getDictionary(parser.getContext()));
  SmallVector<Attribute> regionNames;
  if (succeeded(parser.parseOptionalKeyword("graphs"))) {
    auto parseGraph = [&]() -> ParseResult {
      std::string name;
      SmallVector<OpAsmParser::Argument> arguments;
      if (parser.parseString(&name) ||
          parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true,
                                   /*allowAttrs=*/false) ||
          parser.parseRegion(*result.addRegion(), arguments))
        return failure();
      regionNames.push_back(builder.getStringAttr(name));
      return success();
    };
    if (parser.parseCommaSeparatedList(parseGraph))
      return failure();
  }
  result.addAttribute(getRegionNamesAttrName(result.name), builder.getArrayAttr(regionNames));
  FunctionType type;
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), operandsLoc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  return success();
}

void NodeOp::print(OpAsmPrinter &printer) {
  printer << " " << getDomainAttr() << ":" << getOpTypeAttr() << " opset " << getOpset();
  if (getOverloadAttr())
    printer << " overload " << getOverloadAttr();
  if (getCalleeAttr())
    printer << " calls " << getCalleeAttr();
  printer << "(" << getInputs() << ")";
  printer.printOptionalAttrDict(getAttrs().getValue());
  if (!getGraphs().empty()) {
    printer << " graphs ";
    llvm::interleaveComma(llvm::zip(getRegionNames(), getGraphs()), printer, [&](auto pair) {
      auto [name, region] = pair;
      printer << name << "(";
      llvm::interleaveComma(region.getArguments(), printer,
                            [&](BlockArgument arg) { printer.printRegionArgument(arg); });
      printer << ") ";
      printer.printRegion(region, /*printEntryBlockArgs=*/false);
    });
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getDomainAttrName(), getOpTypeAttrName(), getOpsetAttrName(), getOverloadAttrName(),
                            getCalleeAttrName(), getAttrsAttrName(), getRegionNamesAttrName()});
  printer << " : ";
  printer.printFunctionalType(*this);
}

LogicalResult NodeOp::verify() {
  if (getDomain().empty() || getOpType().empty())
    return emitOpError() << "(C1) needs a domain and a type";
  if (static_cast<int64_t>(getOpset()) < 1)
    return emitOpError() << "(C1) has opset " << static_cast<int64_t>(getOpset()) << ", which is below 1";
  if (getRegionNames().size() != getGraphs().size())
    return emitOpError() << "(C2) has " << getGraphs().size() << " subgraphs and " << getRegionNames().size()
                         << " names of them";
  llvm::StringSet<> names;
  for (Attribute name : getRegionNames()) {
    StringRef text = cast<StringAttr>(name).getValue();
    if (!names.insert(text).second || getAttrs().contains(text))
      return emitOpError() << "(C2) has two attributes or subgraphs named " << name;
  }
  for (auto [name, region] : llvm::zip(getRegionNames(), getGraphs())) {
    if (!region.hasOneBlock() || region.front().empty() || !isa<YieldOp>(region.front().back()))
      return emitOpError() << "(C3) subgraph " << name << " must be one block that ends with graph.yield";
    for (Type type : region.getArgumentTypes())
      if (!isGraphType(type))
        return emitOpError() << "(C4) subgraph " << name << " has an input of type " << type
                             << ", which is no type of a graph";
  }
  for (Type type : llvm::concat<const Type>(getOperandTypes(), getResultTypes()))
    if (!isGraphType(type))
      return emitOpError() << "(C4) has a value of type " << type << ", which is no type of a graph";
  return success();
}

Value NodeOp::getInput(unsigned index) {
  if (index >= getInputs().size())
    return {};
  Value value = getInputs()[index];
  return isa<NoneType>(value.getType()) ? Value() : value;
}

bool NodeOp::hasOutput(unsigned index) { return index < getNumResults() && !isa<NoneType>(getResult(index).getType()); }

Region *NodeOp::getGraph(StringRef name) {
  for (auto [regionName, region] : llvm::zip(getRegionNames(), getGraphs()))
    if (cast<StringAttr>(regionName).getValue() == name)
      return &region;
  return nullptr;
}

int64_t NodeOp::getInt(StringRef name, int64_t defaultValue) {
  auto attr = dyn_cast_or_null<IntegerAttr>(getNodeAttr(name));
  return attr && attr.getType().isSignlessInteger(64) ? attr.getInt() : defaultValue;
}
double NodeOp::getFloat(StringRef name, double defaultValue) {
  auto attr = dyn_cast_or_null<FloatAttr>(getNodeAttr(name));
  return attr ? attr.getValueAsDouble() : defaultValue;
}
StringRef NodeOp::getString(StringRef name, StringRef defaultValue) {
  auto attr = dyn_cast_or_null<StringAttr>(getNodeAttr(name));
  return attr ? attr.getValue() : defaultValue;
}
std::optional<ArrayRef<int64_t>> NodeOp::getInts(StringRef name) {
  if (auto attr = dyn_cast_or_null<DenseI64ArrayAttr>(getNodeAttr(name)))
    return attr.asArrayRef();
  return std::nullopt;
}
std::optional<ArrayRef<float>> NodeOp::getFloats(StringRef name) {
  if (auto attr = dyn_cast_or_null<DenseF32ArrayAttr>(getNodeAttr(name)))
    return attr.asArrayRef();
  return std::nullopt;
}
std::optional<SmallVector<StringRef>> NodeOp::getStrings(StringRef name) {
  auto attr = dyn_cast_or_null<ArrayAttr>(getNodeAttr(name));
  if (!attr || !llvm::all_of(attr, [](Attribute item) { return isa<StringAttr>(item); }))
    return std::nullopt;
  return llvm::to_vector(llvm::map_range(attr, [](Attribute item) { return cast<StringAttr>(item).getValue(); }));
}
tc::base::DataAttr NodeOp::getTensor(StringRef name) { return dyn_cast_or_null<base::DataAttr>(getNodeAttr(name)); }

std::string NodeOp::getNodeName() {
  StringRef name = tc::graph::getNodeName(getLoc());
  return name.empty() ? getOpType().str() : name.str();
}
