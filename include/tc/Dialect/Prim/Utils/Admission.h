//===- Admission.h - tensors and names that no phase, and no artifact, can hold -------------------------*- C++ -*-===//
//
// What a model may ask for is bounded once, here, so that arithmetic on sizes elsewhere does not overflow and the
// writer of artifacts meets nothing that the runtime would refuse. The conversion from graph to prim asks for each
// node's results, tc-admit for a whole module, after import and after each phase.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_ADMISSION_H
#define TC_DIALECT_PRIM_UTILS_ADMISSION_H

#include "tc/Dialect/TC/IR/ErrorKind.h"

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace tc::prim {

/// Dims of a tensor, as the runtime has it.
inline constexpr unsigned kMaxRank = 16;
/// Elements of a tensor lie below 2 to the power of this, whichever of its sizes are 0.
inline constexpr unsigned kSizeBits = 62;
/// So do its bytes below that of this: the runtime counts a tensor's bits in 64.
inline constexpr unsigned kByteBits = 61;
/// Bytes of a name that an artifact holds.
inline constexpr size_t kMaxNameBytes = 4096;

struct Refusal {
  base::ErrorKind kind;
  /// Reads on from what is refused: "has 17 dims; at most 16 are supported".
  std::string what;
};

/// What keeps out a type that is, or holds, a tensor; nullopt: nothing. Sizes that only the run knows count as 1.
std::optional<Refusal> refuseType(mlir::Type type);

/// What keeps a name of an input, output or dim out of an artifact.
std::optional<Refusal> refuseName(llvm::StringRef name);

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_UTILS_ADMISSION_H
