//===- OperandRules.h - ranks, sizes and constants that operators ask of their operands -----------------*- C++ -*-===//
//
// What a node's operands and attributes must look like is data: OperandRules.def has a line for each operator, which
// this reads and holds against a node before its handler runs. Sizes and values that only the run knows are never
// errors here; handlers guard those. An example, Conv:
//
//   X[N, C, D+] W[O, C / @group=1, K+D] B[O] @group{> 0} @strides[rank(X) - 2]{> 0}
//
// Operands stand in the order of the operator's definition (operators of PyTorch: by their argument's name),
// attributes, with @, anywhere. Behind a name, each in turn and each optional:
//
//   [dim, ..]     the form of a tensor, or how many numbers an attribute has; a|b where one of several forms is taken
//   {check, ..}   what is asked of all elements, where they are known
//
//   dim           a number; _ for any size; a name for a size, the same wherever it stands; a product or difference of
//                 numbers, names, @attribute=default and rank(operand) from left to right
//   dim?          that size, or 1
//   D*   D+       any number of dims, or one or more; the same ones wherever D stands
//   K+D  K*D      as many dims as D, of sizes of their own
//   n=rank(X)     a name that is given this value where its operand is absent
//
//   check         > n, >= n, < n, <= n, != n; finite; permutation: each of 0 .. n-1 once; in a b c: one of these words;
//                 given: it must be there, though the definition of some version says optional
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_OPERANDRULES_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_OPERANDRULES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tc {

class NodeContext;

/// A number, a named size, an attribute or a rank; and how it joins what stands before it.
struct SizeFactor {
  enum Kind { Number, Name, Attribute, Rank } kind = Number;
  char joinedBy = '*'; // * / -
  std::string name;
  /// Of numbers and absent attributes.
  std::optional<int64_t> value;
};

struct DimRule {
  enum Kind { Any, Size, Run } kind = Any;
  llvm::SmallVector<SizeFactor, 2> factors;
  bool orOne = false;
  /// The value of the first factor, a name, where the operand is absent.
  std::optional<SizeFactor> otherwise;
  /// Of runs: at least one dim; the run that has as many.
  std::string name, sameCountAs;
  bool atLeastOne = false;
};

struct ElementCheck {
  enum Kind { Compare, Finite, Given, Permutation, Words } kind = Compare;
  std::string comparison; // > >= < <= !=
  int64_t bound = 0;
  std::vector<std::string> words;
};

struct OperandRule {
  std::string name;
  bool isAttribute = false;
  std::vector<std::vector<DimRule>> forms;
  std::vector<ElementCheck> checks;
};

using OperandRules = std::vector<OperandRule>;

/// Reads a line of OperandRules.def; one that is malformed is a fault of tc's own.
OperandRules parseOperandRules(llvm::StringRef text);

/// What is wrong with the node's operands and attributes: a text that reads on from its name and operator; empty where
/// nothing is. `byName`: operands are found by the names in the attribute arg_names.
std::string findRuleError(NodeContext &ctx, const OperandRules &rules, bool byName);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_OPERANDRULES_H
