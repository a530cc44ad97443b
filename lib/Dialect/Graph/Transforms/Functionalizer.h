//===- Functionalizer.h - tensors of PyTorch as places in memory ----------------------------------------*- C++ -*-===//
//
// The walk of Functionalize.cpp, which says what it does, and what it keeps of each memory: the tensor that it was made
// as, and its views. What custom operators write is in CustomWrites.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_GRAPH_TRANSFORMS_FUNCTIONALIZER_H
#define TC_LIB_DIALECT_GRAPH_TRANSFORMS_FUNCTIONALIZER_H

#include "Aliasing.h"

#include "tc/Dialect/Graph/Custom/CustomOperator.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

#include <deque>

namespace tc::graph {

struct Memory;

/// A place in the tree of a memory.
struct View {
  Memory *memory = nullptr;
  View *parent = nullptr; ///< null of a root
  NodeOp node;            ///< that made it of its parent
  const torch::Schema *schema = nullptr;
  ViewKind kind = ViewKind::Identity;
  unsigned result = 0;  ///< of `node`
  unsigned operand = 0; ///< of `node`: the parent
  mlir::Type type;
  mlir::Value value;   ///< its elements as of `version`
  int64_t version = 0; ///< of the memory
  /// The first result of `node`, where it has more than one.
  llvm::ArrayRef<View *> group;
  std::optional<Layout> layout;
};

struct Memory {
  View *root = nullptr;
  View *newest = nullptr;       ///< below it all is derived from it; above it all is stale
  mlir::Value origin;           ///< the tensor that it was made as
  mlir::Region *home = nullptr; ///< where
  int64_t views = 1;            ///< places of the tree
  int64_t version = 0;          ///< number of writes
  NodeOp writer;                ///< the last one
  /// Sizes of an operand of `node` for which that makes a name of it in place of a copy: all dims of any of `sets`
  /// are 1.
  struct Condition {
    NodeOp node;
    unsigned operand;
    llvm::SmallVector<llvm::SmallVector<int64_t, 2>, 0> sets;
    bool isExcluded = false; ///< by a guard
  };
  /// Others that it may be one with, at the version from which on that would show.
  struct Link {
    Memory *other;
    int64_t version;
    std::string why;
    Condition *condition; ///< without which it is not one with the other; null: none is known
  };
  llvm::SmallVector<Link, 0> links;
};

/// A tensor object: in-place operators return the one that they were given.
struct Name {
  View *view;
};

/// What a call writes.
struct Write {
  unsigned operand;
  const torch::SchemaArgument *argument;
};

/// Signatures of the operators of a graph, each looked up once.
class SchemaCache {
public:
  explicit SchemaCache(const CustomOperators &customs) : customs(customs) {}
  const torch::Schema *find(NodeOp node);
  /// Whether a schema is that of an operator of the user's own.
  bool isCustom(const torch::Schema &schema) const {
    return llvm::any_of(customs, [&](const auto &custom) { return custom->schema && &*custom->schema == &schema; });
  }

private:
  const CustomOperators &customs;
  llvm::StringMap<const torch::Schema *> found;
};

class Functionalizer {
public:
  Functionalizer(FuncOp function, const CustomOperators &customs)
      : function(function), builder(function.getContext()), schemas(customs) {}
  void run();

private:
  Name *nameOf(mlir::Value value);
  View *viewOf(mlir::Value value) { return nameOf(value)->view; }
  View *addRoot(mlir::Value value);
  View *addView(View *parent, NodeOp node, const torch::Schema *schema, ViewKind kind, unsigned result,
                unsigned operand);
  void setName(mlir::Value value, View *view);
  Layout layoutOf(View *view);
  Layout rootLayout(View *root);

  mlir::Value read(View *view, mlir::Operation *reader);
  void derive(View *view);
  mlir::Value derivePiece(View *view, mlir::Value parent);
  void flush(View *view);
  mlir::Value writeBack(View *view);
  NodeOp emit(llvm::StringRef type, mlir::Type result, llvm::ArrayRef<std::pair<llvm::StringRef, mlir::Value>> operands,
              llvm::ArrayRef<mlir::NamedAttribute> attributes, NodeOp like);
  /// The node of `view` with other operands: its parent, and more. `drop`: attributes that do not carry over.
  mlir::Value emitLike(View *view, llvm::StringRef type, mlir::Type result,
                       llvm::ArrayRef<std::pair<llvm::StringRef, mlir::Value>> operands,
                       llvm::ArrayRef<llvm::StringRef> drop = {}, llvm::ArrayRef<mlir::NamedAttribute> more = {});
  std::string whyNotWritable(View *view);

  llvm::SmallVector<View *> visitBlock(mlir::Block &block);
  void visitNode(NodeOp node);
  void visitResults(NodeOp node, const torch::Schema &schema, llvm::ArrayRef<Name *> given);
  bool visitWrites(NodeOp node, const torch::Schema &schema, llvm::ArrayRef<Name *> given);
  void rewrite(NodeOp node, const torch::Schema &schema, const torch::Schema &pure, llvm::ArrayRef<Write> writes,
               llvm::ArrayRef<Name *> given);
  void rewriteInstanceNorm(NodeOp node, llvm::ArrayRef<Write> writes, llvm::ArrayRef<Name *> given);
  void store(View *view, mlir::Value value, NodeOp writer);
  View *sourceOfAsStrided(NodeOp node, View *operand);
  void visitCustom(NodeOp node, const torch::Schema &schema, llvm::ArrayRef<Name *> given);
  std::string whyNotShared(llvm::ArrayRef<Name *> given, unsigned written);
  void nameWritten(NodeOp node, const torch::Schema &schema, llvm::ArrayRef<Write> writes,
                   llvm::ArrayRef<Name *> given);
  void visitRegions(NodeOp node, llvm::ArrayRef<Name *> given);
  void returnWritten();
  void refuse(mlir::Operation *op, const llvm::Twine &why);
  void link(Memory *a, Memory *b, const llvm::Twine &why, Memory::Condition *condition = nullptr);
  void exclude(Memory::Condition &condition);

  FuncOp function;
  mlir::OpBuilder builder;
  SchemaCache schemas;
  mlir::Region *region = nullptr;
  /// The op that is visited.
  mlir::Operation *at = nullptr;
  std::deque<Memory> memories;
  std::deque<View> views;
  std::deque<Name> names;
  std::deque<Memory::Condition> conditions;
  std::deque<llvm::SmallVector<View *, 2>> groups;
  llvm::DenseMap<mlir::Value, Name *> nameOfValue;
  llvm::SmallVector<mlir::Operation *> replaced;
};

/// Whether both types are known and not the same, but for sizes that either leaves open.
bool differ(mlir::Type a, mlir::Type b);
/// What messages call a value: the node or the argument.
std::string nodeNameOf(mlir::Value value);

} // namespace tc::graph

#endif // TC_LIB_DIALECT_GRAPH_TRANSFORMS_FUNCTIONALIZER_H
