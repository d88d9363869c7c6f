/**
 * The page that maps MPI's names to ours: every name of ours exists, every public call of `Window` has its line, and
 * MPI's names are complete.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as library from 'onesided';
import { describe, expect, test } from 'vitest';

const page = readFileSync(fileURLToPath(new URL('../../docs/guide/mpi-names.md', import.meta.url)), 'utf8');

interface Named {
  readonly C: string;
  readonly here: string;
}

/** The lines of the tables, by column. */
const lines: Named[] = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| ---') && !line.startsWith('| C |'))
  .map((line) => line.slice(2).split(' | '))
  .map(([C, , here]) => ({ C, here }));

const proto = (of: unknown): object => (of as { prototype: object }).prototype;
const { Window, Communicator, Group, Request, Datatype, Op, Lock, Assert, Rank, init } = library;

/** What `win.` and the like stand for. Fields of an object are set by its constructor, and are named here. */
const PLACES: Readonly<Record<string, readonly object[]>> = {
  Window: [Window],
  win: [proto(Window), { local: 1, dispUnit: 1, flavor: 1, model: 1, group: 1, name: 1 }],
  world: [proto(Communicator), { rank: 1, size: 1, group: 1 }],
  group: [proto(Group), { rank: 1 }],
  request: [proto(Request)],
  Request: [Request],
  Datatype: [Datatype],
  type: [proto(Datatype), { size: 1, extent: 1 }],
  Op: [Op],
  Lock: [Lock],
  Assert: [Assert],
  Rank: [Rank],
};

/** The calls of MPI 4.1's chapter 12, and of the windows elsewhere in MPI. */
const CALLS = `
Win_create Win_allocate Win_allocate_shared Win_shared_query Win_create_dynamic Win_attach Win_detach Win_free
Win_get_group Win_set_info Win_get_info Win_get_name Win_set_name Win_get_attr Win_set_attr Win_delete_attr
Win_create_keyval Win_free_keyval Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rput Rget Raccumulate
Rget_accumulate Win_fence Win_start Win_complete Win_post Win_wait Win_test Win_lock Win_lock_all Win_unlock
Win_unlock_all Win_flush Win_flush_all Win_flush_local Win_flush_local_all Win_sync Win_create_errhandler
Win_set_errhandler Win_get_errhandler Win_call_errhandler Alloc_mem Free_mem Get_address Aint_add Aint_diff
`
  .trim()
  .split(/\s+/);

describe("MPI's names and ours", () => {
  const ours = lines.flatMap(({ here }) =>
    [...here.matchAll(/`(\w+)\.(\w+)`/g)].map(([, place, name]) => [place, name]),
  );

  test('every name of ours on the page exists', () => {
    expect(init).toBeTypeOf('function');
    const missing = ours.filter(([place, name]) => PLACES[place]?.every((object) => !(name in object)) ?? true);
    expect(missing.filter(([place]) => place !== 'error').map((names) => names.join('.'))).toEqual([]);
  });

  test('every public call of a window has its line', () => {
    const calls = Object.getOwnPropertyNames(proto(Window)).filter((name) => name !== 'constructor');
    const named = new Set(ours.filter(([place]) => place === 'win').map(([, name]) => name));
    // Twins that block, and epochs as objects, which stand behind `locked`; what only the library has is in its
    // reference.
    const extra = new Set(['lockedAll', 'fenced', 'started', 'posted', 'dispUnitOf']);
    expect(calls.filter((name) => !named.has(name) && !name.endsWith('Sync') && !extra.has(name))).toEqual([]);
  });

  test('every public call of communicators and groups has its line', () => {
    const own = (object: object): string[] => Object.getOwnPropertyNames(object);
    const communicators: object[] = [];
    for (let at = proto(Communicator); at !== Object.prototype; at = Object.getPrototypeOf(at) as object)
      communicators.push(at);
    const calls = {
      world: communicators.flatMap(own),
      group: own(proto(Group)),
    };
    // Of the library only: what no program calls.
    const internal = new Set(
      (
        'constructor shares begin exchange awaited awaitedRanks sumForMe sumForMeOfAll openChannel nameSpaces ' +
        'giveBack hearWhy allCould shrunk tell traceId windows signals farewell spin refusal onRelease collective ' +
        'collectiveSync fenceOrder broke sequence barrierWithoutWords makePart setUpWithin beginSetUp leave'
      ).split(' '),
    );
    const named = new Set([...page.matchAll(/`(\w+\.\w+)`/g)].map(([, name]) => name));
    const missing = Object.entries(calls).flatMap(([place, names]) =>
      names.filter((name) => !internal.has(name) && !name.endsWith('Sync')).map((name) => `${place}.${name}`),
    );
    expect(missing.filter((name) => !named.has(name))).toEqual([]);
  });

  test("every call of MPI's chapter has its line", () => {
    const named = new Set(lines.flatMap(({ C }) => [...C.matchAll(/`MPI_(\w+)`/g)].map(([, name]) => name)));
    expect(CALLS.filter((name) => !named.has(name))).toEqual([]);
  });
});
