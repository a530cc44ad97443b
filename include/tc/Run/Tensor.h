//===- Tensor.h - A tensor in host memory and its element types -----------------------------------------*- C++ -*-===//
//
// What tc-run reads, converts, compares and writes. Errors are thrown as Failure, whose code is the process's exit
// code.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_RUN_TENSOR_H
#define TC_RUN_TENSOR_H

#include "tcrt/tcrt.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tc::run {

/// An error: exit code and the sentence for stderr.
struct Failure {
  /// One line: control characters, which names in files may hold, become question marks.
  Failure(int code, std::string message);

  int code;
  std::string message;
};

/// Allocates with `new`, but large blocks at a huge page, and asks the kernel to back them with huge pages, as NumPy
/// does for the other engines that tc is timed beside.
void *allocateBytes(size_t bytes);
void releaseBytes(void *data, size_t bytes);
template <typename T> struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U> PageAllocator(const PageAllocator<U> &) {}
  T *allocate(size_t count) { return static_cast<T *>(allocateBytes(count * sizeof(T))); }
  void deallocate(T *data, size_t count) { releaseBytes(data, count * sizeof(T)); }
  template <typename U> bool operator==(const PageAllocator<U> &) const { return true; }
  template <typename U> bool operator!=(const PageAllocator<U> &) const { return false; }
};
/// The bytes of a tensor or file.
using ByteVector = std::vector<uint8_t, PageAllocator<uint8_t>>;

/// A dense row-major tensor. An invalid dtype means raw elements of `rawBytes` bytes (NumPy's void types).
struct Tensor {
  tcrt_dtype_t dtype = TCRT_DTYPE_INVALID;
  uint32_t rawBytes = 0;
  std::vector<int64_t> dims;
  ByteVector data;
  std::vector<std::string> strings; ///< instead of `data` where the dtype is string

  int64_t count() const;
};

/// What an input or output is: a tensor, or a sequence, optional or map of values (tcrt_value_t).
struct Value {
  uint32_t kind = TCRT_VALUE_TENSOR;
  Tensor tensor;
  std::vector<Value> elements;
};

/// The kinds of a value from the outside in, a byte each.
inline uint32_t kindsOf(const tcrt_value_info_t &info) { return info.kind | (info.inner & 0xffff) << 8; }

/// Bytes of a tensor; throws a Failure (code 4) that starts with `where` if the size overflows or a dim is negative.
uint64_t sizeOf(tcrt_dtype_t dtype, const std::vector<int64_t> &dims, const std::string &where);

/// Floats of 8 or 16 bits and sub-byte integers, which NumPy cannot hold.
bool isSmallFloat(tcrt_dtype_t dtype);
/// Floats of six bits, which have a byte each.
bool isSixBits(tcrt_dtype_t dtype);
bool isFloat(tcrt_dtype_t dtype);
bool isInteger(tcrt_dtype_t dtype);
bool isSigned(tcrt_dtype_t dtype);

/// Element `index` as a number. Works for all real dtypes.
double realAt(const Tensor &tensor, int64_t index);
/// Element `index` of an integer or bool tensor.
int64_t integerAt(const Tensor &tensor, int64_t index);
/// Stores the nearest value (ties to even) at element `index` of a float tensor; 8-bit floats saturate as ONNX Cast
/// does.
void setReal(Tensor &tensor, int64_t index, double value);
/// Stores the low bits of an integer.
void setInteger(Tensor &tensor, int64_t index, int64_t value);

/// Converts between float dtypes, and between equal-sized raw and typed elements.
Tensor convert(const Tensor &tensor, tcrt_dtype_t dtype);

/// "(2, 3)".
std::string dimsText(const std::vector<int64_t> &dims);

/// Reads a whole file. Throws a Failure with code 1.
ByteVector readFile(const std::string &path);
/// Writes through a temporary file and a rename, so that no partial file is left.
void writeFile(const std::string &path, const ByteVector &bytes);

} // namespace tc::run

#endif // TC_RUN_TENSOR_H
