//===- Loop.cpp ---------------------------------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tc::fuzz;

int64_t tc::fuzz::oddNumber(Random &random) {
  static const int64_t numbers[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    7,
                                    8,
                                    15,
                                    16,
                                    17,
                                    63,
                                    64,
                                    65,
                                    127,
                                    128,
                                    255,
                                    256,
                                    4096,
                                    INT32_MAX,
                                    INT32_MIN,
                                    UINT32_MAX,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX / 2,
                                    INT64_MAX - 1,
                                    int64_t(1) << 40,
                                    int64_t(1) << 61,
                                    int64_t(1) << 62};
  const size_t count = sizeof numbers / sizeof *numbers;
  return pick(random, 8) ? numbers[pick(random, count)] : int64_t(random() >> pick(random, 64));
}

void tc::fuzz::mutateBytes(std::string &bytes, Random &random) {
  for (uint64_t n = 1 + pick(random, 6); n--;) {
    const size_t size = bytes.size();
    if (!size) {
      bytes.push_back(char(random()));
      continue;
    }
    const size_t at = pick(random, size), length = 1 + pick(random, std::min<size_t>(size - at, 32));
    switch (pick(random, 7)) {
    case 0:
      bytes[at] = char(random());
      break;
    case 1:
      bytes[at] = char(bytes[at] ^ (1 << pick(random, 8)));
      break;
    case 2: { // a number in one of its widths
      const int64_t number = oddNumber(random);
      std::memcpy(&bytes[at], &number, std::min<size_t>(size_t(1) << pick(random, 4), size - at));
      break;
    }
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(at, bytes.substr(pick(random, size), length));
      break;
    case 5:
      bytes.insert(at, length, char(random()));
      break;
    default:
      if (pick(random, 8) == 0)
        bytes.resize(at);
      else
        std::rotate(bytes.begin() + at, bytes.begin() + at + length / 2, bytes.begin() + at + length);
      break;
    }
  }
}

namespace {

struct Shared {
  std::atomic<uint64_t> next, taken, refused;
  char why[500];
};

struct Options {
  uint64_t from = 0, count = 1000, seconds = 20;
  std::string keep;
  std::vector<std::string> files;
};

std::string readWhole(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string makeInput(const Target &target, const std::vector<std::string> &corpus, uint64_t i) {
  std::seed_seq seed{uint32_t(i), uint32_t(i >> 32)};
  Random random(seed);
  std::string input = corpus[i % corpus.size()];
  target.mutate(input, corpus, random);
  return input;
}

std::string pathOf(pid_t child, uint64_t number) {
  return "/dev/shm/tc-fuzz-" + std::to_string(child) + "-" + std::to_string(number);
}

/// The child: inputs until the last, or until one is answered wrongly.
[[noreturn]] void work(const Target &target, const std::vector<std::string> &corpus, const Options &options,
                       Shared &shared) {
  // Without a terminal or pipe to fill.
  if (!std::freopen("/dev/null", "w", stdout))
    std::_Exit(1);
  for (; shared.next < options.from + options.count; ++shared.next) {
    const std::string input = makeInput(target, corpus, shared.next);
    // A name of its own: readers remember files that they mapped.
    const std::string path = pathOf(getpid(), shared.next);
    std::ofstream(path, std::ios::binary) << input;
    std::string why;
    const Answer answer = target.take(input, path, why);
    std::remove(path.c_str());
    if (answer == Answer::Wrong) {
      std::strncpy(shared.why, why.c_str(), sizeof shared.why - 1);
      std::_Exit(99);
    }
    ++(answer == Answer::Taken ? shared.taken : shared.refused);
  }
  std::_Exit(0);
}

} // namespace

int tc::fuzz::fuzzMain(int argc, char **argv, const std::function<const Target *(const std::string &)> &lookup) {
  Options options;
  const Target *target = argc > 1 ? lookup(argv[1]) : nullptr;
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    auto number = [&](uint64_t &to) { to = ++i < argc ? std::strtoull(argv[i], nullptr, 10) : 0; };
    if (text == "--count")
      number(options.count);
    else if (text == "--from")
      number(options.from);
    else if (text == "--seconds")
      number(options.seconds);
    else if (text == "--keep")
      options.keep = ++i < argc ? argv[i] : "";
    else
      options.files.push_back(text);
  }
  std::vector<std::string> paths, corpus;
  for (const std::string &file : options.files) {
    if (!std::filesystem::exists(file)) {
      std::fprintf(stderr, "%s: %s: no such file; corpus.py writes what to begin with\n", argv[0], file.c_str());
      return 2;
    }
    if (!std::filesystem::is_directory(file)) {
      paths.push_back(file);
      continue;
    }
    for (const auto &entry : std::filesystem::directory_iterator(file))
      paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    corpus.push_back(readWhole(path));
  if (!target || corpus.empty()) {
    std::fprintf(stderr, "usage: %s TARGET --count N [--from I] [--seconds S] [--keep DIR] FILE|DIR...\n", argv[0]);
    return 2;
  }
  auto *shared =
      static_cast<Shared *>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (shared == MAP_FAILED)
    return 2;
  shared->next = options.from;
  uint64_t findings = 0;
  while (shared->next < options.from + options.count) {
    shared->why[0] = 0;
    const pid_t child = fork();
    if (child == 0)
      work(*target, corpus, options, *shared);
    int status = 0;
    uint64_t seen = shared->next;
    auto since = std::chrono::steady_clock::now();
    bool hangs = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const auto now = std::chrono::steady_clock::now();
      if (shared->next != seen) {
        seen = shared->next;
        since = now;
      } else if (now - since > std::chrono::seconds(options.seconds)) {
        hangs = true;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        break;
      }
    }
    std::remove(pathOf(child, shared->next).c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      break;
    const std::string what = hangs                       ? "takes more than " + std::to_string(options.seconds) + " s"
                             : WIFSIGNALED(status)       ? std::string("dies: ") + strsignal(WTERMSIG(status))
                             : WEXITSTATUS(status) == 99 ? shared->why
                                                         : "exits with " + std::to_string(WEXITSTATUS(status));
    const uint64_t number = shared->next++;
    ++findings;
    std::printf("input %llu: %s\n", static_cast<unsigned long long>(number), what.c_str());
    std::fflush(stdout);
    if (!options.keep.empty())
      std::ofstream(options.keep + "/" + argv[1] + "-" + std::to_string(number), std::ios::binary)
          << makeInput(*target, corpus, number);
  }
  std::printf("%s: %llu inputs from %zu files, %llu taken, %llu refused, %llu findings\n", argv[1],
              static_cast<unsigned long long>(options.count), corpus.size(),
              static_cast<unsigned long long>(shared->taken), static_cast<unsigned long long>(shared->refused),
              static_cast<unsigned long long>(findings));
  return findings ? 1 : 0;
}
