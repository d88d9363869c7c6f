import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bins, LOOK_AHEAD } from '../../bench/hpcc/bins.ts';
import { Distribution } from '../../bench/hpcc/distribution.ts';
import { startOf, step } from '../../bench/hpcc/random-stream.ts';
import { UPDATES_PER_WORD, Verification } from '../../bench/hpcc/verify.ts';

const tables = fc
  .tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 40 }))
  .map(([log, ranks]) => new Distribution(2 ** log, Math.min(ranks, 2 ** log)));

function initial({ first, length }: { first: number; length: number }): BigUint64Array {
  return BigUint64Array.from({ length }, (_, i) => BigInt(first + i));
}

function parts(table: Distribution): BigUint64Array[] {
  return Array.from({ length: table.ranks }, (_, rank) =>
    initial({ first: table.first(rank), length: table.length(rank) }),
  );
}

function errors(table: Distribution, memory: BigUint64Array[], update: 'xor' | 'sum', piece = 1000): number {
  let wrong = 0;
  for (let rank = 0; rank < table.ranks; rank++) {
    const verification = new Verification(memory[rank], table, rank, update);
    while (verification.done < verification.updates) verification.advance(piece);
    wrong += verification.wrong();
  }
  return wrong;
}

/** All ranks' updates through bins, a few at a time and in turn, on arrays. */
function updated(table: Distribution, update: 'xor' | 'sum'): BigUint64Array[] {
  const memory = parts(table);
  const ranks = memory.map((_, rank) => ({
    stream: startOf(UPDATES_PER_WORD * table.first(rank)),
    left: UPDATES_PER_WORD * table.length(rank),
    bins: new Bins(table, (owner, displacements, values) => {
      for (const [i, displacement] of displacements.entries()) {
        if (update === 'xor') memory[owner][displacement] ^= values[i];
        else memory[owner][displacement] += values[i];
      }
    }),
  }));
  while (ranks.some(({ left }) => left > 0)) {
    for (const rank of ranks) {
      const count = Math.min(rank.left, 777);
      rank.bins.take(rank.stream, count);
      rank.left -= count;
    }
  }
  for (const { bins } of ranks) bins.finish();
  return memory;
}

describe('the distribution of the table', () => {
  it('gives every word to exactly one rank, in order', () => {
    fc.assert(
      fc.property(tables, (table) => {
        let word = 0;
        for (let rank = 0; rank < table.ranks; rank++) {
          expect(table.first(rank)).toBe(word);
          for (let i = 0; i < table.length(rank); i++, word++) {
            if (table.owner(word) !== rank) expect([word, table.owner(word)]).toEqual([word, rank]);
            if (table.shift >= 0 && word >>> table.shift !== rank) expect(word >>> table.shift).toBe(rank);
          }
        }
        expect(word).toBe(table.words);
      }),
    );
  });

  it('finds owners in the largest table', () => {
    const table = new Distribution(2 ** 31, 3);
    for (const rank of [0, 1, 2]) {
      expect(table.owner(table.first(rank))).toBe(rank);
      expect(table.owner(table.first(rank) + table.length(rank) - 1)).toBe(rank);
    }
  });

  it('refuses tables that are no power of two, and more ranks than words', () => {
    for (const words of [0, 3, 6, -4, 0.5, Number.NaN, 2 ** 32])
      expect(() => new Distribution(words, 1)).toThrow(RangeError);
    for (const ranks of [0, 9, 1.5, Number.NaN]) expect(() => new Distribution(8, ranks)).toThrow(RangeError);
  });
});

describe('the bins', () => {
  it('hand out every update once, at its place, and look no further ahead than allowed', () => {
    fc.assert(
      fc.property(
        tables,
        fc.maxSafeNat(),
        fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 5 }),
        (table, position, counts) => {
          const expected: string[] = [];
          const plain = startOf(position);
          const total = counts.reduce((sum, n) => sum + n, 0);
          for (let i = 0; i < total; i++) {
            step(plain);
            const value = (BigInt(plain.high >>> 0) << 32n) | BigInt(plain.low >>> 0);
            expected.push(`${Number(value & BigInt(table.words - 1))} ${value}`);
          }
          const got: string[] = [];
          let taken = 0;
          const stream = startOf(position);
          const bins = new Bins(table, (owner, displacements, values) => {
            expect(displacements.length).toBe(values.length);
            expect(Math.max(...displacements)).toBeLessThan(table.length(owner));
            for (const [i, displacement] of displacements.entries()) {
              got.push(`${table.first(owner) + displacement} ${values[i]}`);
            }
          });
          for (const count of counts) {
            bins.take(stream, count);
            taken += count;
            expect(taken - got.length).toBeLessThanOrEqual(LOOK_AHEAD);
          }
          bins.finish();
          expect(got.sort()).toEqual(expected.sort());
          expect(stream).toEqual(plain);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('are empty after they were finished', () => {
    let emptied = 0;
    const bins = new Bins(new Distribution(64, 4), () => emptied++);
    bins.take(startOf(0), 10);
    bins.finish();
    expect(emptied).toBeGreaterThan(0);
    const before = emptied;
    bins.finish();
    expect(emptied).toBe(before);
  });

  it('need one update for each rank', () => {
    expect(new Bins(new Distribution(4096, 1024), () => {}).capacity).toBe(1);
    expect(() => new Bins(new Distribution(4096, 1025), () => {})).toThrow(/1025 ranks/);
  });
});

describe('verification', () => {
  it('finds no error where all updates were made', () => {
    fc.assert(
      fc.property(tables, fc.constantFrom('xor' as const, 'sum' as const), (table, update) => {
        expect(errors(table, updated(table, update), update)).toBe(0);
      }),
      { numRuns: 40 },
    );
  });

  it('counts every wrong word once', () => {
    const table = new Distribution(1024, 3);
    for (const update of ['xor', 'sum'] as const) {
      const memory = updated(table, update);
      memory[0][0] ^= 1n;
      memory[1][7] ^= 1n << 63n;
      memory[2][5] += 3n;
      memory[2][6] += 1n << 32n;
      expect(errors(table, memory, update)).toBe(4);
    }
  });

  it('finds that nothing was done', () => {
    const table = new Distribution(4096, 2);
    expect(errors(table, parts(table), 'xor')).toBeGreaterThan(2000);
  });

  it('does not take one update for the other', () => {
    const table = new Distribution(4096, 2);
    expect(errors(table, updated(table, 'xor'), 'sum')).toBeGreaterThan(2000);
  });

  it('goes through the updates in pieces of any size', () => {
    const table = new Distribution(512, 2);
    for (const piece of [1, 333, 1e9]) expect(errors(table, updated(table, 'xor'), 'xor', piece)).toBe(0);
  });
});
