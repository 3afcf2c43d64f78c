/* Messages of one frame that lie whole in a ring: see ../whole.py.

   What a peer has written is copied before it is looked at; whatever it claims, no more is read than the ring holds. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* What stands before a frame: a u32, how many there are, and a u64, how long it is. */
enum { HEAD_BYTES = 12 };

/* The words of both rings, and one of the rings. */
typedef struct {
    Py_buffer words, ring;
} Memory;

static void release(Memory *memory)
{
    PyBuffer_Release(&memory->words);
    PyBuffer_Release(&memory->ring);
}

static int open_memory(PyObject *words, PyObject *ring, Memory *memory)
{
    if (PyObject_GetBuffer(words, &memory->words, PyBUF_WRITABLE) < 0)
        return -1;
    if (PyObject_GetBuffer(ring, &memory->ring, PyBUF_WRITABLE) < 0) {
        PyBuffer_Release(&memory->words);
        return -1;
    }
    return 0;
}

/* The word at a place; NULL with an error if there is none. */
static uint64_t *word(Memory *memory, PyObject *place)
{
    Py_ssize_t at = PyLong_AsSsize_t(place);
    if (at == -1 && PyErr_Occurred())
        return NULL;
    if (at < 0 || at >= memory->words.len / (Py_ssize_t)sizeof(uint64_t)) {
        PyErr_Format(PyExc_IndexError, "there is no word %zd", at);
        return NULL;
    }
    return (uint64_t *)memory->words.buf + at;
}

/* Copy out of the ring, around its end if need be. */
static void copy_out(const Py_buffer *ring, uint64_t from, char *to, uint64_t size)
{
    uint64_t length = (uint64_t)ring->len, at = from % length, first = size < length - at ? size : length - at;
    memcpy(to, (const char *)ring->buf + at, first);
    memcpy(to + first, ring->buf, size - first);
}

static void copy_in(const Py_buffer *ring, uint64_t to, const char *from, uint64_t size)
{
    uint64_t length = (uint64_t)ring->len, at = to % length, first = size < length - at ? size : length - at;
    memcpy((char *)ring->buf + at, from, first);
    memcpy(ring->buf, from + first, size - first);
}

/* The frame, once its words are known; NULL without an error if what lies there is no such message. */
static PyObject *frame_of(const Py_buffer *ring, uint64_t put, uint64_t taken)
{
    uint64_t there = put - taken, size;
    uint32_t frames;
    char head[HEAD_BYTES];
    if (there <= HEAD_BYTES || there > (uint64_t)ring->len)
        return NULL;
    copy_out(ring, taken, head, HEAD_BYTES);
    memcpy(&frames, head, sizeof frames);
    memcpy(&size, head + sizeof frames, sizeof size);
    if (frames != 1 || size == 0 || size > there - HEAD_BYTES)
        return NULL;
    PyObject *frame = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (frame != NULL)
        copy_out(ring, taken + HEAD_BYTES, PyBytes_AS_STRING(frame), size);
    return frame;
}

static PyObject *take(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Memory memory;
    if (count != 5)
        return PyErr_Format(PyExc_TypeError, "words, two places, a number and a ring are wanted");
    uint64_t taken = PyLong_AsUnsignedLongLong(args[3]), *put_at, *taken_at;
    if (PyErr_Occurred() || open_memory(args[0], args[4], &memory) < 0)
        return NULL;
    PyObject *frame = NULL;
    if ((put_at = word(&memory, args[1])) != NULL && (taken_at = word(&memory, args[2])) != NULL) {
        frame = frame_of(&memory.ring, __atomic_load_n(put_at, __ATOMIC_ACQUIRE), taken);
        if (frame != NULL)
            __atomic_store_n(taken_at, taken + HEAD_BYTES + (uint64_t)PyBytes_GET_SIZE(frame), __ATOMIC_RELEASE);
    }
    release(&memory);
    if (frame == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return frame;
}

/* Put the message in, if there is room for all of it: how many bytes that took. */
static uint64_t put_in(const Py_buffer *ring, uint64_t *put_at, uint64_t put, uint64_t taken, const Py_buffer *frame)
{
    uint64_t lies = put - taken, size = (uint64_t)frame->len, length = (uint64_t)ring->len;
    uint32_t frames = 1;
    char head[HEAD_BYTES];
    if (size == 0 || lies > length || size > length || HEAD_BYTES + size > length - lies)
        return 0;
    memcpy(head, &frames, sizeof frames);
    memcpy(head + sizeof frames, &size, sizeof size);
    copy_in(ring, put, head, HEAD_BYTES);
    copy_in(ring, put + HEAD_BYTES, frame->buf, size);
    __atomic_store_n(put_at, put + HEAD_BYTES + size, __ATOMIC_SEQ_CST);
    return HEAD_BYTES + size;
}

static PyObject *put(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Memory memory;
    Py_buffer frame;
    if (count != 6)
        return PyErr_Format(PyExc_TypeError, "words, two places, a number, a ring and a frame are wanted");
    uint64_t put = PyLong_AsUnsignedLongLong(args[3]), *put_at, *taken_at, size = 0;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[5], &frame, PyBUF_SIMPLE) < 0)
        return NULL;
    if (open_memory(args[0], args[4], &memory) == 0) {
        if ((put_at = word(&memory, args[1])) != NULL && (taken_at = word(&memory, args[2])) != NULL)
            size = put_in(&memory.ring, put_at, put, __atomic_load_n(taken_at, __ATOMIC_ACQUIRE), &frame);
        release(&memory);
    }
    PyBuffer_Release(&frame);
    return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(size);
}

static PyMethodDef functions[] = {
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, "As `whole.take`."},
    {"put", (PyCFunction)(void (*)(void))put, METH_FASTCALL, "As `whole.put`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "gpu_backend.transport._whole", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__whole(void)
{
    return PyModule_Create(&definition);
}
