//===- Lines.h - tensors as independent lines along an axis ---------------------------------------------*- C++ -*-===//
//
// What scans and scatters share: a tensor [O.., length, I..] is a set of O * I lines. A task is one position in O and a
// block of `block` neighbouring positions in I.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_COMMON_LINES_H
#define TC_LIB_CODEGEN_COMMON_LINES_H

#include "Common/Generators.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tc::codegen {

/// A line, or one for each lane.
struct LinePosition {
  Index outer, inner;
};

struct Lines {
  llvm::SmallVector<mlir::AffineExpr> outer, inner;
  mlir::AffineExpr length;

  Lines(mlir::Value tensor, int64_t axis) {
    llvm::SmallVector<mlir::AffineExpr> sizes = prim::getSizes(tensor);
    outer.assign(sizes.begin(), sizes.begin() + axis);
    length = sizes[axis];
    inner.assign(sizes.begin() + axis + 1, sizes.end());
  }

  mlir::AffineExpr innerCount() const { return prim::product(length.getContext(), inner); }
  mlir::AffineExpr tasks(int64_t block) const {
    return prim::simplifySize(prim::product(length.getContext(), outer) * innerCount().ceilDiv(block));
  }

  /// The tensor's position of a line's element.
  llvm::SmallVector<Index> at(Emitter &e, const LinePosition &line, const Index &position) const {
    llvm::SmallVector<Index> result;
    if (!outer.empty())
      result = e.delinearize(line.outer, outer);
    result.push_back(position);
    if (!inner.empty())
      llvm::append_range(result, e.delinearize(line.inner, inner));
    return result;
  }

  /// Calls body for the lines of a task, for those of up to `vectors` vectors at once.
  void forEachOfTask(Emitter &e, Index task, int64_t block, bool lanes, int64_t vectors,
                     llvm::function_ref<void(llvm::ArrayRef<LinePosition>)> body) const {
    mlir::AffineExpr blocks = prim::simplifySize(innerCount().ceilDiv(block));
    llvm::SmallVector<mlir::AffineExpr> grid{prim::product(length.getContext(), outer), blocks};
    llvm::SmallVector<Index> at = e.delinearize(task, grid);
    mlir::Value count = e.size(innerCount());
    if (inner.empty())
      return body(LinePosition{at[0], e.constant(0)});
    mlir::Value from = e.mul(at[1].base, e.i64(block)), to = e.min(e.add(from, e.i64(block)), count);
    if (!lanes)
      return e.loop(from, to, 1, [&](Index position) { body(LinePosition{at[0], position}); });
    e.laneBlocks(
        to, std::nullopt, vectors,
        [&](llvm::ArrayRef<Index> positions) {
          body(llvm::map_to_vector(positions, [&](const Index &position) { return LinePosition{at[0], position}; }));
        },
        from);
  }
};

/// Emits what copies `source` to the kernel's first output, where that does not stand in the source's memory.
inline void copyUnlessInPlace(Emitter &e, mlir::Value source, llvm::function_ref<void()> copy) {
  auto argument = mlir::dyn_cast<mlir::BlockArgument>(source);
  if (!argument)
    return copy();
  mlir::OpBuilder &b = e.builder();
  auto address = [&](mlir::Value pointer) -> mlir::Value {
    return mlir::LLVM::PtrToIntOp::create(b, e.loc(), b.getI64Type(), pointer);
  };
  e.ifThen(mlir::arith::CmpIOp::create(b, e.loc(), mlir::arith::CmpIPredicate::ne,
                                       address(e.input(argument.getArgNumber())), address(e.output(0))),
           copy);
}

/// Lets the launch's first output stand in the memory of `source`, where that is read for nothing else.
inline void allowInPlace(Launch &launch, mlir::Value source) {
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(source); argument && argument.hasOneUse())
    launch.inPlace = {int64_t(argument.getArgNumber()), 0};
}

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_COMMON_LINES_H
