/* The class of the ways: what stands for a function of Python that is mostly done here. Part of core.c. */

static void quick_dealloc(Quick *self)
{
    if (self->weakrefs != NULL)
        PyObject_ClearWeakRefs((PyObject *)self);
    Py_XDECREF(self->pure);
    Py_XDECREF(self->name);
    PyObject_Free(self);
}

static PyObject *quick_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* What is asked of a way is what its Python function says: its name, its text, its signature. */
static PyObject *quick_getattro(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((Quick *)self)->pure, name);
    }
    return found;
}

static PyObject *quick_doc(PyObject *self, void *closure)
{
    (void)closure;
    return PyObject_GetAttrString(((Quick *)self)->pure, "__doc__");
}

static PyObject *quick_repr(PyObject *self)
{
    return PyObject_Repr(((Quick *)self)->pure);
}

/* It is found again by its name, as functions are: so it is pickled, and its copy is itself. */
static PyObject *quick_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(((Quick *)self)->pure, "__qualname__");
}

static PyMethodDef quick_methods[] = {{"__reduce__", quick_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyMemberDef quick_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(Quick, pure), READONLY, NULL}, {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef quick_getset[] = {{"__doc__", quick_doc, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject QuickType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kernelproxy._core.Quick",
    .tp_basicsize = sizeof(Quick),
    .tp_dealloc = (destructor)quick_dealloc,
    .tp_vectorcall_offset = offsetof(Quick, call),
    .tp_call = PyVectorcall_Call,
    .tp_repr = quick_repr,
    .tp_getattro = quick_getattro,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_members = quick_members,
    .tp_methods = quick_methods,
    .tp_weaklistoffset = offsetof(Quick, weakrefs),
    .tp_getset = quick_getset,
    .tp_descr_get = quick_get,
};
