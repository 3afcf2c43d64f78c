/* What the host mirror learns of an op and of what is dropped, without its Python where it knows nothing of that.
 * Part of core.c. */

/* The handle that an argument names: borrowed, NULL if it names none. */
static PyObject *handle_in(PyObject *value)
{
    return IS(value, Ref) ? AT(value, in_ref.handle) : IS(value, View) ? AT(value, in_view.root) : NULL;
}

/* Whether keywords may name an array that is written: as `may_put`, and of some that do not as well. */
static int may_put(PyObject *kwargs)
{
    PyObject *name, *value;
    Py_ssize_t place = 0;
    while (kwargs != Py_None && PyDict_Next(kwargs, &place, &name, &value))
        if (!PyUnicode_Check(name) || !PyUnicode_GET_LENGTH(name) || PyUnicode_READ_CHAR(name, 0) == 'o')
            return 1;
    return 0;
}

/* Whether an argument names an array of which nothing is known, or holds one that does: as `HostMirror._has_unknown`. */
static int has_unknown(PyObject *value, PyObject *known)
{
    PyObject *handle = handle_in(value);
    if (handle != NULL) {
        int is_known = PyDict_Contains(known, handle);
        return is_known < 0 ? -1 : !is_known;
    }
    if (!IS(value, Tuple) && !IS(value, List))
        return 0;
    PyObject *items = PyObject_GetAttr(value, s_items);
    int found = items == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; found == 0 && PyTuple_CheckExact(items) && i < PyTuple_GET_SIZE(items); i++)
        found = has_unknown(PyTuple_GET_ITEM(items, i), known);
    Py_XDECREF(items);
    return found;
}

/* Whether a quiet op is given an array of which nothing is known, so that what it makes is not known either, as
 * `HostMirror._made` finds: 1, 0 if Python shall look, -1 with an error. */
static int is_of_unknown(PyObject *mirror, PyObject *args, PyObject *kwargs)
{
    PyObject *known = IS(mirror, HostMirror) ? AT(mirror, in_mirror.known) : NULL;
    int found = 0;
    if (known == NULL || !PyDict_CheckExact(known) || may_put(kwargs))
        return 0;
    Py_INCREF(known);
    for (Py_ssize_t i = 0; found == 0 && i < PyTuple_GET_SIZE(args); i++)
        found = has_unknown(PyTuple_GET_ITEM(args, i), known);
    Py_DECREF(known);
    return found;
}

/* Whether the host mirror has to look at the op: 1, 0, or -1 with an error. */
static int is_looked_at(PyObject *mirror, PyObject *form, PyObject *args, PyObject *kwargs, long results)
{
    if (AT(form, in_form.is_quiet) == Py_True) {
        if (AT(form, in_form.is_small) != Py_True)
            return 0;
        PyObject *worth = part(mirror, HostMirror, in_mirror.worth, s_worth);
        int looked = worth == NULL ? -1 : truth(worth, Worth, in_worth.budget, s_budget);
        Py_XDECREF(worth);
        if (looked > 0 && (looked = is_of_unknown(mirror, args, kwargs)) >= 0)
            looked = !looked;
        return looked;
    }
    int knows = truth(mirror, HostMirror, in_mirror.is_on, s_is_on);
    if (knows <= 0 || results || kwargs != Py_None)
        return knows;
    PyObject *place = PyDict_GetItemWithError(targets, AT(form, in_form.name));
    if (place == NULL || !PyLong_CheckExact(place))
        return PyErr_Occurred() ? -1 : 1;
    Py_ssize_t number = PyLong_AsSsize_t(place);
    PyObject *handle = number >= 0 && number < PyTuple_GET_SIZE(args) ? handle_in(PyTuple_GET_ITEM(args, number)) : NULL;
    if (handle == NULL)
        return 1;
    PyObject *known = part(mirror, HostMirror, in_mirror.known, s_known);
    int found = known == NULL ? -1 : PySequence_Contains(known, handle);
    Py_XDECREF(known);
    return found;
}

/* Bar what an argument names, as `HostMirror.bar`, where nothing is known of it; nothing is barred where that is NULL.
 *
 * 1, 0 if Python shall look, which bars all again, -1 with an error. */
static int bar(PyObject *value, PyObject *known, PyObject *barred)
{
    PyObject *handle = handle_in(value);
    if (handle != NULL) {
        int is_known = PyDict_Contains(known, handle);
        return is_known ? is_known < 0 ? -1 : 0 : barred != NULL && PySet_Add(barred, handle) < 0 ? -1 : 1;
    }
    if (!IS(value, Tuple) && !IS(value, List))
        return PySet_Contains(nameless, (PyObject *)Py_TYPE(value));
    PyObject *items = PyObject_GetAttr(value, s_items);
    int done = items == NULL ? -1 : PyTuple_CheckExact(items);
    for (Py_ssize_t i = 0; done > 0 && i < PyTuple_GET_SIZE(items); i++)
        done = bar(PyTuple_GET_ITEM(items, i), known, barred);
    Py_XDECREF(items);
    return done;
}

/* Bar all that an op is given, and what it makes. As `bar`. */
static int bar_all(PyObject *args, PyObject *kwargs, PyObject *out, long results, PyObject *known, PyObject *barred)
{
    PyObject *name, *value;
    Py_ssize_t place = 0;
    int done = 1;
    for (Py_ssize_t i = 0; done > 0 && i < PyTuple_GET_SIZE(args); i++)
        done = bar(PyTuple_GET_ITEM(args, i), known, barred);
    while (done > 0 && kwargs != Py_None && PyDict_Next(kwargs, &place, &name, &value))
        done = bar(value, known, barred);
    for (long i = 0; done > 0 && barred != NULL && i < results; i++) {
        PyObject *number = PyLong_FromLong(i), *handle = number == NULL ? NULL : PyNumber_Add(out, number);
        done = handle == NULL || PySet_Add(barred, handle) < 0 ? -1 : 1;
        Py_XDECREF(handle);
        Py_XDECREF(number);
    }
    return done;
}

/* As `HostMirror.note` of an op that keeps what it is given, or only writes, where nothing is known of that: as `bar`. */
static int note_unknown(
    PyObject *mirror, PyObject *form, PyObject *args, PyObject *kwargs, PyObject *batch, PyObject *out, long results)
{
    int is_keeping = AT(form, in_form.is_keeping) == Py_True, is_writing = AT(form, in_form.is_writing) == Py_True;
    if (!(is_keeping || is_writing) || !IS(mirror, HostMirror) || AT(mirror, in_mirror.is_on) != Py_True)
        return 0;
    PyObject *known = at(mirror, in_mirror.known), *barred = known == NULL ? NULL : at(mirror, in_mirror.barred);
    int done = barred == NULL ? -1 : PyDict_CheckExact(known) && PySet_CheckExact(barred);
    if (done > 0)
        done = bar_all(args, kwargs, out, results, known, is_keeping ? barred : NULL);
    if (done > 0 && is_keeping) {
        PyObject *number = PyLong_FromSsize_t(
            PyLong_AsSsize_t(AT(batch, in_batch.first)) + PyList_GET_SIZE(AT(batch, in_batch.ops)));
        done = number == NULL || PyObject_SetAttr(mirror, s_uncertain, number) < 0 ? -1 : 1;
        Py_XDECREF(number);
    }
    Py_XDECREF(barred);
    Py_XDECREF(known);
    return done;
}

/* Count what an entry holds no more: 1, 0 if it is none, -1 with an error. */
static int count_gone(PyObject *mirror, PyObject *entry)
{
    if (entry == Py_None)
        return 0;
    PyObject *layout = PyObject_GetAttr(entry, s_layout), *held = PyObject_GetAttr(mirror, s_held_bytes);
    PyObject *bytes = layout == NULL ? NULL : PyObject_GetAttr(layout, s_nbytes);
    PyObject *left = bytes == NULL || held == NULL ? NULL : PyNumber_Subtract(held, bytes);
    int done = left == NULL || PyObject_SetAttr(mirror, s_held_bytes, left) < 0 ? -1 : 1;
    Py_XDECREF(left);
    Py_XDECREF(bytes);
    Py_XDECREF(held);
    Py_XDECREF(layout);
    return done;
}

/* As `HostMirror.drop`: 1, 0 if Python shall do it, -1 with an error. */
static int drop_known(PyObject *mirror, PyObject *handle)
{
    if (!IS(mirror, HostMirror))
        return 0;
    PyObject *known = Py_XNewRef(AT(mirror, in_mirror.known)), *barred = Py_XNewRef(AT(mirror, in_mirror.barred));
    PyObject *missed = PyObject_GetAttr(mirror, s_missed), *entry = NULL;
    int done = missed == NULL ? -1 : PyDict_CheckExact(missed) && known != NULL && PyDict_CheckExact(known)
        && barred != NULL && PySet_CheckExact(barred);
    if (done > 0 && (entry = Py_XNewRef(PyDict_GetItemWithError(known, handle))) == NULL && PyErr_Occurred())
        done = -1;
    if (entry != NULL && (done = count_gone(mirror, entry)) > 0)
        done = PyDict_DelItem(known, handle) < 0 ? -1 : 1;
    if (done > 0 && PySet_Discard(barred, handle) < 0)
        done = -1;
    int was_missed = done > 0 ? PyDict_Contains(missed, handle) : 0;
    if (was_missed < 0 || (was_missed && PyDict_DelItem(missed, handle) < 0))
        done = -1;
    Py_XDECREF(entry);
    Py_XDECREF(missed);
    Py_XDECREF(barred);
    Py_XDECREF(known);
    return done;
}

static PyObject *look(
    PyObject *mirror, PyObject *form, PyObject *args, PyObject *kwargs, PyObject *batch, PyObject *out)
{
    Py_ssize_t first = PyLong_AsSsize_t(AT(batch, in_batch.first));
    PyObject *number = PyLong_FromSsize_t(first + PyList_GET_SIZE(AT(batch, in_batch.ops)));
    if (number == NULL)
        return NULL;
    PyObject *given[] = {mirror, AT(form, in_form.name), args, kwargs, AT(form, in_form.results), out,
                         AT(form, in_form.made), number};
    PyObject *known = PyObject_VectorcallMethod(s_note, given, 8, NULL);
    Py_DECREF(number);
    return known;
}
