/* What the core knows of Python's classes, and how it reads their slots. Part of core.c. */

/* --- what Python has told us about itself ------------------------------------------------------------------------- */

static PyObject *ArrayCore, *array_class, *Layout, *Recorder, *OpenBatch, *Form, *Cost, *HostMirror, *MemoryModel, *Streams, *Worth, *Op, *Ref, *View, *Site;
static PyObject *Client, *nothing, *of_device, *theirs, *not_theirs, *is_theirs, *targets, *windows, *rows,
    *runs;
static PyObject *scalars, *sent_number, *Ufunc;
static PyObject *Answer, *Batch, *batch_ops, *Connection, *ConnectionLost, *Credit, *decode, *encode, *first_ops, *Link, *most_header_bytes, *until_done, *yield_seconds, *handles_per_call, *Inbox, *looking, *monotonic, *Refused, *Reply, *turn_seconds;
static PyObject *current, *dtype_kinds, *dtypes, *any_float, *doubted, *Forms, *described, *generators, *List, *method, *nameless, *most_float, *Returned, *Tuple, *Window, *whole;
static PyObject *Counted, *expected, *knows_masks, *Later, *LaterLayout, *Rows, *SomeRows, *SparseLayout, *surely_some;

/* Whether ways are taken. Tests go both ways in one process. */
static int is_on = 1;

static struct { const char *name; PyObject **value; } parts[] = {
    {"ArrayCore", &ArrayCore}, {"array_class", &array_class}, {"Layout", &Layout}, {"Recorder", &Recorder},
    {"OpenBatch", &OpenBatch}, {"Form", &Form}, {"Cost", &Cost}, {"Worth", &Worth}, {"HostMirror", &HostMirror},
    {"MemoryModel", &MemoryModel}, {"Streams", &Streams}, {"Op", &Op}, {"Ref", &Ref}, {"View", &View}, {"Site", &Site},
    {"nothing", &nothing}, {"of_device", &of_device}, {"theirs", &theirs}, {"not_theirs", &not_theirs}, {"is_theirs", &is_theirs},
    {"targets", &targets}, {"windows", &windows},
    {"rows", &rows}, {"runs", &runs}, {"scalars", &scalars}, {"sent_number", &sent_number}, {"Ufunc", &Ufunc}, {"current", &current},
    {"dtype_kinds", &dtype_kinds}, {"dtypes", &dtypes}, {"any_float", &any_float}, {"most_float", &most_float},
    {"generators", &generators}, {"described", &described}, {"method", &method}, {"nameless", &nameless}, {"SparseLayout", &SparseLayout},
    {"doubted", &doubted}, {"Forms", &Forms}, {"List", &List},
    {"Counted", &Counted}, {"expected", &expected}, {"Later", &Later}, {"LaterLayout", &LaterLayout}, {"Rows", &Rows}, {"SomeRows", &SomeRows},
    {"knows_masks", &knows_masks}, {"surely_some", &surely_some},
    {"Batch", &Batch}, {"Client", &Client}, {"Connection", &Connection}, {"ConnectionLost", &ConnectionLost}, {"first_ops", &first_ops},
    {"decode", &decode}, {"encode", &encode}, {"Link", &Link}, {"most_header_bytes", &most_header_bytes}, {"until_done", &until_done},
    {"yield_seconds", &yield_seconds},
    {"Answer", &Answer}, {"batch_ops", &batch_ops}, {"Credit", &Credit}, {"handles_per_call", &handles_per_call}, {"Inbox", &Inbox},
    {"looking", &looking}, {"monotonic", &monotonic}, {"Refused", &Refused}, {"Reply", &Reply}, {"turn_seconds", &turn_seconds},
    {"Returned", &Returned}, {"Tuple", &Tuple}, {"Window", &Window}, {"whole", &whole}, {NULL, NULL},
};

static struct { Py_ssize_t client, dropped, layout, ref, root; } in_array;
static struct { Py_ssize_t dtype_text, held_bytes, memory_order, shape, size, strides; } in_layout;
static struct {
    Py_ssize_t dropped, forms, lock, memory, mirror, most_ops, next_handle, open_batch, sender_sleeps;
} in_recorder;
static struct {
    Py_ssize_t bytes, costs, first, frames, kept_bytes, last, made, ops, seconds, sent_at, sites, size;
} in_batch;
static struct { Py_ssize_t cost, gives, high, is_keeping, is_quiet, is_small, is_writing, low, made, name, orders, results, reusable, rows, size; } in_form;
static struct { Py_ssize_t array, client, handle, is_known, kind, most_bytes, rows; } in_later;
static struct { Py_ssize_t most_bytes; } in_some_rows;
static struct { Py_ssize_t counts; } in_counted;
static struct { Py_ssize_t handle; } in_ref;
static struct { Py_ssize_t dtype, offset, order, root, shape, strides; } in_view;
static struct { Py_ssize_t args, drop, kwargs, name, orders, out, reuse, stream, want; } in_op;
static struct { Py_ssize_t is_long; } in_cost;
static struct { Py_ssize_t budget; } in_worth;
static struct { Py_ssize_t barred, is_on, known, worth; } in_mirror;
static struct { Py_ssize_t held, small_bytes; } in_memory;
static struct { Py_ssize_t is_used; } in_streams;
static struct { Py_ssize_t verb; } in_ufunc;
static struct { Py_ssize_t dropped, pipeline, streams; } in_client;
static struct { Py_ssize_t marks, messages, sent; } in_credit;
static struct { Py_ssize_t answers, awaited, chunks, failures, journal, moved_at, received, retention, untold_bytes, untold_reads; } in_inbox;
static struct { Py_ssize_t done, seq, value, warnings; } in_reply;

static struct { PyObject **type; const char *name; Py_ssize_t *place; } slots[] = {
    {&ArrayCore, "_client", &in_array.client}, {&ArrayCore, "_dropped", &in_array.dropped},
    {&ArrayCore, "_layout", &in_array.layout}, {&ArrayCore, "_ref", &in_array.ref},
    {&ArrayCore, "_root", &in_array.root}, {&Layout, "dtype_text", &in_layout.dtype_text},
    {&Layout, "held_bytes", &in_layout.held_bytes},
    {&Layout, "memory_order", &in_layout.memory_order}, {&Layout, "shape", &in_layout.shape},
    {&Layout, "size", &in_layout.size}, {&Layout, "strides", &in_layout.strides},
    {&Recorder, "dropped", &in_recorder.dropped}, {&Recorder, "forms", &in_recorder.forms},
    {&Recorder, "_recording", &in_recorder.lock}, {&Recorder, "memory", &in_recorder.memory},
    {&Recorder, "mirror", &in_recorder.mirror}, {&Recorder, "most_ops", &in_recorder.most_ops},
    {&Recorder, "next_handle", &in_recorder.next_handle}, {&Recorder, "open_batch", &in_recorder.open_batch},
    {&Recorder, "sender_sleeps", &in_recorder.sender_sleeps}, {&OpenBatch, "costs", &in_batch.costs},
    {&OpenBatch, "first", &in_batch.first}, {&OpenBatch, "made", &in_batch.made}, {&OpenBatch, "ops", &in_batch.ops},
    {&OpenBatch, "sites", &in_batch.sites}, {&OpenBatch, "bytes", &in_batch.bytes}, {&OpenBatch, "frames", &in_batch.frames},
    {&OpenBatch, "kept_bytes", &in_batch.kept_bytes}, {&OpenBatch, "last", &in_batch.last},
    {&OpenBatch, "seconds", &in_batch.seconds}, {&OpenBatch, "sent_at", &in_batch.sent_at}, {&OpenBatch, "size", &in_batch.size},
    {&Form, "cost", &in_form.cost}, {&Form, "gives", &in_form.gives}, {&Form, "high", &in_form.high},
    {&Form, "is_keeping", &in_form.is_keeping}, {&Form, "is_quiet", &in_form.is_quiet}, {&Form, "is_small", &in_form.is_small}, {&Form, "is_writing", &in_form.is_writing}, {&Form, "low", &in_form.low},
    {&Form, "made", &in_form.made}, {&Form, "name", &in_form.name}, {&Form, "orders", &in_form.orders},
    {&Form, "results", &in_form.results}, {&Form, "reusable", &in_form.reusable}, {&Form, "rows", &in_form.rows}, {&Form, "size", &in_form.size},
    {&LaterLayout, "_array", &in_later.array}, {&LaterLayout, "_client", &in_later.client},
    {&LaterLayout, "_handle", &in_later.handle}, {&LaterLayout, "is_known", &in_later.is_known},
    {&LaterLayout, "kind", &in_later.kind}, {&LaterLayout, "most_bytes", &in_later.most_bytes},
    {&LaterLayout, "rows", &in_later.rows}, {&SomeRows, "most_bytes", &in_some_rows.most_bytes},
    {&Counted, "counts", &in_counted.counts},
    {&Ref, "handle", &in_ref.handle}, {&View, "offset", &in_view.offset}, {&View, "order", &in_view.order},
    {&View, "root", &in_view.root}, {&View, "dtype", &in_view.dtype}, {&View, "shape", &in_view.shape},
    {&View, "strides", &in_view.strides}, {&Op, "args", &in_op.args}, {&Op, "drop", &in_op.drop},
    {&Op, "kwargs", &in_op.kwargs}, {&Op, "name", &in_op.name}, {&Op, "orders", &in_op.orders}, {&Op, "out", &in_op.out},
    {&Op, "reuse", &in_op.reuse}, {&Op, "stream", &in_op.stream}, {&Op, "want", &in_op.want}, {&Cost, "is_long", &in_cost.is_long},
    {&Worth, "budget", &in_worth.budget}, {&HostMirror, "barred", &in_mirror.barred},
    {&HostMirror, "is_on", &in_mirror.is_on}, {&HostMirror, "known", &in_mirror.known},
    {&HostMirror, "worth", &in_mirror.worth}, {&MemoryModel, "held", &in_memory.held},
    {&MemoryModel, "small_bytes", &in_memory.small_bytes}, {&Streams, "is_used", &in_streams.is_used},
    {&Client, "dropped", &in_client.dropped}, {&Client, "pipeline", &in_client.pipeline},
    {&Client, "streams", &in_client.streams},
    {&Ufunc, "_verb", &in_ufunc.verb}, {&Inbox, "answers", &in_inbox.answers}, {&Inbox, "_awaited", &in_inbox.awaited},
    {&Inbox, "_chunks", &in_inbox.chunks}, {&Inbox, "_failures", &in_inbox.failures},
    {&Credit, "_marks", &in_credit.marks}, {&Credit, "_messages", &in_credit.messages}, {&Credit, "_sent", &in_credit.sent}, {&Inbox, "_journal", &in_inbox.journal},
    {&Inbox, "moved_at", &in_inbox.moved_at}, {&Inbox, "received", &in_inbox.received},
    {&Inbox, "_retention", &in_inbox.retention}, {&Inbox, "_untold_bytes", &in_inbox.untold_bytes},
    {&Inbox, "_untold_reads", &in_inbox.untold_reads}, {&Reply, "done", &in_reply.done}, {&Reply, "seq", &in_reply.seq},
    {&Reply, "value", &in_reply.value}, {&Reply, "warnings", &in_reply.warnings}, {NULL, NULL, NULL},
};

static PyObject *s_acquire, *s_append, *s_barred, *s_budget, *s_data, *s_drop, *s_dropped, *s_flush, *s_forget, *s_held,
    *s_is_long, *s_is_on, *s_is_sure, *s_is_used, *s_held_bytes, *s_item, *s_items, *s_known, *s_layout, *s_missed, *s_nbytes, *s_note, *s_pipeline, *s_popleft, *s_publish, *s_release,
    *s_set, *s_store,
    *s_small_bytes, *s_streams, *s_uncertain, *s_wake_sender, *s_worth, *zero, *no_names;
static PyObject *s_getitem, *s_has_room, *s_minor, *s_read_all, *s_store_chosen, *s_store_where, *s_welcome;
static PyObject *s_about, *s_applied, *s_client, *s_dtype, *s_functions, *s_shape, *s_wire_value, *s_cancel_told, *s_cancelled_through, *s_connection, *s_costs, *s_credit, *s_cursor, *s_done, *s_end, *s_inbox, *s_io, *s_is_shown, *s_is_sound, *s_journal, *s_marks, *s_note_asked, *s_note_durable, *s_note_progress, *s_note_refusal, *s_receive, *s_recorded, *s_send_recorded, *s_send_sealed, *s_settle, *s_should_tell, *s_signs, *s_tell_read;
static PyObject *s_ahead, *s_batches, *s_bytes_sent, *s_counters, *s_credit_ops, *s_fit, *s_is_closed, *s_is_cut, *s_is_torn, *s_link, *s_next_unsent, *s_note_sending,
    *s_note_sent, *s_ops, *s_passes_whole, *s_put_back, *s_recover, *s_send, *s_socket, *s_spin, *s_spinning, *s_take_whole, *s_waits_since, *s_was_cut;
static PyObject *one, *never;

static struct { PyObject **value; const char *text; } texts[] = {
    {&s_acquire, "acquire"}, {&s_append, "append"}, {&s_barred, "barred"}, {&s_budget, "budget"}, {&s_data, "data"}, {&s_drop, "drop"},
    {&s_dropped, "dropped"}, {&s_flush, "flush"}, {&s_forget, "forget"}, {&s_held, "held"}, {&s_is_long, "is_long"},
    {&s_is_on, "is_on"}, {&s_is_sure, "is_sure"}, {&s_is_used, "is_used"}, {&s_item, "item"}, {&s_items, "items"}, {&s_held_bytes, "_held_bytes"}, {&s_layout, "layout"}, {&s_missed, "_missed"}, {&s_nbytes, "nbytes"}, {&s_uncertain, "uncertain"},
    {&s_known, "known"}, {&s_note, "note"}, {&s_pipeline, "pipeline"},
    {&s_popleft, "popleft"}, {&s_publish, "publish"}, {&s_release, "release"}, {&s_set, "cupy.ndarray.__setitem__"}, {&s_store, ".store"}, {&s_small_bytes, "small_bytes"},
    {&s_streams, "streams"}, {&s_wake_sender, "wake_sender"}, {&s_worth, "worth"},
    {&s_getitem, "cupy.ndarray.__getitem__"}, {&s_has_room, "has_room"}, {&s_read_all, "_read_all"}, {&s_store_chosen, ".store_chosen"}, {&s_minor, "minor"},
    {&s_store_where, ".store_where"}, {&s_welcome, "welcome"},
    {&s_client, "_client"}, {&s_wire_value, "_wire_value"}, {&s_about, "_known"}, {&s_functions, "_functions"},
    {&s_dtype, "dtype"}, {&s_shape, "shape"},
    {&s_applied, "applied"}, {&s_cancel_told, "_cancel_told"}, {&s_cancelled_through, "_cancelled_through"}, {&s_connection, "connection"}, {&s_costs, "_costs"}, {&s_credit, "credit"}, {&s_cursor, "cursor"}, {&s_done, "done"}, {&s_end, "_end"}, {&s_inbox, "inbox"}, {&s_io, "_io"}, {&s_is_shown, "is_shown"}, {&s_is_sound, "is_sound"}, {&s_journal, "journal"}, {&s_marks, "marks"}, {&s_note_asked, "note_asked"}, {&s_note_durable, "note_durable"}, {&s_note_progress, "note_progress"}, {&s_note_refusal, "_note_refusal"}, {&s_receive, "receive"}, {&s_recorded, "recorded"}, {&s_send_recorded, "_send_recorded"}, {&s_send_sealed, "_send_sealed"}, {&s_settle, "settle"}, {&s_should_tell, "should_tell"}, {&s_signs, "signs"}, {&s_tell_read, "_tell_read"},
    {&s_ahead, "ahead"}, {&s_batches, "batches"}, {&s_bytes_sent, "bytes_sent"}, {&s_counters, "counters"},
    {&s_credit_ops, "credit_ops"}, {&s_fit, "_fit"}, {&s_is_closed, "_is_closed"}, {&s_is_cut, "_is_cut"}, {&s_is_torn, "is_torn"}, {&s_put_back, "_put_back"},
    {&s_link, "_link"}, {&s_next_unsent, "next_unsent"},
    {&s_note_sending, "note_sending"}, {&s_note_sent, "note_sent"}, {&s_ops, "ops"}, {&s_passes_whole, "passes_whole"},
    {&s_recover, "_recover"}, {&s_send, "send"}, {&s_socket, "_socket"}, {&s_spin, "spin"}, {&s_spinning, "_spinning"},
    {&s_take_whole, "take_whole"}, {&s_waits_since, "_waits_since"}, {&s_was_cut, "is_cut"}, {NULL, NULL},
};

#define AT(object, place) (*(PyObject **)((char *)(object) + (place)))

static inline int IS(PyObject *object, PyObject *type)
{
    return object != NULL && (PyObject *)Py_TYPE(object) == type;
}

/* Return the attribute at a slot, as Python would: NULL and AttributeError where it was never set. A new reference. */
static PyObject *at(PyObject *object, Py_ssize_t place)
{
    PyObject *found = AT(object, place);
    if (found == NULL)
        PyErr_Format(PyExc_AttributeError, "a part of %.100s was never set", Py_TYPE(object)->tp_name);
    return Py_XNewRef(found);
}

static void put(PyObject *object, Py_ssize_t place, PyObject *value)
{
    PyObject *before = AT(object, place);
    AT(object, place) = Py_NewRef(value);
    Py_XDECREF(before);
}

/* Return an attribute that lies at a slot of objects of exactly the type. A new reference. */
static PyObject *part(PyObject *object, PyObject *type, Py_ssize_t place, PyObject *name)
{
    PyObject *found = IS(object, type) ? AT(object, place) : NULL;
    return found != NULL ? Py_NewRef(found) : PyObject_GetAttr(object, name);
}

/* 1 or 0 as such an attribute is true or not, -1 with an error. */
static int truth(PyObject *object, PyObject *type, Py_ssize_t place, PyObject *name)
{
    PyObject *found = IS(object, type) ? AT(object, place) : NULL;
    if (found == Py_True || found == Py_False)
        return found == Py_True;
    found = part(object, type, place, name);
    int is_true = found == NULL ? -1 : PyObject_IsTrue(found);
    Py_XDECREF(found);
    return is_true;
}
