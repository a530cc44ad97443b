//===- VerifyPhases.cpp - what each phase may contain -------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Phases.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Utils/Admission.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

namespace tc::driver {
#define GEN_PASS_DEF_ADMITPASS
#define GEN_PASS_DEF_VERIFYHOSTPASS
#define GEN_PASS_DEF_VERIFYIMPORTPASS
#define GEN_PASS_DEF_VERIFYKERNELPASS
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "tc/Driver/Passes.h.inc"
} // namespace tc::driver

using namespace mlir;
using namespace tc;

namespace {

/// An error at `op` that names the phase.
WalkResult refuse(Operation *op, StringRef phase, const Twine &what) {
  op->emitError() << "phase " << phase << ": " << what;
  return WalkResult::interrupt();
}

/// Ops of the host program, as phase kernel leaves them.
bool isHostOp(Operation *op) {
  return isa<host::ConstantOp, host::LaunchOp, host::ChooseOp, host::YieldOp, host::CopyOp, prim::ConstantOp,
             prim::SplatOp, prim::IotaOp, prim::SizesOp, prim::ReshapeOp, prim::StorageOp, prim::BindSymbolOp,
             prim::GuardOp, prim::HostCallOp, prim::ReadStateOp, prim::WriteStateOp, prim::IfOp, prim::WhileOp,
             prim::YieldOp, func::FuncOp, func::ReturnOp>(op);
}

bool hasRankedTypes(Operation *op) {
  return llvm::all_of(op->getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); });
}

struct Admit : public driver::impl::AdmitPassBase<Admit> {
  void runOnOperation() override {
    for (graph::FuncOp function : getOperation().getOps<graph::FuncOp>())
      if (!function.isPrivate() && failed(admit(function)))
        return signalPassFailure();
    // What a front end says of values inside of a graph is a hint: the conversion to prim computes their types.
    llvm::DenseSet<Type> known;
    WalkResult result = getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
      if (isa<graph::NodeOp>(op))
        return WalkResult::advance();
      if (isa<LLVM::LLVMFuncOp>(op)) // tens of thousands of ops without tensors
        return WalkResult::skip();
      auto admitType = [&](Type type) {
        if (!isa<RankedTensorType>(type) || !known.insert(type).second)
          return success();
        std::optional<prim::Refusal> refusal = prim::refuseType(type);
        return refusal ? LogicalResult(base::emitError(op->getLoc(), refusal->kind) << "a value " << refusal->what)
                       : success();
      };
      for (Type type : op->getResultTypes())
        if (failed(admitType(type)))
          return WalkResult::interrupt();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Type type : block.getArgumentTypes())
            if (!isa<graph::FuncOp>(op) && failed(admitType(type)))
              return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// The signature of the model.
  static LogicalResult admit(graph::FuncOp function) {
    auto refuse = [&](StringRef what, StringRef name, std::optional<prim::Refusal> refusal) -> LogicalResult {
      if (!refusal)
        return success();
      return base::emitError(UnknownLoc::get(function.getContext()), refusal->kind)
             << what << " " << quote(name) << " " << refusal->what;
    };
    auto check = [&](StringRef what, StringRef name, Type type, ArrayAttr dims) -> LogicalResult {
      if (failed(refuse(what, name, prim::refuseName(name))) || failed(refuse(what, name, prim::refuseType(type))))
        return failure();
      for (auto [i, dim] : llvm::enumerate(dims ? dims.getValue() : ArrayRef<Attribute>()))
        if (auto text = dyn_cast<StringAttr>(dim))
          if (std::optional<prim::Refusal> refusal = prim::refuseName(text.getValue()))
            return refuse(("dim " + Twine(i) + " of " + what).str(), name, refusal);
      return success();
    };
    if (failed(refuse("model", function.getSymName(), prim::refuseName(function.getSymName()))))
      return failure();
    llvm::StringSet<> inputs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      if (failed(check("input", function.getArgName(i), function.getArgumentTypes()[i], function.getArgDims(i))))
        return failure();
      if (!inputs.insert(function.getArgName(i)).second && !function.isPrivate())
        return base::emitError(UnknownLoc::get(function.getContext()), base::ErrorKind::Invalid)
               << "input " << quote(function.getArgName(i)) << " has the name of another input; rename it";
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      Type declared = function.getResultTypes()[i];
      if (auto attr = function.getResultAttrOfType<TypeAttr>(i, graph::kDeclaredTypeAttr))
        declared = attr.getValue();
      if (failed(check("output", function.getResultName(i), declared, nullptr)))
        return failure();
    }
    return success();
  }

  /// For a sentence: what cannot be printed shows as a question mark.
  static std::string quote(StringRef name) {
    std::string text = "\"";
    for (char c : name.take_front(100))
      text += c >= 0x20 && c < 0x7f ? c : '?';
    return text + (name.size() > 100 ? "...\"" : "\"");
  }
};

struct VerifyImport : public driver::impl::VerifyImportPassBase<VerifyImport> {
  void runOnOperation() override {
    unsigned publicCount = 0;
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      if (isa<ModuleOp>(op))
        return WalkResult::advance();
      if (!isa_and_nonnull<graph::GraphDialect>(op->getDialect()))
        return refuse(op, "import", "holds an op of another dialect than graph");
      if (auto function = dyn_cast<graph::FuncOp>(op))
        publicCount += !function.isPrivate();
      return WalkResult::advance();
    });
    if (!result.wasInterrupted() && publicCount == 0)
      result = refuse(getOperation(), "import", "needs a public function");
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

struct VerifySchedule : public driver::impl::VerifySchedulePassBase<VerifySchedule> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](kernel::RegionOp region) -> WalkResult {
      if (!region.getScheduleAttr())
        return refuse(region, "schedule", "a region has no schedule");
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

/// What kernel and host have in common: the program's ops, the variants' ops, every launched kernel.
WalkResult verifyProgram(ModuleOp module, StringRef phase) {
  SmallVector<host::VariantOp> variants = llvm::to_vector(module.getOps<host::VariantOp>());
  if (variants.empty())
    return refuse(module, phase, "the module has no variant");
  for (Operation &op : *module.getBody()) {
    if (auto variant = dyn_cast<host::VariantOp>(op)) {
      if (variant.getDevice() != machine::DeviceKind::Cpu)
        continue;
      for (Operation &inner : variant.getBody().front())
        if (!isa_and_nonnull<LLVM::LLVMDialect>(inner.getDialect()))
          return refuse(&inner, phase, "a variant holds an op of another dialect than llvm");
      continue;
    }
    if (isa<prim::StateOp>(op))
      continue;
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return refuse(&op, phase, "the module holds something that is neither function, state nor variant");
    WalkResult result = function.walk([&](Operation *inner) -> WalkResult {
      if (!isHostOp(inner))
        return refuse(inner, phase, "the host program holds an op that it may not hold");
      if (!hasRankedTypes(inner))
        return refuse(inner, phase, "a value is no ranked tensor");
      if (auto launch = dyn_cast<host::LaunchOp>(inner))
        for (host::VariantOp variant : variants)
          if (variant.getDevice() == machine::DeviceKind::Cpu &&
              !SymbolTable::lookupSymbolIn(variant, launch.getKernel()))
            return refuse(launch, phase,
                          "variant @" + variant.getSymName() + " lacks the kernel @" + launch.getKernel());
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return result;
  }
  return WalkResult::advance();
}

struct VerifyKernel : public driver::impl::VerifyKernelPassBase<VerifyKernel> {
  void runOnOperation() override {
    if (verifyProgram(getOperation(), "kernel").wasInterrupted())
      signalPassFailure();
  }
};

struct VerifyHost : public driver::impl::VerifyHostPassBase<VerifyHost> {
  void runOnOperation() override {
    WalkResult result = verifyProgram(getOperation(), "host");
    if (!result.wasInterrupted())
      result = getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
        if (auto variant = dyn_cast<host::VariantOp>(op)) {
          for (StringRef name : {"tc_entry", "tc_infer", "tc_run"})
            if (!SymbolTable::lookupSymbolIn(variant, name))
              return refuse(op, "host", "a variant lacks @" + name);
          return WalkResult::skip();
        }
        if (auto function = dyn_cast<func::FuncOp>(op)) {
          if (!function->hasAttr(host::kArenaAttr) || !function->hasAttr(host::kScratchAttr))
            return refuse(op, "host", "the function has no memory plan");
          return WalkResult::advance();
        }
        if (op->getNumResults() == 0)
          return WalkResult::advance();
        auto places = op->getAttrOfType<ArrayAttr>(host::kPlacesAttr);
        if (!places || places.size() != op->getNumResults() ||
            !llvm::all_of(places, [](Attribute place) { return isa<host::PlaceAttr>(place); }))
          return refuse(op, "host", "a value has no place in memory");
        return WalkResult::advance();
      });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
