//===- Reproducer.cpp - what a defect of tc leaves behind ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Reproducer.h"

#include "tc/Support/ChildProcess.h"
#include "tc/Support/Progress.h"
#include "tc/Support/TemporaryPath.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace tc::driver;

namespace {

/// Longest time that writing a reproducer may take.
constexpr unsigned kSeconds = 120;

const Reproducer *active = nullptr;

void print(const std::string &text) {
  ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  (void)written;
}

/// The thread that ends the process; 0: none yet.
std::atomic<long> ending = 0;

/// Whether this thread is the one that ends the process. Others that come, too, wait for that; a second time the same
/// thread ends it at once.
void beginEnd(int code) {
  long none = 0, self = ::syscall(SYS_gettid);
  if (ending.compare_exchange_strong(none, self))
    return;
  if (none == self)
    _exit(code);
  for (;;)
    pause();
}

/// What must not outlive this process: files that are on their way, and programs that it waits for.
void removeTraces() {
  tc::TemporaryPath::removeAll();
  sys::RunInterruptHandlers();
}

/// Of operator new, and of what LLVM allocates by malloc.
void onOutOfMemory() {
  beginEnd(kMachine);
  if (const Reproducer *reproducer = active)
    reproducer->reportOutOfMemory();
  else
    print("tc-compile: error: no memory left; give tc-compile more memory\n");
  removeTraces();
  _exit(kMachine);
}

void onBadAllocation(void *, const char *, bool) { onOutOfMemory(); }

/// Whether the system gives no more memory. A stack that cannot grow, and a library that does not look whether it got
/// what it asked for, crash then.
bool isOutOfMemory() {
  constexpr size_t kBytes = size_t(16) << 20;
  void *memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return true;
  munmap(memory, kBytes);
  return false;
}

void onCrash(int) {
  if (isOutOfMemory())
    onOutOfMemory();
  beginEnd(kInternal);
  if (const Reproducer *reproducer = active)
    reproducer->reportCrash();
  else
    print("tc-compile: error: internal error: tc-compile crashed outside of any phase; this is a defect of tc, please "
          "report it with the model and the command\n");
  sys::RunInterruptHandlers();
  _exit(kInternal);
}

} // namespace

void tc::driver::endOutOfTime() {
  beginEnd(kMachine);
  progress::clear();
  killChildren();
  if (const Reproducer *reproducer = active)
    reproducer->reportOutOfTime();
  removeTraces();
  _exit(kMachine);
}

void tc::driver::installCrashHandler() {
  // A stack of its own: recursion that is too deep leaves none.
  static char stack[64 * 1024];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = onCrash;
  // A second thread may crash meanwhile, and the handler, too: both come back to it.
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(signal, &action, nullptr);
  std::set_new_handler(onOutOfMemory);
  install_bad_alloc_error_handler(onBadAllocation);
}

Reproducer::Reproducer(const CompileRequest &request)
    : request(request), precision(request.precision), nodePrecisions(request.nodePrecisions) {
  SmallString<128> file(request.debugDir);
  if (!request.debugDir.empty())
    sys::path::append(file, "reproducer.mlir");
  else
    file = (request.output.empty() || request.output == "-" ? sys::path::filename(request.model)
                                                            : StringRef(request.output))
               .str() +
           ".reproducer.mlir";
  path = file.str().str();
  note = request.model + ": note: the module before that phase is in " + path + "\n";
  setPhase(Phase::Import); // what fails before it is told, too
  active = this;
}

Reproducer::~Reproducer() { active = nullptr; }

void Reproducer::setTarget(machine::TargetKind kind) { target = kind; }

void Reproducer::setPrecision(const std::string &type, const std::vector<std::string> &ofNodes) {
  precision = type;
  nodePrecisions = ofNodes;
}

// Everything that a signal handler needs is made here.
void Reproducer::setPhase(Phase phase) {
  canWrite = false;
  const std::string where = " in phase " + getName(phase).str();
  crashed = request.model + ": error: internal error: tc-compile crashed" + where +
            "; this is a defect of tc, please report it with the model and this command: " + request.commandLine + "\n";
  outOfMemory = request.model + ": error: " +
                (request.maxMemoryBytes ? "the memory of --max-compile-memory " + request.maxMemory + " is used up" +
                                              where + "; allow more memory"
                                        : "no memory left" + where + "; give tc-compile more memory") +
                ", fewer threads (--jobs), or compile a smaller model\n";
  outOfTime = request.model + ": error: the time of --max-compile-time " + request.maxTime + " is over" + where +
              "; allow more time" + (request.verify ? ", leave --verify out" : "") + ", or compile a smaller model\n";
  if (phase == Phase::Import || request.executable.empty())
    return;
  command = {"tc-compile", request.model, "-o", path, "--precision", precision};
  auto add = [&](StringRef option, ArrayRef<std::string> values) {
    for (const std::string &value : values)
      command.insert(command.end(), {option.str(), value});
  };
  for (const std::string &text : nodePrecisions)
    command.push_back("--precision=" + text);
  add("--target", {machine::stringifyTargetKind(target).str()});
  if (target == machine::TargetKind::Cuda)
    add("--gpu", request.gpus);
  else
    add("--cpu", request.cpus);
  if (target == machine::TargetKind::Cpu && phase > Phase::Schedule)
    add("--mode", {request.mode});
  add("--custom-op", request.customOps);
  add("--dim", request.dims);
  add("--shape", request.shapes);
  add("--no-assume", request.noAssume);
  for (const std::string &pattern : request.staticInputs)
    command.push_back("--static-input=" + pattern);
  for (const std::string &pattern : request.innerOutputs)
    command.push_back("--outputs=" + pattern);
  if (request.stopAfter)
    command.push_back("--stop-after=" + std::to_string(request.stopAfter));
  for (const std::string &pattern : request.disabled)
    command.push_back("--disable=" + pattern);
  for (const std::string &text : request.backendFor)
    command.push_back("--backend-for=" + text);
  add("--jobs", {std::to_string(request.jobs)});
  if (request.checkBounds)
    command.push_back("--check-bounds");
  if (request.allowHostOps)
    command.push_back("--allow-host-ops");
  command.push_back("--compile-to=" + getName(Phase(unsigned(phase) - 1)).str());
  argv.clear();
  for (const std::string &word : command)
    argv.push_back(word.c_str());
  argv.push_back(nullptr);
  canWrite = true;
}

bool Reproducer::write() const {
  if (!canWrite)
    return false;
  // Not fork: its handlers may take locks that a crash left taken.
  pid_t child = _Fork();
  if (child < 0)
    return false;
  if (child == 0) {
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
      std::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    alarm(kSeconds);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd)
      dup2(null, fd);
    execv(request.executable.c_str(), const_cast<char *const *>(argv.data()));
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void Reproducer::reportOutOfMemory() const { print(outOfMemory); }
void Reproducer::reportOutOfTime() const { print(outOfTime); }

void Reproducer::reportCrash() const {
  print(crashed);
  if (write())
    print(note);
}
