//===- Archive.h - what a torch.export archive holds ----------------------------------------------------*- C++ -*-===//
//
// Opens the file, and gives its program as JSON and its parameters, buffers and constants as attributes over the mapped
// bytes. What the program means is Program.cpp's.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_EXPORTEDPROGRAM_ARCHIVE_H
#define TC_LIB_FRONTEND_EXPORTEDPROGRAM_ARCHIVE_H

#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Format/Json.h"
#include "tc/Support/ZipArchive.h"

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

class Archive {
public:
  /// The error is a sentence that names the file.
  static llvm::Expected<std::unique_ptr<Archive>> open(mlir::MLIRContext *context, llvm::StringRef path);

  llvm::Error error(const llvm::Twine &what) const { return llvm::createStringError(path + ": error: " + what); }
  /// The program: torch/_export/serde/schema.py, ExportedProgram.
  const json &program() const { return programJson; }
  /// A parameter, buffer or constant by the name that the signature has; null if the archive has none.
  base::DataAttr constant(llvm::StringRef name) const { return constants.lookup(name); }

private:
  Archive(mlir::MLIRContext *context, llvm::StringRef path) : context(context), path(path) {}
  /// Bytes of the archive: a range of a blob.
  struct Record {
    llvm::StringRef blob;
    uint64_t offset, size;
  };
  llvm::Error read();
  llvm::Expected<Record> readRecord(const ZipArchive::Member &member);
  llvm::Expected<json> readJson(llvm::StringRef name);
  llvm::Expected<mlir::RankedTensorType> tensorType(llvm::StringRef name, const json &meta);
  llvm::Error readWeights(const char *folder, const char *index);

  mlir::MLIRContext *context;
  std::string path;
  llvm::StringRef blob;
  ZipArchive archive;
  std::string root;
  json programJson;
  llvm::StringMap<llvm::StringRef> unpacked; // blobs of deflated members
  llvm::StringMap<base::DataAttr> constants;
};

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_ARCHIVE_H
