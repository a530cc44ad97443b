//===- Kernel.cpp - the kernel dialect ----------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Kernel/IR/Kernel.h"

#include "tc/Dialect/Machine/IR/Condition.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::kernel;

#include "tc/Dialect/Kernel/IR/KernelDialect.cpp.inc"
#include "tc/Dialect/Kernel/IR/ScheduleEnums.cpp.inc"
#include "tc/Dialect/Kernel/IR/Schedules.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Kernel/IR/KernelAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Kernel/IR/KernelOps.cpp.inc"

void KernelDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tc/Dialect/Kernel/IR/KernelOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tc/Dialect/Kernel/IR/KernelAttrs.cpp.inc"
      >();
}

LogicalResult CaseAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, IntegerSetAttr sizes,
                               tc::machine::MachineAttr machine, ScheduleAttr schedule) {
  return machine::verifyCondition(emitError, "case", sizes, machine);
}

// kernel.region(%x = %a : type, %y = %b : type) -> (types) attributes {...} { ... }
void RegionOp::print(OpAsmPrinter &p) {
  p << '(';
  llvm::interleaveComma(llvm::zip_equal(getBody().getArguments(), getInputs()), p, [&](auto pair) {
    auto [argument, input] = pair;
    p << argument << " = " << input << " : " << input.getType();
  });
  p << ") -> (";
  llvm::interleaveComma(getResultTypes(), p);
  p << ')';
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult RegionOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  auto parseOne = [&]() -> ParseResult {
    Type type;
    if (parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
        parser.parseOperand(operands.emplace_back()) || parser.parseColonType(type))
      return failure();
    arguments.back().type = type;
    types.push_back(type);
    return success();
  };
  SmallVector<Type> results;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOne) || parser.parseArrow() ||
      parser.parseLParen())
    return failure();
  if (failed(parser.parseOptionalRParen()) && (parser.parseTypeList(results) || parser.parseRParen()))
    return failure();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments) ||
      parser.resolveOperands(operands, types, parser.getCurrentLocation(), result.operands))
    return failure();
  result.addTypes(results);
  return success();
}

LogicalResult RegionOp::verify() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("block arguments differ from the inputs");
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().getTypes() != getResultTypes())
    return emitOpError("kernel.yield differs from the results");
  if (getCases() && !getSchedule()) // C1
    return emitOpError("has cases, but no schedule for all else");
  return success();
}
