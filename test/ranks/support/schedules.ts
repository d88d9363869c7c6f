/**
 * What puts and gets promise whatever the schedule by which they are posted, as a requirement for the explorer
 * (`npm run explore -- --chapter=schedules`): random epochs of all kinds, each held against what must come out.
 */
import assert from 'node:assert/strict';
import { Assert, Op, type Window, type WindowInfo } from 'onesided';
import type { Trial } from '../conformance/requirement.ts';

const ROUNDS = 8;
/** Places that a part has for each rank that accesses it; in an epoch each has one use. */
const SLOTS = 6;
/** Elements of an operation: inline, travelling with `complete`, just so, just not, of several packets. */
const LENGTHS = [1, 20, 128, 129, 600];
const MOST = LENGTHS[LENGTHS.length - 1];

interface Use {
  readonly call: 'put' | 'get' | 'sum';
  readonly slot: number;
  readonly length: number;
  /** In a passive epoch: as a request, which is waited for. */
  readonly requested: boolean;
}

interface Round {
  readonly kind: 'general' | 'fence' | 'locks';
  /** By source and target. */
  readonly uses: readonly (readonly (readonly Use[])[])[];
}

/** The same at all ranks. */
function drawRound({ shared, ranks }: Trial): Round {
  const use = (_: unknown, slot: number): Use => ({
    call: shared.pick(['put', 'put', 'get', 'get', 'sum']),
    slot,
    length: shared.pick(LENGTHS),
    requested: shared.chance(0.3),
  });
  return {
    kind: shared.pick(['general', 'general', 'fence', 'locks']),
    // One alone travels with complete; some are put in order.
    uses: ranks.map(() => ranks.map(() => Array.from({ length: shared.pick([0, 1, 1, 2, SLOTS]) }, use))),
  };
}

/**
 * In each round every rank puts to, gets from and adds to places of its own at the others. All of a part is compared
 * behind the epoch, and what was fetched with what was there before it. In an epoch of locks a flush comes between,
 * behind which what was put is fetched, and what was fetched is put.
 */
export async function schedules(t: Trial, info: WindowInfo): Promise<void> {
  const { rank, size, random } = t;
  const plan = Array.from({ length: ROUNDS }, () => drawRound(t));
  const placeOf = (source: number, slot: number): number => (source * SLOTS + slot) * MOST;
  const stamp = (round: number, slot: number, i: number): number => 1e6 * (round + 1) + 1e4 * slot + i;
  /** What the parts hold, and who accesses them: as far as all has come out as it must. */
  const parts = t.ranks.map(() => new Float64Array(size * SLOTS * MOST));

  const issue = async (win: Window<Float64Array>, round: number): Promise<(() => void)[]> => {
    const { kind, uses } = plan[round];
    const checks: { readonly target: number; readonly check: () => void }[] = [];
    const passive = kind === 'locks';
    const targets = [...t.ranks].sort(() => random.below(3) - 1);
    const get = async (target: number, { slot, length, requested }: Use, expected: Float64Array): Promise<void> => {
      const found = new Float64Array(length);
      const at = placeOf(rank, slot);
      if (passive && requested) {
        const request = win.rget(found, target, at);
        if (random.chance(0.5)) await request.wait();
      } else win.get(found, target, at);
      checks.push({
        target,
        check: () => assert.deepEqual(found, expected, `round ${round}: slot ${slot} of rank ${target}`),
      });
    };
    const put = async (target: number, { slot, length, requested }: Use): Promise<void> => {
      const at = placeOf(rank, slot);
      const values = Float64Array.from({ length }, (_, i) => stamp(round, slot, i));
      if (passive && requested) {
        const request = win.rput(values, target, at);
        if (random.chance(0.5)) await request.wait();
      } else win.put(values, target, at);
    };
    for (const target of targets) {
      for (const use of uses[rank][target]) {
        const at = placeOf(rank, use.slot);
        if (use.call === 'get') await get(target, use, parts[target].slice(at, at + use.length));
        else if (use.call === 'put') await put(target, use);
        else win.accumulate(new Float64Array(use.length).fill(round + 1), target, at, Op.SUM);
      }
      await t.comm.compute(random.below(2) * random.below(10));
    }
    if (!passive) return checks.map(({ check }) => check);
    for (const target of targets) {
      if (random.chance(0.5)) await win.flush(target);
      else await win.flushAll();
      for (const { check } of checks.filter((check) => check.target === target)) check();
      for (const use of uses[rank][target]) {
        if (use.call === 'get') await put(target, use);
        if (use.call === 'put') {
          const expected = Float64Array.from({ length: use.length }, (_, i) => stamp(round, use.slot, i));
          await get(target, use, expected);
        }
      }
    }
    return checks.map(({ check }) => check);
  };

  /** What the epoch has done to all parts. */
  const apply = (round: number): void => {
    const { kind, uses } = plan[round];
    for (const source of t.ranks) {
      for (const target of t.ranks) {
        for (const { call, slot, length } of uses[source][target]) {
          const at = placeOf(source, slot);
          for (let i = 0; i < length; i++) {
            if (call === 'sum') parts[target][at + i] += round + 1;
            else if (call === 'put' || kind === 'locks') parts[target][at + i] = stamp(round, slot, i);
          }
        }
      }
    }
  };

  await t.window(
    Float64Array,
    parts[0].length,
    async (win) => {
      for (const [round, { kind }] of plan.entries()) {
        let checks: (() => void)[];
        if (kind === 'general') {
          win.post(win.group);
          await win.start(win.group);
          checks = await issue(win, round);
          await win.complete();
          // What was fetched is here, whether or not others are still at this rank's part.
          for (const check of checks.splice(0)) check();
          await win.wait();
        } else if (kind === 'fence') {
          await win.fence(Assert.NO_PRECEDE);
          checks = await issue(win, round);
          await win.fence(Assert.NO_SUCCEED);
        } else {
          await win.lockAll();
          checks = await issue(win, round);
          await win.unlockAll();
        }
        for (const check of checks) check();
        // Only locks do not tell the owner that others have come to an end.
        if (kind === 'locks') await t.barrier();
        apply(round);
        const expected = parts[rank];
        const wrong = win.local.findIndex((value, i) => value !== expected[i]);
        assert.ok(
          wrong < 0,
          `round ${round} (${kind}): element ${wrong} is ${win.local[wrong]}, not ${expected[wrong]}`,
        );
        await t.barrier();
      }
    },
    { info },
  );
}
