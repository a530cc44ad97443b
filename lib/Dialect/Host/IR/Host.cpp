//===- Host.cpp - the host dialect --------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Host/IR/Host.h"

#include "tc/Dialect/Machine/IR/Condition.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/NodeNames.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::host;

#include "tc/Dialect/Host/IR/HostDialect.cpp.inc"
#include "tc/Dialect/Host/IR/HostEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Host/IR/HostAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Host/IR/HostOps.cpp.inc"

void HostDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tc/Dialect/Host/IR/HostOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tc/Dialect/Host/IR/HostAttrs.cpp.inc"
      >();
}

/// Whether `next` directly follows `launch` in its group.
static bool isJoined(LaunchOp launch, Operation *next) {
  auto other = dyn_cast_or_null<LaunchOp>(next);
  return other && launch.getGroup() && launch.getGroup() == other.getGroup();
}

bool LaunchOp::joinsPrevious() { return isJoined(*this, (*this)->getPrevNode()); }

SmallVector<LaunchOp> tc::host::getGroupMembers(LaunchOp launch) {
  LaunchOp first = launch;
  while (first.joinsPrevious())
    first = cast<LaunchOp>(first->getPrevNode());
  SmallVector<LaunchOp> members{first};
  while (isJoined(members.back(), members.back()->getNextNode()))
    members.push_back(cast<LaunchOp>(members.back()->getNextNode()));
  return members;
}

Value LaunchOp::getTiedInput(unsigned output) {
  const ArrayRef<int64_t> pairs = getTied().value_or(ArrayRef<int64_t>());
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (pairs[i + 1] == int64_t(output))
      return getInputs()[pairs[i]];
  return {};
}

bool tc::host::choosesBySizes(Operation *op) { return isa<ChooseOp>(op) || (isa<prim::IfOp>(op) && prim::getWhen(op)); }

int64_t tc::host::countLaunches(Block &block) {
  int64_t count = 0;
  for (Operation &op : block) {
    count += isa<LaunchOp>(op);
    int64_t most = 0, all = 0;
    for (Region &region : op.getRegions())
      for (Block &inner : region) {
        const int64_t launches = countLaunches(inner);
        most = std::max(most, launches);
        all += launches;
      }
    count += choosesBySizes(&op) ? most : all;
  }
  return count;
}

Value tc::host::getMemorySource(Value value) {
  for (;;) {
    value = prim::getViewSource(value);
    auto launch = value.getDefiningOp<LaunchOp>();
    const Value tied = launch ? launch.getTiedInput(cast<OpResult>(value).getResultNumber()) : Value();
    if (!tied)
      return value;
    value = tied;
  }
}

LogicalResult LaunchOp::verify() {
  const ArrayRef<int64_t> pairs = getTied().value_or(ArrayRef<int64_t>());
  for (size_t i = 0; i < pairs.size(); i += 2) // C5
    if (i + 1 == pairs.size() || uint64_t(pairs[i]) >= getInputs().size() ||
        uint64_t(pairs[i + 1]) >= getOutputs().size() || !getInputs()[pairs[i]].getDefiningOp<LaunchOp>() ||
        getInputs()[pairs[i]].getType() != getOutputs()[pairs[i + 1]].getType())
      return emitOpError("ties an output to what is no result of a launch of the same type");
  if (getSteps() && getDeviceAttr()) // C3
    return emitOpError("of a device has steps; launches in steps are of the CPU");
  if (getSteps() && getSteps()->getNumResults() != 1) // C3
    return emitOpError("needs one size for its steps");
  if (!getGroup())
    return success();
  if (getDeviceAttr()) // C1
    return emitOpError("of a device is part of a group; groups are of CPU launches");
  // The members run at the same time: none reads what another writes (C2).
  SmallVector<LaunchOp> members = getGroupMembers(*this);
  for (Value input : getInputs())
    if (llvm::is_contained(members, prim::getViewSource(input).getDefiningOp()))
      return emitOpError("reads what a launch of its group computes");
  if (members.front().getStepsAttr() != getStepsAttr()) // C4
    return emitOpError("has other steps than its group");
  return success();
}

static LogicalResult verifyMachines(Operation *op, ArrayAttr machines) {
  if (machines.empty()) // C2
    return op->emitOpError("needs a machine");
  const machine::DeviceKind device = cast<machine::MachineAttr>(machines[0]).getDevice();
  for (auto machine : machines.getAsRange<machine::MachineAttr>())
    if (machine.getDevice() != device) // C2
      return op->emitOpError("is for machines of several devices");
  if (machines.size() > 1 && device == machine::DeviceKind::Cpu) // C1
    return op->emitOpError("is for several CPUs; each has a variant of its own");
  return success();
}

LogicalResult VariantOp::verify() { return verifyMachines(*this, getMachines()); }

LogicalResult BinaryOp::verify() { return verifyMachines(*this, getMachines()); }

LogicalResult GuardAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, IntegerSetAttr sizes,
                                machine::MachineAttr machine) {
  return machine::verifyCondition(emitError, "guard", sizes, machine);
}

LogicalResult ChooseOp::verify() {
  if (getCases().empty() || getGuards().size() + 1 != getCases().size()) // C1
    return emitOpError("needs a guard for each region but the last");
  for (Region &region : getCases()) { // C2
    auto yield = dyn_cast<YieldOp>(region.front().getTerminator());
    if (!yield || yield.getValues().getTypes() != getResultTypes())
      return emitOpError("has a region that yields other types than the results'");
    llvm::SmallDenseSet<Value> seen;
    for (Value value : yield.getValues())
      if (!isa_and_nonnull<LaunchOp>(value.getDefiningOp()) || value.getParentRegion() != &region ||
          !seen.insert(value).second)
        return emitOpError("has a region that yields what is not a launch's in it, or yields it twice");
  }
  return success();
}

unsigned tc::host::getElementBits(Type elementType) { return base::getPackedBitWidth(elementType).value_or(0); }

AffineExpr tc::host::getArenaBytes(Operation *function) {
  auto segments = function->getAttrOfType<AffineMapAttr>(kArenaAttr);
  if (!segments)
    return {};
  AffineExpr bytes = getAffineConstantExpr(0, function->getContext());
  for (AffineExpr segment : segments.getValue().getResults())
    bytes = bytes + segment;
  return bytes;
}

AffineExpr tc::host::getSizeBytes(Type tensorType) {
  SmallVector<AffineExpr> sizes = prim::getSizes(tensorType);
  AffineExpr count = prim::product(tensorType.getContext(), sizes);
  unsigned bits = getElementBits(cast<RankedTensorType>(tensorType).getElementType());
  if (bits % 8 == 0)
    return prim::simplifySize(count * (bits / 8));
  return prim::simplifySize((count * bits + 7).floorDiv(8));
}

SmallVector<unsigned> tc::host::getSymbols(AffineExpr expr) {
  llvm::SmallSetVector<unsigned, 4> symbols;
  expr.walk([&](AffineExpr inner) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(inner))
      symbols.insert(symbol.getPosition());
  });
  return symbols.takeVector();
}

SmallVector<StringRef> tc::host::getNodeNames(ArrayRef<Location> locs) { return base::getNodeNames(locs); }

SmallVector<StringRef> tc::host::getNodeNames(Operation *op) {
  if (auto nodes = op->getAttrOfType<ArrayAttr>(kNodesAttr))
    return llvm::to_vector(nodes.getAsValueRange<StringAttr>());
  return getNodeNames(op->getLoc());
}

std::string tc::host::joinNodeNames(Operation *op) { return llvm::join(getNodeNames(op), "+"); }
