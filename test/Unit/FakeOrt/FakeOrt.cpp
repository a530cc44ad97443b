//===- FakeOrt.cpp - A libonnxruntime.so without ONNX Runtime
//---------------------------------------------------------===//
//
// A library with the entries of ONNX Runtime's C interface that libtcrt-ort calls. It reads ONNX files as far as their
// nodes are Relu, Add of equal sizes, MatMul of matrices, all of f32, NonZero of a vector, and Twice, which is no
// operator of ONNX. FAKE_ORT in the environment, words with commas between them, lets it fail: `old` (a release without
// the entries), `session` (the file is refused), `run`. FAKE_ORT_LOG names a file that sessions and runs are written
// to, a line for each.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "RuntimeOrt/Api.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using Bytes = std::string;
enum { kFloat = 1, kInt64 = 7 };

bool isTold(const char *word) {
  const char *words = std::getenv("FAKE_ORT");
  return words && ("," + std::string(words) + ",").find("," + std::string(word) + ",") != std::string::npos;
}

void note(const std::string &line) {
  const char *path = std::getenv("FAKE_ORT_LOG");
  if (std::FILE *file = path ? std::fopen(path, "a") : nullptr) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

//===--- files
//------------------------------------------------------------------------------------------------------===//

/// A message of Protocol Buffers: the values of each field, numbers as 8 bytes.
std::multimap<int, Bytes> parse(const Bytes &text) {
  std::multimap<int, Bytes> fields;
  size_t at = 0;
  auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < text.size(); shift += 7) {
      const uint8_t byte = uint8_t(text[at++]);
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128)
        break;
    }
    return value;
  };
  while (at < text.size()) {
    const uint64_t tag = varint(), kind = tag & 7;
    Bytes value;
    if (kind == 0) {
      const uint64_t number = varint();
      value.assign(reinterpret_cast<const char *>(&number), sizeof number);
    } else {
      const size_t size = kind == 2 ? varint() : kind == 1 ? 8 : 4;
      value = text.substr(at, size);
      at += size;
    }
    fields.emplace(int(tag >> 3), value);
  }
  return fields;
}

std::vector<Bytes> all(const std::multimap<int, Bytes> &fields, int number) {
  std::vector<Bytes> values;
  for (auto [at, end] = fields.equal_range(number); at != end; ++at)
    values.push_back(at->second);
  return values;
}

Bytes one(const std::multimap<int, Bytes> &fields, int number) {
  auto at = fields.find(number);
  return at == fields.end() ? Bytes() : at->second;
}

struct Tensor {
  int dtype = kFloat;
  std::vector<int64_t> dims;
  Bytes own; ///< unless it is the caller's
  void *data = nullptr;

  size_t count() const {
    size_t elements = 1;
    for (int64_t dim : dims)
      elements *= size_t(dim);
    return elements;
  }
  float *floats() const { return static_cast<float *>(data); }
};

struct Node {
  std::string type;
  std::vector<std::string> inputs, outputs;
};

struct Session {
  std::vector<Node> nodes;
  std::map<std::string, Tensor> constants;
};

} // namespace

//===--- the entries ----------------------------------------------------------------------------------------------===//

struct ort_status_t {
  int code;
  std::string message;
};
struct ort_env_t {};
struct ort_memory_t {};
struct ort_options_t {
  int threads = 0;
  std::string spinning = "1";
};
struct ort_session_t : Session {};
struct ort_value_t : Tensor {};
struct ort_shape_t {
  const Tensor *tensor;
};

namespace {

ort_status_t *failed(int code, const std::string &message) { return new ort_status_t{code, message}; }

int GetErrorCode(const ort_status_t *status) { return status->code; }
const char *GetErrorMessage(const ort_status_t *status) { return status->message.c_str(); }
void ReleaseStatus(ort_status_t *status) { delete status; }

ort_status_t *CreateEnv(int, const char *, ort_env_t **env) {
  static ort_env_t only;
  *env = &only;
  return nullptr;
}
ort_status_t *CreateCpuMemoryInfo(int, int, ort_memory_t **memory) {
  static ort_memory_t only;
  *memory = &only;
  return nullptr;
}

ort_status_t *CreateSessionOptions(ort_options_t **options) {
  *options = new ort_options_t();
  return nullptr;
}
ort_status_t *SetIntraOpNumThreads(ort_options_t *options, int threads) {
  options->threads = threads;
  return nullptr;
}
ort_status_t *AddSessionConfigEntry(ort_options_t *options, const char *key, const char *value) {
  if (std::strcmp(key, "session.intra_op.allow_spinning") != 0)
    return failed(ORT_INVALID_ARGUMENT, "no such entry");
  options->spinning = value;
  return nullptr;
}
void ReleaseSessionOptions(ort_options_t *options) { delete options; }

ort_status_t *CreateSessionFromArray(const ort_env_t *, const void *model, size_t bytes, const ort_options_t *options,
                                     ort_session_t **session) {
  if (isTold("session"))
    return failed(1, "Load model failed:\nFAKE_ORT says so\n");
  auto made = new ort_session_t();
  const auto graph = parse(one(parse(Bytes(static_cast<const char *>(model), bytes)), 7));
  std::string types;
  for (const Bytes &text : all(graph, 1)) {
    const auto fields = parse(text);
    made->nodes.push_back({one(fields, 4), all(fields, 1), all(fields, 2)});
    types += " " + made->nodes.back().type;
  }
  for (const Bytes &text : all(graph, 5)) {
    const auto fields = parse(text);
    Tensor &tensor = made->constants[one(fields, 8)];
    for (const Bytes &dims : all(fields, 1))
      for (size_t i = 0; i < dims.size(); i += dims.size() == 8 ? 8 : 1) // a number, or small ones packed
        tensor.dims.push_back(int64_t(uint8_t(dims[i])));
    tensor.own = one(fields, 9);
    tensor.data = tensor.own.data();
  }
  note("session of" + types + ", " + std::to_string(options->threads) + " threads, spinning " + options->spinning);
  *session = made;
  return nullptr;
}
void ReleaseSession(ort_session_t *session) {
  note("session released");
  delete session;
}

ort_status_t *CreateTensorWithDataAsOrtValue(const ort_memory_t *, void *data, size_t bytes, const int64_t *dims,
                                             size_t rank, int dtype, ort_value_t **value) {
  auto made = new ort_value_t();
  made->dtype = dtype;
  made->dims.assign(dims, dims + rank);
  made->data = data;
  *value = made;
  const size_t expected = made->count() * (dtype == kInt64 ? 8 : 4);
  return bytes == expected ? nullptr : failed(ORT_INVALID_ARGUMENT, "not enough space");
}
void ReleaseValue(ort_value_t *value) { delete value; }

ort_status_t *GetTensorMutableData(ort_value_t *value, void **data) {
  *data = value->data;
  return nullptr;
}
ort_status_t *GetTensorTypeAndShape(const ort_value_t *value, ort_shape_t **shape) {
  *shape = new ort_shape_t{value};
  return nullptr;
}
void ReleaseTensorTypeAndShapeInfo(ort_shape_t *shape) { delete shape; }
ort_status_t *GetTensorElementType(const ort_shape_t *shape, int *dtype) {
  *dtype = shape->tensor->dtype;
  return nullptr;
}
ort_status_t *GetDimensionsCount(const ort_shape_t *shape, size_t *rank) {
  *rank = shape->tensor->dims.size();
  return nullptr;
}
ort_status_t *GetDimensions(const ort_shape_t *shape, int64_t *dims, size_t rank) {
  std::copy_n(shape->tensor->dims.begin(), rank, dims);
  return nullptr;
}

Tensor compute(const std::string &type, const std::vector<const Tensor *> &x) {
  Tensor y;
  y.dims = x[0]->dims;
  if (type == "MatMul")
    y.dims[1] = x[1]->dims[1];
  if (type == "NonZero") {
    std::vector<int64_t> found;
    for (size_t i = 0; i < x[0]->count(); ++i)
      if (x[0]->floats()[i] != 0)
        found.push_back(int64_t(i));
    y.dtype = kInt64;
    y.dims = {1, int64_t(found.size())};
    y.own.assign(reinterpret_cast<const char *>(found.data()), found.size() * 8);
    return y;
  }
  std::vector<float> values(y.count());
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == "Twice")
      values[i] = 2 * x[0]->floats()[i];
    else if (type == "Relu")
      values[i] = x[0]->floats()[i] > 0 ? x[0]->floats()[i] : 0;
    else if (type == "Add")
      values[i] = x[0]->floats()[i] + x[1]->floats()[i];
    else
      for (int64_t k = 0, n = y.dims[1], depth = x[1]->dims[0]; k < depth; ++k)
        values[i] += x[0]->floats()[int64_t(i) / n * depth + k] * x[1]->floats()[k * n + int64_t(i) % n];
  }
  y.own.assign(reinterpret_cast<const char *>(values.data()), values.size() * 4);
  return y;
}

ort_status_t *Run(ort_session_t *session, const void *, const char *const *inputNames, const ort_value_t *const *inputs,
                  size_t inputCount, const char *const *outputNames, size_t outputCount, ort_value_t **outputs) {
  if (isTold("run"))
    return failed(6, "Non-zero status code returned\nFAKE_ORT says so");
  std::map<std::string, Tensor> made;
  std::map<std::string, const Tensor *> values;
  for (auto &[name, tensor] : session->constants)
    values[name] = &tensor;
  for (size_t i = 0; i < inputCount; ++i)
    values[inputNames[i]] = inputs[i];
  for (const Node &node : session->nodes) {
    std::vector<const Tensor *> operands;
    for (const std::string &input : node.inputs)
      operands.push_back(values.at(input));
    static const std::set<std::string> known = {"Add", "MatMul", "NonZero", "Relu", "Twice"};
    if (!known.count(node.type))
      return failed(9, "FakeOrt has no " + node.type);
    Tensor &result = made[node.outputs[0]] = compute(node.type, operands);
    result.data = result.own.data();
    values[node.outputs[0]] = &result;
  }
  for (size_t i = 0; i < outputCount; ++i) {
    const Tensor &result = *values.at(outputNames[i]);
    if (!outputs[i]) {
      outputs[i] = new ort_value_t();
      static_cast<Tensor &>(*outputs[i]) = result;
      outputs[i]->data = outputs[i]->own.data();
    } else if (outputs[i]->dims != result.dims) {
      return failed(ORT_INVALID_ARGUMENT, "the output has another shape than was computed");
    } else {
      std::memcpy(outputs[i]->data, result.own.data(), result.own.size());
    }
  }
  note("run of " + std::to_string(inputCount) + " inputs, " + std::to_string(outputCount) + " outputs");
  return nullptr;
}

const ort_entry_fn *getApi(uint32_t version) {
  static ort_entry_fn table[ORT_ENTRY_COUNT];
#define ENTRY(name, number, result, parameters) table[number] = reinterpret_cast<ort_entry_fn>(name);
  ORT_ENTRIES(ENTRY)
#undef ENTRY
  return isTold("old") || version > ORT_NEEDED_VERSION ? nullptr : table;
}
const char *getVersionString() { return "0.fake"; }

} // namespace

extern "C" __attribute__((visibility("default"))) const ort_base_t *OrtGetApiBase() {
  static const ort_base_t base = {getApi, getVersionString};
  return &base;
}
