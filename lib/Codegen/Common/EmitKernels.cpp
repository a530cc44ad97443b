//===- EmitKernels.cpp - scheduled regions to functions -----------------------------------------------------------===//
//
// For each distinct region (printed without locations, with its schedule, whatever its symbols' numbers) and each
// variant: a function made by the region's generator. In the model's function a host.launch takes the region's place.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"
#include "tc/Analysis/RegionText.h"
#include "tc/Codegen/Passes.h"
#include "tc/Codegen/Schedules.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Support/Logging.h"
#include "tc/Transforms/UnfusedCost.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace tc::codegen {
#define GEN_PASS_DEF_EMITKERNELSPASS
#include "tc/Codegen/Passes.h.inc"

void addVariants(const Generator &generator, llvm::SmallVectorImpl<machine::CpuAttr> &cpus) {
  for (machine::CpuUnits units : generator.gainsFrom())
    if (machine::CpuAttr cpu = machine::getFirstCpuWith(cpus.front().getContext(), units);
        !llvm::is_contained(cpus, cpu))
      cpus.push_back(cpu);
}

static bool areDefaults(llvm::ArrayRef<machine::CpuAttr> cpus) {
  return !cpus.empty() && cpus == llvm::ArrayRef(machine::getDefaultCpus(cpus.front().getContext()));
}

llvm::SmallVector<machine::CpuAttr> getPossibleVariants(llvm::ArrayRef<machine::CpuAttr> cpus) {
  llvm::SmallVector<machine::CpuAttr> all(cpus);
  if (areDefaults(cpus))
    for (const Generator *generator : allGenerators(machine::TargetKind::Cpu))
      addVariants(*generator, all);
  return all;
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

/// All schedules of a region, that for all else last.
SmallVector<kernel::ScheduleAttr> schedulesOf(kernel::RegionOp region) {
  SmallVector<kernel::ScheduleAttr> schedules;
  if (ArrayAttr cases = region.getCasesAttr())
    for (auto other : cases.getAsRange<kernel::CaseAttr>())
      schedules.push_back(other.getSchedule());
  if (region.getScheduleAttr())
    schedules.push_back(region.getScheduleAttr());
  return schedules;
}

struct EmitKernelsPass : public impl::EmitKernelsPassBase<EmitKernelsPass> {
  using EmitKernelsPassBase::EmitKernelsPassBase;

  struct Kernel {
    std::string name;
    const RegionProblem *problem;
    kernel::ScheduleAttr schedule;
    const Generator *generator;
    SmallVector<Launch> launches;
    SmallVector<int64_t> symbols, order; // those of its words, and those of its form, in the problem's numbers
    SmallVector<PackedInput> layouts;    // inputs that are read from another region's packed form
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

  /// What decides on the kernel of a region: its text with symbols numbered as they come, and what is known of these.
  struct Form {
    std::string key;
    SmallVector<int64_t> symbols; // by their numbers in the key
  };

  Form formOf(kernel::RegionOp region, kernel::ScheduleAttr schedule, ArrayRef<PackedInput> layouts) {
    Form form;
    llvm::raw_string_ostream os(form.key);
    os << schedule << '\n';
    form.symbols = numberSymbols(printRegion(region), os);
    for (const PackedInput &layout : layouts)
      os << layout.input << ' ' << layout.map << ' ' << layout.type << '\n';
    if (auto function = region->getParentOfType<func::FuncOp>(); function && !form.symbols.empty()) {
      auto symbols = function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
      const llvm::DenseSet<int64_t> &bound = boundBy(function);
      for (int64_t symbol : form.symbols) {
        if (symbols && symbol < int64_t(symbols.size()))
          if (auto known = dyn_cast<prim::SymbolAttr>(symbols[symbol]))
            os << known.getMin() << ' ' << known.getMax() << ' ' << known.getDivisor() << ' ';
        os << bound.contains(symbol) << '\n'; // a size that only data tell
      }
    }
    return form;
  }

  /// The symbols that ops of `function` bind.
  const llvm::DenseSet<int64_t> &boundBy(func::FuncOp function) {
    auto [entry, isNew] = boundSymbols.try_emplace(function);
    if (isNew)
      function->walk([&set = entry->second](Operation *op) {
        for (int64_t symbol : prim::getBoundSymbols(op))
          set.insert(symbol);
      });
    return entry->second;
  }

  llvm::DenseMap<func::FuncOp, llvm::DenseSet<int64_t>> boundSymbols;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    boundSymbols.clear(); // those of another module's functions
    llvm::StringMap<unsigned> known;
    std::vector<Kernel> kernels;
    // Bodies of regions stay as they are until the end: answers hold for all variants.
    std::vector<std::unique_ptr<RegionProblem>> problems;
    module.walk([&](kernel::RegionOp region) { problems.push_back(std::make_unique<RegionProblem>(region)); });
    DenseMap<Value, PackedInput> packed;
    SmallVector<machine::CpuAttr> cpus;
    SmallVector<Attribute> gpus;
    for (const std::string &name : variants) {
      llvm::Expected<machine::MachineAttr> machine = machine::parseMachine(context, name);
      if (!machine) {
        module.emitError() << "variant " << llvm::toString(machine.takeError());
        return signalPassFailure();
      }
      if (auto cpu = dyn_cast<machine::CpuAttr>(*machine))
        cpus.push_back(cpu);
      else
        gpus.push_back(*machine);
    }
    if (!cpus.empty() && !gpus.empty()) {
      module.emitError() << "variants are CPUs or GPUs, not both";
      return signalPassFailure();
    }
    if (cpus.empty() && gpus.empty())
      cpus = machine::getDefaultCpus(context);
    auto generatorOf = [&](kernel::ScheduleAttr schedule) {
      return lookupGenerator(schedule, gpus.empty() ? machine::TargetKind::Cpu : machine::TargetKind::Cuda);
    };
    for (const auto &problem : problems) {
      kernel::RegionOp region = problem->getOp();
      for (kernel::ScheduleAttr schedule : schedulesOf(region)) {
        const Generator *generator = generatorOf(schedule);
        if (!generator) {
          region.emitError("region has a schedule that no code generator of this device knows: ") << schedule;
          return signalPassFailure();
        }
        if (!generator->takes(*problem)) {
          region.emitError("the strategy of schedule ")
              << schedule
              << " has no code for this region; tc-choose-schedule writes one that has, where there is none";
          return signalPassFailure();
        }
      }
      if (!region.getScheduleAttr()) {
        region.emitError("region has no schedule");
        return signalPassFailure();
      }
      const SmallVector<PackedInput> inputs = packingOf(*problem, region.getScheduleAttr(), generatorOf);
      for (const PackedInput &input : inputs) {
        Value constant = region.getInputs()[input.input];
        auto type = cast<RankedTensorType>(constant.getType());
        if (constant.getDefiningOp<prim::ConstantOp>() && !input.transform && !input.tf32 &&
            isReadableLayout(input.map) && type.hasStaticShape() &&
            type.getNumElements() * type.getElementTypeBitWidth() / 8 >= kSharedBytes)
          packed.try_emplace(constant, input);
      }
    }
    for (const auto &problem : problems) {
      kernel::RegionOp region = problem->getOp();
      OpBuilder builder(region);
      SmallVector<Value> results;
      // The kernel of a schedule; a new one if no region before has the same.
      auto launchBy = [&](kernel::ScheduleAttr schedule, IntegerSetAttr sizes = {}) {
        const Generator *generator = generatorOf(schedule);
        const SmallVector<PackedInput> layouts = sharedLayouts(region, generator, packed);
        const Form form = formOf(region, schedule, layouts);
        auto [entry, isNew] = known.try_emplace(form.key, kernels.size());
        if (isNew) {
          Kernel kernel;
          kernel.name = "k" + std::to_string(kernels.size()) + describe(region);
          kernel.problem = problem.get();
          kernel.schedule = schedule;
          kernel.generator = generator;
          kernel.launches = generator->launches(*kernel.problem, schedule);
          kernel.symbols = symbolsOf(region, kernel.launches);
          kernel.order = form.symbols;
          kernel.layouts = layouts;
          kernels.push_back(std::move(kernel));
        }
        if (log::isEnabled("kernel"))
          log::write("kernel", kernels[entry->second].name + (isNew ? " computes " : " is shared by ") +
                                   host::joinNodeNames(region));
        return createLaunches(builder, *problem, kernels[entry->second], form.symbols, sizes);
      };
      if (ArrayAttr cases = region.getCasesAttr()) {
        if (failed(checkLayouts(*problem, generatorOf)))
          return signalPassFailure();
        SmallVector<Attribute> guards;
        for (auto other : cases.getAsRange<kernel::CaseAttr>())
          guards.push_back(host::GuardAttr::get(context, other.getSizes(), other.getMachine()));
        const SmallVector<kernel::ScheduleAttr> schedules = schedulesOf(region);
        auto choice = host::ChooseOp::create(builder, region.getLoc(), region.getResultTypes(),
                                             builder.getArrayAttr(guards), schedules.size());
        for (auto [i, body, schedule] : llvm::enumerate(choice.getCases(), schedules)) {
          builder.createBlock(&body);
          host::YieldOp::create(
              builder, region.getLoc(),
              launchBy(schedule, i < guards.size() ? cast<host::GuardAttr>(guards[i]).getSizes() : IntegerSetAttr()));
        }
        results = llvm::to_vector_of<Value>(choice.getResults());
      } else {
        results = launchBy(region.getScheduleAttr());
      }
      region.replaceAllUsesWith(results);
    }

    if (areDefaults(cpus)) // then those too that a kernel gains from
      for (const Kernel &kernel : kernels)
        addVariants(*kernel.generator, cpus);

    OpBuilder builder(context);
    builder.setInsertionPointToEnd(module.getBody());
    auto makeVariant = [&](StringRef name, ArrayRef<Attribute> machines) {
      auto variant = host::VariantOp::create(builder, module.getLoc(), name, builder.getArrayAttr(machines));
      return &variant.getBody().emplaceBlock();
    };
    auto emitAll = [&](Block *block, machine::MachineAttr machine) {
      for (Kernel &kernel : kernels)
        for (unsigned i = 0; i < kernel.launches.size(); ++i)
          if (failed(emitKernel(block, machine, kernel, i)))
            return failure();
      return success();
    };
    for (machine::CpuAttr cpu : cpus)
      if (failed(emitAll(makeVariant(cpu.getName(), Attribute(cpu)), cpu)))
        return signalPassFailure();
    // One variant for all GPUs: they share the program that launches kernels. Each has kernels of its own, and the
    // oldest has those that newer GPUs take, too.
    if (!gpus.empty()) {
      Block *block = makeVariant(machine::stringifyDeviceKind(machine::DeviceKind::Cuda), gpus);
      SmallVector<Attribute> chips(gpus);
      if (const Attribute oldest = machine::getOldestGpu(context); !llvm::is_contained(chips, oldest))
        chips.push_back(oldest);
      for (Attribute chip : chips) {
        const auto gpu = cast<machine::GpuAttr>(chip);
        builder.setInsertionPointToEnd(block);
        auto holder = ModuleOp::create(builder, module.getLoc(), gpu.getName());
        holder->setAttr(host::kMachineAttr, gpu);
        if (failed(emitAll(holder.getBody(), gpu)))
          return signalPassFailure();
      }
    }
    for (const auto &problem : problems)
      problem->getOp().erase();
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

  using GeneratorOfSchedule = llvm::function_ref<const Generator *(kernel::ScheduleAttr)>;

  static SmallVector<PackedInput> packingOf(const RegionProblem &region, kernel::ScheduleAttr schedule,
                                            GeneratorOfSchedule generatorOf) {
    return generatorOf(schedule)->packing(region, schedule);
  }

  /// Fails where two schedules of a region read a constant in different layouts: it would be stored twice.
  static LogicalResult checkLayouts(const RegionProblem &problem, GeneratorOfSchedule generatorOf) {
    kernel::RegionOp region = problem.getOp();
    using Layout = std::tuple<AffineMap, Type, Attribute, bool>; // null: as it is
    auto layoutsOf = [&](kernel::ScheduleAttr schedule) {
      SmallVector<Layout> layouts(region.getInputs().size());
      for (const PackedInput &input : packingOf(problem, schedule, generatorOf))
        layouts[input.input] = {input.map, input.type, input.transform, input.tf32};
      return layouts;
    };
    const SmallVector<kernel::ScheduleAttr> schedules = schedulesOf(region);
    const SmallVector<Layout> first = layoutsOf(schedules.back());
    for (kernel::ScheduleAttr schedule : schedules)
      for (auto [i, input, one, other] : llvm::enumerate(region.getInputs(), first, layoutsOf(schedule)))
        if (one != other && input.getDefiningOp<prim::ConstantOp>())
          return region.emitError("schedules of the cases read constant input ")
                 << i << " in different layouts: " << schedules.back() << " and " << schedule;
    return success();
  }

  /// The launches of `kernel` for `region`, whose symbols are `order` in the order of the kernel's, at the builder's
  /// place; constants come before all of them. `sizes`: those that are launched for, if not all; then temporaries take
  /// no memory for others. Returns the region's results.
  SmallVector<Value> createLaunches(OpBuilder &builder, const RegionProblem &problem, Kernel &kernel,
                                    ArrayRef<int64_t> order, IntegerSetAttr sizes) {
    MLIRContext *context = &getContext();
    kernel::RegionOp region = problem.getOp();
    SmallVector<Value> inputs;
    llvm::SmallDenseMap<unsigned, PackedInput> packed;
    for (PackedInput &input : kernel.generator->packing(problem, kernel.schedule))
      packed[input.input] = input;
    for (PackedInput &input : kernel.layouts)
      packed[input.input] = input;
    auto choice = dyn_cast<host::ChooseOp>(builder.getInsertionBlock()->getParentOp());
    OpBuilder outside(choice ? choice.getOperation() : region.getOperation());
    for (auto [i, input] : llvm::enumerate(region.getInputs())) {
      if (auto constant = input.getDefiningOp<prim::ConstantOp>()) {
        auto found = packed.find(i);
        AffineMapAttr map = found == packed.end() ? AffineMapAttr() : AffineMapAttr::get(found->second.map);
        Type type = found == packed.end() ? input.getType() : Type(found->second.type);
        DenseElementsAttr transform;
        bool tf32 = false;
        if (found != packed.end()) {
          transform = found->second.transform;
          tf32 = found->second.tf32;
        }
        inputs.push_back(
            host::ConstantOp::create(outside, constant.getLoc(), type, constant.getValue(), map, transform, tf32));
      } else {
        inputs.push_back(input);
      }
    }
    // From the symbols of the region that the kernel was made for to this one's.
    DenseMap<AffineExpr, AffineExpr> names;
    for (auto [there, here] : llvm::zip_equal(kernel.order, order))
      if (there != here)
        names[getAffineSymbolExpr(there, context)] = getAffineSymbolExpr(here, context);
    auto renamed = [&](AffineExpr expr) {
      return !expr || names.empty() ? expr : prim::simplifySize(expr.replace(names));
    };
    SmallVector<int64_t> symbols;
    for (int64_t symbol : kernel.symbols)
      symbols.push_back(cast<AffineSymbolExpr>(renamed(getAffineSymbolExpr(symbol, context))).getPosition());
    auto mapOf = [&](AffineExpr expr) { return AffineMapAttr::get(prim::makeSizeMap(context, {expr})); };
    const auto *worker = llvm::find_if(kernel.launches, [](const Launch &launch) { return launch.doesWork; });
    const size_t working =
        worker == kernel.launches.end() ? kernel.launches.size() - 1 : size_t(worker - kernel.launches.begin());
    for (auto [i, made] : llvm::enumerate(kernel.launches)) {
      Launch launch = made;
      for (AffineExpr *expr : {&launch.tasks, &launch.grain, &launch.steps, &launch.scratch})
        *expr = renamed(*expr);
      for (RankedTensorType &type : launch.temporaries) {
        SmallVector<AffineExpr> dims = llvm::map_to_vector(prim::getSizes(type), renamed);
        for (AffineExpr atLeastZero :
             sizes && !dims.empty() ? sizes.getValue().getConstraints() : ArrayRef<AffineExpr>())
          dims.front() = prim::simplifySize(dims.front() * prim::makeIndicator(atLeastZero));
        type = prim::makeType(type.getElementType(), dims);
      }
      bool last = i + 1 == kernel.launches.size();
      SmallVector<Type> outputs;
      if (last)
        outputs = llvm::to_vector(region.getResultTypes());
      outputs.append(launch.temporaries.begin(), launch.temporaries.end());
      auto op = host::LaunchOp::create(
          builder, region.getLoc(), outputs, FlatSymbolRefAttr::get(context, kernel.name + launch.suffix), inputs,
          builder.getDenseI64ArrayAttr(symbols), mapOf(launch.tasks), mapOf(launch.grain),
          launch.steps ? mapOf(launch.steps) : AffineMapAttr(),
          launch.scratch ? mapOf(launch.scratch) : AffineMapAttr(),
          launch.inPlace.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(launch.inPlace),
          launch.tied.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(launch.tied), deviceWithGrid(launch),
          i == working ? region.getCostAttr() : base::CostAttr(), /*group=*/IntegerAttr());
      if (Attribute nodes = region->getAttr(host::kNodesAttr))
        op->setAttr(host::kNodesAttr, nodes);
      if (Attribute unfused = region->getAttr(kUnfusedAttr); unfused && i == working)
        op->setAttr(kUnfusedAttr, unfused);
      op->setAttr(host::kStrategyAttr, builder.getStringAttr(kernel.schedule.getStrategy()));
      if (last)
        return llvm::to_vector_of<Value>(op.getOutputs().take_front(region.getNumResults()));
      llvm::append_range(inputs, op.getOutputs());
    }
    llvm_unreachable("a generator has a launch at least");
  }

  /// The function of launch `number` of a kernel, at the end of `block`.
  LogicalResult emitKernel(Block *block, machine::MachineAttr machine, Kernel &kernel, unsigned number) {
    OpBuilder builder = OpBuilder::atBlockEnd(block);
    MLIRContext *context = &getContext();
    Launch &launch = kernel.launches[number];
    kernel::RegionOp region = kernel.problem->getOp();
    Location loc = region.getLoc();
    unsigned inputs = region.getInputs().size(), outputs = 0;
    for (unsigned i = 0; i < number; ++i)
      inputs += kernel.launches[i].temporaries.size();
    bool last = number + 1 == kernel.launches.size();
    outputs = launch.temporaries.size() + (last ? region.getOutputs().size() : 0);
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
      if (launch.device.contains("alone"))
        function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(1));
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
      Emitter emitter(region, machine, builder, loc, entry->getArgument(0), inputs, outputs, kernel.symbols,
                      bool(launch.scratch));
      for (const PackedInput &layout : kernel.layouts)
        emitter.setLayout(layout.input, layout.map, layout.type);
      if (launch.scratch)
        emitter.setWorker(entry->getArgument(3), launch.scratch);
      kernel.generator->emit(*kernel.problem, kernel.schedule, number, emitter, begin, end);
      if (emitter.error)
        return base::emitError(region.getLoc(),
                               emitter.isUnsupported ? base::ErrorKind::Unsupported : base::ErrorKind::Internal)
               << *emitter.error;
    }
    LLVM::ReturnOp::create(builder, loc, ValueRange{});
    return success();
  }
};
} // namespace

bool knowsSchedules(machine::TargetKind target, ModuleOp module) {
  auto isKnown = [&](kernel::RegionOp region) {
    return llvm::all_of(schedulesOf(region),
                        [&](kernel::ScheduleAttr schedule) { return lookupGenerator(schedule, target); });
  };
  return !module
              .walk([&](kernel::RegionOp region) {
                return isKnown(region) ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

} // namespace tc::codegen
