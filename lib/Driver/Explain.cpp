//===- Explain.cpp - what the compiler did and why ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Explain.h"

#include "SizeText.h"

#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Prim/IR/Prim.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tc;
using llvm::json::Array;
using llvm::json::Object;

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

void driver::Explanation::addKernels(ModuleOp module) {
  kernels.clear();
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
    if (base::CostAttr cost = region.getCostAttr()) {
      kernel["flops"] = sizeToJson(cost.getFlopsExpr(), symbols);
      kernel["bytes"] = sizeToJson(cost.getBytesExpr(), symbols);
    }
    if (kernel::FusionAttr fusion = region.getFusionAttr())
      for (auto reason : fusion.getStopped().getAsRange<StringAttr>())
        stopped.push_back(llvm::json::fixUTF8(reason.getValue()));
    kernel["stopped"] = std::move(stopped);
    kernels.push_back(std::move(kernel));
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
  for (func::FuncOp function : functions)
    function.walk([&](host::LaunchOp) { ++launches; });
}

std::string driver::Explanation::toJson(llvm::StringRef model) const {
  Array unsupported;
  for (const UnsupportedNode &node : report.unsupported)
    unsupported.push_back(Object{{"node", llvm::json::fixUTF8(node.name)},
                                 {"domain", llvm::json::fixUTF8(node.domain)},
                                 {"type", llvm::json::fixUTF8(node.type)},
                                 {"opset", node.opset},
                                 {"reason", llvm::json::fixUTF8(node.reason)},
                                 {"count", node.count}});
  Object object{{"model", llvm::json::fixUTF8(model)},
                {"supported", report.unsupported.empty()},
                {"unsupported", std::move(unsupported)},
                {"kernel_count", int64_t(kernels.size())},
                {"kernels", Array(kernels)}};
  if (launches >= 0) {
    object["launch_count"] = launches;
    object["memory"] = Object(memory);
  }
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object))).str();
}

std::string driver::Explanation::toText(llvm::StringRef model) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (!report.unsupported.empty()) {
    int64_t count = 0;
    for (const UnsupportedNode &node : report.unsupported)
      count += node.count;
    stream << model << ": " << count << (count == 1 ? " node is" : " nodes are") << " not supported\n";
    for (const UnsupportedNode &node : report.unsupported)
      stream << llvm::formatv("  {0,4} x {1}{2} (opset {3}): {4}; first: \"{5}\"\n", node.count,
                              node.domain == "ai.onnx" || node.domain.empty() ? "" : node.domain + ".", node.type,
                              node.opset, node.reason, node.name);
    return text;
  }
  stream << model << ": " << kernels.size() << (kernels.size() == 1 ? " kernel\n" : " kernels\n");
  unsigned number = 0;
  for (const llvm::json::Value &value : kernels) {
    const Object &kernel = *value.getAsObject();
    stream << llvm::formatv("  {0,4}  ", number++);
    llvm::interleave(
        *kernel.getArray("operators"), stream, [&](const llvm::json::Value &op) { stream << *op.getAsString(); }, " ");
    auto print = [&](StringRef name, StringRef unit) {
      const llvm::json::Value *cost = kernel.get(name);
      if (!cost || cost->getAsNull())
        return;
      stream << "; ";
      if (auto expr = cost->getAsString())
        stream << *expr;
      else
        stream << cost->getAsInteger().value_or(0);
      stream << " " << unit;
    };
    print("flops", "flops");
    print("bytes", "bytes");
    stream << "\n";
    if (auto nodes = kernel.getString("nodes"); nodes && !nodes->empty())
      stream << "        nodes: " << *nodes << "\n";
    if (auto product = kernel.getString("product"))
      stream << "        product: " << *product << "\n";
    if (const Object *tuning = kernel.getObject("tuning"))
      stream << "        " << *tuning->getString("what") << "\n";
    for (const llvm::json::Value &reason : *kernel.getArray("stopped"))
      stream << "        stopped: " << *reason.getAsString() << "\n";
  }
  if (launches >= 0) {
    stream << "  " << launches << " launches";
    for (StringRef key : {"arena_bytes", "live_bytes", "weights_bytes"})
      if (const llvm::json::Value *bytes = memory.get(key)) {
        stream << ", " << key << " ";
        if (auto expr = bytes->getAsString())
          stream << *expr;
        else
          stream << bytes->getAsInteger().value_or(0);
      }
    stream << "\n";
  }
  return text;
}
