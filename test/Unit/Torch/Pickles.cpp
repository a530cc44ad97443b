//===- Pickles.cpp - pickles give plain data, and nothing else ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Frontend/Torch/Pickle.h"
#include "tc/Support/ZipArchive.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

using namespace tc::torch;
using Kind = PickledValue::Kind;
using Catch::Matchers::Contains;

namespace {

// Instructions, as Python's Lib/pickle.py names them.
std::string bytes(std::initializer_list<int> codes) {
  std::string text;
  for (int code : codes)
    text += char(code);
  return text;
}
std::string number(uint64_t value, unsigned width) {
  return std::string(reinterpret_cast<const char *>(&value), width);
}
std::string text(const std::string &value) { return "X" + number(value.size(), 4) + value; }
std::string integer(int32_t value) { return "J" + number(uint32_t(value), 4); }
std::string global(const std::string &module, const std::string &name) { return "c" + module + "\n" + name + "\n"; }
std::string tuple(const std::string &items) { return "(" + items + "t"; }
std::string storage(const std::string &type, int elements) {
  return tuple(text("storage") + global("torch", type) + text("0") + text("cpu") + integer(elements)) + "Q";
}
const std::string hooks = global("collections", "OrderedDict") + ")R";
std::string program(const std::string &body) { return bytes({0x80, 2}) + body + "."; }

Pickle parse(const std::string &body) {
  std::string error;
  std::optional<Pickle> pickle = Pickle::parse(program(body), error);
  INFO(error);
  REQUIRE(pickle);
  return std::move(*pickle);
}

std::string refusal(const std::string &body) {
  std::string error;
  CHECK(!Pickle::parse(program(body), error));
  CHECK(error.find('\n') == std::string::npos);
  return error;
}

} // namespace

TEST_CASE("plain data comes out of a pickle") {
  Pickle pickle = parse(
      "}(" + text("none") + "N" + text("true") + bytes({0x88}) + text("small") + "K\x07" + text("negative") +
      integer(-5) + text("long") + bytes({0x8a, 5, 0, 0, 0, 0, 0x80}) + text("half") + "G" +
      bytes({0x3f, 0xe0, 0, 0, 0, 0, 0, 0}) + text("bytes") + global("_codecs", "encode") + "(" + text("a\xc3\xbf") +
      text("latin1") + "tR" + text("list") + "](K\x01K\x02" + "e" + text("pair") + "K\x01K\x02" + bytes({0x86}) +
      text("device") + global("torch", "device") + "(" + text("cuda") + bytes({'K', 0}) + "tR" + text("type") +
      global("torch", "float8_e4m3fn") + text("size") + global("torch", "Size") + "(K\x03" + bytes({0x85, 't'}) + "R" +
      text("complex") + global("builtins", "complex") + "(G" + bytes({0x3f, 0xf0, 0, 0, 0, 0, 0, 0}) + "G" +
      bytes({0xbf, 0xf0, 0, 0, 0, 0, 0, 0}) + "tR" + text("tagged") + global("torch.jit._pickle", "restore_type_tag") +
      "(]" + text("List[int]") + "tRu");
  const PickledValue &root = pickle.root();
  REQUIRE(root.kind == Kind::Dict);
  CHECK(root.find("none")->isNone());
  CHECK((root.find("true")->kind == Kind::Bool && root.find("true")->integer == 1));
  CHECK((root.find("small")->kind == Kind::Int && root.find("small")->integer == 7));
  CHECK(root.find("negative")->integer == -5);
  CHECK(root.find("long")->integer == -(int64_t(1) << 39));
  CHECK((root.find("half")->kind == Kind::Float && root.find("half")->real == 0.5));
  CHECK((root.find("bytes")->kind == Kind::Bytes && root.find("bytes")->text == "a\xff"));
  CHECK((root.find("list")->kind == Kind::List && root.find("list")->items[1]->integer == 2));
  CHECK((root.find("pair")->kind == Kind::Tuple && root.find("pair")->items.size() == 2));
  CHECK((root.find("device")->kind == Kind::Device && root.find("device")->text == "cuda:0"));
  CHECK(ScalarType(root.find("type")->integer) == ScalarType::Float8_e4m3fn);
  CHECK(root.find("size")->items[0]->integer == 3);
  CHECK((root.find("complex")->real == 1 && root.find("complex")->imaginary == -1));
  CHECK(root.find("tagged")->text == "List[int]");
  CHECK(!root.find("absent"));
}

TEST_CASE("tensors are views of storages, and objects have a class and a state") {
  const std::string tensor = global("torch._utils", "_rebuild_tensor_v2") +
                             tuple(storage("HalfStorage", 24) + "K\x04" + tuple("K\x02K\x03") + tuple("K\x01K\x02") +
                                   bytes({0x88}) + hooks + "}(" + text("neg") + bytes({0x88, 'u'})) +
                             "R";
  Pickle pickle = parse(global("__torch__.net", "Net") + bytes({')', 0x81}) + "}(" + text("weight") + tensor + "ub");
  const PickledValue &net = pickle.root();
  CHECK(net.kind == Kind::Object);
  CHECK(net.text == "__torch__.net.Net");
  const PickledValue *weight = net.find("weight");
  REQUIRE((weight && weight->kind == Kind::Tensor));
  const PickledTensor &view = *weight->tensor;
  CHECK(view.dtype == ScalarType::Half);
  CHECK(view.offset == 4);
  CHECK(view.sizes == std::vector<int64_t>{2, 3});
  CHECK(view.strides == std::vector<int64_t>{1, 2});
  CHECK((view.requiresGrad && view.isNegated && !view.isConjugated && !view.isParameter && !view.quantization));
  REQUIRE(view.storage);
  CHECK((view.storage->key == "0" && view.storage->location == "cpu" && view.storage->elements == 24));

  // A parameter is another value than the tensor that it is made of.
  pickle = parse(tensor + "q\x01(" + global("torch._utils", "_rebuild_parameter") + "(h\x01" + bytes({0x89}) + hooks +
                 "tRt" + bytes({0x86}));
  CHECK(!pickle.root().items[0]->tensor->isParameter);
  CHECK(pickle.root().items[1]->items[0]->tensor->isParameter);

  const std::string quantized =
      global("torch._utils", "_rebuild_qtensor") +
      tuple(storage("QInt8Storage", 4) + bytes({'K', 0}) + tuple("K\x04") + tuple("K\x01") +
            tuple(global("torch", "per_tensor_affine") + "G" + bytes({0x3f, 0xe0, 0, 0, 0, 0, 0, 0}) + "K\x03") +
            bytes({0x89}) + hooks) +
      "R";
  pickle = parse(quantized);
  REQUIRE(pickle.root().tensor->quantization);
  CHECK(pickle.root().tensor->quantization->scale == 0.5);
  CHECK(pickle.root().tensor->quantization->zeroPoint == 3);
  CHECK(pickle.root().tensor->dtype == ScalarType::QInt8);

  pickle = parse(global("torch._utils", "_rebuild_tensor_v3") +
                 tuple(storage("UntypedStorage", 8) + bytes({'K', 0}) + tuple("K\x08") + tuple("K\x01") +
                       bytes({0x89}) + hooks + global("torch", "uint16")) +
                 "R");
  CHECK(pickle.root().tensor->dtype == ScalarType::UInt16);
  // Without storage.
  pickle = parse(global("torch._utils", "_rebuild_meta_tensor_no_storage") +
                 tuple(global("torch", "float32") + tuple("K\x08") + tuple("K\x01") + bytes({0x89})) + "R");
  CHECK(!pickle.root().tensor->storage);
}

TEST_CASE("whatever is no plain data is refused by its name, and never run") {
  CHECK_THAT(refusal(global("os", "system") + "(" + text("touch /tmp/x") + "tR"),
             Contains("asks for \"os.system\", which is no plain data, and is never run"));
  CHECK_THAT(refusal(global("o\x1bs", "a\tb")), Contains("\"o?s.a?b\""));
  CHECK_THAT(refusal(text("builtins") + text("eval") + bytes({0x93})), Contains("asks for \"builtins.eval\""));
  CHECK_THAT(refusal(global("torch._utils", "_rebuild_sparse_tensor")),
             Contains("a sparse tensor, which is not supported; call .to_dense()"));
  CHECK_THAT(refusal(global("torch._utils", "_rebuild_wrapper_subclass")), Contains("a tensor subclass"));
  CHECK_THAT(refusal(global("numpy.core.multiarray", "_reconstruct")), Contains("a NumPy array"));
  // Names of the list are called as they are meant to be, or not at all.
  CHECK_THAT(refusal(global("torch", "strided") + ")R"), Contains("calls what is no function"));
  CHECK_THAT(refusal("K\x01)R"), Contains("calls what is no function"));
  CHECK_THAT(refusal(global("torch._tensor", "_rebuild_from_type_v2") +
                     tuple(global("torch", "device") + global("torch", "Tensor") + tuple(text("cpu")) + "N") + "R"),
             Contains("a tensor is made by what makes none"));
  CHECK_THAT(refusal("K\x01}b"), Contains("a state to what has none"));
}

TEST_CASE("pickles that are damaged or meant to harm are refused in time and memory of their size") {
  CHECK_THAT(refusal(""), Contains("ends with another number of values"));
  CHECK_THAT(refusal("0"), Contains("an instruction lacks its operand"));
  CHECK_THAT(refusal("K\x01(e"), Contains("what is no list"));
  CHECK_THAT(refusal("h\x01"), Contains("names a value that it does not have"));
  CHECK_THAT(refusal("(K\x01"), Contains("ends with another number of values"));
  CHECK_THAT(refusal("K\x01(a"), Contains("an instruction lacks its operand")); // under the mark
  CHECK_THAT(refusal("i"), Contains("instruction 105 at byte 2 is none that PyTorch writes"));
  CHECK_THAT(refusal("X" + number(0xffffffff, 4)), Contains("cut off"));
  CHECK_THAT(refusal(bytes({0x8d}) + number(UINT64_MAX, 8)), Contains("cut off"));
  CHECK_THAT(refusal(bytes({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1})), Contains("more than 64 bits"));
  CHECK_THAT(refusal("}(" + text("a") + "N" + text("a") + "Nu"), Contains("the key \"a\" twice"));
  std::string error;
  CHECK(!Pickle::parse(bytes({0x80, 6}) + "N.", error));
  CHECK_THAT(error, Contains("protocol 6"));
  // A list of itself.
  CHECK_THAT(refusal("]q\x01h\x01"
                     "a"),
             Contains("contains itself"));
  CHECK_THAT(refusal("]q\x01](h\x01"
                     "ea"),
             Contains("contains itself"));
  // Deep.
  std::string deep = ")";
  for (int i = 0; i < 2000; ++i)
    deep += bytes({0x85});
  CHECK_THAT(refusal(deep), Contains("more than 1000 deep"));
  // Deep by a way that is found later than a shorter one.
  deep = ")q\x01";
  for (int i = 0; i < 900; ++i)
    deep += bytes({0x85});
  deep += "q\x02";
  for (int i = 0; i < 900; ++i)
    deep += bytes({0x85});
  CHECK_THAT(refusal("(h\x02" + deep.substr(0, 0) + "t"), Contains("names a value"));
  CHECK_THAT(refusal("(" + deep + "h\x02t"), Contains("more than 1000 deep"));
  // 2^100 paths are walked as 100 values.
  std::string wide = "]";
  for (int i = 0; i < 100; ++i)
    wide += bytes({'2', 0x86});
  CHECK(parse(wide).root().items.size() == 2);
  // A long name, copied by two bytes each.
  const std::string name(900, 'x');
  std::string copies = text("__torch__") + "q\x01" + text(name) +
                       "q\x02"
                       "00";
  std::string many;
  for (int i = 0; i < 200000; ++i)
    many += std::string("h\x01h\x02") + bytes({0x93, '0'});
  CHECK_THAT(refusal(copies + many + "N"), Contains("repeats itself too often"));
  CHECK_THAT(refusal(global("torch._utils", "_rebuild_tensor_v2") +
                     tuple(storage("FloatStorage", -1) + "K\x04" + tuple("") + tuple("")) + "R"),
             Contains("a storage that is not readable"));
  CHECK_THAT(refusal(global("torch._utils", "_rebuild_tensor_v2") +
                     tuple(storage("FloatStorage", 1) + "K\x04" + tuple(integer(-2)) + tuple("K\x01")) + "R"),
             Contains("a negative size"));
  CHECK_THAT(refusal(global("torch._utils", "_rebuild_tensor_v2") +
                     tuple(storage("FloatStorage", 1) + "K\x04" + tuple("K\x02") + tuple("")) + "R"),
             Contains("other numbers of sizes and strides"));
}

TEST_CASE("the pickles of a TorchScript archive are read, and changed ones do no harm") {
  std::ifstream file(TC_TEST_TORCHSCRIPT, std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string archiveBytes = stream.str();
  std::string error;
  std::optional<tc::ZipArchive> archive = tc::ZipArchive::open(archiveBytes, error);
  INFO(error);
  REQUIRE(archive);
  const tc::ZipArchive::Member *member = archive->findSuffix("/data.pkl");
  REQUIRE(member);
  std::optional<tc::ZipArchive::Contents> contents = archive->read(*member, error);
  REQUIRE(contents);
  const std::string good(contents->text());
  std::optional<Pickle> pickle = Pickle::parse(good, error);
  INFO(error);
  REQUIRE(pickle);
  CHECK(pickle->root().kind == Kind::Object);
  CHECK(pickle->root().text.find("__torch__") == 0);
  CHECK(pickle->root().find("training")->kind == Kind::Bool);
  std::mt19937 random(5);
  const char *setting = std::getenv("TC_FUZZ_ROUNDS");
  int refused = 0;
  const int rounds = setting ? std::atoi(setting) : 2000;
  for (int round = 0; round < rounds; ++round) {
    std::string changed = good;
    for (uint32_t n = 1 + random() % 4; n--;)
      changed[random() % changed.size()] = char(random());
    if (random() % 8 == 0)
      changed.resize(random() % changed.size());
    refused += !Pickle::parse(changed, error);
  }
  CHECK(refused > rounds / 10);
}
