/**
 * Random BSP programs. Every process draws the whole program from the seed, carries out its own part, and computes what
 * all of them have by a sequential model: gets first, then puts, in the order of one process's calls. No two processes
 * put to one place in one superstep, since between them there is no order.
 */
import assert from 'node:assert/strict';
import type { Communicator } from 'onesided';
import { type Bsp, type BspOptions, begin } from 'onesided/bsp';
import { Random } from './random.ts';

/** A variable at all processes. */
interface Variable {
  /** This process's. */
  readonly own: Uint8Array | Float64Array;
  /** What it holds, by process. */
  readonly model: number[][];
  readonly wide: boolean;
}

interface Get {
  readonly to: Uint8Array | Float64Array;
  readonly expected: number[];
}

const STEPS = 6;
const MOST_VARIABLES = 5;

export async function bspRandom(
  world: Communicator,
  seed: number,
  blocks: boolean,
  options: BspOptions,
): Promise<void> {
  const random = new Random(seed);
  const bsp = await begin(world, options);
  const label = `seed ${seed}, process ${bsp.pid} of ${bsp.nprocs}`;
  let variables: Variable[] = [];
  let tagBytes = 0;
  for (let step = 0; step < STEPS; step++) {
    const changes = changesOf(bsp, random, variables);
    const nextTag = random.below(4) === 0 ? random.below(6) : undefined;
    if (nextTag !== undefined) assert.equal(bsp.setTagsize(nextTag), tagBytes, label);
    const gets = getsOf(bsp, random, variables);
    putsOf(bsp, random, variables);
    const messages = sendsOf(bsp, random, tagBytes);
    if (blocks && random.below(2) === 0) bsp.syncSync();
    else await bsp.sync();
    for (const { to, expected } of gets) assert.deepEqual([...to], expected, `${label}, step ${step}: a get`);
    for (const { own, model } of variables) {
      assert.deepEqual([...own], model[bsp.pid], `${label}, step ${step}: a variable`);
    }
    assert.deepEqual(received(bsp), messages, `${label}, step ${step}: messages`);
    variables = changes;
    tagBytes = nextTag ?? tagBytes;
  }
  await bsp.end();
}

/** Registers and removes, and gives what is registered in the next superstep. */
function changesOf(bsp: Bsp, random: Random, variables: readonly Variable[]): Variable[] {
  const left = variables.filter((variable) => {
    if (random.below(5) > 0) return true;
    bsp.popReg(variable.own);
    return false;
  });
  for (let n = random.below(3); n > 0 && left.length < MOST_VARIABLES; n--) {
    const wide = random.below(2) === 0;
    const lengths = Array.from({ length: bsp.nprocs }, () => random.below(random.below(4) === 0 ? 6000 : 40));
    const model = lengths.map((length, pid) => Array.from({ length }, (_, i) => (i + pid) % 200));
    const values = model[bsp.pid];
    const own = wide ? Float64Array.from(values) : Uint8Array.from(values);
    bsp.pushReg(own);
    left.push({ own, model, wide });
  }
  return left;
}

function arrayOf(wide: boolean, values: number | readonly number[]): Uint8Array | Float64Array {
  const type = wide ? Float64Array : Uint8Array;
  return typeof values === 'number' ? new type(values) : type.from(values);
}

/** The gets of all processes, of which this one makes its own. They see what is there before any put. */
function getsOf(bsp: Bsp, random: Random, variables: readonly Variable[]): Get[] {
  const own: Get[] = [];
  for (let pid = 0; pid < bsp.nprocs; pid++) {
    for (let n = random.below(variables.length === 0 ? 1 : 6); n > 0; n--) {
      const variable = variables[random.below(variables.length)];
      const from = random.below(bsp.nprocs);
      const length = variable.model[from].length;
      const at = random.below(length + 1);
      const count = random.below(length - at + 1);
      if (pid !== bsp.pid) continue;
      const to = arrayOf(variable.wide, count + 2);
      bsp.get(from, variable.own, at, to, count, 1);
      own.push({ to, expected: [0, ...variable.model[from].slice(at, at + count), 0] });
    }
  }
  return own;
}

/** The puts of all processes: each place of a variable belongs to one of them in this superstep. */
function putsOf(bsp: Bsp, random: Random, variables: readonly Variable[]): void {
  for (const variable of variables) {
    for (let to = 0; to < bsp.nprocs; to++) {
      const { length } = variable.model[to];
      const shift = random.below(bsp.nprocs);
      for (let part = 0; part < bsp.nprocs; part++) {
        const begin = Math.floor((part * length) / bsp.nprocs);
        const end = Math.floor(((part + 1) * length) / bsp.nprocs);
        const writer = (part + shift) % bsp.nprocs;
        for (let n = random.below(4); n > 0; n--) {
          const at = begin + random.below(end - begin + 1);
          const count = random.below(end - at + 1);
          const first = random.below(200);
          const values = Array.from({ length: count }, (_, i) => (first + i) % 256);
          if (writer === bsp.pid) {
            const source = arrayOf(variable.wide, [99, ...values, 99]);
            bsp.put(to, source, variable.own, at, count, 1);
            source.fill(0);
          }
          variable.model[to].splice(at, count, ...values);
        }
      }
    }
  }
}

/** What comes to this process, as texts in order. */
function sendsOf(bsp: Bsp, random: Random, tagBytes: number): string[] {
  const mine: string[] = [];
  for (let pid = 0; pid < bsp.nprocs; pid++) {
    for (let n = random.below(4); n > 0; n--) {
      const to = random.below(bsp.nprocs);
      const length = random.below(random.below(5) === 0 ? 20_000 : 30);
      const tag = Uint8Array.from({ length: tagBytes }, () => random.below(256));
      const payload = Uint8Array.from({ length }, (_, i) => (i * 7 + pid) % 251);
      if (pid === bsp.pid) bsp.send(to, tagBytes === 0 ? null : tag, payload);
      if (to === bsp.pid) mine.push(textOf(tag, payload));
    }
  }
  return mine.sort();
}

function received(bsp: Bsp): string[] {
  const all: string[] = [];
  for (let message = bsp.hpmove(); message !== undefined; message = bsp.hpmove()) {
    all.push(textOf(message.tag, message.payload));
  }
  return all.sort();
}

function textOf(tag: Uint8Array, payload: Uint8Array): string {
  return `${Buffer.from(tag).toString('hex')}:${Buffer.from(payload).toString('hex')}`;
}
