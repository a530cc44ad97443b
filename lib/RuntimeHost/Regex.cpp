//===- Regex.cpp - regular expressions of RE2 ---------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//
#include "Functions.h"

#include <new>
#include <re2/re2.h>

// RE2's time is linear in pattern and text and its memory bounded (8 MiB an expression), so that neither can be
// hostile.
tcrt_status_t tcrt_host_regex_full_match(const tcrt_services_t *services, tcrt_store_t *store,
                                         const tcrt_call_t *call) try {
  const tcrt_operand_t &x = call->operands[0];
  const int64_t *ids = static_cast<const int64_t *>(x.data);
  uint8_t *matches = static_cast<uint8_t *>(call->results[0].data);
  int64_t count = 1;
  for (uint32_t i = 0; i < x.rank; ++i)
    count *= x.dims[i];
  auto textOf = [&](int64_t id) {
    tcrt_string_t text = services->string(store, id);
    return re2::StringPiece(text.data ? text.data : "", text.size_bytes);
  };
  re2::StringPiece pattern = textOf(*static_cast<const int64_t *>(call->operands[1].data));
  RE2::Options options;
  options.set_log_errors(false);
  RE2 expression(pattern, options);
  if (!expression.ok())
    return services->fail(TCRT_ERROR_REFUSED, "the pattern \"%.*s\" is no regular expression of RE2: %s",
                          int(pattern.size() < 256 ? pattern.size() : 256), pattern.data(), expression.error().c_str());
  for (int64_t i = 0; i < count; ++i)
    matches[i] = RE2::FullMatch(textOf(ids[i]), expression);
  return TCRT_OK;
} catch (const std::bad_alloc &) {
  return services->fail(TCRT_ERROR_MACHINE, "no memory left for a regular expression");
}
