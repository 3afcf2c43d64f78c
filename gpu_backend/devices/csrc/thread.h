/* The thread that takes entries off the queue and gives them to the driver. Part of launching.c. */

static int may_go_together(const unsigned char *entry)
{
    return *(const Kind *)entry == LAUNCH && !((const Launch *)entry)->is_cooperative;
}

/* Find what is to be given to the driver next, and the place behind it; return how many entries those are. */
static int next_together(const Launcher *self, unsigned char **entries, uint64_t *behind)
{
    uint64_t place = self->queue->taken, places[MOST_TOGETHER];
    int found = 0;
    while (found < MOST_TOGETHER && (entries[found] = entry_at(self->queue, &place)) != NULL) {
        places[found] = place;
        if (!may_go_together(entries[found]))
            break;
        found++;
    }
    int count = 1;
    for (int i = LENGTHS - 1; i >= 0 && self->is_watching; i--)
        if (LENGTH[i] <= found)
            count = LENGTH[i];
    *behind = places[count - 1];
    return count;
}

/* Launch entries as a graph: 0, or what the driver says; -1 if they are to be asked for one by one. */
static int launch_entries(Launcher *self, unsigned char *const *entries, int count)
{
    void *at[MOST_TOGETHER][MOST_PARAMETERS];
    Node nodes[MOST_TOGETHER];
    if (!self->is_watching || !may_go_together(entries[0]))
        return -1;
    for (int i = 0; i < count; i++) {
        point_to_parameters(entries[i], at[i]);
        nodes[i] = node_of((const Launch *)entries[i], at[i]);
    }
    return launch_graph(self->graphs, prepare_graph(self->graphs, nodes, count));
}

/* Give the driver entries: what it says. */
static int ask_for(Launcher *self, unsigned char *const *entries, int count)
{
    int status = launch_entries(self, entries, count);
    if (status >= 0) {
        self->together += count > 1 ? count : 0;
        return status;
    }
    for (int i = status = 0; i < count && !status; i++)
        if ((status = ask(self, entries[i])))
            self->is_librarys = *(const Kind *)entries[i] == PRODUCT;
    return status;
}

/* What the thread does. Behind what failed nothing is asked for any more: nobody knows what it would read. */
static void *work(void *given)
{
    Launcher *self = given;
    int status = self->enter(self->context);
    __atomic_store_n(&self->status, status, __ATOMIC_RELEASE);
    while (await_entry(self->queue)) {
        unsigned char *entries[MOST_TOGETHER];
        uint64_t behind;
        int count = next_together(self, entries, &behind);
        forget_unloaded(self->graphs, &self->unloaded);
        if (!status && (status = ask_for(self, entries, count)))
            __atomic_store_n(&self->status, status, __ATOMIC_RELEASE);
        take_off(self->queue, behind);
    }
    forget_graphs(self->graphs);
    return NULL;
}

/* Begin the thread, which hears no signals: they are for those who wait. */
static int begin_thread(Launcher *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&self->thread, NULL, work, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed;
}
