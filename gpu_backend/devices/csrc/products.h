/* Products of matrices that lie in one way, at addresses of each call. Part of launching.c. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Launcher *launcher;
    PyObject *handle_of;
    Product product;
} Products;

static int give_product(Launcher *self, const Product *one)
{
    int status;
    if (is_left(self, up_to_16(sizeof *one))) {
        memcpy(room_for(self->queue, up_to_16(sizeof *one)), one, sizeof *one);
        add(self->queue, up_to_16(sizeof *one));
        self->left++;
        return 0;
    }
    if (await_all(self) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = multiply(one);
    Py_END_ALLOW_THREADS
    return status ? fail(self, status, 0, 1) : 0;
}

static PyObject *multiply_these(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    Products *self = (Products *)object;
    if (PyVectorcall_NARGS(count) != 4 || names != NULL)
        return PyErr_Format(PyExc_TypeError, "four addresses are wanted");
    PyObject *handle = PyObject_CallNoArgs(self->handle_of);
    if (handle == NULL)
        return NULL;
    Product one = self->product;
    one.handle = PyLong_AsVoidPtr(handle);
    Py_DECREF(handle);
    one.b = PyLong_AsVoidPtr(args[0]); /* rows are columns there, so the second comes first */
    one.a = PyLong_AsVoidPtr(args[1]);
    one.c = PyLong_AsVoidPtr(args[2]);
    if (PyErr_Occurred() || give_product(self->launcher, &one) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static void products_dealloc(Products *self)
{
    Py_XDECREF(self->handle_of);
    Py_XDECREF(self->launcher);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject ProductsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "gpu_backend.devices._launching.Products",
    .tp_basicsize = sizeof(Products),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Products of matrices that lie in one way: one is made by each call.",
    .tp_dealloc = (destructor)products_dealloc,
    .tp_vectorcall_offset = offsetof(Products, call),
    .tp_call = PyVectorcall_Call,
};

static PyObject *products(Launcher *self, PyObject *args)
{
    unsigned long long gemm, set_stream, alpha, beta;
    PyObject *handle_of;
    Product one = {.kind = PRODUCT};
    if (!PyArg_ParseTuple(
            args, "KKOKK(iiiiiiiiiii)", &gemm, &set_stream, &handle_of, &alpha, &beta, &one.transa, &one.transb, &one.m, &one.n,
            &one.k, &one.type, &one.lda, &one.ldb, &one.ldc, &one.computed, &one.algorithm))
        return NULL;
    Products *made = PyObject_New(Products, &ProductsType);
    if (made == NULL)
        return NULL;
    one.multiply = (GemmEx)(uintptr_t)gemm;
    one.set_stream = (SetStream)(uintptr_t)set_stream;
    one.alpha = (const void *)(uintptr_t)alpha;
    one.beta = (const void *)(uintptr_t)beta;
    made->call = multiply_these;
    made->launcher = (Launcher *)Py_NewRef(self);
    made->handle_of = Py_NewRef(handle_of);
    made->product = one;
    return (PyObject *)made;
}
