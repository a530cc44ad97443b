//===- Pytree.h - names of what programs of torch.export take and give ----------------------------------*- C++ -*-===//
//
// The archive keeps the nesting of tuples, lists, dicts and classes that the model was called with as text, beside a
// flat list of values. The way to a value is its name: of forward(self, batch) with batch = {"ids": x} it is batch.ids.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_EXPORTEDPROGRAM_PYTREE_H
#define TC_LIB_FRONTEND_EXPORTEDPROGRAM_PYTREE_H

#include "Archive.h"

#include <vector>

namespace tc::exported {

/// A key of a dict, a field, or an index.
struct PathStep {
  std::string name;
  bool isIndex = false;
};
using LeafPath = std::vector<PathStep>;

/// The ways to the leaves of a spec (module_call_graph: in_spec, out_spec), in order; empty if it cannot be read.
/// `fields` are the program's treespec_namedtuple_fields, or null.
std::vector<LeafPath> readPytree(llvm::StringRef spec, const json *fields);

/// "batch.ids.0"
std::string joinPath(llvm::ArrayRef<PathStep> path);

} // namespace tc::exported

#endif // TC_LIB_FRONTEND_EXPORTEDPROGRAM_PYTREE_H
