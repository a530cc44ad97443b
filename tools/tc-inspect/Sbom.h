//===- Sbom.h - what an artifact was made of, for programs that keep such lists -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TOOLS_TC_INSPECT_SBOM_H
#define TC_TOOLS_TC_INSPECT_SBOM_H

#include "tc/Artifact/Reader.h"

#include <nlohmann/json.hpp>

namespace tc::inspect {

/// A software bill of materials as CycloneDX 1.6 JSON: the artifact, the compiler and LLVM, the model, the weights, the
/// options, and what runs need. It holds no time and no number of its own, so that equal artifacts have equal ones.
llvm::Expected<nlohmann::ordered_json> makeSbom(const artifact::Reader &reader);

} // namespace tc::inspect

#endif // TC_TOOLS_TC_INSPECT_SBOM_H
