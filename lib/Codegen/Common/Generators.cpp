//===- Generators.cpp - the list of CPU code generators -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"

#include "tc/Codegen/Passes.h"

using namespace tc;
using namespace tc::codegen;

llvm::ArrayRef<const Generator *> tc::codegen::allGenerators(llvm::StringRef device) {
  static const Generator *const cpu[] = {attentionRowsGenerator(), attentionGenerator(),    rnnGenerator(),
                                         widthConvGenerator(),     depthwiseGenerator(),    blockDotGenerator(),
                                         winogradGenerator(),      skinnyGemmGenerator(),   contractGenerator(),
                                         narrowGemmGenerator(),    scanGenerator(),         scatterGenerator(),
                                         sortGenerator(),          columnReduceGenerator(), transposeGenerator(),
                                         windowReduceGenerator(),  loopsGenerator()};
  static const Generator *const cuda[] = {gpuGemmGenerator(), gpuRowsGenerator(), gpuFlatGenerator()};
  // Plain loops for everything but what only its own generator can say: nothing packed or rearranged.
  static const Generator *const reference[] = {attentionGenerator(), rnnGenerator(),  scanGenerator(),
                                               scatterGenerator(),   sortGenerator(), loopsGenerator()};
  if (device == "cuda")
    return cuda;
  if (device == "reference")
    return reference;
  return cpu;
}

const Generator *tc::codegen::lookupGenerator(kernel::ScheduleAttr schedule, llvm::StringRef device) {
  for (const Generator *generator : allGenerators(device))
    if (generator->strategy() == schedule.getStrategy())
      return generator;
  return nullptr;
}

bool tc::codegen::takesWhole(llvm::StringRef device, mlir::Operation *composite) {
  return llvm::any_of(allGenerators(device), [&](const Generator *g) { return g->takesWhole(composite); });
}
