/* What is recorded goes to the executor while nobody waits for it. Part of core.c; `sending.h` sends. */

/* 1 if nothing is there to be read, as mostly behind a message that was just sent; 0 where Python looks, -1 with an error. */
static int is_quiet(PyObject *connection)
{
    PyObject *before = IS(connection, Connection) ? PyObject_GetAttr(connection, s_put_back) : NULL;
    PyObject *link = before == Py_None ? PyObject_GetAttr(connection, s_link) : NULL;
    PyObject *socket = IS(link, Link) ? PyObject_GetAttr(link, s_socket) : NULL;
    PyObject *passes = socket == NULL ? NULL : PyObject_GetAttr(socket, s_passes_whole);
    int has = passes == Py_True ? has_news(socket, never) : PyErr_Occurred() ? -1 : 1;
    if (has < 0 && PyErr_ExceptionMatches(ConnectionLost)) {
        cut(link);
        has = PyErr_Occurred() ? -1 : 1;
    }
    Py_XDECREF(passes);
    Py_XDECREF(socket);
    Py_XDECREF(link);
    Py_XDECREF(before);
    return has < 0 ? -1 : !has;
}

/* As `Pipeline._read_all`, where the connection is held: 0, or -1 with an error. */
static int read_on(PyObject *self)
{
    PyObject *connection = PyObject_GetAttr(self, s_connection), *done;
    int is_sure = connection == NULL ? -1 : is_plain_way(self, connection);
    if (is_sure > 0)
        is_sure = is_quiet(connection);
    Py_XDECREF(connection);
    if (is_sure > 0)
        return fit_batches(self) < 0 ? -1 : 0;
    done = is_sure < 0 ? NULL : PyObject_CallMethodNoArgs(self, s_read_all);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Wait for the connection if another thread has it, and read on: 0, or -1 with an error. */
static int read_what_came(PyObject *self)
{
    PyObject *io = PyObject_GetAttr(self, s_io), *had = io == NULL ? NULL : PyObject_CallMethodNoArgs(io, s_acquire);
    int failed = had == NULL ? -1 : read_on(self);
    if (had != NULL && let_go_of(io) < 0)
        failed = -1;
    Py_XDECREF(had);
    Py_XDECREF(io);
    return failed;
}

/* Seal the open batch: 1 with it, a new reference, 0 if nothing is recorded in it, -1 with an error. */
static int seal_open(PyObject *self, PyObject **batch)
{
    PyObject *lock = at(self, in_recorder.lock);
    int is_sealed = lock == NULL || take(lock) < 0 ? -1 : 0;
    if (is_sealed == 0) {
        *batch = Py_XNewRef(AT(self, in_recorder.open_batch));
        if (is_open(*batch) && PyList_GET_SIZE(AT(*batch, in_batch.ops)))
            is_sealed = seal(self, *batch) < 0 ? -1 : 1;
        if (let_go_of(lock) < 0)
            is_sealed = -1;
    }
    Py_XDECREF(lock);
    return is_sealed;
}

/* As `Pipeline.flush`: None, or NULL without an error where Python shall do it. */
static PyObject *flush(PyObject *self)
{
    PyObject *batch = NULL, *inbox = PyObject_GetAttr(self, s_inbox);
    int is_sealed = inbox == NULL ? -1 : IS(inbox, Inbox) ? seal_open(self, &batch) : 0, is_done = is_sealed;
    if (is_sealed > 0 && (send_sealed(self, inbox, batch) < 0 || read_what_came(self) < 0))
        is_done = -1;
    Py_XDECREF(batch);
    Py_XDECREF(inbox);
    return is_done > 0 ? Py_NewRef(Py_None) : NULL;
}
