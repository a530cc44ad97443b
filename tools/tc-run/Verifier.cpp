//===- Verifier.cpp - --verify-key --------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Verifier.h"

#include "tc/Run/Tensor.h"

#include <cstring>
#include <dlfcn.h>

using namespace tc::run;

namespace {

template <typename Function> void find(void *library, const char *name, Function &function) {
  void *symbol = ::dlsym(library, name);
  if (!symbol)
    throw Failure{5, std::string("tc-run: error: libtcrt-host, which checks signatures, is older than tc-run: it has "
                                 "no ") +
                         name + "; install the one of this version"};
  std::memcpy(&function, &symbol, sizeof function);
}

} // namespace

Verifier::Verifier(const std::string &keyPath) {
  if (keyPath.empty())
    return;
  const std::string version = tcrt_version(), name = "libtcrt-host.so." + version.substr(0, version.find('.'));
  // It stays open: the process ends soon after the verifier.
  void *library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Failure{5, std::string("tc-run: error: libtcrt-host, which checks signatures, cannot be opened: ") +
                         ::dlerror() + "; install it"};
  decltype(&tcrt_verifier_create) create = nullptr;
  find(library, "tcrt_verifier_create", create);
  find(library, "tcrt_verifier_check", check);
  find(library, "tcrt_verifier_destroy", destroy);
  char why[1024] = "";
  if (tcrt_status_t status = create(keyPath.c_str(), nullptr, &verifier, why, sizeof why))
    throw Failure{int(status), why};
}

Verifier::~Verifier() {
  if (verifier)
    destroy(verifier);
}

void Verifier::apply(SessionOptions &options) const {
  if (!verifier)
    return;
  options.verify = check;
  options.verifyUser = verifier;
}
