/*
 * Placement.c - which cores a pool's helpers are woken on.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Placement.h"

void tcrt_cores_of_helper(const cpu_set_t *usable, int caller, uint32_t helpers, uint32_t number, cpu_set_t *own) {
  uint32_t others = (uint32_t)CPU_COUNT(usable) - (CPU_ISSET(caller, usable) != 0);
  uint32_t parts = helpers < others ? helpers : others, seen = 0;
  CPU_ZERO(own);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, usable) && core != caller && seen++ % parts == number % parts)
      CPU_SET(core, own);
}
