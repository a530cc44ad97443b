//===- OnnxLibrary.h - the ONNX library behind functions that do not throw ------------------------------*- C++ -*-===//
//
// OnnxLibrary.cpp is the one file of tc that compiles with exceptions; nothing leaves it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_ONNX_ONNXLIBRARY_H
#define TC_LIB_FRONTEND_ONNX_ONNXLIBRARY_H

#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tc::onnxfe {

/// Parses the bytes; null where they are no ModelProto.
std::unique_ptr<onnx::ModelProto> parseModel(llvm::StringRef bytes);

/// Adds inferred types to the value_info of all graphs, in a child process: nothing is added where ONNX's inference
/// crashes or takes too much. Stops silently at a contradiction, which the conversion reports.
void inferShapes(onnx::ModelProto &model);

/// The body of an operator at an opset of its domain ("" for ONNX's own), given a node and its operands' types (unset
/// where unknown). nullopt where there is none.
std::optional<onnx::FunctionProto> getFunctionBody(const onnx::NodeProto &node, int opset,
                                                   const std::vector<onnx::TypeProto> &inputTypes);

/// What a schema says of the type of an operand.
struct OperandType {
  std::string name;
  /// Tensors: a bit for each TensorProto.DataType.
  uint64_t elements = 0;
  bool isSequence = false, isOptional = false, isMap = false, isSparse = false;
  bool isVariadic = false;
  /// Operands with the same one have the same type; of variadic operands that may differ from each other it is empty.
  std::string variable;
};
/// Of all operands of an operator; null where ONNX has no schema. What later versions of the operator take, earlier
/// ones take as well: exporters are lax, and the operators mean the same. Lives as long as the process.
const std::vector<OperandType> *getOperandTypes(llvm::StringRef domain, llvm::StringRef type, int64_t opset);

/// The default of an attribute; nullopt where there is none.
std::optional<onnx::AttributeProto> getAttributeDefault(llvm::StringRef domain, llvm::StringRef type, int opset,
                                                        llvm::StringRef attribute);

/// "" for "ai.onnx", which is how ONNX stores it.
std::string toOnnxDomain(llvm::StringRef domain);

} // namespace tc::onnxfe

#endif // TC_LIB_FRONTEND_ONNX_ONNXLIBRARY_H
