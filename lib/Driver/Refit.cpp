//===- Refit.cpp - other weights for code that is there -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Refit.h"

#include "tc/Artifact/Reader.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/TC/IR/Dtypes.h"
#include "tc/Format/Sha256.h"
#include "tc/Support/Hash.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace tc;
using namespace tc::driver;
using llvm::json::Array;
using llvm::json::Object;

namespace {

/// A function as numbers: what its ops are, their attributes and types as text, values by their order.
class Hasher {
public:
  std::string hash(Operation *op) {
    add(op);
    return contentHash(ArrayRef<char>(reinterpret_cast<const char *>(words.data()), words.size() * sizeof(uint64_t)));
  }

private:
  void add(Operation *op) {
    words.push_back(llvm::xxh3_64bits(op->getName().getStringRef()));
    words.push_back(
        textOf(op->getAttrDictionary().getAsOpaquePointer(), [&](raw_ostream &os) { os << op->getAttrDictionary(); }));
    for (Value operand : op->getOperands())
      words.push_back(numberOf(operand));
    for (Value result : op->getResults()) {
      words.push_back(typeOf(result));
      numberOf(result);
    }
    for (Block *successor : op->getSuccessors())
      words.push_back(blocks.try_emplace(successor, blocks.size()).first->second);
    for (Region &region : op->getRegions()) {
      words.push_back(~uint64_t(0));
      for (Block &block : region) {
        words.push_back(blocks.try_emplace(&block, blocks.size()).first->second);
        for (BlockArgument argument : block.getArguments()) {
          words.push_back(typeOf(argument));
          numberOf(argument);
        }
        for (Operation &inner : block)
          add(&inner);
      }
    }
  }

  uint64_t numberOf(Value value) { return values.try_emplace(value, values.size()).first->second; }
  uint64_t typeOf(Value value) {
    return textOf(value.getType().getAsOpaquePointer(), [&](raw_ostream &os) { os << value.getType(); });
  }
  uint64_t textOf(const void *key, llvm::function_ref<void(raw_ostream &)> print) {
    auto [found, isNew] = texts.try_emplace(key, 0);
    if (isNew) {
      std::string text;
      llvm::raw_string_ostream os(text);
      print(os);
      found->second = llvm::xxh3_64bits(text);
    }
    return found->second;
  }

  std::vector<uint64_t> words;
  DenseMap<const void *, uint64_t> texts;
  DenseMap<Value, uint64_t> values;
  DenseMap<Block *, uint64_t> blocks;
};

/// What tc-inspect and others call a list of options.
Array toArray(ArrayRef<std::string> list) {
  Array array;
  for (const std::string &text : list)
    array.push_back(text);
  return array;
}

bool readList(const Object &options, StringRef key, std::vector<std::string> &list) {
  const Array *array = options.getArray(key);
  for (size_t i = 0; array && i < array->size(); ++i) {
    std::optional<StringRef> text = (*array)[i].getAsString();
    if (!text)
      return false;
    list.push_back(text->str());
  }
  return array;
}

/// The manifest's object, or an empty one.
Object parseManifest(const artifact::Reader &reader) {
  llvm::Expected<llvm::json::Value> manifest = llvm::json::parse(reader.manifest());
  if (manifest && manifest->getAsObject())
    return std::move(*manifest->getAsObject());
  llvm::consumeError(manifest.takeError());
  return Object();
}

} // namespace

void tc::driver::recordCode(ModuleOp module) {
  std::vector<Operation *> functions;
  for (auto variant : module.getOps<host::VariantOp>())
    for (Operation &op : variant.getBody().front())
      functions.push_back(&op);
  std::vector<std::string> hashes(functions.size());
  parallelFor(module.getContext(), 0, functions.size(),
              [&](size_t i) { hashes[i] = StringRef(Hasher().hash(functions[i])).take_front(16).str(); });
  Builder b(module.getContext());
  SmallVector<NamedAttribute> variants;
  size_t next = 0;
  for (auto variant : module.getOps<host::VariantOp>()) {
    SmallVector<NamedAttribute> code;
    for (Operation &op : variant.getBody().front()) {
      const std::string &hash = hashes[next++];
      if (auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
        code.push_back(b.getNamedAttr(name.getValue(), b.getStringAttr(hash)));
    }
    variants.push_back(b.getNamedAttr(variant.getSymName(), b.getDictionaryAttr(code)));
  }
  module->setAttr(kCodeAttr, b.getDictionaryAttr(variants));
}

Object tc::driver::describeCode(ModuleOp module) {
  Object all;
  auto code = module->getAttrOfType<DictionaryAttr>(kCodeAttr);
  for (NamedAttribute variant : code ? code.getValue() : ArrayRef<NamedAttribute>()) {
    Object hashes;
    for (NamedAttribute function : cast<DictionaryAttr>(variant.getValue()))
      hashes[function.getName().strref()] = cast<StringAttr>(function.getValue()).getValue();
    all[variant.getName().strref()] = std::move(hashes);
  }
  return all;
}

Object tc::driver::describeOptions(const CompileRequest &request, bool isTuned) {
  // On CPUs modes only decide who chooses schedules: equal schedules give equal artifacts, whoever chose them.
  // On GPUs they decide about CUDA graphs, too: max-autotune as reduce-overhead does.
  const bool isForCpus = !llvm::is_contained(request.targets, machine::stringifyTargetKind(machine::TargetKind::Cuda));
  const std::string mode = isForCpus ? "default" : request.mode == "max-autotune" ? "reduce-overhead" : request.mode;
  Object options{{"targets", toArray(request.targets)},
                 {"cpus", toArray(request.cpus)},
                 {"gpus", toArray(request.gpus)},
                 {"dims", toArray(request.dims)},
                 {"shapes", toArray(request.shapes)},
                 {"no-assume", toArray(request.noAssume)},
                 {"static-input", toArray(request.staticInputs)},
                 {"outputs", toArray(request.innerOutputs)},
                 {"disable", toArray(request.disabled)},
                 {"backend-for", toArray(request.backendFor)},
                 {"stop-after", int64_t(request.stopAfter)},
                 {"precision", request.precision},
                 {"node-precision", toArray(request.nodePrecisions)},
                 {"mode", mode},
                 {"check-bounds", request.checkBounds}};
  // What depends on files or on measurements; these are not in the artifact.
  if (!request.customOps.empty())
    options["needs"] = "--custom-op";
  else if (!request.quantize.empty())
    options["needs"] = "--quantize";
  else if (isTuned)
    options["needs"] = "--tuning-db or --mode max-autotune";
  else if (StringRef(mode).starts_with("max-autotune"))
    options["needs"] = "--mode " + mode;
  return options;
}

std::vector<std::string> tc::driver::describeFlags(const CompileRequest &request, bool checksBounds) {
  std::vector<std::string> flags;
  for (const std::string &dim : request.dims)
    flags.push_back("--dim " + dim);
  for (const std::string &shape : request.shapes)
    flags.push_back("--shape " + shape);
  for (const std::string &name : request.noAssume)
    flags.push_back("--no-assume " + name);
  for (const std::string &pattern : request.staticInputs)
    flags.push_back("--static-input " + pattern);
  for (const std::string &pattern : request.innerOutputs)
    flags.push_back("--outputs " + pattern);
  if (request.stopAfter)
    flags.push_back("--stop-after " + std::to_string(request.stopAfter));
  for (const std::string &pattern : request.disabled)
    flags.push_back("--disable " + pattern);
  for (const std::string &text : request.backendFor)
    flags.push_back("--backend-for " + text);
  if (checksBounds)
    flags.push_back("--check-bounds");
  if (request.precision != "f32")
    flags.push_back("--precision " + request.precision);
  for (const std::string &text : request.nodePrecisions)
    flags.push_back("--precision " + text);
  if (!request.quantize.empty()) {
    flags.push_back("--quantize " + request.quantize);
    flags.push_back("--calibrate-method " + request.calibrateMethod);
  }
  for (const std::string &pattern : request.quantizeExclude)
    flags.push_back("--quantize-exclude " + pattern);
  if (request.quantizeBudget)
    flags.push_back(llvm::formatv("--quantize-budget {0:e3}", *request.quantizeBudget));
  return flags;
}

std::string tc::driver::hashModel(const std::string &path) {
  // Another thread may be mapping files, of which this one is no part.
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return "";
  uint8_t digest[32];
  tcrt_sha256((*file)->getBufferStart(), (*file)->getBufferSize(), digest);
  return llvm::toHex(digest, /*LowerCase=*/true);
}

std::string tc::driver::readOptions(CompileRequest &request) {
  const std::pair<const char *, bool> ofCode[] = {
      {"--target", !request.targets.empty()},
      {"--cpu", !request.cpus.empty()},
      {"--gpu", !request.gpus.empty()},
      {"--dim", !request.dims.empty()},
      {"--shape", !request.shapes.empty()},
      {"--no-assume", !request.noAssume.empty()},
      {"--static-input", !request.staticInputs.empty()},
      {"--outputs", !request.innerOutputs.empty()},
      {"--disable", !request.disabled.empty()},
      {"--backend-for", !request.backendFor.empty()},
      {"--stop-after", request.stopAfter > 0},
      {"--custom-op", !request.customOps.empty()},
      {"--mode", request.mode != "default"},
      {"--tuning-db", !request.tuningDb.empty()},
      {"--tuning-candidates", !request.tuningCandidates.empty()},
      {"--precision", request.precision != "f32" || !request.nodePrecisions.empty()},
      {"--quantize", !request.quantize.empty()},
      {"--check-bounds", request.checkBounds},
      {"--external-weights", request.externalWeights},
      {"--explain", request.explain},
      {"--compile-to", request.stopAtPhase}};
  for (auto [option, given] : ofCode)
    if (given)
      return std::string("tc-compile: error: --refit takes options and code of the artifact, and ") + option +
             " asks for others; leave one of them out";
  request.isRefitRead = true;
  request.cacheDir.clear(); // the artifact is that
  llvm::Expected<std::unique_ptr<artifact::Reader>> reader = artifact::Reader::open(request.refit);
  if (!reader)
    return llvm::toString(reader.takeError());
  const Object manifest = parseManifest(**reader);
  const Object *options = manifest.getObject("options");
  const std::string begin = request.refit + ": error: the artifact ";
  if (!options || !manifest.getObject("code"))
    return begin + "does not say how it was compiled, as those of an older tc; compile the new model by tc-compile";
  if (std::optional<StringRef> needs = options->getString("needs"))
    return begin + "was compiled with " + needs->str() +
           ", which decides about its code and is not in it; compile the new model by tc-compile with that option";
  bool isRead = true;
  for (auto [key, list] :
       {std::pair("targets", &request.targets), std::pair("cpus", &request.cpus), std::pair("gpus", &request.gpus),
        std::pair("dims", &request.dims), std::pair("shapes", &request.shapes),
        std::pair("no-assume", &request.noAssume), std::pair("outputs", &request.innerOutputs)})
    isRead &= readList(*options, key, *list);
  // Of an artifact from before there were these options.
  request.stopAfter = unsigned(options->getInteger("stop-after").value_or(0));
  for (auto [key, list] :
       {std::pair("disable", &request.disabled), std::pair("backend-for", &request.backendFor),
        std::pair("node-precision", &request.nodePrecisions), std::pair("static-input", &request.staticInputs)})
    isRead &= !options->get(key) || readList(*options, key, *list);
  std::optional<StringRef> precision = options->getString("precision"), mode = options->getString("mode");
  std::optional<bool> checkBounds = options->getBoolean("check-bounds");
  if (!isRead || !precision || !mode || !checkBounds)
    return begin + "says of its options what this tc does not know; compile the new model by tc-compile";
  request.precision = precision->str();
  request.mode = mode->str();
  request.checkBounds = *checkBounds;
  request.externalWeights = llvm::any_of(
      (*reader)->sections(), [](const tcrt_section_t &section) { return section.kind == TCRT_SECTION_WEIGHTS_FILE; });
  return "";
}

namespace {

/// The nodes that the kernel of this name computes, or that reads the table of this name; empty: it is none.
std::string nodesOf(ModuleOp module, host::VariantOp variant, StringRef kernel) {
  std::string nodes;
  variant.walk([&](LLVM::AddressOfOp address) {
    auto user = address->getParentOfType<LLVM::LLVMFuncOp>();
    if (nodes.empty() && user && address.getGlobalName() == kernel)
      nodes = nodesOf(module, variant, user.getSymName());
  });
  module.walk([&](host::LaunchOp launch) {
    if (nodes.empty() && kernel.starts_with(launch.getKernel()))
      nodes = host::joinNodeNames(launch);
  });
  return nodes;
}

/// The first input or output whose element type is another than in the artifact, as a part of a sentence; empty: none.
std::string findOtherType(ModuleOp module, const artifact::Reader &artifact) {
  for (auto [function, old] : llvm::zip(getFunctions(module), artifact.functions()))
    for (auto [what, types, values] : {std::tuple("input", function.getArgumentTypes(), artifact.inputs(old)),
                                       std::tuple("output", function.getResultTypes(), artifact.outputs(old))})
      for (auto [type, value] : llvm::zip(types, values)) {
        const tcrt_dtype_t dtype = base::getDtype(getElementTypeOrSelf(type));
        if (value.kind == TCRT_VALUE_TENSOR && isa<RankedTensorType>(type) && dtype != TCRT_DTYPE_INVALID &&
            dtype != tcrt_dtype_t(value.dtype))
          return (Twine(what) + " \"" + artifact.name(value.name) + "\" is " + tcrt_dtype_name(dtype) + ", and was " +
                  tcrt_dtype_name(tcrt_dtype_t(value.dtype)))
              .str();
      }
  return "";
}

ElementsAttr makeResource(Builder &b, StringRef bytes, const Twine &name) {
  auto type = RankedTensorType::get({int64_t(bytes.size())}, b.getI8Type());
  AsmResourceBlob blob =
      HeapAsmResourceBlob::allocateAndCopyWithAlign(ArrayRef<char>(bytes.data(), bytes.size()), /*align=*/64);
  return cast<ElementsAttr>(Attribute(DenseI8ResourceElementsAttr::get(type, name.str(), std::move(blob))));
}

} // namespace

static std::string takeCode(ModuleOp module, const artifact::Reader &artifact) {
  const Object manifest = parseManifest(artifact);
  const Object *code = manifest.getObject("code");
  auto hashes = module->getAttrOfType<DictionaryAttr>(kCodeAttr);
  for (auto variant : llvm::to_vector(module.getOps<host::VariantOp>())) {
    const StringRef name = variant.getSymName();
    const auto *found = llvm::find_if(artifact.variants(),
                                      [&](const tcrt_sig_variant_t &one) { return artifact.name(one.name) == name; });
    const Object *old = code ? code->getObject(name) : nullptr;
    if (!old || found == artifact.variants().end())
      return ("it has no code for " + name +
              ", which its options ask for on this machine; compile the new model by "
              "tc-compile")
          .str();
    auto now = cast<DictionaryAttr>(hashes.get(name));
    bool isOther = old->size() != now.size();
    std::string nodes;
    for (NamedAttribute function : now) {
      std::optional<StringRef> hash = old->getString(function.getName().strref());
      if (hash == cast<StringAttr>(function.getValue()).getValue())
        continue;
      isOther = true;
      if (nodes.empty())
        nodes = nodesOf(module, variant, function.getName().strref());
    }
    if (std::string type = isOther ? findOtherType(module, artifact) : ""; !type.empty())
      return "the model is of other types than that of the artifact: " + type + "; compile the new model by tc-compile";
    if (isOther && !nodes.empty())
      return "node \"" + nodes +
             "\" gets other code than the artifact has: its sizes or types differ, or weights that stand in its code "
             "(a bias of "
             "a kernel that no other node shares, one value throughout); compile the new model by tc-compile";
    if (isOther)
      return "the model is another than that of the artifact: its nodes, sizes or the places of its weights differ (as "
             "where weights were equal and are no longer); compile the new model by tc-compile";
    OpBuilder b(variant);
    auto binary = host::BinaryOp::create(
        b, variant.getLoc(), name, variant.getMachines(), found->cpu_features,
        makeResource(b, artifact.sectionBytes(artifact.sections()[found->section]), "elf_" + name));
    SmallVector<Attribute> deviceCode;
    for (uint32_t i = 0; variant.getDevice() == machine::DeviceKind::Cuda && i < found->device_code_count; ++i) {
      const tcrt_section_t &section = artifact.sections()[found->first_device_code + i];
      StringRef bytes = artifact.sectionBytes(section);
      if (section.kind == TCRT_SECTION_PTX) // ends with a NUL that the writer adds
        bytes = bytes.drop_back();
      else if (section.kind != TCRT_SECTION_CUBIN)
        continue;
      deviceCode.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("kind", b.getI64IntegerAttr(section.kind)),
           b.getNamedAttr("arch", b.getI64IntegerAttr(section.arch)),
           b.getNamedAttr(
               "object",
               makeResource(b, bytes, "code" + Twine(section.kind) + "_" + Twine(section.arch) + "_" + name))}));
    }
    if (!deviceCode.empty())
      binary->setAttr(host::kDeviceCodeAttr, b.getArrayAttr(deviceCode));
    variant.erase();
  }
  return "";
}

std::string tc::driver::takeCode(ModuleOp module, const std::string &path, bool isCuda) {
  llvm::Expected<std::unique_ptr<artifact::Reader>> whole = artifact::Reader::open(path);
  if (!whole)
    return llvm::toString(whole.takeError());
  const artifact::Reader *reader = whole->get();
  // Of several targets, all but the first are artifacts inside of it.
  std::unique_ptr<artifact::Reader> part;
  const uint32_t device = isCuda ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU;
  for (const tcrt_section_t &section : reader->sections()) {
    if (part || reader->variants().front().device == device || section.kind != TCRT_SECTION_ARTIFACT ||
        section.arch != device)
      continue;
    llvm::Expected<std::unique_ptr<artifact::Reader>> inner = reader->openPart(section);
    if (!inner)
      return llvm::toString(inner.takeError());
    part = std::move(*inner);
  }
  const std::string sentence = ::takeCode(module, part ? *part : *reader);
  return sentence.empty() ? "" : path + ": error: " + sentence;
}
