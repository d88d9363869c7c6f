/** How a requirement of BSPlib is put on trial: in a computation of its own, by each way of delivering supersteps. */
import assert from 'node:assert/strict';
import type { Communicator, RmaError } from 'onesided';
import { type Bsp, type BspOptions, begin } from 'onesided/bsp';
import { HAS_DATAGRAMS } from '../support/provider.ts';
import type { Trial } from './requirement.ts';

const PACKED: BspOptions = { delivery: 'packed', headers: 'plain', counts: 'tree' };
const PACED: BspOptions[] = [{ pacing: { slot: 2, packet: 64 } }, { pacing: 'auto', counts: 'all-to-all' }];
/** Without a patience that real ranks need: what is asked for too early comes twice. */
const DATAGRAMS: BspOptions[] = [
  { delivery: 'datagrams', nackAfter: 0.2 },
  { delivery: 'datagrams', nackAfter: 1, counts: 'all-to-all', pacing: { slot: 2, packet: 100 } },
];

/**
 * What ranks have by themselves; and messages, where they could share memory, with other headers and counts, and now
 * and then in packets that are paced, or in datagrams if there are any.
 */
export function waysOf({ shared }: Trial): readonly BspOptions[] {
  return [{}, { ...PACKED, ...shared.pick([{}, ...PACED, ...(HAS_DATAGRAMS ? DATAGRAMS : [])]) }];
}

/** Datagrams, in one way or another. */
export function datagramsOf({ shared }: Trial): BspOptions {
  return { ...PACKED, ...shared.pick(DATAGRAMS) };
}

/** What a requirement is written with. */
export interface BspTrial {
  readonly bsp: Bsp;
  /** Ends a superstep; blocking, every second time, where a rank may block. */
  sync(): Promise<void>;
  readonly pid: number;
  readonly nprocs: number;
  /** The next process, and the one before. */
  readonly right: number;
  readonly left: number;
  readonly comm: Communicator;
}

/** @param broken the computation cannot go on after it: it ends by an error that all processes get */
export function inComputation(run: (b: BspTrial, t: Trial) => unknown, broken = false): (t: Trial) => Promise<void> {
  return async (t) => {
    for (const way of waysOf(t)) {
      const bsp = await begin(t.comm, way);
      const { pid, nprocs } = bsp;
      let calls = 0;
      const sync = async (): Promise<void> => {
        if (t.blocks && ++calls % 2 === 0) bsp.syncSync();
        else await bsp.sync();
      };
      const [right, left] = [(pid + 1) % nprocs, (pid + nprocs - 1) % nprocs];
      await run({ bsp, sync, pid, nprocs, right, left, comm: t.comm }, t);
      if (!broken) await bsp.end();
    }
  };
}

/** A registered variable of so many numbers, all of them the same. */
export async function variable(b: BspTrial, length: number, value = 0): Promise<Float64Array> {
  const x = new Float64Array(length).fill(value);
  b.bsp.pushReg(x);
  await b.sync();
  return x;
}

export function refuses(code: string, call: () => unknown): void {
  assert.throws(call, (error: RmaError) => error.code === code, `not ${code}`);
}

/** All processes learn in the same `sync` that they differ, and nothing can be called afterwards. */
export async function allLearn(b: BspTrial, ending: Promise<void>): Promise<void> {
  const isDifference = (error: RmaError): boolean => error.code === 'ERR_COLLECTIVE';
  await assert.rejects(ending, isDifference);
  assert.throws(() => b.bsp.pushReg(null), isDifference);
}
