//===- Assemble.cpp - signature, manifest, weights ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Assemble.h"

#include "Guards.h"
#include "InnerOutputs.h"
#include "Refit.h"
#include "SizeText.h"

#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/TC/IR/Dtypes.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Version.h"
#include "tc/Functions/Store.h"
#include "tc/Transforms/UnfusedCost.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>

using namespace mlir;
using namespace tc;
using tc::artifact::ArtifactSpec;
using tc::artifact::Dim;
using tc::artifact::Kernel;
using tc::artifact::Segment;
using tc::artifact::Symbol;
using tc::artifact::Variant;
using tc::artifact::WeightSink;

namespace {

/// f32 as host.constant's `tf32` has it: the nearest of 11 significant bits, as cvt.rna.tf32 takes it.
llvm::Error writeRounded(ArrayRef<uint8_t> chunk, WeightSink sink) {
  constexpr uint32_t kExponent = 0x7f800000, kHalf = 0x1000, kKept = 0xffffe000;
  std::vector<uint32_t> words(chunk.size() / sizeof(uint32_t));
  std::memcpy(words.data(), chunk.data(), chunk.size());
  for (uint32_t &word : words)
    if ((word & kExponent) != kExponent) // infinities and what is no number stay
      word = (word + kHalf) & kKept;
  return sink(ArrayRef(reinterpret_cast<const uint8_t *>(words.data()), chunk.size()));
}

/// Floats of at most 32 bits as f32.
std::vector<float> toFloats(ArrayRef<char> bytes, FloatType type) {
  const unsigned size = type.getWidth() / 8;
  std::vector<float> floats(bytes.size() / size);
  if (type.isF32()) {
    std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
    return floats;
  }
  for (auto [i, value] : llvm::enumerate(floats)) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    value = APFloat(type.getFloatSemantics(), APInt(type.getWidth(), bits)).convertToFloat();
  }
  return floats;
}

llvm::json::Value typeToJson(StringRef name, Type type, ArrayAttr symbols) {
  llvm::json::Array dims;
  for (AffineExpr expr : prim::getSizes(type))
    dims.push_back(driver::sizeToJson(expr, symbols));
  std::string element;
  llvm::raw_string_ostream(element) << cast<RankedTensorType>(type).getElementType();
  return llvm::json::Object{{"name", name}, {"dtype", element}, {"shape", std::move(dims)}};
}

tcrt_dtype_t dtypeOf(Type element) {
  return isa<base::StringType>(element) ? TCRT_DTYPE_STRING : base::getDtype(element);
}

/// What a caller sees of a value that the program holds as words: kind, what is inside, dtype.
void describeWords(Type type, artifact::Value &value) {
  auto kindOf = [](Type type) {
    return isa<base::SeqType>(type)   ? TCRT_VALUE_SEQUENCE
           : isa<base::OptType>(type) ? TCRT_VALUE_OPTIONAL
           : isa<base::MapType>(type) ? TCRT_VALUE_MAP
                                      : TCRT_VALUE_TENSOR;
  };
  value.kind = kindOf(type);
  for (unsigned level = 0;; ++level) {
    if (level > 0)
      value.inner |= uint32_t(kindOf(type)) << (8 * (level - 1));
    if (auto sequence = dyn_cast<base::SeqType>(type)) {
      type = sequence.getElementType();
    } else if (auto optional = dyn_cast<base::OptType>(type)) {
      type = optional.getElementType();
    } else {
      if (auto map = dyn_cast<base::MapType>(type)) {
        value.inner |= uint32_t(dtypeOf(map.getKeyType())) << 16;
        type = map.getValueType();
      }
      break;
    }
  }
  auto tensor = dyn_cast<TensorType>(type);
  value.dtype = dtypeOf(tensor ? tensor.getElementType() : type);
}

/// Where the runtime finds a host function.
StringRef libraryOf(StringRef function) {
  if (tcrt_find_function(function.data(), function.size()))
    return "libtcrt";
#define TCRT_HOST_FUNCTION(name)                                                                                       \
  if (function == #name)                                                                                               \
    return "libtcrt-host";
#define TCRT_ORT_FUNCTION(name)                                                                                        \
  if (function == #name)                                                                                               \
    return "libtcrt-ort";
#include "tc/Functions/HostLibrary.def"
  return "custom";
}

/// Where the values of a function's launches come from: launches by number, inputs by name.
class Sources {
public:
  /// `firstLaunch` is the number of the function's first launch among those of all functions.
  Sources(func::FuncOp func, const artifact::Function &function, int64_t firstLaunch)
      : func(func), function(function), firstLaunch(firstLaunch) {
    func.walk<WalkOrder::PreOrder>([&](host::LaunchOp launch) { numbers.try_emplace(launch, numbers.size()); });
  }

  /// What `values` are computed from, other ops than launches looked through; weights are left out.
  llvm::json::Array of(ValueRange values) const {
    SmallVector<Value> pending(values);
    llvm::SmallDenseSet<Value> seen(values.begin(), values.end());
    std::set<int64_t> launches;
    std::set<unsigned> inputs;
    auto look = [&](ValueRange more) {
      for (Value value : more)
        if (seen.insert(value).second)
          pending.push_back(value);
    };
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      auto argument = dyn_cast<BlockArgument>(value);
      Operation *op = argument ? argument.getOwner()->getParentOp() : value.getDefiningOp();
      if (op == func) {
        inputs.insert(argument.getArgNumber());
      } else if (auto launch = dyn_cast<host::LaunchOp>(op)) {
        launches.insert(numbers.lookup(launch));
      } else {
        look(op->getOperands());
        if (!argument)
          for (Region &region : op->getRegions())
            for (Block &block : region)
              if (!block.empty())
                look(block.back().getOperands());
      }
    }
    llvm::json::Array result;
    for (int64_t launch : launches)
      result.push_back(firstLaunch + launch);
    for (unsigned input : inputs)
      result.push_back(llvm::json::fixUTF8(function.inputs[input].name));
    return result;
  }

private:
  func::FuncOp func;
  const artifact::Function &function;
  const int64_t firstLaunch;
  DenseMap<Operation *, int64_t> numbers;
};

class Assembler {
public:
  Assembler(ModuleOp module, const driver::AssembleOptions &options) : module(module), options(options) {}
  llvm::Expected<ArtifactSpec> run();

private:
  llvm::Error addSignature(func::FuncOp func, artifact::Function &function);
  llvm::Error addVariants();
  llvm::Error addWeights();
  llvm::Error addDefaults(func::FuncOp func, artifact::Function &function);
  llvm::Error addStates();
  llvm::Error addStrings();
  void addKernels(func::FuncOp func, artifact::Function &function);
  static void addEntries(func::FuncOp func, artifact::Function &function);
  llvm::json::Object describe(func::FuncOp func, const artifact::Function &function);
  void addManifest();
  llvm::Expected<ArrayRef<char>> bytesOf(Attribute data);

  ModuleOp module;
  SmallVector<func::FuncOp> functions; ///< as in the spec
  const driver::AssembleOptions &options;
  ArtifactSpec spec;
  std::vector<artifact::DeviceKernel> deviceKernels;
  SmallVector<std::pair<AffineExpr, AffineExpr>> costs; ///< of the launches: flops, bytes
  SmallVector<host::LaunchOp> launches;                 ///< of all functions
};

llvm::Error Assembler::addSignature(func::FuncOp func, artifact::Function &function) {
  ArrayAttr symbols = func->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
  llvm::SmallDenseSet<unsigned> bound;
  if (symbols)
    for (Attribute attr : symbols) {
      auto symbol = cast<prim::SymbolAttr>(attr);
      // A symbol of an offset may be negative, but then it is bound by the program, which checks it.
      function.symbols.push_back({symbol.getName().str(), std::max<int64_t>(symbol.getMin(), 0),
                                  std::max<int64_t>(symbol.getMax(), 0), symbol.getDivisor()});
    }
  auto add = [&](Type type, TypeAttr seen, StringAttr name, StringRef kind, unsigned number,
                 std::vector<artifact::Value> &values, bool isInput) -> llvm::Error {
    artifact::Value value;
    value.name = name && !name.getValue().empty() ? name.str() : (kind + "_" + Twine(number)).str();
    value.dtype = base::getDtype(cast<RankedTensorType>(type).getElementType());
    if (seen)
      describeWords(seen.getValue(), value);
    if (value.dtype == TCRT_DTYPE_INVALID) {
      std::string text;
      llvm::raw_string_ostream(text) << (seen ? seen.getValue() : type);
      return llvm::createStringError(std::errc::not_supported, "%s \"%s\" has the type %s, which artifacts cannot hold",
                                     kind.str().c_str(), value.name.c_str(), text.c_str());
    }
    for (AffineExpr expr : prim::getSizes(type)) {
      auto symbol = dyn_cast<AffineSymbolExpr>(expr);
      if (auto constant = prim::getConstantSize(expr))
        value.dims.push_back(Dim::fixed(*constant));
      else if (symbol && (isInput || bound.contains(symbol.getPosition())))
        value.dims.push_back(Dim::symbol(symbol.getPosition()));
      else
        value.dims.push_back(Dim::expr());
      if (symbol && isInput)
        bound.insert(symbol.getPosition());
    }
    values.push_back(std::move(value));
    return llvm::Error::success();
  };
  for (BlockArgument argument : func.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (llvm::Error error =
            add(argument.getType(), func.getArgAttrOfType<TypeAttr>(number, prim::kValueAttr),
                func.getArgAttrOfType<StringAttr>(number, "tc.name"), "input", number, function.inputs, true))
      return error;
    if (argument.use_empty())
      function.inputs.back().flags |= TCRT_VALUE_FLAG_UNUSED;
  }
  for (auto [number, type] : llvm::enumerate(func.getResultTypes()))
    if (llvm::Error error =
            add(type, func.getResultAttrOfType<TypeAttr>(number, prim::kValueAttr),
                func.getResultAttrOfType<StringAttr>(number, "tc.name"), "output", number, function.outputs, false))
      return error;
  return llvm::Error::success();
}

llvm::Error Assembler::addVariants() {
  for (auto binary : module.getOps<host::BinaryOp>()) {
    auto bytes = dyn_cast<DenseI8ResourceElementsAttr>(binary.getObject());
    std::optional<ArrayRef<int8_t>> data = bytes ? bytes.tryGetAsArrayRef() : std::nullopt;
    if (!data)
      return llvm::createStringError("the object code of variant \"" + binary.getSymName() + "\" is missing");
    Variant variant;
    variant.name = binary.getSymName().str();
    variant.device = binary.getDevice() == machine::DeviceKind::Cuda ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU;
    variant.cpuFeatures = binary.getRequires();
    variant.elf.assign(reinterpret_cast<const char *>(data->data()), data->size());
    if (variant.device == TCRT_DEVICE_CUDA) {
      variant.deviceKernels = deviceKernels;
      variant.graphs = options.graphs;
    }
    auto deviceCode = binary->getAttrOfType<ArrayAttr>(host::kDeviceCodeAttr);
    for (auto code : deviceCode ? deviceCode.getAsRange<DictionaryAttr>()
                                : ArrayAttr::get(module.getContext(), {}).getAsRange<DictionaryAttr>()) {
      auto object = dyn_cast_or_null<DenseI8ResourceElementsAttr>(code.get("object"));
      std::optional<ArrayRef<int8_t>> raw = object ? object.tryGetAsArrayRef() : std::nullopt;
      auto kind = code.getAs<IntegerAttr>("kind");
      auto arch = code.getAs<IntegerAttr>("arch");
      if (!raw || !kind || !arch)
        return llvm::createStringError("the device code of variant \"" + binary.getSymName() + "\" is missing");
      std::string text(reinterpret_cast<const char *>(raw->data()), raw->size());
      if (kind.getInt() == TCRT_SECTION_CUBIN)
        variant.cubins.push_back({uint32_t(arch.getInt()), std::move(text)});
      else
        variant.ptx.push_back({uint32_t(arch.getInt()), std::move(text)});
    }
    spec.variants.push_back(std::move(variant));
  }
  if (spec.variants.empty())
    return llvm::createStringError("the module holds no object code");
  // Best first: the more a variant asks of the machine, the better it is.
  llvm::stable_sort(spec.variants, [](const Variant &a, const Variant &b) {
    if (a.device != b.device)
      return a.device > b.device;
    return llvm::popcount(a.cpuFeatures) > llvm::popcount(b.cpuFeatures);
  });
  return llvm::Error::success();
}

void Assembler::addKernels(func::FuncOp func, artifact::Function &function) {
  // Device kernels are numbered by their first launch, as tc-convert-host-to-llvm does.
  func.walk<WalkOrder::PreOrder>([&](host::LaunchOp launch) {
    if (DictionaryAttr device = launch.getDeviceAttr()) {
      auto found = llvm::find_if(deviceKernels, [&](const auto &kernel) { return kernel.name == launch.getKernel(); });
      if (found == deviceKernels.end())
        found = deviceKernels.insert(found, {launch.getKernel().str(), 0, 0});
      uint32_t threads = 1;
      for (int64_t count : device.getAs<DenseI64ArrayAttr>("block").asArrayRef())
        threads *= count;
      found->maxThreads = std::max(found->maxThreads, threads);
      if (auto smem = device.getAs<IntegerAttr>("smem"))
        found->dynamicSmem = std::max<uint32_t>(found->dynamicSmem, smem.getInt());
    }
    Kernel kernel;
    kernel.name = launch.getKernel().str();
    kernel.nodes = host::joinNodeNames(launch);
    AffineExpr unknown = getAffineConstantExpr(0, launch.getContext());
    base::CostAttr cost = launch.getCostAttr();
    costs.emplace_back(cost ? cost.getFlopsExpr() : unknown, cost ? cost.getBytesExpr() : unknown);
    launches.push_back(launch);
    kernel.flops = prim::getConstantSize(costs.back().first).value_or(0);
    kernel.bytes = prim::getConstantSize(costs.back().second).value_or(0);
    function.kernels.push_back(std::move(kernel));
  });
}

/// Code for listed sizes and buckets, as tc-specialize-sizes has made it.
void Assembler::addEntries(func::FuncOp func, artifact::Function &function) {
  auto codes = func->getAttrOfType<ArrayAttr>(prim::kSpecializedAttr);
  if (!codes)
    return;
  for (auto code : codes.getAsRange<DenseI64ArrayAttr>()) {
    artifact::Entry &entry = function.entries.emplace_back();
    for (int64_t i = 0; i + 2 < code.size(); i += 3)
      entry.sizes.push_back({uint32_t(code[i]), code[i + 1], code[i + 2] != 0});
  }
}

llvm::Expected<ArrayRef<char>> Assembler::bytesOf(Attribute data) {
  auto reference = dyn_cast<base::DataAttr>(data);
  if (!reference)
    if (auto dense = dyn_cast<DenseElementsAttr>(data))
      reference = base::fromDense(dense);
  FailureOr<ArrayRef<char>> bytes = failure();
  if (reference)
    bytes = base::getBytes(reference);
  if (failed(bytes))
    return llvm::createStringError(std::make_error_code(std::errc::no_such_file_or_directory),
                                   "the bytes of a constant are missing; the .data file belongs beside the .mlir file");
  return *bytes;
}

llvm::Error Assembler::addWeights() {
  struct Constant {
    Attribute data;
    AffineMap map;
    RankedTensorType type;
    SmallVector<double> transform;
    bool tf32;
  };
  std::map<int64_t, Constant> constants; // by offset; equal ones share it
  module.walk([&](Operation *op) {
    Attribute data;
    AffineMap map;
    SmallVector<double> transform;
    bool tf32 = false;
    if (auto constant = dyn_cast<host::ConstantOp>(op)) {
      data = constant.getData();
      map = constant.getMap().value_or(AffineMap());
      if (DenseElementsAttr matrix = constant.getTransformAttr())
        llvm::append_range(transform, matrix.getValues<double>());
      tf32 = constant.getTf32();
    } else if (auto constant = dyn_cast<prim::ConstantOp>(op)) {
      data = constant.getValue();
    }
    if (!data)
      return;
    auto place = cast<host::PlaceAttr>(op->getAttrOfType<ArrayAttr>(host::kPlacesAttr)[0]);
    int64_t offset = cast<AffineConstantExpr>(place.getOffset().getValue().getResult(0)).getValue();
    // An empty constant stands where the next one does.
    if (cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() == 0)
      return;
    constants.insert({offset, {data, map, cast<RankedTensorType>(op->getResult(0).getType()), transform, tf32}});
  });
  for (auto &[offset, constant] : constants) {
    llvm::Expected<ArrayRef<char>> bytes = bytesOf(constant.data);
    if (!bytes)
      return bytes.takeError();
    auto dataType = cast<RankedTensorType>(cast<TypedAttr>(constant.data).getType());
    int64_t size = cast<AffineConstantExpr>(host::getSizeBytes(constant.type)).getValue();
    Segment segment;
    if (constant.tf32 && (!dataType.getElementType().isF32() || !constant.map))
      return llvm::createStringError("a constant that is rounded to TF32 is of f32 and has a map");
    if (!constant.tf32 && (!constant.map || constant.map.isIdentity())) {
      if (int64_t(bytes->size()) != size)
        return llvm::createStringError("a constant without a map changes its size");
      segment = Segment::bytes(StringRef(bytes->data(), bytes->size()));
    } else {
      unsigned bits = host::getElementBits(dataType.getElementType());
      if (bits % 8 != 0)
        return llvm::createStringError(std::errc::not_supported, "a constant of %u-bit elements cannot be rearranged",
                                       bits);
      if (constant.map.getNumDims() != constant.type.getRank() || constant.map.getNumSymbols() != 0 ||
          constant.map.getNumResults() != dataType.getRank())
        return llvm::createStringError("the map of a constant does not fit its type");
      if (!constant.transform.empty() && (!isa<FloatType>(dataType.getElementType()) || bits > 32 ||
                                          constant.transform.size() % constant.type.getDimSize(0) != 0))
        return llvm::createStringError("the transform of a constant does not fit its type");
      segment = Segment::callback(
          size, [bytes = *bytes, dataType, bits, constant = constant, jobs = options.jobs](WeightSink all) {
            auto rounded = [&](ArrayRef<uint8_t> chunk) { return writeRounded(chunk, all); };
            const WeightSink sink = constant.tf32 ? WeightSink(rounded) : all;
            if (!constant.transform.empty()) {
              const std::vector<float> floats = toFloats(bytes, cast<FloatType>(dataType.getElementType()));
              return driver::rearrangeTransformed(floats, dataType.getShape(), constant.map, constant.type.getShape(),
                                                  constant.transform, jobs, sink);
            }
            return driver::rearrange(bytes, dataType.getShape(), bits / 8, constant.map, constant.type.getShape(), jobs,
                                     sink);
          });
    }
    spec.weights.push_back({uint64_t(offset), std::move(segment)});
  }
  return llvm::Error::success();
}

/// Inputs with a default value: their bytes follow the constants.
llvm::Error Assembler::addDefaults(func::FuncOp func, artifact::Function &function) {
  for (BlockArgument argument : func.getArguments()) {
    Attribute data = func.getArgAttr(argument.getArgNumber(), "tc.default");
    if (!data)
      continue;
    llvm::Expected<ArrayRef<char>> bytes = bytesOf(data);
    if (!bytes)
      return bytes.takeError();
    artifact::Value &input = function.inputs[argument.getArgNumber()];
    input.flags |= TCRT_VALUE_FLAG_DEFAULT;
    input.defaultOffset = spec.addWeights(Segment::bytes(StringRef(bytes->data(), bytes->size())));
  }
  return llvm::Error::success();
}

/// The states, and their initial values behind the constants.
llvm::Error Assembler::addStates() {
  for (auto op : module.getOps<prim::StateOp>()) {
    auto type = cast<RankedTensorType>(op.getType());
    artifact::State state;
    state.name = op.getSymName().str();
    state.dtype = base::getDtype(type.getElementType());
    state.dims = type.getShape();
    if (op.getInitial()) {
      llvm::Expected<ArrayRef<char>> bytes = bytesOf(*op.getInitial());
      if (!bytes)
        return bytes.takeError();
      state.initialOffset = spec.addWeights(Segment::bytes(StringRef(bytes->data(), bytes->size())));
    }
    spec.states.push_back(std::move(state));
  }
  return llvm::Error::success();
}

/// Constant strings have numbers in the code, so that functions cannot have different ones.
llvm::Error Assembler::addStrings() {
  ArrayAttr strings;
  for (func::FuncOp func : functions) {
    auto own = func->getAttrOfType<ArrayAttr>(prim::kStringsAttr);
    if (own && strings && own != strings)
      return llvm::createStringError(
          std::errc::not_supported,
          "function \"%s\" has other constant strings than the functions before it; one table "
          "is supported",
          func.getSymName().str().c_str());
    if (own)
      strings = own;
  }
  if (strings)
    for (auto text : strings.getAsRange<StringAttr>())
      spec.strings.push_back(text.str());
  return llvm::Error::success();
}

/// What the manifest says of a function.
llvm::json::Object Assembler::describe(func::FuncOp func, const artifact::Function &function) {
  using llvm::json::Array;
  using llvm::json::Object;
  Array inputs, outputs, symbols, scratch;
  auto names = func->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
  for (auto [value, argument] : llvm::zip_equal(function.inputs, func.getArguments())) {
    llvm::json::Value input = typeToJson(value.name, argument.getType(), names);
    if (auto range = func.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), prim::kRangeAttr))
      (*input.getAsObject())["range"] = Array(range.asArrayRef());
    inputs.push_back(std::move(input));
  }
  for (auto [value, type] : llvm::zip_equal(function.outputs, func.getResultTypes()))
    outputs.push_back(typeToJson(value.name, type, names));
  for (const Symbol &symbol : function.symbols) {
    Object object{{"name", symbol.name}, {"min", symbol.min}, {"divisor", symbol.divisor}};
    if (symbol.max != INT64_MAX)
      object["max"] = symbol.max;
    symbols.push_back(std::move(object));
  }
  for (AffineExpr expr : func->getAttrOfType<AffineMapAttr>(host::kScratchAttr).getValue().getResults())
    scratch.push_back(driver::sizeToJson(expr, names));
  Object memory{{"arena_bytes", driver::sizeToJson(host::getArenaBytes(func), names)},
                {"scratch_bytes_per_worker", std::move(scratch)},
                {"weights_bytes", int64_t(spec.weightsSize())}};
  if (auto live = func->getAttrOfType<IntegerAttr>(host::kLiveAttr))
    memory["live_bytes"] = live.getInt();
  Array guards = driver::describeGuards(func, function, options.flags);
  driver::logGuards(function.name, guards);
  return Object{{"name", function.name},         {"inputs", std::move(inputs)}, {"outputs", std::move(outputs)},
                {"symbols", std::move(symbols)}, {"guards", std::move(guards)}, {"memory", std::move(memory)}};
}

void Assembler::addManifest() {
  using llvm::json::Array;
  using llvm::json::Object;
  Array described, variants, kernels, flags, hostFunctions;
  for (auto [func, function] : llvm::zip_equal(functions, spec.functions))
    described.push_back(describe(func, function));
  for (auto binary : module.getOps<host::BinaryOp>()) {
    // What LLVM, or ptxas, calls it.
    auto cpu = dyn_cast<machine::CpuAttr>(binary.getMachine());
    std::string names = cpu ? cpu.getCpu().str() : "";
    if (!cpu)
      names = llvm::join(llvm::map_range(binary.getMachines().getAsRange<machine::MachineAttr>(),
                                         [](machine::MachineAttr gpu) { return gpu.getName(); }),
                         ",");
    variants.push_back(Object{{"name", binary.getSymName()},
                              {"device", machine::stringifyDeviceKind(binary.getDevice())},
                              {"cpu", names},
                              {"features", cpu ? cpu.getFeatures() : ""},
                              {"requires", int64_t(binary.getRequires())}});
  }
  size_t number = 0, functionNumber = 0;
  for (auto [func, function] : llvm::zip_equal(functions, spec.functions)) {
    auto names = func->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
    const Sources sources(func, function, number);
    Object &description = *described[functionNumber++].getAsObject();
    description["first_kernel"] = int64_t(number);
    for (auto [output, value] :
         llvm::zip(*description.getArray("outputs"), func.front().getTerminator()->getOperands()))
      output.getAsObject()->try_emplace("from", sources.of(value));
    for (const Kernel &kernel : function.kernels) {
      host::LaunchOp launch = launches[number];
      auto [flops, bytes] = costs[number++];
      Object entry{{"name", kernel.name},
                   {"nodes", kernel.nodes},
                   {"flops", driver::sizeToJson(flops, names)},
                   {"bytes", driver::sizeToJson(bytes, names)},
                   {"reads", sources.of(launch.getInputs())}};
      if (auto strategy = launch->getAttrOfType<StringAttr>(host::kStrategyAttr))
        entry["strategy"] = strategy.getValue();
      if (auto unfused = launch->getAttrOfType<DictionaryAttr>(kUnfusedAttr)) {
        const AffineExpr moved = cast<AffineMapAttr>(unfused.get("bytes")).getValue().getResult(0);
        entry["unfused"] = Object{{"launches", cast<IntegerAttr>(unfused.get("launches")).getInt()},
                                  {"bytes", driver::sizeToJson(moved, names)}};
      }
      kernels.push_back(std::move(entry));
    }
  }
  for (const std::string &flag : options.flags)
    flags.push_back(flag);
  for (const std::string &name : spec.hostFunctions)
    hostFunctions.push_back(Object{{"name", name}, {"library", libraryOf(name)}});
  Object model;
  if (!options.sourceHash.empty())
    model["sha256"] = options.sourceHash;
  if (auto producer = module->getAttrOfType<StringAttr>("tc.producer"))
    model["producer"] = producer.getValue();
  if (auto metadata = module->getAttrOfType<DictionaryAttr>("tc.metadata")) {
    Object entries;
    for (NamedAttribute entry : metadata)
      if (auto text = dyn_cast<StringAttr>(entry.getValue()))
        entries[llvm::json::fixUTF8(entry.getName().strref())] = llvm::json::fixUTF8(text.getValue());
    model["metadata"] = std::move(entries);
  }
  // What the code comes from, beside tc.
  Object libraries{{"LLVM", LLVM_VERSION_STRING}};
  Object manifest{
      {"producer", Object{{"name", "tc"}, {"version", TC_VERSION_STRING}, {"libraries", std::move(libraries)}}},
      {"model", std::move(model)},
      {"functions", std::move(described)},
      {"variants", std::move(variants)},
      {"kernels", std::move(kernels)},
      {"host_functions", std::move(hostFunctions)},
      {"flags", std::move(flags)}};
  if (!options.options.empty()) {
    manifest["options"] = Object(options.options);
    manifest["code"] = driver::describeCode(module);
  }
  if (auto count = module->getAttrOfType<IntegerAttr>(driver::kInnerOutputsAttr))
    manifest["inner_outputs"] = count.getInt();
  // Keys are printed in sorted order.
  spec.manifest = llvm::formatv("{0:2}", llvm::json::Value(std::move(manifest))).str();
}

llvm::Expected<ArtifactSpec> Assembler::run() {
  functions = getFunctions(module);
  for (func::FuncOp func : functions)
    if (!func->hasAttr(host::kArenaAttr) || !func->hasAttr(host::kScratchAttr))
      functions.clear();
  if (functions.empty())
    return llvm::createStringError(
        "the module has no function with a memory plan; it is not at the end of phase object");
  for (func::FuncOp func : functions) {
    artifact::Function &function = spec.functions.emplace_back();
    function.name = func.getSymName().str();
    if (llvm::Error error = addSignature(func, function))
      return std::move(error);
    addKernels(func, function);
    function.launches = uint64_t(host::countLaunches(func.front()));
    addEntries(func, function);
  }
  if (llvm::Error error = addVariants())
    return std::move(error);
  if (llvm::Error error = addWeights())
    return std::move(error);
  for (auto [func, function] : llvm::zip_equal(functions, spec.functions))
    if (llvm::Error error = addDefaults(func, function))
      return std::move(error);
  if (llvm::Error error = addStates())
    return std::move(error);
  for (StringRef name : getHostFunctions(functions))
    spec.hostFunctions.push_back(name.str());
  if (llvm::Error error = addStrings())
    return std::move(error);
  addManifest();
  return std::move(spec);
}

} // namespace

llvm::Expected<ArtifactSpec> tc::driver::assembleArtifact(ModuleOp module, const AssembleOptions &options) {
  return Assembler(module, options).run();
}
