//===- Hash.h - content hashes ------------------------------------------------------------------------*- C++ -*-===//
//
// One content hash for the whole compiler: XXH3, 128 bits, written as 32 lower-case hex digits. It identifies equal
// bytes (constants, kernels); it is no protection against somebody who wants a collision. Thread safe, no state.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_HASH_H
#define TC_SUPPORT_HASH_H

#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace tc {

/// The content hash of `bytes`: 32 hex digits.
std::string contentHash(llvm::ArrayRef<char> bytes);

} // namespace tc

#endif // TC_SUPPORT_HASH_H
