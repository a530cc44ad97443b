//===- Session.h - an opened artifact with one context and its tensors ----------------------------------*- C++ -*-===//
//
// What the tools that run artifacts share: opening, inputs from files or at random, buffers of the caller's own,
// outputs. Errors are thrown as Failure; those of libtcrt keep its sentence and its status as the exit code.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_SESSION_H
#define TC_RUN_SESSION_H

#include "tc/Run/Npz.h"
#include "tc/Run/Tensor.h"
#include "tcrt/function.h"
#include "tcrt/tcrt.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tc::run {

using Clock = std::chrono::steady_clock;
inline double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// Throws what libtcrt says if `status` is not TCRT_OK.
void check(tcrt_status_t status);

/// Whether an artifact has code for this device (TCRT_DEVICE_*) alone. False of what is no artifact: opening it says
/// why.
bool isOnlyFor(const std::string &path, uint32_t device);

struct SessionOptions {
  std::string artifact;
  std::string variant;  ///< empty: the best one for this machine
  std::string function; ///< empty: the artifact's first one
  uint32_t threads = 0; ///< 0: one per usable core
  bool isCuda = false;
  int32_t deviceIndex = 0;
  bool isCpuAllowed = false; ///< where the GPU cannot be used
  bool startsDriver = false; ///< the GPU's driver and context start before the time of loading does
  bool verifyWeights = false;
  /// As in tcrt_model_options_t.
  tcrt_status_t (*verify)(void *user, const char *name, const void *data, uint64_t size_bytes, char *why,
                          uint64_t why_bytes) = nullptr;
  void *verifyUser = nullptr;
  int profile = TCRT_PROFILE_OFF;   ///< TCRT_PROFILE_*
  int graphs = TCRT_GRAPHS_DEFAULT; ///< TCRT_GRAPHS_*
  /// As in tcrt_context_options_t.
  void (*event)(void *user, const tcrt_event_t *event) = nullptr;
  void *eventUser = nullptr;
  /// Sizes of symbolic dims for random inputs; inputs from files must agree with them.
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<std::string> customOps; ///< shared libraries with functions (tcrt/function.h); they stay loaded
};

using NamedValues = std::vector<std::pair<std::string, Value>>;

/// Not copyable: contexts and device buffers belong to it.
class Session {
public:
  /// Opens the artifact and makes the context. `options` are copied.
  explicit Session(SessionOptions options);
  Session(const Session &) = delete;
  ~Session();

  tcrt_model_t *model() const { return opened.get(); }
  tcrt_context_t *context() const { return created.get(); }
  const std::vector<tcrt_value_info_t> &inputInfo() const { return inputValues; }
  const std::vector<tcrt_value_info_t> &outputInfo() const { return outputValues; }
  /// Whether a GPU computes.
  bool isOnGpu() const { return runsOnGpu; }
  /// Microseconds from the file to a context that is ready to run; complete after firstRun.
  double loadUs() const { return loadTimeUs; }
  /// Microseconds that the start of the GPU's driver took before that (startsDriver).
  double driverUs() const { return driverTimeUs; }
  /// Microseconds of the first run, without that.
  double firstRunUs() const { return firstRunTimeUs; }

  /// Gives an input; float32 is converted for smaller floats, bytes for integers below a byte.
  void setInput(uint32_t index, const Tensor &tensor);
  void setInput(uint32_t index, Value value);
  /// All arrays of an .npz file, by name or as input_<index>.
  void readInputs(const std::string &path);
  /// NAME=FILE with a .npy or .pb file. `tool` begins the message where `text` is of another form.
  void readInput(const std::string &text, const std::string &tool);
  /// Makes every input that is neither given nor has a default: floats N(0,1); integers uniform in the range that the
  /// manifest implies, else [0,2). The same seed gives the same bytes.
  void makeRandomInputs(uint64_t seed);
  /// The inputs given so far that are tensors, by index.
  const std::vector<std::optional<Tensor>> &inputs() const { return inputTensors; }

  /// Gives states the values of the arrays of these names.
  void readStates(const std::string &path);
  /// All states as they are now.
  NamedTensors states() const;

  /// Binds the inputs, checks sizes, runs once and keeps the outputs.
  void firstRun();
  /// Runs again with the same inputs, and keeps the outputs.
  void runAgain();
  /// Of the last of these, under the model's names and in its order.
  const NamedValues &outputs() const { return computed; }
  /// How many of them, at the end, are values inside of the model (tc-compile --outputs).
  size_t innerOutputCount() const;
  /// Those outputs; a Failure where one is no tensor of numbers, which `purpose` ("--outputs") cannot take.
  NamedTensors tensorOutputs(const std::string &purpose) const;
  /// Binds buffers of our own for inputs and outputs, on the device that computes, so that a run copies nothing.
  void bindBuffers();
  /// Memory of the context's device, freed with the session.
  void *deviceBuffer(uint64_t bytes);

private:
  struct CloseModel {
    void operator()(tcrt_model_t *model) const { tcrt_model_close(model); }
  };
  struct DestroyContext {
    void operator()(tcrt_context_t *context) const { tcrt_context_destroy(context); }
  };
  /// Memory of a GPU, which keeps its driver and context alive.
  struct HeldGpu {
    ~HeldGpu();
    int32_t gpu = 0;
    void *data = nullptr;
  };

  /// The input that an array's name means: its name, or input_<index>.
  std::optional<uint32_t> lookupInput(const std::string &name) const;
  uint32_t findInput(const std::string &name) const;
  std::vector<std::optional<std::pair<int64_t, int64_t>>> inputRanges() const;
  void checkDimNames() const;
  void checkDims() const;
  void readOutputs();

  const SessionOptions options;
  std::vector<tcrt_function_t> functions; ///< of customOps; the model reads them
  HeldGpu held;
  std::unique_ptr<tcrt_model_t, CloseModel> opened;
  std::unique_ptr<tcrt_context_t, DestroyContext> created;
  bool runsOnGpu = false;
  double driverTimeUs = 0, loadTimeUs = 0, firstRunTimeUs = 0;
  uint32_t function = 0;
  std::vector<tcrt_value_info_t> inputValues, outputValues;
  std::vector<tcrt_symbol_info_t> symbolValues;
  std::vector<std::optional<Tensor>> inputTensors;
  std::vector<std::optional<Value>> otherInputs; ///< that are no tensors
  std::vector<std::shared_ptr<void>> bound;      ///< what the library reads of strings and trees
  NamedValues computed;
  std::vector<ByteVector> outputBuffers;
  std::vector<std::pair<void *, uint64_t>> deviceBuffers;
};

} // namespace tc::run

#endif // TC_RUN_SESSION_H
