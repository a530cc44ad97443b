//===- SizeCases.h - schedules by sizes that only the run knows -----------------------------------------*- C++ -*-===//
//
// A GPU's tiles, parts and blocks depend on how much work there is: a product of 16 rows and one of 4096 have little in
// common. So a region with symbols is decided at each of several sizes, and gets a few cases (kernel.case), among which
// the host program chooses by its work when it knows the sizes:
//
//   rows  1 .. 64  : tiles of 16 x 64, K in 4 parts      work <= w0
//        65 .. 1023: tiles of 64 x 64                     work <= w1
//      1024 ..     : tiles of 128 x 256, tensor copies    the region's schedule
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_SIZECASES_H
#define TC_LIB_CODEGEN_SIZECASES_H

#include "Common/Generators.h"

namespace tc::codegen {

/// Writes cases and a schedule for all else into the region, which has a schedule of `generator`; nothing where sizes
/// are known, or one schedule is for all of them. `tuned`: sizes of all symbols, if the schedule was measured at these;
/// then it stays for sizes like them.
void addSizeCases(const RegionProblem &problem, const Generator &generator, mlir::DenseI64ArrayAttr tuned = {});

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_SIZECASES_H
