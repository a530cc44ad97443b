//===- Pipeline.cpp - the order of the passes that make kernels ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Codegen/Passes.h"
#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

using namespace mlir;
using namespace tc;

void codegen::buildLowerKernelsPipeline(OpPassManager &modules, ArrayRef<std::string> variants) {
  EmitKernelsPassOptions emit;
  emit.variants = llvm::to_vector(variants);
  modules.addPass(createEmitKernelsPass(emit));
  OpPassManager &kernels = modules.nest<host::VariantOp>();
  kernels.addPass(createExpandFunctionsPass());
  // Behind the elimination of common subexpressions: lanes that are the same are one value.
  kernels.addPass(createPairGathersPass());
  // Loops are as long as they will be, and still loops.
  kernels.addPass(createInterleaveLanesPass());
  kernels.addPass(createLowerToLLVMPass());
}

namespace {
struct LowerKernelsOptions : public PassPipelineOptions<LowerKernelsOptions> {
  ListOption<std::string> variants{*this, "variants", llvm::cl::desc("those of tc-emit-kernels")};
};
} // namespace

void codegen::registerLowerKernelsPipeline() {
  PassPipelineRegistration<LowerKernelsOptions>(
      "tc-lower-kernels", "Kernels of scheduled regions, in the LLVM dialect",
      [](OpPassManager &modules, const LowerKernelsOptions &options) {
        buildLowerKernelsPipeline(modules, SmallVector<std::string>(options.variants.begin(), options.variants.end()));
      });
}
