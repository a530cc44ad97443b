//===- FusePlan.h - which primitives of a block share a region ----------------------------------------*- C++ -*-===//
//
// The decisions of tc-fuse, made without changing the IR, and read by the part that builds the regions (Fuse.cpp). One
// plan per block; nested blocks have plans of their own. FusePlan.cpp has the order of the steps and what they share,
// FusePins.cpp, FuseJoins.cpp and FuseCopies.cpp the steps.
//
// Example: conv, add, relu of one space are one group; transposes in front of them belong to no group (`groupOf` is -1)
// and are copied into each group that reads through them.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_TRANSFORMS_FUSEPLAN_H
#define TC_LIB_TRANSFORMS_FUSEPLAN_H

#include "tc/Transforms/Fuse.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <set>

namespace tc::fuse {

/// Limits of the plan; see the options of tc-fuse.
struct Limits {
  bool fuse = true;
  int64_t maxOps = 64;
  int64_t maxBuffers = 16;
  machine::TargetKind target = machine::TargetKind::Cpu;
  /// Ops that are a group alone, which takes nothing in and that nothing takes in; null: none.
  llvm::function_ref<bool(mlir::Operation *)> isDisabled = nullptr;
};

/// A set of ops that becomes one region, or one op that stays in the function.
struct Group {
  enum Kind {
    Function,    ///< one op that stays in the function
    Loops,       ///< one space, with or without rows
    Contraction, ///< an anchor with an epilogue
    Alone        ///< one op that takes nothing in
  };
  Kind kind = Loops;
  /// Members in the order in which they joined; what is copied in is not listed.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Loops: the space, and the number of its leading dims that are kept by the group's reductions (-1: none yet).
  Space space;
  int rowRank = -1;
  /// Values of the group must be computed once per element (windows, reductions over other than trailing dims).
  bool heavy = false;
  /// Holds a movement op whose result is needed in memory.
  bool pinned = false;
  bool dead = false;
  /// Number of pointwise ops copied in (rule 5).
  int64_t copied = 0;
  /// Groups that must run before.
  llvm::SetVector<int> deps;
  /// Position of the first member, and one that no member lies behind, nor any of the groups that must run before.
  unsigned first = ~0u, latest = 0;
  mlir::Operation *anchor() const { return ops.front(); }
};

/// One operand of an op, traced through what is copied into its region to a value that some group computes, or that
/// comes from outside of the block.
struct Use {
  mlir::Value leaf;
  /// The operand that the trace started from.
  mlir::Value top;
  /// Position in `leaf` in terms of the space of the op that reads (its result; for reductions its operand).
  DimMap map;
  /// What was walked through, from the reader to the leaf.
  llvm::SmallVector<mlir::Operation *, 4> chain;
};

/// Whether a gather is among the ops that lead to what is read.
bool isGathered(const Use &use);
/// Elements of `v` that slices along its last dim read: of gathers, and of slices that overlap.
double countSliced(mlir::Value v);
/// Whether the last dim of `v` has so many elements that lanes along it pay.
bool hasLanes(mlir::Value v, const Preferences &prefer);

/// Why kernels are apart where hasFewLongRows.
constexpr llvm::StringLiteral kFewLongRows =
    "there are few rows, and long ones, which all of the machine reduces in a kernel of its own";

class Plan {
public:
  Plan(mlir::Block &block, const Limits &limits, bool log);

  /// Index in the original order of an op of the block; nullopt for others.
  std::optional<unsigned> orderOf(mlir::Operation *op) const;
  /// Group of an op of the block; -1 if it is copied into its readers or from elsewhere.
  int groupOf(mlir::Operation *op) const;
  /// Whether `op` is copied into the groups that read it.
  bool isCopied(mlir::Operation *op) const { return orderOf(op) && groupOf(op) < 0; }
  /// Whether `value` is a reshape (of a reshape ...) of a value in memory, seen from group `reader`: a view.
  bool isView(mlir::Value value, int reader) const;

  const Group &group(int id) const { return groups[id]; }
  /// Living groups in the order in which they run.
  llvm::ArrayRef<int> schedule() const { return order; }
  /// Values that group `id` must write, in the order of its members.
  llvm::ArrayRef<mlir::Value> outputs(int id) const { return outputsOf[id]; }
  /// Why the readers of the outputs of group `id` are not in it: "<value> -> <reader>: reason".
  llvm::ArrayRef<std::string> stopped(int id) const { return stoppedOf[id]; }

private:
  void pin();
  void findWidening();
  void pinOperand(mlir::Operation *consumer, mlir::Value operand);
  void assign();
  void joinEpilogueChains();
  void copyProducers();
  void joinSmallSlices();
  void mergeGroups();
  void findOutputs();
  void sortGroups();
  std::vector<std::string> findStopped(int id) const;

  llvm::SmallVector<Use> usesOf(mlir::Operation *op) const;
  struct Trace {
    llvm::SmallVector<Use> uses;
    std::set<std::tuple<void *, std::vector<int>, size_t>> seen;
  };
  void trace(mlir::Value value, mlir::Value top, const DimMap &map, llvm::SmallVectorImpl<mlir::Operation *> &chain,
             Trace &trace) const;
  int makeGroup(Group::Kind kind, mlir::Operation *op);
  void join(int id, mlir::Operation *op);
  /// Groups that must run before `op`, its own included if one of its members is read.
  llvm::SetVector<int> depsOf(mlir::Operation *op) const;
  void addDeps(int id, mlir::Operation *op);
  void recomputeDeps(int id);
  /// Living groups that must run after `id`, in their order.
  llvm::SmallVector<int> readersOf(int id) const;
  /// Makes `from` a part of `into`.
  void merge(int into, int from);
  /// Notes that `id` holds an op at this position, or runs after one: so do the groups that run after it.
  void raise(int id, unsigned order);
  /// Whether `id` runs after `on` in any order.
  bool dependsOn(int id, int on) const;
  /// How many gathers one after another, at positions that those before give, there are on the way to the result of
  /// `op`, which reads `uses`, in region `id`; remembered.
  int gatherDepth(mlir::Operation *op, int id, llvm::ArrayRef<Use> uses);
  llvm::DenseMap<mlir::Operation *, int> gatherDepths;
  /// The most of all ops of region `id`.
  int mostGathers(int id) const;
  /// Empty if `op` may join, else why not. `frame`: for contractions, the frame that op gets.
  std::string refuse(int id, mlir::Operation *op, llvm::ArrayRef<Use> uses, int &frame);
  /// See Preferences::leastRows.
  bool hasFewLongRows(llvm::ArrayRef<mlir::AffineExpr> space, int rowRank, mlir::Operation *op) const;
  std::string refuseReduce(int id, mlir::Operation *op, llvm::ArrayRef<Use> uses);
  std::string refuseCommon(int id, mlir::Operation *op);
  bool gathersManySlices(llvm::ArrayRef<mlir::Operation *> members) const;
  std::string refuseCopy(int producer, const llvm::SmallVector<std::pair<mlir::Operation *, Use>> &readers);
  std::string refuseMerge(int a, int b);
  bool tryGroups(mlir::Operation *op, llvm::ArrayRef<Use> uses);
  int64_t countBuffers(llvm::ArrayRef<int> ids) const;
  /// Whether it is a group alone because the options want that.
  bool isAlone(mlir::Operation *op) const { return !limits.fuse || disabled.contains(op); }
  std::string describe(mlir::Operation *op) const;
  void note(mlir::Operation *producer, mlir::Operation *reader, const std::string &reason);

  Limits limits;
  Preferences prefer;
  bool log;
  std::string text;
  llvm::raw_string_ostream lines;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, unsigned> orderMap;
  llvm::DenseMap<mlir::Operation *, int> groupMap;
  llvm::DenseSet<mlir::Operation *> disabled, pinned;
  /// Widen bytes for pointwise readers, each of which does it again: the bytes are what stands in memory.
  llvm::DenseSet<mlir::Operation *> widening;
  /// Members whose result lies in the rows' space.
  llvm::DenseSet<mlir::Operation *> rowOps;
  /// Contractions: frame of a member's result: 0 the anchor's space, others reached through bijections.
  llvm::DenseMap<mlir::Operation *, int> frames;
  std::map<std::pair<int, unsigned>, int> frameIds;
  /// Position of a symbol -> the op of this block that defines it by data.
  llvm::DenseMap<int64_t, mlir::Operation *> binders;
  /// Position of a symbol -> the guards of this block on it.
  llvm::DenseMap<int64_t, llvm::SmallVector<mlir::Operation *>> guards;
  std::vector<Group> groups;
  std::vector<llvm::SmallVector<mlir::Value>> outputsOf;
  /// Of outputs: the groups that read them, in order, each with its first op that does.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<int, mlir::Operation *>>> outputReaders;
  /// Groups that depended on each group at some time.
  std::vector<llvm::SetVector<int>> onceReaders;
  std::vector<std::vector<std::string>> stoppedOf;
  llvm::SmallVector<int> order;
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Operation *>, std::string> refusals;
};

} // namespace tc::fuse

#endif // TC_LIB_TRANSFORMS_FUSEPLAN_H
