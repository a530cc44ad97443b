//===- TC.h - the base dialect: constants by reference, shared types ------------------------------------*- C++ -*-===//
//
// The attribute #tc.data (TC.td says how its bytes are laid out), the types !tc.string, !tc.seq, !tc.opt, and the
// functions to make and read constants. Example, a folded constant:
//
//   std::vector<char> bytes(2 * sizeof(float));            // little-endian, row-major
//   DataAttr attr = base::makeData(RankedTensorType::get({2}, f32), std::move(bytes));
//   FailureOr<ArrayRef<char>> read = base::getBytes(attr); // unaligned: memcpy
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_TC_IR_TC_H
#define TC_DIALECT_TC_IR_TC_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "tc/Support/BlobStore.h"
#include <cstring>
#include <memory>

#include "tc/Dialect/TC/IR/TCDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "tc/Dialect/TC/IR/TCTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/TC/IR/TCAttrs.h.inc"

namespace tc::base {

/// Whether values of this type are objects of the runtime: sequences, optionals, maps.
inline bool isHandle(mlir::Type type) { return mlir::isa<SeqType, OptType, MapType>(type); }
/// Whether the program holds an element of this type as a word: a string's id, or an object's handle.
inline bool isWord(mlir::Type type) { return mlir::isa<StringType>(type) || isHandle(type); }

/// The store of the context; loads the dialect if need be (not from inside a pass: declare the dialect there).
BlobStore &getBlobStore(mlir::MLIRContext *context);

/// Bits of one element as #tc.data lays it out (8 for i1); nullopt where the size is not fixed.
std::optional<unsigned> getPackedBitWidth(mlir::Type elementType);
/// Bytes of a constant of this type; nullopt for strings, dynamic shapes, unknown elements and sizes above 2^63.
std::optional<uint64_t> getPackedSizeBytes(mlir::RankedTensorType type);
/// Number of elements; nullopt where it is dynamic or above 2^63.
std::optional<uint64_t> getNumElements(mlir::ShapedType type);

/// The constant with these bytes, which are moved into the store. `bytes` must have the size of the type.
DataAttr makeData(mlir::RankedTensorType type, std::vector<char> bytes);
/// The constant at a place of a blob that is already in the store and that holds the whole range.
DataAttr makeData(mlir::RankedTensorType type, llvm::StringRef blob, uint64_t offset, uint64_t length);
/// A constant tensor of strings.
DataAttr makeStringData(mlir::RankedTensorType type, llvm::ArrayRef<llvm::StringRef> strings);
/// The bytes; failure (silent) where the blob is missing or too short.
llvm::FailureOr<llvm::ArrayRef<char>> getBytes(DataAttr attr);
/// The elements of a constant of strings; failure where bytes are missing or offsets are wrong.
llvm::FailureOr<llvm::SmallVector<llvm::StringRef>> getStrings(DataAttr attr);
/// The same bytes with another type of the same packed size (reshape, bitcast).
DataAttr withType(DataAttr attr, mlir::RankedTensorType type);

/// Converts to and from builtin dense attributes: for small constants, integer (not 2- or 4-bit), float and complex
/// elements. toDense is null where bytes are missing or the element type is not among these.
mlir::DenseElementsAttr toDense(DataAttr attr);
DataAttr fromDense(mlir::DenseElementsAttr attr);

/// One element of type T (of the same size as the constant's elements), whatever its alignment.
template <typename T> T readElement(llvm::ArrayRef<char> bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// Emits an error at every op with a constant whose blob is missing or too short. With `hashes`, also where bytes
/// differ from their hash (reads all bytes).
llvm::LogicalResult verifyBlobs(mlir::Operation *root, bool hashes);

/// Writes the bytes of all constants under `root` to a file, each content once and aligned to 64 bytes, and points the
/// attributes to it. Leaves no partial file. The error is a sentence that names the file.
llvm::Error writeBlobs(mlir::Operation *root, llvm::StringRef path);
/// Maps the file of an earlier writeBlobs as the missing blobs of `root`, and checks ranges and hashes.
llvm::Error loadBlobs(mlir::Operation *root, llvm::StringRef path);

/// Writes `path` (text) and `path`.data (constants; absent if there are none). The module is left as it is.
llvm::Error writeModule(mlir::ModuleOp module, llvm::StringRef path);
/// Parses `path` and maps `path`.data where it exists. Parse errors go to the context's diagnostics too.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readModule(mlir::MLIRContext *context, llvm::StringRef path);

} // namespace tc::base

#endif // TC_DIALECT_TC_IR_TC_H
