/* Calls that are found again, as `repeats.known_by` and `dispatch.call`. Part of core.c. */

/* As `repeats`. */
enum { MOST_ITEMS = 32, MOST_PARTS = 128, MOST_LETTERS = 128 };

/* What a call is known by so far, and whose arrays it is given: references of our own. */
typedef struct { PyObject *parts[MOST_PARTS], *client, *rows; Py_ssize_t count; int is_any_float; } Known;

/* Each of these returns 1, 0 if Python shall look, and -1 with an error. */

static int know(Known *known, PyObject *one)
{
    if (known->count == MOST_PARTS)
        return 0;
    known->parts[known->count++] = Py_NewRef(one);
    return 1;
}

/* A value, beside its type: 1, 1.0 and True are equal. */
static int know_value(Known *known, PyObject *value, PyObject *as)
{
    int done = know(known, (PyObject *)Py_TYPE(value));
    return done > 0 ? know(known, as) : done;
}

static int note_value(Known *known, PyObject *value, PyObject **sent_as);

/* Note what a sequence's items are known by; they travel as a tuple. */
static int note_items(Known *known, PyObject *const *items, Py_ssize_t count, PyObject **sent_as)
{
    int done = 1;
    if ((*sent_as = PyTuple_New(count)) == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < count && done > 0; i++) {
        PyObject *one = NULL;
        done = note_value(known, items[i], &one);
        PyTuple_SET_ITEM(*sent_as, i, one);
    }
    return done;
}

static int note_sequence(Known *known, PyObject *value, PyObject **sent_as)
{
    if (PySequence_Fast_GET_SIZE(value) > MOST_ITEMS)
        return 0;
    int was_any_float = known->is_any_float;
    PyObject *all = PySequence_Tuple(value), *inner = NULL; /* a list may change in another thread meanwhile */
    PyObject *number = all == NULL ? NULL : PyLong_FromSsize_t(PyTuple_GET_SIZE(all));
    int done = number == NULL ? -1 : know_value(known, value, number);
    Py_XDECREF(number);
    known->is_any_float = 0;
    if (done > 0)
        done = note_items(known, ((PyTupleObject *)all)->ob_item, PyTuple_GET_SIZE(all), &inner);
    if (done > 0) {
        *sent_as = PyObject_CallOneArg(PyTuple_CheckExact(value) ? Tuple : List, inner);
        done = *sent_as == NULL ? -1 : 1;
    }
    known->is_any_float = was_any_float;
    Py_XDECREF(inner);
    Py_XDECREF(all);
    return done;
}

static int note_scalar(Known *known, PyObject *value, PyObject **sent_as)
{
    *sent_as = PyObject_CallOneArg(sent_number, value);
    PyObject *data = *sent_as == NULL ? NULL : PyObject_GetAttr(*sent_as, s_data);
    int done = data == NULL ? -1 : know_value(known, value, data);
    Py_XDECREF(data);
    return done;
}

static int note_dtype(Known *known, PyObject *value, PyObject **sent_as)
{
    int may_be = Py_IS_TYPE(value, &PyType_Type) ? 1 : PySet_Contains(dtype_kinds, (PyObject *)Py_TYPE(value));
    PyObject *named = may_be > 0 ? PyDict_GetItemWithError(dtypes, value) : NULL;
    if (named == NULL)
        return PyErr_Occurred() ? -1 : 0;
    *sent_as = Py_NewRef(named);
    return know_value(known, value, value);
}

/* An array of the class itself, of the client of the others. */
static int note_array(Known *known, PyObject *array, PyObject **sent_as)
{
    PyObject *client = AT(array, in_array.client);
    if (known->client != NULL && known->client != client)
        return 0;
    int done = note_rows(array, &known->rows);
    PyObject *as = known_as(AT(array, in_array.layout));
    if (done <= 0 || !(IS(as, Layout) || IS(as, SomeRows)))
        return done < 0 ? -1 : 0;
    if (known->client == NULL)
        known->client = Py_NewRef(client);
    *sent_as = Py_NewRef(AT(array, in_array.ref));
    return know(known, as);
}

/* What draws random numbers, of the client of the others: known by its class. */
static int note_generator(Known *known, PyObject *value, PyObject **sent_as)
{
    PyObject *client = PyObject_GetAttr(value, s_client);
    if (client == NULL)
        return -1;
    int done = client != Py_None && (known->client == NULL || known->client == client);
    if (done && known->client == NULL)
        known->client = Py_NewRef(client);
    Py_DECREF(client);
    if (!done)
        return 0;
    *sent_as = PyObject_CallMethodNoArgs(value, s_wire_value);
    return *sent_as == NULL ? -1 : know(known, (PyObject *)Py_TYPE(value));
}

/* What something is known of, of the client of the others: known by that, and by its class. */
static int note_described(Known *known, PyObject *value, PyObject **sent_as)
{
    PyObject *about = PyObject_GetAttr(value, s_about), *held = about == NULL ? NULL : PyObject_GetAttr(value, s_functions);
    int done = held == NULL ? -1 : IS(about, SparseLayout) && PyTuple_CheckExact(held) && !PyTuple_GET_SIZE(held);
    PyObject *shape = done > 0 ? PyObject_GetAttr(about, s_shape) : NULL;
    PyObject *dtype = shape == NULL ? NULL : PyObject_GetAttr(about, s_dtype);
    if (done > 0)
        done = dtype == NULL ? -1 : know(known, shape) > 0 && know(known, dtype) > 0;
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    Py_XDECREF(held);
    Py_XDECREF(about);
    return done > 0 ? note_generator(known, value, sent_as) : done;
}

/* Whether a value travels as it is. */
static int is_sent_so(PyObject *value)
{
    if (PyLong_CheckExact(value)) {
        int over = 0;
        PyLong_AsLongLongAndOverflow(value, &over);
        return !over;
    }
    return PyFloat_CheckExact(value) || PyBool_Check(value) || value == Py_None
        || (PyUnicode_CheckExact(value) && PyUnicode_GET_LENGTH(value) <= MOST_LETTERS);
}

/* Whether any such float would do as well. */
static int is_any_float(PyObject *value)
{
    return PyFloat_CheckExact(value) && fabs(PyFloat_AS_DOUBLE(value)) <= PyFloat_AS_DOUBLE(most_float);
}

/* As `_noted`, of one value: what it is known by goes to `known`, how it travels to `sent_as`. */
static int note_value(Known *known, PyObject *value, PyObject **sent_as)
{
    if (is_plain(value))
        return note_array(known, value, sent_as);
    if (is_sent_so(value)) {
        *sent_as = Py_NewRef(value);
        return know_value(known, value, known->is_any_float && is_any_float(value) ? Py_None : value);
    }
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value))
        return note_sequence(known, value, sent_as);
    int found = is_scalar(value);
    if (found)
        return found > 0 ? note_scalar(known, value, sent_as) : -1;
    found = PySet_Contains(generators, (PyObject *)Py_TYPE(value));
    if (found)
        return found > 0 ? note_generator(known, value, sent_as) : -1;
    found = PySet_Contains(described, (PyObject *)Py_TYPE(value));
    if (found)
        return found > 0 ? note_described(known, value, sent_as) : -1;
    return note_dtype(known, value, sent_as);
}

/* Keywords, in their order: first the names, untagged, and then what they are given. */
static int note_keywords(Known *known, PyObject *kwargs, PyObject **sent_as)
{
    PyObject *name, *value;
    Py_ssize_t place = 0;
    int done = 1;
    if (!PyDict_GET_SIZE(kwargs)) {
        *sent_as = Py_NewRef(Py_None);
        return 1;
    }
    if ((*sent_as = PyDict_New()) == NULL)
        return -1;
    while (done > 0 && PyDict_Next(kwargs, &place, &name, &value))
        done = know(known, name);
    place = 0;
    while (done > 0 && PyDict_Next(kwargs, &place, &name, &value)) {
        PyObject *one = NULL;
        done = note_value(known, value, &one);
        if (done > 0 && PyDict_SetItem(*sent_as, name, one) < 0)
            done = -1;
        Py_XDECREF(one);
    }
    return done;
}

/* As `known_by`: the key, and how the arguments travel. */
static int know_call(
    Known *known, PyObject *name, PyObject *args, PyObject *kwargs, PyObject **key, PyObject **items, PyObject **named)
{
    int done = know(known, zero) > 0 ? know(known, name) : 0;
    PyObject *most = PyDict_GetItemWithError(any_float, name);
    known->is_any_float = most != NULL && !PyDict_GET_SIZE(kwargs) && PyTuple_GET_SIZE(args) <= PyLong_AsSsize_t(most);
    if (done > 0)
        done = note_items(known, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args), items);
    if (done > 0)
        done = note_keywords(known, kwargs, named);
    if (done > 0 && name == method) {
        PyObject *of = PyTuple_GET_SIZE(*items) ? handle_in(PyTuple_GET_ITEM(*items, 0)) : NULL;
        done = know(known, of == NULL ? Py_None : of);
    }
    if (done > 0 && known->client == NULL && (known->client = PyObject_CallNoArgs(current)) == NULL)
        done = -1;
    if (done > 0 && (*key = PyTuple_New(known->count)) == NULL)
        done = -1;
    for (Py_ssize_t i = 0; i < known->count; i++)
        if (done > 0)
            PyTuple_SET_ITEM(*key, i, known->parts[i]);
        else
            Py_DECREF(known->parts[i]);
    return done;
}

/* The argument `of` by its place or name, if it is a plain array. Borrowed; NULL if Python shall look. */
static PyObject *argument(PyObject *of, PyObject *args, PyObject *kwargs)
{
    PyObject *array = NULL;
    if (PyUnicode_Check(of))
        array = PyDict_GetItemWithError(kwargs, of);
    else if (PyLong_CheckExact(of) && PyLong_AsSsize_t(of) < PyTuple_GET_SIZE(args) && PyLong_AsSsize_t(of) >= 0)
        array = PyTuple_GET_ITEM(args, PyLong_AsSsize_t(of));
    return array != NULL && is_plain(array) ? array : NULL;
}

/* Return an array of `kind`, or a tuple of several, that an op has made under `handle` and the next ones. */
static PyObject *all_later(
    PyObject *client, PyObject *pipeline, PyObject *several, PyObject *handle, PyObject *kind, PyObject *rows)
{
    if (several == Py_None)
        return fresh_later(client, pipeline, handle, kind, rows);
    Py_ssize_t count = PyLong_AsSsize_t(several);
    PyObject *made = count < 0 ? NULL : PyTuple_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *place = PyLong_FromSsize_t(i), *of = place == NULL ? NULL : PyNumber_Add(handle, place);
        PyObject *one = of == NULL ? NULL : fresh_later(client, pipeline, of, kind, rows);
        Py_XDECREF(place);
        Py_XDECREF(of);
        if (one == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, one);
    }
    return made;
}

/* As `made_again`, of what has as many rows as `rows` says, or as a mask among `args` chooses.
 *
 * NULL without an error if Python shall do it. */
static PyObject *give_later(
    PyObject *client, PyObject *pipeline, PyObject *form, PyObject *rows, PyObject *args, PyObject *items, PyObject *named)
{
    PyObject *gives = AT(form, in_form.gives), *kind = AT(form, in_form.rows), *mask = NULL, *said = NULL, *made = NULL;
    int is_as_many = PyTuple_GET_ITEM(gives, LATER_AS_MANY_AS) != Py_None;
    if (!is_as_many)
        mask = argument(PyTuple_GET_ITEM(gives, LATER_CHOSEN_BY), args, no_names);
    if (!IS(kind, SomeRows) || (is_as_many ? rows == NULL : mask == NULL))
        return NULL;
    if (is_in_one_stream(client) <= 0 || is_sure(pipeline, AT(kind, in_some_rows.most_bytes)) <= 0)
        return NULL;
    if (!is_as_many && (said = expect(pipeline, mask)) == NULL)
        return NULL;
    PyObject *handle = note(pipeline, form, items, 0, named, zero);
    if (handle != NULL) {
        rows = is_as_many ? Py_NewRef(rows) : rows_chosen(pipeline, mask, said);
        if (rows != NULL)
            made = all_later(client, pipeline, PyTuple_GET_ITEM(gives, LATER_SEVERAL), handle, kind, rows);
        Py_XDECREF(rows);
        Py_DECREF(handle);
    }
    Py_XDECREF(said);
    return made;
}

/* Record an op by its form: the array that it makes, or `of` that it gives back, or None. A new reference, NULL with an error. */
static PyObject *record(PyObject *client, PyObject *pipeline, PyObject *form, PyObject *items, PyObject *named, PyObject *of)
{
    PyObject *layout = AT(form, in_form.made), *made = NULL, *handle = note(pipeline, form, items, 0, named, zero);
    if (handle != NULL)
        made = layout != Py_None ? fresh(client, pipeline, layout, handle) : Py_NewRef(of != NULL ? of : Py_None);
    Py_XDECREF(handle);
    return made;
}

/* Record a call, or show what it shows, once its form is known. NULL without an error if Python shall do it. */
static PyObject *give(
    PyObject *client, PyObject *key, PyObject *rows, PyObject *args, PyObject *kwargs, PyObject *items, PyObject *named)
{
    PyObject *pipeline, *form, *made = NULL;
    int found = find_remembered(client, key, &pipeline, &form);
    PyObject *gives = found > 0 ? AT(form, in_form.gives) : NULL, *layout = found > 0 ? AT(form, in_form.made) : NULL;
    PyObject *of = NULL; /* the argument that the result is made of */
    if (gives == NULL || layout == NULL || !IS(AT(pipeline, in_recorder.forms), Forms)) /* Python's look for themselves */
        found = 0;
    else if (IS(gives, Later)) {
        made = give_later(client, pipeline, form, rows, args, items, named);
        found = 0;
    } else if (gives != Py_None) {
        int is_window = IS(gives, Window), is_known = is_window || IS(gives, Returned);
        of = is_known ? argument(PyTuple_GET_ITEM(gives, is_window ? 2 : 0), args, kwargs) : NULL;
        if (of != NULL && is_window)
            made = window_on(of, PyTuple_GET_ITEM(gives, 0), PyTuple_GET_ITEM(gives, 1));
        found = of != NULL && !is_window;
    }
    if (found > 0 && made == NULL && (layout == Py_None || IS(layout, Layout))) {
        found = is_in_one_stream(client);
        if (found > 0 && layout != Py_None)
            found = is_sure(pipeline, AT(layout, in_layout.held_bytes));
        if (found > 0)
            made = record(client, pipeline, form, items, named, of);
    }
    Py_XDECREF(form);
    Py_XDECREF(pipeline);
    return made;
}

/* Whether what a client has chosen decides what becomes of the call, as `dispatch.call` looks; -1 with an error. */
static int is_doubtful(PyObject *client, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (text == NULL || (strstr(text, ".linalg.") == NULL && strstr(text, ".lapack.") == NULL))
        return text == NULL ? -1 : 0;
    PyObject *doubt = PyObject_CallFunctionObjArgs(doubted, client, name, NULL);
    Py_XDECREF(doubt);
    return doubt == NULL ? -1 : doubt != Py_None;
}

/* As `dispatch.call`, of a call that has been recorded before. NULL without an error if Python shall do it. */
static PyObject *call_again(PyObject *name, PyObject *args, PyObject *kwargs)
{
    Known known = {.client = NULL, .rows = NULL, .count = 0, .is_any_float = 0};
    PyObject *key = NULL, *items = NULL, *named = NULL, *made = NULL;
    if (!PyUnicode_CheckExact(name) || !PyTuple_CheckExact(args) || !PyDict_CheckExact(kwargs))
        return NULL;
    if (know_call(&known, name, args, kwargs, &key, &items, &named) > 0 && is_doubtful(known.client, name) == 0)
        made = give(known.client, key, known.rows, args, kwargs, items, named);
    Py_XDECREF(key);
    Py_XDECREF(items);
    Py_XDECREF(named);
    Py_XDECREF(known.client);
    Py_XDECREF(known.rows);
    return made;
}
