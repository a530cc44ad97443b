//===- ChildProcess.cpp - programs with limits, and numbers that stand for weights --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Support/ChildProcess.h"
#include "tc/Support/SeededBlob.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

using namespace tc;
using End = ProgramResult::End;

static ProgramResult runShell(const std::string &command, unsigned seconds = 30, uint64_t bytes = 0) {
  ChildLimits limits;
  limits.seconds = seconds;
  limits.moreBytes = bytes;
  return runProgram(limits, {"sh", "-c", command});
}

TEST_CASE("a program's end and all that it printed are known") {
  ProgramResult result = runShell("echo out; echo err >&2; exit 3");
  CHECK(result.end == End::Exited);
  CHECK(result.code == 3);
  CHECK(result.output == "out\nerr\n");
  result = runShell("kill -ABRT $$");
  CHECK(result.end == End::Killed);
  CHECK(result.code == SIGABRT);
  CHECK(runShell("cat").code == 0); // no input
  CHECK(runProgram(ChildLimits(), {"no-such-program-of-tc"}).end == End::NotStarted);
  CHECK(runShell("yes x | head -c 3000000").output.size() < 2000000);
}

TEST_CASE("a program that takes too long is killed with all that it started") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(runShell("sleep 60 & sleep 60", 1).end == End::TimedOut);
  CHECK(runShell("exec >/dev/null 2>&1; sleep 60", 1).end == End::TimedOut);
  // What it leaves behind holds the pipe open.
  CHECK(runShell("sleep 60 & exit 4", 30).code == 4);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("a program gets no more memory than it may have") {
  CHECK(runShell("ulimit -v", 30, uint64_t(512) << 20).output == "524288\n");
}

TEST_CASE("programs run at the same time") {
  std::vector<std::thread> threads;
  std::vector<int> codes(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] { codes[i] = runShell("exit " + std::to_string(i)).code; });
  for (std::thread &thread : threads)
    thread.join();
  for (int i = 0; i < 8; ++i)
    CHECK(codes[i] == i);
}

TEST_CASE("seeded numbers are the same on each machine, lie between -1 and 1, and differ by their seed") {
  const std::string key = getSeededKey(7, SeededType::F32, 4096);
  CHECK(key == "seed_7_f32_4096");
  std::optional<std::vector<char>> bytes = makeSeededBytes(key, 4096);
  REQUIRE(bytes);
  float values[1024];
  std::memcpy(values, bytes->data(), 4096);
  double sum = 0, squares = 0;
  for (float value : values) {
    CHECK((value > -1 && value < 1));
    sum += value;
    squares += value * value;
  }
  CHECK(std::abs(sum / 1024) < 0.1);
  CHECK(std::abs(squares / 1024 - 1.0 / 3) < 0.05);
  CHECK(values[0] == 0x1.16104ep-1f);
  CHECK(*makeSeededBytes(getSeededKey(8, SeededType::F32, 4096), 4096) != *bytes);
  CHECK(makeSeededBytes(getSeededKey(7, SeededType::BF16, 6), 6)->size() == 6);
  // Keys of another form, or of another size than the constant's.
  for (const char *wrong : {"seed_", "seed_7", "seed_7_f32", "seed_7_i32_4096", "seed_x_f32_4096", "seed_7_f32_4096_"})
    CHECK(!makeSeededBytes(wrong, 4096));
  CHECK(!makeSeededBytes(key, 4092));
  CHECK(!makeSeededBytes("seed_7_f32_6", 6));
}
