//===- Pipeline.cpp - the order of the passes of phase prim -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void tc::prim::buildPrimPipeline(OpPassManager &functions, const PrimPipelineOptions &options) {
  // What follows finds numbers in place of sizes.
  functions.addPass(createSpecializeSizesPass());
  // Nothing else knows complex elements.
  functions.addPass(createExpandComplexPass());
  // Before constants fold, as dequantised weights, and those widened to i32 or f32, would be kept so.
  functions.addPass(createSinkDequantizePass());
  functions.addPass(createNarrowProductsPass());
  functions.addPass(createBlockProductsPass());
  // Before transposes move into what they are made of.
  functions.addPass(createSplitTransposedConvsPass());
  // Constants first: scalars that are computed from constants become splats, which the patterns see through.
  functions.addPass(createFoldConstantsPass());
  functions.addPass(createCanonicalizePrimPass());
  // Transposes are out of the way now between a convolution and the factors after it.
  functions.addPass(createFoldConvScalePass());
  functions.addPass(createSinkWindowTransposesPass());
  functions.addPass(createSplitWindowsPass());
  functions.addPass(createSubsampleConvsPass());
  functions.addPass(createFoldConstantsPass());
  functions.addPass(createCanonicalizePrimPass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  functions.addPass(createRecognizeCompositesPass());
  functions.addPass(createTrimProductsPass());
  functions.addPass(createCanonicalizePrimPass());
  // Behind what looks for f32, composites above all; before constants fold for the last time.
  functions.addPass(createRoundProductsPass({options.precision, llvm::to_vector(options.nodePrecisions)}));
  functions.addPass(createFoldConstantsPass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  functions.addPass(createInferInputRangesPass());
  if (options.checkBounds)
    functions.addPass(createCheckBoundsPass());
  functions.addPass(createVerifyPrimPass());
}

void tc::prim::registerPrimPipeline() {
  PassPipelineRegistration<>("tc-simplify-prim", "What phase prim does after the conversion from graph",
                             [](OpPassManager &manager) { buildPrimPipeline(manager.nest<func::FuncOp>()); });
}
