/** Cost models of bulk-synchronous programs, and whether they predict. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { begin } from 'onesided/bsp';
import {
  ALGORITHMS,
  type Algorithm,
  type Bsp2Machine,
  type BspMachine,
  flat,
  flatCost,
  jacobi,
  leastSquares,
  loadMachines,
  MACHINES,
  microseconds,
  probe,
  probeUnits,
  readMachine,
  type SuperSuperstep,
  type Superstep,
  superSuperstepCost,
  superstepCost,
} from 'onesided/bsp/model';
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';
import { jacobi as runJacobi } from '../../bench/bsp/jacobi.ts';
import { modelledMachine } from '../../bench/patterns/machine.ts';

/** A cluster of nodes with four processors, whose network is a hundred times slower than their memory. */
const CLUSTER: Bsp2Machine = { s: 100, p: 4, q: 8, l: 300, L: 30_000, g: 2, G: 200 };
const names = Object.keys(ALGORITHMS) as Algorithm[];

describe('the models', () => {
  test('a superstep costs its work, its words and a synchronization', () => {
    const machine: BspMachine = { s: 50, p: 8, l: 1000, g: 4 };
    expect(superstepCost(machine, { work: 500, h: 20 })).toBe(1580);
    expect(microseconds(machine, 1580)).toBe(31.6);
  });

  test('a superstep whose numbers are missing or misspelt has no cost', () => {
    const machine: BspMachine = { s: 50, p: 8, l: 1000, g: 4 };
    const cost = (superstep: object) => () => superstepCost(machine, superstep as Superstep);
    expect(cost({ work: 500 })).toThrow('superstepCost: h must be a finite number, not undefined');
    expect(cost({ work: 500, h: Number.NaN })).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    expect(cost({ work: 500, h: 20, mesages: 3 })).toThrow('unknown name "mesages"; did you mean "messages"?');
    expect(() => superstepCost({ s: 50, p: 8, l: 1000 } as BspMachine, { work: 1, h: 1 })).toThrow('g must be');
  });

  test("Jacobi's iteration in strips and in squares, as printed", () => {
    const { p, g, l } = MACHINES['Cray T3E, 16'];
    const n = 1000;
    expect(jacobi(MACHINES['Cray T3E, 16'], n, 'strips')).toBeCloseTo((4 * n ** 2) / p + 2 * n * g + l, 6);
    expect(jacobi(MACHINES['Cray T3E, 16'], n, 'squares')).toBeCloseTo((4 * n ** 2) / p + (4 * n * g) / 4 + l, 6);
  });

  test("Jacobi's iteration costs the words of the process that has most neighbours", () => {
    const words = (p: number, parts: 'strips' | 'squares'): number =>
      jacobi({ s: 1, p, l: 0, g: 1 }, 60, parts) - jacobi({ s: 1, p, l: 0, g: 0 }, 60, parts);
    expect([1, 2, 3, 4].map((p) => words(p, 'strips'))).toEqual([0, 60, 120, 120]);
    expect([1, 4, 9, 16].map((p) => words(p, 'squares'))).toEqual([0, 60, 80, 60]);
  });

  test('a BSP program sees (s, pq, l + L, g + pG) of a BSP2 machine', () => {
    expect(flat(CLUSTER)).toEqual({ s: 100, p: 32, l: 30_300, g: 802 });
  });

  /** The right column of the table in section 3, written as it is printed there. */
  const printed: Record<Algorithm, (machine: Bsp2Machine, n: number) => number> = {
    'diamond DAG': ({ p, q, l, L, g, G }, n) => (n * n) / (p * q) + n * (g + p * G) + p * q * (l + L),
    'cube DAG': ({ p, q, l, L, g, G }, n) =>
      n ** 3 / (p * q) +
      n ** 2 * (g / Math.sqrt(p * q) + (Math.sqrt(p) * G) / Math.sqrt(q)) +
      Math.sqrt(p * q) * (l + L),
    'matrix × vector': ({ p, q, l, L, g, G }, n) =>
      n ** 2 / (p * q) + n * (g / Math.sqrt(p * q) + (Math.sqrt(p) * G) / Math.sqrt(q)) + l + L,
    'matrix × matrix': ({ p, q, l, L, g, G }, n) =>
      n ** 3 / (p * q) + n ** 2 * (g / (p * q) ** (2 / 3) + (p ** (1 / 3) * G) / q ** (2 / 3)) + l + L,
    'sort by regular sampling': ({ p, q, l, L, g, G }, n) =>
      (n * Math.log2(n)) / (p * q) + n * (g / (p * q) + G / q) + l + L,
  };

  test('a super-superstep costs what its dearest unit does, L, and its words between units', () => {
    const { g, l } = CLUSTER;
    const unit = superstepCost({ s: 100, p: 4, l, g }, { work: 1000, h: 50 });
    expect(superSuperstepCost(CLUSTER, { inUnit: 3 * unit, between: 12 })).toBe(3 * (1000 + 100 + 300) + 30_000 + 2400);
    expect(() => superSuperstepCost(CLUSTER, { inUnit: unit } as SuperSuperstep)).toThrow('between must be a finite');
  });

  /** The left column, likewise. */
  const onTwoLevels: typeof printed = {
    'diamond DAG': ({ p, q, l, L, g, G }, n) => (n * n) / (p * q) + n * (g + G) + p * q * l + q * L,
    'cube DAG': ({ p, q, l, L, g, G }, n) =>
      n ** 3 / (p * q) + n ** 2 * (g / (p * q) ** 0.5 + G / q ** 0.5) + (p * q) ** 0.5 * l + q ** 0.5 * L,
    'matrix × vector': ({ p, q, l, L, g, G }, n) => (n * n) / (p * q) + n * (g / (p * q) ** 0.5 + G / q ** 0.5) + l + L,
    'matrix × matrix': ({ p, q, l, L, g, G }, n) =>
      n ** 3 / (p * q) + n ** 2 * (g / (p * q) ** (2 / 3) + G / q ** (2 / 3)) + l + L,
    'sort by regular sampling': ({ p, q, l, L, g, G }, n) =>
      (n * Math.log2(n)) / (p * q) + n * (g / (p * q) + G / q) + l + L,
  };

  test.each(names)('%s: the cost of its BSP2 program is the printed one', (name) => {
    const machines = [
      CLUSTER,
      { ...CLUSTER, p: 2, q: 16, L: 700, G: 3 },
      { s: 61, p: 1, q: 8, l: 0, L: 826, g: 1, G: 2436 },
    ];
    for (const machine of machines) {
      for (const n of [64, 1000, 20_000]) {
        expect(ALGORITHMS[name].bsp2(machine, n) / onTwoLevels[name](machine, n)).toBeCloseTo(1, 9);
      }
    }
  });

  test.each(names)('%s: the cost of its BSP program on the BSP2 machine is the printed one', (name) => {
    for (const n of [64, 1000, 20_000]) {
      expect(flatCost(name, CLUSTER, n) / printed[name](CLUSTER, n)).toBeCloseTo(1, 9);
    }
  });

  test.each(names)('%s: two levels never cost more, and on large problems save less than a fifth', (name) => {
    const { bsp2 } = ALGORITHMS[name];
    for (const n of [64, 1000, 20_000]) expect(bsp2(CLUSTER, n)).toBeLessThanOrEqual(flatCost(name, CLUSTER, n));
    if (name !== 'sort by regular sampling') {
      const large = 10_000_000;
      expect(bsp2(CLUSTER, large) / flatCost(name, CLUSTER, large)).toBeGreaterThan(0.8);
    } else expect(bsp2(CLUSTER, 20_000) / flatCost(name, CLUSTER, 20_000)).toBeCloseTo(1, 9);
  });

  test('machines are read, of one level and of two, and what is none is refused with the number', () => {
    const started = { s: 1, p: 4, l: 2, g: 1, o: 3 };
    for (const machine of [...Object.values(MACHINES), CLUSTER, started])
      expect(readMachine({ ...machine })).toEqual(machine);
    const wrong: readonly [unknown, RegExp][] = [
      [{ s: 1, p: 4, l: 2 }, /^ours: g must be a number from 0 on, not undefined/],
      [{ s: 0, p: 4, l: 2, g: 1 }, /s must be a number above 0, not 0/],
      [{ s: 1, p: 4.5, l: 2, g: 1 }, /p must be a whole number from 1 on, not 4.5/],
      [{ s: 1, p: 4, l: -2, g: 1 }, /l must be a number from 0 on, not -2/],
      [{ s: 1, p: 4, q: 2, l: 1, g: 1, G: 1 }, /L must be/],
      [{ s: 1, p: 4, l: 1, g: 1, G: 1 }, /a machine has no G; its numbers are s, p, l, g/],
      [[1, 2], /must be an object/],
    ];
    for (const [machine, message] of wrong) {
      expect(() => readMachine(machine, 'ours')).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
      expect(() => readMachine(machine, 'ours')).toThrow(message);
    }
  });

  test('machines are read from a file by name', () => {
    const folder = mkdtempSync(join(tmpdir(), 'onesided-machines-'));
    const file = join(folder, 'machines.json');
    writeFileSync(file, JSON.stringify({ ours: CLUSTER, t3e: MACHINES['Cray T3E'] }));
    expect(loadMachines(file)).toEqual({ ours: CLUSTER, t3e: MACHINES['Cray T3E'] });
    writeFileSync(file, JSON.stringify({ ours: { ...CLUSTER, q: 0 } }));
    expect(() => loadMachines(file)).toThrow(`${file}: ours: q must be a whole number from 1 on, not 0`);
    writeFileSync(file, '{');
    expect(() => loadMachines(file)).toThrow(`${file} is not JSON`);
    rmSync(folder, { recursive: true });
  });

  test('the line through samples has the least squares', () => {
    const line = leastSquares([0, 1, 2, 3].map((h) => ({ h, microseconds: 5 + 2 * h + (h % 2 === 0 ? 1 : -1) })));
    expect(line.g).toBeCloseTo(1.6, 9);
    expect(line.l).toBeCloseTo(5.6, 9);
    expect(line.residual).toBeCloseTo(Math.sqrt(0.8), 9);
  });
});

describe('on a modelled fabric', () => {
  const fabric = { fabric: 'infinihost-64', seed: 1 } as const;

  test.each([
    [4, 256, 'strips'],
    [4, 256, 'squares'],
    [16, 1024, 'strips'],
    [16, 1024, 'squares'],
    [9, 480, 'squares'],
  ] as const)(
    "Jacobi's iteration on %i processes, %i points a side in %s, is predicted within 15 %",
    async (p, n, parts) => {
      const options = { n, parts, iterations: 5, mflops: 1000 };
      const [result] = await runTasks(p, (world) => runJacobi(world, options, modelledMachine(world)), fabric);
      expect(result.errors).toBe(0);
      expect(Math.abs(result.predicted / result.microseconds - 1)).toBeLessThan(0.15);
    },
  );

  test('a probe finds what a superstep and a word take, and headers that are compressed take less', async () => {
    const probed = async (headers: 'plain' | 'compressed', relation: 'full' | 'sparse') => {
      const [result] = await runTasks(
        8,
        async (world) => {
          const bsp = await begin(world, { headers });
          const found = await probe(bsp, { mflops: 840, relation });
          await bsp.end();
          return found;
        },
        fabric,
      );
      return result;
    };
    const [plain, compressed] = [await probed('plain', 'full'), await probed('compressed', 'full')];
    expect(plain.machine.p).toBe(8);
    expect(plain.machine.g).toBeCloseTo(840 * plain.microseconds.g, 6);
    expect(plain.microseconds.l).toBeGreaterThan(0);
    expect(compressed.microseconds.g).toBeLessThan(plain.microseconds.g);
    expect((await probed('plain', 'sparse')).microseconds.l).toBeLessThanOrEqual(plain.microseconds.l);
  });

  test('a probe of two levels finds l and g of units, L and G between them', async () => {
    const described = loadFabric('connectx-16-cores');
    const inNodes = { ...described, node: { ...described.node, ranks: 2 } };
    const probed = async (gap: number) => {
      const link = { ...inNodes.link, outGap: gap, inGap: gap };
      const [found] = await runTasks(
        8,
        async (world) => {
          const bsp = await begin(world, { units: 'hosts' });
          const { machine, microseconds } = await probeUnits(bsp, { mflops: 500, steps: 3, repetitions: 2 });
          await bsp.end();
          return { machine, microseconds };
        },
        { fabric: { ...inNodes, link }, seed: 1 },
      );
      return found;
    };
    const [fast, slow] = [await probed(0.001), await probed(0.1)];
    expect(fast.machine).toMatchObject({ s: 500, p: 2, q: 4 });
    expect(fast.machine.G).toBeCloseTo(500 * fast.microseconds.G, 6);
    for (const { microseconds } of [fast, slow])
      for (const one of Object.values(microseconds)) expect(one).toBeGreaterThan(0);
    // A slower link costs words between units 8 bytes and a header each, and words within them nothing.
    expect(slow.microseconds.G - fast.microseconds.G).toBeGreaterThan(8 * 0.09);
    expect(slow.microseconds.G - fast.microseconds.G).toBeLessThan(2.5 * 8 * 0.099);
    expect(slow.microseconds.g).toBeCloseTo(fast.microseconds.g, 3);
  });

  test('a probe of two levels needs units, of one size', async () => {
    await runTasks(
      3,
      async (world) => {
        const flatly = await begin(world);
        await expect(probeUnits(flatly as never, { mflops: 1 })).rejects.toThrow(/has no units/);
        const bsp = await begin(world, { units: 2 });
        await expect(probeUnits(bsp, { mflops: 1 })).rejects.toMatchObject({ code: 'ERR_ARG' });
        await Promise.all([bsp.end(), flatly.end()]);
      },
      fabric,
    );
  });

  test('where time is virtual, the speed must be given; other options are checked', async () => {
    await runTasks(
      1,
      async (world) => {
        const bsp = await begin(world);
        await expect(probe(bsp)).rejects.toMatchObject({ code: 'ERR_ARG' });
        await expect(probe(bsp, { mflops: 1, grian: 2 } as never)).rejects.toThrow(/did you mean "grain"/);
        await expect(probe(bsp, { mflops: 1, steps: 1 })).rejects.toThrow(RangeError);
        await expect(probe(bsp, { mflops: 1, relation: 'all' as never })).rejects.toThrow(TypeError);
        await bsp.end();
      },
      fabric,
    );
  });
});
