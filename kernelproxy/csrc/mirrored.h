/* What the host mirror learns of an op and of what is dropped, without its Python where it knows nothing of that.
 * Part of core.c. */

/* The handle that an argument names: borrowed, NULL if it names none. */
static PyObject *handle_in(PyObject *value)
{
    return IS(value, Ref) ? AT(value, in_ref.handle) : IS(value, View) ? AT(value, in_view.root) : NULL;
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

/* As `HostMirror.drop` of what is barred, and neither known nor missed: 1, 0 if Python shall do it, -1 with an error. */
static int unbar(PyObject *mirror, PyObject *handle)
{
    if (!IS(mirror, HostMirror))
        return 0;
    PyObject *known = AT(mirror, in_mirror.known), *barred = AT(mirror, in_mirror.barred);
    PyObject *missed = PyObject_GetAttr(mirror, s_missed);
    int done = missed == NULL ? -1 : PyDict_CheckExact(missed) && known != NULL && PyDict_CheckExact(known)
        && barred != NULL && PySet_CheckExact(barred);
    if (done > 0 && (done = PyDict_Contains(missed, handle)) >= 0)
        done = !done;
    if (done > 0 && (done = PyDict_Contains(known, handle)) >= 0)
        done = !done;
    Py_XDECREF(missed);
    return done > 0 && PySet_Discard(barred, handle) < 0 ? -1 : done;
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
