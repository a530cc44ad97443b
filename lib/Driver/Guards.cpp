//===- Guards.cpp - what runs are refused for ---------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Guards.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/Graph/IR/Source.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Support/Logging.h"

#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace mlir;
using namespace tc;
using llvm::json::Array;
using llvm::json::Object;

namespace {

constexpr llvm::StringLiteral kAtSizes = "a comparison, when sizes of inputs change";

/// The option among `flags` that gives sizes to the dim or input of this name; empty: none does.
std::string findOption(ArrayRef<std::string> flags, StringRef name) {
  for (const std::string &flag : flags)
    for (StringRef option : {"--dim ", "--shape "})
      if (StringRef rest = flag; rest.consume_front(option) && rest.consume_front(name) && rest.starts_with("="))
        return flag;
  return "";
}

class Collector {
public:
  Collector(func::FuncOp func, const artifact::Function &function, ArrayRef<std::string> flags)
      : func(func), function(function), flags(flags), symbols(func->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr)) {
    for (const artifact::Value &input : function.inputs)
      for (auto [d, dim] : llvm::enumerate(input.dims))
        if (dim.kind == TCRT_DIM_SYMBOL)
          places[dim.symbolIndex].push_back("dim " + std::to_string(d) + " of \"" + input.name + "\"");
  }

  Array run() {
    addInputs();
    addRanges();
    func.walk([&](Operation *op) {
      if (auto guard = dyn_cast<prim::GuardOp>(op))
        addSizes(guard);
      else if (auto bind = dyn_cast<prim::BindSymbolOp>(op); bind && bind.getMessage())
        addData(bind);
    });
    return std::move(guards);
  }

private:
  void add(std::initializer_list<std::pair<StringRef, std::string>> fields) {
    Object guard;
    for (const auto &[key, text] : fields)
      if (!text.empty())
        guard[key] = llvm::json::fixUTF8(text);
    guards.push_back(std::move(guard));
  }

  /// Sizes that are numbers.
  void addInputs() {
    for (const artifact::Value &input : function.inputs) {
      std::string condition;
      for (auto [d, dim] : llvm::enumerate(input.dims))
        if (dim.kind == TCRT_DIM_STATIC)
          condition +=
              (condition.empty() ? "" : ", ") + ("dim " + std::to_string(d)) + " = " + std::to_string(dim.value);
      if (condition.empty())
        continue;
      const std::string option = findOption(flags, input.name);
      add({{"kind", "fixed"},
           {"condition", condition},
           {"inputs", "\"" + input.name + "\""},
           {"from", option.empty() ? "the model, or an option that gives a dim one size" : option},
           {"costs", kAtSizes.str()},
           {"give_up", option.empty() ? "export the model with these dims open, or leave such an option out"
                                      : "leave " + option + " out"}});
    }
  }

  /// What symbols of inputs are.
  void addRanges() {
    for (auto [i, symbol] : llvm::enumerate(function.symbols)) {
      const auto found = places.find(i);
      if (found == places.end())
        continue;
      std::string condition = symbol.name;
      if (symbol.min > 0)
        condition = std::to_string(symbol.min) + " <= " + condition;
      if (symbol.max != INT64_MAX)
        condition += " <= " + std::to_string(symbol.max);
      if (symbol.divisor > 1)
        condition += ", a multiple of " + std::to_string(symbol.divisor);
      const std::string option = findOption(flags, symbol.name);
      if (condition != symbol.name)
        add({{"kind", "range"},
             {"condition", condition},
             {"inputs", llvm::join(found->second, ", ")},
             {"from", option.empty() ? "the model" : option},
             {"costs", kAtSizes.str()},
             {"give_up", option.empty() ? "not here: the model says of itself that it is right for these sizes; export "
                                          "it for others"
                                        : "leave " + option + " out"}});
      if (found->second.size() > 1)
        add({{"kind", "equal"},
             {"condition", llvm::join(found->second, " = ")},
             {"inputs", llvm::join(found->second, ", ")},
             {"from", "the model, which calls each of them " + symbol.name},
             {"costs", kAtSizes.str()},
             {"give_up", "--no-assume " + symbol.name +
                             ": each is a size of its own, and nodes that need equal ones "
                             "check that"}});
    }
  }

  /// The dims of inputs whose sizes an expression has.
  std::string inputsOf(AffineMap sizes) const {
    std::vector<std::string> list;
    for (auto [i, dims] : places)
      for (AffineExpr expr : sizes.getResults())
        if (expr.isFunctionOfSymbol(i)) {
          list.push_back(function.symbols[i].name + ": " + dims.front());
          break;
        }
    return llvm::join(list, ", ");
  }

  void addSizes(prim::GuardOp guard) {
    const std::string first = prim::formatSize(guard.getSizes().getResult(0), symbols);
    std::string condition = first + (guard.getKind() == prim::CompareKind::EQ ? " = " : " <= ") +
                            prim::formatSize(guard.getSizes().getResult(1), symbols);
    if (guard.getOrOne())
      condition += ", or " + first + " = 1";
    const std::string node = host::joinNodeNames(guard);
    add({{"kind", "sizes"},
         {"condition", condition},
         {"inputs", inputsOf(guard.getSizes())},
         {"node", node},
         {"source", graph::getSource(guard.getLoc())},
         {"what", guard.getWhat().str()},
         {"from", node.empty() ? "the model" : "node \"" + node + "\""},
         {"costs", kAtSizes.str()},
         {"give_up", "not here: other sizes have no result"}});
  }

  void addData(prim::BindSymbolOp bind) {
    const std::string node = host::joinNodeNames(bind);
    const bool isOption = llvm::is_contained(flags, "--check-bounds");
    add({{"kind", "data"},
         {"node", node},
         {"source", graph::getSource(bind.getLoc())},
         {"what", bind.getMessage()->str()},
         {"from", node.empty() ? "the model" : "node \"" + node + "\""},
         {"costs", "a value that the host waits for, in each run"},
         {"give_up", isOption ? "where it is an index that is checked, leave --check-bounds out"
                              : "not here: such data have no result"}});
  }

  func::FuncOp func;
  const artifact::Function &function;
  ArrayRef<std::string> flags;
  ArrayAttr symbols;
  std::map<unsigned, std::vector<std::string>> places; ///< of symbols, in inputs
  Array guards;
};

} // namespace

Array tc::driver::describeGuards(func::FuncOp func, const artifact::Function &function, ArrayRef<std::string> flags) {
  return Collector(func, function, flags).run();
}

std::string tc::driver::giveUpNames(ModuleOp module, ArrayRef<std::string> names) {
  for (const std::string &name : names) {
    unsigned count = 0;
    bool isTraced = false;
    std::set<std::string> others;
    for (auto function : module.getOps<graph::FuncOp>())
      for (unsigned i = 0; i < function.getNumArguments(); ++i) {
        ArrayAttr dims = function.getArgDims(i);
        SmallVector<Attribute> kept;
        for (Attribute dim : dims ? dims.getValue() : ArrayRef<Attribute>()) {
          auto text = dyn_cast<StringAttr>(dim);
          const bool isMeant = text && text.getValue() == name;
          count += isMeant;
          isTraced |= isMeant && function.getArgAttr(i, graph::kRangesAttr);
          if (text && !isMeant && !text.empty())
            others.insert(text.str());
          kept.push_back(isMeant ? StringAttr::get(module.getContext(), "") : dim);
        }
        if (dims)
          function.setArgAttr(i, graph::kDimsAttr, ArrayAttr::get(module.getContext(), kept));
      }
    if (count == 0)
      return "--no-assume names \"" + name + "\", which is no dim of an input" +
             (others.empty() ? "" : "; they are \"" + llvm::join(others, "\", \"") + "\"");
    if (isTraced)
      return "--no-assume " + name + ": the program was exported for inputs whose dims \"" + name +
             "\" are equal and of the range that it has, and is right for these only; export it with other dims";
    if (count == 1)
      return "--no-assume " + name +
             ": it is the name of one dim of one input, of which nothing is assumed; a range "
             "is what --dim gives, and nodes check what they need";
  }
  return "";
}

void tc::driver::logGuards(StringRef function, const Array &guards) {
  if (!log::isEnabled("guards"))
    return;
  for (const llvm::json::Value &value : guards) {
    const Object &guard = *value.getAsObject();
    auto text = [&](StringRef key) { return guard.getString(key).value_or("").str(); };
    std::string line = function.str() + ": " + (text("condition").empty() ? text("what") : text("condition"));
    if (!text("condition").empty() && !text("what").empty())
      line += " (" + text("what") + ")";
    if (!text("inputs").empty())
      line += "; " + text("inputs");
    line += "; from " + text("from");
    if (!text("source").empty())
      line += ", " + text("source");
    line += "; costs " + text("costs");
    line += "; to give it up: " + text("give_up");
    log::write("guards", line);
  }
}
