//===- Schedules.td - the schedules of regions, one attribute a strategy ---------------------------------*- tablegen -*-===//
//
// A strategy is a way to make code of a region. Its schedule is an attribute with every decision that its generator obeys, and a C++
// struct of the same values, Params, to make one from:
//
//   CpuScanAttr::Params params;
//   params.block = 64;
//   region.setScheduleAttr(params.get(context));        // #kernel.cpu.scan<block = 64>
//   cast<CpuScanAttr>(*region.getSchedule()).getBlock();
//
// What has its default is not printed. The verifier checks the ranges that stand here. To add a strategy: an entry here, its generator
// and a line in lib/Codegen, a test.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_KERNEL_IR_SCHEDULES
#define TC_DIALECT_KERNEL_IR_SCHEDULES

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/Interfaces.td"
include "tc/Dialect/Kernel/IR/KernelBase.td"

def Kernel_ScheduleInterface : AttrInterface<"ScheduleAttr"> {
  let cppNamespace = "::tc::kernel";
  let description = "The decisions about how a region becomes code.";
  let methods = [
    InterfaceMethod<"The attribute's name in the dialect, such as cpu.scan.", "::llvm::StringRef", "getStrategy">,
    InterfaceMethod<"Least number of tasks worth a thread.", "int64_t", "getGrain">,
    InterfaceMethod<"The same schedule with another grain.", "::tc::kernel::ScheduleAttr", "withGrain", (ins "int64_t":$grain)>,
    InterfaceMethod<"All parameters by name, in order; a flag is 0 or 1.",
                    "::llvm::SmallVector<std::pair<::llvm::StringRef, int64_t>>", "getNumbers">
  ];
}

def Kernel_RasterOrder : I32EnumAttr<"RasterOrder", "Which dim of a grid of tasks is the outer one", [
    I32EnumAttrCase<"RowsOuter", 0, "rows_outer">, I32EnumAttrCase<"ColumnsOuter", 1, "columns_outer">]> {
  let cppNamespace = "::tc::kernel";
  let genSpecializedAttr = 0;
}

//===--- what strategies are made of --------------------------------------------------------------------------------===//

class Kernel_Field<string fieldName, string cppType, string initialValue, AttrOrTypeParameter attrParameter, string verification = ""> {
  string name = fieldName;
  string type = cppType;
  string initial = initialValue;
  AttrOrTypeParameter parameter = attrParameter;
  string check = verification;
  string getter = "get" # !toupper(!substr(fieldName, 0, 1)) # !substr(fieldName, 1);
}
/// A number that is at least `least`.
class Number<string name, string description, int initial = 0, int least = 0>
    : Kernel_Field<name, "int64_t", !cast<string>(initial),
                   DefaultValuedParameter<"int64_t", !cast<string>(initial), description>,
                   "  if (" # name # " < " # !cast<string>(least) # ")\n    return emitError() << \"" # name
                   # " is at least " # !cast<string>(least) # ", not \" << " # name # ";\n">;
/// A multiple of `of` that is at least that.
class MultipleOf<string name, string description, int of>
    : Kernel_Field<name, "int64_t", !cast<string>(of),
                   DefaultValuedParameter<"int64_t", !cast<string>(of), description>,
                   "  if (" # name # " < " # !cast<string>(of) # " || " # name # " % " # !cast<string>(of) # " != 0)\n"
                   # "    return emitError() << \"" # name # " is a multiple of " # !cast<string>(of) # ", not \" << "
                   # name # ";\n">;
/// A power of 2 that is at least `least`; where that is 0, 0, too.
class PowerOfTwo<string name, string description, int initial, int least = 1>
    : Kernel_Field<name, "int64_t", !cast<string>(initial),
                   DefaultValuedParameter<"int64_t", !cast<string>(initial), description>,
                   "  if (" # name # " < " # !cast<string>(least) # " || (" # name # " & (" # name # " - 1)) != 0)\n"
                   # "    return emitError() << \"" # name # " is a power of 2 that is at least " # !cast<string>(least)
                   # ", not \" << " # name # ";\n">;
/// Yes or no; no, where it is not given.
class Flag<string name, string description>
    : Kernel_Field<name, "bool", "false", DefaultValuedParameter<"bool", "false", description>>;
/// The order of tasks.
class Raster<string initial>
    : Kernel_Field<"rasterOrder", "::tc::kernel::RasterOrder", "::tc::kernel::RasterOrder::" # initial,
                   DefaultValuedParameter<"::tc::kernel::RasterOrder", "::tc::kernel::RasterOrder::" # initial>>;
/// A number for each width of vector registers that kernels are made for: `rows` is rows256 and rows512, rowsFor(bits).
class PerWidth<string theName, string theDescription, int theInitial = 0> {
  string name = theName;
  string description = theDescription;
  int initial = theInitial;
}

class Kernel_Strategy<string cppName, string strategyName, list<Kernel_Field> own, list<PerWidth> perWidth = []>
    : AttrDef<Kernel_Dialect, cppName, [Kernel_ScheduleInterface]> {
  list<Kernel_Field> fields = !listconcat(
      own,
      !foreach(w, perWidth, Number<w.name # "256", w.description # ", with vectors of 256 bits", w.initial>),
      !foreach(w, perWidth, Number<w.name # "512", w.description # ", with vectors of 512 bits", w.initial>),
      [Number<"grain", "least number of tasks for a thread", 1, 1>]);
  /// Statements of the verifier about several parameters.
  string moreChecks = "";
  let mnemonic = strategyName;
  let parameters = !dag(ins, !foreach(f, fields, f.parameter), !foreach(f, fields, f.name));
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration =
      "/// The values, to make a schedule of.\n"
      # "struct Params {\n"
      # !interleave(!foreach(f, fields, "  " # f.type # " " # f.name # " = " # f.initial # ";\n"), "")
      # !interleave(!foreach(w, perWidth,
          "  int64_t &" # w.name # "For(int64_t vectorBits) { return vectorBits == 512 ? " # w.name # "512 : " # w.name # "256; }\n"), "")
      # "  " # cppName # "Attr get(::mlir::MLIRContext *context) const;\n"
      # "};\n"
      # "Params getParams() const;\n"
      # !interleave(!foreach(w, perWidth,
          "int64_t " # w.name # "For(int64_t vectorBits) const { return getParams()." # w.name # "For(vectorBits); }\n"), "")
      # "static constexpr ::llvm::StringLiteral strategy = \"" # strategyName # "\";\n"
      # "::llvm::StringRef getStrategy() const { return strategy; }\n"
      # "::tc::kernel::ScheduleAttr withGrain(int64_t grain) const;\n"
      # "::llvm::SmallVector<std::pair<::llvm::StringRef, int64_t>> getNumbers() const;\n";
  let extraClassDefinition =
      "::tc::kernel::" # cppName # "Attr $cppClass::Params::get(::mlir::MLIRContext *context) const {\n"
      # "  return $cppClass::get(context, " # !interleave(!foreach(f, fields, f.name), ", ") # ");\n}\n"
      # "$cppClass::Params $cppClass::getParams() const {\n  Params params;\n"
      # !interleave(!foreach(f, fields, "  params." # f.name # " = " # f.getter # "();\n"), "")
      # "  return params;\n}\n"
      # "::tc::kernel::ScheduleAttr $cppClass::withGrain(int64_t grain) const {\n"
      # "  Params params = getParams();\n  params.grain = grain;\n  return params.get(getContext());\n}\n"
      # "::llvm::SmallVector<std::pair<::llvm::StringRef, int64_t>> $cppClass::getNumbers() const {\n  return {"
      # !interleave(!foreach(f, fields, "{\"" # f.name # "\", int64_t(" # f.getter # "())}"), ", ") # "};\n}\n"
      # "::llvm::LogicalResult $cppClass::verify(::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError, "
      # !interleave(!foreach(f, fields, f.type # " " # f.name), ", ") # ") {\n"
      # !interleave(!foreach(f, fields, f.check), "") # moreChecks
      # "  return ::mlir::success();\n}\n";
}

//===--- strategies of CPUs -----------------------------------------------------------------------------------------===//
// Columns of products are multiples of 16.

def Kernel_CpuContract : Kernel_Strategy<"CpuContract", "cpu.contract", [
    Number<"rhs", "number of the input that is packed when the artifact is made; -1: packed at run time", -1, -1>,
    Flag<"rhsLaunch", "packed at run time by a launch of its own">,
    Flag<"rhsTransposed", "packed at run time from rows of K, transposed in registers">,
    Flag<"rhsInPlace", "not packed: read where it lies">,
    Flag<"lhsCopy", "the task copies the rows of A, or of the input of a convolution">,
    Flag<"lhsLaunch", "a launch of its own copies them, for all tasks of a block of rows">,
    Flag<"lhsTransposed", "from columns of A, as they lie: [tile of rows][K][rows]">,
    Number<"tileM", "rows of a task of a product">,
    Number<"tileH", "lines of output pixels of a task of a convolution">,
    Number<"tileW", "output pixels of these lines">,
    MultipleOf<"tileN", "columns of a task", 16>,
    Raster<"ColumnsOuter">,
    Flag<"skipH", "tasks and patches leave out kernel rows that read nothing but padding">,
    Flag<"skipW", "so they do with kernel columns; a patch that is a whole line leaves out the outputs that would">,
    Number<"run", "lanes do not cross multiples of so many columns, in which ops behind the anchor split them; 0: they may">,
    Flag<"direct", "micro-kernels write the result where it lies, without an epilogue">,
    Number<"partialDepth", "about so many steps of K are added up on their own; 0: all", 1024>
  ], [
    PerWidth<"rows", "rows of the micro-kernel of a product">, PerWidth<"cols", "columns of the micro-kernel">,
    PerWidth<"patchH", "lines of pixels of the micro-kernel of a convolution">, PerWidth<"patchW", "pixels of these lines">,
    PerWidth<"prefetchBytes", "how far ahead panels are fetched that few rows or pixels read once; 0: not">]> {
  let summary = "Products and convolutions by register tiles over packed panels (GEMM, batch-reduce GEMM)";
}
def Kernel_CpuSkinnyGemm : Kernel_Strategy<"CpuSkinnyGemm", "cpu.skinny_gemm", [
    MultipleOf<"tileN", "columns of a task", 16>,
    Flag<"transposed", "the matrix has K contiguous">,
    Flag<"lhsCopy", "the task copies the rows">,
    Number<"steps", "of K at a time, a multiple of 16; 0: all">
  ], [PerWidth<"rows", "rows whose accumulators are in registers at the same time">,
      PerWidth<"cols", "columns of these: 1 to 8 if transposed, else a multiple of 16">]> {
  let summary = "Products of few rows that read the matrix once, where and as it lies";
}
def Kernel_CpuNarrowGemm : Kernel_Strategy<"CpuNarrowGemm", "cpu.narrow_gemm", [
    Number<"rhs", "number of the input that is packed when the artifact is made; -1: packed at run time by a launch", -1, -1>,
    Flag<"rhsTransposed", "packed at run time from rows of K, transposed in registers">,
    Flag<"lhsCopy", "the task copies the rows of A also where there are instructions for words">,
    Flag<"tiles", "AMX where there is; else a few rows are faster without">,
    Number<"tileM", "rows of a task", 1, 1>, MultipleOf<"tileN", "columns of a task", 16>,
    Number<"prefetchLines", "how many lines ahead panels are fetched that few rows read once; 0: not">,
    Number<"rowsDot", "rows of the micro-kernel with an instruction for words: VNNI, BF16">, Number<"colsDot", "its columns">
  ], [PerWidth<"rows", "rows of the micro-kernel without one">, PerWidth<"cols", "its columns">]> {
  let summary = "Products and convolutions of ui8 times i8, summed in i32, and of bf16, summed in f32";
}
def Kernel_CpuBlockDot : Kernel_Strategy<"CpuBlockDot", "cpu.block_dot", [
    Number<"weights", "number of the input", -1, -1>,
    Number<"scales", "number of the input; -1: one number is all", -1, -1>,
    Number<"zeros", "number of the input; -1: one number is all, or there are none", -1, -1>,
    Flag<"lhsCopy", "the task copies the rows of A, evaluating what stands before the product">,
    Number<"tileM", "rows of a task", 1, 1>, MultipleOf<"tileN", "columns of a task", 16>,
    Number<"depth", "steps of K of a panel in f32">
  ], [PerWidth<"rows", "most rows that read the weights as they are stored">, PerWidth<"cols", "columns that these compute at once">,
      PerWidth<"panelRows", "rows of the micro-kernel for more rows">, PerWidth<"panelCols", "its columns">]> {
  let summary = "Products with weights in blocks of bytes or nibbles with scales, widened in registers";
}
def Kernel_CpuWinograd : Kernel_Strategy<"CpuWinograd", "cpu.winograd", [
    Number<"rhs", "number of the input that is the filter; -1: a launch of its own transforms it in each run", -1, -1>,
    Number<"tiles", "of 4 x 4 output pixels, of a task", 1, 1>, MultipleOf<"tileN", "output channels of a task", 16>,
    Raster<"ColumnsOuter">,
    Flag<"transformLaunch", "a launch of its own transforms all tiles, once for all blocks of output channels">
  ], [PerWidth<"rows", "rows of the micro-kernel">, PerWidth<"cols", "its columns">]> {
  let summary = "3x3 convolutions by Winograd's F(4x4, 3x3); rows are tiles";
}
def Kernel_CpuWidthConv : Kernel_Strategy<"CpuWidthConv", "cpu.width_conv", [
    Number<"tileH", "rows of a task", 1, 1>, MultipleOf<"tileW", "elements of a line; every vector width divides 16", 16>,
    Flag<"transposed", "channels lie last in memory">
  ], [PerWidth<"rows", "rows of a block in registers">, PerWidth<"vectors", "vectors of each of its lines">,
      PerWidth<"cols", "channels of a group's result of a block; 0: all">]> {
  let summary = "Convolutions with lanes along the lines of the image, for few channels";
}
def Kernel_CpuDepthwise : Kernel_Strategy<"CpuDepthwise", "cpu.depthwise", [
    Number<"tileH", "output rows of a task", 1, 1>,
    Number<"run", "lanes go over so many channels at a time, as ops around split them in such parts; 0: over all">
  ], [PerWidth<"pixels", "output pixels of a block">]> {
  let summary = "Convolutions of groups of 1 to 8 channels, with lanes along the channels";
}
def Kernel_CpuAttention : Kernel_Strategy<"CpuAttention", "cpu.attention", [
    MultipleOf<"tileT", "queries of a task", 16>, Number<"tileS", "keys of a block", 1, 1>
  ], [PerWidth<"panels", "queries of the micro-kernel of the scores, times 16">, PerWidth<"scoreRows", "keys of it">,
      PerWidth<"valueRows", "columns of the values of the micro-kernel of the result">]> {
  let summary = "Attention by blocks of keys with an online softmax";
}
def Kernel_CpuAttentionRows : Kernel_Strategy<"CpuAttentionRows", "cpu.attention_rows", [
    MultipleOf<"tileS", "keys of a block", 16>,
    Number<"prefetchKeys", "keys ahead that are fetched to the second-level cache; 0: none">
  ], [PerWidth<"vectors", "vectors of a row of values at once">]> {
  let summary = "Attention of few queries, which reads keys and values where they lie";
}
def Kernel_CpuRnn : Kernel_Strategy<"CpuRnn", "cpu.rnn", [
    Number<"rhs", "number of the input that is packed; -1: every task packs the recurrent weights", -1, -1>,
    Number<"tileB", "batch rows of a task", 1, 1>,
    Number<"slice", "panels of the hidden dim that a task takes in each step; 0: a task takes all, in all steps">,
    Number<"merged", "tasks that are taken at once, if they follow one another and are whole blocks of rows", 1, 1>
  ], [PerWidth<"rows", "rows of the micro-kernel">, PerWidth<"cols", "its columns">]> {
  let summary = "Recurrent layers, with the state in scratch or, in steps, in shared memory";
}
def Kernel_CpuScan : Kernel_Strategy<"CpuScan", "cpu.scan", [
    Flag<"lanes", "neighbouring lines are computed as lanes; else one by one">,
    Number<"block", "lines of a task, along the dims after the scanned one", 1, 1>,
    Flag<"rows", "step by step, in each all lines of the tasks that a thread has, from the running values of the step before">
  ]> {
  let summary = "Cumulative operations";
}
def Kernel_CpuScatter : Kernel_Strategy<"CpuScatter", "cpu.scatter", [
    Number<"block", "lines, or columns of the slices, of a task", 1, 1>
  ]> {
  let summary = "Scatters, each element's updates in order by one task";
}
def Kernel_CpuSort : Kernel_Strategy<"CpuSort", "cpu.sort", [
    Flag<"single", "rows of one key, sorted in the worker's scratch">,
    Flag<"splitKeys", "keys and row numbers lie in buffers of their own there">,
    Number<"laneDims", "the rows of so many last dims before the sorted one are lanes, each with its best elements in order; 0: none">
  ]> {
  let summary = "Sorts and top-k";
}
def Kernel_CpuFft : Kernel_Strategy<"CpuFft", "cpu.fft", [
    Number<"batch", "transforms of a task, along which lanes run; 0: one, with lanes along its elements">,
    Number<"bluestein", "length of the transforms that compute it as a convolution; 0: it is computed directly">,
    Flag<"packed", "neighbouring real elements are the parts of complex ones, of which there are half as many">,
    Flag<"twiddleLaunch", "a launch of its own computes the twiddle factors; else they are tables in the code">
  ], [PerWidth<"radix", "largest radix of a pass", 4>]> {
  let summary = "Fast Fourier transforms";
}
def Kernel_CpuColumnReduce : Kernel_Strategy<"CpuColumnReduce", "cpu.column_reduce", [
    Flag<"folded", "rows of few columns are read as they lie, and lanes folded in the end">,
    Number<"columns", "of a task, a multiple of every vector width", 1, 1>,
    Number<"rows", "at once, with accumulators in scratch; 0: accumulators in registers">,
    Number<"part", "rows (of the last reduced dim) of a task of the launch before; 0: there is none">
  ]> {
  let summary = "Reductions over dims before the last one";
}
def Kernel_CpuTranspose : Kernel_Strategy<"CpuTranspose", "cpu.transpose", [
    Flag<"narrow", "the result's last dim is short and beside the operand's: vectors of each row are interleaved">,
    Number<"rows", "elements of the operand's last dim of a task: rows of its scratch", 1, 1>,
    Number<"columns", "elements of the result's last dim; both are multiples of every vector width", 1, 1>,
    Raster<"RowsOuter">,
    Flag<"direct", "stored straight from the registers">,
    Flag<"fetch", "the operand comes from beyond the caches: a task fetches what the next one reads">,
    Flag<"stream", "results are stored past the caches where their buffers are aligned">
  ]> {
  let summary = "Transposes of the last dim, with what stands before and behind";
}
def Kernel_CpuWindowReduce : Kernel_Strategy<"CpuWindowReduce", "cpu.window_reduce", [
    Flag<"lanes", "lanes along the line, or the channels, in the second step">
  ]> {
  let summary = "Reductions over windows (pooling), by lines";
}
def Kernel_CpuLoops : Kernel_Strategy<"CpuLoops", "cpu.loops", [
    Number<"space", "number of the output that spans the rows">,
    Flag<"lanes", "lanes along the last dim of the output; else elements one at a time, and reductions take the lanes">,
    Number<"block", "without lanes: results of reductions for so many neighbours are stored first; 0: one by one">,
    Number<"chunk", "elements of the last dim of a task, a multiple of every vector width; 0: the whole row">,
    Number<"keep", "number, in the region's body, of a value that is kept in scratch for the row; -1: none", -1, -1>,
    Number<"fetch", "the pass over a row that computes most fetches what so many rows further down read; 0: nothing">,
    Flag<"stream", "results are stored past the caches where their buffers are aligned">,
    Number<"joined", "so many last dims, too short for lanes of their own, are one for tasks and lanes">,
    Flag<"segments", "inputs of concats along the rows, and even runs of constant indices, are written by loops of their own">,
    Flag<"elements", "elements of rows that are put together of many short pieces are written one by one, at known positions">,
    Flag<"reduceLaunch", "a launch before computes what reductions give for each of their rows">,
    Flag<"argLanes", "without lanes along the kept dims, each lane finds the best element of a part of the last dim">
  ]> {
  let summary = "Everything else, by rows: pointwise ops, reductions along rows, movement";
}

//===--- strategies of GPUs -----------------------------------------------------------------------------------------===//

def Kernel_GpuAttention : Kernel_Strategy<"GpuAttention", "gpu.attention", [
    PowerOfTwo<"tileT", "queries of a block, 16 a warp", 128, 16>, PowerOfTwo<"tileS", "keys of a tile", 128, 16>,
    Number<"stages", "tiles of keys and values that are in shared memory at once", 2, 2>,
    Flag<"producers", "warpgroups take turns to multiply, and another one copies for them">
  ]> {
  let moreChecks =
      "  if (producers && tileT != 128)\n"
      # "    return emitError() << \"two warpgroups of 64 queries take turns, not those of \" << tileT;\n"
      # "  if (tileT > 512)\n"
      # "    return emitError() << \"a block has at most 32 warps of 16 queries, not \" << tileT << \" queries\";\n"
      # "  if (tileS > 256)\n"
      # "    return emitError() << \"a warpgroup multiplies at most 256 keys at once, not \" << tileS;\n";
  let summary = "Attention by tiles of keys with an online softmax, on tensor cores";
}
def Kernel_GpuMma : Kernel_Strategy<"GpuMma", "gpu.mma", [
    PowerOfTwo<"tileM", "rows of a block", 128, 16>, PowerOfTwo<"tileN", "columns of a block", 128, 32>,
    PowerOfTwo<"warpsM", "warps of a block along rows", 2>, PowerOfTwo<"warpsN", "warps of a block along columns", 4>,
    Number<"stages", "slices of K that are in shared memory at once", 3, 2>,
    Number<"group", "rows of blocks that follow each other along a column", 8, 1>,
    Number<"splits", "of K, which a second launch adds up; 1: there is none", 1, 1>,
    Number<"passes", "over operands of f32: 3 are exact, 1 takes the 11 significant bits of TF32", 1, 1>,
    Flag<"packsRhs", "a constant rhs is stored along K, and where passes is 1 rounded">,
    Flag<"lhsLaunch", "a launch writes a convolution's image with pixels of whole 16 bytes">,
    Flag<"rhsLaunch", "a launch writes a product's rhs of f32 along K, and where passes is 1 rounded">,
    Flag<"tensorCopies", "a warp copies the tiles by tensor maps, which a launch writes; else those that multiply do">
  ]> {
  let moreChecks =
      "  if (tileM % warpsM != 0 || tileM / warpsM % 16 != 0 || tileN % warpsN != 0 || tileN / warpsN % 16 != 0)\n"
      # "    return emitError() << \"a warp takes multiples of 16 x 16 results, not a part of \" << tileM << \" x \" << tileN;\n"
      # "  if (warpsM * warpsN > 32)\n"
      # "    return emitError() << \"a block has at most 32 warps, not \" << warpsM * warpsN;\n"
      # "  if (passes != 1 && passes != 3)\n"
      # "    return emitError() << \"passes is 1 or 3, not \" << passes;\n";
  let summary = "Products and convolutions on tensor cores, by warps or warpgroups";
}
def Kernel_GpuScan : Kernel_Strategy<"GpuScan", "gpu.scan", [
    Number<"block", "threads of a block", 128, 1>,
    PowerOfTwo<"down", "threads that share a line, at most all; 1: none", 1, 1>,
    Flag<"inTurn", "that take neighbouring elements in turn, a block a line; else each has a piece of the line">
  ]> {
  let moreChecks =
      "  if (block % down != 0)\n    return emitError() << \"down divides block, \" << block << \", and \" << down << \" does not\";\n"
      # "  if (inTurn && (down != block || block % 32 != 0))\n    return emitError() << \"a line in turn has all threads of a block, in whole warps, not \" << down << \" of \" << block;\n";
  let summary = "Running values along an axis, by a thread or several";
}
def Kernel_GpuScatter : Kernel_Strategy<"GpuScatter", "gpu.scatter", [
    Number<"block", "threads of a block", 128, 1>,
    PowerOfTwo<"groups", "that the elements of a line, or of a column of slices, are dealt to; each looks at all updates", 1>,
    Number<"ranges", "of slices, each of a block, whose threads look at all updates together; 0: there are none, but groups">,
    Number<"slices", "of a block, where updates have an order; 0: they have none", 0, 0>,
    PowerOfTwo<"across", "with slices: threads along the columns of one", 1>,
    PowerOfTwo<"along", "with slices: threads along the updates of one, whose results are combined", 1>,
    Flag<"winners", "launches find the last update of each element or slice, which a thread an element takes">
  ]> {
  let moreChecks =
      "  if (ranges && block % 32 != 0)\n"
      # "    return emitError() << \"blocks that look at updates have whole warps, not \" << block << \" threads\";\n"
      # "  if (slices && (ranges || groups != 1 || block % (across * along) != 0 || slices % (block / (across * along)) != 0))\n"
      # "    return emitError() << \"with slices there are no ranges or groups; across * along, \" << across * along\n"
      # "                       << \", divides block, \" << block << \", and what of it is left divides slices, \" << slices;\n"
      # "  if (winners && (ranges || slices || groups != 1))\n"
      # "    return emitError() << \"with winners there are no ranges, slices or groups\";\n";
  let summary = "Updates in order, by the one thread that an element belongs to";
}
def Kernel_GpuSort : Kernel_Strategy<"GpuSort", "gpu.sort", [
    Number<"block", "threads of a block", 128, 1>,
    PowerOfTwo<"items", "elements that a thread holds in registers; 0: threads count what comes before an element, one a thread", 0, 0>,
    PowerOfTwo<"across", "threads that sort together; those of a block divide into such teams", 0, 0>,
    Number<"merges", "launches that merge two sorted parts of a line each; 0: a team sorts whole lines", 0, 0>,
    Flag<"limit", "a team first finds a limit that the elements asked for do not exceed, and sorts what does not exceed it">,
    Number<"parts", "with a limit: of a line, whose first elements a second launch sorts; 1: there is none", 1, 1>,
    Number<"digits", "of 8 bits that keys are sorted by, the lowest first, by blocks of 256 threads; 0: by networks", 0, 0>
  ]> {
  let moreChecks =
      "  if (items != 0 && (across == 0 || block % across != 0))\n"
      # "    return emitError() << \"block is a multiple of across, \" << across << \", not \" << block;\n"
      # "  if (block % 32 != 0 && items != 0)\n"
      # "    return emitError() << \"words move between the 32 lanes of whole warps; block is \" << block;\n"
      # "  if (items == 1 && across > 1)\n"
      # "    return emitError() << \"threads that sort together hold two items at least\";\n"
      # "  if (items == 0 && (across != 0 || merges != 0 || limit))\n"
      # "    return emitError() << \"threads that count have no teams, merges or limits\";\n"
      # "  if (parts > 1 && !limit)\n"
      # "    return emitError() << \"parts want a limit\";\n"
      # "  if (digits && (block != 256 || across != 256 || merges || limit))\n"
      # "    return emitError() << \"with digits block and across are 256, and there are no merges and no limit\";\n";
  let summary = "Sorts and top-k: teams of threads by a network, and merges; by digits; or the number of rows before each";
}
def Kernel_GpuColumnReduce : Kernel_Strategy<"GpuColumnReduce", "gpu.column_reduce", [
    PowerOfTwo<"block", "threads of a block", 256, 32>,
    PowerOfTwo<"across", "threads of a block along the last dim, at most all; 0: it is reduced", 0, 0>,
    Number<"parts", "that the reduced elements are cut into, which a second launch combines; 1: there is none", 1, 1>,
    PowerOfTwo<"unroll", "loads of a thread at once", 1>
  ]> {
  let moreChecks = "  if (across > block)\n    return emitError() << \"across is at most block, \" << block << \", not \" << across;\n";
  let summary = "Reductions of many elements to few, over any dims";
}
def Kernel_GpuTranspose : Kernel_Strategy<"GpuTranspose", "gpu.transpose", [
    PowerOfTwo<"tile", "rows and columns of a block", 64, 32>
  ]> {
  let moreChecks = "  if (tile > 64)\n    return emitError() << \"shared memory holds tiles of at most 64 x 64, not \" << tile << \" x \" << tile;\n";
  let summary = "Another dim becomes the last: tiles turned in shared memory";
}
def Kernel_GpuRows : Kernel_Strategy<"GpuRows", "gpu.rows", [
    Number<"block", "threads of a block", 32, 1>, Number<"space", "number of the output that spans the grid">,
    Flag<"inRegisters", "threads hold a row's elements, which are read once">,
    PowerOfTwo<"rows", "rows of a block, each of a warp's threads at most", 1>
  ]> {
  let moreChecks = "  if (rows > 1 && (block % rows || block / rows > 32 || !llvm::isPowerOf2_64(block / rows)))\n"
                   "    return emitError() << \"several rows of a block have 1, 2, 4 .. 32 threads each, not \" << block << \" / \" << rows;\n";
  let summary = "A block per row, or short rows, of the largest output, with reductions along them";
}
def Kernel_GpuFlat : Kernel_Strategy<"GpuFlat", "gpu.flat", [
    Number<"block", "threads of a block", 32, 1>, Number<"space", "number of the output that spans the grid">,
    Number<"pieces", "pieces of neighbours that a thread computes, a block's piece apart", 1, 1>
  ]> {
  let summary = "Neighbouring elements of the largest output a thread";
}

#endif
