/**
 * What the ranks of a window agree on before it is made: their records are exchanged, and refusals and broken promises
 * found.
 */
import type { Communicator } from '../../collective/communicator.ts';
import type { Refusal } from '../../collective/refusals.ts';
import { RmaError } from '../../errors.ts';
import { ALL_ACCESS } from '../../verbs/checks.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';
import type { Offer } from './offer.ts';
import { makeOwnWords, type OwnWords } from './own-words.ts';
import { RecordLayout, Records } from './part-record.ts';
import type { Undo } from './undo.ts';
import {
  givesSeldom,
  type Hints,
  hintThatDiffers,
  numberOf,
  seldomNumberOf,
  seldomThatDiffers,
} from './window-info.ts';
import type { Flavor } from './window-parts.ts';

/** Which window is made. */
export interface Making {
  readonly comm: Communicator;
  /** For messages. */
  readonly call: string;
  readonly flavor: Flavor;
  readonly name: string;
  /** It is made to measure what layouts take, and nothing is measured for it (layout-costs.ts). */
  readonly measures?: true;
}

/** What all ranks have said, and this rank's own. */
export interface Agreement {
  readonly records: Records;
  readonly offer: Offer;
  readonly words: OwnWords;
  /** This rank's part; absent if it has none that others can reach. */
  readonly region: MemoryRegion | undefined;
  /** What this rank names the window's spaces of messages, if it is the first; else 0. */
  readonly space: number;
}

/**
 * A rank that refuses says so, so that no rank waits for it.
 * @param wrong why this rank offers nothing
 * Errors: this rank's own; `ERR_WIN` if another one refuses; `ERR_INFO_VALUE`, `ERR_SIZE` if what they say does not fit
 * together, at all ranks.
 */
export function* agree(
  making: Making,
  offer: Offer | undefined,
  wrong: unknown,
  undo: Undo,
): Generator<void, Agreement> {
  const { comm, call } = making;
  const layout = new RecordLayout(comm.job);
  let own: Omit<Agreement, 'records'> | undefined;
  let failure = wrong;
  if (offer !== undefined) {
    try {
      own = prepare(making, offer, undo);
    } catch (error) {
      failure = error;
    }
  }
  const record = own === undefined ? layout.pack({ refused: [1] }) : recordOf(comm, layout, own);
  const all = yield* comm.exchange(record);
  const records = commonRecords(comm, new Records(comm.size, layout, all));
  const refused = records.first((rank) => records.of(rank, 'refused') !== 0);
  if (refused >= 0) {
    const why = yield* comm.hearWhy(refused, failure);
    throw failure ?? notMade(call, { rank: refused, why });
  }
  const broken =
    brokenPromise(making, records, own!.offer.hints) ?? (yield* compareSeldom(making, records, own!.offer.hints));
  if (broken !== undefined) throw broken;
  return { ...own!, records };
}

/** The same in memory for all ranks that are tasks: each pair of them would take 80 bytes otherwise. */
function commonRecords({ job, size, group }: Communicator, records: Records): Records {
  return job.tasks?.registry.share(records.of(0, 'space'), group.worldRanks[0], size, records) ?? records;
}

/** For the other ranks. */
export function notMade(call: string, { rank, why }: Refusal): RmaError {
  const reason = why.startsWith(`${call}: `) ? why.slice(call.length + 2) : why;
  return new RmaError('ERR_WIN', `${call}: no window was created, because the call failed on rank ${rank}: ${reason}`);
}

/** Makes this rank's words, and registers its part. Errors: `ERR_SIZE`, `ERR_COMM`. */
function prepare({ comm, call, flavor }: Making, offer: Offer, undo: Undo): Omit<Agreement, 'records'> {
  const { job } = comm;
  const { local, memory } = offer;
  const space = comm.rank === 0 ? comm.nameSpaces() : 0;
  try {
    const words = makeOwnWords(comm, flavor, offer.hints);
    undo.add(() => words.free());
    const region = memory && job.pd.registerMemory(memory, local.byteOffset, local.byteLength, ALL_ACCESS);
    if (region !== undefined) undo.add(() => region.deregister());
    return { offer, words, region, space };
  } catch (cause) {
    throw new RmaError(
      'ERR_SIZE',
      `${call}: cannot allocate the library's own memory for the window: ${(cause as Error).message}`,
      { cause },
    );
  }
}

function recordOf(
  comm: Communicator,
  layout: RecordLayout,
  { offer, words, region, space }: Omit<Agreement, 'records'>,
): Float64Array {
  const { local, memory } = offer;
  const { neighbours } = comm.job.context;
  const named = neighbours !== undefined && memory !== undefined;
  return layout.pack({
    bytes: [(offer.wanted ?? local.length) * local.BYTES_PER_ELEMENT],
    dispUnit: [offer.dispUnit],
    element: [local.BYTES_PER_ELEMENT],
    hints: [numberOf(offer.hints)],
    space: [space],
    region: region === undefined ? [] : [region.rkey, region.address],
    words: words.atomics?.place.slice(0, 2) ?? [],
    place: words.block?.place ?? [],
    share: offer.share?.numbers ?? [],
    handle: named ? [neighbours.handleOf(memory), memory.byteLength, local.byteOffset] : [],
    wordsHandle:
      neighbours && words.atomics ? [neighbours.handleOf(words.atomics.memory), words.atomics.memory.byteLength] : [],
  });
}

function otherHint(call: string, rank: number, hint: keyof Hints): RmaError {
  return new RmaError(
    'ERR_INFO_VALUE',
    `${call}: the hint ${hint} of rank ${rank} differs from that of rank 0; all ranks must pass the same hints`,
  );
}

/** Of hints that are not in the records, if some rank gives one: the same at all ranks. */
function* compareSeldom({ comm, call }: Making, records: Records, hints: Hints): Generator<void, RmaError | undefined> {
  if (records.first((rank) => givesSeldom(records.of(rank, 'hints'))) < 0) return undefined;
  const all = yield* comm.exchange(Float64Array.of(seldomNumberOf(hints)));
  for (let rank = 1; rank < comm.size; rank++) {
    const hint = seldomThatDiffers(all[rank], all[0]);
    if (hint !== undefined) return otherHint(call, rank, hint);
  }
  return undefined;
}

/** What the ranks' records say against each other, or against what was promised by hints. The same at all ranks. */
function brokenPromise({ comm, call, flavor }: Making, records: Records, hints: Hints): RmaError | undefined {
  for (let rank = 1; rank < comm.size; rank++) {
    const hint = hintThatDiffers(records.of(rank, 'hints'), records.of(0, 'hints'));
    if (hint !== undefined) return otherHint(call, rank, hint);
  }
  if (flavor === 'shared' && !hints.alloc_shared_noncontig) {
    let at = 0;
    for (let rank = 0; rank < comm.size; rank++) {
      const [bytes, element] = [records.of(rank, 'bytes'), records.of(rank, 'element')];
      if (bytes > 0 && at % element !== 0) {
        return new RmaError(
          'ERR_SIZE',
          `${call}: the part of rank ${rank} would begin at byte ${at}, ` +
            `which is not a multiple of its element size, ${element} bytes; ` +
            'choose other lengths or pass the hint alloc_shared_noncontig',
        );
      }
      at += bytes;
    }
  }
  for (const [promised, hint, field, thing] of [
    [hints.same_size, 'same_size', 'bytes', 'part'],
    [hints.same_disp_unit, 'same_disp_unit', 'dispUnit', 'displacement unit'],
  ] as const) {
    const rank = promised ? records.firstThatDiffers(field) : -1;
    if (rank < 0) continue;
    return new RmaError(
      'ERR_INFO_VALUE',
      `${call}: the hint ${hint} is set, but rank 0 has a ${thing} of ${records.of(0, field)} bytes and rank ` +
        `${rank} one of ${records.of(rank, field)} bytes`,
    );
  }
  return undefined;
}
