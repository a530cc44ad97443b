// Proves: launches of a group have argument words of their own and are handed to the runtime in one call, in steps too; a program
// runs with a table that ends behind the last call that it makes.
// RUN: tc-opt %s -split-input-file --tc-plan-memory --tc-convert-host-to-llvm | FileCheck %s

#one = affine_map<() -> (1)>

// CHECK-LABEL: llvm.func @tc_entry
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(248 : i32)
// CHECK: llvm.icmp "ult" %{{.*}}, %[[BYTES]] : i32
// CHECK-LABEL: llvm.func hidden @tc_run
// One stack area for the words of both, one for the two records.
// CHECK: llvm.mlir.addressof @a
// CHECK-NOT: llvm.call
// CHECK: llvm.mlir.addressof @b
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr) -> ()
// CHECK-NOT: llvm.call
// CHECK: llvm.return
module {
  func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {prim.symbols = []} {
    %a = host.launch @a(%x) symbols [] tasks #one grain #one {group = 0} : (tensor<8xf32>) -> tensor<8xf32>
    %b = host.launch @b(%x) symbols [] tasks #one grain #one {group = 0} : (tensor<8xf32>) -> tensor<8xf32>
    return %a, %b : tensor<8xf32>, tensor<8xf32>
  }
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @a(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @b(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}

// -----

#one = affine_map<() -> (1)>

// CHECK-LABEL: llvm.func @tc_entry
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(240 : i32)
// CHECK: llvm.icmp "ult" %{{.*}}, %[[BYTES]] : i32
// CHECK-LABEL: llvm.func hidden @tc_run
// CHECK: llvm.mlir.addressof @a
// CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
// CHECK: llvm.mlir.addressof @b
// CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
module {
  func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {prim.symbols = []} {
    %a = host.launch @a(%x) symbols [] tasks #one grain #one : (tensor<8xf32>) -> tensor<8xf32>
    %b = host.launch @b(%x) symbols [] tasks #one grain #one : (tensor<8xf32>) -> tensor<8xf32>
    return %a, %b : tensor<8xf32>, tensor<8xf32>
  }
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @a(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @b(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}

// -----

// The second one's scratch lies behind the first one's, for each worker of it.

#one = affine_map<() -> (1)>
#small = affine_map<() -> (64)>
#large = affine_map<() -> (1088)>

// CHECK-LABEL: llvm.func hidden @tc_run
// CHECK: llvm.mlir.addressof @a
// CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[72]
// CHECK: %[[WORKERS:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i64
// CHECK: %[[SMALL:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: %[[BEFORE:.*]] = llvm.mul %[[SMALL]], %[[WORKERS]]
// CHECK: llvm.getelementptr %{{.*}}[%[[BEFORE]]]
// CHECK: llvm.mlir.addressof @b
module {
  func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {prim.symbols = []} {
    %a = host.launch @a(%x) symbols [] tasks #one grain #one scratch #small {group = 0} : (tensor<8xf32>) -> tensor<8xf32>
    %b = host.launch @b(%x) symbols [] tasks #one grain #one scratch #large {group = 0} : (tensor<8xf32>) -> tensor<8xf32>
    return %a, %b : tensor<8xf32>, tensor<8xf32>
  }
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @a(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @b(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}

// -----

// A launch in steps is a record too.

#one = affine_map<() -> (1)>
#steps = affine_map<()[s0] -> (s0 + 1)>
!n = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>

// CHECK-LABEL: llvm.func @tc_entry
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(256 : i32)
// CHECK: llvm.icmp "ult" %{{.*}}, %[[BYTES]] : i32
// CHECK-LABEL: llvm.func hidden @tc_run
// CHECK: llvm.mlir.addressof @a
// CHECK: %[[COUNT:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[STEPS:.*]] = llvm.add
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[COUNT]], %{{.*}}, %[[STEPS]]) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i64) -> ()
// CHECK-NOT: llvm.call
// CHECK: llvm.return
module {
  func.func @main(%x: !n) -> (!n, !n) attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>]} {
    %a:2 = host.launch @a(%x) symbols [0] tasks #one grain #one steps #steps : (!n) -> (!n, !n)
    return %a#0, %a#1 : !n, !n
  }
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @a(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @b(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}

// -----

// A group of them.

#one = affine_map<() -> (1)>
#steps = affine_map<()[s0] -> (s0 + 1)>
!n = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>

// CHECK-LABEL: llvm.func @tc_entry
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(256 : i32)
// CHECK: llvm.icmp "ult" %{{.*}}, %[[BYTES]] : i32
// CHECK-LABEL: llvm.func hidden @tc_run
// CHECK: llvm.mlir.addressof @a
// CHECK-NOT: llvm.call
// CHECK: llvm.mlir.addressof @b
// CHECK: %[[COUNT:.*]] = llvm.mlir.constant(2 : i32)
// CHECK: %[[STEPS:.*]] = llvm.add
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[COUNT]], %{{.*}}, %[[STEPS]]) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, i64) -> ()
// CHECK-NOT: llvm.call
// CHECK: llvm.return
module {
  func.func @main(%x: !n) -> (!n, !n) attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>]} {
    %a = host.launch @a(%x) symbols [0] tasks #one grain #one steps #steps {group = 0} : (!n) -> !n
    %b = host.launch @b(%x) symbols [0] tasks #one grain #one steps #steps {group = 0} : (!n) -> !n
    return %a, %b : !n, !n
  }
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @a(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @b(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}
