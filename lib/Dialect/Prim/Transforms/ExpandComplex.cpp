//===- ExpandComplex.cpp - complex elements as pairs of floats ----------------------------------------------------===//
//
// Behind this pass a tensor of complex elements is one of floats with a last dim of 2, real and imaginary part. Inputs,
// results, and operands and results of the runtime's functions keep their types; prim.storage is the view between:
//
//   %y = prim.transpose %x [1, 0] : tensor<3x4xcomplex<f32>> -> tensor<4x3xcomplex<f32>>
// =>
//   %parts = prim.storage %x : tensor<3x4xcomplex<f32>> -> tensor<3x4x2xf32>
//   %y = prim.transpose %parts [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
//
// What moves elements moves pairs. Comparisons for equality take both parts, and scatters may add; all other arithmetic
// is written on parts from the start.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tc::prim {
#define GEN_PASS_DEF_EXPANDCOMPLEXPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

class Expander {
public:
  explicit Expander(func::FuncOp func) : func(func) {}

  LogicalResult run() {
    SmallVector<Operation *> ops;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != func)
        ops.push_back(op);
    });
    Block &entry = func.front();
    for (BlockArgument argument : entry.getArguments())
      if (PrimBuilder::isComplex(argument) && !argument.use_empty())
        parts[argument] = builderBefore(&entry.front()).asParts(argument);
    for (Operation *op : ops)
      if (failed(expand(op)))
        return failure();
    for (Operation *op : llvm::reverse(dead))
      op->erase();
    return success();
  }

private:
  PrimBuilder builderBefore(Operation *op) {
    rewriter.setInsertionPoint(op);
    return PrimBuilder(rewriter, op);
  }

  /// What stands for an operand now: its parts where it was complex.
  Value of(Value v) const {
    Value known = parts.lookup(v);
    return known ? known : v;
  }
  /// The type of what stands for `v`.
  static RankedTensorType typeOf(Value v) {
    return PrimBuilder::isComplex(v) ? getStorageType(v.getType()) : cast<RankedTensorType>(v.getType());
  }

  void replace(Operation *op, Value value) {
    if (PrimBuilder::isComplex(op->getResult(0)))
      parts[op->getResult(0)] = value;
    else
      op->getResult(0).replaceAllUsesWith(value);
    dead.push_back(op);
  }

  /// `op` on parts.
  Value emitSame(PrimBuilder &b, Operation *op, ValueRange operands) {
    OperationState state(op->getLoc(), op->getName(), operands, typeOf(op->getResult(0)), op->getAttrs());
    return b.create(state)->getResult(0);
  }

  /// `v`, of the sizes that the complex tensor has, for each part.
  static Value forParts(PrimBuilder &b, Value v) {
    Sizes sizes = getSizes(v);
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
    sizes.push_back(b.size(2));
    return b.broadcastInDims(v, sizes, dims);
  }

  LogicalResult expand(Operation *op) {
    if (isa<HostCallOp, func::ReturnOp>(op)) {
      keepWhole(op);
      return success();
    }
    bool any = llvm::any_of(op->getResults(), PrimBuilder::isComplex) ||
               llvm::any_of(op->getOperands(), [&](Value v) { return parts.contains(v); });
    if (op->getNumRegions() || isa<prim::YieldOp>(op)) {
      expandRegions(op);
      return success();
    }
    if (!any)
      return success();
    PrimBuilder b(builderBefore(op));
    SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return of(v); });
    Value result = TypeSwitch<Operation *, Value>(op)
                       .Case([&](StorageOp) { return operands[0]; })
                       .Case([&](ReshapeOp) { return b.reshape(operands[0], getSizes(typeOf(op->getResult(0)))); })
                       .Case([&](TransposeOp transpose) {
                         SmallVector<int64_t> permutation(transpose.getPermutation());
                         permutation.push_back(permutation.size());
                         return b.transpose(operands[0], permutation);
                       })
                       .Case([&](BroadcastOp broadcast) {
                         SmallVector<int64_t> dims(broadcast.getDims());
                         dims.push_back(cast<RankedTensorType>(broadcast.getType()).getRank());
                         return b.broadcastInDims(operands[0], getSizes(typeOf(broadcast)), dims);
                       })
                       .Case([&](SliceOp slice) {
                         Sizes starts(slice.getStarts().getResults());
                         starts.push_back(b.size(0));
                         SmallVector<int64_t> steps(slice.getSteps());
                         steps.push_back(1);
                         return b.slice(operands[0], starts, steps, getSizes(typeOf(slice)));
                       })
                       .Case([&](DynamicSliceOp) {
                         operands.push_back(b.scalar(b.getI64Type(), 0));
                         return emitSame(b, op, operands);
                       })
                       .Case([&](PadOp pad) { return expandPad(b, pad, operands[0], operands[1]); })
                       .Case([&](SelectOp) {
                         operands[0] = forParts(b, operands[0]);
                         return emitSame(b, op, operands);
                       })
                       .Case<ConcatOp, GatherOp, GatherNDOp>([&](auto) { return emitSame(b, op, operands); })
                       .Case([&](GatherElementsOp) {
                         operands[1] = forParts(b, operands[1]);
                         return emitSame(b, op, operands);
                       })
                       .Case([&](ScatterNDOp scatter) {
                         return isMovedOrAdded(scatter.getKind()) ? emitSame(b, op, operands) : Value();
                       })
                       .Case([&](ScatterElementsOp scatter) {
                         operands[1] = forParts(b, operands[1]);
                         return isMovedOrAdded(scatter.getKind()) ? emitSame(b, op, operands) : Value();
                       })
                       .Case([&](CompareOp compare) { return expandCompare(b, compare, operands[0], operands[1]); })
                       .Case([&](BitcastOp bitcast) { return expandBitcast(b, bitcast, operands[0]); })
                       .Default([](Operation *) { return Value(); });
    if (!result)
      return op->emitError() << op->getName() << " does not take complex elements in this form; write it on their real "
                             << "and imaginary parts";
    replace(op, result);
    return success();
  }

  /// What leaves the program keeps its complex type.
  void keepWhole(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value pair = parts.lookup(operand.get()))
        operand.set(builderBefore(op).asComplex(pair));
    rewriter.setInsertionPointAfter(op);
    for (Value result : op->getResults())
      if (PrimBuilder::isComplex(result))
        parts[result] = StorageOp::create(rewriter, op->getLoc(), getStorageType(result.getType()), result);
  }

  void expandRegions(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(of(operand.get()));
    auto retype = [&](Value v) {
      if (!PrimBuilder::isComplex(v))
        return;
      v.setType(typeOf(v));
      parts[v] = v;
    };
    llvm::for_each(op->getResults(), retype);
    for (Region &region : op->getRegions())
      llvm::for_each(region.getArguments(), retype);
  }

  static bool isMovedOrAdded(std::optional<ReduceKind> kind) { return !kind || *kind == ReduceKind::Sum; }

  Value expandPad(PrimBuilder &b, PadOp op, Value operand, Value value) {
    Sizes low(op.getLow().getResults()), sizes = getSizes(typeOf(op));
    low.push_back(b.size(0));
    Type element = b.elementOf(operand);
    if (std::optional<double> known = getSplatValue(value))
      return b.pad(operand, b.scalar(element, *known), low, sizes);
    // The parts differ: the pair is chosen where no element is.
    Value inside = b.splat(b.getI1Type(), getSizes(operand), 1);
    inside = b.pad(inside, b.scalar(b.getI1Type(), 0), low, sizes);
    Value padded = b.pad(operand, b.scalar(element, 0), low, sizes);
    return b.select(inside, padded, b.broadcastTo(value, sizes));
  }

  Value expandCompare(PrimBuilder &b, CompareOp op, Value lhs, Value rhs) {
    if (op.getKind() != CompareKind::EQ && op.getKind() != CompareKind::NE)
      return {};
    Value pair = b.compare(op.getKind(), lhs, rhs);
    int64_t last = b.rankOf(pair) - 1;
    Value real = b.take(pair, last, 0), imaginary = b.take(pair, last, 1);
    return op.getKind() == CompareKind::EQ ? b.binary<AndOp>(real, imaginary) : b.binary<OrOp>(real, imaginary);
  }

  /// complex<f32> and elements of 64 bits: the real part is in the low ones.
  Value expandBitcast(PrimBuilder &b, BitcastOp op, Value operand) {
    auto natural = [&](unsigned width) { return b.getIntegerType(width, /*isSigned=*/false); };
    auto cast = [&](Value v, Type to) { return b.elementOf(v) == to ? v : BitcastOp::create(b, v, to).getResult(); };
    if (!PrimBuilder::isComplex(op.getResult())) {
      int64_t last = b.rankOf(operand) - 1;
      if (!b.elementOf(operand).isF32())
        return {};
      Value wide = b.convert(cast(operand, natural(32)), natural(64));
      Value high = b.binary<ShlOp>(b.take(wide, last, 1), 32);
      return cast(b.binary<OrOp>(b.take(wide, last, 0), high), b.elementOf(op));
    }
    if (PrimBuilder::isComplex(op.getOperand())) // the same type
      return operand;
    Value bits = cast(operand, natural(64));
    Value high = b.convert(b.binary<ShrOp>(bits, 32), natural(32)), low = b.convert(bits, natural(32));
    int64_t rank = b.rankOf(operand);
    return cast(b.concat({b.unsqueeze(low, rank), b.unsqueeze(high, rank)}, rank), b.getF32Type());
  }

  func::FuncOp func;
  IRRewriter rewriter{func.getContext()};
  /// What stands for values that were complex.
  llvm::DenseMap<Value, Value> parts;
  SmallVector<Operation *> dead;
};

struct ExpandComplex : tc::prim::impl::ExpandComplexPassBase<ExpandComplex> {
  void runOnOperation() override {
    if (!getOperation().isExternal() && failed(Expander(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
