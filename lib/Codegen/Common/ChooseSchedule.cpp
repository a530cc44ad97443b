//===- ChooseSchedule.cpp - decide how each region runs -----------------------------------------------------------===//
//
// Asks the code generators in order; the first that accepts a region writes the schedule attribute. Regions that have
// one already (from tuning or a test) keep it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"
#include "tc/Codegen/Passes.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Support/Logging.h"

#include "llvm/ADT/StringExtras.h"

namespace tc::codegen {
#define GEN_PASS_DEF_CHOOSESCHEDULEPASS
#include "tc/Codegen/Passes.h.inc"

namespace {
using namespace mlir;

struct ChooseSchedulePass : public impl::ChooseSchedulePassBase<ChooseSchedulePass> {
  using ChooseSchedulePassBase::ChooseSchedulePassBase;

  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](kernel::RegionOp region) {
      if (region.getSchedule())
        return WalkResult::advance();
      auto isConstant = [&](unsigned i) { return region.getInputs()[i].getDefiningOp<prim::ConstantOp>() != nullptr; };
      for (const Generator *generator : allGenerators(device)) {
        FailureOr<kernel::ScheduleAttr> schedule = generator->choose(region, isConstant);
        if (succeeded(schedule)) {
          region.setScheduleAttr(*schedule);
          if (log::isEnabled("schedule")) {
            std::string text;
            llvm::raw_string_ostream(text) << llvm::join(host::getNodeNames(region.getLoc()), "+") << ": "
                                           << schedule->getStrategy() << " " << schedule->getParams();
            log::write("schedule", text);
          }
          return WalkResult::advance();
        }
      }
      base::emitUnsupported(region) << "no code generator takes this region";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
} // namespace tc::codegen
