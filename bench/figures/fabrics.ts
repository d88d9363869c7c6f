/**
 * The fabrics of the figures. In a worker that is told so, one number of one of them is another, or it is recorded
 * which numbers are read (sensitivity.ts).
 */
import { workerData } from 'node:worker_threads';
import { type Fabric, loadFabric, observeFabric } from 'onesided/fabrics';

/** A number of a fabric, and by what it is multiplied. */
export interface Change {
  readonly fabric: string;
  /** As `host.copy`. */
  readonly number: string;
  readonly factor: number;
}

/** What a worker is told. */
export type Changes =
  /** `held`: without the change, all claims hold that are judged here. */
  { readonly change: Change; readonly held: boolean } | { readonly observed: 'measure' | 'verdict' };

/** Null in the main thread, undefined in workers that are told nothing. */
const changes = workerData as Changes | null | undefined;
/** Whether the verdict alone is of interest here. */
export const isJudged =
  changes !== null && changes !== undefined && ('change' in changes || changes.observed === 'verdict');
/** As `infinihost-64 host.copy`; empty where nothing is recorded. */
export const numbersRead = new Set<string>();

/** Whether a part of a claim that is measured on this fabric alone holds as it did: another fabric has changed. */
export const holdsStill = (name: string): boolean =>
  changes !== null && changes !== undefined && 'change' in changes && changes.held && changes.change.fabric !== name;

/** A fabric by its name, as this worker has it. */
export function fabricOf(name: string): Fabric {
  const fabric = loadFabric(name);
  if (changes === null || changes === undefined) return fabric;
  if ('observed' in changes) return observeFabric(fabric, (number) => void numbersRead.add(`${name} ${number}`));
  return changes.change.fabric === name ? changed(fabric, changes.change) : fabric;
}

/** What counts something, or chooses. */
const WHOLE = new Set([
  ...['pollThreshold', 'pollLimit', 'eager', 'rendezvousByRead', 'helper'].map((field) => `host.${field}`),
  ...['ranks', 'messagesByMemory', 'rdmaByMemory'].map((field) => `node.${field}`),
  ...['inline', 'maxSge', 'maxReads', 'maxMessage', 'packet'].map((field) => `adapter.${field}`),
  ...['bus.shared', 'switch.leafPorts', 'switch.uplinks'],
  ...['ethernet.room', 'tcp.window', 'tcp.window0', 'tcp.header'],
]);

/** What is whole stays whole: it is rounded away from what it was. */
export function changed(fabric: Fabric, { number, factor }: Pick<Change, 'number' | 'factor'>): Fabric {
  const [group, field] = number.split('.');
  const numbers = fabric[group as keyof Fabric] as unknown as Readonly<Record<string, number>>;
  const exact = numbers[field] * factor;
  const after = !WHOLE.has(number) ? exact : factor < 1 ? Math.floor(exact) : Math.ceil(exact);
  const other = { ...fabric, [group]: { ...numbers, [field]: after } };
  if (number !== 'tcp.header') return other;
  // What a datagram has room for: of the longest packet, what the headers leave.
  return { ...other, adapter: { ...other.adapter, packet: fabric.adapter.packet - (after - numbers[field]) } };
}
