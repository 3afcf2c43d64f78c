/* Kernels given to the driver as graphs: several together that follow each other, or one by itself. Part of launching.c.

   The driver takes four microseconds for a launch. For a graph that was made once it takes less than two, and half a
   microsecond for each kernel in it that gets other parameters; and what is copied behind it comes sooner. So kernels that
   wait in the queue are put into a graph, which the driver has carry out one behind the other: into one that had the same
   kernels before, or else into a new one, or the one that was not used for longest, whose kernels become others. One by
   itself gets a graph when it has come often enough to be worth it. */

/* What the driver calls CUDA_KERNEL_NODE_PARAMS_v1. */
typedef struct {
    void *function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
} Node;

typedef struct {
    void *executable, *functions[MOST_TOGETHER];
    /* How many had been launched when it was. */
    uint64_t used;
} Graph;

/* Graphs of so many kernels each, and what they are made from: kernels one behind the other. */
typedef struct {
    int length, count, is_refused;
    void *made_from, *nodes[MOST_TOGETHER];
    Graph each[MOST_GRAPHS];
} Alike;

/* How often a kernel came by itself and had no graph. */
typedef struct {
    const void *function;
    int times;
} Seen;

struct Graphs {
    GraphFunctions driver;
    Alike of[LENGTHS];
    Seen seen[1 << SEEN_BITS];
    uint64_t launched, unloaded;
};

enum { OUT_OF_MEMORY = 2 };

/* Return no graphs yet; NULL if there is no memory. */
static Graphs *make_graphs(const GraphFunctions *driver)
{
    Graphs *made = PyMem_RawCalloc(1, sizeof *made);
    for (int i = 0; made != NULL && i < LENGTHS; i++)
        made->of[i].length = LENGTH[i];
    if (made != NULL)
        made->driver = *driver;
    return made;
}

static Node node_of(const Launch *one, void **parameters)
{
    Node node = {.function = one->function, .shared = one->shared, .parameters = parameters};
    memcpy(node.grid, one->grid, sizeof node.grid);
    memcpy(node.block, one->block, sizeof node.block);
    return node;
}

/* --- graphs that are made, and forgotten ---------------------------------------------------------------------------- */

/* Make what the others are made from, of the first that are to go together: 1, or 0 if the driver refuses. */
static int begin_graphs(const GraphFunctions *driver, Alike *alike, const Node *nodes)
{
    if (alike->made_from != NULL)
        return 1;
    if (driver->create(&alike->made_from, 0))
        return alike->made_from = NULL, 0;
    for (int i = 0; i < alike->length; i++) {
        void **before = i ? &alike->nodes[i - 1] : NULL;
        if (driver->add(&alike->nodes[i], alike->made_from, before, i ? 1 : 0, &nodes[i]))
            return driver->end(alike->made_from), alike->made_from = NULL, 0;
    }
    return 1;
}

/* Make one more, with the memory that it takes on the device; NULL if the driver refuses. */
static Graph *make_graph(const GraphFunctions *driver, Alike *alike, const Node *nodes)
{
    Graph *made = &alike->each[alike->count];
    memset(made, 0, sizeof *made);
    if (!begin_graphs(driver, alike, nodes) || driver->instantiate(&made->executable, alike->made_from, 0))
        return NULL;
    if (driver->upload(made->executable, NULL)) {
        driver->end_executable(made->executable);
        return NULL;
    }
    alike->count++;
    return made;
}

/* Forget all of them: their kernels may be gone. What they do just then they do to the end. */
static void forget_graphs(Graphs *self)
{
    for (Alike *alike = self->of; alike < self->of + LENGTHS; alike++) {
        for (int i = 0; i < alike->count; i++)
            self->driver.end_executable(alike->each[i].executable);
        alike->count = alike->is_refused = 0;
        if (alike->made_from != NULL)
            self->driver.end(alike->made_from);
        alike->made_from = NULL;
    }
    memset(self->seen, 0, sizeof self->seen);
}

/* Forget them if kernels were unloaded since, also if it was just before those came that are launched next. */
static void forget_unloaded(Graphs *self, const uint64_t *unloads)
{
    uint64_t unloaded = __atomic_load_n(unloads, __ATOMIC_SEQ_CST);
    if (unloaded != self->unloaded)
        forget_graphs(self);
    self->unloaded = unloaded;
}

/* --- which one ------------------------------------------------------------------------------------------------------ */

static int has_these(const Graph *graph, const Node *nodes, int length)
{
    for (int i = 0; i < length; i++)
        if (graph->functions[i] != nodes[i].function)
            return 0;
    return 1;
}

/* Whether a kernel that comes by itself has come often enough for a graph; then it is counted anew. */
static int is_often(Graphs *self, const void *function)
{
    Seen *seen = &self->seen[((uint64_t)(uintptr_t)function * 0x9E3779B97F4A7C15u) >> (64 - SEEN_BITS)];
    if (seen->function != function)
        *seen = (Seen){.function = function};
    if (++seen->times < WORTH_A_GRAPH)
        return 0;
    seen->times = 0;
    return 1;
}

static Graph *graph_for(Graphs *self, Alike *alike, const Node *nodes)
{
    Graph *oldest = alike->each;
    for (int i = 0; i < alike->count; i++) {
        if (has_these(&alike->each[i], nodes, alike->length))
            return &alike->each[i];
        if (alike->each[i].used < oldest->used)
            oldest = &alike->each[i];
    }
    if (alike->length == 1 && !is_often(self, nodes->function))
        return NULL;
    if (alike->count && oldest->used == 0)
        return oldest; /* it took none of those that it was given */
    if (alike->count == MOST_GRAPHS || alike->is_refused)
        return alike->count ? oldest : NULL;
    Graph *made = make_graph(&self->driver, alike, nodes);
    alike->is_refused = made == NULL && alike->length > 1; /* for one it is not asked for often */
    return made;
}

/* --- launching ------------------------------------------------------------------------------------------------------ */

/* Return a graph of as many as one of LENGTH, with their parameters; NULL if they are to be launched without. */
static Graph *prepare_graph(Graphs *self, const Node *nodes, int length)
{
    Alike *alike = self->of;
    while (alike->length != length)
        alike++;
    Graph *graph = graph_for(self, alike, nodes);
    if (graph == NULL)
        return NULL;
    for (int i = 0; i < length; i++) {
        if (self->driver.set(graph->executable, alike->nodes[i], &nodes[i])) {
            graph->functions[i] = NULL;
            graph->used = 0;
            return NULL;
        }
        graph->functions[i] = nodes[i].function;
    }
    graph->used = ++self->launched;
    return graph;
}

/* Launch one that was prepared: 0, or what the driver says; -1 if its kernels are to be launched without. */
static int launch_graph(const Graphs *self, const Graph *graph)
{
    int status = graph != NULL ? self->driver.launch(graph->executable, NULL) : -1;
    return status == OUT_OF_MEMORY ? -1 : status; /* said before anything is launched */
}
