/*
 * Context.h - what the files of a context share: Context.c (making, statistics), Memory.c, Binding.c, Run.c,
 * State.c.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_CONTEXT_H
#define TCRT_CONTEXT_H

#include "Values.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline const char *tcrt_context_file(const tcrt_context_t *context) { return context->model->name; }

/* One call at a time: takes the context, or fails where another call has it or the model is closed. */
tcrt_status_t tcrt_context_enter(tcrt_context_t *context);
/* Gives it back and returns `status`. */
tcrt_status_t tcrt_context_leave(tcrt_context_t *context, tcrt_status_t status);

#define ENTER(context)                                                                                                 \
  do {                                                                                                                 \
    TCRT_NEEDS(context);                                                                                               \
    tcrt_status_t entered = tcrt_context_enter(context);                                                               \
    if (entered != TCRT_OK)                                                                                            \
      return entered;                                                                                                  \
  } while (0)

/* ---- memory ---- */

tcrt_status_t tcrt_context_no_memory(const tcrt_context_t *context, const char *what, uint64_t bytes);
/* Makes *data at least `bytes` large; its contents are lost. Where memory is limited, nothing is kept in reserve. */
tcrt_status_t tcrt_context_grow(tcrt_context_t *context, void **data, uint64_t *has, uint64_t bytes, const char *what);
/* Memory for a value whose size depends on data; NULL with a message. */
void *tcrt_context_allocate_block(tcrt_context_t *context, uint64_t bytes);
void tcrt_context_release_block(tcrt_context_t *context, void *data);
/* Ends the life of all values of the last run. Their memory stays for the next one, unless memory is limited. */
void tcrt_context_release_blocks(tcrt_context_t *context);
/* Frees what was kept. */
void tcrt_context_free_blocks(tcrt_context_t *context);

/* ---- sizes ---- */

/* Binds symbols, checks guards, computes output sizes and makes the arena, unless that has been done for these sizes.
 */
tcrt_status_t tcrt_context_infer_sizes(tcrt_context_t *context);
int64_t *tcrt_context_output_dims(const tcrt_context_t *context, uint32_t index);
/* The error for an input without a tensor. */
tcrt_status_t tcrt_context_not_given(const tcrt_context_t *context, uint32_t input);
/* Refuses an output that is not there. */
tcrt_status_t tcrt_context_check_output(const tcrt_context_t *context, uint32_t index);
/* Dtype, dims and size of an output. */
void tcrt_context_describe_output(const tcrt_context_t *context, uint32_t index, tcrt_tensor_t *tensor);

/* "(2, 3)" */
void tcrt_print_dims(const int64_t *dims, uint32_t rank, char *text, size_t size);

/* ---- states ---- */

/* Makes the memory of the states and gives them their initial values. */
tcrt_status_t tcrt_context_make_states(tcrt_context_t *context);
void tcrt_context_free_states(tcrt_context_t *context);

/* ---- failures ---- */

/* Turns what the program returned, and what it or the runtime said on the way, into a status. */
tcrt_status_t tcrt_context_program_result(tcrt_context_t *context, int32_t code);
void tcrt_context_clear_failure(tcrt_context_t *context);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_CONTEXT_H */
