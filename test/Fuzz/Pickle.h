//===- Pickle.h - pickles whose instructions are changed ------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TEST_FUZZ_PICKLE_H
#define TC_TEST_FUZZ_PICKLE_H

#include "Loop.h"

#include <cstring>
#include <string>
#include <vector>

namespace tc::fuzz {

/// The instructions of a pickle as far as they can be told, each with its operand.
inline std::vector<std::string> splitPickle(const std::string &bytes) {
  std::vector<std::string> instructions;
  for (size_t at = 0; at < bytes.size();) {
    size_t size = 1;
    auto counted = [&](size_t width) {
      uint64_t count = 0;
      if (at + 1 + width <= bytes.size())
        std::memcpy(&count, &bytes[at + 1], width);
      size += width + size_t(std::min<uint64_t>(count, bytes.size()));
    };
    switch (uint8_t(bytes[at])) {
    case 'K':
    case 'h':
    case 'q':
    case 0x80:
      size = 2;
      break;
    case 'M':
      size = 3;
      break;
    case 'J':
    case 'j':
    case 'r':
      size = 5;
      break;
    case 'G':
    case 0x95:
      size = 9;
      break;
    case 'U':
    case 'C':
    case 0x8a:
    case 0x8c:
      counted(1);
      break;
    case 'X':
    case 'B':
    case 'T':
    case 0x8b:
      counted(4);
      break;
    case 0x8d:
    case 0x8e:
    case 0x96:
      counted(8);
      break;
    case 'c':
      for (int lines = 0; lines < 2 && at + size < bytes.size(); ++size)
        lines += bytes[at + size] == '\n';
      break;
    default:
      break;
    }
    size = std::min(size, bytes.size() - at);
    instructions.push_back(bytes.substr(at, size));
    at += size;
  }
  return instructions;
}

inline void mutatePickle(std::string &bytes, const std::vector<std::string> &others, Random &random) {
  static const std::vector<std::string> extra = {"(",
                                                 "0",
                                                 "1",
                                                 "2",
                                                 "]",
                                                 "}",
                                                 ")",
                                                 "t",
                                                 "e",
                                                 "u",
                                                 "a",
                                                 "s",
                                                 "b",
                                                 "R",
                                                 "Q",
                                                 "N",
                                                 ".",
                                                 "d",
                                                 "l",
                                                 "\x81",
                                                 "\x85",
                                                 "\x86",
                                                 "\x87",
                                                 "\x90",
                                                 "\x91",
                                                 "\x93",
                                                 "\x94",
                                                 "h\x01",
                                                 "q\x01",
                                                 "j\x01\x02\x03\x04",
                                                 "K\xff",
                                                 "J\xff\xff\xff\xff",
                                                 "ccollections\nOrderedDict\n",
                                                 "ctorch._utils\n_rebuild_tensor_v2\n",
                                                 "ctorch._utils\n_rebuild_tensor_v3\n",
                                                 "ctorch._utils\n_rebuild_parameter\n",
                                                 "ctorch._utils\n_rebuild_qtensor\n",
                                                 "ctorch\nper_channel_affine\n",
                                                 "ctorch._utils\n_rebuild_meta_tensor_no_storage\n",
                                                 "ctorch._tensor\n_rebuild_from_type_v2\n",
                                                 "ctorch\nfloat16\n",
                                                 "ctorch\nBoolStorage\n",
                                                 "ctorch.storage\nUntypedStorage\n",
                                                 "ctorch\nSize\n",
                                                 "c_codecs\nencode\n",
                                                 "ctorch.jit._pickle\nrestore_type_tag\n",
                                                 "c__torch__.a\nB\n",
                                                 "cos\nsystem\n",
                                                 "cbuiltins\nset\n"};
  std::vector<std::string> code = splitPickle(bytes);
  if (code.empty() || pick(random, 8) == 0)
    return mutateBytes(bytes, random);
  const std::vector<std::string> donor = splitPickle(others[pick(random, others.size())]);
  for (uint64_t n = 1 + pick(random, 6); n-- && !code.empty();) {
    const size_t at = pick(random, code.size()), length = 1 + pick(random, std::min<size_t>(code.size() - at, 12));
    const auto place = code.begin() + long(at);
    switch (pick(random, 8)) {
    case 0:
      code.erase(place, place + long(length));
      break;
    case 1: { // again, perhaps often
      const std::vector<std::string> part(place, place + long(length));
      for (uint64_t times = pick(random, 16) ? 1 : 1 + pick(random, 2000); times--;)
        code.insert(code.begin() + long(at), part.begin(), part.end());
      break;
    }
    case 2:
      std::swap(code[at], code[pick(random, code.size())]);
      break;
    case 3:
      mutateBytes(code[at], random);
      break;
    case 4:
      if (!donor.empty()) {
        const size_t from = pick(random, donor.size()), count = std::min<size_t>(donor.size() - from, length);
        code.insert(place, donor.begin() + long(from), donor.begin() + long(from + count));
      }
      break;
    case 5:
      code[at] = extra[pick(random, extra.size())];
      break;
    case 6: // another number
      if (code[at].size() > 1 && (code[at][0] == 'K' || code[at][0] == 'J' || code[at][0] == 'M')) {
        const int64_t number = oddNumber(random);
        code[at] = pick(random, 2) ? "J" + std::string(reinterpret_cast<const char *>(&number), 4)
                                   : std::string("\x8a\x08") + std::string(reinterpret_cast<const char *>(&number), 8);
      }
      break;
    default:
      code.insert(place, extra[pick(random, extra.size())]);
      break;
    }
  }
  bytes.clear();
  for (const std::string &instruction : code)
    bytes += instruction;
}

} // namespace tc::fuzz

#endif // TC_TEST_FUZZ_PICKLE_H
