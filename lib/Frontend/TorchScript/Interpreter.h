//===- Interpreter.h - runs an archive's code with unknown tensors --------------------------------------*- C++ -*-===//
//
// All calls are inlined, branches on known values taken and loops unrolled. What remains are operators on tensors,
// which are appended to the graph (ATenCalls.cpp). Numbers that only a run knows are 0-D values of the graph; a branch
// on one becomes an If, a `raise` behind one a check.
//
// Functions that can fail return nullopt or false after fail(), whose first message stays. What a model needs and tc
// lacks is said by refuse(): the code then goes on as far as it can, so that one run says all of it (Refusals.cpp).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_INTERPRETER_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_INTERPRETER_H

#include "SourceRanges.h"
#include "Value.h"

#include "tc/Frontend/TorchScript.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/StringSaver.h"

#include <deque>

namespace tc::torchscript {

class Archive;
using Result = std::optional<PyValue>;
using Values = llvm::ArrayRef<PyValue>;

/// An argument that a call names.
struct NamedValue {
  llvm::StringRef name;
  PyValue value;
};
using NamedValues = llvm::ArrayRef<NamedValue>;

/// Whether `a is b` holds for sure: same number, string, None, or the same list or object.
bool isSame(const PyValue &a, const PyValue &b);

/// Whether a statement raises an exception.
bool isRaise(const Stmt &stmt);

class Interpreter {
public:
  Interpreter(Archive &archive, mlir::OpBuilder &builder) : archive(archive), builder(builder), strings(allocator) {}

  /// From now on, objects that are there keep their attributes: what a run leaves in them is lost.
  void freezeObjects() { frozenBirth = pool.size(); }
  void setVersion(int64_t newVersion) { version = newVersion; }
  void setCustomOperators(CustomOperators operators) { customOperators = std::move(operators); }
  void setConstants(std::vector<PyValue> values) { constants = std::move(values); }
  void setOracle(std::unique_ptr<ValueOracle> newOracle) { oracle = std::move(newOracle); }
  /// The number that a tensor is known to hold, or null; noted as takesConstant does.
  const PyValue *readNumber(const PyValue &tensor);
  /// What a tensor holds is no constant.
  void forgetNumbers(mlir::Value tensor) {
    if (oracle)
      oracle->forgetNumbers(tensor);
  }
  /// States whose numbers only a run knows.
  void setChangingStates(const llvm::StringSet<> &names) {
    for (const auto &entry : names)
      changing.insert(entry.getKey());
  }
  /// Makes the number or tensor in an attribute a state, which this run reads now and sets at its end. False where
  /// there is no such state.
  bool keepAttribute(Held *object, llvm::StringRef name);
  /// The states of kept attributes get what these hold at the end of a run.
  bool setKeptStates(Position at);
  /// Attributes that the code reads, sets and so has to keep, as "layer.count".
  const llvm::StringSet<> &getAttributesToKeep() const { return toKeep; }
  bool writesTensors() const { return hasWrites; }
  bool writesState(llvm::StringRef name) const { return writtenStates.contains(name); }
  /// States whose numbers were taken for constants, and which the program writes.
  std::vector<std::string> getStaleStates() const;
  Result callMethod(const PyValue &object, llvm::StringRef method, Values args, NamedValues named, Position at);

  // --- values ---
  Held *newHeld();
  PyValue makeString(llvm::StringRef text);
  /// Of a text that the code computes: at most kMaxText characters.
  static constexpr size_t kMaxText = size_t(1) << 24;
  Result makeText(llvm::StringRef text, Position at);
  PyValue makeDevice(llvm::StringRef text);
  PyValue makeList(std::vector<PyValue> items, llvm::StringRef elementType = "");
  PyValue makeTuple(std::vector<PyValue> items);
  /// The member of an enum that has a value.
  Result enumOf(const ClassDef *type, const SourceFile *file, const PyValue &value);
  llvm::StringRef keepText(llvm::StringRef text) { return strings.save(text); }

  // --- errors ---
  /// Always nullopt. `what` ends in what to do, after a semicolon. For damaged archives and wrong use; after a refusal
  /// it is taken for what follows from that, and no message.
  std::nullopt_t fail(Position at, const llvm::Twine &what);
  bool hasFailed() const { return !error.empty(); }
  const std::string &message() const { return error; }

  // --- what tc lacks (Refusals.cpp) ---
  /// Always nullopt. The model needs what tc lacks: a node that the conversion refuses, by the sentence `what`. Nothing
  /// is said where one of `causes` is unknown only because something before was refused. `construct`: a word of prim.
  std::nullopt_t refuse(llvm::StringRef construct, Position at, const llvm::Twine &what, Values causes = {});
  /// The same of a call of `name`, "my::blend", whose results are not known. `reason` reads on from the name; "":
  /// nothing is known of that operator.
  Result refuseCall(llvm::StringRef name, Values args, Position at, const llvm::Twine &reason);
  /// Whether what is made is incomplete. The conversion says why.
  bool hasRefusals() const { return hasRefused; }
  /// A tensor that nothing is known of. No graph with one compiles.
  PyValue makeUnknown(Position at, llvm::StringRef what = "unknown");
  /// Whether something refused is the reason that nothing is known of a value.
  bool isUnknown(const PyValue &value);
  /// Passes over an error that follows from what was refused; false where there is nothing of it, or no going on.
  bool recover();

  // --- tensors (ATenCalls.cpp, TensorQueries.cpp) ---
  /// The graph value of a tensor or symbolic number; numbers become constants.
  mlir::Value materialize(const PyValue &value);
  std::optional<mlir::RankedTensorType> typeOf(const PyValue &tensor, Position at);
  /// One size, known or symbolic.
  Result sizeOf(const PyValue &tensor, int64_t dim, Position at);
  /// A scalar of the graph as a number where the oracle knows it.
  PyValue resolve(PyValue value);
  /// The number that a tensor of one element holds.
  Result toNumber(const PyValue &tensor, Kind kind, Position at);
  /// Calls torch.NAME with the overload that its arguments choose.
  Result callATen(llvm::StringRef name, Values args, NamedValues named, Position at);
  Result callOverload(llvm::ArrayRef<const torch::Schema *> overloads, llvm::StringRef domain, llvm::StringRef type,
                      Values args, NamedValues named, Position at);
  /// An operator of Python on symbolic numbers, `_operator.add`.
  Result callSymbolic(llvm::StringRef name, Values args, Kind kind, Position at);
  /// A tensor of a number, which stays known.
  Result callPrimNumber(const PyValue &number);
  bool hasRaised() const { return !raised.empty(); }
  /// Into how many names the results of the call here go, as one statement says: traces count so what only a run knows.
  std::optional<int64_t> countOfUnpacking(Position at) const;
  /// Gives the results of all nodes under `root` their types, where operators write tensors: what such a write means
  /// depends on the shapes of views.
  void setTypes(mlir::Operation *root);
  void emitAssert(const PyValue &condition, llvm::StringRef message, Position at);
  mlir::Location locationOf(llvm::StringRef op, Position at);

  // --- quantised tensors (QuantizedCalls.cpp) ---
  /// Integers that stand for (integer - zero) * scale: numbers, or tensors of an element for each index of dim `axis`.
  struct Quantized {
    PyValue scale, zero;
    std::optional<int64_t> axis;
    int64_t dtype = 0; ///< PyTorch's number of the quantised type
  };
  PyValue markQuantized(PyValue integers, const Quantized &how);
  /// Itself, or in a list of at most `levels`.
  bool isQuantized(const PyValue &value, int levels = 2) const;

  // --- operators on known values (HostOperators*.cpp) ---
  /// Null where `name` ("aten::len") has none for such arguments; then nothing was said.
  using HostOperator = Result (*)(Interpreter &, Values, Position);
  static HostOperator findHostOperator(llvm::StringRef name);
  /// Says of a host operator's arguments that they are not for it: the operator may be one of tensors.
  std::nullopt_t decline() {
    declined = true;
    return std::nullopt;
  }
  Result arithmetic(llvm::StringRef op, const PyValue &a, const PyValue &b, Position at);
  Result compare(llvm::StringRef op, const PyValue &a, const PyValue &b, Position at);
  Result logicalNot(const PyValue &value, Position at);
  Result getItem(const PyValue &container, const PyValue &index, Position at);
  bool setItem(const PyValue &container, const PyValue &index, const PyValue &item, Position at);
  /// Before a list, dict or object changes.
  bool mayChange(const Held *held, Position at);
  /// Before `count` values or characters are searched, or copied: what a run does of it is bounded.
  bool spendValues(uint64_t count, Position at);
  /// The same for all that `args` hold, each read once or twice.
  bool spendValues(Values args, Position at);
  /// Whether two values are equal, as a bool that may be symbolic.
  Result equal(const PyValue &a, const PyValue &b, Position at);

  Result callOperator(llvm::StringRef name, Values args, NamedValues named, Position at);
  /// Something happened instead of a result: an exception was raised.
  std::nullopt_t raise(Position at, const llvm::Twine &what);

  Archive &archive;
  mlir::OpBuilder &builder;

private:
  enum class Flow : uint8_t { Next, Return, Break, Continue, Raised, Failed };
  struct Frame {
    const SourceFile *file = nullptr;
    const Function *function = nullptr;
    const Held *self = nullptr;
    llvm::DenseMap<llvm::StringRef, PyValue> locals;
    PyValue returned;
    Position at;
    Frame *caller = nullptr;
    Position calledAt; ///< in the caller
  };

  /// A tensor of rows of several lengths: what stands in for it in the graph is `padded` behind their ends.
  struct Nested {
    PyValue padded, mask; ///< mask: [B, L], whether an element is there
  };
  // --- statements (Interpreter.cpp) ---
  Result callFunction(const SourceFile &file, const Function &function, const PyValue *self, Values args,
                      NamedValues named, Position at);
  Flow runBlock(Body block);
  Flow run(const Stmt &stmt);
  Flow runStatement(const Stmt &stmt);
  Flow runIf(const Stmt &stmt);
  Flow runBranches(const Stmt &stmt, const PyValue &condition);
  /// Keeps what is not taken.
  void discard(mlir::Region &region);
  Flow runFor(const Stmt &stmt);
  Flow runWhile(const Stmt &stmt);
  Flow failed() const { return raised.empty() || hasFailed() ? Flow::Failed : Flow::Raised; }
  bool assign(const Expr &target, const PyValue &value);
  bool assignAll(llvm::ArrayRef<const Expr *> targets, bool isUnpacking, const PyValue &value, Position at);
  std::optional<bool> truth(const PyValue &value, Position at, PyValue *unknown);
  bool spend(Position at);
  /// An error that no statement behind it runs after.
  std::nullopt_t failFinally(Position at, const llvm::Twine &what) {
    isFatal = true;
    return fail(at, what);
  }

  // --- what tc lacks (Refusals.cpp) ---
  mlir::Operation *makeRefused(llvm::StringRef domain, llvm::StringRef type, Values args, size_t results, Position at);
  /// What a call gives of which nothing is known: as many values as its statement unpacks.
  PyValue makeUnknownResults(Position at);
  /// A tensor has no type, as `why` says of a node.
  std::nullopt_t loseType(const PyValue &tensor, Position at, const llvm::Twine &why);
  void beginRefusing(const llvm::Twine &why);
  void spreadUnknown(mlir::Operation *node);
  /// Of what a C++ class would do.
  std::nullopt_t refuseObject(const PyValue &object, Position at);
  void forget(const Expr &target, Position at);
  void forget(Body block);
  /// Goes on behind a statement that failed.
  Flow skip(const Stmt &stmt);
  std::optional<SourceLine> findLine(Position at);
  std::optional<mlir::RankedTensorType> findType(const PyValue &tensor);

  // --- expressions (Expressions.cpp) ---
  Result eval(const Expr &expr);
  Result makeEnum(const ClassDef *type, const SourceFile *file, const ClassDef::Field &field);
  Result evalName(const Expr &expr);
  Result evalAttribute(const Expr &expr);
  Result evalCall(const Expr &expr);
  Result evalSubscript(const Expr &expr);
  Result evalBinary(const Expr &expr);
  Result getAttribute(const PyValue &base, llvm::StringRef name, Position at);
  Result callValue(const PyValue &callee, Values args, NamedValues named, Position at);
  Result callForm(llvm::StringRef form, const Expr &call);
  Result callTensorMethod(const PyValue &self, llvm::StringRef name, Values args, NamedValues named, Position at);
  Result callOperatorOnce(llvm::StringRef name, Values args, NamedValues named, Position at);
  Result callATenOnce(llvm::StringRef name, Values args, NamedValues named, Position at);
  Result callPrim(llvm::StringRef name, Values args, NamedValues named, Position at, bool &isKnown);
  /// A value that a program says is of this type: int of a tensor is the number in it.
  Result convertTo(const Expr &type, PyValue value, Position at);
  std::optional<bool> isInstance(const Expr &type, const PyValue &value, Position at);
  Result namespaceMember(const PyValue &space, llvm::StringRef name, Position at);

  std::deque<Held> pool;
  llvm::BumpPtrAllocator allocator;
  llvm::UniqueStringSaver strings;
  std::string error, raised;
  bool hasRefused = false, isFatal = false;
  std::string firstRefusal;             ///< also of a value that has no type
  llvm::DenseSet<mlir::Value> unknowns; ///< values that have no type because of what is refused
  /// Branches that became no part of the graph. The oracle may know values in them, whose places are not free until
  /// then.
  std::vector<std::unique_ptr<mlir::Region>> discarded;
  std::unique_ptr<ValueOracle> oracle;
  std::vector<PyValue> constants; ///< CONSTANTS.c0, ...
  CustomOperators customOperators;
  Frame *frame = nullptr;
  int depth = 0, calls = 0;
  uint64_t steps = 0, valuesRead = 0;
  bool declined = false;
  /// Values born before this are outside of the branch that is run.
  uint64_t branchBirth = 0;
  uint64_t frozenBirth = 0;
  llvm::DenseMap<mlir::Value, Nested> nested;
  const Stmt *unpacked = nullptr; ///< the assignment whose value is computed
  /// Attributes of objects that outlive a run, by whether it reads or sets them first.
  llvm::DenseSet<std::pair<const Held *, llvm::StringRef>> readBeforeSet, setByRun;
  int64_t nodeCount = 0;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> sizeNodes;
  /// Whether the number `value` may be asked of the oracle, as it depends on no state that changes. Notes those that it
  /// depends on.
  bool takesConstant(mlir::Value value);
  void noteWrite(mlir::Value written);
  /// Whether a later import may keep what is set here; `old` has then become `value`.
  bool setKept(const Held *object, llvm::StringRef name, PyValue &old, const PyValue &value);
  struct KeptAttribute {
    Held *object;
    llvm::StringRef name;
    PyValue state;
  };
  std::vector<KeptAttribute> kept;
  llvm::StringSet<> toKeep;
  llvm::StringSet<> changing, readStates, writtenStates;
  llvm::DenseSet<mlir::Value> independent; ///< of states that change
  /// Tensors that were written: whether they hold integers is asked when it matters.
  bool writesIntegers();
  llvm::SmallVector<mlir::Value> uncheckedWrites;
  bool hasIntegerWrites = false, hasWrites = false;
  /// Numbers read from tensors after such a write, and what is computed of them.
  llvm::DenseSet<mlir::Value> dataNumbers;
  /// Of the archive's operators; old ones mean other things.
  int64_t version = 10;
  /// A call as an older PyTorch meant it; nullopt without a message where nothing differs.
  Result upgrade(llvm::StringRef name, Values args, NamedValues named, Position at);
  /// An operator that only traces hold, by others; nullopt without a message where it is none.
  Result decompose(llvm::StringRef name, Values args, Position at);
  Result makeNested(const PyValue &padded, const PyValue &mask, Position at);
  const Nested *findNested(const PyValue &value) const;
  Result callNested(llvm::StringRef name, Values args, Position at);
  PyValue isLeftAligned(const PyValue &mask, Position at);
  Result dequantize(const PyValue &value, Position at);
  Result quantize(const PyValue &value, Quantized how, Position at);
  Result callQuantized(llvm::StringRef domain, llvm::StringRef name, Values args, NamedValues named, Position at);
  llvm::DenseMap<mlir::Value, Quantized> quantized;
  friend class ATenCall;
};

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_INTERPRETER_H
