/* Tables of instructions (../segments.py), by one of the kernels of a program. Part of launching.c. */

enum {
    HEADER = 16,
    MOST_ROOMS = 4,
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Launcher *launcher;
    struct {
        void *kernel;
        int ops;
    } room[MOST_ROOMS];
    int rooms, most_blocks, threads, per_block, one_block;
    /* What the blocks of all launches have counted so far. */
    uint32_t arrived;
} Tables;

static unsigned blocks_for(const Tables *self, long long elements)
{
    if (elements <= self->one_block)
        return 1;
    long long blocks = (elements + self->per_block - 1) / self->per_block;
    return (unsigned)(blocks < self->most_blocks ? blocks : self->most_blocks);
}

/* Return the first kernel that has room; -1 if none has, or the table less than that. */
static int room_of(const Tables *self, long long ops, Py_ssize_t size)
{
    for (int room = 0; ops > 0 && room < self->rooms; room++)
        if (ops <= self->room[room].ops)
            return HEADER + (Py_ssize_t)self->room[room].ops * INSTRUCTION <= size ? room : -1;
    return -1;
}

/* Launch a table that has its instructions, and room for its header: 0, or -1 with an error. */
static int launch_table(Tables *self, int room, unsigned char *table, uint32_t ops, unsigned blocks)
{
    static const uint32_t at_first = 0;
    uint32_t waits = blocks > 1 ? mark_those_that_wait(table + HEADER, ops) : 0;
    Launch one = {
        .function = self->room[room].kernel, .grid = {blocks, 1, 1}, .block = {(unsigned)self->threads, 1, 1},
        .parameters = 1, .bytes = HEADER + (uint32_t)self->room[room].ops * INSTRUCTION, .is_cooperative = waits > 0,
    };
    memcpy(table, &ops, 4);
    memcpy(table + 4, &self->arrived, 4);
    if (give(self->launcher, &one, &at_first, table, HEADER + ops * INSTRUCTION) < 0)
        return -1;
    self->arrived += blocks * waits;
    return 0;
}

static PyObject *launch_these(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    Tables *self = (Tables *)object;
    if (PyVectorcall_NARGS(count) != 3 || names != NULL || !PyByteArray_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "a table, and how many instructions and elements it has, are wanted");
    long long ops = PyLong_AsLongLong(args[1]), elements = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    int room = room_of(self, ops, PyByteArray_GET_SIZE(args[0]));
    if (room < 0)
        return PyErr_Format(PyExc_ValueError, "no table has %lld instructions", ops);
    unsigned char *table = (unsigned char *)PyByteArray_AS_STRING(args[0]);
    if (launch_table(self, room, table, (uint32_t)ops, blocks_for(self, elements)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static void tables_dealloc(Tables *self)
{
    Py_XDECREF(self->launcher);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject TablesType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gpu_backend.devices._launching.Tables",
    .tp_basicsize = sizeof(Tables),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Launches tables of instructions by the kernels of one program.",
    .tp_dealloc = (destructor)tables_dealloc,
    .tp_vectorcall_offset = offsetof(Tables, call),
    .tp_call = PyVectorcall_Call,
};

/* Read which kernels there are: 0, or -1 with an error. */
static int read_rooms(Tables *self, PyObject *kernels)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kernels); i++) {
        unsigned long long kernel;
        if (i == MOST_ROOMS || !PyTuple_Check(PyTuple_GET_ITEM(kernels, i)) ||
            !PyArg_ParseTuple(PyTuple_GET_ITEM(kernels, i), "Ki", &kernel, &self->room[i].ops))
            return -1;
        self->room[i].kernel = (void *)(uintptr_t)kernel;
        self->rooms++;
    }
    return self->rooms ? 0 : -1;
}

static PyObject *tables(Launcher *self, PyObject *args)
{
    PyObject *kernels;
    int most_blocks, threads, per_thread, one_block;
    if (!PyArg_ParseTuple(args, "O!iiii", &PyTuple_Type, &kernels, &most_blocks, &threads, &per_thread, &one_block))
        return NULL;
    Tables *made = PyObject_New(Tables, &TablesType);
    if (made == NULL)
        return NULL;
    made->call = launch_these;
    made->launcher = (Launcher *)Py_NewRef(self);
    made->rooms = 0;
    made->most_blocks = most_blocks;
    made->threads = threads;
    made->per_block = threads * per_thread;
    made->one_block = one_block;
    made->arrived = 0;
    if (read_rooms(made, kernels) < 0) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "up to %d kernels are wanted", MOST_ROOMS);
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}
