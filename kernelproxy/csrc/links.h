/* What comes by a link within moments, as most answers do. Part of core.c. */

/* 1 if the socket has news, 0 if not, -1 with an error; it is looked `until` then without sleeping. */
static int has_news(PyObject *socket, PyObject *until)
{
    PyObject *found = PyObject_CallMethodOneArg(socket, s_spin, until);
    int has = found == NULL ? -1 : PyObject_IsTrue(found);
    Py_XDECREF(found);
    return has;
}

/* As the beginning of `Link._soon`, since `asked`: 1 if there are news, 0 if not, -1 with an error. */
static int await_news(PyObject *socket, PyObject *asked, double most_seconds)
{
    double most = PyFloat_AsDouble(yield_seconds);
    int has = has_news(socket, never);
    if (has)
        return has;
    Py_BEGIN_ALLOW_THREADS
    sched_yield(); /* who answers may want this processor */
    Py_END_ALLOW_THREADS
    PyObject *until = PyFloat_FromDouble(PyFloat_AsDouble(asked) + (most_seconds < most ? most_seconds : most));
    has = until == NULL ? -1 : has_news(socket, until);
    Py_XDECREF(until);
    return has;
}

/* As `Link._note_wait` of what has come: 0, or -1 with an error. */
static int note_wait(PyObject *link, PyObject *asked)
{
    PyObject *since = PyObject_GetAttr(link, s_waits_since), *now = since == NULL ? NULL : PyObject_CallNoArgs(monotonic);
    PyObject *spinning = now == NULL ? NULL : PyObject_GetAttr(link, s_spinning), *waited = NULL, *done = NULL;
    int has_waited = spinning == NULL ? -1 : PyObject_IsTrue(since);
    if (has_waited >= 0 && (waited = PyNumber_Subtract(now, has_waited ? since : asked)) != NULL)
        done = PyObject_CallMethodOneArg(spinning, s_note, waited);
    if (done != NULL && has_waited && PyObject_SetAttr(link, s_waits_since, never) < 0)
        Py_CLEAR(done);
    Py_XDECREF(waited);
    Py_XDECREF(spinning);
    Py_XDECREF(now);
    Py_XDECREF(since);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Take a message that lies in the ring whole. NULL without an error where it does not, and nothing was taken. */
static PyObject *taken_whole(PyObject *link, PyObject *socket)
{
    if (PyObject_SetAttr(link, s_is_torn, Py_True) < 0)
        return NULL;
    PyObject *message = PyObject_CallMethodNoArgs(socket, s_take_whole);
    if (message == Py_None) {
        Py_DECREF(message);
        return PyObject_SetAttr(link, s_is_torn, Py_False), NULL;
    }
    return message;
}

/* As `Link.receive` if the message is here within moments. NULL without an error where Python receives. */
static PyObject *soon(PyObject *link, PyObject *timeout)
{
    double most_seconds = PyFloat_CheckExact(timeout) ? PyFloat_AS_DOUBLE(timeout) : 0;
    PyObject *socket = most_seconds > 0 ? PyObject_GetAttr(link, s_socket) : NULL, *asked = NULL, *message = NULL;
    PyObject *passes = socket == NULL ? NULL : PyObject_GetAttr(socket, s_passes_whole);
    if (passes == Py_True && (asked = PyObject_CallNoArgs(monotonic)) != NULL) {
        if (await_news(socket, asked, most_seconds) > 0)
            message = taken_whole(link, socket);
        if (message != NULL && note_wait(link, asked) < 0)
            Py_CLEAR(message);
        if (PyErr_Occurred() && PyErr_ExceptionMatches(ConnectionLost)) { /* Python finds it lost as well */
            PyErr_Clear();
            PyObject_SetAttr(link, s_is_torn, Py_False);
        }
    }
    Py_XDECREF(asked);
    Py_XDECREF(passes);
    Py_XDECREF(socket);
    return message;
}

/* As `Connection.receive` if a message is here within moments: 1 if one is, 0 where Python receives, -1 with an error.
 * `message` and `buffers` are new references. */
static int hear_soon(PyObject *connection, PyObject **message, PyObject **buffers)
{
    PyObject *before = PyObject_GetAttr(connection, s_put_back), *frames = NULL;
    PyObject *link = before == NULL ? NULL : PyObject_GetAttr(connection, s_link);
    if (before == Py_None && IS(link, Link))
        frames = soon(link, turn_seconds);
    Py_XDECREF(link);
    Py_XDECREF(before);
    if (frames == NULL)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *told = PyObject_CallOneArg(decode, frames);
    *message = told == NULL || IS(told, Reply) ? Py_XNewRef(told) : PyObject_CallMethodOneArg(connection, s_fit, told);
    *buffers = *message == NULL ? NULL : PyList_GetSlice(frames, 1, PyList_GET_SIZE(frames));
    Py_XDECREF(told);
    Py_DECREF(frames);
    return *buffers == NULL ? -1 : 1;
}

/* Note that the last message is safe, as `Connection.settle`. None, a new reference, or NULL with an error. */
static PyObject *settled(PyObject *connection)
{
    if (!IS(connection, Connection))
        return PyObject_CallMethodNoArgs(connection, s_settle);
    PyObject *link = PyObject_GetAttr(connection, s_link);
    int failed = link == NULL ? -1 : PyObject_SetAttr(link, s_is_torn, Py_False);
    Py_XDECREF(link);
    return failed ? NULL : Py_NewRef(Py_None);
}
