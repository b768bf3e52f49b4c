#include "contexts.h"

#include <stdlib.h>

enum { NONE = -1, NO_MEMORY = -1, OUT_OF_ORDER = -2 };

bool find_topmost(size_t size, const int32_t *parent, const uint8_t *wanted, int32_t *found)
{
    for (size_t i = 0; i < size; i++) {
        if (parent[i] >= (int64_t)i || parent[i] < NONE)
            return false;
        int32_t above = parent[i] == NONE ? NONE : found[parent[i]];
        found[i] = above != NONE ? above : wanted[i] ? (int32_t)i : NONE;
    }
    return true;
}

/* A context, the last call in it, and the call after it the last time: loops repeat themselves. */
typedef struct {
    int32_t around;
    int32_t code;
    int32_t inner;
    int32_t next;
} Context;

/* Contexts (the first means none), and their numbers by key: an empty place holds 0. */
typedef struct {
    Context *known;
    int32_t *places;
    size_t mask;
    size_t size;
} Contexts;

static int32_t *place_of(const Contexts *contexts, int32_t around, int32_t code)
{
    uint64_t key = (uint64_t)(uint32_t)around << 32 | (uint32_t)code;
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t at = (size_t)(hash ^ hash >> 32);; at++) {
        int32_t *place = &contexts->places[at & contexts->mask];
        const Context *found = &contexts->known[*place];
        if (*place == 0 || (found->around == around && found->code == code))
            return place;
    }
}

/* Make room for twice as many contexts, or for the first. */
static bool grow(Contexts *contexts)
{
    size_t room = contexts->places == NULL ? 1024 : (contexts->mask + 1) * 2;
    Context *known = realloc(contexts->known, room / 2 * sizeof *known);
    contexts->known = known == NULL ? contexts->known : known;
    int32_t *places = known == NULL ? NULL : calloc(room, sizeof *places);
    if (places == NULL)
        return false;
    free(contexts->places);
    contexts->places = places;
    contexts->mask = room - 1;
    for (size_t number = 1; number < contexts->size; number++)
        *place_of(contexts, known[number].around, known[number].code) = (int32_t)number;
    return true;
}

static bool is_that(const Contexts *contexts, int32_t number, int32_t around, int32_t code)
{
    const Context *known = &contexts->known[number];
    return number != 0 && known->code == code && known->around == around;
}

/* Return the number of a context, which is new if it equals the size. */
static int32_t number_of(const Contexts *contexts, int32_t around, int32_t code)
{
    int32_t last = contexts->known[around].inner, next = contexts->known[last].next;
    if (is_that(contexts, next, around, code))
        return next;
    if (is_that(contexts, last, around, code))
        return last;
    int32_t *place = place_of(contexts, around, code);
    if (*place == 0)
        *place = (int32_t)contexts->size;
    return *place;
}

int64_t number_contexts(size_t size, const int32_t *parent, const int32_t *code, int32_t *context, int32_t *first)
{
    Contexts contexts = {NULL, NULL, 0, 0};
    int64_t answer = grow(&contexts) ? 0 : NO_MEMORY;
    if (answer == 0)
        contexts.known[contexts.size++] = (Context){NONE, 0, 0, 0};
    for (size_t i = 0; answer == 0 && i < size; i++) {
        if (parent[i] >= (int64_t)i || parent[i] < NONE) {
            answer = OUT_OF_ORDER;
        } else if (contexts.size * 2 > contexts.mask && !grow(&contexts)) {
            answer = NO_MEMORY;
        } else {
            int32_t around = parent[i] == NONE ? 0 : context[parent[i]] + 1;
            int32_t number = number_of(&contexts, around, code[i]);
            if ((size_t)number == contexts.size) {
                contexts.known[contexts.size++] = (Context){around, code[i], 0, 0};
                first[number - 1] = (int32_t)i;
            }
            contexts.known[contexts.known[around].inner].next = number;
            contexts.known[around].inner = number;
            context[i] = number - 1;
        }
    }
    free(contexts.known);
    free(contexts.places);
    return answer < 0 ? answer : (int64_t)contexts.size - 1;
}

static bool add(const Timed *calls, size_t row, uint64_t time, int64_t *total, size_t totals, uint64_t *sum)
{
    if (!calls->counted[row])
        return true;
    uint64_t owner = calls->owner == NULL ? (uint64_t)row + calls->from : (uint64_t)(int64_t)calls->owner[row];
    if (owner >= totals)
        return false;
    total[owner] = (int64_t)((uint64_t)total[owner] + time);
    *sum += time;
    return true;
}

bool add_own_time(Timed calls, int64_t *total, size_t totals, int64_t *sum)
{
    uint64_t added = 0;
    bool is_known = true;
    for (size_t i = 0; is_known && i < calls.size; i++) {
        uint64_t time = (uint64_t)calls.time[i], above = (uint64_t)(int64_t)calls.parent[i] - calls.from;
        is_known = add(&calls, i, time, total, totals, &added);
        if (is_known && calls.parent[i] >= 0)
            is_known = above < calls.size && add(&calls, (size_t)above, -time, total, totals, &added);
    }
    *sum = (int64_t)added;
    return is_known;
}
