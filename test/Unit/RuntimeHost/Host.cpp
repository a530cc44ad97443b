//===- Host.cpp - The functions of libtcrt-host ---------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "RuntimeHost/Functions.h"
#include "RuntimeHost/Image.h"
#include "tc/Functions/Store.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<uint8_t>;

/// Calls functions on a store of its own.
class Host {
public:
  Host() { tcrt_store_init(&store, nullptr, nullptr); }
  ~Host() { tcrt_store_destroy(&store); }

  tcrt_status_t call(const char *name, std::vector<tcrt_operand_t> operands, std::vector<tcrt_operand_t> results) {
    uint64_t count = 0;
    const tcrt_function_t *functions = tcrt_library_functions(&count);
    const tcrt_function_t *function = std::find_if(
        functions, functions + count, [&](const tcrt_function_t &f) { return !std::strcmp(f.name, name); });
    REQUIRE(function != functions + count);
    tcrt_call_t record = {};
    record.operands = operands.data();
    record.operand_count = uint32_t(operands.size());
    record.results = results.data();
    record.result_count = uint32_t(results.size());
    return function->function(&tcrt_services, &store, &record);
  }

  int64_t intern(const std::string &text) { return tcrt_store_intern(&store, text.data(), text.size()); }

  tcrt_store_t store;
};

struct Image {
  tcrt_status_t status;
  std::vector<int64_t> dims;
  Bytes pixels;
};

Image decode(const Bytes &bytes, int64_t format) {
  Host host;
  // A copy without slack, so that a sanitizer sees the first byte that is read too far.
  std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  int64_t size = int64_t(bytes.size()), handle = 0;
  Image image;
  image.status =
      host.call("image_decode", {{exact.get(), &size, TCRT_DTYPE_U8, 1}, {&format, nullptr, TCRT_DTYPE_I64, 0}},
                {{&handle, nullptr, TCRT_DTYPE_INVALID, 0}});
  if (image.status != TCRT_OK)
    return image;
  tcrt_operand_t tensor;
  REQUIRE(tcrt_store_get_tensor(&host.store, handle, &tensor) == TCRT_OK);
  REQUIRE(tensor.dtype == TCRT_DTYPE_U8);
  REQUIRE(tensor.rank == 3);
  image.dims.assign(tensor.dims, tensor.dims + 3);
  const auto *data = static_cast<const uint8_t *>(tensor.data);
  image.pixels.assign(data, data + image.dims[0] * image.dims[1] * image.dims[2]);
  return image;
}

Bytes read(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::filesystem::path> imageFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(TC_TEST_IMAGES))
    if (entry.path().extension() != ".rgb")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

int largestDifference(const Bytes &a, const Bytes &b) {
  int largest = a.size() == b.size() ? 0 : 256;
  for (size_t i = 0; i < a.size() && largest < 256; ++i)
    largest = std::max(largest, std::abs(int(a[i]) - int(b[i])));
  return largest;
}

bool isEmpty(const Image &image) { return image.status == TCRT_OK && image.dims == std::vector<int64_t>{0, 0, 3}; }

Bytes bytesOf(const std::string &text) { return Bytes(text.begin(), text.end()); }

/// A bitmap header of 40 bytes and what follows it; the pixels begin at `offset`.
Bytes bitmap(int32_t width, int32_t height, uint16_t bits, uint32_t compression, uint32_t offset, const Bytes &rest) {
  Bytes bytes = {'B', 'M'};
  auto put = [&](uint32_t value, int count) {
    for (int i = 0; i < count; ++i)
      bytes.push_back(uint8_t(value >> (8 * i)));
  };
  put(0, 4), put(0, 4), put(offset, 4), put(40, 4), put(uint32_t(width), 4), put(uint32_t(height), 4), put(1, 2);
  put(bits, 2), put(compression, 4), put(0, 4), put(0, 4), put(0, 4), put(0, 4), put(0, 4);
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

} // namespace

TEST_CASE("images are as Pillow reads them") {
  std::vector<std::filesystem::path> files = imageFiles();
  REQUIRE(files.size() >= 30);
  for (const auto &path : files) {
    INFO(path.filename().string());
    Bytes bytes = read(path), expected = read(path.string() + ".rgb");
    Image rgb = decode(bytes, TCRT_IMAGE_RGB), bgr = decode(bytes, TCRT_IMAGE_BGR),
          gray = decode(bytes, TCRT_IMAGE_GRAY);
    REQUIRE(rgb.status == TCRT_OK);
    CHECK(rgb.dims == std::vector<int64_t>{13, 19, 3});
    CHECK(gray.dims == std::vector<int64_t>{13, 19, 1});
    // The lossy transforms of JPEG 2000 are in floating point.
    CHECK(largestDifference(rgb.pixels, expected) <= (path.stem() == "lossy" ? 1 : 0));
    REQUIRE(bgr.pixels.size() == rgb.pixels.size());
    for (size_t i = 0; i < gray.pixels.size(); ++i) {
      const uint8_t *p = &rgb.pixels[3 * i];
      bool isSame = bgr.pixels[3 * i] == p[2] && bgr.pixels[3 * i + 1] == p[1] && bgr.pixels[3 * i + 2] == p[0];
      uint32_t luma = (p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 32768u) >> 16;
      if (!isSame || gray.pixels[i] != luma)
        FAIL("pixel " << i);
    }
  }
}

TEST_CASE("portable formats: text, comments, other largest values, PAM") {
  CHECK(decode(bytesOf("P3 # a comment\n2 1\n# another\n15  15 0 7  1 2 3"), 0).pixels ==
        Bytes{255, 0, 119, 17, 34, 51});
  CHECK(decode(bytesOf("P1\n3 2\n101\n0 1 0"), 2).pixels == Bytes{0, 255, 0, 255, 0, 255});
  CHECK(decode(bytesOf("P2\n2 1\n65535\n65535 128"), 2).pixels == Bytes{255, 0});
  CHECK(decode(bytesOf(std::string("P5 2 1 65535\n\xff\xff\x80\x00", 17)), 2).pixels == Bytes{255, 128});
  CHECK(decode(bytesOf("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcd"), 0).pixels ==
        Bytes{'a', 'b', 'c'});
  for (const char *bad :
       {"P6", "P6\n", "P6 0 1 255\n", "P6 1 1 0\nabc", "P6 1 1 65536\nabcdef", "P6 2 1 255\nabc", "P3 1 1 255 1 2",
        "P2 1 1 7 8", "P1 1 1 2", "P7\nWIDTH 1", "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 1\nENDHDR\nabcde",
        "P6 99999999999999999999 1 255\n"}) {
    INFO(bad);
    CHECK(isEmpty(decode(bytesOf(bad), 0)));
  }
}

TEST_CASE("bitmaps: run lengths, masks, 16 bits, rows from the top") {
  const Bytes palette = {0, 0, 0, 0, 30, 20, 10, 0, 60, 50, 40, 0};
  Bytes rest = palette;
  rest.resize(1024);
  // Row 0: two of colour 1, the end; row 1: three literals and a fill byte.
  for (uint8_t byte : {2, 1, 0, 0, 0, 3, 2, 1, 2, 0, 0, 1})
    rest.push_back(byte);
  CHECK(decode(bitmap(3, 2, 8, 1, 54 + 1024, rest), 0).pixels ==
        Bytes{40, 50, 60, 10, 20, 30, 40, 50, 60, 10, 20, 30, 10, 20, 30, 0, 0, 0});
  // Four bits: a run of 0x12 is 1, 2, 1.
  rest = palette;
  rest.resize(64);
  for (uint8_t byte : {3, 0x12, 0, 1})
    rest.push_back(byte);
  CHECK(decode(bitmap(3, 1, 4, 2, 54 + 64, rest), 0).pixels == Bytes{10, 20, 30, 40, 50, 60, 10, 20, 30});
  CHECK(decode(bitmap(1, -2, 16, 0, 54, {0x1f, 0, 0, 0, 0, 0x7c, 0, 0}), 0).pixels == Bytes{0, 0, 255, 255, 0, 0});
  CHECK(decode(bitmap(1, 1, 16, 3, 66, {0, 0xf8, 0, 0, 0xe0, 7, 0, 0, 0x1f, 0, 0, 0, 0xe0, 7, 0, 0}), 0).pixels ==
        Bytes{0, 255, 0});
  for (const Bytes &bad :
       {bitmap(0, 1, 24, 0, 54, {}), bitmap(-1, 1, 24, 0, 54, {0, 0, 0, 0}), bitmap(1, 1, 24, 0, 54, {0, 0, 0}),
        bitmap(1, 1, 7, 0, 54, {0, 0, 0, 0}), bitmap(1, 1, 24, 4, 54, {0, 0, 0, 0}), bitmap(1, 1, 24, 0, 4000, {}),
        bitmap(INT32_MAX, INT32_MIN, 32, 0, 54, {0, 0, 0, 0}), bitmap(2, 2, 8, 1, 54, {5}), bytesOf("BM")})
    CHECK(isEmpty(decode(bad, 0)));
}

TEST_CASE("what is no image is empty, and what is too large is refused") {
  CHECK(isEmpty(decode({}, 0)));
  CHECK(isEmpty(decode(bytesOf("GIF89a"), 0)));
  CHECK(decode(bytesOf("nothing"), 2).dims == std::vector<int64_t>{0, 0, 1});
  CHECK(decode(bytesOf("P6 60000 60000 255\nabc"), 0).status == TCRT_ERROR_REFUSED);
  CHECK(std::string(tcrt_last_error()).find("60000 x 60000") != std::string::npos);
  CHECK(decode(bitmap(100000, 100000, 8, 1, 54, {0, 1}), 0).status == TCRT_ERROR_REFUSED);
}

// Every file cut off at every length, and with bytes changed: an image, an empty one or a refusal, and no harm.
// TC_FUZZ_ROUNDS changes more often.
TEST_CASE("damaged images do no harm") {
  const char *text = std::getenv("TC_FUZZ_ROUNDS");
  int rounds = text ? std::atoi(text) : 60;
  std::mt19937 random(1);
  auto isFine = [](const Image &image) { return image.status == TCRT_OK || image.status == TCRT_ERROR_REFUSED; };
  int decoded = 0, empty = 0;
  for (const auto &path : imageFiles()) {
    INFO(path.filename().string());
    const Bytes bytes = read(path);
    for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 40)
      CHECK(isFine(decode(Bytes(bytes.begin(), bytes.begin() + long(size)), 0)));
    for (int round = 0; round < rounds; ++round) {
      Bytes changed = bytes;
      for (unsigned i = random() % 6 + 1; i-- > 0;) {
        // Headers matter most.
        size_t at = random() % (random() % 2 ? changed.size() : std::min<size_t>(changed.size(), 100));
        switch (random() % 4) {
        case 0:
          changed[at] = uint8_t(random());
          break;
        case 1:
          changed[at] = random() % 2 ? 0xff : 0;
          break;
        case 2:
          changed[at] ^= uint8_t(1u << random() % 8);
          break;
        default:
          changed.erase(changed.begin() + long(at),
                        changed.begin() + long(std::min(changed.size(), at + random() % 4)));
        }
        if (changed.empty())
          changed.push_back(0);
      }
      Image image = decode(changed, round % 3);
      CHECK(isFine(image));
      (image.pixels.empty() ? empty : decoded) += 1;
    }
  }
  INFO(decoded << " decoded, " << empty << " empty");
  CHECK(empty > 0);
}

TEST_CASE("regular expressions match whole strings") {
  Host host;
  auto match = [&](const std::string &pattern, const std::vector<std::string> &texts, std::vector<uint8_t> expected) {
    std::vector<int64_t> ids;
    for (const std::string &text : texts)
      ids.push_back(host.intern(text));
    int64_t count = int64_t(ids.size()), id = host.intern(pattern);
    std::vector<uint8_t> matches(ids.size() + 1, 7);
    tcrt_status_t status = host.call("regex_full_match",
                                     {{ids.data(), &count, TCRT_DTYPE_STRING, 1}, {&id, nullptr, TCRT_DTYPE_STRING, 0}},
                                     {{matches.data(), &count, TCRT_DTYPE_BOOL, 1}});
    expected.push_back(7);
    if (status == TCRT_OK)
      CHECK(matches == expected);
    return status;
  };
  CHECK(match("a+b", {"aab", "aabc", "b", ""}, {1, 0, 0, 0}) == TCRT_OK);
  CHECK(match("", {"", "a"}, {1, 0}) == TCRT_OK);
  CHECK(match("(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", {"account@gmail.com", "account@hotmail.com"},
              {1, 0}) == TCRT_OK);
  CHECK(match("\\p{Greek}.", {"\u03b1x", "ax", "\xff\xfe"}, {1, 0, 0}) == TCRT_OK);
  CHECK(match("x.*", {std::string("x\0y", 3)}, {1}) == TCRT_OK);
  CHECK(match("a", {}, {}) == TCRT_OK);
  CHECK(match("(unclosed", {"x"}, {0}) == TCRT_ERROR_REFUSED);
  CHECK(std::string(tcrt_last_error()).find("(unclosed") != std::string::npos);
  // Linear in the text, bounded in memory.
  CHECK(match("(a*)*b", {std::string(100000, 'a')}, {0}) == TCRT_OK);
  CHECK(match("((a{0,999}){0,999}){0,999}", {"x"}, {0}) == TCRT_ERROR_REFUSED);
}
