/* Copying from memory to memory by several processors at once: see ../copying.py.

   Helpers sleep until there is work. It is cut into parts, one for each who works, and parts into chunks; who is through
   with their own part takes chunks of the others'. So nobody is waited for who is not awake yet. One copy at a time is
   helped with: who comes meanwhile copies alone. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

enum {
    MOST_WORKERS = 8,
    PAGE_BYTES = 4 << 10,
    CHUNK_BYTES = 64 << 10,
    /* Pages may be so large, and are cleared as a whole: one is for one worker. */
    LARGE_PAGE_BYTES = 2 << 20,
    STACK_BYTES = 256 << 10,
    /* So many looks for the last helper before another may have this processor. */
    LOOKS = 1 << 12,
};

/* What is to be done; `source` is NULL where pages are to be made and nothing is to be copied. `next` is where the next
   chunk of each part begins, and `joined` counts who works. */
typedef struct {
    char *into;
    const char *source;
    size_t size, part, chunk;
    int parts, joined;
    size_t next[MOST_WORKERS];
} Work;

static Work work;
/* Whether there is work, and how many helpers look at it: it is changed while there are none. */
static int is_open, inside;
/* Held by whom is helped. */
static pthread_mutex_t helped = PTHREAD_MUTEX_INITIALIZER;
/* Counts works; helpers sleep until it changes. */
static unsigned turn;
static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_turned = PTHREAD_COND_INITIALIZER;
static int helpers;
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

static void do_chunk(char *into, const char *source, size_t size)
{
    if (source != NULL)
        memcpy(into, source, size);
    else
        for (size_t at = 0; at < size; at += PAGE_BYTES)
            ((volatile char *)into)[at] = 0;
}

static void do_part(int part)
{
    size_t end = (size_t)(part + 1) * work.part < work.size ? (size_t)(part + 1) * work.part : work.size, at;
    while ((at = __atomic_fetch_add(&work.next[part], work.chunk, __ATOMIC_RELAXED)) < end)
        do_chunk(work.into + at, work.source != NULL ? work.source + at : NULL,
                 end - at < work.chunk ? end - at : work.chunk);
}

static void join(void)
{
    int first = __atomic_fetch_add(&work.joined, 1, __ATOMIC_RELAXED);
    for (int turned = 0; turned < work.parts; turned++)
        do_part((first + turned) % work.parts);
}

static void *help(void *unused)
{
    unsigned seen = 0;
    for (;;) {
        pthread_mutex_lock(&turns);
        while (turn == seen)
            pthread_cond_wait(&has_turned, &turns);
        seen = turn;
        pthread_mutex_unlock(&turns);
        /* First inside, then the look whether it is open: who closes does it the other way round. */
        __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&is_open, __ATOMIC_SEQ_CST))
            join();
        __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    }
    return unused;
}

/* Have so many helpers, or as many as the system lets there be. They hear no signals but those of their own faults: the
 * others are for Python's threads. */
static void have_helpers(int wanted)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (helpers >= wanted || pthread_attr_init(&attributes))
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    for (size_t one = 0; one < sizeof faults / sizeof *faults; one++)
        sigdelset(&all, faults[one]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t thread; helpers < wanted && !pthread_create(&thread, &attributes, help, NULL);)
        helpers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static void rest(int looks)
{
    if (looks % LOOKS == 0)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

static void do_helped(char *into, const char *source, size_t size, size_t chunk, int workers)
{
    size_t part = (size + workers - 1) / workers;
    part = (part + chunk - 1) / chunk * chunk;
    work = (Work){.into = into, .source = source, .size = size, .part = part, .chunk = chunk, .parts = workers};
    for (int one = 0; one < workers; one++)
        work.next[one] = one * part;
    have_helpers(workers - 1);
    __atomic_store_n(&is_open, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&turns);
    turn++;
    pthread_cond_broadcast(&has_turned);
    pthread_mutex_unlock(&turns);
    join();
    __atomic_store_n(&is_open, 0, __ATOMIC_SEQ_CST);
    for (int looks = 1; __atomic_load_n(&inside, __ATOMIC_SEQ_CST); looks++)
        rest(looks);
}

/* Do it all, by so many workers, or alone where others are helped just now. */
static void do_all(char *into, const char *source, size_t size, size_t chunk, long workers)
{
    if (workers > MOST_WORKERS)
        workers = MOST_WORKERS;
    if (workers < 2 || pthread_mutex_trylock(&helped)) {
        do_chunk(into, source, size);
        return;
    }
    do_helped(into, source, size, chunk, (int)workers);
    pthread_mutex_unlock(&helped);
}

/* A process that was forked has none of the threads, and what they held is free. */
static void begin_anew(void)
{
    helpers = inside = is_open = 0;
    turn = 0;
    pthread_mutex_init(&helped, NULL);
    pthread_mutex_init(&turns, NULL);
    pthread_cond_init(&has_turned, NULL);
}

static PyObject *copy(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "where to, what, and by how many are wanted");
    long workers = PyLong_AsLong(args[2]);
    Py_buffer into, source;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &into, PyBUF_WRITABLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[1], &source, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&into);
        return NULL;
    }
    int are_alike = into.len == source.len;
    if (are_alike) {
        Py_BEGIN_ALLOW_THREADS
        do_all(into.buf, source.buf, (size_t)source.len, CHUNK_BYTES, workers);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&source);
    PyBuffer_Release(&into);
    if (!are_alike)
        return PyErr_Format(PyExc_ValueError, "what is copied must be as long as where it goes");
    Py_RETURN_NONE;
}

static PyObject *fault_in(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "memory, and by how many are wanted");
    long workers = PyLong_AsLong(args[1]);
    Py_buffer memory;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &memory, PyBUF_WRITABLE) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    do_all(memory.buf, NULL, (size_t)memory.len, LARGE_PAGE_BYTES, workers);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&memory);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL, "As `copying.copy`, by so many processors."},
    {"fault_in", (PyCFunction)(void (*)(void))fault_in, METH_FASTCALL, "As `copying.fault_in`, by so many."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "gpu_backend.transport._copying", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__copying(void)
{
    if (pthread_atfork(NULL, NULL, begin_anew))
        return PyErr_NoMemory();
    return PyModule_Create(&definition);
}
