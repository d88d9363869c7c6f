/**
 * `npm run figures:layouts`: draws the pictures of docs/guide/layouts.md, each from the trace of one put on a modelled
 * fabric. The same bytes come out on every machine; test/docs/layouts.test.ts compares them with those in the guide.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Communicator, Datatype, Window } from 'onesided';
import { processorUse, runTasks } from 'onesided/fabrics';
import { ROOT } from '../programs.ts';

export const PICTURES = ['multi-write', 'pack', 'sgrs', 'host-assisted'] as const;
export type PictureWay = (typeof PICTURES)[number];

const PIECES = 64;
/** Elements. */
const PIECE = 64;
const ROW = 256;
/** Microseconds that the target of `host-assisted` computes. */
const COMPUTE = 120;
/** Which round is drawn: connections are made in the first. */
export const ROUND = 2;

/** What a put has taken: at its origin from the call to the end of `complete`, and of both ends' processors. */
export interface Pictured {
  readonly microseconds: number;
  readonly origin: number;
  readonly target: number;
}

/** Rank 0 puts a column of 64 pieces to rank 1, between start and complete; rank 1 posts and waits. */
async function column(world: Communicator, noncontiguous: PictureWay): Promise<readonly [number, number]> {
  const win = await Window.allocate(world, Int32Array, PIECES * ROW, { name: 'matrix', info: { noncontiguous } });
  const type = Datatype.vector(PIECES, PIECE, ROW, Datatype.INT32);
  const layout = { origin: { type }, target: { type } };
  const origin = new Int32Array(PIECES * ROW);
  const other = world.group.include([1 - world.rank]);
  let took = 0;
  let spent = 0;
  for (let round = 1; round <= ROUND; round++) {
    await world.barrier();
    if (world.rank === 0) {
      await win.start(other);
      const began = world.now();
      const before = processorUse(world).library;
      win.put(origin, 1, 0, layout);
      await win.complete();
      took = world.now() - began;
      spent = processorUse(world).library - before;
      // What comes next does not belong to the picture.
      await world.compute(1);
    } else {
      await win.post(other);
      const before = processorUse(world).library;
      if (noncontiguous === 'host-assisted') await world.compute(COMPUTE);
      await win.wait();
      spent = processorUse(world).library - before;
    }
  }
  await win.free();
  return [took, spent];
}

/** Runs the put of a picture. @param trace the file that its trace is written to */
export async function picture(way: PictureWay, trace: string): Promise<Pictured> {
  const [[microseconds, origin], [, target]] = await runTasks(2, (world) => column(world, way), {
    fabric: 'infinihost-express',
    trace,
  });
  return { microseconds, origin, target };
}

async function draw(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-layouts-'));
  try {
    for (const way of PICTURES) {
      const trace = join(folder, `${way}.json`);
      const { microseconds, origin, target } = await picture(way, trace);
      const svg = join(ROOT, 'docs/guide', `layouts-${way}.svg`);
      const command = [join(ROOT, 'bin/onesided.mjs'), 'trace', 'draw', trace, '--epoch', `${ROUND}`, '-o', svg];
      execFileSync(process.execPath, command);
      const times = [microseconds, origin, target].map((time) => time.toFixed(1));
      console.log(`${way}: ${times[0]} µs; processors ${times[1]} and ${times[2]} µs`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await draw();
