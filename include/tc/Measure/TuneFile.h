//===- TuneFile.h - schedules to measure elsewhere ------------------------------------------------------*- C++ -*-===//
//
// What tc-compile --tuning-candidates writes and tc-run --tune measures: for each kernel with a choice an artifact
// whose functions are the kernel by one schedule each, so that equal weights are there once, with the tensors that it
// is measured on. Little-endian:
//
//   offset  bytes
//        0      8  magic, "tctune\r\n"
//        8      4  version, 1
//       12      4  reserved, 0
//       16      8  offset of the index, JSON to the end of the file
//       24      8  size of the file
//       32     32  SHA-256 of the index
//
// Artifacts follow, each at a multiple of TCRT_SECTION_ALIGN, where libtcrt uses them in place, then the index. What is
// inside of artifacts has hashes of its own. As an artifact does, the file holds code, which whoever measures it runs.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_MEASURE_TUNEFILE_H
#define TC_MEASURE_TUNEFILE_H

#include "tc/Measure/Runner.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tc::measure {

struct TuneTensor {
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  Elements elements = Elements::Other;
};

/// A way to compute the kernel; its number is that of the artifact's function.
struct TuneSchedule {
  std::string text;   ///< as the IR has it
  std::string change; ///< how it differs from the first one, in words
};

/// What the kernel's code was made for.
struct TuneVariant {
  std::string name;
  uint32_t arch = 0;               ///< of a chip: as tcrt_section_t has it
  std::vector<uint32_t> schedules; ///< numbers of those that it chooses from, the generators' first choice first
};

struct TuneKernel {
  std::string key, what; ///< of its records (tc/Measure/Database.h)
  std::string nodes;     ///< of the model, that it computes
  std::string sizes;     ///< " at n = 128", where the model leaves open which; else empty
  bool onGpu = false;
  uint64_t weightBytes = 0;
  std::vector<TuneTensor> inputs, outputs;
  std::vector<TuneSchedule> schedules;
  std::vector<TuneVariant> variants; ///< the best first
  uint64_t offset = 0, bytes = 0;    ///< of its artifact in the file

  const TuneVariant *findVariant(const std::string &name) const;
  /// The tensors, filled; false: there is no memory for them.
  bool makeTensors(Tensors &tensors) const;
};

struct TuneIndex {
  std::string model;                 ///< the name of its file
  std::vector<std::string> machines; ///< CPU variants and chips that it was compiled for
  int64_t generators = 0;            ///< codegen::kGeneratorsVersion
  std::vector<TuneKernel> kernels;
};

/// The index as text, and what text says; nullopt: `why` it says nothing. `limit`: where artifacts end at the latest.
std::string printTuneIndex(const TuneIndex &index);
std::optional<TuneIndex> parseTuneIndex(std::string_view text, uint64_t limit, std::string &why);

/// Whether a file begins as one of these.
bool isTuneFile(const std::string &path);

/// Writes a file that appears whole or not at all. Errors are sentences; empty: there is none.
class TuneWriter {
public:
  TuneWriter();
  ~TuneWriter();
  std::string open(const std::string &path);
  /// The artifact is written at once: together they may be larger than the memory.
  std::string add(TuneKernel kernel, std::string_view artifact);
  /// Gives the file its name. The kernels of `index` are those that were added.
  std::string finish(TuneIndex index);
  size_t countKernels() const;
  size_t countSchedules() const;
  uint64_t getBytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// A file that is mapped. Any bytes are safe to open.
class TuneFile {
public:
  static std::optional<TuneFile> open(const std::string &path, std::string &error);
  TuneFile(TuneFile &&) = default;
  TuneFile &operator=(TuneFile &&) = default;

  const TuneIndex &getIndex() const { return index; }
  uint64_t getBytes() const;
  /// Aligned to TCRT_SECTION_ALIGN, as long as the file lives.
  std::string_view getArtifact(const TuneKernel &kernel) const;
  /// In one line: model, kernels, schedules, machines.
  std::string describe() const;

private:
  TuneFile() = default;
  struct Mapping;
  std::shared_ptr<Mapping> mapping;
  TuneIndex index;
};

} // namespace tc::measure

#endif // TC_MEASURE_TUNEFILE_H
