//===- Database.h - what measurements said, in a file ---------------------------------------------------*- C++ -*-===//
//
// A tuning database is a JSON file: for a kernel (the hash of its region's text) on a machine (CPU, caches, threads) in
// a variant, the fastest schedule that was found, the one that the generators would have chosen, and what both took.
//
//   {"format": "tc-tuning", "version": 1,
//    "machines": {"sapphirerapids-2t-1f0c9a3e": {"model": "...", "cpu": "...", "features": "...",
//                                                "cache_bytes": [49152, 2097152, 110100480], "threads": 2},
//                 "h200-132p-5a0c33d1": {"device": "cuda", "model": "NVIDIA H200", "cpu": "sm_90", "features": "",
//                                        "cache_bytes": [52428800], "threads": 132}},
//    "records": [{"kernel": "<32 hex digits>", "machine": "sapphirerapids-2t-1f0c9a3e", "variant": "x86-64-v4",
//                 "generators": 1, "what": "dot_general add 512x768", "schedule": "#kernel.schedule<...>",
//                 "default": "#kernel.schedule<...>", "us": 412.0, "default_us": 466.1}]}
//
// A machine may be a GPU: its `cpu` is its compute capability, its caches the second-level one, its threads are
// processors; the variant of a record is the chip whose code ran.
//
// Several processes may read and extend one file: it is replaced as a whole, under a lock, with the records of all.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_AUTOTUNE_DATABASE_H
#define TC_AUTOTUNE_DATABASE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace tc::autotune {

/// Where something was measured.
struct Machine {
  /// In the database: made of the rest.
  std::string name;
  bool isGpu = false;
  unsigned gpuVersion = 0; ///< of describeGpu: 90 for compute capability 9.0
  std::string model, cpu, features;
  std::vector<int64_t> cacheBytes;
  unsigned threads = 1;
};

/// This machine, with so many threads a run; 0: one per usable core.
Machine describeMachine(unsigned threads);
/// The GPU that the runtime takes here; or why there is none, as the rest of a sentence.
llvm::Expected<Machine> describeGpu();

struct Record {
  std::string kernel, machine, variant; ///< the key
  std::string what;                     ///< for people
  std::string schedule, defaultSchedule;
  double us = 0, defaultUs = 0;
  int64_t generators = 0; ///< codegen::kGeneratorsVersion
};

class Database {
public:
  /// Errors are complete sentences. A file that is not there, or empty, is a database without records if `mayLack`.
  static llvm::Expected<Database> read(const std::string &path, bool mayLack);

  /// Null: there is none.
  const Record *find(llvm::StringRef kernel, llvm::StringRef machine, llvm::StringRef variant) const;
  bool has(llvm::StringRef machine) const { return machines.count(machine.str()); }
  /// The names of those that are GPUs, or of those that are not.
  std::vector<std::string> getMachines(bool gpus) const;
  size_t size() const { return records.size(); }
  /// Adds the machine, and the record if there is one, to the file as it is by then.
  static llvm::Error addToFile(const std::string &path, const Machine &machine, std::optional<Record> record);

private:
  std::string toJson() const;
  static llvm::Expected<Database> parse(llvm::StringRef text, const std::string &path);

  std::map<std::string, Machine> machines;
  std::map<std::tuple<std::string, std::string, std::string>, Record> records;
};

} // namespace tc::autotune

#endif // TC_AUTOTUNE_DATABASE_H
