//===- Pipeline.cpp - the order of the passes that prepare prim for GPUs ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Transforms/Prepare/CUDA/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void tc::prepare::buildPrepareCudaPipeline(OpPassManager &functions) {
  functions.addPass(createSortScattersPass());
  // Several scatters by the same indices share an order.
  functions.addPass(createTurnPairReductionsPass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
}

void tc::prepare::registerPrepareCudaPipeline() {
  PassPipelineRegistration<>("tc-prepare-cuda", "What phase fuse does first for GPUs",
                             [](OpPassManager &manager) { buildPrepareCudaPipeline(manager.nest<func::FuncOp>()); });
}
