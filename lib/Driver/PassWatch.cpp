//===- PassWatch.cpp - what is told of passes while they run ------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "PassWatch.h"

#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Support/Logging.h"
#include "tc/Support/Progress.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>
#include <mutex>

using namespace mlir;
using namespace tc;

namespace {

struct CountPasses : public PassInstrumentation {
  explicit CountPasses(Operation *module) : module(module) {}
  void runAfterPass(Pass *, Operation *op) override {
    if (op == module)
      progress::advance(1);
  }
  Operation *module;
};

/// Passes run on several functions at once.
class LogPasses : public PassInstrumentation {
public:
  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty())
      return;
    Start start{OperationFingerPrint(op), countOperations(op), Clock::now()};
    std::lock_guard<std::mutex> lock(mutex);
    running.insert({{pass, op}, start});
  }
  void runAfterPass(Pass *pass, Operation *op) override { tell(pass, op, /*hasFailed=*/false); }
  void runAfterPassFailed(Pass *pass, Operation *op) override { tell(pass, op, /*hasFailed=*/true); }

private:
  using Clock = std::chrono::steady_clock;
  struct Start {
    OperationFingerPrint print;
    size_t count;
    Clock::time_point time;
  };

  static size_t countOperations(Operation *op) {
    size_t count = 0;
    op->walk([&](Operation *inner) { count += inner != op; });
    return count;
  }

  void tell(Pass *pass, Operation *op, bool hasFailed) {
    const Clock::time_point end = Clock::now();
    std::optional<Start> start;
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (auto found = running.find({pass, op}); found != running.end()) {
        start = found->second;
        running.erase(found);
      }
    }
    if (!start)
      return;
    const double ms = std::chrono::duration<double, std::milli>(end - start->time).count();
    std::string text = llvm::formatv("{0,-34} {1,8:f1} ms, ", pass->getArgument(), ms);
    const size_t count = countOperations(op);
    if (hasFailed)
      text += "failed";
    else if (OperationFingerPrint(op) == start->print)
      text += "no change";
    else if (count == start->count)
      text += std::to_string(count) + " operations changed";
    else
      text += std::to_string(start->count) + " operations to " + std::to_string(count);
    if (auto function = dyn_cast<func::FuncOp>(op))
      text += (" in @" + function.getSymName()).str();
    log::write("passes", text);
  }

  std::mutex mutex;
  llvm::DenseMap<std::pair<Pass *, Operation *>, Start> running;
};

} // namespace

void driver::addProgress(PassManager &manager, ModuleOp module) {
  progress::setWork(manager.size(), 0);
  manager.addInstrumentation(std::make_unique<CountPasses>(module));
}

void driver::addPassLog(PassManager &manager) {
  if (log::isEnabled("passes"))
    manager.addInstrumentation(std::make_unique<LogPasses>());
}

void driver::logShapes(ModuleOp module) {
  if (!log::isEnabled("shapes"))
    return;
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    auto symbols = function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr);
    function.walk([&](Operation *op) {
      SmallVector<StringRef> names = host::getNodeNames(op->getLoc());
      for (Value result : op->getResults()) {
        auto tensor = dyn_cast<RankedTensorType>(result.getType());
        if (!tensor || names.empty())
          continue;
        stream << "node \"" << llvm::join(names, "+") << "\": " << op->getName().stripDialect() << ": "
               << tensor.getElementType() << " (";
        llvm::interleaveComma(prim::getSizes(tensor), stream, [&](AffineExpr size) {
          if (std::optional<int64_t> number = prim::getConstantSize(size))
            stream << *number;
          else
            stream << prim::formatSize(size, symbols);
        });
        stream << ")\n";
      }
    });
  }
  log::write("shapes", text);
}
