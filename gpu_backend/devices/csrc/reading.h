/* Small contents that a kernel writes into memory of this host, where they are looked for: see ../launching.py. Part of
   launching.c.

   A copy is made by another engine of the device, which is told when the kernels before it are done, and who waits for it
   waits for the driver. A kernel follows a kernel sooner, and what it writes is seen as it arrives. */

enum {
    /* So long it is looked; who waits for longer leaves that to the driver, which also knows of what failed. */
    LOOKING_NS = 200 * 1000,
    /* What is read by one warp, and the threads for more. */
    FEW_BYTES = 256,
    WARP = 32,
    READING_THREADS = 128,
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Launcher *launcher;
    void *kernel;
    uint64_t into, mark, told;
} Reader;

/* Look for the number of this read, which is written behind the contents; the caller lets others run. */
static int is_told(const Reader *self)
{
    const uint64_t *mark = (const uint64_t *)(uintptr_t)self->mark;
    for (long long until = nanoseconds() + LOOKING_NS;;) {
        for (int look = 0; look < LOOKS; look++) {
            if (__atomic_load_n(mark, __ATOMIC_ACQUIRE) == self->told)
                return 1;
            rest();
        }
        if (nanoseconds() > until)
            return 0;
    }
}

/* Have the device write contents to this host: 1 once they are there, 0 if it is not known when that will be. */
static int read_by_kernel(Reader *self, uint64_t address, uint64_t size)
{
    Launcher *launcher = self->launcher;
    /* Kernels of others, who want the device, would come before it, and do not before a copy. */
    if (!launcher->may_leave || size > self->mark - self->into)
        return 0;
    await_empty(launcher->queue);
    if (__atomic_load_n(&launcher->status, __ATOMIC_ACQUIRE))
        return 0;
    self->told++;
    void *at[] = {&address, &self->into, &size, &self->mark, &self->told};
    Launch one = {
        .function = self->kernel, .grid = {1, 1, 1}, .block = {size > FEW_BYTES ? READING_THREADS : WARP, 1, 1},
    };
    if (launch_at_once(launcher, &one, at))
        return 0;
    int is_there;
    Py_BEGIN_ALLOW_THREADS
    is_there = is_told(self);
    Py_END_ALLOW_THREADS
    return is_there;
}

static PyObject *read_this(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    if (PyVectorcall_NARGS(count) != 2 || names != NULL)
        return PyErr_Format(PyExc_TypeError, "an address and a size are wanted");
    unsigned long long address = PyLong_AsUnsignedLongLong(args[0]), size = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred())
        return NULL;
    Reader *self = (Reader *)object;
    if (!read_by_kernel(self, address, size))
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)(uintptr_t)self->into, (Py_ssize_t)size);
}

static void reader_dealloc(Reader *self)
{
    Py_XDECREF(self->launcher);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject ReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gpu_backend.devices._launching.Reader",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Reads small contents by a kernel.",
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_vectorcall_offset = offsetof(Reader, call),
    .tp_call = PyVectorcall_Call,
};

static PyObject *reader(Launcher *self, PyObject *args)
{
    unsigned long long kernel, into, mark;
    if (!PyArg_ParseTuple(args, "KKK", &kernel, &into, &mark))
        return NULL;
    Reader *made = PyObject_New(Reader, &ReaderType);
    if (made == NULL)
        return NULL;
    made->call = read_this;
    made->launcher = (Launcher *)Py_NewRef(self);
    made->kernel = (void *)(uintptr_t)kernel;
    made->into = into;
    made->mark = mark;
    made->told = *(const uint64_t *)(uintptr_t)mark;
    return (PyObject *)made;
}
