/* Stores by masks that are found again, as `stores`. Part of core.c. */

/* As `store_of_chosen` and `store_again`, of plain arrays: put into `array` what `mask` has chosen elsewhere. */
static PyObject *store_chosen(PyObject *array, PyObject *mask, PyObject *value)
{
    PyObject *client = AT(array, in_array.client), *rows = NULL, *pipeline = NULL, *form = NULL, *given = NULL;
    PyObject *handle = NULL, *layout = AT(array, in_array.layout);
    if (note_rows(value, &rows) <= 0 || rows == NULL)
        return NULL;
    PyObject *key = PyTuple_Pack(4, layout, s_store_chosen, AT(mask, in_array.layout), seen(value));
    int found = PyObject_RichCompareBool(PyTuple_GET_ITEM(rows, ROWS_OF), AT(mask, in_array.ref), Py_EQ);
    if (found > 0)
        found = find_form(client, key, NULL, 0, &pipeline, &form);
    if (found > 0 && counted_in(pipeline, mask) == PyTuple_GET_ITEM(rows, ROWS_COUNTED)) /* nobody has written it */
        given = PyTuple_Pack(3, AT(array, in_array.ref), AT(mask, in_array.ref), AT(value, in_array.ref));
    if (given != NULL)
        handle = note(pipeline, form, given, 0, Py_None, zero);
    int is_done = handle != NULL;
    Py_XDECREF(handle);
    Py_XDECREF(given);
    Py_XDECREF(form);
    Py_XDECREF(pipeline);
    Py_XDECREF(key);
    Py_DECREF(rows);
    return is_done ? Py_NewRef(Py_None) : NULL;
}

/* Whether a number is put as it is, if it is within the bounds of its form: not if it may be a zero with a sign. */
static int is_put_so(PyObject *value)
{
    if (!PyFloat_CheckExact(value))
        return PyLong_CheckExact(value) || PyBool_Check(value);
    double number = PyFloat_AS_DOUBLE(value);
    return !(signbit(number) && number > -PyFloat_AS_DOUBLE(surely_some));
}

/* Whether the executor knows such stores: 1, 0, or -1 with an error. */
static int knows_stores(PyObject *pipeline)
{
    PyObject *connection = PyObject_GetAttr(pipeline, s_connection);
    PyObject *welcome = connection == NULL ? NULL : PyObject_GetAttr(connection, s_welcome);
    PyObject *minor = welcome == NULL ? NULL : PyObject_GetAttr(welcome, s_minor);
    int knows = minor == NULL ? -1 : PyObject_RichCompareBool(minor, knows_masks, Py_GE);
    Py_XDECREF(minor);
    Py_XDECREF(welcome);
    Py_XDECREF(connection);
    return knows;
}

/* As `store_where`, of plain arrays, the mask of as many axes, and a number or a plain array. */
static PyObject *store_where(PyObject *array, PyObject *mask, PyObject *value)
{
    PyObject *client = AT(array, in_array.client), *layout = AT(array, in_array.layout), *pipeline = NULL, *form = NULL;
    PyObject *chosen = AT(mask, in_array.layout), *given = NULL, *handle = NULL;
    int is_array = is_plain(value);
    if (!IS(layout, Layout) || !IS(chosen, Layout) || (is_array ? !IS(seen(value), Layout) : !is_put_so(value)))
        return NULL;
    if (PyTuple_GET_SIZE(AT(layout, in_layout.shape)) != PyTuple_GET_SIZE(AT(chosen, in_layout.shape)))
        return NULL;
    PyObject *key = PyTuple_Pack(4, layout, s_store_where, chosen, seen(value));
    int found = find_form(client, key, is_array ? NULL : value, 0, &pipeline, &form);
    if (found > 0 && knows_stores(pipeline) > 0)
        given = PyTuple_Pack(
            3, AT(array, in_array.ref), AT(mask, in_array.ref), is_array ? AT(value, in_array.ref) : value);
    if (given != NULL)
        handle = note(pipeline, form, given, 0, Py_None, zero);
    int is_done = handle != NULL;
    Py_XDECREF(handle);
    Py_XDECREF(given);
    Py_XDECREF(form);
    Py_XDECREF(pipeline);
    Py_XDECREF(key);
    return is_done ? Py_NewRef(Py_None) : NULL;
}

/* ``array[mask] = value``, of plain arrays. None; NULL without an error if Python shall do it. */
static PyObject *store_by_mask(PyObject *array, PyObject *mask, PyObject *value)
{
    PyObject *client = AT(array, in_array.client);
    if (AT(mask, in_array.client) != client || (is_plain(value) && AT(value, in_array.client) != client))
        return NULL;
    if (is_plain(value) && IS(AT(value, in_array.layout), LaterLayout))
        return store_chosen(array, mask, value);
    return is_plain(value) || is_number(value) ? store_where(array, mask, value) : NULL;
}
