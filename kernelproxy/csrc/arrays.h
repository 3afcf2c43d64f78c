/* Making arrays and windows on them. Part of core.c. */

/* --- arrays ------------------------------------------------------------------------------------------------------- */

static PyObject *new_array(PyObject *layout, PyObject *ref, PyObject *root, PyObject *client, PyObject *dropped)
{
    PyObject *made = ((PyTypeObject *)array_class)->tp_alloc((PyTypeObject *)array_class, 0);
    if (made != NULL) {
        AT(made, in_array.layout) = Py_NewRef(layout);
        AT(made, in_array.ref) = Py_NewRef(ref);
        AT(made, in_array.root) = Py_NewRef(root);
        AT(made, in_array.client) = Py_NewRef(client);
        AT(made, in_array.dropped) = Py_NewRef(dropped);
    }
    return made;
}

/* As `small`. */
static PyObject *owner(PyObject *client, PyObject *layout, PyObject *handle)
{
    PyObject *made = NULL, *ref = PyObject_CallOneArg(Ref, handle);
    PyObject *dropped = ref == NULL ? NULL : PyObject_GetAttr(client, s_dropped);
    if (dropped != NULL)
        made = new_array(layout, ref, Py_None, client, dropped);
    Py_XDECREF(ref);
    Py_XDECREF(dropped);
    return made;
}

/* Whether `array` is of the class itself and all of it is set. */
static int is_plain(PyObject *array)
{
    return IS(array, array_class) && AT(array, in_array.client) && AT(array, in_array.layout)
        && handle_in(AT(array, in_array.ref)) && AT(array, in_array.root);
}

/* As `view_of`, for a plain array. */
static PyObject *window_on(PyObject *array, PyObject *offset, PyObject *layout)
{
    PyObject *ref = AT(array, in_array.ref), *root = AT(array, in_array.root), *start, *order, *view, *made = NULL;
    if (IS(ref, View)) {
        start = PyNumber_Add(offset, AT(ref, in_view.offset));
        order = AT(ref, in_view.order);
    } else {
        start = Py_NewRef(offset);
        order = AT(AT(array, in_array.layout), in_layout.memory_order);
    }
    if (start != NULL && AT(layout, in_layout.size) == zero) /* no element is anywhere */
        Py_SETREF(start, Py_NewRef(zero));
    if (start == NULL)
        return NULL;
    PyObject *given[] = {handle_in(ref), start, AT(layout, in_layout.shape), AT(layout, in_layout.strides),
                         AT(layout, in_layout.dtype_text), order};
    view = PyObject_Vectorcall(View, given, 6, NULL);
    if (view != NULL)
        made = new_array(layout, view, root == Py_None ? array : root, AT(array, in_array.client), Py_None);
    Py_XDECREF(view);
    Py_DECREF(start);
    return made;
}

/* What a window depends on, as `_cache_key`: a new reference; NULL without an error if there is more to it. */
static PyObject *window_key(PyObject *layout, PyObject *key)
{
    PyObject *one[1] = {key}, **given = one;
    Py_ssize_t count = 1, length = 1, at_place = 0;
    if (PyTuple_CheckExact(key)) {
        count = PyTuple_GET_SIZE(key);
        given = ((PyTupleObject *)key)->ob_item;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PySlice_Check(given[i])) {
            PySliceObject *slice = (PySliceObject *)given[i];
            PyObject *bounds[] = {slice->start, slice->stop, slice->step};
            for (int b = 0; b < 3; b++)
                if (bounds[b] != Py_None && !PyLong_CheckExact(bounds[b]))
                    return NULL;
            length += 4;
        } else if (PyLong_CheckExact(given[i]) || given[i] == Py_None || given[i] == Py_Ellipsis)
            length += 1;
        else
            return NULL;
    }
    PyObject *made = PyTuple_New(length);
    if (made == NULL)
        return NULL;
    PyTuple_SET_ITEM(made, at_place++, Py_NewRef(layout));
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PySlice_Check(given[i])) {
            PySliceObject *slice = (PySliceObject *)given[i];
            PyTuple_SET_ITEM(made, at_place++, Py_NewRef((PyObject *)&PySlice_Type));
            PyTuple_SET_ITEM(made, at_place++, Py_NewRef(slice->start));
            PyTuple_SET_ITEM(made, at_place++, Py_NewRef(slice->stop));
            PyTuple_SET_ITEM(made, at_place++, Py_NewRef(slice->step));
        } else
            PyTuple_SET_ITEM(made, at_place++, Py_NewRef(given[i]));
    }
    return made;
}

/* Find the window that an index selects, as `known_window`: 1 with new references, 0 if it is not known, -1. */
static int find_window(PyObject *layout, PyObject *key, PyObject **offset, PyObject **shown)
{
    if (!IS(layout, Layout))
        return 0;
    if (PyLong_CheckExact(key)) {
        PyObject *shape = AT(layout, in_layout.shape), *row;
        if (!PyTuple_CheckExact(shape) || !PyTuple_GET_SIZE(shape))
            return 0;
        int over = 0;
        long long place = PyLong_AsLongLongAndOverflow(key, &over), extent, step;
        extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, 0));
        step = PyLong_AsLongLong(PyTuple_GET_ITEM(AT(layout, in_layout.strides), 0));
        place += place < 0 ? extent : 0;
        if (over || place < 0 || place >= extent || AT(layout, in_layout.size) == zero)
            return PyErr_Occurred() ? -1 : 0;
        if ((row = PyDict_GetItemWithError(rows, layout)) == NULL)
            return PyErr_Occurred() ? -1 : 0;
        *shown = Py_NewRef(row);
        if ((*offset = PyLong_FromLongLong(place * step)) == NULL)
            Py_CLEAR(*shown);
        return *offset == NULL ? -1 : 1;
    }
    if (!PySlice_Check(key) && !PyTuple_CheckExact(key))
        return 0;
    PyObject *cached = window_key(layout, key);
    if (cached == NULL)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *found = PyDict_GetItemWithError(windows, cached);
    if (found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2
        && IS(PyTuple_GET_ITEM(found, 1), Layout)) {
        *offset = Py_NewRef(PyTuple_GET_ITEM(found, 0));
        *shown = Py_NewRef(PyTuple_GET_ITEM(found, 1));
    }
    Py_DECREF(cached);
    return *offset != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* As `is_window`, for plain arrays. */
static int is_window(PyObject *value, PyObject *array, PyObject *offset, PyObject *layout)
{
    PyObject *root = AT(array, in_array.root), *ref = AT(array, in_array.ref), *of = AT(value, in_array.ref);
    if (AT(value, in_array.layout) != layout || !IS(of, View)
        || AT(value, in_array.root) != (root == Py_None ? array : root))
        return 0;
    PyObject *start = IS(ref, View) ? PyNumber_Add(offset, AT(ref, in_view.offset)) : Py_NewRef(offset);
    int same = start == NULL ? -1 : PyObject_RichCompareBool(AT(of, in_view.offset), start, Py_EQ);
    Py_XDECREF(start);
    return same;
}
