/* Kernels given to the driver, and products to their library, at once or by a thread that does nothing else: see
   ../launching.py.

   The driver takes three to four microseconds for a launch, about as long as it takes to find the next. So while many
   follow each other they are written into a queue, from which a thread takes them, in order, outside the interpreter. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

#include "queue.h"

enum {
    MOST_PARAMETERS = 256,
    /* So many launches in a row are worth waking the thread, each time again while it is not awake yet. */
    WORTH_WAKING = 8,
    /* How many kernels may go together, and in how many graphs of each length. */
    LENGTHS = 4,
    MOST_TOGETHER = 8,
    MOST_GRAPHS = 32,
    /* So often one comes by itself before it gets a graph, which takes as long to make as it saves in about so many more
       and again; and of two to the power of so many it is known how often they came. */
    WORTH_A_GRAPH = 16,
    SEEN_BITS = 6,
};

static const int LENGTH[LENGTHS] = {MOST_TOGETHER, 4, 2, 1};

typedef int (*LaunchKernel)(
    void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int (*LaunchCooperative)(
    void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
typedef int (*Enter)(void *);

/* What is asked of the driver for graphs, in the order in which the launcher is given it. */
typedef struct {
    int (*create)(void **, unsigned);
    int (*add)(void **, void *, void *const *, size_t, const void *);
    int (*instantiate)(void **, void *, unsigned long long);
    int (*upload)(void *, void *);
    int (*set)(void *, void *, const void *);
    int (*launch)(void *, void *);
    int (*end_executable)(void *);
    int (*end)(void *);
} GraphFunctions;

typedef struct Graphs Graphs;
typedef int (*SetStream)(void *, void *);
typedef int (*GemmEx)(
    void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *, void *, int,
    int, int, int);

/* What an entry of the queue begins with. */
typedef enum { LAUNCH, PRODUCT } Kind;

/* What one launch is; the places of its parameters, and then they themselves, follow it in the queue. */
typedef struct {
    Kind kind;
    void *function;
    unsigned grid[3], block[3], shared;
    uint32_t parameters, bytes, is_cooperative;
} Launch;

/* One call of cublasGemmEx on the default stream, by the names of its arguments; all matrices are of one type. */
typedef struct {
    Kind kind;
    GemmEx multiply;
    SetStream set_stream;
    void *handle;
    int transa, transb, m, n, k, type, lda, ldb, ldc, computed, algorithm;
    const void *alpha, *a, *b, *beta;
    void *c;
} Product;

typedef struct Launcher {
    PyObject_HEAD
    LaunchKernel launch_kernel;
    LaunchCooperative launch_cooperative;
    Enter enter;
    void *context;
    /* Makes the exception for a status: whether it comes late, and whether it is the library's of products. */
    PyObject *failure;
    /* Whether launches may be left to the thread at all, and whether they are now; how many were made here since. */
    char may_leave, is_leaving;
    int in_a_row;
    /* How many the thread was left. */
    Py_ssize_t left;
    Queue *queue;
    pthread_t thread;
    int has_thread;
    /* The thread's, and those of who launches at once; how many the thread launched together, and how often kernels were
       unloaded that graphs may know. */
    Graphs *graphs, *own_graphs;
    Py_ssize_t together;
    uint64_t unloaded;
    /* Whether it hears of what is unloaded, without which it makes no graphs; and the next one of all that do. */
    char is_watching;
    struct Launcher *next;
    /* What was no success first of what the thread asked for, and whether the library of products said it. */
    int status, is_librarys;
} Launcher;

/* --- what the driver is told ---------------------------------------------------------------------------------------- */

static int tell(const Launcher *self, const Launch *one, void **at)
{
    if (one->is_cooperative)
        return self->launch_cooperative(
            one->function, one->grid[0], one->grid[1], one->grid[2], one->block[0], one->block[1], one->block[2],
            one->shared, NULL, at);
    return self->launch_kernel(
        one->function, one->grid[0], one->grid[1], one->grid[2], one->block[0], one->block[1], one->block[2],
        one->shared, NULL, at, NULL);
}

static int multiply(const Product *one)
{
    int status = one->set_stream(one->handle, NULL); /* as CuPy does for each call */
    if (status)
        return status;
    return one->multiply(
        one->handle, one->transa, one->transb, one->m, one->n, one->k, one->alpha, one->a, one->type, one->lda, one->b,
        one->type, one->ldb, one->beta, one->c, one->type, one->ldc, one->computed, one->algorithm);
}

static uint32_t up_to_16(size_t size)
{
    return (uint32_t)((size + 15) & ~(size_t)15);
}

/* Have pointers be to the parameters of a launch in the queue. */
static void point_to_parameters(const unsigned char *entry, void **at)
{
    const Launch *one = (const Launch *)entry;
    const uint32_t *places = (const uint32_t *)(entry + up_to_16(sizeof *one));
    const unsigned char *parameters = (const unsigned char *)places + up_to_16(4 * one->parameters);
    for (uint32_t i = 0; i < one->parameters; i++)
        at[i] = (void *)(parameters + places[i]);
}

static int ask(const Launcher *self, const unsigned char *entry)
{
    if (*(const Kind *)entry == PRODUCT)
        return multiply((const Product *)entry);
    void *at[MOST_PARAMETERS];
    point_to_parameters(entry, at);
    return tell(self, (const Launch *)entry, at);
}

#include "graphs.h"
#include "thread.h"

/* Say that something was refused, late if other ops have come since; -1. */
static int fail(Launcher *self, int status, int is_late, int is_librarys)
{
    PyObject *late = is_late ? Py_True : Py_False, *librarys = is_librarys ? Py_True : Py_False;
    PyObject *error = PyObject_CallFunction(self->failure, "iOO", status, late, librarys);
    if (error != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return -1;
}

/* Wait until the thread is through: 0, or -1 if something was refused, for good. */
static int await_all(Launcher *self)
{
    await_empty(self->queue);
    int status = __atomic_load_n(&self->status, __ATOMIC_ACQUIRE);
    return status ? fail(self, status, 1, self->is_librarys) : 0;
}

/* Tell whether the thread takes what comes next; wake it if that is worth it. */
static int is_left(Launcher *self, uint32_t size)
{
    if (!self->is_leaving || !self->may_leave || size > MOST_ENTRY)
        return 0;
    if (is_awake(self->queue))
        return 1;
    if (++self->in_a_row < WORTH_WAKING)
        return 0;
    self->in_a_row = 0;
    if (!self->has_thread)
        self->has_thread = begin_thread(self);
    else
        wake(self->queue);
    return 0;
}

/* Launch a kernel now: what the driver says. A module may end in another thread as soon as others have the interpreter:
   by then a graph knows no kernel but this one. */
static int launch_at_once(Launcher *self, const Launch *one, void **at)
{
    const Graph *graph = NULL;
    if (self->is_watching && !one->is_cooperative) {
        Node node = node_of(one, at);
        forget_unloaded(self->own_graphs, &self->unloaded);
        graph = prepare_graph(self->own_graphs, &node, 1);
    }
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = launch_graph(self->own_graphs, graph);
    if (status < 0)
        status = tell(self, one, at);
    Py_END_ALLOW_THREADS
    return status;
}

/* Launch, or leave it to the thread, with so many bytes of parameters of which ``used`` are to be copied: 0, or -1. */
static int give(Launcher *self, const Launch *one, const uint32_t *places, const unsigned char *parameters, uint32_t used)
{
    uint32_t own = up_to_16(sizeof *one), table = up_to_16(4 * one->parameters), size = own + table + up_to_16(one->bytes);
    if (is_left(self, size)) {
        unsigned char *entry = room_for(self->queue, size);
        memcpy(entry, one, sizeof *one);
        memcpy(entry + own, places, 4 * one->parameters);
        memcpy(entry + own + table, parameters, used);
        add(self->queue, size);
        self->left++;
        return 0;
    }
    if (await_all(self) < 0)
        return -1;
    void *at[MOST_PARAMETERS];
    for (uint32_t i = 0; i < one->parameters; i++)
        at[i] = (void *)(parameters + places[i]);
    int status = launch_at_once(self, one, at);
    return status ? fail(self, status, 0, 0) : 0;
}

#include "kernels.h"
#include "products.h"
#include "ordering.h"
#include "tables.h"
#include "reading.h"

/* --- the launcher --------------------------------------------------------------------------------------------------- */

static PyObject *wait_for_all(Launcher *self, PyObject *none)
{
    await_empty(self->queue);
    Py_RETURN_NONE;
}

static PyObject *begin(Launcher *self, PyObject *none)
{
    self->is_leaving = self->may_leave;
    Py_RETURN_NONE;
}

static PyObject *hold(Launcher *self, PyObject *none)
{
    self->is_leaving = 0;
    self->in_a_row = 0;
    await_empty(self->queue);
    Py_RETURN_NONE;
}

static PyObject *settle(Launcher *self, PyObject *none)
{
    self->is_leaving = 0;
    self->in_a_row = 0;
    if (await_all(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

#include "unloading.h"

static PyObject *launcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"launch_kernel", "launch_cooperative", "enter", "graphs", "context", "failure", NULL};
    unsigned long long kernel, cooperative, enter, graphs[sizeof(GraphFunctions) / sizeof(void *)], context;
    GraphFunctions functions;
    PyObject *failure;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "KKK(KKKKKKKK)KO", names, &kernel, &cooperative, &enter, &graphs[0], &graphs[1], &graphs[2],
            &graphs[3], &graphs[4], &graphs[5], &graphs[6], &graphs[7], &context, &failure))
        return NULL;
    Launcher *self = (Launcher *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    memcpy(&functions, graphs, sizeof graphs);
    self->graphs = make_graphs(&functions);
    self->own_graphs = make_graphs(&functions);
    self->launch_kernel = (LaunchKernel)(uintptr_t)kernel;
    self->launch_cooperative = (LaunchCooperative)(uintptr_t)cooperative;
    self->enter = (Enter)(uintptr_t)enter;
    self->context = (void *)(uintptr_t)context;
    self->failure = Py_NewRef(failure);
    self->may_leave = 1;
    self->queue = make_queue();
    if (self->queue == NULL || self->graphs == NULL || self->own_graphs == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void launcher_dealloc(Launcher *self)
{
    watch_no_more(self); /* before others run */
    if (self->has_thread) {
        Py_BEGIN_ALLOW_THREADS
        end_queue(self->queue);
        pthread_join(self->thread, NULL);
        Py_END_ALLOW_THREADS
    }
    if (self->queue != NULL)
        free_queue(self->queue);
    if (self->own_graphs != NULL)
        forget_graphs(self->own_graphs);
    PyMem_RawFree(self->own_graphs);
    PyMem_RawFree(self->graphs);
    Py_XDECREF(self->failure);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef launcher_members[] = {
    {"may_leave", T_BOOL, offsetof(Launcher, may_leave), 0, "As `launching.Launcher.may_leave`."},
    {"left", T_PYSSIZET, offsetof(Launcher, left), READONLY, "How many launches the thread was left."},
    {"together", T_PYSSIZET, offsetof(Launcher, together), READONLY, "How many of them were launched together."},
    {NULL},
};

static PyMethodDef launcher_methods[] = {
    {"kernels", (PyCFunction)kernels, METH_VARARGS, "As `launching.Launcher.kernels`."},
    {"products", (PyCFunction)products, METH_VARARGS, "As `launching.Launcher.products`."},
    {"tables", (PyCFunction)tables, METH_VARARGS, "As `launching.Launcher.tables`."},
    {"reader", (PyCFunction)reader, METH_VARARGS, "As `launching.Launcher.reader`."},
    {"begin", (PyCFunction)begin, METH_NOARGS, "As `launching.Launcher.begin`."},
    {"wait", (PyCFunction)wait_for_all, METH_NOARGS, "As `launching.Launcher.wait`."},
    {"hold", (PyCFunction)hold, METH_NOARGS, "As `launching.Launcher.hold`."},
    {"settle", (PyCFunction)settle, METH_NOARGS, "As `launching.Launcher.settle`."},
    {"watch", (PyCFunction)watch, METH_O, "As `launching.Launcher.watch`."},
    {NULL},
};

static PyTypeObject LauncherType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gpu_backend.devices._launching.Launcher",
    .tp_basicsize = sizeof(Launcher),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "As `launching.Launcher`.",
    .tp_new = launcher_new,
    .tp_dealloc = (destructor)launcher_dealloc,
    .tp_methods = launcher_methods,
    .tp_members = launcher_members,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "gpu_backend.devices._launching", .m_size = -1,
};

PyMODINIT_FUNC PyInit__launching(void)
{
    if (PyType_Ready(&KernelsType) < 0 || PyType_Ready(&ProductsType) < 0 || PyType_Ready(&TablesType) < 0 ||
        PyType_Ready(&ReaderType) < 0 || PyType_Ready(&LauncherType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "Launcher", (PyObject *)&LauncherType) < 0)
        Py_CLEAR(module);
    return module;
}
