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

namespace tc::autotune {

/// Caller-owned tensors of a region: inputs of f32 hold numbers in [-1, 1), all others 0, which is a valid position in
/// anything.
class Tensors {
public:
  struct Tensor {
    std::vector<int64_t> shape;
    uint64_t bytes = 0;
    bool isF32 = false;
    char *data = nullptr;
  };
  Tensors() = default;
  Tensors(const Tensors &) = delete;
  Tensors &operator=(const Tensors &) = delete;
  ~Tensors();
  void addInput(std::vector<int64_t> shape, uint64_t bytes, bool isF32);
  void addOutput(std::vector<int64_t> shape, uint64_t bytes);

  std::vector<Tensor> inputs, outputs;
};

/// An artifact that is opened several times, so that its weights come from where they come from in a model whose other
/// layers run in between.
class Runner {
public:
  /// `artifact`: copied. `variant`: "" lets the runtime choose. `weightBytes`: that the artifact holds.
  static llvm::Expected<Runner> open(llvm::StringRef artifact, const std::string &variant, unsigned threads,
                                     uint64_t weightBytes, const Tensors &tensors);
  Runner(Runner &&) = default;
  Runner &operator=(Runner &&) = default;
  /// The variant that runs.
  std::string getVariant() const;
  /// Seconds for one run, of `count` runs in turn.
  double run(unsigned count);

private:
  Runner() = default;
  struct Copy {
    Copy() = default;
    Copy(const Copy &) = delete;
    Copy &operator=(const Copy &) = delete;
    ~Copy();
    std::unique_ptr<llvm::WritableMemoryBuffer> artifact; // the model reads it
    tcrt_model_t *model = nullptr;
    tcrt_context_t *context = nullptr;
  };
  std::vector<std::unique_ptr<Copy>> copies;
  size_t next = 0;
};

/// Seconds of a run, and how many times as long B takes: by the least times, in the median of the pairs that ran one
/// after the other, and in all but a fifth of them.
struct Comparison {
  double leastA, leastB;
  double leastRatio, medianRatio, fifthRatio;
};

/// Runs both in turn for about so many seconds, and at least `pairs` times. Stops early where B is hopeless.
Comparison compare(Runner &a, Runner &b, double seconds, size_t pairs);

} // namespace tc::autotune

#endif // TC_LIB_AUTOTUNE_RUNNER_H
