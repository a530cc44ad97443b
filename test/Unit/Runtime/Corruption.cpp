//===- Corruption.cpp - Damaged artifacts are refused without harm --------------------------------------*- C++ -*-===//
//
// With hashes as they were, any damage in a hashed section must be found. With hashes made to fit, any file must be
// taken or refused, but read within its bounds; nothing in it is called. The sanitizer build runs this, too.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "Programs/Programs.h"
#include "tc/Format/Container.h"
#include "tc/Format/Elf.h"
#include "tc/Format/Sha256.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tc;
using namespace tc::test;

namespace {

/// Bytes that end where their memory ends, so that a read past them is seen by ASan, at an alignment of 8.
class Exact {
public:
  explicit Exact(const std::string &bytes)
      : size(bytes.size()), data(static_cast<uint8_t *>(std::malloc(size ? size : 1))) {
    std::memcpy(data, bytes.data(), size);
  }
  ~Exact() { std::free(data); }
  Exact(const Exact &) = delete;
  Exact &operator=(const Exact &) = delete;

  uint64_t size;
  uint8_t *data;
};

std::string artifactBytes(const artifact::ArtifactSpec &spec = basicSpec()) {
  llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
  if (!bytes)
    FAIL(llvm::toString(bytes.takeError()));
  return *bytes;
}

tcrt_status_t parse(const std::string &bytes, uint32_t flags) {
  Exact exact(bytes);
  tcrt_container_t container;
  return tcrt_container_parse(exact.data, exact.size, "m.bin", flags, &container);
}

/// Makes all hashes fit again where sections are in the file.
void rehash(std::string &bytes) {
  tcrt_file_header_t header;
  if (bytes.size() < sizeof header)
    return;
  std::memcpy(&header, bytes.data(), sizeof header);
  uint64_t tableSize = uint64_t(header.section_count) * sizeof(tcrt_section_t);
  if (header.table_offset > bytes.size() || tableSize > bytes.size() - header.table_offset)
    return;
  for (uint32_t i = 0; i < header.section_count; ++i) {
    tcrt_section_t section;
    char *at = &bytes[header.table_offset + i * sizeof section];
    std::memcpy(&section, at, sizeof section);
    if (section.offset > bytes.size() || section.size > bytes.size() - section.offset)
      continue;
    tcrt_sha256(bytes.data() + section.offset, section.size, section.sha256);
    std::memcpy(at, &section, sizeof section);
  }
  tcrt_sha256(bytes.data() + header.table_offset, tableSize, header.table_sha256);
  std::memcpy(&bytes[0], &header, sizeof header);
}

std::vector<tcrt_section_t> sectionsOf(const std::string &bytes) {
  tcrt_file_header_t header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<tcrt_section_t> sections(header.section_count);
  std::memcpy(sections.data(), bytes.data() + header.table_offset, sections.size() * sizeof(tcrt_section_t));
  return sections;
}

/// Opens as users do, without running, and reads everything that can be asked.
void openAndQuery(const std::string &bytes) {
  tcrt_model_t *model;
  if (tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", nullptr, &model) != TCRT_OK) {
    CHECK(std::strlen(tcrt_last_error()) > 0);
    return;
  }
  uint64_t length = 0;
  tcrt_value_info_t value;
  for (uint32_t i = 0; i < tcrt_model_input_count(model); ++i)
    if (tcrt_model_input(model, i, &value) == TCRT_OK)
      length += std::strlen(value.name);
  for (uint32_t i = 0; i < tcrt_model_output_count(model); ++i)
    if (tcrt_model_output(model, i, &value) == TCRT_OK)
      length += std::strlen(value.name);
  tcrt_symbol_info_t symbol;
  for (uint32_t i = 0; i < tcrt_model_symbol_count(model); ++i)
    if (tcrt_model_symbol(model, i, &symbol) == TCRT_OK)
      length += std::strlen(symbol.name);
  tcrt_function_info_t function;
  tcrt_entry_info_t entry;
  for (uint32_t i = 0; i < tcrt_model_function_count(model); ++i) {
    if (tcrt_model_function(model, i, &function) != TCRT_OK)
      continue;
    for (uint32_t j = 0; j < tcrt_model_entry_count(model, i); ++j)
      if (tcrt_model_entry(model, i, j, &entry) == TCRT_OK)
        length += std::strlen(entry.name);
    length += std::strlen(function.name);
    for (uint32_t j = 0; i && j < function.input_count; ++j)
      if (tcrt_model_function_input(model, i, j, &value) == TCRT_OK)
        length += std::strlen(value.name);
    for (uint32_t j = 0; i && j < function.output_count; ++j)
      if (tcrt_model_function_output(model, i, j, &value) == TCRT_OK)
        length += std::strlen(value.name);
  }
  tcrt_state_info_t state;
  for (uint32_t i = 0; i < tcrt_model_state_count(model); ++i)
    if (tcrt_model_state(model, i, &state) == TCRT_OK)
      length += std::strlen(state.name);
  tcrt_variant_info_t variant;
  for (uint32_t i = 0; i < tcrt_model_variant_count(model); ++i)
    if (tcrt_model_variant(model, i, &variant) == TCRT_OK)
      length += std::strlen(variant.name);
  CHECK(length < bytes.size() + 1);
  tcrt_model_close(model);
}

bool loads(const std::string &elf) {
  Exact exact(elf);
  tcrt_elf_image_t image;
  if (tcrt_elf_load(exact.data, exact.size, "m.bin", "v", -1, 0, &image) != TCRT_OK)
    return false;
  tcrt_elf_unload(&image);
  return true;
}

} // namespace

TEST_CASE("SHA-256 agrees with the standard's examples, with and without the CPU's instructions") {
  const struct {
    std::string text;
    const char *digest;
  } cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (int hardware : {0, 1}) {
    tcrt_sha256_allow_hardware(hardware);
    for (const auto &item : cases) {
      uint8_t digest[32], pieces[32];
      tcrt_sha256(item.text.data(), item.text.size(), digest);
      char text[65];
      for (int i = 0; i < 32; ++i)
        std::snprintf(text + 2 * i, 3, "%02x", digest[i]);
      CHECK(std::string(text) == item.digest);
      tcrt_sha256_t hash;
      tcrt_sha256_init(&hash);
      for (size_t at = 0, step = 1; at < item.text.size(); at += step, step = step % 150 + 1)
        tcrt_sha256_update(&hash, item.text.data() + at, std::min(step, item.text.size() - at));
      tcrt_sha256_final(&hash, pieces);
      CHECK(std::memcmp(digest, pieces, 32) == 0);
    }
  }
}

TEST_CASE("truncated artifacts are refused") {
  std::string bytes = artifactBytes();
  REQUIRE(parse(bytes, TCRT_PARSE_ALL_HASHES) == TCRT_OK);
  std::vector<uint64_t> cuts;
  for (uint64_t i = 0; i < 512; ++i)
    cuts.push_back(i);
  for (const tcrt_section_t &section : sectionsOf(bytes))
    for (uint64_t at : {section.offset, section.offset + section.size})
      for (int64_t delta = -2; delta <= 2; ++delta)
        if (at + uint64_t(delta) < bytes.size())
          cuts.push_back(at + uint64_t(delta));
  for (uint64_t cut : cuts) {
    std::string shorter = bytes.substr(0, cut);
    INFO("cut at " << cut);
    CHECK(parse(shorter, TCRT_PARSE_HASHES) == TCRT_ERROR_INVALID);
    // The header's size made to fit, too.
    if (cut >= sizeof(tcrt_file_header_t)) {
      std::memcpy(&shorter[offsetof(tcrt_file_header_t, file_size)], &cut, 8);
      CHECK(parse(shorter, TCRT_PARSE_HASHES) == TCRT_ERROR_INVALID);
      rehash(shorter);
      parse(shorter, 0);
    }
  }
  CHECK(parse(bytes + "x", TCRT_PARSE_HASHES) == TCRT_ERROR_INVALID);
}

TEST_CASE("flipped bytes are found by the hashes") {
  std::string bytes = artifactBytes();
  for (const tcrt_section_t &section : sectionsOf(bytes)) {
    uint64_t step = section.size > 2000 ? 37 : 1;
    for (uint64_t i = 0; i < section.size; i += step) {
      std::string damaged = bytes;
      damaged[section.offset + i] = char(damaged[section.offset + i] ^ (1 << (i % 8)));
      CHECK(parse(damaged, TCRT_PARSE_ALL_HASHES) == TCRT_ERROR_INVALID);
      // Weights are not looked at on opening.
      if (section.kind == TCRT_SECTION_WEIGHTS)
        CHECK(parse(damaged, TCRT_PARSE_HASHES) == TCRT_OK);
      else
        CHECK(parse(damaged, TCRT_PARSE_HASHES) == TCRT_ERROR_INVALID);
    }
  }
  tcrt_file_header_t header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (uint64_t i = 0; i < header.table_offset + header.section_count * sizeof(tcrt_section_t); ++i) {
    if (i == offsetof(tcrt_file_header_t, header_size))
      i += 4; // a larger header of a newer writer is fine
    std::string damaged = bytes;
    damaged[i] = char(damaged[i] ^ (1 << (i % 8)));
    INFO("byte " << i);
    CHECK(parse(damaged, TCRT_PARSE_HASHES) == TCRT_ERROR_INVALID);
  }
}

TEST_CASE("any mutation with fitting hashes is taken or refused, but read within bounds") {
  // Functions and states, one function alone, and a file of ABI 1.
  const std::string bytes =
      GENERATE(artifactBytes(statesSpec()), artifactBytes(), readFile(std::string(TC_TEST_ABI1) + "/static.bin"));
  std::mt19937 random(7);
  const char *setting = std::getenv("TC_FUZZ_ROUNDS");
  int rounds = setting ? std::atoi(setting) : 3000;
  std::vector<tcrt_section_t> sections = sectionsOf(bytes);
  const uint64_t interesting[] = {0,
                                  1,
                                  7,
                                  8,
                                  63,
                                  64,
                                  4095,
                                  4096,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  uint64_t(1) << 63,
                                  ~uint64_t(0),
                                  ~uint64_t(7),
                                  ~uint64_t(4095),
                                  bytes.size()};
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = bytes;
    for (uint32_t n = 1 + random() % 4; n--;) {
      // Mostly the header, the section table and the signature, where the parsers are.
      uint64_t start = 0, size = 80 + sections.size() * sizeof(tcrt_section_t);
      if (random() % 2) {
        start = sections[1].offset;
        size = sections[1].size;
      }
      uint64_t at = start + random() % size;
      switch (random() % 3) {
      case 0:
        damaged[at] = char(random());
        break;
      case 1: {
        uint64_t value = interesting[random() % (sizeof interesting / sizeof *interesting)];
        at = at / 4 * 4;
        std::memcpy(&damaged[at], &value, std::min<uint64_t>(random() % 2 ? 4 : 8, damaged.size() - at));
        break;
      }
      default:
        damaged[at] = char(damaged[at] + (random() % 2 ? 1 : -1));
        break;
      }
    }
    if (random() % 16 == 0) {
      damaged.resize(random() % (damaged.size() + 1));
      uint64_t size = damaged.size();
      if (size >= sizeof(tcrt_file_header_t))
        std::memcpy(&damaged[offsetof(tcrt_file_header_t, file_size)], &size, 8);
    }
    rehash(damaged);
    parse(damaged, 0);
    openAndQuery(damaged);
  }
}

TEST_CASE("hostile tables of functions, states and variants are refused by name") {
  const std::string good = artifactBytes(statesSpec());
  const uint64_t start = sectionsOf(good)[1].offset;
  tcrt_signature_t head;
  std::memcpy(&head, &good[start], sizeof head);
  REQUIRE(parse(good, TCRT_PARSE_ALL_HASHES) == TCRT_OK);
  auto refused = [&](uint64_t offset, auto value, const char *why) {
    std::string bytes = good;
    std::memcpy(&bytes[start + offset], &value, sizeof value);
    rehash(bytes);
    INFO("offset " << offset << ": " << why);
    CHECK(parse(bytes, 0) == TCRT_ERROR_INVALID);
    INFO(tcrt_last_error());
    CHECK(std::string(tcrt_last_error()).find(why) != std::string::npos);
    openAndQuery(bytes);
  };
  const char *past = "reaches past its end", *tables = "the tables of a function are not valid";
  refused(offsetof(tcrt_signature_t, abi_version), uint32_t(0), "runs versions 1 to 2");
  refused(offsetof(tcrt_signature_t, abi_version), uint32_t(3), "has ABI version 3; this libtcrt");
  refused(offsetof(tcrt_signature_t, size), uint32_t(TCRT_SIGNATURE_SIZE_ABI_1), "the signature is too short");
  refused(offsetof(tcrt_signature_t, function_count), uint32_t(0), "there is no function");
  refused(offsetof(tcrt_signature_t, function_count), uint32_t(1), tables);
  refused(offsetof(tcrt_signature_t, function_count), uint32_t(1000), past);
  refused(offsetof(tcrt_signature_t, function_count), UINT32_MAX, past);
  refused(offsetof(tcrt_signature_t, function_offset), UINT64_MAX - 7, past);
  refused(offsetof(tcrt_signature_t, function_offset), head.function_offset + 4, past);
  refused(offsetof(tcrt_signature_t, state_count), uint32_t(1) << 25, past);
  refused(offsetof(tcrt_signature_t, state_offset), uint64_t(1) << 40, past);
  // The second function.
  const uint64_t second = head.function_offset + sizeof(tcrt_sig_function_t);
  refused(second + offsetof(tcrt_sig_function_t, name), uint32_t(1) << 31, "the name of a function is not valid");
  refused(second + offsetof(tcrt_sig_function_t, name) + 4, uint32_t(0), "the name of a function is not valid");
  refused(second + offsetof(tcrt_sig_function_t, first_input), uint32_t(0), tables);
  refused(second + offsetof(tcrt_sig_function_t, input_count), uint32_t(2), tables);
  refused(second + offsetof(tcrt_sig_function_t, output_count), uint32_t(1), tables);
  refused(second + offsetof(tcrt_sig_function_t, output_count), UINT32_MAX, tables);
  refused(second + offsetof(tcrt_sig_function_t, symbol_count), uint32_t(0),
          "a dim of an input or output is not valid");
  refused(second + offsetof(tcrt_sig_function_t, first_kernel), uint32_t(0), tables);
  refused(second + offsetof(tcrt_sig_function_t, kernel_count), uint32_t(1) << 31, tables);
  // The first function has no symbols, whatever the second one has.
  refused(head.dim_offset, uint32_t(TCRT_DIM_SYMBOL), "a dim of an input or output is not valid");
  const uint64_t state = head.state_offset;
  refused(state + offsetof(tcrt_sig_state_t, name), UINT32_MAX, "the name of a state is not valid");
  refused(state + offsetof(tcrt_sig_state_t, name) + 4, uint32_t(0), "the name of a state is not valid");
  refused(state + offsetof(tcrt_sig_state_t, dtype), uint32_t(0), "the type of a state is not known");
  refused(state + offsetof(tcrt_sig_state_t, dtype), uint32_t(TCRT_DTYPE_STRING), "the type of a state is not known");
  refused(state + offsetof(tcrt_sig_state_t, dtype), uint32_t(99), "the type of a state is not known");
  refused(state + offsetof(tcrt_sig_state_t, flags), uint32_t(2), "the type of a state is not known");
  refused(state + offsetof(tcrt_sig_state_t, rank), uint32_t(17), "the rank of a state is not valid");
  refused(state + offsetof(tcrt_sig_state_t, first_dim), UINT32_MAX, "the rank of a state is not valid");
  refused(state + offsetof(tcrt_sig_state_t, initial_offset), uint64_t(8), "the initial value of a state is not valid");
  refused(state + offsetof(tcrt_sig_state_t, initial_offset), UINT64_MAX - 63,
          "the initial value of a state is not valid");
  tcrt_sig_state_t record;
  std::memcpy(&record, &good[start + state], sizeof record);
  const uint64_t dim = head.dim_offset + record.first_dim * sizeof(tcrt_sig_dim_t);
  refused(dim + offsetof(tcrt_sig_dim_t, kind), uint32_t(TCRT_DIM_EXPR), "a dim of a state is not valid");
  refused(dim + offsetof(tcrt_sig_dim_t, value), int64_t(-1), "the size of a state is not valid");
  refused(dim + offsetof(tcrt_sig_dim_t, value), INT64_MAX, "the size of a state is not valid");
  refused(dim + offsetof(tcrt_sig_dim_t, value), int64_t(3), "the initial value of a state is not valid");
  const uint64_t variant = head.variant_offset;
  const char *device = "the device code of a variant is not valid";
  refused(variant + offsetof(tcrt_sig_variant_t, arch), uint32_t(900), device);
  refused(variant + offsetof(tcrt_sig_variant_t, first_device_code), uint32_t(1000), device);
  refused(variant + offsetof(tcrt_sig_variant_t, device_code_count), UINT32_MAX, device);
  refused(variant + offsetof(tcrt_sig_variant_t, device_kernel_count), uint32_t(1), device);
  refused(variant + offsetof(tcrt_sig_variant_t, weights_size), uint64_t(0), "a variant does not fit the weights");
}

TEST_CASE("inputs, functions and states of one name are refused") {
  // The second record of a table gets the name of the first.
  auto twins = [&](const artifact::ArtifactSpec &spec, const char *what, uint64_t tcrt_signature_t::*table,
                   uint64_t recordSize) {
    std::string bytes = artifactBytes(spec);
    char *signature = &bytes[sectionsOf(bytes)[1].offset];
    tcrt_signature_t head;
    std::memcpy(&head, signature, sizeof head);
    std::memcpy(signature + head.*table + recordSize, signature + head.*table, sizeof(tcrt_sig_name_t));
    rehash(bytes);
    tcrt_model_t *model = nullptr;
    CHECK(tcrt_model_open_memory(bytes.data(), bytes.size(), "m.bin", nullptr, &model) == TCRT_ERROR_INVALID);
    INFO(tcrt_last_error());
    CHECK(std::string(tcrt_last_error()).find(std::string("two ") + what + " have the name") != std::string::npos);
    CHECK(!model);
  };
  twins(basicSpec(), "inputs of a function", &tcrt_signature_t::input_offset, sizeof(tcrt_sig_value_t));
  twins(statesSpec(), "functions", &tcrt_signature_t::function_offset, sizeof(tcrt_sig_function_t));
  twins(statesSpec(), "states", &tcrt_signature_t::state_offset, sizeof(tcrt_sig_state_t));
}

/// Many records that share one long name: checking each of them anew takes time in proportion to their product.
TEST_CASE("checking names takes time in proportion to the file, however many share a string") {
  artifact::ArtifactSpec spec = basicSpec();
  const std::string longName(1000000, 'n');
  REQUIRE(!spec.functions.empty());
  for (int i = 0; i < 4000; ++i)
    spec.functions[0].kernels.push_back({i ? "k" : longName, "", 0, 0});
  std::string bytes = artifactBytes(spec);
  REQUIRE(parse(bytes, TCRT_PARSE_ALL_HASHES) == TCRT_OK);
  const uint64_t start = sectionsOf(bytes)[1].offset;
  tcrt_signature_t head;
  std::memcpy(&head, &bytes[start], sizeof head);
  const uint64_t first = head.kernel_count - 4000;
  auto kernel = [&](uint64_t i) { return start + head.kernel_offset + i * sizeof(tcrt_sig_kernel_t); };
  for (uint64_t i = first + 1; i < head.kernel_count; ++i)
    std::memcpy(&bytes[kernel(i)], &bytes[kernel(first)], sizeof(tcrt_sig_name_t));
  rehash(bytes);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(parse(bytes, 0) == TCRT_ERROR_INVALID);
  CHECK(std::string(tcrt_last_error()).find("the name of a kernel is not valid") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  openAndQuery(bytes);
  // A name may not begin or end within a character.
  spec.functions[0].kernels = {{"\xc3\xa4\xc3\xb6", "", 0, 0}};
  bytes = artifactBytes(spec);
  std::memcpy(&head, &bytes[start], sizeof head);
  for (uint32_t cut : {1u, 3u}) {
    std::string damaged = bytes;
    std::memcpy(&damaged[kernel(0) + offsetof(tcrt_sig_name_t, length)], &cut, sizeof cut);
    rehash(damaged);
    CHECK(parse(damaged, 0) == TCRT_ERROR_INVALID);
  }
}

TEST_CASE("any mutation of the code is mapped or refused") {
  const std::string elf = programElf("basic");
  REQUIRE(loads(elf));
  std::mt19937 random(11);
  const char *setting = std::getenv("TC_FUZZ_ROUNDS");
  int rounds = setting ? std::atoi(setting) : 3000, taken = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = elf;
    for (uint32_t n = 1 + random() % 3; n--;) {
      // ELF header and program headers, then the dynamic section and the relocations.
      uint64_t at = random() % 2 ? random() % 512 : random() % damaged.size();
      if (random() % 2) {
        damaged[at] = char(random());
      } else {
        uint64_t value = random() % 2 ? ~uint64_t(0) << (random() % 64) : uint64_t(1) << (random() % 64);
        at = at / 8 * 8;
        std::memcpy(&damaged[at], &value, std::min<uint64_t>(8, damaged.size() - at));
      }
    }
    if (random() % 16 == 0)
      damaged.resize(random() % damaged.size());
    taken += loads(damaged);
  }
  CHECK(taken > 0);
}

TEST_CASE("code that breaks the rules is refused by name") {
  auto refused = [](std::string elf, const char *why) {
    CHECK(!loads(elf));
    INFO(tcrt_last_error());
    CHECK(std::string(tcrt_last_error()).find(why) != std::string::npos);
  };
  std::string elf = programElf("basic");
  refused("", "too short");
  refused(elf.substr(0, 63), "too short");
  refused(std::string(200, 'x'), "not an x86-64 shared object");
  refused(elf.substr(0, 200), "program headers are out of bounds");
  refused(elf.substr(0, 4096), "a segment is out of bounds");
  std::string changed = elf;
  changed[18] = 3; // e_machine: i386
  refused(changed, "not an x86-64 shared object");
  changed = elf;
  std::memset(&changed[24], 0, 8); // e_entry: in the headers
  refused(changed, "entry point");
  // Program header flags stand 4 bytes into each record of 56.
  for (int i = 0; i < elf[56]; ++i) {
    size_t at = 64 + size_t(i) * 56;
    if (elf[at] != 1)
      continue;
    changed = elf;
    changed[at + 4] = 7;
    refused(changed, "writable and executable");
    changed[at + 4] = 0;
    refused(changed, "not readable");
    changed = elf;
    changed[at] = 7; // PT_TLS
    refused(changed, "thread-local");
    break;
  }
}

TEST_CASE("the writer refuses what the loader would") {
  auto message = [](const artifact::ArtifactSpec &spec) {
    llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
    return bytes ? std::string("written") : llvm::toString(bytes.takeError());
  };
  artifact::ArtifactSpec spec = basicSpec();
  spec.functions[0].inputs[0].dims.assign(17, artifact::Dim::fixed(1));
  CHECK(message(spec) == "(memory): error: input \"x\" has rank 17; at most 16 is supported");
  spec = basicSpec();
  spec.functions[0].inputs.push_back(spec.functions[0].inputs[0]);
  CHECK(message(spec).find("two inputs of function \"main\" have the name \"x\"") != std::string::npos);
  spec = basicSpec();
  spec.functions[0].inputs[0].dims[0] = artifact::Dim::symbol(5);
  CHECK(message(spec).find("a dim of an input or output is not valid") != std::string::npos);
  spec = basicSpec();
  spec.variants.clear();
  CHECK(message(spec).find("there is no code") != std::string::npos);
  spec = basicSpec();
  spec.variants[0].elf = "not code";
  CHECK(message(spec).find("the code of variant \"future\" is not valid") != std::string::npos);
  spec = basicSpec();
  spec.weights[1].offset = 60;
  CHECK(message(spec) == "(memory): error: weights are not aligned or not in order");
  spec = basicSpec();
  spec.addWeights(artifact::Segment::callback(8, [](artifact::WeightSink sink) {
    uint8_t bytes[4] = {};
    return sink(bytes);
  }));
  CHECK(message(spec) == "(memory): error: a constant is shorter than announced");
  spec = basicSpec();
  spec.addWeights(artifact::Segment::file("/no/such/file", 0, 8));
  CHECK(message(spec) == "/no/such/file: error: the file cannot be read: No such file or directory");
  spec = basicSpec();
  spec.functions[0].kernels[0].nodes = std::string("a\xff\0b", 4);
  CHECK(message(spec) == "written");

  auto error = [](llvm::Error error) { return error ? llvm::toString(std::move(error)) : std::string("written"); };
  CHECK(error(artifact::writeArtifact(basicSpec(), "/no/such/folder/m.bin"))
            .find("/no/such/folder/m.bin: error: the file "
                  "cannot be written") == 0);
  CHECK(error(artifact::writeArtifact(basicSpec(), "/dev/null")) ==
        "/dev/null: error: the output exists and is not a regular file; give another name");
}

TEST_CASE("a write that fails leaves nothing behind and an old file as it was") {
  std::string folder = "/tmp/tc-unit-full-" + std::to_string(getpid()), path = folder + "/m.bin";
  REQUIRE(mkdir(folder.c_str(), 0777) == 0);
  auto files = [&] {
    int count = 0;
    DIR *directory = opendir(folder.c_str());
    while (dirent *entry = readdir(directory))
      count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
  };
  // A limit on file sizes stands for a full disk.
  struct rlimit before, low;
  getrlimit(RLIMIT_FSIZE, &before);
  low = before;
  low.rlim_cur = 16384;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &low);
  llvm::Error error = artifact::writeArtifact(basicSpec(), path);
  setrlimit(RLIMIT_FSIZE, &before);
  REQUIRE(bool(error));
  CHECK(llvm::toString(std::move(error)) == path + ": error: the file cannot be written: File too large");
  CHECK(files() == 0);
  REQUIRE(!artifact::writeArtifact(basicSpec(), path));
  std::string old = readFile(path);
  setrlimit(RLIMIT_FSIZE, &low);
  error = artifact::writeArtifact(basicSpec(), path);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(bool(error));
  llvm::consumeError(std::move(error));
  CHECK(readFile(path) == old);
  CHECK(files() == 1);
  unlink(path.c_str());
  rmdir(folder.c_str());
}

TEST_CASE("same spec, same bytes; segments by bytes, file and callback") {
  CHECK(artifactBytes() == artifactBytes());
  std::string path = std::string(TC_TEST_PROGRAMS) + "/basic.so", data = readFile(path);
  std::string results[3];
  for (int kind = 0; kind < 3; ++kind) {
    artifact::ArtifactSpec spec = basicSpec();
    uint64_t offset = spec.addWeights(
        kind == 0   ? artifact::Segment::bytes(data)
        : kind == 1 ? artifact::Segment::file(path, 0, data.size())
                    : artifact::Segment::callback(data.size(), [&](artifact::WeightSink sink) -> llvm::Error {
                        for (size_t at = 0; at < data.size(); at += 1000)
                          if (llvm::Error error = sink({reinterpret_cast<const uint8_t *>(data.data()) + at,
                                                        std::min<size_t>(1000, data.size() - at)}))
                            return error;
                        return llvm::Error::success();
                      }));
    CHECK(offset == 128);
    llvm::Expected<std::string> bytes = artifact::writeArtifactToMemory(spec);
    REQUIRE(bool(bytes));
    results[kind] = *bytes;
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}
