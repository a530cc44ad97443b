//===- ScalarType.h - PyTorch's element types -----------------------------------------------------------*- C++ -*-===//
//
// With the numbers that they have in TorchScript and in ATen's arguments (c10/core/ScalarType.h). C++ alone.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_FRONTEND_TORCH_SCALARTYPE_H
#define TC_FRONTEND_TORCH_SCALARTYPE_H

#include <cstdint>
#include <string_view>

namespace tc::torch {

enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  BFloat16 = 15,
  QUInt4x2 = 16,
  QUInt2x4 = 17,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  Float8_e5m2fnuz = 25,
  Float8_e4m3fnuz = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
  Undefined = -1
};

/// "float32" and Python's other names; Undefined for a name that is none of these.
ScalarType scalarTypeOf(std::string_view pythonName);
/// Of "FloatStorage"; Undefined for a name that is none.
ScalarType scalarTypeOfStorage(std::string_view className);
/// As Python writes it, "float32".
std::string_view pythonName(ScalarType type);
/// Bytes of an element; 0 for those that have none of their own (Undefined, and several in a byte).
unsigned sizeInBytes(ScalarType type);
/// Bytes that an element's byte order concerns: half an element of the complex ones.
unsigned sizeOfPart(ScalarType type);

} // namespace tc::torch

#endif // TC_FRONTEND_TORCH_SCALARTYPE_H
