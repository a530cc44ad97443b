//===- Writer.h - Writes artifact files -----------------------------------------------------------------*- C++ -*-===//
//
// An artifact is described by an ArtifactSpec and written by writeArtifact. The byte-level format is fixed by
// tcrt/artifact_abi.h and described in lib/Artifact/README.md.
//
// Ownership: the spec owns its names and small tables; code and weights that it only refers to (StringRef, file ranges,
// callbacks) must stay valid until the write returns. Weights are streamed and never held in memory as a whole.
// Determinism: the bytes written depend on the spec alone: no time, path or address gets into the file.
// Errors: one-line sentences that start with the output's path; an error leaves neither a partial file nor a changed
// old one. Files that cannot be read or written give a code of std::errc, a wrong spec none. Threads: no shared state.
//
// Example:
//   ArtifactSpec spec;
//   Function &function = spec.functions.emplace_back();
//   function.name = "main";
//   function.symbols.push_back({"batch", 1, 64, 1});
//   function.inputs.push_back({"x", TCRT_DTYPE_F32, {Dim::symbol(0), Dim::fixed(128)}});
//   function.outputs.push_back({"y", TCRT_DTYPE_F32, {Dim::symbol(0), Dim::fixed(10)}});
//   uint64_t offset = spec.addWeights(Segment::bytes(data)); // what the code adds to frame->weights
//   spec.variants.push_back({"x86-64-v4", TCRT_DEVICE_CPU, featuresV4, elfBytes});
//   if (llvm::Error error = writeArtifact(spec, "model.bin")) ...
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_ARTIFACT_WRITER_H
#define TC_ARTIFACT_WRITER_H

#include "tcrt/artifact_abi.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tc::artifact {

/// One dim of an input or output: a size, a symbol (index into Function::symbols), or an expression that the
/// program evaluates (TCRT_DIM_EXPR).
struct Dim {
  uint32_t kind = TCRT_DIM_EXPR;
  uint32_t symbolIndex = 0;
  int64_t value = 0;

  static Dim fixed(int64_t size) { return {TCRT_DIM_STATIC, 0, size}; }
  static Dim symbol(uint32_t index) { return {TCRT_DIM_SYMBOL, index, 0}; }
  static Dim expr() { return {}; }
};

/// An input or output. With TCRT_VALUE_FLAG_DEFAULT all dims are fixed and the default's bytes stand at `defaultOffset`
/// of the weights.
struct Value {
  std::string name;
  tcrt_dtype_t dtype = TCRT_DTYPE_INVALID;
  std::vector<Dim> dims;
  uint32_t flags = 0; ///< TCRT_VALUE_FLAG_*
  uint64_t defaultOffset = 0;
  uint32_t kind = TCRT_VALUE_TENSOR;
  uint32_t inner = 0; ///< what is inside, as in tcrt_sig_value_t
};

/// A symbol with its guard: min <= s <= max and s % divisor == 0. Symbols that no input dim binds are derived by the
/// program's `infer`.
struct Symbol {
  std::string name;
  int64_t min = 0;
  int64_t max = INT64_MAX;
  int64_t divisor = 1;
};

/// What profiles say about the kernel with this index in `launch`, which counts on from function to function.
struct Kernel {
  std::string name;
  std::string nodes; ///< nodes of the model, joined with '+'
  uint64_t flops = 0;
  uint64_t bytes = 0;
};

/// Code for some sizes, see tcrt_sig_entry_t: symbols by index, and their sizes.
struct EntrySize {
  uint32_t symbol;
  int64_t size;
  bool isAtMost = false; ///< else the symbol has this size
};
struct Entry {
  std::vector<EntrySize> sizes;
};

/// Something that a caller runs; each has a routine in the code of every variant.
struct Function {
  std::string name; ///< not empty, of its own
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  std::vector<Symbol> symbols;
  std::vector<Kernel> kernels;
  std::vector<Entry> entries = {}; ///< in the order in which the program chooses, without the general one
  uint64_t launches = 0;           ///< of a run, at most; not written, but told
};

/// A tensor of fixed sizes that a context keeps from run to run.
struct State {
  std::string name; ///< not empty, of its own
  tcrt_dtype_t dtype = TCRT_DTYPE_INVALID;
  std::vector<int64_t> dims;
  std::optional<uint64_t> initialOffset; ///< of its first value in the weights; without it, zeros
};

/// A __global__ function of a variant, by its index in `launch_device`.
struct DeviceKernel {
  std::string name;
  uint32_t maxThreads = 0;
  uint32_t dynamicSmem = 0;
};

/// A cubin. `arch` as in tcrt_section_t::arch: 900 for sm_90, 901 for sm_90a.
struct Cubin {
  uint32_t arch = 0;
  std::string bytes;
};

/// PTX text (without the final NUL, which the writer adds) for SM versions from `arch` on.
struct Ptx {
  uint32_t arch = 0;
  std::string text;
};

/// Code for one kind of machine. Variants stand best first within a device. Variants with equal `elf` bytes share a
/// section.
struct Variant {
  std::string name;
  uint32_t device = TCRT_DEVICE_CPU;
  uint64_t cpuFeatures = 0;          ///< TCRT_CPU_* that must be there
  std::string elf;                   ///< x86-64 ELF shared object, see part 2 of the ABI header
  uint64_t weightsSize = UINT64_MAX; ///< bytes of the weights that it may read; default: all
  uint32_t arch = 0;                 ///< the only GPU that it is for; 0: any that its device code is for
  uint32_t graphs = TCRT_GRAPHS_DEFAULT;
  std::vector<DeviceKernel> deviceKernels = {};
  std::vector<Cubin> cubins = {};
  std::vector<Ptx> ptx = {};
};

/// Receives consecutive parts of a segment.
using WeightSink = llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t>)>;

/// Some bytes of the weights section.
struct Segment {
  enum class Source { Bytes, File, Callback };
  Source source = Source::Bytes;
  uint64_t size = 0;
  /// Bytes: the data, owned by the caller.
  llvm::StringRef data;
  /// File: `size` bytes of this file from `fileOffset` on.
  std::string path;
  uint64_t fileOffset = 0;
  /// Callback: called once, hands exactly `size` bytes to the sink in order.
  std::function<llvm::Error(WeightSink)> produce;

  static Segment bytes(llvm::StringRef data);
  static Segment file(std::string path, uint64_t offset, uint64_t size);
  static Segment callback(uint64_t size, std::function<llvm::Error(WeightSink)> produce);
};

/// A segment and its place in the weights section.
struct PlacedSegment {
  uint64_t offset = 0; ///< multiple of TCRT_DATA_ALIGN; gaps are zero
  Segment segment;
};

/// Everything that goes into an artifact.
struct ArtifactSpec {
  std::string manifest = "{}";     ///< JSON text
  std::vector<Function> functions; ///< at least one
  std::vector<State> states;
  std::vector<Variant> variants;
  std::vector<std::string> hostFunctions; ///< names, by their number in tcrt_call_t
  std::vector<std::string> strings;       ///< constant strings by id, the first one empty; or none
  std::vector<PlacedSegment> weights;     ///< ascending, not overlapping
  bool externalWeights = false;           ///< the weights go to a file of their own, <path>.weights
  /// The model for other devices, each with variants of one device. They have no parts of their own, and their weights
  /// are not external.
  std::vector<ArtifactSpec> others;

  /// Appends a segment to the weights at the next multiple of TCRT_DATA_ALIGN and returns its offset.
  uint64_t addWeights(Segment segment);
  /// Bytes of the weights section so far.
  uint64_t weightsSize() const;
};

/// Looks at a finished artifact before it has its name. `path` opens it meanwhile, in this process.
using CheckArtifact = llvm::function_ref<llvm::Error(llvm::StringRef path)>;

/// Writes `spec` to `path` through a temporary file in the same folder and a rename. Checks the spec as the loader will
/// check the file, so that what was written can be loaded. Where `check` is given and fails, what was there stays.
llvm::Error writeArtifact(const ArtifactSpec &spec, llvm::StringRef path, CheckArtifact check = nullptr);

/// The same bytes in memory, for tests and for opening from memory. The weights must not be external.
llvm::Expected<std::string> writeArtifactToMemory(const ArtifactSpec &spec);

} // namespace tc::artifact

#endif // TC_ARTIFACT_WRITER_H
