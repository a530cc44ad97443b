//===- Schemas.cpp - tests of the table of PyTorch's operators ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Graph/Torch/Schemas.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <thread>

using namespace tc::torch;
using Kind = SchemaType::Kind;

TEST_CASE("every line of the table is read, and its defaults have values") {
  std::ifstream file(TC_TEST_SCHEMAS);
  REQUIRE(file);
  size_t lines = 0;
  for (std::string line; std::getline(file, line);)
    lines += line.find("->") != std::string::npos;
  std::vector<const Schema *> all = getAllSchemas();
  CHECK(all.size() == lines);
  for (const Schema *schema : all) {
    INFO(schema->text.str());
    CHECK(findSchema(schema->domain, schema->nodeType()) == schema);
    for (const SchemaArgument &argument : schema->arguments) {
      CHECK(!argument.name.empty());
      CHECK(argument.defaultText.has_value() == argument.defaultValue().has_value());
    }
  }
}

TEST_CASE("a signature's arguments, defaults and alias sets") {
  const Schema *add = findSchema("aten", "add_.Tensor");
  REQUIRE(add);
  REQUIRE(add->arguments.size() == 3);
  CHECK(add->arguments[0].isWritten());
  CHECK(!add->arguments[1].isWritten());
  CHECK(add->arguments[2].keywordOnly);
  CHECK(std::get<int64_t>(*add->find("alpha")->defaultValue()) == 1);
  CHECK(!add->find("other")->defaultValue());
  CHECK(add->results[0].type.aliasSet == "a");

  const Schema *pool = findSchema("aten", "avg_pool2d.default");
  REQUIRE(pool);
  CHECK(std::get<std::vector<int64_t>>(*pool->find("stride")->defaultValue()).empty());
  CHECK(std::get<std::vector<int64_t>>(*pool->find("padding")->defaultValue()) == std::vector<int64_t>{0, 0});
  CHECK(pool->find("divisor_override")->defaultValue()->index() == 0);
  CHECK(pool->find("kernel_size")->type.length == 2);

  const Schema *split = findSchema("aten", "split.Tensor");
  REQUIRE(split);
  CHECK(split->results[0].type.kind == Kind::List);
  CHECK(split->results[0].type.findAlias()->aliasSet == "a");
  CHECK(findSchema("aten", "index.Tensor")->find("indices")->type.str() == "Tensor?[]");
  CHECK(findSchema("aten", "split.str")->find("separator")->type.str() == "str?");
  CHECK(std::get<std::string>(*findSchema("aten", "strip")->find("chars")->defaultValue()) == " \n\t\f\v");
  CHECK(findSchema("aten", "__getitem__.Dict_str")->arguments[0].type.elements[0].kind == Kind::String);
  CHECK(!findSchema("aten", "no_such_operator.default"));
  // TorchScript tries them in this order.
  CHECK(findOverloads("aten", "add").front()->overload == "Tensor");
}

TEST_CASE("signatures of others are read, and what is none is refused") {
  auto schema = parseSchema(
      "my::blend.scaled(Tensor x, Tensor(a!) y, *, float alpha=1, str mode=\"sum\") -> (Tensor, Tensor(a!))");
  REQUIRE(schema);
  CHECK(schema->nodeType() == "blend.scaled");
  CHECK(schema->writes());
  CHECK(schema->results[1].type.findAlias()->aliasSet == "a");
  CHECK(schema->find("alpha")->keywordOnly);
  CHECK(*schema->find("mode")->defaultValue() == SchemaValue(std::string("sum")));
  CHECK(parseSchema("my::bump(Tensor(a!) y) -> ()"));
  std::string deep = "my::f(", marked = "my::f(Tensor";
  for (int i = 0; i < 100'000; ++i) {
    deep += '(';
    marked += '?';
  }
  for (const std::string &text :
       {std::string(), std::string("blend"), std::string("my::blend(Tensor x)"),
        std::string("my::blend(Tensor) -> Tensor"), std::string("my::blend(x, y) -> Tensor"),
        std::string("my::blend(Tensor x, Tensor x) -> Tensor"), std::string("my::blend(Tensor x -> Tensor"),
        std::string("::blend(Tensor x) -> Tensor"), std::string("my::(Tensor x) -> Tensor"),
        std::string("my::blend(Tensor x) -> Tensor; more"), std::string("my::f(str s=\") -> Tensor"),
        std::string("my::f(int[99999999999] x=1) -> Tensor"), deep, marked}) {
    INFO(text.substr(0, 60));
    CHECK(!parseSchema(text));
  }
}

TEST_CASE("the operator that returns what another writes") {
  auto twin = [](const char *type) {
    const Schema *schema = findSchema("aten", type);
    REQUIRE(schema);
    const Schema *pure = findFunctional(*schema);
    return pure ? pure->nodeType() : std::string();
  };
  CHECK(twin("add_.Tensor") == "add.Tensor");
  CHECK(twin("add.out") == "add.Tensor");
  CHECK(twin("div_.Scalar_mode") == "div.Scalar_mode");
  CHECK(twin("relu_.default") == "relu.default");
  CHECK(twin("sum.IntList_out") == "sum.dim_IntList");
  CHECK(twin("masked_fill_.Scalar") == "masked_fill.Scalar");
  CHECK(twin("__ior__.Tensor") == "__or__.Tensor");
  CHECK(twin("normal_.default") == "normal_functional.default");
  CHECK(twin("bernoulli_.float") == "bernoulli.p");
  CHECK(twin("_native_batch_norm_legit.default") == "_native_batch_norm_legit_functional.default");
  CHECK(twin("_foreach_add_.List") == "_foreach_add.List");
  CHECK(twin("polygamma_.default") == "polygamma.default");
  CHECK(twin("dropout_.default") == "dropout.default");
  CHECK(twin("resize_.default") == "resize.default");
  CHECK(twin("set_.source_Tensor") == "set.source_Tensor");
  CHECK(twin("add.Tensor").empty());
}

TEST_CASE("the table may be asked by several threads") {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (const char *name : {"add", "mul", "relu", "conv2d", "sum", "cat", "mean"})
        if (findOverloads("aten", name).empty())
          std::abort();
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(findSchema("torchvision", "nms.default"));
}
