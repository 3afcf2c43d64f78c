/* The ways of calls that are found again: of functions, and of methods. Part of core.c. */

/* `dispatch.call`. */
WAY(call)
{
    PyObject *made = GIVEN(3) ? call_again(args[0], args[1], args[2]) : NULL;
    return MADE_OR_PURE(made);
}

/* ``x[key]`` of a key that is an array, which is a call like others. */
static PyObject *chosen_by(PyObject *array, PyObject *key)
{
    PyObject *given = tuple_of(2, (PyObject *[]){array, key});
    PyObject *made = given == NULL ? NULL : call_again(s_getitem, given, no_names);
    Py_XDECREF(given);
    return made;
}

/* Keywords as Python hands them to a function, as a dictionary: a new reference, NULL with an error. */
static PyObject *named_as(PyObject *names, PyObject *const *values)
{
    if (names == NULL || !PyTuple_GET_SIZE(names))
        return Py_NewRef(no_names);
    PyObject *all = PyDict_New();
    for (Py_ssize_t i = 0; all != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(all, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            Py_CLEAR(all);
    return all;
}

/* A method that is no more than a call of `dispatch.call` under its name. */
WAY(called)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *made = NULL;
    if (is_on && count > 0 && is_plain(args[0])) {
        PyObject *given = tuple_of(count, args), *named = given == NULL ? NULL : named_as(names, args + count);
        if (named != NULL)
            made = call_again(NAME, given, named);
        Py_XDECREF(named);
        Py_XDECREF(given);
    }
    return MADE_OR_PURE(made);
}

/* ``x @ y``, of two arrays. */
WAY(matmul)
{
    PyObject *made = NULL, *given = NULL;
    if (GIVEN(2) && is_plain(args[0]) && is_plain(args[1]) && (given = tuple_of(2, args)) != NULL)
        made = call_again(NAME, given, no_names);
    Py_XDECREF(given);
    return MADE_OR_PURE(made);
}
