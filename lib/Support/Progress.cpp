//===- Progress.cpp - a bar on a terminal for what takes over a second --------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/Progress.h"
#include "tc/Support/Threads.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace {

constexpr std::chrono::milliseconds kDelay(1000), kPeriod(100);
constexpr unsigned kWidth = 30;

struct State {
  std::mutex mutex;
  std::condition_variable wake;
  std::unique_ptr<tc::Thread> thread;
  bool running = false, shown = false, color = false;
  std::string name, detail;
  double begin = 0, end = 0;
  double drawn = 0; ///< the largest fraction so far
  uint64_t work = 0, items = 0;
  std::atomic<uint64_t> workDone = 0, itemsDone = 0;
  std::atomic<int> holds = 0;
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

/// Of the terminal; a line that is longer wraps, and cannot be erased.
unsigned getColumns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/// With the mutex held.
void draw(State &s, double seconds) {
  const double inside = s.work ? std::min(1.0, double(s.workDone) / double(s.work)) : 0;
  s.drawn = std::max(s.drawn, std::min(1.0, s.begin + inside * (s.end - s.begin)));
  const unsigned filled = unsigned(s.drawn * kWidth);
  std::string bar = std::string(filled, '=') + std::string(kWidth - filled, ' ');
  std::string text = s.name;
  if (s.items)
    text += llvm::formatv(" {0}/{1}", std::min<uint64_t>(s.itemsDone, s.items), s.items).str();
  if (!s.detail.empty())
    text += " " + s.detail;
  // The seconds are seen in any case, with the bar, its frame and a column that stays free for the cursor.
  const std::string time = llvm::formatv(", {0:f0} s", seconds).str();
  const size_t taken = kWidth + 4 + time.size(), columns = getColumns();
  if (text.size() + taken > columns)
    text = llvm::StringRef(text).take_front(columns > taken + 3 ? columns - taken - 3 : 0).str() + "...";
  if (s.color)
    bar = "\033[32m" + bar + "\033[0m";
  print("\r\033[K[" + bar + "] " + text + time);
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

void tc::progress::beginStage(llvm::StringRef name, double begin, double end) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.holds)
    return;
  s.name = name.str();
  s.detail.clear();
  s.begin = begin;
  s.end = end;
  s.work = s.items = 0;
  s.workDone = s.itemsDone = 0;
}

void tc::progress::setWork(uint64_t work, uint64_t items) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.holds)
    return;
  s.work = work;
  s.items = items;
  s.workDone = s.itemsDone = 0;
}

void tc::progress::advance(uint64_t work, uint64_t items) {
  State &s = state();
  if (s.holds)
    return;
  s.workDone += work;
  s.itemsDone += items;
}

void tc::progress::setDetail(const std::string &text) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.holds)
    return;
  s.detail = text;
  // Names of nodes are anybody's: nothing in them moves the cursor, and a byte is a column.
  for (char &c : s.detail)
    if (!llvm::isPrint(c))
      c = '?';
}

tc::progress::Hold::Hold() { ++state().holds; }
tc::progress::Hold::~Hold() { --state().holds; }

void tc::progress::clear() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  erase(s);
  s.quietUntil = std::chrono::steady_clock::now() + kDelay;
}
