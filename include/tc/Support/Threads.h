//===- Threads.h - threads where the system gives them --------------------------------------------------*- C++ -*-===//
//
// A system may refuse threads (ulimit -u, a container's limit, no memory for stacks). LLVM's and the standard library's
// ways to make one end the process then; these go on with fewer, down to the caller alone.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_THREADS_H
#define TC_SUPPORT_THREADS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/ThreadPool.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace tc {

/// A thread with a main thread's stack and a stack of its own for signals, so that recursion which is too deep reaches
/// the crash handler. Joined when destroyed.
class Thread {
public:
  /// Null where the system gives none; `work` is not called then.
  static std::unique_ptr<Thread> start(std::function<void()> work);
  ~Thread();
  Thread(const Thread &) = delete;
  Thread &operator=(const Thread &) = delete;

private:
  struct State;
  explicit Thread(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// Calls work(0) to work(count - 1), each once, on as many threads as there are, and returns when all have returned.
/// work(0), and all that found no thread, are called by the caller.
void runOnThreads(unsigned count, llvm::function_ref<void(unsigned)> work);

/// A pool for MLIR of at most so many threads, which may be none: who waits does the work.
class ThreadPool final : public llvm::ThreadPoolInterface {
public:
  explicit ThreadPool(unsigned threads);
  ~ThreadPool() override;
  void wait() override;
  void wait(llvm::ThreadPoolTaskGroup &group) override;
  unsigned getMaxConcurrency() const override { return concurrency; }

private:
  using Group = llvm::ThreadPoolTaskGroup;
  struct Task {
    llvm::unique_function<void()> work;
    Group *group;
  };

  void asyncEnqueue(llvm::unique_function<void()> task, Group *group) override;
  /// Does a task of the group, or any for null, while one waits. Needs and keeps the lock.
  bool doOne(std::unique_lock<std::mutex> &lock, const Group *group);
  bool isBusy(const Group *group) const;
  void waitFor(const Group *group);
  void serve();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> tasks;
  std::vector<const Group *> running; ///< the group of each task that is being done
  bool ends = false;
  unsigned concurrency = 1;
  std::vector<std::unique_ptr<Thread>> threads;
};

} // namespace tc

#endif // TC_SUPPORT_THREADS_H
