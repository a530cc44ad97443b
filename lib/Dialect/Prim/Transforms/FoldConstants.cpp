//===- FoldConstants.cpp - evaluate what is known at compile time -------------------------------------------------===//
//
//   %w = prim.constant #tc.data<...> : tensor<768x3072xf32>        %t = prim.constant #tc.data<...> :
//   tensor<3072x768xf32> %0 = prim.transpose %w [1, 0] : ...                      => %t = prim.mul %0, %scale :
//   tensor<3072x768xf32>
//
// In three steps. (1) Symbolic: results that are uniform because their operands are become prim.splat, whatever their
// sizes. (2) Plan: an op is `known` if its value can be computed from constants, and `stored` if the result is small
// enough to become a constant. (3) Apply: stored ops with a reader that is not stored itself are evaluated, recursively
// through known operands, and replaced. So a chain of folds over a large weight makes one copy, not one per op.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/Interpreter/Interpreter.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Support/Saturate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define DEBUG_TYPE "tc-fold-constants"

namespace tc::prim {
#define GEN_PASS_DEF_FOLDCONSTANTSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

constexpr int64_t kMaxUniformCheck = 64;
/// What evaluating may take of memory: these bytes, and so many for each of the constants'.
constexpr int64_t kFreeBytes = int64_t(512) << 20, kBytesOfConstants = 48;
/// Steps (InterpretBudget) of a function that is computed as a whole; of all values that a pass folds.
constexpr int64_t kMostStepsOfWhole = int64_t(1) << 31, kMostSteps = int64_t(1) << 32;
/// Marks a function that is too much to be computed as a whole.
constexpr StringRef kInPartsAttr = "tc.folded_in_parts";
/// Largest table that is stored whatever it is made of.
constexpr int64_t kMostTableBytes = 16 * 1024 * 1024;
/// What tables may add to an artifact: these bytes and a share of its constants; beyond, where computing one would be a
/// share of a run that shows, up to the bytes of the constants or kMostBytesOfTables.
constexpr int64_t kFreeTableBytes = 512 * 1024;
constexpr int64_t kFreeTableShare = 100;
constexpr int64_t kMostBytesOfTables = 32 * 1024 * 1024;
/// Multiplications of products in the time of one costly element, and the share of a run's that counts.
constexpr double kCostlyMultiplications = 64, kShareOfRun = 8;
/// So many constants that one value is made of are told apart.
constexpr size_t kMostSources = 16;
/// Rows of fewer elements are gathered at the speed of their count, not of their bytes.
constexpr int64_t kShortRow = 64;
/// Sums of fewer terms are as cheap to form as to read.
constexpr int64_t kFewTerms = 4;

//===--- uniform values -------------------------------------------------------------------------------------------===//

/// The element that all elements of the attribute are equal to.
TypedAttr getUniformElement(Attribute attribute) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(attribute);
  if (!dense || dense.empty())
    return {};
  if (!dense.isSplat()) {
    if (dense.getNumElements() > kMaxUniformCheck)
      return {};
    std::optional<Tensor> tensor = fromAttribute(dense);
    dense = tensor ? dyn_cast<DenseElementsAttr>(toAttribute(*tensor)) : DenseElementsAttr();
    if (!dense || !dense.isSplat())
      return {};
  }
  return dyn_cast<TypedAttr>(dense.getSplatValue<Attribute>());
}

TypedAttr getUniformElement(Value value) {
  if (auto splat = value.getDefiningOp<SplatOp>())
    return splat.getValue();
  return {};
}

/// The element that an elementwise op makes of uniform operands.
TypedAttr evaluateElement(Operation *op, ArrayRef<TypedAttr> elements) {
  auto scalar = [](Type type) { return RankedTensorType::get({}, cast<RankedTensorType>(type).getElementType()); };
  SmallVector<Tensor> operands;
  for (TypedAttr element : elements) {
    std::optional<Tensor> tensor = fromAttribute(DenseElementsAttr::get(RankedTensorType::get({}, element.getType()),
                                                                        ArrayRef<Attribute>(cast<Attribute>(element))));
    if (!tensor)
      return {};
    operands.push_back(std::move(*tensor));
  }
  // The same op on 0-D tensors. The interpreter reads operands from the tensors only.
  OperationState state(op->getLoc(), op->getName(), op->getOperands(), scalar(op->getResult(0).getType()),
                       op->getAttrs());
  Operation *element = Operation::create(state);
  TypedAttr result;
  if (auto values = interpretOp(element, operands))
    result = getUniformElement(cast<Attribute>(toAttribute(values->front())));
  else
    llvm::consumeError(values.takeError());
  element->destroy();
  return result;
}

/// Whether the op computes one tensor that has no elements, and nothing else.
bool isEmpty(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type && llvm::is_contained(type.getShape(), 0) && type.getElementType().isIntOrFloat();
}

/// The element that all elements of the op's result are equal to, whatever its sizes.
TypedAttr inferUniform(Operation *op) {
  // What would compute no elements is not computed: any element stands for them, and what is made of it folds, too.
  if (isEmpty(op))
    return Builder(op->getContext()).getZeroAttr(cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
  if (auto constant = dyn_cast<ConstantOp>(op))
    return getUniformElement(constant.getValueAttr());
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return {};
  TypedAttr first = getUniformElement(op->getOperand(0));
  if (op->hasTrait<SelectsTrait>())
    return first;
  SmallVector<TypedAttr> elements =
      llvm::map_to_vector(op->getOperands(), [](Value v) { return getUniformElement(v); });
  if (isa<ConcatOp, PadOp>(op))
    return llvm::all_equal(elements) ? first : TypedAttr();
  if (auto select = dyn_cast<SelectOp>(op); select && elements[1] && elements[1] == elements[2])
    return elements[1];
  if (op->hasTrait<PointwiseTrait>() && llvm::all_of(elements, [](TypedAttr e) { return bool(e); }))
    return evaluateElement(op, elements);
  return {};
}

//===--- known values ---------------------------------------------------------------------------------------------===//

/// Of what is larger than any memory: more than that, and little enough to be added up.
constexpr int64_t kTooMany = int64_t(1) << 52;

int64_t getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  const int64_t count = countElements(type.getShape());
  return count < 0 ? kTooMany : count * getElementBytes(type.getElementType());
}

/// Bytes of a constant that a model brings along.
int64_t getStoredBytes(ConstantOp constant) {
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  return dense && dense.isSplat() ? 0 : getBytes(constant);
}
int64_t getMostBytes(int64_t constantBytes) {
  return saturatingAdd(kFreeBytes, saturatingMul(kBytesOfConstants, constantBytes));
}

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Multiplications of a contraction, else 0. `count`: the elements along `dims` dims of a value from `first` on.
template <typename Number>
Number countMultiplications(Operation *op, llvm::function_ref<Number(Value, size_t first, size_t dims)> count) {
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    Number work = count(dot.getResult(), 0, shapeOf(dot.getResult()).size());
    for (int64_t dim : dot.getLhsContract())
      work *= std::max<Number>(count(dot.getLhs(), dim, 1), 1);
    return work;
  }
  if (auto conv = dyn_cast<ConvOp>(op))
    return count(conv.getResult(), 0, shapeOf(conv.getResult()).size()) *
           count(conv.getFilter(), 0, shapeOf(conv.getFilter()).size() - 1);
  return 0;
}
int64_t getMultiplications(Operation *op) {
  auto count = [](Value value, size_t first, size_t dims) {
    const int64_t elements = countElements(shapeOf(value).slice(first, dims));
    return double(elements < 0 ? kTooMany : elements);
  };
  return int64_t(std::min(countMultiplications<double>(op, count), double(INT64_MAX / 2)));
}

/// Multiplications of the products of a run, those of attention and of recurrent layers included.
double estimateMultiplications(func::FuncOp func) {
  auto count = [&](Value value, size_t first, size_t dims) {
    return getLikelyCount(ArrayRef(getSizes(value)).slice(first, dims), func, usual::kProductRows);
  };
  auto countAll = [&](Value value) { return count(value, 0, shapeOf(value).size()); };
  double sum = 0;
  func.walk([&](Operation *op) {
    sum += countMultiplications<double>(op, count);
    if (auto attention = dyn_cast<AttentionOp>(op))
      sum += 2 * countAll(attention.getQuery()) * count(attention.getKey(), shapeOf(attention.getKey()).size() - 2, 1);
    else if (auto rnn = dyn_cast<RnnOp>(op))
      sum += countAll(rnn.getGates()) * count(rnn.getRecurrent(), 0, 1);
  });
  return sum;
}

/// Whether what a gather selects lies in rows of few elements. Indices of few bits are how a model is kept small
/// (palettes of weights): what they select stays in the form that its author chose.
bool gathersShortRows(Operation *op) {
  Value indices = op->getNumOperands() == 2 ? op->getOperand(1) : Value();
  if (!indices)
    return false;
  while (Operation *producer = indices.getDefiningOp()) {
    if (!isa<ConvertOp, ReshapeOp, BroadcastOp, TransposeOp>(producer))
      break;
    indices = producer->getOperand(0);
  }
  if (cast<RankedTensorType>(indices.getType()).getElementTypeBitWidth() < 32)
    return false;
  auto source = cast<RankedTensorType>(op->getOperand(0).getType());
  int64_t row = 1;
  if (auto gather = dyn_cast<GatherOp>(op))
    row = countElements(source.getShape().drop_front(gather.getAxis() + 1));
  else if (auto gather = dyn_cast<GatherNDOp>(op))
    row = countElements(source.getShape().drop_front(
        gather.getBatchDims() + cast<RankedTensorType>(gather.getIndices().getType()).getShape().back()));
  else if (!isa<GatherElementsOp>(op))
    return false;
  return row < kShortRow;
}

/// Whether an element of the result takes far longer to compute than to read.
bool isCostly(Operation *op) {
  if (isTranscendental(op))
    return true;
  if (getRole(op) == Role::Alone || getRole(op) == Role::Window || isa<ArgReduceOp, AttentionOp>(op))
    return true;
  const int64_t elements = countElements(shapeOf(op->getResult(0)));
  if (isa<ReduceOp>(op))
    return countElements(shapeOf(op->getOperand(0))) >= kFewTerms * elements;
  if (isa<DotGeneralOp, ConvOp>(op))
    return getMultiplications(op) >= kFewTerms * elements;
  return gathersShortRows(op);
}

/// What is known about one op whose results can be computed.
struct Known {
  /// The constants that it is made of, and their bytes. Past kMostSources of them, those found again count again.
  SmallVector<Operation *, 2> sources;
  int64_t sourceBytes = 0;
  /// Bytes and multiplications that evaluating it costs, what it is made of included.
  int64_t work = 0;
  /// Elements of it that take far longer to compute than to read.
  int64_t costly = 0;
  /// Results become constants; only because they are costly.
  bool stored = false, isTable = false;
  /// Of what it is made of: the elements of 8 bits that were widened.
  int64_t widened = 0;
};

class Folder {
public:
  Folder(func::FuncOp func, int64_t maxBytes, int64_t maxWork) : func(func), maxBytes(maxBytes), maxWork(maxWork) {}

  void run() {
    if (foldWhole())
      return;
    makeUniform();
    inlineKnownBranches();
    plan();
    keepSmallSources();
    apply();
    storeResults();
    eraseDead();
  }

private:
  /// A function without inputs computes its results now: loops and sizes that depend on data, too.
  bool foldWhole() {
    Operation *terminator = func.front().getTerminator();
    auto isStored = [](Value v) {
      auto view = v.getDefiningOp<StorageOp>();
      return isa_and_nonnull<ConstantOp>((view ? view.getOperand() : v).getDefiningOp());
    };
    if (func.getNumArguments() != 0 || llvm::all_of(terminator->getOperands(), isStored))
      return false;
    if (func->hasAttr(kInPartsAttr))
      return false;
    int64_t sourceBytes = 0, work = 0;
    WalkResult walked = func.walk([&](Operation *op) {
      if (isa<func::FuncOp, func::ReturnOp, YieldOp, IfOp, WhileOp, BindSymbolOp, GuardOp>(op))
        return WalkResult::advance();
      // Words of the host program mean something to one run alone; packed results are stored as bytes.
      auto isPacked = [](Type type) { return isNarrowElement(cast<RankedTensorType>(type).getElementType()); };
      if (!isMemoryEffectFree(op) || isa<HostCallOp>(op) ||
          !llvm::all_of(op->getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); }) ||
          (isa<StorageOp>(op) && (isPacked(op->getResult(0).getType()) || isPacked(op->getOperand(0).getType()))))
        return WalkResult::interrupt();
      if (isa<ConstantOp>(op))
        sourceBytes = saturatingAdd(sourceBytes, getStoredBytes(cast<ConstantOp>(op)));
      work = saturatingAdd(work, getWork(op));
      return WalkResult::advance();
    });
    if (walked.wasInterrupted() || work > maxWork)
      return false;
    // What loops cost shows as they run.
    InterpretBudget budget{getMostBytes(sourceBytes), std::min(maxWork, kMostStepsOfWhole)};
    InterpretOptions options;
    options.budget = &budget;
    auto results = interpret(func, {}, options);
    if (!results) {
      llvm::consumeError(results.takeError());
      // Later passes need not find that out again.
      func->setAttr(kInPartsAttr, UnitAttr::get(func.getContext()));
      return false;
    }
    int64_t bytes = 0;
    for (const Tensor &tensor : *results)
      bytes += countElements(tensor.getType().getShape()) * getElementBytes(tensor.getType().getElementType());
    if (bytes > std::max(maxBytes, sourceBytes))
      return false;
    SmallVector<Operation *> effects;
    OpBuilder builder(terminator);
    for (auto [operand, tensor] : llvm::zip_equal(terminator->getOpOperands(), *results)) {
      bool isComplex = isa<ComplexType>(tensor.elementType);
      Tensor held = isComplex ? asParts(tensor) : tensor;
      Location loc = operand.get().getLoc();
      Value constant = ConstantOp::create(builder, loc, held.getType(), toAttribute(held));
      operand.set(isComplex ? StorageOp::create(builder, loc, tensor.getType(), constant) : constant);
    }
    func.setFunctionType(FunctionType::get(func.getContext(), {}, terminator->getOperandTypes()));
    func.walk([&](Operation *op) {
      if (isa<BindSymbolOp, GuardOp, IfOp, WhileOp>(op) && op->getParentOp() == func)
        effects.push_back(op);
    });
    for (Operation *op : llvm::reverse(effects)) {
      op->dropAllUses();
      op->erase();
    }
    eraseDead();
    return true;
  }

  static int64_t getWork(Operation *op) {
    bool isStatic =
        llvm::all_of(op->getResultTypes(), [](Type type) { return cast<RankedTensorType>(type).hasStaticShape(); }) &&
        llvm::all_of(op->getOperandTypes(), [](Type type) { return cast<RankedTensorType>(type).hasStaticShape(); });
    return isStatic ? getMultiplications(op) : 0;
  }

  /// Small results that would be written by a kernel of their own, element by element, are stored.
  void storeResults() {
    known.clear();
    order.clear();
    plan();
    for (OpOperand &result : func.front().getTerminator()->getOpOperands()) {
      auto packed = result.get().getDefiningOp<StorageOp>();
      OpOperand &operand = packed ? packed->getOpOperand(0) : result;
      Operation *op = operand.get().getDefiningOp();
      if (!op || isa<ConstantOp>(op) || !known.contains(op) || getBytes(operand.get()) > maxBytes)
        continue;
      std::optional<std::vector<Tensor>> tensors = evaluate(op);
      forget();
      if (!tensors)
        continue;
      OpBuilder builder(operand.getOwner());
      TypedAttr value = toAttribute((*tensors)[cast<OpResult>(operand.get()).getResultNumber()]);
      operand.set(ConstantOp::create(builder, op->getLoc(), operand.get().getType(), value));
    }
  }

  void makeUniform() {
    func.walk([&](Operation *op) {
      // A constant that is only returned is stored as it is.
      if (isa<ConstantOp>(op) &&
          llvm::all_of(op->getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); }))
        return;
      TypedAttr element = inferUniform(op);
      if (!element || isa<SplatOp>(op))
        return;
      OpBuilder builder(op);
      op->getResult(0).replaceAllUsesWith(
          SplatOp::create(builder, op->getLoc(), op->getResult(0).getType(), element).getResult());
    });
  }

  void inlineKnownBranches() {
    SmallVector<IfOp> candidates;
    func.walk([&](IfOp op) { candidates.push_back(op); });
    for (IfOp op : candidates) {
      auto condition = dyn_cast_or_null<IntegerAttr>(getUniformElement(op.getCondition()));
      if (!condition || getWhen(op))
        continue;
      Block &block = (condition.getValue().isZero() ? op.getElseRegion() : op.getThenRegion()).front();
      Operation *yield = block.getTerminator();
      // Results whose sizes are symbols that the branches define stay.
      if (TypeRange(yield->getOperandTypes()) != TypeRange(op->getResultTypes()))
        continue;
      op->replaceAllUsesWith(yield->getOperands());
      op->getBlock()->getOperations().splice(Block::iterator(op), block.getOperations(), block.begin(),
                                             Block::iterator(yield));
      op->erase();
    }
  }

  void plan() {
    func.walk([&](Operation *op) {
      // A view that ends at a packed result; what it is of folds.
      if (!canInterpretOp(op) || isa<StorageOp>(op))
        return;
      Known entry;
      for (Value operand : op->getOperands()) {
        auto it = known.find(operand.getDefiningOp());
        if (!operand.getDefiningOp() || it == known.end())
          return;
        addSources(entry, it->second);
        entry.work = saturatingAdd(entry.work, it->second.work);
        entry.costly = saturatingAdd(entry.costly, it->second.costly);
        entry.widened = saturatingAdd(entry.widened, it->second.widened);
      }
      int64_t bytes = 0;
      for (Value result : op->getResults())
        bytes += getBytes(result);
      if (isa<ConstantOp>(op)) {
        entry.sources = {op};
        entry.sourceBytes = bytes;
      } else
        entry.work = saturatingAdd(entry.work, saturatingAdd(bytes, getMultiplications(op)));
      // Zeros around weights, such as fill up a filter, are worth their bytes: products want them packed.
      if (isa<PadOp>(op) && bytes / 4 <= getBytes(op->getOperand(0)))
        entry.sourceBytes = std::max(entry.sourceBytes, bytes);
      // So are weights of bytes that a model widens itself, where products do not read them as bytes.
      if (widensBytes(op))
        entry.widened = getBytes(op->getOperand(0));
      if (bytes <= 4 * entry.widened && isReadByProducts(op))
        entry.sourceBytes = std::max(entry.sourceBytes, bytes);
      // Sizes that mention symbols are no constants.
      if (auto sizes = dyn_cast<SizesOp>(op); sizes && llvm::any_of(sizes.getMap().getResults(), [](AffineExpr expr) {
                                                return !getConstantSize(expr).has_value();
                                              }))
        return;
      if (auto slice = dyn_cast<SliceOp>(op); slice && !isConstantMap(slice.getStarts()))
        return;
      if (auto pad = dyn_cast<PadOp>(op); pad && !isConstantMap(pad.getLow()))
        return;
      if (entry.work > maxWork)
        return;
      bool symbolic = isa<ConstantOp, SplatOp, IotaOp>(op) || isEnlarging(op) || isSecondCopy(op, bytes);
      const int64_t elements = countElements(cast<RankedTensorType>(op->getResult(0).getType()).getShape());
      // What products read is packed when the artifact is made if it is a constant, else in each run.
      if (isCostly(op) || (entry.sourceBytes == 0 && isReadByProducts(op)))
        entry.costly = saturatingAdd(entry.costly, elements);
      // Tables of angles (rotary embeddings, Fourier matrices), of biases by distance, products of weights.
      const bool isTable = bytes <= kMostTableBytes && elements > 0 && entry.costly >= elements - entry.costly;
      const bool isSmall = bytes <= std::max(maxBytes, entry.sourceBytes);
      entry.stored = !symbolic && (isSmall || isTable);
      entry.isTable = entry.stored && !isSmall;
      known[op] = entry;
      order.push_back(op);
    });
  }

  static void addSources(Known &entry, const Known &operand) {
    if (operand.sources.size() + entry.sources.size() > kMostSources || operand.sources.empty()) {
      entry.sourceBytes = saturatingAdd(entry.sourceBytes, operand.sourceBytes);
      return;
    }
    for (Operation *source : operand.sources)
      if (!llvm::is_contained(entry.sources, source)) {
        entry.sources.push_back(source);
        entry.sourceBytes += getBytes(source->getResult(0));
      }
  }

  static bool widensBytes(Operation *op) {
    auto convert = dyn_cast<ConvertOp>(op);
    return convert && cast<RankedTensorType>(convert.getOperand().getType()).getElementType().isInteger(8);
  }

  /// Whether products of floats alone read the op's result, through whatever moves it.
  static bool isReadByProducts(Operation *op) {
    if (!isa<FloatType>(cast<RankedTensorType>(op->getResult(0).getType()).getElementType()))
      return false;
    SmallVector<Operation *> stack(op->getUsers());
    while (!stack.empty()) {
      Operation *user = stack.pop_back_val();
      if (isa<TransposeOp, ReshapeOp, SliceOp>(user))
        llvm::append_range(stack, user->getUsers());
      else if (!isa<DotGeneralOp, ConvOp, RnnOp>(user))
        return false;
    }
    return true;
  }

  /// Whether pointwise ops and gathers alone read the op's result, through whatever moves it.
  static bool isReadByLanes(Operation *op) {
    SmallVector<Operation *> stack(op->getUsers());
    llvm::DenseSet<Operation *> seen;
    while (!stack.empty()) {
      Operation *user = stack.pop_back_val();
      if (!seen.insert(user).second || user->hasTrait<PointwiseTrait>())
        continue;
      if (!user->hasTrait<SelectsTrait>() && !isa<ConcatOp, PadOp>(user))
        return false;
      if (getAccess(user) != Access::AtData)
        llvm::append_range(stack, user->getUsers());
    }
    return true;
  }

  /// Whether the op's result takes no more than cheap elementwise ops, which a kernel does as it reads.
  bool isCheap(Operation *op) const {
    const Known &entry = known.find(op)->second;
    return !entry.isTable && entry.costly == 0 && entry.sources.size() == 1 && isReadByLanes(op);
  }

  /// What several results that are made of one constant take in all is more than the constant: positions, weights and
  /// masks of given samples. To read them takes longer than to compute them from it.
  void keepSmallSources() {
    llvm::MapVector<Operation *, SmallVector<Operation *>> made;
    for (Operation *op : order)
      if (isStored(op) && getBytes(op->getResult(0)) > maxBytes && isCheap(op) &&
          !llvm::all_of(op->getUsers(), [&](Operation *user) { return isStored(user); }))
        made[known[op].sources.front()].push_back(op);
    for (auto &[source, results] : made) {
      int64_t bytes = 0;
      for (Operation *op : results)
        bytes += getBytes(op->getResult(0));
      if (bytes > getBytes(source->getResult(0)))
        kept.insert(source);
    }
    if (kept.empty())
      return;
    for (Operation *op : order)
      if (Known &entry = known[op]; entry.stored && entry.sources.size() == 1 && kept.contains(entry.sources.front()) &&
                                    getBytes(op->getResult(0)) > maxBytes && isCheap(op))
        entry.stored = false;
  }

  static bool isConstantMap(AffineMap map) {
    return llvm::all_of(map.getResults(), [](AffineExpr expr) { return getConstantSize(expr).has_value(); });
  }

  /// A broadcast costs nothing where it is read, its copies cost memory.
  static bool isEnlarging(Operation *op) {
    return isa<BroadcastOp>(op) && getBytes(op->getResult(0)) > getBytes(op->getOperand(0));
  }

  /// A transposed copy of a large constant that is read as it is too (an embedding that is also the head): readers of
  /// the transpose follow an index map, and one copy serves both. The same transpose in several branches is one.
  bool isSecondCopy(Operation *op, int64_t bytes) const {
    auto transpose = dyn_cast<TransposeOp>(op);
    if (!transpose || bytes <= maxBytes || !transpose.getOperand().getDefiningOp<ConstantOp>())
      return false;
    return llvm::any_of(transpose.getOperand().getUsers(), [&](Operation *user) {
      auto other = dyn_cast<TransposeOp>(user);
      return !other || other.getPermutation() != transpose.getPermutation();
    });
  }

  bool isStored(Operation *op) const {
    auto it = known.find(op);
    return it != known.end() && it->second.stored;
  }

  void apply() {
    int64_t constantBytes = 0, tableBytes = 0;
    for (Operation *op : order)
      if (isa<ConstantOp>(op))
        constantBytes = saturatingAdd(constantBytes, getStoredBytes(cast<ConstantOp>(op)));
    budget.bytes = getMostBytes(constantBytes);
    const double multiplications = estimateMultiplications(func);
    for (Operation *op : order) {
      if (!isStored(op) || llvm::all_of(op->getUsers(), [&](Operation *user) { return isStored(user); }))
        continue;
      if (const Known &entry = known[op]; entry.isTable) {
        int64_t bytes = tableBytes;
        for (Value result : op->getResults())
          bytes += getBytes(result);
        const bool shows = kCostlyMultiplications * double(entry.costly) >= multiplications / kShareOfRun;
        if (bytes >
            (shows ? std::max(constantBytes, kMostBytesOfTables) : kFreeTableBytes + constantBytes / kFreeTableShare))
          continue;
        tableBytes = bytes;
      }
      std::optional<std::vector<Tensor>> tensors = evaluate(op);
      forget();
      if (!tensors)
        continue;
      OpBuilder builder(op);
      for (auto [result, tensor] : llvm::zip_equal(op->getResults(), *tensors)) {
        TypedAttr value = makeAttribute(op, tensor);
        Value folded;
        if (TypedAttr element = getUniformElement(cast<Attribute>(value)))
          folded = SplatOp::create(builder, op->getLoc(), result.getType(), element).getResult();
        else
          folded = ConstantOp::create(builder, op->getLoc(), result.getType(), value).getResult();
        replacements.push_back({result, folded});
      }
    }
    // Not before: the plan is about the ops as they were.
    for (auto [from, to] : replacements)
      from.replaceAllUsesWith(to);
  }

  /// The constant's attribute; a reshaped constant shares the bytes.
  static TypedAttr makeAttribute(Operation *op, const Tensor &tensor) {
    if (auto constant = skipReshapes(op->getResult(0)).getDefiningOp<ConstantOp>())
      if (auto data = dyn_cast<tc::base::DataAttr>(constant.getValue()))
        return tc::base::withType(data, tensor.getType());
    return toAttribute(tensor);
  }

  /// The results of a known op. Values between live until the fold is done.
  std::optional<std::vector<Tensor>> evaluate(Operation *root) {
    // Operands first, without recursion: chains may be long.
    SmallVector<Operation *> stack{root};
    while (!stack.empty()) {
      Operation *op = stack.back();
      if (temporary.contains(op)) {
        stack.pop_back();
        continue;
      }
      SmallVector<Tensor> operands;
      bool ready = true;
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *producer = operand.get().getDefiningOp();
        auto it = temporary.find(producer);
        if (it == temporary.end()) {
          stack.push_back(producer);
          ready = false;
        } else if (ready) {
          operands.push_back(it->second[cast<OpResult>(operand.get()).getResultNumber()]);
        }
      }
      if (!ready)
        continue;
      // Values between live until the fold is done.
      InterpretBudget rest{budget.bytes - temporaryBytes, budget.steps};
      auto results = interpretOp(op, operands, &rest);
      budget.steps = rest.steps;
      if (!results) {
        // For instance a constant whose bytes are missing: the next phase that needs them says so.
        llvm::consumeError(results.takeError());
        return std::nullopt;
      }
      for (const Tensor &tensor : *results)
        temporaryBytes += isa<ConstantOp, ReshapeOp>(op) ? 0 : tensor.sizeBytes();
      temporary[op] = std::move(*results);
      stack.pop_back();
    }
    return std::move(temporary[root]);
  }

  void forget() {
    temporary.clear();
    temporaryBytes = 0;
  }

  void eraseDead() {
    SmallVector<Operation *> ops;
    // Reversed, this order has users before what they use and what is inside of an op before it.
    func.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : llvm::reverse(ops))
      if (op != func && isOpTriviallyDead(op))
        op->erase();
  }

  func::FuncOp func;
  int64_t maxBytes, maxWork;
  DenseMap<Operation *, Known> known;
  llvm::DenseSet<Operation *> kept;
  SmallVector<Operation *> order;
  SmallVector<std::pair<Value, Value>> replacements;
  DenseMap<Operation *, std::vector<Tensor>> temporary;
  int64_t temporaryBytes = 0;
  InterpretBudget budget{kFreeBytes, kMostSteps};
};

struct FoldConstants : tc::prim::impl::FoldConstantsPassBase<FoldConstants> {
  using FoldConstantsPassBase::FoldConstantsPassBase;

  void runOnOperation() override {
    if (maxBytes < 0 || maxWork < 0) {
      getOperation().emitError("max-bytes and max-work are at least 0");
      return signalPassFailure();
    }
    if (!getOperation().isExternal())
      Folder(getOperation(), maxBytes, maxWork).run();
  }
};

} // namespace
