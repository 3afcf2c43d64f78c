/* The end of a trip: what the executor says is taken in, step by step as `Pipeline.answer`. Part of core.c. */

enum { SOME_READS = 16 };

/* As `Inbox._note_applied`: 0, or -1 with an error. */
static int note_applied(PyObject *inbox, PyObject *applied, PyObject *done)
{
    PyObject *journal = at(inbox, in_inbox.journal), *marks = NULL, *before = NULL, *noted = NULL, *now = NULL;
    int has_moved = -1;
    if (journal != NULL && (marks = PyObject_GetAttr(journal, s_marks)) != NULL)
        before = PyObject_GetAttr(marks, s_applied);
    if (before == NULL || (noted = PyObject_CallMethodObjArgs(journal, s_note_progress, applied, done, NULL)) == NULL)
        goto end;
    if ((has_moved = is_less(before, applied)) > 0) {
        if ((now = PyObject_CallNoArgs(monotonic)) == NULL)
            has_moved = -1;
        else
            put(inbox, in_inbox.moved_at, now);
    }
    if (has_moved >= 0) {
        PyObject *retention = at(inbox, in_inbox.retention);
        PyObject *durable = retention == NULL ? NULL
            : retention == until_done ? PyObject_GetAttr(marks, s_done) : PyObject_CallOneArg(retention, marks);
        PyObject *kept = durable == NULL ? NULL : PyObject_CallMethodOneArg(journal, s_note_durable, durable);
        if (kept == NULL)
            has_moved = -1;
        Py_XDECREF(kept);
        Py_XDECREF(durable);
        Py_XDECREF(retention);
    }
end:
    Py_XDECREF(now);
    Py_XDECREF(noted);
    Py_XDECREF(before);
    Py_XDECREF(marks);
    Py_XDECREF(journal);
    return has_moved < 0 ? -1 : 0;
}

static Py_ssize_t size_of(PyObject *buffers)
{
    Py_ssize_t sum = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(buffers); i++) {
        Py_ssize_t one = PyObject_Size(PyList_GET_ITEM(buffers, i));
        if (one < 0)
            return -1;
        sum += one;
    }
    return sum;
}

/* As `Inbox.note` of a reply that came in one part: 0, or -1 with an error. */
static int note_reply(PyObject *inbox, PyObject *reply, PyObject *buffers)
{
    PyObject *seq = Py_NewRef(AT(reply, in_reply.seq)), *done = Py_NewRef(AT(reply, in_reply.done)), *made = NULL;
    PyObject *awaited = at(inbox, in_inbox.awaited), *answers = at(inbox, in_inbox.answers);
    PyObject *received = at(inbox, in_inbox.received);
    int failed = -1, is_awaited = awaited == NULL ? -1 : PySet_Contains(awaited, seq), is_news;
    if (is_awaited < 0 || answers == NULL || received == NULL)
        goto end;
    if (is_awaited) {
        PyObject *given[] = {AT(reply, in_reply.value), buffers, AT(reply, in_reply.warnings)};
        if ((made = PyObject_Vectorcall(Answer, given, 3, NULL)) == NULL || PyObject_SetItem(answers, seq, made) < 0)
            goto end;
    }
    if ((is_news = is_less(received, seq)) < 0)
        goto end;
    if (is_news)
        put(inbox, in_inbox.received, seq);
    Py_ssize_t size = size_of(buffers);
    if (size < 0 || count(inbox, in_inbox.untold_reads, 1) < 0 || (size && count(inbox, in_inbox.untold_bytes, size) < 0))
        goto end;
    failed = note_applied(inbox, seq, done);
end:
    Py_XDECREF(made);
    Py_XDECREF(received);
    Py_XDECREF(answers);
    Py_XDECREF(awaited);
    Py_DECREF(done);
    Py_DECREF(seq);
    return failed;
}

/* Whether a reply has come in one part, and no other is under way. */
static int is_whole(PyObject *inbox, PyObject *message, PyObject *buffers)
{
    PyObject *chunks = IS(message, Reply) && PyList_CheckExact(buffers) ? AT(inbox, in_inbox.chunks) : NULL;
    return chunks != NULL && PyDict_CheckExact(chunks) && !PyDict_GET_SIZE(chunks);
}

/* As `Inbox.note`, and what `Pipeline._pump` does with a refusal: 0, or -1 with an error. */
static int take_in(PyObject *self, PyObject *inbox, PyObject *message, PyObject *buffers)
{
    if (is_whole(inbox, message, buffers))
        return note_reply(inbox, message, buffers);
    PyObject *refused = PyObject_CallMethodObjArgs(inbox, s_note, message, buffers, NULL);
    if (refused != NULL && refused != Py_None)
        Py_SETREF(refused, PyObject_CallMethodOneArg(self, s_note_refusal, refused));
    Py_XDECREF(refused);
    return refused == NULL ? -1 : 0;
}

/* Receive as the connection does: 0, or -1 with an error. There is no `message` if none came in time. */
static int receive(PyObject *connection, PyObject **message, PyObject **buffers)
{
    int has_come = IS(connection, Connection) ? hear_soon(connection, message, buffers) : 0;
    if (has_come)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *incoming = PyObject_CallMethodOneArg(connection, s_receive, turn_seconds);
    int is_read = incoming != NULL && (incoming == Py_None || PyArg_ParseTuple(incoming, "OO", message, buffers));
    Py_XINCREF(*message);
    Py_XINCREF(*buffers);
    Py_XDECREF(incoming);
    return is_read ? 0 : -1;
}

/* Where nothing has come, seek another connection if this one is lost: 0, or -1 with an error. */
static int recover_if_cut(PyObject *self, PyObject *connection)
{
    PyObject *is_cut = PyObject_GetAttr(connection, s_was_cut), *done = NULL;
    int is_lost = is_cut == NULL ? -1 : PyObject_IsTrue(is_cut);
    if (is_lost > 0 && (done = PyObject_CallMethodNoArgs(self, s_recover)) == NULL)
        is_lost = -1;
    Py_XDECREF(done);
    Py_XDECREF(is_cut);
    return is_lost < 0 ? -1 : 0;
}

/* Whether so much was read that it is worth to ask whether the executor is to be told. */
static int is_much_untold(PyObject *inbox)
{
    PyObject *reads = AT(inbox, in_inbox.untold_reads), *bytes = AT(inbox, in_inbox.untold_bytes);
    return reads == NULL || bytes == NULL || bytes != zero || PyLong_AsLong(reads) >= SOME_READS;
}

/* As `Pipeline._pump`, where the connection is sound: 0, or -1 with an error. */
static int pump(PyObject *self, PyObject *connection, PyObject *inbox)
{
    PyObject *message = NULL, *buffers = NULL, *done = NULL;
    int failed = receive(connection, &message, &buffers);
    if (!failed && message == NULL)
        failed = recover_if_cut(self, connection);
    if (!failed && message != NULL && (failed = take_in(self, inbox, message, buffers)) == 0) {
        if ((done = settled(connection)) != NULL && is_much_untold(inbox))
            Py_SETREF(done, PyObject_GetAttr(inbox, s_should_tell));
        if (done == Py_True)
            Py_SETREF(done, PyObject_CallMethodOneArg(self, s_tell_read, connection));
        failed = done == NULL ? -1 : 0;
    }
    Py_XDECREF(done);
    Py_XDECREF(buffers);
    Py_XDECREF(message);
    return failed;
}

/* Take in one message, if this thread may read now and nothing else is to be done first: 0, or -1 with an error. */
static int hear(PyObject *self, PyObject *inbox)
{
    PyObject *io, *connection;
    int may = take_now(self, s_io, &io);
    if (may <= 0)
        return may;
    connection = PyObject_GetAttr(self, s_connection);
    may = connection == NULL ? -1 : is_plain_way(self, connection);
    if (may > 0)
        may = is_all_sent(self);
    if (may > 0)
        may = pump(self, connection, inbox);
    Py_XDECREF(connection);
    if (let_go_of(io) < 0)
        may = -1;
    Py_DECREF(io);
    return may < 0 ? -1 : 0;
}

/* Say with how many ops a batch is full, by how many are under way: 1, or -1 with an error. */
static int fit_batches(PyObject *self)
{
    PyObject *credit = PyObject_GetAttr(self, s_credit), *most = NULL;
    Py_ssize_t in_flight = IS(credit, Credit) ? in_flight_of(credit) : -1;
    if (in_flight >= 0)
        most = in_flight ? PyObject_CallFunction(batch_ops, "n", in_flight) : Py_NewRef(first_ops);
    if (most != NULL)
        put(self, in_recorder.most_ops, most);
    Py_XDECREF(most);
    Py_XDECREF(credit);
    return most == NULL ? -1 : 1;
}

/* As `Pipeline._wait`, where the answer is the next that comes: 1 if it is there, 0 if Python waits, -1 with an error. */
static int await_answer(PyObject *self, PyObject *seq)
{
    PyObject *inbox = PyObject_GetAttr(self, s_inbox), *answers = NULL, *signs = NULL, *is_shown = NULL;
    int has_come = -1;
    if (inbox == NULL || !IS(inbox, Inbox) || (answers = at(inbox, in_inbox.answers)) == NULL)
        goto end;
    has_come = PySequence_Contains(answers, seq);
    if (has_come == 0 && (has_come = hear(self, inbox)) == 0)
        has_come = PySequence_Contains(answers, seq);
    if (has_come <= 0)
        goto end;
    signs = PyObject_GetAttr(self, s_signs);
    is_shown = signs == NULL ? NULL : PyObject_GetAttr(signs, s_is_shown);
    has_come = is_shown == NULL ? -1 : is_shown == Py_False;
    if (has_come > 0)
        has_come = fit_batches(self);
end:
    Py_XDECREF(is_shown);
    Py_XDECREF(signs);
    Py_XDECREF(answers);
    Py_XDECREF(inbox);
    return PyErr_Occurred() != NULL ? -1 : has_come < 0 ? 0 : has_come;
}

/* The answer of op `seq`, of which nobody needs to hear any more; NULL without an error where Python looks itself. */
static PyObject *taken_out(PyObject *self, PyObject *seq)
{
    PyObject *inbox = PyObject_GetAttr(self, s_inbox), *found = NULL;
    if (!IS(inbox, Inbox)) {
        Py_XDECREF(inbox);
        return NULL;
    }
    PyObject *answers = at(inbox, in_inbox.answers), *failures = at(inbox, in_inbox.failures);
    PyObject *awaited = at(inbox, in_inbox.awaited);
    if (answers != NULL && failures != NULL && awaited != NULL && PyDict_CheckExact(answers)
        && PyDict_CheckExact(failures) && !PyDict_GET_SIZE(failures)
        && (found = PyDict_GetItemWithError(answers, seq)) != NULL) {
        found = IS(found, Answer) ? Py_NewRef(found) : NULL;
        if (found != NULL && (PySet_Discard(awaited, seq) < 0 || PyDict_DelItem(answers, seq) < 0))
            Py_CLEAR(found);
    }
    Py_XDECREF(awaited);
    Py_XDECREF(failures);
    Py_XDECREF(answers);
    Py_DECREF(inbox);
    return found;
}

/* As `Pipeline.answer` where nothing was raised; NULL without an error where Python shall see to it. */
static PyObject *answer(PyObject *self, PyObject *seq)
{
    int has_come = await_answer(self, seq);
    if (has_come > 0)
        return taken_out(self, seq);
    if (has_come == 0)
        return NULL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *signs = PyObject_GetAttr(self, s_signs);
    PyObject *inbox = signs == NULL ? NULL : PyObject_GetAttr(self, s_inbox);
    if (inbox != NULL) {
        int is_interrupt = PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt);
        PyObject *error = Py_XNewRef(value);
        PyErr_Restore(type, value, trace);
        if (is_interrupt && error != NULL)
            call_behind(signs, s_settle, error);
        call_behind(inbox, s_forget, seq);
        Py_XDECREF(error);
        Py_DECREF(inbox);
    }
    Py_XDECREF(signs);
    return NULL;
}
