//===- Session.cpp - an opened artifact with one context and its tensors ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Session.h"

#include "tc/Format/Container.h"
#include "tc/Format/File.h"
#include "tc/Format/Json.h"
#include "tc/Run/Pb.h"
#include "tc/Support/Suggest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace tc::run;

void tc::run::check(tcrt_status_t status) {
  if (status != TCRT_OK)
    throw Failure{int(status), tcrt_last_error()};
}

namespace {

bool endsWith(const std::string &text, const char *end) {
  size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

/// Small, fast and the same everywhere (Steele et al., "Fast splittable pseudorandom number generators", SplitMix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// In (0, 1].
  double uniform() { return double((next() >> 11) + 1) * 0x1p-53; }
  /// N(0, 1) after Box and Muller.
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); }

private:
  uint64_t state;
};

/// A tree for the library, with the memory that it points to.
struct Tree {
  tcrt_value_t root = {};
  std::vector<tcrt_value_t> elements;
  std::vector<tcrt_string_t> strings;
  std::vector<std::unique_ptr<Tree>> children;
};

tcrt_tensor_t describe(Tensor &tensor, std::vector<tcrt_string_t> &strings) {
  tcrt_tensor_t result = {};
  result.dtype = tensor.dtype;
  result.rank = uint32_t(tensor.dims.size());
  std::copy(tensor.dims.begin(), tensor.dims.end(), result.dims);
  result.data = tensor.data.data();
  result.size_bytes = tensor.data.size();
  if (tensor.dtype == TCRT_DTYPE_STRING) {
    for (const std::string &text : tensor.strings)
      strings.push_back({text.data(), text.size()});
    result.data = strings.data();
    result.size_bytes = strings.size() * sizeof strings[0];
  }
  return result;
}

/// What NumPy calls a dtype; null if it has none of the kind.
const char *numpyName(tcrt_dtype_t dtype) {
  switch (dtype) {
  case TCRT_DTYPE_BOOL:
    return "bool";
  case TCRT_DTYPE_I8:
    return "int8";
  case TCRT_DTYPE_I16:
    return "int16";
  case TCRT_DTYPE_I32:
    return "int32";
  case TCRT_DTYPE_I64:
    return "int64";
  case TCRT_DTYPE_U8:
    return "uint8";
  case TCRT_DTYPE_U16:
    return "uint16";
  case TCRT_DTYPE_U32:
    return "uint32";
  case TCRT_DTYPE_U64:
    return "uint64";
  case TCRT_DTYPE_F16:
    return "float16";
  case TCRT_DTYPE_F32:
    return "float32";
  case TCRT_DTYPE_F64:
    return "float64";
  default:
    return nullptr;
  }
}

std::unique_ptr<Tree> describe(Value &value) {
  auto tree = std::make_unique<Tree>();
  tree->root.kind = value.kind;
  if (value.kind == TCRT_VALUE_TENSOR) {
    tree->root.tensor = describe(value.tensor, tree->strings);
    return tree;
  }
  for (Value &element : value.elements) {
    tree->children.push_back(describe(element));
    tree->elements.push_back(tree->children.back()->root);
  }
  tree->root.count = tree->elements.size();
  tree->root.elements = tree->elements.data();
  return tree;
}

/// A copy of what the library shows.
Value copyOf(const tcrt_value_t &from) {
  Value value;
  value.kind = from.kind;
  for (uint64_t i = 0; i < from.count; ++i)
    value.elements.push_back(copyOf(from.elements[i]));
  if (value.kind != TCRT_VALUE_TENSOR)
    return value;
  const tcrt_tensor_t &tensor = from.tensor;
  value.tensor.dtype = tensor.dtype;
  value.tensor.dims.assign(tensor.dims, tensor.dims + tensor.rank);
  if (tensor.dtype == TCRT_DTYPE_STRING) {
    const tcrt_string_t *strings = static_cast<const tcrt_string_t *>(tensor.data);
    for (uint64_t i = 0; i < tensor.size_bytes / sizeof *strings; ++i)
      value.tensor.strings.emplace_back(strings[i].data, strings[i].size_bytes);
  } else if (tensor.size_bytes) {
    const uint8_t *data = static_cast<const uint8_t *>(tensor.data);
    value.tensor.data.assign(data, data + tensor.size_bytes);
  }
  return value;
}

} // namespace

static void printWarning(void *, int level, const char *message) {
  if (level == TCRT_LOG_WARNING)
    std::fprintf(stderr, "%s\n", message);
}

/// What a library of custom operators exports, added to `functions`.
static void addFunctions(const std::string &path, std::vector<tcrt_function_t> &functions) {
  // A name without a slash would be looked for among the system's libraries.
  void *library = dlopen((path.find('/') == std::string::npos ? "./" + path : path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Failure{1, path + ": error: the library of custom operators cannot be opened: " + dlerror()};
  tcrt_library_fn functionsOf = nullptr;
  void *symbol = dlsym(library, "tcrt_library_functions");
  std::memcpy(&functionsOf, &symbol, sizeof functionsOf);
  uint64_t count = 0;
  const tcrt_function_t *table = functionsOf ? functionsOf(&count) : nullptr;
  if (!table)
    throw Failure{1,
                  path + ": error: the library does not export tcrt_library_functions, which tcrt/function.h declares"};
  functions.insert(functions.end(), table, table + count);
}

bool tc::run::isOnlyFor(const std::string &path, uint32_t device) {
  int fd;
  uint64_t bytes;
  if (tcrt_file_open(path.c_str(), UINT64_MAX, nullptr, &fd, &bytes) != TCRT_OK)
    return false;
  void *data = bytes ? ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (data == MAP_FAILED)
    return false;
  tcrt_container_t container = {};
  bool only = tcrt_container_parse(data, bytes, path.c_str(), 0, &container) == TCRT_OK;
  for (uint32_t i = 0; only && i < container.signature->variant_count; ++i)
    only = tcrt_container_variant(&container, i).device == device;
  for (uint32_t i = 0; only && i < container.section_count; ++i)
    only = container.sections[i].kind != TCRT_SECTION_ARTIFACT;
  ::munmap(data, bytes);
  return only;
}

Session::HeldGpu::~HeldGpu() {
  tcrt_gpu_free(gpu, data, 1, nullptr);
  if (data)
    tcrt_gpu_trim();
}

Session::Session(SessionOptions given) : options(std::move(given)) {
  tcrt_model_options_t modelOptions = {};
  modelOptions.size = sizeof modelOptions;
  modelOptions.verify_weights = options.verifyWeights;
  modelOptions.verify = options.verify;
  modelOptions.verify_user = options.verifyUser;
  modelOptions.device = options.isCuda ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU;
  modelOptions.device_index = options.deviceIndex;
  modelOptions.cpu_instead = options.isCpuAllowed;
  modelOptions.log = printWarning;
  for (const std::string &path : options.customOps)
    addFunctions(path, functions);
  modelOptions.functions = functions.data();
  modelOptions.function_count = functions.size();
  modelOptions.variant = options.variant.empty() ? nullptr : options.variant.c_str();
  Clock::time_point start = Clock::now();
  if (options.isCuda && options.startsDriver) {
    // Opening says what is wrong where this fails.
    if (tcrt_gpu_allocate(options.deviceIndex, 1, nullptr, &held.data) == TCRT_OK)
      held.gpu = options.deviceIndex;
    driverTimeUs = microseconds(Clock::now() - start);
    start = Clock::now();
  }
  tcrt_model_t *model;
  check(tcrt_model_open_file(options.artifact.c_str(), &modelOptions, &model));
  opened.reset(model);
  tcrt_context_options_t contextOptions = {};
  contextOptions.size = sizeof contextOptions;
  contextOptions.threads = options.threads;
  contextOptions.profile = options.profile;
  contextOptions.event = options.event;
  contextOptions.event_user = options.eventUser;
  contextOptions.graphs = options.graphs;
  tcrt_context_t *context;
  check(tcrt_context_create(model, &contextOptions, &context));
  created.reset(context);
  for (uint32_t i = 0; i < tcrt_model_variant_count(model); ++i) {
    tcrt_variant_info_t variant;
    check(tcrt_model_variant(model, i, &variant));
    if (std::string(variant.name) == tcrt_context_variant(context))
      runsOnGpu = variant.device == TCRT_DEVICE_CUDA;
  }
  loadTimeUs = microseconds(Clock::now() - start);
  if (!options.function.empty())
    check(tcrt_model_find_function(model, options.function.c_str(), &function));
  check(tcrt_context_set_function(context, function));
  tcrt_function_info_t info;
  check(tcrt_model_function(model, function, &info));
  inputTensors.resize(info.input_count);
  otherInputs.resize(info.input_count);
  inputValues.resize(info.input_count);
  outputValues.resize(info.output_count);
  symbolValues.resize(info.symbol_count);
  for (uint32_t i = 0; i < info.input_count; ++i)
    check(tcrt_model_function_input(model, function, i, &inputValues[i]));
  for (uint32_t i = 0; i < info.output_count; ++i)
    check(tcrt_model_function_output(model, function, i, &outputValues[i]));
  for (uint32_t i = 0; i < info.symbol_count; ++i)
    check(tcrt_model_function_symbol(model, function, i, &symbolValues[i]));
  checkDimNames();
}

Session::~Session() {
  for (auto [data, bytes] : deviceBuffers)
    tcrt_context_device_free(created.get(), data, bytes);
}

// ---- inputs ----

std::optional<uint32_t> Session::lookupInput(const std::string &name) const {
  uint32_t index;
  if (name.find('\0') == std::string::npos &&
      tcrt_model_function_find_input(model(), function, name.c_str(), &index) == TCRT_OK)
    return index;
  const std::string prefix = "input_", digits = name.substr(std::min(name.size(), prefix.size()));
  if (name.compare(0, prefix.size(), prefix) != 0 || digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != std::string::npos || (digits[0] == '0' && digits.size() > 1))
    return std::nullopt;
  index = uint32_t(std::stoul(digits));
  return index < inputValues.size() ? std::optional<uint32_t>(index) : std::nullopt;
}

uint32_t Session::findInput(const std::string &name) const {
  if (std::optional<uint32_t> index = lookupInput(name))
    return *index;
  std::string names;
  for (size_t i = 0; i < inputValues.size() && i < 8; ++i)
    names += (i ? ", \"" : "\"") + std::string(inputValues[i].name) + "\"";
  throw Failure{4, options.artifact + ": error: the model has no input \"" + name + "\"; its inputs are " + names +
                       (inputValues.size() > 8 ? ", ..." : "")};
}

void Session::setInput(uint32_t index, Value value) {
  if (value.kind == TCRT_VALUE_TENSOR)
    setInput(index, value.tensor);
  else
    otherInputs[index] = std::move(value);
}

void Session::setInput(uint32_t index, const Tensor &tensor) {
  const tcrt_value_info_t &info = inputValues[index];
  if (info.kind != TCRT_VALUE_TENSOR || (info.dtype == TCRT_DTYPE_STRING) != (tensor.dtype == TCRT_DTYPE_STRING))
    throw Failure{4, options.artifact + ": error: input \"" + info.name + "\" is " +
                         (info.kind != TCRT_VALUE_TENSOR    ? "no tensor"
                          : info.dtype == TCRT_DTYPE_STRING ? "a tensor of strings"
                                                            : "a tensor of numbers") +
                         "; give it as a .pb file of that kind"};
  Tensor &target = inputTensors[index].emplace();
  bool convertible = tensor.dtype == TCRT_DTYPE_F32 && isSmallFloat(info.dtype);
  bool isRaw = tensor.dtype == TCRT_DTYPE_INVALID && tcrt_dtype_bits(info.dtype) == 8 * tensor.rawBytes;
  // NumPy has no integers below a byte.
  bool isPacked = tcrt_dtype_bits(info.dtype) < 8 && isInteger(info.dtype) &&
                  tensor.dtype == (isSigned(info.dtype) ? TCRT_DTYPE_I8 : TCRT_DTYPE_U8);
  target = convertible || isRaw || isPacked ? convert(tensor, info.dtype) : tensor;
  if (target.dtype == TCRT_DTYPE_INVALID)
    throw Failure{4, options.artifact + ": error: input \"" + info.name + "\": its elements are " +
                         std::to_string(tensor.rawBytes) + " raw bytes, expected " + tcrt_dtype_name(info.dtype)};
  if (const char *name = numpyName(info.dtype); name && target.dtype != info.dtype)
    throw Failure{4, options.artifact + ": error: input \"" + info.name + "\": its dtype is " +
                         tcrt_dtype_name(target.dtype) + ", expected " + tcrt_dtype_name(info.dtype) +
                         "; in NumPy, array.astype(\"" + name + "\") is that"};
}

void Session::readInputs(const std::string &path) {
  // A name that means no input fails before anything is unpacked.
  for (const auto &[name, tensor] : readNpz(path, [this](const std::string &name) { return findInput(name), true; }))
    setInput(findInput(name), tensor);
}

void Session::readInput(const std::string &text, const std::string &tool) {
  // NAME=FILE, where names may hold '=': the longest prefix that is an input wins.
  std::optional<uint32_t> index;
  std::string path;
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    if (std::optional<uint32_t> found = lookupInput(text.substr(0, at))) {
      index = found;
      path = text.substr(at + 1);
    }
  }
  if (!index) {
    size_t at = text.find('=');
    if (at == std::string::npos)
      throw Failure{1, tool + ": error: --input takes NAME=FILE, not \"" + text + "\"; see " + tool + " --help"};
    findInput(text.substr(0, at));
  }
  if (endsWith(path, ".pb")) {
    setInput(*index, readPb(path, kindsOf(inputValues[*index])));
  } else if (endsWith(path, ".npy")) {
    setInput(*index, readNpy(path));
  } else {
    throw Failure{1, path + ": error: the file's kind is not known by its name; .npy and .pb are"};
  }
}

size_t Session::innerOutputCount() const {
  const char *text;
  uint64_t size;
  check(tcrt_model_manifest(model(), &text, &size));
  auto manifest = parseJson(text, size);
  if (!manifest.is_object() || !manifest.contains("inner_outputs") || !manifest["inner_outputs"].is_number_unsigned())
    return 0;
  return std::min(manifest["inner_outputs"].get<size_t>(), outputValues.size());
}

/// What the manifest says about the values of integer inputs: [low, high) by input.
std::vector<std::optional<std::pair<int64_t, int64_t>>> Session::inputRanges() const {
  std::vector<std::optional<std::pair<int64_t, int64_t>>> ranges(inputValues.size());
  const char *text;
  uint64_t size;
  check(tcrt_model_manifest(model(), &text, &size));
  auto manifest = parseJson(text, size);
  // Of ABI 1 the manifest itself is what it says of the only function.
  const nlohmann::json *described = &manifest;
  if (manifest.is_object() && manifest.contains("functions") && manifest["functions"].is_array() &&
      function < manifest["functions"].size() && manifest["functions"][function].is_object() &&
      !manifest.contains("inputs"))
    described = &manifest["functions"][function];
  if (!described->is_object() || !described->contains("inputs") || !(*described)["inputs"].is_array())
    return ranges;
  for (const auto &entry : (*described)["inputs"]) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() || !entry.contains("range"))
      continue;
    const auto &range = entry["range"];
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_integer() || !range[1].is_number_integer())
      continue;
    uint32_t index;
    if (range[0].get<int64_t>() < range[1].get<int64_t>() &&
        tcrt_model_function_find_input(model(), function, entry["name"].get<std::string>().c_str(), &index) == TCRT_OK)
      ranges[index] = std::make_pair(range[0].get<int64_t>(), range[1].get<int64_t>());
  }
  return ranges;
}

void Session::makeRandomInputs(uint64_t seed) {
  std::vector<int64_t> symbols(symbolValues.size());
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    const tcrt_symbol_info_t &info = symbolValues[i];
    // The smallest size from 1 on that the guard allows.
    int64_t size = std::max<int64_t>(info.min, 1);
    symbols[i] = size > INT64_MAX - info.divisor ? size : (size + info.divisor - 1) / info.divisor * info.divisor;
    for (const auto &[name, value] : options.dims)
      if (name == info.name)
        symbols[i] = value;
  }
  auto ranges = inputRanges();
  for (uint32_t i = 0; i < inputTensors.size(); ++i) {
    const tcrt_value_info_t &info = inputValues[i];
    if (inputTensors[i] || otherInputs[i] || (info.flags & TCRT_VALUE_FLAG_DEFAULT))
      continue;
    if (info.kind != TCRT_VALUE_TENSOR || info.dtype == TCRT_DTYPE_STRING)
      throw Failure{4, options.artifact + ": error: input \"" + info.name +
                           "\" is no tensor of numbers and cannot be made at random; give it by --input"};
    Tensor &tensor = inputTensors[i].emplace();
    tensor.dtype = info.dtype;
    for (uint32_t d = 0; d < info.rank; ++d)
      tensor.dims.push_back(info.symbols[d] >= 0 ? symbols[size_t(info.symbols[d])]
                            : info.dims[d] >= 0  ? info.dims[d]
                                                 : 1);
    tensor.data.resize(sizeOf(tensor.dtype, tensor.dims, options.artifact));
    Random random(seed * 0x2545f4914f6cdd1du + i);
    int64_t low = ranges[i] ? ranges[i]->first : 0, high = ranges[i] ? ranges[i]->second : 2;
    int64_t count = tensor.count();
    if (tensor.dtype == TCRT_DTYPE_C64 || tensor.dtype == TCRT_DTYPE_C128) {
      Tensor parts;
      parts.dtype = tensor.dtype == TCRT_DTYPE_C64 ? TCRT_DTYPE_F32 : TCRT_DTYPE_F64;
      parts.data.resize(tensor.data.size());
      for (int64_t j = 0; j < 2 * count; ++j)
        setReal(parts, j, random.normal());
      tensor.data = parts.data;
    } else if (isFloat(tensor.dtype)) {
      for (int64_t j = 0; j < count; ++j)
        setReal(tensor, j, random.normal());
    } else {
      uint64_t span = tensor.dtype == TCRT_DTYPE_BOOL ? 2 : uint64_t(high) - uint64_t(low);
      for (int64_t j = 0; j < count; ++j)
        setInteger(tensor, j, (tensor.dtype == TCRT_DTYPE_BOOL ? 0 : low) + int64_t(random.next() % span));
    }
  }
}

void Session::checkDimNames() const {
  for (const auto &[name, value] : options.dims) {
    bool known = false;
    std::vector<std::string> names;
    for (const tcrt_symbol_info_t &info : symbolValues) {
      known |= name == info.name;
      names.push_back(info.name);
    }
    if (!known)
      throw Failure{4, options.artifact + ": error: the model has no symbolic dim \"" + name + "\"" +
                           (symbolValues.empty() ? "; all its sizes are fixed"
                                                 : didYouMean(name, names) + "; tc-inspect shows its dims")};
  }
}

/// --dim must not contradict the inputs' sizes.
void Session::checkDims() const {
  for (const auto &[name, value] : options.dims)
    for (size_t i = 0; i < inputValues.size(); ++i)
      for (uint32_t d = 0; inputTensors[i] && d < inputValues[i].rank; ++d) {
        if (inputValues[i].symbols[d] < 0)
          continue;
        if (name == symbolValues[size_t(inputValues[i].symbols[d])].name && inputTensors[i]->dims[d] != value)
          throw Failure{4, options.artifact + ": error: input \"" + inputValues[i].name + "\": dim " +
                               std::to_string(d) + " (" + name + ") is " + std::to_string(inputTensors[i]->dims[d]) +
                               ", expected " + std::to_string(value) + " as given by --dim"};
      }
}

// ---- states ----

void Session::readStates(const std::string &path) {
  auto find = [this](const std::string &name) {
    uint32_t index;
    check(tcrt_model_find_state(model(), name.c_str(), &index));
    return index;
  };
  for (const auto &[name, given] : readNpz(path, [&](const std::string &name) { return find(name), true; })) {
    uint32_t index = find(name);
    tcrt_state_info_t info;
    check(tcrt_model_state(model(), index, &info));
    // NumPy lacks the small floats, and stores them as f32.
    bool isRaw = given.dtype == TCRT_DTYPE_INVALID && tcrt_dtype_bits(info.dtype) == 8 * given.rawBytes;
    bool isSmall = given.dtype == TCRT_DTYPE_F32 && isSmallFloat(info.dtype);
    Tensor tensor = isRaw || isSmall ? convert(given, info.dtype) : given;
    std::vector<tcrt_string_t> none;
    tcrt_tensor_t described = describe(tensor, none);
    check(tcrt_context_write_state(context(), index, &described));
  }
}

NamedTensors Session::states() const {
  NamedTensors tensors;
  for (uint32_t i = 0; i < tcrt_model_state_count(model()); ++i) {
    tcrt_state_info_t info;
    check(tcrt_model_state(model(), i, &info));
    Tensor tensor;
    tensor.dtype = info.dtype;
    tensor.dims.assign(info.dims, info.dims + info.rank);
    tensor.data.resize(info.size_bytes);
    std::vector<tcrt_string_t> none;
    tcrt_tensor_t described = describe(tensor, none);
    check(tcrt_context_read_state(context(), i, &described));
    tensors.emplace_back(info.name, std::move(tensor));
  }
  return tensors;
}

// ---- running ----

void Session::firstRun() {
  for (uint32_t i = 0; i < inputTensors.size(); ++i) {
    if (inputTensors[i]) {
      auto strings = std::make_shared<std::vector<tcrt_string_t>>();
      tcrt_tensor_t tensor = describe(*inputTensors[i], *strings);
      check(tcrt_context_set_input(context(), i, &tensor));
      bound.push_back(strings);
    } else if (otherInputs[i]) {
      std::shared_ptr<Tree> tree = describe(*otherInputs[i]);
      check(tcrt_context_set_input_value(context(), i, &tree->root));
      bound.push_back(tree);
    }
  }
  Clock::time_point start = Clock::now();
  const tcrt_status_t status = tcrt_context_infer(context());
  for (uint32_t i = 0; status == TCRT_ERROR_REFUSED && i < inputValues.size(); ++i)
    if (!inputTensors[i] && inputValues[i].kind == TCRT_VALUE_TENSOR &&
        !(inputValues[i].flags & TCRT_VALUE_FLAG_DEFAULT))
      throw Failure{4, std::string(tcrt_last_error()) +
                           "; give it with --inputs FILE.npz, or let tc-run --random-inputs make it"};
  check(status);
  loadTimeUs += microseconds(Clock::now() - start);
  checkDims();
  start = Clock::now();
  check(tcrt_context_run(context()));
  firstRunTimeUs = microseconds(Clock::now() - start);
  readOutputs();
}

void Session::runAgain() {
  check(tcrt_context_run(context()));
  readOutputs();
}

void Session::readOutputs() {
  computed.clear();
  for (uint32_t i = 0; i < outputValues.size(); ++i) {
    tcrt_value_t value;
    check(tcrt_context_get_output_value(context(), i, &value));
    computed.emplace_back(outputValues[i].name, copyOf(value));
  }
}

NamedTensors Session::tensorOutputs(const std::string &purpose) const {
  NamedTensors tensors;
  for (const auto &[name, value] : computed) {
    if (value.kind != TCRT_VALUE_TENSOR || value.tensor.dtype == TCRT_DTYPE_STRING)
      throw Failure{1, options.artifact + ": error: output \"" + name + "\" is no tensor of numbers, which " + purpose +
                           " cannot take; use --output-dir"};
    tensors.emplace_back(name, value.tensor);
  }
  return tensors;
}

void *Session::deviceBuffer(uint64_t bytes) {
  void *data;
  check(tcrt_context_device_allocate(context(), bytes, &data));
  deviceBuffers.emplace_back(data, bytes);
  return data;
}

void Session::bindBuffers() {
  for (uint32_t i = 0; runsOnGpu && i < inputTensors.size(); ++i) {
    if (!inputTensors[i])
      continue;
    std::vector<tcrt_string_t> none;
    tcrt_tensor_t tensor = describe(*inputTensors[i], none);
    tensor.data = deviceBuffer(tensor.size_bytes);
    check(tcrt_context_device_copy(context(), tensor.data, inputTensors[i]->data.data(), tensor.size_bytes,
                                   TCRT_COPY_HOST_TO_DEVICE));
    tensor.device = TCRT_DEVICE_CUDA;
    check(tcrt_context_set_input(context(), i, &tensor));
  }
  outputBuffers.resize(computed.size());
  for (uint32_t i = 0; i < computed.size(); ++i) {
    Value &value = computed[i].second;
    if (value.kind != TCRT_VALUE_TENSOR || value.tensor.dtype == TCRT_DTYPE_STRING)
      continue; // the library makes these in memory of its own
    std::vector<tcrt_string_t> none;
    tcrt_tensor_t tensor = describe(value.tensor, none);
    if (runsOnGpu) {
      tensor.data = deviceBuffer(tensor.size_bytes);
      tensor.device = TCRT_DEVICE_CUDA;
    } else {
      // Where a program that cares for speed would put it.
      outputBuffers[i].resize(value.tensor.data.size() + TCRT_DATA_ALIGN);
      auto start = reinterpret_cast<uintptr_t>(outputBuffers[i].data());
      tensor.data = outputBuffers[i].data() + (TCRT_DATA_ALIGN - start % TCRT_DATA_ALIGN) % TCRT_DATA_ALIGN;
    }
    check(tcrt_context_set_output(context(), i, &tensor));
  }
}
