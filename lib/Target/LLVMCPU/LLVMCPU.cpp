//===- LLVMCPU.cpp - x86-64 object code through LLVM --------------------------------------------------------------===//
//
// A variant is cut into parts of about equal size, in the order of its functions: the program and all globals, then the
// kernels, then what a long program is cut into. Each part becomes an LLVM module of its own context, is optimised and
// written as a relocatable object. What these need of the code library is generated last, and lld makes one shared
// object of all.
//
// Kernels come vectorised; LLVM's vectorisers are off, as they would only widen scalar tails.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Internal.h"
#include "tc/Cache/Store.h"
#include "tc/Support/Logging.h"
#include "tc/Target/Optimize.h"
#include "tc/Target/Target.h"
#include "tcrt/artifact_abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;
using namespace tc;
using namespace tc::target;

namespace {

/// Operations per part; small enough for the threads to share the work, large enough to amortise a module's cost.
constexpr int64_t kPartOperations = 3000;
/// A kernel of so many ends its part, and so does every third one behind which a part has so many: where a part ends
/// depends on what is in it, so that a kernel that changes leaves the parts behind it as they were, which the cache
/// has.
constexpr int64_t kOwnOperations = 250;
/// What a part costs besides its operations, in the time of so many.
constexpr uint64_t kPartWork = 200;
/// The same of a long program's functions, which are not optimised.
constexpr int64_t kProgramOperations = 20000;
/// Bytes of stack that a task may use (DESIGN: artifact rules).
constexpr int64_t kMaxStackBytes = 64 * 1024;

struct FeatureBit {
  const char *name;
  uint64_t bit;
};
constexpr FeatureBit kFeatures[] = {{"sse4.2", TCRT_CPU_SSE42},
                                    {"avx", TCRT_CPU_AVX},
                                    {"avx2", TCRT_CPU_AVX2},
                                    {"fma", TCRT_CPU_FMA},
                                    {"f16c", TCRT_CPU_F16C},
                                    {"bmi2", TCRT_CPU_BMI2},
                                    {"avx512f", TCRT_CPU_AVX512F},
                                    {"avx512bw", TCRT_CPU_AVX512BW},
                                    {"avx512cd", TCRT_CPU_AVX512CD},
                                    {"avx512dq", TCRT_CPU_AVX512DQ},
                                    {"avx512vl", TCRT_CPU_AVX512VL},
                                    {"avx512vnni", TCRT_CPU_AVX512VNNI},
                                    {"avx512bf16", TCRT_CPU_AVX512BF16},
                                    {"avx512fp16", TCRT_CPU_AVX512FP16},
                                    {"avxvnni", TCRT_CPU_AVXVNNI},
                                    {"amx-tile", TCRT_CPU_AMX_TILE},
                                    {"amx-bf16", TCRT_CPU_AMX_BF16},
                                    {"amx-int8", TCRT_CPU_AMX_INT8},
                                    {"avx512vbmi", TCRT_CPU_AVX512VBMI},
                                    {"avx512ifma", TCRT_CPU_AVX512IFMA},
                                    {"avx512vbmi2", TCRT_CPU_AVX512VBMI2},
                                    {"avx512bitalg", TCRT_CPU_AVX512BITALG},
                                    {"avx512vpopcntdq", TCRT_CPU_AVX512VPOPCNTDQ}};

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(StringRef cpu, StringRef features,
                                                                       llvm::CodeGenOptLevel level) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("LLVM has no x86-64 code generator: " + error);
  llvm::TargetOptions options;
  options.FunctionSections = true;
  options.DataSections = true;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
  if (!machine)
    return llvm::createStringError("LLVM cannot generate code for CPU \"" + cpu + "\"");
  return machine;
}

class Compilation : public VariantCompilation {
public:
  Compilation(host::VariantOp variant, const ObjectOptions &options)
      : variant(variant), debugDir(options.debugDir), cache(options.cache) {}

  llvm::Error prepare();
  unsigned getPartCount() const override { return parts.size(); }
  PartSize getPartSize(unsigned part) const override { return parts[part].size; }
  llvm::Error compilePart(unsigned part) override;
  llvm::Expected<Object> finish() override;

private:
  std::unique_ptr<llvm::Module> translate(ArrayRef<Operation *> operations, llvm::LLVMContext &context);
  llvm::StringMap<std::string> neutralizeNames(llvm::Module &module);
  llvm::Expected<std::string> generate(llvm::Module &module, llvm::TargetMachine &machine, const Twine &part,
                                       bool isNeutral, const std::string &problem);
  llvm::Expected<std::string>
  compileModule(const Twine &part, llvm::CodeGenOptLevel level, bool isNeutral,
                llvm::function_ref<llvm::Expected<std::unique_ptr<llvm::Module>>(llvm::LLVMContext &)> make);
  llvm::Error addLibrary();

  host::VariantOp variant;
  std::string debugDir;
  cache::Store *cache;
  /// Definitions. Part 0 holds the program and the globals.
  struct Part {
    SmallVector<Operation *> operations;
    bool isOptimized = true;
    PartSize size{kPartWork, 0};
  };
  std::vector<Part> parts;
  llvm::StringMap<Operation *> symbols; ///< of the variant
  std::vector<std::string> objects;
  std::string cpu, features;
  uint64_t requires_ = 0;
  bool wide = false;
};

llvm::Error Compilation::prepare() {
  auto described = cast<machine::CpuAttr>(variant.getMachine());
  cpu = described.getCpu().str();
  features = described.getFeatures().str();
  auto machine = makeTargetMachine(cpu, features, llvm::CodeGenOptLevel::Default);
  if (!machine)
    return machine.takeError();
  const llvm::MCSubtargetInfo &subtarget = *(*machine)->getMCSubtargetInfo();
  if (!subtarget.isCPUStringValid(cpu))
    return llvm::createStringError("LLVM knows no CPU \"" + cpu + "\"");
  for (const FeatureBit &feature : kFeatures)
    if (subtarget.checkFeatures((Twine("+") + feature.name).str()))
      requires_ |= feature.bit;
  wide = requires_ & TCRT_CPU_AVX512F;

  parts.emplace_back();
  SmallVector<Operation *> kernels, program;
  for (Operation &op : variant.getBody().front()) {
    if (auto symbol = dyn_cast<SymbolOpInterface>(op))
      symbols[symbol.getName()] = &op;
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!function) {
      parts[0].operations.push_back(&op);
      continue;
    }
    if (function.isExternal())
      continue;
    if (!function.getName().starts_with("tc_"))
      kernels.push_back(&op);
    else if (function.getOptimizeNone().value_or(false))
      program.push_back(&op);
    else
      parts[0].operations.push_back(&op);
  }
  auto countOperations = [](Operation *function) {
    int64_t count = 0;
    function->walk([&](Operation *) { ++count; });
    return count;
  };
  for (Operation *op : parts[0].operations)
    parts[0].size.work += countOperations(op);
  auto addParts = [&](ArrayRef<Operation *> functions, bool isOptimized, int64_t most) {
    int64_t operations = 0;
    bool isComplete = true;
    for (Operation *function : functions) {
      const int64_t count = countOperations(function);
      if (isComplete || operations + count > most) {
        parts.emplace_back();
        parts.back().isOptimized = isOptimized;
        operations = 0;
      }
      parts.back().operations.push_back(function);
      // What is not optimised takes a fraction of the time.
      parts.back().size.work += isOptimized ? count : count / 8;
      parts.back().size.kernels += isOptimized;
      operations += count;
      isComplete = isOptimized && (count >= kOwnOperations || (operations >= kOwnOperations && count % 3 == 0));
    }
  };
  addParts(kernels, /*isOptimized=*/true, kPartOperations);
  addParts(program, /*isOptimized=*/false, kProgramOperations);
  objects.resize(getPartCount());
  return llvm::Error::success();
}

/// Masked stores with a constant mask of one lane become stores of one element. With AVX-512, LLVM 22 makes of such a
/// store of truncated elements one of the element before it was truncated: four bytes where one belongs, beyond the end
/// of a buffer.
void storeOneLane(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!call || call->getIntrinsicID() != llvm::Intrinsic::masked_store)
        continue;
      auto *mask = llvm::dyn_cast<llvm::Constant>(call->getArgOperand(2));
      auto *type = llvm::dyn_cast<llvm::FixedVectorType>(call->getArgOperand(0)->getType());
      if (!mask || !type)
        continue;
      unsigned count = 0, last = 0;
      for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
        auto *bit = llvm::dyn_cast_or_null<llvm::ConstantInt>(mask->getAggregateElement(lane));
        if (!bit || bit->isOne()) {
          count += bit ? 1 : 2;
          last = lane;
        }
      }
      if (count != 1)
        continue;
      llvm::IRBuilder<> b(call);
      uint64_t bytes = module.getDataLayout().getTypeStoreSize(type->getElementType());
      llvm::Align align = llvm::commonAlignment(call->getParamAlign(1).valueOrOne(), last * bytes);
      b.CreateAlignedStore(b.CreateExtractElement(call->getArgOperand(0), last),
                           b.CreateConstGEP1_32(type->getElementType(), call->getArgOperand(1), last), align);
      call->eraseFromParent();
    }
}

/// Masked accesses to several registers leave out those that the mask never takes. Where vectors have `bits` and masks
/// no registers of their own, LLVM 22 splits a mask such as <c, c, c, c, 0, 0, 0, 0> of eight f64 into one for each
/// register and accesses the one of zeros without a mask.
void leaveIdleRegisters(llvm::Module &module, unsigned bits) {
  const llvm::DataLayout &layout = module.getDataLayout();
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      const llvm::Intrinsic::ID id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
      const bool isLoad = id == llvm::Intrinsic::masked_load;
      if (!isLoad && id != llvm::Intrinsic::masked_store)
        continue;
      llvm::Value *pointer = call->getArgOperand(isLoad ? 0 : 1), *mask = call->getArgOperand(isLoad ? 1 : 2);
      llvm::Value *value = call->getArgOperand(isLoad ? 2 : 0); // where the mask is off; to store
      auto *type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
      const uint64_t bytes = type ? layout.getTypeStoreSize(type->getElementType()).getFixedValue() : 0;
      const unsigned lanes = type ? type->getNumElements() : 0, part = bytes ? bits / 8 / unsigned(bytes) : 0;
      if (part == 0 || lanes <= part || lanes % part != 0)
        continue;
      SmallVector<unsigned> taken;
      for (unsigned first = 0; first < lanes; first += part)
        if (!llvm::computeKnownBits(mask, llvm::APInt::getBitsSet(lanes, first, first + part), layout).isZero())
          taken.push_back(first);
      if (taken.size() == lanes / part)
        continue;
      llvm::IRBuilder<> b(call);
      llvm::Value *loaded = value;
      for (unsigned first : taken) {
        auto partOf = [&](llvm::Value *vector) {
          return b.CreateShuffleVector(vector, llvm::to_vector(llvm::seq<int>(first, first + part)));
        };
        llvm::Value *at = b.CreateConstGEP1_32(type->getElementType(), pointer, first);
        llvm::Align align = llvm::commonAlignment(call->getParamAlign(isLoad ? 0 : 1).valueOrOne(), first * bytes);
        if (!isLoad) {
          b.CreateMaskedStore(partOf(value), at, align, partOf(mask));
          continue;
        }
        auto *partType = llvm::FixedVectorType::get(type->getElementType(), part);
        llvm::Value *read = b.CreateMaskedLoad(partType, at, align, partOf(mask), partOf(value));
        SmallVector<int> widen(lanes, -1), blend = llvm::to_vector(llvm::seq<int>(0, lanes));
        for (unsigned lane = 0; lane < part; ++lane) {
          widen[first + lane] = lane;
          blend[first + lane] = lanes + first + lane;
        }
        loaded = b.CreateShuffleVector(loaded, b.CreateShuffleVector(read, widen), blend);
      }
      if (isLoad)
        call->replaceAllUsesWith(loaded);
      call->eraseFromParent();
    }
}

/// Comparisons of bf16 become comparisons of f32. LLVM narrows what the generators compare as f32, and where bf16
/// vectors are legal (AVX512-BF16) LLVM 22 cannot select every comparison of them.
void widenComparisons(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      llvm::Type *type = llvm::isa<llvm::FCmpInst>(instruction) ? instruction.getOperand(0)->getType() : nullptr;
      if (!type || !type->getScalarType()->isBFloatTy())
        continue;
      llvm::IRBuilder<> b(&instruction);
      for (llvm::Use &operand : instruction.operands())
        operand.set(b.CreateFPExt(operand, type->getWithNewType(b.getFloatTy())));
    }
}

/// An LLVM module of `operations` and declarations of what they refer to.
std::unique_ptr<llvm::Module> Compilation::translate(ArrayRef<Operation *> operations, llvm::LLVMContext &context) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(variant.getLoc());
  OpBuilder builder(module->getBodyRegion());
  llvm::SmallPtrSet<Operation *, 16> here(operations.begin(), operations.end()), declared;
  auto declare = [&](StringRef name) {
    Operation *op = symbols.lookup(name);
    if (!op || here.contains(op) || !declared.insert(op).second)
      return;
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op)) {
      auto copy = LLVM::LLVMFuncOp::create(builder, function.getLoc(), name, function.getFunctionType());
      copy.setVisibility_(LLVM::Visibility::Hidden);
    } else if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      auto copy = LLVM::GlobalOp::create(builder, global.getLoc(), global.getGlobalType(), global.getConstant(),
                                         LLVM::Linkage::External, name, Attribute(), global.getAlignment().value_or(0));
      copy.setVisibility_(LLVM::Visibility::Hidden);
    }
  };
  for (Operation *op : operations)
    op->walk([&](Operation *inner) {
      if (auto address = dyn_cast<LLVM::AddressOfOp>(inner))
        declare(address.getGlobalName());
      else if (auto call = dyn_cast<LLVM::CallOp>(inner))
        if (std::optional<StringRef> callee = call.getCallee())
          declare(*callee);
    });
  for (Operation *op : operations) {
    Operation *copy = builder.clone(*op);
    if (auto global = dyn_cast<LLVM::GlobalOp>(copy); global && global.getLinkage() == LLVM::Linkage::Internal) {
      // Other parts may refer to it.
      global.setLinkage(LLVM::Linkage::External);
      global.setVisibility_(LLVM::Visibility::Hidden);
    }
  }
  return translateModuleToLLVMIR(*module, context, variant.getSymName());
}

/// Names the variant's functions and globals by their place in the module: the names that they had.
llvm::StringMap<std::string> Compilation::neutralizeNames(llvm::Module &module) {
  llvm::StringMap<std::string> names;
  SmallVector<llvm::GlobalValue *> values;
  for (llvm::GlobalValue &value : module.global_values())
    if (symbols.count(value.getName()))
      values.push_back(&value);
  for (llvm::GlobalValue *value : values) {
    std::string name = "tc." + std::to_string(names.size());
    names[name] = value->getName().str();
    value->setName(name);
  }
  return names;
}

llvm::Expected<std::string> Compilation::generate(llvm::Module &module, llvm::TargetMachine &machine, const Twine &part,
                                                  bool isNeutral, const std::string &problem) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  module.setSourceFileName("tc");
  for (llvm::Function &function : module) {
    if (function.isDeclaration()) {
      function.setDSOLocal(!function.isIntrinsic());
      continue;
    }
    function.addFnAttr("target-cpu", cpu);
    if (!features.empty())
      function.addFnAttr("target-features", features);
    if (wide) {
      // Some AVX-512 CPUs are tuned for 256 bits; kernels were made for 512.
      function.addFnAttr("prefer-vector-width", "512");
      function.addFnAttr("min-legal-vector-width", "512");
    }
    function.addFnAttr("frame-pointer", "none");
    function.addFnAttr("warn-stack-size", std::to_string(kMaxStackBytes));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  std::string base;
  if (!debugDir.empty()) {
    SmallString<128> path(debugDir);
    llvm::sys::path::append(path, variant.getSymName() + "." + part);
    base = path.str().str();
  }
  auto dump = [&](StringRef suffix, auto &&print) {
    std::error_code error;
    llvm::raw_fd_ostream stream((base + suffix).str(), error);
    if (!error)
      print(stream);
  };
  if (!base.empty())
    dump(".ll", [&](raw_ostream &stream) { module.print(stream, nullptr); });

  // Without a cache, too: what is written does not depend on it.
  const llvm::StringMap<std::string> names = isNeutral ? neutralizeNames(module) : llvm::StringMap<std::string>();
  auto withNames = [&](std::string object) -> llvm::Expected<std::string> {
    if (llvm::Error error = names.empty() ? llvm::Error::success() : renameSymbols(object, names))
      return std::move(error);
    return object;
  };
  cache::Key key;
  if (cache) {
    SmallVector<char, 0> bitcode;
    llvm::raw_svector_ostream stream(bitcode);
    llvm::WriteBitcodeToFile(module, stream);
    key = cache::KeyBuilder()
              .add("program", cache::getProgramKey())
              .add("module", StringRef(bitcode.data(), bitcode.size()))
              .add("cpu", StringRef(cpu))
              .add("features", StringRef(features))
              .add("level", uint64_t(machine.getOptLevel()))
              .finish();
    std::optional<cache::Entry> entry = cache->load(cache::Kind::Kernel, key);
    if (log::isEnabled(log::kCacheChannel)) {
      std::string what;
      for (const llvm::Function &function : module)
        if (!function.isDeclaration() && !function.hasLocalLinkage()) {
          auto named = names.find(function.getName());
          what += (what.empty() ? "" : ", ") + (named == names.end() ? function.getName().str() : named->second);
        }
      log::write(log::kCacheChannel, (variant.getSymName() + ", " + what + (entry ? ": found" : ": not there")).str());
    }
    if (entry)
      return withNames(entry->content.str());
  }

  const bool isOptimized = machine.getOptLevel() != llvm::CodeGenOptLevel::None;
  if (isOptimized)
    optimize(module, machine, /*interleaves=*/false);
  storeOneLane(module);
  if (!wide)
    leaveIdleRegisters(module, 256);
  widenComparisons(module);
  if (isOptimized)
    reduceStrength(module, machine);

  if (!base.empty()) {
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    for (const auto &name : names)
      if (llvm::GlobalValue *value = copy->getNamedValue(name.first()))
        value->setName(name.second);
    dump(".opt.ll", [&](raw_ostream &stream) { copy->print(stream, nullptr); });
    dump(".s", [&](llvm::raw_fd_ostream &stream) {
      llvm::Expected<std::string> text = generateCode(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
      if (text)
        stream << *text;
      else
        llvm::consumeError(text.takeError());
    });
  }
  llvm::Expected<std::string> object = generateCode(module, machine, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return object;
  if (cache && problem.empty())
    cache->save(cache::Kind::Kernel, key, StringRef(*object));
  return withNames(std::move(*object));
}

/// Turns what LLVM reports into an error of the part.
struct Diagnostics : public llvm::DiagnosticHandler {
  explicit Diagnostics(std::string &message) : message(message) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    bool tooMuchStack = info.getKind() == llvm::DK_StackSize;
    if ((info.getSeverity() == llvm::DS_Error || tooMuchStack) && message.empty()) {
      llvm::raw_string_ostream stream(message);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }
  std::string &message;
};

llvm::Expected<std::string> Compilation::compileModule(
    const Twine &part, llvm::CodeGenOptLevel level, bool isNeutral,
    llvm::function_ref<llvm::Expected<std::unique_ptr<llvm::Module>>(llvm::LLVMContext &)> make) {
  auto machine = makeTargetMachine(cpu, features, level);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::string message;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>(message));
  auto module = make(context);
  if (!module)
    return module.takeError();
  llvm::Expected<std::string> object = generate(**module, **machine, part, isNeutral, message);
  if (object && !message.empty())
    return llvm::createStringError("variant \"" + variant.getSymName() + "\": " + message);
  return object;
}

llvm::Error Compilation::compilePart(unsigned part) {
  auto make = [&](llvm::LLVMContext &context) -> llvm::Expected<std::unique_ptr<llvm::Module>> {
    if (std::unique_ptr<llvm::Module> module = translate(parts[part].operations, context))
      return module;
    return llvm::createStringError("the code of variant \"" + variant.getSymName() +
                                   "\" cannot be translated to LLVM IR");
  };
  // The program is of its model alone.
  llvm::Expected<std::string> object =
      compileModule(Twine(part), parts[part].isOptimized ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None,
                    /*isNeutral=*/part > 0 && parts[part].isOptimized, make);
  if (!object)
    return object.takeError();
  objects[part] = std::move(*object);
  return llvm::Error::success();
}

/// The functions of the code library that the objects refer to, as one more object. Code generation may itself call a
/// function of the library (a conversion, memcpy), so that this goes on until nothing is missing.
llvm::Error Compilation::addLibrary() {
  const std::string text = getCodeLibrary();
  llvm::StringSet<> wanted;
  bool complete = true;
  auto want = [&](StringRef object) -> llvm::Error {
    llvm::Expected<std::vector<std::string>> names = getUndefinedSymbols(object);
    if (!names)
      return names.takeError();
    for (const std::string &name : *names)
      if (isInCodeLibrary(text, name) && wanted.insert(name).second)
        complete = false;
    return llvm::Error::success();
  };
  for (const std::string &object : objects)
    if (llvm::Error error = want(object))
      return error;
  if (complete)
    return llvm::Error::success();
  auto make = [&](llvm::LLVMContext &context) -> llvm::Expected<std::unique_ptr<llvm::Module>> {
    llvm::SMDiagnostic diagnostic;
    std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
    if (!module)
      return llvm::createStringError("the code library is wrong: line " + Twine(diagnostic.getLineNo()) + ": " +
                                     diagnostic.getMessage());
    for (llvm::Function &function : *module)
      if (!function.isDeclaration() && !wanted.contains(function.getName())) {
        function.setVisibility(llvm::GlobalValue::DefaultVisibility);
        function.setLinkage(llvm::GlobalValue::InternalLinkage);
      }
    return module;
  };
  objects.emplace_back();
  while (!complete) {
    llvm::Expected<std::string> object =
        compileModule("library", llvm::CodeGenOptLevel::Default, /*isNeutral=*/false, make);
    if (!object)
      return object.takeError();
    complete = true;
    if (llvm::Error error = want(*object))
      return error;
    objects.back() = std::move(*object);
  }
  return llvm::Error::success();
}

llvm::Expected<Object> Compilation::finish() {
  if (llvm::Error error = addLibrary())
    return std::move(error);
  llvm::Expected<std::string> elf = linkObjects(objects);
  if (!elf)
    return elf.takeError();
  return Object{std::move(*elf), requires_, {}, {}};
}

class LLVMCPUBackend : public TargetBackend {
public:
  machine::DeviceKind getDevice() const override { return machine::DeviceKind::Cpu; }
  llvm::Expected<std::unique_ptr<VariantCompilation>> begin(host::VariantOp variant,
                                                            const ObjectOptions &options) override {
    auto compilation = std::make_unique<Compilation>(variant, options);
    if (llvm::Error error = compilation->prepare())
      return std::move(error);
    return compilation;
  }
};

} // namespace

void tc::target::registerLLVMCPUBackend() { registerBackend(std::make_unique<LLVMCPUBackend>()); }
