//===- NVPTX.cpp - GPU variants: PTX and cubin beside a host program ----------------------------------------------===//
//
// A cuda variant holds the program that launches kernels, and a module of kernels (llvm.func with nvvm.kernel) for each
// chip. The program goes through the CPU backend, for the oldest CPU that tc supports; a chip's kernels become one LLVM
// module, PTX, and with ptxas a cubin. The oldest chip's PTX stays in the artifact as a floor: the driver compiles it
// for GPUs that no cubin is for.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/TemporaryPath.h"
#include "tc/Target/Optimize.h"
#include "tc/Target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace tc;
using namespace tc::target;

namespace {

/// The PTX version that has all instructions which kernels use: tensor maps are written with strides in bytes from
/// CUDA 12.5 on. What drivers compile themselves stays old. LLVM knows the first version that has a newer chip.
StringRef ptxFeature(machine::GpuAttr gpu) {
  if (gpu.hasMma(machine::MmaKind::WarpGroup))
    return "+ptx85";
  constexpr unsigned kFirstNewer = 1000; // sm_100
  return gpu.getArch() < kFirstNewer ? "+ptx80" : "";
}

const llvm::Triple &getTriple() {
  static const llvm::Triple triple("nvptx64-nvidia-cuda");
  return triple;
}

llvm::Expected<const llvm::Target *> lookupTarget() {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  std::string error;
  if (const llvm::Target *target = llvm::TargetRegistry::lookupTarget(getTriple(), error))
    return target;
  return llvm::createStringError("LLVM has no NVPTX code generator: " + error);
}

/// ptxas: $CUDA_PATH/bin, $CUDA_HOME/bin, $PATH, the toolkit's usual place, then where setup.sh has put one.
llvm::ErrorOr<std::string> findPtxas() {
  SmallVector<std::string> folders;
  for (const char *variable : {"CUDA_PATH", "CUDA_HOME"})
    if (std::optional<std::string> value = llvm::sys::Process::GetEnv(variable))
      folders.push_back(*value + "/bin");
  SmallVector<StringRef> paths(folders.begin(), folders.end());
  if (auto found = llvm::sys::findProgramByName("ptxas", paths))
    return found;
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return found;
  return llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin", TC_SETUP_BIN});
}

/// Folders of CUDA toolkits: that of ptxas, which may be a link or a script elsewhere, and where findPtxas looks.
std::vector<std::string> findToolkits() {
  std::vector<std::string> toolkits;
  auto addParentOf = [&](const std::string &program) {
    SmallString<128> path;
    if (!llvm::sys::fs::real_path(program, path))
      toolkits.push_back(llvm::sys::path::parent_path(llvm::sys::path::parent_path(path)).str());
  };
  if (llvm::ErrorOr<std::string> ptxas = findPtxas())
    addParentOf(*ptxas);
  for (const char *variable : {"CUDA_PATH", "CUDA_HOME"})
    if (std::optional<std::string> value = llvm::sys::Process::GetEnv(variable))
      toolkits.push_back(*value);
  toolkits.push_back("/usr/local/cuda");
  addParentOf(TC_SETUP_BIN "/ptxas");
  return toolkits;
}

/// Where libdevice may lie.
std::vector<std::string> findLibraries() {
  std::vector<std::string> paths;
  for (const std::string &toolkit : findToolkits()) {
    SmallString<128> path(toolkit);
    llvm::sys::path::append(path, "nvvm", "libdevice", "libdevice.10.bc");
    paths.push_back(path.str().str());
  }
  return paths;
}

/// Defines the functions of one lane that kernels call (tc_<function>_f64 and _f32: Codegen/Common/ExpandFunctions.cpp)
/// by those of libdevice, which lies in the toolkit of ptxas.
llvm::Error linkFunctions(llvm::Module &kernels) {
  bool calls = false;
  for (llvm::Function &function : llvm::make_early_inc_range(kernels.functions())) {
    StringRef name = function.getName();
    if (!function.isDeclaration() || !name.consume_front("tc_"))
      continue;
    const bool isF32 = name.consume_back("_f32");
    if (!isF32 && !name.consume_back("_f64"))
      continue;
    function.setName("__nv_" + name + (isF32 ? "f" : ""));
    calls = true;
  }
  if (!calls)
    return llvm::Error::success();
  std::unique_ptr<llvm::Module> library;
  for (const std::string &path : findLibraries()) {
    llvm::SMDiagnostic diagnostic;
    if ((library = llvm::parseIRFile(path, diagnostic, kernels.getContext())))
      break;
  }
  if (!library)
    return llvm::createStringError(
        std::make_error_code(std::errc::no_such_file_or_directory),
        "nvvm/libdevice/libdevice.10.bc was not found in a CUDA toolkit; functions of float64 on GPUs need it: set "
        "CUDA_PATH to a whole toolkit, or run scripts/setup.sh");
  library->setTargetTriple(kernels.getTargetTriple());
  library->setDataLayout(kernels.getDataLayout());
  if (llvm::Linker::linkModules(kernels, std::move(library), llvm::Linker::LinkOnlyNeeded))
    return llvm::createStringError("libdevice.10.bc cannot be linked to the kernels");
  for (llvm::Function &function : kernels.functions())
    if (!function.isDeclaration() && function.getName().starts_with("__"))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  return llvm::Error::success();
}

/// Of what `ptxas -v` says of a module's kernels, the most bytes that one of them keeps in memory for want of
/// registers.
unsigned findSpills(StringRef log) {
  unsigned most = 0;
  const StringRef what = " bytes spill stores";
  for (size_t at = log.find(what); at != StringRef::npos; at = log.find(what, at + 1)) {
    StringRef number = log.take_front(at);
    number = number.substr(number.find_last_not_of("0123456789") + 1);
    unsigned bytes = 0;
    if (!number.getAsInteger(10, bytes))
      most = std::max(most, bytes);
  }
  return most;
}

llvm::Expected<std::string> assemble(StringRef ptx, StringRef chip, bool refusesSpills) {
  llvm::ErrorOr<std::string> ptxas = findPtxas();
  if (!ptxas)
    return llvm::createStringError(std::make_error_code(std::errc::no_such_file_or_directory),
                                   "ptxas was not found; building GPU artifacts needs the CUDA toolkit: set CUDA_PATH "
                                   "to it, or run scripts/setup.sh");
  SmallString<128> source, cubin, log;
  auto create = [](StringRef suffix, SmallString<128> &path) {
    return llvm::sys::fs::createTemporaryFile("tc", suffix, path);
  };
  std::error_code failed = create("ptx", source);
  failed = failed ? failed : create("cubin", cubin);
  failed = failed ? failed : create("log", log);
  if (failed)
    return llvm::createStringError(failed, "cannot make a temporary file for ptxas: " + failed.message());
  llvm::FileRemover removeSource(source), removeCubin(cubin), removeLog(log);
  const TemporaryPath named(source.str().str()), namedCubin(cubin.str().str()), namedLog(log.str().str());
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(source, error);
    if (!error) {
      stream << ptx;
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
    if (error)
      return llvm::createStringError(error, "cannot write a temporary file for ptxas: " + error.message());
  }
  std::string arch = ("-arch=" + chip).str();
  std::optional<StringRef> redirects[] = {StringRef(), log.str(), log.str()};
  SmallVector<StringRef> command = {*ptxas, arch, "-O3", source, "-o", cubin};
  if (refusesSpills)
    command.push_back("-v");
  int status = llvm::sys::ExecuteAndWait(*ptxas, command, std::nullopt, redirects);
  if (status != 0) {
    auto text = llvm::MemoryBuffer::getFile(log);
    StringRef first = text ? (*text)->getBuffer().split('\n').first : StringRef("no message");
    return llvm::createStringError("ptxas refused a kernel for " + chip + ": " + first);
  }
  if (refusesSpills)
    if (auto text = llvm::MemoryBuffer::getFile(log))
      if (unsigned bytes = findSpills((*text)->getBuffer()))
        return llvm::createStringError("a kernel for " + chip + " keeps " + llvm::Twine(bytes) +
                                       " bytes of a thread in memory, as they do not fit the registers");
  auto bytes = llvm::MemoryBuffer::getFile(cubin, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return llvm::createStringError("ptxas wrote no cubin");
  return (*bytes)->getBuffer().str();
}

class Compilation : public VariantCompilation {
public:
  llvm::Error prepare(host::VariantOp variant, const ObjectOptions &options);
  unsigned getPartCount() const override { return program->getPartCount() + chips.size(); }
  llvm::Error compilePart(unsigned part) override {
    const unsigned first = program->getPartCount();
    return part < first ? program->compilePart(part) : compileKernels(chips[part - first]);
  }
  PartSize getPartSize(unsigned part) const override {
    const unsigned first = program->getPartCount();
    return part < first ? program->getPartSize(part) : sizes[part - first];
  }
  llvm::Expected<Object> finish() override;

private:
  llvm::Error compileKernels(ModuleOp chip);

  host::VariantOp variant;
  OwningOpRef<ModuleOp> holder; // the program without the kernels
  std::unique_ptr<VariantCompilation> program;
  bool refusesSpills = false;
  SmallVector<ModuleOp> chips;
  SmallVector<PartSize> sizes; // of their kernels
  /// The oldest GPU that the PTX runs on.
  machine::GpuAttr floor;
  std::mutex mutex; // parts are compiled by several threads
  std::string ptx;
  std::vector<DeviceObject> cubins;
};

machine::GpuAttr gpuOf(ModuleOp chip) { return chip->getAttrOfType<machine::GpuAttr>(host::kMachineAttr); }

llvm::Error Compilation::prepare(host::VariantOp cuda, const ObjectOptions &options) {
  variant = cuda;
  refusesSpills = options.refusesSpills;
  floor = machine::getOldestGpu(variant.getContext());
  TargetBackend *cpu = lookupBackend(machine::DeviceKind::Cpu);
  if (!cpu)
    return llvm::createStringError("GPU variants need the CPU backend for their host program");
  holder = ModuleOp::create(variant.getLoc());
  OpBuilder builder(holder->getBodyRegion());
  auto copy = cast<host::VariantOp>(builder.clone(*variant));
  for (ModuleOp chip : llvm::make_early_inc_range(copy.getBody().getOps<ModuleOp>()))
    chip.erase();
  for (ModuleOp chip : variant.getBody().getOps<ModuleOp>()) {
    if (chip.getBody()->getOps<LLVM::LLVMFuncOp>().empty())
      continue;
    PartSize size{0, 0};
    chip.walk([&](Operation *) { size.work += 2; }); // by LLVM and by ptxas
    // Chips share kernels.
    if (chips.empty())
      size.kernels = llvm::range_size(chip.getBody()->getOps<LLVM::LLVMFuncOp>());
    chips.push_back(chip);
    sizes.push_back(size);
  }
  copy.setMachinesAttr(builder.getArrayAttr(machine::getLauncherCpu(builder.getContext())));
  auto begun = cpu->begin(copy, options);
  if (!begun)
    return begun.takeError();
  program = std::move(*begun);
  return llvm::Error::success();
}

llvm::Error Compilation::compileKernels(ModuleOp chip) {
  const machine::GpuAttr gpu = gpuOf(chip);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(chip, context, variant.getSymName());
  if (!llvmModule)
    return llvm::createStringError("the kernels of variant \"" + variant.getSymName() +
                                   "\" cannot be translated to LLVM IR");
  llvm::Expected<const llvm::Target *> target = lookupTarget();
  if (!target)
    return target.takeError();
  std::unique_ptr<llvm::TargetMachine> machine((*target)->createTargetMachine(
      getTriple(), gpu.getName(), ptxFeature(gpu), {}, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("LLVM cannot generate PTX");
  llvmModule->setTargetTriple(getTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  if (llvm::Error failed = linkFunctions(*llvmModule))
    return failed;
  optimize(*llvmModule, *machine, /*interleaves=*/true);
  llvm::Expected<std::string> text = generateCode(*llvmModule, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (!text)
    return text.takeError();
  if (llvm::is_contained(variant.getMachines(), gpu)) {
    llvm::Expected<std::string> assembled = assemble(*text, gpu.getName(), refusesSpills);
    if (!assembled)
      return assembled.takeError();
    const std::lock_guard lock(mutex);
    cubins.push_back({gpu.getArch(), std::move(*assembled)});
  }
  const std::lock_guard lock(mutex);
  if (gpu == floor)
    ptx = std::move(*text);
  return llvm::Error::success();
}

llvm::Expected<Object> Compilation::finish() {
  llvm::Expected<Object> object = program->finish();
  if (!object)
    return object;
  llvm::sort(cubins, [](const DeviceObject &a, const DeviceObject &b) { return a.arch < b.arch; });
  object->cubins = std::move(cubins);
  if (!ptx.empty())
    object->ptx.push_back({floor.getArch(), std::move(ptx)});
  return object;
}

class NVPTXBackend : public TargetBackend {
public:
  machine::DeviceKind getDevice() const override { return machine::DeviceKind::Cuda; }
  std::string describeTools() const override {
    std::string text;
    llvm::ErrorOr<std::string> ptxas = findPtxas();
    std::vector<std::string> paths = findLibraries();
    paths.insert(paths.begin(), ptxas ? *ptxas : "");
    for (const std::string &path : paths) {
      llvm::sys::fs::file_status status;
      if (!llvm::sys::fs::status(path, status))
        text += llvm::formatv("{0} {1} {2}\n", path, status.getSize(),
                              status.getLastModificationTime().time_since_epoch().count());
    }
    return text;
  }
  llvm::Error checkMachine(machine::MachineAttr machine) const override {
    llvm::Expected<const llvm::Target *> target = lookupTarget();
    if (!target)
      return target.takeError();
    const StringRef name = cast<machine::GpuAttr>(machine).getName();
    // Of a chip that it does not know, a subtarget would print a warning.
    std::unique_ptr<llvm::MCSubtargetInfo> known((*target)->createMCSubtargetInfo(getTriple(), "", ""));
    if (known && known->isCPUStringValid(name))
      return llvm::Error::success();
    return llvm::createStringError(name + " is not known to LLVM " LLVM_VERSION_STRING "'s code generator");
  }
  llvm::Expected<std::unique_ptr<VariantCompilation>> begin(host::VariantOp variant,
                                                            const ObjectOptions &options) override {
    auto compilation = std::make_unique<Compilation>();
    if (llvm::Error error = compilation->prepare(variant, options))
      return std::move(error);
    return compilation;
  }
};

} // namespace

void tc::target::registerNVPTXBackend() { registerBackend(std::make_unique<NVPTXBackend>()); }
