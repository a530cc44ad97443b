//===- Dtypes.cpp - element types as artifacts number them --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/TC/IR/Dtypes.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

tcrt_dtype_t tc::base::getDtype(Type type) {
  if (type.isF32())
    return TCRT_DTYPE_F32;
  if (type.isF64())
    return TCRT_DTYPE_F64;
  if (type.isF16())
    return TCRT_DTYPE_F16;
  if (type.isBF16())
    return TCRT_DTYPE_BF16;
  if (isa<Float8E4M3FNType>(type))
    return TCRT_DTYPE_F8E4M3FN;
  if (isa<Float8E4M3FNUZType>(type))
    return TCRT_DTYPE_F8E4M3FNUZ;
  if (isa<Float8E5M2Type>(type))
    return TCRT_DTYPE_F8E5M2;
  if (isa<Float8E5M2FNUZType>(type))
    return TCRT_DTYPE_F8E5M2FNUZ;
  if (isa<Float6E2M3FNType>(type))
    return TCRT_DTYPE_F6E2M3;
  if (isa<Float6E3M2FNType>(type))
    return TCRT_DTYPE_F6E3M2;
  if (isa<Float4E2M1FNType>(type))
    return TCRT_DTYPE_F4E2M1;
  if (isa<Float8E8M0FNUType>(type))
    return TCRT_DTYPE_F8E8M0;
  if (auto complex = dyn_cast<ComplexType>(type))
    return complex.getElementType().isF32()   ? TCRT_DTYPE_C64
           : complex.getElementType().isF64() ? TCRT_DTYPE_C128
                                              : TCRT_DTYPE_INVALID;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return TCRT_DTYPE_INVALID;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return TCRT_DTYPE_BOOL;
  case 2:
    return isUnsigned ? TCRT_DTYPE_U2 : TCRT_DTYPE_I2;
  case 4:
    return isUnsigned ? TCRT_DTYPE_U4 : TCRT_DTYPE_I4;
  case 8:
    return isUnsigned ? TCRT_DTYPE_U8 : TCRT_DTYPE_I8;
  case 16:
    return isUnsigned ? TCRT_DTYPE_U16 : TCRT_DTYPE_I16;
  case 32:
    return isUnsigned ? TCRT_DTYPE_U32 : TCRT_DTYPE_I32;
  case 64:
    return isUnsigned ? TCRT_DTYPE_U64 : TCRT_DTYPE_I64;
  default:
    return TCRT_DTYPE_INVALID;
  }
}

tcrt_dtype_t tc::base::getOperandDtype(Type type, int64_t word) {
  return word == 1 ? TCRT_DTYPE_STRING : word == 2 ? TCRT_DTYPE_INVALID : getDtype(type);
}
