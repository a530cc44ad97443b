//===- Programs.h - Artifacts made from the programs of this folder -------------------------------------*- C++ -*-===//
//
// The specs of the hand-written programs, for tests of the runtime, the artifact library and the tools.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TEST_UNIT_PROGRAMS_H
#define TC_TEST_UNIT_PROGRAMS_H

#include "tc/Artifact/Writer.h"

#include <fstream>
#include <sstream>
#include <string>

namespace tc::test {

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string programElf(const std::string &name) {
  return readFile(std::string(TC_TEST_PROGRAMS) + "/" + name + ".so");
}

/// x f32 (n, 4), b f32 (4) with default (1, 2, 3, 4); y = 2x + b, p = positive elements of y.
inline artifact::ArtifactSpec basicSpec() {
  using namespace artifact;
  static const float bias[4] = {1, 2, 3, 4}, factor = 2;
  ArtifactSpec spec;
  spec.functions.push_back({"main", {}, {}, {}, {}});
  spec.manifest = "{\"producer\": \"test\"}";
  spec.functions[0].symbols.push_back({"n", 0, 64, 1});
  spec.functions[0].symbols.push_back({"n4", 0, 256, 1});
  uint64_t biasOffset = spec.addWeights(Segment::bytes({reinterpret_cast<const char *>(bias), sizeof bias}));
  spec.addWeights(Segment::bytes({reinterpret_cast<const char *>(&factor), sizeof factor}));
  spec.functions[0].inputs.push_back({"x", TCRT_DTYPE_F32, {Dim::symbol(0), Dim::fixed(4)}});
  spec.functions[0].inputs.push_back({"b", TCRT_DTYPE_F32, {Dim::fixed(4)}, TCRT_VALUE_FLAG_DEFAULT, biasOffset});
  spec.functions[0].outputs.push_back({"y", TCRT_DTYPE_F32, {Dim::symbol(0), Dim::fixed(4)}});
  spec.functions[0].outputs.push_back({"p", TCRT_DTYPE_F32, {Dim::expr()}});
  spec.functions[0].kernels.push_back({"k_axpb", "Mul#0+Add#1", 8, 32});
  spec.variants.push_back({"future", TCRT_DEVICE_CPU, UINT64_C(1) << 63, programElf("basic")});
  spec.variants.push_back({"x86-64-v2", TCRT_DEVICE_CPU, TCRT_CPU_SSE42, programElf("basic")});
  return spec;
}

/// Strings, sequences and optionals; calls the function "twice" of the caller.
inline artifact::ArtifactSpec valuesSpec() {
  using namespace artifact;
  ArtifactSpec spec;
  spec.functions.push_back({"main", {}, {}, {}, {}});
  spec.functions[0].symbols.push_back({"n", 0, 1 << 20, 1});
  spec.functions[0].inputs.push_back({"text", TCRT_DTYPE_STRING, {Dim::symbol(0)}});
  spec.functions[0].inputs.push_back({"parts", TCRT_DTYPE_F32, {}, 0, 0, TCRT_VALUE_SEQUENCE});
  spec.functions[0].inputs.push_back({"maybe", TCRT_DTYPE_F32, {}, 0, 0, TCRT_VALUE_OPTIONAL});
  spec.functions[0].outputs.push_back({"twice", TCRT_DTYPE_STRING, {Dim::symbol(0)}});
  spec.functions[0].outputs.push_back({"more", TCRT_DTYPE_F32, {}, 0, 0, TCRT_VALUE_SEQUENCE});
  spec.functions[0].outputs.push_back({"same", TCRT_DTYPE_F32, {}, 0, 0, TCRT_VALUE_OPTIONAL});
  spec.hostFunctions = {"twice", "seq_insert"};
  spec.strings = {"", "yes"};
  spec.variants.push_back({"any", TCRT_DEVICE_CPU, 0, programElf("values")});
  return spec;
}

inline artifact::ArtifactSpec stressSpec() {
  using namespace artifact;
  ArtifactSpec spec;
  spec.functions.push_back({"main", {}, {}, {}, {}});
  spec.functions[0].inputs.push_back({"tasks", TCRT_DTYPE_I64, {Dim::fixed(1)}});
  spec.functions[0].outputs.push_back({"problems", TCRT_DTYPE_I64, {Dim::fixed(1)}});
  spec.functions[0].kernels.push_back({"k_mark", "Mark", 0, 0});
  spec.variants.push_back({"any", TCRT_DEVICE_CPU, 0, programElf("stress")});
  return spec;
}

/// Two functions and two states, see programs.c.
inline artifact::ArtifactSpec statesSpec() {
  using namespace artifact;
  static const float sum[2] = {10, 20};
  ArtifactSpec spec;
  uint64_t offset = spec.addWeights(Segment::bytes({reinterpret_cast<const char *>(sum), sizeof sum}));
  spec.states.push_back({"sum", TCRT_DTYPE_F32, {2}, offset});
  spec.states.push_back({"runs", TCRT_DTYPE_I64, {}, std::nullopt});
  Function add, look;
  add.name = "add";
  add.inputs.push_back({"x", TCRT_DTYPE_F32, {Dim::fixed(2)}});
  add.outputs.push_back({"y", TCRT_DTYPE_F32, {Dim::fixed(2)}});
  add.kernels.push_back({"k_add", "Add#0", 2, 24});
  look.name = "look";
  look.symbols.push_back({"n", 1, 1 << 20, 1});
  look.inputs.push_back({"x", TCRT_DTYPE_F32, {Dim::symbol(0)}});
  look.outputs.push_back({"runs", TCRT_DTYPE_I64, {}});
  look.outputs.push_back({"scaled", TCRT_DTYPE_F32, {Dim::symbol(0), Dim::fixed(2)}});
  look.kernels.push_back({"k_scale", "Mul#0", 0, 0});
  look.entries = {{{{0, 4}}}};
  spec.functions = {add, look};
  spec.variants.push_back({"any", TCRT_DEVICE_CPU, 0, programElf("states")});
  return spec;
}

/// A GPU variant: x f32 (n); y = 3x, z = the first half of y.
inline artifact::ArtifactSpec deviceSpec() {
  using namespace artifact;
  static const char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .u64 factor, .param .u64 n)
{
  .reg .pred %p;
  .reg .f32 %f<3>;
  .reg .b32 %r<4>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [y];
  ld.param.u64 %d2, [factor];
  ld.param.u64 %d3, [n];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  cvt.u64.u32 %d4, %r3;
  setp.ge.u64 %p, %d4, %d3;
  @%p bra done;
  shl.b64 %d5, %d4, 2;
  add.u64 %d6, %d0, %d5;
  add.u64 %d7, %d1, %d5;
  ld.global.f32 %f0, [%d6];
  ld.global.f32 %f1, [%d2];
  mul.f32 %f2, %f0, %f1;
  st.global.f32 [%d7], %f2;
done:
  ret;
}
)";
  static const float factor = 3;
  ArtifactSpec spec;
  spec.functions.push_back({"main", {}, {}, {}, {}});
  spec.functions[0].symbols.push_back({"n", 0, 1 << 20, 1});
  spec.addWeights(Segment::bytes("unused"));
  spec.addWeights(Segment::bytes({reinterpret_cast<const char *>(&factor), sizeof factor}));
  spec.functions[0].inputs.push_back({"x", TCRT_DTYPE_F32, {Dim::symbol(0)}});
  spec.functions[0].outputs.push_back({"y", TCRT_DTYPE_F32, {Dim::symbol(0)}});
  spec.functions[0].outputs.push_back({"z", TCRT_DTYPE_F32, {Dim::expr()}});
  spec.functions[0].kernels.push_back({"scale", "Mul#0", 1, 8});
  spec.variants.push_back({"cuda", TCRT_DEVICE_CUDA, 0, programElf("device")});
  spec.variants[0].deviceKernels.push_back({"scale", 128, 0});
  spec.variants[0].ptx.push_back({700, ptx});
  return spec;
}

/// A GPU variant of several launches, see programs.c.
inline artifact::ArtifactSpec chainSpec() {
  artifact::ArtifactSpec spec = deviceSpec();
  spec.functions[0].outputs.pop_back();
  spec.variants[0].elf = programElf("chain");
  return spec;
}

} // namespace tc::test

#endif // TC_TEST_UNIT_PROGRAMS_H
