//===- Machine.cpp - the machine dialect --------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Machine/IR/Machine.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::machine;

#include "tc/Dialect/Machine/IR/MachineDialect.cpp.inc"
#include "tc/Dialect/Machine/IR/MachineEnums.cpp.inc"
#include "tc/Dialect/Machine/IR/MachineInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Machine/IR/MachineAttrs.cpp.inc"

void MachineDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tc/Dialect/Machine/IR/MachineAttrs.cpp.inc"
      >();
}

using EmitError = function_ref<InFlightDiagnostic()>;

/// The first of the numbers that is negative, by its name.
static LogicalResult verifyNumbers(EmitError emitError, ArrayRef<std::pair<StringRef, int64_t>> numbers) {
  for (auto [name, value] : numbers)
    if (value < 0)
      return emitError() << name << " is at least 0, not " << value;
  return success();
}

LogicalResult CpuAttr::verify(EmitError emitError, StringRef name, StringRef cpu, StringRef features,
                              int64_t vectorBits, int64_t vectorRegisters, bool masks, CpuUnits units, int64_t l1Bytes,
                              int64_t l2Bytes, int64_t l3Bytes, int64_t cores) {
  if (name.empty() || cpu.empty()) // C1
    return emitError() << "a CPU has a name, and one that LLVM knows as cpu";
  if (!llvm::is_contained({128, 256, 512}, vectorBits)) // C2
    return emitError() << "vectorBits is 128, 256 or 512, not " << vectorBits;
  if (vectorRegisters != 16 && vectorRegisters != 32)
    return emitError() << "vectorRegisters is 16 or 32, not " << vectorRegisters;
  if (vectorBits == 512 && (!masks || vectorRegisters != 32))
    return emitError() << "vectors of 512 bits come with masks and 32 registers";
  if (units != CpuUnits::None && vectorBits != 512) // C3
    return emitError() << "units " << stringifyCpuUnits(units) << " need vectors of 512 bits";
  if (failed(verifyNumbers(emitError,
                           {{"l1Bytes", l1Bytes}, {"l2Bytes", l2Bytes}, {"l3Bytes", l3Bytes}, {"cores", cores}}))) // C4
    return failure();
  int64_t inner = 0;
  for (int64_t bytes : {l1Bytes, l2Bytes, l3Bytes}) {
    if (bytes && bytes < inner)
      return emitError() << "a cache of " << bytes << " bytes lies behind one of " << inner;
    inner = std::max(inner, bytes);
  }
  return success();
}

LogicalResult MmaAttr::verify(EmitError emitError, MmaKind kind, ArrayRef<Type> types) {
  if (types.empty()) // C1
    return emitError() << stringifyMmaKind(kind) << " multiplies no type";
  llvm::SmallDenseSet<Type> seen;
  for (Type type : types)
    if (!seen.insert(type).second)
      return emitError() << stringifyMmaKind(kind) << " has " << type << " twice";
  return success();
}

/// The number of sm_N or sm_Na, and whether there is an "a".
static std::optional<std::pair<unsigned, bool>> parseChip(StringRef name) {
  unsigned number = 0;
  const bool exact = name.consume_back("a");
  if (!name.consume_front("sm_") || name.size() < 2 || name.getAsInteger(10, number))
    return std::nullopt;
  return std::pair(number, exact);
}

LogicalResult GpuAttr::verify(EmitError emitError, StringRef name, int64_t multiprocessors, int64_t sharedBytes,
                              int64_t sharedBytesPerBlock, int64_t registers, int64_t threads, int64_t threadsPerBlock,
                              int64_t l2Bytes, int64_t gigabytesPerSecond, int64_t gigaflops, int64_t mmaGigaflops,
                              ArrayAttr mma) {
  if (!parseChip(name)) // C1
    return emitError() << "\"" << name << "\" is no name of a GPU; expected for instance sm_90";
  if (failed(verifyNumbers(emitError, {{"multiprocessors", multiprocessors}, // C3
                                       {"sharedBytes", sharedBytes},
                                       {"sharedBytesPerBlock", sharedBytesPerBlock},
                                       {"registers", registers},
                                       {"threads", threads},
                                       {"threadsPerBlock", threadsPerBlock},
                                       {"l2Bytes", l2Bytes},
                                       {"gigabytesPerSecond", gigabytesPerSecond},
                                       {"gigaflops", gigaflops},
                                       {"mmaGigaflops", mmaGigaflops}})))
    return failure();
  if (sharedBytesPerBlock > sharedBytes) // C2
    return emitError() << "a block gets " << sharedBytesPerBlock << " bytes of shared memory of " << sharedBytes;
  if (threads && threadsPerBlock > threads)
    return emitError() << "a block has " << threadsPerBlock << " threads of " << threads;
  if (threads % kWarpThreads || threadsPerBlock % kWarpThreads) // C3
    return emitError() << "threads come in warps of " << kWarpThreads;
  llvm::SmallDenseSet<unsigned> kinds;
  for (Attribute each : mma ? mma.getValue() : ArrayRef<Attribute>()) { // C4
    auto known = dyn_cast<MmaAttr>(each);
    if (!known)
      return emitError() << "mma holds #machine.mma, not " << each;
    if (!kinds.insert(unsigned(known.getKind())).second)
      return emitError() << "mma has " << stringifyMmaKind(known.getKind()) << " twice";
  }
  return success();
}

bool GpuAttr::hasMma(MmaKind kind) const {
  return getMma() && llvm::any_of(getMma().getAsRange<MmaAttr>(), [&](MmaAttr mma) { return mma.getKind() == kind; });
}

unsigned GpuAttr::getArch() const {
  auto [number, exact] = *parseChip(getName());
  return number * 10 + exact;
}
