/* Kernels given to the driver, at once or by a thread that does nothing else: see ../launching.py.

   The driver takes three to four microseconds for a launch, about as long as it takes to find the next. So while many
   follow each other they are written into a queue, from which a thread takes them, in order, outside the interpreter. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <sched.h>
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
};

typedef int (*LaunchKernel)(
    void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int (*LaunchCooperative)(
    void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
typedef int (*Enter)(void *);

/* What one launch is; the places of its parameters, and then they themselves, follow it in the queue. */
typedef struct {
    void *function;
    unsigned grid[3], block[3], shared;
    uint32_t parameters, bytes, is_cooperative;
} Launch;

typedef struct {
    PyObject_HEAD
    LaunchKernel launch_kernel;
    LaunchCooperative launch_cooperative;
    Enter enter;
    void *context;
    /* Makes the exception for a status of the driver, and whether it comes late. */
    PyObject *failure;
    /* Whether launches may be left to the thread at all, and whether they are now; how many were made here since. */
    char may_leave, is_leaving;
    int in_a_row;
    /* How many the thread was left. */
    Py_ssize_t left;
    Queue queue;
    pthread_t thread;
    int has_thread;
    /* What the driver said first that was no success, to the thread. */
    int status;
} Launcher;

/* --- what the driver is told ---------------------------------------------------------------------------------------- */

static int tell(const Launcher *self, const Launch *one, const uint32_t *places, const unsigned char *parameters)
{
    void *at[MOST_PARAMETERS];
    for (uint32_t i = 0; i < one->parameters; i++)
        at[i] = (void *)(parameters + places[i]);
    if (one->is_cooperative)
        return self->launch_cooperative(
            one->function, one->grid[0], one->grid[1], one->grid[2], one->block[0], one->block[1], one->block[2],
            one->shared, NULL, at);
    return self->launch_kernel(
        one->function, one->grid[0], one->grid[1], one->grid[2], one->block[0], one->block[1], one->block[2],
        one->shared, NULL, at, NULL);
}

static uint32_t up_to_16(size_t size)
{
    return (uint32_t)((size + 15) & ~(size_t)15);
}

static void *work(void *given)
{
    Launcher *self = given;
    int status = self->enter(self->context);
    for (unsigned char *entry; (entry = next_entry(&self->queue)) != NULL; take_off(&self->queue)) {
        const Launch *one = (const Launch *)entry;
        const uint32_t *places = (const uint32_t *)(entry + up_to_16(sizeof *one));
        const unsigned char *parameters = (const unsigned char *)places + up_to_16(4 * one->parameters);
        if (!status)
            status = tell(self, one, places, parameters);
        if (status) /* of what was not launched it is said each time */
            __atomic_store_n(&self->status, status, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Say that the driver refused, ``late`` if other ops have come since; -1. */
static int fail(Launcher *self, int status, PyObject *late)
{
    PyObject *error = PyObject_CallFunction(self->failure, "iO", status, late);
    if (error != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return -1;
}

/* Tell whether the thread takes what comes next; wake it if that is worth it. */
static int is_left(Launcher *self, uint32_t size)
{
    if (!self->is_leaving || size > MOST_ENTRY)
        return 0;
    if (is_awake(&self->queue))
        return 1;
    if (++self->in_a_row < WORTH_WAKING)
        return 0;
    self->in_a_row = 0;
    if (!self->has_thread)
        self->has_thread = !pthread_create(&self->thread, NULL, work, self);
    else
        wake(&self->queue);
    return 0;
}

/* Launch, or leave it to the thread, with so many bytes of parameters of which ``used`` are to be copied: 0, or -1. */
static int give(Launcher *self, const Launch *one, const uint32_t *places, const unsigned char *parameters, uint32_t used)
{
    uint32_t own = up_to_16(sizeof *one), table = up_to_16(4 * one->parameters), size = own + table + up_to_16(one->bytes);
    int status;
    if (is_left(self, size)) {
        unsigned char *entry = room_for(&self->queue, size);
        memcpy(entry, one, sizeof *one);
        memcpy(entry + own, places, 4 * one->parameters);
        memcpy(entry + own + table, parameters, used);
        add(&self->queue, size);
        self->left++;
        return 0;
    }
    await_empty(&self->queue);
    Py_BEGIN_ALLOW_THREADS
    status = tell(self, one, places, parameters);
    Py_END_ALLOW_THREADS
    return status ? fail(self, status, Py_False) : 0;
}

/* --- kernels that are launched again -------------------------------------------------------------------------------- */

typedef struct {
    Launch launch;
    /* Where its parameters begin among those of all. */
    uint32_t from;
    uint32_t *places;
} Step;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Launcher *launcher;
    PyObject *content;
    Py_ssize_t count;
    Step *steps;
} Kernels;

static PyObject *launch_all(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    Kernels *self = (Kernels *)object;
    if (PyVectorcall_NARGS(count) || names != NULL)
        return PyErr_Format(PyExc_TypeError, "nothing is to be given to kernels that are launched again");
    const unsigned char *content = (const unsigned char *)PyByteArray_AS_STRING(self->content);
    for (Py_ssize_t i = 0; i < self->count; i++) {
        const Step *step = &self->steps[i];
        if (give(self->launcher, &step->launch, step->places, content + step->from, step->launch.bytes) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static void kernels_dealloc(Kernels *self)
{
    for (Py_ssize_t i = 0; self->steps != NULL && i < self->count; i++)
        PyMem_Free(self->steps[i].places);
    PyMem_Free(self->steps);
    Py_XDECREF(self->content);
    Py_XDECREF(self->launcher);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject KernelsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gpu_backend.devices._launching.Kernels",
    .tp_basicsize = sizeof(Kernels),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Kernels with their parameters: launched by each call.",
    .tp_dealloc = (destructor)kernels_dealloc,
    .tp_vectorcall_offset = offsetof(Kernels, call),
    .tp_call = PyVectorcall_Call,
};

/* Read the places of a step's parameters, which lie from ``from`` up to ``end`` of the content: 0, or -1. */
static int read_places(Step *step, PyObject *places, Py_ssize_t from, Py_ssize_t end)
{
    Py_ssize_t count = PyTuple_GET_SIZE(places);
    if (count > MOST_PARAMETERS || (step->places = PyMem_Calloc(count ? count : 1, 4)) == NULL)
        return PyErr_Format(PyExc_ValueError, "%zd parameters are too many", count), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
        if (place < from || place >= end)
            return PyErr_Occurred() ? -1 : (PyErr_Format(PyExc_ValueError, "no parameter lies at %zd", place), -1);
        step->places[i] = (uint32_t)(place - from);
    }
    step->from = (uint32_t)from;
    step->launch.parameters = (uint32_t)count;
    step->launch.bytes = (uint32_t)(end - from);
    return 0;
}

static int read_step(Step *step, PyObject *given, Py_ssize_t size)
{
    PyObject *function, *places;
    Py_ssize_t from, end;
    Launch *one = &step->launch;
    if (!PyArg_ParseTuple(
            given, "O(III)(III)InnO!", &function, &one->grid[0], &one->grid[1], &one->grid[2], &one->block[0],
            &one->block[1], &one->block[2], &one->shared, &from, &end, &PyTuple_Type, &places))
        return -1;
    one->function = PyLong_AsVoidPtr(function);
    if (PyErr_Occurred())
        return -1;
    if (from < 0 || end > size || from > end)
        return PyErr_Format(PyExc_ValueError, "no parameters lie from %zd to %zd", from, end), -1;
    return read_places(step, places, from, end);
}

static PyObject *kernels(Launcher *self, PyObject *args)
{
    PyObject *steps, *content;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &steps, &PyByteArray_Type, &content))
        return NULL;
    Kernels *made = PyObject_New(Kernels, &KernelsType);
    if (made == NULL)
        return NULL;
    made->call = launch_all;
    made->launcher = (Launcher *)Py_NewRef(self);
    made->content = Py_NewRef(content);
    made->count = PyTuple_GET_SIZE(steps);
    made->steps = PyMem_Calloc(made->count ? made->count : 1, sizeof(Step));
    int failed = made->steps == NULL;
    for (Py_ssize_t i = 0; !failed && i < made->count; i++)
        failed = read_step(&made->steps[i], PyTuple_GET_ITEM(steps, i), PyByteArray_GET_SIZE(content)) < 0;
    if (failed) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_DECREF(made);
        return NULL;
    }
    return (PyObject *)made;
}

/* --- the launcher --------------------------------------------------------------------------------------------------- */

static PyObject *table(Launcher *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 7 || !PyByteArray_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "a kernel, blocks, threads, a table, two sizes and a truth are wanted");
    static const uint32_t at_first = 0;
    Launch one = {.function = PyLong_AsVoidPtr(args[0]), .grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = 1};
    one.grid[0] = (unsigned)PyLong_AsUnsignedLong(args[1]);
    one.block[0] = (unsigned)PyLong_AsUnsignedLong(args[2]);
    Py_ssize_t used = PyLong_AsSsize_t(args[4]), bytes = PyLong_AsSsize_t(args[5]);
    one.is_cooperative = PyObject_IsTrue(args[6]) == 1;
    if (PyErr_Occurred())
        return NULL;
    if (used < 0 || used > bytes || bytes > PyByteArray_GET_SIZE(args[3]))
        return PyErr_Format(PyExc_ValueError, "a table of %zd bytes has not %zd", PyByteArray_GET_SIZE(args[3]), bytes);
    one.bytes = (uint32_t)bytes;
    if (give(self, &one, &at_first, (const unsigned char *)PyByteArray_AS_STRING(args[3]), (uint32_t)used) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *wait_for_all(Launcher *self, PyObject *none)
{
    await_empty(&self->queue);
    Py_RETURN_NONE;
}

static PyObject *begin(Launcher *self, PyObject *none)
{
    self->is_leaving = self->may_leave;
    Py_RETURN_NONE;
}

static PyObject *settle(Launcher *self, PyObject *none)
{
    self->is_leaving = 0;
    self->in_a_row = 0;
    await_empty(&self->queue);
    int status = __atomic_exchange_n(&self->status, 0, __ATOMIC_RELAXED);
    if (status && fail(self, status, Py_True) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *launcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"launch_kernel", "launch_cooperative", "enter", "context", "failure", NULL};
    unsigned long long kernel, cooperative, enter, context;
    PyObject *failure;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKKKO", names, &kernel, &cooperative, &enter, &context, &failure))
        return NULL;
    Launcher *self = (Launcher *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->launch_kernel = (LaunchKernel)(uintptr_t)kernel;
    self->launch_cooperative = (LaunchCooperative)(uintptr_t)cooperative;
    self->enter = (Enter)(uintptr_t)enter;
    self->context = (void *)(uintptr_t)context;
    self->failure = Py_NewRef(failure);
    self->may_leave = 1;
    if (make_queue(&self->queue) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void launcher_dealloc(Launcher *self)
{
    if (self->has_thread) {
        Py_BEGIN_ALLOW_THREADS
        end_queue(&self->queue);
        pthread_join(self->thread, NULL);
        Py_END_ALLOW_THREADS
    }
    free_queue(&self->queue);
    Py_XDECREF(self->failure);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef launcher_members[] = {
    {"may_leave", T_BOOL, offsetof(Launcher, may_leave), 0, "As `launching.Launcher.may_leave`."},
    {"left", T_PYSSIZET, offsetof(Launcher, left), READONLY, "How many launches the thread was left."},
    {NULL},
};

static PyMethodDef launcher_methods[] = {
    {"kernels", (PyCFunction)kernels, METH_VARARGS, "As `launching.Launcher.kernels`."},
    {"table", (PyCFunction)(void (*)(void))table, METH_FASTCALL, "As `launching.Launcher.table`."},
    {"begin", (PyCFunction)begin, METH_NOARGS, "As `launching.Launcher.begin`."},
    {"wait", (PyCFunction)wait_for_all, METH_NOARGS, "As `launching.Launcher.wait`."},
    {"settle", (PyCFunction)settle, METH_NOARGS, "As `launching.Launcher.settle`."},
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
    if (PyType_Ready(&KernelsType) < 0 || PyType_Ready(&LauncherType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "Launcher", (PyObject *)&LauncherType) < 0)
        Py_CLEAR(module);
    return module;
}
