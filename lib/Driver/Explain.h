//===- Explain.h - what the compiler did and why --------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_EXPLAIN_H
#define TC_LIB_DRIVER_EXPLAIN_H

#include "tc/Autotune/Tune.h"
#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Dialect/Machine/IR/Machine.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <string>

namespace tc::driver {

/// Gathered while the phases run, printed at the end.
struct Explanation {
  GraphToPrimReport report;
  int64_t nodes = -1;                       ///< of the model, after phase import
  int64_t graphs = 0;                       ///< functions and nested graphs
  int64_t distinctOperators = 0;            ///< that the nodes are of
  int64_t assertions = 0;                   ///< nodes that refuse a run, or nothing
  llvm::StringMap<std::string> sources;     ///< Python source line of a node, by its name
  std::map<std::string, int64_t> hostCalls; ///< of functions of the user's own, by name; after phase fuse
  llvm::json::Array kernels;                ///< one object per kernel.region, after phase fuse
  llvm::json::Object totals;                ///< of these; after phase host, too, what they became
  llvm::json::Object memory;                ///< after phase host
  llvm::json::Object cudaGraphs;            ///< after phase host, of a GPU's launches; empty: there are none
  llvm::json::Object quantization;          ///< what --quantize decided; empty: it was not asked
  llvm::json::Object precision;             ///< what --precision auto chose; empty: it was not asked
  llvm::json::Array backendParts;           ///< what --backend-for cut out, and what not; empty: it was not asked
  int64_t launches = -1;

  void addNodes(mlir::ModuleOp module);
  void addKernels(mlir::ModuleOp module);
  /// Afterwards, in the order of the kernels.
  void addTuning(llvm::ArrayRef<autotune::Outcome> regions);
  /// After phase schedule.
  void addSchedules(mlir::ModuleOp module, machine::TargetKind target);
  void addMemory(mlir::ModuleOp module);
  /// After phase host: which launches CUDA graphs hold, and what ends these.
  void addCudaGraphs(mlir::ModuleOp module);
  std::string toJson(llvm::StringRef model) const;
  std::string toText(llvm::StringRef model) const;

private:
  /// Nodes that cannot be compiled, and those that run on the host in between.
  int64_t countBreaks() const;
  /// Source lines of nodes, in order, without repetition.
  llvm::json::Array getSources(llvm::ArrayRef<llvm::StringRef> names) const;
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_EXPLAIN_H
