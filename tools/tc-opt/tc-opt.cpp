//===- tc-opt.cpp - mlir-opt with the dialects and passes of tc ------------------------------------------------------===//
//
// Where an input x.mlir has a file x.mlir.data beside it, that is where its constants are: tc-compile --compile-to
// writes both. `tc-opt --import-onnx MODEL [--no-shapes] [-o OUT]` prints the graph of an ONNX file instead, or writes it
// to OUT and OUT.data.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Register.h"
#include "tc/Frontend/ONNX.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

// Extensions of a dialect are plain functions, so what ours needs stands here.
static std::string dataFile;

static void mapDataFile(mlir::MLIRContext *, tc::base::TCDialect *dialect) {
  if (dataFile.empty())
    return;
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = tc::mapFile(dataFile);
  if (file)
    dialect->getBlobStore().setDataFile(std::move(*file));
  else
    llvm::errs() << llvm::toString(file.takeError()) << "\n";
}

static int importOnnx(int argc, char **argv) {
  tc::ImportOptions options;
  llvm::StringRef output;
  for (int i = 3; i < argc; ++i) {
    if (llvm::StringRef(argv[i]) == "--no-shapes")
      options.inferShapes = false;
    else if (llvm::StringRef(argv[i]) == "-o" && i + 1 < argc)
      output = argv[++i];
  }
  mlir::DialectRegistry registry;
  tc::registerOnnxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = tc::importOnnx(&context, argv[2], options);
  llvm::Error error = module.takeError();
  if (!error && !output.empty())
    error = tc::base::writeModule(**module, output);
  if (error) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  if (output.empty())
    (*module)->print(llvm::outs());
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 3 && llvm::StringRef(argv[1]) == "--import-onnx")
    return importOnnx(argc, argv);
  mlir::DialectRegistry registry;
  tc::driver::registerAllDialects(registry);
  tc::driver::registerAllPasses();
  for (int i = 1; i < argc; ++i) {
    std::string candidate = std::string(argv[i]) + ".data";
    if (!llvm::StringRef(argv[i]).starts_with("-") && llvm::sys::fs::exists(candidate))
      dataFile = candidate;
  }
  registry.addExtension(&mapDataFile);
  return mlir::failed(mlir::MlirOptMain(argc, argv, "tc's optimizer driver\n", registry));
}
