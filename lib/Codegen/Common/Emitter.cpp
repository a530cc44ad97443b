//===- Emitter.cpp - scalar and vector code for the values of a fused region --------------------------------------===//
//
// See Emitter.h for the idea.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Emission.h"
#include "Common/EmitterHelpers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {
bool same(const Index &a, const Index &b) {
  return a.base == b.base && a.step == b.step && a.repeat == b.repeat && a.modulus == b.modulus &&
         a.offsets == b.offsets && a.lanes == b.lanes;
}

enum Kind : unsigned { kAdd, kSub, kMul, kDiv, kRem, kMin };
} // namespace

const EmissionRegistry &EmissionRegistry::get() {
  static const EmissionRegistry registry = [] {
    EmissionRegistry r;
    addMovementEmissions(r);
    addReductionEmissions(r);
    addProductEmissions(r);
    return r;
  }();
  return registry;
}

//===--- basics ---------------------------------------------------------------------------------------------------===//

Emitter::Emitter(kernel::RegionOp region, machine::MachineAttr machine, OpBuilder &builder, Location loc, Value args,
                 unsigned inputs, unsigned outputs, ArrayRef<int64_t> symbols, bool hasScratch)
    : regionOp(region), machine(machine), unit(machine.getVectors()), b(builder), location(loc), args(args),
      inputCount(inputs), outputCount(outputs), hasScratch(hasScratch), symbolPositions(symbols) {
  scopes.emplace_back();
  entryMark = arith::ConstantIntOp::create(b, loc, b.getI64Type(), 0);
  b.setInsertionPointAfter(entryMark);
}

Value Emitter::atEntry(llvm::function_ref<Value()> fn) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entryMark);
  return fn();
}

Value Emitter::i64(int64_t value) {
  auto create = [&] {
    return atEntry([&]() -> Value { return arith::ConstantIntOp::create(b, location, b.getI64Type(), value); });
  };
  if (value == INT64_MAX || value == INT64_MIN) // keys that a DenseMap keeps for itself
    return create();
  Value &known = constants[value];
  if (!known)
    known = create();
  return known;
}

Value Emitter::arithmetic(unsigned kind, Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  switch (kind) {
  case kAdd:
    if (cx && cy)
      return i64(*cx + *cy);
    if (cx && *cx == 0)
      return y;
    if (cy && *cy == 0)
      return x;
    break;
  case kSub:
    if (cx && cy)
      return i64(*cx - *cy);
    if (cy && *cy == 0)
      return x;
    if (x == y)
      return i64(0);
    break;
  case kMul:
    if (cx && cy)
      return i64(*cx * *cy);
    if ((cx && *cx == 0) || (cy && *cy == 1))
      return x;
    if ((cy && *cy == 0) || (cx && *cx == 1))
      return y;
    break;
  case kDiv:
    if (cx && cy && *cy > 0)
      return i64(*cx / *cy);
    if (cy && *cy == 1)
      return x;
    break;
  case kRem:
    if (cx && cy && *cy > 0)
      return i64(*cx % *cy);
    if (cy && *cy == 1)
      return i64(0);
    break;
  case kMin:
    if (cx && cy)
      return i64(std::min(*cx, *cy));
    if (x == y)
      return x;
    break;
  }
  auto key = std::make_tuple(kind, x, y);
  for (Scope &scope : scopes)
    if (Value found = scope.arithmetic.lookup(key))
      return found;
  Value result;
  switch (kind) {
  case kAdd:
    result = arith::AddIOp::create(b, location, x, y);
    break;
  case kSub:
    result = arith::SubIOp::create(b, location, x, y);
    break;
  case kMul:
    result = arith::MulIOp::create(b, location, x, y);
    break;
  case kDiv:
    result = arith::DivUIOp::create(b, location, x, y);
    break;
  case kRem:
    result = arith::RemUIOp::create(b, location, x, y);
    break;
  case kMin:
    result = arith::MinSIOp::create(b, location, x, y);
    break;
  }
  scopes.back().arithmetic[key] = result;
  return result;
}

Value Emitter::add(Value x, Value y) { return arithmetic(kAdd, x, y); }
Value Emitter::sub(Value x, Value y) { return arithmetic(kSub, x, y); }
Value Emitter::mul(Value x, Value y) { return arithmetic(kMul, x, y); }
Value Emitter::divUnsigned(Value x, Value y) { return arithmetic(kDiv, x, y); }
Value Emitter::remUnsigned(Value x, Value y) { return arithmetic(kRem, x, y); }
Value Emitter::divFloor(const Index &x, Value y) {
  if (!x.mayPrecede)
    return divUnsigned(x.base, y);
  const auto cx = constantOf(x.base), cy = constantOf(y);
  if (cx && cy)
    return i64(llvm::divideFloorSigned(*cx, *cy));
  if (cy && llvm::isPowerOf2_64(*cy))
    return arith::ShRSIOp::create(b, location, x.base, i64(llvm::Log2_64(*cy)));
  return arith::FloorDivSIOp::create(b, location, x.base, y);
}
Value Emitter::remFloor(const Index &x, Value y) {
  return x.mayPrecede ? sub(x.base, mul(divFloor(x, y), y)) : remUnsigned(x.base, y);
}
Value Emitter::min(Value x, Value y) { return arithmetic(kMin, x, y); }

Value Emitter::isWithin(Value position, AffineExpr bound) {
  return arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, position, size(bound));
}

Value Emitter::isNot(Value condition) {
  return arith::XOrIOp::create(b, location, condition, arith::ConstantIntOp::create(b, location, b.getI1Type(), 1));
}

/// LLVM takes sums apart, as often as they are parts of longer ones: where the hundredth input of a concat begins has a
/// hundred terms, and so has each address in it. Sums of so many terms are hidden from it.
static constexpr unsigned kMostTerms = 8;

static unsigned countTerms(AffineExpr sum) {
  unsigned terms = 1;
  for (; sum.getKind() == AffineExprKind::Add; sum = cast<AffineBinaryOpExpr>(sum).getLHS())
    ++terms;
  return terms;
}

/// The divisor of a symbol of the function that the region is in.
static int64_t divisorOf(kernel::RegionOp region, unsigned position) {
  auto function = region->getParentOfType<func::FuncOp>();
  auto symbols = function ? function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr) : ArrayAttr();
  if (!symbols || position >= symbols.size())
    return 1;
  auto symbol = dyn_cast<prim::SymbolAttr>(symbols[position]);
  return symbol ? symbol.getDivisor() : 1;
}

int64_t Emitter::multipleOf(Value value, int depth) const {
  constexpr int kDeepest = 12;
  constexpr int64_t kMost = int64_t(1) << 30; // more is of no use, and products of two of them fit
  if (auto known = constantOf(value))
    return *known == INT64_MIN ? kMost : std::abs(*known);
  if (int64_t divisor = symbolDivisors.lookup(value))
    return divisor;
  if (depth == kDeepest)
    return 1;
  auto of = [&](Value part) { return multipleOf(part, depth + 1); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto forOp = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return forOp && forOp.getInductionVar() == value ? std::gcd(of(forOp.getLowerBound()), of(forOp.getStep())) : 1;
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::MulIOp>(op)) {
    const int64_t x = of(op->getOperand(0)), y = of(op->getOperand(1));
    return x > kMost || y > kMost ? std::max<int64_t>(x, y) : x * y;
  }
  if (isa<arith::DivUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op)) {
    const auto by = constantOf(op->getOperand(1));
    const int64_t x = of(op->getOperand(0));
    return by && *by > 0 && x % *by == 0 ? x / *by : 1;
  }
  return 1;
}

Value Emitter::throughMemory(Value value) {
  Value slot = stackBuffer(value.getType(), 1);
  LLVM::StoreOp::create(b, location, value, slot);
  return LLVM::LoadOp::create(b, location, value.getType(), slot, /*alignment=*/0, /*isVolatile=*/true);
}

Value Emitter::size(AffineExpr expr) {
  expr = prim::simplifySize(expr);
  if (auto constant = prim::getConstantSize(expr))
    return i64(*constant);
  if (Value known = sizeValues.lookup(expr))
    return known;
  Value result;
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    unsigned buffers = inputCount + outputCount + (hasScratch ? 1 : 0);
    const auto *found = llvm::find(symbolPositions, int64_t(symbol.getPosition()));
    if (found == symbolPositions.end()) {
      (void)fail("a size refers to a symbol that the launch does not pass", b.getI64Type());
      return i64(0);
    }
    unsigned word = buffers + (found - symbolPositions.begin());
    result = atEntry([&]() -> Value {
      Value at = LLVM::GEPOp::create(b, location, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(), args,
                                     ArrayRef<LLVM::GEPArg>{int32_t(word)});
      return LLVM::LoadOp::create(b, location, b.getI64Type(), at);
    });
    if (const int64_t divisor = divisorOf(regionOp, symbol.getPosition()); divisor > 1)
      symbolDivisors[result] = divisor;
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value x = size(binary.getLHS()), y = size(binary.getRHS());
    result = atEntry([&]() -> Value {
      switch (expr.getKind()) {
      case AffineExprKind::Add: {
        Value sum = arith::AddIOp::create(b, location, x, y);
        return countTerms(expr) % kMostTerms == 0 ? throughMemory(sum) : sum;
      }
      case AffineExprKind::Mul:
        return arith::MulIOp::create(b, location, x, y);
      case AffineExprKind::FloorDiv:
        return arith::FloorDivSIOp::create(b, location, x, y);
      case AffineExprKind::CeilDiv:
        return arith::CeilDivSIOp::create(b, location, x, y);
      default: { // mod, with the divisor's sign
        Value quotient = arith::FloorDivSIOp::create(b, location, x, y);
        return arith::SubIOp::create(b, location, x, arith::MulIOp::create(b, location, quotient, y));
      }
      }
    });
  }
  return sizeValues[expr] = result;
}

Value Emitter::sizeProduct(ArrayRef<AffineExpr> sizes) { return size(prim::product(b.getContext(), sizes)); }

Value Emitter::input(unsigned number) {
  Value &known = bufferValues[number];
  if (!known)
    known = atEntry([&]() -> Value {
      auto pointer = LLVM::LLVMPointerType::get(b.getContext());
      Value at =
          LLVM::GEPOp::create(b, location, pointer, b.getI64Type(), args, ArrayRef<LLVM::GEPArg>{int32_t(number)});
      return LLVM::LoadOp::create(b, location, pointer, at);
    });
  return known;
}
Value Emitter::output(unsigned number) { return input(inputCount + number); }

void Emitter::setWorker(Value worker, AffineExpr scratchBytes) {
  Value bytes = size(scratchBytes);
  workerScratch = atEntry([&]() -> Value {
    Value base = input(inputCount + outputCount);
    Value offset = arith::MulIOp::create(b, location, worker, bytes);
    return LLVM::GEPOp::create(b, location, base.getType(), b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset});
  });
}

Value Emitter::scratch(int64_t byteOffset) {
  return LLVM::GEPOp::create(b, location, workerScratch.getType(), b.getI8Type(), workerScratch,
                             ArrayRef<LLVM::GEPArg>{int32_t(byteOffset)});
}

void Emitter::prefetch(Value address, bool toFirstLevel) {
  LLVM::Prefetch::create(b, location, address, /*rw=*/0, /*hint=*/toFirstLevel ? 3 : 2, /*cache=*/1);
}

Value Emitter::address(Value pointer, Type type, Value elementOffset) {
  return LLVM::GEPOp::create(b, location, pointer.getType(), type, pointer, ArrayRef<LLVM::GEPArg>{elementOffset});
}

Value Emitter::opaque(Value pointer) {
  return LLVM::InlineAsmOp::create(b, location, pointer.getType(), pointer, /*asm_string=*/"", /*constraints=*/"=r,0",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   /*asm_dialect=*/LLVM::AsmDialectAttr(), /*operand_attrs=*/ArrayAttr())
      .getRes();
}

Value Emitter::stackBuffer(Type type, int64_t count) {
  Value number = i64(count);
  return atEntry([&]() -> Value {
    return LLVM::AllocaOp::create(b, location, LLVM::LLVMPointerType::get(b.getContext()), type, number,
                                  /*alignment=*/64);
  });
}

Type Emitter::memoryType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  return valueType(element);
}
int64_t Emitter::memoryBytes(Type elementType) { return memoryType(elementType).getIntOrFloatBitWidth() / 8; }

Type Emitter::valueType(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

Value Emitter::broadcast(Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(b, location, vectorOf(value.getType()), value);
}

Value Emitter::fail(Twine message, Type elementType) {
  if (!error)
    error = message.str();
  return LLVM::UndefOp::create(b, location, valueType(elementType));
}

//===--- values ---------------------------------------------------------------------------------------------------===//

void Emitter::setSource(Value tensor, Source source) {
  if (source)
    sources[tensor] = {std::move(source), int(scopes.size()) - 1};
  else
    sources.erase(tensor);
  sourceDepths.clear();
}
void Emitter::setPosition(Value tensor, ArrayRef<Index> at) { positions[tensor] = llvm::to_vector(at); }
void Emitter::clearSources() {
  sources.clear();
  sourceDepths.clear();
  positions.clear();
  for (Scope &scope : scopes)
    scope.known.clear();
}

int Emitter::sourceDepthOf(Value tensor) {
  if (sources.empty())
    return 0;
  if (auto found = sourceDepths.find(tensor); found != sourceDepths.end())
    return found->second;
  int depth = 0;
  if (auto found = sources.find(tensor); found != sources.end())
    depth = found->second.depth;
  else if (Operation *op = tensor.getDefiningOp())
    for (Value operand : op->getOperands())
      depth = std::max(depth, sourceDepthOf(operand));
  return sourceDepths[tensor] = depth;
}

Value Emitter::emit(Value tensor, ArrayRef<Index> at) {
  SmallVector<Index> exact;
  if (auto found = positions.find(tensor); found != positions.end()) {
    exact = found->second;
    at = exact;
  }
  if (auto found = sources.find(tensor); found != sources.end())
    return found->second.function(at);
  // A position of constants, or none, is known at the entry, but what is made of a source only where that is.
  int depth = std::max(depthOf(at), sourceDepthOf(tensor));
  return inScope(depth, [&]() -> Value {
    // Also in outer scopes: what they know of this position dominates.
    for (Scope &scope : scopes)
      for (auto &[position, value] : scope.known[tensor])
        if (position.size() == at.size() && llvm::all_of(llvm::zip_equal(position, at), [](auto pair) {
              return same(std::get<0>(pair), std::get<1>(pair));
            }))
          return value;
    Value value;
    if (std::optional<size_t> dim = sharedDim(at)) {
      SmallVector<Index> whole(at);
      whole[*dim].offsets = {};
      whole[*dim] = contiguous(whole[*dim]);
      value = emit(tensor, whole);
      if (isa<VectorType>(value.getType()))
        value = vector::ShuffleOp::create(b, location, value, value, at[*dim].offsets.asArrayRef());
    } else {
      value = emitUncached(tensor, at);
    }
    scopes.back().known[tensor].push_back({SmallVector<Index, 4>(at.begin(), at.end()), value});
    return value;
  });
}

std::optional<size_t> Emitter::sharedDim(ArrayRef<Index> at) const {
  std::optional<size_t> dim;
  for (auto [i, index] : llvm::enumerate(at)) {
    if (index.isUniform())
      continue;
    if (dim || !index.offsets || index.block < width())
      return std::nullopt;
    dim = i;
  }
  if (!dim || mask())
    return std::nullopt;
  const auto [first, last] = boundsOf(at[*dim], width());
  return first >= 0 && last < width() && last - first < width() / 2 ? dim : std::nullopt;
}

void Emitter::keepRow(Value tensor, Value user, ArrayRef<Index> at, Value buffer,
                      llvm::function_ref<void(Index)> onWay) {
  Type element = elementOf(tensor);
  setSource(tensor, [=](ArrayRef<Index> position) {
    Value value = emitUncached(tensor, position);
    storeAt(value, buffer, element, position.back());
    if (onWay)
      onWay(position.back());
    return value;
  });
  emit(user, at);
  setSource(tensor, [=](ArrayRef<Index> position) { return loadAt(buffer, element, position.back()); });
}

Value Emitter::constantTable(DenseElementsAttr values) {
  // A small table in the code: one internal global per distinct content.
  Operation *function = b.getInsertionBlock()->getParentOp();
  while (!isa<LLVM::LLVMFuncOp>(function))
    function = function->getParentOp();
  Type element = values.getElementType();
  int64_t count = values.getNumElements();
  const Type memory = memoryType(element);
  const auto type = RankedTensorType::get({count}, memory);
  DenseElementsAttr dense;
  if (memory == element && !values.isSplat()) {
    dense = values.reshape(type);
  } else {
    SmallVector<Attribute> elements;
    for (int64_t i = 0; i < count; ++i) {
      Attribute attr = values.isSplat() ? values.getSplatValue<Attribute>() : *(values.value_begin<Attribute>() + i);
      if (auto integer = dyn_cast<IntegerAttr>(attr))
        attr = IntegerAttr::get(memory, integer.getValue().zextOrTrunc(memory.getIntOrFloatBitWidth()));
      elements.push_back(attr);
    }
    dense = DenseElementsAttr::get(type, elements);
  }
  auto array = LLVM::LLVMArrayType::get(memory, count);
  Block *block = function->getBlock();
  LLVM::GlobalOp global;
  unsigned number = 0;
  for (auto existing : block->getOps<LLVM::GlobalOp>()) {
    if (existing.getValueOrNull() == dense && existing.getType() == array)
      global = existing;
    if (existing.getSymName().starts_with("table_"))
      ++number;
  }
  if (!global) {
    OpBuilder top(block, block->begin());
    global = LLVM::GlobalOp::create(top, location, array, /*isConstant=*/true, LLVM::Linkage::Internal,
                                    ("table_" + Twine(number)).str(), dense, /*alignment=*/64);
  }
  return atEntry([&]() -> Value { return LLVM::AddressOfOp::create(b, location, global); });
}

namespace {
/// `expr` as outer * factor + inner, or as outer alone (factor 1, no inner).
struct SplitDim {
  unsigned outer = 0;
  int64_t factor = 1;
  std::optional<unsigned> inner;
};
std::optional<SplitDim> splitDim(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return SplitDim{dim.getPosition(), 1, std::nullopt};
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return std::nullopt;
  auto product = dyn_cast<AffineBinaryOpExpr>(sum.getLHS());
  auto inner = dyn_cast<AffineDimExpr>(sum.getRHS());
  if (!product || !inner || product.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  auto outer = dyn_cast<AffineDimExpr>(product.getLHS());
  auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
  if (!outer || !factor || factor.getValue() < 1)
    return std::nullopt;
  return SplitDim{outer.getPosition(), factor.getValue(), inner.getPosition()};
}
} // namespace

bool tc::codegen::isReadableLayout(AffineMap map) {
  SmallVector<bool> seen(map.getNumDims(), false);
  auto mark = [&](unsigned dim) {
    bool fresh = !seen[dim];
    seen[dim] = true;
    return fresh;
  };
  for (AffineExpr expr : map.getResults()) {
    std::optional<SplitDim> split = splitDim(expr);
    if (!split || !mark(split->outer) || (split->inner && !mark(*split->inner)))
      return false;
  }
  return llvm::all_of(seen, [](bool used) { return used; });
}

void Emitter::setLayout(unsigned number, AffineMap map, RankedTensorType packed) { layouts[number] = {map, packed}; }

Value Emitter::emitUncached(Value tensor, ArrayRef<Index> at) {
  if (auto argument = dyn_cast<BlockArgument>(tensor); argument && layouts.contains(argument.getArgNumber())) {
    auto [map, packed] = layouts[argument.getArgNumber()];
    SmallVector<Index> place(packed.getRank());
    for (auto [index, expr] : llvm::zip_equal(at, map.getResults())) {
      SplitDim split = *splitDim(expr);
      if (split.inner)
        std::tie(place[split.outer], place[*split.inner]) =
            divide(index, getAffineConstantExpr(split.factor, b.getContext()));
      else
        place[split.outer] = index;
    }
    return load(input(argument.getArgNumber()), elementOf(tensor), prim::getSizes(packed), place);
  }
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    return load(input(argument.getArgNumber()), elementOf(tensor), prim::getSizes(tensor), at);
  Operation *op = tensor.getDefiningOp();
  if (lookupPointwise(op))
    return emitPointwise(op, at);
  if (const Emission *emission = EmissionRegistry::get().find(op))
    return emission->value(*this, op, at);
  isUnsupported = !error;
  return fail("no code generator of this target takes " + op->getName().getStringRef() + " inside a fused region",
              elementOf(tensor));
}

SmallVector<Index> Emitter::forward(Operation *op, ArrayRef<Index> at) {
  if (lookupPointwise(op))
    return llvm::to_vector(at);
  const Emission *emission = EmissionRegistry::get().find(op);
  return emission && emission->forward ? emission->forward(*this, op, at) : SmallVector<Index>();
}

Value Emitter::emitPointwise(Operation *op, ArrayRef<Index> at) {
  SmallVector<Value> operands;
  bool isVector = false;
  for (Value operand : op->getOperands()) {
    operands.push_back(emit(operand, at));
    isVector |= isa<VectorType>(operands.back().getType());
  }
  if (isVector)
    for (Value &operand : operands)
      operand = broadcast(operand);
  return lookupPointwise(op)(b, location, op, operands);
}

Value Emitter::andMask(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(b, location, broadcast(x), broadcast(y));
}

Value Emitter::emitGuarded(Value condition, Type elementType, Value otherwise, bool lanes,
                           llvm::function_ref<Value()> inside) {
  if (auto known = constantOf(condition))
    return *known ? inside() : otherwise;
  Type type = valueType(elementType);
  if (isa<VectorType>(condition.getType())) {
    // Lanes: loads honour the mask, so that nothing outside is touched.
    auto ifOp = scf::ExecuteRegionOp::create(b, location, TypeRange{vectorOf(type)});
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&ifOp.getRegion());
    Scope scope;
    scope.loop = ifOp;
    scope.barrier = true;
    scope.mask = andMask(mask(), condition);
    scopes.push_back(std::move(scope));
    Value value = broadcast(inside());
    Value result = arith::SelectOp::create(b, location, condition, value, broadcast(otherwise));
    scf::YieldOp::create(b, location, result);
    scopes.pop_back();
    return ifOp.getResult(0);
  }
  // One condition for all lanes.
  return branch(condition, elementType, lanes, inside, [&] { return otherwise; });
}

Value Emitter::branch(Value condition, Type elementType, bool lanes, llvm::function_ref<Value()> then,
                      llvm::function_ref<Value()> otherwise) {
  // The type of the value is known only once it is emitted: a scalar is broadcast at no cost.
  const Type type = lanes ? Type(vectorOf(valueType(elementType))) : valueType(elementType);
  auto ifOp = scf::IfOp::create(b, location, TypeRange{type}, condition, /*withElseRegion=*/true);
  for (bool isThen : {true, false}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(isThen ? ifOp.thenBlock() : ifOp.elseBlock());
    Scope scope;
    scope.loop = ifOp;
    scope.barrier = true;
    scope.mask = mask();
    scopes.push_back(std::move(scope));
    const Value value = isThen ? then() : otherwise();
    scf::YieldOp::create(b, location, ValueRange{lanes ? broadcast(value) : value});
    scopes.pop_back();
  }
  return ifOp.getResult(0);
}
