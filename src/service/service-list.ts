/** The services of this user on this machine, for whoever looks after them. */
import { closeSync } from 'node:fs';
import { RmaError, show } from '../errors.ts';
import type { Native } from '../native.ts';
import { isIn, Notices } from '../start/notices.ts';
import { namesIn } from './catalogue.ts';
import { openFirst, sweep } from './joining.ts';
import { isMember, rowOf } from './service-members.ts';
import { Header } from './service-memory.ts';

export interface ServiceReport {
  readonly name: string;
  /** Why nothing else is known; absent otherwise. */
  readonly trouble?: string;
  readonly places?: number;
  readonly members?: readonly { readonly place: number; readonly pid: number }[];
  /** Bytes of the file, whether or not they have been touched. */
  readonly bytes?: number;
  /** What its members share. */
  readonly shared?: readonly { readonly name: string; readonly kind: string; readonly bytes: number }[];
}

const PATIENCE_MS = 10_000;

/** Also removes what is left of those whose members were all killed. @param call for messages */
export function listServices(native: Native, call: string): ServiceReport[] {
  const notices = new Notices(native, call, 'service');
  return notices.locked(PATIENCE_MS, () => {
    sweep(notices);
    return notices.names().flatMap((name) => {
      try {
        return reportOf(native, notices, name) ?? [];
      } catch (error) {
        return { name, trouble: (error as Error).message };
      }
    });
  });
}

/** @returns `undefined` if none of its members lives */
function reportOf(native: Native, notices: Notices, name: string): ServiceReport | undefined {
  const notice = notices.read(name);
  const living = notice?.members.filter((member) => isIn(notice, member)) ?? [];
  const memory = notice && openFirst(native, name, { ...notice, members: living });
  if (memory === undefined) return undefined;
  try {
    const there = new Set(living.map(({ pid }) => pid));
    const rows = Array.from({ length: memory.places }, (_, place) => ({ place, ...rowOf(memory, place) }));
    return {
      name,
      places: memory.places,
      members: rows
        .filter(({ life, pid }) => isMember(life) && there.has(pid))
        .map(({ place, pid }) => ({ place, pid })),
      bytes: Atomics.load(memory.header, Header.PAGES) * native.pageBytes,
      shared: namesIn(memory),
    };
  } finally {
    closeSync(memory.fd);
  }
}

/**
 * Takes a service's name away: whoever joins it then begins a new one. Its members go on with the old one, of which
 * they are the last.
 */
export function removeService(native: Native, call: string, name: string): void {
  const notices = new Notices(native, call, 'service');
  notices.locked(PATIENCE_MS, () => {
    if (!notices.names().includes(name)) {
      sweep(notices);
      const names = notices.names().join(', ') || 'none';
      throw new RmaError('ERR_SERVICE', `there is no service ${show(name)}; this user's services: ${names}`);
    }
    notices.remove(name);
  });
}
