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
    PyObject *made = NULL, *ref = new_ref(handle);
    PyObject *dropped = ref == NULL ? NULL : part(client, Client, in_client.dropped, s_dropped);
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
    view = new_view(given);
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

/* What a bound of a slice says: 1 and where it is, 1 as it was for None, 0 if there is more to it. */
static int bound_of(PyObject *given, long long extent, long long *bound)
{
    int over = 0;
    if (given == Py_None)
        return 1;
    if (!PyLong_CheckExact(given))
        return 0;
    long long place = PyLong_AsLongLongAndOverflow(given, &over);
    if (over)
        return 0;
    place += place < 0 ? extent : 0;
    *bound = place < 0 ? 0 : place > extent ? extent : place;
    return 1;
}

/* Where an index of one axis begins, and the length of what it shows, -1 for an int within bounds; 1, or 0 if there is
 * more to it. */
static int run_of(PyObject *given, long long extent, long long *start, long long *length)
{
    long long stop = extent;
    int over = 0;
    if (PyLong_CheckExact(given)) {
        *start = PyLong_AsLongLongAndOverflow(given, &over);
        *start += *start < 0 ? extent : 0;
        *length = -1;
        return !over && *start >= 0 && *start < extent;
    }
    PySliceObject *slice = (PySliceObject *)given;
    if (!PySlice_Check(given) || slice->step != Py_None || !bound_of(slice->start, extent, start)
        || !bound_of(slice->stop, extent, &stop))
        return 0;
    *length = stop > *start ? stop - *start : 0;
    return 1;
}

/* Lengths that were asked for lately, and what shows them, each where its layout and lengths say. */
enum { MOST_AXES = 8, SEEN_RUNS = 256 };
typedef struct { PyObject *layout, *shown; Py_ssize_t count; long long lengths[MOST_AXES]; } Run;
static Run seen_runs[SEEN_RUNS];

/* What has these lengths of its first axes, as Python remembers. Borrowed; NULL if it is not known, or an error. */
static PyObject *remembered_run(PyObject *layout, const long long *lengths, Py_ssize_t count)
{
    PyObject *key = PyTuple_New(count + 1), *found = NULL;
    if (key == NULL)
        return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(layout));
    for (Py_ssize_t axis = 0; axis < count; axis++)
        PyTuple_SET_ITEM(key, axis + 1, lengths[axis] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(lengths[axis]));
    if (!PyErr_Occurred())
        found = PyDict_GetItemWithError(runs, key);
    Py_DECREF(key);
    return IS(found, Layout) ? found : NULL;
}

/* As that, which is not asked again for what was asked lately. */
static PyObject *run_shown(PyObject *layout, const long long *lengths, Py_ssize_t count)
{
    size_t place = (size_t)layout >> 4;
    for (Py_ssize_t axis = 0; axis < count; axis++)
        place = place * 31 + (size_t)lengths[axis];
    Run *run = &seen_runs[place % SEEN_RUNS];
    size_t bytes = (size_t)count * sizeof(*lengths);
    if (run->layout == layout && run->count == count && !memcmp(run->lengths, lengths, bytes))
        return run->shown;
    PyObject *found = remembered_run(layout, lengths, count), *gone[] = {run->layout, run->shown};
    if (found == NULL)
        return NULL;
    run->layout = Py_NewRef(layout);
    run->shown = Py_NewRef(found);
    run->count = count;
    memcpy(run->lengths, lengths, bytes);
    Py_XDECREF(gone[0]);
    Py_XDECREF(gone[1]);
    return found;
}

/* Find the window that ints and slices without a step select, as `_run`: as `find_window`. */
static int find_run(PyObject *layout, PyObject **given, Py_ssize_t count, PyObject **offset, PyObject **shown)
{
    PyObject *shape = AT(layout, in_layout.shape), *strides = AT(layout, in_layout.strides), *found;
    long long start, sum = 0, step, lengths[MOST_AXES];
    if (!PyTuple_CheckExact(shape) || !PyTuple_CheckExact(strides) || !count || count > PyTuple_GET_SIZE(shape)
        || count > MOST_AXES)
        return 0;
    for (Py_ssize_t axis = 0; axis < count; axis++) {
        start = 0;
        if (!run_of(given[axis], PyLong_AsLongLong(PyTuple_GET_ITEM(shape, axis)), &start, &lengths[axis]))
            return 0;
        step = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, axis));
        if (__builtin_mul_overflow(start, step, &step) || __builtin_add_overflow(sum, step, &sum))
            return 0;
    }
    if ((found = run_shown(layout, lengths, count)) == NULL)
        return PyErr_Occurred() ? -1 : 0;
    if ((*offset = PyLong_FromLongLong(AT(layout, in_layout.size) == zero ? 0 : sum)) == NULL)
        return -1;
    *shown = Py_NewRef(found);
    return 1;
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
    int is_found = PySlice_Check(key) ? find_run(layout, &key, 1, offset, shown)
        : find_run(layout, ((PyTupleObject *)key)->ob_item, PyTuple_GET_SIZE(key), offset, shown);
    if (is_found)
        return is_found;
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

/* Whether an axis or a length is given as an int, or several as a tuple of ints. */
static int is_of_ints(PyObject *given)
{
    if (PyLong_CheckExact(given))
        return 1;
    Py_ssize_t count = PyTuple_CheckExact(given) ? PyTuple_GET_SIZE(given) : -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(given, i)))
            return 0;
    return count >= 0;
}

/* The view that a method has shown of an array that lies so. NULL without an error if it is not known. */
static PyObject *look_again(PyObject *array, PyObject *method, PyObject *const *given, Py_ssize_t count)
{
    PyObject *layout = array_class != NULL && is_plain(array) ? AT(array, in_array.layout) : NULL, *made = NULL;
    if (!IS(layout, Layout))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_of_ints(given[i]))
            return NULL;
    PyObject *key = PyTuple_New(count + 2);
    if (key == NULL)
        return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(layout));
    PyTuple_SET_ITEM(key, 1, Py_NewRef(method));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(key, i + 2, Py_NewRef(given[i]));
    PyObject *found = Py_XNewRef(PyDict_GetItemWithError(windows, key));
    if (found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2
        && IS(PyTuple_GET_ITEM(found, 1), Layout))
        made = window_on(array, PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1));
    Py_XDECREF(found);
    Py_DECREF(key);
    return made;
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
