/* The compiled core: the short ways of recording what has been recorded before, and of trips.
 *
 * Everything here is also written in Python, and that is the reference. Each function knows the plain case only: arrays
 * of the class itself, a form that is remembered, an index that was asked for before. Whatever else it meets, it hands
 * to the Python function that it stands for, before it has changed anything; or, of a trip, once it has changed what that
 * function would have changed as well. The steps of `Recorder.note` are those of the Python one, in their order, under
 * the same lock; an interrupt strikes only where they call Python code.
 *
 * Attributes that Python keeps in `__slots__` are read where they lie, at the places that Python tells.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <structmember.h>
#include <math.h>
#include <sched.h>

#include "parts.h"
#include "made.h"
#include "lock.h"
#include "mirrored.h"
#include "recording.h"
#include "sending.h"
#include "trips.h"
#include "links.h"
#include "answers.h"
#include "flushing.h"
#include "arrays.h"
#include "later.h"
#include "forms.h"
#include "masks.h"
#include "calls.h"
#include "launches.h"

/* --- the ways --------------------------------------------------------------------------------------------------------- */

/* A quick way of what the Python function `pure` does. `name` is the name of the ufunc, where there is one. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *pure, *name;
    PyObject *weakrefs;
} Quick;

#define PURE PyObject_Vectorcall(((Quick *)quick)->pure, args, flags, names)
#define GIVEN(count) (is_on && names == NULL && PyVectorcall_NARGS(flags) == (count))
#define NAME (((Quick *)quick)->name)
#define WAY(way) static PyObject *way(PyObject *quick, PyObject *const *args, size_t flags, PyObject *names)

#define MADE_OR_PURE(made) ((made) != NULL || PyErr_Occurred() ? (made) : PURE)

/* ``left op right``: a plain array and another of the same client, or a number of Python's or NumPy's. */
static PyObject *binary_of(PyObject *name, PyObject *array, PyObject *other, PyObject *left, PyObject *right)
{
    PyObject *operands[] = {left, right}, *client, *rows = NULL;
    if (!is_plain(array))
        return NULL;
    client = AT(array, in_array.client);
    if (is_plain(other) ? AT(other, in_array.client) != client : !is_number(other) && is_scalar(other) <= 0)
        return NULL;
    if (note_rows(array, &rows) <= 0 || (is_plain(other) && note_rows(other, &rows) <= 0)) {
        Py_XDECREF(rows);
        return NULL;
    }
    PyObject *key = tuple_of(3, (PyObject *[]){name, seen(left), seen(right)});
    return apply(client, rows, key, is_number(other) ? other : NULL, operands, 2, NULL);
}

WAY(binary)
{
    PyObject *made = GIVEN(2) ? binary_of(NAME, args[0], args[1], args[0], args[1]) : NULL;
    return MADE_OR_PURE(made);
}

WAY(reflected)
{
    PyObject *made = GIVEN(2) && !is_plain(args[1]) ? binary_of(NAME, args[0], args[1], args[1], args[0]) : NULL;
    return MADE_OR_PURE(made);
}

WAY(inplace)
{
    PyObject *made = NULL;
    if (GIVEN(2) && is_plain(args[0])) {
        PyObject *target = args[0], *other = args[1], *client = AT(target, in_array.client);
        if (is_plain(other) ? AT(other, in_array.client) == client : is_number(other) || is_scalar(other) > 0) {
            PyObject *operands[] = {target, other, target}, *rows = NULL;
            if (note_rows(target, &rows) > 0 && (!is_plain(other) || note_rows(other, &rows) > 0)) {
                PyObject *key = tuple_of(3, (PyObject *[]){seen(target), NAME, seen(other)});
                made = apply(client, Py_XNewRef(rows), key, is_number(other) ? other : NULL, operands, 3, target);
            }
            Py_XDECREF(rows);
        }
    }
    return MADE_OR_PURE(made);
}

/* ``op operand``, of a plain array. */
static PyObject *unary_of(PyObject *name, PyObject *const *operand)
{
    PyObject *rows = NULL;
    if (!is_plain(operand[0]) || note_rows(operand[0], &rows) <= 0)
        return NULL;
    PyObject *key = tuple_of(2, (PyObject *[]){name, seen(operand[0])});
    return apply(AT(operand[0], in_array.client), rows, key, NULL, operand, 1, NULL);
}

WAY(unary)
{
    PyObject *made = GIVEN(1) ? unary_of(NAME, args) : NULL;
    return MADE_OR_PURE(made);
}

/* A ufunc that is called; only what it takes has ever been remembered. */
WAY(ufunc)
{
    PyObject *made = NULL, *name = IS(args[0], Ufunc) ? AT(args[0], in_ufunc.verb) : NULL;
    if (name != NULL && GIVEN(2))
        made = unary_of(name, args + 1);
    else if (name != NULL && GIVEN(3))
        made = is_plain(args[1]) ? binary_of(name, args[1], args[2], args[1], args[2])
                                 : binary_of(name, args[2], args[1], args[1], args[2]);
    return MADE_OR_PURE(made);
}

#include "called.h"

/* ``x[key]``. */
WAY(getitem)
{
    PyObject *offset = NULL, *layout = NULL, *made = NULL;
    if (GIVEN(2) && is_plain(args[0]) && is_plain(args[1]))
        made = chosen_by(args[0], args[1]);
    else if (GIVEN(2) && is_plain(args[0]) && find_window(AT(args[0], in_array.layout), args[1], &offset, &layout) > 0)
        made = window_on(args[0], offset, layout);
    Py_XDECREF(offset);
    Py_XDECREF(layout);
    return MADE_OR_PURE(made);
}

/* A method that only looks in another way, of axes or lengths that were given before. */
WAY(looked)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *made = is_on && names == NULL && count > 0 ? look_again(args[0], NAME, args + 1, count - 1) : NULL;
    return MADE_OR_PURE(made);
}

/* ``x[key] = value``: nothing where that is the very window, as ``x[key] += y`` ends. */
WAY(setitem)
{
    PyObject *offset = NULL, *layout = NULL, *made = NULL;
    if (GIVEN(3) && is_plain(args[0]) && is_plain(args[1]))
        made = store_by_mask(args[0], args[1], args[2]);
    else if (GIVEN(3) && is_plain(args[0]) && (is_plain(args[2]) || is_number(args[2]))
        && find_window(AT(args[0], in_array.layout), args[1], &offset, &layout) > 0) {
        int is_there = is_plain(args[2]) ? is_window(args[2], args[0], offset, layout) : 0;
        made = is_there ? is_there < 0 ? NULL : Py_NewRef(Py_None) : store(args[0], offset, layout, args[2]);
    }
    Py_XDECREF(offset);
    Py_XDECREF(layout);
    return MADE_OR_PURE(made);
}

/* The end of an array. */
WAY(end)
{
    if (!GIVEN(1) || !IS(args[0], array_class))
        return PURE;
    PyObject *dropped = AT(args[0], in_array.dropped), *ref = AT(args[0], in_array.ref);
    if (dropped == NULL || dropped == Py_None)
        Py_RETURN_NONE;
    if (!IS(ref, Ref) || AT(args[0], in_array.layout) == NULL)
        return PURE;
    PyObject *pair = tuple_of(2, (PyObject *[]){AT(ref, in_ref.handle), AT(args[0], in_array.layout)});
    PyObject *done = pair == NULL ? NULL : call_method(&to_append, dropped, s_append, pair);
    Py_XDECREF(pair);
    return done;
}

WAY(small)
{
    return GIVEN(3) && array_class != NULL ? owner(args[0], args[1], args[2]) : PURE;
}

WAY(view_of)
{
    if (GIVEN(3) && array_class != NULL && is_plain(args[0]) && PyLong_CheckExact(args[1]) && IS(args[2], Layout)
        && IS(AT(args[0], in_array.layout), Layout))
        return window_on(args[0], args[1], args[2]);
    return PURE;
}

WAY(site)
{
    return GIVEN(1) && PyLong_CheckExact(args[0]) ? site_above(PyLong_AsLong(args[0]) - 1) : PURE;
}

/* `Recorder.note`, for who calls it. */
WAY(noted)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (!is_on || count < 4 || count > 6 || names != NULL || Recorder == NULL
        || !PyObject_TypeCheck(args[0], (PyTypeObject *)Recorder) || !IS(args[1], Form) || !PyTuple_CheckExact(args[2])
        || !PyLong_CheckExact(args[3]))
        return PURE;
    long depth = PyLong_AsLong(args[3]);
    return note(args[0], args[1], args[2], depth - 2, count > 4 ? args[4] : Py_None, count > 5 ? args[5] : zero);
}

/* `Pipeline.ask`, of an op that brings no buffers. */
WAY(asked)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (!is_on || names != NULL || count < 4 || count > 7 || Inbox == NULL || looking == NULL
        || !PyObject_TypeCheck(args[0], (PyTypeObject *)Recorder) || !PyTuple_CheckExact(args[2])
        || (count > 5 && args[5] != Py_None && PyObject_IsTrue(args[5])))
        return PURE;
    PyObject *seq = ask(args[0], args[1], args[2], args[3], count > 4 ? args[4] : Py_None, count > 6 ? args[6] : zero);
    return MADE_OR_PURE(seq);
}

/* `Pipeline.answer`. */
WAY(answered)
{
    PyObject *found = GIVEN(2) && Inbox != NULL && PyObject_TypeCheck(args[0], (PyTypeObject *)Recorder)
        ? answer(args[0], args[1]) : NULL;
    return MADE_OR_PURE(found);
}

/* `Pipeline.flush`. */
WAY(flushed)
{
    PyObject *done = GIVEN(1) && Inbox != NULL && PyObject_TypeCheck(args[0], (PyTypeObject *)Recorder) ? flush(args[0]) : NULL;
    return MADE_OR_PURE(done);
}

/* `Inbox.note`, of a reply that came in one part. */
WAY(heard)
{
    if (!GIVEN(3) || !IS(args[0], Inbox) || !is_whole(args[0], args[1], args[2]))
        return PURE;
    if (note_reply(args[0], args[1], args[2]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* `launches.launched`. */
WAY(launched)
{
    PyObject *made = GIVEN(6) && Returned != NULL && PyTuple_CheckExact(args[3]) && PyTuple_CheckExact(args[4])
            && PyTuple_CheckExact(args[5])
        ? launch_again(args[0], args[1], args[2], args[3], args[4], args[5]) : NULL;
    return MADE_OR_PURE(made);
}

static struct { const char *kind; vectorcallfunc call; } ways[] = {
    {"binary", binary}, {"reflected", reflected}, {"inplace", inplace}, {"unary", unary}, {"getitem", getitem},
    {"looked", looked}, {"setitem", setitem}, {"end", end}, {"small", small}, {"view_of", view_of}, {"site", site},
    {"note", noted}, {"ufunc", ufunc}, {"call", call}, {"ask", asked}, {"answer", answered}, {"flush", flushed}, {"hear", heard},
    {"launched", launched}, {"method", called}, {"matmul", matmul}, {NULL, NULL},
};

#include "quick.h"

/* --- the module --------------------------------------------------------------------------------------------------- */

static PyObject *quick_way(PyObject *module, PyObject *args)
{
    const char *kind;
    PyObject *pure, *name = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO|O", &kind, &pure, &name))
        return NULL;
    for (int i = 0; ways[i].kind != NULL; i++) {
        if (strcmp(ways[i].kind, kind) != 0)
            continue;
        Quick *made = PyObject_New(Quick, &QuickType);
        if (made != NULL) {
            made->call = ways[i].call;
            made->pure = Py_NewRef(pure);
            made->name = Py_XNewRef(name);
            made->weakrefs = NULL;
        }
        return (PyObject *)made;
    }
    return PyErr_Format(PyExc_ValueError, "there is no quick way of %s", kind);
}

static int find_slots(PyObject **of)
{
    for (int i = 0; slots[i].type != NULL; i++) {
        if (slots[i].type != of)
            continue;
        PyObject *slot = PyObject_GetAttrString(*of, slots[i].name);
        if (slot == NULL)
            return -1;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s of %R is no slot", slots[i].name, *of);
            Py_DECREF(slot);
            return -1;
        }
        *slots[i].place = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_DECREF(slot);
    }
    return 0;
}

static PyObject *learn(PyObject *module, PyObject *args, PyObject *given)
{
    PyObject *key, *value;
    Py_ssize_t place = 0;
    (void)module;
    if (PyTuple_GET_SIZE(args))
        return PyErr_Format(PyExc_TypeError, "parts are given by name");
    while (given != NULL && PyDict_Next(given, &place, &key, &value)) {
        int i = 0;
        while (parts[i].name != NULL && PyUnicode_CompareWithASCIIString(key, parts[i].name) != 0)
            i++;
        if (parts[i].name == NULL)
            return PyErr_Format(PyExc_TypeError, "no part is called %R", key);
        Py_XSETREF(*parts[i].value, Py_NewRef(value));
        if (find_slots(parts[i].value) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *use(PyObject *module, PyObject *wanted)
{
    int was = is_on, now = PyObject_IsTrue(wanted);
    (void)module;
    if (now < 0)
        return NULL;
    is_on = now;
    return PyBool_FromLong(was);
}

static PyMethodDef functions[] = {
    {"use", use, METH_O, "Take the quick ways from now on, or none of them; return whether they were taken."},
    {"quick", quick_way, METH_VARARGS, "Return the quick way of a kind, which goes the Python one where it must."},
    {"learn", (PyCFunction)(void (*)(void))learn, METH_VARARGS | METH_KEYWORDS, "Take the parts that ways deal with."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", "The compiled core of recording; see kernelproxy/compiled.py.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__core(void)
{
    for (int i = 0; texts[i].value != NULL; i++)
        if ((*texts[i].value = PyUnicode_InternFromString(texts[i].text)) == NULL)
            return NULL;
    if ((no_names = PyDict_New()) == NULL || (zero = PyLong_FromLong(0)) == NULL || (one = PyLong_FromLong(1)) == NULL
        || (never = PyFloat_FromDouble(0)) == NULL || PyType_Ready(&QuickType) < 0 || PyType_Ready(&LockType) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&definition);
    if (made != NULL && PyModule_AddObjectRef(made, "Lock", (PyObject *)&LockType) < 0)
        Py_CLEAR(made);
    return made;
}
