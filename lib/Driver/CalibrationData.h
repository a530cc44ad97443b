//===- CalibrationData.h - sample inputs from .npz files ------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_CALIBRATIONDATA_H
#define TC_LIB_DRIVER_CALIBRATIONDATA_H

#include "tcrt/tcrt.h"

#include <memory>
#include <string>
#include <vector>

namespace tc::driver {

/// An input of the model that is to be run.
struct CalibrationInput {
  std::string name;
  tcrt_dtype_t dtype;
  std::vector<int64_t> dims; ///< -1: open
  bool hasDefault = false;
};

/// What an input is in one run. No bytes: its default.
struct CalibrationArray {
  std::vector<int64_t> dims;
  std::shared_ptr<const char> bytes;
};

/// Appends the runs of a file, each with an array for each input. Arrays are named after inputs. One of a rank more
/// than the input has a run for each index of the first dim; one of the input's rank is cut into runs of the input's
/// first size, and is one run where that is open. What has one run is the same in each run of the file. The error is a
/// sentence that begins with the path; empty: done.
std::string readCalibrationData(const std::string &path, const std::vector<CalibrationInput> &inputs,
                                std::vector<std::vector<CalibrationArray>> &runs);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_CALIBRATIONDATA_H
