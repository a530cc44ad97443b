//===- Tensor.h - host tensors of the interpreter -------------------------------------------------------*- C++ -*-===//
//
// A dense row-major tensor on the host, and its conversion from and to C++ numbers.
//
// Bytes of one element: floats of 16 to 64 bits and integers of 8 to 64 bits as they are, little endian; i1 is one
// byte, 0 or 1; integers and floats of fewer than 8 bits take one byte each (signed integers sign-extended); complex
// numbers are their real, then their imaginary part. Tensors are never written once they are built, and copies share
// the bytes, so that views (reshape) and mapped constants cost nothing.
//
// Not thread safe while being built; afterwards any number of threads may read.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_INTERPRETER_TENSOR_H
#define TC_DIALECT_PRIM_INTERPRETER_TENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <vector>

namespace tc::prim {

/// A dense tensor on the host.
struct Tensor {
  mlir::Type elementType;
  llvm::SmallVector<int64_t> shape;
  /// Row-major elements; may point into memory that the pointer keeps alive (a mapped file, another tensor).
  std::shared_ptr<const char> bytes;

  int64_t numElements() const;
  int64_t sizeBytes() const;
  /// The same elements under another shape of as many elements.
  Tensor withShape(llvm::ArrayRef<int64_t> newShape) const { return {elementType, llvm::to_vector(newShape), bytes}; }
  /// The type of tensors like this one.
  mlir::RankedTensorType getType() const { return mlir::RankedTensorType::get(shape, elementType); }
};

/// Whether tensors of this element type can be held: any float of up to 64 bits, any integer of up to 64 bits, and
/// complex numbers of f32 and f64, which no op but prim.storage takes.
bool isSupportedElementType(mlir::Type type);
/// Bytes of one element as a Tensor holds it.
int64_t getElementBytes(mlir::Type type);
/// Whether integers of this type count from 0 up: ui<N>, and i1.
bool isUnsignedElement(mlir::Type type);
/// Product of the sizes; -1 where a size is negative or the product is over 2^46, more than any machine's memory.
int64_t countElements(llvm::ArrayRef<int64_t> shape);

/// A tensor with bytes to be filled in through `data`, which is valid as long as the tensor.
Tensor allocateTensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape, char *&data);

/// All elements as doubles; integers of more than 53 bits round to odd, so that a further rounding is right.
std::vector<double> toDoubles(const Tensor &tensor);
/// All elements of an integer tensor; those of ui64 keep their bits.
std::vector<int64_t> toInts(const Tensor &tensor);
/// A float tensor; each value is rounded once, to nearest even. Values must be as many as the shape says.
Tensor fromDoubles(mlir::Type elementType, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values);
/// An integer tensor; values wrap to the width.
Tensor fromInts(mlir::Type elementType, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> values);
/// A complex tensor as floats with a last dim of 2, real and imaginary part, and back: the same bytes.
Tensor asParts(const Tensor &tensor);
Tensor asComplex(const Tensor &parts);
/// Float (or complex) tensors of one type as another such type, rounded to nearest even; the same tensor where nothing
/// changes.
Tensor convertFloats(const Tensor &tensor, mlir::Type elementType);

/// The tensor between narrow elements and their bytes (prim.storage); `elementType` and `shape` are the result's.
Tensor changeStorage(const Tensor &tensor, mlir::Type elementType, llvm::ArrayRef<int64_t> shape);

/// The tensor of a constant's attribute: #tc.data, builtin dense, dense_resource. nullopt where it is none of these,
/// where its bytes are missing, where its element type is not supported, or where one element stands for more than
/// 2^32. Aligned bytes are shared, not copied.
std::optional<Tensor> fromAttribute(mlir::Attribute attribute);
/// The attribute of prim.constant: dense for at most 64 elements and where all elements are the same bits, else
/// #tc.data, whose bytes go to the context's BlobStore.
mlir::TypedAttr toAttribute(const Tensor &tensor);

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_INTERPRETER_TENSOR_H
