/* What ops drop, and memory that is spare: as `Heap.drop` and `Places` have it. Part of recurring.c. */

/* Keep the memory of a place without an array for ops to come; 0, or -1 with an error. */
static int spare_again(Recurring *self, PyObject *place)
{
    PyObject *block = AT(place, in_place.block);
    PyObject *size = PyTuple_Check(block) && PyTuple_GET_SIZE(block) == 3 ? PyTuple_GET_ITEM(block, 2) : NULL;
    if (size == NULL) {
        PyErr_SetString(PyExc_TypeError, "a place without an array has no block");
        return -1;
    }
    put(place, in_place.windows, Py_None);
    if (add_to(self->places, in_places.spare_bytes, PyLong_AsLongLong(size)) < 0)
        return -1;
    PyObject *list = PyDict_GetItemWithError(self->spare, size);
    if (list != NULL)
        return PyList_Append(list, place);
    if (PyErr_Occurred() || (list = PyList_New(1)) == NULL)
        return -1;
    PyList_SET_ITEM(list, 0, Py_NewRef(place));
    int set = PyDict_SetItem(self->spare, size, list);
    Py_DECREF(list);
    return set;
}

/* Return memory for what will lie so: what is spare, or new; NULL if there is none, or with an error. A new reference. */
static PyObject *take_memory(Recurring *self, PyObject *size, PyObject *layout)
{
    PyObject *list = PyDict_GetItemWithError(self->spare, size), *place;
    Py_ssize_t count = list != NULL ? PyList_GET_SIZE(list) : 0;
    if (!count) {
        if (PyErr_Occurred())
            return NULL;
        place = PyObject_CallFunctionObjArgs(self->allocate, layout, size, NULL);
        if (place != NULL && !IS(place, Place))
            Py_CLEAR(place);
        return place;
    }
    place = Py_NewRef(PyList_GET_ITEM(list, count - 1));
    put(place, in_place.layout, layout);
    if (PyList_SetSlice(list, count - 1, count, NULL) < 0 ||
        add_to(self->places, in_places.spare_bytes, -PyLong_AsLongLong(size)) < 0)
        Py_CLEAR(place);
    return place;
}

/* Forget a handle as `Heap.drop` does; 0, or -1 with an error. */
static int drop(Recurring *self, PyObject *handle)
{
    PyObject *place = PyDict_GetItemWithError(self->known, handle);
    if (place == NULL && PyErr_Occurred())
        return -1;
    if (place != NULL && IS(place, Place)) {
        int is_unmade = AT(place, in_place.array) == Py_None && AT(place, in_place.block) != Py_None;
        int done = is_unmade ? spare_again(self, place) : PyList_Append(self->kept, place);
        if (done < 0 || PyDict_DelItem(self->known, handle) < 0)
            return -1;
        if (is_unmade)
            return add_to(self->places, in_places.unmade, -1);
    }
    int is_alone = PyDict_GET_SIZE(self->views) ? 0 : PyDict_Contains(self->alone, handle);
    if (is_alone < 0)
        return -1;
    if (is_alone)
        return PyDict_DelItem(self->alone, handle) < 0 ? -1 : PyDict_DelItem(self->objects, handle);
    PyObject *done = PyObject_CallOneArg(self->drop, handle);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}
