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

/* Give the driver entries: what it says. */
static int ask_for(Launcher *self, unsigned char *const *entries, int count)
{
    int status = count > 1 ? launch_together(self->graphs, entries, count) : -1;
    if (status >= 0) {
        self->together += count;
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
        uint64_t unloaded = __atomic_load_n(&self->unloaded, __ATOMIC_SEQ_CST); /* also if it was just before these were added */
        if (unloaded != self->graphs->unloaded)
            forget_graphs(self->graphs);
        self->graphs->unloaded = unloaded;
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
