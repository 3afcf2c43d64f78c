/* Ops that come again as they came before, past the Python that learnt how: see ../recurring.py.

   All that is done here is done there as well, more slowly: `take` of direct.py is the reference. Whatever has not come
   before, or for which anything is missing, is left to it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

#include "objects.h"
#include "ways.h"
#include "numbers.h"

/* So many ops run between two looks at the clock. */
enum { LOOK = 4 };

typedef struct {
    PyObject_HEAD
    PyObject *takes, *places, *known, *spare, *kept, *objects, *alone, *views, *drop, *allocate, *table, *ready, *launch, *renew,
        *nothing, *by_bits, *launcher;
    /* An exception of the op where `run` stopped. */
    PyObject *error;
    Py_ssize_t most_ops, done, launched, called;
    long long most_spare;
    Way **ways;
    Py_ssize_t count;
    /* Whether ops are being carried out: ways stay where they are meanwhile, and whether they are forgotten then. */
    int is_running, must_forget;
} Recurring;

#include "memory.h"

/* --- finding a way -------------------------------------------------------------------------------------------------- */

static Way **find(Recurring *self, const Key *key)
{
    unsigned long long hash = hash_of(key);
    Py_ssize_t at = hash & (TABLE - 1);
    for (;; at = (at + 1) & (TABLE - 1)) {
        Way *way = self->ways[at];
        if (way == NULL ||
            (way->hash == hash && way->length == key->length && !memcmp(way->key, key->bytes, key->length)))
            return &self->ways[at];
    }
}

static void forget_all(Recurring *self)
{
    for (Py_ssize_t i = 0; self->ways != NULL && i < TABLE; i++) {
        Way *way = self->ways[i];
        self->ways[i] = NULL; /* first, as in `add_way` */
        self->count -= way != NULL;
        free_way(way);
    }
}

static int takes_of(Recurring *self, PyObject *op)
{
    PyObject *name = AT(op, in_op.name), *takes = PyDict_GetItemWithError(self->takes, name);
    if (takes != NULL && PyLong_Check(takes))
        return (int)PyLong_AsLong(takes);
    if (takes == Py_None && PyUnicode_CompareWithASCIIString(name, ".call") == 0)
        return AS_KERNEL;
    return UNKNOWN; /* not asked for yet, or None */
}

static int is_plain(Recurring *self, PyObject *op)
{
    PyObject *stream = AT(op, in_op.stream);
    return AT(op, in_op.want) == self->nothing && AT(op, in_op.orders) == Py_None && PyLong_CheckExact(stream) &&
           PyObject_Not(stream) == 1;
}

/* --- carrying out: 1 if it was, 0 if it is for others, -1 with an error --------------------------------------------- */

static int lies_well(const Way *way, const Key *key)
{
    for (int i = 0; i < way->operands; i++) {
        const Operand *one = &key->operand[i];
        const Lying *lies = &way->lying[i];
        if ((one->place == NULL) != (lies->layout == NULL))
            return 0;
        if (one->place == NULL)
            continue;
        if (one->offset + lies->low < lies->root_low || one->offset + lies->high > lies->root_high)
            return 0;
        if (one->address % lies->itemsize || one->address % way->alignment)
            return 0;
    }
    return 1;
}

/* Tell whether an operand lies apart from each other: CuPy copies others first. */
static int is_apart(const Way *way, const Key *key, int into)
{
    const Operand *target = &key->operand[into];
    unsigned long long low = target->address + way->lying[into].low, high = target->address + way->lying[into].high;
    if (target->place == NULL)
        return 0;
    for (int i = 0; i < way->operands; i++) {
        const Operand *one = &key->operand[i];
        if (one->place == NULL || i == into)
            continue;
        int lies_alike = one->address == target->address && way->lying[i].layout == way->lying[into].layout;
        int is_same = key->kernel != NULL && one->place == target->place && one->is_view == target->is_view;
        if (lies_alike && (way->may_coincide || is_same))
            continue;
        if (one->address + way->lying[i].low < high && low < one->address + way->lying[i].high)
            return 0;
    }
    return 1;
}

static int all_apart(const Way *way, const Key *key)
{
    if (way->may_coincide)
        return way->into < way->operands && is_apart(way, key, way->into);
    for (int i = 0; i < way->operands; i++)
        if (key->operand[i].place != NULL && !is_apart(way, key, i))
            return 0;
    return way->operands > 0;
}

static int is_among(PyObject *programs, PyObject *program)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(programs); i++)
        if (PyTuple_GET_ITEM(programs, i) == program)
            return 1;
    return 0;
}

/* Tell whether the instructions can stand in the table as it is, behind those that do; -1 with an error. */
static int has_room(Recurring *self, const Way *way, PyObject **program, Py_ssize_t *ops)
{
    *ops = PyLong_AsSsize_t(AT(self->table, in_table.ops));
    if (*ops + way->instructions > self->most_ops)
        return 0;
    *program = AT(self->table, in_table.program);
    for (int i = 0; i < way->instructions; i++) {
        PyObject *those = PyDict_GetItemWithError(self->ready, way->instruction[i].code);
        if (those == NULL || !PyTuple_CheckExact(those) || !PyTuple_GET_SIZE(those))
            return PyErr_Occurred() ? -1 : 0;
        if (is_among(those, *program))
            continue;
        if (*ops || i)
            return 0;
        *program = PyTuple_GET_ITEM(those, 0);
    }
    return 1;
}

static unsigned long long address_of(const Way *way, const Key *key, const unsigned long long *blocks, Source source)
{
    if (source.source < 0)
        return 0; /* of the instruction's first value; and what a call does without */
    unsigned long long at = source.source < way->blocks ? blocks[source.source]
                                                        : key->operand[source.source - way->blocks].address;
    return at + source.displacement;
}

static int write_instruction(
    const Way *way, const Key *key, const unsigned long long *blocks, const Instruction *one, unsigned char *at)
{
    memcpy(at, one->template, INSTRUCTION);
    for (int i = 0; i < one->places; i++) {
        unsigned long long address = address_of(way, key, blocks, one->sources[i]);
        memcpy(at + PLACES + 8 * i, &address, 8);
    }
    for (int i = 0; i < one->values; i++) {
        unsigned long long which = i;
        PyObject *number = key->operand[one->slots[i].operand].number;
        if (!write_number(at + VALUES + VALUE * i, &one->slots[i], number))
            return 0;
        if (way->mixes_nans && IS(number, Scalar) && may_be_nan(at + VALUES + VALUE * i, one->slots[i].type))
            return 0;
        memcpy(at + PLACES + 8 * one->slots[i].at, &which, 8);
    }
    return 1;
}

static int gather(Recurring *self, const Way *way, const Key *key, const unsigned long long *blocks, PyObject *program, Py_ssize_t ops)
{
    unsigned char *table = (unsigned char *)PyByteArray_AS_STRING(AT(self->table, in_table.memory));
    Py_ssize_t elements = PyLong_AsSsize_t(AT(self->table, in_table.elements)), most = elements;
    for (int i = 0; i < way->instructions; i++) {
        if (!write_instruction(way, key, blocks, &way->instruction[i], table + HEADER + (ops + i) * INSTRUCTION))
            return 0;
        if (way->instruction[i].elements > most)
            most = way->instruction[i].elements;
    }
    if (most != elements && add_to(self->table, in_table.elements, most - elements) < 0)
        return -1;
    put(self->table, in_table.program, program);
    return add_to(self->table, in_table.ops, way->instructions) < 0 ? -1 : 1;
}

static int write_parameters(const Way *way, const Key *key, const unsigned long long *blocks)
{
    unsigned char *parameters = (unsigned char *)PyByteArray_AS_STRING(way->parameters);
    for (int i = 0; i < way->slots; i++) {
        const Slot *slot = &way->slot[i];
        PyObject *number = key->operand[slot->operand].number;
        if (number == NULL || !write_number(parameters + slot->at, slot, number))
            return 0;
    }
    for (int i = 0; i < way->patches; i++) {
        unsigned long long address = address_of(way, key, blocks, way->patch[i].source);
        memcpy(parameters + way->patch[i].at, &address, 8);
    }
    return 1;
}

/* Call what launches, with the addresses that it takes; 0, or -1 with an error. */
static int call(const Way *way, const Key *key, const unsigned long long *blocks)
{
    PyObject *given[MOST_ARGUMENTS], *done = NULL;
    int count = 0;
    for (; count < way->arguments; count++)
        if ((given[count] = PyLong_FromUnsignedLongLong(address_of(way, key, blocks, way->argument[count]))) == NULL)
            break;
    if (count == way->arguments)
        done = PyObject_Vectorcall(way->launch, given, count, NULL);
    while (count)
        Py_DECREF(given[--count]);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

/* Launch a table; whether that fails or not, nothing kept is needed then, and the next may be of other programs. */
static int launch_these(Recurring *self, PyObject *const *given)
{
    PyObject *type, *value, *trace, *launched = PyObject_Vectorcall(self->launch, given, 4, NULL);
    PyErr_Fetch(&type, &value, &trace);
    PyObject *renewed = PyObject_CallNoArgs(self->renew);
    int done = renewed == NULL ? -1 : PyList_SetSlice(self->kept, 0, PyList_GET_SIZE(self->kept), NULL);
    if (launched == NULL) {
        PyErr_Restore(type, value, trace);
        done = -1;
    }
    Py_XDECREF(launched);
    Py_XDECREF(renewed);
    return done;
}

/* Have the device carry out what is gathered, if there is anything, as `Segment.launch` does: 0, or -1 with an error. */
static int launch_gathered(Recurring *self)
{
    PyObject *given[4] = {
        Py_NewRef(AT(self->table, in_table.program)), Py_NewRef(AT(self->table, in_table.memory)),
        Py_NewRef(AT(self->table, in_table.ops)), Py_NewRef(AT(self->table, in_table.elements)),
    };
    long long ops = PyLong_AsLongLong(given[2]), elements = PyLong_AsLongLong(given[3]);
    int done = 0;
    if (ops && (done = add_to(self->table, in_table.ops, -ops)) == 0 &&
        (done = add_to(self->table, in_table.elements, -elements)) == 0 &&
        (done = add_to(self->table, in_table.gathered, ops)) == 0)
        done = launch_these(self, given);
    for (int i = 0; i < 4; i++)
        Py_DECREF(given[i]);
    return done;
}

static int launch(Recurring *self, const Way *way, const Key *key, const unsigned long long *blocks)
{
    if (!write_parameters(way, key, blocks))
        return 0;
    if (launch_gathered(self) < 0)
        return -1;
    if (call(way, key, blocks) < 0)
        return -1;
    *(way->arguments ? &self->called : &self->launched) += 1;
    return PyList_SetSlice(self->kept, 0, PyList_GET_SIZE(self->kept), NULL) < 0 ? -1 : 1;
}

/* Keep the block that is the result; the others are for ops behind this one, all of them if the op was not done. */
static int keep(Recurring *self, const Way *way, PyObject *op, PyObject **blocks, int count, int is_done)
{
    for (int i = 0; i < count; i++) {
        if (is_done && i == way->made) {
            if (PyDict_SetItem(self->known, AT(op, in_op.out), blocks[i]) < 0 ||
                add_to(self->places, in_places.unmade, 1) < 0)
                return -1;
        } else if (spare_again(self, blocks[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int is_free(Recurring *self, PyObject *op)
{
    PyObject *out = AT(op, in_op.out);
    int taken = PyDict_Contains(self->objects, out);
    return taken ? taken : PyDict_Contains(self->known, out);
}

static int loses_sign(const Way *way, const Key *key)
{
    PyObject *number = way->fills && way->operands ? key->operand[way->operands - 1].number : NULL;
    return number != NULL && may_lose_sign(number);
}

static int holds(const Way *way)
{
    if (way->holds == Py_None)
        return 1;
    PyObject *said = PyObject_CallNoArgs(way->holds);
    int is_true = said == NULL ? -1 : PyObject_IsTrue(said);
    Py_XDECREF(said);
    return is_true;
}

/* Carry out an op by a way that fits, but for its memory. */
static int carry_out(Recurring *self, const Way *way, const Key *key, PyObject *op)
{
    PyObject *places[MOST_BLOCKS], *program = NULL;
    unsigned long long addresses[MOST_BLOCKS];
    Py_ssize_t ops = 0;
    int count = 0, done = way->instructions ? has_room(self, way, &program, &ops) : 1;
    if (done == 1 && way->launch != NULL)
        done = holds(way);
    if (done == 1 && way->made >= 0) {
        int taken = is_free(self, op);
        done = taken < 0 ? -1 : !taken;
    }
    for (; done == 1 && count < way->blocks; count++) {
        PyObject *place = take_memory(self, way->sizes[count], way->layouts[count]);
        if (place == NULL) {
            done = PyErr_Occurred() ? -1 : 0;
            break;
        }
        addresses[count] = PyLong_AsUnsignedLongLong(AT(place, in_place.address));
        places[count] = place;
    }
    if (done == 1)
        done = way->instructions ? gather(self, way, key, addresses, program, ops) : 1;
    if (done == 1 && way->launch != NULL)
        done = launch(self, way, key, addresses);
    /* With an error its memory goes back to its pool, as it does when the Python way fails. */
    if (done >= 0 && keep(self, way, op, places, count, done) < 0)
        done = -1;
    while (count)
        Py_DECREF(places[--count]);
    return done;
}

static int take(Recurring *self, PyObject *op)
{
    Key key;
    if (!is_plain(self, op))
        return 0;
    int takes = takes_of(self, op);
    if (takes == UNKNOWN)
        return PyErr_Occurred() ? -1 : 0;
    int written = write_key(&key, op, self->known, self->objects, self->by_bits, takes);
    if (written != 1)
        return written;
    const Way *way = *find(self, &key);
    if (way == NULL || key.operands != way->operands || way->has_out != (PyObject_IsTrue(AT(op, in_op.out)) == 1))
        return 0;
    if (!lies_well(way, &key) || loses_sign(way, &key) || (!way->has_out && !all_apart(way, &key)))
        return 0;
    if (PyLong_AsLongLong(AT(self->places, in_places.spare_bytes)) > self->most_spare)
        return 0;
    int done = carry_out(self, way, &key, op);
    if (done == 1 && PyObject_IsTrue(AT(op, in_op.reuse)) && drop(self, AT(op, in_op.reuse)) < 0)
        return -1;
    return done;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int drop_all(Recurring *self, PyObject *handles)
{
    if (!PyTuple_CheckExact(handles))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(handles); i++)
        if (drop(self, PyTuple_GET_ITEM(handles, i)) < 0)
            return -1;
    return 0;
}

/* Keep the exception that was raised as that of the op where `run` stopped. */
static void keep_error(Recurring *self)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    Py_XSETREF(self->error, value);
}

static PyObject *run_ops(Recurring *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyTuple_CheckExact(args[0]) || self->ways == NULL)
        return PyErr_Format(PyExc_TypeError, "ops, two places and a time are wanted");
    Py_ssize_t place = PyLong_AsSsize_t(args[1]), end = PyLong_AsSsize_t(args[2]);
    double until = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (place < 0 || end > PyTuple_GET_SIZE(args[0]))
        return PyErr_Format(PyExc_IndexError, "there are no ops from %zd to %zd", place, end);
    for (Py_ssize_t look = place + LOOK; place < end; place++) {
        PyObject *op = PyTuple_GET_ITEM(args[0], place);
        int done = IS(op, Op) ? drop_all(self, AT(op, in_op.drop)) : -1;
        if (done == 0)
            done = take(self, op);
        if (done < 0) {
            if (!PyErr_Occurred())
                return PyErr_Format(PyExc_TypeError, "%R is no op", op);
            keep_error(self);
        }
        if (done != 1)
            break;
        self->done++;
        if (place + 1 >= look) {
            look += LOOK;
            if (now() > until) {
                place++;
                break;
            }
        }
    }
    return PyLong_FromSsize_t(place);
}

/* Say something to what launches, if there is anything: 0, or -1 with an error. */
static int say(Recurring *self, const char *what)
{
    PyObject *said = self->launcher == Py_None ? Py_NewRef(Py_None) : PyObject_CallMethod(self->launcher, what, NULL);
    Py_XDECREF(said);
    return said == NULL ? -1 : 0;
}

/* Carry out what can be. What is behind it is Python's, and may be anything: so all launches are with the driver. */
static PyObject *run_and_settle(Recurring *self, PyObject *const *args, Py_ssize_t count)
{
    if (say(self, "begin") < 0)
        return NULL;
    PyObject *place = run_ops(self, args, count);
    int stopped = place == NULL || self->error != NULL || PyLong_AsSsize_t(place) < PyLong_AsSsize_t(args[2]);
    if (stopped && place != NULL && say(self, "settle") < 0)
        keep_error(self);
    return place;
}

static PyObject *run(Recurring *self, PyObject *const *args, Py_ssize_t count)
{
    if (self->is_running)
        return PyErr_Format(PyExc_RuntimeError, "ops are being carried out");
    self->is_running = 1;
    PyObject *place = run_and_settle(self, args, count);
    self->is_running = 0;
    if (self->must_forget) {
        self->must_forget = 0;
        forget_all(self);
    }
    return place;
}

#include "learning.h"
