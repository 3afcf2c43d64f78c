/* The lock that each op takes: as `threading.RLock`, but where nobody waits it is taken and given back without a word
 * to the system, as only one thread runs here at a time. Part of core.c.
 *
 * Where somebody waits for it, who gives it back leaves it in `turn`, and it is whose who takes that: one who waits can
 * do so outside the interpreter, and need not find it free at the moment at which it runs again.
 */

typedef struct {
    PyObject_HEAD
    unsigned long owner;
    Py_ssize_t depth, waiting;
    int is_in_turn;
    PyThread_type_lock turn;
} Lock;

static PyTypeObject LockType;

/* 1 once the lock is this thread's, 0 if it is to be looked at again, -1 with an error: a signal's. */
static int wait_for(Lock *self)
{
    PyLockStatus status;
    self->waiting++;
    Py_BEGIN_ALLOW_THREADS
    status = PyThread_acquire_lock_timed(self->turn, -1, 1);
    Py_END_ALLOW_THREADS
    self->waiting--;
    return status == PY_LOCK_INTR ? PyErr_CheckSignals() : 1;
}

/* 1 once the lock is had, 0 if another thread has it and it is not waited for, -1 with an error. */
static int lock_take(Lock *self, int waits)
{
    unsigned long own = PyThread_get_thread_ident();
    int has = !self->is_in_turn && (!self->depth || self->owner == own);
    while (!has) {
        has = self->is_in_turn ? PyThread_acquire_lock(self->turn, NOWAIT_LOCK) : !self->depth;
        if (!has && !waits)
            return 0;
        if (!has && (has = wait_for(self)) < 0)
            return -1;
        if (has)
            self->is_in_turn = 0;
    }
    self->owner = own;
    self->depth++;
    return 1;
}

static int lock_let_go(Lock *self)
{
    if (!self->depth || self->owner != PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return -1;
    }
    if (--self->depth == 0 && self->waiting) {
        self->is_in_turn = 1;
        PyThread_release_lock(self->turn);
    }
    return 0;
}

/* Take a lock of any class: 0, or -1 with an error. */
static int take(PyObject *lock)
{
    if (IS(lock, (PyObject *)&LockType))
        return lock_take((Lock *)lock, 1) < 0 ? -1 : 0;
    PyObject *got = PyObject_CallMethodNoArgs(lock, s_acquire);
    Py_XDECREF(got);
    return got == NULL ? -1 : 0;
}

/* Give a lock of any class back: 0, or -1 with an error. */
static int let_go(PyObject *lock)
{
    if (IS(lock, (PyObject *)&LockType))
        return lock_let_go((Lock *)lock);
    PyObject *done = PyObject_CallMethodNoArgs(lock, s_release);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* --- its class ---------------------------------------------------------------------------------------------------- */

static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *given)
{
    if (PyTuple_GET_SIZE(args) || given != NULL)
        return PyErr_Format(PyExc_TypeError, "a lock is made of nothing");
    Lock *made = (Lock *)type->tp_alloc(type, 0);
    if (made != NULL && (made->turn = PyThread_allocate_lock()) == NULL) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    if (made != NULL)
        PyThread_acquire_lock(made->turn, WAIT_LOCK);
    return (PyObject *)made;
}

static void lock_dealloc(Lock *self)
{
    if (self->turn != NULL) {
        if (!self->is_in_turn)
            PyThread_release_lock(self->turn); /* some systems want it free, and nobody waits any more */
        PyThread_free_lock(self->turn);
    }
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *lock_acquire(PyObject *self, PyObject *args, PyObject *given)
{
    static char *names[] = {"blocking", NULL};
    int waits = 1;
    if (!PyArg_ParseTupleAndKeywords(args, given, "|p", names, &waits))
        return NULL;
    int has = lock_take((Lock *)self, waits);
    return has < 0 ? NULL : PyBool_FromLong(has);
}

static PyObject *lock_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return lock_take((Lock *)self, 1) < 0 ? NULL : Py_NewRef(Py_True);
}

static PyObject *lock_release(PyObject *self, PyObject *unused)
{
    (void)unused;
    return lock_let_go((Lock *)self) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef lock_methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))lock_acquire, METH_VARARGS | METH_KEYWORDS, "Take it; tell whether."},
    {"release", lock_release, METH_NOARGS, "Give the lock back."},
    {"__enter__", lock_enter, METH_NOARGS, NULL}, {"__exit__", lock_release, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL},
};

static PyTypeObject LockType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kernelproxy._core.Lock",
    .tp_basicsize = sizeof(Lock),
    .tp_dealloc = (destructor)lock_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = lock_methods,
    .tp_new = lock_new,
};
