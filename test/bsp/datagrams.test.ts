/**
 * Supersteps that go in datagrams, on modelled fabrics: each datagram, ask and answer may be lost, come late, or come
 * from a stranger; and what happens when processes compute, or die, meanwhile.
 */
import type { Communicator } from 'onesided';
import { type BspOptions, type BspStatistics, begin, type CountExchange, type DatagramStatistics } from 'onesided/bsp';
import { type Fabric, loadFabric, runTasks, type TaskOptions } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';
import { HEAD_BYTES } from '../../src/bsp/delivery/datagram-port.ts';
import type { AddressHandle } from '../../src/verbs/address-handle.ts';
import type { Context } from '../../src/verbs/device.ts';
import type { ProtectionDomain, QueuePairInit } from '../../src/verbs/memory.ts';
import { QpState, QpType, type QueuePair, SendFlag } from '../../src/verbs/queue-pair.ts';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

const FABRIC = 'infinihost-64';

/** A datagram that leaves. */
interface Leaving {
  readonly from: number;
  readonly isAsk: boolean;
  /** Of those of all processes. */
  readonly number: number;
  readonly at: number;
  readonly toQp: number;
  readonly qkey: number;
}

/** Sees all datagrams of a run, and loses some: these leave with another key, and nobody takes them. */
class Wire {
  readonly seen: Leaving[] = [];
  readonly #lost: (one: Leaving, seen: readonly Leaving[]) => boolean;

  constructor(lost: (one: Leaving, seen: readonly Leaving[]) => boolean = () => false) {
    this.#lost = lost;
  }

  tap(world: Communicator): void {
    const { pd } = (world as unknown as { job: { pd: ProtectionDomain } }).job;
    const make = pd.createQueuePair.bind(pd);
    pd.createQueuePair = (init: QueuePairInit): QueuePair => {
      const qp = make(init);
      if (init.qpType === QpType.UD) this.#tapPair(world, qp);
      return qp;
    };
  }

  #tapPair(world: Communicator, qp: QueuePair): void {
    const [address, add, complete] = [qp.wrSetUdAddr.bind(qp), qp.wrAddSge.bind(qp), qp.wrComplete.bind(qp)];
    let to: readonly [AddressHandle, number, number] | undefined;
    let lengths: number[] = [];
    qp.wrSetUdAddr = (...given) => {
      to = given;
      lengths = [];
    };
    qp.wrAddSge = (lkey, at, length) => {
      lengths.push(length);
      add(lkey, at, length);
    };
    qp.wrComplete = () => {
      const [handle, toQp, qkey] = to!;
      const isAsk = lengths.length === 1 && lengths[0] > HEAD_BYTES;
      const { rank: from } = world;
      const one = { from, isAsk, number: this.seen.length, at: world.now(), toQp, qkey };
      address(handle, toQp, this.#lost(one, this.seen) ? qkey ^ 1 : qkey);
      this.seen.push(one);
      complete();
    };
  }
}

interface Exchange {
  readonly size?: number;
  readonly steps?: number;
  /** Doubles that each process puts to each other one in a superstep. */
  readonly words?: number;
  readonly options?: BspOptions;
  readonly faults?: TaskOptions['faults'];
  readonly wire?: Wire;
  readonly seed?: number;
  readonly fabric?: Fabric;
  /** Done by a process after its superstep. */
  readonly after?: (world: Communicator, step: number) => unknown;
}

interface Outcome {
  readonly errors: number;
  readonly statistics: BspStatistics;
  readonly time: number;
  /** When the first of these supersteps was complete. */
  readonly firstStep: number;
}

/** Total exchanges. The last one ends with the computation, so nobody has a `sync` after it in which to answer. */
async function exchanged(exchange: Exchange = {}): Promise<Outcome[]> {
  const {
    size = 3,
    steps = 3,
    words = 300,
    options,
    faults = {},
    wire,
    seed = seedOfRun(),
    fabric = FABRIC,
    after,
  } = exchange;
  return runTasks(
    size,
    async (world) => {
      wire?.tap(world);
      const bsp = await begin(world, { delivery: 'datagrams', nackAfter: 1, ...options });
      const { pid } = bsp;
      const came = new Float64Array(size * words);
      bsp.pushReg(came);
      await bsp.sync();
      let errors = 0;
      let firstStep = 0;
      for (let step = 1; step <= steps; step++) {
        for (let k = 1; k < size; k++) {
          bsp.put((pid + k) % size, new Float64Array(words).fill(1000 * step + pid), came, words * pid);
        }
        if (step === steps) await bsp.end();
        else await bsp.sync();
        firstStep ||= world.now();
        for (const [i, value] of came.entries()) {
          const from = Math.floor(i / words);
          if (value !== (from === pid ? 0 : 1000 * step + from)) errors++;
        }
        await after?.(world, step);
      }
      return { errors, statistics: bsp.statistics(), time: world.now(), firstStep };
    },
    { fabric, seed, faults, order: 'random' },
  );
}

/** Of all processes. */
function summed(outcomes: readonly Outcome[]): DatagramStatistics & { readonly errors: number } {
  const sum = { errors: 0, packets: 0, resent: 0, asks: 0, answers: 0, duplicates: 0, late: 0, strange: 0 };
  for (const { errors, statistics } of outcomes) {
    sum.errors += errors;
    for (const [name, count] of Object.entries(statistics.datagrams!)) sum[name as keyof DatagramStatistics] += count;
  }
  return sum;
}

describe('without losses', () => {
  const COUNTS: readonly CountExchange[] = ['all-to-all', 'tree', 'multicast'];
  test.each([1, 2, 5, 17].flatMap((size) => COUNTS.map((counts) => ({ size, counts }))))(
    'nothing is sent but the data: $size processes, counts $counts',
    async ({ size, counts }) => {
      const wire = new Wire();
      const sums = summed(await exchanged({ size, wire, options: { counts } }));
      const packets = wire.seen.length;
      // 300 doubles are more than one datagram has room for.
      expect(packets).toBeGreaterThanOrEqual(2 * 3 * size * (size - 1));
      expect(sums).toEqual({
        ...{ errors: 0, packets, resent: 0, asks: 0, answers: 0 },
        duplicates: 0,
        late: 0,
        strange: 0,
      });
    },
  );

  test('delays that are longer than nackAfter make packets come twice, and after their superstep', async () => {
    const seed = 3;
    const sums = summed(
      await exchanged({ size: 5, steps: 40, options: { nackAfter: 0.2 }, faults: { delay: 3000 }, seed }),
    );
    expect(sums).toMatchObject({ errors: 0, strange: 0 });
    expect(sums.late).toBeGreaterThan(0);
    expect(sums.duplicates).toBeGreaterThan(0);
  });

  test('the same seed gives the same run', async () => {
    const run = () => exchanged({ size: 6, faults: { datagramLoss: 0.2, delay: 9 }, seed: 4 });
    expect(await run()).toEqual(await run());
  });
});

describe('datagrams of few bytes', () => {
  const withPackets = (packet: number): Fabric => {
    const fabric = loadFabric(FABRIC);
    return { ...fabric, adapter: { ...fabric.adapter, packet } };
  };

  test.each([1, HEAD_BYTES, HEAD_BYTES + 3])('%i: refused at all ranks', async (packet) => {
    const begun = async (world: Communicator): Promise<string> => {
      try {
        await begin(world, { delivery: 'datagrams' });
      } catch (error) {
        const { code, message } = error as Error & { code: string };
        return `${code}: ${message}`;
      }
      return 'begun';
    };
    for (const said of await runTasks(2, begun, { fabric: withPackets(packet), seed: 1 }))
      expect(said).toMatch(/^ERR_ARG: bsp\.begin: delivery: 'datagrams' needs datagrams of 24 bytes/);
  });

  test(`${HEAD_BYTES + 4}: come all the same, and are asked for one word of bits at a time`, async () => {
    const arrived = async (world: Communicator): Promise<boolean> => {
      const bsp = await begin(world, { delivery: 'datagrams', nackAfter: 0.2 });
      const mine = new Float64Array(40);
      bsp.pushReg(mine);
      await bsp.sync();
      bsp.put(
        1 - bsp.pid,
        Float64Array.from(mine, (_, i) => i + bsp.pid),
        mine,
      );
      await bsp.sync();
      await bsp.end();
      return mine.every((value, i) => value === i + 1 - bsp.pid);
    };
    const options = { fabric: withPackets(HEAD_BYTES + 4), seed: 1, faults: { datagramLoss: 0.3 } };
    expect(await runTasks(2, arrived, options)).toEqual([true, true]);
  });
});

describe('one after the other is lost', () => {
  const SEED = 7;
  const small = { size: 3, steps: 2, seed: SEED };

  test('each packet, those of the last superstep too: it is asked for once, and sent once more', async () => {
    const all = new Wire();
    await exchanged({ ...small, wire: all });
    expect(all.seen.length).toBeGreaterThan(20);
    for (const { number } of all.seen) {
      const wire = new Wire((one) => one.number === number);
      const sums = summed(await exchanged({ ...small, wire }));
      const counted = { packets: all.seen.length, resent: 1, asks: 1, answers: 1 };
      expect(sums, `packet ${number}`).toEqual({ ...counted, errors: 0, duplicates: 0, late: 0, strange: 0 });
    }
  });

  test('each packet, and the first ask, or its answer: it is asked for again', async () => {
    const all = new Wire();
    await exchanged({ ...small, wire: all });
    for (const { number } of all.seen) {
      for (const what of ['ask', 'answer']) {
        let lost = 0;
        const wire = new Wire((one, seen) => {
          if (one.number === number) return true;
          const hasAsked = seen.some(({ isAsk }) => isAsk);
          const isIt = what === 'ask' ? one.isAsk : hasAsked && !one.isAsk && one.at > seen.find((x) => x.isAsk)!.at;
          return isIt && lost++ === 0;
        });
        const sums = summed(await exchanged({ ...small, wire }));
        expect(lost, `packet ${number}, ${what}`).toBeGreaterThan(0);
        expect(sums.errors).toBe(0);
        expect(sums.asks).toBe(2);
        expect(sums.resent).toBe(what === 'ask' ? 1 : 2);
      }
    }
  }, 120_000);

  test('each two of the datagrams of two processes, asks and answers among them', async () => {
    const pair = { size: 2, steps: 2, seed: SEED };
    const MANY = 14;
    for (let i = 0; i < MANY; i++) {
      for (let j = i + 1; j < MANY; j++) {
        const wire = new Wire(({ number }) => number === i || number === j);
        const { errors } = summed(await exchanged({ ...pair, wire }));
        expect(errors, `datagrams ${i} and ${j}`).toBe(0);
      }
    }
  }, 120_000);

  test('all packets of a process to another one, so that nothing says that there are any', async () => {
    const wire = new Wire(({ from, isAsk, number }) => from === 0 && !isAsk && number < 8);
    const sums = summed(await exchanged({ ...small, wire }));
    expect(sums.errors).toBe(0);
    expect(sums.resent).toBeGreaterThanOrEqual(2);
  });
});

describe('a share is lost', () => {
  test.each([0.02, 0.1, 0.3])(
    'of %f, with delays: everything comes',
    async (loss) => {
      for (const options of [
        {},
        { counts: 'tree' },
        { pacing: { slot: 20, packet: 200 } },
        { pacing: 'auto' },
      ] as const) {
        const sums = summed(await exchanged({ size: 7, steps: 6, options, faults: { datagramLoss: loss, delay: 30 } }));
        expect(sums).toMatchObject({ errors: 0, strange: 0 });
        expect(sums.asks).toBeGreaterThan(0);
        expect(sums.resent).toBeGreaterThan(0);
      }
    },
    120_000,
  );

  test('a first superstep of one packet, which takes long, does not make the others wait', async () => {
    // The first of all is lost, and asked for after 10 ms: 100 packets of that kind would be a second.
    const wire = new Wire(({ isAsk, number }) => !isAsk && (number === 0 || number % 10 === 3));
    const took = await runTasks(
      2,
      async (world) => {
        wire.tap(world);
        const bsp = await begin(world, { delivery: 'datagrams', nackAfter: 10 });
        const x = new Float64Array(25_000);
        bsp.pushReg(x);
        await bsp.sync();
        const times: number[] = [];
        for (const words of [1, 25_000, 25_000]) {
          const began = world.now();
          if (bsp.pid === 0) bsp.put(1, new Float64Array(words).fill(words), x);
          await bsp.sync();
          times.push(world.now() - began);
          if (bsp.pid === 1) expect(x.subarray(0, words).every((one) => one === words)).toBe(true);
        }
        await bsp.end();
        return times;
      },
      { fabric: FABRIC, seed: 1 },
    );
    const [first, ...others] = took[1];
    expect(first).toBeGreaterThan(10_000);
    // Some rounds of asks.
    for (const one of others) expect(one).toBeLessThan(100_000);
  });

  test('more is missing than one ask has bits for', async () => {
    let hasAsked = false;
    const wire = new Wire(({ isAsk, number }) => {
      hasAsked ||= isAsk;
      return !hasAsked && number % 2 === 0;
    });
    const options = { pacing: { slot: 0, packet: 64 } };
    const sums = summed(await exchanged({ size: 2, steps: 1, words: 50_000, options, wire }));
    expect(sums.errors).toBe(0);
    expect(sums.packets).toBeGreaterThan(2 * 9000);
    expect(sums.asks).toBeGreaterThanOrEqual(4);
    expect(sums.resent).toBeGreaterThan(8000);
  }, 120_000);

  test('more comes at once than a process has receives for: what finds none is asked for', async () => {
    const [size, words] = [16, 1200];
    const outcomes = await runTasks(
      size,
      async (world) => {
        const options = {
          delivery: 'datagrams',
          counts: 'all-to-all',
          nackAfter: 1,
          pacing: { slot: 0, packet: 64 },
        } as const;
        const bsp = await begin(world, options);
        const all = new Float64Array(size * words);
        bsp.pushReg(all);
        await bsp.sync();
        bsp.put(0, new Float64Array(words).fill(1 + bsp.pid), all, words * bsp.pid);
        const ended = bsp.end();
        // It takes nothing in meanwhile, and the others have its counts.
        if (bsp.pid === 0) await world.compute(3000);
        await ended;
        const errors = all.filter((value, i) => value !== (bsp.pid > 0 ? 0 : 1 + Math.floor(i / words))).length;
        return { errors, statistics: bsp.statistics(), time: world.now(), firstStep: 0 };
      },
      { fabric: FABRIC, seed: 1 },
    );
    const sums = summed(outcomes);
    expect(sums).toMatchObject({ errors: 0, strange: 0 });
    expect(sums.resent).toBeGreaterThan(1000);
  }, 120_000);
});

test('on a bus that all share, little comes that was there already, however much all have to send', async () => {
  const fabric = loadFabric('ethernet-10-bus');
  const options = { nackAfter: 10 };
  const sums = summed(await exchanged({ size: 4, steps: 1, words: 16_000, options, fabric, seed: 1 }));
  expect(sums).toMatchObject({ errors: 0, strange: 0 });
  expect(sums.asks).toBeGreaterThan(0);
  // Two thirds of them did, where asks went behind packets.
  expect(sums.duplicates).toBeLessThan(0.3 * sums.packets);
}, 60_000);

describe('a process that does something else meanwhile', () => {
  const LONG = 100_000;
  /** Some of what process 0 sends in the first superstep, and nothing that it sends again. */
  const lost = ({ from, number }: Leaving, seen: readonly Leaving[]): boolean =>
    from === 0 && number < 3 && !seen.some(({ isAsk }) => isAsk);

  const helpedBy = (helper: number): Fabric => {
    const fabric = loadFabric(FABRIC);
    return { ...fabric, host: { ...fabric.host, helper, interrupt: 5 } };
  };

  test('answers when it has computed, without a helper', async () => {
    const wire = new Wire(lost);
    const after = (world: Communicator, step: number) => world.rank === 0 && step === 1 && world.compute(LONG);
    const outcomes = await exchanged({ size: 2, steps: 2, wire, after, fabric: helpedBy(0) });
    expect(summed(outcomes)).toMatchObject({ errors: 0 });
    expect(outcomes[1].time).toBeGreaterThan(LONG);
    // It asks again at longer intervals, not all the time.
    expect(outcomes[1].statistics.datagrams!.asks).toBeLessThan(20);
    expect(outcomes[1].statistics.datagrams!.asks).toBeGreaterThan(5);
  });

  test.each([1, 2])('answers while it computes, where a helper does (host.helper %i)', async (helper) => {
    const wire = new Wire(lost);
    const after = (world: Communicator, step: number) => world.rank === 0 && step === 1 && world.compute(LONG);
    const outcomes = await exchanged({ size: 2, steps: 2, wire, after, fabric: helpedBy(helper) });
    expect(summed(outcomes)).toMatchObject({ errors: 0 });
    expect(outcomes[1].statistics.datagrams!.asks).toBe(1);
    expect(outcomes[1].firstStep).toBeLessThan(10_000);
  });

  test('answers at once while it waits for anything', async () => {
    const wire = new Wire(lost);
    const outcomes = await exchanged({ size: 2, steps: 2, wire, after: (world) => world.barrier() });
    expect(summed(outcomes)).toMatchObject({ errors: 0 });
    expect(outcomes[1].statistics.datagrams!.asks).toBe(1);
    expect(outcomes[1].time).toBeLessThan(10_000);
  });

  test('sends again at its pace', async () => {
    const wire = new Wire(({ number }) => number < 8);
    const slot = 500;
    const options = { pacing: { slot, Q: 1, packet: 400 }, nackAfter: 20 } as const;
    const outcomes = await exchanged({
      size: 2,
      steps: 1,
      words: 400,
      wire,
      options,
      after: (world) => world.barrier(),
    });
    expect(summed(outcomes)).toMatchObject({ errors: 0 });
    const firstAsk = wire.seen.find(({ isAsk }) => isAsk)!;
    for (const pid of [0, 1]) {
      const again = wire.seen.filter(({ from, isAsk, at }) => from === pid && !isAsk && at > firstAsk.at);
      expect(again.length).toBeGreaterThan(2);
      for (let i = 1; i < again.length; i++) {
        const slots = (again[i].at - again[0].at) / slot;
        // Looking takes some time, too.
        expect(Math.abs(slots - i)).toBeLessThan(0.05);
      }
    }
  });
});

describe('a process that dies', () => {
  test('at any time: the others are told, or had all', async () => {
    const size = 3;
    const run = async (deaths: NonNullable<TaskOptions['faults']>['deaths']): Promise<string[]> => {
      const codes: string[] = [];
      const began: number[] = [];
      await runTasks(
        size,
        async (world) => {
          began.push(world.rank);
          try {
            const bsp = await begin(world, { delivery: 'datagrams', nackAfter: 0.1 });
            const x = new Float64Array(300 * size);
            bsp.pushReg(x);
            for (let step = 0; step < 4; step++) {
              await bsp.sync();
              for (let k = 1; k < size; k++) {
                bsp.put((bsp.pid + k) % size, new Float64Array(300).fill(step), x, 300 * bsp.pid);
              }
            }
            await bsp.end();
            codes.push(`ended at ${Math.ceil(world.now())}`);
          } catch (error) {
            codes.push((error as { code: string }).code);
          }
        },
        { fabric: FABRIC, seed: 5, faults: { datagramLoss: 0.1, delay: 5, ...(deaths !== undefined && { deaths }) } },
      ).catch((error: unknown) => expect(error).toMatchObject({ code: 'ERR_RMA_RANK_FAILED' }));
      const survivors = began.filter((rank) => rank !== deaths?.[0].rank);
      expect(codes.length, JSON.stringify(deaths)).toBeGreaterThanOrEqual(survivors.length);
      return codes;
    };
    const end = Math.max(...(await run(undefined)).map((text) => Number(text.slice('ended at '.length))));
    expect(end).toBeGreaterThan(100);
    const told = new Set<string>();
    for (let i = 1; i <= 150; i++) {
      const codes = await run([{ rank: i % size, time: (end * i) / 150 }]);
      for (const code of codes) told.add(code.split(' ')[0]);
    }
    expect(told).toContain('ERR_RMA_RANK_FAILED');
    expect([...told].filter((code) => !['ERR_RMA_RANK_FAILED', 'ended'].includes(code))).toEqual([]);
  }, 120_000);
});

describe('a stranger', () => {
  /** Sends datagrams of these bytes to a queue pair, whose key it knows. */
  async function sendAll(
    world: Communicator,
    member: number,
    leaving: Leaving,
    all: readonly Uint8Array[],
  ): Promise<void> {
    const { job } = world as unknown as {
      job: { pd: ProtectionDomain; context: Context };
    };
    const cq = job.context.createCq(16);
    const qp = job.pd.createQueuePair({ qpType: QpType.UD, sendCq: cq, recvCq: cq, maxSendWr: 1 });
    const memory = job.context.allocateMemory(1024);
    const region = job.pd.registerMemory(memory, 0, 1024, 0);
    qp.modify({ state: QpState.INIT, qkey: leaving.qkey });
    qp.modify({ state: QpState.RTR });
    qp.modify({ state: QpState.RTS });
    const handle = job.pd.createAh({ member });
    for (const bytes of all) {
      new Uint8Array(memory.buffer, 0, bytes.length).set(bytes);
      qp.wrStart();
      qp.wrSend(0, SendFlag.SIGNALED);
      qp.wrSetUdAddr(handle, leaving.toQp, leaving.qkey);
      qp.wrSetSge(region.lkey, region.address, bytes.length);
      qp.wrComplete();
      do await world.compute(2);
      while (cq.poll(1) === 0);
    }
  }

  test('that knows key and numbers changes nothing, during a superstep and between two', async () => {
    const wire = new Wire();
    const computation = 16;
    const words = (...all: number[]): Uint8Array => new Uint8Array(Int32Array.from(all).buffer);
    const forged = [0, 1, 2, 3].flatMap((step) => [
      words(computation, step, 1, 0, 2, 666, 666),
      words(computation, step, 1, 1, 2, 666),
      words(computation, step, 1, -1, 2, -1),
      words(computation + 1, step, 1, 0, 2, 666),
      words(computation, step),
      new Uint8Array(0),
    ]);
    const after = async (world: Communicator, step: number): Promise<void> => {
      const to0 = wire.seen.find(({ from }) => from === 1);
      if (world.rank !== 2 || step > 2) return;
      await sendAll(world, 0, to0!, forged);
    };
    const outcomes = await exchanged({ size: 3, steps: 4, wire, after });
    expect(summed(outcomes)).toMatchObject({ errors: 0, resent: 0, answers: 0 });
    expect(outcomes[0].statistics.datagrams!.strange).toBeGreaterThan(20);
  });
});

test.each([0, 2])(
  'where the device of process %i has no datagrams, all learn of it, and can go on',
  async (without) => {
    const told = await runTasks(
      3,
      async (world) => {
        if (world.rank === without) {
          const { capabilities } = (world as unknown as { job: { context: Context } }).job.context;
          (capabilities as { datagrams: boolean }).datagrams = false;
        }
        const error = await begin(world, { delivery: 'datagrams' }).catch((refusal: unknown) => refusal);
        await (await begin(world, { delivery: 'packed' })).end();
        return error;
      },
      { fabric: FABRIC, seed: 1 },
    );
    const message = expect.stringContaining("delivery: 'datagrams' needs a device with datagrams");
    for (const error of told) expect(error).toMatchObject({ code: 'ERR_ARG', message });
  },
);

describe.each(RANK_KINDS)('on ranks that are %s', (kind) => {
  test.each([
    { lose: 0, args: ['--nackAfter=5000'] },
    { lose: 7, args: [] },
    { lose: 4, args: ['--pacing={"slot":100}'] },
  ])('every one of $lose is lost: $args', async ({ lose, args }) => {
    const given = { kind, size: 3, args: [...args, `--lose=${lose}`] } as const;
    for (const { lost, packets, resent, asks } of await runRanks<DatagramStatistics & { lost: number }>(
      'bsp-datagrams',
      given,
    )) {
      expect(packets).toBeGreaterThanOrEqual(12 * 2);
      expect(lost > 0).toBe(lose > 0);
      expect(resent > 0).toBe(lose > 0);
      expect(asks > 0).toBe(lose > 0);
    }
  });
});
