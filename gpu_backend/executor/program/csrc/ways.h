/* Ways in which ops come: what tells them apart, and what is done for an op that comes in one again. Part of recurring.c.

   What tells ways apart is written as bytes: the name, for each operand how it lies (the address of its layout, and of a
   window its geometry as well), a kernel of the user's by its address, and all other arguments as they are. The way
   keeps alive what is told by its address. Places in memory, offsets of windows and numbers among the operands are not
   in it: they are new each time. */

enum { MOST_OPERANDS = 16, MOST_BLOCKS = 8, MOST_KEY = 1024, MOST_WAYS = 1 << 14, TABLE = 1 << 15 };
enum { INSTRUCTION = 160, HEADER = 16, PLACES = 32, VALUES = 128, VALUE = 16, MOST_VALUES = 2, MOST_PLACES = 4, MOST_ARGUMENTS = 8 };

typedef struct {
    /* Where its memory begins; and of an array the first byte and the one after its last, counted from there. */
    unsigned long long address;
    long long offset;
    /* The place of the array, or of a window's root; NULL for a number, which is `number`. Borrowed. */
    PyObject *place, *number;
    int is_view;
} Operand;

typedef struct {
    long long low, high, root_low, root_high;
    Py_ssize_t itemsize;
    /* How it lies, to know which two lie alike. Borrowed from `Way.held`. */
    PyObject *layout;
} Lying;

typedef struct {
    int source;
    long long displacement;
} Source;

/* A number's place in an instruction or among parameters, and the character of the type in which it is read there. */
typedef struct {
    Py_ssize_t at;
    int operand;
    char type;
    Py_ssize_t itemsize;
} Slot;

typedef struct {
    PyObject *code;
    unsigned char template[INSTRUCTION];
    Py_ssize_t elements;
    int places, values;
    Source sources[MOST_PLACES];
    Slot slots[MOST_VALUES];
} Instruction;

typedef struct {
    Py_ssize_t at;
    Source source;
} Patch;

typedef struct {
    unsigned char *key;
    Py_ssize_t length;
    unsigned long long hash;
    /* What it was learnt from, which is kept alive with all that is borrowed from it: layouts, codes, sizes. */
    PyObject *known_by, *recipe, *held;
    /* How many operands it has; below zero for a way that nothing recurs in. */
    int operands, blocks, made, has_out, may_coincide, into, mixes_nans, fills, for_now;
    Lying lying[MOST_OPERANDS];
    PyObject *sizes[MOST_BLOCKS], *layouts[MOST_BLOCKS];
    Py_ssize_t alignment;
    int instructions, patches, slots;
    Instruction *instruction;
    /* Of what is launched by itself, behind the instructions: what launches it, whether all is there that it leads to,
       its parameters, and the addresses that it is called with. */
    PyObject *launch, *holds, *parameters;
    Patch *patch;
    Slot *slot;
    int arguments;
    Source argument[MOST_ARGUMENTS];
} Way;

typedef struct {
    unsigned char bytes[MOST_KEY];
    Py_ssize_t length;
    int operands;
    Operand operand[MOST_OPERANDS];
    /* The user's kernel that is called, borrowed; NULL for any other op. Whether its numbers count by their bits. */
    PyObject *kernel;
    int is_by_bits;
} Key;

/* How functions take operands: so many that go element by element; otherwise; as a kernel of the user's; only CuPy knows. */
enum { OTHERWISE = 0, AS_KERNEL = -1, UNKNOWN = -2 };
/* Where in a launch what the kernel is given stands. */
enum { GIVEN = 3 };

static void free_way(Way *way)
{
    if (way == NULL)
        return;
    PyMem_Free(way->key);
    PyMem_Free(way->instruction);
    PyMem_Free(way->patch);
    PyMem_Free(way->slot);
    Py_XDECREF(way->known_by);
    Py_XDECREF(way->recipe);
    Py_XDECREF(way->held);
    PyMem_Free(way);
}

/* --- the key: 1 if it could be written, 0 if such an op is for others, -1 with an error ---------------------------- */

static int add_bytes(Key *key, const void *bytes, Py_ssize_t length)
{
    if (length > MOST_KEY - key->length)
        return 0;
    memcpy(key->bytes + key->length, bytes, length);
    key->length += length;
    return 1;
}

static int add_word(Key *key, char tag, const void *word)
{
    if (MOST_KEY - key->length < 9)
        return 0;
    key->bytes[key->length] = tag;
    memcpy(key->bytes + key->length + 1, word, 8);
    key->length += 9;
    return 1;
}

static int add_text(Key *key, char tag, PyObject *text)
{
    Py_ssize_t length;
    const char *bytes = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
    if (bytes == NULL) {
        PyErr_Clear();
        return 0;
    }
    long long told = length;
    return add_word(key, tag, &told) && add_bytes(key, bytes, length);
}

static int add_int(Key *key, char tag, PyObject *number)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow && add_word(key, tag, &value);
}

static int add_ints(Key *key, char tag, PyObject *numbers)
{
    if (!PyTuple_CheckExact(numbers))
        return 0;
    long long length = PyTuple_GET_SIZE(numbers);
    if (!add_word(key, tag, &length))
        return 0;
    for (Py_ssize_t i = 0; i < length; i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(numbers, i)) || !add_int(key, 'i', PyTuple_GET_ITEM(numbers, i)))
            return 0;
    return 1;
}

static PyObject *known_place(PyObject *known, PyObject *handle)
{
    PyObject *place = PyDict_GetItemWithError(known, handle);
    return place != NULL && IS(place, Place) ? place : NULL;
}

static int add_operand(Key *key, PyObject *known, PyObject *arg)
{
    int is_view = IS(arg, View);
    if (key->operands == MOST_OPERANDS)
        return 0;
    Operand *operand = &key->operand[key->operands++];
    PyObject *place = known_place(known, AT(arg, is_view ? in_view.root : in_ref));
    if (place == NULL)
        return PyErr_Occurred() ? -1 : 0;
    operand->place = place;
    operand->number = NULL;
    operand->is_view = is_view;
    operand->offset = 0;
    operand->address = PyLong_AsUnsignedLongLong(AT(place, in_place.address));
    if (PyErr_Occurred())
        return -1;
    if (!add_word(key, is_view ? 'V' : 'R', &AT(place, in_place.layout)))
        return 0;
    if (!is_view)
        return 1;
    int overflow;
    operand->offset = PyLong_AsLongLongAndOverflow(AT(arg, in_view.offset), &overflow);
    if (overflow || operand->offset > (1LL << 60) || operand->offset < -(1LL << 60))
        return 0;
    operand->address += operand->offset;
    return add_ints(key, 's', AT(arg, in_view.shape)) && add_ints(key, 't', AT(arg, in_view.strides)) &&
           add_text(key, 'd', AT(arg, in_view.dtype)) && add_text(key, 'o', AT(arg, in_view.order));
}

static int add_number(Key *key, PyObject *arg)
{
    if (key->operands == MOST_OPERANDS)
        return 0;
    char tag = PyFloat_CheckExact(arg) ? 'f' : PyBool_Check(arg) ? 'b' : PyLong_CheckExact(arg) ? 'l' :
               IS(arg, Complex) ? 'c' : IS(arg, Scalar) ? 'n' : 0;
    if (!tag)
        return 0;
    Operand *operand = &key->operand[key->operands++];
    operand->place = NULL;
    operand->number = arg;
    long long nothing = 0;
    return tag == 'n' ? add_text(key, tag, AT(arg, in_scalar.dtype)) : add_word(key, tag, &nothing);
}

static int add_data(Key *key, PyObject *data)
{
    if (!PyBytes_CheckExact(data))
        return 0;
    long long length = PyBytes_GET_SIZE(data);
    return add_word(key, 'B', &length) && add_bytes(key, PyBytes_AS_STRING(data), length);
}

/* Add an argument that is all there is to it. */
static int add_whole(Key *key, PyObject *arg)
{
    long long word = 0;
    if (arg == Py_None || PyBool_Check(arg))
        return add_word(key, arg == Py_None ? 'N' : arg == Py_True ? 'T' : 'F', &word);
    if (PyLong_CheckExact(arg))
        return add_int(key, 'I', arg);
    if (PyFloat_CheckExact(arg))
        return add_word(key, 'D', &((PyFloatObject *)arg)->ob_fval);
    if (PyUnicode_CheckExact(arg))
        return add_text(key, 'S', arg);
    if (IS(arg, DType))
        return add_text(key, 'Y', AT(arg, in_dtype));
    if (IS(arg, Scalar))
        return add_text(key, 'n', AT(arg, in_scalar.dtype)) && add_data(key, AT(arg, in_scalar.data));
    if (IS(arg, Complex))
        return add_word(key, 'c', &word) && add_whole(key, AT(arg, in_complex.real)) == 1 &&
               add_whole(key, AT(arg, in_complex.imag)) == 1;
    if (IS(arg, Ellipsis))
        return add_word(key, 'E', &word);
    if (IS(arg, Slice))
        return add_word(key, ':', &word) && add_whole(key, AT(arg, in_slice.start)) == 1 &&
               add_whole(key, AT(arg, in_slice.stop)) == 1 && add_whole(key, AT(arg, in_slice.step)) == 1;
    return 0;
}

static int add_other(Key *key, PyObject *known, PyObject *arg, int depth)
{
    int is_tuple = IS(arg, Tuple);
    if (!is_tuple && !IS(arg, List))
        return add_whole(key, arg);
    PyObject *items = AT(arg, is_tuple ? in_tuple : in_list);
    if (depth == 2 || !PyTuple_CheckExact(items))
        return 0;
    long long length = PyTuple_GET_SIZE(items);
    int added = add_word(key, is_tuple ? '(' : '[', &length);
    for (Py_ssize_t i = 0; added == 1 && i < length; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        added = IS(item, Ref) || IS(item, View) ? (known != NULL ? add_operand(key, known, item) : 0)
                                                : add_other(key, depth || known == NULL ? NULL : known, item, depth + 1);
    }
    return added;
}

static int add_named(Key *key, PyObject *kwargs)
{
    PyObject *name, *value;
    Py_ssize_t place = 0;
    if (kwargs == Py_None)
        return 1;
    if (!PyDict_CheckExact(kwargs))
        return 0;
    while (PyDict_Next(kwargs, &place, &name, &value))
        if (!add_text(key, '=', name) || add_other(key, NULL, value, 0) != 1)
            return 0;
    return 1;
}

/* Tell whether a whole number may be the address of memory that no argument names. */
static int may_be_address(unsigned long long value)
{
    return value >= 1ULL << 32 && value < 1ULL << 63;
}

/* Tell whether an argument of a call is a number whose value decides nothing but what the kernel computes. */
static int is_parameter(PyObject *arg)
{
    if (PyLong_CheckExact(arg)) {
        int overflow;
        long long value = PyLong_AsLongLongAndOverflow(arg, &overflow);
        return !overflow && (value < 0 || !may_be_address(value));
    }
    if (!IS(arg, Scalar))
        return PyFloat_CheckExact(arg) || IS(arg, Complex);
    PyObject *dtype = AT(arg, in_scalar.dtype), *data = AT(arg, in_scalar.data);
    const char *text = PyUnicode_Check(dtype) ? PyUnicode_AsUTF8(dtype) : NULL;
    if (text == NULL || strlen(text) < 2 || !PyBytes_CheckExact(data)) {
        PyErr_Clear();
        return 0;
    }
    unsigned long long value;
    if (strchr("iu", text[1]) == NULL)
        return strchr("fc", text[1]) != NULL;
    if (PyBytes_GET_SIZE(data) != sizeof value)
        return 1;
    memcpy(&value, PyBytes_AS_STRING(data), sizeof value);
    return !may_be_address(value);
}

/* Add what a launch gives to its kernel: its numbers are operands. */
static int add_given(Key *key, PyObject *known, PyObject *arg)
{
    PyObject *items = IS(arg, Tuple) ? AT(arg, in_tuple) : NULL;
    if (items == NULL || !PyTuple_CheckExact(items))
        return add_other(key, known, arg, 0);
    long long length = PyTuple_GET_SIZE(items);
    int added = add_word(key, '(', &length);
    for (Py_ssize_t i = 0; added == 1 && i < length; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        added = IS(item, Ref) || IS(item, View) ? add_operand(key, known, item)
                : is_parameter(item)            ? add_number(key, item)
                                                : add_other(key, known, item, 1);
    }
    return added;
}

/* Add a user's kernel; its launches are known by the bits of their numbers if it is one of ``by_bits``. */
static int add_kernel(Key *key, PyObject *objects, PyObject *by_bits, PyObject *args)
{
    PyObject *first = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : Py_None;
    key->kernel = IS(first, Ref) ? PyDict_GetItemWithError(objects, AT(first, in_ref)) : NULL;
    if (key->kernel == NULL)
        return PyErr_Occurred() ? -1 : 0;
    key->is_by_bits = PySet_Contains(by_bits, AT(first, in_ref));
    return key->is_by_bits < 0 ? -1 : add_word(key, 'K', &key->kernel);
}

/* Write the key of an op whose function takes its operands so. */
static int write_key(Key *key, PyObject *op, PyObject *known, PyObject *objects, PyObject *by_bits, int takes)
{
    PyObject *args = AT(op, in_op.args);
    key->length = key->operands = 0;
    key->kernel = NULL;
    int added = PyTuple_CheckExact(args) && add_text(key, takes > 0 ? 'E' : 'O', AT(op, in_op.name));
    if (added == 1 && takes == AS_KERNEL)
        added = add_kernel(key, objects, by_bits, args);
    for (Py_ssize_t i = key->kernel != NULL; added == 1 && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *arg = PyTuple_GET_ITEM(args, i);
        int has_numbers = key->kernel != NULL && !key->is_by_bits;
        added = IS(arg, Ref) || IS(arg, View)                      ? add_operand(key, known, arg)
                : takes > 0 || (has_numbers && is_parameter(arg)) ? add_number(key, arg)
                : has_numbers && i == GIVEN                       ? add_given(key, known, arg)
                                                                  : add_other(key, known, arg, 0);
    }
    if (added != 1)
        return added;
    if (takes > 0 && AT(op, in_op.kwargs) != Py_None)
        return 0;
    return add_named(key, AT(op, in_op.kwargs));
}

static unsigned long long hash_of(const Key *key)
{
    unsigned long long hash = 0xcbf29ce484222325ULL, word;
    Py_ssize_t i = 0;
    for (; i + 8 <= key->length; i += 8) {
        memcpy(&word, key->bytes + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 29;
    }
    for (; i < key->length; i++)
        hash = (hash ^ key->bytes[i]) * 0x100000001b3ULL;
    return hash ^ (hash >> 32);
}
