//===- Optimize.cpp - LLVM's part of every target -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Target/Optimize.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopStrengthReduce.h"

namespace {

/// LLVM's passes over one module, with the analyses that they share.
struct Passes {
  Passes(llvm::TargetMachine &machine, llvm::PipelineTuningOptions tuning,
         llvm::PassInstrumentationCallbacks *callbacks)
      : builder(&machine, tuning, std::nullopt, callbacks) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graph);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graph, modules);
  }

  llvm::PassBuilder builder;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
};

/// Loops beyond the size that LLVM unrolls are marked as not to be unrolled: it finds their numbers of iterations, at
/// the cost of scalar evolution, before it looks at their size.
struct MarkLongLoops : public llvm::PassInfoMixin<MarkLongLoops> {
  static constexpr size_t kMostInstructions = 150; // LLVM's threshold of O2
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    for (llvm::Loop *loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
      size_t count = 0;
      for (llvm::BasicBlock *block : loop->blocks())
        count += block->size();
      if (count > kMostInstructions)
        loop->setLoopAlreadyUnrolled();
    }
    return llvm::PreservedAnalyses::all();
  }
};

/// Loop strength reduction where it can save something. Its time grows with the square of a loop's accesses, and is
/// half of code generation for the kernels of products, where a few addresses serve hundreds of instructions.
struct ReduceStrength : public llvm::PassInfoMixin<ReduceStrength> {
  /// Accesses of a loop for which it costs nothing.
  static constexpr unsigned kFewAccesses = 8;
  /// Of so many instructions, one must be arithmetic of indices.
  static constexpr unsigned kIndexShare = 8;

  static bool isWorthwhile(const llvm::Loop &loop) {
    unsigned accesses = 0, indices = 0, all = 0;
    for (const llvm::BasicBlock *block : loop.blocks())
      for (const llvm::Instruction &instruction : *block) {
        ++all;
        accesses += instruction.mayReadOrWriteMemory();
        if (const auto *address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction))
          indices += !address->hasAllConstantIndices();
        else
          indices += instruction.getType()->isIntegerTy() && (instruction.isBinaryOp() || instruction.isCast());
      }
    return accesses <= kFewAccesses || indices * kIndexShare >= all;
  }

  llvm::PreservedAnalyses run(llvm::Loop &loop, llvm::LoopAnalysisManager &analyses,
                              llvm::LoopStandardAnalysisResults &results, llvm::LPMUpdater &updater) {
    // LLVM does not reduce the strength of outer loops.
    if (!loop.isInnermost() || !isWorthwhile(loop))
      return llvm::PreservedAnalyses::all();
    return llvm::LoopStrengthReducePass().run(loop, analyses, results, updater);
  }
};

/// Keeps the code generator from reducing strength anew.
struct StrengthIsReduced : public llvm::OptPassGate {
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override { return pass != "Loop Strength Reduction"; }
  bool isEnabled() const override { return true; }
};

} // namespace

void tc::target::optimize(llvm::Module &module, llvm::TargetMachine &machine, bool interleaves) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassInstrumentationCallbacks callbacks;
  if (!interleaves) {
    tuning.LoopInterleaving = false;
    // Kernels have nothing for these, but they compare each pair of a loop's pointers.
    callbacks.registerShouldRunOptionalPassCallback([](llvm::StringRef pass, llvm::Any) {
      return pass != "LoopVectorizePass" && pass != "LoopLoadEliminationPass" && pass != "LoopDistributePass";
    });
  }
  Passes passes(machine, tuning, &callbacks);
  if (!interleaves) // as measured on CPUs
    passes.builder.registerPipelineStartEPCallback([](llvm::ModulePassManager &manager, llvm::OptimizationLevel) {
      manager.addPass(llvm::createModuleToFunctionPassAdaptor(MarkLongLoops()));
    });
  passes.builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, passes.modules);
}

void tc::target::reduceStrength(llvm::Module &module, llvm::TargetMachine &machine) {
  Passes passes(machine, {}, nullptr);
  llvm::ModulePassManager manager;
  manager.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::createFunctionToLoopPassAdaptor(ReduceStrength())));
  manager.run(module, passes.modules);
  static StrengthIsReduced gate;
  module.getContext().setOptPassGate(gate);
}

llvm::Expected<std::string> tc::target::generateCode(llvm::Module &module, llvm::TargetMachine &machine,
                                                     llvm::CodeGenFileType fileType) {
  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, fileType))
    return llvm::createStringError("LLVM cannot write code for " + machine.getTargetTriple().str());
  passes.run(module);
  return std::string(code.data(), code.size());
}
