import { describe, expect, it } from 'vitest';
import { ROWS, type Row } from '../../bench/rows.ts';
import { judge, type Measurements, median, ratioOf, type Summary, summarize } from '../../bench/statistics.ts';
import { closing, digits, heading, tableRow } from '../../bench/table.ts';

function summary(value: number): Summary {
  return { median: value, min: value, max: value, samples: [value] };
}

function measurements(some: Partial<Measurements>): Measurements {
  return { onesided: summary(10), peers: {}, memcpy: undefined, beside: undefined, notes: [], ...some };
}

const latency: Row = {
  id: 'x/8',
  unit: 'ns',
  better: 'lower',
  ranks: 2,
  ours: { program: 'ranks/rma', args: ['x/8'] },
  required: { ratio: 1.5 },
};
const bandwidth: Row = { ...latency, unit: 'MB/s', better: 'higher', required: { ratio: 1, ofMemcpy: 0.9 } };

describe('medians', () => {
  it('are the middle, or the mean of the two in the middle', () => {
    expect(median([3])).toBe(3);
    expect(median([9, 1, 5])).toBe(5);
    expect(median([10, 1, 2, 4])).toBe(3);
    expect(() => median([])).toThrow(RangeError);
  });

  it('of rounds do not follow one bad round', () => {
    expect(summarize([[1, 2, 3], [100, 101, 102], [2, 3, 4], []])).toEqual({
      median: 3,
      min: 1,
      max: 102,
      samples: [1, 2, 3, 100, 101, 102, 2, 3, 4],
    });
    expect(summarize([[], []])).toBeUndefined();
  });
});

describe('ratios', () => {
  it('are above 1 for whoever is ahead', () => {
    expect(ratioOf(10, 20, 'lower')).toBe(2);
    expect(ratioOf(10, 20, 'higher')).toBe(0.5);
  });

  it('are taken against the best peer', () => {
    const peers = { mpich: summary(30), openmpi: summary(20) };
    expect(judge(latency, measurements({ peers }))).toMatchObject({
      bestPeer: 'openmpi',
      ratio: 2,
      ok: true,
      required: '≥ 1.5',
    });
    expect(judge(bandwidth, measurements({ peers }))).toMatchObject({ bestPeer: 'mpich', ratio: 1 / 3, ok: false });
  });

  it('say nothing where there is nobody to compare with', () => {
    const result = judge(latency, measurements({}));
    expect(result).toMatchObject({ bestPeer: null, ratio: null });
    expect(result).not.toHaveProperty('ok');
  });

  it('say nothing of us where we failed', () => {
    const result = judge(latency, measurements({ onesided: undefined, peers: { mpich: summary(1) } }));
    expect(result).toMatchObject({ bestPeer: 'mpich', ratio: null });
    expect(result).not.toHaveProperty('onesided');
  });
});

describe('requirements', () => {
  it('that are alternatives are met by one', () => {
    const peers = { mpich: summary(20) };
    expect(judge(bandwidth, measurements({ peers, memcpy: summary(11) }))).toMatchObject({ ok: true, ratio: 0.5 });
    expect(judge(bandwidth, measurements({ peers, memcpy: summary(12) })).ok).toBe(false);
    expect(judge(bandwidth, measurements({ peers: { mpich: summary(10) }, memcpy: summary(90) })).ok).toBe(true);
  });

  it('can be absolute, or against the Sync form', () => {
    const idle: Row = { ...latency, unit: '%', required: { below: 1 } };
    expect(judge(idle, measurements({ onesided: summary(0.9) })).ok).toBe(true);
    expect(judge(idle, measurements({ onesided: summary(1) })).ok).toBe(false);
    const awaited: Row = { ...latency, required: { timesBeside: 2 } };
    expect(judge(awaited, measurements({ beside: summary(6) }))).toMatchObject({ ok: true, timesBeside: 10 / 6 });
    expect(judge(awaited, measurements({ beside: summary(5) })).ok).toBe(false);
    expect(judge(awaited, measurements({}))).not.toHaveProperty('ok');
  });
});

describe('the rows', () => {
  it('have ids of their own, and promise forms come after what they are compared with', () => {
    const ids = ROWS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [i, { beside }] of ROWS.entries()) {
      if (beside !== undefined) expect(ids.slice(0, i)).toContain(beside);
    }
  });
});

describe('the table', () => {
  it('shows four digits', () => {
    expect([0, 0.01234, 1.23456, 12.3456, 123.456, 1234.56, 60000].map(digits)).toEqual([
      '0',
      '0.0123',
      '1.235',
      '12.35',
      '123.5',
      '1235',
      '60000',
    ]);
  });

  it('leaves the columns of absent peers empty', () => {
    const names = ['mpich', 'openmpi'];
    const text = tableRow(judge(latency, measurements({ peers: { openmpi: summary(20) } })), names);
    expect(text).toMatch(/x\/8 +ns +10\.00 +20\.00 +2\.00 ×$/);
    expect(text.indexOf('20.00') + 5).toBe(heading(names).indexOf('openmpi') + 7);
  });

  it('ends with the rows that a peer wins, and names thresholds only if they are checked', () => {
    const results = [20, 12, 5].map((peer) => judge(latency, measurements({ peers: { mpich: summary(peer) } })));
    const line = '3 rows in 7 s; 2 of 3 at least as fast as the best peer; slower: x/8 (0.50 ×)';
    expect(closing(results, 7, false)).toBe(line);
    expect(closing(results, 7, true)).toBe(
      `${line}\n--check: these rows miss their threshold: x/8 (≥ 1.5), x/8 (≥ 1.5)`,
    );
  });
});
