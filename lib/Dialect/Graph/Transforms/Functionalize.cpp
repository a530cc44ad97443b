//===- Functionalize.cpp - writes to memory as values -------------------------------------------------------------===//
//
// PyTorch's operators may write their operands, and tensors may be names of one memory. This pass walks a graph in
// order and keeps for each memory a tree: the root is the tensor that it was made as, below it lie its views. A tensor
// of the graph is a name, that is, a pointer to a place in a tree.
//
//   %y = select.int(%x, 0, 0)             tree of x: x <- y
//   %r = relu_.default(%y)                %y1 = relu(%y);  y has the newest value, x is stale
//   ... reads %x                          %x1 = select_scatter(%x, %y1, 0, 0)
//
// Values are brought up to date where they are read, and no earlier: a write costs one node, a read of a name that is
// stale one for each step of the tree from the newest value up to where both meet, and down to the name. That all
// elements but those below a stale place are right is what holds from step to step: a write first reads its own place.
//
// Names that may be copies or not (a reshape of a tensor whose layout is not known) have trees of their own, linked to
// the other's: once either is written, the other can't be read any more. What is a copy unless some dims have the size
// 1 gets a guard there that they don't. What the pass cannot do is refused where it would matter, by the attribute
// kRefusedAttr.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Functionalizer.h"

#include "CustomWrites.h"

#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/Graph/Transforms/Passes.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace tc::graph {
#define GEN_PASS_DEF_FUNCTIONALIZEGRAPHPASS
#include "tc/Dialect/Graph/Transforms/Passes.h.inc"
} // namespace tc::graph

using namespace mlir;
using namespace tc;
using namespace tc::graph;
using torch::Schema;
using torch::SchemaArgument;

std::string graph::nodeNameOf(Value value) {
  if (auto node = dyn_cast_or_null<NodeOp>(value.getDefiningOp()))
    return node.getNodeName();
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto function = dyn_cast<FuncOp>(argument.getOwner()->getParentOp()))
      return function.getArgName(argument.getArgNumber()).str();
  return value.getDefiningOp() ? getNodeName(value.getDefiningOp()->getLoc()).str() : "";
}

static NamedAttribute integer(OpBuilder &b, StringRef name, int64_t value) {
  return b.getNamedAttr(name, b.getI64IntegerAttr(value));
}

//===--- names and places -----------------------------------------------------------------------------------------===//

View *Functionalizer::addRoot(Value value) {
  Memory &memory = memories.emplace_back();
  View &root = views.emplace_back();
  root.memory = &memory;
  root.type = value.getType();
  root.value = value;
  memory.root = memory.newest = &root;
  memory.origin = value;
  memory.home = value.getParentRegion();
  return &root;
}

View *Functionalizer::addView(View *parent, NodeOp node, const Schema *schema, ViewKind kind, unsigned result,
                              unsigned operand) {
  View &view = views.emplace_back();
  view.memory = parent->memory;
  view.parent = parent;
  view.node = node;
  view.schema = schema;
  view.kind = kind;
  view.result = result;
  view.operand = operand;
  view.type = node.getResult(result).getType();
  view.value = node.getResult(result);
  view.version = parent->memory->version;
  ++parent->memory->views;
  return &view;
}

void Functionalizer::setName(Value value, View *view) {
  names.push_back({view});
  nameOfValue[value] = &names.back();
}

Name *Functionalizer::nameOf(Value value) {
  Name *&name = nameOfValue[value];
  if (!name) {
    names.push_back({addRoot(value)});
    name = &names.back();
  }
  return name;
}

void Functionalizer::refuse(Operation *op, const Twine &why) {
  if (!op->hasAttr(kRefusedAttr))
    op->setAttr(kRefusedAttr, builder.getStringAttr(why));
}

void Functionalizer::link(Memory *a, Memory *b, const Twine &why, Memory::Condition *condition) {
  if (a == b)
    return;
  // What either may be one with, the other may, too.
  SmallVector<Memory::Link, 0> ofA = a->links, ofB = b->links;
  auto join = [&](Memory *one, Memory *other, Memory::Condition *under) {
    one->links.push_back({other, other->version, why.str(), under});
    other->links.push_back({one, one->version, why.str(), under});
  };
  join(a, b, condition);
  for (Memory::Link &more : ofB)
    if (more.other != a)
      join(a, more.other, condition ? condition : more.condition);
  for (Memory::Link &more : ofA)
    if (more.other != b)
      join(b, more.other, condition ? condition : more.condition);
}

/// Guards that a node copies: in each set of dims one is not of size 1.
void Functionalizer::exclude(Memory::Condition &condition) {
  if (condition.isExcluded)
    return;
  condition.isExcluded = true;
  NodeOp node = condition.node;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(node);
  const Type i64 = RankedTensorType::get({}, builder.getI64Type()), i1 = RankedTensorType::get({}, builder.getI1Type());
  auto binary = [&](StringRef type, Type result, Value a, Value b) -> Value {
    return NodeOp::create(builder, node.getLoc(), "torch", type, node.getOpset(), result, ValueRange{a, b},
                          builder.getNamedAttr("arg_names", builder.getStrArrayAttr({"a", "b"})))
        .getResult(0);
  };
  for (ArrayRef<int64_t> dims : condition.sets) {
    Value product;
    std::string text;
    for (int64_t dim : dims) {
      Value size =
          emit("sym_size.int", i64, {{"self", node.getInputs()[condition.operand]}}, integer(builder, "dim", dim), node)
              .getResult(0);
      product = product ? binary("_operator.mul", i64, product, size) : size;
      text += (text.empty() ? "dim " : " and dim ") + std::to_string(dim);
    }
    auto one = DenseElementsAttr::get(cast<RankedTensorType>(i64), builder.getI64IntegerAttr(1));
    Value differs =
        binary("_operator.ne", i1, product, ConstantOp::create(builder, builder.getUnknownLoc(), base::fromDense(one)));
    text = "compiled as a copy, but it names memory that is written where " + text + " of its operand " +
           (dims.size() == 1 ? "is" : "are") + " of size 1; write .clone() in its place";
    NodeOp::create(builder, node.getLoc(), "aten", "_assert_scalar.default", node.getOpset(), TypeRange(), differs,
                   {builder.getNamedAttr("arg_names", builder.getStrArrayAttr({"self"})),
                    builder.getNamedAttr("assert_msg", builder.getStringAttr(text))});
  }
}

/// Where no front end says: what an operator makes of contiguous tensors is contiguous, but for those that say that
/// they arrange it otherwise.
Layout Functionalizer::rootLayout(View *root) {
  Value origin = root->memory->origin;
  auto arguments = function->getAttrOfType<DenseI64ArrayAttr>(kLayoutsAttr);
  if (auto argument = dyn_cast<BlockArgument>(origin)) {
    bool known = isa<FuncOp>(argument.getOwner()->getParentOp()) &&
                 !(arguments && llvm::is_contained(arguments.asArrayRef(), int64_t(argument.getArgNumber())));
    return known ? Layout() : unknownLayout();
  }
  auto node = dyn_cast_or_null<NodeOp>(origin.getDefiningOp());
  if (!node || arguments)
    return Layout();
  StringRef type = node.getOpType();
  // What LAPACK computes lies column by column.
  static constexpr StringRef kOther[] = {
      "linalg_", "_linalg_", "cholesky",          "inverse.", "qr.",     "svd.", "lu",   "geqrf",
      "ormqr",   "orgqr",    "triangular_solve.", "einsum",   "nonzero", "fft_", "_fft_"};
  if (hasArgument(node, "memory_format") || type.contains("attention") || !node.getGraphs().empty() ||
      llvm::any_of(kOther, [&](StringRef prefix) { return type.starts_with(prefix); }))
    return unknownLayout();
  // Products of matrices and what is made of sizes alone is written row by row, however the operands lie.
  for (StringRef fresh : {"linear.", "mm.", "bmm.", "addmm.", "baddbmm.", "new_zeros.", "new_ones.", "new_full."})
    if (type.starts_with(fresh))
      return Layout();
  for (Value input : node.getInputs())
    if (auto known = nameOfValue.lookup(input); known && layoutOf(known->view).state != Layout::State::Contiguous)
      return unknownLayout();
  return Layout();
}

Layout Functionalizer::layoutOf(View *view) {
  if (view->layout)
    return *view->layout;
  if (auto given = getGivenLayout(view->node ? Value(view->node.getResult(view->result)) : view->memory->origin))
    return *(view->layout = given);
  view->layout = view->parent
                     ? getViewLayout(view->node, *view->schema, view->kind, view->result, layoutOf(view->parent))
                     : rootLayout(view);
  return *view->layout;
}

//===--- reading --------------------------------------------------------------------------------------------------===//

NodeOp Functionalizer::emit(StringRef type, Type result, ArrayRef<std::pair<StringRef, Value>> operands,
                            ArrayRef<NamedAttribute> attributes, NodeOp like) {
  SmallVector<Value> values;
  SmallVector<StringRef> argumentNames;
  for (auto [name, value] : operands) {
    argumentNames.push_back(name);
    values.push_back(value);
  }
  NamedAttrList attrs(attributes);
  attrs.set("arg_names", builder.getStrArrayAttr(argumentNames));
  return NodeOp::create(builder, like.getLoc(), "aten", type, like.getOpset(), result, values, attrs);
}

Value Functionalizer::emitLike(View *view, StringRef type, Type result, ArrayRef<std::pair<StringRef, Value>> operands,
                               ArrayRef<StringRef> drop, ArrayRef<NamedAttribute> more) {
  NodeOp node = view->node;
  SmallVector<std::pair<StringRef, Value>> all(operands);
  auto argumentNames = cast<ArrayAttr>(node.getNodeAttr("arg_names")).getAsRange<StringAttr>();
  for (auto [i, pair] : llvm::enumerate(llvm::zip(argumentNames, node.getInputs())))
    if (i != view->operand)
      all.push_back({std::get<0>(pair).getValue(), std::get<1>(pair)});
  NamedAttrList attrs;
  for (NamedAttribute attr : node.getAttrs())
    if (!llvm::is_contained(drop, attr.getName().strref()))
      attrs.append(attr);
  for (NamedAttribute attr : more)
    attrs.set(attr.getName(), attr.getValue());
  return emit(type, result, all, attrs, node).getResult(0);
}

/// Where piece `view` of its parent begins and ends; nullopt if that is not static.
static std::optional<std::pair<int64_t, int64_t>> extentOf(View *view, int64_t dim) {
  int64_t begin = 0;
  for (View *piece : view->group) {
    auto type = dyn_cast<RankedTensorType>(piece->type);
    if (!type || dim >= type.getRank() || type.isDynamicDim(dim))
      return std::nullopt;
    if (piece == view)
      return std::pair(begin, begin + type.getDimSize(dim));
    begin += type.getDimSize(dim);
  }
  return std::nullopt;
}

/// One piece alone, where that can be said: its siblings may not be read at all. Null if it can't.
Value Functionalizer::derivePiece(View *view, Value parent) {
  auto type = dyn_cast<RankedTensorType>(view->parent->type);
  std::optional<int64_t> dim = type ? getPartDim(view->node, *view->schema, type.getRank()) : std::nullopt;
  if (!dim)
    return {};
  if (view->kind == ViewKind::Unbind)
    return emit("select.int", view->type, {{"self", parent}},
                {integer(builder, "dim", *dim), integer(builder, "index", view->result)}, view->node)
        .getResult(0);
  std::optional<std::pair<int64_t, int64_t>> extent = extentOf(view, *dim);
  if (view->kind != ViewKind::Pieces || !extent)
    return {};
  return emit("slice.Tensor", view->type, {{"self", parent}},
              {integer(builder, "dim", *dim), integer(builder, "start", extent->first),
               integer(builder, "end", extent->second), integer(builder, "step", 1)},
              view->node)
      .getResult(0);
}

/// Makes `view` anew of its parent, which is up to date.
void Functionalizer::derive(View *view) {
  Memory &memory = *view->memory;
  Value parent = view->parent->value;
  view->version = memory.version;
  if (view->kind == ViewKind::Identity) {
    view->value = parent;
    return;
  }
  if (!view->group.empty())
    if (Value piece = derivePiece(view, parent)) {
      view->value = piece;
      return;
    }
  auto clone = cast<NodeOp>(builder.clone(*view->node));
  clone.getInputsMutable().slice(view->operand, 1).assign(parent);
  if (view->group.empty())
    view->value = clone.getResult(view->result);
  for (View *sibling : view->group)
    if (sibling == view || sibling->version != memory.version) {
      sibling->value = clone.getResult(sibling->result);
      sibling->version = memory.version;
    }
}

/// The parent of `view` with the elements of `view` in their place.
Value Functionalizer::writeBack(View *view) {
  Value old = view->parent->value, source = view->value;
  Type type = view->parent->type;
  auto ranked = dyn_cast<RankedTensorType>(type);
  switch (view->kind) {
  case ViewKind::Identity:
  case ViewKind::Expand: // of one element each: whyNotWritable
    return source;
  case ViewKind::Reshape:
    return emit("view_as.default", type, {{"self", source}, {"other", old}}, {}, view->node).getResult(0);
  case ViewKind::Permute: {
    SmallVector<int64_t> order = *getPermutation(view->node, *view->schema, ranked.getRank()), inverse(order.size());
    for (auto [to, from] : llvm::enumerate(order))
      inverse[from] = to;
    return emit("permute.default", type, {{"self", source}},
                {builder.getNamedAttr("dims", builder.getDenseI64ArrayAttr(inverse))}, view->node)
        .getResult(0);
  }
  case ViewKind::Select:
    return emitLike(view, "select_scatter.default", type, {{"self", old}, {"src", source}});
  case ViewKind::Slice:
    return emitLike(view, "slice_scatter.default", type, {{"self", old}, {"src", source}});
  case ViewKind::Narrow: {
    int64_t start = *getIntArgument(view->node, *view->schema, "start"),
            end = start + *getIntArgument(view->node, *view->schema, "length");
    SmallVector<NamedAttribute> more{integer(builder, "start", start)};
    if (start >= 0 || end != 0)
      more.push_back(integer(builder, "end", end));
    return emitLike(view, "slice_scatter.default", type, {{"self", old}, {"src", source}}, {"length"}, more);
  }
  case ViewKind::Diagonal: {
    SmallVector<NamedAttribute> more;
    for (StringRef name : {"offset", "dim1", "dim2"})
      more.push_back(integer(builder, name, *getIntArgument(view->node, *view->schema, name)));
    return emitLike(view, "diagonal_scatter.default", type, {{"self", old}, {"src", source}}, {}, more);
  }
  case ViewKind::AsStrided:
    return emitLike(view, "as_strided_scatter.default", type, {{"self", old}, {"src", source}});
  case ViewKind::Unbind: {
    int64_t dim = *getPartDim(view->node, *view->schema, ranked.getRank());
    return emit("select_scatter.default", type, {{"self", old}, {"src", source}},
                {integer(builder, "dim", dim), integer(builder, "index", view->result)}, view->node)
        .getResult(0);
  }
  case ViewKind::Pieces: {
    int64_t dim = *getPartDim(view->node, *view->schema, ranked.getRank());
    if (auto extent = extentOf(view, dim))
      return emit("slice_scatter.default", type, {{"self", old}, {"src", source}},
                  {integer(builder, "dim", dim), integer(builder, "start", extent->first),
                   integer(builder, "end", extent->second), integer(builder, "step", 1)},
                  view->node)
          .getResult(0);
    auto clone = cast<NodeOp>(builder.clone(*view->node));
    clone.getInputsMutable().slice(view->operand, 1).assign(old);
    SmallVector<std::string> pieceNames;
    for (size_t i = 0; i < view->group.size(); ++i)
      pieceNames.push_back("tensors." + std::to_string(i));
    SmallVector<std::pair<StringRef, Value>> pieces;
    for (View *piece : view->group)
      pieces.push_back({pieceNames[piece->result], piece == view ? source : Value(clone.getResult(piece->result))});
    return emit("cat.default", type, pieces,
                {integer(builder, "tensors.count", pieces.size()), integer(builder, "dim", dim)}, view->node)
        .getResult(0);
  }
  case ViewKind::Parts:
    return emit("view_as_complex.default", type, {{"self", source}}, {}, view->node).getResult(0);
  case ViewKind::Whole:
    return emit("view_as_real.default", type, {{"self", source}}, {}, view->node).getResult(0);
  case ViewKind::Other:
    break;
  }
  llvm_unreachable("whyNotWritable refuses it");
}

/// Brings the newest value up to where the tree's way to `view` meets it.
void Functionalizer::flush(View *view) {
  Memory &memory = *view->memory;
  llvm::SmallPtrSet<View *, 8> way;
  for (View *place = view; place; place = place->parent)
    way.insert(place);
  while (!way.contains(memory.newest)) {
    View *parent = memory.newest->parent;
    parent->value = writeBack(memory.newest);
    parent->version = memory.version;
    memory.newest = parent;
  }
}

/// The value of `view` as of now, for `reader`.
Value Functionalizer::read(View *view, Operation *reader) {
  Memory &memory = *view->memory;
  for (Memory::Link &link : memory.links)
    if (link.other->version != link.version) {
      if (link.condition) {
        exclude(*link.condition);
        continue;
      }
      // A terminator is no node: whoever wrote is refused.
      refuse(isa<YieldOp>(reader) ? link.other->writer : reader,
             "reads \"" + Twine(nodeNameOf(memory.origin)) + "\" after a write by \"" +
                 link.other->writer.getNodeName() + "\", and whether both are one memory is not known: " + link.why);
      break;
    }
  if (view->version == memory.version)
    return view->value;
  builder.setInsertionPoint(at);
  SmallVector<View *> stale;
  auto climb = [&] {
    stale.clear();
    View *place = view;
    for (; place && place->version != memory.version; place = place->parent)
      stale.push_back(place);
    return place != nullptr;
  };
  if (!climb()) {
    flush(view);
    climb();
  }
  for (View *place : llvm::reverse(stale))
    derive(place);
  return view->value;
}

//===--- writing --------------------------------------------------------------------------------------------------===//

/// Why a write to `view` cannot be carried to its memory; "" if it can.
std::string Functionalizer::whyNotWritable(View *view) {
  Value root = view->memory->origin;
  auto argument = dyn_cast<BlockArgument>(root);
  if (view->memory->home != region || (argument && !isa<FuncOp>(argument.getOwner()->getParentOp())))
    return "writes \"" + nodeNameOf(root) +
           "\" inside control flow, where it was made outside of it; return the new value from the branch or the loop";
  // Of states the importers know who shares their memory (kSharesAttr); equal ones may be two tensors of one value.
  if (auto constant = root.getDefiningOp<ConstantOp>();
      constant && !constant->hasAttr(kFreshAttr) && !constant->hasAttr(kStateAttr))
    for (auto other : function.getOps<ConstantOp>())
      if (other != constant && other.getValue() == constant.getValue() && !other->use_empty() &&
          !other->hasAttr(kFreshAttr))
        return "writes \"" + nodeNameOf(root) + "\", whose memory \"" + nodeNameOf(other.getResult()) +
               "\" is, too; give the model two tensors";
  for (View *place = view; place->parent; place = place->parent) {
    NodeOp node = place->node;
    std::string through = "writes through \"" + node.getNodeName() + "\", a view by " + node.getOpType().str();
    auto parent = dyn_cast<RankedTensorType>(place->parent->type);
    bool known = parent != nullptr;
    switch (place->kind) {
    case ViewKind::Other:
      return through + ", which can be read alone; write to a copy, and copy that back";
    case ViewKind::Expand:
      if (!parent || place->type != place->parent->type || !parent.hasStaticShape())
        return through + ", whose elements share memory; write to a .clone() of it";
      break;
    case ViewKind::Permute:
      known = known && getPermutation(node, *place->schema, parent.getRank());
      break;
    case ViewKind::Pieces:
    case ViewKind::Unbind:
      known = known && getPartDim(node, *place->schema, parent.getRank());
      break;
    case ViewKind::Narrow:
      known = getIntArgument(node, *place->schema, "start") && getIntArgument(node, *place->schema, "length");
      break;
    case ViewKind::Diagonal:
      for (StringRef name : {"offset", "dim1", "dim2"})
        known = known && getIntArgument(node, *place->schema, name);
      break;
    case ViewKind::AsStrided:
      if (place->parent->parent || layoutOf(place->parent).state != Layout::State::Contiguous)
        return through + " of a tensor that is a view itself; write to a copy, and copy that back";
      break;
    default:
      break;
    }
    if (!known)
      return through + " whose place in the tensor is not constant; write to a copy, and copy that back";
  }
  return "";
}

/// The operators that give a tensor other memory, which no value can say.
static bool movesMemory(const Schema &schema) {
  return llvm::is_contained({"set_", "resize_", "resize_as_", "_resize_output_", "swap_", "set_data"}, schema.name);
}

/// What operators write without saying so in their signatures: the running statistics of batch_norm in training, and of
/// instance_norm where it computes others.
static ArrayRef<StringRef> findUnannotatedWrites(NodeOp node, const Schema &schema) {
  static constexpr StringRef kStatistics[] = {"running_mean", "running_var"};
  const bool isInstance = schema.name == "instance_norm";
  if ((!isInstance && !schema.name.ends_with("batch_norm")) || schema.writes())
    return {};
  const bool writes = getBoolArgument(node, schema, isInstance ? "use_input_stats" : "training");
  if (!writes || !findOperand(node, "running_mean") || !findOperand(node, "running_var"))
    return {};
  return kStatistics;
}

static bool isList(const SchemaArgument &result) {
  return result.type.required().kind == torch::SchemaType::Kind::List;
}

/// Whether two types are known to differ in their sizes.
static bool differInShape(Type a, Type b) {
  auto first = dyn_cast<RankedTensorType>(a), second = dyn_cast<RankedTensorType>(b);
  return first && second && failed(verifyCompatibleShape(first, second));
}

bool graph::differ(Type a, Type b) {
  return differInShape(a, b) ||
         (isa<RankedTensorType>(a) && isa<RankedTensorType>(b) && getElementTypeOrSelf(a) != getElementTypeOrSelf(b));
}

/// In-place operators return the tensor that they write.
void Functionalizer::nameWritten(NodeOp node, const Schema &schema, ArrayRef<Write> writes, ArrayRef<Name *> given) {
  size_t next = 0;
  for (const SchemaArgument &result : schema.results) {
    const torch::SchemaType *alias = result.type.findAlias();
    for (const Write &write : writes)
      if (alias && write.argument->type.findAlias() && write.argument->type.findAlias()->aliasSet == alias->aliasSet &&
          next < node.getNumResults())
        nameOfValue[node.getResult(next)] = given[write.operand];
    ++next;
  }
}

/// Rewrites a node that writes memory. False if it is none.
bool Functionalizer::visitWrites(NodeOp node, const Schema &schema, ArrayRef<Name *> given) {
  SmallVector<Write> writes;
  const ArrayRef<StringRef> unannotated = findUnannotatedWrites(node, schema);
  for (const SchemaArgument &argument : schema.arguments) {
    if (!argument.isWritten() && !llvm::is_contained(unannotated, argument.name))
      continue;
    if (auto operand = findOperand(node, argument.name))
      writes.push_back({*operand, &argument});
    else
      for (int64_t i = 0, n = node.getInt((argument.name + ".count").str(), 0); i < n; ++i)
        if (auto element = findOperand(node, (argument.name + "." + Twine(i)).str()))
          writes.push_back({*element, &argument});
  }
  // Outside of training statistics are read alone.
  if (schema.name.contains("batch_norm") && schema.find("training") && !getBoolArgument(node, schema, "training"))
    writes.clear();
  if (writes.empty())
    return false;
  auto give = [&](const Twine &why) {
    refuse(node, why);
    // Whoever reads it reads the node that is refused.
    for (Value result : node.getResults())
      nameOfValue.erase(result);
    return true;
  };
  if (node.getNumResults() > schema.results.size() && !llvm::any_of(schema.results, isList))
    return give(llvm::formatv("gives {0} results, but PyTorch's gives {1}; export the model again",
                              node.getNumResults(), schema.results.size()));
  nameWritten(node, schema, writes, given);
  // PyTorch has no functional instance_norm.
  const bool isInstanceNorm = !unannotated.empty() && schema.name == "instance_norm";
  const Schema *pure = isInstanceNorm        ? &schema
                       : unannotated.empty() ? torch::findFunctional(schema)
                                             : torch::findSchema("aten", "_native_batch_norm_legit_functional");
  if (llvm::is_contained({"requires_grad_", "retain_grad", "record_stream"}, schema.name)) {
    replaced.push_back(node); // of no meaning here
    return true;
  }
  if (isInstanceNorm && !node.getNodeAttr("momentum"))
    return give("that updates its running statistics by a momentum that only the run knows is not supported; make it a "
                "number");
  if (movesMemory(schema))
    return give("gives a tensor other memory, which is not supported; make a new tensor instead");
  // Of fill_diagonal_ and its like PyTorch has no other: the conversion takes it for one that returns the new value.
  const bool isOneOf = schema.domain == "aten" && schema.results.size() == 1 && writes.size() == 1;
  if (!pure && isOneOf && !writes[0].argument->keywordOnly && schema.results[0].type.findAlias())
    pure = &schema;
  if (!pure)
    return give("writes its operand in place, which is not supported, as PyTorch has no operator that returns the new "
                "value instead; write the model without it");
  builder.setInsertionPoint(node);
  // t_, squeeze_, detach_: the tensor becomes a view of what it was.
  if (!pure->writes() && !pure->results.empty() && pure->results[0].type.findAlias()) {
    Name *name = given[writes[0].operand];
    ViewKind kind = getViewKind(node, *pure);
    if (kind != ViewKind::Identity && node.getNumResults() == 1) {
      auto view = NodeOp::create(builder, node.getLoc(), node.getDomain(), pure->nodeType(), node.getOpset(),
                                 node.getResultTypes(), node.getInputs(), llvm::to_vector(node.getAttrs().getValue()));
      if (Attribute layouts = node->getAttr(kLayoutsAttr))
        view->setAttr(kLayoutsAttr, layouts);
      name->view = addView(name->view, view, pure, kind, 0, writes[0].operand);
    }
    replaced.push_back(node);
    return true;
  }
  for (const Write &write : writes) {
    View *view = given[write.operand]->view;
    std::string why = whyNotWritable(view);
    bool out = write.argument->keywordOnly && node.getNumResults() == 1;
    if (why.empty() && out && differInShape(view->type, node.getResult(0).getType()) &&
        (view->parent || view->memory->views > 1))
      why = "resizes its out= tensor, of which there are views; give it one of the result's shape";
    if (why.empty() && !out && !write.argument->keywordOnly && node.getNumResults() == 1 &&
        schema.results.size() == 1 && schema.results[0].type.findAlias() &&
        differ(view->type, node.getResult(0).getType()))
      why = llvm::formatv("gives {0}, but writes memory of type {1} in place; export the model again",
                          node.getResult(0).getType(), view->type);
    if (!why.empty())
      return give(why);
  }
  if (isInstanceNorm)
    rewriteInstanceNorm(node, writes, given);
  else
    rewrite(node, schema, *pure, writes, given);
  replaced.push_back(node);
  return true;
}

/// The call with `pure`, which returns what it writes. Its results: those of the call that name nothing, then what is
/// written, in the order of the arguments.
void Functionalizer::rewrite(NodeOp node, const Schema &schema, const Schema &pure, ArrayRef<Write> writes,
                             ArrayRef<Name *> given) {
  SmallVector<Value> operands;
  SmallVector<StringRef> operandNames;
  auto argumentNames = cast<ArrayAttr>(node.getNodeAttr("arg_names")).getAsRange<StringAttr>();
  for (auto [text, value] : llvm::zip(argumentNames, node.getInputs()))
    if (pure.find(text.getValue()) || pure.find(text.getValue().rsplit('.').first)) {
      operandNames.push_back(text.getValue());
      operands.push_back(value);
    } else if (!schema.arguments[0].keywordOnly && text.getValue() == schema.arguments[0].name) {
      operandNames.push_back(pure.arguments[0].name);
      operands.push_back(value);
    }
  NamedAttrList attrs;
  for (NamedAttribute attr : node.getAttrs()) {
    StringRef name = attr.getName().strref();
    name.consume_back(".count");
    if (pure.find(name))
      attrs.append(attr);
  }
  attrs.set("arg_names", builder.getStrArrayAttr(operandNames));
  SmallVector<Value> fresh;
  if (llvm::none_of(schema.results, [](const SchemaArgument &result) { return result.type.findAlias(); }))
    fresh.append(node.getResults().begin(), node.getResults().end());
  SmallVector<Type> types = llvm::to_vector(llvm::map_range(fresh, [](Value v) { return v.getType(); }));
  // batch_norm returns one of the three that its twin has.
  const size_t others =
      std::max(fresh.size(), pure.results.size() > writes.size() ? pure.results.size() - writes.size() : 0);
  // What the twin returns may be promoted; in place it takes the type of what it writes.
  const bool copies = pure.name == "copy";
  const Type unknown = base::UnknownType::get(builder.getContext());
  types.resize(pure.results.size() == 1 ? fresh.size() : others, unknown);
  const size_t first = types.size();
  for (const Write &write : writes)
    types.push_back(copies ? given[write.operand]->view->type : unknown);
  auto call = NodeOp::create(builder, node.getLoc(), node.getDomain(), pure.nodeType(), node.getOpset(), types,
                             operands, attrs);
  if (Attribute refused = node->getAttr(kRefusedAttr))
    call->setAttr(kRefusedAttr, refused);
  for (auto [old, result] : llvm::zip(fresh, call.getResults().take_front(fresh.size())))
    old.replaceAllUsesWith(result);
  for (auto [i, write] : llvm::enumerate(writes)) {
    View *view = given[write.operand]->view;
    Value value = call.getResult(first + i);
    if (!copies) {
      NodeOp moved;
      bool resized = write.argument->keywordOnly && node.getNumResults() == 1 &&
                     differInShape(view->type, node.getResult(0).getType());
      if (resized) {
        view->type = node.getResult(0).getType();
        moved = emit("_to_copy.default", view->type, {{"self", value}},
                     {builder.getNamedAttr("dtype", TypeAttr::get(getElementTypeOrSelf(view->type)))}, node);
      } else {
        Value old = read(view, call);
        builder.setInsertionPoint(node);
        moved = emit("copy.default", view->type, {{"self", old}, {"src", value}}, {}, node);
      }
      moved->setAttr(kComputedByAttr, node.getOpTypeAttr());
      value = moved.getResult(0);
    }
    store(view, value, call);
  }
}

/// Makes `value`, which `writer` computes, the newest of `view` and of its memory.
void Functionalizer::store(View *view, Value value, NodeOp writer) {
  Memory &memory = *view->memory;
  if (memory.version != view->version)
    read(view, writer);
  ++memory.version;
  memory.newest = view;
  memory.writer = writer;
  view->value = value;
  view->version = memory.version;
}

/// instance_norm without running statistics, and these moved towards the means, over the batch, of the statistics of
/// each instance, whose variance is that of a sample.
void Functionalizer::rewriteInstanceNorm(NodeOp node, ArrayRef<Write> writes, ArrayRef<Name *> given) {
  SmallVector<std::pair<StringRef, Value>> operands;
  auto argumentNames = cast<ArrayAttr>(node.getNodeAttr("arg_names")).getAsRange<StringAttr>();
  for (auto [name, value] : llvm::zip(argumentNames, node.getInputs()))
    if (!name.getValue().starts_with("running_"))
      operands.push_back({name.getValue(), value});
  NodeOp call =
      emit(node.getOpType(), node.getResult(0).getType(), operands, llvm::to_vector(node.getAttrs().getValue()), node);
  if (Attribute refused = node->getAttr(kRefusedAttr))
    call->setAttr(kRefusedAttr, refused);
  node.getResult(0).replaceAllUsesWith(call.getResult(0));

  const Type unknown = base::UnknownType::get(builder.getContext());
  auto list = [&](StringRef name, int64_t dim) {
    return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr({dim}));
  };
  const Value input = node.getInputs()[*findOperand(node, "input")];
  const Attribute momentum = node.getNodeAttr("momentum");
  for (const Write &write : writes) {
    View *view = given[write.operand]->view;
    Value running = read(view, call);
    builder.setInsertionPoint(node);
    const Type element = getElementTypeOrSelf(view->type);
    Value x = emit("flatten.using_ints", unknown, {{"self", input}},
                   {integer(builder, "start_dim", 2), integer(builder, "end_dim", -1)}, node)
                  .getResult(0);
    // Statistics may be of f32 beside an input of half precision.
    if (isa<FloatType>(element))
      x = emit("_to_copy.default", unknown, {{"self", x}}, {builder.getNamedAttr("dtype", TypeAttr::get(element))},
               node)
              .getResult(0);
    Value found =
        write.argument->name == "running_mean"
            ? emit("mean.dim", unknown, {{"self", x}}, {list("dim", 2)}, node).getResult(0)
            : emit("var.correction", unknown, {{"self", x}}, {list("dim", 2), integer(builder, "correction", 1)}, node)
                  .getResult(0);
    found = emit("mean.dim", unknown, {{"self", found}}, {list("dim", 0)}, node).getResult(0);
    Value moved = emit("lerp.Scalar", unknown, {{"self", running}, {"end", found}},
                       {builder.getNamedAttr("weight", momentum)}, node)
                      .getResult(0);
    store(view, emit("copy.default", view->type, {{"self", running}, {"src", moved}}, {}, node).getResult(0), call);
  }
}

//===--- the walk -------------------------------------------------------------------------------------------------===//

/// as_strided counts in the memory, whatever part and order of it its operand shows. `self.storage_offset` is where
/// that part begins.
View *Functionalizer::sourceOfAsStrided(NodeOp node, View *operand) {
  View *root = operand->memory->root;
  if (operand == root) {
    if (layoutOf(root).state != Layout::State::Contiguous)
      refuse(node, "of a tensor that is not known to lie row by row is not supported; call .contiguous() on it first");
    return operand;
  }
  bool whole = true; // the operand shows the memory from its beginning
  bool same = true;  // its elements are those of the memory, and no parts or conjugates of them
  for (View *place = operand; place->parent; place = place->parent) {
    whole &= place->kind == ViewKind::Identity || place->kind == ViewKind::Reshape || place->kind == ViewKind::Permute;
    same &= place->kind != ViewKind::Parts && place->kind != ViewKind::Whole && place->kind != ViewKind::Other;
  }
  Attribute own = node.getNodeAttr("self.storage_offset");
  // An argument may be a part of something larger where it was traced.
  if (same && (whole || own || node.getNodeAttr("storage_offset")) && !isa<BlockArgument>(operand->memory->origin) &&
      layoutOf(root).state == Layout::State::Contiguous) {
    NamedAttrList attrs(node.getAttrs());
    if (own && !attrs.get("storage_offset"))
      attrs.set("storage_offset", own);
    attrs.erase("self.storage_offset");
    attrs.erase("self.strided");
    node.setAttrsAttr(attrs.getDictionary(builder.getContext()));
    return root;
  }
  if (layoutOf(operand).state != Layout::State::Contiguous || (node.getNodeAttr("storage_offset") && !own))
    refuse(node, "of a view whose place in memory is not known is not supported; call .contiguous() on it first");
  return operand;
}

void Functionalizer::visitResults(NodeOp node, const Schema &schema, ArrayRef<Name *> given) {
  Aliasing alias = getAliasing(node, schema, [&](unsigned i) { return layoutOf(given[i]->view); });
  switch (alias.naming) {
  case Naming::Fresh:
    if (!alias.unless.empty()) {
      conditions.push_back({node, alias.operand, alias.unless});
      link(viewOf(node.getResult(0))->memory, given[alias.operand]->view->memory, "", &conditions.back());
    }
    return;
  case Naming::Same:
    nameOfValue[node.getResult(0)] = given[alias.operand];
    return;
  case Naming::View: {
    View *parent = given[alias.operand]->view;
    if (alias.kind == ViewKind::AsStrided) {
      parent = sourceOfAsStrided(node, parent);
      node->setOperand(alias.operand, read(parent, node));
    }
    SmallVector<View *, 2> made;
    for (unsigned i = 0; i < node.getNumResults(); ++i) {
      made.push_back(addView(parent, node, &schema, alias.kind, i, alias.operand));
      setName(node.getResult(i), made.back());
    }
    if (made.size() > 1 || alias.kind == ViewKind::Pieces || alias.kind == ViewKind::Unbind) {
      groups.push_back(made);
      for (View *view : made)
        view->group = groups.back();
    }
    return;
  }
  case Naming::Unsure:
    for (auto [i, result] : llvm::enumerate(node.getResults()))
      for (auto [k, name] : llvm::enumerate(given))
        if (k == i || node.getNumResults() != given.size())
          link(viewOf(result)->memory, name->view->memory,
               node.getOpType() + " copies or does not; write .clone() in its place");
    return;
  }
}

void Functionalizer::visitRegions(NodeOp node, ArrayRef<Name *> given) {
  // What the regions read of outside is brought up to date before them.
  for (Region &inner : node.getGraphs())
    inner.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!inner.isAncestor(operand.getParentRegion()))
          read(viewOf(operand), node);
    });
  Region *outside = region;
  for (Region &inner : node.getGraphs()) {
    region = &inner;
    SmallVector<View *> yielded = visitBlock(inner.front());
    // A branch may return what it was given.
    for (auto [view, result] : llvm::zip(yielded, node.getResults())) {
      std::string why = node.getOpType().str() + " may return a tensor that it was given; write .clone() in its place";
      if (view->memory->home != &inner)
        link(viewOf(result)->memory, view->memory, why);
      else if (isa<BlockArgument>(view->memory->origin))
        for (Name *name : given)
          link(viewOf(result)->memory, name->view->memory, why);
    }
  }
  region = outside;
}

const Schema *SchemaCache::find(NodeOp node) {
  auto [it, isNew] = found.try_emplace(node.getFullName(), nullptr);
  if (isNew && !node.getCallee()) {
    const CustomOperator *custom = findCustomOperator(customs, node);
    it->second = custom && custom->schema ? &*custom->schema : torch::findSchema(node.getDomain(), node.getOpType());
  }
  return it->second;
}

void Functionalizer::visitNode(NodeOp node) {
  at = node;
  SmallVector<Name *> given;
  for (Value operand : node.getInputs())
    given.push_back(nameOf(operand));
  for (auto [i, name] : llvm::enumerate(given))
    if (Value value = read(name->view, node); value != node.getInputs()[i])
      node.getInputsMutable().slice(i, 1).assign(value);
  if (!node.getGraphs().empty())
    return visitRegions(node, given);
  const Schema *schema = schemas.find(node);
  if (!schema) {
    // One of a list of tensors is the tensor itself.
    if (node.getOpType().ends_with("getitem"))
      if (auto index = dyn_cast_or_null<IntegerAttr>(node.getNodeAttr("b"));
          index && index.getInt() >= 0 && size_t(index.getInt()) < given.size() && node.getNumResults() == 1)
        nameOfValue[node.getResult(0)] = given[index.getInt()];
    return;
  }
  if (schemas.isCustom(*schema))
    visitCustom(node, *schema, given);
  else if (!visitWrites(node, *schema, given))
    visitResults(node, *schema, given);
}

/// Returns the places of what the terminator returns.
SmallVector<View *> Functionalizer::visitBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
    if (auto node = dyn_cast<NodeOp>(op))
      visitNode(node);
  Operation *terminator = block.getTerminator();
  at = terminator;
  SmallVector<View *> yielded;
  for (Value operand : terminator->getOperands())
    yielded.push_back(viewOf(operand));
  for (auto [i, view] : llvm::enumerate(yielded))
    terminator->setOperand(i, read(view, terminator));
  return yielded;
}

/// New values of arguments become results, those of parameters and buffers states.
void Functionalizer::returnWritten() {
  auto yield = cast<YieldOp>(function.getBody().front().getTerminator());
  at = yield;
  // What is written has the type of its memory: a call alone may have said none, a damaged archive another.
  SmallVector<Type> types = llvm::to_vector(yield.getOperandTypes());
  SmallVector<Attribute> attrs;
  if (ArrayAttr known = function.getResAttrsAttr())
    attrs.append(known.begin(), known.end());
  attrs.resize(types.size(), builder.getDictionaryAttr({}));
  for (size_t i = 0, n = memories.size(); i < n; ++i) {
    Memory &memory = memories[i];
    auto constant = memory.origin.getDefiningOp<ConstantOp>();
    if (memory.version == 0 || memory.home != &function.getBody() || (!constant && !isa<BlockArgument>(memory.origin)))
      continue;
    if (constant && constant->hasAttr(kFreshAttr) && !constant->hasAttr(kStateAttr))
      continue;
    Value value = read(memory.root, memory.writer);
    std::string name = nodeNameOf(memory.origin);
    if (constant) {
      auto state = constant->getAttrOfType<StringAttr>(kStateAttr);
      if (!state) {
        refuse(memory.writer, "writes \"" + name + "\", a constant of the model, which is not supported; export the " +
                                  "model in eval mode, or let it write a .clone() instead");
        continue;
      }
      if (auto sharer = constant->getAttrOfType<StringAttr>(kSharesAttr)) {
        refuse(memory.writer, "writes \"" + name + "\", which lies in the memory of \"" + sharer.getValue() +
                                  "\", which is not supported; give each memory of its own by .clone() before the "
                                  "model is exported, or make one a view of the other in forward");
        continue;
      }
      builder.setInsertionPoint(yield);
      NodeOp::create(builder, NameLoc::get(state), kOwnDomain, kWriteState, 1, TypeRange(), value,
                     builder.getNamedAttr(kStateParam, state));
      continue;
    }
    yield.getValuesMutable().append(value);
    types.push_back(value.getType());
    attrs.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(kNameAttr, builder.getStringAttr(name + ".updated"))));
  }
  if (llvm::equal(types, function.getResultTypes()))
    return;
  function.setFunctionTypeAttr(TypeAttr::get(builder.getFunctionType(function.getArgumentTypes(), types)));
  function.setResAttrsAttr(builder.getArrayAttr(attrs));
}

void Functionalizer::run() {
  bool wanted = false;
  function.walk([&](NodeOp node) {
    const Schema *schema = schemas.find(node);
    wanted |=
        schema && (schema->writes() || schema->name == "as_strided" || !findUnannotatedWrites(node, *schema).empty());
  });
  if (!wanted)
    return;
  region = &function.getBody();
  visitBlock(region->front());
  returnWritten();
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

namespace {

struct FunctionalizeGraphPass : public graph::impl::FunctionalizeGraphPassBase<FunctionalizeGraphPass> {
  using FunctionalizeGraphPassBase::FunctionalizeGraphPassBase;

  void runOnOperation() override {
    CustomOperators customs;
    for (const std::string &path : customOps)
      if (llvm::Error error = readCustomOperators(path, customs)) {
        getOperation().emitError() << llvm::toString(std::move(error));
        return signalPassFailure();
      }
    for (auto function : getOperation().getOps<FuncOp>()) {
      expandAutoFunctionalized(function, customs);
      Functionalizer(function, customs).run();
    }
  }
};

} // namespace
