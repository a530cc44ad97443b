//===- Pickle.h - Python pickles of PyTorch as plain data -----------------------------------------------*- C++ -*-===//
//
// What torch.save and torch.jit.save pickle: none, numbers, strings, tuples, lists, dicts, tensors that name a range of
// a storage, and objects of an archive's own classes (__torch__.*) as a name with a state. A pickle is a program that
// may call any Python function; here a fixed list of names gives data, every other name is refused, and nothing is ever
// run. Protocols 2 to 5. Any bytes are safe to give: time and memory grow with their number alone, and what comes out
// is free of cycles and at most kMaxPickleDepth deep, so that readers may recurse. A value may be reached in many ways,
// and so by exponentially many paths: whoever walks a whole pickle remembers where it was.
//
//   std::string error;
//   std::optional<torch::Pickle> pickle = torch::Pickle::parse(bytes, error);
//   const torch::PickledValue *weight = pickle->root().find("weight");        // of a dict, or of an object's state
//   if (weight && weight->kind == torch::PickledValue::Kind::Tensor)
//     weight->tensor->sizes ...                                               // its bytes: TensorData.h
//
// C++ alone. Errors say what is wrong and what to do, without the name of the file or member.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_FRONTEND_TORCH_PICKLE_H
#define TC_FRONTEND_TORCH_PICKLE_H

#include "tc/Frontend/Torch/ScalarType.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tc::torch {

inline constexpr unsigned kMaxPickleDepth = 1000;
/// PyTorch itself has no tensors of more dims.
inline constexpr unsigned kMaxPickledRank = 64;

struct PickledValue;

/// A block of bytes that tensors view: a member of the archive, such as "data/<key>".
struct PickledStorage {
  std::string key;
  ScalarType dtype = ScalarType::Undefined; ///< Undefined: untyped, its `elements` are bytes
  std::string location;                     ///< the device that it was on: "cpu"
  uint64_t elements = 0;
};

struct PickledTensor {
  std::optional<PickledStorage> storage; ///< none: a tensor of shape and type alone (device "meta")
  ScalarType dtype = ScalarType::Undefined;
  int64_t offset = 0;                  ///< of the first element in the storage, in elements
  std::vector<int64_t> sizes, strides; ///< as many as dims; sizes are not negative
  bool requiresGrad = false, isParameter = false;
  bool isConjugated = false, isNegated = false; ///< read so, although stored otherwise

  /// Integers that stand for (integer - zero point) * scale.
  struct Quantization {
    double scale = 1; ///< of the whole tensor, where `scales` is null
    int64_t zeroPoint = 0;
    const PickledValue *scales = nullptr, *zeroPoints = nullptr; ///< tensors, an element for each index of dim `axis`
    int64_t axis = 0;
  };
  std::optional<Quantization> quantization;
};

struct PickledValue {
  enum class Kind : uint8_t {
    None,
    Bool,       ///< integer
    Int,        ///< integer
    Float,      ///< real
    Complex,    ///< real, imaginary
    String,     ///< text, UTF-8 as it came
    Bytes,      ///< text
    Tuple,      ///< items; torch.Size too
    List,       ///< items; sets too. text: the type that TorchScript gave it, "List[int]", or ""
    Dict,       ///< items: key, value, key, value, ... Keys that are strings are there once. text: as of lists
    Tensor,     ///< tensor
    Storage,    ///< storage
    ScalarType, ///< integer: a tc::torch::ScalarType
    Device,     ///< text: "cpu", "cuda:0"
    Symbol,     ///< text: another name of PyTorch's, "torch.per_tensor_affine", "torch.strided", or a class
    Object ///< text: its class, "__torch__.Net". arguments: of its making, a tuple, or an enum's value. state: what
           ///< it was then given, or null
  };
  Kind kind = Kind::None;
  int64_t integer = 0;
  double real = 0, imaginary = 0;
  std::string text;
  std::vector<const PickledValue *> items;
  const PickledValue *arguments = nullptr, *state = nullptr;
  std::unique_ptr<PickledTensor> tensor;
  std::unique_ptr<PickledStorage> storage;

  bool isNone() const { return kind == Kind::None; }
  bool isString() const { return kind == Kind::String; }
  /// Of a dict, or of an object whose state is one: the value of a key that is a string; null if there is none.
  const PickledValue *find(std::string_view key) const;

private:
  friend class Unpickler;
  mutable uint32_t depth = 0; // how deep it is, once that is known
};

class Pickle {
public:
  static std::optional<Pickle> parse(std::string_view bytes, std::string &error);

  const PickledValue &root() const { return *top; }

private:
  friend class Unpickler;
  std::deque<PickledValue> values; // never move
  const PickledValue *top = nullptr;
};

} // namespace tc::torch

#endif // TC_FRONTEND_TORCH_PICKLE_H
