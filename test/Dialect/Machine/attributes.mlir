// Machines print what is not the usual, and are read again.
// RUN: tc-opt %s | FileCheck %s
// RUN: tc-opt %s | tc-opt | FileCheck %s

// CHECK: test.machines = [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">,
// CHECK-SAME: #machine.cpu<name = "wide", cpu = "x86-64-v4", features = "+avx512vnni", vectorBits = 512, vectorRegisters = 32, masks = true, units = "vnni|bf16", l1Bytes = 32768, l2Bytes = 1048576, cores = 8>,
// CHECK-SAME: #machine.gpu<name = "sm_90a", multiprocessors = 132, sharedBytes = 233472, sharedBytesPerBlock = 232448, threads = 2048, l2Bytes = 52428800, gigabytesPerSecond = 3350, gigaflops = 66900, mmaGigaflops = 989000, mma = [#machine.mma<mma, f16, tf32>, #machine.mma<wgmma, bf16>]>,
// CHECK-SAME: #machine.gpu<name = "sm_80">]
module attributes {test.machines = [
  #machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3", vectorBits = 256>,
  #machine.cpu<name = "wide", cpu = "x86-64-v4", features = "+avx512vnni", vectorBits = 512, vectorRegisters = 32,
               masks = true, units = "vnni|bf16", l1Bytes = 32768, l2Bytes = 1048576, cores = 8>,
  #machine.gpu<name = "sm_90a", multiprocessors = 132, sharedBytes = 233472, sharedBytesPerBlock = 232448, threads = 2048,
               l2Bytes = 52428800, gigabytesPerSecond = 3350, gigaflops = 66900, mmaGigaflops = 989000,
               mma = [#machine.mma<mma, f16, tf32>, #machine.mma<wgmma, bf16>]>,
  #machine.gpu<name = "sm_80">]} {}
