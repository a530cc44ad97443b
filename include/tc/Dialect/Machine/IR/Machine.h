//===- Machine.h - what code is made for ----------------------------------------------------------------*- C++ -*-===//
//
// Machines are attributes (Machine.td) that variants carry. The names of targets, CPU variants and chips have their one
// parser here, and those that are known by name stand in Machines.def. Example:
//
//   Expected<MachineAttr> machine = parseMachine(context, "sm_90");
//   if (auto gpu = dyn_cast<GpuAttr>(*machine))
//     use(gpu.getSharedBytesPerBlock());
//
// Whoever makes machines inside of a pass declares the dialect there.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_MACHINE_IR_MACHINE_H
#define TC_DIALECT_MACHINE_IR_MACHINE_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace tc::machine {

/// The vector registers of a thread, of which kernels hold their sums.
struct VectorUnit {
  /// Of a register.
  int64_t bits;
  int64_t registers;
  /// f32 lanes of a register; every kernel computes this many lanes of whatever type at a time.
  constexpr int64_t width() const { return bits / 32; }
};

/// Bytes of the levels of caches of a CPU: of a core, of a core, of the cores that share it.
struct CacheSizes {
  int64_t l1, l2, l3;
};

/// The registers that schedules of CPUs are made for, which hold a number for each: AVX2, AVX-512. The widest last.
inline constexpr VectorUnit kVectorUnits[] = {{256, 16}, {512, 32}};
/// The caches that schedules of CPUs count on, as one schedule serves all variants. What should stay in one takes a
/// part of it.
inline constexpr CacheSizes kCaches = {32 << 10, 2 << 20, 32 << 20};
/// Flops of a core at its best in the time that a byte of memory takes, of which schedules of CPUs choose.
inline constexpr double kCpuFlopsPerByte = 16;
/// Threads of a warp of any GPU.
inline constexpr int64_t kWarpThreads = 32;

} // namespace tc::machine

#include "tc/Dialect/Machine/IR/MachineDialect.h.inc"
#include "tc/Dialect/Machine/IR/MachineEnums.h.inc"
#include "tc/Dialect/Machine/IR/MachineInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Machine/IR/MachineAttrs.h.inc"

namespace tc::machine {

// Errors of the parsers are sentences without a full stop, the name first and what is known as the remedy.

/// `cpu`, `cuda` or `reference`.
llvm::Expected<TargetKind> parseTarget(llvm::StringRef name);
/// A variant of Machines.def, or `native`: the CPU that this runs on, with all its features by name.
llvm::Expected<CpuAttr> parseCpu(mlir::MLIRContext *context, llvm::StringRef name);
/// sm_N or sm_Na, from the oldest of Machines.def on. A chip that is not listed is taken to be like the next older one.
llvm::Expected<GpuAttr> parseGpu(mlir::MLIRContext *context, llvm::StringRef name);
/// The name of GPUs of a compute capability, 90 for 9.0.
std::string getGpuName(unsigned version);
/// A CPU variant or a GPU.
llvm::Expected<MachineAttr> parseMachine(mlir::MLIRContext *context, llvm::StringRef name);

/// What runs the kernels of a target.
DeviceKind getDevice(TargetKind target);
/// The target whose code generators serve a device.
TargetKind getTarget(DeviceKind device);
/// The targets by name, for an option of a pass.
llvm::cl::ValuesClass getTargetValues();

/// The names of the CPU variants, joined by ", ".
std::string getCpuNames();
/// The CPU variants that an artifact has where nobody says which, the best last.
llvm::SmallVector<CpuAttr> getDefaultCpus(mlir::MLIRContext *context);
/// The first CPU variant that has these.
CpuAttr getFirstCpuWith(mlir::MLIRContext *context, CpuUnits units);
/// For the program that launches a GPU's kernels: the oldest CPU that tc supports.
CpuAttr getLauncherCpu(mlir::MLIRContext *context);
/// The chips that an artifact has kernels for where nobody says which.
llvm::SmallVector<GpuAttr> getDefaultGpus(mlir::MLIRContext *context);
/// What schedules count on, as one schedule serves all chips.
GpuAttr getDefaultGpu(mlir::MLIRContext *context);
GpuAttr getOldestGpu(mlir::MLIRContext *context);
/// Sorts by the places in Machines.def, the best last, and removes repetitions.
void sortCpus(llvm::SmallVectorImpl<CpuAttr> &cpus);

} // namespace tc::machine

#endif // TC_DIALECT_MACHINE_IR_MACHINE_H
