//===- SeededBlob.h - numbers that stand for weights ----------------------------------------------------*- C++ -*-===//
//
// A blob whose key says what is in it, "seed_<number>_<type>_<bytes>", needs no file: who reads a module makes it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_SEEDEDBLOB_H
#define TC_SUPPORT_SEEDEDBLOB_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tc {

enum class SeededType { F16, BF16, F32, F64 };

std::string getSeededKey(uint64_t seed, SeededType type, uint64_t bytes);
inline bool isSeededKey(llvm::StringRef key) { return key.starts_with("seed_"); }
/// Little-endian numbers between -1 and 1, the same on each machine; nullopt where the key is of another form, or names
/// other than `bytes` bytes.
std::optional<std::vector<char>> makeSeededBytes(llvm::StringRef key, uint64_t bytes);

} // namespace tc

#endif // TC_SUPPORT_SEEDEDBLOB_H
