//===- RunArtifact.cpp - run what was compiled, in process --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "RunArtifact.h"

#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/IR/TypeUtilities.h"
#include "tcrt/tcrt.h"
#include "llvm/ADT/ScopeExit.h"

#include <cstring>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

namespace {

llvm::Error makeError(tcrt_status_t status) {
  return llvm::createStringError(
      std::make_error_code(status == TCRT_ERROR_MACHINE ? std::errc::no_such_device : std::errc::invalid_argument),
      llvm::Twine(tcrt_last_error()));
}

/// Bytes that `count` elements take in the runtime, where elements of 2 and 4 bits are packed.
int64_t getPackedBytes(Type type, int64_t count) {
  return llvm::divideCeil(count * base::getPackedBitWidth(type).value_or(0), 8);
}

Type getByteType(Type type) { return IntegerType::get(type.getContext(), 8, IntegerType::Unsigned); }

/// The tensor's bytes as the runtime takes them.
prim::Tensor pack(const prim::Tensor &tensor) {
  return prim::changeStorage(tensor, getByteType(tensor.elementType),
                             {getPackedBytes(tensor.elementType, tensor.numElements())});
}

/// A copy of a tensor of the runtime.
prim::Tensor unpack(const tcrt_tensor_t &from, Type type) {
  ArrayRef<int64_t> shape(from.dims, from.rank);
  int64_t size = getPackedBytes(type, prim::countElements(shape));
  char *bytes;
  prim::Tensor raw = prim::allocateTensor(getByteType(type), {size}, bytes);
  if (size > 0)
    std::memcpy(bytes, from.data, size);
  return prim::changeStorage(raw, type, shape);
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
  if (const tcrt_status_t status = tcrt_model_open_file(path.c_str(), &options, &model))
    return makeError(status);
  return OpenedArtifact(model);
}

llvm::Expected<OpenedArtifact> OpenedArtifact::openMemory(StringRef bytes, const std::string &name,
                                                          const std::string &variant, bool onGpu) {
  tcrt_model_options_t options = makeOptions(variant, onGpu);
  tcrt_model_t *model;
  if (const tcrt_status_t status = tcrt_model_open_memory(bytes.data(), bytes.size(), name.c_str(), &options, &model))
    return makeError(status);
  return OpenedArtifact(model);
}

OpenedArtifact::~OpenedArtifact() { tcrt_model_close(model); }

llvm::Error OpenedArtifact::checkMachine() {
  tcrt_context_t *context;
  if (const tcrt_status_t status = tcrt_context_create(model, nullptr, &context))
    return makeError(status);
  tcrt_context_destroy(context);
  return llvm::Error::success();
}

llvm::Expected<std::vector<prim::Tensor>> OpenedArtifact::run(ArrayRef<prim::Tensor> inputs, TypeRange results,
                                                              uint32_t function) {
  tcrt_context_t *context;
  if (const tcrt_status_t status = tcrt_context_create(model, nullptr, &context))
    return makeError(status);
  auto destroy = llvm::make_scope_exit([&] { tcrt_context_destroy(context); });
  std::vector<prim::Tensor> buffers;
  llvm::StringMap<tcrt_tensor_t> tensors;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    buffers.push_back(pack(input));
    tcrt_value_info_t info;
    if (const tcrt_status_t status = tcrt_model_function_input(model, function, i, &info))
      return makeError(status);
    tcrt_tensor_t &tensor = tensors[info.name];
    tensor = {};
    tensor.dtype = info.dtype;
    tensor.rank = input.shape.size();
    llvm::copy(input.shape, tensor.dims);
    tensor.data = const_cast<char *>(buffers.back().bytes.get());
    tensor.size_bytes = buffers.back().sizeBytes();
  }
  // What tc-hoist-static has taken out of the function comes first.
  SmallVector<uint32_t> functions;
  tcrt_function_info_t info;
  if (const tcrt_status_t status = tcrt_model_function(model, function, &info))
    return makeError(status);
  if (uint32_t prepare;
      tcrt_model_find_function(model, (std::string(info.name) + ".prepare").c_str(), &prepare) == TCRT_OK)
    functions.push_back(prepare);
  functions.push_back(function);
  for (uint32_t number : functions) {
    if (tcrt_context_set_function(context, number) != TCRT_OK || tcrt_model_function(model, number, &info) != TCRT_OK)
      return makeError(TCRT_ERROR_INVALID);
    for (uint32_t i = 0; i < info.input_count; ++i) {
      tcrt_value_info_t input;
      if (tcrt_model_function_input(model, number, i, &input) != TCRT_OK ||
          tcrt_context_set_input(context, i, &tensors[input.name]) != TCRT_OK)
        return makeError(TCRT_ERROR_INVALID);
    }
    if (const tcrt_status_t status = tcrt_context_run(context))
      return makeError(status);
  }
  std::vector<prim::Tensor> outputs;
  for (auto [i, type] : llvm::enumerate(results)) {
    tcrt_tensor_t tensor;
    if (const tcrt_status_t status = tcrt_context_get_output(context, i, &tensor))
      return makeError(status);
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
