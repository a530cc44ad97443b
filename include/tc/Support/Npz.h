//===- Npz.h - read and write .npy and .npz files -------------------------------------------------------*- C++ -*-===//
//
// NumPy's array files, as tc-run and the tests exchange tensors. C++17 and libc only, so that tools without LLVM can
// use it. Read: .npy versions 1 to 3; .npz stored or deflated, with or without zip64. Written: .npy version 1, .npz
// stored without compression, the same arrays giving the same bytes. Sources: NEP 1 (A Simple File Format for NumPy
// Arrays), PKWARE APPNOTE 6.3.9, RFC 1951.
//
// Functions return false and set `error` to a sentence that names the file. Any bytes are safe to read.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_NPZ_H
#define TC_SUPPORT_NPZ_H

#include <cstdint>
#include <string>
#include <vector>

namespace tc::npz {

/// An array, always little-endian and row-major in memory, whatever the file has.
struct Array {
  /// Name in the .npz, without ".npy".
  std::string name;
  /// NumPy's letter and bytes of an element: b1, i1 to i8, u1 to u8, f2, f4, f8, c8, c16.
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<char> data;
};

/// Bytes of one element of a dtype as above; 0 for others.
int64_t getElementBytes(const std::string &dtype);

/// Reads one .npy file.
bool readNpy(const std::string &path, Array &array, std::string &error);
/// Reads all arrays of an .npz file, in the file's order.
bool readNpz(const std::string &path, std::vector<Array> &arrays, std::string &error);
/// Writes a .npy file. No partial file is left.
bool writeNpy(const std::string &path, const Array &array, std::string &error);
/// Writes an .npz file. No partial file is left.
bool writeNpz(const std::string &path, const std::vector<Array> &arrays, std::string &error);

} // namespace tc::npz

#endif // TC_SUPPORT_NPZ_H
