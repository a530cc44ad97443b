//===- Profile.cpp - times of kernels, by node and by group of nodes; traces --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Profile.h"

#include "tc/Run/Npz.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace tc::run;

namespace {

/// Names may hold '+', too; their parts then count as nodes.
std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

bool isLonger(const NodeTime &a, const NodeTime &b) { return a.us != b.us ? a.us > b.us : a.name < b.name; }

/// A path that nodes' names begin with.
struct Group {
  NodeTime time;
  std::set<size_t> kernels;
  size_t nodes = 0; ///< directly in it
  std::map<std::string, Group> inner;
};

void listGroups(const Group &group, double least, size_t depth, std::vector<NodeTime> &list) {
  const bool isChain = group.nodes == 0 && group.inner.size() == 1;
  if (!isChain && !group.time.name.empty()) {
    list.push_back(group.time);
    list.back().kernels = group.kernels.size();
    list.back().depth = depth++;
  }
  std::vector<const Group *> inner;
  for (const auto &[name, one] : group.inner)
    if (one.time.us >= least)
      inner.push_back(&one);
  std::sort(inner.begin(), inner.end(), [](const Group *a, const Group *b) { return isLonger(a->time, b->time); });
  for (const Group *one : inner)
    listGroups(*one, least, depth, list);
}

} // namespace

std::vector<NodeTime> tc::run::timesOfNodes(const std::vector<KernelTime> &kernels) {
  std::map<std::string, NodeTime> byName;
  for (const KernelTime &kernel : kernels) {
    const std::vector<std::string> nodes = split(kernel.nodes, '+');
    for (const std::string &node : nodes) {
      NodeTime &time = byName[node];
      time.name = node;
      time.us += kernel.us / double(nodes.size());
      ++time.kernels;
    }
  }
  std::vector<NodeTime> list;
  for (auto &[name, time] : byName)
    list.push_back(std::move(time));
  std::sort(list.begin(), list.end(), isLonger);
  return list;
}

std::vector<NodeTime> tc::run::timesOfGroups(const std::vector<KernelTime> &kernels, double least) {
  Group root;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::vector<std::string> nodes = split(kernels[k].nodes, '+');
    const double us = kernels[k].us / double(nodes.size());
    root.time.us += kernels[k].us;
    for (const std::string &node : nodes) {
      const char separator = node.find('/') != std::string::npos ? '/' : '.';
      Group *group = &root;
      for (size_t end = node.find(separator, 1); end != std::string::npos; end = node.find(separator, end + 1)) {
        const std::string path = node.substr(0, end);
        group = &group->inner[path];
        group->time.name = path;
        group->time.us += us;
        group->kernels.insert(k);
      }
      ++group->nodes;
    }
  }
  std::vector<NodeTime> list;
  listGroups(root, least * root.time.us, 0, list);
  return list;
}

namespace {

/// A viewer takes about this many.
constexpr size_t kMostEvents = 2000000;

enum Process { kHost = 1, kDevice = 2 };
/// The thread that runs the context; workers follow.
constexpr int kRunTrack = 0;

nlohmann::ordered_json nameOf(const char *what, int process, int64_t track, const std::string &name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

const char *categoryOf(uint32_t kind) {
  switch (kind) {
  case TCRT_EVENT_RUN:
    return "run";
  case TCRT_EVENT_PHASE:
    return "phase";
  case TCRT_EVENT_KERNEL:
    return "kernel";
  case TCRT_EVENT_TASKS:
    return "tasks";
  default:
    return "host function";
  }
}

} // namespace

void Trace::add(void *trace, const tcrt_event_t *event) {
  Trace *self = static_cast<Trace *>(trace);
  std::lock_guard<std::mutex> guard(self->mutex);
  if (!self->isOn)
    return;
  if (self->events.size() == kMostEvents) {
    ++self->lost;
    return;
  }
  self->events.push_back({*event, event->name, event->nodes});
}

void Trace::begin() {
  events.clear();
  lost = 0;
  isOn = true;
}

void Trace::write(const std::string &path, const std::string &name) const {
  using Json = nlohmann::ordered_json;
  uint64_t first = UINT64_MAX;
  std::set<uint32_t> workers;
  bool hasDevice = false;
  for (const Kept &kept : events) {
    first = std::min(first, kept.event.begin_ns);
    if (kept.event.kind == TCRT_EVENT_TASKS)
      workers.insert(kept.event.worker);
    hasDevice |= kept.event.device != TCRT_DEVICE_CPU;
  }
  Json list = Json::array();
  list.push_back(nameOf("process_name", kHost, kRunTrack, name));
  list.push_back(nameOf("thread_name", kHost, kRunTrack, "run"));
  for (uint32_t worker : workers)
    list.push_back(nameOf("thread_name", kHost, int64_t(worker) + 1, "worker " + std::to_string(worker)));
  if (hasDevice) {
    list.push_back(nameOf("process_name", kDevice, 0, name + ": GPU"));
    list.push_back(nameOf("thread_name", kDevice, 0, "stream"));
  }
  for (const Kept &kept : events) {
    const tcrt_event_t &event = kept.event;
    const bool isDevice = event.device != TCRT_DEVICE_CPU;
    Json entry = {{"ph", "X"},
                  {"name", kept.name},
                  {"cat", categoryOf(event.kind)},
                  {"pid", int(isDevice ? kDevice : kHost)},
                  {"tid", event.kind == TCRT_EVENT_TASKS ? int64_t(event.worker) + 1 : kRunTrack},
                  {"ts", double(event.begin_ns - first) / 1000},
                  {"dur", double(event.end_ns - event.begin_ns) / 1000}};
    if (!kept.nodes.empty())
      entry["args"]["nodes"] = kept.nodes;
    if (event.kind == TCRT_EVENT_KERNEL && event.flops)
      entry["args"]["flops"] = event.flops;
    if (event.kind == TCRT_EVENT_KERNEL && event.bytes)
      entry["args"]["bytes"] = event.bytes;
    if (event.kind == TCRT_EVENT_TASKS) {
      entry["args"]["first_task"] = event.first_task;
      entry["args"]["tasks"] = event.task_count;
    }
    list.push_back(std::move(entry));
  }
  Json json = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}};
  if (lost)
    json["otherData"]["events_left_out"] = lost;
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  writeFile(path, {text.begin(), text.end()});
}
