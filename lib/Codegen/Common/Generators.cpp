//===- Generators.cpp - the generators of a kind of machine
//---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"

#include "tc/Codegen/Passes.h"

using namespace tc;
using namespace tc::codegen;

llvm::ArrayRef<const Generator *> tc::codegen::allGenerators(llvm::StringRef device) {
#define TC_CALL(function) function(),
  static const Generator *const cpu[] = {
#define TC_CPU_GENERATOR TC_CALL
#include "Common/Generators.def"
  };
  static const Generator *const cuda[] = {
#define TC_CUDA_GENERATOR TC_CALL
#include "Common/Generators.def"
  };
  static const Generator *const reference[] = {
#define TC_REFERENCE_GENERATOR TC_CALL
#include "Common/Generators.def"
  };
#undef TC_CALL
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
