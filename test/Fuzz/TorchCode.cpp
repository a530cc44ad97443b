//===- TorchCode.cpp ----------------------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "TorchCode.h"

#include "tc/Dialect/Graph/Torch/Schemas.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <iterator>

using namespace tc::fuzz;
using tc::torch::Schema;
using tc::torch::SchemaType;

namespace {

template <size_t N> std::string anyOf(const char *const (&texts)[N], Random &random) { return texts[pick(random, N)]; }

const std::vector<const Schema *> &schemas() {
  // Those that work on tensors: what else there is belongs to the interpreter, and the corpus calls it.
  static const std::vector<const Schema *> all = [] {
    std::vector<const Schema *> found;
    for (const Schema *schema : tc::torch::getAllSchemas())
      if (schema->domain == "aten" && schema->text.contains("Tensor"))
        found.push_back(schema);
    return found;
  }();
  return all;
}

std::string tensorText(Random &random) {
  static const char *const kTensors[] = {"x",
                                         "x",
                                         "x",
                                         "y",
                                         "y",
                                         "torch.unsqueeze(x, 0)",
                                         "torch.reshape(x, [-1])",
                                         "torch.sum(x)",
                                         "torch.slice(x, 0, 0, 0)",
                                         "torch.to(x, 4)",
                                         "torch.to(y, 3)",
                                         "torch.to(x, 7)",
                                         "torch.to(x, 5)",
                                         "torch.gt(x, 0)",
                                         "torch.complex(x, y)",
                                         "torch.tensor([2, 1, 0])",
                                         "torch.tensor(0)",
                                         "torch.tensor(2.5)",
                                         "torch.zeros([0, 3])",
                                         "torch.ones([2, 2, 3])",
                                         "torch.ones([1, 2, 5, 5])",
                                         "torch.ones([2, 2, 1, 1])",
                                         "torch.ones([1, 1, 2, 3, 4])",
                                         "torch.arange(4)",
                                         "torch.expand(torch.sum(x), [3, 4])",
                                         "torch.t(x)",
                                         "torch.nonzero(x)"};
  return anyOf(kTensors, random);
}

std::string argumentText(const SchemaType &type, Random &random) {
  using Kind = SchemaType::Kind;
  static const char *const kStrings[] = {"mean",     "none",    "sum",      "reflect",   "constant", "replicate",
                                         "circular", "trunc",   "floor",    "ij,jk->ik", "tanh",     "bilinear",
                                         "nearest",  "bicubic", "ij",       "fro",       "nuc",      "same",
                                         "valid",    "reduced", "complete", "backward",  "ortho",    "linear",
                                         "left",     "amax",    "prod",     "L",         "",         "...ij->...ji"};
  if (pick(random, 40) == 0)
    return pick(random, 2) ? "None" : tensorText(random);
  switch (type.kind) {
  case Kind::Tensor:
    return tensorText(random);
  case Kind::Int:
  case Kind::SymInt:
    return pick(random, 12) == 0   ? "torch.size(x, 0)"
           : pick(random, 12) == 0 ? std::to_string(oddNumber(random))
                                   : std::to_string(int64_t(pick(random, 8)) - 2);
  case Kind::Float:
  case Kind::Scalar:
    return oddLiteral(random);
  case Kind::Bool:
    return pick(random, 2) ? "True" : "False";
  case Kind::Complex:
    return "complex(1, 2)";
  case Kind::String:
    return "\"" + anyOf(kStrings, random) + "\"";
  case Kind::ScalarType:
    return std::to_string(pick(random, 16));
  case Kind::MemoryFormat:
    return std::to_string(pick(random, 4));
  case Kind::Layout:
    return "0";
  case Kind::Device:
    return "torch.device(\"cpu\")";
  case Kind::List: {
    std::string text = "[";
    const uint64_t count = type.length && pick(random, 3) ? uint64_t(*type.length) : pick(random, 5);
    for (uint64_t i = 0; i < count && i < 8; ++i)
      text += (i ? ", " : "") + argumentText(type.elements[0], random);
    return text + "]";
  }
  case Kind::Optional:
    return pick(random, 2) ? "None" : argumentText(type.elements[0], random);
  default:
    return "None";
  }
}

/// "torch.add(x, y, alpha=2)".
std::string callText(Random &random) {
  const Schema &schema = *schemas()[pick(random, schemas().size())];
  std::string text = "torch." + schema.name.str() + "(";
  bool isFirst = true, isNamed = false;
  for (const tc::torch::SchemaArgument &argument : schema.arguments) {
    isNamed |= argument.keywordOnly;
    if (argument.defaultText && pick(random, 2)) {
      isNamed = true;
      continue;
    }
    text += isFirst ? "" : ", ";
    text += (isNamed ? argument.name.str() + "=" : "") + argumentText(argument.type, random);
    isFirst = false;
  }
  return text + ")";
}

} // namespace

std::string tc::fuzz::oddLiteral(Random &random) {
  static const char *const kNumbers[] = {"0",
                                         "1",
                                         "2",
                                         "3",
                                         "-1",
                                         "0.",
                                         "0.5",
                                         "1.5",
                                         "-2.",
                                         "1e-45",
                                         "1e300",
                                         "inf",
                                         "-inf",
                                         "nan",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "9223372036854775808",
                                         "1e99999",
                                         "0x10",
                                         "1_000",
                                         "2147483648",
                                         "1000000",
                                         "True"};
  return pick(random, 4) ? kNumbers[pick(random, 9)] : anyOf(kNumbers, random);
}

std::string tc::fuzz::anyOperator(Random &random) {
  const Schema &schema = *schemas()[pick(random, schemas().size())];
  return "aten." + schema.name.str() + "." + (schema.overload.empty() ? "default" : schema.overload.str());
}

std::string tc::fuzz::sizeExpression(Random &random, int depth) {
  static const char *const kLeaves[] = {"s0", "s1",  "s77", "u0", "1", "2", "0", "-1", "9223372036854775807",
                                        "oo", "0.5", "True"};
  static const char *const kFunctions[] = {
      "Mod",    "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv", "Max", "Min", "Ne",         "Eq",
      "Lt",     "Ge",        "Pow",      "Where",    "Abs",     "And", "Not", "TruncToInt", "ModularIndexing",
      "LShift", "floor",     "ceiling",  "sqrt"};
  static const char *const kInfix[] = {" + ", " - ", "*", "/", "//", " % ", "**", " <= ", " == ", " != ", " & "};
  if (depth > 6 || pick(random, 3) == 0)
    return anyOf(kLeaves, random);
  switch (pick(random, 5)) {
  case 0:
    return "(" + sizeExpression(random, depth + 1) + ")";
  case 1:
    return "-" + sizeExpression(random, depth + 1);
  case 2: {
    std::string text = anyOf(kFunctions, random) + "(";
    for (uint64_t i = 0, count = 1 + pick(random, 3); i < count; ++i)
      text += (i ? ", " : "") + sizeExpression(random, depth + 1);
    return text + ")";
  }
  default:
    return sizeExpression(random, depth + 1) + anyOf(kInfix, random) + sizeExpression(random, depth + 1);
  }
}

void tc::fuzz::mutateCode(std::string &text, const std::string &donor, Random &random) {
  static const char *const kWords[] = {"None",
                                       "True",
                                       "-1",
                                       "0",
                                       "9223372036854775807",
                                       "inf",
                                       "[]",
                                       "(x, )",
                                       "x",
                                       "self",
                                       "1.5",
                                       "torch",
                                       "\"a\"",
                                       "{}",
                                       "int",
                                       "Tensor",
                                       "size",
                                       "len",
                                       "view",
                                       "split",
                                       "getattr",
                                       "==",
                                       "if",
                                       "return x",
                                       "y",
                                       "float",
                                       "str",
                                       "annotate",
                                       "Optional[int]",
                                       "List[Tensor]",
                                       "Dict[str, Tensor]",
                                       "range",
                                       "while",
                                       "in",
                                       "ops.prim.NumToTensor(x)"};
  struct Span {
    size_t at, size;
  };
  auto word = [&](const std::string &of) {
    size_t at = pick(random, of.size()), end = at;
    auto isWord = [&](char c) { return llvm::isAlnum(c) || c == '_'; };
    while (at > 0 && isWord(of[at - 1]))
      --at;
    while (end < of.size() && isWord(of[end]))
      ++end;
    return Span{at, std::max<size_t>(end - at, 1)};
  };
  // A whole line around a random place, with its end.
  auto line = [&](const std::string &of) {
    const size_t at = pick(random, of.size()), before = at ? of.rfind('\n', at - 1) : std::string::npos;
    const size_t begin = before == std::string::npos ? 0 : before + 1, end = of.find('\n', at);
    return Span{begin, (end == std::string::npos ? of.size() : end + 1) - begin};
  };
  auto indentAt = [&](size_t begin) {
    const size_t end = text.find_first_not_of(' ', begin);
    return std::string(end == std::string::npos ? 0 : end - begin, ' ');
  };
  for (uint64_t n = 1 + pick(random, 3); n-- && !text.empty() && text.size() < 200'000;) {
    const Span here = word(text);
    switch (pick(random, 14)) {
    case 0:
      text.replace(here.at, here.size, anyOf(kWords, random));
      break;
    case 1: { // another word of the text
      const Span from = word(text);
      text.replace(here.at, here.size, text.substr(from.at, from.size));
      break;
    }
    case 2: { // a line away, twice, or often
      const Span at = line(text);
      const std::string copy = text.substr(at.at, at.size);
      if (pick(random, 2)) {
        text.erase(at.at, at.size);
      } else {
        const uint64_t times = pick(random, 32) ? 1 : 1 + pick(random, 200);
        std::string all;
        for (uint64_t i = 0; i < times; ++i)
          all += copy;
        text.insert(at.at, all);
      }
      break;
    }
    case 3:
      text.erase(here.at, here.size);
      break;
    case 4: { // deeper or less deep
      const Span at = line(text);
      if (pick(random, 2))
        text.insert(at.at, std::string(1 + pick(random, 4), pick(random, 16) ? ' ' : '\t'));
      else
        text.erase(at.at, std::min(indentAt(at.at).size(), size_t(2)));
      break;
    }
    case 5: // another number
      for (size_t i = here.at; i < text.size(); ++i)
        if (llvm::isDigit(text[i]) && (i == 0 || !(llvm::isAlnum(text[i - 1]) || text[i - 1] == '_'))) {
          size_t end = i;
          while (end < text.size() && (llvm::isAlnum(text[end]) || text[end] == '.'))
            ++end;
          text.replace(i, end - i, oddLiteral(random));
          break;
        }
      break;
    case 6: { // nested
      static const char *const kOpen[] = {"(",  "[",     "{",    "-", "torch.neg(", "((x, ", "[[", "annotate(List[",
                                          "x[", "self.", "List["};
      std::string nested;
      const std::string open = anyOf(kOpen, random);
      for (uint64_t times = pick(random, 8) ? 1 + pick(random, 4) : pick(random, 3000); times--;)
        nested += open;
      text.insert(here.at, nested);
      break;
    }
    case 7: // a line of another archive
      if (!donor.empty()) {
        const Span from = line(donor), at = line(text);
        const size_t start = donor.find_first_not_of(' ', from.at);
        if (start != std::string::npos && start < from.at + from.size)
          text.insert(at.at, indentAt(at.at) + donor.substr(start, from.at + from.size - start));
      }
      break;
    case 8: { // two lines exchanged
      const Span a = line(text), b = line(text);
      const std::string first = text.substr(a.at, a.size), second = text.substr(b.at, b.size);
      if (a.at + a.size <= b.at) {
        text.replace(b.at, b.size, first);
        text.replace(a.at, a.size, second);
      }
      break;
    }
    default: { // a call, whose result is used
      const size_t body = text.find("return ", here.at);
      const size_t before = body == std::string::npos ? body : text.rfind('\n', body);
      if (before == std::string::npos)
        break;
      static const char *const kUses[] = {"x = ", "y = ",     "z, w = ",      "x = torch.add(x, ",
                                          "",     "x, _9 = ", "y, _9, _8 = ", "return "};
      const std::string use = pick(random, 3) ? "x = " : anyOf(kUses, random);
      const bool isOpen = use.find('(') != std::string::npos;
      text.insert(before + 1, indentAt(before + 1) + use + callText(random) + (isOpen ? ")\n" : "\n"));
    }
    }
  }
}
