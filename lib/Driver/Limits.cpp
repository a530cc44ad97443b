//===- Limits.cpp - the memory and time that a compile may take ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Limits.h"

#include "tc/Driver/Reproducer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace tc::driver;

std::string Limits::begin() {
  if (request.maxMemoryBytes) {
    rlimit now = {};
    if (getrlimit(RLIMIT_DATA, &now) != 0)
      return std::string("--max-compile-memory cannot be kept: ") + strerror(errno);
    memoryBefore = now;
    now.rlim_cur = std::min<rlim_t>(now.rlim_cur, request.maxMemoryBytes);
    if (setrlimit(RLIMIT_DATA, &now) != 0)
      return std::string("--max-compile-memory cannot be kept: ") + strerror(errno);
  }
  if (hasTime()) {
    watcher = Thread::start([this] { watch(); });
    if (!watcher)
      return "--max-compile-time cannot be kept: the system gives no thread that would watch the time";
  }
  return "";
}

Limits::~Limits() {
  done();
  watcher.reset();
  if (memoryBefore)
    setrlimit(RLIMIT_DATA, &*memoryBefore);
}

void Limits::done() {
  {
    // Where the time is over just now, this waits for the end of the process.
    std::lock_guard<std::mutex> lock(mutex);
    isDone = true;
  }
  changed.notify_all();
}

std::optional<Limits::Clock::time_point> Limits::getEnd() const {
  if (!hasTime())
    return std::nullopt;
  // A number of seconds that no clock holds is no limit.
  return start +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(request.maxSeconds, 1e9)));
}

void Limits::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  if (!changed.wait_until(lock, *getEnd(), [this] { return isDone; }))
    endOutOfTime();
}
