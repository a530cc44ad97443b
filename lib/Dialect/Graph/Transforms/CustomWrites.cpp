//===- CustomWrites.cpp - custom operators that write their operands ----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CustomWrites.h"

#include "Functionalizer.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tc;
using namespace tc::graph;
using torch::Schema;
using torch::SchemaArgument;

std::optional<SmallVector<unsigned>> graph::findWrittenOperands(NodeOp node, const Schema &schema) {
  SmallVector<unsigned> written;
  for (const SchemaArgument &argument : schema.arguments) {
    if (!argument.isWritten())
      continue;
    std::optional<unsigned> operand = findOperand(node, argument.name);
    if (!operand)
      return std::nullopt;
    written.push_back(*operand);
  }
  return node.getNumResults() == schema.results.size() ? std::optional(written) : std::nullopt;
}

NodeOp graph::makeFunctional(OpBuilder &builder, NodeOp node, const Schema &schema, ArrayRef<unsigned> written) {
  SmallVector<Value> made;
  SmallVector<Type> types;
  SmallVector<Attribute> layouts;
  auto known = node->getAttrOfType<ArrayAttr>(kLayoutsAttr);
  for (auto [i, result] : llvm::enumerate(schema.results))
    if (!result.type.findAlias()) {
      made.push_back(node.getResult(i));
      types.push_back(made.back().getType());
      if (known && i < known.size())
        layouts.push_back(known[i]);
    }
  for (unsigned operand : written)
    types.push_back(node.getInputs()[operand].getType());
  auto call = NodeOp::create(builder, node.getLoc(), node.getDomain(), node.getOpType(), node.getOpset(), types,
                             node.getInputs(), llvm::to_vector(node.getAttrs().getValue()));
  call->setAttr(kFunctionalAttr, builder.getUnitAttr());
  if (known)
    call->setAttr(kLayoutsAttr, builder.getArrayAttr(layouts));
  if (Attribute refused = node->getAttr(kRefusedAttr))
    call->setAttr(kRefusedAttr, refused);
  for (auto [old, result] : llvm::zip(made, call.getResults()))
    old.replaceAllUsesWith(result);
  return call;
}

namespace {

/// Operands and attributes of a node in the making.
struct Arguments {
  SmallVector<Value> operands;
  SmallVector<StringRef> names;
  NamedAttrList attributes;

  void addOperand(StringRef name, Value value) {
    names.push_back(name);
    operands.push_back(value);
  }
};

class AutoFunctionalized {
public:
  AutoFunctionalized(NodeOp node, const CustomOperators &customs) : node(node), builder(node), customs(customs) {}
  void expand();

private:
  const Schema *findCallee(StringRef &domain, StringRef &type);
  Value copyOf(Value value);
  Value viewOf(StringRef argument, Value base);
  bool takeArgument(StringRef name, StringRef as, Arguments &to);
  NodeOp emit(StringRef domain, StringRef type, TypeRange results, Arguments &arguments);

  NodeOp node;
  OpBuilder builder;
  const CustomOperators &customs;
};

/// The operator is an argument of the call: "arg0" is its kind, "arg0.value" its name.
const Schema *AutoFunctionalized::findCallee(StringRef &domain, StringRef &type) {
  for (NamedAttribute attr : node.getAttrs()) {
    auto kind = dyn_cast<StringAttr>(attr.getValue());
    if (!kind || kind.getValue() != "as_operator")
      continue;
    auto name = dyn_cast_or_null<StringAttr>(node.getNodeAttr((attr.getName().strref() + ".value").str()));
    if (!name)
      continue;
    StringRef text = name.getValue();
    text.consume_front("torch.ops.");
    std::tie(domain, type) = text.split('.');
    const CustomOperator *custom = findCustomOperator(customs, domain, type, int64_t(node.getOpset()), true);
    return custom && custom->writes() ? &*custom->schema : nullptr;
  }
  return nullptr;
}

NodeOp AutoFunctionalized::emit(StringRef domain, StringRef type, TypeRange results, Arguments &arguments) {
  arguments.attributes.set("arg_names", builder.getStrArrayAttr(arguments.names));
  return NodeOp::create(builder, node.getLoc(), domain, type, node.getOpset(), results, arguments.operands,
                        arguments.attributes);
}

/// A copy, whose layout is that of `value` only where that is row-major.
Value AutoFunctionalized::copyOf(Value value) {
  Arguments arguments;
  arguments.addOperand("self", value);
  NodeOp copy = emit("aten", "clone.default", value.getType(), arguments);
  auto function = node->getParentOfType<FuncOp>();
  auto strided = function->getAttrOfType<DenseI64ArrayAttr>(kLayoutsAttr);
  auto argument = dyn_cast<BlockArgument>(value);
  std::optional<Layout> given = getGivenLayout(value);
  const bool isKnown = argument ? argument.getOwner() == &function.getBody().front() &&
                                      !(strided && llvm::is_contained(strided.asArrayRef(), argument.getArgNumber()))
                                : !given || given->state == Layout::State::Contiguous;
  if (!isKnown)
    copy->setAttr(kLayoutsAttr, builder.getArrayAttr(builder.getStringAttr(kUnknownLayout)));
  return copy.getResult(0);
}

/// Argument `name` of the call, with the sizes that it names, as argument `as` of another one. False if it is absent.
bool AutoFunctionalized::takeArgument(StringRef name, StringRef as, Arguments &to) {
  bool isTaken = false;
  auto argumentNames = cast<ArrayAttr>(node.getNodeAttr("arg_names")).getAsRange<StringAttr>();
  auto renamed = [&](StringRef text) { return builder.getStringAttr(as + text.drop_front(name.size())); };
  auto isOf = [&](StringRef text) { return text.consume_front(name) && (text.empty() || text.starts_with(".")); };
  for (auto [text, value] : llvm::zip(argumentNames, node.getInputs()))
    if (isOf(text.getValue())) {
      to.addOperand(renamed(text.getValue()).getValue(), value);
      isTaken = true;
    }
  for (NamedAttribute attr : node.getAttrs()) {
    if (!isOf(attr.getName().strref()))
      continue;
    auto rename = [&](Attribute value) -> Attribute {
      auto text = dyn_cast<StringAttr>(value);
      return text && isOf(text.getValue()) && findOperand(node, text.getValue()) ? renamed(text.getValue()) : value;
    };
    Attribute value = rename(attr.getValue());
    if (auto list = dyn_cast<ArrayAttr>(value))
      value = builder.getArrayAttr(llvm::map_to_vector(list, rename));
    to.attributes.set(renamed(attr.getName().strref()), value);
    isTaken = true;
  }
  return isTaken;
}

/// What of the copy of a base the call is given for an argument: torch/_higher_order_ops/auto_functionalize.py.
Value AutoFunctionalized::viewOf(StringRef argument, Value base) {
  const std::string prefix = ("_" + argument + "_").str();
  auto view = [&](StringRef type, ArrayRef<std::pair<StringRef, StringRef>> taken) -> Value {
    Arguments arguments;
    arguments.addOperand("self", base);
    for (auto [name, as] : taken)
      if (!takeArgument((prefix + name).str(), as, arguments))
        return {};
    // An empty list has no type of its own in archives.
    for (StringRef name : {"size", "stride"})
      if (arguments.attributes.erase((name + ".count").str()))
        arguments.attributes.set(name, builder.getDenseI64ArrayAttr({}));
    NodeOp made = emit("aten", type, base::UnknownType::get(builder.getContext()), arguments);
    if (made.getNodeAttr("size") && made.getInputs().size() > 1)
      made->setAttr(kRefusedAttr, builder.getStringAttr("of sizes that only the run knows, by which run_decompositions "
                                                        "wrote a view, is not supported; compile the program that was "
                                                        "not decomposed"));
    return made.getResult(0);
  };
  if (node.getNodeAttr(prefix + "alias"))
    return base;
  if (node.getNodeAttr(prefix + "storage_offset"))
    return view("as_strided.default", {{"size", "size"}, {"stride", "stride"}, {"storage_offset", "storage_offset"}});
  if (node.getNodeAttr(prefix + "slice_dim"))
    return view("slice.Tensor", {{"slice_dim", "dim"}, {"slice_start", "start"}, {"slice_end", "end"}});
  return base;
}

void AutoFunctionalized::expand() {
  StringRef domain, type;
  const Schema *schema = findCallee(domain, type);
  if (!schema || !isa_and_nonnull<ArrayAttr>(node.getNodeAttr("arg_names")))
    return;
  const bool hasBases = node.getOpType() == "auto_functionalized_v2";
  const size_t made = schema->results.size(), first = std::max<size_t>(1, made); // None stands for none
  SmallVector<Value> copies;
  const int64_t bases = std::min<int64_t>(hasBases ? node.getInt("_all_bases.count", 0) : 0, node.getInputs().size());
  for (int64_t i = 0; i < bases; ++i)
    if (std::optional<unsigned> base = findOperand(node, ("_all_bases." + Twine(i)).str()))
      copies.push_back(copyOf(node.getInputs()[*base]));
  Arguments arguments;
  for (const SchemaArgument &argument : schema->arguments) {
    if (!argument.isWritten()) {
      takeArgument(argument.name, argument.name, arguments);
      continue;
    }
    Value view;
    if (!hasBases) {
      if (std::optional<unsigned> operand = findOperand(node, argument.name))
        copies.push_back(view = copyOf(node.getInputs()[*operand]));
    } else if (auto index =
                   dyn_cast_or_null<IntegerAttr>(node.getNodeAttr(("_" + argument.name + "_base_index").str()));
               index && index.getInt() >= 0 && size_t(index.getInt()) < copies.size()) {
      view = viewOf(argument.name, copies[size_t(index.getInt())]);
    }
    if (!view)
      return;
    arguments.addOperand(argument.name, view);
  }
  if (node.getNumResults() != first + copies.size())
    return;
  NodeOp call = emit(domain, type, TypeRange(node.getResultTypes()).take_front(made), arguments);
  for (size_t i = 0; i < made; ++i)
    node.getResult(i).replaceAllUsesWith(call.getResult(i));
  for (auto [i, copy] : llvm::enumerate(copies))
    node.getResult(first + i).replaceAllUsesWith(copy);
  node.erase();
}

} // namespace

void graph::expandAutoFunctionalized(FuncOp function, const CustomOperators &customs) {
  SmallVector<NodeOp> calls;
  function.walk([&](NodeOp node) {
    if (node.getDomain() == "higher_order" && node.getOpType().starts_with("auto_functionalized"))
      calls.push_back(node);
  });
  for (NodeOp node : calls)
    AutoFunctionalized(node, customs).expand();
}

//===--- what calls write -----------------------------------------------------------------------------------------===//

/// Whether two places of one memory have no element in common, as far as constants say.
static bool areDisjoint(View *a, View *b) {
  auto wayTo = [](View *view) {
    SmallVector<View *> way;
    for (; view; view = view->parent)
      way.insert(way.begin(), view);
    return way;
  };
  SmallVector<View *> wayA = wayTo(a), wayB = wayTo(b);
  auto [atA, atB] = std::mismatch(wayA.begin(), wayA.end(), wayB.begin(), wayB.end());
  if (atA == wayA.end() || atB == wayB.end())
    return false;
  View *x = *atA, *y = *atB;
  if (!x->group.empty() && x->group.data() == y->group.data())
    return x->kind == ViewKind::Pieces || x->kind == ViewKind::Unbind;
  return x->kind == y->kind && haveDisjointParts(x->node, *x->schema, y->node, *y->schema, x->kind, x->parent->type);
}

/// Whether two places may have an element in common.
static bool mayOverlap(View *a, View *b) {
  if (a->memory == b->memory)
    return !areDisjoint(a, b);
  return llvm::any_of(a->memory->links, [&](const Memory::Link &link) { return link.other == b->memory; });
}

/// Why a function that writes this operand cannot be given the others: each has elements of its own, and in PyTorch
/// they would be one memory.
std::string Functionalizer::whyNotShared(ArrayRef<Name *> given, unsigned written) {
  View *view = given[written]->view;
  for (auto [i, name] : llvm::enumerate(given))
    if (i != written && mayOverlap(view, name->view))
      return "writes \"" + nodeNameOf(view->memory->origin) +
             "\", of whose memory another argument may be, too; give the operator a .clone() in its place";
  return "";
}

/// A call of an operator of the user's own, which returns no views: what it writes becomes results.
void Functionalizer::visitCustom(NodeOp node, const Schema &schema, ArrayRef<Name *> given) {
  std::optional<SmallVector<unsigned>> operands = findWrittenOperands(node, schema);
  if (!operands || operands->empty())
    return;
  SmallVector<Write> writes;
  auto argument = schema.arguments.begin();
  for (unsigned operand : *operands) {
    argument = std::find_if(argument, schema.arguments.end(), [](const auto &a) { return a.isWritten(); });
    writes.push_back({operand, &*argument++});
  }
  for (const Write &write : writes) {
    std::string why = whyNotWritable(given[write.operand]->view);
    if (why.empty())
      why = whyNotShared(given, write.operand);
    if (!why.empty())
      return refuse(node, why);
  }
  nameWritten(node, schema, writes, given);
  for (Value result : node.getResults())
    if (Name *name = nameOfValue.lookup(result); name && differ(name->view->type, result.getType())) {
      std::string why = llvm::formatv("gives {0}, but writes memory of type {1} in place; export the model again",
                                      result.getType(), name->view->type);
      for (Value other : node.getResults())
        nameOfValue.erase(other);
      return refuse(node, why);
    }
  builder.setInsertionPoint(node);
  NodeOp call = makeFunctional(builder, node, schema, *operands);
  const size_t made = call.getNumResults() - writes.size();
  for (auto [i, write] : llvm::enumerate(writes))
    store(given[write.operand]->view, call.getResult(made + i), call);
  replaced.push_back(node);
}
