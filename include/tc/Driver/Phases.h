//===- Phases.h - the phases and their pipelines --------------------------------------------------------*- C++ -*-===//
//
// A phase is a name, a pipeline that takes a module from the end of the phase before to its own end, and a pass
// tc-verify-<phase> that says what holds then. `tc-compile --compile-to=<phase>` stops at one, tc-opt runs one with
// --tc-phase-<phase>, and both start from the text of any.
//
// To add a pass to a phase: one line in its build function in Phases.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_PHASES_H
#define TC_DRIVER_PHASES_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Dialect/Machine/IR/Machine.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

#include <optional>

namespace tc::cache {
class Store;
} // namespace tc::cache

namespace tc::driver {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "tc/Driver/Passes.h.inc"

/// In order.
enum class Phase { Import, Prim, Fuse, Schedule, Kernel, Host, Object, Artifact };
inline constexpr unsigned kPhaseCount = 8;

llvm::StringRef getName(Phase phase);
/// What a module is at the end of the phase.
llvm::StringRef getMeaning(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);
/// The phase whose end `module` stands at, from what it holds.
Phase detectPhase(mlir::ModuleOp module);

/// What the pipelines of the phases can be told.
struct PhaseOptions : public mlir::PassPipelineOptions<PhaseOptions> {
  ListOption<std::string> dims{
      *this, "dim", llvm::cl::desc("sizes of named dims: batch=1, batch=1..64 or batch=multiple-of:8 (prim)")};
  ListOption<std::string> shapes{*this, "shape", llvm::cl::desc("sizes of inputs: x=1x3x224x224 (prim)")};
  ListOption<std::string> customOps{*this, "custom-op", llvm::cl::desc("JSON files of custom operators (prim)")};
  Option<bool> allowHostOps{*this, "allow-host-ops",
                            llvm::cl::desc("custom operators compute what tc refuses of its own (prim)"),
                            llvm::cl::init(false)};
  Option<bool> checkBounds{*this, "check-bounds", llvm::cl::desc("wild indices fail the run (prim)"),
                           llvm::cl::init(false)};
  Option<std::string> precision{*this, "precision", llvm::cl::desc("of f32 products: f32, tf32, bf16 or f16 (prim)"),
                                llvm::cl::init("f32")};
  ListOption<std::string> nodePrecisions{*this, "node-precision",
                                         llvm::cl::desc("NODE=PRECISION, of some nodes (prim, schedule)")};
  Option<bool> fuse{*this, "fuse", llvm::cl::desc("false: one primitive per kernel (fuse)"), llvm::cl::init(true)};
  ListOption<std::string> disabled{*this, "disable", llvm::cl::desc("nodes that are not fused, by pattern (fuse)")};
  ListOption<std::string> staticInputs{*this, "static-input",
                                       llvm::cl::desc("inputs that seldom change, by name or pattern (host)")};
  ListOption<std::string> variants{*this, "variants", llvm::cl::desc("machines by name, best last (kernel)")};
  Option<machine::TargetKind> target{*this, "device", llvm::cl::desc("what the code is for (fuse, schedule)"),
                                     llvm::cl::init(machine::TargetKind::Cpu), machine::getTargetValues()};
  Option<unsigned> jobs{*this, "jobs", llvm::cl::desc("threads, 0: all (object)"), llvm::cl::init(0)};
  Option<std::string> debugDir{*this, "debug-dir", llvm::cl::desc("folder for LLVM IR and assembly (object)"),
                               llvm::cl::init("")};
  Option<bool> refusesSpills{*this, "refuse-spills",
                             llvm::cl::desc("kernels of GPUs whose values do not fit the registers fail (object)"),
                             llvm::cl::init(false)};
  /// If set: filled by the conversion from graph to prim.
  GraphToPrimReport *report = nullptr;
  /// If set: where code of earlier compiles is (object).
  cache::Store *cache = nullptr;
};

/// Appends the passes of a phase, without its verifier. Import and Artifact have no passes.
void buildPhasePipeline(Phase phase, mlir::OpPassManager &manager, const PhaseOptions &options);
/// Appends tc-verify-<phase>; none for Artifact.
void addPhaseVerifier(Phase phase, mlir::OpPassManager &manager);
/// Registers --tc-phase-<name> for all phases and the passes of Passes.td. Once per process.
void registerPhases();

} // namespace tc::driver

#endif // TC_DRIVER_PHASES_H
