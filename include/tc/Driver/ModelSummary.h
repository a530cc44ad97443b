//===- ModelSummary.h - what a model's file holds -------------------------------------------------------*- C++ -*-===//
//
// What tc-inspect shows of a model: inputs, outputs, operators with their numbers, parameters, opsets. Nothing is
// compiled; the front ends read the file.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_MODELSUMMARY_H
#define TC_DRIVER_MODELSUMMARY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace tc::driver {

/// Of an .onnx or .pt2 file: file, file_size, format ("onnx", "pt2"), ir_version, opsets, producer, name, metadata,
/// inputs and outputs [{name, type, dtype, dims, has_default}], symbols, node_count, operators [{domain, type, opset,
/// count, support}], most frequent first, functions, parameters {tensors, elements, bytes, dtypes}; what the file lacks
/// is left out. The error is a sentence that starts with the path.
llvm::Expected<llvm::json::Object> summarizeModel(llvm::StringRef path);

/// The same for people.
void printModelSummary(llvm::raw_ostream &stream, const llvm::json::Object &model);

} // namespace tc::driver

#endif // TC_DRIVER_MODELSUMMARY_H
