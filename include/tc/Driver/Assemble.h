//===- Assemble.h - from object code to the artifact file -----------------------------------------------*- C++ -*-===//
//
// Reads a module at the end of phase object (the model's function with its memory plan, and host.binary ops) and
// describes the artifact: signature, kernels, variants, manifest, and weights that are made while the file is written.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_ASSEMBLE_H
#define TC_DRIVER_ASSEMBLE_H

#include "tc/Artifact/Writer.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/JSON.h"

namespace tc::driver {

/// What the manifest says beside what is in the module. Nothing here may depend on time, paths or the machine.
struct AssembleOptions {
  std::string sourceHash;         ///< SHA-256 of the model's file, or empty
  std::vector<std::string> flags; ///< the options that influence the code, in the order of the command line
  llvm::json::Object options;     ///< the same for --refit; empty: it cannot be taken
  /// TCRT_GRAPHS_* of GPU variants.
  uint32_t graphs = TCRT_GRAPHS_DEFAULT;
  unsigned jobs = 0; ///< threads that arrange weights; 0: as many as the machine has
};

/// The artifact of `module`, which must stay alive until the artifact is written. Errors are sentences without a file
/// name. An error with the code std::errc::not_supported is something that tc lacks, other codes of std::errc are
/// missing files; errors without a code are defects of tc.
llvm::Expected<artifact::ArtifactSpec> assembleArtifact(mlir::ModuleOp module, const AssembleOptions &options);

/// Writes the bytes of a host.constant to `sink` chunk by chunk: result[i..] = data[map(i..)], 0 outside of data.
/// `elementBytes` divides nothing: types packed below a byte have no map.
llvm::Error rearrange(llvm::ArrayRef<char> data, llvm::ArrayRef<int64_t> dataShape, int64_t elementBytes,
                      mlir::AffineMap map, llvm::ArrayRef<int64_t> resultShape, unsigned jobs,
                      artifact::WeightSink sink);
/// The same for f32 with host.constant's `transform`: result[r, i..] = sum over t of transform[r, t] * data[map(t,
/// i..)]. Holds the arranged data in memory.
llvm::Error rearrangeTransformed(llvm::ArrayRef<float> data, llvm::ArrayRef<int64_t> dataShape, mlir::AffineMap map,
                                 llvm::ArrayRef<int64_t> resultShape, llvm::ArrayRef<double> transform, unsigned jobs,
                                 artifact::WeightSink sink);

} // namespace tc::driver

#endif // TC_DRIVER_ASSEMBLE_H
