//===- LoadModel.cpp - a model's file to a module -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "LoadModel.h"

#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Frontend/ExportedProgram.h"
#include "tc/Frontend/ONNX.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

llvm::Expected<OwningOpRef<ModuleOp>> tc::driver::loadModel(MLIRContext *context, StringRef path, bool &isMlir) {
  isMlir = false;
  auto fail = [&](const Twine &what) { return llvm::createStringError(path + ": error: " + what); };
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return fail("cannot read the file: " + error.message());
  if (llvm::sys::fs::is_directory(status))
    return fail("is a folder, not a model; give the model's file");
  if (!llvm::sys::fs::is_regular_file(status))
    return fail("cannot read the file: it is not a regular file");
  if (status.getSize() == 0)
    return fail("the file is empty; expected an ONNX, .pt2 or .mlir model");
  if (path.ends_with(".mlir")) {
    isMlir = true;
    return base::readModule(context, path);
  }
  auto head = llvm::MemoryBuffer::getFileSlice(path, std::min<uint64_t>(4, status.getSize()), 0);
  if (!head)
    return fail("cannot read the file: " + head.getError().message());
  if ((*head)->getBuffer().starts_with("PK"))
    return importExportedProgram(context, path);
  return importOnnx(context, path);
}
