#include "names.h"

static size_t mixed(uint64_t value)
{
    value *= 0x9e3779b97f4a7c15u;
    return (size_t)(value ^ value >> 32);
}

static size_t hash_of_bytes(Span span)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; span.end - span.at >= 8; span.at += 8) {
        uint64_t word;
        memcpy(&word, span.at, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    for (; span.at < span.end; span.at++)
        hash = (hash ^ *span.at) * 0x100000001b3u;
    return mixed(hash);
}

static size_t hash_of(const Name *name, bool by_content)
{
    return by_content ? hash_of_bytes(name->text) : mixed((uint64_t)name->id);
}

static bool same_bytes(Span left, Span right)
{
    size_t length = (size_t)length_of(left);
    return length_of(left) == length_of(right) && (length == 0 || memcmp(left.at, right.at, length) == 0);
}

static bool make_room(Index *index, const Name *items, bool by_content)
{
    if (index->slots != NULL && index->used * 2 <= index->mask)
        return true;
    size_t size = index->slots == NULL ? 64 : (index->mask + 1) * 2;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t old = 0; index->slots != NULL && old <= index->mask; old++) {
        if (index->slots[old] == 0)
            continue;
        size_t slot = hash_of(&items[index->slots[old] - 1], by_content) & (size - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (size - 1);
        slots[slot] = index->slots[old];
    }
    free(index->slots);
    index->slots = slots;
    index->mask = size - 1;
    return true;
}

/* The slot of the element with this id, or the free slot for it. */
static size_t slot_of_id(const Index *index, const Name *items, int64_t id)
{
    size_t slot = mixed((uint64_t)id) & index->mask;
    while (index->slots[slot] != 0 && items[index->slots[slot] - 1].id != id)
        slot = (slot + 1) & index->mask;
    return slot;
}

static size_t slot_of_content(const Index *index, const Name *items, Span text)
{
    size_t slot = hash_of_bytes(text) & index->mask;
    while (index->slots[slot] != 0 && !same_bytes(items[index->slots[slot] - 1].text, text))
        slot = (slot + 1) & index->mask;
    return slot;
}

static void take_slot(Index *index, size_t slot, size_t position)
{
    index->used += index->slots[slot] == 0;
    index->slots[slot] = (uint32_t)position + 1;
}

int64_t find_name(const Index *by_id, const Names *names, int64_t id)
{
    return by_id->slots == NULL ? -1 : (int64_t)by_id->slots[slot_of_id(by_id, names->items, id)] - 1;
}

static Name *push_name(Names *names, int64_t id)
{
    Name *name = names->size < INT32_MAX ? PUSH(*names) : NULL;
    if (name != NULL)
        *name = (Name){.id = id};
    return name;
}

bool add_name(Index *by_id, Names *names, const Name *name)
{
    Name *added = make_room(by_id, names->items, false) ? push_name(names, name->id) : NULL;
    if (added == NULL)
        return false;
    *added = *name;
    take_slot(by_id, slot_of_id(by_id, names->items, name->id), names->size - 1);
    return true;
}

enum { SMALL_IDS = 1 << 16 };

static int64_t find_or_add(Index *by_id, Names *names, int64_t id)
{
    int64_t place = find_name(by_id, names, id);
    if (place >= 0)
        return place;
    Name name = {.id = id, .made_up = true};
    return add_name(by_id, names, &name) ? (int64_t)names->size - 1 : -1;
}

int64_t place_of_id(Index *by_id, Names *names, int64_t id)
{
    if (id < 0 || id >= SMALL_IDS)
        return find_or_add(by_id, names, id);
    if (by_id->found == NULL && (by_id->found = calloc(SMALL_IDS, sizeof *by_id->found)) == NULL)
        return -1;
    if (by_id->found[id] == 0)
        by_id->found[id] = (uint32_t)(find_or_add(by_id, names, id) + 1);
    return (int64_t)by_id->found[id] - 1;
}

void free_index(Index *index)
{
    free(index->slots);
    free(index->found);
}

int64_t place_of_text(Index *by_content, Names *names, Span text)
{
    if (!make_room(by_content, names->items, true))
        return -1;
    size_t slot = slot_of_content(by_content, names->items, text);
    if (by_content->slots[slot] != 0)
        return (int64_t)by_content->slots[slot] - 1;
    Name *added = push_name(names, 0);
    if (added == NULL)
        return -1;
    added->text = text;
    take_slot(by_content, slot, names->size - 1);
    return (int64_t)names->size - 1;
}
