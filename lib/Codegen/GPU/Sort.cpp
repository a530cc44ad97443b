//===- Sort.cpp - the "gpu.sort" strategy: sorts and top-k --------------------------------------------------------===//
//
// A key and the number of its row make one word, an unsigned integer, so that words are in the order of the rows and no
// two are equal: any network that sorts them is stable. A team of `across` threads sorts across * items words, `items`
// in registers of each thread, by a bitonic network (Batcher, "Sorting networks and their applications", 1968).
//
//   lines of up to so many rows   a team a line, several teams a block where lines are short
//   longer ones (`merges`)        a team a part, whose words the launch leaves; then launches that merge two parts of
//                                 each: a word's place is its own number and that of the words before it in the other
//                                 part, by a binary search. What lies behind those asked for is left out
//   few of many (`limit`)         each of across * items lanes finds the least word of its share of the line; of these
//                                 the last of those asked for is the limit: at least so many words do not exceed it,
//                                 and only words of so many lanes do not, which a network sorts. `parts` of a line
//                                 leave their first words to a second launch, where there are fewer lines than
//                                 processors
//   or (`digits`)                 SortDigits.cpp: of any length, and where digits are fewer than merges
//   else (items = 0)              a thread counts the rows that come before its own: where that is less than what is
//                                 asked for, it is the place of the row. The work grows with the square of the rows
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Sort.h"

#include "Common/EmitterHelpers.h"
#include "Common/OrderedKey.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

/// Words in registers of a thread, and from so many words of a team on: then a step through shared memory is not needed
/// between those of warps and those of registers.
constexpr int64_t kItems = 8, kItemsOfMany = 16, kMany = 4096;
/// Threads of a block, at least.
constexpr int64_t kBlock = 128;
/// Bytes of the words of a team: with what keeps banks apart, less than the 48 KiB that every launch may have.
constexpr int64_t kMostBytes = 32 << 10;
/// What the launches of a digit, of a network and of a merge take where lines are few (H200).
constexpr int64_t kNsOfDigit = 12000, kNsOfNetwork = 18000, kNsOfMerge = 10000;
/// Where lanes look for a limit: words of a team, at least, and words of a lane, of which more want a larger team.
constexpr int64_t kLeastWithLimit = 256, kStepsOfLane = 16;
/// Words that are worth a network for a limit: so many times those that it sorts.
constexpr int64_t kWorthLimit = 4;

int64_t powerOfTwoFrom(int64_t n) { return int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(n, 1)))); }

class SortGenerator final : public GeneratorFor<SortSchedule, SortProblem> {
public:
  std::optional<SortProblem> analyze(const RegionProblem &region) const override {
    auto op = region.findYielded<prim::ArgSortOp>();
    if (!op)
      return std::nullopt;
    const SmallVector<AffineExpr> sizes = prim::getSizes(op.getOperand());
    return SortProblem{op, SmallVector<AffineExpr>(ArrayRef(sizes).drop_back(2)), sizes[sizes.size() - 2], sizes.back(),
                       prim::getSizes(op.getResult()).back()};
  }

  FailureOr<SortSchedule> decide(const RegionProblem &region, const SortProblem &p) const override {
    SortSchedule::Params params;
    const int64_t most = getLargestSize(p.rows, p.op);
    if (!p.isSingle())
      return params.get(region.getContext());
    if (p.isHuge()) {
      setDigits(params, p);
      return params.get(region.getContext());
    }
    const int64_t largest = kMostBytes * 8 / p.wordBits(), whole = powerOfTwoFrom(most);
    const int64_t likely = std::max<int64_t>(1, getLikelySize(p.rows, p.op, usual::kRowLength));
    if (decideLimit(p, most, likely, std::min(largest, whole), params))
      return params.get(region.getContext());
    setTeam(params, std::min(largest, whole));
    if (whole > largest) {
      params.merges = int64_t(llvm::Log2_64(uint64_t(whole / largest)));
      params.block = params.across;
      if (kNsOfDigit * digitsOf(p) < kNsOfNetwork + kNsOfMerge * params.merges) {
        params = SortSchedule::Params();
        setDigits(params, p);
      }
    }
    return params.get(region.getContext());
  }

  /// Fewer and more words in the registers of a thread.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                       const SortProblem &p) const override {
    const SortSchedule chosen = *decide(region, p);
    if (chosen.getItems() == 0)
      return withOtherBlocks(chosen);
    SmallVector<kernel::ScheduleAttr> others;
    if (chosen.getDigits()) {
      for (int64_t items : {chosen.getItems() / 2, chosen.getItems() * 2}) {
        SortSchedule::Params params = chosen.getParams();
        params.items = items;
        others.push_back(params.get(region.getContext()));
      }
      return others;
    }
    const int64_t words = networkSize(chosen);
    for (int64_t items : {chosen.getItems() / 2, chosen.getItems() * 2}) {
      SortSchedule::Params params = chosen.getParams();
      if (items < 4 || items > kItemsOfMany || items > words || words / items > kMostThreads)
        continue;
      params.items = items;
      params.across = words / items;
      params.block = params.merges || params.limit ? params.across : std::max(params.across, kBlock);
      if (params.block >= machine::kWarpThreads)
        others.push_back(params.get(region.getContext()));
    }
    return others;
  }

  SmallVector<Launch> makeLaunches(const SortProblem &p, SortSchedule s) const override {
    MLIRContext *context = s.getContext();
    if (s.getItems() == 0)
      return {launchOf(p.lines() * p.rows, s.getBlock())};
    if (s.getDigits())
      return makeDigitLaunches(p, s);
    const int64_t words = networkSize(s), teams = s.getBlock() / s.getAcross();
    SmallVector<Launch> launches;
    auto add = [&](Launch launch, StringRef suffix) {
      launch.suffix = suffix.str();
      if (!suffix.empty())
        launch.temporaries = {wordsType(p, leftWords(p, s))};
      launches.push_back(launch);
    };
    auto sorting = [&](unsigned number) {
      Launch launch;
      launch.tasks = prim::simplifySize((p.lines() * partsOfLaunch(p, s, number)).ceilDiv(teams));
      launch.device = deviceAttr(context, s.getBlock());
      launch.doesWork = number == 0;
      return launch;
    };
    add(sorting(0), s.getMerges() || s.getParts() > 1 ? "_parts" : "");
    if (s.getParts() > 1)
      add(sorting(1), "");
    for (int64_t merge = 0; merge < s.getMerges(); ++merge) {
      const int64_t length = words << merge;
      add(launchOf(p.lines() * partsOfLength(p, length) * keptOf(p, length), kMergeThreads),
          merge + 1 < s.getMerges() ? "_merge" + std::to_string(merge) : "");
    }
    return launches;
  }

  void emitTasks(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, Value begin, Value) const override {
    if (s.getItems() == 0)
      emitCounting(p, s, e, begin);
    else if (s.getDigits())
      emitDigits(p, s, number, e, begin);
    else if (s.getMerges() && number > 0)
      emitMerge(p, s, number - 1, e, begin);
    else
      emitNetwork(p, s, number, e, begin);
  }

private:
  static constexpr int64_t kMostThreads = 1024;

  /// A team for so many words, and blocks of one or more teams.
  static void setTeam(SortSchedule::Params &params, int64_t words) {
    params.items = std::min(words, words >= kMany ? kItemsOfMany : kItems);
    params.across = words / params.items;
    params.block = std::max(params.across, kBlock);
  }

  static int64_t digitsOf(const SortProblem &p) { return llvm::divideCeil(int64_t(p.keyBits()), kDigitBits); }
  static void setDigits(SortSchedule::Params &params, const SortProblem &p) {
    params.block = params.across = kDigitThreads;
    params.items = kItems;
    params.digits = digitsOf(p);
  }

  /// The smallest network that takes what a limit leaves, if it is small beside the line. `largest`: that there is.
  static bool decideLimit(const SortProblem &p, int64_t most, int64_t likely, int64_t largest,
                          SortSchedule::Params &params) {
    const std::optional<int64_t> count = prim::getConstantSize(p.count);
    if (!count || *count < 1)
      return false;
    const int64_t processors = machine::getDefaultGpu(p.op->getContext()).getMultiprocessors();
    const int64_t lines = std::max<int64_t>(1, getLikelySize(p.lines(), p.op, /*usual=*/1));
    const int64_t idle = int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(processors / lines, 1))));
    for (int64_t words = kLeastWithLimit; words <= largest && words * kWorthLimit <= likely; words *= 2) {
      const int64_t mostParts = std::min(words / *count, likely / (words * kWorthLimit));
      if (mostParts < 1)
        continue;
      auto steps = [&](int64_t parts) { return int64_t(llvm::divideCeil(llvm::divideCeil(most, parts), words)); };
      int64_t parts = std::min(idle, int64_t(llvm::bit_floor(uint64_t(mostParts))));
      const bool canGrow = words * 2 <= largest && words * 2 * kWorthLimit <= likely;
      while (!canGrow && *count * steps(parts) > words && parts * 2 <= mostParts)
        parts *= 2;
      const bool isSlow = likely / (parts * words) > kStepsOfLane;
      if (*count * steps(parts) > words || (isSlow && canGrow))
        continue;
      setTeam(params, words);
      params.block = params.across;
      params.limit = true;
      params.parts = parts;
      return true;
    }
    return false;
  }

  static void emitCounting(const SortProblem &p, SortSchedule s, Emitter &e, Value begin) {
    OpBuilder &b = e.builder();
    const Type i64 = b.getI64Type();
    SmallVector<AffineExpr> grid(p.batch);
    grid.push_back(p.rows);
    forItem(e, prim::product(s.getContext(), grid), s.getBlock(), begin, [&](Index item) {
      SmallVector<Index> at = e.delinearize(item, grid);
      const Index own = at.pop_back_val();
      const Value place = e.loop(e.i64(0), e.size(p.rows), 1, e.i64(0), [&](Index other, ValueRange before) {
        return SmallVector<Value>{arith::AddIOp::create(
            b, e.loc(), before[0], arith::ExtUIOp::create(b, e.loc(), i64, comesBefore(p, e, at, other, own)))};
      })[0];
      const Value isWanted = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, place, e.size(p.count));
      e.ifThen(isWanted, [&] {
        SmallVector<Index> to(at);
        to.push_back(e.uniform(place));
        e.store(own.base, e.output(0), i64, prim::getSizes(p.op.getResult()), to);
      });
    });
  }

  /// Whether row x of a batch stands before row y: by the first key where they differ, else by their numbers.
  static Value comesBefore(const SortProblem &p, Emitter &e, ArrayRef<Index> batch, const Index &x, const Index &y) {
    OpBuilder &b = e.builder();
    const Type element = elementOf(p.op.getOperand());
    auto keyOf = [&](const Index &row, const Index &key) {
      SmallVector<Index> at(batch);
      at.append({row, key});
      return e.emit(p.op.getOperand(), at);
    };
    auto both = [&](Value s, Value t) -> Value { return arith::AndIOp::create(b, e.loc(), s, t); };
    auto either = [&](Value s, Value t) -> Value { return arith::OrIOp::create(b, e.loc(), s, t); };
    auto less = [&](Value s, Value t) -> Value {
      if (p.op.getDescending())
        std::swap(s, t);
      if (isa<FloatType>(element)) {
        // What is no number is above all numbers.
        const Value below = arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::OLT, s, t);
        return either(below, both(arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::ORD, s, s),
                                  arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::UNO, t, t)));
      }
      const bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
      return arith::CmpIOp::create(b, e.loc(), isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, s,
                                   t);
    };
    const Value isFirst = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, x.base, y.base);
    const Value no = arith::ConstantOp::create(b, e.loc(), b.getBoolAttr(false));
    auto compare = [&](const Index &key, Value before, Value decided) {
      const Value s = keyOf(x, key), t = keyOf(y, key), below = less(s, t), above = less(t, s);
      return std::pair(either(before, both(e.isNot(decided), below)), either(decided, either(below, above)));
    };
    Value before, decided;
    if (prim::getConstantSize(p.keys) == 1) {
      std::tie(before, decided) = compare(e.constant(0), no, no);
    } else {
      const SmallVector<Value> result = e.loop(e.i64(0), e.size(p.keys), 1, {no, no}, [&](Index key, ValueRange known) {
        const auto [nowBefore, nowDecided] = compare(key, known[0], known[1]);
        return SmallVector<Value>{nowBefore, nowDecided};
      });
      before = result[0];
      decided = result[1];
    }
    return either(before, both(e.isNot(decided), isFirst));
  }
};

} // namespace

Type tc::codegen::gpu::SortProblem::element() const { return elementOf(op.getOperand()); }

bool tc::codegen::gpu::SortProblem::isSingle() const {
  return prim::getConstantSize(keys) == 1 && hasOrderedKey(element());
}

unsigned tc::codegen::gpu::SortProblem::keyBits() const {
  return unsigned(op.getKeyBits().value_or(orderedKeyBits(element())));
}

bool tc::codegen::gpu::SortProblem::isHuge() const { return getLargestSize(rows, op) > INT32_MAX; }

unsigned tc::codegen::gpu::SortProblem::wordBits() const {
  const unsigned key = keyBits();
  const std::optional<int64_t> most = prim::getConstantSize(rows);
  return key > 32 || isHuge() ? 128 : key <= 16 && most && *most <= (1 << 16) ? 32 : 64;
}

AffineExpr tc::codegen::gpu::keptOf(const SortProblem &p, int64_t length) {
  const std::optional<int64_t> count = prim::getConstantSize(p.count);
  return getAffineConstantExpr(count ? std::min(*count, length) : length, p.op->getContext());
}

AffineExpr tc::codegen::gpu::partsOfLength(const SortProblem &p, int64_t length) {
  return prim::simplifySize(p.rows.ceilDiv(length));
}

AffineExpr tc::codegen::gpu::partsOfLaunch(const SortProblem &p, SortSchedule s, unsigned number) {
  if (s.getMerges())
    return partsOfLength(p, networkSize(s));
  return getAffineConstantExpr(number == 0 ? s.getParts() : 1, s.getContext());
}

RankedTensorType tc::codegen::gpu::wordsType(const SortProblem &p, AffineExpr words) {
  // There is no tensor of 128 bits: two of 64 are one.
  MLIRContext *context = p.op->getContext();
  const int64_t bits = p.wordBits();
  return prim::makeType(IntegerType::get(context, std::min<int64_t>(bits, 64)),
                        {p.lines(), bits == 128 ? prim::simplifySize(words * 2) : words});
}

AffineExpr tc::codegen::gpu::leftWords(const SortProblem &p, SortSchedule s) {
  return prim::simplifySize(s.getMerges() ? partsOfLength(p, networkSize(s)) * networkSize(s) : p.count * s.getParts());
}

const Generator *tc::codegen::gpuSortGenerator() {
  static const SortGenerator generator;
  return &generator;
}
