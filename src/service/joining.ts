/**
 * How a process finds the members of a service, and becomes one: as a named job's (src/start/named.ts), by a notice in
 * a folder that only this user can enter. Whoever comes takes the lock of the notices, opens the memory of the first
 * member that lives through `/proc/PID/fd/N`, which the kernel allows to the same user only, takes a place, and adds
 * itself to the notice. If no member lives, there is no service of the name, and it begins one.
 *
 * A member is in the notice before it comes back from here, and as long as it lives. So the notice names all members
 * that live, and with them the memory is found, whatever has become of the process that made it.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import type { Native } from '../native.ts';
import { isIn, type Notice, Notices } from '../start/notices.ts';
import { VERSION } from '../version.ts';
import { type Keeper, startKeeper } from './keeper.ts';
import { asking, scarcity } from './scarcity.ts';
import { Members, takePlace } from './service-members.ts';
import { createMemory, MOST_PLACES, openMemory, type ServiceMemory } from './service-memory.ts';

const CALL = 'Service.join';
/** How long to wait for the lock of the notices. */
const JOIN_PATIENCE_MS = 10_000;
/** A process that cannot remove itself from the notice leaves that to the next one that comes. */
const LEAVE_PATIENCE_MS = 1000;
const DEFAULT_PLACES = 64;
/** A year. */
const MOST_KEEP = 365 * 24 * 3600;

export interface Joined {
  readonly members: Members;
  /** Behind `members.leave()`: takes the member out of the notice. Never throws; blocks for a second at most. */
  withdraw(): void;
  /** The same, while the event loop goes on. */
  withdrawLater(): Promise<void>;
}

export function checkService(name: unknown, places: unknown, keep: unknown): void {
  if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name)) {
    throw argumentTypeError(
      `${CALL}: a name must be 1 to 100 letters, digits, dots, dashes or underscores, not ${show(name)}`,
    );
  }
  if (typeof keep !== 'number' || !(keep >= 0 && keep <= MOST_KEEP)) {
    throw argumentRangeError(`${CALL}: keep must be seconds from 0 to ${MOST_KEEP}, not ${show(keep)}`);
  }
  if (places === undefined) return;
  if (typeof places !== 'number') throw argumentTypeError(`${CALL}: places must be a number, not ${show(places)}`);
  if (!Number.isInteger(places) || places < 1 || places > MOST_PLACES) {
    throw argumentRangeError(`${CALL}: places must be a whole number from 1 to ${MOST_PLACES}, not ${show(places)}`);
  }
}

export interface Wanted {
  /** How many members the service can have at a time; absent: what it has, or 64. */
  readonly places: number | undefined;
  /** Seconds for which its memory stays when this member was the last one. */
  readonly keep: number;
}

export async function joinService(native: Native, name: string, wanted: Wanted): Promise<Joined> {
  const notices = new Notices(native, CALL, 'service');
  const { memory, place, keeper } = await notices
    .lockedLater(JOIN_PATIENCE_MS, () => enter(native, notices, name, wanted))
    .catch((error: unknown) => {
      throw scarcity(error, CALL, `cannot join the service ${show(name)}`);
    });
  const members = new Members(name, memory, place);
  const close = (): void => {
    keeper?.end();
    closeSync(memory.fd);
  };
  const withdrawNow = (): void => withdraw(notices, name, memory.fd);
  // Where that fails, the notice names one that is a member no more.
  return {
    members,
    withdraw() {
      try {
        notices.locked(LEAVE_PATIENCE_MS, withdrawNow);
      } catch {}
      close();
    },
    async withdrawLater() {
      await notices.lockedLater(LEAVE_PATIENCE_MS, withdrawNow).catch(() => {});
      close();
    },
  };
}

function enter(
  native: Native,
  notices: Notices,
  name: string,
  { places, keep }: Wanted,
): { memory: ServiceMemory; place: number; keeper: Keeper | undefined } {
  const notice = notices.read(name);
  const living = notice?.members.filter((member) => isIn(notice, member)) ?? [];
  const found = notice && openFirst(native, name, { ...notice, members: living });
  if (found === undefined) sweep(notices);
  const memory = found ?? begin(native, places ?? DEFAULT_PLACES);
  try {
    if (places !== undefined && places !== memory.places) {
      throw new RmaError(
        'ERR_SERVICE_MISMATCH',
        `${CALL}: the service ${show(name)} has ${memory.places} places, and this call asks for ${places}; ` +
          'give the same, or leave places out',
      );
    }
    const place = takePlace(memory);
    if (place === undefined) {
      throw new RmaError(
        'ERR_SERVICE_FULL',
        `${CALL}: all ${memory.places} places of the service ${show(name)} have members; ` +
          'join after one has left, or begin the service with more places',
      );
    }
    const { dev: device, ino: inode } = fstatSync(memory.fd);
    const members = [...(found === undefined ? [] : living), { pid: process.pid, fd: memory.fd }];
    let keeper: Keeper | undefined;
    try {
      if (keep > 0) keeper = startKeeper(native, memory.fd, keep);
      // It has no place, and has the memory open like a member.
      if (keeper !== undefined) members.push(keeper.member);
      const notice = { version: VERSION, size: memory.places, device, inode, members };
      const what = `cannot publish the service ${show(name)} in ${notices.directory}`;
      asking(CALL, what, () => notices.write(name, notice));
    } catch (error) {
      keeper?.end();
      new Members(name, memory, place).leave();
      throw error;
    }
    return { memory, place, keeper };
  } catch (error) {
    closeSync(memory.fd);
    throw error;
  }
}

/** Removes the notices of services of which no member lives: their last ones were killed. Under the lock. */
export function sweep(notices: Notices): void {
  for (const name of notices.names()) {
    try {
      const notice = notices.read(name);
      if (notice?.members.some((member) => isIn(notice, member)) !== true) notices.remove(name);
    } catch {
      // What cannot be read is its joiners' affair.
    }
  }
}

/** A descriptor that ends with this thread: Node closes those of a worker that it has opened itself. */
function reopened(file: string): number {
  return openSync(file, 'r+');
}

function begin(native: Native, places: number): ServiceMemory {
  const memory = createMemory(native, places);
  try {
    return { ...memory, fd: reopened(`/proc/self/fd/${memory.fd}`) };
  } finally {
    closeSync(memory.fd);
  }
}

/** The memory that the first of these members has open. */
export function openFirst(native: Native, name: string, notice: Notice): ServiceMemory | undefined {
  for (const member of notice.members) {
    let fd: number;
    try {
      fd = reopened(`/proc/${member.pid}/fd/${member.fd}`);
    } catch (cause) {
      if (!isIn(notice, member)) continue;
      const who = `process ${member.pid}, a member`;
      throw new RmaError('ERR_SERVICE', `${CALL}: cannot join ${show(name)}: ${who}, denies access`, { cause });
    }
    // Its number may have become another file's since it was looked at.
    const { dev, ino } = fstatSync(fd);
    const isIt = dev === notice.device && ino === notice.inode;
    if (isIt && notice.version === VERSION) {
      const memory = openMemory(native, fd, notice.size);
      if (memory !== undefined) return memory;
    }
    closeSync(fd);
    if (!isIt) continue;
    if (notice.version === VERSION) {
      throw new RmaError(
        'ERR_DAMAGED',
        `${CALL}: the memory of the service ${show(name)}, which process ${member.pid} has open, was written over; ` +
          `end its members, or take its name away: onesided service remove ${name}`,
      );
    }
    throw new RmaError(
      'ERR_VERSION',
      `${CALL}: process ${member.pid} in the service ${show(name)} runs onesided ${notice.version}, ` +
        `but this process runs ${VERSION}; all members must run the same version`,
    );
  }
  return undefined;
}

/** Takes this process out of the notice, if it is this service's. */
function withdraw(notices: Notices, name: string, fd: number): void {
  const notice = notices.read(name);
  const { dev, ino } = fstatSync(fd);
  if (notice === undefined || notice.device !== dev || notice.inode !== ino) return;
  const members = notice.members.filter((member) => !(member.pid === process.pid && member.fd === fd));
  if (members.some((member) => isIn(notice, member))) notices.write(name, { ...notice, members });
  else notices.remove(name);
}
