//===- Logging.cpp - named log channels ---------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/Logging.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <mutex>
#include <string>

namespace {
struct State {
  llvm::StringSet<> channels;
  bool all = false;
  llvm::raw_ostream *stream = nullptr;
  std::mutex mutex;
};
State &state() {
  static State instance;
  return instance;
}
} // namespace

llvm::ArrayRef<llvm::StringRef> tc::log::getChannels() {
  static const llvm::StringRef channels[] = {"passes",         "shapes",          "fusion", "schedule",
                                             "kernel",         "memory",          "tuning", "guards",
                                             kQuantizeChannel, kPrecisionChannel, "verify", kCacheChannel};
  return channels;
}

std::string tc::log::enable(llvm::StringRef list) {
  llvm::SmallVector<llvm::StringRef> names;
  list.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef name : names) {
    name = name.trim();
    if (name == "all")
      state().all = true;
    else if (llvm::is_contained(getChannels(), name))
      state().channels.insert(name);
    else
      return name.str();
  }
  return "";
}

bool tc::log::isEnabled(llvm::StringRef channel) { return state().all || state().channels.contains(channel); }

void tc::log::write(llvm::StringRef channel, llvm::StringRef text) {
  std::string all;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    all += channel.str() + ": " + line.str() + "\n";
    text = rest;
  }
  std::lock_guard<std::mutex> lock(state().mutex);
  (state().stream ? *state().stream : llvm::errs()) << all;
}

void tc::log::setStream(llvm::raw_ostream &stream) { state().stream = &stream; }
