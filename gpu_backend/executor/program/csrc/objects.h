/* How the slots of Python's classes are read, and the handful that ops and places are made of. Part of recurring.c. */

#define AT(object, place) (*(PyObject **)((char *)(object) + (place)))
#define IS(object, type) ((PyObject *)Py_TYPE(object) == (type))

static PyObject *Op, *Ref, *View, *Scalar, *Complex, *DType, *Tuple, *List, *Slice, *Ellipsis, *Place, *Places, *Table;

static struct {
    Py_ssize_t args, drop, kwargs, name, orders, out, reuse, stream, want;
} in_op;
static struct {
    Py_ssize_t address, array, block, layout, windows;
} in_place;
static struct {
    Py_ssize_t kept, known, spare, spare_bytes, unmade;
} in_places;
static struct {
    Py_ssize_t elements, gathered, memory, ops, program;
} in_table;
static struct {
    Py_ssize_t dtype, offset, order, root, shape, strides;
} in_view;
static struct {
    Py_ssize_t data, dtype;
} in_scalar;
static struct {
    Py_ssize_t imag, real;
} in_complex;
static struct {
    Py_ssize_t start, step, stop;
} in_slice;
static Py_ssize_t in_ref, in_dtype, in_tuple, in_list;

static struct {
    const char *name;
    PyObject **value;
} parts[] = {
    {"Op", &Op}, {"Ref", &Ref}, {"View", &View}, {"Scalar", &Scalar}, {"Complex", &Complex}, {"DType", &DType},
    {"Tuple", &Tuple}, {"List", &List}, {"Slice", &Slice}, {"Ellipsis", &Ellipsis}, {"Place", &Place},
    {"Places", &Places}, {"Table", &Table}, {NULL, NULL},
};

static struct {
    PyObject **type;
    const char *name;
    Py_ssize_t *place;
} slots[] = {
    {&Op, "args", &in_op.args}, {&Op, "drop", &in_op.drop}, {&Op, "kwargs", &in_op.kwargs},
    {&Op, "name", &in_op.name}, {&Op, "orders", &in_op.orders}, {&Op, "out", &in_op.out},
    {&Op, "reuse", &in_op.reuse}, {&Op, "stream", &in_op.stream}, {&Op, "want", &in_op.want},
    {&Ref, "handle", &in_ref}, {&View, "dtype", &in_view.dtype}, {&View, "offset", &in_view.offset},
    {&View, "order", &in_view.order}, {&View, "root", &in_view.root}, {&View, "shape", &in_view.shape},
    {&View, "strides", &in_view.strides}, {&Scalar, "data", &in_scalar.data}, {&Scalar, "dtype", &in_scalar.dtype},
    {&Complex, "imag", &in_complex.imag}, {&Complex, "real", &in_complex.real}, {&DType, "descr", &in_dtype},
    {&Tuple, "items", &in_tuple}, {&List, "items", &in_list}, {&Slice, "start", &in_slice.start},
    {&Slice, "step", &in_slice.step}, {&Slice, "stop", &in_slice.stop}, {&Place, "address", &in_place.address},
    {&Place, "array", &in_place.array}, {&Place, "block", &in_place.block}, {&Place, "layout", &in_place.layout},
    {&Place, "windows", &in_place.windows}, {&Places, "kept", &in_places.kept}, {&Places, "known", &in_places.known},
    {&Places, "spare", &in_places.spare}, {&Places, "spare_bytes", &in_places.spare_bytes},
    {&Places, "unmade", &in_places.unmade}, {&Table, "elements", &in_table.elements}, {&Table, "gathered", &in_table.gathered},
    {&Table, "memory", &in_table.memory}, {&Table, "ops", &in_table.ops}, {&Table, "program", &in_table.program},
    {NULL, NULL, NULL},
};

static void put(PyObject *object, Py_ssize_t place, PyObject *value)
{
    PyObject *before = AT(object, place);
    AT(object, place) = Py_NewRef(value);
    Py_XDECREF(before);
}

/* Add to a number that stands in a slot; 0, or -1 with an error. */
static int add_to(PyObject *object, Py_ssize_t place, long long value)
{
    long long before = PyLong_AsLongLong(AT(object, place));
    if (before == -1 && PyErr_Occurred())
        return -1;
    PyObject *now = PyLong_FromLongLong(before + value);
    if (now == NULL)
        return -1;
    PyObject *old = AT(object, place);
    AT(object, place) = now;
    Py_DECREF(old);
    return 0;
}

/* Take up the classes, and find where their attributes lie; 0, or -1 with an error. */
static int learn_objects(PyObject *given)
{
    for (int i = 0; parts[i].name != NULL; i++) {
        PyObject *value = PyDict_GetItemString(given, parts[i].name);
        if (value == NULL) {
            PyErr_Format(PyExc_TypeError, "%s is missing", parts[i].name);
            return -1;
        }
        Py_XSETREF(*parts[i].value, Py_NewRef(value));
    }
    for (int i = 0; slots[i].type != NULL; i++) {
        PyObject *slot = PyObject_GetAttrString(*slots[i].type, slots[i].name);
        if (slot == NULL)
            return -1;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s of %R is no slot", slots[i].name, *slots[i].type);
            Py_DECREF(slot);
            return -1;
        }
        *slots[i].place = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_DECREF(slot);
    }
    return 0;
}
