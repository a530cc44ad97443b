//===- Zip.cpp - archives are read, and ones that lie are refused -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Support/ZipWriter.h"

#include "tc/Support/ZipArchive.h"

#include <catch2/catch.hpp>

using namespace tc;
using namespace tc::test;

namespace {

/// Opens the archive and reads all of it; the error, or "" .
std::string readAll(const std::string &bytes) {
  std::string error;
  std::optional<ZipArchive> archive = ZipArchive::open(bytes, error);
  if (!archive)
    return error;
  for (const ZipArchive::Member &member : archive->members())
    if (!archive->read(member, error))
      return error;
  return "";
}

std::string refusal(const std::vector<ZipEntry> &entries) {
  std::string error = readAll(makeZip(entries));
  REQUIRE(!error.empty());
  return error;
}

using Catch::Matchers::Contains;

} // namespace

TEST_CASE("members are found and read, stored and deflated, with descriptors and zip64 sizes") {
  const std::string large(100000, 'x');
  ZipEntry deflatedEntry{"m/code", large, true, true}, zip64{"m/a", "alpha", false, false, true};
  ZipEntry unchecked{"m/unchecked", "no checksum"};
  unchecked.crc = 0;
  for (bool isZip64 : {false, true}) {
    const std::string bytes =
        makeZip({{"m/b", "beta"}, deflatedEntry, zip64, {"m/none", ""}, {"m/empty", "", true}, unchecked}, isZip64,
                isZip64 ? "a comment" : "");
    std::string error;
    std::optional<ZipArchive> archive = ZipArchive::open(bytes, error);
    INFO(error);
    REQUIRE(archive);
    CHECK(archive->members().size() == 6);
    CHECK(archive->members()[0].name == "m/b");
    auto text = [&](const char *name) {
      const ZipArchive::Member *member = archive->find(name);
      REQUIRE(member);
      std::optional<ZipArchive::Contents> contents = archive->read(*member, error);
      INFO(error);
      REQUIRE(contents);
      return std::string(contents->text());
    };
    CHECK(text("m/a") == "alpha");
    CHECK(text("m/b") == "beta");
    CHECK(text("m/code") == large);
    CHECK(text("m/none").empty());
    CHECK(text("m/empty").empty());
    CHECK(text("m/unchecked") == "no checksum");
    CHECK(archive->find("m/a")->offset % 64 == 0);
    CHECK(archive->stored(*archive->find("m/a")) == "alpha");
    CHECK(!archive->find("m/code")->isStored());
    CHECK(!archive->find("m/c"));
    CHECK(archive->findSuffix("e")->name == "m/code");
    CHECK(!archive->findSuffix("zz"));
    CHECK(!archive->read(*archive->find("m/code"), error, 99999));
    CHECK_THAT(error, Contains("member \"m/code\" has 100000 bytes; at most 99999 are supported"));
    char head[5] = "";
    REQUIRE(archive->unpack(*archive->find("m/code"), head, 4, error));
    CHECK(std::string(head) == "xxxx");
  }
}

TEST_CASE("archives that are not what they say are refused") {
  CHECK(readAll("") == "not a zip archive");
  CHECK_THAT(readAll("PK" + std::string(100, 'x')), Contains("it has no directory"));
  ZipEntry entry{"x", std::string(5000, 'a'), true};
  entry.claimedSize = 5001;
  CHECK_THAT(refusal({entry}), Contains("member \"x\" does not unpack to its 5001 bytes"));
  entry.claimedSize = 4999;
  CHECK_THAT(refusal({entry}), Contains("does not unpack to its 4999 bytes"));
  entry.claimedSize = 0xfffffff0;
  CHECK_THAT(refusal({entry}), Contains("can't have the 4294967280 bytes that it claims"));
  entry.claimedSize = -1;
  entry.crc ^= 1;
  CHECK_THAT(refusal({entry}), Contains("member \"x\" has another checksum"));
  entry = {"x", "abc"};
  entry.crc ^= 1;
  CHECK_THAT(refusal({entry}), Contains("member \"x\" has another checksum"));
  entry = {"x", "abc"};
  entry.claimedSize = 2;
  CHECK_THAT(refusal({entry}), Contains("member \"x\" has two sizes"));
  entry = {"x", "abc"};
  entry.method = 12;
  CHECK_THAT(refusal({entry}), Contains("is compressed by method 12"));
  entry = {"x", "abc"};
  entry.flags = 1;
  CHECK_THAT(refusal({entry}), Contains("member \"x\" is encrypted"));
  entry = {"x", "abc"};
  entry.headerName = "y";
  CHECK_THAT(refusal({entry}), Contains("another name in its own header"));
  CHECK_THAT(refusal({{"x", "abc"}, {"x", "abc"}}), Contains("there are two members \"x\""));
  entry = {"x", "abc"};
  entry.headerAt = 0;
  CHECK_THAT(refusal({{"x", "abc"}, entry}), Contains("members \"x\" and \"x\" overlap"));
  entry.headerAt = 1 << 20;
  CHECK_THAT(refusal({entry}), Contains("member \"x\" is outside of the file"));
  // One that holds the whole directory.
  std::string bytes = makeZip({{"x", "abc"}});
  const size_t directory = bytes.find("PK\x01\x02");
  for (size_t at : {size_t(18), size_t(22), directory + 20, directory + 24})
    bytes[at] = 40;
  CHECK_THAT(readAll(bytes), Contains("member \"x\" overlaps its directory"));
}

TEST_CASE("an archive cut off anywhere is refused") {
  const std::string bytes = makeZip({{"m/b", "beta"}, {"m/code", std::string(300, 'x'), true, true}}, true);
  REQUIRE(readAll(bytes).empty());
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK(!readAll(bytes.substr(0, size)).empty());
}
