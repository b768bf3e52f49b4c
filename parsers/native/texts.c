#include "texts.h"

/* A number times itself with its halves swapped. Which bits of the product a bit changes depends on all others, and so
 * on the seed. With a constant factor, bits could be changed in pairs that cancel out for any seed. */
static uint64_t mixed(uint64_t left, uint64_t right)
{
    uint64_t value = left ^ right;
    value = (value ^ 0x243f6a8885a308d3u) * ((value << 32 | value >> 32) | 1);
    return value ^ value >> 32;
}

static uint64_t hash_of(const uint8_t *text, size_t length, uint64_t seed)
{
    uint64_t hash = mixed(length * 0x9e3779b97f4a7c15u, seed), word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        hash = mixed(hash, word);
    }
    word = 0;
    if (length > 0)
        memcpy(&word, text, length);
    return mixed(hash, word);
}

static size_t length_of_text(const Texts *texts, size_t number)
{
    bool last = number + 1 == texts->items.size;
    uint64_t end = last ? texts->bytes.size : texts->items.items[number + 1].begin;
    return (size_t)(end - texts->items.items[number].begin);
}

bool is_text(const Texts *texts, int32_t number, const uint8_t *text, size_t length)
{
    return length_of_text(texts, (size_t)number) == length &&
           memcmp(texts->bytes.items + texts->items.items[number].begin, text, length) == 0;
}

static bool make_room(Texts *texts)
{
    size_t room = texts->slots == NULL ? 0 : texts->mask + 1;
    if (2 * (texts->items.size + 1) <= room)
        return true;
    size_t size = room == 0 ? 1024 : 2 * room;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t number = 0; number < texts->items.size; number++) {
        size_t slot = texts->items.items[number].hash & (size - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (size - 1);
        slots[slot] = (uint32_t)number + 1;
    }
    free(texts->slots);
    texts->slots = slots;
    texts->mask = size - 1;
    return true;
}

static bool append(Texts *texts, const uint8_t *text, size_t length)
{
    size_t wanted = texts->bytes.size + length;
    if (wanted > texts->bytes.room) {
        size_t room = wanted > 2 * texts->bytes.room ? wanted : 2 * texts->bytes.room;
        uint8_t *moved = realloc(texts->bytes.items, room);
        if (moved == NULL)
            return false;
        texts->bytes.items = moved;
        texts->bytes.room = room;
    }
    memcpy(texts->bytes.items + texts->bytes.size, text, length);
    texts->bytes.size = wanted;
    return true;
}

int32_t number_of_text(Texts *texts, const uint8_t *text, size_t length)
{
    if (!make_room(texts))
        return TEXTS_NO_MEMORY;
    uint64_t hash = hash_of(text, length, texts->seed);
    size_t slot = hash & texts->mask;
    for (; texts->slots[slot] != 0; slot = (slot + 1) & texts->mask) {
        uint32_t number = texts->slots[slot] - 1;
        if (texts->items.items[number].hash == hash && is_text(texts, (int32_t)number, text, length))
            return (int32_t)number;
    }
    if (texts->items.size == INT32_MAX)
        return TEXTS_FULL;
    uint64_t begin = texts->bytes.size;
    Text *added = PUSH(texts->items);
    if (added == NULL)
        return TEXTS_NO_MEMORY;
    *added = (Text){begin, hash};
    if (!append(texts, text, length)) {
        texts->items.size--;
        return TEXTS_NO_MEMORY;
    }
    texts->slots[slot] = (uint32_t)texts->items.size;
    return (int32_t)(texts->items.size - 1);
}

void free_texts(Texts *texts)
{
    free(texts->bytes.items);
    free(texts->items.items);
    free(texts->slots);
}
