//===- ZipArchive.h - read-only view of a stored zip archive --------------------------------------------*- C++ -*-===//
//
// PyTorch writes its archives (.pt, .pt2) as zip files whose members are stored without compression, so that tensors
// can be mapped. This reader takes exactly such archives, from bytes that stay alive and unchanged as long as it does;
// every offset is checked, so any byte string is safe to give. Zip64 is understood. Source: PKWARE APPNOTE 6.3.10,
// sections 4.3 and 4.5.3.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_ZIPARCHIVE_H
#define TC_SUPPORT_ZIPARCHIVE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tc {

class ZipArchive {
public:
  struct Member {
    uint64_t offset = 0; // of the data, from the start of the archive
    uint64_t size = 0;   // bytes
  };

  /// Reads the directory. The error says what is wrong, without the file's name.
  static llvm::Expected<ZipArchive> open(llvm::StringRef bytes);
  /// Null if there is no member of this name.
  const Member *find(llvm::StringRef name) const;
  /// The first member whose name ends with `suffix`, in the order of names; empty if there is none.
  llvm::StringRef findSuffix(llvm::StringRef suffix) const;
  llvm::StringRef contents(const Member &member) const { return bytes.substr(member.offset, member.size); }
  /// The first member that is compressed or encrypted, which reads as empty; empty if none is.
  llvm::StringRef findPacked() const { return packedName; }

private:
  llvm::StringRef bytes;
  llvm::StringMap<Member> members;
  llvm::StringRef packedName;
};

} // namespace tc

#endif // TC_SUPPORT_ZIPARCHIVE_H
