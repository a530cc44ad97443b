//===- Logging.cpp - named log channels
//-----------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/Logging.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

namespace {
struct State {
  llvm::StringSet<> channels;
  bool all = false;
  llvm::raw_ostream *stream = nullptr;
};
State &state() {
  static State instance;
  return instance;
}
} // namespace

void tc::log::enable(llvm::StringRef list) {
  llvm::SmallVector<llvm::StringRef> names;
  list.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef name : names)
    if (name.trim() == "all")
      state().all = true;
    else
      state().channels.insert(name.trim());
}

bool tc::log::isEnabled(llvm::StringRef channel) { return state().all || state().channels.contains(channel); }

llvm::raw_ostream &tc::log::out(llvm::StringRef channel) {
  llvm::raw_ostream &stream = state().stream ? *state().stream : llvm::errs();
  return stream << channel << ": ";
}

void tc::log::setStream(llvm::raw_ostream &stream) { state().stream = &stream; }
