//===- Dtypes.h - element types as artifacts number them ------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_DTYPES_H
#define TC_DRIVER_DTYPES_H

#include "mlir/IR/Types.h"
#include "tcrt/artifact_abi.h"

namespace tc::driver {

/// The dtype of an element type; TCRT_DTYPE_INVALID where artifacts have none.
tcrt_dtype_t getDtype(mlir::Type type);

} // namespace tc::driver

#endif // TC_DRIVER_DTYPES_H
