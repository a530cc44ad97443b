//===- Dump.cpp - values of a run, in a folder --------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Dump.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fnmatch.h>
#include <sys/stat.h>

using namespace tc::run;

std::string tc::run::dumpedValuesFile(const std::string &folder) { return folder + "/values.npz"; }
std::string tc::run::dumpedInputsFile(const std::string &folder) { return folder + "/inputs.npz"; }

NamedTensors tc::run::dumpedValues(const Session &session, size_t &left) {
  const NamedValues &outputs = session.outputs();
  const size_t own = outputs.size() - session.innerOutputCount();
  NamedTensors values;
  left = 0;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const auto &[name, value] = outputs[(k + own) % outputs.size()];
    if (value.kind == TCRT_VALUE_TENSOR && value.tensor.dtype != TCRT_DTYPE_STRING)
      values.emplace_back(name, value.tensor);
    else
      ++left;
  }
  return values;
}

size_t tc::run::writeDump(const Session &session, const std::string &folder, const std::string &pattern) {
  size_t left;
  NamedTensors values = dumpedValues(session, left);
  const auto isOther = [&](const auto &value) { return fnmatch(pattern.c_str(), value.first.c_str(), 0) != 0; };
  if (!pattern.empty())
    values.erase(std::remove_if(values.begin(), values.end(), isOther), values.end());
  if (values.empty() && !pattern.empty())
    throw Failure{1, folder + ": error: no output has a name like \"" + pattern +
                         "\"; tc-inspect lists them, and tc-compile --outputs makes more"};
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    throw Failure{1, folder + ": error: the folder cannot be made: " + std::strerror(errno)};
  writeNpz(dumpedValuesFile(folder), values);
  NamedTensors inputs;
  for (size_t i = 0; i < session.inputs().size(); ++i)
    if (const auto &input = session.inputs()[i]; input && input->dtype != TCRT_DTYPE_STRING)
      inputs.emplace_back(session.inputInfo()[i].name, *input);
  writeNpz(dumpedInputsFile(folder), inputs);
  return values.size();
}
