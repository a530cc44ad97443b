//===- Phases.cpp - the phases and their pipelines ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Phases.h"

#include "tc/Codegen/Passes.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Conversion/Passes.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/Transforms/Passes.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Support/NodePattern.h"
#include "tc/Target/Passes.h"
#include "tc/Transforms/Passes.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"
#include "tc/Transforms/Prepare/CUDA/Passes.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tc;
using namespace tc::driver;

static constexpr StringRef kNames[kPhaseCount] = {"import", "prim", "fuse",   "schedule",
                                                  "kernel", "host", "object", "artifact"};
static constexpr StringRef kMeanings[kPhaseCount] = {
    "the model's file, nothing interpreted yet",
    "tensor primitives with symbolic sizes",
    "every primitive in a fused region",
    "every region with its schedule",
    "regions as functions of each variant, launched by the host program",
    "memory plan and native host program",
    "object code of each variant",
    "the artifact"};

StringRef tc::driver::getName(Phase phase) { return kNames[unsigned(phase)]; }

StringRef tc::driver::getMeaning(Phase phase) { return kMeanings[unsigned(phase)]; }

std::optional<Phase> tc::driver::parsePhase(StringRef name) {
  for (unsigned i = 0; i < kPhaseCount; ++i)
    if (name == kNames[i])
      return Phase(i);
  return std::nullopt;
}

Phase tc::driver::detectPhase(ModuleOp module) {
  bool variants = false;
  for (Operation &op : *module.getBody()) {
    if (isa<graph::FuncOp>(op))
      return Phase::Import;
    if (isa<host::BinaryOp>(op))
      return Phase::Object;
    if (auto variant = dyn_cast<host::VariantOp>(op)) {
      if (SymbolTable::lookupSymbolIn(variant, "tc_entry"))
        return Phase::Host;
      variants = true;
    }
  }
  if (variants)
    return Phase::Kernel;
  Phase phase = Phase::Prim;
  module.walk([&](kernel::RegionOp region) {
    phase = region.getScheduleAttr() ? Phase::Schedule : Phase::Fuse;
    return phase == Phase::Fuse ? WalkResult::interrupt() : WalkResult::advance();
  });
  return phase;
}

namespace {
/// tc-convert-graph-to-prim for the driver, which wants to know what failed.
struct ConvertWithReport : public PassWrapper<ConvertWithReport, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertWithReport)
  ConvertWithReport(const conversion::ConvertGraphToPrimPassOptions &pass, GraphToPrimReport &report)
      : report(&report) {
    for (const std::string &text : pass.dims)
      parseDimOption(text, options);
    for (const std::string &text : pass.shapes)
      parseShapeOption(text, options);
    options.allowHostOps = pass.allowHostOps;
    for (const std::string &path : pass.customOps)
      llvm::consumeError(readCustomOperators(path, options.customOperators)); // the request was checked
  }
  StringRef getArgument() const override { return "tc-convert-graph-to-prim"; }
  StringRef getName() const override { return "ConvertGraphToPrim"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<func::FuncDialect, base::TCDialect, prim::PrimDialect>();
  }
  void runOnOperation() override {
    if (failed(convertGraphToPrim(getOperation(), options, report)))
      signalPassFailure();
  }
  GraphToPrimOptions options;
  GraphToPrimReport *report;
};
} // namespace

void tc::driver::buildPhasePipeline(Phase phase, OpPassManager &manager, const PhaseOptions &options) {
  auto list = [](const auto &values) {
    return llvm::to_vector(llvm::map_range(values, [](const std::string &s) { return s; }));
  };
  // In each, as a module of any phase may be the first.
  if (!options.staticInputs.empty() && phase > Phase::Prim && phase < Phase::Object)
    manager.addPass(createMarkStaticPass({list(options.staticInputs)}));
  switch (phase) {
  case Phase::Import:
  case Phase::Artifact:
    return;
  case Phase::Prim: {
    conversion::ConvertGraphToPrimPassOptions convert;
    convert.dims = list(options.dims);
    convert.shapes = list(options.shapes);
    convert.customOps = list(options.customOps);
    convert.allowHostOps = options.allowHostOps;
    manager.addPass(graph::createFunctionalizeGraphPass({list(options.customOps)}));
    if (options.report)
      manager.addPass(std::make_unique<ConvertWithReport>(convert, *options.report));
    else
      manager.addPass(conversion::createConvertGraphToPrimPass(convert));
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    const SmallVector<std::string> ofNodes = list(options.nodePrecisions);
    prim::buildPrimPipeline(manager.nest<func::FuncOp>(),
                            {options.checkBounds, options.precision, {ofNodes.begin(), ofNodes.end()}});
    return;
  }
  case Phase::Fuse: {
    if (options.target == machine::TargetKind::Cpu)
      prepare::buildPrepareCpuPipeline(manager.nest<func::FuncOp>());
    else if (options.fuse && machine::getDevice(options.target) == machine::DeviceKind::Cuda)
      prepare::buildPrepareCudaPipeline(manager.nest<func::FuncOp>());
    // Without fusion, attention is compared in its parts.
    auto patterns = std::make_shared<NodePatterns>(list(options.disabled));
    auto takesWhole = [target = machine::TargetKind(options.target), fuse = bool(options.fuse),
                       patterns](Operation *op) {
      return ((fuse && !patterns->matches(host::getNodeNames(op->getLoc()))) || !isa<prim::AttentionOp>(op)) &&
             codegen::takesWhole(target, op);
    };
    manager.addNestedPass<func::FuncOp>(prim::createDecomposeCompositesPass(takesWhole));
    manager.addNestedPass<func::FuncOp>(prim::createExpandNarrowTypesPass());
    if (options.target == machine::TargetKind::Cpu)
      manager.addNestedPass<func::FuncOp>(prim::createWidenProductsPass());
    // Packing of constants of narrow types.
    manager.addNestedPass<func::FuncOp>(prim::createFoldConstantsPass());
    manager.addPass(createCSEPass());
    FusePassOptions fuse;
    fuse.fuse = options.fuse;
    fuse.target = options.target;
    fuse.disabled = list(options.disabled);
    manager.addNestedPass<func::FuncOp>(createFusePass(fuse));
    if (options.fuse) {
      manager.addNestedPass<func::FuncOp>(createCollapseDimsPass({options.target}));
      // Behind it, as it takes no slices whose starts are data.
      manager.addNestedPass<func::FuncOp>(createUnifySlicesPass());
    }
    return;
  }
  case Phase::Schedule: {
    codegen::ChooseSchedulePassOptions choose;
    choose.target = options.target;
    if (machine::getDevice(options.target) == machine::DeviceKind::Cuda)
      choose.gpus = list(options.variants);
    choose.allowTf32 = options.precision == "tf32";
    choose.nodePrecisions = list(options.nodePrecisions);
    manager.addPass(codegen::createChooseSchedulePass(choose));
    return;
  }
  case Phase::Kernel: {
    codegen::buildLowerKernelsPipeline(manager, list(options.variants));
    return;
  }
  case Phase::Host:
    if (!options.staticInputs.empty())
      manager.addPass(createHoistStaticPass());
    if (options.target == machine::TargetKind::Cpu)
      manager.addNestedPass<func::FuncOp>(createGroupLaunchesPass());
    else if (machine::getDevice(options.target) == machine::DeviceKind::Cuda)
      manager.addNestedPass<func::FuncOp>(createNumberLoopsPass());
    manager.addPass(createPlanMemoryPass());
    manager.addPass(createConvertHostToLLVMPass());
    return;
  case Phase::Object: {
    target::CompileVariantsPassOptions compile;
    compile.jobs = options.jobs;
    compile.debugDir = options.debugDir;
    compile.refusesSpills = options.refusesSpills;
    manager.addPass(target::createCompileVariantsPass(compile, options.cache));
    return;
  }
  }
}

void tc::driver::addPhaseVerifier(Phase phase, OpPassManager &manager) {
  manager.addPass(createAdmitPass());
  switch (phase) {
  case Phase::Import:
    return manager.addPass(createVerifyImportPass());
  case Phase::Prim:
    return manager.addNestedPass<func::FuncOp>(prim::createVerifyPrimPass());
  case Phase::Fuse:
    return manager.addNestedPass<func::FuncOp>(createVerifyFusePass());
  case Phase::Schedule:
    return manager.addPass(createVerifySchedulePass());
  case Phase::Kernel:
    return manager.addPass(createVerifyKernelPass());
  case Phase::Host:
    return manager.addPass(createVerifyHostPass());
  case Phase::Object:
    return manager.addPass(target::createVerifyObjectPass());
  case Phase::Artifact:
    return;
  }
}

void tc::driver::registerPhases() {
  registerDriverPasses();
  for (unsigned i = 0; i < kPhaseCount; ++i) {
    Phase phase = Phase(i);
    if (phase == Phase::Artifact)
      continue;
    static std::array<std::string, kPhaseCount> flags;
    flags[i] = ("tc-phase-" + kNames[i]).str();
    PassPipelineRegistration<PhaseOptions>(flags[i], kMeanings[i],
                                           [phase](OpPassManager &manager, const PhaseOptions &options) {
                                             buildPhasePipeline(phase, manager, options);
                                             addPhaseVerifier(phase, manager);
                                           });
  }
}
