/** The bulk-synchronous programs of bench/bsp/ on modelled fabrics: their results are those of one process. */
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, expect, it } from 'vitest';
import { fft, slowly } from '../../bench/bsp/fft.ts';
import { Fft, typescriptTransforms } from '../../bench/bsp/fft-kernel.ts';
import { fitsVectors, wasmTransforms } from '../../bench/bsp/fft-wasm.ts';
import { innerProduct } from '../../bench/bsp/inner-product.ts';
import { lu } from '../../bench/bsp/lu.ts';
import { twoLevels } from '../../bench/bsp/two-levels.ts';
import { modelledMachine } from '../../bench/patterns/machine.ts';

const NODES = { fabric: 'infinihost-64', seed: 1 };
const described = loadFabric('connectx-16-cores');
const inNodesOf = (ranks: number) => ({ fabric: { ...described, node: { ...described.node, ranks } }, seed: 1 });

describe('a Fourier transform by one process', () => {
  it.each([1, 2, 4, 8, 16, 32, 64, 512, 1024])('of %i numbers is what its definition says', (n) => {
    const x = Float64Array.from({ length: 2 * n }, (_, i) => Math.sin(3 * i) + (i % 5));
    const expected = slowly(x);
    const found = new Fft(n).run(x.slice(), new Float64Array(2 * n));
    for (let i = 0; i < 2 * n; i++) expect(Math.abs(found[i] - expected[i])).toBeLessThan(1e-11 * n);
  });

  it('does several beside each other', () => {
    const [n, batch] = [8, 3];
    const x = Float64Array.from({ length: 2 * n * batch }, (_, i) => Math.cos(i * i));
    const found = new Fft(n, batch).run(x.slice(), new Float64Array(x.length));
    for (let b = 0; b < batch; b++) {
      const pick = (from: Float64Array) =>
        Float64Array.from({ length: 2 * n }, (_, i) => from[2 * ((i >> 1) * batch + b) + (i & 1)]);
      const expected = slowly(pick(x));
      for (const [i, value] of pick(found).entries()) expect(value).toBeCloseTo(expected[i], 12);
    }
  });

  it('takes powers of two only', () => {
    expect(() => new Fft(12)).toThrow(/not a power of two/);
  });
});

describe('the transforms of a process in WebAssembly have the bits of those in TypeScript', () => {
  // Parts of even and odd powers of two; passes over 1, 2, 4, 8, 16 and 32 blocks; the least that fits.
  it.each([
    [8, 1],
    [16, 1],
    [512, 1],
    [1024, 1],
    [16, 2],
    [2 ** 11, 2],
    [2 ** 12, 2],
    [32, 4],
    [2 ** 10, 4],
    [128, 8],
    [512, 16],
    [2 ** 13, 16],
    [2048, 32],
  ])('of %i numbers on %i processes', (n, p) => {
    expect(fitsVectors(n / p, p)).toBe(true);
    for (const s of new Set([0, 1 % p, p - 1])) {
      const [plain, quick] = [typescriptTransforms, wasmTransforms].map((make) => {
        const { data, blocks, first, second } = make(n, p, s);
        const results: number[] = [];
        // Twice: a transform must not be disturbed by what the one before has left.
        for (const shift of [1, 2]) {
          for (let i = 0; i < data.length; i++) data[i] = Math.sin(3 * i + shift) + (i % 5);
          results.push(...first());
          for (let i = 0; i < blocks.length; i++) blocks[i] = Math.cos(i * i - shift) - (i % 3);
          results.push(...second());
        }
        return results;
      });
      expect(plain).toHaveLength((8 * n) / p);
      expect(quick).toEqual(plain);
    }
  });

  it('are not made for less than two numbers beside each other', () => {
    expect([fitsVectors(4, 1), fitsVectors(8, 8), fitsVectors(8, 4)]).toEqual([false, false, true]);
  });
});

describe('programs', () => {
  it.each([
    [1, 6],
    [2, 6],
    [4, 4],
    [4, 10],
    [8, 9],
    [16, 12],
  ])('transform on %i processes 2^%i numbers as one does', async (p, log2n) => {
    const options = { log2n, samples: 1, mflops: 1000 };
    const [result] = await runTasks(p, (world) => fft(world, options, modelledMachine(world)), NODES);
    const plain = { ...options, kernel: 'typescript' } as const;
    const [same] = await runTasks(p, (world) => fft(world, plain, modelledMachine(world)), NODES);
    expect(same).toEqual(result);
    expect(result.errors).toBe(0);
    expect(result.difference).toBeLessThan(1e-14);
    expect(result.microseconds).toBeGreaterThan((5 * 2 ** log2n * log2n) / 1000 / p);
  });

  it('refuse a transform that does not fit', async () => {
    const options = { log2n: 4, samples: 1, mflops: 1000 };
    const run = runTasks(8, (world) => fft(world, options, modelledMachine(world)), NODES);
    await expect(run).rejects.toThrow(/up to 4, not 8/);
  });

  it.each([
    [1, 30],
    [4, 64],
    [6, 45],
    [7, 33],
    [16, 70],
  ])('decompose on %i processes a matrix of %i rows, with the bits of one', async (p, n) => {
    const options = { n, samples: 1, mflops: 1000 };
    const [result] = await runTasks(p, (world) => lu(world, options, modelledMachine(world)), NODES);
    expect(result.errors).toBe(0);
    expect(result.grid[0] * result.grid[1]).toBe(p);
  });

  it.each([1, 5, 16])('multiply vectors on %i processes', async (p) => {
    const options = { n: 1001, samples: 2, mflops: 1000 };
    const [result] = await runTasks(p, (world) => innerProduct(world, options, modelledMachine(world)), NODES);
    expect(result.errors).toBe(0);
  });
});

describe.each([
  ['diamond DAG', 48, 12, 3],
  ['diamond DAG', 64, 8, 1],
  ['cube DAG', 16, 16, 4],
  ['matrix × vector', 64, 16, 4],
  ['matrix × matrix', 32, 64, 8],
  ['sort by regular sampling', 2400, 12, 3],
  ['sort by regular sampling', 1024, 4, 2],
] as const)('%s, n = %i, on %i processes, %i a node', (algorithm, n, ranks, p) => {
  it.each([
    ['two', 'random'],
    ['flat', 'random'],
    ['flat', 'in-order'],
  ] as const)('%s, %s: the result is that of one process', async (levels, placement) => {
    const options = { algorithm, n, levels, placement, unit: 0, samples: 1, mflops: 1000 };
    const [result] = await runTasks(ranks, (world) => twoLevels(world, options, modelledMachine(world)), inNodesOf(p));
    expect(result.errors).toBe(0);
    expect(result.units).toBe(levels === 'two' ? ranks / p : ranks);
  });
});

describe('two levels', () => {
  it('refuse what does not fit', async () => {
    const options = { algorithm: 'cube DAG', n: 16, levels: 'two', placement: 'random', samples: 1 } as const;
    const run = (unit: number) =>
      runTasks(
        8,
        (world) => twoLevels(world, { ...options, unit, mflops: 1000 }, modelledMachine(world)),
        inNodesOf(4),
      );
    await expect(run(0)).rejects.toThrow(/the number of units must be a square, not 2/);
    await expect(run(3)).rejects.toThrow(/no units of one size/);
  });
});
