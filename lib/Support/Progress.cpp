//===- Progress.cpp - a bar on a terminal for what takes over a second --------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/Progress.h"
#include "tc/Support/Threads.h"

#include "llvm/Support/FormatVariadic.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>

namespace {

constexpr std::chrono::milliseconds kDelay(1000), kPeriod(100);
constexpr unsigned kWidth = 30;

struct State {
  std::mutex mutex;
  std::condition_variable wake;
  std::unique_ptr<tc::Thread> thread;
  bool running = false, shown = false, color = false;
  std::string name;
  unsigned stage = 0, stageCount = 1;
  uint64_t count = 0;
  std::atomic<uint64_t> done = 0;
  std::chrono::steady_clock::time_point quietUntil; ///< nothing is drawn before
};
State &state() {
  static State instance;
  return instance;
}

void print(const std::string &text) {
  ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  (void)written;
}

/// With the mutex held.
void erase(State &s) {
  if (s.shown)
    print("\r\033[K");
  s.shown = false;
}

/// With the mutex held.
void draw(State &s, double seconds) {
  uint64_t done = std::min<uint64_t>(s.done, s.count);
  double inside = s.count ? double(done) / double(s.count) : 0;
  unsigned filled = unsigned((s.stage + inside) / s.stageCount * kWidth);
  std::string bar = std::string(filled, '=') + std::string(kWidth - filled, ' ');
  if (s.color)
    bar = "\033[32m" + bar + "\033[0m";
  std::string units = s.count ? llvm::formatv(" {0}/{1}", done, s.count).str() : "";
  print(llvm::formatv("\r\033[K[{0}] {1}{2}, {3:f0} s", bar, s.name, units, seconds).str());
  s.shown = true;
}

void run(State &s) {
  auto start = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(s.mutex);
  for (auto delay = kDelay; !s.wake.wait_for(lock, delay, [&] { return !s.running; }); delay = kPeriod)
    if (const auto now = std::chrono::steady_clock::now(); now >= s.quietUntil)
      draw(s, std::chrono::duration<double>(now - start).count());
}

} // namespace

tc::progress::Bar::Bar(bool wanted) {
  const char *terminal = std::getenv("TERM");
  if (!wanted || !isatty(STDERR_FILENO) || !terminal || llvm::StringRef(terminal) == "dumb")
    return;
  State &s = state();
  const char *noColor = std::getenv("NO_COLOR");
  s.color = !noColor || !*noColor;
  s.running = true;
  s.thread = tc::Thread::start([&s] { run(s); });
}

tc::progress::Bar::~Bar() {
  State &s = state();
  if (!s.thread)
    return;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.running = false;
    erase(s);
  }
  s.wake.notify_all();
  s.thread.reset();
}

void tc::progress::beginStage(llvm::StringRef name, unsigned stage, unsigned stageCount) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.name = name.str();
  s.stage = stage;
  s.stageCount = stageCount;
  s.count = 0;
  s.done = 0;
}

void tc::progress::setCount(uint64_t count) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.count = count;
}

void tc::progress::advance(uint64_t units) { state().done += units; }

void tc::progress::clear() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  erase(s);
  s.quietUntil = std::chrono::steady_clock::now() + kDelay;
}
