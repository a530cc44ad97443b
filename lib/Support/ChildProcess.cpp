//===- ChildProcess.cpp - work that may crash or take too much, in a process of its own ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ChildProcess.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tc;

namespace {

/// Bytes of address space that this process has; 0 where the system does not say.
uint64_t getAddressSpace() {
  FILE *file = std::fopen("/proc/self/statm", "re");
  if (!file)
    return 0;
  unsigned long long pages = 0;
  int found = std::fscanf(file, "%llu", &pages);
  std::fclose(file);
  return found == 1 ? pages * uint64_t(sysconf(_SC_PAGESIZE)) : 0;
}

void limit(int resource, rlim_t value) {
  rlimit now;
  if (getrlimit(resource, &now) != 0)
    return;
  now.rlim_cur = std::min(now.rlim_cur, value);
  now.rlim_max = std::min(now.rlim_max, value);
  setrlimit(resource, &now);
}

/// The child's whole life.
[[noreturn]] void live(int out, pid_t parent, uint64_t addressSpace, const ChildLimits &limits,
                       llvm::function_ref<std::string()> work) {
  // Killed with its parent, and its crash is no defect of tc.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGPIPE})
    std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Libraries print what they dislike; our sentence is the only one that a user sees.
  if (int null = open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0)
    for (int fd = 0; fd < 3; ++fd)
      if (fd != out)
        dup2(null, fd);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, limits.seconds);
  if (addressSpace)
    limit(RLIMIT_AS, addressSpace + limits.moreBytes);
  const std::string result = work();
  for (size_t at = 0; at < result.size();) {
    ssize_t written = write(out, result.data() + at, result.size() - at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      _exit(1);
    at += size_t(written);
  }
  _exit(0);
}

} // namespace

std::optional<std::string> tc::runInChild(const ChildLimits &limits, llvm::function_ref<std::string()> work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return std::nullopt;
  const uint64_t addressSpace = getAddressSpace();
  const pid_t parent = getpid();
  // What is buffered must not be written twice.
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    live(ends[1], parent, addressSpace, limits, work);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return std::nullopt;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(2 * limits.seconds);
  std::string result;
  bool complete = false;
  while (!complete) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait = {ends[0], POLLIN, 0};
    const int ready = left > 0 ? poll(&wait, 1, int(left)) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      break;
    char buffer[1 << 16];
    const ssize_t got = read(ends[0], buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 || result.size() > limits.moreBytes)
      break;
    complete = got == 0;
    result.append(buffer, size_t(got));
  }
  close(ends[0]);
  if (!complete)
    kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return std::nullopt;
  if (!complete || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return std::nullopt;
  return result;
}

void tc::killChildren() {
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child; children >> child;)
      kill(child, SIGKILL);
  }
}

ProgramResult tc::runProgram(const ChildLimits &limits, const std::vector<std::string> &words) {
  constexpr size_t kMostOutput = size_t(1) << 20;
  constexpr int kCannotStart = 127;
  ProgramResult result;
  std::vector<char *> argv;
  for (const std::string &word : words)
    argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2], started[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return result;
  if (pipe2(started, O_CLOEXEC) != 0) {
    close(ends[0]);
    close(ends[1]);
    return result;
  }
  const pid_t child = fork();
  if (child == 0) {
    // Other threads' locks may be taken here: system calls only.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGPIPE})
      std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (int null = open("/dev/null", O_RDONLY | O_CLOEXEC); null >= 0)
      dup2(null, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    limit(RLIMIT_CORE, 0);
    if (limits.moreBytes)
      limit(RLIMIT_AS, limits.moreBytes);
    execvp(argv[0], argv.data());
    const ssize_t told = write(started[1], "x", 1);
    _exit(told == 1 ? kCannotStart : 1);
  }
  close(ends[1]);
  close(started[1]);
  char mark = 0;
  ssize_t got = child < 0 ? 1 : 0;
  while (child > 0 && (got = read(started[0], &mark, 1)) < 0 && errno == EINTR)
    ;
  close(started[0]);
  const bool hasStarted = child > 0 && got == 0;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(limits.seconds);
  auto msLeft = [&] { return int(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count()); };
  // A program that it has left behind may hold the pipe open: its end is what counts.
  int status = 0;
  bool ended = child < 0, isOpen = true;
  while (!ended && msLeft() > 0) {
    pollfd wait = {ends[0], POLLIN, 0};
    char buffer[1 << 16];
    if (poll(&wait, isOpen, std::min(msLeft(), isOpen ? 50 : 2)) > 0) {
      const ssize_t count = read(ends[0], buffer, sizeof(buffer));
      isOpen = count > 0 || (count < 0 && errno == EINTR);
      if (count > 0 && result.output.size() < kMostOutput)
        result.output.append(buffer, size_t(count));
      if (isOpen)
        continue;
    }
    ended = waitpid(child, &status, WNOHANG) == child;
  }
  if (child > 0) {
    kill(-child, SIGKILL);
    while (!ended && waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
  }
  close(ends[0]);
  if (!hasStarted)
    return result;
  result.end = !ended              ? ProgramResult::End::TimedOut
               : WIFEXITED(status) ? ProgramResult::End::Exited
                                   : ProgramResult::End::Killed;
  result.code = !ended ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  return result;
}
