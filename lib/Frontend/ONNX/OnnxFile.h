//===- OnnxFile.h - a bounded look at an ONNX file before protobuf parses it ----------------------------*- C++ -*-===//
//
// Protobuf copies every byte of a message, has a limit of 2 GB, and says nothing about what is wrong. So the file's
// wire format is walked first: message bounds, depth and number of nodes are checked, and large raw tensor data is left
// out of the copy that protobuf gets (the skeleton). Such a tensor is rewritten as one with external data at
// kSelfLocation, whose offset and length are a place in the file itself.
//
// The walk knows the messages of onnx.proto that contain tensors, graphs or types; all other fields pass through.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_ONNX_ONNXFILE_H
#define TC_LIB_FRONTEND_ONNX_ONNXFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace tc::onnxfe {

/// Location of external data that stands for the model's file. No path of a file: it has a control character.
inline constexpr llvm::StringLiteral kSelfLocation = "\x01self";
/// Tensors up to this size stay in the skeleton, since shape inference reads the small ones.
inline constexpr uint64_t kMaxSkeletonTensor = 1024;

struct WireLimits {
  unsigned maxDepth = 64;
  uint64_t maxNodes = 4'000'000;
};

/// The skeleton of a serialised ModelProto. The error is what is wrong, without the file's name.
llvm::Expected<std::string> makeSkeleton(llvm::ArrayRef<char> file, const WireLimits &limits);

} // namespace tc::onnxfe

#endif // TC_LIB_FRONTEND_ONNX_ONNXFILE_H
