//===- CompileVariants.cpp - host.variant to host.binary on several threads ---------------------------------------===//
//
// The parts of all variants form one list that the threads work off. Which thread compiles a part has no influence on
// its bytes, and results are put together in the order of the list.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Support/Progress.h"
#include "tc/Support/Threads.h"
#include "tc/Target/Passes.h"
#include "tc/Target/Target.h"
#include "tcrt/artifact_abi.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Threading.h"
#include <atomic>
#include <mutex>

namespace tc::target {
#define GEN_PASS_DEF_COMPILEVARIANTSPASS
#define GEN_PASS_DEF_VERIFYOBJECTPASS
#include "tc/Target/Passes.h.inc"
} // namespace tc::target

using namespace mlir;
using namespace tc;
using namespace tc::target;

llvm::Error tc::target::compileVariants(ModuleOp module, const ObjectOptions &options) {
  struct Part {
    VariantCompilation *compilation;
    unsigned number;
  };
  SmallVector<host::VariantOp> variants = llvm::to_vector(module.getOps<host::VariantOp>());
  std::vector<std::unique_ptr<VariantCompilation>> compilations;
  std::vector<Part> parts;
  for (host::VariantOp variant : variants) {
    TargetBackend *backend = lookupBackend(variant.getDevice());
    if (!backend)
      return llvm::createStringError("this tc-compile has no code generator for device \"" +
                                     machine::stringifyDeviceKind(variant.getDevice()) + "\"");
    llvm::Expected<std::unique_ptr<VariantCompilation>> compilation = backend->begin(variant, options);
    if (!compilation)
      return compilation.takeError();
    for (unsigned i = 0; i < (*compilation)->getPartCount(); ++i)
      parts.push_back({compilation->get(), i});
    compilations.push_back(std::move(*compilation));
  }

  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t firstFailed = parts.size();
  llvm::Error firstError = llvm::Error::success();
  VariantCompilation::PartSize total{0, 0};
  for (const Part &part : parts) {
    const VariantCompilation::PartSize size = part.compilation->getPartSize(part.number);
    total.work += size.work;
    total.kernels += size.kernels;
  }
  progress::setWork(total.work, total.kernels);
  auto work = [&] {
    for (size_t i = next++; i < parts.size(); i = next++) {
      if (llvm::Error error = parts[i].compilation->compilePart(parts[i].number)) {
        std::lock_guard<std::mutex> lock(mutex);
        if (i < firstFailed) {
          firstFailed = i;
          std::swap(firstError, error);
        }
        llvm::consumeError(std::move(error));
      }
      const VariantCompilation::PartSize size = parts[i].compilation->getPartSize(parts[i].number);
      progress::advance(size.work, size.kernels);
    }
  };
  unsigned jobs = options.jobs ? options.jobs : llvm::hardware_concurrency().compute_thread_count();
  jobs = std::max<size_t>(1, std::min<size_t>(jobs, parts.size()));
  runOnThreads(jobs, [&](unsigned) { work(); });
  if (firstError)
    return firstError;

  OpBuilder builder(module.getContext());
  for (auto [variant, compilation] : llvm::zip_equal(variants, compilations)) {
    llvm::Expected<Object> object = compilation->finish();
    if (!object)
      return object.takeError();
    builder.setInsertionPoint(variant);
    auto resource = [&](StringRef bytes, const Twine &name) {
      auto type = RankedTensorType::get({int64_t(bytes.size())}, builder.getI8Type());
      AsmResourceBlob blob =
          HeapAsmResourceBlob::allocateAndCopyWithAlign(ArrayRef<char>(bytes.data(), bytes.size()), /*align=*/64);
      return cast<ElementsAttr>(Attribute(DenseI8ResourceElementsAttr::get(type, name.str(), std::move(blob))));
    };
    auto binary = host::BinaryOp::create(builder, variant.getLoc(), variant.getSymName(), variant.getMachines(),
                                         object->requires_, resource(object->elf, "elf_" + variant.getSymName()));
    SmallVector<Attribute> deviceCode;
    for (auto [kind, list] :
         {std::make_pair(TCRT_SECTION_CUBIN, &object->cubins), std::make_pair(TCRT_SECTION_PTX, &object->ptx)})
      for (const DeviceObject &code : *list)
        deviceCode.push_back(builder.getDictionaryAttr(
            {builder.getNamedAttr("kind", builder.getI64IntegerAttr(kind)),
             builder.getNamedAttr("arch", builder.getI64IntegerAttr(code.arch)),
             builder.getNamedAttr("object", resource(code.bytes, "code" + Twine(kind) + "_" + Twine(code.arch) + "_" +
                                                                     variant.getSymName()))}));
    if (!deviceCode.empty())
      binary->setAttr(host::kDeviceCodeAttr, builder.getArrayAttr(deviceCode));
    compilation.reset();
    variant.erase();
  }
  return llvm::Error::success();
}

namespace {

struct CompileVariants : public tc::target::impl::CompileVariantsPassBase<CompileVariants> {
  using CompileVariantsPassBase::CompileVariantsPassBase;
  CompileVariants(const CompileVariantsPassOptions &options, cache::Store *cache)
      : CompileVariantsPassBase(options), cache(cache) {}
  void runOnOperation() override {
    if (!debugDir.empty() && !llvm::sys::fs::is_directory(debugDir)) {
      base::emitError(UnknownLoc::get(&getContext()), base::ErrorKind::Environment) << debugDir << " is no folder";
      return signalPassFailure();
    }
    ObjectOptions options;
    options.jobs = jobs;
    options.debugDir = debugDir;
    options.refusesSpills = refusesSpills;
    options.cache = debugDir.empty() ? cache : nullptr;
    llvm::Error failed =
        llvm::handleErrors(compileVariants(getOperation(), options), [&](const llvm::ErrorInfoBase &error) {
          bool ofSystem = error.convertToErrorCode().category() == std::generic_category();
          // No node is to blame.
          base::emitError(UnknownLoc::get(&getContext()),
                          ofSystem ? base::ErrorKind::Environment : base::ErrorKind::Internal)
              << error.message();
          signalPassFailure();
        });
    llvm::consumeError(std::move(failed));
  }
  cache::Store *cache = nullptr;
};

struct VerifyObject : public tc::target::impl::VerifyObjectPassBase<VerifyObject> {
  void runOnOperation() override {
    bool found = false;
    for (Operation &op : *getOperation().getBody()) {
      if (isa<host::VariantOp>(op)) {
        op.emitError() << "a variant is left after phase object";
        return signalPassFailure();
      }
      auto binary = dyn_cast<host::BinaryOp>(op);
      if (!binary)
        continue;
      found = true;
      auto bytes = dyn_cast<DenseI8ResourceElementsAttr>(binary.getObject());
      std::optional<ArrayRef<int8_t>> data = bytes ? bytes.tryGetAsArrayRef() : std::nullopt;
      if (!data) {
        binary.emitError() << "the object's bytes are missing";
        return signalPassFailure();
      }
      if (llvm::Error error = verifyObject(StringRef(reinterpret_cast<const char *>(data->data()), data->size()))) {
        binary.emitError() << llvm::toString(std::move(error));
        return signalPassFailure();
      }
    }
    if (!found) {
      getOperation().emitError() << "the module holds no object code";
      signalPassFailure();
    }
  }
};

} // namespace

std::unique_ptr<Pass> tc::target::createCompileVariantsPass(const CompileVariantsPassOptions &options,
                                                            cache::Store *cache) {
  return std::make_unique<CompileVariants>(options, cache);
}
