/**
 * Ranks that a process manager has started: each says on a card where its process is and offers control memory; the
 * first rank's is taken.
 *
 * A rank's memory file is made before its card is shown, so it is there for every rank that has the card. Rank 0 also
 * formats its own file before that, so every rank that opens it finds it ready. Rank 0 keeps its descriptor until all
 * ranks have joined.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { coresHere } from '../cores.ts';
import { RmaError } from '../errors.ts';
import { type Control, createControl, MAX_RANKS } from '../job/control-region.ts';
import type { Membership } from '../job/membership.ts';
import type { Native } from '../native.ts';
import type { DistantContext } from '../providers/provider-kind.ts';
import { DISTANT_PROVIDER_NAMES } from '../providers/provider-kinds.ts';
import { VERSION } from '../version.ts';
import { DistributedControl, type Hub } from './distributed.ts';
import { CARD_CHARACTERS, type Patience, type ProcessManager } from './managers/manager.ts';
import { type DistantPeers, joinAgentsRanks, joinProcesses } from './process.ts';
import { distantProvider } from './provider.ts';
import { refuseTrace, requestedRecords } from './tracing.ts';
import { hostName, machineOf, ownAddress, placeOfProcess } from './whereabouts.ts';

/** As the kernel writes a list of cores. */
const CORES = /^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?){0,50}$/;

interface Card {
  readonly version: string;
  /** Ranks with the same one can open each other's descriptors. */
  readonly place: string;
  /** For messages. */
  readonly host: string;
  readonly pid: number;
  /** The descriptor of the control memory, of rank 0. */
  readonly fd: number;
  /** What connects it to ranks of other hosts, and where they find it there, if anything does. */
  readonly end?: readonly [provider: string, address: object];
  /** Of rank 0, where ranks of other hosts find it. */
  readonly hub?: Hub;
  /**
   * The cores that this rank may run on, as the kernel writes them: `0-3,8`. A manager may bind each rank to its own.
   */
  readonly cores: string;
}

/**
 * Control memory that this rank shares with the agent that has started it, and with its other ranks of the same place.
 * The agents keep those of several places alike.
 */
export interface Launched {
  readonly control: Control;
  readonly fd: number;
}

/** How this rank came, and when all ranks are there. */
interface Joining {
  readonly membership: Membership;
  complete(): void;
}

/**
 * @param launched absent where a manager has started the ranks that is none of ours
 * @returns the membership, and what to call when all ranks are there
 */
export async function joinManaged(
  native: Native,
  manager: ProcessManager,
  patience: Patience,
  launched?: Launched,
): Promise<Joining> {
  const { rank, size } = manager;
  if (size > MAX_RANKS) throw new RmaError('ERR_COMM', `init: a job can have at most ${MAX_RANKS} ranks, not ${size}`);
  const own = rank === 0 && launched === undefined ? createControl(native, size, requestedRecords(size)) : undefined;
  const provider = distantProvider();
  const distributed = provider && launched === undefined ? new DistributedControl(rank, size) : undefined;
  const { control: table } = launched ?? distributed ?? {};
  const host = provider && ownAddress(await manager.reached?.());
  const end = provider && table && provider.openDistant(native, table.fabric, rank, size, host!);
  const close = (): void => {
    if (own !== undefined) closeSync(own.fd);
  };
  const discard = (): void => {
    end?.context.close();
    distributed?.close();
  };
  try {
    const hub = rank === 0 ? await distributed?.listen(end!.hosts) : undefined;
    const card: Card = {
      version: VERSION,
      place: placeOfProcess(),
      host: hostName(),
      pid: process.pid,
      fd: own?.fd ?? -1,
      cores: allowedCores(),
      ...(end && { end: [provider!.name, end.address] as const }),
      ...(hub && { hub }),
    };
    const cards = (await manager.exchange(write(card), patience)).map((text, other) => read(text, other, manager));
    for (const [other, { version }] of cards.entries()) checkVersion(other, version, rank, card.version);
    manager.forget();
    if (cards.every(({ place }) => place === card.place)) {
      discard();
      const fd = launched?.fd ?? openControl(cards[0], rank);
      const membership = joinProcesses(native, fd, rank, size, launched !== undefined, coresOf(cards));
      return { membership, complete: close };
    }
    if (end === undefined || cards.some((other) => other.end?.[0] !== provider?.name)) throw strangers(cards, rank);
    end.store(
      cards.map(({ end }) => end![1]),
      cards.map(({ place, pid }) => (place === card.place ? pid : undefined)),
    );
    await reachOthers(end, cards, rank, patience);
    const peers: DistantPeers = {
      who: cards.map(({ pid, host }) => `process ${pid} on ${host}`),
      isNear: cards.map(({ place }) => place === card.place),
      cores: coresFor(cards, card.place),
    };
    if (launched !== undefined)
      return { membership: joinAgentsRanks(native, launched, end.context, rank, peers), complete: () => {} };
    if (rank === 0) refuseTrace(size);
    if (cards[0].hub === undefined) throw strangers(cards, rank);
    if (rank === 0) distributed!.expectAll();
    else await distributed!.join(cards[0].hub, patience);
    const membership = distributed!.membership(native, end.context, peers.who, peers.cores);
    close();
    return { membership, complete: () => {} };
  } catch (error) {
    close();
    discard();
    throw error;
  }
}

function strangers(cards: readonly Card[], rank: number): RmaError {
  const { place, host } = cards[rank];
  const stranger = cards.findIndex((other) => other.place !== place);
  return new RmaError(
    'ERR_PROVIDER_UNAVAILABLE',
    `init: rank ${stranger} (on ${cards[stranger].host}) and rank ${rank} (on ${host}) ` +
      'do not share a host, its network, a PID namespace and a user, so they need a device to communicate; ' +
      `set ONESIDED_PROVIDER=${DISTANT_PROVIDER_NAMES} for all ranks`,
  );
}

/**
 * The first rank of each place tries to reach the first one of each other: what keeps them apart would show much later,
 * and then as a rank that does not respond.
 */
async function reachOthers(end: DistantContext, cards: readonly Card[], rank: number, { signal }: Patience) {
  const isFirst = ({ place }: Card, other: number): boolean => cards.findIndex((one) => one.place === place) === other;
  if (!isFirst(cards[rank], rank)) return;
  const firsts = cards.flatMap((card, other) => (other !== rank && isFirst(card, other) ? [other] : []));
  const refusals = await Promise.all(firsts.map((other) => end.refusal?.(cards[other].end![1], signal)));
  const apart = refusals.findIndex((refusal) => refusal !== undefined);
  if (apart < 0) return;
  const [own, theirs] = [rank, firsts[apart]].map((other) => `rank ${other} on ${cards[other].host}`);
  throw new RmaError(
    'ERR_COMM',
    `init: ${own} cannot connect to ${theirs} at ${refusals[apart]}; hosts must allow each other TCP connections ` +
      `to any port above 1023, and ONESIDED_ADDRESS on ${cards[firsts[apart]].host} says at which of its addresses ` +
      'the others reach it',
  );
}

/**
 * Those of one place share its cores, and those of one machine all of its cores: several containers, or namespaces, may
 * be on one. As many for each rank elsewhere.
 */
function coresFor(cards: readonly Card[], own: string): number {
  const here = cards.filter(({ place }) => place === own);
  const machine = cards.filter(({ place }) => machineOf(place) === machineOf(own));
  // The quota is that of this place.
  const each = Math.min(coresOf(here) / here.length, coresOf(machine, availableParallelism) / machine.length);
  return Math.floor(each * cards.length);
}

/** Rank 0's control memory, opened. */
function openControl({ pid, fd }: Card, rank: number): number {
  try {
    return openSync(`/proc/${pid}/fd/${fd}`, 'r+');
  } catch (cause) {
    throw new RmaError('ERR_COMM', `init: rank ${rank} cannot join: rank 0 (process ${pid}) is gone or denies access`, {
      cause,
    });
  }
}

function write(card: Card): string {
  const text = Buffer.from(JSON.stringify(card)).toString('base64url');
  if (text.length <= CARD_CHARACTERS) return text;
  throw new RmaError(
    'ERR_COMM',
    `init: this rank's connection data has ${text.length} characters; at most ${CARD_CHARACTERS} are possible`,
  );
}

function read(text: string, rank: number, { name }: ProcessManager): Card {
  try {
    const card = JSON.parse(Buffer.from(text, 'base64url').toString()) as Card;
    const { version, place, host, pid, fd, cores } = card;
    const texts = [version, place, host, cores].every((text) => typeof text === 'string');
    if (texts && Number.isInteger(pid) && Number.isInteger(fd) && CORES.test(cores)) return card;
    // Another version's card may have other things on it; which version is worth saying.
    if (typeof version === 'string') return { version, place: '', host: '', pid: 0, fd: -1, cores: '0' };
  } catch {
    // Then it is no card.
  }
  throw new RmaError(
    'ERR_COMM',
    `init: the data of rank ${rank} that arrived through ${name} does not come from onesided`,
  );
}

/** Throws unless the two ranks run the same version. */
function checkVersion(other: number, theirs: string, rank: number, own: string): void {
  if (theirs === own) return;
  throw new RmaError(
    'ERR_VERSION',
    `init: rank ${other} runs onesided ${theirs}, but rank ${rank} runs ${own}; ` +
      'all ranks of a job must run the same version',
  );
}

/**
 * How many cores the ranks have together: a manager that binds each to its own core leaves none of them a view of all.
 * @param alike where all have the same ones, this rank's number of them
 */
function coresOf(cards: readonly Card[], alike = coresHere): number {
  if (cards.every(({ cores }) => cores === cards[0].cores)) return alike();
  return new Set(cards.flatMap(({ cores }) => listed(cores))).size;
}

/** The numbers of `0-3,8`. */
function listed(cores: string): number[] {
  return cores.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

function allowedCores(): string {
  const found = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
  return found.length <= 200 && CORES.test(found) ? found : '0';
}
