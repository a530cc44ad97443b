//===- Runner.h - time two artifacts against each other -------------------------------------------------*- C++ -*-===//
//
// Through libtcrt alone, so that the compiler and tc-run measure alike.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_MEASURE_RUNNER_H
#define TC_MEASURE_RUNNER_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tc::measure {

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
  /// False: there is no memory for it.
  bool addInput(std::vector<int64_t> shape, uint64_t bytes, Elements elements);
  bool addOutput(std::vector<int64_t> shape, uint64_t bytes, Elements elements = Elements::Other);

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
  /// Which function of the artifact.
  uint32_t function = 0;
  /// The artifact's bytes are aligned and stay as they are while the runner lives, so that one copy needs no memory.
  bool isKept = false;
};

/// An artifact that is opened several times, so that its weights come from where they come from in a model whose other
/// layers run in between.
class Runner {
public:
  /// `artifact`: copied. `other`: on a GPU they share the memory of their tensors. Nullopt: the `error` is a sentence.
  static std::optional<Runner> open(std::string_view artifact, const RunnerOptions &options, const Tensors &tensors,
                                    std::string &error, const Runner *other = nullptr);
  /// Another function of an artifact that is open, with the same tensors.
  static std::optional<Runner> openFunction(const Runner &other, uint32_t function, const Tensors &tensors,
                                            std::string &error);
  Runner(Runner &&) = default;
  Runner &operator=(Runner &&) = default;
  /// The variant that runs.
  std::string getVariant() const;
  bool isOnGpu() const { return options.onGpu; }
  /// Seconds for one run, of `count` runs in turn. Infinity: a run failed.
  double run(unsigned count);
  /// On a GPU: the largest difference of the outputs of floats to those of `other`, in units of what rounding and the
  /// order of sums explain; more than 1: it computes something else. Infinity: a run failed.
  double differFrom(Runner &other, const Tensors &tensors);
  /// Why a run failed; empty: none did.
  const std::string &getFailure() const { return failure; }

private:
  Runner() = default;
  struct Model;
  struct Copy;
  struct DeviceTensors;
  /// Makes a context for the model, binds the tensors and runs it once. An error is a sentence.
  std::string addCopy(std::shared_ptr<Model> model, const Tensors &tensors);
  std::string bind(Copy &copy, const Tensors &tensors) const;
  /// Of a run on the GPU, one after the other; nothing where it failed.
  std::vector<std::vector<char>> readOutputs(const Tensors &tensors);

  RunnerOptions options;
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

} // namespace tc::measure

#endif // TC_MEASURE_RUNNER_H
