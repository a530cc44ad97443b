//===- tc-opt.cpp - mlir-opt with the dialects and passes of tc ---------------------------------------------------===//
//
// Where an input x.mlir has a file x.mlir.data beside it, that is where its constants are: tc-compile --compile-to
// writes both. `tc-opt --import-onnx MODEL [--no-shapes] [--expand=TYPE] [-o OUT]` prints the graph of an ONNX file
// instead, or writes it to OUT and OUT.data; with --expand nodes of that type are replaced by their schemas' bodies.
// `tc-opt --import-onnx-each MODEL...` imports one after the other and prints "MODEL: ok" or the error of each.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Generate.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Register.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Support/ToolVersion.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
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
  llvm::StringRef output, expand;
  for (int i = 3; i < argc; ++i) {
    if (llvm::StringRef(argv[i]) == "--no-shapes")
      options.inferShapes = false;
    else if (llvm::StringRef(argv[i]).starts_with("--expand="))
      expand = llvm::StringRef(argv[i]).substr(9);
    else if (llvm::StringRef(argv[i]) == "-o" && i + 1 < argc)
      output = argv[++i];
  }
  mlir::DialectRegistry registry;
  tc::registerOnnxDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = tc::importOnnx(&context, argv[2], options);
  llvm::Error error = module.takeError();
  if (!error && !expand.empty()) {
    mlir::IRRewriter rewriter(&context);
    llvm::SmallVector<tc::graph::NodeOp> nodes;
    (*module)->walk([&](tc::graph::NodeOp node) {
      if (node.getOpType() == expand)
        nodes.push_back(node);
    });
    for (tc::graph::NodeOp node : nodes)
      if (mlir::failed(tc::expandOnnxFunction(node, rewriter)))
        llvm::errs() << "node \"" << node.getNodeName() << "\" has no function body\n";
    if (mlir::failed(mlir::verify(**module)))
      return 1;
  }
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

static int importEachOnnx(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tc::registerOnnxDialects(registry);
  for (int i = 2; i < argc; ++i) {
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    // Before the import, so that a crash tells where.
    llvm::outs() << argv[i] << ": ";
    llvm::outs().flush();
    llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = tc::importOnnx(&context, argv[i]);
    if (module) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      (*module)->print(stream);
      llvm::outs() << "ok\n";
    } else {
      llvm::outs() << llvm::toString(module.takeError()) << "\n";
    }
  }
  return 0;
}

static const char *const examplesAndCodes = R"(
Examples:
  tc-compile model.onnx -o model.mlir --compile-to=import    the graph that passes begin with
  tc-opt model.mlir --tc-phase-prim --tc-phase-fuse          two phases
  tc-opt model.mlir --tc-phase-prim --mlir-print-ir-after-all
  tc-opt --import-onnx MODEL [--no-shapes] [--expand=TYPE] [-o OUT]
  tc-opt --import-onnx-each MODEL...
  tc-opt --generate bash     what a shell completes: bash, zsh, fish; or the manual page: man

Exit codes: 0 done; 1 wrong use, ill-formed input, or a pass that failed
)";

/// The libraries of LLVM bring some hundred options for targets and passes that tc does not use. They work, and --help
/// is silent about them. What is there before tc-opt asks MLIR for its options is LLVM's.
static void hideOptionsOfLLVM() {
  for (auto [name, option] : llvm::cl::getRegisteredOptions())
    if (name != "help" && name != "version")
      option->setHiddenFlag(llvm::cl::ReallyHidden);
}

int main(int argc, char **argv) {
  if (argc >= 3 && llvm::StringRef(argv[1]) == "--import-onnx")
    return importOnnx(argc, argv);
  if (argc >= 2 && llvm::StringRef(argv[1]) == "--import-onnx-each")
    return importEachOnnx(argc, argv);
  mlir::DialectRegistry registry;
  tc::driver::registerAllDialects(registry);
  tc::driver::registerAllPasses();
  for (int i = 1; i < argc; ++i) {
    std::string candidate = std::string(argv[i]) + ".data";
    if (!llvm::StringRef(argv[i]).starts_with("-") && llvm::sys::fs::exists(candidate))
      dataFile = candidate;
  }
  registry.addExtension(&mapDataFile);
  hideOptionsOfLLVM();
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << tc::getVersionText("tc-opt") << "\n"; });
  llvm::cl::extrahelp help(examplesAndCodes);
  auto run = [&](int count, char **words) {
    return mlir::MlirOptMain(count, words, "Runs passes of tc on modules of any phase.\n", registry);
  };
  llvm::StringRef generated = argc >= 2 ? argv[1] : "";
  if (generated.consume_front("--generate") && (generated.empty() ? argc == 3 : generated.consume_front("=")))
    return tc::opt::generate(generated.empty() ? argv[2] : generated, [&] {
      std::string help = "--help";
      char *words[] = {argv[0], help.data(), nullptr};
      (void)run(2, words);
    });
  for (int i = 1; i < argc; ++i)
    if (llvm::StringRef word = argv[i]; !word.starts_with("-") && (word.ends_with(".onnx") || word.ends_with(".pt2"))) {
      llvm::errs() << word << ": error: tc-opt takes modules of tc's IR; tc-compile " << word
                   << " -o model.mlir --compile-to=import writes one\n";
      return 1;
    }
  return mlir::failed(run(argc, argv));
}
