//===- OutputFile.cpp - files that appear whole or not at all -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/OutputFile.h"
#include "tc/Format/Error.h"
#include "tc/Format/File.h"
#include "tc/Support/TemporaryPath.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace {

Error failFile(StringRef path, std::error_code error) {
  return createStringError(std::make_error_code(std::errc::io_error),
                           path + ": error: the file cannot be written: " + error.message());
}

Error lastError() { return createStringError(std::make_error_code(std::errc::io_error), Twine(tcrt_last_error())); }

} // namespace

Error tc::writeOutputFile(StringRef path, function_ref<void(raw_ostream &)> write) {
  sys::fs::file_status status;
  if (!sys::fs::status(path, status) && sys::fs::exists(status) && !sys::fs::is_regular_file(status) &&
      !sys::fs::is_directory(status)) {
    std::error_code error;
    raw_fd_ostream stream(path, error);
    if (!error) {
      write(stream);
      stream.flush();
      error = stream.error();
      stream.clear_error();
    }
    return error ? failFile(path, error) : Error::success();
  }
  tcrt_output_t output;
  if (tcrt_output_open(path.str().c_str(), &output) != TCRT_OK)
    return lastError();
  std::optional<TemporaryPath> named;
  if (output.temporary)
    named.emplace(output.temporary);
  raw_fd_ostream stream(output.fd, /*shouldClose=*/false);
  write(stream);
  stream.flush();
  if (std::error_code error = stream.error()) {
    stream.clear_error();
    tcrt_output_drop(&output);
    return failFile(path, error);
  }
  return tcrt_output_keep(&output) == TCRT_OK ? Error::success() : lastError();
}
