/* Launches of a user's kernels that are found again, as `launches.launched`. Part of core.c. */

/* As `launches._UNSURE_BITS`. */
enum { UNSURE_BITS = 16 };

/* What stands for an int: NULL if Python shall look, or with an error. A new reference. */
static PyObject *size_of_int(PyObject *number)
{
    int over = 0, bits = 0;
    long long value = PyLong_AsLongLongAndOverflow(number, &over);
    if (over || (value == -1 && PyErr_Occurred()))
        return NULL;
    for (unsigned long long rest = value < 0 ? ~(unsigned long long)value : (unsigned long long)value; rest; rest >>= 1)
        bits++;
    if (bits == UNSURE_BITS)
        return Py_NewRef(number);
    PyObject *length = PyLong_FromLong(bits), *size = length == NULL ? NULL : PyTuple_Pack(2, value < 0 ? Py_True : Py_False, length);
    Py_XDECREF(length);
    return size;
}

/* As `launches._size`: NULL if Python shall look, or with an error. A new reference. */
static PyObject *size_of_number(PyObject *number)
{
    if (PyFloat_CheckExact(number))
        return Py_NewRef(is_any_float(number) ? Py_True : number);
    if (PyBool_Check(number))
        return Py_NewRef(Py_True);
    return PyLong_CheckExact(number) ? size_of_int(number) : NULL;
}

/* Note what one argument is known by, and how it travels: 1, 0 if Python shall look, -1 with an error. */
static int note_given(Known *known, PyObject *given, PyObject **sent_as)
{
    if (is_plain(given)) {
        PyObject *layout = AT(given, in_array.layout);
        if (AT(given, in_array.client) != known->client || !IS(layout, Layout))
            return 0;
        *sent_as = Py_NewRef(AT(given, in_array.ref));
        return know(known, layout);
    }
    int scalar = is_scalar(given);
    PyObject *number = scalar > 0 ? PyObject_CallMethodNoArgs(given, s_item) : scalar ? NULL : Py_NewRef(given);
    PyObject *size = number == NULL ? NULL : size_of_number(number);
    int done = size == NULL ? PyErr_Occurred() ? -1 : 0 : know_value(known, given, size);
    if (done > 0 && (*sent_as = scalar ? PyObject_CallOneArg(sent_number, given) : Py_NewRef(given)) == NULL)
        done = -1;
    Py_XDECREF(size);
    Py_XDECREF(number);
    return done;
}

/* Note all arguments, which `sent` says how they travel; as `note_given`. */
static int note_all_given(Known *known, PyObject *given, PyObject **sent)
{
    int done = (*sent = PyTuple_New(PyTuple_GET_SIZE(given))) == NULL ? -1 : 1;
    for (Py_ssize_t i = 0; done > 0 && i < PyTuple_GET_SIZE(given); i++) {
        PyObject *as = NULL;
        done = note_given(known, PyTuple_GET_ITEM(given, i), &as);
        PyTuple_SET_ITEM(*sent, i, as);
    }
    return done;
}

/* The key of a launch: a new reference, NULL with an error. */
static PyObject *key_of(Known *known)
{
    PyObject *key = PyTuple_New(known->count);
    for (Py_ssize_t i = 0; key != NULL && i < known->count; i++)
        PyTuple_SET_ITEM(key, i, Py_NewRef(known->parts[i]));
    return key;
}

/* What travels: the kernel, its arguments, and before them the grid and the block, behind which they are one. */
static PyObject *items_of(PyObject *ref, PyObject *shape, PyObject *sent)
{
    Py_ssize_t shaped = PyTuple_GET_SIZE(shape), count = shaped ? shaped + 1 : PyTuple_GET_SIZE(sent);
    PyObject *whole = shaped ? PyObject_CallOneArg(Tuple, sent) : NULL, *items = NULL;
    if ((!shaped || whole != NULL) && (items = PyTuple_New(1 + count)) != NULL) {
        PyTuple_SET_ITEM(items, 0, Py_NewRef(ref));
        for (Py_ssize_t i = 0; i < count; i++)
            PyTuple_SET_ITEM(items, 1 + i, Py_NewRef(
                !shaped ? PyTuple_GET_ITEM(sent, i) : i < shaped ? PyTuple_GET_ITEM(shape, i) : whole));
    }
    Py_XDECREF(whole);
    return items;
}

/* Record a launch that was remembered; what it gives, NULL without an error if Python shall do it. */
static PyObject *record_launch(PyObject *client, PyObject *key, PyObject *ref, PyObject *shape, PyObject *given, PyObject *sent)
{
    PyObject *pipeline, *form, *items = NULL, *made = NULL, *of = NULL;
    int found = find_remembered(client, key, &pipeline, &form);
    PyObject *layout = found > 0 ? AT(form, in_form.made) : NULL, *gives = found > 0 ? AT(form, in_form.gives) : NULL;
    if (found > 0 && IS(gives, Returned)) { /* the kernel comes first */
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(gives, 0)) - 1;
        of = place >= 0 && place < PyTuple_GET_SIZE(given) ? PyTuple_GET_ITEM(given, place) : NULL;
        found = of != NULL;
    }
    if (found > 0 && (layout == NULL || !(layout == Py_None || IS(layout, Layout))))
        found = 0;
    if (found > 0)
        found = is_sure(pipeline, AT(form, in_form.size));
    if (found > 0)
        found = is_in_one_stream(client);
    if (found > 0 && (items = items_of(ref, shape, sent)) != NULL)
        made = record(client, pipeline, form, items, Py_None, of);
    Py_XDECREF(items);
    Py_XDECREF(form);
    Py_XDECREF(pipeline);
    return made;
}

/* As `launches.launched`: what the launch gives, in a tuple. NULL without an error if Python shall do it. */
static PyObject *launch_again(
    PyObject *client, PyObject *handle, PyObject *ref, PyObject *form, PyObject *given, PyObject *shape)
{
    Known known = {.client = client, .rows = NULL, .count = 0, .is_any_float = 0};
    PyObject *sent = NULL, *key = NULL, *made = NULL, *whole = NULL;
    int done = know(&known, one) > 0 ? know(&known, handle) : 0;
    for (Py_ssize_t i = 0; done > 0 && i < PyTuple_GET_SIZE(form); i++)
        done = know(&known, PyTuple_GET_ITEM(form, i));
    if (done > 0)
        done = note_all_given(&known, given, &sent);
    if (done > 0 && (key = key_of(&known)) != NULL)
        made = record_launch(client, key, ref, shape, given, sent);
    if (made != NULL)
        whole = PyTuple_Pack(1, made);
    for (Py_ssize_t i = 0; i < known.count; i++)
        Py_DECREF(known.parts[i]);
    Py_XDECREF(made);
    Py_XDECREF(key);
    Py_XDECREF(sent);
    return whole;
}
