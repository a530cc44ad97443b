//===- ScalarType.cpp - PyTorch's element types -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Frontend/Torch/ScalarType.h"

using namespace tc::torch;

namespace {

struct Row {
  ScalarType type;
  std::string_view name;        // in C++, as storages have it
  std::string_view python, old; // Python's names
  unsigned size;
};

constexpr Row rows[] = {
    {ScalarType::Byte, "Byte", "uint8", "", 1},
    {ScalarType::Char, "Char", "int8", "", 1},
    {ScalarType::Short, "Short", "int16", "short", 2},
    {ScalarType::Int, "Int", "int32", "int", 4},
    {ScalarType::Long, "Long", "int64", "long", 8},
    {ScalarType::Half, "Half", "float16", "half", 2},
    {ScalarType::Float, "Float", "float32", "float", 4},
    {ScalarType::Double, "Double", "float64", "double", 8},
    {ScalarType::ComplexHalf, "ComplexHalf", "complex32", "chalf", 4},
    {ScalarType::ComplexFloat, "ComplexFloat", "complex64", "cfloat", 8},
    {ScalarType::ComplexDouble, "ComplexDouble", "complex128", "cdouble", 16},
    {ScalarType::Bool, "Bool", "bool", "", 1},
    {ScalarType::QInt8, "QInt8", "qint8", "", 1},
    {ScalarType::QUInt8, "QUInt8", "quint8", "", 1},
    {ScalarType::QInt32, "QInt32", "qint32", "", 4},
    {ScalarType::BFloat16, "BFloat16", "bfloat16", "", 2},
    {ScalarType::QUInt4x2, "QUInt4x2", "quint4x2", "", 0},
    {ScalarType::QUInt2x4, "QUInt2x4", "quint2x4", "", 0},
    {ScalarType::Float8_e5m2, "Float8_e5m2", "float8_e5m2", "", 1},
    {ScalarType::Float8_e4m3fn, "Float8_e4m3fn", "float8_e4m3fn", "", 1},
    {ScalarType::Float8_e5m2fnuz, "Float8_e5m2fnuz", "float8_e5m2fnuz", "", 1},
    {ScalarType::Float8_e4m3fnuz, "Float8_e4m3fnuz", "float8_e4m3fnuz", "", 1},
    {ScalarType::UInt16, "UInt16", "uint16", "", 2},
    {ScalarType::UInt32, "UInt32", "uint32", "", 4},
    {ScalarType::UInt64, "UInt64", "uint64", "", 8},
};

const Row *find(ScalarType type) {
  for (const Row &row : rows)
    if (row.type == type)
      return &row;
  return nullptr;
}

} // namespace

ScalarType tc::torch::scalarTypeOf(std::string_view pythonName) {
  for (const Row &row : rows)
    if (row.python == pythonName || (!row.old.empty() && row.old == pythonName))
      return row.type;
  return ScalarType::Undefined;
}

ScalarType tc::torch::scalarTypeOfStorage(std::string_view className) {
  constexpr std::string_view suffix = "Storage";
  if (className.size() > suffix.size() && className.substr(className.size() - suffix.size()) == suffix)
    for (const Row &row : rows)
      if (row.name == className.substr(0, className.size() - suffix.size()))
        return row.type;
  return ScalarType::Undefined;
}

std::string_view tc::torch::pythonName(ScalarType type) {
  const Row *row = find(type);
  return row ? row->python : "undefined";
}

unsigned tc::torch::sizeInBytes(ScalarType type) {
  const Row *row = find(type);
  return row ? row->size : 0;
}

unsigned tc::torch::sizeOfPart(ScalarType type) {
  const bool isComplex =
      type == ScalarType::ComplexHalf || type == ScalarType::ComplexFloat || type == ScalarType::ComplexDouble;
  return isComplex ? sizeInBytes(type) / 2 : sizeInBytes(type);
}
