//===- Readers.cpp - damaged .npy, .npz, .pb, zip and pickle files and manifests ----------------------------------===//
//
// What tc-run and tc-inspect read, but for artifacts, which test/Unit/Runtime/Corruption.cpp damages; zip archives and
// pickles. Needs no MLIR, so that a build with sanitizers takes a minute.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Loop.h"
#include "Pickle.h"
#include "Zip.h"

#include "tc/Format/Json.h"
#include "tc/Format/Sha256.h"
#include "tc/Frontend/Torch/Pickle.h"
#include "tc/Measure/TuneFile.h"
#include "tc/Run/Npz.h"
#include "tc/Run/Pb.h"
#include "tc/Support/ZipArchive.h"

#include <cstring>
#include <map>

using namespace tc::fuzz;
using namespace tc::run;

namespace {

/// Of a reader that throws a Failure, which must be a sentence about the file.
template <typename Read> Answer judge(Read read, std::string &why) {
  try {
    read();
    return Answer::Taken;
  } catch (const Failure &failure) {
    if (failure.message.find(": error: ") == std::string::npos || failure.message.find('\n') != std::string::npos)
      why = "no sentence: " + failure.message;
    else if (failure.code != 1 && failure.code != 4 && failure.code != 5)
      why = "exit code " + std::to_string(failure.code) + ": " + failure.message;
  } catch (const std::bad_alloc &) {
    why = "runs out of memory";
  }
  return why.empty() ? Answer::Refused : Answer::Wrong;
}

/// Text between quotes, brackets and commas is changed more often than random bytes.
void mutateText(std::string &text, const std::vector<std::string> &words, Random &random) {
  for (uint64_t n = 1 + pick(random, 4); n--;) {
    const size_t at = text.empty() ? 0 : pick(random, text.size());
    size_t end = text.find_first_of(",:}])", at), start = text.find_last_of(",:{[(", at);
    start = start == std::string::npos ? 0 : start + 1;
    end = end == std::string::npos ? text.size() : end;
    const std::string number = std::to_string(oddNumber(random));
    if (start <= end)
      text.replace(start, end - start, pick(random, 2) ? number : words[pick(random, words.size())]);
  }
}

/// The header of an .npy, with its length made right.
void mutateNpy(std::string &bytes, Random &random) {
  static const std::vector<std::string> words = {"'<f4'",
                                                 "'|b1'",
                                                 "'>i8'",
                                                 "'|S3'",
                                                 "'|V2'",
                                                 "'|O'",
                                                 "'<U2'",
                                                 "[]",
                                                 "()",
                                                 "(3,)",
                                                 "(2, 3)",
                                                 "(0, 5)",
                                                 "True",
                                                 "False",
                                                 "",
                                                 " 'descr'",
                                                 " 'shape'",
                                                 "'<c16'",
                                                 "(9223372036854775807, 9223372036854775807)",
                                                 "(-1,)"};
  if (bytes.size() < 10 || pick(random, 3) == 0)
    return mutateBytes(bytes, random);
  const size_t length = uint8_t(bytes[8]) | size_t(uint8_t(bytes[9])) << 8;
  std::string header = bytes.substr(10, length);
  mutateText(header, words, random);
  if (header.size() > 0xffff)
    return;
  const uint16_t size = uint16_t(header.size());
  bytes = bytes.substr(0, 8) + std::string(reinterpret_cast<const char *>(&size), 2) + header +
          bytes.substr(std::min(bytes.size(), 10 + length));
}

/// Changes 0 to 2: of a member's name, or which members there are. Whether `choice` is one of them.
bool mutateMembers(Members &members, std::string &name, uint64_t choice, const std::vector<std::string> &corpus,
                   Random &random) {
  if (choice == 0) {
    mutateBytes(name, random);
  } else if (choice == 1) {
    members.push_back(members[pick(random, members.size())]);
  } else if (choice == 2) {
    if (Members others = readZip(corpus[pick(random, corpus.size())]); !others.empty())
      members.push_back(others[pick(random, others.size())]);
  }
  return choice <= 2;
}

void mutateNpz(std::string &bytes, const std::vector<std::string> &corpus, Random &random) {
  Members members = readZip(bytes);
  if (members.empty() || pick(random, 3) == 0)
    return mutateBytes(bytes, random);
  for (uint64_t n = 1 + pick(random, 3); n--;) {
    auto &[name, data] = members[pick(random, members.size())];
    if (!mutateMembers(members, name, pick(random, 6), corpus, random))
      mutateNpy(data, random);
  }
  bytes = writeZip(members);
  if (pick(random, 4) == 0)
    mutateBytes(bytes, random);
}

/// Fields of a message in the wire format: lengths stay right where a field inside changes.
void mutateWire(std::string &bytes, Random &random, int depth = 0) {
  struct Field {
    size_t start, value, end;
    int kind;
  };
  std::vector<Field> fields;
  size_t at = 0;
  auto varint = [&](uint64_t &value) {
    value = 0;
    for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
      const uint8_t byte = uint8_t(bytes[at++]);
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128))
        return true;
    }
    return false;
  };
  while (at < bytes.size()) {
    Field field{at, 0, 0, 0};
    uint64_t tag = 0, size = 0;
    if (!varint(tag))
      break;
    field.kind = int(tag & 7);
    field.value = at;
    if (field.kind == 0 ? !varint(size) : field.kind == 2 && !varint(size))
      break;
    if (field.kind == 2)
      field.value = at;
    at += field.kind == 2 ? size : field.kind == 1 ? 8 : field.kind == 5 ? 4 : 0;
    field.end = at;
    if (at > bytes.size() || size > bytes.size())
      break;
    fields.push_back(field);
  }
  if (fields.empty() || pick(random, 8) == 0)
    return mutateBytes(bytes, random);
  auto encode = [](uint64_t value) {
    std::string text;
    for (; value > 127; value >>= 7)
      text.push_back(char(value | 128));
    text.push_back(char(value));
    return text;
  };
  const Field field = fields[pick(random, fields.size())];
  std::string tag = bytes.substr(field.start, 1), value = bytes.substr(field.value, field.end - field.value);
  switch (pick(random, 6)) {
  case 0: // away
    bytes.erase(field.start, field.end - field.start);
    return;
  case 1: // twice
    bytes.insert(field.start, bytes.substr(field.start, field.end - field.start));
    return;
  case 2: // another number
    tag = encode(pick(random, 40) << 3 | uint64_t(field.kind));
    break;
  default:
    if (field.kind == 2 && depth < 6 && value.size() > 1)
      mutateWire(value, random, depth + 1);
    else if (field.kind == 0)
      value = encode(uint64_t(oddNumber(random)));
    else
      mutateBytes(value, random);
  }
  if (field.kind == 2)
    value = encode(value.size()) + value;
  bytes.replace(field.start, field.end - field.start, tag + value);
}

void mutateZip(std::string &bytes, const std::vector<std::string> &corpus, Random &random) {
  Members members = readZip(bytes);
  if (members.empty() || pick(random, 8) == 0)
    return mutateBytes(bytes, random);
  for (uint64_t n = pick(random, 3); n--;) {
    auto &[name, data] = members[pick(random, members.size())];
    if (!mutateMembers(members, name, pick(random, 4), corpus, random))
      data.assign(pick(random, 5000), char(random()));
  }
  std::vector<bool> isDeflated(members.size());
  for (size_t i = 0; i < isDeflated.size(); ++i)
    isDeflated[i] = pick(random, 2);
  bytes = writeZip(members, isDeflated);
  // Numbers of the directory and of headers more often than data.
  for (uint64_t n = pick(random, 4); n--;) {
    const std::string marks[] = {"PK\x01\x02", "PK\x03\x04", "PK\x05\x06"};
    const size_t at = bytes.find(marks[pick(random, 3)], pick(random, bytes.size()));
    if (at == std::string::npos)
      continue;
    const int64_t number = oddNumber(random);
    const size_t width = size_t(2) << pick(random, 2), place = at + 4 + pick(random, 40);
    if (place + width <= bytes.size())
      std::memcpy(&bytes[place], &number, width);
  }
  if (pick(random, 4) == 0)
    mutateBytes(bytes, random);
}

Answer readZipWhole(const std::string &bytes, std::string &why) {
  std::string error;
  std::optional<tc::ZipArchive> archive = tc::ZipArchive::open(bytes, error);
  uint64_t stored = 0;
  bool isWhole = archive.has_value();
  for (size_t i = 0; archive && i < archive->members().size(); ++i) {
    const tc::ZipArchive::Member &member = archive->members()[i];
    if (archive->find(member.name) != &member)
      why = "a member is not found";
    std::optional<tc::ZipArchive::Contents> contents = archive->read(member, error, 64 << 20);
    isWhole &= contents.has_value();
    stored += member.packedSize;
    if (contents && contents->text().size() != member.size)
      why = "a member has another size";
  }
  if (stored > bytes.size())
    why = "members share bytes";
  if (!isWhole && (error.empty() || error.find('\n') != std::string::npos))
    why = "no sentence: " + error;
  return !why.empty() ? Answer::Wrong : isWhole ? Answer::Taken : Answer::Refused;
}

/// As deep as it says, with keys that are found.
unsigned measure(const tc::torch::PickledValue &value, std::map<const tc::torch::PickledValue *, unsigned> &known) {
  auto [place, isNew] = known.try_emplace(&value, 1);
  if (!isNew)
    return place->second;
  unsigned depth = 0;
  for (const tc::torch::PickledValue *item : value.items)
    depth = std::max(depth, measure(*item, known));
  for (const tc::torch::PickledValue *item : {value.arguments, value.state})
    if (item)
      depth = std::max(depth, measure(*item, known));
  return known[&value] = depth + 1;
}

Answer readPickle(const std::string &bytes, std::string &why) {
  std::string error;
  std::optional<tc::torch::Pickle> pickle = tc::torch::Pickle::parse(bytes, error);
  if (!pickle) {
    if (error.empty() || error.find('\n') != std::string::npos)
      why = "no sentence: " + error;
    return why.empty() ? Answer::Refused : Answer::Wrong;
  }
  std::map<const tc::torch::PickledValue *, unsigned> known;
  if (measure(pickle->root(), known) > tc::torch::kMaxPickleDepth)
    why = "it is too deep";
  for (const auto &[value, depth] : known)
    if (value->tensor && (value->tensor->sizes.size() != value->tensor->strides.size() ||
                          value->tensor->sizes.size() > tc::torch::kMaxPickledRank))
      why = "a tensor has other numbers of sizes and strides";
  return why.empty() ? Answer::Taken : Answer::Wrong;
}

const std::map<std::string, Target> targets = {
    {"zip",
     {mutateZip,
      [](const std::string &bytes, const std::string &, std::string &why) { return readZipWhole(bytes, why); }}},
    {"pickle",
     {mutatePickle,
      [](const std::string &bytes, const std::string &, std::string &why) { return readPickle(bytes, why); }}},
    {"npy",
     {[](std::string &bytes, const std::vector<std::string> &, Random &random) { mutateNpy(bytes, random); },
      [](const std::string &, const std::string &path, std::string &why) {
        return judge([&] { readNpy(path); }, why);
      }}},
    {"npz",
     {mutateNpz, [](const std::string &, const std::string &path,
                    std::string &why) { return judge([&] { readNpz(path); }, why); }}},
    {"pb",
     {[](std::string &bytes, const std::vector<std::string> &, Random &random) {
        for (uint64_t n = 1 + pick(random, 4); n--;)
          mutateWire(bytes, random);
      },
      [](const std::string &bytes, const std::string &path, std::string &why) {
        static const uint32_t kinds[] = {TCRT_VALUE_TENSOR,
                                         TCRT_VALUE_SEQUENCE,
                                         TCRT_VALUE_OPTIONAL,
                                         TCRT_VALUE_MAP,
                                         TCRT_VALUE_OPTIONAL | TCRT_VALUE_SEQUENCE << 8,
                                         TCRT_VALUE_SEQUENCE | TCRT_VALUE_MAP << 8};
        return judge([&] { readPb(path, kinds[bytes.size() % 6]); }, why);
      }}},
    {"tune",
     {[](std::string &bytes, const std::vector<std::string> &, Random &random) {
        // The index, with its hash and the file's size made right; its offset is 16 bytes behind the start.
        static const std::vector<std::string> words = {"null", "true", "{}",   "[]",     "\"\"",
                                                       "-1",   "[0]",  "4096", "\"f16\""};
        uint64_t offset = 0;
        if (bytes.size() < 64 || pick(random, 8) == 0)
          return mutateBytes(bytes, random);
        std::memcpy(&offset, &bytes[16], sizeof offset);
        std::string index = bytes.substr(std::min<uint64_t>(offset, bytes.size()));
        pick(random, 4) ? mutateText(index, words, random) : mutateBytes(index, random);
        bytes.resize(std::min<uint64_t>(offset, bytes.size()));
        bytes += index;
        const uint64_t size = bytes.size();
        std::memcpy(&bytes[24], &size, sizeof size);
        tcrt_sha256(index.data(), index.size(), reinterpret_cast<uint8_t *>(&bytes[32]));
      },
      [](const std::string &, const std::string &path, std::string &why) {
        std::string error;
        std::optional<tc::measure::TuneFile> file = tc::measure::TuneFile::open(path, error);
        if (!file)
          return judge([&] { throw Failure(1, error); }, why);
        for (const tc::measure::TuneKernel &kernel : file->getIndex().kernels) {
          tc::measure::Tensors tensors;
          if (kernel.onGpu || !kernel.makeTensors(tensors))
            continue;
          tc::measure::RunnerOptions options;
          options.isKept = true;
          std::optional<tc::measure::Runner> first =
              tc::measure::Runner::open(file->getArtifact(kernel), options, tensors, error);
          for (uint32_t i = 0; first && i < kernel.schedules.size(); ++i)
            tc::measure::Runner::openFunction(*first, i, tensors, error);
        }
        return Answer::Taken;
      }}},
    {"json",
     {[](std::string &text, const std::vector<std::string> &corpus, Random &random) {
        static const std::vector<std::string> words = {"null",
                                                       "true",
                                                       "{}",
                                                       "[]",
                                                       "\"\"",
                                                       "1e999",
                                                       "-0",
                                                       "\"\\u0000\"",
                                                       "[[[[",
                                                       "\"\\ud800\"",
                                                       "{\"a\":1,\"a\":2}"};
        pick(random, 3) ? mutateText(text, words, random) : mutateBytes(text, random);
        if (pick(random, 16) == 0)
          text.insert(pick(random, text.size() + 1), pick(random, 200000), pick(random, 2) ? '[' : '{');
      },
      [](const std::string &text, const std::string &, std::string &why) {
        const nlohmann::json json = tc::parseJson(text.data(), text.size());
        if (json.is_discarded())
          return Answer::Refused;
        // As tc-inspect prints it, whatever its strings hold.
        if (json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).empty())
          why = "it has no text";
        return why.empty() ? Answer::Taken : Answer::Wrong;
      }}}};

} // namespace

int main(int argc, char **argv) {
  return fuzzMain(argc, argv, [](const std::string &name) -> const Target * {
    auto it = targets.find(name);
    return it == targets.end() ? nullptr : &it->second;
  });
}
