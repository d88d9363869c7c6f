/** The page of names for users of BSPlib, LPF and MulticoreBSP: it is complete, and what it names of ours exists. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Communicator, Window } from 'onesided';
import * as bsplib from 'onesided/bsp';
import * as model from 'onesided/bsp/model';
import { expect, test } from 'vitest';

const page = readFileSync(fileURLToPath(new URL('../../docs/guide/bsp-names.md', import.meta.url)), 'utf8');
const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
const cells = rows.map((row) => row.slice(2).split(' | '));

/** Names in the first column, such as `bsp_put`. */
const theirs = new Set(
  cells.flatMap(([first]) => [...first.matchAll(/(?:bsp|lpf|mcbsp|bsplib)_\w+/g)].map(([n]) => n)),
);

/** The twenty primitives (Hill and others 1998), the calls of LPF's core, and what MulticoreBSP adds. */
const BSPLIB =
  'init begin end abort nprocs pid time sync push_reg pop_reg put get hpput hpget set_tagsize send ' +
  'qsize get_tag move hpmove';
const LPF =
  'exec hook rehook register_global register_local deregister put get sync probe ' +
  'resize_memory_register resize_message_queue';
const MULTICORE = 'bsp_hpsend bsp_direct_get';

test('every primitive of BSPlib, call of LPF and call that MulticoreBSP adds has its line', () => {
  const primitives = BSPLIB.split(' ');
  expect(primitives).toHaveLength(20);
  const wanted = [
    ...primitives.map((name) => `bsp_${name}`),
    ...LPF.split(' ').map((name) => `lpf_${name}`),
    ...MULTICORE.split(' '),
  ];
  expect(wanted.filter((name) => !theirs.has(name))).toEqual([]);
});

const { prototype } = bsplib.Bsp;
/** Fields are set by the constructor, and are named here. */
const PLACES: Readonly<Record<string, readonly object[]>> = {
  bsp: [prototype, bsplib.Bsp2.prototype, { pid: 1, nprocs: 1, comm: 1, uid: 1, units: 1 }],
  world: [Communicator.prototype, { size: 1 }],
  win: [Window.prototype],
  error: [{ code: 1 }],
  comm: [Communicator.prototype],
};

test('every name of ours on the page exists', () => {
  const ours = [...page.matchAll(/`(?:bsp\.(comm)\.(\w+)|(bsp|world|win|error)\.(\w+))/g)].map(
    ([, comm, call, place, name]): [string, string] => [comm ?? place, call ?? name],
  );
  expect(ours.length).toBeGreaterThan(40);
  expect(ours.filter(([place, name]) => !PLACES[place].some((object) => name in object))).toEqual([]);
});

test('every public name of a computation has its line', () => {
  const named = new Set([...page.matchAll(/`bsp\.(\w+)/g)].map(([, name]) => name));
  // The last is for `probe`.
  const internal = ['constructor', 'unreported'];
  const calls = Object.getOwnPropertyNames(prototype).filter((name) => !internal.includes(name));
  expect([...calls, 'pid', 'nprocs', 'comm'].filter((name) => !named.has(name))).toEqual([]);
});

test('every export of onesided/bsp and onesided/bsp/model has its line', () => {
  const text = cells.map((row) => row.join(' ')).join(' ');
  const isNamed = (name: string): boolean => new RegExp(`\`${name}\\b`).test(text);
  // The class, and the object that has `begin` and `run`.
  const exports = [...Object.keys(bsplib), ...Object.keys(model)].filter((name) => name !== 'bsp');
  expect(exports.filter((name) => !isNamed(name))).toEqual([]);
});
