/** NAS MG and CG: NAS' own checks hold for each style on any number of ranks, and fail where messages are wrong. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Communicator } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, it } from 'vitest';
import { type CgResult, cg } from '../../bench/nas/cg/cg.ts';
import { CgPlace, cgGrid } from '../../bench/nas/cg/group.ts';
import { makeMatrix, typescriptProduct } from '../../bench/nas/cg/matrix.ts';
import { wasmProduct } from '../../bench/nas/cg/product-wasm.ts';
import { CG_CLASSES, cgIsRight, MG_CLASSES, mgIsRight } from '../../bench/nas/classes.ts';
import { STYLE_NAMES, type StyleName } from '../../bench/nas/links.ts';
import { type Block, type Box, processGrid, type Triple } from '../../bench/nas/mg/grid.ts';
import { interpolate, MINUS_A, RESTRICTION, stencil } from '../../bench/nas/mg/kernels.ts';
import { type MgResult, mg } from '../../bench/nas/mg/mg.ts';
import { type Rows, typescriptRows, type Weights } from '../../bench/nas/mg/rows.ts';
import { wasmRows } from '../../bench/nas/mg/rows-wasm.ts';
import { KERNEL_NAMES, type NasOptions } from '../../bench/nas/options.ts';
import { fraction, MULTIPLIER, power, product, SEED } from '../../bench/nas/random.ts';
import { modelledMachine } from '../../bench/patterns/machine.ts';
import { onesided } from '../launcher/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const NODES = { fabric: 'infinihost-64', seed: 1 };
const PROGRAMS = fileURLToPath(new URL('../../build/programs/bench/ranks/', import.meta.url));

function optionsOf(style: StyleName, more: Partial<NasOptions> = {}): NasOptions {
  return { class: 'S', style, gflops: 1, info: {}, arithmetic: true, ...more };
}

const inTasks = <R>(
  main: (world: Communicator, options: NasOptions, machine: ReturnType<typeof modelledMachine>) => Promise<R>,
  ranks: number,
  options: NasOptions,
  before: (world: Communicator) => void = () => {},
): Promise<R[]> =>
  runTasks(
    ranks,
    (world) => {
      before(world);
      return main(world, options, modelledMachine(world));
    },
    NODES,
  );

describe('the random numbers', () => {
  it('are exact', () => {
    let state = BigInt(SEED);
    for (let i = 1; i <= 1000; i++) {
      state = (state * BigInt(MULTIPLIER)) % 2n ** 46n;
      expect(product(SEED, power(MULTIPLIER, i))).toBe(Number(state));
    }
    expect(product(2 ** 46 - 1, 2 ** 46 - 1)).toBe(1);
    expect(fraction(2 ** 45)).toBe(0.5);
  });
});

describe('process grids', () => {
  it.each([1, 2, 4, 8, 16, 32, 64])('have all of %i ranks', (size) => {
    const [x, y, z] = processGrid(size);
    expect(x * y * z).toBe(size);
    expect(x <= y && y <= z && z <= 2 * x).toBe(true);
    const { rows, columns } = cgGrid(size);
    expect(rows * columns).toBe(size);
    expect([rows, 2 * rows]).toContain(columns);
  });

  it.each([4, 8, 32])('of CG hand each rank what its partner across the diagonal keeps: %i ranks', (size) => {
    for (let rank = 0; rank < size; rank++) {
      const place = new CgPlace(1401, rank, size);
      const partner = new CgPlace(1401, place.across, size);
      expect(partner.across).toBe(rank);
      expect(partner.rows.begin + partner.kept.begin).toBe(place.columns.begin);
      expect(partner.rows.begin + partner.kept.end).toBe(place.columns.end);
    }
  });

  it.each([3, 6, 12])('are refused for %i ranks', (size) => {
    expect(() => processGrid(size)).toThrow(/1, 2, 4, 8, … ranks, not on/);
    expect(() => cgGrid(size)).toThrow(/1, 2, 4, 8, … ranks, not on/);
  });
});

describe('the matrix of CG', () => {
  it('is symmetric, and the same in blocks as whole', () => {
    const n = 200;
    const of = { ...CG_CLASSES.S, n };
    const all = { begin: 0, end: n };
    const whole = makeMatrix(of, all, all);
    const vector = Float64Array.from({ length: n }, (_, i) => Math.sin(i));
    const other = Float64Array.from({ length: n }, (_, i) => Math.cos(3 * i));
    const [once, twice] = [new Float64Array(n), new Float64Array(n)];
    typescriptProduct(whole).multiply(vector, once, all);
    typescriptProduct(whole).multiply(other, twice, all);
    const dot = (a: Float64Array, b: Float64Array): number => a.reduce((sum, value, i) => sum + value * b[i], 0);
    expect(dot(other, once)).toBeCloseTo(dot(vector, twice), 9);
    const [rows, left, right] = [
      { begin: 70, end: 150 },
      { begin: 0, end: 90 },
      { begin: 90, end: n },
    ];
    const sums = new Float64Array(80);
    for (const columns of [left, right]) {
      const part = new Float64Array(80);
      const block = makeMatrix(of, rows, columns);
      typescriptProduct(block).multiply(vector.subarray(columns.begin, columns.end), part, { begin: 0, end: 80 });
      for (let i = 0; i < 80; i++) sums[i] += part[i];
    }
    for (let i = 0; i < 80; i++) expect(sums[i]).toBeCloseTo(once[70 + i], 12);
  });
});

describe('WebAssembly computes the same, bit by bit,', () => {
  /** Of a block's lengths and of a coarser one's, what is computed from random numbers in the rows of a kernel. */
  function computed(rows: Rows, [fine, coarse]: readonly [Triple, Triple], box: Box): number[] {
    let state = SEED;
    const block = (lengths: Triple): Block & { readonly data: Float64Array } => {
      const data = rows.doubles(lengths[0] * lengths[1] * lengths[2]);
      for (let i = 0; i < data.length; i++) data[i] = fraction((state = product(state, MULTIPLIER))) - 0.5;
      return { lengths, data };
    };
    const [to, base, from, small] = [block(fine), block(fine), block(fine), block(coarse)];
    const weights: Weights = [-3 / 8, 1 / 32, -1 / 64, 1 / 100];
    stencil(rows, to, base, from, MINUS_A, box);
    stencil(rows, base, base, from, weights, box);
    const halved = (values: Triple): Triple => values.map((value) => Math.max(1, value >> 1)) as unknown as Triple;
    stencil(rows, small, undefined, from, RESTRICTION, { low: [1, 1, 1], high: halved(box.high) }, [0, 0, 0]);
    interpolate(rows, to, small, [0, 0, 0]);
    interpolate(rows, base, small, [1, 1, 1]);
    return [...to.data, ...base.data, ...small.data];
  }

  const sizes = [4, 6, 10, 18].flatMap((x) => [
    { lengths: [x, 6, 10] as const, box: { low: [1, 1, 1], high: [x - 2, 4, 8] } as const },
    { lengths: [x, 6, 10] as const, box: { low: [2, 1, 3], high: [x - 2, 4, 5] } as const },
  ]);

  it.each(sizes)('as MG: $lengths, $box', ({ lengths, box }) => {
    const coarse = lengths.map((length) => length / 2 + 1) as unknown as Triple;
    const all = [lengths, lengths, lengths, coarse].map(([x, y, z]) => x * y * z);
    const plain = computed(typescriptRows(lengths[0]), [lengths, coarse], box);
    expect(computed(wasmRows(lengths[0], all), [lengths, coarse], box)).toEqual(plain);
    expect(plain.every(Number.isFinite)).toBe(true);
  });

  it('as CG, rows without elements among them', () => {
    const n = 90;
    const rows = { begin: 10, end: 80 };
    const matrix = makeMatrix({ ...CG_CLASSES.S, n, nonzeros: 2 }, rows, { begin: 80, end: n });
    expect(matrix.starts.some((start, i) => i > 0 && start === matrix.starts[i - 1])).toBe(true);
    const [plain, quick] = [typescriptProduct(matrix), wasmProduct(matrix, 10 + 70)].map((kernel) => {
      const [vector, to] = [kernel.doubles(10), kernel.doubles(70)];
      for (let i = 0; i < vector.length; i++) vector[i] = Math.sin(i + 1);
      to.fill(7);
      for (const [begin, end] of [
        [0, 20],
        [20, 20],
        [33, 70],
      ])
        kernel.multiply(vector, to, { begin, end });
      return [...to];
    });
    expect(quick).toEqual(plain);
    expect(quick.slice(20, 33)).toEqual(new Array(13).fill(7));
  });

  it.each([1, 2, 16])('as both kernels on %i tasks', async (ranks) => {
    for (const main of [mg, cg] as const) {
      const results = KERNEL_NAMES.map((kernel) =>
        inTasks<MgResult | CgResult>(main, ranks, optionsOf('non-blocking', { kernel, iterations: 2 })),
      );
      const [quick, plain] = await Promise.all(results);
      expect(quick).toEqual(plain);
    }
  });
});

describe('class S on tasks', () => {
  const cases = STYLE_NAMES.flatMap((style) => [1, 2, 4, 8].map((ranks) => [style, ranks] as const));

  it.each(cases)('MG has NAS’ norm, %s, %i ranks', async (style, ranks) => {
    for (const { errors, norm, grid } of await inTasks(mg, ranks, optionsOf(style))) {
      expect(Math.abs(norm / 0.5307707005734e-4 - 1)).toBeLessThan(1e-11);
      expect({ errors, grid }).toEqual({ errors: 0, grid: processGrid(ranks) });
    }
  });

  it.each(cases)('CG has NAS’ zeta, %s, %i ranks', async (style, ranks) => {
    for (const { errors, zeta } of await inTasks(cg, ranks, optionsOf(style))) {
      expect(Math.abs(zeta / 8.5971775078648 - 1)).toBeLessThan(1e-13);
      expect(errors).toBe(0);
    }
  });

  it('MG has the norm where coarse grids have fewer points than there are ranks, too', async () => {
    const [{ errors, grid }] = await inTasks(mg, 32, optionsOf('non-blocking'));
    expect({ errors, grid }).toEqual({ errors: 0, grid: [2, 4, 4] });
  });

  it.each(STYLE_NAMES)('takes the same time where the arithmetic is charged and not done: %s', async (style) => {
    for (const main of [mg, cg] as const) {
      const times = [true, false].map(async (arithmetic) => {
        const [{ each }] = await inTasks<{ each: number }>(main, 8, optionsOf(style, { arithmetic, iterations: 1 }));
        return each;
      });
      const [done, charged] = await Promise.all(times);
      expect(charged).toBe(done);
    }
  });
});

describe('NAS’ check', () => {
  it('fails for what is off by more than it lets pass, and for what is no number', () => {
    expect(mgIsRight('S', MG_CLASSES.S.norm * (1 + 9e-9))).toBe(true);
    expect(mgIsRight('S', MG_CLASSES.S.norm * (1 + 2e-8))).toBe(false);
    expect(mgIsRight('W', Number.NaN)).toBe(false);
    expect(cgIsRight('W', CG_CLASSES.W.zeta * (1 - 9e-11))).toBe(true);
    expect(cgIsRight('W', CG_CLASSES.W.zeta * (1 - 2e-10))).toBe(false);
    expect(cgIsRight('S', Number.NaN)).toBe(false);
  });

  /** One number of every hundredth message to rank 1 is a little more than what was sent. */
  const spoil = (world: Communicator): void => {
    const receive = world.receive.bind(world);
    let received = 0;
    world.receive = async (buffer, source, options) => {
      await receive(buffer, source, options);
      if (world.rank === 1 && ++received % 100 === 0) (buffer as Float64Array)[0] += 1e-3;
    };
  };

  it.each(['mg', 'cg'] as const)('fails where some numbers of messages are wrong: %s', async (name) => {
    const main: (...args: Parameters<typeof mg>) => Promise<MgResult | CgResult> = { mg, cg }[name];
    for (const { errors } of await inTasks(main, 4, optionsOf('messages'), spoil)) expect(errors).toBe(1);
  });
});

describe('on real ranks', () => {
  const folder = temporaryFolder('test');

  const cases = RANK_KINDS.flatMap((kind) =>
    ['mg', 'cg'].flatMap((name) =>
      STYLE_NAMES.flatMap((style) => [2, 4].map((ranks) => [name, kind, style, ranks] as const)),
    ),
  );
  it.each(cases)('%s is verified on %s, %s, %i ranks', async (name, kind, style, ranks) => {
    // Four ranks on fewer cores leave them to each other in the promise form.
    const form = ranks === 2 ? 'sync' : 'promise';
    const file = join(folder, `${name}-${kind}-${style}-${ranks}.json`);
    const launch = ['run', '-n', `${ranks}`, '--ranks', kind, '--timeout', '100', join(PROGRAMS, `${name}.js`), '--'];
    const { code, stdout, stderr } = await onesided(...launch, '--style', style, '--form', form, '--json', file);
    if (code !== 0 || !existsSync(file)) throw new Error(`exit code ${code}\n${stderr}${stdout}`);
    expect(stdout).toContain('verified');
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ class: 'S', style, ranks, form, errors: 0 });
  });

  it.each([
    [['--class', 'C'], /--class is one of S, W, A, B, not 'C'/],
    [['--style', 'none'], /--style is one of messages, blocking, non-blocking, not 'none'/],
    [['--fabric', 'infinihost-64', '--ranks', '3'], /1, 2, 4, 8, … ranks, not on 3/],
  ])('what makes no sense is refused: %j', (args, message) => {
    try {
      execFileSync(process.execPath, [join(PROGRAMS, 'mg.js'), ...args], { timeout: 60_000, stdio: 'pipe' });
    } catch (error) {
      expect(error).toMatchObject({ status: 2 });
      expect(`${(error as { stderr: Buffer }).stderr}`).toMatch(message);
      return;
    }
    throw new Error('it was not refused');
  });
});
