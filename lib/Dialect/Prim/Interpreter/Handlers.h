//===- Handlers.h - registry and evaluation state of the interpreter ------------------------------------*- C++ -*-===//
//
// A handler computes the results of one op from its operands. Each family of ops has a file with its handlers and one
// function that adds them to the registry; adding an op means adding a line there.
//
// A handler may rely on: operands as many as the op has, element types supported, shapes as the operands' types say
// (checked against the symbols' values). It returns tensors of the shapes in `call.shapes`, which the interpreter
// checks.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_INTERPRETER_HANDLERS_H
#define TC_LIB_DIALECT_PRIM_INTERPRETER_HANDLERS_H

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Interpreter/Interpreter.h"

#include "llvm/ADT/StringMap.h"

namespace tc::prim::interpreter {

using Results = llvm::Expected<std::vector<Tensor>>;
using Shape = llvm::SmallVector<int64_t>;

class Frame;

/// One evaluation of one op.
struct Call {
  mlir::Operation *op;
  llvm::ArrayRef<Tensor> operands;
  /// Sizes of the results (empty for ops with regions, whose results say their own) and the element types to make.
  llvm::ArrayRef<Shape> shapes;
  llvm::ArrayRef<mlir::Type> elementTypes;
  Frame &frame;

  /// The first result, of numbers rounded to its element type.
  Tensor makeDoubles(llvm::ArrayRef<double> values) const { return fromDoubles(elementTypes[0], shapes[0], values); }
  Tensor makeInts(llvm::ArrayRef<int64_t> values) const { return fromInts(elementTypes[0], shapes[0], values); }
  bool isFloat(unsigned operand) const { return mlir::isa<mlir::FloatType>(operands[operand].elementType); }
  /// An error that names the op and its node.
  llvm::Error fail(const llvm::Twine &what) const;
};

using Handler = std::function<Results(const Call &)>;

/// Handlers by op name.
class Registry {
public:
  static const Registry &get();
  const Handler *find(llvm::StringRef name) const;
  std::vector<std::string> names() const;

  void add(llvm::StringRef name, Handler handler) { handlers[name] = std::move(handler); }
  /// `function`: Expected<Tensor> or Tensor (OpTy, const Call &), for ops with one result.
  template <typename OpTy, typename Function> void add(Function function) {
    add(OpTy::getOperationName(), [function](const Call &call) -> Results {
      llvm::Expected<Tensor> result = function(mlir::cast<OpTy>(call.op), call);
      if (!result)
        return result.takeError();
      return std::vector<Tensor>{std::move(*result)};
    });
  }

private:
  llvm::StringMap<Handler> handlers;
};

/// State of one run of a function: values, and sizes of symbols.
class Frame {
public:
  explicit Frame(const InterpretOptions &options) : options(options) {}

  const InterpretOptions &getOptions() const { return options; }
  /// The element type that values of `type` are held in: f64 for floats of more than 8 bits in double evaluation.
  mlir::Type getHeldType(mlir::Type elementType) const;

  /// The value of a size expression; an error where a symbol has none.
  llvm::Expected<int64_t> evaluate(mlir::AffineExpr expr) const;
  llvm::Expected<Shape> evaluate(mlir::AffineMap map) const;
  llvm::Expected<Shape> evaluateSizes(mlir::Type type) const;
  void bindSymbol(unsigned symbol, int64_t size) { symbols[symbol] = size; }
  /// Gives symbols that stand alone in `type` the sizes of `shape` (with `rebind` also those that have a size), then
  /// checks that all sizes agree.
  llvm::Error bindSizes(mlir::Type type, llvm::ArrayRef<int64_t> shape, bool rebind);

  /// Runs the region's only block; the operands of its terminator.
  Results runRegion(mlir::Region &region, llvm::ArrayRef<Tensor> arguments);
  /// Runs one op on values of the frame.
  llvm::Error runOp(mlir::Operation *op);

  /// Takes what an op costs from the budget; an error where it, or memory, does not suffice. `call` has the results'
  /// sizes.
  llvm::Error spend(const Call &call);

  /// What prim.host_call keeps during a run.
  std::shared_ptr<void> &hostState() { return host; }

private:
  friend Results runHandler(mlir::Operation *, llvm::ArrayRef<Tensor>, Frame &);
  llvm::Error setValue(mlir::Value value, Tensor tensor);
  void dropValue(mlir::Value value);
  const llvm::SmallVector<mlir::Value> &lastUses(mlir::Operation *op);

  const InterpretOptions &options;
  std::shared_ptr<void> host;
  llvm::DenseMap<unsigned, int64_t> symbols;
  llvm::DenseMap<mlir::Value, Tensor> values;
  /// Bytes of `values`; those of views count for each.
  int64_t heldBytes = 0;
  /// Values of an op's block that no later op of the block reads.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> dead;
  llvm::DenseSet<mlir::Block *> analyzed;
};

/// Evaluates `op` and checks the shapes of its results.
Results runHandler(mlir::Operation *op, llvm::ArrayRef<Tensor> operands, Frame &frame);

/// What a message calls the node that an op came from: the name in its location, or its place in the file.
std::string describeNode(mlir::Operation *op);

void addSourceHandlers(Registry &registry);
void addElementwiseHandlers(Registry &registry);
void addMovementHandlers(Registry &registry);
void addGatherHandlers(Registry &registry);
void addReductionHandlers(Registry &registry);
void addContractionHandlers(Registry &registry);
void addCompositeHandlers(Registry &registry);
void addControlFlowHandlers(Registry &registry);
void addHostCallHandlers(Registry &registry);

//===--- helpers for handlers -------------------------------------------------------------------------------------===//

/// Row-major strides in elements.
Shape getStrides(llvm::ArrayRef<int64_t> shape);

/// to[sum(i * toStrides)] = from[sum(i * fromStrides)] for all indices i of `shape`, in elements of `elementBytes`.
void copyStrided(int64_t elementBytes, llvm::ArrayRef<int64_t> shape, const char *from,
                 llvm::ArrayRef<int64_t> fromStrides, char *to, llvm::ArrayRef<int64_t> toStrides);

/// Calls visit(linear, mapped) for every index of `shape` in row-major order, where mapped = sum(index * strides).
template <typename Visit>
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides, Visit visit) {
  int64_t count = countElements(shape), mapped = 0;
  if (count <= 0)
    return;
  if (shape.empty())
    return visit(int64_t(0), int64_t(0));
  Shape index(shape.size(), 0);
  size_t last = shape.size() - 1;
  for (int64_t linear = 0; linear < count;) {
    for (int64_t i = 0, at = mapped; i < shape[last]; ++i, ++linear, at += strides[last])
      visit(linear, at);
    for (size_t dim = last; dim-- > 0;) {
      mapped += strides[dim];
      if (++index[dim] < shape[dim])
        break;
      mapped -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
  }
}

/// Strides that map an index of the whole shape to the linear index of the shape without `dims`: 0 along `dims`.
Shape getKeptStrides(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);

/// Combination of two elements and the value that changes nothing.
double combine(ReduceKind kind, double a, double b);
int64_t combine(ReduceKind kind, int64_t a, int64_t b, bool isUnsigned);
double neutralDouble(ReduceKind kind);
int64_t neutralInt(ReduceKind kind, mlir::Type elementType);
double maxNaN(double a, double b);
double minNaN(double a, double b);

} // namespace tc::prim::interpreter

#endif // TC_LIB_DIALECT_PRIM_INTERPRETER_HANDLERS_H
