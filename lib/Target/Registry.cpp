//===- Registry.cpp - the backends by device ----------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Target/Target.h"

#include <map>

using namespace tc;
using namespace tc::target;

static std::map<machine::DeviceKind, std::unique_ptr<TargetBackend>> &backends() {
  static std::map<machine::DeviceKind, std::unique_ptr<TargetBackend>> map;
  return map;
}

void tc::target::registerBackend(std::unique_ptr<TargetBackend> backend) {
  const machine::DeviceKind device = backend->getDevice();
  backends()[device] = std::move(backend);
}

TargetBackend *tc::target::lookupBackend(machine::DeviceKind device) {
  auto found = backends().find(device);
  return found == backends().end() ? nullptr : found->second.get();
}
