//===- Profile.h - times of kernels, by node and by group of nodes; traces ------------------------------*- C++ -*-===//
//
// What tc-run --profile makes of a context's profile and events.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_PROFILE_H
#define TC_RUN_PROFILE_H

#include "tc/Run/Tensor.h"
#include "tcrt/tcrt.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tc::run {

/// A kernel's time, and the nodes that it computes, joined with '+' as artifacts have them.
struct KernelTime {
  std::string nodes;
  double us = 0;
};

/// The time of a node, or of all nodes whose names begin with a path.
struct NodeTime {
  std::string name;
  double us = 0;
  size_t kernels = 0; ///< that compute it, or some of it
  size_t depth = 0;   ///< of a group: so many groups hold it
};

/// Times by node, the longest first. A kernel of n nodes counts 1/n to each: what a node takes in it is not known.
std::vector<NodeTime> timesOfNodes(const std::vector<KernelTime> &kernels);

/// Times by the paths of the nodes' names, "/encoder/layer.0" before what is in it, the longest first on each level:
/// names are divided at '/', or at '.' where they have none, and the last part is the node's own. Groups that hold one
/// group and nothing else, and those below `least` of the whole (0.01: one percent), are left out.
std::vector<NodeTime> timesOfGroups(const std::vector<KernelTime> &kernels, double least);

/// Keeps the events of a context's runs and writes them as a Chrome trace, which ui.perfetto.dev and chrome://tracing
/// open: a track for the thread that runs the context, one for each worker, one for a GPU's stream.
class Trace {
public:
  /// For tcrt_context_options_t::event, with the trace as its user. Any thread.
  static void add(void *trace, const tcrt_event_t *event);
  /// Forgets what it has, and begins to keep events; before, it keeps none.
  void begin();
  /// Keeps no further ones. Calls of the context must be over.
  void end() { isOn = false; }
  /// Throws a Failure where the file cannot be written. `name` stands above the tracks.
  void write(const std::string &path, const std::string &name) const;

private:
  struct Kept {
    tcrt_event_t event; ///< without its texts
    std::string name, nodes;
  };

  std::mutex mutex;
  bool isOn = false;
  size_t lost = 0; ///< beyond the most that are kept
  std::vector<Kept> events;
};

} // namespace tc::run

#endif // TC_RUN_PROFILE_H
