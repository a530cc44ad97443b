//===- Optimize.cpp - LLVM's part of every target -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Target/Optimize.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

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
  llvm::PassBuilder passes(&machine, tuning, std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(graph);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, graph, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
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
