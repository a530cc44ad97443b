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
  static const Generator *const cpu[] = {
      attentionRowsGenerator(), attentionGenerator(), rnnGenerator(),     linesGenerator(),    depthwiseGenerator(),
      blockDotGenerator(),      winogradGenerator(),  thinGenerator(),    contractGenerator(), integerDotGenerator(),
      bfloatDotGenerator(),     scanGenerator(),      scatterGenerator(), sortGenerator(),     columnsGenerator(),
      transposeGenerator(),     windowsGenerator(),   loopsGenerator()};
  static const Generator *const cuda[] = {gpuContractGenerator(), gpuRowsGenerator(), gpuFlatGenerator()};
  // Plain loops for everything but what only its own generator can say: nothing packed or rearranged.
  static const Generator *const reference[] = {attentionGenerator(), rnnGenerator(),  scanGenerator(),
                                               scatterGenerator(),   sortGenerator(), loopsGenerator()};
  if (device == "cuda")
    return cuda;
  if (device == "reference")
    return reference;
  return cpu;
}

const Generator *tc::codegen::lookupGenerator(llvm::StringRef strategy) {
  for (llvm::StringRef device : {"cpu", "cuda"})
    for (const Generator *generator : allGenerators(device))
      if (generator->strategy() == strategy)
        return generator;
  return nullptr;
}

bool tc::codegen::takesWhole(llvm::StringRef device, mlir::Operation *composite) {
  return llvm::any_of(allGenerators(device), [&](const Generator *g) { return g->takesWhole(composite); });
}

int64_t tc::codegen::getParam(kernel::ScheduleAttr schedule, llvm::StringRef name, int64_t otherwise) {
  if (auto attr = schedule.getParams().getAs<mlir::IntegerAttr>(name))
    return attr.getInt();
  return otherwise;
}

void tc::codegen::Params::set(const llvm::Twine &name, int64_t value) {
  list.set(name.str(), mlir::IntegerAttr::get(mlir::IntegerType::get(context, 64), value));
}

kernel::ScheduleAttr tc::codegen::Params::schedule(llvm::StringRef strategy) const {
  return kernel::ScheduleAttr::get(context, strategy, list.getDictionary(context));
}
