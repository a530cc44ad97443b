//===- TCDialect.cpp - types, attributes and resources of the base dialect ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "mlir/IR/AsmState.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::base;

/// A map without dims that has one result; a constant as its number.
static ParseResult parseSizeMap(AsmParser &parser, AffineMap &map) {
  int64_t number;
  if (OptionalParseResult parsed = parser.parseOptionalInteger(number); parsed.has_value()) {
    map = AffineMap::getConstantMap(number, parser.getContext());
    return *parsed;
  }
  return parser.parseAffineMap(map);
}
static void printSizeMap(AsmPrinter &printer, AffineMap map) {
  if (map.isSingleConstant())
    printer.getStream() << map.getSingleConstantResult();
  else
    map.print(printer.getStream());
}

#include "tc/Dialect/TC/IR/TCDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "tc/Dialect/TC/IR/TCTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/TC/IR/TCAttrs.cpp.inc"

CostAttr CostAttr::get(AffineExpr flops, AffineExpr bytes) {
  // As many symbols as each expression mentions, so that equal costs are one attribute.
  auto makeMap = [](AffineExpr expr) {
    unsigned symbols = 0;
    expr.walk([&](AffineExpr inner) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(inner))
        symbols = std::max(symbols, symbol.getPosition() + 1);
    });
    return AffineMap::get(0, symbols, expr);
  };
  return get(flops.getContext(), makeMap(flops), makeMap(bytes));
}

LogicalResult CostAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, AffineMap flops, AffineMap bytes) {
  for (AffineMap map : {flops, bytes})
    if (map.getNumDims() != 0 || map.getNumResults() != 1) // C1
      return emitError() << "(C1) #tc.cost needs one size expression without dims each";
  return success();
}

namespace {

// Buffers up to this size are printed with the module; larger ones would drown it.
constexpr size_t kMaxInlineBytes = 64 * 1024;

// Resource handles exist only because the parser of dialect resources resolves each key to one before it reads the
// value. Nothing keeps them.
struct BlobHandle : public AsmDialectResourceHandleBase<BlobHandle, llvm::StringMapEntry<char>, TCDialect> {
  using AsmDialectResourceHandleBase::AsmDialectResourceHandleBase;
};

// Prints and parses blobs as resources: {-# dialect_resources: { tc: { "c_<hash>": "0x..." } } #-}.
struct BlobResources : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  tc::BlobStore &store() const { return static_cast<TCDialect *>(getDialect())->getBlobStore(); }

  FailureOr<AsmDialectResourceHandle> declareResource(StringRef key) const override {
    std::lock_guard<std::mutex> lock(mutex);
    return BlobHandle(&*keys.try_emplace(key).first, static_cast<TCDialect *>(getDialect()));
  }
  std::string getResourceKey(const AsmDialectResourceHandle &handle) const override {
    return cast<BlobHandle>(handle).getResource()->getKey().str();
  }

  LogicalResult parseResource(AsmParsedResourceEntry &entry) const override {
    FailureOr<AsmResourceBlob> blob = entry.parseAsBlob();
    if (failed(blob))
      return failure();
    ArrayRef<char> bytes = blob->getData();
    if (!store().addAs(entry.getKey(),
                       llvm::MemoryBuffer::getMemBufferCopy(StringRef(bytes.data(), bytes.size()), entry.getKey())))
      return entry.emitError() << "blob \"" << entry.getKey() << "\" exists already with other bytes";
    return success();
  }

  void buildResources(Operation *op, const SetVector<AsmDialectResourceHandle> &,
                      AsmResourceBuilder &builder) const override {
    llvm::SetVector<StringRef> inlined;
    AttrTypeWalker walker;
    walker.addWalk([&](DataAttr attr) {
      std::optional<ArrayRef<char>> bytes = store().lookup(attr.getBlob());
      if (tc::BlobStore::isOwnedKey(attr.getBlob()) && bytes && bytes->size() <= kMaxInlineBytes)
        inlined.insert(attr.getBlob());
    });
    op->walk([&](Operation *inner) { walker.walk(inner->getAttrDictionary()); });
    for (StringRef key : inlined)
      builder.buildBlob(key, *store().lookup(key), /*dataAlignment=*/16);
  }

private:
  mutable std::mutex mutex;
  mutable llvm::StringMap<char> keys;
};

} // namespace

void TCDialect::initialize() {
  blobStore = std::make_unique<tc::BlobStore>();
  addTypes<
#define GET_TYPEDEF_LIST
#include "tc/Dialect/TC/IR/TCTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tc/Dialect/TC/IR/TCAttrs.cpp.inc"
      >();
  addInterfaces<BlobResources>();
}

Attribute DataAttr::parse(AsmParser &parser, Type type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string blob, hash;
  uint64_t offset = 0, length = 0;
  if (parser.parseLess() || parser.parseString(&blob) || parser.parseComma() || parser.parseInteger(offset) ||
      parser.parseComma() || parser.parseInteger(length) || parser.parseComma() || parser.parseString(&hash) ||
      parser.parseGreater())
    return {};
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (!tensor) {
    parser.emitError(loc, "#tc.data needs a ranked tensor type");
    return {};
  }
  return parser.getChecked<DataAttr>(loc, parser.getContext(), blob, offset, length, hash, tensor);
}

void DataAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printString(getBlob());
  printer << ", " << getOffset() << ", " << getLength() << ", \"" << getHash() << "\">";
}

LogicalResult DataAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef blob, uint64_t offset,
                               uint64_t length, StringRef hash, RankedTensorType type) {
  std::optional<uint64_t> count = getNumElements(type);
  if (!count || type.getEncoding())
    return emitError() << "(C1) #tc.data needs a static tensor type without encoding, not " << type;
  if (isa<StringType>(type.getElementType())) {
    if (length / 8 <= *count)
      return emitError() << "(C2) #tc.data of " << *count << " strings needs at least " << *count + 1
                         << " offsets of 8 bytes, its length is " << length;
  } else {
    std::optional<uint64_t> size = getPackedSizeBytes(type);
    if (!size)
      return emitError() << "(C1) #tc.data cannot hold elements of type " << type.getElementType();
    if (length != *size)
      return emitError() << "(C2) #tc.data of " << type << " needs " << *size << " bytes, its length is " << length;
  }
  if (hash.size() != 32 || !llvm::all_of(hash, llvm::isHexDigit))
    return emitError() << "(C3) #tc.data needs a content hash of 32 hex digits";
  return success();
}
