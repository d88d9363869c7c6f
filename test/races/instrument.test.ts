/** Modules that are rewritten to be seen do what they did, and tell what they load and store, with its place. */
import { inspect } from 'node:util';
import { parse } from 'acorn';
import { expect, test } from 'vitest';
import { instrument } from '../../src/races/instrument/instrument.ts';
import { programCalls } from '../../src/races/instrument/program-calls.ts';
import type { RaceRuntime } from '../../src/races/watch/tracked-memory.ts';

interface Seen {
  readonly what: string;
  readonly bytes: string;
  readonly at: string;
}

const CALLS = Symbol.for('onesided.races.calls');

function runtimeOf(memories: RaceRuntime['memories']): RaceRuntime {
  return {
    ...{ memories, sites: [], columns: new Map(), site: -1, instruments: true },
    ...{ unseen: new Set<string>(), tellUnseen: undefined },
  };
}

/** Runs the body of a function with an array `a` of four bytes, once as it is and once rewritten. */
function run(body: string): { result: unknown; seen: Seen[] } {
  const source = `return (() => {\n${body}\n})();`;
  const plain = new Function('a', 'view', source);
  const expected: unknown = plain(...arrays());
  const code = instrument(`function run(a, view) { ${source} }`, 'file:///m.js', false);
  const [a, view] = arrays();
  const seen: Seen[] = [];
  const runtime = runtimeOf(
    new WeakMap([
      [
        a.buffer as ArrayBufferLike,
        {
          touch: (low, high, writes, site, call) => {
            const at = runtime.sites[site].replace('/m.js:', '');
            seen.push({ what: `${writes === 1 ? 'store' : 'load'} ${call}`, bytes: `${low}-${high - 1}`, at });
          },
        },
      ],
    ]),
  );
  const before = globalThis as unknown as Record<symbol, unknown>;
  before[CALLS] = programCalls(runtime);
  const result: unknown = new Function(
    'a',
    'view',
    `${code ?? `function run(a, view) { ${source} }`}\nreturn run(a, view);`,
  )(a, view);
  delete before[CALLS];
  expect(result).toEqual(expected);
  return { result, seen };
}

function arrays(): [Uint8Array, DataView] {
  const a = Uint8Array.of(1, 2, 3, 4);
  return [a, new DataView(a.buffer)];
}

/** Loads of single elements. */
const loads = (...at: number[]): string[] => at.map((one) => `load load ${one}-${one}`);
const LOOKS = ['load indexOf() 1-3', 'load includes() 3-3', 'load lastIndexOf() 0-1', 'load lastIndexOf() 0-3'];
const SLICED = ['load load 1-1', 'load toString() 2-2'];
const COMPARED = ['load compare() 3-3', 'load compare() 1-1', 'load readUIntLE() 1-3'];
const WROTE = ['store writeIntBE() 2-3', 'store write() 1-2'];

const told = (body: string): string[] => run(body).seen.map(({ what, bytes }) => `${what} ${bytes}`);

test.each([
  ['return a[1];', ['load load 1-1']],
  ['a[2] = 7; return [...a.subarray(2, 3)];', ['store store 2-2', 'load load 2-2']],
  ['return a[0]++ + --a[3];', ['load load 0-0', 'store store 0-0', 'load load 3-3', 'store store 3-3']],
  ['let i = 0; a[i++] += i; return [i, a[0]];', ['load load 0-0', 'store store 0-0', 'load load 0-0']],
  ['const [x, , y] = a; return [x, y];', ['load load 0-2']],
  ['const [x, ...y] = a; return [x, y];', ['load load 0-3']],
  ['[a[0], a[1]] = [a[1], a[0]]; return 1;', ['load load 1-1', 'load load 0-0', 'store store 0-0', 'store store 1-1']],
  ['({ x: a[0], y: a[1] = 5 } = { x: 9 }); return 0;', ['store store 0-0', 'store store 1-1']],
  ['let sum = 0; for (const x of a) sum += x; return sum;', ['load load 0-3']],
  ['a.fill(0, 1, -1); return a.slice(1, 2).length;', ['store fill() 1-2', 'load slice() 1-1']],
  ['a.set([1, 2], 2); return a.at(-1);', ['store set() 2-3', 'load at() 3-3']],
  ['return view.getUint16(1);', ['load getUint16() 1-2']],
  ['view.setInt8(3, 1); return 0;', ['store setInt8() 3-3']],
  ['Atomics.store(a, 0, 5); return Atomics.load(a, 0);', ['store Atomics.store() 0-0', 'load Atomics.load() 0-0']],
  ['return Math.max(...a);', ['load load 0-3']],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a program
  ['return `${a}`;', ['load load 0-3']],
  ['return a?.[0] ?? a?.slice(0, a[1]).length;', ['load load 0-0']],
  ['return a?.slice(0, a[1]).length;', ['load load 1-1', 'load slice() 0-1']],
  ['const o = { a, f(x) { return this.a?.[x]; } }; return [o?.a[1], o.b?.c[2], o?.f(3)];', loads(1, 3)],
  ['const o = { b: { a } }; return (o)?.b /* ? */ ?. /* ) */ a?.[(0)] + (o?.b).a[1];', loads(0, 1)],
  ['const o = null; let n = 0; return [o?.x[n++].y, o?.x?.[n++], n, o?.[a[0]]];', []],
  ['const o = { x: { y: [[5]] } }; return [o?.x["y"]?.[0][0], delete o?.x?.[0], o?.["x"].y[0]?.at(0)];', []],
  ['return a?.\n[1] + a?.at(\n2)', loads(1).concat('load at() 2-2')],
  ['const o = { get: () => a }; return o?.get()?.[0] + o.get?.()[0];', loads(0)],
  ['const { 0: x, length, 3: y = 1 } = a; return x + y + length;', loads(0, 3)],
  ['const { 0: x } = { 0: 7 }; return { x, ...a };', ['load load 0-3']],
  ['return { ...{ a } }.a.length;', []],
  ['return a["at"](1) + a["length"];', ['load at() 1-1']],
  ['return [a.indexOf(3, 1), a.includes(3, -1), a.lastIndexOf(1, 1), a.lastIndexOf(1)];', LOOKS],
  ['const b = Buffer.from(a.buffer); return b.slice(1, 3)[0] + b.toString("hex", 2, 3);', SLICED],
  ['const b = Buffer.from(a.buffer); return b.compare(b, 1, 2, 3) + b.readUIntLE(1, 3);', COMPARED],
  ['const b = Buffer.from(a.buffer); b.writeIntBE(7, 2, 2); return b.write("0102", 1, "hex");', WROTE],
  [
    'return [new TextDecoder().decode(a), new TextEncoder().encodeInto("é", a).written];',
    ['load decode() 0-3', 'store encodeInto() 0-1'],
  ],
  ['let n = 0; console.assert(true, { get x() { return n++; }, a }); return n;', ['load load 0-3']],
  ['return new Map([[1, [2]]]).get(1)[0];', []],
  ['const o = { f(x) { return this.g + x; }, g: 1 }; return o["f"](2);', []],
  ['return (a)[(0)] + ((a))[1];', ['load load 0-0', 'load load 1-1']],
  ['return [a].map((x) => x[2])[0];', ['load load 2-2']],
  ['delete a.x; return typeof a[9];', []],
  ['return (a) /* ( ) ) */ [0 /* ) */] + a /* ( */ [1];', ['load load 0-0', 'load load 1-1']],
  ['a // (\n .fill /* ( \n */ (1, /* ) */ 3); return a[0 // )\n];', ['store fill() 3-3', 'load load 0-0']],
])('%s', (body, expected) => {
  expect(told(body)).toEqual(expected);
});

test('a method that is not there is told by its name', () => {
  expect(() => run('return a.put(1);')).toThrow(/put is not a function/);
  const { result } = run('try { a.put(1); } catch (error) { return error.message.replace(/^.*\\./, ""); }');
  expect(result).toBe('put is not a function');
});

/** Expressions of accesses, calls and `?.`, at random. */
function someExpression(random: (choices: number) => number, depth: number): string {
  const pick = (...of: string[]): string => of[random(of.length)];
  const index = (): string =>
    pick(
      '0',
      '1',
      'i',
      'i++',
      '(1)',
      '"p"',
      'f(2)',
      '`p`',
      '/* ( */ 0',
      someExpression(random, Math.max(0, depth - 1)),
    );
  const step = (): string =>
    pick(
      ...['.p', '?.p', ' /* ) */ ?. a', '?.at(0)', '.at?.(1)', '?.slice(0, i)', '?.["a"]', '.q', '?.q', '?.f(3)'],
      ...['.f(1)', '?.toString()', '?.a?.[0]', '.fill(2)?.[1]', '?.\n[1]', ...(depth > 0 ? [`[${index()}]`] : [])],
      ...(depth > 0 ? [`?.[${index()}]`, `.at(${index()})`] : []),
    );
  let text = pick('o', 'a', 'n', '(o)', 'o.p', 'o.a', '((o.p))', 'f(1)', 'u');
  for (let steps = random(4); steps > 0; steps--) text += step();
  if (random(6) === 0) text = `(${text})${step()}`;
  if (random(8) === 0) text = `(delete ${text})`;
  return depth > 0 && random(4) === 0 ? `(${text} ?? ${someExpression(random, depth - 1)})` : text;
}

const WORLD = `let i = 0, u; const n = null; const log = []; const a = Uint8Array.of(3, 1, 2, 0);
  const o = { a, p: { a, p: [1, 2, { p: 4 }], get q() { log.push('q'); return a; } } };
  o.f = o.p.f = function (x) { log.push(x, this === o); return a; };
  const f = (x) => { log.push(x); return x; };`;

test('random chains do what they did', () => {
  let seed = Number(process.env['ONESIDED_SEED'] ?? 1) >>> 0;
  const random = (choices: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % choices;
  };
  const registry = globalThis as unknown as Record<symbol, unknown>;
  registry[CALLS] = programCalls(runtimeOf(new WeakMap()));
  let compared = 0;
  for (let round = 0; round < 500; round++) {
    const [one, two] = [someExpression(random, 2), someExpression(random, 1)];
    const body = [
      `return [${one}, ${two}];`,
      `const { 0: x, p } = (${one}) ?? {}; return [x, p];`,
      `return [{ ...${one} }, typeof (${two})];`,
    ][random(3)];
    const source = `function main() { ${WORLD} const result = (() => { ${body} })(); return [result, i, log, a]; }`;
    const outcome = (code: string): string => {
      try {
        return inspect(new Function(`${code}; return main();`)(), { depth: 5 });
      } catch (error) {
        // An argument may be evaluated before it is known that there is no such method.
        return (error as Error).constructor.name;
      }
    };
    const expected = outcome(source);
    expect(outcome(instrument(source, 'file:///m.js', false) ?? source), body).toBe(expected);
    if (expected.startsWith('[')) compared++;
  }
  delete registry[CALLS];
  expect(compared).toBeGreaterThan(100);
});

test('places are those of the source', () => {
  const { seen } = run('const b = 1;\n  a[b] = a[0];\n a.fill(1);\n return 0;');
  expect(seen.map(({ at }) => at)).toEqual(['3:3', '3:10', '4:4']);
});

test('the columns of other calls on a line are mapped back', () => {
  const runtime = runtimeOf(new WeakMap());
  const source = "'use strict'; const t = (a) => { a[0] = a[1]; throw new Error('here'); };";
  const code = instrument(source, 'file:///c.js', false)!;
  const [, url, places, shifts] = /\)\]\("([^"]*)", "([^"]*)", "([^"]*)"\)/.exec(code)!;
  programCalls(runtime)(url, places, shifts);
  const column = code.indexOf("new Error('here')") + 1;
  expect(runtime.columns.get(url)!(1, column)).toBe(source.indexOf("new Error('here')") + 1);
});

test.each([
  ['#!/usr/bin/env node\n"use strict";\na[0];', false],
  ['import x from "y"; export default x[0];', true],
  ['class A { #x = [1]; static y = 2; get() { return this.#x[0]; } }', false],
  ['async function f(a) { a[0] = await g(); for await (const x of y) a[x] = 1; }', false],
  ['label: for (const k in o) { if (o[k]) continue label; }', false],
  ['x = a /* ( */ [0];', false],
  ['x = a <!-- (\n[0];', false],
])('%s is still a program', (source, isModule) => {
  const code = instrument(source, 'file:///p.js', isModule);
  parse(code!, { ecmaVersion: 'latest', sourceType: isModule ? 'module' : 'script' });
  expect(code!.startsWith('#!')).toBe(source.startsWith('#!'));
});

/** What is said not to be seen. */
function unseenIn(source: string, isModule = false): string[] {
  const unseen: string[] = [];
  instrument(source, 'file:///x.js', isModule, (what, at) => unseen.push(`${at}: ${what}`));
  return unseen;
}

test('what cannot be seen is said, with its place', () => {
  expect(unseenIn('let x;\n  x = eval(y); new Function("a", "a[0]"); Function(x)();')).toEqual([
    '2:7: loads and stores in what eval is given',
    '2:16: loads and stores in what Function is given',
    '2:43: loads and stores in what Function is given',
  ]);
  expect(unseenIn('let x;\nif (false) f() = x[0];')).toEqual([
    '2:12: loads and stores of this module, whose syntax is not known: Assigning to rvalue',
  ]);
  expect(unseenIn('if (new.target) return x[0]; eval.call(x);')).toEqual([]);
});

test('what is no program is left alone', () => {
  expect(instrument('this is no program', 'file:///x.js', false)).toBeUndefined();
  expect(instrument('const x = 1;', 'file:///x.js', false)).toBeUndefined();
});
