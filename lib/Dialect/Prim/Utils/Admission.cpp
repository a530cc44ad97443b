//===- Admission.cpp ----------------------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/Admission.h"

#include "tc/Dialect/Prim/IR/Prim.h"

#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

static std::optional<Refusal> refuseTensor(RankedTensorType type) {
  if (type.getRank() > int64_t(kMaxRank))
    return Refusal{base::ErrorKind::Unsupported,
                   llvm::formatv("has {0} dims; at most {1} are supported", type.getRank(), kMaxRank).str()};
  const bool hasExpressions = isa_and_nonnull<DimsAttr>(type.getEncoding());
  const uint64_t limit = uint64_t(1) << kSizeBits;
  auto invalid = [](const llvm::formatv_object_base &what) { return Refusal{base::ErrorKind::Invalid, what.str()}; };
  unsigned __int128 elements = 1;
  for (auto [i, size] : llvm::enumerate(type.getShape())) {
    if (ShapedType::isDynamic(size)) {
      // A sum of numbers that was not folded is one that overflows.
      bool hasSymbol = !hasExpressions;
      if (hasExpressions)
        getSizes(type)[i].walk([&](AffineExpr expr) { hasSymbol |= isa<AffineSymbolExpr>(expr); });
      if (!hasSymbol)
        return invalid(llvm::formatv("has a dim {0} whose size exceeds 64 bits; sizes lie below 2^{1}", i, kSizeBits));
      continue;
    }
    if (size < 0 || uint64_t(size) >= limit)
      return invalid(llvm::formatv("has a dim {0} of size {1}; sizes lie in [0, 2^{2})", i, size, kSizeBits));
    elements *= size ? uint64_t(size) : 1;
    if (elements >= limit)
      return invalid(llvm::formatv("has 2^{0} elements or more up to dim {1}; a tensor has fewer", kSizeBits, i));
  }
  const uint64_t bits = getElementBits(type.getElementType());
  if (elements * bits / 8 >= uint64_t(1) << kByteBits)
    return invalid(llvm::formatv("takes 2^{0} bytes or more; a tensor takes fewer", kByteBits));
  return std::nullopt;
}

std::optional<Refusal> tc::prim::refuseType(Type type) {
  std::optional<Refusal> refusal;
  type.walk([&](RankedTensorType tensor) {
    refusal = refuseTensor(tensor);
    return refusal ? WalkResult::interrupt() : WalkResult::advance();
  });
  return refusal;
}

std::optional<Refusal> tc::prim::refuseName(StringRef name) {
  auto invalid = [](const Twine &what) { return Refusal{base::ErrorKind::Invalid, what.str()}; };
  if (name.size() > kMaxNameBytes)
    return invalid("has a name of " + Twine(name.size()) + " bytes; at most " + Twine(kMaxNameBytes) +
                   " are supported");
  if (name.contains('\0'))
    return invalid("has a name with a NUL character; rename it");
  if (!llvm::json::isUTF8(name))
    return invalid("has a name that is not valid UTF-8; rename it");
  return std::nullopt;
}
