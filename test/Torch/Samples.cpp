//===- Samples.cpp - tc-test-samples: many small models through the compiler and the runtime in one process -------===//
//
// What run.py asks for, a line each on standard input, fields separated by tabs:
//
//   MODEL INPUTS OUTPUTS TARGET
//
// A child of this process, which has everything loaded, compiles MODEL, runs it on the tensors in INPUTS and writes
// OUTPUTS. The answer is a line on standard output: the exit code of the tools' contract, a tab, the first message. A
// child that crashes or takes too long harms no other.
//
// Tensors in files: a line with their number, a line "DTYPE SIZE..." for each, then their bytes one behind the other.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Compile.h"
#include "tc/Driver/Register.h"
#include "tcrt/tcrt.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kSeconds = 60;

struct Tensors {
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::vector<tcrt_tensor_t> tensors;
};

tcrt_dtype_t parseDtype(llvm::StringRef name) {
  for (uint32_t dtype = 1; tcrt_dtype_bits(tcrt_dtype_t(dtype)) || dtype == TCRT_DTYPE_STRING; ++dtype)
    if (name == tcrt_dtype_name(tcrt_dtype_t(dtype)))
      return tcrt_dtype_t(dtype);
  return TCRT_DTYPE_INVALID;
}

std::string readTensors(const std::string &path, Tensors &result) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return path + ": error: " + file.getError().message();
  result.file = std::move(*file);
  auto [line, rest] = result.file->getBuffer().split('\n');
  size_t count = 0;
  if (line.getAsInteger(10, count))
    return path + ": error: no number of tensors";
  for (size_t i = 0; i < count; ++i) {
    std::tie(line, rest) = rest.split('\n');
    tcrt_tensor_t tensor = {};
    auto [dtype, dims] = line.split(' ');
    tensor.dtype = parseDtype(dtype);
    for (llvm::StringRef dim : llvm::split(dims, ' '))
      if (!dim.empty() && (tensor.rank == TCRT_MAX_RANK || dim.getAsInteger(10, tensor.dims[tensor.rank++])))
        return path + ": error: bad sizes " + dims.str();
    if (!tcrt_tensor_size(tensor.dtype, tensor.rank, tensor.dims, &tensor.size_bytes))
      return path + ": error: bad dtype " + dtype.str();
    result.tensors.push_back(tensor);
  }
  for (tcrt_tensor_t &tensor : result.tensors) {
    if (rest.size() < tensor.size_bytes)
      return path + ": error: too short";
    tensor.data = const_cast<char *>(rest.data());
    rest = rest.drop_front(tensor.size_bytes);
  }
  return "";
}

int failed(std::string &why, tcrt_status_t status) {
  why = tcrt_last_error();
  return status;
}

/// Appends the tensors of a value: an optional's, a sequence's one by one.
void flatten(const tcrt_value_t &value, std::vector<tcrt_tensor_t> &tensors) {
  if (value.kind == TCRT_VALUE_TENSOR)
    return tensors.push_back(value.tensor);
  for (uint64_t i = 0; i < value.count; ++i)
    flatten(value.elements[i], tensors);
}

int runModel(const std::string &artifact, const Tensors &inputs, const std::string &outputs, std::string &why) {
  tcrt_model_t *model;
  tcrt_context_t *context;
  tcrt_model_options_t opening = {};
  opening.size = sizeof opening;
  if (tcrt_status_t status = tcrt_model_open_file(artifact.c_str(), &opening, &model))
    return failed(why, status);
  tcrt_context_options_t options = {};
  options.size = sizeof options;
  options.threads = 1;
  if (tcrt_status_t status = tcrt_context_create(model, &options, &context))
    return failed(why, status);
  if (tcrt_model_input_count(model) != inputs.tensors.size()) {
    why = "the artifact has " + std::to_string(tcrt_model_input_count(model)) + " inputs, the sample " +
          std::to_string(inputs.tensors.size());
    return TCRT_ERROR_INVALID;
  }
  for (size_t i = 0; i < inputs.tensors.size(); ++i)
    if (tcrt_status_t status = tcrt_context_set_input(context, uint32_t(i), &inputs.tensors[i]))
      return failed(why, status);
  if (tcrt_status_t status = tcrt_context_run(context))
    return failed(why, status);
  std::vector<tcrt_tensor_t> tensors;
  for (uint32_t i = 0; i < tcrt_model_output_count(model); ++i) {
    // What a program writes to its inputs is an output here, where PyTorch changes the input.
    tcrt_value_info_t info;
    if (tcrt_status_t status = tcrt_model_output(model, i, &info))
      return failed(why, status);
    if (llvm::StringRef(info.name).ends_with(".updated"))
      continue;
    tcrt_value_t value;
    if (tcrt_status_t status = tcrt_context_get_output_value(context, i, &value))
      return failed(why, status);
    flatten(value, tensors);
  }
  std::error_code error;
  llvm::raw_fd_ostream stream(outputs, error);
  stream << tensors.size() << '\n';
  for (const tcrt_tensor_t &tensor : tensors) {
    stream << tcrt_dtype_name(tensor.dtype);
    for (uint32_t i = 0; i < tensor.rank; ++i)
      stream << ' ' << tensor.dims[i];
    stream << '\n';
  }
  for (const tcrt_tensor_t &tensor : tensors) {
    uint64_t size;
    tcrt_tensor_size(tensor.dtype, tensor.rank, tensor.dims, &size);
    stream.write(static_cast<const char *>(tensor.data), size);
  }
  stream.close();
  if (error || stream.has_error()) {
    why = outputs + ": error: cannot be written";
    return TCRT_ERROR_INVALID;
  }
  return TCRT_OK;
}

/// All of one line, in a child.
int answer(llvm::ArrayRef<llvm::StringRef> fields, std::string &why) {
  Tensors inputs;
  why = readTensors(fields[1].str(), inputs);
  if (!why.empty())
    return TCRT_ERROR_INVALID;
  tc::driver::CompileRequest request;
  request.model = fields[0].str();
  request.output = fields[2].str() + ".bin";
  request.targets = {fields[3].str()};
  request.cpus = {"x86-64-v3"};
  request.jobs = 1;
  request.quiet = true;
  llvm::raw_string_ostream errors(why);
  int code = tc::driver::compile(request, errors);
  if (code == tc::driver::kDone) {
    why.clear();
    code = runModel(request.output, inputs, fields[2].str(), why);
    why = code == 0 ? why : "run: " + why;
  }
  unlink(request.output.c_str());
  return code;
}

void handle(llvm::ArrayRef<llvm::StringRef> fields) {
  int ends[2];
  if (pipe(ends))
    std::abort();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kSeconds);
    std::string why;
    int code = answer(fields, why);
    // The first error, and the notes behind it.
    size_t at = llvm::StringRef(why).find(": error: ");
    if (at != std::string::npos)
      why = why.substr(why.rfind('\n', at) + 1);
    std::string text = std::to_string(code) + "\t" + why.substr(0, 2000);
    for (char &c : text)
      c = c == '\n' ? '|' : c;
    _exit(write(ends[1], text.data(), text.size()) == ssize_t(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  while (ssize_t count = read(ends[0], buffer, sizeof buffer)) {
    if (count < 0)
      break;
    text.append(buffer, size_t(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    text = WTERMSIG(status) == SIGALRM ? "6\tdid not end within " + std::to_string(kSeconds) + " s"
                                       : "6\tcrashed with signal " + std::to_string(WTERMSIG(status));
  std::cout << text << std::endl;
}

} // namespace

int main() {
  tc::driver::registerAllPasses();
  std::string line;
  while (std::getline(std::cin, line)) {
    llvm::SmallVector<llvm::StringRef> fields;
    llvm::StringRef(line).split(fields, '\t');
    if (fields.size() != 4) {
      std::cerr << "tc-test-samples: error: expected MODEL, INPUTS, OUTPUTS, TARGET with tabs between them\n";
      return 1;
    }
    handle(fields);
  }
  return 0;
}
