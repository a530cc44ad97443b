//===- Archive.h - what a torch.export archive holds ----------------------------------------------------*- C++ -*-===//
//
// Gives its program as JSON and its parameters, buffers and constants as attributes. What the program means is
// Program.cpp's. PyTorch has had three layouts, which <...> says the members of:
//
//   2.4 to 2.7  <serialized_exported_program.json> and dicts of tensors that torch.save wrote, archives themselves:
//               <serialized_state_dict.pt>, <serialized_constants.pt>
//   2.8         <models/NAME.json>, <data/weights/NAME.pt>, <data/constants/NAME.pt>: the same in one folder
//               (several models, each with a NAME of its own, may share an archive)
//   2.9 on      <models/NAME.json> and raw storages, with an index of each tensor's view of one:
//               <data/weights/NAME_weights_config.json>, <data/constants/NAME_constants_config.json>
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_EXPORTEDPROGRAM_ARCHIVE_H
#define TC_LIB_FRONTEND_EXPORTEDPROGRAM_ARCHIVE_H

#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Format/Json.h"
#include "tc/Frontend/Torch/TorchArchive.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <string>

namespace tc::exported {

using nlohmann::json;

/// Accessors that never throw: a member of the wrong kind reads as absent.
const json *member(const json &object, const char *name);
llvm::StringRef text(const json *value);
std::optional<int64_t> integer(const json *value);

/// By the numbers of torch/_export/serde/schema.py, ScalarType; null for one that tc does not know.
mlir::Type elementType(mlir::MLIRContext *context, int64_t code);

inline constexpr llvm::StringLiteral kKnownElementTypes =
    "supported are integers, bool, float8, float16, bfloat16, float32, float64 and complex";

/// One model of an archive.
class Archive {
public:
  /// All models of a file, by name. The error is a sentence that names the file.
  static llvm::Expected<std::vector<Archive>> open(mlir::MLIRContext *context, llvm::StringRef path);

  /// Its name, or "" where it is the only one.
  llvm::StringRef model() const { return name; }
  /// Whether all models have states of the same name in common: the archive has the extra file "tc.shared_states".
  bool sharesStates() const { return archive->has("extra/tc.shared_states"); }
  llvm::Error error(const llvm::Twine &what) const;
  /// The program: torch/_export/serde/schema.py, ExportedProgram.
  const json &program() const { return programJson; }
  /// A parameter, buffer or constant by the name that the signature has; null if the archive has none.
  base::DataAttr constant(llvm::StringRef name) const { return constants.lookup(name); }
  /// The name of another one that has elements in the same memory; "" if there is none.
  llvm::StringRef findSharer(llvm::StringRef name) const;

private:
  Archive(mlir::MLIRContext *context, llvm::StringRef path) : context(context), path(path) {}
  llvm::Error error(llvm::Error why) const;
  llvm::Error openFile();
  llvm::Error readOldLayout();
  /// The names of models/NAME.json.
  llvm::Expected<std::vector<std::string>> findModels();
  llvm::Error readModel(const std::string &model);
  llvm::Expected<json> readJson(llvm::StringRef name);
  llvm::Error readProgram(llvm::StringRef name);
  /// Of an index: all of its tensors, and one.
  llvm::Error readIndex(llvm::StringRef folder, llvm::StringRef index);
  llvm::Expected<base::DataAttr> readIndexed(llvm::StringRef key, const json &entry, llvm::StringRef folder);
  /// A dict of tensors that torch.save wrote.
  llvm::Error readSaved(llvm::StringRef name);
  /// Errors of tensors go behind "tensor NAME".
  llvm::Error add(llvm::StringRef name, llvm::Expected<base::DataAttr> tensor);
  /// Notes where a tensor lies, which was read.
  void addPlace(llvm::StringRef name, llvm::StringRef storage, int64_t offset, llvm::ArrayRef<int64_t> sizes,
                llvm::ArrayRef<int64_t> strides, base::DataAttr tensor);

  mlir::MLIRContext *context;
  std::string path, name;
  std::shared_ptr<torch::TorchArchive> archive;
  json programJson;
  llvm::StringMap<base::DataAttr> constants;
  /// Bytes of a storage, both ends included, that a constant reaches over.
  struct Place {
    std::string name, storage;
    int64_t first, last;
  };
  std::vector<Place> places;
};

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_ARCHIVE_H
