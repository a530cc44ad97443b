//===- Target.h - from a variant's functions to object code ---------------------------------------------*- C++ -*-===//
//
// A backend compiles the host.variant ops of its device. The work of a variant is cut into parts that any thread may
// compile; how it is cut depends on the variant alone, never on the number of threads, so that the bytes are the same
// for any --jobs.
//
// Errors are sentences without a file name; the driver adds it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TARGET_TARGET_H
#define TC_TARGET_TARGET_H

#include "tc/Dialect/Host/IR/Host.h"

#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace tc::cache {
class Store;
} // namespace tc::cache

namespace tc::target {

/// How object code is made.
struct ObjectOptions {
  unsigned jobs = 0;    ///< threads; 0: as many as the machine has
  std::string debugDir; ///< if not empty: LLVM IR and assembly of every part go there
  /// Kernels of GPUs whose values do not fit the registers are an error.
  bool refusesSpills = false;
  /// If not null: of earlier compiles, where code is looked up and kept. Not with a debugDir, which shows code being
  /// made.
  cache::Store *cache = nullptr;
};

/// Code for a GPU. `arch` as in tcrt_section_t::arch.
struct DeviceObject {
  unsigned arch;
  std::string bytes;
};

/// A finished variant.
struct Object {
  std::string elf;
  uint64_t requires_ = 0; ///< TCRT_CPU_* bits
  std::vector<DeviceObject> cubins, ptx;
};

/// One variant on its way. `compilePart` is called once per part, from any thread; then `finish` once. An error with a
/// code of std::errc means that a file, a tool or memory is not there; others are defects of tc.
class VariantCompilation {
public:
  virtual ~VariantCompilation() = default;
  virtual unsigned getPartCount() const = 0;
  /// How much work a part is, in operations or what else grows with the time that it takes, and the kernels in it.
  struct PartSize {
    uint64_t work = 1, kernels = 1;
  };
  virtual PartSize getPartSize(unsigned part) const { return {}; }
  virtual llvm::Error compilePart(unsigned part) = 0;
  virtual llvm::Expected<Object> finish() = 0;
};

/// Code generation for one device.
class TargetBackend {
public:
  virtual ~TargetBackend() = default;
  virtual machine::DeviceKind getDevice() const = 0;
  /// What besides tc-compile itself decides the bytes: tools and files, so that another version is another text.
  virtual std::string describeTools() const { return ""; }
  /// An error, a part of a sentence, where there is no code for `machine`.
  virtual llvm::Error checkMachine(machine::MachineAttr machine) const { return llvm::Error::success(); }
  /// `variant` must stay until the compilation is destroyed.
  virtual llvm::Expected<std::unique_ptr<VariantCompilation>> begin(host::VariantOp variant,
                                                                    const ObjectOptions &options) = 0;
};

/// Adds a backend; a later one for the same device replaces the earlier. Not thread safe.
void registerBackend(std::unique_ptr<TargetBackend> backend);
/// Null if there is none.
TargetBackend *lookupBackend(machine::DeviceKind device);

/// Compiles all variants of `module` and replaces them by host.binary ops. Parts of all variants run side by side.
llvm::Error compileVariants(mlir::ModuleOp module, const ObjectOptions &options);

/// Checks that `elf` is what artifact_abi.h (part 2) allows: an x86-64 shared object with an entry point, no needed
/// library, no undefined symbol, no relocation but R_X86_64_RELATIVE, no thread-local storage, no constructors.
llvm::Error verifyObject(llvm::StringRef elf);

/// Registers the CPU backend.
void registerLLVMCPUBackend();
/// Registers the backend of NVIDIA GPUs, which needs the CPU backend too, and ptxas when it compiles.
void registerNVPTXBackend();

} // namespace tc::target

#endif // TC_TARGET_TARGET_H
