//===- Logging.h - named log channels -----------------------------------------------------------------*- C++ -*-===//
//
// What `--logs fusion,memory` prints. A channel is a name:
//
//   passes     each pass with its time, and what it changed
//   shapes     element type and sizes of each node's values, at the end of phase prim
//   fusion     each decision of fusion, and each refusal with its reason
//   schedule   the strategy and its parameters that each region got
//   kernel     which kernel computes which nodes, and which share one
//   memory     the place and lifetime of each value, and what they add up to
//   tuning     each schedule that was measured beside the default one, and what each kernel got
//   guards     what runs are refused for, where it comes from and how to give it up
//   quantize   the range, the scale and the error of each product that --quantize looks at
//   precision  each mixture of types that --precision auto:R measures
//   verify     the error of each function, variant and size, and the search for the first node that is off
//   cache      which artifact and which kernels were found in the compile cache, and which not
//
// Nothing is printed, and no text is built, unless the channel was enabled:
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

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace tc::log {

inline constexpr llvm::StringLiteral kCacheChannel = "cache";
inline constexpr llvm::StringLiteral kPrecisionChannel = "precision";
inline constexpr llvm::StringLiteral kQuantizeChannel = "quantize";

/// The channels that there are.
llvm::ArrayRef<llvm::StringRef> getChannels();
/// Enables the channels named in `list`, separated by commas; `all` enables every channel. The first name that is no
/// channel; empty where all are.
std::string enable(llvm::StringRef list);
/// Whether lines of `channel` are wanted.
bool isEnabled(llvm::StringRef channel);
/// Prints each line of `text` with "<channel>: " in front.
void write(llvm::StringRef channel, llvm::StringRef text);
/// Sends all channels to `stream` (standard error at first), which must live as long as logging does.
void setStream(llvm::raw_ostream &stream);

} // namespace tc::log

#endif // TC_SUPPORT_LOGGING_H
