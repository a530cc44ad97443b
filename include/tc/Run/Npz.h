//===- Npz.h - NumPy's .npy and .npz files --------------------------------------------------------------*- C++ -*-===//
//
// Reads .npy versions 1 to 3 (both byte orders and both element orders) and .npz archives with stored and deflated
// members; writes .npz archives with stored members. Numbers and booleans only. Any byte string is safe to read;
// problems are Failures with code 1. Format: numpy.lib.format; APPNOTE.TXT of PKWARE, sections 4.3 and 4.5.3 (Zip64).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_NPZ_H
#define TC_RUN_NPZ_H

#include "tc/Run/Tensor.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tc::run {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

Tensor readNpy(const std::string &path);
/// The arrays of an archive whose names are `wanted`; others are not unpacked. `wanted` sees all names before any is,
/// and may throw. An archive whose members share bytes or names is refused, and so is an array of another size than its
/// header says, before memory is asked for it.
NamedTensors readNpz(
    const std::string &path,
    const std::function<bool(const std::string &)> &wanted = [](const std::string &) { return true; });

/// Types that NumPy lacks are written as f32 or as the next larger integer.
void writeNpz(const std::string &path, const NamedTensors &tensors);

/// The dtype under which writeNpz stores a tensor.
tcrt_dtype_t numpyDtype(tcrt_dtype_t dtype);

} // namespace tc::run

#endif // TC_RUN_NPZ_H
