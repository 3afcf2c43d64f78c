/* The beginning of a trip: an op is sent with all before it. Part of core.c; `answers.h` has its end.
 *
 * Each way ends what it began or leaves it as Python may find it, and then Python goes on: its steps may be done again.
 */

/* Release a lock, whatever has been raised meanwhile, which stays raised: 0, or -1 if anything was. */
static int let_go_of(PyObject *lock)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int failed = let_go(lock);
    if (type == NULL)
        return failed;
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

/* The handles of the first `gone` that were dropped; None for none. A new reference. */
static PyObject *gone_before(PyObject *dropped, Py_ssize_t gone)
{
    PyObject *handles = NULL, *reuse = NULL;
    return gone == 0 ? Py_NewRef(Py_None) : oldest(dropped, gone, Py_None, &handles, &reuse) < 0 ? NULL : handles;
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
    PyObject *fresh = done == NULL ? NULL : successor_of(batch);
    if (fresh != NULL)
        put(self, in_recorder.open_batch, fresh);
    Py_XDECREF(fresh);
    Py_XDECREF(done);
    Py_XDECREF(journal);
    return fresh == NULL ? -1 : 0;
}

/* Have nothing known any more that an op may write which somebody waits for: 0, or -1 with an error. */
static int end_known(PyObject *mirror, PyObject *name, PyObject *args, PyObject *kwargs)
{
    int looks = PySet_Contains(looking, name); /* as nearly all that is asked */
    if (looks)
        return looks < 0 ? -1 : 0;
    PyObject *done = PyObject_CallMethodObjArgs(mirror, s_note_asked, name, args, kwargs, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* The part of `Pipeline.ask` that is under the lock, and the end of the batch, a new reference: 0, or -1 with an error.
 * `seq` is set once somebody is expected to answer. */
static int ask_locked(
    PyObject *self, PyObject *inbox, PyObject *name, PyObject *args, PyObject *want, PyObject *kwargs, PyObject *stream,
    PyObject **seq, PyObject **sealed)
{
    int failed = -1;
    PyObject *out = NULL, *after = NULL, *drop = NULL, *cost = NULL, *op = NULL, *site = NULL;
    PyObject *mirror = Py_XNewRef(AT(self, in_recorder.mirror)), *dropped = Py_XNewRef(AT(self, in_recorder.dropped));
    PyObject *memory = Py_XNewRef(AT(self, in_recorder.memory)), *batch = NULL, *next = NULL;
    PyObject *awaited = Py_XNewRef(AT(inbox, in_inbox.awaited));
    Py_ssize_t gone, place;
    /* First all that runs Python: what that sets off, be it a finalizer of the user's, may record ops itself. */
    if (mirror == NULL || dropped == NULL || memory == NULL || awaited == NULL
        || end_known(mirror, name, args, kwargs) < 0 || (cost = cost_of(self, name)) == NULL
        || (site = site_above(0)) == NULL)
        goto end;
    do {
        Py_XSETREF(batch, Py_XNewRef(AT(self, in_recorder.open_batch)));
        if (!is_open(batch)) {
            PyErr_SetString(PyExc_TypeError, "no batch is open that ops can be recorded into");
            goto end;
        }
        place = PyList_GET_SIZE(AT(batch, in_batch.ops));
        Py_CLEAR(drop);
        if ((gone = PyObject_Size(dropped)) < 0 || (drop = gone_before(dropped, gone)) == NULL)
            goto end;
    } while (AT(self, in_recorder.open_batch) != batch || PyList_GET_SIZE(AT(batch, in_batch.ops)) != place);
    next = Py_XNewRef(AT(self, in_recorder.next_handle));
    if (next == NULL || (out = on_device(next, stream)) == NULL || (after = PyNumber_Add(next, handles_per_call)) == NULL)
        goto end;
    put(self, in_recorder.next_handle, after);
    if ((*seq = PyLong_FromSsize_t(PyLong_AsSsize_t(AT(batch, in_batch.first)) + place)) == NULL)
        goto end;
    if (PySet_Add(awaited, *seq) < 0)
        goto end;
    leave_alone(args);
    leave_alone(drop);
    PyObject *given[] = {name, out, args, drop, want, kwargs, stream};
    if ((op = PyObject_Vectorcall(Op, given, 7, NULL)) == NULL)
        goto end;
    if (add(batch, op, site, cost, Py_None) < 0 || take_dropped(dropped, memory, mirror, gone) < 0)
        goto end;
    if ((failed = seal(self, batch)) == 0)
        *sealed = Py_NewRef(batch);
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

/* As `Pipeline._send_recorded`, once `batch` is sealed: 0, or -1 with an error. */
static int send_sealed(PyObject *self, PyObject *inbox, PyObject *batch)
{
    PyObject *io, *sent = NULL;
    int is_done = take_now(self, s_io, &io);
    if (is_done > 0) {
        is_done = send_now(self, inbox, batch);
        if (is_done == 0) {
            sent = PyObject_CallMethodNoArgs(self, s_send_sealed);
            is_done = sent == NULL ? -1 : PyObject_IsTrue(sent);
            Py_XDECREF(sent);
        }
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
    PyObject *seq = NULL, *sealed = NULL, *inbox = PyObject_GetAttr(self, s_inbox);
    if (!IS(inbox, Inbox)) {
        Py_XDECREF(inbox);
        return NULL;
    }
    PyObject *lock = at(self, in_recorder.lock);
    int failed = lock == NULL ? -1 : 0;
    if (!failed && (failed = take(lock)) == 0) {
        failed = ask_locked(self, inbox, name, args, want, kwargs, stream, &seq, &sealed);
        if (let_go_of(lock) < 0)
            failed = -1;
        if (!failed)
            failed = send_sealed(self, inbox, sealed);
    }
    if (failed) { /* whatever it is, nobody will ask for the answer */
        if (seq != NULL)
            call_behind(inbox, s_forget, seq);
        Py_CLEAR(seq);
    }
    Py_XDECREF(sealed);
    Py_XDECREF(lock);
    Py_XDECREF(inbox);
    return seq;
}
