//===- Explain.cpp - what the compiler did and why ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Explain.h"

#include "SizeSum.h"
#include "SizeText.h"
#include "SummaryText.h"

#include "tc/Codegen/Schedules.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/Graph/IR/Source.h"
#include "tc/Dialect/Host/IR/CudaGraphs.h"
#include "tc/Dialect/Kernel/IR/Disabled.h"
#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Driver/Version.h"
#include "tc/Functions/Store.h"
#include "tc/Transforms/UnfusedCost.h"

#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace mlir;
using namespace tc;
using llvm::json::Array;
using llvm::json::Object;

/// Of the JSON form; docs/explain.schema.json says when it rises.
static constexpr int64_t kExplainSchemaVersion = 1;

/// What a strategy does, for readers who know no schedules; "" for one without a line.
static StringRef describeStrategy(StringRef strategy) {
  static const std::pair<StringRef, StringRef> meanings[] = {
#define TC_STRATEGY(name, meaning) {name, meaning},
#include "Strategies.def"
  };
  for (auto [name, meaning] : meanings)
    if (name == strategy)
      return meaning;
  return "";
}

/// What a product or convolution multiplies and sums, if that is not all f32.
static std::string describeProduct(Operation *op) {
  if (!isa<prim::DotGeneralOp, prim::ConvOp>(op))
    return "";
  SmallVector<Type> types;
  for (Value value : op->getOperands()) {
    // As it is stored, if the product widens it.
    if (auto convert = value.getDefiningOp<prim::ConvertOp>())
      if (Type from = cast<RankedTensorType>(convert.getOperand().getType()).getElementType();
          from.getIntOrFloatBitWidth() < cast<RankedTensorType>(value.getType()).getElementTypeBitWidth())
        value = convert.getOperand();
    types.push_back(cast<RankedTensorType>(value.getType()).getElementType());
  }
  types.push_back(cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
  if (llvm::all_of(types, [](Type type) { return type.isF32(); }))
    return "";
  std::string text;
  llvm::raw_string_ostream(text) << types[0] << " times " << types[1] << ", summed in " << types[2];
  return text;
}

llvm::json::Array driver::Explanation::getSources(ArrayRef<StringRef> names) const {
  Array lines;
  llvm::StringSet<> known;
  for (StringRef name : names)
    if (auto found = sources.find(name); found != sources.end() && known.insert(found->second).second)
      lines.push_back(llvm::json::fixUTF8(found->second));
  return lines;
}

static bool isBackendCall(graph::NodeOp node) {
  return node.getDomain() == graph::kOwnDomain && node.getOpType() == graph::kOnnxRuntime;
}

void driver::Explanation::addNodes(ModuleOp module) {
  nodes = 0;
  graphs = int64_t(llvm::range_size(module.getOps<graph::FuncOp>()));
  // Parts of --backend-for are functions that the model does not have.
  module.walk([&](graph::NodeOp node) { graphs -= isBackendCall(node); });
  llvm::StringSet<> operators;
  module.walk([&](graph::NodeOp node) {
    if (node->hasAttr(graph::kUnknownAttr) || isBackendCall(node))
      return;
    ++nodes;
    graphs += node.getGraphs().size();
    operators.insert(node.getFullName());
    assertions += node.getDomain() == "aten" &&
                  (node.getOpType().contains("_assert_") || node.getOpType().contains("sym_constrain_range"));
    if (std::string source = graph::getSource(node.getLoc()); !source.empty())
      sources[node.getNodeName()] = source;
  });
  distinctOperators = operators.size();
}

void driver::Explanation::addKernels(ModuleOp module) {
  kernels.clear();
  hostCalls.clear();
  module.walk([&](prim::HostCallOp call) {
    if (!tcrt_find_function(call.getCallee().data(), call.getCallee().size()))
      ++hostCalls[call.getCallee().str()];
  });
  SizeSum flops, bytes, saved;
  module.walk([&](kernel::RegionOp region) {
    auto function = region->getParentOfType<func::FuncOp>();
    ArrayAttr symbols = function ? function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr) : ArrayAttr();
    Array operators, stopped;
    std::string product;
    for (Operation &op : region.getBody().front().without_terminator()) {
      operators.push_back(op.getName().stripDialect());
      if (std::string text = describeProduct(&op); !text.empty())
        product = text;
    }
    Object kernel{{"operators", std::move(operators)}};
    if (!product.empty())
      kernel["product"] = product;
    kernel["nodes"] = llvm::json::fixUTF8(host::joinNodeNames(region));
    if (Array lines = getSources(host::getNodeNames(region)); !lines.empty())
      kernel["source"] = std::move(lines);
    if (region->hasAttr(kernel::kDisabledAttr))
      kernel["disabled"] = true;
    if (base::CostAttr cost = region.getCostAttr()) {
      kernel["flops"] = sizeToJson(cost.getFlopsExpr(), symbols);
      kernel["bytes"] = sizeToJson(cost.getBytesExpr(), symbols);
      flops.add(cost.getFlopsExpr(), symbols);
      bytes.add(cost.getBytesExpr(), symbols);
    }
    saved.add(getSavedBytes(region), symbols);
    if (kernel::FusionAttr fusion = region.getFusionAttr())
      for (auto reason : fusion.getStopped().getAsRange<StringAttr>())
        stopped.push_back(llvm::json::fixUTF8(reason.getValue()));
    kernel["stopped"] = std::move(stopped);
    kernels.push_back(std::move(kernel));
  });
  totals = Object{{"regions", int64_t(kernels.size())},
                  {"flops", flops.toJson()},
                  {"bytes", bytes.toJson()},
                  {"saved_bytes", saved.toJson()}};
  if (nodes >= 0)
    totals["nodes"] = nodes;
}

static Object describeParameters(kernel::ScheduleAttr schedule) {
  Object parameters;
  for (auto [name, value] : schedule.getNumbers())
    parameters[name] = value;
  return parameters;
}

/// The schedules of sizes that only the run knows, in the order in which the host program asks.
static Array describeCases(kernel::RegionOp region, ArrayAttr cases) {
  auto function = region->getParentOfType<func::FuncOp>();
  const auto symbols = function ? function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr) : ArrayAttr();
  Array described;
  for (auto other : cases.getAsRange<kernel::CaseAttr>()) {
    std::vector<std::string> when;
    if (const IntegerSetAttr sizes = other.getSizes())
      for (auto [i, difference] : llvm::enumerate(sizes.getValue().getConstraints()))
        when.push_back(prim::formatCondition(difference, sizes.getValue().isEq(unsigned(i)), symbols));
    if (other.getMachine())
      when.push_back("on " + other.getMachine().getName().str());
    described.push_back(Object{{"when", llvm::join(when, " and ")},
                               {"strategy", other.getSchedule().getStrategy()},
                               {"parameters", describeParameters(other.getSchedule())}});
  }
  return described;
}

void driver::Explanation::addSchedules(ModuleOp module, machine::TargetKind target) {
  size_t number = 0;
  module.walk([&](kernel::RegionOp region) {
    kernel::ScheduleAttr schedule = region.getScheduleAttr();
    if (!schedule || number >= kernels.size())
      return;
    StringRef strategy = schedule.getStrategy();
    Object described{{"strategy", strategy}, {"parameters", describeParameters(schedule)}};
    if (StringRef meaning = describeStrategy(strategy); !meaning.empty())
      described["meaning"] = meaning;
    // By the cost model, as a multiple of the time of the one that was taken.
    SmallVector<codegen::StrategyChoice> choices = codegen::getStrategyChoices(region, target);
    auto own = llvm::find_if(choices, [&](auto &choice) { return choice.strategy == strategy; });
    Array others;
    for (const codegen::StrategyChoice &choice : choices)
      if (choice.strategy != strategy && own != choices.end())
        others.push_back(
            Object{{"strategy", choice.strategy}, {"time", own->time > 0 ? choice.time / own->time : 1.0}});
    described["others"] = std::move(others);
    if (const ArrayAttr cases = region.getCasesAttr())
      described["cases"] = describeCases(region, cases);
    (*kernels[number++].getAsObject())["schedule"] = std::move(described);
  });
}

void driver::Explanation::addTuning(ArrayRef<autotune::Outcome> regions) {
  for (auto [value, outcome] : llvm::zip(kernels, regions)) {
    if (outcome.text.empty())
      continue;
    Object tuning{{"what", llvm::json::fixUTF8(outcome.text)}};
    if (outcome.us) {
      tuning["us"] = outcome.us;
      tuning["default_us"] = outcome.defaultUs;
    }
    (*value.getAsObject())["tuning"] = std::move(tuning);
  }
}

void driver::Explanation::addMemory(ModuleOp module) {
  SmallVector<func::FuncOp> functions = getFunctions(module);
  if (functions.empty())
    return;
  // Of the first one; the weights are those of all.
  func::FuncOp main = functions.front();
  ArrayAttr symbols = main->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
  if (AffineExpr arena = host::getArenaBytes(main))
    memory["arena_bytes"] = sizeToJson(arena, symbols);
  if (auto live = main->getAttrOfType<IntegerAttr>(host::kLiveAttr))
    memory["live_bytes"] = live.getInt();
  if (auto weights = main->getAttrOfType<IntegerAttr>(host::kWeightsAttr))
    memory["weights_bytes"] = weights.getInt();
  launches = 0;
  llvm::StringSet<> distinct;
  for (func::FuncOp function : functions) {
    launches += host::countLaunches(function.front());
    function.walk([&](host::LaunchOp launch) { distinct.insert(launch.getKernel()); });
  }
  totals["kernels"] = int64_t(distinct.size());
  totals["launches"] = launches;
}

void driver::Explanation::addCudaGraphs(ModuleOp module) {
  // By reason: nodes of the launches, or of what runs between launches.
  llvm::MapVector<StringRef, std::vector<std::string>> outside, ends;
  int64_t held = 0, count = 0;
  for (func::FuncOp function : getFunctions(module)) {
    const llvm::SmallDenseSet<unsigned> ofData = host::getSymbolsOfData(function);
    function.walk([&](Operation *op) {
      if (auto launch = dyn_cast<host::LaunchOp>(op); launch && launch.getDeviceAttr()) {
        ++count;
        StringRef why = host::findGraphObstacle(launch, function, ofData);
        held += why.empty();
        if (!why.empty())
          outside[why].push_back(host::joinNodeNames(op));
      } else if (isa<prim::HostCallOp>(op)) {
        ends["functions on the host"].push_back(host::joinNodeNames(op));
      } else if (auto loop = dyn_cast<prim::WhileOp>(op); host::choosesBySizes(op) || (loop && host::isCounted(loop))) {
        return;
      } else if (op->getParentOp() == function && op->getNumRegions() > 0) {
        ends["branches and loops, which read their conditions"].push_back(host::joinNodeNames(op));
      }
    });
  }
  if (count == 0)
    return;
  auto toArray = [](const llvm::MapVector<StringRef, std::vector<std::string>> &all) {
    Array array;
    for (const auto &[reason, names] : all) {
      Array nodes;
      for (const std::string &name : names)
        nodes.push_back(llvm::json::fixUTF8(name));
      array.push_back(Object{{"reason", reason}, {"nodes", std::move(nodes)}});
    }
    return array;
  };
  cudaGraphs = Object{{"launches", count}, {"held", held}, {"outside", toArray(outside)}, {"ended_by", toArray(ends)}};
}

/// What a user can do about a node that tc lacks, besides what the reason says.
static std::string adviseOn(const UnsupportedNode &node) {
  if (node.name.empty() || node.type.empty())
    return "";
  if (isConstruct(node.domain))
    return StringRef(node.reason).rsplit("; ").second.str();
  const bool isUnknown = StringRef(node.reason).starts_with("is not supported");
  if (node.domain == "higher_order" && node.type.rfind("auto_functionalized", 0) == 0)
    return "";
  if (node.domain == "higher_order")
    return "write this part in Python with plain operators, torch.cond, while_loop, scan or map, or export the model "
           "without it";
  if (node.domain == "aten" || node.domain == "torch")
    return std::string(isUnknown ? "write the operator by others in Python, compute it"
                                 : "write this by other operators in Python, compute the node") +
           " by a function of yours (--custom-op, see examples/custom-op), or export the model with torch.onnx.export";
  return (isUnknown ? "export the model with operators that tc-inspect --operators lists, or compute this one"
                    : "export the model in a form that is supported, or compute this node") +
         std::string(" by a function of yours: --custom-op, see examples/custom-op");
}

/// "is not supported (did you mean "Relu"?)" without the remedy that adviseOn gives.
static StringRef withoutRemedy(const UnsupportedNode &node) {
  const StringRef reason = node.reason;
  if (isConstruct(node.domain))
    return reason.rsplit("; ").first;
  return reason.starts_with("is not supported") ? reason.split("; tc-inspect").first : reason;
}

int64_t driver::Explanation::countBreaks() const {
  int64_t count = 0;
  for (const UnsupportedNode &node : report.unsupported)
    count += node.count;
  for (const auto &call : hostCalls)
    count += call.second;
  return count;
}

std::string driver::Explanation::toJson(llvm::StringRef model) const {
  Array unsupported;
  for (const UnsupportedNode &node : report.unsupported) {
    SmallVector<StringRef> names(node.names.begin(), node.names.end());
    Object entry{{"node", llvm::json::fixUTF8(node.name)},
                 {"domain", llvm::json::fixUTF8(node.domain)},
                 {"type", llvm::json::fixUTF8(node.type)},
                 {"opset", node.opset},
                 {"reason", llvm::json::fixUTF8(node.reason)},
                 {"count", node.count},
                 {"source", getSources(names)},
                 {"advice", adviseOn(node)}};
    Array all;
    for (StringRef name : names)
      all.push_back(llvm::json::fixUTF8(name));
    entry["nodes"] = std::move(all);
    unsupported.push_back(std::move(entry));
  }
  // docs/explain.schema.json describes them.
  Object object{{"schema_version", kExplainSchemaVersion},
                {"producer", Object{{"name", "tc"}, {"version", TC_VERSION_STRING}}},
                {"model", llvm::json::fixUTF8(model)},
                {"supported", report.unsupported.empty()},
                {"unsupported", std::move(unsupported)},
                {"kernel_count", int64_t(kernels.size())},
                {"kernels", Array(kernels)}};
  if (nodes >= 0)
    object["graph"] = Object{{"graphs", graphs},
                             {"nodes", nodes},
                             {"operators", distinctOperators},
                             {"breaks", countBreaks()},
                             {"assertions", assertions}};
  Object calls;
  for (const auto &[function, count] : hostCalls)
    calls[llvm::json::fixUTF8(function)] = count;
  if (!calls.empty())
    object["host_calls"] = std::move(calls);
  if (!quantization.empty())
    object["quantization"] = Object(quantization);
  if (!precision.empty())
    object["precision"] = Object(precision);
  if (!backendParts.empty())
    object["backend_parts"] = Array(backendParts);
  if (report.unsupported.empty())
    object["totals"] = Object(totals);
  if (launches >= 0) {
    object["launch_count"] = launches;
    object["memory"] = Object(memory);
    if (!cudaGraphs.empty())
      object["cuda_graphs"] = Object(cudaGraphs);
  }
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object))).str();
}

/// "a, b and 10 more".
static std::string joinSome(ArrayRef<std::string> parts, size_t most) {
  std::string text = llvm::join(parts.take_front(most), ", ");
  return parts.size() > most ? text + " and " + std::to_string(parts.size() - most) + " more" : text;
}

static std::vector<std::string> toStrings(const Array *array) {
  std::vector<std::string> strings;
  for (const llvm::json::Value &value : array ? *array : Array())
    strings.push_back(value.getAsString().value_or("").str());
  return strings;
}

/// A number, or an expression as text; nothing for null.
static std::string sizeText(const llvm::json::Value *size) {
  if (!size)
    return "";
  if (auto expr = size->getAsString())
    return expr->str();
  return size->getAsInteger() ? std::to_string(*size->getAsInteger()) : "";
}

/// "12 (12 k)": with a unit that people read, where the number is large.
static std::string withUnit(const llvm::json::Value *size) {
  std::string text = sizeText(size);
  double number = size && size->getAsInteger() ? double(*size->getAsInteger()) : 0;
  for (auto [unit, name] : {std::pair(1e12, "T"), std::pair(1e9, "G"), std::pair(1e6, "M"), std::pair(1e3, "k")})
    if (number >= 10 * unit || (number >= unit && unit > 1e3))
      return llvm::formatv("{0} ({1:f1} {2})", text, number / unit, name).str();
  return text;
}

/// Operators of a kernel in its line.
static constexpr size_t kShownOperators = 16;

/// What is the same of kernels that stand in one line.
static std::string keyOf(const Object &kernel) {
  // Where a constant stands tells only whether another kernel shares it.
  std::vector<std::string> operators = toStrings(kernel.getArray("operators"));
  llvm::sort(operators);
  Object key{{"operators", operators}};
  for (StringRef name : {"flops", "bytes", "product", "schedule", "tuning", "disabled"})
    if (const llvm::json::Value *value = kernel.get(name))
      key[name] = *value;
  return llvm::formatv("{0}", llvm::json::Value(std::move(key))).str();
}

static std::string describeSchedule(const Object &schedule) {
  StringRef strategy = *schedule.getString("strategy");
  std::string text = strategy.str();
  if (auto meaning = schedule.getString("meaning"))
    text += ": " + meaning->str();
  std::vector<std::string> cases;
  if (const Array *all = schedule.getArray("cases"))
    for (const llvm::json::Value &value : *all)
      cases.push_back(value.getAsObject()->getString("when")->str());
  if (!cases.empty())
    text += "; in another form for " + llvm::join(cases, ", for ");
  std::vector<std::string> others;
  for (const llvm::json::Value &value : *schedule.getArray("others")) {
    const Object &other = *value.getAsObject();
    const double time = other.getNumber("time").value_or(1);
    others.push_back(llvm::formatv(others.empty() ? "{0} takes {1}as long" : "{0} {1}as long",
                                   *other.getString("strategy"),
                                   time > 1.05 || time < 0.95 ? llvm::formatv("{0:f1} times ", time).str() : "")
                         .str());
  }
  return text + (others.empty() ? "; no other way takes it" : "; by estimate " + llvm::join(others, ", "));
}

static void printUnsupported(llvm::raw_ostream &stream, const UnsupportedNode &node, const Array &sources) {
  const std::string opset = isConstruct(node.domain) ? "" : " (opset " + std::to_string(node.opset) + ")";
  stream << llvm::formatv("  {0,4} x {1}{2}{3}: {4}\n", node.count,
                          node.domain == "ai.onnx" || node.domain.empty() ? "" : node.domain + ".", node.type, opset,
                          withoutRemedy(node));
  std::vector<std::string> names;
  for (const std::string &name : node.names.empty() ? std::vector<std::string>{node.name} : node.names)
    names.push_back("\"" + name + "\"");
  stream << "         nodes: " << joinSome(names, 8) << "\n";
  if (!sources.empty())
    stream << "         source: " << joinSome(toStrings(&sources), 8) << "\n";
  if (std::string advice = adviseOn(node); !advice.empty())
    stream << "         what to do: " << advice << "\n";
}

static void printKernel(llvm::raw_ostream &stream, const Object &kernel, size_t number, size_t count) {
  const std::vector<std::string> operators = toStrings(kernel.getArray("operators"));
  stream << llvm::formatv("  {0,4}  ", number) << llvm::join(ArrayRef(operators).take_front(kShownOperators), " ");
  if (operators.size() > kShownOperators)
    stream << " and " << operators.size() - kShownOperators << " more";
  for (StringRef what : {"flops", "bytes"})
    if (std::string size = sizeText(kernel.get(what)); !size.empty())
      stream << "; " << size << " " << what;
  stream << (count > 1 ? llvm::formatv("  x {0}", count).str() : "") << "\n";
  auto nodes = kernel.getString("nodes");
  if (nodes && !nodes->empty())
    stream << "        nodes: " << *nodes << (count > 1 ? llvm::formatv(" and {0} more like it", count - 1).str() : "")
           << "\n";
  if (const Array *sources = kernel.getArray("source"))
    stream << "        source: " << joinSome(toStrings(sources), 8) << "\n";
  if (kernel.getBoolean("disabled"))
    stream << "        disabled: it is not fused\n";
  if (auto product = kernel.getString("product"))
    stream << "        product: " << *product << "\n";
  if (const Object *schedule = kernel.getObject("schedule"))
    stream << "        schedule: " << describeSchedule(*schedule) << "\n";
  if (const Object *tuning = kernel.getObject("tuning"))
    stream << "        " << *tuning->getString("what") << "\n";
  llvm::MapVector<StringRef, int64_t> reasons;
  const std::vector<std::string> stopped = toStrings(kernel.getArray("stopped"));
  for (const std::string &reason : stopped)
    ++reasons[reason];
  for (auto [reason, times] : reasons)
    stream << "        ends at: " << reason << (times > 1 ? " (x " + std::to_string(times) + ")" : "") << "\n";
}

static void printCudaGraphs(llvm::raw_ostream &stream, const Object &graphs) {
  if (graphs.empty())
    return;
  stream << "  CUDA graphs: hold " << *graphs.getInteger("held") << " of " << *graphs.getInteger("launches")
         << " launches\n";
  auto print = [&](StringRef key, StringRef begin) {
    for (const llvm::json::Value &value : *graphs.getArray(key)) {
      const Object &entry = *value.getAsObject();
      std::vector<std::string> nodes = toStrings(entry.getArray("nodes"));
      llvm::erase(nodes, "");
      stream << "    " << begin << *entry.getString("reason");
      if (!nodes.empty())
        stream << ": " << joinSome(nodes, /*most=*/4);
      stream << "\n";
    }
  };
  print("outside", "outside: launches ");
  print("ended_by", "ended by ");
}

/// What --quantize and --precision auto keep within a budget.
static void printOutputErrors(llvm::raw_ostream &stream, const Object &all) {
  for (const llvm::json::Value &value : *all.getArray("outputs")) {
    const Object &output = *value.getAsObject();
    stream << "  output " << *output.getString("output")
           << llvm::formatv(": {0:e1} of its largest value", output.getNumber("error").value_or(0));
    if (auto budget = all.getNumber("budget"))
      stream << llvm::formatv(", allowed {0:e1}", *budget);
    stream << "\n";
  }
}

static void printQuantization(llvm::raw_ostream &stream, const Object &all) {
  if (all.empty())
    return;
  const Array &nodes = *all.getArray("nodes");
  auto error = [](const Object &object, StringRef key) {
    return llvm::formatv("{0:e1}", object.getNumber(key).value_or(0)).str();
  };
  stream << "quantisation to " << *all.getString("type") << ", ranges by " << *all.getString("method") << " of "
         << *all.getInteger("runs") << (*all.getInteger("runs") == 1 ? " run" : " runs")
         << "\n  products in bytes: " << *all.getInteger("quantized") << " of " << nodes.size()
         << "; errors of nodes are of their mean, alone and in the model\n";
  for (const llvm::json::Value &value : nodes) {
    const Object &node = *value.getAsObject();
    stream << "  " << *node.getString("node") << ": ";
    if (node.get("error_alone"))
      stream << error(node, "error_alone") << " alone, ";
    stream << error(node, "error");
    if (const Object *input = node.getObject("input"))
      stream << llvm::formatv("; input {0:f4} to {1:f4}", *input->getNumber("low"), *input->getNumber("high"));
    if (auto reason = node.getString("reason"))
      stream << "; stays f32: " << *reason;
    stream << "\n";
  }
  printOutputErrors(stream, all);
}

static void printPrecision(llvm::raw_ostream &stream, const Object &all) {
  if (all.empty())
    return;
  const int64_t runs = *all.getInteger("runs");
  stream << "precision by the error of outputs in " << runs << (runs == 1 ? " run" : " runs") << " of "
         << (*all.getString("data") == "random" ? "random inputs" : "calibration")
         << "\n  errors of nodes are of outputs, with all else in f32\n";
  for (const llvm::json::Value &value : *all.getArray("nodes")) {
    const Object &node = *value.getAsObject();
    stream << "  " << joinSome(toStrings(node.getArray("nodes")), 3) << ": " << *node.getString("type");
    if (auto alone = node.getNumber("error_alone"))
      stream << llvm::formatv(", {0:e1} alone", *alone);
    if (auto reason = node.getString("reason"))
      stream << "; " << *reason;
    stream << "\n";
  }
  printOutputErrors(stream, all);
}

static void printBackendParts(llvm::raw_ostream &stream, const Array &all) {
  if (!all.empty())
    stream << "parts for ONNX Runtime, by --backend-for\n";
  for (const llvm::json::Value &value : all) {
    const Object &part = *value.getAsObject();
    const std::vector<std::string> nodes = toStrings(part.getArray("nodes"));
    stream << "  " << joinSome(nodes, 3);
    if (nodes.size() > 1)
      stream << " (" << nodes.size() << " nodes)";
    stream << ": " << (*part.getBoolean("taken") ? "goes" : "stays with tc");
    for (StringRef way : {"input", "output"})
      if (auto count = part.getInteger((way + "s").str()))
        stream << (way == "input" ? "; " : ", ") << *count << " " << way << (*count == 1 ? "" : "s") << " of "
               << driver::describeSize(uint64_t(part.getInteger((way + "_bytes").str()).value_or(0)));
    if (auto bytes = part.getInteger("model_bytes"))
      stream << ", a file of " << driver::describeSize(uint64_t(*bytes));
    stream << "; " << *part.getString("reason") << "\n";
  }
}

std::string driver::Explanation::toText(llvm::StringRef model) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto plural = [](int64_t count, StringRef what, StringRef more) {
    return std::to_string(count) + " " + (count == 1 ? what : more).str();
  };
  if (!report.unsupported.empty()) {
    const int64_t count = countBreaks();
    stream << model << ": " << count << (count == 1 ? " node is" : " nodes are") << " not supported\n";
    for (const UnsupportedNode &node : report.unsupported)
      printUnsupported(stream, node, getSources(SmallVector<StringRef>(node.names.begin(), node.names.end())));
    if (nodes >= 0)
      stream << "in all: " << plural(graphs, "graph", "graphs") << " with " << plural(nodes, "node", "nodes") << " of "
             << plural(distinctOperators, "operator", "operators") << ", "
             << plural(assertions, "assertion", "assertions") << "\n";
    return text;
  }
  stream << model << ": ";
  if (nodes >= 0)
    stream << plural(nodes, "node", "nodes") << " in ";
  stream << plural(kernels.size(), "kernel", "kernels") << "\n";
  // Kernels that are alike in one line, where the first of them stands.
  std::map<std::string, size_t> counts;
  for (const llvm::json::Value &value : kernels)
    ++counts[keyOf(*value.getAsObject())];
  for (auto [number, value] : llvm::enumerate(kernels)) {
    size_t &count = counts[keyOf(*value.getAsObject())];
    if (count)
      printKernel(stream, *value.getAsObject(), number, std::exchange(count, 0));
  }
  printQuantization(stream, quantization);
  printPrecision(stream, precision);
  printBackendParts(stream, backendParts);
  stream << "totals\n  kernels: ";
  if (const llvm::json::Value *distinct = totals.get("kernels"))
    stream << plural(*distinct->getAsInteger(), "kernel", "kernels") << " in " << plural(launches, "launch", "launches")
           << "\n";
  else
    stream << kernels.size() << " before those that are alike are put together; -o OUT tells the launches\n";
  if (!hostCalls.empty()) {
    std::vector<std::string> parts;
    for (const auto &[function, count] : hostCalls)
      parts.push_back(function + (count > 1 ? " x " + std::to_string(count) : ""));
    stream << "  breaks: " << plural(countBreaks(), "call of a function", "calls of functions")
           << (backendParts.empty() ? " of yours: " : " outside of libtcrt: ") << llvm::join(parts, ", ") << "\n";
  }
  stream << "  work: " << withUnit(totals.get("flops")) << " flops, " << withUnit(totals.get("bytes"))
         << " bytes read and written\n";
  stream << "  saved by fusion: " << withUnit(totals.get("saved_bytes"))
         << " bytes of values between nodes that are not written and read\n";
  if (launches >= 0) {
    std::vector<std::string> parts;
    for (StringRef key : {"arena_bytes", "live_bytes", "weights_bytes"})
      if (const llvm::json::Value *bytes = memory.get(key))
        parts.push_back(key.str() + " " + sizeText(bytes));
    stream << "  memory: " << llvm::join(parts, ", ") << "\n";
    printCudaGraphs(stream, cudaGraphs);
  }
  return text;
}
