/* Ops on arrays and numbers, whose forms are found again. Part of core.c. */

static int is_number(PyObject *value)
{
    return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || PyComplex_CheckExact(value);
}

/* Whether a value is one of NumPy's scalars: 1, 0, or -1 with an error. By its type alone it is known what is made. */
static int is_scalar(PyObject *value)
{
    return scalars == NULL ? 0 : PyDict_Contains(scalars, (PyObject *)Py_TYPE(value));
}

/* What travels for an operand: a new reference, NULL with an error. */
static PyObject *sent(PyObject *operand)
{
    if (IS(operand, array_class))
        return Py_NewRef(AT(operand, in_array.ref));
    int found = PyComplex_CheckExact(operand) ? 1 : is_number(operand) ? 0 : is_scalar(operand);
    return found > 0 ? PyObject_CallOneArg(sent_number, operand) : found < 0 ? NULL : Py_NewRef(operand);
}

/* Whether a number, or both parts of it, is between those of the form: 1, 0, or -1 with an error. */
static int is_within(PyObject *form, PyObject *number)
{
    if (PyComplex_CheckExact(number)) {
        double parts_of[] = {PyComplex_RealAsDouble(number), PyComplex_ImagAsDouble(number)};
        int fits = 1;
        for (int i = 0; i < 2 && fits > 0; i++) {
            PyObject *one = PyFloat_FromDouble(parts_of[i]);
            fits = one == NULL ? -1 : is_within(form, one);
            Py_XDECREF(one);
        }
        return fits;
    }
    int is_above = PyObject_RichCompareBool(AT(form, in_form.low), number, Py_LE);
    return is_above <= 0 ? is_above : PyObject_RichCompareBool(number, AT(form, in_form.high), Py_LE);
}

/* Find the form that is remembered under `key`: 1 with a new reference each, 0 if Python shall look, -1 with an error. */
static int find_remembered(PyObject *client, PyObject *key, PyObject **pipeline, PyObject **form)
{
    *form = NULL;
    if ((*pipeline = part(client, Client, in_client.pipeline, s_pipeline)) == NULL)
        return -1;
    PyObject *forms = PyObject_TypeCheck(*pipeline, (PyTypeObject *)Recorder) ? AT(*pipeline, in_recorder.forms) : NULL;
    if (forms == NULL || !PyDict_Check(forms) || AT(*pipeline, in_recorder.memory) == NULL)
        return 0;
    *form = Py_XNewRef(PyDict_GetItemWithError(forms, key));
    return IS(*form, Form) ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Whether so many bytes are not counted: 1, 0, or -1 with an error. */
static int is_small(PyObject *pipeline, PyObject *bytes)
{
    PyObject *most = part(AT(pipeline, in_recorder.memory), MemoryModel, in_memory.small_bytes, s_small_bytes);
    int fits = most == NULL ? -1 : is_at_most(bytes, most);
    Py_XDECREF(most);
    return fits;
}

/* Whether so many bytes are sure to be had, as `MemoryModel.is_sure`. */
static int is_sure(PyObject *pipeline, PyObject *bytes)
{
    int fits = is_small(pipeline, bytes);
    if (fits)
        return fits;
    PyObject *said = PyObject_CallMethodOneArg(AT(pipeline, in_recorder.memory), s_is_sure, bytes);
    fits = said == NULL ? -1 : PyObject_IsTrue(said);
    Py_XDECREF(said);
    return fits;
}

/* As `fresh`. */
static PyObject *fresh(PyObject *client, PyObject *pipeline, PyObject *layout, PyObject *handle)
{
    PyObject *made = owner(client, layout, handle), *bytes = AT(layout, in_layout.held_bytes), *done;
    int fits = made == NULL ? 1 : is_small(pipeline, bytes);
    if (fits < 0)
        Py_CLEAR(made);
    if (fits)
        return made;
    done = PyObject_CallMethodObjArgs(AT(pipeline, in_recorder.memory), s_note, handle, bytes, NULL);
    if (done == NULL)
        Py_CLEAR(made);
    Py_XDECREF(done);
    return made;
}

/* As `pending`. */
static PyObject *fresh_later(PyObject *client, PyObject *pipeline, PyObject *handle, PyObject *kind, PyObject *rows)
{
    PyObject *made = small_later(client, handle, kind, rows), *bytes = AT(kind, in_some_rows.most_bytes), *done;
    int fits = made == NULL ? 1 : is_small(pipeline, bytes);
    if (fits < 0)
        Py_CLEAR(made);
    if (fits)
        return made;
    done = PyObject_CallMethodObjArgs(AT(pipeline, in_recorder.memory), s_note, handle, bytes, NULL);
    if (done == NULL)
        Py_CLEAR(made);
    Py_XDECREF(done);
    return made;
}

/* Whether all goes to the first device's default stream: 1, 0, or -1 with an error. */
static int is_in_one_stream(PyObject *client)
{
    PyObject *streams = part(client, Client, in_client.streams, s_streams);
    int is_used = streams == NULL ? -1 : truth(streams, Streams, in_streams.is_used, s_is_used);
    Py_XDECREF(streams);
    return is_used < 0 ? -1 : !is_used;
}

/* Find the form of an op on arrays of `client`: 1 with a new reference each, 0 if Python shall look, -1 with an error.
 *
 * `number` is the operand that is one, or NULL; a result must surely be had if there is one (`makes`). */
static int find_form(
    PyObject *client, PyObject *key, PyObject *number, int makes, PyObject **pipeline, PyObject **form)
{
    *pipeline = *form = NULL;
    int fits = key == NULL ? -1 : find_remembered(client, key, pipeline, form);
    if (fits > 0 && number != NULL)
        fits = is_within(*form, number);
    if (fits > 0 && makes)
        fits = IS(AT(*form, in_form.made), Layout) || IS(AT(*form, in_form.rows), SomeRows)
            ? is_sure(*pipeline, AT(*form, in_form.size)) : 0;
    return fits > 0 ? is_in_one_stream(client) : fits;
}

/* What an op made, by its form: an array of a layout that is known, or of as many rows as `rows` says. */
static PyObject *made_by(PyObject *client, PyObject *pipeline, PyObject *form, PyObject *rows, PyObject *handle)
{
    PyObject *kind = AT(form, in_form.rows);
    if (IS(kind, SomeRows))
        return fresh_later(client, pipeline, handle, kind, rows);
    return fresh(client, pipeline, AT(form, in_form.made), handle);
}

/* Record an op on `count` operands, which the form of `key` is asked for, and return what it makes or `target`.
 *
 * Takes over the key, and `rows`, which say how many rows operands have that have them by the key, or are NULL.
 * NULL without an error if Python shall do it. */
static PyObject *apply(
    PyObject *client, PyObject *rows, PyObject *key, PyObject *number, PyObject *const *operands, Py_ssize_t count,
    PyObject *target)
{
    PyObject *pipeline, *form, *given, *handle = NULL, *made = NULL;
    int found = find_form(client, key, number, target == NULL, &pipeline, &form);
    if (found > 0 && target == NULL && rows == NULL && IS(AT(form, in_form.rows), SomeRows))
        found = 0; /* somebody has asked for the length meanwhile */
    if (found > 0 && (given = PyTuple_New(count)) != NULL) {
        int is_whole = 1;
        for (Py_ssize_t i = 0; i < count && is_whole; i++) {
            PyObject *one = sent(operands[i]);
            PyTuple_SET_ITEM(given, i, one);
            is_whole = one != NULL;
        }
        if (is_whole)
            handle = note(pipeline, form, given, 0, Py_None, zero);
        Py_DECREF(given);
        if (handle != NULL)
            made = target != NULL ? Py_NewRef(target) : made_by(client, pipeline, form, rows, handle);
        Py_XDECREF(handle);
    }
    Py_XDECREF(form);
    Py_XDECREF(pipeline);
    Py_XDECREF(key);
    Py_XDECREF(rows);
    return made;
}

/* What stands in a key for an operand: its layout, what is known of that, or its type. Borrowed. */
static PyObject *seen(PyObject *operand)
{
    return is_plain(operand) ? known_as(AT(operand, in_array.layout)) : (PyObject *)Py_TYPE(operand);
}

/* As `stores`: put a plain array or a number into a window. None; NULL without an error if Python shall do it. */
static PyObject *store(PyObject *array, PyObject *offset, PyObject *layout, PyObject *value)
{
    PyObject *client = AT(array, in_array.client), *pipeline, *form, *window = NULL, *given = NULL, *handle = NULL;
    int is_array = is_plain(value);
    if (is_array && AT(value, in_array.client) != client)
        return NULL;
    PyObject *key = tuple_of(3, (PyObject *[]){layout, is_array ? s_store : s_set, seen(value)});
    if (find_form(client, key, is_array ? NULL : value, 0, &pipeline, &form) > 0)
        window = window_on(array, offset, layout);
    if (window != NULL && is_array)
        given = tuple_of(2, (PyObject *[]){AT(window, in_array.ref), AT(value, in_array.ref)});
    else if (window != NULL)
        given = tuple_of(3, (PyObject *[]){AT(window, in_array.ref), whole, value});
    if (given != NULL)
        handle = note(pipeline, form, given, 0, Py_None, zero);
    int is_done = handle != NULL;
    Py_XDECREF(handle);
    Py_XDECREF(given);
    Py_XDECREF(window);
    Py_XDECREF(form);
    Py_XDECREF(pipeline);
    Py_XDECREF(key);
    return is_done ? Py_NewRef(Py_None) : NULL;
}
