/* Messages that lie whole in a ring: see ../whole.py.

   What a peer has written is copied before it is looked at; whatever it claims, no more is read than the ring holds. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* What stands before a frame: a u32, how many there are, and a u64 for each, how long it is. */
enum { COUNT_BYTES = 4, LENGTH_BYTES = 8, HEAD_BYTES = COUNT_BYTES + LENGTH_BYTES };
/* Set in the length of one that lies in a block. */
static const uint64_t in_block = (uint64_t)1 << 63;

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

/* What stands before the frame that is taken, or put in. `beside` is the length of another that lies in a block; or 0. */
typedef struct {
    uint64_t bytes, size, beside;
} Head;

/* 1 if what lies there is such a message, whole. */
static int read_head(const Py_buffer *ring, uint64_t there, uint64_t taken, Head *head)
{
    uint32_t frames;
    char copied[HEAD_BYTES + LENGTH_BYTES];
    if (there <= HEAD_BYTES || there > (uint64_t)ring->len)
        return 0;
    copy_out(ring, taken, copied, there < sizeof copied ? HEAD_BYTES : sizeof copied);
    memcpy(&frames, copied, COUNT_BYTES);
    memcpy(&head->size, copied + COUNT_BYTES, LENGTH_BYTES);
    head->bytes = HEAD_BYTES, head->beside = 0;
    if (frames == 2 && there > sizeof copied) {
        head->bytes = sizeof copied;
        memcpy(&head->beside, copied + HEAD_BYTES, LENGTH_BYTES);
    }
    return frames - 1 == head->beside >> 63 && head->size != 0 && head->size <= there - head->bytes;
}

/* The frame, once its words are known; NULL without an error if what lies there is no such message. */
static PyObject *frame_of(const Py_buffer *ring, uint64_t there, uint64_t taken, Head *head)
{
    if (!read_head(ring, there, taken, head))
        return NULL;
    PyObject *frame = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)head->size);
    if (frame != NULL)
        copy_out(ring, taken + head->bytes, PyBytes_AS_STRING(frame), head->size);
    return frame;
}

static PyObject *take(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Memory memory;
    Head head = {0, 0, 0};
    if (count != 5)
        return PyErr_Format(PyExc_TypeError, "words, two places, a number and a ring are wanted");
    uint64_t taken = PyLong_AsUnsignedLongLong(args[3]), *put_at, *taken_at;
    if (PyErr_Occurred() || open_memory(args[0], args[4], &memory) < 0)
        return NULL;
    PyObject *frame = NULL;
    if ((put_at = word(&memory, args[1])) != NULL && (taken_at = word(&memory, args[2])) != NULL) {
        frame = frame_of(&memory.ring, __atomic_load_n(put_at, __ATOMIC_ACQUIRE) - taken, taken, &head);
        if (frame != NULL && head.beside)
            frame = Py_BuildValue("(NK)", frame, head.beside ^ in_block);
        if (frame != NULL)
            __atomic_store_n(taken_at, taken + head.bytes + head.size, __ATOMIC_RELEASE);
    }
    release(&memory);
    if (frame == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return frame;
}

/* Put the message in, if there is room for all of it: how many bytes that took. */
static uint64_t put_in(const Py_buffer *ring, uint64_t *put_at, uint64_t put, uint64_t lies, Head head, const char *frame)
{
    uint64_t length = (uint64_t)ring->len;
    uint32_t frames = head.beside ? 2 : 1;
    char written[HEAD_BYTES + LENGTH_BYTES];
    if (head.size == 0 || lies > length || head.size > length || head.bytes + head.size > length - lies)
        return 0;
    memcpy(written, &frames, COUNT_BYTES);
    memcpy(written + COUNT_BYTES, &head.size, LENGTH_BYTES);
    memcpy(written + HEAD_BYTES, &head.beside, LENGTH_BYTES);
    copy_in(ring, put, written, head.bytes);
    copy_in(ring, put + head.bytes, frame, head.size);
    __atomic_store_n(put_at, put + head.bytes + head.size, __ATOMIC_SEQ_CST);
    return head.bytes + head.size;
}

static PyObject *put(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Memory memory;
    Py_buffer frame;
    if (count != 7)
        return PyErr_Format(PyExc_TypeError, "words, two places, a number, a ring, a frame and a number are wanted");
    uint64_t put = PyLong_AsUnsignedLongLong(args[3]), *put_at, *taken_at, size = 0;
    uint64_t beside = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(args[6]);
    if (PyErr_Occurred() || PyObject_GetBuffer(args[5], &frame, PyBUF_SIMPLE) < 0)
        return NULL;
    if (open_memory(args[0], args[4], &memory) == 0) {
        if ((put_at = word(&memory, args[1])) != NULL && (taken_at = word(&memory, args[2])) != NULL) {
            Head head = {HEAD_BYTES, (uint64_t)frame.len, 0};
            if (beside)
                head.bytes += LENGTH_BYTES, head.beside = in_block | beside;
            size = put_in(&memory.ring, put_at, put, put - __atomic_load_n(taken_at, __ATOMIC_ACQUIRE), head, frame.buf);
        }
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
