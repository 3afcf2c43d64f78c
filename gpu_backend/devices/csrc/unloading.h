/* Kernels that are unloaded: another may come to lie where one was, so no graph may know it any longer. Part of
   launching.c.

   What CuPy has loaded it unloads as its object ends, wherever that is; nobody else is told. */

static Launcher *watching;
static PyTypeObject *watched;
static destructor unload;

static void end_module(PyObject *module)
{
    int is_tracked = PyType_IS_GC(Py_TYPE(module));
    if (is_tracked)
        PyObject_GC_UnTrack(module); /* or a collection that runs meanwhile would end it once more */
    for (Launcher *one = (Launcher *)Py_XNewRef(watching), *next; one != NULL; one = next) {
        await_empty(one->queue); /* which may have what it is about to unload */
        __atomic_add_fetch(&one->unloaded, 1, __ATOMIC_SEQ_CST);
        next = (Launcher *)Py_XNewRef(one->next);
        Py_DECREF(one);
    }
    if (is_tracked)
        PyObject_GC_Track(module); /* as whoever ends it has it */
    unload(module);
}

static PyObject *watch(Launcher *self, PyObject *modules)
{
    if (!PyType_Check(modules) || (watched != NULL && (PyObject *)watched != modules))
        return PyErr_Format(PyExc_TypeError, "the one type is wanted whose objects unload as they end");
    if (PyType_HasFeature((PyTypeObject *)modules, Py_TPFLAGS_HEAPTYPE))
        Py_RETURN_FALSE; /* they may end in a way that is common to all classes */
    if (watched == NULL) {
        watched = (PyTypeObject *)Py_NewRef(modules);
        unload = watched->tp_dealloc;
        watched->tp_dealloc = end_module;
    }
    if (!self->is_watching) {
        self->is_watching = 1;
        self->next = watching;
        watching = self;
    }
    Py_RETURN_TRUE;
}

static void watch_no_more(const Launcher *self)
{
    for (Launcher **one = &watching; *one != NULL; one = &(*one)->next)
        if (*one == self) {
            *one = self->next;
            return;
        }
}
