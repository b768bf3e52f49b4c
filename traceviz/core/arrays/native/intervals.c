/* Sweeps over sorted times, one pass over each set, as functions of Python. See _compiled.pyi.
 *
 * All arrays are buffers of 64-bit integers in the byte order of the machine. A set is two of them, starts and ends:
 * sorted, disjoint, not touching, none empty. Callers provide room for results; each function states how much it needs
 * and checks it, so that nothing is written outside of a buffer. The sweeps release the interpreter's lock.
 */

#include "intervals.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Arguments --------------------------------------------------------------------------------------------------------*/

typedef struct {
    Py_buffer buffer;
    int64_t *at;
    Py_ssize_t count;
} Times;

enum { MOST_TIMES = 8 };

static void release(Times *times, int count)
{
    for (int number = 0; number < count; number++)
        PyBuffer_Release(&times[number].buffer);
}

/* The buffers of a call; the last `written` of them are written. */
static bool acquire(PyObject *arguments, Times *times, int count, int written)
{
    if (PyTuple_Size(arguments) < count) {
        PyErr_SetString(PyExc_TypeError, "too few buffers");
        return false;
    }
    for (int number = 0; number < count; number++) {
        int flags = PyBUF_C_CONTIGUOUS | (number >= count - written ? PyBUF_WRITABLE : 0);
        Times *one = &times[number];
        if (PyObject_GetBuffer(PyTuple_GetItem(arguments, number), &one->buffer, flags) < 0) {
            release(times, number);
            return false;
        }
        one->at = one->buffer.buf;
        one->count = one->buffer.len / (Py_ssize_t)sizeof(int64_t);
        if (one->buffer.itemsize != sizeof(int64_t)) {
            PyErr_SetString(PyExc_ValueError, "a buffer of other things than 64-bit integers");
            release(times, number + 1);
            return false;
        }
    }
    return true;
}

/* The codes at the start of a call: groups of rows, of 32 bits each. The other arguments are `rest`. */
static const int32_t *acquire_codes(PyObject *arguments, Py_buffer *codes, PyObject **rest)
{
    *rest = PyTuple_GetSlice(arguments, 1, PyTuple_Size(arguments));
    if (*rest == NULL)
        return NULL;
    if (PyTuple_Size(arguments) < 1)
        PyErr_SetString(PyExc_TypeError, "too few buffers");
    else if (PyObject_GetBuffer(PyTuple_GetItem(arguments, 0), codes, PyBUF_C_CONTIGUOUS) == 0) {
        if (codes->itemsize == sizeof(int32_t))
            return codes->buf != NULL ? codes->buf : (const int32_t *)"";
        PyErr_SetString(PyExc_ValueError, "codes of other things than 32-bit integers");
        PyBuffer_Release(codes);
    }
    Py_DECREF(*rest);
    return NULL;
}

static bool agree(bool fits, Times *times, int count)
{
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "buffers whose lengths do not agree");
        release(times, count);
    }
    return fits;
}

/* Sets -------------------------------------------------------------------------------------------------------------*/

typedef struct {
    const int64_t *starts, *ends;
    Py_ssize_t count;
} Set;

typedef struct {
    int64_t *starts, *ends;
    Py_ssize_t count, room; /* input that is not a set may have more: the rest is left out */
} Result;

static inline void add(Result *result, int64_t start, int64_t end)
{
    if (result->count == result->room)
        return;
    result->starts[result->count] = start;
    result->ends[result->count++] = end;
}

/* Differences wrap as in NumPy, if times of a damaged trace are further apart than 64 bits can hold. */
static inline int64_t between(int64_t first, int64_t last)
{
    return (int64_t)((uint64_t)last - (uint64_t)first);
}

static inline int64_t sum(int64_t one, int64_t other)
{
    return (int64_t)((uint64_t)one + (uint64_t)other);
}

/* Add an interval that starts after all before it have started, and join it with the last if they touch. */
static inline void join(Result *result, int64_t start, int64_t end)
{
    if (result->count > 0 && start <= result->ends[result->count - 1]) {
        if (end > result->ends[result->count - 1])
            result->ends[result->count - 1] = end;
    } else {
        add(result, start, end);
    }
}

/* Return the union of intervals in order of their starts, without empty ones; -1 if they are not in order. */
static Py_ssize_t merge(Set raw, Result *result)
{
    int64_t before = INT64_MIN;
    for (Py_ssize_t row = 0; row < raw.count; row++) {
        int64_t start = raw.starts[row], end = raw.ends[row];
        if (end <= start)
            continue;
        if (start < before)
            return -1;
        before = start;
        join(result, start, end);
    }
    return result->count;
}

static void unite(Set one, Set other, Result *result)
{
    Py_ssize_t a = 0, b = 0;
    while (a < one.count || b < other.count) {
        if (b == other.count || (a < one.count && one.starts[a] <= other.starts[b])) {
            join(result, one.starts[a], one.ends[a]);
            a++;
        } else {
            join(result, other.starts[b], other.ends[b]);
            b++;
        }
    }
}

static void intersect(Set one, Set other, Result *result)
{
    Py_ssize_t a = 0, b = 0;
    while (a < one.count && b < other.count) {
        int64_t start = one.starts[a] > other.starts[b] ? one.starts[a] : other.starts[b];
        int64_t end = one.ends[a] < other.ends[b] ? one.ends[a] : other.ends[b];
        if (start < end)
            add(result, start, end);
        if (one.ends[a] <= other.ends[b])
            a++;
        else
            b++;
    }
}

static void subtract(Set one, Set other, Result *result)
{
    Py_ssize_t b = 0;
    for (Py_ssize_t a = 0; a < one.count; a++) {
        int64_t start = one.starts[a], end = one.ends[a];
        while (b < other.count && other.ends[b] <= start)
            b++;
        for (Py_ssize_t cut = b; cut < other.count && other.starts[cut] < end; cut++) {
            if (other.starts[cut] > start)
                add(result, start, other.starts[cut]);
            start = other.ends[cut];
            b = cut;
        }
        if (start < end)
            add(result, start, end);
    }
}

/* Concurrency -------------------------------------------------------------------------------------------------------*/

typedef struct {
    int64_t end, load;
} Run;

/* Intervals that run at a moment: a heap whose first member ends first. Few run at once, so it stays in the cache. */
typedef struct {
    Run *at;
    size_t count, room;
} Runs;

static bool begin_run(Runs *runs, Run run)
{
    if (runs->count == runs->room) {
        size_t room = runs->room > 0 ? 2 * runs->room : 64;
        Run *more = room < SIZE_MAX / sizeof(Run) ? realloc(runs->at, room * sizeof(Run)) : NULL;
        if (more == NULL)
            return false;
        runs->at = more;
        runs->room = room;
    }
    size_t place = runs->count++;
    for (; place > 0 && runs->at[(place - 1) / 2].end > run.end; place = (place - 1) / 2)
        runs->at[place] = runs->at[(place - 1) / 2];
    runs->at[place] = run;
    return true;
}

/* Remove the interval that ends first; at least one runs. */
static Run end_run(Runs *runs)
{
    Run first = runs->at[0], last = runs->at[--runs->count];
    size_t place = 0;
    for (size_t next = 1; next < runs->count; next = 2 * place + 1) {
        if (next + 1 < runs->count && runs->at[next + 1].end < runs->at[next].end)
            next++;
        if (runs->at[next].end >= last.end)
            break;
        runs->at[place] = runs->at[next];
        place = next;
    }
    runs->at[place] = last;
    return first;
}

/* Write the time in which `least` or more intervals run, which come in order of their starts; false if memory does not
 * suffice. At one instant, ends come first. */
static bool running(Set raw, size_t least, Runs *runs, Result *result)
{
    int64_t since = 0;
    Py_ssize_t row = 0;
    while (row < raw.count || runs->count > 0) {
        if (row < raw.count && (runs->count == 0 || raw.starts[row] < runs->at[0].end)) {
            Run run = {raw.ends[row], 0};
            if (raw.starts[row] < run.end && !begin_run(runs, run))
                return false;
            if (raw.starts[row] < run.end && runs->count == least)
                since = raw.starts[row];
            row++;
        } else {
            bool were_enough = runs->count == least;
            int64_t end = end_run(runs).end;
            if (were_enough && since < end)
                join(result, since, end);
        }
    }
    return true;
}

/* Return the time that a span shares with a set. Spans come in order; `near` is the first member that may overlap. */
static double shared_next(Set set, int64_t start, int64_t end, Py_ssize_t *near)
{
    double time = 0;
    while (*near < set.count && set.ends[*near] <= start)
        ++*near;
    for (Py_ssize_t row = *near; row < set.count && set.starts[row] < end; row++) {
        int64_t first = set.starts[row] > start ? set.starts[row] : start;
        int64_t last = set.ends[row] < end ? set.ends[row] : end;
        time += (double)between(first, last);
    }
    return time;
}

/* Add the time of a set, weighted by the load of each moment, at most `full`, to `weight`. Loads come in order of their
 * starts. False if memory does not suffice. */
static bool weigh(Set set, Set raw, const int64_t *loads, int64_t full, Runs *runs, double *weight)
{
    Py_ssize_t row = 0, near = 0;
    int64_t load = 0, since = 0;
    while (row < raw.count || runs->count > 0) {
        bool begins = row < raw.count && (runs->count == 0 || raw.starts[row] <= runs->at[0].end);
        int64_t moment = begins ? raw.starts[row] : runs->at[0].end;
        if (load > 0 && moment > since)
            *weight += shared_next(set, since, moment, &near) * (double)(load < full ? load : full);
        since = moment;
        if (!begins) {
            load = between(end_run(runs).load, load);
            continue;
        }
        Run run = {raw.ends[row], loads[row]};
        if (run.end > moment) {
            if (!begin_run(runs, run))
                return false;
            load = sum(load, run.load);
        }
        row++;
    }
    return true;
}

/* Time before moments ----------------------------------------------------------------------------------------------*/

enum { STEPS = 8 }; /* Most moments are at most so many members after the previous one. */

/* Count the members that ended by a moment. Moments are mostly in order: the search starts where the last one ended. */
static inline Py_ssize_t ended_by(const int64_t *ends, Py_ssize_t count, int64_t moment, Py_ssize_t near)
{
    for (int tried = 0; tried < STEPS; tried++, near++)
        if (near == count || ends[near] > moment) {
            if (near == 0 || ends[near - 1] <= moment)
                return near;
            break;
        }
    Py_ssize_t low, high, step = 1;
    if (near < count && ends[near] <= moment) {
        low = near + 1;
        while (low < count && step < count && low + step <= count && ends[low + step - 1] <= moment) {
            low += step;
            step *= 2;
        }
        high = low + step < count ? low + step : count;
    } else {
        high = near;
        while (high > 0 && high - step >= 0 && ends[high - step] > moment) {
            high -= step;
            step *= 2;
        }
        low = high - step > 0 ? high - step : 0;
    }
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (ends[middle] <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline int64_t time_before(Set set, const int64_t *done, int64_t moment, Py_ssize_t *near)
{
    Py_ssize_t row = *near = ended_by(set.ends, set.count, moment, *near);
    bool inside = row < set.count && moment > set.starts[row];
    return sum(done[row], inside ? between(set.starts[row], moment) : 0);
}

/* Groups -----------------------------------------------------------------------------------------------------------*/

/* Add each value, or 1 without values, to the total of its group; false if a row has no such group. */
static bool add_by(const int32_t *codes, const int64_t *values, Py_ssize_t rows, int64_t *totals, Py_ssize_t groups)
{
    for (Py_ssize_t row = 0; row < rows; row++) {
        if (codes[row] < 0 || codes[row] >= groups)
            return false;
        totals[codes[row]] = sum(totals[codes[row]], values != NULL ? values[row] : 1);
    }
    return true;
}

/* Return the sum of the squared deviations of a group from its mean. Four sums at a time hide the latency of adding. */
static double squares(const int64_t *values, Py_ssize_t count, double mean)
{
    double sums[4] = {0, 0, 0, 0};
    Py_ssize_t row = 0;
    for (; row + 4 <= count; row += 4)
        for (int part = 0; part < 4; part++) {
            double off = (double)values[row + part] - mean;
            sums[part] += off * off;
        }
    for (; row < count; row++)
        sums[0] += ((double)values[row] - mean) * ((double)values[row] - mean);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Functions --------------------------------------------------------------------------------------------------------*/

static PyObject *merge_intervals(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[4];
    if (!acquire(arguments, times, 4, 2) ||
        !agree(times[0].count == times[1].count && times[2].count >= times[0].count && times[3].count >= times[0].count,
               times, 4))
        return NULL;
    Result result = {times[2].at, times[3].at, 0, times[0].count};
    Set raw = {times[0].at, times[1].at, times[0].count};
    Py_ssize_t count;
    Py_BEGIN_ALLOW_THREADS
    count = merge(raw, &result);
    Py_END_ALLOW_THREADS
    release(times, 4);
    return PyLong_FromSsize_t(count);
}

static PyObject *of_two(PyObject *arguments, void (*sweep)(Set, Set, Result *))
{
    Times times[6];
    if (!acquire(arguments, times, 6, 2))
        return NULL;
    Py_ssize_t most = times[0].count + times[2].count;
    if (!agree(times[0].count == times[1].count && times[2].count == times[3].count && times[4].count >= most &&
                   times[5].count >= most,
               times, 6))
        return NULL;
    Set one = {times[0].at, times[1].at, times[0].count}, other = {times[2].at, times[3].at, times[2].count};
    Result result = {times[4].at, times[5].at, 0, most};
    Py_BEGIN_ALLOW_THREADS
    sweep(one, other, &result);
    Py_END_ALLOW_THREADS
    release(times, 6);
    return PyLong_FromSsize_t(result.count);
}

static PyObject *unite_sets(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    return of_two(arguments, unite);
}

static PyObject *intersect_sets(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    return of_two(arguments, intersect);
}

static PyObject *subtract_sets(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    return of_two(arguments, subtract);
}

static PyObject *running_at_once(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[4];
    if (!acquire(arguments, times, 4, 2) ||
        !agree(times[0].count == times[1].count && times[2].count >= times[0].count && times[3].count >= times[0].count,
               times, 4))
        return NULL;
    PyObject *number = PyTuple_Size(arguments) > 4 ? PyTuple_GetItem(arguments, 4) : NULL;
    long long least = number != NULL ? PyLong_AsLongLong(number) : 0;
    if (PyErr_Occurred() || least < 1) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "fewer than one at once");
        release(times, 4);
        return NULL;
    }
    Set raw = {times[0].at, times[1].at, times[0].count};
    Result result = {times[2].at, times[3].at, 0, times[0].count};
    Runs runs = {NULL, 0, 0};
    bool done;
    Py_BEGIN_ALLOW_THREADS
    done = running(raw, (size_t)least, &runs, &result);
    free(runs.at);
    Py_END_ALLOW_THREADS
    release(times, 4);
    return done ? PyLong_FromSsize_t(result.count) : PyErr_NoMemory();
}

/* Check the lengths of a set, and of the times before each of its members and after the last. */
static bool is_set(Times *times)
{
    return times[0].count == times[1].count && times[2].count == times[0].count + 1;
}

static PyObject *members_ended(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[3];
    if (!acquire(arguments, times, 3, 1) || !agree(times[1].count == times[2].count, times, 3))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t near = 0;
    for (Py_ssize_t row = 0; row < times[1].count; row++)
        times[2].at[row] = near = ended_by(times[0].at, times[0].count, times[1].at[row], near);
    Py_END_ALLOW_THREADS
    release(times, 3);
    Py_RETURN_NONE;
}

static PyObject *time_before_moments(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[5];
    if (!acquire(arguments, times, 5, 1) || !agree(is_set(times) && times[4].count == times[3].count, times, 5))
        return NULL;
    Set set = {times[0].at, times[1].at, times[0].count};
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t near = 0;
    for (Py_ssize_t row = 0; row < times[3].count; row++)
        times[4].at[row] = time_before(set, times[2].at, times[3].at[row], &near);
    Py_END_ALLOW_THREADS
    release(times, 5);
    Py_RETURN_NONE;
}

static PyObject *time_shared(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[6];
    if (!acquire(arguments, times, 6, 1) ||
        !agree(is_set(times) && times[4].count == times[3].count && times[5].count == times[3].count, times, 6))
        return NULL;
    Set set = {times[0].at, times[1].at, times[0].count};
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t near = 0;
    for (Py_ssize_t row = 0; row < times[3].count; row++) {
        int64_t first = times[3].at[row], last = times[4].at[row];
        int64_t until = time_before(set, times[2].at, first, &near);
        Py_ssize_t beyond = near;
        times[5].at[row] = last > first ? between(until, time_before(set, times[2].at, last, &beyond)) : 0;
    }
    Py_END_ALLOW_THREADS
    release(times, 6);
    Py_RETURN_NONE;
}

static PyObject *weigh_loads(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[5];
    if (!acquire(arguments, times, 5, 0))
        return NULL;
    bool fits = times[0].count == times[1].count && times[2].count == times[3].count && times[2].count == times[4].count;
    if (!agree(fits, times, 5))
        return NULL;
    PyObject *number = PyTuple_Size(arguments) > 5 ? PyTuple_GetItem(arguments, 5) : NULL;
    long long full = number != NULL ? PyLong_AsLongLong(number) : 0;
    if (PyErr_Occurred()) {
        release(times, 5);
        return NULL;
    }
    Set set = {times[0].at, times[1].at, times[0].count}, raw = {times[2].at, times[3].at, times[2].count};
    Runs runs = {NULL, 0, 0};
    double weight = 0;
    bool done;
    Py_BEGIN_ALLOW_THREADS
    done = weigh(set, raw, times[4].at, full, &runs, &weight);
    free(runs.at);
    Py_END_ALLOW_THREADS
    release(times, 5);
    return done ? PyFloat_FromDouble(weight) : PyErr_NoMemory();
}

static PyObject *added_by_group(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[2];
    Py_buffer buffer;
    PyObject *rest;
    const int32_t *codes = acquire_codes(arguments, &buffer, &rest);
    if (codes == NULL)
        return NULL;
    bool has_all = false, is_counted = PyTuple_Size(rest) == 1;
    int given = is_counted ? 1 : 2;
    Py_ssize_t rows = buffer.len / (Py_ssize_t)sizeof(int32_t);
    if (acquire(rest, times, given, 1)) {
        if (agree(is_counted || times[0].count == rows, times, given)) {
            Times *totals = &times[given - 1];
            Py_BEGIN_ALLOW_THREADS
            has_all = add_by(codes, is_counted ? NULL : times[0].at, rows, totals->at, totals->count);
            Py_END_ALLOW_THREADS
            release(times, given);
            if (!has_all)
                PyErr_SetString(PyExc_ValueError, "a row of no group");
        }
    }
    Py_DECREF(rest);
    PyBuffer_Release(&buffer);
    if (!has_all)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *squares_of_groups(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Times times[4]; /* values, starts and the end of the last, means and sums: floats of 64 bits */
    if (!acquire(arguments, times, 4, 1) ||
        !agree(times[1].count == times[2].count + 1 && times[3].count == times[2].count, times, 4))
        return NULL;
    const double *means = (const double *)times[2].buffer.buf;
    double *sums = (double *)times[3].buffer.buf;
    const int64_t *begins = times[1].at;
    bool fits = true;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t group = 0; group < times[2].count && fits; group++) {
        fits = begins[group] >= 0 && begins[group] <= begins[group + 1] && begins[group + 1] <= times[0].count;
        if (fits)
            sums[group] = squares(times[0].at + begins[group], begins[group + 1] - begins[group], means[group]);
    }
    Py_END_ALLOW_THREADS
    if (!agree(fits, times, 4))
        return NULL;
    release(times, 4);
    Py_RETURN_NONE;
}

PyMethodDef interval_functions[] = {
    {"merge", merge_intervals, METH_VARARGS, NULL},      {"unite", unite_sets, METH_VARARGS, NULL},
    {"intersect", intersect_sets, METH_VARARGS, NULL},   {"subtract", subtract_sets, METH_VARARGS, NULL},
    {"concurrent", running_at_once, METH_VARARGS, NULL}, {"before", time_before_moments, METH_VARARGS, NULL},
    {"shared", time_shared, METH_VARARGS, NULL},         {"ended", members_ended, METH_VARARGS, NULL},
    {"weigh", weigh_loads, METH_VARARGS, NULL},          {"add_by", added_by_group, METH_VARARGS, NULL},
    {"squares", squares_of_groups, METH_VARARGS, NULL},  {NULL, NULL, 0, NULL},
};
