//===- Reproducer.h - what a defect of tc leaves behind -------------------------------------------------*- C++ -*-===//
//
// An internal error, and a crash even more so, is a defect of tc in any case. Both print a sentence with the phase and
// the command, and write the module that the phase chokes on, so that `tc-compile X.mlir` fails the same way: another
// tc-compile compiles the model up to the phase before. In another process, because this one may have no stack or no
// heap left, and because keeping a copy of the module before each phase would cost every compile.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_REPRODUCER_H
#define TC_DRIVER_REPRODUCER_H

#include "tc/Driver/Compile.h"

namespace tc::driver {

/// Reports crashes of this process from now on, in whatever threads and however many, and memory that is used up.
void installCrashHandler();

/// Ends the process because --max-compile-time is over: a sentence, exit code 5, and nothing is left behind.
[[noreturn]] void endOutOfTime();

/// What is compiled now, and how to do it again. One lives at a time.
class Reproducer {
public:
  /// `request` must outlive it.
  explicit Reproducer(const CompileRequest &request);
  ~Reproducer();
  Reproducer(const Reproducer &) = delete;
  Reproducer &operator=(const Reproducer &) = delete;
  void setTarget(machine::TargetKind kind);
  /// What --precision auto chose.
  void setPrecision(const std::string &type, const std::vector<std::string> &ofNodes);
  void setPhase(Phase phase);
  /// The module before the current phase: beside the output, or in the debug folder.
  const std::string &getPath() const { return path; }
  /// Writes it. False where there is nothing before the phase, or it fails once more. Safe in a signal handler.
  bool write() const;
  /// Says that tc-compile crashed, and writes the module. Safe in a signal handler.
  void reportCrash() const;
  /// Says that there is no memory left. Allocates none.
  void reportOutOfMemory() const;
  /// Says that the time which a compile may take is over.
  void reportOutOfTime() const;

private:
  const CompileRequest &request;
  machine::TargetKind target = machine::TargetKind::Cpu;
  std::string precision;
  std::vector<std::string> nodePrecisions;
  std::string path, note, crashed, outOfMemory, outOfTime;
  std::vector<std::string> command;
  std::vector<const char *> argv;
  volatile bool canWrite = false;
};

} // namespace tc::driver

#endif // TC_DRIVER_REPRODUCER_H
