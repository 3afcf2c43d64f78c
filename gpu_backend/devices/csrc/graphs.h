/* Kernels that follow each other, given to the driver together. Part of launching.c.

   The driver takes four microseconds for a launch. For a graph that was made once it takes three, and half a microsecond
   for each kernel in it that gets other parameters. So kernels that wait in the queue are put into a graph, which the
   driver has carry out one behind the other: into one that had the same kernels before, or else into a new one, or the
   one that was not used for longest, whose kernels become others. */

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

struct Graphs {
    GraphFunctions driver;
    Alike of[LENGTHS];
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

/* Make what the others are made from, of the first that are to go together: 1, or 0 if the driver refuses. */
static int begin_graphs(const GraphFunctions *driver, Alike *alike, unsigned char *const *entries)
{
    if (alike->made_from != NULL)
        return 1;
    if (driver->create(&alike->made_from, 0))
        return alike->made_from = NULL, 0;
    for (int i = 0; i < alike->length; i++) {
        void *at[MOST_PARAMETERS];
        Node node = node_of(entries[i], at);
        if (driver->add(&alike->nodes[i], alike->made_from, i ? &alike->nodes[i - 1] : NULL, i ? 1 : 0, &node))
            return driver->end(alike->made_from), alike->made_from = NULL, 0;
    }
    return 1;
}

/* Make one more, with the memory that it takes on the device; NULL if the driver refuses. */
static Graph *make_graph(const GraphFunctions *driver, Alike *alike, unsigned char *const *entries)
{
    Graph *made = &alike->each[alike->count];
    memset(made, 0, sizeof *made);
    if (!begin_graphs(driver, alike, entries) || driver->instantiate(&made->executable, alike->made_from, 0))
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
}

/* --- which one ------------------------------------------------------------------------------------------------------ */

static int has_these(const Graph *graph, unsigned char *const *entries, int length)
{
    for (int i = 0; i < length; i++)
        if (graph->functions[i] != ((const Launch *)entries[i])->function)
            return 0;
    return 1;
}

static Graph *graph_for(const GraphFunctions *driver, Alike *alike, unsigned char *const *entries)
{
    Graph *oldest = alike->each;
    for (int i = 0; i < alike->count; i++) {
        if (has_these(&alike->each[i], entries, alike->length))
            return &alike->each[i];
        if (alike->each[i].used < oldest->used)
            oldest = &alike->each[i];
    }
    if (alike->count == MOST_GRAPHS || alike->is_refused)
        return alike->count ? oldest : NULL;
    Graph *made = make_graph(driver, alike, entries);
    alike->is_refused = made == NULL;
    return made;
}

/* --- what the thread does with them --------------------------------------------------------------------------------- */

/* Launch as many as one of LENGTH: 0, or what the driver says; -1 if they are to be launched one by one. */
static int launch_together(Graphs *self, unsigned char *const *entries, int length)
{
    Alike *alike = self->of;
    while (LENGTH[alike - self->of] != length)
        alike++;
    alike->length = length;
    Graph *graph = graph_for(&self->driver, alike, entries);
    if (graph == NULL)
        return -1;
    for (int i = 0; i < length; i++) {
        void *at[MOST_PARAMETERS];
        Node node = node_of(entries[i], at);
        if (self->driver.set(graph->executable, alike->nodes[i], &node)) {
            graph->functions[i] = NULL;
            return -1;
        }
        graph->functions[i] = node.function;
    }
    graph->used = ++self->launched;
    int status = self->driver.launch(graph->executable, NULL);
    return status == OUT_OF_MEMORY ? -1 : status; /* said before anything is launched */
}
