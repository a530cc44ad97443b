//===- Page.cpp - the pictures of tc-bench's page -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Bench/Report.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

using namespace tc::bench;

namespace {

KernelResult makeKernel(uint32_t number, double us, uint64_t flops, uint64_t bytes, std::vector<uint32_t> reads = {}) {
  KernelResult kernel;
  kernel.name = "k" + std::to_string(number);
  kernel.nodes = "node_" + std::to_string(number);
  kernel.calls = 1;
  kernel.us = us;
  kernel.flops = flops;
  kernel.bytes = bytes;
  kernel.number = number;
  kernel.reads = std::move(reads);
  return kernel;
}

Report makeReport(double peak, double fastest, std::vector<KernelResult> kernels) {
  Report report;
  report.machine = "a <machine> & \"more\"";
  report.rooflines.push_back(
      {2, "avx512", peak, {{"L2", 1 << 20, 1 << 19, fastest, fastest}, {"memory", UINT64_MAX, 1 << 28, 20, 18}}});
  ModelResult model;
  model.model = "model.onnx";
  model.threads = 2;
  EngineResult engine;
  engine.name = "tc";
  engine.times = Times::of({9, 10, 11, 12, 100});
  model.engines.push_back(engine);
  model.kernels = std::move(kernels);
  report.models.push_back(model);
  return report;
}

/// All matches' groups, as numbers.
std::vector<std::vector<double>> findNumbers(const std::string &text, const std::string &pattern) {
  std::vector<std::vector<double>> all;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    std::vector<double> numbers;
    for (size_t i = 1; i < it->size(); ++i)
      numbers.push_back(std::stod((*it)[i]));
    all.push_back(numbers);
  }
  return all;
}

std::string pictureOf(const std::string &html, const std::string &kind) {
  const size_t begin = html.find("class=\"" + kind + "\"");
  return begin == std::string::npos ? "" : html.substr(begin, html.find("</svg>", begin) - begin);
}

} // namespace

TEST_CASE("nothing leaves the frame of the roofline", "[bench]") {
  // Kernels far above the peak, far below, at both ends of the intensities; roofs that are steep, flat and short.
  const double number = GENERATE(0, 1, 2, 3);
  const double peak = number == 1 ? 2 : number == 2 ? 9e4 : 300, fastest = number == 3 ? 1e5 : 200;
  const Report report =
      makeReport(peak, fastest,
                 {makeKernel(0, 50, 200000000, 20000), makeKernel(1, 40, 90000000, 3), makeKernel(2, 30, 7, 90000000),
                  makeKernel(3, 20, 1, 1000), makeKernel(4, 10, 0, 0)});
  const std::string picture = pictureOf(toHtml(report), "roofline");
  REQUIRE(!picture.empty());
  const double left = 70, right = 980, top = 20, bottom = 465;
  auto isInside = [&](double x, double y) {
    return x >= left - 0.1 && x <= right + 0.1 && y >= top - 0.1 && y <= bottom + 0.1;
  };
  const auto circles = findNumbers(picture, "cx=\"([-0-9.e+]+)\" cy=\"([-0-9.e+]+)\" r=\"([-0-9.e+]+)\"");
  REQUIRE(circles.size() == 4);
  for (const auto &circle : circles) {
    CAPTURE(circle[0], circle[1], circle[2]);
    CHECK(isInside(circle[0] - circle[2], circle[1] - circle[2]));
    CHECK(isInside(circle[0] + circle[2], circle[1] + circle[2]));
  }
  for (const auto &line : findNumbers(
           picture, "class=\"roof\" x1=\"([-0-9.e+]+)\" y1=\"([-0-9.e+]+)\" x2=\"([-0-9.e+]+)\" y2=\"([-0-9.e+]+)\"")) {
    CAPTURE(line[0], line[1], line[2], line[3]);
    CHECK(isInside(line[0], line[1]));
    CHECK(isInside(line[2], line[3]));
  }
  // Names on slopes: both ends of the text, at 7 units a letter.
  const std::regex named("translate\\(([-0-9.]+) ([-0-9.]+)\\) rotate\\(([-0-9.]+)\\)\">([^<]+GB/s)<");
  for (std::sregex_iterator it(picture.begin(), picture.end(), named), end; it != end; ++it) {
    const double x = std::stod((*it)[1]), y = std::stod((*it)[2]), angle = std::stod((*it)[3]) / 57.29578;
    const double length = 7.0 * double((*it)[4].length());
    CAPTURE((*it)[4].str(), x, y);
    CHECK(isInside(x, y));
    CHECK(isInside(x + length * std::cos(angle), y + length * std::sin(angle)));
  }
}

TEST_CASE("the page says where and when it was made, and what an effective rate is", "[bench]") {
  Report report = makeReport(300, 200, {makeKernel(0, 1, 900000, 9000)});
  report.date = "2026-01-31 14:05:00 +0100";
  report.command = "tc-bench 'a b.onnx'";
  CHECK(toHtml(report).find("Winograd's algorithm") == std::string::npos);
  report.models[0].kernels[0].strategy = "cpu.winograd";
  const std::string html = toHtml(report);
  for (const char *text : {"a &lt;machine&gt; &amp; &quot;more&quot;", "2026-01-31 14:05:00 +0100",
                           "<code>tc-bench 'a b.onnx'</code>", "A dashed disc is Winograd's algorithm",
                           "class=\"kernel fewer\"", "an engine's medians of the rounds lie apart: tc 1 %"})
    CHECK(html.find(text) != std::string::npos);
}

TEST_CASE("why a kernel is above its roof, by what it is", "[bench]") {
  auto textOf = [](const char *strategy, double us, uint64_t flops, uint64_t bytes) {
    Report report = makeReport(300, 200, {makeKernel(0, us, flops, bytes)});
    report.models[0].kernels[0].strategy = strategy;
    return modelText(report, report.models[0]);
  };
  const char *head = "more than 100 % of roof: ";
  CHECK(textOf("cpu.contract", 10, 900000, 9000).find(head) == std::string::npos);
  const std::string fewer = textOf("cpu.winograd", 1, 900000, 900), products = textOf("cpu.contract", 1, 900000, 900),
                    cached = textOf("cpu.loops", 1, 900, 900000);
  CHECK(fewer.find(std::string(head) + "fewer operations than the convolution's definition has, by Winograd's "
                                       "algorithm\n") != std::string::npos);
  CHECK(products.find(std::string(head) + "products of narrower numbers than f32, whose peak is measured; or the "
                                          "machine was busy while its roof was measured\n") != std::string::npos);
  CHECK(cached.find(std::string(head) + "bytes that a smaller cache still held; or the machine was busy") !=
        std::string::npos);
}

TEST_CASE("the kernels' graph has every kernel once, below what it reads, and no two in one place", "[bench]") {
  // 0 -> 1, 2 -> 3 (which skips rows from 0, too), 7 did not run; a row of forty.
  std::vector<KernelResult> kernels = {makeKernel(3, 40, 0, 0, {1, 2, 0, 7}), makeKernel(1, 30, 0, 0, {0}),
                                       makeKernel(2, 20, 0, 0, {0}), makeKernel(0, 10, 0, 0)};
  kernels.back().inputs = {"x<y"};
  kernels.front().outputs = {"out"};
  for (uint32_t i = 10; i < 50; ++i)
    kernels.push_back(makeKernel(i, 1, 0, 0, {3}));
  const Report report = makeReport(300, 200, kernels);
  const std::string graph = drawKernelGraph(report.models[0]);
  const auto boxes = findNumbers(
      graph,
      "data-kernel=\"([0-9]+)\"><rect x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
  REQUIRE(boxes.size() == kernels.size());
  const auto frame = findNumbers(graph, "viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"");
  std::vector<double> top(kernels.size() + 1);
  for (const auto &box : boxes) {
    top[size_t(box[0])] = box[2];
    CHECK((box[1] >= 0 && box[2] >= 0 && box[1] + box[3] <= frame[0][0] && box[2] + box[4] <= frame[0][1]));
    for (const auto &other : boxes)
      CHECK((other[0] == box[0] || std::abs(other[1] - box[1]) >= box[3] || std::abs(other[2] - box[2]) >= box[4]));
  }
  CHECK(top[4] < top[2]);  // 0 above 1
  CHECK(top[2] == top[3]); // 1 beside 2
  CHECK(top[2] < top[1]);
  CHECK(top[1] < top[5]);
  CHECK(graph.find("x&lt;y") != std::string::npos);
  CHECK(graph.find(">out<") != std::string::npos);
  CHECK(findNumbers(graph, "<path d=\"M([-0-9.]+)").size() == 1 + 5 + 1 + 40);
  // An artifact that says nothing of it has no graph.
  CHECK(drawKernelGraph(makeReport(300, 200, {makeKernel(0, 1, 1, 1)}).models[0]).empty());
}

TEST_CASE("times: percentiles, deviation and throughput", "[bench]") {
  std::vector<double> us;
  for (int i = 100; i > 0; --i)
    us.push_back(i);
  const Times times = Times::of(us);
  CHECK(times.minUs == 1);
  CHECK(times.medianUs == 51);
  CHECK(times.p90Us == 91);
  CHECK(times.p95Us == 96);
  CHECK(times.p99Us == 100);
  CHECK(times.meanUs == 50.5);
  CHECK(std::abs(times.deviationUs - 29.0115) < 1e-3);
  CHECK(std::abs(times.runsPerSecond() - 1e6 / 50.5) < 1e-6);
  CHECK(Times::of({7}).deviationUs == 0);
}

TEST_CASE("a kernel above the roofline is explained in the text, too", "[page]") {
  // 100 GFLOP/s at the peak: 1e6 operations take 10 us.
  for (const double us : {20.0, 9.8, 5.0}) {
    const Report report = makeReport(100, 50, {makeKernel(0, us, 1000000, 1000)});
    const std::string text = modelText(report, report.models.front());
    CHECK((text.find("more than 100 % of roof: ") != std::string::npos) == (us < 9));
  }
}
