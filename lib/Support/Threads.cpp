//===- Threads.cpp - threads where the system gives them ----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/Threads.h"

#include <algorithm>
#include <csignal>
#include <pthread.h>

using namespace tc;

/// Code generation recurses over expressions.
static constexpr size_t kStackBytes = size_t(8) << 20;

struct Thread::State {
  std::function<void()> work;
  pthread_t thread;

  static void *main(void *argument) {
    // Above all that the thread will push, so that a stack that is full leaves it alone.
    alignas(16) char signals[64 * 1024];
    stack_t alternate = {};
    alternate.ss_sp = signals;
    alternate.ss_size = sizeof signals;
    sigaltstack(&alternate, nullptr);
    static_cast<State *>(argument)->work();
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, nullptr);
    return nullptr;
  }
};

Thread::Thread(std::unique_ptr<State> state) : state(std::move(state)) {}

std::unique_ptr<Thread> Thread::start(std::function<void()> work) {
  auto state = std::make_unique<State>();
  state->work = std::move(work);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return nullptr;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  int failed = pthread_create(&state->thread, &attributes, State::main, state.get());
  pthread_attr_destroy(&attributes);
  return failed ? nullptr : std::unique_ptr<Thread>(new Thread(std::move(state)));
}

Thread::~Thread() { pthread_join(state->thread, nullptr); }

void tc::runOnThreads(unsigned count, llvm::function_ref<void(unsigned)> work) {
  std::vector<std::unique_ptr<Thread>> threads;
  unsigned next = 1;
  for (; next < count; ++next) {
    std::unique_ptr<Thread> thread = Thread::start([work, next] { work(next); });
    if (!thread)
      break;
    threads.push_back(std::move(thread));
  }
  if (count)
    work(0);
  for (; next < count; ++next)
    work(next);
}

ThreadPool::ThreadPool(unsigned wanted) {
  for (unsigned i = 0; i < wanted; ++i) {
    std::unique_ptr<Thread> thread = Thread::start([this] { serve(); });
    if (!thread)
      break;
    threads.push_back(std::move(thread));
  }
  concurrency = std::max<unsigned>(1, unsigned(threads.size()));
}

ThreadPool::~ThreadPool() {
  wait();
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
  }
  changed.notify_all();
  threads.clear();
}

void ThreadPool::asyncEnqueue(llvm::unique_function<void()> task, Group *group) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back({std::move(task), group});
  }
  changed.notify_all();
}

bool ThreadPool::doOne(std::unique_lock<std::mutex> &lock, const Group *group) {
  auto found =
      std::find_if(tasks.begin(), tasks.end(), [&](const Task &task) { return !group || task.group == group; });
  if (found == tasks.end())
    return false;
  Task task = std::move(*found);
  tasks.erase(found);
  running.push_back(task.group);
  lock.unlock();
  task.work();
  task.work = nullptr; // what it holds may be somebody's who waits
  lock.lock();
  running.erase(std::find(running.begin(), running.end(), task.group));
  changed.notify_all();
  return true;
}

bool ThreadPool::isBusy(const Group *group) const {
  auto is = [&](const Group *other) { return !group || other == group; };
  return std::any_of(tasks.begin(), tasks.end(), [&](const Task &task) { return is(task.group); }) ||
         std::any_of(running.begin(), running.end(), is);
}

void ThreadPool::waitFor(const Group *group) {
  std::unique_lock<std::mutex> lock(mutex);
  while (isBusy(group))
    if (!doOne(lock, group))
      changed.wait(lock);
}

void ThreadPool::wait() { waitFor(nullptr); }
void ThreadPool::wait(Group &group) { waitFor(&group); }

void ThreadPool::serve() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!ends)
    if (!doOne(lock, nullptr))
      changed.wait(lock);
}
