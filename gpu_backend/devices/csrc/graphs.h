/* Kernels that follow each other, given to the driver together. Part of launching.c.

   The driver takes four microseconds for a launch, and 0.6 for a kernel of a graph that was made once. So as soon as
   enough kernels wait in the queue they are put into a graph, which the driver has carry out one behind the other: into
   one that had the same kernels before, as only their parameters are another then, or else into a new one, or the one
   that was not used for longest. */

/* What the driver calls CUDA_KERNEL_NODE_PARAMS_v1. */
typedef struct {
    void *function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
} Node;

typedef struct {
    void *executable, *functions[TOGETHER];
    /* How many had been launched when it was. */
    uint64_t used;
} Graph;

struct Graphs {
    GraphFunctions driver;
    /* What all are made from: kernels one behind the other. */
    void *made_from, *nodes[TOGETHER];
    Graph each[MOST_GRAPHS];
    int count, is_refused;
    uint64_t launched, unloaded;
};

enum { OUT_OF_MEMORY = 2 };

static Node node_of(const unsigned char *entry, void **at)
{
    const Launch *one = (const Launch *)entry;
    point_to_parameters(entry, at);
    Node node = {.function = one->function, .shared = one->shared, .parameters = at};
    memcpy(node.grid, one->grid, sizeof node.grid);
    memcpy(node.block, one->block, sizeof node.block);
    return node;
}

/* --- graphs that are made, and forgotten ---------------------------------------------------------------------------- */

/* Make what all are made from, of the first that are to go together: 1, or 0 if the driver refuses. */
static int begin_graphs(Graphs *self, unsigned char *const *entries)
{
    if (self->made_from != NULL)
        return 1;
    if (self->driver.create(&self->made_from, 0))
        return self->made_from = NULL, 0;
    for (int i = 0; i < TOGETHER; i++) {
        void *at[MOST_PARAMETERS];
        Node node = node_of(entries[i], at);
        if (self->driver.add(&self->nodes[i], self->made_from, i ? &self->nodes[i - 1] : NULL, i ? 1 : 0, &node))
            return self->driver.end(self->made_from), self->made_from = NULL, 0;
    }
    return 1;
}

/* Make one more, with the memory that it takes on the device; NULL if the driver refuses. */
static Graph *make_graph(Graphs *self, unsigned char *const *entries)
{
    Graph *made = &self->each[self->count];
    memset(made, 0, sizeof *made);
    if (!begin_graphs(self, entries) || self->driver.instantiate(&made->executable, self->made_from, 0))
        return NULL;
    if (self->driver.upload(made->executable, NULL)) {
        self->driver.end_executable(made->executable);
        return NULL;
    }
    self->count++;
    return made;
}

/* Forget all of them: their kernels may be gone. What they do just then they do to the end. */
static void forget_graphs(Graphs *self)
{
    for (int i = 0; i < self->count; i++)
        self->driver.end_executable(self->each[i].executable);
    self->count = 0;
    if (self->made_from != NULL)
        self->driver.end(self->made_from);
    self->made_from = NULL;
}

/* --- which one ------------------------------------------------------------------------------------------------------ */

static int has_these(const Graph *graph, unsigned char *const *entries)
{
    for (int i = 0; i < TOGETHER; i++)
        if (graph->functions[i] != ((const Launch *)entries[i])->function)
            return 0;
    return 1;
}

static Graph *graph_for(Graphs *self, unsigned char *const *entries)
{
    Graph *oldest = self->each;
    for (int i = 0; i < self->count; i++) {
        if (has_these(&self->each[i], entries))
            return &self->each[i];
        if (self->each[i].used < oldest->used)
            oldest = &self->each[i];
    }
    if (self->count == MOST_GRAPHS || self->is_refused)
        return self->count ? oldest : NULL;
    Graph *made = make_graph(self, entries);
    self->is_refused = made == NULL;
    return made;
}

/* --- what the thread does with them --------------------------------------------------------------------------------- */

/* Launch so many as go together: 0, or what the driver says; -1 if they are to be launched one by one. */
static int launch_together(Graphs *self, unsigned char *const *entries)
{
    Graph *graph = graph_for(self, entries);
    if (graph == NULL)
        return -1;
    for (int i = 0; i < TOGETHER; i++) {
        void *at[MOST_PARAMETERS];
        Node node = node_of(entries[i], at);
        if (self->driver.set(graph->executable, self->nodes[i], &node)) {
            graph->functions[i] = NULL;
            return -1;
        }
        graph->functions[i] = node.function;
    }
    graph->used = ++self->launched;
    int status = self->driver.launch(graph->executable, NULL);
    return status == OUT_OF_MEMORY ? -1 : status; /* said before anything is launched */
}
