//===- LowerKernels.cpp - scheduled regions to functions ----------------------------------------------------------===//
//
// For each distinct region (printed without locations, with its schedule) and each CPU variant: a function made by the
// region's generator, then lowered to the LLVM dialect with upstream's conversions. In the model's function a
// host.launch takes the region's place.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"
#include "Common/LowerToLLVM.h"
#include "tc/Codegen/Passes.h"
#include "tc/Codegen/Schedules.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Support/Logging.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace tc::codegen {
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "tc/Codegen/Passes.h.inc"

std::optional<CpuVariant> resolveCpuVariant(llvm::StringRef name) {
  if (name == "x86-64-v3")
    return CpuVariant{"x86-64-v3", "x86-64-v3", ""};
  if (name == "x86-64-v4")
    return CpuVariant{"x86-64-v4", "x86-64-v4", ""};
  if (name == "x86-64-v4-vnni")
    return CpuVariant{"x86-64-v4-vnni", "x86-64-v4", "+avx512vnni"};
  if (name == "x86-64-v4-bf16")
    return CpuVariant{"x86-64-v4-bf16", "x86-64-v4", "+avx512vnni,+avx512bf16"};
  if (name == "x86-64-v4-amx") // no CPU has one kind of tiles without the other
    return CpuVariant{"x86-64-v4-amx", "x86-64-v4", "+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16"};
  if (llvm::StringRef chips = name; chips.consume_front("cuda-")) { // cuda-sm_80+sm_90a
    std::string list = chips.str();
    std::replace(list.begin(), list.end(), '+', ',');
    return CpuVariant{"cuda", list, "", "cuda"};
  }
  if (name == "native") {
    CpuVariant variant{"native", llvm::sys::getHostCPUName().str(), ""};
    // Sorted, so that the list is the same on every run.
    llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    llvm::SmallVector<std::string> on;
    for (auto &feature : features)
      on.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(on);
    variant.features = llvm::join(on, ",");
    return variant;
  }
  return std::nullopt;
}

static bool areDefaults(llvm::ArrayRef<std::string> names) {
  return names == llvm::ArrayRef<std::string>{"x86-64-v3", "x86-64-v4"};
}

llvm::SmallVector<std::string> getPossibleVariants(llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<std::string> all(names);
  if (areDefaults(names))
    for (const Generator *generator : allGenerators("cpu"))
      for (llvm::StringRef extra : generator->extraVariants())
        if (!llvm::is_contained(all, extra))
          all.push_back(extra.str());
  return all;
}

CpuInfo cpuInfoOf(const CpuVariant &variant) {
  if (variant.device == "cuda")
    return CpuInfo{/*vectorBits=*/128, /*vectorRegisters=*/32}; // 16 bytes a thread and access
  bool wide = variant.cpu == "x86-64-v4" || llvm::StringRef(variant.features).contains("+avx512f");
  CpuInfo info;
  info.vectorBits = wide ? 512 : 256;
  info.vectorRegisters = wide ? 32 : 16;
  auto has = [&](llvm::StringRef feature) { return wide && llvm::StringRef(variant.features).contains(feature); };
  info.hasVnni = has("+avx512vnni");
  info.hasBf16 = has("+avx512bf16");
  info.hasAmxInt8 = info.hasVnni && has("+amx-int8");
  info.hasAmxBf16 = info.hasBf16 && has("+amx-bf16");
  return info;
}

namespace {
using namespace mlir;

/// The symbols that sizes anywhere in the region and its launches mention, in increasing order.
SmallVector<int64_t> symbolsOf(kernel::RegionOp region, ArrayRef<Launch> launches) {
  SmallVector<int64_t> symbols = getSymbols(region);
  auto addExpr = [&](AffineExpr expr) {
    if (expr)
      expr.walk([&](AffineExpr e) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
          symbols.push_back(symbol.getPosition());
      });
  };
  for (const Launch &launch : launches) {
    addExpr(launch.tasks);
    addExpr(launch.grain);
    addExpr(launch.steps);
    addExpr(launch.scratch);
    for (RankedTensorType type : launch.temporaries)
      for (AffineExpr expr : prim::getSizes(type))
        addExpr(expr);
  }
  llvm::sort(symbols);
  symbols.erase(llvm::unique(symbols), symbols.end());
  return symbols;
}

struct LowerKernelsPass : public impl::LowerKernelsPassBase<LowerKernelsPass> {
  using LowerKernelsPassBase::LowerKernelsPassBase;

  struct Kernel {
    std::string name;
    kernel::RegionOp region;
    const Generator *generator;
    SmallVector<Launch> launches;
    SmallVector<int64_t> symbols;
    SmallVector<PackedInput> layouts; // inputs that are read from another region's packed form
  };

  /// Constants from this size on are stored in one layout only.
  static constexpr int64_t kSharedBytes = 64 * 1024;

  /// Inputs of `region` that another region has packed, so that its kernel reads that form.
  static SmallVector<PackedInput> sharedLayouts(kernel::RegionOp region, const Generator *generator,
                                                const DenseMap<Value, PackedInput> &packed) {
    SmallVector<PackedInput> layouts;
    if (generator->strategy() != kernel::CpuLoopsAttr::strategy)
      return layouts;
    for (auto [i, input] : llvm::enumerate(region.getInputs()))
      if (auto found = packed.find(input); found != packed.end())
        layouts.push_back({unsigned(i), found->second.map, found->second.type});
    return layouts;
  }

  /// A short readable name: the ops, without movement.
  static std::string describe(kernel::RegionOp region) {
    std::string text;
    unsigned count = 0;
    for (Operation &op : region.getBody().front().without_terminator()) {
      if (prim::isMovedBy(&op, prim::Addressing::Part))
        continue;
      if (++count > 4)
        return text + "_more";
      text += ("_" + op.getName().stripDialect()).str();
    }
    return text.empty() ? "_move" : text;
  }

  static std::string keyOf(kernel::RegionOp region) {
    std::string key;
    llvm::raw_string_ostream(key) << region.getScheduleAttr() << '\n';
    return key + printRegion(region);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    llvm::StringMap<unsigned> known;
    std::vector<Kernel> kernels;
    SmallVector<kernel::RegionOp> regions;
    module.walk([&](kernel::RegionOp region) { regions.push_back(region); });
    SmallVector<kernel::RegionOp> done;
    DenseMap<Value, PackedInput> packed;
    const std::optional<CpuVariant> first = variants.empty() ? std::nullopt : resolveCpuVariant(variants.front());
    auto generatorOf = [&](kernel::ScheduleAttr schedule) {
      return schedule ? lookupGenerator(schedule, first ? first->device : "cpu") : nullptr;
    };
    for (kernel::RegionOp region : regions) {
      auto schedule = region.getScheduleAttr();
      const Generator *generator = generatorOf(schedule);
      if (!generator)
        continue;
      for (const PackedInput &input : generator->packing(region, schedule)) {
        Value constant = region.getInputs()[input.input];
        auto type = cast<RankedTensorType>(constant.getType());
        if (constant.getDefiningOp<prim::ConstantOp>() && !input.transform && isReadableLayout(input.map) &&
            type.hasStaticShape() && type.getNumElements() * type.getElementTypeBitWidth() / 8 >= kSharedBytes)
          packed.try_emplace(constant, input);
      }
    }
    for (kernel::RegionOp region : regions) {
      auto schedule = region.getScheduleAttr();
      const Generator *generator = generatorOf(schedule);
      if (!generator) {
        region.emitError("region has no schedule that a code generator of this device knows");
        return signalPassFailure();
      }
      SmallVector<PackedInput> layouts = sharedLayouts(region, generator, packed);
      std::string key = keyOf(region);
      for (const PackedInput &layout : layouts) {
        llvm::raw_string_ostream os(key);
        os << layout.input << ' ' << layout.map << ' ' << layout.type << '\n';
      }
      auto [entry, isNew] = known.try_emplace(key, kernels.size());
      if (isNew) {
        Kernel kernel;
        kernel.name = "k" + std::to_string(kernels.size()) + describe(region);
        kernel.region = region;
        kernel.generator = generator;
        kernel.launches = generator->launches(region, schedule);
        kernel.symbols = symbolsOf(region, kernel.launches);
        kernel.layouts = layouts;
        kernels.push_back(std::move(kernel));
      }
      if (log::isEnabled("kernel"))
        log::write("kernel", kernels[entry->second].name + (isNew ? " computes " : " is shared by ") +
                                 llvm::join(host::getNodeNames(region.getLoc()), "+"));
      replaceByLaunches(region, kernels[entry->second]);
      done.push_back(region);
    }

    SmallVector<std::string> names(variants.begin(), variants.end());
    if (names.empty())
      names = {"x86-64-v3", "x86-64-v4"};
    if (areDefaults(names)) // then those too that a kernel gains from
      for (const Kernel &kernel : kernels)
        for (StringRef extra : kernel.generator->extraVariants())
          if (!llvm::is_contained(names, extra))
            names.push_back(extra.str());
    SmallVector<CpuVariant> cpus;
    for (const std::string &name : names) {
      auto variant = resolveCpuVariant(name);
      if (!variant) {
        module.emitError()
            << "unknown CPU variant '" << name
            << "'; known are x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-amx and native";
        return signalPassFailure();
      }
      cpus.push_back(*variant);
    }

    OpBuilder builder(context);
    builder.setInsertionPointToEnd(module.getBody());
    for (const CpuVariant &cpu : cpus) {
      auto variant = host::VariantOp::create(builder, module.getLoc(), cpu.name, cpu.device, cpu.cpu, cpu.features);
      OpBuilder::InsertionGuard guard(builder);
      builder.createBlock(&variant.getBody());
      for (Kernel &kernel : kernels)
        for (unsigned i = 0; i < kernel.launches.size(); ++i)
          if (failed(emitKernel(builder, variant, kernel, i, cpuInfoOf(cpu))))
            return signalPassFailure();
      if (failed(lowerToLLVM(variant, cpuInfoOf(cpu).vectorBits == 512)))
        return signalPassFailure();
    }
    for (kernel::RegionOp region : done)
      region.erase();
    // Constants that only fed packed inputs are dead now.
    module.walk([](prim::ConstantOp op) {
      if (op->use_empty())
        op->erase();
    });
  }

  /// The launch's device attribute with its grid: as many blocks along x as there are tasks.
  static DictionaryAttr deviceWithGrid(const Launch &launch) {
    if (!launch.device)
      return {};
    MLIRContext *context = launch.device.getContext();
    AffineExpr one = getAffineConstantExpr(1, context);
    NamedAttrList attributes(launch.device);
    attributes.set("grid", AffineMapAttr::get(prim::makeSizeMap(context, {launch.tasks, one, one})));
    return attributes.getDictionary(context);
  }

  void replaceByLaunches(kernel::RegionOp region, Kernel &kernel) {
    OpBuilder builder(region);
    MLIRContext *context = &getContext();
    SmallVector<Value> inputs;
    llvm::SmallDenseMap<unsigned, PackedInput> packed;
    for (PackedInput &input : kernel.generator->packing(region, region.getScheduleAttr()))
      packed[input.input] = input;
    for (PackedInput &input : kernel.layouts)
      packed[input.input] = input;
    for (auto [i, input] : llvm::enumerate(region.getInputs())) {
      if (auto constant = input.getDefiningOp<prim::ConstantOp>()) {
        auto found = packed.find(i);
        AffineMapAttr map = found == packed.end() ? AffineMapAttr() : AffineMapAttr::get(found->second.map);
        Type type = found == packed.end() ? input.getType() : Type(found->second.type);
        DenseElementsAttr transform;
        if (found != packed.end())
          transform = found->second.transform;
        inputs.push_back(
            host::ConstantOp::create(builder, constant.getLoc(), type, constant.getValue(), map, transform));
      } else {
        inputs.push_back(input);
      }
    }
    auto mapOf = [&](AffineExpr expr) { return AffineMapAttr::get(prim::makeSizeMap(context, {expr})); };
    const auto *worker = llvm::find_if(kernel.launches, [](const Launch &launch) { return launch.doesWork; });
    const size_t working =
        worker == kernel.launches.end() ? kernel.launches.size() - 1 : size_t(worker - kernel.launches.begin());
    for (auto [i, launch] : llvm::enumerate(kernel.launches)) {
      bool last = i + 1 == kernel.launches.size();
      SmallVector<Type> outputs;
      if (last)
        outputs = llvm::to_vector(region.getResultTypes());
      outputs.append(launch.temporaries.begin(), launch.temporaries.end());
      auto op = host::LaunchOp::create(
          builder, region.getLoc(), outputs, FlatSymbolRefAttr::get(context, kernel.name + launch.suffix), inputs,
          builder.getDenseI64ArrayAttr(kernel.symbols), mapOf(launch.tasks), mapOf(launch.grain),
          launch.steps ? mapOf(launch.steps) : AffineMapAttr(),
          launch.scratch ? mapOf(launch.scratch) : AffineMapAttr(),
          launch.inPlace.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(launch.inPlace),
          deviceWithGrid(launch), i == working ? region.getCostAttr() : base::CostAttr(), /*group=*/IntegerAttr());
      if (auto nodes = region->getAttr("nodes"))
        op->setAttr("nodes", nodes);
      if (last)
        region.replaceAllUsesWith(op.getOutputs().take_front(region.getNumResults()));
      else
        llvm::append_range(inputs, op.getOutputs());
    }
  }

  LogicalResult emitKernel(OpBuilder &builder, host::VariantOp variant, Kernel &kernel, unsigned number,
                           const CpuInfo &info) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&variant.getBody().front());
    MLIRContext *context = &getContext();
    Launch &launch = kernel.launches[number];
    Location loc = kernel.region.getLoc();
    unsigned inputs = kernel.region.getInputs().size(), outputs = 0;
    for (unsigned i = 0; i < number; ++i)
      inputs += kernel.launches[i].temporaries.size();
    bool last = number + 1 == kernel.launches.size();
    outputs = launch.temporaries.size() + (last ? kernel.region.getOutputs().size() : 0);
    unsigned words = inputs + outputs + (launch.scratch ? 1 : 0) + kernel.symbols.size();
    bool isDevice = bool(launch.device);

    auto pointer = LLVM::LLVMPointerType::get(context);
    Type i64 = builder.getI64Type();
    SmallVector<Type> parameters{pointer, i64, i64, i64};
    if (isDevice)
      parameters.resize(1);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), parameters);
    auto function = LLVM::LLVMFuncOp::create(builder, loc, kernel.name + launch.suffix, type);
    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToStart(entry);
    Value begin, end;
    if (isDevice) {
      // The argument words are the kernel's only parameter, by value; a block does the task of its number.
      int32_t threads = launch.device.getAs<DenseI64ArrayAttr>("block")[0];
      function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
      function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(), builder.getDenseI32ArrayAttr({threads}));
      function.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                          TypeAttr::get(LLVM::LLVMArrayType::get(i64, std::max(1u, words))));
      function.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(8));
      function.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(), builder.getUnitAttr());
      Value block = NVVM::BlockIdXOp::create(builder, loc, builder.getI32Type());
      begin = LLVM::ZExtOp::create(builder, loc, i64, block);
      end = LLVM::AddOp::create(builder, loc, begin, LLVM::ConstantOp::create(builder, loc, i64, 1));
    } else {
      begin = entry->getArgument(1);
      end = entry->getArgument(2);
    }
    {
      Emitter emitter(kernel.region, info, builder, loc, entry->getArgument(0), inputs, outputs, kernel.symbols,
                      bool(launch.scratch));
      for (const PackedInput &layout : kernel.layouts)
        emitter.setLayout(layout.input, layout.map, layout.type);
      if (launch.scratch)
        emitter.setWorker(entry->getArgument(3), launch.scratch);
      kernel.generator->emit(kernel.region, kernel.region.getScheduleAttr(), number, emitter, begin, end);
      if (emitter.error)
        return base::emitError(kernel.region.getLoc(),
                               emitter.isUnsupported ? base::ErrorKind::Unsupported : base::ErrorKind::Internal)
               << *emitter.error;
    }
    LLVM::ReturnOp::create(builder, loc, ValueRange{});
    return success();
  }
};
} // namespace
} // namespace tc::codegen
