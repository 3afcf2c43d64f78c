/* Kernels that are launched again and again, with the parameters of by then. Part of launching.c. */

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
