//===- RunArtifact.cpp - run what was compiled, in process --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "RunArtifact.h"

#include "mlir/IR/TypeUtilities.h"
#include "tcrt/tcrt.h"
#include "llvm/ADT/ScopeExit.h"

#include <cstring>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

namespace {

llvm::Error lastError() { return llvm::createStringError(llvm::Twine(tcrt_last_error())); }

/// Bits of an integer element that the runtime packs into bytes, low bits first; 0 where the layouts are the same. The
/// interpreter has a byte for each.
unsigned getPackedBits(Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  return bits < 8 && bits > 1 ? bits : 0;
}

std::vector<char> pack(const prim::Tensor &tensor) {
  const char *bytes = tensor.bytes.get();
  unsigned bits = getPackedBits(tensor.elementType);
  if (bits == 0)
    return std::vector<char>(bytes, bytes + tensor.sizeBytes());
  std::vector<char> packed(llvm::divideCeil(tensor.numElements() * bits, 8));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    packed[i * bits / 8] |= char((bytes[i] & ((1 << bits) - 1)) << (i * bits % 8));
  return packed;
}

prim::Tensor unpack(const tcrt_tensor_t &from, Type type) {
  char *bytes;
  prim::Tensor tensor = prim::allocateTensor(type, ArrayRef<int64_t>(from.dims, from.rank), bytes);
  unsigned bits = getPackedBits(type);
  const char *data = static_cast<const char *>(from.data);
  if (bits == 0) {
    if (tensor.sizeBytes() > 0)
      std::memcpy(bytes, data, tensor.sizeBytes());
    return tensor;
  }
  bool isSigned = isa<IntegerType>(type) && !prim::isUnsignedElement(type);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    int value = (data[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
    bytes[i] = char(isSigned && (value >> (bits - 1)) ? value - (1 << bits) : value);
  }
  return tensor;
}

} // namespace

static tcrt_model_options_t makeOptions(const std::string &variant, bool onGpu) {
  tcrt_model_options_t options = {};
  options.size = sizeof(options);
  options.verify_weights = 1;
  options.variant = variant.empty() ? nullptr : variant.c_str();
  options.device = onGpu ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU;
  return options;
}

llvm::Expected<OpenedArtifact> OpenedArtifact::openFile(const std::string &path, const std::string &variant,
                                                        bool onGpu) {
  tcrt_model_options_t options = makeOptions(variant, onGpu);
  tcrt_model_t *model;
  if (tcrt_model_open_file(path.c_str(), &options, &model) != TCRT_OK)
    return lastError();
  return OpenedArtifact(model);
}

llvm::Expected<OpenedArtifact> OpenedArtifact::openMemory(StringRef bytes, const std::string &name,
                                                          const std::string &variant, bool onGpu) {
  tcrt_model_options_t options = makeOptions(variant, onGpu);
  tcrt_model_t *model;
  if (tcrt_model_open_memory(bytes.data(), bytes.size(), name.c_str(), &options, &model) != TCRT_OK)
    return lastError();
  return OpenedArtifact(model);
}

OpenedArtifact::~OpenedArtifact() { tcrt_model_close(model); }

llvm::Expected<std::vector<prim::Tensor>> OpenedArtifact::run(ArrayRef<prim::Tensor> inputs, TypeRange results) {
  tcrt_context_t *context;
  if (tcrt_context_create(model, nullptr, &context) != TCRT_OK)
    return lastError();
  auto destroy = llvm::make_scope_exit([&] { tcrt_context_destroy(context); });
  std::vector<std::vector<char>> buffers;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    buffers.push_back(pack(input));
    tcrt_value_info_t info;
    if (tcrt_model_input(model, i, &info) != TCRT_OK)
      return lastError();
    tcrt_tensor_t tensor = {};
    tensor.dtype = info.dtype;
    tensor.rank = input.shape.size();
    llvm::copy(input.shape, tensor.dims);
    tensor.data = buffers.back().data();
    tensor.size_bytes = buffers.back().size();
    if (tcrt_context_set_input(context, i, &tensor) != TCRT_OK)
      return lastError();
  }
  if (tcrt_context_run(context) != TCRT_OK)
    return lastError();
  std::vector<prim::Tensor> outputs;
  for (auto [i, type] : llvm::enumerate(results)) {
    tcrt_tensor_t tensor;
    if (tcrt_context_get_output(context, i, &tensor) != TCRT_OK)
      return lastError();
    outputs.push_back(unpack(tensor, getElementTypeOrSelf(type)));
  }
  return outputs;
}

std::vector<std::string> OpenedArtifact::getUsableVariants() const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < tcrt_model_variant_count(model); ++i) {
    tcrt_variant_info_t info;
    if (tcrt_model_variant(model, i, &info) == TCRT_OK && info.usable)
      names.push_back(info.name);
  }
  return names;
}
