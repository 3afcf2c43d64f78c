/* What is sent at once, as it mostly is: one batch, with nothing in its way. Part of core.c. */

static int is_less(PyObject *first, PyObject *second)
{
    return first == NULL || second == NULL ? -1 : PyObject_RichCompareBool(first, second, Py_LT);
}

/* Add to a count that lies at a slot: 0, or -1 with an error. */
static int count(PyObject *object, Py_ssize_t place, Py_ssize_t more)
{
    PyObject *before = at(object, place), *number = PyLong_FromSsize_t(more);
    PyObject *after = before == NULL || number == NULL ? NULL : PyNumber_Add(before, number);
    if (after != NULL)
        put(object, place, after);
    Py_XDECREF(after);
    Py_XDECREF(number);
    Py_XDECREF(before);
    return after == NULL ? -1 : 0;
}

/* Add to a count by its name: 0, or -1 with an error. */
static int count_named(PyObject *object, PyObject *name, PyObject *more)
{
    PyObject *before = PyObject_GetAttr(object, name), *after = before == NULL ? NULL : PyNumber_Add(before, more);
    int failed = after == NULL ? -1 : PyObject_SetAttr(object, name, after);
    Py_XDECREF(after);
    Py_XDECREF(before);
    return failed;
}

/* Set a slot to what is made for it and given away: 0, or -1 with an error. */
static int fill(PyObject *object, Py_ssize_t place, PyObject *made)
{
    AT(object, place) = made;
    return made == NULL ? -1 : 0;
}

/* As `OpenBatch.successor`. A new reference. */
static PyObject *successor_of(PyObject *batch)
{
    PyTypeObject *type = (PyTypeObject *)OpenBatch;
    Py_ssize_t first = PyLong_AsSsize_t(AT(batch, in_batch.first)) + PyList_GET_SIZE(AT(batch, in_batch.ops));
    PyObject *fresh = type->tp_alloc(type, 0);
    if (fresh == NULL)
        return NULL;
    const Py_ssize_t none[] = {in_batch.bytes, in_batch.kept_bytes, in_batch.size};
    const Py_ssize_t no_time[] = {in_batch.seconds, in_batch.sent_at};
    const Py_ssize_t lists[] = {in_batch.costs, in_batch.frames, in_batch.ops, in_batch.sites};
    int failed = fill(fresh, in_batch.made, Py_NewRef(Py_None));
    for (int i = 0; i < 3; i++)
        failed |= fill(fresh, none[i], Py_NewRef(zero));
    for (int i = 0; i < 4; i++)
        failed |= fill(fresh, lists[i], PyList_New(0));
    for (int i = 0; i < 2; i++)
        failed |= fill(fresh, no_time[i], Py_NewRef(never));
    failed |= fill(fresh, in_batch.first, PyLong_FromSsize_t(first))
        | fill(fresh, in_batch.last, PyLong_FromSsize_t(first - 1));
    if (failed)
        Py_CLEAR(fresh);
    return fresh;
}

/* --- what may be in the way --------------------------------------------------------------------------------------- */

/* As `Connection.is_sound`: 1 or 0, -1 with an error. */
static int is_sound(PyObject *connection)
{
    int is_own = IS(connection, Connection);
    PyObject *is_closed = PyObject_GetAttr(connection, is_own ? s_is_closed : s_is_sound), *link, *is_torn = NULL;
    int is_so = is_closed == NULL ? -1 : is_own ? is_closed == Py_False : is_closed == Py_True;
    Py_XDECREF(is_closed);
    if (is_own && is_so > 0) {
        link = PyObject_GetAttr(connection, s_link);
        is_torn = link == NULL ? NULL : PyObject_GetAttr(link, s_is_torn);
        is_so = is_torn == NULL ? -1 : is_torn == Py_False;
        Py_XDECREF(is_torn);
        Py_XDECREF(link);
    }
    return is_so;
}

/* 1 if the connection is sound, and nothing is cancelled that the executor was not told; 0 if not, -1 with an error. */
static int is_plain_way(PyObject *self, PyObject *connection)
{
    PyObject *end = PyObject_GetAttr(self, s_end), *told = end == NULL ? NULL : PyObject_GetAttr(self, s_cancel_told);
    PyObject *through = told == NULL ? NULL : PyObject_GetAttr(self, s_cancelled_through);
    int is_plain = through == NULL ? -1 : end == Py_None;
    if (is_plain > 0)
        is_plain = is_sound(connection);
    if (is_plain > 0 && (is_plain = is_less(told, through)) >= 0)
        is_plain = !is_plain;
    Py_XDECREF(through);
    Py_XDECREF(told);
    Py_XDECREF(end);
    return is_plain;
}

/* 1 if nothing that was recorded is still to be sent, 0 if something is, -1 with an error. */
static int is_all_sent(PyObject *self)
{
    PyObject *journal = PyObject_GetAttr(self, s_journal);
    PyObject *marks = journal == NULL ? NULL : PyObject_GetAttr(journal, s_marks);
    PyObject *cursor = marks == NULL ? NULL : PyObject_GetAttr(journal, s_cursor);
    PyObject *recorded = cursor == NULL ? NULL : PyObject_GetAttr(marks, s_recorded);
    int is_behind = is_less(cursor, recorded);
    Py_XDECREF(recorded);
    Py_XDECREF(cursor);
    Py_XDECREF(marks);
    Py_XDECREF(journal);
    return is_behind < 0 ? -1 : !is_behind;
}

/* How many ops are sent and not carried out; -1 with an error. */
static Py_ssize_t in_flight_of(PyObject *credit)
{
    PyObject *marks = at(credit, in_credit.marks), *sent = marks == NULL ? NULL : at(credit, in_credit.sent);
    PyObject *applied = sent == NULL ? NULL : PyObject_GetAttr(marks, s_applied);
    Py_ssize_t in_flight = applied == NULL ? -1 : PyLong_AsSsize_t(sent) - PyLong_AsSsize_t(applied);
    Py_XDECREF(applied);
    Py_XDECREF(sent);
    Py_XDECREF(marks);
    return PyErr_Occurred() ? -1 : in_flight < 0 ? 0 : in_flight;
}

/* As `Credit.has_room` of a batch without buffers: 1 or 0, -1 with an error. */
static int has_room(PyObject *connection, Py_ssize_t in_flight, Py_ssize_t ops)
{
    PyObject *welcome = PyObject_GetAttr(connection, s_welcome);
    PyObject *granted = welcome == NULL ? NULL : PyObject_GetAttr(welcome, s_credit_ops);
    Py_ssize_t most = granted == NULL ? -1 : PyLong_AsSsize_t(granted);
    Py_XDECREF(granted);
    Py_XDECREF(welcome);
    return PyErr_Occurred() ? -1 : in_flight <= most - ops;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

/* As `Link.send` of a message in one frame: 1 if it was taken, 0 if not, -1 with an error. */
static int send_frame(PyObject *link, PyObject *frames)
{
    PyObject *socket = PyObject_GetAttr(link, s_socket), *taken;
    if (socket == NULL || PyObject_SetAttr(link, s_is_torn, Py_True) < 0) {
        Py_XDECREF(socket);
        return -1;
    }
    taken = PyObject_CallMethodOneArg(socket, s_send, frames);
    Py_DECREF(socket);
    if (taken == NULL && PyErr_ExceptionMatches(ConnectionLost)) { /* it is sent again after the next greeting */
        PyErr_Clear();
        taken = PyObject_SetAttr(link, s_is_cut, Py_True) < 0 ? NULL : Py_NewRef(Py_True);
    }
    int is_taken = taken == NULL ? -1 : PyObject_IsTrue(taken);
    Py_XDECREF(taken);
    return is_taken >= 0 && PyObject_SetAttr(link, s_is_torn, Py_False) < 0 ? -1 : is_taken;
}

/* Whether what was raised says that a message cannot be put into bytes. */
static int is_unfit(void)
{
    return PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_OverflowError)
        || PyErr_ExceptionMatches(PyExc_TypeError);
}

/* As `Connection.send` of the message of a batch: 1 if it was taken, 0 if not, -1 with an error. `size` is the message's,
 * a new reference. Of a message that cannot be put into bytes, or is too long, Python hears when it tries again. */
static int hand_over(PyObject *connection, PyObject *inbox, PyObject *batch, PyObject **size)
{
    PyObject *ops = PyList_AsTuple(AT(batch, in_batch.ops)), *link = NULL, *frames = NULL;
    PyObject *received = ops == NULL ? NULL : at(inbox, in_inbox.received);
    PyObject *given[] = {AT(batch, in_batch.first), received, ops};
    PyObject *message = received == NULL ? NULL : PyObject_Vectorcall(Batch, given, 3, NULL);
    Py_ssize_t length = -1;
    int is_taken = -1;
    if (message == NULL || (link = PyObject_GetAttr(connection, s_link)) == NULL)
        goto end;
    if ((frames = PyObject_CallOneArg(encode, message)) == NULL) {
        is_taken = is_unfit() ? 0 : -1;
        if (is_taken == 0)
            PyErr_Clear();
        goto end;
    }
    if ((length = PyObject_Size(PyList_GET_ITEM(frames, 0))) < 0)
        goto end;
    is_taken = IS(link, Link) && length <= PyLong_AsSsize_t(most_header_bytes) ? send_frame(link, frames) : 0;
    if (is_taken > 0
        && ((*size = PyLong_FromSsize_t(length)) == NULL || count_named(connection, s_bytes_sent, *size) < 0))
        is_taken = -1;
end:
    Py_XDECREF(frames);
    Py_XDECREF(link);
    Py_XDECREF(message);
    Py_XDECREF(received);
    Py_XDECREF(ops);
    return is_taken;
}

/* Take note of a batch without buffers that was sent, as `Credit.note_sent`: 0, or -1 with an error. */
static int lend_credit(PyObject *credit, PyObject *batch)
{
    PyObject *messages = AT(credit, in_credit.messages), *last = AT(batch, in_batch.last), *done;
    Py_ssize_t before = messages == NULL ? -1 : PyObject_Size(messages);
    if (before == 0) {
        int is_further = is_less(AT(credit, in_credit.sent), last);
        if (is_further > 0)
            put(credit, in_credit.sent, last);
        return is_further < 0 ? -1 : 0;
    }
    done = before < 0 ? NULL : PyObject_CallMethodOneArg(credit, s_note_sent, batch);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Take note of a batch in a message of that size, as `Pipeline._send_sealed` does behind it: 0, or -1 with an error. */
static int note_sent(PyObject *self, PyObject *journal, PyObject *credit, PyObject *inbox, PyObject *batch, PyObject *size)
{
    PyObject *ahead = PyObject_GetAttr(self, s_ahead), *counters = ahead == NULL ? NULL : PyObject_GetAttr(self, s_counters);
    PyObject *ops = PyLong_FromSsize_t(PyList_GET_SIZE(AT(batch, in_batch.ops))), *done = NULL;
    int failed = counters == NULL || ops == NULL ? -1 : 0;
    if (!failed && (done = PyObject_CallMethodOneArg(ahead, s_note_sent, batch)) == NULL)
        failed = -1;
    if (!failed && (failed = lend_credit(credit, batch)) == 0)
        Py_SETREF(done, PyObject_CallMethodObjArgs(journal, s_note_sent, batch, size, NULL));
    if (!failed && done != NULL) {
        put(inbox, in_inbox.untold_reads, zero);
        put(inbox, in_inbox.untold_bytes, zero);
        failed = count_named(counters, s_ops, ops) < 0 || count_named(counters, s_batches, one) < 0 ? -1 : 0;
    }
    if (done == NULL)
        failed = -1;
    Py_XDECREF(done);
    Py_XDECREF(ops);
    Py_XDECREF(counters);
    Py_XDECREF(ahead);
    return failed;
}

/* 1 if `batch` is the only one to be sent, and may be; 0 if not, -1 with an error. */
static int is_next(PyObject *self, PyObject *journal, PyObject *connection, PyObject *batch, Py_ssize_t in_flight)
{
    PyObject *bytes = AT(batch, in_batch.bytes), *frames = AT(batch, in_batch.frames), *next;
    if (in_flight < 0)
        return -1;
    if (frames == NULL || !PyList_CheckExact(frames) || PyList_GET_SIZE(frames) || bytes == NULL
        || !PyLong_CheckExact(bytes) || PyLong_AsSsize_t(bytes)) /* contents have a bound of their own */
        return PyErr_Occurred() ? -1 : 0;
    int is_plain = is_plain_way(self, connection);
    if (is_plain > 0)
        is_plain = has_room(connection, in_flight, PyList_GET_SIZE(AT(batch, in_batch.ops)));
    if (is_plain <= 0)
        return is_plain;
    next = PyObject_CallMethodNoArgs(journal, s_next_unsent);
    Py_XDECREF(next);
    return next == NULL ? -1 : next == batch;
}

/* 1 if there is time for a batch beside what is under way, or its last op is waited for; 0 if not, -1 with an error. */
static int has_time(PyObject *self, PyObject *batch)
{
    PyObject *ops = AT(batch, in_batch.ops), *ahead, *room;
    PyObject *last = PyList_GET_SIZE(ops) ? PyList_GET_ITEM(ops, PyList_GET_SIZE(ops) - 1) : NULL;
    if (!IS(last, Op))
        return 0;
    if (AT(last, in_op.want) != nothing)
        return 1;
    ahead = PyObject_GetAttr(self, s_ahead);
    room = ahead == NULL ? NULL : PyObject_CallMethodOneArg(ahead, s_has_room, batch);
    int has = room == NULL ? -1 : room == Py_True;
    Py_XDECREF(room);
    Py_XDECREF(ahead);
    return has;
}

/* Send the batch that was just sealed, as `Pipeline._send_sealed`: 1 if it was sent, 0 where Python sends, -1 with an
 * error. The caller holds the connection. */
static int send_now(PyObject *self, PyObject *inbox, PyObject *batch)
{
    PyObject *journal = PyObject_GetAttr(self, s_journal), *connection = PyObject_GetAttr(self, s_connection);
    PyObject *credit = PyObject_GetAttr(self, s_credit), *size = NULL, *done;
    int is_sent = journal == NULL || connection == NULL || credit == NULL ? -1 : 0;
    if (is_sent == 0 && IS(connection, Connection) && IS(credit, Credit)) {
        Py_ssize_t in_flight = in_flight_of(credit);
        is_sent = is_next(self, journal, connection, batch, in_flight);
        if (is_sent > 0)
            is_sent = has_time(self, batch);
        if (is_sent > 0) {
            done = PyObject_CallMethodOneArg(journal, s_note_sending, batch);
            is_sent = done == NULL ? -1 : hand_over(connection, inbox, batch, &size);
            Py_XDECREF(done);
        }
        if (is_sent > 0 && in_flight == 0) {
            if ((done = PyObject_CallNoArgs(monotonic)) == NULL)
                is_sent = -1;
            else
                put(inbox, in_inbox.moved_at, done);
            Py_XDECREF(done);
        }
        if (is_sent > 0 && note_sent(self, journal, credit, inbox, batch, size) < 0)
            is_sent = -1;
    }
    Py_XDECREF(size);
    Py_XDECREF(credit);
    Py_XDECREF(connection);
    Py_XDECREF(journal);
    return is_sent;
}
