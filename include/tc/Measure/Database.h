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

#ifndef TC_MEASURE_DATABASE_H
#define TC_MEASURE_DATABASE_H

#include "tc/Measure/Machine.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace tc::measure {

struct Record {
  std::string kernel, machine, variant; ///< the key
  std::string what;                     ///< for people
  std::string schedule, defaultSchedule;
  double us = 0, defaultUs = 0;
  int64_t generators = 0; ///< codegen::kGeneratorsVersion
};

class Database {
public:
  /// A file that is not there, or empty, is a database without records if `mayLack`. Nullopt: it cannot be read, or is
  /// no database; `error` is the sentence.
  static std::optional<Database> read(const std::string &path, bool mayLack, std::string &error);

  /// Null: there is none.
  const Record *find(const std::string &kernel, const std::string &machine, const std::string &variant) const;
  bool has(const std::string &machine) const { return machines.count(machine); }
  /// The names of those that are GPUs, or of those that are not.
  std::vector<std::string> getMachines(bool gpus) const;
  size_t size() const { return records.size(); }
  /// Adds the machine, and the record if there is one, to the file as it is by then. The error is a sentence; empty: it
  /// is done.
  static std::string addToFile(const std::string &path, const Machine &machine, std::optional<Record> record);

private:
  std::string toJson() const;
  static std::optional<Database> parse(const std::string &text, const std::string &path, std::string &error);

  std::map<std::string, Machine> machines;
  std::map<std::tuple<std::string, std::string, std::string>, Record> records;
};

} // namespace tc::measure

#endif // TC_MEASURE_DATABASE_H
