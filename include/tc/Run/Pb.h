//===- Pb.h - ONNX TensorProto, SequenceProto and OptionalProto files -----------------------------------*- C++ -*-===//
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

/// What a .pb file holds. The three messages do not say which they are: a file with tensors in field 3 and no tensor
/// data of its own is a sequence or, with at most one of them, maybe an optional.
struct PbValue {
  bool isTensor = true;
  std::vector<Tensor> tensors;
};

PbValue readPb(const std::string &path);

/// A TensorProto with raw data.
std::vector<uint8_t> tensorProto(const std::string &name, const Tensor &tensor);
/// A SequenceProto of tensors.
std::vector<uint8_t> sequenceProto(const std::string &name, const std::vector<Tensor> &tensors);
/// An OptionalProto that holds a tensor, or nothing for NULL.
std::vector<uint8_t> optionalProto(const std::string &name, const Tensor *tensor);

} // namespace tc::run

#endif // TC_RUN_PB_H
