//===- Generators.cpp - the list of CPU code generators
//--------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Generators.h"

using namespace tc;
using namespace tc::codegen::cpu;

llvm::ArrayRef<const Generator *> tc::codegen::cpu::allGenerators() {
  static const Generator *const all[] = {attentionGenerator(), rnnGenerator(), contractGenerator(), loopsGenerator()};
  return all;
}

const Generator *tc::codegen::cpu::lookupGenerator(llvm::StringRef strategy) {
  for (const Generator *generator : allGenerators())
    if (generator->strategy() == strategy)
      return generator;
  return nullptr;
}

int64_t tc::codegen::cpu::getParam(kernel::ScheduleAttr schedule, llvm::StringRef name, int64_t otherwise) {
  if (auto attr = schedule.getParams().getAs<mlir::IntegerAttr>(name))
    return attr.getInt();
  return otherwise;
}
