//===- VerifyPrim.cpp - what is true at the end of the phase prim -------------------------------------------------===//
//
// Only prim ops in func.func; every tensor is ranked and each unknown size is an expression; every symbol is listed,
// and defined: by a dim of an argument, by prim.bind_symbol, or by control flow. A failure here is a defect of the
// compiler, not of a model.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"

#include "llvm/ADT/BitVector.h"

namespace tc::prim {
#define GEN_PASS_DEF_VERIFYPRIMPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc::prim;

namespace {

struct VerifyPrimPass : public tc::prim::impl::VerifyPrimPassBase<VerifyPrimPass> {
  using VerifyPrimPassBase::VerifyPrimPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto symbols = function->getAttrOfType<ArrayAttr>(kSymbolsAttr);
    unsigned count = symbols ? symbols.size() : 0;
    bool ok = true;
    llvm::BitVector used(count), defined(count);
    auto use = [&](Operation *op, AffineExpr expr) {
      expr.walk([&](AffineExpr e) {
        auto symbol = dyn_cast<AffineSymbolExpr>(e);
        if (symbol && symbol.getPosition() < count) {
          used.set(symbol.getPosition());
        } else if (symbol) {
          ok = false;
          op->emitError() << "symbol s" << symbol.getPosition() << " is not in " << kSymbolsAttr;
        }
      });
    };
    auto check = [&](Operation *op, Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      // Complex tensors are only what comes from outside and goes there.
      bool isComplex = type && isa<ComplexType>(type.getElementType()) && isa<func::FuncOp, StorageOp, HostCallOp>(op);
      if (!type || (!isComplex && !isa<IntegerType, FloatType>(type.getElementType())) ||
          (!type.hasStaticShape() && !isa_and_nonnull<DimsAttr>(type.getEncoding()))) {
        ok = false;
        op->emitError() << "a value of type " << value.getType() << " has no place in prim";
        return;
      }
      for (AffineExpr expr : getSizes(type))
        use(op, expr);
    };
    for (Value argument : function.getArguments()) {
      check(function, argument);
      if (isa<RankedTensorType>(argument.getType()))
        for (AffineExpr expr : getSizes(argument))
          if (auto symbol = dyn_cast<AffineSymbolExpr>(expr); symbol && symbol.getPosition() < count)
            defined.set(symbol.getPosition());
    }
    function.walk([&](Operation *op) {
      if (op == function)
        return;
      if (!isa<PrimDialect>(op->getDialect()) && !isa<func::ReturnOp>(op)) {
        ok = false;
        op->emitError() << "op " << op->getName() << " has no place in prim";
      }
      for (Value result : op->getResults())
        check(op, result);
      for (int64_t symbol : getBoundSymbols(op))
        if (uint64_t(symbol) < count)
          defined.set(symbol);
    });
    used.reset(defined);
    for (unsigned i : used.set_bits()) {
      ok = false;
      function.emitError() << "symbol s" << i << " (\"" << cast<SymbolAttr>(symbols[i]).getName()
                           << "\") is used but not defined";
    }
    if (!ok)
      signalPassFailure();
  }
};

} // namespace
