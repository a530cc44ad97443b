//===- HostCall.cpp - functions of the runtime, on a store of the interpreter's own -------------------------------===//
//
// The runtime's own code computes, so that there is one meaning of a string's or a sequence's operation.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Handlers.h"

#include "tc/Dialect/Prim/IR/HostCalls.h"
#include "tc/Dialect/TC/IR/Dtypes.h"
#include "tc/Functions/Store.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;
using namespace tc::prim::interpreter;

namespace {

/// A store with the constant strings of a function. The table must have the layout of the artifact's section.
class Store {
public:
  explicit Store(func::FuncOp function) {
    auto strings = function ? function->getAttrOfType<ArrayAttr>(kStringsAttr) : ArrayAttr();
    if (strings) {
      std::string characters;
      table.assign({strings.size(), 0});
      for (auto text : strings.getAsRange<StringAttr>()) {
        characters += text.getValue();
        table.push_back(characters.size());
      }
      size_t words = table.size();
      table.resize(words + llvm::divideCeil(characters.size(), 8) + 1);
      std::memcpy(table.data() + words, characters.data(), characters.size());
    }
    tcrt_store_init(&store, nullptr, strings ? reinterpret_cast<const tcrt_string_table_t *>(table.data()) : nullptr);
  }
  ~Store() { tcrt_store_destroy(&store); }
  Store(const Store &) = delete;

  tcrt_store_t store;

private:
  std::vector<uint64_t> table;
};

Results evalHostCall(const Call &call) {
  auto op = cast<HostCallOp>(call.op);
  tcrt_function_fn function = tcrt_find_function(op.getCallee().data(), op.getCallee().size());
  if (!function)
    return call.fail("\"" + op.getCallee() + "\" is a function outside of libtcrt, which the interpreter cannot call");
  std::shared_ptr<void> &state = call.frame.hostState();
  if (!state)
    state = std::make_shared<Store>(op->getParentOfType<func::FuncOp>());
  std::vector<Tensor> results;
  SmallVector<tcrt_operand_t> operands, outputs;
  ArrayRef<int64_t> words = op.getWords();
  auto describe = [&](Type element, ArrayRef<int64_t> shape, const void *data) {
    uint32_t dtype = base::getOperandDtype(element, words[operands.size() + outputs.size()]);
    return tcrt_operand_t{const_cast<void *>(data), shape.data(), dtype, uint32_t(shape.size())};
  };
  for (const Tensor &operand : call.operands)
    operands.push_back(describe(operand.elementType, operand.shape, operand.bytes.get()));
  results.reserve(call.shapes.size());
  for (auto [shape, element] : llvm::zip_equal(call.shapes, call.elementTypes)) {
    char *data;
    results.push_back(allocateTensor(element, shape, data));
    if (auto inits = op->getAttrOfType<DenseI64ArrayAttr>(kInitsAttr); inits && inits[outputs.size()] >= 0)
      std::memcpy(data, call.operands[size_t(inits[outputs.size()])].bytes.get(), results.back().sizeBytes());
    outputs.push_back(describe(element, results.back().shape, data));
  }
  tcrt_call_t record = {};
  record.operand_count = operands.size();
  record.result_count = outputs.size();
  record.operands = operands.data();
  record.results = outputs.data();
  if (function(&tcrt_services, &static_cast<Store *>(state.get())->store, &record) != TCRT_OK)
    return call.fail(tcrt_last_error());
  return results;
}

/// A run begins with the value of a new context.
Results evalReadState(const Call &call) {
  auto op = cast<ReadStateOp>(call.op);
  auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(op, op.getStateAttr());
  if (!state)
    return call.fail("there is no state @" + op.getState());
  std::optional<Tensor> initial;
  if (state.getInitial()) {
    initial = fromAttribute(*state.getInitial());
    if (!initial)
      return call.fail("the bytes of the state @" + op.getState() + " are missing");
  } else {
    char *data;
    auto type = cast<RankedTensorType>(state.getType());
    initial = allocateTensor(type.getElementType(), type.getShape(), data);
    std::memset(data, 0, initial->sizeBytes());
  }
  return std::vector<Tensor>{convertFloats(*initial, call.elementTypes[0])};
}

/// The next run is another interpreter's.
Results evalWriteState(const Call &) { return std::vector<Tensor>(); }

} // namespace

void tc::prim::interpreter::addHostCallHandlers(Registry &registry) {
  registry.add(HostCallOp::getOperationName(), evalHostCall);
  registry.add(ReadStateOp::getOperationName(), evalReadState);
  registry.add(WriteStateOp::getOperationName(), evalWriteState);
}
