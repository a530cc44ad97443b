//===- TorchScript.h - archives of torch.jit.save (.pt) to graph ----------------------------------------*- C++ -*-===//
//
// A TorchScript archive holds code, not a graph. The importer runs that code with tensors whose values it does not
// know: modules, methods, lists, numbers and loops over them are gone afterwards, and every operator that was met on
// the way is a `graph.node` of the form that torch.export's archives become (ExportedProgram.h).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_FRONTEND_TORCHSCRIPT_H
#define TC_FRONTEND_TORCHSCRIPT_H

#include "tc/Dialect/Graph/Custom/CustomOperator.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tc {

/// What the importer must know of values of the graph that it is still making: code asks for ranks, sizes and element
/// types of whatever it has just computed. The driver has one that converts the graph so far (GraphTypes.h).
class ValueOracle {
public:
  virtual ~ValueOracle() = default;
  /// The type of a tensor; sizes that only a run knows are dynamic. The error says which node has no type and why.
  virtual llvm::Expected<mlir::RankedTensorType> getType(mlir::Value value) = 0;
  /// The number that a tensor of one integer or bool holds, where it does not depend on data.
  virtual std::optional<int64_t> getInteger(mlir::Value value) = 0;
  /// A tensor was written: what it held before says nothing of what it holds from now on.
  virtual void forgetNumbers(mlir::Value value) = 0;
};

/// `function` is a graph.func whose arguments have their types and names.
using ValueOracleFactory = std::function<std::unique_ptr<ValueOracle>(mlir::Operation *function)>;

/// What the user says of an input: `--shape x=batch,3,224,224:f32`.
struct TorchScriptInput {
  /// A size, -1 for one that only a run knows.
  std::vector<int64_t> sizes;
  /// Names of the unknown ones; "" elsewhere.
  std::vector<std::string> names;
  /// "f32", "i64", ...; empty: what the archive says, else f32.
  std::string elementType;
};

struct TorchScriptOptions {
  std::map<std::string, TorchScriptInput> inputs;
  /// Dims that --dim names, such as "x.0": they stay open, whatever sizes the model was traced with.
  std::vector<std::string> openDims;
  /// Operators of the user's own: code calls by position and without overloads, which only their schemas say.
  CustomOperators customOperators;
  ValueOracleFactory makeOracle;
};

/// Whether a file is an archive of torch.jit.save.
bool isTorchScript(mlir::MLIRContext *context, llvm::StringRef path);

/// Reads what torch.jit.save writes (archive versions 3 to 10) of a traced, scripted or frozen module. Errors are
/// sentences that name the file, the place in the archive's code, and what to do.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importTorchScript(mlir::MLIRContext *context, llvm::StringRef path,
                                                                    const TorchScriptOptions &options);

} // namespace tc

#endif // TC_FRONTEND_TORCHSCRIPT_H
