//===- ToolVersion.cpp - what --version prints --------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ToolVersion.h"

#include "Commit.h" // made by cmake/TcCommit.cmake in each build

std::string tc::getVersionText(const std::string &tool) {
  const std::string commit = TC_COMMIT;
  return tool + " " TC_VERSION " (LLVM " TC_LLVM_VERSION + (commit.empty() ? "" : ", commit " + commit) + ")";
}
