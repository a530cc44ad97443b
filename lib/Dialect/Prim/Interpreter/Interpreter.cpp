//===- Interpreter.cpp - runs functions, blocks and single ops ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Interpreter/Interpreter.h"
#include "Handlers.h"

#include "tc/Support/Saturate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstring>
#include <unistd.h>

using namespace tc;
using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

template <typename... Args> static llvm::Error makeError(const char *format, Args &&...args) {
  return llvm::make_error<llvm::StringError>(llvm::formatv(format, std::forward<Args>(args)...).str(),
                                             llvm::inconvertibleErrorCode());
}

std::string tc::prim::interpreter::describeNode(Operation *op) {
  std::string text;
  op->getLoc()->walk([&](Location loc) {
    if (auto name = dyn_cast<NameLoc>(loc)) {
      text = name.getName().str();
      return WalkResult::interrupt();
    }
    if (auto file = dyn_cast<FileLineColLoc>(loc); file && text.empty())
      text = llvm::formatv("{0}:{1}", file.getFilename().getValue(), file.getLine()).str();
    return WalkResult::advance();
  });
  return text.empty() ? op->getName().getStringRef().str() : text;
}

llvm::Error Call::fail(const Twine &what) const {
  return makeError("node \"{0}\": {1}: {2}", describeNode(op), op->getName().getStringRef(), what.str());
}

//===--- registry -------------------------------------------------------------------------------------------------===//

const Registry &Registry::get() {
  static const Registry registry = [] {
    Registry r;
    addSourceHandlers(r);
    addElementwiseHandlers(r);
    addMovementHandlers(r);
    addGatherHandlers(r);
    addReductionHandlers(r);
    addContractionHandlers(r);
    addCompositeHandlers(r);
    addControlFlowHandlers(r);
    addHostCallHandlers(r);
    return r;
  }();
  return registry;
}

const Handler *Registry::find(StringRef name) const {
  auto it = handlers.find(name);
  return it == handlers.end() ? nullptr : &it->second;
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const auto &entry : handlers)
    names.push_back(entry.getKey().str());
  llvm::sort(names);
  return names;
}

std::vector<std::string> tc::prim::getInterpretedOps() { return Registry::get().names(); }

//===--- sizes ----------------------------------------------------------------------------------------------------===//

Type Frame::getHeldType(Type elementType) const {
  if (auto complex = dyn_cast<ComplexType>(elementType))
    return ComplexType::get(getHeldType(complex.getElementType()));
  auto real = dyn_cast<FloatType>(elementType);
  if (options.evaluateInDouble && real && real.getWidth() > 8)
    return Float64Type::get(elementType.getContext());
  return elementType;
}

llvm::Expected<int64_t> Frame::evaluate(AffineExpr expr) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    auto it = symbols.find(symbol.getPosition());
    if (it == symbols.end())
      return makeError("size symbol s{0} has no value here", symbol.getPosition());
    return it->second;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return makeError("size expression mentions a dim");
  llvm::Expected<int64_t> lhs = evaluate(binary.getLHS()), rhs = evaluate(binary.getRHS());
  if (!lhs || !rhs)
    return llvm::joinErrors(lhs.takeError(), rhs.takeError());
  int64_t a = *lhs, b = *rhs, result;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    if (llvm::AddOverflow(a, b, result))
      return makeError("size overflows 64 bits");
    return result;
  case AffineExprKind::Mul:
    if (llvm::MulOverflow(a, b, result))
      return makeError("size overflows 64 bits");
    return result;
  default:
    break;
  }
  if (b <= 0)
    return makeError("size divides by {0}", b);
  int64_t quotient = a / b - (a % b < 0);
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return quotient;
  if (expr.getKind() == AffineExprKind::Mod)
    return a - quotient * b;
  return quotient + (a % b != 0);
}

llvm::Expected<Shape> Frame::evaluate(AffineMap map) const {
  Shape result;
  for (AffineExpr expr : map.getResults()) {
    llvm::Expected<int64_t> size = evaluate(expr);
    if (!size)
      return size.takeError();
    result.push_back(*size);
  }
  return result;
}

llvm::Expected<Shape> Frame::evaluateSizes(Type type) const {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return makeError("only ranked tensors can be evaluated");
  if (!tensor.hasStaticShape() && !isa_and_nonnull<DimsAttr>(tensor.getEncoding()))
    return makeError("a dynamic size has no expression (#prim.dims)");
  Shape shape;
  for (AffineExpr expr : getSizes(type)) {
    llvm::Expected<int64_t> size = evaluate(expr);
    if (!size)
      return size.takeError();
    shape.push_back(*size);
  }
  if (countElements(shape) < 0)
    return makeError("sizes [{0}] are negative or too large", llvm::make_range(shape.begin(), shape.end()));
  return shape;
}

llvm::Error Frame::bindSizes(Type type, ArrayRef<int64_t> shape, bool rebind) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != int64_t(shape.size()))
    return makeError("rank is {0}, expected {1}", shape.size(), tensor ? tensor.getRank() : -1);
  if (!tensor.hasStaticShape() && !isa_and_nonnull<DimsAttr>(tensor.getEncoding()))
    return makeError("a dynamic size has no expression (#prim.dims)");
  SmallVector<AffineExpr> sizes = getSizes(type);
  for (auto [expr, size] : llvm::zip_equal(sizes, shape)) {
    int64_t factor = 1;
    // s * c, as simplification writes it, has one solution.
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr); binary && expr.getKind() == AffineExprKind::Mul)
      if (std::optional<int64_t> constant = getConstantSize(binary.getRHS()); constant && *constant > 0) {
        factor = *constant;
        expr = binary.getLHS();
      }
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr); symbol && size % factor == 0)
      if (rebind || !symbols.contains(symbol.getPosition()))
        symbols[symbol.getPosition()] = size / factor;
  }
  for (auto [i, expr] : llvm::enumerate(sizes)) {
    // Unknown symbols in compound expressions get their value later, from another input.
    llvm::Expected<int64_t> size = evaluate(expr);
    if (!size)
      llvm::consumeError(size.takeError());
    else if (*size != shape[i])
      return makeError("dim {0} has size {1}, expected {2}", i, shape[i], *size);
  }
  return llvm::Error::success();
}

//===--- budget ---------------------------------------------------------------------------------------------------===//

namespace {

/// Elements that pointwise ops compute at a time: handlers hold numbers of 64 bits, whatever the element type.
constexpr int64_t kChunk = 1 << 18;
/// In steps: what an op costs beside its elements, and an element of an operand or result.
constexpr int64_t kStepsOfOp = 1000, kStepsOfElement = 4;
/// Multiplications and additions of products in a step.
constexpr int64_t kFlopsOfStep = 4;
/// So many bytes are asked for before they are taken; fewer are there or nothing is.
constexpr int64_t kMuch = int64_t(64) << 20;

bool isComputedInChunks(const Call &call) {
  return call.op->hasTrait<PointwiseTrait>() && call.shapes.size() == 1 && countElements(call.shapes[0]) > kChunk;
}

/// At most what evaluating the op allocates.
int64_t estimateBytes(const Call &call) {
  int64_t bytes = 0, elements = 0;
  for (auto [shape, type] : llvm::zip_equal(call.shapes, call.elementTypes)) {
    int64_t count = countElements(shape);
    elements = saturatingAdd(elements, count);
    bytes = saturatingAdd(bytes, saturatingMul(count, getElementBytes(type)));
  }
  // They copy elements as they are.
  if (isa<ConstantOp, SplatOp, IotaOp>(call.op) || isComputedInChunks(call) ||
      (getRole(call.op) == Role::Movement && getAccess(call.op) != Access::AtData))
    return isa<ReshapeOp>(call.op) ? 0 : bytes;
  for (const Tensor &operand : call.operands)
    elements = saturatingAdd(elements, operand.numElements());
  // As numbers of 64 bits, and once more in another order.
  return saturatingAdd(bytes, saturatingMul(elements, 16));
}

int64_t estimateSteps(const Call &call, const Frame &frame) {
  int64_t elements = 0;
  for (const Shape &shape : call.shapes)
    elements = saturatingAdd(elements, countElements(shape));
  for (const Tensor &operand : call.operands)
    elements = saturatingAdd(elements, operand.numElements());
  if (isa<ConstantOp, ReshapeOp>(call.op))
    elements = 0;
  int64_t flops = 0;
  const Role role = getRole(call.op);
  const bool combines = role == Role::Contraction || role == Role::Window || role == Role::Alone;
  if (auto cost = dyn_cast<CostOpInterface>(call.op); cost && combines) {
    if (llvm::Expected<int64_t> known = frame.evaluate(cost.getFlops()))
      flops = std::max<int64_t>(*known, 0);
    else
      flops = (llvm::consumeError(known.takeError()), 0);
  }
  return saturatingAdd(saturatingAdd(kStepsOfOp, saturatingMul(elements, kStepsOfElement)), flops / kFlopsOfStep);
}

/// Whether the process may have so much more memory: of the machine's, and of what a limit leaves of address space.
bool isThere(int64_t bytes) {
  if (bytes < kMuch)
    return true;
  if (bytes > saturatingMul(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE)))
    return false;
  void *probe = std::malloc(size_t(bytes));
  std::free(probe);
  return probe != nullptr;
}

} // namespace

llvm::Error Frame::spend(const Call &call) {
  // Ops with regions cost what is inside.
  const int64_t bytes = call.op->getNumRegions() == 0 ? estimateBytes(call) : 0;
  if (InterpretBudget *budget = options.budget) {
    const int64_t steps = estimateSteps(call, *this);
    if (steps > budget->steps)
      return call.fail("takes longer than the budget allows");
    budget->steps -= steps;
    if (saturatingAdd(bytes, heldBytes) > budget->bytes)
      return call.fail("takes more memory than the budget allows");
  }
  if (!isThere(bytes))
    return call.fail("takes more memory than there is");
  return llvm::Error::success();
}

/// Runs a pointwise op on parts of its operands.
static Results runInChunks(const Handler &handler, const Call &call) {
  char *bytes;
  Tensor result = allocateTensor(call.elementTypes[0], call.shapes[0], bytes);
  const int64_t count = result.numElements(), elementBytes = getElementBytes(result.elementType);
  for (const Tensor &operand : call.operands)
    if (operand.numElements() != count)
      return call.fail("an operand has other sizes than the result");
  for (int64_t at = 0; at < count; at += kChunk) {
    const Shape part{std::min(kChunk, count - at)};
    SmallVector<Tensor> operands;
    for (const Tensor &operand : call.operands)
      operands.push_back({operand.elementType, part,
                          std::shared_ptr<const char>(operand.bytes, operand.bytes.get() +
                                                                         at * getElementBytes(operand.elementType))});
    Results computed = handler(Call{call.op, operands, part, call.elementTypes, call.frame});
    if (!computed)
      return computed;
    std::memcpy(bytes + at * elementBytes, computed->front().bytes.get(), part[0] * elementBytes);
  }
  return std::vector<Tensor>{std::move(result)};
}

//===--- running --------------------------------------------------------------------------------------------------===//

Results tc::prim::interpreter::runHandler(Operation *op, ArrayRef<Tensor> operands, Frame &frame) {
  const Handler *handler = Registry::get().find(op->getName().getStringRef());
  if (!handler)
    return makeError("node \"{0}\": {1} can't be interpreted", describeNode(op), op->getName().getStringRef());
  SmallVector<Shape> shapes;
  SmallVector<Type> elementTypes;
  Call call{op, operands, {}, {}, frame};
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !isSupportedElementType(tensor.getElementType()))
      return call.fail("the type of a result can't be interpreted");
    elementTypes.push_back(frame.getHeldType(tensor.getElementType()));
    if (op->getNumRegions() != 0)
      continue;
    llvm::Expected<Shape> shape = frame.evaluateSizes(type);
    if (!shape)
      return call.fail(llvm::toString(shape.takeError()));
    shapes.push_back(std::move(*shape));
  }
  call.shapes = shapes;
  call.elementTypes = elementTypes;
  if (llvm::Error error = frame.spend(call))
    return std::move(error);
  Results results = isComputedInChunks(call) ? runInChunks(*handler, call) : (*handler)(call);
  if (!results)
    return results;
  if (results->size() != op->getNumResults())
    return call.fail("gave another number of results than the op has");
  for (size_t i = 0; i < results->size(); ++i) {
    if (op->getNumRegions() == 0 && (*results)[i].shape != shapes[i])
      return call.fail(llvm::formatv("result {0} has sizes [{1}], its type says [{2}]", i,
                                     llvm::make_range((*results)[i].shape.begin(), (*results)[i].shape.end()),
                                     llvm::make_range(shapes[i].begin(), shapes[i].end()))
                           .str());
    if ((*results)[i].elementType != elementTypes[i])
      return call.fail(llvm::formatv("result {0} has another element type than its type says", i).str());
  }
  return results;
}

llvm::Error Frame::setValue(Value value, Tensor tensor) {
  if (options.onValue)
    if (llvm::Error error = options.onValue(value, tensor))
      return error;
  dropValue(value);
  heldBytes += tensor.sizeBytes();
  values[value] = std::move(tensor);
  return llvm::Error::success();
}

void Frame::dropValue(Value value) {
  if (auto it = values.find(value); it != values.end()) {
    heldBytes -= it->second.sizeBytes();
    values.erase(it);
  }
}

const SmallVector<Value> &Frame::lastUses(Operation *op) {
  Block *block = op->getBlock();
  if (analyzed.insert(block).second) {
    DenseSet<Value> seen;
    for (Operation &user : llvm::reverse(*block)) {
      SmallVector<Value> &last = dead[&user];
      // Only values that this block defines: those from outside may be needed in its next iteration.
      auto visit = [&](Value value) {
        if (value.getParentBlock() == block && seen.insert(value).second)
          last.push_back(value);
      };
      user.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), visit); });
      llvm::for_each(user.getResults(), visit); // never read
    }
  }
  return dead[op];
}

llvm::Error Frame::runOp(Operation *op) {
  SmallVector<Tensor> operands;
  for (Value operand : op->getOperands()) {
    auto it = values.find(operand);
    if (it == values.end())
      return makeError("node \"{0}\": an operand of {1} has no value", describeNode(op), op->getName().getStringRef());
    operands.push_back(it->second);
  }
  Results results = runHandler(op, operands, *this);
  if (!results)
    return results.takeError();
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), *results)) {
    if (op->getNumRegions() != 0)
      if (llvm::Error error = bindSizes(value.getType(), tensor.shape, /*rebind=*/true))
        return makeError("node \"{0}\": {1}: a result's {2}", describeNode(op), op->getName().getStringRef(),
                         llvm::toString(std::move(error)));
    if (llvm::Error error = setValue(value, std::move(tensor)))
      return error;
  }
  return llvm::Error::success();
}

Results Frame::runRegion(Region &region, ArrayRef<Tensor> arguments) {
  if (!region.hasOneBlock())
    return makeError("only regions of one block can be interpreted");
  Block &block = region.front();
  if (block.getNumArguments() != arguments.size())
    return makeError("a region takes {0} values and got {1}", block.getNumArguments(), arguments.size());
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments)) {
    if (llvm::Error error = bindSizes(argument.getType(), tensor.shape, /*rebind=*/true))
      return std::move(error);
    if (llvm::Error error = setValue(argument, tensor))
      return std::move(error);
  }
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      std::vector<Tensor> yielded;
      for (Value operand : op.getOperands()) {
        auto it = values.find(operand);
        if (it == values.end())
          return makeError("node \"{0}\": an operand of {1} has no value", describeNode(&op),
                           op.getName().getStringRef());
        yielded.push_back(it->second);
      }
      for (Value value : lastUses(&op))
        dropValue(value);
      return yielded;
    }
    if (llvm::Error error = runOp(&op))
      return std::move(error);
    for (Value value : lastUses(&op))
      dropValue(value);
  }
  return makeError("a region ends without a terminator");
}

llvm::Expected<std::vector<Tensor>> tc::prim::interpret(func::FuncOp func, ArrayRef<Tensor> inputs,
                                                        const InterpretOptions &options) {
  if (func.isExternal())
    return makeError("function @{0} has no body", func.getName());
  if (inputs.size() != func.getNumArguments())
    return makeError("function @{0} takes {1} inputs and got {2}", func.getName(), func.getNumArguments(),
                     inputs.size());
  Frame frame(options);
  SmallVector<Tensor> converted;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto type = dyn_cast<RankedTensorType>(func.getArgumentTypes()[i]);
    if (!type || !isSupportedElementType(type.getElementType()))
      return makeError("input {0} has a type that can't be interpreted", i);
    Type held = frame.getHeldType(type.getElementType());
    if (input.elementType != held && !(isa<FloatType>(input.elementType) && isa<FloatType>(held)) &&
        !(isa<ComplexType>(input.elementType) && isa<ComplexType>(held)))
      return makeError("input {0} has element type {1}, expected {2}", i, input.elementType, held);
    converted.push_back(convertFloats(input, held));
    if (llvm::Error error = frame.bindSizes(type, input.shape, /*rebind=*/false))
      return makeError("input {0}: {1}", i, llvm::toString(std::move(error)));
  }
  // Once more, now that all symbols are known.
  for (auto [i, input] : llvm::enumerate(inputs))
    if (llvm::Error error = frame.bindSizes(func.getArgumentTypes()[i], input.shape, /*rebind=*/false))
      return makeError("input {0}: {1}", i, llvm::toString(std::move(error)));
  return frame.runRegion(func.getBody(), converted);
}

bool tc::prim::canInterpretOp(Operation *op) {
  auto supported = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && isSupportedElementType(tensor.getElementType());
  };
  // Words mean something to one run alone.
  return op->getNumRegions() == 0 && op->getNumResults() > 0 && isMemoryEffectFree(op) && !isa<HostCallOp>(op) &&
         llvm::all_of(op->getResultTypes(), supported) && llvm::all_of(op->getOperandTypes(), supported) &&
         Registry::get().find(op->getName().getStringRef());
}

llvm::Expected<std::vector<Tensor>> tc::prim::interpretOp(Operation *op, ArrayRef<Tensor> operands,
                                                          InterpretBudget *budget) {
  InterpretOptions options;
  options.budget = budget;
  Frame frame(options);
  return runHandler(op, operands, frame);
}
