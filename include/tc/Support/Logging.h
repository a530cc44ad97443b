//===- Logging.h - named log channels -----------------------------------------------------------------*- C++ -*-===//
//
// What `--logs fusion,memory` prints. A channel is a name; nothing is printed, and no text is built, unless it was
// enabled:
//
//   if (log::isEnabled("fusion"))
//     log::write("fusion", "relu joins conv");
//
// Channels are enabled once, before threads start. Writing is thread safe; the lines of one call stay together.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_LOGGING_H
#define TC_SUPPORT_LOGGING_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace tc::log {

/// Enables the channels named in `list`, separated by commas; `all` enables every channel.
void enable(llvm::StringRef list);
/// Whether lines of `channel` are wanted.
bool isEnabled(llvm::StringRef channel);
/// Prints each line of `text` with "<channel>: " in front.
void write(llvm::StringRef channel, llvm::StringRef text);
/// Sends all channels to `stream` (standard error at first), which must live as long as logging does.
void setStream(llvm::raw_ostream &stream);

} // namespace tc::log

#endif // TC_SUPPORT_LOGGING_H
