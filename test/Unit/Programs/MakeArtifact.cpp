//===- MakeArtifact.cpp - Writes the artifacts of the hand-written programs, for tests of the tools ---------------===//
//
// usage: tc-test-artifact basic|stress|device|chain FILE [MANIFEST]
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4)
    return 1;
  std::string program = argv[1];
  tc::artifact::ArtifactSpec spec = program == "stress"   ? tc::test::stressSpec()
                                    : program == "device" ? tc::test::deviceSpec()
                                    : program == "chain"  ? tc::test::chainSpec()
                                                          : tc::test::basicSpec();
  if (argc == 4)
    spec.manifest = tc::test::readFile(argv[3]);
  llvm::Error error = tc::artifact::writeArtifact(spec, argv[2]);
  if (!error)
    return 0;
  std::fprintf(stderr, "%s\n", llvm::toString(std::move(error)).c_str());
  return 1;
}
