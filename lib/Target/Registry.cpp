//===- Registry.cpp - the backends by device ----------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Target/Target.h"

#include <map>

using namespace tc::target;

namespace {
std::map<std::string, std::unique_ptr<TargetBackend>, std::less<>> &backends() {
  static std::map<std::string, std::unique_ptr<TargetBackend>, std::less<>> map;
  return map;
}
} // namespace

void tc::target::registerBackend(std::unique_ptr<TargetBackend> backend) {
  std::string device = backend->getDevice().str();
  backends()[device] = std::move(backend);
}

TargetBackend *tc::target::lookupBackend(llvm::StringRef device) {
  auto found = backends().find(std::string_view(device));
  return found == backends().end() ? nullptr : found->second.get();
}

std::vector<llvm::StringRef> tc::target::getDevices() {
  std::vector<llvm::StringRef> devices;
  for (auto &[device, backend] : backends())
    devices.push_back(device);
  return devices;
}
