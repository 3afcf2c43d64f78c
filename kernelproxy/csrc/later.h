/* Arrays whose length nobody knows yet, as `later_layout` and `unknown_rows`. Part of core.c. */

/* The parts of `Rows` and of `Later`, which are tuples. */
enum { ROWS_OF, ROWS_OP, ROWS_TOLD, ROWS_COUNTED, ROWS_KNOWN_COUNT, ROWS_PARTS };
enum { LATER_SEVERAL, LATER_NBYTES, LATER_AS_MANY_AS, LATER_CHOSEN_BY };

/* What ops on arrays of a layout are known by: what is known of it but for a length, else itself. Borrowed. */
static PyObject *known_as(PyObject *layout)
{
    PyObject *kind = IS(layout, LaterLayout) ? AT(layout, in_later.kind) : NULL;
    return IS(kind, SomeRows) ? kind : layout;
}

/* Whether two arrays surely have as many rows, as `_is_as_long`: 1, 0, or -1 with an error. */
static int is_as_long(PyObject *one, PyObject *other)
{
    if (one == other)
        return 1;
    PyObject *counted = PyTuple_GET_ITEM(one, ROWS_COUNTED), *count = PyTuple_GET_ITEM(one, ROWS_KNOWN_COUNT);
    if (count != Py_None && PyTuple_GET_ITEM(other, ROWS_KNOWN_COUNT) != Py_None)
        return PyObject_RichCompareBool(count, PyTuple_GET_ITEM(other, ROWS_KNOWN_COUNT), Py_EQ);
    if (counted == Py_None || counted != PyTuple_GET_ITEM(other, ROWS_COUNTED))
        return 0;
    return PyObject_RichCompareBool(PyTuple_GET_ITEM(one, ROWS_OF), PyTuple_GET_ITEM(other, ROWS_OF), Py_EQ);
}

/* Note in `rows`, a reference of our own, how many rows an array has of which that is not known: 1.
 *
 * 0 if it surely does not have as many as the others or more than that is unknown; -1 with an error. */
static int note_rows(PyObject *array, PyObject **rows)
{
    PyObject *layout = AT(array, in_array.layout);
    if (!IS(layout, LaterLayout))
        return 1;
    PyObject *said = AT(layout, in_later.rows);
    if (!IS(said, Rows) || PyTuple_GET_SIZE(said) != ROWS_PARTS || !IS(AT(layout, in_later.kind), SomeRows))
        return 0;
    if (*rows != NULL)
        return is_as_long(*rows, said);
    *rows = Py_NewRef(said);
    return 1;
}

static PyObject *rows_of(PyObject *of, PyObject *op, PyObject *counted, PyObject *count)
{
    PyObject *told = PyList_New(0), *given[ROWS_PARTS] = {of, op, told, counted, count}, *made = NULL;
    if (told != NULL)
        made = ((PyTypeObject *)Rows)->tp_alloc((PyTypeObject *)Rows, ROWS_PARTS);
    for (int i = 0; made != NULL && i < ROWS_PARTS; i++)
        PyTuple_SET_ITEM(made, i, Py_NewRef(given[i]));
    Py_XDECREF(told);
    return made;
}

/* What is counted of the memory of a mask, if somebody counts there. Borrowed; NULL if not, or with an error. */
static PyObject *counted_in(PyObject *pipeline, PyObject *mask)
{
    PyObject *mirror = AT(pipeline, in_recorder.mirror), *known = IS(mirror, HostMirror) ? AT(mirror, in_mirror.known) : NULL;
    if (known == NULL || !PyDict_CheckExact(known))
        return NULL;
    PyObject *entry = PyDict_GetItemWithError(known, handle_in(AT(mask, in_array.ref)));
    return IS(entry, Counted) && AT(entry, in_counted.counts) != NULL ? entry : NULL;
}

/* What a mask is about to choose, as `_expected`: a new reference, NULL with an error.
 *
 * Where it is counted already, that says by itself whether somebody has written it, and the number of the op is zero. */
static PyObject *expect(PyObject *pipeline, PyObject *mask)
{
    PyObject *entry = Py_XNewRef(counted_in(pipeline, mask)), *count, *ref = AT(mask, in_array.ref), *said = NULL;
    if (entry == NULL)
        return PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(expected, pipeline, ref, NULL);
    count = PyDict_GetItemWithError(AT(entry, in_counted.counts), ref);
    if (count != NULL || !PyErr_Occurred())
        said = PyTuple_Pack(3, zero, entry, count != NULL ? count : Py_None);
    Py_DECREF(entry);
    return said;
}

/* What a mask has chosen by the last op, by what was said of it before: a new reference, NULL with an error. */
static PyObject *rows_chosen(PyObject *pipeline, PyObject *mask, PyObject *said)
{
    PyObject *number = PyTuple_GET_ITEM(said, 0), *batch = AT(pipeline, in_recorder.open_batch);
    int is_unwritten;
    if (number == zero)
        is_unwritten = counted_in(pipeline, mask) == PyTuple_GET_ITEM(said, 1);
    else
        is_unwritten = PyLong_AsSsize_t(AT(batch, in_batch.first)) + PyList_GET_SIZE(AT(batch, in_batch.ops))
            == PyLong_AsSsize_t(number) + 1; /* or another thread came between */
    if (!is_unwritten)
        return rows_of(Py_None, zero, Py_None, Py_None);
    return rows_of(AT(mask, in_array.ref), number, PyTuple_GET_ITEM(said, 1), PyTuple_GET_ITEM(said, 2));
}

/* The layout of `array`, which owns `handle`, until somebody asks for it. */
static PyObject *later_layout(PyObject *array, PyObject *client, PyObject *handle, PyObject *kind, PyObject *rows)
{
    PyObject *weak = PyWeakref_NewRef(array, NULL), *made = NULL;
    if (weak != NULL)
        made = ((PyTypeObject *)LaterLayout)->tp_alloc((PyTypeObject *)LaterLayout, 0);
    if (made != NULL) {
        AT(made, in_later.array) = Py_NewRef(weak);
        AT(made, in_later.client) = Py_NewRef(client);
        AT(made, in_later.handle) = Py_NewRef(handle);
        AT(made, in_later.is_known) = Py_NewRef(Py_False);
        AT(made, in_later.kind) = Py_NewRef(kind);
        AT(made, in_later.most_bytes) = Py_NewRef(AT(kind, in_some_rows.most_bytes));
        AT(made, in_later.rows) = Py_NewRef(rows);
    }
    Py_XDECREF(weak);
    return made;
}

/* As `pending`, of an array that is not to be counted among what is held. */
static PyObject *small_later(PyObject *client, PyObject *handle, PyObject *kind, PyObject *rows)
{
    PyObject *made = owner(client, Py_None, handle), *layout = NULL;
    if (made != NULL && (layout = later_layout(made, client, handle, kind, rows)) == NULL)
        Py_CLEAR(made);
    if (made != NULL)
        put(made, in_array.layout, layout);
    Py_XDECREF(layout);
    return made;
}
