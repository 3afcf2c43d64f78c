/* Numbers among operands, written as CuPy hands them to its kernels: where that is sure, as `write_number` of
   operands.py does, which has the rest. Part of recurring.c. */

static int write_real(unsigned char *at, char type, double value)
{
    if (isnan(value))
        return 0; /* with a payload, which not every copy keeps */
    if (type == 'd') {
        memcpy(at, &value, 8);
        return 1;
    }
    float narrow = (float)value;
    if (type != 'f' || (isinf(narrow) && !isinf(value)))
        return 0;
    memcpy(at, &narrow, 4);
    return 1;
}

static int write_whole(unsigned char *at, char type, long long value)
{
#define WHOLE(letter, kind, least, most) \
    case letter: \
        if (value < (least) || value > (most)) \
            return 0; \
        { \
            kind narrow = (kind)value; \
            memcpy(at, &narrow, sizeof narrow); \
        } \
        return 1;
    switch (type) {
        WHOLE('b', int8_t, INT8_MIN, INT8_MAX)
        WHOLE('B', uint8_t, 0, UINT8_MAX)
        WHOLE('h', int16_t, INT16_MIN, INT16_MAX)
        WHOLE('H', uint16_t, 0, UINT16_MAX)
        WHOLE('i', int32_t, INT32_MIN, INT32_MAX)
        WHOLE('I', uint32_t, 0, UINT32_MAX)
        WHOLE('q', int64_t, INT64_MIN, INT64_MAX)
        WHOLE('l', int64_t, INT64_MIN, INT64_MAX)
        WHOLE('Q', uint64_t, 0, INT64_MAX)
        WHOLE('L', uint64_t, 0, INT64_MAX)
    case 'd': /* as long as it is exact: what is larger is rounded, and by everybody differently */
        return llabs(value) <= 1LL << 53 && write_real(at, type, (double)value);
    case 'f':
        return llabs(value) <= 1LL << 24 && write_real(at, type, (double)value);
    }
    return 0;
#undef WHOLE
}

/* Write a number of a notebook's; 1 if it is sure how, else 0. */
static int write_number(unsigned char *at, const Slot *slot, PyObject *number)
{
    char part = slot->type == 'F' ? 'f' : slot->type == 'D' ? 'd' : 0;
    if (IS(number, Scalar)) {
        PyObject *data = AT(number, in_scalar.data);
        if (!PyBytes_CheckExact(data) || PyBytes_GET_SIZE(data) != slot->itemsize)
            return 0;
        memcpy(at, PyBytes_AS_STRING(data), slot->itemsize);
        return 1;
    }
    if (IS(number, Complex)) {
        PyObject *real = AT(number, in_complex.real), *imag = AT(number, in_complex.imag);
        return part && PyFloat_CheckExact(real) && PyFloat_CheckExact(imag) &&
               write_real(at, part, PyFloat_AS_DOUBLE(real)) &&
               write_real(at + slot->itemsize / 2, part, PyFloat_AS_DOUBLE(imag));
    }
    if (part)
        memset(at + slot->itemsize / 2, 0, slot->itemsize / 2);
    if (PyFloat_CheckExact(number))
        return write_real(at, part ? part : slot->type, PyFloat_AS_DOUBLE(number));
    if (slot->type == '?') {
        *at = number == Py_True;
        return PyBool_Check(number);
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow && value != LLONG_MIN && write_whole(at, part ? part : slot->type, value);
}

/* 1 if a zero with a sign might be filled into an array by a number: CuPy fills most with one that has none. */
static int may_lose_sign(PyObject *number)
{
    if (PyLong_Check(number))
        return 0;
    if (!PyFloat_CheckExact(number))
        return 1;
    double value = PyFloat_AS_DOUBLE(number);
    return fabs(value) <= 1e-7 && (value != 0 || signbit(value));
}

/* 1 if a scalar that was written may be NaN, or a part of it; of other numbers none is written that is. */
static int may_be_nan(const unsigned char *at, char type)
{
    double value = 0;
    float narrow = 0;
    if (type == 'd')
        memcpy(&value, at, 8);
    else if (type == 'f')
        memcpy(&narrow, at, 4);
    else
        return type == 'e' || type == 'F' || type == 'D';
    return isnan(value) || isnan(narrow);
}
