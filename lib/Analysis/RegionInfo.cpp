//===- RegionInfo.cpp - what a fused region does ------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/RegionInfo.h"

#include "tc/Analysis/Access.h"
#include "tc/Analysis/Reduction.h"

#include <set>

using namespace mlir;
using namespace tc;
using prim::getRole;
using prim::getSpace;
using prim::kUnknown;
using prim::Role;
using prim::Space;

StringRef tc::stringify(AccessClass access) {
  switch (access) {
  case AccessClass::Scalar:
    return "scalar";
  case AccessClass::Row:
    return "row";
  case AccessClass::Column:
    return "column";
  case AccessClass::Full:
    return "full";
  case AccessClass::Broadcast:
    return "broadcast";
  case AccessClass::Permuted:
    return "permuted";
  case AccessClass::Moved:
    return "moved";
  case AccessClass::Gathered:
    return "gathered";
  case AccessClass::AnchorOperand:
    return "operand";
  }
  return "";
}

namespace {
int64_t elementBytes(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return element.isIntOrFloat() ? std::max<int64_t>(1, (element.getIntOrFloatBitWidth() + 7) / 8) : 8;
}
} // namespace

AffineExpr tc::getBytes(Type type) {
  return prim::simplifySize(prim::product(type.getContext(), prim::getSizes(type)) * elementBytes(type));
}

AffineExpr tc::getFlops(Operation *op) {
  if (auto primitive = dyn_cast<prim::CostOpInterface>(op))
    return primitive.getFlops();
  return getAffineConstantExpr(0, op->getContext());
}

namespace {
class Reader {
public:
  Reader(RegionInfo &info, kernel::RegionOp region) : info(info) {
    for (BlockArgument argument : region.getBody().getArguments())
      info.inputs.push_back({argument, AccessClass::Scalar, getAffineConstantExpr(0, region.getContext())});
    for (AffineExpr size : info.space)
      if (prim::getConstantSize(size) != std::optional<int64_t>(1))
        space.push_back(size);
  }

  void read(Operation *op) {
    Role role = getRole(op);
    if (isa<kernel::YieldOp>(op)) {
      for (Value value : op->getOperands())
        trace(value, identityMap(value), value, nullptr, false);
      return;
    }
    bool inSpace = role == Role::Pointwise && getSpace(op->getResult(0)) == ArrayRef(space);
    bool inRows = role == Role::Pointwise && info.hasRowReduction && getSpace(op->getResult(0)) == rows() && !inSpace;
    if (op == info.anchor) {
      for (Value operand : op->getOperands())
        trace(operand, DimMap(cast<RankedTensorType>(operand.getType()).getRank(), kUnknown), op->getResult(0), nullptr,
              true);
    } else if (role == Role::Reduce) {
      trace(op->getOperand(0), identityMap(op->getOperand(0)), op->getOperand(0), nullptr, false);
    } else if (inSpace || inRows) {
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        trace(operand, mapOperand(op, i, identityMap(op->getResult(0))), op->getResult(0), nullptr, false);
    }
  }

private:
  Space rows() const {
    Space result;
    for (AffineExpr size : ArrayRef(info.space).take_front(info.rowRank))
      if (prim::getConstantSize(size) != std::optional<int64_t>(1))
        result.push_back(size);
    return result;
  }

  // `through`: the last movement op passed that takes a part or unknown positions of its operand.
  void trace(Value value, const DimMap &map, Value at, Operation *through, bool anchorOperand) {
    if (!seen.insert({value.getAsOpaquePointer(), std::vector<int>(map.begin(), map.end()), through, anchorOperand})
             .second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      RegionInput &input = info.inputs[argument.getArgNumber()];
      input.access = std::max(input.access, classify(value, map, at, through, anchorOperand));
      AffineExpr whole = getBytes(value.getType()), bytes = whole;
      if (through && prim::getAccess(through) >= prim::Access::Part && through->getOperand(0) == value)
        bytes = getBytes(through->getResult(0).getType());
      auto most = prim::getConstantSize(whole), now = prim::getConstantSize(bytes),
           before = prim::getConstantSize(input.bytes);
      if (now && before)
        input.bytes = getAffineConstantExpr(std::min(*now + *before, most.value_or(INT64_MAX)), whole.getContext());
      else
        input.bytes = before && *before == 0 ? bytes : whole;
      return;
    }
    Operation *op = value.getDefiningOp();
    Role role = getRole(op);
    bool outside = role == Role::Pointwise && getSpace(op->getResult(0)) != ArrayRef(space) &&
                   !(info.hasRowReduction && getSpace(op->getResult(0)) == rows());
    if (role != Role::Movement && !outside)
      return;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Operation *next = through;
      // The data operand of a gather is read at positions that are data; its indices are not.
      if (role == Role::Movement && cast<prim::FusionOpInterface>(op).getAccess(i) != prim::Access::Aligned)
        next = op;
      trace(operand, mapOperand(op, i, map), at, next, anchorOperand);
    }
  }

  AccessClass classify(Value value, const DimMap &map, Value at, Operation *through, bool anchorOperand) {
    if (getSpace(value).empty())
      return AccessClass::Scalar;
    if (anchorOperand)
      return AccessClass::AnchorOperand;
    if (through && prim::getAccess(through) >= prim::Access::PartAtData)
      return AccessClass::Gathered;
    if (through || llvm::is_contained(map, int(kUnknown)))
      return AccessClass::Moved;
    unsigned rank = getSpace(at).size();
    if (std::optional<unsigned> aligned = alignedRank(value, map, at))
      return *aligned == rank ? (getSpace(at).size() < space.size() ? AccessClass::Row : AccessClass::Full)
                              : AccessClass::Row;
    int last = -1;
    unsigned count = 0;
    bool suffix = true;
    SmallVector<AffineExpr> outer = prim::getSizes(at);
    for (int dim : map) {
      if (dim < 0)
        continue;
      if (dim <= last)
        return AccessClass::Permuted;
      for (int between = last + 1; count && between < dim; ++between)
        suffix &= prim::getConstantSize(outer[between]) == std::optional<int64_t>(1);
      last = dim;
      ++count;
    }
    for (size_t rest = last + 1; rest < outer.size(); ++rest)
      suffix &= prim::getConstantSize(outer[rest]) == std::optional<int64_t>(1);
    return suffix ? AccessClass::Column : AccessClass::Broadcast;
  }

  RegionInfo &info;
  Space space;
  std::set<std::tuple<void *, std::vector<int>, Operation *, bool>> seen;
};
} // namespace

RegionInfo RegionInfo::get(kernel::RegionOp region) {
  RegionInfo info;
  MLIRContext *context = region.getContext();
  Block &body = region.getBody().front();
  info.flops = info.bytes = getAffineConstantExpr(0, context);
  Operation *rowReduce = nullptr, *otherReduce = nullptr;
  for (Operation &op : body.without_terminator()) {
    ++info.ops;
    info.flops = info.flops + getFlops(&op);
    Role role = getRole(&op);
    if (!info.anchor && (role == Role::Contraction || role == Role::Window || role == Role::Alone))
      info.anchor = &op;
    if (role == Role::Reduce)
      (getRowRank(&op) ? rowReduce : otherReduce) = &op;
  }
  if (!info.anchor && !rowReduce)
    info.anchor = otherReduce;
  Value output = body.getTerminator()->getNumOperands() ? body.getTerminator()->getOperand(0) : Value();
  if (info.anchor)
    info.space = prim::getSizes(info.anchor->getResult(0));
  else if (rowReduce)
    info.space = prim::getSizes(rowReduce->getOperand(0));
  else if (output)
    info.space = prim::getSizes(output);
  info.rowRank = info.space.size();
  if (!info.anchor && rowReduce) {
    info.hasRowReduction = true;
    // The first reduced dim that is not of size 1 ends the rows.
    const SmallVector<int64_t> dims = cast<prim::FusionOpInterface>(rowReduce).getReducedDims();
    for (auto [i, size] : llvm::enumerate(info.space))
      if (llvm::is_contained(dims, int64_t(i)) && prim::getConstantSize(size) != std::optional<int64_t>(1)) {
        info.rowRank = i;
        break;
      }
  }
  Reader reader(info, region);
  for (Operation &op : body)
    reader.read(&op);
  for (const RegionInput &input : info.inputs)
    info.bytes = info.bytes + input.bytes;
  for (Value value : body.getTerminator()->getOperands())
    info.bytes = info.bytes + getBytes(value.getType());
  info.flops = prim::simplifySize(info.flops);
  info.bytes = prim::simplifySize(info.bytes);
  return info;
}
