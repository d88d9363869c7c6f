/** What the rows of services do, whatever does it: one call of each is one operation. */

/** One worker's view of what all share. All calls may give a promise; those of ours and LMDB's do not. */
export interface Store {
  /** How many operations a worker has under way at a time, where each is an answer that is waited for. */
  readonly concurrency: number;
  add(): unknown;
  lockAndRelease(): unknown;
  pushAndPop(): unknown;
  get(key: string): unknown;
  set(key: string, value: unknown): unknown;
  getBytes(key: string): unknown;
  setBytes(key: string, value: Uint8Array): unknown;
  /** Between batches: readers see what was written since. */
  refresh?(): void;
  close(): unknown;
}

export const STORES = ['onesided', 'near', 'lmdb', 'lmdb-durable', 'redis', 'process.send', 'Map'] as const;
export type StoreName = (typeof STORES)[number];

export const KEYS = 1000;
export const keys = Array.from({ length: KEYS }, (_, i) => `session:${String(i).padStart(12, '0')}`);
const bytes = Uint8Array.from({ length: 200 }, (_, i) => i);
/** 200 bytes of JSON. */
const json = { user: 12345, name: 'somebody', roles: ['admin', 'user'], since: 1700000000, text: 'x'.repeat(119) };

let state = 12345;
function random(n: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 8) % n;
}
const key = (): string => keys[random(KEYS)];

export type Operation = (store: Store) => unknown;

const mixed =
  (reads: number): Operation =>
  (store) =>
    random(100) < reads ? store.get(key()) : store.set(key(), json);

/** The rows, and which stores can do them. */
export const ROWS: readonly { readonly id: string; readonly operation: Operation }[] = [
  { id: 'counter', operation: (store) => store.add() },
  { id: 'mutex', operation: (store) => store.lockAndRelease() },
  { id: 'queue', operation: (store) => store.pushAndPop() },
  { id: 'map-get-bytes', operation: (store) => store.getBytes(key()) },
  { id: 'map-set-bytes', operation: (store) => store.setBytes(key(), bytes) },
  { id: 'map-get-json', operation: (store) => store.get(key()) },
  { id: 'map-set-json', operation: (store) => store.set(key(), json) },
  { id: 'map-90/10-json', operation: mixed(90) },
  { id: 'map-50/50-json', operation: mixed(50) },
];

export async function fill(store: Store): Promise<void> {
  for (const name of keys) {
    await store.set(name, json);
    await store.setBytes(name, bytes);
  }
}
