//===- Verifier.h - --verify-key ------------------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TOOLS_TC_RUN_VERIFIER_H
#define TC_TOOLS_TC_RUN_VERIFIER_H

#include "tc/Run/Session.h"
#include "tcrt/verify.h"

#include <string>

namespace tc::run {

/// Public keys that artifacts must be signed with, through libtcrt-host, which is opened only where there are some.
class Verifier {
public:
  /// An empty path: none. Throws a Failure.
  explicit Verifier(const std::string &keyPath);
  Verifier(const Verifier &) = delete;
  Verifier &operator=(const Verifier &) = delete;
  ~Verifier();
  /// Makes the session's model be checked.
  void apply(SessionOptions &options) const;

private:
  tcrt_verifier_t *verifier = nullptr;
  decltype(&tcrt_verifier_check) check = nullptr;
  decltype(&tcrt_verifier_destroy) destroy = nullptr;
};

} // namespace tc::run

#endif // TC_TOOLS_TC_RUN_VERIFIER_H
