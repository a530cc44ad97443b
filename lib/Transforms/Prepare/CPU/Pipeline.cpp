//===- Pipeline.cpp - the order of the passes that prepare prim for CPUs ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void tc::prepare::buildPrepareCpuPipeline(OpPassManager &functions) {
  functions.addPass(createWidenDepthwiseConvsPass());
  // Transposes that it turns back meet their inverses, and those of 1x1 convolutions the products around them.
  functions.addPass(createContractOuterDimsPass());
  functions.addPass(prim::createCanonicalizePrimPass());
  functions.addPass(createPointwiseConvsPass());
  functions.addPass(prim::createFoldConstantsPass());
  functions.addPass(prim::createCanonicalizePrimPass());
  // Behind what moves transposes, which tells how operands lie.
  functions.addPass(createReduceVectorProductsPass());
  functions.addPass(createSplitDepthPass());
  functions.addPass(createOrderProductRowsPass());
  functions.addPass(prim::createFoldConstantsPass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
}

void tc::prepare::registerPrepareCpuPipeline() {
  PassPipelineRegistration<>("tc-prepare-cpu", "What phase fuse does first for CPUs",
                             [](OpPassManager &manager) { buildPrepareCpuPipeline(manager.nest<func::FuncOp>()); });
}
