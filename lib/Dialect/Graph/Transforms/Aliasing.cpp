//===- Aliasing.cpp - what a PyTorch operator's results name ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Aliasing.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::graph;
using State = Layout::State;

std::optional<unsigned> graph::findOperand(NodeOp node, StringRef name) {
  auto names = dyn_cast_or_null<ArrayAttr>(node.getNodeAttr("arg_names"));
  if (!names)
    return std::nullopt;
  for (auto [i, entry] : llvm::enumerate(names))
    if (auto text = dyn_cast<StringAttr>(entry); text && text.getValue() == name && i < node.getInputs().size())
      return unsigned(i);
  return std::nullopt;
}

std::optional<int64_t> graph::getIntArgument(NodeOp node, const torch::Schema &schema, StringRef name) {
  if (Attribute attr = node.getNodeAttr(name)) {
    auto integer = dyn_cast<IntegerAttr>(attr);
    return integer ? std::optional(integer.getInt()) : std::nullopt;
  }
  const torch::SchemaArgument *argument = schema.find(name);
  std::optional<torch::SchemaValue> value = argument ? argument->defaultValue() : std::nullopt;
  if (const int64_t *integer = value ? std::get_if<int64_t>(&*value) : nullptr)
    return *integer;
  return std::nullopt;
}

bool graph::getBoolArgument(NodeOp node, const torch::Schema &schema, StringRef name) {
  if (Attribute attr = node.getNodeAttr(name)) {
    auto flag = dyn_cast<IntegerAttr>(attr);
    return !flag || !flag.getValue().isZero();
  }
  const torch::SchemaArgument *argument = schema.find(name);
  std::optional<torch::SchemaValue> value = argument ? argument->defaultValue() : std::nullopt;
  const bool *flag = value ? std::get_if<bool>(&*value) : nullptr;
  return flag && *flag;
}

bool graph::hasArgument(NodeOp node, StringRef name) { return node.getNodeAttr(name) || findOperand(node, name); }

static RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }
static bool isComplex(Value value) { return isa<ComplexType>(getElementTypeOrSelf(value.getType())); }

ViewKind graph::getViewKind(NodeOp node, const torch::Schema &schema) {
  if (schema.name == "view" && schema.overload == "dtype")
    return ViewKind::Other;
  if (schema.name == "narrow" && schema.overload == "Tensor")
    return ViewKind::Other;
  // Of real numbers these are the identity, or move dims alone.
  bool conjugates =
      llvm::is_contained({"conj", "_conj", "real", "adjoint", "mH", "matrix_H", "imag", "_neg_view"}, schema.name) &&
      (node.getInputs().empty() || isComplex(node.getInputs()[0]));
  if (conjugates)
    return ViewKind::Other;
  return llvm::StringSwitch<ViewKind>(schema.name)
      .Cases({"alias", "detach", "positive", "resolve_conj", "resolve_neg", "data", "conj", "_conj", "real"},
             ViewKind::Identity)
      .Cases({"view", "reshape", "reshape_as", "view_as", "_unsafe_view", "_reshape_alias", "flatten", "unflatten"},
             ViewKind::Reshape)
      .Cases({"ravel", "squeeze", "unsqueeze", "atleast_1d", "atleast_2d", "atleast_3d"}, ViewKind::Reshape)
      .Cases({"transpose", "t", "permute", "movedim", "moveaxis", "swapaxes", "swapdims"}, ViewKind::Permute)
      .Cases({"adjoint", "mT", "mH", "numpy_T", "matrix_H"}, ViewKind::Permute)
      .Case("select", ViewKind::Select)
      .Case("slice", ViewKind::Slice)
      .Case("narrow", ViewKind::Narrow)
      .Cases({"diagonal", "linalg_diagonal"}, ViewKind::Diagonal)
      .Case("as_strided", ViewKind::AsStrided)
      .Cases({"split", "split_with_sizes", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit"}, ViewKind::Pieces)
      .Cases({"unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"}, ViewKind::Pieces)
      .Case("unbind", ViewKind::Unbind)
      .Cases({"expand", "expand_as", "broadcast_to"}, ViewKind::Expand)
      .Case("view_as_real", ViewKind::Parts)
      .Case("view_as_complex", ViewKind::Whole)
      .Default(ViewKind::Other);
}

/// Strides of a view of other sizes on the same elements, as PyTorch's computeStride finds them; nullopt if there are
/// none, so that a reshape copies.
static std::optional<SmallVector<int64_t>> stridesOf(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                                                     ArrayRef<int64_t> to) {
  auto count = [](ArrayRef<int64_t> of) {
    return std::accumulate(of.begin(), of.end(), int64_t(1), std::multiplies<>());
  };
  SmallVector<int64_t> result(to.size());
  if (count(sizes) == 0 || sizes.empty()) {
    int64_t stride = 1;
    for (size_t i = to.size(); i-- > 0; stride *= std::max<int64_t>(to[i], 1))
      result[i] = stride;
    return result;
  }
  int64_t viewDim = int64_t(to.size()) - 1, chunkBase = strides.back(), elements = 1, viewElements = 1;
  for (int64_t dim = int64_t(sizes.size()) - 1; dim >= 0; --dim) {
    elements *= sizes[dim];
    // The end of a run of dims that lie in memory as one.
    if (dim != 0 && (sizes[dim - 1] == 1 || strides[dim - 1] == elements * chunkBase))
      continue;
    while (viewDim >= 0 && (viewElements < elements || to[viewDim] == 1)) {
      result[viewDim] = viewElements * chunkBase;
      viewElements *= to[viewDim];
      --viewDim;
    }
    if (viewElements != elements)
      return std::nullopt;
    if (dim > 0) {
      chunkBase = strides[dim - 1];
      elements = viewElements = 1;
    }
  }
  return viewDim == -1 ? std::optional(result) : std::nullopt;
}

static Layout makeLayout(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  Layout layout;
  if (isRowMajor(sizes, strides))
    return layout;
  layout.state = State::Strided;
  layout.sizes.assign(sizes.begin(), sizes.end());
  layout.strides.assign(strides.begin(), strides.end());
  return layout;
}

Layout graph::unknownLayout() {
  Layout unknown;
  unknown.state = State::Unknown;
  return unknown;
}

std::optional<Layout> graph::getGivenLayout(Value value) {
  auto result = dyn_cast<OpResult>(value);
  auto all = result ? result.getOwner()->getAttrOfType<ArrayAttr>(kLayoutsAttr) : ArrayAttr();
  if (!all || result.getResultNumber() >= all.size())
    return std::nullopt;
  if (isa<StringAttr>(all[result.getResultNumber()]))
    return unknownLayout();
  auto pair = dyn_cast<ArrayAttr>(all[result.getResultNumber()]);
  if (!pair || pair.size() != 2)
    return Layout();
  auto sizes = dyn_cast<DenseI64ArrayAttr>(pair[0]), strides = dyn_cast<DenseI64ArrayAttr>(pair[1]);
  if (!sizes || !strides || sizes.size() != strides.size())
    return std::nullopt;
  return makeLayout(sizes.asArrayRef(), strides.asArrayRef());
}

/// Sizes of an example that the front end gave, or static ones.
static std::optional<SmallVector<int64_t>> exampleSizes(Value value) {
  auto result = dyn_cast<OpResult>(value);
  auto all = result ? result.getOwner()->getAttrOfType<ArrayAttr>(kLayoutsAttr) : ArrayAttr();
  if (all && result.getResultNumber() < all.size())
    if (auto pair = dyn_cast<ArrayAttr>(all[result.getResultNumber()]); pair && pair.size() == 2)
      if (auto sizes = dyn_cast<DenseI64ArrayAttr>(pair[0]))
        return SmallVector<int64_t>(sizes.asArrayRef());
  if (RankedTensorType type = typeOf(value); type && type.hasStaticShape())
    return SmallVector<int64_t>(type.getShape());
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> graph::getPermutation(NodeOp node, const torch::Schema &schema, int64_t rank) {
  auto normal = [&](std::optional<int64_t> dim) -> int64_t {
    return !dim || *dim < -rank || *dim >= rank ? -1 : *dim < 0 ? *dim + rank : *dim;
  };
  SmallVector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  auto swap = [&](StringRef first, StringRef second) -> std::optional<SmallVector<int64_t>> {
    int64_t a = normal(getIntArgument(node, schema, first)), b = normal(getIntArgument(node, schema, second));
    if (a < 0 || b < 0)
      return std::nullopt;
    std::swap(order[a], order[b]);
    return order;
  };
  if (rank == 0)
    return order;
  if (schema.name == "t" || schema.name == "numpy_T")
    return SmallVector<int64_t>(order.rbegin(), order.rend());
  if (llvm::is_contained({"adjoint", "mT", "mH", "matrix_H"}, schema.name)) {
    if (rank >= 2)
      std::swap(order[rank - 1], order[rank - 2]);
    return order;
  }
  if (schema.name == "transpose" || schema.name == "swapdims")
    return swap("dim0", "dim1");
  if (schema.name == "swapaxes")
    return swap("axis0", "axis1");
  auto list = [&](StringRef name) {
    SmallVector<int64_t> dims;
    Attribute attr = node.getNodeAttr(name);
    if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(attr))
      dims.append(dense.asArrayRef().begin(), dense.asArrayRef().end());
    else if (auto single = dyn_cast_or_null<IntegerAttr>(attr))
      dims.push_back(single.getInt());
    for (int64_t &dim : dims)
      dim = normal(dim);
    return dims;
  };
  if (schema.name == "permute") {
    order = list("dims");
  } else {
    SmallVector<int64_t> source = list("source"), target = list("destination");
    if (source.size() != target.size() || llvm::is_contained(source, -1) || llvm::is_contained(target, -1))
      return std::nullopt;
    SmallVector<int64_t> rest;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!llvm::is_contained(source, dim))
        rest.push_back(dim);
    order.assign(rank, -1);
    for (auto [from, to] : llvm::zip(source, target))
      order[to] = from;
    size_t next = 0;
    for (int64_t &dim : order)
      if (dim < 0 && next < rest.size())
        dim = rest[next++];
  }
  SmallVector<int64_t> sorted = order;
  llvm::sort(sorted);
  for (int64_t i = 0; i < rank; ++i)
    if (int64_t(sorted.size()) != rank || sorted[i] != i)
      return std::nullopt;
  return order;
}

std::optional<int64_t> graph::getPartDim(NodeOp node, const torch::Schema &schema, int64_t rank) {
  std::optional<int64_t> dim = llvm::StringSwitch<std::optional<int64_t>>(schema.name)
                                   .Case("hsplit", rank == 1 ? 0 : 1)
                                   .Case("vsplit", 0)
                                   .Case("dsplit", 2)
                                   .Default(std::nullopt);
  if (!dim)
    dim = getIntArgument(node, schema, "dim");
  if (!dim || *dim < -rank || *dim >= rank)
    return std::nullopt;
  return *dim < 0 ? *dim + rank : *dim;
}

namespace {
/// Steps of one size in memory, of which a sum takes from `least` to `most`.
struct Steps {
  int64_t stride, least, most;
};
} // namespace

/// Adds the dims of an as_strided view, forwards or backwards. False if they are not constant.
static bool addSteps(NodeOp node, bool isForwards, SmallVectorImpl<Steps> &steps) {
  constexpr int64_t kMost = int64_t(1) << 40;
  auto sizes = dyn_cast_or_null<DenseI64ArrayAttr>(node.getNodeAttr("size"));
  auto strides = dyn_cast_or_null<DenseI64ArrayAttr>(node.getNodeAttr("stride"));
  if (!sizes || !strides || sizes.size() != strides.size() || sizes.size() > 64)
    return false;
  for (auto [size, stride] : llvm::zip(sizes.asArrayRef(), strides.asArrayRef())) {
    if (size < 1 || stride < 0 || size > kMost || stride > kMost / size)
      return false;
    if (stride > 0 && size > 1)
      steps.push_back({stride, isForwards ? 0 : 1 - size, isForwards ? size - 1 : 0});
  }
  return true;
}

/// Whether steps may add up to `distance`; yes where that takes too long to say. Longest strides first.
static bool mayReach(int64_t distance, ArrayRef<Steps> steps, int64_t &budget) {
  if (steps.empty() || --budget < 0)
    return distance == 0 || budget < 0;
  int64_t least = 0, most = 0;
  for (const Steps &shorter : steps.drop_front()) {
    least += shorter.least * shorter.stride;
    most += shorter.most * shorter.stride;
  }
  const Steps &longest = steps.front();
  int64_t first = std::max(longest.least, llvm::divideCeilSigned(distance - most, longest.stride)),
          last = std::min(longest.most, llvm::divideFloorSigned(distance - least, longest.stride));
  for (int64_t count = first; count <= last; ++count)
    if (mayReach(distance - count * longest.stride, steps.drop_front(), budget))
      return true;
  return false;
}

/// Whether two as_strided views of one tensor have no element in common.
static bool areStridedApart(NodeOp a, NodeOp b) {
  auto from = dyn_cast_or_null<IntegerAttr>(a.getNodeAttr("storage_offset"));
  auto to = dyn_cast_or_null<IntegerAttr>(b.getNodeAttr("storage_offset"));
  constexpr int64_t kMost = int64_t(1) << 40;
  SmallVector<Steps> steps;
  if (!from || !to || !addSteps(a, true, steps) || !addSteps(b, false, steps) || from.getInt() < 0 || to.getInt() < 0 ||
      from.getInt() > kMost || to.getInt() > kMost)
    return false;
  llvm::stable_sort(steps, [](const Steps &x, const Steps &y) { return x.stride > y.stride; });
  int64_t budget = 10'000;
  return !mayReach(to.getInt() - from.getInt(), steps, budget);
}

bool graph::haveDisjointParts(NodeOp a, const torch::Schema &schemaOfA, NodeOp b, const torch::Schema &schemaOfB,
                              ViewKind kind, Type parent) {
  using Extent = std::optional<std::pair<int64_t, int64_t>>;
  auto areApart = [](Extent x, Extent y) { return x && y && (x->second <= y->first || y->second <= x->first); };
  if (kind == ViewKind::AsStrided)
    return areStridedApart(a, b);
  auto type = dyn_cast<RankedTensorType>(parent);
  std::optional<int64_t> dim = type ? getPartDim(a, schemaOfA, type.getRank()) : std::nullopt;
  if ((kind != ViewKind::Select && kind != ViewKind::Slice) || !dim || dim != getPartDim(b, schemaOfB, type.getRank()))
    return false;
  // Numbers from the end stand for others where the size is known.
  auto normal = [&](std::optional<int64_t> at) {
    return at && *at < 0 && !type.isDynamicDim(*dim) ? std::optional(*at + type.getDimSize(*dim)) : at;
  };
  auto extent = [&](NodeOp node, const torch::Schema &schema) -> Extent {
    const bool isSelect = kind == ViewKind::Select;
    std::optional<int64_t> first = normal(getIntArgument(node, schema, isSelect ? "index" : "start")),
                           last = isSelect ? first : normal(getIntArgument(node, schema, "end"));
    if (!first || !last || *first < 0 || *last < 0)
      return std::nullopt;
    return std::pair(*first, *last + isSelect);
  };
  return areApart(extent(a, schemaOfA), extent(b, schemaOfB));
}

Layout graph::getViewLayout(NodeOp node, const torch::Schema &schema, ViewKind kind, unsigned result,
                            const Layout &parent) {
  const Layout unknown = unknownLayout();
  Value source = node.getInputs()[0], value = node.getResult(result);
  RankedTensorType type = typeOf(source);
  if (kind == ViewKind::Identity)
    return parent;
  if (kind == ViewKind::Reshape && parent.state == State::Contiguous)
    return parent;
  if (kind == ViewKind::AsStrided) {
    auto sizes = dyn_cast_or_null<DenseI64ArrayAttr>(node.getNodeAttr("size"));
    auto strides = dyn_cast_or_null<DenseI64ArrayAttr>(node.getNodeAttr("stride"));
    return sizes && strides && sizes.size() == strides.size() ? makeLayout(sizes.asArrayRef(), strides.asArrayRef())
                                                              : unknown;
  }
  if (!type || parent.state == State::Unknown)
    return unknown;
  // Parts of the first dim of a contiguous tensor are contiguous.
  const int64_t rank = type.getRank();
  std::optional<int64_t> dim;
  if (kind == ViewKind::Select || kind == ViewKind::Slice || kind == ViewKind::Narrow || kind == ViewKind::Pieces ||
      kind == ViewKind::Unbind)
    dim = getPartDim(node, schema, rank);
  std::optional<int64_t> step =
      kind == ViewKind::Slice ? getIntArgument(node, schema, "step") : std::optional<int64_t>(1);
  if (dim && *dim == 0 && step == 1 && parent.state == State::Contiguous)
    return parent;
  std::optional<SmallVector<int64_t>> to = exampleSizes(value);
  SmallVector<int64_t> sizes = parent.sizes, strides = parent.strides;
  if (parent.state == State::Contiguous) {
    std::optional<SmallVector<int64_t>> known = exampleSizes(source);
    if (!known)
      return unknown;
    sizes = *known;
    strides.assign(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;)
      strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  }
  if (!to || int64_t(sizes.size()) != rank)
    return unknown;
  switch (kind) {
  case ViewKind::Reshape:
    if (auto known = stridesOf(sizes, strides, *to))
      return makeLayout(*to, *known);
    return unknown;
  case ViewKind::Permute:
    if (auto order = getPermutation(node, schema, rank)) {
      SmallVector<int64_t> moved;
      for (int64_t from : *order)
        moved.push_back(strides[from]);
      return makeLayout(*to, moved);
    }
    return unknown;
  case ViewKind::Select:
  case ViewKind::Unbind:
    if (!dim)
      return unknown;
    strides.erase(strides.begin() + *dim);
    return makeLayout(*to, strides);
  case ViewKind::Slice:
  case ViewKind::Narrow:
  case ViewKind::Pieces:
    if (!dim || !step)
      return unknown;
    strides[*dim] *= *step;
    return makeLayout(*to, strides);
  case ViewKind::Expand: {
    SmallVector<int64_t> expanded(to->size(), 0);
    for (size_t i = 0; i < sizes.size() && i < to->size(); ++i)
      if (size_t at = to->size() - 1 - i; sizes[rank - 1 - i] == (*to)[at])
        expanded[at] = strides[rank - 1 - i];
    return makeLayout(*to, expanded);
  }
  default:
    return unknown;
  }
}

/// Whether a view of sizes `to`, of which those of `type` that are not static may hold any of `ones` as a factor, shows
/// a tensor without copying once these are 1. Yes where that can't be told.
static bool mayBeView(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, SmallVector<int64_t> to,
                      RankedTensorType type, ArrayRef<int64_t> ones) {
  if (ones.empty())
    return stridesOf(sizes, strides, to).has_value();
  bool found = false;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim) && to[dim] % ones.front() == 0) {
      found = true;
      SmallVector<int64_t> divided = to;
      divided[dim] /= ones.front();
      if (mayBeView(sizes, strides, std::move(divided), type, ones.drop_front()))
        return true;
    }
  return !found;
}

/// The least sets of dims of a strided tensor for which `isName(sizes, strides, sizes that are 1 now)` holds once they
/// are 1. PyTorch does not ask how far apart the elements of a dim of size 1 lie.
static SmallVector<SmallVector<int64_t, 2>, 0>
findOnes(RankedTensorType type, const Layout &layout,
         llvm::function_ref<bool(ArrayRef<int64_t>, ArrayRef<int64_t>, ArrayRef<int64_t>)> isName) {
  SmallVector<SmallVector<int64_t, 2>, 0> result;
  SmallVector<int64_t> open;
  if (type && type.getRank() == int64_t(layout.sizes.size()))
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim) && layout.sizes[dim] > 0)
        open.push_back(dim);
  constexpr size_t kMost = 8;
  if (open.size() > kMost) {
    for (int64_t dim : open)
      result.push_back({dim});
    return result;
  }
  // What lies outside of such a dim comes closer, unless the dim is a part of one that stays as long as it is.
  auto isNameFor = [&](unsigned ones, unsigned closer) {
    SmallVector<int64_t> sizes = layout.sizes, strides = layout.strides, gone;
    for (auto [bit, dim] : llvm::enumerate(open)) {
      if (!(ones >> bit & 1))
        continue;
      gone.push_back(layout.sizes[dim]);
      sizes[dim] = 1;
      if (closer >> bit & 1)
        for (int64_t &stride : strides)
          if (stride > strides[dim] && stride % layout.sizes[dim] == 0)
            stride /= layout.sizes[dim];
    }
    return isName(sizes, strides, gone);
  };
  SmallVector<unsigned> sets, least;
  for (unsigned ones = 1; ones < 1u << open.size(); ++ones)
    sets.push_back(ones);
  llvm::stable_sort(sets, [](unsigned a, unsigned b) { return llvm::popcount(a) < llvm::popcount(b); });
  for (unsigned ones : sets) {
    if (llvm::any_of(least, [&](unsigned smaller) { return (smaller & ones) == smaller; }))
      continue;
    bool holds = isNameFor(ones, 0);
    for (unsigned closer = ones; closer && !holds; closer = (closer - 1) & ones)
      holds = isNameFor(ones, closer);
    if (!holds)
      continue;
    least.push_back(ones);
    for (auto [bit, dim] : llvm::enumerate(open))
      if (ones >> bit & 1) {
        if (llvm::isPowerOf2_32(ones & ((2u << bit) - 1)))
          result.emplace_back();
        result.back().push_back(dim);
      }
  }
  return result;
}

/// Where PyTorch returns its operand, or a view of it, without its signature's saying so.
static std::optional<Aliasing> unannotated(NodeOp node, const torch::Schema &schema) {
  auto is = [&](ArrayRef<StringRef> names) { return llvm::is_contained(names, schema.name); };
  if (is({"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})) {
    auto p = dyn_cast_or_null<FloatAttr>(node.getNodeAttr("p"));
    bool drops = getBoolArgument(node, schema, "train") && !(p && p.getValueAsDouble() == 0);
    return Aliasing{drops ? Naming::Fresh : Naming::Same, ViewKind::Identity, 0};
  }
  if (is({"atleast_1d", "atleast_2d", "atleast_3d", "_unsafe_view", "unsafe_split", "unsafe_chunk",
          "unsafe_split_with_sizes"}) &&
      node.getInputs().size() == 1)
    return Aliasing{Naming::View, getViewKind(node, schema), 0};
  if (is({"type_as"}) || schema.name.starts_with("_cast_")) {
    bool same = node.getNumResults() == 1 && getElementTypeOrSelf(node.getInputs()[0].getType()) ==
                                                 getElementTypeOrSelf(node.getResult(0).getType());
    return Aliasing{same ? Naming::Same : Naming::Fresh, ViewKind::Identity, 0};
  }
  if (is({"sum_to_size", "to_dense"})) {
    RankedTensorType from = typeOf(node.getInputs()[0]), to = typeOf(node.getResult(0));
    bool known = from && to && from.hasStaticShape() && to.hasStaticShape();
    return Aliasing{!known ? Naming::Unsure : from == to ? Naming::Same : Naming::Fresh, ViewKind::Identity, 0};
  }
  // Of one tensor it moves dims, unless it sums some.
  if (is({"einsum"}) && node.getInputs().size() == 1)
    return Aliasing{Naming::Unsure, ViewKind::Other, 0};
  if (is({"broadcast_tensors", "meshgrid", "atleast_1d", "atleast_2d", "atleast_3d"}))
    return Aliasing{Naming::Unsure, ViewKind::Other, 0};
  return std::nullopt;
}

Aliasing graph::getAliasing(NodeOp node, const torch::Schema &schema, llvm::function_ref<Layout(unsigned)> layout) {
  if (node.getInputs().empty() || node.getNumResults() == 0)
    return {};
  // It stands for a tensor that is made anew in each call.
  if (schema.name == "lift_fresh")
    return {};
  if (std::optional<Aliasing> known = unannotated(node, schema))
    return *known;
  const torch::SchemaArgument *source = nullptr;
  for (const torch::SchemaArgument &result : schema.results)
    if (const torch::SchemaType *alias = result.type.findAlias())
      for (const torch::SchemaArgument &argument : schema.arguments)
        if (const torch::SchemaType *of = argument.type.findAlias(); of && of->aliasSet == alias->aliasSet)
          source = &argument;
  std::optional<unsigned> operand = source ? findOperand(node, source->name) : std::nullopt;
  if (!operand)
    return {};
  Aliasing view{Naming::View, getViewKind(node, schema), *operand};
  auto identity = [&](Naming naming) { return Aliasing{naming, ViewKind::Identity, *operand}; };
  // A new tensor where it is not one already, as the signatures of TorchScript's own say.
  if (schema.name == "contiguous" || schema.name == "to" || schema.text.ends_with("|a)")) {
    Value from = node.getInputs()[*operand], to = node.getResult(0);
    if (getElementTypeOrSelf(from.getType()) != getElementTypeOrSelf(to.getType()))
      return {};
    if (schema.name != "contiguous" && getBoolArgument(node, schema, "copy"))
      return {};
    // Another format copies, and which one it is front ends do not keep: what lies as before may be the operand.
    if (hasArgument(node, "memory_format"))
      return identity(Naming::Unsure);
    if (schema.name != "contiguous")
      return identity(Naming::Same);
    Layout known = layout(*operand);
    if (known.state != State::Strided)
      return identity(known.state == State::Contiguous ? Naming::Same : Naming::Unsure);
    Aliasing copy = identity(Naming::Fresh);
    copy.unless = findOnes(typeOf(node.getInputs()[*operand]), known,
                           [](ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, ArrayRef<int64_t>) {
                             return isRowMajor(sizes, strides);
                           });
    return copy;
  }
  if (schema.name == "reshape" || schema.name == "reshape_as" || schema.name == "flatten" || schema.name == "ravel") {
    Layout known = layout(*operand);
    if (known.state == State::Contiguous)
      return view;
    std::optional<SmallVector<int64_t>> to = exampleSizes(node.getResult(0));
    if (known.state == State::Unknown || !to)
      return {Naming::Unsure, ViewKind::Reshape, *operand};
    if (stridesOf(known.sizes, known.strides, *to))
      return view;
    RankedTensorType type = typeOf(node.getResult(0));
    Aliasing copy{Naming::Fresh, ViewKind::Reshape, *operand};
    copy.unless =
        findOnes(typeOf(node.getInputs()[*operand]), known,
                 [&](ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, ArrayRef<int64_t> ones) {
                   return !type || type.getRank() != int64_t(to->size()) || mayBeView(sizes, strides, *to, type, ones);
                 });
    return copy;
  }
  return view;
}
