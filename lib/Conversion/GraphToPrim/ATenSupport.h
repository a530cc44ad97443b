//===- ATenSupport.h - what the ATen handlers share -----------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ATENSUPPORT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ATENSUPPORT_H

#include "NodeContext.h"

#include "tc/Dialect/Prim/Utils/Admission.h"

namespace tc {

/// PyTorch's result type of two element types, as torch.promote_types says; null where there is none.
mlir::Type promoteTypes(mlir::Type a, mlir::Type b);
/// bool 0, integers 1, floats 2, complex 3; -1 for what is no number.
int categoryOf(mlir::Type element);

/// The type that PyTorch computes in, of tensors with dims, tensors without and Python's numbers: a kind that has less
/// weight counts only where its category is higher. Source: c10 and ATen, TensorIterator's common dtype (result_type).
class TypePromotion {
public:
  void addTensor(mlir::Type element, int64_t rank) { join(rank ? ofDims : ofNone, element); }
  /// `type`: i1, i64, or a float or complex type, which stands for the default one.
  void addNumber(mlir::Type type);
  /// Null if there is no such type.
  mlir::Type get() const;

private:
  void join(mlir::Type &into, mlir::Type element);
  mlir::Type ofDims, ofNone, ofNumbers;
  bool isImpossible = false;
};

/// Argument "reduction": numbers of at::Reduction.
enum Reduce : int64_t { kNone = 0, kMean = 1, kSum = 2 };

/// What becomes of integers and bools among promoted operands.
enum class Integers {
  Kept,   ///< they stay
  Floats, ///< they become the default float type, as functions of reals take them
};

/// Named access to the arguments of one call.
class Call {
public:
  explicit Call(NodeContext &ctx) : ctx(ctx), b(ctx.b) {
    if (auto names = llvm::dyn_cast_or_null<mlir::ArrayAttr>(ctx.attr("arg_names")))
      for (auto [i, name] : llvm::enumerate(names.getAsRange<mlir::StringAttr>()))
        positions[name.getValue()] = i;
  }

  /// Null if absent.
  mlir::Value tensor(llvm::StringRef name) {
    auto found = positions.find(name);
    return found == positions.end() ? mlir::Value() : ctx.operand(found->second);
  }
  /// The tensors of a list argument, in order.
  llvm::SmallVector<mlir::Value> tensors(llvm::StringRef name) {
    llvm::SmallVector<mlir::Value> all;
    for (int64_t i = 0, n = ctx.getInt((name + ".count").str(), 0); i < n; ++i)
      if (mlir::Value value = tensor((name + "." + llvm::Twine(i)).str()))
        all.push_back(value);
    return all;
  }
  /// A number or flag that is given, or else that PyTorch's signature has as its default; null if there is neither.
  mlir::Attribute scalarArgument(llvm::StringRef name);
  /// A number that is a constant, `otherwise` where it is absent and the signature has no number as its default. One
  /// that the program computes is refused: the handler need not ask.
  double number(llvm::StringRef name, double otherwise);
  bool has(llvm::StringRef name) { return ctx.hasAttr(name) || tensor(name); }
  bool flag(llvm::StringRef name, bool otherwise = false) { return number(name, otherwise) != 0; }
  int64_t integer(llvm::StringRef name, int64_t otherwise);
  /// Integers of a list argument, constants; nullopt if it is absent. Others are refused as by `number`.
  std::optional<llvm::SmallVector<int64_t>> integers(llvm::StringRef name);
  /// A list of sizes, entries may be symbolic; -1 stays -1.
  mlir::FailureOr<Sizes> sizes(llvm::StringRef name) {
    mlir::Attribute attr = ctx.attr(name);
    Sizes all;
    if (auto dense = llvm::dyn_cast_or_null<mlir::DenseI64ArrayAttr>(attr)) {
      for (int64_t size : dense.asArrayRef())
        all.push_back(b.size(size));
      return checked(all, name);
    }
    auto array = llvm::dyn_cast_or_null<mlir::ArrayAttr>(attr);
    if (!array)
      return ctx.invalid("argument \"" + name + "\" is missing");
    for (mlir::Attribute entry : array) {
      if (auto constant = llvm::dyn_cast<mlir::IntegerAttr>(entry)) {
        all.push_back(b.size(constant.getInt()));
        continue;
      }
      auto operand = llvm::dyn_cast<mlir::StringAttr>(entry);
      mlir::Value value = operand ? tensor(operand.getValue()) : mlir::Value();
      if (!value)
        return ctx.invalid("argument \"" + name + "\" holds what is no integer");
      mlir::FailureOr<mlir::AffineExpr> one = sizeOf(value, name);
      if (failed(one))
        return mlir::failure();
      all.push_back(*one);
    }
    return checked(all, name);
  }
  mlir::FailureOr<Sizes> checked(const Sizes &all, llvm::StringRef name) {
    for (mlir::AffineExpr e : all)
      if (auto known = prim::getConstantSize(e); known && (*known < -1 || *known >= int64_t(1) << prim::kSizeBits))
        return *known < -1
                   ? ctx.invalid("argument \"" + name + "\" holds " + llvm::Twine(*known) + "; sizes are not negative")
                   : ctx.invalid("argument \"" + name + "\" holds " + llvm::Twine(*known) + "; sizes lie below 2^" +
                                 llvm::Twine(prim::kSizeBits));
    return all;
  }
  mlir::FailureOr<mlir::Value> required(llvm::StringRef name) {
    if (mlir::Value value = tensor(name))
      return value;
    return ctx.invalid("argument \"" + name + "\" is missing");
  }
  /// Whether the argument is a Python number, and no tensor: a constant, or one that the program computes.
  bool isNumber(llvm::StringRef name) { return bool(numberType(name)); }
  /// i1, i64, f64 or complex<f64> of a Python number; null of what is none.
  mlir::Type numberType(llvm::StringRef name);
  /// A tensor or number as a tensor of `type`; a number is 0-D and exact. `otherwise`: where it is absent.
  mlir::FailureOr<mlir::Value> as(llvm::StringRef name, mlir::Type type, std::optional<double> otherwise = {});
  /// A bound of values of `type` as `as` gives it. Of integers, a constant that all of them keep to is the least or the
  /// greatest, and one that none keeps to is refused, as PyTorch does.
  mlir::FailureOr<mlir::Value> bound(llvm::StringRef name, mlir::Type type, bool isLower,
                                     std::optional<double> otherwise = {});
  /// The type that PyTorch computes in of these arguments (absent ones are left out), tensors or numbers.
  mlir::FailureOr<mlir::Type> commonType(llvm::ArrayRef<llvm::StringRef> names, Integers integers = Integers::Kept);
  /// The arguments in their common type, or in `type`, all broadcast together. With `inAccumulator` narrow floats are
  /// made f32, to be rounded once at the end by `rounded`.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> promoted(llvm::ArrayRef<llvm::StringRef> names,
                                                           Integers integers = Integers::Kept,
                                                           bool inAccumulator = false, mlir::Type type = {});
  /// Whether all these arguments are tensors of elements of `type`.
  bool areOf(mlir::Type type, llvm::ArrayRef<llvm::StringRef> names);
  /// Sets result i to `value` in `type`, rounded once.
  mlir::LogicalResult rounded(mlir::Value value, mlir::Type type, size_t i = 0);
  /// The element type of argument `name` (dtype), or `otherwise` where it is absent.
  mlir::FailureOr<mlir::Type> dtype(mlir::Type otherwise, llvm::StringRef name = "dtype");
  /// `value` as elements of `to`, as PyTorch converts.
  mlir::FailureOr<mlir::Value> convert(mlir::Value value, mlir::Type to);
  /// Dims of argument `name`, which is one or a list; all where it is absent or (unless `emptyIsNone`) empty. Of a
  /// tensor without dims 0 and -1 are taken, and there is none.
  mlir::FailureOr<llvm::SmallVector<int64_t>> dims(llvm::StringRef name, int64_t rank, bool emptyIsNone = false);
  /// One dim, of a tensor without dims nullopt.
  mlir::FailureOr<std::optional<int64_t>> dim(llvm::StringRef name, int64_t rank,
                                              std::optional<int64_t> otherwise = {});
  /// A number that the program computes as an expression: any where it follows from sizes; what depends on data must be
  /// 0 or more, and a run is refused where it is not.
  mlir::FailureOr<mlir::AffineExpr> sizeOf(mlir::Value value, llvm::StringRef argument);
  /// One integer, a constant or what the program computes (`sizeOf`).
  mlir::FailureOr<mlir::AffineExpr> size(llvm::StringRef name, std::optional<int64_t> otherwise = {});
  /// The type of floats where nothing tells one (torch.get_default_dtype): f32, or f64 where the model declares the
  /// node's result in it.
  mlir::Type defaultFloat();
  /// One that must be of floats, or (`orIntegers`) is made of the default type, as PyTorch computes of integers.
  mlir::FailureOr<mlir::Value> floats(llvm::StringRef name, bool orIntegers = false) {
    mlir::FailureOr<mlir::Value> value = required(name);
    if (failed(value) || b.isFloat(*value))
      return value;
    if (!orIntegers || !llvm::isa<mlir::IntegerType>(b.elementOf(*value)))
      return ctx.invalid("argument \"" + name + "\" must be a tensor of floats, but is " + describe(*value));
    return b.convert(*value, defaultFloat());
  }

  NodeContext &ctx;
  PrimBuilder &b;

private:
  llvm::StringMap<size_t> positions;
};

/// A tensor argument of a call that is written down, by its name there; null ones are absent.
using TensorArgument = std::pair<llvm::StringRef, mlir::Value>;

/// Calls ATen's operator `type`, name and overload, with these tensors and attributes.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> callATen(NodeContext &ctx, llvm::StringRef type,
                                                         llvm::ArrayRef<TensorArgument> tensors,
                                                         mlir::NamedAttrList attributes, size_t resultCount = 1);

/// Sets result `i`, floats, in the type that the model declares for it; else `otherwise`. Where half precision meets
/// f32 parameters or statistics, PyTorch's metadata does not always say what its kernels give, and what reads the
/// result expects what was declared.
mlir::LogicalResult setFloats(NodeContext &ctx, size_t i, mlir::Value value, mlir::Type otherwise);

/// Real and imaginary part of a complex tensor, and the tensor of them.
std::pair<mlir::Value, mlir::Value> splitComplex(PrimBuilder &b, mlir::Value value);
mlir::Value joinComplex(PrimBuilder &b, mlir::Value real, mlir::Value imaginary);

/// Whether an element has the sign bit: that of -0 and of some NaNs, too.
mlir::Value isSigned(PrimBuilder &b, mlir::Value value);
mlir::Value isNan(PrimBuilder &b, mlir::Value value);
/// The remainder of x / y with the sign of y, as Python's %; exact, not from the rounded quotient.
mlir::Value emitRemainder(PrimBuilder &b, mlir::Value x, mlir::Value y);
mlir::Value isInf(PrimBuilder &b, mlir::Value value);
/// sqrt(x^2 + y^2) without overflow.
mlir::Value emitHypot(PrimBuilder &b, mlir::Value x, mlir::Value y);
/// 1 - erf(x), with its relative accuracy where that is near 0; of f32 or f64.
mlir::Value emitErfc(PrimBuilder &b, mlir::Value x);

/// The derivative of log gamma, of f64.
mlir::Value emitDigamma(PrimBuilder &b, mlir::Value x);

/// A 0-D constant, exact for all integers; null if `attr` is no number.
mlir::Value makeNumber(PrimBuilder &b, mlir::Attribute attr, mlir::Type type);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ATENSUPPORT_H
