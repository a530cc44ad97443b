//===- Limits.h - the memory and time that a compile may take -------------------------------------------*- C++ -*-===//
//
// For --max-compile-memory and --max-compile-time. A compile that would exceed one ends the process with a sentence and
// exit code 5, and leaves no file behind; one that is done in time is as without limits, but for schedules by
// measurement and the search of --precision auto, which stop early enough (getEnd).
//
// Memory is what the process may write to (RLIMIT_DATA), so that files which are mapped do not count; the system
// refuses more, and the handler of memory that is used up says so.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_LIMITS_H
#define TC_LIB_DRIVER_LIMITS_H

#include "tc/Driver/Compile.h"
#include "tc/Support/Threads.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <sys/resource.h>

namespace tc::driver {

class Limits {
public:
  using Clock = std::chrono::steady_clock;

  explicit Limits(const CompileRequest &request) : request(request), start(Clock::now()) {}
  ~Limits();
  Limits(const Limits &) = delete;
  Limits &operator=(const Limits &) = delete;

  /// They hold from now on. Returns why one cannot be kept, or nothing.
  std::string begin();
  /// The time no longer counts: what is done gets its names, all of them or none.
  void done();
  bool hasTime() const { return request.maxSeconds > 0; }
  /// When the compile has to be over; nullopt: whenever it is.
  std::optional<Clock::time_point> getEnd() const;

private:
  void watch();

  const CompileRequest &request;
  const Clock::time_point start;
  std::optional<rlimit> memoryBefore;
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
  std::unique_ptr<Thread> watcher;
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_LIMITS_H
