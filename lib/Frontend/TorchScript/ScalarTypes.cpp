//===- ScalarTypes.cpp - element types by PyTorch's numbers -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ScalarTypes.h"

#include "tc/Frontend/Torch/TorchArchive.h"

using namespace mlir;
using namespace tc;

/// Words of --shape, and the numbers of their types.
static const std::pair<const char *, int64_t> kWords[] = {
    {"u8", 0},    {"uint8", 0},     {"i8", 1},  {"int8", 1},      {"i16", 2},   {"int16", 2},
    {"i32", 3},   {"int32", 3},     {"i64", 4}, {"int64", 4},     {"f16", 5},   {"float16", 5},
    {"f32", 6},   {"float32", 6},   {"f64", 7}, {"float64", 7},   {"bool", 11}, {"i1", 11},
    {"bf16", 15}, {"bfloat16", 15}, {"c64", 9}, {"complex64", 9}, {"c128", 10}, {"complex128", 10}};

Type tc::torchscript::typeOfCode(MLIRContext *context, int64_t code) {
  if (code < 0 || code > 127)
    return {};
  return torch::elementType(context, torch::ScalarType(code));
}

std::optional<int64_t> tc::torchscript::codeOfType(Type type) {
  // Quantised types, 12 to 14, are stored as integers that have numbers of their own.
  for (int64_t code = 0; code < 64; ++code)
    if (typeOfCode(type.getContext(), code) == type)
      return code;
  return std::nullopt;
}

Type tc::torchscript::typeOfWord(MLIRContext *context, llvm::StringRef word) {
  for (auto [known, code] : kWords)
    if (word == known)
      return typeOfCode(context, code);
  return {};
}
