//===- Sizes.cpp - size arithmetic, guards and failures of a host program ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tc;
using namespace tc::host;
using tc::hosttollvm::ProgramBuilder;

Value ProgramBuilder::text(const std::string &message) {
  std::string name = "tc_message_" + std::to_string(tables.messageCount++);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&variant.getBody().front());
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(i8, message.size()), /*isConstant=*/true,
                           LLVM::Linkage::Internal, name, b.getStringAttr(message));
  }
  return LLVM::AddressOfOp::create(b, loc, ptr, name);
}

void ProgramBuilder::failIf(Value bad, int32_t code, const std::string &message) {
  Block *failing = newBlock(), *next = newBlock();
  condBranch(bad, failing, next);
  b.setInsertionPointToStart(failing);
  Value result = callIndirect(i32, {ptr, i32, ptr, i64}, import(offsetof(tcrt_imports_t, fail)),
                              {frame, c32(code), text(message), c64(message.size())});
  LLVM::ReturnOp::create(b, loc, result);
  b.setInsertionPointToStart(next);
}

void ProgramBuilder::returnIfFailed(Value code) {
  Block *failing = newBlock(), *next = newBlock();
  condBranch(compare(LLVM::ICmpPredicate::ne, code, c32(0)), failing, next);
  b.setInsertionPointToStart(failing);
  LLVM::ReturnOp::create(b, loc, code);
  b.setInsertionPointToStart(next);
}

Value ProgramBuilder::floorDiv(Value x, Value y) {
  Value quotient = LLVM::SDivOp::create(b, loc, x, y), rest = LLVM::SRemOp::create(b, loc, x, y);
  Value inexact = compare(LLVM::ICmpPredicate::ne, rest, c64(0));
  Value opposite = compare(LLVM::ICmpPredicate::slt, LLVM::XOrOp::create(b, loc, rest, y), c64(0));
  Value down = LLVM::AndOp::create(b, loc, inexact, opposite);
  return LLVM::SubOp::create(b, loc, quotient, LLVM::ZExtOp::create(b, loc, i64, down));
}

Value ProgramBuilder::arithmetic(AffineExprKind kind, Value x, Value y) {
  auto checked = [&](Value pair) -> Value {
    Value bad = LLVM::ExtractValueOp::create(b, loc, pair, ArrayRef<int64_t>{1});
    overflow = LLVM::OrOp::create(b, loc, overflow, bad);
    return LLVM::ExtractValueOp::create(b, loc, pair, ArrayRef<int64_t>{0});
  };
  switch (kind) {
  case AffineExprKind::Add:
    return overflow ? checked(LLVM::SAddWithOverflowOp::create(b, loc, i64Checked, x, y))
                    : Value(LLVM::AddOp::create(b, loc, x, y));
  case AffineExprKind::Mul:
    return overflow ? checked(LLVM::SMulWithOverflowOp::create(b, loc, i64Checked, x, y))
                    : Value(LLVM::MulOp::create(b, loc, x, y));
  default:
    break;
  }
  // A division by a symbol that is 0 gives something, but no trap.
  auto known = y.getDefiningOp<LLVM::ConstantOp>();
  const bool isKnown = known && cast<IntegerAttr>(known.getValue()).getInt() != 0;
  Value divisor = isKnown ? y : select(compare(LLVM::ICmpPredicate::eq, y, c64(0)), c64(1), y);
  if (kind == AffineExprKind::FloorDiv)
    return floorDiv(x, divisor);
  if (kind == AffineExprKind::CeilDiv) {
    Value negated = LLVM::SubOp::create(b, loc, c64(0), x);
    return LLVM::SubOp::create(b, loc, c64(0), floorDiv(negated, divisor));
  }
  Value product = LLVM::MulOp::create(b, loc, floorDiv(x, divisor), divisor);
  return LLVM::SubOp::create(b, loc, x, product);
}

const ProgramBuilder::SizeInfo &ProgramBuilder::getInfo(AffineExpr expr) {
  if (auto known = sizeInfos.find(expr); known != sizeInfos.end())
    return known->second;
  SizeInfo info;
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    info.isStable = !boundByLoop.contains(symbol.getPosition());
  } else if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    const SizeInfo lhs = getInfo(binary.getLHS()), rhs = getInfo(binary.getRHS());
    info = {llvm::SaturatingAdd(llvm::SaturatingAdd(lhs.operations, rhs.operations), 1u), lhs.isStable && rhs.isStable};
  }
  return sizeInfos.try_emplace(expr, info).first->second;
}

Value ProgramBuilder::findSize(AffineExpr expr) {
  // What was computed without checks may be a wrapped number.
  const bool isChecked(overflow);
  for (const DenseMap<AffineExpr, Size> &scope : llvm::reverse(knownSizes))
    if (auto known = scope.find(expr); known != scope.end() && (known->second.isChecked || !isChecked))
      return known->second.value;
  auto kept = sharedSizes.find(expr);
  if (!shared || kept == sharedSizes.end() || (isChecked && !kept->second.isChecked))
    return {};
  Value value = load(i64, sharedSizeAddress(kept->second.number));
  knownSizes.back()[expr] = {value, kept->second.isChecked};
  return value;
}

Value ProgramBuilder::size(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return c64(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return load(i64, at(frameSymbols, 8 * int64_t(symbol.getPosition())));
  const SizeInfo info = getInfo(expr);
  if (Value known = info.isStable ? findSize(expr) : Value())
    return known;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = size(binary.getLHS());
  Value value = arithmetic(expr.getKind(), lhs, size(binary.getRHS()));
  if (!info.isStable)
    return value;
  const bool isChecked(overflow);
  knownSizes.back()[expr] = {value, isChecked};
  // Parts that follow load it, if that is less than to compute it.
  constexpr unsigned kWorthLoading = 4;
  if (shared && knownSizes.size() == 1 && info.operations >= kWorthLoading) {
    SharedSize &kept = sharedSizes.try_emplace(expr, SharedSize{sharedSizes.size(), isChecked}).first->second;
    kept.isChecked |= isChecked;
    store(value, sharedSizeAddress(kept.number));
  }
  return value;
}

/// The guards of a symbol that the runtime does not bind.
void ProgramBuilder::checkSymbol(unsigned symbol, Value value, std::optional<StringRef> message) {
  int64_t min = 0, max = INT64_MAX, divisor = 1;
  if (symbols && symbol < symbols.size()) {
    auto attr = cast<prim::SymbolAttr>(symbols[symbol]);
    min = attr.getMin();
    max = attr.getMax();
    divisor = attr.getDivisor();
  }
  Value bad = LLVM::OrOp::create(b, loc, compare(LLVM::ICmpPredicate::slt, value, c64(min)),
                                 compare(LLVM::ICmpPredicate::sgt, value, c64(max)));
  std::string range = max == INT64_MAX ? llvm::formatv("at least {0}", min).str()
                      : min == max     ? std::to_string(min)
                                       : llvm::formatv("in [{0}, {1}]", min, max).str();
  if (divisor > 1) {
    Value rest = LLVM::SRemOp::create(b, loc, value, c64(divisor));
    bad = LLVM::OrOp::create(b, loc, bad, compare(LLVM::ICmpPredicate::ne, rest, c64(0)));
    range += llvm::formatv(" and a multiple of {0}", divisor);
  }
  failIf(bad, TCRT_CODE_REFUSED,
         message ? message->str() : llvm::formatv("the size \"{0}\" must be {1}", symbolName(symbol), range).str());
}

void ProgramBuilder::bindResultSymbols(Operation *op, ValueRange values) {
  // All sizes first: those of one value may be computed from a symbol that another value changes.
  SmallVector<std::pair<int64_t, Value>> sizes;
  for (int64_t symbol : prim::getBoundSymbols(op)) {
    auto [result, dim] = prim::getBoundDim(op, symbol);
    sizes.push_back({symbol, size(prim::getSizes(values[result])[dim])});
  }
  for (auto [symbol, value] : sizes)
    store(value, at(frameSymbols, 8 * symbol));
}

void ProgramBuilder::emitGuard(prim::GuardOp guard) {
  AffineExpr x = guard.getSizes().getResult(0), y = guard.getSizes().getResult(1);
  Value first = size(x);
  bool equal = guard.getKind() == prim::CompareKind::EQ;
  Value bad = compare(equal ? LLVM::ICmpPredicate::ne : LLVM::ICmpPredicate::sgt, first, size(y));
  if (guard.getOrOne())
    bad = LLVM::AndOp::create(b, loc, bad, compare(LLVM::ICmpPredicate::ne, first, c64(1)));
  std::string node = llvm::join(getNodeNames(guard.getLoc()), "+");
  if (!node.empty())
    node = "node \"" + node + "\": ";
  failIf(bad, TCRT_CODE_REFUSED,
         llvm::formatv("{0}{1}; {2} {3} {4} for these inputs", node, guard.getWhat(), prim::formatSize(x, symbols),
                       equal ? "is not" : "is greater than", prim::formatSize(y, symbols)));
}
