//===- PrimDialect.cpp - the prim dialect and its size expressions ------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/IR/Prim.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "tc/Support/Saturate.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <shared_mutex>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

#include "tc/Dialect/Prim/IR/PrimDialect.cpp.inc"
#include "tc/Dialect/Prim/IR/PrimEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Prim/IR/PrimAttrs.cpp.inc"

namespace {
/// Canonical forms of size expressions, which all phases ask for again and again. Expressions live as long as their
/// context, as this does. Thread safe.
class CanonicalSizes : public DialectInterface::Base<CanonicalSizes> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CanonicalSizes)
  explicit CanonicalSizes(Dialect *dialect) : Base(dialect) {}

  AffineExpr find(AffineExpr expr) const {
    std::shared_lock lock(mutex);
    return forms.lookup(expr);
  }
  void add(AffineExpr expr, AffineExpr form) const {
    std::unique_lock lock(mutex);
    forms[expr] = form;
  }

private:
  mutable std::shared_mutex mutex;
  mutable DenseMap<AffineExpr, AffineExpr> forms;
};
} // namespace

void PrimDialect::initialize() {
  addInterfaces<CanonicalSizes>();
  addOperations<
#define GET_OP_LIST
#include "tc/Dialect/Prim/IR/PrimOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tc/Dialect/Prim/IR/PrimAttrs.cpp.inc"
      >();
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  AffineMap map = getMap().getValue();
  if (map.getNumDims() != 0 || map.getNumResults() != shape.size())
    return emitError() << "#prim.dims has " << map.getNumResults() << " sizes for a tensor of rank " << shape.size();
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    std::optional<int64_t> constant = getConstantSize(expr);
    if (constant ? *constant != size : size != ShapedType::kDynamic)
      return emitError() << "#prim.dims contradicts the tensor's static sizes";
  }
  return success();
}

namespace {
/// Number of symbols that `exprs` mention, counted as highest position + 1.
unsigned countSymbols(ArrayRef<AffineExpr> exprs) {
  unsigned count = 0;
  for (AffineExpr expr : exprs)
    expr.walk([&](AffineExpr e) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
        count = std::max(count, symbol.getPosition() + 1);
    });
  return count;
}
} // namespace

namespace {

// Normal form of a size: a sum of products of atoms (symbols and quotients), products ordered by their atoms. MLIR's
// own simplifier leaves s0 * s1 and s1 * s0 apart and does not multiply sums out, so that equal sizes of reshapes would
// differ.

/// A total order of expressions that does not depend on addresses.
int compareExprs(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (auto symbol = dyn_cast<AffineSymbolExpr>(a))
    return symbol.getPosition() < cast<AffineSymbolExpr>(b).getPosition() ? -1 : 1;
  if (auto dim = dyn_cast<AffineDimExpr>(a))
    return dim.getPosition() < cast<AffineDimExpr>(b).getPosition() ? -1 : 1;
  if (auto constant = dyn_cast<AffineConstantExpr>(a))
    return constant.getValue() < cast<AffineConstantExpr>(b).getValue() ? -1 : 1;
  auto x = cast<AffineBinaryOpExpr>(a), y = cast<AffineBinaryOpExpr>(b);
  int order = compareExprs(x.getLHS(), y.getLHS());
  return order ? order : compareExprs(x.getRHS(), y.getRHS());
}

using Atoms = SmallVector<AffineExpr, 2>;
struct AtomsLess {
  bool operator()(const Atoms &a, const Atoms &b) const {
    if (a.size() != b.size())
      return a.size() > b.size(); // the constant comes last
    for (auto [x, y] : llvm::zip_equal(a, b))
      if (int order = compareExprs(x, y))
        return order < 0;
    return false;
  }
};
using Polynomial = std::map<Atoms, int64_t, AtomsLess>;

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

void addTerm(Polynomial &polynomial, const Atoms &atoms, int64_t coefficient) {
  auto [it, inserted] = polynomial.try_emplace(atoms, coefficient);
  if (!inserted)
    it->second = saturatingAdd(it->second, coefficient);
  if (it->second == 0)
    polynomial.erase(it);
}

AffineExpr build(const Polynomial &polynomial, MLIRContext *context) {
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (const auto &[atoms, coefficient] : polynomial) {
    AffineExpr term;
    for (AffineExpr atom : atoms)
      term = term ? term * atom : atom;
    term = term ? term * coefficient : getAffineConstantExpr(coefficient, context);
    sum = sum + term;
  }
  return sum;
}

std::optional<int64_t> asConstant(const Polynomial &polynomial) {
  if (polynomial.empty())
    return 0;
  if (polynomial.size() == 1 && polynomial.begin()->first.empty())
    return polynomial.begin()->second;
  return std::nullopt;
}

Polynomial normalize(AffineExpr expr);

Polynomial normalizeQuotient(Polynomial numerator, const Polynomial &denominator, MLIRContext *context) {
  Polynomial result;
  std::optional<int64_t> divisor = asConstant(denominator);
  if (denominator.size() == 1 && (!divisor || *divisor > 0)) {
    // Terms that the denominator divides leave the quotient.
    const auto &[atoms, coefficient] = *denominator.begin();
    Polynomial rest;
    for (const auto &[termAtoms, termCoefficient] : numerator) {
      Atoms remaining;
      bool divides =
          coefficient != 0 && (coefficient != -1 || termCoefficient != INT64_MIN) && termCoefficient % coefficient == 0;
      size_t used = 0;
      for (AffineExpr atom : termAtoms)
        if (used < atoms.size() && atoms[used] == atom)
          ++used;
        else
          remaining.push_back(atom);
      if (divides && used == atoms.size())
        addTerm(result, remaining, termCoefficient / coefficient);
      else
        addTerm(rest, termAtoms, termCoefficient);
    }
    numerator = std::move(rest);
  }
  if (numerator.empty())
    return result;
  if (divisor && *divisor > 0) {
    if (std::optional<int64_t> constant = asConstant(numerator)) {
      addTerm(result, {}, floorDivide(*constant, *divisor));
      return result;
    }
    // (x floordiv a + k) floordiv b = (x + k * a) floordiv (a * b)
    const auto &[atoms, coefficient] = *numerator.begin();
    bool alone = numerator.size() == 1 || (numerator.size() == 2 && std::next(numerator.begin())->first.empty());
    if (alone && coefficient == 1 && atoms.size() == 1 && atoms[0].getKind() == AffineExprKind::FloorDiv) {
      auto inner = cast<AffineBinaryOpExpr>(atoms[0]);
      auto innerDivisor = dyn_cast<AffineConstantExpr>(inner.getRHS());
      if (innerDivisor && innerDivisor.getValue() > 0 && innerDivisor.getValue() <= INT32_MAX &&
          *divisor <= INT32_MAX) {
        int64_t k = numerator.size() == 2 ? std::next(numerator.begin())->second : 0;
        Polynomial merged = normalize(inner.getLHS());
        addTerm(merged, {}, saturatingMul(k, innerDivisor.getValue()));
        Polynomial by;
        addTerm(by, {}, innerDivisor.getValue() * *divisor);
        for (const auto &[a, c] : normalizeQuotient(std::move(merged), by, context))
          addTerm(result, a, c);
        return result;
      }
    }
  }
  AffineExpr quotient =
      getAffineBinaryOpExpr(AffineExprKind::FloorDiv, build(numerator, context), build(denominator, context));
  addTerm(result, {quotient}, 1);
  return result;
}

Polynomial normalize(AffineExpr expr) {
  Polynomial result;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    addTerm(result, {}, constant.getValue());
    return result;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary) {
    addTerm(result, {expr}, 1);
    return result;
  }
  Polynomial a = normalize(binary.getLHS()), b = normalize(binary.getRHS());
  MLIRContext *context = expr.getContext();
  auto multiply = [](const Polynomial &x, const Polynomial &y) {
    Polynomial product;
    for (const auto &[xs, xc] : x)
      for (const auto &[ys, yc] : y) {
        Atoms atoms(xs);
        llvm::append_range(atoms, ys);
        llvm::sort(atoms, [](AffineExpr p, AffineExpr q) { return compareExprs(p, q) < 0; });
        addTerm(product, atoms, saturatingMul(xc, yc));
      }
    return product;
  };
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    for (const auto &[atoms, coefficient] : b)
      addTerm(a, atoms, coefficient);
    return a;
  case AffineExprKind::Mul:
    if (a.size() > 1 && b.size() > 1 && a.size() * b.size() > 64) { // do not let products of long sums explode
      addTerm(result, {build(a, context) * build(b, context)}, 1);
      return result;
    }
    return multiply(a, b);
  case AffineExprKind::FloorDiv:
    return normalizeQuotient(std::move(a), b, context);
  case AffineExprKind::CeilDiv: { // (a + b - 1) floordiv b
    for (const auto &[atoms, coefficient] : b)
      addTerm(a, atoms, coefficient);
    addTerm(a, {}, -1);
    return normalizeQuotient(std::move(a), b, context);
  }
  case AffineExprKind::Mod: { // a - b * (a floordiv b)
    Polynomial quotient = multiply(b, normalizeQuotient(a, b, context));
    for (const auto &[atoms, coefficient] : quotient)
      addTerm(a, atoms, saturatingMul(coefficient, -1));
    return a;
  }
  default:
    addTerm(result, {expr}, 1);
    return result;
  }
}

/// Whether `a` comes before `b` by degree, then by the powers of the first atoms: an order that products keep.
bool isGreater(const Atoms &a, const Atoms &b) {
  if (a.size() != b.size())
    return a.size() > b.size();
  for (auto [x, y] : llvm::zip_equal(a, b))
    if (x != y)
      return compareExprs(x, y) < 0;
  return false;
}

const std::pair<const Atoms, int64_t> &leadingTerm(const Polynomial &polynomial) {
  return *std::max_element(polynomial.begin(), polynomial.end(),
                           [](const auto &a, const auto &b) { return isGreater(b.first, a.first); });
}

/// The factor that makes `of` from `part`, if there is one.
std::optional<std::pair<Atoms, int64_t>> divideTerm(const std::pair<const Atoms, int64_t> &of,
                                                    const std::pair<const Atoms, int64_t> &part) {
  if (part.second == 0 || (part.second == -1 && of.second == INT64_MIN) || of.second % part.second != 0)
    return std::nullopt;
  Atoms rest(of.first);
  for (AffineExpr atom : part.first) {
    auto *found = llvm::find(rest, atom);
    if (found == rest.end())
      return std::nullopt;
    rest.erase(found);
  }
  return std::pair(rest, of.second / part.second);
}

} // namespace

std::optional<AffineExpr> tc::prim::divideSize(AffineExpr expr, AffineExpr by) {
  constexpr int kMostTerms = 64;
  MLIRContext *context = expr.getContext();
  Polynomial rest = normalize(expr), quotient;
  const Polynomial divisor = normalize(by);
  if (divisor.empty())
    return std::nullopt;
  // Long division: the leading term of what is left is a multiple of the divisor's, if the division is exact.
  for (int i = 0; i < kMostTerms && !rest.empty(); ++i) {
    auto term = divideTerm(leadingTerm(rest), leadingTerm(divisor));
    if (!term)
      return std::nullopt;
    addTerm(quotient, term->first, term->second);
    for (const auto &[atoms, coefficient] : divisor) {
      Atoms product(atoms);
      llvm::append_range(product, term->first);
      llvm::sort(product, [](AffineExpr p, AffineExpr q) { return compareExprs(p, q) < 0; });
      addTerm(rest, product, saturatingMul(saturatingMul(coefficient, term->second), -1));
    }
  }
  return rest.empty() ? std::optional(build(quotient, context)) : std::nullopt;
}

AffineExpr tc::prim::simplifySize(AffineExpr expr) {
  if (isa<AffineConstantExpr, AffineSymbolExpr>(expr))
    return expr;
  auto *dialect = expr.getContext()->getLoadedDialect<PrimDialect>();
  const auto *known = dialect ? dialect->getRegisteredInterface<CanonicalSizes>() : nullptr;
  AffineExpr form = known ? known->find(expr) : AffineExpr();
  if (form)
    return form;
  form = build(normalize(expr), expr.getContext());
  if (known)
    known->add(expr, form);
  return form;
}

AffineMap tc::prim::makeSizeMap(MLIRContext *context, ArrayRef<AffineExpr> exprs) {
  SmallVector<AffineExpr> simple = llvm::map_to_vector(exprs, simplifySize);
  return AffineMap::get(0, countSymbols(simple), simple, context);
}

SmallVector<AffineExpr> tc::prim::getSizes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  if (auto dims = dyn_cast_or_null<DimsAttr>(tensor.getEncoding()))
    return llvm::to_vector(dims.getMap().getValue().getResults());
  return llvm::map_to_vector(tensor.getShape(),
                             [&](int64_t size) { return getAffineConstantExpr(size, type.getContext()); });
}

RankedTensorType tc::prim::makeType(Type elementType, ArrayRef<AffineExpr> sizes) {
  MLIRContext *context = elementType.getContext();
  AffineMap map = makeSizeMap(context, sizes);
  SmallVector<int64_t> shape;
  bool isStatic = true;
  for (AffineExpr expr : map.getResults()) {
    std::optional<int64_t> constant = getConstantSize(expr);
    shape.push_back(constant.value_or(ShapedType::kDynamic));
    isStatic &= constant.has_value();
  }
  if (isStatic)
    return RankedTensorType::get(shape, elementType);
  return RankedTensorType::get(shape, elementType, DimsAttr::get(context, AffineMapAttr::get(map)));
}

RankedTensorType tc::prim::withElementType(Type type, Type elementType) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), elementType, tensor.getEncoding());
}

unsigned tc::prim::getElementBits(Type elementType) {
  if (auto complex = dyn_cast<ComplexType>(elementType))
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  if (!elementType.isIntOrFloat())
    return 64; // a word
  return elementType.isInteger(1) ? 8 : elementType.getIntOrFloatBitWidth();
}

bool tc::prim::isNarrowElement(Type elementType) {
  unsigned width = getElementBits(elementType);
  return isa<FloatType>(elementType) ? width <= 8 : width == 2 || width == 4;
}

RankedTensorType tc::prim::getStorageType(Type narrow) {
  if (auto complex = dyn_cast<ComplexType>(cast<RankedTensorType>(narrow).getElementType())) {
    SmallVector<AffineExpr> sizes = getSizes(narrow);
    sizes.push_back(getAffineConstantExpr(2, narrow.getContext()));
    return makeType(complex.getElementType(), sizes);
  }
  auto bytes = IntegerType::get(narrow.getContext(), 8, IntegerType::Unsigned);
  int64_t perByte = 8 / cast<RankedTensorType>(narrow).getElementTypeBitWidth();
  if (perByte == 1)
    return withElementType(narrow, bytes);
  return makeType(bytes, {product(narrow.getContext(), getSizes(narrow)).ceilDiv(perByte)});
}

AffineExpr tc::prim::product(MLIRContext *context, ArrayRef<AffineExpr> sizes) {
  AffineExpr result = getAffineConstantExpr(1, context);
  for (AffineExpr size : sizes)
    result = result * size;
  return simplifySize(result);
}

std::optional<int64_t> tc::prim::getConstantSize(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

Value tc::prim::skipReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

SmallVector<int64_t> tc::prim::getBoundSymbols(Operation *op) {
  if (auto bind = dyn_cast<BindSymbolOp>(op))
    return {int64_t(bind.getSymbol())};
  if (auto branch = dyn_cast<IfOp>(op))
    return llvm::to_vector(branch.getBinds());
  if (auto loop = dyn_cast<WhileOp>(op))
    return llvm::to_vector(loop.getBinds());
  return {};
}

std::pair<unsigned, unsigned> tc::prim::getBoundDim(Operation *op, int64_t symbol) {
  for (auto [i, type] : llvm::enumerate(op->getResultTypes()))
    for (auto [d, size] : llvm::enumerate(getSizes(type)))
      if (auto alone = dyn_cast<AffineSymbolExpr>(size); alone && alone.getPosition() == symbol)
        return {i, d};
  llvm_unreachable("the verifier checks that every bound symbol is a dim of a result");
}

int64_t tc::prim::evaluate(AffineExpr expr, llvm::function_ref<int64_t(AffineExpr)> leaf) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return leaf(expr);
  const int64_t x = evaluate(binary.getLHS(), leaf), y = evaluate(binary.getRHS(), leaf);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return saturatingAdd(x, y);
  case AffineExprKind::Mul:
    return saturatingMul(x, y);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(x, y == 0 ? 1 : y);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(x, y == 0 ? 1 : y);
  default:
    return llvm::mod(x, y == 0 ? 1 : y);
  }
}

std::pair<int64_t, int64_t> tc::prim::getSizeBounds(AffineExpr expr, ArrayAttr symbols) {
  constexpr int64_t kMax = INT64_MAX;
  auto saturate = [](__int128 v) -> int64_t { return v > kMax ? kMax : v < INT64_MIN ? INT64_MIN : int64_t(v); };
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    if (symbols && symbol.getPosition() < symbols.size())
      if (auto attr = dyn_cast<SymbolAttr>(symbols[symbol.getPosition()]))
        return {attr.getMin(), attr.getMax()};
    return {0, kMax};
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto [a0, a1] = getSizeBounds(binary.getLHS(), symbols);
  auto [b0, b1] = getSizeBounds(binary.getRHS(), symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return {saturate(__int128(a0) + b0), saturate(__int128(a1) + b1)};
  case AffineExprKind::Mul: {
    __int128 p[4] = {__int128(a0) * b0, __int128(a0) * b1, __int128(a1) * b0, __int128(a1) * b1};
    return {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
  }
  case AffineExprKind::FloorDiv:
    if (b0 > 0)
      return {a0 >= 0 ? a0 / b1 : a0, a1 == kMax ? kMax : a1 >= 0 ? a1 / b0 : a1};
    return {INT64_MIN, kMax};
  case AffineExprKind::CeilDiv:
    if (b0 > 0 && a0 >= 0)
      return {a0 / b1, a1 == kMax ? kMax : (a1 - 1) / b0 + 1};
    return {INT64_MIN, kMax};
  case AffineExprKind::Mod:
    return {0, b1 == kMax ? kMax : b1 - 1};
  default:
    return {INT64_MIN, kMax};
  }
}

/// What an indicator is the quotient by, and what is added before.
static constexpr int64_t kIndicator = int64_t(1) << 62;

AffineExpr tc::prim::makeIndicator(AffineExpr atLeastZero) { return (atLeastZero + kIndicator).floorDiv(kIndicator); }

namespace {
class SizePrinter {
public:
  SizePrinter(llvm::raw_ostream &os, ArrayAttr symbols) : os(os), symbols(symbols) {}

  /// `isFactor`: sums and products stand in parentheses.
  void print(AffineExpr expr, bool isFactor) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      os << constant.getValue();
    } else if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
      printName(symbol.getPosition());
    } else {
      auto binary = cast<AffineBinaryOpExpr>(expr);
      if (printIndicator(binary))
        return;
      os << (isFactor ? "(" : "");
      printBinary(binary);
      os << (isFactor ? ")" : "");
    }
  }

  /// `difference` is at least 0, or 0.
  void printCondition(AffineExpr difference, bool isEquality) {
    auto limitOf = [](AffineExpr expr) {
      auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
      return sum && sum.getKind() == AffineExprKind::Add ? getConstantSize(sum.getRHS()).value_or(0) : int64_t(0);
    };
    difference = simplifySize(difference);
    if (isEquality && limitOf(difference) < 0) // for s - 8, too, s = 8
      difference = simplifySize(-difference);
    const int64_t limit = limitOf(difference);
    print(simplifySize(limit - difference), /*isFactor=*/false);
    os << (isEquality ? " = " : " <= ") << limit;
  }

private:
  void printName(unsigned position) {
    auto named = symbols && position < symbols.size() ? dyn_cast<SymbolAttr>(symbols[position]) : SymbolAttr();
    if (named)
      os << named.getName();
    else
      os << "s" << position;
  }

  /// (x <= 5) for (5 - x + 2^62) floordiv 2^62.
  bool printIndicator(AffineBinaryOpExpr expr) {
    if (expr.getKind() != AffineExprKind::FloorDiv || getConstantSize(expr.getRHS()) != kIndicator)
      return false;
    os << "(";
    printCondition(expr.getLHS() - kIndicator, /*isEquality=*/false);
    os << ")";
    return true;
  }

  void printBinary(AffineBinaryOpExpr expr) {
    AffineExpr lhs = expr.getLHS(), rhs = expr.getRHS();
    if (expr.getKind() != AffineExprKind::Add) {
      const bool isProduct = expr.getKind() == AffineExprKind::Mul && lhs.getKind() == AffineExprKind::Mul;
      print(lhs, /*isFactor=*/!isProduct);
      os << getName(expr.getKind());
      return print(rhs, /*isFactor=*/true);
    }
    print(lhs, /*isFactor=*/false);
    auto product = dyn_cast<AffineBinaryOpExpr>(rhs);
    auto factor = product && product.getKind() == AffineExprKind::Mul ? dyn_cast<AffineConstantExpr>(product.getRHS())
                                                                      : dyn_cast<AffineConstantExpr>(rhs);
    if (!factor || factor.getValue() >= 0 || factor.getValue() == INT64_MIN) {
      os << " + ";
      return print(rhs, /*isFactor=*/false);
    }
    os << " - ";
    if (factor == rhs || factor.getValue() != -1)
      os << -factor.getValue() << (factor == rhs ? "" : " * ");
    if (factor != rhs)
      print(product.getLHS(), /*isFactor=*/true);
  }

  static StringRef getName(AffineExprKind kind) {
    switch (kind) {
    case AffineExprKind::Mul:
      return " * ";
    case AffineExprKind::FloorDiv:
      return " floordiv ";
    case AffineExprKind::CeilDiv:
      return " ceildiv ";
    default:
      return " mod ";
    }
  }

  llvm::raw_ostream &os;
  ArrayAttr symbols;
};
} // namespace

std::string tc::prim::formatCondition(AffineExpr difference, bool isEquality, ArrayAttr symbols) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SizePrinter(os, symbols).printCondition(difference, isEquality);
  return text;
}

std::string tc::prim::formatSize(AffineExpr expr, ArrayAttr symbols) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SizePrinter(os, symbols).print(expr, /*isFactor=*/false);
  return text;
}
