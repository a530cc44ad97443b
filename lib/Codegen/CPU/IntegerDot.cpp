//===- IntegerDot.cpp - the "integer-dot" strategy: products of 8-bit integers ------------------------------------===//
//
// result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n] with lhs of ui8, rhs of i8 and sums of i32 that wrap:
// what tc-narrow-products makes of quantised products. B lies in panels of 16 columns in which four steps of K are
// neighbours, [panel][k / 4][16][4], packed when the artifact is made if it is constant, else by a launch of its own. A
// task is a block of rows times a block of columns of a batch element; the epilogue runs over the micro-kernel's tile.
//
// Micro-kernels, by what the CPU has:
//   vnni   vpdpbusd: four products a lane, added to i32; a lane is a column. 4 times the products of an f32 FMA.
//   256, 512   vpmaddwd on operands widened to 16 bits (vpmaddubsw would saturate): two products a lane, a lane is half
//          the steps of a column; neighbouring lanes are added at the end. The rows of A are copied as 16 bits.
//
// Parameters (columns are multiples of 16; the suffixes are those of the micro-kernels):
//   rhs              number of the input that is packed when the artifact is made; -1: packed at run time by a launch
//   lhsCopy          1: the task copies the rows of A also for vnni
//   tileM, tileN     rows and columns of a task
//   rows256, cols256, rows512, cols512, rowsVnni, colsVnni   micro-kernels
//   grain            least number of tasks for a thread
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/MicroKernel.h"
#include "CPU/Product.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

// Steps of K that are neighbours in a panel.
constexpr int64_t kQuad = 4;
constexpr int64_t kQuadBytes = kPanel * kQuad;
constexpr int64_t kTaskRows = 112;
// Columns of a task take this many bytes of B: they stay in the second-level cache.
constexpr int64_t kPanelBytes = 512 * 1024;
// Products of a task below which more tasks are not worth it, and what a thread should get at least.
constexpr double kTaskProducts = 8e6, kGrainProducts = 2e6;
constexpr int64_t kTasks = 48;

std::string kindOf(const CpuInfo &cpu) { return cpu.hasVnni ? "Vnni" : std::to_string(cpu.vectorBits); }

Type elementOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

/// The product of a region's anchor; nullopt if it is none of bytes, or K is not known.
std::optional<Product> asIntegerProduct(Operation *anchor) {
  auto dot = dyn_cast_or_null<prim::DotGeneralOp>(anchor);
  if (!dot || !elementOf(dot.getLhs()).isUnsignedInteger(8) || !elementOf(dot.getRhs()).isSignlessInteger(8) ||
      !elementOf(dot.getResult()).isSignlessInteger(32))
    return std::nullopt;
  std::optional<Product> p = asProduct(anchor);
  return p && p->k && *p->k > 0 ? p : std::nullopt;
}

int64_t quads(const Product &p) { return ceilDiv(*p.k, kQuad); }

//===--- the micro-kernel -----------------------------------------------------------------------------------------===//

struct IntegerKernel {
  Value a, b, c;        // row 0, first panel, tile
  int64_t rows, panels; // of this kernel
  int64_t quads;        // of K
  int64_t rowBytes;     // between rows of A
  int64_t tileColumns;  // i32 between rows of the tile
};

class IntegerAssembler {
public:
  IntegerAssembler(Emitter &em, const IntegerKernel &kernel) : em(em), k(kernel), b(em.builder()), loc(em.loc()) {
    sums = em.vectorOf(b.getI32Type());
    isVnni = em.cpu().hasVnni;
    // Vectors of sums of a panel: 16 columns, or 16 columns of two halves each.
    perPanel = (isVnni ? kPanel : 2 * kPanel) / em.width();
    columns = k.panels * perPanel;
  }

  void run() {
    Value zero = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(sums, b.getI32IntegerAttr(0)));
    SmallVector<Value> acc(k.rows * columns, zero);
    const int64_t unroll = isVnni ? 2 : 1, main = k.quads / unroll * unroll;
    if (main) {
      auto op = scf::ForOp::create(b, loc, em.i64(0), em.i64(main), em.i64(unroll), acc);
      disableUnrolling(op);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(op.getBody());
      SmallVector<Value> next(op.getRegionIterArgs());
      Value a = at(k.a, mul(op.getInductionVar(), stepBytes())), panel = at(k.b, mul(op.getInductionVar(), kQuadBytes));
      for (int64_t u = 0; u < unroll; ++u)
        step(at(a, u * stepBytes()), at(panel, u * kQuadBytes), next);
      scf::YieldOp::create(b, loc, next);
      acc.assign(op.getResults().begin(), op.getResults().end());
    }
    for (int64_t quad = main; quad < k.quads; ++quad)
      step(at(k.a, quad * stepBytes()), at(k.b, quad * kQuadBytes), acc);
    store(acc);
  }

private:
  int64_t stepBytes() const { return isVnni ? kQuad : 2 * kQuad; }
  Value mul(Value x, int64_t factor) { return arith::MulIOp::create(b, loc, x, em.i64(factor)); }
  Value at(Value pointer, int64_t bytes) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
  }
  Value at(Value pointer, Value bytes) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{bytes});
  }
  Value load(Value address, Type type, int64_t alignment) {
    return LLVM::LoadOp::create(b, loc, type, address, alignment);
  }
  /// One element of `type`, repeated, as a vector of other elements.
  Value repeat(Value address, Type type, VectorType as) {
    const int64_t count = as.getNumElements() * as.getElementTypeBitWidth() / type.getIntOrFloatBitWidth();
    Value lanes = vector::BroadcastOp::create(b, loc, VectorType::get({count}, type), load(address, type, 1));
    return LLVM::BitcastOp::create(b, loc, as, lanes);
  }
  Value call(StringRef name, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, Type(sums), b.getStringAttr(name), operands).getResult(0);
  }

  /// Four steps of K.
  void step(Value a, Value panel, SmallVector<Value> &acc) {
    const int64_t w = em.width();
    auto bytes = VectorType::get({4 * w}, b.getI8Type()), words = VectorType::get({2 * w}, b.getI16Type());
    SmallVector<Value> right;
    for (int64_t j = 0; j < columns; ++j) {
      Value from = at(panel, j / perPanel * k.quads * kQuadBytes + j % perPanel * (kQuadBytes / perPanel));
      if (isVnni)
        right.push_back(load(from, bytes, 1));
      else
        right.push_back(arith::ExtSIOp::create(b, loc, words, load(from, VectorType::get({2 * w}, b.getI8Type()), 1)));
    }
    for (int64_t i = 0; i < k.rows; ++i) {
      Value from = at(a, i * k.rowBytes);
      Value left = isVnni ? repeat(from, b.getI32Type(), bytes) : repeat(from, b.getI64Type(), words);
      for (int64_t j = 0; j < columns; ++j) {
        Value &sum = acc[i * columns + j];
        if (isVnni)
          sum = call("llvm.x86.avx512.vpdpbusd.512", {sum, left, right[j]});
        else
          sum = arith::AddIOp::create(
              b, loc, sum, call(w == 16 ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd", {left, right[j]}));
      }
    }
  }

  void store(ArrayRef<Value> acc) {
    const int64_t w = em.width();
    SmallVector<int64_t> even, odd;
    for (int64_t lane = 0; lane < w; ++lane) {
      even.push_back(2 * lane);
      odd.push_back(2 * lane + 1);
    }
    for (int64_t i = 0; i < k.rows; ++i)
      for (int64_t j = 0; j < columns; j += isVnni ? 1 : 2) {
        Value value = acc[i * columns + j];
        if (!isVnni) {
          Value other = acc[i * columns + j + 1];
          value = arith::AddIOp::create(b, loc, vector::ShuffleOp::create(b, loc, value, other, even),
                                        vector::ShuffleOp::create(b, loc, value, other, odd));
        }
        int64_t column = isVnni ? j * w : j / 2 * w;
        LLVM::StoreOp::create(b, loc, value, at(k.c, (i * k.tileColumns + column) * 4), 4);
      }
  }

  Emitter &em;
  const IntegerKernel &k;
  OpBuilder &b;
  Location loc;
  VectorType sums;
  bool isVnni;
  int64_t perPanel, columns;
};

//===--- the generator --------------------------------------------------------------------------------------------===//

class IntegerDotGenerator final : public Generator {
public:
  StringRef strategy() const override { return "integer-dot"; }
  StringRef extraVariant() const override { return "x86-64-v4-vnni"; }

  FailureOr<kernel::ScheduleAttr> choose(kernel::RegionOp region,
                                         llvm::function_ref<bool(unsigned)> isConstant) const override {
    Operation *anchor = findAnchor(region);
    std::optional<Product> p = asIntegerProduct(anchor);
    if (!p)
      return failure();
    FailureOr<Epilogue> epilogue = Epilogue::analyze(region, p->result);
    if (failed(epilogue) || !epilogue->yieldsAll(region))
      return failure();
    Params params(region);
    std::optional<PackedInput> packed = packedRhs(*p, isConstant, kQuad);
    const bool copy = !isRowMajor(*p) || !inputThroughReshapes(p->lhs) || *p->k % kQuad != 0;
    const int64_t m = std::max<int64_t>(1, p->m.value_or(1024)), n = std::max<int64_t>(1, p->n.value_or(1024));
    const int64_t allPanels = ceilDiv(n, kPanel);
    // Accumulators, a row of B and a broadcast: 31 registers of 32 or 16 (a panel has 1, 2 and 4 vectors of sums).
    Tile wide{14, 2};
    if (m <= 6 && allPanels >= 4)
      wide = {std::min<int64_t>(m, 5), 4};
    else if (m < 14 || m % 14 > 0) // blocks of equal size
      wide.rows = ceilDiv(m, ceilDiv(m, 14));
    const std::pair<StringRef, Tile> tiles[] = {
        {"256", {std::min<int64_t>(m, 3), 1}}, {"512", {std::min<int64_t>(m, 6), 2}}, {"Vnni", wide}};
    for (auto [kind, tile] : tiles) {
      params.set("rows" + kind, tile.rows);
      params.set("cols" + kind, std::min<int64_t>(tile.panels, int64_t(llvm::bit_floor(uint64_t(allPanels)))) * kPanel);
    }
    int64_t tilePanels = std::max<int64_t>(8, kPanelBytes / (quads(*p) * kQuadBytes)) / 4 * 4;
    tilePanels = std::min(tilePanels, roundUp(allPanels, 4));
    int64_t tileM = std::max<int64_t>(1, kTaskRows / wide.rows) * wide.rows;
    tileM = std::min(tileM, roundUp(ceilDiv(m, ceilDiv(m, tileM)), wide.rows));
    auto tasks = [&] {
      return double(prim::getConstantSize(p->B).value_or(8)) * double(ceilDiv(m, tileM)) *
             double(ceilDiv(allPanels, tilePanels));
    };
    auto products = [&] {
      return double(*p->k) * double(std::min(m, tileM)) * double(std::min(n, tilePanels * kPanel));
    };
    // Copied rows are worth their copy for 128 columns.
    const int64_t leastPanels = std::min<int64_t>(tilePanels, copy ? 8 : 4);
    while (tasks() < kTasks && products() > kTaskProducts) {
      if (tilePanels > leastPanels && (tilePanels * kPanel >= tileM || tileM <= 2 * wide.rows))
        tilePanels = std::max(leastPanels, roundUp(tilePanels / 2, 4));
      else if (tileM > 2 * wide.rows)
        tileM = std::max(2 * wide.rows, roundUp(tileM / 2, wide.rows));
      else
        break;
    }
    params.set("tileM", tileM);
    params.set("tileN", tilePanels * kPanel);
    params.set("lhsCopy", copy);
    params.set("rhs", packed ? int64_t(packed->input) : -1);
    params.set("grain", std::max<int64_t>(1, int64_t(kGrainProducts / products())));
    return params.schedule(strategy());
  }

  SmallVector<PackedInput> packing(kernel::RegionOp region, kernel::ScheduleAttr schedule) const override {
    int64_t rhs = getParam(schedule, "rhs", -1);
    if (rhs < 0)
      return {};
    return {*packedRhs(*asIntegerProduct(findAnchor(region)), [&](unsigned i) { return int64_t(i) == rhs; }, kQuad)};
  }

  SmallVector<Launch> launches(kernel::RegionOp region, kernel::ScheduleAttr schedule) const override {
    MLIRContext *context = region.getContext();
    Product p = *asIntegerProduct(findAnchor(region));
    SmallVector<Launch> launches;
    if (getParam(schedule, "rhs", -1) < 0) {
      Launch packing;
      packing.suffix = "_pack";
      packing.tasks = prim::product(context, {p.B, p.panels()});
      packing.grain = getAffineConstantExpr(std::max<int64_t>(1, 4096 / quads(p)), context);
      AffineExpr bytes = getAffineConstantExpr(quads(p) * kQuadBytes, context);
      packing.temporaries = {prim::makeType(IntegerType::get(context, 8), {p.B, p.panels(), bytes})};
      launches.push_back(packing);
    }
    Launch launch;
    launch.tasks = prim::product(context, grid(p, schedule));
    launch.grain = getAffineConstantExpr(getParam(schedule, "grain", 1), context);
    // Widened rows where there is no vpdpbusd; 64 bytes more: full vectors may be stored at the end.
    launch.scratch = getAffineConstantExpr(getParam(schedule, "tileM") * rowBytes(p, 2) + 64, context);
    launch.inPlace = Epilogue::analyze(region, p.result)->inPlace(region);
    launches.push_back(launch);
    return launches;
  }

  void emit(kernel::RegionOp region, kernel::ScheduleAttr schedule, unsigned number, Emitter &em, Value begin,
            Value end) const override {
    Product p = *asIntegerProduct(findAnchor(region));
    if (number == 0 && getParam(schedule, "rhs", -1) < 0)
      return em.loop(begin, end, 1, [&](Index task) { packPanel(p, em, task); });
    Epilogue epilogue = *Epilogue::analyze(region, p.result);
    em.loop(begin, end, 1, [&](Index task) { emitTask(p, schedule, epilogue, em, task); });
  }

private:
  static SmallVector<AffineExpr> grid(const Product &p, kernel::ScheduleAttr schedule) {
    return {p.B, prim::simplifySize(p.N.ceilDiv(getParam(schedule, "tileN"))),
            prim::simplifySize(p.M.ceilDiv(getParam(schedule, "tileM")))};
  }
  /// Between copied rows: whole vectors fit, and rows do not share the sets of the first-level cache.
  static int64_t rowBytes(const Product &p, int64_t elementBytes) {
    return roundUp(quads(p) * kQuad * elementBytes, 64) + 64;
  }
  static Value byteOffset(Emitter &em, Value pointer, Value bytes) {
    return em.address(pointer, em.builder().getI8Type(), bytes);
  }

  /// Task: one panel of a batch element. Four rows of B become one of 32-bit lanes.
  static void packPanel(const Product &p, Emitter &em, Index task) {
    OpBuilder &b = em.builder();
    const Location loc = em.loc();
    SmallVector<Index> at = em.delinearize(task, {p.B, p.panels()});
    SmallVector<Index> batchAt = em.delinearize(at[0], p.batch);
    Index n0 = em.mulIndex(at[1], em.i64(kPanel), kPanel);
    Value to = byteOffset(em, em.output(0), em.mul(task.base, em.i64(quads(p) * kQuadBytes)));
    VectorType lanes = em.vectorOf(b.getI32Type());
    auto element = [&](Value k, Index n) -> Value {
      SmallVector<Index> depthAt = em.delinearize(em.uniform(k), p.depth);
      Value byte = em.emit(
          p.rhs, Product::place<Index>(p.rhsDims, batchAt, {}, em.delinearize(n, p.columns), depthAt, em.constant(0)));
      return arith::ExtUIOp::create(b, loc, lanes, em.broadcast(byte));
    };
    auto quad = [&](Value number, int64_t steps) {
      Value start = byteOffset(em, to, em.mul(number, em.i64(kQuadBytes)));
      Value columns = em.min(em.i64(kPanel), em.sub(em.size(p.N), n0.base));
      em.laneLoop(columns, std::nullopt, [&](Index lane) {
        Value word;
        for (int64_t i = 0; i < steps; ++i) {
          Value byte = element(em.add(em.mul(number, em.i64(kQuad)), em.i64(i)), em.addIndex(n0, lane));
          if (i) {
            Value by = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(lanes, b.getI32IntegerAttr(8 * i)));
            byte = arith::ShLIOp::create(b, loc, byte, by);
          }
          word = word ? Value(arith::OrIOp::create(b, loc, word, byte)) : byte;
        }
        em.storeAt(word, start, b.getI32Type(), lane);
      });
    };
    const int64_t whole = *p.k / kQuad;
    em.loop(em.i64(0), em.i64(whole), 1, [&](Index number) { quad(number.base, kQuad); });
    if (*p.k % kQuad)
      quad(em.i64(whole), *p.k % kQuad);
  }

  static void emitTask(const Product &p, kernel::ScheduleAttr schedule, const Epilogue &epilogue, Emitter &em,
                       Index task) {
    OpBuilder &b = em.builder();
    const Location loc = em.loc();
    const std::string kind = kindOf(em.cpu());
    const int64_t tileM = getParam(schedule, "tileM"), tileN = getParam(schedule, "tileN");
    const int64_t rows = getParam(schedule, "rows" + kind), cols = getParam(schedule, "cols" + kind);
    const int64_t rhsInput = getParam(schedule, "rhs", -1), panelBytes = quads(p) * kQuadBytes, group = cols / kPanel;
    const bool isVnni = em.cpu().hasVnni;
    const Type i32 = b.getI32Type();
    const Value tile = em.stackBuffer(i32, rows * cols);
    SmallVector<Index> at = em.delinearize(task, grid(p, schedule));
    SmallVector<Index> batchAt = em.delinearize(at[0], p.batch);
    Index n0 = em.mulIndex(at[1], em.i64(tileN), tileN), m0 = em.mulIndex(at[2], em.i64(tileM), tileM);
    Extent count = blockExtent(em, p.M, m0.base, tileM);

    // Rows of A.
    Value a;
    int64_t stride = *p.k;
    if (getParam(schedule, "lhsCopy") || !isVnni) {
      const Type type = isVnni ? b.getI8Type() : b.getI16Type();
      const int64_t bytes = isVnni ? 1 : 2;
      a = em.scratch();
      stride = rowBytes(p, bytes);
      em.loop(em.i64(0), count.get(em), 1, [&](Index row) {
        SmallVector<Index> rowAt = em.delinearize(em.addIndex(m0, row), p.rows);
        Value to = byteOffset(em, a, em.mul(row.base, em.i64(stride)));
        em.laneLoop(em.i64(*p.k), *p.k, [&](Index lane) {
          SmallVector<Index> depthAt = em.delinearize(lane, p.depth);
          Value value = em.emit(p.lhs, Product::place<Index>(p.lhsDims, batchAt, rowAt, {}, depthAt, em.constant(0)));
          value = em.broadcast(value);
          if (!isVnni)
            value = arith::ExtUIOp::create(b, loc, em.vectorOf(type), value);
          em.storeAt(value, to, type, lane);
        });
        Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, 0));
        for (int64_t k = *p.k; k < quads(p) * kQuad; ++k)
          LLVM::StoreOp::create(b, loc, zero, byteOffset(em, to, em.i64(k * bytes)), bytes);
      });
      em.clearSources();
    } else {
      a = em.input(*inputThroughReshapes(p.lhs));
      a = byteOffset(em, a, em.mul(em.add(em.mul(at[0].base, em.size(p.M)), m0.base), em.i64(*p.k)));
    }

    // Panels of B.
    const Value first = em.mul(at[1].base, em.i64(tileN / kPanel));
    const Value here = em.min(em.i64(tileN / kPanel), em.sub(em.size(p.panels()), first));
    Value right = em.input(rhsInput >= 0 ? rhsInput : em.region().getNumOperands());
    right = byteOffset(em, right, em.mul(em.add(em.mul(at[0].base, em.size(p.panels())), first), em.i64(panelBytes)));

    auto block = [&](Index panel, int64_t panels) {
      Index n = p.n == 1 ? em.constant(0) : em.addIndex(n0, em.mulIndex(panel, em.i64(kPanel), kPanel));
      Extent columns = p.n && *p.n % kPanel == 0
                           ? Extent(panels * kPanel)
                           : Extent(em.min(em.i64(panels * kPanel), em.sub(em.size(p.N), n.base)));
      Value from = byteOffset(em, right, em.mul(panel.base, em.i64(panelBytes)));
      forRowBlocks(em, count, rows, blockRest(p.m, tileM, rows), [&](Value row, int64_t height) {
        IntegerKernel kernel{
            byteOffset(em, a, em.mul(row, em.i64(stride))), from, tile, height, panels, quads(p), stride, cols};
        IntegerAssembler(em, kernel).run();
        em.loop(em.i64(0), em.i64(height), 1, [&](Index i) {
          SmallVector<Index> rowAt = em.delinearize(em.addIndex(m0, em.addIndex(em.uniform(row), i)), p.rows);
          Index start = em.mulIndex(i, em.i64(cols), cols);
          forColumns(em, p.n == 1, n, start, columns, [&](Index column, Index offset) {
            SmallVector<Index> where = batchAt;
            llvm::append_range(where, rowAt);
            llvm::append_range(where, em.delinearize(column, p.columns));
            epilogue.store(em, where, em.loadAt(tile, i32, offset));
          });
        });
        em.clearSources();
      });
    };
    if (group == 1)
      return em.loop(em.i64(0), here, 1, [&](Index panel) { block(panel, 1); });
    Value main = em.mul(em.divUnsigned(here, em.i64(group)), em.i64(group));
    em.loop(em.i64(0), main, group, [&](Index panel) { block(panel, group); });
    em.loop(main, here, 1, [&](Index panel) { block(panel, 1); });
  }
};

} // namespace

const Generator *tc::codegen::integerDotGenerator() {
  static const IntegerDotGenerator generator;
  return &generator;
}
