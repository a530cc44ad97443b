//===- Pb.h - ONNX TensorProto, SequenceProto, OptionalProto and MapProto files -------------------------*- C++ -*-===//
//
// A reader and a writer of the protobuf wire format (protobuf.dev, "Encoding") for just these messages (onnx.proto3 of
// ONNX 1.23), so that tc-run needs no protobuf library. Any byte string is safe to read; problems are Failures with
// code 1.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_PB_H
#define TC_RUN_PB_H

#include "tc/Run/Tensor.h"

#include <string>
#include <vector>

namespace tc::run {

/// Reads the message that a value of these kinds (kindsOf) is stored as: TensorProto, SequenceProto, OptionalProto, or
/// MapProto, none of which says which it is.
Value readPb(const std::string &path, uint32_t kinds = TCRT_VALUE_TENSOR);

/// A TensorProto with raw data, or with strings.
ByteVector tensorProto(const std::string &name, const Tensor &tensor);
/// The message of a value of these kinds.
ByteVector valueProto(const std::string &name, const Value &value, uint32_t kinds);

} // namespace tc::run

#endif // TC_RUN_PB_H
