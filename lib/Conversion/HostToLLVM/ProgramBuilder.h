//===- ProgramBuilder.h - builds tc_entry, tc_infer and tc_run of a variant -----------------------------*- C++ -*-===//
//
// Private to HostToLLVM: the state while the program of one host.variant is built, and everything that emits parts of
// it. Sizes.cpp: size arithmetic and guards; Memory.cpp: where values live; Infer.cpp, Launches.cpp, HostOps.cpp and
// ControlFlow.cpp: what the functions hold.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_HOSTTOLLVM_PROGRAMBUILDER_H
#define TC_LIB_CONVERSION_HOSTTOLLVM_PROGRAMBUILDER_H

#include "tc/Conversion/HostToLLVM/HostToLLVM.h"

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tcrt/artifact_abi.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IntegerSet.h"

namespace tc::hosttollvm {

using namespace mlir;
using namespace tc::host;

/// Words that the record of a call takes: its head, operands and results, and their dims.
int64_t countRecordWords(prim::HostCallOp op);

/// What the programs of a variant's functions share.
struct ProgramTables {
  llvm::StringMap<unsigned> hostFunctions; ///< numbers by name
  llvm::StringMap<unsigned> states;        ///< numbers by name
  llvm::StringMap<unsigned> deviceKernels; ///< numbers by name, in the order of the first launches
  unsigned launchCount = 0;                ///< of the functions before
  unsigned messageCount = 0;
};

/// Bytes of the runtime's table up to the last entry that the programs call: an older runtime may have no more.
uint32_t getNeededImports(ArrayRef<func::FuncOp> functions);

/// Whether what a launch costs depends on sizes.
bool hasDynamicCost(LaunchOp launch);

/// Builds the program of one function for one variant.
class ProgramBuilder {
public:
  /// `suffix` goes behind the names tc_infer and tc_run.
  ProgramBuilder(func::FuncOp main, VariantOp variant, StringRef suffix, ProgramTables &tables)
      : main(main), variant(variant), suffix(suffix), tables(tables), context(main.getContext()), b(context),
        loc(variant.getLoc()), symbols(main->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr)),
        isCpu(variant.getDevice() == machine::DeviceKind::Cpu) {
    ptr = LLVM::LLVMPointerType::get(context);
    i1 = b.getI1Type();
    i8 = b.getI8Type();
    i32 = b.getI32Type();
    i64 = b.getI64Type();
    i64Checked = LLVM::LLVMStructType::getLiteral(context, {i64, i1});
  }

  LogicalResult build();
  /// The entry point and the table that it returns, of the functions with these suffixes.
  void buildEntry(ArrayRef<std::string> suffixes, uint32_t neededImports);

private:
  //===--- small helpers ------------------------------------------------------------------------------------------===//
  Value c64(int64_t value) { return LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(value)); }
  Value c32(int64_t value) { return LLVM::ConstantOp::create(b, loc, i32, b.getI32IntegerAttr(value)); }
  Value null() { return LLVM::ZeroOp::create(b, loc, ptr); }
  Value at(Value base, int64_t offset) {
    if (offset == 0)
      return base;
    // A constant index of a GEPArg has 29 bits and wraps silently beyond them: weights are larger than that.
    if (!llvm::isInt<28>(offset))
      return at(base, LLVM::ConstantOp::create(b, loc, b.getI64Type(), offset));
    return LLVM::GEPOp::create(b, loc, ptr, i8, base, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  }
  Value at(Value base, Value offset) {
    return LLVM::GEPOp::create(b, loc, ptr, i8, base, ArrayRef<LLVM::GEPArg>{offset});
  }
  Value load(Type type, Value address) { return LLVM::LoadOp::create(b, loc, type, address); }
  void store(Value value, Value address) { LLVM::StoreOp::create(b, loc, value, address); }
  Value compare(LLVM::ICmpPredicate predicate, Value x, Value y) {
    return LLVM::ICmpOp::create(b, loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) { return LLVM::SelectOp::create(b, loc, condition, x, y); }
  Block *newBlock(TypeRange arguments = {}) {
    OpBuilder::InsertionGuard guard(b);
    Region *region = b.getInsertionBlock()->getParent();
    SmallVector<Location> locations(arguments.size(), loc);
    return b.createBlock(region, region->end(), arguments, locations);
  }
  void branch(Block *to, ValueRange arguments = {}) { LLVM::BrOp::create(b, loc, arguments, to); }
  void condBranch(Value condition, Block *yes, Block *no) { LLVM::CondBrOp::create(b, loc, condition, yes, no); }
  Value import(size_t offset) { return load(ptr, at(imports, int64_t(offset))); }
  Value callIndirect(Type result, ArrayRef<Type> argumentTypes, Value callee, ArrayRef<Value> arguments) {
    auto type = LLVM::LLVMFunctionType::get(result, argumentTypes);
    SmallVector<Value> operands{callee};
    llvm::append_range(operands, arguments);
    auto call = LLVM::CallOp::create(b, loc, type, operands);
    return call->getNumResults() ? call.getResult() : Value();
  }
  /// An address on the stack, allocated in the function's entry block.
  Value stack(int64_t words, unsigned alignment = 16) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&b.getInsertionBlock()->getParent()->front());
    return LLVM::AllocaOp::create(b, loc, ptr, i64, c64(words), alignment);
  }
  /// The address of a constant text.
  Value text(const std::string &message);
  /// Returns `code` with a message if `bad` holds, else goes on.
  void failIf(Value bad, int32_t code, const std::string &message);
  /// Returns the non-zero `code` of a call, else goes on.
  void returnIfFailed(Value code);

  //===--- size expressions ---------------------------------------------------------------------------------------===//
  /// The value of a size for the symbols' values. Each expression is computed once in a function, and once in all parts
  /// of a program if that is outside of branches and loops.
  Value size(AffineExpr expr);
  /// The value if it is known here, else none.
  Value findSize(AffineExpr expr);
  Value size(AffineMap map) { return size(map.getResult(0)); }
  Value arithmetic(AffineExprKind kind, Value x, Value y);
  Value floorDiv(Value x, Value y);
  struct SizeInfo {
    unsigned operations = 0; ///< of the expression as a tree
    bool isStable = true;    ///< whether its symbols get their values once in a run
  };
  const SizeInfo &getInfo(AffineExpr expr);
  Value sharedMemoryAddress(Value value) {
    return at(shared, 8 * int64_t(segmentBytes.size() + sharedMemory.lookup(value)));
  }
  Value sharedSizeAddress(size_t number) {
    return at(shared, 8 * int64_t(segmentBytes.size() + sharedMemory.size() + number));
  }
  bool isBoundByData(AffineExpr expr) {
    return llvm::any_of(getSymbols(expr), [&](unsigned s) { return boundByData.contains(s); });
  }
  StringRef symbolName(unsigned symbol) {
    return symbols && symbol < symbols.size() ? cast<prim::SymbolAttr>(symbols[symbol]).getName() : "?";
  }
  void checkSymbol(unsigned symbol, Value value, std::optional<StringRef> message = std::nullopt);

  //===--- memory -------------------------------------------------------------------------------------------------===//
  Value address(Value value);
  /// Where a segment of the arena begins; behind the last one, the scratch does.
  Value segment(size_t index);
  /// Computes where the segments in [first, last) end: stores it to the words of `table`, else keeps it for this
  /// function.
  void emitSegments(size_t first, size_t last, Value table);
  /// Makes the memory of values whose size depends on data. Called where they are defined.
  void allocate(Value value);
  bool hasDynamicMemory(Value value) {
    PlaceAttr place = placeOf(value);
    return place && (place.getKind() == PlaceKind::Heap || place.getKind() == PlaceKind::LateOutput);
  }
  Value allocateBytes(Value bytes);
  /// The same; sizes that overflow end the run with the sentence.
  Value allocateBytes(llvm::function_ref<Value()> size, const std::string &tooLarge);
  void returnIfNull(Value memory);
  void release(Value memory);
  /// Releases what the ops of a block allocated, but not `kept`.
  void releaseMemoryOf(Block &block, ArrayRef<Value> kept);
  /// Gives the symbols that `op` binds the sizes of `values`, which become its results.
  void bindResultSymbols(Operation *op, ValueRange values);
  void emitGuard(prim::GuardOp guard);
  /// Whether a guard always runs and depends on the inputs' sizes alone: tc_infer checks it, before any kernel.
  bool isCheckedByInfer(prim::GuardOp guard) {
    return guard->getParentOp() == main &&
           !llvm::any_of(guard.getSizes().getResults(), [&](AffineExpr e) { return isBoundByData(e); });
  }
  PlaceAttr placeOf(Value value);
  Value hostLoad(Type type, Value address);
  void hostStore(Value value, Value address);
  /// A scalar of the program, of which constants and sizes are not read from a device, as that would be waited for.
  Value hostInteger(Type type, Value value);
  void copy(Value to, Value from, Value bytes);

  //===--- the functions ------------------------------------------------------------------------------------------===//
  LLVM::LLVMFuncOp beginFunction(StringRef name, Type result, ArrayRef<Type> arguments);
  /// Of a function that is one of many of a long program: LLVM takes its time for kernels, not for these.
  void markPart(LLVM::LLVMFuncOp function) {
    function.setNoInline(true);
    function.setOptimizeNone(true);
  }
  void loadFrame(Value frame);
  LogicalResult buildInfer();
  LogicalResult buildRun();
  /// Begins a function that runs ops: what it loads of the frame, and its room on the stack.
  LLVM::LLVMFuncOp beginRun(StringRef name, ArrayRef<Type> arguments);
  /// The ops of the program's outermost block in functions of bounded size; their names.
  FailureOr<SmallVector<std::string>> buildParts();
  /// Functions of bounded size that store where the arena's segments end; their names.
  SmallVector<std::string> buildSegments();
  /// Calls functions that take these arguments, one after another, until one fails.
  void callParts(ArrayRef<std::string> names, ArrayRef<Value> arguments);
  LogicalResult emit(Block &block);
  LogicalResult emit(Operation &op);
  LogicalResult emitLaunch(LaunchOp launch);
  LogicalResult emitDeviceLaunch(LaunchOp launch, Value words, int64_t wordCount);
  bool isCostBoundByData(LaunchOp launch) {
    return isBoundByData(launch.getCostAttr().getFlopsExpr()) || isBoundByData(launch.getCostAttr().getBytesExpr());
  }
  /// Tells the runtime what a launch costs, for the sizes of this run.
  void emitCost(LaunchOp launch);
  void emitWriteState(prim::WriteStateOp op);
  LogicalResult emitFill(Operation *op);
  LogicalResult emitHostCall(prim::HostCallOp op);
  void emitIf(prim::IfOp op, LogicalResult &result);
  void emitChoose(ChooseOp op, LogicalResult &result);
  /// i1: whether the symbols' values lie in a set without dims.
  Value contains(IntegerSet set);
  void emitWhile(prim::WhileOp op, LogicalResult &result);

  func::FuncOp main;
  VariantOp variant;
  StringRef suffix;
  ProgramTables &tables;
  MLIRContext *context;
  OpBuilder b;
  Location loc;
  ArrayAttr symbols;
  bool isCpu;
  Type ptr, i1, i8, i32, i64, i64Checked;
  llvm::SmallDenseSet<unsigned> boundByData, boundByLoop;
  DenseMap<AffineExpr, SizeInfo> sizeInfos;

  // Of the function being built.
  Value frame, imports, frameSymbols, inputs, outputs, states, arena, weights, args;
  Value overflow; ///< if set, size arithmetic is checked and or-ed to it
  struct Size {
    Value value;
    bool isChecked; ///< for overflow
  };
  /// Sizes that are known in the blocks being built, from the function's own to the innermost one of control flow.
  SmallVector<DenseMap<AffineExpr, Size>> knownSizes;
  /// Sizes that become known while it lives are forgotten behind it: a block that does not always run.
  struct SizeScope {
    explicit SizeScope(ProgramBuilder &builder) : builder(builder) { builder.knownSizes.emplace_back(); }
    ~SizeScope() { builder.knownSizes.pop_back(); }
    ProgramBuilder &builder;
  };
  DenseMap<Value, Value> dynamicMemory;
  /// Bytes of the arena's segments; where they end, if the function being built computes that.
  SmallVector<AffineExpr> segmentBytes;
  SmallVector<Value> segments;
  /// Where a program is in parts: words that these share. First where the arena's segments end, then the memory of
  /// values, then sizes, by number.
  Value shared;
  llvm::MapVector<Value, int64_t> sharedMemory;
  struct SharedSize {
    size_t number;
    bool isChecked;
  };
  DenseMap<AffineExpr, SharedSize> sharedSizes;
  llvm::MapVector<Operation *, unsigned> launchIds;
  /// What any function that runs ops may need on its stack: words of a launch, members of a group, records of launches
  /// and words of a call.
  struct {
    int64_t words = 1, members = 1, records = 0, call = 0;
    bool states = false; ///< whether they are read or written
  } room;
  int64_t argsBytes = 0;         ///< of a launch's words
  Value groupRecords;            ///< room for the largest group's tcrt_launch_t, or that of a launch in steps
  Value deviceRecord;            ///< room for a launch on a device
  SmallVector<Value> ownScratch; ///< of the group or launch being built, of sizes that the data decide
  uint32_t graphCount = 0;       ///< segments of launches on a device so far
  bool isInGraph = false;        ///< the last one goes on
  Value callRecord;              ///< room for the largest host call's record
};

} // namespace tc::hosttollvm

#endif // TC_LIB_CONVERSION_HOSTTOLLVM_PROGRAMBUILDER_H
