// Tuning for GPUs, with a driver without one, whose launches take a microsecond for each thread of a block: kernels of
// fewer threads win. What is found is kept in the database, which gives the same artifact where there is no GPU.
// REQUIRES: ptxas
// RUN: rm -rf %t && mkdir %t && cd %t && cp %s model.mlir
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=time=threads tc-compile model.mlir -o tuned.bin --target cuda --mode max-autotune --tuning-db db.json --logs tuning --explain > tuned.txt 2> tuned.log
// RUN: FileCheck %s --check-prefix=CANDIDATES < tuned.log
// RUN: FileCheck %s --check-prefix=EXPLAIN < tuned.txt
// RUN: FileCheck %s --check-prefix=DATABASE < db.json
// RUN: tc-compile model.mlir -o again.bin --target cuda --tuning-db db.json --logs tuning 2>&1 | FileCheck %s --check-prefix=RECORDED
// RUN: tc-compile model.mlir -o named.bin --target cuda --tuning-db db.json --tuning-machine fake-gpu-1p-781486d4 -q
// RUN: cmp again.bin named.bin

// The cost model's own choice is what the others are compared with. Of a product: other tiles, a longer ring, parts of K.
// CANDIDATES: tuning: measured mul+softmax: {{.*}} us, default [[DEFAULT:.*]] us: #kernel.gpu.mma<
// CANDIDATES: tuning: measured mul+softmax: {{.*}}#kernel.gpu.mma<{{.*}}splits = 2
// CANDIDATES: tuning: mul+softmax: measured: the default is the fastest of 8 schedules, [[DEFAULT]] us (sm_90a) at n = 128
// CANDIDATES: tuning: measured softmax: {{.*}} us, default {{.*}} us: #kernel.gpu.rows<block = 512, inRegisters = true>
// CANDIDATES: tuning: softmax: measured: {{.*}}: gpu.rows, block 128 instead of 256 at n = 128
// CANDIDATES: tuning: cosine: measured: {{.*}} (sm_90a): gpu.flat, block 128 instead of 256 at n = 128
// CANDIDATES: tuned.bin: 2 of 3 measured kernels got a faster schedule: {{.*}} % less; tuning took {{.*}} s
// EXPLAIN: measured: the default is the fastest of 8 schedules
// EXPLAIN: measured: {{[0-9.]+}} us instead of {{[0-9.]+}} us (sm_90a): gpu.rows, block 128 instead of 256 at n = 128
// DATABASE: "device": "cuda"
// RECORDED: tuning: softmax: recorded: {{[0-9.]+}} us instead of {{[0-9.]+}} us (sm_90a): gpu.rows, block 128 instead of 256

// The same without a compiler where the GPU is, and without a GPU where the compiler is.
// RUN: tc-compile model.mlir --tuning-candidates model.tune --target cuda --logs tuning -q
// RUN: tc-inspect model.tune | FileCheck %s --check-prefix=INSPECT
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=time=threads tc-run model.tune --tune there.json | FileCheck %s --check-prefix=THERE
// RUN: cmp there.json db.json
// INSPECT: model.tune: tuning candidates of model.mlir: {{[0-9]+}} schedules of 3 kernels for sm_80, sm_90a
// INSPECT: GPU  softmax: {{.*}} schedules at n = 128
// THERE: softmax: measured: {{.*}}: gpu.rows, block 128 instead of 256 at n = 128
// THERE: there.json: 2 of 3 measured kernels got a faster schedule: {{.*}}; tc-compile --tuning-db there.json --tuning-machine fake-gpu-1p-781486d4 takes them
// RUN: tc-compile model.mlir --tuning-candidates both.tune --target cpu,cuda --cpu x86-64-v3 -q
// RUN: env LD_LIBRARY_PATH=%fakecuda tc-run both.tune --tune both-there.json | FileCheck %s --check-prefix=BOTHTHERE
// BOTHTHERE: (sm_90a)
// BOTHTHERE: (x86-64-v3, {{[0-9]+}} threads)
// BOTHTHERE: --tuning-machine {{.*}}t-{{.*}},fake-gpu-1p-781486d4 takes them
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=devices=0 tc-run both.tune --tune cpu.json 2>&1 | FileCheck %s --check-prefix=NOTE
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=devices=0 not tc-run model.tune --tune none.json 2>&1 | FileCheck %s --check-prefix=NOGPU
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=sm=70 not tc-run model.tune --tune old.json 2>&1 | FileCheck %s --check-prefix=NOCHIP
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=lose=cuStreamSynchronize:40:700 not tc-run model.tune --tune lost.json 2>&1 | FileCheck %s --check-prefix=LOSTTHERE
// NOTE: both.tune: note: 3 kernels for GPUs are left alone, as this machine shows no NVIDIA GPU
// NOGPU: model.tune: error: the candidates are for GPUs, and this machine shows no NVIDIA GPU
// NOCHIP: model.tune: error: no kernel can be measured here: the file has no code for Fake GPU; write it with --gpu sm_70
// LOSTTHERE: not tuned: a kernel stopped the GPU: {{.*}}the GPU is lost to this process

// Without a GPU nothing can be measured; CPU kernels can.
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=devices=0 not tc-compile model.mlir -o none.bin --target cuda --mode max-autotune 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=devices=0 tc-compile model.mlir -o both.bin --target cpu,cuda --cpu x86-64-v3 --mode max-autotune --tuning-db both.json 2>&1 | FileCheck %s --check-prefix=BOTH
// NONE: model.mlir: error: --mode max-autotune measures GPU kernels on a GPU, and this machine shows no NVIDIA GPU; compile where one is, or take what was measured there: --tuning-db FILE.json without --mode
// BOTH: tc-compile: warning: --mode max-autotune measures GPU kernels on a GPU, and this machine shows no NVIDIA GPU; kernels for cuda get what --tuning-db has of them, and else the default schedules
// BOTH: both.bin: for cpu: {{.*}}; tuning took

// Code for another chip is not measured. A kernel that stops the GPU ends measuring, not compiling.
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=sm=70 not tc-compile model.mlir -o old.bin --target cuda --mode max-autotune 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: env LD_LIBRARY_PATH=%fakecuda FAKE_CUDA=lose=cuStreamSynchronize:40:700 tc-compile model.mlir -o lost.bin --target cuda --mode max-autotune --explain 2>&1 | FileCheck %s --check-prefix=LOST
// CHIP: model.mlir: error: --mode max-autotune: a kernel cannot be measured here: the artifact has no code for Fake GPU; add --gpu sm_70
// LOST: not tuned: a kernel stopped the GPU: {{.*}}the GPU is lost to this process
graph.func @main(%x: tensor<?x512xf16> {graph.name = "x", graph.dims = ["n", ""]}, %w: tensor<512x4096xf16> {graph.name = "w"})
    -> (tensor<?x4096xf16> {graph.name = "softmax"}, tensor<?x512xf16> {graph.name = "cosine"}) attributes {opsets = {ai.onnx = 20 : i64}} {
  %p = graph.node "ai.onnx":"MatMul" opset 20(%x, %w) : (tensor<?x512xf16>, tensor<512x4096xf16>) -> tensor<?x4096xf16> loc("mul")
  %s = graph.node "ai.onnx":"Softmax" opset 20(%p) {axis = -1 : si64} : (tensor<?x4096xf16>) -> tensor<?x4096xf16> loc("softmax")
  %e = graph.node "ai.onnx":"Cos" opset 20(%x) : (tensor<?x512xf16>) -> tensor<?x512xf16> loc("cosine")
  graph.yield %s, %e : tensor<?x4096xf16>, tensor<?x512xf16>
}
