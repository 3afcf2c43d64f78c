/* The end of a trip: what the executor says is taken in, step by step as `Pipeline.answer`. Part of core.c. */

static int is_less(PyObject *one, PyObject *other)
{
    return one == NULL || other == NULL ? -1 : PyObject_RichCompareBool(one, other, Py_LT);
}

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
        PyObject *durable = retention == NULL ? NULL : PyObject_CallOneArg(retention, marks);
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

/* 1 if nothing stands in the way of reading: all that is recorded was sent, the connection is sound, and nothing is
 * cancelled that the executor was not told. */
static int reads_plainly(PyObject *self, PyObject *connection)
{
    PyObject *end = PyObject_GetAttr(self, s_end), *journal = end == NULL ? NULL : PyObject_GetAttr(self, s_journal);
    PyObject *marks = journal == NULL ? NULL : PyObject_GetAttr(journal, s_marks);
    PyObject *cursor = marks == NULL ? NULL : PyObject_GetAttr(journal, s_cursor);
    PyObject *recorded = cursor == NULL ? NULL : PyObject_GetAttr(marks, s_recorded);
    PyObject *told = recorded == NULL ? NULL : PyObject_GetAttr(self, s_cancel_told);
    PyObject *through = told == NULL ? NULL : PyObject_GetAttr(self, s_cancelled_through);
    PyObject *is_sound = through == NULL ? NULL : PyObject_GetAttr(connection, s_is_sound);
    int is_plain = is_sound == NULL ? -1 : end == Py_None && is_sound == Py_True;
    if (is_plain > 0 && (is_plain = is_less(cursor, recorded)) >= 0)
        is_plain = !is_plain;
    if (is_plain > 0 && (is_plain = is_less(told, through)) >= 0)
        is_plain = !is_plain;
    Py_XDECREF(is_sound);
    Py_XDECREF(through);
    Py_XDECREF(told);
    Py_XDECREF(recorded);
    Py_XDECREF(cursor);
    Py_XDECREF(marks);
    Py_XDECREF(journal);
    Py_XDECREF(end);
    return is_plain;
}

/* As `Pipeline._pump`, where the connection is sound: 0, or -1 with an error. */
static int pump(PyObject *self, PyObject *connection, PyObject *inbox)
{
    PyObject *incoming = PyObject_CallMethodOneArg(connection, s_receive, turn_seconds), *done = NULL, *message, *buffers;
    if (incoming == NULL || !PyArg_ParseTuple(incoming == Py_None ? none_twice : incoming, "OO", &message, &buffers)) {
        Py_XDECREF(incoming);
        return -1;
    }
    if (message != Py_None && (done = PyObject_CallMethodObjArgs(inbox, s_note, message, buffers, NULL)) != NULL) {
        if (done != Py_None)
            Py_SETREF(done, PyObject_CallMethodOneArg(self, s_note_refusal, done));
        if (done != NULL)
            Py_SETREF(done, PyObject_CallMethodNoArgs(connection, s_settle));
        if (done != NULL)
            Py_SETREF(done, PyObject_GetAttr(inbox, s_should_tell));
        if (done == Py_True)
            Py_SETREF(done, PyObject_CallMethodOneArg(self, s_tell_read, connection));
    }
    Py_XDECREF(done);
    Py_DECREF(incoming);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

/* Take in one message, if this thread may read now and nothing else is to be done first: 0, or -1 with an error. */
static int hear(PyObject *self, PyObject *inbox)
{
    PyObject *io, *connection;
    int may = take_now(self, s_io, &io);
    if (may <= 0)
        return may;
    connection = PyObject_GetAttr(self, s_connection);
    may = connection == NULL ? -1 : reads_plainly(self, connection);
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
    PyObject *credit = PyObject_GetAttr(self, s_credit), *marks = NULL, *sent = NULL, *in_flight = NULL, *most = NULL;
    if (IS(credit, Credit) && (marks = at(credit, in_credit.marks)) != NULL)
        sent = at(credit, in_credit.sent);
    PyObject *applied = sent == NULL ? NULL : PyObject_GetAttr(marks, s_applied);
    int is_behind = is_less(applied, sent);
    if (is_behind >= 0)
        in_flight = is_behind ? PyNumber_Subtract(sent, applied) : Py_NewRef(zero);
    if (in_flight != NULL && (most = PyObject_CallOneArg(batch_ops, in_flight)) != NULL)
        put(self, in_recorder.most_ops, most);
    Py_XDECREF(most);
    Py_XDECREF(in_flight);
    Py_XDECREF(applied);
    Py_XDECREF(sent);
    Py_XDECREF(marks);
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
