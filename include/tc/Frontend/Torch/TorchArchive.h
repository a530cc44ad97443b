//===- TorchArchive.h - archives of PyTorch, and tensors as views of their bytes ------------------------*- C++ -*-===//
//
// torch.save, torch.jit.save and torch.export.save all write a zip archive whose members lie in one folder, with raw
// bytes for storages and "byteorder" to say how they lie; torch.export's archives may hold others of torch.save. A
// tensor is a view of a storage: sizes, strides and an offset. One whose elements lie in a row is a range of the mapped
// file; others, and those of big-endian machines, are copied when they are asked for.
//
//   llvm::Expected<torch::TorchArchive> archive = torch::TorchArchive::open(context, blob);
//   llvm::Expected<torch::Pickle> data = archive->pickle("data.pkl");
//   llvm::Expected<base::DataAttr> weight = archive->tensor(*data->root().find("weight")->tensor, "data");
//
// Errors say what is wrong and what to do, without the file's name.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_FRONTEND_TORCH_TORCHARCHIVE_H
#define TC_FRONTEND_TORCH_TORCHARCHIVE_H

#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Frontend/Torch/Pickle.h"
#include "tc/Support/ZipArchive.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace tc::torch {

/// The type of elements in tc's IR; null for those that tc has none for. Quantized ones are the integers they hold.
mlir::Type elementType(mlir::MLIRContext *context, ScalarType type);

/// Bytes of a blob of the context's store.
struct ByteRange {
  llvm::StringRef blob;
  uint64_t offset = 0, size = 0;
};

class TorchArchive {
public:
  /// An archive that is a whole blob.
  static llvm::Expected<TorchArchive> open(mlir::MLIRContext *context, llvm::StringRef blob);
  /// A member that is an archive itself.
  llvm::Expected<TorchArchive> openInner(llvm::StringRef name);

  const ZipArchive &zip() const { return archive; }
  /// The folder that all members lie in, "name/", or "" if there is none. Names below are without it.
  llvm::StringRef root() const { return folder; }
  bool has(llvm::StringRef name) const { return find(name) != nullptr; }
  const ZipArchive::Member *find(llvm::StringRef name) const;
  bool isBigEndian() const { return bigEndian; }

  /// A member to read: JSON, code, a pickle.
  llvm::Expected<ZipArchive::Contents> read(llvm::StringRef name) const;
  llvm::Expected<Pickle> pickle(llvm::StringRef name) const;
  /// A member as bytes of a blob: its place in the file, or its own blob where it is deflated.
  llvm::Expected<ByteRange> record(llvm::StringRef name);
  /// The constant of a tensor over bytes of this archive, whatever its strides. Reading outside of them is an error,
  /// and so are 0 bytes under a tensor that has elements, as of fake tensors.
  llvm::Expected<base::DataAttr> makeTensor(ScalarType type, llvm::ArrayRef<int64_t> sizes,
                                            llvm::ArrayRef<int64_t> strides, int64_t offset, ByteRange storage);
  /// The constant of a tensor of a pickle, whose storages are members of `storages`, "data". Quantized, negated and
  /// conjugated ones are refused: their elements are not what stands there.
  llvm::Expected<base::DataAttr> tensor(const PickledTensor &tensor, llvm::StringRef storages);
  /// The integers of a quantized tensor.
  llvm::Expected<base::DataAttr> integers(const PickledTensor &tensor, llvm::StringRef storages);

private:
  static llvm::Expected<TorchArchive> open(mlir::MLIRContext *context, ByteRange bytes,
                                           std::shared_ptr<uint64_t> budget);
  /// Counts bytes that are copied or unpacked: a small archive may ask for the same ones again and again.
  llvm::Error charge(uint64_t bytes);

  mlir::MLIRContext *context = nullptr;
  ByteRange range;
  ZipArchive archive;
  std::string folder;
  bool bigEndian = false;
  llvm::StringMap<ByteRange> records; // those that were asked for
  std::shared_ptr<uint64_t> budget;   // bytes left, for archives inside of it too
};

} // namespace tc::torch

#endif // TC_FRONTEND_TORCH_TORCHARCHIVE_H
