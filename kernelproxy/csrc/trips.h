/* A trip: an op is sent with all before it, and its answer is taken in. Part of core.c.
 *
 * Each way ends what it began or leaves it as Python may find it, and then Python goes on: its steps may be done again.
 */

/* Release a lock, whatever has been raised meanwhile, which stays raised: 0, or -1 if anything was. */
static int let_go_of(PyObject *lock)
{
    PyObject *type, *value, *trace, *done;
    PyErr_Fetch(&type, &value, &trace);
    done = PyObject_CallMethodNoArgs(lock, s_release);
    Py_XDECREF(done);
    if (type == NULL)
        return done == NULL ? -1 : 0;
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return -1;
}

/* 1 if the lock of that name was had at once, 0 if another thread has it, -1 with an error. `lock` is a new reference. */
static int take_now(PyObject *self, PyObject *name, PyObject **lock)
{
    if ((*lock = PyObject_GetAttr(self, name)) == NULL)
        return -1;
    PyObject *got = PyObject_CallMethodOneArg(*lock, s_acquire, Py_False);
    int has = got == NULL ? -1 : PyObject_IsTrue(got);
    Py_XDECREF(got);
    if (has <= 0)
        Py_CLEAR(*lock);
    return has;
}

/* Call a method behind an error, which stays raised unless the method raises another: as in `finally`. */
static void call_behind(PyObject *object, PyObject *name, PyObject *arg)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = PyObject_CallMethodOneArg(object, name, arg);
    if (done != NULL) {
        Py_DECREF(done);
        PyErr_Restore(type, value, trace);
        return;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

/* The handles of the first `gone` that were dropped, as `oldest` gives them; None for none. A new reference. */
static PyObject *gone_before(PyObject *dropped, Py_ssize_t gone)
{
    if (gone == 0)
        Py_RETURN_NONE;
    PyObject *number = PyLong_FromSsize_t(gone);
    PyObject *both = number == NULL ? NULL : PyObject_CallFunctionObjArgs(oldest, dropped, number, Py_None, NULL);
    PyObject *handles = both == NULL ? NULL : PySequence_GetItem(both, 0);
    Py_XDECREF(both);
    Py_XDECREF(number);
    return handles;
}

/* What an op is taken to cost of whose size nothing is known. A new reference. */
static PyObject *cost_of(PyObject *self, PyObject *name)
{
    PyObject *sizes = PyObject_GetAttr(self, s_costs);
    PyObject *costs = sizes == NULL ? NULL : PySequence_GetItem(sizes, 0);
    PyObject *cost = costs == NULL ? NULL : PyObject_GetItem(costs, name);
    Py_XDECREF(costs);
    Py_XDECREF(sizes);
    return cost;
}

/* Put the open batch behind those that wait to be sent, as `Recorder._seal`: 0, or -1 with an error. */
static int seal(PyObject *self, PyObject *batch)
{
    PyObject *journal = PyObject_GetAttr(self, s_journal);
    PyObject *done = journal == NULL ? NULL : PyObject_CallMethodOneArg(journal, s_append, batch);
    PyObject *fresh = done == NULL ? NULL : PyObject_CallMethodNoArgs(batch, s_successor);
    if (fresh != NULL)
        put(self, in_recorder.open_batch, fresh);
    Py_XDECREF(fresh);
    Py_XDECREF(done);
    Py_XDECREF(journal);
    return fresh == NULL ? -1 : 0;
}

/* The part of `Pipeline.ask` that is under the lock, and the end of the batch: 0, or -1 with an error. `seq` is set
 * once somebody is expected to answer. */
static int ask_locked(
    PyObject *self, PyObject *inbox, PyObject *name, PyObject *args, PyObject *want, PyObject *kwargs, PyObject *stream,
    PyObject **seq)
{
    int failed = -1;
    PyObject *out = NULL, *after = NULL, *drop = NULL, *cost = NULL, *op = NULL, *site = NULL;
    PyObject *mirror = Py_XNewRef(AT(self, in_recorder.mirror)), *dropped = Py_XNewRef(AT(self, in_recorder.dropped));
    PyObject *memory = Py_XNewRef(AT(self, in_recorder.memory)), *batch = Py_XNewRef(AT(self, in_recorder.open_batch));
    PyObject *next = Py_XNewRef(AT(self, in_recorder.next_handle)), *awaited = Py_XNewRef(AT(inbox, in_inbox.awaited));
    if (!is_open(batch) || mirror == NULL || dropped == NULL || memory == NULL || next == NULL || awaited == NULL) {
        PyErr_SetString(PyExc_TypeError, "no batch is open that ops can be recorded into");
        goto end;
    }
    Py_ssize_t gone = PyObject_Size(dropped);
    if (gone < 0 || (out = on_device(next, stream)) == NULL || (after = PyNumber_Add(next, handles_per_call)) == NULL)
        goto end;
    put(self, in_recorder.next_handle, after);
    if ((drop = gone_before(dropped, gone)) == NULL)
        goto end;
    Py_ssize_t first = PyLong_AsSsize_t(AT(batch, in_batch.first));
    if ((*seq = PyLong_FromSsize_t(first + PyList_GET_SIZE(AT(batch, in_batch.ops)))) == NULL)
        goto end;
    if (PySet_Add(awaited, *seq) < 0 || (cost = cost_of(self, name)) == NULL)
        goto end;
    leave_alone(args);
    leave_alone(drop);
    PyObject *given[] = {name, out, args, drop, want, kwargs, stream};
    if ((op = PyObject_Vectorcall(Op, given, 7, NULL)) == NULL || (site = site_above(0)) == NULL)
        goto end;
    if (add(batch, op, site, cost, Py_None) < 0 || take_dropped(dropped, memory, mirror, gone) < 0)
        goto end;
    failed = seal(self, batch);
end:
    Py_XDECREF(site);
    Py_XDECREF(op);
    Py_XDECREF(cost);
    Py_XDECREF(drop);
    Py_XDECREF(after);
    Py_XDECREF(out);
    Py_XDECREF(awaited);
    Py_XDECREF(next);
    Py_XDECREF(batch);
    Py_XDECREF(memory);
    Py_XDECREF(dropped);
    Py_XDECREF(mirror);
    return failed;
}

/* As `Pipeline._send_recorded`, once the batch is sealed: 0, or -1 with an error. */
static int send_sealed(PyObject *self)
{
    PyObject *io, *sent = NULL;
    int is_done = take_now(self, s_io, &io);
    if (is_done > 0) {
        sent = PyObject_CallMethodNoArgs(self, s_send_sealed);
        is_done = sent == NULL ? -1 : PyObject_IsTrue(sent);
        Py_XDECREF(sent);
        if (let_go_of(io) < 0)
            is_done = -1;
        Py_DECREF(io);
    }
    if (is_done == 0) { /* another thread has the connection, or there is no room: it is waited for */
        sent = PyObject_CallMethodNoArgs(self, s_send_recorded);
        is_done = sent == NULL ? -1 : 1;
        Py_XDECREF(sent);
    }
    return is_done < 0 ? -1 : 0;
}

/* As `Pipeline.ask` without buffers: the number of the op, a new reference; NULL without an error where Python asks. */
static PyObject *ask(
    PyObject *self, PyObject *name, PyObject *args, PyObject *want, PyObject *kwargs, PyObject *stream)
{
    PyObject *seq = NULL, *done, *inbox = PyObject_GetAttr(self, s_inbox);
    if (!IS(inbox, Inbox)) {
        Py_XDECREF(inbox);
        return NULL;
    }
    PyObject *lock = at(self, in_recorder.lock);
    int failed = lock == NULL ? -1 : 0;
    if (!failed && (done = PyObject_CallMethodNoArgs(lock, s_acquire)) != NULL) {
        Py_DECREF(done);
        failed = ask_locked(self, inbox, name, args, want, kwargs, stream, &seq);
        if (let_go_of(lock) < 0)
            failed = -1;
        if (!failed)
            failed = send_sealed(self);
    }
    else
        failed = -1;
    if (failed) { /* whatever it is, nobody will ask for the answer */
        if (seq != NULL)
            call_behind(inbox, s_forget, seq);
        Py_CLEAR(seq);
    }
    Py_XDECREF(lock);
    Py_XDECREF(inbox);
    return seq;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

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
