//===- Emitter.cpp - scalar and vector code for the values of a fused region --------------------------------------===//
//
// See Emitter.h for the idea.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {
Type elementOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

std::optional<int64_t> constantOf(Value value) {
  IntegerAttr attr;
  if (value && matchPattern(value, m_Constant(&attr)))
    return attr.getInt();
  return std::nullopt;
}

bool same(const Index &a, const Index &b) {
  return a.base == b.base && a.step == b.step && a.repeat == b.repeat && a.modulus == b.modulus &&
         a.offsets == b.offsets && a.lanes == b.lanes;
}

bool anyLanes(ArrayRef<Index> at) {
  return llvm::any_of(at, [](const Index &index) { return !index.isUniform(); });
}

enum Kind : unsigned { kAdd, kSub, kMul, kDiv, kRem, kMin };
} // namespace

//===--- basics ---------------------------------------------------------------------------------------------------===//

Emitter::Emitter(kernel::RegionOp region, const CpuInfo &cpu, OpBuilder &builder, Location loc, Value args,
                 unsigned inputs, unsigned outputs, ArrayRef<int64_t> symbols, bool hasScratch)
    : regionOp(region), cpuInfo(cpu), b(builder), location(loc), args(args), inputCount(inputs), outputCount(outputs),
      hasScratch(hasScratch), symbolPositions(symbols) {
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
  Value &known = constants[value];
  if (!known)
    known = atEntry([&]() -> Value { return arith::ConstantIntOp::create(b, location, b.getI64Type(), value); });
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
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value x = size(binary.getLHS()), y = size(binary.getRHS());
    result = atEntry([&]() -> Value {
      switch (expr.getKind()) {
      case AffineExprKind::Add:
        return arith::AddIOp::create(b, location, x, y);
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

//===--- scopes ---------------------------------------------------------------------------------------------------===//

int Emitter::depthOf(ArrayRef<Index> at) const {
  int depth = 0;
  for (const Index &index : at)
    depth = std::max(depth, index.depth);
  return depth;
}

Value Emitter::inScope(int depth, llvm::function_ref<Value()> fn) {
  int current = int(scopes.size()) - 1;
  for (int i = current; i > depth; --i)
    if (scopes[i].barrier)
      depth = i;
  if (depth >= current)
    return fn();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(scopes[depth + 1].loop);
  std::vector<Scope> inner(std::make_move_iterator(scopes.begin() + depth + 1), std::make_move_iterator(scopes.end()));
  scopes.resize(depth + 1);
  Value result = fn();
  for (Scope &scope : inner)
    scopes.push_back(std::move(scope));
  return result;
}

Value Emitter::mask() const { return scopes.back().mask; }

SmallVector<Value> Emitter::loop(Value lower, Value upper, int64_t step, ValueRange inits,
                                 llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body, int64_t multiple) {
  auto forOp = scf::ForOp::create(b, location, lower, upper, i64(step), inits);
  OpBuilder::InsertionGuard guard(b);
  if (inits.empty())
    b.setInsertionPoint(forOp.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(forOp.getBody());
  Scope scope;
  scope.loop = forOp;
  scope.mask = mask();
  scopes.push_back(std::move(scope));
  Index iv;
  iv.base = forOp.getInductionVar();
  iv.depth = int(scopes.size()) - 1;
  auto constantLower = constantOf(lower);
  iv.multiple = std::gcd(constantLower ? *constantLower : multiple, step);
  SmallVector<Value> results = body(iv, forOp.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(b, location, results);
  scopes.pop_back();
  return llvm::to_vector(ValueRange(forOp.getResults()));
}

SmallVector<Value> Emitter::reduceLoop(prim::ReduceKind kind, Type accumulator, Value lower, Value upper, int64_t step,
                                       ValueRange inits, std::optional<int64_t> stepsWithin,
                                       llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body,
                                       int64_t multiple) {
  // A piece costs the start of a loop and a mispredicted end: little beside so many steps.
  constexpr int64_t kPartialSteps = 128, kLeastWithin = 32;
  const int64_t within = stepsWithin.value_or(kPartialSteps), most = std::max<int64_t>(1, kPartialSteps / within);
  const std::optional<int64_t> from = constantOf(lower), to = constantOf(upper);
  const std::optional<int64_t> turns = from && to ? std::optional(llvm::divideCeil(*to - *from, step)) : std::nullopt;
  const bool isShort = turns && *turns * within <= 2 * kPartialSteps;
  if (!addsInPieces(kind, accumulator) || team || isShort)
    return loop(lower, upper, step, inits, body, multiple);
  auto addTo = [&](ValueRange sums, ValueRange part) {
    return llvm::map_to_vector(llvm::zip_equal(sums, part), [&](auto pair) {
      return combine(kind, accumulator, std::get<0>(pair), std::get<1>(pair));
    });
  };
  const Value zero = neutral(kind, accumulator);
  SmallVector<Value> start;
  for (Value init : inits)
    start.push_back(isa<VectorType>(init.getType()) ? broadcast(zero) : zero);
  // What the body does is a piece.
  if (within >= kLeastWithin)
    return loop(
        lower, upper, step, inits,
        [&](Index at, ValueRange sums) { return SmallVector<Value>(addTo(sums, body(at, start))); }, multiple);
  const bool isWhole = turns && *turns % most == 0;
  return loop(
      lower, upper, step * most, inits,
      [&](Index first, ValueRange sums) {
        const Value end = add(first.base, i64(step * most));
        return SmallVector<Value>(
            addTo(sums, loop(first.base, isWhole ? end : min(end, upper), step, start, body, first.multiple)));
      },
      multiple);
}

void Emitter::loop(Value lower, Value upper, int64_t step, llvm::function_ref<void(Index)> body, int64_t multiple) {
  loop(
      lower, upper, step, ValueRange{},
      [&](Index iv, ValueRange) {
        body(iv);
        return SmallVector<Value>{};
      },
      multiple);
}

namespace {
/// vector<width x i1>: lane < remaining.
Value tailMask(Emitter &e, Value remaining) {
  OpBuilder &b = e.builder();
  SmallVector<int32_t> lanes(e.width());
  std::iota(lanes.begin(), lanes.end(), 0);
  auto type = e.vectorOf(b.getI32Type());
  Value iota = arith::ConstantOp::create(b, e.loc(), DenseElementsAttr::get(type, ArrayRef<int32_t>(lanes)));
  Value limit = arith::TruncIOp::create(b, e.loc(), b.getI32Type(), e.min(remaining, e.i64(e.width())));
  return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, iota, e.broadcast(limit));
}
} // namespace

Value Emitter::lanesWithin(Value first, Value end) {
  auto bit = [&](Value lane) -> Value {
    const Value within = min(arith::MaxSIOp::create(b, location, lane, i64(0)), i64(width()));
    return arith::ShLIOp::create(b, location, i64(1), within);
  };
  const Value on = arith::TruncIOp::create(b, location, b.getIntegerType(width()), sub(bit(end), bit(first)));
  return LLVM::BitcastOp::create(b, location, vectorOf(b.getI1Type()), on);
}

SmallVector<Value> Emitter::laneLoop(Value count, std::optional<int64_t> constantCount, ValueRange inits,
                                     llvm::function_ref<SmallVector<Value>(Index, ValueRange)> body, Value lower) {
  Value zero = lower ? lower : i64(0);
  int64_t w = width();
  bool aligned = constantCount && *constantCount % w == 0;
  Value span = sub(count, zero);
  Value full = aligned ? count : add(zero, mul(divUnsigned(span, i64(w)), i64(w)));
  auto constantLower = constantOf(zero), constantFull = constantOf(full);
  SmallVector<Value> carried(inits);
  if (!(constantFull && constantLower && *constantFull <= *constantLower))
    carried = loop(
        zero, full, w, carried,
        [&](Index iv, ValueRange values) {
          scopes.back().mask = {};
          return body(contiguous(iv), values);
        },
        w);
  if (aligned)
    return carried;
  return loop(
      full, count, w, carried,
      [&](Index iv, ValueRange values) {
        scopes.back().mask = tailMask(*this, sub(count, iv.base));
        return body(contiguous(iv), values);
      },
      w);
}

void Emitter::laneLoop(Value count, std::optional<int64_t> constantCount, llvm::function_ref<void(Index)> body,
                       Value lower) {
  laneLoop(
      count, constantCount, ValueRange{},
      [&](Index at, ValueRange) {
        body(at);
        return SmallVector<Value>{};
      },
      lower);
}

void Emitter::independentLanes(Value count, std::optional<int64_t> constantCount, llvm::function_ref<void(Index)> body,
                               Value lower) {
  laneLoop(
      count, constantCount,
      [&](Index lane) {
        if (!mask())
          scopes.back().loop->setAttr(kIndependentLanes, b.getUnitAttr());
        body(lane);
      },
      lower);
}

void Emitter::laneBlocks(Value count, std::optional<int64_t> constantCount, int64_t vectors,
                         llvm::function_ref<void(ArrayRef<Index>)> body, Value lower) {
  Value from = lower ? lower : i64(0);
  if (vectors > 1) {
    const Value block = i64(vectors * width());
    const Value whole = add(from, mul(divUnsigned(sub(count, from), block), block));
    loop(
        from, whole, vectors * width(),
        [&](Index first) {
          SmallVector<Index> lanes;
          for (int64_t i = 0; i < vectors; ++i)
            lanes.push_back(contiguous(addIndex(first, constant(i * width()))));
          body(lanes);
        },
        width());
    from = whole;
  }
  laneLoop(count, constantCount, [&](Index lane) { body(lane); }, from);
}

void Emitter::ifThen(Value condition, llvm::function_ref<void()> then) {
  auto ifOp = scf::IfOp::create(b, location, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  Scope scope;
  scope.loop = ifOp;
  scope.barrier = true;
  scope.mask = mask();
  scopes.push_back(std::move(scope));
  then();
  scopes.pop_back();
}

void Emitter::withMask(Value mask, llvm::function_ref<void()> fn) {
  const Value before = scopes.back().mask;
  scopes.back().mask = mask;
  fn();
  scopes.back().mask = before;
}

//===--- positions ------------------------------------------------------------------------------------------------===//

Index Emitter::constant(int64_t position) {
  Index index;
  index.base = i64(position);
  index.multiple = std::abs(position);
  return index;
}

Index Emitter::uniform(Value position, int64_t multiple) {
  if (auto known = constantOf(position))
    return constant(*known);
  Index index;
  index.base = position;
  index.multiple = multiple;
  index.depth = int(scopes.size()) - 1;
  return index;
}

Index Emitter::contiguous(Index base) {
  base.parts = nullptr;
  base.divided = nullptr;
  base.window = nullptr;
  base.step = 1;
  return base;
}

Index Emitter::withOffsets(Index index, ArrayRef<int64_t> offsets) {
  index.parts = nullptr;
  index.divided = nullptr;
  index.window = nullptr;
  index.step = 0;
  index.repeat = 1;
  index.modulus = 0;
  index.offsets = b.getDenseI64ArrayAttr(offsets);
  return index;
}

Index Emitter::partOf(Index base, int64_t first, int64_t count, int64_t block) {
  SmallVector<int64_t> offsets;
  for (int64_t lane = 0; lane < width(); ++lane)
    offsets.push_back(std::min(first + lane, count - 1));
  base.block = block;
  return withOffsets(base, offsets);
}

std::pair<Index, Index> Emitter::partOfRows(Index first, int64_t part, int64_t number) {
  SmallVector<int64_t> rows, elements;
  for (int64_t lane = 0; lane < width(); ++lane) {
    rows.push_back((number * width() + lane) / part);
    elements.push_back((number * width() + lane) % part);
  }
  first.block = width();
  return {simplified(withOffsets(first, rows)), simplified(withOffsets(constant(0), elements))};
}

Index Emitter::simplified(Index index) {
  if (!index.offsets)
    return index;
  const ArrayRef<int64_t> offsets = index.offsets;
  const bool isUniform = llvm::all_equal(offsets);
  if (!isUniform && !llvm::equal(offsets, llvm::seq(offsets.front(), offsets.front() + width())))
    return index;
  index.base = inScope(index.depth, [&, first = offsets.front()] { return add(index.base, i64(first)); });
  index.multiple = std::gcd(index.multiple, offsets.front());
  index.offsets = {};
  index.block = 0;
  index.step = isUniform ? 0 : 1;
  return index;
}

Value Emitter::laneOffsets(const Index &index) {
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < width(); ++lane)
    lanes.push_back(index.offsetOf(lane));
  Value &known = laneOffsetVectors[b.getDenseI64ArrayAttr(lanes)];
  if (!known)
    known = atEntry([&]() -> Value {
      return arith::ConstantOp::create(b, location,
                                       DenseElementsAttr::get(vectorOf(b.getI64Type()), ArrayRef<int64_t>(lanes)));
    });
  return known;
}

Value Emitter::materialize(const Index &index) {
  if (index.lanes)
    return index.lanes;
  if (index.isUniform())
    return index.base;
  return inScope(index.depth, [&]() -> Value {
    return arith::AddIOp::create(b, location, broadcast(index.base), laneOffsets(index));
  });
}

std::shared_ptr<const Index::Window> Emitter::shifted(const Index::Window &window, const Index &by, int depth) {
  const Value start = inScope(depth, [&] { return add(window.start, by.base); });
  return std::make_shared<Index::Window>(Index::Window{start, window.at, window.last, window.size});
}

Index Emitter::addIndex(const Index &x, const Index &y) {
  auto isZero = [](const Index &index) { return index.isUniform() && index.multiple == 0; };
  if (isZero(x))
    return y;
  if (isZero(y))
    return x;
  Index result;
  result.depth = std::max(x.depth, y.depth);
  result.mayPrecede = x.mayPrecede || y.mayPrecede;
  if (!x.lanes && !y.lanes && (x.offsets || y.offsets)) {
    result.base = inScope(result.depth, [&] { return add(x.base, y.base); });
    result.multiple = std::gcd(x.multiple, y.multiple);
    SmallVector<int64_t> offsets;
    for (int64_t lane = 0; lane < width(); ++lane)
      offsets.push_back(x.offsetOf(lane) + y.offsetOf(lane));
    return withOffsets(result, offsets);
  }
  // Quotient times divisor plus remainder, as `divide` makes them, are what was divided.
  auto isDivided = [](const Index &quotient, const Index &remainder) {
    return remainder.modulus != 0 && remainder.step != 0 && quotient.modulus == 0 &&
           quotient.step == remainder.modulus &&
           quotient.repeat == remainder.modulus / remainder.step * remainder.repeat;
  };
  const bool isJoined = !x.lanes && !y.lanes && (isDivided(x, y) || isDivided(y, x));
  if (x.window && y.isUniform())
    result.window = shifted(*x.window, y, result.depth);
  else if (y.window && x.isUniform())
    result.window = shifted(*y.window, x, result.depth);
  if (x.lanes || y.lanes ||
      (x.step != 0 && y.step != 0 && !isJoined && (x.repeat != y.repeat || x.modulus != 0 || y.modulus != 0))) {
    Value a = materialize(x), c = materialize(y);
    result.multiple = 1;
    result.lanes = inScope(result.depth,
                           [&]() -> Value { return arith::AddIOp::create(b, location, broadcast(a), broadcast(c)); });
    return result;
  }
  result.base = inScope(result.depth, [&] { return add(x.base, y.base); });
  if (isJoined) {
    const Index &remainder = x.modulus ? x : y;
    result.step = remainder.step;
    result.repeat = remainder.repeat;
  } else {
    result.step = x.step + y.step;
    if (result.step != 0) {
      result.repeat = std::max(x.repeat, y.repeat);
      result.modulus = x.modulus + y.modulus; // one of them at most has lanes that differ
    }
  }
  result.multiple = std::gcd(x.multiple, y.multiple);
  return result;
}

Index Emitter::mulIndex(const Index &x, Value factor, std::optional<int64_t> constantFactor, int depth) {
  if (constantFactor && *constantFactor == 1)
    return x;
  if ((constantFactor && *constantFactor == 0) || (x.isUniform() && x.multiple == 0))
    return constant(0);
  Index result;
  result.depth = std::max(x.depth, depth);
  result.mayPrecede = x.mayPrecede;
  const bool isNegative = constantFactor && *constantFactor < 0;
  if (x.lanes || (!x.isUniform() && !constantFactor) || ((x.modulus != 0 || x.offsets) && isNegative)) {
    Value a = materialize(x);
    result.lanes = inScope(
        result.depth, [&]() -> Value { return arith::MulIOp::create(b, location, broadcast(a), broadcast(factor)); });
    if (x.window && constantFactor && *constantFactor > 0 && (x.window->size - 1) * *constantFactor < width()) {
      const Index::Window &w = *x.window;
      auto window = std::make_shared<Index::Window>(Index::Window{{}, {}, {}, (w.size - 1) * *constantFactor + 1});
      window->start = inScope(result.depth, [&] { return mul(w.start, factor); });
      window->last = inScope(result.depth, [&] { return mul(w.last, factor); });
      window->at = inScope(result.depth, [&]() -> Value {
        const Value small = broadcast(arith::TruncIOp::create(b, location, b.getI32Type(), factor));
        return arith::MulIOp::create(b, location, w.at, small);
      });
      result.window = window;
    }
    return result;
  }
  result.base = inScope(result.depth, [&] { return mul(x.base, factor); });
  result.multiple = constantFactor ? x.multiple * std::abs(*constantFactor) : x.multiple;
  if (x.offsets)
    return withOffsets(result,
                       llvm::map_to_vector(x.offsets.asArrayRef(), [&](int64_t o) { return o * *constantFactor; }));
  result.step = constantFactor ? x.step * *constantFactor : 0;
  result.repeat = x.repeat;
  result.modulus = constantFactor ? x.modulus * *constantFactor : 0;
  return result;
}

Index Emitter::joinIndex(const Index &outer, const Index &inner, int64_t size) {
  Index joined = addIndex(mulIndex(outer, i64(size), size), inner);
  joined.parts = std::make_shared<Index::Parts>(Index::Parts{outer, inner, size});
  return joined;
}

Index Emitter::linearize(ArrayRef<Index> places, ArrayRef<AffineExpr> ofDims) {
  // Quotients beside their remainders are what was divided, whose lanes may be side by side.
  SmallVector<Index> at;
  SmallVector<AffineExpr> sizes;
  for (auto [place, size] : llvm::zip_equal(places, ofDims)) {
    at.push_back(place);
    sizes.push_back(size);
    while (at.size() > 1 && at.back().divided && at.back().isRemainder && !at[at.size() - 2].isRemainder &&
           at[at.size() - 2].divided == at.back().divided && at.back().divided->by == sizes.back()) {
      const Index whole = at.back().divided->index;
      const AffineExpr joined = prim::simplifySize(sizes[sizes.size() - 2] * sizes.back());
      at.pop_back();
      sizes.pop_back();
      at.back() = whole;
      sizes.back() = joined;
    }
  }
  Index result = constant(0);
  AffineExpr stride = getAffineConstantExpr(1, b.getContext());
  for (size_t i = at.size(); i-- > 0;) {
    if (prim::getConstantSize(sizes[i]) == 1 && at[i].isUniform())
      continue; // the position is 0; one that has lanes says that the tensor has
    result = addIndex(mulIndex(at[i], size(stride), prim::getConstantSize(stride)), result);
    stride = prim::simplifySize(sizes[i] * stride);
  }
  return result;
}

std::pair<Index, Index> Emitter::divide(const Index &x, AffineExpr by, std::optional<int64_t> bound) {
  auto divisor = prim::getConstantSize(by);
  if (divisor && *divisor == 1)
    return {x, constant(0)};
  if (x.isUniform() && x.multiple == 0)
    return {constant(0), constant(0)};
  if (x.parts && divisor == x.parts->size)
    return {x.parts->outer, x.parts->inner};
  Index quotient, remainder;
  quotient.depth = remainder.depth = x.depth;
  quotient.mayPrecede = x.mayPrecede;
  Value d = size(by);
  // A value of no elements has no position, but positions in it are computed where lanes read another part of a concat.
  if (!divisor)
    d = atEntry([&]() -> Value { return arith::MaxSIOp::create(b, location, d, i64(1)); });
  if (x.offsets && divisor && *divisor > 0) {
    const int64_t known = std::gcd(x.multiple, *divisor); // base % divisor is a multiple of it
    const int64_t first = *llvm::min_element(x.offsets.asArrayRef()), last = *llvm::max_element(x.offsets.asArrayRef());
    if (first >= 0 && (known == *divisor || last < known)) {
      SmallVector<int64_t> quotients, remainders;
      for (int64_t offset : x.offsets.asArrayRef()) {
        quotients.push_back(offset / *divisor);
        remainders.push_back(offset % *divisor);
      }
      quotient.base = inScope(x.depth, [&] { return divFloor(x, d); });
      quotient.multiple = x.multiple % *divisor == 0 ? x.multiple / *divisor : 1;
      if (known == *divisor) {
        remainder = constant(0);
        quotient.block = x.block / *divisor;
        remainder.block = std::min(x.block, *divisor);
      } else {
        remainder.base = inScope(x.depth, [&] { return remFloor(x, d); });
        remainder.multiple = known;
      }
      return {simplified(withOffsets(quotient, quotients)), simplified(withOffsets(remainder, remainders))};
    }
  }
  if (!x.lanes && !x.offsets && x.modulus == 0) {
    int64_t block = divisor ? std::gcd(x.multiple, *divisor) : 1; // base % divisor is a multiple of block
    bool within = divisor && x.step >= 0 && (width() - 1) / x.repeat * x.step < block;
    bool across = divisor && *divisor > 0 && x.step % *divisor == 0;
    if (x.step == 0 || within || across) {
      quotient.base = inScope(x.depth, [&] { return divFloor(x, d); });
      quotient.step = within || x.step == 0 ? 0 : x.step / *divisor;
      quotient.repeat = quotient.step == 0 ? 1 : x.repeat;
      quotient.multiple = divisor && *divisor > 0 && x.multiple % *divisor == 0 ? x.multiple / *divisor : 1;
      if (divisor && *divisor > 0 && x.multiple % *divisor == 0) {
        remainder = constant(0);
      } else {
        remainder.base = inScope(x.depth, [&] { return remFloor(x, d); });
        remainder.multiple = block;
      }
      remainder.step = across ? 0 : x.step;
      remainder.repeat = remainder.step == 0 ? 1 : x.repeat;
      remainder.depth = x.depth;
      return {quotient, remainder};
    }
    // Whole runs of lanes share a quotient.
    if (divisor && block == *divisor && x.step > 0 && *divisor % x.step == 0 &&
        width() % (*divisor / x.step * x.repeat) == 0) {
      quotient.base = inScope(x.depth, [&] { return divFloor(x, d); });
      quotient.step = 1;
      quotient.repeat = *divisor / x.step * x.repeat;
      quotient.multiple = x.multiple / *divisor;
      remainder = constant(0);
      remainder.step = x.step;
      remainder.repeat = x.repeat;
      remainder.modulus = *divisor;
      return {quotient, remainder};
    }
  }
  Value lanes = materialize(x);
  // There is no product of high halves for lanes of 64 bits.
  const bool isNarrow = bound && *bound < (int64_t(1) << 31) && divisor && *divisor > 0;
  auto here = [&](llvm::function_ref<Value()> fn) { return inScope(x.depth, fn); };
  if (isNarrow) {
    lanes = here([&]() -> Value { return arith::TruncIOp::create(b, location, vectorOf(b.getI32Type()), lanes); });
    d = here([&]() -> Value { return arith::ConstantOp::create(b, location, b.getI32IntegerAttr(int32_t(*divisor))); });
  }
  quotient.lanes = here([&]() -> Value { return arith::DivUIOp::create(b, location, lanes, broadcast(d)); });
  remainder.lanes = here([&]() -> Value { return arith::RemUIOp::create(b, location, lanes, broadcast(d)); });
  if (isNarrow)
    for (Value *value : {&quotient.lanes, &remainder.lanes})
      *value = here([&]() -> Value { return arith::ExtUIOp::create(b, location, vectorOf(b.getI64Type()), *value); });
  quotient.divided = remainder.divided = std::make_shared<Index::Divided>(Index::Divided{x, by});
  remainder.isRemainder = true;
  if (divisor && *divisor > 1 && *divisor < (int64_t(1) << 30) && x.step == 1 && x.repeat == 1 && !x.lanes &&
      !x.offsets && x.modulus == 0 && !alignedBuffers)
    setWindows(x, *divisor, quotient, remainder);
  return {quotient, remainder};
}

Value Emitter::laneNumbers() {
  SmallVector<int32_t> lanes(width());
  std::iota(lanes.begin(), lanes.end(), 0);
  return arith::ConstantOp::create(b, location,
                                   DenseElementsAttr::get(vectorOf(b.getI32Type()), ArrayRef<int32_t>(lanes)));
}

// Of neighbours from x.base on.
void Emitter::setWindows(const Index &x, int64_t divisor, Index &quotient, Index &remainder) {
  const auto type = vectorOf(b.getI32Type());
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, location, DenseElementsAttr::get(type, int32_t(value)));
  };
  auto here = [&](llvm::function_ref<Value()> fn) { return inScope(x.depth, fn); };
  const Value first = here([&] { return remFloor(x, i64(divisor)); });
  const Value positions = here([&]() -> Value {
    return arith::AddIOp::create(b, location, broadcast(arith::TruncIOp::create(b, location, b.getI32Type(), first)),
                                 laneNumbers());
  });
  const Value start = here([&] { return divFloor(x, i64(divisor)); });
  const Value last = here([&] { return divUnsigned(add(first, i64(width() - 1)), i64(divisor)); });
  const Value at = here([&]() -> Value {
    if (divisor < width())
      return arith::DivUIOp::create(b, location, positions, number(divisor));
    // Two at most.
    return arith::ExtUIOp::create(
        b, location, type, arith::CmpIOp::create(b, location, arith::CmpIPredicate::uge, positions, number(divisor)));
  });
  quotient.window = std::make_shared<Index::Window>(
      Index::Window{start, at, last, int64_t(llvm::divideCeil(width() - 1, divisor)) + 1});
  if (divisor > width())
    return;
  const Value rest = here([&]() -> Value { return arith::RemUIOp::create(b, location, positions, number(divisor)); });
  remainder.window = std::make_shared<Index::Window>(Index::Window{i64(0), rest, i64(divisor - 1), divisor});
}

SmallVector<Index> Emitter::delinearize(const Index &linear, ArrayRef<AffineExpr> sizes) {
  SmallVector<Index> at(sizes.size());
  // The first dim that is not 1 takes what is left: positions are in range.
  size_t first = 0;
  while (first + 1 < sizes.size() && prim::getConstantSize(sizes[first]) == 1)
    at[first++] = constant(0);
  Index rest = linear;
  for (size_t i = sizes.size(); i-- > first;) {
    if (i == first) {
      at[i] = rest;
      break;
    }
    if (prim::getConstantSize(sizes[i]) == 1) {
      at[i] = constant(0);
      continue;
    }
    const std::optional<int64_t> bound =
        prim::getConstantSize(prim::product(b.getContext(), sizes.slice(first, i + 1 - first)));
    std::tie(rest, at[i]) = divide(rest, sizes[i], bound);
  }
  return at;
}

SmallVector<Index> Emitter::reshapeIndex(ArrayRef<Index> at, ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to) {
  SmallVector<Index> result;
  size_t i = 0, j = 0;
  MLIRContext *context = b.getContext();
  while (i < from.size() && j < to.size()) {
    // The smallest next groups with the same number of elements; everything that is left if none is provable.
    size_t ni = from.size() - i, nj = to.size() - j;
    bool found = false;
    for (size_t total = 2; total <= from.size() - i + to.size() - j && !found; ++total)
      for (size_t a = 1; a < total && !found; ++a) {
        size_t c = total - a;
        if (a > from.size() - i || c > to.size() - j)
          continue;
        if (prim::product(context, from.slice(i, a)) == prim::product(context, to.slice(j, c))) {
          ni = a;
          nj = c;
          found = true;
        }
      }
    if (ni == 1 && nj == 1)
      result.push_back(at[i]);
    else
      llvm::append_range(result, delinearize(linearize(at.slice(i, ni), from.slice(i, ni)), to.slice(j, nj)));
    i += ni;
    j += nj;
  }
  while (result.size() < to.size()) // left over: sizes of 1
    result.push_back(constant(0));
  return result;
}

namespace {
/// Inclusive bounds of the elements of a tensor of integers, from what computes them: enough to tell that an index
/// needs no clamping.
struct ElementRange {
  int64_t low, high;
};

ElementRange rangeOf(Value tensor, unsigned depth = 8) {
  auto type = dyn_cast<IntegerType>(cast<RankedTensorType>(tensor.getType()).getElementType());
  ElementRange all{INT64_MIN, INT64_MAX};
  if (type && type.getWidth() < 64) {
    int64_t half = int64_t(1) << (type.getWidth() - 1);
    all = type.isUnsigned() || type.getWidth() == 1 ? ElementRange{0, 2 * half - 1} : ElementRange{-half, half - 1};
  }
  Operation *op = tensor.getDefiningOp();
  if (!type || !op || depth == 0)
    return all;
  auto operand = [&](unsigned i) { return rangeOf(op->getOperand(i), depth - 1); };
  // What leaves the type's range wraps.
  auto within = [&](ElementRange range) {
    return range.low >= all.low && range.high <= all.high && range.low <= range.high ? range : all;
  };
  return TypeSwitch<Operation *, ElementRange>(op)
      .Case<prim::SplatOp>([&](auto splat) {
        auto value = dyn_cast<IntegerAttr>(splat.getValue());
        if (!value || value.getValue().getBitWidth() > 64)
          return all;
        int64_t number = all.low < 0 ? value.getValue().getSExtValue() : int64_t(value.getValue().getZExtValue());
        return within({number, number});
      })
      .Case<prim::ReshapeOp, prim::BroadcastOp, prim::TransposeOp, prim::SliceOp>([&](auto) { return operand(0); })
      .Case<prim::ConvertOp>([&](auto convert) {
        return isa<IntegerType>(elementOf(convert.getOperand())) && !type.isInteger(1) ? within(operand(0)) : all;
      })
      .Case<prim::AndOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1);
        if (x.low < 0 && y.low < 0)
          return all;
        return ElementRange{0, x.low < 0 ? y.high : y.low < 0 ? x.high : std::min(x.high, y.high)};
      })
      .Case<prim::ConvertOp>([&](prim::ConvertOp convert) {
        if (isa<IntegerType>(elementOf(convert.getOperand())))
          return within(operand(0));
        // Of a float that is held between two numbers; what is no number gives 0.
        auto bound = [](Value value) -> std::optional<double> {
          auto splat = value.getDefiningOp<prim::SplatOp>();
          auto number = splat ? dyn_cast<FloatAttr>(splat.getValue()) : FloatAttr();
          if (!number || !(std::abs(number.getValueAsDouble()) < 0x1p31))
            return std::nullopt;
          return number.getValueAsDouble();
        };
        auto min = convert.getOperand().template getDefiningOp<prim::MinOp>();
        auto max = min ? min.getLhs().template getDefiningOp<prim::MaxOp>() : prim::MaxOp();
        std::optional<double> low = max ? bound(max.getRhs()) : std::nullopt,
                              high = max ? bound(min.getRhs()) : std::nullopt;
        if (!low || !high)
          return all;
        return within({int64_t(std::min({*low, *high, 0.0})), int64_t(std::max({*low, *high, 0.0}))});
      })
      .Case<prim::AddOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1), sum = all;
        if (llvm::AddOverflow(x.low, y.low, sum.low) || llvm::AddOverflow(x.high, y.high, sum.high))
          return all;
        return within(sum);
      })
      .Case<prim::MinOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1);
        return ElementRange{std::min(x.low, y.low), std::min(x.high, y.high)};
      })
      .Case<prim::MaxOp>([&](auto) {
        ElementRange x = operand(0), y = operand(1);
        return ElementRange{std::max(x.low, y.low), std::max(x.high, y.high)};
      })
      .Default([&](Operation *) { return all; });
}
} // namespace

DenseIntElementsAttr tc::codegen::findConstantIndices(kernel::RegionOp region, Value indices) {
  if (auto argument = dyn_cast<BlockArgument>(indices))
    indices = region.getInputs()[argument.getArgNumber()];
  return prim::getConstantIndices(indices);
}

Index Emitter::gatheredIndex(Value indices, AffineExpr sizeExpr, ArrayRef<Index> at) {
  const auto [entry, isNew] = evenIndices.try_emplace({indices, sizeExpr});
  std::optional<prim::EvenIndices> &even = entry->second;
  if (const std::optional<int64_t> size = prim::getConstantSize(sizeExpr); isNew && size)
    if (const DenseIntElementsAttr elements = findConstantIndices(regionOp, indices))
      even = prim::findEvenIndices(elements, *size);
  if (!even)
    return dataIndex(indices, emit(indices, at), sizeExpr, depthOf(at));
  Index result = constant(even->first);
  for (auto [index, step] : llvm::zip_equal(at, even->steps))
    if (step != 0)
      result = addIndex(result, mulIndex(index, i64(step), step));
  return result;
}

// What the elements' range rules out is not checked, and i32 indices into dims of a known size stay i32 up to the
// address: gathers with 32-bit indices are twice as fast.
Index Emitter::dataIndex(Value tensor, Value position, AffineExpr sizeExpr, int depth) {
  Index result;
  result.depth = depth;
  Value limit = size(sizeExpr);
  ElementRange range = rangeOf(tensor);
  auto known = prim::getConstantSize(sizeExpr);
  unsigned width = getElementTypeOrSelf(position.getType()).getIntOrFloatBitWidth();
  bool isNarrow = width == 32 && known && *known <= INT32_MAX;
  auto compute = [&]() -> Value {
    bool isVector = isa<VectorType>(position.getType());
    auto typed = [&](Type type) { return isVector ? Type(vectorOf(type)) : type; };
    Value p = position;
    if (width < 64 && !isNarrow)
      p = arith::ExtSIOp::create(b, location, typed(b.getI64Type()), p);
    auto number = [&](int64_t value) -> Value {
      Value scalar = isNarrow ? Value(arith::ConstantIntOp::create(b, location, value, 32)) : i64(value);
      return isVector ? broadcast(scalar) : scalar;
    };
    auto length = [&]() -> Value { return isNarrow ? number(*known) : isVector ? broadcast(limit) : limit; };
    if (range.low < 0) {
      Value negative = arith::CmpIOp::create(b, location, arith::CmpIPredicate::slt, p, number(0));
      p = arith::SelectOp::create(b, location, negative, arith::AddIOp::create(b, location, p, length()), p);
    }
    if (!known || range.high >= *known)
      p = arith::MinSIOp::create(b, location, p, arith::SubIOp::create(b, location, length(), number(1)));
    if (range.low < 0 || known.value_or(0) == 0)
      p = arith::MaxSIOp::create(b, location, p, number(0));
    return isNarrow ? Value(arith::ExtSIOp::create(b, location, typed(b.getI64Type()), p)) : p;
  };
  Value value = compute();
  result.depth = int(scopes.size()) - 1;
  if (isa<VectorType>(value.getType()))
    result.lanes = value;
  else
    result.base = value;
  return result;
}

//===--- memory ---------------------------------------------------------------------------------------------------===//

unsigned Emitter::alignmentAt(Type memory, const Index &offset) const {
  unsigned natural = memoryBytes(memory);
  if (!alignedBuffers || !offset.isContiguous() || offset.multiple % width() != 0)
    return natural;
  return std::min<unsigned>(16, natural * width());
}

namespace {
/// Of lanes at offsets that are known: the first and the last position in memory, counted from the base.
std::pair<int64_t, int64_t> boundsOf(const Index &offset, int64_t width) {
  std::pair<int64_t, int64_t> bounds{offset.offsetOf(0), offset.offsetOf(0)};
  for (int64_t lane = 1; lane < width; ++lane) {
    bounds.first = std::min(bounds.first, offset.offsetOf(lane));
    bounds.second = std::max(bounds.second, offset.offsetOf(lane));
  }
  return bounds;
}
} // namespace

// A gather takes as long as a load for each lane: vectors of what lies between the lanes are cheaper as long as there
// are half as many.
bool Emitter::isShuffled(const Index &offset) const {
  if (offset.lanes || offset.isUniform() || offset.isContiguous() || alignedBuffers) // a GPU's lanes have no shuffles
    return false;
  const auto [first, last] = boundsOf(offset, width());
  int64_t distinct = width() / offset.repeat;
  if (offset.offsets) {
    llvm::SmallDenseSet<int64_t> positions(offset.offsets.asArrayRef().begin(), offset.offsets.asArrayRef().end());
    distinct = int64_t(positions.size());
  }
  return last - first < width() * std::max<int64_t>(1, distinct / 2);
}

Value Emitter::loadShuffled(Value pointer, Type memory, const Index &offset) {
  const int64_t width = this->width();
  const auto [first, last] = boundsOf(offset, width);
  const int64_t span = last - first + 1, size = std::min(width, span);
  const Value start = add(offset.base, i64(first)), on = mask();
  Value result;
  SmallVector<int64_t> order(width, 0);
  for (int64_t done = 0; done < span;) {
    // The last vector ends where the span ends: what lies behind may be no memory.
    const int64_t from = std::min(done, span - size);
    auto inVector = [&, first = first](int64_t lane) { return offset.offsetOf(lane) - first - from; };
    auto type = VectorType::get({size}, memory);
    const Value at = address(pointer, memory, add(start, i64(from)));
    Value vector;
    if (on) {
      // An element is on if one of its lanes is.
      SmallVector<SmallVector<int64_t>> readers(size);
      for (int64_t lane = 0; lane < width; ++lane)
        if (const int64_t element = inVector(lane); element >= 0 && element < size)
          readers[element].push_back(lane);
      const Value off = arith::ConstantOp::create(b, location, DenseElementsAttr::get(vectorOf(b.getI1Type()), false));
      Value needed;
      for (size_t number = 0;; ++number) {
        SmallVector<int64_t> lanes;
        bool isRead = false;
        for (ArrayRef<int64_t> of : readers) {
          isRead |= number < of.size();
          lanes.push_back(number < of.size() ? of[number] : width);
        }
        if (!isRead && needed)
          break;
        Value some = vector::ShuffleOp::create(b, location, on, off, lanes);
        needed = needed ? Value(arith::OrIOp::create(b, location, needed, some)) : some;
      }
      const Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(type));
      vector = LLVM::MaskedLoadOp::create(b, location, type, at, needed, zero, memoryBytes(memory));
    } else {
      vector = LLVM::LoadOp::create(b, location, type, at, memoryBytes(memory));
    }
    // Later vectors take their lanes from those before, which have the other ones.
    for (int64_t lane = 0; lane < width; ++lane) {
      const int64_t element = inVector(lane);
      if (element >= 0 && element < size && (element + from >= done || !result))
        order[lane] = element + (result ? width : 0);
      else if (result)
        order[lane] = lane;
    }
    result = vector::ShuffleOp::create(b, location, result ? result : vector, vector, order);
    done = from + size;
  }
  return result;
}

Value Emitter::permute(Value vector, Value lanes) {
  StringRef name = width() == 16 ? "llvm.x86.avx512.permvar.sf.512" : "llvm.x86.avx2.permps";
  const Type type = vector.getType(), floats = vectorOf(b.getF32Type());
  const Value words = type == floats ? vector : Value(LLVM::BitcastOp::create(b, location, floats, vector));
  const Value result =
      LLVM::CallIntrinsicOp::create(b, location, floats, b.getStringAttr(name), ValueRange{words, lanes}).getResult(0);
  return type == floats ? result : Value(LLVM::BitcastOp::create(b, location, type, result));
}

Value Emitter::loadWindow(Value pointer, Type memory, const Index::Window &window) {
  const auto positions = vectorOf(b.getI32Type()), type = vectorOf(memory);
  Value last = arith::TruncIOp::create(b, location, b.getI32Type(), window.last);
  if (Value on = mask()) {
    // Of the lanes that are on.
    const Value none = arith::ConstantOp::create(b, location, b.getZeroAttr(positions));
    last = vector::ReductionOp::create(b, location, vector::CombiningKind::MAXSI,
                                       arith::SelectOp::create(b, location, on, window.at, none));
  }
  const Value needed = arith::CmpIOp::create(b, location, arith::CmpIPredicate::sle, laneNumbers(), broadcast(last));
  const Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(type));
  const Value read = LLVM::MaskedLoadOp::create(b, location, type, address(pointer, memory, window.start), needed, zero,
                                                memoryBytes(memory));
  return permute(read, window.at);
}

Value Emitter::loadAt(Value pointer, Type elementType, const Index &position) {
  const Index offset = simplified(position);
  Type memory = memoryType(elementType);
  unsigned align = alignmentAt(memory, offset);
  Value result;
  if (offset.isUniform()) {
    result = LLVM::LoadOp::create(b, location, memory, address(pointer, memory, offset.base), align);
  } else if (isShuffled(offset)) {
    result = loadShuffled(pointer, memory, offset);
  } else if (offset.window && memoryBytes(memory) == 4) {
    result = loadWindow(pointer, memory, *offset.window);
  } else if (offset.isContiguous()) {
    auto type = vectorOf(memory);
    Value at = address(pointer, memory, offset.base);
    if (Value on = mask()) {
      Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(type));
      result = LLVM::MaskedLoadOp::create(b, location, type, at, on, zero, align);
    } else {
      result = LLVM::LoadOp::create(b, location, type, at, align);
    }
  } else {
    auto type = vectorOf(memory);
    auto pointers = VectorType::get({width()}, pointer.getType());
    Value at = LLVM::GEPOp::create(b, location, pointers, memory, pointer, ArrayRef<LLVM::GEPArg>{materialize(offset)});
    Value on = mask();
    if (!on)
      on = arith::ConstantOp::create(b, location, DenseElementsAttr::get(vectorOf(b.getI1Type()), true));
    Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(type));
    result = LLVM::masked_gather::create(b, location, type, at, on, zero, align);
  }
  if (elementType.isInteger(1)) {
    Value zero = arith::ConstantOp::create(b, location, b.getZeroAttr(result.getType()));
    result = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ne, result, zero);
  }
  return result;
}

void Emitter::storeAt(Value value, Value pointer, Type elementType, const Index &position) {
  const Index offset = simplified(position);
  Type memory = memoryType(elementType);
  unsigned align = alignmentAt(memory, offset);
  if (!offset.isUniform())
    value = broadcast(value);
  if (elementType.isInteger(1)) {
    Type wide = isa<VectorType>(value.getType()) ? Type(vectorOf(memory)) : memory;
    value = arith::ExtUIOp::create(b, location, wide, value);
  }
  if (offset.isUniform()) {
    LLVM::StoreOp::create(b, location, value, address(pointer, memory, offset.base), align);
  } else if (offset.isContiguous()) {
    Value at = address(pointer, memory, offset.base);
    const unsigned bytes = unsigned(width()) * memoryBytes(memory);
    if (Value on = mask())
      LLVM::MaskedStoreOp::create(b, location, value, at, on, align);
    else if (streamsStores && offset.multiple % width() == 0)
      LLVM::StoreOp::create(b, location, value, at, std::min(64u, bytes), /*isVolatile=*/false,
                            /*isNonTemporal=*/true);
    else
      LLVM::StoreOp::create(b, location, value, at, align);
  } else {
    auto pointers = VectorType::get({width()}, pointer.getType());
    Value at = LLVM::GEPOp::create(b, location, pointers, memory, pointer, ArrayRef<LLVM::GEPArg>{materialize(offset)});
    Value on = mask();
    if (!on)
      on = arith::ConstantOp::create(b, location, DenseElementsAttr::get(vectorOf(b.getI1Type()), true));
    LLVM::masked_scatter::create(b, location, value, at, on, align);
  }
}

void Emitter::fenceStores() { LLVM::FenceOp::create(b, location, LLVM::AtomicOrdering::seq_cst, StringRef()); }

Value Emitter::load(Value pointer, Type elementType, ArrayRef<AffineExpr> sizes, ArrayRef<Index> at) {
  if (llvm::none_of(at, [](const Index &index) { return bool(index.lanes); }))
    return loadAt(pointer, elementType, linearize(at, sizes));
  // A gather: what all lanes share goes into the address, so that 32-bit indices of the others stay such.
  SmallVector<Index> shared(at), own(at);
  for (auto [index, common, rest] : llvm::zip_equal(at, shared, own))
    (index.isUniform() ? rest : common) = constant(0);
  Value start = address(pointer, memoryType(elementType), linearize(shared, sizes).base);
  return loadAt(start, elementType, linearize(own, sizes));
}
void Emitter::store(Value value, Value pointer, Type elementType, ArrayRef<AffineExpr> sizes, ArrayRef<Index> at) {
  // Lanes along a dim of size 1 that a reshape dropped: the first one is on.
  if (isa<VectorType>(value.getType()) && llvm::all_of(at, [](const Index &index) { return index.isUniform(); }))
    value = vector::ExtractOp::create(b, location, value, 0);
  storeAt(value, pointer, elementType, linearize(at, sizes));
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
  SmallVector<Attribute> elements;
  Type memory = memoryType(element);
  for (int64_t i = 0; i < count; ++i) {
    Attribute attr = values.isSplat() ? values.getSplatValue<Attribute>() : *(values.value_begin<Attribute>() + i);
    if (auto integer = dyn_cast<IntegerAttr>(attr))
      attr = IntegerAttr::get(memory, integer.getValue().zextOrTrunc(memory.getIntOrFloatBitWidth()));
    elements.push_back(attr);
  }
  auto type = RankedTensorType::get({count}, memory);
  auto dense = DenseElementsAttr::get(type, elements);
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
  Type element = elementOf(tensor);
  if (lookupPointwise(op))
    return emitPointwise(op, at);
  auto sizes = prim::getSizes(tensor);
  return TypeSwitch<Operation *, Value>(op)
      .Case<prim::SplatOp>([&](auto splat) -> Value {
        Attribute value = splat.getValue();
        if (auto integer = dyn_cast<IntegerAttr>(value))
          value = IntegerAttr::get(valueType(element), integer.getValue());
        return arith::ConstantOp::create(b, location, cast<TypedAttr>(value));
      })
      .Case<prim::ConstantOp>([&](auto constantOp) -> Value {
        auto dense = dyn_cast<DenseElementsAttr>(constantOp.getValue());
        if (!dense)
          return fail("a constant inside a region must be a dense attribute", element);
        if (dense.isSplat() || dense.getNumElements() == 1) {
          Attribute value = *dense.template value_begin<Attribute>();
          if (auto integer = dyn_cast<IntegerAttr>(value))
            value = IntegerAttr::get(valueType(element), integer.getValue());
          return arith::ConstantOp::create(b, location, cast<TypedAttr>(value));
        }
        return load(constantTable(dense), element, sizes, at);
      })
      .Case<prim::IotaOp>([&](auto iota) -> Value {
        Value position = materialize(at[iota.getAxis()]);
        Type type = valueType(element);
        Type target = isa<VectorType>(position.getType()) ? Type(vectorOf(type)) : type;
        if (isa<FloatType>(type))
          return arith::SIToFPOp::create(b, location, target, position);
        if (type.getIntOrFloatBitWidth() == 64)
          return position;
        return arith::TruncIOp::create(b, location, target, position);
      })
      .Case<prim::SizesOp>([&](auto sizesOp) -> Value {
        AffineMap map = sizesOp.getMap();
        if (at.empty() || map.getNumResults() == 1)
          return size(map.getResult(0));
        Value position = materialize(at[0]);
        bool isVector = isa<VectorType>(position.getType());
        Value result = isVector ? broadcast(size(map.getResult(0))) : size(map.getResult(0));
        for (unsigned i = 1; i < map.getNumResults(); ++i) {
          Value number = isVector ? broadcast(i64(i)) : i64(i);
          Value value = isVector ? broadcast(size(map.getResult(i))) : size(map.getResult(i));
          Value hit = arith::CmpIOp::create(b, location, arith::CmpIPredicate::eq, position, number);
          result = arith::SelectOp::create(b, location, hit, value, result);
        }
        return result;
      })
      .Case<prim::ReshapeOp>([&](auto reshape) {
        return emit(reshape.getOperand(), reshapeIndex(at, sizes, prim::getSizes(reshape.getOperand())));
      })
      .Case<prim::TransposeOp>([&](auto transpose) {
        SmallVector<Index> inner(at.size());
        for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
          inner[dim] = at[i];
        return emit(transpose.getOperand(), inner);
      })
      .Case<prim::BroadcastOp>([&](auto broadcastOp) {
        SmallVector<Index> inner;
        for (auto [dim, expr] : llvm::zip_equal(broadcastOp.getDims(), prim::getSizes(broadcastOp.getOperand()))) {
          if (expr == sizes[dim]) {
            inner.push_back(at[dim]);
          } else if (prim::getConstantSize(expr) == 1) {
            inner.push_back(constant(0));
          } else if (prim::getConstantSize(expr)) {
            inner.push_back(at[dim]);
          } else { // decided at run time: factor 0 where the operand's size is 1
            Value runtime = size(expr);
            Value factor = atEntry([&]() -> Value {
              Value several = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ne, runtime, i64(1));
              return arith::ExtUIOp::create(b, location, b.getI64Type(), several);
            });
            inner.push_back(mulIndex(at[dim], factor, std::nullopt));
          }
        }
        return emit(broadcastOp.getOperand(), inner);
      })
      .Case<prim::SliceOp>([&](auto slice) {
        SmallVector<Index> inner;
        for (auto [i, index] : llvm::enumerate(at)) {
          AffineExpr start = slice.getStarts().getResult(i);
          int64_t step = slice.getSteps()[i];
          Index scaled = mulIndex(index, i64(step), step);
          Index offset;
          if (auto known = prim::getConstantSize(start))
            offset = constant(*known);
          else
            offset.base = size(start);
          inner.push_back(addIndex(scaled, offset));
        }
        return emit(slice.getOperand(), inner);
      })
      .Case<prim::DynamicSliceOp>([&](auto slice) {
        SmallVector<Index> inner;
        for (auto [i, index] : llvm::enumerate(at)) {
          Value start = emit(slice.getStarts()[i], {});
          AffineExpr room = prim::getSizes(slice.getOperand())[i] - sizes[i] + 1;
          inner.push_back(addIndex(index, dataIndex(slice.getStarts()[i], start, room, 0)));
        }
        return emit(slice.getOperand(), inner);
      })
      .Case<prim::PadOp>([&](auto pad) { return emitPad(pad, at); })
      .Case<prim::ConcatOp>([&](auto concat) { return emitConcat(concat, at); })
      .Case<prim::GatherOp>([&](auto gather) {
        unsigned axis = gather.getAxis(), rank = prim::getSizes(gather.getIndices()).size();
        SmallVector<Index> inner(at.begin(), at.begin() + axis);
        inner.push_back(
            gatheredIndex(gather.getIndices(), prim::getSizes(gather.getSource())[axis], at.slice(axis, rank)));
        inner.append(at.begin() + axis + rank, at.end());
        return emit(gather.getSource(), inner);
      })
      .Case<prim::GatherElementsOp>([&](auto gather) {
        unsigned axis = gather.getAxis();
        Value position = emit(gather.getIndices(), at);
        SmallVector<Index> inner(at.begin(), at.end());
        inner[axis] = dataIndex(gather.getIndices(), position, prim::getSizes(gather.getSource())[axis], depthOf(at));
        return emit(gather.getSource(), inner);
      })
      .Case<prim::GatherNDOp>([&](auto gather) {
        auto of = prim::getSizes(gather.getIndices()), in = prim::getSizes(gather.getSource());
        unsigned outer = of.size() - 1, batch = gather.getBatchDims(), count = *prim::getConstantSize(of.back());
        SmallVector<Index> inner(at.begin(), at.begin() + batch);
        for (unsigned i = 0; i < count; ++i) {
          SmallVector<Index> position(at.begin(), at.begin() + outer);
          position.push_back(constant(i));
          Value number = emit(gather.getIndices(), position);
          inner.push_back(dataIndex(gather.getIndices(), number, in[batch + i], depthOf(position)));
        }
        inner.append(at.begin() + outer, at.end());
        return emit(gather.getSource(), inner);
      })
      .Case<prim::ReduceOp>([&](auto reduce) { return emitReduce(reduce, at); })
      .Case<prim::ArgReduceOp>([&](auto reduce) { return emitArgReduce(reduce, at); })
      .Case<prim::DotGeneralOp>([&](auto dot) { return emitDot(dot, at); })
      .Case<prim::ConvOp>([&](auto conv) { return emitConv(conv, at); })
      .Case<prim::WindowReduceOp>([&](auto window) { return emitWindow(window, at); })
      .Default([&](Operation *other) {
        isUnsupported = !error;
        return fail((team ? "no GPU code generator takes " : "no CPU code generator takes ") +
                        other->getName().getStringRef() + " inside a fused region",
                    element);
      });
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
  // One condition for all lanes: branch. The type of the value is known only once it is emitted: always make it a
  // vector where lanes are in play, i.e. where a mask or a lane loop is open; a scalar is broadcast at no cost.
  Type resultType = lanes ? Type(vectorOf(type)) : type;
  auto ifOp = scf::IfOp::create(b, location, TypeRange{resultType}, condition, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Scope scope;
    scope.loop = ifOp;
    scope.barrier = true;
    scope.mask = mask();
    scopes.push_back(std::move(scope));
    Value value = inside();
    scf::YieldOp::create(b, location, ValueRange{lanes ? broadcast(value) : value});
    scopes.pop_back();
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, location, ValueRange{lanes ? broadcast(otherwise) : otherwise});
  }
  return ifOp.getResult(0);
}

Value Emitter::emitPad(prim::PadOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getOperand()), out = prim::getSizes(op.getResult());
  Value otherwise = emit(op.getValue(), {});
  Value scalarCondition, laneCondition;
  SmallVector<Index> inner;
  for (auto [i, index] : llvm::enumerate(at)) {
    AffineExpr low = op.getLow().getResult(i);
    if (prim::getConstantSize(low) == 0 && in[i] == out[i]) {
      inner.push_back(index);
      continue;
    }
    Index offset;
    if (auto known = prim::getConstantSize(low))
      offset = constant(-*known);
    else
      offset.base = size(low * -1); // at the entry, as its depth says
    Index shifted = addIndex(index, offset);
    shifted.mayPrecede = true;
    inner.push_back(shifted);
    Value position = materialize(shifted);
    bool isVector = isa<VectorType>(position.getType());
    Value limit = isVector ? broadcast(size(in[i])) : size(in[i]);
    // Unsigned comparison: negative positions are huge.
    Value ok = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, position, limit);
    Value &condition = isVector ? laneCondition : scalarCondition;
    condition = condition ? Value(arith::AndIOp::create(b, location, condition, ok)) : ok;
  }
  Type element = elementOf(op.getResult());
  auto load = [&] { return emit(op.getOperand(), inner); };
  auto lanesGuarded = [&]() -> Value {
    return laneCondition ? emitGuarded(laneCondition, element, otherwise, true, load) : load();
  };
  if (scalarCondition)
    return emitGuarded(scalarCondition, element, otherwise, anyLanes(at), lanesGuarded);
  return lanesGuarded();
}

Value Emitter::emitConcat(prim::ConcatOp op, ArrayRef<Index> at) {
  unsigned axis = op.getAxis();
  Type element = elementOf(op.getResult());
  SmallVector<AffineExpr> starts;
  AffineExpr start = getAffineConstantExpr(0, b.getContext());
  for (Value input : op.getInputs()) {
    starts.push_back(start);
    start = prim::simplifySize(start + prim::getSizes(input)[axis]);
  }
  // A position that is known lies in a known input.
  IntegerAttr known;
  if (at[axis].isUniform() && matchPattern(at[axis].base, m_Constant(&known)))
    for (auto [input, begin] : llvm::zip_equal(op.getInputs(), starts)) {
      const std::optional<int64_t> from = prim::getConstantSize(begin),
                                   count = prim::getConstantSize(prim::getSizes(input)[axis]);
      if (!from || !count)
        break;
      if (known.getInt() >= *from + *count)
        continue;
      SmallVector<Index> inner(at.begin(), at.end());
      inner[axis] = constant(known.getInt() - *from);
      return emit(input, inner);
    }
  Value position = materialize(at[axis]);
  bool isVector = isa<VectorType>(position.getType());
  // From the last input to the first: value = position < end of input i ? input i : what follows.
  std::function<Value(unsigned)> pick = [&](unsigned i) -> Value {
    auto read = [&]() -> Value {
      SmallVector<Index> inner(at.begin(), at.end());
      Index offset;
      if (auto known = prim::getConstantSize(starts[i]))
        offset = constant(-*known);
      else
        offset.base = sub(i64(0), size(starts[i]));
      inner[axis] = addIndex(at[axis], offset);
      inner[axis].mayPrecede |= isVector;
      return emit(op.getInputs()[i], inner);
    };
    if (i + 1 == op.getInputs().size() && !isVector)
      return read();
    Value begin = size(starts[i]);
    Value end = size(prim::simplifySize(starts[i] + prim::getSizes(op.getInputs()[i])[axis]));
    if (isVector) {
      Value from = arith::CmpIOp::create(b, location, arith::CmpIPredicate::sge, position, broadcast(begin));
      Value to = arith::CmpIOp::create(b, location, arith::CmpIPredicate::slt, position, broadcast(end));
      Value hit = arith::AndIOp::create(b, location, from, to);
      Value rest = i + 1 == op.getInputs().size()
                       ? Value(arith::ConstantOp::create(b, location, b.getZeroAttr(vectorOf(valueType(element)))))
                       : pick(i + 1);
      return emitGuarded(hit, element, rest, true, read);
    }
    Value hit = arith::CmpIOp::create(b, location, arith::CmpIPredicate::slt, position, end);
    bool lanes = anyLanes(at);
    Type type = lanes ? Type(vectorOf(valueType(element))) : valueType(element);
    auto ifOp = scf::IfOp::create(b, location, TypeRange{type}, hit, /*withElseRegion=*/true);
    for (bool thenSide : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(thenSide ? ifOp.thenBlock() : ifOp.elseBlock());
      Scope scope;
      scope.loop = ifOp;
      scope.barrier = true;
      scope.mask = mask();
      scopes.push_back(std::move(scope));
      Value value = thenSide ? read() : pick(i + 1);
      scf::YieldOp::create(b, location, ValueRange{lanes ? broadcast(value) : value});
      scopes.pop_back();
    }
    return ifOp.getResult(0);
  };
  return pick(0);
}

SmallVector<Index> Emitter::forward(Operation *op, ArrayRef<Index> at) {
  if (lookupPointwise(op))
    return llvm::to_vector(at);
  if (auto transpose = dyn_cast<prim::TransposeOp>(op)) {
    SmallVector<Index> result;
    for (int64_t dim : transpose.getPermutation())
      result.push_back(at[dim]);
    return result;
  }
  if (auto reshape = dyn_cast<prim::ReshapeOp>(op))
    return reshapeIndex(at, prim::getSizes(reshape.getOperand()), prim::getSizes(reshape.getResult()));
  return {};
}

//===--- reductions -----------------------------------------------------------------------------------------------===//

namespace {
bool isNarrow(Type type) {
  auto f = dyn_cast<FloatType>(type);
  return f && f.getWidth() < 32;
}
} // namespace

Type Emitter::accumulatorOf(Type elementType) {
  return isNarrow(elementType) ? Type(Float32Type::get(elementType.getContext())) : elementType;
}

Value Emitter::toAccumulator(Value value) {
  Type type = value.getType();
  if (!isNarrow(getElementTypeOrSelf(type)))
    return value;
  Type wide = isa<VectorType>(type) ? Type(vectorOf(b.getF32Type())) : b.getF32Type();
  return arith::ExtFOp::create(b, location, wide, value);
}

Value Emitter::fromAccumulator(Value value, Type elementType) {
  if (!isNarrow(elementType))
    return value;
  Type narrow = isa<VectorType>(value.getType()) ? Type(vectorOf(elementType)) : elementType;
  return arith::TruncFOp::create(b, location, narrow, value);
}

Value Emitter::neutral(prim::ReduceKind kind, Type elementType) {
  Type type = valueType(accumulatorOf(elementType));
  TypedAttr attr;
  if (auto f = dyn_cast<FloatType>(type)) {
    double value = kind == prim::ReduceKind::Sum    ? 0.0
                   : kind == prim::ReduceKind::Prod ? 1.0
                   : kind == prim::ReduceKind::Max  ? -INFINITY
                                                    : INFINITY;
    attr = b.getFloatAttr(f, value);
  } else {
    unsigned bits = type.getIntOrFloatBitWidth();
    bool isUnsigned = elementType.isUnsignedInteger() || bits == 1;
    APInt value(bits, 0);
    switch (kind) {
    case prim::ReduceKind::Sum:
    case prim::ReduceKind::Or:
      break;
    case prim::ReduceKind::Prod:
      value = APInt(bits, 1);
      break;
    case prim::ReduceKind::And:
      value = APInt::getAllOnes(bits);
      break;
    case prim::ReduceKind::Max:
      value = isUnsigned ? APInt::getMinValue(bits) : APInt::getSignedMinValue(bits);
      break;
    case prim::ReduceKind::Min:
      value = isUnsigned ? APInt::getMaxValue(bits) : APInt::getSignedMaxValue(bits);
      break;
    }
    attr = b.getIntegerAttr(type, value);
  }
  return arith::ConstantOp::create(b, location, attr);
}

Value Emitter::combine(prim::ReduceKind kind, Type elementType, Value x, Value y, bool losesNan) {
  bool isFloat = isa<FloatType>(elementType);
  bool isUnsigned = elementType.isUnsignedInteger() || elementType.isInteger(1);
  switch (kind) {
  case prim::ReduceKind::Sum:
    return isFloat ? Value(arith::AddFOp::create(b, location, x, y)) : arith::AddIOp::create(b, location, x, y);
  case prim::ReduceKind::Prod:
    return isFloat ? Value(arith::MulFOp::create(b, location, x, y)) : arith::MulIOp::create(b, location, x, y);
  case prim::ReduceKind::Max:
    if (isFloat && losesNan) // the machine's own instruction: y where either is no number
      return arith::SelectOp::create(b, location, arith::CmpFOp::create(b, location, arith::CmpFPredicate::OGT, x, y),
                                     x, y);
    if (isFloat)
      return arith::MaximumFOp::create(b, location, x, y);
    return isUnsigned ? Value(arith::MaxUIOp::create(b, location, x, y)) : arith::MaxSIOp::create(b, location, x, y);
  case prim::ReduceKind::Min:
    if (isFloat)
      return arith::MinimumFOp::create(b, location, x, y);
    return isUnsigned ? Value(arith::MinUIOp::create(b, location, x, y)) : arith::MinSIOp::create(b, location, x, y);
  case prim::ReduceKind::And:
    return arith::AndIOp::create(b, location, x, y);
  case prim::ReduceKind::Or:
    return arith::OrIOp::create(b, location, x, y);
  }
  llvm_unreachable("all kinds are listed");
}

Value Emitter::reduceLanes(prim::ReduceKind kind, Type elementType, Value vector, bool losesNan) {
  // A fixed tree of shuffles: the same bits everywhere.
  for (int64_t half = width() / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(i + half);
    }
    Value a = vector::ShuffleOp::create(b, location, vector, vector, low);
    Value c = vector::ShuffleOp::create(b, location, vector, vector, high);
    vector = combine(kind, elementType, a, c, losesNan);
  }
  return vector::ExtractOp::create(b, location, vector, ArrayRef<int64_t>{0});
}

/// Whether a NaN that the largest element of a row loses shows all the same: whatever the region yields of it is made
/// with the row's sum of e^(x - largest), which is NaN then. Softmax and its logarithm.
static bool showsNan(prim::ReduceOp largest) {
  if (largest.getKind() != prim::ReduceKind::Max)
    return false;
  const SmallVector<AffineExpr> sizes = prim::getSizes(largest.getOperand());
  SmallVector<int64_t> kept;
  for (int64_t dim = 0, rank = int64_t(sizes.size()); dim < rank; ++dim)
    if (!llvm::is_contained(largest.getDims(), dim))
      kept.push_back(dim);
  Block &block = *largest->getBlock();
  // What is made of the largest element; of it, the differences from it, their powers, and all that is NaN everywhere
  // in a row that has one.
  llvm::SmallDenseSet<Value> dependent{largest.getResult()}, spread{largest.getResult()}, differences, powers, poisoned;
  for (Operation &op : llvm::make_range(std::next(largest->getIterator()), block.end())) {
    auto isOf = [&](const llvm::SmallDenseSet<Value> &set) {
      return llvm::any_of(op.getOperands(), [&](Value operand) { return set.contains(operand); });
    };
    if (!isOf(dependent))
      continue;
    if (op.hasTrait<OpTrait::IsTerminator>())
      return llvm::all_of(op.getOperands(),
                          [&](Value value) { return !dependent.contains(value) || poisoned.contains(value); });
    if (op.getNumResults() != 1)
      return false;
    const Value result = op.getResult(0);
    dependent.insert(result);
    auto reduce = dyn_cast<prim::ReduceOp>(op);
    // Of one element for each row: to the row's own elements, not to a column's.
    auto broadcast = dyn_cast<prim::BroadcastOp>(op);
    const bool isSpread = broadcast && broadcast.getDims() == ArrayRef(kept) && prim::getSizes(result) == sizes;
    if (isSpread && isOf(spread))
      spread.insert(result);
    else if (auto sub = dyn_cast<prim::SubOp>(op);
             sub && sub.getLhs() == largest.getOperand() && spread.contains(sub.getRhs()))
      differences.insert(result);
    else if (isa<prim::ExpOp>(op) && isOf(differences))
      powers.insert(result);
    else if (reduce && isOf(powers) && reduce.getKind() == prim::ReduceKind::Sum &&
             reduce.getDims() == largest.getDims())
      poisoned.insert(result);
    else if ((isSpread ||
              isa<prim::AddOp, prim::SubOp, prim::MulOp, prim::DivOp, prim::NegOp, prim::LogOp, prim::ExpOp,
                  prim::ReciprocalOp>(op) ||
              (isa<prim::ConvertOp>(op) && isa<FloatType>(getElementTypeOrSelf(result)))) &&
             isOf(poisoned))
      poisoned.insert(result);
  }
  return false;
}

Value Emitter::emitReduction(prim::ReduceKind kind, Type elementType, ArrayRef<AffineExpr> extents, bool lanes,
                             llvm::function_ref<Value(ArrayRef<Index>)> element, bool losesNan) {
  const Value start = neutral(kind, elementType);
  const Type accumulator = accumulatorOf(elementType);
  constexpr int64_t kUnroll = 4;
  auto merge = [&](Value x, Value y) { return combine(kind, accumulator, x, y, losesNan); };
  std::function<SmallVector<Value>(unsigned, SmallVector<Index>, SmallVector<Value>)> nest =
      [&](unsigned dim, SmallVector<Index> at, SmallVector<Value> acc) -> SmallVector<Value> {
    if (dim == extents.size()) {
      Value value = toAccumulator(element(at));
      if (isa<VectorType>(acc[0].getType()))
        value = broadcast(value);
      acc[0] = merge(acc[0], value);
      return acc;
    }
    Value extent = size(extents[dim]);
    if (!lanes || dim + 1 != extents.size()) {
      std::optional<int64_t> within = prim::getConstantSize(prim::product(b.getContext(), extents.drop_front(dim + 1)));
      if (within && lanes)
        within = llvm::divideCeil(*within, width() * kUnroll);
      return reduceLoop(kind, accumulator, i64(0), extent, 1, acc, within, [&](Index iv, ValueRange carried) {
        SmallVector<Index> inner = at;
        inner.push_back(iv);
        return nest(dim + 1, inner, llvm::to_vector(carried));
      });
    }
    if (team) { // every member takes each team->size-th vector
      int64_t w = width();
      bool whole = prim::getConstantSize(extents[dim]).value_or(1) % w == 0;
      Value start = mul(team->member, i64(w));
      return loop(
          start, extent, w * team->size, acc,
          [&](Index iv, ValueRange carried) {
            Value on = whole ? Value() : tailMask(*this, sub(extent, iv.base));
            scopes.back().mask = on;
            SmallVector<Index> inner = at;
            inner.push_back(contiguous(iv));
            Value value = broadcast(toAccumulator(element(inner)));
            if (on)
              value = arith::SelectOp::create(b, location, on, value, broadcast(neutral(kind, elementType)));
            SmallVector<Value> next = llvm::to_vector(carried);
            next[0] = merge(carried[0], value);
            return next;
          },
          w);
    }
    // Innermost, vectorised: blocks of kUnroll vectors with an accumulator each, then single masked vectors.
    int64_t w = width(), block = w * kUnroll;
    Value blocks = mul(divUnsigned(extent, i64(block)), i64(block));
    auto constantBlocks = constantOf(blocks);
    if (!constantBlocks || *constantBlocks > 0)
      acc = reduceLoop(kind, accumulator, i64(0), blocks, block, acc, 1, [&](Index iv, ValueRange carried) {
        scopes.back().mask = {};
        SmallVector<Value> next;
        for (int64_t u = 0; u < kUnroll; ++u) {
          SmallVector<Index> inner = at;
          inner.push_back(contiguous(addIndex(iv, constant(u * w))));
          next.push_back(merge(carried[u], broadcast(toAccumulator(element(inner)))));
        }
        return next;
      });
    auto constantExtent = constantOf(extent);
    if (constantExtent && constantBlocks && *constantExtent == *constantBlocks)
      return acc;
    return loop(
        blocks, extent, w, acc,
        [&](Index iv, ValueRange carried) {
          Value on = tailMask(*this, sub(extent, iv.base));
          scopes.back().mask = on;
          SmallVector<Index> inner = at;
          inner.push_back(contiguous(iv));
          Value value = broadcast(toAccumulator(element(inner)));
          value = arith::SelectOp::create(b, location, on, value, broadcast(start));
          SmallVector<Value> next = llvm::to_vector(carried);
          next[0] = merge(carried[0], value);
          return next;
        },
        w);
  };
  SmallVector<Value> acc;
  if (lanes)
    acc.assign(kUnroll, broadcast(start));
  else
    acc.push_back(start);
  SmallVector<Value> result = nest(0, {}, acc);
  Value total = result[0];
  if (lanes) {
    total = merge(merge(result[0], result[1]), merge(result[2], result[3]));
    total = reduceLanes(kind, accumulator, total, losesNan);
    if (team)
      total = team->across(kind, accumulator, total);
  }
  return fromAccumulator(total, elementType);
}

Value Emitter::emitReduce(prim::ReduceOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getOperand());
  SmallVector<AffineExpr> extents;
  for (int64_t dim : op.getDims())
    extents.push_back(in[dim]);
  Type element = elementOf(op.getResult());
  auto position = [&](ArrayRef<Index> reduced) {
    SmallVector<Index> full(in.size());
    unsigned next = 0, kept = 0;
    for (size_t i = 0; i < in.size(); ++i)
      full[i] = llvm::is_contained(op.getDims(), int64_t(i)) ? reduced[next++] : at[kept++];
    return full;
  };
  const bool lanesOutside = anyLanes(at), losesNan = showsNan(op);
  if (!lanesOutside && !extents.empty())
    return emitReduction(
        op.getKind(), element, extents, /*lanes=*/true,
        [&](ArrayRef<Index> reduced) { return emit(op.getOperand(), position(reduced)); }, losesNan);
  if (const int64_t part = shortRowOf(op, at))
    return emitShortRows(op, at, part, losesNan);
  // Lanes lie along a kept dim: one accumulator vector, plain loops over the reduced dims.
  const Type accumulator = accumulatorOf(element);
  Value start = neutral(op.getKind(), element);
  if (lanesOutside)
    start = broadcast(start);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> reduced,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      Value value = emit(op.getOperand(), position(reduced));
      if (lanesOutside)
        value = broadcast(value);
      return combine(op.getKind(), accumulator, acc, toAccumulator(value), losesNan);
    }
    const std::optional<int64_t> within =
        prim::getConstantSize(prim::product(b.getContext(), ArrayRef(extents).drop_front(dim + 1)));
    return reduceLoop(op.getKind(), accumulator, i64(0), size(extents[dim]), 1, ValueRange{acc}, within,
                      [&](Index iv, ValueRange carried) {
                        SmallVector<Index> inner = reduced;
                        inner.push_back(iv);
                        return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
                      })[0];
  };
  return fromAccumulator(nest(0, {}, start), element);
}

int64_t Emitter::shortRowOf(prim::ReduceOp op, ArrayRef<Index> at) const {
  const SmallVector<AffineExpr> sizes = prim::getSizes(op.getOperand());
  const std::optional<int64_t> part = prim::getConstantSize(sizes.back());
  const bool isLast = op.getDims() == ArrayRef<int64_t>{int64_t(sizes.size()) - 1};
  if (!isLast || !part || *part < 2 || !at.back().isContiguous() || at.back().block < width() ||
      anyLanes(at.drop_back()) || mask())
    return 0;
  return *part;
}

// The rows of all lanes lie one after another: `part` vectors hold them, and what is made of the elements elsewhere is
// made of the same vectors. Each lane then takes its row's elements from these.
Value Emitter::emitShortRows(prim::ReduceOp op, ArrayRef<Index> at, int64_t part, bool losesNan) {
  const Type element = elementOf(op.getResult()), accumulator = accumulatorOf(element);
  Index first = at.back();
  first.step = 0;
  SmallVector<Value> vectors;
  for (int64_t number = 0; number < part; ++number) {
    SmallVector<Index> position(at.drop_back());
    const auto [row, column] = partOfRows(first, part, number);
    position.append({row, column});
    vectors.push_back(broadcast(toAccumulator(emit(op.getOperand(), position))));
  }
  Value result;
  for (int64_t i = 0; i < part; ++i) {
    Value elements;
    for (int64_t number = 0; number < part; ++number) {
      SmallVector<int64_t> order;
      bool isRead = false;
      for (int64_t lane = 0; lane < width(); ++lane) {
        const int64_t from = lane * part + i - number * width();
        const bool isHere = from >= 0 && from < width();
        isRead |= isHere;
        order.push_back(elements ? (isHere ? width() + from : lane) : (isHere ? from : 0));
      }
      if (isRead)
        elements =
            vector::ShuffleOp::create(b, location, elements ? elements : vectors[number], vectors[number], order);
    }
    result = result ? combine(op.getKind(), accumulator, result, elements, losesNan) : elements;
  }
  return fromAccumulator(result, element);
}

Value Emitter::emitArgReduce(prim::ArgReduceOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getOperand());
  unsigned axis = op.getAxis();
  Type element = elementOf(op.getOperand());
  const bool lanesOutside = anyLanes(at), isMax = op.getKind() == prim::ReduceKind::Max, isLast = op.getLastIndex();
  // Lanes along what is kept; else along the axis if it is the last, where each lane has a best element of its own.
  const bool lanesInside = !lanesOutside && axis + 1 == in.size() && prim::getConstantSize(in[axis]).value_or(64) >= 8;
  const bool lanes = lanesOutside || lanesInside;
  auto shape = [&](Value value) { return lanes ? broadcast(value) : value; };
  auto position = [&](const Index &index) {
    SmallVector<Index> full(at.begin(), at.end());
    full.insert(full.begin() + axis, index);
    return full;
  };
  auto isNaN = [&](Value v) { return arith::CmpFOp::create(b, location, arith::CmpFPredicate::UNO, v, v); };
  auto isNot = [&](Value v) {
    auto type = v.getType();
    TypedAttr yes = isa<VectorType>(type) ? TypedAttr(DenseElementsAttr::get(cast<VectorType>(type), true))
                                          : TypedAttr(b.getBoolAttr(true));
    return arith::XOrIOp::create(b, location, v, arith::ConstantOp::create(b, location, yes));
  };
  auto step = [&](const Index &index, ValueRange carried) {
    Value value = toAccumulator(shape(emit(op.getOperand(), position(index))));
    Value better;
    if (isa<FloatType>(element)) {
      // An unordered comparison also replaces by a NaN; a NaN held stays unless the last index is wanted.
      auto kind = isLast ? (isMax ? arith::CmpFPredicate::UGE : arith::CmpFPredicate::ULE)
                         : (isMax ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::ULT);
      better = arith::CmpFOp::create(b, location, kind, value, carried[0]);
      Value keep = isNaN(carried[0]);
      if (isLast)
        keep = arith::AndIOp::create(b, location, keep, isNot(isNaN(value)));
      better = arith::AndIOp::create(b, location, better, isNot(keep));
    } else {
      bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
      using P = arith::CmpIPredicate;
      P kind = isLast ? (isMax ? (isUnsigned ? P::uge : P::sge) : (isUnsigned ? P::ule : P::sle))
                      : (isMax ? (isUnsigned ? P::ugt : P::sgt) : (isUnsigned ? P::ult : P::slt));
      better = arith::CmpIOp::create(b, location, kind, value, carried[0]);
    }
    if (Value on = mask(); on && lanesInside)
      better = arith::AndIOp::create(b, location, better, on);
    Value best = arith::SelectOp::create(b, location, better, value, carried[0]);
    Value where = arith::SelectOp::create(b, location, better, shape(materialize(index)), carried[1]);
    return SmallVector<Value>{best, where};
  };
  // Every lane begins with the first element.
  Value first = toAccumulator(shape(emit(op.getOperand(), position(constant(0)))));
  SmallVector<Value> start{first, shape(i64(0))};
  if (!lanesInside)
    return loop(i64(1), size(in[axis]), 1, start, step)[1];
  SmallVector<Value> best = laneLoop(size(in[axis]), prim::getConstantSize(in[axis]), start, step);
  // Of the lanes that hold the best of all, the one with the first (last) position.
  const Type accumulator = accumulatorOf(element);
  Value top = broadcast(reduceLanes(op.getKind(), accumulator, best[0]));
  Value hit = isa<FloatType>(element)
                  ? Value(arith::CmpFOp::create(b, location, arith::CmpFPredicate::UEQ, best[0], top))
                  : arith::CmpIOp::create(b, location, arith::CmpIPredicate::eq, best[0], top);
  if (isa<FloatType>(element)) // a NaN is the best: not the numbers beside it
    hit = arith::AndIOp::create(
        b, location, hit, arith::CmpIOp::create(b, location, arith::CmpIPredicate::eq, isNaN(best[0]), isNaN(top)));
  auto choice = isLast ? prim::ReduceKind::Max : prim::ReduceKind::Min;
  Value none = broadcast(neutral(choice, b.getI64Type()));
  return reduceLanes(choice, b.getI64Type(), arith::SelectOp::create(b, location, hit, best[1], none));
}

//===--- contractions and windows, element by element: any type, any layout ---------------------------------------===//

namespace {
/// Type in which products of `element` accumulate, as a prim element type.
Type accumulatorType(Type element, Type result) {
  MLIRContext *context = element.getContext();
  if (isNarrow(element))
    return Float32Type::get(context);
  if (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() < 32)
    return isa<FloatType>(result) ? Type(IntegerType::get(context, 32)) : result;
  return element;
}
} // namespace

Value Emitter::emitDot(prim::DotGeneralOp op, ArrayRef<Index> at) {
  auto lhsSizes = prim::getSizes(op.getLhs()), rhsSizes = prim::getSizes(op.getRhs());
  SmallVector<AffineExpr> extents;
  for (int64_t dim : op.getLhsContract())
    extents.push_back(lhsSizes[dim]);
  unsigned batch = op.getLhsBatch().size();
  unsigned lhsFree = lhsSizes.size() - batch - op.getLhsContract().size();
  auto position = [&](unsigned rank, ArrayRef<int64_t> batchDims, ArrayRef<int64_t> contractDims, unsigned freeFrom,
                      ArrayRef<Index> reduced) {
    SmallVector<Index> full(rank);
    unsigned free = freeFrom;
    for (unsigned i = 0; i < rank; ++i) {
      const auto *inBatch = llvm::find(batchDims, int64_t(i));
      const auto *inContract = llvm::find(contractDims, int64_t(i));
      if (inBatch != batchDims.end())
        full[i] = at[inBatch - batchDims.begin()];
      else if (inContract != contractDims.end())
        full[i] = reduced[inContract - contractDims.begin()];
      else
        full[i] = at[free++];
    }
    return full;
  };
  Type from = elementOf(op.getLhs()), to = elementOf(op.getResult());
  Type accumulator = accumulatorType(from, to);
  bool lanes = anyLanes(at);
  auto widen = [&](Value value, Type element) -> Value {
    Type type = valueType(accumulator);
    Type target = isa<VectorType>(value.getType()) ? Type(vectorOf(type)) : type;
    if (value.getType() == target)
      return value;
    if (isa<FloatType>(type))
      return arith::ExtFOp::create(b, location, target, value);
    if (element.isUnsignedInteger())
      return arith::ExtUIOp::create(b, location, target, value);
    return arith::ExtSIOp::create(b, location, target, value);
  };
  Value start = neutral(prim::ReduceKind::Sum, accumulator);
  if (lanes)
    start = broadcast(start);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> reduced,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      Value x = widen(
          emit(op.getLhs(), position(lhsSizes.size(), op.getLhsBatch(), op.getLhsContract(), batch, reduced)), from);
      Value y = widen(
          emit(op.getRhs(), position(rhsSizes.size(), op.getRhsBatch(), op.getRhsContract(), batch + lhsFree, reduced)),
          elementOf(op.getRhs()));
      if (lanes) {
        x = broadcast(x);
        y = broadcast(y);
      }
      Value product = isa<FloatType>(accumulator) ? Value(arith::MulFOp::create(b, location, x, y))
                                                  : arith::MulIOp::create(b, location, x, y);
      return combine(prim::ReduceKind::Sum, accumulator, acc, product);
    }
    return loop(i64(0), size(extents[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = reduced;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  Value total = nest(0, {}, start);
  Type result = valueType(to);
  if (getElementTypeOrSelf(total.getType()) != result) {
    Type target = lanes ? Type(vectorOf(result)) : result;
    if (isa<FloatType>(result) && isa<FloatType>(accumulator))
      return result.getIntOrFloatBitWidth() < 32 ? Value(arith::TruncFOp::create(b, location, target, total))
                                                 : arith::ExtFOp::create(b, location, target, total);
    if (isa<FloatType>(result))
      return arith::SIToFPOp::create(b, location, target, total);
    if (result.getIntOrFloatBitWidth() > valueType(accumulator).getIntOrFloatBitWidth())
      return arith::ExtSIOp::create(b, location, target, total);
    return arith::TruncIOp::create(b, location, target, total);
  }
  return total;
}

Value Emitter::emitConv(prim::ConvOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getInput()), filter = prim::getSizes(op.getFilter());
  unsigned spatial = op.getStrides().size();
  Type element = elementOf(op.getResult()), accumulator = accumulatorType(elementOf(op.getInput()), element);
  bool lanes = anyLanes(at);
  AffineExpr perGroup = filter[spatial];
  AffineExpr outPerGroup = prim::simplifySize(filter.back().floorDiv(op.getGroups()));
  // Channel of the group's first input: (o / outPerGroup) * perGroup.
  Index group = op.getGroups() == 1 ? constant(0) : divide(at.back(), outPerGroup).first;
  Index firstChannel = mulIndex(group, size(perGroup), prim::getConstantSize(perGroup));
  Value start = neutral(prim::ReduceKind::Sum, accumulator);
  if (lanes)
    start = broadcast(start);
  auto widen = [&](Value value, Type from) -> Value {
    Type type = valueType(accumulator);
    Type target = isa<VectorType>(value.getType()) ? Type(vectorOf(type)) : type;
    if (value.getType() == target)
      return value;
    if (isa<FloatType>(type))
      return arith::ExtFOp::create(b, location, target, value);
    if (from.isUnsignedInteger())
      return arith::ExtUIOp::create(b, location, target, value);
    return arith::ExtSIOp::create(b, location, target, value);
  };
  SmallVector<AffineExpr> extents(filter.begin(), filter.begin() + spatial);
  extents.push_back(perGroup);
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> taps,
                                                                       Value acc) -> Value {
    if (dim == extents.size()) {
      SmallVector<Index> source{at[0]}, weight(taps.begin(), taps.end());
      Value inside;
      for (unsigned i = 0; i < spatial; ++i) {
        Index position = addIndex(
            mulIndex(at[i + 1], i64(op.getStrides()[i]), op.getStrides()[i]),
            addIndex(mulIndex(taps[i], i64(op.getDilations()[i]), op.getDilations()[i]), constant(-op.getPadLow()[i])));
        position.mayPrecede = op.getPadLow()[i] > 0;
        if (op.getPadLow()[i] != 0 || op.getPadHigh()[i] != 0) {
          Value p = materialize(position);
          Value limit = isa<VectorType>(p.getType()) ? broadcast(size(in[i + 1])) : size(in[i + 1]);
          Value ok = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, p, limit);
          if (inside && inside.getType() != ok.getType()) {
            inside = broadcast(inside);
            ok = broadcast(ok);
          }
          inside = inside ? Value(arith::AndIOp::create(b, location, inside, ok)) : ok;
        }
        source.push_back(position);
      }
      source.push_back(addIndex(firstChannel, taps[spatial]));
      weight.push_back(at.back());
      auto product = [&]() -> Value {
        Value x = widen(emit(op.getInput(), source), elementOf(op.getInput())),
              y = widen(emit(op.getFilter(), weight), elementOf(op.getFilter()));
        if (lanes) {
          x = broadcast(x);
          y = broadcast(y);
        }
        return isa<FloatType>(accumulator) ? Value(arith::MulFOp::create(b, location, x, y))
                                           : arith::MulIOp::create(b, location, x, y);
      };
      Value zero = neutral(prim::ReduceKind::Sum, accumulator);
      Value value = inside ? emitGuarded(inside, accumulator, zero, lanes, product) : product();
      return combine(prim::ReduceKind::Sum, accumulator, acc, value);
    }
    if (auto known = prim::getConstantSize(extents[dim]); known && *known <= 7) { // small: unrolled
      for (int64_t i = 0; i < *known; ++i) {
        SmallVector<Index> inner = taps;
        inner.push_back(constant(i));
        acc = nest(dim + 1, inner, acc);
      }
      return acc;
    }
    return loop(i64(0), size(extents[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = taps;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  Value total = nest(0, {}, start);
  if (getElementTypeOrSelf(total.getType()) != valueType(element))
    total = arith::TruncFOp::create(b, location, lanes ? Type(vectorOf(element)) : element, total);
  return total;
}

Value Emitter::emitWindow(prim::WindowReduceOp op, ArrayRef<Index> at) {
  auto in = prim::getSizes(op.getOperand());
  unsigned spatial = op.getWindow().size();
  Type element = elementOf(op.getResult());
  const bool lanes = anyLanes(at);
  const Type accumulator = accumulatorOf(element);
  Value nothing = neutral(op.getKind(), element);
  Value start = lanes ? broadcast(nothing) : nothing;
  std::function<Value(unsigned, SmallVector<Index>, Value)> nest = [&](unsigned dim, SmallVector<Index> taps,
                                                                       Value acc) -> Value {
    if (dim == spatial) {
      SmallVector<Index> source{at[0]};
      Value inside;
      for (unsigned i = 0; i < spatial; ++i) {
        Index position = addIndex(
            mulIndex(at[i + 1], i64(op.getStrides()[i]), op.getStrides()[i]),
            addIndex(mulIndex(taps[i], i64(op.getDilations()[i]), op.getDilations()[i]), constant(-op.getPadLow()[i])));
        position.mayPrecede = op.getPadLow()[i] > 0;
        // A position can lie outside below (low pad) or above (high pad or ceil mode).
        AffineExpr last = (prim::getSizes(op.getResult())[i + 1] - 1) * op.getStrides()[i] +
                          (op.getWindow()[i] - 1) * op.getDilations()[i] - op.getPadLow()[i];
        auto slack = prim::getConstantSize(prim::simplifySize(in[i + 1] - 1 - last));
        if (op.getPadLow()[i] > 0 || !slack || *slack < 0) {
          Value p = materialize(position);
          Value limit = isa<VectorType>(p.getType()) ? broadcast(size(in[i + 1])) : size(in[i + 1]);
          Value ok = arith::CmpIOp::create(b, location, arith::CmpIPredicate::ult, p, limit);
          if (inside && inside.getType() != ok.getType()) {
            inside = broadcast(inside);
            ok = broadcast(ok);
          }
          inside = inside ? Value(arith::AndIOp::create(b, location, inside, ok)) : ok;
        }
        source.push_back(position);
      }
      source.push_back(at.back());
      auto read = [&]() -> Value {
        Value value = emit(op.getOperand(), source);
        return toAccumulator(lanes ? broadcast(value) : value);
      };
      Value value = inside ? emitGuarded(inside, accumulator, nothing, lanes, read) : read();
      return combine(op.getKind(), accumulator, acc, value);
    }
    if (op.getWindow()[dim] <= 7) {
      for (int64_t i = 0; i < op.getWindow()[dim]; ++i) {
        SmallVector<Index> inner = taps;
        inner.push_back(constant(i));
        acc = nest(dim + 1, inner, acc);
      }
      return acc;
    }
    return loop(i64(0), i64(op.getWindow()[dim]), 1, ValueRange{acc}, [&](Index iv, ValueRange carried) {
      SmallVector<Index> inner = taps;
      inner.push_back(iv);
      return SmallVector<Value>{nest(dim + 1, inner, carried[0])};
    })[0];
  };
  return fromAccumulator(nest(0, {}, start), element);
}

void tc::codegen::disableUnrolling(Operation *loop) {
  MLIRContext *context = loop->getContext();
  auto disable = LLVM::LoopUnrollAttr::get(context, BoolAttr::get(context, true), {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation", LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, disable, {}, {}, {}, {}, {},
                                                                      {}, {}, {}, {}, {}, {}));
}
