/* Which instructions of a table wait until all before them are done. Part of launching.c.

   Element i of each instruction is done by the same thread. So one goes on at once if what it shares with those since all
   waited last is shared element by element: the operand of the one lies just where that of the other does. */

enum {
    INSTRUCTION = 160,
    AXES = 4,
    OPERANDS = 4,
    /* An address below that is none. */
    VALUES = 2,
    /* So many places are remembered: behind more all wait. */
    MOST_TOUCHED = 32,
};

/* As ../segments.py has it. */
typedef struct {
    uint32_t code, elements;
    uint16_t axes, goes_on;
    uint8_t widths[OPERANDS];
    int32_t extents[AXES];
    uint64_t places[OPERANDS];
    int32_t strides[OPERANDS][AXES];
    unsigned char values[VALUES][16];
} Instruction;

_Static_assert(sizeof(Instruction) == INSTRUCTION, "as the executor writes it");

/* The memory of one operand. */
typedef struct {
    const Instruction *of;
    int operand, is_written;
    /* Where its bytes begin and end, where its first element lies, and how far the next is; 0 if not all are as far. */
    int64_t from, to, first, step;
} Touched;

/* Return how far each element lies from the one before; 0 if not all as far, or two in one place. */
static int64_t even_step(const Instruction *of, int operand)
{
    const int32_t *strides = of->strides[operand];
    int64_t step = strides[of->axes - 1], width = of->widths[operand];
    if (of->elements == 1)
        return width;
    for (int axis = of->axes - 1; axis > 0; axis--)
        if (strides[axis - 1] != (int64_t)strides[axis] * of->extents[axis])
            return 0;
    return step >= width || -step >= width ? step : 0;
}

static Touched memory_of(const Instruction *of, int operand, int is_written)
{
    int64_t first = (int64_t)of->places[operand];
    Touched one = {of, operand, is_written, first, first + of->widths[operand], first, even_step(of, operand)};
    for (int axis = 0; axis < of->axes; axis++) {
        int64_t along = (int64_t)of->strides[operand][axis] * (of->extents[axis] - 1);
        *(along < 0 ? &one.from : &one.to) += along;
    }
    return one;
}

/* Find the memory of an instruction's operands, of which it writes the last; return how many those are. */
static int touched_by(const Instruction *one, Touched *found)
{
    int count = 0, last = OPERANDS - 1;
    while (last > 0 && !one->widths[last])
        last--;
    for (int operand = 0; operand <= last; operand++)
        if (one->places[operand] >= VALUES)
            found[count++] = memory_of(one, operand, operand == last);
    return count;
}

/* Tell whether each element of both, one of which is written, lies where the same one of the other does. */
static int is_element_by_element(const Touched *one, const Touched *other)
{
    if (one->first != other->first || one->step != other->step)
        return 0;
    const Instruction *left = one->of, *right = other->of;
    return one->step ||
           (left->elements == right->elements && left->axes == right->axes &&
            left->widths[one->operand] == right->widths[other->operand] &&
            !memcmp(left->extents, right->extents, sizeof left->extents) &&
            !memcmp(left->strides[one->operand], right->strides[other->operand], sizeof left->strides[0]));
}

/* Tell whether two have to wait for each other. */
static int are_apart(const Touched *one, const Touched *other)
{
    return (one->is_written || other->is_written) && one->from < other->to && other->from < one->to &&
           !is_element_by_element(one, other);
}

/* Tell whether all that is said of one is said of the other as well. */
static int is_in(const Touched *one, const Touched *other)
{
    return one->step && one->step == other->step && one->first == other->first && one->from >= other->from &&
           one->to <= other->to && one->is_written <= other->is_written;
}

/* Mark those of so many instructions that go on at once; return how many wait. */
static uint32_t mark_those_that_wait(unsigned char *code, uint32_t ops)
{
    Instruction *all = (Instruction *)code;
    Touched before[MOST_TOUCHED], own[OPERANDS];
    int known = 0;
    uint32_t waits = 0;
    for (uint32_t i = 0; i < ops; i++) {
        int count = touched_by(&all[i], own), goes_on = i > 0 && known + count <= MOST_TOUCHED;
        unsigned is_known = 0;
        for (int n = 0; n < count && goes_on; n++)
            for (int k = 0; k < known && goes_on; k++) {
                goes_on = !are_apart(&own[n], &before[k]);
                is_known |= (unsigned)is_in(&own[n], &before[k]) << n;
            }
        all[i].goes_on = (uint16_t)goes_on;
        if (!goes_on) {
            waits += i > 0;
            known = 0;
            is_known = 0;
        }
        for (int n = 0; n < count; n++)
            if (!(is_known >> n & 1))
                before[known++] = own[n];
    }
    return waits;
}
