//===- Generators.cpp - the generators of a target ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"

#include "tc/Codegen/Passes.h"

using namespace tc;
using namespace tc::codegen;

llvm::ArrayRef<const Generator *> tc::codegen::allGenerators(machine::TargetKind target) {
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
  switch (target) {
  case machine::TargetKind::Cpu:
    return cpu;
  case machine::TargetKind::Cuda:
    return cuda;
  case machine::TargetKind::Reference:
    return reference;
  }
  llvm_unreachable("no target");
}

const Generator *tc::codegen::lookupGenerator(kernel::ScheduleAttr schedule, machine::TargetKind target) {
  for (const Generator *generator : allGenerators(target))
    if (generator->strategy() == schedule.getStrategy())
      return generator;
  return nullptr;
}

bool tc::codegen::takesWhole(machine::TargetKind target, mlir::Operation *composite) {
  return llvm::any_of(allGenerators(target), [&](const Generator *g) { return g->takesWhole(composite); });
}
