//===- Internal.h - the bytes of an entry ---------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CACHE_INTERNAL_H
#define TC_LIB_CACHE_INTERNAL_H

#include "tc/Cache/Store.h"

namespace tc::cache {

/// In front of the content.
struct EntryHeader {
  char magic[8];
  uint64_t sizeBytes; ///< of the content
  Key hash;           ///< of kind, key and content
  uint8_t zero[16];
};
static_assert(sizeof(EntryHeader) == 64);

EntryHeader makeHeader(Kind kind, const Key &key, llvm::ArrayRef<llvm::StringRef> pieces);
/// What is behind the header, unchecked.
llvm::StringRef getContent(llvm::StringRef file);
/// The content of an entry's file; nullopt: it is not the one that this key stands for.
std::optional<llvm::StringRef> checkEntry(Kind kind, const Key &key, llvm::StringRef file);

} // namespace tc::cache

#endif // TC_LIB_CACHE_INTERNAL_H
