//===- Runner.h - time two artifacts against each other -------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_AUTOTUNE_RUNNER_H
#define TC_LIB_AUTOTUNE_RUNNER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemAlloc.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <vector>

struct tcrt_model_t;
struct tcrt_context_t;
struct tcrt_tensor_t;

namespace tc::autotune {

/// What the elements of a tensor are. Inputs of floats hold numbers in [-1, 1), all others 0, which is a valid position
/// in anything.
enum class Elements { Other, F32, F16, BF16 };

/// Caller-owned tensors of a region.
class Tensors {
public:
  struct Tensor {
    std::vector<int64_t> shape;
    uint64_t bytes = 0;
    Elements elements = Elements::Other;
    char *data = nullptr;
  };
  Tensors() = default;
  Tensors(const Tensors &) = delete;
  Tensors &operator=(const Tensors &) = delete;
  ~Tensors();
  void addInput(std::vector<int64_t> shape, uint64_t bytes, Elements elements);
  void addOutput(std::vector<int64_t> shape, uint64_t bytes, Elements elements = Elements::Other);

  std::vector<Tensor> inputs, outputs;
};

/// How artifacts run.
struct RunnerOptions {
  /// "" lets the runtime choose.
  std::string variant;
  unsigned threads = 1;
  /// That the artifact holds.
  uint64_t weightBytes = 0;
  /// On the GPU, whose own time counts: tensors stay in its memory. The bytes of its second-level cache.
  bool onGpu = false;
  uint64_t gpuCacheBytes = 0;
};

/// An artifact that is opened several times, so that its weights come from where they come from in a model whose other
/// layers run in between.
class Runner {
public:
  /// `artifact`: copied. `other`: on a GPU they share the memory of their tensors.
  static llvm::Expected<Runner> open(llvm::StringRef artifact, const RunnerOptions &options, const Tensors &tensors,
                                     const Runner *other = nullptr);
  Runner(Runner &&) = default;
  Runner &operator=(Runner &&) = default;
  /// The variant that runs.
  std::string getVariant() const;
  /// Seconds for one run, of `count` runs in turn. Infinity: a run failed.
  double run(unsigned count);
  /// On a GPU: the largest difference of the outputs of floats to those of `other`, in units of what rounding and the
  /// order of sums explain; more than 1: it computes something else. Infinity: a run failed.
  double differFrom(Runner &other, const Tensors &tensors);
  /// Why a run failed; empty: none did.
  const std::string &getFailure() const { return failure; }

private:
  Runner() = default;
  struct Copy;
  struct DeviceTensors;
  llvm::Error bind(Copy &copy, const Tensors &tensors) const;
  /// Of a run on the GPU, one after the other; nothing where it failed.
  std::vector<std::vector<char>> readOutputs(const Tensors &tensors);

  struct Copy {
    Copy() = default;
    Copy(const Copy &) = delete;
    Copy &operator=(const Copy &) = delete;
    ~Copy();
    std::unique_ptr<llvm::WritableMemoryBuffer> artifact; // the model reads it
    tcrt_model_t *model = nullptr;
    tcrt_context_t *context = nullptr;
  };
  std::shared_ptr<DeviceTensors> onDevice; // freed after the copies
  std::vector<std::shared_ptr<Copy>> copies;
  size_t next = 0;
  std::string failure;
};

/// Seconds of a run, and how many times as long B takes: by the least times, in the median of the pairs that ran one
/// after the other, and in all but a fifth of them.
struct Comparison {
  double leastA, leastB;
  double leastRatio, medianRatio, fifthRatio;
};

/// Runs both in turn for about so many seconds, and at least `pairs` times. Stops early where B is hopeless. Where a
/// run fails, all are infinite.
Comparison compare(Runner &a, Runner &b, double seconds, size_t pairs);

} // namespace tc::autotune

#endif // TC_LIB_AUTOTUNE_RUNNER_H
