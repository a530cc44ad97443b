/*
 * Graphs.c - launches of a run, kept and enqueued as CUDA graphs.
 *
 * A launch costs the host 2 to 3 us, a graph of hundreds about 10. The program of a variant runs each time (sizes and
 * guards stay its business) and its launches go into a list, which is enqueued when somebody must see what they wrote.
 * A list with the structure of an earlier one (functions, grids, blocks, shared memory, sizes of parameters) is
 * enqueued as one graph; the nodes whose parameters have changed since, as buffers of the caller do, get them first. So
 * nothing is copied and nothing is bound to addresses.
 *
 * A graph is made at the second sight of a structure, as sizes that never come back would pay for nothing, or at the
 * first (TCRT_GRAPHS_AT_ONCE). The cache is bounded, and a graph makes room only when it was not used for long: a run
 * of more structures than there is room for must not make them anew each time. What cannot be a graph is launched one
 * by one, in the same order.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A shorter list costs no more when it is launched one by one. */
#define FEWEST_LAUNCHES 3u
/* A longer one is cut, which bounds its memory. */
#define MOST_LAUNCHES 4096u
#define MOST_GRAPHS 32u
/* Structures that are remembered by their hashes. */
#define MOST_SIGHTS 128u
/* A graph that was not used by as many lists may make room for another. */
#define LONG_UNUSED 256u

_Static_assert(sizeof(tcrt_cuda_launch_t) == sizeof(CUfunction) + 12 * 4 + 8, "launches are compared byte by byte");

typedef struct list_t {
  tcrt_cuda_launch_t *launches;
  uint32_t count, capacity;
  uint8_t *parameters; /* at a multiple of TCRT_PARAMETER_ALIGN */
  uint64_t size, room;
} list_t;

typedef struct graph_t {
  uint64_t hash;
  list_t list; /* as its nodes are */
  CUgraphNode *nodes;
  CUgraph graph;
  CUgraphExec exec;
  uint64_t used;   /* number of the last list that it was */
  uint32_t follow; /* place of the graph that came after it */
} graph_t;

typedef struct sight_t {
  uint64_t hash;
  int is_refused; /* the driver made no graph of it */
} sight_t;

struct tcrt_cuda_graphs_t {
  int at_once;
  list_t list;
  graph_t *graphs[MOST_GRAPHS];
  uint32_t last; /* place of the graph that came last */
  sight_t sights[MOST_SIGHTS];
  uint32_t sight_count; /* ever */
  uint64_t now;         /* lists so far */
  char problem[192];
  tcrt_graph_stats_t stats;
};

tcrt_cuda_graphs_t *tcrt_cuda_graphs_create(int mode) {
  tcrt_cuda_graphs_t *graphs = calloc(1, sizeof *graphs);
  if (graphs)
    graphs->at_once = mode == TCRT_GRAPHS_AT_ONCE;
  return graphs;
}

/* ---- lists ---- */

static void free_list(list_t *list) {
  free(list->launches);
  free(list->parameters);
}

/* Room for more launches and bytes of parameters. */
static int grow(list_t *list, uint32_t more, uint64_t bytes) {
  if (list->capacity - list->count < more) {
    uint32_t capacity = list->capacity ? 2 * list->capacity : 64;
    capacity = capacity < list->count + more ? list->count + more : capacity;
    tcrt_cuda_launch_t *launches = realloc(list->launches, capacity * sizeof *launches);
    if (!launches)
      return 0;
    list->launches = launches;
    list->capacity = capacity;
  }
  if (list->room - list->size < bytes) {
    uint64_t room = list->room ? 2 * list->room : 16384;
    room = room < list->size + bytes ? list->size + bytes : room;
    room = (room + TCRT_PARAMETER_ALIGN - 1) / TCRT_PARAMETER_ALIGN * TCRT_PARAMETER_ALIGN;
    uint8_t *parameters = aligned_alloc(TCRT_PARAMETER_ALIGN, room);
    if (!parameters)
      return 0;
    if (list->size)
      memcpy(parameters, list->parameters, list->size);
    free(list->parameters);
    list->parameters = parameters;
    list->room = room;
  }
  return 1;
}

static int has_clusters(const tcrt_cuda_launch_t *launch) {
  return launch->cluster[0] != 1 || launch->cluster[1] != 1 || launch->cluster[2] != 1;
}

int tcrt_cuda_graphs_keep(tcrt_cuda_graphs_t *graphs, const tcrt_cuda_launch_t *launch, const void *parameters) {
  list_t *list = &graphs->list;
  uint64_t bytes =
      ((uint64_t)launch->parameter_size + TCRT_PARAMETER_ALIGN - 1) / TCRT_PARAMETER_ALIGN * TCRT_PARAMETER_ALIGN;
  if (list->count == MOST_LAUNCHES || !grow(list, 1, bytes))
    return 0;
  tcrt_cuda_launch_t *kept = &list->launches[list->count++];
  *kept = *launch;
  kept->parameters_at = list->size;
  uint8_t *block = list->parameters + list->size;
  if (bytes) {
    memcpy(block, parameters, launch->parameter_size);
    memset(block + launch->parameter_size, 0, bytes - launch->parameter_size);
  }
  list->size += bytes;
  return 1;
}

static int is_same(const list_t *a, const list_t *b) {
  return a->count == b->count && a->size == b->size &&
         memcmp(a->launches, b->launches, a->count * sizeof *a->launches) == 0;
}

static uint64_t hash_of(const list_t *list) {
  uint64_t hash = list->count, word;
  const uint8_t *bytes = (const uint8_t *)list->launches;
  for (size_t i = 0; i < list->count * sizeof *list->launches; i += sizeof word) {
    memcpy(&word, bytes + i, sizeof word);
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  return hash;
}

/* ---- graphs ---- */

static void free_graph(graph_t *graph) {
  if (!graph)
    return;
  if (graph->exec)
    tcrt_cuda.cuGraphExecDestroy(graph->exec);
  if (graph->graph)
    tcrt_cuda.cuGraphDestroy(graph->graph);
  free_list(&graph->list);
  free(graph->nodes);
  free(graph);
}

void tcrt_cuda_graphs_destroy(tcrt_cuda_graphs_t *graphs) {
  if (!graphs)
    return;
  for (uint32_t i = 0; i < MOST_GRAPHS; ++i)
    free_graph(graphs->graphs[i]);
  free_list(&graphs->list);
  free(graphs);
}

/* The sight of this structure, or NULL. */
static sight_t *find_sight(tcrt_cuda_graphs_t *graphs, uint64_t hash) {
  for (uint32_t i = 0; i < MOST_SIGHTS && i < graphs->sight_count; ++i)
    if (graphs->sights[i].hash == hash)
      return &graphs->sights[i];
  return NULL;
}

static sight_t *add_sight(tcrt_cuda_graphs_t *graphs, uint64_t hash) {
  sight_t *sight = &graphs->sights[graphs->sight_count++ % MOST_SIGHTS];
  *sight = (sight_t){hash, 0};
  return sight;
}

static void refuse(tcrt_cuda_graphs_t *graphs, uint64_t hash, const char *step, CUresult error) {
  sight_t *sight = find_sight(graphs, hash);
  if (!sight)
    sight = add_sight(graphs, hash);
  sight->is_refused = 1;
  snprintf(graphs->problem, sizeof graphs->problem, "%s: %s (CUDA error %d)", step, tcrt_cuda_error_text(error), error);
}

/* A kernel node, or the parameters that one is to get. The driver copies the block. */
typedef struct node_t {
  size_t size;
  void *extra[5];
  CUDA_KERNEL_NODE_PARAMS params;
} node_t;

static void describe(node_t *node, const list_t *list, uint32_t index) {
  const tcrt_cuda_launch_t *launch = &list->launches[index];
  node->size = launch->parameter_size;
  node->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
  node->extra[1] = list->parameters + launch->parameters_at;
  node->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
  node->extra[3] = &node->size;
  node->extra[4] = CU_LAUNCH_PARAM_END;
  node->params = (CUDA_KERNEL_NODE_PARAMS){.function = launch->function,
                                           .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
                                           .block = {launch->block[0], launch->block[1], launch->block[2]},
                                           .smem = launch->smem,
                                           .extra = node->extra};
}

static CUresult fill(graph_t *graph, const char **step) {
  CUresult error = tcrt_cuda.cuGraphCreate(&graph->graph, 0);
  *step = "a graph";
  for (uint32_t i = 0; error == CUDA_SUCCESS && i < graph->list.count; ++i) {
    const tcrt_cuda_launch_t *launch = &graph->list.launches[i];
    node_t node;
    describe(&node, &graph->list, i);
    *step = "a node of a graph";
    error = tcrt_cuda.cuGraphAddKernelNode(&graph->nodes[i], graph->graph, i ? &graph->nodes[i - 1] : NULL, i != 0,
                                           &node.params);
    if (error != CUDA_SUCCESS || !has_clusters(launch))
      continue;
    CUlaunchAttributeValue value;
    memset(&value, 0, sizeof value);
    memcpy(value.cluster, launch->cluster, sizeof value.cluster);
    error = tcrt_cuda.cuGraphKernelNodeSetAttribute(graph->nodes[i], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
  }
  if (error == CUDA_SUCCESS) {
    *step = "the instance of a graph";
    error = tcrt_cuda.cuGraphInstantiate(&graph->exec, graph->graph, 0);
  }
  return error;
}

/* Makes a graph of the list. NULL: it could not. */
static graph_t *build(tcrt_cuda_graphs_t *graphs, uint64_t hash) {
  const list_t *list = &graphs->list;
  graph_t *graph = calloc(1, sizeof *graph);
  if (!graph)
    return NULL;
  graph->hash = hash;
  graph->nodes = calloc(list->count, sizeof *graph->nodes);
  if (!graph->nodes || !grow(&graph->list, list->count, list->size)) {
    free_graph(graph);
    return NULL;
  }
  memcpy(graph->list.launches, list->launches, list->count * sizeof *list->launches);
  graph->list.count = list->count;
  if (list->size)
    memcpy(graph->list.parameters, list->parameters, list->size);
  graph->list.size = list->size;
  const char *step;
  CUresult error = fill(graph, &step);
  if (error != CUDA_SUCCESS) {
    refuse(graphs, hash, step, error);
    free_graph(graph);
    return NULL;
  }
  ++graphs->stats.built;
  return graph;
}

/* What was enqueued of it may be under way. */
static void drop(tcrt_cuda_graphs_t *graphs, uint32_t place, CUstream stream) {
  tcrt_cuda.cuStreamSynchronize(stream);
  free_graph(graphs->graphs[place]);
  graphs->graphs[place] = NULL;
}

/* A place for another graph, or MOST_GRAPHS. */
static uint32_t find_place(tcrt_cuda_graphs_t *graphs, CUstream stream) {
  uint32_t oldest = 0;
  for (uint32_t i = 0; i < MOST_GRAPHS; ++i) {
    if (!graphs->graphs[i])
      return i;
    if (graphs->graphs[i]->used < graphs->graphs[oldest]->used)
      oldest = i;
  }
  if (graphs->now - graphs->graphs[oldest]->used < LONG_UNUSED)
    return MOST_GRAPHS;
  drop(graphs, oldest, stream);
  return oldest;
}

/* The place of a graph for the list, or MOST_GRAPHS, with the reason counted. */
static uint32_t find_graph(tcrt_cuda_graphs_t *graphs, CUstream stream) {
  const list_t *list = &graphs->list;
  tcrt_graph_stats_t *stats = &graphs->stats;
  if (list->count < FEWEST_LAUNCHES) {
    stats->few_launches += list->count;
    return MOST_GRAPHS;
  }
  /* Runs are alike: what followed last time is asked first, which saves the hash. */
  const graph_t *last = graphs->graphs[graphs->last];
  if (last && graphs->graphs[last->follow] && is_same(&graphs->graphs[last->follow]->list, list))
    return last->follow;
  uint64_t hash = hash_of(list);
  for (uint32_t i = 0; i < MOST_GRAPHS; ++i)
    if (graphs->graphs[i] && graphs->graphs[i]->hash == hash && is_same(&graphs->graphs[i]->list, list))
      return i;
  int can = tcrt_cuda.has_graphs;
  for (uint32_t i = 0; can && i < list->count; ++i)
    can = !has_clusters(&list->launches[i]) || tcrt_cuda.cuGraphKernelNodeSetAttribute;
  const sight_t *sight = find_sight(graphs, hash);
  if (!can || (sight && sight->is_refused)) {
    stats->refused_launches += list->count;
    return MOST_GRAPHS;
  }
  if (!sight && !graphs->at_once) {
    add_sight(graphs, hash);
    stats->new_launches += list->count;
    return MOST_GRAPHS;
  }
  uint32_t place = find_place(graphs, stream);
  if (place == MOST_GRAPHS) {
    stats->full_launches += list->count;
    return MOST_GRAPHS;
  }
  graphs->graphs[place] = build(graphs, hash);
  if (!graphs->graphs[place]) {
    stats->refused_launches += list->count;
    return MOST_GRAPHS;
  }
  return place;
}

/* Gives the nodes the parameters of the list that they do not have. */
static CUresult update(tcrt_cuda_graphs_t *graphs, graph_t *graph) {
  const list_t *list = &graphs->list;
  if (!list->size || memcmp(graph->list.parameters, list->parameters, list->size) == 0)
    return CUDA_SUCCESS;
  for (uint32_t i = 0; i < list->count; ++i) {
    const tcrt_cuda_launch_t *launch = &list->launches[i];
    uint8_t *has = graph->list.parameters + launch->parameters_at;
    const uint8_t *wanted = list->parameters + launch->parameters_at;
    if (memcmp(has, wanted, launch->parameter_size) == 0)
      continue;
    node_t node;
    describe(&node, list, i);
    CUresult error = tcrt_cuda.cuGraphExecKernelNodeSetParams(graph->exec, graph->nodes[i], &node.params);
    if (error != CUDA_SUCCESS)
      return error;
    memcpy(has, wanted, launch->parameter_size);
    ++graphs->stats.updated;
  }
  return CUDA_SUCCESS;
}

/* False: the list is to be launched one by one. */
static int launch_graph(tcrt_cuda_graphs_t *graphs, uint32_t place, CUstream stream, CUevent start) {
  graph_t *graph = graphs->graphs[place];
  const char *step = "new parameters of a graph";
  CUresult error = update(graphs, graph);
  if (error == CUDA_SUCCESS) {
    step = "the launch of a graph";
    if (start)
      tcrt_cuda.cuEventRecord(start, stream);
    error = tcrt_cuda.cuGraphLaunch(graph->exec, stream);
  }
  if (error != CUDA_SUCCESS) {
    refuse(graphs, graph->hash, step, error);
    graphs->stats.refused_launches += graphs->list.count;
    drop(graphs, place, stream);
    return 0;
  }
  graph->used = graphs->now;
  if (graphs->graphs[graphs->last])
    graphs->graphs[graphs->last]->follow = place;
  graphs->last = place;
  ++graphs->stats.launched;
  graphs->stats.launches += graphs->list.count;
  return 1;
}

/* ---- enqueuing ---- */

CUresult tcrt_cuda_launch(const tcrt_cuda_launch_t *launch, const void *parameters, void **addresses, CUstream stream) {
  size_t size = launch->parameter_size;
  void *block[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  void **extra = addresses ? NULL : block;
  const uint32_t *grid = launch->grid, *threads = launch->block, *cluster = launch->cluster;
  if (!has_clusters(launch))
    return tcrt_cuda.cuLaunchKernel(launch->function, grid[0], grid[1], grid[2], threads[0], threads[1], threads[2],
                                    launch->smem, stream, addresses, extra);
  CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                 .value.cluster = {cluster[0], cluster[1], cluster[2]}};
  CUlaunchConfig config = {.grid = {grid[0], grid[1], grid[2]},
                           .block = {threads[0], threads[1], threads[2]},
                           .smem = launch->smem,
                           .stream = stream,
                           .attributes = &attribute,
                           .attribute_count = 1};
  return tcrt_cuda.cuLaunchKernelEx(&config, launch->function, addresses, extra);
}

int tcrt_cuda_graphs_is_empty(const tcrt_cuda_graphs_t *graphs) { return graphs->list.count == 0; }

CUresult tcrt_cuda_graphs_flush(tcrt_cuda_graphs_t *graphs, CUstream stream, CUevent start,
                                tcrt_cuda_launch_t *failed) {
  list_t *list = &graphs->list;
  if (!list->count)
    return CUDA_SUCCESS;
  ++graphs->now;
  CUresult error = CUDA_SUCCESS;
  uint32_t place = find_graph(graphs, stream);
  if (place == MOST_GRAPHS || !launch_graph(graphs, place, stream, start)) {
    if (start)
      tcrt_cuda.cuEventRecord(start, stream);
    for (uint32_t i = 0; error == CUDA_SUCCESS && i < list->count; ++i) {
      *failed = list->launches[i];
      error = tcrt_cuda_launch(failed, list->parameters + failed->parameters_at, NULL, stream);
    }
  }
  list->count = 0;
  list->size = 0;
  return error;
}

int tcrt_cuda_graphs_trim(tcrt_cuda_graphs_t *graphs, CUstream stream) {
  int found = 0;
  for (uint32_t i = 0; i < MOST_GRAPHS; ++i)
    if (graphs->graphs[i]) {
      drop(graphs, i, stream);
      found = 1;
    }
  return found;
}

const char *tcrt_cuda_graphs_problem(tcrt_cuda_graphs_t *graphs) {
  static _Thread_local char problem[sizeof graphs->problem];
  if (!graphs->problem[0])
    return NULL;
  memcpy(problem, graphs->problem, sizeof problem);
  graphs->problem[0] = 0;
  return problem;
}

void tcrt_cuda_graphs_stats(const tcrt_cuda_graphs_t *graphs, tcrt_graph_stats_t *stats) { *stats = graphs->stats; }
