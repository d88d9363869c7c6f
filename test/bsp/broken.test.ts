/**
 * What breaks a computation at one process alone: all others learn of it, also if its program catches the error and
 * goes on; and what does not break it.
 */
import type { Communicator } from 'onesided';
import { type Bsp, type BspOptions, begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';
import { ByMeasurement } from '../../src/bsp/delivery/choices.ts';

const FABRIC = { fabric: 'infinihost-64', seed: 1 };
const SIZE = 3;

type Delivery = 'packed' | 'zero-copy' | 'auto';

const lose = (array: Float64Array<ArrayBuffer>): void => {
  structuredClone(array.buffer, { transfer: [array.buffer] });
};

/** What process 1 loses, and when; `x` is a registered variable of 1000 elements. */
const LOSSES: Readonly<Record<string, (bsp: Bsp, x: Float64Array<ArrayBuffer>) => void>> = {
  'a variable that others put to': (bsp, x) => {
    if (bsp.pid === 1) lose(x);
    else bsp.put(1, new Float64Array(1000), x);
  },
  'a variable that others get from': (bsp, x) => {
    if (bsp.pid === 1) lose(x);
    else bsp.get(1, x, 0, new Float64Array(1000));
  },
  'the destination of a get': (bsp, x) => {
    const destination = new Float64Array(1000);
    bsp.get(0, x, 0, destination);
    if (bsp.pid === 1) lose(destination);
  },
  'a variable between its registration and sync': (bsp) => {
    const y = new Float64Array(8);
    bsp.pushReg(y);
    if (bsp.pid === 1) lose(y);
  },
};

const WAYS: readonly BspOptions[] = [
  { delivery: 'packed' },
  { delivery: 'packed', counts: 'multicast' },
  { delivery: 'packed', pacing: { slot: 7, packet: 100 } },
  { delivery: 'datagrams' },
  { delivery: 'zero-copy' },
  { delivery: 'auto', counts: 'tree' },
];

describe.each(WAYS)('%o', (options) => {
  test.each(Object.entries(LOSSES))('%s is lost: all learn of it, and nobody hangs', async (_, loses) => {
    const told = await runTasks(
      SIZE,
      async (world) => {
        const bsp = await begin(world, options);
        const x = new Float64Array(1000);
        bsp.pushReg(x);
        await bsp.sync();
        loses(bsp, x);
        const errors: { readonly code: string; readonly message: string }[] = [];
        for (const call of [() => bsp.sync(), () => bsp.sync(), () => bsp.end()]) {
          await call().catch((error) => errors.push(error));
        }
        await world.barrier();
        return errors.map(({ code, message }) => `${code} ${message}`);
      },
      FABRIC,
    );
    for (const [pid, errors] of told.entries()) {
      // Who needs nothing of process 1 may complete the superstep.
      expect(errors.length, `process ${pid}`).toBeGreaterThanOrEqual(pid === 1 ? 3 : 2);
      for (const error of errors) {
        expect(error).toMatch(/^ERR_BUFFER /);
        if (pid !== 1) expect(error).toContain('process 1 cannot go on');
      }
    }
  });
});

describe('units', () => {
  test('a process that cannot go on in its unit ends the waits of all other units', async () => {
    const told = await runTasks(
      4,
      async (world) => {
        const bsp = await begin(world, { units: 2, delivery: 'packed' });
        const x = new Float64Array(8);
        bsp.pushReg(x);
        await bsp.sync();
        if (bsp.pid === 0) bsp.uput(1, Float64Array.of(1), x);
        if (bsp.pid === 1) lose(x);
        const codes: string[] = [];
        for (const call of [() => (bsp.uid === 0 ? bsp.usync() : bsp.sync()), () => bsp.sync()]) {
          await call().catch(({ code }) => codes.push(code));
        }
        await world.barrier();
        return codes;
      },
      FABRIC,
    );
    for (const codes of told) expect(codes.at(-1)).toBe('ERR_BUFFER');
  });

  test('some of a unit call usync and others sync: the other units learn of it, too', async () => {
    const told = await runTasks(
      4,
      async (world) => {
        const bsp = await begin(world, { units: 2, delivery: 'packed' });
        const code = await (bsp.pid === 1 ? bsp.usync() : bsp.sync()).catch((error) => error.code as string);
        await world.barrier();
        return code;
      },
      FABRIC,
    );
    expect(told).toEqual(new Array(4).fill('ERR_COLLECTIVE'));
  });

  test('lost datagrams of a unit are asked for', async () => {
    const main = async (loss: number): Promise<readonly number[]> =>
      runTasks(
        4,
        async (world) => {
          const bsp = await begin(world, { delivery: 'packed', counts: 'multicast', nackAfter: 1, units: 2 });
          const x = new Float64Array(4);
          bsp.pushReg(x);
          await bsp.sync();
          let wrong = 0;
          for (let step = 1; step <= 20; step++) {
            for (const pid of bsp.pidsOf()) bsp.uput(pid, Float64Array.of(step), x, bsp.pid);
            await bsp.usync();
            for (const pid of bsp.pidsOf()) if (x[pid] !== step) wrong++;
          }
          await bsp.end();
          return wrong;
        },
        { ...FABRIC, faults: { loss, delay: 30 } },
      );
    expect(await main(0.3)).toEqual([0, 0, 0, 0]);
  });

  test('end is refused while a superstep of the unit is ending, which breaks nothing', async () => {
    const told = await runTasks(
      2,
      async (world) => {
        const bsp = await begin(world, { units: 2 });
        const x = new Float64Array(2);
        bsp.pushReg(x);
        await bsp.sync();
        for (const pid of [0, 1]) bsp.uput(pid, Float64Array.of(bsp.pid + 1), x, bsp.pid);
        if (bsp.pid === 1) await world.compute(5000);
        const step = bsp.usync();
        const refused = await bsp.end().catch(({ code }) => code as string);
        await step;
        await bsp.end();
        return [refused, ...x];
      },
      FABRIC,
    );
    expect(told).toEqual(new Array(2).fill(['ERR_RMA_SYNC', 1, 2]));
  });
});

describe('arguments', () => {
  test('of any type are refused with a code', async () => {
    await runTasks(
      1,
      async (world) => {
        const bsp = await begin(world);
        const x = new Float64Array(8);
        bsp.pushReg(x);
        await bsp.sync();
        const s = Float64Array.of(1, 2, 3);
        for (const wrong of [0n, Symbol('zero'), { valueOf: () => 0 }] as unknown as number[]) {
          const refused = { code: expect.stringMatching(/^ERR_(RANK|DISP|BUFFER)$/) };
          expect(() => bsp.put(wrong, s, x)).toThrow(expect.objectContaining(refused));
          expect(() => bsp.put(0, s, x, wrong)).toThrow(expect.objectContaining(refused));
          expect(() => bsp.put(0, s, x, 0, wrong)).toThrow(expect.objectContaining(refused));
          expect(() => bsp.put(0, s, x, 0, undefined, wrong)).toThrow(expect.objectContaining(refused));
          expect(() => bsp.get(wrong, x, 0, s)).toThrow(expect.objectContaining(refused));
          expect(() => bsp.send(wrong, null, null)).toThrow(expect.objectContaining(refused));
        }
        await bsp.end();
      },
      FABRIC,
    );
  });

  test('a patience without end is refused', async () => {
    for (const nackAfter of [Number.POSITIVE_INFINITY, 1e308, 2 ** 31]) {
      const begun = runTasks(2, (world) => begin(world, { counts: 'multicast', nackAfter }), FABRIC);
      await expect(begun).rejects.toThrow('nackAfter must be from 0 to 2^31 - 1 milliseconds');
    }
  });

  test.each([
    [{ s: 0, p: 2, l: 1, g: 1 }, 's must be a number above 0, not 0'],
    [{ s: 1, p: 2, l: Number.NaN, g: 1 }, 'l must be a number from 0 on, not NaN'],
    [{ s: 1, p: 2, l: 1, g: '1' }, 'g must be a number from 0 on, not "1"'],
    [{ s: 1, p: 2, q: 2, l: 1, L: 1, g: 1, G: 1 }, 'has two levels; flat()'],
    [null, 'must have numbers s, l and g'],
  ])('a report by %o is refused, at all processes', async (machine, why) => {
    const refusals = await runTasks(
      2,
      async (world) => {
        const bsp = await begin(world, { report: true });
        await bsp.sync();
        const refused = await bsp.report(machine as never).catch((error) => error as Error & { code: string });
        await bsp.end();
        return refused instanceof Error ? `${refused.code} ${refused.message}` : 'none';
      },
      FABRIC,
    );
    for (const refusal of refusals) {
      expect(refusal).toMatch(/^ERR_ARG bsp\.report: the machine/);
      expect(refusal).toContain(why);
    }
  });
});

/**
 * Whether processes read from each other in turns or get in each other's way depends on fractions of a microsecond
 * between them, and stays so: a tenth of the time of the same supersteps. So the ways are compared over several starts.
 */
test('`auto` takes at most 5 % longer than the quickest fixed way where kinds of supersteps alternate', async () => {
  const [P, MOST] = [4, 16_384];
  const timeFrom = async (delivery: Delivery, elements: readonly number[], start: number): Promise<number> => {
    const main = async (world: Communicator): Promise<number> => {
      const bsp = await begin(world, { delivery });
      const x = new Float64Array(MOST * P);
      bsp.pushReg(x);
      await bsp.sync();
      const one = new Float64Array(1);
      for (let k = 0; k < start * bsp.pid; k++) bsp.put((bsp.pid + 1) % P, one, x, k);
      await bsp.sync();
      const sources = elements.map((length) => new Float64Array(length));
      let began = 0;
      for (let i = -12; i < 4; i++) {
        if (i === 0) began = world.now();
        for (const source of sources) {
          for (let k = 1; k < P; k++) bsp.put((bsp.pid + k) % P, source, x, bsp.pid * MOST);
          await bsp.sync();
        }
      }
      const took = world.now() - began;
      await bsp.end();
      return took;
    };
    return (await runTasks(P, main, { fabric: 'bsp-ib-16', seed: 1 }))[0];
  };
  const timeOf = async (delivery: Delivery, elements: readonly number[]): Promise<number> => {
    let sum = 0;
    for (const start of [0, 1, 2, 5, 10, 20, 50]) sum += await timeFrom(delivery, elements, start);
    return sum;
  };
  for (const elements of [
    [MOST, MOST / 2],
    [4096, 1],
    [4096, 4096, 64],
  ]) {
    const best = Math.min(await timeOf('packed', elements), await timeOf('zero-copy', elements));
    expect(await timeOf('auto', elements), `${elements}`).toBeLessThan(1.05 * best);
  }
});

describe('`auto` chooses by what comes next', () => {
  /** Bytes of a put, and puts of a superstep; microseconds by its way: packed, read. */
  const FINE = { puts: 1, bytes: 8, took: [1, 1] };
  const COARSE = { puts: 4, bytes: 65_536, took: [100, 50] };
  const MIDDLE = { puts: 8, bytes: 16_384, took: [10, 40] };

  test.each([
    ['always the same', [COARSE], [true]],
    ['the other way is better', [MIDDLE], [false]],
    ['two kinds in turns', [COARSE, MIDDLE], [true, false]],
    ['fine ones between', [FINE, COARSE], [false, true]],
    ['two of a kind', [COARSE, COARSE, MIDDLE], [true, true, false]],
    ['with one that puts nothing', [COARSE, { puts: 0, bytes: 0, took: [1, 1] }, MIDDLE], [true, undefined, false]],
  ])('%s', (_, pattern, expected) => {
    const chooser = new ByMeasurement();
    const chosen: boolean[] = [];
    for (let step = 0; step < 60; step++) {
      const { puts, bytes, took } = pattern[step % pattern.length];
      const way = chooser.choose();
      chosen.push(way);
      chooser.learn(puts, bytes, way, took[way ? 1 : 0]);
    }
    for (const [i, way] of chosen.slice(-pattern.length).entries())
      if (expected[i] !== undefined) expect(way).toBe(expected[i]);
  });

  test('a way that has become slower than the other one was is left, and stays left', () => {
    const chooser = new ByMeasurement();
    const chosen: boolean[] = [];
    for (let step = 0; step < 60; step++) {
      const way = chooser.choose();
      chosen.push(way);
      // Reading is quicker than packing only as long as processes begin together.
      chooser.learn(COARSE.puts, COARSE.bytes, way, way ? (step < 20 ? 50 : 120) : 100);
    }
    expect([chosen[15], chosen[19]]).toEqual([true, true]);
    expect(chosen.slice(30)).toEqual(new Array(30).fill(false));
  });

  test('nor is it left for a difference that is small', () => {
    const chooser = new ByMeasurement();
    let read = 0;
    for (let step = 0; step < 60; step++) {
      const way = chooser.choose();
      if (way) read++;
      chooser.learn(COARSE.puts, COARSE.bytes, way, way ? (step < 20 ? 98 : 103) : 100);
    }
    expect(read).toBeGreaterThan(50);
  });
});
