/* Learning a way, and the class itself. Part of recurring.c. */

static int read_source(PyObject *given, Source *source)
{
    return PyArg_ParseTuple(given, "iL", &source->source, &source->displacement) ? 0 : -1;
}

static int read_slot(PyObject *given, Slot *slot)
{
    const char *type;
    if (!PyArg_ParseTuple(given, "nisn", &slot->at, &slot->operand, &type, &slot->itemsize))
        return -1;
    slot->type = type[0];
    return 0;
}

/* Read an instruction: its template, code and elements, where its places come from, and its numbers. */
static int read_instruction(PyObject *given, Instruction *one)
{
    const char *template;
    Py_ssize_t length;
    PyObject *sources, *values;
    if (!PyArg_ParseTuple(given, "y#OnO!O!", &template, &length, &one->code, &one->elements, &PyTuple_Type, &sources,
                          &PyTuple_Type, &values))
        return -1;
    if (length != INSTRUCTION || PyTuple_GET_SIZE(sources) > MOST_PLACES || PyTuple_GET_SIZE(values) > MOST_VALUES) {
        PyErr_SetString(PyExc_ValueError, "that is no instruction");
        return -1;
    }
    memcpy(one->template, template, INSTRUCTION);
    one->places = (int)PyTuple_GET_SIZE(sources);
    one->values = (int)PyTuple_GET_SIZE(values);
    for (int i = 0; i < one->places; i++)
        if (read_source(PyTuple_GET_ITEM(sources, i), &one->sources[i]) < 0)
            return -1;
    for (int i = 0; i < one->values; i++)
        if (read_slot(PyTuple_GET_ITEM(values, i), &one->slots[i]) < 0)
            return -1;
    return 0;
}

static int read_instructions(Way *way, PyObject *given)
{
    way->instructions = (int)PyTuple_GET_SIZE(given);
    way->instruction = PyMem_Calloc(way->instructions + 1, sizeof(Instruction));
    if (way->instruction == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < way->instructions; i++)
        if (read_instruction(PyTuple_GET_ITEM(given, i), &way->instruction[i]) < 0)
            return -1;
    return 0;
}

/* Read what is launched by itself. */
static int read_launch(Way *way, PyObject *given)
{
    PyObject *patches, *numbers, *arguments;
    if (!PyArg_ParseTuple(given, "OOO!O!O!nO!", &way->launch, &way->holds, &PyByteArray_Type, &way->parameters,
                          &PyTuple_Type, &patches, &PyTuple_Type, &numbers, &way->alignment, &PyTuple_Type, &arguments))
        return -1;
    if (PyTuple_GET_SIZE(arguments) > MOST_ARGUMENTS) {
        PyErr_SetString(PyExc_ValueError, "no call has so many arguments");
        return -1;
    }
    way->arguments = (int)PyTuple_GET_SIZE(arguments);
    for (int i = 0; i < way->arguments; i++)
        if (read_source(PyTuple_GET_ITEM(arguments, i), &way->argument[i]) < 0)
            return -1;
    way->patches = (int)PyTuple_GET_SIZE(patches);
    way->slots = (int)PyTuple_GET_SIZE(numbers);
    way->patch = PyMem_Calloc(way->patches + 1, sizeof(Patch));
    way->slot = PyMem_Calloc(way->slots + 1, sizeof(Slot));
    if (way->patch == NULL || way->slot == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < way->patches; i++)
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(patches, i), "niL", &way->patch[i].at, &way->patch[i].source.source,
                              &way->patch[i].source.displacement))
            return -1;
    for (int i = 0; i < way->slots; i++)
        if (read_slot(PyTuple_GET_ITEM(numbers, i), &way->slot[i]) < 0)
            return -1;
    return 0;
}

static int read_operands(Way *way, PyObject *given)
{
    way->operands = (int)PyTuple_GET_SIZE(given);
    for (int i = 0; i < way->operands; i++) {
        Lying *lies = &way->lying[i];
        PyObject *one = PyTuple_GET_ITEM(given, i);
        if (one != Py_None && !PyArg_ParseTuple(one, "OLLLLn", &lies->layout, &lies->low, &lies->high, &lies->root_low,
                                                &lies->root_high, &lies->itemsize))
            return -1;
    }
    return 0;
}

static int read_blocks(Way *way, PyObject *given)
{
    way->blocks = (int)PyTuple_GET_SIZE(given);
    for (int i = 0; i < way->blocks; i++)
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "O!O", &PyLong_Type, &way->sizes[i], &way->layouts[i]))
            return -1;
    return 0;
}

/* Tell whether an address can be had from there: from a block, or from an operand that is an array. */
static int is_place(const Way *way, Source source)
{
    int operand = source.source - way->blocks;
    return source.source >= 0 && operand < way->operands && (operand < 0 || way->lying[operand].layout != NULL);
}

/* Tell whether a number can be had for a slot, and what is written there ends before ``size``. */
static int is_number(const Way *way, const Slot *slot, Py_ssize_t size)
{
    return slot->operand >= 0 && slot->operand < way->operands && way->lying[slot->operand].layout == NULL &&
           slot->itemsize > 0 && slot->itemsize <= VALUE && slot->at >= 0 && slot->at <= size - slot->itemsize;
}

/* Tell whether all that a recipe says of operands, blocks and parameters is there. */
static int is_sound(const Way *way)
{
    if (way->alignment < 1)
        return 0;
    for (int i = 0; i < way->operands; i++)
        if (way->lying[i].layout != NULL && way->lying[i].itemsize < 1)
            return 0;
    for (int i = 0; i < way->instructions; i++) {
        const Instruction *one = &way->instruction[i];
        for (int k = 0; k < one->places; k++)
            if (one->sources[k].source != -1 && !is_place(way, one->sources[k]))
                return 0;
        for (int k = 0; k < one->values; k++)
            if (!is_number(way, &one->slots[k], PY_SSIZE_T_MAX) || one->slots[k].at >= one->places)
                return 0;
    }
    Py_ssize_t size = way->parameters != NULL ? PyByteArray_GET_SIZE(way->parameters) : 0;
    for (int i = 0; i < way->patches; i++)
        if (way->patch[i].at < 0 || way->patch[i].at > size - 8 || !is_place(way, way->patch[i].source))
            return 0;
    for (int i = 0; i < way->slots; i++)
        if (!is_number(way, &way->slot[i], size))
            return 0;
    for (int i = 0; i < way->arguments; i++)
        if (way->argument[i].source != -1 && !is_place(way, way->argument[i]))
            return 0;
    return way->made < way->blocks && (way->instructions > 0 || way->launch != NULL);
}

static int read_recipe(Way *way, PyObject *recipe)
{
    PyObject *operands, *blocks, *instructions, *launched;
    way->alignment = 1;
    if (!PyArg_ParseTuple(recipe, "O!O!iO!Oppippp", &PyTuple_Type, &operands, &PyTuple_Type, &blocks, &way->made,
                          &PyTuple_Type, &instructions, &launched, &way->has_out, &way->may_coincide, &way->into,
                          &way->mixes_nans, &way->fills, &way->for_now))
        return -1;
    if (PyTuple_GET_SIZE(operands) > MOST_OPERANDS || PyTuple_GET_SIZE(blocks) > MOST_BLOCKS)
        return 0; /* more than such an op has: no key has so many operands */
    if (read_operands(way, operands) < 0 || read_blocks(way, blocks) < 0 || read_instructions(way, instructions) < 0 ||
        (launched != Py_None && read_launch(way, launched) < 0))
        return -1;
    if (!is_sound(way)) {
        PyErr_SetString(PyExc_ValueError, "the recipe names what it does not have");
        return -1;
    }
    return 0;
}

static int write_key_of(Recurring *self, PyObject *op, Key *key)
{
    int takes = IS(op, Op) && self->ways != NULL ? takes_of(self, op) : UNKNOWN;
    int written = takes == UNKNOWN ? 0 : write_key(key, op, self->known, self->objects, self->by_bits, takes);
    return PyErr_Occurred() ? -1 : written;
}

/* Return a way that has this key, and what its recipe says, or no operands if there is none; NULL with an error. */
static Way *make_way(const Key *key, PyObject *known_by, PyObject *recipe)
{
    Way *way = PyMem_Calloc(1, sizeof(Way));
    if (way == NULL || (way->key = PyMem_Malloc(key->length + 1)) == NULL ||
        (way->held = PyTuple_New(key->operands + 1)) == NULL) {
        free_way(way);
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(way->key, key->bytes, key->length);
    way->length = key->length;
    way->hash = hash_of(key);
    way->known_by = Py_NewRef(known_by);
    way->recipe = Py_NewRef(recipe);
    way->operands = -1;
    /* The key names layouts and a kernel by their addresses: they must stay where they are. */
    PyTuple_SET_ITEM(way->held, key->operands, Py_NewRef(key->kernel != NULL ? key->kernel : Py_None));
    for (int i = 0; i < key->operands; i++) {
        PyObject *place = key->operand[i].place;
        PyTuple_SET_ITEM(way->held, i, Py_NewRef(place != NULL ? AT(place, in_place.layout) : Py_None));
    }
    if (recipe != Py_None && read_recipe(way, recipe) < 0) {
        free_way(way);
        return NULL;
    }
    return way;
}

static void add_way(Recurring *self, const Key *key, Way *way)
{
    if (self->count >= MOST_WAYS)
        forget_all(self);
    Way **at = find(self, key), *before = *at;
    self->count += before == NULL;
    *at = way; /* first: what is let go of may set off anything, a look at all ways among it */
    free_way(before);
}

static PyObject *lacks(Recurring *self, PyObject *const *args, Py_ssize_t count)
{
    Key key;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "an op is wanted, what it is known by, and whether it has come often");
    if (self->is_running)
        Py_RETURN_FALSE;
    int written = write_key_of(self, args[0], &key);
    if (written <= 0)
        return written < 0 ? NULL : Py_NewRef(Py_False);
    Way *way = *find(self, &key);
    if (way != NULL || args[2] == Py_True)
        return PyBool_FromLong(way == NULL || way->known_by != args[1]);
    /* What comes once costs no more than this. */
    if ((way = make_way(&key, Py_None, Py_None)) == NULL)
        return NULL;
    add_way(self, &key, way);
    Py_RETURN_FALSE;
}

static PyObject *learn(Recurring *self, PyObject *const *args, Py_ssize_t count)
{
    Key key;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "an op is wanted, what it is known by, and a recipe");
    if (self->is_running)
        Py_RETURN_NONE;
    int written = write_key_of(self, args[0], &key);
    Way *way = written == 1 ? make_way(&key, args[1], args[2]) : NULL;
    if (way == NULL && (written < 0 || PyErr_Occurred()))
        return NULL;
    if (way != NULL)
        add_way(self, &key, way);
    Py_RETURN_NONE;
}

static PyObject *forget(Recurring *self, PyObject *nothing)
{
    (void)nothing;
    if (self->is_running) /* by what an op calls: the way of that op is still needed */
        self->must_forget = 1;
    else
        forget_all(self);
    Py_RETURN_NONE;
}

/* Have each way that is one for now be learnt anew; nothing while ops are carried out. */
static PyObject *review(Recurring *self, PyObject *nothing)
{
    (void)nothing;
    for (Py_ssize_t i = 0; self->ways != NULL && !self->is_running && i < TABLE; i++) {
        Way *way = self->ways[i];
        if (way == NULL || !way->for_now)
            continue;
        PyObject *known_by = way->known_by;
        way->operands = -1;
        way->for_now = 0;
        way->known_by = Py_NewRef(Py_None);
        Py_DECREF(known_by); /* last: what is let go of may set off anything */
    }
    Py_RETURN_NONE;
}

/* All that it holds, but for its ways. */
#define EACH_HELD(what) \
    what(self->takes) what(self->places) what(self->known) what(self->spare) what(self->kept) what(self->objects) \
    what(self->alone) what(self->views) what(self->drop) what(self->allocate) what(self->table) what(self->ready) \
    what(self->launch) what(self->renew) what(self->nothing) what(self->by_bits) what(self->launcher) what(self->error)

static int make(Recurring *self, PyObject *args, PyObject *given)
{
    static char *names[] = {"classes", "takes", "places", "objects", "alone", "views", "drop", "allocate", "table", "ready",
                            "launch", "renew", "nothing", "by_bits", "launcher", "most_ops", "most_spare", NULL};
    PyObject *classes;
    if (self->ways != NULL) {
        PyErr_SetString(PyExc_TypeError, "it was made before");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, given, "O!O!OO!O!O!OOOOOOOO!OnL", names, &PyDict_Type, &classes, &PyDict_Type, &self->takes, &self->places,
            &PyDict_Type, &self->objects, &PyDict_Type, &self->alone, &PyDict_Type, &self->views, &self->drop,
            &self->allocate, &self->table, &self->ready, &self->launch, &self->renew, &self->nothing, &PySet_Type,
            &self->by_bits, &self->launcher, &self->most_ops, &self->most_spare)) {
#define LEAVE(object) object = NULL; /* some were taken and none is held */
        EACH_HELD(LEAVE)
        return -1;
    }
#define HOLD(object) Py_XINCREF(object);
    EACH_HELD(HOLD)
    if (learn_objects(classes) < 0)
        return -1;
    if (!IS(self->places, Places) || !IS(self->table, Table) || !PyDict_CheckExact(self->ready)) {
        PyErr_SetString(PyExc_TypeError, "places, a table and a dictionary of programs are wanted");
        return -1;
    }
    self->known = Py_NewRef(AT(self->places, in_places.known));
    self->spare = Py_NewRef(AT(self->places, in_places.spare));
    self->kept = Py_NewRef(AT(self->places, in_places.kept));
    self->ways = PyMem_Calloc(TABLE, sizeof(Way *));
    if (self->ways == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static int visit_all(Recurring *self, visitproc visit, void *arg)
{
#define VISIT(object) Py_VISIT(object);
    EACH_HELD(VISIT)
    /* What a way launches may hold the kernel that it was made of, and that the device, which leads back here. */
    for (Py_ssize_t i = 0; self->ways != NULL && i < TABLE; i++)
        if (self->ways[i] != NULL) {
            Py_VISIT(self->ways[i]->known_by);
            Py_VISIT(self->ways[i]->recipe);
            Py_VISIT(self->ways[i]->held);
        }
    return 0;
}

/* From then on nothing recurs: `run` and `learn` look whether there are ways. */
static int clear_all(Recurring *self)
{
#define CLEAR(object) Py_CLEAR(object);
    forget_all(self);
    PyMem_Free(self->ways);
    self->ways = NULL;
    EACH_HELD(CLEAR)
    return 0;
}

static void dispose(Recurring *self)
{
    PyObject_GC_UnTrack(self);
    clear_all(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, "Carry out ops; return the place of the first that is for others."},
    {"lacks", (PyCFunction)(void (*)(void))lacks, METH_FASTCALL, "Tell whether an op's way is to be learnt."},
    {"learn", (PyCFunction)(void (*)(void))learn, METH_FASTCALL, "Note how an op was carried out, for those that come so again."},
    {"review", (PyCFunction)review, METH_NOARGS, "Have ways that are for now be learnt anew."},
    {"forget", (PyCFunction)forget, METH_NOARGS, "Forget all ways, once nothing is carried out."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"error", T_OBJECT, offsetof(Recurring, error), 0, "What the op raised where `run` stopped; None if nothing."},
    {"done", T_PYSSIZET, offsetof(Recurring, done), READONLY, "How many ops were carried out."},
    {"launched", T_PYSSIZET, offsetof(Recurring, launched), READONLY, "How many of them were launched by themselves."},
    {"called", T_PYSSIZET, offsetof(Recurring, called), READONLY, "How many were calls of a library."},
    {"count", T_PYSSIZET, offsetof(Recurring, count), READONLY, "How many ways are known."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject RecurringType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "_recurring.Recurring",
    .tp_basicsize = sizeof(Recurring),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)make,
    .tp_dealloc = (destructor)dispose,
    .tp_traverse = (traverseproc)visit_all,
    .tp_clear = (inquiry)clear_all,
    .tp_methods = methods,
    .tp_members = members,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_recurring", "Ops that come again as they came before; see recurring.py.", -1, NULL, NULL,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__recurring(void)
{
    if (PyType_Ready(&RecurringType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "Recurring", (PyObject *)&RecurringType) < 0)
        Py_CLEAR(module);
    return module;
}
