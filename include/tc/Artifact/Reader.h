//===- Reader.h - Reads artifact files for tools --------------------------------------------------------*- C++ -*-===//
//
// Opens an artifact with the checks of the runtime's loader (bounds, hashes) without running anything in it, and gives
// access to its tables. References stay valid as long as the Reader lives. Any byte string is safe.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_ARTIFACT_READER_H
#define TC_ARTIFACT_READER_H

#include "tcrt/artifact_abi.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tc::artifact {

/// An opened artifact.
class Reader {
public:
  /// Opens the file at `path`. With `verifyAll`, the hashes of device code and weights are checked, too.
  static llvm::Expected<std::unique_ptr<Reader>> open(llvm::StringRef path, bool verifyAll = false);
  /// Opens a section of kind TCRT_SECTION_ARTIFACT: the artifact for another device. It must not outlive this one.
  llvm::Expected<std::unique_ptr<Reader>> openPart(const tcrt_section_t &section, bool verifyAll = false) const;
  ~Reader();
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  llvm::StringRef path() const;
  uint64_t fileSize() const;
  /// The manifest's JSON text; empty without one.
  llvm::StringRef manifest() const;
  llvm::ArrayRef<tcrt_section_t> sections() const;
  llvm::StringRef sectionBytes(const tcrt_section_t &section) const;
  /// Of the code: TCRT_ABI_VERSION or an older one.
  uint32_t abiVersion() const;
  /// Of ABI 1, one function whose `name` is not set.
  llvm::ArrayRef<tcrt_sig_function_t> functions() const;
  llvm::StringRef functionName(size_t index) const;
  llvm::ArrayRef<tcrt_sig_value_t> inputs(const tcrt_sig_function_t &function) const;
  llvm::ArrayRef<tcrt_sig_value_t> outputs(const tcrt_sig_function_t &function) const;
  llvm::ArrayRef<tcrt_sig_symbol_t> symbols(const tcrt_sig_function_t &function) const;
  /// Entries of function `index` that have sizes of their own; the general one has no record.
  llvm::ArrayRef<tcrt_sig_entry_t> entries(size_t index) const;
  llvm::ArrayRef<tcrt_sig_entry_size_t> sizes(const tcrt_sig_entry_t &entry) const;
  llvm::ArrayRef<tcrt_sig_state_t> states() const;
  llvm::ArrayRef<tcrt_sig_variant_t> variants() const;
  /// Of all functions.
  llvm::ArrayRef<tcrt_sig_kernel_t> kernels() const;
  llvm::ArrayRef<tcrt_sig_device_kernel_t> deviceKernels(const tcrt_sig_variant_t &variant) const;
  /// Name and bytes of each function in a variant's host code, in order of addresses; empty where the code has no table
  /// of symbols that can be read.
  std::vector<std::pair<llvm::StringRef, uint64_t>> codeFunctions(const tcrt_sig_variant_t &variant) const;
  /// The dims of an input or output.
  llvm::ArrayRef<tcrt_sig_dim_t> dims(const tcrt_sig_value_t &value) const;
  llvm::ArrayRef<tcrt_sig_dim_t> dims(const tcrt_sig_state_t &state) const;
  llvm::StringRef name(tcrt_sig_name_t name) const;
  /// Bytes of weights; 0 without any.
  uint64_t weightsSize() const;

private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace tc::artifact

#endif // TC_ARTIFACT_READER_H
