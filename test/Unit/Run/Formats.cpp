//===- Formats.cpp - tc-run's element types and file formats --------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Run/Compare.h"
#include "tc/Run/Npz.h"
#include "tc/Run/Pb.h"
#include "tc/Run/Profile.h"
#include "tc/Run/Tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <unistd.h>

using namespace tc::run;

namespace {

Tensor make(tcrt_dtype_t dtype, std::vector<int64_t> dims) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = dims;
  tensor.data.resize(sizeOf(dtype, dims, "test"));
  return tensor;
}

double rounded(tcrt_dtype_t dtype, double value) {
  Tensor tensor = make(dtype, {1});
  setReal(tensor, 0, value);
  return realAt(tensor, 0);
}

std::string temporary(const char *name) { return "/tmp/tc-unit-" + std::to_string(getpid()) + "-" + name; }

} // namespace

TEST_CASE("every small float survives the way over f64") {
  for (tcrt_dtype_t dtype :
       {TCRT_DTYPE_F16, TCRT_DTYPE_BF16, TCRT_DTYPE_F8E4M3FN, TCRT_DTYPE_F8E4M3FNUZ, TCRT_DTYPE_F8E5M2,
        TCRT_DTYPE_F8E5M2FNUZ, TCRT_DTYPE_F8E8M0, TCRT_DTYPE_F4E2M1, TCRT_DTYPE_F6E2M3, TCRT_DTYPE_F6E3M2}) {
    uint32_t bits = isSixBits(dtype) ? 6 : tcrt_dtype_bits(dtype), differing = 0;
    for (uint32_t code = 0; code < 1u << bits; ++code) {
      Tensor from = make(dtype, {1}), to = make(dtype, {1});
      setInteger(from, 0, code);
      double value = realAt(from, 0);
      if (std::isinf(value) && bits == 8)
        continue; // becomes the largest number, as in ONNX Cast
      setReal(to, 0, value);
      // One NaN stands for all.
      if (std::isnan(value) ? !std::isnan(realAt(to, 0)) : from.data != to.data)
        ++differing;
    }
    INFO(tcrt_dtype_name(dtype));
    CHECK(differing == 0);
  }
}

TEST_CASE("small floats round to the nearest, ties to even") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(rounded(TCRT_DTYPE_F16, 1 + 0x1p-11) == 1);
  CHECK(rounded(TCRT_DTYPE_F16, 1 + 3 * 0x1p-11) == 1 + 0x1p-9);
  CHECK(rounded(TCRT_DTYPE_F16, 65519) == 65504);
  CHECK(rounded(TCRT_DTYPE_F16, 65520) == infinity);
  CHECK(rounded(TCRT_DTYPE_F16, -1e9) == -infinity);
  CHECK(rounded(TCRT_DTYPE_F16, 0x1p-25) == 0);
  CHECK(rounded(TCRT_DTYPE_F16, 0x1.8p-25) == 0x1p-24);
  CHECK(rounded(TCRT_DTYPE_BF16, 1 + 0x1p-8) == 1);
  CHECK(rounded(TCRT_DTYPE_BF16, 1 + 3 * 0x1p-8) == 1 + 0x1p-6);
  CHECK(rounded(TCRT_DTYPE_BF16, 1e300) == infinity);
  // ONNX Cast, saturate: values beyond the largest become the largest.
  CHECK(rounded(TCRT_DTYPE_F8E4M3FN, 1e9) == 448);
  CHECK(rounded(TCRT_DTYPE_F8E4M3FN, -infinity) == -448);
  CHECK(rounded(TCRT_DTYPE_F8E4M3FNUZ, 1e9) == 240);
  CHECK(rounded(TCRT_DTYPE_F8E5M2, 1e9) == 57344);
  CHECK(rounded(TCRT_DTYPE_F8E5M2FNUZ, 1e9) == 57344);
  CHECK(rounded(TCRT_DTYPE_F8E4M3FN, 1.0625) == 1);
  CHECK(rounded(TCRT_DTYPE_F8E4M3FN, 1.1875) == 1.25);
  CHECK(rounded(TCRT_DTYPE_F4E2M1, 2.5) == 2);
  CHECK(rounded(TCRT_DTYPE_F4E2M1, 100) == 6);
  CHECK(rounded(TCRT_DTYPE_F6E2M3, 100) == 7.5);
  CHECK(rounded(TCRT_DTYPE_F6E2M3, 0.0625) == 0);
  CHECK(rounded(TCRT_DTYPE_F6E3M2, -infinity) == -28);
}

TEST_CASE("packed integers keep sign and neighbours") {
  Tensor tensor = make(TCRT_DTYPE_I4, {5});
  CHECK(tensor.data.size() == 3);
  for (int64_t i = 0; i < 5; ++i)
    setInteger(tensor, i, i - 3);
  for (int64_t i = 0; i < 5; ++i)
    CHECK(integerAt(tensor, i) == i - 3);
}

TEST_CASE("comparison: NaN, infinities, dtypes, dims, tolerances") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  auto floats = [](std::vector<double> values) {
    Tensor tensor = make(TCRT_DTYPE_F32, {int64_t(values.size())});
    for (size_t i = 0; i < values.size(); ++i)
      setReal(tensor, int64_t(i), values[i]);
    return tensor;
  };
  Tolerance relative, absolute;
  relative.maxRel = 0.01;
  absolute.atol = 0.5;
  CHECK(compare(floats({nan, infinity, 1}), floats({nan, infinity, 1}), relative).isEqual);
  CHECK(!compare(floats({nan, 1}), floats({0, 1}), relative).isEqual);
  CHECK(!compare(floats({infinity}), floats({-infinity}), absolute).isEqual);
  CHECK(compare(floats({100, 0.9}), floats({100, 0}), relative).isEqual);
  CHECK(!compare(floats({100, 1.1}), floats({100, 0}), relative).isEqual);
  CHECK(compare(floats({5.5}), floats({5}), absolute).isEqual);
  CHECK(!compare(floats({5.6}), floats({5}), absolute).isEqual);
  CHECK(!compare(floats({1, 2}), floats({1}), absolute).isEqual);
  CHECK(compare(floats({}), floats({}), relative).isEqual);
  CHECK(!compare(make(TCRT_DTYPE_I32, {1}), make(TCRT_DTYPE_I64, {1}), absolute).isEqual);
  Tensor one = make(TCRT_DTYPE_I64, {1}), two = one;
  setInteger(two, 0, 1);
  CHECK(!compare(one, two, absolute).isEqual);
  CHECK(compare(make(TCRT_DTYPE_BF16, {3}), make(TCRT_DTYPE_F32, {3}), absolute).isEqual);
}

TEST_CASE("strings, sequences, optionals and maps as .pb") {
  Tensor tensor = make(TCRT_DTYPE_F32, {2, 3}), text;
  setReal(tensor, 5, 7);
  text.dtype = TCRT_DTYPE_STRING;
  text.dims = {3};
  text.strings = {"", std::string("a\0b", 3), "\xc3\xa9"};
  std::string path = temporary("value.pb");
  auto readBack = [&](const Value &value, uint32_t kinds) {
    writeFile(path, valueProto("v", value, kinds));
    Value result = readPb(path, kinds);
    unlink(path.c_str());
    return result;
  };
  auto wrap = [](uint32_t kind, std::vector<Value> elements) { return Value{kind, {}, std::move(elements)}; };
  const Value number{TCRT_VALUE_TENSOR, tensor, {}}, words{TCRT_VALUE_TENSOR, text, {}};
  CHECK(readBack(number, TCRT_VALUE_TENSOR).tensor.data == tensor.data);
  CHECK(readBack(words, TCRT_VALUE_TENSOR).tensor.strings == text.strings);
  Value sequence = readBack(wrap(TCRT_VALUE_SEQUENCE, {number, words}), TCRT_VALUE_SEQUENCE);
  REQUIRE(sequence.elements.size() == 2);
  CHECK(sequence.elements[0].tensor.dims == tensor.dims);
  CHECK(sequence.elements[1].tensor.strings == text.strings);
  CHECK(readBack(wrap(TCRT_VALUE_SEQUENCE, {}), TCRT_VALUE_SEQUENCE).elements.empty());
  CHECK(readBack(wrap(TCRT_VALUE_OPTIONAL, {number}), TCRT_VALUE_OPTIONAL).elements.size() == 1);
  CHECK(readBack(wrap(TCRT_VALUE_OPTIONAL, {}), TCRT_VALUE_OPTIONAL).elements.empty());
  const uint32_t nested = TCRT_VALUE_OPTIONAL | TCRT_VALUE_SEQUENCE << 8;
  Value inner = readBack(wrap(TCRT_VALUE_OPTIONAL, {wrap(TCRT_VALUE_SEQUENCE, {number})}), nested);
  REQUIRE(inner.elements.size() == 1);
  CHECK(inner.elements[0].elements[0].tensor.data == tensor.data);
  Tensor values = make(TCRT_DTYPE_F32, {3});
  setReal(values, 2, -1.5);
  const Value pair = wrap(TCRT_VALUE_MAP, {words, {TCRT_VALUE_TENSOR, values, {}}});
  Value map = readBack(wrap(TCRT_VALUE_SEQUENCE, {pair}), TCRT_VALUE_SEQUENCE | TCRT_VALUE_MAP << 8);
  REQUIRE(map.elements.size() == 1);
  CHECK(map.elements[0].elements[0].tensor.strings == text.strings);
  CHECK(map.elements[0].elements[1].tensor.data == values.data);
}

TEST_CASE("damaged .npz and .pb files are refused without harm") {
  Tensor tensor = make(TCRT_DTYPE_F32, {4, 5});
  for (int64_t i = 0; i < 20; ++i)
    setReal(tensor, i, double(i));
  std::string path = temporary("damaged");
  writeNpz(path, {{"a", tensor}, {"b", make(TCRT_DTYPE_I64, {})}});
  const ByteVector npz = readFile(path), pb = tensorProto("t", tensor);
  REQUIRE(readNpz(path).size() == 2);
  CHECK(readNpz(path)[0].second.data == tensor.data);
  std::mt19937 random(3);
  const char *setting = std::getenv("TC_FUZZ_ROUNDS");
  int rounds = setting ? std::atoi(setting) : 2000, refused = 0;
  for (int round = 0; round < rounds; ++round) {
    bool isNpz = round % 2;
    ByteVector bytes = isNpz ? npz : pb;
    for (uint32_t n = 1 + random() % 3; n--;)
      bytes[random() % bytes.size()] = random() % 4 ? uint8_t(random()) : random() % 2 ? 0xff : 0;
    if (random() % 8 == 0)
      bytes.resize(random() % bytes.size());
    writeFile(path, bytes);
    try {
      // The bytes of a tensor read as every kind.
      const uint32_t kinds[] = {TCRT_VALUE_TENSOR, TCRT_VALUE_SEQUENCE, TCRT_VALUE_OPTIONAL, TCRT_VALUE_MAP};
      if (isNpz)
        readNpz(path);
      else
        readPb(path, kinds[random() % 4]);
    } catch (const Failure &failure) {
      CHECK((failure.code == 1 && failure.message.find(": error: ") != std::string::npos));
      ++refused;
    }
  }
  CHECK(refused > rounds / 10);
  unlink(path.c_str());
}

TEST_CASE("what a file says of itself does not break the line of an error") {
  const std::string path = temporary("lines.npy");
  const std::string header = "{'descr': '|\nx\x1b[31m', 'fortran_order': False, 'shape': (3,), }";
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header;
  writeFile(path, ByteVector(text.begin(), text.end()));
  try {
    readNpy(path);
    FAIL("it is read");
  } catch (const Failure &failure) {
    CHECK(failure.message.find("?x?[31m\"") != std::string::npos);
    CHECK(failure.message.find('\n') == std::string::npos);
  }
  unlink(path.c_str());
}

TEST_CASE("only wanted arrays of an .npz are unpacked, and none of one that lies about itself") {
  const std::string path = temporary("lies.npz");
  Tensor x = make(TCRT_DTYPE_F32, {2, 3}), y = make(TCRT_DTYPE_I64, {4});
  setReal(x, 5, 7);
  writeNpz(path, {{"x", x}, {"y", y}});
  const ByteVector good = readFile(path);
  auto refused = [&](const ByteVector &bytes, const std::string &why) {
    writeFile(path, bytes);
    try {
      readNpz(path);
    } catch (const Failure &failure) {
      INFO(failure.message);
      CHECK(failure.code == 1);
      return failure.message.find(why) != std::string::npos;
    }
    return false;
  };
  auto find = [&](const ByteVector &bytes, const std::string &text, size_t from = 0) {
    return size_t(std::search(bytes.begin() + long(from), bytes.end(), text.begin(), text.end()) - bytes.begin());
  };
  std::vector<std::string> seen;
  NamedTensors some = readNpz(path, [&](const std::string &name) {
    seen.push_back(name);
    return name == "x";
  });
  REQUIRE(some.size() == 1);
  CHECK(realAt(some[0].second, 5) == 7);
  CHECK(std::count(seen.begin(), seen.end(), "y") >= 1);
  // What is wrong with an array that is not wanted is none of ours.
  ByteVector bytes = good;
  bytes[find(bytes, "NUMPY", find(bytes, "y.npy"))] = 0;
  writeFile(path, bytes);
  CHECK(readNpz(path, [](const std::string &name) { return name == "x"; }).size() == 1);
  CHECK_THROWS_AS(readNpz(path), Failure);
  // A thrower sees the names first.
  CHECK_THROWS_AS(readNpz(path, [](const std::string &name) -> bool { throw Failure{4, name}; }), Failure);
  // The second entry of the directory names the first one's bytes.
  bytes = good;
  const size_t first = find(bytes, "PK\x01\x02"), second = find(bytes, "PK\x01\x02", first + 4);
  REQUIRE(second < bytes.size());
  const size_t offset = 46 + 5 + 4 + 16; // behind the entry, its name and the two sizes of the Zip64 field
  std::copy_n(bytes.begin() + long(first + offset), 8, bytes.begin() + long(second + offset));
  CHECK(refused(bytes, "member \"y.npy\" has another name in its own header"));
  bytes[second + 46] = 'x';
  CHECK(refused(bytes, "members \"x.npy\" and \"x.npy\" overlap"));
  bytes = good;
  bytes[second + 46] = 'x';
  bytes[find(bytes, "y.npy")] = 'x';
  CHECK(refused(bytes, "there are two members \"x.npy\""));
  unlink(path.c_str());
}

TEST_CASE("large blocks of bytes start at a huge page") {
  for (size_t size : {size_t(0), size_t(1), (size_t(2) << 20) - 1, size_t(2) << 20, (size_t(4) << 20) + 1}) {
    ByteVector bytes(size, 7);
    CHECK(std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 7; }));
    if (size >= size_t(2) << 20)
      CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % (size_t(2) << 20) == 0);
    ByteVector other(bytes);
    CHECK(other == bytes);
  }
}

TEST_CASE("times of kernels add up by node and by group") {
  const std::vector<KernelTime> kernels = {{"/e/l.0/q/MatMul+/e/l.0/q/Add", 60},
                                           {"/e/l.1/q/MatMul+/e/out", 20},
                                           {"/pool/MatMul", 19},
                                           {"head.fc.bias", 0.5},
                                           {"alone", 0.5}};
  const std::vector<NodeTime> nodes = timesOfNodes(kernels);
  REQUIRE(nodes.size() == 7);
  CHECK(nodes[0].name == "/e/l.0/q/Add");
  CHECK(nodes[0].us == 30);
  CHECK(nodes[2].name == "/pool/MatMul");
  const std::vector<NodeTime> groups = timesOfGroups(kernels, 0.01);
  std::vector<std::string> lines;
  for (const NodeTime &group : groups)
    lines.push_back(std::string(2 * group.depth, ' ') + group.name + " " + std::to_string(int(group.us)) + " " +
                    std::to_string(group.kernels));
  // /e/l.0 holds /e/l.0/q alone; head is half a percent.
  CHECK(lines == std::vector<std::string>{"/e 80 2", "  /e/l.0/q 60 1", "  /e/l.1/q 10 1", "/pool 19 1"});
}
