/*
 * Pool.c - the threads that contexts of a model share.
 *
 * Every run enters the pool and holds a slot until it leaves. A launch publishes its ranges in the slot; helpers join
 * any slot that is open, take ranges one at a time until none is left, and go on to the next slot, so that concurrent
 * runs share the helpers range by range. The launching thread works too, then closes the slot and waits for helpers
 * still inside.
 *
 * The ranges are cut into as many blocks as there are workers. A thread begins with the same block in every launch, so
 * that it finds in its caches what it wrote in the launch before, and goes on to the blocks of others when its own is
 * done. In a launch that waits for memory it takes the last range of each at once, and earlier ones only if their
 * thread is held up, not if it is slower: where two cores have no cache in common, what the other one wrote takes
 * several times as long as what comes from memory, and threads that take many ranges of each other are slower, launch
 * after launch, than one thread alone.
 *
 * A run in steps is one stay in the slot. The blocks count on from step to step, and a thread takes a range only while
 * the block has not reached the end of the step that the thread is in, so that nothing is set back and late threads do
 * no harm. Who finishes the last range of a step opens the next one; the others watch `step`, in the same way as
 * helpers watch `epoch`.
 *
 * A helper without work watches `epoch`, which each launch increments: actively for at most SPIN_NS while any run is
 * inside the pool, and LINGER_NS behind the last one, as the next may follow at once; then in the kernel (futex).
 * Contexts that are not running cost nothing. To wake takes longer than many a launch: a run that was going to share
 * its first launch soon, the last time, wakes its helpers as it enters, while it still works alone.
 *
 * In a virtual machine the kernel takes a core that has slept for a while for one that the host has taken away, and
 * wakes a helper on the caller's, where the two take turns for the whole run. So before the first launch after a pause
 * each helper gets cores of its own, without the caller's.
 *
 * A run may bring threads of the caller, a team, which help in its slot alone, watch that slot's own `epoch`, and are
 * dismissed when the program is done.
 *
 * Slot word: bit 31 open, bit 30 the owner sleeps until the helpers are out, rest: helpers inside (or just looking).
 * Only those who saw the open bit when they counted themselves in may read the slot's fields, and the owner writes the
 * fields only while no one can have seen it, that is after it cleared the bit and the count fell to 0.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Internal.h"
#include "Placement.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 64
#define MAX_HELPERS 1023
#define SPIN_NS 50000u
#define SPIN_GUEST_NS 200000u
#define LINGER_NS 5000u
/* Helpers are woken as a run enters if it shares its first launch within these times from then: there is something to
 * gain, and they have not gone to sleep again. */
#define EARLY_NS 1000u
#define LATE_NS 40000u
/* In a virtual machine helpers are placed after so long without launches. */
#define PAUSE_NS 1000000u
#define MAX_BLOCKS 16
/* A thread is held up that takes no range for as long as so many of those that watch it took. */
#define PATIENCE 3
#define OPEN 0x80000000u
#define SLEEPING 0x40000000u
#define COUNT 0x3fffffffu

/* What threads without work watch. */
typedef struct watch_t {
  _Alignas(64) _Atomic uint32_t epoch;  /* launches so far */
  _Alignas(64) _Atomic uint32_t parked; /* threads that wait for the next one in the kernel */
} watch_t;

typedef struct block_t {
  _Alignas(64) _Atomic int64_t next;
  int64_t end;
  int64_t first, size; /* of a run in steps: its ranges in each step; `next` counts from 0 over all steps */
} block_t;

struct tcrt_pool_slot_t {
  _Alignas(64) _Atomic uint32_t word;
  _Atomic uint32_t joined;  /* helpers so far: gives out worker numbers */
  _Atomic int64_t workers;  /* atomic only because helpers peek at it before they join */
  _Atomic uint32_t is_done; /* every range was taken */
  uint32_t block_count;
  int keeps_ranges; /* the launch waits for memory: what a thread wrote is to stay with it */
  tcrt_range_fn fn;
  void *data;
  int is_taken; /* under the pool's lock */
  int has_team;
  _Atomic uint32_t is_dismissed;         /* the team */
  watch_t watch;                         /* of the team */
  int64_t ranges, steps;                 /* ranges in each step; steps is 0 for a plain run */
  uint64_t entered_ns, shared_ns;        /* when the run entered, and shared its first launch; 0: not yet */
  _Alignas(64) _Atomic uint32_t step;    /* the open one */
  _Atomic uint32_t step_sleepers;        /* threads that wait for the next one in the kernel */
  _Alignas(64) _Atomic int64_t finished; /* ranges, of all steps */
  block_t blocks[MAX_BLOCKS];
};

typedef struct helper_t {
  pthread_t thread;
  struct tcrt_pool_t *pool;
  uint32_t number; /* from 1 on: 0 is the thread that launches */
} helper_t;

struct tcrt_pool_t {
  tcrt_pool_slot_t slots[SLOTS];
  watch_t watch;
  _Atomic uint32_t runs;       /* inside the pool */
  _Atomic uint32_t slot_limit; /* slots that were ever used */
  _Atomic uint32_t stopping;
  _Atomic uint64_t left_ns; /* when the last run that shared something left */
  pid_t process;            /* whose threads the helpers are */
  int is_guest;
  pthread_mutex_t lock;
  cpu_set_t made_with; /* the cores of who made the pool */
  /* How helpers were placed, under the lock: */
  cpu_set_t cores;
  int caller;
  uint32_t placed;
  _Atomic uint32_t helper_count;
  helper_t helpers[MAX_HELPERS];
};

uint64_t tcrt_now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* How long threads wait actively: longer in a virtual machine, where to sleep and wake costs more. */
static _Atomic uint32_t spin_ns = SPIN_NS;

static _Thread_local int in_range;

int tcrt_pool_in_range(void) { return in_range; }
int tcrt_pool_begin_range(void) {
  int previous = in_range;
  in_range = 1;
  return previous;
}
void tcrt_pool_end_range(int previous) { in_range = previous; }

static void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, uint32_t count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* A turn of a waiting loop, numbered from 1 on. Returns whether it has gone on for spin_ns; `deadline`: 0 at first. */
static int has_spun(uint32_t turn, uint64_t *deadline) {
  __builtin_ia32_pause();
  if (turn % 32 != 0)
    return 0;
  uint64_t now = tcrt_now_ns();
  if (!*deadline)
    *deadline = now + atomic_load_explicit(&spin_ns, memory_order_relaxed);
  return now >= *deadline;
}

/* Whether the block's next range is still `at` after so many ticks. */
static int is_held_up(const block_t *block, int64_t at, uint64_t ticks) {
  for (uint64_t start = __builtin_ia32_rdtsc(); __builtin_ia32_rdtsc() - start < ticks;) {
    __builtin_ia32_pause();
    if (atomic_load_explicit(&block->next, memory_order_relaxed) != at)
      return 0;
  }
  return 1;
}

/* `first`: the block to begin with, modulo their number. */
static void take_ranges(tcrt_pool_slot_t *slot, uint32_t first, int64_t worker) {
  int previous = tcrt_pool_begin_range();
  uint64_t start = __builtin_ia32_rdtsc(), patience = 0;
  int64_t own = 0;
  for (uint32_t i = 0; i < slot->block_count; ++i) {
    block_t *block = &slot->blocks[(first + i) % slot->block_count];
    if (i == 1 && own && slot->keeps_ranges)
      patience = PATIENCE * (__builtin_ia32_rdtsc() - start) / (uint64_t)own;
    int64_t at, mine = -1;
    /* A look first: a block of another thread is mostly done, and to write there would cost both of us. */
    while ((at = atomic_load_explicit(&block->next, memory_order_relaxed)) < block->end) {
      if (patience && block->end - at > 1 && at != mine && !is_held_up(block, at, patience))
        continue;
      int64_t range = atomic_fetch_add_explicit(&block->next, 1, memory_order_relaxed);
      if (range >= block->end)
        break;
      slot->fn(slot->data, range, worker);
      mine = range + 1;
      own += i == 0;
    }
  }
  atomic_store_explicit(&slot->is_done, 1, memory_order_relaxed);
  tcrt_pool_end_range(previous);
}

/* Waits until `step` is no longer the open one. */
static void wait_for_step(tcrt_pool_slot_t *slot, uint32_t step) {
  uint64_t deadline = 0;
  for (uint32_t i = 1; atomic_load_explicit(&slot->step, memory_order_acquire) == step; ++i) {
    if (!has_spun(i, &deadline))
      continue;
    /* Who opens a step increments `step` and then looks at `step_sleepers`; we do the reverse, as for `parked`. */
    atomic_fetch_add(&slot->step_sleepers, 1);
    if (atomic_load(&slot->step) == step)
      futex_wait(&slot->step, step);
    atomic_fetch_sub(&slot->step_sleepers, 1);
  }
}

/* take_ranges for a run in steps. */
static void take_steps(tcrt_pool_slot_t *slot, uint32_t first, int64_t worker) {
  int previous = tcrt_pool_begin_range();
  uint32_t step;
  while ((step = atomic_load_explicit(&slot->step, memory_order_acquire)) < slot->steps) {
    for (uint32_t i = 0; i < slot->block_count; ++i) {
      block_t *block = &slot->blocks[(first + i) % slot->block_count];
      int64_t start = step * block->size, at = atomic_load_explicit(&block->next, memory_order_relaxed);
      while (at < start + block->size) {
        /* A failure gives us what is there. */
        if (!atomic_compare_exchange_weak_explicit(&block->next, &at, at + 1, memory_order_relaxed,
                                                   memory_order_relaxed))
          continue;
        slot->fn(slot->data, step * slot->ranges + block->first + (at - start), worker);
        if (atomic_fetch_add_explicit(&slot->finished, 1, memory_order_acq_rel) + 1 == (step + 1) * slot->ranges) {
          atomic_store(&slot->step, step + 1);
          if (atomic_load(&slot->step_sleepers))
            futex_wake(&slot->step, INT32_MAX);
        }
        at = atomic_load_explicit(&block->next, memory_order_relaxed);
      }
    }
    wait_for_step(slot, step);
  }
  atomic_store_explicit(&slot->is_done, 1, memory_order_relaxed);
  tcrt_pool_end_range(previous);
}

/* Joins the slot if it is open and has ranges left. Returns whether it did any work. */
static int help(tcrt_pool_slot_t *slot, uint32_t number) {
  if (!(atomic_load_explicit(&slot->word, memory_order_relaxed) & OPEN) ||
      atomic_load_explicit(&slot->is_done, memory_order_relaxed) ||
      atomic_load_explicit(&slot->joined, memory_order_relaxed) + 1 >=
          (uint64_t)atomic_load_explicit(&slot->workers, memory_order_relaxed))
    return 0;
  int worked = 0;
  if (atomic_fetch_add_explicit(&slot->word, 1, memory_order_acquire) & OPEN) {
    int64_t worker = 1 + (int64_t)atomic_fetch_add_explicit(&slot->joined, 1, memory_order_relaxed);
    if (worker < atomic_load_explicit(&slot->workers, memory_order_relaxed)) {
      if (slot->steps)
        take_steps(slot, number, worker);
      else
        take_ranges(slot, number, worker);
      worked = 1;
    }
  }
  uint32_t before = atomic_fetch_sub_explicit(&slot->word, 1, memory_order_release);
  if ((before & SLEEPING) && (before & COUNT) == 1)
    futex_wake(&slot->word, 1);
  return worked;
}

static int help_any(tcrt_pool_t *pool, uint32_t number) {
  uint32_t limit = atomic_load_explicit(&pool->slot_limit, memory_order_acquire);
  int worked = 0;
  for (uint32_t i = 0; i < limit; ++i)
    worked |= help(&pool->slots[i], number);
  return worked;
}

/* Waits until `epoch` is not the last launch any more, or there are to be no more of them. */
static void wait_for_launch(tcrt_pool_t *pool, watch_t *watch, uint32_t epoch, _Atomic uint32_t *is_over) {
  uint64_t deadline = 0;
  int was_left = 0;
  for (uint32_t i = 1; atomic_load_explicit(&watch->epoch, memory_order_acquire) == epoch; ++i) {
    int is_left = atomic_load_explicit(&pool->runs, memory_order_relaxed) == 0;
    if (is_left != was_left)
      deadline = is_left ? tcrt_now_ns() + LINGER_NS : 0;
    was_left = is_left;
    if (!has_spun(i, &deadline))
      continue;
    /* A launch increments the epoch and then looks at `parked`; we do the reverse, both sequentially consistent, so one
     * of the two sees the other. */
    atomic_fetch_add(&watch->parked, 1);
    if (atomic_load(&watch->epoch) == epoch && !atomic_load(is_over))
      futex_wait(&watch->epoch, epoch);
    atomic_fetch_sub(&watch->parked, 1);
    return;
  }
}

static void *helper_main(void *argument) {
  const helper_t *self = argument;
  tcrt_pool_t *pool = self->pool;
  char name[16];
  snprintf(name, sizeof name, "tcrt-%u", self->number);
  pthread_setname_np(pthread_self(), name); /* what top and perf show */
  while (!atomic_load_explicit(&pool->stopping, memory_order_acquire)) {
    uint32_t epoch = atomic_load(&pool->watch.epoch);
    if (!help_any(pool, self->number))
      wait_for_launch(pool, &pool->watch, epoch, &pool->stopping);
  }
  return NULL;
}

void tcrt_pool_assist(tcrt_pool_t *pool, tcrt_pool_slot_t *slot, uint32_t number) {
  for (;;) {
    uint32_t epoch = atomic_load(&slot->watch.epoch);
    if (atomic_load(&slot->is_dismissed))
      return;
    if (!help(slot, number))
      wait_for_launch(pool, &slot->watch, epoch, &slot->is_dismissed);
  }
}

tcrt_pool_t *tcrt_pool_create(void) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, sizeof(tcrt_pool_t)) != 0)
    return NULL;
  memset(memory, 0, sizeof(tcrt_pool_t));
  tcrt_pool_t *pool = memory;
  pthread_mutex_init(&pool->lock, NULL);
  pool->process = getpid();
  pool->is_guest = tcrt_is_virtual_machine();
  sched_getaffinity(0, sizeof pool->made_with, &pool->made_with);
  if (pool->is_guest)
    atomic_store_explicit(&spin_ns, SPIN_GUEST_NS, memory_order_relaxed);
  return pool;
}

void tcrt_pool_destroy(tcrt_pool_t *pool) {
  /* In a fork there are no helpers that could be waited for; what they hold stays. */
  if (!pool || pool->process != getpid())
    return;
  atomic_store(&pool->stopping, 1);
  atomic_fetch_add(&pool->watch.epoch, 1);
  futex_wake(&pool->watch.epoch, INT32_MAX);
  uint32_t count = atomic_load(&pool->helper_count);
  for (uint32_t i = 0; i < count; ++i)
    pthread_join(pool->helpers[i].thread, NULL);
  pthread_mutex_destroy(&pool->lock);
  free(pool);
}

uint32_t tcrt_pool_grow(tcrt_pool_t *pool, uint32_t helpers) {
  if (helpers > MAX_HELPERS)
    helpers = MAX_HELPERS;
  pthread_mutex_lock(&pool->lock);
  uint32_t count = atomic_load(&pool->helper_count);
  if (count < helpers) {
    /* Signals are for the program's own threads. */
    sigset_t all, previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    for (; count < helpers; ++count) {
      helper_t *helper = &pool->helpers[count];
      helper->pool = pool;
      helper->number = count + 1;
      if (pthread_create(&helper->thread, NULL, helper_main, helper) != 0)
        break;
    }
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    atomic_store(&pool->helper_count, count);
  }
  pthread_mutex_unlock(&pool->lock);
  return count;
}

int64_t tcrt_pool_threads(tcrt_pool_t *pool) { return (int64_t)atomic_load(&pool->helper_count); }

/* At the first launch of a run, which is `now`. What the system refuses stays as it was. */
static void place_helpers(tcrt_pool_t *pool, uint64_t now) {
  if (!pool->is_guest || now - atomic_load_explicit(&pool->left_ns, memory_order_relaxed) < PAUSE_NS)
    return;
  uint32_t helpers = atomic_load_explicit(&pool->helper_count, memory_order_relaxed);
  int caller = sched_getcpu();
  cpu_set_t usable;
  if (!helpers || caller < 0 || caller >= CPU_SETSIZE || sched_getaffinity(0, sizeof usable, &usable) != 0)
    return;
  if (CPU_COUNT(&usable) < 2) /* a caller that was given one core: helpers keep to those that there were */
    usable = pool->made_with;
  if (CPU_COUNT(&usable) < 2 || pool->process != getpid() || pthread_mutex_trylock(&pool->lock) != 0)
    return;
  if (pool->placed != helpers || pool->caller != caller || !CPU_EQUAL(&pool->cores, &usable)) {
    pool->placed = helpers;
    pool->caller = caller;
    pool->cores = usable;
    for (uint32_t i = 0; i < helpers; ++i) {
      cpu_set_t own;
      tcrt_cores_of_helper(&usable, caller, helpers, i, &own);
      pthread_setaffinity_np(pool->helpers[i].thread, sizeof own, &own);
    }
  }
  pthread_mutex_unlock(&pool->lock);
}

/* Tells those that watch of a launch, and wakes so many of those that sleep. */
static void announce(watch_t *watch, int64_t wanted) {
  atomic_fetch_add(&watch->epoch, 1);
  uint32_t parked = atomic_load(&watch->parked);
  if (parked)
    futex_wake(&watch->epoch, wanted < parked ? (uint32_t)wanted : parked);
}

void tcrt_pool_dismiss(tcrt_pool_slot_t *slot) {
  atomic_store(&slot->is_dismissed, 1);
  announce(&slot->watch, INT32_MAX);
}

static tcrt_pool_slot_t *take_slot(tcrt_pool_t *pool) {
  tcrt_pool_slot_t *slot = NULL;
  pthread_mutex_lock(&pool->lock);
  for (uint32_t i = 0; i < SLOTS && !slot; ++i) {
    if (pool->slots[i].is_taken)
      continue;
    slot = &pool->slots[i];
    slot->is_taken = 1;
    if (i >= atomic_load_explicit(&pool->slot_limit, memory_order_relaxed))
      atomic_store_explicit(&pool->slot_limit, i + 1, memory_order_release);
  }
  pthread_mutex_unlock(&pool->lock);
  if (!slot)
    return NULL;
  slot->entered_ns = tcrt_now_ns();
  slot->shared_ns = 0;
  slot->has_team = 0;
  atomic_fetch_add(&pool->runs, 1);
  return slot;
}

static void give_slot_back(tcrt_pool_t *pool, tcrt_pool_slot_t *slot) {
  atomic_fetch_sub(&pool->runs, 1);
  pthread_mutex_lock(&pool->lock);
  slot->is_taken = 0;
  pthread_mutex_unlock(&pool->lock);
}

tcrt_pool_slot_t *tcrt_pool_enter(tcrt_pool_t *pool, uint32_t helpers_soon) {
  tcrt_pool_slot_t *slot = take_slot(pool);
  if (slot && helpers_soon) {
    place_helpers(pool, slot->entered_ns);
    announce(&pool->watch, helpers_soon);
  }
  return slot;
}

int tcrt_pool_leave(tcrt_pool_t *pool, tcrt_pool_slot_t *slot) {
  if (!slot)
    return 0;
  uint64_t alone_ns = slot->shared_ns - slot->entered_ns;
  int did = slot->shared_ns ? TCRT_POOL_SHARED : 0;
  if (did && alone_ns > EARLY_NS && alone_ns < LATE_NS)
    did |= TCRT_POOL_SHARED_SOON;
  if (did && !slot->has_team)
    atomic_store_explicit(&pool->left_ns, tcrt_now_ns(), memory_order_relaxed);
  give_slot_back(pool, slot);
  return did;
}

tcrt_pool_slot_t *tcrt_pool_enter_with_team(tcrt_pool_t *pool) {
  tcrt_pool_slot_t *slot = take_slot(pool);
  if (slot) {
    slot->has_team = 1;
    atomic_store(&slot->is_dismissed, 0);
  }
  return slot;
}

/* Waits until no helper is inside the closed slot. */
static void wait_for_helpers(tcrt_pool_slot_t *slot) {
  uint64_t deadline = 0;
  for (uint32_t i = 1; atomic_load_explicit(&slot->word, memory_order_acquire) & COUNT; ++i) {
    if (!has_spun(i, &deadline))
      continue;
    uint32_t word = atomic_fetch_or_explicit(&slot->word, SLEEPING, memory_order_acquire) | SLEEPING;
    if (word & COUNT)
      futex_wait(&slot->word, word);
  }
  if (atomic_load_explicit(&slot->word, memory_order_relaxed) & SLEEPING)
    atomic_fetch_and_explicit(&slot->word, ~SLEEPING, memory_order_acquire);
}

/* All ranges on the calling thread. */
static void run_alone(tcrt_range_fn fn, void *data, int64_t ranges) {
  int previous = tcrt_pool_begin_range();
  for (int64_t range = 0; range < ranges; ++range)
    fn(data, range, 0);
  tcrt_pool_end_range(previous);
}

/* `steps`: 0 for a plain run. */
static void run_shared(tcrt_pool_t *pool, tcrt_pool_slot_t *slot, tcrt_range_fn fn, void *data, int64_t ranges,
                       int64_t steps, int64_t workers, int keeps_ranges) {
  if (!slot->shared_ns) {
    slot->shared_ns = tcrt_now_ns();
    if (!slot->has_team)
      place_helpers(pool, slot->shared_ns);
  }
  slot->fn = fn;
  slot->data = data;
  slot->keeps_ranges = keeps_ranges;
  slot->ranges = ranges;
  slot->steps = steps;
  atomic_store_explicit(&slot->step, 0, memory_order_relaxed);
  atomic_store_explicit(&slot->finished, 0, memory_order_relaxed);
  int64_t blocks = workers < MAX_BLOCKS ? workers : MAX_BLOCKS;
  if (blocks > ranges)
    blocks = ranges;
  for (int64_t i = 0; i < blocks; ++i) {
    int64_t size = ranges / blocks, extra = ranges % blocks;
    int64_t begin = i * size + (i < extra ? i : extra);
    atomic_store_explicit(&slot->blocks[i].next, steps ? 0 : begin, memory_order_relaxed);
    slot->blocks[i].end = begin + size + (i < extra);
    slot->blocks[i].first = begin;
    slot->blocks[i].size = size + (i < extra);
  }
  slot->block_count = (uint32_t)blocks;
  atomic_store_explicit(&slot->joined, 0, memory_order_relaxed);
  atomic_store_explicit(&slot->is_done, 0, memory_order_relaxed);
  atomic_store_explicit(&slot->workers, workers, memory_order_relaxed);
  atomic_fetch_or_explicit(&slot->word, OPEN, memory_order_release);
  announce(slot->has_team ? &slot->watch : &pool->watch, (ranges < workers ? ranges : workers) - 1);
  if (steps)
    take_steps(slot, 0, 0);
  else
    take_ranges(slot, 0, 0);
  atomic_fetch_and_explicit(&slot->word, ~OPEN, memory_order_acq_rel);
  wait_for_helpers(slot);
}

void tcrt_pool_run(tcrt_pool_t *pool, tcrt_pool_slot_t *slot, tcrt_range_fn fn, void *data, int64_t ranges,
                   int64_t workers, int keeps_ranges) {
  if (!slot || workers <= 1 || ranges <= 1 || in_range)
    run_alone(fn, data, ranges);
  else
    run_shared(pool, slot, fn, data, ranges, 0, workers, keeps_ranges);
}

void tcrt_pool_run_steps(tcrt_pool_t *pool, tcrt_pool_slot_t *slot, tcrt_range_fn fn, void *data, int64_t ranges,
                         int64_t steps, int64_t workers) {
  if (!slot || workers <= 1 || ranges <= 1 || in_range || steps > UINT32_MAX)
    run_alone(fn, data, ranges * steps);
  else if (steps > 0)
    run_shared(pool, slot, fn, data, ranges, steps, workers, 0);
}
