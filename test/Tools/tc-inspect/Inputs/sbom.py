# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check bills of materials by what the schema of CycloneDX 1.6 requires (bom-1.6.schema.json), and by the files.

usage: sbom.py BOM ARTIFACT MODEL WEIGHTS|-
"""
import hashlib
import json
import re
import sys

# The enumeration of component types.
TYPES = {
    "application", "framework", "library", "container", "platform", "operating-system", "device", "device-driver",
    "firmware", "file", "machine-learning-model", "data", "cryptographic-asset",
}  # fmt: skip
COMPONENT = {"type", "bom-ref", "name", "version", "description", "scope", "hashes", "properties"}


def check_component(component, refs):
    assert component["type"] in TYPES and component["name"], component
    assert set(component) <= COMPONENT, set(component) - COMPONENT
    assert all(isinstance(component.get(key, ""), str) for key in ("bom-ref", "name", "version", "description"))
    assert component.get("scope", "required") in ("required", "optional", "excluded")
    for entry in component.get("hashes", []):
        assert set(entry) == {"alg", "content"} and entry["alg"] == "SHA-256", entry
        assert re.fullmatch("[a-f0-9]{64}", entry["content"]), entry
    for entry in component.get("properties", []):
        assert set(entry) == {"name", "value"} and all(isinstance(value, str) for value in entry.values()), entry
        assert entry["name"].startswith("tc:"), entry
    if "bom-ref" in component:
        assert component["bom-ref"] not in refs, component
        refs[component["bom-ref"]] = component


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


bom_path, artifact, model, weights = sys.argv[1:]
with open(bom_path) as f:
    bom = json.load(f)
assert set(bom) == {"$schema", "bomFormat", "specVersion", "version", "metadata", "components", "dependencies"}, set(bom)
assert bom["bomFormat"] == "CycloneDX" and bom["specVersion"] == "1.6" and bom["version"] == 1
refs = {}
check_component(bom["metadata"]["component"], refs)
for component in bom["components"] + bom["metadata"]["tools"]["components"]:
    check_component(component, refs)
for dependency in bom["dependencies"]:
    assert set(dependency) == {"ref", "dependsOn"} and dependency["ref"] in refs, dependency
    assert len(set(dependency["dependsOn"])) == len(dependency["dependsOn"]) and set(dependency["dependsOn"]) <= set(refs)
assert set(bom["dependencies"][0]["dependsOn"]) == set(refs) - {"artifact"}, refs
hash_of = lambda ref: refs[ref]["hashes"][0]["content"]
assert hash_of("artifact") == digest(artifact)
assert hash_of("model") == digest(model)
if weights != "-":
    with open(weights, "rb") as f:
        f.seek(4096)
        assert hash_of("weights") == hashlib.sha256(f.read()).hexdigest()
tools = {tool["name"]: tool.get("version") for tool in bom["metadata"]["tools"]["components"]}
assert set(tools) == {"tc", "LLVM"} and re.fullmatch(r"22\.\d+\.\d+", tools["LLVM"]), tools
