//===- LoadModel.cpp - a model's file to a module -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "LoadModel.h"

#include "tc/Conversion/GraphToPrim/GraphTypes.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Frontend/ExportedProgram.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Frontend/TorchScript.h"

#include "tcrt/artifact_abi.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tc;

namespace {

/// A file that is taken for a model easily, and what to do.
struct OtherFile {
  size_t at;
  StringRef magic;
  const char *what;
};

} // namespace

static const OtherFile kOtherFiles[] = {
    {0, StringRef(TCRT_MAGIC, TCRT_MAGIC_SIZE),
     "this is an artifact, which tc-compile wrote; tc-run runs it, and to compile again, give the model"},
    {0, StringRef(TCRT_WEIGHTS_MAGIC, TCRT_MAGIC_SIZE),
     "these are the weights of an artifact, which tc-compile wrote; to compile again, give the model"},
    {0, "\x80\x02",
     "this is a Python pickle, such as torch.save wrote before PyTorch 1.6; load it in Python and export the model "
     "with torch.export.export and torch.export.save, or with torch.onnx.export"},
    {0, "\x89HDF", "this is an HDF5 file, such as Keras writes; export the model to ONNX, for instance with tf2onnx"},
    {4, "TFL3", "this is a TensorFlow Lite model; convert it to ONNX, for instance with tf2onnx --tflite"},
};

namespace {

/// Types of a graph in the making, by the conversion to prim.
class ConversionOracle : public ValueOracle {
public:
  ConversionOracle(graph::FuncOp function, const GraphToPrimOptions &options) : types(function, options) {}
  llvm::Expected<RankedTensorType> getType(Value value) override { return types.getType(value); }
  std::optional<int64_t> getInteger(Value value) override { return types.getInteger(value); }
  void forgetNumbers(Value value) override { types.forgetNumbers(value); }

private:
  GraphTypes types;
};

} // namespace

static llvm::Expected<OwningOpRef<ModuleOp>> loadTorchScript(MLIRContext *context, StringRef path,
                                                             const GraphToPrimOptions &sizes) {
  TorchScriptOptions options;
  for (const auto &[name, shape] : sizes.shapes) {
    TorchScriptInput &input = options.inputs[name];
    input.sizes = shape;
    if (auto names = sizes.shapeNames.find(name); names != sizes.shapeNames.end())
      input.names = names->second;
    if (auto type = sizes.elementTypes.find(name); type != sizes.elementTypes.end())
      input.elementType = type->second;
  }
  for (const auto &entry : sizes.dims)
    options.openDims.push_back(entry.first);
  options.customOperators = sizes.customOperators;
  options.makeOracle = [&](Operation *function) {
    return std::make_unique<ConversionOracle>(cast<graph::FuncOp>(function), sizes);
  };
  return importTorchScript(context, path, options);
}

/// As tc-compile and tc-opt print modules, in text or bytecode. ONNX begins with the tag of a field, which these are
/// not.
static bool beginsAsModule(StringRef text) {
  return llvm::any_of(ArrayRef<StringRef>{"ML\xefR", "module", "builtin.module", "#loc", "#map", "func.func", "//"},
                      [&](StringRef begin) { return text.starts_with(begin); });
}

llvm::Expected<OwningOpRef<ModuleOp>> tc::driver::loadModel(MLIRContext *context, StringRef path, bool &isMlir,
                                                            const GraphToPrimOptions &sizes) {
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
    return fail("the file is empty; expected an ONNX, .pt2, .pt or .mlir model");
  auto head = llvm::MemoryBuffer::getFileSlice(path, std::min<uint64_t>(16, status.getSize()), 0);
  if (!head)
    return fail("cannot read the file: " + head.getError().message());
  // Standard input has no name that would tell.
  if (path.ends_with(".mlir") || beginsAsModule((*head)->getBuffer())) {
    isMlir = true;
    return base::readModule(context, path);
  }
  for (const OtherFile &other : kOtherFiles)
    if ((*head)->getBuffer().substr(other.at).starts_with(other.magic))
      return fail(other.what);
  if ((*head)->getBuffer().starts_with("PK"))
    return isTorchScript(context, path) ? loadTorchScript(context, path, sizes) : importExportedProgram(context, path);
  return importOnnx(context, path);
}
