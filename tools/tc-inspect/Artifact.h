//===- Artifact.h - what tc-inspect shows of an artifact ----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TOOLS_TC_INSPECT_ARTIFACT_H
#define TC_TOOLS_TC_INSPECT_ARTIFACT_H

#include "tc/Artifact/Reader.h"

#include <nlohmann/json.hpp>

namespace tc::inspect {

/// All that tc-inspect tells of an artifact; the artifacts of other devices that stand inside are under "artifacts".
/// Members of the manifest are anybody's JSON. An error is one of a part that does not parse.
llvm::Expected<nlohmann::ordered_json> describeArtifact(const artifact::Reader &reader, bool verifyAll);

/// The same for people, on standard output.
void printArtifact(const nlohmann::ordered_json &artifact, bool allKernels);

/// What its runs are refused for.
void printGuards(const nlohmann::ordered_json &json);

} // namespace tc::inspect

#endif // TC_TOOLS_TC_INSPECT_ARTIFACT_H
