/*
 * Placement.h - which cores a pool's helpers are woken on.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_PLACEMENT_H
#define TCRT_PLACEMENT_H

#include <sched.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The cores for a helper with that number, from 0 on: those of `usable`, of which there are two at least, without the
 * caller's, dealt out among all of them. */
void tcrt_cores_of_helper(const cpu_set_t *usable, int caller, uint32_t helpers, uint32_t number, cpu_set_t *own);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_PLACEMENT_H */
