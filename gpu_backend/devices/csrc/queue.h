/* A queue of entries of any size from one thread to another, which sleeps when it is empty for a while. Part of
   launching.c. */

enum {
    QUEUE_BYTES = 1 << 20,
    MOST_ENTRY = QUEUE_BYTES / 8,
    /* Before each entry: its size, and whether it is one, or what is left over up to the end. */
    BEFORE = 16,
    /* So many looks between two at the clock. */
    LOOKS = 64,
    /* Who waits for the thread yields so often, and sleeps for so long then between two looks: the driver waits itself. */
    YIELDS = 200,
    NAP_NS = 20000,
    /* How long the thread stays awake without an entry. */
    AWAKE_NS = 100000,
};

typedef struct {
    unsigned char *memory;
    /* How many bytes were added and taken off: each is written by one thread only. */
    uint64_t added __attribute__((aligned(64)));
    uint64_t taken __attribute__((aligned(64)));
    int is_awake, is_ended;
    pthread_mutex_t lock;
    pthread_cond_t change;
} Queue;

static void rest(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static long long nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1000000000LL * time.tv_sec + time.tv_nsec;
}

/* Return a new queue; NULL if there is no memory. */
static Queue *make_queue(void)
{
    void *self = NULL, *memory = NULL;
    if (posix_memalign(&self, 64, sizeof(Queue)))
        return NULL;
    if (posix_memalign(&memory, 64, QUEUE_BYTES)) {
        free(self);
        return NULL;
    }
    Queue *made = memset(self, 0, sizeof(Queue));
    made->memory = memory;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->change, NULL);
    return made;
}

static void free_queue(Queue *self)
{
    pthread_cond_destroy(&self->change);
    pthread_mutex_destroy(&self->lock);
    free(self->memory);
    free(self);
}

/* --- by the one who adds -------------------------------------------------------------------------------------------- */

static int is_awake(const Queue *self)
{
    return __atomic_load_n(&self->is_awake, __ATOMIC_SEQ_CST);
}

static void wake(Queue *self)
{
    pthread_mutex_lock(&self->lock);
    pthread_cond_signal(&self->change);
    pthread_mutex_unlock(&self->lock);
}

static void end_queue(Queue *self)
{
    __atomic_store_n(&self->is_ended, 1, __ATOMIC_SEQ_CST);
    wake(self);
}

/* Wait until no more than so many bytes are not taken off. */
static void await_taken(const Queue *self, uint64_t most)
{
    for (int look = 0; self->added - __atomic_load_n(&self->taken, __ATOMIC_ACQUIRE) > most; look++) {
        if (look < 16 * LOOKS) {
            rest();
            continue;
        }
        Py_BEGIN_ALLOW_THREADS
        for (int turn = 0; self->added - __atomic_load_n(&self->taken, __ATOMIC_ACQUIRE) > most; turn++)
            if (turn < YIELDS)
                sched_yield();
            else
                nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        Py_END_ALLOW_THREADS
    }
}

static void await_empty(const Queue *self)
{
    await_taken(self, 0);
}

static void put_before(unsigned char *at, uint32_t size, uint32_t is_entry)
{
    memcpy(at, &size, 4);
    memcpy(at + 4, &is_entry, 4);
}

/* Return where an entry of so many bytes, a multiple of 16 and at most MOST_ENTRY, is to be written before `add`. */
static unsigned char *room_for(Queue *self, uint32_t size)
{
    uint64_t place = self->added & (QUEUE_BYTES - 1), left = QUEUE_BYTES - place;
    if (left < BEFORE + size) {
        await_taken(self, QUEUE_BYTES - left);
        put_before(self->memory + place, (uint32_t)left, 0);
        __atomic_store_n(&self->added, self->added + left, __ATOMIC_RELEASE);
        place = 0;
    }
    await_taken(self, QUEUE_BYTES - BEFORE - size);
    return self->memory + place + BEFORE;
}

/* Add the entry that was written; whoever sleeps is woken. */
static void add(Queue *self, uint32_t size)
{
    put_before(self->memory + (self->added & (QUEUE_BYTES - 1)), BEFORE + size, 1);
    __atomic_store_n(&self->added, self->added + BEFORE + size, __ATOMIC_SEQ_CST);
    if (!is_awake(self))
        wake(self);
}

/* --- by the one who takes off --------------------------------------------------------------------------------------- */

static int is_empty(const Queue *self)
{
    return __atomic_load_n(&self->added, __ATOMIC_SEQ_CST) == self->taken;
}

/* Look for a while whether there is an entry. */
static int is_added(const Queue *self)
{
    for (long long until = nanoseconds() + AWAKE_NS;;) {
        for (int look = 0; look < LOOKS; look++) {
            if (!is_empty(self))
                return 1;
            rest();
        }
        if (nanoseconds() > until || __atomic_load_n(&self->is_ended, __ATOMIC_RELAXED))
            return 0;
    }
}

static void sleep_until_added(Queue *self)
{
    __atomic_store_n(&self->is_awake, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&self->lock);
    if (is_empty(self) && !__atomic_load_n(&self->is_ended, __ATOMIC_SEQ_CST))
        pthread_cond_wait(&self->change, &self->lock); /* or for no reason, which does no harm */
    pthread_mutex_unlock(&self->lock);
    __atomic_store_n(&self->is_awake, 1, __ATOMIC_SEQ_CST);
}

/* Return the entry that stands at a place or behind what is left over there, and move the place behind it; NULL if none was
   added yet. */
static unsigned char *entry_at(const Queue *self, uint64_t *place)
{
    while (__atomic_load_n(&self->added, __ATOMIC_SEQ_CST) != *place) {
        unsigned char *at = self->memory + (*place & (QUEUE_BYTES - 1));
        uint32_t size, is_entry;
        memcpy(&size, at, 4);
        memcpy(&is_entry, at + 4, 4);
        *place += size;
        if (is_entry)
            return at + BEFORE;
    }
    return NULL;
}

/* Take off what stands up to a place. */
static void take_off(Queue *self, uint64_t place)
{
    __atomic_store_n(&self->taken, place, __ATOMIC_RELEASE);
}

/* Wait for an entry: 0 at the end. */
static int await_entry(Queue *self)
{
    __atomic_store_n(&self->is_awake, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        while (is_empty(self) && !is_added(self)) {
            if (__atomic_load_n(&self->is_ended, __ATOMIC_SEQ_CST) && is_empty(self))
                return 0;
            sleep_until_added(self);
        }
        uint64_t place = self->taken;
        if (entry_at(self, &place) != NULL)
            return 1;
        take_off(self, place);
    }
}
