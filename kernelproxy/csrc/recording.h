/* Recording an op, step by step as `Recorder.note`. Part of core.c. */

/* --- where the user's code is ------------------------------------------------------------------------------------- */

/* Places that ops were recorded at lately, each where its code and instruction say. In a loop they come again. */
enum { SEEN_SITES = 256 };
static struct { PyObject *site; int at; } seen_sites[SEEN_SITES];

static size_t seen_place(PyCodeObject *code, int at)
{
    return (((size_t)code >> 4) + (size_t)at / 2) % SEEN_SITES;
}

static int is_seen(PyCodeObject *code, int at)
{
    size_t place = seen_place(code, at);
    PyObject *site = seen_sites[place].site;
    return site != NULL && seen_sites[place].at == at && PyTuple_GET_ITEM(site, 0) == (PyObject *)code;
}

/* The place at an instruction of code that is the user's. A new reference. */
static PyObject *site_in(PyCodeObject *code, int at)
{
    size_t place = seen_place(code, at);
    if (is_seen(code, at))
        return Py_NewRef(seen_sites[place].site);
    PyObject *site = NULL, *last = PyLong_FromLong(at);
    if (last != NULL && (site = ((PyTypeObject *)Site)->tp_alloc((PyTypeObject *)Site, 2)) != NULL) {
        PyTuple_SET_ITEM(site, 0, Py_NewRef((PyObject *)code));
        PyTuple_SET_ITEM(site, 1, Py_NewRef(last));
        PyObject_GC_UnTrack(site); /* in no circle; one stays for each op that is under way */
        seen_sites[place].at = at;
        Py_XSETREF(seen_sites[place].site, Py_NewRef(site));
    }
    Py_XDECREF(last);
    return site;
}

/* As `user_site`, looking from `skipped` frames above the one that runs. A new reference. */
static PyObject *site_above(long skipped)
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame != NULL) {
        PyFrameObject *above;
        if (skipped-- <= 0) {
            PyCodeObject *code = PyFrame_GetCode(frame);
            int found = is_seen(code, PyFrame_GetLasti(frame)) ? 1 : PySet_Contains(theirs, code->co_filename);
            if (found == 0 && (found = PySet_Contains(not_theirs, code->co_filename)) >= 0) {
                PyObject *said = found ? Py_NewRef(Py_False) : PyObject_CallOneArg(is_theirs, code->co_filename);
                found = said == NULL ? -1 : PyObject_IsTrue(said);
                Py_XDECREF(said);
            }
            if (found != 0) {
                PyObject *site = found > 0 ? site_in(code, PyFrame_GetLasti(frame)) : NULL;
                Py_DECREF(code);
                Py_DECREF(frame);
                return site;
            }
            Py_DECREF(code);
        }
        above = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = above;
    }
    Py_RETURN_NONE;
}

/* --- recording ---------------------------------------------------------------------------------------------------- */

/* Whether an op deals with all of the memory of a handle, and with no window of it: 1, 0, or -1 with an error. */
static int is_operand(PyObject *args, PyObject *handle)
{
    int found = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *arg = PyTuple_GET_ITEM(args, i), *named = handle_in(arg);
        int same = named == NULL ? 0 : PyObject_RichCompareBool(named, handle, Py_EQ);
        if (same < 0 || (same && IS(arg, View)))
            return same < 0 ? -1 : 0;
        found |= same;
    }
    return found;
}

/* As `takes_over`, of a batch that is not empty: 1, 0, or -1 with an error. */
static int is_taken_over(PyObject *ops, PyObject *handle)
{
    Py_ssize_t place = PyList_GET_SIZE(ops) - 1;
    PyObject *last = PyList_GET_ITEM(ops, place), *args = IS(last, Op) ? AT(last, in_op.args) : NULL;
    if (args == NULL || !PyTuple_CheckExact(args))
        return 0;
    int taken = PyObject_IsTrue(AT(last, in_op.reuse));
    taken = taken < 0 ? -1 : taken ? 0 : is_operand(args, handle);
    if (taken <= 0)
        return taken;
    PyObject *given[] = {AT(last, in_op.name), AT(last, in_op.out), args, AT(last, in_op.drop), AT(last, in_op.want),
                         AT(last, in_op.kwargs), AT(last, in_op.stream), handle, AT(last, in_op.orders)};
    PyObject *made = new_op(given);
    return made == NULL || PyList_SetItem(ops, place, made) < 0 ? -1 : 1;
}

/* As `oldest`, of at least one, into `drop` and `reuse`, which stays NULL for none: 0, or -1 with an error. */
static int oldest(PyObject *dropped, Py_ssize_t gone, PyObject *layout, PyObject **drop, PyObject **reuse)
{
    PyObject *last = PySequence_GetItem(dropped, gone - 1), *spare = last == NULL ? NULL : PySequence_GetItem(last, 1);
    int is_reused = layout != Py_None && spare == layout;
    PyObject *handles = spare == NULL ? NULL : PyTuple_New(gone - is_reused);
    for (Py_ssize_t i = 0; handles != NULL && i < gone - is_reused; i++) {
        PyObject *pair = PySequence_GetItem(dropped, i), *handle = pair == NULL ? NULL : PySequence_GetItem(pair, 0);
        Py_XDECREF(pair);
        if (handle == NULL)
            Py_CLEAR(handles);
        else
            PyTuple_SET_ITEM(handles, i, handle);
    }
    if (handles != NULL && is_reused && (*reuse = PySequence_GetItem(last, 0)) == NULL)
        Py_CLEAR(handles);
    *drop = handles;
    Py_XDECREF(spare);
    Py_XDECREF(last);
    return handles == NULL ? -1 : 0;
}

/* As `taken_over`, into `drop` and `reuse`; -1 with an error. */
static int take_over(
    PyObject *batch, PyObject *dropped, Py_ssize_t gone, PyObject *reusable, PyObject **drop, PyObject **reuse)
{
    PyObject *first = gone == 1 ? PySequence_GetItem(dropped, 0) : NULL;
    if (gone == 1 && first == NULL)
        return -1;
    if (first != NULL && PyTuple_CheckExact(first) && PyTuple_GET_SIZE(first) == 2) {
        PyObject *handle = PyTuple_GET_ITEM(first, 0), *spare = PyTuple_GET_ITEM(first, 1);
        PyObject *ops = AT(batch, in_batch.ops);
        Py_ssize_t count = PyList_GET_SIZE(ops);
        int taken = spare != Py_None && spare == AT(batch, in_batch.made) && count ? is_taken_over(ops, handle) : 0;
        if (taken == 0 && spare != Py_None && spare == reusable)
            *reuse = Py_NewRef(handle);
        else if (taken == 0 && (*drop = tuple_of(1, &handle)) == NULL)
            taken = -1;
        Py_DECREF(first);
        return taken < 0 ? -1 : 0;
    }
    Py_XDECREF(first);
    return oldest(dropped, gone, reusable, drop, reuse);
}

/* 1 or 0 as a handle is in an attribute, -1 with an error. */
static int is_in(PyObject *object, PyObject *type, Py_ssize_t place, PyObject *name, PyObject *handle)
{
    PyObject *all = part(object, type, place, name);
    int found = all == NULL ? -1 : holds(all, handle);
    Py_XDECREF(all);
    return found;
}

/* As `Recorder._take_dropped`. */
static int take_dropped(PyObject *dropped, PyObject *memory, PyObject *mirror, Py_ssize_t gone)
{
    while (gone-- > 0) {
        PyObject *done = NULL, *pair = call_method(&to_popleft, dropped, s_popleft, NULL);
        PyObject *handle = pair == NULL ? NULL : PySequence_GetItem(pair, 0);
        int found = handle == NULL ? -1 : is_in(memory, MemoryModel, in_memory.held, s_held, handle);
        if (found > 0) {
            found = (done = PyObject_CallMethodOneArg(memory, s_forget, handle)) == NULL ? -1 : 0;
            Py_XDECREF(done);
        }
        if (found == 0 && (found = is_in(mirror, HostMirror, in_mirror.known, s_known, handle)) == 0)
            found = is_in(mirror, HostMirror, in_mirror.barred, s_barred, handle);
        if (found > 0 && (found = drop_known(mirror, handle)) >= 0)
            found = !found;
        if (found > 0) {
            found = (done = PyObject_CallMethodOneArg(mirror, s_drop, handle)) == NULL ? -1 : 0;
            Py_XDECREF(done);
        }
        Py_XDECREF(handle);
        Py_XDECREF(pair);
        if (found < 0)
            return -1;
    }
    return 0;
}

/* As ``list[place:] = [item]``: 0, or -1 with an error. */
static int put_from(PyObject *list, Py_ssize_t place, PyObject *item)
{
    if (PyList_GET_SIZE(list) == place)
        return PyList_Append(list, item);
    PyObject *one = PyList_New(1);
    if (one == NULL)
        return -1;
    PyList_SET_ITEM(one, 0, Py_NewRef(item));
    int failed = PyList_SetSlice(list, place, PY_SSIZE_T_MAX, one);
    Py_DECREF(one);
    return failed;
}

/* As `OpenBatch.add`; the place of the op, -1 with an error. */
static Py_ssize_t add(PyObject *batch, PyObject *op, PyObject *site, PyObject *cost, PyObject *made)
{
    PyObject *ops = AT(batch, in_batch.ops);
    Py_ssize_t place = PyList_GET_SIZE(ops);
    if (put_from(AT(batch, in_batch.sites), place, site) < 0)
        return -1;
    put(batch, in_batch.made, Py_None);
    if (PyList_Append(ops, op) < 0)
        return -1;
    put(batch, in_batch.made, made);
    return PyList_Append(AT(batch, in_batch.costs), cost) < 0 ? -1 : place;
}

static int is_open(PyObject *batch)
{
    return IS(batch, OpenBatch) && IS(AT(batch, in_batch.ops), (PyObject *)&PyList_Type)
        && IS(AT(batch, in_batch.costs), (PyObject *)&PyList_Type)
        && IS(AT(batch, in_batch.sites), (PyObject *)&PyList_Type) && AT(batch, in_batch.first) != NULL;
}

/* The handle `next` on the device of `stream`: a new reference, NULL with an error. */
static PyObject *on_device(PyObject *next, PyObject *stream)
{
    if (stream == zero)
        return Py_NewRef(next);
    PyObject *device = PyNumber_And(stream, of_device);
    PyObject *handle = device == NULL ? NULL : PyNumber_Or(next, device);
    Py_XDECREF(device);
    return handle;
}

/* Keep the collector from going through a tuple that leads nowhere, as it would find out by itself: ops that are under
 * way would be gone through again and again. */
static void leave_alone(PyObject *tuple)
{
    if (tuple == NULL || !PyTuple_CheckExact(tuple) || !PyObject_GC_IsTracked(tuple))
        return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (PyObject_IS_GC(PyTuple_GET_ITEM(tuple, i)))
            return;
    PyObject_GC_UnTrack(tuple);
}

/* The part of `Recorder.note` that is under the lock: the place of the op, -1 with an error. */
static Py_ssize_t note_locked(
    PyObject *self, PyObject *form, PyObject *args, long skipped, PyObject *kwargs, PyObject *stream, PyObject **out)
{
    Py_ssize_t place = -1, gone;
    PyObject *next = AT(self, in_recorder.next_handle), *after, *drop = NULL, *reuse = NULL;
    PyObject *known = NULL, *op = NULL, *site = NULL;
    /* Held, for Python code may run that puts others into their places. */
    PyObject *mirror = Py_XNewRef(AT(self, in_recorder.mirror)), *dropped = Py_XNewRef(AT(self, in_recorder.dropped));
    PyObject *memory = Py_XNewRef(AT(self, in_recorder.memory)), *batch = Py_XNewRef(AT(self, in_recorder.open_batch));
    if (!is_open(batch) || mirror == NULL || dropped == NULL || memory == NULL || next == NULL) {
        PyErr_SetString(PyExc_TypeError, "no batch is open that ops can be recorded into");
        goto end;
    }
    long results = PyLong_AsLong(AT(form, in_form.results));
    if ((*out = results ? on_device(next, stream) : Py_NewRef(zero)) == NULL)
        goto end;
    if (results) {
        if ((after = PyNumber_Add(next, AT(form, in_form.results))) == NULL)
            goto end;
        AT(self, in_recorder.next_handle) = after;
        Py_DECREF(next);
    }
    int looked = is_looked_at(mirror, form, args, kwargs, results);
    if (looked > 0) {
        int done = note_unknown(mirror, form, args, kwargs, batch, *out, results);
        looked = done < 0 ? -1 : !done;
    }
    if (looked < 0 || (looked && (known = look(mirror, form, args, kwargs, batch, *out)) == NULL))
        goto end;
    if ((gone = PyObject_Size(dropped)) < 0)
        goto end;
    if (gone && take_over(batch, dropped, gone, AT(form, in_form.reusable), &drop, &reuse) < 0)
        goto end;
    leave_alone(args);
    leave_alone(drop);
    PyObject *given[] = {AT(form, in_form.name), *out, args, drop ? drop : Py_None, nothing, kwargs, stream,
                         reuse ? reuse : zero, AT(form, in_form.orders)};
    if ((op = new_op(given)) == NULL || (site = site_above(skipped)) == NULL)
        goto end;
    if ((place = add(batch, op, site, AT(form, in_form.cost), AT(form, in_form.reusable))) < 0)
        goto end;
    if (known != NULL && known != Py_None) {
        PyObject *done = PyObject_CallMethodObjArgs(
            mirror, s_publish, PyTuple_GET_ITEM(known, 0), PyTuple_GET_ITEM(known, 1), NULL);
        if (done == NULL)
            place = -1;
        Py_XDECREF(done);
    }
    if (place >= 0 && gone && take_dropped(dropped, memory, mirror, gone) < 0)
        place = -1;
end:
    Py_XDECREF(site);
    Py_XDECREF(op);
    Py_XDECREF(reuse);
    Py_XDECREF(drop);
    Py_XDECREF(known);
    Py_XDECREF(batch);
    Py_XDECREF(memory);
    Py_XDECREF(dropped);
    Py_XDECREF(mirror);
    return place;
}

/* Send, or see to it that somebody does, once an op is at `place`: 0, or -1 with an error. */
static int send_on(PyObject *self, PyObject *form, Py_ssize_t place)
{
    PyObject *done = NULL;
    long long most = PyLong_AsLongLong(AT(self, in_recorder.most_ops));
    if (most == -1 && PyErr_Occurred())
        return -1;
    int is_due = place + 1 >= most ? 1 : truth(AT(form, in_form.cost), Cost, in_cost.is_long, s_is_long);
    if (is_due < 0)
        return -1;
    if (is_due)
        done = PyObject_CallMethodNoArgs(self, s_flush);
    else if (AT(self, in_recorder.sender_sleeps) == Py_True)
        done = PyObject_CallMethodNoArgs(self, s_wake_sender);
    else
        return 0;
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* As `Recorder.note`; the user's code is `skipped` frames above the one that runs. The handle, a new reference. */
static PyObject *note(
    PyObject *self, PyObject *form, PyObject *args, long skipped, PyObject *kwargs, PyObject *stream)
{
    PyObject *out = NULL, *type, *value, *trace, *lock = at(self, in_recorder.lock);
    if (lock == NULL)
        return NULL;
    if (take(lock) < 0) {
        Py_DECREF(lock);
        return NULL;
    }
    Py_ssize_t place = note_locked(self, form, args, skipped, kwargs, stream, &out);
    PyErr_Fetch(&type, &value, &trace);
    int failed = let_go(lock);
    Py_DECREF(lock);
    if (type != NULL) {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
    }
    if (failed || place < 0 || send_on(self, form, place) < 0)
        Py_CLEAR(out);
    return out;
}
