//===- DepFile.cpp - what an artifact was made of, for build systems ----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "DepFile.h"

#include "tc/Support/OutputFile.h"
#include "tc/Support/ToolText.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace tc;
using namespace tc::driver;

std::string tc::driver::findDepFileError(const CompileRequest &request) {
  if (request.depFile.empty())
    return "";
  if (request.output.empty() || request.output == "-")
    return "--depfile says what the output file is made of; give -o OUT";
  return "";
}

/// As make and ninja read it.
static void printPath(raw_ostream &os, StringRef path) {
  for (char c : path) {
    if (c == ' ' || c == '#')
      os << '\\';
    else if (c == '$')
      os << '$';
    os << c;
  }
}

int tc::driver::writeDepFile(const CompileRequest &request, std::set<std::string> files, raw_ostream &errors) {
  if (request.depFile.empty())
    return kDone;
  auto fail = [&](const std::string &sentence) {
    errors << printable(sentence) << "\n";
    return int(kWrongUse);
  };
  files.insert(request.model);
  files.insert(request.customOps.begin(), request.customOps.end());
  files.insert(request.calibrate.begin(), request.calibrate.end());
  for (const std::string &path : {request.tuningDb, request.refit, request.configFile})
    if (!path.empty())
      files.insert(path);
  files.insert(request.output); // to be looked at with the others
  for (const std::string &path : files)
    if (path.find('\n') != std::string::npos)
      return fail(path + ": error: a depfile has no way to name a path with a line break; rename the file");
  files.erase(request.output);
  Error failed = writeOutputFile(request.depFile, [&](raw_ostream &os) {
    printPath(os, request.output);
    os << ':';
    for (const std::string &path : files)
      // Standard input is none, and a tuning database need not be there yet.
      if (sys::fs::is_regular_file(path) && !StringRef(path).starts_with("/dev/")) {
        os << " \\\n  ";
        printPath(os, path);
      }
    os << '\n';
  });
  return failed ? fail(toString(std::move(failed))) : int(kDone);
}
