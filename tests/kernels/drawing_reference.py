"""A slow reference of drawing clients, in plain Python integers and floats, from the papers."""

import math

import numpy as np

from fedhh.kernels.ranks import BATCH

KEYS = np.array([0x0123456789ABCDEF, 0xFEDCBA9876543210], dtype=np.uint64)
MASK = 2**64 - 1


def reference_mix(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)


def rotate(word, by):
    return (word << by | word >> (64 - by)) & MASK


def xoshiro(s):
    """Blackman and Vigna's xoshiro256++, on a list of four plain integers."""
    result = (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
    t = s[1] << 17 & MASK
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotate(s[3], 45)
    return result


class ReferenceStream:
    """A client's random numbers."""

    def __init__(self, key, client):
        counter = reference_mix((key + client * 0x9E3779B97F4A7C15) & MASK)
        self.state = [reference_mix((counter + k * 0x9E3779B97F4A7C15) & MASK) for k in range(1, 5)]

    def bits(self):
        return xoshiro(self.state)

    def uniform(self):
        return (self.bits() >> 11) / 2**53

    def poisson(self, mean):
        if mean < 10:
            u, number, chance = self.uniform(), 0, math.exp(-mean)
            while u >= chance:
                u -= chance
                number += 1
                chance *= mean / number
            return number
        # Hormann (1993), algorithm PTRS.
        b = 0.931 + 2.53 * math.sqrt(mean)
        a = -0.059 + 0.02483 * b
        while True:
            u, v = self.uniform() - 0.5, 1 - self.uniform()
            us = 0.5 - abs(u)
            k = math.floor((2 * a / us + b) * u + mean + 0.43)
            if us >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
                return k
            if k >= 0 and (us >= 0.013 or v <= us):
                hat = math.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / us**2 + b))
                if hat <= k * math.log(mean) - mean - math.lgamma(k + 1):
                    return k

    def adopted_ranks(self, table, adopts, size):
        """Ranks of the distribution that the client adopts, from batches of candidates."""
        shift = 64 - table.bits
        found = []
        while len(found) < size:
            candidates = []
            for _ in range(min(BATCH, 4 * (size - len(found)) + 8)):
                word, inside = self.bits(), self.uniform()
                column = word >> shift
                entry = int(table.entries[column])
                if word % 2**shift >= entry >> table.bits:
                    column = entry % 2**table.bits
                start, width = int(table.starts[column]), table.widths[column]
                candidates.append((start + int(width * inside), start))
            for rank, start in candidates:
                if len(found) == size:
                    break
                if not adopts(rank):
                    continue
                if self.uniform() < (rank / start) ** -table.tail_exponent:
                    found.append(rank)
        return found


def reference_rows(client, distribution, table):
    """What a client types: its ranks and how often, in the order of its typing."""
    stream = ReferenceStream(int(KEYS[0]), client)
    adoption_key = reference_mix((int(KEYS[1]) + client * 0x9E3779B97F4A7C15) & MASK)
    radius, angle = math.sqrt(-2 * math.log(1 - stream.uniform())), math.tau * stream.uniform()
    words = round(math.exp(distribution.log_mean + distribution.log_sd * radius * math.cos(angle)))
    words = min(max(words, distribution.min_words), distribution.max_words)
    share = math.exp(
        distribution.log_share_mean + distribution.log_share_sd * radius * math.sin(angle)
    )
    share = min(share, 1)

    def adopts(rank):
        scattered = reference_mix((adoption_key + rank * 0x9E3779B97F4A7C15) & MASK)
        return (scattered >> 11) / 2**53 < distribution.adoption

    fresh = [
        stream.uniform() < (1 + j / share / distribution.copy_scale) ** -distribution.copy_exponent
        for j in range(stream.poisson(words * share))
    ]
    new = iter(stream.adopted_ranks(table, adopts, sum(fresh)))
    typed = []
    for j, is_fresh in enumerate(fresh):
        earlier = int(stream.uniform() * j)
        typed.append(next(new) if is_fresh else typed[earlier])
    return [(rank, typed.count(rank)) for rank in dict.fromkeys(typed)]
