//===- OutputFile.h - files that appear whole or not at all ---------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_OUTPUTFILE_H
#define TC_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace tc {

/// Writes a file that has no name until it is complete (tc/Format/File.h). Devices and pipes are written in place. The
/// error is a sentence that begins with the path; a stream that could not be written, to a full disk, is one.
llvm::Error writeOutputFile(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace tc

#endif // TC_SUPPORT_OUTPUTFILE_H
