// The machines that have a name, as variants carry them, and what the parser says of others.
// RUN: tc-opt %s --tc-lower-kernels=variants=x86-64-v3,x86-64-v4,x86-64-v4-vnni,x86-64-v4-bf16,x86-64-v4-amx | FileCheck %s --check-prefix=CPU
// RUN: tc-opt %s --tc-lower-kernels=variants=sm_80,sm_90a,sm_88 | FileCheck %s --check-prefix=GPU
// RUN: tc-opt %s --tc-lower-kernels | FileCheck %s --check-prefix=DEFAULT
// RUN: tc-opt %s --tc-lower-kernels=variants=native | FileCheck %s --check-prefix=NATIVE
// RUN: not tc-opt %s --tc-lower-kernels=variants=z80 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tc-opt %s --tc-lower-kernels=variants=sm_70 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not tc-opt %s --tc-lower-kernels=variants=sm_90,x86-64-v3 2>&1 | FileCheck %s --check-prefix=MIXED
// RUN: not tc-opt %s --tc-choose-schedule=device=abacus 2>&1 | FileCheck %s --check-prefix=TARGET

// CPU: host.variant @"x86-64-v3" machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3", l1Bytes = 32768, l2Bytes = 2097152, l3Bytes = 33554432>]
// CPU: host.variant @"x86-64-v4" machines [#machine.cpu<name = "x86-64-v4", cpu = "x86-64-v4", vectorBits = 512, vectorRegisters = 32, masks = true, l1Bytes
// CPU: host.variant @"x86-64-v4-vnni" machines [#machine.cpu<name = "x86-64-v4-vnni", cpu = "x86-64-v4", features = "+avx512vnni", {{.*}}, units = vnni, l1Bytes
// CPU: host.variant @"x86-64-v4-bf16" machines {{.*}}features = "+avx512vnni,+avx512bf16", {{.*}}units = "vnni|bf16", l1Bytes
// CPU: host.variant @"x86-64-v4-amx" machines {{.*}}features = "+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16", {{.*}}units = "vnni|bf16|amx_int8|amx_bf16", l1Bytes

// GPU-NOT: host.variant
// GPU: host.variant @cuda machines [#machine.gpu<name = "sm_80", multiprocessors = 108, sharedBytes = 167936, sharedBytesPerBlock = 166912, threads = 2048, l2Bytes = 41943040, gigabytesPerSecond = 2039, gigaflops = 19500, mmaGigaflops = 312000, mma = [#machine.mma<mma, f16, bf16, tf32, f64, i8>]>,
// GPU-SAME: #machine.gpu<name = "sm_90a", multiprocessors = 132, {{.*}} #machine.mma<wgmma, f16, bf16, tf32, i8, f8E4M3FN, f8E5M2>]>,
// A chip that is not listed is like the next older one.
// GPU-SAME: #machine.gpu<name = "sm_88", multiprocessors = 16,
// GPU-NOT: host.variant

// DEFAULT: host.variant @"x86-64-v3"
// DEFAULT: host.variant @"x86-64-v4"
// DEFAULT-NOT: host.variant

// NATIVE: host.variant @native machines [#machine.cpu<name = "native", cpu = "{{.+}}", features = "{{[+-].+}}"

// UNKNOWN: error: variant z80 is not known; known: x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-amx, native, and sm_80 or newer
// OLD: error: variant sm_70 is not known; known: {{.*}}, and sm_80 or newer
// MIXED: error: variants are CPUs or GPUs, not both
// TARGET: for the --device option: Cannot find option named 'abacus'!

module {}
