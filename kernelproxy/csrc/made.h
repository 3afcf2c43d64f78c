/* Objects made and methods called without a look at what they are called. Part of core.c. */

/* --- methods of types that never change --------------------------------------------------------------------------- */

/* A method of the type that it was last asked of, if that never changes; NULL if it is not called like that. */
typedef struct { PyTypeObject *of; PyCFunction call; } Method;

static Method to_append, to_popleft;

static void find_method(Method *method, PyTypeObject *type, PyObject *name, int takes)
{
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    PyMethodDef *about = IS(found, (PyObject *)&PyMethodDescr_Type) ? ((PyMethodDescrObject *)found)->d_method : NULL;
    Py_XSETREF(method->of, (PyTypeObject *)Py_NewRef((PyObject *)type));
    method->call = about != NULL && about->ml_flags == takes ? about->ml_meth : NULL;
    if (found == NULL)
        PyErr_Clear(); /* whoever calls it says so */
    Py_XDECREF(found);
}

/* Call a method with one argument, or with none, which is NULL: by name, unless its type is of those. */
static PyObject *call_method(Method *method, PyObject *object, PyObject *name, PyObject *given)
{
    PyTypeObject *type = Py_TYPE(object);
    unsigned long kind = type->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_IMMUTABLETYPE);
    if (type != method->of && kind != Py_TPFLAGS_HEAPTYPE)
        find_method(method, type, name, given == NULL ? METH_NOARGS : METH_O);
    if (type != method->of || method->call == NULL)
        return given == NULL ? PyObject_CallMethodNoArgs(object, name) : PyObject_CallMethodOneArg(object, name, given);
    return method->call(object, given);
}

/* --- messages, filled as their classes would ---------------------------------------------------------------------- */

static PyObject *made_of(PyObject *type, const Py_ssize_t *places, PyObject *const *values, int count)
{
    PyObject *made = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    for (int i = 0; made != NULL && i < count; i++)
        AT(made, places[i]) = Py_NewRef(values[i]);
    return made;
}

/* An op of nine parts, in their order. */
static PyObject *new_op(PyObject *const *given)
{
    const Py_ssize_t places[] = {in_op.name, in_op.out, in_op.args, in_op.drop, in_op.want, in_op.kwargs, in_op.stream,
                                 in_op.reuse, in_op.orders};
    return made_of(Op, places, given, 9);
}

static PyObject *new_ref(PyObject *handle)
{
    return made_of(Ref, &in_ref.handle, &handle, 1);
}

/* A window of six parts, in their order. */
static PyObject *new_view(PyObject *const *given)
{
    const Py_ssize_t places[] = {in_view.root, in_view.offset, in_view.shape, in_view.strides, in_view.dtype,
                                 in_view.order};
    return made_of(View, places, given, 6);
}

static PyObject *tuple_of(Py_ssize_t count, PyObject *const *items)
{
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(items[i]));
    return made;
}

/* --- what is asked for each op ------------------------------------------------------------------------------------ */

/* Whether one number is no more than another: 1, 0, or -1 with an error. */
static int is_at_most(PyObject *number, PyObject *most)
{
    if (!PyLong_CheckExact(number) || !PyLong_CheckExact(most))
        return PyObject_RichCompareBool(number, most, Py_LE);
    PyObject *said = PyLong_Type.tp_richcompare(number, most, Py_LE);
    Py_XDECREF(said);
    return said == NULL ? -1 : said == Py_True;
}

/* Whether a collection holds something, which most are too empty for: 1, 0, or -1 with an error. */
static int holds(PyObject *all, PyObject *one)
{
    if (PyDict_CheckExact(all))
        return PyDict_GET_SIZE(all) ? PyDict_Contains(all, one) : 0;
    if (PyAnySet_CheckExact(all))
        return PySet_GET_SIZE(all) ? PySet_Contains(all, one) : 0;
    return PySequence_Contains(all, one);
}
