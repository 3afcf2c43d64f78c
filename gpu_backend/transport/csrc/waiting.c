/* Waiting awake for a number in shared memory to change: see ../waiting.py.

   A processor that looks as fast as it can takes from the one beside it in the same core what that needs to bring about
   the change. So there is a rest after each look, by the instruction that is for this. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

/* So many looks between two at the clock: about a microsecond. */
enum { LOOKS = 16 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void rest(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static int changes_before(const uint64_t *word, uint64_t seen, double until)
{
    for (;;) {
        for (int look = 0; look < LOOKS; look++) {
            if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != seen)
                return 1;
            rest();
        }
        if (now() >= until)
            return 0;
    }
}

static PyObject *changes(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "words, a place, a number and a time are wanted");
    Py_ssize_t place = PyLong_AsSsize_t(args[1]);
    uint64_t seen = PyLong_AsUnsignedLongLong(args[2]);
    double until = PyFloat_AsDouble(args[3]);
    Py_buffer words;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &words, PyBUF_SIMPLE) < 0)
        return NULL;
    int is_there = place >= 0 && place < words.len / (Py_ssize_t)sizeof(uint64_t);
    int has_changed = is_there && changes_before((const uint64_t *)words.buf + place, seen, until);
    PyBuffer_Release(&words);
    if (!is_there)
        return PyErr_Format(PyExc_IndexError, "there is no word %zd", place);
    return PyBool_FromLong(has_changed);
}

static PyMethodDef functions[] = {
    {"changes", (PyCFunction)(void (*)(void))changes, METH_FASTCALL, "As `waiting.changes`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "gpu_backend.transport._waiting", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__waiting(void)
{
    return PyModule_Create(&definition);
}
