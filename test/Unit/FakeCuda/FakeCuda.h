//===- FakeCuda.h - A libcuda.so.1 without a GPU --------------------------------------------------------*- C++ -*-===//
//
// A library with the functions of the CUDA driver that libtcrt calls. Memory of the device is the host's, work waits in
// its stream until somebody waits for it, kernels are C++ functions. It records the calls, what was not freed, and what
// a real driver would take amiss, and fails where it is told to: by a test that links it, or for tools by FAKE_CUDA in
// the environment (see FakeCuda.cpp).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TEST_UNIT_FAKECUDA_H
#define TC_TEST_UNIT_FAKECUDA_H

#include <cstdint>
#include <string>
#include <vector>

namespace tc::fake {

/// Empties the log, takes failures, limits and a lost context back; objects stay. Waits for all streams.
void reset();

/// The calls since then, as "cuLaunchKernel scale 8x1x1 128x1x1 smem 0 stream 1": the name and what matters.
std::vector<std::string> calls();
/// Those that begin with `name`.
int count(const std::string &name);

/// Lets the n-th call of `name` from now on (1: the next one) return `error`. Sticky: so do all calls after it.
void fail(const std::string &name, int n, int error, bool isSticky = false);
/// Bytes of device memory that can be allocated beside what is now.
void limitMemory(uint64_t bytes);
/// The GPU is of this SM version (90 for 9.0). Cubins for others and, by itself, PTX of newer ones are refused.
void setVersion(int sm);

/// What is there: memory, streams, events, modules, graphs, contexts retained; "" for nothing.
std::string live();
/// Wrong use since the last reset: unknown handles, addresses outside of device memory, no current context.
std::vector<std::string> problems();

/// The allocation of at least as many bytes that is the smallest, or null.
void *weights(uint64_t bytes);
/// Gives up what a lost context left.
void forget();

/// A stream and an event of the caller.
void *makeStream();
void destroyStream(void *stream);
/// Whether work waits in the stream.
bool isBusy(void *stream);
void waitFor(void *stream);

} // namespace tc::fake

#endif // TC_TEST_UNIT_FAKECUDA_H
