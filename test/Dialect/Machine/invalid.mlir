// RUN: tc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{a CPU has a name, and one that LLVM knows as cpu}}
module attributes {test.machine = #machine.cpu<name = "", cpu = "x86-64-v3">} {}

// -----
// expected-error @below {{vectorBits is 128, 256 or 512, not 384}}
module attributes {test.machine = #machine.cpu<name = "a", cpu = "x86-64-v3", vectorBits = 384>} {}

// -----
// expected-error @below {{vectorRegisters is 16 or 32, not 8}}
module attributes {test.machine = #machine.cpu<name = "a", cpu = "x86-64-v3", vectorRegisters = 8>} {}

// -----
// expected-error @below {{vectors of 512 bits come with masks and 32 registers}}
module attributes {test.machine = #machine.cpu<name = "a", cpu = "x86-64-v4", vectorBits = 512, vectorRegisters = 32>} {}

// -----
// expected-error @below {{units vnni need vectors of 512 bits}}
module attributes {test.machine = #machine.cpu<name = "a", cpu = "x86-64-v3", units = vnni>} {}

// -----
// expected-error @below {{l2Bytes is at least 0, not -1}}
module attributes {test.machine = #machine.cpu<name = "a", cpu = "x86-64-v3", l2Bytes = -1>} {}

// -----
// expected-error @below {{a cache of 1024 bytes lies behind one of 2048}}
module attributes {test.machine = #machine.cpu<name = "a", cpu = "x86-64-v3", l1Bytes = 2048, l3Bytes = 1024>} {}

// -----
// expected-error @below {{expected one of [none, vnni, bf16, amx_int8, amx_bf16]}}
// expected-error @below {{failed to parse Machine_CpuAttr parameter 'units'}}
module attributes {test.machine = #machine.cpu<name = "a", cpu = "x86-64-v3", units = sse>} {}

// -----
// expected-error @below {{"gfx90a" is no name of a GPU; expected for instance sm_90}}
module attributes {test.machine = #machine.gpu<name = "gfx90a">} {}

// -----
// expected-error @below {{a block gets 2048 bytes of shared memory of 1024}}
module attributes {test.machine = #machine.gpu<name = "sm_90", sharedBytes = 1024, sharedBytesPerBlock = 2048>} {}

// -----
// expected-error @below {{a block has 1024 threads of 512}}
module attributes {test.machine = #machine.gpu<name = "sm_90", threads = 512>} {}

// -----
// expected-error @below {{threads come in warps of 32}}
module attributes {test.machine = #machine.gpu<name = "sm_90", threads = 1040>} {}

// -----
// expected-error @below {{multiprocessors is at least 0, not -1}}
module attributes {test.machine = #machine.gpu<name = "sm_90", multiprocessors = -1>} {}

// -----
// expected-error @below {{mma has wgmma twice}}
module attributes {test.machine = #machine.gpu<name = "sm_90", mma = [#machine.mma<wgmma, f16>, #machine.mma<wgmma, bf16>]>} {}

// -----
// expected-error @below {{wgmma has 'f16' twice}}
module attributes {test.machine = #machine.mma<wgmma, f16, f16>} {}

// -----
// expected-error @below {{mma holds #machine.mma, not "wgmma"}}
module attributes {test.machine = #machine.gpu<name = "sm_90", mma = ["wgmma"]>} {}
