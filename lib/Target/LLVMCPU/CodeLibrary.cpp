//===- CodeLibrary.cpp - functions that compiled code may call ----------------------------------------------------===//
//
// Artifacts are freestanding. LLVM may turn loops and intrinsics into calls of the C library and of compiler-rt, and
// the CPU code generator calls tc_<function>_f64 where it has no inlined form; all of these are defined here, in LLVM
// IR:
//
//   memcpy, memmove, memset, memcmp, bcmp        string instructions, and loops that LLVM must not replace by a call
//   f16, bf16 conversions, 128-bit divisions     integer arithmetic; results are correctly rounded
//   f64 mathematics                              the runtime's import table
//   f32 mathematics                              in f64, rounded once more; only for what has no vector form
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Internal.h"

#include "tcrt/artifact_abi.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace {

constexpr const char *kBase = R"ll(
@tc_imports = external hidden global ptr

; Parts of rows are short: to start a string instruction takes as long as to copy 200 bytes. Vectors may overlap those
; before. The last one is read first: what is copied to may lie before what is copied, and overlap it.
define hidden ptr @memcpy(ptr %to, ptr %from, i64 %size) #0 {
entry:
  %is.long = icmp ugt i64 %size, 2048
  br i1 %is.long, label %string, label %short
string:
  call void asm sideeffect "rep movsb", "{di},{si},{cx},~{di},~{si},~{cx},~{memory}"(ptr %to, ptr %from, i64 %size)
  ret ptr %to
short:
  %has.32 = icmp uge i64 %size, 32
  br i1 %has.32, label %by.32, label %below.32
by.32:
  %last = sub i64 %size, 32
  %from.last = getelementptr i8, ptr %from, i64 %last
  %to.last = getelementptr i8, ptr %to, i64 %last
  %tail = load <32 x i8>, ptr %from.last, align 1
  br label %loop
loop:
  %i = phi i64 [ 0, %by.32 ], [ %next, %copy ]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %copy, label %finish
copy:
  %pf = getelementptr i8, ptr %from, i64 %i
  %pt = getelementptr i8, ptr %to, i64 %i
  %v = load <32 x i8>, ptr %pf, align 1
  store <32 x i8> %v, ptr %pt, align 1
  %next = add i64 %i, 32
  br label %loop
finish:
  store <32 x i8> %tail, ptr %to.last, align 1
  ret ptr %to
below.32:
  %has.8 = icmp uge i64 %size, 8
  br i1 %has.8, label %by.8, label %below.8
by.8:
  %last.8 = sub i64 %size, 8
  %from.8 = getelementptr i8, ptr %from, i64 %last.8
  %to.8 = getelementptr i8, ptr %to, i64 %last.8
  %tail.8 = load i64, ptr %from.8, align 1
  br label %loop.8
loop.8:
  %k = phi i64 [ 0, %by.8 ], [ %k.next, %copy.8 ]
  %more.8 = icmp ult i64 %k, %last.8
  br i1 %more.8, label %copy.8, label %finish.8
copy.8:
  %kf = getelementptr i8, ptr %from, i64 %k
  %kt = getelementptr i8, ptr %to, i64 %k
  %w = load i64, ptr %kf, align 1
  store i64 %w, ptr %kt, align 1
  %k.next = add i64 %k, 8
  br label %loop.8
finish.8:
  store i64 %tail.8, ptr %to.8, align 1
  ret ptr %to
below.8:
  %j = phi i64 [ 0, %below.32 ], [ %j.next, %byte ]
  %left = icmp ult i64 %j, %size
  br i1 %left, label %byte, label %done
byte:
  %bf = getelementptr i8, ptr %from, i64 %j
  %bt = getelementptr i8, ptr %to, i64 %j
  %b = load i8, ptr %bf
  store i8 %b, ptr %bt
  %j.next = add i64 %j, 1
  br label %below.8
done:
  ret ptr %to
}
define hidden ptr @memset(ptr %to, i32 %value, i64 %size) #0 {
entry:
  %byte = trunc i32 %value to i8
  %is.long = icmp ugt i64 %size, 2048
  %is.short = icmp ult i64 %size, 32
  %is.string = or i1 %is.long, %is.short
  br i1 %is.string, label %string, label %vectors
string:
  call void asm sideeffect "rep stosb", "{di},{ax},{cx},~{di},~{cx},~{memory}"(ptr %to, i8 %byte, i64 %size)
  ret ptr %to
vectors:
  %one = insertelement <32 x i8> poison, i8 %byte, i64 0
  %all = shufflevector <32 x i8> %one, <32 x i8> poison, <32 x i32> zeroinitializer
  %last = sub i64 %size, 32
  br label %loop
loop:
  %i = phi i64 [ 0, %vectors ], [ %next, %fill ]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %fill, label %finish
fill:
  %pt = getelementptr i8, ptr %to, i64 %i
  store <32 x i8> %all, ptr %pt, align 1
  %next = add i64 %i, 32
  br label %loop
finish:
  %to.last = getelementptr i8, ptr %to, i64 %last
  store <32 x i8> %all, ptr %to.last, align 1
  ret ptr %to
}
define hidden ptr @memmove(ptr %to, ptr %from, i64 %size) #0 {
  %a = ptrtoint ptr %to to i64
  %b = ptrtoint ptr %from to i64
  %distance = sub i64 %a, %b
  %forward = icmp uge i64 %distance, %size
  br i1 %forward, label %up, label %down
up:
  %copied = call ptr @memcpy(ptr %to, ptr %from, i64 %size)
  ret ptr %to
down:
  %last = sub i64 %size, 1
  %to.last = getelementptr i8, ptr %to, i64 %last
  %from.last = getelementptr i8, ptr %from, i64 %last
  call void asm sideeffect "std\0Arep movsb\0Acld", "{di},{si},{cx},~{di},~{si},~{cx},~{memory},~{dirflag}"(ptr %to.last, ptr %from.last, i64 %size)
  ret ptr %to
}
define hidden i32 @memcmp(ptr %x, ptr %y, i64 %size) #0 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %same ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %body, label %equal
body:
  %px = getelementptr i8, ptr %x, i64 %i
  %py = getelementptr i8, ptr %y, i64 %i
  %bx = load volatile i8, ptr %px
  %by = load volatile i8, ptr %py
  %differs = icmp ne i8 %bx, %by
  br i1 %differs, label %different, label %same
same:
  %i.next = add i64 %i, 1
  br label %loop
different:
  %wx = zext i8 %bx to i32
  %wy = zext i8 %by to i32
  %difference = sub i32 %wx, %wy
  ret i32 %difference
equal:
  ret i32 0
}
define hidden i32 @bcmp(ptr %x, ptr %y, i64 %size) #0 {
  %r = call i32 @memcmp(ptr %x, ptr %y, i64 %size)
  ret i32 %r
}

; To nearest, ties to even; a NaN stays a quiet NaN.
define hidden bfloat @__truncsfbf2(float %x) #0 {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %sum = add i32 %bits, %bias
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, 0.0
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %chosen to i16
  %r = bitcast i16 %short to bfloat
  ret bfloat %r
}
; f64 to f32 rounded to odd, so that rounding once more to fewer bits gives the correctly rounded result.
define hidden float @tc_round_to_odd(double %x) #0 {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %abs.x = call double @llvm.fabs.f64(double %x)
  %abs.back = call double @llvm.fabs.f64(double %back)
  %away = fcmp ogt double %abs.back, %abs.x
  %bits = bitcast float %near to i32
  %less = sub i32 %bits, 1
  %truncated = select i1 %away, i32 %less, i32 %bits
  %odd = or i32 %truncated, 1
  %chosen = select i1 %inexact, i32 %odd, i32 %bits
  %r = bitcast i32 %chosen to float
  ret float %r
}
define hidden bfloat @__truncdfbf2(double %x) #0 {
  %f = call float @tc_round_to_odd(double %x)
  %r = call bfloat @__truncsfbf2(float %f)
  ret bfloat %r
}
define hidden half @__truncdfhf2(double %x) #0 {
  %f = call float @tc_round_to_odd(double %x)
  %r = fptrunc float %f to half
  ret half %r
}
define hidden half @__truncsfhf2(float %x) #0 {
  %r = fptrunc float %x to half
  ret half %r
}
define hidden float @__extendhfsf2(half %x) #0 {
  %r = fpext half %x to float
  ret float %r
}
; Halves away from zero.
define hidden double @round(double %x) #0 {
  %half = call double @llvm.copysign.f64(double 0x3FDFFFFFFFFFFFFF, double %x)
  %sum = fadd double %x, %half
  %r = call double @llvm.trunc.f64(double %sum)
  ret double %r
}
define hidden float @roundf(float %x) #0 {
  %half = call float @llvm.copysign.f32(float 0x3FDFFFFFE0000000, float %x)
  %sum = fadd float %x, %half
  %r = call float @llvm.trunc.f32(float %sum)
  ret float %r
}

define hidden void @tc_udivrem(i128 %x, i128 %y, ptr %quotient, ptr %rest) #0 {
entry:
  br label %loop
loop:
  %i = phi i32 [ 127, %entry ], [ %i.next, %loop ]
  %q = phi i128 [ 0, %entry ], [ %q.next, %loop ]
  %r = phi i128 [ 0, %entry ], [ %r.next, %loop ]
  %shift = zext i32 %i to i128
  %moved = lshr i128 %x, %shift
  %bit = and i128 %moved, 1
  %top = lshr i128 %r, 127
  %carry = icmp ne i128 %top, 0
  %r.twice = shl i128 %r, 1
  %r.in = or i128 %r.twice, %bit
  %enough = icmp uge i128 %r.in, %y
  %take = or i1 %carry, %enough
  %r.less = sub i128 %r.in, %y
  %r.next = select i1 %take, i128 %r.less, i128 %r.in
  %q.twice = shl i128 %q, 1
  %digit = zext i1 %take to i128
  %q.next = or i128 %q.twice, %digit
  %i.next = sub i32 %i, 1
  %done = icmp eq i32 %i, 0
  br i1 %done, label %exit, label %loop
exit:
  store i128 %q.next, ptr %quotient
  store i128 %r.next, ptr %rest
  ret void
}
define hidden i128 @__udivti3(i128 %x, i128 %y) #0 {
  %q = alloca i128
  %r = alloca i128
  call void @tc_udivrem(i128 %x, i128 %y, ptr %q, ptr %r)
  %v = load i128, ptr %q
  ret i128 %v
}
define hidden i128 @__umodti3(i128 %x, i128 %y) #0 {
  %q = alloca i128
  %r = alloca i128
  call void @tc_udivrem(i128 %x, i128 %y, ptr %q, ptr %r)
  %v = load i128, ptr %r
  ret i128 %v
}
define hidden i128 @__divti3(i128 %x, i128 %y) #0 {
  %ax = call i128 @llvm.abs.i128(i128 %x, i1 false)
  %ay = call i128 @llvm.abs.i128(i128 %y, i1 false)
  %q = call i128 @__udivti3(i128 %ax, i128 %ay)
  %signs = xor i128 %x, %y
  %negative = icmp slt i128 %signs, 0
  %minus = sub i128 0, %q
  %r = select i1 %negative, i128 %minus, i128 %q
  ret i128 %r
}
define hidden i128 @__modti3(i128 %x, i128 %y) #0 {
  %ax = call i128 @llvm.abs.i128(i128 %x, i1 false)
  %ay = call i128 @llvm.abs.i128(i128 %y, i1 false)
  %m = call i128 @__umodti3(i128 %ax, i128 %ay)
  %negative = icmp slt i128 %x, 0
  %minus = sub i128 0, %m
  %r = select i1 %negative, i128 %minus, i128 %m
  ret i128 %r
}

define hidden double @exp2(double %x) #0 {
  %r = call double @pow(double 2.0, double %x)
  ret double %r
}
define hidden double @exp10(double %x) #0 {
  %r = call double @pow(double 10.0, double %x)
  ret double %r
}
define hidden double @log2(double %x) #0 {
  %l = call double @log(double %x)
  %r = fmul double %l, 0x3FF71547652B82FE
  ret double %r
}
define hidden double @log10(double %x) #0 {
  %l = call double @log(double %x)
  %r = fmul double %l, 0x3FDBCB7B1526E50E
  ret double %r
}
define hidden void @sincos(double %x, ptr %s, ptr %c) #0 {
  %vs = call double @sin(double %x)
  %vc = call double @cos(double %x)
  store double %vs, ptr %s
  store double %vc, ptr %c
  ret void
}
define hidden void @sincosf(float %x, ptr %s, ptr %c) #0 {
  %vs = call float @sinf(float %x)
  %vc = call float @cosf(float %x)
  store float %vs, ptr %s
  store float %vc, ptr %c
  ret void
}

declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
declare float @llvm.copysign.f32(float, float)
declare double @llvm.trunc.f64(double)
declare float @llvm.trunc.f32(float)
declare i128 @llvm.abs.i128(i128, i1)
attributes #0 = { nounwind "no-builtins" }
)ll";

struct Import {
  const char *name;
  size_t offset;
  int arguments;
};
#define TC_IMPORT(name, arguments) {#name, offsetof(tcrt_imports_t, name##_f64), arguments}
constexpr Import kImports[] = {TC_IMPORT(exp, 1),   TC_IMPORT(log, 1),   TC_IMPORT(sin, 1),  TC_IMPORT(cos, 1),
                               TC_IMPORT(tan, 1),   TC_IMPORT(asin, 1),  TC_IMPORT(acos, 1), TC_IMPORT(atan, 1),
                               TC_IMPORT(sinh, 1),  TC_IMPORT(cosh, 1),  TC_IMPORT(tanh, 1), TC_IMPORT(asinh, 1),
                               TC_IMPORT(acosh, 1), TC_IMPORT(atanh, 1), TC_IMPORT(erf, 1),  TC_IMPORT(log1p, 1),
                               TC_IMPORT(expm1, 1), TC_IMPORT(cbrt, 1),  TC_IMPORT(pow, 2),  TC_IMPORT(fmod, 2),
                               TC_IMPORT(atan2, 2)};

/// `ret name(...) = callee(...)` for one type, converting through f64 for f32.
std::string forward(StringRef name, StringRef callee, int arguments, bool f32) {
  StringRef type = f32 ? "float" : "double";
  std::string text = formatv("define hidden {0} @{1}({0} %a{2}) #0 {{\n", type, name,
                             arguments == 2 ? formatv(", {0} %b", type).str() : std::string());
  std::string operands = "double %a", second = "double %b";
  if (f32) {
    text += "  %wa = fpext float %a to double\n";
    operands = "double %wa";
    second = "double %wb";
    if (arguments == 2)
      text += "  %wb = fpext float %b to double\n";
  }
  if (arguments == 2)
    operands += ", " + second;
  text += formatv("  %r = call double @{0}({1})\n", callee, operands);
  text += f32 ? "  %n = fptrunc double %r to float\n  ret float %n\n}\n" : "  ret double %r\n}\n";
  return text;
}

} // namespace

std::string tc::target::getCodeLibrary() {
  std::string text = kBase;
  for (const Import &import : kImports) {
    StringRef name = import.name;
    text += formatv("define hidden double @tc_{0}_f64(double %a{1}) #0 {{\n"
                    "  %table = load ptr, ptr @tc_imports\n"
                    "  %slot = getelementptr i8, ptr %table, i64 {2}\n"
                    "  %function = load ptr, ptr %slot\n"
                    "  %r = call double %function(double %a{1})\n  ret double %r\n}\n",
                    name, import.arguments == 2 ? ", double %b" : "", uint64_t(import.offset));
    std::string callee = ("tc_" + name + "_f64").str();
    text += forward(name, callee, import.arguments, /*f32=*/false);
    text += forward((name + "f").str(), callee, import.arguments, /*f32=*/true);
    text += forward(("tc_" + name + "_f32").str(), callee, import.arguments, /*f32=*/true);
  }
  for (const char *name : {"exp2", "exp10", "log2", "log10"})
    text += forward((Twine(name) + "f").str(), name, 1, /*f32=*/true);
  return text;
}

bool tc::target::isInCodeLibrary(StringRef library, StringRef name) {
  // Calls carry the same mark.
  std::string mark = ("@" + name + "(").str();
  for (size_t at = library.find(mark); at != StringRef::npos; at = library.find(mark, at + 1))
    if (library.substr(library.rfind('\n', at) + 1).starts_with("define "))
      return true;
  return false;
}
