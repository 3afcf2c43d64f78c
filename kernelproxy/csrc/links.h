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

/* As `Link._note_wait`: 0, or -1 with an error. */
static int note_wait(PyObject *link, PyObject *asked, int has_come)
{
    PyObject *since = PyObject_GetAttr(link, s_waits_since), *now, *spinning = NULL, *waited = NULL, *done = NULL;
    int failed = -1, has_waited = since == NULL ? -1 : PyObject_IsTrue(since);
    if (has_waited >= 0 && !has_come)
        failed = has_waited ? 0 : PyObject_SetAttr(link, s_waits_since, asked);
    else if (has_waited >= 0 && (now = PyObject_CallNoArgs(monotonic)) != NULL) {
        if ((waited = PyNumber_Subtract(now, has_waited ? since : asked)) != NULL
            && (spinning = PyObject_GetAttr(link, s_spinning)) != NULL
            && (done = PyObject_CallMethodOneArg(spinning, s_note, waited)) != NULL)
            failed = has_waited ? PyObject_SetAttr(link, s_waits_since, never) : 0;
        Py_DECREF(now);
    }
    Py_XDECREF(done);
    Py_XDECREF(spinning);
    Py_XDECREF(waited);
    Py_XDECREF(since);
    return failed;
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

/* As `Link.receive` where the connection turns out to be lost. */
static void cut(PyObject *link)
{
    PyErr_Clear();
    if (PyObject_SetAttr(link, s_is_cut, Py_True) == 0)
        PyObject_SetAttr(link, s_is_torn, Py_False);
}

/* As `Link.receive`, if a message is here within moments: 1 if one is, and 0 where Python waits for one. -1 with an error, or
 * without `frames`: the connection is lost then. */
static int receive_soon(PyObject *link, PyObject **frames)
{
    PyObject *socket = PyObject_GetAttr(link, s_socket), *asked = NULL;
    PyObject *passes = socket == NULL ? NULL : PyObject_GetAttr(socket, s_passes_whole);
    int has_come = passes == NULL ? -1 : passes == Py_True;
    if (has_come > 0 && (asked = PyObject_CallNoArgs(monotonic)) == NULL)
        has_come = -1;
    if (has_come > 0) {
        if ((has_come = await_news(socket, asked, PyFloat_AsDouble(turn_seconds))) > 0)
            has_come = (*frames = taken_whole(link, socket)) != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
        if (has_come >= 0 && note_wait(link, asked, has_come) < 0) {
            Py_CLEAR(*frames);
            has_come = -1;
        }
    }
    if (has_come < 0 && PyErr_ExceptionMatches(ConnectionLost))
        cut(link);
    Py_XDECREF(asked);
    Py_XDECREF(passes);
    Py_XDECREF(socket);
    return has_come;
}

/* As `Connection.receive`, if a message is here within moments: 1 if one is, 0 where Python receives, -1 with an error, or
 * without one if the connection is lost. `message` and `buffers` are new references. */
static int hear_soon(PyObject *connection, PyObject **message, PyObject **buffers)
{
    PyObject *before = PyObject_GetAttr(connection, s_put_back), *frames = NULL;
    PyObject *link = before == NULL ? NULL : PyObject_GetAttr(connection, s_link);
    int has_come = link == NULL ? -1 : before == Py_None && IS(link, Link) ? receive_soon(link, &frames) : 0;
    Py_XDECREF(link);
    Py_XDECREF(before);
    if (has_come <= 0)
        return has_come;
    PyObject *told = PyObject_CallOneArg(decode, frames);
    *message = IS(told, Refused) ? PyObject_CallMethodOneArg(connection, s_fit, told) : Py_XNewRef(told);
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
