/**
 * Measures what layouts take by each way (hint `noncontiguous: 'auto'`): no device says what a request, an entry of a
 * list and a copied byte cost. Once for a communicator, when its first window with the hint is made: rank 0 puts to the
 * last rank and gets from it, in a window of its own that goes away again, and tells the others what it has found. They
 * wait meanwhile, and serve.
 *
 * All transfers are made once before any is measured: connections are made then, layouts that go over once have gone,
 * and code is compiled. Where time is real, each is measured some times and the shortest counts, since a processor may
 * be taken away in the middle.
 *
 * Where a rank cannot register the memory that this takes, nothing is measured: all ranks hear of it together, by what
 * they agree on, and go on without. The next window tries again.
 */
import type { Communicator } from '../../collective/communicator.ts';
import { Datatype } from '../../datatype/datatype.ts';
import { checkSides } from '../../datatype/layout.ts';
import type { Side } from '../../datatype/sides.ts';
import { LostConnectionError, RankFailedError } from '../../errors.ts';
import { LayoutCosts, type Place } from '../../transfer/layouts/way-costs.ts';
import type { Making } from './agreement.ts';
import { type Offer, offerNothingYet, withMemory } from './offer.ts';
import type { WindowParts } from './window-parts.ts';

/** Between pieces at the target. */
const GAP = 64;
/** How often each transfer is measured where time is real. */
const ROUNDS = 3;

type Make = (making: Making, offer: Offer | undefined, wrong: unknown) => Generator<void, WindowParts>;

const measured = new WeakMap<Communicator, LayoutCosts>();

/**
 * Collective.
 * @param make makes the window in which it is measured
 * @returns undefined, at all ranks, if one of them has no memory for it
 * Cost: 108 puts and gets, twice each, or four times where time is real; 160 KiB at the last rank, 128 KiB at rank 0.
 */
export function* layoutCosts(making: Making, make: Make): Generator<void, LayoutCosts | undefined> {
  const { comm, call } = making;
  const known = measured.get(comm);
  if (known !== undefined) return known;
  let most = 0;
  for (const { pieces, bytes } of LayoutCosts.places()) most = Math.max(most, pieces * (bytes + GAP));
  let offer: Offer | undefined;
  let wrong: unknown;
  try {
    const nothing = offerNothingYet(comm, call, Uint8Array, 0, { info: { noncontiguous: 'auto' } });
    offer = comm.rank === comm.size - 1 ? withMemory(comm, call, Uint8Array, most, nothing) : nothing;
  } catch (error) {
    wrong = error;
  }
  let window: WindowParts;
  try {
    window = yield* make({ ...making, name: `${making.name}, to measure layouts`, measures: true }, offer, wrong);
  } catch (error) {
    if (isLoss(error)) throw error;
    return undefined;
  }
  try {
    const costs = new LayoutCosts();
    let failure: unknown;
    if (comm.rank === 0) {
      try {
        yield* measure(comm, window, costs);
      } catch (error) {
        failure = error;
      }
    }
    if ((yield* comm.allCould(failure)) !== undefined) return undefined;
    yield* comm.tell(costs.times, 0);
    measured.set(comm, costs);
    return costs;
  } finally {
    window.release();
  }
}

/** Not all ranks hear of it in the same call. */
function isLoss(error: unknown): boolean {
  return error instanceof RankFailedError || error instanceof LostConnectionError;
}

function* measure(comm: Communicator, window: WindowParts, costs: LayoutCosts): Generator<void, void> {
  const target = comm.size - 1;
  // A window with the hint has them where it moves by requests.
  const requests = window.requests!;
  const noncontiguous = window.noncontiguous!;
  const places = [...LayoutCosts.places()];
  const data = new Uint8Array(Math.max(...places.map(({ pieces, bytes }) => pieces * bytes)));
  const transfers = places.map((place) => {
    const origin = data.subarray(0, place.pieces * place.bytes);
    return { place, origin, ...sidesOf(origin, place) };
  });
  const rounds = comm.job.tasks === undefined ? ROUNDS : 1;
  for (let round = 0; round <= rounds; round++) {
    for (const { place, origin, from, to } of transfers) {
      const { way, puts } = place;
      const began = comm.now();
      if (!noncontiguous.moveBy(way, puts, origin, from, target, 0, to)) {
        if (puts) requests.put(origin, from, target, 0, to, false);
        else requests.get(origin, from, target, 0, to);
      }
      const flush = requests.flush(target);
      while (!flush.advance()) yield;
      if (round > 0) costs.note(place, comm.now() - began);
    }
  }
  costs.complete();
}

function sidesOf(data: Uint8Array, { pieces, bytes }: Place): { from: Side; to: Side } {
  const type = Datatype.vector(pieces, bytes, bytes + GAP, Datatype.UINT8);
  return checkSides('Window.put', data, { target: { type } });
}
