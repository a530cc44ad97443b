//===- Operators.h - which operators tc takes -----------------------------------------------------------*- C++ -*-===//
//
// The table that tc-inspect --operators prints and docs/operators.md holds, made from the registry of the conversion to
// prim and from ONNX's schemas, so that it cannot say anything else than the compiler does.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_OPERATORS_H
#define TC_DRIVER_OPERATORS_H

#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tc::driver {

enum class OperatorSupport {
  Handler,   ///< the conversion to prim has a handler
  Expansion, ///< its function body, or the PyTorch operator that computes what it writes, is supported
  None
};

struct OperatorVersion {
  int64_t version; ///< the opset of the domain that brought it
  OperatorSupport support = OperatorSupport::None;
  bool deprecated = false;
  /// Operators of its function body that are not supported.
  std::vector<std::string> missing;
};

struct OperatorEntry {
  std::string domain, type;
  std::vector<OperatorVersion> versions; ///< in order
  /// Element types that the newest version may have, in tc's names; empty for operators that ONNX does not define.
  std::vector<std::string> dtypes;
  /// Of Core ATen, what PyTorch's own decompositions end in.
  bool isCore = false;
};

/// As tables call it.
llvm::StringRef getName(OperatorSupport support);

/// Of an operator at an opset of its domain.
OperatorSupport findOperatorSupport(const std::string &domain, const std::string &type, int64_t opset);

/// All operators of ONNX, all that PyTorch has on tensors and that write none of their arguments, and all with a
/// handler; in order of domain and type.
std::vector<OperatorEntry> getOperatorTable();

/// One line per operator, and totals. Of PyTorch's only those that are supported, and Core ATen.
void printOperators(llvm::raw_ostream &stream, const std::vector<OperatorEntry> &table);
/// A JSON array of {domain, type, core (of PyTorch), dtypes, versions: [{version, support, deprecated, missing}]}.
void printOperatorsJson(llvm::raw_ostream &stream, const std::vector<OperatorEntry> &table);

} // namespace tc::driver

#endif // TC_DRIVER_OPERATORS_H
