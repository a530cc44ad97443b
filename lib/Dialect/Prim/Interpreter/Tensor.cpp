//===- Tensor.cpp - host tensors of the interpreter ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Interpreter/Tensor.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tc::prim;

int64_t Tensor::numElements() const { return countElements(shape); }
int64_t Tensor::sizeBytes() const { return numElements() * getElementBytes(elementType); }

bool tc::prim::isSupportedElementType(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return complex.getElementType().isF32() || complex.getElementType().isF64();
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() >= 1 && integer.getWidth() <= 64 &&
           (integer.getWidth() < 8 || llvm::isPowerOf2_32(integer.getWidth()));
  auto real = dyn_cast<FloatType>(type);
  return real && (real.getWidth() <= 8 || real.getWidth() == 16 || real.getWidth() == 32 || real.getWidth() == 64);
}

int64_t tc::prim::getElementBytes(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * getElementBytes(complex.getElementType());
  return std::max<int64_t>(type.getIntOrFloatBitWidth() / 8, 1);
}

bool tc::prim::isUnsignedElement(Type type) { return type.isUnsignedInteger() || type.isInteger(1); }

int64_t tc::prim::countElements(ArrayRef<int64_t> shape) {
  // A zero anywhere makes the product 0, however large the other sizes.
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; }))
    return -1;
  if (llvm::is_contained(shape, 0))
    return 0;
  __int128 count = 1;
  for (int64_t size : shape)
    if ((count *= size) > (__int128(1) << 46))
      return -1;
  return int64_t(count);
}

Tensor tc::prim::allocateTensor(Type elementType, ArrayRef<int64_t> shape, char *&data) {
  Tensor tensor{elementType, llvm::to_vector(shape), nullptr};
  // calloc: large tensors cost nothing until they are written, and no byte is ever undefined.
  data = static_cast<char *>(std::calloc(std::max<int64_t>(tensor.sizeBytes(), 1), 1));
  if (!data)
    llvm::report_bad_alloc_error("out of memory in the interpreter");
  tensor.bytes = std::shared_ptr<const char>(data, [](const char *p) { std::free(const_cast<char *>(p)); });
  return tensor;
}

//===--- floats narrower than 32 bits -----------------------------------------------------------------------------===//

namespace {

/// Rounds to a binary format with `mantissaBits` after the point and least normal exponent `minExponent`, to nearest
/// even. The result is exact as a double; overflow is left to the caller.
double roundTo(double value, int mantissaBits, int minExponent) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent;
  std::frexp(value, &exponent); // value = m * 2^exponent, 0.5 <= |m| < 1
  int quantum = std::max(exponent - 1, minExponent) - mantissaBits;
  return std::copysign(std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum), value);
}

/// IEEE binary16 and bfloat16: exponent and mantissa widths are parameters.
template <int exponentBits, int mantissaBits> uint16_t encodeHalf(double value) {
  constexpr int bias = (1 << (exponentBits - 1)) - 1, top = (1 << exponentBits) - 1;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) {
    // Keeps the payload's leading bits, as hardware does, and makes the NaN quiet.
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    uint16_t payload = (bits >> (52 - mantissaBits)) & ((1 << mantissaBits) - 1);
    return sign | top << mantissaBits | payload | 1 << (mantissaBits - 1);
  }
  double rounded = std::fabs(roundTo(value, mantissaBits, 1 - bias));
  if (rounded >= std::ldexp(1.0, bias + 1))
    return sign | top << mantissaBits;
  if (rounded < std::ldexp(1.0, 1 - bias))
    return sign | uint16_t(std::ldexp(rounded, mantissaBits + bias - 1));
  int exponent;
  double mantissa = std::frexp(rounded, &exponent);
  uint16_t fraction = uint16_t(std::ldexp(mantissa, mantissaBits + 1)) & ((1 << mantissaBits) - 1);
  return sign | uint16_t(exponent - 1 + bias) << mantissaBits | fraction;
}

/// The same of an f32: normal results by adding half of the last place to the bits, less where that place is even.
template <int exponentBits, int mantissaBits> uint16_t encodeHalf(float value) {
  constexpr uint32_t bias = (1 << (exponentBits - 1)) - 1, shift = 23 - mantissaBits;
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t magnitude = bits & 0x7fffffff, exponent = magnitude >> 23;
  if (exponent < 128 - bias || exponent > 127 + bias)
    return encodeHalf<exponentBits, mantissaBits>(double(value));
  const uint32_t rounded = magnitude + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1);
  return uint16_t(bits >> 31 << 15 | ((rounded >> shift) - ((127 - bias) << mantissaBits)));
}

template <int exponentBits, int mantissaBits> double decodeHalf(uint16_t bits) {
  constexpr int bias = (1 << (exponentBits - 1)) - 1, top = (1 << exponentBits) - 1;
  int exponent = (bits >> mantissaBits) & top, fraction = bits & ((1 << mantissaBits) - 1);
  double value;
  if (exponent == top) {
    uint64_t wide = uint64_t(0x7ff) << 52 | uint64_t(fraction) << (52 - mantissaBits);
    std::memcpy(&value, &wide, 8);
  } else if (exponent == 0) {
    value = std::ldexp(double(fraction), 1 - bias - mantissaBits);
  } else {
    value = std::ldexp(double(fraction | 1 << mantissaBits), exponent - bias - mantissaBits);
  }
  return bits & 0x8000 ? -value : value;
}

uint8_t encodeSmall(double value, const llvm::fltSemantics &semantics) {
  // Formats of finite numbers only: overflow gives the largest one, NaN gives -0.
  if (!APFloat::semanticsHasNaN(semantics)) {
    double largest = APFloat::getLargest(semantics).convertToDouble();
    value = std::isnan(value) ? -0.0 : std::clamp(value, -largest, largest);
  }
  // Powers of two: what has no exponent is NaN but for 0, which is the least of them.
  if (!APFloat::semanticsHasSignedRepr(semantics)) {
    if (!(value >= 0 && std::isfinite(value)))
      return uint8_t(APFloat::getNaN(semantics).bitcastToAPInt().getZExtValue());
    value = std::max(value, APFloat::getSmallest(semantics).convertToDouble());
  }
  APFloat exact(value);
  bool loses;
  exact.convert(semantics, APFloat::rmNearestTiesToEven, &loses);
  return uint8_t(exact.bitcastToAPInt().getZExtValue());
}

double decodeSmall(uint8_t bits, const llvm::fltSemantics &semantics, unsigned width) {
  APFloat exact(semantics, APInt(width, bits & ((1u << width) - 1)));
  bool loses;
  exact.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return exact.convertToDouble();
}

/// The double nearest to an integer, or, where that is not exact, the neighbour with an odd mantissa.
double toDoubleOdd(int64_t value, bool isUnsigned) {
  bool negative = !isUnsigned && value < 0;
  uint64_t magnitude = negative ? 0 - uint64_t(value) : uint64_t(value);
  if (int excess = 11 - int(llvm::countl_zero(magnitude | 1)); excess > 0)
    if (uint64_t lost = magnitude & ((uint64_t(1) << excess) - 1))
      magnitude = (magnitude - lost) | uint64_t(1) << excess;
  return negative ? -double(magnitude) : double(magnitude);
}

template <typename To, typename From> std::vector<To> castAll(const char *bytes, int64_t count) {
  const From *from = reinterpret_cast<const From *>(bytes);
  return std::vector<To>(from, from + count);
}

template <typename To, typename From> void storeAll(ArrayRef<From> values, char *bytes) {
  To *to = reinterpret_cast<To *>(bytes);
  for (size_t i = 0; i < values.size(); ++i)
    to[i] = static_cast<To>(values[i]);
}

} // namespace

//===--- whole tensors --------------------------------------------------------------------------------------------===//

std::vector<double> tc::prim::toDoubles(const Tensor &tensor) {
  Type type = tensor.elementType;
  int64_t count = tensor.numElements();
  const char *bytes = tensor.bytes.get();
  if (type.isF64())
    return castAll<double, double>(bytes, count);
  if (type.isF32())
    return castAll<double, float>(bytes, count);
  std::vector<double> values(count);
  if (isa<IntegerType>(type)) {
    std::vector<int64_t> ints = toInts(tensor);
    bool isUnsigned = isUnsignedElement(type);
    for (int64_t i = 0; i < count; ++i)
      values[i] = toDoubleOdd(ints[i], isUnsigned);
    return values;
  }
  if (type.isF16() || type.isBF16()) {
    const uint16_t *halves = reinterpret_cast<const uint16_t *>(bytes);
    for (int64_t i = 0; i < count; ++i)
      values[i] = type.isF16() ? decodeHalf<5, 10>(halves[i]) : decodeHalf<8, 7>(halves[i]);
    return values;
  }
  auto real = cast<FloatType>(type);
  double table[256];
  for (unsigned bits = 0; bits < 256; ++bits)
    table[bits] = decodeSmall(bits, real.getFloatSemantics(), real.getWidth());
  for (int64_t i = 0; i < count; ++i)
    values[i] = table[uint8_t(bytes[i])];
  return values;
}

std::vector<int64_t> tc::prim::toInts(const Tensor &tensor) {
  int64_t count = tensor.numElements();
  const char *bytes = tensor.bytes.get();
  bool isUnsigned = isUnsignedElement(tensor.elementType);
  switch (getElementBytes(tensor.elementType)) {
  case 1:
    return isUnsigned ? castAll<int64_t, uint8_t>(bytes, count) : castAll<int64_t, int8_t>(bytes, count);
  case 2:
    return isUnsigned ? castAll<int64_t, uint16_t>(bytes, count) : castAll<int64_t, int16_t>(bytes, count);
  case 4:
    return isUnsigned ? castAll<int64_t, uint32_t>(bytes, count) : castAll<int64_t, int32_t>(bytes, count);
  default:
    return castAll<int64_t, int64_t>(bytes, count);
  }
}

Tensor tc::prim::fromDoubles(Type type, ArrayRef<int64_t> shape, ArrayRef<double> values) {
  char *bytes;
  Tensor tensor = allocateTensor(type, shape, bytes);
  if (type.isF64()) {
    std::memcpy(bytes, values.data(), values.size() * 8);
  } else if (type.isF32()) {
    storeAll<float>(values, bytes);
  } else if (type.isF16()) {
    for (size_t i = 0; i < values.size(); ++i)
      reinterpret_cast<uint16_t *>(bytes)[i] = encodeHalf<5, 10>(values[i]);
  } else if (type.isBF16()) {
    for (size_t i = 0; i < values.size(); ++i)
      reinterpret_cast<uint16_t *>(bytes)[i] = encodeHalf<8, 7>(values[i]);
  } else {
    const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
    for (size_t i = 0; i < values.size(); ++i)
      bytes[i] = char(encodeSmall(values[i], semantics));
  }
  return tensor;
}

Tensor tc::prim::fromInts(Type type, ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
  char *bytes;
  Tensor tensor = allocateTensor(type, shape, bytes);
  unsigned width = type.getIntOrFloatBitWidth();
  switch (getElementBytes(type)) {
  case 1:
    for (size_t i = 0; i < values.size(); ++i) {
      uint64_t low = uint64_t(values[i]) << (64 - width);
      bytes[i] = char(isUnsignedElement(type) ? int64_t(low >> (64 - width)) : int64_t(low) >> (64 - width));
    }
    break;
  case 2:
    storeAll<int16_t>(values, bytes);
    break;
  case 4:
    storeAll<int32_t>(values, bytes);
    break;
  default:
    storeAll<int64_t>(values, bytes);
  }
  return tensor;
}

Tensor tc::prim::asParts(const Tensor &tensor) {
  Tensor parts = tensor;
  parts.elementType = cast<ComplexType>(tensor.elementType).getElementType();
  parts.shape.push_back(2);
  return parts;
}

Tensor tc::prim::asComplex(const Tensor &parts) {
  Tensor tensor = parts;
  tensor.elementType = ComplexType::get(parts.elementType);
  tensor.shape.pop_back();
  return tensor;
}

Tensor tc::prim::convertFloats(const Tensor &tensor, Type elementType) {
  if (tensor.elementType == elementType)
    return tensor;
  if (isa<ComplexType>(elementType))
    return asComplex(convertFloats(asParts(tensor), cast<ComplexType>(elementType).getElementType()));
  // Weights of gigabytes are rounded at compile time: without doubles in memory.
  if (tensor.elementType.isF32() && (elementType.isF16() || elementType.isBF16())) {
    char *bytes;
    Tensor result = allocateTensor(elementType, tensor.shape, bytes);
    const float *from = reinterpret_cast<const float *>(tensor.bytes.get());
    uint16_t *to = reinterpret_cast<uint16_t *>(bytes);
    const int64_t count = tensor.numElements();
    if (elementType.isF16())
      for (int64_t i = 0; i < count; ++i)
        to[i] = encodeHalf<5, 10>(from[i]);
    else
      for (int64_t i = 0; i < count; ++i)
        to[i] = encodeHalf<8, 7>(from[i]);
    return result;
  }
  return fromDoubles(elementType, tensor.shape, toDoubles(tensor));
}

//===--- elements of 2 and 4 bits ---------------------------------------------------------------------------------===//

static bool isPacked(Type type) {
  return type.isIntOrFloat() && (type.getIntOrFloatBitWidth() == 4 || type.getIntOrFloatBitWidth() == 2);
}

/// The value of `width` low bits as one byte, as a Tensor holds it.
static char extend(Type type, unsigned bits) {
  unsigned width = type.getIntOrFloatBitWidth();
  bool negative = isa<IntegerType>(type) && !isUnsignedElement(type) && (bits >> (width - 1) & 1);
  return char(negative ? int(bits) - (1 << width) : int(bits));
}

static void unpackElements(Type type, const char *packed, char *bytes, int64_t count) {
  unsigned width = type.getIntOrFloatBitWidth();
  for (int64_t i = 0, perByte = 8 / width; i < count; ++i)
    bytes[i] = extend(type, uint8_t(packed[i / perByte]) >> (i % perByte * width) & ((1u << width) - 1));
}

static std::vector<char> packElements(const Tensor &tensor) {
  unsigned width = tensor.elementType.getIntOrFloatBitWidth(), perByte = 8 / width;
  int64_t count = tensor.numElements();
  std::vector<char> packed((count + perByte - 1) / perByte, 0);
  for (int64_t i = 0; i < count; ++i)
    packed[i / perByte] |= char((uint8_t(tensor.bytes.get()[i]) & ((1u << width) - 1)) << (i % perByte * width));
  return packed;
}

Tensor tc::prim::changeStorage(const Tensor &tensor, Type elementType, ArrayRef<int64_t> shape) {
  if (isPacked(elementType)) {
    char *bytes;
    Tensor result = allocateTensor(elementType, shape, bytes);
    unpackElements(elementType, tensor.bytes.get(), bytes, result.numElements());
    return result;
  }
  if (!isPacked(tensor.elementType))
    return {elementType, llvm::to_vector(shape), tensor.bytes};
  char *bytes;
  Tensor result = allocateTensor(elementType, shape, bytes);
  llvm::copy(packElements(tensor), bytes);
  return result;
}

//===--- attributes -----------------------------------------------------------------------------------------------===//

namespace {

std::optional<Tensor> fromDense(DenseElementsAttr dense) {
  Type type = dense.getElementType();
  char *bytes;
  Tensor tensor = allocateTensor(type, dense.getType().getShape(), bytes);
  int64_t count = tensor.numElements(), elementBytes = getElementBytes(type);
  if (type.getIntOrFloatBitWidth() >= 8) {
    ArrayRef<char> raw = dense.getRawData();
    if (!dense.isSplat())
      std::memcpy(bytes, raw.data(), count * elementBytes);
    for (int64_t i = 0; i < count && dense.isSplat(); ++i)
      std::memcpy(bytes + i * elementBytes, raw.data(), elementBytes);
    return tensor;
  }
  if (isa<IntegerType>(type)) {
    for (APInt value : dense.getValues<APInt>())
      *bytes++ = extend(type, value.getZExtValue());
    return tensor;
  }
  for (APFloat value : dense.getValues<APFloat>())
    *bytes++ = char(value.bitcastToAPInt().getZExtValue());
  return tensor;
}

/// A tensor on bytes that live at least as long as the context; they are copied only where they are packed or not
/// aligned.
std::optional<Tensor> fromBytes(RankedTensorType type, ArrayRef<char> raw) {
  Type elementType = type.getElementType();
  int64_t count = countElements(type.getShape()), elementBytes = getElementBytes(elementType);
  bool packed = isPacked(elementType);
  unsigned width = elementType.getIntOrFloatBitWidth();
  if (count < 0 || int64_t(raw.size()) != (packed ? (count * width + 7) / 8 : count * elementBytes))
    return std::nullopt;
  if (!packed && uintptr_t(raw.data()) % elementBytes == 0)
    return Tensor{elementType, llvm::to_vector(type.getShape()),
                  std::shared_ptr<const char>(std::shared_ptr<void>(), raw.data())};
  char *bytes;
  Tensor tensor = allocateTensor(elementType, type.getShape(), bytes);
  if (!packed)
    std::memcpy(bytes, raw.data(), raw.size());
  else
    unpackElements(elementType, raw.data(), bytes, count);
  return tensor;
}

DenseElementsAttr toDense(const Tensor &tensor, bool splat) {
  RankedTensorType type = tensor.getType();
  Type elementType = tensor.elementType;
  const char *bytes = tensor.bytes.get();
  int64_t count = splat ? 1 : tensor.numElements();
  unsigned width = elementType.getIntOrFloatBitWidth();
  if (elementType.isInteger(1))
    return DenseElementsAttr::get(type, SmallVector<bool>(bytes, bytes + count));
  if (width >= 8)
    return DenseElementsAttr::getFromRawBuffer(type, ArrayRef(bytes, count * getElementBytes(elementType)));
  SmallVector<APInt> ints;
  SmallVector<APFloat> floats;
  for (int64_t i = 0; i < count; ++i) {
    ints.emplace_back(width, uint8_t(bytes[i]) & ((1u << width) - 1));
    if (auto real = dyn_cast<FloatType>(elementType))
      floats.emplace_back(real.getFloatSemantics(), ints.back());
  }
  return floats.empty() ? DenseElementsAttr::get(type, ints) : DenseElementsAttr::get(type, floats);
}

} // namespace

std::optional<Tensor> tc::prim::fromAttribute(Attribute attribute) {
  constexpr int64_t kMostRepeated = int64_t(1) << 32;
  auto typed = dyn_cast_or_null<TypedAttr>(attribute);
  auto type = typed ? dyn_cast<RankedTensorType>(typed.getType()) : RankedTensorType();
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat() ||
      !isSupportedElementType(type.getElementType()) || countElements(type.getShape()) < 0)
    return std::nullopt;
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute))
    return dense.isSplat() && countElements(type.getShape()) > kMostRepeated ? std::nullopt
                                                                             : std::optional(fromDense(dense));
  if (auto data = dyn_cast<base::DataAttr>(attribute)) {
    FailureOr<ArrayRef<char>> bytes = base::getBytes(data);
    return succeeded(bytes) ? fromBytes(type, *bytes) : std::nullopt;
  }
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob(); blob && type.getElementTypeBitWidth() >= 8)
      return fromBytes(type, blob->getData());
  return std::nullopt;
}

TypedAttr tc::prim::toAttribute(const Tensor &tensor) {
  const char *bytes = tensor.bytes.get();
  int64_t count = tensor.numElements(), elementBytes = getElementBytes(tensor.elementType);
  bool splat = count > 0;
  for (int64_t i = 1; i < count && splat; ++i)
    splat = std::memcmp(bytes, bytes + i * elementBytes, elementBytes) == 0;
  if (splat || count <= 64)
    return toDense(tensor, splat);
  if (!isPacked(tensor.elementType))
    return base::makeData(tensor.getType(), std::vector<char>(bytes, bytes + tensor.sizeBytes()));
  return base::makeData(tensor.getType(), packElements(tensor));
}
