//===- RunArtifact.h - run what was compiled, in process ------------------------------------------------*- C++ -*-===//
//
// For --verify: tensors of the interpreter through libtcrt.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_RUNARTIFACT_H
#define TC_LIB_DRIVER_RUNARTIFACT_H

#include "tc/Dialect/Prim/Interpreter/Tensor.h"

#include "mlir/IR/TypeRange.h"
#include "llvm/Support/Error.h"
#include <string>
#include <utility>

struct tcrt_model_t;

namespace tc::driver {

/// An opened artifact. Errors are sentences that begin with its name; std::errc::no_such_device is what this machine
/// cannot do.
class OpenedArtifact {
public:
  /// `variant` as tcrt_model_options_t::variant; "" lets the runtime choose.
  static llvm::Expected<OpenedArtifact> openFile(const std::string &path, const std::string &variant, bool onGpu);
  /// The bytes must live as long as this.
  static llvm::Expected<OpenedArtifact> openMemory(llvm::StringRef bytes, const std::string &name,
                                                   const std::string &variant, bool onGpu);
  OpenedArtifact(OpenedArtifact &&other) : model(std::exchange(other.model, nullptr)) {}
  OpenedArtifact &operator=(OpenedArtifact &&) = delete;
  ~OpenedArtifact();

  /// What the machine lacks to run it.
  llvm::Error checkMachine();
  /// Inputs in the order of the signature; `results`: the element type of each output. States are as in a new context.
  llvm::Expected<std::vector<prim::Tensor>> run(llvm::ArrayRef<prim::Tensor> inputs, mlir::TypeRange results,
                                                uint32_t function = 0);
  /// Names of the variants that this machine has the CPU for; the best first.
  std::vector<std::string> getUsableVariants() const;

private:
  explicit OpenedArtifact(tcrt_model_t *model) : model(model) {}
  tcrt_model_t *model;
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_RUNARTIFACT_H
