//===- CalibrationData.cpp - sample inputs from .npz files --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CalibrationData.h"

#include "tc/Run/Npz.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace tc;
using namespace tc::driver;

namespace {

using Dims = std::vector<int64_t>;

std::string describe(Dims dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + (dims[i] < 0 ? std::string("any") : std::to_string(dims[i]));
  return text + ")";
}

bool fits(const Dims &dims, const Dims &allowed, size_t from) {
  for (size_t i = from; i < allowed.size(); ++i)
    if (allowed[i] >= 0 && dims[i] != allowed[i])
      return false;
  return true;
}

/// How many runs an array is, and of which sizes; 0: it does not fit.
int64_t cut(const Dims &dims, const Dims &input, Dims &ofRun) {
  if (dims.size() == input.size() + 1) {
    ofRun.assign(dims.begin() + 1, dims.end());
    return fits(ofRun, input, 0) ? dims[0] : 0;
  }
  ofRun = dims;
  if (dims.size() != input.size() || !fits(dims, input, 1))
    return 0;
  if (input.empty() || input[0] < 0)
    return input.empty() || dims[0] > 0 ? 1 : 0;
  ofRun[0] = input[0];
  return input[0] > 0 && dims[0] % input[0] == 0 ? dims[0] / input[0] : 0;
}

template <typename T> int64_t findNaN(const run::Tensor &tensor) {
  const T *values = reinterpret_cast<const T *>(tensor.data.data());
  const int64_t count = tensor.count();
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(values[i]))
      return i;
  return -1;
}

std::string read(const std::string &path, const std::vector<CalibrationInput> &inputs,
                 std::vector<std::vector<CalibrationArray>> &runs) {
  auto fail = [&](const std::string &what) { return path + ": error: " + what; };
  std::set<std::string> names; // each is shown more than once
  run::NamedTensors arrays = run::readNpz(path, [&](const std::string &name) {
    names.insert(name);
    return std::any_of(inputs.begin(), inputs.end(), [&](const CalibrationInput &input) { return input.name == name; });
  });
  struct Samples {
    std::shared_ptr<run::Tensor> tensor;
    Dims ofRun;
    int64_t count = 1;
  };
  std::vector<Samples> samples;
  int64_t count = 1;
  std::string longest;
  for (const CalibrationInput &input : inputs) {
    auto found = std::find_if(arrays.begin(), arrays.end(), [&](auto &entry) { return entry.first == input.name; });
    Samples &own = samples.emplace_back();
    const std::string what = "array \"" + input.name + "\"";
    if (found == arrays.end()) {
      if (input.hasDefault)
        continue;
      std::string all;
      for (const std::string &name : names)
        all += (all.empty() ? "" : ", ") + name;
      return fail("the model has an input \"" + input.name + "\", and --calibrate no array of that name but " +
                  (all.empty() ? "none at all" : all) + "; add one with samples of it");
    }
    own.tensor = std::make_shared<run::Tensor>(std::move(found->second));
    const run::Tensor &tensor = *own.tensor;
    if (tensor.dtype != input.dtype)
      return fail(what + " is of " +
                  (tensor.dtype == TCRT_DTYPE_INVALID ? "no known type" : tcrt_dtype_name(tensor.dtype)) +
                  ", and the input of " + tcrt_dtype_name(input.dtype) + "; convert it with astype()");
    own.count = cut(tensor.dims, input.dims, own.ofRun);
    if (own.count == 0)
      return fail(what + " is " + describe(tensor.dims) + ", which holds no samples of the input " +
                  describe(input.dims) +
                  "; give them one behind the other along the first dim, or along a dim before it");
    const int64_t at = tensor.dtype == TCRT_DTYPE_F32   ? findNaN<float>(tensor)
                       : tensor.dtype == TCRT_DTYPE_F64 ? findNaN<double>(tensor)
                                                        : -1;
    if (at >= 0)
      return fail(what + " holds NaN (element " + std::to_string(at) + "), which has no range; leave that sample out");
    if (own.count > count) {
      count = own.count;
      longest = input.name;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (samples[i].count != count && samples[i].count != 1)
      return fail("array \"" + inputs[i].name + "\" holds " + std::to_string(samples[i].count) + " samples, and \"" +
                  longest + "\" " + std::to_string(count) + "; give as many of each");
  for (int64_t k = 0; k < count; ++k) {
    std::vector<CalibrationArray> &arraysOfRun = runs.emplace_back();
    for (const Samples &own : samples) {
      CalibrationArray &array = arraysOfRun.emplace_back();
      if (!own.tensor)
        continue;
      array.dims = own.ofRun;
      // Of no bytes, the tensor itself, as null would say that there is no array.
      if (own.tensor->data.empty()) {
        array.bytes = std::shared_ptr<const char>(own.tensor, reinterpret_cast<const char *>(own.tensor.get()));
        continue;
      }
      const size_t bytes = own.tensor->data.size() / own.count;
      const char *begin = reinterpret_cast<const char *>(own.tensor->data.data()) + (own.count == 1 ? 0 : k * bytes);
      array.bytes = std::shared_ptr<const char>(own.tensor, begin);
    }
  }
  return "";
}

} // namespace

std::string tc::driver::readCalibrationData(const std::string &path, const std::vector<CalibrationInput> &inputs,
                                            std::vector<std::vector<CalibrationArray>> &runs) {
  try {
    return read(path, inputs, runs);
  } catch (const run::Failure &failure) {
    return failure.message;
  }
}
